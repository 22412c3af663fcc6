"""A critical-difference picture as one SVG: systems on an axis, bars over those that the tasks do not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from concordant.boards.ranked_scores import ScoreBoard
from concordant.errors import UsageError, whole_number

INK, SOFT, GRID, BLUE = "#1d1d1f", "#6e6e73", "#d2d2d7", "#0b63ce"
WIDTH, MARGIN, LINE, LANE = 560, 24, 20, 9
"""Of the axis, around it, of a row of names, of a row of bars."""
CHARACTER = 7.0
LONGEST = 32


def critical_difference(board: ScoreBoard, *, nemenyi: bool = False, systems: int = 30) -> str:
    """Return the picture as the text of an SVG file.

    Systems stand where their scores are, the best on the left; a bar joins systems of which no two are told apart by
    the board's test of all pairs. With ``nemenyi`` the axis is the mean rank and bars are as long as Nemenyi's critical
    difference at most (Demšar, JMLR 7, 2006), over the tasks that all systems have. The first ``systems`` of the
    largest component are drawn.

    Errors: UsageError where fewer than two tasks have all systems, with ``nemenyi``.

    >>> import concordant as cc
    >>> scores = {"system": list("aabbcc"), "task": [1, 2] * 3, "score": [3, 4, 2, 2, 1, 3]}
    >>> cc.critical_difference(cc.rank_scores(scores)).startswith("<svg")
    True
    """
    most = whole_number(systems, "systems", least=2, most=200)
    if nemenyi:
        if (test := board.friedman) is None:
            raise UsageError(
                "fewer than two tasks have scores of all systems, so there are no ranks for Nemenyi’s test"
            )
        ranks = np.array(test.mean_ranks)
        order = np.argsort(ranks, kind="stable")
        value = ranks[order]
        apart = np.abs(value[:, None] - value) >= test.critical_difference
        title = f"mean rank on {test.tasks} {'clusters of tasks' if board.table.clustered else 'tasks'} (1 is the best)"
        said = "A bar joins systems whose mean ranks differ by less than the critical difference (Nemenyi"
        said += f", {100 * board.level:g}%)."
        return _picture(_names(board, order), value, apart, title, most, said, test.critical_difference)
    order = board.order[board.joint.group[board.order] == 0]
    apart = (board.above | board.above.T)[np.ix_(order, order)]
    said = f"A bar joins systems of which no two are told apart ({100 * board.level:g}%, all pairs at once)."
    return _picture(_names(board, order), board.score[order], apart, board.way, most, said)


def _names(board: ScoreBoard, order: NDArray[np.int64]) -> list[str]:
    return [board.table.systems[i] for i in order]


def _picture(
    names: Sequence[str],
    value: NDArray[np.float64],
    apart: NDArray[np.bool_],
    title: str,
    most: int,
    said: str,
    length: float | None = None,
) -> str:
    shown = min(most, len(names))
    of = "" if shown == len(names) else f", the first {shown} of {len(names)} systems"
    names = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names[:shown]]
    value = value[:shown]
    side = MARGIN + CHARACTER * (max(map(len, names)) + 8)
    first, last = float(value[0]), float(value[-1])
    marks = _marks(min(first, last), max(first, last))
    left, right = (marks[0], marks[-1]) if first <= last else (marks[-1], marks[0])

    def at(x: float) -> float:
        return side + WIDTH * ((x - left) / (right - left) if right != left else 0.5)

    bars = _bars(apart[:shown, :shown])
    lanes = _lanes(bars)
    axis = 78 if length is not None else 58
    rows = axis + 16 + LANE * (max(lanes, default=-1) + 1) + 8
    half = (shown + 1) // 2
    height = rows + LINE * half + 2 * MARGIN
    width = 2 * side + WIDTH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}" role="img">',
        f"<title>{escape(title + of)}</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
        f'<text x="{side + WIDTH / 2:g}" y="18" text-anchor="middle" font-weight="600">{escape(title + of)}</text>',
        f'<text x="{side:g}" y="18" fill="{SOFT}" font-size="12">← better</text>',
        f'<path d="M{side:g} {axis}H{side + WIDTH:g}" stroke="{INK}"/>',
    ]
    for mark in marks:
        parts.append(f'<path d="M{at(mark):.1f} {axis - 5}V{axis}" stroke="{INK}"/>')
        parts.append(
            f'<text x="{at(mark):.1f}" y="{axis - 9}" text-anchor="middle" font-size="11" fill="{SOFT}">{mark:g}</text>'
        )
    if length is not None and right != left:
        end = side + WIDTH * length / abs(right - left)
        ends = f"M{side:g} 34V42M{side:g} 38H{min(end, side + WIDTH):.1f}M{min(end, side + WIDTH):.1f} 34V42"
        parts.append(f'<path d="{ends}" stroke="{BLUE}" stroke-width="2" fill="none"/>')
        parts.append(
            f'<text x="{min(end, side + WIDTH) + 6:.1f}" y="42" font-size="11" fill="{BLUE}">CD = {length:.3g}</text>'
        )
    for (begin, last_), lane in zip(bars, lanes, strict=True):
        y = axis + 14 + LANE * lane
        span = sorted((at(float(value[begin])), at(float(value[last_]))))
        parts.append(
            f'<path d="M{span[0] - 3:.1f} {y}H{span[1] + 3:.1f}" stroke="{BLUE}" stroke-width="4" '
            'stroke-linecap="round"/>'
        )
    for i, name in enumerate(names):
        on_left = i < half
        y = rows + LINE * (i if on_left else shown - 1 - i) + 10
        x, stop = at(float(value[i])), side - 6 if on_left else side + WIDTH + 6
        parts.append(f'<path d="M{x:.1f} {axis}V{y:g}H{stop:g}" stroke="{SOFT}" stroke-width=".8" fill="none"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{axis}" r="2.5"/>')
        number = f'<tspan fill="{SOFT}" font-size="11">{value[i]:.3g}</tspan>'
        text = f"{escape(name)} {number}" if on_left else f"{number} {escape(name)}"
        anchor, place = ("end", stop - 4) if on_left else ("start", stop + 4)
        parts.append(f'<text x="{place:g}" y="{y + 4:g}" text-anchor="{anchor}">{text}</text>')
    parts.append(
        f'<text x="{width / 2:g}" y="{height - 14:g}" text-anchor="middle" font-size="12" fill="{SOFT}">{said}</text>'
    )
    return "\n".join([*parts, "</svg>\n"])


def _marks(low: float, high: float) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``."""
    if high <= low:
        return [low]
    rough = (high - low) / 6
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(one for one in (1, 2, 2.5, 5, 10) if one * unit >= rough * (1 - 1e-9))
    return [
        float(f"{step * n:.12g}") for n in range(int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9)) + 1)
    ]


def _bars(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The longest runs of the order, two systems at least, of which no two are told apart."""
    found: list[tuple[int, int]] = []
    reach = -1
    for begin in range(len(apart)):
        end = max(begin, reach)
        while end + 1 < len(apart) and not apart[begin : end + 2, begin : end + 2].any():
            end += 1
        if end > reach and end > begin:
            found.append((begin, end))
            reach = end
    return found


def _lanes(bars: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each bar: bars that touch lie in different rows."""
    ends: list[int] = []
    lanes = []
    for begin, end in bars:
        lane = next((row for row, last in enumerate(ends) if last < begin), len(ends))
        ends[lane : lane + 1] = [end]
        lanes.append(lane)
    return lanes
