"""``concordant report``: read, look into all of it, write one page."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from concordant.apps.commands.judges import put_together
from concordant.apps.commands.matching import read_scores
from concordant.apps.commands.output import check_output, put_file
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import (
    asked_of,
    check_grades,
    labelled_like,
    names_of,
    read_feature_file,
    said_of_names,
)
from concordant.apps.commands.report_options import ReportOptions
from concordant.apps.models.saving import load_model
from concordant.apps.report.annotators import groups_of
from concordant.apps.report.report import Report
from concordant.apps.report.report import report as make_report
from concordant.io.log.formats import ENDINGS
from concordant.io.read import read_log
from concordant.preferences.preferences import Preferences
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import stage
from concordant.ranking.structures import structure

PAGES = (".html", ".htm")
UNSAID = ("output", "quiet")
"""Options that do not change what the page shows."""


def report(options: ReportOptions) -> None:
    """Read, make the report, write the page; notes and progress go to stderr."""
    log, output = options.log, options.output
    read: tuple[tuple[str | None, str], ...] = (
        (log, "the log"), (options.features, "the file of features"), (options.model, "the model"),
        (options.scores, "the file of scores"),
    )  # fmt: skip
    read += tuple((name, "what a judge model decided") for name in options.model_judge)
    for name, what in read:
        check_output(output, name, what, endings=PAGES)
    member = structure(options.structure)  # a wrong name should not cost the reading of a large log
    options.settle(forgets="covariates" not in member.options)
    model = None
    if options.model is not None:
        model = load_model(options.model, unsafe_pickle=options.unsafe_load_pickle)
    asked: dict[str, Any] = {
        "column": options.group or next(iter(options.cluster), None),
        "title": options.title,
        "command": _as_written(click.get_current_context()),
        "structure": options.structure,
        "prior": options.prior,
        "ties": options.ties,
        "interval": options.interval,
        "level": options.level,
        "min_judgments": options.min_judgments,
        "replicates": options.replicates,
        "ask": options.ask,
        "audit": options.audit,
        "seed": options.seed,
    }
    made, notes = _on_spark(options, asked) or _here(options, asked, model)
    options.say_notes((*one_cluster(notes), *made.data["left_out"]))
    options.say("log", f"wrote {output}: {Path(output).stat().st_size / 1e6:.1f} MB, one file; open it in a browser")


def _on_spark(options: ReportOptions, asked: Mapping[str, Any]) -> tuple[Report, Iterable[str]] | None:
    """Write the report of a log of many rows, made by a task, unless there is something beside the log, which is here.

    Returns it and the notes of the log.
    """
    beside = (options.features, options.model, options.scores, options.group, *options.model_judge)
    if options.engine != "spark" or any(one is not None for one in beside):
        return None
    from concordant.apps.commands import on_spark

    if (found := on_spark.report(options, asked)) is not None:
        with Progress(options.quiet, "writing the page"):
            _write(found[0], options.output)
    return found


def _here(options: ReportOptions, asked: Mapping[str, Any], model: Any) -> tuple[Report, Iterable[str]]:
    log, quiet = options.log, options.quiet
    with Progress(quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked_of(options))
        check_grades(options, reading.roles, reading.name)
        prefs = reading.preferences
        told = [f"skipped: {reading.report()}"] if reading.rejects else []
        annotators = None
        if options.group is not None and (options.group,) != options.cluster:
            annotators = groups_of(read_log(log, **asked_of(options, cluster=options.group)).preferences)
        features, said = _features(options, model, prefs)
        scores = None if options.scores is None else read_scores(options.scores)
    judges = {_stem(name): put_together(options, name)[1] for name in options.model_judge}
    told += [] if quiet else [f"{log}: {prefs.facts}", *said]
    beside = {"features": features, "model": model, "scores": scores, "annotators": annotators}
    titled = asked["title"] if asked["title"] is not None else reading.name
    with Progress(quiet, "making the report", known=prefs):
        made = make_report(prefs, **beside, model_judges=judges or None, **{**asked, "title": titled})
        with stage("writing the page"):
            _write(made, options.output)
    tell(told)
    return made, prefs.notes


def _write(made: Report, output: str) -> None:
    text = made.html.encode()
    put_file(output, lambda temporary: Path(temporary).write_bytes(text))


def _stem(name: str) -> str:
    """The name of a file without its folder and endings: gpt-4.jsonl.gz is gpt-4."""
    path = Path(name)
    while path.suffix in (".gz", *ENDINGS):
        path = path.with_suffix("")
    return path.name


def _features(options: ReportOptions, model: Any, prefs: Preferences) -> tuple[Any, list[str]]:
    if options.features is None:
        return None, []
    names = names_of(model)
    missing = "keep" if model is None else str(getattr(model, "missing_", "raise"))
    features = read_feature_file(options.features, options, missing=missing, names=names)
    features, said = labelled_like(features, prefs)
    return features, said + ([] if names else said_of_names(options.features, features.names, options))


def _as_written(ctx: click.Context) -> str:
    """Return the command that makes the page again, with the options that were given, in their order."""
    log = ctx.params["log"]
    names = [os.fspath(name) for name in getattr(log, "names", (log,))]
    words = ["concordant", str(ctx.info_name), *(f"./{name}" if name.startswith("-") else name for name in names)]
    known = {str(one.name): one for one in ctx.command.params if isinstance(one, click.Option)}
    for name, value in ctx.params.items():
        if name in UNSAID or name not in known or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        option = known[name]
        if option.is_flag:
            words.append(option.opts[0] if value or not option.secondary_opts else option.secondary_opts[0])
        else:
            for one in value if option.multiple else (value,):
                words += [max(option.opts, key=len), str(one)]
    return shlex.join([*words, "-o", "report.html"])
