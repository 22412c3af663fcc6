"""``concordant rank --time``: half-lives, abilities that move, their paths, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from test_command import call

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


@pytest.mark.parametrize("name", ["--output", "--paths", "--coefficients"])
def test_one_file_is_not_written_twice(tmp_path, capsys, name):
    log, target = tmp_path / "games.csv", tmp_path / "same.csv"
    log.write_text("date,home_team,away_team,home_score,away_score\n2026-01-01,a,b,2,1\n2026-01-02,b,a,2,0\n")
    asked = {"--output": tmp_path / "x.csv", "--paths": tmp_path / "y.csv", "--coefficients": tmp_path / "z.csv"}
    others = [other for other in asked if other != name]
    for other in others:
        files = asked | {name: target, other: target}
        words = [word for pair in files.items() for word in pair]
        status, _, err = call(capsys, "rank", log, "--home", "--time", "date", "--moving", *words)
        assert status == 2 and "both name" in err and not target.exists()


@pytest.mark.parametrize("drift", ["1e300", "1e-300"])
def test_a_drift_beyond_arithmetic_is_refused(tmp_path, capsys, drift):
    log = tmp_path / "games.csv"
    log.write_text("date,winner,loser\n2026-01-01,a,b\n2026-01-02,b,a\n")
    status, _, err = call(capsys, "rank", log, "--time", "date", "--moving", "--drift", drift)
    assert status == 2 and "above 0 (1e-09 to 1e+09)" in err
    for extreme in ("1e8", "1e-8"):
        assert call(capsys, "rank", log, "--time", "date", "--moving", "--drift", extreme)[0] == 0
