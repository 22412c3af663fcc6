"""What a source is, by its ending or its type: the format, the compression and the names of the columns."""

from __future__ import annotations

import codecs
import difflib
import glob
import gzip
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, few
from concordant.io.log import delta, iceberg
from concordant.io.log.disk import check_regular, open_regular
from concordant.io.log.lakes import (
    DELTA,
    DESCRIBES,
    METADATA,
    Found,
    Several,
    folder_columns,
    is_pattern,
    kind_of_table,
    matched,
    packed_twice,
    walked,
)
from concordant.io.log.objects import Copy, Place, Remote, RemoteParquet, copies, found_at, is_object
from concordant.preferences.notes import Note

BLOCK = 1 << 22
PAGES = 1 << 18
"""Bytes of each column of a Parquet file that are read ahead."""
ROWS = 1 << 17

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".soc": "preflib",
    ".soi": "preflib",
    ".toc": "preflib",
    ".toi": "preflib",
    ".svm": "letor",
    ".svmlight": "letor",
    ".letor": "letor",
    ".dat": "letor",
    ".qrels": "qrels",
    ".qrel": "qrels",
    ".run": "run",
}
ON_SPARK = ("catalogue", "frame")
"""Formats that only Spark opens: tables of its catalogue and DataFrames."""
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
DATABASES = (".duckdb", ".ddb", ".db")
ZIPPABLE = ("csv", "tsv", "json", "letor", "qrels", "run", "preflib", "txt")
PLACE = dict.fromkeys(("csv", "tsv", "json", "letor", "qrels", "run", "preflib"), "line")


class Empty(InputError):
    """A log without rows."""


@dataclass(frozen=True)
class Log:
    """A source of rows: where it is, how it is written, and its columns in order."""

    name: str
    format: str
    columns: tuple[str, ...] = ()
    path: Path | None = None
    gzipped: bool = False
    table: Any = None
    """The Arrow table, DuckDB relation, Spark DataFrame, the Stream of batches, the name of a table in a database file
    or in Spark's catalogue, or the address of files that only Spark opens."""
    array: bool = False
    """Whether a JSON file is one array and not one object a line."""
    header: int = 1
    """The line of the header of a CSV or TSV file; blank lines may stand before it."""
    lines: NDArray[np.int64] | None = None
    """The line of each row of ``table``, where it was read from a text file."""
    trimmed: bool = False
    """Whether every field after the first of every row of a CSV or TSV file begins with a space: these are no part of
    the fields, which are read without outer white space."""
    types: tuple[pa.DataType, ...] = ()
    """The types of the columns, where a file says them."""
    told: tuple[str, ...] = ()
    """What a reader should know of how it was read."""
    parts: tuple[Log, ...] = ()
    """The files of a folder, each a log of its own, in the order of their names; ``path`` is the first."""
    file: str = ""
    """Of a part: how it is called beside the others."""
    folders: tuple[tuple[str, str | None], ...] = ()
    """Of a part: the columns that it has by the names of its folders (day=2026-11-25), and their values."""
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that lie in others, by their names with dots between (vote.winner): the way to each."""
    clashes: Mapping[str, str] = field(default_factory=dict)
    """Columns whose types in several files do not go together, and what is said of them."""
    rows: int | None = None
    """Of a file: how many rows it has, where that is known without reading it."""
    copy: Copy | None = None
    """What keeps ``path`` there, where that is a copy of a file in an object store."""

    @property
    def where(self) -> str:
        """The path, or the address in an object store, of the log or of its first file; nothing of other tables."""
        if self.copy is None and self.path is not None:
            return str(self.path)
        return (self.parts or (self,))[0].name if self.copy is not None or self.format == "stream" else ""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of the log, in order; none for a table in memory."""
        named = [part.path for part in self.parts or (self,)]
        return tuple([path for path in named if path is not None])

    @property
    def on_spark(self) -> bool:
        """Whether only Spark can open this source."""
        return self.format in ON_SPARK or (isinstance(self.table, str) and self.path is None)

    @property
    def delimiter(self) -> str:
        """The character between two fields of a CSV or TSV file."""
        return "\t" if self.format == "tsv" else ","

    @property
    def place(self) -> str:
        """How a place in this source is called: line or row."""
        return "row" if self.array else PLACE.get(self.format, "row")

    @property
    def as_json(self) -> bool:
        """Whether engines hand over the JSON text of each value."""
        return self.format == "json"


