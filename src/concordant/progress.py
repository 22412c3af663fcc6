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

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from concordant.stages import Stage
from concordant.time_left import Cost, Whole

__all__ = ["Cost", "Listener", "Stage", "Told", "Whole", "know", "listen", "listener", "stage", "steps"]

T = TypeVar("T")
TELLING = 6
"""Steps of a search that tell how many it takes."""
Told = Callable[[tuple[Stage, ...]], object]
_SILENT = Stage("", None, None)


class Listener:
    """Who listens: what is told, and the stages that are open."""

    def __init__(self, told: Told, every: float, whole: Whole | None = None) -> None:
        self.lock, self.whole = threading.Lock(), Whole() if whole is None else whole
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
            self.whole.begin(one)
        self.tell()

    def end(self, one: Stage) -> None:
        """Close a stage."""
        with self.lock:
            self._open.remove(one)
            self.whole.end(one)
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
def listen(told: Told, *, every: float = 0.1, whole: Whole | None = None) -> Iterator[Listener]:
    """Call ``told`` with the open stages, the outermost first, while work goes on inside the ``with``.

    It is called where the work is done, possibly in another thread, at most once in ``every`` seconds; what it raises
    stops the work. Work of other threads that listen on their own is not heard. ``Listener.stages`` can be asked at any
    time, from any thread. ``Listener.whole.remaining`` is what is left of all the work that is planned in ``whole``.

    >>> import concordant as cc
    >>> heard: set[str] = set()
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "a"])
    >>> with listen(lambda stages: heard.update(one.what for one in stages), every=0):
    ...     board = cc.rank(votes)
    >>> "scores" in heard
    True
    """
    made = Listener(told, every, whole)
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
    step: float = 1.0,
    even: bool = True,
    apart: bool = False,
) -> Iterator[Stage]:
    """Say that a piece of work goes on inside the ``with``; ``total`` is how much of it there is, where that is known.

    What is yielded says how far it is: ``advance(k)``, or ``advance.reach(done)``. ``step``: how much the first step
    does; ``even``: whether equal steps take about equal times; ``apart``: the first step also does what is done once,
    so that only the others tell how long one takes.
    """
    heard = _LISTENER.get()
    if heard is None:
        yield _SILENT
        return
    one = Stage(what, total, heard, step, even, apart)
    heard.begin(one)
    try:
        yield one
    finally:
        heard.end(one)


def know(**counts: float) -> None:
    """Say how much there is to do, as soon as that is known: what takes how long is then known, too.

    ``rows``, ``distinct`` (judgments), ``queries``, ``nodes`` (items of queries, one for each), …: what the costs of a
    plan ask for.
    """
    heard = _LISTENER.get()
    if heard is not None:
        with heard.lock:
            heard.whole.know(counts)


def steps(
    what: str,
    pieces: Iterable[T],
    total: float | None = None,
    *,
    costs: Sequence[float] | None = None,
    even: bool = True,
    apart: bool = False,
    single: bool = False,
) -> Iterator[T]:
    """Yield each of the pieces, and say how many are done, where there are several (``single``: of one, too).

    ``total`` is their number, where they do not know it themselves; ``costs``: what each takes beside the others;
    ``even``: False, that is not known; ``apart``: the first one also does what is done once.

    >>> list(steps("squares", [1, 2]))
    [1, 2]
    """
    total = len(pieces) if isinstance(pieces, Sized) else total
    if total == 1 and not single:  # no step of a way
        yield from pieces
        return
    each = None if costs is None else [float(one) for one in costs]
    with stage(what, total if each is None else sum(each), step=each[0] if each else 1.0, even=even, apart=apart) as at:
        for place, piece in enumerate(pieces):
            yield piece
            at(1.0 if each is None else each[place], each[place + 1] if each and place + 1 < len(each) else None)


def steps_left(moves: Sequence[float], small: float) -> float | None:
    """About how many steps it takes until what each moves is below ``small``; None while too few are taken.

    They get smaller by a factor, or by a power of their number: the geometric mean of what both say.

    >>> round(steps_left([0.5**step for step in range(10)], 1e-4), 1)  # 4.3 by the factor, 6.1 by the power
    5.1
    """
    number = len(moves)
    if number < TELLING or not moves[-3] > moves[-1] > 0:
        return None
    fall, left = math.log(moves[-3] / moves[-1]), max(math.log(moves[-1] / small), 0.0)
    return math.sqrt(2.0 * left / fall * number * math.expm1(min(left * math.log(number / (number - 2)) / fall, 50.0)))
