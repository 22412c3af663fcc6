"""``concordant look``: what is said on the way to a settled first place, what is written, and what is refused."""

from __future__ import annotations

import csv
import io
import json

import pytest
from test_command import call


@pytest.fixture
def votes(tmp_path):
    """Three teas: a is ahead, b and c are level between themselves, c did a little better against a."""
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser,count\na,b,90\nb,a,30\na,c,80\nc,a,35\nb,c,20\nc,b,20\n")
    return str(path)


def test_a_settled_first_place(votes, tmp_path, capsys):
    status, out, err = call(capsys, "look", votes)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0 and [row["among_first"] for row in rows] == ["true", "false", "false"]
    assert "Settled: a is the first of 3 items, with 95% confidence at every look." in err and "Ask next" not in err
    target = tmp_path / "look.json"
    status, out, err = call(capsys, "look", votes, "--top", "2", "--ask", "30", "-o", str(target))
    found = json.loads(target.read_text())
    assert status == 0 and not out and found["settled"] == [False] and "wrote" in err
    assert [row["item"] for row in found["items"]] == ["a", "c", "b"]
    assert {*found["items"][0]} >= {"p_value", "among_first", "rank_lower", "rank_upper"}
    assert sum(row["votes"] for row in found["ask"]) == 30
    assert "Ask next, to settle the first 2: 30 votes c against b." in err
    assert "Not settled: 3 of 3 items may be among the first 2, with 95% confidence at every look." in err
    call(capsys, "look", votes, "--ask", "0", "-o", str(target))
    assert json.loads(target.read_text())["ask"] == []


def test_markdown_holds_what_is_said(votes, tmp_path, capsys):
    target = tmp_path / "look.md"
    call(capsys, "look", votes, "-o", str(target))
    lines = target.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "Settled: a is the first of 3 items, with 95% confidence at every look."
    assert lines[2] == "| place | item | judgments | p value | among first |"
    assert lines[4].startswith("| 1 | a | 235 | 1 | yes |") and lines[6].endswith("| no |")
    call(capsys, "look", votes, "--ranks", "-o", str(target))
    assert "| rank lower | rank upper |" in target.read_text(encoding="utf-8")


def test_ranks_that_hold_together(votes, capsys):
    status, out, err = call(capsys, "look", votes, "--ranks")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0 and [(row["rank_lower"], row["rank_upper"]) for row in rows] == [
        ("1", "1"),
        ("2", "3"),
        ("2", "3"),
    ]
    assert "With 95% confidence the ranks of all items lie in their ranges, at every look." in err


def test_who_judged_is_not_allowed_for_and_said(tmp_path, capsys):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser,worker\n" + "".join(f"a,b,w{n % 4}\nb,a,w{n % 5}\n" for n in range(20)))
    err = call(capsys, "look", str(path))[2]
    assert "votes of one judge are taken as independent" in err and "--cluster" not in err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--top", "3"), "top 3 is asked for, but the largest query has 3 items"),
        (("--level", "0.3"), "the level lies between 0.5 and 1, not 0.3"),
        (("-o", "look.txt"), "unknown ending '.txt'"),
        (("--rows", "3"), "it is for the table on a terminal"),
    ],
)
def test_what_is_refused(votes, capsys, asked, said):
    status, out, err = call(capsys, "look", votes, *asked)
    assert status == 2 and not out and said in err and "Traceback" not in err


def test_the_arena_is_settled(shared_data, capsys):
    path = shared_data("arena_judges/human.jsonl.gz")
    err = call(capsys, "look", path, "--pool")[2]
    assert "Settled: gpt-4 is the first of 20 items, with 95% confidence at every look." in err
