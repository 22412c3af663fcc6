"""One independent ranker for each query (the Talk's image search): aggregated statistics against single comparisons.

The images and their features cannot be had. Documents of the longest lists of MSLR (or MQ2008) stand in for them: half
of a query's documents are compared and learned from, the other half is ranked by that query's own scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import TITLES, GradedLists, read_graded
from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting, found
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.losses.metrics.metrics import compare
from concordant.losses.metrics.ndcg import ndcg
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import Ragged
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
Fit = Callable[["_Query", float], Floats]
DATA = ("mslr", "mq2008")
PER_QUERY = (50, 200, 800)
EFFORT = (2, 3, 3)
"""How long a run of each takes beside the others."""
QUERIES, RUNS = 60, 8
RIDGES = (1e-2, 1e-1, 1.0, 10.0, 100.0)
PRIOR = 1.0
TOLERANCE = 1e-4
AT = 10


@dataclass(frozen=True, eq=False)
class _Query:
    """What one query's ranker learns from: features of its documents, comparisons, and their aggregates."""

    X: Floats
    winner: NDArray[np.int64]
    loser: NDArray[np.int64]
    share: Floats
    scores: Mapping[str, Floats]


def _aggregated(name: str) -> Fit:
    """Least squares to the scores of a structure."""

    def fit(query: _Query, ridge: float) -> Floats:
        start = np.array([0, len(query.X)])
        target = query.scores[name]
        return NormalEquations.of(query.X, target, start, np.array([1.0 / len(query.X)])).solve(ridge).theta

    return fit


def _disaggregated(phi: str) -> Fit:
    """A margin function on every comparison."""

    def fit(query: _Query, ridge: float) -> Floats:
        edges = WeightedEdges.of(np.array([0, len(query.X)]), query.winner, query.loser, query.share)
        objective = Objective(edges, pair_loss(phi), value_penalty("square"))
        return fit_edges(query.X, objective, ridge=ridge, tolerance=TOLERANCE).theta

    return fit


METHODS: Mapping[str, Fit] = {
    "aggregated: log-odds": _aggregated("log-odds"),
    "aggregated: Bradley–Terry": _aggregated("bradley-terry"),
    "pairs: SVM": _disaggregated("hinge"),
    "pairs: logistic": _disaggregated("logistic"),
}


def run(setting: Setting) -> Outcome:
    """Run the experiment on the first set that is there."""
    lists = read_graded(next(name for name in DATA if found(name, setting.data)), setting.data)
    queries, runs = (20, 2) if setting.quick else (QUERIES, RUNS)
    lists = lists.some(np.sort(np.argsort(-lists.size, kind="stable")[:queries]))
    rows: list[Row] = []
    told = Efforts(setting, float(sum(EFFORT) * (runs + 1)))
    for effort, each in zip(EFFORT, PER_QUERY, strict=True):
        values: list[Floats] = []
        for number in range(runs + 1):
            values.append(_one_run(lists, each, np.random.default_rng([setting.seed, 6, each, number])))
            told.done(effort)
        rows += _rows(each, values[0], np.mean(values[1:], axis=0))
    return Outcome(
        "images",
        "One ranker per query (the Talk's image search)",
        rows,
        _agreement(rows),
        lambda figure: _draw(figure, rows),
        size=(5.5, 3.6),
        notes=(
            f"The {len(lists)} longest lists of {TITLES[lists.name]} stand in for image queries: {len(lists.X):,} "
            f"documents, {lists.X.shape[1]} features; a linear ranker for each query, learned from comparisons (26) of "
            "one half of its documents, judged by NDCG@10 (2^r − 1) on the other half.",
            f"{runs} runs; the ridge of each method is the best on one more; differences are paired over queries.",
        ),
    )


