"""Bad input to rankers: each says what is wrong, where, and what is allowed; nothing is dropped unsaid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.lists import ListRanker
from concordant.preferences.preferences import Preferences

VOTES = Preferences.from_comparisons(
    ["b", "c", "c", "y", "y"], ["a", "b", "a", "x", "x"], ["p", "p", "p", "q", "q"], count=[3, 3, 3, 3, 1]
)
COLUMNS = {
    "query": ["p", "p", "p", "q", "q"],
    "item": ["a", "b", "c", "x", "y"],
    "bm25": [1.0, 2.0, 3.0, 0.5, 2.5],
    "length": [9.0, 4.0, 7.0, 2.0, 2.0],
}
RANKERS = (
    AggregationRanker("log-odds", order="all"),
    AggregationRanker("log-odds", order=2),
    EdgeRanker(),
    EdgeRanker("linear"),
)


@pytest.fixture(params=RANKERS, ids=["all", "k", "difference-graph", "linear"])
def ranker(request):
    return request.param


def without(place: int) -> dict[str, list]:
    return {name: column[:place] + column[place + 1 :] for name, column in COLUMNS.items()}


def test_tables_of_any_make(ranker) -> None:
    expected = ranker.fit(COLUMNS, VOTES).predict(COLUMNS)
    assert expected[0] < expected[1] < expected[2] and expected[3] < expected[4]
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert np.array_equal(ranker.fit(make(COLUMNS), VOTES).predict(make(COLUMNS)), expected)
    assert ranker.feature_names_in_.tolist() == ["bm25", "length"]


def test_files(ranker, tmp_path) -> None:
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "features.csv", index=False)
    expected = ranker.fit(COLUMNS, VOTES).predict(COLUMNS)
    assert np.array_equal(
        ranker.fit(tmp_path / "features.csv", VOTES).predict(str(tmp_path / "features.csv")), expected
    )


def test_an_item_with_preferences_but_no_features(ranker) -> None:
    with pytest.raises(InputError, match=r"1 of 5 items with preferences have no features \(query 'p', item 'c'\)"):
        ranker.fit(without(2), VOTES)
    with pytest.raises(InputError, match="no features"):
        Judged.of(VOTES, item=COLUMNS["item"][:4], query=COLUMNS["query"][:4])


def test_features_without_preferences_are_scored(ranker) -> None:
    more = {name: [*column, new] for (name, column), new in zip(COLUMNS.items(), ("r", "z", 9.0, 9.0), strict=True)}
    ranker.fit(more, VOTES)
    assert ranker.predict(more).shape == (6,)
    assert ranker.status_["notes"][0].numbers == {"rows": 1, "of": 6}


def test_a_query_and_item_twice(ranker) -> None:
    twice = {name: [*column, column[0]] for name, column in COLUMNS.items()}
    with pytest.raises(
        InputError, match=r"repeat an earlier \(query, item\): rows 1 and 6 are both query 'p', item 'a'"
    ):
        ranker.fit(twice, VOTES)
    with pytest.raises(InputError, match=r"repeat an earlier \(query, item\)"):
        Judged.of(VOTES, item=twice["item"], query=twice["query"])
    with pytest.raises(InputError, match=r"repeat an earlier \(query, item\)"):
        Judged.of_labels([1, 0], query=["p", "p"], item=["a", "a"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite(ranker, bad: float) -> None:
    broken = {**COLUMNS, "bm25": [1.0, 2.0, bad, 0.5, 2.5]}
    with pytest.raises(InputError, match=r"1 of 10 values are not finite \(row 3, column 'bm25'"):
        ranker.fit(broken, VOTES)
    X = np.column_stack([broken["bm25"], broken["length"]])
    with pytest.raises(InputError, match="not finite"):
        ranker.fit(X, Judged.of(VOTES, item=COLUMNS["item"], query=COLUMNS["query"]))
    ranker.fit(COLUMNS, VOTES)
    with pytest.raises(InputError, match="not finite"):
        ranker.predict(X)


def test_feature_names_that_differ_at_scoring(ranker) -> None:
    ranker.fit(COLUMNS, VOTES)
    renamed = {("tfidf" if name == "bm25" else name): column for name, column in COLUMNS.items()}
    with pytest.raises(InputError, match=r"lack 'bm25' and have 'tfidf'.*fitted on 2: 'bm25', 'length'"):
        ranker.predict(renamed)
    with pytest.raises(InputError, match="lack 'bm25'"):
        ranker.score(renamed, VOTES)


def test_a_query_with_one_item(ranker) -> None:
    declared = Preferences.from_ratings(["s", *"ppp"], ["only", *"abc"], [1.0, 1.0, 2.0, 3.0])
    table = {"query": ["s", *"ppp"], "item": ["only", *"abc"], "x": [7.0, 1.0, 2.0, 3.0]}
    ranker.fit(table, declared)
    assert ranker.coef_[0] > 0
    assert ("single items", 1) in [(note.code, note.numbers.get("queries")) for note in ranker.status_["notes"]]
    labels = ListRanker().fit((np.array([[7.0], [1.0], [2.0]]), list("spp"), list("abc")), [1, 0, 1])
    assert labels.coef_[0] > 0


def test_k_larger_than_every_query_is_all_judgments() -> None:
    for kind in (AggregationRanker, EdgeRanker):
        whole, large = (kind(order=order, ridge=0.01).fit(COLUMNS, VOTES) for order in ("all", 1000))
        assert np.allclose(large.coef_, whole.coef_, rtol=1e-12)
        assert any("2 of 2 queries have at most 1,000 judgments" in note for note in large.status_["notes"])


def test_labels_of_another_type(ranker) -> None:
    numbered = {**COLUMNS, "item": [1, 2, 3, 4, 5]}
    with pytest.raises(InputError, match="labels of item are integers in the features"):
        ranker.fit(numbered, VOTES)


def test_what_does_not_say_its_rows(ranker) -> None:
    X = np.column_stack([COLUMNS["bm25"], COLUMNS["length"]])
    with pytest.raises(UsageError, match=r"plain matrix do not say which item.*wrap the preferences with Judged"):
        ranker.fit(X, VOTES)
    with pytest.raises(UsageError, match=r"is \(X, query, item\), not one of 2"):
        ranker.fit((X, COLUMNS["item"]), VOTES)
    judged = Judged.of(VOTES, item=COLUMNS["item"], query=COLUMNS["query"])
    with pytest.raises(InputError, match="X has 4 rows, the judgments are on 5"):
        ranker.fit(X[:4], judged)
    with pytest.raises(UsageError, match="takes Preferences"):
        Judged.of([1, 0], item=["a", "b"])


def test_nothing_to_learn_from(ranker) -> None:
    with pytest.raises(InputError, match="no judgments to learn from"):
        ranker.fit(COLUMNS, Preferences.empty())
    ranker.fit(COLUMNS, VOTES)
    shown = Preferences.from_selections(["p"] * 2, [1, 1], [1, 2], ["a", "b"], [0, 0])
    with pytest.raises(InputError, match="has a comparison to be scored by"):
        ranker.score(COLUMNS, shown)


def test_features_that_hold_for_every_query(ranker) -> None:
    votes = Preferences.from_comparisons(["b", "c", "c"], ["a", "b", "a"], ["p", "q", "q"], count=[4, 4, 4])
    table = {"item": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
    ranker.fit(table, votes)
    assert ranker.coef_[0] > 0
    judged = Judged.of(votes, item=table["item"])
    again = type(ranker)(**ranker.get_params()).fit(np.array([[1.0], [2.0], [3.0]]), judged)
    assert np.array_equal(again.coef_, ranker.coef_)
    with pytest.raises(UsageError, match="no groups"):
        _ = judged.query
    with pytest.raises(InputError, match="cut queries apart"):
        judged[:2]


def test_constant_features_get_no_weight(ranker) -> None:
    ranker.fit({**COLUMNS, "same": [3.0] * 5}, VOTES)
    assert ranker.coef_[2] == pytest.approx(0, abs=1e-12) and np.isfinite(ranker.coef_).all()


def test_single_precision_is_enough(ranker) -> None:
    X = np.column_stack([COLUMNS["bm25"], COLUMNS["length"]])
    wide = ranker.fit((X, COLUMNS["query"], COLUMNS["item"]), VOTES).coef_
    narrow = ranker.fit((X.astype(np.float32), COLUMNS["query"], COLUMNS["item"]), VOTES).coef_
    assert np.allclose(narrow, wide, rtol=1e-4, atol=1e-5)


def test_features_object_must_not_be_changed() -> None:
    features = Features.of(np.column_stack([COLUMNS["bm25"], COLUMNS["length"]]), COLUMNS["item"], COLUMNS["query"])
    before = features.X.copy()
    AggregationRanker("log-odds", order="all").fit(features, VOTES).predict(features)
    assert np.array_equal(features.X, before)
