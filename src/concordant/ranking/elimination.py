"""Systems of comparison graphs by sparse elimination: Laplacians of pairs with what holds each node (a prior).

An order with little fill is looked for first; graphs without one (many pairs, no bottleneck) are left to conjugate
gradients, which end soon on them. Factors and solutions are exact to rounding whatever the weights are
(``kernels/elimination.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ENTRIES = 30_000_000
"""Most entries of a factor."""
WORK = 3e9
"""Most multiplications of a factorisation."""
FAR = 1e-8
"""Share of the largest weight below which a weight that holds a graph together is lost to methods that add them up."""
NONE = np.zeros(0)


def far_apart(first: Ints, second: Ints, weight: Floats, prior: float, nodes: int) -> bool:
    """Whether some items hang on others by weights (and a prior) below ``FAR`` of the largest weight.

    Weak pairs beside strong ones do no harm: what counts is whether the strong ones connect what all of them connect.

    >>> chain = np.array([0, 1]), np.array([1, 2])
    >>> far_apart(*chain, np.array([1.0, 1e12]), 0.0, 3), far_apart(*chain, np.array([1.0, 1e12]), 1e5, 3)
    (True, False)
    """
    if len(weight) == 0:
        return False
    limit = FAR * float(weight.max())
    strong = (weight >= limit) & (weight > 0)
    if (prior > 0 and prior >= limit) or strong.all():
        return False
    from concordant.kernels.elimination import parts

    ends = np.asarray(first, np.int64), np.asarray(second, np.int64)
    return bool(parts(*ends, strong, nodes) > parts(*ends, np.ones(len(weight), bool), nodes))


def dense_least_squares(
    first: Ints, second: Ints, weight: Floats, prior: float, component: Ints, right: Floats
) -> Floats:
    """Solve (L + prior) x = right, shape (nodes, sides), as a dense matrix; up to shifts without prior."""
    m = len(component)
    diagonal = np.bincount(first, weight, m) + np.bincount(second, weight, m) + prior
    diagonal[diagonal <= 0] = 1.0
    scale = 1.0 / np.sqrt(diagonal)  # to unit diagonal
    matrix = np.zeros((m, m))
    matrix[first, second] = matrix[second, first] = -weight * scale[first] * scale[second]
    matrix[np.arange(m), np.arange(m)] = 1.0
    if prior == 0:  # right-hand sides sum to zero over components: holding one node of each changes nothing else
        anchors = np.unique(component, return_index=True)[1]
        matrix[anchors, anchors] += 1.0
    sides = right * scale[:, None]
    try:
        solved = np.linalg.solve(matrix, sides)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(matrix, sides)[0]
    return np.asarray(solved * scale[:, None], np.float64)


@dataclass(frozen=True, eq=False)
class Elimination:
    """An order in which the nodes of some pairs are eliminated, and where the entries of the factor stand."""

    order: Ints
    column: Ints
    rows: Ints
    place: Ints
    """Entry of each pair."""
    ahead: Floats
    """+1 where the first node of a pair is eliminated first, −1 where the second is."""

    @classmethod
    def of(cls, first: Ints, second: Ints, nodes: int, *, work: float = WORK) -> Elimination | None:
        """Find an order for pairs (first < second, each once), None where the factor would be too large."""
        from concordant.kernels.elimination import least_degree, places

        ends = np.concatenate([first, second]), np.concatenate([second, first])
        graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(nodes, nodes)).tocsr()
        start, beside = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
        order, column, rows = least_degree(start, beside, ENTRIES, work)
        if len(order) < nodes:
            return None
        position = np.empty(nodes, np.int64)
        position[order] = np.arange(nodes)
        rows = position[rows]
        owner = Ragged(column).owner
        rows = np.ascontiguousarray(rows[np.lexsort((rows, owner))])
        low, high = position[first], position[second]
        place = places(column, rows, np.minimum(low, high), np.maximum(low, high))
        return cls(order, column, rows, place, np.where(low < high, 1.0, -1.0))

    @property
    def roots(self) -> Ints:
        """The last node of each part."""
        return np.asarray(self.order[np.diff(self.column) == 0])

    def _entries(self, of_pairs: Floats) -> Floats:
        return np.asarray(np.bincount(self.place, of_pairs, len(self.rows)), np.float64)

    def factor(self, weight: Floats, held: Floats, turned: Floats = NONE, turned_held: Floats | None = None) -> Factor:
        """Factor L(weight) + diag(held); with the derivative in the direction L(turned) + diag(turned_held)."""
        from concordant.kernels.elimination import factorise

        values, excess = self._entries(weight), held[self.order].astype(np.float64)
        bent = self._entries(turned) if len(turned) else NONE
        drift = np.zeros(len(excess)) if turned_held is None else turned_held[self.order].astype(np.float64)
        pivot, moved = factorise(self.column, self.rows, values, excess, bent, drift)
        return Factor(self, values, pivot, bent, moved)

    def least_squares(self, weight: Floats, flow: Floats, held: Floats, ground: Floats) -> Floats | None:
        """Minimise Σ w (s_first − s_second − flow/w)² + Σ held (s − ground)², any weights.

        One node of each part that nothing holds has 0. None where weights that are 0 in float64 cut a part in two.
        """
        from concordant.kernels.elimination import potentials

        entries, flows = self._entries(weight), self._entries(flow * self.ahead)
        held, ground = held[self.order].astype(np.float64), ground[self.order].astype(np.float64)
        found, pivot = potentials(self.column, self.rows, entries, flows, held, ground)
        if ((pivot <= 0) & (np.diff(self.column) > 0)).any() or not np.isfinite(found).all():
            return None
        out = np.empty(len(found))
        out[self.order] = found
        return out


@dataclass(frozen=True, eq=False)
class Factor:
    """A factored matrix."""

    by: Elimination
    weight: Floats
    pivot: Floats
    turned: Floats
    moved: Floats

    def solve(self, right: Floats) -> Floats:
        """A⁻¹ right, shape (nodes,) or (nodes, sides)."""
        from concordant.kernels.elimination import solve

        sides = np.ascontiguousarray(right[self.by.order].reshape(len(right), -1), np.float64)
        solve(self.by.column, self.by.rows, self.weight, self.pivot, sides)
        out = np.empty_like(sides)
        out[self.by.order] = sides
        return out.reshape(right.shape)

    def inverse_diagonal(self) -> tuple[Floats, Floats]:
        """Diagonals of A⁻¹ and, with a direction −M, of A⁻¹ M A⁻¹."""
        from concordant.kernels.elimination import inverse_on_pattern

        own, bent = inverse_on_pattern(self.by.column, self.by.rows, self.weight, self.pivot, self.turned, self.moved)
        out = np.empty((2, len(own)))
        out[:, self.by.order] = own, bent
        return out[0], out[1]
