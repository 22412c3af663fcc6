"""Votes that have an id are taken once: rows that repeat one are left out, rows that contradict one are refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, counted, few
from concordant.io.engines.counting import Counter
from concordant.io.forms import places as places_of_rows
from concordant.io.log.rows import MOST_SOUGHT, Sought
from concordant.preferences.comparisons import Checked
from concordant.preferences.layouts import Layout, plain
from concordant.preferences.messages import labelled
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, counted_comparisons
from concordant.preferences.values import NUMBER, Reason, Reject, flat, say, texts

ID = re.compile(
    r"id|uuid|guid|index|idx|num|(vote|battle|row|record|event|comparison|match|annotation|feedback)_(id|uuid)|\w+_uuid"
)
"""Names, in plain spelling, of columns that may number the votes."""
LOOKED = 4_000_000
"""Rows up to which a log is looked through for repeated ones without being asked."""
HASH = pa.binary(16)
NONE = Reason("have no id", "id", "Each vote has one.")
ROW = "row"
"""The column of ids that says which judgment of the batch a vote is; earlier versions did not write it."""
Columns = dict[str, Any]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Ids:
    """Votes by a 128-bit hash of their ids, and a 64-bit one of what was read of each."""

    id: pa.Array
    """Of 16 bytes each."""
    content: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.id)

    def only(self, rows: NDArray[Any]) -> Ids:
        """Return some of them."""
        return Ids(self.id.take(pa.array(np.arange(len(self))[rows])), self.content[rows])


@dataclass
class Votes:
    """The votes of a log by their ids, with those that a store has already.

    >>> votes, found = Votes(), {"id": pa.array([7, 8, 7]), "winner": pa.array(["a", "b", "a"])}
    >>> kept, rows = votes.once(found, np.array([1, 2, 1]), "votes.csv", "vote", as_json=False)
    >>> kept["winner"].to_pylist(), rows.tolist(), votes.repeated
    (['a', 'b'], [1, 1], 2)
    """

    known: Iterable[pa.Table] | None = None
    """The ids of the store that the log is taken into, a table for each batch."""
    forgotten: pa.Array = field(default_factory=lambda: hashed_ids(()))
    """The hashes of ids whose votes are forgotten there."""
    keeping: bool = False
    """Whether the ids are kept, to tell which votes another log has, too."""
    other: Ids | None = None
    """Those of another log: only votes that it has, too, are read."""
    repeated: int = 0
    """Rows whose vote another row of the log has."""
    had: int = 0
    """Votes that the store has."""
    left_out: int = 0
    """Votes that are forgotten."""
    column: str = ""
    seen: Ids | None = None
    """The ids, where they are kept."""
    new: Ids | None = field(default=None)
    """Of the store that the log is taken into: the votes that were not there."""
    judged: Comparisons | None = None
    """What they are, each apart (its ``time`` is its place among the new ones), in order of what was judged."""

    def once(
        self, found: Columns, rows: Ints, name: str, column: str, *, as_json: bool
    ) -> tuple[Columns, NDArray[np.int32]]:
        """Return the columns with a row for each new vote. Errors (InputError): votes that contradict others."""
        self.column = column
        ids = texts(found["id"], as_json=as_json)
        columns = {role: values for role, values in found.items() if role != "id"}
        first, contradicted = _groups(ids, columns)
        if len(contradicted):
            labels = [ids[int(place)].as_py() for place in contradicted[:3]]
            raise InputError(
                f"{name}: {counted(len(contradicted), 'ids')} in {column!r} "
                f"{'has' if len(contradicted) == 1 else 'have'} rows that differ in what was judged (such as "
                f"{few(labels)}); an id is that of one vote"
            )
        self.repeated = int(rows.sum(dtype=np.int64)) - len(first)
        kept = first
        if self.keeping:
            self.seen = _hashed(ids, columns, first, as_json)
        if self.other is not None:
            kept = self._common(self.other, ids, columns, first, name, as_json)
        if self.known is not None:
            kept = self._unknown(self.known, ids, columns, first, name, as_json)
        taken = {role: flat(labelled(values)).take(pa.array(kept)) for role, values in columns.items()}
        return taken, np.ones(len(kept), np.int32)

    def _unknown(
        self, known: Iterable[pa.Table], ids: Any, columns: Columns, first: Ints, name: str, as_json: bool
    ) -> Ints:
        """Return the places of the votes that the store has not; keep their hashes."""
        signs = _hashed(ids, columns, first, as_json)
        gone = pc.is_in(signs.id, value_set=self.forgotten).to_numpy(zero_copy_only=False)
        there, other = np.zeros(len(signs), bool), np.zeros(len(signs), bool)
        for table in known:
            at, theirs = places(table, signs.id)
            there[at] = True
            other[at] |= table["content"].to_numpy()[theirs] != signs.content[at]
        other &= ~gone
        if number := int(other.sum()):
            labels = [ids[int(at)].as_py() for at in first[other][:3]]
            raise InputError(
                f"{name}: {counted(number, 'votes')} that the store has by id {'comes' if number == 1 else 'come'} "
                f"with another content (such as {few(labels)}); an id is that of one vote, and what is counted stays"
            )
        self.had, self.left_out = int((there & ~gone).sum()), int(gone.sum())
        self.new = signs.only(~there & ~gone)
        return np.asarray(first[~there & ~gone])

    def _common(self, other: Ids, ids: Any, columns: Columns, first: Ints, name: str, as_json: bool) -> Ints:
        """Return the places of the votes that another log has, too. Errors (InputError): there they say otherwise."""
        signs = _hashed(ids, columns, first, as_json)
        at, theirs = places(pa.table({"id": other.id}), signs.id)
        differ = signs.content[at] != other.content[theirs]
        if number := int(differ.sum()):
            labels = [ids[int(place)].as_py() for place in first[at[differ]][:3]]
            raise InputError(
                f"{name}: {counted(number, 'votes')} of both logs by {self.column!r} with another content in the "
                f"other one (such as {few(labels)}); an id is that of one vote (",
                Setting("shared", "none"),
                " takes all for different ones)",
            )
        return np.asarray(first[np.sort(at)])

    def settle(self, checked: Checked) -> dict[str, Any]:
        """Return the columns of the judgments; keep what each vote was, whose places are their times.

        Those that could not be understood may come again, mended.
        """
        arguments = dict(checked.arguments)
        if self.new is None:
            return arguments
        judged = counted_comparisons(**arguments)
        del arguments["time"]
        if (fine := checked.verdict.fine) is not None and judged.time is not None:
            place = np.cumsum(fine).astype(np.float64) - 1.0
            judged = replace(judged, time=place[judged.time.astype(np.int64)])
            self.new = self.new.only(fine)
        self.judged = judged
        return arguments

    def table(self, left: NDArray[Any]) -> pa.Table:
        """Return what a store keeps of the new votes: hashes, the row of the batch's segment that each is, its count.

        ``left``: how often each judgment of the log is there, 0 where who made it is forgotten; its votes have no row.
        A vote that is several judgments (two numbers of wins) has several rows, one that is none has a row without.
        """
        new = self.new or Ids(hashed_ids(()), np.zeros(0, np.uint64))
        vote, row, count = _rows(self.judged)
        silent = np.setdiff1d(np.arange(len(new)), vote)
        vote, count = np.concatenate([vote, silent]), np.concatenate([count, np.zeros(len(silent), np.int64)])
        row = np.concatenate([rows_left(left)[row], np.full(len(silent), -1)])
        ids = new.id.take(pa.array(vote))
        made = {"id": ids, "content": pa.array(new.content[vote])} | _row_columns(row, count)
        return pa.table(made).take(pc.sort_indices(ids))

    def notes(self, name: str) -> tuple[Note, ...]:
        """Say how many rows were left out."""
        said = []
        if self.repeated:
            text = "{log}: {again:rows} {again:repeats|repeat} a vote by its {column!r}; each vote is counted once"
            said.append(Note("votes repeated", text, log=name, again=self.repeated, column=self.column))
        if self.had:
            text = "{log}: {had:votes} {had:is|are} in the store already, by {column!r}; the others were taken in"
            said.append(Note("votes known", text, log=name, had=self.had, column=self.column))
        if self.left_out:
            text = "{log}: {gone:votes} {gone:is|are} forgotten, by {column!r}, and left out"
            said.append(Note("votes forgotten", text, log=name, gone=self.left_out, column=self.column))
        return tuple(said)


def hashed_ids(ids: Iterable[str]) -> pa.Array:
    """Return the hash of each id, by which it is known."""
    return pa.array([hashlib.blake2b(one.encode(), digest_size=16).digest() for one in ids], HASH)


def places(table: pa.Table, ids: pa.Array) -> tuple[Ints, Ints]:
    """Return which of some ids a table of a batch has, and where.

    >>> places(pa.table({"id": hashed_ids("xyz")}), hashed_ids("zay"))[0].tolist()
    [2, 0]
    """
    found = pc.index_in(table["id"].combine_chunks(), value_set=ids)
    where = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    return found.take(pa.array(where)).to_numpy(zero_copy_only=False), where


def rows_left(left: NDArray[Any]) -> Ints:
    """Return the new row of each row of a segment of which those that count 0 are left out; −1 for these.

    >>> rows_left(np.array([2, 0, 1])).tolist()
    [0, -1, 1]
    """
    return np.where(left > 0, np.cumsum(left > 0) - 1, -1)


def ids_left(table: pa.Table, left: NDArray[Any] | None, gone: pa.Array) -> pa.Table:
    """Return the ids of a batch without some, when so much is ``left`` of each row of its segment; None: all of it."""
    kept = table.filter(pc.invert(pc.is_in(table["id"], value_set=gone)))
    if left is None or ROW not in kept.column_names:
        return kept
    row = kept[ROW].fill_null(len(left)).to_numpy()
    row, count = np.append(rows_left(left), -1)[row], kept["count"].to_numpy()
    return pa.table({name: kept[name] for name in ("id", "content")} | _row_columns(row, count))


def _row_columns(row: Ints, count: Ints) -> Columns:
    return {ROW: pa.array(row.astype(np.uint32), mask=row < 0), "count": pa.array(np.where(row < 0, 0, count))}


def _rows(judged: Comparisons | None) -> tuple[Ints, Ints, Ints]:
    """Return the vote, the row and the count of judgments that are each apart, and rows of equal ones together."""
    if judged is None or judged.time is None:
        return (np.zeros(0, np.int64),) * 3
    real = () if judged.covariates is None else tuple(judged.covariates.T)
    new = np.zeros(judged.distinct, bool)
    for column in (judged.query, judged.winner, judged.loser, judged.tie, judged.weight, judged.cluster, *real):
        if column is not None:
            new[1:] |= column[1:] != column[:-1]
    return judged.time.astype(np.int64), np.cumsum(new), judged.count.astype(np.int64)


def with_ids(
    counter: Counter, roles: Mapping[str, str], found: Columns, rows: Ints, on_error: str
) -> tuple[Columns, Ints, tuple[Reject, ...]]:
    """Return the rows that have an id, and what is said of others. Errors (InputError): there are such, none may be."""
    log = counter.log
    none = np.flatnonzero(texts(found["id"], as_json=log.as_json).is_null().to_numpy(zero_copy_only=False))
    if not len(none):
        return found, rows, ()
    sought, reason = Sought(tuple(found)), replace(NONE, says=f"have no id in {roles['id']!r}")
    for values in zip(*[column.take(none[:MOST_SOUGHT]).to_pylist() for column in found.values()], strict=True):
        sought.add(values, reason, as_json=log.as_json)
    samples = places_of_rows(counter, roles, [sought]).get(reason, ())
    rejects = (Reject(reason, int(rows[none].sum()), int(rows.sum()), samples),)
    if on_error == "raise" or len(none) == len(rows):
        raise InputError(say(log.name, rejects))
    kept = np.delete(np.arange(len(rows)), none)
    return {role: column.take(kept) for role, column in found.items()}, rows[kept], rejects


def repeated_note(counter: Counter, layout: Layout, rows: int) -> tuple[Note, ...]:
    """Say that rows are there twice, id and all, where nobody named the column of the ids."""
    log, roles = counter.log, layout.roles
    if layout.form != "comparisons" or rows > LOOKED or counter.session is not None:
        return ()
    used = {*roles.values(), *layout.covariates}
    column = next((name for name in log.columns if ID.fullmatch(plain(name)) and name not in used), None)
    if column is None:
        return ()
    found, times = counter.count_rows({**roles, "id": column})
    ids = texts(found.pop("id"), as_json=log.as_json)
    first, contradicted = _groups(ids, found)
    again = int(times.sum(dtype=np.int64)) - len(first)
    if not again or len(contradicted) or ids.null_count or 2 * len(first) < rows:
        return ()  # no two rows are the same, or the column holds no ids
    text = (
        "{log}: {again:rows} {again:is|are} the same as others, {column!r} and all, and counted as often as they stand "
        "there; {ask} counts each vote once"
    )
    return (
        Note("rows repeated", text, log=log.name, again=again, column=column, ask=Setting("columns", column, "id")),
    )


def _groups(ids: Any, columns: Columns) -> tuple[Ints, Ints]:
    """Return the first place of each id, and a place of each whose rows differ."""
    code = ids.indices.to_numpy(zero_copy_only=False) if pa.types.is_dictionary(ids.type) else np.zeros(len(ids), int)
    sorter = np.argsort(code, kind="stable")
    same = np.diff(code[sorter]) == 0
    differs = np.zeros(len(same), bool)
    if same.any():
        for values in columns.values():
            other = _codes(values)[sorter]
            differs |= other[1:] != other[:-1]
    begins = np.concatenate([[True], ~same]) if len(code) else np.zeros(0, bool)
    group = np.cumsum(begins) - 1
    first = sorter[begins]
    return np.asarray(np.sort(first)), np.sort(first[np.unique(group[1:][same & differs])])


def _codes(values: Any) -> Ints:
    """Return integers that are equal where values are."""
    array = flat(labelled(values))
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False))


def _hashed(ids: Any, columns: Columns, places: Ints, as_json: bool) -> Ids:
    """Return the hashes of some rows: of the id as a text, and of all else that was read, numbers by their values."""
    parts = []
    for role in sorted(columns):
        read = texts(labelled(columns[role]), as_json=as_json)
        words = [] if pa.types.is_null(read.type) else [_written(word) for word in read.dictionary.to_pylist()]
        codes = np.full(len(read), -1) if pa.types.is_null(read.type) else _codes(read)
        parts.append([f"{role}={words[code]}" if code >= 0 else role for code in codes[places].tolist()])
    content = [
        int.from_bytes(hashlib.blake2b("\x1f".join(row).encode(), digest_size=8).digest(), "big")
        for row in zip(*parts, strict=True)
    ]
    names = ids.dictionary.to_pylist() if pa.types.is_dictionary(ids.type) else []
    return Ids(
        hashed_ids(names[code] for code in (_codes(ids)[places].tolist() if names else [])),
        np.array(content, np.uint64),
    )


def _written(word: str) -> str:
    text = word.strip()
    return f"{float(text) + 0.0:.15g}" if NUMBER.fullmatch(text) else text
