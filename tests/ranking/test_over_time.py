"""Abilities that move: maximum, variances, determinants, forecasts, choices against the formula, written plainly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

import concordant as cc
from concordant.preferences.preferences import Comparisons
from concordant.ranking import over_time
from concordant.ranking.moving import Beliefs, Fit, Games, chosen, fitted, joint_walks
from concordant.ranking.over_time import Paths, chances
from seeds import seed


def drawn(items: int, times: int, games: int, drift: float, *, tied: float = 0.0, at: int = 0) -> dict[str, Any]:
    """Columns of games between items whose abilities move, with the truth, and a home side that wins more."""
    rng = np.random.default_rng(seed(at))
    truth = rng.normal(0, 1, items) + np.cumsum(rng.normal(0, drift, (times, items)), axis=0)
    day, one = np.sort(rng.integers(times, size=games)), rng.integers(items, size=games)
    other, home = (one + rng.integers(1, items, size=games)) % items, rng.choice([-1.0, 0.0, 1.0], games)
    ahead = rng.random(games) < expit(truth[day, one] - truth[day, other] + 0.4 * home)
    columns = {"winner": np.where(ahead, one, other), "loser": np.where(ahead, other, one), "time": day}
    columns |= {"tie": rng.random(games) < tied, "covariates": {"home": np.where(ahead, home, -home)}}
    return {"columns": columns, "truth": truth}


def votes_of(columns: dict[str, Any]) -> Comparisons:
    made = cc.Preferences.from_comparisons(**columns)
    assert isinstance(made, Comparisons)
    return made


class Plain:
    """The model as the formula has it, with a state for every item that played and time at which it did."""

    def __init__(self, columns: dict[str, Any], precision: float, drift: float, davidson: bool) -> None:
        self.columns, self.davidson = columns, davidson
        keys = sorted({*zip(columns["winner"].tolist(), columns["time"].tolist(), strict=True),
                       *zip(columns["loser"].tolist(), columns["time"].tolist(), strict=True)})  # fmt: skip
        self.keys, self.place = keys, {key: at for at, key in enumerate(keys)}
        knots = len(keys)
        self.prior = np.zeros((knots, knots))
        for at, (item, time) in enumerate(keys):
            if at == 0 or keys[at - 1][0] != item:
                self.prior[at, at] += precision
            else:
                step = 1 / (drift**2 * (time - keys[at - 1][1]))
                self.prior[at - 1 : at + 1, at - 1 : at + 1] += step * np.array([[1, -1], [-1, 1]])
        rows = range(len(columns["time"]))
        self.design = np.zeros((len(rows), knots + 1))
        for row in rows:
            self.design[row, self.place[int(columns["winner"][row]), int(columns["time"][row])]] += 1
            self.design[row, self.place[int(columns["loser"][row]), int(columns["time"][row])]] -= 1
        self.design[:, knots] = columns["covariates"]["home"]

    def lost(self, x: Any) -> float:
        knots = len(self.keys)
        margin, tie = self.design @ x[: knots + 1], self.columns["tie"]
        if self.davidson:
            total = np.log(np.exp(margin / 2) + np.exp(-margin / 2) + np.exp(x[-1]))
            value = np.where(tie, x[-1], margin / 2) - total
        else:
            value = np.where(tie, 0.5, 1) * -np.log1p(np.exp(-margin)) - np.where(tie, 0.5, 0) * np.log1p(
                np.exp(margin)
            )
        return float(0.5 * x[:knots] @ self.prior @ x[:knots] - value.sum())

    def curvature(self, x: Any) -> Any:
        """Second derivatives by differences of the gradient, itself by differences."""
        size, h = len(x), 1e-4
        out = np.empty((size, size))
        for i in range(size):
            for j in range(i + 1):
                e, f = np.eye(size)[i] * h, np.eye(size)[j] * h
                out[i, j] = out[j, i] = (
                    self.lost(x + e + f) - self.lost(x + e - f) - self.lost(x - e + f) + self.lost(x - e - f)
                ) / (4 * h * h)
        return out


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_the_maximum_and_its_curvature_are_those_of_the_formula(ties: str) -> None:
    columns = drawn(5, 6, 60, 0.3, tied=0.25)["columns"]
    paths = cc.rank_over_time(votes_of(columns), prior=2.0, drift=0.4, ties=ties)
    plain = Plain(columns, 2.0, 0.4, ties == "davidson")
    knots = len(plain.keys)
    x = minimize(plain.lost, np.zeros(knots + 1 + (ties == "davidson")), method="BFGS", options={"gtol": 1e-7}).x
    games = paths.fit.games
    assert list(zip(games.item.tolist(), games.time.tolist(), strict=True)) == plain.keys
    assert np.allclose(paths.fit.theta, x[:knots], atol=1e-5)
    assert np.allclose(paths.fit.beta, x[knots:], atol=1e-5)
    inverse = np.linalg.inv(plain.curvature(x))
    error = [found[1] for found in paths.coefficients.values()]
    assert np.allclose(error, np.sqrt(np.diag(inverse)[knots:]), rtol=1e-3)
    # scores: less the mean of those who have played, each on the line between its knots
    table = paths.to_arrow().to_pylist()
    for at, (_, time) in enumerate(plain.keys):
        level = np.zeros(len(x))
        alive = [item for item in range(5) if min(when for who, when in plain.keys if who == item) <= time]
        for item in alive:
            own = [when for who, when in plain.keys if who == item]
            for when in own:
                share = np.interp(time, own, [float(when == other) for other in own])
                level[plain.place[item, when]] += share / len(alive)
        across = np.eye(len(x))[at] - level
        assert table[at]["score"] == pytest.approx(float(across @ x), abs=1e-5)
        # the line leaves out what is open between knots of others, so it is a lower bound of the exact error
        assert table[at]["standard_error"] >= np.sqrt(across @ inverse @ across) * (1 - 1e-3)


def dense(fit: Fit) -> Any:
    """The inverse curvature of all items at all times, coefficients held."""
    games = fit.games
    out = np.diag(fit.prior)
    for at, step in enumerate(fit.step):
        if step > 0:
            out[at : at + 2, at : at + 2] += step * np.array([[1, -1], [-1, 1]])
    for one, other, weight in zip(*games.edges[:2], fit.weight, strict=True):
        out[np.ix_([one, other], [one, other])] += weight * np.array([[1, -1], [-1, 1]])
    return out


@pytest.mark.parametrize("number", [200, 1500])  # of a time fewer than items, and many more
def test_covariances_and_determinants_are_those_of_the_whole_matrix(number: int) -> None:
    games = Games.of(votes_of(drawn(12, 15, number, 0.2, tied=0.2)["columns"]), "davidson")
    fit = fitted(games, 1.5, 0.2)
    whole = dense(fit)
    inverse = np.linalg.inv(whole)
    heard: dict[float, Any] = {}
    determinant = joint_walks(fit, np.array([4.5, 20.0]), heard.__setitem__)
    assert determinant == pytest.approx(np.linalg.slogdet(whole)[1], abs=1e-8)
    assert joint_walks(fit) == pytest.approx(determinant, abs=1e-8)  # by a compiled loop, where there is one
    late: dict[float, Any] = {}
    joint_walks(fit, np.array([4.5, 20.0]), late.__setitem__, 4.5)
    assert min(late) == 4.5 and all(np.array_equal(found, heard[time]) for time, found in late.items())
    assert np.allclose([heard[t][i, i] for i, t in zip(games.item, games.time, strict=True)], np.diag(inverse))
    for one, time in enumerate(games.time):
        for other in np.flatnonzero(games.time == time):
            assert heard[time][games.item[one], games.item[other]] == pytest.approx(inverse[one, other])
    last = np.append(games.first[1:], True)
    assert np.allclose(np.diag(heard[20.0]), np.diag(inverse)[last] + 0.04 * (20.0 - games.time[last]))
    assert np.allclose(fit.response, inverse @ fit.cross, atol=1e-6)
    # between knots: the bridge
    for item in range(12):
        own = np.flatnonzero(games.item == item)
        at = np.searchsorted(games.time[own], 4.5)
        left, right = own[at - 1 : at + 1]
        share = (4.5 - games.time[left]) / (games.time[right] - games.time[left])
        ends = np.array([1 - share, share])
        open_ = 0.04 * (4.5 - games.time[left]) * (games.time[right] - 4.5) / (games.time[right] - games.time[left])
        bridge = ends @ inverse[np.ix_([left, right], [left, right])] @ ends + open_
        assert heard[4.5][item, item] == pytest.approx(bridge)


@pytest.mark.parametrize("games", [1000, 5000])
def test_beliefs_of_100_items_over_50_times_are_within_5_percent(games: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = drawn(100, 50, games, 0.1)["columns"]
    paths = cc.rank_over_time(votes_of(columns), prior=1.0, drift=0.1)
    exact, score = (np.array(paths.to_arrow()[name]) for name in ("standard_error", "score"))
    monkeypatch.setattr(over_time, "TOGETHER", 0)
    near = replace(paths)
    found = near.to_arrow()
    assert np.allclose(score, found["score"]) and np.abs(np.array(found["standard_error"]) / exact - 1).max() < 0.05
    assert near.evidence - paths.evidence == pytest.approx(0.0, abs=3.0)
    for when in (20.5, 60):
        one, other = paths.at(when), near.at(when)
        assert np.allclose(one.score, other.score)
        monkeypatch.setattr(over_time, "TOGETHER", 100)
        sure = replace(paths).at(when)
        monkeypatch.setattr(over_time, "TOGETHER", 0)
        assert np.abs((other.upper - other.lower) / (sure.upper - sure.lower) - 1).max() < 0.02


@pytest.mark.parametrize(("groups", "bridges"), [(2, 0.01), (5, 0.02), (20, 0.05)])
def test_what_groups_share_that_few_games_connect(groups: int, bridges: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, size = np.random.default_rng(seed(1)), 100 // groups
    day, one = rng.integers(50, size=4000), rng.integers(100, size=4000)
    near = one // size * size + (one % size + rng.integers(1, size, 4000)) % size
    other = np.where(rng.random(4000) < bridges, (one + rng.integers(1, 100, 4000)) % 100, near)
    votes = cc.Preferences.from_comparisons(one, other, time=day)
    paths = cc.rank_over_time(votes, prior=1.0, drift=0.05)
    exact, pair = np.array(paths.to_arrow()["standard_error"]), paths.predict(0, [1, 99])
    monkeypatch.setattr(over_time, "TOGETHER", 0)
    near_by = replace(paths)
    ratio = np.array(near_by.to_arrow()["standard_error"]) / exact
    assert ratio.min() > 0.95 and ratio.max() < 1.1  # without what is shared 0.6 at the least
    found = near_by.predict(0, [1, 99])
    for row, sure in zip(found.to_pylist(), pair.to_pylist(), strict=True):
        assert row["win_upper"] - row["win_lower"] == pytest.approx(sure["win_upper"] - sure["win_lower"], rel=0.1)


def test_abilities_that_hardly_move_are_those_of_bradley_terry() -> None:
    columns = drawn(8, 10, 300, 0.0)["columns"]
    board = cc.rank_over_time(votes_of(columns), prior=0.7, drift=1e-6).at()
    still = cc.rank(votes_of(columns), prior=0.7, interval="hessian")
    assert np.allclose(board.score, still.score, atol=1e-6) and (board.item == still.item).all()
    assert np.allclose(board.upper - board.lower, still.upper - still.lower, rtol=0.02)
    assert board.coefficients["home"][0] == pytest.approx(still.coefficients["home"][0], abs=1e-6)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_the_evidence_is_the_integral_over_abilities(ties: str) -> None:
    columns = {"winner": list("aaab"), "loser": list("bbba"), "time": [0, 0, 0, 0], "tie": [False, False, True, False]}
    paths = cc.rank_over_time(cc.Preferences.from_comparisons(**columns), prior=1.3, drift=0.1, ties=ties)
    margin = np.linspace(-12, 12, 100_001)
    if ties == "half":
        likelihood = expit(margin) ** 2.5 * expit(-margin) ** 1.5
    else:
        nu = np.exp(paths.fit.beta[-1])
        likelihood = np.exp(margin / 2) * nu / (np.exp(margin / 2) + np.exp(-margin / 2) + nu) ** 4
    exact = np.log(np.trapezoid(likelihood * norm.pdf(margin, scale=np.sqrt(2 / 1.3)), margin))
    assert paths.evidence == pytest.approx(exact, abs=0.02)


def test_what_is_chosen_lies_near_the_truth_and_is_the_largest_evidence() -> None:
    votes = votes_of(drawn(60, 60, 8000, 0.1)["columns"])
    paths = cc.rank_over_time(votes)
    assert 0.07 < paths.drift < 0.13 and 0.6 < paths.prior < 1.7  # 0.1 and 1 were drawn from
    for factor in (0.7, 1.4):
        for other in (
            {"prior": paths.prior, "drift": paths.drift * factor},
            {"prior": paths.prior * factor, "drift": paths.drift},
        ):
            assert cc.rank_over_time(votes, **other).evidence < paths.evidence


def test_intervals_hold_the_truth() -> None:
    inside = []
    for at in range(6):
        made = drawn(40, 30, 3000, 0.15, at=at)
        paths = cc.rank_over_time(votes_of(made["columns"]), prior=1.0, drift=0.15)
        board = paths.at(29)
        truth = made["truth"][29] - made["truth"][29].mean()
        inside += ((board.lower < truth[board.item]) & (truth[board.item] < board.upper)).tolist()
    assert 0.92 < np.mean(inside) < 0.98  # 240 of them, 95% expected


def test_a_prediction_is_the_mean_over_what_is_not_known() -> None:
    rng = np.random.default_rng(0)
    found = chances(np.array([0.8]), np.array([1.5]), np.log(0.6), 0.95)
    margin = 0.8 + np.sqrt(1.5) * rng.normal(size=400_000)
    win, tie, loss = np.exp(margin / 2), np.full(len(margin), 0.6), np.exp(-margin / 2)
    total = win + tie + loss
    for name, each in {"win": win, "tie": tie, "loss": loss}.items():
        assert found[name][0] == pytest.approx((each / total).mean(), abs=0.002)
    ends = np.sort(expit(0.8 + np.array([-1, 1]) * norm.ppf(0.975) * np.sqrt(1.5)))
    plain = chances(np.array([0.8]), np.array([1.5]), None, 0.95)
    assert [plain["win_lower"][0], plain["win_upper"][0]] == pytest.approx(ends.tolist())
    assert found["tie_upper"][0] == pytest.approx(0.6 / 2.6)  # the interval of the margin holds 0

    votes = votes_of(drawn(6, 10, 200, 0.2, tied=0.2)["columns"])
    paths = cc.rank_over_time(votes, prior=1, drift=0.2, ties="davidson")
    now, later = (paths.predict(0, [1, 2], at=when).to_pylist() for when in (None, 200))
    assert all(abs(row["win"] + row["tie"] + row["loss"] - 1) < 1e-9 for row in (*now, *later))
    assert all(there["win_upper"] - there["win_lower"] > here["win_upper"] - here["win_lower"]
               for here, there in zip(now, later, strict=True))  # fmt: skip
    home = paths.predict(0, 1, covariates={"home": 1}).to_pylist()[0]
    assert home["win"] > now[0]["win"]


def test_items_that_come_later_and_groups_apart() -> None:
    columns = {"winner": list("abcdef"), "loser": list("badcfe"), "time": [0, 1, 2, 3, 4, 5]}
    paths = cc.rank_over_time(cc.Preferences.from_comparisons(**columns), prior=1.0, drift=0.5)
    assert paths.at(1).items.take(paths.at(1).item).to_pylist() == ["b", "a"]
    late = paths.at(9)
    assert sorted(late.component.tolist()) == [1, 1, 2, 2, 3, 3] and late.rank.max() == 2
    for group in (1, 2, 3):
        assert late.score[late.component == group].sum() == pytest.approx(0.0)
    assert isinstance(paths, Paths) and "6 items, 0 to 5" in repr(paths)


@pytest.mark.parametrize(
    ("more", "options", "said"),
    [
        ({"time": None}, {}, "say when they were made"),
        ({"query": [1, 2, 1]}, {}, "within one query, and there are 2"),
        ({"cluster": ["u", "v", "u"]}, {}, "cluster does nothing"),
        ({"time": [1, 1, 1]}, {}, "at one time"),
        ({}, {"ties": "davidson"}, "nothing tied"),
        ({}, {"ties": "any-order"}, "half or davidson"),
        ({}, {"drift": 0}, "drift must be 'auto' or a number above 0"),
        ({}, {"prior": "flat"}, "prior must be 'auto'"),
        ({}, {"level": 95}, "level must lie between"),
    ],
)
def test_what_cannot_move_is_said(more: dict[str, Any], options: dict[str, Any], said: str) -> None:
    columns: dict[str, Any] = {"winner": ["a", "b", "a"], "loser": ["b", "c", "c"], "time": [1, 2, 3]} | more
    with pytest.raises(cc.UsageError, match=said):
        cc.rank_over_time(cc.Preferences.from_comparisons(**columns), **options)


def test_what_is_asked_of_paths_is_checked() -> None:
    votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], time=["2026-01-01", "2026-02-01"])
    paths = cc.rank_over_time(votes, prior=1, drift=0.1)
    for call, said in (
        (lambda: paths.at("2025-01-01"), "at 2025-01-01 nothing had been judged; the first judgment is of 2026-01-01"),
        (lambda: paths.at(3), "date or instant"),
        (lambda: paths.predict("a", "B"), "no item 'B'"),
        (lambda: paths.predict("a", "b", covariates={"home": 1}), "unknown covariate"),
    ):
        with pytest.raises(cc.UsageError, match=said):
            call()
    assert chosen(paths.fit.games, 1.0, 0.1) == (1.0, 0.1) and Beliefs.of(paths.fit).variance.shape == (4,)


@pytest.mark.parametrize(("drift", "moves"), [(0.0, False), (0.15, True)])
def test_whether_abilities_move(drift, moves):
    rng = np.random.default_rng(5)
    walk = rng.normal(size=8) + drift * np.cumsum(rng.normal(size=(50, 8)), axis=0)
    when, one = np.sort(rng.integers(0, 50, 400)), rng.integers(0, 8, 400)
    other = (one + rng.integers(1, 8, 400)) % 8
    won = rng.random(400) < 1 / (1 + np.exp(walk[when, other] - walk[when, one]))
    votes = cc.Preferences.from_comparisons(
        np.where(won, one, other), np.where(won, other, one), time=when.astype(float)
    )
    paths = cc.rank_over_time(votes)
    ratio, p = paths.drift_test()
    assert (p < 0.01) == moves
    still = max(cc.rank_over_time(votes, prior=prior, drift=1e-6).evidence for prior in np.geomspace(0.3, 5, 12))
    assert np.isclose(ratio, max(2 * (paths.evidence - still), 0), atol=0.1)
    held = cc.rank_over_time(votes, prior=1.0)
    still = cc.rank_over_time(votes, prior=1.0, drift=1e-6).evidence
    assert np.isclose(held.drift_test()[0], max(2 * (held.evidence - still), 0), atol=0.1)
    with pytest.raises(cc.UsageError, match="the drift was given"):
        cc.rank_over_time(votes, drift=0.1).drift_test()


def same_board(one, other):
    for name, column in one.to_arrow().to_pydict().items():
        expected = other.to_arrow()[name].to_pylist()
        assert column == (pytest.approx(expected, abs=1e-9) if isinstance(column[0], float) else expected), name


def test_at_each_is_at_for_each_and_since_sets_items_apart():
    winner, loser = list("abcabdcaab") * 4, list("bcabddbcca") * 4
    loser = [b if a != b else "a" for a, b in zip(winner, loser, strict=True)]
    loser = [b if a != b else "b" for a, b in zip(winner, loser, strict=True)]
    prefs = cc.Preferences.from_comparisons([*winner, "e", "a"], [*loser, "a", "e"], time=[*range(3, 43), 1, 2])
    for prior in ({}, {"prior": 1.0, "drift": 0.2}):
        paths = cc.rank_over_time(prefs, **prior)
        for when, board in zip((2, 20.5, 50), paths.at_each([2, 20.5, 50]), strict=True):
            same_board(board, paths.at(when))
        late = paths.at(42, since=10)
        apart = [item for item, out in zip(late.to_arrow()["item"].to_pylist(), late.provisional, strict=True) if out]
        assert apart == ["e"] and late.rank[late.provisional].tolist() == [0]
        (same,) = paths.at_each([42], since=[10])
        same_board(same, late)
        assert not paths.at(42, since=2).provisional.any()
    with pytest.raises(cc.UsageError, match="since has 2 times, and there are 1 to rank at"):
        paths.at_each([42], since=[1, 2])
