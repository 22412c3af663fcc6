"""What the server says on stderr: a line for each request, and what goes wrong, as text or as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from concordant.apps.serve.limits import App, Receive, Scope, Send

BUSY = 503
EACH = 1.0
"""Seconds between two lines about refused requests: a flood of requests is no flood of lines."""


class Lines:
    """Write one line for each thing that happens.

    >>> written = []
    >>> Lines("json", written.append, clock=lambda: "now")("request", path="/rank", status=200)
    >>> written[0].strip()
    '{"time": "now", "level": "info", "event": "request", "path": "/rank", "status": 200}'
    """

    def __init__(self, form: str, write: Callable[[str], Any] | None = None, clock: Callable[[], str] | None = None):
        self.form = form
        self.write = write or sys.stderr.write
        self.clock = clock or _now

    def __call__(self, event: str, *, level: str = "info", **facts: Any) -> None:
        if self.form == "json":
            text = json.dumps({"time": self.clock(), "level": level, "event": event, **facts}, default=str)
        else:
            text = f"{self.clock()} {event} " + " ".join(_plain(value) for value in facts.values())
        try:
            self.write(text + "\n")
        except (OSError, ValueError):  # whoever read the lines has gone; requests are answered all the same
            self.write = len


class AccessLog:
    """ASGI middleware that says of each request what was asked, what was answered, and how long it took.

    Requests that were refused because of too many (503) are counted and said once a second.
    """

    def __init__(self, app: App, lines: Lines) -> None:
        self.app = app
        self.lines = lines
        self.refused = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begin = time.perf_counter()
        status = 0

        async def seen(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, seen)
        finally:
            if status == BUSY:
                self._count()
            else:
                took = round(1000 * (time.perf_counter() - begin), 2)
                client = scope.get("client") or ("",)
                self.lines(
                    "request",
                    client=client[0],
                    method=scope["method"][:20],
                    path=scope["path"][:200],
                    status=status,
                    ms=took,
                )
        return None

    def _count(self) -> None:
        self.refused += 1
        if self.refused == 1:
            asyncio.get_running_loop().call_later(EACH, self._say)

    def _say(self) -> None:
        self.lines("refused", requests=self.refused, status=BUSY)
        self.refused = 0


def access_log_handler(lines: Lines) -> logging.Handler:
    """Return a handler of the web server's own log that writes through ``lines``."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage().strip()
            if record.exc_info:
                text += "\n" + logging.Formatter().formatException(record.exc_info)
            level = record.levelname.lower()
            lines(level, level=level, message=text)

    return Handler()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _plain(value: Any) -> str:
    """A value in a line of text: what is not printable escaped, line ends of a traceback kept apart."""
    if isinstance(value, float):
        return f"{value:g} ms"
    text = str(value)
    return text if text.isprintable() else json.dumps(text)
