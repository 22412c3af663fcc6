"""Early stopping by the target against refits at every number of stages, with losses from their formulas."""

import warnings

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor

import concordant as cc
from concordant.learning.features.matrix import Alignment
from concordant.learning.targets.informed import informed_prior
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import folds
from concordant.ranking.bradley_terry import bradley_terry
from seeds import seed

QUERIES, ITEMS, PATIENCE = 12, 8, 4
HIST = {"min_samples_leaf": 5, "max_leaf_nodes": 4, "learning_rate": 0.3, "random_state": 0}
PLAIN = {
    "histograms": lambda n, **own: HistGradientBoostingRegressor(max_iter=n, **HIST, **own),
    "boosting": lambda n, **own: GradientBoostingRegressor(n_estimators=n, learning_rate=0.3, random_state=0, **own),
    "network": lambda n, **own: MLPRegressor(
        hidden_layer_sizes=(4,), max_iter=n, learning_rate_init=0.05, random_state=0, **own
    ),
    "lightgbm": lambda n, **own: lightgbm.LGBMRegressor(
        n_estimators=n, min_child_samples=5, verbose=-1, n_jobs=1, **own
    ),
    "xgboost": lambda n, **own: xgboost.XGBRegressor(n_estimators=n, max_depth=2, n_jobs=1, **own),
}
STOPPING = {
    "histograms": {"early_stopping": True, "n_iter_no_change": PATIENCE},
    "boosting": {"n_iter_no_change": PATIENCE},
    "network": {"early_stopping": True, "n_iter_no_change": PATIENCE},
    "lightgbm": {"early_stopping_round": PATIENCE},
    "xgboost": {"early_stopping_rounds": PATIENCE},
}
FREE = {"histograms": {"early_stopping": False}, "network": {"n_iter_no_change": 1000}}
MOST = 30


@pytest.fixture(scope="module")
def labelled():
    """Features, queries and labels that the first two features tell in part."""
    random = np.random.default_rng(seed(0))
    X = random.normal(size=(QUERIES * ITEMS, 3))
    label = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + random.normal(size=len(X))), 0, 4)
    return X, np.repeat(np.arange(QUERIES), ITEMS), label


def stopping_rule(losses):
    """The stage, from 1, of least loss before PATIENCE stages that do not improve."""
    best = 0
    for stage, loss in enumerate(losses):
        if loss < losses[best] - 1e-12:
            best = stage
        if stage - best == PATIENCE:
            break
    return best + 1


def fitted(name, stages, Z, y, query=None):
    """Of boosting that takes an objective: squares about the mean that each query has left in the round."""

    def squares(y, f):
        left = np.concatenate([f[query == q] - y[query == q] for q in np.unique(query)])
        left -= np.repeat([left[query == q].mean() for q in np.unique(query)], np.unique(query, return_counts=True)[1])
        return left, np.ones(len(left))

    own = {"lightgbm": {"objective": squares}, "xgboost": {"objective": squares, "base_score": 0.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PLAIN[name](stages, **FREE.get(name, {}), **own.get(name, {})).fit(Z, y)


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def ndcg_at_3(scores, labels):
    def value(order):
        return sum((2.0 ** labels[item] - 1) / np.log2(2 + place) for place, item in enumerate(order[:3]))

    ends = [value(np.lexsort((sign * labels, -scores))) for sign in (1, -1)]  # of tied scores the mean of both
    return np.mean(ends) / value(np.argsort(-labels))


def share_of_differences(scores, labels):
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]
    lost = sum((labels[i] - labels[j]) * (1 - np.sign(scores[i] - scores[j])) / 2 for i, j in pairs)
    return 1 - lost / sum(labels[i] - labels[j] for i, j in pairs)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("target", "agreement"), [("ndcg@3", ndcg_at_3), ("pairwise", share_of_differences)])
