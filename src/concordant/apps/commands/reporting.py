"""What ``concordant report`` does once its arguments are known: read, look into all of it, write one page."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from concordant.apps.commands.given import Given, say_note
from concordant.apps.commands.output import check_output, put_file
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import labelled_like, read_feature_file, read_given_log, said_of_names
from concordant.apps.commands.saying import say
from concordant.apps.models.saving import load_model
from concordant.apps.report.annotators import groups_of
from concordant.apps.report.report import report
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import structure

__all__ = ["run_report"]


PAGES = (".html", ".htm")
UNSAID = ("output", "quiet", "log_format")
"""Options that do not change what the page shows."""


def run_report(log: str, given: Given) -> None:
    """Read, make the report, write the page; notes and progress go to stderr."""
    quiet, output = given["quiet"], given["output"]
    _check_places(log, given)
    structure(given["structure"])  # a wrong name should not cost the reading of a large log
    model = None
    if given["model"] is not None:
        model = load_model(given["model"], unsafe_pickle=given["unsafe_load_pickle"])
    with Progress(quiet, f"reading {log}"):
        reading = read_given_log(log, given, given["cluster"])
        prefs = reading.preferences
        told = [f"skipped: {reading.report()}"] if reading.rejects else []
        annotators = _annotators(log, given)
        features, said = _features(given, model, prefs)
    told += [] if quiet else [f"{log}: {prefs.facts}", *said]
    with Progress(quiet, "making the report"):
        made = report(
            prefs,
            features=features,
            model=model,
            annotators=annotators,
            column=given["group"] or given["cluster"],
            title=Path(log).name if given["title"] is None else given["title"],
            command=_as_written(click.get_current_context()),
            **{name: given[name] for name in ("structure", "interval", "level", "replicates", "ask", "audit", "seed")},
        )
        text = made.html.encode()
        put_file(output, lambda temporary: Path(temporary).write_bytes(text))
    tell(told)
    if not quiet:
        for note in (*prefs.notes, *made.data["left_out"]):
            say_note(note)
        say("log", f"wrote {output}: {len(text) / 1e6:.1f} MB, one file; open it in a browser")


def _check_places(log: str, given: Given) -> None:
    """Refuse an output that is no page, cannot be written, or is one of the files that are read."""
    output = given["output"]
    for name, what in ((log, "the log"), (given["features"], "the file of features"), (given["model"], "the model")):
        check_output(output, name, what, endings=PAGES)
    given.settle()


def _annotators(log: str, given: Given) -> Mapping[str, Preferences] | None:
    """The judgments of each group, where another column than that of the clusters says who judged."""
    if given["group"] is None or given["group"] == given["cluster"]:
        return None
    return groups_of(read_given_log(log, given, given["group"]).preferences)


def _features(given: Given, model: Any, prefs: Preferences) -> tuple[Any, list[str]]:
    if given["features"] is None:
        return None, []
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    missing = "keep" if model is None else str(getattr(model, "missing", "raise"))
    features = read_feature_file(given["features"], given, missing=missing, names=names)
    features, said = labelled_like(features, prefs)
    return features, said + ([] if names else said_of_names(given["features"], features.names, given))


def _as_written(ctx: click.Context) -> str:
    """Return the command that makes the page again, with the options that were given."""
    log = os.fspath(ctx.params["log"])
    words = ["concordant", str(ctx.info_name), f"./{log}" if log.startswith("-") else log]
    for option in ctx.command.params:
        name = str(option.name)
        if not isinstance(option, click.Option) or name in UNSAID:
            continue
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        if option.is_flag:
            words.append(option.opts[0] if value or not option.secondary_opts else option.secondary_opts[0])
        else:
            words += [max(option.opts, key=len), str(value)]
    return shlex.join([*words, "-o", "report.html"])
