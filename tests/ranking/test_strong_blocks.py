"""Blocks fitted apart: by scipy, beside the fit with next to no prior, limits of both; who stands outermost."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import concordant as cc
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import counted_comparisons
from concordant.ranking import separated
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.contrasts import Gauge
from concordant.ranking.intervals import separated_items
from concordant.ranking.rank_intervals import outermost as who_is_outermost
from concordant.ranking.strong_blocks import blocks_of_pairs, outermost, without_prior
from concordant.ranking.structures import STRUCTURES
from seeds import seed

MEMBER = STRUCTURES["bradley-terry"]


def logs(rng, queries, items, judgments, spread, ties=0.0, most=3):
    """Sparse queries: firm blocks, chains and blocks of separated items, several components, some of one item."""
    query = np.repeat(np.arange(queries), judgments)
    a = rng.integers(0, items, len(query))
    b = (a + rng.integers(1, items, len(query))) % items
    ability = rng.normal(0, spread, (queries, items))
    won = rng.random(len(query)) < 1 / (1 + np.exp(ability[query, b] - ability[query, a]))
    tie = rng.random(len(query)) < ties
    return cc.Preferences.from_comparisons(
        np.where(won, a, b).tolist(),
        np.where(won, b, a).tolist(),
        query=query.tolist(),
        count=rng.integers(1, most + 1, len(query)).tolist(),
        tie=tie.tolist(),
    )


def fitted(prefs):
    batch = Batch.whole(prefs)
    linked = connectivity(batch.graphs)
    gauge = Gauge.of(batch.node_start, linked)
    return batch, linked, without_prior(batch, bradley_terry, {}, linked, gauge, blocks_of_pairs)


def centred(value, block):
    return value - (np.bincount(block, value) / np.bincount(block))[block]


@pytest.mark.parametrize(("items", "judgments", "spread"), [(6, 14, 1.5), (14, 26, 0.7), (30, 70, 3.0)])
def test_scores_within_blocks_are_those_without_a_prior(items, judgments, spread):
    batch, linked, (scores, order) = fitted(logs(np.random.default_rng(seed(51)), 40, items, judgments, spread, 0.1))
    block = linked.block
    several = np.bincount(block)[block] > 1
    assert (several & linked.separated).any() and (linked.separated & ~several).any()
    for value in (scores.value, order):
        assert centred(value, block)[several] == pytest.approx(
            centred(bradley_terry(batch, prior=1e-10, max_iterations=400).value, block)[several], abs=2e-3
        )
    assert centred(scores.value, block)[several] == pytest.approx(
        centred(bradley_terry(batch, prior=1e-10, max_iterations=400).value, block)[several], abs=1e-6
    )


def test_each_block_has_its_own_maximum_by_scipy():
    batch, linked, (scores, _) = fitted(logs(np.random.default_rng(seed(52)), 12, 8, 20, 1.5, 0.2))
    graphs, block, seen = batch.graphs, linked.block, 0
    for own in np.unique(block[np.bincount(block)[block] > 1]):
        nodes = np.flatnonzero(block == own)
        pairs = np.flatnonzero((block[graphs.first] == own) & (block[graphs.second] == own))
        first, second = (np.searchsorted(nodes, ends[pairs]) for ends in (graphs.first, graphs.second))

        def lost(s, first=first, second=second, pairs=pairs):
            margin = s[first] - s[second]
            return graphs.above[pairs] @ np.logaddexp(0, -margin) + graphs.below[pairs] @ np.logaddexp(0, margin)

        best = minimize(lost, np.zeros(len(nodes)), method="BFGS", options={"gtol": 1e-9}).x
        found = scores.value[nodes]
        assert found - found.mean() == pytest.approx(best - best.mean(), abs=1e-5)
        seen += 1
    assert seen > 12


def test_what_is_above_the_firm_is_far_above_and_what_is_below_far_below():
    batch, linked, (scores, _) = fitted(logs(np.random.default_rng(seed(53)), 30, 12, 24, 1.5))
    graphs, firm = batch.graphs, linked.compared & ~linked.separated
    for ends, wins in (((graphs.first, graphs.second), graphs.above), ((graphs.second, graphs.first), graphs.below)):
        beat = wins > 0
        winner, loser = ends[0][beat], ends[1][beat]
        mixed = (firm[winner] != firm[loser]) & (linked.block[winner] != linked.block[loser])
        assert mixed.any()
        assert (scores.value[winner] - scores.value[loser])[mixed].min() > 745  # e to minus this is 0


# -- limits of both ways -----------------------------------------------------------------------------------------
def by_the_prior(batch, fit, options, *_):
    found = fit(batch, **{**options, "prior": 1e-9})
    return found, found.value


@pytest.mark.parametrize(
    ("items", "judgments", "spread", "ties", "most"),
    [(5, 9, 1.0, 0.0, 3), (12, 26, 1.0, 0.0, 3), (12, 60, 2.5, 0.0, 3), (8, 30, 5.0, 0.0, 40), (12, 30, 1.0, 0.2, 3)],
)
def test_limits_and_ranks_are_those_of_a_fit_with_next_to_no_prior(monkeypatch, items, judgments, spread, ties, most):
    rng = np.random.default_rng(seed(54))
    batch = Batch.whole(logs(rng, 60, items, judgments, spread, ties, most))
    linked = connectivity(batch.graphs)
    start = np.ones(batch.nodes, np.int64), np.full(batch.nodes, items)

    def found():
        open_ = separated_items(batch, MEMBER, linked, {}, None, "sandwich" if ties else "hessian")
        limits = np.stack(open_.ends(0.025, np.zeros(batch.nodes)))
        return limits, np.stack(who_is_outermost(*(each.copy() for each in start), open_, 0.95))

    limits, ranks = found()
    monkeypatch.setattr(separated, "without_prior", by_the_prior)
    others, their_ranks = found()
    finite = np.isfinite(others)
    assert finite.sum() > 60
    assert limits[finite] == pytest.approx(others[finite], rel=2e-5, abs=2e-5)
    assert np.array_equal(ranks, their_ranks)
    assert most < 40 or (ranks != np.stack(start)).sum() > 60


def test_the_limit_of_a_block_above_the_firm_is_that_of_scipy():
    """a and b beat each other, and both the firm: b is where it is likeliest, the firm as its law has it."""
    firm = np.array([[0, 7, 9], [5, 0, 6], [4, 8, 0]])
    wins = np.zeros((5, 5))
    wins[:3, :3], wins[3, 4], wins[4, 3], wins[3, 0], wins[4, 1] = firm, 3, 1, 2, 4

    def lost(s, w):
        return float((w * np.logaddexp(0, s[None, :] - s[:, None])).sum())

    best = minimize(lambda s: lost(np.append(s, -s.sum()), firm), np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    at = np.append(best, -best.sum())
    p = 1 / (1 + np.exp(at[None, :] - at[:, None]))
    bend = (firm + firm.T) * p * (1 - p)
    hessian = np.diag(bend.sum(axis=1)) - bend
    between = wins.copy()
    between[:3, :3] = 0
    least = 4 * (np.log(4) - 0.75 * np.log(3))  # of a and b against each other: 3 of 4

    def below(delta, target):
        def whole(x):
            s = np.array([x[0], x[1], -x[0] - x[1], delta, delta])
            s[7 - target] = x[2]
            away = s[:3] - at
            return 0.5 * float(away @ hessian @ away) + lost(s, between) - least

        return minimize(whole, np.append(best, delta), method="BFGS", options={"gtol": 1e-8}).fun + np.log(0.025)

    winner, loser = np.nonzero(wins)
    board = cc.rank(counted_comparisons(winner, loser, count=wins[winner, loser].astype(int)), interval="hessian")
    for target in (3, 4):
        want = brentq(lambda delta, target=target: below(delta, target), -6, 8, xtol=1e-10)
        assert board.lower[board.item == target][0] == pytest.approx(want, abs=1e-5)


def test_a_firm_item_without_residuals_takes_no_limit_from_others():
    """Last tied once with one item, whose score is its own then: the sandwich has nothing to say of it alone."""
    rng = np.random.default_rng(seed(55))
    i, j = rng.integers(0, 5, 200), rng.integers(0, 5, 200)
    some = [(str(a), str(b), False) for a, b in zip(i, j, strict=True) if a != b]
    winner, loser, tie = zip(*some, *[("top", "0", False)] * 9, ("last", "1", True), strict=True)
    board = cc.rank(cc.Preferences.from_comparisons(winner, loser, tie=tie), interval="sandwich")
    items = board.items.take(board.item).to_pylist()
    assert np.isfinite(board.lower[items.index("top")])


# -- who stands outermost ----------------------------------------------------------------------------------------
def test_outermost_blocks_by_brute_force():
    rng = np.random.default_rng(seed(56))
    batch = Batch.whole(logs(rng, 150, 5, 8, 3.0))
    linked, graphs, found = connectivity(batch.graphs), batch.graphs, set()
    gauge = Gauge.of(batch.node_start, linked)
    up, down = graphs.above > 0, graphs.below > 0
    winner = np.concatenate([graphs.first[up], graphs.second[down]])
    loser = np.concatenate([graphs.second[up], graphs.first[down]])
    for side, (over, under) in enumerate(((winner, loser), (loser, winner))):
        ahead = outermost(winner, loser, linked, gauge)[side]
        for group in np.unique(gauge.group):
            nodes = np.flatnonzero(gauge.group == group)
            blocks = set(linked.block[nodes].tolist())
            passed = {int(linked.block[b]) for a, b in zip(over, under, strict=True)
                      if linked.block[a] != linked.block[b]}  # fmt: skip
            first = sorted(blocks - passed)
            one = len(first) == 1 and len(blocks) > 1
            own = nodes[np.isin(linked.block[nodes], first)]
            firm = linked.compared & ~linked.separated & ~gauge.lone
            lone = gauge.lone[nodes].any()
            one = one and (lone or not firm[own].any())
            assert ahead[nodes].tolist() == [bool(one and linked.block[node] in first) for node in nodes]
            found.add((one, bool(lone)))
    assert len(found) == 4
