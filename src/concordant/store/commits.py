"""Commits: a store goes from one version to the next by one rename, or stays as it was.

Segments are written first, to names that nothing refers to yet; then the whole new catalogue takes the place of the
old one. Readers take no lock: whichever catalogue they opened, its segments never change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa

from concordant.disk import check_replaced
from concordant.engines.duckdb import message
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.preferences import Preferences
from concordant.store import files
from concordant.store.catalogue import Batch, Catalogue, Segment, parts_folder, read_catalogue, sized, write
from concordant.store.lock import WAIT, exclusive
from concordant.store.segments import digest, write_segment

__all__ = ["HERE", "check_place", "commit", "confirm", "now"]

HERE = ""
"""The segment of a batch that is not written yet."""
UNFINISHED = "first-ingest"
"""Stands in the folder of segments while a store is made: without a catalogue, what lies there belongs to no store."""
Change = Callable[[Catalogue | None], tuple[Catalogue, Preferences | None] | None]


def now() -> str:
    """Return the time as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit(store: Path, change: Change, *, by: str, wait: float = WAIT) -> Catalogue | None:
    """Change a store under its lock and return the new catalogue, or None when there was nothing to change.

    ``change`` is given the catalogue (None where there is no store yet). It returns the new one with the preferences
    of a new segment, which is added at its end; ``HERE`` stands for its name in batches.

    Errors (ConcordantError): the lock, a disk that is full or read-only; the store is then as it was.
    """
    target = check_place(store)  # a link to a catalogue stays one
    with exclusive(target, wait), _told(store):
        old = read_catalogue(target) if target.exists() else None
        changed = change(old)
        if changed is None:
            return None
        new, prefs = changed
        revision = 1 if old is None else old.facts.revision + 1
        try:
            _prepare(target, old)
            if prefs is not None:
                segment = _written(prefs, parts_folder(target), revision)
                new = replace(new, segments=(*new.segments, segment), batches=_placed(new.batches, segment))
            new = replace(new, facts=replace(new.facts, by=by, revision=revision, created=new.facts.created or now()))
            _put(new, target)
        except BaseException:
            _take_back(target, revision)
            raise
        with suppress(OSError):  # the change is made; what could not be removed, the next writer removes
            _tidy(target, new)
    return new


def confirm(store: Path) -> None:
    """Make the catalogue that is there outlast a power cut: its writer may have been killed before it could."""
    with _told(store):
        files.sync(Path(os.path.realpath(store)).parent)


def _placed(batches: Sequence[Batch], segment: Segment) -> tuple[Batch, ...]:
    return tuple([replace(batch, segment=segment.file) if batch.segment == HERE else batch for batch in batches])


def _put(catalogue: Catalogue, target: Path) -> None:
    """Put a catalogue in the place of the old one: before this nothing has changed, after it everything has."""
    try:
        files.write_new(target, lambda path: write(catalogue, path))
    except OSError as error:
        if target.exists() and read_catalogue(target).facts.revision == catalogue.facts.revision:
            raise ConcordantError(
                f"{target}: the change is made, but the disk did not confirm that it will last: "
                f"{error.strerror or error}"
            ) from None
        raise


def _take_back(target: Path, revision: int) -> None:
    """Remove what a commit that failed has written, unless its catalogue is in its place nevertheless."""
    with suppress(OSError, InputError):  # what cannot be removed, the next writer removes
        there, folder = target.exists(), parts_folder(target)
        unfinished = folder / UNFINISHED
        if there and read_catalogue(target).facts.revision >= revision:
            return
        if there or unfinished.exists():  # else what lies there is of a store whose catalogue was moved away
            for path in (*folder.glob(f"{_numbered(revision)}-*"), *_temporaries(target)):
                files.remove(path)
        if not there and folder.is_dir():
            files.remove(files.temporary_name(unfinished))
            files.remove(unfinished)
            folder.rmdir()  # refused where anything is in it


def check_place(store: Path) -> Path:
    """Return the file that a store is, links followed, or refuse a place that no store can be written to."""
    target = Path(os.path.realpath(store))
    if target.is_dir():
        raise UsageError(f"{store} is a folder; a store is a file, with a folder beside it")
    check_replaced(target)
    if not target.parent.is_dir():
        raise UsageError(f"{store}: the folder {target.parent} does not exist")
    if hasattr(os, "statvfs") and os.statvfs(target.parent).f_flag & os.ST_RDONLY:
        raise ConcordantError(f"{store}: the disk is read-only, so nothing can be taken in or merged; it can be read")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise ConcordantError(f"{store}: no permission to write in the folder {target.parent}")
    log = target.with_name(f"{target.name}.wal")
    if log.exists():
        raise ConcordantError(
            f"{store}: {log.name} lies beside it: a DuckDB process is changing the catalogue, or was stopped while it "
            "did; only concordant may write to a store"
        )
    return target


@contextmanager
def _told(store: Path) -> Iterator[None]:
    """Say what the disk refused in one line."""
    try:
        yield
    except OSError as error:
        raise ConcordantError(f"{store}: cannot be written: {error.strerror or error}; nothing was changed") from None
    except (duckdb.Error, pa.ArrowException) as error:
        raise ConcordantError(f"{store}: cannot be written: {message(error)}; nothing was changed") from None


def _prepare(target: Path, old: Catalogue | None) -> None:
    """Make the folder of segments; remove what killed writers left.

    A writer may have been killed when its catalogue had its name and the disk did not know it yet: until it does, what
    the catalogue before it names must not go.
    """
    folder = parts_folder(target)
    if old is not None:
        confirm(target)
        for segment in old.segments:
            sized(target, segment)
    files.make_folder(folder)
    unfinished = folder / UNFINISHED
    if old is None and not unfinished.exists():
        there = [path.name for path in folder.glob("segment-*")]
        if there:
            raise InputError(
                f"{target}: the catalogue is missing, but {folder.name} holds {len(there):,} files; put the catalogue "
                "back, or move that folder away"
            )
        files.write_new(unfinished, lambda path: path.touch())
    _tidy(target, old, keep=old is None)


def _tidy(target: Path, catalogue: Catalogue | None, *, keep: bool = False) -> None:
    """Remove files of ours that the catalogue does not name: left by a killed writer, or merged into others."""
    for path in _temporaries(target):
        if path.exists():
            files.remove(path)
    named = {segment.file for segment in catalogue.segments} if catalogue else set()
    for path in parts_folder(target).iterdir():
        ours = path.name.lstrip(".").startswith(("segment-", UNFINISHED))
        if ours and path.name not in named and not (keep and path.name == UNFINISHED):
            files.remove(path)


def _temporaries(target: Path) -> tuple[Path, Path]:
    """Return where a catalogue is written before it has its name, and what DuckDB puts beside it."""
    temporary = files.temporary_name(target)
    return temporary, temporary.with_name(f"{temporary.name}.wal")


def _numbered(revision: int) -> str:
    return f"segment-{revision:06d}"


def _written(prefs: Preferences, folder: Path, revision: int) -> Segment:
    path = folder / f"{_numbered(revision)}-{uuid4().hex[:8]}.parquet"
    files.write_new(path, lambda temporary: write_segment(prefs, temporary))
    return Segment(path.name, digest(path), path.stat().st_size, prefs.distinct, len(prefs))
