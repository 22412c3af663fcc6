"""The order of each graph that is best for the pairwise loss: exact where it can be, else with a proven bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.best_order.components import Components
from concordant.best_order.grids import grids
from concordant.best_order.programme import LARGEST, TOLERANCE, solve
from concordant.differences import Differences
from concordant.errors import UsageError
from concordant.graphs import Graphs
from concordant.kernels.columns import read_only
from concordant.listing import entry_owner
from concordant.threads import in_parts

__all__ = ["METHODS", "MOST_EXACT", "BestOrders", "best_orders"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
METHODS = (
    "topological",
    "dynamic programming",
    "local search that met its bound",
    "integer programme",
    "local search",
    "local search cut short: too large",
)
"""How an order was found, the surest way first; the first three are exact."""
TOPOLOGICAL, DYNAMIC, MET, INTEGER, SEARCHED, CUT_SHORT = range(len(METHODS))
MOST_EXACT = 24
"""Items up to which subsets can be gone through (2^24 of them take 128 MiB)."""
WORK, WORK_PER_EDGE = 1_000_000, 100
"""Visits of edges that a component's search may take, at most their sum."""
CHUNK = 1 << 22
"""Visits of edges that a thread takes on at a time."""
MET_BOUND = 1e-11
"""Share of a component's weight by which loss and bound may differ and are still equal."""


@dataclass(frozen=True, eq=False)
class BestOrders:
    """An order of every graph's items with what is proven of its pairwise loss."""

    place: Nodes
    """Place of each node in its graph's order, 0 first."""
    loss: Floats
    """Pairwise loss (10) of the order in each graph, in the weights of the pair tables."""
    lower: Floats
    """No order of the graph has a smaller loss."""
    exact: NDArray[np.bool_]
    """Whether the order is proven best (by the integer program: to 3e-6 of the component's largest weight)."""
    method: NDArray[np.int8]
    """How the hardest component of each graph was ordered: index into METHODS."""
    largest: Nodes
    """Items of the largest strongly connected component of each graph; 1 where it is acyclic, 0 without items."""

    @cached_property
    def gap(self) -> Floats:
        """How much smaller the least loss could be: loss − lower."""
        return self.loss - self.lower

    def __len__(self) -> int:
        return len(self.loss)


def best_orders(
    mean: Graphs, *, exact_up_to: int = 12, programme: bool = False, time_limit: float = 10.0, seed: int = 0
) -> BestOrders:
    """Find the order of each graph with the least pairwise loss Σ s_ij 1[i is not above j].

    With d the difference graph the loss of an order is Σ over pairs of min(s_ij, s_ji) + Σ of d_ij over the edges
    i → j whose i stands below j, so the least is a minimum feedback arc set of d (a Kemeny order when judgments are
    rankings; NP-hard, Proposition 3). An acyclic d is ordered topologically. Else each strongly connected component
    by itself: by dynamic programming over subsets up to ``exact_up_to`` items (24 at most); beyond that by a bounded
    local search, whose bound is a packing of edge-disjoint cycles; where the search does not meet its bound and
    ``programme`` is asked for, by an integer program of at most ``time_limit`` seconds a component.

    Orders are strict. Equal scores would not help: with ties charged the heavier direction a tie costs as much as the
    worse of the two strict orders, with ``ties="paper"`` as much as one of them.

    Where several orders are best the answer depends on the weights and the numbers of the nodes, not on the batch
    around the graph; items with more net preference stand first where nothing else decides. ``seed`` is that of the
    search. Only with a time limit that ends the integer program is the answer a matter of the machine.

    Errors: UsageError for options out of range.

    Source: Duchi, Mackey and Jordan (2013), (10), (11) and Proposition 3.

    >>> from concordant.graphs import Batch
    >>> from concordant.preferences import Preferences
    >>> from concordant.structures.adjacency import mean_adjacency
    >>> votes = Preferences.from_comparisons(["x", "y", "z"], ["y", "z", "x"], count=[3, 2, 1])
    >>> best = best_orders(mean_adjacency(Batch.whole(votes)))
    >>> best.place.tolist(), best.loss.round(6).tolist(), METHODS[best.method[0]]
    ([0, 1, 2], [0.166667], 'dynamic programming')
    """
    if not 0 <= exact_up_to <= MOST_EXACT:
        raise UsageError(f"exact_up_to must be 0 to {MOST_EXACT} items, not {exact_up_to}")
    if not time_limit > 0:
        raise UsageError(f"time_limit must be a positive number of seconds, not {time_limit}")
    parts = Components.of(Differences.of(mean))
    solved = _Solved.of(parts, exact_up_to, seed)
    if programme:
        solved.by_programme(time_limit)
    return solved.joined(mean)


