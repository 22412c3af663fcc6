"""What a command says on stderr: a line for a person, or with ``--log-format json`` one JSON object a line."""

from __future__ import annotations

import json
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

__all__ = ["as_json", "began", "one_line", "say", "said_as"]

OPTION = "--log-format"
LEADS = {"note": "note: ", "error": "error: "}
"""What stands before the words in a line for a person."""


class _How:
    """How this process says things, and since when it works."""

    json = False
    began = time.monotonic()
    lock = threading.Lock()


def as_json() -> bool:
    """Whether what is said are JSON objects."""
    return _How.json


def began() -> float:
    """When the command began, by ``time.monotonic``."""
    return _How.began


@contextmanager
def said_as(arguments: list[str]) -> Iterator[None]:
    """Speak inside the ``with`` as the arguments of the command ask for, before anything else is known of them.

    >>> with said_as(["rank", "votes.csv", "--log-format", "json"]):
    ...     as_json()
    True
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    pairs = zip(options, [*options[1:], ""])
    given = [after if one == OPTION else one.partition("=")[2] for one, after in pairs if one.split("=")[0] == OPTION]
    before, show = (_How.json, _How.began), warnings.showwarning
    _How.json, _How.began = given[-1:] == ["json"], time.monotonic()
    if _How.json:
        warnings.showwarning = _warned  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = show
        _How.json, _How.began = before


def _warned(message: Warning | str, category: type[Warning], *_: Any) -> None:
    say("warning", str(message), level="warning", category=category.__name__)


def say(event: str, message: str, *, level: str = "info", **more: Any) -> None:
    """Say one line: ``event`` is note, error, wrote, …; ``more`` stands in the JSON object only."""
    if _How.json:
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event}
        line = json.dumps(told | {"message": message} | more, ensure_ascii=True, default=str)
    else:
        line = LEADS.get(event, "") + one_line(message)
    with _How.lock:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def one_line(text: str) -> str:
    """Return a text of labels fit for a line of a terminal: line ends and other control characters escaped.

    >>> print(one_line("a\\nb\\x1b[1m"))
    a\\nb\\x1b[1m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
