"""Are the cycles of a query real? A test of “the truth is acyclic” with a stated chance of a false alarm.

*Statistic.* T is the least threshold at which the edges of p-value ≤ T contain a cycle: the best cycle's worst edge.

*Its law.* Let the truth be acyclic, and number the items along its edges, level pairs anyhow. Of each pair one
direction points back, and d ≤ 0 there: the pair points back at threshold t with chance at most a(t) ≤ t. Add the items
one by one in this order. While there is no cycle, the significant edges among the earlier items have an order of their
own. If of the new item's pairs with each connected part of the earlier items only the one with the last item in that
order points back, no edge leads from there to another neighbour in the part, and there is still no cycle. So each new
item may spare one pair for each part it joins; the spared pairs are a spanning forest F. Where pairs are independent,

    P(T ≤ t) ≤ 1 − Π_{e not in F} (1 − a_e(t)) ≤ 1 − exp(−Σ_e w_e + w(least spanning forest)),  w_e = −log(1 − a_e(t)).

With all sizes equal that is Šidák's correction for as many tests as the graph has independent cycles, pairs − items +
parts. A single cycle needs no correction (Berger's intersection–union test, Technometrics 24, 1982). Pairs too seldom
judged ever to have p ≤ t have a(t) = 0 and drop out of the graph (Tarone, Biometrics 46, 1990). Where pairs are not
independent (lists, clusters), Bonferroni's Σ a_e(t) over the pairs that can lie on a cycle holds instead. The value of
the bound at T, with what follows, gives the query's p-value.

*Pairs beyond doubt.* A pair whose votes leave no doubt of its direction will hardly point back, and need not be
corrected for as if it were level. Spend a share κ of the level α on exact confidence limits for all pairs together:
but for a chance κα, every pair whose limit is above ½ has the direction its votes show, and a_e(t) is at most the
chance that it points back at the limit. Such pairs may also order the items in blocks: as long as no pair between
blocks points back, cycles stay within blocks, and each block has a spanning forest of its own to spare. The bound with
these, at T, is compared with (1 − κ)α (Berger & Boos, J. Am. Statist. Ass. 89, 1994).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from concordant.preferences.connectivity import Differences, strong_components
from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking.edge_tests import EdgeTests, edge_tests

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Flags = NDArray[np.bool_]
DOUBT = 0.1
"""Share of the level that is spent on the directions of pairs beyond doubt."""
HOPELESS = 0.25
"""Thresholds above which nothing is computed."""
LEAST, HALVINGS = 1e-12, 12
"""Smallest p-value that is told, and steps to find it."""
PEELS = 64
"""Rounds in which items with a single pair are taken away, at most."""


@dataclass(frozen=True, eq=False)
class CycleTest:
    """Tests of “the truth is acyclic”. Shapes: ``edge_p`` (edges,), the others (graphs,)."""

    edges: EdgeTests
    edge_p: Floats
    """One-sided p-value of each net preference, by itself."""
    threshold: Floats
    """T; inf where the data have no cycle."""
    p: Floats


def cycle_test(batch: Batch, net: Differences) -> CycleTest:
    """Test the cycles of the difference graphs ``net`` of a batch."""
    graphs, tests = batch.graphs, edge_tests(batch)
    pair = graphs.pair_of(net.winner, net.loser)
    edge_p = np.where(net.winner < net.loser, tests.above[pair], tests.below[pair])
    threshold = bottlenecks(net, edge_p)
    return CycleTest(tests, edge_p, threshold, p_values(graphs, tests, threshold))


def has_cycle(node_start: Nodes, owner: Nodes, winner: Nodes, loser: Nodes) -> Flags:
    """Whether the edges winner → loser of each graph contain a directed cycle; shape (graphs,)."""
    strong = strong_components(int(node_start[-1]), winner, loser)
    on_cycle = winner[strong[winner] == strong[loser]]
    return np.bincount(owner[on_cycle], minlength=len(node_start) - 1) > 0


def bottlenecks(net: Differences, p: Floats) -> Floats:
    """The least threshold at which the edges of p-value ≤ threshold contain a cycle; inf where all do not.

    Shapes: ``p`` (edges,), the result (graphs,). By halving, for all graphs at once.
    """
    threshold = np.full(len(net), np.inf)
    strong = strong_components(net.nodes, net.winner, net.loser)
    inside = np.flatnonzero(strong[net.winner] == strong[net.loser])  # others are on no cycle
    graph = net.graph[inside]
    sorter = np.lexsort((p[inside], graph))
    inside, graph = inside[sorter], graph[sorter]
    step = np.ones(len(inside), np.int64)
    step[1:] = (p[inside][1:] > p[inside][:-1]) | (graph[1:] != graph[:-1])
    step = np.cumsum(step)  # distinct values, numbered over the batch
    low = np.full(len(net), np.iinfo(np.int64).max)
    high = np.full(len(net), -1)
    np.minimum.at(low, graph, step)
    np.maximum.at(high, graph, step)
    cyclic = high >= 0
    while (open_ := cyclic & (low < high)).any():
        middle = (low + high) // 2
        kept = inside[open_[graph] & (step <= middle[graph])]
        found = has_cycle(net.node_start, net.owner, net.winner[kept], net.loser[kept])
        high = np.where(open_ & found, middle, high)
        low = np.where(open_ & ~found, middle + 1, low)
    value = np.append(p[inside][np.flatnonzero(np.diff(step, prepend=0))], np.inf)
    threshold[cyclic] = value[high[cyclic] - 1]
    return threshold


def chance_of_cycle(graphs: Graphs, tests: EdgeTests, threshold: Floats, doubt: Floats) -> Floats:
    """Bound on the chance of a cycle of edges with p ≤ threshold in an acyclic truth; shape (graphs,).

    It holds whenever the directions of those pairs are right that are beyond ``doubt`` (graphs,), the chance that any
    of them is not. It is 1 where the threshold is 1 or more.
    """
    chance = np.ones(len(graphs))
    asked = threshold < 1.0
    pairs = np.flatnonzero(asked[graphs.graph] & (tests.votes > 0))
    either = 2.0 * np.maximum(np.bincount(graphs.graph[pairs], minlength=len(graphs)), 1)
    graph = graphs.graph[pairs]
    size, sure = tests.size(pairs, threshold[graph], (doubt / either)[graph])
    pairs, sure, size = pairs[size > 0], sure[size > 0], size[size > 0]
    first, second, graph = graphs.first[pairs], graphs.second[pairs], graphs.graph[pairs]
    if tests.independent:
        weight = -np.log1p(-size)
        down = tests.below[pairs] < tests.above[pairs]
        up, back = ~sure | ~down, ~sure | down
        source, target = np.concatenate([first[up], second[back]]), np.concatenate([second[up], first[back]])
        block = strong_components(graphs.nodes, source, target)
        one = block[first] == block[second]
        ends = first[one].astype(np.int32), second[one].astype(np.int32)  # older SciPy asks for these
        links = csr_array((weight[one], ends), shape=(graphs.nodes, graphs.nodes))
        forest = minimum_spanning_tree(links).tocoo()
        spared = np.bincount(graphs.owner[forest.coords[0]], forest.data, len(graphs))
        total = np.bincount(graph, weight, len(graphs))
        chance[asked] = -np.expm1(-np.maximum(total - spared, 0.0))[asked]
    else:
        kept = _in_core(graphs.nodes, first, second)
        chance[asked] = np.minimum(np.bincount(graph[kept], size[kept], len(graphs)), 1.0)[asked]
    return chance


def p_values(graphs: Graphs, tests: EdgeTests, threshold: Floats) -> Floats:
    """A level α at which the bound with doubt DOUBT·α is at most (1 − DOUBT)·α, the least but for rounding up by 1%.

    Shape (graphs,); 1 where there is none or the threshold is above HOPELESS. Halving finds it. That p ≤ α has a
    chance of at most α whichever level is found: where all limits with doubt DOUBT·α are right, so are the wider ones
    of every smaller level, and each bound is then one for the truth.
    """
    low, high = np.full(len(graphs), np.log(LEAST)), np.zeros(len(graphs))
    open_ = threshold <= HOPELESS
    if not open_.any():
        return np.ones(len(graphs))
    asked = np.where(open_, threshold, np.inf)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        level = np.exp(middle)
        holds = chance_of_cycle(graphs, tests, asked, DOUBT * level) <= (1 - DOUBT) * level
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return np.where(open_, np.exp(high), 1.0)


def _in_core(nodes: int, first: Nodes, second: Nodes) -> Nodes:
    """Pairs that are left when items with a single pair are taken away, again and again: no others are on a cycle."""
    kept = np.arange(len(first))
    for _ in range(PEELS):
        degree = np.bincount(first[kept], minlength=nodes) + np.bincount(second[kept], minlength=nodes)
        stay = (degree[first[kept]] > 1) & (degree[second[kept]] > 1)
        if stay.all():
            break
        kept = kept[stay]
    return kept


def cycle_at(net: Differences, p: Floats, graph: int, threshold: float) -> Nodes:
    """A cycle of the graph's edges with p ≤ threshold through its weakest edge, as nodes of the batch in order."""
    begin, end = int(net.node_start[graph]), int(net.node_start[graph + 1])
    edges = slice(int(net.edge_start[graph]), int(net.edge_start[graph + 1]))
    kept = p[edges] <= threshold
    winner, loser, value = net.winner[edges][kept] - begin, net.loser[edges][kept] - begin, p[edges][kept]
    links = csr_array((np.ones(len(winner), np.int8), (winner, loser)), shape=(end - begin, end - begin))
    strong = strong_components(end - begin, winner, loser)
    best: Nodes | None = None
    weakest = np.flatnonzero((strong[winner] == strong[loser]) & (value == threshold))
    for edge in weakest[:PEELS].tolist():
        _, previous = breadth_first_order(links, int(loser[edge]), directed=True, return_predecessors=True)
        path = [int(winner[edge])]
        while path[-1] != loser[edge]:
            path.append(int(previous[path[-1]]))
        if best is None or len(path) < len(best):
            best = np.asarray(path[::-1], np.int64) + begin
    assert best is not None
    return np.roll(best, -int(best.argmin()))


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjusted p-values that keep the expected share of false discoveries (JRSS B 57, 1995); shape as ``p``.

    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.9])).round(3).tolist()
    [0.03, 0.03, 0.9]
    """
    sorter = np.argsort(p, kind="stable")[::-1]
    scaled = np.minimum.accumulate(p[sorter] * len(p) / np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[sorter] = np.minimum(scaled, 1.0)
    return adjusted
