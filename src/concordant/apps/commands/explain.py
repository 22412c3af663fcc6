"""``concordant explain``: read, fit, coefficients as a table; notes go to stderr."""

from __future__ import annotations

import os
import sys

import click
import numpy as np

from concordant.apps.commands.explain_options import ExplainOptions
from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, labelled_like, read_feature_file, said_of_names
from concordant.errors import UsageError
from concordant.io.read import read_log
from concordant.preferences.preferences import Comparisons
from concordant.ranking.explaining import explain as explanation


def explain(options: ExplainOptions) -> None:
    """Print a table on a terminal, CSV into a pipe; notes go to stderr."""
    options.settle(terminal=sys.stdout.isatty())
    if options.features is None:
        raise click.UsageError("Missing option '--features' / '-f'.")
    if options.engine == "spark":
        raise UsageError("executors of Spark explain nothing; leave out --engine spark")
    for name, option in ((options.output, "--output"), (options.abilities, "--abilities")):
        if name is not None:
            check_output(name, options.log, option=option)
            check_output(name, options.features, "the features", option=option)
    if options.output and options.abilities and os.path.realpath(options.output) == os.path.realpath(options.abilities):
        raise UsageError(f"--output and --abilities both name {options.output}; name another file")
    with Progress(options.quiet, f"reading {options.log}", plan_of(options)):
        reading = read_log(options.log, **asked_of(options))
        features = read_feature_file(options.features, options, missing="keep")
    prefs = reading.preferences
    matched: list[str] = []
    if isinstance(prefs, Comparisons):
        features, matched = labelled_like(features, prefs)
    if features.query is not None:
        raise UsageError(f"{options.features}: properties of items hold in every query; this has a column of queries")
    features.refuse_special("an explanation")
    columns = {name: np.asarray(features.X[:, at], np.float64) for at, name in enumerate(features.names)}
    label = next(name for name in ("item", *(f"item {at}" for at in range(len(columns) + 1))) if name not in columns)
    table = {label: features.items.take(features.item), **columns}
    with Progress(options.quiet, "explaining", known=prefs):
        found = explanation(
            prefs, table, item=label, effects=options.effects, spread=options.spread, level=options.level
        )
    if options.output is not None:
        write(found.coefficients, options.output)
        options.say("wrote", f"wrote {options.output}: {len(found.coefficients):,} coefficients", path=options.output)
    elif sys.stdout.isatty():
        show_table(found.coefficients, len(found.coefficients))
    else:
        print_csv(found.coefficients)
    if options.abilities is not None:
        write(found.items if len(prefs.queries) > 1 else found.items.drop_columns("query"), options.abilities)
        options.say("wrote", f"wrote {options.abilities}: {len(found.items):,} rows", path=options.abilities)
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    told += [
        f"{options.log}: {prefs.facts}",
        *reading.notes,
        *matched,
        *said_of_names(options.features, features.names, options),
    ]
    share = f"the properties explain {found.explained:.0%} of the variance of the abilities"
    options.say_notes([*told, *found.notes, *([share] if options.effects == "random" else [])])
