"""Every ranker, metric and surrogate is given what nobody should give it: one line that says so, or a right answer."""

# ruff: noqa: B023 (what is given to ``refused`` is called at once)
from __future__ import annotations

import copy
import datetime
import decimal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone

import concordant as cc
from resealed import ROWS, models

WIDE = ROWS.shape[1]
ITEMS = [f"i{row:02d}" for row in range(len(ROWS))]
TABLE = {"item": ITEMS, "x": ROWS[:, 0], "y": ROWS[:, 1], "z": ROWS[:, 2]}
MATRIX = np.ones((4, WIDE))
ONES = np.ones(len(ROWS))
NO_MATRIX: dict[str, Any] = {
    "None": None,
    "a number": 3,
    "a flag": True,
    "no dimension": np.array(1.0),
    "one dimension": np.ones(3),
    "three dimensions": np.ones((2, 3, 3)),
    "a text": "no such file",
    "bytes": b"x",
    "a path": Path("no") / "such.csv",
    "sparse": scipy.sparse.csr_matrix(MATRIX),
    "a sparse array": scipy.sparse.csr_array(MATRIX),
    "coordinates": scipy.sparse.coo_matrix(MATRIX),
    "texts": [["a", "b", "c"]],
    "numbers as texts": [["1", "2", "3"]],
    "objects": np.array([[object()] * 3]),
    "a mixture": np.array([[1, "a", None]], object),
    "infinite": np.full((2, WIDE), np.inf),
    "masked": np.ma.masked_array(MATRIX, np.eye(4, WIDE) > 0),
    "too few columns": np.ones((4, WIDE - 1)),
    "too many columns": np.ones((4, WIDE + 1)),
    "no columns": np.ones((4, 0)),
    "complex": MATRIX * 1j,
    "dates": np.full((2, WIDE), np.datetime64("2020-01-01")),
    "ragged": [[1, 2], [3]],
    "integers beyond float64": [[10**400] * WIDE],
    "a set": {1, 2},
    "a generator": (x for x in range(3)),
    "an empty table": {},
    "no items": {"a": [1.0]},
    "a column that is none": {"item": 3, "x": 1},
    "a function": len,
    "a class": dict,
    "an empty list": [],
    "an empty tuple": (),
    "a pair": (MATRIX, None),
    "three times None": (None, None, None),
    "too few labels": (MATRIX, ["q"], ["a"]),
    "an item twice": (MATRIX, ["q"] * 4, list("aabb")),
    "a sparse one with labels": (scipy.sparse.csr_matrix(MATRIX), ["q"] * 4, list("abcd")),
    "records": np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]),
    "a memory": memoryview(b"abc"),
    "a time": datetime.timedelta(1),
    "a frame of texts": pd.DataFrame({"x": [1, "a"], "y": [1, 2], "z": [1, 2]}),
    "a series": pd.Series([1.0, 2.0, 3.0]),
    "a missing item": pd.DataFrame({"item": ["a", None], "x": [1, 2], "y": [1, 2], "z": [1, 2]}),
    "polars with texts": pl.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"], "z": [1, 2]}),
    "too narrow a table": pa.table({"x": [1.0, 2.0]}),
}
NO_WEIGHTS: dict[str, Any] = {
    **{name: NO_MATRIX[name] for name in ("a number", "no dimension", "sparse", "a text", "objects", "a set", "dates")},
    "masked": np.ma.masked_array(ONES, ONES.cumsum() < 2),
    "missing": ONES * np.nan,
    "infinite": ONES * np.inf,
    "negative": -ONES,
    "all zero": ONES * 0,
    "texts": ["1"] * len(ONES),
    "one too few": ONES[1:],
    "a column of rows": ONES[:, None],
    "beyond float64": [10**400] * len(ONES),
    "complex": ONES * 1j,
}
NO_JUDGMENTS = {name: value for name, value in NO_MATRIX.items() if name not in ("one dimension",)} | {
    "None": None,
    "missing labels": ONES * np.nan,
    "masked labels": NO_WEIGHTS["masked"],
    "labels of another length": ONES[1:],
    "labels as texts": ["a"] * len(ONES),
}


@pytest.fixture(scope="module")
def rankers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of every class, and some that were loaded."""
    made = {
        name: models()[name]
        for name in ("edges", "linear", "lists", "rankboost", "queries", "distance", "network", "forest")
    }
    folder = tmp_path_factory.mktemp("models")
    for name in ("edges", "queries", "distance", "network"):
        made[f"{name}, loaded"] = cc.load_model(cc.save_model(models()[name], folder / name))
    return made


def refused(call: Callable[[], Any], what: str) -> None:
    """Assert that a call is refused in one line, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = call()
        except cc.ConcordantError as error:
            said = str(error)
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        else:
            raise AssertionError(f"{what}: {found!r}")
    assert said and "\n" not in said and len(said) < 800, f"{what}: {said}"


