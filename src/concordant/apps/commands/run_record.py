"""How a run ended, in a number and in words, and its record: a file of JSON, and the last object of a log of JSON."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from concordant.apps.commands.saying import as_json, say
from concordant.apps.commands.settings import early
from concordant.errors import ConcordantError, Unavailable, UsageError
from concordant.io.log.disk import check_replaced, in_place_of
from concordant.record import NOTHING_NEW, Run

DATA, USAGE, SURROUNDINGS, NO, STOPPED = "bad data", "bad usage", "surroundings", "no", "interrupted"
DETAILED = {"done": 0, NO: 1, DATA: 2, NOTHING_NEW: 3, USAGE: 4, SURROUNDINGS: 5}
"""Exit statuses with ``--exit-status detailed``. They do not change."""
PLAIN = DETAILED | {NOTHING_NEW: 0, USAGE: 2, SURROUNDINGS: 2}
"""Those without."""
REFUSED = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}
"""What the system refuses whatever the data are."""


def outcome_of(problem: BaseException) -> str:
    """Return what is to blame for an error: the data, how the command was used, or what is around it.

    >>> outcome_of(FileNotFoundError()), outcome_of(click.UsageError("no such option"))
    ('surroundings', 'bad usage')
    """
    if isinstance(problem, Unavailable | OSError | MemoryError) or _refused_by_system(problem):
        return SURROUNDINGS
    said = getattr(problem, "outcome", None)
    if said is not None:
        return str(said)
    return USAGE if isinstance(problem, UsageError | click.ClickException) else DATA


def _refused_by_system(problem: BaseException) -> bool:
    """Whether an error comes of what the system refused: no permission, a full disk, too many open files, …"""
    at: BaseException | None = problem
    while at is not None:
        if isinstance(at, OSError) and at.errno in REFUSED:
            return True
        if type(at).__name__ in ("IOException", "OutOfMemoryException"):  # of DuckDB; others quote rows of the log
            return type(at).__name__ != "IOException" or any(os.strerror(number) in str(at) for number in REFUSED)
        at = at.__cause__ or at.__context__
    return False


def said_of(problem: ConcordantError, message: str) -> click.UsageError:
    """Return an error of the library in the words of the command; it still knows what is to blame."""
    made = click.UsageError(message)
    made.outcome = outcome_of(problem)  # type: ignore[attr-defined]
    return made


def status_of(outcome: str, arguments: Sequence[str], commands: Collection[str]) -> int:
    """Return the exit status of an outcome."""
    detailed = early(arguments, "exit-status", commands) == "detailed"
    return (DETAILED if detailed else PLAIN).get(outcome, 1)


def check_summary(name: str | None, others: Mapping[str, Any]) -> None:
    """Refuse a place for the record that cannot be written, or that another option names. Errors: UsageError."""
    if name is None:
        return
    if not name.endswith(".json"):
        more = "; what the model says of itself is --statistics" if "statistics" in others else ""
        raise UsageError(f"--summary {name}: the record of the run is a file of JSON, such as run.json{more}")
    check_replaced(name, "--summary")
    if not Path(name).absolute().parent.is_dir():
        raise UsageError(f"--summary {name}: the folder {Path(name).parent} does not exist")
    for option, value in others.items():
        for other in value if isinstance(value, tuple | list) else (value,):
            if isinstance(other, str) and os.path.realpath(other) == os.path.realpath(name):
                raise UsageError(f"--summary {name} is also named by {option.replace('_', '-')}; name another file")


def finish(run: Run, arguments: Sequence[str], status: int, quiet: bool) -> int:
    """Write the record where that is asked for, and say it in a log of JSON; return the exit status."""
    run.more["exit_status"] = status
    record = run.record
    name = early(arguments, "summary", ())
    if name is not None:
        try:
            pairs = zip(arguments, ["", *arguments])
            check_summary(name, {word: word for word, before in pairs if before != "--summary"})
            text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1)
            with in_place_of(name, "--summary") as temporary:
                temporary.write_text(f"{text}\n", encoding="utf-8")
        except Unavailable as problem:
            if not status:
                say("error", str(problem), level="error", kind=SURROUNDINGS)
                record |= {"outcome": SURROUNDINGS, "exit_status": (status := status_of(SURROUNDINGS, arguments, ()))}
        except UsageError:  # it was said already
            pass
    if as_json() and not quiet:
        say("run", f"{record['outcome']} in {record['seconds']:.1f} s", **record)
    return status
