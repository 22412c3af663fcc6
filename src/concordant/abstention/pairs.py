"""Pairs of points: a list of them with weights and its surrogate loss, or all of them in blocks with distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from concordant.abstention.norms import conjugate
from concordant.abstention.phis import Phi
from concordant.errors import InputError, UsageError

__all__ = ["ListedPairs", "blocks", "checked_scores", "distance_blocks", "features"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 21
"""Pairs that are held at once."""
_METRIC = {1.0: "cityblock", 2.0: "euclidean"}


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs of places of items, the first of which should score higher, with weights.

    >>> from concordant.abstention.phis import phi_named
    >>> pairs = ListedPairs.of(3, [0, 1], [1, 2], [3.0, 1.0])
    >>> value, _ = pairs.loss(np.array([1.0, 0.0, 0.0]), phi_named("hinge"))
    >>> value
    0.25
    """

    items: int
    higher: Ints
    lower: Ints
    weight: Floats
    total: float
    """What the sum is divided by: the weight of these pairs and of those that were left out as near."""

    @classmethod
    def of(
        cls,
        items: int,
        higher: ArrayLike,
        lower: ArrayLike,
        weight: ArrayLike | None = None,
        total: float | None = None,
    ) -> ListedPairs:
        """Check the columns; errors as in ``pairs_loss``."""
        up, down = np.asarray(higher), np.asarray(lower)
        w = np.ones(up.shape) if weight is None else np.asarray(weight, np.float64)
        if up.ndim != 1 or up.shape != down.shape or w.shape != up.shape:
            raise UsageError(f"shapes do not fit: higher {up.shape}, lower {down.shape}, weight {w.shape}")
        if len(up) and not (np.issubdtype(up.dtype, np.integer) and np.issubdtype(down.dtype, np.integer)):
            raise UsageError("higher and lower must be places of items: integers")
        places = np.concatenate((up, down)).astype(np.int64)
        if len(places) and (places.min() < 0 or places.max() >= items):
            raise UsageError(f"places must lie in 0…{items - 1}; found {places.min()}…{places.max()}")
        whole = float(w.sum()) if total is None else total
        if not (np.isfinite(w).all() and (w >= 0).all() and whole > 0):
            raise UsageError("weights must be finite and not negative, and one of them positive")
        return cls(items, places[: len(up)], places[len(up) :], w, whole)

    def loss(self, scores: Floats, phi: Phi, smoothing: float = 0.0) -> tuple[float, Floats]:
        """Σ w Φ(h_higher − h_lower) / total and its gradient (items,); ``smoothing`` μ rounds the hinge (below)."""
        margin = scores[self.higher] - scores[self.lower]
        term, slope = _rounded_hinge(margin, smoothing) if smoothing else (phi.value(margin), phi.slope(margin))
        pull = self.weight * slope / self.total
        up, down = np.bincount(self.higher, pull, self.items), np.bincount(self.lower, pull, self.items)
        return float(self.weight @ term) / self.total, np.asarray(up - down, np.float64)


def distance_blocks(X: Floats, rank: Ints, norm: float | str = "inf") -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield (higher, lower, ℓ_p distance) of all pairs of points whose label ranks differ, a block at a time."""
    p, _ = conjugate(norm)
    for rows, columns in blocks(rank):
        one, other = np.nonzero(rank[rows, None] > rank[columns])
        distance = cdist(X[rows], X[columns], _METRIC.get(p, "chebyshev"))
        yield rows[one], columns[other], distance[one, other]


def features(X: ArrayLike, items: int) -> Floats:
    """Return the features as a matrix (items, features); UsageError for the shape, InputError if not finite."""
    x = np.asarray(X, np.float64)
    if x.ndim != 2 or len(x) != items:
        raise UsageError(f"X must have one row for each of the {items:,} labels, not shape {x.shape}")
    wrong = int((~np.isfinite(x)).any(1).sum())
    if wrong:
        raise InputError(f"{wrong:,} of {items:,} rows of X hold values that are not finite")
    return x


def checked_scores(h: Floats, items: int) -> Floats:
    """Return the scores; UsageError for their shape, InputError where they are not finite."""
    if h.shape != (items,):
        raise UsageError(f"there are {items:,} points and scores of shape {h.shape}")
    if not np.isfinite(h).all():
        raise InputError(f"{int((~np.isfinite(h)).sum()):,} of {items:,} scores are not finite")
    return h


def blocks(rank: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Rows in blocks and, for each block, the columns whose rank is below its highest."""
    order = np.argsort(rank, kind="stable")
    begin = np.searchsorted(rank[order], rank[order])  # items of lower rank stand before
    size = max(1, BLOCK // max(len(rank), 1))
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        yield rows, order[: begin[min(first + size, len(order)) - 1]]


def _rounded_hinge(margin: Floats, smoothing: float) -> tuple[Floats, Floats]:
    """max over a in [0, 1] of a(1 − m) − μa²/2, which is the hinge less at most μ/2, and its slope −a."""
    a = np.clip((1.0 - margin) / smoothing, 0.0, 1.0)
    return a * (1.0 - margin) - smoothing * a * a / 2, -a