@pytest.mark.parametrize("name", sorted(NO_MATRIX))
def test_no_ranker_takes_what_is_no_matrix_of_its_features(name: str, rankers: dict[str, Any]) -> None:
    given = NO_MATRIX[name]
    for kind, ranker in rankers.items():
        sparse = "sparse" in name or name == "coordinates"
        linear = getattr(ranker, "_takes_sparse", False) and not hasattr(ranker, "regressor_")
        if sparse and (linear or kind.startswith(("distance", "queries"))):  # or around such
            continue  # which linear scorers take (tests/learning/test_sparse.py)
        refused(lambda: ranker.predict(given), f"{kind}: predict")
        refused(lambda: clone(ranker).fit(given, _votes(kind)), f"{kind}: fit")
        refused(lambda: ranker.score(given, _votes(kind)), f"{kind}: score")
        for method in ("tiers", "risk_coverage") if hasattr(ranker, "tiers") else ():
            more = () if method == "tiers" else (_votes(kind),)
            refused(lambda: getattr(ranker, method)(given, *more), f"{kind}: {method}")


def _votes(kind: str) -> cc.Preferences:
    query = ["p"] * 3 if kind.startswith("queries") else None
    return cc.Preferences.from_comparisons(["i00", "i01", "i02"], ["i01", "i02", "i03"], query=query)


@pytest.mark.parametrize("name", sorted(NO_JUDGMENTS))
def test_no_ranker_learns_from_what_are_no_judgments(name: str, rankers: dict[str, Any]) -> None:
    given = NO_JUDGMENTS[name]
    for kind, ranker in rankers.items():
        refused(lambda: clone(ranker).fit(TABLE, given), f"{kind}: fit")
        refused(lambda: ranker.score(TABLE, given), f"{kind}: score")


@pytest.mark.parametrize("name", sorted(NO_WEIGHTS))
def test_no_ranker_takes_what_are_no_weights(name: str, rankers: dict[str, Any]) -> None:
    for kind, ranker in rankers.items():
        refused(lambda: clone(ranker).fit(TABLE, _votes(kind), NO_WEIGHTS[name]), f"{kind}: fit")


def test_missing_values_are_refused_where_no_fill_was_learned(rankers: dict[str, Any]) -> None:
    gaps = np.where(np.eye(4, WIDE) > 0, np.nan, 1.0)
    for kind, ranker in rankers.items():
        if kind in ("linear", "forest"):  # mean; kept
            assert np.isfinite(ranker.predict(gaps)).all()
        else:
            refused(lambda: ranker.predict(gaps), kind)
    assert all(
        len(copy.deepcopy(one).predict(np.ones((0, WIDE)))) == 0
        for kind, one in rankers.items()
        if kind[:7] != "queries"
    )


# -- metrics -----------------------------------------------------------------------------------------------------------
LISTED: dict[str, Any] = {"scores": [3.0, 1.0, 2.0, 0.0], "labels": [1, 0, 2, 1], "query": ["p", "p", "q", "q"]}
METRICS = ("ndcg", "err", "precision", "average_precision", "reciprocal_rank", "kendall_tau", "pairwise_loss", "auc")
NO_NUMBERS: dict[str, Any] = {
    **{
        name: value
        for name, value in NO_WEIGHTS.items()
        if name in ("a number", "sparse", "objects", "a set", "complex")
    },
    "None": None,
    "a text": "abcd",
    "too few": [1.0],
    "too many": [1.0] * 5,
    "two dimensions": np.ones((4, 1)),
    "missing": [1, 2, np.nan, 3],
    "None inside": [1, None, 2, 3],
    "texts": list("abcd"),
    "numbers as texts": ["1", "2", "3", "4"],
    "a mixture": np.array([1, 2, 3, "x"], object),
    "dates": np.array(["2020-01-01"] * 4, "M8[D]"),
    "masked": np.ma.masked_array([1.0, 2, 3, 4], [0, 1, 0, 0]),
    "beyond float64": [10**400, 1, 2, 3],
    "a generator": (x for x in range(4)),
    "a table": {"a": [1, 2, 3, 4]},
    "bytes": b"abcd",
}
NO_QUERIES = {
    name: NO_NUMBERS[name] for name in ("too few", "too many", "missing", "None inside", "two dimensions", "masked")
} | {
    "a text": "abcd",
    "floats": [1.5, 1.5, 2.5, 2.5],
    "texts and numbers": ["a", 1, "b", 2],
    "a frame": pd.DataFrame({"x": [1, "a", 2, 3]}),
    "a number": 3,
    "beyond 64 bits": [2**70] * 4,
}
NO_CUTS = [
    0,
    -1,
    1.5,
    "1",
    True,
    float("nan"),
    [1],
    np.array([1, 2]),
    MATRIX,
    pd.Series([1.0]),
    {},
    len,
    NO_MATRIX["sparse"],
]


@pytest.mark.parametrize("name", METRICS)
def test_no_metric_takes_what_are_no_numbers(name: str) -> None:
    metric = getattr(cc, name)
    for role, wrong in (("scores", NO_NUMBERS), ("labels", NO_NUMBERS), ("query", NO_QUERIES)):
        for what, value in wrong.items():
            refused(lambda: metric(**LISTED | {role: value}), f"{name}: {role}: {what}")
    if name not in ("kendall_tau", "pairwise_loss", "auc"):
        for cut in NO_CUTS:
            refused(lambda: metric(**LISTED, at=cut), f"{name}: at {cut!r}")


