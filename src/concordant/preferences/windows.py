"""Judgments of some days: up to one, since one, the last few."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError
from concordant.preferences.counted import recounted
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.times import duration, moment, said_time, timed


@dataclass(frozen=True)
class Window:
    """A span of days: up to and with ``as_of`` (default: the newest), from ``since`` on, or the ``last`` of them."""

    as_of: Any = None
    since: Any = None
    last: Any = None

    def __bool__(self) -> bool:
        """Whether anything is left out by it."""
        return any(one is not None for one in (self.as_of, self.since, self.last))

    def check(self) -> None:
        """Refuse what contradicts itself. Errors: UsageError."""
        if self.since is not None and self.last is not None:
            raise UsageError(Setting("since"), " and ", Setting("last"), " both say where to begin; give one of them")

    def days(self, newest: str) -> tuple[str, str]:
        """Return the first and the last day, of a store whose newest is given. Errors: UsageError.

        >>> Window(last="7d").days("2026-01-31"), Window("2026-01-10", "2026-01-01").days("2026-01-31")
        (('2026-01-25', '2026-01-31'), ('2026-01-01', '2026-01-10'))
        """
        self.check()
        end = newest if self.as_of is None else said_day(self.as_of, "as_of")
        if self.since is not None:
            first = said_day(self.since, "since")
            if first > end:
                raise UsageError(Setting("since", first), f" is after {end}, where it ends")
            return first, end
        if self.last is None:
            return date.min.isoformat(), end
        length = duration(self.last, True)
        if length != int(length):
            raise UsageError(Setting("last", self.last), ": a store knows whole days, such as 7d or 2w")
        until = date.fromisoformat(end)
        return (until - timedelta(min(int(length) - 1, (until - date.min).days))).isoformat(), end

    def of_times(self, prefs: Preferences) -> Preferences:
        """Return the comparisons that were made in the window.

        Errors: UsageError without times, for what is no time, where nothing is left.
        """
        known, times = timed(prefs), _times(prefs)
        rows = np.flatnonzero(self.holds(times, newest := float(times.max()), known.dated))
        left: Preferences = keep(known, rows, known.count[rows], known.declared[:0])
        if not isinstance(left, Comparisons):
            span = " to ".join(said_time(float(time), known.dated) for time in (times.min(), newest))
            raise UsageError(f"no judgment lies in the time that was asked for; they are of {span}")
        text = "{kept:judgments} of {first} to {last}; {out:,} of another time {out:is|are} left out"
        ends = times[rows].min(), times[rows].max()
        first, last = (said_time(float(time), known.dated) for time in ends)
        note = Note("window", text, kept=len(left), first=first, last=last, out=len(known) - len(left))
        return replace(left, told=(*left.told, note))

    def of_both(self, prefs: Preferences, logs: Iterable[Preferences]) -> Preferences:
        """Return the comparisons that were made in the window of each of some logs. Errors: UsageError without times.

        ``prefs``: what all of the logs hold; a log has a window of its own where that ends with its newest judgment.
        """
        for log in logs:
            if not len(prefs):
                break
            known = timed(prefs)
            inside = np.flatnonzero(self.holds(_times(prefs), float(_times(log).max()), known.dated))
            prefs = keep(known, inside, known.count[inside], known.declared[:0])
        return prefs

    def holds(self, time: NDArray[np.float64], newest: float, dated: bool) -> NDArray[np.bool_]:
        """Return which times lie in the window of a log with this newest time. Errors: UsageError.

        >>> Window(last="7d").holds(np.array([13.5, 14.0, 20.5]), 20.0, True).tolist()
        [False, True, True]
        """
        self.check()
        end, beyond = self._end(newest, dated)
        begin = -np.inf
        if self.since is not None:
            begin = moment(self.since, dated)
        elif self.last is not None:
            begin = end - duration(self.last, dated)
            if not beyond:  # of numbers, and of instants that were said: the end belongs to it, the beginning does not
                begin = np.nextafter(begin, np.inf)
        return np.asarray((time >= begin) & ((time < end) if beyond else (time <= end)), bool)

    def _end(self, newest: float, dated: bool) -> tuple[float, bool]:
        """Return where it ends, and whether that is the first moment beyond it (of days) or belongs to it."""
        end = newest if self.as_of is None else moment(self.as_of, dated)
        whole = dated and (self.as_of is None or len(str(self.as_of)) <= len("2026-01-31"))
        return (np.floor(end) + 1.0, True) if whole else (end, False)


ALWAYS = Window()


def _times(prefs: Preferences) -> NDArray[np.float64]:
    time = timed(prefs).time
    return np.zeros(0) if time is None else time


def untimed(prefs: Preferences) -> Preferences:
    """Return judgments without when they were made, equal ones counted together."""
    if not isinstance(prefs, Comparisons) or prefs.time is None:
        return prefs
    return recounted(replace(prefs, time=None, dated=False), prefs.query, prefs.count)


def said_day(value: Any, name: str = "day") -> str:
    """Return a day as it is kept. Errors: UsageError.

    >>> said_day("2026-01-31")
    '2026-01-31'
    """
    try:
        if len(str(value)) == len("2026-01-31"):
            return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        pass
    raise UsageError(Setting(name, str(value)), ": a day is written as 2026-01-31")
