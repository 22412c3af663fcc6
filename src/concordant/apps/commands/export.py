"""``concordant export``: load, convert, write the model and its card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concordant.apps.commands.durations import counts_of
from concordant.apps.commands.options import ExportOptions
from concordant.apps.commands.output import put_file
from concordant.apps.commands.plans import of_card, once_counted
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, is_letor, labelled_like, names_of, read_feature_file
from concordant.apps.commands.saying import one_line
from concordant.apps.export.card import model_card
from concordant.apps.export.export import FORMATS, check_place, exported
from concordant.apps.export.terms import terms_of
from concordant.apps.models.saving import load_model
from concordant.errors import UsageError, did_you_mean
from concordant.io.read import read_log
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_judged
from concordant.preferences.preferences import Preferences
from concordant.progress import stage
from concordant.time_left import Cost

READ = ("log", "held_out", "labels", "features", "held_out_features")
"""Options of the card that name files which are read, and which no output may replace."""


def export(options: ExportOptions) -> None:
    """Write the model, the card or both; nothing is written before all of it is made."""
    _check(options)
    model = options.model
    with Progress(options.quiet, f"loading {model}", None if options.card is None else of_card(options)):
        ranker = load_model(model, unsafe_pickle=options.unsafe_load_pickle)
    made: dict[str, bytes] = {}
    if options.output is not None and options.to is not None:
        names = None if options.feature_names is None else [one.strip() for one in options.feature_names.split(",")]
        name = options.name or Path(options.output).stem
        with Progress(options.quiet, f"converting {model}"):
            terms = terms_of(ranker, query=options.of_query, names=names)
            made[options.output], notes = exported(terms, options.to, name)
        options.say_notes(notes)
    if options.card is not None:
        made[options.card] = _card(ranker, options).encode()
    for name, data in made.items():
        put_file(name, lambda temporary, data=data: Path(temporary).write_bytes(data))  # type: ignore[misc]
        options.say("wrote", f"wrote {name}: {len(data):,} bytes", path=name)


def _check(options: ExportOptions) -> None:
    """Refuse options that do not go together, and places that cannot be written, before any work."""
    output, card = options.output, options.card
    if (options.to is None) != (output is None):
        raise UsageError("--to and --output belong together: the format, and the file to write")
    if output is None and card is None:
        raise UsageError("nothing to write: give --to and --output, or --card, or all of them")
    if options.to is not None and options.to not in FORMATS:
        raise UsageError(f"--to {options.to}: unknown format; {did_you_mean(options.to, FORMATS)}")
    options.settle()
    places = {}
    for option, name in (("--output", output), ("--card", card)):
        if name is not None:
            places[option] = check_place(name, option).resolve()
            for read in READ:
                file = getattr(options, read)
                if file is not None and os.path.exists(name) and os.path.exists(file) and os.path.samefile(name, file):
                    raise UsageError(f"{option} {name} is the file of --{read.replace('_', '-')}; name another file")
    if len(set(places.values())) < len(places):
        raise UsageError(f"--output and --card both name {output}; name two files")
    for name in ("log", "held_out"):
        features = options.features or (name == "held_out" and options.held_out_features)
        if getattr(options, name) is not None and not features:
            raise UsageError(f"--{name.replace('_', '-')} needs --features: how well scores agree with the judgments")


def _card(ranker: Any, options: ExportOptions) -> str:
    """Return the card of the model with what the options bring."""
    names = names_of(ranker)

    def features(file: str | None) -> Features | None:
        if file is None:
            return None
        with Progress(options.quiet, f"reading {file}"), stage(one_line(f"reading {file}")):
            return read_feature_file(file, options, missing=ranker.missing_, names=names)

    def judgments(
        log: str | None, rows: Features | None, plan: Mapping[str, Cost] | None = None
    ) -> tuple[Preferences | None, Features | None]:
        if log is None:
            return None, rows
        with Progress(options.quiet, f"reading {log}", plan):
            reading = read_log(log, **asked_of(options))
        if reading.rejects:
            options.say("log", f"{log}: skipped: {reading.report()}")
        found = reading.preferences
        return found, rows if rows is None else labelled_like(rows, found)[0]

    whole = features(options.features)
    learned, rows = judgments(options.log, whole)
    later = None if learned is None else once_counted(of_card(options), counts_of(learned))
    held_out, held_rows = judgments(options.held_out, features(options.held_out_features) or whole, later)
    labels = None
    if options.labels is not None:
        if not is_letor(options.labels):
            raise UsageError(f"--labels {options.labels} is no LETOR file: lines such as 2 qid:7 1:0.5 2:3 # item")
        missing = "raise" if ranker.missing_ == "raise" else "keep"
        with Progress(options.quiet, f"reading {options.labels}"), stage(one_line(f"reading {options.labels}")):
            labels = read_judged(options.labels, missing=missing)
    with Progress(options.quiet, "writing the card" if learned is None or not options.audit else "auditing", later):
        return model_card(
            options.model,
            judgments=learned,
            held_out=held_out,
            features=rows,
            held_out_features=None if held_out is None else held_rows,
            labels=labels,
            audit=options.audit,
            name=options.name,
            license=options.license,
            called={
                what: Path(file).name
                for what, file in (
                    ("judgments", options.log),
                    ("held_out", options.held_out),
                    ("labels", options.labels),
                )
                if file is not None
            },
            unsafe_pickle=options.unsafe_load_pickle,
        )
