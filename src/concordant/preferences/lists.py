"""The rows of each list brought together, in memory: columns become ragged columns.

Lists checked: shown lists with a click, choices from a set, rankings and ratings, as ragged columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError
from concordant.preferences.comparisons import (
    Checked,
    Columns,
    Ints,
    cross_clusters,
    refuse_labels,
    refuse_numbers,
    times,
    whole_numbers,
)
from concordant.preferences.layouts import CLUSTERS, Layout
from concordant.preferences.notes import Note
from concordant.preferences.ragged import Ragged
from concordant.preferences.values import CLEAN, MISSING, Read, Reason, Verdict, flags, flat, labels, numbers

CLICKS = ("all", "raise", "first", "last", "skip")
UNITS = {"selections": "lists", "choices": "sets", "orders": "rankings", "ratings": "judgments"}
MANY_CLICKS = Reason(
    "have more than one click",
    "session",
    Note(
        "clicks",
        "Say which count with {all}, {first} or {last}, or leave these lists out with {skip}.",
        all=Setting("clicks", "all"),
        first=Setting("clicks", "first"),
        last=Setting("clicks", "last"),
        skip=Setting("clicks", "skip"),
    ),
)
MANY_CHOSEN = Reason(
    "have more than one item chosen, where the model allows one",
    "session",
    Note("clicks", "Leave these sets out with {skip}.", skip=Setting("clicks", "skip")),
)
SEVERAL = (MANY_CLICKS, MANY_CHOSEN)
Offsets = NDArray[np.int64]


@dataclass
class RawLists:
    """Raw lists: entries of list j are offsets[j]:offsets[j + 1] of every column of ``entries``."""

    keys: Columns
    entries: Columns
    offsets: Offsets
    times: Ints
    """How often each list occurs."""

    @property
    def owner(self) -> NDArray[np.int64]:
        """The list of each entry."""
        return Ragged(self.offsets).owner

    @property
    def rows(self) -> int:
        """Number of rows that the lists were made of."""
        return int((Ragged(self.offsets).sizes * self.times).sum())


@dataclass
class ListVerdicts:
    """What is refused: single rows (ratings only) and whole lists, with the entry that is to blame for a list."""

    rows: Verdict
    lists: Verdict
    blame: NDArray[np.int64]
    """For a refused list the entry to show, −1 for none."""


def check_lists(
    lists: RawLists, layout: Layout, *, clicks: str = "all", as_json: bool = False
) -> tuple[Checked, ListVerdicts]:
    """Check raw lists; a bad row refuses its whole list, but of ratings only itself.

    Errors (InputError) that no single row can be blamed for: labels of another type, mixed, not UTF-8.
    """
    if not isinstance(clicks, str) or clicks not in CLICKS:
        raise UsageError(f"clicks must be one of {', '.join(CLICKS)}, not {clicks!r}")
    kind, owner, number = layout.kind, lists.owner, len(lists.offsets) - 1
    seen = ListVerdicts(Verdict(len(owner)), Verdict(number), np.full(number, -1, np.int64))
    arguments: dict[str, Any] = {"kind": kind}
    for role in ("query", "session", "judgment", *CLUSTERS):
        if role in lists.keys:
            column = lists.keys[role]
            if role in ("query", *CLUSTERS):
                read = labels(column, role, as_json=as_json)
                refuse_labels(seen.lists, read, role)
                arguments[role] = read.values
            else:
                seen.lists.refuse(_missing(column), Reason(f"have no {role}", role))
    cross_clusters(arguments)
    item = labels(lists.entries["item"], "item", as_json=as_json)
    refuse_labels(seen.rows, item, "item")
    codes, names = _codes(item)
    value = _values(lists, layout, seen.rows, as_json)
    place = _positions(lists, seen.rows, as_json)
    number_of = _counts(lists, seen, owner, as_json)
    absent = value.fault == MISSING if kind == "orders" and value.fault is not None else None
    if kind != "ratings":
        _blame_lists(seen, owner)
    stays = seen.rows.not_yet(np.ones(len(owner), bool))
    if absent is not None:
        stays &= ~absent
    _refuse_twice(seen, owner, codes, stays, Reason("hold an item twice", "item"))
    if place is not None:
        _refuse_twice(seen, owner, place, stays, Reason("hold a position twice", "position"))
    values = np.asarray(value.values, np.float64)
    if kind in ("selections", "choices"):
        values = _one_click(seen, owner, values, stays, place, clicks, kind)
    return _finished(arguments, lists, seen, owner, codes, names, values, place, stays, absent, number_of), seen


def _missing(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _codes(item: Read) -> tuple[NDArray[np.int64], pa.Array]:
    """Return labels as codes (missing ones as 0) and what the codes stand for."""
    array = item.values
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = array.indices.fill_null(0) if array.indices.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int64), array.dictionary


def _values(lists: RawLists, layout: Layout, verdict: Verdict, as_json: bool) -> Read:
    if layout.kind in ("selections", "choices"):
        read = flags(lists.entries["clicked"], as_json=as_json)
        if read.fault is not None:
            hint = "Allowed: 0, 1, true, false."
            verdict.refuse(read.fault == MISSING, Reason("have no value of clicked", "clicked", hint))
            verdict.refuse(read.fault != CLEAN, Reason("have an unknown value of clicked", "clicked", hint))
        return read
    if layout.kind == "orders":
        hint = "A rank is a number, 1 (best) or more; leave it empty for no opinion."
        column = lists.entries["rank"]
        if pa.types.is_floating(column.type):  # NumPy has no other way to say that there is none
            column = pc.if_else(pc.is_nan(column), None, column)
        read = numbers(column, as_json=as_json)
        refuse_numbers(verdict, read, "rank", hint, missing=False)
        low = (read.values < 1) & (True if read.fault is None else read.fault == CLEAN)
        verdict.refuse(low, Reason("have a rank below 1", "rank", hint))
        return read
    read = numbers(lists.entries["rating"], as_json=as_json)
    refuse_numbers(verdict, read, "rating", "A rating is a finite number.")
    return read


def _positions(lists: RawLists, verdict: Verdict, as_json: bool) -> NDArray[np.int64] | None:
    if "position" not in lists.entries:
        return None
    hint = "A position is an integer, 1 (top) or more."
    return whole_numbers(lists.entries["position"], verdict, "position", hint, as_json, 1)


def _counts(lists: RawLists, seen: ListVerdicts, owner: NDArray[np.int64], as_json: bool) -> NDArray[np.int64] | None:
    """Read the multiplicity of each list, which all of its rows that can be understood must agree on."""
    if "count" not in lists.entries:
        return None
    hint = "A count is an integer, 1 or more, and the same in all rows of a list."
    values = whole_numbers(lists.entries["count"], seen.rows, "count", hint, as_json, 1)
    fine = np.flatnonzero(seen.rows.not_yet(np.ones(len(values), bool)))
    which, first = np.unique(owner[fine], return_index=True)
    often = np.ones(seen.lists.size, np.int64)
    often[which] = values[fine[first]]
    differs = fine[values[fine] != often[owner[fine]]]
    _refuse_entries(seen, owner, differs, Reason("have rows with different counts", "count", hint))
    return often


def _refuse_entries(seen: ListVerdicts, owner: NDArray[np.int64], entries: NDArray[np.int64], reason: Reason) -> None:
    """Refuse the lists of these entries, and blame the first of them that a list has."""
    if not len(entries):
        return
    which, first = np.unique(owner[entries], return_index=True)
    mask = np.zeros(seen.lists.size, bool)
    mask[which] = True
    mask = seen.lists.not_yet(mask)
    seen.blame[which[mask[which]]] = entries[first][mask[which]]
    seen.lists.refuse(mask, reason)


def _blame_lists(seen: ListVerdicts, owner: NDArray[np.int64]) -> None:
    """Refuse whole lists for their bad rows."""
    for reason, at in seen.rows.refused:
        says = Reason(reason.says.replace("have a", "have a row with a", 1), reason.role, reason.hint)
        _refuse_entries(seen, owner, at, says)
    seen.rows.code = None
    seen.rows.reasons.clear()


def _refuse_twice(
    seen: ListVerdicts, owner: NDArray[np.int64], codes: NDArray[np.int64], stays: NDArray[np.bool_], reason: Reason
) -> None:
    """Refuse the lists in which a code occurs twice among the entries that stay."""
    entries = np.flatnonzero(stays)
    width = int(codes.max(initial=0)) + 1
    if width * seen.lists.size < 1 << 62:
        key = np.sort(owner[entries] * width + codes[entries])
        if (key[1:] > key[:-1]).all():
            return
    sorter = entries[np.lexsort((codes[entries], owner[entries]))]
    again = (owner[sorter][1:] == owner[sorter][:-1]) & (codes[sorter][1:] == codes[sorter][:-1])
    _refuse_entries(seen, owner, sorter[1:][again], reason)


def _one_click(
    seen: ListVerdicts,
    owner: NDArray[np.int64],
    clicked: NDArray[np.float64],
    stays: NDArray[np.bool_],
    place: NDArray[np.int64] | None,
    clicks: str,
    kind: str,
) -> NDArray[np.float64]:
    """Leave all clicks or one in every list, or refuse the lists that have more; a choice is one."""
    if clicks == "all" and kind == "selections":
        return clicked
    number = np.bincount(owner, weights=clicked * stays, minlength=seen.lists.size)
    many = seen.lists.not_yet(number > 1)
    if not many.any():
        return clicked
    if clicks in ("all", "raise", "skip") or place is None:
        if clicks in ("first", "last"):
            raise UsageError(
                Setting("clicks", clicks),
                " needs a position; a choice from a set has no first: use ",
                Setting("clicks", "skip"),
            )
        entries = np.flatnonzero((clicked * stays > 0) & many[owner])
        if place is not None:
            entries = entries[np.lexsort((place[entries], owner[entries]))]
        second = entries[1:][owner[entries][1:] == owner[entries][:-1]]
        _refuse_entries(seen, owner, second, MANY_CLICKS if kind == "selections" else MANY_CHOSEN)
        return clicked
    entries = np.flatnonzero(clicked > 0)
    sign = 1 if clicks == "first" else -1
    sorter = entries[np.lexsort((sign * place[entries], owner[entries]))]
    _, leading = np.unique(owner[sorter], return_index=True)
    single = np.zeros(len(clicked))
    single[sorter[leading]] = 1.0
    return single


def _finished(
    arguments: dict[str, Any],
    lists: RawLists,
    seen: ListVerdicts,
    owner: NDArray[np.int64],
    codes: NDArray[np.int64],
    names: pa.Array,
    values: NDArray[np.float64],
    place: NDArray[np.int64] | None,
    stays: NDArray[np.bool_],
    absent: NDArray[np.bool_] | None,
    number_of: NDArray[np.int64] | None,
) -> Checked:
    """Drop what is refused, order the entries, and declare the items that no opinion was given on."""
    fine = seen.lists.fine
    good = np.ones(seen.lists.size, bool) if fine is None else fine
    stays = seen.rows.not_yet(stays) & good[owner]
    length = np.bincount(owner[stays], minlength=seen.lists.size)
    chosen = good & (length > 0)
    entries = np.flatnonzero(stays)
    if place is not None:
        entries = entries[np.lexsort((place[entries], owner[entries]))]
    offsets = Ragged.of_sizes(length[chosen]).start
    item = _labels(codes[entries], names)
    query = arguments.get("query")
    if absent is not None:
        told = np.flatnonzero(absent & good[owner])
        who = None if query is None else query.take(pa.array(owner[told]))
        arguments["declared"] = (who, _labels(codes[told], names)) if len(told) else None
    for role in ("query", "cluster"):
        if role in arguments:
            arguments[role] = arguments[role].filter(pa.array(chosen))
    arguments |= {"offsets": offsets, "item": item, "value": values[entries]}
    arguments["count"] = often = times(lists.times, number_of, chosen)[chosen]
    gaps = far = 0
    if place is not None:
        arguments["value"], gap, beyond = at_positions(Ragged(offsets), values[entries] > 0, place[entries])
        gaps, far = int(often[gap & ~beyond].sum()), int(often[beyond].sum())
    blank = int(times(lists.times, number_of, good & ~chosen)[good & ~chosen].sum())
    return Checked(arguments, seen.lists, not chosen.any(), gaps=(gaps, far), blank=blank)


def said_of_lists(checked: Checked, of: int, log: str = "") -> tuple[Note, ...]:
    """Say what was read otherwise than it stands there, of so many lists that are left."""
    return (*said_of_empty(checked.blank, of, log), *said_of_positions(*checked.gaps, of, log))


def said_of_empty(empty: int, of: int, log: str = "") -> tuple[Note, ...]:
    """Say how many rankings rank nothing, beside so many others; where any do.

    >>> said_of_empty(1, 4, "ballots.csv"), said_of_empty(0, 4)
    (('ballots.csv: 1 of 5 rankings ranks nothing and is left out',), ())
    """
    text = "{empty:,} of {of:rankings} {empty:ranks|rank} nothing and {empty:is|are} left out"
    whose = "{log}: " if log else ""
    return (Note("empty rankings", whose + text, log=log, empty=empty, of=of + empty),) if empty else ()


def empty_rankings(notes: Iterable[str]) -> int:
    """Return how many rankings rank nothing, by what is noted of a log or of a part of it."""
    return sum(int(one.numbers["empty"]) for one in notes if isinstance(one, Note) and one.code == "empty rankings")


FAR = 1000
"""Positions up to which lists with gaps are read as they were given: readers hardly look further. What stands further
down counts as shown there, the last at this position and those before it one above another."""


def at_positions(
    lists: Ragged, clicked: NDArray[np.bool_], position: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the values of the entries of lists as shown, which say clicks and positions, and the lists with gaps.

    The last: the lists with gaps that go beyond ``FAR``.

    An entry before which g positions hold nothing of the log has 1 + g where it was clicked and −g where not.
    ``shown_at`` reads them.
    """
    last = position[lists.start[1:] - 1]
    gaps = last != lists.sizes
    far = gaps & (last > FAR)
    until = np.where(far, np.maximum(FAR, lists.sizes), last)  # a list has room for what it holds
    position = np.minimum(position, lists.spread(until + 1 - lists.sizes) + lists.place)
    gap = np.diff(position, prepend=0) - 1
    gap[lists.first] = position[lists.first] - 1
    return np.where(clicked, 1 + gap, -gap).astype(np.float64), gaps, far


