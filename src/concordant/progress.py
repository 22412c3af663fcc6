"""What long work tells whoever listens: its stages, how far each is, how long it has taken and may still take.

Deep code says what it does; without a listener that costs a look at a variable.

>>> with stage("counting", total=3) as advance:
...     advance(2)

A listener hears of the stages that are open in its own thread's work, the outermost first:

>>> with listen(lambda stages: print([(one.what, one.done, one.total) for one in stages]), every=0):
...     with stage("counting", total=3) as advance:
...         advance(2)
[('counting', 0.0, 3.0)]
[('counting', 2.0, 3.0)]
[]
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["Listener", "Stage", "Told", "listen", "listener", "stage", "steps"]

T = TypeVar("T")
SURE = 0.5
"""Seconds of a stage before which its speed says nothing."""


class Stage:
    """One piece of work that is going on: what is done, how much of it, since when.

    ``stage(k)`` has done k more; ``stage.reach(done, total)`` says where the work is. Both may be called from any
    thread.
    """

    def __init__(self, what: str, total: float | None, of: Listener | None) -> None:
        self.what, self.total, self.done = what, None if total is None else float(total), 0.0
        self.began = time.monotonic()
        self._of = of

    def __call__(self, k: float = 1) -> None:
        """Say that ``k`` more are done."""
        if self._of is not None:
            with self._of.lock:
                self.done += k
            self._of.tell()

    def reach(self, done: float, total: float | None = None) -> None:
        """Say that ``done`` are done, of ``total`` where that is known now."""
        if self._of is not None:
            self.done, self.total = float(done), self.total if total is None else float(total)
            self._of.tell()

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return time.monotonic() - self.began

    @property
    def share(self) -> float | None:
        """What is done of the whole, from 0 to 1; None where the whole is not known."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total else None

    @property
    def remaining(self) -> float | None:
        """Seconds that are left if the rest goes as what is done went; None where nothing can be said yet."""
        share, seconds = self.share, self.seconds
        return seconds * (1 - share) / share if share and seconds >= SURE else None


Told = Callable[[tuple[Stage, ...]], object]
_SILENT = Stage("", None, None)


class Listener:
    """Who listens: what is told, and the stages that are open."""

    def __init__(self, told: Told, every: float) -> None:
        self.lock = threading.Lock()
        self._told, self._every, self._last = told, every, -float("inf")
        self._open: list[Stage] = []

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that are open now, the outermost first; of any thread."""
        with self.lock:
            return tuple(self._open)

    def begin(self, one: Stage) -> None:
        """Open a stage inside those that are open."""
        with self.lock:
            self._open.append(one)
        self.tell()

    def end(self, one: Stage) -> None:
        """Close a stage."""
        with self.lock:
            self._open.remove(one)
        self.tell()

    def tell(self) -> None:
        """Call back, unless that was done a moment ago."""
        now = time.monotonic()
        with self.lock:
            if now - self._last < self._every:
                return
            self._last, stages = now, tuple(self._open)
        self._told(stages)


_LISTENER: ContextVar[Listener | None] = ContextVar("concordant.progress", default=None)


def listener() -> Listener | None:
    """Return who listens to the work of this thread, or None."""
    return _LISTENER.get()


@contextmanager
def listen(told: Told, *, every: float = 0.1) -> Iterator[Listener]:
    """Call ``told`` with the open stages, the outermost first, while work goes on inside the ``with``.

    It is called where the work is done, possibly in another thread, at most once in ``every`` seconds; what it raises
    stops the work. Work of other threads that listen on their own is not heard. ``Listener.stages`` can be asked at any
    time, from any thread.

    >>> import concordant as cc
    >>> heard: set[str] = set()
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "a"])
    >>> with listen(lambda stages: heard.update(one.what for one in stages), every=0):
    ...     board = cc.rank(votes)
    >>> "ranking queries" in heard
    True
    """
    made = Listener(told, every)
    token = _LISTENER.set(made)
    try:
        yield made
    finally:
        _LISTENER.reset(token)


@contextmanager
def stage(what: str, total: float | None = None) -> Iterator[Stage]:
    """Say that a piece of work goes on inside the ``with``; ``total`` is how much of it there is, where that is known.

    What is yielded says how far it is: ``advance(k)``, or ``advance.reach(done)``.
    """
    heard = _LISTENER.get()
    if heard is None:
        yield _SILENT
        return
    one = Stage(what, total, heard)
    heard.begin(one)
    try:
        yield one
    finally:
        heard.end(one)


def steps(what: str, pieces: Iterable[T], total: float | None = None) -> Iterator[T]:
    """Yield each of the pieces, and say how many are done, where there are several.

    ``total`` is their number, where they do not know it themselves.

    >>> list(steps("squares", [1, 2]))
    [1, 2]
    """
    total = len(pieces) if isinstance(pieces, Sized) else total
    if total == 1:  # no step of a way
        yield from pieces
        return
    with stage(what, total) as advance:
        for piece in pieces:
            yield piece
            advance()
