"""Newton's method for smooth surrogates: all blocks of a batch in one sparse system, each with a step of its own.

It takes any smooth φ and blocks of any size; where elimination would fill the memory (many nodes, many cycles) the
systems are solved by conjugate gradients, only as well as the step deserves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from concordant.losses.objective import Objective

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
SHRINK, HALVINGS = 1e-4, 60
FLAT, ROUNDING = 1e-13, 1e-14
STRIDE = 10.0
"""Longest change of a difference in one step where φ falls off exponentially: a linear model of its slope says nothing
further away."""
MANY, CYCLES = 400, 500
"""Nodes and independent cycles of a block beyond which elimination is not tried: it leaves at most 2 · cycles nodes
that are not on chains or trees, and may fill the table of these."""
TURNS = 2000
"""Steps of conjugate gradients for one system."""


def newton(
    objective: Objective,
    block: Nodes,
    number: int,
    held: bool,
    tolerance: float,
    most: int,
    *,
    only: NDArray[np.bool_] | None = None,
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Minimise from α = 0; return α (nodes,), iterations and convergence (blocks,).

    ``block`` groups the nodes so that no edge leaves a group; with ``held`` the node of most weight of each stays
    at 0, because only differences matter (its equation follows from the others, with their rounding). Steps are
    halved until the value falls enough (Armijo). Small additions to the diagonal keep the system regular where φ''
    vanishes (the flat end of the squared hinge) or is lost in rounding; they do not move the minimiser. Where φ has a
    linear part, which pulls without curvature, a share of its largest curvature is added to every edge: the whole of it
    at first, less with every full step, more with every halved one. With ``only`` (blocks,) the others stay at 0.
    """
    alpha = np.zeros(objective.nodes)
    steps = np.zeros(number, np.int64)
    active = np.ones(number, bool) if only is None else only.copy()
    edges, nodes = objective.edges, objective.nodes
    weight = np.bincount(edges.winner, edges.weight, nodes) + np.bincount(edges.loser, edges.weight, nodes)
    fixed = np.zeros(nodes, bool)
    if held:
        sorter = np.lexsort((weight, block))
        fixed[sorter[np.flatnonzero(np.diff(block[sorter], append=-1))]] = True
    ridge = np.zeros(nodes) if objective.phi.strictly_convex else FLAT * (weight + edges.pull)
    lift = np.full(number, float(objective.phi.linear_to > -np.inf))
    value = objective.per_group(alpha, block, number)
    eliminate = _eliminates(objective, block, number)
    noise = ROUNDING * np.sqrt(1.0 + np.bincount(block[edges.winner], minlength=number))  # of sums of so many terms
    for _ in range(most):
        gradient, scale = objective.gradient(alpha), _scale(objective, alpha)
        active &= _unsettled(gradient, tolerance * scale, block, number)
        if not active.any():
            break
        free = active[block] & ~(fixed & eliminate)  # conjugate gradients would leave all their rest to a held node
        solve = _eliminated if eliminate else _conjugate(gradient[free], scale[free], tolerance)
        direction = _direction(objective, alpha, gradient, free, ridge, lift[block[edges.winner]], solve)
        fall = np.bincount(block, gradient * direction, number)
        length = np.where(active, 1.0, 0.0)
        if held and not objective.phi.ends:
            furthest = np.zeros(number)
            np.maximum.at(furthest, block[edges.winner], np.abs(direction[edges.winner] - direction[edges.loser]))
            length = np.where(furthest > STRIDE, length * STRIDE / np.maximum(furthest, STRIDE), length)
        for _ in range(HALVINGS):
            reached = objective.per_group(alpha + length[block] * direction, block, number)
            rounding = noise * np.abs(value)
            with np.errstate(invalid="ignore"):
                fails = active & ~(reached <= value + SHRINK * length * fall + rounding)
            if not fails.any():
                break
            length, lift = np.where(fails, 0.5 * length, length), np.where(fails, np.minimum(10 * lift, 1.0), lift)
        alpha = alpha + length[block] * direction
        value = objective.per_group(alpha, block, number)
        lift *= 0.1
        steps += active
    rest = _unsettled(objective.gradient(alpha), tolerance * _scale(objective, alpha), block, number)
    return alpha, steps, ~rest


