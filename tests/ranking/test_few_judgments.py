"""Exact limits of items with few wins or losses: SciPy's binomial law, the Poisson-binomial one, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom, binomtest
from tests.seeds import seed

import concordant as cc
from concordant.preferences.ragged import Ragged
from concordant.ranking import few_judgments
from concordant.ranking.few_judgments import FEW, Rare


def law(odds: NDArray[np.float64], number: NDArray[np.float64], u: float) -> NDArray[np.float64]:
    """Chances of 0, 1, 2, … outcomes, by convolution of binomial laws."""
    chances = np.ones(1)
    for own, times in zip(odds, number.astype(int), strict=True):
        chances = np.convolve(chances, binom.pmf(np.arange(times + 1), times, expit(u + own)))
    return chances


def test_ends_are_those_of_the_poisson_binomial_law() -> None:
    rng = np.random.default_rng(seed(0))
    sizes = rng.integers(1, 9, 40)
    games = Ragged.of_sizes(sizes)
    odds, number = rng.normal(0, 3, sizes.sum()), rng.integers(1, 6, sizes.sum()).astype(float)
    few = np.array([rng.integers(1, min(FEW - 1, max(int(n) // 2, 1)) + 1) for n in games.sums(number)], float)
    below, above, _ = Rare(games, odds, number, few).ends(0.025)
    for i, own in enumerate(games.slices):
        k = int(few[i])
        upper = brentq(lambda u: law(odds[own], number[own], u)[: k + 1].sum() - 0.025, -40, 40)  # noqa: B023
        if k < number[own].sum():
            assert above[i] == pytest.approx(upper, abs=1e-6)
        assert below[i] == pytest.approx(
            -brentq(lambda u: law(odds[own], number[own], u)[k:].sum() - 0.025, -40, 40),  # noqa: B023
            abs=1e-6,
        )


@pytest.mark.parametrize(("wins", "games"), [(1, 3), (2, 3), (1, 50), (49, 50), (9, 400)])
def test_one_well_known_opponent_gives_clopper_and_pearson(wins: int, games: int) -> None:
    rare = min(wins, games - wins)
    interval = binomtest(rare, games).proportion_ci(0.95, method="exact")
    below, above, _ = Rare(Ragged.of_sizes([1]), np.zeros(1), np.array([float(games)]), np.array([float(rare)])).ends(
        0.025
    )
    assert [-below[0], above[0]] == pytest.approx([logit(interval.low), logit(interval.high)], abs=1e-6)


def board_of(rare: int, **more: object) -> dict[str, list[object]]:
    """An item that beat well-known equals ``rare`` times of ten."""
    sure = [("b", "c"), ("c", "b")] * 5000
    own = [("a", "b")] * rare + [("b", "a")] * (10 - rare)
    winner, loser = zip(*(sure + own), strict=True)
    found = cc.rank(cc.Preferences.from_comparisons(winner, loser), reference="b", **more)  # type: ignore[arg-type]
    return found.to_arrow().to_pydict()


def test_rank_shows_them_whichever_outcome_is_the_rare_one() -> None:
    for wins in (2, 8):
        board = board_of(wins)
        interval = binomtest(wins, 10).proportion_ci(0.95, method="exact")
        at = board["item"].index("a")
        ends = board["lower"][at], board["upper"][at]
        assert ends == pytest.approx((logit(interval.low), logit(interval.high)), abs=0.01)
        of_b = board["item"].index("b")
        assert board["lower"][of_b] == board["upper"][of_b] == 0


def test_a_large_prior_keeps_its_own_interval() -> None:
    board = board_of(2, prior=1.0)
    at = board["item"].index("a")
    assert board["upper"][at] - board["score"][at] == pytest.approx(board["score"][at] - board["lower"][at], rel=1e-9)


def test_they_hold_where_the_curvature_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three judgments of an item that is better by 3.5: of 1,000 logs the curvature's upper limit holds in fewer."""
    rng = np.random.default_rng(seed(3))
    score = np.array([-0.6, -0.2, 0.0, 0.3, 0.5])
    first = rng.integers(0, 5, 60_000)
    second = (first + rng.integers(1, 5, 60_000)) % 5
    one, other = np.append(first, np.full(3000, 5)), np.append(second, np.tile([1, 3, 1], 1000))
    log = np.append(np.repeat(np.arange(1000), 60), np.repeat(np.arange(1000), 3))
    truth = np.append(score, 3.5)
    won = rng.random(len(one)) < expit(truth[one] - truth[other])
    votes = cc.Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one), query=log)

    def held() -> float:
        board = cc.rank(votes)
        item = np.asarray(board.items.values)[board.item]
        firm = board.flag == 0
        number = np.bincount(board.query[firm], minlength=1000)
        apart = 3.5 - np.bincount(board.query[firm], truth[item[firm]], 1000) / number
        own = item == 5  # who never lost has no upper limit, which holds
        return float((apart[board.query[own]] <= board.upper[own]).mean())

    assert held() > 0.975
    monkeypatch.setattr(few_judgments, "FEW", 0)
    assert held() < 0.95
