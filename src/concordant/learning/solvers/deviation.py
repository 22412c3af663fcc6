"""How far an empirical surrogate risk (19) may be from its expectation (20), at once for all θ of a ball.

The U-statistic of a query with n̂ judgments is the mean, over all orders of them, of the mean over the m = ⌊n̂/k⌋
blocks of k that an order is cut into (Hoeffding 1963). So by Jensen's inequality E Ψ(sup |R̂ − E R̂|) is at most
E Ψ(sup |V − E V|) for convex increasing Ψ, V the risk of one such partition, whose blocks are independent. Call
these suprema S and S'. P(S > t) ≤ E(S − s)₊/(t − s) ≤ E(S' − s)₊/(t − s) for s < t, and the least t that brings
this to 0.05 is the least over s of s + E(S' − s)₊/0.05: the mean of the worst 5% of S' (its expected shortfall;
Rockafellar and Uryasev 2000). So that bounds the 95% quantile of S. The law of S' comes from multipliers: normal
weights on the blocks, each less the mean of its query, and on the queries, each less the mean of all, where queries
are drawn with the judgments.

A query that has no two blocks, and any with all its judgments aggregated, gives what it would without each of some
groups of its judgments instead (the jackknife, whose variance is at least the true one in the mean: Efron and Stein
1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from concordant.learning.solvers.sampled_edges import SampleGraphs
from concordant.losses.objective import Objective
from concordant.losses.pair_losses import PairLoss
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, label_keys

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCKS = 32
"""Blocks of a query that are looked at; the variance of the mean of more follows from theirs."""
GROUPS = 16
"""Groups of the judgments of a query that are left out in turn."""
CLIMBS = 4
"""Steps that are climbed from each start."""
CELLS = 1 << 22
"""Values of edges under different multipliers that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Structures that tell how the loss of each query varies, as graphs of one objective."""

    query: Ints
    """Query of each graph."""
    spread: Floats
    """A query's loss deviates like Σ_b spread_b (ξ_b − ξ̄) φ_b over its graphs b, ξ standard normal."""
    batches: list[Batch]
    """Where the graphs come from, in order."""

    @classmethod
    def of(cls, prefs: Preferences, order: int | None, *, seed: int, blocks: int = BLOCKS) -> Drawn:
        """Cut each query into blocks of ``order`` judgments, or leave out groups of them (None: all are aggregated)."""
        total = prefs.judgments
        k = int(total.max(initial=0)) if order is None else order
        fit = np.zeros(len(total), np.int64) if order is None else total // k
        kept = np.minimum(fit, blocks)
        batches, queries, spreads = [], [], []
        for number in np.unique(kept[kept >= 2]):
            codes = np.flatnonzero(kept == number)
            batch = Batch.subsets(prefs, k, int(number), seed=seed, partition=bool(number < blocks), queries=codes)
            batches.append(batch)
            queries.append(batch.query.astype(np.int64))
            spreads.append(1.0 / np.sqrt((number - 1.0) * fit[batch.query]))
        few = np.flatnonzero((kept < 2) & (total > 0))
        if len(few):
            batch = _without_groups(prefs, few, seed)
            size = np.bincount(batch.query, minlength=len(total))[batch.query]
            larger = np.ones(len(total)) if order is None else np.maximum(total / order, 1.0)
            batches.append(batch)
            queries.append(batch.query.astype(np.int64))
            spreads.append(np.sqrt((size - 1.0) / np.maximum(size, 1) * larger[batch.query]))
        return cls(np.concatenate(queries), np.concatenate(spreads), batches)


