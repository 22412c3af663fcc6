"""``concordant compare``: what it prints is what a ranking answers; what it cannot say."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_command import call, rows

import concordant as cc

VOTES = "left,right,winner,query\n" + "".join(
    f"{a},{b},{w},{q}\n"
    for q in ("p", "q")
    for a, b, w in [("x", "y", "left")] * 5 + [("x", "y", "right")] * 2 + [("y", "z", "left")] * 3 + [("z", "y", "tie")]
    + [("top", "x", "left")] * (q == "q")
)  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    return str(tmp_path / "votes.csv")


def test_pairs_are_those_of_the_ranking(votes, capsys):
    status, out, _ = call(capsys, "compare", votes, "--pair", "x", "y", "--pair", "z", "x")
    assert status == 0
    found = rows(out)
    assert [row["query"] for row in found] == ["p", "q", "p", "q"]
    board = cc.rank(cc.read(votes))
    twin = board.compare("x", "y", query="p")
    for name in ("difference", "standard_error", "lower", "upper", "p_value", "probability", "probability_lower"):
        assert np.isclose(float(found[0][name]), getattr(twin, name))
    p = [float(row["p_value"]) for row in found]
    assert np.isclose(float(found[int(np.argmin(p))]["p_holm"]), min(1, 4 * min(p)))


def test_a_pair_on_a_terminal_is_a_sentence(votes, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    status, out, _ = call(capsys, "compare", votes, "--pool", "--pair", "x", "y", "-q")
    assert status == 0 and out.startswith("x − y = ") and "a vote prefers x with probability 0." in out


def test_all_pairs_and_what_is_open(votes, tmp_path, capsys):
    target = str(tmp_path / "all.parquet")
    status, _, err = call(capsys, "compare", votes, "-o", target)
    assert status == 0 and "3 of 9 differences are not determined" in err
    table = pq.read_table(target)
    assert table["p_value"].null_count == 3
    assert table.column_names[:4] == ["query", "component", "first", "second"]


@pytest.mark.parametrize(
    ("asked", "column"),
    [(["--ranks", "together"], "rank_upper"), (["--ranks", "tiers"], "tier"), (["--top", "2"], "among_first")],
)
def test_rank_sets_say_what_they_guarantee(votes, capsys, asked, column):
    status, out, err = call(capsys, "compare", votes, "--pool", *asked)
    assert status == 0 and "with 95% confidence" in err
    assert {row["item"] for row in rows(out)} == {"x", "y", "z", "top"} and column in rows(out)[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--pair", "x", "w"], "no item 'w'"),
        (["--pair", "x", "x"], "compared with itself"),
        (["--pair", "x"], "--pair"),
        (["--interval", "none"], "nothing to compare by"),
        (["--ranks", "tiers", "--top", "2"], "--ranks does nothing here: --top 2 asks for another set"),
        (["--pair", "x", "y", "--top", "2"], "--pair does nothing here"),
        (["--structure", "cascade"], "cascade"),
        (["-o", "x.docx"], ".docx"),
    ],
)
def test_what_cannot_be_compared_is_said(votes, capsys, asked, said):
    status, out, err = call(capsys, "compare", votes, *asked)
    assert status == 2 and out == "" and said in err and err.count("\n") == 1


def test_a_summary_is_said_beside_the_ranking(votes, capsys):
    status, out, err = call(capsys, "rank", votes, "--pool", "--ties", "davidson", "--statistics")
    assert status == 0 and "log-likelihood" not in out
    said = cc.rank(cc.read(votes).pool(), ties="davidson").summary().lines()
    assert len(said) > 3 and all(f"note: {line}" in err for line in said)
    status, _, err = call(capsys, "rank", votes, "--structure", "borda", "--statistics")
    assert status == 2 and "--statistics does nothing here: borda is fitted by no likelihood" in err
