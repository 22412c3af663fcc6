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

import pyarrow.parquet as parquet

from concordant import __version__
from concordant.errors import Idle, InputError, Setting, UsageError, few
from concordant.io.engines.counting import open_log, with_columns
from concordant.io.engines.duckdb import Settings
from concordant.io.layouts import Reading
from concordant.io.log.formats import Log, locate
from concordant.io.log.tables import from_object
from concordant.io.read import layout_of, read_as_made
from concordant.io.store.catalogue import Catalogue, Content, Facts, Ingestion, is_store, kept_ids, read_catalogue
from concordant.io.store.commits import HERE, check_place, commit, confirm, now, told
from concordant.io.store.files import WAIT
from concordant.io.store.known import MARK, KnownFiles, beside, known_files, load
from concordant.io.store.maintenance import Compacted, Verified, compact, export, verify
from concordant.io.store.migrations import UNKNOWN
from concordant.io.store.segments import Looked, fingerprint, look, unchanged
from concordant.io.store.stored import (
    Named,
    agree,
    agree_columns,
    checked,
    covariates_of,
    facts_of,
    fits,
    kept_query,
    named_in,
    queries_of,
    read_stored,
    settled,
    words,
)
from concordant.io.votes import Ids, Votes
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.preferences import Comparisons, Preferences

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
    exported: int | None = None
    """Of an export of a store: how many judgments were exported. Those that are missing were dropped from it."""
    carried: int = 0
    """Of an export: how many files that store knew; this one knows them, too."""

    @property
    def new(self) -> bool:
        """Whether anything was taken in."""
        return self.judgments > 0


class Store(os.PathLike[str]):
    """Counted judgments on disk, taken in log by log, each exactly once.

    ``path`` is a file, the catalogue; its segments lie beside it in ``path.parts``. It need not exist yet: the first
    log that is taken in makes it, and fixes the kind of judgments and the columns of query, cluster and covariates.
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
        self,
        source: Any,
        *,
        name: str | None = None,
        grown: bool = False,
        again: str = "",
        known: str | os.PathLike[str] | None = None,
        wait: float = WAIT,
        **options: Any,
    ) -> Taken:
        """Take a log into the store, whole or not at all; what the store has already is left out.

        Parameters
        ----------
        source : whatever ``read`` reads, or Preferences. A file is known again by the SHA-256 of its bytes (unpacked,
            of .gz), whatever its name; a table (in memory or in a database) by its counted judgments. The new files of
            a folder are taken in together.
        name : what the batch is called.
        grown : whether a text file that begins with the whole of a known one is allowed; otherwise it is refused.
        again : a name, under which what the store has already is counted once more, on purpose; under one name once.
        known : for the export of a store: the list of files that lies beside it, under another name or elsewhere (or
            the old store); "none" forgets them.
        wait : seconds to wait for another writer.
        **options : options of ``read``.

        Errors: InputError as ``read`` has, or a log that does not agree with those before it; ConcordantError: another
        writer, a disk that is full or may not be written. After an error the store is as it was.
        """
        with told(self.path):
            return _Intake(self.path, source, name, options, grown=grown, again=again, known=known, wait=wait).run()

    def preferences(self, *, memory_limit: str | None = None, threads: int | None = None) -> Preferences:
        """Return the sum of all that was taken in. Errors (InputError): no store; a segment missing or damaged."""
        with told(self.path):
            return read_stored(self.path, Settings(memory_limit, threads))[0]

    def info(self) -> Catalogue:
        """Return what the store says of itself: facts, batches, the contents they were, segments."""
        with told(self.path):
            return read_catalogue(self.path)

    def verify(self) -> Verified:
        """Read everything, hold it against its SHA-256 and count again. Errors (InputError): all that is wrong."""
        with told(self.path):
            return verify(self.path)

    def compact(self, *, wait: float = WAIT, memory_limit: str | None = None, threads: int | None = None) -> Compacted:
        """Merge all segments into one. Readers and other writers may go on meanwhile; what is known stays known."""
        with told(self.path):
            return compact(self.path, Settings(memory_limit, threads), by=__version__, wait=wait)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all judgments as a log (.parquet, .csv, .tsv, .arrow) that ``read`` reads back as the same Preferences.

        Where the store keeps them, name ``cluster='cluster'`` and the covariates (``ingest`` does that itself). CSV has
        texts only: integer labels come back as texts. Beside it lies ``_NAME.known.json``, the list of files that were
        taken in, by which a store that is made of the export knows them again. Returns the number of items that no row
        holds, because they are in no judgment.
        """
        with told(self.path):
            prefs, catalogue = read_stored(self.path)
            return export(prefs, Path(path), known_files(catalogue))


