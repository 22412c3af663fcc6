"""RankBoost against its plain loops, the bound on the ranking loss, and the loss it descends on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.errors import InputError, UsageError
from concordant.learning.solvers.rankboost import rankboost
from concordant.losses.graded import GradedLists
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences

seeds = st.integers(0, 10_000)


def case(seed, missing=0.0, graphs=3, width=3):
    """X, edges with weights (two graphs of which may be empty) as an objective, and their list."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 7, graphs)
    start = np.concatenate(([0], np.cumsum(size)))
    X = rng.normal(size=(start[-1], width)).round(1)
    X[rng.random(X.shape) < missing] = np.nan
    ends = [(start[g] + i, start[g] + j) for g in range(graphs) for i, j in itertools.permutations(range(size[g]), 2)]
    ends = [pair for pair in ends if rng.random() < 0.5] or ends[:1]
    winner, loser = np.array(ends).T
    weight = rng.uniform(0.1, 1, len(winner))
    edges = WeightedEdges.of(start, winner, loser, weight)
    return X, Objective(edges, pair_loss("exponential"), value_penalty("square"))


def rules_of(X):
    """Every (feature, threshold, direction, missing) and its h, by loops."""
    for feature in range(X.shape[1]):
        x = X[:, feature]
        values = sorted(set(x[~np.isnan(x)]))
        cuts = [(a + b) / 2 for a, b in itertools.pairwise(values)]
        some = np.isnan(x).any()
        for cut in ([-np.inf] if some else []) + cuts:
            for fill in (0, 1) if some else (0,):
                for direction in (1, -1):
                    h = np.array([fill if np.isnan(v) else float(v > cut) for v in x])
                    yield (feature, cut, direction, fill), h if direction > 0 else 1 - h


def plain_rankboost(X, pairs, weights, rounds, choose, epsilon):
    """Freund et al. 2003, figure 1, with D held pair by pair; yields the best worth, α, Z and F of each round."""
    D = np.array(weights) / sum(weights)
    F = np.zeros(len(X))
    for _ in range(rounds):
        worth = {}
        for rule, h in rules_of(X):
            r = sum(d * (h[i] - h[j]) for d, (i, j) in zip(D, pairs, strict=True))
            right = sum(d for d, (i, j) in zip(D, pairs, strict=True) if h[i] > h[j])
            wrong = sum(d for d, (i, j) in zip(D, pairs, strict=True) if h[i] < h[j])
            worth[rule] = r if choose == "r" else np.sqrt(right) - np.sqrt(wrong), right, wrong, h
        best = max(value[0] for value in worth.values())
        r, right, wrong, h = max(worth.values(), key=lambda value: value[0])
        if choose == "r":
            alpha = 0.5 * np.log((1 + r + epsilon) / (1 - r + epsilon))
        else:
            alpha = 0.5 * np.log((right + epsilon) / (wrong + epsilon))
        D = np.array([d * np.exp(alpha * (h[j] - h[i])) for d, (i, j) in zip(D, pairs, strict=True)])
        Z = D.sum()
        D = D / Z
        F = F + alpha * h
        yield best, {rule for rule, value in worth.items() if value[0] > best - 1e-9}, alpha, Z


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("choose", ["r", "z"])
@given(seed=seeds)
@settings(max_examples=12)
def test_the_algorithm_in_plain_loops(choose, missing, seed):
    X, objective = case(seed, missing)
    edges = objective.edges
    pairs = list(zip(edges.winner, edges.loser, strict=True))
    model = rankboost(X, objective, rounds=4, choose=choose, smoothing=0.01, thresholds=None)
    plain = list(plain_rankboost(X, pairs, edges.weight, 4, choose, 0.01))
    for t in range(len(model.alpha)):
        best, rules, alpha, Z = plain[t]
        mine = (model.feature[t], model.threshold[t], model.direction[t], model.missing[t])
        assert any(
            (mine[:1] == rule[:1] and mine[2:] == rule[2:] and np.isclose(mine[1], rule[1])) or mine == rule
            for rule in rules
        )
        if len(rules) > 1:
            return  # rules of equal worth: from here on both may go another way
        assert model.alpha[t] == pytest.approx(alpha, rel=1e-9)
        assert model.z[t] == pytest.approx(Z, rel=1e-9)
        assert best > 0


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("choose", ["r", "z"])
@given(seed=seeds)
@settings(max_examples=20)
def test_the_product_of_z_is_the_loss_and_bounds_the_misordered(choose, missing, seed):
    X, objective = case(seed, missing)
    edges = objective.edges
    model = rankboost(X, objective, rounds=12, choose=choose)
    F = model.scores(X)
    loss = objective.value(F).sum() / edges.weight.sum()
    assert np.prod(model.z) == pytest.approx(loss, rel=1e-8)
    misordered = edges.weight[F[edges.winner] <= F[edges.loser]].sum() / edges.weight.sum()
    assert misordered <= np.prod(model.z) + 1e-12
    assert (model.alpha > 0).all() and (model.z <= 1 + 1e-12).all()


