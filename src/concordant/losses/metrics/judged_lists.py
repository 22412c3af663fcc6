"""The lists that are judged, brought together by query, and the order of each by score under a rule for ties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.preferences.labels import Labels, as_label_array
from concordant.preferences.ragged import Grouped, Ragged

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]


def scores_alike(score: Floats, label: Floats, query: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return of each query, in the order of their codes, whether all scores are equal, though labels are not.

    >>> scores_alike(np.zeros(4), np.array([1.0, 2.0, 3.0, 3.0]), np.array([0, 0, 1, 1])).tolist()
    [True, False]
    """
    order = np.argsort(query, kind="stable")
    each = Ragged.runs(query[order])
    scores, labels = (each.most(values[order]) == each.least(values[order]) for values in (score, label))
    return np.asarray(scores & ~labels)


@dataclass(frozen=True)
class Lists(Grouped):
    """The rows of each query, queries in the order of first appearance, rows in the order given.

    Query q holds the places ``start[q]`` to ``start[q + 1]``; ``rows`` says which row stands at each place (None: every
    row stands where it was given).
    """

    start: Offsets
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def first(self) -> NDArray[np.int64]:
        """The row where each query appears first."""
        begin = self.start[:-1]
        return begin if self.rows is None else self.rows[begin]

    def take(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column by places instead of rows."""
        return column if self.rows is None else column[self.rows]

    def parts(self, size: int) -> list[tuple[Lists, slice]]:
        """Return runs of lists with about ``size`` places each, and where their places are; rows are not kept.

        >>> [(part.start.tolist(), where) for part, where in Lists(np.array([0, 2, 3, 7])).parts(4)]
        [([0, 2, 3, 7], slice(0, 7, None))]
        >>> [(part.start.tolist(), where) for part, where in Lists(np.array([0, 2, 3, 7])).parts(2)]
        [([0, 2], slice(0, 2, None)), ([0, 1, 5], slice(2, 7, None))]
        """
        if not len(self):
            return []
        cuts = np.flatnonzero(np.diff(self.start[:-1] // size, prepend=-1))
        ends = np.append(cuts[1:], len(self))
        return [
            (Lists(self.start[a : b + 1] - self.start[a]), slice(int(self.start[a]), int(self.start[b])))
            for a, b in zip(cuts.tolist(), ends.tolist(), strict=True)
        ]


def lists_of(query: Any, size: int) -> Lists:
    """Return the lists of a column of ``size`` queries: texts or integers of any make, or None for one query.

    >>> lists_of(["b", "a", "b"], 3)
    Lists(start=array([0, 2, 3]), rows=array([0, 2, 1]))
    """
    if query is None:
        return Lists(np.array([0, size], np.int64) if size else np.zeros(1, np.int64))
    if isinstance(query, np.ndarray) and query.ndim == 1 and query.dtype.kind in "iuU":
        _same_length("query", len(query), size)
        begin = np.append(0, np.flatnonzero(query[1:] != query[:-1]) + 1) if size else np.zeros(0, np.int64)
        heads = query[begin]
        if np.all(heads[1:] > heads[:-1]) or len(np.unique(heads)) == len(heads):
            return Lists(np.append(begin, size).astype(np.int64))
    try:
        array = as_label_array(query)
    except InputError as error:
        raise InputError(f"query: {error}") from None
    _same_length("query", len(array), size)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    code = array.dictionary_encode().indices.to_numpy(zero_copy_only=False)  # codes in order of first appearance
    start = np.append(0, np.cumsum(np.bincount(code, minlength=0))).astype(np.int64)
    if np.all(code[1:] >= code[:-1]):
        return Lists(start)
    return Lists(start, np.argsort(code, kind="stable"))


def as_numbers(column: Any, role: str, *, size: int | None = None, infinite: bool = False) -> Floats:
    """Return a column of real numbers as float64.

    Errors (InputError): not one-dimensional, not numbers, NaN or (unless allowed) infinities, another length than
    ``size``.
    """
    if np.ma.is_masked(column):
        raise InputError(f"{role}: values are masked; leave their rows out")
    try:
        array = np.asarray(column)
        if array.dtype.kind not in "biuf":
            array = np.array(array, np.float64) if array.dtype.kind == "O" else _refused(array, role)
    except (OverflowError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{role} must be real numbers: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{role} must be one column (one-dimensional), not of shape {array.shape}")
    if size is not None:
        _same_length(role, len(array), size)
    values = np.asarray(array, np.float64)
    if array.dtype.kind in "bui":
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # a finite sum has only finite terms
            return values
    wrong = np.isnan(values) if infinite else ~np.isfinite(values)
    if wrong.any():
        place = int(wrong.argmax())
        raise InputError(
            f"{role}: {int(wrong.sum()):,} of {len(values):,} are not {'numbers' if infinite else 'finite'} "
            f"(first {values[place]} in row {place + 1:,})"
        )
    return values


def _refused(array: NDArray[Any], role: str) -> NDArray[Any]:
    said = "Complex data not supported: " if array.dtype.kind == "c" else ""
    raise InputError(f"{said}{role} must be real numbers, not of type {array.dtype}")


def _same_length(role: str, found: int, size: int) -> None:
    if found != size:
        raise InputError(f"{role} has {found:,} rows, scores have {size:,}")


def check_cutoff(at: Any) -> int | None:
    """Return a cut-off: None or an integer of at least 1."""
    if at is None:
        return None
    if isinstance(at, bool) or not isinstance(at, int | np.integer) or at < 1:
        raise UsageError(
            f"at must be an integer of at least 1, or None for the whole list, not {' '.join(repr(at).split())[:80]}"
        )
    return int(at)


def threshold(relevant: Any) -> None:
    """Refuse a label from which on a document is relevant that is no number."""
    if not isinstance(relevant, Real):
        raise UsageError(f"relevant must be a real number, not {str(repr(relevant))[:80]}")


def matrices(
    start: Offsets, values: Floats, which: NDArray[np.int64], fill: float
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield chosen lists of similar length (within a factor of two) as the rows of a matrix, padded on the right.

    At most one matrix for each power of two, so that work along the ranks needs no loop over queries.
    """
    length = np.diff(start)[which]
    if len(which) == len(start) - 1 and len(which) and np.all(length == length[0]):
        yield which, values.reshape(len(which), int(length[0]))
        return
    exponent = np.frexp(np.maximum(length - 1, 0).astype(np.float64))[1]
    for size in np.unique(exponent):
        members = np.flatnonzero(exponent == size)
        columns = np.arange(int(length[members].max()))
        index = start[which[members]][:, None] + columns
        inside = columns < length[members][:, None]
        index[~inside] = 0
        matrix = values[index]
        matrix[~inside] = fill
        yield which[members], matrix


TIES = {
    "input": "in the order of the rows given",
    "item": "by item, descending, as texts by code point",
    "averaged": "the mean over all orders of the tied items",
    "worst": "the item of lower label first",
    "best": "the item of higher label first",
}
"""What happens to items of equal score."""


@dataclass(frozen=True)
class Ranked(Grouped):
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

    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    rank = Ragged(start).place + 1
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
    begin, group = order.runs()
    tied = (np.diff(np.append(begin, len(group))) > 1)[group]
    place = order.place[tied]
    key: NDArray[Any] = -label[place] if ties == "best" else label[place]
    if ties == "item" and item is not None:
        key = -_item_codes(lists, item, place, size)
    elif ties == "item" and np.any(order.tied[1:] & (np.diff(label[order.place]) != 0)):
        raise UsageError(
            f"{int(order.tied.sum()):,} scores are tied and this convention breaks ties by document id: give items (",
            Setting("item"),
            ")",
        )
    order.place[tied] = place[np.lexsort((key, group[tied]))]


def _within_reach(lists: Lists, score: Floats, at: int | None) -> NDArray[np.int64] | None:
    """Return the places whose score is at least the ``at``-th highest of their list (None: all)."""
    length = lists.groups.sizes
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
