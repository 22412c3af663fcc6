"""Labels that look alike are told wherever a log is read, and where files are joined; what is one label stays one."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.errors import InputError
from concordant.preferences.labels import Labels, look_alike, look_alikes, plain_form
from running import exit_status

INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u061c\u180e\x00"
BLANK = " \t\n\r\x0b\x0c\x85\xa0\u2002\u2003\u2009\u202f\u3000\u2028"


def spelt(text: str) -> str:
    """The plain form again, character by character."""
    text = unicodedata.normalize("NFKD", text).lower()
    text = "".join(" " if c in BLANK else c for c in text if c not in INVISIBLE)
    return " ".join(text.split())


def test_plain_forms_are_those_of_python() -> None:
    rng = np.random.default_rng(0)
    letters = [*"aAbBzZ", "é", "É", "e\u0301", "ﬁ", "Ω", *INVISIBLE[:-1], *BLANK, "-", "_"]
    texts = ["".join(rng.choice(letters, rng.integers(0, 7))) for _ in range(4000)]
    found = plain_form(pa.array(texts, pa.large_string())).to_pylist()
    assert found == [spelt(text) for text in texts]


NUMBERS = {
    "7": ["7", "07", "7.0", "+7", "7.", "7e0", "70e-1", "0.7E1", "007.00"],
    "0.5": [".5", "0.5", "0.50", "5e-1", "00.5"],
    "0": ["0", "-0", "0.0", "+0", "00", "0e5"],
    "-1.25": ["-1.25", "-01.250", "-125e-2"],
    "1000": ["1000", "1e3", "1000.0", "01E+3"],
}


def test_numbers_have_one_plain_form() -> None:
    for plain, written in NUMBERS.items():
        assert plain_form(pa.array(written, pa.large_string())).to_pylist() == [plain] * len(written)
    apart = ["1", "10", "100", "1.1", "1.01", "1,0", "1.0.0", "0x1", "1e", "e1", ".", "1 0", "v1"]
    assert plain_form(pa.array(apart, pa.large_string())).to_pylist() == apart


def test_labels_that_differ_are_not_told() -> None:
    assert look_alikes(Labels.encode(["a", "b", "a b", "ab", "1", "10", "1.1", "a-b", "é", "e"])[0], "items") == ()
    assert look_alikes(Labels.encode([1, 2, 10])[0], "items") == ()
    assert look_alikes(Labels.empty(), "items") == ()


def test_how_many_and_some_of_them() -> None:
    many = [f"{space}item {i}" for i in range(50) for space in ("", " ")]
    (said,) = look_alikes(Labels.encode(many)[0], "items")
    assert said.startswith(
        "100 items differ from others only in white space and are kept apart: ' item 0' and 'item 0'"
    )
    assert said.endswith("and 47 more such groups")


def test_the_label_that_was_meant() -> None:
    known = Labels.encode(["a", " b", "C", "1"])[0]
    assert look_alike("b", known) == "; 'b' is there as ' b', which differs in white space"
    assert look_alike("c", known).endswith("as 'C', which differs in case")
    assert look_alike("01", known).endswith("as '1', which differs in how a number is written")
    assert look_alike("d", known) == look_alike(1, known) == ""


def test_notes_stay_with_preferences() -> None:
    plain = cc.read({"winner": ["a"], "loser": ["b"]})
    weighted = cc.read({"winner": ["a"], "loser": ["b"], "weight": [2.0]})
    assert plain.notes == ()
    (said,) = weighted.notes
    assert "'weight' is read as the strength" in said
    for made in (plain + weighted, weighted + plain, weighted.pool(), weighted.select(["all"]), weighted + weighted):
        assert made.notes == (said,)
    assert weighted == cc.Preferences.from_comparisons(["a"], ["b"], weight=[2.0])
    board = cc.rank(plain + cc.read({"winner": ["a "], "loser": ["b"]}), interval="none")
    assert [note for note in board.notes if "2 items differ from others only in white space" in note]


# -- the commands ----------------------------------------------------------------------------------------------------
VOTES = "winner,loser\na,b\nb,a\na,b \nb ,a\n"
TOLD = "2 items differ from others only in white space and are kept apart: 'b' and 'b '"
FEATURES = "item,x,label\na,1,0\nb,2,1\nb ,3,1\n"
COMMANDS = {
    "rank": ["rank", "votes.csv"],
    "rank in memory": ["rank", "votes.csv", "--engine", "memory", "--interval", "none"],
    "audit": ["audit", "votes.csv"],
    "fit": ["fit", "votes.csv", "--features", "features.csv", "--model", "model"],
    "report": ["report", "votes.csv", "--no-audit", "-o", "page.html"],
    "ingest": ["ingest", "votes.csv", "--store", "votes.store"],
}


class Here:
    """A folder to work in, and the command run there."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capture = folder, capture

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def run(self, *words: str) -> tuple[int, str]:
        """Return the exit status and what stands on stderr."""
        status = exit_status(*words)
        return status, self.capture.readouterr().err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    monkeypatch.chdir(tmp_path)
    for name, text in {"votes.csv": VOTES, "features.csv": FEATURES}.items():
        (tmp_path / name).write_text(text)
    return Here(tmp_path, capsys)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_tells_labels_that_look_alike(here: Here, name: str) -> None:
    code, err = here.run(*COMMANDS[name])
    assert code == 0, err
    assert err.count(TOLD) == 1
    if name == "report":
        assert TOLD in (here / "page.html").read_text()
    if name == "ingest":
        assert here.run("rank", "votes.store")[1].count(TOLD) == 1


