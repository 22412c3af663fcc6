"""The part of a report that needs times: paths of the items that are best in the end, and ranks period by period."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.report.views import short
from concordant.preferences.preferences import Comparisons
from concordant.preferences.times import as_times, said_time
from concordant.ranking.over_time import Paths, rank_over_time
from concordant.ranking.rank import Ranking

Floats = NDArray[np.float64]
DRAWN, MOST = 8, 300
"""Items whose paths are drawn, and points of each."""
PERIODS, ROWS = 12, 50
"""Periods at whose ends ranks are shown, at most, and items, those that are best in the end."""
DAYS = (1, 2, 7, 14)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
LATELY = 0.25
"""Of the whole time: who was not judged for that long is not ranked any more."""
TICK = 1e-6
"""Of a day: what the end of a period is before the beginning of the next one."""


def over_time(prefs: Comparisons, level: float, ties: str | None) -> dict[str, Any]:
    """Paths and ranks of the first items. Errors: as ``rank_over_time``, where abilities cannot move."""
    paths = rank_over_time(prefs.pool(), level=level, ties="davidson" if ties == "davidson" and prefs.tied else "half")
    table, games = paths.to_arrow(), paths.fit.games
    begun, labels = periods_of(float(games.time.min()), float(games.time.max()), prefs.dated)
    before = begun[1:] - TICK if prefs.dated else np.nextafter(begun[1:], -np.inf)
    ends = [*before.tolist(), float(games.time.max())]
    starts = [end - LATELY * (ends[-1] - float(games.time.min())) for end in ends]
    whens, since = ([as_times(np.array([time]), prefs.dated)[0].as_py() for time in times] for times in (ends, starts))
    boards = paths.at_each(whens, since=since)
    best, series = _best(boards[-1]) or _best(paths.at()), []
    for item in best[:DRAWN]:
        rows = np.arange(games.start[item], games.start[item + 1])
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, MOST).astype(int))] if len(rows) > MOST else rows
        named = table.take(rows)
        points = [{"time": str(row["time"]), **{name: row[name] for name in ("score", "lower", "upper")}, "at": at}
                  for row, at in zip(named.to_pylist(), games.time[rows].tolist(), strict=True)]  # fmt: skip
        series.append({"item": short(str(prefs.items[item])), "points": points})
    said = f"{boards[-1].notes[-1]}. Who was not judged for a quarter of the whole time is not ranked any more."
    if ties == "cumulative":
        said += " Abilities that move know no thresholds: here a tie is half a win each, and a grade is a strength."
    periods = {"labels": labels, "at": ends} | _ranks(paths, boards, best) if len(boards) > 1 else None
    return {"dated": prefs.dated, "explained": said, "series": series, "periods": periods}


def periods_of(first: float, last: float, dated: bool) -> tuple[Floats, list[str]]:
    """Return when each of at most a dozen periods of equal length begins, and what they are called.

    Dates are cut into days, weeks, months or years. Numbers: whole ones if both ends are.

    >>> periods_of(0.0, 100.0, True)[1][:3]
    ['1970-01-01', '1970-01-15', '1970-01-29']
    >>> periods_of(0.0, 1000.0, True)[1][:3], periods_of(0.0, 4000.0, True)[1][:3]
    (['1970-01', '1970-04', '1970-07'], ['1970', '1971', '1972'])
    >>> periods_of(0.0, 20000.0, True)[1][-1]
    '2020–24'
    >>> periods_of(1.0, 3.0, False)[1], periods_of(0.0, 0.5, False)[1][1]
    (['1', '2', '3'], '0.041667')
    """
    if not dated:
        whole = first.is_integer() and last.is_integer()
        step = math.ceil((last - first + 1) / PERIODS) if whole else (last - first) / PERIODS
        begun = first + step * np.arange(PERIODS, dtype=np.float64)
        begun = begun[begun <= last] if step else begun[:1]
        digits = 3 + max(0, math.ceil(math.log10(max(abs(first), abs(last)) / step))) if step else 6
        return begun, [f"{time:.0f}" if whole else f"{time:.{digits}g}" for time in begun.tolist()]
    length = next((days for days in DAYS if math.ceil((last - first + 1) / days) <= PERIODS), None)
    if length is not None:
        begun = math.floor(first) + length * np.arange(PERIODS, dtype=np.float64)
        begun = begun[begun <= last]
        return begun, [said_time(time, True) for time in begun.tolist()]
    low, high = (int(np.datetime64(math.floor(time), "D").astype("M8[M]").astype(int)) for time in (first, last))
    length = next((some for some in MONTHS if high // some - low // some < PERIODS), MONTHS[-1])
    months = np.arange(low // length, high // length + 1) * length
    dates = months.astype("M8[M]").astype("M8[D]")
    names = [str(date)[: 4 if length % 12 == 0 else 7] for date in dates]
    if length > 12 and length % 12 == 0:  # 1990–99
        upto = [str(int(name) + length // 12 - 1) for name in names]
        names = [f"{one}–{end[2:] if one[:2] == end[:2] else end}" for one, end in zip(names, upto, strict=True)]
    return dates.astype(np.float64), names


def _best(board: Ranking) -> list[int]:
    """Items of the largest group that have a rank, the best first."""
    found: list[int] = board.item[(board.component == 1) & (board.rank > 0)].tolist()
    return found


def _ranks(paths: Paths, boards: list[Ranking], items: list[int]) -> dict[str, Any]:
    """Rank and range of each item in each period; None where it had not been judged, or not for long."""
    shown, cells = items[:ROWS], []
    for board in boards:
        rows = np.flatnonzero((board.component == 1) & (board.rank > 0))
        ranks = np.column_stack([board.rank, board.rank_lower, board.rank_upper])[rows].tolist()
        own = dict(zip(board.item[rows].tolist(), ranks, strict=True))
        cells.append([own.get(item) for item in shown])
    names = [short(str(paths.prefs.items[item])) for item in shown]
    return {"items": names, "ranks": cells, "left_out": len(items) - len(shown)}
