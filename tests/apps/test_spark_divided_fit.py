"""The default fit where one query is too large for a task: slices of it give what memory gives, without the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from concordant.errors import InputError, UsageError
from concordant.io.read import read
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.targets import informed
from concordant.preferences import sampling
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.sampling import label_keys
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_chosen import Choosing
    from concordant.apps.spark.learning_held import Sums, _Making, objects, pieces
    from concordant.apps.spark.learning_passes import Dealing
    from concordant.apps.spark.learning_slices import (
        Cuts,
        Winners,
        _Cutting,
        _Ends,
        _Gathering,
        _labels,
        _Seconds,
        begins,
    )

Table = dict[str, Any]
FEATURES = ("x", "y", "z")


def votes(
    sizes: dict[str, tuple[int, int]],
    *,
    ties: float = 0.0,
    people: int = 0,
    weights: bool = False,
    shared: bool = False,
) -> Any:
    """Comparisons of queries of so many items and rows, and the features of the items."""
    rng = np.random.default_rng(len(sizes) + sum(rows for _, rows in sizes.values()))
    log: Table = {name: [] for name in ("query", "left", "right", "outcome")}
    rows: Table = {"query": [], "item": [], **{name: [] for name in FEATURES}}
    for query, (items, number) in sizes.items():
        X = rng.normal(size=(items, len(FEATURES)))
        score = X @ [1.5, -1.0, 0.5] + rng.normal(size=items)
        one = rng.integers(0, items, number)
        other = (one + rng.integers(1, items, number)) % items
        wins = rng.random(number) < 1 / (1 + np.exp(score[other] - score[one]))
        outcome = np.where(rng.random(number) < ties, "tie", np.where(wins, "left", "right"))
        columns = ([query] * number, [f"i{c}" for c in one], [f"i{c}" for c in other], outcome.tolist())
        for name, values in zip(("query", "left", "right", "outcome"), columns, strict=True):
            log[name] += values
        rows["query"] += [query] * items
        rows["item"] += [f"i{c}" for c in range(items)]
        for name, column in zip(FEATURES, X.T, strict=True):
            rows[name] += column.tolist()
    if people:
        log["annotator"] = [f"a{code}" for code in rng.integers(0, people, len(log["query"]))]
    if shared:
        shares = {"left": 0.8, "right": 0.0, "tie": 0.5}
        log["outcome"] = [shares[one] for one in log["outcome"]]
    if weights:
        log["weight"] = rng.choice([0.5, 1.0, 2.0], len(log["query"])).tolist()
    return log, rows


SMALL = {f"q{number}": (5, 40) for number in range(14)}
CASES: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "one query": (votes({"large": (20, 900)}), {}, ("large",)),
    "ties": (votes({"large": (12, 500)}, ties=0.3), {"folds": 4}, ("large",)),
    "clusters": (votes({"large": (12, 600), "p": (4, 30)}, people=25), {}, ("large",)),
    "beside small ones": (votes({**SMALL, "large": (15, 700)}, ties=0.1), {}, ("large",)),
    "weights": (votes({**SMALL, "large": (15, 700)}, weights=True), {}, ("large",)),
    "shared wins": (votes({**SMALL, "large": (15, 700)}, ties=0.1, shared=True), {}, ("large",)),
    "two": (votes({"large": (15, 400), "larger": (16, 500), "p": (5, 60)}, weights=True), {}, ("large", "larger")),
    "τ² given": (votes({"large": (12, 300)}), {"tau2": 0.5, "ridge": 0.3, "gate": False}, ("large",)),
    "hardly any": (votes({"large": (5, 7)}), {}, ("large",)),
}


@dataclass
class Here:
    """Objects of tasks in this process, as they come back from Spark."""

    objects: list[Any]

    def sums(self, work: Callable[[Any], Any]) -> Any:
        return sum((pickle.loads(pickle.dumps(work))(each) for each in self.objects), Sums())

    def changed(self, change: Callable[[Any], Any]) -> Here:
        return Here([pickle.loads(pickle.dumps(change(each))) for each in self.objects])

    def some(self, buckets: Sequence[int]) -> Here:
        return Here([each for each in self.objects if each.bucket in buckets])

    def forget(self) -> None:
        """There is nothing to free."""


def here(prefs: Preferences, rows: Table, divided: Sequence[str], shares: int, size: int) -> tuple[Here, Normaliser]:
    """What tasks make of a log."""
    X = np.column_stack([rows[name] for name in FEATURES])
    normaliser = Normaliser().fit(X)
    making = _Making(None, 1 << 30, True, len(FEATURES), normaliser, True)  # type: ignore[arg-type]
    table = pa.table({"query": rows["query"], "item": rows["item"], **dict(zip(("x0", "x1", "x2"), X.T, strict=True))})
    small = [query for query in prefs.queries if query not in divided]
    made = [making.made(place, prefs.select(small[place::2]), table) for place in range(2) if small[place::2]]
    bucket = len(made)
    for query, label in enumerate(divided):
        whole = prefs.select([label])
        place = (whole.winner + whole.loser + whole.winner * whole.loser) % shares  # type: ignore[attr-defined]
        parts = [np.flatnonzero(place == share) for share in range(shares) if (place == share).any()]
        own = [keep(whole, at, whole.count[at], whole.declared) for at in parts]
        ends = _Ends(sum(map(_labels, own), Sums())["items"])
        number = sum(map(ends, own), Sums())["number"]  # type: ignore[arg-type]
        some = np.flatnonzero(number > size)
        of_pairs = sum(map(_Seconds(ends, some), own), Sums())["number"] if len(some) else np.zeros((0, len(number)))
        cutting = _Cutting(ends, Cuts.of(number, some, of_pairs, size))
        cut: dict[int, list[Any]] = {}
        for source, part in enumerate(own):
            for batch in cutting(pieces(source, part)):
                found = objects(iter([batch.select(["bucket", "left", "piece"])]))
                cut.setdefault(int(batch[0][0].as_py()), []).extend(each for _, each in found)
        gathering = _Gathering(making, ends.items, query, bucket)
        slices = [gathering.made(at, pieces_of, table) for at, pieces_of in cut.items()]
        bucket += max(cut) + 1
        made += [each for each in slices if each is not None]
    return Here(made), normaliser


def learned(name: str, shares: int = 3, size: int = 40) -> tuple[Any, Any]:
    """What Choosing learns from slices, and the ranker fitted in memory."""
    (log, rows), params, divided = CASES[name]
    prefs = read(log, **({"cluster": "annotator"} if "annotator" in log else {}))
    held, normaliser = here(prefs, rows, divided, shares, size)
    choosing = Choosing(AggregationRanker(**params), "comparisons", held, normaliser)  # type: ignore[arg-type]
    return choosing.learned(None, len(rows["item"])), AggregationRanker(**params).fit(rows, prefs)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_slices_give_the_fit_of_memory(name: str) -> None:
    (theta, how, notes, curve), plain = learned(name)
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-9)
    for key in ("tau2", "prior_ridge"):
        assert how.prior[key] == pytest.approx(plain.status_[key], rel=1e-12)
    facts = how.facts.status(32)
    assert {key: plain.status_[key] for key in facts} == pytest.approx(facts)
    assert how.ended["ridge"] == plain.ridge_
    for own, known in zip((gate.row for gate in how.gates), plain.status_.get("gate", []), strict=True):
        tried, others = own.pop("candidates"), known["candidates"]
        assert own == {key: value for key, value in known.items() if key != "candidates"}
        for one, other in zip(tried, others, strict=True):
            assert one == pytest.approx(other, abs=1e-12)
    assert (curve is None) == (not hasattr(plain, "cv_"))
    if curve is not None:
        assert curve.best == plain.cv_.best
        np.testing.assert_allclose(curve["loss"], plain.cv_["loss"], rtol=1e-12)
    told = [str(note) for note in plain.status_["notes"]]
    assert all(str(note) in told for note in notes)


@pytest.mark.parametrize("name", ["τ² given", "beside small ones"])
def test_no_driver_on_spark(spark: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant.apps.spark import learning_slices
    from concordant.spark import fit

    monkeypatch.setattr(JudgedQueries, "_on_driver", lambda *_: pytest.fail("the driver was asked for a query"))
    monkeypatch.setattr(learning_slices, "SHARE", 150)
    (log, rows), params, _ = CASES[name]
    if name == "τ² given":  # and no column of queries
        log, rows = ({key: values for key, values in table.items() if key != "query"} for table in (log, rows))
    plain = AggregationRanker(**params).fit(rows, read(log))
    frames = (spark.createDataFrame(pa.table(table)).repartition(3) for table in (log, rows))
    ours = fit(AggregationRanker(**params), *frames, most=110)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=0, atol=1e-9 * np.abs(plain.coef_).max())
    for key in ("tau2", "ridge", "rows", "queries", "structure", "target"):
        assert ours.status_[key] == plain.status_[key], key
    assert ours.status_["prior_ridge"] == pytest.approx(plain.status_["prior_ridge"], rel=1e-12)
    for one, other in zip(ours.status_.get("gate", []), plain.status_.get("gate", []), strict=True):
        for mine, theirs in zip(one["candidates"], other["candidates"], strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)
    assert hasattr(ours, "cv_") == hasattr(plain, "cv_") == (name != "τ² given")
    if hasattr(plain, "cv_"):
        assert ours.cv_.best == plain.cv_.best
        np.testing.assert_allclose(ours.cv_["loss"], plain.cv_["loss"], rtol=1e-12)
    what = "the log: " if name == "τ² given" else "query 'large': "
    divided = [note for note in ours.status_["notes"] if "divided among tasks by their pairs" in str(note)]
    assert len(divided) == 1 and str(divided[0]).startswith(what) and "slices)" in str(divided[0])
    others = [note for note in ours.status_["notes"] if note not in divided and "distinct judgments" not in str(note)]
    assert [str(note) for note in others] == [str(note) for note in plain.status_["notes"]]


@pytest.mark.parametrize(("shares", "size"), [(1, 10**6), (2, 90), (5, 1)])
def test_the_cut_changes_nothing(shares: int, size: int) -> None:
    """Folds are dealt by the place of a judgment among all, wherever it lies: the fit is the same to rounding."""
    (usual, _, _, curve), _ = learned("beside small ones")
    (theta, _, _, other), plain = learned("beside small ones", shares, size)
    np.testing.assert_allclose(theta, usual, rtol=0, atol=1e-10)
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other["loss"], curve["loss"], rtol=1e-12)


@pytest.mark.parametrize("name", ["ties", "clusters", "weights"])
@pytest.mark.parametrize("cards", [1 << 22, 7])
def test_folds_of_slices_are_those_of_the_query(name: str, cards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every distinct judgment each fold holds out as many as in memory, many equal ones dealt without a shuffle."""
    monkeypatch.setattr(sampling, "CARDS", cards)
    (log, rows), _, (label,) = CASES[name]
    log = {key: [*values, *values[:1] * 700] for key, values in log.items()}  # one judgment many times
    prefs = read(log, **({"cluster": "annotator"} if "annotator" in log else {}))
    held, _ = here(prefs, rows, (label,), 3, 40)
    slices = [each for each in held.objects if each.slice is not None]
    distinct = {0: sum(each.prefs.distinct for each in slices)}
    places = begins(Here(slices).sums(Winners(4, distinct)))
    none = np.zeros(0, np.uint64)
    dealing = Dealing(4, 5, frozenset(["judgments"]), True, {}, none, distinct, places)
    dealt = Here(slices).changed(dealing).objects
    for fold, part in enumerate(prefs.select([label]).folds(4, seed=5)):
        mine: Preferences = sum((each.left_out(("judgments", fold)) for each in dealt), Preferences.empty())
        assert mine.select([label]) == part.select([label])  # without what is declared


