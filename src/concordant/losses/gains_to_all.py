"""Minimisers of gains against all in closed form.

Each pair has the terms g_j φ(d) + g_l φ(−d), d = α_j − α_l. Where φ'(−d)/φ'(d) = e^(κ d) both derivatives cancel at
d = log(g_j/g_l)/κ, and α = log(g)/κ has all these differences at once: it minimises pair by pair. Items without gain
are sent to −∞. The derivative of each item is computed all the same, and must be as small as an iteration would ask.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.arrays import in_ranges, read_only
from concordant.kernels.newton_blocks import pairs_of_gains
from concordant.losses.argmin_set import Bounds
from concordant.losses.minimum import Minimum
from concordant.losses.objective import GainsToAll, Objective
from concordant.losses.pair_losses import PairLoss
from concordant.preferences.ragged import centred
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Flags = NDArray[np.bool_]


LARGE, CELLS = 2000, 200
"""Items from which pairs are taken together by cells of length 1, and the most cells."""
ORDER = 16
"""Points for each cell; the nearest singularity of a logistic function is π away, which leaves less than 1e-16."""


def has_closed_form(objective: Objective) -> bool:
    """Whether these are gains against all, with a φ that gives a closed form and that the kernel knows."""
    phi, edges = objective.phi, objective.edges
    known = phi.odds is not None and phi.kernel is not None
    return known and isinstance(edges, GainsToAll) and not edges.pull.any()


def closed_form(objective: Objective, tolerance: float, far: float) -> Minimum:
    """Minimise every graph; ``far`` is the gap that stands for infinity in α."""
    edges, odds = objective.edges, objective.phi.odds
    assert isinstance(edges, GainsToAll)
    assert odds is not None
    owner, graphs = objective.owner, len(objective)
    gains = edges.gain > 0
    number = np.bincount(owner[gains], minlength=graphs)
    near = np.zeros(objective.nodes)
    near[gains] = centred(np.log(edges.gain[gains]) / odds, owner[gains])
    value, slope, settled = _terms(objective, near, gains, number, tolerance)
    endless = (number > 0) & (number < edges.sizes)
    spread = np.zeros(graphs)
    np.maximum.at(spread, owner, np.abs(near))
    alpha = np.where(gains | (number == 0)[owner], near, -(2.0 * spread + far)[owner])
    nodes = np.arange(objective.nodes)
    begins = (number == 0)[owner] | (nodes == edges.node_start[:-1][owner])  # without gains each item is alone
    component = np.cumsum(begins) - 1
    alpha = np.where((number > 0)[owner], centred(alpha, owner), alpha)
    status = np.where(settled, np.where(endless, Status.NOT_ATTAINED, Status.ATTAINED), Status.STOPPED).astype(np.int8)
    first = np.full(graphs, objective.nodes, np.int64)
    np.minimum.at(first, owner[gains], np.flatnonzero(gains))
    rigid = np.where(gains, first[owner], nodes)
    sunk = np.flatnonzero(~gains & endless[owner])
    bounds = Bounds.fixed(near, rigid).and_also(first[owner[sunk]], sunk, np.full(len(sunk), np.inf))
    steps = np.zeros(graphs, np.int64)
    return Minimum(objective, alpha, component, value, status, steps, slope, bounds, rigid)


def _terms(
    objective: Objective, near: Floats, gains: Flags, number: Nodes, tolerance: float
) -> tuple[Floats, Floats, Flags]:
    """Value, largest derivative and whether all are small, of each graph; items without gain are at −∞."""
    edges, graphs = objective.edges, len(objective)
    assert isinstance(edges, GainsToAll)
    value, slope, terms = np.zeros(graphs), np.zeros(int(gains.sum())), np.zeros(int(gains.sum()))
    start = np.concatenate(([0], np.cumsum(number)))
    ends = np.zeros((2, graphs))
    np.minimum.at(ends[0], objective.owner, near)
    np.maximum.at(ends[1], objective.owner, near)
    large = (number > LARGE) & (ends[1] - ends[0] < CELLS)
    given = (
        read_only(start, np.int64),
        read_only(edges.gain[gains], np.float64),
        read_only(near[gains], np.float64),
    )
    logistic = objective.phi.kernel == "logistic"

    def work(first: int, last: int) -> None:
        for graph in np.flatnonzero(large[first:last]) + first:
            here = slice(start[graph], start[graph + 1])
            value[graph], slope[here], terms[here] = expanded(objective.phi, edges.gain[gains][here], near[gains][here])
        for begin, end in itertools.pairwise((first - 1, *np.flatnonzero(large[first:last]) + first, last)):
            pairs_of_gains(logistic, *given, begin + 1, end, value, slope, terms)

    in_ranges(work, number * np.where(large, 1, number))
    owner = objective.owner[gains]
    largest, settled = np.zeros(graphs), np.ones(graphs, bool)
    np.maximum.at(largest, owner, np.abs(slope))
    settled[owner[np.abs(slope) > tolerance * terms]] = False
    return value, largest, settled


def expanded(phi: PairLoss, gain: Floats, alpha: Floats) -> tuple[float, Floats, Floats]:
    """Σ_{j≠l} g_j φ(α_j − α_l) of one graph, its derivative and what that is the sum of, in linear time.

    Scores are replaced by weights on Chebyshev points of their cell, so that the table is one of points.
    """
    cell = np.floor(alpha)
    cells, where = np.unique(cell, return_inverse=True)
    angle = (2 * np.arange(ORDER) + 1) * np.pi / (2 * ORDER)
    degree = np.arange(ORDER)[:, None]
    half = np.where(degree == 0, 1.0, 2.0) / ORDER
    share = np.cos(degree * np.arccos(np.clip(2.0 * (alpha - cell) - 1.0, -1.0, 1.0))).T @ (
        half * np.cos(degree * angle)
    )
    weight = np.zeros((2, len(cells), ORDER))
    np.add.at(weight[0], where, share)
    np.add.at(weight[1], where, share * gain[:, None])
    point = (cells[:, None] + 0.5 * (np.cos(angle) + 1.0)).ravel()
    ones, gains = weight.reshape(2, -1)
    gap = point[:, None] - point
    value = gains @ phi.value(gap) @ ones - gain.sum() * phi.value(np.zeros(1))[0]
    slope = -phi.derivative(gap)
    own, others = ((share * (table.reshape(-1, ORDER))[where]).sum(axis=1) for table in (slope @ ones, gains @ slope))
    return float(value), others - gain * own, others + gain * own
