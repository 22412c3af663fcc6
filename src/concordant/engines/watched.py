"""How far DuckDB is with a statement, told as a stage while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from concordant.progress import listener, stage

__all__ = ["watched"]

EVERY = 0.2
"""Seconds between two looks."""


@contextmanager
def watched(connection: Any, what: str) -> Iterator[None]:
    """Tell how much of what the connection runs inside the ``with`` is done, in per cent as DuckDB estimates it."""
    if listener() is None:
        yield
        return
    ended = threading.Event()
    with stage(what) as at:

        def look() -> None:
            while not ended.wait(EVERY):
                if (done := connection.query_progress()) >= 0:
                    at.reach(done, 100)

        looking = threading.Thread(target=look, name="duckdb-progress", daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()
