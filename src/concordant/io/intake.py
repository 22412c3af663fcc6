"""One log on its way into a store: is it known, how is it read, does it agree with what is there."""

from __future__ import annotations

import hashlib
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
from concordant.io.log.stream import Stream
from concordant.io.log.tables import from_object
from concordant.io.read import layout_of, read_as_made
from concordant.io.store.batches import (
    OLDER,
    Which,
    counted_so,
    expired,
    forgetting_signs,
    next_number,
    refuse_rewritten,
    remembered,
    tombstones,
    without,
)
from concordant.io.store.catalogue import (
    Catalogue,
    Content,
    Facts,
    Forgotten,
    Ingestion,
    Removed,
    forgotten_votes,
    is_store,
    kept_ids,
    read_catalogue,
)
from concordant.io.store.commits import HERE, Changed, check_place, commit, confirm, now, to_write
from concordant.io.store.days import all_dated, check_kept, day_of_all
from concordant.io.store.known import MARK, KnownFiles, beside, load
from concordant.io.store.migrations import UNKNOWN
from concordant.io.store.segments import Looked, fingerprint, look, unchanged
from concordant.io.store.stored import (
    Named,
    agree,
    agree_columns,
    as_in_store,
    checked,
    covariates_of,
    facts_of,
    fits,
    kept_query,
    named_in,
    queries_of,
    settled,
    words,
)
from concordant.io.votes import Votes
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.windows import said_day

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
    day: str = ""
    """The day that the batch is of."""
    day_from: str = ""
    """What of the path named the day, where nobody said it."""
    forgotten: int = 0
    """Judgments that were left out because who made them is forgotten."""
    replaced: tuple[str, ...] = ()
    """Names of the batches that it took the place of."""
    expired: tuple[str, ...] = ()
    """Names of batches that were taken out, for they are older than what is kept."""

    @property
    def new(self) -> bool:
        """Whether anything was taken in."""
        return self.judgments > 0 or self.forgotten > 0


