"""Held-out judgments: metrics by their formulas, errors as wide as the metrics vary, what cannot be predicted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from test_prediction import matches
from test_uncertainty_ranks import simulated

import concordant as cc
from concordant.errors import UsageError


def by_name(found):
    return {row["name"]: row for row in found.table.to_pylist()}


def test_metrics_of_half_ties_are_their_formulas():
    board = cc.rank(simulated([0.7, 0.1, -0.8], 200, seed=1))
    value = dict(zip(board.to_arrow()["item"].to_pylist(), board.score, strict=True))
    winner, loser = [0, 0, 1, 2, 2, 1], [1, 2, 2, 0, 1, 0]
    votes = cc.read(
        {"left": winner, "right": loser, "winner": ["left"] * 4 + ["tie", "left"], "count": [4, 2, 3, 1, 2, 1]}
    )
    found = by_name(board.evaluate(votes))
    times, y = np.array([4, 2, 3, 1, 2, 1]), np.array([1, 1, 1, 1, 0.5, 1])
    m = np.array([value[a] - value[b] for a, b in zip(winner, loser, strict=True)])
    losses = {
        "log-loss": -(y * log_expit(m) + (1 - y) * log_expit(-m)),
        "brier": (y - expit(m)) ** 2,
    }
    for name, loss in losses.items():
        middle = (times * loss).sum() / 13
        assert np.isclose(found[name]["mean"], middle)
        spread = np.repeat(loss, times).std(ddof=1) / np.sqrt(13)
        assert np.isclose(found[name]["standard_error"], spread)
    decided = y == 1
    assert np.isclose(found["accuracy"]["mean"], (times * (m > 0))[decided].sum() / 11)
    slope = minimize_scalar(lambda b: -(times * (y * log_expit(b * m) + (1 - y) * log_expit(-b * m))).sum()).x
    assert np.isclose(found["calibration slope"]["mean"], slope, atol=1e-5)
    assert {row["judgments"] for row in found.values()} == {13}


def test_three_outcomes_and_the_home_side():
    train, *_ = matches(1)
    test, home, away, at_home, drawn = matches(2)
    board = cc.rank(train, ties="davidson")
    found = by_name(board.evaluate(test))
    table = board.predict(home.tolist(), away.tolist(), covariates={"home": at_home.astype(float)})
    chance = np.stack([np.asarray(table[name]) for name in ("win", "tie", "loss")])
    assert np.isclose(found["log-loss"]["mean"], -np.log(chance[drawn, np.arange(len(drawn))]).mean())
    happened = np.arange(3)[:, None] == drawn
    assert np.isclose(found["brier"]["mean"], ((happened - chance) ** 2).sum(axis=0).mean())


@pytest.mark.parametrize("clustered", [False, True])
def test_errors_are_as_wide_as_the_metrics_vary(clustered):
    board = cc.rank(simulated([0.8, 0.0, -0.8], 3000, seed=3))
    value = board.score[np.argsort(board.item)]
    means, errors = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        times = 8 if clustered else 1  # eight equal votes of one person
        i = np.repeat(rng.integers(0, 3, 40), times)
        j = (i + np.repeat(rng.integers(1, 3, 40), times)) % 3
        won = np.repeat(rng.random(40), times) < expit(value[i] - value[j])
        who = np.repeat(np.arange(40), times).tolist() if clustered else None
        votes = cc.Preferences.from_comparisons(np.where(won, i, j).tolist(), np.where(won, j, i).tolist(), cluster=who)
        row = by_name(board.evaluate(votes))["log-loss"]
        means.append(row["mean"])
        errors.append(row["standard_error"])
    assert abs(np.mean(errors) / np.std(means) - 1) < 0.15


def test_a_ranking_that_is_too_sure_has_a_slope_below_one():
    board = cc.rank(simulated([0.5, 0.2, -0.2, -0.5], 80, seed=4), prior=0)
    sure = by_name(board.evaluate(simulated([0.0, 0, 0, 0], 4000, seed=5)))["calibration slope"]
    assert abs(sure["mean"]) < 3 * sure["standard_error"]
    truth = np.array([0.9, 0.3, -0.3, -0.9])
    right = cc.rank(simulated(truth, 200_000, seed=6)).evaluate(simulated(truth, 20_000, seed=7))
    slope = by_name(right)["calibration slope"]
    assert abs(slope["mean"] - 1) < 3 * slope["standard_error"] < 0.1
    for row in right.calibration.to_pylist():
        assert abs(row["observed"] - row["predicted"]) < 4 * row["standard_error"] + 0.01


def test_davidsons_ties_are_calibrated_where_the_model_is_right():
    train, *_ = matches(10, rows=20_000)
    test, *_ = matches(11, rows=6000)
    found = cc.rank(train, ties="davidson").evaluate(test)
    slope = by_name(found)["calibration slope"]
    assert abs(slope["mean"] - 1) < 3 * slope["standard_error"] < 0.25
    for row in found.calibration.to_pylist():
        assert abs(row["observed"] - row["predicted"]) < 4 * row["standard_error"] + 0.01


def test_what_is_not_predicted_is_counted():
    votes = cc.Preferences.from_comparisons(["a", "b", "x", "y"], ["b", "a", "y", "x"], count=[5, 3, 4, 2])
    board = cc.rank(votes)
    found = board.evaluate(cc.Preferences.from_comparisons(["a", "a", "new"], ["b", "x", "a"], count=[3, 2, 1]))
    assert by_name(found)["log-loss"]["judgments"] == 3
    assert "3 judgments of 6 not predicted" in str(found.notes[0]) and "'new'" in found.notes[0]
    with pytest.raises(UsageError, match="no judgment compares two items"):
        board.evaluate(cc.Preferences.from_comparisons(["a"], ["x"]))
    with pytest.raises(UsageError, match="do not say how often"):
        cc.rank(votes, "borda").evaluate(votes)


def test_queries_are_matched_by_their_labels():
    votes = cc.Preferences.from_comparisons(["a", "b", "b", "a"], ["b", "a", "a", "b"], query=["p", "p", "q", "q"],
                                            count=[9, 1, 9, 1])  # fmt: skip
    board = cc.rank(votes)
    new = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["p", "q"], count=[3, 3])
    assert by_name(board.evaluate(new))["accuracy"]["mean"] == 1
    alone = cc.rank(votes.select(["p"])).evaluate(new)  # one ranking, for whatever query
    assert by_name(alone)["accuracy"]["mean"] == 0.5


def test_lists_are_predicted_pair_by_pair_and_one_draw_each():
    board = cc.rank(simulated([0.7, 0.1, -0.8], 200, seed=1))
    orders = cc.Preferences.from_orders(["q"] * 6, [1, 1, 1, 2, 2, 2], [0, 1, 2, 2, 1, 0], [1, 2, 3, 1, 2, 3])
    found = by_name(board.evaluate(orders))
    assert found["accuracy"]["judgments"] == 2 and found["accuracy"]["mean"] == 0.5
    assert np.isclose(found["accuracy"]["standard_error"], 0.5)
