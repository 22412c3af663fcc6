"""Means and spreads: likelihoods beside SciPy, equal spreads beside the usual models, spreads that were planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit
from scipy.stats import norm

import concordant as cc
from concordant.errors import UsageError
from concordant.learning.annotators.design import Design
from concordant.learning.annotators.distributional import HALF, _Votes
from seeds import seed

CHANCE = {"probit": norm.cdf, "logistic": expit}


def drawn(number, *, items=6, votes=600, spread=None):
    """Votes by people to whom each item is worth something of their own."""
    random = np.random.default_rng(number)
    mean = np.linspace(-1.0, 1.0, items)
    spread = np.ones(items) if spread is None else np.asarray(spread)
    one = random.integers(items, size=votes)
    other = (one + random.integers(1, items, size=votes)) % items
    won = mean[one] + spread[one] * random.normal(size=votes) > mean[other] + spread[other] * random.normal(size=votes)
    return cc.Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one))


def plain(prefs, mean, spread, link):
    """The log-likelihood by a loop over votes."""
    total = 0.0
    tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    for a, b, even, n in zip(prefs.winner, prefs.loser, tie, prefs.count, strict=True):
        p = CHANCE[link]((mean[a] - mean[b]) / np.sqrt(spread[a] ** 2 + spread[b] ** 2))
        total += n * (0.5 * np.log(p) + 0.5 * np.log(1 - p) if even else np.log(p))
    return total


@pytest.mark.parametrize("link", ["probit", "logistic"])
@pytest.mark.parametrize("features", [False, True])
def test_derivatives_are_those_of_differences(link, features):
    prefs = drawn(seed(1))
    random = np.random.default_rng(0)
    X = random.normal(size=(6, 3))
    design = Design.of(prefs, (X, None, np.arange(6)) if features else None, what="x")
    votes, size = _Votes.of(prefs, design, link), 3 if features else 6

    def value(free):
        return votes.objective(votes.mass, free[:size], free[size:], 0.3, 2.0)[0]

    def slope(free):
        return np.concatenate(votes.objective(votes.mass, free[:size], free[size:], 0.3, 2.0)[1:])

    at = random.normal(size=2 * size) * 0.5
    assert check_grad(value, slope, at) / np.abs(slope(at)).max() < 1e-5


def test_equal_spreads_are_the_usual_models():
    prefs = drawn(seed(2))
    found = cc.distributional(prefs, link="logistic", prior=0.3, spread_prior=np.inf)
    assert found.spread == pytest.approx(np.sqrt(0.5))
    board = cc.rank(prefs, prior=0.3, interval="none")
    expected = np.empty(6)
    expected[board.item] = board.score
    assert found.mean == pytest.approx(expected, abs=1e-5)
    X = np.random.default_rng(1).normal(size=(6, 2))
    linear = cc.distributional(prefs, (X, None, np.arange(6)), link="logistic", prior=2.0, spread_prior=np.inf)
    ranker = cc.EdgeRanker("ranknet", ridge=2.0 / len(prefs)).fit((X, None, np.arange(6)), prefs)
    assert linear.coefficients == pytest.approx(ranker.coef_, abs=1e-5)


@pytest.mark.parametrize("link", ["probit", "logistic"])
def test_nothing_that_scipy_finds_is_likelier(link):
    prefs = drawn(seed(3), items=5, votes=400, spread=[0.3, 1, 1, 1, 3])
    prefs = prefs + cc.Preferences.from_comparisons([0, 3], [1, 4], tie=[True, True])
    found = cc.distributional(prefs, link=link, prior=0.2, spread_prior=1.0)
    assert found.status == "converged"
    assert plain(prefs, found.mean, found.spread, link) == pytest.approx(found.log_likelihood, abs=1e-8)
    assert np.log(found.spread).mean() == pytest.approx(-HALF)

    def loss(free):
        level = free[5:] - free[5:].mean()
        return 0.5 * (0.2 * free[:5] @ free[:5] + free[5:] @ free[5:]) - plain(
            prefs, free[:5], np.exp(level - HALF), link
        )

    random = np.random.default_rng(seed(4))
    best = min(minimize(loss, random.normal(size=10), method="L-BFGS-B").fun for _ in range(3))
    own = loss(np.concatenate([found.mean, np.log(found.spread) + HALF]))
    assert own <= best + 1e-4


def test_planted_spreads_are_found_and_held_out_votes_say_so():
    spread = [0.4, 0.4, 0.4, 2.0, 2.0, 2.0]
    found = cc.distributional(drawn(seed(5), votes=6_000, spread=spread))
    assert found.gain > 1.64 * found.gain_error
    assert found.spread[:3].max() < 0.6 * found.spread[3:].min()
    assert any(note.startswith("with spreads a held-out vote has a log-loss less") for note in found.notes)
    level = cc.distributional(drawn(seed(6), votes=3_000))
    assert level.gain < 2.6 * level.gain_error + 1e-12
    assert cc.distributional(drawn(seed(6)), prior=1.0, spread_prior=2.0).notes == ()


def test_linear_spreads_are_found_and_foretold():
    random = np.random.default_rng(seed(7))
    X = random.normal(size=(80, 2))
    mean, spread = 1.5 * X[:, 0], np.exp(0.8 * X[:, 1]) * np.sqrt(0.5)
    one = random.integers(80, size=8_000)
    other = (one + random.integers(1, 80, size=8_000)) % 80
    worth = [mean[who] + spread[who] * random.normal(size=8_000) for who in (one, other)]
    won = worth[0] > worth[1]
    prefs = cc.Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one))
    found = cc.distributional(prefs, (X, None, np.arange(80)), prior=1.0)
    scale = X.std(axis=0)  # the unit is that of an item with mean features
    assert found.coefficients / np.abs(found.coefficients[0]) == pytest.approx([1.0, 0.0], abs=0.1)
    assert found.spread_coefficients == pytest.approx([0.0, 0.8], abs=0.15)
    new = random.normal(size=(50, 2))
    means, spreads = found.predict(new)
    assert np.corrcoef(np.log(spreads), new[:, 1])[0, 1] > 0.98
    assert found.quantile(0.1, new) == pytest.approx(means + spreads * norm.ppf(0.1))
    assert scale.shape == (2,)


def test_queries_have_items_of_their_own():
    votes = cc.Preferences.from_comparisons(list("abca") * 5, list("bcac") * 5, query=[1, 1, 1, 2] * 5)
    found = cc.distributional(votes, prior=1.0, spread_prior=1.0)
    table = found.to_arrow()
    assert table.column_names == ["query", "item", "rank", "mean", "spread"]
    rows = {(row["query"], row["item"]): row for row in table.to_pylist()}
    assert rows[2, "a"]["rank"] == 1
    one, other = rows[1, "a"], rows[1, "b"]
    expected = norm.cdf((one["mean"] - other["mean"]) / np.hypot(one["spread"], other["spread"]))
    assert found.probability("a", "b", query=1) == pytest.approx(expected)
    with pytest.raises(UsageError, match="2 queries; name one"):
        found.probability("a", "b")
    with pytest.raises(UsageError, match="'b' was not judged in query 2"):
        found.probability("a", "b", query=2)


def test_what_cannot_be_asked():
    prefs = drawn(seed(8))
    with pytest.raises(UsageError, match="unknown link 'logit'"):
        cc.distributional(prefs, link="logit")
    with pytest.raises(UsageError, match="prior must be a positive number"):
        cc.distributional(prefs, prior=0)
    with pytest.raises(UsageError, match="spread_prior must be"):
        cc.distributional(prefs, spread_prior="none")
    with pytest.raises(UsageError, match="not list"):
        cc.distributional([1])
    with pytest.raises(UsageError, match="from comparisons"):
        cc.distributional(cc.Preferences.from_orders(None, [1, 1], ["a", "b"], [1, 2]))
    found = cc.distributional(prefs, prior=1.0, spread_prior=1.0)
    with pytest.raises(UsageError, match="share must lie"):
        found.quantile(1)
    with pytest.raises(UsageError, match="without features"):
        found.predict([[1.0]])