def locate(source: str | os.PathLike[str], *, many: bool = True, local: bool = True, whole: bool = False) -> Log:
    """Return the log that a path names, not opened yet: its format by its ending, and that it is there.

    A folder is a log of all the files in it and in the folders in it, all of one format, in the order of their names;
    so is a pattern (``lake/day=*/part-*.parquet``). What Hive and Spark pass over (names that begin with ``.`` or
    ``_``, as ``_SUCCESS``) is no part of it, nor are files that somebody still writes. ``many=False`` refuses both.
    So is an address in an object store (``s3://bucket/lake/``); ``local=False`` leaves it to Spark, ``whole`` copies
    Parquet, too, whose columns are else read where they lie. The folder of a Delta or an Iceberg table is that table,
    at its newest version, or with ``@VERSION`` after it at that one; ``iceberg::CATALOG.NAMESPACE.TABLE`` names one in
    a catalogue.

    Errors: no such file (with the closest name in the folder), an ending that is not known; in a folder no file, files
    of several formats; Unavailable where a store does not answer, or an extra is not installed.
    """
    if isinstance(source, Several):
        return located(source.names, local=local, whole=whole)
    given = os.fspath(source)
    if "\0" in given:
        raise InputError(f"{given!r} is not a file name: it holds a null byte")
    if given in ("", "-", "/dev/stdin"):
        raise InputError(
            "a log is read more than once, so it cannot come from standard input; save it to a file and name that"
            if given
            else "the name of the log is empty"
        )
    if is_object(given) and local:
        return _in_store(given, many=many, whole=whole)
    if ADDRESS.match(given):
        return _address(given)
    before, mark, table = given.rpartition("::")
    if mark and before == "spark" and table:
        return Log(table, "catalogue", table=table)
    if mark and before == "iceberg" and table:
        name, version = _versioned(table)
        return _of_table(given, iceberg.IcebergTable(given, version, identifier=name))
    if mark and not Path(given).exists():
        path = _existing(Path(before), what="database")
        return Log(f"{path.name}::{table}", "database", path=path, table=table)
    if many and is_pattern(given):
        return _of_files(given, matched(given), "")
    name, version = (given, None) if os.path.lexists(given) else _versioned(given)
    path = _existing(Path(name if os.path.isdir(name) else given), folder=many)
    if not path.is_dir():
        return _metadata(str(path.absolute()), path.name) if path.name.endswith(DESCRIBES) else _file(path)
    name = path.name or path.resolve().name or str(path)
    if (kind := kind_of_table(path)) == "Delta":
        return _of_table(name, delta.DeltaTable(path.absolute().as_uri(), name, version))
    if kind and (found := iceberg.newest(os.listdir(path / METADATA), name)) is not None:
        return _metadata(str(path.absolute() / METADATA / found), name, version)
    if version is not None:
        raise InputError(f"{given}: {name} has no versions; it is no Delta and no Iceberg table")
    return _of_files(name, walked(path), given)


def _versioned(given: str) -> tuple[str, int | None]:
    """Return the name of a table, and the version that stands after it."""
    name, mark, version = given.rpartition("@")
    return (name, int(version)) if mark and name and version.isascii() and version.isdigit() else (given, None)


def _metadata(address: str, name: str, version: int | None = None) -> Log:
    return _of_table(name, iceberg.IcebergTable(name, version, metadata=address))


def _of_table(name: str, table: delta.DeltaTable | iceberg.IcebergTable) -> Log:
    what = ("a Delta table", "version") if isinstance(table, delta.DeltaTable) else ("an Iceberg table", "snapshot")
    version = "" if table.version is None else f", read as of {what[1]} {table.version}"
    said = Note("table of files", "{log}: {what}{version}", log=name, what=what[0], version=version)
    return Log(name, "stream", table=table, told=(said,))


def _in_store(given: str, *, many: bool, whole: bool) -> Log:
    """Return the log at an address in an object store."""
    place = Place.of(given)
    info = place.info(place.rest)
    name, version = (place.rest, None) if info.is_file else _versioned(place.rest)
    shown = f"{place.begin}{name}"
    if not info.is_file and many and (table := _table_in_store(place, name, version)) is not None:
        return table
    if not info.is_file:
        return _of_files(shown, found_at(place, info, many=many), "" if glob.has_magic(name) else shown, whole=whole)
    here = place.remote(info)
    if here.name.endswith(DESCRIBES):
        return _metadata(shown, shown)
    copied = [here] if _is_copied(here, whole) and here.size else []
    return _file(here, dict(zip(copied, copies(copied), strict=True)))


