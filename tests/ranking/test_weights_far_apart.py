"""Weights from 1e-100 to 1e100, counts, priors and levels at their ends: right, refused or said; no traceback.

The oracle is Newton's method with 400 digits (mpmath) or a law that holds for any weights.
"""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest

import concordant as cc
from concordant.errors import ConcordantError, UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.closed_forms import average_log_odds, thurstone_mosteller
from concordant.ranking.eigenvector import principal_eigenvector
from concordant.ranking.elimination import far_apart
from concordant.ranking.rank import rank


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def judged(rows):
    winner, loser, weight = zip(*rows, strict=True)
    return Preferences.from_comparisons(winner, loser, weight=weight)


def precisely(n, rows, prior, start):
    """The penalised maximum likelihood, by damped Newton with 400 digits."""
    with mpmath.workdps(400):
        s = [mpmath.mpf(float(v)) for v in start]
        for _ in range(2_000):
            gradient = mpmath.matrix([-mpmath.mpf(prior) * v for v in s])
            hessian = mpmath.eye(n) * mpmath.mpf(prior)
            for w, other, x in rows:
                p = 1 / (1 + mpmath.exp(s[other] - s[w]))
                q = 1 / (1 + mpmath.exp(s[w] - s[other]))
                gradient[w] += x * q
                gradient[other] -= x * q
                for i, j, sign in ((w, w, 1), (other, other, 1), (w, other, -1), (other, w, -1)):
                    hessian[i, j] += sign * x * p * q
            if prior == 0:  # the first item at its place
                hessian[0, :] = mpmath.matrix([[1] + [0] * (n - 1)])
                gradient[0] = 0
            step = mpmath.lu_solve(hessian, gradient)
            span = max(step) - min(step)
            part = mpmath.log(1 + span) / span if span > 1.5 else 1
            s = [a + part * b for a, b in zip(s, step, strict=True)]
            if span < mpmath.mpf(10) ** -40:
                mean = sum(s) / n
                return np.array([float(v - mean) for v in s])
    raise AssertionError("the oracle did not end")


def drawn(seed):
    rng = np.random.default_rng(seed)
    n, span = int(rng.integers(3, 7)), float(rng.choice([3, 10, 20, 40, 100]))
    rows = [(int(rng.integers(i)), i) for i in range(1, n)]
    rows += [tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(int(rng.integers(0, n + 2)))]
    rows = [row if rng.random() < 0.5 else row[::-1] for row in rows]
    prior = float(rng.choice([0.0, 0.01, 1.0, 1e-6, 1e-12, 1e6]))
    weight = np.clip(10.0 ** rng.uniform(-span, span, len(rows)), 1e-100, 1e100)
    rows = [(a, b, float(x)) for (a, b), x in zip(rows, weight, strict=True)]
    if prior == 0:
        back = weight * rng.uniform(0.1, 10, len(rows))
        rows += [(b, a, float(np.clip(x, 1e-100, 1e100))) for (a, b, _), x in zip(rows[:], back, strict=True)]
    return n, rows, prior


@pytest.mark.parametrize("seed", range(60))
def test_bradley_terry_is_right_or_says_that_it_is_not(seed):
    n, rows, prior = drawn(seed)
    scores = bradley_terry(Batch.whole(judged(rows)), prior=prior)
    if scores.status[0] != Status.CONVERGED:
        assert {"strengths far apart", "stopped"} & {note.code for note in scores.notes}
        return
    expected = precisely(n, rows, prior, scores.value)
    assert scores.value == pytest.approx(expected, rel=1e-7, abs=1e-7 * max(1.0, np.abs(expected).max()))


def test_a_weak_win_beside_a_strong_one_counts():
    found = bradley_terry(Batch.whole(judged([("a", "b", 3.6), ("b", "c", 1e20)])))
    assert found.status[0] == Status.CONVERGED and (np.diff(found.value) < 0).all()
    expected = precisely(3, [(0, 1, 3.6), (1, 2, 1e20)], 0.01, found.value)
    assert found.value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("interval", ["auto", "hessian", "sandwich"])
@pytest.mark.parametrize("weight", [1e8, 1e16, 1e40, 1e100])
def test_strong_pairs_between_weak_ones_have_no_traceback(interval, weight):
    ranking = rank(judged([("a", "b", 1), ("b", "c", weight), ("c", "d", 1)]), interval=interval)
    assert np.isfinite(ranking.score).all() and (np.diff(ranking.score) < 0).all()
    assert not np.isnan(ranking.lower).any() and not np.isnan(ranking.upper).any()