def said_of_positions(gaps: int, far: int, of: int, log: str = "", *, one_in: int = 1) -> tuple[Note, ...]:
    """Say of how many lists as shown the positions have gaps, and of how many they go beyond ``FAR``; where any do.

    ``one_in``: of how many lists one was looked at.

    >>> [note[:36] for note in said_of_positions(1, 2, 3)], said_of_positions(0, 0, 3)
    (['in 1 of 3 lists positions do not run', 'in 2 of 3 lists positions have gaps '], ())
    """
    given = (
        "{lists:,} of {of:lists} positions do not run from 1 on without gaps: position-based, inverse-propensity and "
        "dependent-click take them as they are given, everything else as an order"
    )
    beyond = (
        "{lists:,} of {of:lists} positions have gaps and go beyond {far:,}: what stands further down counts as shown "
        "at {far:,}, or just above what follows it"
    )
    looked = " (one list in {one_in:,} was looked at)" if one_in > 1 else ""
    start, more = "{log}: in " if log else "in ", dict[str, Any](log=log, of=of, one_in=one_in)
    notes = [Note("positions as given", start + given + looked, lists=gaps, **more)] if gaps else []
    notes += [Note("positions beyond", start + beyond + looked, lists=far, far=FAR, **more)] if far else []
    return tuple(notes)


