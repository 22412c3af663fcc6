"""Over all pairs of points with different labels: how many are near, how many are misranked, and how many are both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.cells import count_in_cells, shares_within
from concordant.abstention.parts import Counts
from concordant.abstention.plain import count_plainly
from concordant.abstention.points import Near, Points, cost_of, near_by, points_of, sampled_differences
from concordant.abstention.tiles import count_in_tiles
from concordant.errors import UsageError, did_you_mean
from concordant.metrics.inversions import inversions

__all__ = ["METHODS", "PairCounts", "near_pairs"]

METHODS = {"plain": count_plainly, "cells": count_in_cells, "tiles": count_in_tiles}
FEW = 1 << 25
"""Differences of coordinates up to which comparing all pairs with NumPy is quicker than loading compiled loops."""
DEEP = 16
"""Coordinates a pair, on average, up to which cells are quicker than giving up pairs one by one."""

Integers = int | NDArray[np.int64]
Numbers = float | NDArray[np.float64]


@dataclass(frozen=True)
class PairCounts:
    """Counts over ordered pairs (x, x') of points with different labels; those of a list of γ are arrays in its order.

    ``pairs`` all; ``near`` with ‖x − x'‖ ≤ γ; ``misranked`` with 1[y ≠ sign(h(x') − h(x))], sign(0) = +1, where y = +1
    if x' has the higher label and −1 if x has (of two equal scores one of the two orders is wrong); ``misranked_near``
    both. ``method`` says how they were counted (all ways are exact), ``remark`` what to mind about the distance.
    """

    gamma: Numbers
    norm: str
    pairs: int
    near: Integers
    misranked: int
    misranked_near: Integers
    method: str
    remark: str = ""

    @property
    def near_share(self) -> Numbers:
        """The share of pairs that are near: on which a ranker abstains."""
        return self.near / self.pairs

    def loss(self, cost: float) -> Numbers:
        """Return the mean of 1[misranked and not near] + cost · 1[near] over the pairs (RwA, (2)); 0 ≤ cost ≤ 1."""
        return (self.misranked - self.misranked_near + cost_of(cost) * self.near) / self.pairs


def near_pairs(
    X: ArrayLike,
    y: ArrayLike,
    scores: ArrayLike,
    *,
    gamma: ArrayLike,
    norm: object = "inf",
    method: str = "auto",
) -> PairCounts:
    """Count the near and the misranked among all ordered pairs of points with different labels, exactly.

    Pairs are compared once, whatever the number of γ, and never listed: memory is a small multiple of X. Misranked
    pairs come from sorting. Near are those whose distance in double precision, coordinates summed in their order, is
    at most γ. ``method="auto"`` takes

    - ``"plain"``, all pairs in blocks of NumPy, for few points;
    - ``"cells"``, cells of points swept along a line, where a coordinate tells most pairs apart or there are at most
      16: about as many comparisons as there are near pairs;
    - ``"tiles"``, all pairs in coarse numbers, each given up when it is too far, for many dimensions.

    ``X`` (n, dimensions), ``y`` (n,) real labels, ``scores`` (n,); ``gamma`` a distance in the units of X, or a list;
    ``norm`` 1, 2 or "inf". InputError for numbers that are not finite, shapes that differ, or one label only;
    UsageError for γ < 0 and norms that are not known.

    >>> counts = near_pairs([[0.0], [1.0], [5.0]], [0, 1, 2], [0.2, 0.1, 0.3], gamma=1)
    >>> counts.pairs, counts.near, counts.misranked, counts.misranked_near
    (6, 2, 2, 2)
    >>> near_pairs([[0.0], [1.0], [5.0]], [0, 1, 2], [0.2, 0.1, 0.3], gamma=[0, 4, 5]).near.tolist()
    [0, 4, 6]

    Source: Mao, Mohri & Zhong, “Ranking with abstention” (2023), (1) and (2).
    """
    return counts_of(points_of(X, y, scores), gamma, norm, method)


def counts_of(points: Points, gamma: ArrayLike, norm: object, method: str = "auto") -> PairCounts:
    """As near_pairs, for points that have been checked."""
    listed = np.atleast_1d(np.asarray(gamma))
    if listed.dtype.kind not in "biuf":
        raise UsageError(f"gamma must be a real number or several, not {type(gamma).__name__}")
    if method != "auto" and method not in METHODS:
        raise UsageError(f"no method {method!r} to count near pairs; {did_you_mean(method, ['auto', *METHODS])}")
    ascending = np.argsort(listed, kind="stable") if listed.ndim == 1 else slice(None)
    near, name = near_by(listed[ascending], norm)
    chosen = _chosen(points, near) if method == "auto" else method
    pairs, misranked = _misranked(points)
    within, wrong = _in_given_order(METHODS[chosen](points, near), ascending)
    single = np.ndim(gamma) == 0
    return PairCounts(
        gamma=float(listed[0]) if single else listed.astype(np.float64),
        norm=name,
        pairs=pairs,
        near=2 * int(within[0]) if single else 2 * within,
        misranked=misranked,
        misranked_near=int(wrong[0]) if single else wrong,
        method=chosen,
        remark=_uneven(points.X),
    )


def _in_given_order(counts: Counts, ascending: NDArray[np.intp] | slice) -> Counts:
    near, wrong = np.empty_like(counts[0]), np.empty_like(counts[1])
    near[ascending], wrong[ascending] = counts
    return near, wrong


def _chosen(points: Points, near: Near) -> str:
    n, dimensions = points.X.shape
    if n * n * (dimensions + len(near.limits)) <= FEW:
        return "plain"
    if dimensions <= DEEP:
        return "cells"
    _, share = shares_within(points.X, float(near.gammas[-1]))
    return "cells" if dimensions * float(np.prod(share[:2])) <= DEEP else "tiles"


def _misranked(points: Points) -> tuple[int, int]:
    """Ordered pairs of different labels, and the misranked: two for each pair in the wrong order, one for each tie."""
    label, score = points.label.astype(np.int64), points.score.astype(np.int64)
    pairs = len(label) ** 2 - _squares(np.bincount(label))
    _, both = np.unique(label * (int(score.max()) + 1) + score, return_counts=True)
    tied = _squares(np.bincount(score)) - _squares(both)
    return pairs, 2 * _inversions(score[np.lexsort((score, label))]) + tied // 2


def _squares(counts: NDArray[np.integer]) -> int:
    return int(np.sum(counts.astype(np.int64) ** 2))


def _inversions(level: NDArray[np.int64]) -> int:
    if len(level) < 1 << 13:
        return int(inversions(np.zeros(len(level), np.int64), level, None, 1)[0])
    from concordant.kernels.near_columns import inversions_of

    return int(inversions_of(level, int(level.max()) + 1))


def _uneven(X: NDArray[np.float64]) -> str:
    """Say where one coordinate spreads so much more than others that it is the distance."""
    with np.errstate(over="ignore"):
        spread = sampled_differences(X, 512).mean(axis=0)
    usual = float(np.median(spread[spread > 0])) if np.any(spread > 0) else 0.0
    widest = int(spread.argmax())
    if not usual or not spread[widest] > 100 * usual:
        return ""
    times = f"{float(spread[widest]) / usual:,.3g} times"  # plain floats: inf where the quotient has no double
    return f"column {widest} of X spreads {times} as far as the median one: it dominates the distance; scale X"
