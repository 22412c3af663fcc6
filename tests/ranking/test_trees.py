"""Trees over judges against formulas by hand, R's published example, and laws."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, multivariate_normal

import concordant as cc
from concordant.ranking import instability, partitioning
from concordant.ranking.instability import supremum_tail
from conftest import shared_data
from seeds import seed

ITEMS = np.array(["a", "b", "c", "d"])


def votes(judges: int = 90, turn: float = 1.5, draw: int = 0) -> dict[str, Any]:
    """Judgments of four items by judges of two properties; those above 50 turn the order round."""
    random = np.random.default_rng([seed(0), draw])
    size = random.integers(3, 12, judges)
    age, country = random.integers(20, 80, judges), random.choice(["at", "de", "fr"], judges)
    judge = np.repeat(np.arange(judges), size)
    first = random.integers(4, size=len(judge))
    second = (first + random.integers(1, 4, size=len(judge))) % 4
    ability = np.array([1.0, 0.4, -0.2, -0.8]) * np.where(age > 50, 1 - turn, 1.0)[:, None]
    won = random.random(len(judge)) < 1 / (1 + np.exp(ability[judge, second] - ability[judge, first]))
    return {
        "winner": np.where(won, first, second),
        "loser": np.where(won, second, first),
        "judge": judge,
        "age": age[judge],
        "country": country[judge],
    }


def preferences(data: dict[str, Any], *columns: str, names: Any = ITEMS) -> cc.Preferences:
    who = {name: np.asarray(data[name]) for name in columns}
    return cc.Preferences.from_comparisons(names[data["winner"]], names[data["loser"]], cluster=who)


def log_likelihood(theta: Any, winner: Any, loser: Any) -> float:
    return float(-np.log1p(np.exp(theta[loser] - theta[winner])).sum())


def fitted(winner: Any, loser: Any) -> Any:
    """Maximum likelihood of four items, the first at 0, by a general minimiser."""

    def loss(theta: Any) -> float:
        return -log_likelihood(np.concatenate([[0.0], theta]), winner, loser)

    return np.concatenate([[0.0], minimize(loss, np.zeros(3), tol=1e-12, options={"gtol": 1e-8}).x])


def contributions(theta: Any, data: dict[str, Any]) -> Any:
    """Gradients of each judge's log-likelihood by differences, of the last three items."""
    judges, step = np.unique(data["judge"]), 1e-5
    out = np.zeros((len(judges), 3))
    for row, judge in enumerate(judges):
        own = data["judge"] == judge
        for item in (1, 2, 3):
            up, down = theta.copy(), theta.copy()
            up[item] += step
            down[item] -= step
            ends = [log_likelihood(end, data["winner"][own], data["loser"][own]) for end in (up, down)]
            out[row, item - 1] = (ends[0] - ends[1]) / (2 * step)
    return out


def test_statistics_and_cut_are_those_of_the_formula() -> None:
    data = votes()
    tree = cc.ranking_tree(preferences(data, "judge", "age", "country"), ["age", "country"], max_depth=1)
    age, country = tree.groups[0].tests
    theta = fitted(data["winner"], data["loser"])
    psi = contributions(theta, data)
    inverse = np.linalg.inv(psi.T @ psi)
    judges = np.arange(len(psi))
    ages = np.array([data["age"][data["judge"] == judge][0] for judge in judges])
    countries = np.array([data["country"][data["judge"] == judge][0] for judge in judges])
    size = np.bincount(data["judge"])
    found = []
    for cut in np.unique(ages)[:-1]:
        share = size[ages <= cut].sum() / size.sum()
        if 0.1 <= share <= 0.9:
            total = psi[ages <= cut].sum(axis=0)
            found.append(total @ inverse @ total / (share * (1 - share)))
    assert age.statistic == pytest.approx(max(found), rel=1e-4)
    by_name = 0.0
    for name in np.unique(countries):
        total = psi[countries == name].sum(axis=0)
        by_name += total @ inverse @ total / (size[countries == name].sum() / size.sum())
    assert country.statistic == pytest.approx(by_name, rel=1e-4)
    assert country.df == 6 and country.p_value == pytest.approx(chi2.sf(by_name, 6), rel=1e-3)
    assert age.units == country.units == 90 and age.law == "many units"
    assert age.p_adjusted == pytest.approx(2 * age.p_value)
    best = None
    for cut in np.unique(ages)[:-1]:
        low = data["age"] <= cut
        if min(low.sum(), (~low).sum()) >= 40:
            total = sum(
                log_likelihood(
                    fitted(data["winner"][side], data["loser"][side]), data["winner"][side], data["loser"][side]
                )
                for side in (low, ~low)
            )
            best = max(best or (-np.inf, 0), (total, cut))
    assert best is not None and [leaf.named for leaf in tree.leaves] == [f"age ≤ {best[1]}", f"age > {best[1]}"]


