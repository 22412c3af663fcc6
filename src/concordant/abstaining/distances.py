"""Distances of pairs of rows, in blocks of bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from concordant.features.matrix import Matrix

__all__ = ["pair_distances"]

BLOCK = 1 << 20
"""Values that are subtracted at a time."""


def pair_distances(
    A: Matrix, B: Matrix, norm: str, first: NDArray[np.int64] | None = None, second: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return ‖A[first] − B[second]‖ of each pair of rows; without row numbers, of the rows as they stand.

    The bits of a distance depend on its two rows only, whatever stands beside them and however they lie in memory.

    >>> pair_distances(np.zeros((1, 2)), np.array([[3.0, 4.0]]), "2").tolist()
    [5.0]
    """
    size = len(A) if first is None else len(first)
    cells = len(A) * len(B)
    if norm == "inf" and first is not None and second is not None and 0 < cells <= min(4 * size, BLOCK):
        return np.asarray(cdist(A, B, "chebyshev")[first, second], np.float64)  # a maximum: the same bits, sooner
    found = np.empty(size)
    step = max(1, BLOCK // max(A.shape[1], 1))
    for begin in range(0, size, step):
        part = slice(begin, min(begin + step, size))
        left = A[part] if first is None else A[first[part]]
        right = B[part] if second is None else B[second[part]]
        gap = np.abs(np.subtract(left, right, dtype=np.float64, order="C"))
        if norm == "inf":
            found[part] = gap.max(axis=1, initial=0.0)
        elif norm == "1":
            found[part] = gap.sum(axis=1)
        else:
            found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found
