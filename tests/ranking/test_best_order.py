"""Best orders for the pairwise loss: against all permutations, against each other, and what is proven of them."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.errors import UsageError
from concordant.kernels import orders as moves
from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking import best_orders as module
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import METHODS, BestOrders, best_orders, grids, solve
from concordant.ranking.kemeny import optimal_order


def table(*graphs: np.ndarray) -> Graphs:
    """Pair tables of matrices: entry (i, j) is the weight of i above j."""
    start, pairs, first, second, above, below = [0], [0], [], [], [], []
    for matrix in graphs:
        m = len(matrix)
        for i, j in combinations(range(m), 2):
            if matrix[i, j] or matrix[j, i]:
                first.append(start[-1] + i)
                second.append(start[-1] + j)
                above.append(matrix[i, j])
                below.append(matrix[j, i])
        start.append(start[-1] + m)
        pairs.append(len(first))
    numbers = [np.array(column, np.int64) for column in (start, pairs, first, second)]
    return Graphs(*numbers, np.array(above, float), np.array(below, float), np.zeros(len(first)), None)


def charged(matrix: np.ndarray, order: Any) -> float:
    """(10) of a strict order, straight from the formula."""
    return float(sum(matrix[j, i] for a, i in enumerate(order) for j in order[a + 1 :]))


def least(matrix: np.ndarray) -> float:
    return min(charged(matrix, order) for order in permutations(range(len(matrix))))


def random_matrix(rng: np.random.Generator, m: int, density: float, whole: bool) -> np.ndarray:
    weight = rng.integers(0, 4, (m, m)).astype(float) if whole else rng.random((m, m))
    judged = np.triu(rng.random((m, m)) < density, 1)
    return weight * (judged | judged.T)


def orders_of(best: BestOrders, mean: Graphs) -> list[list[int]]:
    places = np.split(best.place, mean.node_start[1:-1])
    assert all(sorted(place) == list(range(len(place))) for place in places)
    return [np.argsort(place).tolist() for place in places]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0.2, 1.0))
def test_all_permutations(seed: int, whole: bool, density: float) -> None:
    rng = np.random.default_rng(seed)
    graphs = [random_matrix(rng, m, density, whole) for m in (0, 1, 2, 4, 5, 6, 6)]
    mean = table(*graphs)
    ways: list[dict[str, Any]] = [{}, {"exact_up_to": 0}, {"exact_up_to": 0, "programme": True}]
    ways.append({"exact_up_to": 0, "programme": True, "time_limit": 1e-9})
    for way in ways:
        best = best_orders(mean, **way)
        for g, (matrix, order) in enumerate(zip(graphs, orders_of(best, mean), strict=True)):
            optimum = least(matrix)
            assert best.loss[g] == pytest.approx(charged(matrix, order), abs=1e-9)
            assert best.lower[g] <= optimum + 1e-9 <= best.loss[g] + 2e-9
            if best.exact[g]:
                assert best.loss[g] == pytest.approx(optimum, abs=1e-9) == best.lower[g]
            assert best.exact[g] or METHODS[best.method[g]] in ("local search", "integer programme")
        if way in ({}, ways[2]):
            assert best.exact.all()


@pytest.mark.parametrize("seed", range(4))
def test_eight_items_of_one_cycle_and_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_matrix(rng, 8, 0.6, False)
    matrix[np.arange(8), (np.arange(8) + 1) % 8] += 1.0  # strongly connected
    mean = table(matrix)
    optimum = least(matrix)
    best = best_orders(mean)
    assert best.largest.tolist() == [8] and METHODS[best.method[0]] == "dynamic programming"
    assert best.loss[0] == pytest.approx(optimum, abs=1e-12)
    assert best_orders(mean, exact_up_to=0, programme=True).loss[0] == pytest.approx(optimum, abs=1e-9)


def tournament(rng: np.random.Generator, m: int, spread: float, votes: int, density: float = 1.0) -> np.ndarray:
    """Counts of votes in which items of random strength beat each other."""
    strength = rng.normal(size=m) * spread
    wins = rng.binomial(votes, 1 / (1 + np.exp(strength[None, :] - strength[:, None])))
    upper = np.triu(rng.random((m, m)) < density, 1)
    return np.where(upper, wins, 0.0) + np.where(upper, votes - wins, 0.0).T


def test_twenty_items_by_subsets_and_by_the_integer_program() -> None:
    mean = table(tournament(np.random.default_rng(0), 20, 0.15, 5))
    subsets = best_orders(mean, exact_up_to=20)
    integer = best_orders(mean, exact_up_to=0, programme=True)
    assert subsets.largest.tolist() == [20]
    assert [METHODS[best.method[0]] for best in (subsets, integer)] == ["dynamic programming", "integer programme"]
    assert subsets.exact.all() and integer.exact.all()
    assert integer.loss[0] == pytest.approx(subsets.loss[0], abs=1e-9)
    searched = best_orders(mean, exact_up_to=0)
    assert searched.lower[0] <= subsets.loss[0] <= searched.loss[0]


def test_the_program_begins_anywhere() -> None:
    """From the worst order, without a bound: cuts alone, real weights."""
    rng = np.random.default_rng(3)
    matrix = random_matrix(rng, 12, 0.5, False)
    matrix[np.arange(12), (np.arange(12) + 1) % 12] += 1.0
    net = matrix - matrix.T
    winner, loser = np.nonzero(net > 0)
    wanted = best_orders(table(matrix))
    rest = np.minimum(matrix, matrix.T)[np.triu_indices(12, 1)].sum()
    backwards = 11 - wanted.place
    found = solve(winner, loser, net[winner, loser], backwards, 0.0, 0.0, 10.0)
    assert found.loss + rest == pytest.approx(wanted.loss[0], abs=1e-6)
    assert found.lower + rest == pytest.approx(wanted.loss[0], abs=1e-5)
    assert charged(matrix, np.argsort(found.place)) == pytest.approx(wanted.loss[0], abs=1e-9)


def test_sparse_components_are_nearly_always_closed_by_the_search() -> None:
    rng = np.random.default_rng(1)
    mean = table(*(tournament(rng, 40, 0.5, 3, 0.1) for _ in range(40)))
    searched, integer = best_orders(mean), best_orders(mean, programme=True)
    assert integer.exact.all() and np.median(searched.largest) > 12
    assert (searched.lower <= integer.loss + 1e-9).all() and (integer.loss <= searched.loss + 1e-9).all()
    assert searched.exact.mean() >= 0.9
    assert (searched.exact == (METHODS.index("local search") > searched.method)).all()


def test_numbers_of_items_and_neighbours_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    graphs = [tournament(rng, 18, 0.4, 3, 0.4), tournament(rng, 9, 0.2, 3), tournament(rng, 30, 0.5, 3, 0.15)]
    together = best_orders(table(*graphs), programme=True, seed=3)
    starts = np.cumsum([0, 18, 9, 30])
    for g, matrix in enumerate(graphs):
        alone = best_orders(table(matrix), programme=True, seed=3)
        np.testing.assert_array_equal(alone.place, together.place[starts[g] : starts[g + 1]])
        assert (alone.loss[0], alone.lower[0]) == (together.loss[g], together.lower[g])
        shuffle = rng.permutation(len(matrix))
        renamed = best_orders(table(matrix[np.ix_(shuffle, shuffle)]), programme=True)
        assert renamed.exact[0] and renamed.loss[0] == pytest.approx(together.loss[g], abs=1e-9)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    mean = table(*(tournament(rng, 20, 0.3, 3, 0.4) for _ in range(8)))
    wanted = best_orders(mean, exact_up_to=5)
    for threads in (1, 3):
        monkeypatch.setattr("concordant.kernels.arrays.WORKERS", threads)
        monkeypatch.setattr(module, "CHUNK", 1)
        found = best_orders(mean, exact_up_to=5)
        np.testing.assert_array_equal(found.place, wanted.place)
        np.testing.assert_array_equal(found.lower, wanted.lower)


def test_acyclic_graphs_are_sorted_by_net_preference_where_nothing_else_decides() -> None:
    matrix = np.zeros((5, 5))
    matrix[3, 0], matrix[2, 1], matrix[4, 1] = 1, 5, 1  # chains 3 > 0, 2 > 1 < 4
    best = best_orders(table(matrix))
    assert np.argsort(best.place).tolist() == [2, 3, 4, 0, 1]
    assert (best.loss[0], best.exact[0], best.method[0], best.largest[0]) == (0.0, True, 0, 1)


def test_nothing_to_order() -> None:
    nothing = best_orders(table())
    assert (len(nothing), len(nothing.place)) == (0, 0)
    level = np.ones((3, 3)) - np.eye(3)
    best = best_orders(table(np.zeros((0, 0)), np.zeros((1, 1)), np.zeros((3, 3)), level))
    assert best.place.tolist() == [0, 0, 1, 2, 0, 1, 2]
    assert best.loss.tolist() == best.lower.tolist() == [0, 0, 0, 3]
    assert best.exact.all() and best.largest.tolist() == [0, 1, 1, 1]
    assert len(optimal_order(cc.Preferences.empty())) == 0


def test_disconnected_cycles_stand_one_below_the_other() -> None:
    matrix = np.zeros((6, 6))
    for a, b, c in ((0, 2, 4), (5, 3, 1)):
        matrix[a, b], matrix[b, c], matrix[c, a] = 3, 2, 1
    best = best_orders(table(matrix))
    assert (best.loss[0], best.largest[0]) == (2.0, 3)
    assert (best.place[0] < best.place[2] < best.place[4]) and (best.place[5] < best.place[3] < best.place[1])


def test_a_large_query_ends_soon_and_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4000, 40_000)
    prefs = cc.Preferences.from_comparisons(first, (first + rng.integers(1, 4000, 40_000)) % 4000)
    monkeypatch.setattr(module, "WORK_PER_EDGE", 20)
    mean = mean_adjacency(Batch.whole(prefs))
    best = best_orders(mean, programme=True)  # too large for a program
    assert METHODS[best.method[0]] == "local search" and not best.exact[0]
    assert 0 < best.lower[0] < best.loss[0] < 0.4
    monkeypatch.setattr(module, "WORK_PER_EDGE", 1)
    monkeypatch.setattr(module, "WORK", 0)
    short = best_orders(mean)
    assert METHODS[short.method[0]] == "local search cut short: too large"
    assert sorted(short.place) == list(range(4000)) and short.lower[0] <= best.loss[0] <= short.loss[0] < 0.5


def test_complete_graphs_of_coin_flips() -> None:
    rng = np.random.default_rng(2)
    matrix = tournament(rng, 70, 0.0, 1)
    best = best_orders(table(matrix))
    assert best.loss[0] == pytest.approx(charged(matrix, np.argsort(best.place)))
    assert best.lower[0] <= best.loss[0] < 0.42 * matrix.sum()


def test_grids_of_weights() -> None:
    start = np.array([0, 0, 3, 5, 7, 8])
    weight = np.array([3 / 7, 2 / 7, 5 / 7, 1.0, np.sqrt(2), 1e-7, 1.0, 0.3])
    found = grids(start, weight)
    assert found == pytest.approx([0.0, 1 / 7, 0.0, 0.0, 0.3])


def test_options_out_of_range() -> None:
    for options in ({"exact_up_to": 25}, {"exact_up_to": -1}, {"time_limit": 0}, {"time_limit": float("nan")}):
        with pytest.raises(UsageError, match=next(iter(options))):
            best_orders(table(), **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes Preferences, not list"):
        optimal_order([])  # type: ignore[arg-type]


def test_the_loss_is_that_of_the_metric() -> None:
    rng = np.random.default_rng(9)
    matrix = tournament(rng, 15, 0.3, 4, 0.6)
    best = best_orders(table(matrix))
    assert cc.pairwise_loss(-best.place, adjacency=matrix)[0] == pytest.approx(best.loss[0])


@pytest.mark.parametrize("density", [0.15, 1.0])
def test_a_local_optimum_is_one(density: float) -> None:
    """No item can be put elsewhere for less: every place of every item, from the formula."""
    matrix = random_matrix(np.random.default_rng(12), 25, density, False)
    net = matrix - matrix.T
    edges = *(np.array(side, np.int64) for side in np.nonzero(net > 0)), net[net > 0]
    key = np.arange(25.0)
    assert moves.descend(*moves.incidence(25, *edges), key, 1e-12, 10**6) > 0
    order = moves.ranks(key).argsort().tolist()
    reached = charged(matrix, order)
    assert moves.charged(*edges, key) == pytest.approx(
        reached - np.minimum(matrix, matrix.T)[np.triu_indices(25)].sum()
    )
    assert reached < charged(matrix, range(25))
    for item in range(25):
        others = [i for i in order if i != item]
        for at in range(25):
            assert charged(matrix, [*others[:at], item, *others[at:]]) >= reached - 1e-9


UNCOMPILED = """
import numpy as np
from concordant.preferences.graphs import Graphs
from concordant.ranking.best_orders import best_orders
from concordant.ranking import best_orders as orders
orders.WORK = 30_000
rng = np.random.default_rng(4)
first, second = np.triu_indices(14, 1)
wins = rng.integers(0, 6, len(first)).astype(float)
pairs = np.array([0, 14]), np.array([0, len(first)]), first, second, wins, 5 - wins, np.zeros(len(first)), None
for most in (6, 14):
    best = best_orders(Graphs(*pairs), exact_up_to=most, seed=2**64 - 3)
    print(best.place.tolist(), best.loss.tolist(), best.lower.tolist(), best.method.tolist())
