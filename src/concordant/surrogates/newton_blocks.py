"""Newton's method for smooth surrogates: all blocks of a batch in one sparse system, each with a step of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from concordant.surrogates.objective import Objective

__all__ = ["newton"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
SHRINK, HALVINGS = 1e-4, 60
FLAT, ROUNDING = 1e-13, 1e-14
STRIDE = 10.0
"""Longest step where φ falls off exponentially: a linear model of its slope says nothing further away."""


def newton(
    objective: Objective, block: Nodes, number: int, held: bool, tolerance: float, most: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Minimise from α = 0; return α (nodes,), iterations and convergence (blocks,).

    ``block`` groups the nodes so that no edge leaves a group; with ``held`` the node of most weight of each stays
    at 0, because only differences matter (its equation follows from the others, with their rounding). Steps are
    halved until the value falls enough (Armijo). Small additions to the diagonal keep the system regular where φ''
    vanishes (the flat end of the squared hinge) or is lost in rounding; they do not move the minimiser.
    """
    alpha = np.zeros(objective.nodes)
    steps = np.zeros(number, np.int64)
    active = np.ones(number, bool)
    arcs, nodes = objective.arcs, objective.nodes
    weight = np.bincount(arcs.winner, arcs.weight, nodes) + np.bincount(arcs.loser, arcs.weight, nodes)
    fixed = np.zeros(nodes, bool)
    if held:
        order = np.lexsort((weight, block))
        fixed[order[np.flatnonzero(np.diff(block[order], append=-1))]] = True
    ridge = FLAT * (weight + arcs.pull) if np.isfinite(objective.phi.zero_from) else np.zeros(nodes)
    value = objective.per_group(alpha, block, number)
    for _ in range(most):
        gradient, scale = objective.gradient(alpha), _scale(objective, alpha)
        active &= _unsettled(gradient, tolerance * scale, block, number)
        if not active.any():
            break
        direction = _direction(objective, alpha, gradient, active[block] & ~fixed, ridge)
        fall = np.bincount(block, gradient * direction, number)
        length = np.where(active, 1.0, 0.0)
        if held and not np.isfinite(objective.phi.zero_from):
            furthest = np.zeros(number)
            np.maximum.at(furthest, block, np.abs(direction))
            length = np.where(furthest > STRIDE, length * STRIDE / np.maximum(furthest, STRIDE), length)
        for _ in range(HALVINGS):
            reached = objective.per_group(alpha + length[block] * direction, block, number)
            rounding = 1e-14 * np.abs(value)
            with np.errstate(invalid="ignore"):
                fails = active & ~(reached <= value + SHRINK * length * fall + rounding)
            if not fails.any():
                break
            length = np.where(fails, 0.5 * length, length)
        alpha = alpha + length[block] * direction
        value = objective.per_group(alpha, block, number)
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
    arcs, nodes = objective.arcs, objective.nodes
    term = arcs.weight * np.abs(objective.phi.derivative(objective.gaps(alpha)))
    if np.isfinite(objective.phi.zero_from):
        term = term + arcs.weight
    pulls = np.abs(arcs.pull * objective.penalty.derivative(alpha - arcs.target))
    return np.asarray(np.bincount(arcs.winner, term, nodes) + np.bincount(arcs.loser, term, nodes) + pulls, np.float64)


def _direction(
    objective: Objective,
    alpha: Floats,
    gradient: Floats,
    free: NDArray[np.bool_],
    ridge: Floats,
) -> Floats:
    """−H⁻¹ gradient on the free nodes, 0 on the others."""
    arcs = objective.arcs
    nodes = objective.nodes
    place = np.cumsum(free) - 1
    of_edges, of_nodes = objective.curvature(alpha)
    degree = np.bincount(arcs.winner, of_edges, nodes) + np.bincount(arcs.loser, of_edges, nodes)
    both = free[arcs.winner] & free[arcs.loser] & (of_edges > 0)
    above, below, pull = place[arcs.winner[both]], place[arcs.loser[both]], -of_edges[both]
    diagonal = np.arange(int(free.sum()))
    rows = np.concatenate((diagonal, above, below)), np.concatenate((diagonal, below, above))
    direction = np.zeros(nodes)
    extra = ROUNDING
    while True:
        on_diagonal = (degree * (1.0 + extra) + of_nodes + ridge)[free]
        system = sparse.csc_array((np.concatenate((on_diagonal, pull, pull)), rows), (len(diagonal), len(diagonal)))
        try:
            direction[free] = -splu(system).solve(gradient[free])
        except RuntimeError:  # singular in rounding: curvatures that differ by more than 1e14
            if extra > 1.0:
                raise
            extra *= 100.0
            continue
        return direction