class _Intake:
    """One log on its way into a store."""

    def __init__(
        self, path: Path, source: Any, name: str | None, options: Mapping[str, Any], *, grown: bool, again: str,
        known: str | os.PathLike[str] | None, wait: float,
    ) -> None:  # fmt: skip
        self.path, self.options = path, options
        self.grown, self.again, self.known, self.wait = grown, again, known, wait
        self.exported: KnownFiles | None = None
        self.prefs = source if isinstance(source, Preferences) else None
        if not isinstance(again, str):
            raise UsageError(f"again is a name for what is counted once more, not {again!r}")
        if self.prefs is not None:
            if options:
                raise UsageError(f"{', '.join(options)}: Preferences are read already")
            if isinstance(self.prefs, Comparisons) and self.prefs.time is not None:
                raise UsageError("a store keeps no times; take in judgments that were read without")
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
        while (taken := self._tried()) is None:
            pass  # another process wrote meanwhile: look again
        return replace(taken, seconds=time.perf_counter() - begun)

    def _tried(self) -> Taken | None:
        old = read_catalogue(self.path) if self.path.exists() else None
        there = old.contents if old else ()
        votes = self._votes(old)
        looked = [look(part, there, grown=self.grown or votes is not None) for part in self._files()]
        fresh, had = self._sorted_out(looked, there)
        if old is not None and looked and not fresh:
            return Taken(self.name, known=had) if self._confirmed(old) else None
        log = self._fresh_log(fresh)
        self.exported = self._export(log, fresh)
        options = self.options if self.exported is None else self.exported.options(self.options)
        if old is not None and self.prefs is None:
            agree_columns(old.facts, options.get("cluster") is not None, covariates_of(options), self.name)
        reading = self._read(log, options, votes)
        unchanged(looked)
        prefs = reading.preferences
        if votes is not None and votes.had and not len(prefs) and old is not None:
            said = f"{self.name} (all {votes.had:,} votes, by their ids)"
            return Taken(self.name, reading.rows, known=(*had, said)) if self._confirmed(old) else None
        refuse_crossed(prefs, "a store")
        if isinstance(prefs, Comparisons) and prefs.share is not None:
            raise UsageError(f"{self.name}: a store keeps no shares of a win (outcomes between 0 and 1); read the log")
        contents = [self._content(file.sha256, file.bytes, file.log.name) for file in fresh]
        if not looked:
            contents = [self._content(fingerprint(prefs), 0, self.name)]
            if old is not None and (said := self._sorted(contents[0], there)):
                return Taken(self.name, known=(said,)) if self._confirmed(old) else None
        change = partial(self._added, reading=reading, contents=contents, seen=None if votes is None else there)
        ids = None if votes is None or votes.new is None else votes.new.table()
        if commit(self.path, change, by=__version__, wait=self.wait, ids=ids) is None:
            return None
        taken = Taken(self.name, reading.rows, len(prefs), 0.0, had, prefs.facts, reading.report(), reading.notes)
        if self.exported is None:
            return taken
        return replace(taken, exported=self.exported.judgments, carried=len(self.exported.contents))

    def _votes(self, old: Catalogue | None) -> Votes | None:
        """Return the votes that the store has by their ids, where a column of ids is named. Errors: UsageError."""
        asked = (self.options.get("columns") or {}).get("id")
        kept = [] if old is None else kept_ids(old)
        if asked is None:
            if kept:
                raise UsageError(
                    f"{self.path} knows its votes by their ids; name the column of the ids of {self.name} (",
                    Setting("columns", key="id"),
                    "), so that no vote is counted twice",
                )
            return None
        if self.again:
            raise Idle("again", "votes that have an id are counted once")
        if old is not None and len(kept) < len(old.batches):
            raise UsageError(
                f"{self.path} took in logs without the ids of their votes, so which it has is not known; make the "
                "store anew, with ",
                Setting("columns", asked, "id"),
            )
        target = Path(os.path.realpath(self.path))
        return Votes(Ids.joined(Ids.of_table(parquet.read_table(checked(target, one))) for one in kept))

    def _confirmed(self, old: Catalogue) -> bool:
        """Return whether the store is still what it was when something was known; refuse one that is not whole."""
        try:
            confirm(self.path, old)
        except InputError:
            if read_catalogue(self.path).facts.revision == old.facts.revision:
                raise
            return False  # its segments were merged meanwhile
        return True

    def _files(self) -> tuple[Log, ...]:
        """Return the files whose bytes are the log; none where it is a table."""
        if self.log.path is None or self.log.format == "database":
            return ()
        return self.log.parts or (replace(self.log, name=self.name),)

    # -- known or new ------------------------------------------------------------------------------------------------
    def _sorted_out(self, looked: Sequence[Looked], there: Sequence[Content]) -> tuple[list[Looked], tuple[str, ...]]:
        """Return the files that are new, each content once, and what is said of the others."""
        fresh: dict[str, Looked] = {}
        had = []
        for file in looked:
            content = self._content(file.sha256, file.bytes, file.log.name)
            if said := self._sorted(content, there, file.log):
                had.append(said)
            elif file.sha256 in fresh:
                had.append(f"{file.log.name} (the same as {fresh[file.sha256].log.name})")
            else:
                fresh[file.sha256] = file
        return list(fresh.values()), tuple(had)

    def _sorted(self, content: Content, there: Sequence[Content], log: Log | None = None) -> str:
        """Return what is said of a content that the store has; nothing of one that is to be taken in."""
        same = [one for one in there if one.sha256 == content.sha256]
        if self.again:
            if not same:
                raise InputError(
                    f"{content.name}: the store does not have it yet, so it cannot be counted again; leave out ",
                    Setting("again", self.again),
                )
            if self.again in [one.again for one in same]:
                return f"{content.name} (again, as {self.again!r})"
            return ""
        if not same:
            return ""
        said = content.name if content.name == same[0].name else f"{content.name} (as {same[0].name})"
        return said if log is None else said + self._read_alike(log, content, same[0])

    def _read_alike(self, log: Log, content: Content, there: Content) -> str:
        """Refuse a file that the store has, read otherwise than it would be now; say where only bad rows differ."""
        before, now = json.loads(there.options), json.loads(content.options)
        if before == now:
            return ""
        skipped = before.pop("on_error", None), now.pop("on_error", None)
        if before != now:
            clicks = before.get("clicks"), now.get("clicks")
            if layout_of(log, **before) != layout_of(log, **now) or clicks[0] != clicks[1]:
                raise InputError(
                    f"{content.name}: the store has it already, read with {words(before)}; with {words(now)}, as "
                    "now, it would be other judgments. It stays as it was taken in: give the options of then, or make "
                    "the store anew"
                )
        return " (then rows in error were left out)" if skipped[0] and not skipped[1] else ""

    def _content(self, sha256: str, size: int, name: str) -> Content:
        said = {each: value for each in READ_AS if (value := self.options.get(each)) and value != "raise"}
        return Content(sha256, size, name, 0, self.again, json.dumps(said, ensure_ascii=False))

    # -- exports of stores -------------------------------------------------------------------------------------------
    def _export(self, log: Log, fresh: Sequence[Looked]) -> KnownFiles | None:
        """Return the list of an export of a store; None where the log is none. Errors (InputError): it is missing."""
        columns = () if self.prefs is not None else with_columns(log).columns
        marks = self._marks(log) if MARK in columns else set()
        places = sorted(
            {beside(path) for file in fresh if (path := file.log.path) is not None and beside(path).exists()}
        )
        if self.known == "none":
            if not marks and not places:
                raise UsageError(
                    f"{self.name}: ", Setting("known", "none"), " is for the export of a store; this is none"
                )
            return None
        lists = [load(place) for place in places] if self.known is None else [load(Path(self.known))]
        if missing := marks - {one.mark for one in lists}:
            raise InputError(
                f"{self.name}: holds rows exported from a store ({MARK}: {few(sorted(missing), 3)}) without the "
                f"list of the files that they came from ({beside(log.path or Path(self.name)).name}); name it with ",
                Setting("known"),
                ", so that none of them is counted again, or say ",
                Setting("known", "none"),
            )
        if len({one.mark for one in lists}) > 1:
            raise InputError(f"{self.name}: holds exports of {len(lists)} stores; take them in one after the other")
        return lists[0] if lists else None

    def _marks(self, log: Log) -> set[str]:
        asked = [self.options.get(name) for name in ("engine", "memory_limit", "threads", "master")]
        found, _ = open_log(log, *asked).count_rows({"mark": MARK})
        return {str(mark).strip('"') for mark in found["mark"].to_pylist()} - {"None", "", "null"}  # as texts or JSON

    # -- reading and adding ------------------------------------------------------------------------------------------
    def _fresh_log(self, fresh: Sequence[Looked]) -> Log:
        log = self.log
        if 0 < len(fresh) < len(log.parts):
            with_columns(log)  # new files have the columns of those that are known, or none of them is taken in
            log = replace(fresh[0].log, name=log.name, parts=tuple([file.log for file in fresh]))
        return log

    def _read(self, log: Log, options: Mapping[str, Any], votes: Votes | None) -> Reading:
        if self.prefs is None:
            return read_as_made(log, **options, votes=votes)
        if self.prefs.kind is None:
            raise InputError(f"{self.name}: there are no judgments")
        return Reading(self.prefs, len(self.prefs), self.name, {})

    def _named(self, reading: Reading) -> Named:
        """Return the columns that are pinned by a store; what nobody knows is unknown."""
        prefs = reading.preferences
        if self.exported is not None:
            facts = self.exported.facts
            query = facts.query if facts.query != UNKNOWN else kept_query(prefs.queries.tolist(), self.name)
            return {"query": query, "cluster": facts.cluster, "home": facts.home, "neutral": facts.neutral}
        return named_in(prefs, None if self.prefs is not None else reading.roles, self.options.get("home"))

    def _added(
        self, old: Catalogue | None, reading: Reading, contents: Sequence[Content], seen: Sequence[Content] | None
    ) -> tuple[Catalogue, Preferences] | None:
        """Return the catalogue with one more batch, or None where some of it is there already.

        ``seen``: the contents of which the ids of votes were known.
        """
        if seen is not None and (() if old is None else old.contents) != seen:
            return None  # another log came in meanwhile, perhaps with votes of this one
        prefs, named = reading.preferences, self._named(reading)
        carried = () if self.exported is None else self.exported.contents
        if self.exported is not None:
            agree(self.exported.facts, prefs, named, f"{self.name} (the export of a store)")
        facts = facts_of(prefs, named) if old is None else self._facts(old)
        agree(facts, prefs, named, self.name)
        old = Catalogue(facts) if old is None else replace(old, facts=settled(facts, named))
        there = {(content.sha256, content.again) for content in old.contents}
        if there & {(content.sha256, content.again) for content in contents}:
            return None
        fits(old, prefs, carried, self.name)
        number = len(old.batches) + 1
        how: dict[str, Any] = json.loads(contents[0].options)
        how |= {"again": self.again} if self.again else {}
        if self.exported is not None:
            how |= {"exported_from": self.exported.mark, "exported": self.exported.judgments}
        batch = Ingestion(number, self.name, reading.rows, len(prefs), HERE, now(), json.dumps(how, ensure_ascii=False))
        added = [replace(content, batch=number) for content in (*contents, *carried)]
        return replace(old, batches=(*old.batches, batch), contents=(*old.contents, *added)), prefs

    def _facts(self, old: Catalogue) -> Facts:
        """Return the facts of a store; whether it has queries is read off it where version 0.1 did not say so."""
        if old.facts.query != UNKNOWN:
            return old.facts
        target = Path(os.path.realpath(self.path))
        queries = queries_of([checked(target, segment) for segment in old.segments])
        return replace(old.facts, query=kept_query(queries, str(self.path)))
