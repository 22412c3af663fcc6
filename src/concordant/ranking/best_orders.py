"""The order of each graph that is best for the pairwise loss: exact where it can be, else with a proven bound.

Difference graphs cut into strongly connected components: all that makes the best order hard lies inside these.

Weights that are whole multiples of one number, as counts are: then so is every loss, and bounds round up.

An order from elsewhere takes the place of a searched one that it beats.

The best order of a strongly connected component as an integer program with cycles added as they are needed.

Minimise Σ d_e x_e, x_e ∈ {0, 1}, with Σ_{e ∈ C} x_e ≥ 1 for every cycle C: x marks the edges that point up. Cycles are
first separated at the optima of the linear relaxation, by shortest paths, then at integer optima (Grötschel, Jünger
and Reinelt, Oper. Res. 32, 1984, whose cuts for complete graphs are the triangles).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from concordant.errors import UsageError
from concordant.kernels.arrays import in_parts, read_only
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Graphs
from concordant.preferences.ragged import Ragged
from concordant.progress import know, stage
from concordant.stages import Stage

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
        sorter = np.lexsort((first, -np.bincount(strong, lead, count) / size, owner))
        rank = np.empty(count, np.int64)
        rank[sorter] = np.arange(count)
        number = rank[strong]
        node = np.lexsort((np.arange(nodes), -lead, number))
        node_start = Ragged.of_sizes(size[sorter]).start
        local = np.empty(nodes, np.int64)
        local[node] = np.arange(nodes) - node_start[number[node]]
        above, below = number[net.winner], number[net.loser]
        inside = np.flatnonzero(above == below)
        inside = inside[np.lexsort((local[net.loser[inside]], local[net.winner[inside]], above[inside]))]
        edge_start = Ragged.counted(above[inside], count).start
        crossing = above != below
        pair = np.unique(above[crossing] * max(count, 1) + below[crossing])
        return cls(
            len(net), owner[sorter], node_start, node, number, edge_start, local[net.winner[inside]],
            local[net.loser[inside]], net.weight[inside], pair // max(count, 1), pair % max(count, 1),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def sizes(self) -> Nodes:
        """Nodes of each component."""
        return Ragged(self.node_start).sizes

    @cached_property
    def edges(self) -> Ragged:
        """The edges within each component."""
        return Ragged(self.edge_start)

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
        sorter = np.lexsort((place, self.graph))
        before = Ragged.of_sizes(self.sizes[sorter]).first
        ahead = np.empty(count, np.int64)
        ahead[sorter] = before - before[start[self.graph[sorter]]] if count else before
        return ahead


MOST = 24
"""The least weight is at most so many times the number looked for."""
LARGEST = 1e6
"""Multiples beyond this could be whole by chance."""
OFF = 1e-9
"""How far a multiple may be from whole, as a share of 1 and of itself."""


def grids(start: NDArray[np.int64], weight: Floats) -> Floats:
    """Find for each list of positive weights a number that all are multiples of, 0 where none was found.

    >>> grids(np.array([0, 2, 4]), np.array([0.2, 0.5, 1.0, 2**0.5])).tolist()
    [0.1, 0.0]
    """
    lists = Ragged(start)
    found, least = np.zeros(len(lists)), lists.least(weight)
    share = weight / lists.spread(least)
    for times in range(1, MOST + 1):
        multiple = share * times
        off = np.abs(multiple - np.round(multiple)) - OFF * multiple + (multiple > LARGEST)
        whole = (lists.most(off, 1.0) <= 0) & (found == 0)
        found[whole] = least[whole] / times
    return found


TOLERANCE = 1e-6
"""What the solver's bounds may be off by, as a share of the largest weight."""
LARGEST_PROGRAMME = 1000
"""Nodes up to which a component is worth an integer program."""
VIOLATED = 1e-6
"""How much less than 1 the x of a cycle must add up to, to be worth a constraint."""


@dataclass(frozen=True)
class Optimum:
    """The best order found, as places, and what is proven of the loss."""

    place: Nodes
    loss: float
    lower: float


def solve(
    winner: Nodes, loser: Nodes, weight: Floats, place: Nodes, lower: float, grid: float, time_limit: float
) -> Optimum:
    """Improve an order until its loss meets a proven lower bound, or until the time (seconds) is over.

    Nodes count from 0 and every edge lies on a cycle. ``lower`` is a bound that is known already; ``grid``, where it
    is not 0, is a number that all weights are multiples of: then so is the loss.
    """
    scale = float(weight.max())
    cuts = _Cuts(winner, loser, weight / scale, place, lower / scale, grid / scale, time.monotonic() + time_limit)
    for integer in (False, True):
        cuts.close(integer)
    return Optimum(cuts.place, cuts.loss * scale, cuts.lower * scale)