def test_a_label_among_features_is_said(here: Here) -> None:
    (here / "clean.csv").write_text("winner,loser\na,b\nb,a\n")
    fit = ["fit", "clean.csv", "--features", "features.csv", "--model", "model", "--structure", "log-odds"]
    fit += ["--order", "all", "--ridge", "0.001"]
    assert "the column 'label' is taken for a feature" in here.run(*fit)[1]
    assert "taken for a feature" not in here.run(*fit, "--feature-columns", "x")[1]


def test_a_weight_is_said(here: Here) -> None:
    (here / "weights.csv").write_text("winner,loser,weight\na,b,1\nb,a,2\n")
    assert "the column 'weight' is read as the strength of each comparison" in here.run("rank", "weights.csv")[1]
    assert "read as the strength" not in here.run("rank", "weights.csv", "--weight", "weight")[1]
    assert "read as the strength" not in here.run("rank", "weights.csv", "--count", "weight")[1]


# -- files that are joined -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_features_of_a_label_that_looks_alike(here: Here, ending: str) -> None:
    table = pa.table({"item": ["a", "B"], "x": [1.0, 2.0]})
    (here / "spaced.csv").write_text("item,x\na,1\nB,2\n")
    pa.parquet.write_table(table, here / "spaced.parquet")
    (here / "clean.csv").write_text("winner,loser\na,b\nb,a\n")
    how = ["--stream", "--structure", "log-odds"] if ending == "parquet" else []
    code, err = here.run("fit", "clean.csv", "--features", f"spaced.{ending}", "--model", "m", *how)
    assert code == 2
    assert "'b' is there as 'B', which differs in case" in err


def test_features_that_are_trimmed(here: Here) -> None:
    (here / "trimmed.csv").write_text("item, x, y\na, 1, 2\nb, 2, 1\n")
    features = cc.read_features(here / "trimmed.csv")
    assert (features.names, features.X.tolist(), features.items.tolist()) == (
        ("x", "y"),
        [[1.0, 2.0], [2.0, 1.0]],
        ["a", "b"],
    )
    (here / "second.csv").write_text("x, item\n1, a\n2, b\n")
    assert cc.read_features(here / "second.csv").items.tolist() == ["a", "b"]


def test_scores_and_labels_that_look_alike(here: Here) -> None:
    (here / "scores.csv").write_text("query,item,score\nq,a,1\nq,b,2\n")
    (here / "labels.csv").write_text("query,item,label\nq,a,1\nq,b ,0\n")
    code, err = here.run("evaluate", "scores.csv", "labels.csv", "--metric", "ndcg")
    assert code == 2
    assert "'b' is there as 'b ', which differs in white space" in err
    (here / "labels.csv").write_text("query,item,label\nQ,a,1\nQ,b,0\n")
    code, err = here.run("evaluate", "scores.csv", "labels.csv", "--metric", "ndcg")
    assert code == 2
    assert "'q' is there as 'Q', which differs in case" in err


def test_features_in_memory_name_what_was_meant() -> None:
    votes = cc.Preferences.from_comparisons(["a"], ["b"], query=["q"])
    ranker = cc.AggregationRanker(structure="log-odds", order="all")
    with pytest.raises(InputError, match=r"'q' is there as 'q\\u200b'"):
        ranker.fit(cc.Features.of([[1.0], [2.0]], ["a", "b"], ["q\u200b", "q\u200b"]), votes)
