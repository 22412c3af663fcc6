"""Strong components of a surrogate's graphs: what has to be minimised, and what falls apart without cost.

Where φ ends at 0 or tends to it, the edges between strong components cost nothing: the components are moved apart in
the direction of these edges. So the infimum is the sum of the minima within strong components.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from concordant.kernels.arrays import read_only
from concordant.kernels.newton_blocks import longest_paths
from concordant.losses.objective import Objective
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Flags = NDArray[np.bool_]


def connected(objective: Objective, connection: str) -> tuple[int, Nodes]:
    """Number of the "weak" or "strong" components of all graphs, and the component of each node."""
    edges = objective.edges
    shape = (objective.nodes, objective.nodes)
    links = sparse.coo_array((np.ones(len(edges.weight), np.int8), (edges.winner, edges.loser)), shape)
    number, block = connected_components(links.tocsr(), directed=True, connection=connection)
    return int(number), block.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Packed:
    """Blocks one after the other, as kernels read them; within a block the node of most edges comes first."""

    nodes: Nodes
    """Node of the batch."""
    node_start: Nodes
    edges: Nodes
    """Arc of the objective."""
    edge_start: Nodes
    winner: Nodes
    """Counted within the block, as loser."""
    loser: Nodes


@dataclass(frozen=True, eq=False)
class Pieces:
    """Strong components (blocks) of an objective, and its connected components."""

    objective: Objective
    block: Nodes
    number: int
    component: Nodes
    components: int

    @classmethod
    def of(cls, objective: Objective) -> Pieces:
        """Find them."""
        number, block = connected(objective, "strong")
        components, component = connected(objective, "weak")
        return cls(objective, block, number, component, components)

    @cached_property
    def across(self) -> Flags:
        """Edges between blocks."""
        return np.asarray(self.block[self.objective.edges.winner] != self.block[self.objective.edges.loser])

    @cached_property
    def within(self) -> Objective:
        """The objective without the edges between blocks."""
        if not self.across.any():
            return self.objective
        return Objective(self.objective.edges.only(~self.across), self.objective.phi, self.objective.penalty)

    @cached_property
    def root(self) -> Nodes:
        """The first node of each node's block."""
        return first_nodes(self.block, self.number)

    @cached_property
    def graph(self) -> Nodes:
        """The graph of each block."""
        graph = np.zeros(self.number, np.int64)
        graph[self.block] = self.objective.owner
        return graph

    @cached_property
    def size(self) -> Nodes:
        """Nodes of each block."""
        return np.bincount(self.block, minlength=self.number)

    @cached_property
    def edges(self) -> Nodes:
        """Edges within each block."""
        return np.bincount(self.block[self.within.edges.winner], minlength=self.number)

    def largest_in_graph(self, of_blocks: NDArray[np.generic]) -> Nodes:
        """Largest value of the blocks of each graph, at least 0."""
        result = np.zeros(len(self.objective), np.int64)
        np.maximum.at(result, self.graph, of_blocks.astype(np.int64))
        return result

    def packed(self, chosen: Flags) -> Packed:
        """Lay the chosen blocks side by side; edges are those of ``within``."""
        edges = self.within.edges
        mine = np.flatnonzero(chosen[self.block])
        degree = np.bincount(edges.winner, minlength=len(self.block)) + np.bincount(
            edges.loser, minlength=len(self.block)
        )
        nodes = mine[np.lexsort((-degree[mine], self.block[mine]))]
        blocks = Ragged.of_sizes(self.size[chosen])
        place = np.zeros(len(self.block), np.int64)
        place[nodes] = blocks.place
        kept = np.flatnonzero(chosen[self.block[edges.winner]])
        kept = kept[np.argsort(self.block[edges.winner[kept]], kind="stable")]
        edge_start = Ragged.of_sizes(self.edges[chosen]).start
        return Packed(nodes, blocks.start, kept, edge_start, place[edges.winner[kept]], place[edges.loser[kept]])

    def depths(self, need: Floats) -> Floats:
        """Longest path to each block over the edges between blocks, of the lengths ``need`` (edges between blocks,)."""
        upper, lower = (
            self.block[ends[self.across]] for ends in (self.objective.edges.winner, self.objective.edges.loser)
        )
        sorter = np.argsort(upper, kind="stable")
        start = np.searchsorted(upper[sorter], np.arange(self.number + 1))
        depth = np.zeros(self.number)
        waiting = np.bincount(lower, minlength=self.number)
        longest_paths(
            read_only(start, np.int64), read_only(lower[sorter], np.int64), read_only(need[sorter], np.float64),
            waiting.astype(np.int64), depth,
        )  # fmt: skip
        return depth


def first_nodes(block: Nodes, number: int) -> Nodes:
    """The first node of each block, for every node."""
    first = np.full(number, len(block), np.int64)
    np.minimum.at(first, block, np.arange(len(block)))
    return first[block]


def levels(number: int, upper: Nodes, lower: Nodes, need: Floats) -> Floats:
    """The plain twin of ``Pieces.depths``: sweeps over all edges until nothing moves."""
    level = np.zeros(number)
    while True:
        deeper = level.copy()
        np.maximum.at(deeper, lower, level[upper] + need)
        if (deeper == level).all():
            return level
        level = deeper
