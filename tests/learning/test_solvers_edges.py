"""Linear scorers on edge surrogates: general optimisers, closed forms, minimisers over scores, and the papers agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from test_least_squares import ndcg_risk, simulated_comparisons

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import align
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_judged
from concordant.learning.solvers import edge_problem, edges
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, Population, Relevance, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status

SMOOTH = ("logistic", "squared-hinge", "exponential")
seeds = st.integers(0, 10_000)
some = settings(max_examples=15)


def problem(seed, phi="logistic", *, width=4, pull=0.0, penalty="square", offsets=False, graphs=6):
    """X, an objective with edges both ways (so that minimisers exist), and a weight for each graph."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 7, graphs)
    size[0] = max(size[0], 2)
    start = np.concatenate(([0], np.cumsum(size)))
    ends = [
        rng.choice(size[graph], 2, replace=False) + start[graph]
        for graph in range(graphs)
        for _ in range(12)
        if size[graph] > 1
    ]
    winner, loser = np.array(ends).reshape(-1, 2).T
    weight = rng.random(len(winner))
    offset = rng.random(len(winner)) if offsets else None
    edges = WeightedEdges.of(start, winner, loser, weight, offset=offset, pull=pull)
    objective = Objective(edges, pair_loss(phi), value_penalty(penalty))
    return rng.normal(size=(start[-1], width)), objective, rng.uniform(0.1, 1, graphs)


def risk_of(X, objective, weight, ridge):
    def risk(theta):
        return float(weight @ objective.value(X @ theta) + ridge / 2 * theta @ theta)

    return risk


