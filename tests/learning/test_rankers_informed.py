"""Aggregation informed by the features, the default: what is added to the pairwise scorer, and how much of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features, align
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.residual_fit import _surest
from concordant.learning.targets.informed import informed_prior
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from ranking_problems import bradley_terry_problem

PROBLEM = bradley_terry_problem(queries=12, comparisons=30, seed=7)


def standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_default_is_informed_for_comparisons_and_not_for_clicks() -> None:
    ranker = AggregationRanker(gate=False).fit(PROBLEM.features, PROBLEM.prefs)
    assert ranker.structure_ == "bradley-terry" and ranker.gain_ == "identity" and not ranker.normalise_
    assert ranker.order_ == "all" and ranker.status_["tau2"] > 0
    named = AggregationRanker("log-odds", order="all").fit(PROBLEM.features, PROBLEM.prefs)
    assert named.structure_ == "log-odds" and "tau2" not in named.status_ and named.normalise_
    clicks = Preferences.from_selections(
        ["q"] * 6, ["s"] * 3 + ["t"] * 3, [1, 2, 3] * 2, ["a", "b", "c"] * 2, [0, 1, 0, 1, 0, 0]
    )
    shown = Features.of(np.arange(3.0)[:, None], ["a", "b", "c"])
    ranker = AggregationRanker(order="all").fit(shown, clicks)
    assert ranker.structure_ == "cascade" and ranker.gain_ == "identity" and ranker.normalise_


def test_infinite_ridge_is_the_pairwise_logistic_scorer() -> None:
    ranker = AggregationRanker(order="all", ridge=1e12, tau2=0.5).fit(PROBLEM.features, PROBLEM.prefs)
    alone = EdgeRanker("ranknet", ridge=ranker.status_["prior_ridge"]).fit(PROBLEM.features, PROBLEM.prefs)
    assert np.allclose(ranker.coef_, alone.coef_, rtol=1e-4, atol=1e-6)
    free = AggregationRanker(order="all", ridge=0, tau2=0.5).fit(PROBLEM.features, PROBLEM.prefs)
    assert not np.allclose(free.coef_, alone.coef_, rtol=1e-2)


def test_a_regressor_learns_what_the_scores_add_on_all_rows() -> None:
    unseen = np.random.default_rng(0).normal(size=(40, PROBLEM.X.shape[1]))
    features = Features.of(
        np.vstack([PROBLEM.X, unseen]),
        [*map(str, PROBLEM.item), *(f"new {i}" for i in range(40))],
        [*map(str, PROBLEM.query), *["new"] * 40],
    )
    prefs = PROBLEM.prefs
    ranker = AggregationRanker(tau2=0.5, regressor=DecisionTreeRegressor(max_depth=3, random_state=0), gate=False)
    ranker.fit(features, prefs)
    Z = standardised(features.X)
    where = align(features, prefs)
    prior = informed_prior(Z, where, prefs, tau2=0.5)
    s = bradley_terry(Batch.whole(prefs), **prior.options).value
    target = np.zeros(len(Z))
    target[where.row] = s - np.repeat(
        [s[a:b].mean() for a, b in zip(where.start[:-1], where.start[1:])], np.diff(where.start)
    )
    target[where.row] -= prior.mean
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(
        np.vstack([Z[where.row], Z[where.unjudged]]), target[[*where.row, *where.unjudged]]
    )
    assert np.allclose(ranker.predict(features), Z @ prior.theta + ranker.status_["share"] * tree.predict(Z), atol=1e-9)


def test_scorer_and_regressor_are_both_kept() -> None:
    ranker = AggregationRanker(regressor=LinearRegression()).fit(PROBLEM.features, PROBLEM.prefs)
    values, arrays = ranker.to_state()
    again = AggregationRanker.from_state(json.loads(json.dumps(values)), arrays)
    again.regressor_ = ranker.regressor_
    assert np.array_equal(again.predict(PROBLEM.features), ranker.predict(PROBLEM.features))
    ranker.set_params(regressor=None, ridge=0.1).fit(PROBLEM.features, PROBLEM.prefs)
    assert set(ranker.to_state()[1]) == {"coef"}


def test_the_surest_is_the_last_within_one_standard_error() -> None:
    draw = np.random.default_rng(0)
    base = draw.random(50)
    lost = np.column_stack([base, base + 0.002 * draw.normal(size=50) + 0.0001, base + 0.1])
    assert _surest(lost, np.ones(50)) == 1  # level within the noise of the difference
    lost[:, 1] = base + 0.002 * draw.normal(size=50) + 0.003
    assert _surest(lost, np.ones(50)) == 0  # worse by many standard errors
    assert _surest(np.column_stack([base, base]), np.ones(50)) == 1  # equal: nothing is added
    first = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 0.0]])  # a query without judgments has no say
    assert _surest(first * np.array([[1.0], [1.0], [0.0]]), np.array([1.0, 1.0, 0.0])) == 0


def test_what_is_consistent_for_the_pairwise_loss_and_what_is_not() -> None:
    """Theorem 3's counterexample with the item as its features: pairwise logistic puts 3 above 2, whatever n.

    So does Bradley–Terry, the same likelihood, and with it the informed default; the guide says so.
    """
    queries, times = 12, 40
    winner, loser, count, query = [], [], [], []
    for q in range(queries):
        winner += [1, 2, 1, 3]
        loser += [2, 3, 3, 1]
        count += [25 * times, times, 50 * times, 24 * times]
        query += [q] * 4
    prefs = Preferences.from_comparisons(winner, loser, query, count=count)
    features = Features.of(np.tile(np.eye(3), (queries, 1)), [1, 2, 3] * queries, np.repeat(range(queries), 3))
    alone = EdgeRanker("ranknet").fit(features, prefs).predict(features)[:3]
    assert alone[0] > alone[2] > alone[1]
    default = AggregationRanker(order="all").fit(features, prefs).predict(features)[:3]
    assert default[0] > default[2] > default[1]
    linear = EdgeRanker("linear").fit(features, prefs).predict(features)[:3]
    assert linear[0] > linear[1] > linear[2]
    difference = EdgeRanker("difference-graph").fit(features, prefs).predict(features)[:3]
    assert difference[0] > difference[1] > difference[2]


def test_weights_of_queries_reach_the_scorer() -> None:
    twice = np.where(PROBLEM.query == PROBLEM.query[0], 3.0, 1.0)
    given = {"order": "all", "ridge": 0.1, "tau2": 0.5}
    weighted = AggregationRanker(**given).fit(PROBLEM.X, PROBLEM.judged, sample_weight=twice).coef_
    scaled = AggregationRanker(**given).fit(PROBLEM.X, PROBLEM.judged, sample_weight=7 * twice).coef_
    plain = AggregationRanker(**given).fit(PROBLEM.X, PROBLEM.judged).coef_
    assert np.allclose(weighted, scaled, rtol=1e-9) and not np.allclose(weighted, plain, rtol=1e-3)


def test_wrong_words_and_too_few_judgments() -> None:
    with pytest.raises(UsageError, match="informed must be True, False or 'auto'"):
        AggregationRanker(informed="yes").fit(PROBLEM.features, PROBLEM.prefs)
    one = Preferences.from_comparisons(["a"], ["b"])
    features = Features.of([[0.0], [1.0]], ["a", "b"])
    assert AggregationRanker(order="all").fit(features, one).predict(features)[0] > 0
    with pytest.raises(InputError, match="of 3 has no comparison at all"):
        AggregationRanker(ridge=[0.1, 1.0]).fit(features, one)
    each = Preferences.from_comparisons(["a", "b", "a"], ["b", "c", "c"], ["p", "q", "r"])
    table = (np.arange(9.0)[:, None] % 3, np.repeat(["p", "q", "r"], 3), np.tile(["a", "b", "c"], 3))
    for given, votes in ((features, one), (table, each)):  # nothing to choose by: the pairwise scorer, and no gate
        ranker = AggregationRanker().fit(given, votes)
        start = EdgeRanker("ranknet", ridge=ranker.status_["prior_ridge"]).fit(given, votes)
        assert np.allclose(ranker.coef_, start.coef_, rtol=1e-6) and ranker.ridge_ is None
        assert "nothing is added to the pairwise logistic scorer" in ranker.status_["notes"][-2]
        assert "too little to hold out" in ranker.status_["notes"][-1]
        trees = AggregationRanker(regressor=DecisionTreeRegressor(max_depth=1, random_state=0)).fit(given, votes)
        assert "too little to hold out" in trees.status_["notes"][-1]


def test_only_ratios_of_weights_matter_with_rows_nobody_judged() -> None:
    """Doubling all weights changes nothing, whatever part of the rows is judged."""
    half = PROBLEM.prefs.select(PROBLEM.prefs.queries.tolist()[:6])
    for regressor in (None, DecisionTreeRegressor(max_depth=2, random_state=0)):
        ranker = AggregationRanker(order="all", tau2=0.5, regressor=regressor)
        once = ranker.fit(PROBLEM.features, half).predict(PROBLEM.features)
        twice = ranker.fit(PROBLEM.features, half, np.full(len(PROBLEM.features), 8.0)).predict(PROBLEM.features)
        assert np.allclose(once, twice, rtol=1e-9, atol=1e-12)


def test_weights_reach_the_scorer_of_every_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def noted(*arguments: object, weight: np.ndarray | None = None, **options: object) -> object:
        given.append(weight)
        return informed_prior(*arguments, weight=weight, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("concordant.learning.rankers.targeting.informed_prior", noted)
    weight = 1.0 + np.unique(PROBLEM.query, return_inverse=True)[1]
    AggregationRanker(tau2=0.5).fit(PROBLEM.features, PROBLEM.prefs, weight)
    assert len(given) == 7 and all(each is not None and np.ptp(each) > 0 for each in given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"informed": True, "structure_options": {"prior": 0.5}}, "a prior of its own"),
        ({"normalise": "yes"}, "normalise must be True"),
        ({"at": 2.5}, "at must be an integer"),
        ({"at": "10"}, "at must be an integer"),
        ({"at": True}, "at must be an integer"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        AggregationRanker(**given).fit(PROBLEM.features, PROBLEM.prefs)  # type: ignore[arg-type]