class Intake:
    """One log on its way into a store."""

    def __init__(
        self, path: Path, source: Any, name: str | None, options: Mapping[str, Any], *, grown: bool, again: str,
        known: str | os.PathLike[str] | None, wait: float, day: str | None = None, keep: int | None = None,
        excluding: str | os.PathLike[str] | None = None, instead: Which | None = None,
    ) -> None:  # fmt: skip
        self.path, self.options = path, options
        self.grown, self.again, self.known, self.wait = grown, again, known, wait
        self.day, self.day_from = "" if day is None else said_day(day), ""
        self.keep, self.instead, self.named = keep, instead, name is not None
        self.other = None if excluding is None else read_catalogue(Path(excluding))
        self.exported: KnownFiles | None = None
        self.number = 0
        self.prefs = source if isinstance(source, Preferences) else None
        if name is not None and not name.strip():
            raise UsageError("a batch has a name, or none is given (", Setting("batch"), ")")
        if options.get("time") is not None:
            raise UsageError("a store keeps no times, but the day of each log; leave out ", Setting("time"))
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
            self.log = locate(source, local=options.get("engine") in (None, "duckdb", "memory"), whole=True)
            name = name or os.fspath(source)
            if isinstance(self.log.table, Stream) and "id" not in (options.get("columns") or {}):
                raise UsageError(
                    f"{name}: this table changes as a whole, so a store could not tell which of its rows it has; name "
                    "the column of the ids of its votes (",
                    Setting("columns", key="id"),
                    "), or rank the table itself",
                )
        else:
            self.log = from_object(source)
        self.name = name or self.log.name
        self.called = again if again and not self.named else self.name
        """The name of the batch: of what it takes the place of, where it does."""

    def run(self) -> Taken:
        begun = time.perf_counter()
        check_place(self.path)  # what cannot be written should not cost the reading of a large log
        several = "" if self.day else self._day_of_path()
        while (taken := self._tried()) is None:
            pass  # another process wrote meanwhile: look again
        if several and taken.new:
            text = "{log}: its name holds several days ({days}), so the batch has none; say it with {ask}"
            note = Note("several days", text, log=self.name, days=several, ask=Setting("day"))
            taken = replace(taken, notes=(*taken.notes, note))
        return replace(taken, seconds=time.perf_counter() - begun)

    def _day_of_path(self) -> str:
        """Read the day off the path, that of all files of a folder; return days among which nothing chooses."""
        if not self.log.where or self.log.format == "database":
            return ""
        self.day, how = day_of_all(self.log.where, [part.where for part in self.log.parts])
        self.day_from = how if self.day else ""
        return "" if self.day else how

    def _tried(self) -> Taken | None:
        old = read_catalogue(self.path) if self.path.exists() else None
        beside = self._beside(old)
        there = self._known(old, beside)
        votes = self._votes(old, beside)
        looked = [look(part, there, grown=self.grown or votes is not None) for part in self._files()]
        there = self._known(old, beside, [file.sha256 for file in looked])
        fresh, had = self._sorted_out(looked, there, old)
        self._elsewhere(old, beside, [file.sha256 for file in looked], had)
        if looked and not fresh and (old is not None or self.other is not None):
            return Taken(self.name, known=had) if old is None or self._confirmed(old) else None
        log = self._fresh_log(fresh)
        self.exported = self._export(log, fresh)
        if votes is not None and self.exported is not None:
            votes.forgotten = forgotten_votes((*self._forgotten(old), *self.exported.forgotten))
        options = self.options if self.exported is None else self.exported.options(self.options)
        if old is not None and self.prefs is None:
            agree_columns(old.facts, options.get("cluster") is not None, covariates_of(options), self.name)
        reading = self._read(log, options, votes)
        unchanged(looked)
        if old is not None and self.prefs is None:
            reading = replace(reading, preferences=as_in_store(old.facts, reading.preferences))
        prefs = reading.preferences
        known = 0 if votes is None else votes.had + votes.left_out
        if known and not len(prefs) and old is not None and self.instead is None:
            said = f"{self.name} (all {known:,} votes, by their ids)"
            return Taken(self.name, reading.rows, known=(*had, said)) if self._confirmed(old) else None
        refuse_crossed(prefs, "a store")
        if isinstance(prefs, Comparisons) and prefs.share is not None:
            raise UsageError(f"{self.name}: a store keeps no shares of a win (outcomes between 0 and 1); read the log")
        sign = fingerprint(prefs)
        contents = [self._content(file.sha256, file.bytes, file.log.name) for file in fresh]
        if not looked:
            if votes is not None and votes.had:  # new votes of a table that has grown may well be as old ones were
                sign = hashlib.sha256(f"{sign} after {votes.had}".encode()).hexdigest()
            contents = [self._content(sign, 0, self.name)]
            there = self._known(old, beside, [sign])
            if (said := self._sorted(contents[0], there, old)) and old is not None:
                self._elsewhere(old, beside, [sign], (said,))
                return Taken(self.name, known=(said,)) if self._confirmed(old) else None
        if old is not None and votes is None and self.exported is None and (said := self._judged(old, sign)):
            return Taken(self.name, known=(*had, said)) if self._confirmed(old) else None
        self._fits_in(beside, contents)
        change = partial(self._added, reading=reading, contents=contents, seen=old, sign=sign, votes=votes)
        new = commit(self.path, change, by=__version__, wait=self.wait)
        return None if new is None else self._said(old, new, reading, had)

    def _said(self, old: Catalogue | None, new: Catalogue, reading: Reading, had: tuple[str, ...]) -> Taken:
        """Say what a commit has made of the store."""
        batch = next(one for one in (*new.batches, *new.removed) if one.batch == self.number)
        gone = new.removed[0 if old is None else len(old.removed) :]
        prefs = counted_so(reading.preferences, remembered(reading.preferences, new.forgotten))
        return Taken(
            self.name,
            reading.rows,
            batch.judgments,
            known=had,
            facts=prefs.facts if prefs.kind else "no judgments",
            skipped=reading.report(),
            notes=reading.notes,
            exported=None if self.exported is None else self.exported.judgments,
            carried=0 if self.exported is None else len(self.exported.contents),
            day=self.day,
            day_from=self.day_from,
            forgotten=batch.forgotten,
            replaced=tuple([one.name for one in gone if one.why == self._why()]),
            expired=tuple([one.name for one in gone if one.why.startswith(OLDER)]),
        )

    # -- what is there, and how long -----------------------------------------------------------------------------------
    def _why(self) -> str:
        return f"replaced by batch {self.number}"

    def _beside(self, old: Catalogue | None) -> Catalogue | None:
        """Return the catalogue without what is to be replaced. Errors: nothing is there to replace."""
        if self.instead is None:
            return old
        if old is None:
            raise InputError(f"{self.path}: there is no store")
        gone = self.instead.of(old, str(self.path))
        days = {batch.day for batch in gone}
        if (not self.day or self.day_from) and len(days) == 1 and days != {""}:
            self.day, self.day_from = days.pop(), ""
        if not self.named and len(gone) == 1:
            self.called = gone[0].name
        return without(old, gone, self._why(), ids=False)

    def _elsewhere(
        self, old: Catalogue | None, beside: Catalogue | None, signs: Sequence[str], said: Sequence[str]
    ) -> None:
        """Refuse to put in the place of a batch what another batch holds."""
        if self.instead is None or old is None or beside is None:
            return
        live = {batch.batch: batch for batch in beside.batches}
        if other := [live[one.batch] for one in old.contents if one.sha256 in signs and one.batch in live]:
            raise InputError(
                f"{said[0]}: the store has it as batch {other[0].batch} ({other[0].name}), which stays; it cannot be "
                "put in the place of another one, too"
            )

    def _known(self, old: Catalogue | None, beside: Catalogue | None, signs: Sequence[str] = ()) -> tuple[Content, ...]:
        """Return the contents that are not taken in.

        What takes the place of a batch may hold what that held, and what was taken out before, unless it is the same.
        """
        there = () if old is None or beside is None else old.contents
        if self.instead is not None and beside is not None and old is not None:
            live, stay = ({batch.batch for batch in each.batches} for each in (old, beside))
            itself = {one.sha256 for one in there if one.batch in live - stay} == set(signs)
            there = tuple([one for one in there if one.batch in (live if itself else stay)])
        dead = set() if self.other is None else {batch.batch for batch in self.other.removed}
        return (*there, *[one for one in (self.other.contents if self.other else ()) if one.batch in dead])

    def _fits_in(self, beside: Catalogue | None, contents: Sequence[Content]) -> None:
        """Refuse a name that another batch has, a file that held something else, and a day that is not kept."""
        batches = () if beside is None else beside.batches
        allowed = self.named or self.grown or self.again or self.exported or "id" in (self.options.get("columns") or {})
        if beside is not None and self.log.path is not None and not allowed:
            refuse_rewritten(beside, contents)
        same = [] if self.again else [one for one in batches if one.name == self.name]
        if self.named and same:
            raise InputError(
                f"{self.path}: batch {same[0].batch} is called {self.name!r} already, and holds something else; "
                "concordant store replace puts this in its place, or give it another name (",
                Setting("batch"),
                ")",
            )
        if keep := self._kept(beside):
            all_dated(batches, str(self.path))
            check_kept(self.day, [one.day for one in batches], keep, self.name, said=self.keep is not None)

    def _kept(self, there: Catalogue | None) -> int:
        return self.keep if self.keep is not None else 0 if there is None else there.facts.keep

    def _forgotten(self, old: Catalogue | None) -> tuple[Forgotten, ...]:
        """Return who and what is forgotten in the store, and in that which it is made anew of."""
        return tuple([person for one in (old, self.other) if one is not None for person in one.forgotten])

    def _votes(self, old: Catalogue | None, beside: Catalogue | None) -> Votes | None:
        """Return the votes that the store has by their ids, where a column of ids is named. Errors: UsageError.

        Those of a batch that is replaced may come again; those that are forgotten may not.
        """
        asked = (self.options.get("columns") or {}).get("id")
        kept = () if beside is None else kept_ids(beside)
        forgotten = forgotten_votes(self._forgotten(old))
        if asked is None:
            if kept or len(forgotten):
                knows, why = "its votes", "no vote is counted twice"
                if not kept:
                    knows, why = "votes that are forgotten", "they stay so"
                raise UsageError(
                    f"{self.path} knows {knows} by their ids; name the column of the ids of {self.name} (",
                    Setting("columns", key="id"),
                    f"), so that {why}",
                )
            return None
        if self.again:
            raise Idle("again", "votes that have an id are counted once")
        of_exports = ("exported_from" in json.loads(one.options) for one in (beside.batches if beside else ()))
        if beside is not None and len(kept_ids(replace(beside, removed=()))) + sum(of_exports) < len(beside.batches):
            raise UsageError(
                f"{self.path} took in logs without the ids of their votes, so which it has is not known; make the "
                "store anew, with ",
                Setting("columns", asked, "id"),
            )
        target = Path(os.path.realpath(self.path))
        return Votes((parquet.read_table(checked(target, one)) for one in kept), forgotten)

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
    def _sorted_out(
        self, looked: Sequence[Looked], there: Sequence[Content], old: Catalogue | None
    ) -> tuple[list[Looked], tuple[str, ...]]:
        """Return the files that are new, each content once, and what is said of the others."""
        fresh: dict[str, Looked] = {}
        had = []
        for file in looked:
            content = self._content(file.sha256, file.bytes, file.log.name)
            if said := self._sorted(content, there, old, file.log):
                had.append(said)
            elif file.sha256 in fresh:
                had.append(f"{file.log.name} (the same as {fresh[file.sha256].log.name})")
            else:
                fresh[file.sha256] = file
        return list(fresh.values()), tuple(had)

    def _sorted(self, content: Content, there: Sequence[Content], old: Catalogue | None, log: Log | None = None) -> str:
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
        live = () if old is None else [batch.batch for batch in old.batches]
        if dead := [one for one in same if one.batch not in live]:
            return said + self._taken_out(dead[0], old) if len(dead) == len(same) else said
        return said if log is None else said + self._read_alike(log, content, same[0])

    def _taken_out(self, content: Content, old: Catalogue | None) -> str:
        """Say when and why a content was taken out."""
        for catalogue in [one for one in (old, self.other) if one is not None]:
            for batch in catalogue.removed:
                if batch.batch == content.batch and content in catalogue.contents:
                    return f" (taken out on {batch.removed[:10]}: {batch.why})"
        return ""

    def _judged(self, old: Catalogue, sign: str) -> str:
        """Return what is said of a log whose judgments the store has, from other bytes; nothing of any other.

        Logs that are of different days may well hold the same judgments.
        """
        others: Sequence[Ingestion] = (*old.batches, *old.removed)
        if self.instead is not None:  # a part of several batches is no batch; what was taken out may come again
            gone = self.instead.of(old, str(self.path))
            others = old.batches if len(gone) == 1 else [batch for batch in old.batches if batch not in gone]
        for batch in others:
            if batch.sign == sign and not self.again and (batch.day == self.day or not batch.day or not self.day):
                out = f", taken out on {batch.removed[:10]}: {batch.why}" if isinstance(batch, Removed) else ""
                return f"{self.name} (the judgments of {batch.name}, packed or ordered otherwise{out})"
        return ""

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
        self,
        old: Catalogue | None,
        reading: Reading,
        contents: Sequence[Content],
        seen: Catalogue | None,
        sign: str,
        votes: Votes | None,
    ) -> Changed | None:
        """Return the catalogue with one more batch, or None where some of it is there already.

        ``seen``: the catalogue by which the ids of votes were known.
        """
        then, now_ = [one and (one.contents, one.forgotten, one.batches) for one in (seen, old)]
        if votes is not None and then != now_:
            return None  # another log came in meanwhile, perhaps with votes of this one, or some were forgotten
        if old is not None and votes is None and self.exported is None and self._judged(old, sign):
            return None  # or with the same ones, in other bytes
        prefs, named = reading.preferences, self._named(reading)
        carried: Sequence[Content] = () if self.exported is None else self.exported.contents
        if self.exported is not None:
            agree(self.exported.facts, prefs, named, f"{self.name} (the export of a store)")
        facts = facts_of(prefs, named) if old is None else self._facts(old)
        agree(facts, prefs, named, self.name)
        old = Catalogue(facts) if old is None else replace(old, facts=settled(facts, named))
        self.number = next_number(old) if self.other is None else next_number(tombstones(old, self.other))
        base = self._beside(old) or old
        keys = {(content.sha256, content.again) for content in contents}
        if self.instead is not None:  # what is put in the place of a batch may have been taken out before
            dead = {batch.batch for batch in base.removed}
            left = [one for one in base.contents if one.batch not in dead or (one.sha256, one.again) not in keys]
            base = replace(base, contents=tuple(left))
        if self.other is not None:
            base = tombstones(base, self.other)
        changed = self._forgetting(base)
        base = changed.catalogue
        if keys & {(content.sha256, content.again) for content in base.contents}:
            return None
        self._fits_in(base, contents)
        fits(base, prefs, carried, self.name)
        how: dict[str, Any] = json.loads(contents[0].options)
        how |= {"again": self.again} if self.again else {}
        if self.exported is not None:
            how |= {"exported_from": self.exported.mark, "exported": self.exported.judgments}
        stays = remembered(prefs, base.forgotten)
        kept = counted_so(prefs, stays)
        batch = Ingestion(
            self.number,
            self.called,
            reading.rows,
            len(kept),
            HERE,
            now(),
            json.dumps(how, ensure_ascii=False),
            self.day,
            sign,
            len(prefs) - len(kept),
        )
        added = [replace(content, batch=self.number) for content in (*contents, *carried)]
        new = replace(
            base,
            facts=replace(base.facts, keep=self._kept(base)),
            batches=(*base.batches, batch),
            contents=(*base.contents, *added),
            segments=(*base.segments, to_write()),
        )
        ids = {} if votes is None or votes.new is None else {self.number: lambda: votes.table(stays)}
        return Changed(expired(new), {**changed.made, HERE: lambda: kept}, ids={**changed.ids, **ids})

    def _forgetting(self, base: Catalogue) -> Changed:
        """Return the catalogue without who and what is forgotten in another store that this one takes the place of."""
        known = {(one.salt, one.sign) for one in base.forgotten}
        others = [one.forgotten for one in (self.other, self.exported) if one is not None]
        signs = dict.fromkeys(replace(one, judgments=0) for them in others for one in them)
        fresh = [one for one in signs if (one.salt, one.sign) not in known]
        if self.other is not None and any(one.salt for one in fresh) and base.facts.cluster != self.other.facts.cluster:
            raise UsageError(
                f"people are forgotten in the store in whose place this one is made, by {self.other.facts.cluster!r}; "
                "keep that column, so that they stay so (",
                Setting("cluster", self.other.facts.cluster),
                ")",
            )
        settings = Settings(self.options.get("memory_limit"), self.options.get("threads"))
        return forgetting_signs(Path(os.path.realpath(self.path)), base, fresh, settings)

    def _facts(self, old: Catalogue) -> Facts:
        """Return the facts of a store; whether it has queries is read off it where version 0.1 did not say so."""
        if old.facts.query != UNKNOWN:
            return old.facts
        target = Path(os.path.realpath(self.path))
        queries = queries_of([checked(target, segment) for segment in old.segments])
        return replace(old.facts, query=kept_query(queries, str(self.path)))
