"""Gains of random subsets, one for each step of a stochastic method: a query with probability n̂_q/n, then k of its
judgments (AoS §6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.graphs import Batch, Graphs
from concordant.preferences import Preferences
from concordant.structures.log_odds import C0, pair_log_odds
from concordant.structures.registry import structure as find_structure
from concordant.structures.scores import Scores
from concordant.surrogates.gains import GAINS, best_values

__all__ = ["SampledGains", "chances"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Gain = Callable[[Floats], Floats]
ZERO = 1e-9
"""A best value Z at or below this is 0: what is left of scores that cancel is rounding, not an order."""


def chances(prefs: Preferences) -> Floats:
    """n̂_q / n for each query."""
    return np.asarray(prefs.judgments / max(int(prefs.judgments.sum()), 1), np.float64)


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

    def __post_init__(self) -> None:
        if isinstance(self.structure, str):
            find_structure(self.structure).check(self.prefs.kind, self.options)
        if isinstance(self.gain, str) and self.gain not in GAINS:
            raise UsageError(f"unknown gain {self.gain!r}; {did_you_mean(self.gain, GAINS)}")

    @cached_property
    def start(self) -> Ints:
        """Items of query q are start[q]:start[q + 1], as in ``Batch.whole``."""
        return np.asarray(self.prefs.members[0], np.int64)

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Queries whose one subset is all they have."""
        judgments = self.prefs.judgments
        return np.ones(len(judgments), bool) if self.order is None else judgments <= self.order

    @cached_property
    def whole(self) -> Floats:
        """Gains of the exact queries, 0 for the others; shape (items of all queries,)."""
        value, codes = np.zeros(self.start[-1]), np.flatnonzero(self.exact)
        if len(codes):
            value[self.exact[np.repeat(np.arange(len(self.exact)), np.diff(self.start))]] = self.gains(
                Batch.whole(self.prefs, codes)
            )
        return value

    def draw(self, query: Ints, seed: int) -> Iterator[Floats]:
        """Yield, for each of the queries named in turn, the gains of a subset of its own."""
        times = np.bincount(query, minlength=len(self.exact))
        pool, place = self.whole, self.start[query]
        drawn = np.where(self.exact, 0, times)
        parts, length = [pool], len(pool)
        for number in np.unique(drawn[drawn > 0]):
            codes = np.flatnonzero(drawn == number)
            assert self.order is not None
            batch = Batch.subsets(self.prefs, self.order, int(number), seed=seed, queries=codes)
            parts.append(self.gains(batch))
            steps = np.flatnonzero(drawn[query] == number)
            steps = steps[np.argsort(query[steps], kind="stable")]  # the draws of a query stand together
            place[steps] = length + batch.node_start[:-1]
            length += len(parts[-1])
        pool = np.concatenate(parts)
        for begin, size in zip(place.tolist(), np.diff(self.start)[query].tolist(), strict=True):
            yield pool[begin : begin + size]

    def gains(self, batch: Batch) -> Floats:
        """G(s)/Z(s) for every node of a batch."""
        scores = self._scores(batch)
        gain = np.asarray(GAINS[self.gain](scores) if isinstance(self.gain, str) else self.gain(scores), np.float64)
        if not self.normalise:
            return gain
        best = best_values(gain[None], batch.node_start, self.at)[0]
        inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > ZERO)
        return np.asarray(gain * np.repeat(inverse, np.diff(batch.node_start)), np.float64)

    def _scores(self, batch: Batch) -> Floats:
        """Scores of all nodes; those of the default structure without the connectivity of every subset."""
        if self.structure != "log-odds":
            function = find_structure(self.structure) if isinstance(self.structure, str) else self.structure
            return function(batch, **self.options).value
        graphs = self._pairs(batch)
        odds = pair_log_odds(graphs, self.options.get("c0", C0))
        width = np.diff(batch.node_start)
        return np.asarray(graphs.add_to_nodes(odds, -odds) / np.repeat(np.maximum(width - 1, 1), width), np.float64)

    def _pairs(self, batch: Batch) -> Graphs:
        """The pair tables of a batch; the place of an item is looked up once, not for each subset."""
        prefs, held = self.prefs, batch.judgment
        if self._sides is None:
            return batch.graphs
        first = batch.node_start[batch.graph]
        mass = batch.multiplicity if prefs.weight is None else batch.multiplicity * prefs.weight[held]
        tie = None if prefs.tie is None else prefs.tie[held]
        return Graphs.from_edges(
            batch.node_start, first + self._sides[0][held], first + self._sides[1][held], mass, tie
        )

    @cached_property
    def _sides(self) -> tuple[Ints, Ints] | None:
        """Place within their query of winner and loser of each distinct comparison."""
        prefs = self.prefs
        if prefs.kind != "comparisons" or prefs.winner is None or prefs.loser is None:
            return None
        whole, query = Batch.whole(prefs), prefs.query.astype(np.int64)
        begin = self.start[query]
        return whole.node_of(query, prefs.winner) - begin, whole.node_of(query, prefs.loser) - begin
