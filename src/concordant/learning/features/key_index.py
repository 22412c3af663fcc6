"""Rows of a table that is not in memory by query and item: which belongs to which judged item, and which come twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.io.engines.duckdb import Settings, over_stream
from concordant.learning.features.matrix import refuse_missing, refuse_other_types
from concordant.learning.features.reading import column_labels
from concordant.learning.features.streamed import BLOCK, FeatureFile
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged


def refuse_repeats(file: FeatureFile, code: NDArray[np.integer[Any]] | None = None) -> None:
    """Raise InputError where two rows are of one (query, item); with ``code``, only of those whose code is negative."""
    roles = ["item"] if file.query is None else ["item", "query"]
    kinds = [file.label_type(role) for role in roles]
    schema = pa.schema([*zip(roles, kinds, strict=True), ("row", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        for begin, batch in file.labels():
            end = begin + len(batch)
            chosen = np.arange(begin, end) if code is None else begin + np.flatnonzero(code[begin:end] < 0)
            at, columns = pa.array(chosen - begin), []
            for role, kind, column in zip(roles, kinds, batch.columns, strict=True):
                values = column_labels(pa.chunked_array([column]), role, file.log, begin)
                columns.append(pc.take(values, at).cast(kind))
            yield pa.RecordBatch.from_arrays([*columns, pa.array(chosen)], schema=schema)

    keys = ", ".join(roles)
    statement = (
        f'WITH twice AS (SELECT {keys}, count(*) - 1 AS again, min("row", 2) AS places FROM stream GROUP BY {keys} '
        f"HAVING count(*) > 1) SELECT {keys}, places[1] AS place_1, places[2] AS place_2, "
        "(SELECT sum(again) FROM twice)::BIGINT AS repeats FROM twice ORDER BY place_1 LIMIT 1"
    )
    for found in over_stream(rows(), schema, statement, Settings(file.memory_limit), rows=1):
        for row in found.to_pylist():
            called = ", ".join(f"{role} {row[role]!r}" for role in reversed(roles))
            say_repeats(file, row["repeats"], row["place_1"], row["place_2"], called)


def say_repeats(file: FeatureFile, repeats: int, first: int, second: int, called: str) -> None:
    """Raise InputError: so many rows are repeats, the first of them the row ``second`` (from 0)."""
    unit = "item" if file.query is None else "(query, item)"
    raise InputError(
        f"{file.log.name}: {repeats:,} of {len(file):,} rows repeat an earlier {unit}: rows {first + 1:,} and "
        f"{second + 1:,} are both {called}; give each {unit} one row"
    )


Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]
SHORT = 1 << 31


@dataclass(frozen=True, eq=False)
class Placed:
    """The nodes of ``Batch.whole(prefs)`` that each row of a table is about: 4 bytes a row."""

    start: Ints
    """Nodes of query q are start[q]:start[q + 1]."""
    code: Codes
    """Of each row its node or, where rows hold for every query, its item; -1 where nobody judged it."""
    nodes_of_item: tuple[Ints, Codes] | None
    """Where rows hold for every query: nodes of item i are second[first[i]:first[i + 1]]."""
    grouped: bool
    """Whether the judged rows of each query stand together."""
    unjudged: int
    """Rows that no judgment is about."""

    def nodes(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """Return the rows begin … end − 1 that were judged, counted from ``begin``, and their nodes, pair by pair."""
        code = self.code[begin:end]
        row = np.flatnonzero(code >= 0)
        code = code[row]
        if self.nodes_of_item is None:
            return row, code.astype(np.int64)
        first, nodes = self.nodes_of_item
        taken, entries = Ragged(first).take(code)
        return taken.spread(row), nodes[entries].astype(np.int64)


def place(file: FeatureFile, prefs: Preferences) -> Placed:
    """Find the nodes that each row is about, as ``align`` does for features in memory.

    Errors (InputError): labels that are missing or of another type, rows that repeat an earlier (query, item), items
    with preferences but no features.
    """
    if file.placed is not None and file.placed[0] is prefs:
        return file.placed[1]  # type: ignore[no-any-return]
    start, item = prefs.members
    start = np.asarray(start, np.int64)
    many = file.query is None and len(prefs.queries) > 1
    known = len(prefs.items) if many else int(start[-1])
    code: Codes = np.empty(len(file), _short(known))
    seen = np.zeros(known, bool)
    runs = _Runs(len(prefs.queries))
    finder = _Finder(file, prefs)
    for begin, batch in file.labels():
        query, items = finder(begin, batch)
        if many:
            found = items
        else:
            found = _node(start, item, query, items)
            runs.add(query[found >= 0])
        code[begin : begin + len(batch)] = found
        seen[found[found >= 0]] = True
    judged = int(np.count_nonzero(code >= 0))
    if judged > np.count_nonzero(seen):
        _refuse_judged_twice(file, prefs, code, judged - int(np.count_nonzero(seen)))
    if judged < len(file):
        refuse_repeats(file, code)
    absent = np.flatnonzero(~(seen[item] if many else seen))
    if len(absent):
        refuse_missing(
            len(file), prefs, np.searchsorted(start, absent, side="right") - 1, item[absent], _some_labels(file)
        )
    nodes_of_item = None
    if many:
        first = Ragged.counted(item, known).start
        sorter = np.argsort(item, kind="stable")
        nodes_of_item = (first, sorter.astype(_short(len(item)), copy=False))
    found_all = Placed(start, code, nodes_of_item, runs.whole and not many, len(file) - judged)
    file.placed = (prefs, found_all)
    return found_all


def _some_labels(file: FeatureFile) -> tuple[Labels, Labels | None]:
    """The labels of items and queries in the first block of rows."""
    begin, batch = next(iter(file.labels()))
    found = [
        Labels.encode(column_labels(pa.chunked_array([batch.column(place)]), role, file.log, begin))[0]
        for place, role in enumerate(("item", "query")[: batch.num_columns])
    ]
    return found[0], found[1] if len(found) > 1 else None


def _short(number: int) -> Any:
    """The narrowest type of codes below a number."""
    return np.int32 if number < SHORT else np.int64


class _Runs:
    """Whether queries come one after the other, none of them twice."""

    def __init__(self, queries: int) -> None:
        self.begun = np.zeros(queries, bool)
        self.last = -1
        self.whole = True

    def add(self, query: Ints) -> None:
        if not self.whole or len(query) == 0:
            return
        begins = query[np.flatnonzero(np.diff(query, prepend=self.last))]
        self.whole = not self.begun[begins].any() and len(np.unique(begins)) == len(begins)
        self.begun[begins] = True
        self.last = int(query[-1])


class _Finder:
    """Codes of the queries and items of preferences, part of a table by part; -1 for those that are not there."""

    def __init__(self, file: FeatureFile, prefs: Preferences) -> None:
        self.file, self.prefs = file, prefs
        self.known = {"item": _Known(prefs.items), "query": _Known(prefs.queries)}

    def __call__(self, begin: int, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        items = self._codes("item", begin, batch.column(0))
        if self.file.query is None:
            return np.zeros(len(batch), np.int64), items
        return self._codes("query", begin, batch.column(1)), items

    def _codes(self, role: str, begin: int, column: pa.Array) -> Ints:
        log, known = self.file.log, self.known[role]
        values = column_labels(pa.chunked_array([column]), role, log, begin)
        if len(known.labels) and len(values) and pa.types.is_integer(values.type) != known.integer:
            values = _as_written(values, known.integer) if self.file.as_written else None
            if values is None:
                sample = Labels.encode(column_labels(pa.chunked_array([column.slice(0, 1)]), role, log, begin))[0]
                other = Labels.empty() if role == "query" else sample
                refuse_other_types(other, sample if role == "query" else None, self.prefs)
        return known.codes(values)


def _as_written(values: pa.Array, integer: bool) -> pa.Array | None:
    """Return labels in the other type; None where texts are not written as integers are."""
    if not integer:
        return values.cast(pa.large_string()).dictionary_encode()
    texts = values.dictionary
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers.take(values.indices) if numbers.cast(texts.type).equals(texts) else None


class _Known:
    """Labels, prepared for many look-ups."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.integer = bool(pa.types.is_integer(labels.values.type))
        self.values = labels.values.to_numpy(zero_copy_only=False) if self.integer else np.zeros(0, np.int64)

    def codes(self, values: pa.Array) -> Ints:
        if len(self.labels) == 0:
            return np.full(len(values), -1, np.int64)
        if not self.integer:
            codes = self.labels.codes_of(values.dictionary)
            return np.asarray(codes[values.indices.to_numpy()], np.int64)
        sought = values.to_numpy().astype(np.int64)
        at = np.minimum(np.searchsorted(self.values, sought), len(self.values) - 1)
        return np.where(self.values[at] == sought, at, -1)


