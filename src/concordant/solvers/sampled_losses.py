"""Losses of one random sample, and their gradients: what a stochastic method sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit

from concordant.graphs import Batch
from concordant.preferences import Preferences
from concordant.solvers.least_squares import NormalEquations
from concordant.solvers.sampled_gains import SampledGains

__all__ = ["Logistic", "Regression"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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

    def samples(self, number: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield so many pairs of features and gains, each of one query."""
        start, k = self.gains.start, self.gains.order
        size = np.diff(start)
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
        start, most = self.gains.start, []
        trace = np.zeros(len(self.chance))
        for q in np.flatnonzero(self.chance):
            x = self._centred(start[q], start[q + 1])
            trace[q] = (x * x).sum() / max(len(x), 1)
        for q in np.argsort(-trace, kind="stable")[:LARGEST]:
            x = self._centred(start[q], start[q + 1])
            if len(x):
                inner = x @ x.T if len(x) < x.shape[1] else x.T @ x
                most.append(float(scipy.linalg.eigvalsh(inner)[-1]) / len(x))
        return max(most, default=0.0)

    @cached_property
    def smallest(self) -> float:
        """Smallest curvature of the risk."""
        start = self.gains.start
        weight = self.chance / np.maximum(np.diff(start), 1)
        gram = NormalEquations.of(self.Z, np.zeros(len(self.Z)), start, weight).gram
        return max(float(scipy.linalg.eigvalsh(gram)[0]), 0.0) if len(gram) else 0.0

    def _centred(self, begin: int, end: int) -> Floats:
        x = np.asarray(self.Z[begin:end], np.float64)
        return x - x.mean(axis=0) if len(x) else x


@dataclass(frozen=True, eq=False)
class Logistic:
    """φ = Σ strength log(1 + e^(α_loser − α_winner)) over the edges of one random judgment (AoS (29)); a tie is half an
    edge each way."""

    Z: NDArray[Any]
    cumulative: Ints
    """Judgments up to and with each distinct one, each as often as it was made."""
    start: Ints
    """Edges of distinct judgment j are start[j]:start[j + 1]."""
    winner: Ints
    loser: Ints
    strength: Floats

    @classmethod
    def of(cls, Z: NDArray[Any], prefs: Preferences) -> Logistic:
        """List the edges of every distinct judgment."""
        edges = Batch.whole(prefs).edges
        twice = np.concatenate((np.arange(len(edges.tie)), np.flatnonzero(edges.tie)))
        winner = np.concatenate((edges.winner, edges.loser[edges.tie]))
        loser = np.concatenate((edges.loser, edges.winner[edges.tie]))
        strength = np.where(edges.tie, 0.5 * edges.strength, edges.strength)[twice]
        holder = edges.holder[twice]
        order = np.argsort(holder, kind="stable")
        start = np.concatenate(([0], np.cumsum(np.bincount(holder, minlength=len(prefs.count)))))
        return cls(Z, np.cumsum(prefs.count, dtype=np.int64), start, winner[order], loser[order], strength[order])

    def samples(self, number: int, rng: np.random.Generator) -> Iterator[tuple[NDArray[Any], Floats]]:
        """Yield so many pairs of features (winner less loser) and strengths, each of one judgment."""
        for first in range(0, number, CHUNK // 8):
            card = rng.integers(self.cumulative[-1], size=min(CHUNK // 8, number - first))
            judgment = np.searchsorted(self.cumulative, card, side="right")
            for begin, end in zip(self.start[judgment].tolist(), self.start[judgment + 1].tolist(), strict=True):
                winner, loser = self.winner[begin:end], self.loser[begin:end]
                yield self.Z[winner] - self.Z[loser], self.strength[begin:end]

    def loss(self, theta: Floats, sample: tuple[NDArray[Any], Floats]) -> tuple[float, Floats]:
        """Loss and gradient of one sample."""
        d, strength = sample
        margin = d @ theta
        return float(strength @ np.logaddexp(0.0, -margin)), -(strength * expit(-margin)) @ d

    @cached_property
    def largest(self) -> float:
        """A bound on the largest curvature of a judgment: a quarter of its Σ strength ‖x_winner − x_loser‖²."""
        size = np.zeros(len(self.winner))
        block = max(1, (1 << 19) // max(self.Z.shape[1], 1))
        for begin in range(0, len(size), block):
            part = slice(begin, begin + block)
            size[part] = np.square(self.Z[self.winner[part]] - self.Z[self.loser[part]]).sum(axis=1, dtype=np.float64)
        total = np.concatenate(([0.0], np.cumsum(self.strength * size)))
        return 0.25 * float(np.diff(total[self.start]).max(initial=0.0))

    @property
    def smallest(self) -> float:
        """A lower bound on the curvature of the risk: none, log(1 + e^(−t)) being flat far out."""
        return 0.0
