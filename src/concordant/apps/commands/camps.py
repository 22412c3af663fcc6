"""``concordant camps``: read, find camps, write; tables on a terminal, CSV into a pipe; notes go to stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from concordant.apps.commands.camps_options import CampsOptions
from concordant.apps.commands.given import worded
from concordant.apps.commands.judges import judge_column, looked_at
from concordant.apps.commands.output import check_output, print_csv, show_table, write, write_json
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, labelled_like, read_feature_file, said_of_names
from concordant.apps.commands.saying import one_line
from concordant.apps.models.directory import check_target
from concordant.apps.models.saving import save_model
from concordant.errors import UsageError, counted
from concordant.io.read import read_log
from concordant.io.store.catalogue import is_store
from concordant.learning.annotators.camps import Camps
from concordant.learning.annotators.camps import camps as found_in
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons
from concordant.preferences.unused_clusters import UNUSED

ROWS = 15
"""Items of a ranking that a terminal shows."""


def camps(options: CampsOptions) -> None:
    """Print sentences and tables on a terminal, CSV of the rankings into a pipe; notes go to stderr."""
    options.settle()
    log = options.log
    named: dict[str, str] = {}
    if options.engine == "spark":
        raise UsageError("executors of Spark find no camps; leave out --engine spark")
    for option, name in (("--output", options.output), ("--members", options.members)):
        if name is not None:
            check_output(name, log, option=option)
            if options.features is not None:
                check_output(name, options.features, "the features", option=option)
            if (other := named.setdefault(os.path.realpath(name), option)) != option:
                raise UsageError(f"{other} and {option} both name {name}; name another file")
    if options.model is not None:
        check_target(options.model)
    asked = asked_of(options)
    judge = options.judge
    if not is_store(Path(log)):
        judge = judge_column(judge, *looked_at(log, asked), log)
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked | ({} if is_store(Path(log)) else {"cluster": judge}))
        features = None if options.features is None else read_feature_file(options.features, options, missing="raise")
    prefs, told = reading.preferences, [f"skipped: {reading.report()}"] if reading.rejects else []
    told.append(f"{log}: {prefs.facts}")
    if features is not None and isinstance(prefs, Comparisons):
        features, matched = labelled_like(features, prefs)
        told += [*matched, *said_of_names(str(options.features), features.names, options)]
    with Progress(options.quiet, "looking for camps", known=prefs):
        found = found_in(
            prefs, judge, features=features, number=options.number, most=options.most,
            prior=options.prior, folds=options.folds, starts=options.starts, seed=options.seed,
        )  # fmt: skip
    told += [note for note in reading.notes if not isinstance(note, Note) or note.code != UNUSED]
    _write(options, found)
    if sys.stdout.isatty():
        for line in found.lines():
            click.echo(one_line(worded(line)))
        click.echo()
        show_table(_rounded(found.held_out_table()))
        if len(prefs.queries) == 1 or features is None:
            click.echo()
            show_table(_side_by_side(found), ROWS)
    else:
        if options.output is None:
            print_csv(found.to_arrow())
        options.say_notes(found.lines())
    options.say_notes([*told, *found.notes])


def _write(options: CampsOptions, found: Camps) -> None:
    if options.output is not None:
        if options.output.lower().endswith(".json"):
            write_json({"file": options.log} | found.to_dict(), options.output)
        else:
            write(found.to_arrow(), options.output)
        options.say("wrote", f"wrote {options.output}: {counted(found.number, 'camps')}", path=options.output)
    if options.model is not None:
        about = {"log": options.log, "features": options.features}
        save_model(found, options.model, about=about)
        options.say(
            "wrote", f"wrote {options.model}: the scorers of {counted(found.number, 'camps')}", path=options.model
        )
    if options.members is not None:
        write(found.members(), options.members)
        options.say(
            "wrote", f"wrote {options.members}: {counted(len(found.names), 'annotators')}", path=options.members
        )


def _rounded(table: pa.Table) -> pa.Table:
    rows: list[dict[str, Any]] = table.to_pylist()
    return pa.Table.from_pylist(
        [
            {
                "camps": row["camps"],
                "log-loss of held-out votes": f"{row['loss']:.4f}",
                "less than one camp": f"{row['gain']:.4f} ± {row['gain_error']:.4f}",
                "of new annotators": f"{row['new_loss']:.4f}",
                "less than one": f"{row['new_gain']:.4f} ± {row['new_gain_error']:.4f}",
            }
            for row in rows
        ]
    )


def _side_by_side(found: Camps) -> pa.Table:
    """The ranking of the largest camp, with the ranks of the others beside it."""
    rows = [row for row in found.to_arrow().to_pylist() if row["camp"] == 1]
    names = [name for name in ("query", "component", "item", "rank", "score") if rows and name in rows[0]]
    return pa.Table.from_pylist(
        [
            {name: f"{row[name]:.2f}" if name == "score" else row[name] for name in names}
            | {name: row[name] for name in row if name.startswith("rank_in_") and name != "rank_in_1"}
            for row in rows
        ]
    )
