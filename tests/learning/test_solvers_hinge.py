"""The hinge: its duality gap is a true bound, and linear programmes and LIBLINEAR find the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.svm import LinearSVC
from test_solvers_edges import THEOREM_3, problem, risk_of

from concordant.errors import UsageError
from concordant.learning.solvers import hinge
from concordant.learning.solvers.edges import fit_edges
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import surrogate

seeds = st.integers(0, 10_000)


def differences(X, objective, weight):
    """d_e and w_e of each edge, written out."""
    edges = objective.edges
    return X[edges.winner] - X[edges.loser], edges.weight * weight[objective.owner[edges.winner]]


@given(seed=seeds, ridge=st.sampled_from([3.0, 0.1, 0.01]))
@settings(max_examples=15)
def test_liblinear_finds_the_same(seed, ridge):
    X, objective, weight = problem(seed, "hinge")
    d, w = differences(X, objective, weight)
    fit = fit_edges(X, objective, ridge=ridge, weight=weight)
    peer = LinearSVC(loss="hinge", fit_intercept=False, C=1 / ridge, tol=1e-9, max_iter=2_000_000)
    both = np.concatenate((d, -d)), np.repeat([1, -1], len(d))  # it wants two classes
    theta = peer.fit(*both, sample_weight=np.concatenate((w, w)) / 2).coef_[0]
    risk = risk_of(X, objective, weight, ridge)
    assert fit.status == "converged"
    assert 0 <= fit.gap <= 1e-8 * (fit.value + 1)
    assert fit.value == pytest.approx(risk(fit.theta), rel=1e-12)
    assert fit.value - fit.gap <= risk(theta) + 1e-12  # the bound holds against another point
    assert risk(theta) == pytest.approx(fit.value, rel=1e-5)
    np.testing.assert_allclose(fit.theta, theta, atol=2e-3 / np.sqrt(ridge))


@given(seed=seeds, ridge=st.sampled_from([0.0, 0.2, 5.0]))
@settings(max_examples=15)
def test_a_quadratic_programme_finds_the_same(seed, ridge):
    """With offsets; slacks as variables. Without ridge it is a linear programme."""
    X, objective, weight = problem(seed, "hinge", width=2, graphs=2, offsets=True)
    (d, w), b = differences(X, objective, weight), 1 + objective.edges.offset
    fit = fit_edges(X, objective, ridge=ridge, weight=weight, tolerance=1e-9)
    edges = len(w)
    if ridge == 0:
        cost, table = np.concatenate(([0, 0], w)), np.hstack([-d, -np.eye(edges)])
        best = linprog(cost, A_ub=table, b_ub=-b, bounds=[(None, None)] * 2 + [(0, None)] * edges).fun
    else:
        constraint = {
            "type": "ineq",
            "fun": lambda z: d @ z[:2] + z[2:] - b,
            "jac": lambda _: np.hstack([d, np.eye(edges)]),
        }
        found = minimize(
            lambda z: ridge / 2 * z[:2] @ z[:2] + w @ z[2:],
            np.concatenate(([0, 0], b)),
            jac=lambda z: np.concatenate((ridge * z[:2], w)),
            constraints=constraint,
            bounds=[(None, None)] * 2 + [(0, None)] * edges,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        best = found.fun
    assert fit.converged
    assert fit.value == pytest.approx(best, rel=1e-6, abs=1e-7)


@given(seed=seeds)
@settings(max_examples=10)
def test_with_identity_features_it_is_the_linear_programme_over_scores(seed):
    _, objective, _ = problem(seed, "hinge")
    for ridge in (0.0, 1e-9):
        fit = fit_edges(np.eye(objective.nodes), objective, ridge=ridge)
        np.testing.assert_allclose(objective.value(fit.theta), minimise(objective).value, atol=1e-6)


def test_stopping_early_reports_an_honest_gap():
    X, objective, weight = problem(0, "hinge")
    best = fit_edges(X, objective, ridge=0.05, weight=weight, tolerance=1e-10)
    for steps in range(best.iterations):
        fit = fit_edges(X, objective, ridge=0.05, weight=weight, max_iterations=steps, tolerance=1e-10)
        assert fit.status == "stopped before convergence" and fit.iterations == steps
        assert fit.gap >= fit.value - best.value - 1e-9
    assert best.gap <= 1e-10 * best.value


def test_tied_by_theorem_3_and_separable_data():
    objective = surrogate("ranksvm").objective(THEOREM_3)
    fit = fit_edges(np.eye(3), objective, ridge=0.0)
    assert fit.value == pytest.approx(0.49, abs=1e-7) and fit.gap < 1e-7
    edges = WeightedEdges.of(np.array([0, 3]), np.array([0, 1, 0]), np.array([1, 2, 2]), np.ones(3))
    separable = Objective(edges, pair_loss("hinge"), value_penalty("square"))
    free = fit_edges(np.eye(3), separable, ridge=0.0)
    assert free.converged and free.value == pytest.approx(0, abs=1e-7)
    held = fit_edges(np.eye(3), separable, ridge=1e-6)
    np.testing.assert_allclose(held.theta - held.theta.mean(), [1, 0, -1], atol=1e-5)  # the largest margin


def test_features_that_no_edge_sees_without_ridge():
    X, objective, weight = problem(1, "hinge")
    constant = 1e3 * np.random.default_rng(0).random(len(weight))[objective.owner]
    plain = fit_edges(X, objective, ridge=0.0, weight=weight)
    wide = fit_edges(np.column_stack([X, constant]), objective, ridge=0.0, weight=weight)
    assert wide.status == "converged, undetermined directions set to 0" and wide.undetermined == 1
    assert wide.theta[4] == 0 and wide.value == pytest.approx(float(plain.value), rel=1e-7)


def test_weights_of_very_different_size():
    """Edge weights over twelve orders of magnitude: the gap still closes."""
    X, objective, weight = problem(3, "hinge")
    edges = objective.edges
    rng = np.random.default_rng(0)
    wild = WeightedEdges.of(edges.node_start, edges.winner, edges.loser, 10.0 ** rng.uniform(-9, 3, len(edges.weight)))
    fit = fit_edges(X, Objective(wild, objective.phi, objective.penalty), ridge=0.1, weight=weight)
    assert fit.status == "converged"


def test_what_it_does_not_do_is_said(monkeypatch):
    X, objective, _ = problem(1, "hinge", pull=0.1)
    with pytest.raises(UsageError, match="take squared-hinge"):
        fit_edges(X, objective, ridge=0.1)
    X, objective, _ = problem(1, "hinge")
    monkeypatch.setattr(hinge, "WIDEST", 3)
    with pytest.raises(UsageError, match="at most 3 features"):
        fit_edges(X, objective, ridge=0.1)
