"""What ``concordant audit`` does once its arguments are known: read, audit, write, show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pyarrow as pa

from concordant.auditing.audit import audit
from concordant.commands.audit_tables import show_audit
from concordant.commands.given import Given
from concordant.commands.output import as_csv, check_output, one_line, plain, write, write_json
from concordant.commands.progress import Progress, tell
from concordant.commands.reading_log import read_given_log
from concordant.commands.saying import say
from concordant.errors import UsageError
from concordant.structures.registry import structure
from concordant.surrogates.choosing import choose

__all__ = ["run_audit"]


def run_audit(log: str, given: Given) -> None:
    """Read, audit, write; a table and the summary on a terminal, CSV into a pipe with the summary on stderr."""
    quiet, output = given["quiet"], given["output"]
    terminal = sys.stdout.isatty()
    given.settle(terminal=terminal, shown=terminal or (output is not None and output.lower().endswith(".json")))
    if output is not None:
        check_output(output, log)
    if given["edges"] is not None:
        check_output(given["edges"], log, option="--edges")
        if not given["replicates"]:
            raise UsageError("--edges says how sure each preference is; it needs --replicates above 0")
        if output is not None and Path(output).resolve() == Path(given["edges"]).resolve():
            raise UsageError(f"--output and --edges both name {output}; name two files")
    names = given["surrogates"] or None
    choose(names)  # a wrong name should not cost the reading of a large log
    if given["structure"] is not None:
        structure(given["structure"])
    with Progress(quiet, f"reading {log}"):
        reading = read_given_log(log, given, given["cluster"])
    if reading.rejects:
        tell([f"skipped: {reading.report()}"])
    if not quiet:
        for note in reading.notes:
            say("note", note)
    prefs = reading.preferences.pool() if given["pool"] else reading.preferences
    with Progress(quiet, "auditing"):
        found = audit(
            prefs,
            surrogates=names,
            **{name: given[name] for name in ("ties", "exact", "time_limit", "structure", "order", "replicates")},
            **{name: given[name] for name in ("level", "top", "ask", "seed")},
        )
    if output is not None:
        if output.lower().endswith(".json"):
            write_json({"file": log} | found.to_dict(), output)
        else:
            write(_flat(found.to_arrow()), output)
        if not quiet:
            number = f"{len(found.queries):,} {'query' if len(found.queries) == 1 else 'queries'}"
            say("wrote", f"wrote {output}: {number}", path=output)
    if found.edges is not None and given["edges"] is not None:
        write(found.edges, given["edges"])
        if not quiet:
            say("wrote", f"wrote {given['edges']}: {len(found.edges):,} preferences", path=given["edges"])
    if sys.stdout.isatty():
        show_audit(found, given["rows"])
    elif output is None:
        sys.stdout.buffer.write(as_csv(_flat(found.to_arrow())))
        sys.stdout.buffer.flush()
    if not quiet or sys.stdout.isatty():
        for line in found.summary:
            if sys.stdout.isatty():
                click.echo(one_line(line))
            else:
                say("summary", line)
    if not quiet:
        for note in found.notes:
            say("note", note)


def _flat(table: pa.Table) -> pa.Table:
    """Lists of labels as JSON texts: rows of CSV have no lists."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_list(table[name].type):
            texts = [None if x is None else json.dumps(plain(x), ensure_ascii=False) for x in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table
