"""Ragged batches: which judgments make up each graph, and the pair tables that structure functions read.

A leaderboard is a batch of one graph, a log with queries one graph per query, a U-statistic one graph per query and
k-subset (AoS §4, (18)). A structure function is written once, for a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.listing import entry_owner, take_lists
from concordant.preferences import Preferences
from concordant.sampling import draw_subsets, label_keys
from concordant.tally import float_codes, pack

__all__ = ["Batch", "Edges", "Graphs"]

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
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
        start, judgment = take_lists(prefs.start, codes)
        return cls(prefs, codes.astype(np.int32), start, judgment, prefs.count[judgment].astype(np.int64))

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
        """Graphs of k judgments drawn without replacement from the counts, ``subsets`` per query.

        Multiplicities follow the multivariate hypergeometric law. A query with at most k judgments has one graph with
        all of them (AoS, below (18)). The draws of a query depend on its label and the seed only. With ``partition``
        they are blocks of random permutations.
        """
        if k < 1 or subsets < 1:
            raise UsageError(f"k and the number of subsets must be at least 1, not {k} and {subsets}")
        codes = np.arange(len(prefs.queries)) if queries is None else np.asarray(queries)
        total = prefs.judgments[codes]
        keys = label_keys(prefs.queries, seed)[codes]
        owner, offsets, position = draw_subsets(total, keys, k, subsets, partition=partition)
        before = np.concatenate(([0], np.cumsum(prefs.count, dtype=np.int64)))
        first = before[prefs.start[:-1][codes]]
        absolute = position + np.repeat(first[owner], np.diff(offsets))
        judgment = np.searchsorted(before, absolute, side="right") - 1
        draw = entry_owner(offsets)
        new = np.ones(len(judgment), bool)
        new[1:] = (judgment[1:] != judgment[:-1]) | (draw[1:] != draw[:-1])
        begin = np.flatnonzero(new)
        multiplicity = np.diff(begin, append=len(judgment)).astype(np.int64)
        start = np.concatenate(([0], np.cumsum(np.bincount(draw[begin], minlength=len(owner))))).astype(np.int64)
        return cls(prefs, codes[owner].astype(np.int32), start, judgment[begin], multiplicity)

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def judgments(self) -> NDArray[np.int64]:
        """Number of judgments of each graph."""
        total = np.concatenate(([0], np.cumsum(self.multiplicity)))
        return np.asarray(np.diff(total[self.start]), np.int64)

    @cached_property
    def graph(self) -> NDArray[np.int64]:
        """The graph of each held judgment."""
        return entry_owner(self.start)

    @cached_property
    def _nodes(self) -> tuple[Offsets, NDArray[np.int64]]:
        member_start, _ = self.prefs.members
        return take_lists(member_start, self.query)

    @cached_property
    def node_start(self) -> Offsets:
        """Nodes of graph g are node_start[g]:node_start[g + 1]."""
        return self._nodes[0]

    @cached_property
    def item(self) -> Ints:
        """Item code of each node, ascending within a graph."""
        return self.prefs.members[1][self._nodes[1]]

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The graph of each node."""
        return entry_owner(self.node_start)

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

    @cached_property
    def edges(self) -> Edges:
        """Every judgment's edges, one by one (for what must not lose the judgment: clusters, sandwiches)."""
        return Edges.of(self)

    @cached_property
    def graphs(self) -> Graphs:
        """The pair table of each graph."""
        return Graphs.of(self)


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of each held judgment, before pairs are added up.

    A comparison has one edge. An order has one for every pair of its items, a tie being half a win each way; a
    rating list one for every pair rated differently, as strong as the difference; a choice one from the chosen item
    to every other shown; a selection one from the clicked item to every item above it, which the user examined and
    passed over (the cascade's reading). A list without a click has none.
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
        if prefs.kind is None:
            none = np.zeros(0, np.int64)
            return cls(none, none, none, np.zeros(0), np.zeros(0, bool), None)
        return _edges_of_comparisons(batch) if prefs.kind == "comparisons" else _edges_of_lists(batch)


@dataclass(frozen=True, eq=False)
class Graphs:
    """Pair tables: for each graph the pairs that were judged, with the strength of wins either way and of ties.

    Pairs stand once (``first < second``), sorted by graph, first, second; with covariates once for each value.
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
        return self.wins + 0.5 * self.ties

    @cached_property
    def below(self) -> Floats:
        """n_lj: losses and half the ties."""
        return self.losses + 0.5 * self.ties

    @property
    def nodes(self) -> int:
        return int(self.node_start[-1])

    def __len__(self) -> int:
        return len(self.node_start) - 1

    @cached_property
    def graph(self) -> NDArray[np.int64]:
        """The graph of each pair."""
        return entry_owner(self.pair_start)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The graph of each node."""
        return entry_owner(self.node_start)

    def add_to_nodes(self, to_first: Floats, to_second: Floats) -> Floats:
        """Sum a value of each pair into its first node and another into its second; shape (nodes,)."""
        return np.asarray(
            np.bincount(self.first, to_first, self.nodes) + np.bincount(self.second, to_second, self.nodes), np.float64
        )

    def per_graph(self, of_nodes: Floats) -> Floats:
        """Sum a value of each node over its graph; shape (graphs,)."""
        return np.asarray(np.bincount(self.owner, of_nodes, len(self)), np.float64)

    @classmethod
    def of(cls, batch: Batch, *, covariates: bool = False) -> Graphs:
        """Add up the edges of a batch into pairs; covariates are kept only when asked for."""
        edges = batch.edges if batch.prefs.kind != "comparisons" else Edges.of(batch)
        mass = edges.strength * batch.multiplicity[edges.holder]
        z = edges.covariates if covariates else None
        return cls.from_edges(batch.node_start, edges.winner, edges.loser, mass, edges.tie, z)

    @classmethod
    def from_edges(
        cls,
        node_start: Offsets,
        winner: NDArray[np.integer],
        loser: NDArray[np.integer],
        mass: Floats,
        tie: NDArray[np.bool_] | None = None,
        covariates: Floats | None = None,
    ) -> Graphs:
        """Add up edges (winner, loser as nodes of the batch) into pairs."""
        swap = winner > loser
        first, second = np.minimum(winner, loser), np.maximum(winner, loser)
        if covariates is not None and covariates.shape[1]:
            covariates = np.where(swap[:, None], -covariates, covariates)
            codes = np.zeros(len(swap), np.int64)
            for column in covariates.T:
                values, code = float_codes(column)
                codes = np.unique(codes * len(values) + code, return_inverse=True)[1]
            key, span, place = _pair_keys(node_start, first, second, codes)
        else:
            covariates = None
            key, span, place = _pair_keys(node_start, first, second, None)
        wins = np.where(swap, 0.0, mass)
        losses = np.where(swap, mass, 0.0)
        ties = np.zeros(len(mass))
        if tie is not None and tie.any():
            ties = np.where(tie, mass, 0.0)
            wins[tie], losses[tie] = 0.0, 0.0
        if place is None and span <= max(4 * len(key), 1 << 16):
            seen = np.bincount(key, minlength=span)
            present = np.flatnonzero(seen)
            size = np.diff(node_start)
            table = np.concatenate(([0], np.cumsum(size * size)))
            graph = np.repeat(np.arange(len(size)), np.diff(np.searchsorted(present, table)))
            local = present - table[graph]
            pair_first = node_start[graph] + local // size[graph]
            pair_second = node_start[graph] + local % size[graph]
            wins, losses = (np.asarray(np.bincount(key, x, span)[present], np.float64) for x in (wins, losses))
            ties = np.asarray(np.bincount(key, ties, span)[present] if ties.any() else np.zeros(len(present)))
            pair_z = None
        else:
            order = np.argsort(key, kind="stable")
            ordered = key[order]
            begin = np.flatnonzero(np.diff(ordered, prepend=-1))
            pair_first, pair_second = first[order][begin], second[order][begin]
            pair_z = None if covariates is None else covariates[order][begin]
            wins, losses, ties = (_sums(x[order], begin) for x in (wins, losses, ties))
        counts = np.bincount(np.searchsorted(node_start, pair_first, side="right") - 1, minlength=len(node_start) - 1)
        pair_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return cls(
            node_start,
            pair_start,
            np.asarray(pair_first, np.int64),
            np.asarray(pair_second, np.int64),
            wins,
            losses,
            ties,
            pair_z,
        )


def _sums(values: Floats, begin: NDArray[np.int64]) -> Floats:
    return np.add.reduceat(values, begin) if len(begin) else np.zeros(0)


def _pair_keys(
    node_start: Offsets, first: NDArray[Any], second: NDArray[Any], codes: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], int, NDArray[np.int64] | None]:
    """A key for (graph, first, second[, covariates]) that sorts like them: an index into one table per graph."""
    nodes = max(int(node_start[-1]), 1)
    size = np.diff(node_start)
    if codes is None:
        base = np.repeat(np.cumsum(size * size) - size * size, size)  # where each node's graph's table begins
        start = np.repeat(node_start[:-1], size)
        width = np.repeat(size, size)
        key = base[first] + (first - start[first]) * width[first] + (second - start[second])
        return key, int((size * size).sum()), None
    key, span = pack([first, second, codes], [nodes, nodes, int(codes.max(initial=0)) + 1])
    return key, span, codes


