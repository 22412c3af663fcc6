"""``concordant export``: what it writes, and what it refuses before it writes anything."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import yaml
from sklearn import svm

import concordant as cc
from exported import REAL, fitted, held_out
from running import exit_status


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cc.save_model(fitted("none"), tmp_path_factory.mktemp("kept") / "web", about={"log": "/secret/votes.csv"})


def test_every_format(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("onnx", "elasticsearch", "opensearch", "solr", "json"):
        assert exit_status("export", "-m", model, "--to", form, "-o", tmp_path / f"x.{form}") == 0
    said = capsys.readouterr()
    assert said.out == "" and [line.split(":")[0].split("/")[-1] for line in said.err.splitlines()] == [
        *("x.onnx", "x.elasticsearch", "x.opensearch", "x.solr", "x.json")
    ]
    run = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    scores = run.run(None, {"features": held_out()})[0]
    assert np.abs(scores - fitted("none").predict(held_out())).max() <= 1e-12
    assert json.loads((tmp_path / "x.solr").read_text())["name"] == "x"
    assert exit_status("export", "-m", model, "--to", "json", "-o", tmp_path / "x.json", "-q", "--name", "ä") == 0
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["name"] == "ä"
    assert capsys.readouterr().err == ""


def test_card_with_data(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = tmp_path / "README.md"
    given = ["--log", REAL / "votes.csv.gz", "-f", REAL / "train.txt.gz", "--labels", REAL / "test.txt.gz"]
    assert exit_status("export", "-m", model, "--card", card, *given, "--no-audit", "--license", "mit") == 0
    text = card.read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == "mit" and head["model-index"][0]["name"] == "web"
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == "test.txt.gz"
    assert "7,200 judgments" in text and "votes.csv" in text and "/secret" not in text and str(tmp_path) not in text
    assert cc.load_model(model) is not None
    assert "wrote" in capsys.readouterr().err


REFUSED = [
    ([], "nothing to write"),
    (["--to", "onnx"], "--to and --output belong together"),
    (["-o", "{out}"], "--to and --output belong together"),
    (["--to", "onx", "-o", "{out}"], "did you mean 'onnx'?"),
    (["--to", "json", "-o", "{model}/x"], "lies in a model"),
    (["--to", "json", "-o", "{folder}"], "is a directory"),
    (["--to", "json", "-o", "{folder}/no/x"], "does not exist"),
    (["--card", "{model}/README.md"], "--card {model}/README.md lies in a model"),
    (["--to", "json", "-o", "{out}", "--card", "{out}"], "both name"),
    (["--to", "json", "-o", "{out}", "--log", "{log}"], "--log does nothing here"),
    (["--to", "json", "-o", "{out}", "--winner", "w"], "--winner does nothing here"),
    (["--card", "{out}", "--of-query", "1"], "--of-query does nothing here"),
    (["--card", "{out}", "--log", "{log}"], "needs --features"),
    (["--card", "{out}", "--held-out-features", "{log}"], "there is no --held-out"),
    (["--card", "{copy}", "--log", "{copy}", "-f", "{log}"], "is the file of --log"),
    (["--card", "{out}", "--labels", "{log}"], "is no LETOR file"),
    (["--to", "json", "-o", "{out}", "--feature-names", "a,b"], "2 feature names for 42"),
    (["--to", "json", "-o", "{out}", "--of-query", "1"], "scores all queries by one function"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_refused_in_one_line(
    arguments: list[str], said: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "votes.csv.gz"
    copy.write_bytes((REAL / "votes.csv.gz").read_bytes())
    names = {"out": tmp_path / "out", "model": model, "folder": tmp_path, "log": REAL / "votes.csv.gz", "copy": copy}
    assert exit_status("export", "-m", model, *(one.format(**names) for one in arguments)) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and said.format(**names) in err
    assert [one.name for one in tmp_path.iterdir()] == ["votes.csv.gz"]
    assert copy.read_bytes() == (REAL / "votes.csv.gz").read_bytes()
    cc.load_model(model)


def test_no_model_and_a_pickle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status("export", "-m", tmp_path / "none", "--to", "json", "-o", tmp_path / "x") == 2
    assert "no model directory" in capsys.readouterr().err
    X = held_out()[:40, :3]
    ranker = cc.ListRanker(regressor=svm.SVR()).fit(X, cc.Judged.of_labels(np.arange(40) % 3, query=np.arange(40) // 8))
    kept = cc.save_model(ranker, tmp_path / "kept", unsafe_pickle=True)
    assert exit_status("export", "-m", kept, "--to", "onnx", "-o", tmp_path / "x") == 2
    assert "--unsafe-load-pickle" in capsys.readouterr().err and not (tmp_path / "x").exists()
    assert exit_status("export", "-m", kept, "--to", "onnx", "-o", tmp_path / "x", "--unsafe-load-pickle", "-q") == 0
    run = onnxruntime.InferenceSession(tmp_path / "x", providers=["CPUExecutionProvider"])
    assert np.abs(run.run(None, {"features": X})[0] - ranker.predict(X)).max() <= 1e-9


def test_an_export_that_fails_leaves_the_file_as_it_was(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("before")
    assert exit_status("export", "-m", model, "--to", "json", "-o", target, "--card", tmp_path / "no" / "c.md") == 2
    assert target.read_text() == "before" and list(tmp_path.iterdir()) == [target]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "far" / "model.json")
    cc.export_model(fitted("none"), link, to="json")
    assert link.is_symlink() and (tmp_path / "far" / "model.json").is_file()