def _one_run(lists: GradedLists, per_query: int, rng: np.random.Generator) -> Floats:
    """NDCG@10 on the held-out halves, shape (methods, ridges, queries)."""
    shuffled = np.lexsort((rng.random(len(lists.X)), lists.query))
    rank = np.empty(len(lists.X), np.int64)
    rank[shuffled] = np.arange(len(lists.X)) - lists.start[:-1][lists.query]
    learned = rank < lists.size[lists.query] // 2
    train, test = _rows_of(lists, learned), _rows_of(lists, ~learned)
    prefs = train.draw(per_query * len(train), rng)
    batch = Batch.whole(prefs)
    scores = {
        "log-odds": structure("log-odds")(batch).value,
        "bradley-terry": structure("bradley-terry")(batch, prior=PRIOR).value,
    }
    ranked = np.zeros((len(METHODS), len(RIDGES), len(test.X)))
    for place in range(len(lists)):
        query, theirs = _query(train, prefs, scores, place), slice(test.start[place], test.start[place + 1])
        for method, fit in enumerate(METHODS.values()):
            for ridge, value in enumerate(RIDGES):
                ranked[method, ridge, theirs] = test.X[theirs] @ fit(query, value)
    return np.array([[ndcg(line, test.relevance, test.query, at=AT) for line in block] for block in ranked])


def _rows_of(lists: GradedLists, keep: NDArray[np.bool_]) -> GradedLists:
    start = Ragged.counted(lists.query[keep], len(lists)).start
    return replace(lists, X=lists.X[keep], relevance=lists.relevance[keep], start=start)


def _query(train: GradedLists, prefs: Comparisons, scores: Mapping[str, Floats], place: int) -> _Query:
    docs = slice(int(train.start[place]), int(train.start[place + 1]))
    held = slice(int(prefs.start[place]), int(prefs.start[place + 1]))
    winner, loser = (side[held].astype(np.int64) - docs.start for side in (prefs.winner, prefs.loser))
    share = prefs.count[held] / max(int(prefs.count[held].sum()), 1)
    return _Query(train.X[docs], winner, loser, share, {name: value[docs] for name, value in scores.items()})


def _rows(per_query: int, pilot: Floats, values: Floats) -> list[Row]:
    """Mean NDCG of each method at its ridge, and what it is above the pairwise SVM."""
    best = pilot.mean(axis=2).argmax(axis=1)
    chosen = values[np.arange(len(METHODS)), best]
    svm = chosen[list(METHODS).index("pairs: SVM")]
    rows: list[Row] = []
    for place, name in enumerate(METHODS):
        pair = compare(chosen[place], svm)
        rows.append(
            {
                "method": name,
                "comparisons": per_query,
                "NDCG@10": float(chosen[place].mean()),
                "ridge": f"{RIDGES[best[place]]:g}",
                "above SVM": pair.mean,
                "lower": pair.lower,
                "upper": pair.upper,
            }
        )
    return rows


def _agreement(rows: Sequence[Row]) -> list[str]:
    said = []
    for each in dict.fromkeys(row["comparisons"] for row in rows):
        mine = {row["method"]: row for row in rows if row["comparisons"] == each}
        name = max((method for method in mine if method.startswith("aggregated")), key=lambda m: mine[m]["NDCG@10"])
        row, svm = mine[name], mine["pairs: SVM"]["NDCG@10"]
        verdict = "better" if row["lower"] > 0 else "worse" if row["upper"] < 0 else "level within the interval"
        said.append(
            f"{each} comparisons a query: {name} {row['NDCG@10']:.4f}, pairwise SVM {svm:.4f} "
            f"({row['above SVM']:+.4f} [{row['lower']:+.4f}, {row['upper']:+.4f}]): {verdict} (the Talk shows images "
            "only, no numbers)."
        )
    return said


def _draw(figure: Any, rows: Sequence[Row]) -> None:
    """NDCG@10 against the comparisons of a query."""
    axis = figure.subplots()
    for name in METHODS:
        mine = [row for row in rows if row["method"] == name]
        style = "o-" if name.startswith("aggregated") else "s--"
        axis.plot(
            [row["comparisons"] for row in mine], [row["NDCG@10"] for row in mine], style, markersize=4, label=name
        )
    axis.set_xscale("log")
    axis.set_xticks(PER_QUERY, [str(each) for each in PER_QUERY])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("comparisons of a query")
    axis.set_ylabel(f"NDCG@{AT}, held-out documents")
    axis.legend(fontsize=8)
