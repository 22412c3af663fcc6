"""Leximax Copeland subject to Pareto against all orders that linear scorers of two features have; bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.axioms import features_of, pareto, profile

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.solvers.linear_orders import fewest_broken, leximax, most_kept, pushed, rows_between, widest


def orders_of(X):
    """Every order that a linear scorer of two features has, by turning its direction once round."""
    pairs = itertools.combinations(range(len(X)), 2)
    turns = np.sort([np.arctan2(*(X[i] - X[j])[::-1]) + s * np.pi / 2 for i, j in pairs for s in (1, -1)])
    turns = np.unique(np.mod(turns, 2 * np.pi))
    between = np.append((turns[1:] + turns[:-1]) / 2, (turns[-1] + turns[0] + 2 * np.pi) / 2)
    return {tuple(np.argsort(-(X @ [np.cos(t), np.sin(t)])).tolist()) for t in between}


def test_every_order_is_found_by_its_half_spaces_and_no_other():
    X = np.random.default_rng(0).normal(size=(5, 2))
    found = orders_of(X)
    assert len(found) == 5 * 4  # 2 · 10 directions at which two items change places
    for order in itertools.permutations(range(5)):
        rows = rows_between(X, np.array(order[:-1]), np.array(order[1:]))
        assert (len(widest(rows).clash) == 0) == (order in found)


@pytest.mark.parametrize("seed", range(40))
def test_the_rule_against_all_orders(seed):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(3, 8))
    X = rng.normal(size=(items, 2))
    utility = X @ (rng.normal(size=(2, 5)) + rng.normal(size=(2, 1)))
    if seed % 2:
        utility += rng.normal(size=utility.shape)
    votes = profile(utility)
    margin = np.sign(utility[:, None] - utility).sum(axis=2)
    worth = np.sign(margin).sum(axis=1)
    key = [(worth[i], margin[i].sum(), -i) for i in range(items)]
    unanimous = [(i, j) for i, j in itertools.permutations(range(items), 2) if margin[i, j] == 5]
    keep = [o for o in orders_of(X) if all(o.index(i) < o.index(j) for i, j in unanimous)]
    ranker = cc.CopelandRanker().fit(features_of(X), votes)
    order = tuple(np.argsort(-ranker.predict(features_of(X))).tolist())
    assert ranker.status_["exact"] and ranker.status_["pareto"]["pairs"] == len(unanimous)
    if keep:
        assert order == max(keep, key=lambda o: [key[i] for i in o])
        assert ranker.status_["pareto"]["kept"] == len(unanimous)
    else:
        broken = sum(order.index(i) > order.index(j) for i, j in unanimous)
        assert 0 < broken <= len(unanimous) - ranker.status_["pareto"]["kept"]
    free = cc.CopelandRanker(pareto=None).fit(features_of(X), votes).predict(features_of(X))
    assert tuple(np.argsort(-free).tolist()) == max(orders_of(X), key=lambda o: [key[i] for i in o])


@pytest.mark.parametrize("seed", range(25))
def test_fewest_broken_pairs_against_all_orders(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(3, 7))
    X = rng.normal(size=(items, 2))
    pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in itertools.combinations(range(items), 2)]
    weight = rng.integers(1, 4, len(pairs)).astype(float)
    D = rows_between(X, *np.array(pairs).T)
    least = min(sum(w for (i, j), w in zip(pairs, weight) if o.index(i) > o.index(j)) for o in orders_of(X))
    found = fewest_broken(D, weight)
    assert found.exact and found.lower == found.upper == least == weight[found.broken].sum()
    monkeypatch.setattr("concordant.learning.solvers.linear_orders.RAYS", 0)  # by integer programs instead
    again = fewest_broken(D, weight)
    assert again.lower <= least <= again.upper == weight[again.broken].sum()
    kept, point = most_kept(D, weight)
    assert (D[kept] @ point > 0).all() and weight[~kept].sum() >= least
    for row in np.flatnonzero(~kept):  # nothing can be added
        assert len(widest(np.vstack((D[kept], D[[row]]))).clash)


def test_rows_that_are_added_as_they_are_broken_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    w = rng.normal(size=6)
    one, other = np.array([*itertools.combinations(np.argsort(-(X @ w)), 2)]).T
    D = rows_between(X, one, other)
    whole = widest(np.vstack((D, -D[:1])))
    assert len(whole.clash) >= 2
    inside = widest(D)
    monkeypatch.setattr("concordant.learning.solvers.linear_orders.AT_ONCE", 40)
    assert widest(D).margin == pytest.approx(inside.margin, rel=1e-6) and inside.margin > 0
    clash = np.vstack((D, -D[:1]))[widest(np.vstack((D, -D[:1]))).clash]
    assert len(clash) <= 7 and len(widest(clash).clash)


def test_few_programs_are_an_approximation_with_a_gap():
    rng = np.random.default_rng(1)
    X, utility = rng.normal(size=(30, 5)), rng.normal(size=(30, 9))
    exact = cc.CopelandRanker().fit(features_of(X), profile(utility))
    rough = cc.CopelandRanker(programs=5).fit(features_of(X), profile(utility))
    assert exact.status_["exact"] and not rough.status_["exact"] and rough.status_["status"] == "stopped"
    order, own = (np.argsort(-one.predict(features_of(X))) for one in (exact, rough))
    places = rough.status_["places"]
    assert places >= 1 and (order[:places] == own[:places]).all()
    worth = np.sign(np.sign(utility[:, None] - utility).sum(axis=2)).sum(axis=1)
    best, got = np.cumsum(np.sort(worth)[::-1]), np.cumsum(worth[own])
    assert rough.status_["gap"] == pytest.approx((best - got).max() / best.max())
    assert any("proved the first" in note for note in rough.status_["notes"])


def test_a_scorer_that_is_inside_is_not_moved():
    rows = np.array([[1.0, 0.0]])
    assert pushed(rows, np.array([1.0, 0.0]), np.array([3.0, 9.0])).tolist() == [3.0, 9.0]


def test_places_of_several_queries_hold_together():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(12, 4))
    queries = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    found = leximax(Z, queries, np.zeros((0, 4)), rng.normal(size=4), places=1, programs=999)
    assert found.exact and (found.rows @ found.point > 0).all()
    for query, order in zip(queries, found.order, strict=True):
        assert order[0] == query[int(np.argmax(Z[query] @ found.point))]


def test_the_usual_loss_breaks_what_all_agree_on_and_this_does_not(tmp_path):
    votes, features = pareto()
    usual = cc.EdgeRanker("ranknet", ridge=1e-6).fit(features, votes).predict(features)
    assert usual[1] < usual[0]  # all three voters prefer 1
    ranker = cc.CopelandRanker().fit(features, votes)
    assert ranker.predict(features)[1] > ranker.predict(features)[0]
    again = cc.load_model(cc.save_model(ranker, tmp_path / "model"))
    assert (again.predict(features) == ranker.predict(features)).all()
    most = cc.EdgeRanker("majority", ridge=1e-6).fit(features, votes).predict(features)
    assert np.argsort(-most).tolist() == [3, 2, 1, 0]  # all majorities, which a linear scorer has


def test_what_the_features_cannot_express_is_named():
    votes = cc.Preferences.from_comparisons(list("aaabbb"), list("bbbccc"), cluster=list("uvwuvw"))
    ranker = cc.CopelandRanker().fit({"item": ["a", "b", "c"], "x": [1.0, 2.0, 2.0]}, votes)
    (note,) = (one for one in ranker.status_["notes"] if "cannot express" in one)
    assert "1 of 2 pairs" in note and "'b' above 'c'" in note and "1 of them is of items with equal features" in note
    assert ranker.coef_[0] < 0


def test_a_winner_that_unanimous_pairs_exclude_is_said():
    """c beats a, b and d by 2 to 1; d lies right below, so c first takes w_y > 0, and b above a, as nobody has it."""
    rows = {"item": list("abcd"), "x": [-1.0, -1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0, -1.0]}
    pairs = [(order[i], order[j], who) for who, order in enumerate(("cdab", "cabd", "dabc"))
             for i, j in itertools.combinations(range(4), 2)]  # fmt: skip
    winner, loser, who = zip(*pairs)
    votes = cc.Preferences.from_comparisons(winner, loser, cluster=who)

    def said(notes):
        return [str(note) for note in notes if getattr(note, "code", "") == "winner excluded"]

    ranker = cc.CopelandRanker().fit(rows, votes)
    [note] = said(ranker.status_["notes"])
    assert "has both 'c' first" in note and "'a' above 'b'" in note and "pareto=None puts 'c' first" in note
    a, b, c, d = ranker.predict(rows)
    assert a > b and c < max(a, b, d)
    free = cc.CopelandRanker(pareto=None).fit(rows, votes)
    assert free.predict(rows).argmax() == 2 and not said(free.status_["notes"])
    [note] = said(cc.axiom_audit(votes, ranker, rows, refits=0).notes)
    assert "has both c first" in note and "(a before b)" in note
    rows["y"][3] = 1.0  # d above: c first takes w_y < 0, as everybody has a and b
    ranker = cc.CopelandRanker().fit(rows, votes)
    assert ranker.predict(rows).argmax() == 2 and not said(ranker.status_["notes"])
    assert not said(cc.axiom_audit(votes, ranker, rows, refits=0).notes)


@pytest.mark.parametrize("D", [np.zeros((0, 3)), np.zeros((2, 3)), np.zeros((2, 0))])
def test_pairs_that_no_feature_tells_apart_are_all_broken(D):
    found = fewest_broken(D, np.ones(len(D)))
    assert (found.lower, found.upper, found.point.tolist()) == (len(D), len(D), [0.0] * D.shape[1])


@pytest.mark.parametrize(("queries", "agree", "bind"), [(1, 2, 1), (2, 4, 0), (2, 5, 2)])
def test_of_several_queries_more_have_to_agree(queries, agree, bind):
    where = np.repeat(np.arange(queries), agree)
    who = np.tile(np.arange(agree), queries)
    votes = cc.Preferences.from_comparisons(2 * where, 2 * where + 1, where, cluster=who)
    features = {"query": np.repeat(np.arange(queries), 2), "item": np.arange(2 * queries)}
    found = cc.CopelandRanker().fit(features | {"x": features["item"] % 2}, votes)
    assert found.status_["pareto"] == {"pairs": bind, "kept": bind}


def test_one_annotator_and_no_majority():
    features = {"item": ["a", "b"], "x": [1.0, 2.0]}
    alone = cc.CopelandRanker().fit(features, cc.Preferences.from_comparisons(["a"], ["b"], cluster=["u"]))
    assert any("unanimity binds nowhere" in one for one in alone.status_["notes"]) and alone.coef_[0] < 0
    with pytest.raises(InputError, match="no pair of items has a majority"):
        cc.CopelandRanker().fit(features, cc.Preferences.from_comparisons(["a", "b"], ["b", "a"]))
    votes = cc.Preferences.from_comparisons(["a", "a"], ["b", "b"])
    for options, match in (
        ({"places": "x"}, "places is 'auto', 'all' or"),
        ({"pareto": "all"}, "pareto is 'auto', a number of annotators or None"),
        ({"pareto": 0}, "annotators who have to agree"),
        ({"programs": -1}, "programs must be"),
    ):
        with pytest.raises(UsageError, match=match):
            cc.CopelandRanker(**options).fit(features, votes)
    clicks = cc.Preferences.from_selections(["q"] * 2, [1, 1], [1, 2], ["a", "b"], [0, 1])
    with pytest.raises(InputError, match="no votes on pairs"):
        cc.CopelandRanker().fit(features, clicks)
