"""Ragged batches: which judgments make up each graph, and the pair tables that structure functions read.

A leaderboard is a batch of one graph, a log with queries one graph per query, a U-statistic one graph per query and
k-subset (AoS §4, (18)). A structure function is written once, for a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.errors import UsageError
from concordant.preferences.counts import BITS, bit_width, distinct_rows, narrow, pack, rows_alike, tally
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import Grouped, OnNodes, Ragged, affordable, chosen_over
from concordant.preferences.sampling import draw_subsets, label_keys

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch(Grouped, OnNodes):
    """The judgments of each graph, with multiplicity.

    All items of a graph's query are its nodes, touched by its judgments or not, so scores of subsets of one query
    line up.

    >>> votes = Preferences.from_comparisons(["x", "y", "x"], ["y", "z", "z"])
    >>> whole = Batch.whole(votes)
    >>> len(whole), whole.item.tolist(), whole.judgments.tolist()
    (1, [0, 1, 2], [3])
    """

    prefs: Preferences
    query: Ints
    """Query code of each graph."""
    start: Offsets
    """Judgments of graph g are start[g]:start[g + 1] of the two columns below."""
    judgment: NDArray[np.int64]
    """Which distinct judgment of prefs."""
    multiplicity: NDArray[np.int64]
    """How many times the graph holds it."""

    @classmethod
    def whole(cls, prefs: Preferences, queries: NDArray[np.integer] | None = None) -> Batch:
        """One graph per query (codes; all when not given) with all its judgments."""
        codes = np.arange(len(prefs.queries)) if queries is None else np.asarray(queries)
        if np.array_equal(codes, np.arange(len(prefs.queries))):
            return _Every(prefs)
        held, judgment = prefs.groups.take(codes)
        return cls(prefs, codes.astype(np.int32), held.start, judgment, prefs.count[judgment].astype(np.int64))

    @classmethod
    def subsets(
        cls,
        prefs: Preferences,
        k: int,
        subsets: int,
        *,
        seed: int = 0,
        partition: bool = False,
        queries: NDArray[np.integer] | None = None,
    ) -> Batch:
        """Draw ``subsets`` graphs of k judgments for each query, without replacement from the counts.

        Multiplicities follow the multivariate hypergeometric law. A query with at most k judgments has one graph with
        all of them (AoS, below (18)).

        Parameters
        ----------
        prefs : the judgments that are drawn from.
        k, subsets : judgments of a graph, and graphs of a query.
        seed : the draws of a query depend on it and on the query's label only.
        partition : whether the graphs of a query are blocks of random permutations.
        queries : codes of the queries, one after another; None, all.
        """
        if k < 1 or subsets < 1:
            raise UsageError(f"k and the number of subsets must be at least 1, not {k} and {subsets}")
        codes = np.arange(len(prefs.queries)) if queries is None else np.asarray(queries)
        total = prefs.judgments[codes]
        keys = label_keys(Labels(prefs.queries.take(codes)), seed)
        owner, offsets, position = draw_subsets(total, keys, k, subsets, partition=partition)
        before = np.concatenate(([0], np.cumsum(prefs.count, dtype=np.int64)))
        first = before[prefs.start[:-1][codes]]
        draws = Ragged(offsets)
        judgment = np.searchsorted(before, position + draws.spread(first[owner]), side="right") - 1
        same = Ragged.runs(judgment, draws.owner)
        begin = same.first
        start = Ragged.counted(draws.owner[begin], len(owner)).start
        return cls(prefs, codes[owner].astype(np.int32), start, judgment[begin], same.sizes)

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def judgments(self) -> NDArray[np.int64]:
        """Number of judgments of each graph."""
        if self.kinds is not None:
            return self.kinds.batch.judgments
        total = np.concatenate(([0], np.cumsum(self.multiplicity)))
        return np.asarray(np.diff(total[self.start]), np.int64)

    @cached_property
    def graph(self) -> NDArray[np.int64]:
        """The graph of each held judgment."""
        return self.groups.owner

    @cached_property
    def _nodes(self) -> tuple[Ragged, NDArray[np.int64]]:
        return self._known.member_groups.take(self.query)

    @cached_property
    def node_start(self) -> Offsets:  # type: ignore[override]
        """Nodes of graph g are node_start[g]:node_start[g + 1]."""
        return self._nodes[0].start

    @cached_property
    def item(self) -> Ints:
        """Item code of each node, ascending within a graph."""
        return self._known.members[1][self._nodes[1]]

    @property
    def _known(self) -> Preferences:
        """Preferences with the same items in each query."""
        return self.prefs if self.kinds is None else self.kinds.batch.prefs

    def node_of(self, graph: NDArray[np.integer], item: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the node of an item in a graph (the item must belong to the graph's query)."""
        width = max(len(self.prefs.items), 1)
        if len(self.item) == len(self) * width:  # every query has every item
            return graph.astype(np.int64) * width + item
        if len(self) * width <= max(8 * len(self.item), 1 << 24):
            table = np.zeros(len(self) * width, np.int32)
            table[self.owner * width + self.item] = np.arange(len(self.item), dtype=np.int32)
            return table[graph.astype(np.int64) * width + item].astype(np.int64)
        ordered = self.owner * width + self.item
        return np.searchsorted(ordered, graph.astype(np.int64) * width + item)

    def sides(self, prefs: Comparisons) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nodes of winner and loser of each held comparison."""
        winner, loser = prefs.winner[self.judgment], prefs.loser[self.judgment]
        return self.node_of(self.graph, winner), self.node_of(self.graph, loser)

    def entries(self, prefs: Lists) -> tuple[Ragged, NDArray[np.int64], Floats]:
        """Return the entries of each held list, and the node and the value of each entry."""
        if "_listed" not in vars(self):
            lists, entries = prefs.lists.take(self.judgment)
            node = self.node_of(lists.spread(self.graph), prefs.list_item[entries])
            vars(self)["_listed"] = lists, node, prefs.list_value[entries]
        found: tuple[Ragged, NDArray[np.int64], Floats] = vars(self)["_listed"]
        return found

    @cached_property
    def edges(self) -> Edges:
        """Every judgment's edges, one by one (for what must not lose the judgment: clusters, sandwiches)."""
        return Edges.of(self)

    @cached_property
    def graphs(self) -> Graphs:
        """The pair table of each graph."""
        return Graphs.of(self if self.kinds is None else self.kinds.batch)

    @cached_property
    def kinds(self) -> Kinds | None:
        """What is the same but for who made it, once; None where judgments are no plain comparisons with clusters."""
        return Kinds.of(self, self.prefs) if isinstance(self.prefs, Comparisons) else None


