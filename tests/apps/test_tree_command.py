"""``concordant tree``: sentences, tables, JSON, the picture, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from test_command import call

from seeds import seed

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def votes(tmp_path):
    """80 people of two languages who order three items the other way round; and what means nothing."""
    random = np.random.default_rng(seed(0))
    rows = []
    for person in range(80):
        german, age = person % 2 == 0, int(random.integers(20, 70))
        for first, second in (("tea & <b>", "coffee"), ("coffee", "milk"), ("milk", "tea & <b>")) * 3:
            likes = (first == "tea & <b>" or second == "milk") == german
            won = random.random() < (0.8 if likes else 0.2)
            winner, loser = (first, second) if won else (second, first)
            rows.append((winner, loser, f"p{person}", "de" if german else "en", age))
    path = tmp_path / "votes.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("winner", "loser", "worker", "language", "age"), *rows])
    return str(path)


def test_what_is_said_and_written(votes, tmp_path, capsys):
    asked = ["tree", votes, "--by", "language", "--by", "age", "--cluster", "worker"]
    status, out, err = call(capsys, *asked)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0 and {row["group"] for row in rows} == {"2", "3"} and len(rows) == 6
    assert {row["judged_by"] for row in rows} == {"language is de", "language is en"}
    assert "note: the ranking differs by language: 2 groups" in err
    assert "group 2, language is de (360 judgments, 40 × worker): tea & <b> > coffee > milk" in err
    assert "looks like who judged" not in err
    target, picture = tmp_path / "tree.json", tmp_path / "tree.svg"
    status, out, err = call(capsys, *asked, "-o", str(target), "--picture", str(picture))
    found = json.loads(target.read_text())
    assert status == 0 and not out and found["groups"][0]["divided_by"] == "language"
    assert found["groups"][0]["tests"][0]["unit"] == "worker" and found["groups"][0]["tests"][0]["units"] == 80
    assert found["groups"][1]["ranking"][0]["item"] == "tea & <b>"
    drawn = ElementTree.parse(picture).getroot()
    texts = ["".join(one.itertext()) for one in drawn.iter(f"{SVG}text")]
    assert texts.count("tea & <b>") == 2 and "language is de" in texts and "language (p < 0.001)" in texts
    assert len(list(drawn.iter(f"{SVG}circle"))) == 6
    status, _, err = call(capsys, "tree", votes, "--by", "age", "-q", "-o", str(tmp_path / "t.csv"))
    assert status == 0 and not err
    status, _, err = call(capsys, "tree", votes, "--by", "age")
    assert "not used: --cluster worker allows" in err and "age --cluster" not in err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "--by"),
        (["--by", "langage"], "did you mean 'language'"),
        (["--by", "worker", "--cluster", "worker"], "--by worker and --cluster worker"),
        (["--by", "age", "--names", "language"], "is none of them"),
        (["--by", "age", "--alpha", "2"], "alpha must lie between 0 and 1"),
        (["--by", "age", "--picture", "tree.png"], ".svg"),
        (["--by", "age", "--structure", "borda"], "borda"),
        (["--by", "age", "--query", "language"], "--pool"),
        (["--by", "age", "--by", "age"], "each once"),
    ],
)
def test_what_is_refused(votes, capsys, asked, said):
    status, out, err = call(capsys, "tree", votes, *asked)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1, err


def test_missing_values_are_refused_with_their_line(tmp_path, capsys):
    path = Path(tmp_path / "votes.csv")
    path.write_text("winner,loser,age\na,b,20\nb,a,\na,b,30\n")
    status, _, err = call(capsys, "tree", str(path), "--by", "age")
    assert status == 2 and "line 3" in err, err
    status, _, err = call(capsys, "tree", str(path), "--by", "age", "--on-error", "skip")
    assert status == 0 and "skipped" in err


def test_a_store_knows_its_columns(votes, tmp_path, capsys):
    store = str(tmp_path / "s.store")
    assert call(capsys, "ingest", votes, "--store", store, "--cluster", "language")[0] == 0
    status, out, err = call(capsys, "tree", store, "--by", "language")
    assert status == 0 and "language is de" in out, err
