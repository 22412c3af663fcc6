"""The bootstrap: the law of the draws, equality with plain refits, and what it says where no limit exists."""

from __future__ import annotations

from math import factorial

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import concordant as cc
from concordant.errors import UsageError
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons
from concordant.ranking import bootstrap as room
from concordant.ranking import multinomial as drawing
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.multinomial import Atoms, multinomial, streams
from concordant.ranking.standard_errors import score_intervals
from concordant.ranking.structures import STRUCTURES, structure
from seeds import seed


def simulated(n, rows, *, seed=0, ties=0.0, clusters=0, queries=0, weights=False):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n)
    shown = rng.dirichlet(np.full(n, 5.0))
    i, j = rng.choice(n, rows, p=shown), rng.choice(n, rows, p=shown)
    i, j = i[i != j], j[i != j]
    won = rng.random(len(i)) < 1 / (1 + np.exp(scores[j] - scores[i]))
    return counted_comparisons(
        pa.array(np.where(won, i, j)),
        pa.array(np.where(won, j, i)),
        tie=rng.random(len(i)) < ties,
        cluster=pa.array(rng.integers(0, clusters, len(i))) if clusters else None,
        query=pa.array(rng.integers(0, queries, len(i))) if queries else None,
        weight=rng.choice((0.5, 1.0, 2.0), len(i)) if weights else None,
    )


# -- the draws ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("many", [1, 256])
def test_draws_follow_the_multinomial_law(monkeypatch, many):
    monkeypatch.setattr(drawing, "MANY", many)  # 1: by Poisson numbers mended to the total
    count = np.array([1, 2, 3])
    drawn = multinomial(np.random.default_rng(4), count, 40_000)
    assert (drawn.sum(axis=1) == 6).all()
    assert (drawn >= 0).all()
    outcomes = [(a, b, 6 - a - b) for a in range(7) for b in range(7 - a)]
    chance = [
        factorial(6) / np.prod([factorial(x) for x in o]) * np.prod((count / 6.0) ** np.array(o)) for o in outcomes
    ]
    seen = [(drawn == o).all(axis=1).sum() for o in outcomes]
    frequent = np.array(chance) * len(drawn) > 5
    seen, expected = np.array(seen, float), np.array(chance) * len(drawn)
    pooled = np.append(seen[frequent], seen[~frequent].sum()), np.append(expected[frequent], expected[~frequent].sum())
    assert chisquare(*pooled).pvalue > 1e-3


def test_many_cells_have_the_multinomial_mean_and_covariance():
    rng = np.random.default_rng(7)
    count = rng.integers(1, 60, 400)
    drawn = multinomial(rng, count, 8_000)
    n = count.sum()
    assert (drawn.sum(axis=1) == n).all()
    mean_error = (drawn.mean(axis=0) - count) / np.sqrt(count / 8_000)
    assert np.abs(mean_error).max() < 4.5
    spread = drawn.var(axis=0) / (count * (1 - count / n))
    assert spread.mean() == pytest.approx(1, abs=0.005)
    half = drawn[:, :200].sum(axis=1)  # a sum of cells is binomial: wrong if cells were independent
    share = count[:200].sum() / n
    assert half.var() / (n * share * (1 - share)) == pytest.approx(1, abs=0.08)


def test_replicates_do_not_depend_on_the_batch_or_on_how_many_there_are():
    prefs = simulated(6, 2000, queries=4)
    every = bootstrap(prefs, replicates=120, seed=5)
    single = bootstrap(prefs.select([2]), replicates=60, seed=5)
    own = Batch.whole(prefs).owner == prefs.queries.tolist().index(2)
    assert single.replicates == pytest.approx(every.replicates[:60, own], abs=1e-12)
    other = bootstrap(prefs.select([2]), replicates=60, seed=6)
    assert (np.abs(other.replicates - single.replicates) > 1e-3).any()


def test_threads_change_nothing():
    prefs = simulated(40, 6000, ties=0.1)
    one, two = (bootstrap(prefs, replicates=130, threads=threads).replicates for threads in (1, 2))
    assert np.array_equal(one, two)


# -- refits ------------------------------------------------------------------------------------------------------
REFITS = {
    "ties": {"n": 30, "rows": 4000, "ties": 0.15},
    "sparse": {"n": 30, "rows": 500},
    "clusters": {"n": 15, "rows": 900, "clusters": 30, "ties": 0.2},
    "weights": {"n": 12, "rows": 900, "weights": True},
    "queries": {"n": 8, "rows": 1500, "queries": 4},
}


