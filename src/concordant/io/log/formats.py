"""What a source is, by its ending or its type: the format, the compression and the names of the columns."""

from __future__ import annotations

import codecs
import difflib
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, few
from concordant.io.log.disk import check_regular, open_regular
from concordant.io.log.lakes import Found, Several, folder_columns, is_pattern, matched, packed_twice, walked
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
    """The Arrow table, DuckDB relation, Spark DataFrame, the name of a table in a database file or in Spark's
    catalogue, or the address of files that only Spark opens."""
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


def locate(source: str | os.PathLike[str], *, many: bool = True) -> Log:
    """Return the log that a path names, not opened yet: its format by its ending, and that it is there.

    A folder is a log of all the files in it and in the folders in it, all of one format, in the order of their names;
    so is a pattern (``lake/day=*/part-*.parquet``). What Hive and Spark pass over (names that begin with ``.`` or
    ``_``, as ``_SUCCESS``) is no part of it, nor are files that somebody still writes. ``many=False`` refuses both.

    Errors: no such file (with the closest name in the folder), an ending that is not known; in a folder no file, files
    of several formats.
    """
    if isinstance(source, Several):
        return located(source.names)
    given = os.fspath(source)
    if "\0" in given:
        raise InputError(f"{given!r} is not a file name: it holds a null byte")
    if given in ("", "-", "/dev/stdin"):
        raise InputError(
            "a log is read more than once, so it cannot come from standard input; save it to a file and name that"
            if given
            else "the name of the log is empty"
        )
    if ADDRESS.match(given):
        return _address(given)
    before, mark, table = given.rpartition("::")
    if mark and before == "spark" and table:
        return Log(table, "catalogue", table=table)
    if mark and not Path(given).exists():
        path = _existing(Path(before), what="database")
        return Log(f"{path.name}::{table}", "database", path=path, table=table)
    if many and is_pattern(given):
        return _of_files(given, matched(given), "")
    path = _existing(Path(given), folder=many)
    if not path.is_dir():
        return _file(path)
    return _of_files(path.name or path.resolve().name or str(path), walked(path), given)


def located(sources: Sequence[str | os.PathLike[str]]) -> Log:
    """Return the log that several files, folders or patterns are together, not opened yet.

    Errors: one named twice, none; as of ``locate``.
    """
    names = [os.fspath(source) for source in sources]
    if not names:
        raise UsageError("a log is the name of a file, or of several; none is named")
    if len(names) == 1:
        return locate(names[0])
    logs = [locate(name) for name in names]
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


def _of_files(name: str, found: Found, given: str) -> Log:
    """Return the log of the files of a folder (``given``) or of a pattern."""
    if not found.files:
        more = f"; {few(found.unfinished, 3)}: not finished" if found.unfinished else ""
        raise InputError(f"{name}: the folder holds no files (names that begin with '.' or '_' are not read){more}")
    root, called = f"{given.rstrip('/')}/" if given else "", f"{name}/" if given else ""
    written = [(path, file) for path, file in found.files if _existing(path).stat().st_size]
    empty = [file for path, file in found.files if not path.stat().st_size]
    _check_endings(name, [file for _, file in found.files])
    if not written:
        raise Empty(f"{name}: all files in it are empty ({len(empty):,})")
    parts = [
        replace(_file(path), name=f"{called}{file}", file=file, folders=folder_columns(f"{root}{file}"))
        for path, file in written
    ]
    if parts[0].format == "preflib":
        raise InputError(f"{name}: PrefLib files each declare alternatives of their own; name one file")
    told = [Note("table of files", "{log}: {said}", log=name, said=said) for said in found.tables]
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


def _file(path: Path) -> Log:
    ending, gzipped = _ending(path)
    if ending in DATABASES:
        raise InputError(f"{path.name}: name the table in the database, as {path.name}::TABLE")
    form = "txt" if ending == ".txt" else ENDINGS.get(ending)
    if form is None:
        known = ", ".join([*ENDINGS, ".txt", ".duckdb::TABLE"])
        raise InputError(f"{path.name}: unknown ending {ending!r}; known: {known} (.csv, .tsv, .jsonl also with .gz)")
    if gzipped and form not in ZIPPABLE:
        raise InputError(f"{path.name}: {ending} is not read from gzip; unpack it first")
    if path.stat().st_size == 0:
        raise Empty(f"{path.name}: the file is empty")
    return Log(path.name, form, path=path, gzipped=gzipped)


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


def _ending(path: Path) -> tuple[str, bool]:
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
