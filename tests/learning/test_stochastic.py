"""The stochastic method (25): its update by hand, its samples by enumeration, its limit in closed form, its rates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import comb

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Alignment
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.solvers.sampled import Regression, SampledGains, chances
from concordant.learning.solvers.sampled_edges import EdgeSamples
from concordant.learning.solvers.stochastic import stochastic_fit as descend
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.closed_forms import average_log_odds

OF_GAINS = ("structure", "options", "order", "gain", "normalise", "at")


def stochastic_fit(X, rows, prefs, **options):
    """Gain regression."""
    gains = {name: options.pop(name) for name in OF_GAINS if name in options}
    return descend(Regression.of(X, rows, prefs, **gains), **options)


def logistic_fit(X, prefs, **options):
    share = prefs.judgments / len(prefs)
    return descend(EdgeSamples.of_judgments(X, prefs, surrogate("ranknet").objective, share), **options)


def small_votes(seed=0, each=(7, 4, 9)):
    """A few comparisons in three queries of four items; every item is judged."""
    rng = np.random.default_rng(seed)
    rows = []
    for query, number in enumerate(each):
        rows += [(query, 0, 1), (query, 2, 3)]
        rows += [(query, *rng.choice(4, 2, replace=False)) for _ in range(number - 2)]
    query, winner, loser = np.array(rows).T
    return Preferences.from_comparisons(winner, loser, query=query)


def features(seed=0, rows=12, width=3):
    return np.random.default_rng(seed).normal(size=(rows, width))


def gains_of(wins):
    """G(s)/Z(s) with G = 2^s − 1 and the average log-odds, c0 = 1/2, written out for one query of four items."""
    s = np.zeros(4)
    for i, j in itertools.permutations(range(4), 2):
        if wins[i, j] + wins[j, i]:
            s[i] += np.log((wins[i, j] + 0.5) / (wins[j, i] + 0.5)) / 3
    G = 2.0**s - 1
    Z = (np.sort(G)[::-1] / np.log2(np.arange(2, 6))).sum()
    return G / Z if Z > 1e-9 else np.zeros(4)


def enumerated(prefs, k):
    """ȳ_q over all k-subsets of the judgments, each judgment as often as it was made."""
    means = []
    for q in range(len(prefs.queries)):
        held = slice(prefs.start[q], prefs.start[q + 1])
        rows = np.repeat(np.arange(held.start, held.stop), prefs.count[held])
        subsets = list(itertools.combinations(rows, min(k, len(rows))))
        total = np.zeros(4)
        for subset in subsets:
            wins = np.zeros((4, 4))
            for row in subset:
                wins[prefs.winner[row], prefs.loser[row]] += 1
            total += gains_of(wins)
        assert len(subsets) == comb(len(rows), min(k, len(rows)))
        means.append(total / len(subsets))
    return np.concatenate(means)


def closed_form(X, prefs, k, ridge):
    """The minimiser of the U-statistic risk, its value function less the minimum."""
    y = enumerated(prefs, k)
    start = prefs.members[0].astype(np.int64)
    equations = NormalEquations.of(X, y, start, chances(prefs) / np.diff(start))
    fit = equations.solve(ridge)
    H = equations.gram + ridge * np.eye(X.shape[1])
    return fit.theta, lambda theta: 0.5 * (theta - fit.theta) @ H @ (theta - fit.theta)


# -- the update -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", ["1/t", "1/sqrt(t)"])
@pytest.mark.parametrize("average", ["plain", "suffix", "weighted", "none", True, False])
def test_the_update_by_hand(step, average):
    """One query with all its judgments leaves nothing to chance; the argmin of (25) is written out."""
    prefs, X, ridge = small_votes(each=(7,)), features(rows=4), 0.3
    y = enumerated(prefs, 99)
    c, t0, steps = 0.7, 2.0, 25
    x, y = X - X.mean(axis=0), y - y.mean()
    theta, seen, after = np.zeros(3), [], []
    for t in range(1, steps + 1):
        eta = c / (t + t0) if step == "1/t" else c / np.sqrt(t + t0)
        seen.append(theta)
        slope = x.T @ (x @ theta - y) / 4
        # ⟨f, g⟩ + (λ/2)‖f‖² + ‖f − θ‖²/(2η) has derivative g + λf + (f − θ)/η
        theta = np.linalg.solve((ridge + 1 / eta) * np.eye(3), theta / eta - slope)
        after.append(theta)
    seen = np.array(seen)

    def mean(n):
        return {
            "plain": seen[:n].mean(axis=0),
            "suffix": seen[n // 2 : n].mean(axis=0),
            "weighted": np.average(seen[:n], axis=0, weights=np.arange(1, n + 1)),
            "none": after[n - 1],
        }[{True: "plain", False: "none"}.get(average, average)]

    fit = stochastic_fit(
        X,
        None,
        prefs,
        ridge=ridge,
        steps=steps,
        step_size=step,
        scale=c,
        shift=t0,
        average=average,
        checkpoints=[4, 9, 25],
    )
    np.testing.assert_allclose(fit.last, after[-1], rtol=1e-12)
    np.testing.assert_allclose(fit.theta, mean(steps), rtol=1e-12)
    assert fit.trace.iteration.tolist() == [4, 9, 25]
    np.testing.assert_allclose(fit.trace.current, [after[3], after[8], after[24]], rtol=1e-12)
    np.testing.assert_allclose(fit.trace.average, [mean(4), mean(9), mean(25)], rtol=1e-12)
    loss = [((x @ f - y) ** 2).sum() / 8 for f in seen]
    np.testing.assert_allclose(fit.losses, loss, rtol=1e-12)
    assert fit.iterations == steps and fit.status == "stopped after 25 stochastic steps" and not fit.converged


def test_logistic_steps_by_hand():
    """One distinct comparison, made three times: every sample is the same."""
    prefs = Preferences.from_comparisons(["b"] * 3, ["a"] * 3)
    X = features(rows=2)
    d, theta = X[1] - X[0], np.zeros(3)
    for t in range(1, 11):
        eta = 0.5 / np.sqrt(t)
        theta = (theta + eta * d / (1 + np.exp(d @ theta))) / (1 + eta * 0.1)
    fit = logistic_fit(X, prefs, ridge=0.1, steps=10, scale=0.5, average=False)
    np.testing.assert_allclose(fit.theta, theta, rtol=1e-12)


# -- the samples ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 3, 6])
def test_samples_have_the_expectation_of_the_u_statistic(k):
    prefs = small_votes()
    gains = SampledGains(prefs, "log-odds", {}, k, "2^s-1", True, None)
    query = np.tile(np.arange(3), 4000)
    drawn = np.array(list(gains.draw(query, seed=5))).reshape(4000, 12)
    error = drawn.std(axis=0) / np.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - enumerated(prefs, k)) <= 4.5 * error + 1e-12).all()
    exact = prefs.judgments <= k
    assert (drawn.reshape(4000, 3, 4)[:, exact].std(axis=0) < 1e-12).all()


def test_a_structure_of_the_registry_and_a_function_give_the_same_samples():
    prefs = small_votes()
    by_name, by_function = (
        np.concatenate(list(SampledGains(prefs, s, {"c0": 1.0}, 3, "2^s-1", True, None).draw(np.arange(3), seed=1)))
        for s in ("log-odds", average_log_odds)
    )
    np.testing.assert_allclose(by_name, by_function, rtol=1e-12)
    ratings = Preferences.from_ratings(["q", "q", "q"], ["a", "b", "c"], [3.0, 1.0, 2.0])
    fit = stochastic_fit(features(rows=3), None, ratings, structure="borda", gain="identity", ridge=0.1, steps=50)
    assert np.isfinite(fit.theta).all()


def test_gains_of_lists_without_a_best_order_are_zero():
    """Z at rounding level is 0; small ones are not."""
    prefs = small_votes()
    for level, wanted in ((1e-12, 0.0), (1e-6, 1 / (1 / np.log2([2, 3, 4, 5])).sum())):
        gains = SampledGains(prefs, "log-odds", {}, 2, lambda s, level=level: np.full_like(s, level), True, None)
        np.testing.assert_allclose(np.concatenate(list(gains.draw(np.arange(3), seed=0))), wanted, rtol=1e-12)
    plain = SampledGains(prefs, "log-odds", {}, None, "2^s", False, None)
    s = average_log_odds(Batch.whole(prefs)).value
    np.testing.assert_allclose(np.concatenate(list(plain.draw(np.arange(3), seed=0))), 2.0**s, rtol=1e-12)


def test_queries_come_as_often_as_they_were_judged():
    """With the gradient of the first step at θ = 0: −x̃'y/m of the query drawn, so queries can be counted."""
    prefs, X = small_votes(), features()
    whole = SampledGains(prefs, "log-odds", {}, None, "2^s-1", True, None).whole.reshape(3, 4)
    loss = ((whole - whole.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 8  # at θ = 0, one value a query
    fit = stochastic_fit(X, None, prefs, ridge=0.0, steps=6000, scale=1e-12)
    share = [(np.abs(fit.losses - value) < 1e-9).mean() for value in loss]
    np.testing.assert_allclose(share, prefs.judgments / len(prefs), atol=0.03)


# -- the limit and the rates -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("step", "average"), [("1/t", True), ("1/sqrt(t)", "suffix")])
@pytest.mark.parametrize("k", [2, 5])
def test_it_tends_to_the_closed_form(step, average, k):
    prefs, X, ridge = small_votes(), features(), 0.1
    theta, gap = closed_form(X, prefs, k, ridge)
    fit = stochastic_fit(X, None, prefs, order=k, ridge=ridge, steps=30_000, step_size=step, average=average, seed=3)
    assert gap(fit.theta) < 0.01 * gap(np.zeros(3))
    np.testing.assert_allclose(fit.theta, theta, atol=0.1 * np.abs(theta).max())
    assert fit.gradient < 0.02
    again = stochastic_fit(X, None, prefs, order=k, ridge=ridge, steps=30_000, step_size=step, average=average, seed=3)
    np.testing.assert_array_equal(again.theta, fit.theta)
    other = stochastic_fit(X, None, prefs, order=k, ridge=ridge, steps=30_000, step_size=step, average=average, seed=4)
    assert (other.theta != fit.theta).all()


@pytest.mark.parametrize(("step", "least", "most"), [("1/t", 8.0, 40.0), ("1/sqrt(t)", 2.5, 40.0)])
def test_the_gap_falls_at_its_rate(step, least, most):
    """Sixteen times the steps: 1/16 of the gap under '1/t', 1/4 at most under '1/√t', in the mean of eight runs."""
    prefs, X, ridge = small_votes(), features(), 0.1
    _, gap = closed_form(X, prefs, 3, ridge)
    points = [400, 6400]
    gaps = np.array(
        [
            [
                gap(theta)
                for theta in stochastic_fit(
                    X, None, prefs, order=3, ridge=ridge, steps=6400, step_size=step, seed=seed, checkpoints=points
                ).trace.average
            ]
            for seed in range(8)
        ]
    ).mean(axis=0)
    assert least < gaps[0] / gaps[1] < most


def test_pairwise_logistic_tends_to_newton():
    rng = np.random.default_rng(1)
    X, truth = features(rows=10), np.array([1.0, -0.5, 0.3])
    i, j = rng.integers(0, 10, (2, 400))
    i, j = i[i != j], j[i != j]
    lost = rng.random(len(i)) > 1 / (1 + np.exp(-(X[i] - X[j]) @ truth))
    prefs = Preferences.from_comparisons(np.where(lost, j, i), np.where(lost, i, j), tie=rng.random(len(i)) < 0.1)
    best = fit_edges(X, surrogate("ranknet").objective(Batch.whole(prefs)), ridge=0.05)
    for step in ("1/t", "1/sqrt(t)"):
        fit = logistic_fit(X, prefs, ridge=0.05, steps=20_000, step_size=step, average="suffix")
        np.testing.assert_allclose(fit.theta, best.theta, atol=0.06)
        assert fit.value == pytest.approx(float(best.value), abs=0.02)


def test_batches_are_means_of_samples():
    prefs, X = small_votes(), features()
    one, many = (
        stochastic_fit(X, None, prefs, order=2, ridge=0.1, steps=400, scale=1e-12, batch=batch) for batch in (1, 16)
    )
    assert many.losses.mean() == pytest.approx(one.losses.mean(), rel=0.1)
    assert many.losses.std() < 0.4 * one.losses.std()


# -- input ------------------------------------------------------------------------------------------------------------
def test_rows_alignment_and_precision():
    prefs, X = small_votes(), features()
    plain = stochastic_fit(X, None, prefs, order=3, ridge=0.1, steps=300).theta
    row = np.random.default_rng(0).permutation(12)
    table = np.empty_like(X)
    table[row] = X
    for rows in (row, Alignment(prefs.members[0], row, np.zeros(0, np.int64))):
        np.testing.assert_array_equal(stochastic_fit(table, rows, prefs, order=3, ridge=0.1, steps=300).theta, plain)
    single = stochastic_fit(X.astype(np.float32), None, prefs, order=3, ridge=0.1, steps=300).theta
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, plain, rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_refused():
    prefs, X = small_votes(), features()
    for options, says in (
        ({"step_size": "1/n"}, "unknown step_size"),
        ({"radius": 0.0}, "radius must be"),
        ({"average": "last"}, "unknown average"),
        ({"steps": 0}, "steps must be"),
        ({"batch": 1.5}, "batch must be"),
        ({"order": 0}, "order must be"),
        ({"scale": 0.0}, "scale must be"),
        ({"scale": "big"}, "scale must be"),
        ({"shift": -1.0}, "shift must be"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"checkpoints": [11]}, "checkpoints are"),
        ({"gain": "3^s"}, "unknown gain"),
        ({"structure": "elo"}, "unknown structure"),
        ({"seed": "x"}, "a seed is"),
    ):
        with pytest.raises(UsageError, match=says):
            stochastic_fit(X, None, prefs, **{"steps": 10} | options)
    with pytest.raises(UsageError, match="strong convexity"):
        logistic_fit(X, prefs, steps=10, step_size="1/t")
    with pytest.raises(UsageError, match="items but"):
        stochastic_fit(X[1:], None, prefs, steps=10)
    with pytest.raises(UsageError, match="no judgment"):
        stochastic_fit(X[:0], None, Preferences.empty(), steps=10)
    X[2, 2] = np.inf
    with pytest.raises(InputError, match="not finite"):
        stochastic_fit(X, None, prefs, steps=10)
