"""The structure kemeny against every order of the items, gone through one by one."""

from itertools import combinations, permutations

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.counterexamples import known_counterexample
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking.kemeny import kemeny, rough_kemeny
from seeds import seed


def drawn(random, items, judgments, queries=1):
    """Random votes of which ties are a tenth."""
    first = random.integers(0, items, (queries, judgments))
    second = (first + random.integers(1, items, (queries, judgments))) % items
    query = np.repeat(np.arange(queries), judgments)
    tie = random.random(queries * judgments) < 0.1
    return Preferences.from_comparisons(first.ravel(), second.ravel(), query, tie=tie)


def best_orders_of(batch, graph):
    """The least number of contradicted wins, and all orders (of nodes) that attain it."""
    graphs = batch.graphs
    begin, end = batch.node_start[graph], batch.node_start[graph + 1]
    pairs = slice(graphs.pair_start[graph], graphs.pair_start[graph + 1])
    wins = {}
    for i, j, won, lost in zip(*(x[pairs] for x in (graphs.first, graphs.second, graphs.wins, graphs.losses))):
        wins[i, j], wins[j, i] = won, lost
    loss = {
        order: sum(wins.get((order[b], order[a]), 0) for b in range(len(order)) for a in range(b))
        for order in permutations(range(begin, end))
    }
    least = min(loss.values())
    return least, [order for order, lost in loss.items() if lost == least]


@pytest.mark.parametrize("judgments", [4, 8, 15, 30])
def test_the_order_is_one_of_the_best_and_its_ties_decide_nothing(judgments):
    batch = Batch.whole(drawn(np.random.default_rng(seed(judgments)), 5, judgments, queries=25))
    scores = kemeny(batch)
    total = 0
    for graph in range(len(batch)):
        least, best = best_orders_of(batch, graph)
        total += least
        place = -scores.value
        component = scores.component
        kept = [
            order
            for order in best
            if all(
                component[i] != component[j] or place[i] <= place[j]
                for a, i in enumerate(order)
                for j in order[a + 1 :]
            )
        ]
        assert kept, "no best order agrees with the scores"
    note = next(note for note in scores.notes if note.code == "contradicted")
    assert note.numbers["lost"] == total and (scores.status == Status.CLOSED_FORM).all()
    assert note.endswith("as few as any order")


def test_items_of_a_cycle_share_a_place_where_several_orders_are_best_and_only_there():
    even = Preferences.from_comparisons(["a", "b", "c", "a"], ["b", "c", "a", "d"])
    assert kemeny(Batch.whole(even)).value.tolist() == [-2.0, -2.0, -2.0, -4.0]
    uneven = Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "a"], count=[3, 2, 1])
    assert kemeny(Batch.whole(uneven)).value.tolist() == [-1.0, -2.0, -3.0]


def test_what_stands_one_way_in_all_best_orders_is_never_turned_and_one_best_order_has_no_level_stretch():
    random = np.random.default_rng(seed(1))
    shared = 0
    for _ in range(80):
        batch = Batch.whole(drawn(random, 4, 12))
        value = kemeny(batch).value
        _, best = best_orders_of(batch, 0)
        assert all(value[i] >= value[j] for i, j in combinations(range(len(value)), 2) if _always(best, i, j))
        assert all(value[j] >= value[i] for i, j in combinations(range(len(value)), 2) if _always(best, j, i))
        if len(best) == 1:
            assert len(set(value)) == len(value)
        shared += len(set(value)) < len(value)
    assert 5 < shared < 75


def _always(orders, i, j):
    return all(order.index(i) < order.index(j) for order in orders)


def test_a_short_search_is_exact_on_small_components_and_a_long_one_says_what_is_proven():
    small = Batch.whole(drawn(np.random.default_rng(seed(2)), 7, 30, queries=20))
    np.testing.assert_array_equal(rough_kemeny(small).value, kemeny(small).value)
    large = Batch.whole(drawn(np.random.default_rng(seed(3)), 40, 400))
    scores, found = kemeny(large), cc.optimal_order(large.prefs)
    note = next(note for note in scores.notes if note.code == "contradicted")
    ties = float(large.graphs.ties.sum()) / 2
    assert note.numbers["lost"] == round(found.loss[0] * found.judgments[0] - ties)
    assert (scores.status[0] == Status.CLOSED_FORM) == bool(found.exact[0])
    codes = [note.code for note in scores.notes]
    assert ("not proven best" in codes) != bool(found.exact[0])


def test_theorem_3_is_ordered_as_its_majorities_say():
    votes = known_counterexample("theorem-3").preferences
    board = cc.rank(votes + votes, "kemeny", replicates=300)
    assert board.to_arrow()["item"].to_pylist() == [1, 2, 3]
    assert board.rank_lower[0] == board.rank_upper[0] == 1 and board.rank_upper[1] == 3  # two votes for 2 over 3
    assert cc.rank(votes, interval="none").to_arrow()["item"].to_pylist() == [1, 3, 2]


def test_other_intervals_are_refused_in_one_sentence():
    votes = Preferences.from_comparisons(["a", "b"], ["b", "c"])
    with pytest.raises(cc.UsageError, match=r"kemeny has no hessian intervals .* use bootstrap or none"):
        cc.rank(votes, "kemeny", interval="hessian")
    assert cc.rank(votes, "kemeny", replicates=100).interval == "bootstrap"
