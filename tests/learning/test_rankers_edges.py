"""EdgeRanker against scikit-learn and closed forms on difference rows written out by hand; QueryRankers."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.kept import RANKERS
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences.preferences import Preferences
from ranking_problems import bradley_terry_problem

PROBLEM = bradley_terry_problem(seed=4, comparisons=30)
Z = (PROBLEM.X - PROBLEM.X.mean(axis=0)) / PROBLEM.X.std(axis=0)
DIFFERENCE = Z[PROBLEM.winner] - Z[PROBLEM.loser]
N = len(DIFFERENCE)


@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_ranknet_is_logistic_regression_on_difference_rows(ridge: float) -> None:
    ranker = EdgeRanker("ranknet", ridge=ridge).fit(PROBLEM.features, PROBLEM.prefs)
    # (1/n) Σ log(1 + e^−m) + (λ/2)‖θ‖² is scikit-learn's C Σ log(1 + e^−m) + ½‖θ‖² over λ, C = 1/(nλ)
    sign = np.where(np.arange(N) % 2, 1, -1)
    peer = LogisticRegression(C=1 / (N * ridge), fit_intercept=False, tol=1e-10, max_iter=1000)
    peer.fit(DIFFERENCE * sign[:, None], sign)
    assert np.allclose(ranker.coef_standardised_, peer.coef_[0], rtol=1e-6)
    assert ranker.status_["status"] == "converged" and ranker.status_["consistent_for"] is None


def test_queries_weigh_by_their_judgments_even_when_these_differ() -> None:
    keep = np.flatnonzero(
        np.random.default_rng(0).random(N) < np.where(PROBLEM.query[PROBLEM.winner] < "q05", 0.2, 1.0)
    )
    up, down = PROBLEM.winner[keep], PROBLEM.loser[keep]
    prefs = Preferences.from_comparisons(PROBLEM.item[up], PROBLEM.item[down], PROBLEM.query[up])
    ranker = EdgeRanker("ranknet", ridge=0.01).fit(PROBLEM.features, prefs)
    sign = np.where(np.arange(len(keep)) % 2, 1, -1)
    peer = LogisticRegression(C=1 / (len(keep) * 0.01), fit_intercept=False, tol=1e-10, max_iter=1000)
    peer.fit(DIFFERENCE[keep] * sign[:, None], sign)
    assert np.allclose(ranker.coef_standardised_, peer.coef_[0], rtol=1e-6)


@pytest.mark.parametrize("nu", [1.0, 0.1])
def test_linear_is_its_closed_form(nu: float) -> None:
    ranker = EdgeRanker("linear", ridge=0.05, options={"nu": nu}).fit(PROBLEM.features, PROBLEM.prefs)
    A, b = 0.05 * np.eye(3), np.zeros(3)  # −Σ a (x_i − x_j)'w/n + Σ_q (n̂_q/n) ν Σ_i (x_i'w)² + (λ/2)‖w‖²
    for q in set(PROBLEM.query):
        mine = PROBLEM.query == q
        share = (PROBLEM.query[PROBLEM.winner] == q).mean()
        A += 2 * nu * share * Z[mine].T @ Z[mine]
    b = DIFFERENCE.sum(axis=0) / N
    assert np.allclose(ranker.coef_standardised_, np.linalg.solve(A, b), rtol=1e-9)
    assert ranker.status_["status"] == "closed form"
    assert (ranker.status_["consistent_for"], ranker.status_["condition"]) == ("pairwise", "low noise")


def test_difference_graph_cancels_before_the_margin() -> None:
    ranker = EdgeRanker("difference-graph", phi="logistic", ridge=0.02).fit(PROBLEM.features, PROBLEM.prefs)
    pairs = []
    for i, j in combinations(range(len(Z)), 2):
        net = ((PROBLEM.winner == i) & (PROBLEM.loser == j)).sum() - (
            (PROBLEM.winner == j) & (PROBLEM.loser == i)
        ).sum()
        if net:
            pairs.append((i, j, net) if net > 0 else (j, i, -net))
    i, j, net = np.array(pairs).T

    def loss(theta: np.ndarray) -> float:
        return (net * np.logaddexp(0, -(Z[i] - Z[j]) @ theta)).sum() / N + 0.01 * theta @ theta

    assert np.allclose(ranker.coef_standardised_, minimize(loss, np.zeros(3), tol=1e-12).x, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "phi"),
    [("ranksvm", None), ("rankboost", None), ("margin-based", "logistic"), ("ndcg-pairwise", None),
     ("err-pairwise", None), ("gain-regression", None), ("difference-graph", "hinge")],
)  # fmt: skip
def test_every_surrogate_orders_a_learnable_problem(loss: str, phi: str | None) -> None:
    ranker = EdgeRanker(loss, phi=phi, ridge=0.01).fit(PROBLEM.X, PROBLEM.judged)
    assert ranker.score(PROBLEM.X, PROBLEM.judged) > 0.75
    assert ranker.status_["status"] in ("converged", "closed form")


def test_subsets_are_graphs_of_their_own_and_all_judgments_where_there_are_no_more() -> None:
    whole = EdgeRanker(ridge=0.01).fit(PROBLEM.features, PROBLEM.prefs)
    large = EdgeRanker(ridge=0.01, order=10**6).fit(PROBLEM.features, PROBLEM.prefs)
    assert np.allclose(large.coef_, whole.coef_, rtol=1e-9)
    assert "12 of 12 queries have at most 1,000,000 judgments" in large.status_["notes"][0]
    # single judgments do not cancel: the mean over all of them is RankNet, which many draws of one approach
    single = EdgeRanker(ridge=0.01, order=1, subsets=400).fit(PROBLEM.features, PROBLEM.prefs)
    ranknet = EdgeRanker("ranknet", ridge=0.01).fit(PROBLEM.features, PROBLEM.prefs)
    assert np.abs(single.coef_ - ranknet.coef_).max() < 0.2 * np.abs(whole.coef_ - ranknet.coef_).max()
    few = EdgeRanker("ndcg-pairwise", ridge=0.01, order=8, subsets=6).fit(PROBLEM.features, PROBLEM.prefs)
    assert few.score(PROBLEM.features, PROBLEM.prefs) > 0.75


def test_draws_of_scores_are_laid_out_by_query() -> None:
    """Gain regression over draws is least squares to the mean gains: targets made elsewhere, a peer's fit."""
    targets = mean_targets(PROBLEM.prefs, "borda", order=5, subsets=4, seed=3, gain="2^s", partition=False, options={})
    order = np.lexsort((PROBLEM.item, PROBLEM.query))
    each = np.repeat(targets.weight, np.diff(targets.start))
    peer = Ridge(alpha=0.01, fit_intercept=False, tol=1e-12).fit(Z[order], targets.value, sample_weight=each)
    ranker = EdgeRanker("gain-regression", ridge=0.01, options={"gain": "2^s"}, order=5, subsets=4, seed=3,
                        structure="borda").fit(PROBLEM.features, PROBLEM.prefs)  # fmt: skip
    assert np.allclose(ranker.coef_standardised_, peer.coef_, rtol=1e-8)


