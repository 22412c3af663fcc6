"""How much memory a run may hold: said once by whoever starts it, heeded by what can do its work in smaller pieces.

>>> with bounded("64GB"):
...     limit()
64000000000
>>> limit() is None
True
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from concordant.errors import Setting, UsageError
from concordant.record import peak_memory, running

__all__ = ["at_once", "bounded", "bytes_of", "engine_share", "enough", "left", "limit", "needs", "resident", "said"]

UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
UNITS |= {f"{letter}{unit}": 1000**power for power, letter in enumerate("kmgt", 1) for unit in ("", "b")}
UNITS |= {f"{letter}i{unit}": 1024**power for power, letter in enumerate("kmgt", 1) for unit in ("", "b")}
LIBRARIES, ENGINE = 70 << 20, 48 << 20
"""Bytes of libraries that are loaded when they are needed, and the least that an engine does anything with."""
FINEST = 8
"""Into how many pieces the usual piece of work is cut at most: each costs a look at all of it."""
THREAD = 48 << 20
"""Bytes of an engine for each thread."""


class _Bound:
    """What a run may hold, who is told where that cannot be, and the most that it was seen to need."""

    def __init__(self, size: str, most: int, least: float, told: Callable[[str], object]) -> None:
        self.size, self.most, self.least, self.told, self.needed = size, most, least, told, 0.0


_LIMIT: ContextVar[_Bound | None] = ContextVar("concordant.memory", default=None)


def bytes_of(size: str) -> int:
    """Return a size such as 4GB or 512MiB in bytes. Errors: UsageError.

    >>> bytes_of("1.5 GB"), bytes_of("512MiB")
    (1500000000, 536870912)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*", str(size))
    unit = None if found is None else UNITS.get(found.group(2).lower())
    if found is None or unit is None or not float(found.group(1)):
        raise UsageError(Setting("memory_limit"), f" must be a size above 0, such as 4GB or 512MiB, not {size!r}")
    return int(float(found.group(1)) * unit)


def said(size: float) -> str:
    """Return a number of bytes in words.

    >>> said(1_940_000_000), said(312_000_000)
    ('1.9 GB', '310 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 995e6 else f"{max(round(size / 1e7) * 10, 10)} MB"


def resident() -> int:
    """Return the bytes of memory that this process holds now (where the system does not say, the most it has held)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_memory() or 0


@contextmanager
def bounded(size: str | None, told: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Let work inside the ``with`` hold no more than ``size`` ('500MB'), all of this process counted; None: no bound.

    ``told`` is called with a sentence as soon as it is known that the bound cannot be held.
    Errors (UsageError): a size that is none, or less than this process needs to do anything.
    """
    if size is None:
        yield
        return
    most, least = bytes_of(size), resident() + LIBRARIES + ENGINE
    sure = 1e7 * math.ceil(least / 1e7 + 1)  # another start takes some MB more or less
    if most < least:
        raise UsageError(
            Setting("memory_limit", size),
            f" cannot be held: the program itself takes about {said(least - ENGINE)}; give it {said(sure)} or more",
        )
    token = _LIMIT.set(_Bound(size, most, sure, told))
    try:
        yield
    finally:
        _LIMIT.reset(token)


def limit() -> int | None:
    """Return the bytes that this run may hold; None where nobody said."""
    bound = _LIMIT.get()
    return None if bound is None else bound.most


def left() -> int | None:
    """Return the bytes that may still be taken; None where nobody said."""
    most = limit()
    return None if most is None else max(most - resident(), 0)


def enough(more: float) -> float:
    """Return the limit that would do for work that holds so many bytes ``more``: one that can be given.

    >>> with bounded("64GB"):
    ...     enough(1e9) - enough(0) > 7e8
    True
    """
    bound = _LIMIT.get()
    return max(resident() + more, 0.0 if bound is None else bound.least)


def needs(more: float, what: str) -> None:
    """Take note that work that begins will hold so many bytes ``more``, for ``what``; say so where the bound is less.

    >>> with bounded("64GB", print):
    ...     needs(5e6, "5 judgments")
    """
    bound = _LIMIT.get()
    if bound is None:
        return
    needed = resident() + more
    if needed > bound.most and needed > 1.1 * bound.needed:
        bound.told(f"needs about {said(needed)}: {what}; the limit of {bound.size} cannot be held")
    bound.needed = max(bound.needed, needed)
    if (run := running()) is not None:
        run.more["needed_memory_bytes"] = int(bound.needed)


def engine_share(size: str | None, threads: int | None) -> tuple[str | None, int | None]:
    """Return what an engine may hold and its threads, for the limit of a whole run: two thirds of what is left.

    Its answer needs room beside it. Without a bound what was asked of the engine is what it gets.
    """
    room = left()
    if room is None:
        return size, threads
    share = max(2 * room // 3, ENGINE)
    share = share if size is None else min(share, bytes_of(size))
    return f"{share}B", threads or max(min(share // THREAD, os.cpu_count() or 1), 1)


def at_once(usual: float, each: float) -> float:
    """Return how much may be worked on at a time, where each takes so many bytes: ``usual``, or what there is room for.

    >>> at_once(1000, 8)
    1000
    """
    room = left()
    return usual if room is None else min(usual, max(room / 2 / each, usual / FINEST))
