"""``concordant axioms``: read votes and scorer, audit, say; sentences and a table on a terminal, CSV into a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pyarrow as pa

from concordant.apps.commands.axioms_options import AxiomsOptions
from concordant.apps.commands.matching import read_scores
from concordant.apps.commands.output import check_output, print_csv, show_table, write, write_json
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import asked_of, labelled_like, names_of, read_feature_file
from concordant.apps.commands.saying import one_line
from concordant.apps.models.directory import is_model
from concordant.apps.models.saving import load_model
from concordant.auditing.axioms import axiom_audit
from concordant.errors import UsageError, counted
from concordant.io.read import read_log
from concordant.learning.features.matrix import Features


def axioms(options: AxiomsOptions) -> None:
    """Print sentences and a table on a terminal, CSV into a pipe; notes go to stderr."""
    log, output, terminal = options.log, options.output, sys.stdout.isatty()
    kept = is_model(Path(options.scorer))
    options.settle(terminal=terminal, model=kept, features=options.features)
    if options.engine == "spark":
        raise UsageError("executors of Spark audit no scorer; leave out --engine spark")
    if output is not None:
        for read, what in ((log, "LOG"), (options.scorer, "SCORES"), (options.features, "the features")):
            if read is not None and not Path(read).is_dir():
                check_output(output, read, what)
    if kept and options.features is None:
        raise UsageError(f"{options.scorer} is a model: it scores items by their features; name them with --features")
    ranker = load_model(options.scorer, unsafe_pickle=options.unsafe_load_pickle) if kept else None
    told: list[str] = []
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked_of(options))
        prefs = reading.preferences
        features: Features | None = None
        if options.features is not None:
            missing = "raise" if ranker is None else ranker.missing_
            features = read_feature_file(options.features, options, missing=missing, names=names_of(ranker))
            features, more = labelled_like(features, prefs)
            told += more
        scorer = ranker if ranker is not None else read_scores(options.scorer, options.score)
    with Progress(options.quiet, "auditing", known=prefs):
        found = axiom_audit(
            prefs, scorer, features, least=options.least, refits=options.refits if kept else 0, worst=options.worst,
            level=options.level, seed=options.seed,
        )  # fmt: skip
    skipped = [f"skipped: {reading.report()}"] if reading.rejects else []
    tell(skipped if options.quiet else [*skipped, f"{log}: {prefs.facts}"])
    table = found.cases if options.cases else found.table
    if output is not None:
        if output.lower().endswith(".json"):
            write_json({"log": log, "scorer": options.scorer} | found.to_dict(), output)
        else:
            write(table, output)
        options.say("wrote", f"wrote {output}: {counted(len(table), 'rows')}", path=output)
    if terminal:
        for line in found.lines():
            click.echo(one_line(line))
        show_table(_short(table), 40)
    else:
        if output is None:
            print_csv(table)
        options.say_notes(found.lines())
    options.say_notes([*told, *reading.notes, *(note for note in found.notes if note not in reading.notes)])


def _short(table: pa.Table) -> pa.Table:
    """The table of a terminal: without columns that hold nothing, numbers with one digit."""
    there = [name for name in table.column_names if table[name].null_count < len(table)]
    shown = table.select(there)
    for place, name in enumerate(there):
        if pa.types.is_floating(shown[name].type):
            texts = [
                "–" if one is None else f"{one:.2g}" if name == "p_value" else f"{one:.1f}"
                for one in shown[name].to_pylist()
            ]
            shown = shown.set_column(place, name, pa.array(texts))
    return shown
