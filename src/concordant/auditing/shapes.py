"""The facts of each query's population that decide which losses can lead to the right order.

Strong components of difference graphs, with a shortest cycle of each as evidence; the row-sum condition (16) of ICML;
the Condorcet winner and the Smith set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.transitivity import (
    FAILS,
    HOLDS,
    UNDETERMINED,
    HeavierPaths,
    Neighbours,
    Triples,
    heavier_paths,
    triples,
)
from concordant.kernels.arrays import in_threads, read_only
from concordant.preferences.connectivity import LEVEL, connectivity, strong_components
from concordant.preferences.graphs import Graphs
from concordant.preferences.ragged import Ragged

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
    """Nodes of component c are node[bounds[c]:bounds[c + 1]]."""
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
    graphs, nodes = len(judged), judged.nodes
    strong = strong_components(nodes, winner, loser)
    size = np.bincount(strong)
    largest = judged.node_groups.most(size[strong])
    head = np.full(len(size), nodes, np.int64)
    np.minimum.at(head, strong, np.arange(nodes))
    block = np.flatnonzero(size > 1)
    owner = judged.owner[head[block]]
    sorter = np.lexsort((head[block], -size[block], owner))
    block, owner = block[sorter], owner[sorter]
    blocks = Ragged.counted(owner, graphs)
    shown = blocks.place < MOST_CYCLES
    inside = strong[winner] == strong[loser]
    parts = _components(block[shown], strong, winner[inside], loser[inside], judged.net[entry[inside]])
    start, node, least, proven = _search(parts)
    return Cycles(largest, blocks.sizes, owner[shown], start, parts.node[node], least, proven)


def _components(block: Nodes, strong: NDArray[np.int32], winner: Nodes, loser: Nodes, weight: Floats) -> _Components:
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
    components = Ragged(parts.bounds)
    number = len(components)
    steps = parts.edges * STEPS
    cycle = np.zeros(len(parts.node), np.int64)
    length, least, proven = np.zeros(number, np.int64), np.zeros(number), np.zeros(number, bool)
    work = np.minimum(steps, parts.edges * components.sizes)
    if work.sum() <= FEW:
        for c in range(number):
            found, least[c] = cycle_plainly(parts, c)
            length[c], proven[c] = len(found), True
            cycle[parts.bounds[c] : parts.bounds[c] + len(found)] = found
    else:
        from concordant.kernels.paths import shortest_cycles as kernel

        rows = [read_only(column, np.int64) for column in (parts.start, parts.other)]
        bounds, weight, allowed = (
            read_only(parts.bounds, np.int64), read_only(parts.weight, float), read_only(steps, np.int64),
        )  # fmt: skip
        done = np.cumsum(work)
        cuts = [0, *np.searchsorted(done, work.sum() / (4 * THREADS) * np.arange(1, 4 * THREADS)).tolist(), number]

        def look(part: int) -> None:
            kernel(bounds, cuts[part], cuts[part + 1], *rows, weight, allowed, cycle, length, least, proven)

        in_threads(look, range(len(cuts) - 1), THREADS)
    kept = components.place < components.spread(length)
    return Ragged.of_sizes(length).start, cycle[kept], least, proven


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


@dataclass(frozen=True, eq=False)
class RowSums:
    """Condition (16): Σ_j d_ij > Σ_j d_kj whenever d_ik > 0; arrays have one entry (row) per graph."""

    holds: Flags
    violated: Nodes
    """Edges i → k whose sums are not in this order."""
    worst: Nodes
    """(graphs, 2) the nodes i, k with the largest Σ_j d_kj − Σ_j d_ij; −1 where the condition holds."""
    excess: Floats
    """That difference (0 where the sums are level); NaN where the condition holds."""


@dataclass(frozen=True, eq=False)
class Winners:
    """The item that beats all others, and the smallest set that does; arrays have one entry per graph."""

    verdict: NDArray[np.int8]
    """Place in ``VERDICTS``: there is a Condorcet winner, there is none, judgments that are missing would decide."""
    winner: Nodes
    """Its node, −1 where there is none or it is not known."""
    candidates: Nodes
    """Items that no judged pair rules out: 1 where there is a winner, 0 where there is none."""
    smith: Nodes
    """Items of the Smith set."""
    member: Flags
    """(nodes,) in the Smith set of its graph."""


def row_sums(judged: Neighbours) -> RowSums:
    """Check (16) for every edge; sums count as different from 1e-12 of the weight of both items' pairs."""
    total, weight = judged.groups.sums(judged.net), judged.groups.sums(judged.weight)
    i, k, _ = judged.edges
    gap = total[k] - total[i]
    wrong = np.flatnonzero(gap >= -LEVEL * (weight[i] + weight[k]))
    graph = judged.owner[i[wrong]]
    graphs = len(judged)
    violated = np.bincount(graph, minlength=graphs)
    worst, excess = np.full((graphs, 2), -1, np.int64), np.full(graphs, np.nan)
    wrong = wrong[np.lexsort((-gap[wrong], graph))]  # stable: the first edge among equal gaps
    head = wrong[Ragged.runs(judged.owner[i[wrong]]).first]
    where = judged.owner[i[head]]
    worst[where] = np.column_stack((i[head], k[head]))
    level = np.abs(gap[head]) <= LEVEL * (weight[i[head]] + weight[k[head]])
    excess[where] = np.where(level, 0.0, gap[head])
    return RowSums(violated == 0, violated, worst, excess)


