"""Facts of populations against their definitions, straight from dense matrices and permutations."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import concordant as cc
from concordant.auditing import shapes as cycles_module
from concordant.auditing import transitivity as completions
from concordant.auditing import transitivity as triples_module
from concordant.auditing.shapes import Shapes, shapes
from concordant.auditing.transitivity import FAILS, HOLDS, UNDETERMINED
from concordant.io.read import read
from concordant.preferences.counted import declare
from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking.adjacency import mean_adjacency
from conftest import shared_data

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=60)


def random_graphs(seed: int, graphs: int = 6, most: int = 7) -> Graphs:
    """Ragged graphs with pairs never judged, level pairs, items never judged, multiples of 1/8; some like scores."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, most + 1, graphs)
    start = np.concatenate(([0], np.cumsum(size)))
    rows = []
    for graph, m in enumerate(size):
        share, scores = rng.choice([0.3, 0.7, 1.0]), rng.integers(0, 4, m)
        kind = rng.choice(["any", "scores", "up"])
        for i, j in itertools.combinations(range(m), 2):
            if rng.random() < share:
                net = {"any": rng.integers(-4, 5), "scores": scores[i] - scores[j], "up": rng.integers(0, 2 + j - i)}
                common = rng.integers(1, 4) / 8
                first, second = start[graph] + i, start[graph] + j
                rows += [
                    (first, second, common + max(net[kind], 0) / 8),
                    (second, first, common + max(-net[kind], 0) / 8),
                ]
    winner, loser, mass = (np.array(x) for x in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 3
    return Graphs.from_edges(start, winner.astype(np.int64), loser.astype(np.int64), mass)


def dense(mean: Graphs, graph: int) -> Any:
    """d as a matrix, NaN where a pair was never judged (and on the diagonal)."""
    first, last = mean.node_start[graph : graph + 2]
    d = np.full((last - first, last - first), np.nan)
    for pair in range(*mean.pair_start[graph : graph + 2]):
        i, j = mean.first[pair] - first, mean.second[pair] - first
        d[i, j] = mean.above[pair] - mean.below[pair]
        d[j, i] = -d[i, j]
    return d


def paths(d: Any) -> list[tuple[int, int, int]]:
    return [(i, j, k) for i, j, k in itertools.permutations(range(len(d)), 3) if d[i, j] > 0 and d[j, k] > 0]


def all_cycles(d: Any) -> list[tuple[int, ...]]:
    """Every simple cycle, from its smallest node."""
    nodes = range(len(d))
    orders = (o for size in range(3, len(d) + 1) for o in itertools.permutations(nodes, size) if o[0] == min(o))
    return [o for o in orders if all(d[a, b] > 0 for a, b in zip(o, (*o[1:], o[0]), strict=True))]


def reach(d: Any) -> Any:
    """Which nodes a path of edges leads to (Warshall)."""
    found = d > 0
    for k in range(len(d)):
        found |= found[:, [k]] & found[[k], :]
    return found


def outweighed(d: Any) -> dict[tuple[int, int], float]:
    """Judged pairs, level ones or edges, and by how much the heaviest path between them is heavier (acyclic d)."""
    heavy = np.where(d > 0, d, -np.inf)
    for j in range(len(d)):
        heavy = np.maximum(heavy, heavy[:, [j]] + heavy[[j], :])
    pairs = np.argwhere((d >= 0) & (heavy > d)).tolist()
    return {(i, k): heavy[i, k] - d[i, k] for i, k in pairs}


def one(matrix: Any, **_: Any) -> tuple[Graphs, Shapes]:
    """The facts of one graph with mean adjacency of ones shifted by half of d; NaN: never judged."""
    d = np.asarray(matrix, float)
    i, j = np.nonzero(~np.isnan(d) & ~np.eye(len(d), dtype=bool))
    mean = Graphs.from_edges(np.array([0, len(d)]), i, j, 10 + d[i, j] / 2)
    return mean, shapes(mean)


# -- the definitions ----------------------------------------------------------------------------------------------
@some
@given(seeds)
def test_counts_and_components(seed: int) -> None:
    mean = random_graphs(seed)
    found = shapes(mean)
    for g in range(len(mean)):
        d = dense(mean, g)
        judged = ~np.isnan(d)
        assert found.items[g] == len(d)
        assert (found.pairs[g], found.level[g]) == (judged.sum() // 2, (d == 0).sum() // 2)
        assert found.complete[g] == (judged.sum() == len(d) * (len(d) - 1))
        together = reach(np.where(judged, 1.0, 0.0)) | np.eye(len(d), dtype=bool)
        assert found.components[g] == len({tuple(row) for row in together})


@some
@given(seeds)
def test_strong_components_and_their_shortest_cycles(seed: int) -> None:
    mean = random_graphs(seed, graphs=4, most=6)
    found = shapes(mean)
    shown = found.cycles
    for g in range(len(mean)):
        d = dense(mean, g)
        both = (reach(d) & reach(d).T) | np.eye(len(d), dtype=bool)
        blocks = {tuple(np.flatnonzero(row).tolist()) for row in both}
        assert found.cycles.largest[g] == max(map(len, blocks))
        assert found.acyclic[g] == (not all_cycles(d))
        blocks = {block for block in blocks if len(block) > 1}
        assert shown.blocks[g] == len(blocks)
        mine = np.flatnonzero(shown.graph == g)
        assert len(mine) == min(len(blocks), cycles_module.MOST_CYCLES)
        for c in mine:
            nodes = (shown.node[shown.start[c] : shown.start[c + 1]] - mean.node_start[g]).tolist()
            (block,) = [block for block in blocks if set(nodes) <= set(block)]
            blocks.remove(block)
            rivals = [o for o in all_cycles(d) if set(o) <= set(block)]
            least = {o: min(d[a, b] for a, b in zip(o, (*o[1:], o[0]), strict=True)) for o in rivals}
            best = max(rivals, key=lambda o: (-len(o), least[o]))
            assert len(nodes) == len(best)
            assert shown.proven[c]
            assert (
                shown.least[c] == least[best] == min(d[a, b] for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True))
            )


@some
@given(seeds)
def test_low_noise_and_its_evidence(seed: int) -> None:
    mean = random_graphs(seed)
    found = shapes(mean)
    seen = found.triples
    for g in range(len(mean)):
        d, first = dense(mean, g), mean.node_start[g]
        known = [t for t in paths(d) if not np.isnan(d[t[0], t[2]])]
        lack = {(i, j, k): d[i, j] + d[j, k] - d[i, k] for i, j, k in known}
        broken = {t: x for t, x in lack.items() if x > 0}
        unknown = [t for t in paths(d) if np.isnan(d[t[0], t[2]])]
        counts = [seen.checked[g], seen.violated[g], seen.unknown[g], seen.left_out[g]]
        assert counts == [len(known), len(broken), len(unknown), 0]
        longer = {} if broken or not unknown or all_cycles(d) else outweighed(d)
        verdict = FAILS if broken or all_cycles(d) or longer else UNDETERMINED if unknown else HOLDS
        assert found.low_noise[g] == verdict
        if longer:
            way = (found.heavier_paths.node[slice(*found.heavier_paths.start[g : g + 2])] - first).tolist()
            assert tuple((found.heavier_paths.pair[g] - first).tolist()) == (way[0], way[-1])
            assert longer[way[0], way[-1]] == max(longer.values())
            weight = sum(d[a, b] for a, b in itertools.pairwise(way))
            assert found.heavier_paths.weights[g].tolist() == [d[way[0], way[-1]], weight]
        else:
            assert (found.heavier_paths.pair[g] == -1).all()
        assert found.heavier_paths.complete[g]
        if broken:
            i, j, k = (seen.worst[g] - first).tolist()
            assert broken[i, j, k] == max(broken.values())
            assert seen.weights[g].tolist() == [d[i, j], d[j, k], d[i, k]]
        else:
            assert (seen.worst[g] == -1).all() and np.isnan(seen.weights[g]).all()
        assert tuple((seen.missing[g] - first).tolist()) in unknown if unknown else (seen.missing[g] == -1).all()


@some
@given(seeds)
def test_row_sums(seed: int) -> None:
    mean = random_graphs(seed)
    found = shapes(mean).row_sums
    for g in range(len(mean)):
        d = dense(mean, g)
        total = np.nansum(d, axis=1)
        broken = {(i, k): total[k] - total[i] for i, k in np.argwhere(d > 0).tolist() if not total[i] > total[k]}
        assert (found.holds[g], found.violated[g]) == (not broken, len(broken))
        if broken:
            worst = tuple((found.worst[g] - mean.node_start[g]).tolist())
            assert broken[worst] == found.excess[g] == max(broken.values())
        else:
            assert (found.worst[g] == -1).all() and np.isnan(found.excess[g])


@some
@given(seeds)
def test_condorcet_winner_and_smith_set(seed: int) -> None:
    mean = random_graphs(seed)
    found = shapes(mean).winners
    for g in range(len(mean)):
        d, first = dense(mean, g), mean.node_start[g]
        m = len(d)
        others = ~np.eye(m, dtype=bool)
        winners = [w for w in range(m) if (d[w] > 0).sum() == m - 1]
        able = [w for w in range(m) if not (d[w][others[w]] <= 0).any()]  # NaN compares false: not ruled out
        verdict = HOLDS if winners else UNDETERMINED if able else FAILS
        assert found.verdict[g] == verdict
        assert found.winner[g] == (first + winners[0] if winners else -1)
        assert found.candidates[g] == (1 if winners else len(able))
        sets = (set(s) for size in range(1, m + 1) for s in itertools.combinations(range(m), size))
        smith = next(s for s in sets if all(d[x, y] > 0 for x in s for y in set(range(m)) - s))
        assert found.smith[g] == len(smith)
        assert set(np.flatnonzero(found.member[first : first + m]).tolist()) == smith


# -- laws ---------------------------------------------------------------------------------------------------------
@some
@given(seeds)
def test_low_noise_implies_the_rest_and_row_sums_are_optimal(seed: int) -> None:
    mean = random_graphs(seed, most=5)
    found = shapes(mean)
    assert found.acyclic[found.low_noise == HOLDS].all()
    assert found.row_sums.holds[found.low_noise == HOLDS].all()  # ICML, Lemma 14
    assert (found.winners.smith[found.winners.verdict == HOLDS] == 1).all()
    for g in np.flatnonzero(found.row_sums.holds):
        d = np.nan_to_num(dense(mean, g))
        assert found.acyclic[g]
        charged = [sum(max(d[b, a], 0) for a, b in itertools.combinations(o, 2))
                   for o in itertools.permutations(range(len(d)))]  # fmt: skip
        by_sums = np.argsort(-d.sum(axis=1), kind="stable")
        loss = sum(max(d[b, a], 0) for a, b in itertools.combinations(by_sums.tolist(), 2))
        assert loss == min(charged)


@some
@given(seeds)
def test_score_differences_hold_with_equality(seed: int) -> None:
    """Cossock and Zhang's graphs a_ij = y_i − y_j (ICML §3.1), with scores that are no binary fractions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 60, rng.integers(1, 12)) / 7
    i, j = (axis.ravel() for axis in np.indices((len(y), len(y))))
    up = y[i] > y[j]
    mean = Graphs.from_edges(np.array([0, len(y)]), i[up], j[up], 1e3 * (y[i] - y[j])[up])
    for few in (triples_module.FEW, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(triples_module, "FEW", few)
            found = shapes(mean)
        assert found.low_noise.tolist() == [HOLDS]
        assert found.row_sums.holds.all()


def test_what_only_rounding_makes_different_is_level() -> None:
    first, second = np.array([0, 0, 1, 1, 0]), np.array([1, 1, 0, 2, 2])
    found = shapes(Graphs.from_edges(np.array([0, 3]), first, second, np.array([0.1, 0.2, 0.3, 1.0, 1.0])))
    assert (found.level[0], found.pairs[0], found.row_sums.holds[0]) == (1, 3, True)
    assert (found.winners.verdict[0], found.winners.smith[0]) == (FAILS, 2)


def test_equality_survives_cancellation_and_a_shortfall_is_seen() -> None:
    """d is the small difference of large weights: rounding is relative to these."""
    weight = 1_000_003.0
    d12, d23 = 1 / 3, 1 / 7
    for lack, verdict in ((0.0, HOLDS), (1e-5, FAILS), (-1e-5, HOLDS)):
        above = np.array([weight + d12, weight + d23, weight + d12 + d23 - lack, weight, weight, weight])
        mean = Graphs.from_edges(np.array([0, 3]), np.array([0, 1, 0, 1, 2, 2]), np.array([1, 2, 2, 0, 1, 0]), above)
        assert shapes(mean).low_noise.tolist() == [verdict]


def test_a_cycle_fails_whatever_was_not_judged() -> None:
    ring = np.full((4, 4), np.nan)
    for i in range(4):
        ring[i, (i + 1) % 4], ring[(i + 1) % 4, i] = 1.0, -1.0
    _, found = one(ring)
    assert (found.triples.checked[0], found.triples.unknown[0], found.low_noise[0]) == (0, 4, FAILS)
    assert found.cycles.node.tolist() == [0, 1, 2, 3]
    ring[3, 0] = ring[0, 3] = np.nan
    assert one(ring)[1].low_noise[0] == UNDETERMINED


# -- published ------------------------------------------------------------------------------------------------------
@settings(max_examples=40)
@given(seeds)
def test_undetermined_is_open_either_way(seed: int) -> None:
    """Some values of the pairs never judged make Definition 4 hold, others fail."""
    mean = random_graphs(seed, most=6)
    found = shapes(mean)
    for g in np.flatnonzero(found.low_noise == UNDETERMINED):
        d = dense(mean, g)
        unknown = np.isnan(d)
        level = np.where(unknown, 0.0, d)
        assert one(level)[1].low_noise[0] == FAILS
        heavy = np.where(d > 0, d, -np.inf)
        for j in range(len(d)):
            heavy = np.maximum(heavy, heavy[:, [j]] + heavy[[j], :])
        filled = np.where(unknown, np.maximum(heavy, 0) - np.maximum(heavy.T, 0), d)
        assert one(filled)[1].low_noise[0] == HOLDS


def test_a_long_path_fails_whatever_was_not_judged() -> None:
    """a → b → c → d of weight 1 each and a → d of weight 2: d_ad must be at least 3, whatever a–c and b–d are."""
    d = np.full((4, 4), np.nan)
    for i, j, net in ((0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 3, 2.0)):
        d[i, j], d[j, i] = net, -net
    _, found = one(d)
    assert (found.triples.violated[0], found.triples.unknown[0], found.low_noise[0]) == (0, 2, FAILS)
    assert found.heavier_paths.node.tolist() == [0, 1, 2, 3]
    assert found.heavier_paths.weights.tolist() == [[2.0, 3.0]]
    d[0, 3], d[3, 0] = 3.0, -3.0
    assert one(d)[1].low_noise[0] == UNDETERMINED


def test_theorem_3() -> None:
    people = cc.Preferences.from_comparisons([0, 1, 0, 2], [1, 2, 2, 0], count=[25, 1, 50, 24])
    mean = mean_adjacency(Batch.whole(people))
    found = shapes(mean)
    np.testing.assert_allclose(mean.above - mean.below, [0.25, 0.26, 0.01], atol=1e-15)
    assert (found.low_noise[0], found.triples.checked[0]) == (HOLDS, 1)  # .26 = .25 + .01, with equality
    assert found.acyclic[0] and found.row_sums.holds[0]
    assert (found.winners.winner[0], found.winners.smith[0]) == (0, 1)


@pytest.mark.parametrize("p", [0.51, 0.6, 0.66, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("w", [0.5, 1.0, 1.5, 1.99, 2.0, 2.2, 3.0, 8.9, 9.1])
def test_two_orders_of_three(p: float, w: float) -> None:
    """ICML §3.1: 1 ≻ 2 ≻ 3 with p, 2 ≻ 3 ≻ 1 with 1 − p; low noise with 1 on top needs 2 ≤ w < p / (1 − p)."""
    q = 1 - p
    edges = [(0, 1, p), (1, 2, p), (0, 2, w * p), (1, 2, q), (2, 0, q), (1, 0, w * q)]
    winner, loser, mass = zip(*edges, strict=True)
    found = shapes(Graphs.from_edges(np.array([0, 3]), np.array(winner), np.array(loser), np.array(mass)))
    first_on_top = found.winners.winner[0] == 0
    assert (found.low_noise[0] == HOLDS and first_on_top) == (2 <= w < p / q)


# -- real votes ------------------------------------------------------------------------------------------------------
LLMFAO = Path(cc.__file__).parent / "apps" / "data" / "llmfao"


@pytest.mark.parametrize("file", ["crowd-comparisons.csv", "gpt4-crowd-comparisons.csv"])
@pytest.mark.parametrize("query", [None, "prompt"])
def test_votes_on_language_models(file: str, query: str | None) -> None:
    votes = read(LLMFAO / file, columns={"query": query} if query else None)
    mean = mean_adjacency(Batch.whole(votes))
    found = shapes(mean)
    assert len(found) == (13 if query else 1)
    for g in range(len(mean)):
        d = dense(mean, g)
        d[np.abs(d) < 1e-12] = 0.0
        m = len(d)
        edge = d > 0
        path = edge[:, :, None] & edge[None, :, :]  # i → j → k
        lack = d[:, :, None] + d[None, :, :] - d[:, None, :]
        with np.errstate(invalid="ignore"):
            violated = path & (lack > 1e-12)
        unknown = path & np.isnan(d)[:, None, :]
        seen = found.triples
        assert (seen.violated[g], seen.unknown[g]) == (violated.sum(), unknown.sum())
        assert seen.checked[g] == path.sum() - unknown.sum()
        if violated.any():
            i, j, k = seen.worst[g] - mean.node_start[g]
            assert lack[i, j, k] == pytest.approx(lack[violated].max(), abs=1e-15)
        total = np.nansum(d, axis=1)
        assert found.row_sums.violated[g] == (edge & (total[:, None] <= total + 1e-12)).sum()
        blocks = connected_components(edge, directed=True, connection="strong")[1]
        assert found.cycles.largest[g] == np.bincount(blocks).max()
        ways = np.linalg.matrix_power(edge.astype(float), 3)
        lengths = np.diff(found.cycles.start)[found.cycles.graph == g]
        assert (3 in lengths) == (np.trace(ways) > 0)
        _, holds = connected_components(~edge.T, directed=True, connection="strong")  # not beaten by: the Smith set is
        top = [
            b for b in set(holds) if edge[np.ix_(holds == b, holds != b)].all()
        ]  # a strong block, and beats the rest
        assert found.winners.smith[g] == min((holds == b).sum() for b in top) <= m
    assert (found.low_noise == FAILS).all()


def test_ratings_of_users_are_low_noise() -> None:
    """Rating differences are Cossock and Zhang's graphs: no user's are cyclic, all hold with equality."""
    rows = np.loadtxt(shared_data("ml-100k/u.data"), dtype=np.int64)
    user, number = np.unique(rows[:, 0], return_counts=True)
    some_users = np.isin(rows[:, 0], np.append(user[:60], user[number.argmax()]))
    ratings = cc.Preferences.from_ratings(rows[some_users, 0], rows[some_users, 1], rows[some_users, 2])
    found = shapes(mean_adjacency(Batch.whole(ratings)))
    assert (len(found), found.items.max()) == (61, 737)
    assert found.acyclic.all() and found.row_sums.holds.all()
    assert (found.low_noise == HOLDS).all() and found.triples.left_out.sum() == found.triples.unknown.sum() == 0
    best = np.array(
        [(mine == mine.max()).sum() for mine in (rows[rows[:, 0] == u, 2] for u in ratings.queries.tolist())]
    )
    assert ((found.winners.verdict == HOLDS) == (best == 1)).all()
    assert (found.winners.smith == best).all()


# -- the edges of what can be asked ------------------------------------------------------------------------------------
def test_empty_batches_single_items_and_all_ties() -> None:
    none = np.zeros(0, np.int64)
    assert len(shapes(Graphs.from_edges(np.zeros(1, np.int64), none, none, np.zeros(0)))) == 0
    alone = shapes(Graphs.from_edges(np.array([0, 1, 3]), none, none, np.zeros(0)))
    assert alone.low_noise.tolist() == [HOLDS, HOLDS]
    assert alone.winners.verdict.tolist() == [HOLDS, UNDETERMINED]
    assert alone.components.tolist() == alone.winners.smith.tolist() == [1, 2]
    assert alone.row_sums.holds.all() and alone.acyclic.all()
    ties = shapes(one(np.zeros((3, 3)))[0])
    assert (ties.level[0], ties.low_noise[0], ties.winners.verdict[0], ties.winners.smith[0]) == (3, HOLDS, FAILS, 3)
    votes = declare(cc.Preferences.from_comparisons(["a"], ["b"], query=["q"]), (["q"], ["never"]))
    open_ = shapes(mean_adjacency(Batch.whole(votes)))
    assert (open_.components[0], open_.winners.verdict[0], open_.winners.candidates[0]) == (2, UNDETERMINED, 2)


def test_too_many_paths_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.arange(30.0)
    mean, whole = one(scores[:, None] - scores)
    total = whole.triples.checked[0]
    monkeypatch.setattr(triples_module, "MOST_PATHS", 1000)
    part = shapes(mean)
    assert part.triples.checked[0] <= 1000 and part.triples.checked[0] + part.triples.left_out[0] == total
    assert (whole.low_noise[0], part.low_noise[0]) == (HOLDS, UNDETERMINED)


def test_a_search_for_paths_that_is_cut_off_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.full((6, 6), np.nan)
    for i, j, net in ((0, 5, 9.0), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0), (1, 4, 2.0)):
        d[i, j], d[j, i] = net, -net
    mean, found = one(d)
    assert (found.low_noise[0], found.heavier_paths.complete[0]) == (FAILS, True)
    monkeypatch.setattr(completions, "MOST_STEPS", 5)
    found = shapes(mean)
    assert (found.low_noise[0], found.heavier_paths.complete[0]) == (UNDETERMINED, False)


def test_a_search_that_is_cut_off_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles_module, "STEPS", 1)
    monkeypatch.setattr(cycles_module, "FEW", -1)
    ring = np.arange(50)
    mean = Graphs.from_edges(np.array([0, 50]), ring, (ring + 1) % 50, np.ones(50))
    found = shapes(mean).cycles
    assert (len(found.node), found.proven.tolist()) == (50, [False])


# -- the compiled loops -------------------------------------------------------------------------------------------
@settings(max_examples=15)
@given(seeds)
def test_the_kernels_are_their_twins(seed: int) -> None:
    mean = random_graphs(seed, graphs=20, most=12)
    plain = shapes(mean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triples_module, "FEW", -1)
        patch.setattr(cycles_module, "FEW", -1)
        quick = shapes(mean)
    for part in ("cycles", "triples"):
        for name, value in vars(getattr(plain, part)).items():
            np.testing.assert_array_equal(getattr(getattr(quick, part), name), value, err_msg=f"{part}.{name}")
