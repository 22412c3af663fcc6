"""When judgments were made: dates said and read, and judgments that count less the older they are."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError, counted
from concordant.preferences.counted import recounted
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.values import DAY, instant

Floats = NDArray[np.float64]

UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.25}
"""Units of durations, in days."""
FAINTEST = 2.0**-40
"""Judgments of less weight than that, against one of now, are left out: floating point would hardly see them."""


def timed(prefs: Preferences) -> Comparisons:
    """Return judgments that say when they were made. Errors: UsageError where they do not."""
    if not isinstance(prefs, Comparisons) or prefs.time is None:
        what = "" if prefs.kind in (None, "comparisons") else f" (these are {prefs.kind})"
        raise UsageError(f"this needs comparisons that say when they were made{what}; read them with ", Setting("time"))
    return prefs


def moment(value: Any, dated: bool) -> float:
    """Return a date, an instant or a number as times are kept. Errors: UsageError.

    >>> moment("1970-01-11", True), moment(3, False)
    (10.0, 3.0)
    """
    found: float | None = None
    if dated and isinstance(value, date | datetime | np.datetime64):
        found = instant(str(value)[:26])
    elif dated and isinstance(value, str):
        found = instant(value)
    elif not dated and isinstance(value, Real | str) and not isinstance(value, bool):
        try:
            found = float(value)
        except ValueError:
            found = None
    if found is None or not np.isfinite(found):
        what = "a date or instant in ISO 8601 (2026-03-31, 2026-03-31T18:30)" if dated else "a number"
        raise UsageError(f"a time of these judgments is {what}, not {value!r}")
    return found


def duration(value: Any, dated: bool) -> float:
    """Return a length of time, in days where times are dates. Errors: UsageError.

    >>> duration("2w", True), duration(2.5, False)
    (14.0, 2.5)
    """
    unit, number = 1.0, value
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.eE+-]+?)\s*([hdwy]?)\s*", value)
        number = found[1] if found else value
        if found and found[2]:
            unit = UNITS[found[2]] if dated else np.nan
    try:
        length = float(number) * unit
    except (TypeError, ValueError):
        length = np.nan
    if not 0 < length < np.inf:
        units = ", with h, d, w or y (365.25 days) behind it or in days" if dated else ", in the unit of the times"
        raise UsageError(f"a length of time is a positive number{units}, not {value!r}")
    return length


def as_times(values: Floats, dated: bool) -> pa.Array:
    """Return times as people read them: dates (instants where one is not at midnight), or numbers.

    >>> as_times(np.array([0.0, 31.0]), True).to_pylist()
    [datetime.date(1970, 1, 1), datetime.date(1970, 2, 1)]
    """
    if not dated:
        return pa.array(values)
    if (values == np.floor(values)).all():
        return pa.array(values.astype(np.int32)).cast(pa.date32())
    return pa.array(np.round(values * DAY * 1e6).astype(np.int64)).cast(pa.timestamp("us"))


def said_time(value: float, dated: bool) -> str:
    """Return a time as it is said.

    >>> said_time(0.5, True), said_time(3.0, False)
    ('1970-01-01 12:00:00', '3')
    """
    return str(as_times(np.array([value]), True)[0].as_py()) if dated else f"{value:g}"


def until(prefs: Preferences, at: Any) -> Comparisons:
    """Return the judgments that were made up to a time. Errors: UsageError where there are none, or without times."""
    known = timed(prefs)
    if at is None or known.time is None:
        return known
    last = moment(at, known.dated)
    rows = np.flatnonzero(known.time <= last)
    kept = keep(known, rows, known.count[rows], known.declared[:0])
    if not isinstance(kept, Comparisons):
        first = said_time(float(known.time.min()), known.dated)
        raise UsageError(f"no judgment was made up to {said_time(last, known.dated)}; the first is of {first}")
    if not (later := len(known) - len(kept)):
        return kept
    text = "{later:judgments} made after {when} {later:is|are} left out"
    return replace(kept, told=(*kept.told, Note("later", text, later=later, when=said_time(last, known.dated))))


def discounted(prefs: Preferences, half_life: Any, at: Any = None) -> Comparisons:
    """Return judgments that count less the older they are: of weight w · 2^(−age / half-life), age up to a time.

    Their number no longer says how much they tell, so intervals of a ranking are those of the sandwich. Judgments that
    are older than 40 half-lives are left out, those after ``at``, too.

    Parameters
    ----------
    prefs : comparisons with times.
    half_life : in the unit of the times; of dates in days, or a text such as '90d', '6w', '2y'.
    at : the time of which the ranking is (default: that of the last judgment).

    Errors: UsageError without times, for what is no length of time, where no judgment is left.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["a", "b"], ["b", "a"], time=["2026-01-01", "2026-01-31"])
    >>> discounted(votes, "30d").weight.tolist()
    [0.5, 1.0]
    """
    known = until(prefs, at)
    if known.time is None:
        return known
    length, now = duration(half_life, known.dated), float(known.time.max())
    now = now if at is None else moment(at, known.dated)
    share = np.exp2((known.time - now) / length)
    rows = np.flatnonzero(share >= FAINTEST)
    left: Preferences = keep(known, rows, known.count[rows], known.declared)
    if not isinstance(left, Comparisons):
        raise UsageError(f"all judgments are older than 40 half-lives at {said_time(now, known.dated)}")
    weight = share[rows] if left.weight is None else share[rows] * left.weight
    made = recounted(replace(left, weight=weight, time=None, dated=False), left.query, left.count)
    if not (faint := known.distinct - len(rows)):
        return made
    text = "{faint:judgments} older than 40 half-lives {faint:is|are} left out, and {gone} with them"
    gone = counted(len(known.items) - len(made.items), "items")
    number = len(known) - len(made)
    return replace(made, told=(*made.told, Note("faint", text, faint=number if faint else 0, gone=gone)))
