"""What the files of a log hold: the sign by which a batch is known again, and files that only grew."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concordant.disk import open_regular
from concordant.errors import InputError
from concordant.log.formats import Log
from concordant.progress import stage
from concordant.store.catalogue import Content

__all__ = ["Looked", "look", "unchanged"]

BLOCK = 1 << 20
GROWING = ("csv", "tsv", "json", "txt", "letor", "qrels")
"""Formats of files that are appended to."""


@dataclass(frozen=True)
class Looked:
    """A file of a log: the SHA-256 and the number of its bytes, unpacked, and how it lay there meanwhile."""

    log: Log
    sha256: str
    bytes: int
    state: tuple[int, ...]


def look(log: Log, known: Iterable[Content], *, grown: bool = False) -> Looked:
    """Return the sign of what a file holds.

    A text file whose beginning is the whole of a file that is known has grown since: unless ``grown`` allows it, that
    is an error, for its first rows would be there twice. Errors (InputError): that, a broken gzip file.
    """
    assert log.path is not None
    state = _state(log.path)
    ends: dict[int, list[Content]] = {}
    if log.format in GROWING and not grown:
        for content in known:
            ends.setdefault(content.bytes, []).append(content)
    sign, size = hashlib.sha256(), 0
    whole_size = None if log.gzipped else log.path.stat().st_size
    stops = sorted(end for end in ends if end)
    whole: list[Content] = []
    try:
        with (
            stage(f"looking at {log.name}", whole_size) as at,
            open_regular(log.path) as raw,
            gzip.open(raw) if log.gzipped else raw as file,
        ):
            for stop in stops:
                size += _take(file, sign, stop - size)
                if size < stop:
                    break
                held = sign.hexdigest()
                whole = [content for content in ends[stop] if content.sha256 == held] or whole
            while taken := _take(file, sign, BLOCK):
                size += taken
                at.reach(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{log.name}: the gzip file is broken or truncated ({error})") from None
    except OSError as error:
        raise InputError(f"{log.name}: {error.strerror or error}") from None
    if whole and size > whole[0].bytes:
        raise InputError(
            f"{log.name}: begins with all of {whole[0].name}, which the store has, so its first "
            f"{whole[0].bytes:,} of {size:,} bytes would be taken in twice; ingest the new rows alone, or, where equal "
            "beginnings are no accident, say grown=True (--grown)"
        )
    return Looked(log, sign.hexdigest(), size, state)


def unchanged(looked: Iterable[Looked]) -> None:
    """Refuse a file that was written to since it was looked at."""
    for file in looked:
        assert file.log.path is not None
        if _state(file.log.path) != file.state:
            raise InputError(f"{file.log.name}: the file was changed while it was read; nothing was taken in")


def _take(file: Any, sign: Any, size: int) -> int:
    taken = 0
    while taken < size and (block := file.read(min(BLOCK, size - taken))):
        sign.update(block)
        taken += len(block)
    return taken


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
