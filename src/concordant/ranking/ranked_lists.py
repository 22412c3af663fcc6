"""The judgments of a batch as ranked lists of nodes, and the click probabilities of the cascade model (AoS §5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError
from concordant.preferences.connectivity import Connectivity, connected, connectivity
from concordant.preferences.counted import recounted
from concordant.preferences.counts import exact_bincount
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists, Preferences, keep
from concordant.preferences.ragged import Grouped, Ragged
from concordant.preferences.status import Status
from concordant.ranking.scores import Scores

Offsets = NDArray[np.int64]
Places = NDArray[np.int64]
Floats = NDArray[np.float64]
UNSEEN = "never examined"
"""Code of the note on such items."""
Found = TypeVar("Found")


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
        if several := several_clicks(prefs):
            raise UsageError(
                f"plackett-luce reads one choice a list, and {several:,} of {len(prefs):,} have more than one click: "
                "read them with ",
                Setting("clicks", "first"),
                ", or rank by dependent-click or position-based",
            )
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
    refuse_several(several_clicks(batch.prefs), len(batch.prefs))
    return rates_of(batch, "cascade", *examinations(batch))


def refuse_several(several: int, lists: int) -> None:
    """Refuse lists for the cascade of which several have more than one click. Errors: UsageError."""
    if several:
        raise UsageError(
            f"cascade: {several:,} of {lists:,} lists have more than one click, where its readers "
            "stop at the first; use dependent-click or position-based, or read such lists with ",
            Setting("clicks", "first"),
            " or ",
            Setting("clicks", "last"),
        )


def rates_of(batch: Batch, name: str, clicks: Floats, examined: Floats) -> Scores:
    """Return clicks over examinations of each node as the scores of a structure; pooled where there were none."""
    value = np.divide(clicks, examined, out=pooled(batch, clicks, examined), where=examined > 0)
    unseen = int((examined == 0).sum())
    text = name + (
        ": {unseen:items} {unseen:was|were} never examined; {unseen:it has|they have} the pooled click rate of "
        "their query."
    )
    return Scores(
        value=value,
        components=np.zeros(len(value), np.int32),
        status=np.full(len(batch), Status.CLOSED_FORM, np.int8),
        iterations=np.zeros(len(batch), np.int64),
        gradient=np.zeros(len(batch)),
        known=examined > 0,
        notes=(Note(UNSEEN, text, unseen=unseen),) if unseen else (),
    )


def pooled(batch: Batch, clicks: Floats, times: Floats) -> Floats:
    """Return for each node the rate of all items of its query; 0 where there is none."""
    clicks, times = (batch.node_groups.sums(x) for x in (clicks, times))
    return np.divide(clicks, times, out=np.zeros(len(batch)), where=times > 0)[batch.owner]


def examinations(batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how often each node was clicked and how often it was examined (shown at or above the last click).

    Errors: UsageError for anything but selections.
    """
    prefs = batch.prefs
    nodes = len(batch.item)
    if prefs.kind not in ("selections", None):
        raise UsageError(
            f"models of clicks read lists in the order in which they were shown (selections with a position), not "
            f"{prefs.kind}, which have no positions; use bradley-terry or plackett-luce."
        )
    clicks, examined = np.zeros(nodes), np.zeros(nodes)
    if isinstance(prefs, Lists):
        lists, node, value = batch.entries(prefs)
        clicked, known = value > 0, seen(lists, value)
        times = lists.spread(batch.multiplicity).astype(float)
        clicks += np.bincount(node[clicked], times[clicked], nodes)
        examined += np.bincount(node[known], times[known], nodes)
    return clicks, examined


def seen(lists: Ragged, value: Floats) -> NDArray[np.bool_]:
    """Which entries of lists as shown stand at or above the last click; all where there is none."""
    clicked = np.flatnonzero(value > 0)
    until = np.full(len(lists), len(value), np.int64)
    until[lists.owner[clicked]] = clicked  # of several the last stays
    return np.asarray(np.arange(len(value)) <= lists.spread(until))