# -- against other ways ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pull", [0.0, 0.3])
@pytest.mark.parametrize("phi", [*SMOOTH, "linear"])
@given(seed=seeds, penalty=st.sampled_from(["square", "cosh"]), ridge=st.sampled_from([0.01, 0.5, 20.0]))
@some
def test_a_general_optimiser_finds_the_same(phi, pull, seed, penalty, ridge):
    X, objective, weight = problem(seed, phi, pull=pull, penalty=penalty, offsets=True)
    fit = fit_edges(X, objective, ridge=ridge, weight=weight)
    risk = risk_of(X, objective, weight, ridge)
    other = minimize(risk, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    assert fit.converged and fit.ridge == ridge
    assert fit.status == ("closed form" if phi == "linear" and (penalty == "square" or not pull) else "converged")
    assert fit.value == pytest.approx(risk(fit.theta), rel=1e-12)
    assert fit.value <= other.fun + 1e-9
    np.testing.assert_allclose(fit.theta, other.x, atol=2e-4 * (1 + np.abs(other.x).max()))
    step = 1e-6 * np.eye(4)
    slope = [(risk(fit.theta + move) - risk(fit.theta - move)) / 2e-6 for move in step]
    np.testing.assert_allclose(slope, 0, atol=1e-5)
    assert fit.gradient < 1e-6


@given(seed=seeds, nu=st.sampled_from([0.1, 2.0]), ridge=st.sampled_from([0.0, 0.7]))
@some
def test_the_closed_form_of_the_linear_loss(seed, nu, ridge):
    """w = ½ (ν XᵀX + λ_ICML I)⁻¹ Σ a_ij (x_i − x_j) (ICML (14), (15)); its λ‖w‖² is our (λ/2)‖w‖² with λ = 2 λ_ICML."""
    X, objective, _ = problem(seed, "linear", pull=nu)
    edges = objective.edges
    moment = ((X[edges.winner] - X[edges.loser]) * edges.weight[:, None]).sum(axis=0)
    w = 0.5 * np.linalg.solve(nu * X.T @ X + 0.5 * ridge * np.eye(4), moment)
    np.testing.assert_allclose(fit_edges(X, objective, ridge=ridge).theta, w, rtol=1e-9, atol=1e-12)


def test_gain_regression_is_the_normal_equations():
    rng = np.random.default_rng(0)
    start = np.array([0, 3, 7, 9])
    X, law = rng.normal(size=(9, 3)), Relevance.of(rng.normal(size=(2, 9)), start)
    objective = surrogate("gain-regression").objective(law)
    share = np.array([0.5, 0.2, 0.3])
    fit = fit_edges(X, objective, ridge=0.1, weight=share)
    by_equations = NormalEquations.of(X, objective.edges.pulled_to, start, share / np.diff(start), intercept="none")
    np.testing.assert_allclose(fit.theta, by_equations.solve(0.1).theta, rtol=1e-10)
    assert fit.status == "closed form" and fit.iterations == 0


@pytest.mark.parametrize("phi", SMOOTH)
@given(seed=seeds)
@example(seed=823)
@some
def test_with_identity_features_it_is_the_minimiser_over_scores(phi, seed):
    _, objective, _ = problem(seed, phi)
    found = minimise(objective)
    each = [fit_edges(np.eye(objective.nodes), objective, ridge=ridge) for ridge in (0.0, 1e-9)]
    for fit in each:
        assert fit.converged or (found.status == Status.NOT_ATTAINED).any()
        np.testing.assert_allclose(objective.value(fit.theta), found.value, rtol=1e-6, atol=1e-6)
    settled = (found.status == Status.ATTAINED)[objective.owner]
    wholes, component = found.component.max(initial=-1) + 1, found.component
    theta = each[0].theta
    theta = theta - (np.bincount(component, theta, wholes) / np.bincount(component, minlength=wholes))[component]
    np.testing.assert_allclose(theta[settled], found.alpha[settled], atol=1e-6)


# -- what is not determined, not attained, not bounded ----------------------------------------------------------------
@pytest.mark.parametrize("phi", SMOOTH)
def test_separable_data_have_no_minimiser_without_ridge(phi):
    edges = WeightedEdges.of(np.array([0, 3]), np.array([0, 1, 0]), np.array([1, 2, 2]), np.ones(3))
    objective = Objective(edges, pair_loss(phi), value_penalty("square"))
    X = np.array([[2.0, 0.3], [1.0, 0.1], [0.0, 0.7]])
    fit = fit_edges(X, objective, ridge=0.0)
    assert (np.diff(X @ fit.theta) < 0).all() and np.isfinite(fit.theta).all()
    assert fit.value <= 1e-9
    assert fit.converged == (phi == "squared-hinge")  # it reaches 0, the others only tend to it
    assert phi == "squared-hinge" or fit.status == "infimum not attained"
    small = fit_edges(X, objective, ridge=1e-8)
    assert small.status == "converged"
    other = minimize(risk_of(X, objective, np.ones(1), 1e-8), small.theta * 0.9, method="Nelder-Mead")
    assert small.value <= other.fun + 1e-12


@pytest.mark.parametrize("phi", ["logistic", "exponential"])
def test_partly_separable_data(phi):
    """1 and 2 beat each other, 3 always loses: the infimum is that of the pair alone."""
    edges = WeightedEdges.of(np.array([0, 3]), np.array([0, 1, 0]), np.array([1, 0, 2]), np.array([0.7, 0.3, 1.0]))
    objective = Objective(edges, pair_loss(phi), value_penalty("square"))
    fit = fit_edges(np.eye(3), objective, ridge=0.0)
    assert fit.status.startswith("infimum not attained")
    scale = 0.5 if phi == "exponential" else 1.0
    assert fit.theta[0] - fit.theta[1] == pytest.approx(scale * np.log(7 / 3), abs=1e-6)
    assert fit.value == pytest.approx(minimise(objective).value[0], abs=1e-8)
    # nearly separable is not separable: a rare win of 3, the minimiser is far away and found
    edges = WeightedEdges.of(np.array([0, 2]), np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1e-6]))
    objective = Objective(edges, pair_loss(phi), value_penalty("square"))
    fit = fit_edges(np.array([[1.0], [0.0]]), objective, ridge=0.0)
    assert fit.status == "converged" and fit.theta[0] == pytest.approx(scale * np.log(1e6), rel=1e-6)


