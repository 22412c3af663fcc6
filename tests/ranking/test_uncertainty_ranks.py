"""Intervals for ranks and quasi-variances: plain twins, published values, what holds whatever the data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri
from test_uncertainty_intervals import fitted, pudding

from concordant.errors import UsageError
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons
from concordant.ranking import rank_intervals as room
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import covariance, quasi_variances
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.rank_intervals import rank_intervals, rank_intervals_of_replicates
from concordant.ranking.standard_errors import score_intervals

NORMAL = np.array([np.inf])


def simulated(scores, rows, *, seed=0, queries=0):
    rng = np.random.default_rng(seed)
    scores = np.asarray(scores, float)
    i, j = rng.integers(0, len(scores), rows), rng.integers(0, len(scores), rows)
    i, j = i[i != j], j[i != j]
    won = rng.random(len(i)) < 1 / (1 + np.exp(scores[j] - scores[i]))
    query = pa.array(rng.integers(0, queries, len(i))) if queries else None
    return counted_comparisons(pa.array(np.where(won, i, j)), pa.array(np.where(won, j, i)), query=query)


def everything(prefs, method="hessian", level=0.95, **options):
    batch = Batch.whole(prefs)
    scores = bradley_terry(batch, **options)
    curvature = bradley_terry_curvature(batch, scores)
    links = connectivity(batch.graphs)
    limits = score_intervals(batch, scores, curvature, connectivity=links, method=method, level=level)
    return batch, scores, curvature, links, limits


def ranks(prefs, **more):
    batch, scores, curvature, links, limits = everything(prefs, **more)
    return rank_intervals(batch, scores, curvature, limits, connectivity=links)


def twin(value, matrix, level, draws=40_000):
    """One loop over pairs, the quantile from fresh draws."""
    n = len(value)
    sample = np.random.default_rng(99).multivariate_normal(np.zeros(n), matrix, draws, method="eigh")
    errors = {
        (i, j): np.sqrt(matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]) for i in range(n) for j in range(n) if i != j
    }
    most = np.max([np.abs(sample[:, i] - sample[:, j]) / e for (i, j), e in errors.items()], axis=0)
    critical = np.quantile(most, level)
    lower, upper = np.ones(n, int), np.full(n, n)
    near = min(abs(abs(value[i] - value[j]) / e / critical - 1) for (i, j), e in errors.items())
    for (i, j), error in errors.items():
        if value[i] - value[j] > critical * error:
            lower[j] += 1
            upper[i] -= 1
    return lower, upper, near


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_rank_intervals_are_those_of_the_plain_formula(monkeypatch, method, level):
    monkeypatch.setattr(room, "DRAWS", 40_000)
    prefs = simulated(np.linspace(-1, 1, 6), 700, seed=1)
    batch, scores, curvature, links, limits = everything(prefs, method=method, level=level)
    matrix = covariance(batch, curvature, Gauge.of(batch.node_start, links), method=method)
    lower, upper, near = twin(scores.value, matrix, level)
    assert near > 0.01  # no pair so close to the critical value that the draws decide
    found = rank_intervals(batch, scores, curvature, limits, connectivity=links)
    assert found.lower.tolist() == lower.tolist()
    assert found.upper.tolist() == upper.tolist()
    assert (found.upper - found.lower).max() < 5  # the data say something
    assert (found.upper > found.lower).any()  # but not everything


def test_the_quantile_lies_between_one_test_and_sidak():
    prefs = simulated(np.zeros(10), 2000)
    batch, _, curvature, links, _ = everything(prefs)
    matrix = covariance(batch, curvature, Gauge.of(batch.node_start, links))[None]
    pairs = room._pairs(matrix, np.zeros((1, 10)), np.zeros((1, 10), int), np.ones((1, 10), bool))
    drawn, bound = (
        room._drawn_quantile(matrix, pairs, np.array([0.95]), 0, NORMAL)[0],
        room._sidak(pairs, np.array([0.95]), NORMAL)[0],
    )
    # studentised range, 10 groups, infinite degrees of freedom: 4.474 (tables), over √2
    assert drawn == pytest.approx(4.474 / np.sqrt(2), abs=0.05)
    assert drawn < bound < drawn * 1.06


def test_clear_data_give_every_rank_and_no_data_none():
    clear = ranks(simulated([4, 2, 0, -2, -4], 20_000))
    assert clear.lower.tolist() == clear.upper.tolist() == [1, 2, 3, 4, 5]
    vague = ranks(simulated([0, 0, 0, 0], 60))
    assert vague.lower.tolist() == [1] * 4
    assert vague.upper.tolist() == [4] * 4


def test_queries_are_ranked_by_themselves():
    prefs = simulated([1, 0.3, -0.3, -1], 4000, queries=3)
    together = ranks(prefs)
    for place, query in enumerate(prefs.queries.tolist()):
        own = ranks(prefs.select([query]))
        assert together.lower[4 * place : 4 * place + 4].tolist() == own.lower.tolist()
        assert together.upper[4 * place : 4 * place + 4].tolist() == own.upper.tolist()


def test_large_graphs_are_ranked_by_sorting_and_more_cautiously(monkeypatch):
    prefs = simulated(np.linspace(-2, 2, 30), 20_000)
    exact = ranks(prefs)
    monkeypatch.setattr(room, "PAIRWISE", 1)
    batch, scores, curvature, links, limits = everything(prefs)
    sorted_ = rank_intervals(batch, scores, curvature, limits, connectivity=links)
    assert (sorted_.lower <= exact.lower).all()
    assert (sorted_.upper >= exact.upper).all()
    half = ndtri(0.5 + 0.5 * 0.95 ** (1 / 30)) * limits.standard_error
    low, high = scores.value - half, scores.value + half
    for i in range(30):
        assert sorted_.lower[i] == 1 + (low > high[i]).sum()
        assert sorted_.upper[i] == 30 - (high < low[i]).sum()
    monkeypatch.setattr(room, "PAIRWISE", 300)
    monkeypatch.setattr(room, "WORK", 0.0)
    bound = ranks(prefs)
    assert (bound.lower <= exact.lower).all()
    assert (bound.upper >= exact.upper).all()


@pytest.mark.parametrize("pairwise", [1, 300])
def test_what_the_data_do_not_determine_is_never_certain(monkeypatch, pairwise):
    monkeypatch.setattr(room, "PAIRWISE", pairwise)
    block = simulated([2, 0, -2], 3000)
    # 10 beats everybody; 20 and 21 were compared with each other only; 30 with nobody
    items = block.items.tolist()
    winner = np.concatenate([np.asarray(items)[block.winner], [10, 10, 20, 21]])
    loser = np.concatenate([np.asarray(items)[block.loser], [0, 1, 21, 20]])
    count = np.concatenate([block.count, [50, 50, 5, 5]])
    prefs = counted_comparisons(
        pa.array(winner), pa.array(loser), count=count, declared=(None, pa.array(np.array([30])))
    )
    assert prefs.items.tolist() == [0, 1, 2, 10, 20, 21, 30]
    found = ranks(prefs)
    assert found.lower.tolist() == [1, 2, 3, 1, 1, 1, 1]
    assert found.upper.tolist() == [2, 3, 4, 4, 2, 2, 7]


def test_a_chain_has_no_certain_rank():
    found = ranks(Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "d"], count=[100] * 3))
    assert found.lower.tolist() == [1] * 4
    assert found.upper.tolist() == [4] * 4


@pytest.mark.parametrize("pairwise", [1, 300])
def test_replicates_say_nearly_the_same(monkeypatch, pairwise):
    prefs = simulated(np.linspace(-1.5, 1.5, 7), 3000)
    expected = ranks(prefs)
    monkeypatch.setattr(room, "PAIRWISE", pairwise)
    batch = Batch.whole(prefs)
    boot = bootstrap(prefs, replicates=600)
    found = rank_intervals_of_replicates(boot, batch, connectivity=connectivity(batch.graphs))
    assert np.abs(found.lower - expected.lower).max() <= 1 + (pairwise == 1)
    assert np.abs(found.upper - expected.upper).max() <= 1 + (pairwise == 1)
    assert (found.upper - found.lower).max() < 6


def test_all_ranks_hold_together_nineteen_times_in_twenty():
    rng = np.random.default_rng(3)
    sets, n, rows = 150, 6, 250
    scores = np.array([0.5, 0.4, 0.0, -0.1, -0.2, -0.6])
    i = rng.integers(0, n, sets * rows)
    j = (i + rng.integers(1, n, sets * rows)) % n
    won = rng.random(sets * rows) < 1 / (1 + np.exp(scores[j] - scores[i]))
    query = np.repeat(np.arange(sets), rows)
    prefs = counted_comparisons(pa.array(np.where(won, i, j)), pa.array(np.where(won, j, i)), query=pa.array(query))
    found = ranks(prefs)
    truth = np.tile(np.arange(1, n + 1), sets)
    held = ((found.lower <= truth) & (truth <= found.upper)).reshape(sets, n).all(axis=1)
    assert held.mean() >= 0.95
    assert (found.upper - found.lower).mean() < n - 1.5


# -- quasi-variances ---------------------------------------------------------------------------------------------
def test_three_items_are_reproduced_exactly():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(3, 5))
    matrix = half @ half.T
    found = quasi_variances(matrix)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]
        assert found.variance[i] + found.variance[j] == pytest.approx(expected, rel=1e-9)
    assert found.worst == pytest.approx((0, 0), abs=1e-9)


def test_pudding_quasi_standard_errors_as_published():
    # PlackettLuce (R), vignette "Introduction to PlackettLuce": summary(qvcalc(mod))
    batch, _, curvature, links = fitted(pudding(), prior=0.0, ties="davidson")
    found = quasi_variances(covariance(batch, curvature, Gauge.of(batch.node_start, links))[:6, :6])
    assert found.error == pytest.approx([0.1328950, 0.1327373, 0.1395740, 0.1330240, 0.1399253, 0.1392047], abs=2e-6)
    assert [round(100 * x, 1) for x in found.worst] == [-0.8, 0.8]


def test_the_criterion_is_minimised():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(7, 9))
    matrix = half @ half.T
    pairs = [(i, j, matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]) for i in range(7) for j in range(i)]

    def loss(q):
        both = np.array([q[i] + q[j] for i, j, _ in pairs])
        return np.inf if (both <= 0).any() else ((np.log(both) - np.log([v for _, _, v in pairs])) ** 2).sum()

    found = quasi_variances(matrix)
    best = minimize(loss, np.diagonal(matrix), method="Nelder-Mead", options={"maxiter": 40_000, "maxfev": 40_000})
    assert loss(found.variance) <= best.fun + 1e-9
    slope = [(loss(found.variance + h) - loss(found.variance - h)) / 2e-5 for h in 1e-5 * np.eye(7)]
    assert np.abs(slope).max() < 1e-6


def test_the_gauge_does_not_matter():
    rng = np.random.default_rng(2)
    half = rng.normal(size=(5, 8))
    matrix = half @ half.T
    centre = np.eye(5) - 1 / 5
    first = np.eye(5) - np.eye(5)[0]
    found = [quasi_variances(c @ matrix @ c.T).variance for c in (np.eye(5), centre, first)]
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert found[2] == pytest.approx(found[0], rel=1e-6)


def test_quasi_variances_of_two_one_and_too_many():
    assert quasi_variances(np.diag([1.0, 3.0])).variance.tolist() == [2.0, 2.0]
    assert np.isnan(quasi_variances(np.ones((1, 1))).variance).all()
    with pytest.raises(UsageError, match="at most 500"):
        quasi_variances(np.eye(501))
    with pytest.raises(UsageError, match="square"):
        quasi_variances(np.ones((2, 3)))
    same = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 2.0 - 1e-15], [1.0, 2.0 - 1e-15, 2.0]])
    with pytest.raises(UsageError, match="no positive finite variance"):
        quasi_variances(same)  # the difference of two items is rounding
    with pytest.raises(UsageError, match="not determined"):
        quasi_variances(np.diag([1.0, np.inf, 1.0]))


def test_items_that_share_a_rank_stand_by_item_whatever_the_last_bits_of_their_scores() -> None:
    """Sums in another order have other last bits; an item apart stays behind."""
    none, value = np.zeros(5, np.int64), np.array([1.0, 1.0 + 2e-16, 1.0 + 4e-16, 3.0, 1.0 + 6e-16])
    order, rank = room.places(none, none.astype(np.int32), np.array([0, 0, 0, 0, 1]), value, np.arange(5), 1e-12)
    assert order.tolist() == [3, 0, 1, 2, 4] and rank.tolist() == [1, 2, 2, 2, 0]


def test_the_critical_value_does_not_turn_with_last_bits() -> None:
    """Of equal variances any axes are principal ones; which come out is rounding, and must not matter."""
    size, noise = 8, np.random.default_rng(0).normal(size=(8, 8))
    matrix = np.eye(size) - 1.0 / size
    pairs = np.sqrt(np.maximum(2.0 - 2.0 * np.eye(size), 0.0))
    given = pairs[None], np.array([0.95]), 0, np.array([np.inf])
    near = matrix + 1e-12 * (noise + noise.T)
    np.testing.assert_allclose(
        room._drawn_quantile(matrix[None], *given), room._drawn_quantile(near[None], *given), atol=1e-5
    )
