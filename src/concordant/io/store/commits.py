"""Commits: a store goes from one version to the next by one rename, or stays as it was.

Segments are written first, to names that nothing refers to yet; then the whole new catalogue takes the place of the
old one. Readers take no lock: whichever catalogue they opened, its segments never change.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet

from concordant.errors import ConcordantError, InputError, Unavailable, UsageError
from concordant.io.engines.duckdb import message
from concordant.io.log.disk import check_replaced
from concordant.io.store import files
from concordant.io.store.catalogue import (
    Catalogue,
    Segment,
    contradictions,
    parts_folder,
    read_catalogue,
    refuse_log,
    sized,
    with_ids,
    write,
)
from concordant.io.store.files import WAIT, exclusive
from concordant.io.store.known import HEAD, belongs, claim
from concordant.io.store.segments import digest, write_segment
from concordant.io.store.summed import KEPT, drop_sums
from concordant.preferences.preferences import Preferences
from concordant.progress import steps
from concordant.record import wrote

ROOM = 1 << 20
"""Bytes of a disk below which it is full."""
HERE = "here"
"""Stands for the name of a segment that is not written yet."""
P = TypeVar("P", bound=Segment)
UNFINISHED = "first-ingest"
"""Stands in the folder of segments while a store is made: without a catalogue, what lies there belongs to no store."""
_PARTS = rf"(segment|ids)-[0-9]+-[0-9a-f]+\.parquet|{KEPT.pattern}|{UNFINISHED}"
OURS = re.compile(
    rf"({_PARTS})|\.({_PARTS}|{re.escape(HEAD)})"
    r"(\.[0-9a-f]{16})?\.new"
)
"""What a writer makes in the folder of segments: it removes nothing else."""


@dataclass(frozen=True)
class Changed:
    """What a store is to become, and what is to be written for it."""

    catalogue: Catalogue
    made: Mapping[str, Callable[[], Preferences]] = field(default_factory=dict)
    """What new files hold, by the names that stand for them in the catalogue; a file that would hold nothing is not
    made."""
    copied: Mapping[str, Path] = field(default_factory=dict)
    """Files of another store, by their names, which they keep."""
    ids: Mapping[int, Callable[[], pa.Table]] = field(default_factory=dict)
    """Those of the votes of batches, by their numbers; they are made when the new files are there."""


Change = Callable[[Catalogue | None], Changed | None]


def to_write(name: str = HERE) -> Segment:
    """Return what stands in a catalogue for a segment that is not written yet."""
    return Segment(name, "", 0, 0, 0)


def now() -> str:
    """Return the time as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit(store: Path, change: Change, *, by: str, wait: float = WAIT) -> Catalogue | None:
    """Change a store under its lock and return the new catalogue, or None when there was nothing to change.

    ``change`` is given the catalogue (None where there is no store yet) and returns what it is to become.

    Errors (Unavailable): the lock, a disk that is full or read-only; the store is then as it was.
    """
    target = check_place(store)  # a link to a catalogue stays one
    with told(store, "nothing was changed"), exclusive(target, wait):
        old = read_catalogue(target) if target.exists() else None
        changed = change(old)
        if changed is None:
            return None
        new, folder = changed.catalogue, parts_folder(target)
        revision = 1 + max(new.facts.revision, 0 if old is None else old.facts.revision)
        written: list[Path] = []
        try:
            _prepare(target, old)
            for name, preferences in changed.made.items():
                new = _placed(new, name, _written(preferences(), folder, revision, written))
            signs = {part.file: part.sha256 for part in new.files}
            for name, source in steps("copying files", [*changed.copied.items()]):
                _copied(source, folder / name, signs[name], written)
            for number, ids in changed.ids.items():
                new = with_ids(new, number, _ids_written(ids(), folder, revision, written))
            facts = replace(new.facts, by=by, revision=revision, created=new.facts.created or now())
            previous = "" if old is None else old.facts.commit
            new = replace(new, facts=replace(facts, commit=secrets.token_hex(8), previous=previous))
            if wrong := next(contradictions(new), None):
                raise InputError(f"{target}: {wrong}; nothing was changed")
            _put(new, target)
            wrote(target, revision=revision, judgments=new.judgments)
        except BaseException:
            _take_back(target, revision, written)
            raise
        with suppress(OSError):  # the change is made; what could not be said or removed, the next writer does
            claim(target, new)
            _tidy(target, new)
    return new


def confirm(store: Path, catalogue: Catalogue) -> None:
    """Make the catalogue that is there outlast a power cut: its writer may have been killed before it could.

    Errors (InputError): what it names is not there.
    """
    target = Path(os.path.realpath(store))
    with told(store, "nothing was changed"):
        files.sync(target.parent)
    if wrong := next(contradictions(catalogue), None):
        raise InputError(f"{target}: {wrong}; nothing is added to it")
    belongs(target, catalogue)
    for part in catalogue.files:
        sized(target, part)


def _placed(catalogue: Catalogue, name: str, segment: Segment | None) -> Catalogue:
    """Return the catalogue with a written file in the place of the name that stood for it; None: it holds nothing."""

    def parts(these: Sequence[P]) -> tuple[P, ...]:
        kept = [one for one in these if one.file != name or segment is not None]
        if segment is None:
            return tuple(kept)
        return tuple([replace(one, **asdict(segment)) if one.file == name else one for one in kept])

    file = "" if segment is None else segment.file
    batches = tuple([replace(one, segment=file) if one.segment == name else one for one in catalogue.batches])
    return replace(catalogue, batches=batches, segments=parts(catalogue.segments), sums=parts(catalogue.sums))


