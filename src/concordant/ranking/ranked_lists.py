"""The judgments of a batch as ranked lists of nodes, and the click probabilities of the cascade model (AoS §5.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.preferences.connectivity import Connectivity, connected, connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists
from concordant.preferences.ragged import Grouped, Ragged
from concordant.preferences.status import Status
from concordant.ranking.scores import Scores

Offsets = NDArray[np.int64]
Places = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rankings(Grouped):
    """Lists with at least two entries, the best tier first.

    A comparison is a list of two, a tie two of them that count half; a choice from a set has the chosen item above all
    others, a selection the clicked item above those shown before it, and nothing is known within the others (``top``).
    Lists of one item, and lists without a click, say nothing and are left out.
    """

    node_start: Offsets
    start: Offsets
    """Entries of list r are start[r]:start[r + 1]."""
    node: Places
    tier: Floats
    weight: Floats
    """Of each list: multiplicity times strength."""
    holder: Places
    """Place in the batch's columns of the judgment that each list comes from."""
    top: bool
    """Only the first entry against the rest counts."""

    @property
    def length(self) -> Places:
        return self.groups.sizes

    @property
    def row(self) -> Places:
        """The list of each entry."""
        return self.groups.owner

    @cached_property
    def _tiers(self) -> Ragged:
        """The entries of each tier of each list."""
        return Ragged.runs(self.tier, self.row)

    @property
    def tier_first(self) -> Places:
        """For each tier of each list, its first entry."""
        return self._tiers.first

    @property
    def tier_size(self) -> Places:
        return self._tiers.sizes

    @cached_property
    def above(self) -> Places:
        """Number of items of the list in better tiers than the entry."""
        return np.asarray(self._tiers.spread(self.tier_first) - self.groups.spread(self.groups.first))

    @cached_property
    def below(self) -> Places:
        """Number of items of the list in worse tiers."""
        return np.asarray(self.groups.spread(self.start[1:]) - self._tiers.spread(self._tiers.start[1:]))

    def chain(self) -> Graphs:
        """Graphs with the components and strong blocks of the full pair tables, in linear size.

        Each entry beats the next, or ties with it: every pair of the list then hangs on a chain of wins.
        """
        follows = np.flatnonzero(self.row[1:] == self.row[:-1])
        better, worse = (self.start[self.row], np.arange(len(self.row))) if self.top else (follows, follows + 1)
        if self.top:
            better, worse = better[better != worse], worse[better != worse]
        tie = self.tier[better] == self.tier[worse]
        return Graphs.from_edges(self.node_start, self.node[better], self.node[worse], np.ones(len(better)), tie)

    def connected(self) -> Connectivity:
        """Return what connects the items when the tied say nothing of each other, in linear time.

        Whoever is above another in a list beats it by a chain from tier to tier, with a stop below each tier.
        """
        if self.top:
            return connectivity(self.chain())
        tiers = self._tiers
        stands = self.below[tiers.first] > 0  # above others
        stop = int(self.node_start[-1]) + np.cumsum(stands) - 1
        over, under = tiers.spread(stands), tiers.spread(np.concatenate(([False], stands))[:-1])
        source = np.concatenate([self.node[over], tiers.spread(np.concatenate(([0], stop))[:-1])[under]])
        target = np.concatenate([tiers.spread(stop)[over], self.node[under]])
        return connected(Ragged(self.node_start), source, target, int(stands.sum()))

    def linked(self, ties: object) -> Connectivity:
        """Return what connects the items of a likelihood: with ``ties="davidson"`` also the tied, one to the other."""
        return connectivity(self.chain()) if ties == "davidson" else self.connected()

    def take(self, rows: Places) -> Rankings:
        """Return some of the lists, by number."""
        taken, entries = self.groups.take(rows)
        return replace(
            self,
            start=taken.start,
            node=self.node[entries],
            tier=self.tier[entries],
            weight=self.weight[rows],
            holder=self.holder[rows],
        )

    @classmethod
    def of(cls, batch: Batch) -> Rankings:
        """Return the lists of the judgments that a batch holds, one by one."""
        if isinstance(batch.prefs, Lists):
            return cls._of_lists(batch, batch.prefs)
        if isinstance(batch.prefs, Comparisons):
            edges = batch.edges
            mass = edges.strength * batch.multiplicity[edges.holder]
            tied = np.flatnonzero(edges.tie)  # half a win each
            mass = np.concatenate([np.where(edges.tie, 0.5, 1.0) * mass, 0.5 * mass[tied]])
            better = np.concatenate([edges.winner, edges.loser[tied]])
            node = np.column_stack([better, np.concatenate([edges.loser, edges.winner[tied]])]).ravel()
            holder = np.concatenate([edges.holder, edges.holder[tied]])
            start = 2 * np.arange(len(mass) + 1, dtype=np.int64)
            return cls(batch.node_start, start, node, np.tile([1.0, 2.0], len(mass)), mass, holder, False)
        none = np.zeros(0, np.int64)
        return cls(batch.node_start, np.zeros(1, np.int64), none, np.zeros(0), np.zeros(0), none, False)

    @classmethod
    def _of_lists(cls, batch: Batch, prefs: Lists) -> Rankings:
        lists, node, tier = batch.entries(prefs)
        holder = lists.owner
        keep = np.ones(len(node), bool)
        top = prefs.kind in ("choices", "selections")
        if top:
            chosen = np.full(len(lists), -1, np.int64)
            chosen[holder[tier > 0]] = np.flatnonzero(tier > 0)
            pick = lists.spread(chosen)
            place = np.arange(len(node))
            keep = (pick >= 0) & ((place <= pick) if prefs.kind == "selections" else True)
            tier = np.where(place == pick, 1.0, 2.0)
        keep &= np.bincount(holder[keep], minlength=len(lists))[holder] > 1
        holder, tier, node = holder[keep], tier[keep], node[keep]
        if top:
            sorter = np.lexsort((tier, holder))
            tier, node = tier[sorter], node[sorter]
        kept, size = np.unique(holder, return_counts=True)
        offsets = Ragged.of_sizes(size).start
        return cls(batch.node_start, offsets, node, tier, batch.multiplicity[kept].astype(float), kept, top)


