"""The catalogue of a store: a small DuckDB database that says what the store holds, written anew by every commit.

====================  ============================================================================================
table                 a row for each
====================  ============================================================================================
``store``             fact (key, value): format, kind, cluster, covariates, types of labels, revision, created, by
``batches``           log that was taken in: its name, rows, judgments, the segment that holds it, when and how
``contents``          file of a batch: SHA-256 and bytes of what is in it (unpacked), by which it is known again
``segments``          Parquet file in the folder of the store: SHA-256, bytes, rows, judgments
====================  ============================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from concordant.disk import check_regular, open_regular
from concordant.engines.duckdb import Settings, connected, message, with_log
from concordant.engines.sql import identifier, literal
from concordant.errors import InputError
from concordant.json_values import json_value
from concordant.store.migrations import FORMAT, migrated

__all__ = [
    "Batch",
    "Catalogue",
    "Content",
    "Facts",
    "Segment",
    "changed",
    "is_store",
    "parts_folder",
    "read_catalogue",
    "sized",
    "write",
]

MAGIC = b"DUCK"
MAGIC_AT = 8
BLOCK = "16384"
"""Bytes of a block of the catalogue, the least that DuckDB has: each table takes at least one."""
ROWS = "SELECT * FROM catalogue.main."
TYPES = {"str": pa.string(), "int": pa.int64()}


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
    created: str = ""
    by: str = ""
    """The version of concordant that wrote the catalogue."""
    revision: int = 0
    """The number of commits."""


@dataclass(frozen=True)
class Batch:
    """A log that was taken in, as a whole."""

    batch: int
    name: str
    rows: int
    judgments: int
    segment: str
    taken: str
    options: str
    """How the log was read: JSON."""


@dataclass(frozen=True)
class Content:
    """What a file of a batch held: the sign by which it is known again."""

    sha256: str
    bytes: int
    name: str
    batch: int


@dataclass(frozen=True)
class Segment:
    """A Parquet file of counted judgments; it is never changed."""

    file: str
    sha256: str
    bytes: int
    rows: int
    judgments: int


@dataclass(frozen=True)
class Catalogue:
    """All that a store says of itself at one moment."""

    facts: Facts
    batches: tuple[Batch, ...] = ()
    contents: tuple[Content, ...] = ()
    segments: tuple[Segment, ...] = ()

    @property
    def judgments(self) -> int:
        """Number of judgments, each as often as it was made."""
        return sum(segment.judgments for segment in self.segments)


TABLES: dict[str, type[Any]] = {"batches": Batch, "contents": Content, "segments": Segment}


def parts_folder(store: Path) -> Path:
    """Return the folder of the segments of a store."""
    return store.with_name(f"{store.name}.parts")


def sized(store: Path, segment: Segment) -> Path:
    """Return the path of a segment that is there, with as many bytes as were written. Errors: InputError."""
    path = parts_folder(store) / segment.file
    try:
        size = check_regular(path).st_size
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise InputError(f"{store}: its folder {path.parent.name} is missing; it belongs beside the file") from None
        raise InputError(f"{store}: the segment {path.parent.name}/{path.name} is missing") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if size != segment.bytes:
        raise changed(store, path, f"{size:,} bytes instead of {segment.bytes:,}")
    return path


def changed(store: Path, path: Path, how: str) -> InputError:
    """Return the error of a segment that is not what was written."""
    return InputError(f"{store}: the segment {path.parent.name}/{path.name} was changed since it was written ({how})")


def is_store(path: Path) -> bool:
    """Whether a file is the catalogue of a store: a DuckDB database whose table ``store`` says so.

    Errors (InputError): a database that cannot be opened, beside a folder of segments.
    """
    if not _is_database(path):
        return False
    try:
        return "format" in _tables(path).get("store", {})
    except InputError:
        if parts_folder(path).is_dir():  # it was meant to be one: say what is wrong with it
            raise
        return False


def read_catalogue(path: Path) -> Catalogue:
    """Return what the catalogue says now; older formats are brought up to today's in memory.

    Errors (InputError): no file, no store, a damaged one, one of a newer format, one that a DuckDB process holds open.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no store")
    check_regular(path)
    if not _is_database(path):
        raise InputError(f"{path}: the file is no store (a store is made by concordant ingest LOG --store FILE)")
    tables = _tables(path)
    known = tables.pop("store", {})
    if "format" not in known:
        raise InputError(f"{path}: a DuckDB database, but no store of concordant")
    try:
        tables = migrated(known, tables, path.name)
        facts = Facts(
            **{name: known.get(name) for name in ("clusters", "cluster")},
            **{name: known[name] for name in ("kind", "items", "queries", "created", "by")},
            covariates=tuple(json_value(known["covariates"], f"{path}: the list of covariates")),
            revision=int(known["revision"]),
        )
        rows = {name: tuple([kind(**row) for row in tables[name]]) for name, kind in TABLES.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: the catalogue is not whole ({type(error).__name__}: {error})") from None
    return Catalogue(facts, **rows)


def write(catalogue: Catalogue, path: Path) -> None:
    """Write a catalogue to a new file. Errors: those of DuckDB; InputError where the file is not what was written."""
    facts = {name: value for name, value in asdict(catalogue.facts).items() if value is not None}
    facts |= {"format": FORMAT, "covariates": json.dumps(catalogue.facts.covariates, ensure_ascii=False)}
    with duckdb.connect(str(path), config={"default_block_size": BLOCK}) as connection:
        texts = {"key": list(facts), "value": [str(value) for value in facts.values()]}
        _create(connection, "store", pa.table(texts))
        for name, kind in TABLES.items():
            _create(connection, name, _table(kind, getattr(catalogue, name)))
        connection.execute("CHECKPOINT")  # closing writes it too, but says nothing where the disk is full
    if read_catalogue(path) != catalogue:
        raise InputError(f"{path}: what is on the disk is not what was written")


def _table(kind: type[Any], rows: Iterable[Any]) -> pa.Table:
    schema = pa.schema([(field.name, TYPES[str(field.type)]) for field in fields(kind)])
    return pa.Table.from_pylist([vars(row) for row in rows], schema=schema)


def _create(connection: Any, name: str, table: pa.Table) -> None:
    connection.register("concordant_rows", table)
    connection.execute(f"CREATE TABLE {identifier(name)} AS FROM concordant_rows")
    connection.unregister("concordant_rows")


def _is_database(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(MAGIC_AT + len(MAGIC))[MAGIC_AT:] == MAGIC
    except (OSError, ValueError):  # ValueError: no regular file, a name with a null byte
        return False


def _tables(path: Path) -> dict[str, Any]:
    """Return the tables of a catalogue: ``store`` as a mapping, the others as lists of rows."""
    try:
        with connected(Settings(threads=1), files=with_log(path)) as connection:
            connection.execute(f"ATTACH {literal(str(path.absolute()))} AS catalogue (READ_ONLY)")
            columns = connection.execute(
                "SELECT table_name, list(column_name) FROM duckdb_columns() WHERE database_name = 'catalogue' "
                "AND schema_name = 'main' GROUP BY table_name"
            )
            there = dict(columns.fetchall())
            if not {"key", "value"} <= set(there.pop("store", ())):
                return {}
            facts = dict(connection.execute(f"SELECT key, value FROM ({ROWS}store)").fetchall())
            found: dict[str, Any] = {"store": facts}
            if "format" in facts:  # a foreign database may hold anything: only a store is read whole
                for name in there:
                    found[name] = connection.sql(f"{ROWS}{identifier(name)}").to_arrow_table().to_pylist()
            return found
    except duckdb.Error as error:
        said = message(error)
        if "lock" in said:
            raise InputError(f"{path}: held open by another process that may write to it: {said}") from None
        if "already attached" in said:
            raise InputError(f"{path}: this process holds it open with DuckDB; close that connection first") from None
        raise InputError(f"{path}: cannot be opened as a store: {said}") from None
