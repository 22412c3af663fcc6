"""Noise verdicts against exact laws by enumeration, plain loops over the same draws, and small simulations."""

from __future__ import annotations

from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import comb

import numpy as np
import pandas
import pytest
from scipy.stats import beta, binom, binomtest, false_discovery_control

from concordant.auditing import noise as resampling
from concordant.auditing.cycle_tests import DOUBT, benjamini_hochberg, bottlenecks, cycle_test
from concordant.auditing.noise import ACYCLIC, CYCLIC, NEARBY, WITHIN_NOISE, cyclic_tables, explained, noise
from concordant.errors import UsageError
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.edge_tests import BETS, edge_tests
from concordant.ranking.multinomial import Atoms, streams
from plain import adjacency, held
from plain import wins as plain_wins


def votes_of(tables):
    """Preferences with one query per table {(winner, loser): times}; queries are numbered."""
    rows = [(*pair, q, times) for q, table in enumerate(tables) for pair, times in table.items() if times]
    winner, loser, query, count = (list(column) for column in zip(*rows, strict=True))
    return Preferences.from_comparisons(winner, loser, query, count=count)


def acyclic(edges):
    """Whether a set of (winner, loser) has no directed cycle."""
    sorter = TopologicalSorter()
    for winner, loser in edges:
        sorter.add(loser, winner)
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True


def tail(wins, votes):
    return Fraction(sum(comb(votes, x) for x in range(wins, votes + 1)), 2**votes)


def examined(prefs):
    batch = Batch.whole(prefs)
    net = Differences.of(batch.graphs)
    return batch, net, cycle_test(batch, net)


# -- one pair ----------------------------------------------------------------------------------------------------
def test_sign_tests_are_binomial_tails():
    cases = [(a, b) for a in range(8) for b in range(8) if a + b]
    prefs = votes_of([{("x", "y"): a, ("y", "x"): b} for a, b in cases])
    found = edge_tests(Batch.whole(prefs))
    assert found.above == pytest.approx([float(tail(a, a + b)) for a, b in cases], rel=1e-13)
    assert found.below == pytest.approx([float(tail(b, a + b)) for a, b in cases], rel=1e-13)
    assert found.exact.all() and found.independent


def test_ties_drop_out():
    prefs = Preferences.from_comparisons(["x"] * 9, ["y"] * 9, tie=[False] * 5 + [True] * 4)
    assert edge_tests(Batch.whole(prefs)).above[0] == 2.0**-5


def test_size_is_the_largest_tail_below_the_threshold():
    cases = [(n, float(t)) for n in range(1, 40) for t in [*(tail(x, 12) for x in range(1, 13)), 0.05, 0.011, 0.3]]
    prefs = votes_of([{("x", "y"): n} for n, _ in cases])
    found, _ = edge_tests(Batch.whole(prefs)).size(
        np.arange(len(cases)), np.array([t for _, t in cases]), np.zeros(len(cases))
    )
    plain = [max([float(tail(x, n)) for x in range(n + 1) if float(tail(x, n)) <= t], default=0.0) for n, t in cases]
    assert found == pytest.approx(plain, rel=1e-12)
    below = np.array([np.nextafter(float(tail(n - 1, n)), 0.0) for n in range(2, 40)])  # rounding is no reason to err
    prefs = votes_of([{("x", "y"): n} for n in range(2, 40)])
    assert edge_tests(Batch.whole(prefs)).size(np.arange(38), below, np.zeros(38))[0] == pytest.approx(below, rel=1e-12)