def cascade(batch: Batch) -> Scores:
    """Maximum likelihood of the cascade model: a user reads from the top and clicks the first item that satisfies.

    p̂_l = (times l was clicked) / (times l was shown at or above the click); a list without a click was examined to
    its end (AoS §5.2). An item that was never examined gets its query's pooled rate, clicks over examinations of all
    items; where nothing at all was examined that is 0. Probabilities are absolute, so each graph is one component.

    Errors: UsageError for anything but selections (lists in the order in which they were shown).

    >>> from concordant.preferences.preferences import Preferences
    >>> shown = Preferences.from_selections(["q"] * 4, [1, 1, 2, 2], [1, 2, 1, 2], ["x", "y", "x", "y"], [0, 1, 1, 0])
    >>> cascade(Batch.whole(shown)).value.tolist()
    [0.5, 1.0]
    """
    nodes, graphs = len(batch.item), len(batch)
    clicks, examined = examinations(batch)
    all_clicks, all_examined = (batch.node_groups.sums(x) for x in (clicks, examined))
    pooled = np.divide(all_clicks, all_examined, out=np.zeros(graphs), where=all_examined > 0)
    value = np.divide(clicks, examined, out=pooled[batch.owner], where=examined > 0)
    unseen = int((examined == 0).sum())
    text = (
        "cascade: {unseen:items} {unseen:was|were} never examined; {unseen:it has|they have} the pooled click rate of "
        "their query."
    )
    return Scores(
        value=value,
        components=np.zeros(nodes, np.int32),
        status=np.full(graphs, Status.CLOSED_FORM, np.int8),
        iterations=np.zeros(graphs, np.int64),
        gradient=np.zeros(graphs),
        notes=(Note("never examined", text, unseen=unseen),) if unseen else (),
    )


def examinations(batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how often each node was clicked and how often it was examined (shown at or above the click).

    Errors: UsageError for anything but selections.
    """
    prefs = batch.prefs
    nodes = len(batch.item)
    if prefs.kind not in ("selections", None):
        raise UsageError(
            f"cascade reads lists in the order in which they were shown (selections with a position); these are "
            f"{prefs.kind}, which have no positions. Use bradley-terry or plackett-luce."
        )
    clicks, examined = np.zeros(nodes), np.zeros(nodes)
    if isinstance(prefs, Lists):
        lists, node, value = batch.entries(prefs)
        clicked = value > 0
        until = np.full(len(lists), len(node), np.int64)
        until[lists.owner[clicked]] = np.flatnonzero(clicked)
        seen = np.arange(len(node)) <= lists.spread(until)
        times = lists.spread(batch.multiplicity).astype(float)
        clicks += np.bincount(node[clicked], times[clicked], nodes)
        examined += np.bincount(node[seen], times[seen], nodes)
    return clicks, examined
