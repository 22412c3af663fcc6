"""Difference graphs cut into strongly connected components: all that makes the best order hard lies inside these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from concordant.differences import Differences
from concordant.kernels.columns import read_only

__all__ = ["Components"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Components:
    """Strongly connected components by graph, then by their mean net preference (the largest first), then first node.

    The nodes of a component stand by net preference Σ_j d_ij − d_ji, the largest first, then by number.
    """

    graphs: int
    graph: Nodes
    """The graph of each component."""
    node_start: Nodes
    """Where each component's nodes begin in ``node``."""
    node: Nodes
    number: Nodes
    """The component of each node of the batch."""
    edge_start: Nodes
    """Where the edges within each component begin."""
    winner: Nodes
    """Number within its component, from 0, as ``loser``; edges stand by component, winner, loser."""
    loser: Nodes
    weight: Floats
    cross_from: Nodes
    """Components that an edge joins, from the one above to the one below, each pair once."""
    cross_to: Nodes

    @classmethod
    def of(cls, net: Differences) -> Components:
        nodes = net.nodes
        link = csr_array((np.ones(len(net.winner), np.int8), (net.winner, net.loser)), shape=(nodes, nodes))
        count, strong = connected_components(link, connection="strong") if nodes else (0, np.zeros(0, np.int32))
        lead = np.bincount(net.winner, net.weight, nodes) - np.bincount(net.loser, net.weight, nodes)
        size = np.bincount(strong, minlength=count)
        first = np.full(count, nodes)
        np.minimum.at(first, strong, np.arange(nodes))
        owner = net.owner[first]
        order = np.lexsort((first, -np.bincount(strong, lead, count) / size, owner))
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        number = rank[strong]
        node = np.lexsort((np.arange(nodes), -lead, number))
        node_start = np.concatenate(([0], np.cumsum(size[order]))).astype(np.int64)
        local = np.empty(nodes, np.int64)
        local[node] = np.arange(nodes) - node_start[number[node]]
        above, below = number[net.winner], number[net.loser]
        inside = np.flatnonzero(above == below)
        inside = inside[np.lexsort((local[net.loser[inside]], local[net.winner[inside]], above[inside]))]
        edge_start = np.concatenate(([0], np.cumsum(np.bincount(above[inside], minlength=count)))).astype(np.int64)
        crossing = above != below
        pair = np.unique(above[crossing] * max(count, 1) + below[crossing])
        return cls(
            len(net), owner[order], node_start, node, number, edge_start, local[net.winner[inside]],
            local[net.loser[inside]], net.weight[inside], pair // max(count, 1), pair % max(count, 1),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def sizes(self) -> Nodes:
        """Nodes of each component."""
        return np.diff(self.node_start)

    def places(self) -> Nodes:
        """Place of each component in its graph, counted in nodes that stand before it."""
        from concordant.kernels import orders as kernels

        count = len(self)
        start = np.searchsorted(self.graph, np.arange(self.graphs + 1))
        out = np.searchsorted(self.cross_from, np.arange(count + 1))
        entering = np.bincount(self.cross_to, minlength=count)
        place = np.empty(count, np.int64)
        kernels.topological(
            read_only(start, np.int64), read_only(out, np.int64), read_only(self.cross_to, np.int64),
            entering.astype(np.int64), place,
        )  # fmt: skip
        order = np.lexsort((place, self.graph))
        before = np.concatenate(([0], np.cumsum(self.sizes[order])))[:-1]
        ahead = np.empty(count, np.int64)
        ahead[order] = before - before[start[self.graph[order]]] if count else before
        return ahead
