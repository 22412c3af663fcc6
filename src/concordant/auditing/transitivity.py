"""Definition 4 of AoS, low noise: d_ik ≥ d_ij + d_jk for all edges i → j and j → k, looked at path by path.

Could the pairs that were never judged still make a population low-noise? Paths that judged pairs cannot match.

The judged pairs of each item, those that it wins first: the difference graph as rows, level pairs not lost.

What can be said of a property of a population of which some pairs were never judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.arrays import in_threads, read_only
from concordant.kernels.compiled import compiles
from concordant.preferences.connectivity import LEVEL, net_weights
from concordant.preferences.graphs import Graphs
from concordant.preferences.ragged import Grouped, OnNodes, Ragged

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neighbours(Grouped, OnNodes):
    """Row i holds the items judged against i: the beaten ones (d > 0), then the level and the winning ones.

    Both parts are sorted by node, so that what is found first does not depend on how the table was made.
    """

    node_start: Nodes
    start: Nodes
    """The row of node i is start[i]:start[i + 1] ..."""
    middle: Nodes
    """... and start[i]:middle[i] of it are the items that i beats."""
    other: NDArray[np.int32]
    """Node of the batch."""
    net: Floats
    """d of the node against the other, 0 where the pair is level."""
    weight: Floats
    """s_ij + s_ji of the pair: what rounding is relative to."""

    @classmethod
    def of(cls, mean: Graphs) -> Neighbours:
        """Read pair tables without covariates; what is level is decided as in ``Differences``."""
        weight = mean.above + mean.below
        net = net_weights(mean)
        pairs = len(net)
        # from the loser's or later item's side the first nodes ascend, from the other one the second ones
        key = np.concatenate((2 * mean.second + (net >= 0), 2 * mean.first + (net <= 0)))
        sorter = np.argsort(key, kind="stable")
        key = key[sorter]
        pair = sorter - pairs * (sorter >= pairs)
        other = np.where(sorter >= pairs, mean.second[pair], mean.first[pair]).astype(np.int32)
        signed = np.where(sorter >= pairs, net[pair], -net[pair])
        bounds = np.searchsorted(key, np.arange(2 * mean.nodes + 1))
        return cls(mean.node_start, bounds[::2], bounds[1::2], other, signed + 0.0, weight[pair])

    @cached_property
    def beaten(self) -> Nodes:
        """How many items each one beats."""
        return self.middle - self.start[:-1]

    @cached_property
    def read_only(self) -> tuple[NDArray[Any], ...]:
        """(start, middle, other, net, weight) for compiled loops."""
        return (
            *(read_only(column, np.int64) for column in (self.start, self.middle)),
            read_only(self.other, np.int32),
            *(read_only(column, np.float64) for column in (self.net, self.weight)),
        )

    @cached_property
    def edges(self) -> tuple[Nodes, Nodes, Nodes]:
        """Winner, loser and entry of each edge of the difference graph, sorted by winner, loser."""
        entry = np.flatnonzero(self.net > 0)
        return self.groups.owner[entry], self.other[entry].astype(np.int64), entry


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

    def fill(self, some: Nodes, other: _Paths) -> None:
        """Take over what was found for some nodes."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[some] = theirs[some]


