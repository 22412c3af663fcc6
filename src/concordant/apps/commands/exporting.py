"""What ``concordant export`` does once its arguments are known: load, convert, write the model and its card."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from concordant.apps.commands.given import Given
from concordant.apps.commands.output import put_file
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import is_letor, labelled_like, read_feature_file, read_given_log
from concordant.apps.commands.saying import say
from concordant.apps.export.card import model_card
from concordant.apps.export.export import FORMATS, check_place, exported
from concordant.apps.export.terms import terms_of
from concordant.apps.models.saving import load_model
from concordant.errors import UsageError, did_you_mean
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_judged
from concordant.preferences.preferences import Preferences

__all__ = ["run_export"]


READ = ("log", "held_out", "labels", "features", "held_out_features")
"""Options of the card that name files which are read, and which no output may replace."""


def run_export(model: str, given: Given) -> None:
    """Write the model, the card or both; nothing is written before all of it is made."""
    _check(given)
    ranker = load_model(model, unsafe_pickle=given["unsafe_load_pickle"])
    made: dict[str, bytes] = {}
    if given["output"] is not None:
        names = None if given["feature_names"] is None else _listed(given["feature_names"])
        name = given["name"] or Path(given["output"]).stem
        with Progress(given["quiet"], f"converting {model}"):
            terms = terms_of(ranker, query=given["of_query"], names=names)
            made[given["output"]], notes = exported(terms, given["to"], name)
        if not given["quiet"]:
            for note in notes:
                say("note", note)
    if given["card"] is not None:
        made[given["card"]] = _card(model, ranker, given).encode()
    for name, data in made.items():
        put_file(name, lambda temporary, data=data: Path(temporary).write_bytes(data))  # type: ignore[misc]
        if not given["quiet"]:
            say("wrote", f"wrote {name}: {len(data):,} bytes", path=name)


def _check(given: Given) -> None:
    """Refuse options that do not go together, and places that cannot be written, before any work."""
    output, card = given["output"], given["card"]
    if (given["to"] is None) != (output is None):
        raise UsageError("--to and --output belong together: the format, and the file to write")
    if output is None and card is None:
        raise UsageError("nothing to write: give --to and --output, or --card, or all of them")
    if given["to"] is not None and given["to"] not in FORMATS:
        raise UsageError(f"--to {given['to']}: unknown format; {did_you_mean(given['to'], FORMATS)}")
    given.settle()
    places = {}
    for option, name in (("--output", output), ("--card", card)):
        if name is not None:
            places[option] = check_place(name, option).resolve()
            for read in READ:
                if given[read] is not None and os.path.exists(name) and _same(name, given[read]):
                    raise UsageError(f"{option} {name} is the file of --{read.replace('_', '-')}; name another file")
    if len(set(places.values())) < len(places):
        raise UsageError(f"--output and --card both name {output}; name two files")
    for name in ("log", "held_out"):
        if given[name] is not None and given["features"] is None and (name == "log" or not given["held_out_features"]):
            raise UsageError(f"--{name.replace('_', '-')} needs --features: how well scores agree with the judgments")


def _same(name: str, read: str) -> bool:
    return os.path.exists(read) and os.path.samefile(name, read)


def _card(model: str, ranker: Any, given: Given) -> str:
    """Return the card of the model with what the options bring."""
    names = getattr(ranker, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]

    def features(option: str) -> Features | None:
        if given[option] is None:
            return None
        with Progress(given["quiet"], f"reading {given[option]}"):
            return read_feature_file(given[option], given, missing=ranker.missing, names=names)

    def judgments(option: str, rows: Features | None) -> tuple[Preferences | None, Features | None]:
        if given[option] is None:
            return None, rows
        with Progress(given["quiet"], f"reading {given[option]}"):
            reading = read_given_log(given[option], given)
        if reading.rejects and not given["quiet"]:
            say("log", f"{given[option]}: skipped: {reading.report()}")
        found = reading.preferences
        return found, rows if rows is None else labelled_like(rows, found)[0]

    whole = features("features")
    learned, rows = judgments("log", whole)
    held_out, held_rows = judgments("held_out", features("held_out_features") or whole)
    labels = None
    if given["labels"] is not None:
        if not is_letor(given["labels"]):
            raise UsageError(f"--labels {given['labels']} is no LETOR file: lines such as 2 qid:7 1:0.5 2:3 # item")
        labels = read_judged(given["labels"], missing="raise" if ranker.missing == "raise" else "keep")
    with Progress(given["quiet"], "writing the card" if learned is None or not given["audit"] else "auditing"):
        return model_card(
            model,
            judgments=learned,
            held_out=held_out,
            features=rows,
            held_out_features=None if held_out is None else held_rows,
            labels=labels,
            audit=given["audit"],
            name=given["name"],
            license=given["license"],
            called={
                "judgments" if option == "log" else option: Path(given[option]).name
                for option in ("log", "held_out", "labels")
                if given[option] is not None
            },
            unsafe_pickle=given["unsafe_load_pickle"],
        )


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