def test_labels_stop_where_refits_of_every_number_lose_least(labelled, name, target, agreement):
    X, query, label = labelled
    usual = {} if target == "pairwise" else {"gain": "2^s-1", "normalise": True}
    ranker = cc.ListRanker(target=target, regressor=PLAIN[name](MOST, **STOPPING[name]), **usual)
    ranker.fit((X, query, np.arange(len(X))), label)
    gains = np.where(target == "pairwise", label, 2**label - 1)
    if target != "pairwise":
        best = [sum(sorted(gains[query == q])[::-1][k] / np.log2(2 + k) for k in range(3)) for q in range(QUERIES)]
        gains = gains / np.array(best)[query]
    gains = gains - np.array([gains[query == q].mean() for q in range(QUERIES)])[query]
    Z, losses = standardised(X), np.zeros(MOST)
    part = (np.random.default_rng(0).permutation(QUERIES) % 3)[query]
    for held in range(3):
        rest = part != held
        y = gains[rest] / np.sqrt((gains[rest] ** 2).mean())
        for stages in range(1, MOST + 1):
            scores = fitted(name, stages, Z[rest], y, query[rest]).predict(Z)
            for q in np.unique(query[~rest]):
                losses[stages - 1] += (1 - agreement(scores[query == q], label[query == q])) / QUERIES
    stages = stopping_rule(losses)
    assert ranker.status_["stopped"]["iterations"] == stages == ranker.status_["iterations"]
    assert ranker.status_["stopped"]["loss"] == pytest.approx(losses[stages - 1], abs=1e-9)
    assert ranker.status_["stopped"]["held_out"] == "3 of 3 parts of the queries"
    unit = np.sqrt((gains**2).mean())
    again = fitted(name, stages, Z, gains / unit, query).predict(Z) * unit
    np.testing.assert_allclose(ranker.predict(X), again, rtol=1e-5, atol=1e-6)
    (note,) = (note for note in ranker.status_["notes"] if note.code == "stopped early")
    assert f"after {stages} of 30 iterations" in note and f"target {target}" in note


def test_the_gains_fitted_are_those_of_the_best_order_of_held_out_queries(labelled):
    """Three gains, each by refits of three parts: the one of highest mean NDCG is fitted to all."""
    X, query, label = labelled
    ranker = cc.ListRanker(target="ndcg@3", regressor=PLAIN["boosting"](8)).fit((X, query, np.arange(len(X))), label)
    part = (np.random.default_rng(0).permutation(QUERIES) % 3)[query]
    found = {}
    for gain, divided in (("2^s-1", True), ("2^s-1", False), ("identity", False)):
        value = label if gain == "identity" else 2**label - 1
        tops = [sum(sorted(value[query == q])[::-1][k] / np.log2(2 + k) for k in range(3)) for q in range(QUERIES)]
        y = value / np.array(tops)[query] if divided else value
        y = y - np.array([y[query == q].mean() for q in range(QUERIES)])[query]
        each = []
        for held in range(3):
            rest = part != held
            scores = PLAIN["boosting"](8).fit(standardised(X)[rest], y[rest]).predict(standardised(X))
            each += [ndcg_at_3(scores[query == q], label[query == q]) for q in np.unique(query[~rest])]
        found[gain, divided] = np.mean(each)
    taken = max(found, key=found.get)
    assert (ranker.status_["gain"], ranker.status_["normalise"]) == taken
    assert ("consistent_for" in ranker.status_) == (taken == ("2^s-1", True))
    assert any(note.code == "gains chosen" for note in ranker.status_["notes"])


@pytest.fixture(scope="module")
def votes(labelled):
    X, query, label = labelled
    random = np.random.default_rng(seed(1))
    one = random.integers(0, len(X), 900)
    other = one // ITEMS * ITEMS + (one + random.integers(1, ITEMS, len(one))) % ITEMS
    won = random.random(len(one)) < 1 / (1 + np.exp(label[other] - label[one]))
    return Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one), query[one])


