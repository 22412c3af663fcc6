"""Sparse rows of features: normalised without losing their zeros, dense no more than a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """X − 1 shiftᵀ for a sparse X, such as features over their deviations less their means over them.

    Solvers multiply by it (``rows @ θ``, ``rows.T @ v``) and take some of its rows; ``np.asarray`` of few rows makes
    them dense. It is never dense as a whole.

    >>> rows = SparseRows(csr_array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([0.5, 1.0]))
    >>> np.asarray(rows[1:]).tolist(), (rows @ np.array([1.0, 1.0])).tolist(), (rows.T @ np.ones(3)).tolist()
    ([[-0.5, 1.0], [-0.5, -1.0]], [-0.5, 0.5, -1.5], [-0.5, -1.0])
    """

    X: Any
    """A ``csr_array`` of shape (rows, features)."""
    shift: Floats
    """What is subtracted from every row, shape (features,)."""

    dtype = np.dtype(np.float64)
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)"""
        return self.X.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Values that are given."""
        return int(self.X.nnz)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        return SparseRows(self.X[rows], self.shift)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        made: NDArray[Any] = self.X.toarray()
        made -= self.shift
        return made if dtype is None else made.astype(dtype, copy=False)

    def __matmul__(self, theta: Floats) -> Floats:
        return np.asarray(self.X @ theta - self.shift @ theta, np.float64)

    def scaled(self, unit: Floats) -> SparseRows:
        """Return the columns times ``unit`` (features,)."""
        return SparseRows(like(self.X, self.X.data * unit[self.X.indices]), self.shift * unit)

    @property
    def T(self) -> _Transposed:  # noqa: N802, as NumPy calls it
        """What multiplies vectors of a value for each row."""
        return _Transposed(self)

    def squares(self, weight: Floats) -> Floats:
        """Return Σ_i w_i x_ij² of each column of X, without the shift."""
        return np.asarray(like(self.X, np.square(self.X.data)).T @ weight, np.float64)


@dataclass(frozen=True, eq=False)
class _Transposed:
    rows: SparseRows

    def __matmul__(self, value: Floats) -> Floats:
        return np.asarray(self.rows.X.T @ value - self.rows.shift * value.sum(), np.float64)


def like(X: Any, values: Floats) -> Any:
    """Return a sparse matrix with other values in the same places."""
    return csr_array((values, X.indices, X.indptr), X.shape)


def sparse_moments(X: Any, values: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return mean, population standard deviation (0 of constant columns) and number present of each column.

    ``values`` stand in the places of the given values of X; where they are NaN nothing is present.

    >>> mean, deviation, present = sparse_moments(X := csr_array([[4.0, 0.0], [0.0, 0.0]]), X.data)
    >>> mean.tolist(), deviation.tolist(), present.tolist()
    ([2.0, 0.0], [2.0, 0.0], [2, 2])
    """
    rows, width = X.shape
    there = ~np.isnan(values)
    column, value = X.indices[there], values[there]
    given = np.bincount(column, minlength=width)
    present = rows - np.bincount(X.indices[~there], minlength=width)
    mean = np.bincount(column, value, width) / np.maximum(present, 1)
    zeros = present - given
    squares = np.bincount(column, np.square(value - mean[column]), width) + zeros * np.square(mean)
    low, high = np.where(zeros > 0, 0.0, np.inf), np.where(zeros > 0, 0.0, -np.inf)
    np.minimum.at(low, column, value)
    np.maximum.at(high, column, value)
    same = low >= high
    deviation = np.where(same, 0.0, np.sqrt(squares / np.maximum(present, 1)))
    return np.where(same & (present > 0), low, mean), deviation, present.astype(np.int64)
