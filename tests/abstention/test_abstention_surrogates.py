"""Surrogates of pairs and the solver on linear scorers, against double loops, finite differences, SciPy and HiGHS."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, approx_fprime, linprog, minimize

from concordant.abstention import pairs as pairs_of_points
from concordant.abstention import pairs as surrogates
from concordant.abstention.linear import minimise_linear, project
from concordant.abstention.pairs import AllPairs, ListedPairs, pairs_loss
from concordant.abstention.points import PHIS, phi_named
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.preferences.status import Status

PHI = {"hinge": lambda t: max(0.0, 1 - t), "exponential": lambda t: math.exp(-t), "sigmoid": lambda t: 1 - math.tanh(t)}
NORMS = {1: 1, 2: 2, "inf": np.inf}
DUAL = {1: np.inf, 2: 2, "inf": 1}


@pytest.fixture
def points():
    rng = np.random.default_rng(4)
    X = np.round(rng.uniform(-1, 1, (25, 3)), 2)
    y = rng.integers(0, 4, 25)
    return X, y, rng.normal(size=25).round(1)


def plain(X, y, h, phi, gamma, p):
    """Mean over ordered pairs of different labels, by its definition: Φ(y(h(x') − h(x))), 0 for near pairs."""
    total, pairs = 0.0, 0
    for i, j in itertools.permutations(range(len(y)), 2):
        if y[i] == y[j]:
            continue
        pairs += 1
        if gamma is None or np.linalg.norm(X[i] - X[j], p) > gamma:
            total += PHI[phi](np.sign(y[j] - y[i]) * (h[j] - h[i]))
    return total / pairs


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("phi", PHIS)
def test_all_far_pairs_equal_a_double_loop(points, phi, norm, monkeypatch):
    X, y, h = points
    for gamma, block in itertools.product((0.0, 0.5, 0.9), (1 << 21, 60)):
        monkeypatch.setattr(pairs_of_points, "BLOCK", block)
        pairs = AllPairs.of(y, X, gamma=gamma, norm=norm)
        value, gradient = pairs.loss(h, phi_named(phi))
        assert value == pytest.approx(plain(X, y, h, phi, gamma, NORMS[norm]), rel=1e-12)
        near = sum(
            y[i] > y[j] and np.linalg.norm(X[i] - X[j], NORMS[norm]) <= gamma
            for i, j in itertools.permutations(range(25), 2)
        )
        assert pairs.far_share == pytest.approx(1 - near / pairs.near.total)
    smooth = h + np.random.default_rng(0).uniform(0, 1e-3, 25)  # away from the kinks of the hinge
    gradient = pairs.loss(smooth, phi_named(phi))[1]
    finite = approx_fprime(smooth, lambda s: pairs.loss(s, phi_named(phi))[0], 1e-7)
    assert gradient == pytest.approx(finite, abs=2e-6)
    assert AllPairs.of(y).loss(h, phi_named(phi))[0] == pytest.approx(plain(X, y, h, phi, None, 2))


@pytest.mark.parametrize("phi", PHIS)
def test_bipartite_form_of_the_surrogate(points, phi):
    """Φ((y − y')(h(x) − h(x'))/2) over pairs of one positive and one negative, y in {−1, +1}."""
    _, y, h = points
    sign = np.where(y > 1, 1, -1)
    terms = [
        PHI[phi]((sign[i] - sign[j]) * (h[i] - h[j]) / 2)
        for i, j in itertools.permutations(range(25), 2)
        if sign[i] != sign[j]
    ]
    assert AllPairs.of(sign).loss(h, phi_named(phi))[0] == pytest.approx(np.mean(terms))


@pytest.mark.parametrize("phi", PHIS)
def test_list_of_pairs(points, phi):
    _, _, h = points
    rng = np.random.default_rng(1)
    up, down, weight = rng.integers(0, 25, 40), rng.integers(0, 25, 40), rng.uniform(0, 2, 40)
    k = 0.7
    function = (lambda t: 1 - math.tanh(k * t)) if phi == "sigmoid" else PHI[phi]
    value, gradient = pairs_loss(h, up, down, phi=phi, k=k, weight=weight)
    expected = [w * function(h[i] - h[j]) for i, j, w in zip(up, down, weight, strict=True)]
    assert value == pytest.approx(sum(expected) / weight.sum())
    smooth = h + rng.uniform(0, 1e-3, 25)
    gradient = pairs_loss(smooth, up, down, phi=phi, k=k, weight=weight)[1]
    finite = approx_fprime(smooth, lambda s: pairs_loss(s, up, down, phi=phi, k=k, weight=weight)[0], 1e-7)
    assert gradient == pytest.approx(finite, abs=2e-6)


@pytest.mark.parametrize("mu", [0.5, 0.01, 1e-5])
def test_rounded_hinge(points, mu):
    """Between the hinge and the hinge less μ/2, its gradient that of finite differences; sorted and listed alike."""
    X, y, h = points
    pairs = AllPairs.of(y, X, gamma=0.4)
    higher, lower = np.nonzero(y[:, None] > y)
    far = np.abs(X[higher] - X[lower]).max(1) > 0.4
    listed = ListedPairs.of(25, higher[far], lower[far], total=float(len(higher)))
    hinge = phi_named("hinge")
    value, gradient = pairs.loss(h, hinge, mu)
    assert value == pytest.approx(listed.loss(h, hinge, mu)[0], abs=1e-10)
    assert gradient == pytest.approx(listed.loss(h, hinge, mu)[1], abs=1e-9)
    assert pairs.loss(h, hinge)[0] - mu / 2 <= value + 1e-9 <= pairs.loss(h, hinge)[0] + 2e-9
    if mu > 0.1:
        assert gradient == pytest.approx(approx_fprime(h, lambda s: pairs.loss(s, hinge, mu)[0], 1e-7), abs=1e-5)


@pytest.mark.parametrize("q", [1, 2, math.inf])
def test_projection_is_the_nearest_point(q):
    rng = np.random.default_rng(3)
    for size in (1, 2, 5):
        for scale in (0.1, 1.0, 30.0):
            v = rng.normal(size=size) * scale
            if scale == 1.0:
                v = v.round(1)  # ties and zeros
            found = project(v, 0.8, q)
            assert np.linalg.norm(found, q) <= 0.8 * (1 + 1e-12)
            # the nearest point of a convex set: no point of it lies ahead, (v − P)·(u − P) ≤ 0, worst over the ball
            dual = {1: math.inf, 2: 2, math.inf: 1}[q]
            assert 0.8 * np.linalg.norm(v - found, dual) - (v - found) @ found <= 1e-12 * max(1, scale**2)
    assert project(np.zeros(3), 30.0, q).tolist() == [0.0, 0.0, 0.0] and project([5e-324], 30.0, q).tolist() == [5e-324]
    rows = rng.normal(size=(6, 4))
    assert (project(rows, 0.8, q) == np.array([project(row, 0.8, q) for row in rows])).all()


def exact(X, y, phi, W, norm, gamma):
    """The same problem by other means: hinge as a linear programme (HiGHS) where the ball allows, SLSQP else."""
    d = X.shape[1]
    p, q = NORMS[norm], DUAL[norm]
    higher, lower = np.nonzero(y[:, None] > y)
    Z = X[higher] - X[lower]
    total = len(Z)
    Z = Z[np.linalg.norm(Z, p, axis=1) > gamma]
    m = len(Z)
    if phi == "hinge" and q != 2:  # w = a − b with a, b ≥ 0; slacks for the pairs
        cost = np.concatenate((np.zeros(2 * d), np.full(m, 1 / total)))
        A = np.hstack((-Z, Z, -np.eye(m)))
        b = -np.ones(m)
        if q == 1:
            A, b = np.vstack((A, np.concatenate((np.ones(2 * d), np.zeros(m))))), np.append(b, W)
        bounds = [(0, W)] * (2 * d) + [(0, None)] * m
        return linprog(cost, A, b, bounds=bounds).fun
    if phi == "hinge":
        cost = np.concatenate((np.zeros(d), np.full(m, 1 / total)))
        found = minimize(
            lambda v: cost @ v,
            np.concatenate((np.zeros(d), np.ones(m))),
            jac=lambda _: cost,
            method="SLSQP",
            bounds=[(None, None)] * d + [(0, None)] * m,
            constraints=[
                LinearConstraint(np.hstack((Z, np.eye(m))), 1.0),
                {"type": "ineq", "fun": lambda v: W**2 - v[:d] @ v[:d]},
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        return found.fun

    def loss(w):
        return np.exp(-Z @ w).sum() / total

    if q == 1:
        found = minimize(
            lambda v: loss(v[:d] - v[d:]),
            np.full(2 * d, 1e-3),
            method="SLSQP",
            bounds=[(0, W)] * (2 * d),
            constraints=[LinearConstraint(np.ones(2 * d), ub=W)],
            options={"maxiter": 500, "ftol": 1e-14},
        )
    else:
        ball = [] if q == np.inf else [{"type": "ineq", "fun": lambda w: W**2 - w @ w}]
        found = minimize(
            loss,
            np.full(d, 1e-3),
            method="SLSQP",
            bounds=[(-W, W)] * d,
            constraints=ball,
            options={"maxiter": 500, "ftol": 1e-14},
        )
    return found.fun


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("phi", ["hinge", "exponential"])
def test_solver_against_scipy(phi, norm):
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (14, 3))
    y = np.digitize(X @ [1.0, -0.7, 0.1] + rng.normal(size=14) / 2, [-0.4, 0.4])
    for W, gamma in itertools.product((0.3, 2.0), (0.0, 0.4)):
        pairs = AllPairs.of(y, X, gamma=gamma, norm=norm)
        found = minimise_linear(X, pairs, phi=phi, W=W, norm=norm)
        expected = exact(X, y, phi, W, norm, gamma)
        assert found.status == Status.CONVERGED.word
        assert np.linalg.norm(found.w, DUAL[norm]) <= W * (1 + 1e-12)
        assert found.value == pytest.approx(pairs.loss(found(X), phi_named(phi))[0])
        assert found.lower - 1e-7 <= expected <= found.value + 1e-7
        assert found.value - found.lower <= 1e-5


def test_solver_on_the_sigmoid_ends_in_a_local_minimum():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (20, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=20) > 0).astype(int)
    pairs = AllPairs.of(y)
    found = minimise_linear(X, pairs, phi="sigmoid", W=2.0, norm=2)
    assert (found.status, found.lower) == (Status.LOCAL.word, -math.inf)
    for step in rng.normal(size=(200, 2)) * 0.05:
        near = project(found.w + step, 2.0, 2)
        assert pairs.loss(X @ near, phi_named("sigmoid"))[0] >= found.value - 1e-9


def test_solver_is_deterministic_and_says_when_it_stops_early():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 5)) * [1, 1, 1, 10, 0.1]
    y = rng.integers(0, 3, 60)
    pairs = AllPairs.of(y, X, gamma=0.1)
    one, two = (minimise_linear(X, pairs, phi="exponential", W=3.0) for _ in range(2))
    assert (one.w == two.w).all()
    early = minimise_linear(X, pairs, phi="exponential", W=3.0, steps=1, tolerance=1e-12)
    assert early.status == Status.STOPPED.word
    assert early.lower <= one.value <= early.value


def test_separable_labels_go_to_the_edge():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    found = minimise_linear(X, AllPairs.of([0, 1, 2]), phi="exponential", W=1.5, norm=2)
    assert found.w == pytest.approx([1.5, 0.0], abs=1e-6)


def test_bad_input_is_named(points):
    X, y, h = points
    for wrong, said in [
        ({"phi": "hing"}, "did you mean 'hinge'"),
        ({"W": -1.0}, "W must"),
        ({"W": math.inf}, "W must"),
        ({"norm": 3}, "norm must be one of 1, 2, inf, not 3"),
        ({"norm": "two"}, "not 'two'"),
        ({"steps": 0}, "steps"),
    ]:
        with pytest.raises(UsageError, match=said):
            minimise_linear(X, AllPairs.of(y), **{"phi": "hinge", "W": 1.0, **wrong})
    with pytest.raises(UsageError, match="gamma"):
        AllPairs.of(y, X, gamma=-0.1)
    with pytest.raises(UsageError, match="one row for each"):
        AllPairs.of(y, X[1:])
    with pytest.raises(InputError, match="1 of 25 rows"):
        AllPairs.of(y, np.where(np.arange(25)[:, None] == 3, math.nan, X))
    with pytest.raises(InputError, match="equal"):
        AllPairs.of(np.ones(25))
    with pytest.raises(UsageError, match="places must lie"):
        pairs_loss(h, [25], [0], phi="hinge")
    with pytest.raises(UsageError, match="integers"):
        pairs_loss(h, [0.5], [0], phi="hinge")
    with pytest.raises(UsageError, match="weights"):
        pairs_loss(h, [1], [0], phi="hinge", weight=[0.0])
    with pytest.raises(InputError, match="not finite"):
        pairs_loss([math.nan, 0.0], [1], [0], phi="hinge")
    with pytest.raises(UsageError, match="balls"):
        project([1.0], 1.0, 3)
    with pytest.raises(ConcordantError, match="not finite"):
        minimise_linear(np.array([[0.0], [1e308]]) * [1.0], AllPairs.of([1, 0]), phi="exponential", W=1e9)


def test_too_many_near_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(surrogates, "NEAR_MOST", 10)
    with pytest.raises(UsageError, match="near pairs"):
        AllPairs.of(np.arange(10), np.zeros((10, 1)), gamma=1.0)
