"""How sure the top is, and what would settle it: against closed forms, brute force and refitted simulations."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

import concordant as cc
from concordant.auditing import scores_covariance
from concordant.auditing.scores_covariance import blocks, fitted
from concordant.auditing.stopping import (
    STATUS,
    errors,
    least_multiples,
    multiple_at,
    multiple_with_truth_unknown,
    range_of_multiples,
    settling,
)
from concordant.errors import InputError, UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons
from concordant.ranking.bradley_terry import bradley_terry

LLMFAO = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"


def two(wins: int, losses: int) -> Preferences:
    return Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[wins, losses])


def normal(draws: int, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, draws, n), np.float32)


# -- two items: everything in closed form ------------------------------------------------------------------------
def test_two_items_are_the_normal_law_of_the_log_odds() -> None:
    wins, losses = 60, 40
    found = settling(two(wins, losses), draws=40_000, prior=0.0)
    n, p = wins + losses, wins / (wins + losses)
    t = np.log(p / (1 - p)) * np.sqrt(n * p * (1 - p))  # gap over its standard error, by hand
    assert found.lead[0, 0] == pytest.approx(t, rel=1e-6)
    assert found.probability[0, 0] == pytest.approx(ndtr(t), abs=0.004)
    assert STATUS[found.status[0, 0]] == "settled"
    assert found.extra[0, 0] == found.assured[0, 0] == 0


def test_two_items_need_z_over_t_squared_times_the_data() -> None:
    found = settling(two(55, 45), draws=40_000, prior=0.0)
    t = np.log(55 / 45) * np.sqrt(100 * 0.55 * 0.45)
    z = ndtri(0.95)
    assert found.extra[0, 0] == pytest.approx(((z / t) ** 2 - 1) * 100, rel=0.05)
    assert found.low[0, 0] == pytest.approx(max((z / (t + ndtri(0.9))) ** 2 - 1, 0) * 100, abs=8)
    assert np.isinf(found.high[0, 0])  # t − 1.28 < 0
    # P(found and true sign agree) with c times the data: a bivariate normal orthant, correlation √(1 − 1/c)
    c = 1 + found.assured[0, 0] / 100
    rho = np.sqrt(1 - 1 / c)
    law = multivariate_normal([0, 0], [[1, -rho], [-rho, 1]])
    wrong = law.cdf([t / rho, -t]) + law.cdf([-t / rho, t])
    assert 1 - wrong == pytest.approx(0.95, abs=0.004)
    assert STATUS[found.status[0, 0]] == "open"


def test_equal_scores_are_called_equal() -> None:
    found = settling(two(50, 50), draws=20_000)
    assert STATUS[found.status[0, 0]] == "equal scores at the boundary"
    assert found.probability[0, 0] == pytest.approx(0.5, abs=0.02)
    assert np.isinf(found.extra[0, 0])
    assert np.isinf(found.high[0, 0])
    # still the truth may lie either side: ½ + asin(√(1 − 1/c))/π = level
    c = 1 / (1 - np.sin(np.pi * (0.95 - 0.5)) ** 2)
    assert found.assured[0, 0] == pytest.approx((c - 1) * 100, rel=0.15)


def test_ties_only() -> None:
    votes = Preferences.from_comparisons(["x", "x"], ["y", "z"], tie=[True, True], count=[10, 10])
    found = settling(votes)
    assert STATUS[found.status[0, 0]] == "equal scores at the boundary"
    assert found.probability[0, 0] < 0.6


# -- the pieces against brute force ------------------------------------------------------------------------------
@pytest.mark.parametrize("top", [1, 2, 4])
def test_least_multiple_of_a_draw_is_the_largest_ratio(top: int) -> None:
    rng = np.random.default_rng(top)
    value = -np.sort(-rng.normal(size=(3, 6)), axis=1)
    error = rng.normal(size=(3, 50, 6)).astype(np.float32)
    inside = np.broadcast_to(np.arange(6) < top, (3, 6))
    found = least_multiples(value, error, inside)
    for g in range(3):
        for d in range(50):
            ratios = [
                (error[g, d, j] - error[g, d, i]) / (value[g, i] - value[g, j])
                for i in range(top)
                for j in range(top, 6)
            ]
            assert found[g, d] == pytest.approx(max(0.0, *ratios), rel=1e-4, abs=1e-6)


def test_errors_have_the_covariance_of_the_differences() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(2, 4, 5))
    covariance = root @ root.swapaxes(1, 2)
    covariance -= covariance.mean(axis=1, keepdims=True)
    covariance -= covariance.mean(axis=2, keepdims=True)  # a gauge: singular
    drawn = errors(covariance, normal(200_000, 4)[0]).astype(float)
    for g in range(2):
        spread = np.cov((drawn[g] - drawn[g][:, :1]).T)[1:, 1:]
        own = covariance[g]
        want = own - own[:1] - own[:, :1] + own[0, 0]
        assert spread == pytest.approx(want[1:, 1:], rel=0.03, abs=0.05)


def test_assured_multiple_is_where_found_and_true_sets_agree() -> None:
    """A second simulation, straight from the definition, at the multiple found."""
    rng = np.random.default_rng(5)
    value = np.array([[1.0, 0.6, 0.5, 0.1, -2.2]])
    root = rng.normal(size=(5, 5)) * 0.4
    covariance = (root @ root.T)[None]
    for top in (1, 2, 3):
        one, two_ = (errors(covariance, part) for part in normal(40_000, 5, seed=top))
        c = float(multiple_with_truth_unknown(value, one, two_, top, 0.9, 1000.0)[0])
        now = rng.multivariate_normal(value[0], covariance[0] * (1 - 1 / c), 40_000)
        truth = now + rng.multivariate_normal(np.zeros(5), covariance[0] / c, 40_000)
        same = [set(a[:top]) == set(b[:top]) for a, b in zip(np.argsort(-now), np.argsort(-truth), strict=True)]
        assert np.mean(same) == pytest.approx(0.9, abs=0.008)


def test_range_of_multiples_brackets_and_opens() -> None:
    low, high = range_of_multiples(np.array([4.0, 0.25, np.inf]), 0.95, 0.8)
    t = ndtri(0.95) / np.sqrt(np.array([4.0, 0.25]))
    assert low[:2] == pytest.approx((ndtri(0.95) / (t + ndtri(0.9))) ** 2)
    assert np.isinf(high[0])
    assert high[1] == pytest.approx((ndtri(0.95) / (t[1] - ndtri(0.9))) ** 2)
    assert np.isinf(high[2])
    assert multiple_at(np.array([[0.0, 1.0, 2.0, 3.0] * 5]), 0.5)[0] in (1.0, 4.0)


# -- the whole against refitted simulations ----------------------------------------------------------------------
def drawn_again(prefs: Preferences, value: np.ndarray, factor: int, sets: int, seed: int) -> np.ndarray:
    """Scores of data sets drawn from the fitted model, each pair ``factor`` times as often; (sets, items)."""
    rng = np.random.default_rng(seed)
    graphs = Batch.whole(prefs).graphs
    n = np.rint(graphs.above + graphs.below).astype(int) * factor
    p = 1 / (1 + np.exp(value[graphs.second] - value[graphs.first]))
    wins = rng.binomial(n, p, (sets, len(n)))
    query = np.repeat(np.arange(sets), len(n))
    first, second = np.tile(graphs.first, sets), np.tile(graphs.second, sets)
    count = np.concatenate([wins.ravel(), (n - wins).ravel()])
    keep = count > 0
    again = counted_comparisons(
        pa.array(np.concatenate([first, second])[keep]),
        pa.array(np.concatenate([second, first])[keep]),
        query=pa.array(np.tile(query, 2)[keep]),
        count=count[keep],
    )
    return bradley_terry(Batch.whole(again)).value.reshape(sets, -1)


@pytest.mark.parametrize("top", [1, 3])
def test_probability_and_multiple_against_refitted_data(top: int) -> None:
    rng = np.random.default_rng(11)
    truth = np.array([1.2, 0.75, 0.6, 0.1, 0.0, -0.8])
    first = rng.integers(0, 6, 900)
    second = (first + rng.integers(1, 6, 900)) % 6
    won = rng.random(900) < 1 / (1 + np.exp(truth[second] - truth[first]))
    prefs = counted_comparisons(pa.array(np.where(won, first, second)), pa.array(np.where(won, second, first)))
    value = bradley_terry(Batch.whole(prefs)).value
    found = settling(prefs, top=top, draws=10_000)
    best = set(np.argsort(-value)[:top])

    def share(factor: int) -> float:
        scores = drawn_again(prefs, value, factor, 3000, seed=factor)
        return float(np.mean([set(row[:top]) == best for row in np.argsort(-scores, axis=1)]))

    assert share(1) == pytest.approx(float(found.probability[0, 0]), abs=0.03)
    factor = 1 + found.extra[0, 0] / 900
    assert share(int(np.ceil(factor))) > 0.93  # not fewer than promised
    if factor > 2:
        assert share(int(factor / 2)) < 0.94


def test_probability_falls_with_what_is_asked_and_more_votes_settle() -> None:
    prefs = cc.read(LLMFAO)
    found = settling(prefs, top=[1, 3], draws=4000)
    assert found.method == "sandwich"  # ties as half a win each
    assert found.probability.shape == (1, 2)
    label = found.to_arrow().to_pylist()
    assert label[0]["inside"] == "GPT 4"
    assert 0.8 < label[0]["probability"] < 0.95
    levels = [settling(prefs, level=level, draws=4000).extra[0, 0] for level in (0.9, 0.95, 0.99)]
    assert all(a < b for a, b in pairwise(levels))


# -- the covariance behind it ------------------------------------------------------------------------------------
def test_covariance_is_the_inverse_information_of_the_differences() -> None:
    prefs = Preferences.from_comparisons(
        ["a", "b", "b", "c", "a", "c"], ["b", "a", "c", "b", "c", "a"], count=[7, 3, 5, 4, 6, 2]
    )
    fit = fitted(prefs, prior=0.0)
    (block,) = blocks(fit, lambda value, _: np.arange(len(value)), main=True)
    s, n = block.value[0], len(block.value[0])
    judged = {frozenset("ab"): 10, frozenset("bc"): 9, frozenset("ac"): 8}
    labels = prefs.items.take(fit.batch.item[block.nodes[0]]).to_pylist()
    information = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            p = 1 / (1 + np.exp(s[j] - s[i]))
            d = np.zeros(n)
            d[i], d[j] = 1, -1
            information += judged[frozenset((labels[i], labels[j]))] * p * (1 - p) * np.outer(d, d)
    want = np.linalg.pinv(information)
    for i in range(n):
        for j in range(i):
            d = np.zeros(n)
            d[i], d[j] = 1, -1
            assert d @ block.covariance[0] @ d == pytest.approx(d @ want @ d, rel=1e-6)


# -- what cannot be settled --------------------------------------------------------------------------------------
def test_items_apart_are_said() -> None:
    votes = Preferences.from_comparisons(["a", "b", "a", "u"], ["b", "a", "c", "v"], count=[30, 10, 9, 5])
    found = settling(votes)
    assert found.outside.tolist() == [2]
    assert (found.notes[0].code, found.notes[0].numbers["apart"]) == ("items apart", 2)
    assert found.to_arrow().to_pylist()[0]["not_connected"] == 2


def test_an_item_that_never_lost_is_flagged() -> None:
    votes = Preferences.from_comparisons(["a", "b", "c", "a"], ["b", "c", "b", "c"], count=[3, 5, 6, 2])
    found = settling(votes)
    assert found.unlimited[0, 0]
    assert "unlimited at the boundary" in [note.code for note in found.notes]


def test_queries_of_different_sizes_side_by_side_and_one_without_a_top() -> None:
    query = ["q", "q", "q", "r", "r"]
    votes = Preferences.from_comparisons(
        ["a", "b", "c", "a", "b"], ["b", "c", "a", "b", "a"], query=query, count=[9, 9, 2, 30, 5]
    )
    both = settling(votes, top=[1, 2], draws=500)
    assert both.status[1].tolist() == [STATUS.index("settled"), STATUS.index("no such top")]
    assert np.isnan(both.probability[1, 1])
    assert both.inside[1, 1] == -1
    assert "no such top" in [note.code for note in both.notes]
    alone = settling(votes.select(["q"]), top=[1, 2], draws=500)
    assert np.array_equal(both.probability[0], alone.probability[0])  # whatever stands beside it


def test_large_components_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    truth = np.linspace(2, -2, 60)
    first = rng.integers(0, 60, 60_000)
    second = (first + rng.integers(1, 60, 60_000)) % 60
    won = rng.random(60_000) < 1 / (1 + np.exp(truth[second] - truth[first]))
    prefs = counted_comparisons(pa.array(np.where(won, first, second)), pa.array(np.where(won, second, first)))
    whole = settling(prefs, top=[2, 30])
    monkeypatch.setattr(scores_covariance, "LARGEST", 20)
    monkeypatch.setattr("concordant.auditing.stopping.LARGEST", 20)
    cut = settling(prefs, top=[2, 30])
    assert cut.approximate.all()
    assert not whole.approximate.any()
    assert any("more than 20 connected items" in note for note in cut.notes if note.code == "nearest drawn")
    assert np.array_equal(cut.inside, whole.inside)
    assert np.abs(cut.probability - whole.probability).max() < 0.05
    assert np.array_equal(cut.beyond, whole.beyond)


def test_a_single_judge_is_no_spread_to_go_by() -> None:
    judged = Preferences.from_comparisons(
        ["a", "a", "b", "a", "a", "b"],
        ["b", "c", "c", "b", "c", "c"],
        query=["q", "q", "q", "r", "r", "r"],
        count=[9, 9, 9, 5, 5, 5],
        cluster=["w", "w", "w", "w", "x", "y"],
    )
    found = settling(judged)
    assert found.method == "sandwich"
    assert STATUS[found.status[0, 0]] == "a single judgment or judge"
    assert np.isnan(found.probability[0, 0])
    assert np.isnan(found.assured[0, 0])
    assert np.isfinite(found.probability[1, 0])
    assert "single judgment" in [note.code for note in found.notes]


def test_rankings_and_davidson_ties() -> None:
    """A ranking of three is one draw, its three pairs are not: less is known than from as many votes."""
    orders = [["a", "b", "c"]] * 30 + [["b", "a", "c"]] * 22 + [["c", "a", "b"]] * 9
    ranked = Preferences.from_orders(
        ["q"] * 183, [i for i in range(61) for _ in range(3)], [x for order in orders for x in order], [1, 2, 3] * 61
    )
    winner = [x for order in orders for x in (order[0], order[0], order[1])]
    loser = [x for order in orders for x in (order[1], order[2], order[2])]
    as_list, as_votes = settling(ranked), settling(Preferences.from_comparisons(winner, loser))
    assert as_list.method == "sandwich"
    assert as_list.batch.judgments.tolist() == [61]
    assert as_votes.batch.judgments.tolist() == [183]
    assert as_list.lead[0, 0] == pytest.approx(as_votes.lead[0, 0], rel=0.35)
    tied = Preferences.from_comparisons(["x", "y", "x"], ["y", "x", "y"], tie=[False, False, True], count=[40, 25, 30])
    half, davidson = settling(tied, draws=20_000), settling(tied, draws=20_000, ties="davidson")
    assert davidson.method == "hessian"
    # a tie says nothing of who is better: both are the sign test of 40 against 25, (40 − 25)/√65
    assert davidson.lead[0, 0] == pytest.approx(15 / np.sqrt(65), rel=0.05)
    assert half.lead[0, 0] == pytest.approx(15 / np.sqrt(65), rel=0.05)


def test_nothing_compared_and_wrong_numbers_are_errors() -> None:
    alone = Preferences.from_orders(["q"], ["j"], ["a"], [1])
    with pytest.raises(InputError, match="no pair of items is compared"):
        settling(alone)
    with pytest.raises(InputError):
        settling(Preferences.empty())
    votes = two(3, 2)
    with pytest.raises(UsageError, match="top 2 is asked for, but the largest query has 2 items"):
        settling(votes, top=2)
    with pytest.raises(UsageError):
        settling(votes, top=0)
    with pytest.raises(UsageError):
        settling(votes, top=[])
    with pytest.raises(UsageError):
        settling(votes, level=0.4)
    with pytest.raises(UsageError):
        settling(votes, draws=3)