class _Cuts:
    """The cycles so far, the best order and the bound."""

    def __init__(
        self, winner: Nodes, loser: Nodes, weight: Floats, place: Nodes, lower: float, grid: float, deadline: float
    ) -> None:
        self.winner, self.loser, self.weight = winner, loser, weight
        self.place, self.lower, self.grid, self.deadline = place, lower, grid, deadline
        self.m = len(place)
        self.loss = self._charged(place)
        self.rows: dict[tuple[int, ...], None] = {}
        self.edge = np.full((self.m, self.m), -1)
        self.edge[winner, loser] = np.arange(len(winner))
        self._add_cycles(np.where(place[winner] > place[loser], 0.5, 0.0))

    def close(self, integer: bool) -> None:
        """Add cycles until an optimum violates none, the loss meets the bound or the time is over."""
        while self.loss - self.lower > 2 * TOLERANCE and time.monotonic() < self.deadline:
            x, proven = self._optimum(integer)
            if proven is not None:
                self._raise_bound(proven)
            if x is None:
                return
            self._try_order(x)
            if not self._add_cycles(np.round(x) if integer else x):
                return

    def _optimum(self, integer: bool) -> tuple[Floats | None, float | None]:
        """The optimum with the cycles so far, and what it proves; None where the time was over before."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        edges = np.fromiter((e for row in self.rows for e in row), np.int32)  # as HiGHS counts
        start = np.concatenate(([0], np.cumsum([len(row) for row in self.rows]))).astype(np.int32)
        matrix = csr_array((np.ones(len(edges)), edges, start), shape=(len(self.rows), len(self.weight)))
        found = milp(
            self.weight,
            integrality=np.full(len(self.weight), int(integer)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, lb=1.0),
            options={"time_limit": max(self.deadline - time.monotonic(), 0.01), "mip_rel_gap": 0.0},
        )
        if integer:
            return found.x, found.mip_dual_bound
        return (found.x, found.fun) if found.status == 0 else (None, None)

    def _raise_bound(self, proven: float) -> None:
        proven -= TOLERANCE
        if self.grid > 0:
            proven = self.grid * np.ceil(proven / self.grid)
        self.lower = max(self.lower, min(proven, self.loss))

    def _try_order(self, x: Floats) -> None:
        """Keep the order that the edges with x < ½ give, if it is better; within their cycles nothing moves."""
        kept = x < 0.5
        above, below = self.winner[kept], self.loser[kept]
        link = csr_array((np.ones(len(above)), (above, below)), shape=(self.m, self.m))
        _, strong = connected_components(link, connection="strong")
        after: dict[int, set[int]] = {int(c): set() for c in strong}
        for v, w in zip(strong[above], strong[below]):
            if v != w:
                after[int(w)].add(int(v))
        turn = {c: at for at, c in enumerate(TopologicalSorter(after).static_order())}
        order = np.lexsort((self.place, np.array([turn[int(c)] for c in strong])))
        place = np.empty(self.m, np.int64)
        place[order] = np.arange(self.m)
        loss = self._charged(place)
        if loss < self.loss:
            self.place, self.loss = place, loss

    def _add_cycles(self, x: Floats) -> bool:
        """Add a shortest cycle through each edge, where its x add up to less than 1; whether there was any."""
        length = np.maximum(x, 0.0) + 1e-9  # of equal ones the cycle with the fewest edges
        ends = (
            self.winner.astype(np.int32),
            self.loser.astype(np.int32),
        )  # the widest that dijkstra of SciPy 1.13 takes
        graph = csr_array((length, ends), shape=(self.m, self.m))
        distance, before = dijkstra(graph, return_predecessors=True)
        around = length + distance[self.loser, self.winner]
        found = len(self.rows)
        for e in np.flatnonzero(around < 1 - VIOLATED):
            v, w = int(self.winner[e]), int(self.loser[e])
            cycle = [int(e)]
            while v != w:
                u = int(before[w, v])
                cycle.append(int(self.edge[u, v]))
                v = u
            self.rows.setdefault(tuple(sorted(cycle)))
        return len(self.rows) > found

    def _charged(self, place: Nodes) -> float:
        return float(self.weight[place[self.winner] > place[self.loser]].sum())


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
SUBSETS = 2
"""What a subset of a component takes beside the visit of an edge, about."""
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

    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.ranking.adjacency import mean_adjacency
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
    solved = Solved.of(parts, exact_up_to, seed)
    if programme:
        solved.by_programme(time_limit)
    return solved.joined(mean)


@dataclass(eq=False)
class Solved:
    """Order, loss and bound of each strongly connected component."""

    parts: Components
    place: Nodes
    """Place within the component of each of ``parts.node``."""
    loss: Floats
    lower: Floats
    method: NDArray[np.int8]
    grid: Floats

    @classmethod
    def of(cls, parts: Components, exact_up_to: int, seed: int, work: int | None = None) -> Solved:
        """Order the components by the kernels; ``work``: visits of edges that the search of one may take."""
        count = len(parts)
        solved = cls(
            parts, np.zeros(len(parts.node), np.int64), np.zeros(count), np.zeros(count), np.zeros(count, np.int8),
            np.zeros(count),
        )  # fmt: skip
        hard = parts.sizes > 1
        small = parts.sizes <= exact_up_to
        few, many = np.flatnonzero(hard & small), np.flatnonzero(hard & ~small)
        most = WORK if work is None else work
        subsets, searches = parts.sizes[few] << parts.sizes[few], 2 * WORK_PER_EDGE * parts.edges.sizes[many]
        costs = SUBSETS * subsets, most // 10 + searches
        total = float(sum(cost.sum() for cost in costs))
        if total > CHUNK:
            know(ordering=total)
        with stage("ordering", total) as advance:
            solved._by_search(many, costs[1], seed, most, advance)  # first: how long they take is not known before
            solved._by_subsets(few, costs[0], advance)
        return solved

    def _by_subsets(self, chosen: Nodes, cost: Nodes, told: Stage) -> None:
        from concordant.kernels import orders as kernels

        if len(chosen) == 0:
            return
        parts = self.parts
        tables = component_tables(parts)
        in_parts(lambda some: kernels.over_subsets(some, *tables, self.place, self.loss), chosen, cost, CHUNK, told)
        self.lower[chosen], self.method[chosen] = self.loss[chosen], DYNAMIC

    def _by_search(self, chosen: Nodes, cost: Nodes, seed: int, most: int, told: Stage) -> None:
        from concordant.kernels import orders as kernels

        if len(chosen) == 0:
            return
        parts = self.parts
        tables, whole = component_tables(parts), np.ones(len(parts), np.bool_)
        self.grid = grids(parts.edge_start, parts.weight)

        def work(some: Nodes) -> None:
            kernels.search(
                some, *tables, np.uint64(seed % 2**64), most, WORK_PER_EDGE, self.place, self.loss, self.lower, whole,
                self.grid,
            )  # fmt: skip

        in_parts(work, chosen, cost, CHUNK, told)
        self.method[chosen] = np.where(whole[chosen], SEARCHED, CUT_SHORT)
        met = chosen[self._met(chosen)]
        self.method[met], self.lower[met] = MET, self.loss[met]

    def _met(self, chosen: Nodes) -> NDArray[np.bool_]:
        total = self.parts.edges.sums(self.parts.weight)
        return np.asarray(self.loss[chosen] - self.lower[chosen] <= MET_BOUND * total[chosen])

    def by_programme(self, time_limit: float) -> None:
        """Go on with the components that the search left open, except for those too large for an integer program."""
        parts = self.parts
        for c in np.flatnonzero((self.method > MET) & (parts.sizes <= LARGEST_PROGRAMME)):
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
        certain = mean.pairs.sums(np.minimum(mean.above, mean.below))
        loss, lower = (
            np.asarray(certain + np.bincount(parts.graph, value, graphs), np.float64)
            for value in (self.loss, self.lower)
        )
        open_ = np.bincount(parts.graph, self.lower < self.loss, graphs) > 0
        method, largest = np.zeros(graphs, np.int8), np.zeros(graphs, np.int64)
        np.maximum.at(method, parts.graph, self.method)
        np.maximum.at(largest, parts.graph, parts.sizes)
        return BestOrders(place, loss, np.where(open_, lower, loss), ~open_, method, largest)


def component_tables(parts: Components) -> tuple[Nodes, Nodes, Nodes, Nodes, Floats]:
    """What the kernels read of the components."""
    start, edge_start = (read_only(values, np.int64) for values in (parts.node_start, parts.edge_start))
    winner, loser = read_only(parts.winner, np.int64), read_only(parts.loser, np.int64)
    return start, edge_start, winner, loser, read_only(parts.weight, np.float64)


BETTER = 1e-9
"""Share of a graph's weight by which an order must lose less to be called better."""


def improved(best: BestOrders, mean: Graphs, scores: NDArray[np.float64]) -> tuple[BestOrders, NDArray[np.bool_]]:
    """Return the best orders, those of the scores (highest first) where they lose less, and which those are.

    Ties of the scores are broken by the order at hand. The bound and the method stay those of the search; an order
    that meets the bound is best. Shapes: ``scores`` (nodes,), NaN where a graph has none; the flags (graphs,).
    """
    order = np.lexsort((best.place, -scores, mean.owner))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - mean.node_start[mean.owner[order]]
    charged = np.where(place[mean.first] < place[mean.second], mean.below, mean.above)
    loss, total = (mean.pairs.sums(value) for value in (charged, mean.above + mean.below))
    better = ~best.exact & (loss < best.loss - BETTER * total)
    if not better.any():
        return best, better
    met = better & (loss - best.lower <= MET_BOUND * total)
    return replace(
        best,
        place=np.where(better[mean.owner], place, best.place),
        loss=np.where(better, loss, best.loss),
        lower=np.where(met, loss, best.lower),
        exact=best.exact | met,
    ), better