def triples(judged: Neighbours) -> Triples:
    """Look at the paths of two edges of every graph, at most ``MOST_PATHS`` of each, in the order of the nodes."""
    winner, loser, _ = judged.edges
    paths = np.bincount(winner, judged.beaten[loser], judged.nodes).astype(np.int64)
    total = np.concatenate(([0], np.cumsum(paths)))
    first = judged.node_start[:-1]
    within = total[1:] - total[first][judged.owner] <= MOST_PATHS
    todo = np.flatnonzero(within & (paths > 0))
    if paths[todo].sum() > FEW and compiles():
        found = _paths_compiled(judged, todo, paths[todo])
    else:
        found = _Paths.none(judged.nodes)
        parts = np.flatnonzero(np.diff((np.cumsum(paths[todo]) - paths[todo]) // FEW)) + 1
        for part in np.split(todo, parts):
            found.fill(part, paths_plainly(judged, part))
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
    path = Ragged.of_sizes(judged.beaten[j]).owner
    i, j, entry, k = i[path], j[path], entry[path], judged.other[second].astype(np.int64)
    owner = judged.groups.owner
    keys = owner * judged.nodes + judged.other
    sorter = np.argsort(keys)
    place = np.searchsorted(keys, i * judged.nodes + k, sorter=sorter)
    third = sorter[np.minimum(place, len(sorter) - 1)] if len(sorter) else place
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
    head = wrong[Ragged.runs(i[wrong]).first]
    found.shortfall[i[head]] = lack[head]
    return found


def _spans(begin: Nodes, end: Nodes) -> Nodes:
    """The entries begin:end of every row, one row after the other."""
    bounds = np.append(np.column_stack((begin, end)).ravel(), 0)
    return Ragged(bounds).take(2 * np.arange(len(begin)))[1]


def _first_of(target: Nodes, i: Nodes, j: Nodes, k: Nodes, rows: Nodes) -> None:
    head = rows[Ragged.runs(i[rows]).first]
    target[i[head]] = np.column_stack((j[head], k[head]))


def _paths_compiled(judged: Neighbours, todo: Nodes, work: Nodes) -> _Paths:
    from concordant.kernels.paths import triples as kernel

    found = _Paths.none(judged.nodes)
    rows = judged.read_only
    base = read_only(judged.node_start[judged.owner], np.int64)
    width = int(judged.sizes.max())
    done = np.cumsum(work)
    cuts = np.searchsorted(done, work.sum() / (4 * THREADS) * np.arange(1, 4 * THREADS))

    def look(part: Nodes) -> None:
        kernel(read_only(part, np.int64), base, width, LEVEL, *rows, found.counts, found.shortfall, found.worst,
               found.missing)  # fmt: skip

    in_threads(look, np.split(todo, cuts), THREADS)
    return found


def _per_graph(judged: Neighbours, found: _Paths, left_out: Nodes) -> Triples:
    graphs = len(judged)
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
        head = rows[Ragged.runs(judged.owner[rows]).first]
        target[judged.owner[head]] = np.column_stack((head, pairs[head]))
    held = np.flatnonzero(worst[:, 0] >= 0)
    i, j, k = worst[held].T
    weights[held] = np.column_stack([net_of(judged, *pair) for pair in ((i, j), (j, k), (i, k))])
    return Triples(checked, violated, unknown, left_out, worst, weights, missing)


def net_of(judged: Neighbours, node: Nodes, other: Nodes) -> Floats:
    """d of judged pairs; NaN of those never judged."""
    rows, entry = judged.groups.take(node)
    hit = judged.other[entry] == rows.spread(other)
    net = np.full(len(node), np.nan)
    net[rows.owner[hit]] = judged.net[entry[hit]]
    return net


Flags = NDArray[np.bool_]
MOST_STEPS = 1 << 28
"""Looks at an edge that a graph is worth (about a second)."""


@dataclass(frozen=True, eq=False)
class HeavierPaths:
    """Judged pairs (i, k), d_ik ≥ 0, with a path i ⇝ k heavier than d_ik; arrays have one entry (row) per graph.

    In a population of low noise no path is heavier than the difference of its ends (Definition 4, step by step along
    the path). Conversely, where the difference graph is acyclic and there is no such pair, giving each never judged
    pair the weight of its heaviest path makes the population low-noise: the verdict is open.
    """

    pair: Nodes
    """(graphs, 2) the pair that is exceeded the most; −1 where there is none or it was not looked for."""
    weights: Floats
    """(graphs, 2) d_ik and the weight of the path; NaN where there is none."""
    start: Nodes
    """The path of graph g is node[start[g]:start[g + 1]], from i to k."""
    node: Nodes
    complete: Flags
    """False where the search ended early: ``MOST_STEPS``."""


def heavier_paths(judged: Neighbours, chosen: Nodes) -> HeavierPaths:
    """Look for such a pair in the chosen graphs, which must be acyclic; others count as searched, without one."""
    graphs, nodes = len(judged), judged.nodes
    pair, weights = np.full((graphs, 2), -1, np.int64), np.full((graphs, 2), np.nan)
    path, length = np.zeros(nodes, np.int64), np.zeros(graphs, np.int64)
    complete = np.ones(graphs, bool)
    if len(chosen):
        from concordant.kernels.paths import heavier_paths as kernel

        start, which = read_only(judged.node_start, np.int64), read_only(chosen, np.int64)
        kernel(which, start, MOST_STEPS, LEVEL, *judged.read_only, pair, weights, path, length, complete)
    kept = judged.node_groups.place < judged.node_groups.spread(length)
    return HeavierPaths(pair, weights, Ragged.of_sizes(length).start, path[kept], complete)


VERDICTS = ("holds", "fails", "undetermined")
"""Names of the verdicts; arrays of verdicts hold places in it."""
HOLDS, FAILS, UNDETERMINED = range(len(VERDICTS))
