"""Ragged lists (rankings, shown lists, ratings): canonical order of entries and of lists, equal ones counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError

__all__ = ["affordable", "all_pairs", "canonical_lists", "chosen_over", "entry_owner", "take_lists"]


Offsets = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
MOST_PAIRS = 1 << 28
"""Pairs that the lists of one batch may make: some 20 GB."""


def entry_owner(start: Offsets) -> NDArray[np.int64]:
    """Return the list that each entry belongs to."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))


def take_lists(start: Offsets, rows: NDArray[np.integer]) -> tuple[Offsets, NDArray[np.int64]]:
    """Return the offsets of the chosen lists and where their entries stood."""
    length = np.diff(start)[rows]
    offsets = np.concatenate(([0], np.cumsum(length))).astype(np.int64)
    entries = np.arange(offsets[-1], dtype=np.int64) + np.repeat(start[:-1][rows] - offsets[:-1], length)
    return offsets, entries


def canonical_lists(
    kind: str,
    query: Ints,
    cluster: Ints,
    start: Offsets,
    item: Ints,
    value: Floats,
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Offsets, Ints, Floats]:
    """Return (list that stands for each distinct one, its count, offsets, items, values) in canonical order.

    Orders get dense tiers 1, 2, … and stand by (tier, item); choices and ratings by item; selections as shown.
    Lists stand by (query, cluster, length, entries).
    """
    owner = entry_owner(start)
    if kind == "orders":
        order = np.lexsort((item, value, owner))
        item, value = item[order], _dense_tiers(owner, value[order], start)
    elif kind != "selections":
        order = np.lexsort((item, owner))
        item, value = item[order], value[order]
    value = value + 0.0  # −0 is 0
    kept, amount = _equal_lists(query, cluster, start, item, value, count)
    offsets, entries = take_lists(start, kept)
    return kept, amount, offsets, item[entries], value[entries]


def _dense_tiers(owner: NDArray[np.int64], value: Floats, start: Offsets) -> Floats:
    """Ranks 1, 1, 4, 7 become tiers 1, 1, 2, 3; entries are ordered by list and rank."""
    if len(value) == 0:
        return value
    step = np.zeros(len(value), np.int64)
    step[1:] = (value[1:] != value[:-1]) | (owner[1:] != owner[:-1])
    level = np.cumsum(step)
    return (level - level[start[:-1][owner]] + 1).astype(np.float64)


def _equal_lists(
    query: Ints, cluster: Ints, start: Offsets, item: Ints, value: Floats, count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find equal lists by comparing them whole, one matrix per length (the lists themselves, not a hash of them)."""
    length = np.diff(start)
    kept: list[NDArray[np.int64]] = []
    amounts: list[NDArray[np.int64]] = []
    by_length = np.argsort(length, kind="stable")
    edges = np.flatnonzero(np.diff(length[by_length], prepend=-1))
    bits = value.view(np.int64)
    for group in np.split(by_length, edges[1:]) if len(by_length) else []:
        size = int(length[group[0]])
        rows = np.empty((len(group), 2 + 2 * size), ">i8")  # big-endian, so that bytes sort as numbers
        rows[:, 0], rows[:, 1] = query[group], cluster[group]
        entries = start[:-1][group][:, None] + np.arange(size)
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
    order = np.lexsort((cluster[chosen], query[chosen]))  # stable: within a query by length, then entries
    return chosen[order], total[order]


def affordable(kind: str | None, start: Offsets) -> None:
    """Lists are read as pairs only while these fit into memory."""
    length = np.diff(start).astype(float)
    pairs = float((length * (length - 1)).sum() / 2) if kind in ("orders", "ratings") else float(length.sum())
    if pairs > MOST_PAIRS:
        instead = "; plackett-luce and borda read lists without their pairs" if kind == "orders" else ""
        raise UsageError(
            f"{len(length):,} lists of up to {int(length.max()):,} items make {pairs:,.0f} pairs, more than "
            f"{MOST_PAIRS:,}{instead}"
        )


def all_pairs(start: Offsets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entry indices of all pairs within each list, the earlier first (orders are sorted best first)."""
    length = np.diff(start)
    after = np.repeat(start[1:], length) - np.arange(start[-1]) - 1  # entries of the list that follow each entry
    earlier = np.repeat(np.arange(start[-1], dtype=np.int64), after)
    begin = np.repeat(np.cumsum(after) - after, after)
    return earlier, earlier + 1 + np.arange(len(earlier)) - begin


def chosen_over(
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
