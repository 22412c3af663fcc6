"""Judges: agreement beside a count over pairs of votes, reliability and biases beside what was planted."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import concordant as cc
from concordant.boards import judges as module
from concordant.boards.agreement import Said
from concordant.boards.judges import with_length
from seeds import seed


def crowd(number, *, judges=60, votes=40, items=12, slope=1.0, first=0.0, prompts=0):
    """Votes by judges with these slopes and preferences for what stands first."""
    random = np.random.default_rng(number)
    ability = random.normal(size=items)
    judge = np.repeat(np.arange(judges), votes)
    left = random.integers(items, size=len(judge))
    right = (left + random.integers(1, items, size=len(judge))) % items
    slope, first = np.broadcast_to(slope, judges), np.broadcast_to(first, judges)
    won = random.random(len(judge)) < expit(slope[judge] * (ability[left] - ability[right]) + first[judge])
    prefs = cc.Preferences.from_comparisons(
        np.where(won, left, right), np.where(won, right, left), cluster=judge,
        query=random.integers(prompts, size=len(judge)) if prompts else None,
        covariates={"home": np.where(won, 1.0, -1.0)},
    )  # fmt: skip
    return prefs, ability


# -- agreement ---------------------------------------------------------------------------------------------------------
def small(number):
    random = np.random.default_rng(number)
    rows = [(*random.permutation(["a", "b", "c"])[:2], q, j, random.random() < 0.3)
            for j in "uvwx" for q in range(4) for _ in range(2)]  # fmt: skip
    winner, loser, query, judge, tie = map(list, zip(*rows, strict=True))
    return cc.Preferences.from_comparisons(winner, loser, query=query, tie=tie, cluster=judge), rows


def said(row):
    """The pair of the query, and what the vote says of it: its winner, or that there is none."""
    winner, loser, query, _, tie = row
    return (query, *sorted((winner, loser))), "tie" if tie else winner


def krippendorff(rows):
    """α by its definition: values are names of sides, each pair of a query entered in both orders."""
    units: dict[object, list[str]] = {}
    for row in rows:
        (query, low, high), vote = said(row)
        for turn in (0, 1):
            side = "tie" if vote == "tie" else str((vote == low) ^ turn)
            units.setdefault((query, low, high, turn), []).append(side)
    units = {unit: votes for unit, votes in units.items() if len(votes) > 1}
    values = [vote for votes in units.values() for vote in votes]
    observed = sum(sum(a != b for a, b in permutations(votes, 2)) / (len(votes) - 1) for votes in units.values())
    return 1 - observed / (sum(a != b for a, b in permutations(values, 2)) / (len(values) - 1))


def test_agreement_is_that_of_pairs_of_votes():
    prefs, rows = small(seed(0))
    found = cc.judges(prefs, replicates=200)
    same = {judge: [] for judge in "uvwx"}
    for at, row in enumerate(rows):
        others = [said(one)[1] for place, one in enumerate(rows) if place != at and said(one)[0] == said(row)[0]]
        if others:
            same[row[3]].append(np.mean([one == said(row)[1] for one in others]))
    assert found.agreement == pytest.approx([np.mean(same[judge]) for judge in "uvwx"])
    assert found.shared.tolist() == [len(same[judge]) for judge in "uvwx"]
    assert found.alpha[0] == pytest.approx(krippendorff(rows))
    assert found.alpha[1] < found.alpha[0] < found.alpha[2]
    table = found.votes_table()
    assert sum(table["count"].to_pylist()) == len(rows) and set(table.column_names) >= {"query", "same", "others"}


def test_one_scale_or_many_have_the_same_agreement():
    """``pool`` is about the scale: agreement looks at a query at a time, and at all votes on a pair once pooled."""
    prefs, rows = small(seed(0))
    apart, one, usual = (cc.judges(prefs, pool=pool, replicates=200) for pool in (False, True, None))
    for found in (apart, one):
        assert found.alpha == usual.alpha and found.alpha[0] == pytest.approx(krippendorff(rows))
        assert found.agreement.tolist() == usual.agreement.tolist() and found.shared.tolist() == usual.shared.tolist()
    assert one.by_coin.tolist() == usual.by_coin.tolist() != apart.by_coin.tolist()
    assert len(one.ranking().queries) == len(usual.ranking().queries) == 1 and len(apart.ranking().queries) == 4
    assert [found.notes[0].code == "one scale" for found in (apart, one, usual)] == [False, True, True]
    pooled = cc.judges(prefs.pool(), replicates=200)
    assert pooled.alpha[0] == pytest.approx(krippendorff([(won, lost, 0, j, tie) for won, lost, _, j, tie in rows]))
    assert pooled.alpha[0] != pytest.approx(one.alpha[0]) and pooled.by_coin.tolist() == one.by_coin.tolist()
    with pytest.raises(cc.UsageError, match="pool must be True, False or None"):
        cc.judges(prefs, pool="yes")


def test_alpha_is_that_of_a_peer():
    """Frozen value of krippendorff 0.9.0 (nominal; each of eight pairs in both orders, four judges, votes missing)."""
    votes = {"u": "010201.1", "v": "0112.1.0", "w": "00.20110", "x": ".1020111"}  # the first, the second, a tie
    cells = [(who, pair, vote) for who, row in votes.items() for pair, vote in enumerate(row) if vote != "."]
    who, pairs, said = map(np.array, zip(*cells, strict=True))
    sides = np.array(["left", "right", "tie"])[said.astype(int)]
    log = {"left": [f"a{p}" for p in pairs], "right": [f"b{p}" for p in pairs], "winner": sides, "judge": who}
    found = cc.judges(cc.read(log, cluster="judge"), replicates=10)
    assert found.alpha[0] == pytest.approx(0.6060943887030845, rel=1e-12)


def test_alpha_is_1_where_all_agree_and_0_by_chance():
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    one = cc.Preferences.from_comparisons(*zip(*pairs * 4, strict=True), cluster=[j for j in range(4) for _ in pairs])
    assert cc.judges(one, replicates=20).alpha == (1.0, 1.0, 1.0)
    prefs, _ = crowd(seed(1), slope=0.0, judges=40, items=4)
    low, high = cc.judges(prefs).alpha[1:]
    assert low < 0 < high


def test_alpha_interval_holds():
    """Beside α of a large sample of the same population: three votes a pair, some of them ties."""
    random = np.random.default_rng(seed(7))

    def draw(pairs):
        better = random.integers(2, size=pairs)[:, None]
        votes = np.where(random.random((pairs, 3)) < 0.7, better, random.integers(3, size=(pairs, 3)))
        table = (votes[:, :, None] == np.arange(3)).sum(1).astype(np.float64)
        return Said(np.zeros(0), np.zeros(0), np.zeros(0), table)

    truth = draw(100_000).alpha(0.95, 1, 0)[0]
    held = [low <= truth <= high for _, low, high in (draw(80).alpha(0.9, 300, at) for at in range(600))]
    assert 0.86 < np.mean(held) < 0.94


# -- reliability -------------------------------------------------------------------------------------------------------
def test_coins_are_found_and_the_scores_are_those_without_them():
    slopes = np.r_[np.zeros(10), np.ones(50)]
    prefs, _ = crowd(seed(2), slope=slopes)
    found, bad = cc.judges(prefs), slopes == 0
    assert cc.auc(-found.reliability, bad)[0] > 0.95 and cc.auc(found.by_coin, bad)[0] > 0.95
    assert set(found.random) <= set(range(10)) and len(found.random) >= 5
    without = cc.rank(
        cc.Preferences.from_comparisons(
            *(prefs.items.take(side[prefs.cluster >= 10]) for side in (prefs.winner, prefs.loser))
        ),
        interval="none",
    )
    plain, weighted = cc.rank(replace(prefs, covariates=None, covariate_names=()), interval="none"), found
    weighted = replace(found, prefs=replace(prefs, covariates=None, covariate_names=())).ranking(interval="none")
    off = [np.sqrt(np.mean((one.to_pandas().sort_values("item").score.to_numpy()
                            - without.to_pandas().sort_values("item").score.to_numpy()) ** 2))
           for one in (plain, weighted)]  # fmt: skip
    assert off[1] < 0.08 < 0.16 < off[0]


def test_few_votes_say_little():
    """Judges of 60 votes, and such of whom only three are left: the reliability is drawn to that of the others."""
    slopes = np.random.default_rng(seed(3)).normal(1.0, 0.4, 80)
    prefs, _ = crowd(seed(3), judges=80, votes=60, slope=slopes)
    some = prefs.cluster < 40
    first = np.concatenate([np.flatnonzero(prefs.cluster == judge)[:3] for judge in range(40, 80)])
    rows = np.r_[np.flatnonzero(some), first]
    part = cc.Preferences.from_comparisons(
        prefs.items.take(prefs.winner[rows]), prefs.items.take(prefs.loser[rows]), cluster=prefs.cluster[rows]
    )
    found = cc.judges(part)
    few = found.votes < 10
    assert few.sum() == 40 and (found.upper - found.lower)[few].mean() > 1.4 * (found.upper - found.lower)[~few].mean()
    assert found.reliability[few].std() < 0.8 * found.reliability[~few].std()


def test_reliability_and_biases_lie_in_their_intervals():
    random = np.random.default_rng(seed(4))
    held, bias = [], []
    for number in range(4):
        slopes, first = np.maximum(random.normal(1.0, 0.35, 80), 0.0), random.normal(0.4, 0.5, 80)
        found = cc.judges(crowd(seed(10 + number), judges=80, votes=60, slope=slopes, first=first)[0], replicates=1)
        slopes = slopes / slopes.mean()
        held += ((found.lower <= slopes) & (slopes <= found.upper)).tolist()
        value, error = found.effects["first"]
        bias += (np.abs(value - first) < 1.96 * error).tolist()
    assert 0.90 < np.mean(held) < 0.995 and 0.91 < np.mean(bias) < 0.985


def test_the_posterior_is_the_mode_of_the_penalised_likelihood():
    random = np.random.default_rng(seed(5))
    judge, x = np.repeat([0, 1], 30), random.normal(size=(60, 2))
    votes = module._Votes(judge, np.where(random.random(60) < 0.2, 0.5, 1.0), np.ones(60), x)
    mean, variance = np.array([0.7, -0.2]), np.array([0.4, 0.9])
    value, error, _ = module._posterior(votes, np.zeros((2, 2)), mean, variance)

    def minus(b):
        margin = x[judge == 0] @ b
        won = votes.won[judge == 0]
        return (
            -(won * log_expit(margin) + (1 - won) * log_expit(-margin)).sum() + ((b - mean) ** 2 / variance).sum() / 2
        )

    def second(b, i, j, h=1e-4):
        e = np.eye(2) * h
        return sum(a * c * minus(b + a * e[i] + c * e[j]) for a in (1, -1) for c in (1, -1)) / (4 * h * h)

    best = minimize(minus, np.zeros(2), tol=1e-12)
    H = np.array([[second(best.x, i, j) for j in range(2)] for i in range(2)])
    assert value[0] == pytest.approx(best.x, abs=1e-4)
    assert error[0] == pytest.approx(np.diag(np.linalg.inv(H)), rel=1e-3)


@pytest.mark.parametrize(("side_by_side", "votes"), [(40, 80), (0, 80), (0, 4)])
def test_scores_of_the_others_are_those_of_a_fit_without_the_judge(monkeypatch, side_by_side, votes):
    monkeypatch.setattr(module, "SMALL", side_by_side)
    prefs, _ = crowd(seed(6), judges=8 * 80 // votes, votes=votes, items=6)
    from concordant.preferences.graphs import Batch
    from concordant.ranking.bradley_terry import bradley_terry

    batch = Batch.whole(prefs)
    score = bradley_terry(batch, prior=module.PRIOR, covariates=False).value
    first, second = batch.sides(prefs)
    apart = module._by_others(score, first, second, np.ones(prefs.distinct), prefs.count * 1.0, prefs.cluster, batch)
    rest = prefs.cluster != 3
    others = cc.Preferences.from_comparisons(prefs.items.take(prefs.winner[rest]), prefs.items.take(prefs.loser[rest]),
                                             count=prefs.count[rest])  # fmt: skip
    exact = bradley_terry(Batch.whole(others), prior=module.PRIOR).value  # of all six items, in their order
    assert len(exact) == 6
    own = prefs.cluster == 3
    assert apart[own] == pytest.approx(exact[prefs.winner[own]] - exact[prefs.loser[own]], abs=0.02)


def test_a_scale_for_each_query_where_items_do_not_recur():
    random = np.random.default_rng(seed(8))
    rows = []
    for query in range(60):
        gap = random.normal(0, 2)
        for judge in range(6):
            good = random.random() < (0.5 if judge == 0 else expit(gap))
            pair = (f"{query} a", f"{query} b")
            rows.append((*(pair if good else pair[::-1]), query, judge))
    winner, loser, query, judge = zip(*rows, strict=True)
    found = cc.judges(cc.Preferences.from_comparisons(winner, loser, query=query, cluster=judge))
    assert found.random == [0] and not any("one scale" in getattr(note, "code", "") for note in found.notes)


def test_lengths_are_found():
    random = np.random.default_rng(seed(9))
    rows, words = [], ["x" * n for n in (3, 10, 40, 90)]
    for at in range(1500):
        left, right = random.choice(4, 2, replace=False)
        one, other = random.choice(words, 2, replace=False)
        judge = at % 5
        margin = 0.6 * (right - left) + (3.0 if judge == 4 else 0.0) * (len(one) - len(other)) / len(one + other)
        rows.append(
            (f"m{left}", f"m{right}", ("left", "right")[int(random.random() > expit(margin))], judge, one, other)
        )
    names = ("left", "right", "winner", "judge", "a", "b")
    log = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    prefs = with_length(cc.read(log, cluster=["judge", "a", "b"], home="left"), "judge", ("a", "b"))
    assert len(prefs) == 1500 and prefs.covariate_names == ("home", "length") and prefs.clusters.tolist() == [*range(5)]
    value, error = cc.judges(prefs).effects["length"]
    sure = value > 3 * error
    assert sure.tolist() == [False, False, False, False, True]
    numbers = log | {"a": [len(one) for one in log["a"]], "b": [len(one) for one in log["b"]]}
    again = with_length(cc.read(numbers, cluster=["judge", "a", "b"], home="left"), "judge", ("a", "b"))
    assert again == prefs


def test_what_is_refused_and_said():
    pairs = {"winner": ["a", "b"] * 30, "loser": ["b", "a"] * 30}
    with pytest.raises(cc.UsageError, match="do not say who judged"):
        cc.judges(cc.Preferences.from_comparisons(**pairs))
    with pytest.raises(cc.CannotRank, match="'cluster' names 1 judge"):
        cc.judges(cc.Preferences.from_comparisons(**pairs, cluster=["x"] * 60))
    with pytest.raises(cc.UsageError, match="say which of them is the judge"):
        cc.judges(cc.Preferences.from_comparisons(**pairs, cluster={"who": [1, 2] * 30, "what": [1] * 60}))
    with pytest.raises(cc.UsageError, match="not by ratings"):
        cc.judges(cc.Preferences.from_ratings([1, 1], ["a", "b"], [1, 2]))
    ties = cc.judges(cc.Preferences.from_comparisons(["a"] * 9, ["b"] * 9, tie=[True] * 9, cluster=[1, 2, 3] * 3))
    assert "all votes on the same pair are ties, so agreement says nothing" in [*ties.lines()]
    found = cc.judges(cc.Preferences.from_comparisons(**pairs, cluster=[1, 1, 2, 2] * 15))
    assert any("do not agree with each other beyond chance" in note for note in found.notes)
    assert np.isnan(found.reliability).all() and found.weight.tolist() == [1, 1]
    who = {"who": [1, 2] * 30, "what": [*range(60)]}
    named = cc.judges(cc.Preferences.from_comparisons(**pairs, cluster=who), "who")
    assert named.names.tolist() == [1, 2] and named.votes.tolist() == [30, 30]
