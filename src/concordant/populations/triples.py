"""Definition 4 of AoS, low noise: d_ik ≥ d_ij + d_jk for all edges i → j and j → k, looked at path by path."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.differences import LEVEL
from concordant.kernels.columns import read_only
from concordant.listing import entry_owner, take_lists
from concordant.populations.neighbours import Neighbours

__all__ = ["MOST_PATHS", "Triples", "triples"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
MOST_PATHS = 1 << 28
"""Paths of one graph that are looked at (about a second)."""
FEW = 1 << 16
"""Paths that are not worth the time it takes to load a compiled loop."""
THREADS = 2


@dataclass(frozen=True, eq=False)
class Triples:
    """What the paths i → j → k of each graph say of low noise; all arrays have one entry (row) per graph."""

    checked: Nodes
    """Paths with (i, k) judged."""
    violated: Nodes
    """Of these, with d_ik < d_ij + d_jk by more than 1e-12 of the weight of the three pairs."""
    unknown: Nodes
    """Paths with (i, k) never judged."""
    left_out: Nodes
    """Paths not looked at, because there are more than ``MOST_PATHS``."""
    worst: Nodes
    """(graphs, 3) the nodes i, j, k with the largest d_ij + d_jk − d_ik; −1 where none is violated."""
    weights: Floats
    """(graphs, 3) d_ij, d_jk, d_ik of it; NaN where none is violated."""
    missing: Nodes
    """(graphs, 3) the first i, j, k with (i, k) never judged; −1 where there is none."""


@dataclass(frozen=True, eq=False)
class _Paths:
    """The same for the paths that begin at each node."""

    counts: Nodes
    shortfall: Floats
    worst: Nodes
    missing: Nodes

    @classmethod
    def none(cls, nodes: int) -> _Paths:
        pairs = np.full((2, nodes, 2), -1, np.int64)
        return cls(np.zeros((nodes, 3), np.int64), np.zeros(nodes), pairs[0], pairs[1])


def triples(judged: Neighbours) -> Triples:
    """Look at the paths of two edges of every graph, at most ``MOST_PATHS`` of each, in the order of the nodes."""
    winner, loser, _ = judged.edges
    paths = np.bincount(winner, judged.beaten[loser], judged.nodes).astype(np.int64)
    total = np.concatenate(([0], np.cumsum(paths)))
    first = judged.node_start[:-1]
    within = total[1:] - total[first][judged.owner] <= MOST_PATHS
    todo = np.flatnonzero(within & (paths > 0))
    few = paths[todo].sum() <= FEW
    found = paths_plainly(judged, todo) if few else _paths_compiled(judged, todo, paths[todo])
    seen = np.concatenate(([0], np.cumsum(np.where(within, paths, 0))))
    last = judged.node_start[1:]
    left_out = (total[last] - total[first]) - (seen[last] - seen[first])
    return _per_graph(judged, found, left_out)


def paths_plainly(judged: Neighbours, todo: Nodes) -> _Paths:
    """The twin of the compiled loop: all paths side by side, pairs found by binary search."""
    found = _Paths.none(judged.nodes)
    entry = _spans(judged.start[:-1][todo], judged.middle[todo])
    i = np.repeat(todo, judged.beaten[todo])
    j = judged.other[entry].astype(np.int64)
    second = _spans(judged.start[:-1][j], judged.middle[j])
    path = np.repeat(np.arange(len(j)), judged.beaten[j])
    i, j, entry, k = i[path], j[path], entry[path], judged.other[second].astype(np.int64)
    owner = entry_owner(judged.start)
    keys = owner * judged.nodes + judged.other
    order = np.argsort(keys)
    place = np.searchsorted(keys, i * judged.nodes + k, sorter=order)
    third = order[np.minimum(place, len(order) - 1)] if len(order) else place
    known = (owner[third] == i) & (judged.other[third] == k)
    lack = judged.net[entry] + judged.net[second] - np.where(known, judged.net[third], 0.0)
    weight = judged.weight[entry] + judged.weight[second] + np.where(known, judged.weight[third], 0.0)
    fails = known & (lack > LEVEL * weight)
    for column, which in enumerate((known, fails, ~known)):
        found.counts[:, column] = np.bincount(i[which], minlength=judged.nodes)
    unknown = np.flatnonzero(~known)
    _first_of(found.missing, i, j, k, unknown)
    wrong = np.flatnonzero(fails)
    wrong = wrong[np.lexsort((wrong, -lack[wrong], i[wrong]))]
    _first_of(found.worst, i, j, k, wrong)
    head = wrong[np.flatnonzero(np.diff(i[wrong], prepend=-1))]
    found.shortfall[i[head]] = lack[head]
    return found


def _spans(begin: Nodes, end: Nodes) -> Nodes:
    """The entries begin:end of every row, one row after the other."""
    bounds = np.append(np.column_stack((begin, end)).ravel(), 0)
    return take_lists(bounds, 2 * np.arange(len(begin)))[1]


def _first_of(target: Nodes, i: Nodes, j: Nodes, k: Nodes, rows: Nodes) -> None:
    head = rows[np.flatnonzero(np.diff(i[rows], prepend=-1))]
    target[i[head]] = np.column_stack((j[head], k[head]))


def _paths_compiled(judged: Neighbours, todo: Nodes, work: Nodes) -> _Paths:
    from concordant.kernels.triples import triples as kernel

    found = _Paths.none(judged.nodes)
    rows = judged.read_only
    base = read_only(judged.node_start[judged.owner], np.int64)
    width = int(np.diff(judged.node_start).max())
    done = np.cumsum(work)
    cuts = np.searchsorted(done, work.sum() / (4 * THREADS) * np.arange(1, 4 * THREADS))

    def look(part: Nodes) -> None:
        kernel(read_only(part, np.int64), base, width, LEVEL, *rows, found.counts, found.shortfall, found.worst,
               found.missing)  # fmt: skip

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(look, np.split(todo, cuts)))
    return found


def _per_graph(judged: Neighbours, found: _Paths, left_out: Nodes) -> Triples:
    graphs = len(judged.node_start) - 1
    counts = np.concatenate((np.zeros((1, 3), np.int64), np.cumsum(found.counts, axis=0)))
    checked, violated, unknown = (counts[judged.node_start[1:]] - counts[judged.node_start[:-1]]).T
    worst, missing = np.full((2, graphs, 3), -1, np.int64)
    weights = np.full((graphs, 3), np.nan)
    for target, rows, pairs in (
        (worst, np.flatnonzero(found.worst[:, 0] >= 0), found.worst),
        (missing, np.flatnonzero(found.missing[:, 0] >= 0), found.missing),
    ):
        graph = judged.owner[rows]
        rows = rows[np.lexsort((rows, -found.shortfall[rows], graph))] if target is worst else rows
        head = rows[np.flatnonzero(np.diff(judged.owner[rows], prepend=-1))]
        target[judged.owner[head]] = np.column_stack((head, pairs[head]))
    held = np.flatnonzero(worst[:, 0] >= 0)
    i, j, k = worst[held].T
    weights[held] = np.column_stack([net_of(judged, *pair) for pair in ((i, j), (j, k), (i, k))])
    return Triples(checked, violated, unknown, left_out, worst, weights, missing)


def net_of(judged: Neighbours, node: Nodes, other: Nodes) -> Floats:
    """d of judged pairs; NaN of those never judged."""
    entry = _spans(judged.start[:-1][node], judged.start[1:][node])
    row = np.repeat(np.arange(len(node)), judged.start[1:][node] - judged.start[:-1][node])
    hit = judged.other[entry] == other[row]
    net = np.full(len(node), np.nan)
    net[row[hit]] = judged.net[entry[hit]]
    return net
