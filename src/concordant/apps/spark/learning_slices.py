"""A query that no task can hold, in a fit of several passes: what its slices add up to.

The place of a judgment among all of the query, by which folds are dealt, follows from counts of the slices: of each
winner, where they are ranges of the pairs; of all judgments, where they are ranges of the lists.

Scores of the query are Newton's: on the driver, with gradients and products with the Hessian from the slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from concordant.apps.spark.learning_held import Held, Split, Summing, Sums
from concordant.apps.spark.splitting import SummedSystem
from concordant.learning.solvers.least_squares import products
from concordant.learning.targets.mean_targets import Targets
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import dealt_cards
from concordant.preferences.status import Status
from concordant.ranking.closed_forms import C0
from concordant.ranking.newton import fit_system
from concordant.ranking.problem import Problem, win_derivatives
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CURVES = 1 << 22
"""Pairs of all graphs of a fit up to which tasks send the curvature of each, so that no product is asked of them."""
Part = tuple[int, Split]
"""A divided query, and the judgments that are learned from."""
Graph = tuple[int, Split, float]
"""Those, and the precision of the prior of the scores."""
Totals = Mapping[Any, Any]
"""With ("pairs", query): how many pairs the slices of a query have, those of several slices once for each."""


# -- dealing them --------------------------------------------------------------------------------------------------
Begins = Mapping[tuple[int, int], tuple[Ints, int]]
"""By query and slice: of each item the place of the first card that it wins (of lists, of the first card of the slice),
and how many cards the query has."""


@dataclass(frozen=True)
class Winners:
    """How many cards each item wins in each slice; of lists, how many there are."""

    hands: int
    distinct: Mapping[int, int]
    """Distinct judgments of each divided query."""

    def __call__(self, held: Held) -> Sums:
        if held.slice is None:
            return Sums()
        prefs, at = held.prefs, held.slice
        _, cards = dealt_cards(prefs.count, self.distinct[at.query], self.hands)
        return Sums({(at.query, at.number): of_winners(prefs, cards)})


def _winners(prefs: Any) -> Ints:
    """By what the judgments of a query stand first of all; lists by themselves, which are in the order of slices."""
    return np.asarray(prefs.winner if prefs.kind == "comparisons" else np.zeros(prefs.distinct, np.int64))


def of_winners(prefs: Any, cards: Ints) -> Ints:
    """How many cards each item wins; of lists, how many there are."""
    number = len(prefs.items) if prefs.kind == "comparisons" else 1
    return np.asarray(np.bincount(_winners(prefs), cards, number), np.int64)


def begins(winners: Mapping[tuple[int, int], Ints]) -> Begins:
    """Where the cards of every slice begin: judgments stand by winner, then by loser, as their slices do."""
    found: dict[tuple[int, int], tuple[Ints, int]] = {}
    for query in sorted({query for query, _ in winners}):
        numbers = sorted(number for one, number in winners if one == query)
        table = np.array([winners[query, number] for number in numbers])
        total = table.sum(axis=0)
        start = np.cumsum(total) - total
        for number, before in zip(numbers, np.cumsum(table, axis=0) - table, strict=True):
            found[query, number] = start + before, int(total.sum())
    return found


def first_cards(prefs: Any, cards: Ints, begin: Ints) -> Ints:
    """The place of the first card of each judgment of a slice."""
    before = np.cumsum(cards) - cards
    mine = of_winners(prefs, cards)
    own, winner = np.cumsum(mine) - mine, _winners(prefs)
    return np.asarray(begin[winner] + before - own[winner], np.int64)


# -- passes over them ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Along:
    """Scores of linear scorers, less their mean in the query."""

    thetas: Mapping[Part, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for (query, split), theta in self.thetas.items():
            if held.slice is not None and held.slice.query == query and held.speaks:
                found[query, split] = held.groups.centred(products(held.Z, theta)[held.row])
        return found


@dataclass(frozen=True, eq=False)
class _Slopes:
    """What pairs add to the gradient at some scores, and to the Hessian's diagonal; or ``whole``, above it, too."""

    scores: Mapping[Graph, Floats]
    whole: bool

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for graph, score in self.scores.items():
            query, split, _ = graph
            if held.slice is not None and held.slice.query == query:
                first, second = held.ends
                pull, curve = win_derivatives(score[first] - score[second], *held.wins(split))
                found["pull", graph] = _to_items(held, pull, -pull)
                found["degree", graph] = _to_items(held, curve, curve)
                if self.whole:
                    found["above", graph] = csr_array((curve, (first, second)), shape=(len(score), len(score)))
        return found