def test_law_of_the_largest() -> None:
    """One cut: χ². Two cuts of one dimension: the probability of a rectangle. Five dimensions: drawn bridges."""
    assert supremum_tail(7.0, np.array([0.3]), 4) == pytest.approx(chi2.sf(7.0, 4))
    share, bound = np.array([0.2, 0.6]), 4.0
    rho = np.sqrt(0.2 * 0.4 / (0.8 * 0.6))
    normal = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    inside = normal.cdf([2, 2], lower_limit=[-2, -2])
    assert supremum_tail(bound, share, 1) == pytest.approx(1 - inside, abs=1e-6)
    random = np.random.default_rng(seed(0))
    share = np.linspace(0.1, 0.9, 17)
    steps = random.standard_normal((20_000, 18, 5)) * np.sqrt(np.diff(share, prepend=0, append=1))[:, None]
    walk = np.cumsum(steps, axis=1)
    bridge = walk[:, :-1] - share[:, None] * walk[:, -1:]
    largest = ((bridge**2).sum(axis=2) / (share * (1 - share))).max(axis=1)
    for bound in (10.0, 16.0, 20.0):
        assert supremum_tail(bound, share, 5) == pytest.approx((largest >= bound).mean(), abs=0.008)
    assert supremum_tail(120.0, share, 5) < 1e-20


def test_students_of_cems() -> None:
    """R's psychotree, example of bttree: groups, their numbers, and worths, with Davidson's ties."""
    import pandas as pd

    folder = shared_data("r_classics")
    rows = pd.read_csv(folder / "BradleyTerry2.CEMS.preferences.csv").dropna(subset=["win1", "win2", "tied"])
    students = pd.read_csv(folder / "BradleyTerry2.CEMS.students.csv")
    who = students.iloc[rows["student"].astype(int).to_numpy() - 1]
    rows["winner"] = np.select([rows["win1"] == 1, rows["win2"] == 1], ["left", "right"], "tie")
    names = {"FRA": "french", "SPA": "spanish", "ITA": "italian", "STUD": "study", "WOR": "work", "SEX": "gender"}
    names["DEG"] = "degree"
    table = {"left": rows["school1"], "right": rows["school2"], "winner": rows["winner"]}
    table |= {said: who[name].to_numpy() for name, said in names.items()}
    table["student"] = rows["student"].astype(int)
    by = list(names.values())
    prefs = cc.read({name: list(column) for name, column in table.items()}, cluster=["student", *by])
    tree = cc.ranking_tree(prefs, by, min_judgments=75, ties="davidson", prior=1e-6, interval="none")
    printed = {
        3: ("italian is good and spanish is good", [0.2083, 0.12682, 0.15936, 0.06905, 0.42506, 0.01135]),
        4: ("italian is good and spanish is poor", [0.4315, 0.08630, 0.34017, 0.05205, 0.06060, 0.02939]),
        7: (
            "italian is poor and french is good and study is commerce",
            [0.3325, 0.42215, 0.05478, 0.06144, 0.09252, 0.03656],
        ),
        8: (
            "italian is poor and french is good and study is other",
            [0.3989, 0.22586, 0.08578, 0.13480, 0.09108, 0.06360],
        ),
        9: ("italian is poor and french is poor", [0.4104, 0.09624, 0.07697, 0.15767, 0.16424, 0.09451]),
    }
    assert {leaf.number: leaf.named for leaf in tree.leaves} == {number: said for number, (said, _) in printed.items()}
    schools = ["London", "Paris", "Milano", "St.Gallen", "Barcelona", "Stockholm"]
    for number, (_, worth) in printed.items():
        board = tree.ranking(number)
        score = dict(zip(board.items.take(board.item).to_pylist(), board.score.tolist(), strict=True))
        found = np.exp([score[school] for school in schools])
        np.testing.assert_allclose(found / found.sum(), worth, atol=6e-5)


