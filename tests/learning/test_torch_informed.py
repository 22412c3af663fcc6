"""Informed aggregation for networks: targets beside Bradley–Terry, rounds beside SciPy on the objective they lower."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Alignment
from concordant.learning.targets.informed import informed_prior
from concordant.ranking.bradley_terry import bradley_terry
from seeds import seed

torch = pytest.importorskip("torch")
from concordant import torch as ct  # noqa: E402
from concordant.torch.informed import CentredSquares  # noqa: E402


def drawn(number, *, queries=12, items=4, votes=20, own=0.7):
    """Votes on items whose worth is linear in two features and something of their own, and a row for each item."""
    random = np.random.default_rng(number)
    X = random.normal(size=(queries * items, 2))
    worth = X @ [1.0, -0.5] + own * random.normal(size=len(X))
    query = np.repeat(np.arange(queries), votes)
    one = random.integers(items, size=len(query))
    other = (one + random.integers(1, items, size=len(query))) % items
    a, b = query * items + one, query * items + other
    won = random.random(len(query)) < expit(worth[a] - worth[b])
    prefs = cc.Preferences.from_comparisons(np.where(won, a, b), np.where(won, b, a), query)
    rows = cc.Batch.whole(prefs).item  # items are called by their rows
    return X, prefs, np.array([int(str(prefs.items[code])) for code in rows])


def test_targets_are_bradley_terry_about_the_scores():
    X, prefs, rows = drawn(seed(1))
    f = X[rows] @ [0.3, 0.2]
    found = ct.informed_targets(torch.tensor(f), prefs, tau2=0.5)
    expected = bradley_terry(cc.Batch.whole(prefs), prior=2.0, mean=f).value
    assert found.numpy() == pytest.approx(expected, abs=1e-12)
    start = cc.Batch.whole(prefs).node_start
    prior = informed_prior(X, Alignment(start, rows, np.zeros(0, np.int64)), prefs, ridge=0.1, tau2=0.5)
    again = bradley_terry(cc.Batch.whole(prefs), **prior.options).value
    mine = ct.informed_targets(torch.tensor(X[rows] @ prior.theta), prefs, tau2=0.5).numpy()
    centred = cc.Batch.whole(prefs).node_groups.centred
    assert centred(mine) == pytest.approx(centred(again), abs=1e-9)


def test_rounds_lower_their_objective_to_its_minimum():
    X, prefs, rows = drawn(seed(2))
    scorer = ct.LinearScorer(2)
    found = ct.fit_informed(scorer, X, prefs, rows=rows, tau2=0.7, ridge=0.05, rounds=200)
    assert np.diff(found.values).max() <= 1e-12
    batch, n = cc.Batch.whole(prefs), len(prefs)
    winner, loser = batch.sides(prefs)

    def joint(free):  # scores and coefficients at once, by a plain sum over votes
        s, theta = free[:-2], free[-2:]
        f = X[rows] @ theta
        off = np.concatenate([part - part.mean() for part in np.split(s - f, batch.node_start[1:-1])])
        gaps = s[winner] - s[loser]
        return (prefs.count @ np.logaddexp(0, -gaps) + off @ off / 1.4) / n + 0.025 * theta @ theta

    best = minimize(joint, np.zeros(len(rows) + 2), method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    assert found.values[-1] == pytest.approx(best.fun, abs=2e-5)
    assert scorer.weight.detach().numpy() == pytest.approx(best.x[-2:], abs=0.02)


def test_a_small_variance_is_the_usual_loss():
    X, prefs, rows = drawn(seed(3))
    usual = cc.EdgeRanker("ranknet", ridge=0.05, standardise=False).fit(
        (X, np.arange(len(X)) // 4, np.arange(len(X))), prefs
    )
    scorer = ct.LinearScorer(2)
    ct.fit_informed(scorer, X, prefs, rows=rows, tau2=1e-4, ridge=0.05)
    assert scorer.weight.detach().numpy() == pytest.approx(usual.coef_, abs=1e-3)


def test_variance_is_chosen_by_how_much_items_have_of_their_own():
    alone = ct.fit_informed(ct.LinearScorer(2), *_parts(seed(4), own=0.0, votes=60), ridge=1e-3)
    apart = ct.fit_informed(ct.LinearScorer(2), *_parts(seed(4), own=1.5, votes=60), ridge=1e-3)
    assert alone.tau2 < 0.1 < 1.0 < apart.tau2
    few = drawn(seed(5), queries=3)
    found = ct.fit_informed(ct.LinearScorer(2), few[0], few[1], rows=few[2], ridge=1e-2)
    assert [point[0] for point in found.tau2_curve] == sorted(point[0] for point in found.tau2_curve)
    assert max(found.tau2_curve, key=lambda point: point[1])[0] == found.tau2


def _parts(number, **how):
    X, prefs, rows = drawn(number, **how)
    return X[rows], prefs


def test_a_network_in_batches():
    X, prefs, rows = drawn(seed(6), queries=20, votes=30)
    scorer = ct.ReluScorer(2, 8, seed=1)
    found = ct.fit_informed(
        scorer, X, prefs, rows=rows, tau2=0.5, ridge=1e-3, method="adam", batch=5, steps=30, rounds=3, rate=0.02
    )
    assert 2 <= len(found.values) <= 4
    assert found.values[-1] < found.values[0] + 0.01
    with torch.no_grad():
        learned = scorer(torch.tensor(X)).numpy()
    assert np.corrcoef(learned, X @ [1.0, -0.5])[0, 1] > 0.7
    assert found.targets.shape == (len(rows),)


def test_squares_have_an_intercept_for_each_query():
    random = np.random.default_rng(0)
    start, target, scores = np.array([0, 3, 3, 5]), random.normal(size=5), random.normal(size=5)
    risk = CentredSquares(torch.tensor(start), torch.tensor(target))
    parts = [np.arange(a, b) for a, b in pairwise(start)]
    expected = [0.5 * len(p) * np.var(scores[p] - target[p]) if len(p) else 0.0 for p in parts]
    assert risk(torch.tensor(scores)).numpy() == pytest.approx(expected)
    assert risk.take(torch.tensor([2]))(torch.tensor(scores[3:])).item() == pytest.approx(expected[2])


def test_what_cannot_be_asked():
    X, prefs, rows = drawn(seed(7), queries=2)
    with pytest.raises(UsageError, match="tau2 must be a positive number"):
        ct.fit_informed(ct.LinearScorer(2), X, prefs, rows=rows, tau2=0)
    with pytest.raises(UsageError, match="not list"):
        ct.fit_informed(ct.LinearScorer(2), X, [1])
    with pytest.raises(UsageError, match="rounds must be"):
        ct.fit_informed(ct.LinearScorer(2), X, prefs, rows=rows, rounds=0)
    with pytest.raises(InputError, match="needs comparisons"):
        ct.fit_informed(ct.LinearScorer(2), X, cc.Preferences.empty())
    with pytest.raises(UsageError, match="scores for"):
        ct.informed_targets(torch.zeros(3), prefs, tau2=1.0)
