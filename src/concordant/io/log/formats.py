"""What a source is, by its ending or its type: the format, the compression and the names of the columns."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, few
from concordant.io.log.disk import check_regular, open_regular

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

    A folder is a log of many files, all of one ending, in the order of their names; names that begin with ``.`` or
    ``_`` (``_SUCCESS``) are no part of it. ``many=False`` refuses folders.

    Errors: no such file (with the closest name in the folder), an ending that is not known; in a folder no file, files
    of several endings, or a folder.
    """
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
    path = _existing(Path(given), folder=many)
    return _folder(path) if path.is_dir() else _file(path)


def located(sources: Sequence[str | os.PathLike[str]]) -> Log:
    """Return the log that several files of runs are together, not opened yet. Errors (UsageError): others, or none."""
    parts = [locate(source, many=len(sources) == 1) for source in sources]
    names = [os.fspath(source) for source in sources]
    if again := [name for at, name in enumerate(names) if os.path.realpath(name) in map(os.path.realpath, names[:at])]:
        raise UsageError(f"{few(again)} is named twice; each run counts once")
    if not parts:
        raise UsageError("a log is the name of a file, or several of TREC runs; none is named")
    return (
        replace(parts[0], name=" + ".join(part.name for part in parts), parts=tuple(parts)) if parts[1:] else parts[0]
    )


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
        raise InputError(f"{path.name}: the file is empty")
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


def _folder(folder: Path) -> Log:
    name = folder.name or folder.resolve().name or str(folder)
    try:
        seen = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
    inner = [path.name for path in seen if path.is_dir()]
    if inner:
        raise InputError(
            f"{name}: the files of a log stand side by side, but this folder holds the folder {few(inner)}"
        )
    if not seen:
        raise InputError(f"{name}: the folder holds no files (names that begin with '.' or '_' are not read)")
    endings: dict[str, list[str]] = {}
    for path in seen:
        ending, gzipped = _ending(path)
        endings.setdefault(ending + ".gz" * gzipped or "no ending", []).append(path.name)
    if len(endings) > 1:
        held = "; ".join(f"{ending}: {few(names)}" for ending, names in sorted(endings.items()))
        raise InputError(
            f"{name}: the files of a log have one ending, those of this folder have {len(endings)} ({held})"
        )
    parts = [_file(_existing(path)) for path in seen]
    if parts[0].format == "preflib":
        raise InputError(f"{name}: PrefLib files each declare alternatives of their own; name one file")
    return replace(parts[0], name=name, parts=tuple([replace(part, name=f"{name}/{part.name}") for part in parts]))


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
    flat = [name for name in columns if name not in kinds or not pa.types.is_nested(kinds[name])]
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