def test_items_without_edges_take_no_part():
    """Their columns of the identity are constant on every component; rounding must not make curvature of them."""
    edges = WeightedEdges.of(
        np.array([0, 7]), np.array([0, 3, 0, 6, 2]), np.array([3, 0, 6, 0, 6]), np.array([1, 2, 3, 1, 0.1])
    )
    for phi in SMOOTH:
        objective = Objective(edges, pair_loss(phi), value_penalty("square"))
        fit = fit_edges(np.eye(7), objective, ridge=0.0)
        assert fit.undetermined == 4 and np.abs(fit.theta[[1, 4, 5]]).max() < 1e-12
        assert fit.value == pytest.approx(minimise(objective).value[0], abs=1e-7)


def test_directions_that_no_edge_sees():
    X, objective, weight = problem(1)
    owner = objective.owner
    constant = 1e3 * np.random.default_rng(0).random(owner.max() + 1)[owner]  # rounding must not make a feature of it
    wide = np.column_stack([X, constant, X[:, 0]])  # constant in every graph; twice the same
    plain, fit = (fit_edges(x, objective, ridge=0.0, weight=weight) for x in (X, wide))
    assert plain.undetermined == 0 and fit.undetermined == 2
    assert fit.status == "converged, undetermined directions set to 0"
    assert fit.theta[4] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(fit.theta[0], fit.theta[5], rtol=1e-6)
    np.testing.assert_allclose(fit.theta[0] + fit.theta[5], plain.theta[0], rtol=1e-6)
    shifted = fit_edges(X + 1e4 * owner[:, None], objective, ridge=0.0, weight=weight)
    np.testing.assert_allclose(shifted.theta, plain.theta, rtol=1e-6)
    scaled = fit_edges(X * [1e6, 1e-6, 1.0, 1.0], objective, ridge=0.0, weight=weight)
    np.testing.assert_allclose(scaled.theta * [1e6, 1e-6, 1.0, 1.0], plain.theta, rtol=1e-6)


def test_the_linear_loss_needs_something_to_hold_it():
    X, objective, _ = problem(2, "linear")
    with pytest.raises(UsageError, match="no lower bound"):
        fit_edges(X, objective, ridge=0.0)
    assert fit_edges(X, objective, ridge=0.1).status == "closed form"


def test_an_early_stop_is_said():
    X, objective, weight = problem(3, "exponential")
    fit = fit_edges(X, objective, ridge=0.01, weight=weight, max_iterations=1)
    assert fit.status == "stopped before convergence" and fit.iterations == 1 and not fit.converged


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_the_line_search_survives_steep_exponentials(scale):
    """Features so large that a plain Newton step would overflow."""
    X, objective, weight = problem(4, "exponential", offsets=True)
    fit = fit_edges(X * scale, objective, ridge=1e-3, weight=weight)
    assert fit.status == "converged"
    start = minimize(
        risk_of(X * scale, objective, weight, 1e-3), fit.theta + 1e-3 / scale, method="BFGS", options={"gtol": 1e-7}
    )
    assert fit.value <= start.fun + 1e-10


# -- shapes, precision, blocks ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", SMOOTH)
@pytest.mark.parametrize("pull", [0.0, 0.2])
def test_rows_precision_and_blocks_change_nothing(phi, pull, monkeypatch):
    X, objective, weight = problem(5, phi, pull=pull)
    plain = fit_edges(X, objective, ridge=0.01, weight=weight).theta
    shuffle = np.random.default_rng(0).permutation(len(X))
    X32 = X[shuffle].astype(np.float32)
    mixed = fit_edges(X32, objective, ridge=0.01, weight=weight, rows=np.argsort(shuffle))
    assert mixed.theta.dtype == np.float64
    np.testing.assert_allclose(mixed.theta, plain, rtol=1e-5)
    exact = fit_edges(X32[np.argsort(shuffle)].astype(float), objective, ridge=0.01, weight=weight)
    np.testing.assert_allclose(mixed.theta, exact.theta, rtol=1e-9)  # single precision is read, not computed with
    for block, large in ((4 * 3, 16), (4 * 3, 0), (1 << 19, 0)):
        monkeypatch.setattr(edge_problem, "BLOCK", block)
        monkeypatch.setattr(edge_problem, "LARGE", large)
        np.testing.assert_allclose(fit_edges(X, objective, ridge=0.01, weight=weight).theta, plain, rtol=1e-9)
    monkeypatch.setattr(edges, "WIDE", 2)  # conjugate gradients
    fit = fit_edges(X, objective, ridge=0.01, weight=weight)
    assert fit.status == "converged"
    np.testing.assert_allclose(fit.theta, plain, rtol=1e-6)


