"""``concordant ingest``: one log after the other, each as a whole."""

from __future__ import annotations

from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, one_cluster
from concordant.apps.commands.store_options import IngestOptions
from concordant.errors import counted, few
from concordant.io.ingest import Store
from concordant.io.intake import Taken

MANY = 1_000_000
"""Rows from which on their number in a second says something."""


def ingest(options: IngestOptions) -> None:
    """Take the logs in; after each a line on stderr says that it is in the store, or was."""
    options.settle()
    store, logs, reading = Store(options.store), options.logs, asked_of(options)
    del reading["unranked"], reading["pool"]  # a store keeps rankings and queries as they were made
    reading |= {"grown": options.grown, "again": options.again, "known": options.known, "wait": options.wait}
    for number, log in enumerate(logs, 1):
        place = f" ({number:,} of {len(logs):,})" if len(logs) > 1 else ""
        with Progress(options.quiet, f"taking in {log}{place}"):
            taken = store.ingest(log, **reading)
        for line in _said(taken):
            options.say("ingested", line)
        options.say_notes(one_cluster(taken.notes))


def _said(taken: Taken) -> list[str]:
    lines = [f"skipped: {taken.skipped}"] if taken.skipped else []
    if taken.new:
        took = f"{counted(taken.rows, 'rows')} in {taken.seconds:.1f} s"
        if taken.rows >= MANY:
            took += f" ({taken.rows / taken.seconds:,.0f} rows/s)"
        lines.append(f"{taken.name}: taken in, {took}: {taken.facts}")
        if taken.exported is not None:
            missing = taken.exported - taken.judgments
            gone = f"{counted(missing, 'judgments')} of the {taken.exported:,} exported left out; " if missing else ""
            lines.append(f"{taken.name}: the export of a store: {gone}{counted(taken.carried, 'files')} stay known")
        if taken.known:
            lines.append(f"{taken.name}: left out, known already: {few(taken.known)}")
    else:
        what = taken.known[0] if len(taken.known) == 1 else taken.name
        lines.append(f"{what}: known already, nothing taken in")
    return lines
