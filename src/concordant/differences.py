"""Difference graphs: what is left of the mean preferences of each graph when opposite ones cancel (AoS §3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.graphs import Graphs
from concordant.listing import entry_owner

__all__ = ["LEVEL", "Differences", "net_weights"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
LEVEL = 1e-12
"""Share of a pair's weight below which its difference is 0: sums in another order must not make an edge."""


def net_weights(mean: Graphs) -> Floats:
    """Return s_jl − s_lj of each pair (first, second), 0 where only rounding is left; shape (pairs,)."""
    net = mean.above - mean.below
    return np.where(np.abs(net) <= LEVEL * (mean.above + mean.below), 0.0, net)


@dataclass(frozen=True, eq=False)
class Differences:
    """Edges i → j of weight d_ij = s_ij − s_ji > 0, sorted by graph, winner, loser; and judged pairs that are level.

    A pair of the same graph that is in neither was never judged: its difference is unknown, not 0.

    >>> from concordant.graphs import Batch
    >>> from concordant.preferences import Preferences
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
        order = kept[np.lexsort((loser[kept], winner[kept]))]  # nodes of a graph are together: graphs stay in order
        per_graph = np.bincount(mean.graph[kept], minlength=len(mean))
        start = np.concatenate(([0], np.cumsum(per_graph))).astype(np.int64)
        return cls(
            mean.node_start, start, winner[order], loser[order], np.abs(net)[order], mean.first[level],
            mean.second[level],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.node_start) - 1

    @property
    def nodes(self) -> int:
        return int(self.node_start[-1])

    @cached_property
    def graph(self) -> Nodes:
        """The graph of each edge."""
        return entry_owner(self.edge_start)

    @cached_property
    def owner(self) -> Nodes:
        """The graph of each node."""
        return entry_owner(self.node_start)
