"""What a source is, by its ending or its type: the format, the compression and the names of the columns."""

from __future__ import annotations

import difflib
import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError

__all__ = ["ENDINGS", "Log", "locate", "opened"]

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
}
DATABASES = (".duckdb", ".ddb", ".db")
ZIPPABLE = ("csv", "tsv", "json", "letor", "qrels", "preflib", "txt")
PLACE = {"csv": "line", "tsv": "line", "json": "line", "letor": "line", "qrels": "line", "preflib": "line"}


@dataclass(frozen=True)
class Log:
    """A source of rows: where it is, how it is written, and its columns in order."""

    name: str
    format: str
    columns: tuple[str, ...] = ()
    path: Path | None = None
    gzipped: bool = False
    table: Any = None
    """The Arrow table, DuckDB relation, or the name of a table in a database file."""
    array: bool = False
    """Whether a JSON file is one array and not one object a line."""
    header: int = 1
    """The line of the header of a CSV or TSV file; blank lines may stand before it."""
    lines: NDArray[np.int64] | None = None
    """The line of each row of ``table``, where it was read from a text file."""

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


def locate(source: str | os.PathLike[str]) -> Log:
    """Return the log that a path names, not opened yet: its format by its ending, and that it is there.

    Errors: no such file (with the closest name in the folder), a folder, an ending that is not known.
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
    before, mark, table = given.rpartition("::")
    if mark and not Path(given).exists():
        path = _existing(Path(before))
        return Log(f"{path.name}::{table}", "database", path=path, table=table)
    path = _existing(Path(given))
    endings = [ending.lower() for ending in path.suffixes]
    gzipped = bool(endings) and endings[-1] == ".gz"
    ending = (endings[-2] if gzipped and len(endings) > 1 else "") if gzipped else (endings[-1] if endings else "")
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


def _existing(path: Path) -> Path:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file in it")
        if path.exists():
            if not path.is_file():
                raise InputError(f"{path} is not a regular file")
            return path
        folder = path.parent
        names = [name for name in os.listdir(folder) if name != path.name] if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    close = difflib.get_close_matches(path.name, names, n=1)
    raise InputError(f"no file {path}{f'; did you mean {close[0]!r}?' if close else ''}")


@contextmanager
def opened(log: Log) -> Iterator[IO[str]]:
    """Open a text file as UTF-8 (a byte order mark is skipped), unpacking gzip.

    Errors of reading inside the block come out as InputError: wrong encoding, a truncated or broken gzip file.
    """
    assert log.path is not None
    try:
        with open(log.path, "rb") as raw:
            start = raw.read(4)
            raw.seek(0)
            if not log.gzipped:
                _refuse_utf16(log, start)
            stream: Any = gzip.GzipFile(fileobj=raw) if log.gzipped else raw
            with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
                yield text
    except UnicodeDecodeError as error:
        raise InputError(
            f"{log.name}: the encoding is not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"
        ) from None
    except EOFError:
        raise InputError(f"{log.name}: the gzip file is truncated") from None
    except (gzip.BadGzipFile, OSError) as error:
        raise InputError(f"{log.name}: {getattr(error, 'strerror', None) or error}") from None
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise InputError(f"{log.name}: the gzip file is broken ({error})") from None
        raise


def _refuse_utf16(log: Log, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{log.name}: the encoding is UTF-16, not UTF-8; save the file as UTF-8")
    if start.startswith(b"\x1f\x8b"):
        raise InputError(f"{log.name}: the file is packed with gzip; give it the ending .gz")
