"""nDCG@10 of 10^4 queries × 100 documents, ours and peers: a case of ``make bench``.

Ours starts from arrays, each peer from what it holds. Each contender runs in a process of its own and is timed without
building its inputs; the first call is shown apart from the best of the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import add, report
from benchmarks.cases import Case, Row

QUERIES, DOCUMENTS, BAR, TIMES = 10_000, 100, 0.05, 5.0


def _data() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.normal(size=(QUERIES, DOCUMENTS)), draw.integers(0, 5, (QUERIES, DOCUMENTS))


def _nested(table: np.ndarray) -> dict[str, dict[str, Any]]:
    return {str(q): {str(d): value for d, value in enumerate(row)} for q, row in enumerate(table.tolist())}


def concordant(convention: str) -> Callable[[], Any]:
    """Ours on flat arrays with a column of queries."""
    import concordant as cc

    score, label = (table.ravel() for table in _data())
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    return lambda: cc.ndcg(score, label, query, at=10, convention=convention)


def scikit_learn() -> Callable[[], Any]:
    """``ndcg_score``, with its faster option; a matrix, so lists of one length."""
    from sklearn.metrics import ndcg_score

    score, label = _data()
    return lambda: ndcg_score(label, score, k=10, ignore_ties=True)


def pytrec_eval() -> Callable[[], Any]:
    """The evaluator on dictionaries that are there already."""
    import pytrec_eval as library

    score, label = _data()
    judge, run = library.RelevanceEvaluator(_nested(label), {"ndcg_cut.10"}), _nested(score)
    return lambda: judge.evaluate(run)


def ranx() -> Callable[[], Any]:
    """``ndcg_burges`` on a run that is there already; the first call compiles."""
    import ranx as library

    score, label = _data()
    qrels, run = library.Qrels(_nested(label)), library.Run(_nested(score))
    return lambda: library.evaluate(qrels, run, "ndcg_burges@10")


CONTENDERS: dict[str, Callable[[], Callable[[], Any]]] = {
    "concordant, burges": lambda: concordant("burges"),
    "concordant, sklearn": lambda: concordant("sklearn"),
    "concordant, trec": lambda: concordant("trec"),
    "pytrec_eval": pytrec_eval,
    "ranx": ranx,
    "scikit-learn": scikit_learn,
}

SAME = {"pytrec_eval": "trec", "ranx": "burges", "scikit-learn": "sklearn"}
"""The convention in which we compute the very number that the peer does."""


def ranked_lists(_folder: Path, scale: float) -> Case:
    """nDCG@10 of lists with graded labels, from arrays."""
    del scale  # a second is all it takes
    case = Case(f"nDCG@10, {QUERIES:,} queries × {DOCUMENTS} documents")
    rows: dict[str, Row] = {}
    for name in CONTENDERS:
        rows[name] = add(case, "ranked_lists", name, name)
    ours = rows["concordant, burges"]
    case.bar("concordant, burges", ours.seconds, " s", most=BAR)
    case.bar("its first call", float(ours.result.get("first", float("nan"))), " s", most=1)
    for name, convention in SAME.items():
        alike = rows[f"concordant, {convention}"]
        case.bar(f"{name} / concordant, {convention}", rows[name].seconds / alike.seconds, "×", least=TIMES)
    return case


if __name__ == "__main__":
    report(CONTENDERS[sys.argv[1]](), 3)