def shape(tree: cc.RankingTree) -> list[Any]:
    return [
        (group.named, group.judgments, [round(test.statistic, 6) for test in group.tests if not test.why])
        for group in tree.groups
    ]


def test_names_and_order_of_rows_do_not_matter() -> None:
    data = votes(draw=1)
    columns = ["judge", "age", "country"]
    tree = cc.ranking_tree(preferences(data, *columns), columns[1:])
    assert len(tree.leaves) > 1
    mixed = np.random.default_rng(seed(0)).permutation(len(data["winner"]))
    turned = {name: column[mixed] for name, column in data.items()}
    turned["judge"] = 1000 - 3 * turned["judge"]
    renamed = np.array(["zoe", "a", "m", "k"])
    other = cc.ranking_tree(preferences(turned, *columns, names=renamed), columns[1:])
    assert shape(other) == shape(tree)
    swapped = {**data, "winner": data["loser"], "loser": data["winner"]}
    assert shape(cc.ranking_tree(preferences(swapped, *columns), columns[1:])) == shape(tree)
    for leaf in tree.leaves:
        there = tree.ranking(leaf.number).to_arrow()["item"].to_pylist()
        said = [renamed[list(ITEMS).index(item)] for item in there]
        assert other.ranking(leaf.number).to_arrow()["item"].to_pylist() == said


def test_items_without_limit_have_no_part() -> None:
    """An item that beats all others, an item judged by some only, an item alone: the statistics are those without."""
    data = votes(draw=2)
    columns = ["judge", "age", "country"]
    names = np.array([*ITEMS, "best", "odd", "alone"])
    more = {name: column.copy() for name, column in data.items()}
    for winner, loser in ((4, 0), (4, 1), (4, 4 - 2), (5, 6)):
        for row in range(0, len(data["winner"]), 5):
            for name in columns:
                more[name] = np.append(more[name], data[name][row])
            more["winner"], more["loser"] = np.append(more["winner"], winner), np.append(more["loser"], loser)
    plain = cc.ranking_tree(preferences(data, *columns), ["age"], max_depth=1, min_judgments=40)
    tree = cc.ranking_tree(preferences(more, *columns, names=names), ["age"], max_depth=1, min_judgments=40)
    assert tree.groups[0].tests[0].df == plain.groups[0].tests[0].df == 3
    assert tree.groups[0].tests[0].statistic == pytest.approx(plain.groups[0].tests[0].statistic, rel=0.1)
    assert [leaf.named for leaf in tree.leaves] == [leaf.named for leaf in plain.leaves]
    only = cc.Preferences.from_comparisons(["a"] * 40, ["b"] * 40, cluster={"x": [1, 2] * 20, "y": [1] * 40})
    found = cc.ranking_tree(only, ["x"])
    assert found.groups[0].tests[0].why == "no score is determined" and "nothing could be tested" in str(found)