def _without_groups(prefs: Preferences, codes: Ints, seed: int) -> Batch:
    """Return for each query its judgments without each of up to GROUPS groups of them; all where there is only one."""
    batch = Batch.whole(prefs, codes)
    queries = batch.groups
    keys = label_keys(Labels(prefs.queries.take(codes)), seed)
    shares = deal(queries.start, batch.multiplicity, keys, GROUPS)
    some = np.array([queries.sums(share.astype(float)) for share in shares]) > 0
    some &= queries.sums(batch.multiplicity.astype(float)) > 1
    some[0] |= ~some.any(axis=0)
    graph, judgment, count = [], [], []
    for place, (hand, there) in enumerate(zip(shares, some, strict=True)):
        left = np.where(queries.spread(some.sum(axis=0) > 1), batch.multiplicity - hand, batch.multiplicity)
        held = np.flatnonzero(queries.spread(there) & (left > 0))
        graph.append(queries.owner[held] * GROUPS + place)
        judgment.append(batch.judgment[held])
        count.append(left[held])
    of, order = np.concatenate(graph), np.argsort(np.concatenate(graph), kind="stable")
    runs = Ragged.runs(of[order])
    query = batch.query[of[order][runs.first] // GROUPS]
    return Batch(prefs, query, runs.start, np.concatenate(judgment)[order], np.concatenate(count)[order])


@dataclass(frozen=True, eq=False)
class RiskProcess:
    """Σ_g a_g φ_g(θ) for weights a of graphs, many at a time: pairs of items that several graphs share stand once."""

    Z: Floats
    winner: Ints
    """Row of Z of each slot, a pair with its offset."""
    loser: Ints
    offset: Floats
    weight: sparse.csr_array
    """Weight of each slot in each graph."""
    pull: sparse.csr_array
    """Pull of the square on each row of Z in each graph; times the target; times the square of the target."""
    pulled: sparse.csr_array
    squared: sparse.csr_array
    phi: PairLoss

    @classmethod
    def of(cls, Z: Floats, start: Ints, drawn: Drawn, make: Callable[[Batch], Objective]) -> RiskProcess:
        """Make the edges of every graph; ``start`` says which rows of Z are the items of a query."""
        objectives = [make(batch) for batch in drawn.batches]
        parts = [
            SampleGraphs.of(objective, start[batch.query], start[batch.query + 1])
            for objective, batch in zip(objectives, drawn.batches, strict=True)
        ]
        graphs = sum(len(part) for part in parts)
        ends, pulls, before = [], [], 0
        for part in parts:
            edges, values = Ragged(part.start), Ragged(part.values)
            begin = edges.spread(part.first)
            ends.append((edges.owner + before, begin + part.winner, begin + part.loser, part.offset, part.weight))
            pulls.append((values.owner + before, values.spread(part.first) + values.place, part.pull, part.target))
            before += len(part)
        graph, winner, loser, offset, weight = (np.concatenate(column) for column in zip(*ends, strict=True))
        key = np.stack((winner, loser, offset.view(np.int64) if offset.any() else np.zeros_like(winner)))
        first, slot = rows_alike(*key)
        slots = key[:, first]
        owner, row, pull, target = (np.concatenate(column) for column in zip(*pulls, strict=True))
        times = [pull, pull * target, pull * target**2]
        flat, pulled, squared = (sparse.csr_array((value, (owner, row)), (graphs, len(Z))) for value in times)
        table = sparse.csr_array((weight, (graph, slot)), (graphs, slots.shape[1]))
        shift = slots[2].view(np.float64) if offset.any() else np.zeros(slots.shape[1])
        return cls(Z, slots[0], slots[1], shift, table, flat, pulled, squared, objectives[0].phi)

    def weighted(self, weights: Floats) -> Weighted:
        """Take weights of the graphs, shape (processes, graphs)."""
        tables = (self.weight, self.pull, self.pulled, self.squared)
        return Weighted(self, *(np.ascontiguousarray(table.T @ weights.T) for table in tables))

    def losses(self, theta: Floats) -> Floats:
        """φ of every graph at one θ."""
        alpha = self.Z @ theta
        of_edges = self.weight @ self.phi.value(alpha[self.winner] - alpha[self.loser] - self.offset)
        return np.asarray(of_edges + self.pull @ alpha**2 - 2.0 * (self.pulled @ alpha) + self.squared.sum(axis=1))

    def bounds(self, radius: float) -> tuple[float, float]:
        """Upper bounds, over ‖θ‖ ≤ radius and these graphs, of φ and of its slope in θ: B and L of Assumption E."""
        reach = np.linalg.norm(self.Z[self.winner] - self.Z[self.loser], axis=1)
        margin = -radius * reach - self.offset
        high = self.weight @ self.phi.value(margin)
        steep = self.weight @ (np.abs(self.phi.derivative(margin)) * reach)
        size = np.linalg.norm(self.Z, axis=1)
        wide = radius * size
        high += self.pull @ wide**2 + 2.0 * (abs(self.pulled) @ wide) + self.squared.sum(axis=1)
        steep += 2.0 * (self.pull @ (wide * size) + abs(self.pulled) @ size)
        return float(high.max(initial=0.0)), float(steep.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Weighted:
    """Processes with their weights on slots and rows, each of shape (…, processes)."""

    process: RiskProcess
    weight: Floats
    pull: Floats
    pulled: Floats
    squared: Floats

    def at(self, theta: Floats) -> tuple[Floats, Floats]:
        """Value of each process and its gradient at a θ of its own; theta of shape (features, processes)."""
        of = self.process
        alpha = of.Z @ theta
        gap = alpha[of.winner] - alpha[of.loser] - of.offset[:, None]
        value = np.einsum("ij,ij->j", self.weight, of.phi.value(gap)) + self.squared.sum(axis=0)
        value += np.einsum("ij,ij->j", self.pull, alpha**2) - 2.0 * np.einsum("ij,ij->j", self.pulled, alpha)
        slopes = 2.0 * (self.pull * alpha - self.pulled)
        slopes += self._ends @ (self.weight * of.phi.derivative(gap))
        return value, of.Z.T @ slopes

    @cached_property
    def _ends(self) -> sparse.csr_array:
        """+1 where a row wins a slot, −1 where it loses it."""
        of = self.process
        slot = np.arange(len(of.winner))
        one = np.ones(len(slot))
        shape = (len(of.Z), len(slot))
        places = np.concatenate((of.winner, of.loser)), np.concatenate((slot, slot))
        return sparse.csr_array((np.concatenate((one, -one)), places), shape)

    def most(self, radius: float) -> Floats:
        """Largest absolute value of each process over ‖θ‖ ≤ radius, found by climbing, to within some percent."""
        zero = np.zeros((self.process.Z.shape[1], self.weight.shape[1]))
        value, slope = self.at(zero)
        best = np.abs(value)
        for sign in (1.0, -1.0):
            for start in (slope, -slope):
                best = np.maximum(best, self._climbed(sign, _onto(start, radius), radius))
        return best

    def _climbed(self, sign: float, theta: Floats, radius: float) -> Floats:
        """Largest value, times the sign, on the way from θ: to where the slope points, or only half as far."""
        value, slope = self.at(theta)
        best = sign * value
        for _ in range(CLIMBS):
            there = _onto(sign * slope, radius)
            half = 0.5 * (theta + there)
            (far, slope), (near, other) = self.at(there), self.at(half)
            nearer = sign * near > sign * far
            theta, slope = np.where(nearer, half, there), np.where(nearer, other, slope)
            best = np.maximum(best, sign * np.where(nearer, near, far))
        return np.asarray(best, np.float64)


def _onto(direction: Floats, radius: float) -> Floats:
    """Return the points of the sphere in these directions."""
    length = np.linalg.norm(direction, axis=0)
    return direction * (radius / np.where(length > 0, length, 1.0))


def suprema(
    process: RiskProcess, drawn: Drawn, share: Floats, total: Ints, radius: float, *, replicates: int, seed: int,
    queries_drawn: bool = True,
) -> Floats:  # fmt: skip
    """Draw sup over ‖θ‖ ≤ radius of the deviation of the risk so many times, by multipliers; shape (replicates,).

    ``share`` is n̂_q/n and ``total`` n̂_q; with ``queries_drawn`` the query of each judgment is random, too.
    """
    rng = np.random.default_rng([seed, 4])
    found = []
    for number in _portions(replicates, max(len(process.winner), len(process.Z))):
        found.append(process.weighted(_weights(drawn, share, total, number, rng, queries_drawn)).most(radius))
    return np.concatenate(found)


def _portions(replicates: int, cells: int) -> Iterator[int]:
    most = max(1, CELLS // max(cells, 1))
    for begin in range(0, replicates, most):
        yield min(most, replicates - begin)


def _weights(
    drawn: Drawn, share: Floats, total: Ints, number: int, rng: np.random.Generator, queries_drawn: bool
) -> Floats:
    """Weights of the graphs under so many draws of the multipliers."""
    graphs = np.bincount(drawn.query, minlength=len(share))
    member = sparse.csr_array((np.ones(len(drawn.query)), (drawn.query, np.arange(len(drawn.query)))))
    noise = rng.normal(size=(number, len(drawn.query)))
    mean = (member @ noise.T).T / graphs[: member.shape[0]]
    weights = (noise - mean[:, drawn.query]) * (share[drawn.query] * drawn.spread)
    if queries_drawn:
        of_queries = rng.normal(size=(number, len(share))) * (share / np.sqrt(np.maximum(total, 1)))
        of_queries -= of_queries.sum(axis=1, keepdims=True) * share
        weights += (of_queries / np.maximum(graphs, 1))[:, drawn.query]
    return np.asarray(weights, np.float64)


def worst(values: Floats, share: float) -> float:
    """Return the mean of the largest ``share`` of the values: their expected shortfall.

    >>> worst(np.arange(100.0), 0.05)
    97.0
    """
    number = max(1, round(share * len(values)))
    return float(np.sort(values)[-number:].mean())
