"""Rank statements of four kinds: by brute force, in their order among each other, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from test_uncertainty_ranks import simulated

import concordant as cc
from concordant.errors import Idle, UsageError
from concordant.ranking.rank_sets import certainly_above


def board_of(seed=0, items=7, rows=900, spread=1.0, **more):
    return cc.rank(simulated(np.linspace(-spread, spread, items), rows, seed=seed), **more)


def by_item(table, *columns):
    return {row["item"]: tuple(row[name] for name in columns) for row in table.to_pylist()}


def test_steps_down_as_the_definition_does():
    board = board_of()
    joint, _ = board._joint(None)
    n, draws = joint.size, joint.draws
    error = joint.pair_errors
    t = (joint.value[:, None] - joint.value) / error
    rejected = np.zeros((n, n), bool)
    criticals = []
    while True:
        left = [(i, j) for i in range(n) for j in range(n) if i != j and not rejected[i, j]]
        most = np.sort([max((z[i] - z[j]) / error[i, j] for i, j in left) for z in draws])
        criticals.append(most[int(np.ceil(0.95 * (len(most) + 1))) - 1])
        new = rejected | (t > criticals[-1])
        if (new == rejected).all():
            break
        rejected = new
    assert len(criticals) > 1 and criticals[-1] < criticals[0]
    assert (certainly_above(joint, np.ones(n, bool)) == rejected).all()
    found = by_item(board.rank_sets(), "rank_lower", "rank_upper")
    assert found == {i: (1 + rejected[:, i].sum(), n - rejected[i].sum()) for i in range(n)}


@pytest.mark.parametrize("method", ["hessian", "sandwich", "bootstrap"])
def test_sets_are_nested_as_their_guarantees_are(method):
    board = board_of(seed=3, interval=method)
    plain = by_item(board.to_arrow(), "rank_lower", "rank_upper")
    together = by_item(board.rank_sets("together"), "rank_lower", "rank_upper")
    alone = by_item(board.rank_sets("alone"), "rank_lower", "rank_upper")
    for item, (low, high) in together.items():
        assert plain[item][0] <= low <= alone[item][0] <= alone[item][1] <= high <= plain[item][1]
    first = by_item(board.rank_sets("top", top=1), "among_first")
    assert {item for item, (yes,) in first.items() if yes} <= {item for item, (low, _) in together.items() if low == 1}
    for k in (2, 5):
        among = by_item(board.rank_sets("top", top=k), "among_first")
        assert {item for item, (yes,) in among.items() if yes} <= {i for i, (low, _) in together.items() if low <= k}
        assert sum(yes for (yes,) in among.values()) >= k
    tiers = by_item(board.rank_sets("tiers"), "tier")
    for one, (tier,) in tiers.items():
        for other, (another,) in tiers.items():
            assert tier >= another or together[one][1] < together[other][0]


def test_each_holds_as_often_as_it_says():
    """150 logs of six items, two of them equal: how often each statement is right (95% asked for)."""
    truth, runs = np.array([-0.6, -0.3, 0.0, 0.0, 0.4, 0.5]), 150
    low, high = 1 + (truth > truth[:, None]).sum(axis=1), (truth >= truth[:, None]).sum(axis=1)
    held = {"together": 0, "alone": 0, "top 1": 0, "top 3": 0, "tiers": 0}
    for seed in range(runs):
        board = cc.rank(simulated(truth, 500, seed=1000 + seed), interval="hessian", seed=seed)
        for kind in ("together", "alone"):
            found = by_item(board.rank_sets(kind), "rank_lower", "rank_upper")
            right = np.array([found[i][0] <= low[i] and high[i] <= found[i][1] for i in range(6)])
            held[kind] += right.all() if kind == "together" else right.mean()
        for k in (1, 3):
            among = by_item(board.rank_sets("top", top=k), "among_first")
            held[f"top {k}"] += all(among[i][0] for i in range(6) if low[i] <= k)
        tier = by_item(board.rank_sets("tiers"), "tier")
        held["tiers"] += all(truth[i] > truth[j] for i in range(6) for j in range(6) if tier[i] < tier[j])
    shares = {kind: times / runs for kind, times in held.items()}
    print(shares)
    assert min(shares.values()) >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / runs), shares


def test_who_never_lost_stands_apart_or_is_surely_first():
    def ranks(wins):
        votes = cc.Preferences.from_comparisons(["a", "b", "top"], ["b", "a", "a"], count=[90, 10, wins])
        return by_item(cc.rank(votes).rank_sets(), "rank_lower", "rank_upper")

    assert ranks(5) == {"a": (1, 1), "b": (2, 2), "top": (None, None)}  # stands apart
    assert ranks(50) == {"a": (2, 2), "b": (3, 3), "top": (1, 1)}  # by one-sided limits


def test_idle_and_unknown_words_are_refused():
    board = board_of(items=4, rows=100)
    with pytest.raises(UsageError, match="unknown kind of rank set 'tier'; did you mean 'tiers'"):
        board.rank_sets("tier")
    with pytest.raises(UsageError, match="the first how many"):
        board.rank_sets("top")
    with pytest.raises(Idle, match="top does nothing here"):
        board.rank_sets("tiers", top=2)
    assert board.rank_sets("alone", items=[2, 0])["item"].to_pylist() == [2, 0]


@pytest.mark.parametrize("method", ["sandwich", "bootstrap"])
def test_who_may_be_first_is_tested_by_its_own_differences(method):
    board = board_of(seed=4, items=9, rows=500, interval=method)
    joint, order = board._joint(None)
    t, kept = (joint.value[:, None] - joint.value) / joint.pair_errors, []
    for j in range(joint.size):
        others = [i for i in range(joint.size) if i != j]
        most = [max((z[i] - z[j]) / joint.pair_errors[i, j] for i in others) for z in joint.draws]
        kept.append(max(t[i, j] for i in others) <= np.sort(most)[int(np.ceil(0.95 * (len(most) + 1))) - 1])
    assert [row["among_first"] for row in board.rank_sets("top", top=1).to_pylist()] == np.array(kept)[order].tolist()
    assert 1 < sum(kept) < joint.size


@pytest.mark.parametrize("method", ["hessian", "sandwich", "bootstrap"])
def test_who_is_surely_first_is_so_together(method):
    """30 of 30 won: the one-sided limits of the columns; the others as in logs without the winner, among one more."""
    rest = [("b", "c", 40), ("c", "b", 20), ("c", "d", 40), ("d", "c", 20), ("b", "d", 35), ("d", "b", 25)]
    rows = [*rest, *(("a", other, 30) for other in "bcd")]
    winner, loser, count = zip(*rows, strict=True)
    board = cc.rank(cc.Preferences.from_comparisons(winner, loser, count=count), interval=method)
    plain = by_item(board.to_arrow(), "rank_lower", "rank_upper")
    together = by_item(board.rank_sets("together"), "rank_lower", "rank_upper")
    assert together["a"] == plain["a"] == (1, 1)
    tiers = by_item(board.rank_sets("tiers"), "tier")
    assert tiers["a"] == (1,) and min(tiers[item] for item in "bcd") == (2,)
    alone = by_item(board.rank_sets("alone"), "rank_lower", "rank_upper")
    assert alone["a"] == (1, 1) == by_item(board.rank_sets("alone", items=["a"]), "rank_lower", "rank_upper")["a"]
    assert [item for item, (may,) in by_item(board.rank_sets("top", top=1), "among_first").items() if may] == ["a"]
    assert by_item(board.rank_sets("top", top=2), "among_first")["a"] == (True,)
    for item in "bcd":
        assert alone[item][0] >= 2 and together[item][0] <= alone[item][0] and alone[item][1] <= together[item][1]
        assert plain[item][0] <= together[item][0] and together[item][1] <= plain[item][1] and together[item][0] >= 2


def test_sets_with_a_separated_item_hold():
    """Of 100 logs in which the strongest often never loses, all true ranks are held by 95% or more of the sets."""
    truth, held, narrow, of_one, first, two = np.array([3.0, 0.8, 0.0, -0.8]), 0, 0, 0, 0, 0
    for seed in range(100):
        board = cc.rank(simulated(truth, 90, seed=seed), prior=0.01)
        found = by_item(board.rank_sets("together"), "rank_lower", "rank_upper")
        held += all(low is None or low <= 1 + item <= high for item, (low, high) in found.items())
        narrow += any(board.flag) and found[0] == (1, 1)
        low, high = by_item(board.rank_sets("alone", items=[0]), "rank_lower", "rank_upper")[0]
        of_one += low is None or low <= 1 <= high
        first += by_item(board.rank_sets("top", top=1), "among_first")[0] != (False,)
        two += all(by_item(board.rank_sets("top", top=2), "among_first")[item] != (False,) for item in (0, 1))
    assert held / 100 >= 0.93 and narrow > 10
    assert min(of_one, first, two) / 100 >= 0.93
