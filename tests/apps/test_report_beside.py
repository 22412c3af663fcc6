"""Rankings beside each other in a report: periods, groups of those who judged, people and judge models."""

from __future__ import annotations

import numpy as np
import pytest

import concordant as cc
from concordant.apps.report.over_time import PERIODS, periods_of
from seeds import seed


def drawn(random: np.random.Generator, votes: int, ability: np.ndarray) -> tuple[list[str], list[str]]:
    a = random.integers(0, len(ability), votes)
    b = (a + random.integers(1, len(ability), votes)) % len(ability)
    wins = random.random(votes) < 1 / (1 + np.exp(ability[b] - ability[a]))
    return [f"m{x}" for x in np.where(wins, a, b)], [f"m{x}" for x in np.where(wins, b, a)]


def test_ranks_at_the_end_of_each_period_are_those_of_paths() -> None:
    random = np.random.default_rng(seed(0))
    winner, loser = drawn(random, 300, np.array([1.0, 0.5, 0.0, -1.0]))
    days = np.sort(random.integers(0, 900, 300))
    gone = (days > 300) & np.isin(winner, ["m3"]) | (days > 300) & np.isin(loser, ["m3"])
    kept = np.flatnonzero(~gone)
    when = [str(np.datetime64("2020-01-01") + days[at]) for at in kept]
    prefs = cc.Preferences.from_comparisons([winner[at] for at in kept], [loser[at] for at in kept], time=when)
    found = cc.report(prefs, audit=False).data["paths"]["periods"]
    assert found["labels"] == ["2020-01", "2020-04", "2020-07", "2020-10", "2021-01", "2021-04", "2021-07", "2021-10",
                               "2022-01", "2022-04"]  # fmt: skip
    paths = cc.rank_over_time(prefs)
    early = {row["item"]: row for row in paths.at("2020-03-31T23:59:59").to_arrow().to_pylist()}
    for item, cell in zip(found["items"], found["ranks"][0], strict=True):
        assert cell == [early[item][name] for name in ("rank", "rank_lower", "rank_upper")]
    assert "m3" not in found["items"]  # not judged for a quarter of the time
    whole = [row["item"] for row in paths.at().to_arrow().to_pylist() if row["item"] != "m3"]
    assert found["items"] == whole and [cell[0] for cell in found["ranks"][-1]] == [1, 2, 3]


@pytest.mark.parametrize("dated", [True, False])
def test_periods_cover_all_times_and_are_a_dozen_at_most(dated: bool) -> None:
    random = np.random.default_rng(seed(1))
    for _ in range(300):
        first = float(random.integers(-100_000, 30_000)) + (0.0 if random.random() < 0.5 else float(random.random()))
        last = first + float(10 ** random.uniform(-3, 5))
        begun, names = periods_of(first, last, dated)
        assert 1 <= len(begun) == len(names) <= PERIODS + 1
        assert begun[0] <= first and begun[-1] <= last and (np.diff(begun) > 0).all()
        assert len({*names}) == len(names)


def test_each_group_ranks_by_its_own_votes_alone() -> None:
    random = np.random.default_rng(seed(2))
    people, model = (drawn(random, 400, np.array(ability)) for ability in ([1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]))
    few = (["m0", "m1"], ["m1", "m2"])
    sides = [[*people[at], *model[at], *few[at]] for at in (0, 1)]
    who = ["people"] * 400 + ["model"] * 400 + ["late"] * 2
    found = cc.report(cc.Preferences.from_comparisons(*sides, cluster=who), audit=False).data["annotators"]["ranks"]
    assert sorted(found["groups"]) == ["model", "people"]  # two votes are no ranking
    for name, votes in (("people", people), ("model", model)):
        board = {row["item"]: row for row in cc.rank(cc.Preferences.from_comparisons(*votes)).to_arrow().to_pylist()}
        cells = dict(zip(found["items"], found["ranks"][found["groups"].index(name)], strict=True))
        names = ("rank", "rank_lower", "rank_upper", "judgments")
        assert cells == {item: [row[name] for name in names] for item, row in board.items()}
    assert [cells[item][0] for item in ("m2", "m1", "m0")] == [1, 2, 3]


def test_people_beside_a_judge_model() -> None:
    random = np.random.default_rng(seed(3))
    judge = drawn(random, 600, np.array([1.0, 0.0, -1.0]))
    said = cc.Preferences.from_comparisons(*judge, cluster=list(range(600)))
    people = cc.Preferences.from_comparisons(judge[0][:200], judge[1][:200], cluster=list(range(200)))
    both = cc.prediction_powered(people, said)
    votes = cc.Preferences.from_comparisons(judge[0][:200], judge[1][:200])
    (found,) = cc.report(votes, audit=False, model_judges={"gpt": both}).data["models"]
    assert found["judge"] == "gpt" and found["said"] == [str(line) for line in (*both.lines(), *both.notes)]
    assert [row["score"] for row in found["rows"]] == both.to_arrow()["score"].to_pylist()
    assert all(row["off"] == (row["bias_lower"] > 0 or row["bias_upper"] < 0) for row in found["rows"])


def test_what_declining_cannot_change_is_no_section() -> None:
    always = cc.Preferences.from_comparisons(["a"] * 30 + ["b"] * 30, ["b"] * 30 + ["c"] * 30)
    made = cc.report(always, audit=False).data
    assert made["coverage"] is None
    why = "no judgment that was held out contradicts the order, so that there is nothing to leave open"
    assert made["absent"]["coverage"] == why
    level = cc.Preferences.from_comparisons(["a"] * 30, ["b"] * 30, tie=[True] * 30)
    assert cc.report(level, audit=False).data["absent"]["coverage"].startswith("50% of what is ordered is wrong")
    assert ["On no pair is one item preferred to the other, on balance."] in cc.report(level).data["in_short"]
