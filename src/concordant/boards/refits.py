"""One board's votes as a pair table, what can be taken from it, and the scores of what is left, refitted exactly.

The scores are those of Bradley–Terry with a normal prior, ties half a win each way, as ``rank`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from concordant.preferences.graphs import Batch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEP, ROUNDS = 1e-11, 500
"""Newton's method ends at a step below the first; the second is never met."""
NUMBERS = 4_000_000
"""Numbers in the matrices of refits that are done side by side."""


@dataclass(frozen=True, eq=False)
class Votes:
    """The pair table of one graph: W strength of wins of the first of each pair (ties half), N strength of all."""

    items: int
    first: Ints
    second: Ints
    wins: Floats
    total: Floats
    prior: float

    @cached_property
    def ends(self) -> csr_array:
        """+1 at the first, −1 at the second item of each pair; shape (pairs, items)."""
        pairs = len(self.first)
        sign = np.repeat([1.0, -1.0], pairs)
        place = (np.tile(np.arange(pairs), 2), np.concatenate([self.first, self.second]))
        return csr_array((sign, place), shape=(pairs, self.items))

    def between(self, of_items: Floats) -> Floats:
        """First less second of each pair; the last axis are items, then pairs."""
        return np.asarray(of_items[..., self.first] - of_items[..., self.second])

    def gradient(self, scores: Floats, wins: Floats, total: Floats) -> Floats:
        """That of the log-posterior, shape (fits, items)."""
        excess = wins - total * expit(self.between(scores))
        return np.asarray((self.ends.T @ excess.T).T) - self.prior * scores

    def curvature(self, scores: Floats, total: Floats) -> Floats:
        """Its negative second derivatives, shape (fits, items, items)."""
        p = expit(self.between(scores))
        weight = total * p * (1.0 - p)
        out = np.zeros((len(scores), self.items, self.items))
        out[:, self.first, self.second] = out[:, self.second, self.first] = -weight
        out[:, np.arange(self.items), np.arange(self.items)] = self.prior + np.asarray((abs(self.ends).T @ weight.T).T)
        return out

    def fit(self, wins: Floats, total: Floats, start: Floats | None = None) -> Floats:
        """Return the scores of pair tables side by side, shape (fits, items); ``start``: of one, to begin from.

        Newton's steps, each cut by log(1 + r)/r, r the most by which it moves a difference: then the posterior grows in
        each (Bach, Electronic Journal of Statistics 4, 2010, for logistic losses).
        """
        many = max(1, NUMBERS // (self.items * self.items))
        if len(wins) > many:
            cut = range(0, len(wins), many)
            return np.concatenate([self.fit(wins[i : i + many], total[i : i + many], start) for i in cut])
        scores = np.tile(np.zeros(self.items) if start is None else start, (len(wins), 1))
        for _ in range(ROUNDS):
            slope = self.gradient(scores, wins, total)
            step = np.linalg.solve(self.curvature(scores, total), slope[:, :, None])[:, :, 0]
            reach = np.maximum(np.ptp(step, axis=1, keepdims=True), 1e-300)
            scores += step * np.log1p(reach) / reach
            if float(reach.max(initial=0.0)) < STEP:
                break
        return scores


@dataclass(frozen=True, eq=False)
class Changes:
    """What can be taken from a pair table, whole: row u takes ``wins[u]`` of W and ``total[u]`` of N.

    Each up to ``most[u]`` times. A vote i ≻ j of weight w that is removed takes (w, w) from its pair where i stands
    first, one that is flipped (w, 0), one that is added −(w, w). A cluster takes what all its votes do.
    """

    wins: csr_array
    total: csr_array
    most: Floats

    def after(self, votes: Votes, times: Floats) -> tuple[Floats, Floats]:
        """W and N without what is taken; ``times`` of shape (fits, units)."""
        return (
            votes.wins - np.asarray((self.wins.T @ times.T).T),
            votes.total - np.asarray((self.total.T @ times.T).T),
        )

    def influence(self, votes: Votes, scores: Floats, wanted: Floats) -> Floats:
        """How much taking one of each lowers a combination of the scores, to first order; ``wanted``: H⁻¹ of it."""
        between = votes.between(wanted)
        return np.asarray(self.wins @ between - self.total @ (between * expit(votes.between(scores))))


def votes_of(batch: Batch, prior: float, whole: bool) -> Votes:
    """Return the votes of a batch of one graph; ``whole``: with a row for every pair, judged or not."""
    graphs, size = batch.graphs, len(batch.item)
    first, second, wins, total = graphs.first, graphs.second, graphs.above, graphs.above + graphs.below
    if whole:
        place = first * size + second
        first, second = np.triu_indices(size, 1)
        key = first * size + second
        wins, total = (
            np.bincount(np.searchsorted(key, place), column, len(key)).astype(np.float64) for column in (wins, total)
        )
    return Votes(size, first.astype(np.int64), second.astype(np.int64), wins, total, prior)


def units_of(batch: Batch, votes: Votes, by: Ints | None = None) -> tuple[csr_array, csr_array, csr_array, Ints]:
    """Return each distinct judgment's (or each cluster's) own pair table, and how often it is there.

    ``by``: the cluster of each distinct judgment of the preferences. Wins of the first, losses of it (ties half), all;
    shape (units, pairs).
    """
    edges, size = batch.edges, votes.items
    low, high = np.minimum(edges.winner, edges.loser), np.maximum(edges.winner, edges.loser)
    pair = np.searchsorted(votes.first * size + votes.second, low * size + high)
    share = np.where(edges.tie, 0.5, (edges.winner < edges.loser).astype(np.float64))
    strength, holder = edges.strength, edges.holder
    times = batch.multiplicity
    if by is not None:
        strength = strength * times[holder]
        holder = by[batch.judgment[holder]]
        times = np.ones(int(by.max(initial=-1)) + 1, np.int64)
    shape = (len(times), len(votes.first))
    made = [
        csr_array((column, (holder, pair)), shape=shape)
        for column in (strength * share, strength * (1.0 - share), strength)
    ]
    for one in made:
        one.sum_duplicates()
    return made[0], made[1], made[2], times
