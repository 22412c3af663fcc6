"""The matrix of features as solvers take it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError

__all__ = ["checked_matrix", "checked_ridge", "checked_rows", "products"]

BLOCK = 1 << 19


def checked_matrix(X: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return X as a matrix of floats, not copied where it is one. Errors: UsageError, InputError when not finite."""
    X = np.asarray(X)
    if X.ndim != 2:
        raise UsageError(f"X must be a matrix of items by features, not of shape {X.shape}")
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    most = max(1, BLOCK // max(X.shape[1], 1))
    wrong = sum(int((~np.isfinite(X[begin : begin + most])).sum()) for begin in range(0, len(X), most))
    if wrong:
        raise InputError(f"{wrong:,} of {X.size:,} features are not finite; a Normaliser fills or flags missing values")
    return X


def checked_rows(X: NDArray[Any], rows: NDArray[np.integer[Any]] | None, nodes: int) -> NDArray[np.int64] | None:
    """Return the row of X of each of so many items. Errors (UsageError): another number, rows that X has not."""
    row = None if rows is None else np.asarray(rows, np.int64)
    if (len(X) if row is None else len(row)) != nodes:
        given = f"{len(X):,} rows of X" if row is None else f"{len(row):,} rows named"
        raise UsageError(f"shapes do not fit: {nodes:,} items but {given}")
    if row is not None and len(row) and (row.min() < 0 or row.max() >= len(X)):
        raise UsageError(f"rows must lie between 0 and {len(X) - 1:,}; they reach from {row.min():,} to {row.max():,}")
    return row


def checked_ridge(ridge: float) -> float:
    """Return a ridge that is finite and at least 0, or raise UsageError."""
    if not (np.isfinite(ridge) and ridge >= 0):
        raise UsageError(f"the ridge must be a number of at least 0, not {ridge!r}")
    return float(ridge)


def products(X: NDArray[Any], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Xθ in double precision, shape (rows,), some rows at a time: no copy of X in that precision is made."""
    out = np.empty(len(X))
    most = max(1, BLOCK // max(X.shape[1], 1))
    for begin in range(0, len(X), most):
        np.matmul(np.asarray(X[begin : begin + most], np.float64), theta, out=out[begin : begin + most])
    return out
