"""``concordant rank --time``: half-lives, abilities that move, their paths, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import concordant as cc
from running import exit_status
from seeds import seed


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(seed(3))
    rows = ["left,right,winner,neutral,date"]
    for at in range(240):
        one, other = rng.permutation(4)[:2]
        ahead = 0.5 * (one - other) * (1 - at / 120) + rng.normal()  # whoever was best is last in the end
        won = "left" if ahead > 0.4 else "right" if ahead < -0.4 else "tie"
        rows.append(f"{'abcd'[one]},{'abcd'[other]},{won},{rng.integers(2)},2026-{1 + at // 20:02d}-{1 + at % 20:02d}")
    path = tmp_path / "games.csv"
    path.write_text("\n".join(rows))
    return path


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines))


def test_abilities_move_and_their_paths_are_written(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, paths = tmp_path / "out.csv", tmp_path / "paths.csv"
    moving = ["rank", log, "--time", "date", "--moving"]
    assert exit_status(*moving, "--home", "--ties", "davidson", "-o", out, "--paths", paths) == 0
    said = capsys.readouterr().err
    assert "abilities at 2026-12-20 by all judgments; an ability moves by" in said
    assert "coefficient home" in said and "coefficient ties" in said
    votes = cc.read(log, time="date", home="left")
    board = cc.rank_over_time(votes, ties="davidson")
    assert [row["item"] for row in table(out)] == board.at().to_arrow()["item"].to_pylist()
    assert [float(row["score"]) for row in table(paths)] == pytest.approx(board.to_arrow()["score"].to_pylist())
    assert [row["time"] for row in table(paths)] == [str(day) for day in board.to_arrow()["time"].to_pylist()]
    early = tmp_path / "early.csv"
    assert exit_status(*moving, "--at", "2026-01-20", "-o", early) == 0
    assert table(early)[0]["item"] == "d" and table(out)[0]["item"] == "a"
    assert exit_status(*moving, "--at", "2027-06-01", "-o", early) == 0
    assert "by all judgments, a forecast; an ability" in capsys.readouterr().err


def test_half_lives(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert exit_status("rank", log, "--time", "date", "--half-life", "6w", "--at", "2026-06-30", "-o", out) == 0
    expected = cc.rank(cc.discounted(cc.read(log, time="date"), "6w", "2026-06-30")).to_arrow()
    assert [float(row["score"]) for row in table(out)] == pytest.approx(expected["score"].to_pylist())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time", "date"], "--time does nothing here: no model here reads when"),
        (["--moving"], "--moving does nothing here: it is about times, and no column says when"),
        (["--time", "date", "--moving", "--half-life", "6w"], "--half-life does nothing here"),
        (["--time", "date", "--moving", "--structure", "borda"], "--structure does nothing here"),
        (["--time", "date", "--moving", "--cluster", "left"], "--cluster does nothing here"),
        (["--time", "date", "--half-life", "6w", "--paths", "p.csv"], "--paths does nothing here: no ability moves"),
        (["--time", "winner", "--moving"], "have a time that is no number"),
        (["--time", "date", "--half-life", "six"], "a length of time is a positive number, with h, d, w or y"),
        (["--time", "date", "--moving", "--at", "2025-01-01"], "nothing had been judged"),
        (["--time", "date", "--moving", "--ties", "any-order"], "ties must be half or davidson"),
    ],
)
def test_what_does_nothing_is_refused(
    log: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status("rank", log, *options) == 2
    assert said in capsys.readouterr().err
