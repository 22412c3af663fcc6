"""``concordant score --abstain``: tiers beside the ranks, what they were chosen by, clear words where it cannot be."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.commands import main
from concordant.apps.models.saving import load_model, save_model
from concordant.io.read import read
from concordant.learning.features.reading import read_features

TRUTH = np.array([1.0, -0.5, 0.0])


@pytest.fixture
def score(capsys):
    """Run concordant score on the new items; return exit status, rows by (query, item), stderr."""

    def run(*arguments: object) -> tuple[int, dict[tuple[str, str], dict[str, str]], str]:
        try:
            main(["score", "--features", "new.csv", *(str(one) for one in arguments)])
            status = 0
        except SystemExit as stop:
            status = int(stop.code or 0)
        out = capsys.readouterr()
        return status, {(row["query"], row["item"]): row for row in csv.DictReader(out.out.splitlines())}, out.err

    return run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Items with three features; votes on those of old.csv; a model fitted to the first half of the votes."""
    draw = np.random.default_rng(5)
    votes: list[list[list[str]]] = [[], []]
    for table, queries in (("old.csv", range(8)), ("new.csv", range(8, 10))):
        rows = []
        for q in queries:
            X = draw.normal(size=(12, 3)) * [1.0, 2.0, 30.0]
            utility = X @ TRUTH
            rows += [[f"q{q}", f"d{i}", *X[i].tolist()] for i in range(12)]
            for n in range(80):
                i, j = draw.choice(12, 2, replace=False)
                won = draw.random() < 1 / (1 + np.exp(utility[j] - utility[i]))
                votes[n % 2] += [[f"q{q}", f"d{i}", f"d{j}"] if won else [f"q{q}", f"d{j}", f"d{i}"]] * (q < 8)
        _write(tmp_path / table, ["query", "item", "age", "price", "noise"], rows)
    for name, part in zip(("votes.csv", "held.csv"), votes, strict=True):
        _write(tmp_path / name, ["query", "winner", "loser"], part)
    monkeypatch.chdir(tmp_path)
    main(["fit", "votes.csv", "-f", "old.csv", "-m", "model", "--loss", "ranknet", "-q"])
    return tmp_path


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _tiers(rows: dict[tuple[str, str], dict[str, str]]) -> list[int]:
    return [int(row["tier"]) for row in rows.values()]


def test_gamma_given(score) -> None:
    status, rows, err = score("-m", "model", "--abstain", 0.2, "--gamma", 0.7, "--norm", 2)
    assert status == 0 and "at most γ = 0.7 apart (ℓ2, standardised features)" in err
    ranker = load_model("model")
    features = read_features("new.csv")
    Z = ranker.normaliser_.apply(features.X)
    found = list(rows.values())
    assert list(found[0]) == ["query", "item", "score", "rank", "tier"]
    better = 0
    for i, a in enumerate(found):
        for j, b in enumerate(found):
            if a["query"] == b["query"] and int(a["tier"]) < int(b["tier"]):
                assert int(a["rank"]) < int(b["rank"]) and np.linalg.norm(Z[i] - Z[j]) > 0.7
                better += 1
    assert better > 10
    status, rows, _ = score("-m", "model", "--abstain", 0.2, "--gamma", "inf")
    assert set(_tiers(rows)) == {1}


def test_gamma_chosen_by_held_out_judgments(score) -> None:
    given = ("-m", "model", "--judgments", "held.csv", "--judged-features", "old.csv")
    status, rows, err = score(*given, "--abstain", 0.4)
    made = AbstainingRanker(load_model("model"), cost=0.4).fit(read_features("old.csv"), read("held.csv"))
    assert status == 0 and _tiers(rows) == made.tiers(read_features("new.csv")).tolist()
    assert f"γ = {made.gamma_:.4g}" in err and "held-out pairs" in err and "without abstention" in err
    status, rows, err = score(*given, "--abstain", 0.2, "--abstain-by", "risk", "--share", 0.3)
    made = AbstainingRanker(load_model("model"), cost=0.2, by="risk", share=0.3)
    made.fit(read_features("old.csv"), read("held.csv"))
    assert status == 0 and _tiers(rows) == made.tiers(read_features("new.csv")).tolist()
    assert "estimated risk of a wrong order exceeds 0.2, as far as a share of 0.3 of the held-out pairs allows" in err
    assert "abstention does not pay at cost 0.9" in score(*given, "--abstain", 0.9)[2]
    assert score(*given, "--abstain", 0.9, "-q")[2] == ""