def _node(start: Ints, item: Codes, query: Ints, sought: Ints) -> Ints:
    """Return the node of each (query, item), -1 where there is none: items ascend within a query."""
    low, high = start[query], start[query + 1]  # of query -1: nonsense, masked below
    end = high
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = open_ & (item[np.minimum(middle, len(item) - 1)] < sought)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    there = (low < end) & (item[np.minimum(low, len(item) - 1)] == sought) & (query >= 0) & (sought >= 0)
    return np.where(there, low, -1)


def _refuse_judged_twice(file: FeatureFile, prefs: Preferences, code: Codes, repeats: int) -> None:
    sorter = np.argsort(code, kind="stable")
    again = np.flatnonzero((np.diff(code[sorter]) == 0) & (code[sorter[1:]] >= 0))[0]
    first, second = int(sorter[again]), int(sorter[again + 1])
    start, item = prefs.members
    if file.query is None:
        called = f"item {prefs.items[int(code[first]) if len(prefs.queries) > 1 else int(item[code[first]])]!r}"
    else:
        query = int(np.searchsorted(start, code[first], side="right")) - 1
        called = f"query {prefs.queries[query]!r}, item {prefs.items[int(item[code[first]])]!r}"
    say_repeats(file, repeats, first, second, called)


Matrix = NDArray[np.floating[Any]]
SORTING = "1GB"
"""Memory of the sort where the user gave no limit; what is beyond it goes to disk."""


