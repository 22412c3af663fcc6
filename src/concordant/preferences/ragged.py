"""Ragged arrays: entries in groups of any length (nodes of graphs, judgments of queries, entries of lists).

Of the lists that people judge: canonical order of entries and of lists, equal ones counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import UsageError

Offsets = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
S = TypeVar("S", bound=np.generic)
MOST_PAIRS = 1 << 28
"""Pairs that the lists of one batch may make: some 20 GB."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """Entries in groups: those of group g are start[g]:start[g + 1] of every column.

    >>> lists = Ragged.of_sizes([2, 0, 1])
    >>> lists.owner.tolist(), lists.sums(np.array([1.0, 2.0, 4.0])).tolist()
    ([0, 0, 2], [3.0, 0.0, 4.0])
    """

    start: Offsets

    @classmethod
    def of_sizes(cls, sizes: ArrayLike) -> Ragged:
        """Return groups of these sizes, one behind the other."""
        return cls(np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))

    @classmethod
    def counted(cls, owner: NDArray[np.integer[Any]], groups: int) -> Ragged:
        """Return the groups of entries that stand in the order of their groups; owner has shape (entries,)."""
        return cls.of_sizes(np.bincount(owner, minlength=groups))

    @classmethod
    def runs(cls, *keys: NDArray[Any]) -> Ragged:
        """Return the runs of neighbours that are equal in every key, each of shape (entries,).

        >>> Ragged.runs(np.array([7, 7, 3, 7])).start.tolist()
        [0, 2, 3, 4]
        """
        new = np.zeros(max(len(keys[0]) - 1, 0), bool)
        for key in keys:
            new |= key[1:] != key[:-1]
        return cls(np.concatenate(([0][: len(keys[0])], np.flatnonzero(new) + 1, [len(keys[0])])).astype(np.int64))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def first(self) -> Offsets:
        """The first entry of each group, where it has one; shape (groups,)."""
        return self.start[:-1]

    @cached_property
    def sizes(self) -> Offsets:
        """Entries of each group; shape (groups,)."""
        return np.asarray(np.diff(self.start), np.int64)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The group of each entry; shape (entries,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    @property
    def place(self) -> NDArray[np.int64]:
        """The place of each entry in its group, from 0; shape (entries,)."""
        return np.arange(self.start[-1], dtype=np.int64) - self.spread(self.first)

    @property
    def slices(self) -> list[slice]:
        """The entries of each group."""
        bounds = self.start.tolist()
        return [slice(begin, end) for begin, end in pairwise(bounds)]

    def spread(self, of_groups: NDArray[S]) -> NDArray[S]:
        """Give each entry the value, or the row, of its group; shape (entries, …)."""
        return np.repeat(of_groups, self.sizes, axis=0)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Σ of each group, entry after entry; values of shape (entries,), result of shape (groups,)."""
        return np.asarray(np.bincount(self.owner, values, len(self)), np.float64)

    def centred(self, values: NDArray[S]) -> NDArray[S]:
        """Subtract from each value, or each row of a matrix, the mean of its group; shape of the values.

        >>> Ragged(np.array([0, 2, 3])).centred(np.array([1.0, 3.0, 5.0])).tolist()
        [-1.0, 1.0, 0.0]
        """
        some = np.flatnonzero(self.sizes)
        if len(some) == 0:
            return values.copy()
        size = self.sizes[some]
        means = np.add.reduceat(values, self.start[some], axis=0) / size.reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(values - np.repeat(means, size, axis=0))

    def most(self, values: NDArray[S], empty: float = 0) -> NDArray[S]:
        """The greatest value, or of each column, in each group, ``empty`` where there is none; shape (groups, …)."""
        return self._reduced(np.maximum, values, empty)

    def least(self, values: NDArray[S], empty: float = 0) -> NDArray[S]:
        """The least value, or of each column, in each group, ``empty`` where there is none; shape (groups, …)."""
        return self._reduced(np.minimum, values, empty)

    def _reduced(self, by: np.ufunc, values: NDArray[S], empty: float) -> NDArray[S]:
        some = np.flatnonzero(self.sizes)
        found = by.reduceat(values, self.start[some], axis=0) if len(some) else values[:0]
        if len(some) == len(self):
            return np.asarray(found)
        out = np.full((len(self), *values.shape[1:]), empty, values.dtype)
        out[some] = found
        return out

    def take(self, groups: NDArray[np.integer[Any]]) -> tuple[Ragged, NDArray[np.int64]]:
        """Return the chosen groups, one behind the other, and where their entries stood."""
        taken = Ragged.of_sizes(self.sizes[groups])
        return taken, np.arange(taken.start[-1], dtype=np.int64) + taken.spread(self.first[groups] - taken.first)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Entries of all pairs within each group, the earlier first.

        >>> [side.tolist() for side in Ragged.of_sizes([3, 1]).pairs()]
        [[0, 0, 1], [1, 2, 2]]
        """
        after = Ragged.of_sizes(self.spread(self.start[1:]) - np.arange(self.start[-1]) - 1)  # entries that follow each
        return after.owner, after.owner + 1 + after.place


class Grouped:
    """What has columns in groups: entries of group g are start[g]:start[g + 1]."""

    start: Offsets

    @cached_property
    def groups(self) -> Ragged:
        return Ragged(self.start)


class OnNodes:
    """What has columns on the nodes of a batch of graphs: those of graph g are node_start[g]:node_start[g + 1]."""

    node_start: Offsets

    def __len__(self) -> int:
        return len(self.node_start) - 1

    @cached_property
    def node_groups(self) -> Ragged:
        """The nodes of each graph."""
        return Ragged(self.node_start)

    @property
    def nodes(self) -> int:
        return int(self.node_start[-1])

    @property
    def sizes(self) -> Offsets:
        """Number of nodes of each graph."""
        return self.node_groups.sizes

    @property
    def owner(self) -> Offsets:
        """The graph of each node."""
        return self.node_groups.owner


def centred(values: Floats, group: NDArray[np.int64]) -> Floats:
    """Subtract from each value the mean of its group; groups are numbered from 0 and may stand in any order.

    >>> centred(np.array([1.0, 7.0, 3.0]), np.array([0, 1, 0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    return np.asarray(values - (np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group])


def canonical_lists(
    kind: str,
    query: Ints,
    cluster: Ints,
    lists: Ragged,
    item: Ints,
    value: Floats,
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Ragged, Ints, Floats]:
    """Return (list that stands for each distinct one, its count, lists, items, values) in canonical order.

    Orders get dense tiers 1, 2, … and stand by (tier, item); choices and ratings by item; selections as shown.
    Lists stand by (query, cluster, length, entries).
    """
    if kind == "orders":
        rises = np.append(value[1:] > value[:-1], True)
        rises[lists.start[1:] - 1] = True  # where a list ends
        if not rises.all():
            sorter = np.lexsort((item, value, lists.owner))
            item, value = item[sorter], value[sorter]
        value = _dense_tiers(lists, value)
    elif kind != "selections":
        sorter = np.lexsort((item, lists.owner))
        item, value = item[sorter], value[sorter]
    value = value + 0.0  # −0 is 0
    kept, amount = _equal_lists(query, cluster, lists, item, value, count)
    lists, entries = lists.take(kept)
    return kept, amount, lists, item[entries], value[entries]


def _dense_tiers(lists: Ragged, value: Floats) -> Floats:
    """Ranks 1, 1, 4, 7 become tiers 1, 1, 2, 3; entries are ordered by list and rank."""
    level = Ragged.runs(lists.owner, value).owner
    return (level - level[lists.first[lists.owner]] + 1).astype(np.float64)


def _equal_lists(
    query: Ints, cluster: Ints, lists: Ragged, item: Ints, value: Floats, count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find equal lists by comparing them whole, one matrix per length (the lists themselves, not a hash of them)."""
    kept: list[NDArray[np.int64]] = []
    amounts: list[NDArray[np.int64]] = []
    by_length = np.argsort(lists.sizes, kind="stable")
    bits = value.view(np.int64)
    for run in Ragged.runs(lists.sizes[by_length]).slices:
        group = by_length[run]
        size = int(lists.sizes[group[0]])
        rows = np.empty((len(group), 2 + 2 * size), ">i8")  # big-endian, so that bytes sort as numbers
        rows[:, 0], rows[:, 1] = query[group], cluster[group]
        entries = lists.first[group][:, None] + np.arange(size)
        rows[:, 2 : 2 + size], rows[:, 2 + size :] = item[entries], bits[entries]
        whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        total = np.zeros(len(first), np.int64)
        np.add.at(total, inverse, count[group])
        kept.append(group[first])
        amounts.append(total)
    if not kept:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    chosen, total = np.concatenate(kept), np.concatenate(amounts)
    sorter = np.lexsort((cluster[chosen], query[chosen]))  # stable: within a query by length, then entries
    return chosen[sorter], total[sorter]


def shown_at(lists: Ragged, value: Floats) -> NDArray[np.int64]:
    """The positions, from 0, of the entries of lists as shown, by their values (``lists.at_positions``)."""
    place = lists.place
    gap = np.where(value > 0, value - 1.0, -value).astype(np.int64)
    if not gap.any():
        return place
    total = np.cumsum(gap)
    return place + total - lists.spread((total - gap)[lists.first])


def affordable(kind: str, lists: Ragged) -> None:
    """Lists are read as pairs only while these fit into memory."""
    length = lists.sizes.astype(float)
    pairs = float((length * (length - 1)).sum() / 2) if kind in ("orders", "ratings") else float(length.sum())
    if pairs > MOST_PAIRS:
        instead = "; plackett-luce and borda read lists without their pairs" if kind == "orders" else ""
        raise UsageError(
            f"{len(length):,} lists of up to {int(length.max()):,} items make {pairs:,.0f} pairs, more than "
            f"{MOST_PAIRS:,}{instead}"
        )


def chosen_over(kind: str, lists: Ragged, value: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entry indices (chosen, passed over): of lists as shown what was clicked, and what above it was not."""
    entry = np.arange(len(value), dtype=np.int64)
    clicked = np.flatnonzero(value > 0)
    if kind == "selections" and len(clicked) and (np.diff(lists.owner[clicked]) == 0).any():
        above = Ragged.of_sizes(clicked - lists.first[lists.owner[clicked]])
        chosen, over = above.spread(clicked), above.spread(lists.first[lists.owner[clicked]]) + above.place
        passed = value[over] <= 0
        return chosen[passed], over[passed]
    chosen = np.full(len(lists), -1, np.int64)
    chosen[lists.owner[clicked]] = clicked
    pick = lists.spread(chosen)
    beside = (pick >= 0) & (entry != pick)
    if kind == "selections":
        beside &= entry < pick
    return pick[beside], entry[beside]
