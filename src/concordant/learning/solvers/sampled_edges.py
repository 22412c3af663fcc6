"""A surrogate on edges of one random sample, and its gradient: what the stochastic method (25) sees of any of them.

A sample is what a step draws: a query with probability n̂_q/n and k of its judgments, which the surrogate makes edges of
(AoS (18), (19)); a query with all its judgments (17); or, where nothing is aggregated (12), (13), a single judgment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError
from concordant.learning.solvers.sampled import CHUNK, LARGEST, subsets_of_steps
from concordant.losses.objective import Objective, Population
from concordant.losses.pair_losses import PairLoss, Penalty
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sample = tuple[int, int, Ints, Ints, Floats, Floats, Floats, Floats]
"""First and last item, then winner, loser (counted from the first item), weight and offset of each edge, then pull and
target of each item (of none where no value is penalised)."""
PILOT = 256
"""Subsets of judgments that are drawn to see how curved a sample is."""


@dataclass(frozen=True, eq=False)
class SampleGraphs:
    """Edges and penalised values of graphs of which each is one sample."""

    first: Ints
    """First item of each graph, as a row of Z."""
    last: Ints
    start: Ints
    """Edges of graph g are start[g]:start[g + 1]."""
    winner: Ints
    """Counted from the first item of the graph."""
    loser: Ints
    weight: Floats
    offset: Floats
    pull: Floats
    """Of each item of each graph in turn; empty where no value is penalised."""
    target: Floats
    values: Ints
    """Penalised values of graph g are values[g]:values[g + 1]."""

    @classmethod
    def of(cls, objective: Objective, first: Ints, last: Ints) -> Self:
        """Take the graphs of an objective; the items of graph g are the rows first[g]:last[g] of Z."""
        edges, graphs = objective.edges, len(objective)
        owner = objective.owner[edges.winner]
        sorter = np.argsort(owner, kind="stable")
        begin = edges.node_start[:-1][owner[sorter]]
        pulled = bool(edges.pull.any())
        return cls(
            first,
            last,
            Ragged.counted(owner, graphs).start,
            edges.winner[sorter] - begin,
            edges.loser[sorter] - begin,
            edges.weight[sorter],
            edges.offset[sorter],
            edges.pull if pulled else np.zeros(0),
            edges.pulled_to if pulled else np.zeros(0),
            edges.node_start if pulled else np.zeros(graphs + 1, np.int64),
        )

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def _ranges(self) -> list[tuple[int, int, int, int, int, int]]:
        ends = self.first, self.last, self.start[:-1], self.start[1:], self.values[:-1], self.values[1:]
        return list(zip(*(column.tolist() for column in ends), strict=True))

    def sample(self, graph: int) -> Sample:
        """Return one of the graphs."""
        first, last, begin, end, one, other = self._ranges[graph]
        edges, values = slice(begin, end), slice(one, other)
        ends = self.winner[edges], self.loser[edges], self.weight[edges], self.offset[edges]
        return first, last, *ends, self.pull[values], self.target[values]

    def traces(self, Z: NDArray[Any], bend: float, pulled: float) -> Floats:
        """Bound the largest curvature of each graph by its trace: ``bend`` Σ w ‖x_i − x_j‖² + ``pulled`` Σ ν ‖x_i‖²."""
        most = max(1, (1 << 19) // max(Z.shape[1], 1))
        size = np.zeros(len(self.winner))
        begin = Ragged(self.start).spread(self.first)
        for a in range(0, len(size), most):
            part = slice(a, a + most)
            d = Z[begin[part] + self.winner[part]] - Z[begin[part] + self.loser[part]]
            size[part] = bend * self.weight[part] * np.square(d).sum(axis=1, dtype=np.float64)
        total = Ragged(self.start).sums(size)
        if not len(self.pull):
            return total
        values = Ragged(self.values)
        square = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)[values.spread(self.first) + values.place]
        return total + values.sums(pulled * self.pull * square)

    def norm(self, Z: NDArray[Any], graph: int, bend: float, pulled: float) -> float:
        """Return the largest eigenvalue of ``bend`` Σ w d dᵀ + ``pulled`` Σ ν x xᵀ of one graph."""
        first, last, winner, loser, weight, _, pull, _ = self.sample(graph)
        x = np.asarray(Z[first:last], np.float64)
        size, share = last - first, bend * weight
        laplacian = np.zeros((size, size))
        np.add.at(laplacian, (winner, loser), -share)
        laplacian += laplacian.T
        laplacian[np.diag_indices(size)] -= laplacian.sum(axis=1)
        if len(pull):
            laplacian[np.diag_indices(size)] += pulled * pull
        return float(np.linalg.eigvalsh(x.T @ laplacian @ x)[-1]) if x.size else 0.0


@dataclass(frozen=True, eq=False)
class EdgeSamples:
    """φ = Σ_e w_e φ(α_i − α_j − h_e) + Σ_i ν_i r(α_i − t_i) of random samples, α = Zθ (AoS (25) of (12), (13), (18)).

    Errors: UsageError for a φ without bounded curvature and no ball to bound it, and where nothing can be drawn.
    """

    Z: NDArray[Any]
    """Features of the items of all queries, shape (items, features)."""
    phi: PairLoss
    penalty: Penalty
    chance: Floats
    """Probability of each unit that may be drawn: a query, or a judgment."""
    known: SampleGraphs
    """The graph of each unit with all its judgments."""
    radius: float = np.inf
    """‖θ‖ is at most this."""
    subset: Callable[[Ints, int], Iterator[tuple[Ints, SampleGraphs]]] | None = None
    """Units and a seed ↦ steps and a graph for each of them, for the units that have more than k judgments."""
    order: int = 0
    """k, where subsets are drawn."""

    def __post_init__(self) -> None:
        if not self.chance.sum() > 0:
            raise UsageError("there is no judgment to draw")
        if self.phi.smooth and not self.phi.bounded_curvature and not np.isfinite(self.radius):
            raise UsageError(
                f"the {self.phi.name} function has gradients and curvature without bound, so no step is short enough: ",
                Setting("radius"),
                " bounds θ, or else take the exact solver",
            )

    @classmethod
    def of_graphs(cls, Z: NDArray[Any], objective: Objective, share: Floats, *, radius: float = np.inf) -> EdgeSamples:
        """Draw graphs of an objective, whose nodes are the rows of Z, with probability ``share``."""
        start = objective.edges.node_start
        known = SampleGraphs.of(objective, start[:-1], start[1:])
        return cls(Z, objective.phi, objective.penalty, share, known, radius)

    @classmethod
    def of_subsets(
        cls,
        Z: NDArray[Any],
        prefs: Preferences,
        order: int,
        make: Callable[[Batch], Objective],
        share: Floats,
        *,
        radius: float = np.inf,
    ) -> EdgeSamples:
        """Draw a query with probability ``share`` and k of its judgments, k the ``order``; ``make`` is the surrogate.

        Z holds the items of ``Batch.whole(prefs)``. A query with at most k judgments has all of them in every sample.
        """
        whole = prefs.judgments <= order
        start = prefs.member_groups.start

        def subset(query: Ints, seed: int) -> Iterator[tuple[Ints, SampleGraphs]]:
            times = np.where(whole, 0, np.bincount(query, minlength=len(whole)))
            for steps, batch in subsets_of_steps(prefs, order, query, times, seed):
                yield steps, SampleGraphs.of(make(batch), start[batch.query], start[batch.query + 1])

        found = cls.of_graphs(Z, make(Batch.whole(prefs)), share, radius=radius)
        return found if whole.all() else replace(found, subset=subset, order=order)

    @classmethod
    def of_judgments(
        cls,
        Z: NDArray[Any],
        prefs: Preferences,
        make: Callable[[Population], Objective],
        share: Floats,
        *,
        radius: float = np.inf,
    ) -> EdgeSamples:
        """Draw single judgments, those of query q with probability ``share[q]`` together.

        ``make`` is a surrogate that weighs each judgment's edges by themselves, (12) or (13).
        """
        edges = Batch.whole(prefs).edges
        twice = np.concatenate((np.arange(len(edges.tie)), np.flatnonzero(edges.tie)))  # half a win each way
        place = np.argsort(edges.holder[twice], kind="stable")
        order, second = twice[place], place >= len(edges.tie)
        winner = np.where(second, edges.loser[order], edges.winner[order])
        loser = np.where(second, edges.winner[order], edges.loser[order])
        strength = np.where(edges.tie, 0.5 * edges.strength, edges.strength)[order]
        start = prefs.member_groups.start
        objective = make(Population(start, winner, loser, strength, np.ones(len(order))))
        assert len(objective.edges.weight) == len(order)
        query = prefs.groups.owner
        first, last = start[query], start[query + 1]
        held = Ragged.counted(edges.holder[order], len(prefs.count)).start
        begin = start[query][edges.holder[order]]
        none = np.zeros(0)
        weight, offset = objective.edges.weight, objective.edges.offset
        no_values = np.zeros(len(first) + 1, np.int64)
        ends = winner - begin, loser - begin
        known = SampleGraphs(first, last, held, *ends, weight, offset, none, none, no_values)
        chance = prefs.count * (share / np.maximum(prefs.judgments, 1))[query]
        return cls(Z, objective.phi, objective.penalty, chance, known, radius)

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1])

    def samples(self, number: int, rng: np.random.Generator) -> Iterator[Sample]:
        """Yield so many samples."""
        upto = np.cumsum(self.chance)
        held = self.order + float(self.chance @ (np.diff(self.known.start) + self.known.last - self.known.first))
        chunk = max(1, int(CHUNK / max(held / upto[-1], 8.0)))
        for begin in range(0, number, chunk):
            seed, drawn = int(rng.integers(1 << 62)), rng.random(min(chunk, number - begin)) * upto[-1]
            unit = np.minimum(np.searchsorted(upto, drawn, side="right"), len(upto) - 1)
            for graphs, place in zip(*self._graphs(unit, seed), strict=True):
                yield graphs.sample(place)

    def _graphs(self, unit: Ints, seed: int) -> tuple[list[SampleGraphs], list[int]]:
        """Return the graph of each unit: what holds it, and its place there."""
        holders, place = [self.known] * len(unit), unit.copy()
        if self.subset is not None:
            for steps, graphs in self.subset(unit, seed):
                place[steps] = np.arange(len(steps))
                for step in steps.tolist():
                    holders[step] = graphs
        return holders, place.tolist()

    def loss(self, theta: Floats, sample: Sample) -> tuple[float, Floats]:
        """Loss and gradient of one sample."""
        first, last, winner, loser, weight, offset, pull, target = sample
        if len(winner) < last - first and not len(pull):
            d = self.Z[first + winner] - self.Z[first + loser]
            gap = d @ theta - offset
            return float(weight @ self.phi.value(gap)), (weight * self.phi.derivative(gap)) @ d
        x = self.Z[first:last]
        alpha = x @ theta
        value, slopes = 0.0, np.zeros(last - first)
        if len(winner):
            gap = alpha[winner] - alpha[loser] - offset
            slope = weight * self.phi.derivative(gap)
            value = float(weight @ self.phi.value(gap))
            slopes += np.bincount(winner, slope, last - first)
            slopes -= np.bincount(loser, slope, last - first)
        if len(pull):
            value += float(pull @ self.penalty.value(alpha - target))
            slopes += pull * self.penalty.derivative(alpha - target)
        return value, slopes @ x

    @cached_property
    def largest(self) -> float:
        """Largest curvature of a sample: of all that are known and, where subsets are drawn, of PILOT of them.

        Of φ with kinks the slope changes by as much as if the curvature were 1 over a margin of 1. Where the curvature
        of φ has no bound it is that at 0: the ball bounds the gradients.
        """
        bend = self._bend()
        pulled = float(self.penalty.second(np.zeros(1))[0])
        pools = [(self.known, np.flatnonzero(self.chance))]
        if self.subset is not None:
            unit = np.random.default_rng(0).choice(len(self.chance), PILOT, p=self.chance / self.chance.sum())
            pools += [(graphs, np.arange(len(graphs))) for _, graphs in self.subset(unit, 0)]
        most = 0.0
        for graphs, able in pools:
            trace = graphs.traces(self.Z, bend, pulled)[able]
            for place in np.argsort(-trace, kind="stable")[:LARGEST]:
                if trace[place] > most:  # the norm is at most the trace
                    most = max(most, graphs.norm(self.Z, int(able[place]), bend, pulled))
        return most

    def _bend(self) -> float:
        """Largest second derivative of φ; that at 0 where there is none, and the ball bounds the gradients instead."""
        if self.phi.piecewise_linear:
            return 1.0
        return self.phi.curvature_bound if self.phi.bounded_curvature else float(self.phi.second(np.zeros(1))[0])

    @cached_property
    def smallest(self) -> float:
        """A lower bound on the curvature of the mean: that of the penalised values, since φ may be flat far out."""
        if not len(self.known.pull):
            return 0.0
        values = Ragged(self.known.values)
        of_graphs = self.chance / self.chance.sum() * float(self.penalty.second(np.zeros(1))[0])
        x = self.Z[values.spread(self.known.first) + values.place]
        gram = (x * (self.known.pull * values.spread(of_graphs))[:, None]).T @ x
        return max(float(np.linalg.eigvalsh(gram)[0]), 0.0) if len(gram) else 0.0