@pytest.mark.parametrize("gate", [False, "auto"])
def test_what_is_added_to_a_pairwise_scorer_stops_where_refits_lose_least(labelled, votes, gate):
    """The share of held-out votes that scorer and trees contradict, from prior, scores and refits of each part."""
    X, query, _ = labelled
    regressor = PLAIN["histograms"](MOST, **STOPPING["histograms"])
    ranker = cc.AggregationRanker(regressor=regressor, gate=gate).fit((X, query, np.arange(len(X))), votes)
    assert gate or "gate" not in ranker.status_
    assert not gate or not any(one["taken"] for each in ranker.status_["gate"] for one in each["candidates"][1:])
    Z, wrong, total = standardised(X), np.zeros(MOST), 0
    minus = np.zeros((MOST, 5))
    where = Alignment(np.arange(0, len(X) + 1, ITEMS), np.arange(len(X)), np.zeros(0, np.int64))
    for train, held in folds(votes, 3, split="queries", seed=0):
        ridge = ranker.status_["prior_ridge"] * len(votes) / len(train)
        prior = informed_prior(Z, where, train, ridge=ridge, tau2=ranker.status_["tau2"])
        score = bradley_terry(Batch.whole(train), prior=1 / prior.tau2, mean=prior.mean).value
        rest = np.isin(query, np.unique(train.query))
        left = (score - np.array([score[query == q].mean() for q in range(QUERIES)])[query] - prior.mean)[rest]
        unit = np.sqrt((left**2).mean())
        winner, loser = (np.array([int(str(item)) for item in held.items])[x] for x in (held.winner, held.loser))
        total += held.count.sum()
        for stages in range(1, MOST + 1):
            trees = unit * fitted("histograms", stages, Z[rest], left / unit).predict(Z)
            for place, share in enumerate((0, 0.25, 0.5, 0.75, 1)):
                f = Z @ prior.theta + share * trees
                minus[stages - 1, place] += (held.count * np.log1p(np.exp(f[loser] - f[winner]))).sum()
            wrong[stages - 1] += (held.count * (1 - np.sign(f[winner] - f[loser])) / 2).sum()
    stages = stopping_rule(wrong / total)
    assert ranker.status_["stopped"]["iterations"] == stages and ranker.regressor_.n_iter_ == stages
    assert ranker.status_["stopped"]["loss"] == pytest.approx(wrong[stages - 1] / total, abs=1e-9)
    assert ranker.status_["share"] == (0, 0.25, 0.5, 0.75, 1)[minus[stages - 1].argmin()]
    left = ranker.predict(X) - Z @ ranker.scorer_standardised_
    np.testing.assert_allclose(left, ranker.regressor_.predict(Z) * ranker.regressor_unit_, rtol=1e-9, atol=1e-12)


def test_nothing_is_added_where_the_scorer_says_all(labelled):
    """Trees on noise: the scores are those of the linear scorer."""
    X, query, _ = labelled
    noise = np.random.default_rng(seed(2)).normal(size=(len(X), 12))
    random = np.random.default_rng(seed(3))
    one = random.integers(0, len(X), 150)
    other = one // ITEMS * ITEMS + (one + random.integers(1, ITEMS, len(one))) % ITEMS
    won = random.random(len(one)) < 0.5
    prefs = Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one), query[one])
    ranker = cc.AggregationRanker(regressor=PLAIN["lightgbm"](MOST), tau2=4.0, gate=False)
    ranker.fit((noise, query, np.arange(len(X))), prefs)
    assert ranker.status_["share"] == 0
    assert any(str(note).startswith("0% of what the regressor says") for note in ranker.status_["notes"])
    np.testing.assert_allclose(ranker.predict(noise), standardised(noise) @ ranker.scorer_standardised_, atol=1e-12)


def test_the_target_decides_where_it_stops(labelled, votes):
    """Found by the target that is named, and kept with the model."""
    X, query, _ = labelled
    features = (X, query, np.arange(len(X)))
    found = {}
    for target in ("pairwise", "ndcg@3"):
        regressor = PLAIN["boosting"](MOST, n_iter_no_change=30)
        ranker = cc.AggregationRanker("log-odds", order="all", regressor=regressor, target=target).fit(features, votes)
        found[target] = ranker.status_["stopped"]
        assert found[target]["target"] == target and found[target]["looked_at"] == MOST
    assert found["pairwise"]["iterations"] != found["ndcg@3"]["iterations"]