def test_graphs_that_share_their_rows():
    """Subsets of one query stand in the same rows of X; repeated rows written out give the same."""
    rng = np.random.default_rng(1)
    votes = Preferences.from_comparisons(
        rng.integers(0, 3, 60), rng.integers(3, 6, 60), query=rng.integers(0, 4, 60)
    ) + Preferences.from_comparisons(rng.integers(3, 6, 40), rng.integers(0, 3, 40), query=rng.integers(0, 4, 40))
    batch = Batch.subsets(votes, 8, 5, seed=1)
    objective = surrogate("difference-graph").objective(batch)
    table = rng.normal(size=(4 * 6, 3))
    rows = rng.permutation(24)[batch.query[batch.owner] * 6 + batch.item]
    shared = fit_edges(table, objective, ridge=0.1, rows=rows)
    apart = fit_edges(table[rows], objective, ridge=0.1)
    np.testing.assert_allclose(shared.theta, apart.theta, rtol=1e-8)
    assert shared.value == pytest.approx(apart.value, rel=1e-12)


def test_weights_of_graphs_are_repetition():
    X, objective, _ = problem(6)
    weight = np.array([2.0, 1, 1, 1, 1, 0])
    edges, owner = objective.edges, objective.owner
    times = weight[owner[edges.winner]].astype(int)
    again = WeightedEdges.of(
        edges.node_start, *(np.repeat(c, times) for c in (edges.winner, edges.loser, edges.weight))
    )
    repeated = Objective(again, objective.phi, objective.penalty)
    np.testing.assert_allclose(
        fit_edges(X, objective, ridge=0.1, weight=weight).theta, fit_edges(X, repeated, ridge=0.1).theta, rtol=1e-9
    )


def test_nothing_to_learn_from():
    edges = WeightedEdges.of(np.array([0, 2]), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for phi in (*SMOOTH, "hinge"):
        objective = Objective(edges, pair_loss(phi), value_penalty("square"))
        for ridge in (0.0, 1.0):
            fit = fit_edges(np.ones((2, 3)), objective, ridge=ridge)
            assert fit.theta.tolist() == [0, 0, 0] and fit.converged


def test_shapes_and_options_are_checked():
    X, objective, weight = problem(7)
    for arguments, says in (
        ({"X": X[1:]}, "items but"),
        ({"X": X[:, 0]}, "must be a matrix"),
        ({"weight": weight[1:]}, "weights of shape"),
        ({"weight": -weight}, "at least 0"),
        ({"rows": np.full(len(X), len(X))}, "rows must lie between"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"ridge": np.nan}, "ridge must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
    ):
        options = {"X": X, "objective": objective, "ridge": 0.1} | arguments
        with pytest.raises(UsageError, match=says):
            fit_edges(options.pop("X"), options.pop("objective"), **options)
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="1 of"):
        fit_edges(X, objective, ridge=0.1)