def test_what_is_independent() -> None:
    """The first column of clusters in which a property is the same; else each judgment."""
    data = votes(draw=3)
    data["prompt"] = np.arange(len(data["winner"])) % 9
    data["length"] = np.array([10, 40, 20, 70, 30, 90, 15, 25, 60])[data["prompt"]]
    data["hour"] = np.arange(len(data["winner"])) % 24
    prefs = preferences(data, "judge", "prompt", "age", "length", "hour")
    tree = cc.ranking_tree(prefs, ["age", "length", "hour"], max_depth=1)
    said = {test.property: (test.unit, test.units, test.law) for test in tree.groups[0].tests}
    assert said == {
        "age": ("judge", 90, "many units"),
        "length": ("prompt", 9, "permutations"),
        "hour": ("judgment", len(data["winner"]), "many units"),
    }
    assert tree.groups[0].clusters == {"judge": 90, "prompt": 9}
    assert tree.leaves[0].prefs.cluster_columns == ("judge", "prompt")
    again = cc.ranking_tree(prefs, ["age", "length", "hour"], max_depth=1)
    assert shape(again) == shape(tree)
    assert 0.002 < tree.groups[0].tests[1].p_value <= 1


def test_many_names_are_cut_along_one_order() -> None:
    random = np.random.default_rng(seed(0))
    data = votes(judges=300, draw=4)
    towns = np.array([f"town {number}" for number in range(12)])
    old = data["age"] > 50
    data["town"] = towns[np.where(old, 0, 6) + random.integers(6, size=300)[data["judge"]]]
    tree = cc.ranking_tree(preferences(data, "judge", "town"), "town", max_depth=1)
    sides = [set(leaf.values["town"].names or ()) for leaf in tree.leaves]
    assert sides in ([set(towns[:6]), set(towns[6:])], [set(towns[6:]), set(towns[:6])])
    assert "12 values" in tree.notes[-1]
    assert tree.group_of(town="town 3") != tree.group_of(town="town 9")


def test_lists_of_two_are_comparisons() -> None:
    data = votes(draw=5)
    judged = np.repeat(np.arange(len(data["winner"])), 2)
    items = ITEMS[np.column_stack([data["winner"], data["loser"]]).ravel()]
    orders = cc.Preferences.from_orders(
        None, judged, items, [1, 2] * len(data["winner"]), cluster=np.repeat(data["age"], 2)
    )
    tree = cc.ranking_tree(preferences(data, "age"), "age")
    lists = cc.ranking_tree(orders, "age", structure="plackett-luce")
    assert len(tree.leaves) > 1 and tree.groups[0].tests[0].unit == "judgment"
    assert [(one[0], one[1]) for one in shape(lists)] == [(one[0], one[1]) for one in shape(tree)]
    for one, other in zip(shape(lists), shape(tree), strict=True):
        np.testing.assert_allclose(one[2], other[2], rtol=1e-4)


def test_what_a_tree_gives() -> None:
    data = votes(draw=6)
    tree = cc.ranking_tree(preferences(data, "judge", "age", "country"), ["age", "country"], max_depth=1)
    table = tree.to_arrow()
    assert table.column_names[:3] == ["group", "judged_by", "component"] and len(table) == 8
    assert set(table["group"].to_pylist()) == {2, 3}
    tests = tree.tests()
    assert tests["property"].to_pylist()[:2] == ["age", "country"] and tests["group"].to_pylist()[:2] == [1, 1]
    plain = json.loads(json.dumps(tree.to_dict()))
    assert plain["groups"][0]["divided_by"] == "age" and plain["groups"][1]["why"]
    assert str(tree).startswith("the ranking differs by age: 2 groups\ngroup 2, age ≤ ")
    assert tree.group_of(age=20) == 2 and tree.group_of(age="79") == 3 and repr(tree).startswith("RankingTree(2 groups")
    same = cc.ranking_tree(preferences(votes(turn=0, draw=6), "judge", "age"), "age")
    assert str(same).startswith("no difference of the ranking is found by age: p = ")
    codes = cc.ranking_tree(preferences(data, "judge", "age"), "age", names=["age"])
    assert codes.groups[0].tests[0].kind == "name"