def examined_only(prefs: Preferences) -> Preferences:
    """Return lists as shown without what stands below their last click, and without the items that are then in none.

    Nothing is known of an item that nobody examined, so nothing can be learned from it; other kinds stay as they are.

    >>> shown = Preferences.from_selections(["q"] * 3, [1, 1, 1], [1, 2, 3], ["x", "y", "z"], [0, 1, 0])
    >>> examined_only(shown).items.tolist()
    ['x', 'y']
    """
    if not isinstance(prefs, Lists) or prefs.kind != "selections":
        return prefs
    known = seen(prefs.lists, prefs.list_value)
    if known.all() and not len(prefs.declared):
        return prefs
    start = Ragged.counted(prefs.lists.owner[known], prefs.distinct).start
    part = replace(prefs, list_start=start, list_item=prefs.list_item[known], list_value=prefs.list_value[known])
    cut = recounted(part, prefs.query, prefs.count)
    return keep(cut, np.arange(cut.distinct), cut.count, cut.declared[:0])


_FOUND: dict[tuple[int, str], Any] = {}


def once(prefs: Preferences, name: str, find: Callable[[Preferences], Found]) -> Found:
    """Return what ``find`` finds of a whole log, found once for each."""
    if (id(prefs), name) not in _FOUND:
        tell(prefs, name, find(prefs))
    return cast(Found, _FOUND[id(prefs), name])


def tell(prefs: Preferences, name: str, found: object) -> None:
    """Have ``once`` return this of a log, or of a part of one, of all of which it was found."""
    if (id(prefs), name) not in _FOUND:
        finalize(prefs, _FOUND.pop, (id(prefs), name), None)
    _FOUND[id(prefs), name] = found


def touches(batch: Batch) -> NDArray[np.int64]:
    """How many judgments touch each node."""
    prefs = batch.prefs
    nodes = len(batch.item)
    if isinstance(prefs, Lists):
        lists, node, _ = batch.entries(prefs)
        return exact_bincount(node, lists.spread(batch.multiplicity), nodes)
    if not isinstance(prefs, Comparisons):
        return np.zeros(nodes, np.int64)
    batch, prefs = (batch, prefs) if batch.kinds is None else (batch.kinds.batch, batch.kinds.prefs)
    won, lost = (exact_bincount(side, batch.multiplicity, nodes) for side in batch.sides(prefs))
    return won + lost


def several_clicks(prefs: Preferences) -> int:
    """How many lists as shown have more than one click."""
    if not isinstance(prefs, Lists) or prefs.kind != "selections":
        return 0
    return int(prefs.count[prefs.lists.sums((prefs.list_value > 0).astype(np.float64)) > 1].sum(dtype=np.int64))


def lists_with_gaps(prefs: Preferences) -> int:
    """How many lists as shown have something further down than as many places as they hold."""
    if not isinstance(prefs, Lists) or prefs.kind != "selections":
        return 0
    passed = np.where(prefs.list_value > 0, prefs.list_value - 1.0, -prefs.list_value)
    return int(prefs.count[prefs.lists.most(passed) > 0].sum(dtype=np.int64))


def positions_of(prefs: Preferences) -> int:
    """The last position at which lists as shown have anything; 1 of none."""
    return prefs.last_position if isinstance(prefs, Lists) else 1


def all_linked(seen: NDArray[np.bool_], component: NDArray[np.int32] | None = None) -> Connectivity:
    """Scores that are absolute compare all items of a query that were ``seen``, one entry for each node.

    ``component``: of items whose scores have several scales, only those of the same.
    """
    no = np.zeros(len(seen), bool)
    own = np.zeros(len(seen), np.int32) if component is None else component
    group = np.where(seen, own, int(own.max(initial=0)) + 1 + np.arange(len(seen))).astype(np.int32)
    return Connectivity(group, group, seen, seen, no, no)
