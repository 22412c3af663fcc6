"""Gains of random subsets, one for each step of a stochastic method: a query with probability n̂_q/n, then k of its
judgments (AoS §6.1).

The regression loss of one random sample, and its gradient: what a stochastic method sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.learning.solvers.least_squares import NormalEquations, checked_matrix, checked_rows
from concordant.losses.expected_gains import GAINS, best_values
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.closed_forms import C0, pair_log_odds
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Gain = Callable[[Floats], Floats]
ZERO = 1e-9
"""A best value Z at or below this is 0: what is left of scores that cancel is rounding, not an order."""


def chances(prefs: Preferences) -> Floats:
    """n̂_q / n for each query."""
    return np.asarray(prefs.judgments / max(int(prefs.judgments.sum()), 1), np.float64)


def subsets_of_steps(
    prefs: Preferences, order: int, query: Ints, drawn: Ints, seed: int
) -> Iterator[tuple[Ints, Batch]]:
    """Yield steps and a batch that holds a k-subset for each of them, k the ``order``.

    ``query`` is the query of each step, ``drawn`` how many subsets each query is to give: as many as it has steps, or
    0 where they need none.
    """
    for number in np.unique(drawn[drawn > 0]):
        codes = np.flatnonzero(drawn == number)
        steps = np.flatnonzero(drawn[query] == number)
        steps = steps[np.argsort(query[steps], kind="stable")]  # the draws of a query stand together
        yield steps, Batch.subsets(prefs, order, int(number), seed=seed, queries=codes)


@dataclass(frozen=True, eq=False)
class SampledGains:
    """G(s)/Z(s) of the items of a query for random k-subsets of its judgments, s the structure of the subset.

    A query with at most k judgments has all of them as its one subset; its gains are computed once. Where Z(s) ≤ 0
    the gains are 0.
    """

    prefs: Preferences
    structure: str | Callable[..., Scores]
    options: Mapping[str, Any]
    order: int | None
    """k; None for all judgments."""
    gain: str | Gain
    normalise: bool
    at: int | None
    scale: float = 1.0
    """β of G(β s)."""

    def __post_init__(self) -> None:
        if isinstance(self.structure, str):
            find_structure(self.structure).check(self.prefs.kind, self.options)
        if isinstance(self.gain, str) and self.gain not in GAINS:
            raise UsageError(f"unknown gain {self.gain!r}; {did_you_mean(self.gain, GAINS)}")

    @property
    def queries(self) -> Ragged:
        """The items of each query, as in ``Batch.whole``."""
        return self.prefs.member_groups

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Queries whose one subset is all they have."""
        judgments = self.prefs.judgments
        return np.ones(len(judgments), bool) if self.order is None else judgments <= self.order

    @cached_property
    def whole(self) -> Floats:
        """Gains of the exact queries, 0 for the others; shape (items of all queries,)."""
        value, codes = np.zeros(self.queries.start[-1]), np.flatnonzero(self.exact)
        if len(codes):
            value[self.queries.spread(self.exact)] = self.gains(Batch.whole(self.prefs, codes))
        return value

    def draw(self, query: Ints, seed: int) -> Iterator[Floats]:
        """Yield, for each of the queries named in turn, the gains of a subset of its own."""
        times = np.bincount(query, minlength=len(self.exact))
        pool, place = self.whole, self.queries.start[query]
        parts, length = [pool], len(pool)
        for steps, batch in subsets_of_steps(self.prefs, self.order or 1, query, np.where(self.exact, 0, times), seed):
            parts.append(self.gains(batch))
            place[steps] = length + batch.node_start[:-1]
            length += len(parts[-1])
        pool = np.concatenate(parts)
        for begin, size in zip(place.tolist(), self.queries.sizes[query].tolist(), strict=True):
            yield pool[begin : begin + size]

    def gains(self, batch: Batch) -> Floats:
        """G(s)/Z(s) for every node of a batch."""
        scores = self.scale * self._scores(batch)
        gain = np.asarray(GAINS[self.gain](scores) if isinstance(self.gain, str) else self.gain(scores), np.float64)
        if not self.normalise:
            return gain
        best = best_values(gain[None], batch.node_start, self.at)[0]
        inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > ZERO)
        return np.asarray(gain * batch.node_groups.spread(inverse), np.float64)

    def _scores(self, batch: Batch) -> Floats:
        """Scores of all nodes; those of the default structure without the connectivity of every subset."""
        if self.structure != "log-odds":
            function = find_structure(self.structure) if isinstance(self.structure, str) else self.structure
            return function(batch, **self.options).value
        graphs = self._pairs(batch)
        odds = pair_log_odds(graphs, self.options.get("c0", C0))
        others = np.maximum(batch.sizes - 1, 1)
        return np.asarray(graphs.add_to_nodes(odds, -odds) / batch.node_groups.spread(others), np.float64)

    def _pairs(self, batch: Batch) -> Graphs:
        """The pair tables of a batch; the place of an item is looked up once, not for each subset."""
        if self._sides is None:
            return batch.graphs
        prefs, winner, loser = self._sides
        first, held = batch.node_start[batch.graph], batch.judgment
        mass = batch.multiplicity if prefs.weight is None else batch.multiplicity * prefs.weight[held]
        tie = None if prefs.tie is None else prefs.tie[held]
        return Graphs.from_edges(batch.node_start, first + winner[held], first + loser[held], mass, tie)

    @cached_property
    def _sides(self) -> tuple[Comparisons, Ints, Ints] | None:
        """Comparisons, and the place within their query of winner and loser of each distinct one."""
        if not isinstance(self.prefs, Comparisons) or self.prefs.share is not None:
            return None
        begin = self.queries.start[self.prefs.query]
        winner, loser = Batch.whole(self.prefs).sides(self.prefs)
        return self.prefs, winner - begin, loser - begin


