"""The set of all minimisers of a surrogate, as bounds on differences of scores.

Consistency is a claim about every minimiser (AoS Definition 3). For the margin functions here the set of minimisers is
{α : α_i − α_j ≥ b_ij}: shortest paths answer what holds on all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from concordant.kernels.arrays import in_ranges, read_only
from concordant.kernels.newton_blocks import least_room

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
WORK = 2e9
"""Sources × bounds of the largest graph whose shortest paths are looked for (some 20 seconds)."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """α_above − α_below ≥ least, for every minimiser; least is ∞ where the infimum is followed to infinity."""

    above: Nodes
    below: Nodes
    least: Floats

    @classmethod
    def fixed(cls, alpha: Floats, root: Nodes) -> Bounds:
        """The set of one point, up to a shift of the nodes of each root."""
        nodes = np.flatnonzero(root != np.arange(len(alpha)))
        gap = alpha[nodes] - alpha[root[nodes]]
        return cls(nodes, root[nodes], gap).and_also(root[nodes], nodes, -gap)

    def and_also(self, above: Nodes, below: Nodes, least: Floats) -> Bounds:
        """These bounds and more."""
        return Bounds(
            np.concatenate((self.above, above)),
            np.concatenate((self.below, below)),
            np.concatenate((self.least, least)),
        )

    def only(self, keep: NDArray[np.bool_]) -> Bounds:
        """Some of the bounds."""
        return Bounds(self.above[keep], self.below[keep], self.least[keep])

    def reversed(self) -> Bounds:
        """The bounds on −α."""
        return Bounds(self.below, self.above, self.least)

    def slack(self, alpha: Floats) -> Floats:
        """How much each difference may still fall; rounding below 0 is 0."""
        return np.maximum(alpha[self.above] - alpha[self.below] - self.least, 0.0)


def _room(bounds: Bounds, slack: Floats, nodes: int, above: Nodes, below: Nodes) -> Floats:
    """How much α_above − α_below may still fall; ∞ where nothing stops it, −∞ where it tends to infinity."""
    sorter = np.argsort(bounds.above, kind="stable")
    start = np.searchsorted(bounds.above[sorter], np.arange(nodes + 1))
    asking = np.argsort(above, kind="stable")
    source, first = np.unique(above[asking], return_index=True)
    asked_start = np.append(first, len(above))
    given = (
        *(read_only(start, np.int64), read_only(bounds.below[sorter], np.int64), read_only(slack[sorter], np.float64)),
        *(read_only(source, np.int64), read_only(asked_start, np.int64), read_only(below[asking], np.int64)),
        bool(np.isinf(slack).any()),
    )
    found = np.empty(len(above))

    def work(first: int, last: int) -> None:
        least_room(*given, first, last, found)

    in_ranges(work, np.ones(len(source), np.int64))
    room = np.empty(len(above))
    room[asking] = found
    return room


def rigid_nodes(bounds: Bounds, number: int) -> Nodes:
    """The first of the nodes that hang together by equalities (bounds both ways that leave no room), for each node.

    These must be given in pairs: one of the two as bounds, the other its reverse.
    """
    links = sparse.coo_array((np.ones(len(bounds.above), np.int8), (bounds.above, bounds.below)), (number, number))
    parts, part = connected_components(links.tocsr(), directed=False)
    first = np.full(parts, number, np.int64)
    np.minimum.at(first, part, np.arange(number))
    return np.asarray(first[part], np.int64)


def least_gaps(bounds: Bounds, alpha: Floats, owner: Nodes, rigid: Nodes, above: Nodes, below: Nodes) -> Floats:
    """Least α_above − α_below over all minimisers, for pairs of nodes; ``alpha`` is one minimiser.

    Nodes of one ``rigid`` number (that of its first node) keep their differences at all minimisers. Others take a
    shortest path; ±∞ as in ``smallest_differences``, the plain twin. In graphs whose paths are too much work the bound
    on the pair itself is given (−∞ where there is none), which is never more than the least difference.
    """
    nodes = len(alpha)
    gap = alpha[above] - alpha[below]
    endless = np.isinf(bounds.least)
    sunk = np.unique(rigid[bounds.above[endless]] * nodes + rigid[bounds.below[endless]])
    upper, lower = rigid[above], rigid[below]
    up, down = _among(upper * nodes + lower, sunk), _among(lower * nodes + upper, sunk)
    gap[up], gap[down] = np.inf, -np.inf
    rest = np.flatnonzero((upper != lower) & ~up & ~down)
    if not len(rest):
        return gap
    inside = rigid[bounds.above] == rigid[bounds.below]
    slack = np.where(endless, np.inf, bounds.slack(alpha))
    between = Bounds(rigid[bounds.above[~inside]], rigid[bounds.below[~inside]], bounds.least[~inside])
    slack = slack[~inside]
    graphs = int(owner[-1]) + 1
    sources = np.bincount(owner[np.unique(upper[rest])], minlength=graphs)
    work = sources * np.bincount(owner[between.above], minlength=graphs)
    large = (work > WORK)[owner[upper[rest]]]
    near, far = rest[~large], rest[large]
    gap[near] -= _room(between, slack, nodes, upper[near], lower[near])
    gap[far] -= _bounded(between, slack, nodes, upper[far], lower[far])
    return gap


def _bounded(bounds: Bounds, slack: Floats, nodes: int, above: Nodes, below: Nodes) -> Floats:
    """How much a difference may fall by the bounds on the pair itself; ∞ where there is none."""
    key = bounds.above * nodes + bounds.below
    sorter = np.lexsort((slack, key))
    keys, first = np.unique(key[sorter], return_index=True)
    asked = above * nodes + below
    known = _among(asked, keys)
    room = np.full(len(asked), np.inf)
    room[known] = slack[sorter[first[np.searchsorted(keys, asked[known])]]]
    return room


def _among(keys: Nodes, known: Nodes) -> NDArray[np.bool_]:
    """Which keys are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(keys), bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)


