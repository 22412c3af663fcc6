"""Stages of work as lines of a terminal: what, how far, for how long, how long still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from concordant.apps.commands.saying import at_the_end, one_line
from concordant.stages import Stage

ROWS = 3
"""Stages that are shown at most."""
PAUSE = 0.2
DUMB_PAUSE = 10.0
"""Seconds between lines on a terminal that cannot go back."""
BAR = 20
Left = float | tuple[float, float] | None
"""Seconds that are left, or between what and what they lie."""
FAR = 20.0
"""How many times the least, at most, the most may be that is said with it."""
WIDE, NARROW = 70, 36
"""Columns from which on there is a bar, and from which on there are times."""


@contextmanager
def drawn(time_left: Callable[[], Left]) -> Iterator[tuple[Callable[[tuple[Stage, ...]], object], float]]:
    """Yield what shows stages on the terminal of stderr, and the seconds between two calls of it.

    Nothing is left of it at the end. A terminal that cannot go back (TERM=dumb) gets a line now and then.
    """
    console = Console(stderr=True, highlight=False)
    utf = (console.encoding or "").lower().startswith("utf")
    if console.is_dumb_terminal:
        shown: dict[str, float] = {}

        def lines(stages: tuple[Stage, ...]) -> None:
            for what, one in rows_of(stages)[-1:]:
                if time.monotonic() - shown.get("last", 0.0) >= DUMB_PAUSE:
                    shown["last"] = time.monotonic()
                    left = time_left()
                    console.print(line_of(what, one, max(console.width, NARROW) - 1, utf, bar=False, left=left))

        yield lines, PAUSE
        return
    live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, vertical_overflow="crop")

    def bars(stages: tuple[Stage, ...]) -> None:
        left = [time_left()] if stages else []  # of all that is to be done: it stands in the first line
        found = [
            line_of(what, one, console.width - 1, utf, left=left.pop() if left else False)
            for what, one in rows_of(stages)
        ]
        live.update(Group(*found), refresh=True)

    with at_the_end(lambda: console.file.write("\r\x1b[K\x1b[?25h")), live:
        yield bars, PAUSE


def rows_of(stages: tuple[Stage, ...]) -> list[tuple[str, Stage]]:
    """Return what is shown: a stage of unknown length stands before what goes on inside it."""
    rows: list[tuple[str, Stage]] = []
    words: list[str] = []
    for place, one in enumerate(stages):
        if words and one.what.startswith(words[-1]):  # "ranking", and inside it "ranking queries"
            words.pop()
        words.append(one_line(one.what))
        if one.total is not None or place == len(stages) - 1:
            rows.append((": ".join(words), one))
            words = []
    return rows[:1] + rows[1:][1 - ROWS :]


def line_of(
    what: str, one: Stage, width: int, utf: bool = True, *, bar: bool = True, left: Left | Literal[False] = None
) -> Text:
    """Return one line of at most ``width`` columns; words give way to numbers. ``left``: False, it stands elsewhere.

    >>> print(line_of("counting rows", Stage("", None, None), 40))
    counting rows                0:00, – left
    """
    unknown, cut, full, empty = ("–", "…", "━", "─") if utf else ("-", "~", "#", "-")
    share = one.share
    percent = "" if share is None else f"{int(100 * share):>3}%"
    times = clock(one.seconds)
    if left is not False:
        times += f", {_left(left, unknown)} left"
    tail = "  ".join(part for part in (percent, times if width >= NARROW else "") if part)
    line = Text(no_wrap=True, overflow="crop")
    bar = bar and share is not None and width >= WIDE
    room = max(width - len(tail) - 2 - (BAR + 2 if bar else 0), 0)
    line.append((set_cell_size(what, max(room - 1, 0)) + cut) if cell_len(what) > room else set_cell_size(what, room))
    if bar and share is not None:
        done = int(BAR * share)
        line.append("  ")
        line.append(full * done, "green")
        line.append(empty * (BAR - done), "dim")
    line.append(f"  {tail}")
    line.truncate(max(width, 0), overflow="crop")
    return line


def _left(left: Left, unknown: str) -> str:
    """Say how long it still takes.

    >>> _left(65.0, "?"), _left((60.0, 200.0), "?"), _left((1.0, 200.0), "?")
    ('1:05', '1:00 to 3:20', '?')
    """
    if left is None:
        return unknown
    if not isinstance(left, tuple):
        return clock(left)
    return f"{clock(left[0])} to {clock(left[1])}" if left[1] <= FAR * left[0] else unknown


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds.

    >>> clock(65.4), clock(3700)
    ('1:05', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
