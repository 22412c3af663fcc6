"""Judgments of a share, added up for each pair of items and each value of the covariates, and what is asked of them.

Gradients and second derivatives of scores and of coefficients beside them are sums over judgments, wherever these lie.
Ordered outcomes with thresholds are comparisons in which a threshold is the coefficient of a covariate
(``ranking.cumulative``), once it is known which outcomes the query has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, hstack

from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.shares import Cells, Held, Pairs, Share, Tally, Whole, among, known_of, taken
from concordant.apps.spark.splitting import LISTS
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.ranking.cumulative import Graded, Outcomes
from concordant.ranking.curvature import laplacian
from concordant.ranking.newton import System
from concordant.ranking.problem import Problem

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest of some numbers; of parts the larger ones."""

    values: Floats

    def __add__(self, other: Largest) -> Largest:
        return Largest(np.maximum(self.values, other.values))


@dataclass(frozen=True, eq=False)
class Point:
    """Scores, and coefficients of the covariates over ``scale`` (then log ν), at which derivatives are asked for."""

    score: Floats
    extra: Floats
    scale: Floats
    davidson: bool


class Beside(Share):
    """A share whose likelihood has coefficients beside the scores."""

    def derivatives(self, point: Point, whole: bool) -> Sums:
        """First and second derivatives at a point: ``pull`` and ``lean`` of the log-likelihood by scores and by
        coefficients, of its negative ``border`` by both, ``corner`` by coefficients, ``degree`` on the diagonal of the
        scores and, where ``whole``, all of these as ``cells``.
        """
        raise NotImplementedError

    def bent(self, point: Point | None, along: Floats) -> Floats:
        """The scores' second derivatives at a point, without one the Laplacian with weights of 1, times a vector."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ValuedPairs(Beside):
    """The judgments of a share, added up for each pair and each value of the covariates."""

    graphs: Graphs
    code: NDArray[np.int32]
    """Of each of its nodes."""
    plain: bool
    """Whether each judgment is one win."""
    mutual: bool
    """Whether two items won against each other, with thresholds the strongest wins."""

    @classmethod
    def of(cls, prefs: Preferences, names: tuple[str, ...] | None = None, seen: Outcomes | None = None) -> Self:
        """The judgments of one query, whoever made them; ``names``: of the covariates that are used, None all; with the
        outcomes of all of the query as comparisons with thresholds.
        """
        batch, names = Batch.whole(prefs), prefs.covariate_names if names is None else names
        graphs, mutual = _valued(batch, names) if seen is None else _graded(batch, names, seen)
        plain = isinstance(prefs, Comparisons) and not prefs.weighted and not prefs.tied
        return cls(*known_of(prefs, batch), graphs, batch.item.astype(np.int32), plain, mutual)

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"code": own[self.code]}

    @property
    def pairs(self) -> Pairs:
        """Its pairs, whatever the covariates."""
        graphs = self.graphs
        held = self.queries, None, self.touched, self.judgments
        return Pairs(*held, self.code[graphs.first], self.code[graphs.second], graphs.above, graphs.below)

    def links(self) -> tuple[NDArray[Any], Flags, Flags]:
        return self.pairs.links()

    def between(self, block: NDArray[np.int32]) -> Any:
        return self.pairs.between(block)

    def inner(self, block: NDArray[np.int32]) -> ValuedPairs:
        graphs, within = self.graphs, block[self.code]
        own = np.flatnonzero(within[graphs.first] == within[graphs.second])
        columns = {name: getattr(graphs, name)[own] for name in ("first", "second", "wins", "losses", "ties")}
        z = None if graphs.covariates is None else graphs.covariates[own]
        return replace(self, graphs=replace(graphs, pair_start=np.array([0, len(own)]), covariates=z, **columns))

    def system(self, point: Point) -> System:
        """The derivatives of its likelihood at a point."""
        graphs, davidson = self.graphs, point.davidson
        z = None if graphs.covariates is None or not len(point.scale) else graphs.covariates / point.scale
        above, below = (graphs.wins, graphs.losses) if davidson else (graphs.above, graphs.below)
        ties, together = graphs.ties if davidson else None, np.zeros(graphs.nodes, np.int64)
        ends = graphs.node_start, graphs.pair_start, graphs.first, graphs.second
        problem = Problem(*ends, above, below, ties, z, together, 0.0)
        found = System(problem)
        found.evaluate(point.score[self.code], point.extra[None, :])
        return found

    def spread(self, of_nodes: Floats) -> Floats:
        """Values of its nodes as ones of all items of the query."""
        found = np.zeros((len(self.touched), *of_nodes.shape[1:]))
        found[self.code] = of_nodes
        return found

    def derivatives(self, point: Point, whole: bool) -> Sums:
        at, graphs = self.system(point), self.graphs
        found = Sums(pull=self.spread(-at.slope_s), lean=-at.slope_b[0], border=self.spread(at.border))
        found |= {"degree": self.spread(graphs.add_to_nodes(at.curve, at.curve)), "corner": at.corner[0]}
        return Sums(found | ({"cells": self.cells(at.curve)} if whole else {}))

    def bent(self, point: Point | None, along: Floats) -> Floats:
        graphs, x = self.graphs, along[self.code]
        curve = np.ones(len(graphs.first)) if point is None else self.system(point).curve
        bent = curve * (x[graphs.first] - x[graphs.second])
        return self.spread(graphs.add_to_nodes(bent, -bent))

    def cells(self, weight: Floats) -> Cells:
        """The Laplacian of its pairs with some weights."""
        return Cells(among(laplacian(self.graphs, weight), self.code, len(self.touched))).checked()


@dataclass(frozen=True)
class Valued:
    """What makes shares of the covariates that are used."""

    names: tuple[str, ...]
    seen: Outcomes | None = None

    def of(self, prefs: Preferences) -> ValuedPairs:
        """The share of some judgments."""
        return ValuedPairs.of(prefs, self.names, self.seen)


def _valued(batch: Batch, names: tuple[str, ...]) -> tuple[Graphs, bool]:
    graphs = Graphs.of(batch, covariates=len(names) > 0)
    if names and not len(graphs.first):  # a share of what a fold leaves may have none
        graphs = replace(graphs, covariates=np.zeros((0, len(names))))
    return graphs, bool(((graphs.wins > 0) & (graphs.losses > 0)).any())


def _graded(batch: Batch, names: tuple[str, ...], seen: Outcomes) -> tuple[Graphs, bool]:
    graded = Graded.of(batch, names, seen)
    columns = [*range(len(names)), *(len(names) + np.flatnonzero(graded.free[0]))]
    z = np.zeros((0, len(columns))) if graded.graphs.covariates is None else graded.graphs.covariates[:, columns]
    return replace(graded.graphs, covariates=z if columns else None), bool(graded.mutual.any())


def outcomes_of(prefs: Preferences) -> Sums:
    """How often each strength of a win was seen, 0 for ties. Errors: as of ``levels_of``."""
    batch = Batch.whole(prefs)
    graded = Graded.of(batch)
    strength, times = np.append(0, graded.levels), graded.counts.sum(axis=0)
    there = times > 0
    return Sums(outcomes=Tally.of(strength[there].astype(np.int64), times[there]))


def outcomes_of_share(share: Whole) -> Sums:
    """The same of a share that has its judgments as they are."""
    return outcomes_of(share.prefs)


def seen_outcomes(found: Tally) -> Outcomes:
    """What ``outcomes_of`` of all judgments of a query says."""
    none = np.zeros(0, np.int64)
    key, times = (none, np.zeros(0)) if found.key is None else (found.key, np.asarray(found.columns[0], np.float64))
    return Outcomes.of_one(key, times)


@dataclass(frozen=True, eq=False)
class Valuing:
    """Shares that have their judgments as they are become ones of comparisons with thresholds."""

    items: Labels
    names: tuple[str, ...]
    seen: Outcomes

    def __call__(self, share: Share) -> Share:
        if not isinstance(share, Whole):
            raise TypeError("a share has not kept its judgments")
        return ValuedPairs.of(share.prefs, self.names, self.seen).coded(self.items)


@dataclass(frozen=True, eq=False)
class Rises:
    """How the margins of comparisons with thresholds go, once each: who won, who lost, covariates, then thresholds.

    Shape (rows, 2 + coefficients); those of parts are put together, up to ``LISTS``, of more nothing is kept.
    """

    rows: Floats | None

    @classmethod
    def of(cls, share: ValuedPairs) -> Sums:
        """Those of a share."""
        graphs = share.graphs
        z = np.zeros((len(graphs.first), 0)) if graphs.covariates is None else graphs.covariates
        first, second = (share.code[side].astype(np.float64) for side in (graphs.first, graphs.second))
        above, below = graphs.wins > 0, graphs.losses > 0
        ahead, after = np.column_stack([first, second, z])[above], np.column_stack([second, first, -z])[below]
        return Sums(rises=cls(np.concatenate([ahead, after])).distinct())

    def __add__(self, other: Rises) -> Rises:
        if self.rows is None or other.rows is None:
            return Rises(None)
        return Rises(np.concatenate([self.rows, other.rows])).distinct()

    def distinct(self) -> Rises:
        """Equal ones once."""
        rows = None if self.rows is None else np.unique(self.rows + 0.0, axis=0)
        return Rises(rows if rows is not None and len(rows) <= LISTS else None)

    def mutual(self, size: int) -> bool:
        """Whether two items had the strongest win each way, that below which the last threshold lies."""
        if self.rows is None:
            return False
        ends = self.rows[self.rows[:, -1] == -1, :2].astype(np.int64)
        return bool(np.isin(ends @ [size, 1], ends @ [1, size]).any())

    def matrix(self, size: int) -> csr_array:
        """A row of each, for the items and the coefficients."""
        rows = np.zeros((0, 2)) if self.rows is None else self.rows
        place, ends = np.tile(np.arange(len(rows)), 2), rows[:, :2].T.astype(np.int64).ravel()
        sides = np.repeat([1.0, -1.0], len(rows))
        return csr_array(hstack([coo_array((sides, (place, ends)), shape=(len(rows), size)), rows[:, 2:]]))


def facts_of_share(share: ValuedPairs) -> Sums:
    """How large covariates are, how far apart strengths, and which outcomes there are."""
    graphs = share.graphs
    sides = np.concatenate([graphs.above, graphs.below])
    sides = sides[sides > 0]
    z = np.zeros((0, 0)) if graphs.covariates is None else graphs.covariates
    ends = Largest(np.array([-sides.min(initial=np.inf), sides.max(initial=0.0), 1.0 - share.plain]))
    return Sums(
        size=Largest(np.abs(z).max(axis=0, initial=0.0)), ends=ends, mutual=int(share.mutual),
        ties=float(graphs.ties.sum()), others=float((graphs.wins + graphs.losses).sum()),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class At:
    """What ``Beside.derivatives`` finds at a point."""

    point: Point
    whole: bool

    def __call__(self, share: Beside) -> Sums:
        return share.derivatives(self.point, self.whole)


@dataclass(frozen=True, eq=False)
class Times:
    """The scores' second derivatives at a point, without one the Laplacian with weights of 1, times vectors."""

    point: Point | None
    along: Floats

    def __call__(self, share: Beside) -> Sums:
        return Sums(image=share.bent(self.point, self.along))


