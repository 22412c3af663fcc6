"""``concordant fit`` and ``score``: three commands from votes to judged scores; bad input is one clear line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from threadpoolctl import threadpool_limits

from concordant.apps.models.saving import load_model, save_model
from concordant.errors import UsageError
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.preferences.preferences import Preferences
from running import exit_status

TRUTH = np.array([1.0, -0.5, 0.0])


@pytest.fixture
def concordant(capsys):
    """Run the command in this process; return exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = exit_status(*arguments)
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Items with three features, votes about them in 12 queries by a known linear truth, and their labels."""
    draw = np.random.default_rng(5)
    items = [("features.csv", "train.txt", range(12)), ("new.csv", "test.txt", range(12, 18))]
    votes = []
    for table, letor, queries in items:
        rows, lines = [], []
        for q in queries:
            X = draw.normal(size=(15, 3))
            utility = X @ TRUTH
            grade = np.digitize(utility, [-1.0, 0.3, 1.2])
            for i in range(15):
                rows.append([f"q{q}", f"d{i}", *X[i].tolist()])
                values = " ".join(f"{k + 1}:{X[i, k]}" for k in range(3))
                lines.append(f"{grade[i]} qid:{q + 1} {values} # d{i}")
            for _ in range(60):
                i, j = draw.choice(15, 2, replace=False)
                won = draw.random() < 1 / (1 + np.exp(utility[j] - utility[i]))
                votes.append([f"q{q}", f"d{i}", f"d{j}"] if won else [f"q{q}", f"d{j}", f"d{i}"])
        _write(tmp_path / table, ["query", "item", "age", "price", "noise"], rows)
        (tmp_path / letor).write_text("\n".join(lines) + "\n")
    _write(tmp_path / "votes.csv", ["query", "winner", "loser"], [v for v in votes if int(v[0][1:]) < 12])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_three_commands_from_votes_to_judged_scores(concordant, folder: Path) -> None:
    status, out, err = concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model")
    assert status == 0, err
    assert out.splitlines()[0] == "ridge,loss,standard_error,chosen" and "wrote model/" in err
    status, _, err = concordant("score", "-m", "model", "-f", "new.csv", "-o", "scores.csv")
    assert status == 0, err
    scores, new = _read(folder / "scores.csv"), _read(folder / "new.csv")
    assert [(row["query"], row["item"]) for row in scores] == [(row["query"], row["item"]) for row in new]
    for query in {row["query"] for row in scores}:
        rows = [row for row in scores if row["query"] == query]
        order = sorted(rows, key=lambda row: -float(row["score"]))
        assert [row["item"] for row in order] == [row["item"] for row in sorted(rows, key=lambda r: int(r["rank"]))]
    # the truth is linear: scores must follow it
    truth = np.array([[float(row[name]) for name in ("age", "price", "noise")] for row in new]) @ TRUTH
    assert np.corrcoef(truth, [float(row["score"]) for row in scores])[0, 1] > 0.95


def test_the_curve_of_orders(concordant) -> None:
    status, out, err = concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "-s", "log-odds")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0] == "order,loss,standard_error,chosen"
    assert [line.split(",")[0] for line in lines[1:]] == ["1", "3", "10", "30", "all"]
    assert sum(line.endswith("true") for line in lines) == 1


def test_letor_file_holds_labels_and_features(concordant) -> None:
    assert concordant("fit", "train.txt", "-m", "model")[0] == 0
    assert concordant("score", "-m", "model", "-f", "test.txt", "-o", "scores.csv")[0] == 0
    status, out, err = concordant("evaluate", "scores.csv", "test.txt", "--metric", "ndcg@10")
    assert status == 0, err
    assert float(out.splitlines()[1].split(",")[1]) > 0.95


def test_labels_in_a_table_of_their_own(concordant, folder: Path) -> None:
    rows = _read(folder / "features.csv")
    labels = [[row["query"], row["item"], int(float(row["age"]) > 0)] for row in reversed(rows)]
    _write(folder / "labels.csv", ["query", "item", "label"], labels)
    status, _, err = concordant(
        "fit", "labels.csv", "--kind", "labels", "-f", "features.csv", "-m", "model", "-r", "linear"
    )
    assert status == 0, err
    coef = load_model("model").coef_
    assert coef[0] > 5 * np.abs(coef[1:]).max()
    _write(folder / "labels.csv", ["query", "item", "label"], labels[1:])
    status, _, err = concordant("fit", "labels.csv", "--kind", "labels", "-f", "features.csv", "-m", "model")
    assert status == 0 and "1 of 180 rows have no label" in err
    _write(folder / "labels.csv", ["query", "item", "label"], [*labels, ["q0", "d99", 1]])
    status, _, err = concordant("fit", "labels.csv", "--kind", "labels", "-f", "features.csv", "-m", "model")
    assert (
        status == 2 and "1 of 181 labels are of items without features (first: query 'q0', item 'd99', line 182)" in err
    )


LOSSES = ("difference-graph", "linear", "ranknet", "ranksvm", "rankboost", "ndcg-pairwise", "err-pairwise")


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_and_is_kept(loss: str, concordant) -> None:
    status, _, err = concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--loss", loss)
    assert status == 0, err
    coef = load_model("model").coef_
    assert coef[0] > 0 > coef[1] and abs(coef[2]) < coef[0] / 2


@pytest.mark.parametrize("regressor", ["hist-gradient-boosting", "random-forest", "network", "lightgbm"])
def test_regressors_by_name(regressor: str, concordant) -> None:
    if regressor == "lightgbm":
        pytest.importorskip("lightgbm")
    order = ("--order", "all", "--regressor", regressor)
    with threadpool_limits(1):  # threads that wait for one another on a busy machine take ten times as long
        status, _, err = concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", *order)
    assert status == 0, err
    status, out, err = concordant("score", "-m", "model", "-f", "new.csv")
    assert status == 0 and len(out.splitlines()) == 91, err


def test_seed_gives_the_same_bytes(concordant, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")  # the time of the fit is kept, too
    for name in ("one", "two"):
        assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", name, "--order", "5", "--seed", "3")[0] == 0
    for file in (folder / "one").iterdir():
        assert file.read_bytes() == (folder / "two" / file.name).read_bytes()


WRONG = (
    (("votes.csv", "-m", "model"), "--features is missing"),
    (("votes.csv", "-f", "features.csv"), "Missing option '--model'"),
    (("votes.csv", "-f", "features.csv", "-m", "."), "not empty and holds no model"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--loss", "ranknett"), "did you mean 'ranknet'?"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--order", "many"), "--order must be auto, all or a number"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--order", "0"), "order must be"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--ridge", "-1"), "ridge must be"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--structure", "bordda"), "did you mean 'borda'?"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--regressor", "tree"), "unknown regressor 'tree'"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--phi", "hinge"), "--phi is for losses on pairs"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--loss", "ranknet", "--gain", "2^s"), "--gain does nothing here"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--loss", "ranknet", "-r", "lightgbm"), "fits a linear scorer"),
    (("votes.csv", "-f", "nowhere.csv", "-m", "m"), "no file nowhere.csv"),
    (("train.txt", "-m", "m", "--structure", "borda"), "--structure does nothing here"),
    (("train.txt", "-m", "m", "--subsets", "8"), "--subsets does nothing here"),
    (("votes.csv", "-f", "features.csv", "-m", "m", "--loss", "ranknet", "--folds", "4"), "--folds does nothing here"),
)


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_usage_is_one_line(arguments, message: str, concordant, folder: Path) -> None:
    status, out, err = concordant("fit", *arguments)
    assert status == 2 and not out
    assert message in err and err.startswith("error: ") and err.count("\n") == 1
    assert not (folder / "m").exists()


def _table(folder: Path, change, age: str = "age") -> None:
    rows = [list(row.values()) for row in _read(folder / "features.csv")]
    change(rows)
    _write(folder / "features.csv", ["query", "item", age, "price", "noise"], rows)


BAD = (
    (lambda rows: rows.pop(3), "have no features (query 'q0', item 'd3')"),
    (lambda rows: rows.append(rows[0]), "rows repeat an earlier (query, item)"),
    (lambda rows: rows[7].__setitem__(3, "inf"), "row 8, column 'price': inf"),
    (lambda rows: rows[7].__setitem__(3, ""), "row 8, column 'price': nan"),
    (lambda rows: rows[7].__setitem__(3, "cheap"), "'cheap' is not a finite number"),
)


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_features_are_refused_with_their_place(change, message: str, concordant, folder: Path) -> None:
    _table(folder, change)
    status, _, err = concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model")
    assert status == 2 and message in err and err.count("\n") == 1


def test_missing_values_can_be_filled_and_the_fill_is_kept(concordant, folder: Path) -> None:
    _table(folder, lambda rows: rows[7].__setitem__(3, ""))
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--missing", "median", "--order", "all")
    assert concordant(*fit)[0] == 0
    assert concordant("score", "-m", "model", "-f", "features.csv")[0] == 0


def test_items_nobody_judged_and_large_orders_are_noted(concordant, folder: Path) -> None:
    _table(folder, lambda rows: rows.append(["q0", "unseen", 1.0, 2.0, 3.0]))
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--order", "100000")
    status, _, err = concordant(*fit)
    assert status == 0
    assert "1 of 181 rows are in no judgment" in err and "12 of 12 queries have at most 100,000 judgments" in err


def test_names_that_differ_at_scoring_are_said(concordant, folder: Path) -> None:
    assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--order", "all")[0] == 0
    _table(folder, lambda rows: rows, age="years")
    status, _, err = concordant("score", "-m", "model", "-f", "features.csv")
    assert status == 2 and "no column 'age'" in err
    status, _, err = concordant("score", "-m", "model", "-f", "test.txt")
    assert status == 2 and "LETOR" in err


def test_columns_the_model_does_not_know_are_left_unread(concordant, folder: Path) -> None:
    assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--order", "all")[0] == 0
    before = concordant("score", "-m", "model", "-f", "features.csv")[1]
    rows = [[*row.values(), "a note"] for row in _read(folder / "features.csv")]
    _write(folder / "features.csv", ["query", "item", "age", "price", "noise", "remark"], rows)
    assert concordant("score", "-m", "model", "-f", "features.csv")[:2] == (0, before)


def test_a_changed_byte_is_refused(concordant, folder: Path) -> None:
    assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--order", "all")[0] == 0
    for file in sorted((folder / "model").iterdir()):
        raw = file.read_bytes()
        file.write_bytes(raw[:-5] + bytes([raw[-5] ^ 4]) + raw[-4:])
        status, out, err = concordant("score", "-m", "model", "-f", "features.csv")
        assert status == 2 and not out and "was changed since the model was written" in err
        file.write_bytes(raw)
    assert concordant("score", "-m", "model", "-f", "features.csv")[0] == 0


def _forged(folder: Path, **changes: object) -> None:
    """Change a model and its hashes, as another version of the program would have written it."""
    from concordant.apps.models.directory import Contents, read_directory, write_directory

    found = read_directory(folder / "model")
    write_directory(folder / "model", Contents({**found.values, **changes}, found.arrays, found.files))


def test_versions_and_rankers_that_are_not_known(concordant, folder: Path) -> None:
    assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--order", "all")[0] == 0
    _forged(folder, format=99)
    status, _, err = concordant("score", "-m", "model", "-f", "features.csv")
    assert status == 2 and "a model of format 99" in err
    _forged(folder, format=1, ranker="os.system")
    status, _, err = concordant("score", "-m", "model", "-f", "features.csv")
    assert status == 2 and "unknown ranker 'os.system'" in err


def test_nothing_is_unpickled_unasked(concordant, folder: Path) -> None:
    draw = np.random.default_rng(0)
    features = Features.of(draw.normal(size=(20, 2)), list(range(20)))
    votes = Preferences.from_comparisons(draw.integers(0, 10, 50), draw.integers(10, 20, 50))
    ranker = AggregationRanker(order="all", regressor=KNeighborsRegressor()).fit(features, votes)
    with pytest.raises(UsageError, match="loading a pickle runs whatever code is in it"):
        save_model(ranker, folder / "model")
    save_model(ranker, folder / "model", unsafe_pickle=True)
    with pytest.raises(UsageError, match=r"holds a pickled regressor; .*unsafe_pickle=True"):
        load_model(folder / "model")
    assert np.array_equal(load_model(folder / "model", unsafe_pickle=True).predict(features), ranker.predict(features))
    table = [[i, *features.X[i].tolist()] for i in range(20)]
    _write(folder / "twenty.csv", ["item", "1", "2"], table)
    status, _, err = concordant("score", "-m", "model", "-f", "twenty.csv")
    assert status == 2 and "--unsafe-load-pickle" in err
    assert concordant("score", "-m", "model", "-f", "twenty.csv", "--unsafe-load-pickle")[0] == 0


def test_one_ranker_per_query_is_kept_too(folder: Path) -> None:
    votes = Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["low", "high"])
    rankers = QueryRankers().fit({"item": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}, votes)
    save_model(rankers, folder / "model", about={"why": "test"})
    rows = ([[1.0], [3.0]] * 2, ["low", "low", "high", "high"], ["a", "c"] * 2)
    assert np.array_equal(load_model(folder / "model").predict(rows), rankers.predict(rows))
    assert json.loads((folder / "model" / "model.json").read_text())["about"] == {"why": "test"}


COLUMNS = (
    ("age,weight", "no column 'weight'"),
    ("age,item", "the column 'item' says which row it is"),
    (",", "give the names of columns"),
    ("age,age", "each once"),
)


@pytest.mark.parametrize(("columns", "message"), COLUMNS)
def test_feature_columns_that_are_none_are_refused(columns: str, message: str, concordant) -> None:
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--feature-columns", columns)
    status, _, err = concordant(*fit)
    assert status == 2 and message in err and err.count("\n") == 1


def test_only_the_feature_columns_named_are_learned_from(concordant, folder: Path) -> None:
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--feature-columns", "price, age", "--order", "all")
    status, _, err = concordant(*fit)
    assert status == 0 and "180 rows of 2 features" in err
    assert load_model(folder / "model").feature_names_in_.tolist() == ["price", "age"]


@pytest.mark.parametrize("option", ["--feature-item", "--feature-query", "--feature-columns"])
def test_a_letor_log_has_no_columns_to_name(option: str, concordant) -> None:
    status, _, err = concordant("fit", "train.txt", "-m", "model", option, "age")
    assert status == 2 and f"{option} does nothing here" in err


@pytest.mark.parametrize("loss", ["difference-graph", "linear", "margin-based"])
def test_losses_on_pairs_learn_from_labels_too(loss: str, concordant, folder: Path) -> None:
    assert concordant("fit", "train.txt", "-m", "model", "--loss", loss)[0] == 0
    theta = load_model(folder / "model").coef_standardised_
    assert theta @ TRUTH > 0.95 * np.linalg.norm(theta) * np.linalg.norm(TRUTH)


def test_a_ridge_beside_a_regressor_is_refused(concordant) -> None:
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "model", "-r", "random-forest", "--ridge", "1")
    status, _, err = concordant(*fit)
    assert status == 2 and "--ridge is for linear scorers" in err


def test_a_master_without_spark_is_refused(concordant) -> None:
    assert concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model")[0] == 0
    for command in (("fit", "train.txt", "-m", "other"), ("score", "-m", "model", "-f", "features.csv")):
        status, _, err = concordant(*command, "--master", "local")
        assert status == 2 and "--master local belongs to --engine spark" in err


def test_hints_name_the_options_of_the_command(concordant, folder: Path) -> None:
    _table(folder, lambda rows: rows[7].__setitem__(3, ""))
    assert "--missing mean" in concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model")[2]
    assert "--feature-item" in concordant("fit", "votes.csv", "-f", "votes.csv", "-m", "model")[2]
    _table(folder, lambda rows: rows[7].__setitem__(3, "cheap"))
    assert "--feature-columns" in concordant("fit", "votes.csv", "-f", "features.csv", "-m", "model")[2]


def test_labels_are_matched_as_they_are_written(concordant, folder: Path) -> None:
    """Items that are integers in the log and texts in the features, and the reverse, give the same model."""
    votes = [{"winner": w, "loser": v} for w, v in ([2, 1], [10, 1], [10, 2], [2, 1], [10, 2])]
    table = [{"item": i, "size": float(np.log(i))} for i in (1, 2, 10)]
    for name, rows in (("v", votes), ("t", table)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        _write(folder / f"{name}.csv", list(rows[0]), [list(row.values()) for row in rows])
    found = []
    for log, features, said in (("v.csv", "t.jsonl", "texts in the log"), ("v.jsonl", "t.csv", "integers in the log")):
        status, _, err = concordant("fit", log, "-f", features, "-m", "model", "--order", "all")
        assert status == 0 and said in err
        found.append(load_model(folder / "model").coef_[0])
    assert np.isclose(*found) and found[0] > 0
    (folder / "t.csv").write_text("item,size\n01,1\n2,2\n10,3\n")
    status, _, err = concordant("fit", "v.jsonl", "-f", "t.csv", "-m", "model", "--order", "all")
    assert status == 2 and "give both the same type" in err


def test_one_list_a_query_can_be_learned_from(concordant, folder: Path) -> None:
    """Between lists of one query only clicks can be compared; ERR judges each list by the cascade of its own click."""
    lists = [
        [f"q{q}", f"s{q}", place + 1, f"d{q + place}", int(place == q % 3)] for q in range(12) for place in range(3)
    ]
    _write(folder / "clicks.csv", ["query", "session", "position", "item", "clicked"], lists)
    status, _, err = concordant("fit", "clicks.csv", "-f", "features.csv", "-m", "model", "--order", "all")
    assert status == 0 and "on the training data: ERR 0." in err and "nothing was learned" not in err
    _write(folder / "clicks.csv", ["query", "session", "position", "item", "clicked"], [[*row[:4], 0] for row in lists])
    status, _, err = concordant("fit", "clicks.csv", "-f", "features.csv", "-m", "model", "--order", "all")
    assert status == 0 and "nothing was learned" in err and "nothing to compare the scores with" in err


def test_a_letor_line_without_a_query_is_named(concordant, folder: Path) -> None:
    (folder / "bare.txt").write_text("1 1:0.5 2:1\n")
    status, _, err = concordant("fit", "bare.txt", "-m", "model")
    assert status == 2 and "line 1 is not of the form 'label qid:query 1:value …'" in err


def test_the_gate_holds_clusters_out_together(concordant, folder: Path) -> None:
    """By the column that is named; with fewer clusters than folds it says that it could not look."""
    rng = np.random.default_rng(0)
    rows = []
    for vote in range(120):
        a, b = sorted(rng.permutation(3)[:2].tolist())
        rows.append([f"i{a}", f"i{b}", f"w{vote % 12}", f"v{vote % 2}"])
    _write(folder / "cl.csv", ["winner", "loser", "worker", "half"], rows)
    _write(folder / "three.csv", ["item", "x"], [["i0", 3], ["i1", 1], ["i2", 0]])
    given = ("fit", "cl.csv", "-f", "three.csv", "-m", "model")
    assert "gate: pairwise logistic stays, for" in concordant(*given, "--cluster", "worker")[2]
    status, _, err = concordant(*given, "--cluster", "half")
    assert status == 0 and "too little to hold out (2 clusters for 3 folds)" in err
    assert load_model(folder / "model").status_["gate"][0]["why"] == "2 clusters for 3 folds"
    status, _, err = concordant(*given, "--cluster", "half", "--cluster", "worker")
    assert status == 2 and "a fit heeds one column of clusters" in err
    for more in (("--no-gate",), ("--loss", "ranknet"), ("--structure", "borda")):
        status, _, err = concordant(*given, "--cluster", "worker", *more)
        assert status == 2 and "--cluster does nothing here" in err, more
    suggested = (
        "column 'worker' looks like who judged and is not used: --cluster worker allows for judgments that depend"
    )
    assert suggested in concordant(*given)[2]
    for more in (("--no-gate",), ("--cluster", "half"), ("--structure", "borda")):  # where it would do nothing
        assert "looks like" not in concordant(*given, *more)[2], more


def test_a_nightly_fit_keeps_what_was_chosen(concordant, folder: Path) -> None:
    """``--start``: the settings have to be the same, nothing is cross-validated, the model may replace the old one."""
    fit = ("fit", "votes.csv", "-f", "features.csv", "--folds", "2", "-m")
    status, _, err = concordant(*fit, "model", "--start", "./model")  # the first night
    assert status == 0 and "--start ./model: there is no model yet, so all is chosen" in err
    whole = load_model("model").coef_
    status, out, err = concordant(*fit, "model", "--start", "model")  # the same settings, though nothing is chosen
    assert (status, out) == (0, "") and "stay as they were chosen when there were 720 judgments" in err
    assert (load_model("model").coef_ == whole).all()
    assert concordant(*fit[:4], "-m", "edges", "--loss", "ranknet", "-q")[0] == 0
    for more, says in (
        (("--start", "model", "--ridge", "0.5"), "--start model was fitted with ridge='auto', not ridge=0.5"),
        (("--start", "model", "--target", "ndcg@5"), "--start model was fitted with target=None, not target='ndcg@5'"),
        (("--start", "none"), "none: there is no model directory"),  # a slip: it is not the model to be made
        (("--start", "edges"), "--start edges: it is no linear scorer of preferences"),
        (("--start", "model", "--regressor", "hist-gradient-boosting"), "only linear scorers of preferences"),
        (("--start", "model", "--engine", "spark"), "for one machine; leave it out with --engine spark"),
    ):
        status, _, err = concordant(*fit, "other", *more)
        assert status == 2 and says in err and not (folder / "other").exists(), err
    status, _, err = concordant("fit", "train.txt", "-m", "other", "--start", "model")
    assert status == 2 and "only linear scorers of preferences" in err
