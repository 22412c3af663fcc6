"""A store: counted judgments on disk that take in logs batch by batch, each exactly once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from concordant import __version__
from concordant.errors import InputError, UsageError, few
from concordant.io.engines.counting import open_log
from concordant.io.engines.duckdb import Settings
from concordant.io.intake import READ_AS, Intake, Taken
from concordant.io.log.formats import Empty, files_of, locate
from concordant.io.log.lakes import Several, is_pattern
from concordant.io.log.objects import is_object
from concordant.io.store.batches import REMOVED, Which, expired, forgetting, forgetting_votes, labels_said, without
from concordant.io.store.catalogue import Catalogue, Ingestion, is_store, kept_ids, read_catalogue
from concordant.io.store.commits import Changed, commit, told
from concordant.io.store.copies import Copied, backup, restore
from concordant.io.store.days import all_dated, check_kept, day_of, days_kept, of_window
from concordant.io.store.files import WAIT
from concordant.io.store.known import known_files
from concordant.io.store.maintenance import Compacted, Verified, compact, export, verify
from concordant.io.store.stored import nothing_in, read_stored
from concordant.preferences.preferences import Preferences
from concordant.preferences.values import texts
from concordant.preferences.windows import Window, said_day


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
        day: str | None = None,
        keep: int | str | None = None,
        excluding: str | os.PathLike[str] | None = None,
        wait: float = WAIT,
        **options: Any,
    ) -> Taken:
        """Take a log into the store, whole or not at all; what the store has already is left out.

        Parameters
        ----------
        source : whatever ``read`` reads, or Preferences. A file is known again by the SHA-256 of its bytes (unpacked,
            of .gz), whatever its name; a table (in memory or in a database) by its counted judgments. The new files of
            a folder are taken in together.
        name : what the batch is called; a name that is given belongs to one batch.
        grown : whether a text file that begins with the whole of a known one is allowed; otherwise it is refused.
        again : a name, under which what the store has already is counted once more, on purpose; under one name once.
        known : for the export of a store: the list of files that lies beside it, under another name or elsewhere (or
            the old store); "none" forgets them.
        day : the day that the batch is of, as 2026-01-31; None: what the path names (``day=2026-01-31/…``, a date in
            the name of the file), if anything.
        keep : how many days back from the newest one are kept from now on, such as "90d"; older batches are taken out,
            and refused. "all" keeps all, None what was said before.
        excluding : a store in whose place this one is made anew: what was taken out there stays out.
        wait : seconds to wait for another writer.
        **options : options of ``read``.

        Errors: InputError as ``read`` has, or a log that does not agree with those before it; ConcordantError: another
        writer, a disk that is full or may not be written. After an error the store is as it was.
        """
        kept = None if keep is None else days_kept(keep)
        with told(self.path):
            taken = Intake(
                self.path, source, name, options, grown=grown, again=again, known=known, wait=wait, day=day, keep=kept,
                excluding=excluding,
            ).run()  # fmt: skip
            if kept is not None and not taken.new and self.path.exists():
                taken = replace(taken, expired=self.retain(kept or "all", wait=wait))
            return taken

    def ingest_days(
        self, source: str | os.PathLike[str], *, name: str | None = None, day: str | None = None, **options: Any
    ) -> Iterator[Taken]:
        """Take in files day by day: those of a day, by their paths, are one batch; yield what became of each.

        Where the files of ``source`` (a folder, a pattern) are not of several days, or a ``day`` is said, all of them
        are one batch, as of ``ingest``, which has the other options. Errors: as of ``ingest``; the days before one
        that fails are in the store.
        """
        days = {} if day is not None else files_by_day(source)
        if len(days) < 2:
            yield self.ingest(source, name=name, day=day, **options)
            return
        if name is not None:
            raise UsageError(f"{name!r} names one batch, and {os.fspath(source)} holds {len(days):,} days")
        empty: list[InputError] = []
        for one, files in days.items():
            if isinstance(files, Several):
                files = Several(files.names, f"{os.fspath(source)}, {one or 'of no day'}")
            again = options.get("again")
            try:
                yield self.ingest(files, name=f"{again} {one}".strip() if again else None, **options)
            except Empty as problem:
                empty.append(problem)
                yield Taken(files, day=one)
        if len(empty) == len(days):
            raise InputError(f"{os.fspath(source)}: there are no rows on any of {len(days):,} days")

    def replace(
        self,
        source: Any,
        *,
        batch: str | None = None,
        number: int | None = None,
        day: str | None = None,
        wait: float = WAIT,
        **options: Any,
    ) -> Taken:
        """Put a log in the place of a batch, or of all batches of a day, in one commit.

        The new batch has the name and the day of the old one. What was replaced stays known and does not come back.

        Parameters
        ----------
        source : the log, as ``ingest`` takes it.
        batch : the name of the batch that is replaced.
        number : the number of the batch that is replaced.
        day : the day whose batches are replaced.
        wait : seconds to wait for another writer.
        **options : options of ``read``; where none are given the log is read as the old batch was.

        Errors: as ``ingest``; InputError: no such batch, a log that another batch holds.
        """
        which = replace(_which(batch, number, day), ways=("batch", "number", "day"))
        with told(self.path):
            old = which.of(read_catalogue(self.path), str(self.path))
            if not any(options.get(name) for name in READ_AS if name not in ("clicks", "on_error")):
                options = {**options, **_read_as(old)}
            return Intake(
                self.path, source, None, options, grown=True, again="", known=None, wait=wait, day=day, instead=which
            ).run()  # fmt: skip

    def remove(
        self,
        *,
        batch: str | Sequence[str] = (),
        number: int | Sequence[int] = (),
        day: str | Sequence[str] = (),
        before: str | None = None,
        wait: float = WAIT,
    ) -> tuple[Ingestion, ...]:
        """Take batches out, by names, numbers or days, or all of days before one, in one commit; return them.

        Their files stay known, and do not come back. What was removed before is no error, and not returned again.
        Errors (InputError): no such batch.
        """
        which = _which(batch, number, day, before)
        gone: tuple[Ingestion, ...] = ()

        def change(old: Catalogue | None) -> Changed | None:
            nonlocal gone
            there = self._there(old)
            gone = which.of(there, str(self.path), gone=True)
            return Changed(without(there, gone, REMOVED)) if gone else None

        with told(self.path):
            self.info()
            commit(self.path, change, by=__version__, wait=wait)
        return gone

    def forget(
        self, *clusters: str | int, ids: str | int | Iterable[str | int] | os.PathLike[str] = (), wait: float = WAIT
    ) -> int:
        """Take out all judgments that some clusters (people) have made, or single votes by their ids, in one commit.

        Returns how many judgments that were. The segments that held them are written anew without. A salted hash of
        each label stays, or the hash of each id: whatever holds their judgments later is taken in without them.

        Parameters
        ----------
        clusters : labels of the column that the store keeps as its cluster.
        ids : ids of votes, in a store that knows votes by them; a path: a file of ids (a table with the column of the
            ids, or a text with an id in each line).
        wait : seconds to wait for another writer.

        Errors: nobody named, people and votes at once, a store that has no clusters or knows no ids, a cluster or an id
        that no judgment has; then nothing is changed.
        """
        named: Sequence[str | int] = []
        if isinstance(ids, os.PathLike):
            named = ids_in(Path(ids), self.info())
        elif ids != ():
            named = [ids] if isinstance(ids, str | int) else list(ids)
            if not named:
                raise UsageError(f"{self.path}: no vote is named to be forgotten")
        if named and clusters:
            raise UsageError(f"{self.path}: people and votes are forgotten one after the other, not in one step")
        taken = 0

        def change(old: Catalogue | None) -> Changed | None:
            nonlocal taken
            there = self._there(old)
            if named:
                changed = forgetting_votes(self.path, there, named, Settings())
            else:
                labels = labels_said(there.facts, clusters, str(self.path), ids=bool(kept_ids(there)))
                changed = forgetting(self.path, there, labels, Settings())
            taken = 0 if changed is None else there.judgments - sum(one.judgments for one in changed.catalogue.batches)
            return changed

        with told(self.path):
            self.info()
            commit(self.path, change, by=__version__, wait=wait)
        return taken

    def date(self, day: str, *, batch: str | None = None, number: int | None = None, wait: float = WAIT) -> str:
        """Say of which day a batch is; return its name. Errors: no such batch, no day, one that is not kept."""
        which, said = replace(_which(batch, number), ways=("batch", "number")), said_day(day)
        name = ""

        def change(old: Catalogue | None) -> Changed:
            nonlocal name
            there = self._there(old)
            (one,) = which.of(there, str(self.path))
            name = one.name
            if keep := there.facts.keep:
                check_kept(said, [each.day for each in there.batches if each != one and each.day], keep, name)
            batches = [replace(each, day=said) if each == one else each for each in there.batches]
            return Changed(replace(there, batches=tuple(batches)))

        with told(self.path):
            self.info()
            commit(self.path, change, by=__version__, wait=wait)
        return name

    def retain(self, keep: int | str, *, wait: float = WAIT) -> tuple[str, ...]:
        """Keep so many days, back from the newest one ("90d"; "all"); return the names of the batches taken out."""
        days, gone = days_kept(keep), tuple[str, ...]()

        def change(old: Catalogue | None) -> Changed | None:
            nonlocal gone
            there = self._there(old)
            all_dated(there.batches if days else (), str(self.path))
            new = expired(replace(there, facts=replace(there.facts, keep=days)))
            gone = tuple([one.name for one in new.removed[len(there.removed) :]])
            return None if new == there else Changed(new)

        with told(self.path):
            commit(self.path, change, by=__version__, wait=wait)
        return gone

    def _there(self, catalogue: Catalogue | None) -> Catalogue:
        if catalogue is None:
            raise InputError(f"{self.path}: there is no store")
        return catalogue

    def backup(self, path: str | os.PathLike[str], *, wait: float = WAIT) -> Copied:
        """Copy the store as it is at one moment to a new name, where it is a store; writers may go on meanwhile."""
        with told(self.path):
            return backup(self.path, Path(path), by=__version__, wait=wait)

    def restore(self, path: str | os.PathLike[str], *, wait: float = WAIT) -> Copied:
        """Put what a backup holds in the place of this store, in one commit; who is forgotten here stays forgotten."""
        with told(self.path):
            return restore(Path(path), self.path, by=__version__, wait=wait)

    def preferences(
        self,
        *,
        as_of: str | None = None,
        since: str | None = None,
        last: str | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
    ) -> Preferences:
        """Return the sum of all that was taken in, or of the batches of some days, as ``read`` has them.

        Errors (InputError): no store; a segment missing or damaged; no batch of these days.
        """
        window = Window(as_of, since, last)
        with told(self.path):
            return read_stored(self.path, Settings(memory_limit, threads), which=of_window(window, str(self.path)))[0]

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
            if not len(prefs):
                raise InputError(nothing_in(self.path, catalogue))
        with told(Path(path), "nothing was exported"):
            return export(prefs, Path(path), known_files(catalogue))


def ids_in(path: Path, catalogue: Catalogue) -> list[str]:
    """Return the ids of a file: of the column that a store has its ids from, or the lines of a text.

    Errors (InputError): no such file or column, rows without an id, none at all.
    """
    columns = {json.loads(batch.options).get("columns", {}).get("id") for batch in catalogue.batches} - {None}
    if path.suffix.lower() == ".txt":
        try:
            found = path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'no text in UTF-8'}") from None
        ids = [line.strip() for line in found if line.strip()]
    else:
        counter = open_log(locate(path), None, None, None)
        named = [column for column in sorted(columns) if column in counter.log.columns]
        if not named:
            raise InputError(
                f"{path}: no column {few(sorted(columns)) or 'of ids'}; columns there: {few(counter.log.columns)}; a "
                "list with an id in each line ends in .txt"
            )
        column = texts(counter.count_rows({"id": named[0]})[0]["id"], as_json=counter.log.as_json)
        if column.null_count:
            raise InputError(f"{path}: rows without an id in {named[0]!r}")
        ids = column.to_pylist()
    if not ids:
        raise InputError(f"{path}: there are no ids")
    return ids


def files_by_day(source: Any) -> dict[str, str | Several]:
    """Return the files of each day in a lake, as a folder that holds them alone or as a list; one that has no day: ''.

    Nothing for what is no lake.
    """
    if not isinstance(source, str | os.PathLike) or is_store(Path(source)):
        return {}
    found = dict[str, list[str]]()
    for called, file in files_of(source):
        found.setdefault(day_of(called)[0], []).append(file)
    folders = {day: _common([os.path.dirname(file) for file in files]) for day, files in found.items()}
    whole, days = not is_pattern(os.fspath(source)) and not isinstance(source, Several), dict[str, str | Several]()
    for day, files in sorted(found.items()):
        inside, named = f"{folders[day]}{os.sep}", f"{day_of(files[0])[1]}{os.sep}"
        upper = files[0][: files[0].rfind(named) + len(named)] if named in files[0] else ""
        inside = upper if upper and all(file.startswith(upper) for file in files) else inside
        others = (file for other in found if other != day for file in found[other])
        days[day] = inside if whole and not any(file.startswith(inside) for file in others) else Several(files)
    return days


def _common(folders: Sequence[str]) -> str:
    """Return the folder that holds some folders, or addresses of such."""
    scheme, mark, _ = folders[0].partition("://") if is_object(folders[0]) else ("", "", "")
    return scheme + mark + os.path.commonpath([folder.removeprefix(scheme + mark) for folder in folders])


def _which(
    batch: str | Sequence[str] | None = None,
    number: int | Sequence[int] | None = None,
    day: str | Sequence[str] | None = None,
    before: str | None = None,
) -> Which:
    def several(given: Any) -> tuple[Any, ...]:
        return () if given is None else (given,) if isinstance(given, str | int) else tuple(given)

    return Which(several(batch), several(number), several(day), before)


def _read_as(batches: Sequence[Ingestion]) -> dict[str, Any]:
    """Return the options by which all of some batches were read; nothing where they differ."""
    said = [{name: value for name, value in json.loads(one.options).items() if name in READ_AS} for one in batches]
    return said[0] if all(one == said[0] for one in said) else {}
