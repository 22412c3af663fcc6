"""nDCG@10 of 10^4 queries × 100 documents, ours and peers: ``python -m benchmarks.ranked_lists``.

Ours starts from arrays, each peer from what it holds. Each contender runs in a process of its own and is timed without
building its inputs; the first call is shown apart from the best of the others. Peers that are not installed
(pytrec-eval-terrier, ranx, scikit-learn) are said and left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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


def _measure(name: str, repeat: int = 6) -> list[float]:
    try:
        work = CONTENDERS[name]()
    except ImportError:
        return []
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return seconds


def main() -> None:
    """Measure all, print seconds and ratios; exit with 1 where a bar is missed."""
    best: dict[str, float] = {}
    for name in CONTENDERS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.ranked_lists", name],
            cwd=Path(__file__).resolve().parent.parent,
            capture_output=True,
            text=True,
        )
        seconds = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else []
        if not seconds:
            print(f"{name}: not installed" if done.returncode == 0 else f"{name}: failed: {done.stderr[-200:]}")
            continue
        best[name] = min(seconds[1:])
        print(f"{name}: {best[name]:.3f} s (first call {seconds[0]:.3f} s)", flush=True)
    ours = best["concordant, burges"]
    met = [("seconds", ours, ours <= BAR)]
    met += [
        (f"times faster than {name}", value / ours, value / ours >= TIMES)
        for name, value in best.items()
        if not name.startswith("concordant")
    ]
    for what, value, fine in met:
        print(f"{'met ' if fine else 'MISS'} {value:.3f} {what}")
    sys.exit(0 if all(fine for *_, fine in met) else 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_measure(sys.argv[1])))
    else:
        main()
