"""Losses of graded lists against all pairs in loops, finite differences and a general optimiser."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from concordant.errors import InputError, UsageError
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.graded import fit_graded
from concordant.losses.graded import GradedLists, graded_loss
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from toy_losses import TOYS, registered

PHI = {
    "hinge": lambda t: max(0.0, 1 - t),
    "squared-hinge": lambda t: max(0.0, 1 - t) ** 2,
    "logistic": lambda t: math.log1p(math.exp(-t)) if t > 0 else math.log1p(math.exp(t)) - t,
    "exponential": lambda t: math.exp(-t),
}
SLOPE = {
    "hinge": lambda t: -1.0 if t < 1 else 0.0,
    "squared-hinge": lambda t: -2 * max(0.0, 1 - t),
    "logistic": lambda t: -1 / (1 + math.exp(t)),
    "exponential": lambda t: -math.exp(-t),
}
for toy in TOYS.values():
    PHI[toy.name] = lambda t, toy=toy: float(toy.value(np.array([t]))[0])
    SLOPE[toy.name] = lambda t, toy=toy: float(toy.derivative(np.array([t]))[0])
BOTH = [(phi, weight) for phi in PHI for weight in ("pairs", "difference")]
seeds = st.integers(0, 100_000)


@pytest.fixture(autouse=True, scope="module")
def toys():
    with registered():
        yield


def all_pairs(score, grade, start, phi, weight):
    """The formula in loops."""
    value, gradient = np.zeros(len(start) - 1), np.zeros(len(score))
    for q in range(len(start) - 1):
        for i, j in itertools.permutations(range(start[q], start[q + 1]), 2):
            if grade[i] > grade[j]:
                w = grade[i] - grade[j] if weight == "difference" else 1.0
                value[q] += w * PHI[phi](score[i] - score[j])
                slope = w * SLOPE[phi](score[i] - score[j])
                gradient[i] += slope
                gradient[j] -= slope
    return value, gradient


def lists(seed, levels):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 9, 5)
    start = np.concatenate(([0], np.cumsum(size)))
    grade = {
        "two": rng.integers(0, 2, start[-1]),
        "five": rng.integers(-2, 3, start[-1]),
        "real": rng.normal(size=start[-1]),
        "few real": rng.choice([0.1, 0.25, 7.5], start[-1]),
    }[levels]
    score = rng.choice([rng.normal(size=start[-1]) * 2, rng.integers(-3, 4, start[-1]).astype(float)])
    return score, grade, start


@pytest.mark.parametrize("levels", ["two", "five", "real", "few real"])
@pytest.mark.parametrize(("phi", "weight"), BOTH)
@given(seed=seeds)
@settings(max_examples=25)
def test_all_pairs_in_loops(phi, weight, levels, seed):
    """Ties of scores, of grades, and gaps of exactly 1 are among them."""
    score, grade, start = lists(seed, levels)
    value, gradient = graded_loss(score, grade, start, phi, weight=weight)
    plain = all_pairs(score, grade, start, phi, weight)
    np.testing.assert_allclose(value, plain[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, plain[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("phi", "weight"), BOTH)
def test_finite_differences(phi, weight):
    score, grade, start = lists(3, "five")
    _, gradient = graded_loss(score, grade, start, phi, weight=weight)
    for node, step in enumerate(1e-6 * np.eye(len(score))):
        up, down = (graded_loss(score + s, grade, start, phi, weight=weight)[0].sum() for s in (step, -step))
        assert gradient[node] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("phi", "weight"), [both for both in BOTH if both[0] not in TOYS])
def test_it_is_the_edge_surrogate_on_the_list_s_ratings(phi, weight):
    """RankSVM, RankNet and RankBoost on one judgment of ratings: edges as strong as the difference, or unit."""
    rng = np.random.default_rng(2)
    grade, score = rng.integers(0, 5, 12).astype(float), rng.normal(size=12)
    ratings = Preferences.from_ratings(["q"] * 12, np.arange(12), grade)
    name = {"hinge": "ranksvm", "squared-hinge": "ranksvm", "logistic": "ranknet", "exponential": "rankboost"}[phi]
    h = "identity" if weight == "difference" else "unit"
    edges = surrogate(name).objective(Batch.whole(ratings), phi=phi, h=h)
    value, gradient = graded_loss(score, grade, None, phi, weight=weight)
    np.testing.assert_allclose(value, edges.value(score), rtol=1e-12)
    np.testing.assert_allclose(gradient, edges.gradient(score), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("phi", ["hinge", "squared-hinge", "exponential"])
def test_large_lists_lose_no_precision(phi):
    """20,000 items at scores far from 0, against blocks of all pairs; sums of positive terms only."""
    rng = np.random.default_rng(5)
    grade = rng.integers(0, 3, 4000)
    score = 1e5 + rng.normal(size=4000)
    value, gradient = graded_loss(score, grade, None, phi)
    gap = score[:, None] - score[None, :]
    over = grade[:, None] > grade[None, :]
    margin = pair_loss(phi)
    slope = np.where(over, margin.derivative(gap), 0.0)
    assert value[0] == pytest.approx(margin.value(gap)[over].sum(), rel=1e-10)
    np.testing.assert_allclose(gradient, slope.sum(axis=1) - slope.sum(axis=0), rtol=1e-8, atol=1e-8)


def test_exponentials_do_not_overflow_before_the_loss_does():
    value, gradient = graded_loss([900.0, -900.0, 0.0], [1, 0, 0], None, "exponential")
    assert value[0] == pytest.approx(0) and np.isfinite(gradient).all()
    value, gradient = graded_loss(np.array([2.0, 1.0, 0.5]) + 4000, [2, 0, 1], None, "exponential")
    assert value[0] == pytest.approx(math.exp(-1) + math.exp(-1.5) + math.exp(0.5), rel=1e-12)
    assert graded_loss([-500.0, 500.0], [1, 0], None, "exponential")[0][0] == np.inf  # it is e^1000


def test_pairs_are_counted():
    lists = GradedLists.of([1, 0, 1, 2, 5.5, 5.5], [0, 4, 4, 6])
    assert lists.pairs.tolist() == [5, 0, 0]
    zero = lists.loss(np.zeros(6), "hinge")[0]
    assert zero.tolist() == [5, 0, 0]


def test_grades_of_any_kind_are_ranked():
    """Whole numbers of a small range are ranked without a sort; others, and far ones, with one."""
    for grade in ([3, -1, 3, 0], [1e12, 5, 1e12, 7], [0.5, -3.25, 0.5, 0.0]):
        lists = GradedLists.of(grade)
        assert lists.rank.tolist() == [2, 0, 2, 1] and lists.distinct == 3


# -- fits -------------------------------------------------------------------------------------------------------------
def fitted_case(seed=0, width=3):
    rng = np.random.default_rng(seed)
    start = np.array([0, 7, 7, 12, 20])
    X = rng.normal(size=(20, width)) * [1.0, 30.0, 0.01][:width]
    return X, rng.integers(0, 4, 20), start, np.array([1.0, 2.0, 0.5, 0.0])


@pytest.mark.parametrize("weight", ["pairs", "difference"])
@pytest.mark.parametrize("phi", PHI)
def test_fits_are_those_of_newton_on_the_listed_pairs(phi, weight):
    X, grade, start, share = fitted_case()
    pairs = [
        (i, j)
        for q in range(4)
        for i, j in itertools.permutations(range(start[q], start[q + 1]), 2)
        if grade[i] > grade[j]
    ]
    winner, loser = np.array(pairs).T
    strength = (grade[winner] - grade[loser]).astype(float) if weight == "difference" else np.ones(len(winner))
    listed = Objective(WeightedEdges.of(start, winner, loser, strength), pair_loss(phi), value_penalty("square"))
    best = fit_edges(X, listed, ridge=0.3, weight=share)
    fit = fit_graded(X, grade, start, phi, 0.3, weight=weight, query_weight=share, tolerance=1e-7)
    assert fit.status == "converged"
    assert fit.value == pytest.approx(float(best.value), rel=1e-7)
    np.testing.assert_allclose(fit.theta, best.theta, rtol=1e-4, atol=1e-6)
    shuffle = np.random.default_rng(1).permutation(20)
    table = np.empty_like(X)
    table[shuffle] = X
    again = fit_graded(table, grade, start, phi, 0.3, weight=weight, query_weight=share, rows=shuffle, tolerance=1e-7)
    np.testing.assert_allclose(again.theta, fit.theta, rtol=1e-5, atol=1e-7)


def test_correlated_and_constant_features_do_no_harm(monkeypatch):
    """Features that are nearly one another, or constant in every query, and a diagonal scale where there are many."""
    rng = np.random.default_rng(0)
    X, grade, start, _ = fitted_case(2)
    owner = np.repeat(np.arange(4), np.diff(start))
    wide = np.column_stack([X, X[:, :1] + 1e-3 * rng.normal(size=(20, 1)), 1e3 * rng.random(4)[owner]])
    fit = fit_graded(wide, grade, start, "logistic", 1e-3, tolerance=1e-7)
    best = minimize(
        lambda t: graded_loss(wide @ t, grade, start, "logistic")[0].sum() + 5e-4 * t @ t,
        fit.theta,
        jac=lambda t: wide.T @ graded_loss(wide @ t, grade, start, "logistic")[1] + 1e-3 * t,
        method="BFGS",
        options={"gtol": 1e-6},
    )
    assert fit.status == "converged" and fit.iterations < 60
    assert fit.value == pytest.approx(best.fun, rel=1e-8)
    monkeypatch.setattr("concordant.learning.solvers.graded.WIDE", 2)
    diagonal = fit_graded(X, grade, start, "logistic", 0.1, tolerance=1e-7)
    monkeypatch.undo()
    full = fit_graded(X, grade, start, "logistic", 0.1, tolerance=1e-7)
    np.testing.assert_allclose(diagonal.theta, full.theta, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("phi", ["squared-hinge", "exponential", "logistic"])
def test_what_no_pair_tells_apart_has_no_coefficient(phi):
    """A feature that is constant in every query but for rounding, and without ridge a second copy of another one."""
    X, grade, start, _ = fitted_case(2)
    owner = np.repeat(np.arange(4), np.diff(start))
    level = 1e3 * np.random.default_rng(1).random(4)[owner] + 0.1
    shrunk = fit_graded(np.column_stack([X, level]), grade, start, phi, 1e-3)
    assert shrunk.theta[-1] == 0.0 and shrunk.undetermined == 0 and shrunk.status == "converged"
    np.testing.assert_allclose(shrunk.theta[:-1], fit_graded(X, grade, start, phi, 1e-3).theta, atol=1e-6)
    if phi == "squared-hinge":
        alone = fit_graded(X, grade, start, phi, 0.0)
        fit = fit_graded(np.column_stack([X, level, X[:, 0]]), grade, start, phi, 0.0)
        assert fit.undetermined == 2 and fit.status == "converged, undetermined directions set to 0"
        assert fit.theta[-2] == 0.0 and fit.theta[0] == pytest.approx(fit.theta[-1], rel=1e-6)
        np.testing.assert_allclose(fit.value, alone.value, rtol=1e-9)
        assert alone.undetermined == 0 and alone.status == "converged"


def test_a_general_optimiser_finds_the_same_and_early_stops_are_said():
    X, grade, start, _ = fitted_case(4)

    def risk(theta):
        return all_pairs(X @ theta, grade, start, "logistic", "pairs")[0].sum() + 0.05 * theta @ theta

    other = minimize(risk, np.zeros(3), method="BFGS", options={"gtol": 1e-4})
    fit = fit_graded(X, grade, start, "logistic", 0.1)
    assert fit.value <= other.fun + 1e-6 and fit.value == pytest.approx(risk(fit.theta), rel=1e-12)
    early = fit_graded(X, grade, start, "logistic", 0.1, max_iterations=1)
    assert early.status == "stopped before convergence" and early.iterations == 1


def test_what_is_not_done_is_said(monkeypatch):
    X, grade, start, share = fitted_case()
    for phi in ("logistic", "exponential"):
        with pytest.raises(UsageError, match="needs a ridge"):
            fit_graded(X, grade, start, phi, 0.0)
    assert fit_graded(X, grade, start, "squared-hinge", 0.0).status == "converged"
    monkeypatch.setattr("concordant.learning.solvers.graded.HINGE_PAIRS", 10)
    with pytest.raises(UsageError, match="at most 10"):
        fit_graded(X, grade, start, "hinge", 0.1)
    with pytest.raises(UsageError, match="query_weight"):
        fit_graded(X, grade, start, "logistic", 0.1, query_weight=share[1:])
    with pytest.raises(UsageError, match="items but"):
        fit_graded(X[1:], grade, start, "logistic", 0.1)


def test_bad_input():
    for arguments, says in (
        (([1.0], [1, 2], None, "hinge"), "shapes do not fit"),
        (([1.0, 2.0], [1, 2], [0, 1], "hinge"), "start must rise"),
        (([1.0, 2.0], [1, 2], [0, 2, 1], "hinge"), "start must rise"),
        (([1.0, 2.0], [1, 2], None, "huber"), "no graded loss"),
    ):
        with pytest.raises(UsageError, match=says):
            graded_loss(*arguments)
    with pytest.raises(UsageError, match="unknown weight"):
        graded_loss([1.0], [1], None, "hinge", weight="square")
    with pytest.raises(InputError, match="1 of 2 grades"):
        graded_loss([1.0, 2.0], [1, np.nan], None, "hinge")
    with pytest.raises(InputError, match="1 of 2 scores"):
        graded_loss([1.0, np.inf], [1, 2], None, "hinge")
    assert [x.tolist() for x in graded_loss([], [], None, "hinge")] == [[0.0], []]
    assert [x.tolist() for x in graded_loss([], [], [0, 0, 0], "logistic")] == [[0.0, 0.0], []]
