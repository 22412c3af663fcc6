"""A query that no task can hold, in a fit of several passes: slices with features, and its targets from sums over them.

All judgments of a pair are in one slice, and a slice has all items of the query as nodes. So whatever is a sum over
pairs or judgments is done by slices as by whole queries. Slices are ranges of the pairs in their order: the place of a
judgment among all of the query, by which folds are dealt, then follows from counts of each slice's winners.

Scores of the query are Newton's: on the driver, with gradients and products with the Hessian from the slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_features import FeatureFrame
from concordant.apps.spark.learning_held import (
    PIECES,
    Held,
    Slice,
    Split,
    Summing,
    Sums,
    _Making,
    _whole,
    objects,
    of_items,
    pieces,
    summed,
)
from concordant.apps.spark.partitioning import BUCKET
from concordant.apps.spark.splitting import SHARE, SummedSystem, Union, together
from concordant.errors import UsageError
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.target import Target
from concordant.learning.solvers.least_squares import products
from concordant.learning.targets.mean_targets import Targets
from concordant.preferences.counted import declare
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import dealt_cards
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.closed_forms import C0
from concordant.ranking.newton import fit_system
from concordant.ranking.problem import Problem, win_derivatives

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Part = tuple[int, Split]
"""A divided query, and the judgments that are learned from."""
Graph = tuple[int, Split, float]
"""Those, and the precision of the prior of the scores."""
SENT = pa.schema([(BUCKET, pa.int32()), ("source", pa.int64()), *PIECES])


def divides(ranker: AggregationRanker, kind: str, judged: JudgedQueries) -> bool:
    """Whether all that a fit asks of a query is a sum over its pairs: the usual aggregation, judged by pairs."""
    tried, _, beyond = ranker._to_try(kind, 1, ranker._informed(kind), "cascade")
    if not beyond or tried[0].order != "all" or ranker.structure_options:
        return False
    return judged.compared and not judged.checks.layout.covariates and not Target.of(ranker.target, kind).of_lists


# -- making them ---------------------------------------------------------------------------------------------------
def _same(prefs: Preferences) -> Preferences:
    return prefs


def _labels(prefs: Preferences) -> Sums:
    return Sums(items=Union(prefs.items), queries=Union(prefs.queries))


@dataclass(frozen=True)
class _Ends:
    """The pairs of judgments, first item and second, by the codes of items among all of the query."""

    items: Union

    def of(self, prefs: Comparisons) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        own = self.items.labels.codes_of(prefs.items.values)
        winner, loser = own[prefs.winner], own[prefs.loser]
        return np.minimum(winner, loser), np.maximum(winner, loser)

    def __call__(self, prefs: Comparisons) -> Sums:
        """How many distinct judgments have each item as the first of their pair."""
        return Sums(number=np.bincount(self.of(prefs)[0], minlength=len(self.items.labels)))


@dataclass(frozen=True)
class _Seconds:
    """How many of them have each second item, of some first ones; shape (first ones, items)."""

    ends: _Ends
    some: Ints

    def __call__(self, prefs: Comparisons) -> Sums:
        first, second = self.ends.of(prefs)
        size = len(self.ends.items.labels)
        place = np.minimum(np.searchsorted(self.some, first), len(self.some) - 1)
        here = self.some[place] == first
        counts = np.bincount(place[here] * size + second[here], minlength=len(self.some) * size)
        return Sums(number=counts.reshape(len(self.some), size))


@dataclass(frozen=True)
class Cuts:
    """In which slice each pair is: slices are ranges of the pairs in their order, first item and then second."""

    unit: Ints
    """Of each first item where its units begin, one for all of its pairs or one for each second item."""
    several: NDArray[np.bool_]
    slice_of: NDArray[np.int32]
    """Of each unit."""

    @classmethod
    def of(cls, number: Ints, some: Ints, of_pairs: Ints, most: int) -> Cuts:
        """Cut at about so many judgments; ``of_pairs`` are the numbers of each second item of ``some`` first ones."""
        size = len(number)
        several = np.zeros(size, bool)
        several[some] = True
        units = Ragged.of_sizes(np.where(several, size, 1))
        count = np.zeros(int(units.start[-1]), np.int64)
        count[units.first[~several]] = number[~several]
        count[units.spread(several)] = of_pairs.ravel()
        slice_of = np.unique((np.cumsum(count) - count) // most, return_inverse=True)[1]
        return cls(units.first, several, slice_of.astype(np.int32))

    def __call__(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.slice_of[self.unit[first] + np.where(self.several[first], second, 0)]


@dataclass(frozen=True)
class _Cutting:
    """A task: every share is cut into what belongs to each slice."""

    ends: _Ends
    cuts: Cuts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for source, prefs in objects(batches):
            of = self.cuts(*self.ends.of(prefs))
            for number in np.unique(of).tolist():
                rows = np.flatnonzero(of == number)
                for piece in pieces(number, keep(prefs, rows, prefs.count[rows], prefs.declared[:0])):
                    whose = pa.scalar(number, pa.int32()), pa.scalar(source, pa.int64())
                    ends = (pa.repeat(one, piece.num_rows) for one in whose)
                    yield pa.RecordBatch.from_arrays([*ends, *piece.columns], schema=SENT)


@dataclass(frozen=True)
class _Gathering:
    """A task: what was cut becomes a slice, with the features of all items of the query."""

    making: _Making
    items: Union
    query: int
    first: int
    """Bucket of the first slice."""

    def __call__(self, key: tuple[Any, ...], sent: pa.Table, features: pa.Table) -> pa.Table:
        number = int(key[0].as_py())
        sent = sent.sort_by([("source", "ascending"), ("left", "descending")])
        parts = [part for _, part in objects(iter(sent.select(PIECES.names).to_batches()))]
        made = self.made(number, parts, features) if parts else None
        return _whole(pieces(self.first + number, made))

    def made(self, number: int, parts: list[Preferences], features: pa.Table) -> Any:
        """The slice; what its items lack is said once."""
        while len(parts) > 1:
            parts = [sum(parts[at : at + 2], Preferences.empty()) for at in range(0, len(parts), 2)]
        labels = self.items.labels
        prefs = declare(parts[0], (parts[0].queries.take(np.zeros(len(labels), np.int64)), labels.values))
        made = self.making.made(self.first + number, prefs, features)
        if isinstance(made, Held):
            made.slice = Slice(self.query, number)
            return made
        return None if number else made


def sliced(
    judged: JudgedQueries, label: Any, making: _Making, features: FeatureFrame, query: int, first: int
) -> tuple[DataFrame, int, DataFrame] | None:
    """Return the slices of a query, in buckets from ``first`` on, how many, and what to free when they are made.

    None where it has no judgments. Errors (UsageError): a pair with more judgments than a task holds.
    """
    shares, _, tasks = together(judged, label, _same)
    try:
        with stage("counting pairs"):
            found = summed(shares, _labels, tasks)
            if not found:
                shares.unpersist()
                return None
            queries, ends = found["queries"].labels, _Ends(found["items"])
            cuts = _cuts(judged, label, ends, lambda work: summed(shares, work, tasks)["number"])
    except BaseException:
        shares.unpersist()
        raise
    slices = int(cuts.slice_of.max()) + 1
    rows = of_items(judged, features, queries, ends.items.labels).drop("file", "block", "row")
    theirs = rows.withColumn(BUCKET, fn.explode(fn.sequence(fn.lit(0), fn.lit(slices - 1))))
    cut = shares.mapInArrow(_Cutting(ends, cuts), from_arrow_schema(SENT))
    gathering = _Gathering(making, ends.items, query, first)
    ours, others = (each.repartitionById(slices, BUCKET).groupBy(BUCKET) for each in (cut, theirs))
    made = ours.cogroup(others).applyInArrow(
        lambda key, one, other: gathering(key, one, other), from_arrow_schema(PIECES)
    )
    return made, slices, shares


def _cuts(judged: JudgedQueries, label: Any, ends: _Ends, counted: Callable[[Any], Ints]) -> Cuts:
    """Where a query is cut, by how many distinct judgments its pairs have."""
    size = min(SHARE, judged.most)
    number = counted(ends)
    some = np.flatnonzero(number > size)
    of_pairs = counted(_Seconds(ends, some)) if len(some) else np.zeros((0, len(number)), np.int64)
    if (most := int(of_pairs.max(initial=0))) > judged.most:
        what = "the log" if label is None else f"query {label!r}"
        raise UsageError(
            f"{judged.name}: a pair of items of {what} has {most:,} distinct judgments, and a task holds "
            f"{judged.most:,}: a query is divided by its pairs; leave out what tells them apart (clusters, times), or "
            "fit it on one machine"
        )
    return Cuts.of(number, some, of_pairs, size)


# -- dealing them --------------------------------------------------------------------------------------------------
Begins = Mapping[tuple[int, int], tuple[Ints, int]]
"""By query and slice: of each item the place of the first card that it wins, and how many cards the query has."""


@dataclass(frozen=True)
class Winners:
    """How many cards each item wins in each slice."""

    hands: int
    distinct: Mapping[int, int]
    """Distinct judgments of each divided query."""

    def __call__(self, held: Held) -> Sums:
        if held.slice is None:
            return Sums()
        prefs, at = held.prefs, held.slice
        _, cards = dealt_cards(prefs.count, self.distinct[at.query], self.hands)
        return Sums({(at.query, at.number): _of_winners(prefs, cards)})


def _of_winners(prefs: Any, cards: Ints) -> Ints:
    return np.asarray(np.bincount(prefs.winner, cards, len(prefs.items)), np.int64)


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
    mine = _of_winners(prefs, cards)
    own = np.cumsum(mine) - mine
    return np.asarray(begin[prefs.winner] + before - own[prefs.winner], np.int64)


# -- passes over them ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Along:
    """Scores of linear scorers, less their mean in the query."""

    thetas: Mapping[Part, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for (query, split), theta in self.thetas.items():
            if held.slice is not None and held.slice == Slice(query, 0):
                found[query, split] = held.groups.centred(products(held.Z, theta)[held.row])
        return found


@dataclass(frozen=True, eq=False)
class _Slopes:
    """What pairs add to the gradient at some scores, and to the Hessian's diagonal."""

    scores: Mapping[Graph, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for graph, score in self.scores.items():
            query, split, _ = graph
            if held.slice is not None and held.slice.query == query:
                first, second = held.ends
                pull, curve = win_derivatives(score[first] - score[second], *held.wins(split))
                found["pull", graph] = _to_items(held, pull, -pull)
                found["degree", graph] = _to_items(held, curve, curve)
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

    def __init__(self, problem: Problem, held: Summing, means: Mapping[Graph, Floats]) -> None:
        super().__init__(problem)
        self.held, self.means = held, means
        self.graphs: tuple[Graph, ...] = getattr(problem, "graphs_of", ())
        self.prior = problem.node_groups.spread(np.array([prior for _, _, prior in self.graphs]))

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        self.scores = {graph: self.means[graph] + own for graph, own in self._cut(s).items()}
        found = self.held.sums(_Slopes(self.scores))
        pull, degree = (np.concatenate([found[name, graph] for graph in self.graphs]) for name in ("pull", "degree"))
        return pull - self.prior * s, degree + self.prior

    def image(self, xs: Floats) -> Floats:
        found = self.held.sums(_Images(self.scores, self._cut(xs)))
        return np.concatenate([found[graph] for graph in self.graphs]) + self.prior * xs

    def _cut(self, of_nodes: Floats) -> dict[Graph, Floats]:
        return dict(zip(self.graphs, np.split(of_nodes, self.problem.node_start[1:-1]), strict=True))


def fitted(
    held: Summing, means: Mapping[Graph, Floats], *, tolerance: float = 1e-10, max_iterations: int = 100
) -> dict[Graph, tuple[Floats, bool]]:
    """Bradley–Terry scores with the prior N(mean, 1/prior), as ``bradley_terry`` has them; whether a fit stopped early.

    Every graph is a fit of its own; all of them step together.
    """
    graphs = tuple(means)
    nodes = Ragged.of_sizes([len(means[graph]) for graph in graphs])
    none, no = np.zeros(0, np.int64), np.zeros(0)
    pairs = np.zeros(len(graphs) + 1, np.int64)
    problem = _Graphs(nodes.start, pairs, none, none, no, no, None, None, nodes.owner, 0.0, graphs_of=graphs)
    fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, held, means))
    scores = np.split(fit.score, nodes.start[1:-1])
    stopped = fit.status == Status.STOPPED
    return {graph: (means[graph] + scores[at], bool(stopped[at])) for at, graph in enumerate(graphs)}