def test_two_strong_pairs_joined_by_a_weak_one():
    """Without cycles every pair has its own log-odds, whatever the weights."""
    for weight in (1.0, 1e12, 1e30, 1e99):
        rows = [("a", "b", 3 * weight), ("b", "a", weight), ("b", "c", 3 / weight), ("c", "b", 1 / weight)]
        rows += [("c", "d", 3 * weight), ("d", "c", weight)]
        found = bradley_terry(Batch.whole(judged(rows)), prior=0)
        assert found.status[0] == Status.CONVERGED
        assert np.diff(found.value) == pytest.approx(np.full(3, -np.log(3)), rel=1e-12)


@pytest.mark.parametrize("span", [0, 12, 40, 90])
def test_standard_errors_of_a_path_of_any_weights(span):
    """Resistances in series: Σ over pairs of (share of the items beyond it)² / curvature, 3 : 1 everywhere."""
    n = 9
    strength = 10.0 ** np.random.default_rng(span).uniform(-span, span, n - 1)
    rows = [(i, i + 1, 3 * x) for i, x in enumerate(strength)] + [(i + 1, i, x) for i, x in enumerate(strength)]
    found = rank(judged([(f"i{a}", f"i{b}", x) for a, b, x in rows]), prior=0, interval="hessian")
    k = np.arange(n - 1)
    share = np.where(np.arange(n)[:, None] <= k, n - 1 - k, k + 1) / n
    error = np.sqrt((share**2 / (0.75 * strength)).sum(axis=1))
    assert (found.upper - found.lower) / 2 / 1.959963984540054 == pytest.approx(error, rel=1e-8)


def test_likelihoods_that_vanish_in_floating_point_are_said():
    """The maximum has log-odds of −690 on a weight of 1e-100."""
    rows = [("a", "b", 1e100), ("b", "c", 1.0), ("c", "a", 1e-100)]
    found = bradley_terry(Batch.whole(judged(rows)), prior=0)
    assert found.status[0] == Status.STOPPED and "strengths far apart" in [note.code for note in found.notes]


@pytest.mark.parametrize("seed", range(8))
def test_without_a_prior_the_unit_of_weights_does_not_matter(seed):
    _, rows, _ = drawn(1_000 + seed)
    rows = [(a, b, float(np.clip(x, 1e-40, 1e40))) for a, b, x in rows] + [
        (b, a, float(np.clip(x, 1e-40, 1e40))) for a, b, x in rows
    ]
    first = bradley_terry(Batch.whole(judged(rows)), prior=0)
    times = bradley_terry(Batch.whole(judged([(a, b, x * 2.0**60) for a, b, x in rows])), prior=0)
    assert first.status[0] == times.status[0] == Status.CONVERGED
    assert times.value == pytest.approx(first.value, rel=1e-9, abs=1e-9)


def test_thurstone_mosteller_with_weights_is_exact_on_a_tree():
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = 6
        weight = 10.0 ** rng.uniform(-100, 99, n - 1)
        rows = [(int(rng.integers(i)), i, float(x)) for i, x in enumerate(weight, 1)]
        batch = Batch.whole(judged(rows))
        found = thurstone_mosteller(batch, weights="counts")
        assert found.status[0] == Status.CONVERGED
        for a, b, x in rows:
            assert found.value[a] - found.value[b] == pytest.approx(np.log1p(x / 0.5), rel=1e-9, abs=1e-12 * 460)


def test_the_eigenvector_of_ratios_far_apart():
    """Of three items with s_i/s_j = A_ij exactly, the Perron vector is s."""
    for scale in (1e2, 1e10, 1e18):
        s = np.array([scale, 1.0, 1 / scale])
        rows = [(i, j, s[i] / s[j]) for i in range(3) for j in range(3) if i != j]
        found = principal_eigenvector(Batch.whole(judged([(i, j, np.sqrt(x)) for i, j, x in rows])), c0=1e-300)
        assert found.status[0] == Status.CONVERGED
        assert found.value == pytest.approx(s, rel=1e-6)
    with pytest.raises(ConcordantError, match="beyond 1e74 : 1"):
        principal_eigenvector(Batch.whole(judged([("a", "b", 1e80)])))