def test_what_means_nothing_is_refused() -> None:
    for given, said in (
        ({"loss": "ranknet", "order": 5}, "takes each judgment by itself"),
        ({"loss": "ranknet", "structure": "borda"}, "takes no structure"),
        ({"loss": "difference-graph", "order": 0}, "order must be"),
        ({"loss": "ranksvn"}, "did you mean 'ranksvm'"),
        ({"loss": "ranknet", "phi": "hinge"}, "has no φ 'hinge'"),
        ({"loss": "linear", "options": {"mu": 1}}, "no option 'mu'"),
        ({"ridge": -1}, "ridge must be"),
        ({"ridge": [0.1, 1]}, "GridSearchCV chooses"),
        ({"missing": "keep"}, "needs a fill"),
    ):
        with pytest.raises(UsageError, match=said):
            EdgeRanker(**given).fit(PROBLEM.features, PROBLEM.prefs)


def test_judgments_that_cancel_leave_nothing_to_learn() -> None:
    votes = Preferences.from_comparisons(["a", "b"], ["b", "a"])
    table = {"item": ["a", "b"], "x": [1.0, 2.0]}
    with pytest.raises(InputError, match="leave difference-graph no edge"):
        EdgeRanker().fit(table, votes)
    assert EdgeRanker("ranknet").fit(table, votes).coef_[0] == pytest.approx(0, abs=1e-12)


