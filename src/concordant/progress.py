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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["Listener", "Stage", "Told", "expect", "listen", "listener", "stage", "steps"]

T = TypeVar("T")
SURE = 0.5
"""Seconds of a stage before which its speed says nothing."""
FEW = 10
"""Steps of which the first one tells how long the others take."""
clock = time.monotonic
"""What time is measured by."""


class Stage:
    """One piece of work that is going on: what is done, how much of it, since when.

    ``stage(k)`` has done k more; ``stage.reach(done, total)`` says where the work is. Both may be called from any
    thread. ``stage.parts`` names the pieces of work inside it that take time, and the seconds that each takes on a
    usual machine, None where that is not known.
    """

    def __init__(
        self,
        what: str,
        total: float | None,
        of: Listener | None,
        parts: Mapping[str, float | None] | None = None,
        step: float = 1.0,
        even: bool = True,
    ) -> None:
        self.what, self.total, self.done = what, None if total is None else float(total), 0.0
        self.parts = None if parts is None else dict(parts)
        self.even = even
        self.began = clock()
        self.step = step
        """How much is done by the step that goes on."""
        self.inside: Stage | None = None
        """The piece of work inside it that goes on."""
        self._of = of
        self._took: dict[str, float] = {}
        self._first = self._last = (0.0, 0.0)

    def __call__(self, k: float = 1, step: float | None = None) -> None:
        """Say that ``k`` more are done; ``step``: what the next step does."""
        if self._of is not None:
            with self._of.lock:
                self.done += k
                self._mark(step)
            self._of.tell()

    def reach(self, done: float, total: float | None = None) -> None:
        """Say that ``done`` are done, of ``total`` where that is known now."""
        if self._of is not None:
            self.done, self.total = float(done), self.total if total is None else float(total)
            self._mark(None)
            self._of.tell()

    def over(self, inside: Stage) -> None:
        """Take note that a piece of work inside is over."""
        self.inside = None
        self._took[inside.what] = self._took.get(inside.what, 0.0) + inside.seconds

    def _mark(self, step: float | None) -> None:
        """Take note of when so much was done."""
        self.step = (self.done - self._last[0] or self.step) if step is None else step
        self._last = (self.done, self.seconds)
        if self.done > 0 and not self._first[0]:
            self._first = self._last

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return clock() - self.began

    @property
    def share(self) -> float | None:
        """What is done of the whole, from 0 to 1; None where the whole is not known."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total else None

    @property
    def remaining(self) -> float | None:
        """Seconds that are left; None where nothing can be said yet.

        The rest of equal steps goes as those that are done, but for the first, which may have been spent on setting
        out. Of parts each takes its usual seconds times the factor by which those so far, and half a second, took
        longer or shorter than theirs; nothing is said while one is to come of which nobody knows how long it takes.
        """
        if self.parts is not None:
            return self._of_parts(self.parts, self.inside)
        return self._of_steps(self.inside) if self.total and self.even else None

    def _of_steps(self, inside: Stage | None) -> float | None:
        """The rest at the speed of the steps that are done; of the one that goes on what its parts say."""
        seconds, left = self.seconds, (self.total or 0.0) - self.done
        within = inside.remaining if inside is not None and inside.parts is not None else None
        (first, then), (last, at) = self._first, self._last if self._last[0] else (self.done, seconds)
        if last > 0:
            steady = first and last - first >= first and at > then
            if not steady and last * FEW < (self.total or 0.0):  # one of many, perhaps with what led up to it
                return None
            rate = (at - then) / (last - first) if steady else at / last
        elif inside is not None and within is not None:
            rate = (inside.seconds + within) / self.step
        else:
            return None
        if seconds < SURE:
            return None
        if within is not None:
            return within + rate * max(left - self.step, 0.0)
        return max(rate * left - (seconds - at), rate * (left - self.step), 0.0)

    def _of_parts(self, parts: Mapping[str, float | None], inside: Stage | None) -> float | None:
        now = inside if inside is not None and inside.what in parts else None
        spent = [(self._took[name], usual) for name, usual in parts.items() if usual and name in self._took]
        to_come = [
            usual for name, usual in parts.items() if name not in self._took and (now is None or now.what != name)
        ]
        within = None if now is None else now.remaining
        if now is not None and within is not None and (usual := parts[now.what]):
            spent.append((now.seconds + within, usual))
        factor = (SURE + sum(took for took, _ in spent)) / (SURE + sum(usual for _, usual in spent))
        if now is not None and within is None:
            if (usual := parts[now.what]) is None:
                return None
            at_least = SURE + now.seconds + sum(took for took, _ in spent)
            factor = max(factor, at_least / (SURE + usual + sum(usual for _, usual in spent)))
            within = max(factor * usual - now.seconds, 0.0)
        known = [usual for usual in to_come if usual is not None]
        return None if len(known) < len(to_come) else (within or 0.0) + factor * sum(known)


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
            if self._open:
                self._open[-1].inside = one
            self._open.append(one)
        self.tell()

    def end(self, one: Stage) -> None:
        """Close a stage."""
        with self.lock:
            at = self._open.index(one)
            del self._open[at]
            if at:
                self._open[at - 1].over(one)
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
def stage(
    what: str,
    total: float | None = None,
    *,
    parts: Mapping[str, float | None] | None = None,
    step: float = 1.0,
    even: bool = True,
) -> Iterator[Stage]:
    """Say that a piece of work goes on inside the ``with``; ``total`` is how much of it there is, where that is known.

    What is yielded says how far it is: ``advance(k)``, or ``advance.reach(done)``. ``step``: how much the first step
    does; ``even``: whether equal steps take about equal times. ``parts``: the stages inside it that take time, each
    with the seconds that it takes on a usual machine.
    """
    heard = _LISTENER.get()
    if heard is None:
        yield _SILENT
        return
    one = Stage(what, total, heard, parts, step, even)
    heard.begin(one)
    try:
        yield one
    finally:
        heard.end(one)


def expect(seconds: Mapping[str, float]) -> None:
    """Say how many seconds pieces of work take on a usual machine, to the stages that have them among their parts."""
    heard = _LISTENER.get()
    for one in () if heard is None else heard.stages:
        if one.parts is not None:
            one.parts |= {name: value for name, value in seconds.items() if name in one.parts}


def steps(
    what: str,
    pieces: Iterable[T],
    total: float | None = None,
    *,
    costs: Sequence[float] | None = None,
    even: bool = True,
) -> Iterator[T]:
    """Yield each of the pieces, and say how many are done, where there are several.

    ``total`` is their number, where they do not know it themselves; ``costs``: what each takes beside the others;
    ``even``: False, that is not known.

    >>> list(steps("squares", [1, 2]))
    [1, 2]
    """
    total = len(pieces) if isinstance(pieces, Sized) else total
    if total == 1:  # no step of a way
        yield from pieces
        return
    each = None if costs is None else [float(one) for one in costs]
    with stage(what, total if each is None else sum(each), step=each[0] if each else 1.0, even=even) as advance:
        for place, piece in enumerate(pieces):
            yield piece
            advance(1.0 if each is None else each[place], each[place + 1] if each and place + 1 < len(each) else None)
