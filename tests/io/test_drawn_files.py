"""Drawn files from a fixed seed: good ones come back exactly, damaged ones are refused or read as plainly.

``make fuzz`` draws others, and more families (``fuzz.py``).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

import concordant as cc
import drawn_checks
import fuzz
from drawn_checks import check_damaged, check_good, one_connection
from drawn_damage import draw_damaged
from drawn_files import FORMATS, draw_file
from drawn_judgments import canonical, counted
from plain_reading import Refused, Undecided, second_reading

SEED = 20261120
EACH = 9
PLAIN = ["csv", "tsv", "json", "jsonl", "preflib", "letor", "qrels"]


@pytest.fixture(scope="module", autouse=True)
def connection() -> Iterator[None]:
    with one_connection():
        yield


@pytest.mark.parametrize("form", FORMATS)
def test_a_good_file_comes_back_exactly(form: str) -> None:
    for number in range(EACH):
        assert check_good(Random(f"{form}:{SEED}:{number}"), form) is None


@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_file_is_refused_or_read_plainly(form: str) -> None:
    for number in range(EACH * (3 if form in PLAIN else 1)):
        assert check_damaged(Random(f"{form}:{SEED}:{number}"), form) is None


@pytest.mark.parametrize("name", ["command", "options", "calls", "stores", "models"])
def test_other_families(name: str) -> None:
    for number in range({"command": 2, "options": 6, "calls": 60, "stores": 4, "models": 12}[name]):
        assert fuzz.BY_NAME[name].check(Random(f"{name}:{SEED}:{number}")) is None


# -- what was found this way ------------------------------------------------------------------------------------------
VOTES = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"])


COLUMN = ({"item": ["a", "b"], "x": [1.0, 0]},)


def fitted() -> cc.AggregationRanker:
    """A scorer of one feature."""
    return cc.AggregationRanker(informed=False, order="all", ridge=0.1).fit({"item": ["a", "b"], "x": [1.0, 0]}, VOTES)


WRONG: dict[str, Callable[[], object]] = {
    "folds by a text": lambda: VOTES.folds("x"),  # type: ignore[arg-type]
    "folds by a half": lambda: VOTES.folds(1.5),  # type: ignore[arg-type]
    "folds beyond all": lambda: VOTES.folds(10**30),
    "folds of a fit beyond all": lambda: cc.AggregationRanker(informed=True, folds=10**30).fit(*COLUMN, VOTES),
    "no features to predict": lambda: fitted().predict(None),
    "a number to predict": lambda: fitted().predict(1.5),
    "missing values to predict": lambda: fitted().predict(pa.nulls(5)),
    "a sparse matrix of another width": lambda: fitted().predict(scipy.sparse.csr_matrix(np.eye(3)[:, :2])),
    "folds by infinity": lambda: VOTES.folds(float("inf")),  # type: ignore[arg-type]
    "a query that is no list": lambda: VOTES.select(7),  # type: ignore[arg-type]
    "a query that is a text": lambda: VOTES.select("all"),
    "complex labels": lambda: VOTES.select([1j]),
    "a column without dimensions": lambda: cc.Preferences.from_comparisons(["a"], ["b"], cluster=np.array(0.0)),
    "a column of two dimensions": lambda: cc.Preferences.from_ratings(["q"], ["a"], np.ones((1, 1))),
    "queries without dimensions": lambda: cc.ndcg([0.5], [1], np.array(0.0)),
    "queries that are a number": lambda: cc.kendall_tau([0.5, 1], [1, 2], 3),
    "relevant from a text on": lambda: cc.precision([0.5], [1], relevant="x"),  # type: ignore[arg-type]
    "no number to compare": lambda: cc.compare("p", [1.0]),
    "a level that is a text": lambda: cc.compare([1.0], [2.0], level="all"),  # type: ignore[arg-type]
    "values that are a dict": lambda: cc.summarise({"a": 1}),
    "targets of no preferences": lambda: cc.mean_targets([1.0]),  # type: ignore[arg-type]
    "subsets that are a text": lambda: cc.mean_targets(VOTES, subsets="x"),  # type: ignore[arg-type]
    "subsets that are NaN": lambda: cc.mean_targets(VOTES, subsets=float("nan")),  # type: ignore[arg-type]
    "a structure that is a number": lambda: cc.mean_targets(VOTES, 7),  # type: ignore[arg-type]
    "a surrogate that is a number": lambda: cc.surrogate(0.5),  # type: ignore[arg-type]
    "a gap that is a dict": lambda: cc.consistency_bound({}, phi="hinge", W=1.0, gamma=1.0),  # type: ignore[arg-type]
    "columns that are a frame": lambda: cc.read({"winner": ["a"], "loser": ["b"]}, columns=pd.DataFrame({"x": [1]})),
    "a cluster that is an array": lambda: cc.read({"winner": ["a"], "loser": ["b"]}, cluster=np.zeros(3)),
}


def test_a_cut_far_below_every_list_takes_no_memory() -> None:
    assert cc.err([0.5, 0.1], [1, 0], at=10**30).tolist() == cc.err([0.5, 0.1], [1, 0]).tolist()
    assert cc.precision([0.5, 0.1], [1, 0], at=2**63).tolist() == [1 / 2**63]


def test_the_least_integer_wins() -> None:
    least = -(2**63)
    votes = cc.read({"left": [least, 2], "right": [3, least], "winner": [str(least), "2"]})
    assert votes == cc.Preferences.from_comparisons([least, 2], [3, least])


def test_a_named_column_of_judgments_leaves_the_query_where_it_is() -> None:
    log = {"user": ["u", "u", "v"], "item": ["a", "b", "a"], "rating": [1, 2, 1], "judgment": [1, 1, 1]}
    renamed = {("x" if name == "judgment" else name): values for name, values in log.items()}
    assert cc.read(renamed, columns={"judgment": "x"}) == cc.read(log)
    assert list(cc.read(log).queries) == ["u", "v"]


def test_a_long_label_is_cut_in_a_message(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text('{"user": 1, "item": "%s", "rating": 1}\n{"user": 1, "item": 2, "rating": 1}\n' % ("a" * 5000))
    with pytest.raises(cc.InputError, match="mixes texts") as said:
        cc.read(path)
    assert len(str(said.value)) < 300


@pytest.mark.parametrize("what", WRONG)
def test_wrong_types_are_refused(what: str) -> None:
    with pytest.raises(cc.ConcordantError) as said:
        WRONG[what]()
    assert "\n" not in str(said.value)


# -- what checks is checked -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", PLAIN)
def test_the_second_reader_finds_the_truth(form: str) -> None:
    """Two ways to the same counts, neither of them the package's: from what was drawn, and from the bytes."""
    for number in range(30):
        source = draw_file(Random(number), form)
        assert source.known is not None
        try:
            assert second_reading(source).difference(source.known) == ""
        except Undecided:
            assert form in ("csv", "tsv")


