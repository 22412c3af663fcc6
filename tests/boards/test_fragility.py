"""The fewest votes that change an answer: every choice of small logs is tried, what was found is ranked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concordant as cc
from concordant.boards.refits import votes_of
from concordant.errors import ConcordantError, InputError
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry
from seeds import seed

LLMFAO = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"
ARENA = Path(__file__).parents[3] / "shared" / "data" / "arena_judges" / "human.jsonl.gz"
Vote = tuple[int, int, bool]


def scores_of(logs: list[tuple[Vote, ...]], items: int) -> np.ndarray:
    """Scores of many logs by the library's own batch, an item without votes where the prior has it."""
    out = np.zeros((len(logs), items))
    rows = [(number, *vote) for number, log in enumerate(logs) for vote in log]
    if rows:
        query, winner, loser, tie = zip(*rows, strict=True)
        prefs = cc.Preferences.from_comparisons(winner, loser, query=query, tie=tie)
        batch = Batch.whole(prefs)
        place = np.array(prefs.queries.tolist())[batch.query[batch.owner]], np.array(prefs.items.tolist())[batch.item]
        out[place] = bradley_terry(batch).value
    return out


def drawn_log(random: np.random.Generator) -> list[Vote]:
    items, votes = int(random.integers(3, 5)), int(random.integers(8, 14))
    ability = random.normal(0, 1, items)
    rows: list[Vote] = []
    for _ in range(votes):
        a, b = (int(one) for one in random.choice(items, 2, replace=False))
        if random.random() < 0.15:
            rows.append((min(a, b), max(a, b), True))
        else:
            rows.append((a, b, False) if random.random() < 1 / (1 + np.exp(ability[b] - ability[a])) else (b, a, False))
    return rows


def after(votes: list[Vote], items: int, change: str, m: int) -> Iterator[tuple[Vote, ...]]:
    """All logs after m votes of this one were changed."""
    if change == "added":
        new = [(a, b, False) for a in range(items) for b in range(items) if a != b]
        yield from (tuple(sorted([*votes, *more])) for more in combinations_with_replacement(new, m))
        return
    for chosen in combinations(range(len(votes)), m):
        if change == "removed":
            yield tuple(sorted(vote for place, vote in enumerate(votes) if place not in chosen))
        else:
            turned = [(b, a, tie) if at in chosen and not tie else (a, b, tie) for at, (a, b, tie) in enumerate(votes)]
            yield tuple(sorted(turned))


def test_every_choice_of_small_logs() -> None:
    random = np.random.default_rng(seed(0))
    numbers: Counter[int] = Counter()
    done = 0
    while done < 60:
        votes = drawn_log(random)
        items = 1 + max(max(a, b) for a, b, _ in votes)
        winner, loser, tie = zip(*votes, strict=True)
        prefs = cc.Preferences.from_comparisons(winner, loser, tie=tie)
        board = cc.rank(prefs)
        own = board.items.take(board.item[(board.component == 1) & (board.rank > 0)]).to_pylist()
        if len(own) < 2:
            with pytest.raises(InputError, match="no place to lose"):
                cc.fragility(prefs)
            continue
        done += 1
        full = scores_of([tuple(votes)], items)[0]
        own = sorted(own, key=(-full).__getitem__)
        top = 1 if len(own) < 3 else int(random.integers(1, 3))
        for row in cc.fragility(prefs, top=top).table.to_pylist()[:3]:
            for m in range(len(votes) + 1):
                scores = scores_of(list(set(after(votes, items, row["change"], m))), items)
                if (scores[:, own[:top]].min(axis=1) - scores[:, own[top:]].max(axis=1) <= 1e-7).any():
                    break
            assert (row["fewest"], row["at_least"]) == (m, m), (votes, row)
            numbers[m] += 1
    assert max(numbers) >= 4