@given(seed=seeds)
@settings(max_examples=15)
def test_graded_lists_are_their_listed_pairs(seed):
    rng = np.random.default_rng(seed)
    start = np.array([0, 6, 6, 13])
    grade, X = rng.integers(0, 3, 13), rng.normal(size=(13, 3))
    grade[:2] = [0, 1]
    weight = np.array([1.0, 5.0, 0.3])
    pairs = [
        (i, j)
        for a, b in itertools.pairwise(start)
        for i, j in itertools.permutations(range(a, b), 2)
        if grade[i] > grade[j]
    ]
    winner, loser = np.array(pairs).T
    edges = WeightedEdges.of(start, winner, loser, np.ones(len(winner)))
    listed = Objective(edges, pair_loss("exponential"), value_penalty("square"))
    one, other = (rankboost(X, source, weight=weight, rounds=8) for source in (GradedLists.of(grade, start), listed))
    np.testing.assert_array_equal(one.feature, other.feature)
    np.testing.assert_allclose(one.threshold, other.threshold)
    np.testing.assert_allclose(one.alpha, other.alpha, rtol=1e-7)
    np.testing.assert_allclose(one.z, other.z, rtol=1e-9)


def test_rows_and_preferences():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8, 2))
    winner, loser = rng.integers(0, 4, 30), rng.integers(4, 8, 30)
    votes = Preferences.from_comparisons(winner, loser, query=rng.integers(0, 2, 30))
    batch = Batch.whole(votes)
    rows = np.asarray(votes.items.values)[batch.item]
    objective = surrogate("rankboost").objective(batch)
    shared = rankboost(X, objective, rows=rows, rounds=6)
    apart = rankboost(X[rows], objective, rounds=6)
    np.testing.assert_array_equal(shared.feature, apart.feature)
    np.testing.assert_allclose(shared.alpha, apart.alpha, rtol=1e-9)
    F = shared.scores(X)
    assert np.mean(F[winner] > F[loser]) > 0.5


def test_scores_are_the_sum_of_the_rules():
    X, objective = case(11, missing=0.25)
    model = rankboost(X, objective, rounds=30)
    table = np.vstack([X, np.full((1, 3), np.nan), np.full((1, 3), 99.0)])
    F = np.zeros(len(table))
    for feature, threshold, alpha, direction, fill in zip(
        model.feature, model.threshold, model.alpha, model.direction, model.missing, strict=True
    ):
        for row, x in enumerate(table[:, feature]):
            h = fill if np.isnan(x) else int(x > threshold)
            F[row] += alpha * (h if direction > 0 else 1 - h)
    np.testing.assert_allclose(model.scores(table), F, rtol=1e-12)
    with pytest.raises(UsageError, match="3 columns"):
        model.scores(table[:, :2])


def test_few_thresholds_and_single_precision():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 2)).astype(np.float32)
    lists = GradedLists.of((X[:, 1] > 0.3).astype(int))
    for most in (1, 10, 255, None):
        model = rankboost(X, lists, rounds=5, thresholds=most)
        assert len(np.unique(model.threshold[model.feature == 1])) <= (most or 500)
    assert model.feature[0] == 1 and model.threshold[0] == pytest.approx(0.3, abs=0.05)
    assert np.prod(model.z) < 0.01


def test_when_it_stops_is_said():
    level = np.ones((4, 2))
    lists = GradedLists.of([0, 1, 0, 1])
    model = rankboost(level, lists)
    assert model.status == "no rule orders the pairs better than chance" and len(model.alpha) == 0
    assert model.scores(level).tolist() == [0, 0, 0, 0]
    easy = rankboost(np.arange(4.0)[:, None], GradedLists.of([0, 0, 1, 1]), rounds=10_000, smoothing=1e-9)
    assert easy.status == "all pairs in order, the loss is 0 in rounding"
    short = rankboost(np.arange(4.0)[:, None], lists, rounds=2)
    assert short.status == "all rounds made" and len(short.alpha) == 2


def test_bad_input():
    X, objective = case(0)
    lists = GradedLists.of(np.zeros(len(X)), [0, len(X)])
    for arguments, options, says in (
        ((X, objective), {"choose": "q"}, "unknown choice"),
        ((X, objective), {"rounds": 0}, "rounds must be"),
        ((X, objective), {"thresholds": 0}, "thresholds must be"),
        ((X, objective), {"smoothing": -1.0}, "smoothing must be"),
        ((X, objective), {"weight": [1.0]}, "weight must hold"),
        ((X[1:], objective), {}, "items but"),
        ((X[0], objective), {}, "must be a matrix"),
        ((X, lists), {}, "no pair"),
        ((X, lists), {"choose": "z"}, "one by one"),
        ((X, Objective(objective.edges, pair_loss("logistic"), objective.penalty)), {}, "exponential loss"),
    ):
        with pytest.raises(UsageError, match=says):
            rankboost(*arguments, **options)
    X[0, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        rankboost(X, objective)
