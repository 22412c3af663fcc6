"""Parts held out: each judgment is foretold once, by what it is no part of; means and errors over all parts."""

from __future__ import annotations

import numpy as np
import pytest
from test_uncertainty_ranks import simulated

import concordant as cc
from concordant.errors import UsageError
from concordant.preferences.splits import folds


def by_name(found):
    return {row["name"]: row for row in found.table.to_pylist()}


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_random_parts_are_those_of_folds(ties):
    rows = np.random.default_rng(0).choice(["left", "right", "tie"], 90, p=[0.5, 0.3, 0.2])
    votes = cc.read({"left": [0, 0, 1] * 30, "right": [1, 2, 2] * 30, "winner": rows.tolist()})
    found = by_name(cc.cross_validate(votes, folds=3, seed=4, ties=ties, prior=0.2))
    parts = [by_name(cc.rank(a, ties=ties, prior=0.2).evaluate(b)) for a, b in folds(votes, 3, seed=4)]
    for name in ("log-loss", "brier"):
        mean = sum(part[name]["mean"] * part[name]["judgments"] for part in parts) / 90
        assert np.isclose(found[name]["mean"], mean)
        assert found[name]["judgments"] == 90


def test_clusters_are_held_out_whole_and_counted():
    who = np.arange(60) % 6
    votes = cc.read({"winner": who % 2, "loser": 2 + who % 3, "who": who}, cluster="who")
    for train, held in folds(votes, 3, split="clusters"):
        assert not {*train.clusters} & {*held.clusters}
        assert len(train) + len(held) == 60
    random = by_name(cc.cross_validate(votes, folds=3))["log-loss"]
    plain = by_name(cc.cross_validate(cc.read({"winner": who % 2, "loser": 2 + who % 3}), folds=3))["log-loss"]
    assert np.isclose(random["mean"], plain["mean"])  # the deal does not look at clusters
    assert random["standard_error"] > 1.5 * plain["standard_error"]  # ten equal votes of a person are not ten


def test_error_of_clusters_that_lie_in_several_parts():
    rng = np.random.default_rng(2)
    side, who = rng.integers(0, 2, 200), rng.integers(0, 8, 200)
    votes = cc.read({"winner": side, "loser": 1 - side, "who": who}, cluster="who")
    found = by_name(cc.cross_validate(votes, folds=4, prior=0.5))["log-loss"]
    sums, parts = np.zeros((8, 2)), list(folds(votes, 4))
    for train, held in parts:
        score = cc.rank(train, prior=0.5, interval="none")
        value = dict(zip(score.to_arrow()["item"].to_pylist(), score.score, strict=True))
        for row in range(held.distinct):
            winner, loser = held.items[held.winner[row]], held.items[held.loser[row]]
            lost = np.log1p(np.exp(value[loser] - value[winner]))
            sums[held.clusters[held.cluster[row]]] += np.array([lost, 1]) * held.count[row]
    mean = sums[:, 0].sum() / 200
    assert np.isclose(found["mean"], mean)
    error = np.sqrt(8 / 7 * ((sums[:, 0] - mean * sums[:, 1]) ** 2).sum()) / 200
    assert np.isclose(found["standard_error"], error)


def test_time_learns_from_the_past_alone():
    votes = cc.Preferences.from_comparisons(["a"] * 40 + ["b"] * 20, ["b"] * 40 + ["a"] * 20, time=np.arange(60.0))
    found = cc.cross_validate(votes, split="time", folds=3)
    assert by_name(found)["accuracy"]["mean"] == 0.5  # a beats b in all that came before either part
    assert by_name(found)["accuracy"]["judgments"] == 40
    faded = cc.cross_validate(votes, split="time", folds=6, half_life=1)
    assert (
        by_name(faded)["log-loss"]["mean"]
        < by_name(cc.cross_validate(votes, split="time", folds=6))["log-loss"]["mean"]
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"split": "x"}, "random, cluster, time"),
        ({"split": "cluster"}, "cluster"),
        ({"split": "time"}, "time"),
        ({"folds": 1}, "2"),
        ({"half_life": 3}, "split='time'"),
        ({"structure": "borda"}, "how often"),
        ({"folds": 1_000_000_000}, "most"),
    ],
)
def test_what_cannot_be_held_out(asked, said):
    with pytest.raises(UsageError, match=said):
        cc.cross_validate(simulated([1.0, 0.0, -1.0], 30, seed=0), **asked)


def test_a_single_judgment_and_none():
    with pytest.raises(UsageError, match="too few"):
        cc.cross_validate(cc.Preferences.from_comparisons(["a"], ["b"]))
    with pytest.raises(UsageError, match="no judgments"):
        cc.cross_validate(cc.Preferences())
