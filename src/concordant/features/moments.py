"""Means, deviations and extremes of the columns of a matrix in one pass over its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError

__all__ = ["Moments", "row_blocks", "signed_log"]

Floats = NDArray[np.float64]
BLOCK = 1 << 16
"""Values of a matrix that are worked on at a time: few enough to stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each column, over the values that are not NaN; shape (columns,).

    Moments of parts add up to those of the whole, so that rows may come in pieces, from anywhere, in any order.

    >>> found = Moments.of(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]))
    >>> found.mean.tolist(), found.deviation.tolist(), found.present.tolist()
    ([2.0, 5.0], [1.0, 0.0], [2, 3])
    >>> parts = Moments.of(np.array([[1.0], [2.0]])) + Moments.of(np.array([[6.0]]))
    >>> parts.mean.tolist(), (parts.deviation**2).round(12).tolist()
    ([3.0], [4.666666666667])

    Source of the sum: Chan, Golub and LeVeque (1979).
    """

    mean: Floats
    """0 where no value is there."""
    deviation: Floats
    """Population standard deviation; exactly 0 for a constant column."""
    present: NDArray[np.int64]

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, X: NDArray[np.floating[Any]], *, log: bool = False) -> Moments:
        """Take the moments of X, or of its signed logarithms.

        Sums are of what exceeds the mean of the first rows, so no digits are lost to columns far from 0. Where squares
        are beyond float64 the deviation is infinite or NaN.
        """
        width = X.shape[1]
        shift: Floats | None = None
        total, squares, present = np.zeros(width), np.zeros(width), np.zeros(width, np.int64)
        low, high = np.full(width, np.inf), np.full(width, -np.inf)
        for part in row_blocks(X):
            values = signed_log(X[part]) if log else X[part].astype(np.float64)
            if shift is None:
                there = ~np.isnan(values)
                shift = np.where(there, values, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
            np.fmin(low, np.fmin.reduce(values, axis=0), out=low)
            np.fmax(high, np.fmax.reduce(values, axis=0), out=high)
            values -= shift
            sums = values.sum(axis=0)
            if np.isnan(sums).any():
                gaps = np.isnan(values)
                present -= gaps.sum(axis=0)
                values[gaps] = 0.0
                sums = values.sum(axis=0)
            present += len(values)
            total += sums
            squares += np.einsum("ij,ij->j", values, values)
        some = np.maximum(present, 1)
        excess = total / some
        same = low >= high
        mean = np.where(present == 0, 0.0, np.where(same, low, (0.0 if shift is None else shift) + excess))
        return cls(mean, np.where(same, 0.0, np.sqrt(np.maximum(squares / some - excess**2, 0.0))), present)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: object) -> Moments:
        """Return the moments of both sets of rows together; a column that is constant in them all has deviation 0.

        Errors (UsageError): another number of columns.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        if len(self.mean) != len(other.mean):
            raise UsageError(f"moments of {len(self.mean):,} and of {len(other.mean):,} columns do not add up")
        present = self.present + other.present
        some = np.maximum(present, 1)
        apart = np.where((self.present > 0) & (other.present > 0), other.mean - self.mean, 0.0)
        mean = np.where(self.present > 0, self.mean + apart * (other.present / some), other.mean)
        within = self.present / some * self.deviation**2 + other.present / some * other.deviation**2
        between = (self.present / some) * (other.present / some) * apart**2
        return Moments(mean, np.sqrt(within + between), present)

    def __radd__(self, other: object) -> Moments:
        return self if other == 0 else NotImplemented  # so that sum() works


def row_blocks(X: NDArray[Any]) -> list[slice]:
    """Return slices of rows with about BLOCK values each."""
    step = max(1, BLOCK // max(X.shape[1], 1))
    return [slice(begin, begin + step) for begin in range(0, len(X), step)]


def signed_log(X: NDArray[np.floating[Any]]) -> Floats:
    """Return sign(x) · log(1 + |x|).

    >>> signed_log(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.6931, 0.0, 0.6931]
    """
    wide = X.astype(np.float64)
    return np.asarray(np.copysign(np.log1p(np.abs(wide)), wide))