def log_odds(held: Summing, parts: tuple[Part, ...]) -> dict[Part, tuple[Floats, bool]]:
    """The usual structure of comparisons, as ``average_log_odds`` has it."""
    found = held.sums(_LogOdds(parts))
    return {part: (found[part] / max(len(found[part]) - 1, 1), False) for part in parts}


@dataclass(frozen=True, eq=False)
class Scored:
    """Targets of a part of the judgments of a divided query, made before the equations."""

    value: Floats
    stopped: bool
    judgments: int

    @property
    def targets(self) -> Targets:
        """As ``mean_targets`` returns them of all judgments at once."""
        size = len(self.value)
        one, zero, weight = np.ones(1, np.int64), np.zeros(1, np.int64), np.array([1.0 / size])
        start = np.array([0, size])
        return Targets(start, self.value, np.zeros(size), weight, one, zero, one > 0, None, int(self.stopped))


def with_divided(sums: Sums, queries: Iterable[int], folds: Iterable[Split], reference: int) -> Sums:
    """Add divided queries to what is summed over queries, each of them held out by one of the folds."""
    for query, split in product(queries, folds):
        if own := sums.get(("divided", query, split)):
            apart, weight = own["lost"] - own["lost"][reference], own["weight"]
            more = {"queries": 1, "apart": apart, "products": np.outer(apart, apart)}
            more |= {"with weight": weight * apart, "weights": weight**2}
            sums = sums + Sums({(split, name): value for name, value in more.items()})
    return sums
