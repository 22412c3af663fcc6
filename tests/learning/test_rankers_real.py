"""Rankers on real features and labels: MQ2008 and the MSLR piece, with comparisons drawn from the labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_judged
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.lists import ListRanker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.preferences import Preferences
from conftest import shared_data


def drawn(features: Features, labels: np.ndarray, number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows (winner, loser) of ``number`` comparisons a query, pairs at random, i ≻ j with probability σ(r_i − r_j)."""
    draw = np.random.default_rng(seed)
    pairs = []
    for query in range(len(features.queries)):
        rows = np.flatnonzero(features.query == query)
        if len(rows) > 1:
            first = draw.integers(len(rows), size=number)
            second = (first + 1 + draw.integers(len(rows) - 1, size=number)) % len(rows)
            first, second = rows[first], rows[second]
            wins = draw.random(number) < 1 / (1 + np.exp(labels[second] - labels[first]))
            pairs.append(np.column_stack([np.where(wins, first, second), np.where(wins, second, first)]))
    winner, loser = np.concatenate(pairs).T
    return winner, loser


def preferences(features: Features, winner: np.ndarray, loser: np.ndarray) -> Preferences:
    item, query = (np.array(labels.tolist(), object) for labels in (features.items, features.queries))
    return Preferences.from_comparisons(
        item[features.item[winner]], item[features.item[loser]], query[features.query[winner]]
    )


@pytest.fixture(scope="module")
def mq2008():
    folder = shared_data("mq2008")
    train, labels = read_judged(folder / "S1.txt")
    test, held = read_judged(folder / "S2.txt")
    winner, loser = drawn(train, labels, 160)
    return train, labels, test, held, winner, loser


def of_random_scores(test: Features, held: np.ndarray) -> float:
    scores = np.random.default_rng(0).normal(size=(20, len(held)))
    return float(np.mean([ndcg(each, held, test.query).mean() for each in scores]))


@pytest.mark.parametrize(
    "ranker",
    [
        AggregationRanker(),
        AggregationRanker("bradley-terry", order="all", gain="identity", normalise=False),
        AggregationRanker(order="all", informed=True, gain="identity", normalise=False),
        EdgeRanker("ranknet"),
        EdgeRanker("difference-graph"),
        EdgeRanker("linear"),
        EdgeRanker("ndcg-pairwise", order=20, subsets=8),
    ],
)
def test_unseen_queries_are_ranked_far_better_than_at_random(mq2008, ranker) -> None:
    train, _, test, held, winner, loser = mq2008
    prefs = preferences(train, winner, loser)
    ranker.fit(train, prefs)
    found = ndcg(ranker.predict(test), held, test.query).mean()
    assert found > of_random_scores(test, held) + 0.1
    ended = ("closed form", "converged", "pairwise logistic scorer", "linear, chosen by the gate")
    assert ranker.status_["status"].startswith(ended)


def test_ranknet_is_logistic_regression_on_real_difference_rows(mq2008) -> None:
    train, _, _, _, winner, loser = mq2008
    scale = train.X.std(axis=0)
    difference = (train.X[winner] - train.X[loser]) / np.where(scale > 0, scale, 1)
    sign = np.where(np.arange(len(winner)) % 2, 1, -1)
    peer = LogisticRegression(C=1 / (len(winner) * 0.01), fit_intercept=False, tol=1e-8, max_iter=1000)
    peer.fit(difference * sign[:, None], sign)
    ranker = EdgeRanker("ranknet", ridge=0.01).fit(train, preferences(train, winner, loser))
    assert np.allclose(ranker.coef_standardised_, peer.coef_[0], atol=1e-4)


def test_labels_and_cross_validation_over_queries(mq2008) -> None:
    train, labels, test, held, winner, loser = mq2008
    ranker = ListRanker().fit(train, labels)
    assert ranker.score(test, held) > of_random_scores(test, held) + 0.15
    query, item = train.queries.take(train.query), train.items.take(train.item)
    judged = Judged.of(preferences(train, winner, loser), query=query, item=item)
    scores = cross_val_score(EdgeRanker(), train.X, judged, groups=judged.query, cv=GroupKFold(4), error_score="raise")
    assert (scores > 0.51).all()


def test_a_ranker_per_query_orders_what_it_has_not_seen(mq2008) -> None:
    """Some queries with plenty of items: judgments on two thirds of the items, scored on the others."""
    train, labels, *_ = mq2008
    size, relevant = np.bincount(train.query), np.bincount(train.query, labels > 0)
    chosen = np.flatnonzero((size >= 60) & (relevant >= 10))
    assert len(chosen) >= 5
    draw = np.random.default_rng(0)
    rows = np.flatnonzero(np.isin(train.query, chosen))
    seen = draw.random(len(rows)) < 2 / 3
    known, unknown = train.take(rows[seen]), train.take(rows[~seen])
    winner, loser = drawn(known, labels[rows[seen]], 2000)
    rankers = QueryRankers(EdgeRanker("ranknet", ridge=0.1)).fit(known, preferences(known, winner, loser))
    found = ndcg(rankers.predict(unknown), labels[rows[~seen]], unknown.query)
    assert found.mean() > of_random_scores(unknown, labels[rows[~seen]]) + 0.1


def test_lightgbm_on_informed_targets(mq2008) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    train, _, test, held, winner, loser = mq2008
    trees = lightgbm.LGBMRegressor(n_estimators=60, num_leaves=15, learning_rate=0.1, verbose=-1, n_jobs=1)
    given = {"order": "all", "informed": True, "gain": "identity", "normalise": False}
    ranker = AggregationRanker(regressor=trees, **given).fit(train, preferences(train, winner, loser))
    assert ndcg(ranker.predict(test), held, test.query).mean() > of_random_scores(test, held) + 0.14


def test_mslr_piece_prefers_more_than_single_comparisons() -> None:
    """AoS Fig. 3: k = 1 clearly worse than moderate k where comparisons are plenty."""
    features, labels = read_judged(shared_data("mslr/mslr_merged_by_query.svm.gz"), dtype=np.float32)
    rows = np.flatnonzero(np.bincount(features.query)[features.query] >= 20)
    rows = rows[features.query[rows] < 60]
    features, labels = features.take(rows), labels[rows]
    prefs = preferences(features, *drawn(features, labels, 640))
    truth = [ndcg(AggregationRanker("log-odds", order=k, ridge=1e-3).fit(features, prefs).predict(features), labels,
                  features.query, at=None).mean() for k in (1, 100)]  # fmt: skip
    assert truth[1] > truth[0] + 0.02
    ranker = AggregationRanker(order=[1, 100]).fit(features, prefs)
    assert ranker.order_ == 100