class _Every(Batch):
    """All judgments of all queries; the long columns are made where somebody asks for them."""

    def __init__(self, prefs: Preferences, **_: Any) -> None:  # ``replace`` names the columns, too
        codes = np.arange(len(prefs.queries), dtype=np.int32)
        vars(self).update(prefs=prefs, query=codes, start=prefs.start)

    @cached_property
    def judgment(self) -> NDArray[np.int64]:
        return np.arange(self.prefs.distinct, dtype=np.int64)

    @cached_property
    def multiplicity(self) -> NDArray[np.int64]:
        return self.prefs.count.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Comparisons that differ in nothing but their cluster, once, and how often each cluster made them.

    What a leaderboard of 200 items asks of 10⁷ votes of 20,000 people: 40,000 kinds and one sparse matrix.

    >>> votes = Preferences.from_comparisons(list("xxy"), list("yyx"), cluster=["a", "b", "b"])
    >>> kinds = Batch.whole(votes).kinds
    >>> kinds.batch.multiplicity.tolist(), kinds.who.toarray().tolist()
    ([2, 1], [[1, 1], [0, 1]])
    """

    prefs: Comparisons
    """Without clusters."""
    batch: Batch
    """The same graphs on the same nodes."""
    who: csr_array
    """Shape (kinds, units): how often each unit, a cluster of a graph, made it; integers."""
    graph: NDArray[np.int64]
    """The graph of each unit, ascending, then cluster."""

    @classmethod
    def of(cls, batch: Batch, prefs: Comparisons) -> Kinds | None:
        """Find the kinds of a batch of whole queries; they are neighbours, as judgments stand in canonical order."""
        plain = prefs.covariates is None and prefs.time is None and not prefs.weighted and not prefs.cluster_columns
        every = isinstance(batch, _Every)
        whole = every or (
            bool((np.diff(batch.query) > 0).all()) and len(batch.judgment) == prefs.groups.sizes[batch.query].sum()
        )
        if prefs.cluster is None or prefs.clusters is None or not (plain and whole):
            return None
        held: Any = slice(None) if every else batch.judgment
        times = prefs.count if every else batch.multiplicity
        cluster, winner, loser = prefs.cluster[held], prefs.winner[held], prefs.loser[held]
        tie = None if prefs.tie is None else prefs.tie[held]
        begin = np.zeros(len(cluster), bool)
        begin[batch.start[:-1][batch.groups.sizes > 0]] = True
        for column in (winner, loser, *([] if tie is None else [tie])):
            begin[1:] |= column[1:] != column[:-1]
        first = np.flatnonzero(begin)
        start, units = np.searchsorted(first, batch.start), len(prefs.clusters)
        if len(batch) > 1:  # the clusters of each graph
            unit = batch.graph * units + cluster
            present, unit = np.unique(unit, return_inverse=True)
            graph = present // units
        else:
            unit, graph = cluster, np.zeros(units, np.int64)
        count = np.add.reduceat(times, first, dtype=np.int64) if len(first) else times.astype(np.int64)
        sizes = np.zeros(len(prefs.queries), np.int64)
        sizes[batch.query] = np.diff(start)
        columns: dict[str, Any] = {
            "winner": winner[first],
            "loser": loser[first],
            "tie": None if tie is None else tie[first],
        }
        columns |= {"start": Ragged.of_sizes(sizes).start, "count": narrow(count), "cluster": None, "clusters": None}
        kinds = replace(prefs, **columns)
        of_kinds = Batch(kinds, batch.query, start, np.arange(len(first)), count)
        pointers = np.append(first, len(cluster))
        who = csr_array((times, unit, pointers), shape=(len(first), len(graph)))
        return cls(kinds, of_kinds, who, graph)

    def signs(self, graphs: Graphs) -> csr_array:
        """Shape (pairs, kinds): 1 where a kind is a win of the first of the pair, −1 of the second, nothing of ties."""
        prefs, (winner, loser) = self.prefs, self.batch.sides(self.prefs)
        pair, sign = graphs.pair_of(winner, loser), np.where(winner < loser, 1, -1).astype(self.who.dtype)
        kind = np.arange(len(pair)) if prefs.tie is None else np.flatnonzero(~prefs.tie)
        shape = (len(graphs.first), len(pair))
        return csr_array((sign[kind], (pair[kind], kind)), shape=shape)

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Number of units of each graph that made a judgment."""
        if len(self.batch) > 1:
            return np.bincount(self.graph, minlength=len(self.batch)).astype(np.int64)
        if len(self.batch.prefs.queries) == 1:  # every label is used
            return np.array([self.who.shape[1]])
        return np.array([np.count_nonzero(np.bincount(self.who.indices, minlength=1))])


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of each held judgment, before pairs are added up.

    A comparison has one edge, one whose win is shared two. An order has one for every pair of its items, a tie being
    half a win each way; a rating list one for every pair rated differently, as strong as the difference; a choice one
    from the chosen item to every other shown; a selection one from each clicked item to every item above it that the
    user examined and passed over (the cascade's reading). A list without a click has none.
    """

    holder: NDArray[np.int64]
    """Place of the judgment in the batch's columns."""
    winner: NDArray[np.int64]
    """Node."""
    loser: NDArray[np.int64]
    strength: Floats
    """Strength of one draw (not times multiplicity)."""
    tie: NDArray[np.bool_]
    covariates: Floats | None
    """Winner minus loser."""

    @classmethod
    def of(cls, batch: Batch) -> Edges:
        prefs = batch.prefs
        if isinstance(prefs, Comparisons):
            return _edges_of_comparisons(batch, prefs)
        if isinstance(prefs, Lists):
            return _edges_of_lists(batch, prefs)
        none = np.zeros(0, np.int64)
        return cls(none, none, none, np.zeros(0), np.zeros(0, bool), None)


@dataclass(frozen=True, eq=False)
class Graphs(OnNodes):
    """Pair tables: for each graph the pairs that were judged, with the strength of wins either way and of ties.

    Pairs stand once (``first < second``), sorted by graph, first, second; with covariates once for each value.

    >>> from concordant.preferences.preferences import Preferences
    >>> graphs = Batch.whole(Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"])).graphs
    >>> graphs.wins.tolist(), graphs.losses.tolist()
    ([2.0], [1.0])
    """

    node_start: Offsets
    pair_start: Offsets
    """Pairs of graph g are pair_start[g]:pair_start[g + 1]."""
    first: NDArray[np.int64]
    """Node in the batch (not within the graph)."""
    second: NDArray[np.int64]
    wins: Floats
    """Strength of judgments first ≻ second (ties not included)."""
    losses: Floats
    """Strength of judgments second ≻ first."""
    ties: Floats
    covariates: Floats | None
    """Shape (pairs, names), first minus second."""

    @cached_property
    def above(self) -> Floats:
        """n_jl: wins and half the ties."""
        return self.wins + 0.5 * self.ties if self.ties.any() else self.wins

    @cached_property
    def below(self) -> Floats:
        """n_lj: losses and half the ties."""
        return self.losses + 0.5 * self.ties if self.ties.any() else self.losses

    @cached_property
    def pairs(self) -> Ragged:
        """The pairs of each graph."""
        return Ragged(self.pair_start)

    @property
    def graph(self) -> NDArray[np.int64]:
        """The graph of each pair."""
        return self.pairs.owner

    def pair_of(
        self, one: NDArray[np.int64], other: NDArray[np.int64], covariates: Floats | None = None
    ) -> NDArray[np.int64]:
        """Return the pair of two nodes that were judged against each other, whichever comes first; shape as theirs.

        Where pairs stand once for each value of the covariates, ``covariates`` holds those of ``one`` less ``other``.
        """
        low, high = np.minimum(one, other), np.maximum(one, other)
        if self.covariates is None or covariates is None:
            return np.searchsorted(self.first * self.nodes + self.second, low * self.nodes + high)
        own = np.column_stack([low, high, np.where((one > other)[:, None], -covariates, covariates) + 0.0])
        pairs = np.column_stack([self.first, self.second, self.covariates])
        code = rows_alike(*np.concatenate([pairs, own]).T)[1]
        place = np.empty(len(code), np.int64)
        place[code[: len(pairs)]] = np.arange(len(pairs))
        return place[code[len(pairs) :]]

    def add_to_nodes(self, to_first: Floats, to_second: Floats) -> Floats:
        """Sum a value of each pair into its first node and another into its second; shape (nodes,)."""
        return np.asarray(
            np.bincount(self.first, to_first, self.nodes) + np.bincount(self.second, to_second, self.nodes), np.float64
        )

    def per_graph(self, of_nodes: Floats) -> Floats:
        """Sum a value of each node over its graph; shape (graphs,)."""
        return self.node_groups.sums(of_nodes)

    @classmethod
    def of(cls, batch: Batch, *, covariates: bool = False) -> Graphs:
        """Add up the edges of a batch into pairs; covariates are kept only when asked for."""
        prefs, held = batch.prefs, batch.judgment
        if isinstance(prefs, Comparisons) and prefs.share is None and not covariates:
            mass = batch.multiplicity if prefs.weight is None else batch.multiplicity * prefs.weight[held]
            tie = None if prefs.tie is None else prefs.tie[held]
            return cls.from_edges(batch.node_start, *batch.sides(prefs), mass, tie)
        edges = batch.edges
        mass = batch.multiplicity[edges.holder]
        if prefs.weighted:
            mass = mass * edges.strength
        z = edges.covariates if covariates else None
        return cls.from_edges(batch.node_start, edges.winner, edges.loser, mass, edges.tie, z)

    @classmethod
    def from_edges(
        cls,
        node_start: Offsets,
        winner: NDArray[np.integer[Any]],
        loser: NDArray[np.integer[Any]],
        mass: NDArray[Any],
        tie: NDArray[np.bool_] | None = None,
        covariates: Floats | None = None,
    ) -> Graphs:
        """Add up edges into pairs.

        Parameters
        ----------
        node_start : (graphs + 1,); nodes of graph g are node_start[g]:node_start[g + 1].
        winner, loser : (edges,) nodes of the batch.
        mass : (edges,) integer or real strength.
        tie : (edges,) whether the two tied.
        covariates : (edges, names), winner minus loser.
        """
        nodes = Ragged(node_start)
        size = nodes.sizes
        table = Ragged.of_sizes(size * size).start  # one table of size × size cells for each graph
        swap = winner > loser
        values = np.zeros((1, 0))
        code = np.zeros(0, np.int64)
        if covariates is not None and covariates.shape[1]:
            values, code = distinct_rows(np.where(swap[:, None], -covariates, covariates) + 0.0)
        sizes = [int(table[-1]), len(values), 4]
        outcome = swap.astype(np.int8) if tie is None else np.where(tie, np.int8(2), swap)
        place = _cells(nodes, table, winner, loser)
        cells = None
        if sum(bit_width(x) for x in sizes) > BITS:  # many items and many values: only the cells that are there
            cells, place = np.unique(place, return_inverse=True)
            sizes[0] = len(cells)
        key = pack([place, code, outcome], sizes) if len(code) else pack([place, outcome], [sizes[0], 4])
        del swap, outcome, place
        key, amount = _sums(key, sum(bit_width(x) for x in sizes), mass)
        kind = (key & 3).astype(np.int8)
        cell = key >> 2
        del key
        new = np.diff(cell, prepend=-1) != 0
        pair = np.cumsum(new) - 1
        totals = np.zeros((3, int(pair[-1]) + 1 if len(pair) else 0))
        totals[kind, pair] = amount
        cell = cell[new]
        width = bit_width(len(values))
        z = values[cell & ((1 << width) - 1)] if len(code) else None
        cell >>= width
        if cells is not None:
            cell = cells[cell]
        pair_start = np.searchsorted(cell, table).astype(np.int64)
        graph = Ragged(pair_start).owner
        cell -= table[graph]
        row = cell // size[graph]
        start = node_start[graph]
        return cls(
            node_start, pair_start, start + row, start + cell - row * size[graph], totals[0], totals[1], totals[2], z
        )


def _cells(nodes: Ragged, table: Offsets, winner: NDArray[Any], loser: NDArray[Any]) -> NDArray[np.int64]:
    """The cell (smaller node, larger node) of each edge in its graph's table."""
    cell: NDArray[np.int64] = np.minimum(winner, loser).astype(np.int64)
    size = nodes.sizes
    if len(size) == 1:
        cell *= int(size[0])
        cell += np.maximum(winner, loser)
        return cell
    # cell = table + (small − start)·width + (large − start) = small·width + large + shift of the graph
    offset = nodes.spread(table[:-1] - nodes.first * (size + 1))[cell]
    cell *= nodes.spread(size)[cell]
    cell += offset
    cell += np.maximum(winner, loser)
    return cell


def _sums(key: NDArray[np.int64], bits: int, mass: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Distinct keys in order and the sum of the mass of each; real masses are added in the order of the rows."""
    if np.issubdtype(mass.dtype, np.integer) and bits <= BITS:
        return tally(key, bits, mass)
    sorter = np.argsort(key, kind="stable")
    key = key[sorter]
    begin = np.flatnonzero(np.diff(key, prepend=-1))
    return key[begin], np.add.reduceat(mass[sorter], begin) if len(begin) else np.zeros(0)


def _edges_of_comparisons(batch: Batch, prefs: Comparisons) -> Edges:
    held = batch.judgment
    strength = np.ones(len(held)) if prefs.weight is None else prefs.weight[held]
    tie = np.zeros(len(held), bool) if prefs.tie is None else prefs.tie[held]
    covariates = None if prefs.covariates is None else prefs.covariates[held]
    holder, (winner, loser) = np.arange(len(held), dtype=np.int64), batch.sides(prefs)
    if prefs.share is None:
        return Edges(holder, winner, loser, strength, tie, covariates)
    share = prefs.share[held]
    place = np.repeat(holder, 1 + (share < 1))  # the loser's part of a win is an edge, too
    back = np.diff(place, prepend=-1) == 0
    strength = strength[place] * np.where(back, 1.0 - share[place], share[place])
    one, other = np.where(back, loser[place], winner[place]), np.where(back, winner[place], loser[place])
    signed = None if covariates is None else np.where(back[:, None], -covariates[place], covariates[place])
    return Edges(holder[place], one, other, strength, tie[place], signed)


def _edges_of_lists(batch: Batch, prefs: Lists) -> Edges:
    lists, node, value = batch.entries(prefs)
    affordable(prefs.kind, lists)
    holder = lists.owner
    if prefs.kind in ("selections", "choices"):
        better, worse = chosen_over(prefs.kind, lists, value)
    else:
        better, worse = lists.pairs()
    owner, gap = holder[better], np.abs(value[better] - value[worse])
    if prefs.kind == "ratings":
        keep = gap > 0  # equal ratings carry no edge
        better, worse, owner, gap = better[keep], worse[keep], owner[keep], gap[keep]
        swap = value[better] < value[worse]
        better, worse = np.where(swap, worse, better), np.where(swap, better, worse)
    strength = gap if prefs.kind == "ratings" else np.ones(len(owner))
    tie = gap == 0 if prefs.kind == "orders" else np.zeros(len(owner), bool)
    return Edges(owner, node[better], node[worse], strength, tie, None)
