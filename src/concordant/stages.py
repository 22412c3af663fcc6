"""Stages of long work: what each says, by its steps, of how far it is and how long it still takes."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concordant.progress import Listener

SURE = 0.5
"""Seconds of a stage before which its speed says nothing."""
COURSE = 16
"""How many shares of a piece are kept with the time at which they were done, at most."""
TOLD = 0.5
"""From which share of what is done on it counts what was thought to be the whole."""
FEW = 6
"""Steps of which the first one tells how long the others take."""
SETTING_OUT = 0.8
"""Seconds of the first step, three quarters of it at most, that may be its setting out (compiled loops are loaded)."""
WIDE = 2.25
"""How many times the least, a second added to both, the most may be that the middle is within 1.5 of both."""
LEAST = 1.0
"""Seconds that are not told apart from less."""
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
        self.course: list[tuple[float, float]] = []
        """How much was done, and after how many seconds."""
        self._totals: list[tuple[float, float]] = []
        """How much was done when something else was thought to be the whole, and what."""

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
                self._out, self._first, self._last, self.course = self.worked, (0.0, 0.0), (0.0, 0.0), []
            if total is not None and self.total is not None and float(total) != self.total:
                self._totals.append((float(done), float(total)))
            self.done, self.total = float(done), self.total if total is None else float(total)
            self._mark(None)
            self._of.tell()

    def foresee(self, least: float, most: float) -> None:
        """Say how many seconds are left at least and at most, where the work itself knows better than its steps."""
        if self._of is not None:
            self._foreseen = self.worked + least, self.worked + most
            self._of.tell()

    @property
    def foreseen(self) -> bool:
        """Whether the work itself said how many seconds are left."""
        return self._foreseen is not None

    def _mark(self, step: float | None) -> None:
        """Take note of when so much was done."""
        self.step = (self.done - self._last[0] or self.step) if step is None else step
        self._last = (self.done, self.worked - self._out)
        if self.done > 0 and not self._first[0]:
            self._first = self._last
        if self.total and self.done >= (self.course[-1][0] if self.course else 0.0) + self.total / COURSE:
            self.course.append((self.done, self.worked))

    def last(self, whole: float) -> tuple[float, float]:
        """What share was done when it was said last, and when; ``whole``: what all was before, where it moves now."""
        of = whole if self._totals else self.total
        return self._last[0] / (of or math.inf), self._last[1] + self._out

    def shares(self, since: float = 0.0) -> list[tuple[float, float]]:
        """Which share of what was done in all was done after how many seconds, beside those since then."""
        whole = self.done if self._totals else self.total or self.done
        return [(done / whole, since + seconds) for done, seconds in self.course]

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
        return middle_of(None if Aside.going_on else self.span)

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
        others = last - first
        steady = first and others >= (1e-9 if self.apart else first) and at > then
        if not steady and (self.apart or last * FEW < self.total):  # one of many, perhaps with what led up to it
            return None
        low = high = (at - then) / others if steady else at / last
        if not steady and first:
            low = max(at - SETTING_OUT, 0.25 * at) / last
        ends = [total for done, total in self._totals if done >= TOLD * self.done]  # what the whole is, moved so far
        few, many = (max(end(ends, default=self.total), last) - self.done for end in (min, max))
        least, most = (
            max(rate * rest - (gone - at), rate * (rest - self.step), 0.0) for rate, rest in ((low, few), (high, many))
        )
        return least, most


def middle_of(between: tuple[float, float] | None) -> float | None:
    """Return what is within a factor of 1.5 of both ends, a second more or less; None where nothing is.

    >>> middle_of((3.0, 8.0)), middle_of((3.0, 9.0))
    (5.0, None)
    """
    if between is None or between[1] + 1.0 > WIDE * (max(between[0], LEAST) + 1.0):
        return None
    return math.sqrt((between[0] + 1.0) * (between[1] + 1.0)) - 1.0
