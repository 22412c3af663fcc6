"""Votes that have an id are taken once: rows that repeat one are left out, rows that contradict one are refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, counted, few
from concordant.io.engines.counting import Counter
from concordant.preferences.layouts import Layout, plain
from concordant.preferences.messages import labelled
from concordant.preferences.notes import Note
from concordant.preferences.values import NUMBER, flat, texts

ID = re.compile(
    r"id|uuid|guid|index|idx|num|(vote|battle|row|record|event|comparison|match|annotation|feedback)_(id|uuid)|\w+_uuid"
)
"""Names, in plain spelling, of columns that may number the votes."""
LOOKED = 4_000_000
"""Rows up to which a log is looked through for repeated ones without being asked."""
Columns = dict[str, Any]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Ids:
    """Votes by a 128-bit hash of their ids, in order, and a 64-bit one of what was read of each."""

    id: NDArray[np.bytes_]
    content: NDArray[np.uint64]

    @classmethod
    def joined(cls, parts: Iterable[Ids]) -> Ids:
        """Return all of them in order."""
        there = list(parts)
        id = np.concatenate([np.zeros(0, "S16"), *(one.id for one in there)])
        content = np.concatenate([np.zeros(0, np.uint64), *(one.content for one in there)])
        sorter = np.argsort(id, kind="stable")
        return cls(id[sorter], content[sorter])

    def __len__(self) -> int:
        return len(self.id)

    def table(self) -> pa.Table:
        """Return them as a table of two columns."""
        sorter = np.argsort(self.id, kind="stable")
        raw = np.ascontiguousarray(self.id[sorter]).tobytes()
        hashes = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(self), [None, pa.py_buffer(raw)])
        return pa.table({"id": hashes, "content": pa.array(self.content[sorter])})

    @classmethod
    def of_table(cls, table: pa.Table) -> Ids:
        """Read what ``table`` wrote."""
        raw = b"".join(table["id"].to_pylist())
        return cls(np.frombuffer(raw, "S16"), table["content"].to_numpy().astype(np.uint64))


@dataclass
class Votes:
    """The votes of a log by their ids, with those that a store has already.

    >>> votes, found = Votes(), {"id": pa.array([7, 8, 7]), "winner": pa.array(["a", "b", "a"])}
    >>> kept, rows = votes.once(found, np.array([1, 2, 1]), "votes.csv", "vote", as_json=False)
    >>> kept["winner"].to_pylist(), rows.tolist(), votes.repeated
    (['a', 'b'], [1, 1], 2)
    """

    known: Ids | None = None
    """Of the store that the log is taken into."""
    repeated: int = 0
    """Rows whose vote another row of the log has."""
    had: int = 0
    """Votes that the store has."""
    column: str = ""
    new: Ids | None = field(default=None)
    """Of the store that the log is taken into: the votes that were not there."""

    def once(
        self, found: Columns, rows: Ints, name: str, column: str, *, as_json: bool
    ) -> tuple[Columns, NDArray[np.int32]]:
        """Return the columns with a row for each new vote. Errors (InputError): no id, votes that contradict others."""
        self.column = column
        ids = texts(found["id"], as_json=as_json)
        if missing := int(rows[ids.is_null().to_numpy(zero_copy_only=False)].sum()):
            raise InputError(f"{name}: {missing:,} of {int(rows.sum()):,} rows have no id in {column!r}")
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
        if self.known is not None:
            kept = self._unknown(self.known, ids, columns, first, name, as_json)
        taken = {role: flat(labelled(values)).take(pa.array(kept)) for role, values in columns.items()}
        return taken, np.ones(len(kept), np.int32)

    def _unknown(self, known: Ids, ids: Any, columns: Columns, first: Ints, name: str, as_json: bool) -> Ints:
        """Return the places of the votes that the store has not; keep their hashes."""
        signs = _hashed(ids, columns, first, as_json)
        place = np.minimum(np.searchsorted(known.id, signs.id), max(len(known) - 1, 0))
        there = known.id[place] == signs.id if len(known) else np.zeros(len(signs), bool)
        other = there & (known.content[place] != signs.content) if len(known) else there
        if number := int(other.sum()):
            labels = [ids[int(at)].as_py() for at in first[other][:3]]
            raise InputError(
                f"{name}: {counted(number, 'votes')} that the store has by id {'comes' if number == 1 else 'come'} "
                f"with another content (such as {few(labels)}); an id is that of one vote, and what is counted stays"
            )
        self.had = int(there.sum())
        self.new = Ids(signs.id[~there], signs.content[~there])
        return np.asarray(first[~there])

    def settle(self, fine: NDArray[np.bool_] | None) -> None:
        """Forget the votes that could not be understood: they may come again, mended."""
        if self.new is not None and fine is not None:
            self.new = Ids(self.new.id[fine], self.new.content[fine])

    def notes(self, name: str) -> tuple[Note, ...]:
        """Say how many rows were left out."""
        said = []
        if self.repeated:
            text = "{log}: {again:rows} {again:repeats|repeat} a vote by its {column!r}; each vote is counted once"
            said.append(Note("votes repeated", text, log=name, again=self.repeated, column=self.column))
        if self.had:
            text = "{log}: {had:votes} {had:is|are} in the store already, by {column!r}; the others were taken in"
            said.append(Note("votes known", text, log=name, had=self.had, column=self.column))
        return tuple(said)


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
    id = [
        hashlib.blake2b(names[code].encode(), digest_size=16).digest()
        for code in (_codes(ids)[places].tolist() if names else [])
    ]
    return Ids(np.frombuffer(b"".join(id), "S16"), np.array(content, np.uint64))


def _written(word: str) -> str:
    text = word.strip()
    return f"{float(text) + 0.0:.15g}" if NUMBER.fullmatch(text) else text