def test_small_logs_by_cluster_and_item() -> None:
    random = np.random.default_rng(seed(3))
    tried = 0
    while tried < 8:
        votes = drawn_log(random) + drawn_log(random)
        who = random.integers(0, 6, len(votes))
        items = 1 + max(max(a, b) for a, b, _ in votes)
        winner, loser, tie = zip(*votes, strict=True)
        prefs = cc.Preferences.from_comparisons(winner, loser, tie=tie, cluster=who)
        try:
            found = cc.fragility(prefs)
        except InputError:
            continue
        tried += 1
        rows = {(row["unit"], row["change"]): row for row in found.table.to_pylist()}
        scores = scores_of([tuple(votes)], items)[0]
        board = cc.rank(prefs)
        own = board.items.take(board.item[(board.component == 1) & (board.rank > 0)]).to_pylist()
        first, *rest = sorted(own, key=(-scores).__getitem__)

        def changes(
            logs: list[tuple[Vote, ...]], first: int = first, rest: list[int] = rest, items: int = items
        ) -> Any:
            scores = scores_of(logs, items)
            return scores[:, first] - scores[:, rest].max(axis=1) <= 1e-7

        for change in ("removed", "flipped"):
            judges = np.unique(who)
            for m in range(len(judges) + 1):
                logs = []
                for chosen in combinations(judges.tolist(), m):
                    gone = np.isin(who, chosen)
                    log = [(b, a, t) if gone[at] and not t else (a, b, t) for at, (a, b, t) in enumerate(votes)]
                    logs.append(tuple(vote for at, vote in enumerate(log) if change == "flipped" or not gone[at]))
                if changes(logs).any():
                    break
            assert rows["clusters", change]["fewest"] == rows["clusters", change]["at_least"] == m
        best = None
        for m in range(items - 1):
            for chosen in combinations([item for item in range(items) if item != first], m):
                log = tuple(vote for vote in votes if vote[0] not in chosen and vote[1] not in chosen)
                left = [item for item in rest if item not in chosen]
                if left and changes([log], rest=left)[0]:
                    best = m if best is None else best
        assert rows["items", "removed"]["fewest"] == best


def taken(prefs: cc.Preferences, rows: list[dict[str, Any]]) -> cc.Preferences:
    """The judgments without those of a witness, of one change."""
    columns: Any = prefs
    count = columns.count.astype(np.int64).copy()
    name = prefs.items.tolist()
    for row in rows:
        winner, loser = name.index(row["winner"]), name.index(row["loser"])
        tie = np.zeros(len(count), bool) if columns.tie is None else columns.tie
        same = np.flatnonzero((columns.winner == winner) & (columns.loser == loser) & (tie == row["tie"]))
        left = row["times"]
        for place in same:
            here = min(left, int(count[place]))
            count[place], left = count[place] - here, left - here
        assert left == 0
    kept = np.flatnonzero(count)
    labels = prefs.items
    more = [row for row in rows if row["change"] == "flipped"]
    flags = np.zeros(len(kept), bool) if columns.tie is None else columns.tie[kept]
    return cc.Preferences.from_comparisons(
        [*labels.take(columns.winner[kept]).to_pylist(), *(row["loser"] for row in more)],
        [*labels.take(columns.loser[kept]).to_pylist(), *(row["winner"] for row in more)],
        tie=[*flags.tolist(), *(row["tie"] for row in more)],
        count=[*count[kept].tolist(), *(row["times"] for row in more)],
    )


def order(prefs: cc.Preferences) -> list[str]:
    return cc.rank(prefs).to_arrow()["item"].to_pylist()


def check_witnesses(prefs: cc.Preferences, found: cc.Fragility, first: str) -> None:
    """Rank again without what was found: the first is another, or level; and it was not, one earlier."""
    for change in ("removed", "flipped"):
        rows = [row for row in found.witness.to_pylist() if row["unit"] == "judgments" and row["change"] == change]
        fewest = next(row["fewest"] for row in found.table.to_pylist() if row["change"] == change)
        assert sum(row["times"] for row in rows) == fewest
        board = cc.rank(taken(prefs, rows)).to_arrow()
        place = board["item"].to_pylist().index(first)
        assert place > 0 or board["score"][1].as_py() >= board["score"][0].as_py() - 1e-7
        rows[0]["times"] -= 1
        assert order(taken(prefs, rows))[0] == first


def test_llmfao_is_found_and_bounded() -> None:
    judged: Any = cc.read(LLMFAO, cluster="worker")
    found = cc.fragility(judged)
    assert found.question == "the first place of GPT 4"
    for row in found.table.to_pylist():
        assert row["fewest"] <= 2 * row["at_least"], row
    check_witnesses(cc.read(LLMFAO), found, "GPT 4")
    rows = [row for row in found.witness.to_pylist() if row["unit"] == "clusters" and row["change"] == "removed"]
    who = np.array([str(label) for label in judged.clusters.tolist()])[judged.cluster]
    left = np.flatnonzero(~np.isin(who, [row["label"] for row in rows]))
    kept = cc.Preferences.from_comparisons(
        judged.items.take(judged.winner[left]).to_pylist(), judged.items.take(judged.loser[left]).to_pylist(),
        tie=judged.tie[left], count=judged.count[left],
    )  # fmt: skip
    assert order(kept)[0] != "GPT 4"


