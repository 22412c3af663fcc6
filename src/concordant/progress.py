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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from typing import TypeVar

__all__ = ["Cost", "Listener", "Stage", "Told", "Whole", "know", "listen", "listener", "stage", "steps"]

T = TypeVar("T")
SURE = 0.5
"""Seconds of a stage before which its speed says nothing."""
TRUST = 0.25
"""Which share of what is to come the pieces that are over have to be before their factor counts half."""
BEYOND = 0.5
"""What is left of a piece that takes longer than it was thought to, of the seconds beyond these."""
SLOWER = 2.0
"""By how much a machine may be slower, or faster, than a usual one."""
FEW = 6
"""Steps of which the first one tells how long the others take."""
TELLING = 6
"""Steps of a search that tell how many it takes."""
SETTING_OUT = 0.8
"""Seconds of the first step, three quarters of it at most, that may be its setting out (compiled loops are loaded)."""
WIDE = 2.25
"""How many times the least, a second added to both, the most may be that the middle is within 1.5 of both."""
PART = " > "
"""What stands in a plan between a piece and a part of it."""
clock = time.monotonic
"""What time is measured by."""


class Aside:
    """Time that goes to what no plan and no step knows of: loops that are compiled, once on a machine.

    Nothing is said of what is left meanwhile, and no piece of work takes longer by it.
    """

    going_on = 0
    """How much of that is being done now, one inside the other."""
    _since = _spent = 0.0

    @classmethod
    def begin(cls) -> None:
        """Such work begins."""
        cls.going_on += 1
        if cls.going_on == 1:
            cls._since = clock()

    @classmethod
    def end(cls) -> None:
        """It is over."""
        cls.going_on -= 1
        if not cls.going_on:
            cls._spent += clock() - cls._since

    @classmethod
    def seconds(cls) -> float:
        """Seconds that went to it so far."""
        return cls._spent + (clock() - cls._since if cls.going_on else 0.0)