# -- real data --------------------------------------------------------------------------------------------------------
def test_pairwise_logistic_on_mslr(shared_data):
    """640 comparisons a query by BTL: the NDCG risk on the limit scores is .163 (method, §4)."""
    features, relevance = read_judged(shared_data("mslr/mslr_merged_by_query.svm.gz"))
    long = np.bincount(features.query)[features.query] >= 20
    features, relevance = features.take(long), relevance[long]
    prefs = simulated_comparisons(features, relevance, 640, seed=0)
    X = Normaliser(log=True).fit(features).apply(features.X)
    objective = surrogate("ranknet").objective(Batch.whole(prefs))
    fit = fit_edges(X, objective, ridge=1e-4, rows=align(features, prefs).row, weight=prefs.judgments / len(prefs))
    assert fit.status == "converged" and fit.iterations < 12
    assert ndcg_risk(X @ fit.theta, features, relevance) == pytest.approx(0.163, abs=0.005)
    # some features are constant in every query: without ridge they stay out
    free = fit_edges(X, objective, ridge=0.0, rows=align(features, prefs).row, weight=prefs.judgments / len(prefs))
    assert free.status == "converged, undetermined directions set to 0" and free.undetermined > 0
    assert fit.value - 1e-3 < free.value < fit.value


# -- the papers -------------------------------------------------------------------------------------------------------
THEOREM_3 = Population(
    np.array([0, 3]), np.array([0, 1, 0, 2]), np.array([1, 2, 2, 0]), np.ones(4), np.array([0.25, 0.01, 0.5, 0.24])
)
"""AoS, proof of Theorem 3: the right order is 1 > 2 > 3 (method, §6)."""


def scores_on_theorem_3(name, phi, ridge=0.0):
    theta = fit_edges(np.eye(3), surrogate(name).objective(THEOREM_3, phi=phi), ridge=ridge).theta
    return theta - theta.mean()


@pytest.mark.parametrize(
    ("name", "phi", "published"),
    [
        ("ranknet", "logistic", (1.35127846, -1.91113642, 0.55985796)),
        ("rankboost", "exponential", (0.74912717, -1.07295861, 0.32383144)),
        ("ranksvm", "squared-hinge", (0.43663417, -0.50076963, 0.06413545)),
        ("ranksvm", "hinge", (2 / 3, -1 / 3, -1 / 3)),
    ],
)
def test_inconsistent_surrogates_fail_on_theorem_3(name, phi, published):
    found = scores_on_theorem_3(name, phi)
    np.testing.assert_allclose(found, published, atol=1e-6)
    assert found[1] <= found[2] + 1e-6


@pytest.mark.parametrize(
    ("name", "phi"),
    [("difference-graph", phi) for phi in ("logistic", "exponential", "squared-hinge", "hinge")] + [("linear", None)],
)
def test_consistent_surrogates_order_theorem_3_rightly(name, phi):
    for ridge in (0.0, 1e-7):
        found = scores_on_theorem_3(name, phi, ridge)
        assert found[0] - 1e-3 > found[1] > found[2] + 1e-3
    if name == "linear":
        np.testing.assert_allclose(2 * scores_on_theorem_3(name, phi), [0.51, -0.24, -0.27], atol=1e-12)


def test_pairwise_logistic_is_maximum_likelihood_of_bradley_terry():
    """With weights n̂_q/n and item features, the fit is the pooled likelihood: checked against gradient zero."""
    rng = np.random.default_rng(3)
    X, theta = rng.normal(size=(30, 3)), np.array([1.0, -0.5, 0.2])
    query = rng.integers(0, 3, 4000)
    i, j = query * 10 + rng.integers(0, 10, 4000), query * 10 + rng.integers(0, 10, 4000)
    i, j, query = i[i != j], j[i != j], query[i != j]
    lost = rng.random(len(i)) > 1 / (1 + np.exp(-(X[i] - X[j]) @ theta))
    i, j = np.where(lost, j, i), np.where(lost, i, j)
    votes = Preferences.from_comparisons(i, j, query=query)
    batch = Batch.whole(votes)
    rows = np.asarray(votes.items.values)[batch.item]
    objective = surrogate("ranknet").objective(batch)
    fit = fit_edges(X, objective, ridge=0.0, rows=rows, weight=votes.judgments / len(votes))
    d = X[i] - X[j]
    np.testing.assert_allclose(d.T @ (1 / (1 + np.exp(d @ fit.theta))) / len(i), 0, atol=1e-9)
    np.testing.assert_allclose(fit.theta, theta, atol=0.15)
    assert fit.value == pytest.approx(np.log1p(np.exp(-d @ fit.theta)).mean(), rel=1e-12)
