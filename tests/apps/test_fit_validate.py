"""``concordant fit`` with boosted trees, what it holds out, options of regressors, and missing values."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
import pytest

import concordant as cc
from running import exit_status

Command = Callable[..., tuple[int, str, str]]
TREES = {"boosted": "rounds=12", "lightgbm": "n_estimators=9", "xgboost": "n_estimators=9"}
TREES |= {"hist-gradient-boosting": "max_iter=9"}


@pytest.fixture
def concordant(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process; return exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = exit_status(*arguments)
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Grades and votes by a truth that is not linear, of 24 queries to learn from and 8 others."""
    draw = np.random.default_rng(11)
    names = ["train.txt", "other.txt", "votes.csv", "other.csv", "items.csv"]
    made: dict[str, list[str]] = {name: [] for name in names}
    made["votes.csv"], made["other.csv"] = ["query,winner,loser"], ["query,winner,loser"]
    made["items.csv"] = ["query,item,age,price,noise"]
    for q in range(32):
        X = draw.normal(size=(12, 3))
        truth = np.abs(X[:, 0]) * 2 + X[:, 1]
        for i in range(12):
            values = " ".join(f"{k + 1}:{X[i, k]}" for k in range(3))
            line = f"{np.digitize(truth[i], [0.5, 1.5, 3.0])} qid:{q + 1} {values} # d{q}-{i}"
            made["train.txt" if q < 24 else "other.txt"].append(line)
            made["items.csv"].append(",".join([f"q{q}", f"d{i}", *map(str, X[i])]))
        for _ in range(40):
            i, j = draw.choice(12, 2, replace=False)
            won = draw.random() < 1 / (1 + np.exp(truth[j] - truth[i]))
            pair = (i, j) if won else (j, i)
            made["votes.csv" if q < 24 else "other.csv"].append(f"q{q},d{pair[0]},d{pair[1]}")
    for name, lines in made.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def evaluated(concordant: Command, *arguments: object) -> float:
    """The number that another command has for the model."""
    status, out, err = concordant("evaluate", "model", *arguments)
    assert status == 0 and "when the model was fitted: " in err, err
    return float(rows(out)[0]["mean"])


LABELS = (["train.txt"], ["other.txt"], ["other.txt"])
VOTES = (["votes.csv", "-f", "items.csv"], ["other.csv"], ["other.csv", "-f", "items.csv"])


@pytest.mark.parametrize("given", [LABELS, VOTES], ids=["labels", "votes"])
@pytest.mark.parametrize("regressor", TREES)
def test_the_curve_of_trees_on_a_file(regressor: str, given: tuple[list[str], ...], concordant: Command) -> None:
    learned, held, judged = given
    options = ["-r", regressor, "--regressor-options", TREES[regressor], "--target", "ndcg@5"]
    one = ["--loss", "ndcg-pairwise" if given is LABELS else "informed"] if regressor == "boosted" else ["--quiet"]
    status, out, err = concordant("fit", *learned, "-m", "model", *options, *one, "--validate", *held)
    assert status == 0, err
    found = rows(out)
    (chosen,) = (row for row in found if row["chosen"] == "true")
    assert [int(row["trees"]) for row in found] == list(range(len(found)))
    assert float(found[0]["loss"]) > float(chosen["loss"])  # no linear scorer orders by |x|
    if regressor == "boosted":
        assert float(chosen["loss"]) == min(float(row["loss"]) for row in found)
        assert f"ndcg@5 {1 - float(chosen['loss']):.4f} ± " in err
    else:
        assert len(found) == 10 and chosen is found[-1]
    assert 1 - float(chosen["loss"]) == pytest.approx(evaluated(concordant, *judged), abs=1e-9)


def test_boosted_trees_on_an_eval_set_are_those_of_the_class(concordant: Command) -> None:
    assert concordant("fit", "train.txt", "-m", "model", "-r", "boosted", "--validate", "other.txt")[0] == 0
    held = cc.read_judged("other.txt")
    ranker = cc.BoostedRanker().fit(*cc.read_judged("train.txt"), eval_set=held)
    kept = cc.load_model("model")
    assert np.array_equal(kept.predict(held[0]), ranker.predict(held[0]))
    assert kept.status_["validation"]["curves"] == ranker.curve_
    assert kept.status_["validation"]["held_out"] == "other.txt"


