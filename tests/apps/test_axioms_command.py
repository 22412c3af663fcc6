"""``concordant axioms`` on scores and on a model, what is refused, and ``fit --loss leximax-copeland``."""

from __future__ import annotations

import csv
import io
import json

import pytest
from test_command import call

VOTES = """winner,loser,who
d,a,u
b,a,u
c,a,u
b,d,u
c,d,u
c,b,u
d,a,v
b,a,v
c,a,v
b,d,v
c,d,v
c,b,v
d,a,w
a,b,w
a,c,w
d,b,w
d,c,w
b,c,w
"""
FEATURES = "item,x,y\na,0,0\nd,0,1\nb,10,0\nc,110,100\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """All of three people prefer d to a, which a logistic scorer of x and y turns round (see benchmarks/axioms.py)."""
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "features.csv").write_text(FEATURES)
    (tmp_path / "scores.csv").write_text("item,score\na,1\nb,3\nc,2.5\nd,0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(out):
    return {row["axiom"]: row for row in csv.DictReader(io.StringIO(out))}


def test_a_model_is_audited_and_mended(folder, capsys):
    assert call(capsys, "fit", "votes.csv", "-f", "features.csv", "-m", "usual", "--loss", "ranknet")[0] == 0
    asked = ("-f", "features.csv", "--cluster", "who", "--refits", "2")
    status, out, err = call(capsys, "axioms", "votes.csv", "usual", *asked)
    found = table(out)
    assert status == 0 and (found["pareto"]["violated"], found["pareto"]["best"]) == ("1", "0")
    assert "pareto: the scorer turns round 1 of 1 pairs on which all annotators agree (100%)" in err
    assert "a linear scorer of these features can do with 0" in err and {"copies", "separability"} <= set(found)
    fit = ("fit", "votes.csv", "-f", "features.csv", "-m", "mended", "--loss", "leximax-copeland", "--cluster", "who")
    assert call(capsys, *fit)[0] == 0
    status, out, err = call(capsys, "axioms", "votes.csv", "mended", *asked[:-1], "0", "-o", "axioms.json")
    written = json.loads((folder / "axioms.json").read_text())
    assert status == 0 and not out and all(row["violated"] == 0 for row in written["axioms"])
    assert "nothing that people agree on is violated" in err and written["cases"] == []
    scored = call(capsys, "score", "-m", "mended", "-f", "features.csv")[1]
    order = [row["item"] for row in sorted(csv.DictReader(io.StringIO(scored)), key=lambda row: int(row["rank"]))]
    assert order == ["c", "b", "d", "a"]
    status, _, err = call(capsys, "export", "-m", "mended", "--to", "json", "-o", "mended.json")
    assert status == 0, err


@pytest.mark.usefixtures("folder")
def test_scores_in_a_file(capsys):
    status, out, err = call(capsys, "axioms", "votes.csv", "scores.csv", "--cluster", "who", "--cases")
    rows = list(csv.DictReader(io.StringIO(out)))
    first = rows[0]
    assert status == 0 and (first["axiom"], first["item"], first["other"]) == ("pareto", "d", "a")
    assert (first["votes"], first["against"], float(first["p_value"])) == ("3", "0", 0.125)
    assert "condorcet winner: the scorer puts another item first in 1 of 1 queries" in err
    again = table(call(capsys, "axioms", "votes.csv", "scores.csv", "-f", "features.csv")[1])
    assert again["majority"]["best"] == again["majority"]["best_lower"] == "0"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("scores.csv", "--refits", "3"), "--refits does nothing here: scores.csv holds scores"),
        (("scores.csv", "--worst", "3"), "--worst does nothing here: the cases are not shown"),
        (("nothing.csv",), "no file nothing.csv"),
        (("features.csv",), "score"),
        (("scores.csv", "-o", "votes.csv"), "LOG"),
        (("scores.csv", "--engine", "spark"), "executors of Spark audit no scorer"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_refused(capsys, asked, said):
    status, out, err = call(capsys, "axioms", "votes.csv", *asked)
    assert status == 2 and not out and said in err and len(err.strip().splitlines()) == 1


def test_a_model_needs_features_and_clicks_are_no_votes(folder, capsys):
    call(capsys, "fit", "votes.csv", "-f", "features.csv", "-m", "usual", "--loss", "ranknet")
    assert "name them with --features" in call(capsys, "axioms", "votes.csv", "usual")[2]
    (folder / "clicks.csv").write_text("query,session,position,item,clicked\nq,1,1,a,0\nq,1,2,b,1\n")
    status, _, err = call(capsys, "axioms", "clicks.csv", "scores.csv")
    assert status == 2 and "no votes on pairs" in err
    (folder / "labels.csv").write_text("query,item,label\nq,a,1\nq,b,0\nq,c,2\n")
    graded = ("fit", "labels.csv", "--kind", "labels", "-f", "features.csv", "-m", "x", "--loss", "leximax-copeland")
    assert "is for votes of several people" in call(capsys, *graded)[2]