class HasRow(Protocol):
    """What tells the row of the features of each item: an ``Alignment``."""

    @property
    def row(self) -> NDArray[np.int64]: ...


def _order(order: int | str | None) -> int | None:
    if order is None or order == "all":
        return None
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise UsageError(f"order must be 'all' or an integer of at least 1, not {order!r}")
    return int(order)


def _items(X: NDArray[Any], rows: NDArray[np.integer[Any]] | HasRow | None, prefs: Preferences) -> NDArray[Any]:
    """The features of the items of all queries, in the order of ``Batch.whole``; copied unless they are X itself."""
    X = checked_matrix(X)
    named = rows if rows is None or isinstance(rows, np.ndarray) else rows.row
    row = checked_rows(X, named, int(prefs.members[0][-1]))
    if row is None or (len(row) == len(X) and (row == np.arange(len(X))).all()):
        return np.ascontiguousarray(X)
    return X[row]


CHUNK = 1 << 21
"""Judgments and items of the subsets that are drawn at a time."""
LARGEST = 64
"""Queries whose curvature is computed, to find the largest."""


@dataclass(frozen=True, eq=False)
class Regression:
    """φ = 1/(2m) min_t Σ_j (x_j'θ + t − y_j)² with y the gains of a random subset of a random query (AoS (28))."""

    Z: NDArray[Any]
    """Features of the items of all queries, shape (items, features)."""
    gains: SampledGains
    chance: Floats
    """Probability of each query."""

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        rows: NDArray[np.integer[Any]] | HasRow | None,
        prefs: Preferences,
        *,
        structure: str | Callable[..., Scores] = "log-odds",
        options: Mapping[str, Any] | None = None,
        order: int | str | None = None,
        gain: str | Gain = "2^s-1",
        normalise: bool = True,
        at: int | None = None,
    ) -> Regression:
        """Take the options of ``mean_targets`` (``order`` k or 'all', the default).

        ``rows`` is the row of X of each item of ``Batch.whole(prefs)`` or an Alignment; None: in order. Errors:
        UsageError for options that are not known and when no judgment is there to draw.
        """
        if len(prefs) == 0:
            raise UsageError("there is no judgment to draw")
        gains = SampledGains(prefs, structure, options or {}, _order(order), gain, normalise, at)
        return cls(_items(X, rows, prefs), gains, chances(prefs))

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1])

    def samples(self, number: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield so many pairs of features and gains, each of one query."""
        start, k = self.gains.queries.start, self.gains.order
        size = self.gains.queries.sizes
        held = 0.0 if k is None else float(k)
        chunk = max(1, int(CHUNK / (held + self.chance @ size)))
        begins, ends = start[:-1].tolist(), start[1:].tolist()
        for first in range(0, number, chunk):
            seed = int(rng.integers(1 << 62))
            query = rng.choice(len(size), min(chunk, number - first), p=self.chance)
            for q, y in zip(query.tolist(), self.gains.draw(query, seed), strict=True):
                yield self.Z[begins[q] : ends[q]], y

    def loss(self, theta: Floats, sample: tuple[NDArray[Any], Floats]) -> tuple[float, Floats]:
        """Loss and gradient of one sample. Centring the residuals is centring features and gains."""
        x, y = sample
        residual = x @ theta.astype(x.dtype, copy=False) - y
        size = len(y)
        residual -= residual.sum() / size
        return float(residual @ residual) / (2 * size), (residual.astype(x.dtype, copy=False) @ x) / size

    @cached_property
    def largest(self) -> float:
        """Largest curvature of a sample, among the queries with the largest centred features."""
        start, most = self.gains.queries.start, []
        trace = np.zeros(len(self.chance))
        for q in np.flatnonzero(self.chance):
            x = self._centred(start[q], start[q + 1])
            trace[q] = (x * x).sum() / max(len(x), 1)
        for q in np.argsort(-trace, kind="stable")[:LARGEST]:
            x = self._centred(start[q], start[q + 1])
            if len(x):
                inner = x @ x.T if len(x) < x.shape[1] else x.T @ x
                most.append(float(np.linalg.eigvalsh(inner)[-1]) / len(x))
        return max(most, default=0.0)

    @cached_property
    def smallest(self) -> float:
        """Smallest curvature of the risk."""
        queries = self.gains.queries
        weight = self.chance / np.maximum(queries.sizes, 1)
        gram = NormalEquations.of(self.Z, np.zeros(len(self.Z)), queries.start, weight).gram
        return max(float(np.linalg.eigvalsh(gram)[0]), 0.0) if len(gram) else 0.0

    def _centred(self, begin: int, end: int) -> Floats:
        x = np.asarray(self.Z[begin:end], np.float64)
        return x - x.mean(axis=0) if len(x) else x