"""


def test_kernels_run_without_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for switch in ("0", "1"):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", switch)
        words = [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED]
        said.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1] and said[0].count("\n") == 2


def test_topological_orders_are_those_of_the_plain_way() -> None:
    """The compiled topological order against the plain one, over many graphs at once."""
    rng = np.random.default_rng(8)
    graphs = []
    for _ in range(30):
        hidden = rng.permutation(12)
        matrix = np.triu(rng.integers(0, 3, (12, 12)) * (rng.random((12, 12)) < 0.2), 1).astype(float)
        graphs.append(matrix[np.ix_(hidden, hidden)])
    mean = table(*graphs)
    best = best_orders(mean)
    assert best.exact.all() and not best.loss.any() and not best.method.any()
    for matrix, order in zip(graphs, orders_of(best, mean), strict=True):
        lead = matrix.sum(axis=1) - matrix.sum(axis=0)
        plain, entering = [], (matrix > 0).sum(axis=0)
        free = [v for v in range(12) if entering[v] == 0]
        while free:
            v = min(free, key=lambda v: (-lead[v], v))
            free.remove(v)
            plain.append(v)
            for w in np.flatnonzero(matrix[v] > 0):
                entering[w] -= 1
                if entering[w] == 0:
                    free.append(w)
        assert order == plain
