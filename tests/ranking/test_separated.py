"""One-sided limits of separated items: the exact test, a slow twin of the profile, laws; and who is surely first."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

import concordant as cc
from concordant.preferences.preferences import counted_comparisons, counted_lists
from concordant.ranking.rank_intervals import among_others
from concordant.ranking.shown import remarks
from seeds import seed

FIRM = [(a, b, 100_000) for a in "xyz" for b in "xyz" if a != b]


def board_of(edges, **options):
    winner, loser, count = zip(*edges, strict=True)
    return cc.rank(cc.Preferences.from_comparisons(winner, loser, count=count), **options)


def ends(board):
    rows = zip(board.to_arrow()["item"].to_pylist(), board.lower.tolist(), board.upper.tolist(), strict=True)
    return {item: (low, high) for item, low, high in rows}


def ranks(board):
    rows = zip(board.to_arrow()["item"].to_pylist(), board.rank_lower.tolist(), board.rank_upper.tolist(), strict=True)
    return {item: (low, high) for item, low, high in rows}


def log_odds(p):
    return np.log(p / (1 - p))


# -- the exact test ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wins", [1, 5, 30, 1000])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_two_items_have_the_limit_of_clopper_and_pearson(wins, level):
    found = ends(board_of([("a", "b", wins)], level=level, interval="hessian"))
    exact = log_odds(((1 - level) / 2) ** (1 / wins)) / 2  # of the difference; a score is half of it
    assert found["a"] == (pytest.approx(exact, abs=1e-5), np.inf)
    assert found["b"] == (-np.inf, pytest.approx(-exact, abs=1e-5))


@pytest.mark.parametrize("prior", [0.1, 0.01, 1e-4])
def test_thirty_of_thirty_against_items_that_are_known_and_the_prior_plays_no_part(prior):
    found = ends(board_of([*FIRM, ("top", "x", 30), ("y", "low", 12)], prior=prior))
    assert found["top"] == (pytest.approx(log_odds(0.025 ** (1 / 30)), abs=0.01), np.inf)
    assert found["low"] == (-np.inf, pytest.approx(-log_odds(0.025 ** (1 / 12)), abs=0.01))


def test_between_an_item_and_the_firm_stands_another():
    """Up beat mid three times, mid x: where up is level with the firm mid is likeliest there, too."""
    found = ends(board_of([*FIRM, ("up", "mid", 3), ("mid", "x", 3)], level=1 - 2 / 2**6))
    assert found["up"][0] == pytest.approx(0, abs=1e-3)  # ½³ · ½³
    assert found["mid"][0] == pytest.approx(log_odds(1 / 4), abs=1e-3)  # p³ = 2⁻⁶, and up may be anywhere above


# -- the profile by brute force ----------------------------------------------------------------------------------
def brute(wins, target, anchors, share):
    """δ where max{log L : s_target − mean of the anchors = δ} is log share below its supremum, by BFGS."""
    n = len(wins)
    others = [j for j in range(n) if j != target]

    def minus(s):
        return float((wins * np.logaddexp(0, s[None, :] - s[:, None])).sum())

    def slope(s):
        lost = wins / (1 + np.exp(s[:, None] - s[None, :]))
        return lost.sum(axis=0) - lost.sum(axis=1)

    best = minimize(minus, np.zeros(n), jac=slope, method="BFGS", options={"gtol": 1e-9, "maxiter": 4000})

    def below(delta):
        def whole(x):
            s = np.zeros(n)
            s[others] = x
            s[target] = s[anchors].mean() + delta
            return s

        def gradient(x):
            full = slope(whole(x))
            own = full[others].copy()
            for anchor in anchors:
                own[others.index(anchor)] += full[target] / len(anchors)
            return own

        start = best.x[others] * 0.3
        return minimize(lambda x: minus(whole(x)), start, jac=gradient, method="BFGS").fun - best.fun + np.log(share)

    return brentq(below, -8, 12, xtol=1e-4)


@pytest.mark.parametrize("draw", [0, 1])
def test_the_limits_are_those_of_the_whole_likelihood(draw):
    rng = np.random.default_rng(seed(20 + draw))
    n = 5
    ability = rng.normal(0, 0.8, n)
    wins = np.zeros((n + 3, n + 3))
    for _ in range(200):
        a, b = rng.choice(n, 2, replace=False)
        a, b = (a, b) if rng.random() < 1 / (1 + np.exp(ability[b] - ability[a])) else (b, a)
        wins[a, b] += 1
    wins[n, rng.choice(n, 2, replace=False)] = 4  # n never lost to the firm, n + 1 beat it and one of them
    wins[n + 1, n], wins[n + 1, 0] = 3, 1
    wins[rng.choice(n, 3, replace=False), n + 2] = 2
    edges = [(str(a), str(b), int(wins[a, b])) for a, b in zip(*np.nonzero(wins), strict=True)]
    found = ends(board_of(edges, interval="hessian"))
    for target, side in ((n, 0), (n + 1, 0), (n + 2, 1)):
        assert found[str(target)][side] == pytest.approx(brute(wins, target, list(range(n)), 0.025), abs=0.03)


# -- other likelihoods -------------------------------------------------------------------------------------------
def test_ties_of_their_own_and_lists():
    """Davidson without ties near the item: P(win) = 1/(1 + e^−t + ν e^−t/2) at the ν of the others."""
    some = [*((a, b) for a, b, _ in FIRM for _ in range(400)), *[("top", "x")] * 20]
    tied = [(a, b) for a, b, _ in FIRM for _ in range(200)]
    winner, loser = zip(*some, *tied, strict=True)
    prefs = cc.Preferences.from_comparisons(winner, loser, tie=[False] * len(some) + [True] * len(tied))
    board = cc.rank(prefs, ties="davidson")
    nu = np.exp(board.coefficients["ties"][0])
    limit = ends(board)["top"][0]
    chance = 1 / (1 + np.exp(-limit) + nu * np.exp(-limit / 2))
    assert chance**20 == pytest.approx(0.025, rel=0.05)

    order = np.array([["top", "x", "y"], ["top", "y", "x"]] * 6)
    prefs = counted_lists("orders", np.arange(0, 37, 3), order.ravel().tolist(), np.tile([1.0, 2.0, 3.0], 12))
    low = ends(cc.rank(prefs, "plackett-luce", interval="hessian"))["top"][0]
    assert (np.exp(low) / (np.exp(low) + 2)) ** 12 == pytest.approx(0.025, rel=0.02)


def test_each_cluster_counts_once_with_the_sandwich():
    """Ten workers who each said five times that top beats x are ten draws."""
    rng = np.random.default_rng(seed(3))
    i, j = rng.integers(0, 3, 3000), rng.integers(0, 3, 3000)
    i, j = i[i != j], j[i != j]
    winner, loser = [*(f"x{k}" for k in i), *["top"] * 50], [*(f"x{k}" for k in j), *["x0"] * 50]
    worker = [*(rng.integers(0, 300, len(i)) + 100).tolist(), *np.repeat(np.arange(10), 5).tolist()]
    clustered = ends(cc.rank(cc.Preferences.from_comparisons(winner, loser, cluster=worker)))["top"][0]
    plain = ends(cc.rank(cc.Preferences.from_comparisons(winner, loser)))["top"][0]
    assert clustered == pytest.approx(log_odds(0.025 ** (1 / 10)), abs=0.15)
    assert plain == pytest.approx(log_odds(0.025 ** (1 / 50)), abs=0.15)


@pytest.mark.parametrize("interval", ["hessian", "sandwich", "bootstrap"])
def test_all_methods_have_them_and_say_so(interval):
    rng = np.random.default_rng(seed(6))
    i, j = rng.integers(0, 4, 400), rng.integers(0, 4, 400)
    edges = [(str(a), str(b), 1) for a, b in zip(i, j, strict=True) if a != b]
    board = board_of([*edges, ("top", "0", 9)], interval=interval)
    low, high = ends(board)["top"]
    assert low == pytest.approx(log_odds(0.025 ** (1 / 9)), abs=0.6)
    assert np.isinf(high)
    assert any(getattr(note, "code", "") == "one-sided limits" for note in board.notes)


# -- who is first ------------------------------------------------------------------------------------------------
def test_who_is_first_for_all_nine_judges_is_first(shared_data):
    for name, top in (("00006-00000001.toc", "Alexei Yagudin"), ("00006-00000018.soc", "Grishuk And Platov")):
        prefs = cc.read(shared_data(f"preflib/00006_skate/{name}"))
        for structure in ("plackett-luce", "bradley-terry"):
            assert ranks(cc.rank(prefs, structure))[top] == (1, 1)


def test_a_chain_is_an_order_where_it_was_said_often_enough():
    chain = [("a", "b"), ("b", "c"), ("c", "d")]
    assert ranks(board_of([(*pair, 30) for pair in chain])) == {"a": (1, 1), "b": (2, 2), "c": (3, 3), "d": (4, 4)}
    assert ranks(board_of([(*pair, 2) for pair in chain])) == dict.fromkeys("abcd", (1, 4))


def test_an_item_that_won_twice_is_not_surely_first():
    assert ranks(board_of([*FIRM, ("top", "x", 2)]))["top"] == (0, 0)  # stands apart
    assert ranks(board_of([*FIRM, ("top", "x", 20)]))["top"] == (1, 1)
    assert ranks(board_of([*FIRM, ("top", "x", 20)]))["x"][0] == 2
    assert ranks(board_of([*FIRM, ("x", "low", 2)]))["low"] == (0, 0)
    assert ranks(board_of([*FIRM, ("x", "low", 20)]))["low"] == (4, 4)


@pytest.mark.parametrize("structure", ["bradley-terry", "plackett-luce"])
def test_reversed_judgments_have_reversed_limits(structure):
    rng = np.random.default_rng(seed(31))
    i, j = rng.integers(0, 5, 150), rng.integers(0, 5, 150)
    edges = [(str(a), str(b), 1) for a, b in zip(i, j, strict=True) if a != b]
    edges += [("up", "0", 6), ("over", "up", 9), ("over", "1", 2), ("2", "low", 7)]
    board, back = (board_of(some, structure=structure) for some in (edges, [(b, a, n) for a, b, n in edges]))
    there, again, total = ends(board), ends(back), int((board.rank > 0).sum())
    for item, (low, high) in there.items():
        assert again[item] == (pytest.approx(-high, abs=1e-4), pytest.approx(-low, abs=1e-4))
    first, last = ranks(board), ranks(back)
    assert (board.provisional.sum() == back.provisional.sum()) and total > 4
    assert {item: (total + 1 - high, total + 1 - low) if low else (0, 0) for item, (low, high) in first.items()} == last


# -- coverage ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gap", [2.5, -2.5])
def test_limits_hold_over_all_draws_separated_or_not(gap):
    rng = np.random.default_rng(seed(8))
    sets, core, own = 250, 60, 10
    ability = np.append(rng.normal(0, 0.8, 5), gap)
    ability[:5] -= ability[:5].mean()
    i = np.concatenate([rng.integers(0, 5, sets * core), np.full(sets * own, 5)])
    j = np.concatenate([(i[: sets * core] + rng.integers(1, 5, sets * core)) % 5, np.tile(np.arange(own) % 5, sets)])
    query = np.concatenate([np.repeat(np.arange(sets), core), np.repeat(np.arange(sets), own)])
    won = rng.random(len(i)) < 1 / (1 + np.exp(ability[j] - ability[i]))
    prefs = counted_comparisons(np.where(won, i, j), np.where(won, j, i), query=query)
    board = cc.rank(prefs, interval="hessian")
    firm = (board.flag == 0) & (board.component == 1)
    mean = np.bincount(board.query[firm], ability[board.item[firm]]) / np.bincount(board.query[firm])
    row = board.item == 5
    truth = gap - mean[board.query[row]]
    far = board.lower[row] <= truth if gap > 0 else truth <= board.upper[row]
    assert 0.2 < (board.flag[row] > 0).mean() < 0.8
    assert far.mean() >= 0.965


def test_limits_do_not_depend_on_what_is_ranked_beside():
    """Each profile ends by itself, whatever the others of its stack need."""
    alone = {"query": ["a"] * 500, "winner": ["x"] * 500, "loser": ["y"] * 500}
    beside = {name: [*column, more] for (name, column), more in zip(alone.items(), "bxy", strict=True)}
    one, two = (cc.rank(cc.read(columns)) for columns in (alone, beside))
    first = two.query == 0
    assert two.lower[first] == pytest.approx(one.lower, abs=1e-12)
    assert two.upper[first] == pytest.approx(one.upper, abs=1e-12)
    assert one.lower.max() == pytest.approx(np.log(0.025 ** (1 / 500) / (1 - 0.025 ** (1 / 500))) / 2, abs=1e-6)


# -- apart from the ranking --------------------------------------------------------------------------------------
CLEAR = [(a, b, 60_000 - 20_000 * (a > b)) for a in "xyz" for b in "xyz" if a != b]


def test_undecided_items_stand_after_the_ranking():
    board = board_of([*CLEAR, ("top", "x", 2), ("y", "low", 1)])
    table = board.to_arrow()
    assert table["provisional"].to_pylist() == [False] * 3 + [True] * 2
    assert table["rank"].to_pylist() == [1, 2, 3, None, None]
    assert table["item"].to_pylist()[3:] == ["top", "low"] and table["flag"].to_pylist()[3:] == [
        "never lost",
        "never won",
    ]
    alone = board_of(CLEAR)
    assert ranks(board) == ranks(alone) | {"top": (0, 0), "low": (0, 0)}


def test_where_all_items_are_undecided_none_stands_apart():
    board = board_of([("a", "b", 2), ("b", "c", 1)])
    assert not board.provisional.any() and board.rank.tolist() == [1, 2, 3]


def test_without_intervals_nothing_is_undecided():
    board = board_of([*CLEAR, ("top", "x", 2)], interval="none")
    assert not board.provisional.any() and board.rank[0] == 1


@pytest.mark.parametrize("interval", ["auto", "none", "bootstrap"])
@pytest.mark.parametrize("structure", ["bradley-terry", "borda", "plackett-luce"])
def test_items_of_few_judgments_stand_apart_where_that_is_asked(structure, interval):
    rng = np.random.default_rng(seed(5))
    i, j = rng.integers(0, 6, 300), rng.integers(0, 6, 300)
    edges = [(str(a), str(b), 1) for a, b in zip(i, j, strict=True) if a != b]
    edges += [("few", "0", 2), ("1", "few", 2), ("best", "3", 40)]
    how = {} if interval != "bootstrap" else {"replicates": 200}
    whole = board_of(edges, structure=structure, interval=interval, **how)
    board = board_of(edges, structure=structure, interval=interval, min_judgments=50, **how)
    items = board.items.take(board.item).to_pylist()
    assert (
        items[-2:] == sorted(["best", "few"], key=lambda item: -ends_of(board, item)) and board.provisional.sum() == 2
    )
    assert board.rank.tolist() == [1, 2, 3, 4, 5, 6, 0, 0]
    assert ends(board).keys() == ends(whole).keys()
    if interval != "none":
        for item, (low, high) in ranks(board).items():
            place = board.rank[items.index(item)]
            assert (low, high) == (0, 0) if place == 0 else 1 <= low <= place <= high <= 6
    assert "few" in next(note for note in remarks(board) if "fewer than 50 judgments" in note)


def ends_of(board, item):
    return board.score[board.items.take(board.item).to_pylist().index(item)]


def test_ranks_among_others_by_brute_force():
    """Every item apart whose whole interval lies above (below) leaves one place less above (below)."""
    rng = np.random.default_rng(seed(9))
    for _ in range(200):
        n = int(rng.integers(2, 12))
        lower = rng.integers(1, n + 1, n)
        upper = np.minimum(lower + rng.integers(0, n, n), n)
        apart, group = rng.random(n) < 0.4, rng.integers(0, 3, n)
        found = np.column_stack(among_others(lower, upper, group, apart))
        for k in range(n):
            others = [e for e in range(n) if apart[e] and group[e] == group[k]]
            above = sum(upper[e] < lower[k] for e in others)
            below = sum(lower[e] > upper[k] for e in others)
            want = (0, 0) if apart[k] else (lower[k] - above, upper[k] - (len(others) - below))
            assert tuple(found[k]) == want
