"""A store: counted judgments on disk that take in logs batch by batch, each exactly once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from concordant import __version__
from concordant.engines.counting import with_columns
from concordant.engines.duckdb import Settings
from concordant.errors import InputError, UsageError
from concordant.log.formats import Log, locate
from concordant.log.tables import from_object
from concordant.preferences import Preferences
from concordant.reading import Reading, read_log
from concordant.store.agreement import agree, agree_columns, facts_of
from concordant.store.catalogue import Batch, Catalogue, Content, is_store, read_catalogue
from concordant.store.commits import HERE, check_place, commit, confirm, now
from concordant.store.compacting import Compacted, compact
from concordant.store.contents import Looked, look, unchanged
from concordant.store.exporting import export
from concordant.store.fingerprint import fingerprint
from concordant.store.lock import WAIT
from concordant.store.stored import read_stored
from concordant.store.verifying import Verified, verify

__all__ = ["Store", "Taken"]

READ_AS = ("kind", "columns", "clicks", "on_error", "cluster", "covariates", "home")
"""Options of reading that say what a log means: they are written down with a batch."""


@dataclass(frozen=True)
class Taken:
    """What became of a log: how much of it was taken in, and what the store had already."""

    name: str
    rows: int = 0
    judgments: int = 0
    seconds: float = 0.0
    known: tuple[str, ...] = ()
    """Files of the log (or the log) that the store had already, in words."""
    facts: str = ""
    """The preferences that were added, in one line."""
    skipped: str = ""
    """What was left out of the log, with ``on_error='skip'``."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how the log was read, and its labels that look alike."""

    @property
    def new(self) -> bool:
        """Whether anything was taken in."""
        return self.judgments > 0


