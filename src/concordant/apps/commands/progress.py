"""How far a command is: bars on a terminal, lines of JSON where those are asked for, nothing elsewhere."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from concordant.apps.commands.durations import counts_of
from concordant.apps.commands.earlier_runs import before, keep, size_of_files
from concordant.apps.commands.saying import as_json, began, one_line, say
from concordant.preferences.preferences import Preferences
from concordant.progress import Listener, listen, stage
from concordant.record import running
from concordant.stages import LEAST, Stage
from concordant.time_left import Cost, Whole

DELAY = 2.0
"""Seconds of a command before which it shows nothing."""
BRIEF = 0.3
"""Seconds of a piece of work before which it is not shown."""
EVERY = 1.0
"""Seconds between lines of JSON, at least."""
TURNS, TABLE = 5_000, 160_000
"""Turns of a loop that tells how slow the machine is; as many numbers are looked up in a table."""
TIMES = 3
"""How often that is done at a time, of which the best counts; and how many such times come first."""
APART = 0.03
"""Seconds between those, longer from one to the next: no bad moment decides alone."""
LAST = 8
"""How many of these times count."""
USUAL = 2.2e-4, 8.0e-4
"""Seconds of the loop and of the looking up on a machine of the plans: such that theirs come out in the median."""
Show = Callable[[tuple[Stage, ...]], object]


def tell(lines: list[str]) -> None:
    """Say each line on stderr, once."""
    while lines:
        say("log", lines.pop(0))


class Progress:
    """What is being done and how far it is, as ``concordant.progress`` hears of it, from two seconds on.

    ``with Progress(quiet, "what is done") as step``: ``step(done, total)``, where the command itself knows how far it
    is; None where nobody looks. ``plan``: the pieces of work that the command has to do from here on, and what they
    cost; they may lie inside a later ``Progress``. Without any nothing is said of the time that is left. ``known``:
    the judgments, where they are read.
    """

    def __init__(
        self, quiet: bool, what: str, plan: Mapping[str, Cost] | None = None, known: Preferences | None = None
    ) -> None:
        self.what, self._plan, self._known = one_line(what), plan, known
        self.shown = not quiet and (as_json() or (sys.stderr is not None and sys.stderr.isatty()))
        self._ended = threading.Event()
        self._inside = ExitStack()
        self._at: Stage | None = None

    def __enter__(self) -> Callable[[float, float], None] | None:
        if not self.shown:
            return None
        whole = _whole()
        whole.know({} if self._known is None else counts_of(self._known), self._plan)
        heard = self._inside.enter_context(listen(lambda _: None, whole=whole))
        at = self._at = self._inside.enter_context(stage(self.what))
        watching = threading.Thread(target=self._watch, args=[heard], name="progress", daemon=True)
        self._inside.callback(watching.join)
        self._inside.callback(self._ended.set)
        watching.start()
        return at.reach

    def foresee(self, left: tuple[float, float] | None) -> None:
        """Say how many seconds are left at least and at most, where the command itself knows; None: it does not."""
        if self._at is not None and left is not None:
            self._at.foresee(*left)

    def __exit__(self, *_: object) -> None:
        self._inside.close()

    def _watch(self, heard: Listener) -> None:
        """Show, every now and then, the stages that are open."""
        if self._ended.wait(max(began() + DELAY - time.monotonic(), BRIEF)):
            return
        with suppress(OSError, ValueError), _lines() if as_json() else _on_terminal() as (show, pause):
            machine = _Machine()
            while True:
                heard.whole.slower = machine.slower()
                show(_seen(heard.stages))
                if self._ended.wait(pause):
                    return


class _Machine:
    """How much longer this machine takes than that of the plans: a small piece of work once a second tells."""

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        table, self._keys = np.sort(draw.random(TABLE)), draw.random(TURNS)
        self._find = table.searchsorted
        self._measured, self._found = -math.inf, list[float]()
        self._clock = time.get_clock_info("thread_time").resolution < USUAL[0] / 100

    def slower(self) -> float:
        """Return the median of the last few, between a third and three, and measure again where the last is old."""
        every = EVERY if len(self._found) > LAST // 2 else 0.0  # at first at each look
        if self._clock and time.monotonic() - self._measured >= every:
            for again in range(1 if self._found else TIMES):
                time.sleep(again * APART)
                best = min(self._once() for _ in range(TIMES))  # the first finds its numbers far away, as a rule
                self._found = [*self._found[-LAST:], best]
            self._measured = time.monotonic()
        return min(max(math.exp(float(np.median(self._found or [0.0]))), 1 / 3), 3.0)

    def _once(self) -> float:
        """The logarithm of how much longer the small piece of work takes."""
        began = time.thread_time()
        for turn in range(TURNS):
            turn * turn % 7
        then = time.thread_time()
        self._find(self._keys)
        both = (then - began) / USUAL[0] * (time.thread_time() - then) / USUAL[1]
        return math.log(max(both, 1e-9)) / 2


class _Now:
    """The whole work of the command that goes on, and when that began."""

    whole, began = Whole(), -1.0


def _whole() -> Whole:
    if _Now.began != began():
        _Now.whole, _Now.began = Whole(), began()
        if (run := running()) is not None and "options" in run.more:
            command, options = run.more["command"], run.more["options"]
            _Now.whole.before, _Now.whole.size = before(command, options), size_of_files(options)
            run.then.append(partial(_remember, command, options, _Now.whole))
    return _Now.whole


def _remember(command: str, options: Mapping[str, Any], whole: Whole) -> None:
    """Keep what the command took, which is done, for the time left of the next one like it; not of a short one."""
    if whole.usual and time.monotonic() - began() >= DELAY:
        keep(command, options, whole.over())


def time_left() -> float | None:
    """Return the seconds until the command is done, of the last second 1; None where that cannot be said."""
    return _at_least(_whole().remaining)


def between() -> tuple[float, float] | None:
    """Return the least and the most seconds until the command is done; None where nobody knows."""
    found = _whole().between
    return None if found is None else (max(found[0], LEAST), max(found[1], LEAST))


def _time_left() -> float | tuple[float, float] | None:
    """The time left, or between what and what it lies, where nothing closer can be said."""
    left = time_left()
    return between() if left is None else left


def _at_least(left: float | None) -> float | None:
    return None if left is None else max(left, LEAST)


def _seen(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Leave out what has just begun and may be over in a moment, and what has no name."""
    return tuple([one for place, one in enumerate(stages) if place == 0 or (one.seconds >= BRIEF and one.what)])


