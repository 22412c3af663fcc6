"""The axiom audit against what pairs of a profile say, by hand; its noise against simulation."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from benchmarks.axioms import PROFILES, features_of, logistic, profile
from scipy.stats import beta, binom

import concordant as cc
from concordant.auditing.axioms import _spread
from concordant.errors import InputError, UsageError
from concordant.preferences.graphs import Batch
from concordant.ranking.pair_votes import PairVotes


def rows(found):
    return {row["axiom"]: row for row in found.table.to_pylist()}


@pytest.mark.parametrize("seed", range(12))
def test_counts_by_hand(seed):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(3, 7))
    utility = rng.normal(size=(items, 5)) + 2 * rng.normal(size=(items, 1))
    score = utility.mean(axis=1) + rng.normal(size=items)
    found = rows(cc.axiom_audit(profile(utility), dict(enumerate(score.tolist()))))
    net = np.sign(utility[:, None] - utility).sum(axis=2)
    pairs = [(i, j) for i, j in itertools.permutations(range(items), 2) if net[i, j] > 0]
    wrong = [(i, j) for i, j in pairs if score[i] <= score[j]]
    all_agree = [(i, j) for i, j in pairs if net[i, j] == 5]
    winner = [i for i in range(items) if all(net[i, j] > 0 for j in range(items) if j != i)]
    acyclic = (
        len({tuple(sorted(row)) for row in [np.sign(net).sum(axis=1)]})
        and len(set(np.sign(net).sum(axis=1).tolist())) == items
    )
    assert (found["pareto"]["of"], found["pareto"]["violated"]) == (
        len(all_agree),
        sum(pair in wrong for pair in all_agree),
    )
    assert (found["majority"]["of"], found["majority"]["violated"]) == (len(pairs), len(wrong))
    assert found["condorcet winner"]["of"] == len(winner)
    assert found["condorcet winner"]["violated"] == sum(score[i] < score.max() for i in winner)
    assert found["condorcet order"]["of"] == acyclic
    assert found["condorcet order"]["violated"] == (acyclic and bool(wrong))


def test_one_vote_a_person_and_pair():
    votes = cc.Preferences.from_comparisons(
        ["a", "a", "a", "b", "b", "a"], ["b"] * 3 + ["a"] * 2 + ["b"], tie=[0, 0, 0, 0, 0, 1],
        cluster=["u", "u", "u", "v", "w", "w"],
    )  # fmt: skip
    found = PairVotes.of(Batch.whole(votes))
    assert (found.ahead[0], found.behind[0], found.level[0], found.annotators) == (1, 2, 0, 3)
    bare = PairVotes.of(Batch.whole(cc.Preferences.from_comparisons(["a"] * 3, ["b"] * 3, tie=[0, 0, 1])))
    assert (bare.ahead[0], bare.behind[0], bare.level[0], bare.annotators) == (2, 0, 1, None)
    orders = cc.Preferences.from_orders(None, [1, 1, 1, 2, 2, 2], list("abcabc"), [1, 2, 2, 1, 2, 3])
    assert PairVotes.of(Batch.whole(orders)).level.tolist() == [0, 0, 1]


def test_violations_by_chance_and_sure_ones():
    utility = np.repeat([[1.0, 0.0], [0.0, 1.0]], [12, 2], axis=0).T  # 12 to 2
    found = rows(cc.axiom_audit(profile(utility), {0: 0.0, 1: 1.0}))["majority"]
    assert found["by_chance"] == pytest.approx(beta.cdf(0.5, 13, 3))
    assert found["sure"] == int(binom.sf(11, 14, 0.5) <= 0.05) == 1
    assert cc.axiom_audit(profile(utility), {0: 0.0, 1: 1.0}).cases["p_value"][0].as_py() == pytest.approx(
        binom.sf(11, 14, 0.5)
    )


def test_the_number_of_real_violations_is_covered():
    """Shares drawn from Beta(2, 2), five votes each, a scorer that knows nothing: the interval holds what is real."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        share = rng.beta(2.0, 2.0, 80)
        won = rng.binomial(5, share)
        winner = [f"{n}a" for n in range(80) for _ in range(5)]
        first = np.array([k < won[n] for n in range(80) for k in range(5)])
        loser = [f"{n}b" for n in range(80) for _ in range(5)]
        one, other = np.where(first, winner, loser), np.where(first, loser, winner)
        query = [str(n) for n in range(80) for _ in range(5)]
        score = {f"{n}{side}": float(rng.normal()) for n in range(80) for side in "ab"}
        votes = cc.Preferences.from_comparisons(one.tolist(), other.tolist(), query=query)
        found = rows(cc.axiom_audit(votes, score, refits=0))["majority"]
        ahead = np.array([score[f"{n}a"] > score[f"{n}b"] for n in range(80)])
        real = int((((won > 2) & ~ahead & (share > 0.5)) | ((won < 3) & ahead & (share < 0.5))).sum())
        held.append(found["lower"] <= real <= found["upper"])
    assert 0.85 <= np.mean(held) <= 1.0


def test_the_spread_of_shares_is_the_likeliest():
    rng = np.random.default_rng(0)
    won = rng.binomial(20, rng.beta(3.0, 3.0, 4000)).astype(float)
    assert _spread(won, 20 - won) == pytest.approx(3.0, rel=0.1)
    assert _spread(won[:5], 20 - won[:5]) == 1.0


