"""``concordant tree``: read, divide, write; sentences on a terminal, CSV of the groups' rankings into a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from concordant.apps.commands.given import worded
from concordant.apps.commands.output import check_output, print_csv, put_file, write, write_json
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.saying import one_line
from concordant.apps.commands.tree_options import TreeOptions
from concordant.apps.report.tree_picture import tree_picture
from concordant.errors import Setting, UsageError, counted
from concordant.io.read import read_log
from concordant.io.store.catalogue import is_store
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import UNUSED
from concordant.ranking.trees import ranking_tree


def tree(options: TreeOptions) -> None:
    """Print the tree as sentences on a terminal, the rankings of its groups as CSV into a pipe; notes go to stderr."""
    log, output, picture, by = options.log, options.output, options.picture, options.by
    terminal = sys.stdout.isatty()
    if output is not None:
        check_output(output, log)
    if picture is not None:
        check_output(picture, log, option="--picture", endings=(".svg",))
    if both := [name for name in by if name in options.cluster]:
        raise UsageError(f"--by {both[0]} and --cluster {both[0]}: a column divides judgments, or says who judged")
    columns = {} if is_store(Path(log)) else {"cluster": (*options.cluster, *by)}
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked_of(options, **columns))
    prefs = reading.preferences
    asked = {"ties": options.ties, "prior": options.prior}
    with Progress(options.quiet, "dividing", known=prefs):
        found = ranking_tree(
            prefs, by, names=options.names, alpha=options.alpha, min_judgments=options.min_judgments,
            max_depth=options.max_depth, structure=options.structure, seed=options.seed,
            **{name: value for name, value in asked.items() if value is not None},
        )  # fmt: skip
        lines, drawn = found.lines(), None if picture is None else tree_picture(found)
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    tell(told if options.quiet else [*told, f"{log}: {prefs.facts_but(*by)}"])
    options.say_notes(_unused(note, by) for note in reading.notes)
    if output is not None:
        if output.lower().endswith(".json"):
            write_json({"file": log} | found.to_dict(), output)
        else:
            write(found.to_arrow(), output)
        options.say("wrote", f"wrote {output}: {counted(len(found.leaves), 'groups')}", path=output)
    if picture is not None and drawn is not None:
        put_file(picture, lambda name: Path(name).write_text(drawn, encoding="utf-8"), option="--picture")
        options.say("wrote", f"wrote {picture}", path=picture)
    if terminal:
        for line in lines:
            click.echo(one_line(worded(line)))
    else:
        if output is None:
            print_csv(found.to_arrow())
        options.say_notes(lines)
    options.say_notes(note for note in found.notes if note not in reading.notes)


def _unused(note: str, by: tuple[str, ...]) -> str:
    """The suggestion to name who judged, without the columns that divide."""
    if not isinstance(note, Note) or note.code != UNUSED:
        return note
    ask = note.numbers["ask"]
    asked = Setting(ask.name, tuple(name for name in ask.value if name not in by))
    return Note(note.code, note.text, items=note.items, query=note.query, **{**note.numbers, "ask": asked})
