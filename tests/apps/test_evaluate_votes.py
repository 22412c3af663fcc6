"""``concordant evaluate RANKING VOTES``: what it prints is what the ranking answers; which file is which."""

from __future__ import annotations

import numpy as np
import pytest
from test_command import call, rows

import concordant as cc


def log(seed, count):
    rng = np.random.default_rng(seed)
    names, value = ["anna", "bert", "cleo", "dora"], np.array([0.8, 0.3, -0.3, -0.8])
    lines = ["left,right,winner,who"]
    for _ in range(count):
        i, j = rng.permutation(4)[:2]
        won = rng.random() < 1 / (1 + np.exp(value[j] - value[i]))
        lines.append(f"{names[i]},{names[j]},{'left' if won else 'right'},{rng.integers(9)}")
    return "\n".join([*lines, ""])


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.csv").write_text(log(0, 300))
    (tmp_path / "test.csv").write_text(log(1, 200))
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "arrow"])
@pytest.mark.parametrize("cluster", [None, "who"])
def test_a_ranking_is_judged_by_votes_of_another_day(files, capsys, ending, cluster):
    ranking = files / f"ranking.{ending}"
    assert call(capsys, "rank", files / "train.csv", "-o", ranking)[0] == 0
    more = [] if cluster is None else ["--cluster", cluster]
    status, out, err = call(capsys, "evaluate", ranking, files / "test.csv", *more)
    assert status == 0 and "log-abilities" in err
    twin = (
        cc.rank(cc.read(files / "train.csv")).evaluate(cc.read(files / "test.csv", cluster=cluster)).table.to_pylist()
    )
    for row, other in zip(rows(out), twin, strict=True):
        assert row["name"] == other["name"] and int(row["judgments"]) == 200
        assert np.allclose([float(row["mean"]), float(row["standard_error"])], [other["mean"], other["standard_error"]])


def test_components_and_items_without_a_score_are_not_predicted(files, capsys):
    (files / "train.csv").write_text("winner,loser\na,b\nb,a\nx,y\ny,x\n")
    (files / "test.csv").write_text("winner,loser\na,b\na,x\nnew,a\n")
    assert call(capsys, "rank", files / "train.csv", "-o", files / "r.csv")[0] == 0
    status, out, err = call(capsys, "evaluate", files / "r.csv", files / "test.csv")
    assert status == 0 and "2 judgments of 3 not predicted: the ranking has no score of 'new'" in err
    assert rows(out)[0]["judgments"] == "1"


def test_labels_stay_labels(files, capsys):
    (files / "scores.csv").write_text("item,score\nanna,1\nbert,2\n")
    (files / "labels.csv").write_text("item,label\nanna,1\nbert,0\n")
    status, out, _ = call(capsys, "evaluate", files / "scores.csv", files / "labels.csv", "--metric", "auc")
    assert status == 0 and rows(out)[0]["name"] == "auc"
    for more, said in (
        (["--cluster", "who"], "labels.csv holds labels, not judgments"),
        (["--winner", "who"], "labels.csv holds labels, not judgments"),
    ):
        status, _, err = call(capsys, "evaluate", files / "scores.csv", files / "labels.csv", *more)
        assert status == 2 and said in err
    for more, said in (
        (["--metric", "map"], "holds judgments"),
        (["--per-query"], "holds judgments"),
        (["map"], "which no metric such as 'map' reads"),
    ):
        status, _, err = call(capsys, "evaluate", files / "scores.csv", files / "test.csv", *more)
        assert status == 2 and said in err and err.count("\n") == 1
