"""Two saved rankings beside each other: tables of items with scores and intervals, without the votes.

Of a saved ranking the intervals of single items are known, not which votes it rests on. The two are taken as
independent: the variance of a difference is the sum of both, each the square of half an interval over the quantile of
the normal law at its level. Where the boards share votes or judges a difference varies less than that. Scores are taken
less the mean of the items that both boards limit; where the boards have other items besides, the intervals are still
those around the means of each table. Source: a difference of independent estimates; Holm (1979) for all items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.boards.changes import BoardChange, came_and_went, check_common
from concordant.errors import InputError, Setting, counted, few
from concordant.preferences.frames import as_columns
from concordant.preferences.notes import Note
from concordant.preferences.values import numbers, texts
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.edge_tests import family_wise

Floats = NDArray[np.float64]
COLUMNS = ("item", "score", "lower", "upper")
"""Columns that a saved ranking needs; also read where they are there: query, component, rank, judgments."""


@dataclass(frozen=True, eq=False)
class _Saved:
    """The rows of a saved ranking."""

    items: list[str]
    score: Floats
    error: Floats
    """Standard errors; NaN where an interval has no end."""
    own: NDArray[np.bool_]
    """Whether the item is of the first component."""
    whole: dict[str, list[int | None]]
    """Rank and judgments."""

    @classmethod
    def of(cls, table: Any, name: str, level: float) -> _Saved:
        names = table.column_names if isinstance(table, pa.Table) else list(table)
        if lost := [column for column in COLUMNS if column not in names]:
            raise InputError(f"{name} is no saved ranking: no column {few(lost)} among {few(names, 20)}")
        more = [column for column in ("query", "component", "rank", "judgments") if column in names]
        columns = as_columns({column: table[column] for column in (*COLUMNS, *more)})
        if "query" in columns and (several := len(set(texts(columns["query"]).to_pylist()))) > 1:
            text = f"{name} holds the rankings of {several:,} queries; boards are compared as wholes: rank with "
            raise InputError(text, Setting("pool", True))
        items = ["" if item is None else str(item) for item in texts(columns["item"]).to_pylist()]
        if not items:
            raise InputError(f"{name} has no row")
        if "" in items:
            raise InputError(f"{name}: row {items.index('') + 1:,} names no item")
        if again := [item for item, times in Counter(items).items() if times > 1]:
            raise InputError(f"{name}: {counted(len(again), 'items')} with several rows ({few(again)}); each has one")
        score, lower, upper = (_numbers(columns[column], column, name) for column in COLUMNS[1:])
        if (wrong := np.flatnonzero((lower > score) | (score > upper) | ~np.isfinite(score))).size:
            row = int(wrong[0])
            raise InputError(
                f"{name}: {len(wrong):,} of {len(score):,} rows have no score within its interval (first: row "
                f"{row + 1:,}, {items[row]!r}: {lower[row]:g} … {upper[row]:g}, score {score[row]:g})"
            )
        half = np.where(np.isfinite(lower) & np.isfinite(upper), (upper - lower) / 2, np.nan)
        if np.isnan(half).all():
            raise InputError(
                f"{name} has no interval of any score: rank with intervals (", Setting("interval", "auto"), ")"
            )
        whole: dict[str, list[int | None]] = {
            column: _whole(columns[column], column, name) for column in ("rank", "judgments") if column in columns
        }
        own = (
            _numbers(columns["component"], "component", name) == 1
            if "component" in columns
            else np.ones(len(items), bool)
        )
        return cls(items, score, half / t_quantile(0.5 + level / 2, np.inf), own, whole)


def _numbers(column: Any, what: str, name: str) -> Floats:
    """Numbers, NaN where there is none or an infinite one. Errors (InputError): words."""
    read = numbers(column)
    null = np.asarray(column.is_null(nan_is_null=pa.types.is_floating(column.type)))
    words = np.array([str(value).strip().lower() in ENDLESS for value in column.to_pylist()])
    wrong = np.zeros(len(words), bool) if read.fault is None else (read.fault != 0) & ~null & ~words
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{name}: row {row + 1:,}: the {what} is no number ({column[row].as_py()!r})")
    return np.where(null | words, np.nan, read.values)


ENDLESS = frozenset({"", "inf", "-inf", "nan"})


def _whole(column: Any, what: str, name: str) -> list[int | None]:
    return [None if np.isnan(one) else int(one) for one in _numbers(column, what, name)]


def saved_changes(
    old: pa.Table | Mapping[str, Any], new: pa.Table | Mapping[str, Any], *, level: float = 0.95,
    names: Sequence[str] = ("the old board", "the new board"),
) -> BoardChange:  # fmt: skip
    """Say what changed between two saved rankings: the difference of each item's score, and how sure it is.

    ``old``, ``new``: columns item, score, lower, upper and, where they are there, query, component, rank, judgments, as
    ``concordant rank -o`` and ``Ranking.to_arrow`` give them; ``level``: that of their intervals, and of those of the
    differences; ``names``: what the two are called in errors. Columns of the result: as of ``board_changes``, without
    p_max_t and what moved an item. Errors (InputError): tables of several queries, items that stand there twice, scores
    that are no numbers or outside of their intervals, fewer than two items with an interval on both.

    >>> old = {"item": ["a", "b"], "score": [0.5, -0.5], "lower": [0.3, -0.7], "upper": [0.7, -0.3]}
    >>> new = {"item": ["a", "b"], "score": [0.0, 0.0], "lower": [-0.2, -0.2], "upper": [0.2, 0.2]}
    >>> print(saved_changes(old, new).lines()[1])
    - a: 0.500 → 0.000, -0.500 ± 0.144, p = 0.0011
    """
    sides = [_Saved.of(table, name, level) for table, name in zip((old, new), names, strict=True)]
    items = sorted({*sides[0].items, *sides[1].items})
    place = {item: at for at, item in enumerate(items)}
    score, variance = np.full((2, len(items)), np.nan), np.full((2, len(items)), np.nan)
    there, own = np.zeros((2, len(items)), bool), np.zeros((2, len(items)), bool)
    whole: dict[str, list[int | None]] = {}
    for at, (side, when) in enumerate(zip(sides, ("old", "new"), strict=True)):
        rows = [place[item] for item in side.items]
        score[at, rows], variance[at, rows], own[at, rows], there[at, rows] = side.score, side.error**2, side.own, True
        for column, values in side.whole.items():
            held = dict(zip(side.items, values, strict=True))
            whole[f"{column}_{when}"] = [held.get(item) for item in items]
    common, sure = there.all(axis=0), (own & np.isfinite(variance)).all(axis=0)
    check_common(items, there, sure)
    score -= score[:, sure].mean(axis=1, keepdims=True)
    difference, error = score[1] - score[0], np.where(sure, np.sqrt(variance.sum(axis=0)), np.inf)
    p_value = np.where(sure, 1.0, np.nan)
    moved = sure & (difference != 0)
    with np.errstate(divide="ignore"):
        p_value[moved] = two_sided(difference[moved] / error[moved], np.inf)
    holm = p_value.copy()
    holm[sure] = family_wise(p_value[sure], int(sure.sum()))
    half = t_quantile(0.5 + level / 2, np.inf) * error
    columns: dict[str, Any] = {"old": score[0], "new": score[1], "difference": difference}
    columns |= {"standard_error": np.where(common, error, np.nan)}
    columns |= {"lower": difference - half, "upper": difference + half, "p_value": p_value, "p_holm": holm}
    order = np.lexsort((-np.nan_to_num(score[1], nan=-np.inf), np.nan_to_num(p_value, nan=2.0)))
    made = {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
    made |= {name: pa.array(whole[name], pa.int64()) for name in sorted(whole, reverse=True)}
    table = pa.table({"item": pa.array(items), **made}).take(pa.array(order))
    text = (
        "a saved ranking does not hold its votes: the two boards are taken as independent, and where they share votes "
        "or judges differences are surer than is said here (of two logs it is known how sure)"
    )
    notes = [Note("independent", text)]
    text = "their intervals are taken as those of {level:g}% ({ask} names another level)"
    notes.append(Note("level", text, level=100 * level, ask=Setting("level")))
    if not (there == common).all():
        text = "scores are measured against the mean of the {number:items} that both boards limit"
        notes.append(Note("measured", text, number=int(sure.sum())))
    return BoardChange(table, 0, level, (*notes, *came_and_went(items, there, common & ~sure)))