def _edges_of_comparisons(batch: Batch) -> Edges:
    prefs, held = batch.prefs, batch.judgment
    assert prefs.winner is not None and prefs.loser is not None
    strength = np.ones(len(held)) if prefs.weight is None else prefs.weight[held]
    tie = np.zeros(len(held), bool) if prefs.tie is None else prefs.tie[held]
    return Edges(
        np.arange(len(held), dtype=np.int64),
        batch.node_of(batch.graph, prefs.winner[held]),
        batch.node_of(batch.graph, prefs.loser[held]),
        strength,
        tie,
        None if prefs.covariates is None else prefs.covariates[held],
    )


def _edges_of_lists(batch: Batch) -> Edges:
    prefs = batch.prefs
    assert prefs.list_start is not None and prefs.list_item is not None and prefs.list_value is not None
    start, entries = take_lists(prefs.list_start, batch.judgment)
    value = prefs.list_value[entries]
    holder = entry_owner(start)
    node = batch.node_of(batch.graph[holder], prefs.list_item[entries])
    if prefs.kind in ("selections", "choices"):
        better, worse = _chosen_over(prefs.kind, start, holder, value)
    else:
        better, worse = _all_pairs(start)
    owner, gap = holder[better], np.abs(value[better] - value[worse])
    if prefs.kind == "ratings":
        keep = gap > 0  # equal ratings carry no edge
        better, worse, owner, gap = better[keep], worse[keep], owner[keep], gap[keep]
        swap = value[better] < value[worse]
        better, worse = np.where(swap, worse, better), np.where(swap, better, worse)
    strength = gap if prefs.kind == "ratings" else np.ones(len(owner))
    tie = gap == 0 if prefs.kind == "orders" else np.zeros(len(owner), bool)
    return Edges(owner, node[better], node[worse], strength, tie, None)


def _all_pairs(start: Offsets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entry indices of all pairs within each list, the earlier first (orders are sorted best first)."""
    length = np.diff(start)
    after = np.repeat(start[1:], length) - np.arange(start[-1]) - 1  # entries of the list that follow each entry
    earlier = np.repeat(np.arange(start[-1], dtype=np.int64), after)
    begin = np.repeat(np.cumsum(after) - after, after)
    return earlier, earlier + 1 + np.arange(len(earlier)) - begin


def _chosen_over(
    kind: str, start: Offsets, holder: NDArray[np.int64], value: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entry indices (chosen, passed over)."""
    chosen = np.full(len(start) - 1, -1, np.int64)
    clicked = np.flatnonzero(value > 0)
    chosen[holder[clicked]] = clicked
    entry = np.arange(len(holder), dtype=np.int64)
    pick = chosen[holder]
    over = (pick >= 0) & (entry != pick)
    if kind == "selections":
        over &= entry < pick
    return pick[over], entry[over]
