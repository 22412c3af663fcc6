"""Misranked pairs by distance: from these counts the abstention loss of every γ and every cost follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairProfile", "profile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 64
"""Rows whose distances to all later ones are computed at once."""


@dataclass(frozen=True, eq=False)
class PairProfile:
    """Ordered pairs of points with different labels, counted by their distance, a whole number."""

    pairs: Ints
    """``pairs[d]``: pairs at distance d."""
    wrong: Ints
    """``wrong[d]``: those of them that are misranked; of a pair level in score one order is (sign(0) = +1)."""

    @cached_property
    def total(self) -> int:
        return int(self.pairs.sum())

    @property
    def error(self) -> float:
        """Misranking loss without abstention."""
        return float(self.wrong.sum()) / self.total

    def share(self, level: int) -> float:
        """ρ: share of the pairs at a distance of at most ``level``."""
        return float(self.pairs[: level + 1].sum()) / self.total

    def kept(self, level: int) -> float:
        """A: share of all pairs that are farther apart and misranked."""
        return float(self.wrong[level + 1 :].sum()) / self.total

    def near_error(self, level: int) -> float:
        """Share of the near pairs that are misranked; NaN where there are none."""
        near = int(self.pairs[: level + 1].sum())
        return float(self.wrong[: level + 1].sum()) / near if near else float("nan")

    def loss(self, level: int, cost: float) -> float:
        """Return the pairwise abstention loss A + c·ρ."""
        return self.kept(level) + cost * self.share(level)

    def level_of(self, share: float) -> int:
        """Return the largest distance within which at most ``share`` of the pairs lie; −1 where there is none."""
        return int(np.searchsorted(np.cumsum(self.pairs), share * self.total, side="right")) - 1


def profile(whole: Ints, label: Ints, score: Floats, norm: str) -> PairProfile:
    """Count the pairs of points with whole coordinates (points, features) by ℓ∞ distance or squared ℓ2 distance.

    >>> found = profile(np.array([[0], [1], [3]]), np.array([0, 1, 1]), np.array([1.0, 0.0, 2.0]), "inf")
    >>> found.pairs.tolist(), found.wrong.tolist(), found.error
    ([0, 2, 0, 2], [0, 2, 0, 0], 0.5)
    """
    spread = np.ptp(whole, axis=0)
    near_zero = (whole - whole.min(axis=0)).astype(np.int64 if spread.max(initial=0) >= 1 << 15 else np.int16)
    squares = (whole**2).sum(axis=1)
    most = int(spread.max()) if norm == "inf" else int((spread**2).sum())
    pairs, wrong = np.zeros((2, most + 1), np.int64)
    for begin in range(0, len(whole), BLOCK):
        here = slice(begin, begin + BLOCK)
        if norm == "inf":
            distance = np.abs(near_zero[here, None, :] - near_zero[None, begin:, :]).max(axis=2)
        else:
            distance = squares[here, None] + squares[None, begin:] - 2 * (whole[here] @ whole[begin:].T)
        order = np.sign(label[None, begin:] - label[here, None]) * np.sign(score[None, begin:] - score[here, None])
        row, column = np.indices(distance.shape)
        counts = (label[None, begin:] != label[here, None]) & (column > row)  # each unordered pair once
        pairs += 2 * np.bincount(distance[counts], minlength=most + 1)
        for twice in (order[counts] < 0, order[counts] <= 0):
            wrong += np.bincount(distance[counts][twice], minlength=most + 1)
    return PairProfile(pairs, wrong)
