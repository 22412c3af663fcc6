"""Camps: likelihoods beside plain loops and SciPy, one camp beside Bradley–Terry, camps that were planted are found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import concordant as cc
from concordant.errors import CannotRank, InputError, UsageError
from concordant.learning.annotators import camps as module
from concordant.learning.annotators.design import Design
from concordant.learning.annotators.mixture import fit_mixture
from running import exit_status
from seeds import seed


def drawn(number, *, annotators=40, votes=40, items=8, camps=2, ties=0.0, share=None):
    """Votes of annotators in camps with abilities of their own; the camp of each and the abilities."""
    random = np.random.default_rng(number)
    ability = random.normal(size=(camps, items)) * 1.5
    camp = np.sort(random.choice(camps, annotators, p=share))
    who = np.repeat(np.arange(annotators), votes)
    one = random.integers(items, size=len(who))
    other = (one + random.integers(1, items, size=len(who))) % items
    won = random.random(len(who)) < expit(ability[camp[who], one] - ability[camp[who], other])
    prefs = cc.Preferences.from_comparisons(
        np.where(won, one, other), np.where(won, other, one), cluster=who, tie=random.random(len(who)) < ties
    )
    return prefs, camp, ability


def votes_of(prefs):
    """Plain (annotator, winner, loser, tie, how much) of every distinct vote."""
    tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    mass = prefs.count * (1.0 if prefs.weight is None else prefs.weight)
    return list(
        zip(prefs.cluster.tolist(), prefs.winner.tolist(), prefs.loser.tolist(), tie.tolist(), mass, strict=True)
    )


def likelihood(votes, share, score, prior):
    """ℓ by loops over votes."""
    total = {}
    for who, winner, loser, tie, mass in votes:
        for camp, s in enumerate(score):
            gap = s[winner] - s[loser]
            value = 0.5 * (log_expit(gap) + log_expit(-gap)) if tie else log_expit(gap)
            total.setdefault(who, np.zeros(len(share)))[camp] += mass * value
    each = sum(float(np.logaddexp.reduce(np.log(share) + one)) for one in total.values())
    return each - 0.5 * prior * float(np.sum(np.square(score)))


def test_one_camp_is_bradley_terry():
    prefs, _, _ = drawn(seed(1), ties=0.2)
    random = np.random.default_rng(seed(2))
    prefs = replace(prefs, weight=random.choice([0.5, 1.0, 2.0], prefs.distinct))
    found = cc.camps(prefs, number=1, prior=0.3)
    board = cc.rank(prefs.pool(), prior=0.3, interval="none")
    expected = np.empty(len(board.items))
    expected[board.item] = board.score
    assert found.score[0] == pytest.approx(expected - expected.mean(), abs=1e-9)
    assert found.share.tolist() == [1.0]
    assert "a stronger preference counts as so many votes" in found.notes


def test_one_camp_with_features_is_the_linear_scorer_of_the_logistic_loss():
    prefs, _, ability = drawn(seed(3))
    X = np.column_stack([ability[0], np.arange(8.0), ability[0] ** 2])
    features = (X, None, np.arange(8))
    found = cc.camps(prefs, features=features, number=1, prior=2.0)
    ranker = cc.EdgeRanker("ranknet", ridge=2.0 / len(prefs)).fit(features, prefs)
    assert found.coefficients[0] == pytest.approx(ranker.coef_, abs=1e-7)
    new = np.random.default_rng(0).normal(size=(5, 3))
    gaps = np.diff(found.predict(new)[0])
    assert gaps == pytest.approx(np.diff(ranker.predict(new)), abs=1e-7)


def test_likelihood_is_that_of_plain_loops_and_no_start_of_scipy_finds_a_greater_one():
    prefs, _, _ = drawn(seed(4), annotators=8, votes=12, items=3, ties=0.1)
    votes, prior = votes_of(prefs), 0.5
    found = cc.camps(prefs, number=2, prior=prior, starts=20, folds=2)
    assert likelihood(votes, found.share, found.score, prior) == pytest.approx(found.log_likelihood, abs=1e-6)

    def loss(free):
        share = np.array([expit(free[0]), expit(-free[0])])
        return -likelihood(votes, share, free[1:].reshape(2, 3), prior)

    random = np.random.default_rng(seed(5))
    best = max(-minimize(loss, random.normal(size=7) * 1.5, method="L-BFGS-B").fun for _ in range(12))
    assert found.log_likelihood >= best - 1e-5
    at = np.concatenate([[np.log(found.share[0] / found.share[1])], found.score.ravel()])
    slope = [(loss(at + step) - loss(at - step)) / 2e-4 for step in 1e-4 * np.eye(7)]
    assert np.abs(slope).max() < 0.02


def test_memberships_are_bayes_rule():
    prefs, _, _ = drawn(seed(6), annotators=6, votes=5, items=3)
    found = cc.camps(prefs, number=2, prior=0.5, folds=2)
    for who in range(6):
        own = [vote for vote in votes_of(prefs) if vote[0] == who]
        joint = [
            share * np.prod([expit(s[i] - s[j]) ** mass for _, i, j, _, mass in own])
            for share, s in zip(found.share, found.score, strict=True)
        ]
        assert found.membership[who] == pytest.approx(np.array(joint) / sum(joint), abs=1e-9)


@pytest.mark.parametrize("number", [2, 3])
def test_no_step_lowers_the_likelihood(number):
    prefs, _, _ = drawn(seed(7), ties=0.2)
    design = Design.of(prefs, what="camps")
    votes = module._Votes.of(prefs, prefs.cluster.astype(np.int64), 40, design)
    found = fit_mixture(votes.pairs(votes.count), number, prior=0.3, starts=5, seed=0)
    assert np.diff(found.rises).min() > -1e-9
    assert len(found.rises) > 3


def test_camps_are_found_as_they_were_planted():
    prefs, camp, ability = drawn(seed(8), annotators=60, share=[0.7, 0.3])
    found = cc.camps(prefs, most=3, folds=3)
    assert found.number == 2
    assert found.share[0] == pytest.approx((camp == 0).mean(), abs=0.05)
    assert ((found.membership[:, 1] > 0.5) == (camp == 1)).mean() > 0.95
    for own, true in zip(found.score, ability, strict=True):
        assert np.corrcoef(own, true)[0, 1] > 0.95
    gains = {one.camps: one.gain / max(one.gain_error, 1e-9) for one in found.held_out}
    assert gains[2] > 3
    assert found.held_out[1].new_gain > 0


def test_one_population_is_one_camp_and_it_is_said():
    prefs, _, _ = drawn(seed(9), camps=1)
    found = cc.camps(prefs, most=2, folds=3)
    assert found.number == 1
    assert any(note.startswith("the votes support no more than one camp") for note in found.notes)
    assert str(found).startswith("one camp of 40 annotators")


def test_camps_of_features_score_new_items():
    random = np.random.default_rng(seed(10))
    X, theta = random.normal(size=(60, 3)), np.array([[2.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
    who = np.repeat(np.arange(30), 40)
    one, other = random.integers(60, size=(2, len(who)))
    other = np.where(one == other, (one + 1) % 60, other)
    camp = np.arange(30) % 3 == 0
    won = random.random(len(who)) < expit(((X[one] - X[other]) * theta[camp[who].astype(int)]).sum(1))
    prefs = cc.Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one), cluster=who)
    found = cc.camps(prefs, features=(X, None, np.arange(60)), most=2, folds=3)
    assert found.number == 2
    assert found.coefficients == pytest.approx(theta, abs=0.45)
    new = random.normal(size=(200, 3))
    for scores, own in zip(found.predict(new), theta, strict=True):
        assert np.corrcoef(scores, new @ own)[0, 1] > 0.97


def test_held_out_losses_beside_rankings_of_the_rest():
    prefs, _, _ = drawn(seed(11), annotators=9, votes=20, items=4, camps=1)
    known = module._Search(_votes(prefs), prefs.clusters, (0.5,), 3, 2, 0)

    def loss(rest, held):
        board = cc.rank(_counted(prefs, rest), prior=0.5, interval="none")
        score = dict(zip(board.items.take(board.item).to_pylist(), board.score, strict=True))
        found = np.zeros(9)
        for (who, winner, loser, _, _), times in zip(votes_of(prefs), held, strict=True):
            found[who] -= times * log_expit(score[winner] - score[loser])
        return found

    expected = sum(loss(prefs.count - share, share) for share in known.shares)
    each = known.of_known(1, 0.5)
    assert np.bincount(prefs.cluster, (known.shares * each).sum(0)) == pytest.approx(expected, abs=1e-7)
    assert known.shares.sum(0).tolist() == prefs.count.tolist()
    dealt = np.array([np.bincount(prefs.cluster, share, 9) for share in known.shares])
    assert np.ptp(dealt, axis=0).max() <= 1  # of every annotator's votes each fold has as many, but for one
    fold = known.fold[prefs.cluster]
    parts = [np.where(fold == one, prefs.count, 0) for one in range(3)]
    assert known.of_new(1, 0.5) == pytest.approx(sum(loss(prefs.count - part, part) for part in parts), abs=1e-7)
    table = known.table([1, 2])
    assert table[0].loss == pytest.approx(expected.sum() / len(prefs))
    assert table[1].gain == pytest.approx(table[0].loss - table[1].loss)
    moved = np.repeat((each - known.of_known(2, 0.5)).ravel(), known.shares.ravel())  # one for each vote
    assert len(moved) == len(prefs)
    assert table[1].gain == pytest.approx(moved.mean())
    assert table[1].gain_error == pytest.approx(moved.std() / np.sqrt(len(moved)))
    less = known.of_new(1, 0.5) - known.of_new(2, 0.5)
    n = np.bincount(prefs.cluster, prefs.count)
    error = np.sqrt(9 / 8 * ((less - less.sum() / n.sum() * n) ** 2).sum()) / n.sum()
    assert table[1].new_gain_error == pytest.approx(error)


def test_who_votes_by_a_coin_is_foretold_no_better_than_one():
    prefs, _, _ = drawn(seed(17), annotators=30, camps=1, votes=60)
    random = np.random.default_rng(seed(18))
    one = random.integers(8, size=600)
    other = (one + random.integers(1, 8, size=600)) % 8
    prefs += cc.Preferences.from_comparisons(one, other, cluster=100 + np.arange(600) % 10)
    found = cc.camps(prefs, number=2, folds=3)
    assert found.share == pytest.approx([0.75, 0.25], abs=0.08)
    assert found.loss[0] < 0.6
    assert found.loss[1] > np.log(2) - 2 * found.loss_error[1]
    said = [str(line) for line in found.lines()]
    assert ["no better than by a coin" in line for line in said] == [False, False, True]
    assert any("a taste or a habit" in note for note in found.notes)


def test_scorers_of_features_are_chosen_by_whole_queries():
    random = np.random.default_rng(seed(20))
    query, who = random.integers(12, size=300), random.integers(9, size=300)
    winner, loser = query * 4 + random.integers(2, size=300), query * 4 + 2 + random.integers(2, size=300)
    prefs = cc.Preferences.from_comparisons(winner, loser, query, cluster=who)
    design = Design.of(prefs, (random.normal(size=(48, 2)), np.arange(48) // 4, np.arange(48)), what="camps")
    votes = module._Votes.of(prefs, prefs.cluster.astype(np.int64), 9, design)
    shares = module._Search(votes, prefs.clusters, (1.0,), 3, 2, 0).shares
    assert (shares.sum(0) == prefs.count).all()
    for one in range(12):
        assert (shares[:, prefs.query == one].sum(1) > 0).sum() == 1


def test_loss_of_a_camp_is_the_mean_over_its_votes():
    prefs, _, _ = drawn(seed(19), annotators=12, votes=15, items=4)
    found = cc.camps(prefs, number=2, prior=0.5, folds=2)
    search = module._Search(_votes(prefs), prefs.clusters, (0.5,), 2, 4, 0)
    each = np.repeat(search.of_known(2, 0.5).ravel(), search.shares.ravel())
    camp = np.repeat(np.tile(found.membership.argmax(1)[prefs.cluster], 2), search.shares.ravel())
    for one in (0, 1):
        own = each[camp == one]
        assert found.loss[one] == pytest.approx(own.mean())
        assert found.loss_error[one] == pytest.approx(own.std() / np.sqrt(len(own)))


def _votes(prefs):
    return module._Votes.of(prefs, prefs.cluster.astype(np.int64), len(prefs.clusters), Design.of(prefs, what="camps"))


def _counted(prefs, count):
    rows = np.flatnonzero(count)
    return cc.Preferences.from_comparisons(
        prefs.items.take(prefs.winner[rows]), prefs.items.take(prefs.loser[rows]), count=count[rows]
    )


def test_the_held_out_chance_is_a_mean_over_camps():
    prefs, _, _ = drawn(seed(12), annotators=6, votes=12, items=3)
    search = module._Search(_votes(prefs), prefs.clusters, (0.5,), 2, 3, 0)
    expected = np.zeros(6)
    for share in search.shares:
        pairs = search.votes.pairs(prefs.count - share)
        found = search.fit(pairs, 2, prior=0.5)
        membership = found.membership(pairs)
        for (who, winner, loser, _, _), times in zip(votes_of(prefs), share, strict=True):
            expected[who] -= times * np.log(membership[who] @ expit(found.theta[:, winner] - found.theta[:, loser]))
    found = (search.shares * search.of_known(2, 0.5)).sum(0)
    assert np.bincount(prefs.cluster, found) == pytest.approx(expected, abs=1e-9)
    new = np.zeros(6)
    for fold in (0, 1):
        found = search.fit(search.votes.pairs(search.votes.count).of(search.fold != fold), 2, prior=0.5)
        for who in np.flatnonzero(search.fold == fold):
            own = [(win, lose, mass) for k, win, lose, _, mass in votes_of(prefs) if k == who]
            chance = [np.prod([expit(s[win] - s[lose]) ** mass for win, lose, mass in own]) for s in found.theta]
            new[who] = -np.log(found.share @ chance)
    assert search.of_new(2, 0.5) == pytest.approx(new, abs=1e-9)


def test_tables_and_ranking_of_a_camp():
    prefs, _, _ = drawn(seed(13), annotators=30, votes=30, items=5)
    found = cc.camps(prefs, number=2, prior=0.3, folds=2)
    table = found.to_arrow().to_pylist()
    assert [row["rank"] for row in table] == [1, 2, 3, 4, 5] * 2
    for row in table:
        assert row["rank_in_1" if row["camp"] == 1 else "rank_in_2"] == row["rank"]
    by_camp = [[row["score"] for row in table if row["camp"] == one] for one in (1, 2)]
    assert [sorted(scores, reverse=True) for scores in by_camp] == by_camp
    assert sum(row["votes"] for row in table) == pytest.approx(2 * len(prefs))
    members = found.members().to_pylist()
    assert [row["camp"] - 1 for row in members] == found.membership.argmax(1).tolist()
    own = found.ranking(1, interval="none")
    assert sum(own.judgments) == 2 * sum(row["votes"] for row in members if row["camp"] == 1)
    with pytest.raises(UsageError, match="camp must be at most 2"):
        found.ranking(3)
    with pytest.raises(UsageError, match="without features"):
        found.predict([[1.0]])


def test_annotators_who_never_met_stay_within_what_connects():
    votes = cc.Preferences.from_comparisons(list("abcd") * 8, list("badc") * 8, cluster=[*range(8)] * 4)
    found = cc.camps(votes, number=1, prior=1.0, folds=2)
    assert {(row["component"], row["rank"]) for row in found.to_arrow().to_pylist()} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert any(note.startswith("no chain of comparisons") for note in found.notes)


def test_same_seed_same_answer_in_any_order_of_rows():
    prefs, _, _ = drawn(seed(14), annotators=12, votes=15, items=4)
    rows = np.random.default_rng(0).permutation(prefs.distinct)
    again = cc.Preferences.from_comparisons(
        prefs.items.take(prefs.winner[rows]), prefs.items.take(prefs.loser[rows]), count=prefs.count[rows],
        cluster=prefs.clusters.take(prefs.cluster[rows]),
    )  # fmt: skip
    one, other = (cc.camps(part, number=2, folds=2, seed=3) for part in (prefs, again))
    assert (one.score == other.score).all()
    assert one.held_out == other.held_out


def test_what_cannot_be_asked():
    prefs, _, _ = drawn(seed(15), annotators=3, votes=6, items=3)
    alone = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], cluster=["x", "x"])
    with pytest.raises(CannotRank, match="names 1 annotator"):
        cc.camps(alone)
    with pytest.raises(UsageError, match="do not say who judged"):
        cc.camps(cc.Preferences.from_comparisons(["a"], ["b"]))
    with pytest.raises(UsageError, match="from comparisons, not from orders"):
        cc.camps(cc.Preferences.from_orders(None, [1, 1], ["a", "b"], [1, 2]))
    with pytest.raises(UsageError, match="not list"):
        cc.camps([1])
    with pytest.raises(UsageError, match="number must be at most 3"):
        cc.camps(prefs, number=4)
    with pytest.raises(UsageError, match="prior must be a positive number"):
        cc.camps(prefs, prior=0)
    with pytest.raises(InputError, match="features"):
        cc.camps(prefs, features=([[1.0]], None, [0]))
    with pytest.raises(UsageError, match="up to 2,000 items"):
        cc.camps(cc.Preferences.from_comparisons(range(3000), range(1, 3001), cluster=[0, 1] * 1500))


def test_command_writes_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    prefs, _, _ = drawn(seed(16), annotators=20, votes=30, items=4)
    rows = ["winner,loser,worker"]
    for who, winner, loser, _, mass in votes_of(prefs):
        rows += [f"i{winner},i{loser},w{who}"] * int(mass)
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "items.csv").write_text("item,x,y\n" + "".join(f"i{at},{at},{at % 2}\n" for at in range(4)))
    two = ("camps", "votes.csv", "--number", "2")
    assert exit_status(*two, "--members", "who.csv", "-o", "camps.json", "--prior", "0.3") == 0
    found = json.loads((tmp_path / "camps.json").read_text())
    assert found["camps"] == 2
    assert sum(found["share"]) == pytest.approx(1)
    assert len(found["members"]) == 20
    assert len((tmp_path / "who.csv").read_text().splitlines()) == 21
    assert (tmp_path / "who.csv").read_text().startswith("worker,")
    assert exit_status(*two, "-f", "items.csv", "-o", "linear.json") == 0
    assert set(json.loads((tmp_path / "linear.json").read_text())["coefficients"][0]) == {"x", "y"}
    for wrong, message in (
        (["--judge", "nobody"], "nobody"),
        (["--most", "2", "--number", "2"], "--most does nothing here"),
        (["--feature-columns", "x"], "--feature-columns does nothing here"),
        (["--judge", "loser"], "the column 'loser' is read as the loser; name the one that says who judged"),
        (["--number", "0"], "--number must be auto or a number of at least 1"),
        (["-o", "a.csv", "--members", "a.csv"], "both name"),
    ):
        capsys.readouterr()
        assert exit_status("camps", "votes.csv", *wrong) == 2
        assert message in capsys.readouterr().err