def _labels(codes: NDArray[np.int64], names: pa.Array) -> pa.Array:
    places = pa.array(codes.astype(np.int32))
    if pa.types.is_integer(names.type):
        return names.take(places)
    return pa.DictionaryArray.from_arrays(places, names)


Key = NDArray[np.int64]


class IntegerRange:
    """The integers low … low + size − 1, standing for themselves as the values of codes."""

    def __init__(self, low: int, size: int, kind: pa.DataType) -> None:
        self.low, self.size, self.type = low, size, kind

    def __len__(self) -> int:
        return self.size


def coded(column: Any) -> tuple[NDArray[Any], Any]:
    """Return a code per row and the values the codes stand for; the code after the last is missing."""
    array = flat(column)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int32), pa.array([], array.type)
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type) and len(array) and not array.null_count:
        values = array.to_numpy(zero_copy_only=False)
        low, high = int(values.min()), int(values.max())
        if high - low < max(4 * len(values), 1 << 16):
            return values.astype(np.int64) - low if low else values, IntegerRange(low, high - low + 1, array.type)
    if not pa.types.is_dictionary(array.type):
        try:
            array = array.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InputError(f"a column of {array.type} cannot be counted; labels are texts or integers") from None
    codes = pc.fill_null(array.indices, len(array.dictionary)) if array.indices.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False), array.dictionary