def test_pairs_beyond_doubt_are_taken_at_their_confidence_limit():
    cases = [(n, x) for n in (10, 40, 90) for x in range(n // 2 + 1, n + 1)]
    prefs = votes_of([{("x", "y"): x, ("y", "x"): n - x} for n, x in cases])
    threshold, doubt = np.full(len(cases), 0.02), np.full(len(cases), 0.003)
    found, sure = edge_tests(Batch.whole(prefs)).size(np.arange(len(cases)), threshold, doubt)
    for value, (n, x) in zip(found, cases, strict=True):
        limit = binomtest(n - x, n).proportion_ci(1 - 2 * 0.003, method="exact").high
        critical = min(k for k in range(n + 1) if float(tail(k, n)) <= 0.02)
        assert value == pytest.approx(binom.sf(critical - 1, n, min(limit, 0.5)), rel=1e-6)
    assert sure.tolist() == [float(tail(x, n)) <= 0.003 for n, x in cases]
    assert found.min() < 1e-20 < 0.015 < found.max()


def test_a_cycle_among_pairs_beyond_doubt_needs_no_more_votes_than_alone():
    circle = {("a", "b"): 33, ("b", "a"): 15, ("b", "c"): 33, ("c", "b"): 15, ("c", "a"): 33, ("a", "c"): 15}
    others = [*"abcdefgh"]
    below = {(i, j): 48 for i in others for j in others if i < j and j > "c"}
    _, _, test = examined(votes_of([circle, {**circle, **below}]))
    assert test.p[0] == pytest.approx(float(tail(33, 48)) / (1 - DOUBT), rel=0.01)
    assert test.p[0] <= test.p[1] * (1 + 1e-9) and test.p[1] == pytest.approx(test.p[0], rel=0.01)


def test_bets_hold_exactly_for_a_skewed_law_without_net_preference():
    """Three of four judgments are won with strength 1, the fourth lost with 3: E[x] = 0, and a sign test would err."""
    n = 14
    prefs = Preferences.from_comparisons(
        *zip(*[("x", "y")] * n + [("y", "x")] * n, strict=True), weight=[1.0] * n + [3.0] * n
    )
    p = {}
    for wins in range(1, n):  # all results of n judgments that have both kinds
        part = Preferences.from_comparisons(
            ["x"] * wins + ["y"] * (n - wins), ["y"] * wins + ["x"] * (n - wins),
            weight=[1.0] * wins + [3.0] * (n - wins),
        )  # fmt: skip
        found = edge_tests(Batch.whole(part))
        by_hand = np.mean([(1 + rate / 3) ** wins * (1 - rate) ** (n - wins) for rate in BETS])
        assert found.above[0] == pytest.approx(min(1.0, 1 / by_hand), rel=1e-10)
        assert not found.exact[0]
        p[wins] = found.above[0]
    law = {x: comb(n, x) * 0.75**x * 0.25 ** (n - x) for x in range(n + 1)}
    for t in p.values():
        assert sum(law[x] for x in p if p[x] <= t) <= t
    as_signs = sum(law[x] for x in law if float(tail(x, n)) <= 0.05)
    assert as_signs > 0.25  # what the bets are for
    assert len(prefs) == 2 * n


def test_a_cluster_counts_once():
    rows = [("x", "y", "ann")] * 6 + [("x", "y", "bob")] * 6 + [("y", "x", "bob")] * 6 + [("x", "y", "eve")] * 6
    winner, loser, cluster = zip(*rows, strict=True)
    found = edge_tests(Batch.whole(Preferences.from_comparisons(winner, loser, cluster=cluster)))
    assert found.votes.tolist() == [2] and found.above[0] == 0.25 and not found.independent


def test_pairs_of_rankings_are_not_independent():
    prefs = Preferences.from_orders([0] * 6, [0, 0, 0, 1, 1, 1], ["x", "y", "z"] * 2, [1, 2, 3, 1, 2, 2])
    found = edge_tests(Batch.whole(prefs))
    assert found.votes.tolist() == [2, 2, 1] and found.above.tolist() == [0.25, 0.25, 0.5]
    assert not found.independent and found.exact.all()


# -- cycles ------------------------------------------------------------------------------------------------------
def test_bottlenecks_against_trying_every_threshold():
    rng = np.random.default_rng(1)
    tables = []
    for _ in range(60):
        items = int(rng.integers(2, 8))
        tables.append({
            (f"{i}", f"{j}"): int(rng.integers(0, 6))
            for i in range(items) for j in range(items) if i != j and rng.random() < 0.7
        })  # fmt: skip
    tables = [table for table in tables if sum(table.values())]
    _, net, test = examined(votes_of(tables))
    p = rng.choice([0.01, 0.02, 0.03, 0.2, 0.4], len(net.winner))
    found = bottlenecks(net, p)
    for graph in range(len(net)):
        mine = slice(net.edge_start[graph], net.edge_start[graph + 1])
        edges = list(zip(net.winner[mine].tolist(), net.loser[mine].tolist(), p[mine].tolist(), strict=True))
        worst = min((t for t in set(p[mine]) if not acyclic([(w, x) for w, x, q in edges if q <= t])), default=np.inf)
        assert found[graph] == worst
    assert np.isfinite(found).sum() > 10 and np.isinf(found).sum() > 3
    assert (np.isfinite(test.threshold) == np.isfinite(found)).all()


SHAPES = {
    "triangle": ([(0, 1), (0, 2), (1, 2)], (6, 5, 4)),
    "four items, five pairs": ([(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], (5, 4, 5, 5, 4)),
    "some pairs beyond doubt": ([(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], (12, 3, 3, 11, 10)),
    "square": ([(0, 1), (1, 2), (2, 3), (0, 3)], (6, 5, 6, 4)),
    "all pairs of four items": ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], (4, 3, 3, 3, 3, 3)),
    "two triangles at one item": ([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (2, 4)], (4, 3, 4, 4, 3, 4)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_p_values_hold_in_every_acyclic_truth_by_enumeration(shape):
    """All samples of a small design, under every acyclic pattern of level, strong and weaker pairs."""
    pairs, votes = SHAPES[shape]
    results = list(product(*(range(n + 1) for n in votes)))
    tables = [
        {key: times for (i, j), n, x in zip(pairs, votes, result, strict=True)
         for key, times in (((i, j), x), ((j, i), n - x))}
        for result in results
    ]  # fmt: skip
    _, _, test = examined(votes_of(tables))
    wins = np.array(results)
    values = np.unique(test.p)
    values = values[values < 1]
    worst_naive, truths, closest = 0.0, 0, 0.0
    for pattern in product((0.0, 0.5, 1.0), repeat=len(pairs)):  # chance that the first of a pair is preferred
        if not acyclic([(i, j) if q > 0.5 else (j, i) for (i, j), q in zip(pairs, pattern, strict=True) if q != 0.5]):
            continue
        truths += 1
        law = np.ones(len(results))
        for column, (n, q) in enumerate(zip(votes, pattern, strict=True)):
            mass = np.array([comb(n, x) * q**x * (1 - q) ** (n - x) for x in range(n + 1)])
            law *= mass[wins[:, column]]
        chance = np.array([law[test.p <= value * (1 + 1e-12)].sum() for value in values])
        assert (chance <= values + 1e-12).all()
        closest = max(closest, (chance / values).max())
        for value in np.unique(test.threshold[np.isfinite(test.threshold)]):
            worst_naive = max(worst_naive, law[test.threshold <= value].sum() / value)
    assert truths > 20
    if shape in ("triangle", "square"):  # a single cycle needs no correction, and the test is as sharp as can be
        assert worst_naive <= 1 + 1e-9 and closest > 0.99 * (1 - DOUBT)
    else:  # without one it would be wrong
        assert worst_naive > 1.2 and closest > 0.6


def test_untestable_pairs_and_bridges_cost_nothing():
    triangle = {("a", "b"): 6, ("b", "c"): 6, ("c", "a"): 6}
    more = {("a", str(i)): 50 for i in range(5)} | {("0", "1"): 2, ("3", "4"): 2, ("2", "3"): 4}
    _, _, test = examined(votes_of([triangle, {**triangle, **more}]))
    assert test.p == pytest.approx([2.0**-6 / (1 - DOUBT)] * 2, rel=0.01)
    assert (test.p >= 2.0**-6 / (1 - DOUBT)).all()


def test_bonferroni_where_pairs_hang_together():
    """Rankings: the sum of the sizes of the pairs that may be on a cycle."""
    items = list("xyzyzxzxy") * 40
    judgment = np.repeat(np.arange(120), 3)
    prefs = Preferences.from_orders(0 * judgment, judgment, items, [1, 2, 3] * 120)
    _, _, test = examined(prefs)
    assert test.threshold[0] == pytest.approx(float(tail(80, 120)), rel=1e-10)
    assert test.p[0] == pytest.approx(3 * float(tail(80, 120)) / (1 - DOUBT), rel=0.01)


def test_false_alarms_at_the_boundary_and_what_no_correction_would_do():
    """A strict order of neighbours, all other pairs level: the hardest acyclic truth."""
    rng = np.random.default_rng(4)
    items, sets, number = 7, 800, 40
    first, second = np.triu_indices(items, 1)
    wins = np.where(second == first + 1, number, rng.binomial(number, 0.5, (sets, len(first))))
    tables = [
        {key: int(times) for i, j, x in zip(first, second, row, strict=True)
         for key, times in (((i, j), x), ((j, i), number - x))}
        for row in wins
    ]  # fmt: skip
    _, _, test = examined(votes_of(tables))
    upper = beta.ppf(0.999, (test.p <= 0.05).sum() + 1, sets - (test.p <= 0.05).sum())
    lower = beta.ppf(0.001, (test.p <= 0.05).sum(), sets - (test.p <= 0.05).sum() + 1)
    assert lower <= 0.05 and upper > 0.01  # valid, and not by saying nothing
    assert (test.threshold <= 0.05).mean() > 0.3


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(2).random(50) ** 3
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))
    assert benjamini_hochberg(np.zeros(0)).shape == (0,)
    assert explained(np.array([1e-4, 0.03, 1.0])).tolist() == [False, False, True]


# -- verdicts ----------------------------------------------------------------------------------------------------
def test_verdicts_and_their_evidence():
    strong = {("a", "b"): 30, ("b", "c"): 30, ("c", "a"): 30, ("a", "d"): 30, ("d", "b"): 3, ("b", "d"): 2}
    weak = {("a", "b"): 3, ("b", "c"): 2, ("c", "a"): 3}
    chain = {("a", "b"): 3, ("b", "c"): 2, ("a", "c"): 3}
    batch = Batch.whole(votes_of([strong, weak, chain]))
    found = noise(batch, replicates=50)
    assert found.verdict.tolist() == [CYCLIC, WITHIN_NOISE, ACYCLIC]
    cycle = found.cycles[0]
    assert list(found.cycles) == [0]
    edges = set(zip(found.net.winner.tolist(), found.net.loser.tolist(), strict=True))
    assert all((int(i), int(j)) in edges for i, j in zip(cycle, np.roll(cycle, -1), strict=True))
    assert [batch.prefs.items[int(batch.item[node])] for node in cycle] == ["a", "b", "c"]
    assert found.p[2] == 1.0 and found.winner.tolist()[:2] == [-1, -1]
    assert np.isnan(found.winner_share[:2]).all() and found.winner_share[2] > 0.7
    assert found.cyclic_share == pytest.approx(2 / 3)


def test_nothing_to_resample():
    """One item, all ties, weights that cancel: acyclic, and no error."""
    prefs = Preferences.from_comparisons(["x", "y"], ["y", "z"], tie=[True, True])
    found = noise(Batch.whole(prefs), replicates=3)
    assert found.verdict.tolist() == [ACYCLIC] and found.acyclic_share.tolist() == [1.0] and len(found.edge_p) == 0
    alone = Preferences.from_orders([0], [0], ["x"], [1])
    assert noise(Batch.whole(alone), replicates=3).verdict.tolist() == [ACYCLIC]
    assert len(noise(Batch.whole(Preferences.empty()))) == 0
    for options in ({"replicates": 0}, {"level": 0.0}, {"level": 1.0}):
        with pytest.raises(UsageError):
            noise(Batch.whole(prefs), **options)


# -- the bootstrap -----------------------------------------------------------------------------------------------
def kinds_of_preferences():
    rng = np.random.default_rng(7)
    rows = 60
    item = np.array([rng.permutation(5)[:2] for _ in range(rows)])
    query = rng.integers(0, 3, rows)
    plain = Preferences.from_comparisons(item[:, 0], item[:, 1], query, tie=rng.random(rows) < 0.2)
    clusters = Preferences.from_comparisons(item[:, 0], item[:, 1], query, cluster=rng.integers(0, 6, rows))
    weights = Preferences.from_comparisons(item[:, 0], item[:, 1], query, weight=rng.choice([0.5, 1.0, 2.0], rows))
    judgment, ranked = np.repeat(np.arange(12), 4), np.concatenate([rng.permutation(5)[:4] for _ in range(12)])
    orders = Preferences.from_orders(judgment % 2, judgment, ranked, rng.integers(1, 4, 48))
    ratings = Preferences.from_ratings(judgment % 2, ranked, rng.integers(1, 6, 48), judgment=judgment)
    return {"comparisons": plain, "clusters": clusters, "weights": weights, "orders": orders, "ratings": ratings}


@pytest.mark.parametrize("kind", ["comparisons", "clusters", "weights", "orders", "ratings"])
def test_replicates_against_plain_loops_with_the_same_draws(kind):
    prefs = kinds_of_preferences()[kind]
    batch = Batch.whole(prefs)
    replicates = 70  # two streams
    found = noise(batch, replicates=replicates, seed=5)
    for graph, atoms in enumerate(Atoms.of(batch, 5)):
        drawn = np.concatenate([atoms.drawn(stream) for stream in streams(len(atoms.count), replicates)])
        m, judgments = held(batch, graph)
        each = [adjacency(prefs.kind, one, m) for _, one in judgments]
        data = sum(times * y for (times, _), y in zip(judgments, each, strict=True))
        data = np.where(np.abs(data - data.T) > 1e-9, data - data.T, 0.0)
        winner = [i for i in range(m) if all(data[i, j] > 0 for j in range(m) if j != i)]
        signs, good, still = np.zeros((m, m)), 0, 0
        for row in drawn:
            times = row[atoms.member] * atoms.multiplicity
            n = sum(t * y for t, y in zip(times, each, strict=True))
            d = np.where(np.abs(n - n.T) > 1e-9, n - n.T, 0.0)
            signs += (np.sign(d) == np.sign(data)) & (data != 0)
            good += acyclic([(i, j) for i in range(m) for j in range(m) if d[i, j] > 0])
            still += bool(winner) and all(d[winner[0], j] > 0 for j in range(m) if j != winner[0])
        begin = batch.node_start[graph]
        edges = slice(found.net.edge_start[graph], found.net.edge_start[graph + 1])
        i, j = found.net.winner[edges] - begin, found.net.loser[edges] - begin
        assert (data[i, j] > 0).all() and len(i) == (data > 0).sum()
        assert found.edge_sign[edges] == pytest.approx(signs[i, j] / replicates)
        assert found.acyclic_share[graph] == pytest.approx(good / replicates)
        if winner:
            assert found.winner[graph] == begin + winner[0]
            assert found.winner_share[graph] == pytest.approx(still / replicates)
        else:
            assert found.winner[graph] == -1


def test_graphs_of_very_many_pairs_get_fewer_replicates_or_none(monkeypatch):
    batch = Batch.whole(votes_of([{("a", "b"): 5, ("b", "c"): 4, ("a", "c"): 5}, {("a", "b"): 5}]))
    monkeypatch.setattr(resampling, "MOST", 45)
    found = noise(batch, replicates=20)
    assert found.replicates.tolist() == [15, 20]
    monkeypatch.setattr(resampling, "MOST", 20)
    found = noise(batch, replicates=20)
    assert found.replicates.tolist() == [0, 20] and found.verdict.tolist() == [ACYCLIC, ACYCLIC]
    assert np.isnan(found.acyclic_share).tolist() == [True, False]
    assert np.isnan(found.edge_sign).tolist() == [True, True, True, False]
    assert found.expected_cyclic_share == 0.0


@pytest.mark.parametrize("kind", ["comparisons", "clusters", "weights", "orders"])
def test_a_query_does_not_depend_on_the_others(kind):
    prefs = kinds_of_preferences()[kind]
    together = noise(Batch.whole(prefs), replicates=60, seed=3)
    alone = noise(Batch.whole(prefs, np.array([1])), replicates=60, seed=3)
    again = noise(Batch.whole(prefs), replicates=60, seed=4)
    edges = slice(together.net.edge_start[1], together.net.edge_start[2])
    assert np.array_equal(together.edge_sign[edges], alone.edge_sign)
    assert np.array_equal(together.edge_p[edges], alone.edge_p)
    for name in ("acyclic_share", "expected_cyclic", "p", "verdict", "winner_share"):
        assert np.array_equal(getattr(together, name)[1:2], getattr(alone, name), equal_nan=True), name
    assert not np.array_equal(together.edge_sign, again.edge_sign)


def test_the_acyclic_population_nearby():
    """One vote for each of three pairs: each direction holds with chance (1 + ½)/2 = ¾, or ½ where made level."""
    order = {("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 1}
    circle = {("a", "b"): 1, ("b", "c"): 1, ("c", "a"): 1}
    replicates = 6000
    found = noise(Batch.whole(votes_of([order, circle])), replicates=replicates).expected_cyclic
    truth = np.array([0.75 * 0.75 * 0.25 + 0.25 * 0.25 * 0.75, 0.5 * (0.75**2 + 0.25**2)])
    assert (np.abs(found - truth) < 4 * np.sqrt(truth / replicates)).all()
    assert NEARBY > 200 * 10**6  # no stream of the bootstrap has its number


# -- real votes --------------------------------------------------------------------------------------------------
def test_three_votes_a_pair_cannot_show_a_cycle(small_data):
    """Eight models, 80 questions, some three verdicts a pair: nearly every question shows a cycle, none is real."""
    table = pandas.read_csv(small_data / "prd_vicuna80" / "ratings.csv.gz")
    first = (table["score"] != 2).to_numpy()
    a, b = table["model_a"].to_numpy(), table["model_b"].to_numpy()
    prefs = Preferences.from_comparisons(
        np.where(first, a, b),
        np.where(first, b, a),
        table["question_id"].to_numpy(),
        tie=(table["score"] == 3).to_numpy(),
    )
    batch = Batch.whole(prefs)
    place = np.arange(len(batch.item))
    found = noise(batch, replicates=20, place=place)
    plain = [
        not acyclic([(i, j) for i in range(len(d)) for j in range(len(d)) if d[i, j] > 0])
        for d in (wins - wins.T for wins in (plain_wins(batch, graph)[0] for graph in range(len(batch))))
    ]
    assert sum(plain) > 70 and ((found.verdict != ACYCLIC) == plain).all()
    assert (found.verdict != CYCLIC).all() and explained(found.p).all() and not found.cycles


@pytest.mark.parametrize("seed", range(5))
def test_cycles_of_small_tables(seed):
    """Who beats whom has a cycle when some power of the table has a trace."""
    rng = np.random.default_rng(seed)
    items = int(rng.integers(1, 8))
    beats = np.triu(rng.random((200, items, items)) < 0.3, 1)
    beats |= np.swapaxes(np.triu(rng.random((200, items, items)) < 0.1, 1), 1, 2) & ~np.swapaxes(beats, 1, 2)
    walks, found = beats.astype(float), np.zeros(200, bool)
    for _ in range(items):
        found |= np.trace(walks, axis1=1, axis2=2) > 0
        walks = ((walks @ beats) > 0).astype(float)
    assert cyclic_tables(beats).tolist() == found.tolist()