class Stage:
    """One piece of work that is going on: what is done, how much of it, since when.

    ``stage(k)`` has done k more; ``stage.reach(done, total)`` says where the work is. Both may be called from any
    thread.
    """

    def __init__(
        self,
        what: str,
        total: float | None,
        of: Listener | None,
        step: float = 1.0,
        even: bool = True,
        apart: bool = False,
    ) -> None:
        self.what, self.total, self.done = what, None if total is None else float(total), 0.0
        self.even, self.apart = even, apart
        self.began, self._aside = clock(), Aside.seconds()
        self.step = step
        """How much is done by the step that goes on."""
        self._of = of
        self._out = 0.0
        """Seconds before the first step began."""
        self._first = self._last = (0.0, 0.0)
        self._foreseen: tuple[float, float] | None = None

    def __call__(self, k: float = 1, step: float | None = None) -> None:
        """Say that ``k`` more are done; ``step``: what the next step does."""
        if self._of is not None:
            with self._of.lock:
                self.done += k
                self._mark(step)
            self._of.tell()

    def reach(self, done: float, total: float | None = None) -> None:
        """Say that ``done`` are done, of ``total`` where that is known now; 0: what was done so far was setting out."""
        if self._of is not None:
            if not done:
                self._out, self._first, self._last = self.worked, (0.0, 0.0), (0.0, 0.0)
            self.done, self.total = float(done), self.total if total is None else float(total)
            self._mark(None)
            self._of.tell()

    def foresee(self, least: float, most: float) -> None:
        """Say how many seconds are left at least and at most, where the work itself knows better than its steps."""
        if self._of is not None:
            self._foreseen = self.worked + least, self.worked + most
            self._of.tell()

    def _mark(self, step: float | None) -> None:
        """Take note of when so much was done."""
        self.step = (self.done - self._last[0] or self.step) if step is None else step
        self._last = (self.done, self.worked - self._out)
        if self.done > 0 and not self._first[0]:
            self._first = self._last

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return clock() - self.began

    @property
    def worked(self) -> float:
        """Seconds of them that went to the work itself."""
        return self.seconds - (Aside.seconds() - self._aside)

    @property
    def share(self) -> float | None:
        """What is done of the whole, from 0 to 1; None where the whole is not known."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total else None

    @property
    def remaining(self) -> float | None:
        """Seconds that are left by the speed of the steps that are done; None where that says little or nothing."""
        span = None if Aside.going_on else self.span
        if span is None or span[1] + 1.0 > WIDE * (span[0] + 1.0):
            return None
        return math.sqrt((span[0] + 1.0) * (span[1] + 1.0)) - 1.0

    @property
    def span(self) -> tuple[float, float] | None:
        """The least and the greatest number of seconds that may be left; None where nothing can be said yet.

        The rest of equal steps goes as those that are done. That is not sure of the first, of which nobody knows how
        much was spent on setting out.
        """
        if self._foreseen is not None:
            least, most = (max(end - self.worked, 0.0) for end in self._foreseen)
            return least, most
        gone = self.worked - self._out
        (first, then), (last, at) = self._first, self._last if self._last[0] else (self.done, gone)
        if not self.total or not self.even or last <= 0 or gone < SURE:
            return None
        left, others = self.total - self.done, last - first
        steady = first and others >= (1e-9 if self.apart else first) and at > then
        if not steady and (self.apart or last * FEW < self.total):  # one of many, perhaps with what led up to it
            return None
        low = high = (at - then) / others if steady else at / last
        if not steady and first:
            low = max(at - SETTING_OUT, 0.25 * at) / last
        least, most = (max(rate * left - (gone - at), rate * (left - self.step), 0.0) for rate in (low, high))
        return least, most


Cost = Callable[[Mapping[str, float]], float]
"""Seconds that a piece of work takes on a usual machine, of what is known: rows, distinct judgments, queries, …"""


class Whole:
    """All that a command does: its pieces of work by the names of their stages, and what each usually takes.

    A stage inside a piece is a part of it, whatever its name; a piece that comes twice (of several logs, say) is one.
    A plan may name a part, too, ``"piece > part"``, with what it takes in all steps of the piece: its own steps tell
    how long the piece takes before a step of that is done.
    """

    def __init__(self) -> None:
        self.plan: dict[str, Cost] = {}
        self.known: dict[str, float] = {}
        self.usual: dict[str, float | None] = {}
        """Seconds of a usual machine, None where what they depend on is not known yet."""
        self.took: dict[str, float] = {}
        self.slower = 1.0
        """How much longer this machine takes than a usual one, as far as that is known beside the work."""
        self.now: Stage | None = None
        """The piece that goes on."""
        self._parts: dict[str, Cost] = {}
        self._part: tuple[Stage, float] | None = None
        """The part of it that goes on, and what that usually takes."""
        self._pace: float | None = None
        """How much longer the last part took than it usually does."""
        self._inside: list[Stage] = []

    def know(self, counts: Mapping[str, float], plan: Mapping[str, Cost] | None = None) -> None:
        """Take note of how much there is to do, and of pieces that are to come (again, where they came before)."""
        self.known |= counts
        for name in [name for name in plan or {} if name in self.took]:
            self._keep(name)
        for name, cost in (plan or {}).items():
            (self._parts if PART in name else self.plan)[name] = cost
        for name, cost in self.plan.items():
            try:
                self.usual[name] = cost(self.known)
            except KeyError:
                self.usual[name] = None

    def _keep(self, name: str) -> None:
        """Keep what a piece took, which is to come again."""
        kept = f"{name} ({len(self.took)})"
        self.took[kept], self.usual[kept] = self.took.pop(name), self.usual.pop(name)

    def begin(self, one: Stage) -> None:
        """Take note that a stage begins; where it is a piece, those that are planned before it are over."""
        if self.now is None and one.what in self.plan:
            self.now = one
            for name in takewhile(lambda name: name != one.what, self.plan):
                if name not in self.took:
                    self.took[name], self.plan[name], self.usual[name] = 0.0, lambda _: 0.0, 0.0
        elif self.now is not None:
            cost = self._parts.get(f"{self.now.what}{PART}{one.what}")
            if cost is not None and not any(each.total for each in self._inside):  # of a step, not one of many in it
                share = self.now.step / self.now.total if self.now.total else 1.0
                self._part = one, cost(self.known) * share
            self._inside.append(one)

    def end(self, one: Stage) -> None:
        """Take note that a stage is over."""
        if self.now is one:
            self.now, self.took[one.what] = None, self.took.get(one.what, 0.0) + one.worked
            self._inside, self._pace = [], None
        elif one in self._inside:
            self._inside.remove(one)
        if self._part is not None and self._part[0] is one:
            usual, self._part = self._part[1], None
            self._pace = one.worked / usual if usual else None

    @property
    def pace(self) -> float | None:
        """By which factor the piece that goes on takes longer than usual, by a part of it; None where none tells."""
        if self._part is None:
            return self._pace
        one, usual = self._part
        left = one.remaining
        return self._pace if left is None or not usual else (one.worked + left) / usual

    def _here(self, name: str) -> float | None:
        """Seconds that a piece usually takes on a machine that is as slow as this one."""
        usual = self.usual.get(name)
        return None if usual is None else self.slower * usual

    def _longer(self, spent: Sequence[tuple[float, float]], ahead: float) -> float:
        """By which factor what is to come takes longer; less of it, where the machine's share is known by itself."""
        factor = _factor(spent, ahead)
        return factor if self.slower == 1.0 else math.sqrt(factor)

    def _of_inner(self) -> float | None:
        """Seconds that are left of the outermost stage inside the piece that goes on whose steps say it."""
        return next((left for one in self._inside if (left := one.remaining) is not None), None)

    @property
    def remaining(self) -> float | None:
        """Seconds that are left of all pieces; None where nothing can be said yet.

        The piece that goes on takes what its steps say, where they are equal and some are done (after the first of
        them what it usually takes, within what that one says), or what a part of it says, else what it usually takes,
        at least what a stage inside it says;
        each to come what it usually takes on a machine as slow as this one;
        all times the factor by which the pieces so far took longer or shorter than
        they usually do, which weighs the more the less is to come. Nothing is said while one is to come of which nobody
        knows how long it takes.
        """
        now = self.now
        before = self.took.get(now.what, 0.0) if now is not None else 0.0
        ahead_of = [name for name in self.usual if name not in self.took and (not now or now.what != name)]
        to_come = [self._here(name) for name in ahead_of]
        known = [seconds for seconds in to_come if seconds is not None]
        if not self.usual or len(known) < len(to_come) or Aside.going_on:
            return None
        over = [name for name in self.took if not now or now.what != name]
        spent = [(self.took[name], usual) for name in over if (usual := self._here(name))]
        span = None if now is None else now.span
        usual = None if now is None else self._here(now.what)
        within = None if now is None else now.remaining
        pace = self.pace
        if now is not None and span is not None and usual:
            longer = self._longer(spent, usual) if pace is None else pace / self.slower
            within = min(max(longer * usual - before - now.worked, span[0]), span[1])
        if now is not None and within is None and usual and pace is not None:
            within = max(pace / self.slower * usual - before - now.worked, 0.0)
        if now is not None and within is None and usual and (inner := self._of_inner()) is not None:
            within = inner if inner > usual - before - now.worked else None
        if now is not None and within is not None and usual and not before:
            spent.append((now.worked + within, usual))
        ahead = sum(known) + ((usual or 0.0) if within is None else 0.0)
        factor = self._longer(spent, ahead)
        if now is not None and within is None:
            if usual is None:
                return None
            rest = factor * usual - before - now.worked
            within = max(rest, -BEYOND * rest)
        return (within or 0.0) + factor * sum(known)


def _factor(spent: Sequence[tuple[float, float]], ahead: float) -> float:
    """By which factor pieces took longer than they usually do; the more is to come, the less a few of them count.

    What took many times as long is not the machine's doing.
    """
    trust = max(SURE, TRUST * ahead)
    took = sum(min(max(seconds, usual / SLOWER), usual * SLOWER) for seconds, usual in spent)
    return (trust + took) / (trust + sum(usual for _, usual in spent))


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
