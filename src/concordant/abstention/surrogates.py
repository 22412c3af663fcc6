"""Surrogate losses Φ of pairs of scores with their gradients: over a list of pairs, or over all (far) pairs of points.

Both settings of RwA are here: for labels, Φ(y(h(x') − h(x))) and Φ((y − y')(h(x) − h(x'))/2) are Φ(h_i − h_j) of the
pair's higher label i and lower label j. Pairs that the learner abstains on cost the same whatever h is; they count in
the mean with 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.classes import checked_gamma
from concordant.abstention.pairs import ListedPairs, blocks, checked_scores, distance_blocks, features
from concordant.abstention.phis import Phi, phi_named
from concordant.errors import InputError, UsageError
from concordant.surrogates.graded import GradedLists

__all__ = ["AllPairs", "pairs_loss"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEAR_MOST = 1 << 25
"""Near pairs that are kept in a list, beside which the sums over all pairs need no list."""


def pairs_loss(
    scores: ArrayLike,
    higher: ArrayLike,
    lower: ArrayLike,
    *,
    phi: str,
    k: float = 1.0,
    weight: ArrayLike | None = None,
) -> tuple[float, Floats]:
    """Return the mean of Φ(h_higher − h_lower) over a list of pairs, and its gradient in the scores h.

    Shapes: ``scores`` (items,), ``higher``, ``lower`` places of items (pairs,), ``weight`` ≥ 0 (pairs,), 1 when not
    given; the gradient (items,).
    Errors: UsageError for shapes, places that are not there, weights without a positive one, unknown φ; InputError for
    scores that are not finite.

    >>> value, gradient = pairs_loss([1.0, 0.0], [0, 1], [1, 0], phi="hinge")  # one judgment each way
    >>> value, gradient.tolist()
    (1.0, [0.5, -0.5])

    Source: RwA (3) and (6).
    """
    h = np.asarray(scores, np.float64)
    if h.ndim != 1:
        raise UsageError(f"scores must be a column, not of shape {h.shape}")
    listed = ListedPairs.of(len(h), higher, lower, weight)
    return listed.loss(checked_scores(h, len(h)), phi_named(phi, k))


@dataclass(frozen=True, eq=False)
class AllPairs:
    """All pairs of points of different labels, less the near ones: no list of pairs, only of near ones.

    Exponential and hinge take a sort (``surrogates.graded``); the sigmoid goes through all pairs in blocks.

    >>> pairs = AllPairs.of([2, 1, 0], [[0.0], [0.1], [5.0]], gamma=0.5)  # the first two are near each other
    >>> value, _ = pairs.loss(np.array([0.0, 0.0, 1.0]), phi_named("hinge"))
    >>> round(value, 4)  # (0 + 2 + 2) / 3
    1.3333
    """

    graded: GradedLists
    near: ListedPairs | None

    @classmethod
    def of(cls, y: ArrayLike, X: ArrayLike | None = None, *, gamma: float = 0.0, norm: float | str = "inf") -> AllPairs:
        """Find the near pairs, ‖x − x'‖_p ≤ γ; without ``X`` no pair is near.

        Errors: UsageError for shapes, γ < 0, an unknown norm and more near pairs than a list may hold (33 million: take
        a sample of pairs, ``ListedPairs``); InputError for features or labels that are not finite, and a single label.
        """
        graded = GradedLists.of(y)
        if not graded.pairs[0]:
            raise InputError("all labels are equal: no pair has an order")
        if X is None:
            return cls(graded, None)
        found: list[Ints] = []
        number = 0
        for higher, lower, distance in distance_blocks(features(X, len(graded.grade)), graded.rank, norm):
            near = distance <= checked_gamma(gamma)
            found.append(np.stack((higher[near], lower[near])))
            number += found[-1].shape[1]
            if number > NEAR_MOST:
                raise UsageError(f"more than {NEAR_MOST:,} near pairs; take a smaller gamma or a sample of pairs")
        higher, lower = np.concatenate(found, axis=1)
        return cls(graded, ListedPairs.of(len(graded.grade), higher, lower, total=float(graded.pairs[0])))

    @property
    def items(self) -> int:
        """Number of points."""
        return len(self.graded.grade)

    @property
    def far_share(self) -> float:
        """Share of the pairs of different labels that are not near."""
        return 1.0 - (len(self.near.higher) / self.near.total if self.near else 0.0)

    def loss(self, scores: Floats, phi: Phi, smoothing: float = 0.0) -> tuple[float, Floats]:
        """Σ over far pairs of Φ(h_i − h_j) by the number of all pairs of different labels; gradient (items,)."""
        if phi.name == "sigmoid":
            value, gradient = self._in_blocks(scores, phi)
        elif smoothing:
            value, gradient = self._rounded(scores, smoothing)
        else:
            values, gradient = self.graded.loss(scores, phi.name)
            value = float(values[0])
        total = float(self.graded.pairs[0])
        value, gradient = value / total, gradient / total
        if self.near is None:
            return value, gradient
        less, pull = self.near.loss(scores, phi, smoothing)
        return value - less, gradient - pull

    def _rounded(self, scores: Floats, smoothing: float) -> tuple[float, Floats]:
        """((1 − m)₊² − (1 − μ − m)₊²)/(2μ): two squared hinges, the second one of scores divided by 1 − μ."""
        edge = 1.0 - smoothing
        outer, outer_slope = self.graded.loss(scores, "squared-hinge")
        inner, inner_slope = self.graded.loss(scores / edge, "squared-hinge")
        value = (outer[0] - edge * edge * inner[0]) / (2 * smoothing)
        return float(value), (outer_slope - edge * inner_slope) / (2 * smoothing)

    def _in_blocks(self, scores: Floats, phi: Phi) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros(len(scores))
        for rows, columns in blocks(self.graded.rank):
            margin = scores[rows, None] - scores[columns]
            higher = self.graded.rank[rows, None] > self.graded.rank[columns]
            value += float(np.sum(phi.value(margin), where=higher))
            slope = np.where(higher, phi.slope(margin), 0.0)
            gradient[rows] += slope.sum(1)
            gradient[columns] -= slope.sum(0)
        return value, gradient