@pytest.mark.parametrize("given", [LABELS, VOTES], ids=["labels", "votes"])
def test_what_is_held_out_is_never_learned_from(given: tuple[list[str], ...], concordant: Command) -> None:
    learned, held, _ = given
    assert concordant("fit", *learned, "-m", "model", "-r", "linear", "--validate", *held)[0] == 0
    assert concordant("fit", *learned, "-m", "alone", "-r", "linear")[0] == 0
    assert np.array_equal(cc.load_model("model").coef_, cc.load_model("alone").coef_)
    status, out, err = concordant("fit", *learned, "-m", "part", "-r", "linear", "--validate", "0.25")
    assert status == 0, err
    (row,) = rows(out)
    parts = _fitted_to_what_is_left(given is LABELS)
    assert np.allclose(cc.load_model("part").coef_, parts[0], atol=1e-12)
    assert float(row["mean"]) == pytest.approx(parts[1], abs=1e-12)


def _fitted_to_what_is_left(labelled: bool) -> tuple[np.ndarray, float]:
    """Coefficients without six of the 24 queries, those that the seed deals first, and what these say of them."""
    apart = np.random.default_rng(0).permutation(24)[:6]
    if labelled:
        features, labels = cc.read_judged("train.txt")
        held = np.isin(features.query, apart)
        ranker = cc.ListRanker().fit(features.take(~held), labels[~held])
        judge = cc.ndcg(ranker.predict(features.take(held)), labels[held], features.query[held], at=10)
        return ranker.coef_, float(np.mean(judge))
    votes, features = cc.read("votes.csv"), cc.read_features("items.csv")
    names = votes.queries.tolist()
    gone = [names[place] for place in apart]
    held = np.isin(np.array(features.queries.tolist())[features.query], gone)
    kept = [name for name in names if name not in gone]
    ranker = cc.AggregationRanker().fit(features.take(~held), votes.select(kept))
    return ranker.coef_, 1 - ranker.score(features.take(held), votes.select(gone))


@pytest.mark.parametrize("more", [[], ["-r", "linear"], ["-r", "hist-gradient-boosting"], ["--target", "pairwise"]])
def test_one_query_has_no_standard_error(more: list[str], concordant: Command, folder: Path) -> None:
    lines = (folder / "other.txt").read_text().splitlines()
    (folder / "one.txt").write_text("".join(f"{line}\n" for line in lines if " qid:25 " in line))
    status, out, err = concordant("fit", "train.txt", "-m", "model", *more, "--validate", "one.txt")
    assert status == 0 and "on what was held out: one.txt, 1 query" in err, err
    kept = cc.load_model("model").status_["validation"]
    features, labels = cc.read_judged("one.txt")
    scores = cc.load_model("model").predict(features)
    if "pairwise" in more:  # a share of the most that can be lost
        lost = cc.pairwise_loss(scores, labels) / cc.pairwise_loss(-labels, labels)
        assert kept["name"] == "normalised pairwise-loss" and kept["mean"] == pytest.approx(lost[0])
    else:
        assert kept["mean"] == pytest.approx(cc.ndcg(scores, labels, at=10)[0])
    assert kept["standard_error"] is None
    assert (row := rows(out)[0]).get("standard_error", "") == "" and row


def test_values_that_are_missing_are_told_where_nothing_is_named(concordant: Command, folder: Path) -> None:
    """The linear scorer that is taken has them at the mean of their feature, and says so."""
    draw = np.random.default_rng(12)
    lines = []
    for q in range(20):
        for _ in range(8):
            X = draw.normal(size=2)
            second = "NULL" if draw.random() < 0.3 else str(X[1])
            lines.append(f"{np.digitize(X[0], [-1, 0, 1])} qid:{q + 1} 1:{X[0]} 2:{second}")
    (folder / "gaps.txt").write_text("\n".join(lines) + "\n")
    status, _, err = concordant("fit", "gaps.txt", "-m", "model")
    number = sum("NULL" in line for line in lines)
    assert status == 0 and f"{number} of 320 values of features are missing: the linear scorer has each at the" in err
    assert cc.load_model("model").missing == "mean"
    assert "values of features" not in concordant("fit", "train.txt", "-m", "other")[2]


def test_votes_can_be_judged_by_grades(concordant: Command, folder: Path) -> None:
    rewritten = (folder / "items.csv").read_text().replace("age,price,noise", "1,2,3")
    (folder / "items.csv").write_text(rewritten)
    status, out, err = concordant("fit", "votes.csv", "-f", "items.csv", "-m", "model", "--validate", "other.txt")
    assert status == 0, err
    judged, labels = cc.read_judged("other.txt")
    scores = cc.load_model("model").predict(judged)
    assert float(rows(out)[0]["mean"]) == pytest.approx(np.mean(cc.ndcg(scores, labels, judged.query, at=10)))


