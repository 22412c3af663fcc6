"""Minimisers of surrogates over α ∈ ℝ^m, for all graphs of a batch: what a surrogate elicits from a population.

Closed form for the linear φ; a linear programme for the hinge; Newton's method for smooth φ. φ that tends to 0 without
reaching it has a minimiser only where every edge lies on a cycle: else the infimum is followed, which is exact. Let the
strong components fall apart in the direction of the edges between them; what is left is to minimise within each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from concordant.errors import ConcordantError, UsageError
from concordant.surrogates.faces import Bounds, loose_nodes, smallest_differences
from concordant.surrogates.newton_blocks import newton
from concordant.surrogates.objective import Objective

__all__ = ["ATTAINED", "NOT_ATTAINED", "NOT_UNIQUE", "STATUS", "STOPPED", "Minimum", "minimise"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]

ATTAINED, NOT_UNIQUE, NOT_ATTAINED, STOPPED = 0, 1, 2, 3
STATUS = ("attained", "not unique", "infimum not attained", "stopped before convergence")
FAR = 40.0
"""Gap that stands for infinity in the reported α: φ is below 1e-17 there."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimisers of each graph. Shapes: ``alpha``, ``component`` (nodes,); the others (graphs,)."""

    objective: Objective
    alpha: Floats
    """One minimiser, or a point near the infimum; sum zero in each component unless values are penalised."""
    component: Nodes
    """Connected component: scores of different ones are not compared by the surrogate."""
    value: Floats
    """The infimum."""
    status: NDArray[np.int8]
    """Index into STATUS; uniqueness is up to a shift of each component."""
    iterations: NDArray[np.int64]
    gradient: Floats
    """Largest absolute derivative at the end (0 for closed forms and linear programmes)."""
    bounds: Bounds
    """The set of all minimisers."""

    def smallest_differences(self, graph: int) -> Floats:
        """Least α_i − α_j over all minimisers of a graph, shape (m, m): positive when all put i above j."""
        start = self.objective.arcs.node_start
        return smallest_differences(self.bounds, self.alpha, int(start[graph]), int(start[graph + 1]))


def minimise(objective: Objective, *, tolerance: float = 1e-11, max_iterations: int = 200) -> Minimum:
    """Minimise every graph of the objective over the scores of its items.

    In a converged fit the derivative of each node is below ``tolerance`` times the terms it is the sum of. Raises
    UsageError for a linear φ without a penalty (unbounded below) and for the hinge with one.

    >>> from concordant.preferences import Preferences
    >>> from concordant.graphs import Batch
    >>> from concordant.surrogates.registry import surrogate
    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])
    >>> found = minimise(surrogate("ranknet").objective(Batch.whole(votes)))
    >>> found.alpha.round(4).tolist(), STATUS[found.status[0]]  # log(3)/2
    ([0.5493, -0.5493], 'attained')
    """
    phi, arcs = objective.phi, objective.arcs
    if not np.isfinite(phi.infimum) and len(arcs.weight) and not objective.penalised:
        raise UsageError(f"the {phi.name} loss has no lower bound without a penalty on values")
    if not phi.smooth and objective.penalised:
        raise UsageError(f"{phi.name} with a penalty on values is not minimised here; take squared-hinge")
    if objective.penalised:
        return _penalised(objective, tolerance, max_iterations)
    if not phi.smooth:
        return _by_linear_programme(objective)
    if np.isfinite(phi.zero_from):
        return _with_flat_end(objective, tolerance, max_iterations)
    return _along_infimum(objective, tolerance, max_iterations)


def _blocks(objective: Objective, connection: str) -> tuple[int, Nodes]:
    arcs = objective.arcs
    shape = (objective.nodes, objective.nodes)
    links = sparse.coo_array((np.ones(len(arcs.weight)), (arcs.winner, arcs.loser)), shape)
    number, block = connected_components(links.tocsr(), directed=True, connection=connection)
    return int(number), block.astype(np.int64)


def _roots(block: Nodes, number: int) -> Nodes:
    """The first node of each block, for every node."""
    first = np.full(number, len(block), np.int64)
    np.minimum.at(first, block, np.arange(len(block)))
    return first[block]