def rows_by_query(
    file: FeatureFile, placed: Placed, *, missing: str = "raise", seen: Callable[[Matrix], None] | None = None
) -> Iterator[tuple[Matrix, Ints, Ints]]:
    """Yield blocks of (matrix, rows of it that were judged, their nodes), each query's rows together.

    A query may go on in the next block. Where the rows of the file do not stand query by query DuckDB sorts them on
    disk. ``seen`` is called with every block of the file, judged or not, in its order.
    """
    if placed.grouped:
        for begin, X in file.blocks(missing=missing):
            if seen is not None:
                seen(X)
            row, node = placed.nodes(begin, begin + len(X))
            yield X, row, node
        return
    width = len(file.names)
    kind = np.dtype(np.float32 if file.narrow else np.float64)
    schema = pa.schema([("node", pa.int64()), ("x", pa.large_binary())])
    unsorted = _packed(file, placed, schema, kind, missing, seen)
    settings = Settings(file.memory_limit or SORTING)
    rows = max(1, BLOCK // width)
    for batch in over_stream(unsorted, schema, "SELECT node, x FROM stream ORDER BY node", settings, rows=rows):
        node = batch.column(0).to_numpy()
        yield _unpacked(batch.column(1), width, kind), np.arange(len(node)), node


def _packed(
    file: FeatureFile,
    placed: Placed,
    schema: pa.Schema,
    kind: np.dtype[Any],
    missing: str,
    seen: Callable[[Matrix], None] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the judged rows, their features as bytes: one long value moves faster through a sort than many columns."""
    most = max(1, BLOCK // len(file.names))
    for begin, X in file.blocks(missing=missing):
        if seen is not None:
            seen(X)
        rows, nodes = placed.nodes(begin, begin + len(X))
        for first in range(0, len(rows), most):
            row, node = rows[first : first + most], nodes[first : first + most]
            chosen = X[row].astype(kind, copy=False)
            ends = np.arange(len(row) + 1, dtype=np.int64) * chosen.itemsize * chosen.shape[1]
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(chosen)]
            x = pa.Array.from_buffers(pa.large_binary(), len(row), buffers)
            yield pa.RecordBatch.from_arrays([pa.array(node), x], schema=schema)


def _unpacked(column: pa.Array, width: int, kind: np.dtype[Any]) -> NDArray[np.float64]:
    column = column.cast(pa.large_binary())
    first = int(np.frombuffer(column.buffers()[1], np.int64)[column.offset])
    values = np.frombuffer(column.buffers()[2], kind, len(column) * width, first)
    return values.reshape(-1, width).astype(np.float64)