def test_a_table_on_a_terminal_is_short(concordant: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant.apps.commands import fit

    shown = []
    monkeypatch.setattr(fit, "put_table", lambda table: shown.append(table))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    options = ("-r", "boosted", "--loss", "ndcg-pairwise", "--regressor-options", "early_stopping=70", "-q")
    assert concordant("fit", "train.txt", "-m", "model", "--validate", "other.txt", *options)[0] == 0
    (table,) = shown
    curve = cc.load_model("model").status_["validation"]["curves"]["ndcg-pairwise"]
    assert len(curve) > 70 and len(table) < 20
    assert [curve[trees] for trees in table["trees"].to_pylist()] == table["loss"].to_pylist()
    assert table["trees"].to_pylist()[-1] == len(curve) - 1 and min(curve) in table["loss"].to_pylist()


def test_settings_reach_the_regressor(concordant: Command) -> None:
    given = [
        word for one in ("n_estimators=4", "num_leaves=5", "learning_rate=.5") for word in ("--regressor-options", one)
    ]
    assert concordant("fit", "train.txt", "-m", "model", "-r", "lightgbm", *given)[0] == 0
    own = lightgbm.LGBMRegressor(n_estimators=4, num_leaves=5, learning_rate=0.5, random_state=0, verbose=-1)
    features, labels = cc.read_judged("train.txt")
    wanted = cc.ListRanker(regressor=own).fit(features, labels).predict(features)
    assert np.allclose(cc.load_model("model").predict(features), wanted, atol=1e-12)
    given = ["--regressor-options", "rounds=3", "--regressor-options", "max_depth=1", "--folds", "2", "--seed", "4"]
    assert concordant("fit", "train.txt", "-m", "model", "-r", "boosted", *given, "--loss", "gain-regression")[0] == 0
    own = cc.BoostedRanker("gain-regression", rounds=3, options={"max_depth": 1}, folds=2, seed=4).fit(features, labels)
    assert np.array_equal(cc.load_model("model").predict(features), own.predict(features))


def test_monotone_by_name(concordant: Command) -> None:
    options = ("-r", "boosted", "--monotone", "price=+1,noise=-1", "--regressor-options", "rounds=20")
    status, _, err = concordant("fit", "votes.csv", "-f", "items.csv", "-m", "model", *options)
    assert status == 0, err
    ranker, X = cc.load_model("model"), cc.read_features("items.csv").X
    for place, sign in ((1, 1), (2, -1)):
        moved = X.copy()
        moved[:, place] += 0.7
        assert (sign * (ranker.predict(moved) - ranker.predict(X)) >= -1e-12).all()


def test_missing_values_are_kept_where_the_regressor_knows_them(concordant: Command, folder: Path) -> None:
    lines = (folder / "train.txt").read_text().splitlines(keepends=True)
    lines = [line.replace(" 3:", " 3:NULL #", 1) if at % 3 else line for at, line in enumerate(lines)]
    (folder / "holes.txt").write_text("".join(lines))
    gaps = sum("NULL" in line for line in lines)
    for regressor in TREES:
        options = ("-r", regressor, "--regressor-options", TREES[regressor])
        status, _, err = concordant("fit", "holes.txt", "-m", "model", *options)
        assert status == 0 and f"{gaps} of 864 values of features are missing: the " in err, err
        assert ("at the mean" in err) == (regressor == "boosted")
        assert cc.load_model("model").missing_ == "keep"
        assert concordant("score", "-m", "model", "-f", "holes.txt")[0] == 0
    for options in ([], ["--validate", "holes.txt"], ["--validate", "0.2"]):  # the best of the family
        (folder / "more.txt").write_text((folder / "holes.txt").read_text().replace("qid:", "qid:9"))
        options = ["more.txt" if one == "holes.txt" else one for one in options]
        status, _, err = concordant("fit", "holes.txt", "-m", "model", *options)
        assert status == 0 and "held-out queries best" in err, err
    for options in (["-r", "linear"], ["-r", "network"]):
        status, _, err = concordant("fit", "holes.txt", "-m", "model", *options)
        assert status == 2 and "fills what is missing (NaN) with --missing mean" in err, err
        status, _, err = concordant("fit", "holes.txt", "-m", "model", *options, "--missing", "keep")
        assert status == 2 and "does not know missing values; mean, median or zero fills them" in err
        assert concordant("fit", "holes.txt", "-m", "model", *options, "--missing", "mean")[0] == 0
    assert concordant("fit", "holes.txt", "-m", "model", "-r", "boosted", "--missing", "raise")[0] == 2


VOTED = ["votes.csv", "-f", "items.csv"]
REFUSED = [
    (["train.txt", "-r", "boostd"], "did you mean 'boosted'?"),
    (
        ["train.txt", "-r", "boosted", "--regressor-options", "round=3"],
        "boosted has no such option; did you mean 'rounds'?",
    ),
    (["train.txt", "-r", "boosted", "--regressor-options", "max_depth=x"], "max_depth is a number"),
    (["train.txt", "-r", "boosted", "--regressor-options", "rounds=x"], "rounds is a number"),
    (["train.txt", "-r", "xgboost", "--regressor-options", "max_depht=3"], "did you mean 'max_depth'?"),
    (["train.txt", "-r", "hist-gradient-boosting", "--regressor-options", "max_iter=-1"], "Got -1 instead"),
    (["train.txt", "-r", "lightgbm", "--regressor-options", "random_state=1"], "--seed N says it"),
    (["train.txt", "-r", "lightgbm", "--regressor-options", "n_estimators"], "write KEY=VALUE"),
    (["train.txt", "--regressor-options", "alpha=1"], "--regressor-options does nothing here: a linear scorer"),
    (["train.txt", "--monotone", "1=+1"], "--monotone does nothing here"),
    (["train.txt", "-r", "boosted", "--monotone", "4=+1"], "--monotone 4=+1: there is no such feature"),
    (["train.txt", "-r", "boosted", "--monotone", "1=2"], "write NAME=+1"),
    (["train.txt", "-r", "boosted", "--loss", "informed"], "no loss of grades for boosted trees; Known: err-pairwise"),
    ([*VOTED, "-r", "boosted", "--loss", "informed,x"], "--loss x is no loss of judgments for boosted trees"),
    ([*VOTED, "-r", "boosted", "--structure", "borda"], "--structure does nothing here"),
    ([*VOTED, "-r", "boosted", "--stream"], "need all features in memory"),
    ([*VOTED, "-r", "boosted", "--validate", "0.2", "--folds", "4"], "--folds does nothing here"),
    (["train.txt", "--validate", "1"], "--validate must be a file, or a share of the queries between 0 and 1, not '1'"),
    (["train.txt", "--validate", "train.txt"], "is LOG itself"),
    (["train.txt", "--validate", "votes.csv"], "votes.csv is no LETOR file"),
    (["train.txt", "--validate", "no.txt"], "no file no.txt"),
    ([*VOTED, "--validate", "items.csv"], "items.csv"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED, ids=lambda one: one if isinstance(one, str) else "")
def test_what_is_refused(arguments: list[str], said: str, concordant: Command, folder: Path) -> None:
    status, out, err = concordant("fit", *arguments, "-m", "model")
    line = err.strip().splitlines()[-1]
    assert status == 2 and out == "" and line.startswith("error: ") and said in line, err
    assert not (folder / "model").exists()


def test_one_query_cannot_be_shared_out(concordant: Command, folder: Path) -> None:
    text = (folder / "votes.csv").read_text().splitlines()
    (folder / "votes.csv").write_text("\n".join([text[0], *(line for line in text if line.startswith("q3,"))]) + "\n")
    status, _, err = concordant("fit", *VOTED, "-m", "model", "--validate", "0.5")
    assert status == 2 and "holds out whole queries, and there is one; name a file of other judgments" in err


def test_a_share_with_nothing_to_judge_is_an_error(concordant: Command, folder: Path) -> None:
    (folder / "other.txt").write_text(
        "\n".join("0" + line[1:] for line in (folder / "other.txt").read_text().splitlines())
    )
    status, _, err = concordant("fit", "train.txt", "-m", "model", "--validate", "other.txt")
    assert status == 2 and "--validate: nothing can be judged by other.txt" in err
    assert not (folder / "model").exists()


def test_without_lightgbm_the_line_of_pip_is_said(concordant: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    for regressor, package in (("boosted", "'concordant[boosted]'"), ("lightgbm", "lightgbm")):
        status, _, err = concordant("fit", "train.txt", "-m", "model", "-r", regressor)
        assert status == 2 and err.count("\n") == 1 and f"pip install {package}" in err


def test_queries_that_were_learned_from_are_said(concordant: Command, folder: Path) -> None:
    text = (folder / "votes.csv").read_text().splitlines()
    (folder / "some.csv").write_text("\n".join([text[0], *text[1:400]]) + "\n")
    (folder / "more.csv").write_text("\n".join([text[0], *text[380:600]]) + "\n")
    status, _, err = concordant("fit", "some.csv", "-f", "items.csv", "-m", "model", "--validate", "more.csv")
    assert status == 0 and "1 of 6 queries that the scorer is validated on have the name of one" in err, err
