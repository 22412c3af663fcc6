"""Theorem 4 as a diagnosis: its deviation by simulation, its constants by brute force, its bias by the binomial law."""

from __future__ import annotations

import math

import numpy as np
import pytest

import concordant as cc
from concordant.errors import UsageError
from concordant.learning.rankers.diagnosis import theorem_bound
from concordant.learning.solvers.deviation import Drawn, RiskProcess, suprema, worst
from concordant.losses.surrogates import surrogate
from deviation_coverage import DESIGNS, Population, simulated
from seeds import seed

TABLE = {"item": list("abcdef"), "one": [1.0, 2.0, 0.5, 3.0, 0.0, 1.5], "two": [0.0, 1.0, -1.0, 0.5, 2.0, 0.3]}


def votes(number=120, items=6):
    rng = np.random.default_rng(seed(3))
    one = rng.integers(items, size=number)
    other = (one + rng.integers(1, items, size=number)) % items
    label = np.array(list("abcdef"))
    return cc.Preferences.from_comparisons(label[one], label[other], query=np.arange(number) % 3)


# -- the bound ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["single judgments", "net preferences of 5", "net preferences of all"])
def test_the_deviation_covers_and_is_near(name):
    """The bar is 95% and 10 times; ``python tests/deviation_coverage.py`` has ten designs and 300 replications."""
    found = simulated(DESIGNS[name], 25, replicates=120)
    assert found["covered"] >= 0.92
    assert 1.0 < found["ratio"] < 3.0
    assert found["theorem"] > 10.0  # why there is a bound of our own


def test_suprema_are_those_of_a_grid():
    population = Population(DESIGNS["net preferences of 5"])
    prefs = population.draw(0)
    drawn = Drawn.of(prefs, 5, seed=1)
    process = RiskProcess.of(population.rows(prefs), prefs.member_groups.start, drawn, population.make)
    weights = np.random.default_rng(seed(1)).normal(size=(20, len(drawn.query)))
    found = process.weighted(weights).most(1.0)
    losses = np.array([process.losses(theta) for theta in population.grid.T])
    brute = np.abs(losses @ weights.T).max(axis=0)
    assert (found >= brute * 0.99).all()
    assert (found <= brute * 1.02).all()


@pytest.mark.parametrize(("order", "each"), [(1, 16), (None, 16)])
def test_the_variance_is_the_sample_variance_over_n(order, each):
    """A loss that is linear in the judgments, few of them: blocks of one, and all but one, say what each says."""
    rng = np.random.default_rng(seed(5))
    one = rng.integers(4, size=3 * each)
    other = (one + rng.integers(1, 4, size=3 * each)) % 4
    prefs = cc.Preferences.from_comparisons(one, other, query=np.repeat(np.arange(3), each))
    Z = np.random.default_rng(seed(6)).normal(size=(int(prefs.members[0][-1]), 2))
    theta = np.array([0.4, -0.2])
    share = prefs.judgments / len(prefs)
    start = prefs.member_groups.start
    drawn = Drawn.of(prefs, order, seed=2)
    process = RiskProcess.of(Z, start, drawn, surrogate("linear").objective)
    losses = process.losses(theta)
    variance = 0.0
    for q in range(3):
        held = slice(prefs.start[q], prefs.start[q + 1])
        begin, items = prefs.members[0][q], prefs.members[1][prefs.members[0][q] : prefs.members[0][q + 1]]
        row = {int(item): begin + place for place, item in enumerate(items)}
        said = [
            -theta @ (Z[row[int(w)]] - Z[row[int(lost)]])
            for w, lost, c in zip(prefs.winner[held], prefs.loser[held], prefs.count[held], strict=True)
            for _ in range(c)
        ]
        variance += share[q] ** 2 * np.var(said, ddof=1) / len(said)
    means = np.array([losses[drawn.query == q].mean() for q in range(3)])
    part = (losses - means[drawn.query]) * drawn.spread * share[drawn.query]
    assert part @ part == pytest.approx(variance, rel=1e-9)


def test_queries_that_are_drawn_add_their_share():
    """Two queries whose losses at θ are constants: sup |·| is that of the shares, p(1 − p)/n times the difference."""
    prefs = cc.Preferences.from_comparisons([0] * 90 + [1] * 10, [1] * 90 + [0] * 10, query=[0] * 90 + [1] * 10)
    Z = np.array([[0.5], [-0.5], [0.5], [-0.5]])
    drawn = Drawn.of(prefs, 1, seed=0)
    process = RiskProcess.of(Z, prefs.member_groups.start, drawn, surrogate("ranknet").objective)
    share = prefs.judgments / 100
    options = {"replicates": 4000, "seed": seed(2)}
    found = suprema(process, drawn, share, prefs.judgments, 1.0, **options)
    gap = 1.0  # log(1 + e) − log(1 + 1/e), at θ = ±1
    sd = math.sqrt(0.9 * 0.1 / 100) * gap
    assert found.std() == pytest.approx(sd * math.sqrt(1 - 2 / math.pi), rel=0.06)
    assert worst(found, 0.05) == pytest.approx(2.338 * sd, rel=0.06)
    fixed = suprema(process, drawn, share, prefs.judgments, 1.0, queries_drawn=False, **options)
    assert fixed.max() < 1e-12


