"""Weighted least squares with a free intercept per query on sparse rows of very many features, by iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from concordant.learning.features.sparse_rows import SparseRows
from concordant.learning.solvers.least_squares import LinearFit, checked_ridge
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WIDE = 2_000
"""Features beyond which products with X take the place of XᵀWX."""
PRECISION = 1e-12
"""Of the residual and of its product with the features, relative."""
MOST = 10_000
"""Iterations at most."""


@dataclass(frozen=True, eq=False)
class SparseEquations:
    """The problem of ``NormalEquations`` where XᵀWX would be too large: solved through products with X alone.

    min over θ and t of Σ_q (w_q/2) Σ_j (x_qj'θ + t_q − y_qj)² + (λ/2) ‖θ‖². Rows are the nodes, in order; what is
    subtracted from them is not formed, so X stays sparse.

    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows(csr_array([[0.0], [1.0], [5.0], [7.0]]), np.zeros(1))
    >>> y = np.array([10.0, 11.0, 0.0, 2.0])  # slope 1 in both queries, with intercepts far apart
    >>> SparseEquations(rows, y, np.array([0, 2, 4]), np.array([0.5, 0.5]), "query").solve(0.0).theta.round(9).tolist()
    [1.0]

    Source: Paige and Saunders (1982), LSQR.
    """

    rows: SparseRows
    y: Floats
    """Shape (nodes,) or (nodes, targets)."""
    start: Ints
    weight: Floats
    """Of each query."""
    intercept: str

    def scaled(self, unit: Floats) -> SparseEquations:
        """Return the equations of the features times ``unit`` (features,)."""
        return replace(self, rows=self.rows.scaled(unit))

    def solve(self, ridge: float) -> LinearFit:
        """Return the θ of least objective, the smallest of them where several are (without ridge)."""
        ridge = checked_ridge(ridge)
        groups = Ragged(self.start)
        each = groups.spread(self.weight)
        root, total = np.sqrt(each), max(float(each.sum()), 1e-300)

        def centred(v: Floats) -> Floats:
            if self.intercept == "query":
                return groups.centred(v)
            return v - (each @ v) / total if self.intercept == "one" else v

        def back(u: Floats) -> Floats:  # the transpose of v ↦ √w · centred(v)
            weighted = root * u
            if self.intercept == "query":  # weights are the same in a query
                weighted = groups.centred(weighted)
            elif self.intercept == "one":
                weighted = weighted - each * (weighted.sum() / total)
            return self.rows.T @ weighted

        A = LinearOperator(
            self.rows.shape, matvec=lambda theta: root * centred(self.rows @ theta.ravel()), rmatvec=back, dtype=float
        )
        columns = self.y[:, None] if self.y.ndim == 1 else self.y
        theta, gradient, values, iterations, ended = [], 0.0, [], 0, True
        for column in columns.T:
            b = root * centred(column)
            found = lsqr(A, b, damp=np.sqrt(ridge), atol=PRECISION, btol=PRECISION, conlim=0.0, iter_lim=MOST)
            left = A.matvec(found[0]) - b
            theta.append(found[0])
            gradient = max(gradient, float(np.abs(back(left) + ridge * found[0]).max(initial=0.0)))
            values.append(0.5 * float(left @ left + ridge * (found[0] @ found[0])))
            iterations, ended = max(iterations, int(found[2])), ended and found[1] != 7
        single = self.y.ndim == 1
        solved = np.column_stack(theta)
        means = np.array([(each @ (y - self.rows @ t)) / total for y, t in zip(columns.T, theta, strict=True)])
        intercepts = None if self.intercept == "query" else means if self.intercept == "one" else np.zeros(len(means))
        return LinearFit(
            solved[:, 0] if single else solved,
            ridge,
            Status.CONVERGED if ended else Status.STOPPED,
            gradient,
            np.array(values[0] if single else values),
            intercept=intercepts[0] if intercepts is not None and single else intercepts,
            iterations=iterations,
        )