def test_damage_is_done_and_mostly_decided() -> None:
    """Of damaged texts some are refused by the rules, some read, few left open."""
    became = dict.fromkeys(("read", "refused", "open"), 0)
    for number in range(300):
        source = draw_damaged(Random(number), Random(number).choice(PLAIN))
        try:
            second_reading(source)
            became["read"] += 1
        except Refused:
            became["refused"] += 1
        except Undecided:
            became["open"] += 1
    assert min(became["read"], became["refused"]) > 50, became
    assert became["open"] < 60, became


def test_equal_judgments_have_one_form() -> None:
    assert canonical("comparisons", "q", None, ("b", "a", True, 1)) == canonical(
        "comparisons", "q", None, ("a", "b", 1, 1.0)
    )
    assert canonical("orders", "q", None, [("a", 7), ("b", None), ("c", 2), ("d", 7)]) == (
        *("q", None), (("c", 1.0), ("a", 2.0), ("d", 2.0)),
    )  # fmt: skip


def test_a_wrong_reading_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that loses, doubles or swaps something is caught by the same checks."""
    right = drawn_checks.cc.read

    def doubled(source: object, **options: object) -> object:
        found = right(source, **options)
        return found + found

    monkeypatch.setattr(drawn_checks.cc, "read", doubled)
    said = [check_good(Random(number), "csv") for number in range(5)]
    assert all(one is not None and "counts differ" in one for one in said)
    wrong = [said for number in range(40) if (said := check_damaged(Random(number), "csv")) is not None]
    assert wrong and all("read otherwise than plainly" in one or "rules refuse" in one for one in wrong)


def test_one_engine_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = drawn_checks.cc.read

    def kept(source: object, *, engine: str, **options: object) -> object:
        found = right(source, engine=engine, **options)
        return found if engine == "memory" else found.folds(2)[0]

    monkeypatch.setattr(drawn_checks.cc, "read", kept)
    assert any("engines differ" in (check_damaged(Random(number), "jsonl") or "") for number in range(60))


def test_a_failure_names_its_case() -> None:
    """A crash, a hang and a traceback are failures, and the same case fails again."""

    def broken(random: Random) -> str | None:
        return 1 / 0 if random.random() < 0.5 else "wrong"  # type: ignore[return-value]

    family = fuzz.Family("broken", 1, broken)
    said = [fuzz.failure_of(family, 1, number) for number in range(10)]
    assert said == [fuzz.failure_of(family, 1, number) for number in range(10)]
    assert any("ZeroDivisionError" in (one or "") for one in said) and "wrong" in said
    endless = fuzz.Family("endless", 1, lambda _: _forever(), 0.2)
    assert "a hang" in (fuzz.failure_of(endless, 1, 0) or "")


def _forever() -> str:
    while True:
        pass


def test_the_program_draws_and_counts() -> None:
    program = Path(fuzz.__file__)
    line = [sys.executable, str(program), "--minutes", "0.02", "--seed", "1", "--only", "good"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "good" in done.stdout and " 0 failed" in done.stdout
    assert counted(drawn_checks.cc.Preferences.empty()).counts == {}