@pytest.mark.parametrize("prior", [1e300, 1e-320, 5e-324, 1.1e100, -1.0, float("nan"), float("inf")])
def test_priors_beyond_the_range_of_weights_are_refused(prior):
    prefs = judged([("a", "b", 1.0), ("b", "a", 2.0)])
    with pytest.raises(UsageError, match="from 1e-100 to 1e\\+100"):
        bradley_terry(Batch.whole(prefs), prior=prior)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_breaks_over_all_structures(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(3, 14))
    winner = rng.integers(0, n, m)
    loser = (winner + rng.integers(1, n, m)) % n
    winner, loser = np.concatenate([winner, loser]), np.concatenate([loser, winner])
    more = {"weight": np.clip(10.0 ** rng.uniform(-100, 100, 2 * m), 1e-100, 1e100)}
    if seed % 3 == 0:
        more = {"count": (2.0 ** rng.uniform(0, 50, 2 * m)).astype(np.int64)}
    if seed % 2:
        more["tie"] = rng.random(2 * m) < 0.3
    prefs = Preferences.from_comparisons(winner, loser, **more)
    options = [("bradley-terry", {"prior": prior}) for prior in (0, 0.01, 1e-100, 1e100)]
    options += [("bradley-terry", {"ties": "davidson"}), ("plackett-luce", {"prior": 0.01})]
    options += [
        (name, {}) for name in ("log-odds", "thurstone-mosteller", "eigenvector", "borda", "counting", "kemeny")
    ]
    for name, more in options:
        for interval in ("auto", "sandwich") if name in ("bradley-terry", "plackett-luce") else ("none",):
            try:
                ranking = rank(prefs, name, interval=interval, level=0.999999999999, **more)
            except ConcordantError:
                continue
            assert np.isfinite(ranking.score).all()
            if interval != "none":
                assert not np.isnan(ranking.lower).any() and not np.isnan(ranking.upper).any()


def test_log_odds_of_extreme_weights():
    found = average_log_odds(Batch.whole(judged([("a", "b", 1e100), ("b", "a", 1e-100)])))
    assert found.value[0] == pytest.approx(np.log(2e100), rel=1e-12)


def test_what_is_far_apart():
    chain = np.array([0, 1, 2]), np.array([1, 2, 3])
    assert not far_apart(*chain, np.array([1.0, 1e7, 1.0]), 0.0, 4)
    assert far_apart(*chain, np.array([1.0, 1e9, 1.0]), 0.0, 4)
    assert not far_apart(*chain, np.array([1.0, 1e9, 1.0]), 100.0, 4)  # the prior holds the others
    ring = np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3])
    assert not far_apart(*ring, np.array([1.0, 1.0, 1.0, 1e-30]), 0.0, 4)  # beside strong ones


@pytest.mark.parametrize("options", [{"ties": "davidson"}, {"covariates": True}])
def test_coefficients_beside_weights_far_apart_are_not_called_converged(options):
    rng = np.random.default_rng(64)
    winner, loser = np.array([0, 1, 2, 0, 1, 2, 2, 0]), np.array([1, 2, 0, 2, 0, 1, 1, 1])
    more = {"weight": 10.0 ** rng.uniform(-60, 60, 8), "tie": np.array([0, 0, 0, 0, 0, 0, 1, 1], bool)}
    prefs = Preferences.from_comparisons(winner, loser, covariates={"home": rng.choice((-1.0, 1.0), 8)}, **more)
    try:
        found = bradley_terry(Batch.whole(prefs), prior=0.01, **({"covariates": False} | options))
    except ConcordantError:
        return
    assert found.status[0] == Status.STOPPED and "strengths far apart" in [note.code for note in found.notes]


@pytest.mark.parametrize("seed", range(4))
def test_rankers_and_audits_of_weights_far_apart(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(16, 2))
    winner = rng.integers(0, 4, 60)
    loser, query = (winner + rng.integers(1, 4, 60)) % 4, rng.integers(0, 4, 60)
    weight = np.clip(10.0 ** rng.uniform(-100, 100, 60), 1e-100, 1e100)
    prefs = Preferences.from_comparisons(winner, loser, query, weight=weight)
    judged_rows = cc.Judged.of(prefs, query=np.repeat(np.arange(4), 4), item=np.tile(np.arange(4), 4))
    for ranker in (cc.EdgeRanker(), cc.AggregationRanker(), cc.AggregationRanker(structure="log-odds")):
        try:
            fitted = ranker.fit(X, judged_rows)
        except ConcordantError:  # refused, by name
            continue
        assert np.isfinite(fitted.predict(X)).all()
    audit = cc.audit(prefs)
    assert audit.settling is not None or any("too far apart" in note for note in audit.notes)
