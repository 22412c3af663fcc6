"""``concordant evaluate RANKING VOTES``: what it prints is what the ranking answers; which file is which."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from test_command import call, rows

import concordant as cc
from concordant.losses.metrics.metrics import metric


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


FEATURES = "item,length,year\nanna,3,0\nbert,2,1\ncleo,1,0\ndora,0,1\n"


@pytest.fixture
def models(files, capsys):
    """A model for each target, fitted to the votes of one day."""
    (files / "items.csv").write_text(FEATURES)
    (files / "grades.csv").write_text("item,label\nanna,2\nbert,3\ncleo,0\ndora,1\n")
    for target in ("pairwise", "ndcg@2"):
        given = ["fit", files / "train.csv", "-f", files / "items.csv", "-m", files / target, "--target", target]
        assert call(capsys, *given)[0] == 0
    return files


@pytest.mark.parametrize(("target", "name"), [("pairwise", "pairwise-loss"), ("ndcg@2", "ndcg@2")])
def test_a_model_is_judged_by_what_it_was_fitted_for(models, capsys, target, name):
    """Held-out votes through the structure of the target, as ``score`` does; labels by the metric of that name."""
    features, test = models / "items.csv", models / "test.csv"
    status, out, err = call(capsys, "evaluate", models / target, test, "-f", features)
    (row,) = rows(out)
    ranker, votes = cc.load_model(models / target), cc.read(test)
    value = ranker.score(cc.read_features(features), votes)
    assert status == 0 and row["name"] == name and "log-abilities" not in err
    assert float(row["mean"]) == pytest.approx(1 - value if target == "pairwise" else value, abs=1e-12)
    assert 0 <= float(row["standard_error"]) < 0.1 and row["judgments"] == "200"
    status, out, _ = call(capsys, "evaluate", models / target, models / "grades.csv", "-f", features)
    (row,) = rows(out)
    labels = {"anna": 2, "bert": 3, "cleo": 0, "dora": 1}
    scores = ranker.predict(cc.read_features(features))
    judged = metric(target)(scores, [labels[one] for one in ("anna", "bert", "cleo", "dora")])[0]
    assert status == 0 and row["name"] == target and float(row["mean"]) == pytest.approx(judged, abs=1e-12)


def test_the_error_of_a_pairwise_loss_is_that_of_a_share(models, capsys):
    """Of votes without ties (p (1 − p)/n)^½, of clusters from their sums."""
    test, features = models / "test.csv", models / "items.csv"
    (row,) = rows(call(capsys, "evaluate", models / "pairwise", test, "-f", features)[1])
    p = float(row["mean"])
    assert float(row["standard_error"]) == pytest.approx(np.sqrt(p * (1 - p) / 200))
    (row,) = rows(call(capsys, "evaluate", models / "pairwise", test, "-f", features, "--cluster", "who")[1])
    lost = {}
    order = dict(
        zip(["anna", "bert", "cleo", "dora"], cc.load_model(models / "pairwise").predict(features), strict=True)
    )
    for line in test.read_text().splitlines()[1:]:
        left, right, winner, who = line.split(",")
        wrong = (order[left] > order[right]) != (winner == "left")
        lost[who] = lost.get(who, 0) + wrong - p
    assert float(row["standard_error"]) == pytest.approx(np.sqrt(sum(x**2 for x in lost.values())) / 200)


def test_scores_are_judged_by_the_target_asked_for(models, capsys):
    """As a row before those of the predictions; and of graded labels in the place of a metric."""
    ranking = models / "ranking.csv"
    assert call(capsys, "rank", models / "train.csv", "-o", ranking)[0] == 0
    plain = rows(call(capsys, "evaluate", ranking, models / "test.csv")[1])
    found = rows(call(capsys, "evaluate", ranking, models / "test.csv", "--target", "err@2")[1])
    assert [row["name"] for row in found] == ["err@2", *(row["name"] for row in plain)] and found[1:] == plain
    score = models / "scores.csv"
    assert call(capsys, "score", "-m", models / "pairwise", "-f", models / "items.csv", "-o", score)[0] == 0
    status, out, _ = call(capsys, "evaluate", score, models / "grades.csv", "--target", "precision@2")
    assert status == 0 and rows(out)[0]["name"] == "precision@2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["pairwise", "test.csv"], "it scores items by their features; name them with --features"),
        (["pairwise", "grades.csv", "-f", "items.csv", "--metric", "map", "--target", "err"], "--target does nothing"),
        (["pairwise", "grades.csv", "-f", "items.csv", "--score", "s"], "--score does nothing here"),
        (["items.csv", "grades.csv", "-f", "items.csv"], "--features does nothing here"),
        (["pairwise", "grades.csv", "-f", "items.csv", "--engine", "spark"], "concordant score --engine spark"),
        (["pairwise", "grades.csv", "-f", "items.csv", "--target", "precision"], "give a cut-off: precision@5"),
    ],
)
def test_what_a_model_cannot_be_judged_by(models, capsys, monkeypatch, options, said):
    monkeypatch.chdir(models)
    status, _, err = call(capsys, "evaluate", *options)
    assert status == 2 and said in err


def test_labels_are_scored_by_the_target():
    """Rankers of graded labels with a target; without one by nDCG@10 as ever."""
    X = {"query": ["q"] * 4, "item": list("abcd"), "x": [1.0, 2.0, 3.0, 4.0]}
    labels = [0, 3, 1, 2]
    for target, other in (("err@2", metric("err@2")), (None, metric("ndcg@10"))):
        ranker = cc.EdgeRanker("auto", target=target).fit(X, labels)
        value = other(ranker.predict(X), labels)[0]
        assert ranker.score(X, labels) == pytest.approx(value, abs=1e-12)


def test_coefficients_of_a_file_foretell_as_the_ranking_does(tmp_path, capsys):
    rng = np.random.default_rng(21)
    i, j = rng.integers(0, 8, (2, 900))
    i, j = i[i != j], j[i != j]
    margin, u = 0.5 + 0.3 * (j - i), rng.random(len(i))
    win, tie = expit(margin - 0.4), expit(margin + 0.4) - expit(margin - 0.4)
    goals = np.where(u < win, 1, np.where(u < win + tie, 0, -1))
    names = [f"t{k}" for k in range(8)]
    lines = [f"{names[a]},{names[b]},{max(g, 0)},{max(-g, 0)}" for a, b, g in zip(i, j, goals, strict=True)]
    past, new = tmp_path / "past.csv", tmp_path / "new.csv"
    for path, part in ((past, lines[:500]), (new, lines[500:])):
        path.write_text("\n".join(["home_team,away_team,home_score,away_score", *part, ""]))
    board, beside = tmp_path / "board.csv", tmp_path / "beside.csv"
    assert call(capsys, "rank", past, "--home", "--ties", "davidson", "-o", board, "--coefficients", beside)[0] == 0
    status, out, err = call(capsys, "evaluate", board, new, "--home", "--coefficients", beside)
    assert status == 0 and f"the coefficients of {beside}" in err
    found = {row["name"]: float(row["mean"]) for row in rows(out)}
    expected = (
        cc.rank(cc.read(past, home="left"), ties="davidson").evaluate(cc.read(new, home="left")).table.to_pylist()
    )
    assert found == pytest.approx({row["name"]: row["mean"] for row in expected}, rel=1e-9)
    assert f"the coefficients of {beside} (home advantage, ties (log ν))" in err and "half wins" not in err
    status, _, err = call(capsys, "evaluate", board, new)
    assert status == 0 and "no home side, no covariates, and ties are half wins" in err
    status, _, err = call(capsys, "evaluate", board, new, "--coefficients", beside)
    assert status == 2 and "covariates 'home', which these judgments lack" in err
    status, _, err = call(capsys, "evaluate", board, new, "--home")
    assert status == 2 and "add --coefficients" in err
    beside.write_text(beside.read_text() * 2)
    assert call(capsys, "evaluate", board, new, "--home", "--coefficients", beside)[0] == 2


def test_votes_are_read_aloud(files, capsys):
    """As ``rank`` reads them: a column that looks like who judged is named until it is used."""
    for name in ("train", "test"):
        path = files / f"{name}.csv"
        path.write_text(path.read_text().replace("who", "judge"))
    assert call(capsys, "rank", files / "train.csv", "-o", files / "r.csv")[0] == 0
    told = "the column 'judge' looks like who judged and is not used: --cluster judge"
    assert told in call(capsys, "evaluate", files / "r.csv", files / "test.csv")[2]
    assert told not in call(capsys, "evaluate", files / "r.csv", files / "test.csv", "--cluster", "judge")[2]


def test_parts_of_a_log_are_read_aloud(tmp_path, capsys):
    (tmp_path / "ballots.csv").write_text("ballot,rank1,rank2\n1,a,b\n2,b,c\n3,c,a\n4,a,c\n5,b,a\n")
    status, _, err = call(capsys, "evaluate", tmp_path / "ballots.csv", "--split", "random", "--folds", "2")
    assert status == 0
    assert "5 of 5 rankings leave out items of their query; that is read as no opinion" in err


def test_scores_that_are_all_equal_are_told(capsys, tmp_path):
    (tmp_path / "sc.csv").write_text("query,item,score\nq,a,1\nq,b,1\nr,a,2\nr,b,1\ns,a,3\ns,b,3\n")
    (tmp_path / "la.csv").write_text("query,item,label\nq,a,1\nq,b,0\nr,a,0\nr,b,1\ns,a,1\ns,b,1\n")
    status, _, err = call(capsys, "evaluate", str(tmp_path / "sc.csv"), str(tmp_path / "la.csv"))
    assert (
        status == 0 and "in 1 of 3 queries all scores are equal: 'ndcg@10' goes by the order of the rows there" in err
    )
    for more in (["--metric", "auc"], ["--convention", "trec"], ["--convention", "sklearn"]):
        assert (
            "are equal" not in call(capsys, "evaluate", *(str(tmp_path / f"{x}.csv") for x in ("sc", "la")), *more)[2]
        )
    (tmp_path / "sc.csv").write_text("query,item,score\nq,a,1\nq,b,2\nr,a,2\nr,b,1\ns,a,3\ns,b,3\n")
    assert "are equal" not in call(capsys, "evaluate", str(tmp_path / "sc.csv"), str(tmp_path / "la.csv"))[2]