def loose_blocks(
    bounds: Bounds, alpha: Floats, owner: Nodes, rigid: Nodes, root: Nodes, tolerance: float = 1e-7
) -> NDArray[np.bool_]:
    """Nodes (the first of each rigid set) whose difference to the root of their block is not fixed by finite bounds.

    ``loose_nodes`` is the plain twin.
    """
    nodes = np.flatnonzero((rigid == np.arange(len(alpha))) & (rigid[root] != rigid))
    loose = np.zeros(len(alpha), bool)
    if len(nodes):
        ends = rigid[root[nodes]], nodes
        for above, below in (ends, ends[::-1]):
            fall = alpha[above] - alpha[below] - least_gaps(bounds, alpha, owner, rigid, above, below)
            loose[nodes] |= fall > tolerance
    return loose


def loose_nodes(bounds: Bounds, alpha: Floats, root: Nodes, tolerance: float = 1e-7) -> NDArray[np.bool_]:
    """Nodes whose difference to the root of their component is not the same at all minimisers.

    ``alpha`` is one minimiser, ``root`` the root of each node (nodes,). Bellman–Ford from all roots at once.
    """
    slack = bounds.slack(alpha)
    loose = np.zeros(len(alpha), bool)
    for above, below in ((bounds.above, bounds.below), (bounds.below, bounds.above)):
        room = np.where(root == np.arange(len(alpha)), 0.0, np.inf)
        while True:
            nearer = room.copy()
            np.minimum.at(nearer, above, room[below] + slack)
            if not (nearer < room).any():
                break
            room = nearer
        loose |= room > tolerance
    return loose


def smallest_differences(bounds: Bounds, alpha: Floats, start: int, stop: int) -> Floats:
    """Least value of α_i − α_j over all minimisers, for the nodes start:stop of one graph; shape (m, m).

    −∞ where nothing bounds it, ∞ where it tends to infinity along every minimising sequence. A cubic algorithm
    (Floyd–Warshall) for one population of moderate size.
    """
    here = (bounds.above >= start) & (bounds.above < stop)
    above, below, least = bounds.above[here] - start, bounds.below[here] - start, bounds.least[here]
    own = alpha[start:stop]
    size = stop - start
    finite = np.isfinite(least)
    room = np.full((size, size), np.inf)
    np.minimum.at(room, (above[finite], below[finite]), bounds.slack(alpha)[here][finite])
    np.fill_diagonal(room, 0.0)
    strict = np.zeros((size, size), bool)
    strict[above[~finite], below[~finite]] = True
    for middle in range(size):
        room = np.minimum(room, room[:, middle, None] + room[None, middle, :])
    known = (np.isfinite(room) | strict).astype(np.float64)
    for _ in range(max(size - 1, 1).bit_length()):
        known = ((known @ known) > 0).astype(np.float64)
    beyond = (known @ strict @ known) > 0
    return np.where(beyond, np.inf, own[:, None] - own[None, :] - room)
