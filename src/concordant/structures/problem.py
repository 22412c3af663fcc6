"""What is maximised: the pairs of some graphs, side by side, with the covariates of the comparisons and the prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from concordant.listing import take_lists

__all__ = ["Problem"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Some graphs without gaps: pairs sorted by first node, scaled covariates, and what is maximised.

    Extra parameters of a graph are the covariates' coefficients and, with ``ties``, log ν.
    """

    node_start: Ints
    pair_start: Ints
    first: Ints
    second: Ints
    above: Floats
    """Wins, with half the ties where these are no outcome of their own."""
    below: Floats
    ties: Floats | None
    """Strength of ties where they are an outcome of their own (Davidson)."""
    covariates: Floats | None
    component: Ints
    """Number over the batch of each node's component."""
    prior: float
    offset: Floats | None = None
    """What the prior's means add to the margin of each pair."""

    @property
    def graphs(self) -> int:
        return len(self.node_start) - 1

    @property
    def nodes(self) -> int:
        return int(self.node_start[-1])

    @property
    def extras(self) -> int:
        columns = 0 if self.covariates is None else self.covariates.shape[1]
        return columns + (self.ties is not None)

    def take(self, chosen: Ints) -> Problem:
        """Return the problem of some of the graphs, in their order."""
        node_start, nodes = take_lists(self.node_start, chosen)
        pair_start, pairs = take_lists(self.pair_start, chosen)
        place = np.zeros(self.nodes, np.int64)
        place[nodes] = np.arange(len(nodes))
        return replace(
            self,
            node_start=node_start,
            pair_start=pair_start,
            first=place[self.first[pairs]],
            second=place[self.second[pairs]],
            above=self.above[pairs],
            below=self.below[pairs],
            ties=None if self.ties is None else self.ties[pairs],
            covariates=None if self.covariates is None else self.covariates[pairs],
            component=np.unique(self.component[nodes], return_inverse=True)[1],
            offset=None if self.offset is None else self.offset[pairs],
        )

    def part(self, begin: int, end: int) -> Problem:
        """Return the problem of the graphs begin … end − 1."""
        nodes = slice(int(self.node_start[begin]), int(self.node_start[end]))
        pairs = slice(int(self.pair_start[begin]), int(self.pair_start[end]))
        component = self.component[nodes]
        return replace(
            self,
            node_start=self.node_start[begin : end + 1] - nodes.start,
            pair_start=self.pair_start[begin : end + 1] - pairs.start,
            first=self.first[pairs] - nodes.start,
            second=self.second[pairs] - nodes.start,
            above=self.above[pairs],
            below=self.below[pairs],
            ties=None if self.ties is None else self.ties[pairs],
            covariates=None if self.covariates is None else self.covariates[pairs],
            component=component - component.min(),
            offset=None if self.offset is None else self.offset[pairs],
        )