def _unsettled(gradient: Floats, goal: Floats, block: Nodes, number: int) -> NDArray[np.bool_]:
    """Blocks with a node whose derivative is above its goal."""
    found = np.zeros(number, bool)
    found[block[np.abs(gradient) > goal]] = True
    return found


def _scale(objective: Objective, alpha: Floats) -> Floats:
    """What the derivative of each node is small against: the terms it is the sum of, all positive.

    Where φ has a flat end all terms may vanish together, and the weights count as well.
    """
    edges, nodes = objective.edges, objective.nodes
    term = edges.weight * np.abs(objective.phi.derivative(objective.gaps(alpha)))
    if objective.phi.ends:
        term = term + edges.weight
    pulls = np.abs(edges.pull * objective.penalty.derivative(alpha - edges.pulled_to))
    return np.asarray(
        np.bincount(edges.winner, term, nodes) + np.bincount(edges.loser, term, nodes) + pulls, np.float64
    )


def _direction(
    objective: Objective,
    alpha: Floats,
    gradient: Floats,
    free: NDArray[np.bool_],
    ridge: Floats,
    lift: Floats,
    solve: Callable[[sparse.csc_array, Floats], Floats],
) -> Floats:
    """−H⁻¹ gradient on the free nodes, 0 on the others."""
    edges = objective.edges
    nodes = objective.nodes
    place = np.cumsum(free) - 1
    of_edges, of_nodes = objective.curvature(alpha)
    if lift.any():
        bound = objective.phi.curvature_bound
        of_edges = np.maximum(of_edges, lift * (bound if np.isfinite(bound) else 1.0) * edges.weight)
    degree = np.bincount(edges.winner, of_edges, nodes) + np.bincount(edges.loser, of_edges, nodes)
    both = free[edges.winner] & free[edges.loser] & (of_edges > 0)
    above, below, pull = place[edges.winner[both]], place[edges.loser[both]], -of_edges[both]
    diagonal = np.arange(int(free.sum()))
    rows = np.concatenate((diagonal, above, below)), np.concatenate((diagonal, below, above))
    direction = np.zeros(nodes)
    extra = ROUNDING
    while True:
        on_diagonal = (degree * (1.0 + extra) + of_nodes + ridge)[free]
        system = sparse.csc_array((np.concatenate((on_diagonal, pull, pull)), rows), (len(diagonal), len(diagonal)))
        try:
            direction[free] = -solve(system, gradient[free])
        except RuntimeError:  # singular in rounding: curvatures that differ by more than 1e14
            if extra > 1.0:
                raise
            extra *= 100.0
            continue
        return direction


def _eliminates(objective: Objective, block: Nodes, number: int) -> bool:
    """Whether elimination leaves little of every block."""
    size = np.bincount(block, minlength=number)
    if size.max(initial=0) <= MANY:
        return True
    ends = np.sort(np.stack((objective.edges.winner, objective.edges.loser)), axis=0)
    pairs = np.unique(ends[0] * objective.nodes + ends[1]) // objective.nodes
    cycles = np.bincount(block[pairs], minlength=number) - size
    return not bool(((size > MANY) & (cycles > CYCLES)).any())


def _eliminated(system: sparse.csc_array, right: Floats) -> Floats:
    return np.asarray(splu(system).solve(right), np.float64)


def _conjugate(gradient: Floats, scale: Floats, tolerance: float) -> Callable[[sparse.csc_array, Floats], Floats]:
    """Conjugate gradients with the diagonal as preconditioner, to a residual that keeps Newton's method quadratic."""
    far = float(np.max(np.abs(gradient) / np.maximum(scale, 1e-300), initial=0.0))
    goal = max(0.3 * tolerance, min(0.1, far) * far) * scale

    def solve(system: sparse.csc_array, right: Floats) -> Floats:
        table, diagonal = system.T, system.diagonal()  # symmetric: by rows what it is by columns
        x, rest = np.zeros(len(right)), right.copy()
        near = rest / diagonal
        towards, size = near.copy(), float(rest @ near)
        for _ in range(TURNS):
            if (np.abs(rest) <= goal).all():
                break
            moved = table @ towards
            bend = float(towards @ moved)
            if not bend > 0.0:  # nothing is left of the curvature
                break
            step = size / bend
            x += step * towards
            rest -= step * moved
            near = rest / diagonal
            before, size = size, float(rest @ near)
            towards = near + (size / before) * towards
        return x

    return solve