@dataclass(frozen=True, eq=False)
class Differences:
    """How covariates lie to the incidence B of pairs and items: BᵀB, its diagonal, and Bᵀz; or, less Bx, zᵀz."""

    scale: Floats
    x: Floats | None = None

    def __call__(self, share: ValuedPairs) -> Sums:
        graphs = share.graphs
        z = np.zeros((0, 0))
        if graphs.covariates is not None:
            z = graphs.covariates[:, : len(self.scale)] / self.scale
        if self.x is not None:
            x = self.x[share.code]
            left = z - (x[graphs.first] - x[graphs.second])
            return Sums(left=left.T @ left, size=(z**2).sum(axis=0))
        one = np.ones(len(z))
        found = Sums(degree=share.spread(graphs.add_to_nodes(one, one)))
        found["pull"] = share.spread(np.column_stack([graphs.add_to_nodes(column, -column) for column in z.T]))
        return Sums(found | {"cells": share.cells(one)})


@dataclass(frozen=True, eq=False)
class Within:
    """How often items won and lost within strong blocks."""

    block: NDArray[np.int32]

    def __call__(self, share: ValuedPairs) -> Sums:
        graphs, block = share.graphs, self.block[share.code]
        inner = block[graphs.first] == block[graphs.second]
        wins, losses = graphs.wins * inner, graphs.losses * inner
        return Sums(
            won=share.spread(graphs.add_to_nodes(wins, losses)), lost=share.spread(graphs.add_to_nodes(losses, wins))
        )


@dataclass(frozen=True, eq=False)
class Touching:
    """The judgments of some items, with who made them: by that of several columns."""

    items: Labels
    some: Flags
    way: int

    def __call__(self, prefs: Comparisons) -> Sums:
        some = self.some[self.items.codes_of(prefs.items.values)]
        rows = np.flatnonzero(some[prefs.winner] | some[prefs.loser])
        return Sums(held=Held(taken(prefs, rows, self.way), LISTS).checked())