# -- the numbers of the theorem --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "loss", ["ranknet", "difference-graph", "ndcg-pairwise", "linear", "gain-regression", "ranksvm"]
)
def test_constants_bound_what_they_should(loss):
    prefs = votes()
    population = Population(DESIGNS["single judgments"])
    population.design = type(population.design)(loss, 4)
    Z = np.random.default_rng(seed(4)).normal(size=(int(prefs.members[0][-1]), 2))
    drawn = Drawn.of(prefs, 4, seed=0)
    process = RiskProcess.of(Z, prefs.member_groups.start, drawn, population.make)
    high, steep = process.bounds(0.7)
    grid = 0.7 * population.grid.T
    losses = np.array([process.losses(theta) for theta in grid])
    assert np.abs(losses).max() <= high
    away = np.linalg.norm(grid[:, None] - grid[None], axis=2) + np.eye(len(grid))
    slopes = np.abs(losses[:, None] - losses[None]).max(axis=2) / away
    assert slopes.max() <= steep


def test_the_bound_of_the_theorem_solves_its_inequality():
    n, k, d, r, B, L = 5000, 7, 3, 2.0, 1.5, 0.8
    e = theorem_bound(n, k, d, r, B, L)
    covering = (1 + 2 * r / (e / (4 * L))) ** d
    assert 2 * covering * math.exp(-n * e**2 / (32 * k**2 * B**2)) == pytest.approx(0.05)


def test_the_bias_of_a_coin():
    """Two items at level odds: E |mean of k signs| is known for every k and falls like √(2/(πk))."""
    rng = np.random.default_rng(seed(8))
    side = rng.random(8_000) < 0.5
    prefs = cc.Preferences.from_comparisons(np.where(side, "a", "b"), np.where(side, "b", "a"))
    table = {"item": ["a", "b"], "x": [1.0, -1.0]}
    ranker = cc.EdgeRanker("difference-graph", order=8).fit(table, prefs)
    found = ranker.diagnose(table, prefs, radius=1.0, replicates=100)
    half = [math.comb(8, i) / 256 * abs(2 * i - 8) / 8 for i in range(9)]
    bias = sum(half) * math.log(2)  # θ is about 0, the limit is 0
    assert abs(found.bias - bias) < 3 * found.bias_error < 0.5 * bias
    assert found.rate == pytest.approx(0.5, abs=0.2)
    assert found.extrapolates


def test_nothing_aggregated_has_no_bias():
    ranker = cc.EdgeRanker("ranknet").fit(TABLE, single())
    found = ranker.diagnose(TABLE, single(), replicates=100)
    assert (found.bias, found.rate, found.k) == (0.0, math.inf, 1)
    assert "nothing is aggregated" in str(found)


def single():
    prefs = votes()
    rows = np.repeat(np.arange(len(prefs.winner)), prefs.count)
    items = np.array(prefs.items.tolist())
    return cc.Preferences.from_comparisons(items[prefs.winner[rows]], items[prefs.loser[rows]])


def test_rankers_that_aggregate_are_diagnosed():
    prefs = single()
    for order in (5, "all"):
        ranker = cc.AggregationRanker("log-odds", order=order).fit(TABLE, prefs)
        found = ranker.diagnose(TABLE, prefs, replicates=100)
        assert found.features == 2 and found.k == (5 if order == 5 else 120)
        assert found.radius == pytest.approx(np.linalg.norm(ranker.coef_standardised_))
        assert 0 < found.deviation < found.theorem and found.deviation_fixed == pytest.approx(found.deviation)
        assert found.growth == pytest.approx(found.k * math.sqrt(2 / 120))
        again = ranker.diagnose(TABLE, prefs, replicates=100)
        assert again == found  # the same seed
        assert len(str(found).splitlines()) == 7


def test_the_loss_that_was_chosen_is_diagnosed():
    prefs = single()
    chosen = cc.EdgeRanker("auto", ridge=0.1).fit(TABLE, prefs)
    named = cc.EdgeRanker(chosen.status_["loss"], ridge=0.1).fit(TABLE, prefs)
    one, other = (ranker.diagnose(TABLE, prefs, replicates=100) for ranker in (chosen, named))
    assert one == other


def test_what_the_theorem_does_not_speak_of_is_refused():
    prefs = single()
    with pytest.raises(UsageError, match="name a structure"):
        cc.AggregationRanker().fit(TABLE, prefs).diagnose(TABLE, prefs)
    fitted = cc.EdgeRanker("ranknet").fit(TABLE, prefs)
    with pytest.raises(UsageError, match="radius of the ball"):
        fitted.diagnose(TABLE, prefs, radius=-1.0)
    with pytest.raises(UsageError, match="replicates must"):
        fitted.diagnose(TABLE, prefs, replicates=5)