def _put(catalogue: Catalogue, target: Path) -> None:
    """Put a catalogue in the place of the old one: before this nothing has changed, after it everything has."""
    try:
        files.write_new(target, lambda path: write(catalogue, path))
    except OSError as error:
        if target.exists() and read_catalogue(target).facts.revision == catalogue.facts.revision:
            raise Unavailable(
                f"{target}: the change is made, but the disk did not confirm that it will last: "
                f"{error.strerror or error}"
            ) from None
        raise


def _take_back(target: Path, revision: int, written: Sequence[Path]) -> None:
    """Remove what a commit that failed has written, unless its catalogue is in its place nevertheless."""
    with suppress(OSError, InputError):  # what cannot be removed, the next writer removes
        there, folder = target.exists(), parts_folder(target)
        unfinished = folder / UNFINISHED
        if there and read_catalogue(target).facts.revision >= revision:
            return
        if there or unfinished.exists():  # else what lies there is of a store whose catalogue was moved away
            for path in (*written, *files.temporaries(target)):
                files.remove(path)
        if not there and folder.is_dir():
            for path in files.temporaries(unfinished):
                files.remove(path)
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
    folder = parts_folder(target)
    if folder.is_symlink():
        raise Unavailable(
            f"{store}: its folder {folder.name} is a link, so that another store may write there too; put the folder "
            "itself beside the file, or both of them elsewhere and here a link to the file"
        )
    if hasattr(os, "statvfs") and os.statvfs(target.parent).f_flag & os.ST_RDONLY:
        raise Unavailable(f"{store}: the disk is read-only, so nothing can be taken in or merged; it can be read")
    for place in (target.parent, folder):
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            raise Unavailable(f"{store}: no permission to write in the folder {place}")
    if target.exists() and not os.access(target, os.W_OK):
        raise Unavailable(f"{store}: no permission to write to the store; it can be read")
    refuse_log(target)
    return target


@contextmanager
def told(store: Path, outcome: str = "") -> Iterator[None]:
    """Say what the disk refused in one line, and what became of the work."""
    doing = f"cannot be {'written' if outcome else 'read'}"
    after = f"; {outcome}" if outcome else ""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename and str(error.filename) != str(store) else ""
        raise Unavailable(f"{store}: {doing}: {error.strerror or error}{where}{after}") from None
    except (duckdb.Error, pa.ArrowException) as error:
        free = shutil.disk_usage(store.absolute().parent).free
        if outcome and (isinstance(error, duckdb.FatalException) or free < ROOM):  # of our own file, so the disk's
            full = f" ({free:,} bytes are free on its disk)" if free < ROOM else ""
            raise Unavailable(f"{store}: {doing}{full}: {message(error)}{after}") from None
        raise ConcordantError(f"{store}: {doing}: {message(error)}{after}") from None


def _prepare(target: Path, old: Catalogue | None) -> None:
    """Make the folder of segments; remove what killed writers left.

    A writer may have been killed when its catalogue had its name and the disk did not know it yet: until it does, what
    the catalogue before it names must not go.
    """
    folder = parts_folder(target)
    if old is not None:
        confirm(target, old)
    files.make_folder(folder)
    if old is not None:
        claim(target, old)
    unfinished = folder / UNFINISHED
    if old is None and not unfinished.exists():
        there = [
            path.name for path in folder.iterdir() if path.name.startswith("segment-") and OURS.fullmatch(path.name)
        ]
        if there:
            raise InputError(
                f"{target}: the catalogue is missing, but {folder.name} holds {len(there):,} files; put the catalogue "
                "back, or move that folder away"
            )
        files.write_new(unfinished, lambda path: path.touch())
    _tidy(target, old, keep=old is None)


def _tidy(target: Path, catalogue: Catalogue | None, *, keep: bool = False) -> None:
    """Remove files of ours that the catalogue does not name: left by a killed writer, or merged into others."""
    for path in files.temporaries(target):
        files.remove(path)
    named = {part.file for part in catalogue.files} if catalogue else set()
    for path in parts_folder(target).iterdir():
        if KEPT.fullmatch(path.name) or path.name in named or (keep and path.name == UNFINISHED):
            continue
        if OURS.fullmatch(path.name):
            files.remove(path)
    drop_sums(parts_folder(target), {part.sign for part in catalogue.files} if catalogue else set())


def _written(prefs: Preferences, folder: Path, revision: int, written: list[Path]) -> Segment | None:
    if prefs.kind is None:
        return None
    path = folder / f"segment-{revision:06d}-{uuid4().hex[:8]}.parquet"
    written.append(path)
    files.write_new(path, lambda temporary: write_segment(prefs, temporary))
    return Segment(path.name, digest(path), path.stat().st_size, prefs.distinct, len(prefs))


def _copied(source: Path, path: Path, sha256: str, written: list[Path]) -> None:
    if not path.exists():
        written.append(path)
        files.write_new(path, lambda temporary: shutil.copyfile(source, temporary))
    if digest(path) != sha256:
        raise InputError(f"{source}: was changed since it was written (its SHA-256 differs)")


def _ids_written(ids: pa.Table, folder: Path, revision: int, written: list[Path]) -> Segment:
    path = folder / f"ids-{revision:06d}-{uuid4().hex[:8]}.parquet"
    written.append(path)
    files.write_new(path, lambda temporary: pa.parquet.write_table(ids, temporary, compression="zstd"))
    return Segment(path.name, digest(path), path.stat().st_size, len(ids), 0)
