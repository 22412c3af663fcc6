"""Linear scorers on all pairs of graded lists: L-BFGS on losses that no pass over the pairs is needed for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from concordant.errors import UsageError
from concordant.learning.features.sparse_rows import SparseRows
from concordant.learning.solvers.edge_problem import unit_scale
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import (
    SINGULAR,
    LinearFit,
    NormalEquations,
    checked_matrix,
    checked_ridge,
    checked_rows,
)
from concordant.losses.graded import GradedLists, graded_phi
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import PairLoss, value_penalty
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Linear = Callable[[Floats], Floats]
WIDE = 2_000
"""Features beyond which the curvature is taken as diagonal."""
LIFT = 1e-9
"""Addition to the diagonal of the standardised curvature."""
HINGE_PAIRS = 4_000_000
"""Pairs up to which the hinge is minimised: its solver holds some numbers for each."""


def fit_graded(
    X: NDArray[Any],
    grades: ArrayLike,
    start: ArrayLike | None,
    phi: str,
    ridge: float,
    *,
    rows: NDArray[np.integer[Any]] | None = None,
    weight: str = "pairs",
    query_weight: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> LinearFit:
    """Return the θ that minimises Σ_q weight_q Σ_{grade_i > grade_j} w_ij φ(x_i'θ − x_j'θ) + (λ/2)‖θ‖².

    ``grades``, ``start``, ``phi`` and ``weight`` (w) are those of ``graded_loss``; ``query_weight`` (queries,) is 1
    unless given; ``rows`` is the row of X of each item (default: in order). Squared hinge, exponential and logistic are
    minimised by L-BFGS in coordinates of about unit curvature, to a gradient there of ``tolerance`` times that at θ = 0
    ('converged'). Without ridge, directions that change no score difference are set to 0 and counted
    (``undetermined``; of up to 2,000 features). Other differentiable φ are minimised in the same way.
    The hinge, as any piecewise linear φ, goes to ``fit_edges``, which lists the pairs: up to 4 million of them.

    Errors: UsageError for shapes that do not fit, for the hinge on longer lists, for exponential and logistic without
    ridge (lists that X can order have no minimiser then); InputError for features or grades that are not finite.
    """
    X, ridge, lists = checked_matrix(X), checked_ridge(ridge), GradedLists.of(grades, start)
    items, queries = len(lists.grade), len(lists.start) - 1
    row = checked_rows(X, rows, items)
    share = np.ones(queries) if query_weight is None else np.asarray(query_weight, np.float64)
    if share.shape != (queries,) or not ((share >= 0) & np.isfinite(share)).all():
        raise UsageError(f"query_weight must hold {queries:,} finite numbers of at least 0")
    loss = graded_phi(phi)
    if loss.piecewise_linear:
        return fit_edges(
            X,
            _listed(lists, weight, loss),
            ridge=ridge,
            rows=row,
            weight=share,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
    if ridge == 0 and not loss.ends:
        raise UsageError(f"{phi} needs a ridge above 0: lists that the features can order have no minimiser without")
    Z = X if row is None else X[row]
    of_items = lists.groups.spread(share)
    there, back, size, free = _coordinates(Z, lists, share * _bend(loss), ridge)

    def objective(z: Floats) -> tuple[float, Floats]:
        theta = there(z)
        value, gradient = lists.loss(Z @ theta, phi, weight=weight)
        slope = Z.T @ (of_items * gradient) + ridge * theta
        return float(share @ value + 0.5 * ridge * (theta @ theta)), back(slope)

    zero = np.zeros(size)
    goal = tolerance * float(np.abs(objective(zero)[1]).max(initial=0.0))
    options = {"gtol": goal, "ftol": 0.0, "maxiter": max_iterations, "maxfun": 20 * max_iterations, "maxcor": 30}
    found = scipy.optimize.minimize(objective, zero, jac=True, method="L-BFGS-B", options=options)
    value, slope = objective(found.x)
    theta = there(found.x)
    gradient = Z.T @ (of_items * lists.loss(Z @ theta, phi, weight=weight)[1]) + ridge * theta
    # the line search gives up where the fall is lost in rounding: what counts is the slope
    settled = float(np.abs(slope).max(initial=0.0)) <= goal and (found.success or found.status == 2)
    return LinearFit(
        theta,
        ridge,
        Status.CONVERGED if settled else Status.STOPPED,
        float(np.abs(gradient).max(initial=0.0)),
        np.asarray(value),
        free,
        iterations=int(found.nit),
    )


def _bend(phi: PairLoss) -> float:
    """The usual curvature: the largest where there is one, else that at 0."""
    return phi.curvature_bound if phi.bounded_curvature else float(phi.second(np.zeros(1))[0]) or 1.0


def _coordinates(Z: NDArray[Any], lists: GradedLists, bend: Floats, ridge: float) -> tuple[Linear, Linear, int, int]:
    """Return z ↦ Bz = θ, g ↦ Bᵀg, the length of z and the number of free directions.

    (BBᵀ)⁻¹ is about the curvature at θ = 0, so that the loss is nearly round in z. The pairs of a query are taken as
    spread evenly: Σ (x_i − x_j)² over pairs is 2 pairs/m of the sum of squares about the mean. With very many features
    B is diagonal.
    """
    size, width = np.maximum(Ragged(lists.start).sizes, 1), Z.shape[1]
    if width > WIDE:
        scale = _spread(Z, lists.start) * np.sqrt(max(float((2 * bend * lists.pairs).sum()), 1e-300))
        return lambda z: np.asarray(z / scale), lambda g: np.asarray(g / scale), width, 0
    gram = NormalEquations.of(Z, np.zeros(len(Z)), lists.start, 2 * bend * lists.pairs / size).gram
    H = gram + ridge * np.eye(width)
    unit = np.where(np.diag(gram) > 0, unit_scale(H), 0.0)  # what is constant in every query has no coefficient
    A = H * unit[:, None] * unit
    if ridge == 0 and width:
        values, vectors = np.linalg.eigh(A)
        kept = values > SINGULAR * max(float(values[-1]), 1e-300)
        B = unit[:, None] * vectors[:, kept] / np.sqrt(values[kept] + LIFT)
        return lambda z: np.asarray(B @ z), lambda g: np.asarray(B.T @ g), B.shape[1], width - B.shape[1]
    R = np.linalg.cholesky(A + LIFT * np.eye(width)).T
    return (
        lambda z: np.asarray(unit * scipy.linalg.solve_triangular(R, z)),
        lambda g: np.asarray(scipy.linalg.solve_triangular(R, unit * g, trans="T")),
        width,
        0,
    )


def _spread(Z: Any, start: NDArray[np.int64]) -> Floats:
    """Root mean square of each column about its mean in the query; 1 where a column does not vary in any."""
    size = Ragged(start).sizes
    some = np.flatnonzero(size)
    if len(some) == 0:
        return np.ones(Z.shape[1])
    if isinstance(Z, SparseRows):  # what does not vary in a query counts as what does: no order sees its coefficient
        squares = Z.squares(np.full(len(Z), 1.0 / len(Z)))
        return np.asarray(np.sqrt(np.where(squares > 0, squares, 1.0)), np.float64)
    means = np.add.reduceat(Z, start[some], axis=0, dtype=np.float64) / size[some, None]
    total = np.einsum("ij,ij->j", Z, Z, dtype=np.float64) - size[some] @ np.square(means)
    variance = np.maximum(total / len(Z), 0.0)
    level = 1e-12 * np.square(np.abs(Z).max(axis=0).astype(np.float64))
    return np.asarray(np.sqrt(np.where(variance > level, variance, 1.0)), np.float64)


def _listed(lists: GradedLists, weight: str, phi: PairLoss) -> Objective:
    """All pairs of different grades as edges."""
    groups = Ragged(lists.start)
    size = groups.sizes
    pairs = int((size * (size - 1) // 2).sum())
    if pairs > HINGE_PAIRS:
        raise UsageError(
            f"the {phi.name} on graded lists is minimised over a list of pairs, here {pairs:,}; "
            f"at most {HINGE_PAIRS:,} are allowed. Squared hinge has no such limit"
        )
    one, other = groups.pairs()
    gap = lists.grade[one] - lists.grade[other]
    winner, loser = np.where(gap > 0, one, other), np.where(gap > 0, other, one)
    strength = np.abs(gap) if weight == "difference" else (gap != 0).astype(np.float64)
    edges = WeightedEdges.of(lists.start, winner, loser, strength)
    return Objective(edges, phi, value_penalty("square"))
