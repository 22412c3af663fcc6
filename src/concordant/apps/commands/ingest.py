"""``concordant ingest``: one log after the other, each as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from itertools import count
from typing import Any

from concordant.apps.commands.durations import ingesting
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.saying import one_line
from concordant.apps.commands.store_options import IngestOptions
from concordant.errors import ConcordantError, UsageError, counted, few
from concordant.io.ingest import Store, files_by_day
from concordant.io.intake import Taken
from concordant.io.log.formats import files_of
from concordant.io.log.objects import is_object
from concordant.io.noted import READ
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import stage
from concordant.record import nothing_new
from concordant.stages import clock
from concordant.time_left import Cost

MANY = 1_000_000
"""Rows from which on their number in a second says something."""
TELLING = 1.0
"""Seconds of a part from which on it tells alone how long the others take."""
ABOUT = 1.2
"""By which factor others may take longer, or shorter, for their bytes."""


def ingest(options: IngestOptions) -> None:
    """Take the logs in; after each a line on stderr says that it is in the store, or was."""
    options.settle()
    store, logs, reading = Store(options.store), options.logs, asked_of(options)
    del reading["unranked"], reading["pool"]  # a store keeps rankings and queries as they were made
    reading |= {"grown": options.grown, "again": options.again, "known": options.known, "wait": options.wait}
    anything = False
    reading |= {"name": options.batch, "day": options.day, "keep": options.keep, "excluding": options.excluding}
    if options.batch is not None and len(logs) > 1:
        raise UsageError(f"--batch {options.batch} names one batch, and {len(logs):,} logs are given")

    what = one_line(f"taking in {logs[0] if len(logs) == 1 else counted(len(logs), 'logs')}")
    watched = Progress(options.quiet, what).shown
    days = [_sizes_of_days(log, options.day) if watched else [0.0] for log in logs]
    pace = _Pace([size for sizes in days for size in sizes])
    plan: Mapping[str, Cost] | None = ingesting(logs, pace.sizes, what)
    for number, log in enumerate(logs, 1):
        noted: set[Any] = set()
        each, of = store.ingest_days(log, **reading), len(days[number - 1])
        for place in count(1):
            with ExitStack() as inside:
                progress = Progress(options.quiet, what, plan)
                inside.enter_context(progress)
                progress.foresee(pace.left())
                if len(logs) > 1:
                    inside.enter_context(stage(one_line(f"{log} ({number:,} of {len(logs):,})")))
                elif place <= of > 1:
                    inside.enter_context(stage(f"day {place:,} of {of:,}"))
                began = clock()
                taken = next(each, None)
            plan = None  # it is that of all logs, and of all days of each
            if taken is None:
                break
            pace.over(clock() - began, taken.new)
            facts = {name: value for name, value in asdict(taken).items() if name not in ("notes", "facts")}
            for line in said(taken):
                options.say("ingested", line, new=taken.new, **facts)
            anything |= taken.new
            options.say_notes(one_cluster(_new(taken.notes, noted)))
    if not anything:
        nothing_new()


def _sizes_of_days(log: str, day: str | None) -> list[float]:
    """Bytes of the files of each day of a log, in their order; of a log that is one batch of all its files.

    What is not on this machine, or cannot be looked at, has none.
    """
    if is_object(log):
        return [0.0]
    with suppress(ConcordantError, OSError, ValueError):
        days = files_by_day(log) if day is None else {}
        parts = [[file for _, file in files_of(files)] for files in days.values()] if len(days) > 1 else []
        return [_bytes(files) for files in parts or [[file for _, file in files_of(log)] or [log]]]
    return [0.0]


def _bytes(files: Sequence[str]) -> float:
    return float(sum(os.path.getsize(file) for file in files if os.path.isfile(file)))


class _Pace:
    """How fast the parts of what is taken in (logs, or days of them) were, which tells how long the others take."""

    def __init__(self, sizes: list[float]) -> None:
        self.sizes = sizes
        """Bytes of each part, in their order."""
        self._over = self._told = 0
        self._seconds = self._bytes = 0.0

    def over(self, seconds: float, new: bool) -> None:
        """Take note of a part that is over; one that is in the store already says nothing of others."""
        if new and self._over < len(self.sizes):
            self._told += 1
            self._seconds, self._bytes = self._seconds + seconds, self._bytes + self.sizes[self._over]
        self._over += 1

    def left(self) -> tuple[float, float] | None:
        """The least and the most seconds that may be left; None before two parts are over, or one that took long."""
        if not self._bytes or (self._told == 1 and self._seconds < TELLING):
            return None
        rest = self._seconds / self._bytes * sum(self.sizes[self._over :])
        return rest / ABOUT, rest * ABOUT


def _new(notes: Iterable[str], noted: set[Any]) -> Iterator[str]:
    """Yield the notes that were not said of another day of the log; not those on rows, which stand in its line."""
    for note in notes:
        key: Any = note
        if isinstance(note, Note):
            key = (note.code, *[str(value) for name, value in note.numbers.items() if name != "log"])
        if key not in noted and getattr(note, "code", "") != READ:
            yield note
        noted.add(key)


def said(taken: Taken) -> list[str]:
    """Return what became of a log, in lines."""
    lines = [f"skipped: {taken.skipped}"] if taken.skipped else []
    if taken.new:
        took = f"{counted(taken.rows, 'rows')} in {taken.seconds:.1f} s"
        if taken.rows >= MANY:
            took += f" ({taken.rows / taken.seconds:,.0f} rows/s)"
        day = f" for {taken.day}{' (by its path)' if taken.day_from else ''}" if taken.day else ""
        place = f" in the place of {few(taken.replaced, 3)}" if taken.replaced else ""
        lines.append(f"{taken.name}: taken in{day}{place}, {took}: {taken.facts}")
        if taken.forgotten:
            lines.append(f"{taken.name}: {counted(taken.forgotten, 'judgments')} of who is forgotten left out")
        if taken.exported is not None:
            missing = taken.exported - taken.judgments
            gone = f"{counted(missing, 'judgments')} of the {taken.exported:,} exported left out; " if missing else ""
            lines.append(f"{taken.name}: the export of a store: {gone}{counted(taken.carried, 'files')} stay known")
        if taken.known:
            lines.append(f"{taken.name}: left out, known already: {few(taken.known)}")
    else:
        what = taken.known[0] if len(taken.known) == 1 else taken.name
        lines.append(f"{what}: {'known already' if taken.known else 'no rows'}, nothing taken in")
    if taken.expired:
        lines.append(f"taken out, older than what is kept: {few(taken.expired, 3)}")
    return lines