@pytest.mark.parametrize("name", PROFILES)
def test_each_counterexample_is_found_and_mended(name):
    votes, features = PROFILES[name]()
    usual = rows(cc.axiom_audit(votes, dict(enumerate(logistic(votes, features).tolist())), features))
    assert usual["majority"]["violated"] > 0 and usual["condorcet order"]["violated"] == 1
    assert usual["pareto"]["violated"] == (name == "Pareto (2405.14758)")
    assert usual["condorcet winner"]["violated"] == (name == "hidden context (2312.08358)")
    assert usual["majority"]["best"] == usual["majority"]["best_lower"] == 0
    mended = cc.axiom_audit(votes, cc.CopelandRanker().fit(features, votes), features, refits=0)
    assert not any(row["violated"] for row in mended.table.to_pylist())
    assert [*mended.lines()][-1] == "nothing that people agree on is violated"


def test_pairwise_learning_is_a_borda_count():
    """Siththaranjan et al. (2024): with every other person in each context x < .8 beats a share of x + .1."""
    x = (np.arange(200) + 0.5) / 200
    share = [((a > x).mean() + np.where(x < 0.8, a > x, 1.0).mean()) / 2 for a in x[x < 0.8]]
    np.testing.assert_allclose(share, x[x < 0.8] + 0.1, atol=1 / 200)
    votes, features = PROFILES["hidden context (2312.08358)"]()
    borda = cc.rank(votes, "borda", interval="none").to_arrow()["item"].to_pylist()
    assert borda[0] == 6 and np.argmax(logistic(votes, features)) == 6  # .7, though six of eleven prefer 1


def test_clones_that_are_parted():
    utility = np.array([[3.0, 0.0, 3.0], [3.0, 0.0, 3.0], [1.0, 2.0, 1.0]])
    votes = profile(utility)
    assert cc.axiom_audit(votes, {0: 2.0, 1: 0.0, 2: 1.0}).violated("clones") == 1
    assert cc.axiom_audit(votes, {0: 2.0, 1: 1.5, 2: 1.0}).violated("clones") == 0


def test_a_ranker_is_fitted_again():
    """A copy of an item for each of three; pairs of the five others; halves of the nine voters."""
    rng = np.random.default_rng(4)
    utility = rng.normal(size=(6, 9)) + rng.normal(size=(6, 1))
    votes, features = profile(utility), features_of(rng.normal(size=(6, 2)))
    found = rows(cc.axiom_audit(votes, cc.EdgeRanker("ranknet").fit(features, votes), features, refits=3))
    assert found["copies"]["of"] == 3 * 10 and found["separability"]["of"] > 0
    none = rows(cc.axiom_audit(votes, cc.EdgeRanker("ranknet").fit(features, votes), features, refits=0))
    assert "copies" not in none


def test_scorers_of_every_form():
    votes, features = PROFILES["majority (2405.14758)"]()
    ranker = cc.EdgeRanker("ranknet").fit(features, votes)
    score = ranker.predict(features)
    forms = [
        (dict(enumerate(score.tolist())), None),
        ({"item": [0, 1, 2], "score": score}, None),
        ({("all", n): float(one) for n, one in enumerate(score)}, None),
        (lambda _, items: [float(score[item]) for item in items], None),
        (lambda X: X @ ranker.coef_, features),
        (ranker, features),
    ]
    for scorer, given in forms:
        assert cc.axiom_audit(votes, scorer, given, refits=0).violated("majority") == 1
    board = cc.rank(votes)
    assert cc.axiom_audit(votes, board).violated("majority") >= 0
    for wrong, error, match in (
        (3, UsageError, "a scorer is"),
        (ranker, UsageError, "give features"),
        (lambda *_: [1.0], UsageError, "returned 1 scores for 3 rows"),
        ({"x": 1.0}, InputError, "none of the judged items has a score"),
        ({0: np.inf, 1: 1.0, 2: 0.0}, InputError, "infinite"),
    ):
        with pytest.raises(error, match=match):
            cc.axiom_audit(votes, wrong)


def test_notes_on_little_to_audit():
    alone = cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], cluster=["u", "u"])
    found = cc.axiom_audit(alone, {"a": 1.0, "b": 2.0, "c": 0.0})
    assert any("there is one annotator" in note for note in found.notes)
    assert any("nobody disagrees" in note for note in found.notes)
    some = cc.axiom_audit(alone, {"a": 1.0, "b": 2.0})
    assert any("1 of 2 judged pairs are left out" in note for note in some.notes)
    assert any(
        "nobody says who judged" in n
        for n in cc.axiom_audit(cc.Preferences.from_comparisons(["a"], ["b"]), {"a": 1, "b": 0}).notes
    )
    with pytest.raises(UsageError, match="was not asked"):
        found.violated("fairness")
    with pytest.raises(UsageError, match="level must be"):
        cc.axiom_audit(alone, {"a": 1.0}, level=2)


def test_words_and_tables():
    votes, features = PROFILES["Pareto (2405.14758)"]()
    found = cc.axiom_audit(votes, cc.EdgeRanker("ranknet").fit(features, votes), features, refits=0)
    text = str(found)
    assert "pareto: the scorer turns round 1 of 1 pairs on which all annotators agree (100%)" in text
    assert "a linear scorer of these features can do with 0" in text
    assert "Such as: 1 should be before 0 (3 to 0)" in text
    assert json.loads(json.dumps(found.to_dict()))["axioms"][0]["violated"] == 1
    assert found.to_markdown().startswith("| axiom | of | violated |") and "<table" in found._repr_html_()
