"""People and a judge model together: beside the formula in matrices, a peer's scores, and the coverage of draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import concordant as cc
from concordant.boards.prediction_powered import board, fit_scores
from seeds import seed


def drawn(number, *, size=6, of=3000, part=400, alike=0.6, first=0.0):
    """Comparisons with a human vote and a judge's, which copies it with probability ``alike``; who people decided."""
    random = np.random.default_rng(number)
    ability = np.linspace(-1, 1, size)
    one = random.integers(size, size=of)
    other = (one + random.integers(1, size, size=of)) % size
    won = np.where(random.random(of) < 0.15, 0.5, random.random(of) < expit(ability[one] - ability[other]))
    own = random.random(of) < expit(0.4 * (ability[one] - ability[other]) + first)
    said = np.where(random.random(of) < alike, won, own)
    return one, other, won, said, np.sort(random.choice(of, part, replace=False))


def prefs_of(one, other, won, ids):
    winner, loser = np.where(won >= 0.5, one, other), np.where(won >= 0.5, other, one)
    home = {"home": np.where(won >= 0.5, 1.0, -1.0)}
    return cc.Preferences.from_comparisons(winner, loser, tie=won == 0.5, cluster=ids, covariates=home)


def test_the_formula_in_matrices():
    one, other, won, said, rows = drawn(seed(0), first=0.8)
    n, number, size = len(rows), len(one), 6
    found = cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], rows),
                                  prefs_of(one, other, said, np.arange(number)))  # fmt: skip
    X = np.zeros((number, size))
    X[np.arange(number), one], X[np.arange(number), other] = 1, -1

    def fit(Z, y):
        theta = np.zeros(Z.shape[1])
        for _ in range(50):
            p = expit(Z @ theta)
            theta = theta + np.linalg.pinv((Z * (p * (1 - p))[:, None]).T @ Z) @ Z.T @ (y - p)
        return theta, expit(Z @ theta)

    judge, p = fit(np.column_stack([X, np.ones(number)]), said)
    r, (theta, q), x = (said - p)[rows], fit(X[rows], won[rows]), X[rows]
    inverse = np.linalg.pinv((x * (q * (1 - q))[:, None]).T @ x)
    h = q * (1 - q) * np.einsum("ij,jk,ik->i", x, inverse, x)
    psi, phi = ((x @ inverse) * (e / np.sqrt(1 - h))[:, None] for e in (won[rows] - q, r))
    best = (psi * phi).sum() / (phi * phi).sum()
    both = fit(x, won[rows] - best * r)[0]
    V = ((psi - best * phi) ** 2).sum(0) * (1 - n / number) + (psi**2).sum(0) * n / number
    assert found.found.people == pytest.approx(theta - theta.mean(), abs=1e-8)
    assert found.judge == pytest.approx(judge[:size] - judge[:size].mean(), abs=1e-8)
    assert found.first_side[0] == pytest.approx(judge[size], abs=1e-8)
    assert (found.found.weight == pytest.approx(best)) and found.found.score == pytest.approx(
        both - both.mean(), abs=1e-8
    )
    assert found.found.standard_error == pytest.approx(np.sqrt(V), rel=1e-8)
    bare = cc.rank(replace(prefs_of(one[rows], other[rows], won[rows], rows), covariates=None, covariate_names=(),
                           cluster=None, clusters=None), prior=0, interval="none")  # fmt: skip
    assert np.sort(found.found.people)[::-1] == pytest.approx(bare.score, abs=1e-6)


def test_intervals_hold_and_are_never_wider():
    held, alone, size = [], [], 6
    one, other, won, said, _ = drawn(seed(1), of=4000)
    truth = fit_scores(one, other, won, size)[0]
    surprise = said - fit_scores(one, other, said, size)[1]
    random = np.random.default_rng(seed(2))
    for _ in range(400):
        rows = random.choice(len(one), 300, replace=False)
        found = board(one[rows], other[rows], won[rows], surprise[rows], size, len(one), these=True)
        assert (found.standard_error <= found.people_error).all()
        held.append(np.abs(found.score - truth) < 1.96 * found.standard_error)
        alone.append(found.people_error / found.standard_error)
    assert 0.93 < np.mean(held) < 0.97 and np.mean(alone) > 1.15