@contextmanager
def _on_terminal() -> Iterator[tuple[Show, float]]:
    from concordant.apps.commands.bars import drawn

    with drawn(_time_left) as found:
        yield found


class _Last:
    """When the last line of JSON was written."""

    time = 0.0


@contextmanager
def _lines() -> Iterator[tuple[Show, float]]:
    def show(stages: tuple[Stage, ...]) -> None:
        if not stages or time.monotonic() - _Last.time < EVERY:
            return
        _Last.time = time.monotonic()
        known = [one for one in stages if one.total is not None]
        at = known[-1] if known else stages[-1]
        inside = [_facts(one) for one in stages]
        say(
            "progress",
            ": ".join(one.what for one in stages),
            **_facts(at) | _left() | {"stages": inside},
        )

    yield show, EVERY / 4


def _left() -> dict[str, Any]:
    """Seconds that are left of the command, and between what and what they lie."""
    least, most = between() or (None, None)
    return {"remaining": _said(time_left()), "remaining_least": _said(least), "remaining_most": _said(most)}


def _facts(one: Stage) -> dict[str, Any]:
    return {
        "what": one.what,
        "done": None if one.total is None else round(one.done, 3),
        "total": one.total,
        "seconds": round(one.seconds, 3),
        "remaining": _said(one.remaining),
    }


def _said(left: float | None) -> float | None:
    return None if left is None else max(round(left, 1), LEAST)