@pytest.mark.skipif(not ARENA.exists(), reason="needs ../shared/data/arena_judges")
def test_arena_is_found_and_bounded() -> None:
    votes = cc.read(ARENA).pool()
    found = cc.fragility(votes)
    for row in found.table.to_pylist()[:3]:
        assert row["fewest"] <= 2 * row["at_least"], row
    check_witnesses(votes, found, "gpt-4")


@pytest.mark.parametrize("change", ["removed", "flipped"])
def test_no_choice_of_the_proven_number_gets_through(change: str) -> None:
    """Choices that look good (by influence, perturbed) and random ones."""
    random = np.random.default_rng(seed(1))
    items = 8
    ability = np.append(1.2, np.linspace(0.7, -0.8, items - 1))
    a = random.integers(0, items, 900)
    b = (a + random.integers(1, items, 900)) % items
    wins = random.random(900) < 1 / (1 + np.exp(ability[b] - ability[a]))
    prefs = cc.Preferences.from_comparisons(np.where(wins, a, b), np.where(wins, b, a))
    row = next(row for row in cc.fragility(prefs).table.to_pylist() if row["change"] == change)
    assert row["at_least"] > 5
    first, second = row["ahead"], row["behind"]
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    for _ in range(30):
        chance = 1.0 * (winner == first) + (loser == second) + random.random(900)
        chosen = np.argsort(-chance)[: row["at_least"] - 1]
        log = [
            *((int(w), int(x), False) for at, (w, x) in enumerate(zip(winner, loser, strict=True)) if at not in chosen),
            *((int(loser[at]), int(winner[at]), False) for at in chosen if change == "flipped"),
        ]
        scores = scores_of([tuple(log)], items)[0]
        assert scores.argmax() == first


def test_boxes_of_items_are_wider_and_hold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = cc.read(LLMFAO)
    usual = cc.fragility(votes).table.to_pylist()[0]["at_least"]
    monkeypatch.setattr("concordant.boards.reach.WIDEST", 0)
    assert 2 <= cc.fragility(votes).table.to_pylist()[0]["at_least"] <= usual


def test_refits_are_those_of_rank() -> None:
    prefs = cc.read(LLMFAO)
    batch = Batch.whole(prefs)
    for whole in (False, True):
        votes = votes_of(batch, 0.01, whole)
        scores = votes.fit(votes.wins[None], votes.total[None])[0]
        assert np.abs(scores - bradley_terry(batch).value).max() < 1e-7
        assert np.abs(votes.gradient(scores[None], votes.wins, votes.total)).max() < 1e-7


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"top": 0}, "top must be an integer of at least 1"),
        ({"top": 3}, "top must be below the 3 items that have a rank, not 3"),
        ({"pair": ("a", "x")}, "'x' is no item with a rank in this log"),
        ({"pair": ("a", "a")}, "'a' is compared with itself"),
        ({"prior": 0}, "prior must be above 0"),
        ({"prior": -1}, "prior"),
    ],
)
def test_wrong_options(wrong: dict[str, Any], said: str) -> None:
    votes = cc.Preferences.from_comparisons(list("aaabbc"), list("bccaca"), count=[30, 25, 3, 24, 20, 4])
    with pytest.raises(ConcordantError, match=said):
        cc.fragility(votes, **wrong)


def test_wrong_logs() -> None:
    with pytest.raises(ConcordantError, match="one query, not of 2"):
        cc.fragility(cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["p", "q"]))
    with pytest.raises(ConcordantError, match="comparisons, not of orders"):
        cc.fragility(cc.Preferences.from_orders(["p"] * 2, [1, 1], ["a", "b"], [1, 2]))
    with pytest.raises(ConcordantError, match="takes Preferences"):
        cc.fragility("votes.csv")  # type: ignore[arg-type]
    with pytest.raises(ConcordantError, match="covariates"):
        cc.fragility(cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], covariates={"x": [1.0, 2.0]}))


def test_level_already() -> None:
    votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[9, 9])
    assert set(cc.fragility(votes).table["fewest"].to_pylist()) == {0}