@dataclass(eq=False)
class _Solved:
    """Order, loss and bound of each component."""

    parts: Components
    place: Nodes
    """Place within the component of each of ``parts.node``."""
    loss: Floats
    lower: Floats
    method: NDArray[np.int8]
    grid: Floats

    @classmethod
    def of(cls, parts: Components, exact_up_to: int, seed: int) -> _Solved:
        """Order the components by the kernels."""
        count = len(parts)
        solved = cls(
            parts, np.zeros(len(parts.node), np.int64), np.zeros(count), np.zeros(count), np.zeros(count, np.int8),
            np.zeros(count),
        )  # fmt: skip
        hard = parts.sizes > 1
        if hard.any():
            solved._by_subsets(np.flatnonzero(hard & (parts.sizes <= exact_up_to)))
            solved._by_search(np.flatnonzero(hard & (parts.sizes > exact_up_to)), seed)
        return solved

    def _by_subsets(self, chosen: Nodes) -> None:
        from concordant.kernels import orders as kernels

        parts = self.parts
        tables = _tables(parts)
        cost = parts.sizes[chosen] << parts.sizes[chosen]
        in_parts(lambda some: kernels.over_subsets(some, *tables, self.place, self.loss), chosen, cost, CHUNK)
        self.lower[chosen], self.method[chosen] = self.loss[chosen], DYNAMIC

    def _by_search(self, chosen: Nodes, seed: int) -> None:
        from concordant.kernels import orders_search as kernels

        if len(chosen) == 0:
            return
        parts = self.parts
        tables, whole = _tables(parts), np.ones(len(parts), np.bool_)
        self.grid = grids(parts.edge_start, parts.weight)
        edges = np.diff(parts.edge_start)[chosen]

        def work(some: Nodes) -> None:
            kernels.search(
                some, *tables, np.uint64(seed % 2**64), WORK, WORK_PER_EDGE, self.place, self.loss, self.lower, whole,
                self.grid,
            )  # fmt: skip

        in_parts(work, chosen, WORK // 20 + WORK_PER_EDGE * edges, CHUNK)
        self.method[chosen] = np.where(whole[chosen], SEARCHED, CUT_SHORT)
        met = chosen[self._met(chosen)]
        self.method[met], self.lower[met] = MET, self.loss[met]

    def _met(self, chosen: Nodes) -> NDArray[np.bool_]:
        total = np.bincount(entry_owner(self.parts.edge_start), self.parts.weight, len(self.parts))
        return np.asarray(self.loss[chosen] - self.lower[chosen] <= MET_BOUND * total[chosen])

    def by_programme(self, time_limit: float) -> None:
        """Go on with the components that the search left open, except for those too large for an integer program."""
        parts = self.parts
        for c in np.flatnonzero((self.method > MET) & (parts.sizes <= LARGEST)):
            nodes = slice(parts.node_start[c], parts.node_start[c + 1])
            edges = slice(parts.edge_start[c], parts.edge_start[c + 1])
            weight = parts.weight[edges]
            found = solve(
                parts.winner[edges], parts.loser[edges], weight, self.place[nodes], float(self.lower[c]),
                float(self.grid[c]), time_limit,
            )  # fmt: skip
            self.place[nodes], self.loss[c], self.lower[c] = found.place, found.loss, found.lower
            if found.loss - found.lower <= 3 * TOLERANCE * weight.max():
                self.lower[c] = found.loss
            self.method[c] = INTEGER

    def joined(self, mean: Graphs) -> BestOrders:
        """Put the components of each graph one below the other."""
        parts, graphs = self.parts, len(mean)
        place = np.empty(len(parts.node), np.int64)
        component = parts.number[parts.node]
        place[parts.node] = parts.places()[component] + self.place
        certain = np.bincount(mean.graph, np.minimum(mean.above, mean.below), graphs)
        loss, lower = (
            np.asarray(certain + np.bincount(parts.graph, value, graphs), np.float64)
            for value in (self.loss, self.lower)
        )
        open_ = np.bincount(parts.graph, self.lower < self.loss, graphs) > 0
        method, largest = np.zeros(graphs, np.int8), np.zeros(graphs, np.int64)
        np.maximum.at(method, parts.graph, self.method)
        np.maximum.at(largest, parts.graph, parts.sizes)
        return BestOrders(place, loss, np.where(open_, lower, loss), ~open_, method, largest)


def _tables(parts: Components) -> tuple[Nodes, Nodes, Nodes, Nodes, Floats]:
    """What the kernels read of the components."""
    start, edge_start = (read_only(values, np.int64) for values in (parts.node_start, parts.edge_start))
    winner, loser = read_only(parts.winner, np.int64), read_only(parts.loser, np.int64)
    return start, edge_start, winner, loser, read_only(parts.weight, np.float64)