@pytest.mark.parametrize("prior", [0.0, 0.01])
@pytest.mark.parametrize("case", REFITS)
def test_refits_together_are_refits_one_by_one(monkeypatch, case, prior):
    prefs = simulated(**REFITS[case])
    if prior == 0 and connectivity(Batch.whole(prefs).graphs).separated.any():
        prior = 1e-3
    monkeypatch.setattr(room, "FAST_NODES", (1, 10**6))
    together = bootstrap(prefs, replicates=150, options={"prior": prior}).replicates
    monkeypatch.setattr(room, "FAST_NODES", (1, 0))
    apart = bootstrap(prefs, replicates=150, options={"prior": prior}).replicates
    assert np.array_equal(np.isnan(together), np.isnan(apart))
    assert np.array_equal(together == np.inf, apart == np.inf)
    finite = np.isfinite(apart)
    assert together[finite] == pytest.approx(apart[finite], abs=1e-6)


def test_a_replicate_is_the_fit_to_the_drawn_judgments():
    prefs = simulated(5, 300, ties=0.2)
    batch = Batch.whole(prefs)
    atoms = Atoms.of(batch, 9)[0]
    first = atoms.drawn(next(iter(streams(len(atoms.count), 3))))
    assert first.sum(axis=1).tolist() == [len(prefs)] * 3
    boot = bootstrap(prefs, replicates=3, seed=9)
    items = np.asarray(prefs.items.values)
    for row in range(3):
        again = counted_comparisons(  # every drawn judgment written out as rows
            pa.array(np.repeat(items[prefs.winner], first[row])),
            pa.array(np.repeat(items[prefs.loser], first[row])),
            tie=np.repeat(prefs.tie, first[row]),
        )
        expected = bradley_terry(Batch.whole(again)).value
        assert boot.replicates[row] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("name", [name for name, member in STRUCTURES.items() if "comparisons" in member.kinds])
def test_any_structure_can_be_bootstrapped(name):
    prefs = simulated(5, 600, queries=2)
    boot = bootstrap(prefs, structure(name), replicates=80)
    limits = boot.intervals(0.9)
    assert (limits.lower <= limits.upper).all()
    inside = (limits.lower <= boot.scores.value) & (boot.scores.value <= limits.upper)
    assert inside.mean() > 0.85
    assert (limits.standard_error > 0).all()


def test_the_standard_error_of_a_win_rate_is_binomial():
    prefs = Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[60, 40])
    boot = bootstrap(prefs, structure("counting"), replicates=4000)
    assert boot.intervals().standard_error == pytest.approx([np.sqrt(0.24 / 100)] * 2, rel=0.04)


def test_the_bootstrap_agrees_with_the_sandwich_and_draws_whole_clusters():
    prefs = simulated(8, 4000, clusters=50, seed=2)
    boot = bootstrap(prefs, replicates=2000)
    batch = Batch.whole(prefs)
    scores = bradley_terry(batch)
    links = connectivity(batch.graphs)
    clustered = score_intervals(
        batch, scores, bradley_terry_curvature(batch, scores), connectivity=links, method="sandwich"
    )
    assert boot.intervals().standard_error == pytest.approx(clustered.standard_error, rel=0.12)
    # one worker's lean, repeated within the worker, must show
    rng = np.random.default_rng(0)
    likes_x = rng.random(40) < 0.5
    said = [(("x", "y") if x else ("y", "x"), w) for w, x in enumerate(likes_x) for _ in range(25)]
    prefs = Preferences.from_comparisons([s[0][0] for s in said], [s[0][1] for s in said], cluster=[s[1] for s in said])
    whole, rows = (bootstrap(prefs, replicates=600, clustered=c).intervals().standard_error for c in (True, False))
    assert whole / rows == pytest.approx([5.0, 5.0], rel=0.15)  # √25


# -- no limit ----------------------------------------------------------------------------------------------------
def test_replicates_without_a_maximum_likelihood_count_as_infinite():
    # y wins 2 of 30: it wins none with chance (28/30)^30 = .126
    prefs = Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[28, 2])
    for fast in (True, False):
        boot = bootstrap(
            prefs, bradley_terry if fast else structure("bradley-terry"), replicates=2000, options={"prior": 0.0}
        )
        infinite = np.isinf(boot.replicates).any(axis=1)
        assert boot.unlimited[0] == infinite.sum()
        assert infinite.mean() == pytest.approx((28 / 30) ** 30, abs=0.03)
        limits = boot.intervals()
        assert limits.upper[0] == np.inf
        assert limits.lower[1] == -np.inf
        assert np.isfinite([limits.lower[0], limits.upper[1]]).all()
        assert limits.notes[0].code == "unlimited replicates"
    weak = bootstrap(prefs, replicates=500)
    assert np.isfinite(weak.replicates).all()


