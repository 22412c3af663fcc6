"""A surrogate of items' scores as a function of the coefficients θ: values, gradients and curvature by blocks of X.

Items that stand in the same row of X are one unit, whatever graphs they are in (the subsets of one query share their
rows). Memory beyond X grows with units and edges; the rows of X are gathered a block at a time.

Which directions of θ the edges and penalised values of a problem determine: what a fit without ridge is made in.

Symmetric positive (semi)definite systems that come close to singular on the way to a minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from concordant.errors import UsageError
from concordant.learning.features.sparse_rows import SparseRows
from concordant.learning.solvers.least_squares import checked_matrix, checked_ridge, checked_rows
from concordant.losses.objective import Objective
from concordant.losses.pair_losses import PairLoss, Penalty
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 19
"""Values of X that are worked on at a time: few enough to stay in the processor's cache."""
LARGE = 16
"""Islands beyond so many blocks are not centred and multiplied in one piece, but edge by edge."""


@dataclass(frozen=True, eq=False)
class EdgeProblem:
    """Σ_e w_e φ(α_winner − α_loser − h_e) + Σ_i ν_i r(α_i − t_i) + (λ/2)‖θ‖² with α = X[row]θ.

    Edges are between units and sorted by winner; ``unit``, ``pull``, ``target`` have an entry for each penalised value.
    """

    X: NDArray[np.floating[Any]]
    row: Ints | None
    """Row of X of each unit; None: in order."""
    units: int
    winner: Ints
    loser: Ints
    weight: Floats
    offset: Floats
    unit: Ints
    pull: Floats
    target: Floats
    phi: PairLoss
    penalty: Penalty
    ridge: float

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        objective: Objective,
        ridge: float,
        rows: NDArray[np.integer[Any]] | None = None,
        weight: NDArray[Any] | None = None,
    ) -> EdgeProblem:
        """Bring edges to units. Errors: UsageError for shapes, weights and ridges; InputError for X."""
        edges, nodes = objective.edges, objective.nodes
        X, ridge, scale = checked_matrix(X), checked_ridge(ridge), _weights(weight, len(objective))
        row = checked_rows(X, rows, nodes)
        unit, units = np.arange(nodes), nodes
        if row is not None:
            distinct, first, inverse = np.unique(row, return_index=True, return_inverse=True)
            if len(distinct) < nodes:  # units in the order in which they first appear: queries stay together
                sorter = np.argsort(first)
                place = np.empty(len(sorter), np.int64)
                place[sorter] = np.arange(len(sorter))
                unit, units, row = place[inverse], len(distinct), distinct[sorter]
        of_node = Ragged(edges.node_start).spread(scale)
        of_edge = edges.weight * of_node[edges.winner]
        pulled = np.flatnonzero(edges.pull * of_node)
        winner, loser = unit[edges.winner], unit[edges.loser]
        keep = np.flatnonzero(of_edge > 0)
        keep = keep[np.argsort(winner[keep], kind="stable")]
        ends = winner[keep], loser[keep], of_edge[keep], edges.offset[keep]
        values = unit[pulled], (edges.pull * of_node)[pulled], edges.pulled_to[pulled]
        return cls(X, row, units, *ends, *values, objective.phi, objective.penalty, ridge)

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    def times(self, theta: Floats) -> Floats:
        """X[row] θ in double precision; shape (units,)."""
        if isinstance(self.X, SparseRows):
            return np.asarray(self._whole @ theta, np.float64)
        return np.concatenate([self._rows(a, b) @ theta for a, b in self._ranges()] or [np.zeros(0)])

    def back(self, of_units: Floats) -> Floats:
        """X[row]ᵀ v in double precision; shape (features,)."""
        if isinstance(self.X, SparseRows):
            return np.asarray(self._whole.T @ of_units, np.float64)
        total = np.zeros(self.width)
        for a, b in self._ranges():
            total += of_units[a:b] @ self._rows(a, b)
        return total

    @cached_property
    def _whole(self) -> Any:
        """Sparse rows of all units."""
        return self.X if self.row is None else self.X[self.row]

    def gaps(self, alpha: Floats) -> Floats:
        """α_winner − α_loser of each edge, without its offset."""
        return alpha[self.winner] - alpha[self.loser]

    def value(self, gap: Floats, pulled: Floats, theta: Floats) -> float:
        """Objective from gaps without offsets and the penalised values α[unit]."""
        with np.errstate(over="ignore"):
            of_edges = self.weight @ self.phi.value(gap - self.offset)
            of_values = self.pull @ self.penalty.value(pulled - self.target)
        return float(of_edges + of_values + 0.5 * self.ridge * (theta @ theta))

    def at(self, theta: Floats) -> tuple[float, Floats]:
        """Objective and gradient at θ."""
        alpha = self.times(theta)
        gap, pulled = self.gaps(alpha), alpha[self.unit]
        return self.value(gap, pulled, theta), self.back(self.slopes(gap, pulled)) + self.ridge * theta

    def slopes(self, gap: Floats, pulled: Floats) -> Floats:
        """Derivative in the score of each unit; shape (units,)."""
        slope = self.weight * self.phi.derivative(gap - self.offset)
        of_units = self.to_units(slope)
        if len(self.unit):
            of_units += np.bincount(self.unit, self.pull * self.penalty.derivative(pulled - self.target), self.units)
        return of_units

    def to_units(self, of_edges: Floats) -> Floats:
        """Add a value of each edge to its winner and subtract it from its loser."""
        up, down = np.bincount(self.winner, of_edges, self.units), np.bincount(self.loser, of_edges, self.units)
        return np.asarray(up, np.float64) - down  # of no edges bincount makes integers

    def bends(self, gap: Floats, pulled: Floats) -> tuple[Floats, Floats]:
        """w_e φ'' of each edge and Σ ν r'' of each unit."""
        of_values = self.pull * self.penalty.second(pulled - self.target)
        of_units = np.asarray(np.bincount(self.unit, of_values, self.units), np.float64)
        return self.weight * self.phi.second(gap - self.offset), of_units

    def curved(self, v: Floats, of_edges: Floats, of_units: Floats) -> Floats:
        """The Hessian times v, in two passes over X."""
        alpha = self.times(v)
        return self.back(self.to_units(of_edges * self.gaps(alpha)) + of_units * alpha) + self.ridge * v

    def hessian(self, of_edges: Floats, of_units: Floats) -> Floats:
        """Xᵀ(Laplacian of the edges + diagonal)X + λI, block by block; shape (features, features).

        Rows are centred in each connected component before the Laplacian meets them: what is common to its items
        cancels exactly, not in rounding.
        """
        total = self.ridge * np.eye(self.width)
        most = max(1, BLOCK // max(self.width, 1))
        for a, b in self._blocks:
            first, last = np.searchsorted(self.winner, (a, b))
            edges = slice(int(first), int(last))
            winner, loser, bend = self.winner[edges], self.loser[edges], of_edges[edges]
            if b - a > LARGE * most or last - first <= b - a:
                total += self._from_differences(winner, loser, bend, most)
            else:
                x = self._centred(a, b)
                total += x.T @ (_laplacian(winner - a, loser - a, bend, b - a) @ x)
        if of_units.any():
            for a, b in self._ranges():
                x = self._rows(a, b) * np.sqrt(of_units[a:b])[:, None]
                total += x.T @ x
        return total

    def diagonal(self, of_edges: Floats, of_units: Floats) -> Floats:
        """The diagonal of the Hessian, edge by edge; of sparse rows no less than that. Shape (features,)."""
        total = np.full(self.width, self.ridge)
        if isinstance(self.X, SparseRows):
            ends = np.bincount(self.winner, of_edges, self.units) + np.bincount(self.loser, of_edges, self.units)
            return total + np.asarray(self._whole.squares(ends + of_units))
        most = max(1, BLOCK // max(self.width, 1))
        for begin in range(0, len(of_edges), most):
            part = slice(begin, begin + most)
            total += of_edges[part] @ np.square(self._take(self.winner[part]) - self._take(self.loser[part]))
        for a, b in self._ranges():
            total += of_units[a:b] @ np.square(self._rows(a, b))
        return total

    def largest(self) -> Floats:
        """Largest absolute value of each feature; shape (features,)."""
        found = [np.abs(self._rows(a, b)).max(axis=0) for a, b in self._ranges()]
        return np.max(found, axis=0) if found else np.zeros(self.width)

    def _from_differences(self, winner: Ints, loser: Ints, bend: Floats, most: int) -> Floats:
        total = np.zeros((self.width, self.width))
        live = np.flatnonzero(bend)
        for begin in range(0, len(live), most):
            part = live[begin : begin + most]
            difference = self._take(winner[part]) - self._take(loser[part])
            difference *= np.sqrt(bend[part])[:, None]
            total += difference.T @ difference
        return total

    def _rows(self, a: int, b: int) -> Floats:
        part = self.X[a:b] if self.row is None else self.X[self.row[a:b]]
        return np.asarray(part, np.float64)

    def _take(self, unit: Ints) -> Floats:
        return np.asarray(self.X[unit if self.row is None else self.row[unit]], np.float64)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        most = max(1, BLOCK // max(self.width, 1))
        for a in range(0, self.units, most):
            yield a, min(a + most, self.units)

    def _centred(self, a: int, b: int) -> Floats:
        x = self._rows(a, b)
        _, group = np.unique(self._component[a:b], return_inverse=True)
        size = np.bincount(group)
        members = sparse.csr_array((np.ones(b - a), (group, np.arange(b - a))), (len(size), b - a))
        return np.asarray(x - ((members @ x) / size[:, None])[group], np.float64)

    @cached_property
    def _component(self) -> Ints:
        """Units that a chain of edges connects; only differences within one matter."""
        links = sparse.coo_array((np.ones(len(self.winner)), (self.winner, self.loser)), (self.units, self.units))
        return np.asarray(connected_components(links.tocsr(), directed=False)[1], np.int64)

    @cached_property
    def _cuts(self) -> Ints:
        """Units before which no edge passes from one side to the other: where islands begin."""
        low, high = np.minimum(self.winner, self.loser), np.maximum(self.winner, self.loser)
        steps = np.bincount(low + 1, minlength=self.units + 1) - np.bincount(high + 1, minlength=self.units + 2)[:-1]
        return np.flatnonzero(np.cumsum(steps)[: self.units] == 0)

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        """Runs of whole islands with about BLOCK values of X each."""
        most = max(1, BLOCK // max(self.width, 1))
        ends = np.append(self._cuts, self.units)
        blocks, a = [], 0
        while a < self.units:
            fits = int(ends[np.searchsorted(ends, a + most, side="right") - 1])
            b = fits if fits > a else int(ends[np.searchsorted(ends, a, side="right")])
            blocks.append((a, b))
            a = b
        return blocks


def _laplacian(winner: Ints, loser: Ints, bend: Floats, size: int) -> sparse.csr_array:
    degree = np.bincount(winner, bend, size) + np.bincount(loser, bend, size)
    diagonal = np.arange(size)
    place = np.concatenate((diagonal, winner, loser)), np.concatenate((diagonal, loser, winner))
    return sparse.coo_array((np.concatenate((degree, -bend, -bend)), place), (size, size)).tocsr()


def _weights(weight: NDArray[Any] | None, graphs: int) -> Floats:
    scale = np.ones(graphs) if weight is None else np.asarray(weight, np.float64)
    if scale.shape != (graphs,):
        raise UsageError(f"shapes do not fit: {graphs:,} graphs but weights of shape {scale.shape}")
    if not ((scale >= 0) & np.isfinite(scale)).all():
        raise UsageError("weights of graphs must be finite and at least 0")
    return scale


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
    A = np.asarray_chkfinite(H * unit[:, None] * unit)
    lift = LIFT
    while True:
        try:
            factor = np.linalg.cholesky(A + lift * np.eye(len(A)))  # SciPy's has threads that vie with NumPy's
        except np.linalg.LinAlgError:
            lift *= 100.0
            continue
        return lambda b: np.asarray(unit * scipy.linalg.cho_solve((factor, True), unit * b), np.float64)


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
        edges = np.zeros(len(problem.weight)) if problem.phi.linear else problem.weight
        H = problem.hessian(edges, of_units)
        level = np.square(ROUNDING * problem.largest()) * float(edges.sum() + of_units.sum())
        constant = np.diag(H) <= level
        H[constant] = 0.0
        H[:, constant] = 0.0
        unit = unit_scale(H)
        values, vectors = np.linalg.eigh(H * unit[:, None] * unit) if len(H) else (np.zeros(0), H)
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
