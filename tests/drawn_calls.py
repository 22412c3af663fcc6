"""Calls of the public interface with one or two drawn arguments that nobody should give."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse

import concordant as cc
from concordant.errors import ConcordantError

__all__ = ["CALLS", "check_call"]

Arguments = dict[str, Any]
WINNER, LOSER, QUERY = ["a", "a", "b", "c", "a"], ["b", "c", "a", "b", "c"], ["p", "p", "p", "q", "q"]
SCORES, GRADES, OWNER = [0.5, 0.1, 2.0, 0.0, -1.0], [1, 0, 2, 0, 1], ["p", "p", "p", "q", "q"]
POINTS = [[0.0, 1.0], [0.5, 0.2], [2.0, 1.0], [0.1, 0.1], [1.0, -1.0]]


def votes() -> cc.Preferences:
    """Five comparisons in two queries."""
    return cc.Preferences.from_comparisons(WINNER, LOSER, QUERY)


def features() -> Arguments:
    return {"item": ["a", "b", "c"], "x": [1.0, 2.0, 0.5], "y": [0.0, 1.0, 3.0]}


def _fit(ranker: Any, given: Any, prefs: Any, after: Any) -> Any:
    return ranker.fit(given, prefs).predict(after)


def _aggregation(given: Any, prefs: Any, after: Any, **options: Any) -> Any:
    return _fit(cc.AggregationRanker(**options), given, prefs, after)


def _edges(given: Any, prefs: Any, after: Any, **options: Any) -> Any:
    return _fit(cc.EdgeRanker(**options), given, prefs, after)


def _lists() -> Arguments:
    return {
        "query": ["p"] * 3,
        "session": [1, 1, 1],
        "position": [1, 2, 3],
        "item": ["a", "b", "c"],
        "clicked": [0, 1, 0],
    }


def _ratings() -> Arguments:
    return {"query": ["p"] * 3, "item": ["a", "b", "c"], "rating": [1, 2.5, 3]}


def _orders() -> Arguments:
    return {"query": ["p"] * 3, "judgment": [1, 1, 1], "item": ["a", "b", "c"], "rank": [1, 2, 2]}


def _metric() -> Arguments:
    return {"scores": SCORES, "labels": GRADES, "query": OWNER}


def _cut() -> Arguments:
    return _metric() | {"at": 3, "convention": "burges"}


def _relevant() -> Arguments:
    return _cut() | {"relevant": 1.0}


def _rank() -> Arguments:
    more = {"level": 0.9, "seed": 1, "replicates": 20, "quasi": False, "across_components": False}
    return {"prefs": votes(), "structure": "bradley-terry", "interval": "hessian", **more, "prior": 0.01}


def _losses() -> Arguments:
    return {"scores": SCORES, "X": POINTS, "y": [1, 0, 1, 0, 0], "gamma": 1.0, "cost": 0.1, "norm": "inf"}


def _fitting() -> Arguments:
    return {"given": features(), "prefs": votes(), "after": features()}


CALLS: list[tuple[Callable[..., Any], Callable[[], Arguments]]] = [
    (cc.Preferences.from_comparisons, lambda: {"winner": WINNER, "loser": LOSER, "query": QUERY, "weight": [1.0] * 5,
     "tie": [False] * 5, "count": [1] * 5, "cluster": QUERY}),
    (cc.Preferences.from_selections, _lists),
    (cc.Preferences.from_orders, _orders),
    (cc.Preferences.from_ratings, _ratings),
    (lambda n, seed: votes().folds(n, seed=seed), lambda: {"n": 2, "seed": 0}),
    (lambda queries: votes().select(queries), lambda: {"queries": ["p"]}),
    (lambda source, **options: cc.read(source, **options), lambda: {"source": {"winner": WINNER, "loser": LOSER},
     "kind": None, "columns": None, "clicks": "raise", "on_error": "raise", "cluster": None, "home": None}),
    (cc.rank, _rank), (cc.rank, _rank), (cc.rank, _rank),
    *((metric, _relevant) for metric in (cc.precision, cc.average_precision, cc.reciprocal_rank)),
    *((metric, _cut) for metric in (cc.ndcg, cc.err, cc.precision, cc.average_precision, cc.reciprocal_rank)),
    (cc.kendall_tau, _metric), (cc.pairwise_loss, _metric), (cc.auc, lambda: _metric() | {"relevant": 1.0}),
    (cc.compare, lambda: {"first": SCORES, "second": [0.1, 0.2, 0.3, 0.4, 0.5], "level": 0.9}),
    (cc.summarise, lambda: {"values": SCORES}),
    (_aggregation, lambda: _fitting() | {"structure": "log-odds", "order": "all", "informed": False, "ridge": 0.1}),
    (_aggregation, lambda: _fitting() | {"subsets": 8, "order": 2, "gain": "identity", "seed": 0}),
    (_edges, lambda: _fitting() | {"loss": "ranknet", "phi": "logistic", "ridge": 0.1}),
    (cc.mean_targets, lambda: {"prefs": votes(), "structure": "log-odds", "order": 2, "subsets": 4, "seed": 0}),
    (cc.pairwise_abstention_loss, _losses), (cc.bipartite_abstention_loss, _losses),
    (cc.consistency_bound, lambda: {"t": [0.1, 0.5], "phi": "hinge", "W": 1.0, "gamma": 0.5, "setting": "general"}),
    (cc.optimal_order, lambda: {"prefs": votes()}),
]  # fmt: skip
SCALARS: list[Any] = [None, 0, 1, -1, 2, 7, 1.5, -0.5, 0.0, -0.0, 1e300, 5e-324, 10**30, 2**63, -(2**63), True, False]
SCALARS += [float("nan"), float("inf"), float("-inf"), np.int8(2), np.float32(0.5), np.bool_(True), np.int64(-1)]
SCALARS += ["", "x", "a", "all", "auto", "none", "inf", "2", "0.5", "raise", "hessian", "\0", "x" * 5000]
COLUMNS = {"winner", "loser", "query", "weight", "tie", "count", "cluster", "session", "position", "item", "clicked"}
COLUMNS |= {"rating", "judgment", "rank", "queries", "source", "prefs", "scores", "labels", "first", "second", "values"}
COLUMNS |= {"given", "after", "X", "y", "t", "gamma", "columns"}
"""Arguments that hold data, which come in any make; others are options, which are texts and numbers."""
NASTY: list[Callable[[], Any]] = [
    *(lambda value=value: value for value in (None, 0, 1, -1, 2, 1.5, -0.5, 0.0, 1e300, 10**30, 2**63, True, b"x")),
    *(lambda value=value: float(value) for value in ("nan", "inf", "-inf", "5e-324")),
    *(lambda value=value: value for value in ("a", "all", "auto", "none", "p", (), [], {}, set(), range(3), object())),
    *(lambda value=value: value for value in (1j, datetime.date(2026, 1, 1), int, {"a": 1}, [None], [[1]], [1, "a"])),
    *(lambda n=n: np.zeros(n) for n in ((), 0, 1, 5, 6, (5, 1), (1, 5), (2, 2, 2))),
    lambda: np.array([1.0, np.nan, 2, 3, 4]), lambda: np.array([1.0, np.inf, 2, 3, 4]), lambda: np.array([1e308] * 5),
    lambda: np.array(["a", "b", None, "c", "d"], object), lambda: np.array([1, "a", 2.5, None, []], object),
    lambda: np.array(["2026-01-01"] * 5, "M8[D]"), lambda: np.ones(5, complex), lambda: np.ma.masked_all(5),
    lambda: np.array([2**63] * 5, np.uint64), lambda: np.arange(5)[::-1], lambda: np.array([True] * 5),
    lambda: scipy.sparse.csr_matrix(np.eye(5)), lambda: scipy.sparse.coo_array(np.ones(5)), lambda: iter(range(5)),
    lambda: pd.Series([1, None, 3, 4, 5]), lambda: pd.Series(list("abcde"), index=[5, 4, 3, 2, 1]),
    lambda: pd.Series(pd.Categorical(list("aabbc"))), lambda: pd.DataFrame({"x": range(5)}), lambda: pd.NA,
    lambda: pa.array([1, 2, None, 4, 5]), lambda: pa.chunked_array([["a", "b"], ["c", "d", "e"]]), lambda: pa.nulls(5),
    lambda: pa.array([[1]] * 5), lambda: ["a\0", "b", "c", "d", "e"], lambda: ["\ud800"] * 5, lambda: [True] * 5,
    lambda: [2**63 - 1] * 5, lambda: [-1] * 5, lambda: [0.5] * 5, lambda: ["1", "2", "3", "4", "5"],
    lambda: [0, 1, 0, 1, 0],
    lambda: cc.Preferences.empty(), votes, features, lambda: {"item": [], "x": []}, lambda: {"x": [1.0]},
]  # fmt: skip


def check_call(random: Random) -> str | None:
    """An answer, or an error of the package."""
    call, usual = random.choice(CALLS)
    arguments = usual()
    changed = random.sample(sorted(arguments), min(len(arguments), random.choice([1, 1, 2])))
    for name in changed:
        arguments[name] = (
            random.choice(NASTY)() if name in COLUMNS and random.random() < 0.8 else random.choice(SCALARS)
        )
        if name in ("replicates", "subsets") and isinstance(arguments[name], int) and arguments[name] > 50:
            arguments[name] = 50  # more is more work, and allowed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**arguments)
        except ConcordantError as error:
            said = str(error)
            return None if said and len(said) < 10_000 else f"a message of {len(said)} characters"
        except Exception as error:
            shown = {name: arguments[name] for name in changed}
            name = getattr(call, "__qualname__", str(call))
            return f"{name} with {shown!r:.500}: {type(error).__name__}: {str(error)[:300]}\n{place(error)}"
    return None


def place(error: BaseException) -> str:
    """Say where in the package an error came from."""
    found, at = [], error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if "/concordant/" in file:
            found.append(f"{file.rpartition('/concordant/')[2]}:{at.tb_lineno}")
        at = at.tb_next
    return " > ".join(found[-3:])