def test_separable_judgments_without_ridge_are_said_to_have_no_minimiser() -> None:
    votes = Preferences.from_comparisons(["b", "c"], ["a", "b"])
    ranker = EdgeRanker("ranknet", ridge=0).fit({"item": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, votes)
    assert ranker.status_["status"].startswith("infimum not attained") and ranker.coef_[0] > 0


def test_labels_are_complete_preference_data() -> None:
    draw = np.random.default_rng(2)
    X, query = draw.normal(size=(60, 2)), np.repeat(list("abcde"), 12)
    labels = np.clip(np.round(X[:, 0] + 0.3 * draw.normal(size=60) + 1), 0, 3)
    judged = Judged.of_labels(labels, query=query)
    for loss in ("ranknet", "difference-graph", "linear", "ndcg-pairwise", "err-pairwise"):
        ranker = EdgeRanker(loss).fit(X, judged)
        assert ranker.coef_[0] > 4 * abs(ranker.coef_[1]), loss
    # every pair of one query, as strong as the difference of its labels
    theta = EdgeRanker("ranknet", ridge=0.01, standardise=False).fit(X, judged).coef_

    def risk(theta: np.ndarray) -> float:
        total = 0.0
        for q in "abcde":
            mine = np.flatnonzero(query == q)
            for i in mine:
                lower = mine[labels[mine] < labels[i]]
                total += ((labels[i] - labels[lower]) * np.logaddexp(0, -(X[i] - X[lower]) @ theta)).sum() / 5
        return total + 0.005 * theta @ theta

    assert np.allclose(theta, minimize(risk, np.zeros(2), tol=1e-12).x, atol=1e-4)
    with pytest.raises(UsageError, match="there is no order"):
        EdgeRanker("ndcg-pairwise", order=5).fit(X, judged)


@pytest.mark.parametrize("name", ["AggregationRanker", "EdgeRanker"])
def test_one_ranker_per_query(name: str) -> None:
    given = {"order": "all", "ridge": 0.1}
    rankers = QueryRankers(RANKERS[name](**given)).fit(PROBLEM.features, PROBLEM.prefs)
    scores = rankers.predict(PROBLEM.features)
    for q in ("q00", "q07"):
        rows = np.flatnonzero(PROBLEM.query == q)
        alone = RANKERS[name](**given).fit(PROBLEM.features.take(rows), PROBLEM.prefs.select([q]))
        assert np.array_equal(scores[rows], alone.predict(PROBLEM.X[rows]))
    assert rankers.score(PROBLEM.features, PROBLEM.prefs) > 0.8
    assert rankers.score(PROBLEM.X, PROBLEM.judged) == rankers.score(PROBLEM.features, PROBLEM.prefs)
    values, arrays = rankers.to_state()
    again = QueryRankers.from_state(json.loads(json.dumps(values)), arrays)
    assert np.array_equal(again.predict(PROBLEM.features), scores)
    strange = Features.of(PROBLEM.X[:2], ["i00", "i01"], ["q00", "never seen"])
    with pytest.raises(InputError, match=r"1 of 2 queries have no ranker.*'never seen'"):
        rankers.predict(strange)
    with pytest.raises(UsageError, match="rows must say their query"):
        rankers.predict(PROBLEM.X)


def test_rankers_of_queries_share_the_features_of_items() -> None:
    images = {"item": ["a", "b", "c", "d"], "red": [0.0, 1.0, 2.0, 3.0], "round": [3.0, 0.0, 2.0, 1.0]}
    votes = Preferences.from_comparisons(
        ["d", "c", "b", "a", "c", "d"], ["c", "b", "a", "c", "d", "b"], ["red"] * 3 + ["round"] * 3
    )
    rankers = QueryRankers(EdgeRanker("ranknet", ridge=0.1)).fit(images, votes)
    asked = Features.of(
        [[5.0, 0.0], [0.0, 5.0]] * 2, ["e", "f"] * 2, ["red", "red", "round", "round"], ["red", "round"]
    )
    scores = rankers.predict(asked)
    assert scores[0] > scores[1] and scores[2] < scores[3]
    assert rankers.score(images, votes) == 1.0
    level = Preferences.from_comparisons(["a", "b"], ["b", "a"], ["red", "red"])
    with pytest.raises(InputError, match="query 'red': the judgments leave"):
        QueryRankers(EdgeRanker()).fit(images, level)
    with pytest.raises(UsageError, match="must be a ranker"):
        QueryRankers("ranknet").fit(images, votes)
