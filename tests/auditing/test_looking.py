"""What may be said at every look: against exact probabilities, integrals, plain twins and simulated voting."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import binom, expit, log_expit
from scipy.stats import binom as binomial
from scipy.stats import norm

import concordant as cc
from concordant.auditing.looking import POINTS, against_first, better_pairs, by_direct_votes
from concordant.errors import InputError, UsageError
from concordant.preferences.preferences import Preferences, counted_comparisons
from seeds import seed

LLMFAO = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"


def table(won: np.ndarray) -> Preferences:
    """Boards as queries; [board, i, j]: how often i was preferred to j."""
    board, first, second = np.nonzero(won)
    every = np.divmod(np.arange(won.shape[0] * won.shape[1]), won.shape[1])
    return counted_comparisons(
        pa.array(first), pa.array(second), query=pa.array(board), count=won[board, first, second],
        declared=(pa.array(every[0]), pa.array(every[1])),
    )  # fmt: skip


def log_evidence(won: np.ndarray, **how) -> np.ndarray:
    (stack,) = cc.look(table(won), **how).stacks
    return stack.evidence


# -- two equal items: the exact chance that one of them is ever excluded -----------------------------------------------
MOST = 150


def out_by_then(out: dict[int, np.ndarray]) -> float:
    """The chance that a fair walk ever stands where it is out; ``out[n][w]`` after w wins of n, by adding up paths."""
    alive, gone = np.array([1.0]), 0.0
    for n in range(1, MOST + 1):
        alive = 0.5 * (np.append(alive, 0.0) + np.append(0.0, alive))
        gone += alive[out[n]].sum()
        alive[out[n]] = 0.0
    return float(gone)


@pytest.mark.parametrize("direct", [False, True])
def test_of_two_equal_items_one_is_hardly_ever_excluded(direct: bool) -> None:
    n, w = np.array([(n, w) for n in range(1, MOST + 1) for w in range(n + 1)]).T
    won = np.zeros((len(n), 2, 2), np.int64)
    won[:, 0, 1], won[:, 1, 0] = w, n - w
    found = cc.look(table(won), direct=direct)
    among = found.among_first.reshape(-1, 2)[:, 0]
    chance = out_by_then({m: ~among[n == m] for m in range(1, MOST + 1)})
    assert 0.002 < chance <= 0.05
    # the usual 95% interval of one look, by the same sums
    usual = (w - n / 2) / np.sqrt(n / 4) < -1.96
    assert out_by_then({m: usual[n == m] for m in range(1, MOST + 1)}) > 0.15


def test_direct_evidence_has_mean_one_between_equals_and_less_with_ties() -> None:
    for n in (1, 2, 7, 40):
        won = np.zeros((n + 1, 2, 2))
        won[:, 0, 1], won[:, 1, 0] = np.arange(n + 1), n - np.arange(n + 1)
        evidence = np.exp(by_direct_votes(won))[:, 0, 1]
        assert (binom(n, np.arange(n + 1)) * 0.5**n * evidence).sum() == pytest.approx(1.0, rel=1e-12)
    counts = [(w, t, 12 - w - t) for w in range(13) for t in range(13 - w)]  # a third of the votes are ties
    won = np.array([[[0, w + t / 2], [lost + t / 2, 0]] for w, t, lost in counts])
    share = np.array([math.factorial(12) / math.prod(map(math.factorial, one)) for one in counts]) / 3.0**12
    assert share.sum() == pytest.approx(1.0) and (share * np.exp(by_direct_votes(won))[:, 0, 1]).sum() < 0.95


def test_points_of_the_mixture_have_equal_probability() -> None:
    assert np.allclose(norm(0, math.sqrt(0.5)).cdf(POINTS), 0.5 + (np.arange(32) + 0.5) / 64)


# -- the model: against the integrals that it approximates -------------------------------------------------------------
@pytest.mark.parametrize(("wins", "losses"), [(20, 20), (30, 50), (12, 40), (200, 260), (60, 40)])
def test_evidence_of_two_items_is_the_integral(wins: int, losses: int) -> None:
    won = np.array([[[0, wins], [losses, 0]]])

    def likelihood(delta: float) -> float:  # of the second item's lead, over that of none
        return float(np.exp(losses * log_expit(delta) + wins * log_expit(-delta) + (wins + losses) * math.log(2)))

    exact = quad(lambda d: 2 * norm.pdf(d, 0, math.sqrt(0.5)) * likelihood(d), 0, 6, limit=200)[0]
    found, exact = log_evidence(won)[0, 0, 1], math.log(exact)
    assert exact - 0.1 - 0.2 * abs(exact) <= found <= exact + 0.05  # the normal curve says rather too little
    assert log_evidence(won, direct=True)[0, 0, 1] == pytest.approx(exact, abs=0.1)


def test_evidence_of_three_items_integrates_the_third_out() -> None:
    """By a grid: δ against |N(0, ½)|, the third item against the mean of the two N(0, 1 + ½)."""
    won = np.array([[0, 30, 35], [44, 0, 52], [20, 15, 0]])
    t = np.linspace(-7, 7, 1401)

    def marginal(delta: np.ndarray) -> np.ndarray:
        s = np.stack([np.broadcast_to(-delta[:, None] / 2, (len(delta), len(t))),
                      np.broadcast_to(delta[:, None] / 2, (len(delta), len(t))),
                      np.broadcast_to(t, (len(delta), len(t)))])  # fmt: skip
        logs = sum(won[i, j] * log_expit(s[i] - s[j]) for i in range(3) for j in range(3))
        return np.asarray((np.exp(logs + 110) * norm.pdf(t, 0, math.sqrt(1.5))).sum(axis=1))

    delta = np.linspace(0, 5, 2001)
    mixed = (marginal(delta) * 2 * norm.pdf(delta, 0, math.sqrt(0.5))).sum() * (delta[1] - delta[0])
    exact = math.log(mixed / marginal(np.zeros(1))[0])
    assert log_evidence(won[None])[0, 0, 1] == pytest.approx(exact, abs=0.1)


# -- what is made of the evidence: plain twins -------------------------------------------------------------------------
def test_first_places_and_ranks_by_loops() -> None:
    rng = np.random.default_rng(seed(0))
    evidence = rng.normal(1.0, 4.0, (6, 7, 7))
    np.einsum("gii->gi", evidence)[:] = -np.inf
    for g, top in itertools.product(range(6), (1, 2, 5)):
        for i in range(7):
            others = sorted(math.exp(evidence[g, i, j]) for j in range(7) if j != i)
            least = others[: 7 - top]
            assert against_first(evidence, top)[g, i] == pytest.approx(math.log(sum(least) / len(least)))
    for g, better in enumerate(better_pairs(evidence, 0.9)):
        found, pairs = set(), sorted(itertools.permutations(range(7), 2), key=lambda p: -evidence[g][p])
        for step, pair in enumerate(pairs):
            if math.exp(evidence[g][pair]) < (len(pairs) - step) / 0.1:
                break
            found.add(pair)
        assert {*zip(*map(list, np.nonzero(better)), strict=True)} == found


def test_shared_votes_follow_the_least_certain_pair() -> None:
    """By the inverse of the information, computed anew after every vote."""
    rng = np.random.default_rng(seed(1))
    won = rng.integers(1, 12, (5, 5)) + np.triu(np.full((5, 5), 6))
    np.fill_diagonal(won, 0)
    found = cc.look(table(won[None]), top=2)
    (stack,) = found.stacks
    s, evidence, information = stack.value[0], stack.evidence[0], np.linalg.inv(stack.covariance[0])
    high, low = np.split(np.argsort(-s), [2])
    pairs = [*itertools.product(high.tolist(), low.tolist())]
    gap = {pair: s[pair[0]] - s[pair[1]] for pair in pairs}

    def variance(a: int, b: int) -> float:
        inverse = np.linalg.inv(information)
        return float(inverse[a, a] + inverse[b, b] - 2 * inverse[a, b])

    before = {pair: variance(*pair) for pair in pairs}
    given = dict.fromkeys(pairs, 0)
    for _ in range(40):
        seems = {pair: min(gap[pair] / (1 - before[pair] / 2), 3.0) for pair in pairs}
        a, b = least = min(pairs, key=lambda p: evidence[p[1], p[0]]
                           + seems[p] ** 2 / 2 * (1 / variance(*p) - 1 / before[p]))  # fmt: skip
        given[least] += 1
        c = np.zeros(5)
        c[[a, b]] = 1, -1
        information = information + expit(gap[least]) * expit(-gap[least]) * np.outer(c, c)
    rows = found.ask(40).to_pylist()
    assert {(row["first"], row["second"]): row["votes"] for row in rows} == {p: n for p, n in given.items() if n}
    assert [row["votes"] for row in rows] == sorted((row["votes"] for row in rows), reverse=True)


# -- voting ------------------------------------------------------------------------------------------------------------
def vote(truth: np.ndarray, looks: int, *, each: int, own: bool, **how) -> tuple[np.ndarray, ...]:
    """Vote on boards until they are settled: ever wrong about the first, about a rank; settled; votes cast."""
    rng = np.random.default_rng(seed(2))
    boards, items = truth.shape
    chance = expit(truth[:, :, None] - truth[:, None, :])
    rank = np.argsort(np.argsort(-truth, axis=1), axis=1) + 1
    won = np.zeros((boards, items, items), np.int64)
    wrong, ranks, usual, settled = np.zeros((4, boards), bool)
    votes = np.zeros(boards, np.int64)
    found = None
    for _ in range(looks):
        if own and found is not None:
            board, first, second, many = (found.ask(each)[n].to_numpy() for n in ("query", "first", "second", "votes"))
        else:
            board = np.repeat(np.flatnonzero(~settled), each)
            first = rng.integers(items, size=len(board))
            second, many = (first + rng.integers(1, items, len(board))) % items, np.ones(len(board), np.int64)
        wins = rng.binomial(many, chance[board, first, second])
        np.add.at(won, (board, first, second), wins)
        np.add.at(won, (board, second, first), many - wins)
        np.add.at(votes, board, many)
        found = cc.look(table(won), **how)
        wrong |= ~settled & ~found.among_first.reshape(-1, items)[np.arange(boards), truth.argmax(axis=1)]
        lower, upper = found.rank_lower.reshape(-1, items), found.rank_upper.reshape(-1, items)
        ranks |= ((lower > rank) | (upper < rank)).any(axis=1)
        (stack,) = found.stacks
        best, lead = truth.argmax(axis=1)[:, None], np.arange(boards)[:, None]
        own_v = np.einsum("gii->gi", stack.covariance)
        v = own_v[lead, best] + own_v - 2 * stack.covariance[lead, best, np.arange(items)]
        usual |= ((stack.value - stack.value[lead, best]) / np.sqrt(np.maximum(v, 1e-9)) > 1.96).any(axis=1)
        settled |= found.settled
    return wrong, ranks, usual, settled, votes


@pytest.mark.parametrize(("own", "direct"), [(True, False), (False, False), (True, True)])
def test_nearly_equal_items_are_hardly_ever_told_apart(own: bool, direct: bool) -> None:
    truth = np.tile([0.0, 0.0, -0.3, -0.3, -1.0, -1.5], (150, 1)) + 1e-9 * np.array([1, 0, 3, 2, 1, 0])
    wrong, ranks, usual, *_ = vote(truth, 50, each=20, own=own, direct=direct)
    most = binomial.ppf(0.999, 150, 0.05)
    assert wrong.sum() <= most and ranks.sum() <= most
    assert usual.mean() > 0.1  # the interval of one look, at every look


def test_who_chooses_the_pairs_needs_less_than_half_the_votes() -> None:
    truth = np.random.default_rng(seed(3)).normal(0, 1, (24, 20))
    mine, random = (vote(truth, 40, each=100, own=own) for own in (True, False))
    assert np.median(mine[4]) <= np.median(random[4]) / 2
    assert mine[3].mean() > 0.6 and mine[0].mean() <= 0.05


# -- what comes out ----------------------------------------------------------------------------------------------------
def test_the_order_of_votes_does_not_matter_and_queries_stand_alone() -> None:
    votes = cc.read(LLMFAO)
    whole, halves = cc.look(votes), cc.look(votes.select(["all"]))
    assert whole.to_arrow() == halves.to_arrow()
    twice = Preferences.from_comparisons(["a", "b", "a", "b", "a", "x", "y"], ["b", "a", "b", "a", "c", "y", "x"],
                                         query=[1, 1, 1, 1, 1, 2, 2], count=[60, 20, 40, 20, 30, 5, 4])  # fmt: skip
    both = cc.look(twice)
    for query in (1, 2):
        alone = cc.look(twice.select([query]))
        rows = [row for row in both.to_arrow().to_pylist() if row["query"] == query]
        for row, other in zip(rows, alone.to_arrow().to_pylist(), strict=True):
            assert row == pytest.approx(other)
    assert both.settled.tolist() == [True, False]
    assert both.lines() == ["1 of 2 queries are settled: the first can be named, with 95% confidence at every look."]
    assert set(both.ask(30)["query"].to_pylist()) == {2} and sum(both.ask(30)["votes"].to_pylist()) == 30


def test_three_in_the_lead_are_a_set() -> None:
    won = np.array([[0, 50, 50, 95], [50, 0, 50, 95], [50, 50, 0, 95], [5, 5, 5, 0]])
    found = cc.look(table(won[None]), top=3)
    assert found.settled[0] and found.among_first.tolist() == [True, True, True, False]
    assert found.lines()[0] == "Settled: 0, 1, 2 are the first 3 of 4 items, with 95% confidence at every look."
    assert cc.look(table(won[None])).lines() == [
        "Not settled: 3 of 4 items may be the first, with 95% confidence at every look."
    ]
    ranks = found.to_arrow(ranks=True).to_pylist()
    assert [(row["rank_lower"], row["rank_upper"]) for row in ranks] == [(1, 3)] * 3 + [(4, 4)]
    assert found.to_pandas()["judgments"].tolist() == [300, 300, 300, 300]


def test_a_tie_is_half_a_win_and_unseen_items_stay_possible() -> None:
    votes = Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"], tie=[False, True, False], count=[30, 20, 5])
    halves = Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[40, 15])
    for direct in (False, True):
        assert np.allclose(cc.look(votes, direct=direct).p_value, cc.look(halves, direct=direct).p_value)
    apart = Preferences.from_comparisons(["a", "b", "x"], ["b", "a", "y"], count=[90, 10, 1])
    rows = {row["item"]: row for row in cc.look(apart).to_arrow().to_pylist()}
    assert [rows[item]["among_first"] for item in "abxy"] == [True, False, True, True]
    with_judges = Preferences.from_comparisons(["a", "b"], ["b", "a"], cluster=["u", "v"])
    assert [note.code for note in cc.look(with_judges).notes] == ["judges alike"] and not cc.look(votes).notes


@pytest.mark.parametrize(
    ("votes", "how", "said"),
    [
        ({}, {"level": 0.4}, "the level lies between 0.5 and 1, not 0.4"),
        ({}, {"top": 2}, "top 2 is asked for, but the largest query has 2 items"),
        ({}, {"top": 0}, "k is a number of items from 1 on"),
        ({"weight": [2.0]}, {}, "knows no votes of unequal strength"),
        ({"covariates": {"z": [1.0]}}, {}, "knows no covariates of votes"),
    ],
)
def test_what_is_refused(votes: dict, how: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cc.look(Preferences.from_comparisons(["a"], ["b"], **votes), **how)


def test_other_judgments_are_refused() -> None:
    orders = Preferences.from_orders(query=[1] * 3, judgment=[1] * 3, item=["a", "b", "c"], rank=[1, 2, 3])
    with pytest.raises(UsageError, match="is for votes between two items, not for orders"):
        cc.look(orders)
    with pytest.raises(InputError, match="nothing to look at"):
        cc.look(Preferences.empty())
    with pytest.raises(UsageError, match="at least 1, not 0"):
        cc.look(Preferences.from_comparisons(["a"], ["b"])).ask(0)
    many = Preferences.from_comparisons(np.arange(2001), np.arange(2001) + 1)
    with pytest.raises(UsageError, match="2,002 items; all pairs are looked at, of at most 2,000"):
        cc.look(many)
