"""The catalogue of a store: a small DuckDB database that says what the store holds, written anew by every commit.

====================  ============================================================================================
table                 a row for each
====================  ============================================================================================
``store``             fact (key, value): format, kind, query, cluster, covariates, types of labels, revision, …
``batches``           log that was taken in: its name, rows, judgments, the segment that holds it, when and how
``contents``          file of a batch: SHA-256 and bytes of what is in it (unpacked), by which it is known again
``segments``          Parquet file in the folder of the store: SHA-256, bytes, rows, judgments
``sums``              Parquet file with what segments of some batches add up to, read in their place
``removed``           batch that was taken out: what it was, when, why; its contents stay known
``forgotten``         cluster, or votes, taken out: hashes by which they are left out of later logs, too
====================  ============================================================================================

A catalogue is data that may come from anywhere: it is read where it has these tables, of texts and integers, and
nothing else (no views, no macros, no computed columns); its segments are files of its own folder under names of ours.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from concordant.errors import InputError, Unavailable
from concordant.io.engines.duckdb import Settings, attach, connected, message, with_log
from concordant.io.engines.sql import identifier, literal
from concordant.io.log.disk import open_regular
from concordant.io.log.json_values import json_value
from concordant.io.store.migrations import FORMAT, UNKNOWN, migrated, newer
from concordant.preferences.counts import MOST
from concordant.preferences.layouts import KINDS

MAGIC = b"DUCK"
MAGIC_AT = 8
FACTS = 1000
"""More facts than any format has."""
BLOCK = "16384"
"""Bytes of a block of the catalogue, the least that DuckDB has: each table takes at least one."""
ROWS = "SELECT * FROM catalogue.main."
TYPES = {"str": pa.string(), "int": pa.int64()}
PYTHON: dict[str, type] = {"str": str, "int": int}
SEGMENT = re.compile(r"segment-[0-9]{6,}-[0-9a-f]{8}\.parquet")
IDS = re.compile(r"ids-[0-9]{6,}-[0-9a-f]{8}\.parquet")
SHA256 = re.compile(r"[0-9a-f]{64}")
VOTES = re.compile(r"(?:[0-9a-f]{32})+")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LABELS = ("texts", "integers")
FOREIGN = """
SELECT 'the view ' || view_name FROM duckdb_views() WHERE database_name = 'catalogue' AND NOT internal
UNION ALL SELECT 'the macro ' || function_name FROM duckdb_functions() WHERE database_name = 'catalogue'
UNION ALL SELECT 'the sequence ' || sequence_name FROM duckdb_sequences() WHERE database_name = 'catalogue'
UNION ALL SELECT 'the type ' || type_name FROM duckdb_types() WHERE database_name = 'catalogue' AND NOT internal
UNION ALL SELECT 'the index ' || index_name FROM duckdb_indexes() WHERE database_name = 'catalogue'
UNION ALL SELECT 'the schema ' || schema_name FROM duckdb_schemas() WHERE database_name = 'catalogue' AND NOT internal
UNION ALL SELECT 'the column ' || column_name || ' of the type ' || data_type FROM duckdb_columns()
    WHERE database_name = 'catalogue' AND data_type NOT IN ('VARCHAR', 'BIGINT')
UNION ALL SELECT 'the computed column ' || column_name FROM duckdb_columns()
    WHERE database_name = 'catalogue' AND column_default IS NOT NULL
