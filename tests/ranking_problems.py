"""Small problems whose truth is known, for the tests of rankers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.learning.features.matrix import Features
from concordant.learning.rankers.judged import Judged
from concordant.preferences.preferences import Preferences


@dataclass
class Problem:
    """Features of the items of queries of uneven length, true scores, comparisons drawn as in AoS (26)."""

    X: NDArray[np.float64]
    query: NDArray[np.object_]
    item: NDArray[np.object_]
    truth: NDArray[np.float64]
    winner: NDArray[np.int64]
    loser: NDArray[np.int64]

    @property
    def prefs(self) -> Preferences:
        return Preferences.from_comparisons(self.item[self.winner], self.item[self.loser], self.query[self.winner])

    @property
    def features(self) -> Features:
        return Features.of(self.X, self.item, self.query)

    @property
    def judged(self) -> Judged:
        return Judged.of(self.prefs, item=self.item, query=self.query)


def bradley_terry_problem(
    queries: int = 12, comparisons: int = 60, *, width: int = 3, seed: int = 0, noise: float = 0.0, scale: float = 1.0
) -> Problem:
    """Items i of query q with x ~ N(0, I), score scale · x'w (and noise); i beats j with probability σ(s_i − s_j)."""
    draw = np.random.default_rng(seed)
    size = draw.integers(4, 9, queries)
    query = np.repeat(np.arange(queries), size)
    X = draw.normal(size=(len(query), width)) * (1.0 + np.arange(width)) + 3.0
    truth = scale * X @ np.linspace(1.0, -1.0, width) + noise * draw.normal(size=len(query))
    winners, losers = [], []
    for q in range(queries):
        rows = np.flatnonzero(query == q)
        first = draw.integers(len(rows), size=comparisons)
        second = (first + 1 + draw.integers(len(rows) - 1, size=comparisons)) % len(rows)
        first, second = rows[first], rows[second]
        wins = draw.random(comparisons) < 1 / (1 + np.exp(truth[second] - truth[first]))
        winners.append(np.where(wins, first, second))
        losers.append(np.where(wins, second, first))
    local = np.concatenate([np.arange(n) for n in size])
    return Problem(
        X,
        np.array([f"q{q:02d}" for q in query], object),
        np.array([f"i{i:02d}" for i in local], object),
        truth,
        np.concatenate(winners),
        np.concatenate(losers),
    )
