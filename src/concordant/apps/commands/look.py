"""``concordant look``: read, look, say; a table and sentences on a terminal, CSV into a pipe."""

from __future__ import annotations

import sys

import click
import pyarrow as pa

from concordant.apps.commands.given import worded
from concordant.apps.commands.look_options import LookOptions
from concordant.apps.commands.output import check_output, print_csv, show_table, write, write_json, write_text
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.saying import one_line
from concordant.auditing.looking import JUDGES
from concordant.auditing.looking import look as looked
from concordant.errors import counted
from concordant.io.read import read_log
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import UNUSED

SHOWN = 5
"""Pairs to ask that are said; all are in the file."""


def look(options: LookOptions) -> None:
    """Print a table and sentences on a terminal, CSV into a pipe; notes go to stderr."""
    log, output, terminal = options.log, options.output, sys.stdout.isatty()
    options.settle(terminal=terminal)
    if output is not None:
        check_output(output, log)
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked_of(options))
    prefs = reading.preferences
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    tell(told if options.quiet else [*told, f"{log}: {prefs.facts}"])
    with Progress(options.quiet, "looking", known=prefs):
        found = looked(prefs, top=options.top, level=options.level, direct=options.direct)
        table = found.to_arrow(ranks=options.ranks)
        ask = found.ask(options.ask) if options.ask else None
    lines = [*found.lines(ranks=options.ranks), *_to_ask(ask, options.top, len(found.batch))]
    if output is not None:
        if output.lower().endswith(".json"):
            first, ranks = found.to_arrow(), found.to_arrow(ranks=True)
            for name in ("rank_lower", "rank_upper"):
                first = first.append_column(name, ranks[name])
            asked = {"file": log, "top": options.top, "level": options.level, "direct": options.direct}
            said = {"settled": found.settled.tolist(), "items": first.to_pylist()}
            write_json(asked | said | {"ask": [] if ask is None else ask.to_pylist()}, output)
        elif output.lower().endswith(".md"):
            write_text(found.to_markdown(worded, ranks=options.ranks), output)
        else:
            write(table, output)
        options.say("wrote", f"wrote {output}: {counted(len(table), 'items')}", path=output)
    if terminal:
        show_table(table if len(found.batch) > 1 else table.drop_columns("query"), options.rows)
        for line in lines:
            click.echo(one_line(line))
    else:
        if output is None:
            print_csv(table)
        options.say_notes(lines)
    judges = any(isinstance(note, Note) and note.code == UNUSED for note in reading.notes)
    options.say_notes(note for note in reading.notes if not isinstance(note, Note) or note.code != UNUSED)
    options.say_notes([JUDGES] if judges and not found.notes else found.notes)


def _to_ask(ask: pa.Table | None, top: int, queries: int) -> list[str]:
    """The first pairs to ask, in a sentence."""
    if ask is None or not len(ask):
        return []
    query = ask["query"][0].as_py()
    rows = [row for row in ask.to_pylist() if row["query"] == query]
    pairs = [f"{counted(row['votes'], 'votes')} {row['first']} against {row['second']}" for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        pairs.append(f"{counted(len(rows) - SHOWN, 'more pairs')} in a .json file")
    where = "" if queries == 1 else f", such as in query {query}"
    what = "the first place" if top == 1 else f"the first {top}"
    return [f"Ask next, to settle {what}{where}: {'; '.join(pairs)}."]
