"""Rows of a matrix less their mean in the query, times a weight: read once from memory, written where they are used."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["centred_rows"]


@compiled
def centred_rows(X, rows, start, first, last, root, out, level):  # type: ignore[no-untyped-def]
    """Fill out with root_q (x − mean of x over the query) for the nodes of queries first … last − 1.

    The twin is in ``concordant.solvers.least_squares``. Shapes: ``rows`` (nodes,) the row of X of
    each node, ``start`` (queries + 1,), ``root`` (queries,) in X's precision, as ``out`` (nodes of these queries,
    columns). Means are summed in float64, as what exceeds the query's first row: nothing is left of a constant column.
    ``level`` (columns,) gains Σ root² mean² over the nodes of the queries where the column is not constant.
    """
    width = X.shape[1]
    base, sums, mean = np.empty(width), np.empty(width), np.empty(width, out.dtype)
    for q in range(first, last):
        size = start[q + 1] - start[q]
        if size == 0:
            continue
        for column in range(width):
            base[column] = X[rows[start[q]], column]
            sums[column] = 0.0
        for node in range(start[q], start[q + 1]):
            row = rows[node]
            for column in range(width):
                sums[column] += X[row, column] - base[column]
        for column in range(width):
            middle = base[column] + sums[column] / size
            mean[column] = middle
            if sums[column] != 0.0:
                level[column] += root[q] * root[q] * size * middle * middle
        for node in range(start[q], start[q + 1]):
            row, at = rows[node], node - start[first]
            for column in range(width):
                out[at, column] = (X[row, column] - mean[column]) * root[q]
