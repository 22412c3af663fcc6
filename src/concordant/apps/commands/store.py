"""``concordant store``: look into a store, take out of it, replace in it, forget; verify, compact, copy, write out."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from concordant.apps.commands.durations import ingesting, moving
from concordant.apps.commands.ingest import said
from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.store_options import (
    BackupOptions,
    BatchesOptions,
    CompactOptions,
    DayOptions,
    ForgetOptions,
    InfoOptions,
    RemoveOptions,
    ReplaceOptions,
    RestoreOptions,
    StoreExportOptions,
    StoreOptions,
)
from concordant.errors import counted, few
from concordant.io.ingest import Store, ids_in
from concordant.io.store.catalogue import Catalogue, Ingestion, Removed, forgotten_votes
from concordant.io.store.copies import Copied
from concordant.io.store.known import beside
from concordant.io.store.maintenance import check_ending
from concordant.io.store.migrations import UNKNOWN

FIRST = dict.fromkeys(("batch", "name", "day", "rows", "judgments", "forgotten", "taken"))
"""The first columns of the table of batches."""
NUMBERS = ("batch", "rows", "judgments", "forgotten", "files")
MANY = 16
"""Segments from which on merging them is worth a word."""


def info(options: InfoOptions) -> None:
    """Show facts, or batches: a table on a terminal, CSV into a pipe, a file where one is named."""
    file, batches, output = options.file, options.batches, options.output
    if output is not None:
        check_output(output, file, "the store")
    catalogue = Store(file).info()
    table = (
        _batches(catalogue, gone=False)
        if batches
        else _facts(catalogue, grouped=output is None and sys.stdout.isatty())
    )
    if output is not None:
        write(table, output)
    elif sys.stdout.isatty():
        wide = [name for name in ("segment", "options", "sha256") if name in table.column_names]
        show_table(table.drop_columns(wide), len(table))  # these are for files and pipes
    else:
        print_csv(table)
    if not batches and len(catalogue.readable) >= MANY:
        options.say("note", f"{len(catalogue.readable):,} segments; concordant store compact {file} merges them")


def batches(options: BatchesOptions) -> None:
    """List batches: a table on a terminal, CSV into a pipe, JSON where it is asked for, a file where one is named."""
    file, output = options.file, options.output
    if output is not None:
        check_output(output, file, "the store")
    table = _batches(Store(file).info(), gone=options.all)
    if output is not None:
        write(table, output)
    if options.json:
        rows = [row | {"options": json.loads(row["options"])} for row in table.to_pylist()]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    elif output is None and sys.stdout.isatty():
        brief = table.drop_columns(["segment", "options", "sign", "sha256"])
        for name in {"taken", "removed"} & {*brief.column_names}:
            short = [when and when[:16].replace("T", " ") for when in brief[name].to_pylist()]
            brief = brief.set_column(brief.column_names.index(name), name, [short])
        show_table(brief, max(len(table), 1))
    elif output is None:
        print_csv(table)


def remove(options: RemoveOptions) -> None:
    """Take batches out; say which."""
    gone = Store(options.file).remove(
        batch=options.batch, number=options.number, day=options.day, before=options.before, wait=options.wait
    )
    if not gone:
        options.say("removed", f"{options.file}: taken out already, nothing changed")
        return
    judgments = counted(sum(batch.judgments for batch in gone), "judgments")
    options.say("removed", f"{options.file}: {judgments} taken out, of {few([batch.name for batch in gone], 3)}")


def replace(options: ReplaceOptions) -> None:
    """Put a log in the place of batches; say what became of it."""
    reading = asked_of(options)
    del reading["unranked"], reading["pool"]
    options.settle()
    with Progress(options.quiet, what := f"taking in {options.log}", ingesting([options.log], [0.0], what)):
        taken = Store(options.file).replace(
            options.log, batch=options.batch, number=options.number, day=options.day, wait=options.wait, **reading
        )
    for line in said(taken):
        options.say("ingested", line)
    options.say_notes(taken.notes)


def forget(options: ForgetOptions) -> None:
    """Forget people or votes; say how much that was."""
    store = Store(options.file)
    ids = [*options.id, *([] if options.ids is None else ids_in(Path(options.ids), store.info()))]
    with Progress(options.quiet, what := f"forgetting in {options.file}", moving(what, options.file, 1.75e-7)):
        taken = store.forget(*options.cluster, ids=ids or (), wait=options.wait)
    what = (
        f"{counted(taken, 'judgments')} forgotten"
        if taken
        else "no judgment of theirs is there any more; they stay out"
    )
    options.say("forgotten", f"{options.file}: {what}", judgments=taken)


def day(options: DayOptions) -> None:
    """Say of which day a batch is."""
    name = Store(options.file).date(options.day, batch=options.batch, number=options.number, wait=options.wait)
    options.say("dated", f"{options.file}: {name} is of {options.day}")


def backup(options: BackupOptions) -> None:
    """Copy a store; say what the copy holds."""
    with Progress(options.quiet, what := f"copying {options.file}", moving(what, options.file, 2e-9)):
        made = Store(options.file).backup(options.copy, wait=options.wait)
    options.say("wrote", f"wrote {options.copy}: {_copied(made)}", path=options.copy)


def restore(options: RestoreOptions) -> None:
    """Put a copy in the place of a store; say what it holds."""
    with Progress(options.quiet, what := f"copying {options.copy}", moving(what, options.copy, 2e-9)):
        made = Store(options.file).restore(options.copy, wait=options.wait)
    options.say("restored", f"{options.file}: {_copied(made)}")
    if made.forgotten:
        options.say("note", f"{counted(made.forgotten, 'judgments')} of who was forgotten since are left out")
    if made.fresh:
        text = "no store was there, so who was forgotten after the copy was made is in it again: forget them again"
        options.say("note", text)


def _copied(made: Copied) -> str:
    held = f"{counted(made.judgments, 'judgments')} of {counted(made.batches, 'logs')}"
    return f"{held}, as at revision {made.revision:,}, in {counted(made.files, 'files')}, {made.bytes:,} bytes"


def verify(options: StoreOptions) -> None:
    """Read everything; say that all is well, and what lies about."""
    file = options.file
    with Progress(options.quiet, what := f"verifying {file}", moving(what, file, 1.1e-7)):
        found = Store(file).verify()
    size = f"{counted(found.segments, 'segments')}, {found.bytes:,} bytes"
    held = f"{counted(found.judgments, 'judgments')} of {counted(found.batches, 'logs')}"
    options.say("verified", f"{file}: all is as it was written: {held} in {size}")
    if found.leftovers:
        options.say(
            "note", f"harmless leftovers of a stopped writer, which the next one removes: {few(found.leftovers)}"
        )


def compact(options: CompactOptions) -> None:
    """Merge segments; say what that made of them."""
    file = options.file
    with Progress(options.quiet, work := f"merging {file}", moving(work, file, 1.5e-7)):
        done = Store(file).compact(wait=options.wait, memory_limit=options.memory_limit, threads=options.threads)
    what = zip(("segments", "rows", "bytes"), (done.segments, done.rows, done.bytes), strict=True)
    said = ", ".join(f"{old:,} → {new:,} {name}" for name, (old, new) in what)
    one = "one segment already" if done.segments[0] else "there is nothing to merge"
    options.say("compacted", f"{file}: {said}" if done.segments[0] > 1 else f"{file}: {one}")


def export(options: StoreExportOptions) -> None:
    """Write a log; say how it is read again where that needs options."""
    file, output = options.file, options.output
    check_ending(Path(output))
    check_output(output, file, "the store")
    store, listed = Store(file), str(beside(Path(output)))
    check_output(listed, file, "the store")
    each = 1.4e-7 if output.lower().endswith(".parquet") else 2e-7
    with Progress(options.quiet, what := f"writing {output}", moving(what, file, each)):
        left_out = store.export(output)
    facts = store.info().facts
    asked = [] if facts.clusters is None else ["--cluster cluster"]
    asked += [f"--covariate {shlex.quote(name)}" for name in facts.covariates]
    how = f"; read it with {' '.join(asked)}" if asked else ""
    options.say("wrote", f"wrote {output}{how}", path=output)
    options.say("wrote", f"wrote {listed}: the files that the store knows, for ingest", path=listed)
    if left_out:
        options.say(
            "note", f"{counted(left_out, 'items')} known but in no judgment are not in it: a log has no row for them"
        )


def _facts(catalogue: Catalogue, *, grouped: bool) -> pa.Table:
    facts, days = catalogue.facts, [one.day for one in catalogue.batches if one.day]
    said: dict[str, Any] = {
        "kind": facts.kind,
        "logs": len(catalogue.batches),
        "rows of the logs": sum(batch.rows for batch in catalogue.batches),
        "judgments": catalogue.judgments,
        "days": f"{min(days)} to {max(days)}" if days else "none",
        "kept": counted(facts.keep, "days") if facts.keep else "all",
        "taken out": len(catalogue.removed),
        "forgotten": sum(bool(one.salt) for one in catalogue.forgotten),
        "forgotten votes": len(forgotten_votes(catalogue.forgotten)),
        "segments": len(catalogue.readable),
        "rows of the segments": sum(segment.rows for segment in catalogue.readable),
        "bytes of the segments": sum(segment.bytes for segment in catalogue.readable),
        "labels of items": facts.items,
        "labels of queries": facts.queries,
        "query": _column(facts.query),
        "cluster": "none" if facts.cluster is None else f"{facts.cluster} ({facts.clusters})",
        "covariates": ", ".join(facts.covariates) or "none",
        **({"home": _column(facts.home), "neutral": _column(facts.neutral)} if "home" in facts.covariates else {}),
        "created": facts.created,
        "last log": next((batch.taken for batch in reversed(catalogue.batches)), ""),  # clocks may be set back
        "written by": f"concordant {facts.by}",
        "revision": facts.revision,
    }
    shown = [f"{value:,}" if grouped and isinstance(value, int) else str(value) for value in said.values()]
    return pa.table({"fact": list(said), "value": shown})


def _column(name: str | None) -> str:
    """Return how the column of a fact is shown."""
    return {None: "none", "": "yes", UNKNOWN: "unknown (version 0.1); the next log settles it"}.get(name, name or "")


def _batches(catalogue: Catalogue, *, gone: bool) -> pa.Table:
    """Return a row for each batch, or also for those that were taken out; sha256 of each file (or table) of it."""
    shown = sorted([*catalogue.batches, *(catalogue.removed if gone else ())], key=lambda batch: batch.batch)
    signs: dict[int, list[str]] = {}
    for content in catalogue.contents:
        signs.setdefault(content.batch, []).append(content.sha256)
    columns: dict[str, list[Any]] = {
        field.name: [getattr(batch, field.name, None) for batch in shown]
        for field in fields(Removed if gone else Ingestion)
    }
    columns["files"] = [len(signs.get(batch.batch, ())) for batch in shown]
    columns["sha256"] = [" ".join(signs.get(batch.batch, ())) for batch in shown]
    types = {name: pa.int64() if name in NUMBERS else pa.string() for name in columns}
    return pa.table({name: pa.array(columns[name], types[name]) for name in FIRST | columns})
