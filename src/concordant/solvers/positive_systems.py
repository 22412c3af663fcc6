"""Symmetric positive (semi)definite systems that come close to singular on the way to a minimum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

__all__ = ["factorised", "iterated", "unit_scale"]

Floats = NDArray[np.float64]
LIFT = 1e-14
"""First addition to the unit diagonal; a hundred times more after each failure."""


def unit_scale(H: Floats) -> Floats:
    """The factors that bring a matrix to unit diagonal; 1 where the diagonal is 0."""
    diagonal = np.maximum(np.diag(H), 0.0)
    return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), np.float64)


def factorised(H: Floats) -> Callable[[Floats], Floats]:
    """Return b ↦ H⁻¹b by Cholesky on H with unit diagonal, lifted no more than it needs where it is singular.

    >>> factorised(np.diag([4.0, 0.0]))(np.array([2.0, 0.0])).round(9).tolist()
    [0.5, 0.0]
    """
    if len(H) == 0:
        return lambda b: b.copy()
    unit = unit_scale(H)
    A = H * unit[:, None] * unit
    lift = LIFT
    while True:
        try:
            factor = scipy.linalg.cho_factor(A + lift * np.eye(len(A)), lower=True)
        except scipy.linalg.LinAlgError:
            lift *= 100.0
            continue
        return lambda b: np.asarray(unit * scipy.linalg.cho_solve(factor, unit * b), np.float64)


def iterated(apply: Callable[[Floats], Floats], diagonal: Floats, b: Floats) -> Floats:
    """Solve H x = b to 1e-6 by conjugate gradients with the diagonal as preconditioner, in at most 250 steps."""
    if not b.any():
        return np.zeros(len(b))
    inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    shape = (len(b), len(b))
    x, _ = cg(
        LinearOperator(shape, matvec=apply),
        b,
        rtol=1e-6,
        maxiter=250,
        M=LinearOperator(shape, matvec=lambda v: inverse * v),
    )
    return np.asarray(x, np.float64)
