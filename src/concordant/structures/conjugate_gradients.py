"""Linear systems of a batch: one symmetric positive (semi)definite system per graph, solved side by side.

Sums run over one graph at a time, in the order of its nodes, so the answer for a graph does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["conjugate_gradients"]

Floats = NDArray[np.float64]


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    diagonal: Floats,
    right: Floats,
    owner: NDArray[np.int64],
    graphs: int,
    *,
    tolerance: Floats | float,
    iterations: int,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Solve apply(x) = right for all graphs; return x and which graphs reached |residual| ≤ tolerance · |right|.

    Norms are those of the preconditioner (the diagonal). Where the operator is singular, ``right`` must lie in its
    range (for a Laplacian: sum to zero per component), and so will the residuals.
    """
    scale = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    x = np.zeros(len(right))
    residual = right.copy()
    direction = scale * residual
    size = np.bincount(owner, residual * direction, graphs)
    target = size * np.square(tolerance)
    open_ = size > target
    for _ in range(iterations):
        if not open_.any():
            break
        image = apply(direction)
        curve = np.bincount(owner, direction * image, graphs)
        open_ &= curve > 0
        step = np.divide(size, curve, out=np.zeros(graphs), where=open_)[owner]
        x += step * direction
        residual -= step * image
        polished = scale * residual
        new = np.bincount(owner, residual * polished, graphs)
        ratio = np.divide(new, size, out=np.zeros(graphs), where=open_)
        direction = polished + ratio[owner] * direction
        size = np.where(open_, new, size)
        open_ &= size > target
    return x, size <= target