def _table_in_store(place: Place, name: str, version: int | None) -> Log | None:
    """Return the Delta or Iceberg table in a folder of an object store; None where there is none."""
    shown = f"{place.begin}{name}"
    if place.info(f"{name}/{DELTA}".lstrip("/")).type:
        return _of_table(shown, delta.DeltaTable(place.begin + quote(name), shown, version))
    found = iceberg.newest(place.names(f"{name}/{METADATA}".lstrip("/")), shown)
    return None if found is None else _metadata(f"{shown}/{METADATA}/{found}", shown, version)


def files_of(source: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Return the files of a log of many: how each is called beside the others, and its path or address."""
    given = os.fspath(source)
    if isinstance(source, Several) or not is_object(given):
        return [(part.file, part.where) for part in locate(source).parts]
    place = Place.of(given)
    info = place.info(place.rest)
    if info.is_file or _table_in_store(place, *_versioned(place.rest)) is not None:
        return []
    return [(called, remote.address) for remote, called in found_at(place, info).files]


def located(sources: Sequence[str | os.PathLike[str]], *, local: bool = True, whole: bool = False) -> Log:
    """Return the log that several files, folders or patterns are together, not opened yet.

    Errors: one named twice, none; as of ``locate``.
    """
    names = [os.fspath(source) for source in sources]
    if not names:
        raise UsageError("a log is the name of a file, or of several; none is named")
    if len(names) == 1:
        return locate(names[0], local=local, whole=whole)
    logs = [locate(name, local=local, whole=whole) for name in names]
    parts = [part for name, log in zip(names, logs, strict=True) for part in _as_parts(name, log)]
    plain = [log.name for log in logs]
    if not any(log.parts for log in logs) and len({*plain}) == len(plain) and not any(part.folders for part in parts):
        names, parts = plain, [replace(part, file=part.name) for part in parts]
    places = [os.path.realpath(part.path) if part.path is not None else part.name for part in parts]
    if again := [part.name for at, part in enumerate(parts) if places[at] in places[:at]]:
        raise UsageError(f"{few(again)} is named twice; each counts once")
    name, told = Several(names), [note for log in logs for note in log.told]
    if other := next((log for log in logs if log.on_spark or log.format in ("database", "preflib")), None):
        raise UsageError(f"several files are read together where they are tables or runs, and {other.name} is neither")
    _check_formats(str(name), parts)
    return replace(parts[0], name=str(name), told=tuple(dict.fromkeys(told)), parts=tuple(parts), file="", folders=())


def _as_parts(name: str, log: Log) -> Sequence[Log]:
    """Return the files of one of several sources."""
    if log.parts:
        root = "" if is_pattern(name) else f"{name.rstrip('/')}/"
        return [replace(part, file=f"{root}{part.file}") for part in log.parts]
    return [replace(log, file=name, folders=folder_columns(name))]


def _of_files(name: str, found: Found, given: str, *, whole: bool = False) -> Log:
    """Return the log of the files of a folder (``given``) or of a pattern."""
    if not found.files:
        more = f"; {few(found.unfinished, 3)}: not finished" if found.unfinished else ""
        raise InputError(f"{name}: the folder holds no files (names that begin with '.' or '_' are not read){more}")
    root, called = f"{given.rstrip('/')}/" if given else "", f"{name}/" if given else ""
    written = [(path, file) for path, file in found.files if _size(path)]
    empty = [file for path, file in found.files if not _size(path)]
    _check_endings(name, [file for _, file in found.files])
    if not written:
        raise Empty(f"{name}: all files in it are empty ({len(empty):,})")
    remote = [path for path, _ in written if isinstance(path, Remote) and _is_copied(path, whole)]
    made = dict(zip(remote, copies(remote), strict=True))
    parts = [
        replace(_file(path, made), name=f"{called}{file}", file=file, folders=folder_columns(f"{root}{file}"))
        for path, file in written
    ]
    if parts[0].format == "preflib":
        raise InputError(f"{name}: PrefLib files each declare alternatives of their own; name one file")
    told: list[str] = []
    if found.unfinished:
        text = "{log}: {files:file is|files are} not finished, by {files:its name|their names}, and not read: {some}"
        text = text.replace("{files:file is", "{files:,} {files:file is")
        files = len(found.unfinished)
        told.append(Note("unfinished files", text, log=name, files=files, some=few(found.unfinished, 3)))
    if empty:
        told.append(no_rows(name, empty, len(found.files)))
    return replace(parts[0], name=name, told=tuple(told), parts=tuple(parts), file="", folders=())


def no_rows(name: str, files: Sequence[str], of: int) -> Note:
    """Say which files of a log hold no rows."""
    text = "{log}: {files:,} of {of:,} files {files:holds|hold} no rows: {some}"
    return Note("files without rows", text, log=name, files=len(files), of=of, some=few(files, 3))


def _check_endings(name: str, files: Sequence[str]) -> None:
    """Refuse files of several formats, and one that seems to be there packed, too. Errors: InputError."""
    endings: dict[str, list[str]] = {}
    for file in files:
        ending, gzipped = _ending(Path(file))
        endings.setdefault(ending + ".gz" * gzipped or "no ending", []).append(file)
    if len({ENDINGS.get(one.removesuffix(".gz"), one.removesuffix(".gz")) for one in endings}) > 1:
        held = "; ".join(f"{ending}: {few(names)}" for ending, names in sorted(endings.items()))
        raise InputError(
            f"{name}: the files of a log have one ending, those of this folder have {len(endings)} ({held})"
        )
    if both := packed_twice(files):
        raise InputError(f"{name}: {both} seem to be the same, once packed and once not; leave one of them")


def _check_formats(name: str, parts: Sequence[Log]) -> None:
    if len({part.format for part in parts if part.format != "txt"}) > 1:
        first = {part.format: part.file for part in reversed(parts)}
        held = "; ".join(f"{form}: {file!r}" for form, file in sorted(first.items()))
        raise InputError(f"{name}: the files of a log have one format, these have {len(first)} ({held})")
    if both := packed_twice(part.file for part in parts):
        raise InputError(f"{name}: {both} seem to be the same, once packed and once not; leave one of them")


def _size(path: Path | Remote) -> int:
    return path.size if isinstance(path, Remote) else _existing(path).stat().st_size


def _is_copied(file: Remote, whole: bool) -> bool:
    return whole or ENDINGS.get(_ending(file)[0]) != "parquet"


def _file(path: Path | Remote, made: Mapping[Remote, Copy] = {}) -> Log:
    ending, gzipped = _ending(path)
    name = path.address if isinstance(path, Remote) else path.name
    if ending in DATABASES:
        raise InputError(f"{name}: name the table in the database, as {path.name}::TABLE")
    form = "txt" if ending == ".txt" else ENDINGS.get(ending)
    if form is None:
        known = ", ".join([*ENDINGS, ".txt", ".duckdb::TABLE"])
        raise InputError(f"{name}: unknown ending {ending!r}; known: {known} (.csv, .tsv, .jsonl also with .gz)")
    if gzipped and form not in ZIPPABLE:
        raise InputError(f"{name}: {ending} is not read from gzip; unpack it first")
    if _size(path) == 0:
        raise Empty(f"{name}: the file is empty")
    if not isinstance(path, Remote):
        return Log(name, form, path=path, gzipped=gzipped)
    if path not in made:
        return Log(name, "stream", table=RemoteParquet(path))
    return Log(name, form, path=made[path].path, gzipped=gzipped, copy=made[path])


def _address(given: str) -> Log:
    """Return the log at an address such as s3a://bucket/votes.parquet, which Spark opens; a folder without an ending
    holds Parquet."""
    ending, gzipped = _ending(Path(given.rstrip("/*")))
    form = ENDINGS.get(ending, "parquet" if not ending and not gzipped else None)
    if form not in ("parquet", "csv", "tsv", "json"):
        raise InputError(
            f"{given}: unknown ending {ending!r}; Spark reads .parquet, .csv, .tsv and .jsonl from addresses"
        )
    return Log(given, form, table=given, gzipped=gzipped)


def _ending(path: Path | Remote) -> tuple[str, bool]:
    """Return the ending that tells the format, and whether .gz follows it."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        return (endings[-2] if len(endings) > 1 else ""), True
    return (endings[-1] if endings else ""), False


def _existing(path: Path, what: str = "file", *, folder: bool = False) -> Path:
    try:
        if path.is_dir() and not folder:
            raise InputError(f"{path} is a folder; name a {what} in it")
        if path.exists():
            if not path.is_dir():
                check_regular(path)
            return path
        beside = path.parent
        names = [name for name in os.listdir(beside) if name != path.name] if beside.is_dir() else []
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    close = difflib.get_close_matches(path.name, names, n=1)
    raise InputError(f"no file {path}{f'; did you mean {close[0]!r}?' if close else ''}")


@contextmanager
def opened(log: Log) -> Iterator[IO[str]]:
    """Open a text file as UTF-8 (a byte order mark is skipped), unpacking gzip.

    Errors of reading inside the block come out as InputError: wrong encoding, a truncated or broken gzip file.
    """
    with unpacked(log) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        yield text


@contextmanager
def unpacked(log: Log) -> Iterator[Any]:
    """Open a text file as bytes, unpacking gzip; at the end of each member its checksum and length are checked.

    Errors of reading inside the block come out as InputError.
    """
    try:
        with open_regular(log.paths[0]) as raw:
            start = raw.read(4)
            raw.seek(0)
            if not log.gzipped:
                _refuse_utf16(log, start)
            yield gzip.GzipFile(fileobj=raw) if log.gzipped else raw
    except UnicodeDecodeError as error:
        raise InputError(
            f"{log.name}: the encoding is not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from None
    except EOFError:
        raise InputError(f"{log.name}: the gzip file is truncated") from None
    except gzip.BadGzipFile as error:
        raise InputError(f"{log.name}: the gzip file is broken ({error})") from None
    except OSError as error:
        raise InputError(f"{log.name}: {getattr(error, 'strerror', None) or error}") from None
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise InputError(f"{log.name}: the gzip file is broken ({error})") from None
        raise


@contextmanager
def intact(log: Log, columns: Sequence[str]) -> Iterator[None]:
    """Read gzip files, and some columns of Parquet files, beside what is done inside the ``with``, by another reader.

    DuckDB looks neither at the checksums of gzip (one for each member, with its length) nor at those that pages of
    Parquet may have: a changed byte would be another answer. Where a file is not whole, its error (InputError) comes
    at the end of the ``with``; of other formats, which have no checksums, nothing is read.
    """
    ended = threading.Event()
    files = [part for part in log.parts or (log,) if part.path is not None]
    summed = [part for part in files if part.gzipped or part.format == "parquet"]
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="intact") as pool:
        read = [pool.submit(_to_the_end, part, columns, ended) for part in summed]
        try:
            yield
        except BaseException:
            ended.set()
            raise
        for each in read:
            each.result()


def _to_the_end(log: Log, columns: Sequence[str], ended: threading.Event) -> None:
    if log.format == "parquet":
        return _pages(log, columns, ended)
    try:  # Arrow unpacks half as fast again as Python, with the same checks
        with pa.input_stream(str(log.path), compression="gzip") as fast:
            _decoded(lambda: fast.read(BLOCK), ended)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        with unpacked(log) as stream:  # padded with zeros, which is allowed; or broken: Python's reader says how
            _decoded(lambda: stream.read(BLOCK), ended)


def _decoded(read: Callable[[], bytes], ended: threading.Event) -> None:
    """Read to the end of a text in UTF-8. DuckDB does not look at columns that it skips where members of gzip meet."""
    text = codecs.getincrementaldecoder("utf-8")()
    while not ended.is_set():
        block = read()
        text.decode(block, final=not block)
        if not block:
            return


def _pages(log: Log, columns: Sequence[str], ended: threading.Event) -> None:
    kinds = dict(zip(log.columns, log.types, strict=False))
    columns = [name for name in columns if name in log.columns]
    flat = [
        name for name in columns if name not in log.inner and (name not in kinds or not pa.types.is_nested(kinds[name]))
    ]
    try:
        with parquet_file(log.path, read_dictionary=flat, pre_buffer=False, buffer_size=PAGES) as file:
            for _ in file.iter_batches(batch_size=ROWS, columns=list(columns), use_threads=False):
                if ended.is_set():
                    return
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{log.name}: cannot be read as Parquet: {str(error).strip().splitlines()[0][:200]}") from None


def parquet_file(path: Path | None, **options: Any) -> Any:
    """Open a Parquet file; pages that have a checksum are held against it. Errors: those of Arrow."""
    return pa.parquet.ParquetFile(path, page_checksum_verification=True, **options)


def _refuse_utf16(log: Log, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{log.name}: the encoding is UTF-16, not UTF-8; save the file as UTF-8")
    if start.startswith(b"\x1f\x8b"):
        raise InputError(f"{log.name}: the file is packed with gzip; give it the ending .gz")