def winners(judged: Neighbours) -> Winners:
    """Find the Condorcet winner and the Smith set of every graph."""
    owner, graphs, size = judged.owner, len(judged), judged.sizes
    possible = judged.start[1:] == judged.middle  # no judged pair that is level or lost
    candidates = np.bincount(owner[possible], minlength=graphs)
    wins = np.flatnonzero(possible & (judged.beaten == size[owner] - 1))
    winner = np.full(graphs, -1, np.int64)
    winner[owner[wins]] = wins
    candidates[owner[wins]] = 1
    verdict = np.where(winner >= 0, HOLDS, np.where(candidates == 0, FAILS, UNDETERMINED)).astype(np.int8)
    smith, member = _smith(judged)
    return Winners(verdict, winner, candidates, smith, member)


def _smith(judged: Neighbours) -> tuple[Nodes, Flags]:
    """The smallest nonempty set of each graph whose members beat all outside it: (its size, is each node in it).

    A member of a dominating set of s among m items beats at least the m − s outside, who beat at most the m − s − 1
    others of their own: a dominating set is what comes first when items are ordered by how many they beat. The first s
    of this order are one when s (m − s) edges lead out of them.
    """
    start, owner, wins = judged.node_start, judged.owner, judged.beaten
    order = np.lexsort((-wins, owner))
    place = np.argsort(order)
    i, k, _ = judged.edges
    inside = np.bincount(np.maximum(place[i], place[k]), minlength=judged.nodes)  # joins at the later of both
    leaving = np.concatenate(([0], np.cumsum(wins[order] - inside)))
    graph = owner  # of the places: graphs stay in order
    taken = np.arange(judged.nodes) - start[graph] + 1
    out = leaving[1:] - leaving[start[graph]]
    dominates = np.flatnonzero(out == taken * (judged.sizes[graph] - taken))
    head = dominates[Ragged.runs(graph[dominates]).first]
    smith = np.zeros(len(judged), np.int64)
    smith[graph[head]] = taken[head]
    return smith, place - start[owner] < smith[owner]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Facts of the mean adjacency s of each graph, d_ij = s_ij − s_ji; arrays have one entry per graph.

    A pair that was never judged is unknown, not level. Nodes are those of the batch; evidence is nodes and weights.
    """

    node_start: Nodes
    items: Nodes
    pairs: Nodes
    """Judged pairs."""
    level: Nodes
    """Judged pairs without a net preference."""
    components: Nodes
    """Sets of items that judged pairs connect; an item that was never judged is one of its own."""
    acyclic: Flags
    """The difference graph has no cycle."""
    cycles: Cycles
    """Strong components of the difference graph; shortest cycles as evidence."""
    low_noise: NDArray[np.int8]
    """Definition 4, a place in ``VERDICTS``."""
    triples: Triples
    """The paths i → j → k that it is about."""
    heavier_paths: HeavierPaths
    """Longer paths that decide it where these leave it open."""
    row_sums: RowSums
    """Condition (16) of ICML, on what was judged."""
    winners: Winners
    """Condorcet winner and Smith set."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def complete(self) -> Flags:
        """Every pair of items was judged: nothing is unknown."""
        return np.asarray(2 * self.pairs == self.items * (self.items - 1))