def test_new_comparisons_vary_more_than_these():
    """Draws of the whole log, from a population in which people's scores are known."""
    truth, held, inside = np.linspace(-1, 1, 6), [], []
    for number in range(150):
        one, other, won, said, rows = drawn(seed(1000 + number), of=800, part=400)
        surprise = said - fit_scores(one, other, said, 6)[1]
        ours = one[rows], other[rows], won[rows], surprise[rows], 6, 800
        # a tie in 15% of comparisons, half a win each: the scores that the shares of wins have
        new, these = board(*ours), board(*ours, these=True)
        full = fit_scores(one, other, won, 6)[0]
        held.append(np.abs(new.score - POPULATION) < 1.96 * new.standard_error)
        inside.append(np.abs(these.score - full) < 1.96 * these.standard_error)
        assert (new.standard_error > these.standard_error).all()
    assert 0.925 < np.mean(held) < 0.975 and 0.925 < np.mean(inside) < 0.975
    assert truth.sum() == pytest.approx(0)


def _population():
    ability = np.linspace(-1, 1, 6)
    one, other = (side.ravel() for side in np.meshgrid(range(6), range(6)))
    one, other = one[one != other], other[one != other]
    return fit_scores(one, other, 0.075 + 0.85 * expit(ability[one] - ability[other]), 6)[0]


POPULATION = _population()


def test_a_judge_who_knows_nothing_adds_nothing():
    one, other, won, _, rows = drawn(seed(3))
    coin = (np.random.default_rng(seed(4)).random(len(one)) < 0.5) * 1.0
    found = cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], rows),
                                  prefs_of(one, other, coin, np.arange(len(one))))  # fmt: skip
    assert found.saved < 0.02 and (found.found.power < 0.05).all()
    table = found.to_arrow().to_pandas()
    assert table.score.is_monotonic_decreasing and (table.people_score - table.score).abs().max() < 0.1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["first", "ties", "one item"])
def test_a_judge_without_a_maximum_changes_little(kind):
    """Always the same answer, or one item that always wins: people's scores stay, and no interval is wider."""
    one, other, won, _, rows = drawn(seed(5), of=400, part=120)
    said = {
        "first": np.ones(400),
        "ties": np.full(400, 0.5),
        "one item": np.where(other == 0, 0.0, np.where(one == 0, 1.0, won)),
    }[kind]
    both = cc.prediction_powered(
        prefs_of(one[rows], other[rows], won[rows], rows), prefs_of(one, other, said, np.arange(400))
    )
    assert (
        np.isfinite(both.found.score).all()
        and (both.found.standard_error <= both.found.people_error * (1 + 1e-12)).all()
    )
    assert any("a weak prior" in note for note in both.notes) is (kind != "ties") and all(map(str, both.lines()))
    if kind != "one item":
        np.testing.assert_allclose(both.found.score, both.found.people, atol=0.02)


def test_people_who_chose_what_to_decide_are_noticed():
    one, other, won, said, _ = drawn(seed(5))
    chosen = np.flatnonzero((said == 1) | (np.arange(len(one)) % 5 == 0))[:900]
    judge = prefs_of(one, other, said, np.arange(len(one)))
    found = cc.prediction_powered(prefs_of(one[chosen], other[chosen], won[chosen], chosen), judge)
    # who stands first is drawn, so that choosing its wins moves all items alike; those of one item do not
    some = np.flatnonzero(((one == 0) & (said == 1)) | (np.arange(len(one)) % 5 == 0))
    off = cc.prediction_powered(prefs_of(one[some], other[some], won[some], some), judge)
    assert any("do not look drawn at random" in note for note in off.notes)
    assert found.of.sum() == 2 * len(one)


