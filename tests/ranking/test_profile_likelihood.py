"""Profiles of many scores side by side: each by scipy from its formula; sequences by a slow twin; bits of the parts."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import logsumexp

import concordant as cc
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import counted_comparisons
from concordant.preferences.ragged import Ragged
from concordant.ranking.intervals import separated_items
from concordant.ranking.profile_likelihood import Stack
from concordant.ranking.rank_intervals import outermost
from concordant.ranking.structures import STRUCTURES
from seeds import seed


# -- one stack ---------------------------------------------------------------------------------------------------
def drawn(rng, size, alternatives, *, tied):
    """Profiles that fall to 0 as δ rises, of one score that the data leave free and two that have a law."""
    choices, m = 6, 3
    D = rng.integers(-1, 2, (size, choices, alternatives, m + 1)).astype(float)
    D[..., m] = -1.0
    offset = rng.normal(0, 0.5, D.shape[:3])
    offset[:, ::2, 1:] = -np.inf
    D[np.isinf(offset)] = 0.0
    top = np.zeros(offset.shape, bool)
    if tied:  # the first choice says what it says of whoever is not in its top
        top[:, 1, 0] = True
        D[:, 1, 0] = [0.0, 1.0, -1.0, 0.0]
    D[:, :, :, 0] = -np.abs(D[:, :, :, 0])
    D[:, 0, 0] = [1.0, 0.0, 0.0, -1.0]  # the given one beat the free one, and this one
    D[:, 2, 0] = [-1.0, 1.0, 0.0, 0.0]  # another, which has a law
    root = np.zeros((size, m + 1, m + 1))
    root[:, 1:3, 1:3] = rng.normal(0, 1, (size, 2, 2)) + 2 * np.eye(2)
    centre = np.concatenate([np.zeros((size, 1)), rng.normal(0, 0.5, (size, 2)), np.zeros((size, 1))], axis=1)
    follows = np.tile([0.0, np.nan, np.nan], (size, 1))
    none = np.zeros(size)
    return Stack(D, offset, top, rng.integers(1, 6, (size, choices)) * 1.0, centre, root, follows, none, none)


def minus_likelihood(stack, g, z):
    """The formula, choice after choice."""
    away = stack.root[g] @ (z - stack.centre[g])
    total = 0.5 * float(away @ away)
    for choice, weight in enumerate(stack.weight[g]):
        d = np.append(0.0, stack.D[g, choice] @ z + stack.offset[g, choice])
        total += weight * (logsumexp(d) - logsumexp(d[np.append(True, stack.top[g, choice])]))
    return total


def profile(stack, g, delta):
    def at(x):
        return minus_likelihood(stack, g, np.append(x, delta))

    return minimize(at, stack.centre[g, :3], method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize(("alternatives", "tied"), [(1, False), (3, False), (3, True)])
def test_profiles_are_those_of_the_formula(alternatives, tied):
    rng = np.random.default_rng(seed(41))
    stack, far = drawn(rng, 8, alternatives, tied=tied), 3.7
    found = stack.where(far)
    for g, limit in enumerate(found):
        assert profile(stack, g, limit) == pytest.approx(far, abs=1e-5)
        assert limit == pytest.approx(brentq(lambda delta, g=g: profile(stack, g, delta) - far, -20, 20), abs=1e-4)
        least = profile(stack, g, 0.0)
        one = stack.take(np.arange(len(found)) == g)
        assert one.apart(least * (1 - 1e-5))[0] and not one.apart(least * (1 + 1e-5))[0]
        assert one.where(far)[0] == limit  # the same bits, whatever stands beside


def far_off(spread, offset, wins):
    """δ beat items whose scores the data hardly limit: the law of each has this standard deviation."""
    D = np.concatenate([np.eye(2), -np.ones((2, 1))], axis=1)[None, :, None, :]
    root, none = np.diag([1 / spread[0], 1 / spread[1], 0.0])[None], np.zeros(1)
    return Stack(D, np.full((1, 2, 1), offset), np.zeros((1, 2, 1), bool), np.array([wins]), np.zeros((1, 3)), root,
                 np.full((1, 2), np.nan), none, none)  # fmt: skip


@pytest.mark.parametrize(
    ("spread", "offset", "wins"), [((80.0, 70.0), 0.0, (1.0, 3.0)), ((60.0, 50.0), 55.0, (2.0, 1.0))]
)
def test_limits_far_away_are_found_and_said(spread, offset, wins):
    stack, far = far_off(spread, offset, wins), -np.log(0.025)

    def below(delta):  # one number for each law, as the choices are of one item each
        return sum(
            minimize_scalar(lambda x, v=v, w=w: 0.5 * (x / v) ** 2 + w * np.logaddexp(0, x + offset - delta)).fun
            for v, w in zip(spread, wins, strict=True)
        )

    want = brentq(lambda delta: below(delta) - far, -600, 100, xtol=1e-9)
    assert -180 < want < -40
    assert stack.where(far)[0] == pytest.approx(want, abs=1e-5)
    assert stack.apart(below(0.0) * (1 - 1e-5))[0] and not stack.apart(below(0.0) * (1 + 1e-5))[0]
    assert np.isnan(far_off((1e4, 1e4), 0.0, wins).where(far)[0])  # farther than any limit


# -- items of a ranking ------------------------------------------------------------------------------------------
def votes_of(rng):
    """Wins among firm items, of two above them and of one below; every item a number."""
    n = int(rng.integers(3, 6))
    wins = np.zeros((n + 3, n + 3))
    wins[:n, :n] = rng.integers(8, 30, (n, n))
    wins[n, rng.choice(n, 2, replace=False)] = rng.integers(1, 9, 2)
    wins[n + 1, n], wins[n + 1, rng.integers(n)] = rng.integers(1, 9, 2)
    wins[rng.choice(n, 2, replace=False), n + 2] = rng.integers(1, 9, 2)
    np.fill_diagonal(wins, 0)
    return n, wins


def by_scipy(n, wins, target, sign, far):
    """The limit of one item: firm ones normal about their maximum likelihood, the others as the judgments have them."""

    def lost(s, w):
        return float((w * np.logaddexp(0, s[None, :] - s[:, None])).sum())

    core = wins[:n, :n]
    best = minimize(
        lambda s: lost(np.append(s, -s.sum()), core), np.zeros(n - 1), method="BFGS", options={"gtol": 1e-8}
    )
    firm = np.append(best.x, -best.x.sum())
    p = 1 / (1 + np.exp(firm[None, :] - firm[:, None]))
    bend = (core + core.T) * p * (1 - p)
    hessian = np.diag(bend.sum(axis=1)) - bend
    open_ = [n] if target == n else [n, n + 1] if target == n + 1 else [target]
    kept = np.zeros(wins.shape)
    for i in open_:
        for j in [*range(n), *open_]:
            kept[i, j], kept[j, i] = wins[i, j], wins[j, i]

    def below(delta):
        def at(x):
            s = np.full(len(wins), delta)
            s[: n - 1], s[n - 1] = x[: n - 1], -x[: n - 1].sum()
            s[[i for i in open_ if i != target]] = x[n - 1 :]
            away = s[:n] - firm
            return 0.5 * float(away @ hessian @ away) + lost(s, kept)

        start = np.append(firm[: n - 1], [delta] * (len(open_) - 1))
        return minimize(at, start, method="BFGS", options={"gtol": 1e-7}).fun - far

    return sign * brentq(lambda delta: below(sign * delta), -12, 12, xtol=1e-9)


def test_limits_of_items_of_many_queries_are_those_of_scipy():
    rng = np.random.default_rng(seed(42))
    drawn_ = [votes_of(rng) for _ in range(6)]
    rows = [(q, a, b, wins[a, b]) for q, (_, wins) in enumerate(drawn_) for a, b in zip(*np.nonzero(wins), strict=True)]
    query, winner, loser, count = (np.array(column) for column in zip(*rows, strict=True))
    board = cc.rank(counted_comparisons(winner, loser, query=query, count=count.astype(int)), interval="hessian")
    for q, (n, wins) in enumerate(drawn_):
        for target, sign, ends in ((n, 1, board.lower), (n + 1, 1, board.lower), (n + 2, -1, board.upper)):
            found = ends[(board.query == q) & (board.item == target)][0]
            assert found == pytest.approx(by_scipy(n, wins, target, sign, -np.log(0.025)), abs=2e-5)


# -- who is first ------------------------------------------------------------------------------------------------
def level(wins, i, j):
    """Minus the log-likelihood where i and j are level, of those on chains of wins between them; its supremum is 0."""
    reach = np.linalg.matrix_power(np.eye(len(wins)) + (wins > 0), len(wins)) > 0
    if not reach[i, j]:
        return 0.0
    between = [k for k in np.flatnonzero(reach[i] & reach[:, j]) if k not in (i, j)]
    nodes = [i, j, *between]

    def at(x):
        s = np.append([0.0, 0.0], x)
        return float((wins[np.ix_(nodes, nodes)] * np.logaddexp(0, s[None, :] - s[:, None])).sum())

    return at([]) if not between else minimize(at, np.zeros(len(between)), method="BFGS").fun


def places(wins, far):
    """How many stand first for sure, one after the other; five items at most."""
    rest, found = list(range(len(wins))), []
    while len(rest) > 1:
        now = wins[np.ix_(rest, rest)]
        ahead = np.flatnonzero(now.sum(axis=0) == 0)
        others = [j for j in range(len(rest)) if j != ahead[0]]
        if len(ahead) != 1 or any(level(now, ahead[0], j) < far for j in others):
            break
        found.append(rest.pop(int(ahead[0])))
    return found


def test_who_stands_first_and_last_is_said_by_a_slow_twin():
    rng = np.random.default_rng(seed(43))
    queries, n = 60, 5
    wins = np.triu(rng.poisson(6, (queries, n, n)) * (rng.random((queries, n, n)) < 0.7), 1)
    wins[:, np.arange(n - 1), np.arange(1, n)] += 1  # connected
    query, winner, loser = np.nonzero(wins)
    batch = Batch.whole(counted_comparisons(winner, loser, query=query, count=wins[query, winner, loser]))
    member = STRUCTURES["bradley-terry"]
    open_ = separated_items(batch, member, member.links(batch, None), {}, None, "hessian")
    lower, upper = outermost(np.ones(queries * n, np.int64), np.full(queries * n, n), open_, 0.95)
    far, numbers = -np.log(0.05 / 4), set()
    for q in range(queries):
        first, last = places(wins[q], far), places(wins[q].T, far)
        want = [[1 + len(first), n - len(last)] for _ in range(n)]
        for side, sure in enumerate((first, last)):
            for place, i in enumerate(sure):
                want[i] = [n - place, n - place] if side else [place + 1, place + 1]
        if len(first) + len(last) < n - 1:
            assert np.stack([lower, upper], 1)[q * n : (q + 1) * n].tolist() == want
            numbers.add(len(first) + len(last))
    assert numbers >= {0, 1, 2}


def test_an_item_is_no_surer_last_for_not_having_met_the_next():
    """A (firm, far above) beat C, never met B; B is firm and its law wide: level with B, C is hardly less likely."""
    wins = {(0, 1): 1, (1, 0): 1, (0, 3): 9, (0, 2): 40, (2, 0): 10, (2, 1): 1, (1, 2): 1}
    (winner, loser), count = np.array(list(wins)).T, np.array(list(wins.values()))
    batch = Batch.whole(counted_comparisons(winner, loser, count=count))
    member = STRUCTURES["bradley-terry"]
    open_ = separated_items(batch, member, member.links(batch, None), {}, None, "hessian")
    profiles = next(open_.profiles())
    spread, axes = np.linalg.eigh(profiles.laws.numbers.reshape(3, 3))
    root, value = axes * np.sqrt(np.maximum(spread, 0)), open_.value
    for j in (1, 2):
        asked = profiles.level(Ragged.of_sizes([2]), np.array([j, 3]), np.array([3]), np.array([j]))

        def at(y, j=j):  # the law of all three, C level with j
            x = value[:3] + root @ y
            return 0.5 * float(y @ y) + 9 * np.logaddexp(0, x[j] - x[0])

        below = minimize(at, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
        assert 1.0 < below.fun < 9 * np.logaddexp(0, value[j] - value[0]) + 1e-6
        assert profiles.apart(asked, below.fun * (1 - 1e-3))[0]
        assert not profiles.apart(asked, below.fun * (1 + 1e-3))[0]


# -- the parts and the whole -------------------------------------------------------------------------------------
def test_a_query_has_the_same_bits_whatever_is_ranked_beside_it():
    rng = np.random.default_rng(seed(44))
    query, a = rng.integers(0, 120, 4000), rng.integers(0, 7, 4000)
    b = (a + rng.integers(1, 7, 4000)) % 7
    ability = rng.normal(0, 2.5, (120, 7))
    won = rng.random(4000) < 1 / (1 + np.exp(ability[query, b] - ability[query, a]))
    winner, loser = np.where(won, a, b), np.where(won, b, a)

    def limits(chosen):
        board = cc.rank(counted_comparisons(winner[chosen], loser[chosen], query=query[chosen]), interval="hessian")
        keys = np.lexsort((board.item, board.queries.take(board.query).to_pylist()))
        return {name: getattr(board, name)[keys] for name in ("score", "lower", "upper", "rank_lower", "rank_upper")}

    whole = limits(np.ones(4000, bool))
    one_sided = np.isfinite(whole["lower"]) != np.isfinite(whole["upper"])
    assert one_sided.sum() > 50
    for part in (query == 0, query < 9, query < 60):
        for name, values in limits(part).items():
            assert np.array_equal(values, whole[name][: len(values)]), name
