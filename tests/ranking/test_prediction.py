"""Probabilities of the next judgment: by hand, by numerical derivatives of the likelihood, as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp

import concordant as cc
from concordant.errors import UsageError


def matches(seed, rows=700, items=4):
    """Matches with a home side and draws, from Davidson's model."""
    rng = np.random.default_rng(seed)
    value = np.linspace(-0.8, 0.8, items)
    home = rng.integers(0, items, rows)
    away = (home + rng.integers(1, items, rows)) % items
    neutral = rng.random(rows) < 0.3
    margin = value[home] - value[away] + 0.4 * ~neutral
    odds = np.exp(np.stack([margin / 2, np.full(rows, -0.2), -margin / 2]))
    drawn = (rng.random(rows) > np.cumsum(odds / odds.sum(axis=0), axis=0)).sum(axis=0)
    winner = np.where(drawn == 0, "left", np.where(drawn == 1, "tie", "right"))
    table = {"left": home.tolist(), "right": away.tolist(), "winner": winner.tolist(), "neutral": neutral.tolist()}
    return cc.read(table, home="left", columns={"neutral": "neutral"}), home, away, ~neutral, drawn


def twin(home, away, at_home, drawn, items=4):
    """Davidson's model by a generic minimiser: parameters s_1 … s_3 (s_0 = 0), home, log ν, and their covariance."""

    def outcomes(x, i, j, h):
        s = np.concatenate([[0.0], x[: items - 1]])
        m = s[i] - s[j] + x[-2] * h
        log = np.stack([m / 2, x[-1] + 0 * m, -m / 2])
        return log - logsumexp(log, axis=0)

    def loss(x):
        return -outcomes(x, home, away, at_home)[drawn, np.arange(len(drawn))].sum()

    found = minimize(loss, np.zeros(items + 1), tol=1e-10).x
    step, n = 1e-4, items + 1
    hessian = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            one, other = np.eye(n)[a] * step, np.eye(n)[b] * step
            hessian[a, b] = (
                loss(found + one + other) - loss(found + one - other) - loss(found - one + other)
                + loss(found - one - other)
            ) / (4 * step**2)  # fmt: skip
    return outcomes, found, np.linalg.inv(hessian)


@pytest.mark.parametrize("where", [1.0, 0.0, -1.0])
def test_davidsons_outcomes_and_their_intervals(where):
    prefs, home, away, at_home, drawn = matches(3)
    board = cc.rank(prefs, ties="davidson", prior=0)
    outcomes, found, covariance = twin(home, away, at_home, drawn)
    table = board.predict([0, 3], [2, 1], covariates={"home": where})
    for row, (i, j) in enumerate(((0, 2), (3, 1))):

        def log_odds(x, outcome, i=i, j=j):
            return logit(np.exp(outcomes(x, np.array([i]), np.array([j]), where)[outcome, 0]))

        for outcome, name in enumerate(("win", "tie", "loss")):
            slope = np.array([(log_odds(found + e, outcome) - log_odds(found - e, outcome)) / 2e-5
                              for e in np.eye(len(found)) * 1e-5])  # fmt: skip
            error = np.sqrt(slope @ covariance @ slope)
            middle = log_odds(found, outcome)
            assert np.isclose(table[name][row].as_py(), expit(middle), atol=1e-5)
            assert np.isclose(table[f"{name}_lower"][row].as_py(), expit(middle - 1.959964 * error), atol=1e-4)
            assert np.isclose(table[f"{name}_upper"][row].as_py(), expit(middle + 1.959964 * error), atol=1e-4)
    assert np.allclose(sum(np.asarray(table[name]) for name in ("win", "tie", "loss")), 1)


def test_half_ties_have_no_probability_of_their_own():
    prefs, *_ = matches(4)
    board = cc.rank(prefs)
    table = board.predict(0, [1, 2, 3])
    assert "tie" not in table.column_names and table["first"].to_pylist() == [0, 0, 0]
    again = board.compare(0, 2)
    row = table.to_pylist()[1]
    assert np.allclose([row["win"], row["win_lower"], row["win_upper"]],
                       [again.probability, again.probability_lower, again.probability_upper])  # fmt: skip
    assert np.isclose(row["win"] + row["loss"], 1) and np.isclose(row["win_lower"] + row["loss_upper"], 1)
    home = board.predict(0, 2, covariates={"home": 1})["win"][0].as_py()
    assert np.isclose(logit(home) - logit(row["win"]), board.coefficients["home"][0])


def test_intervals_hold_as_often_as_they_say():
    value, held, runs = np.array([0.6, 0.0, -0.6]), 0, 300
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        i = rng.integers(0, 3, 200)
        j = (i + rng.integers(1, 3, 200)) % 3
        won = rng.random(200) < expit(value[i] - value[j])
        prefs = cc.Preferences.from_comparisons(np.where(won, i, j).tolist(), np.where(won, j, i).tolist())
        row = cc.rank(prefs, interval="hessian").predict(0, 2).to_pylist()[0]
        held += row["win_lower"] <= expit(1.2) <= row["win_upper"]
    print(held / runs)
    assert 0.915 <= held / runs <= 0.985


def test_what_no_chain_connects_is_not_predicted():
    votes = cc.Preferences.from_comparisons(
        ["a", "b", "x", "y", "top"], ["b", "a", "y", "x", "a"], count=[9, 7, 8, 5, 2]
    )
    row = cc.rank(votes).predict("a", ["x", "top"]).to_pylist()
    assert row[0]["win"] is None and (row[0]["win_lower"], row[0]["win_upper"]) == (0, 1)
    assert row[1]["win"] < 0.5 and (row[1]["win_lower"], row[1]["win_upper"]) == (0, 1)


def test_a_bootstrap_predicts_too_and_wrong_words_are_refused():
    prefs, *_ = matches(5)
    board = cc.rank(prefs, interval="bootstrap", replicates=99)
    row = board.predict(3, 0).to_pylist()[0]
    assert 0 < row["win_lower"] < row["win"] < row["win_upper"] < 1
    row = board.predict(3, 0, covariates={"home": 1}).to_pylist()[0]
    assert (row["win_lower"], row["win_upper"]) == (0, 1)  # the replicates hold no coefficients
    with pytest.raises(UsageError, match="no item 17"):
        board.predict(3, 17)
    with pytest.raises(UsageError, match="unknown covariate 'homer'; did you mean 'home'"):
        board.predict(3, 1, covariates={"homer": 1})
    with pytest.raises(UsageError, match="one finite number, or one for each of 2 pairs"):
        board.predict(3, [1, 0], covariates={"home": [1, 2, 3]})
    with pytest.raises(UsageError, match="2 first and 3 second items do not make pairs"):
        board.predict([1, 2], [0, 1, 3])
    with pytest.raises(UsageError, match="do not say how often"):
        cc.rank(prefs, "borda").predict(3, 0)
