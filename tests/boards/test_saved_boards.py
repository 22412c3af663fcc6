"""Saved rankings beside each other: against the formula, boards of the votes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import concordant as cc
from concordant.boards.saved_boards import saved_changes
from concordant.errors import InputError

OLD = {"item": ["a", "b", "c"], "score": [0.9, 0.1, -1.0], "lower": [0.5, -0.3, -1.2], "upper": [1.3, 0.5, -0.8]}
NEW = {"item": ["b", "c", "a"], "score": [0.6, -0.9, 0.3], "lower": [0.4, -1.1, 0.1], "upper": [0.8, -0.7, 0.5]}


def votes(seed: int, count: int = 400) -> cc.Preferences:
    rng = np.random.default_rng(seed)
    pair = np.array([rng.choice(5, 2, replace=False) for _ in range(count)])
    first = rng.random(count) < 1 / (1 + np.exp((pair[:, 1] - pair[:, 0]) * 0.5))
    names = np.array(list("abcde"))[np.where(first[:, None], pair, pair[:, ::-1])]
    return cc.Preferences.from_comparisons(names[:, 0], names[:, 1])


def test_differences_are_those_of_independent_scores() -> None:
    found = {row["item"]: row for row in saved_changes(OLD, NEW).table.to_pylist()}
    z = stats.norm.ppf(0.975)
    p = {}
    for name, old, new, one, other in (("a", 0.9, 0.3, 0.4, 0.2), ("b", 0.1, 0.6, 0.4, 0.2), ("c", -1, -0.9, 0.2, 0.2)):
        row, error = found[name], np.hypot(one, other) / z
        p[name] = 2 * stats.norm.sf(abs(new - old) / error)
        assert row["difference"] == pytest.approx(new - old)
        assert (row["standard_error"], row["p_value"]) == pytest.approx((error, p[name]))
        assert (row["lower"], row["upper"]) == pytest.approx((new - old - z * error, new - old + z * error))
    order = sorted(p, key=lambda name: p[name])
    holm = np.minimum(np.maximum.accumulate([p[name] * (3 - at) for at, name in enumerate(order)]), 1)
    assert [found[name]["p_holm"] for name in order] == pytest.approx(holm.tolist())


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_of_disjoint_logs_they_are_those_of_the_votes(level: float) -> None:
    boards = [cc.rank(votes(seed), interval="sandwich", level=level) for seed in (1, 2)]
    whole = {row["item"]: row for row in cc.board_changes(*boards, shared="none").table.to_pylist()}
    saved = saved_changes(*(board.to_arrow() for board in boards), level=level)
    for row in saved.table.to_pylist():
        twin = whole[row["item"]]
        assert all(row[name] == pytest.approx(twin[name], abs=1e-12) for name in ("old", "new", "difference"))
        same = twin["standard_error"] * np.sqrt((400 / 399) / (800 / 799))  # n/(n - 1) of each log, not of both
        assert row["standard_error"] == pytest.approx(same, rel=1e-9)
        assert all(row[name] == twin[name] for name in ("rank_old", "rank_new", "judgments_old", "judgments_new"))


def test_items_on_one_board_and_without_limits() -> None:
    old = {**OLD, "item": ["a", "b", "x"], "component": [1, 1, 1]}
    new = {
        "item": ["a", "b", "y", "x"], "score": [0.5, 0.3, 9.0, 4.0], "lower": [0.4, 0.2, 8.0, 1.0],
        "upper": [0.6, 0.4, 10.0, float("inf")], "component": [1, 1, 2, 1],
    }  # fmt: skip
    change = saved_changes(old, new)
    found = {row["item"]: row for row in change.table.to_pylist()}
    assert found["a"]["difference"] == pytest.approx(-0.3) and found["b"]["difference"] == pytest.approx(0.3)
    assert found["y"]["difference"] is None and found["x"]["p_value"] is None and found["x"]["p_holm"] is None
    assert {note.code for note in change.notes} == {"independent", "level", "measured", "entered", "not determined"}
    assert [worse for _, _, worse in change.worse(["x", "b"])] == [False, False]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"item": ["a", "b", "a"]}, "the new board: 1 item with several rows ('a'); each has one"),
        ({"item": ["a", None, "c"]}, "row 2 names no item"),
        ({"score": ["0.6", "high", "0.3"]}, "row 2: the score is no number ('high')"),
        ({"score": [0.6, None, 0.3]}, "1 of 3 rows have no score within its interval (first: row 2, 'c'"),
        ({"lower": [0.7, -1.1, 0.1]}, "(first: row 1, 'b': 0.7 … 0.8, score 0.6)"),
        ({"lower": [None] * 3, "upper": [None] * 3}, "has no interval of any score: rank with intervals"),
        ({"query": ["p", "q", "q"]}, "holds the rankings of 2 queries; boards are compared as wholes: rank with pool"),
        (
            {"item": ["x", "y", "z"]},
            "no item is on both boards: 'a', 'b', 'c' on the old one, 'x', 'y', 'z' on the new one",
        ),
        ({"item": ["x", "A", "B "]}, "'a' and 'A' differ by case or space alone"),
        ({"item": ["x", "y", "a"]}, "1 item on both boards with a limited score; two are needed"),
        ({key: [] for key in NEW}, "the new board has no row"),
        ({"upper": None}, "is no saved ranking: no column 'upper'"),
    ],
)
def test_what_is_refused(change: dict[str, Any], said: str) -> None:
    table = {name: column for name, column in {**NEW, **change}.items() if column is not None}
    with pytest.raises(InputError) as error:
        saved_changes(OLD, table)
    assert said in str(error.value)
