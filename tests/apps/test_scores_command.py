"""concordant scores: what it prints and writes, and the picture."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import concordant as cc
from concordant.apps.commands import cli
from concordant.apps.report.critical_difference import _bars, _lanes, _marks, critical_difference
from seeds import seed


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(seed(0))
    lines = ["model," + ",".join(f"t{t}" for t in range(20))]
    for s in range(6):
        lines.append(f"m{s}," + ",".join(f"{v:.3f}" for v in rng.normal(size=20) + 2 * (s >= 4)))
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")


def called(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["scores", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_rows_go_into_a_pipe_and_sentences_to_stderr() -> None:
    result = called("wide.csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["system"] for row in rows[:2]} == {"m4", "m5"} and [row["tier"] for row in rows] == list("112222")
    assert [row["may_be_first"] for row in rows] == ["true", "true", *["false"] * 4]
    assert "6 systems, 20 tasks, 120 scores" in result.stderr and "2 tiers" in result.stderr
    assert "the best by mean score is one of 2 of 6 systems" in result.stderr


def test_everything_is_written() -> None:
    names = ("all.json", "pairs.csv", "averages.csv", "p.svg")
    flags = ("--output", "--pairs", "--averages", "--plot")
    result = called("wide.csv", *[word for pair in zip(flags, names, strict=True) for word in pair], "--top", "3")
    assert all(f"wrote {name}" in result.stderr for name in names) and result.stdout == ""
    board = cc.rank_scores(cc.read_scores("wide.csv"))
    data = json.loads(Path("all.json").read_text())
    assert [row["system"] for row in data["systems"]] == list(board.systems) and data["friedman"]["tasks"] == 20
    pairs = list(csv.DictReader(Path("pairs.csv").read_text().splitlines()))
    assert [float(row["p_max_t"]) for row in pairs] == pytest.approx(board.contrasts()["p_max_t"].to_pylist())
    assert len(list(csv.DictReader(Path("averages.csv").read_text().splitlines()))) == 6
    assert Path("p.svg").read_text() == critical_difference(board)


def test_error_rates_need_no_option() -> None:
    text = Path("wide.csv").read_text()
    Path("wer.csv").write_text(text.replace(",t", ",WER t"))
    best = called("wer.csv", "-q").stdout
    assert best == called("wide.csv", "-q", "--lower-is-better").stdout
    assert called("wer.csv", "-q", "--higher-is-better").stdout == called("wide.csv", "-q").stdout
    said = called("wer.csv").stderr
    assert "the best by mean score (the lowest)" in said and "(--higher-is-better turns it round)" in said


def test_the_first_few_are_marked() -> None:
    rows = list(csv.DictReader(io.StringIO(called("wide.csv", "--top", "2").stdout)))
    assert [row["may_be_top_2"] for row in rows] == ["true", "true", *["false"] * 4]


def test_lower_is_better() -> None:
    up, down = (
        list(csv.DictReader(io.StringIO(called("wide.csv", *more).stdout))) for more in ([], ["--lower-is-better"])
    )
    assert [row["system"] for row in down] == [row["system"] for row in up][::-1]
    assert [float(row["score"]) for row in down] == sorted(float(row["score"]) for row in up)
    refused = called("wide.csv", "--lower-is-better", "--lower", "t1", status=2)
    assert "--lower-is-better and --higher-is-better are of all tasks" in refused.stderr


def test_a_note_names_options_as_they_are_typed() -> None:
    Path("loss.csv").write_text("model,loss,mem\na,1,2\nb,2,3\n")
    assert "if so, say --lower loss" in called("loss.csv").stderr
    Path("m.csv").write_text("model,task,metric,score\na,x,acc,1\na,x,f1,2\n")
    assert "say which one with --metric acc" in called("m.csv", status=2).stderr


@pytest.mark.parametrize("by", ["median", "win-rate", "borda", "bradley-terry"])
def test_every_way_has_a_picture(by: str) -> None:
    called("wide.csv", "--by", by, "--plot", "p.svg")
    text = Path("p.svg").read_text()
    assert all(f"m{s}" in text for s in range(6)) and "A bar joins systems" in text
    ET.parse("p.svg")


# -- the picture -------------------------------------------------------------------------------------------------------
def test_bars_join_what_is_not_told_apart() -> None:
    apart = np.zeros((5, 5), bool)
    apart[0, 3:] = apart[1, 4] = True
    apart |= apart.T
    assert _bars(apart) == [(0, 2), (1, 3), (2, 4)] and _lanes([(0, 2), (1, 3), (2, 4)]) == [0, 1, 2]
    assert _lanes([(0, 1), (2, 3)]) == [0, 0] and _bars(np.ones((3, 3), bool)) == []


def test_marks_are_round_and_hold_all() -> None:
    assert _marks(0.21, 0.79) == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    assert _marks(3.0, 3.0) == [3.0]


def test_nemenyi_is_drawn_at_mean_ranks() -> None:
    board = cc.rank_scores(cc.read_scores("wide.csv"))
    drawn = critical_difference(board, nemenyi=True)
    test = board.friedman
    assert test is not None and f"CD = {test.critical_difference:.3g}" in drawn and "mean rank on 20 tasks" in drawn
    assert all(f"{rank:.3g}<" in drawn for rank in test.mean_ranks)
    ranks = sorted(test.mean_ranks)
    joined = [(b, e) for b, e in _bars(np.abs(np.subtract.outer(ranks, ranks)) >= test.critical_difference)]
    assert drawn.count('stroke-linecap="round"') == len(joined)


def test_names_are_escaped_and_many_systems_are_cut() -> None:
    rng = np.random.default_rng(0)
    names = [f"<b>{i}</b>&" for i in range(40)]
    rows = {"system": np.repeat(names, 8), "task": np.tile(np.arange(8), 40), "score": rng.normal(size=320)}
    drawn = critical_difference(cc.rank_scores(rows))
    root = ET.fromstring(drawn)
    assert "the first 30 of 40 systems" in drawn and sum("<b>" in "".join(t.itertext()) for t in root.iter()) >= 30