@pytest.mark.parametrize("name", PLAIN)
def test_who_does_not_ask_gets_all_stages(labelled, votes, name):
    X, query, label = labelled
    features = (X, query, np.arange(len(X)))
    regressor = PLAIN[name](5, **FREE.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [
            cc.ListRanker(regressor=regressor).fit(features, label),
            cc.AggregationRanker(regressor=regressor).fit(features, votes),
        ]
    for fit in fits:
        assert "stopped" not in fit.status_ and fit.status_["iterations"] is None
        assert fit.regressor_.get_params() == regressor.get_params()


def test_orders_are_compared_with_regressors_that_stop_by_the_target(labelled, votes):
    """LightGBM refuses to stop early with nothing held out, so every fit of the folds must hold something out."""
    X, query, _ = labelled
    regressor = PLAIN["lightgbm"](MOST, **STOPPING["lightgbm"])
    ranker = cc.AggregationRanker("log-odds", order=[3, "all"], regressor=regressor)
    ranker.fit((X, query, np.arange(len(X))), votes)
    assert np.isfinite(ranker.cv_["loss"]).all() and ranker.regressor_.n_estimators_ == ranker.status_["iterations"]


def test_of_few_queries_judgments_or_clusters_are_held_out(labelled, votes):
    X, query, _ = labelled
    few = votes.select(list(votes.queries)[:3])
    regressor = PLAIN["histograms"](MOST, **STOPPING["histograms"])
    ranker = cc.AggregationRanker(regressor=regressor).fit((X, query, np.arange(len(X))), few)
    assert ranker.status_["stopped"]["held_out"] == "3 of 3 parts of the judgments"
    item = np.array([str(item) for item in few.items])
    raters = np.arange(len(few.count)) % 7
    rated = Preferences.from_comparisons(item[few.winner], item[few.loser], few.query, count=few.count, cluster=raters)
    features = (X[: 3 * ITEMS], query[: 3 * ITEMS], np.arange(3 * ITEMS).astype(str))
    ranker = cc.AggregationRanker(regressor=regressor).fit(features, rated)
    assert ranker.status_["stopped"]["held_out"] == "3 of 3 parts of the clusters"


def test_what_cannot_be_grown_or_judged_is_left_as_it_is(labelled):
    X, query, label = labelled
    forest = RandomForestRegressor(5, random_state=0)
    assert "stopped" not in cc.ListRanker(regressor=forest).fit((X, query, np.arange(len(X))), label).status_
    few = query < 5  # too few to hold any out
    regressor = PLAIN["histograms"](MOST, **STOPPING["histograms"])
    ranker = cc.ListRanker(regressor=regressor).fit((X[few], query[few], np.arange(few.sum())), label[few])
    assert "stopped" not in ranker.status_ and ranker.regressor_.do_early_stopping_


def test_many_queries_need_one_part():
    """Of 90 queries a third is enough, of 12 all parts; the cost of a part is a fit to the others."""
    random = np.random.default_rng(seed(2))
    X, query = random.normal(size=(900, 3)), np.repeat(np.arange(90), 10)
    label = np.clip(np.round(X[:, 0] + random.normal(size=900)), 0, 4)
    features = (X, query, np.arange(900))
    regressor = PLAIN["histograms"](MOST, **STOPPING["histograms"])
    ranker = cc.ListRanker(regressor=regressor).fit(features, label)
    assert ranker.status_["stopped"]["held_out"] == "1 of 3 parts of the queries"
    one = random.integers(0, 900, 3000)
    other = one // 10 * 10 + (one + random.integers(1, 10, 3000)) % 10
    many = Preferences.from_comparisons(
        np.where(label[one] >= label[other], one, other), np.where(label[one] >= label[other], other, one), query[one]
    )
    ranker = cc.AggregationRanker(regressor=regressor).fit(features, many)
    assert ranker.status_["stopped"]["held_out"] == "1 of 3 parts of the queries"
