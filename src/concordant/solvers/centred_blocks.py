"""Rows of features block by block, whole queries at a time: centred, weighted, free of what is only rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.columns import read_only

__all__ = ["centred", "of_nodes", "preparing", "query_blocks", "weighted_means"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 19
"""Values of X that are centred at a time: few enough to stay in the processor's cache between the steps."""
LARGE = 1 << 21
"""Values of X from which on it pays to load compiled loops."""


def query_blocks(start: Ints, width: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of queries with about BLOCK values of X each."""
    first, queries = 0, len(start) - 1
    most = max(1, BLOCK // max(width, 1))
    while first < queries:
        last = max(first + 1, int(np.searchsorted(start, start[first] + most, side="right")) - 1)
        yield first, min(last, queries)
        first = last


def preparing(
    X: NDArray[Any],
    start: Ints,
    weight: Floats,
    rows: NDArray[np.integer[Any]] | None,
    intercept: str,
    mean: Floats,
    level: Floats,
) -> Callable[[int, int], NDArray[Any]]:
    """Return what gives the rows of queries first … last − 1, centred and times the root of their weights.

    ``level`` gains Σ w mean² of each column over the queries where it is not constant. A large matrix is read by a
    compiled loop, once, where the same steps in NumPy pass over each block many times.
    """
    if intercept == "query" and X.size >= LARGE and X.flags.c_contiguous and X.dtype in (np.float32, np.float64):
        return _compiled(X, start, weight, rows, level)

    def prepare(first: int, last: int) -> NDArray[Any]:
        x = _rows(X, start, rows, first, last)
        if intercept == "query":
            x, means = centred(start[first : last + 1] - start[first], x)
            level[:] += (weight[first:last] * np.diff(start[first : last + 1])) @ np.square(means)
        elif intercept == "one":
            x = x - mean.astype(x.dtype)
        else:
            x = x.copy()
        x *= np.sqrt(of_nodes(weight, start, first, last))[:, None].astype(x.dtype)
        return x

    return prepare


def _compiled(
    X: NDArray[Any], start: Ints, weight: Floats, rows: NDArray[np.integer[Any]] | None, level: Floats
) -> Callable[[int, int], NDArray[Any]]:
    from concordant.kernels.centred_rows import centred_rows

    begins = read_only(start, np.int64)
    of_node = read_only(np.arange(len(X)) if rows is None else rows, np.int64)
    root = read_only(np.sqrt(weight).astype(X.dtype), X.dtype)
    matrix = read_only(X, X.dtype)

    def prepare(first: int, last: int) -> NDArray[Any]:
        out = np.empty((int(start[last] - start[first]), X.shape[1]), X.dtype)
        centred_rows(matrix, of_node, begins, first, last, root, out, level)
        return out

    return prepare


def _rows(X: NDArray[Any], start: Ints, rows: NDArray[np.integer[Any]] | None, first: int, last: int) -> NDArray[Any]:
    part = slice(int(start[first]), int(start[last]))
    return X[part] if rows is None else np.asarray(X[rows[part]])


def of_nodes(weight: Floats, start: Ints, first: int, last: int) -> Floats:
    """Return the weight of each node of the queries first … last − 1."""
    return np.repeat(weight[first:last], np.diff(start[first : last + 1]))


def centred(start: Ints, value: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Return the rows less their mean in each query, and the means, 0 where the column is constant in the query.

    Sums are of what exceeds the first row of the query, so nothing, not even rounding, is left of what is constant.
    """
    size = np.diff(start)
    some = np.flatnonzero(size)
    means = np.zeros((len(size), value.shape[1]))
    if len(some) == 0:
        return value.copy(), means
    first = value[start[some]].astype(np.float64)
    beyond = value - np.repeat(first, size[some], axis=0)
    sums = np.add.reduceat(beyond, start[some], axis=0)
    centre = first + sums / size[some, None]
    means[some] = np.where(sums == 0.0, 0.0, centre)
    return value - np.repeat(centre.astype(value.dtype), size[some], axis=0), means


def weighted_means(
    X: NDArray[Any], Y: Floats, start: Ints, weight: Floats, rows: NDArray[Any] | None
) -> tuple[Floats, Floats]:
    """Weighted means of the columns of X and Y, summed as what exceeds the first row: exact for what is constant."""
    total, nodes = float((weight * np.diff(start)).sum()), int(start[-1])
    sum_x, sum_y = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if not (total > 0 and nodes > 0):
        return sum_x, sum_y
    first_x, first_y = X[0 if rows is None else rows[0]].astype(np.float64), Y[0]
    for first, last in query_blocks(start, X.shape[1]):
        w = of_nodes(weight, start, first, last)
        sum_x += w @ (_rows(X, start, rows, first, last) - first_x)
        sum_y += w @ (Y[int(start[first]) : int(start[last])] - first_y)
    return first_x + sum_x / total, first_y + sum_y / total
