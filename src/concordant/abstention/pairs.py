"""Pairs of points: a list of them with weights and its surrogate loss, or all of them in blocks with distances.

Surrogate losses Φ of pairs of scores with their gradients: over a list of pairs, or over all (far) pairs of points.

Both settings of RwA are here: for labels, Φ(y(h(x') − h(x))) and Φ((y − y')(h(x) − h(x'))/2) are Φ(h_i − h_j) of the
pair's higher label i and lower label j. Pairs that the learner abstains on cost the same whatever h is; they count in
the mean with 0.

Judged pairs of points, several judgments a pair, and what a scorer makes of the far ones among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.bounds import least_gap
from concordant.abstention.points import Phi, ScorerClass, checked_gamma, conjugate, phi_named
from concordant.errors import InputError, UsageError
from concordant.losses.graded import GradedLists

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 21
"""Pairs that are held at once."""
_METRIC = {1.0: "cityblock", 2.0: "euclidean"}


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs of places of items, the first of which should score higher, with weights.

    >>> from concordant.abstention.points import phi_named
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
        distance = scipy.spatial.distance.cdist(X[rows], X[columns], _METRIC.get(p, "chebyshev"))
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
    sorter = np.argsort(rank, kind="stable")
    begin = np.searchsorted(rank[sorter], rank[sorter])  # items of lower rank stand before
    size = max(1, BLOCK // max(len(rank), 1))
    for first in range(0, len(sorter), size):
        rows = sorter[first : first + size]
        yield rows, sorter[: begin[min(first + size, len(sorter)) - 1]]


def _rounded_hinge(margin: Floats, smoothing: float) -> tuple[Floats, Floats]:
    """max over a in [0, 1] of a(1 − m) − μa²/2, which is the hinge less at most μ/2, and its slope −a."""
    a = np.clip((1.0 - margin) / smoothing, 0.0, 1.0)
    return a * (1.0 - margin) - smoothing * a * a / 2, -a


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