class Store(os.PathLike[str]):
    """Counted judgments on disk, taken in log by log, each exactly once.

    ``path`` is a file, the catalogue; its segments lie beside it in ``path.parts``. It need not exist yet: the first
    log that is taken in makes it, and fixes the kind of judgments, whether they have clusters, and their covariates.
    Wherever a log is read (``read``, the commands rank, fit, audit) the path of a store or a Store can be named, and

        read(store) == read(log_1) + read(log_2) + …

    bit for bit. A killed process, a full disk or a power cut leave a store as it was before the log or with all of it.

    >>> import tempfile, concordant
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/votes.store")
    >>> votes = {"winner": ["a", "a"], "loser": ["b", "b"]}
    >>> store.ingest(votes).judgments, store.ingest(votes).judgments  # the second time it is known
    (2, 0)
    >>> concordant.read(store) == concordant.read(votes)
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store at a path; it has to be there. Errors (InputError): no store, a damaged or newer one."""
        store = cls(path)
        read_catalogue(store.path)
        return store

    def ingest(
        self, source: Any, *, name: str | None = None, grown: bool = False, wait: float = WAIT, **options: Any
    ) -> Taken:
        """Take a log into the store, whole or not at all; what the store has already is left out.

        ``source`` is whatever ``read`` reads, with the same ``options``, or Preferences. A file is known again by the
        SHA-256 of its bytes (unpacked, of .gz), whatever its name; of a folder the new files are taken in, together; a
        table (in memory or in a database) is known by its counted judgments. ``name`` is what the batch is called.
        A text file that begins with the whole of a known one has grown and is refused, unless ``grown`` allows it.
        ``wait`` is how many seconds to wait for another writer.

        Errors: InputError as ``read`` has, or a log that does not agree with those before it; ConcordantError: another
        writer, a disk that is full or may not be written. After an error the store is as it was.
        """
        return _Intake(self.path, source, name, grown, wait, options).run()

    def preferences(self, *, memory_limit: str | None = None, threads: int | None = None) -> Preferences:
        """Return the sum of all that was taken in. Errors (InputError): no store; a segment missing or damaged."""
        return read_stored(self.path, Settings(memory_limit, threads))[0]

    def info(self) -> Catalogue:
        """Return what the store says of itself: facts, batches, the contents they were, segments."""
        return read_catalogue(self.path)

    def verify(self) -> Verified:
        """Read everything, hold it against its SHA-256 and count again. Errors (InputError): all that is wrong."""
        return verify(self.path)

    def compact(self, *, wait: float = WAIT, memory_limit: str | None = None, threads: int | None = None) -> Compacted:
        """Merge all segments into one. Readers and other writers may go on meanwhile; what is known stays known."""
        return compact(self.path, Settings(memory_limit, threads), by=__version__, wait=wait)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all judgments as a log (.parquet, .csv, .tsv, .arrow) that ``read`` reads back as the same Preferences.

        Where the store keeps them, name ``cluster='cluster'`` and the covariates. CSV has texts only: integer labels
        come back as texts. Returns the number of items that no row holds, because they are in no judgment.
        """
        return export(self.preferences(), Path(path))


class _Intake:
    """One log on its way into a store."""

    def __init__(
        self, path: Path, source: Any, name: str | None, grown: bool, wait: float, options: Mapping[str, Any]
    ) -> None:
        self.path, self.grown, self.wait, self.options = path, grown, wait, dict(options)
        self.prefs = source if isinstance(source, Preferences) else None
        if self.prefs is not None:
            if options:
                raise UsageError(f"{', '.join(options)}: Preferences are read already")
            self.log = Log("preferences", "preferences")
        elif isinstance(source, str | os.PathLike):
            if is_store(Path(source)):
                raise InputError(
                    f"{os.fspath(source)}: a store, not a log; what it was made of can be taken in, or what "
                    "concordant store export writes"
                )
            self.log = locate(source)
            name = name or os.fspath(source)
        else:
            self.log = from_object(source)
        self.name = name or self.log.name

    def run(self) -> Taken:
        begun = time.perf_counter()
        check_place(self.path)  # what cannot be written should not cost the reading of a large log
        while True:
            old = read_catalogue(self.path) if self.path.exists() else None
            if old is not None and self.prefs is None:
                agree_columns(old.facts, self.options.get("cluster") is not None, self._covariates(), self.name)
            known = {content.sha256: content for content in old.contents} if old else {}
            looked = [look(part, known.values(), grown=self.grown) for part in self._files()]
            fresh, had = _sorted_out(looked, known)
            if looked and not fresh:
                confirm(self.path)
                return Taken(self.name, known=had, seconds=time.perf_counter() - begun)
            reading = self._read(fresh)
            unchanged(looked)
            prefs = reading.preferences
            contents = [Content(file.sha256, file.bytes, file.log.name, 0) for file in fresh]
            if not looked:
                contents = [Content(fingerprint(prefs), 0, self.name, 0)]
                if (there := known.get(contents[0].sha256)) is not None:
                    confirm(self.path)
                    return Taken(self.name, known=(_as_known(self.name, there),), seconds=time.perf_counter() - begun)
            change = partial(self._added, reading=reading, contents=contents)
            if commit(self.path, change, by=__version__, wait=self.wait):
                seconds = time.perf_counter() - begun
                found = (prefs.facts, reading.report(), reading.notes)
                return Taken(self.name, reading.rows, len(prefs), seconds, had, *found)
            # another process took some of it in meanwhile: look again

    def _files(self) -> tuple[Log, ...]:
        """Return the files whose bytes are the log; none where it is a table."""
        if self.log.path is None or self.log.format == "database":
            return ()
        return self.log.parts or (replace(self.log, name=self.name),)

    def _covariates(self) -> list[str]:
        named = self.options.get("covariates", ())
        home = ["home"] if self.options.get("home") is not None else []
        return [*([named] if isinstance(named, str) else named), *home]

    def _read(self, fresh: Sequence[Looked]) -> Reading:
        if self.prefs is not None:
            if self.prefs.kind is None:
                raise InputError(f"{self.name}: there are no judgments")
            return Reading(self.prefs, len(self.prefs), self.name, {})
        log = self.log
        if 0 < len(fresh) < len(log.parts):
            with_columns(log)  # new files have the columns of those that are known, or none of them is taken in
            log = replace(fresh[0].log, name=log.name, parts=tuple([file.log for file in fresh]))
        return read_log(log, **self.options)

    def _added(
        self, old: Catalogue | None, reading: Reading, contents: Sequence[Content]
    ) -> tuple[Catalogue, Preferences] | None:
        """Return the catalogue with one more batch, or None where some of it is there already."""
        prefs = reading.preferences
        if old is None:
            old = Catalogue(facts_of(prefs, self.options.get("cluster")))
        agree(old.facts, prefs, self.name)
        if {content.sha256 for content in old.contents} & {content.sha256 for content in contents}:
            return None
        number = len(old.batches) + 1
        said = {name: value for name in READ_AS if (value := self.options.get(name)) and value != "raise"}
        how = json.dumps(said, ensure_ascii=False)
        batch = Batch(number, self.name, reading.rows, len(prefs), HERE, now(), how)
        added = [replace(content, batch=number) for content in contents]
        return replace(old, batches=(*old.batches, batch), contents=(*old.contents, *added)), prefs


def _sorted_out(looked: Sequence[Looked], known: Mapping[str, Content]) -> tuple[list[Looked], tuple[str, ...]]:
    """Return the files that are new, each content once, and what is said of the others."""
    fresh: dict[str, Looked] = {}
    had = []
    for file in looked:
        if file.sha256 in known:
            had.append(_as_known(file.log.name, known[file.sha256]))
        elif file.sha256 in fresh:
            had.append(f"{file.log.name} (the same as {fresh[file.sha256].log.name})")
        else:
            fresh[file.sha256] = file
    return list(fresh.values()), tuple(had)


def _as_known(name: str, content: Content) -> str:
    return name if name == content.name else f"{name} (as {content.name})"
