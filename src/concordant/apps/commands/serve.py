"""``concordant serve``: load, listen, answer until told to stop."""

from __future__ import annotations

import multiprocessing
import os
import re
import socket
import stat
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from concordant.apps.commands.abstaining import careful, said_of
from concordant.apps.commands.options import ServeOptions
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import names_of, read_feature_file
from concordant.apps.commands.saying import as_json, say
from concordant.apps.models.saving import load_model
from concordant.apps.serve.access_log import Lines
from concordant.apps.serve.app import create_app, origin_of
from concordant.apps.serve.limits import Access, Limits, host_name
from concordant.apps.serve.operation import SIZE, Current, Metrics, Operation, Reloader, Shadow
from concordant.apps.serve.running import BACKLOG, Answering, answer, answer_in_workers, bound
from concordant.apps.serve.served import Served
from concordant.errors import UsageError

TOKEN, LONGEST = "CONCORDANT_SERVE_TOKEN", 4096


def serve(options: ServeOptions) -> None:
    """Load model and features, listen, answer until told to stop."""
    options.settle()
    token = _token(options.token_file)
    model, quiet, workers = options.model, options.quiet, options.workers
    form = "json" if as_json() else "text"
    _limits(options)
    access(options, token)
    listener = bound(options.host, options.port, shared=workers > 1)
    with listener:
        with Progress(quiet, f"loading {model}"):  # with workers to see that it can be; each makes its own
            made = answering(options, token, form, None, 0, notes=not quiet)
        if workers == 1:
            listener.listen(BACKLOG)
            answer(made, listener, lambda: _tell(listener, options))
        else:
            del made
            counts = multiprocessing.get_context("spawn").RawArray("d", workers * SIZE)
            make = partial(answering, replace(options), token, form, counts)
            answer_in_workers(make, listener, workers, lambda: _tell(listener, options))
    options.say("stopped", "stopped")


def answering(
    options: ServeOptions, token: str | None, form: str, counts: Any, worker: int, *, notes: bool = False
) -> Answering:
    """Return what answers as the options say: the application, which is made anew when that is asked for."""
    lines, operation = Lines(form), Operation(Metrics(counts, worker))
    make = partial(application, options, token, lines, operation)
    watched = [name for name in (options.model, options.features, options.shadow) if name is not None]
    reloader = Reloader(make, operation.metrics, lines, watched, options.watch)
    reloader.current = Current(make(notes=notes))
    return Answering(reloader.current, _limits(options), lines, reloader, operation.stop)


def application(
    options: ServeOptions, token: str | None, lines: Lines, operation: Operation, *, notes: bool = False
) -> Any:
    """Return the application that answers as the options say, by model and features as they lie there now."""
    limits = _limits(options)
    ranker = load_model(options.model, unsafe_pickle=options.unsafe_load_pickle)
    names = names_of(ranker)
    abstaining = careful(ranker, options, names)
    if notes and abstaining is not None:
        for said in said_of(abstaining):
            say("note", said)
    features = None
    if options.features is not None:
        missing = getattr(ranker, "missing_", "raise")
        features = read_feature_file(options.features, options, missing=missing, names=names)
    app = create_app(
        abstaining or ranker,
        features,
        name=_name(options.model),
        limits=limits,
        lines=None if options.quiet else lines,
        access=access(options, token),
        operation=operation,
        shadow=_shadow(options, operation),
    )
    app.middleware_stack = app.build_middleware_stack()  # not when the first request comes
    return app


def _shadow(options: ServeOptions, operation: Operation) -> Shadow | None:
    """Return the second model, with the features that it knows of the same file."""
    if options.shadow is None:
        return None
    ranker = load_model(options.shadow, unsafe_pickle=options.unsafe_load_pickle)
    features = None
    if options.features is not None:
        missing = getattr(ranker, "missing_", "raise")
        features = read_feature_file(options.features, options, missing=missing, names=names_of(ranker))
    origin = origin_of(ranker)
    about = {"model": _name(options.shadow), "hash": str(origin["hash"]), "fitted": str(origin["fitted"])}
    return Shadow(Served(ranker, features), options.shadow_share, about, operation.metrics)


def _name(model: str) -> str:
    return Path(model).resolve().name


def access(options: ServeOptions, token: str | None) -> Access:
    """Whom the server answers, as the options say. Errors: UsageError for names that are none."""
    for name in options.host_name:
        if host_name(name) is None or re.search(r":\d*$", name.rpartition("]")[2]):
            raise UsageError(f"--host-name {name}: a name or an address, without scheme and port")
    host = str(options.host)
    own = [host] if host_name(f"[{host}]" if ":" in host else host) is not None else []
    everywhere = host.strip("[]") in ("", "0.0.0.0", "::", "0", "*")
    return Access([*own, *(str(host_name(name)) for name in options.host_name)], addresses=everywhere, token=token)


def _token(file: str | None) -> str | None:
    """The token of the file or of the environment. Errors (UsageError), which never show it."""
    said = os.environ.get(TOKEN)
    if file is not None and said is not None:
        raise UsageError(f"--token-file and {TOKEN} both give a token; leave one out")
    if file is None:
        return None if said is None else _checked(said, TOKEN)
    option = f"--token-file {file}"
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe is not waited for
        with os.fdopen(handle, "rb") as opened:
            there = os.fstat(handle)
            if not stat.S_ISREG(there.st_mode):
                raise UsageError(f"{option} is no file")
            if os.name == "posix" and there.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise UsageError(f"{option}: others may change it; chmod go-w, or better 600")
            raw = opened.read(LONGEST + 3)
    except OSError as error:
        raise UsageError(f"{option}: {error.strerror or error}") from None
    if os.name == "posix" and there.st_mode & stat.S_IROTH:
        say("note", f"every user of this machine may read {file}: chmod 600 keeps the token to its owner")
    return _checked(raw.decode("latin-1").removesuffix("\n").removesuffix("\r"), option)


def _checked(token: str, where: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,4096}", token):
        raise UsageError(
            f"{where}: a token is one line of 16 to {LONGEST:,} letters, digits and the marks . _ ~ + / = - "
            "(openssl rand -hex 32 makes one)"
        )
    return token


def _limits(options: ServeOptions) -> Limits:
    return Limits(options.max_items, options.max_body, options.limit_concurrency, options.timeout)


def _tell(listener: socket.socket, options: ServeOptions) -> None:
    """Say that the port is open: all that answers is there."""
    if options.quiet:
        return
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    model, workers = options.model, "" if options.workers == 1 else f", {options.workers} workers"
    say("serving", f"serving {model} at {address}{workers}; Ctrl-C ends it", host=host, port=port, model=model)