def test_what_is_meant_is_taken() -> None:
    expected = cc.ndcg(**LISTED).tolist()
    for make in (np.array, tuple, pd.Series, pl.Series, pa.array, lambda x: np.array(x, object)):
        assert cc.ndcg(make(LISTED["scores"]), make(LISTED["labels"]), make(LISTED["query"])).tolist() == expected
    exact = [decimal.Decimal(str(score)) for score in LISTED["scores"]]
    assert cc.ndcg(exact, np.ma.masked_array(LISTED["labels"]), LISTED["query"]).tolist() == expected


# -- surrogates on tensors ---------------------------------------------------------------------------------------------
def test_no_surrogate_on_tensors_takes_what_are_no_tensors_of_its_shape() -> None:
    torch = pytest.importorskip("torch")
    real, whole = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0, 1])
    flags, far = torch.tensor([True, False]), torch.tensor([0, 3])
    t = cc.torch
    for wrong in (None, 3, "x", [1.0, 2.0], np.ones(3), torch.tensor(1.0), torch.ones((3, 1)), torch.tensor([1, 2, 3])):
        refused(lambda: t.edge_loss(wrong, whole, whole.flip(0)), f"scores {wrong!r}")
        refused(lambda: t.value_penalty(wrong, real), f"scores {wrong!r}")
        refused(lambda: t.against_all(wrong, real, torch.tensor([0, 3])), f"scores {wrong!r}")
        refused(lambda: t.PreferenceLoss()(wrong, torch.zeros(3).long(), whole, whole.flip(0)), f"reward {wrong!r}")
        refused(lambda: t.PreferenceLoss().pairs(wrong, real[:2], whole, whole.flip(0)), f"chosen {wrong!r}")
    for wrong in (
        None,
        3,
        [0, 1],
        np.array([0, 1]),
        torch.tensor([0.0, 1.0]),
        flags,
        far,
        -far,
        torch.tensor([[0, 1]]),
        whole[:1],
    ):
        refused(lambda: t.edge_loss(real, wrong, whole.flip(0)), f"winner {wrong!r}")
        refused(lambda: t.edge_loss(real, whole, wrong), f"loser {wrong!r}")
        refused(lambda: t.PreferenceLoss()(real, torch.zeros(3).long(), whole, wrong), f"loser {wrong!r}")
    for wrong in ([1.0, 1.0], torch.ones(3), torch.ones((2, 1)), np.ones(2), "x"):
        refused(lambda: t.edge_loss(real, whole, whole.flip(0), wrong), f"weight {wrong!r}")
        refused(lambda: t.edge_loss(real, whole, whole.flip(0), margin=wrong), f"margin {wrong!r}")
        refused(lambda: t.net_preferences(whole, whole.flip(0), count=wrong), f"count {wrong!r}")
    for wrong in (
        [0, 3],
        torch.tensor([0.0, 3.0]),
        torch.tensor([0, 2]),
        torch.tensor([1, 3]),
        torch.tensor([0, 4]),
        torch.tensor([0, 2, 1, 3]),
        torch.zeros(0).long(),
    ):
        refused(lambda: t.against_all(real, real, wrong), f"start {wrong!r}")
    for wrong in (torch.zeros(2).long(), torch.zeros(3), torch.tensor([0, 0, 7]), [0, 0, 0]):
        refused(
            lambda: t.edge_loss(real, whole, whole.flip(0), graph=wrong, graphs=2, reduction="graph"),
            f"graph {wrong!r}",
        )
    refused(lambda: t.net_preferences(whole, whole.flip(0), count=torch.tensor([1, -1])), "a count below 0")


def test_numbers_of_responses_may_be_of_any_size() -> None:
    torch = pytest.importorskip("torch")
    big = 2**62
    one, other, net = cc.torch.net_preferences(
        torch.tensor([big, big, 5, -7]), torch.tensor([big + 1, big + 1, big, big]), count=torch.tensor([2, 1, 4, 1])
    )
    found = {(a, b): n for a, b, n in zip(one.tolist(), other.tolist(), net.tolist())}
    assert found == {(big, big + 1): 3, (5, big): 4, (-7, big): 1}


def test_words_are_asked_for_by_name() -> None:
    votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"])
    table = {"winner": ["a"], "loser": ["b"]}
    wrongs: tuple[Any, ...] = (
        np.zeros(0),
        np.zeros((2, 2, 2)),
        scipy.sparse.eye(2),
        np.zeros(3, dtype=[("a", int)]),
        [],
    )
    for wrong in wrongs:
        for option in ("interval", "ties", "quasi", "structure"):
            with pytest.raises(cc.UsageError):
                cc.rank(votes, **{option: wrong})
        for option in ("kind", "on_error", "clicks", "engine"):
            with pytest.raises(cc.UsageError):
                cc.read(table, **{option: wrong})
