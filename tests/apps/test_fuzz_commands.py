"""Whatever a command is given, it works or says in one line what is wrong, and writes nothing but what was named.

The cases are those of ``hostile``: broken files of every format, models and stores, and options nobody should give.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import click
import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from held_runs import check_words, run, snapshot, unasked
from hostile import (
    COMMANDS,
    READS,
    WRITES,
    Case,
    broken_model,
    draw_case,
    every_command,
    good_files,
    good_folder,
    sealed,
)
from seeds import seed

EXAMPLES = {"demo": 3, "counterexample": 5, "audit": 10, "report": 8, "reproduce": 8}
USUAL = 18


@pytest.mark.parametrize("command", COMMANDS)
def test_any_input(command: str) -> None:
    @settings(max_examples=EXAMPLES.get(command, USUAL), database=None)
    @given(st.randoms(use_true_random=False))
    def check(random: Random) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run(draw_case(random, command), Path(folder))

    check()


def test_every_name_of_a_file_is_known_as_read_or_written() -> None:
    """Else the check of what a command may write would not know of a new option."""
    places = {"F", "FILE", "FILE|SHARE", "DIR", "LOG", "OLD", "SCORES"}
    for name, command in every_command():
        named = [str(one.name) for one in command.params if isinstance(one, click.Argument) or one.metavar in places]
        assert sorted(named) == sorted({*READS[name], *WRITES[name]}), name


OUTPUTS = {
    "a name like that of a model": (["export", "--model", "trees", "--to", "onnx", "--output", "model"], "trees"),
    "a card beside it": (["export", "-m", "model", "--card", "x.md", "--to", "json", "-o", "out/../y"], "model"),
    "the table of a store": (["store", "info", "s.store", "-o", "info.csv"], "s.store"),
    "a folder": (["counterexample", "theorem-3", "-o", "new/folder"], None),
    "two tables": (["audit", "votes.csv", "-o", "x.csv", "--edges", "y.csv", "--replicates", "20"], None),
    "a model": (["fit", "votes.csv", "-f", "features.csv", "-m", "m", "--loss", "ranknet"], None),
    "a store": (["ingest", "votes.csv", "--store", "new.store"], None),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_a_command_may_write_is_what_its_options_name(tmp_path: Path, name: str) -> None:
    line, kind = OUTPUTS[name]
    files = {} if kind is None else dict(good_folder(kind))
    files |= {one: good_files()[one] for one in ("votes.csv", "features.csv")}
    status, _ = run(Case(line, files), tmp_path)
    assert status == 0


def test_the_check_of_what_was_written_finds_what_was_not_asked_for() -> None:
    line = ["rank", "votes.csv", "-o", "x.csv"]
    before, after = {"votes.csv": "1"}, {"votes.csv": "1", "x.csv": "2"}
    assert unasked(Case(line), before, after, done=True) == set()
    assert unasked(Case(line), before, after, done=False) == {"x.csv"}
    assert unasked(Case(line), before, after | {"y.csv": "3"}, done=True) == {"y.csv"}
    assert unasked(Case(["rank", "votes.csv", "-o", "votes.csv"]), before, {"votes.csv": "2"}, done=True) == {
        "votes.csv"
    }


# -- what was found this way ------------------------------------------------------------------------------------------
def error(tmp_path: Path, line: list[str], **files: bytes) -> str:
    case = Case(line, {name.replace("__", "."): data for name, data in files.items()})
    status, text = run(case, tmp_path)
    assert status == 2
    return text


def array(values: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(values), allow_pickle=False)
    return buffer.getvalue()


DEEP = b"[" * 100_000
MODELS = {
    "a deep list of hashes": ("model", {"hashes.json": DEEP}, "hashes.json was changed"),
    "a deep model": ("model", {"model.json": DEEP}, "model.json is nested too deeply"),
    "no JSON": ("model", {"model.json": b"{"}, "model.json is not valid JSON"),
    "an array of text": (
        "model",
        {"coef.npy": array(["x", "y"])},
        "coef.npy: cannot be read: ValueError: an array of <U1",
    ),
    "a cut array": ("model", {"coef.npy": array([1.0, 2.0])[:-3]}, "coef.npy: cannot be read: ValueError"),
    "an array that is code": ("model", {"coef.npy": array([1.0]).replace(b"'<f8'", b"f() ]")}, "cannot be read"),
    "an endless tree": ("trees", {"regressor-left.npy": array([0, 0])}, "columns do not go together"),
    "a layer too few": (
        "network",
        {"regressor-weight-0.npy": array([[1.0]])},
        "do not follow each other to one output",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_someone_wrote(tmp_path: Path, name: str) -> None:
    kind, changed, says = MODELS[name]
    files = good_folder(kind) | {f"{kind}/{file}": data for file, data in changed.items()}
    files = files if "hashes.json" in changed else sealed(files, kind)
    case = Case(
        ["score", "--model", kind, "--features", "features.csv"], files | {"features.csv": good_files()["features.csv"]}
    )
    status, text = run(case, tmp_path)
    assert status == 2
    assert says in text


def test_a_tree_whose_node_is_its_own_ancestor(tmp_path: Path) -> None:
    """Without the check scoring never ends."""
    files = dict(good_folder("trees"))
    left = np.load(io.BytesIO(files["trees/regressor-left.npy"]))
    left[-1] = 0
    files = sealed(files | {"trees/regressor-left.npy": array(left)}, "trees")
    case = Case(
        ["score", "--model", "trees", "--features", "train.txt"], files | {"train.txt": good_files()["train.txt"]}
    )
    status, text = run(case, tmp_path)
    assert status == 2
    assert "above its parent" in text


def test_a_model_does_not_choose_what_is_imported(tmp_path: Path) -> None:
    files = dict(good_folder("trees"))
    state = json.loads(files["trees/model.json"])
    state["regressor"] = {"kind": "booster", "class": "x", "values": {"package": "antigravity"}}
    files = {name: data for name, data in files.items() if "regressor-" not in name}
    files |= {"trees/model.json": json.dumps(state).encode(), "trees/regressor-text.npy": array([1])}
    case = Case(["score", "--model", "trees", "--features", "x.csv"], sealed(files, "trees"))
    status, text = run(case, tmp_path)
    assert status == 2
    assert "the model names the package 'antigravity'; known are 'lightgbm', 'xgboost'" in text
    assert "antigravity" not in sys.modules


def test_features_at_an_address(tmp_path: Path) -> None:
    line = ["fit", "votes.csv", "--features", "hdfs://host/x.csv", "--model", "m"]
    assert "only the engine spark reads this" in error(tmp_path, line, votes__csv=good_files()["votes.csv"])


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.7"), reason="scikit-learn 1.6 learns from them, with a warning"
)
def test_a_regressor_that_cannot_learn(tmp_path: Path) -> None:
    line = ["fit", "few.txt", "--model", "m", "--regressor", "network"]
    said = error(tmp_path, line, few__txt=b"2 qid:1 1:1\n0 qid:1 1:2\n1 qid:1 1:3\n")
    assert "the regressor MLPRegressor cannot learn from these 3 rows: The validation set is too small" in said


def test_weights_beyond_float64(tmp_path: Path) -> None:
    votes = b"winner,loser,weight\na,b,1e308\nb,a,1e-308\nb,c,1\nc,a,1e99\n"
    said = error(tmp_path, ["rank", "votes.csv"], votes__csv=votes)
    assert "2 of 4 rows have a weight beyond what can be added and squared" in said


def test_one_column_is_not_two(tmp_path: Path) -> None:
    line = ["fit", "votes.csv", "-f", "features.csv", "-m", "m", "--feature-query", "item"]
    files = {f"{name}__csv": good_files()[f"{name}.csv"] for name in ("votes", "features")}
    assert "one column cannot be two of item, query and label" in error(tmp_path, line, **files)


def test_an_output_among_the_segments_of_its_store(tmp_path: Path) -> None:
    files = good_folder("s.store")
    segment = next(name for name in files if name.endswith(".parquet"))
    for line in (["store", "info", "s.store", "-o", segment], ["rank", "s.store", "-o", segment]):
        status, text = run(Case(line, files), tmp_path)
        assert status == 2
        assert "lies in the folder of" in text


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    said = error(tmp_path, ["rank", "votes.csv"], votes__csv=b"a" * 100_000 + b",b\n1,2\n")
    assert "(100,000 characters), 'b'" in said and len(said) < 1500
    said = error(tmp_path, ["rank", "votes.csv", "--winner", "b" * 100_000], votes__csv=b"a,b\n1,2\n")
    assert len(said) < 3000


@pytest.mark.parametrize("line", ["demo -o", "counterexample theorem-3 -o", "reproduce fig2 -o", "fit votes.csv -m"])
def test_an_empty_name_is_not_this_folder(tmp_path: Path, line: str) -> None:
    assert "is empty; name a" in error(tmp_path, [*line.split(), ""], votes__csv=good_files()["votes.csv"])


def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path: Path) -> None:
    said = error(tmp_path, ["demo", "-o", "votes.csv/x"], votes__csv=b"")
    assert "--output votes.csv/x: votes.csv is a file" in said


@pytest.mark.parametrize("number", range(3))
def test_in_a_process_of_its_own(tmp_path: Path, number: int) -> None:
    """The same promise where nothing of the tests stands around the command."""
    random = Random(seed(number))
    case = draw_case(random, random.choice(["rank", "fit", "score", "evaluate", "ingest", "store info"]))
    for name, data in case.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    before = snapshot(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "concordant", *case.arguments], cwd=tmp_path, capture_output=True, timeout=120
    )
    check_words(done.returncode, done.stderr.decode("utf-8", "surrogateescape"))
    if done.returncode:
        assert snapshot(tmp_path) == before


def test_hostile_models_are_broken() -> None:
    """The cases say something: most of them are refused, some are not."""
    same = sum(broken_model(Random(seed), "model") == good_folder("model") for seed in range(100))
    assert same < 30
