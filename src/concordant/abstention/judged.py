"""Judged pairs of points, several judgments a pair, and what a scorer makes of the far ones among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.calibration import least_gap
from concordant.abstention.classes import ScorerClass, checked_gamma
from concordant.abstention.norms import conjugate
from concordant.abstention.pairs import ListedPairs, checked_scores, distance_blocks
from concordant.abstention.phis import phi_named
from concordant.errors import InputError, UsageError

__all__ = ["FarSums", "JudgedPairs", "far_sums"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Block = tuple[Ints, Ints, Floats, Floats, Floats]
"""One point, the other, judgments for the one, judgments for the other, their distance."""


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs (x, x') with the numbers of judgments y = +1 (x' above x) and y = −1; every pair of points stands once.

    >>> pairs = JudgedPairs.of(3, [0, 0, 1], [1, 1, 0], [1, -1, 1])
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.up.tolist(), pairs.down.tolist()
    ([0], [1], [1.0], [2.0])
    """

    items: int
    first: Ints
    second: Ints
    up: Floats
    down: Floats

    @classmethod
    def of(cls, items: int, first: ArrayLike, second: ArrayLike, y: ArrayLike) -> JudgedPairs:
        """Count the judgments y ∈ {−1, +1} of places of points; repeated pairs and both directions come together.

        Errors: UsageError for shapes, places that are not there and pairs of a point with itself; InputError for
        another y and no judgment at all.
        """
        sign = np.asarray(y)
        if not len(sign):
            raise InputError("there are no judged pairs")
        listed = ListedPairs.of(items, second, first, np.ones(sign.shape))
        wrong = int((~np.isin(sign, (-1, 1))).sum())
        if wrong:
            raise InputError(f"{wrong:,} of {len(sign):,} judgments are neither −1 nor +1")
        itself = int((listed.higher == listed.lower).sum())
        if itself:
            raise UsageError(f"{itself:,} of {len(sign):,} pairs are of a point with itself")
        low, high = np.minimum(listed.lower, listed.higher), np.maximum(listed.lower, listed.higher)
        up = (sign == 1) == (listed.higher == high)
        cell, place = np.unique(low * items + high, return_inverse=True)
        return cls(
            items,
            cell // items,
            cell % items,
            np.bincount(place, up, len(cell)).astype(np.float64),
            np.bincount(place, ~up, len(cell)).astype(np.float64),
        )

    def distances(self, X: Floats, norm: float | str) -> Floats:
        """Return ‖x − x'‖_p of each pair."""
        order, _ = conjugate(norm)
        step = 1 << 14
        parts = [
            np.linalg.norm(X[self.first[i : i + step]] - X[self.second[i : i + step]], order, axis=1)
            for i in range(0, len(self.first), step)
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class FarSums:
    """Means over judgments, those of near pairs counting 0: of a scorer, and of the best for each far pair alone."""

    judgments: float
    far: float
    """Share of the judgments that are of far pairs."""
    surrogate: float
    surrogate_least: float
    """Mean of the least conditional surrogate risk; for networks a lower bound of it."""
    misranked: float
    """Equal scores count one half, which is the mean over both orders of the pair with sign(0) = +1."""
    misranked_least: float
    outside: int
    """Far pairs whose scores differ by more than the class can make them."""
    stretch: float
    """Largest |h(x') − h(x)| of a far pair by the most that the class allows."""
    widest: float
    """Largest distance of a judged pair."""


def far_sums(
    scores: ArrayLike,
    X: Floats,
    source: JudgedPairs | ArrayLike,
    scorers: ScorerClass,
    *,
    phi: str,
    gamma: float,
    norm: float | str,
    k: float,
) -> FarSums:
    """Add up the judged pairs, or all pairs of different labels in blocks of bounded memory."""
    h = checked_scores(np.asarray(scores, np.float64), len(X))
    margin, threshold = phi_named(phi, k), checked_gamma(gamma)
    total = np.zeros(6)
    outside, stretch, widest = 0, 0.0, 0.0
    for one, other, wins, losses, distance in _blocks(X, source, norm):
        judged = wins + losses
        total[0] += judged.sum()
        widest = max(widest, float(distance.max(initial=0.0)))
        far = distance > threshold
        one, other = one[far], other[far]
        wins, losses, judged, distance = wins[far], losses[far], judged[far], distance[far]
        lead = h[one] - h[other]
        most = scorers.most(distance)
        total[1] += judged.sum()
        total[2] += wins @ margin.value(lead) + losses @ margin.value(-lead)
        total[3] += judged @ (1.0 - least_gap(np.abs(wins - losses) / judged, most, phi, k))
        total[4] += wins @ (lead < 0) + losses @ (lead > 0) + (judged @ (lead == 0)) / 2
        total[5] += np.minimum(wins, losses).sum()
        outside += int((np.abs(lead) > most * (1 + 1e-9)).sum())
        stretch = max(stretch, float((np.abs(lead) / most).max(initial=0.0)))
    far_share, loss, least, misranked, unavoidable = (float(part / total[0]) for part in total[1:])
    return FarSums(float(total[0]), far_share, loss, least, misranked, unavoidable, outside, stretch, widest)


def _blocks(X: Floats, source: JudgedPairs | ArrayLike, norm: float | str) -> Iterator[Block]:
    if isinstance(source, JudgedPairs):
        yield source.second, source.first, source.up, source.down, source.distances(X, norm)
        return
    label = np.asarray(source, np.float64)
    if not np.isfinite(label).all():
        raise InputError(f"{int((~np.isfinite(label)).sum()):,} of {len(label):,} labels are not finite")
    distinct, rank = np.unique(label, return_inverse=True)
    if len(distinct) < 2:
        raise InputError("all labels are equal: no pair has an order")
    for higher, lower, distance in distance_blocks(X, rank, norm):
        yield higher, lower, np.ones(len(higher)), np.zeros(len(higher)), distance
