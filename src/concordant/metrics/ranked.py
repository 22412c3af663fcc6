"""The order of each list by score under a rule for ties: only what can be within the cut-off is sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.labels import Labels, as_label_array
from concordant.metrics.lists import Floats, Lists, Offsets, matrices

__all__ = ["TIES", "Ranked", "ranked"]

TIES = {
    "input": "in the order of the rows given",
    "item": "by item, descending, as texts by code point",
    "averaged": "the mean over all orders of the tied items",
    "worst": "the item of lower label first",
    "best": "the item of higher label first",
}
"""What happens to items of equal score."""


@dataclass(frozen=True)
class Ranked:
    """The ranked places of each list, best first: all of them, or at least those that can be within the cut-off.

    List q holds ``place[start[q]:start[q + 1]]``; ``rank`` counts from 1 in each list; ``tied`` says that a place has
    the score of the one before it in its list.
    """

    start: Offsets
    place: NDArray[np.int64]
    rank: NDArray[np.int64]
    tied: NDArray[np.bool_]

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each list of one value per ranked place."""
        if len(values) == 0:
            return np.zeros(len(self.start) - 1)
        return np.asarray(np.add.reduceat(values, self.start[:-1]), np.float64)

    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each group of tied places begins and the group of each ranked place."""
        begin = np.flatnonzero(~self.tied)
        return begin, np.cumsum(~self.tied) - 1


def ranked(
    lists: Lists, score: Floats, label: Floats, *, at: int | None, ties: str, single: bool = False, item: Any = None
) -> Ranked:
    """Rank the places of every list by descending score.

    ``score`` and ``label`` are by places; ``at`` limits the work to places that can be among the first ``at``;
    ``single`` compares scores in single precision; ``item`` is a column of labels by rows, needed by ties "item" where
    items of different labels are tied.
    """
    if ties not in TIES:
        raise UsageError(f"unknown rule for ties {ties!r}; {did_you_mean(ties, TIES)}")
    if single:
        with np.errstate(over="ignore"):
            score = score.astype(np.float32).astype(np.float64)
    place = _within_reach(lists, score, at)
    start = lists.start
    if place is not None:
        start = np.searchsorted(place, start).astype(np.int64)
        order = _descending(start, score[place])
        place = place[order]
    else:
        place = _descending(start, score)
    rank = np.arange(1, len(place) + 1) - np.repeat(start[:-1], np.diff(start))
    tied = np.zeros(len(place), np.bool_)
    by_rank = score[place]
    tied[1:] = (by_rank[1:] == by_rank[:-1]) & (rank[1:] > 1)
    found = Ranked(start, place, rank, tied)
    if ties in ("item", "worst", "best") and tied.any():
        _settle(found, lists, label, ties, item, len(score))
    return found


def _descending(start: Offsets, score: Floats) -> NDArray[np.int64]:
    """Return the places of every list by descending score, equal ones in their order."""
    order = np.empty(len(score), np.int64)
    for which, matrix in matrices(start, -score, np.arange(len(start) - 1), np.inf):
        found = np.argsort(matrix, axis=1, kind="stable") + start[which][:, None]  # what pads a list comes last
        target = start[which][:, None] + np.arange(matrix.shape[1])
        inside = target < start[which + 1][:, None]
        order[target[inside]] = found[inside]
    return order


def _settle(order: Ranked, lists: Lists, label: Floats, ties: str, item: Any, size: int) -> None:
    """Put the places of equal score in the order of the rule, in place: one lexsort of them alone."""
    begin, group = order.groups()
    tied = (np.diff(np.append(begin, len(group))) > 1)[group]
    place = order.place[tied]
    key: NDArray[Any] = -label[place] if ties == "best" else label[place]
    if ties == "item" and item is not None:
        key = -_item_codes(lists, item, place, size)
    elif ties == "item" and np.any(order.tied[1:] & (np.diff(label[order.place]) != 0)):
        raise UsageError(
            f"{int(order.tied.sum()):,} scores are tied and this convention breaks ties by document id: give item="
        )
    order.place[tied] = place[np.lexsort((key, group[tied]))]


def _within_reach(lists: Lists, score: Floats, at: int | None) -> NDArray[np.int64] | None:
    """Return the places whose score is at least the ``at``-th highest of their list (None: all)."""
    length = np.diff(lists.start)
    long = np.flatnonzero(length > at) if at is not None else length[:0]
    if at is None or not len(long):
        return None
    least = np.full(len(lists), -np.inf)
    if len(long) == len(lists) and np.all(length == length[0]):
        matrix = score.reshape(len(lists), int(length[0]))
        bound = np.partition(matrix, matrix.shape[1] - at, axis=1)[:, matrix.shape[1] - at]
        return np.flatnonzero(matrix >= bound[:, None])
    for which, matrix in matrices(lists.start, score, long, -np.inf):
        least[which] = np.partition(matrix, matrix.shape[1] - at, axis=1)[:, matrix.shape[1] - at]
    return np.flatnonzero(score >= np.repeat(least, length))


def _item_codes(lists: Lists, item: Any, place: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    array = as_label_array(item)
    if len(array) != size:
        raise InputError(f"item has {len(array):,} rows, scores have {size:,}")
    chosen = array.take(pa.array(place if lists.rows is None else lists.rows[place]))
    if pa.types.is_integer(chosen.type):
        chosen = pc.cast(chosen, pa.large_string())
    return Labels.encode(chosen)[1].astype(np.int64)