"""
"""What no catalogue has: whatever is computed when it is read."""


@dataclass(frozen=True)
class Facts:
    """What is true of the whole store."""

    kind: str
    items: str
    """Whether labels of items are texts or integers."""
    queries: str
    clusters: str | None = None
    """The same for clusters; None where judgments have none."""
    cluster: str | None = None
    """The column that the clusters of the first log came from."""
    covariates: tuple[str, ...] = ()
    query: str | None = UNKNOWN
    """The column that the queries came from; None where logs have none, empty where it has no name (in memory)."""
    home: str | None = UNKNOWN
    """The side that is at home in comparisons that have the covariate ``home``: left or right."""
    neutral: str | None = UNKNOWN
    """The column that says where nobody is at home."""
    created: str = ""
    by: str = ""
    """The version of concordant that wrote the catalogue."""
    revision: int = 0
    """The number of commits."""
    commit: str = ""
    """The name of the commit that made this catalogue."""
    previous: str = ""
    """The name of the commit before it."""
    keep: int = 0
    """Days, back from the newest one, whose batches are kept; 0: all."""


@dataclass(frozen=True)
class Ingestion:
    """A log that was taken in, as a whole."""

    batch: int
    name: str
    rows: int
    judgments: int
    segment: str
    taken: str
    options: str
    """How the log was read: JSON."""
    day: str = ""
    """The day that it is of, as 2026-01-31; empty where none was said."""
    sign: str = ""
    """The fingerprint of the judgments that were read: other bytes that hold the same are known by it."""
    forgotten: int = 0
    """Judgments of it that were taken out, or left out, because somebody is forgotten."""


@dataclass(frozen=True)
class Removed(Ingestion):
    """A batch that was taken out; it is known, so that it does not come back."""

    removed: str = ""
    why: str = ""


@dataclass(frozen=True)
class Forgotten:
    """A cluster that is forgotten, or votes that are, by their ids."""

    sign: str
    """SHA-256 of salt and label: the label itself is not kept. Of votes the hashes of their ids, one by one."""
    salt: str
    """Empty where votes are forgotten."""
    judgments: int
    forgotten: str
    """When."""


@dataclass(frozen=True)
class Content:
    """What a file of a batch held: the sign by which it is known again."""

    sha256: str
    bytes: int
    name: str
    batch: int
    again: str = ""
    """Under which name the same content was counted once more, on purpose."""
    options: str = "{}"
    """How it was read: JSON."""


@dataclass(frozen=True)
class Segment:
    """A Parquet file of counted judgments; it is never changed."""

    file: str
    sha256: str
    bytes: int
    rows: int
    judgments: int

    @property
    def sign(self) -> str:
        """Its name and what stands in it: logs that hold the same have segments of the same bytes."""
        return f"{self.file} {self.sha256}"


@dataclass(frozen=True)
class Sum(Segment):
    """What some batches hold together: it is read in the place of their segments, which stay."""

    batches: str = "[]"
    """Their numbers: JSON."""

    @property
    def numbers(self) -> frozenset[int]:
        """The batches that it holds."""
        return frozenset(json.loads(self.batches))


@dataclass(frozen=True)
class Catalogue:
    """All that a store says of itself at one moment."""

    facts: Facts
    batches: tuple[Ingestion, ...] = ()
    contents: tuple[Content, ...] = ()
    segments: tuple[Segment, ...] = ()
    sums: tuple[Sum, ...] = ()
    removed: tuple[Removed, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()

    @property
    def judgments(self) -> int:
        """Number of judgments, each as often as it was made."""
        return sum(segment.judgments for segment in self.segments)

    @property
    def files(self) -> tuple[Segment, ...]:
        """Everything in the folder that the store names: segments, sums, ids of votes."""
        return (*self.segments, *self.sums, *kept_ids(self))

    def holding(self, batches: Collection[Ingestion]) -> tuple[Segment, ...]:
        """Return the files that hold some batches, the fewest: sums in the place of what they add up.

        Errors (InputError): a batch that an older version has merged with others that are not asked for.
        """
        wanted = {batch.batch for batch in batches}
        sums = [one for one in self.sums if one.numbers <= wanted]
        left = wanted.difference(*(one.numbers for one in sums))
        files = {batch.segment for batch in batches if batch.batch in left and batch.segment}
        for batch in self.batches:
            if batch.segment in files and batch.batch not in wanted:
                raise InputError(
                    f"the batch {batch.batch} ({batch.name}) was merged with others by an earlier version of "
                    "concordant, and cannot be told apart from them; make the store anew from its logs"
                )
        return (*sums, *[segment for segment in self.segments if segment.file in files])

    @property
    def readable(self) -> tuple[Segment, ...]:
        """The files that are read by whoever reads the whole store."""
        return self.holding(self.batches)


B = TypeVar("B", bound=Ingestion)
TABLES: dict[str, type[Any]] = {
    "batches": Ingestion,
    "contents": Content,
    "segments": Segment,
    "sums": Sum,
    "removed": Removed,
    "forgotten": Forgotten,
}


def parts_folder(store: Path) -> Path:
    """Return the folder of the segments of a store."""
    return store.with_name(f"{store.name}.parts")


def sized(store: Path, segment: Segment) -> Path:
    """Return the path of a segment that is there, with as many bytes as were written. Errors: InputError."""
    path = parts_folder(store) / segment.file
    try:
        found = path.lstat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise InputError(f"{store}: its folder {path.parent.name} is missing; it belongs beside the file") from None
        raise InputError(f"{store}: the segment {path.parent.name}/{path.name} is missing") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(found.st_mode):
        raise changed(store, path, "it is no plain file")
    if found.st_size != segment.bytes:
        raise changed(store, path, f"{found.st_size:,} bytes instead of {segment.bytes:,}")
    return path


def ids_of(batch: Ingestion) -> Segment | None:
    """Return the file of the ids of the votes of a batch, where it was taken in by ids."""
    found = json.loads(batch.options).get("ids")
    return None if found is None else Segment(**found, judgments=0)


def kept_ids(catalogue: Catalogue) -> tuple[Segment, ...]:
    """Return the files of the ids of votes, one of each batch that was taken in by ids; their rows are votes.

    Of a batch that was taken out they stay, so that its votes do not come back in another file.
    """
    found = (ids_of(batch) for batch in (*catalogue.batches, *catalogue.removed))
    return tuple([one for one in found if one is not None])


def with_ids(catalogue: Catalogue, number: int, ids: Segment) -> Catalogue:
    """Return the catalogue in which the batch of a number has these ids."""
    kept = {name: value for name, value in asdict(ids).items() if name != "judgments"}

    def having(batch: B) -> B:
        if batch.batch != number:
            return batch
        return replace(batch, options=json.dumps(json.loads(batch.options) | {"ids": kept}, ensure_ascii=False))

    batches, removed = [having(one) for one in catalogue.batches], [having(one) for one in catalogue.removed]
    return replace(catalogue, batches=tuple(batches), removed=tuple(removed))


def forgotten_votes(forgotten: Iterable[Forgotten]) -> pa.Array:
    """Return the hashes of the ids of the votes that are forgotten, each once."""
    raw = bytes.fromhex("".join(one.sign for one in forgotten if not one.salt))
    hashes = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(raw) // 16, [None, pa.py_buffer(raw)])
    return hashes.unique()


def changed(store: Path, path: Path, how: str) -> InputError:
    """Return the error of a segment that is not what was written."""
    return InputError(f"{store}: the segment {path.parent.name}/{path.name} was changed since it was written ({how})")


def is_store(path: Path) -> bool:
    """Whether a file is the catalogue of a store: a DuckDB database whose table ``store`` says so.

    Errors (InputError): a database that cannot be opened, beside a folder of segments.
    """
    if not _is_database(path):
        if _beside_parts(path) and not os.access(path, os.R_OK):
            raise Unavailable(f"{path}: no permission to read the store")
        return False
    try:
        return "format" in _tables(path).get("store", {})
    except InputError:
        if _beside_parts(path):  # it was meant to be one: say what is wrong with it
            raise
        return False


def _beside_parts(path: Path) -> bool:
    try:
        return path.is_file() and parts_folder(path).is_dir()
    except (OSError, ValueError):  # ValueError: a name with a null byte
        return False


def read_catalogue(path: Path) -> Catalogue:
    """Return what the catalogue says now; older formats are brought up to today's in memory.

    Errors (InputError): no file, no store, a damaged one, one of a newer format, one that a DuckDB process holds open.
    """
    try:
        open_regular(path).close()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: there is no store") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    refuse_log(path)
    if not _is_database(path):
        raise InputError(f"{path}: the file is no store; concordant ingest makes one")
    return _parsed(path, _tables(path))


def _parsed(path: Path, tables: dict[str, Any]) -> Catalogue:
    """Return the catalogue that the tables of a file are. Errors: InputError."""
    known = tables.pop("store", {})
    if "format" not in known:
        raise InputError(f"{path}: a DuckDB database, but no store of concordant")
    try:
        tables = migrated(known, tables, path.name)
        facts = Facts(
            **{name: known.get(name) for name in ("clusters", "cluster", "query", "home", "neutral")},
            **{name: known[name] for name in ("kind", "items", "queries", "created", "by", "commit", "previous")},
            covariates=tuple(json_value(known["covariates"], f"{path}: the list of covariates")),
            revision=int(known["revision"]),
            keep=int(known["keep"]),
        )
        rows = {name: tuple([kind(**row) for row in tables[name]]) for name, kind in TABLES.items()}
        catalogue = Catalogue(facts, **rows)
        _check(catalogue)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InputError) and str(error).startswith((path.name, str(path))):
            raise
        raise InputError(f"{path}: the catalogue is not whole ({type(error).__name__}: {error})") from None
    return catalogue


def refuse_log(path: Path) -> None:
    """Refuse a catalogue that DuckDB keeps changes of elsewhere. Errors: InputError."""
    log = Path(f"{os.path.realpath(path)}.wal")
    if log.exists():
        raise InputError(
            f"{path}: {log.name} lies beside it: a DuckDB process is changing the catalogue, or was stopped while it "
            "did; only concordant may write to a store"
        )


def _check(catalogue: Catalogue) -> None:
    """Hold the values of a catalogue against what they may be. Errors: ValueError."""
    facts = catalogue.facts
    words = [facts.items, facts.queries, *([] if facts.clusters is None else [facts.clusters])]
    if facts.kind not in KINDS or not set(words) <= set(LABELS) or (facts.clusters is None) != (facts.cluster is None):
        raise ValueError(f"kind {facts.kind!r}, labels {words}")
    if not all(isinstance(name, str) for name in facts.covariates):
        raise ValueError(f"covariates {facts.covariates}")
    for table, kind in TABLES.items():
        for row in getattr(catalogue, table):
            for field in fields(kind):
                value = getattr(row, field.name)
                if type(value) is not PYTHON[str(field.type)] or (isinstance(value, int) and value < 0):
                    raise ValueError(f"{table}: {field.name} is {value!r}")
    for segment in (*catalogue.segments, *catalogue.sums):
        if not SEGMENT.fullmatch(segment.file):
            raise ValueError(f"{segment.file!r} is no name of a segment")
    for one in catalogue.sums:
        if not isinstance(held := json_value(one.batches, "a sum"), list) or {type(each) for each in held} > {int}:
            raise ValueError(f"a sum of {one.batches}")
    there = (*catalogue.batches, *catalogue.removed)
    if bad := [row.day for row in there if row.day and not DAY.fullmatch(row.day)]:
        raise ValueError(f"{bad[0]!r} is no day")
    for options in {row.options for row in there} | {row.options for row in catalogue.contents}:
        if not isinstance(json_value(options, f"the options {options[:40]!r}"), dict):
            raise ValueError(f"options {options!r}")
    for ids in kept_ids(catalogue):
        kinds = [type(value) for value in asdict(ids).values()]
        if kinds != [str, str, int, int, int] or not IDS.fullmatch(ids.file) or min(ids.bytes, ids.rows) < 0:
            raise ValueError(f"{ids} are no ids of votes")
    signs = [row.sha256 for row in catalogue.files] + [row.sha256 for row in catalogue.contents]
    signs += [row.sign for row in catalogue.forgotten if row.salt] + [row.sign for row in there if row.sign]
    if not all(VOTES.fullmatch(row.sign) for row in catalogue.forgotten if not row.salt):
        raise ValueError("forgotten votes without the hashes of their ids")
    for sign in signs:
        if not SHA256.fullmatch(sign):
            raise ValueError(f"{sign!r} is no SHA-256")


def contradictions(catalogue: Catalogue) -> Iterator[str]:
    """Yield what in a catalogue does not go together."""
    taken = sum(batch.judgments for batch in catalogue.batches)
    if taken != catalogue.judgments:
        yield f"the batches hold {taken:,} judgments, the segments {catalogue.judgments:,}"
    if catalogue.judgments > MOST:
        yield f"the segments hold {catalogue.judgments:,} judgments; at most {MOST:,} (2^63 − 1) can be counted"
    names = [segment.file for segment in (*catalogue.segments, *catalogue.sums)]
    if len(set(names)) < len(names):
        yield "a segment is there twice"
    each = {batch.batch: batch.judgments for batch in catalogue.batches}
    for one in catalogue.sums:
        if not one.numbers <= {*each} or sum(each[number] for number in one.numbers) != one.judgments:
            yield f"the sum {one.file} is not that of its batches"
    for batch in catalogue.batches:
        if batch.segment not in names and (batch.segment or batch.judgments):
            yield f"the batch {batch.name} lies in {batch.segment}, which is no segment"
    known = [(content.sha256, content.again) for content in catalogue.contents]
    if len(set(known)) < len(known):
        yield "a content was taken in twice"
    numbers, gone = [batch.batch for batch in catalogue.batches], [batch.batch for batch in catalogue.removed]
    come = {content.batch for content in catalogue.contents}
    apart = sorted({*numbers, *gone}) == sorted([*numbers, *gone]) and numbers == sorted(numbers)
    if not apart or not {*numbers} <= come <= {*numbers, *gone}:
        yield "batches and their contents do not match"


def write(catalogue: Catalogue, path: Path) -> None:
    """Write a catalogue to a new file. Errors: those of DuckDB; InputError where the file is not what was written."""
    facts = {name: value for name, value in asdict(catalogue.facts).items() if value is not None}
    facts |= {"format": FORMAT, "covariates": json.dumps(catalogue.facts.covariates, ensure_ascii=False)}
    texts = pa.table({"key": list(facts), "value": [str(value) for value in facts.values()]})
    tables = {"store": texts} | {name: _table(kind, getattr(catalogue, name)) for name, kind in TABLES.items()}
    with connected(Settings(threads=1), files=with_log(path)) as connection:
        connection.execute(f"ATTACH {literal(str(path.absolute()))} AS catalogue (BLOCK_SIZE {BLOCK})")
        for name, table in tables.items():
            connection.register("concordant_rows", table)
            connection.execute(f"CREATE TABLE catalogue.main.{identifier(name)} AS FROM concordant_rows")
            connection.unregister("concordant_rows")
        connection.execute("CHECKPOINT catalogue")  # closing writes it too, but says nothing where the disk is full
        connection.execute("DETACH catalogue")
        refuse_log(path)
        if _parsed(path, _attached(connection, path, ours=True)) != catalogue:
            raise InputError(f"{path}: what is on the disk is not what was written")


def _table(kind: type[Any], rows: Iterable[Any]) -> pa.Table:
    schema = pa.schema([(field.name, TYPES[str(field.type)]) for field in fields(kind)])
    return pa.Table.from_pylist([vars(row) for row in rows], schema=schema)


def _is_database(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(MAGIC_AT + len(MAGIC))[MAGIC_AT:] == MAGIC
    except (OSError, ValueError):  # ValueError: no regular file, a name with a null byte
        return False


def _tables(path: Path) -> dict[str, Any]:
    """Return the tables of a catalogue: ``store`` as a mapping, the others as lists of rows. Errors: InputError."""
    try:
        with connected(Settings(threads=1), files=with_log(path)) as connection:
            return _attached(connection, path)
    except duckdb.Error as error:
        said = message(error)
        if "lock" in said:
            raise InputError(f"{path}: held open by another process that may write to it: {said}") from None
        if "already attached" in said:
            raise InputError(f"{path}: this process holds it open with DuckDB; close that connection first") from None
        raise InputError(f"{path}: cannot be opened as a store: {said}") from None


def _attached(connection: Any, path: Path, *, ours: bool = False) -> dict[str, Any]:
    """Return the tables of a file; one that is ``ours``, just written, is not searched for what no store has."""
    attach(connection, path, "catalogue")
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'catalogue' AND schema_name = 'main'"
    )
    there = {name for (name,) in tables.fetchall()}
    columns = connection.execute(
        "SELECT column_name, data_type, column_default FROM duckdb_columns() WHERE database_name = 'catalogue' "
        "AND schema_name = 'main' AND table_name = 'store' ORDER BY column_index"
    )
    if "store" not in there or columns.fetchall() != [("key", "VARCHAR", None), ("value", "VARCHAR", None)]:
        return {}
    facts = dict(connection.execute(f"{ROWS}store LIMIT {FACTS}").fetchall())
    found: dict[str, Any] = {"store": facts}
    if "format" in facts and not newer(facts):  # a foreign database may hold anything: only a store is read whole
        foreign = [] if ours else [name for (name,) in connection.execute(FOREIGN).fetchall()]
        foreign += [f"the table {name}" for name in sorted(there - {"store", *TABLES})]
        if foreign:
            raise InputError(f"{path}: holds {foreign[0]}, which no store has; it was not made by concordant")
        for name in TABLES.keys() & there:
            found[name] = connection.sql(f"{ROWS}{identifier(name)}").to_arrow_table().to_pylist()
    return found
