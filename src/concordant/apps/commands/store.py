"""``concordant store``: look into a store, verify it, make it smaller, write it out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.store_options import CompactOptions, InfoOptions, StoreExportOptions, StoreOptions
from concordant.errors import counted, few
from concordant.io.ingest import Store
from concordant.io.store.catalogue import Catalogue, Ingestion
from concordant.io.store.known import beside
from concordant.io.store.maintenance import check_ending
from concordant.io.store.migrations import UNKNOWN

MANY = 16
"""Segments from which on merging them is worth a word."""


def info(options: InfoOptions) -> None:
    """Show facts, or batches: a table on a terminal, CSV into a pipe, a file where one is named."""
    file, batches, output = options.file, options.batches, options.output
    if output is not None:
        check_output(output, file, "the store")
    catalogue = Store(file).info()
    table = _batches(catalogue) if batches else _facts(catalogue, grouped=output is None and sys.stdout.isatty())
    if output is not None:
        write(table, output)
    elif sys.stdout.isatty():
        wide = [name for name in ("segment", "options", "sha256") if name in table.column_names]
        show_table(table.drop_columns(wide), len(table))  # these are for files and pipes
    else:
        print_csv(table)
    if not batches and len(catalogue.segments) >= MANY:
        options.say("note", f"{len(catalogue.segments):,} segments; concordant store compact {file} merges them")


def verify(options: StoreOptions) -> None:
    """Read everything; say that all is well, and what lies about."""
    file = options.file
    with Progress(options.quiet, f"verifying {file}"):
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
    with Progress(options.quiet, f"merging {file}"):
        done = Store(file).compact(wait=options.wait, memory_limit=options.memory_limit, threads=options.threads)
    what = zip(("segments", "rows", "bytes"), (done.segments, done.rows, done.bytes), strict=True)
    said = ", ".join(f"{old:,} → {new:,} {name}" for name, (old, new) in what)
    options.say("compacted", f"{file}: {said}" if done.segments[0] > 1 else f"{file}: one segment already")


def export(options: StoreExportOptions) -> None:
    """Write a log; say how it is read again where that needs options."""
    file, output = options.file, options.output
    check_ending(Path(output))
    check_output(output, file, "the store")
    store, listed = Store(file), str(beside(Path(output)))
    check_output(listed, file, "the store")
    with Progress(options.quiet, f"writing {output}"):
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
    facts = catalogue.facts
    said: dict[str, Any] = {
        "kind": facts.kind,
        "logs": len(catalogue.batches),
        "rows of the logs": sum(batch.rows for batch in catalogue.batches),
        "judgments": catalogue.judgments,
        "segments": len(catalogue.segments),
        "rows of the segments": sum(segment.rows for segment in catalogue.segments),
        "bytes of the segments": sum(segment.bytes for segment in catalogue.segments),
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


def _batches(catalogue: Catalogue) -> pa.Table:
    """Return a row for each batch; sha256 where it was one file (or one table)."""
    signs: dict[int, list[str]] = {}
    for content in catalogue.contents:
        signs.setdefault(content.batch, []).append(content.sha256)
    columns: dict[str, list[Any]] = {
        field.name: [getattr(batch, field.name) for batch in catalogue.batches] for field in fields(Ingestion)
    }
    columns["files"] = [len(signs[batch.batch]) for batch in catalogue.batches]
    columns["sha256"] = [" ".join(signs[batch.batch]) for batch in catalogue.batches]
    return pa.table(columns)
