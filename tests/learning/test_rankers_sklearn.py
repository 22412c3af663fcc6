"""Rankers as scikit-learn estimators: cloned, searched over, split by query, in pipelines."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import indexable
from sklearn.utils.validation import check_consistent_length

from concordant.errors import InputError
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosted import BoostedRanker
from concordant.learning.rankers.boosting import RankBoostRanker
from concordant.learning.rankers.copeland import CopelandRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.lists import ListRanker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.preferences.preferences import Preferences
from ranking_problems import bradley_terry_problem

RANKERS = (AggregationRanker, BoostedRanker, CopelandRanker, EdgeRanker, ListRanker, QueryRankers, RankBoostRanker)
PROBLEM = bradley_terry_problem()
FAST = {"order": 5, "ridge": 0.01}


@pytest.mark.parametrize("ranker", RANKERS)
def test_init_only_stores(ranker: type) -> None:
    signature = inspect.signature(ranker.__init__)
    kinds = [parameter.kind for name, parameter in signature.parameters.items() if name != "self"]
    assert all(kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) for kind in kinds)
    assert sum(kind == inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds) <= 1
    marks = {name: object() for name in signature.parameters if name != "self"}
    made = ranker(**marks)
    assert vars(made) == marks  # the very objects, nothing else
    assert made.get_params(deep=False) == marks


@pytest.mark.parametrize("ranker", RANKERS)
def test_clone_set_params_and_not_fitted(ranker: type) -> None:
    made = ranker()
    again = clone(made)
    assert again is not made and again.get_params() == made.get_params()
    name = next(iter(made.get_params(deep=False)))
    assert made.set_params(**{name: None}).get_params()[name] is None
    with pytest.raises(ValueError, match="Invalid parameter"):
        made.set_params(nothing=1)
    with pytest.raises(NotFittedError):
        again.predict(PROBLEM.X)
    assert again.__sklearn_tags__().target_tags.required
    assert repr(again)


def test_judged_is_what_scikit_learn_takes_for_y() -> None:
    judged = PROBLEM.judged
    check_consistent_length(PROBLEM.X, judged, judged.query)
    X, y, _ = indexable(PROBLEM.X, judged, judged.query)
    assert y is judged and judged.shape == (len(X),)
    assert len(judged.query) == len(judged.item) == len(judged)
    assert pickle.loads(pickle.dumps(judged)).prefs == judged.prefs


def test_splitting_keeps_the_judgments_of_the_queries_chosen() -> None:
    judged = PROBLEM.judged
    splitter = GroupShuffleSplit(3, random_state=0)
    for train, test in splitter.split(PROBLEM.X, judged, judged.query):
        parts = judged[train, ...], judged[test]
        assert parts[0].prefs + parts[1].prefs == judged.prefs
        for part, rows in zip(parts, (train, test), strict=True):
            assert set(part.prefs.queries) == set(PROBLEM.query[rows])
            assert part.query.tolist() == PROBLEM.query[rows].tolist()
    mask = judged.query == "q03"
    assert judged[mask].prefs.queries.tolist() == ["q03"]
    assert len(judged[:0]) == 0 and len(judged[:0].prefs) == 0


def test_cutting_a_query_apart_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"cut queries apart.*query 'q00'.*GroupKFold"):
        PROBLEM.judged[1:]
    with pytest.raises(InputError, match="chosen more than once"):
        PROBLEM.judged[[0, 0]]
    with pytest.raises(InputError, match="GroupKFold"):
        cross_val_score(AggregationRanker(**FAST), PROBLEM.X, PROBLEM.judged, cv=KFold(3), error_score="raise")


def test_rows_without_judgments_may_be_split_off() -> None:
    votes = Preferences.from_comparisons(["a"], ["b"], query=["p"])
    judged = Judged.of(votes, item=["a", "b", "c"], query=["p", "p", "p"])
    assert len(judged[:2].prefs) == 1


def test_grid_search_equals_fitting_by_hand() -> None:
    grid = {"aggregationranker__ridge": [1e-3, 10.0]}
    pipeline = make_pipeline(StandardScaler(), AggregationRanker(order=5, standardise=False))
    found = GridSearchCV(pipeline, grid, cv=GroupKFold(3)).fit(PROBLEM.X, PROBLEM.judged, groups=PROBLEM.judged.query)
    by_hand = np.zeros((2, 3))
    for fold, (train, test) in enumerate(GroupKFold(3).split(PROBLEM.X, groups=PROBLEM.query)):
        mean, scale = PROBLEM.X[train].mean(axis=0), PROBLEM.X[train].std(axis=0)
        prefs = [PROBLEM.prefs.select(sorted(set(PROBLEM.query[rows]))) for rows in (train, test)]
        for place, ridge in enumerate([1e-3, 10.0]):
            train_rows = ((PROBLEM.X[train] - mean) / scale, PROBLEM.query[train], PROBLEM.item[train])
            ranker = AggregationRanker(order=5, standardise=False, ridge=ridge).fit(train_rows, prefs[0])
            scores = ranker.predict((PROBLEM.X - mean) / scale)
            score_of = dict(zip(zip(PROBLEM.query, PROBLEM.item, strict=True), scores, strict=True))
            held = [
                (score_of[PROBLEM.query[up], PROBLEM.item[up]], score_of[PROBLEM.query[up], PROBLEM.item[down]])
                for up, down in zip(PROBLEM.winner, PROBLEM.loser, strict=True)
                if up in test
            ]
            by_hand[place, fold] = np.mean([first > second for first, second in held])
    got = np.column_stack([found.cv_results_[f"split{fold}_test_score"] for fold in range(3)])
    assert np.allclose(got, by_hand, atol=1e-12)
    assert found.best_params_["aggregationranker__ridge"] == [1e-3, 10.0][int(by_hand.mean(axis=1).argmax())]


def test_cross_val_score_and_predict_of_every_ranker() -> None:
    groups, cv = PROBLEM.judged.query, GroupKFold(3)
    labels = Judged.of_labels(np.round(PROBLEM.truth - PROBLEM.truth.min()), query=PROBLEM.query)
    for ranker, y, least in (
        (AggregationRanker(**FAST), PROBLEM.judged, 0.7),
        (BoostedRanker(rounds=10, leaf_rows=3), PROBLEM.judged, 0.7),
        (BoostedRanker(rounds=10, leaf_rows=3), labels, 0.8),
        (EdgeRanker(), PROBLEM.judged, 0.7),
        (EdgeRanker("linear"), PROBLEM.judged, 0.7),
        (ListRanker(), labels, 0.8),
        (ListRanker("ranknet"), labels, 0.9),
        (RankBoostRanker(rounds=20), PROBLEM.judged, 0.7),
    ):
        scores = cross_val_score(ranker, PROBLEM.X, y, groups=groups, cv=cv, error_score="raise")
        assert (scores > least).all(), (ranker, scores)
        predicted = cross_val_predict(ranker, PROBLEM.X, y, groups=groups, cv=cv)
        assert predicted.shape == (len(PROBLEM.X),)


def test_both_calls_are_one() -> None:
    features = PROBLEM.features
    table = pd.DataFrame(PROBLEM.X, columns=["1", "2", "3"]).assign(item=PROBLEM.item, query=PROBLEM.query)
    first = AggregationRanker(**FAST).fit(PROBLEM.X, PROBLEM.judged)
    for X in (features, (PROBLEM.X, PROBLEM.query, PROBLEM.item), table):
        other = AggregationRanker(**FAST).fit(X, PROBLEM.prefs)
        assert np.array_equal(other.coef_, first.coef_)
        assert np.array_equal(other.predict(X), first.predict(PROBLEM.X))
        assert other.score(X, PROBLEM.prefs) == first.score(PROBLEM.X, PROBLEM.judged)
    assert first.n_features_in_ == 3 and not hasattr(first, "feature_names_in_")


def test_feature_names_are_kept_matched_and_put_in_order() -> None:
    frame = pd.DataFrame(PROBLEM.X, columns=["a", "b", "c"])
    ranker = AggregationRanker(**FAST).fit(frame, PROBLEM.judged)
    assert ranker.feature_names_in_.tolist() == ["a", "b", "c"]
    scores = ranker.predict(frame)
    assert np.array_equal(ranker.predict(frame[["c", "a", "b"]]), scores)  # in any order
    table = frame.assign(item=PROBLEM.item, query=PROBLEM.query)[["c", "query", "b", "item", "a"]]
    assert np.array_equal(ranker.predict(table), scores)
    assert np.array_equal(ranker.predict(PROBLEM.X), scores)
    with pytest.raises(InputError, match=r"lack 'c' and have 'd', which were not there"):
        ranker.predict(frame.rename(columns={"c": "d"}))
    with pytest.raises(InputError, match="lack 'b'"):
        ranker.predict(frame[["a", "c"]])
    with pytest.raises(InputError, match=r"2 features, but AggregationRanker is expecting 3"):
        ranker.predict(PROBLEM.X[:, :2])
    ranker.fit(PROBLEM.X, PROBLEM.judged)
    assert not hasattr(ranker, "feature_names_in_")


def test_a_score_does_not_depend_on_the_rows_beside_it() -> None:
    ranker = EdgeRanker().fit(PROBLEM.X, PROBLEM.judged)
    scores = ranker.predict(PROBLEM.X)
    assert np.array_equal(np.concatenate([ranker.predict(PROBLEM.X[i : i + 1]) for i in range(9)]), scores[:9])
    assert np.array_equal(ranker.predict(PROBLEM.X[::-1]), scores[::-1])


def test_weights_are_split_with_the_rows() -> None:
    weight = np.where(PROBLEM.query < "q06", 2.0, 1.0)
    search = GridSearchCV(EdgeRanker(), {"ridge": [0.01, 0.1]}, cv=GroupKFold(3), error_score="raise")
    search.fit(PROBLEM.X, PROBLEM.judged, groups=PROBLEM.judged.query, sample_weight=weight)
    best = EdgeRanker(**search.best_params_).fit(PROBLEM.X, PROBLEM.judged, weight)
    assert np.array_equal(search.best_estimator_.coef_, best.coef_)
