"""Scorers of camps, and of means and spreads, kept and restored: the same bits, by rows that nobody judged."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.annotators.scorers import CampScorer, SpreadScorer
from running import exit_status


@pytest.fixture(scope="module")
def drawn():
    """Votes of two camps on twenty items with two features, by name; and ten new items."""
    random = np.random.default_rng(5)
    X = random.normal(size=(30, 2)) * [1.0, 40.0]
    wants = np.array([[1.5, 0.0], [-0.5, 0.04]])
    who = np.repeat(np.arange(18), 30)
    one = random.integers(20, size=len(who))
    other = (one + random.integers(1, 20, size=len(who))) % 20
    margin = ((X[one] - X[other]) * wants[(who > 11).astype(int)]).sum(1)
    won = random.random(len(who)) < 1 / (1 + np.exp(-margin))
    votes = cc.Preferences.from_comparisons(
        np.where(won, one, other), np.where(won, other, one), cluster=[f"p{name}" for name in who]
    )
    return votes, {"item": list(range(30)), "length": X[:, 0].tolist(), "price": X[:, 1].tolist()}


@pytest.fixture(scope="module")
def camps(drawn):
    votes, rows = drawn
    return cc.camps(votes, features=rows, number=2, prior=1.0, folds=2, starts=2)


@pytest.fixture(scope="module")
def spreads(drawn):
    votes, rows = drawn
    return cc.distributional(votes, rows, prior=1.0, spread_prior=1.0)


def test_camps_come_back_with_the_same_bits(camps, drawn, tmp_path):
    rows = drawn[1]
    again = cc.load_model(cc.save_model(camps, tmp_path / "camps"))
    assert type(again) is CampScorer and again.share_.tolist() == camps.share.tolist()
    assert again.camps(rows).tobytes() == camps.predict(rows).tobytes()
    assert again.predict(rows).tobytes() == camps.scorer.predict(rows).tobytes()
    X = np.column_stack([rows["length"], rows["price"]])
    plain = camps.coefficients @ (X - X[:20].mean(0)).T  # up to a constant that no order sees
    gaps = (again.camps(rows) - plain) - (again.camps(rows) - plain)[:, :1]
    np.testing.assert_allclose(gaps, 0, atol=1e-12)
    np.testing.assert_allclose(again.predict(rows), camps.share @ camps.predict(rows), rtol=1e-12, atol=1e-14)
    assert list(again.beside(rows)) == ["score_1", "score_2"]
    files = {path.name for path in (tmp_path / "camps").iterdir()}
    assert not [name for name in files if "pickle" in name]
    kept = (tmp_path / "camps" / "model.json").read_text(encoding="utf-8")
    assert '"p3"' not in kept, "who judged is not kept"
    assert np.load(tmp_path / "camps" / "share.npy").tolist() == camps.share.tolist()


def test_means_and_spreads_come_back_with_the_same_bits(spreads, drawn, tmp_path):
    rows = drawn[1]
    again = cc.load_model(cc.save_model(spreads.scorer, tmp_path / "spreads"))
    assert type(again) is SpreadScorer
    mean, spread = spreads.predict(rows)
    assert again.predict(rows).tobytes() == mean.tobytes() and again.spread(rows).tobytes() == spread.tobytes()
    assert again.quantile(0.1, rows).tobytes() == spreads.quantile(0.1, rows).tobytes()
    X = np.column_stack([rows["length"], rows["price"]])
    level = np.log(spread) - X @ spreads.spread_coefficients
    np.testing.assert_allclose(level, level[0], atol=1e-10)
    with pytest.raises(UsageError, match="share must lie between"):
        again.quantile(1.0, rows)


def test_what_cannot_be_kept_or_restored_is_refused(drawn, camps, tmp_path):
    votes, rows = drawn
    for found in (cc.camps(votes, number=2, prior=1.0, folds=2, starts=1), cc.distributional(votes, prior=1.0)):
        with pytest.raises(UsageError, match="without features knows the items that were judged"):
            cc.save_model(found, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match=r"concordant\.camps finds it"):
        camps.scorer.fit(rows, votes)
    with pytest.raises(InputError, match="width"):
        camps.predict({"item": [1], "length": [0.0], "width": [1.0]})
    values, arrays = camps.scorer.to_state()
    for wrong in ({"share": np.array([0.5, 0.4])}, {"camps": np.zeros(3)}, {"coef": np.zeros(3)}):
        with pytest.raises(InputError, match="the state of the ranker"):
            CampScorer.from_state(values, arrays | wrong)


def test_a_kept_scorer_is_audited_without_being_fitted_again(camps, drawn):
    votes, rows = drawn
    found = cc.axiom_audit(votes, camps.scorer, rows)
    assert "separability" not in found.table["axiom"].to_pylist()
    scores = dict(zip(rows["item"], camps.scorer.predict(rows)))
    assert found.violated("majority") == cc.axiom_audit(votes, scores).violated("majority")


def test_camps_are_kept_and_scored_on_the_command_line(drawn, camps, tmp_path, monkeypatch, capsys):
    votes, rows = drawn
    monkeypatch.chdir(tmp_path)
    columns = (votes.items.take(votes.winner), votes.items.take(votes.loser), votes.clusters.take(votes.cluster))
    rows_of_log = zip(*(column.to_pylist() for column in columns), votes.count.tolist())
    lines = [",".join(map(str, row)) for *row, count in rows_of_log for _ in range(count)]
    (tmp_path / "votes.csv").write_text("winner,loser,judge\n" + "\n".join(lines) + "\n")
    lines = [",".join(map(str, row)) for row in zip(*rows.values())]
    (tmp_path / "items.csv").write_text("item,length,price\n" + "\n".join(lines) + "\n")
    how = ["--features", "items.csv", "--number", "2", "--prior", "1", "--folds", "2", "--starts", "2"]
    assert exit_status("camps", "votes.csv", *how, "--model", "kept", "-o", "camps.json") == 0
    assert "wrote kept: the scorers of 2 camps" in capsys.readouterr().err
    assert json.loads((tmp_path / "camps.json").read_text())["share"] == cc.load_model("kept").share_.tolist()
    assert exit_status("score", "-m", "kept", "-f", "items.csv", "-o", "scores.csv") == 0
    with open("scores.csv", newline="") as file:
        scored = list(csv.DictReader(file))
    assert list(scored[0]) == ["query", "item", "score", "rank", "score_1", "score_2"] and len(scored) == 30
    expected = camps.predict(rows)
    np.testing.assert_allclose([float(row["score_2"]) for row in scored], expected[1], rtol=1e-6)
    capsys.readouterr()
    assert exit_status("score", "-m", "kept", "-f", "items.csv", "--stream", "-o", "s.csv") == 2
    assert "--in-memory" in capsys.readouterr().err
    assert exit_status("camps", "votes.csv", "--number", "2", "--model", "kept") == 2
    assert "--features" in capsys.readouterr().err