def test_means_over_tasks():
    random, held = np.random.default_rng(seed(6)), []
    size, tasks, n = 3, 500, 60
    hard = random.normal(size=tasks)
    truth = hard[:, None] + np.array([0.0, 0.3, 0.6]) + random.normal(0, 0.5, (tasks, size))
    said = 2 * truth + random.normal(0, 0.8, (tasks, size)) + 5
    cells = [(task, f"s{at}") for task in range(tasks) for at in range(size)]
    judge = cc.Preferences.from_ratings(*zip(*cells, strict=True), said.ravel())
    for _ in range(60):
        rows = random.choice(tasks, n, replace=False)
        ours = [(task, f"s{at}") for task in rows for at in range(size)]
        people = cc.Preferences.from_ratings(*zip(*ours, strict=True), truth[rows].ravel())
        found = cc.prediction_powered(people, judge, these=True).found
        held.append(np.abs(found.score - truth.mean(0)) < 2.0 * found.standard_error)
        assert (found.standard_error < 0.7 * found.people_error).all()
    assert 0.90 < np.mean(held) < 0.99
    y, f = truth[rows], said[rows]
    centred = [one - one.mean(0) for one in (y, f)]
    best = (centred[0] * centred[1]).sum() / (centred[1] ** 2).sum()
    assert found.weight == pytest.approx(best)
    assert found.score == pytest.approx(y.mean(0) - best * (f.mean(0) - said.mean(0)))
    error = np.sqrt((1 / n - 1 / tasks) * ((centred[0] - best * centred[1]) ** 2).sum(0) / (n - 1))
    assert found.standard_error == pytest.approx(error)


def test_what_is_refused_and_said():
    one, other, won, said, rows = drawn(seed(7), part=200)
    judge = prefs_of(one, other, said, np.arange(len(one)))
    people = prefs_of(one[rows], other[rows], won[rows], rows)
    with pytest.raises(cc.InputError, match=r"200 of 200 comparisons .* not among the 3,000 of the judge"):
        cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], rows + 5000), judge)
    with pytest.raises(cc.InputError, match="stand for other pairs"):
        cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], np.roll(rows, 1)), judge)
    with pytest.raises(cc.InputError, match="stand for comparisons of several pairs"):
        cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], rows // 100), judge)
    with pytest.raises(cc.UsageError, match="has no ids"):
        cc.prediction_powered(replace(people, cluster=None, clusters=None), judge)
    with pytest.raises(cc.UsageError, match="comparisons by people and ratings by the judge"):
        cc.prediction_powered(people, cc.Preferences.from_ratings([1, 1], ["a", "b"], [1, 2]))
    with pytest.raises(cc.CannotRank, match="no limit"):
        cc.prediction_powered(prefs_of(one[:1], other[:1], np.ones(1), np.arange(1)), judge)
    texts = prefs_of(one[rows], other[rows], won[rows], rows.astype(str))
    assert cc.prediction_powered(texts, judge).found.score == pytest.approx(
        cc.prediction_powered(people, judge).found.score
    )
    never = np.where(one == 5, 1.0, np.where(other == 5, 0.0, won))
    found = cc.prediction_powered(prefs_of(one[rows], other[rows], never[rows], rows), judge)
    assert found.items.tolist() == [0, 1, 2, 3, 4] and any("1 item to whose scores" in note for note in found.notes)
    ratings = cc.Preferences.from_ratings([1, 1, 2, 2], ["a", "b", "a", "b"], [1, 2, 3, 4])
    with pytest.raises(cc.CannotRank, match="fewer than two tasks"):
        cc.prediction_powered(ratings.select([1]), ratings)


def test_intervals_of_the_bias_hold():
    """Beside the difference of the scores of the population: the judge copies people with .6, else half as decisive."""
    ability = np.linspace(-1, 1, 6)
    one, other = (side.ravel() for side in np.meshgrid(range(6), range(6)))
    one, other = one[one != other], other[one != other]
    gap = ability[one] - ability[other]
    share = 0.6 * (0.075 + 0.85 * expit(gap)) + 0.4 * expit(0.4 * gap)
    truth, held = fit_scores(one, other, share, 6)[0] - POPULATION, []
    for number in range(100):
        one, other, won, said, rows = drawn(seed(2000 + number), of=800, part=500)
        found = cc.prediction_powered(prefs_of(one[rows], other[rows], won[rows], rows),
                                      prefs_of(one, other, said, np.arange(800)))  # fmt: skip
        table = found.to_arrow().to_pandas().sort_values("item")
        held.append((table.bias_lower <= truth) & (truth <= table.bias_upper))
    assert 0.92 < np.mean(held) < 0.98
