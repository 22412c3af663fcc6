"""What changed between two boards: against refits of many drawn logs, the sandwich of each, and hand-made cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import concordant as cc
from concordant.boards.changes import _kinds, divided
from concordant.errors import ConcordantError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from seeds import seed

ABILITY = np.linspace(0.9, -0.9, 6)
NAMES = np.array([f"s{i}" for i in range(len(ABILITY))])


def draw(random: np.random.Generator, votes: int, opinions: np.ndarray | None = None) -> dict[str, Any]:
    """Votes of the model; with opinions (judges × items) those of judges, who say who they are."""
    a = random.integers(0, len(NAMES), votes)
    b = (a + random.integers(1, len(NAMES), votes)) % len(NAMES)
    lead = ABILITY[a] - ABILITY[b]
    more = {}
    if opinions is not None:
        more["cluster"] = random.integers(0, len(opinions), votes)
        lead = lead + opinions[more["cluster"], a] - opinions[more["cluster"], b]
    wins = random.random(votes) < expit(lead)
    return {"winner": NAMES[np.where(wins, a, b)], "loser": NAMES[np.where(wins, b, a)], **more}


def made(columns: dict[str, Any]) -> Preferences:
    return cc.Preferences.from_comparisons(**columns)


def joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([one[name], other[name]]) for name in one}


def many(logs: list[dict[str, Any]]) -> np.ndarray:
    """Centred scores of many logs, fitted side by side."""
    query = np.repeat(np.arange(len(logs)), [len(log["winner"]) for log in logs])
    winner, loser = (np.concatenate([log[name] for log in logs]) for name in ("winner", "loser"))
    batch = Batch.whole(cc.Preferences.from_comparisons(winner, loser, query=query))
    scores = bradley_terry(batch).value.reshape(len(logs), len(NAMES))
    order = np.array(batch.prefs.queries.tolist())
    out = np.empty_like(scores)
    out[order] = scores - scores.mean(axis=1, keepdims=True)
    return out


@pytest.mark.parametrize("way", ["grown", "independent", "judges"])
def test_standard_errors_are_those_of_many_logs(way: str) -> None:
    random = np.random.default_rng(seed(5))
    old, new = [], []
    for _ in range(400):
        opinions = random.normal(0, 0.7, (50, len(NAMES))) if way == "judges" else None
        first, second = draw(random, 500, opinions), draw(random, 400, opinions)
        old.append(first)
        new.append(second if way == "independent" else joined(first, second))
    spread = (many(new) - many(old)).std(axis=0)
    errors = []
    for first, second in zip(old[:12], new[:12], strict=True):
        shared = "common" if way == "grown" else "auto"
        change = cc.board_changes(cc.rank(made(first)), cc.rank(made(second)), shared=shared)
        assert change.shared == (0 if way == "independent" else 500)
        table = change.table.to_pylist()
        errors.append([row["standard_error"] for row in sorted(table, key=lambda row: str(row["item"]))])
    assert np.abs(np.sqrt((np.array(errors) ** 2).mean(axis=0)) / spread - 1).max() < 0.2
    if way == "grown":  # taken for independent, the same errors are far too wide
        apart = cc.board_changes(cc.rank(made(old[0])), cc.rank(made(new[0])), shared="none")
        assert min(apart.table["standard_error"].to_pylist()) > 1.3 * spread.max()


def test_independent_boards_add_their_sandwiches() -> None:
    random = np.random.default_rng(seed(6))
    boards = [cc.rank(made(draw(random, votes)), interval="sandwich") for votes in (700, 500)]
    change = cc.board_changes(*boards, shared="none")
    covariances = [board.covariance() for board in boards]
    squares = [dict(zip(one.items, np.diag(one.matrix).tolist(), strict=True)) for one in covariances]
    for row in change.table.to_pylist():
        assert np.isclose(row["standard_error"], np.sqrt(sum(one[row["item"]] for one in squares)), rtol=2e-3)
    for row in change.table.to_pylist():
        assert row["p_value"] <= row["p_max_t"] <= min(1, 6 * row["p_value"]) + 1e-12
        assert np.isclose(row["upper"] - row["lower"], 2 * 1.959964 * row["standard_error"])
        assert np.isclose(row["p_holm"], 1) or row["p_holm"] >= row["p_value"]


def test_equal_boards_have_not_changed() -> None:
    votes = made(draw(np.random.default_rng(seed(7)), 300))
    change = cc.board_changes(cc.rank(votes), cc.rank(votes))
    assert change.shared == 300 and "both boards hold the same 300 judgments" in str(change)
    assert change.table["p_value"].to_pylist() == [1.0] * 6
    assert np.allclose(change.table["difference"], 0) and np.allclose(change.table["standard_error"], 0)


def test_overlap_is_told() -> None:
    random = np.random.default_rng(seed(8))
    parts = [made(draw(random, votes)) for votes in (300, 300, 300)]
    old, new = cc.rank(parts[0] + parts[1]), cc.rank(parts[1] + parts[2])
    usual, common = cc.board_changes(old, new), cc.board_changes(old, new, shared="common")
    assert usual.shared == 0 and common.shared >= 300
    assert "look alike" in str(usual) and "taken for the same" in str(common)
    assert max(common.table["standard_error"].to_pylist()) < min(usual.table["standard_error"].to_pylist())
    less = made({name: values[:20] for name, values in draw(random, 20).items()})
    shrunk = cc.board_changes(cc.rank(parts[0] + less), cc.rank(parts[0]))
    assert shrunk.shared == 300 and "the old board holds" in str(shrunk)
    divided = cc.board_changes(cc.rank(parts[0] + parts[1]), cc.rank(parts[0]), shared="clusters")
    assert divided.shared == 0 and "look alike" not in str(divided)  # two parts of one log


def test_a_small_log_that_seems_to_lie_in_a_large_one_is_another() -> None:
    """Few kinds of judgments, many more of each: so chance would have it. Nothing changed, and as often it is said."""
    random, items, moved = np.random.default_rng(seed(10)), np.array(["a", "b", "c"]), 0
    for turn in range(60):
        boards, logs = [], []
        for votes in (150, 600):
            pair = random.integers(0, 3, votes)
            winner, loser = items[pair], items[(pair + 1) % 3]
            flip = random.random(votes) < 0.45
            logs.append(cc.Preferences.from_comparisons(np.where(flip, loser, winner), np.where(flip, winner, loser)))
            boards.append(cc.rank(logs[-1]))
        change = cc.board_changes(*boards, seed=turn)
        assert change.shared == 0 and "but so would others; if the log grew: shared='common'" in str(change)
        moved += min(change.table["p_max_t"].to_pylist()) < 0.05
        grown = cc.board_changes(boards[1], cc.rank(logs[1] + logs[0].select(logs[0].queries.tolist())))
        assert grown.shared == 0  # half as many again tell nothing either
    assert moved <= 9  # of 60, 3 on average: fewer than 1 in 500 seeds has more


def test_a_log_that_grew_a_little_is_known_by_its_counts() -> None:
    random = np.random.default_rng(seed(11))
    votes, more = (draw(random, number) for number in (2000, 60))
    old, new = cc.rank(made(votes)), cc.rank(made(joined(votes, more)))
    assert cc.board_changes(old, new).shared == 2000
    assert cc.board_changes(old, cc.rank(made(draw(random, 2060)))).shared == 0


def test_judgments_that_are_known_to_be_in_both() -> None:
    """Where each judgment has a judge of its own, equal ones on both boards, the sandwich needs not be told of any."""
    random = np.random.default_rng(seed(9))
    drawn = [draw(random, votes) for votes in (300, 250, 200)]
    parts = [made(one) for one in drawn]
    old, new = (cc.rank(parts[at] + parts[at + 1], interval="sandwich") for at in (0, 1))
    known = cc.board_changes(old, new, shared=parts[1])
    assert known.shared == 250 and "both boards hold 250 judgments: they are counted once" in str(known)
    ends = np.cumsum([0, 300, 250, 200])
    named = [made(one | {"cluster": np.arange(*ends[at : at + 2])}) for at, one in enumerate(drawn)]
    alone = cc.board_changes(*(cc.rank(named[at] + named[at + 1]) for at in (0, 1)))
    units = np.array([750, 450])
    factor = np.sqrt(np.divide(*(units / (units - 1))))
    errors = [sorted(one.table["standard_error"].to_pylist()) for one in (known, alone)]
    np.testing.assert_allclose(np.divide(*errors), factor, rtol=1e-9)
    told = cc.board_changes(old, new, shared="common")
    assert min(told.table["standard_error"].to_pylist()) < 0.9 * min(errors[0])  # equal judgments are not the same ones


def test_what_both_hold_is_read_as_they_were() -> None:
    votes = made(draw(np.random.default_rng(seed(3)), 90))
    named = cc.Preferences.from_comparisons(["s0", "s1"], ["s1", "s0"], cluster=["x", "y"])
    board = cc.rank(votes)
    with pytest.raises(cc.UsageError, match="has other clusters or covariates than they have"):
        cc.board_changes(board, board, shared=named)
    with pytest.raises(cc.UsageError, match="shared must be comparisons, not Preferences"):
        cc.board_changes(board, board, shared=cc.read({"judgment": [1, 1], "item": ["s0", "s1"], "rank": [1, 2]}))
    assert cc.board_changes(board, board, shared=cc.Preferences.empty()).shared == 0


def test_judges_of_both_boards_depend() -> None:
    random = np.random.default_rng(seed(9))
    opinions = random.normal(0, 1.5, (25, len(NAMES)))
    old, new = (cc.rank(made(draw(random, 900, opinions))) for _ in range(2))
    same, others = cc.board_changes(old, new), cc.board_changes(old, new, shared="none")
    assert max(same.table["standard_error"].to_pylist()) < 0.8 * min(others.table["standard_error"].to_pylist())


def own_score(wins: dict[str, float], losses: dict[str, float], scores: dict[str, float], prior: float = 0.01) -> float:
    """The score of an item against fixed opponents, by bisection; scores as the prior has them."""

    def slope(s: float) -> float:
        pairs = [(other, wins.get(other, 0), losses.get(other, 0)) for other in {*wins, *losses}]
        return sum(w - (w + x) * expit(s - scores[other]) for other, w, x in pairs) - prior * s

    return float(brentq(slope, -60, 60, xtol=1e-13))


def test_steps_are_solutions_of_the_own_equation_and_add_up() -> None:
    first = [("a", "b", 30), ("b", "a", 20), ("b", "c", 25), ("c", "b", 25), ("a", "c", 30), ("c", "a", 15)]
    second = [*first, ("a", "b", 5), ("b", "a", 20), ("d", "a", 12), ("a", "d", 6), ("c", "d", 7), ("d", "c", 9)]

    def board(rows: list[tuple[str, str, int]]) -> cc.Ranking:
        winner, loser, count = zip(*rows, strict=True)
        return cc.rank(cc.Preferences.from_comparisons(winner, loser, count=count))

    old, new = board(first), board(second)
    change = cc.board_changes(old, new)
    table = {row["item"]: row for row in change.table.to_pylist()}
    raw_old, raw_new = (dict(zip(b.to_arrow()["item"].to_pylist(), b.score.tolist(), strict=True)) for b in (old, new))
    raw_new = {item: score - np.mean([*raw_new.values()]) for item, score in raw_new.items()}
    common = np.mean([raw_new[item] for item in "abc"])
    wins, losses = {"b": 35.0, "c": 30.0}, {"b": 40.0, "c": 15.0}
    own = own_score(wins, losses, raw_old)
    assert np.isclose(table["a"]["own_votes"], own - raw_old["a"], atol=1e-8)
    moved = own_score(wins, losses, raw_new)
    assert np.isclose(table["a"]["opponents"], (moved - common) - own, atol=1e-8)
    assert np.isclose(table["a"]["new_opponents"], raw_new["a"] - moved, atol=1e-7)
    for item in "abc":
        row = table[item]
        assert np.isclose(row["own_votes"] + row["opponents"] + row["new_opponents"], row["difference"], atol=1e-8)
    assert abs(table["c"]["own_votes"]) < 1e-12  # it has no new votes but against d
    assert table["d"]["old"] is None and table["d"]["own_votes"] is None and "1 item entered: 'd'" in str(change)


def test_new_judges_are_a_step_of_their_own() -> None:
    random = np.random.default_rng(seed(10))
    first = draw(random, 300) | {"cluster": np.arange(300) % 20}
    second = draw(random, 200) | {"cluster": 15 + np.arange(200) % 20}
    change = cc.board_changes(cc.rank(made(first)), cc.rank(made(joined(first, second))))
    for row in change.table.to_pylist():
        assert row["new_clusters"] != 0
        steps = (row[name] for name in ("own_votes", "new_clusters", "opponents", "new_opponents"))
        assert np.isclose(sum(steps), row["difference"], atol=1e-8)
    known = cc.board_changes(
        cc.rank(made(first)), cc.rank(made(joined(first, second | {"cluster": first["cluster"][:200]})))
    )
    assert known.table["new_clusters"].to_pylist() == [0.0] * 6


def test_worse() -> None:
    old = cc.Preferences.from_comparisons(list("abac"), list("baca"), count=[60, 40, 60, 40])
    new = old + cc.Preferences.from_comparisons(list("ab"), list("ba"), count=[10, 60])
    change = cc.board_changes(cc.rank(old), cc.rank(new))
    found = change.worse(["a", "b"])
    p = [row["p_value"] for row, _, _ in found]
    assert np.isclose(found[int(np.argmin(p))][1], min(1, 2 * min(p)))
    assert [one for _, _, one in found] == [True, False]  # b is surely better
    with pytest.raises(ConcordantError, match="not on both boards"):
        change.worse(["x"])


def test_divided() -> None:
    votes = cc.Preferences.from_comparisons(
        list("aabb"), list("bcca"), cluster={"judge": list("uuvv"), "day": [1, 2, 1, 2]}
    )
    part = divided(votes, "day", "1".__eq__, ("judge",))
    assert part.clusters is not None and part.clusters.tolist() == ["u", "v"] and len(part) == 2
    plain: Any = divided(votes, "day", "2".__eq__)
    assert plain.clusters is None and len(plain) == 2
    assert len(divided(votes, "day", "9".__eq__)) == 0


@pytest.mark.parametrize(
    ("old", "new", "more", "said"),
    [
        ({}, {"structure": "borda"}, {}, "by a likelihood"),
        ({}, {"interval": "none"}, {}, "ranked without intervals"),
        ({}, {"prior": 1.0}, {}, "ranked in different ways"),
        ({}, {"interval": "bootstrap"}, {}, "by its curvature"),
        ({}, {}, {"shared": "some"}, "shared must be one of"),
    ],
)
def test_wrong_boards(old: dict[str, Any], new: dict[str, Any], more: dict[str, Any], said: str) -> None:
    votes = cc.Preferences.from_comparisons(list("abac"), list("baca"), count=[60, 40, 60, 40])
    with pytest.raises(ConcordantError, match=said):
        cc.board_changes(cc.rank(votes, **old), cc.rank(votes, **new), **more)


def test_boards_that_do_not_fit() -> None:
    votes = cc.Preferences.from_comparisons(list("abac"), list("baca"), count=[60, 40, 60, 40])
    board = cc.rank(votes)
    clustered = cc.rank(cc.Preferences.from_comparisons(list("abab"), list("baba"), cluster=list("uvwx")))
    others = cc.rank(cc.Preferences.from_comparisons(list("xyxz"), list("yxzx")))
    for wrong, said in (
        (clustered, "the other has none"),
        (others, "no item is on both boards"),
        (cc.rank(cc.Preferences.from_comparisons(["a"], ["b"], tie=[True], count=[9])), "the new board has ties alone"),
        ("x", "must be a Ranking"),
    ):
        with pytest.raises(ConcordantError, match=said):
            cc.board_changes(board, wrong)  # type: ignore[arg-type]
    orders = cc.rank(cc.Preferences.from_orders(["p"] * 2, [1, 1], ["a", "b"], [1, 2]), "plackett-luce")
    with pytest.raises(ConcordantError, match="of orders"):
        cc.board_changes(orders, orders)
    two = cc.rank(cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["p", "q"]))
    with pytest.raises(ConcordantError, match="the old board ranks 2 queries; boards are compared as wholes"):
        cc.board_changes(two, two)


def test_kinds_of_judgments_are_numbered_as_whole_rows_are() -> None:
    rows = np.random.default_rng(0).integers(0, 4, (500, 5)).astype(np.float64)
    rows[:, 3] = 1.0
    assert (_kinds(rows) == np.unique(rows, axis=0, return_inverse=True)[1].ravel()).all()
    assert len(_kinds(rows[:0])) == 0
