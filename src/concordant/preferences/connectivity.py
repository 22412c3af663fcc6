"""What the comparisons of a graph can determine: components, separated items, items never compared.

Scores of two items are comparable only when a chain of comparisons connects them. Maximum likelihood exists within a
component only when it is strongly connected: from every item a chain of wins leads to every other (Ford, Amer. Math.
Monthly 64, 1957; ties count as a win each way).

Difference graphs: what is left of the mean preferences of each graph when opposite ones cancel (AoS §3.2.2).

How far two groups of judges, or the judges of one group among themselves, agree on the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import breadth_first_order, connected_components

from concordant.errors import UsageError
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import OnNodes, Ragged

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Connectivity:
    """Components and strong blocks of every graph of a batch; arrays have one entry per node.

    ``open_above``: the data set no upper limit to the item's score against its component's largest block;
    ``open_below``: no lower limit.
    """

    component: Ints
    """0 the largest of its graph (ties: the one with the smallest item first)."""
    block: Ints
    """Strong block, numbered over the batch."""
    won: NDArray[np.bool_]
    """Whether the item ever came out above another one; a tie counts as a win each way."""
    lost: NDArray[np.bool_]
    open_above: NDArray[np.bool_]
    open_below: NDArray[np.bool_]

    @property
    def compared(self) -> NDArray[np.bool_]:
        """False for items in no comparison."""
        return self.won | self.lost

    @property
    def separated(self) -> NDArray[np.bool_]:
        """Nodes whose maximum-likelihood score is infinite."""
        return self.open_above | self.open_below

    @property
    def unlimited(self) -> NDArray[np.bool_]:
        """Separated nodes, and compared ones that are a block by themselves: such a block limits nothing."""
        apart = self.separated
        if not apart.any():
            return apart
        return np.asarray(apart | (self.compared & (np.bincount(self.block)[self.block] == 1)), bool)


_FOUND: WeakKeyDictionary[Graphs, Connectivity] = WeakKeyDictionary()


def connectivity(graphs: Graphs) -> Connectivity:
    """Find components, strong blocks and what lies beyond each component's largest block (once for each batch)."""
    if graphs not in _FOUND:
        _FOUND[graphs] = _connectivity(graphs)
    return _FOUND[graphs]


def _connectivity(graphs: Graphs) -> Connectivity:
    up, down = graphs.above > 0, graphs.below > 0
    source = np.concatenate([graphs.first[up], graphs.second[down]])
    target = np.concatenate([graphs.second[up], graphs.first[down]])
    return connected(graphs.node_groups, source, target)


def connected(graphs: Ragged, source: NDArray[np.int64], target: NDArray[np.int64], stops: int = 0) -> Connectivity:
    """Return what the wins source → target connect, of the nodes of some graphs and of ``stops`` numbered after them.

    A stop is no item: whoever reaches it has beaten all that it leads to, so a tier above another one is a stop
    between them and needs no edge for each pair.
    """
    items = int(graphs.start[-1])
    nodes = items + stops
    if items == 0:
        none, no = np.zeros(0, np.int32), np.zeros(0, bool)
        return Connectivity(none, none, no, no, no, no)
    beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, weak = connected_components(beats, directed=False)
    _, strong = connected_components(beats, directed=True, connection="strong")
    won, lost = np.zeros(nodes, bool), np.zeros(nodes, bool)
    won[source] = lost[target] = True
    main = _largest_blocks(strong[:items], weak[:items])
    above, below = _beyond(strong, main, source, target)
    component, block = by_size(weak[:items], graphs.owner), strong[:items].astype(np.int32)
    return Connectivity(component, block, won[:items], lost[:items], above[:items], below[:items])


def strong_components(nodes: int, source: NDArray[np.int64], target: NDArray[np.int64]) -> Ints:
    """Number the strong components of the graph with edges source → target; shape (nodes,)."""
    if nodes == 0:
        return np.zeros(0, np.int32)
    links = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    return np.asarray(connected_components(links, directed=True, connection="strong")[1], np.int32)


def by_size(group: Ints, owner: NDArray[np.int64]) -> Ints:
    """Number the groups of each graph from 0, the largest first, equal ones by their first node."""
    labels, first, inverse, size = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    sorter = np.lexsort((first, -size, owner[first]))
    graph = owner[first][sorter]
    begin = np.searchsorted(graph, graph)
    number = np.empty(len(labels), np.int32)
    number[sorter] = np.arange(len(labels)) - begin
    return number[inverse]


def _largest_blocks(strong: Ints, weak: Ints) -> NDArray[np.int64]:
    """For each component the number of its largest strong block (ties: the one with the first node)."""
    size = np.bincount(strong)
    sorter = np.lexsort((np.arange(len(strong)), -size[strong], weak))
    first = Ragged.runs(weak[sorter]).first
    return strong[sorter][first].astype(np.int64)


