"""Near pairs counted from the definition in blocks of NumPy: for few points, and to compare the compiled ways with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.parts import Counts
from concordant.abstention.points import Near, Points

__all__ = ["count_plainly", "sums_of_powers"]

BLOCK = 1 << 18
"""Pairs compared at a time."""

Floats = NDArray[np.float64]


def sums_of_powers(left: Floats, right: Floats, power: int) -> Floats:
    """Return Σ |difference|^power over the coordinates (first axis) in their order, or the largest for power 0.

    It is what a loop in double precision returns; the other axes are broadcast.
    """
    total = np.zeros(np.broadcast_shapes(left.shape[1:], right.shape[1:]))
    with np.errstate(over="ignore"):
        for a, b in zip(left, right):
            difference = np.abs(a - b)
            if power == 0:
                np.maximum(total, difference, out=total)
            else:
                total += difference if power == 1 else difference * difference
    return total


def count_plainly(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit, comparing all pairs."""
    X, n = points.X.T, len(points.X)
    found, wrong = np.zeros((2, len(near.limits)), np.int64)
    begin = 0
    while begin < n:
        rows = slice(begin, begin + max(1, BLOCK // (n - begin)))
        ahead = points.label[begin:] - points.label[rows, None]
        agreement = ahead * (points.score[begin:] - points.score[rows, None])
        mistakes = (agreement < 0).astype(np.int64) + (agreement <= 0)
        counts = (ahead != 0) & (np.arange(begin, n) > np.arange(n)[rows, None])
        sums = sums_of_powers(X[:, rows, None], X[:, None, begin:], near.power)
        for t, limit in enumerate(near.limits):
            inside = counts & (sums <= limit)
            found[t] += np.count_nonzero(inside)
            wrong[t] += mistakes[inside].sum()
        begin = rows.stop
    return found, wrong