def test_wrong_wishes() -> None:
    data = votes(draw=7)
    prefs = preferences(data, "judge", "age")
    tree = cc.ranking_tree(prefs, "age")
    for wrong, said in (
        (lambda: cc.ranking_tree(prefs), "which of 'judge', 'age' are the properties"),
        (lambda: cc.ranking_tree(prefs, "agee"), "did you mean 'age'"),
        (lambda: cc.ranking_tree(prefs, ["age", "age"]), "each once"),
        (lambda: cc.ranking_tree(prefs, "age", names=["judge"]), "'judge' is none of them"),
        (lambda: cc.ranking_tree(prefs, "age", alpha=1.0), "between 0 and 1"),
        (lambda: cc.ranking_tree(prefs, "age", min_judgments=0), "min_judgments must be an integer of at least 1"),
        (lambda: cc.ranking_tree(prefs, "age", max_depth=0), "max_depth must be an integer of at least 1"),
        (lambda: cc.ranking_tree(prefs, "age", structure="borda"), "fitted by no likelihood"),
        (lambda: cc.ranking_tree(prefs, "age", tie="half"), "has no option 'tie'"),
        (lambda: cc.ranking_tree("votes.csv", "age"), "takes Preferences"),  # type: ignore[arg-type]
        (lambda: cc.ranking_tree(cc.Preferences.from_comparisons(["a"], ["b"]), "age"), "have no properties"),
        (lambda: cc.ranking_tree(cc.Preferences(), "age"), "0 queries"),
        (lambda: tree.ranking(99), "numbered 1 to"),
        (lambda: tree.group_of(country="at"), "the groups differ by 'age'"),
        (lambda: tree.group_of(age="old"), "age='old'"),
    ):
        with pytest.raises(cc.UsageError, match=said):
            wrong()


def test_a_property_without_a_cut_is_named():
    age = [20] * 100 + [30] * 5 + [40] * 3
    votes = cc.Preferences.from_comparisons(["a", "b"] * 54, ["b", "a"] * 54, cluster={"judge": range(108), "age": age})
    tree = cc.ranking_tree(votes, by="age", min_judgments=1)
    assert tree.groups[0].tests[0].property == "age"
    assert "age is not tested: no cut leaves 10% of the judgments on both sides" in str(tree)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_cuts_fitted_at_once_are_those_fitted_one_by_one(ties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = votes(judges=120)
    who = {name: data[name] for name in ("judge", "age", "country")}
    tie = np.random.default_rng(seed(1)).random(len(data["winner"])) < 0.2
    prefs = cc.Preferences.from_comparisons(ITEMS[data["winner"]], ITEMS[data["loser"]], tie=tie, cluster=who)
    at_once = cc.ranking_tree(prefs, ["age", "country"], ties=ties, min_judgments=20, interval="none")
    assert len(at_once.groups) > 1
    monkeypatch.setattr(partitioning, "AT_ONCE", 1)
    by_pieces = cc.ranking_tree(prefs, ["age", "country"], ties=ties, min_judgments=20, interval="none")
    monkeypatch.setattr(partitioning, "SIMPLE", ())
    one_by_one = cc.ranking_tree(prefs, ["age", "country"], ties=ties, min_judgments=20, interval="none")
    assert repr(at_once.groups) == repr(by_pieces.groups) == repr(one_by_one.groups)


def test_permutations_side_by_side_are_those_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for judges, turn in ((20, 0.0), (20, 1.5), (60, 0.0)):
        prefs = preferences(votes(judges, turn), "judge", "age", "country")
        tests = cc.ranking_tree(prefs, ["age", "country"], max_depth=1, min_judgments=10).groups[0].tests
        with monkeypatch.context() as here:
            here.setattr(instability, "TOGETHER", 1)
            alone = cc.ranking_tree(prefs, ["age", "country"], max_depth=1, min_judgments=10).groups[0].tests
        assert tests == alone and (judges > 20 or tests[1].law == "permutations")


def test_groups_are_numbered_each_before_what_it_is_divided_into() -> None:
    tree = cc.ranking_tree(preferences(votes(400), "judge", "age", "country"), ["age", "country"], min_judgments=20)
    assert [group.number for group in tree.groups] == [*range(1, len(tree.groups) + 1)] and len(tree.groups) > 2
    for group in tree.groups:
        below = [other.number for other in tree.groups if other.parent == group.number]
        assert len(below) == 2 * (group.divided_by is not None) and (not below or below[0] == group.number + 1)
