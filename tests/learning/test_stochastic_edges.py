"""Composite stochastic gradients (25) of every surrogate: their limit by the exact solver and by enumeration, the ball
by a general constrained minimiser, the rate, what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

import concordant as cc
from concordant.errors import Idle, UsageError
from concordant.learning.solvers.edge_problem import EdgeProblem
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.sampled_edges import EdgeSamples
from concordant.learning.solvers.stochastic import projected, stochastic_fit
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import SURROGATES, surrogate
from concordant.preferences.graphs import Batch
from concordant.ranking.structures import structure
from seeds import seed

RIDGE = 0.1


def votes(each=(7, 4, 9)):
    """A few comparisons in three queries of four items, some of them ties; every item is judged."""
    rng = np.random.default_rng(seed(0))
    rows = [(q, *pair) for q, n in enumerate(each) for pair in [(0, 1), (2, 3), *drawn(rng, n - 2)]]
    query, winner, loser = np.array(rows).T
    return cc.Preferences.from_comparisons(winner, loser, query=query, tie=np.arange(len(rows)) % 6 == 5)


def drawn(rng, number):
    return [tuple(rng.choice(4, 2, replace=False)) for _ in range(number)]


def features(prefs, width=3):
    return np.random.default_rng(seed(1)).normal(size=(int(prefs.members[0][-1]), width))


def makes(member, k_structure="log-odds"):
    """What makes the surrogate of a batch."""
    if member.reads != "scores":
        return member.objective
    name = "budgeted-borda" if member.consistent_for == "err" else k_structure
    return lambda batch: member.objective(Relevance.of(structure(name)(batch).value, batch.node_start))


def every_subset(prefs, k):
    """All k-subsets of the judgments of each query as graphs, and their weights in (19)."""
    query, start, judgment, weight = [], [0], [], []
    for q in range(len(prefs.queries)):
        held = slice(prefs.start[q], prefs.start[q + 1])
        cards = np.repeat(np.arange(held.start, held.stop), prefs.count[held])
        subsets = list(itertools.combinations(cards, min(k, len(cards))))
        for subset in subsets:
            query.append(q)
            judgment += sorted(subset)
            start.append(len(judgment))
        weight += [prefs.judgments[q] / len(prefs) / len(subsets)] * len(subsets)
    ones = np.ones(len(judgment), np.int64)
    return Batch(prefs, np.array(query, np.int32), np.array(start), np.array(judgment), ones), np.array(weight)


def enumerated(prefs, member, k):
    batch, weight = every_subset(prefs, k)
    begin = prefs.member_groups.start[batch.query]
    rows = begin[batch.owner] + np.arange(batch.node_start[-1]) - batch.node_start[batch.owner]
    return makes(member)(batch), rows, weight


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", [name for name, member in SURROGATES.items() if member.reads != "judgments"])
def test_it_tends_to_the_minimiser_over_all_subsets(name, k):
    prefs, member = votes(), surrogate(name)
    X = features(prefs)
    objective, rows, weight = enumerated(prefs, member, k)
    best = fit_edges(X, objective, ridge=RIDGE, rows=rows, weight=weight)
    samples = EdgeSamples.of_subsets(X, prefs, k, makes(member), prefs.judgments / len(prefs))
    problem = EdgeProblem.of(X, objective, RIDGE, rows, weight)
    start = problem.at(np.zeros(3))[0] - float(best.value)
    for step_size in ("1/t", "1/sqrt(t)"):
        fit = stochastic_fit(samples, ridge=RIDGE, steps=8_000, step_size=step_size, average="suffix", seed=1)
        assert problem.at(fit.theta)[0] - float(best.value) < 0.02 * start
        np.testing.assert_allclose(fit.theta, best.theta, atol=0.3 * np.abs(best.theta).max())


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", list(SURROGATES))
def test_the_gradient_of_samples_has_the_mean_of_all_subsets(name, k):
    """At a θ away from 0, against the gradient of the enumerated risk by differences of its value."""
    prefs, member = votes(), surrogate(name)
    X, theta = features(prefs), np.array([0.3, -0.5, 0.2])
    objective, rows, weight = enumerated(prefs, member, k)
    problem = EdgeProblem.of(X, objective, 0.0, rows, weight)
    steps = np.eye(3) * 1e-5
    slope = [(problem.at(theta + h)[0] - problem.at(theta - h)[0]) / 2e-5 for h in steps]
    share = prefs.judgments / len(prefs)
    if member.reads == "judgments":
        samples = EdgeSamples.of_judgments(X, prefs, member.objective, share, radius=1.0)
    else:
        samples = EdgeSamples.of_subsets(X, prefs, k, makes(member), share, radius=1.0)
    found = [samples.loss(theta, one) for one in samples.samples(3000, np.random.default_rng(seed(2)))]
    value, drawn = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    assert (np.abs(drawn.mean(axis=0) - slope) < 4.5 * drawn.std(axis=0) / np.sqrt(3000) + 1e-9).all()
    assert abs(value.mean() - problem.at(theta)[0]) < 4.5 * value.std() / np.sqrt(3000) + 1e-9


def at_zero(name, prefs):
    share = prefs.judgments / len(prefs)
    return float(share @ makes(surrogate(name))(Batch.whole(prefs)).value(np.zeros(12)))


@pytest.mark.parametrize("name", list(SURROGATES))
def test_a_ranker_finds_what_the_exact_solver_finds(name):
    prefs = votes()
    X = features(prefs)
    table = (X, np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    own = {"radius": 2.0} if name == "rankboost" else {}
    exact = cc.EdgeRanker(name, ridge=RIDGE).fit(table, prefs)
    assert np.linalg.norm(exact.coef_standardised_) < 2.0
    found = cc.EdgeRanker(name, ridge=RIDGE, solver="stochastic", steps=12_000, step_size="1/t", **own)
    found.fit(table, prefs)
    reach = np.abs(exact.coef_standardised_).max()
    np.testing.assert_allclose(found.coef_standardised_, exact.coef_standardised_, atol=0.3 * reach)
    least, start = exact.status_["objective"], at_zero(name, prefs)
    assert least - 1e-9 <= found.status_["objective"] <= least + 0.02 * (start - least)
    told = found.status_
    assert told["iterations"] == 12_000 and told["status"] == "stopped after 12,000 stochastic steps"
    assert told["gradient"] < 0.2 and told["last_step"] < 0.01 and np.isfinite(told["objective"])
    assert told["consistent_for"] == exact.status_["consistent_for"]


@pytest.mark.parametrize("name", ["ranknet", "ranksvm", "difference-graph", "linear", "ndcg-pairwise", "rankboost"])
def test_the_ball_is_honoured(name):
    """Against SLSQP under ‖θ‖² ≤ r², and by its conditions: the gradient is a multiple −μθ, μ ≥ 0, on the boundary."""
    prefs, member, radius = votes(), surrogate(name), 0.04 if name == "linear" else 0.1
    X = features(prefs)
    batch = Batch.whole(prefs)
    share = prefs.judgments / len(prefs)
    objective = makes(member)(batch)
    problem = EdgeProblem.of(X, objective, 0.01, None, share)
    limit = {"type": "ineq", "fun": lambda t: radius**2 - t @ t}
    best = minimize(
        lambda t: problem.at(t)[0], np.full(3, 0.01), constraints=[limit], method="SLSQP", options={"ftol": 1e-14}
    )
    assert np.linalg.norm(best.x) == pytest.approx(radius, rel=1e-6)  # the ball binds
    if member.reads == "judgments":
        samples = EdgeSamples.of_judgments(X, prefs, member.objective, share, radius=radius)
    else:
        samples = EdgeSamples.of_graphs(X, objective, share, radius=radius)
    points = list(range(100, 6001, 100))
    fit = stochastic_fit(samples, ridge=0.01, steps=6000, average="suffix", radius=radius, seed=1, checkpoints=points)
    assert (np.linalg.norm(fit.trace.current, axis=1) <= radius * (1 + 1e-12)).all()
    fall = problem.at(np.zeros(3))[0] - best.fun
    assert best.fun - 1e-9 <= problem.at(fit.theta)[0] <= best.fun + 0.05 * fall
    np.testing.assert_allclose(fit.theta, best.x, atol=0.25 * radius)
    slope = problem.at(best.x)[1]
    if member.smooth():
        np.testing.assert_allclose(projected(best.x - slope, radius), best.x, atol=1e-4)


def test_the_gap_falls_as_one_over_t():
    """A strongly convex risk under steps 1/t: sixteen times the steps, a sixteenth of the gap, in the mean of runs."""
    prefs, member = votes(), surrogate("ndcg-pairwise")
    X = features(prefs)
    objective, rows, weight = enumerated(prefs, member, 3)
    problem = EdgeProblem.of(X, objective, 0.5, rows, weight)
    best = float(fit_edges(X, objective, ridge=0.5, rows=rows, weight=weight).value)
    samples = EdgeSamples.of_subsets(X, prefs, 3, makes(member), prefs.judgments / len(prefs))
    gaps = np.array(
        [
            [
                problem.at(theta)[0] - best
                for theta in stochastic_fit(
                    samples, ridge=0.5, steps=19200, step_size="1/t", seed=run, checkpoints=[1200, 4800, 19200]
                ).trace.current
            ]
            for run in range(4)
        ]
    ).mean(axis=0)
    slope = np.polyfit(np.log([1200, 4800, 19200]), np.log(gaps), 1)[0]
    assert -1.45 < slope < -0.7


def test_it_is_the_same_for_the_same_seed():
    prefs = votes()
    table = (features(prefs), np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    one, again, other = (
        cc.EdgeRanker("err-pairwise", order=2, solver="stochastic", steps=300, seed=s).fit(table, prefs).coef_
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize("name", ["ndcg-pairwise", "difference-graph"])
def test_labels_are_learned_from(name):
    """One graph a query, each as likely."""
    X = features(votes())
    labels = np.array([0, 1, 2, 3, 1, 0, 3, 1, 2, 2, 0, 1.0])
    table = (X, np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    exact = cc.EdgeRanker(name, ridge=RIDGE).fit(table, labels).coef_
    found = cc.EdgeRanker(name, ridge=RIDGE, solver="stochastic", steps=8_000, step_size="1/t").fit(table, labels)
    np.testing.assert_allclose(found.coef_, exact, atol=0.1 * np.abs(exact).max())


def test_what_does_not_fit_is_refused():
    prefs = votes()
    table = (features(prefs), np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    for options, error, says in (
        ({"solver": "sgd"}, UsageError, "unknown solver"),
        ({"radius": 1.0}, Idle, "radius does nothing here: the solver is 'exact'"),
        ({"solver": "stochastic", "tolerance": 1e-3}, Idle, "tolerance does nothing here"),
        ({"solver": "stochastic", "loss": "rankboost"}, UsageError, "exponential function has gradients.*radius"),
        ({"solver": "stochastic", "step_size": "1/t", "ridge": 0.0}, UsageError, "strong convexity"),
        ({"solver": "stochastic", "radius": -1.0}, UsageError, "radius must be"),
        ({"solver": "stochastic", "step_size": "t"}, UsageError, "unknown step_size"),
        (
            {"solver": "stochastic", "loss": "err-pairwise", "order": 2, "options": {"gain": "err"}},
            UsageError,
            "largest score",
        ),
    ):
        with pytest.raises(error, match=says):
            cc.EdgeRanker(**options).fit(table, prefs)