def test_scores_that_a_replicate_leaves_open_widen_both_ends():
    # z hangs on two comparisons with x; without them nothing says where it is
    prefs = Preferences.from_comparisons(["x", "y", "x", "z"], ["y", "x", "z", "x"], count=[30, 30, 1, 1])
    boot = bootstrap(prefs, replicates=400, options={"prior": 0.0})
    assert np.isnan(boot.replicates[:, 2]).any()
    assert np.isinf(boot.replicates[:, 2]).any()
    limits = boot.intervals()
    assert np.isinf(limits.lower[2])
    assert np.isinf(limits.upper[2])
    assert np.isfinite([limits.lower[0], limits.upper[0]]).all()


def test_an_item_that_never_loses_has_no_upper_limit():
    prefs = Preferences.from_comparisons(["w", "x", "y"], ["x", "y", "x"], count=[10, 20, 20])
    limits = bootstrap(prefs, replicates=100).intervals()
    assert np.isinf(limits.upper).tolist() == [True, False, False]
    assert np.isfinite(limits.lower).all()


def test_too_few_replicates_and_too_many_scores_are_refused():
    prefs = simulated(4, 200)
    with pytest.raises(UsageError, match="at least 40"):
        bootstrap(prefs, replicates=20).intervals()
    with pytest.raises(UsageError, match="at least 2"):
        bootstrap(prefs, replicates=1)
    with pytest.raises(UsageError, match="at most 200,000,000"):
        bootstrap(prefs, replicates=10**9)


def test_no_judgments_no_replicates():
    assert bootstrap(Preferences.empty(), replicates=10).replicates.shape == (10, 0)


@pytest.mark.parametrize("name", ["log-odds", "counting", "borda", "bradley-terry"])
def test_a_single_judgment_is_no_certainty(name):
    # every replicate is the same judgment again: that is no sign of precision
    board = cc.rank(Preferences.from_comparisons(["a"], ["b"]), name, interval="bootstrap", replicates=50)
    assert (board.lower.tolist(), board.upper.tolist()) == ([-np.inf] * 2, [np.inf] * 2)
    assert (board.rank_lower.tolist(), board.rank_upper.tolist()) == ([1, 1], [2, 2])
    assert "too few judgments" in [note.code for note in board.notes]


def test_replicates_without_spread_are_no_certainty_about_ranks():
    board = cc.rank(Preferences.from_comparisons(["a"] * 3, ["b"] * 3), "counting", interval="bootstrap", replicates=50)
    assert (board.rank_lower.tolist(), board.rank_upper.tolist()) == ([1, 1], [2, 2])


def test_click_rates_are_not_shifted_to_a_common_mean():
    # two items, each shown first alone: their rates are two independent binomial proportions
    shown = Preferences.from_selections(
        ["q"] * 400, range(400), [1] * 400, ["x"] * 200 + ["y"] * 200, [1] * 60 + [0] * 140 + [1] * 100 + [0] * 100
    )
    drawn = bootstrap(shown, STRUCTURES["cascade"], replicates=2000).replicates
    expected = np.sqrt([0.3 * 0.7 / 200, 0.5 * 0.5 / 200])
    np.testing.assert_allclose(drawn.std(axis=0), expected, rtol=0.1)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1


@pytest.mark.parametrize("kind", ["orders", "choices"])
@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_replicates_of_lists_are_refits_of_the_drawn_lists(kind, prior, monkeypatch):
    """Chords from the point estimate against the structure itself on every draw."""
    random = np.random.default_rng(seed(21))
    rows = 300
    item = np.argsort(random.gumbel(size=(rows, 6)) + np.linspace(0, 1, 6), axis=1)[:, :4]
    owner = np.repeat(np.arange(rows), 4)
    if kind == "orders":
        place = np.sort(random.integers(1, 5, (rows, 4)), axis=1)
        prefs = Preferences.from_orders(None, owner, item.ravel(), place.ravel(), cluster=(owner // 2))
    else:
        prefs = Preferences.from_choices(None, owner, item.ravel(), np.tile([1, 0, 0, 0], rows))
    how = {"replicates": 60, "seed": 3, "options": {"prior": prior}}
    chords = bootstrap(prefs, structure("plackett-luce"), **how)
    monkeypatch.setattr("concordant.ranking.bootstrap.MANY_LISTS", 10**9)
    refits = bootstrap(prefs, structure("plackett-luce"), **how)
    np.testing.assert_allclose(chords.replicates, refits.replicates, atol=1e-7)
    assert np.ptp(chords.replicates, axis=0).min() > 0.05
