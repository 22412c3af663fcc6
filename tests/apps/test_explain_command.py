"""``concordant explain`` as it is typed."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from test_command import call

import concordant as cc

RNG = np.random.default_rng(3)
VOTES = "winner,loser,home\n" + "".join(
    f"{'abcdefgh'[one]},{'abcdefgh'[other]},{home}\n"
    for one, other, home in zip(RNG.integers(0, 8, 300), RNG.integers(0, 8, 300), RNG.integers(-1, 2, 300), strict=True)
    if one != other
)
ITEMS = "item,length,price\n" + "".join(f"{item},{at % 5},{at * at % 7}\n" for at, item in enumerate("abcdefgh"))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "items.csv").write_text(ITEMS)
    return tmp_path / "votes.csv", tmp_path / "items.csv", tmp_path


def test_it_prints_what_the_function_finds(capsys, files):
    votes, items, folder = files
    asked = ["--feature-columns", "length", "--covariate", "home", "--abilities", folder / "abilities.csv"]
    status, out, err = call(capsys, "explain", votes, "-f", items, *asked)
    assert status == 0
    found = cc.explain(
        cc.read(votes, covariates=["home"]), {"item": list("abcdefgh"), "length": [0, 1, 2, 3, 4, 0, 1, 2]}
    )
    shown = list(csv.DictReader(io.StringIO(out)))
    assert [row["name"] for row in shown] == ["length", "home"]
    assert np.allclose([float(row["estimate"]) for row in shown], found.coefficients["estimate"].to_numpy())
    assert "of the variance of the abilities" in err
    kept = list(csv.DictReader(io.StringIO((folder / "abilities.csv").read_text())))
    assert [*kept[0]] == ["item", "score", "explained", "effect"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--features"),
        (["-f", "{items}", "--feature-columns", "size"], "size"),
        (["-f", "{items}", "--effects", "none", "--spread", "1"], "there are no random effects"),
        (["-f", "{items}", "--spread", "-1"], "a positive number"),
        (["-f", "{items}", "-o", "{items}"], "items.csv"),
        (["-f", "{items}", "-o", "x.csv", "--abilities", "x.csv"], "both name"),
        (["-f", "{votes}"], "no column of items"),
    ],
)
def test_what_it_refuses(capsys, files, more, said):
    votes, items, _ = files
    status, out, err = call(capsys, "explain", votes, *[one.format(items=items, votes=votes) for one in more])
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