def test_a_sample_without_the_divided_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the queries that are drawn first are pairs enough, the two numbers are theirs."""
    monkeypatch.setattr(informed, "SAMPLE", 12)
    (log, _), _, divided = CASES["beside small ones"]
    prefs = read(log)
    order = informed.drawn_queries(label_keys(prefs.queries, 0), Batch.whole(prefs).graphs.pairs.sizes)
    assert prefs.queries.codes_of(list(divided))[0] not in order
    (theta, how, _, _), plain = learned("beside small ones")
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-9)
    assert how.prior["tau2"] == plain.status_["tau2"]


def test_what_is_not_divided(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the driver's, and refused by name where that could not hold it."""
    from concordant.spark import fit

    log, rows = CASES["beside small ones"][0]
    frames = [spark.createDataFrame(pa.table(table)) for table in (log, rows)]
    monkeypatch.setattr("concordant.apps.spark.frames.HERE", 10)
    asked: list[dict[str, Any]] = [{"target": "ndcg@3"}, {"order": 5}, {"gain": "2^s-1"}, {"structure": "auto"}]
    for params in asked:
        said = r"query 'large' has \d+ distinct judgments.*A linear scorer is fitted by the aggregation that is taken"
        with pytest.raises(UsageError, match=said):
            fit(AggregationRanker(**params), *frames, most=100)
    monkeypatch.setattr("concordant.apps.spark.frames.HERE", 1 << 24)
    with pytest.raises(UsageError, match=r"a pair of items of query 'large' has 3 distinct judgments, and a task"):
        fit(*frames, most=2)
    odd = {key: [*values[:-1], "maybe" if key == "outcome" else values[-1]] for key, values in log.items()}
    with pytest.raises(InputError, match="maybe"):
        fit(odd, frames[1], most=100, session=spark)


def test_lacking_features_are_said_once() -> None:
    (log, rows), _, divided = CASES["beside small ones"]
    prefs = read(log)
    gone = {key: values[:-2] for key, values in rows.items()}
    with pytest.raises(InputError) as plain:
        AggregationRanker().fit(gone, prefs)
    held, normaliser = here(prefs, gone, divided, 3, 40)
    choosing = Choosing(AggregationRanker(), "comparisons", held, normaliser)  # type: ignore[arg-type]
    with pytest.raises(InputError) as ours:
        choosing.learned(None, len(gone["item"]))  # type: ignore[arg-type]
    assert str(ours.value) == str(plain.value)
