"""``concordant ingest``: one log after the other, each as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from concordant.apps.commands.durations import ingesting
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, one_cluster
from concordant.apps.commands.saying import one_line
from concordant.apps.commands.store_options import IngestOptions
from concordant.errors import UsageError, counted, few
from concordant.io.ingest import Store
from concordant.io.intake import Taken
from concordant.io.noted import READ
from concordant.preferences.notes import Note
from concordant.record import nothing_new
from concordant.time_left import Cost

MANY = 1_000_000
"""Rows from which on their number in a second says something."""


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

    def named(at: int) -> str:
        return one_line(f"taking in {logs[at]}{f' ({at + 1:,} of {len(logs):,})' if len(logs) > 1 else ''}")

    plan: Mapping[str, Cost] | None = ingesting(logs, named)
    for number, log in enumerate(logs, 1):
        noted: set[Any] = set()
        each = store.ingest_days(log, **reading)
        while True:
            with Progress(options.quiet, named(number - 1), plan):
                taken = next(each, None)
            plan = None  # it is that of all logs, and of all days of each
            if taken is None:
                break
            facts = {name: value for name, value in asdict(taken).items() if name not in ("notes", "facts")}
            for line in said(taken):
                options.say("ingested", line, new=taken.new, **facts)
            anything |= taken.new
            options.say_notes(one_cluster(_new(taken.notes, noted)))
    if not anything:
        nothing_new()


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