def shapes(mean: Graphs) -> Shapes:
    """Return what the difference graph of each population is like.

    - **acyclic**: then a topological order has the least pairwise loss (10); else ``cycles`` shows shortest ones.
    - **low noise** (Definition 4): d_ik ≥ d_ij + d_jk for all edges i → j, j → k. It *holds* when every such pair
      (i, k) was judged and reaches the sum (equality does, and so does what is short of it by 1e-12 of the three
      pairs' weight); it *fails* when a judged pair (a level one has d = 0) falls short, or, whatever the pairs
      never judged would be, when there is a cycle or a judged pair that a longer path outweighs (``heavier_paths``).
      Otherwise it is *undetermined*: a pair it needs was never judged (``triples.missing``), and some values of such
      pairs would make it hold, others fail; or there are too many paths (``triples.left_out``).
    - **row sums** (ICML (16)): Σ_j d_ij > Σ_j d_kj whenever d_ik > 0. Sums run over the judged pairs. On sparse data
      this is a statement about the population as it was sampled, which is also the one that loss (10) and the
      value-regularised linear surrogate are evaluated on: where it holds, the order by row sums contradicts no judged
      pair. It says nothing of pairs never judged.
    - **Condorcet winner**: the item with d > 0 against every other one. There is none when each item has a judged
      pair that it does not win; as long as some item has not, and was not judged against all, it is undetermined.
    - **Smith set**: the smallest nonempty set whose members all have d > 0 against all others. Level and never judged
      pairs do not separate, so on sparse data it is large; pairs judged later can only make it smaller, as long as
      the others stay as they are.

    Time and memory grow with pairs, and with the paths of two edges (bounded). ``mean`` is a batch of pair tables as
    ``mean_adjacency`` returns them. Source: Duchi, Mackey and Jordan (2013), §3.2, Definition 4; (2010), (16).

    >>> from concordant.auditing.transitivity import VERDICTS
    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.ranking.adjacency import mean_adjacency
    >>> votes = Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "a"], count=[3, 2, 1])
    >>> found = shapes(mean_adjacency(Batch.whole(votes)))
    >>> found.acyclic.tolist(), found.cycles.node.tolist(), VERDICTS[found.low_noise[0]], found.winners.smith.tolist()
    ([False], [0, 1, 2], 'fails', [3])
    """
    judged = Neighbours.of(mean)
    ways, paths = cycles(judged), triples(judged)
    pairs = mean.pairs.sizes
    edges = np.diff(Ragged.of_sizes(judged.beaten).start[mean.node_start])
    acyclic = ways.largest <= 1
    fails = (paths.violated > 0) | ~acyclic
    open_ = ~fails & ((paths.unknown > 0) | (paths.left_out > 0))
    longer = heavier_paths(judged, np.flatnonzero(open_))
    fails |= longer.pair[:, 0] >= 0
    return Shapes(
        mean.node_start,
        mean.sizes,
        pairs,
        pairs - edges,
        mean.node_groups.most(connectivity(mean).component + 1).astype(np.int64),
        acyclic,
        ways,
        np.where(fails, FAILS, np.where(open_, UNDETERMINED, HOLDS)).astype(np.int8),
        paths,
        longer,
        row_sums(judged),
        winners(judged),
    )
