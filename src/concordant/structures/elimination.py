"""Newton's equations of one graph by elimination: dense for small graphs, sparse for those that are nearly trees.

[L + prior, B; Bᵀ, K] with the Laplacian L of the pairs, the border B and the corner K of the extra coefficients.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

__all__ = ["can_eliminate", "eliminate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SMALL = 2_000  # nodes up to which a dense matrix is solved
THIN = 1.2  # pairs per node up to which elimination adds few entries to a sparse one


def can_eliminate(nodes: Ints, pairs: Ints) -> NDArray[np.bool_]:
    """Whether graphs of this size can be solved by elimination."""
    return (nodes <= SMALL) | (pairs <= THIN * nodes)


def eliminate(
    first: Ints, second: Ints, weight: Floats, prior: float, component: Ints, border: Floats, corner: Floats,
    right: Floats, right_extra: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Solve for scores (up to a shift per component) and extra coefficients; pairs as nodes of this graph."""
    m = len(component)
    diagonal = np.bincount(first, weight, m) + np.bincount(second, weight, m) + prior
    diagonal[diagonal <= 0] = 1.0
    scale = 1.0 / np.sqrt(diagonal)  # to unit diagonal
    weight = weight * scale[first] * scale[second]
    ground = np.zeros(m)
    if prior == 0:  # right-hand sides sum to zero over components: grounding one node of each changes nothing else
        ground[np.unique(component, return_index=True)[1]] = 1.0
    sides = np.column_stack([right, border]) * scale[:, None]
    if len(first) <= THIN * m:
        solved = _sparse(first, second, weight, 1.0 + ground, sides)
    else:
        solved = _dense(first, second, weight, 1.0 + ground, sides)
    solved *= scale[:, None]
    x, along = solved[:, 0], solved[:, 1:]
    if not border.shape[1]:
        return x, right_extra
    extra = np.asarray(np.linalg.lstsq(corner - border.T @ along, right_extra - border.T @ x)[0], np.float64)
    return x - along @ extra, extra


def _sparse(first: Ints, second: Ints, weight: Floats, diagonal: Floats, sides: Floats) -> Floats:
    m = len(diagonal)
    nodes = np.arange(m)
    rows, columns = np.concatenate([first, second, nodes]), np.concatenate([second, first, nodes])
    matrix = coo_array((np.concatenate([-weight, -weight, diagonal]), (rows, columns)), shape=(m, m)).tocsc()
    try:
        factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular in floating point
        return np.zeros_like(sides)
    return np.asarray(factor.solve(sides), np.float64)


def _dense(first: Ints, second: Ints, weight: Floats, diagonal: Floats, sides: Floats) -> Floats:
    m = len(diagonal)
    matrix = -np.bincount(first * m + second, weight, m * m).reshape(m, m)
    matrix += matrix.T
    matrix[np.arange(m), np.arange(m)] = diagonal
    try:
        return np.asarray(np.linalg.solve(matrix, sides), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, sides)[0], np.float64)
