"""Fusion against brute force over completions, values that ranx printed, and what is refused."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings

import concordant as cc
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import with_unranked_last
from concordant.ranking.fusion import combsum, rrf
from concordant.ranking.structures import structure
from small_logs import logs

RUNS = {
    "a": {"q1": {"d1": 9.0, "d2": 7.5, "d3": 6.0, "d4": 1.0}, "q2": {"d1": -3.0, "d5": -4.5, "d6": -12.0}},
    "b": {"q1": {"d3": 0.91, "d1": 0.52, "d5": 0.11}, "q2": {"d6": 0.8, "d7": 0.7, "d1": 0.1}},
    "c": {"q1": {"d2": 120.0, "d6": 80.0, "d1": 35.0}, "q2": {"d5": 4.0, "d1": 3.0, "d7": 1.5}},
}
ROWS = [(q, run, d, score) for run, of in RUNS.items() for q, docs in of.items() for d, score in docs.items()]
RANX = {
    ("rrf", 60.0): {
        "q1": [0.04839549075403121, 0.03252247488101534, 0.032266458495966696, 0.015625, 0.015873015873015872,
               0.016129032258064516],
        "q2": [0.04839549075403121, 0.03252247488101534, 0.032266458495966696, 0.03200204813108039],
    },
    ("rrf", 10.0): {
        "q1": [0.2511655011655012, 0.17424242424242425, 0.16783216783216784, 0.07142857142857142, 0.07692307692307693,
               0.08333333333333333],
        "q2": [0.2511655011655012, 0.17424242424242425, 0.16783216783216784, 0.16025641025641024],
    },
    ("combsum", None): {
        "q1": [1.5125, 1.8125, 1.625, 0.0, 0.0, 0.5294117647058824],
        "q2": [1.6, 1.8333333333333335, 1.0, 0.857142857142857],
    },
}  # fmt: skip
"""Of ranx 0.3.21, by document: fuse with method="rrf", params={"k": …}, and with norm="min-max", method="sum"."""


@pytest.mark.parametrize(("name", "k"), RANX)
def test_agrees_with_ranx(name, k):
    query, run, item, score = zip(*ROWS, strict=True)
    prefs = cc.Preferences.from_ratings(query, item, score, run)
    board = cc.rank(prefs, name, interval="none", **({} if k is None else {"k": k})).to_arrow().to_pydict()
    found = {q: {} for q in RANX[name, k]}
    for q, d, value in zip(board["query"], board["item"], board["score"], strict=True):
        found[q][d] = value
    for q, values in RANX[name, k].items():
        np.testing.assert_allclose([found[q][d] for d in sorted(found[q])], values, rtol=1e-12)


def test_orders_of_the_same_lists_fuse_alike():
    ranked = [(q, run, d, 1 + sorted(-x for x in RUNS[run][q].values()).index(-s)) for q, run, d, s in ROWS]
    orders = cc.Preferences.from_orders(*zip(*ranked, strict=True))
    query, run, item, score = zip(*ROWS, strict=True)
    scores = cc.Preferences.from_ratings(query, item, score, run)
    np.testing.assert_allclose(rrf(Batch.whole(orders)).value, rrf(Batch.whole(scores)).value, rtol=1e-15)


def test_unlisted_last_is_the_mean_over_all_completions():
    lists, items = [["c", "a"], ["b", "e", "d"], ["a"], ["e", "d", "c", "b", "a"]], "abcde"
    expected = dict.fromkeys(items, 0.0)
    for one in lists:
        rest = [*permutations([x for x in items if x not in one])]
        for completed in rest:
            for place, x in enumerate([*one, *completed], 1):
                expected[x] += 1 / (7 + place) / len(rest)
    rows = [(n, x, place) for n, one in enumerate(lists) for place, x in enumerate(one, 1)]
    prefs = cc.Preferences.from_orders(None, *zip(*rows, strict=True))
    found = rrf(Batch.whole(prefs), k=7, unlisted="last").value
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-13)


@given(logs("orders"))
@settings(max_examples=20)
def test_unlisted_last_is_rrf_of_the_lists_filled_up(prefs):
    filled = rrf(Batch.whole(with_unranked_last(prefs)), k=3.5)
    np.testing.assert_allclose(rrf(Batch.whole(prefs), k=3.5, unlisted="last").value, filled.value, rtol=1e-12)


def test_z_scores_and_what_they_leave_out():
    prefs = cc.Preferences.from_ratings(None, ["x", "y", "z", "x", "z", "w"], [1.0, 3, 8, 4, 4, 4], [1, 1, 1, 2, 2, 2])
    z = (np.array([1.0, 3, 8]) - 4) / np.sqrt(26 / 3)
    x_y_z_w = combsum(Batch.whole(prefs), normalise="z-score").value[[1, 2, 3, 0]]
    np.testing.assert_allclose(x_y_z_w, [*z, z[0]], rtol=1e-14)
    wide = cc.Preferences.from_ratings(None, ["x", "y", "z"], [-1.7e308, 0.0, 1.7e308], [1, 1, 1])
    np.testing.assert_allclose(combsum(Batch.whole(wide)).value, [0, 0.5, 1], rtol=1e-15)
    np.testing.assert_allclose(combsum(Batch.whole(wide), normalise="z-score").value, z_of([-1, 0, 1]), rtol=1e-15)


def z_of(values):
    return (np.array(values) - np.mean(values)) / np.std(values)


def test_a_list_of_equal_scores_has_all_its_items_at_the_top():
    prefs = cc.Preferences.from_ratings(None, ["x", "y", "z"], [2.0, 2.0, 5.0], ["a", "a", "b"])
    assert combsum(Batch.whole(prefs)).value.tolist() == [1, 1, 1]


def test_lists_are_what_a_bootstrap_draws():
    """Item x leads all lists but one of twenty, and leads in nearly all replicates; of one list nothing is known."""
    lists = [["x", "y", "z"]] * 19 + [["z", "y", "x"]]
    rows = [(n, item, place) for n, one in enumerate(lists) for place, item in enumerate(one, 1)]
    board = cc.rank(cc.Preferences.from_orders(None, *zip(*rows, strict=True)), "rrf")
    assert board.interval == "bootstrap"
    assert (board.rank_lower.tolist(), board.rank_upper.tolist()) == ([1, 2, 3], [1, 2, 3])
    alone = cc.rank(cc.Preferences.from_orders(None, [1, 1], ["x", "y"], [1, 2]), "rrf")
    assert np.isneginf(alone.lower).all()
    with pytest.raises(cc.UsageError, match=r"rrf has no hessian intervals"):
        cc.rank(cc.Preferences.from_orders(None, [1, 1], ["x", "y"], [1, 2]), "rrf", interval="hessian")


def test_what_is_refused():
    orders = Batch.whole(cc.Preferences.from_orders(None, [1, 1], ["x", "y"], [1, 2]))
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(cc.UsageError, match="k is added to the ranks"):
            rrf(orders, k=bad)
    with pytest.raises(cc.UsageError, match="rrf: k must be a number, not '60'"):
        structure("rrf")(orders, k="60")
    with pytest.raises(cc.UsageError, match="'nothing' or 'last'"):
        rrf(orders, unlisted="first")
    with pytest.raises(cc.UsageError, match=r"combsum reads ratings, not orders; structures for orders: .*rrf"):
        structure("combsum")(orders)
    with pytest.raises(cc.UsageError, match="'min-max' or 'z-score'"):
        combsum(orders, normalise="max")
    with pytest.raises(cc.UsageError, match="across_components"):
        cc.rank(orders.prefs, "rrf", across_components=True)
    with pytest.raises(cc.UsageError, match="zero of their own"):
        cc.rank(orders.prefs, "rrf", reference="x")


def test_what_lists_leave_out_is_no_opinion_only_where_it_is_read_so(tmp_path):
    log = tmp_path / "orders.csv"
    log.write_text("judgment,item,rank\n1,x,1\n1,y,2\n2,x,1\n2,z,2\n")
    prefs = cc.read(log)
    codes = {name: [note.code for note in cc.rank(prefs, name, interval="none").notes] for name in ("borda", "rrf")}
    assert "not ranked" in codes["borda"]
    assert "not ranked" not in codes["rrf"]
