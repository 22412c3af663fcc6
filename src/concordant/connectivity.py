"""What the comparisons of a graph can determine: components, separated items, items never compared.

Scores of two items are comparable only when a chain of comparisons connects them. Maximum likelihood exists within a
component only when it is strongly connected: from every item a chain of wins leads to every other (Ford, Amer. Math.
Monthly 64, 1957; ties count as a win each way).
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import breadth_first_order, connected_components

from concordant.graphs import Graphs

__all__ = ["Connectivity", "connectivity"]

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
    compared: NDArray[np.bool_]
    """False for items in no comparison."""
    open_above: NDArray[np.bool_]
    open_below: NDArray[np.bool_]

    @property
    def separated(self) -> NDArray[np.bool_]:
        """Nodes whose maximum-likelihood score is infinite."""
        return self.open_above | self.open_below


_FOUND: WeakKeyDictionary[Graphs, Connectivity] = WeakKeyDictionary()


def connectivity(graphs: Graphs) -> Connectivity:
    """Find components, strong blocks and what lies beyond each component's largest block (once for each batch)."""
    if graphs not in _FOUND:
        _FOUND[graphs] = _connectivity(graphs)
    return _FOUND[graphs]


def _connectivity(graphs: Graphs) -> Connectivity:
    nodes = graphs.nodes
    if nodes == 0:
        none, no = np.zeros(0, np.int32), np.zeros(0, bool)
        return Connectivity(none, none, no, no, no)
    up, down = graphs.above > 0, graphs.below > 0
    source = np.concatenate([graphs.first[up], graphs.second[down]])
    target = np.concatenate([graphs.second[up], graphs.first[down]])
    beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
    _, weak = connected_components(beats, directed=False)
    _, strong = connected_components(beats, directed=True, connection="strong")
    compared = np.zeros(nodes, bool)
    compared[source] = compared[target] = True
    component = _by_size(weak, graphs.owner)
    main = _largest_blocks(strong, weak)
    above, below = _beyond(strong, main, source, target)
    return Connectivity(component, strong.astype(np.int32), compared, above, below)


def _by_size(group: Ints, owner: NDArray[np.int64]) -> Ints:
    """Number the groups of each graph from 0, the largest first, equal ones by their first node."""
    labels, first, inverse, size = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -size, owner[first]))
    graph = owner[first][order]
    begin = np.searchsorted(graph, graph)
    number = np.empty(len(labels), np.int32)
    number[order] = np.arange(len(labels)) - begin
    return number[inverse]


def _largest_blocks(strong: Ints, weak: Ints) -> NDArray[np.int64]:
    """For each component the number of its largest strong block (ties: the one with the first node)."""
    size = np.bincount(strong)
    order = np.lexsort((np.arange(len(strong)), -size[strong], weak))
    first = np.flatnonzero(np.diff(weak[order], prepend=-1))
    return strong[order][first].astype(np.int64)


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
