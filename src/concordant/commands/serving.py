"""What ``concordant serve`` does once its arguments are known: load, listen, answer until told to stop."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from concordant.commands.abstaining import careful, said_of
from concordant.commands.feature_files import read_feature_file
from concordant.commands.progress import Progress
from concordant.commands.saying import as_json, say
from concordant.errors import UsageError
from concordant.models.saving import load_model
from concordant.serving.app import create_app
from concordant.serving.journal import Lines
from concordant.serving.limits import Limits
from concordant.serving.running import BACKLOG, answer, answer_in_workers, bound

__all__ = ["run_serve"]

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def run_serve(model: str, given: Mapping[str, Any]) -> None:
    """Load model and features, listen, answer until told to stop."""
    quiet, workers = given["quiet"], given["workers"]
    form = "json" if as_json() else "text"
    _limits(given)
    listener = bound(given["host"], given["port"], shared=workers > 1)
    with listener:
        with Progress(quiet, f"loading {model}"):
            app, limits, lines = application(model, given, form, notes=not quiet)
        if workers == 1:
            listener.listen(BACKLOG)
            _tell(model, listener, given)
            answer(app, listener, limits, lines)
        else:
            del app  # it was made to see that it can be; each worker makes its own
            make = partial(application, model, dict(given), form)
            answer_in_workers(make, listener, workers, lambda: _tell(model, listener, given))
    if not quiet:
        say("stopped", "stopped")


def application(model: str, given: Mapping[str, Any], form: str, *, notes: bool = False) -> tuple[Any, Limits, Lines]:
    """Return the application that answers as the options say, with its limits and its log."""
    limits = _limits(given)
    ranker = load_model(model, unsafe_pickle=given["unsafe_load_pickle"])
    names = getattr(ranker, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    if given["features"] is None:
        alone = [name for name in ("feature_item", "feature_query") if given[name] is not None]
        if alone:
            raise UsageError(f"--{alone[0].replace('_', '-')} names a column of --features, which is missing")
        if given["judgments"] is not None and given["judged_features"] is None:
            raise UsageError("--judgments needs the features of the items it judges: --judged-features F")
    abstaining = careful(ranker, given, names)
    if notes and abstaining is not None:
        for said in said_of(abstaining):
            say("note", said)
    features = None
    if given["features"] is not None:
        missing = getattr(ranker, "missing", "raise")
        features = read_feature_file(given["features"], given, missing=missing, names=names)
    lines = Lines(form)
    name, told = Path(model).resolve().name, None if given["quiet"] else lines
    app = create_app(abstaining or ranker, features, name=name, limits=limits, lines=told)
    return app, limits, lines


def _limits(given: Mapping[str, Any]) -> Limits:
    return Limits(given["max_items"], _bytes(given["max_body"]), given["limit_concurrency"], given["timeout"])


def _bytes(text: str) -> int:
    """The bytes of a size such as 4MB. Errors (UsageError)."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in UNITS:
        raise UsageError(f"--max-body must be a size such as 500KB or 4MB, not {text!r}")
    return int(float(found[1]) * UNITS[found[2]])


def _tell(model: str, listener: socket.socket, given: Mapping[str, Any]) -> None:
    """Say that the port is open: all that answers is there."""
    if given["quiet"]:
        return
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    workers = "" if given["workers"] == 1 else f", {given['workers']} workers"
    say("serving", f"serving {model} at {address}{workers}; Ctrl-C ends it", host=host, port=port, model=model)