@dataclass(frozen=True, eq=False)
class _Images:
    """The Hessian at some scores times a vector each."""

    scores: Mapping[Graph, Floats]
    along: Mapping[Graph, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for graph, score in self.scores.items():
            query, split, _ = graph
            if held.slice is not None and held.slice.query == query:
                (first, second), along = held.ends, self.along[graph]
                curve = win_derivatives(score[first] - score[second], *held.wins(split))[1]
                flow = curve * (along[first] - along[second])
                found[graph] = _to_items(held, flow, -flow)
        return found


@dataclass(frozen=True)
class _LogOdds:
    """Σ log (n_jl + c0)/(n_lj + c0) of each item."""

    parts: tuple[Part, ...]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for query, split in self.parts:
            if held.slice is not None and held.slice.query == query:
                above, below = held.wins(split)
                odds = np.log((above + C0) / (below + C0))
                found[query, split] = _to_items(held, odds, -odds)
        return found


def bare(held: Held) -> Held:
    """A slice with nothing but its pairs: all that scores are found from."""
    return held.bare


def _to_items(held: Held, of_first: Floats, of_second: Floats) -> Floats:
    first, second = held.ends
    size = len(held.row)
    return np.asarray(np.bincount(first, of_first, size) + np.bincount(second, of_second, size), np.float64)


# -- scores --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Graphs(Problem):
    """Graphs whose pairs lie in slices, each with a prior of its own."""

    graphs_of: tuple[Graph, ...] = ()

    def take(self, chosen: Ints) -> Problem:
        taken = super().take(chosen)
        assert isinstance(taken, _Graphs)
        return replace(taken, graphs_of=tuple(self.graphs_of[graph] for graph in chosen.tolist()))


class _System(SummedSystem):
    """Newton's equations of all these graphs, each pass over the slices for all of them."""

    def __init__(self, problem: Problem, held: Summing, means: Mapping[Graph, Floats], totals: Totals) -> None:
        super().__init__(problem)
        self.held, self.means = held, means
        self.graphs: tuple[Graph, ...] = getattr(problem, "graphs_of", ())
        self.whole = sum(totals["pairs", query] for query, _, _ in self.graphs) <= CURVES
        self.prior = problem.node_groups.spread(np.array([prior for _, _, prior in self.graphs]))

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        self.scores = {graph: self.means[graph] + own for graph, own in self._cut(s).items()}
        found = self.held.sums(_Slopes(self.scores, self.whole))
        pull, degree = (np.concatenate([found[name, graph] for graph in self.graphs]) for name in ("pull", "degree"))
        above = [found["above", graph] for graph in self.graphs] if self.whole else []
        self.above, self.degree = csr_array(block_diag(above)) if above else None, degree
        return pull - self.prior * s, degree + self.prior

    def image(self, xs: Floats) -> Floats:
        if self.above is not None:
            return np.asarray((self.degree + self.prior) * xs - self.above @ xs - self.above.T @ xs, np.float64)
        found = self.held.sums(_Images(self.scores, self._cut(xs)))
        return np.concatenate([found[graph] for graph in self.graphs]) + self.prior * xs

    def _cut(self, of_nodes: Floats) -> dict[Graph, Floats]:
        return dict(zip(self.graphs, np.split(of_nodes, self.problem.node_start[1:-1]), strict=True))


def fitted(
    held: Summing, means: Mapping[Graph, Floats], totals: Totals, *, tolerance: float = 1e-10, max_iterations: int = 100
) -> dict[Graph, Scores]:
    """Bradley–Terry scores with the prior N(mean, 1/prior), as ``bradley_terry`` has them.

    Every graph is a fit of its own; all of them step together.
    """
    graphs = tuple(means)
    nodes = Ragged.of_sizes([len(means[graph]) for graph in graphs])
    none, no = np.zeros(0, np.int64), np.zeros(0)
    pairs = np.zeros(len(graphs) + 1, np.int64)
    problem = _Graphs(nodes.start, pairs, none, none, no, no, None, None, nodes.owner, 0.0, graphs_of=graphs)
    fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, held, means, totals))
    scores = np.split(fit.score, nodes.start[1:-1])
    return {graph: _scores(means[graph] + scores[at], fit.status[at]) for at, graph in enumerate(graphs)}


def log_odds(held: Summing, parts: tuple[Part, ...]) -> dict[Part, Scores]:
    """The usual structure of comparisons, as ``average_log_odds`` has it."""
    found = held.sums(_LogOdds(parts))
    return {part: _scores(found[part] / max(len(found[part]) - 1, 1), Status.CONVERGED) for part in parts}


def _scores(value: Floats, status: int) -> Scores:
    """Scores to learn from: what connects the items is not looked at."""
    none = np.zeros(1)
    return Scores(value, np.zeros(len(value), np.int32), np.array([status], np.int8), none.astype(np.int64), none)


@dataclass(frozen=True, eq=False)
class Scored:
    """Targets of a part of the judgments of a divided query, by each of some plans, made before the equations."""

    targets: tuple[Targets, ...] = ()
    judgments: int = 0


def with_divided(sums: Sums, queries: Iterable[int], folds: Iterable[Split], reference: int) -> Sums:
    """Add divided queries to what is summed over queries, each of them held out by one of the folds."""
    for query, split in product(queries, folds):
        if own := sums.get(("divided", query, split)):
            apart, weight = own["lost"] - own["lost"][reference], own["weight"]
            more = {"queries": 1, "apart": apart, "products": np.outer(apart, apart)}
            more |= {"with weight": weight * apart, "weights": weight**2}
            sums = sums + Sums({(split, name): value for name, value in more.items()})
    return sums