def _centred(alpha: Floats, block: Nodes, number: int) -> Floats:
    mean = np.bincount(block, alpha, number) / np.maximum(np.bincount(block, minlength=number), 1)
    return np.asarray(alpha - mean[block], np.float64)


def _largest(objective: Objective, of_nodes: Floats) -> Floats:
    largest = np.zeros(len(objective))
    np.maximum.at(largest, objective.owner, np.abs(of_nodes))
    return largest


def _fixed(alpha: Floats, root: Nodes) -> Bounds:
    """The set of one point, up to a shift of the nodes of each root."""
    nodes = np.arange(len(alpha))
    gap = alpha - alpha[root]
    return Bounds.join((nodes, root, gap), (root, nodes, -gap))


def _per_graph(objective: Objective, block: Nodes, of_blocks: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Largest value of the blocks of each graph."""
    graph = np.zeros(number, np.int64)
    graph[block] = objective.owner
    result = np.zeros(len(objective), np.int64)
    np.maximum.at(result, graph, of_blocks)
    return result


def _penalised(objective: Objective, tolerance: float, most: int) -> Minimum:
    """Strictly convex: one minimiser; in closed form t + (r')⁻¹(Σ_j (a_ij − a_ji)/ν) for the linear φ (ICML (15))."""
    arcs, owner = objective.arcs, objective.owner
    number = len(objective)
    if objective.phi.name == "linear":
        net = np.bincount(arcs.winner, arcs.weight, objective.nodes) - np.bincount(
            arcs.loser, arcs.weight, objective.nodes
        )
        alpha = arcs.target + objective.penalty.inverse(net / arcs.pull)
        steps, settled = np.zeros(number, np.int64), np.ones(number, bool)
        slope = np.zeros(number)
    else:
        alpha, steps, settled = newton(objective, owner, number, False, tolerance, most)
        slope = _largest(objective, objective.gradient(alpha))
    status = np.where(settled, ATTAINED, STOPPED).astype(np.int8)
    bounds = _fixed(alpha, objective.arcs.node_start[:-1][owner])
    return Minimum(objective, alpha, owner, objective.value(alpha), status, steps, slope, bounds)


def _along_infimum(objective: Objective, tolerance: float, most: int) -> Minimum:
    """φ > 0 tends to 0: minimise within strong components, send the edges between them to infinity."""
    arcs = objective.arcs
    number, block = _blocks(objective, "strong")
    wholes, component = _blocks(objective, "weak")
    root = _roots(block, number)
    across = block[arcs.winner] != block[arcs.loser]
    inner = objective
    if across.any():
        inner = Objective(arcs.only(~across), objective.phi, objective.penalty)
    near, steps, settled = newton(inner, block, number, True, tolerance, most)
    level = np.zeros(number, np.int64)  # longest path in the graph of strong components
    upper, lower = block[arcs.winner[across]], block[arcs.loser[across]]
    while True:
        deeper = level.copy()
        np.maximum.at(deeper, lower, level[upper] + 1)
        if (deeper == level).all():
            break
        level = deeper
    spread = 2.0 * _largest(objective, near) + FAR + float(np.max(arcs.margin, initial=0.0))
    alpha = _centred(near - level[block] * spread[objective.owner], component, wholes)
    beyond = np.zeros(len(objective), bool)
    beyond[objective.owner[arcs.winner[across]]] = True
    stopped = _per_graph(objective, block, (~settled).astype(np.int64), number) > 0
    status = np.where(stopped, STOPPED, np.where(beyond, NOT_ATTAINED, ATTAINED)).astype(np.int8)
    fixed = _fixed(near, root)
    bounds = Bounds.join(
        (fixed.above, fixed.below, fixed.least),
        (arcs.winner[across], arcs.loser[across], np.full(int(across.sum()), np.inf)),
    )
    slope = _largest(objective, inner.gradient(near))
    value = inner.value(near)
    return Minimum(
        objective, alpha, component, value, status, _per_graph(objective, block, steps, number), slope, bounds
    )


def _with_flat_end(objective: Objective, tolerance: float, most: int) -> Minimum:
    """Squared hinge: attained always. All minimisers share the shortfalls z − d_e > 0; the other d_e are at least z."""
    arcs, end = objective.arcs, objective.phi.zero_from
    number, block = _blocks(objective, "weak")
    root = _roots(block, number)
    alpha, steps, settled = newton(objective, block, number, True, tolerance, most)
    alpha = _centred(alpha, block, number)
    gap = objective.gaps(alpha)
    short = gap < end - 1e-9
    least = np.where(short, gap, end) + arcs.margin
    bounds = Bounds.join((arcs.winner, arcs.loser, least), (arcs.loser[short], arcs.winner[short], -least[short]))
    loose = _per_graph(objective, block, np.zeros(number, np.int64), number)
    np.maximum.at(loose, objective.owner, loose_nodes(bounds, alpha, root).astype(np.int64))
    stopped = _per_graph(objective, block, (~settled).astype(np.int64), number) > 0
    status = np.where(stopped, STOPPED, np.where(loose > 0, NOT_UNIQUE, ATTAINED)).astype(np.int8)
    slope = _largest(objective, objective.gradient(alpha))
    return Minimum(
        objective,
        alpha,
        block,
        objective.value(alpha),
        status,
        _per_graph(objective, block, steps, number),
        slope,
        bounds,
    )


def _by_linear_programme(objective: Objective) -> Minimum:
    """Hinge: min Σ w ξ, ξ ≥ 0, ξ_e ≥ 1 + h_e − (α_i − α_j), all graphs in one programme with diagonal blocks.

    With the dual y (0 ≤ y_e ≤ w_e) the minimisers are the α that are complementary to it: α_i − α_j ≥ 1 + h_e where
    y_e < w_e, and ≤ 1 + h_e where y_e > 0.
    """
    arcs, nodes = objective.arcs, objective.nodes
    number, block = _blocks(objective, "weak")
    root = _roots(block, number)
    edges = len(arcs.weight)
    alpha, dual = np.zeros(nodes), np.zeros(0)
    if edges:
        row = np.arange(edges)
        ones = np.ones(edges)
        column = np.concatenate((arcs.winner, arcs.loser, nodes + row))
        table = sparse.csr_array(
            (np.concatenate((-ones, ones, -ones)), (np.tile(row, 3), column)), (edges, nodes + edges)
        )
        heaviest = np.zeros(number)  # graphs do not compete: each is scaled by itself
        np.maximum.at(heaviest, block[arcs.winner], arcs.weight)
        scale = heaviest[block[arcs.winner]]
        cost = np.concatenate((np.zeros(nodes), arcs.weight / scale))
        pinned = root == np.arange(nodes)
        low = np.concatenate((np.where(pinned, 0.0, -np.inf), np.zeros(edges)))
        high = np.concatenate((np.where(pinned, 0.0, np.inf), np.full(edges, np.inf)))
        found = linprog(
            cost, A_ub=table, b_ub=-(1.0 + arcs.margin), bounds=np.column_stack((low, high)), method="highs-ds"
        )
        if found.status != 0:
            raise ConcordantError(f"the linear programme of the hinge loss was not solved: {found.message}")
        alpha, dual = np.asarray(found.x[:nodes]), -np.asarray(found.ineqlin.marginals) * scale
    alpha = _centred(alpha, block, number)
    slim = 1e-7 * arcs.weight
    free, tight = dual < arcs.weight - slim, dual > slim
    want = 1.0 + arcs.margin
    bounds = Bounds.join(
        (arcs.winner[free], arcs.loser[free], want[free]), (arcs.loser[tight], arcs.winner[tight], -want[tight])
    )
    loose = np.zeros(len(objective), bool)
    loose[objective.owner[loose_nodes(bounds, alpha, root)]] = True
    status = np.where(loose, NOT_UNIQUE, ATTAINED).astype(np.int8)
    zeros = np.zeros(len(objective))
    value = objective.value(alpha)
    return Minimum(objective, alpha, block, value, status, np.zeros(len(objective), np.int64), zeros, bounds)
