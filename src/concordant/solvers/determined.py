"""Which directions of θ the edges and penalised values of a problem determine: what a fit without ridge is made in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from concordant.solvers.edge_problem import EdgeProblem
from concordant.solvers.positive_systems import factorised, unit_scale

__all__ = ["Determined"]

Floats = NDArray[np.float64]
SINGULAR = 1e-12
"""Directions whose share of the curvature of standardised columns is below this are not determined."""
ROUNDING = 1e-12
"""Differences in a column that are below this share of its largest value are rounding: it is constant in each query."""


class Determined:
    """Solve Newton systems of a problem; without ridge in the determined directions only, the others staying at 0."""

    def __init__(self, problem: EdgeProblem, widest: int) -> None:
        """Find the directions where there is no ridge and at most so many features."""
        self.free = 0
        self.basis: Floats | None = None
        if problem.ridge == 0 and problem.width <= widest:
            self._reduce(problem)

    def _reduce(self, problem: EdgeProblem) -> None:
        of_units = np.asarray(np.bincount(problem.unit, problem.pull, problem.units), np.float64)
        edges = problem.weight if problem.phi.name != "linear" else np.zeros(len(problem.weight))
        H = problem.hessian(edges, of_units)
        level = np.square(ROUNDING * problem.largest()) * float(edges.sum() + of_units.sum())
        constant = np.diag(H) <= level
        H[constant] = 0.0
        H[:, constant] = 0.0
        unit = unit_scale(H)
        values, vectors = scipy.linalg.eigh(H * unit[:, None] * unit) if len(H) else (np.zeros(0), H)
        kept = values > SINGULAR * max(float(values.max(initial=0.0)), 1e-300)
        self.free = int((~kept).sum())
        if self.free:
            self.basis = unit[:, None] * vectors[:, kept]

    def inverse(self, H: Floats) -> Callable[[Floats], Floats]:
        """Return b ↦ H⁻¹b on the determined directions."""
        if self.basis is None:
            return factorised(H)
        basis, solve = self.basis, factorised(self.basis.T @ H @ self.basis)
        return lambda b: np.asarray(basis @ solve(basis.T @ b), np.float64)