def _beyond(
    strong: Ints, main: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which nodes a chain of wins from the main block does not reach (open above) or that do not reach it (below)."""
    blocks = int(strong.max()) + 1
    is_main = np.zeros(blocks, bool)
    is_main[main] = True
    if is_main.all():
        closed = np.zeros(len(strong), bool)
        return closed, closed
    edge_from, edge_to = strong[source], strong[target]
    cross = edge_from != edge_to
    edge_from, edge_to = edge_from[cross], edge_to[cross]
    beaten = _reached(is_main, edge_from, edge_to)  # the main block has a chain of wins down to it
    beating = _reached(is_main, edge_to, edge_from)  # it has a chain of wins down to the main block
    return ~beaten[strong], ~beating[strong]


def _reached(
    begin: NDArray[np.bool_], edge_from: NDArray[np.integer], edge_to: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Which blocks the edges lead to from any of the first ones: one traversal from an extra vertex above these."""
    blocks = len(begin)
    graph = csr_array((np.ones(len(edge_from), np.int8), (edge_from, edge_to)), shape=(blocks, blocks))
    root = csr_array(begin[None, :].astype(np.int8))
    whole = vstack([graph, root]).tocsr()
    whole.resize((blocks + 1, blocks + 1))
    order = breadth_first_order(whole, blocks, directed=True, return_predecessors=False)
    seen = np.zeros(blocks + 1, bool)
    seen[order] = True
    return seen[:-1]


Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
LEVEL = 1e-12
"""Share of a pair's weight below which its difference is 0: sums in another order must not make an edge."""


def net_weights(mean: Graphs) -> Floats:
    """Return s_jl − s_lj of each pair (first, second), 0 where only rounding is left; shape (pairs,)."""
    net = mean.above - mean.below
    return np.where(np.abs(net) <= LEVEL * (mean.above + mean.below), 0.0, net)


@dataclass(frozen=True, eq=False)
class Differences(OnNodes):
    """Edges i → j of weight d_ij = s_ij − s_ji > 0, sorted by graph, winner, loser; and judged pairs that are level.

    A pair of the same graph that is in neither was never judged: its difference is unknown, not 0.

    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "y", "z", "y"], ["y", "y", "x", "y", "z"])
    >>> net = Differences.of(Batch.whole(votes).graphs)
    >>> net.winner.tolist(), net.loser.tolist(), net.weight.tolist(), net.level_first.tolist()
    ([0], [1], [1.0], [1])
    """

    node_start: Nodes
    edge_start: Nodes
    """Edges of graph g are edge_start[g]:edge_start[g + 1]."""
    winner: Nodes
    """Node of the batch (not within the graph)."""
    loser: Nodes
    weight: Floats
    level_first: Nodes
    """Judged pairs without a net preference, first < second, sorted by graph, first, second."""
    level_second: Nodes

    @classmethod
    def of(cls, mean: Graphs) -> Differences:
        """Take the differences of pair tables without covariates (ties are half a win each way)."""
        net = net_weights(mean)
        level = net == 0
        up = net > 0
        winner, loser = np.where(up, mean.first, mean.second), np.where(up, mean.second, mean.first)
        kept = np.flatnonzero(~level)
        sorter = kept[np.lexsort((loser[kept], winner[kept]))]  # nodes of a graph are together: graphs stay in order
        start = Ragged.counted(mean.graph[kept], len(mean)).start
        return cls(
            mean.node_start, start, winner[sorter], loser[sorter], np.abs(net)[sorter], mean.first[level],
            mean.second[level],
        )  # fmt: skip

    @cached_property
    def edges(self) -> Ragged:
        """The edges of each graph."""
        return Ragged(self.edge_start)

    @property
    def graph(self) -> Nodes:
        """The graph of each edge."""
        return self.edges.owner


@dataclass(frozen=True)
class Agreement:
    """The share of comparable cases in which two verdicts were the same, and the number of these cases."""

    share: float
    """NaN when there are no cases."""
    pairs: int


def majority_agreement(one: Preferences, other: Preferences) -> Agreement:
    """Share of the pairs on which the majorities of both prefer an item in which they prefer the same one.

    Pairs are matched by query and labels; a pair whose votes balance in one of them has no majority and is left out.

    >>> people = Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])
    >>> machine = Preferences.from_comparisons(["a", "c"], ["b", "b"])
    >>> majority_agreement(people, machine)
    Agreement(share=0.5, pairs=2)
    """
    signs = [_majorities(prefs) for prefs in (one, other)]
    common = signs[0].keys() & signs[1].keys()
    same = sum(signs[0][pair] == signs[1][pair] for pair in common)
    return Agreement(same / len(common) if common else float("nan"), len(common))


def within_agreement(prefs: Preferences) -> Agreement:
    """Share of all pairs of decided judgments on the same two items that name the same winner.

    With w wins one way and l the other a pair has w·l disagreements and C(w, 2) + C(l, 2) agreements; ties are left
    out.

    >>> within_agreement(Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"]))
    Agreement(share=0.3333333333333333, pairs=3)
    """
    graphs = _pairs(prefs).graphs
    wins, losses = graphs.wins, graphs.losses
    agree = float((wins * (wins - 1) + losses * (losses - 1)).sum() / 2)
    cases = agree + float((wins * losses).sum())
    return Agreement(agree / cases if cases else float("nan"), round(cases))


def _pairs(prefs: Preferences) -> Batch:
    if isinstance(prefs, Lists):
        raise UsageError(f"agreement on pairs needs comparisons, not {prefs.kind}")
    return Batch.whole(prefs)


def _majorities(prefs: Preferences) -> dict[tuple[object, object, object], int]:
    batch = _pairs(prefs)
    graphs = batch.graphs
    decided = np.flatnonzero(graphs.wins != graphs.losses)
    query = prefs.queries.take(batch.query[graphs.graph[decided]]).to_pylist()
    first, second = (_labels(batch, node[decided]) for node in (graphs.first, graphs.second))
    sign = np.sign(graphs.wins[decided] - graphs.losses[decided]).astype(int).tolist()
    return {(q, a, b): s for q, a, b, s in zip(query, first, second, sign, strict=True)}


def _labels(batch: Batch, nodes: NDArray[np.int64]) -> list[object]:
    return list(batch.prefs.items.take(batch.item[nodes]).to_pylist())
