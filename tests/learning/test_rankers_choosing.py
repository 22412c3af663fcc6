"""order='auto': folds, grids and the curve, against losses computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from concordant.errors import InputError, UsageError
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.plans import orders_to_try, ridges_to_try
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import folds
from ranking_problems import bradley_terry_problem

PROBLEM = bradley_terry_problem(seed=6, comparisons=45)


def disagreement(scores: dict[tuple[str, str], float], prefs: Preferences) -> float:
    """Share of comparisons that scores contradict, half for a tie in score, straight from the definition."""
    wrong = 0.0
    for j, count in enumerate(prefs.count):
        query = prefs.queries[prefs.query[j]]
        gap = scores[query, prefs.items[prefs.winner[j]]] - scores[query, prefs.items[prefs.loser[j]]]
        wrong += count * (0.0 if gap > 0 else 1.0 if gap < 0 else 0.5)
    return wrong / len(prefs)


def test_the_curve_is_the_loss_of_fits_by_hand() -> None:
    """Each fold fitted on its own, by the estimator without any choice, on features standardised over all rows."""
    grid = {"order": [1, 5, "all"], "gain": [("2^s-1", True), ("identity", False)], "ridge": [1e-3, 0.1]}
    ranker = AggregationRanker("log-odds", folds=3, seed=4, **grid).fit(PROBLEM.features, PROBLEM.prefs)
    Z = (PROBLEM.X - PROBLEM.X.mean(axis=0)) / PROBLEM.X.std(axis=0)
    rows = (Z, PROBLEM.query, PROBLEM.item)
    parts = PROBLEM.prefs.folds(3, seed=4)
    losses = []
    for order in grid["order"]:
        for gain, divided in grid["gain"]:
            for ridge in grid["ridge"]:
                fixed = {"order": order, "gain": gain, "normalise": divided, "ridge": ridge, "seed": 4}
                of_folds = []
                for held in range(3):
                    train = sum(part for place, part in enumerate(parts) if place != held)
                    alone = AggregationRanker("log-odds", standardise=False, **fixed).fit(rows, train)
                    scores = dict(zip(zip(PROBLEM.query, PROBLEM.item), alone.predict(Z), strict=True))
                    of_folds.append(disagreement(scores, parts[held]))
                losses.append(of_folds)
    found = ranker.cv_
    assert np.allclose(found.folds.T, losses, atol=1e-12)
    assert np.allclose(found["loss"], np.mean(losses, axis=1))
    assert np.allclose(found["standard_error"], np.std(losses, axis=1, ddof=1) / np.sqrt(3))
    table = np.reshape(losses, (3, 2, 2, 3))  # order, gain, ridge, fold
    mean = table.mean(axis=3)
    _, gain, _ = at = np.unravel_index(mean.argmin(), mean.shape)
    worse = table[:, gain] - table[at]
    fine = worse.mean(axis=2) <= worse.std(axis=2, ddof=1) / np.sqrt(3)
    order = max(place for place in range(3) if fine[place].any())
    ridge = min((place for place in range(2) if fine[order, place]), key=lambda place: mean[order, gain, place])
    assert found["chosen"].tolist() == [
        place == np.ravel_multi_index((order, gain, ridge), (3, 2, 2)) for place in range(12)
    ]
    picked = {"order": ranker.order_, "gain": ranker.gain_, "normalise": ranker.normalise_, "ridge": ranker.ridge_}
    again = AggregationRanker("log-odds", seed=4, **picked).fit(PROBLEM.features, PROBLEM.prefs)
    assert np.array_equal(again.coef_, ranker.coef_) and not hasattr(again, "cv_")


def test_folds_are_those_of_the_preferences_with_all_items_known() -> None:
    for (train, held), part in zip(folds(PROBLEM.prefs, 3, seed=9), PROBLEM.prefs.folds(3, seed=9), strict=True):
        for one in (train, held):
            assert one.queries == PROBLEM.prefs.queries and one.items == PROBLEM.prefs.items
            assert all(np.array_equal(a, b) for a, b in zip(one.members, PROBLEM.prefs.members, strict=True))
        assert len(held) == len(part) and len(train) + len(held) == len(PROBLEM.prefs)
        assert held + part == sum([part, part]) + held.select([])
        assert train + held == PROBLEM.prefs


def test_folds_of_queries() -> None:
    seen = []
    for train, held in folds(PROBLEM.prefs, 4, split="queries", seed=1):
        of_held = {q for q, n in zip(held.queries, held.judgments, strict=True) if n}
        of_train = {q for q, n in zip(train.queries, train.judgments, strict=True) if n}
        assert not of_held & of_train and len(of_held) == 3
        seen += sorted(of_held)
    assert sorted(seen) == PROBLEM.prefs.queries.tolist()
    ranker = AggregationRanker("log-odds", split="queries", order=[2, 20]).fit(PROBLEM.features, PROBLEM.prefs)
    assert ranker.cv_["loss"].max() < 0.3
    with pytest.raises(UsageError, match="13 folds of queries need at least as many"):
        AggregationRanker("log-odds", split="queries", folds=13).fit(PROBLEM.features, PROBLEM.prefs)
    with pytest.raises(UsageError, match="folds must be an integer of at least 2"):
        AggregationRanker("log-odds", folds=1).fit(PROBLEM.features, PROBLEM.prefs)


def test_grids() -> None:
    assert orders_to_try("auto", 1) == ["all"]
    assert orders_to_try("auto", 3) == [1, "all"]
    assert orders_to_try("auto", 1000) == [1, 3, 10, 30, 100, 300, "all"]
    assert ridges_to_try("auto", False) == [0.001]
    ranker = AggregationRanker("log-odds").fit(PROBLEM.features, PROBLEM.prefs)
    assert ranker.curve()["order"].to_pylist() == ["1", "3", "10", "30", "all"]
    assert ranker.curve()["chosen"].to_pylist().count(True) == 1
    assert len(ranker.cv_["loss"]) == 5 * 4
    at_the_end = AggregationRanker("log-odds", order=5, ridge=[10.0, 100.0]).fit(PROBLEM.features, PROBLEM.prefs)
    assert "the ridge chosen" in at_the_end.status_["notes"][-1]
    listed = AggregationRanker("log-odds", order=5, gain=[["2^s", True], ["identity", False]]).fit(
        PROBLEM.features, PROBLEM.prefs
    )
    assert listed.cv_["gain"].tolist() == ["2^s"] * 4 + ["identity"] * 4
    assert str(ranker.cv_).count("\n") == 6 and "chosen" in str(ranker.cv_)
    assert ranker.cv_.to_arrow().num_rows == 20
    auto = AggregationRanker("auto", gain="auto", order=[5, "all"], ridge=0.01).fit(PROBLEM.features, PROBLEM.prefs)
    assert sorted(set(auto.cv_["structure"])) == ["bradley-terry", "log-odds"] and len(auto.cv_["loss"]) == 8
    fixed = AggregationRanker("log-odds", order=5).fit(PROBLEM.features, PROBLEM.prefs)
    with pytest.raises(UsageError, match="there is no curve"):
        fixed.curve()


def test_options_of_several_structures_go_to_those_that_know_them() -> None:
    given = {"order": [3, "all"], "structure_options": {"c0": 0.25}}
    ranker = AggregationRanker(["log-odds", "borda"], **given).fit(PROBLEM.features, PROBLEM.prefs)
    assert len(ranker.cv_["loss"]) == 16
    for wrong, said in (
        ({"structure": ["log-odds", "borda"], "structure_options": {"nothing": 1}}, "none of the structures"),
        ({"structure": "borda", "structure_options": {"c0": 1}}, "borda has no option 'c0'"),
        ({"structure": "plackett-luse"}, "did you mean 'plackett-luce'"),
        ({"structure": ["log-odds", "cascade"]}, "cascade reads selections"),
        ({"structure": []}, "empty"),
        ({"order": []}, "empty"),
        ({"order": [3, "most"]}, "order must be"),
        ({"order": True}, "order must be"),
        ({"gain": "3^s"}, "unknown gain '3\\^s'"),
        ({"ridge": "small"}, "ridge must be"),
        ({"ridge": [0.1, -1]}, "ridge must be"),
        ({"split": "items"}, "split must be"),
        ({"intercept": "both"}, "intercept must be"),
    ):
        with pytest.raises(UsageError, match=said):
            AggregationRanker(**{"structure": "log-odds", **wrong}).fit(PROBLEM.features, PROBLEM.prefs)


def test_a_regressor_is_chosen_for_too() -> None:
    ranker = AggregationRanker("log-odds", order=[1, 10, "all"], regressor=Ridge(1.0)).fit(
        PROBLEM.features, PROBLEM.prefs
    )
    assert len(ranker.cv_["loss"]) == 3 and np.isnan(ranker.cv_["ridge"]).all()
    assert ranker.ridge_ is None and ranker.cv_["loss"].max() < 0.3
    assert ranker.curve().num_rows == 3


def test_informed_folds_learn_their_prior_without_what_is_held_out() -> None:
    problem = bradley_terry_problem(queries=12, comparisons=12, seed=2)
    ranker = AggregationRanker(informed=True, order=[4, "all"], ridge=0.01).fit(problem.features, problem.prefs)
    assert set(ranker.cv_["structure"]) == {"bradley-terry"} and ranker.status_["tau2"] > 0
    # coin flips on noise have nothing to teach; a prior that had seen the held-out part would seem to
    draw = np.random.default_rng(0)
    swap = draw.random(len(problem.winner)) < 0.5
    winner, loser = np.where(swap, problem.loser, problem.winner), np.where(swap, problem.winner, problem.loser)
    votes = Preferences.from_comparisons(problem.item[winner], problem.item[loser], problem.query[winner])
    rows = (draw.normal(size=(len(problem.X), 60)), problem.query, problem.item)
    blind = AggregationRanker(informed=True, order=["all", 4], ridge=1e-4, tau2=0.02, gain="identity", normalise=False)
    assert blind.fit(rows, votes).cv_["loss"].min() > 0.36


def test_disagreement_by_hand() -> None:
    """Queries weigh by judgments, whatever the strength of their edges; ties in score cost ½; no edge, no weight."""
    votes = Preferences.from_comparisons(
        ["a", "a", "b", "c", "c"], ["b", "b", "a", "d", "e"], ["p", "p", "p", "q", "q"], [1.0, 1.0, 4.0, 1.0, 3.0]
    )
    scores = {"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0, "e": 0.0}
    value = np.array([scores[votes.items[i]] for i in votes.members[1]])
    judge = Disagreement(votes)
    assert np.allclose(judge.rates(value), [4 / 6, (1 + 1.5) / 4])
    assert judge.loss(value) == pytest.approx((3 * 4 / 6 + 2 * 2.5 / 4) / 5)
    assert Disagreement(votes, np.array([0.0, 1.0])).loss(value) == pytest.approx(2.5 / 4)
    tie = Preferences.from_comparisons(["a"], ["b"], tie=[True])
    assert Disagreement(tie).loss(np.array([1.0, 0.0])) == 0.5


def test_no_comparison_in_a_fold() -> None:
    """Nothing can be chosen: what is usual is taken and said, what was asked for by name is an error."""
    table = {"item": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
    two = Preferences.from_comparisons(["a", "b"], ["b", "c"])
    found = AggregationRanker("log-odds").fit(table, two)
    usual = AggregationRanker("log-odds", order="all").fit(table, two)
    assert found.coef_ == usual.coef_ < 0 and not hasattr(found, "cv_")
    assert "no comparison at all (2 judgments in 1 query); all judgments" in found.status_["notes"][-1]
    assert "the held-out part of fold" in found.status_["unchosen"] and "unchosen" not in usual.status_
    for asked in ({"gain": "auto"}, {"order": [1, "all"]}, {"ridge": [0.1, 1.0]}, {"structure": ["log-odds", "borda"]}):
        with pytest.raises(InputError, match=r"part of fold \d of 3 has no comparison at all \(2 judgments"):
            AggregationRanker(**{"structure": "log-odds", **asked}).fit(table, two)
    # lists without a click carry no comparison
    shown = Preferences.from_selections(["q"] * 8, np.repeat(range(4), 2), [1, 2] * 4, ["a", "b"] * 4, [0] * 8)
    with pytest.raises(InputError, match="no click at all"):
        AggregationRanker("cascade").fit(table, shown)
    # a fold in which some queries have nothing held out is fine
    sparse = bradley_terry_problem(queries=40, comparisons=2, seed=3)
    assert len(AggregationRanker("log-odds", folds=5).fit(sparse.features, sparse.prefs).cv_["loss"]) == 8