def test_a_model_kept_with_abstention(score, folder: Path) -> None:
    made = AbstainingRanker(load_model("model"), cost=0.3).fit(read_features("old.csv"), read("held.csv"))
    save_model(made, folder / "careful")
    new = read_features("new.csv")
    assert _tiers(score("-m", "careful")[1]) == made.tiers(new).tolist()
    assert _tiers(score("-m", "careful", "--abstain", 0.45)[1]) == made.with_cost(0.45).tiers(new).tolist()
    assert _tiers(score("-m", "careful", "--abstain", 0.1, "--gamma", 1.5)[1]) == (
        AbstainingRanker(made.ranker_, gamma=1.5).fit().tiers(new).tolist()
    )
    plain = score("-m", "model")[1]
    assert "tier" not in next(iter(plain.values()))
    kept = score("-m", "careful")[1]
    assert [row["rank"] for row in kept.values()] == [row["rank"] for row in plain.values()]


def test_labels_of_a_letor_file_choose_gamma_too(folder: Path, capsys) -> None:
    draw = np.random.default_rng(9)
    for name in ("train.txt", "held.txt", "test.txt"):
        X = draw.normal(size=(60, 3))
        grade = np.digitize(X @ TRUTH + draw.normal(size=60), [0.0, 1.0])
        values = [" ".join(f"{k + 1}:{X[i, k]}" for k in range(3)) for i in range(60)]
        (folder / name).write_text("".join(f"{grade[i]} qid:{i // 10} {values[i]} # d{i}\n" for i in range(60)))
    main(["fit", "train.txt", "-m", "graded", "-q"])
    main(["score", "-m", "graded", "-f", "test.txt", "--abstain", "0.4", "--judgments", "held.txt", "-o", "out.csv"])
    assert "held-out pairs" in capsys.readouterr().err
    header = (folder / "out.csv").read_text().splitlines()[0]
    assert header.replace('"', "") == "query,item,score,rank,tier"


def test_judgments_of_other_items_than_those_to_score(score, folder: Path) -> None:
    (folder / "others.csv").write_text("winner,loser\nx,y\ny,z\n")
    status, rows, err = score("-m", "model", "--abstain", 0.2, "--judgments", "others.csv")
    assert status == 2 and not rows and "no item of others.csv is in new.csv" in err and "--judged-features F" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--abstain", 0.2), "--abstain needs to know when: give --judgments LOG"),
        (("--gamma", 0.2), "--gamma says how to abstain; --abstain COST is missing"),
        (("--abstain", 2, "--gamma", 1), "cost is the price of an abstention"),
        (("--abstain", 0.2, "--gamma", "near"), "--gamma must be auto or a distance"),
        (("--abstain", 0.2, "--gamma", -1), "--gamma must be auto or a distance of at least 0, not '-1'"),
        (("--abstain", 0.2, "--gamma", 1, "--judgments", "held.csv"), "leave one of them out"),
        (("--abstain", 0.2, "--gamma", 1, "--judged-features", "old.csv"), "--judgments, which is missing"),
        (("--abstain", 0.2, "--gamma", "nan"), "--gamma must be auto or a distance of at least 0, not 'nan'"),
        (("--abstain", 0.2, "--abstain-by", "risk"), "--abstain-by risk needs --judgments LOG"),
        (("--abstain", 0.2, "--abstain-by", "risk", "--gamma", 1), "--gamma is for --abstain-by distance"),
        (
            ("--abstain", 0.2, "--abstain-by", "risk", "--gamma", 1, "--judgments", "held.csv"),
            "--gamma is for --abstain-by distance",
        ),
        (("--abstain", 0.2, "--judgments", "held.csv"), "have no features"),
        (("--abstain", 0.2, "--judgments", "none.csv"), "none.csv"),
        (("--abstain", 0.2, "--judgments", "held.csv", "-o", "held.csv"), "the file of judgments"),
        (
            ("--abstain", 0.2, "--judgments", "held.csv", "--judged-features", "old.csv", "-o", "old.csv"),
            "judged features",
        ),
        (("--abstain", 0.2, "--share", 7, "--judgments", "held.csv"), "share must be a number from 0 to 1"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(score, options: tuple[object, ...], said: str) -> None:
    status, rows, err = score("-m", "model", *options)
    assert status == 2 and said in err and not rows and len(err.strip().splitlines()) == 1
