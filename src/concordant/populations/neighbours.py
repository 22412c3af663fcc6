"""The judged pairs of each item, those that it wins first: the difference graph as rows, level pairs not lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.differences import net_weights
from concordant.graphs import Graphs
from concordant.kernels.columns import read_only
from concordant.listing import entry_owner

__all__ = ["Neighbours"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Neighbours:
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
        order = np.argsort(key, kind="stable")
        key = key[order]
        pair = order - pairs * (order >= pairs)
        other = np.where(order >= pairs, mean.second[pair], mean.first[pair]).astype(np.int32)
        signed = np.where(order >= pairs, net[pair], -net[pair])
        bounds = np.searchsorted(key, np.arange(2 * mean.nodes + 1))
        return cls(mean.node_start, bounds[::2], bounds[1::2], other, signed + 0.0, weight[pair])

    @property
    def nodes(self) -> int:
        return len(self.start) - 1

    @cached_property
    def owner(self) -> Nodes:
        """The graph of each node."""
        return entry_owner(self.node_start)

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
        return entry_owner(self.start)[entry], self.other[entry].astype(np.int64), entry
