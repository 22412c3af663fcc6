"""Weighted least squares with a free intercept per query: one pass over the features, then a Cholesky factorisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.solvers.centred_blocks import centred, of_nodes, preparing, query_blocks, weighted_means

__all__ = ["CONVERGED", "INTERCEPTS", "NOT_ATTAINED", "STOPPED", "UNDETERMINED", "LinearFit", "NormalEquations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
INTERCEPTS = ("query", "one", "none")
CONVERGED, STOPPED, NOT_ATTAINED = "converged", "stopped before convergence", "infimum not attained"
"""What the status of an iterative fit begins with."""
UNDETERMINED = ", undetermined directions set to 0"
"""What is added where the data and the ridge leave directions free."""
SINGULAR = 1e-12
"""Directions whose share of the curvature of standardised columns is below this are not determined."""
ROUNDING = 8.0
"""Units of rounding of a column's means that may be left of it where it is constant: it is zero then."""


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of a linear scorer f(x) = x'θ and how they were found."""

    theta: Floats
    """Shape (features,), or (features, targets) when several targets were fitted at once."""
    ridge: float
    status: str
    """'closed form', 'converged', 'stopped before convergence' or 'infimum not attained', and ', undetermined
    directions set to 0' where some are."""
    gradient: float
    """Largest absolute entry of the gradient at θ."""
    value: Floats
    """Objective at θ, for each target (shape () for one)."""
    undetermined: int = 0
    """Number of directions that the data and the ridge leave free."""
    intercept: Floats | None = None
    """The one intercept (0 when there is none); None with one per query, which no order sees."""
    iterations: int = 0
    gap: float | None = None
    """Duality gap: by how much the objective can be above its minimum at most; None where none was computed."""

    @property
    def converged(self) -> bool:
        """Whether θ is a minimiser to the precision asked for."""
        return not self.status.startswith(("stopped", NOT_ATTAINED))


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """XᵀWX, XᵀWy and yᵀWy, centred within each query: all that the fits with any ridge need.

    The problem is min over θ and t of Σ_q (w_q/2) Σ_j (x_qj'θ + t_q − y_qj)² + (λ/2) ‖θ‖². Minimising over the
    intercepts t_q replaces x and y by what exceeds their mean in the query, which leaves the orders, and so the
    consistency, as they are. With w_q = n̂_q/(n m_q) and mean gain targets it is the U-statistic risk (18) of (28).
    Equations of parts of the queries add up to those of all, each weighted as in the whole.

    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> y = np.array([10.0, 11.0, 0.0, 2.0])  # slope 1 in both queries, with intercepts far apart
    >>> equations = NormalEquations.of(X, y, np.array([0, 2, 4]), np.array([0.5, 0.5]))
    >>> equations.solve(0.0).theta.round(12).tolist()
    [1.0]
    >>> parts = [NormalEquations.of(X[at], y[at], np.array([0, 2]), np.array([0.5])) for at in ([0, 1], [2, 3])]
    >>> bool(np.allclose(sum(parts).gram, equations.gram))
    True
    """

    gram: Floats
    """Σ w x̃ x̃', shape (features, features)."""
    moment: Floats
    """Σ w x̃ ỹ, shape (features, targets)."""
    squares: Floats
    """Σ w ỹ², shape (targets,)."""
    mean_x: Floats
    """What was subtracted from every row with one intercept; zeros otherwise."""
    mean_y: Floats
    intercept: str
    single: bool
    """Whether the targets were given as one column without a second axis."""
    level: Floats
    """Σ w mean² of each column, over the queries where it is not constant: what its rounding is measured by."""
    total: float
    """Σ w over all rows."""
    precision: float
    """Unit of rounding of the features."""

    @classmethod
    def of(
        cls,
        X: NDArray[np.floating[Any]],
        y: Floats,
        start: Ints,
        weight: Floats,
        *,
        rows: NDArray[np.integer[Any]] | None = None,
        intercept: str = "query",
    ) -> NormalEquations:
        """Add the equations up in one pass over X (two with ``intercept='one'``), block by block.

        Shapes: ``y`` (nodes,) or (nodes, targets), ``start`` (queries + 1,) where the nodes of each query begin,
        ``weight`` (queries,), ``rows`` (nodes,) the row of X of each node (default: in order). ``intercept`` is
        'query', 'one' for all, or 'none'. Blocks are multiplied in X's precision and added in float64. A column that
        is constant where it is centred, to within rounding, is one of zeros.

        Errors (UsageError): shapes that do not fit, rows that X does not have, negative weights, an unknown intercept.
        """
        single = y.ndim == 1
        Y = np.asarray(y[:, None] if single else y, np.float64)
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        nodes = int(start[-1])
        if intercept not in INTERCEPTS:
            raise UsageError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {intercept!r}")
        if len(Y) != nodes or len(weight) != len(start) - 1 or len(X if rows is None else rows) != nodes:
            raise UsageError(
                f"shapes do not fit: {nodes:,} items in {len(start) - 1:,} queries, {len(Y):,} targets, "
                f"{len(weight):,} weights, {len(X if rows is None else rows):,} rows of features"
            )
        if rows is not None and len(rows) and not (rows.min() >= 0 and rows.max() < len(X)):
            raise UsageError(f"rows must be among the {len(X):,} rows of features, 0 … {len(X) - 1:,}")
        if not (weight >= 0).all():
            raise UsageError("weights of queries may not be negative")
        width = X.shape[1]
        mean_x, mean_y = np.zeros(width), np.zeros(Y.shape[1])
        if intercept == "one":
            mean_x, mean_y = weighted_means(X, Y, start, weight, rows)
        gram, moment = np.zeros((width, width)), np.zeros((width, Y.shape[1]))
        squares = np.zeros(Y.shape[1])
        total = float((weight * np.diff(start)).sum())
        level = total * np.square(mean_x)
        prepare = preparing(X, start, weight, rows, intercept, mean_x, level)
        for first, last in query_blocks(start, width):
            x = prepare(first, last)
            t = Y[int(start[first]) : int(start[last])]
            t = centred(start[first : last + 1] - start[first], t)[0] if intercept == "query" else t - mean_y
            t *= np.sqrt(of_nodes(weight, start, first, last))[:, None]
            gram += x.T @ x
            moment += (x.T @ t.astype(x.dtype)).astype(np.float64)
            squares += (t * t).sum(axis=0)
        precision = float(np.finfo(X.dtype).eps)
        _forget_rounding(gram, moment, level, precision)
        return cls(gram, moment, squares, mean_x, mean_y, intercept, single, level, total, precision)

    def __add__(self, other: object) -> NormalEquations:
        """Return the equations of the rows of both: with an intercept per query no query may be in both.

        Errors (UsageError): other shapes, another kind of intercept.
        """
        if not isinstance(other, NormalEquations):
            return NotImplemented
        mine, theirs = ((*each.moment.shape, each.intercept, each.single) for each in (self, other))
        if mine != theirs:
            raise UsageError(
                f"equations of {mine[0]:,} features, {mine[1]:,} targets and intercept {mine[2]!r} do not add up with "
                f"those of {theirs[0]:,}, {theirs[1]:,} and {theirs[2]!r}"
            )
        total = self.total + other.total
        share = other.total / total if total > 0 else 0.0
        apart_x, apart_y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        between = self.total * share  # 0 without an intercept that both share
        gram = self.gram + other.gram + between * np.outer(apart_x, apart_x)
        moment = self.moment + other.moment + between * np.outer(apart_x, apart_y)
        squares = self.squares + other.squares + between * np.square(apart_y)
        mean_x, mean_y = (
            (other.mean_x, other.mean_y)
            if self.total == 0
            else (
                self.mean_x + share * apart_x,
                self.mean_y + share * apart_y,
            )
        )
        level = total * np.square(mean_x) if self.intercept == "one" else self.level + other.level
        precision = max(self.precision, other.precision)
        _forget_rounding(gram, moment, level, precision)
        return NormalEquations(
            gram, moment, squares, mean_x, mean_y, self.intercept, self.single, level, total, precision
        )

    def __radd__(self, other: object) -> NormalEquations:
        return self if other == 0 else NotImplemented  # so that sum() works

    def of_one_query(self) -> NormalEquations:
        """Return the equations of one query whose rows came in parts, added up with ``intercept='one'``."""
        level = np.where(np.diag(self.gram) > 0, self.level, 0.0)
        none_x, none_y = np.zeros_like(self.mean_x), np.zeros_like(self.mean_y)
        return replace(self, mean_x=none_x, mean_y=none_y, intercept="query", level=level)

    def scaled(self, unit: Floats) -> NormalEquations:
        """Return the equations of the features times ``unit`` (features,), such as 1 over their deviations."""
        return replace(
            self,
            gram=self.gram * unit[:, None] * unit,
            moment=self.moment * unit[:, None],
            mean_x=self.mean_x * unit,
            level=self.level * np.square(unit),
        )

    def solve(self, ridge: float) -> LinearFit:
        """Return θ = (XᵀWX + λI)⁻¹ XᵀWy. Errors (UsageError): a negative or infinite ridge.

        Columns are brought to unit curvature before the factorisation, so their scales do not matter. Where nothing
        determines a direction (a feature constant in every query, two equal features without ridge) the solution that
        is smallest in these units is taken, and said.
        """
        if not (np.isfinite(ridge) and ridge >= 0):
            raise UsageError(f"the ridge must be a number of at least 0, not {ridge!r}")
        A = self.gram + ridge * np.eye(len(self.gram))
        scale = np.sqrt(np.diag(A))
        unit = 1.0 / np.where(scale > 0, scale, 1.0)
        theta, free = _solve_unit(A * unit[:, None] * unit, self.moment * unit[:, None])
        theta *= unit[:, None]
        residual = A @ theta - self.moment
        value = 0.5 * ((theta * (A @ theta - 2 * self.moment)).sum(axis=0) + self.squares)
        status = "closed form" + (UNDETERMINED if free else "")
        intercept = None if self.intercept == "query" else self.mean_y - self.mean_x @ theta
        gradient = float(np.abs(residual).max(initial=0.0))
        if not self.single:
            return LinearFit(theta, ridge, status, gradient, value, free, intercept)
        one = None if intercept is None else intercept[0]
        return LinearFit(theta[:, 0], ridge, status, gradient, value[0], free, one)

    @cached_property
    def largest_curvature(self) -> float:
        """Largest eigenvalue of XᵀWX: the smoothness of the loss, for the steps of gradient methods."""
        return float(scipy.linalg.eigvalsh(self.gram)[-1]) if len(self.gram) else 0.0


def _forget_rounding(gram: Floats, moment: Floats, level: Floats, precision: float) -> None:
    """Set columns to zero that are constant where they are centred, but for rounding."""
    constant = np.diag(gram) <= np.square(ROUNDING * precision) * level
    gram[constant, :], gram[:, constant], moment[constant] = 0.0, 0.0, 0.0


def _solve_unit(A: Floats, b: Floats) -> tuple[Floats, int]:
    """Solve a system with unit (or zero) diagonal; return the solution and the number of free directions."""
    if len(A) == 0:
        return b.copy(), 0
    try:
        factor = scipy.linalg.cholesky(A, lower=True)
        if np.diag(factor).min() ** 2 > SINGULAR:
            return np.asarray(scipy.linalg.cho_solve((factor, True), b)), 0
    except scipy.linalg.LinAlgError:
        pass
    values, vectors = scipy.linalg.eigh(A)
    kept = values > SINGULAR * max(float(values[-1]), 1e-300)
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ b))), int((~kept).sum())