def decoded(values: Any, codes: Key) -> pa.Array:
    """Return what codes stand for; texts come as a dictionary."""
    if isinstance(values, IntegerRange):
        return pa.array(codes + values.low if values.low else codes, values.type)
    missing = codes == len(values)
    places = pa.array(codes.astype(np.int32, copy=False), mask=missing if missing.any() else None)
    if pa.types.is_large_string(values.type):
        return pa.DictionaryArray.from_arrays(places, values)
    return values.take(places) if len(values) else pa.nulls(len(codes), values.type)


def packed(columns: Sequence[tuple[NDArray[Any], Any]]) -> tuple[Key, int]:
    """Return one integer a row that is equal where all codes are, and how many values it can take.

    Where the product of the sizes leaves 62 bits, the key so far is replaced by its ranks (and cannot be unpacked).
    """
    codes, values = columns[0]
    key, span = codes.astype(np.int64), len(values) + 1
    for codes, values in columns[1:]:
        width = len(values) + 1
        if span * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            span = len(present)
        key *= width
        key += codes
        span *= width
    return key, span


def unpacked(key: Key, columns: Sequence[tuple[NDArray[Any], Any]]) -> list[pa.Array]:
    """Return the values of each column at the given keys."""
    found = []
    for _, values in reversed(columns[1:]):
        found.append(decoded(values, key % (len(values) + 1)))
        key = key // (len(values) + 1)
    found.append(decoded(columns[0][1], key))
    return found[::-1]


def gather(columns: Columns, keys: Sequence[str], entries: Sequence[str]) -> tuple[RawLists, NDArray[np.int64]]:
    """Bring together the rows of each list, in the order they came, and say which row each entry was."""
    flats = {role: flat(columns[role]) for role in (*keys, *entries)}
    rows = len(next(iter(flats.values())))
    if not keys:
        every = {role: flats[role] for role in entries}
        return RawLists({}, every, np.array([0, rows]), np.ones(1, np.int64)), np.arange(rows)
    key, _ = packed([coded(flats[role]) for role in keys])
    order = np.argsort(key, kind="stable")
    runs = Ragged.runs(key[order])
    begin = runs.first
    first = pa.array(order[begin])
    # lists stand in the order in which their first rows came
    by_first = np.argsort(order[begin], kind="stable")
    lists, place = runs.take(by_first)
    order = order[place]
    taken = pa.array(order)
    return (
        RawLists(
            {role: flats[role].take(first.take(pa.array(by_first))) for role in keys},
            {role: flats[role].take(taken) for role in entries},
            lists.start,
            np.ones(len(begin), np.int64),
        ),
        order,
    )
