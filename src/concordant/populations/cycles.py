"""Strong components of difference graphs, and a shortest cycle of each as evidence that no order agrees with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from concordant.kernels.columns import read_only
from concordant.listing import entry_owner
from concordant.populations.neighbours import Neighbours

__all__ = ["Cycles", "cycles"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]
MOST_CYCLES = 5
"""Components of one graph that a cycle is shown of, the largest first."""
STEPS = 512
"""Edges that a search may look at, for each edge of the component."""
FEW = 20_000
"""Steps that are not worth the time it takes to load a compiled loop."""
THREADS = 2


@dataclass(frozen=True, eq=False)
class Cycles:
    """Strong components of the difference graph of each graph, and shortest cycles of the largest of them."""

    largest: Nodes
    """(graphs,) items of the largest strong component: 1 where the graph is acyclic, 0 without items."""
    blocks: Nodes
    """(graphs,) strong components of more than one item."""
    graph: Nodes
    """(cycles,) the graph of each cycle shown, ascending."""
    start: Nodes
    """Cycle c is node[start[c]:start[c + 1]]: each beats the next, the last one the first."""
    node: Nodes
    least: Floats
    """(cycles,) weight of its lightest edge, in judgments: what would break the cycle most cheaply."""
    proven: Flags
    """(cycles,) no shorter one, and no equally long one with a heavier least edge, is in its component; False where
    the search was cut off (the cycle itself is always one)."""


@dataclass(frozen=True, eq=False)
class _Components:
    """Strong components to be searched, their nodes numbered anew and side by side."""

    bounds: Nodes
    node: Nodes
    """Node of the batch."""
    start: Nodes
    other: Nodes
    weight: Floats

    @property
    def edges(self) -> Nodes:
        return self.start[self.bounds[1:]] - self.start[self.bounds[:-1]]


def cycles(judged: Neighbours) -> Cycles:
    """Find the strong components, and a shortest cycle of up to ``MOST_CYCLES`` of each graph's."""
    winner, loser, entry = judged.edges
    graphs, nodes = len(judged.node_start) - 1, judged.nodes
    strong = np.zeros(0, np.int64)
    if nodes:
        beats = csr_array((np.ones(len(winner), np.int8), (winner, loser)), shape=(nodes, nodes))
        strong = connected_components(beats, directed=True, connection="strong")[1].astype(np.int64)
    size = np.bincount(strong)
    largest = np.zeros(graphs, np.int64)
    np.maximum.at(largest, judged.owner, size[strong])
    head = np.full(len(size), nodes, np.int64)
    np.minimum.at(head, strong, np.arange(nodes))
    block = np.flatnonzero(size > 1)
    owner = judged.owner[head[block]]
    order = np.lexsort((head[block], -size[block], owner))
    block, owner = block[order], owner[order]
    blocks = np.bincount(owner, minlength=graphs)
    place = np.arange(len(block)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    shown = place < MOST_CYCLES
    inside = strong[winner] == strong[loser]
    parts = _components(block[shown], strong, winner[inside], loser[inside], judged.net[entry[inside]])
    start, node, least, proven = _search(parts)
    return Cycles(largest, blocks, owner[shown], start, parts.node[node], least, proven)


def _components(block: Nodes, strong: Nodes, winner: Nodes, loser: Nodes, weight: Floats) -> _Components:
    number = np.full(int(strong.max(initial=-1)) + 1, -1, np.int64)
    number[block] = np.arange(len(block))
    node = np.flatnonzero(number[strong] >= 0)
    node = node[np.argsort(number[strong[node]], kind="stable")]
    bounds = np.searchsorted(number[strong[node]], np.arange(len(block) + 1))
    local = np.full(len(strong), -1, np.int64)
    local[node] = np.arange(len(node))
    kept = np.flatnonzero(local[winner] >= 0)
    kept = kept[np.argsort(local[winner[kept]], kind="stable")]
    start = np.searchsorted(local[winner[kept]], np.arange(len(node) + 1))
    return _Components(bounds, node, start, local[loser[kept]], weight[kept])


def _search(parts: _Components) -> tuple[Nodes, Nodes, Floats, Flags]:
    """Return (start, node, least edge, proven) of the cycle of each component."""
    number = len(parts.bounds) - 1
    steps = parts.edges * STEPS
    cycle = np.zeros(len(parts.node), np.int64)
    length, least, proven = np.zeros(number, np.int64), np.zeros(number), np.zeros(number, bool)
    work = np.minimum(steps, parts.edges * np.diff(parts.bounds))
    if work.sum() <= FEW:
        for c in range(number):
            found, least[c] = cycle_plainly(parts, c)
            length[c], proven[c] = len(found), True
            cycle[parts.bounds[c] : parts.bounds[c] + len(found)] = found
    else:
        from concordant.kernels.shortest_cycles import shortest_cycles as kernel

        rows = [read_only(column, np.int64) for column in (parts.start, parts.other)]
        bounds, weight, allowed = (
            read_only(parts.bounds, np.int64), read_only(parts.weight, float), read_only(steps, np.int64),
        )  # fmt: skip
        done = np.cumsum(work)
        cuts = [0, *np.searchsorted(done, work.sum() / (4 * THREADS) * np.arange(1, 4 * THREADS)).tolist(), number]

        def look(part: int) -> None:
            kernel(bounds, cuts[part], cuts[part + 1], *rows, weight, allowed, cycle, length, least, proven)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(look, range(len(cuts) - 1)))
    owner = entry_owner(parts.bounds)
    kept = np.arange(len(cycle)) - parts.bounds[owner] < length[owner]
    return np.concatenate(([0], np.cumsum(length))), cycle[kept], least, proven


def cycle_plainly(parts: _Components, c: int) -> tuple[list[int], float]:
    """The twin of the compiled search, for components where nothing is cut off: the cycle and its least edge."""
    low, high = int(parts.bounds[c]), int(parts.bounds[c + 1])
    edges = {
        u: list(zip(parts.other[a:b].tolist(), parts.weight[a:b].tolist(), strict=True))
        for u, a, b in zip(range(low, high), parts.start[low:high], parts.start[low + 1 : high + 1], strict=True)
    }
    best: list[int] = []
    best_least = -1.0
    for root in range(low, high - 2):
        reached = {root: (float("inf"), root)}  # node: least weight on the way, parent
        front = [root]
        path = {root: 0}
        while front and not (best and path[front[0]] >= len(best)):
            following = []
            for u in front:
                for v, weight in edges[u]:
                    light = min(reached[u][0], weight)
                    if v == root and (not best or path[u] + 1 < len(best) or light > best_least):
                        best, best_least = _way_back(reached, u, root), light
                    elif v > root and v not in path:
                        reached[v], path[v] = (light, u), path[u] + 1
                        following.append(v)
                    elif v > root and path[v] == path[u] + 1 and light > reached[v][0]:
                        reached[v] = (light, u)
            front = following
    return best, best_least


def _way_back(reached: dict[int, tuple[float, int]], u: int, root: int) -> list[int]:
    way = [u]
    while way[-1] != root:
        way.append(reached[way[-1]][1])
    return way[::-1]
