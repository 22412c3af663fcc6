"""One query that no task can hold, its judgments in clusters: intervals are those of memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.ranking import multinomial
from concordant.ranking.structures import structure as find_structure
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark import clustered, coefficients, frames, ranking
    from concordant.apps.spark.clustered import ByClusters
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_held import Sums
    from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking

COLUMNS = ("item", "component", "rank", "score", "lower", "upper", "judgments", "rank_lower", "rank_upper", "flag")


def votes(
    items: int, people: int, each: int, *, ties: float = 0.0, groups: int = 1, ends: int = 0, seed: int = 0
) -> dict[str, list[Any]]:
    """Votes of people who like some items more than others do; at the ends some only win, or only lose, in a row."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), each)
    taste = rng.normal(size=items) + rng.normal(size=(people, items))
    one = rng.integers(0, items, len(who))
    other = (one + groups * rng.integers(1, items // groups, len(who))) % items
    wins = rng.random(len(who)) < 1 / (1 + np.exp(taste[who, other] - taste[who, one]))
    first, second = np.where(wins, one, other), np.where(wins, other, one)
    tie = rng.random(len(who)) < ties
    for end in range(ends):  # each always beats, or loses to, some of the others
        some = rng.integers(0, items, 3 + 4 * end)
        side = np.full(len(some), items + end)
        first, second = np.append(first, (side, some)[end % 2]), np.append(second, (some, side)[end % 2])
        who, tie = np.append(who, rng.integers(0, people, len(some))), np.append(tie, np.zeros(len(some), bool))
    named = [[f"i{code}" for code in side] for side in (first, second)]
    outcome = np.where(tie, "tie", "left").tolist()
    return {"left": named[0], "right": named[1], "outcome": outcome, "who": [f"p{code}" for code in who]}


def graded(log: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same votes, some clearer than others; the second item that only wins or loses does so clearly."""
    weight = np.random.default_rng(1).integers(1, 4, len(log["who"]))
    clear = max(len({*log["left"]} | {*log["right"]}) - 2, 0)
    weight = np.where(np.array(log["left"]) == f"i{clear}", 3, weight)
    return {**log, "weight": weight.tolist()}


class Here(ByClusters):
    """Shares as tasks have them, without Spark."""

    def sums(self, work: Any) -> Any:
        self.passes += 1
        parts = [pickle.loads(pickle.dumps(work))(one) for one in self.frame]
        return sum(parts, Sums())

    def forget(self) -> None: ...


def shared(log: dict[str, list[Any]], shares: int, **reading: Any) -> Here:
    whose = np.array([int(who[1:]) % shares for who in log["who"]])
    chosen = [np.flatnonzero(whose == share) for share in np.unique(whose)]
    parts = [{name: [column[row] for row in rows] for name, column in log.items()} for rows in chosen]
    found = Here([cc.read(part, cluster="who", **reading) for part in parts], shares, 2, 1 << 20)  # type: ignore[arg-type]
    found.look()
    return found


def crossed(log: dict[str, list[Any]], columns: tuple[str, ...], shares: int, **reading: Any) -> Here:
    """Shares divided by each of several columns."""

    def divide(way: int) -> Any:
        whose = np.array([sum(map(ord, label)) % shares for label in log[columns[way]]])
        chosen = [np.flatnonzero(whose == share) for share in np.unique(whose)]
        parts = [{name: [column[row] for row in rows] for name, column in log.items()} for rows in chosen]
        return [cc.read(part, cluster=columns, **reading) for part in parts], shares, 2

    found = Here(*divide(0), 1 << 20, columns=columns, divide=divide)
    found.look()
    return found


def in_ways(log: dict[str, list[Any]], *numbers: int) -> dict[str, list[Any]]:
    """The same votes, on one of so many prompts, and so on, each."""
    rng = np.random.default_rng(1)
    more = {f"way {n}": [f"w{k}" for k in rng.integers(0, n, len(log["who"]))] for n in numbers}
    return {**log, **more}


CROSSED: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "plain": (in_ways(votes(12, 60, 40), 25), {}),
    "ties, items that only win or lose": (in_ways(votes(9, 40, 30, ends=3, ties=0.2), 30), {"ties": "davidson"}),
    "components": (in_ways(votes(16, 50, 30, groups=2, ends=1), 9), {"quasi": True}),
    "few in each cell": (in_ways(votes(8, 12, 30, ends=2), 10), {}),
    "one way is all of one cluster": (in_ways(votes(8, 30, 20), 1), {}),
    "three ways": (in_ways(votes(8, 30, 40, ends=1), 12, 7), {}),
}


@pytest.mark.parametrize("case", CROSSED)
@pytest.mark.parametrize("shares", [1, 4])
def test_intervals_of_several_ways_are_those_of_memory(case: str, shares: int) -> None:
    log, options = CROSSED[case]
    columns = ("who", *(name for name in log if name.startswith("way")))
    whole = cc.rank(cc.read(log, cluster=columns), **options)
    found = crossed(log, columns, shares)
    board = found.ranked(find_structure("bradley-terry"), {**options, "interval": "sandwich"})
    assert board is not None
    agrees(board[0], whole)
    (said,) = [note for note in whole.notes if "being alike" in note]
    assert board[1][-2] in said


def agrees(found: cc.Ranking, whole: cc.Ranking, close: float = 1e-9) -> None:
    ours, theirs = found.to_arrow(), whole.to_arrow()
    for name in {*ours.column_names} & {*COLUMNS, "quasi_error", "provisional"}:
        one, other = ours[name].to_pylist(), theirs[name].to_pylist()
        if isinstance(other[0], float):
            np.testing.assert_allclose(one, other, rtol=close, atol=close, err_msg=name)
        else:
            assert one == other, name
    for name, of in whole.coefficients.items() if found.coefficients else ():  # a table of Spark has none
        np.testing.assert_allclose(found.coefficients[name], of, rtol=close, err_msg=name)


CASES: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "plain": (votes(12, 60, 40), {}),
    "ties are half a win": (votes(15, 80, 25, ties=0.3), {"quasi": True}),
    "ties have a weight": (votes(10, 50, 30, ties=0.3), {"ties": "davidson"}),
    "items that only win or lose": (votes(9, 40, 30, ends=4), {}),
    "only win or lose, with ties": (votes(9, 40, 30, ends=3, ties=0.2), {"ties": "davidson"}),
    "components": (votes(16, 50, 30, groups=2, ends=1), {"min_judgments": 5}),
    "a reference": (votes(8, 40, 20, ends=1), {"reference": "i2", "level": 0.8}),
    "few votes, in chains": (votes(20, 12, 3, ends=2), {}),
    "a prior": (votes(10, 30, 10), {"prior": 1.0}),
    "two people": (votes(5, 2, 100), {}),
    "one person": (votes(5, 1, 100, ends=1), {}),
    "thresholds": (graded(votes(9, 40, 30, ties=0.2)), {"ties": "cumulative"}),
    "thresholds, items that only win or lose": (graded(votes(9, 40, 30, ends=4)), {"ties": "cumulative"}),
    "a threshold of ties": (votes(9, 40, 30, ends=2, ties=0.3), {"ties": "cumulative", "quasi": True}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shares", [1, 5])
def test_intervals_are_those_of_memory(case: str, shares: int) -> None:
    log, options = CASES[case]
    whole = cc.rank(cc.read(log, cluster="who"), **options)
    assert whole.interval == "sandwich"
    found = shared(log, shares).ranked(find_structure("bradley-terry"), {**options, "interval": "sandwich"})
    assert found is not None
    agrees(found[0], whole)
    asked = {name: value for name, value in options.items() if name in ("ties", "prior")}
    for interval in ("hessian", "none"):
        of_kinds = shared(log, shares).ranked(find_structure("bradley-terry"), {**asked, "interval": interval})
        assert of_kinds is not None
        agrees(of_kinds[0], cc.rank(cc.read(log, cluster="who"), **asked, interval=interval))


DRAWN = [
    *((case, "bradley-terry") for case in CASES if "threshold" not in case and case != "one person"),
    *(("items that only win or lose", name) for name in ("log-odds", "copeland", "eigenvector")),
    *(("ties are half a win", name) for name in ("borda", "thurstone-mosteller", "counting", "budgeted-borda")),
    ("components", "log-odds"),
    ("plain", "plackett-luce"),
    ("few votes, in chains", "kemeny"),
]


@pytest.mark.parametrize(("case", "structure"), DRAWN)
def test_bootstraps_are_those_of_memory(case: str, structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks draw the clusters, all of them as memory does, and say how often each kind of judgments is drawn."""
    log, options = CASES[case]
    options = {name: value for name, value in options.items() if name != "quasi"}
    options |= {"interval": "bootstrap", "replicates": 60, "seed": 4}
    prefs = cc.read(log, cluster="who")
    whole = cc.rank(prefs, structure, **options)
    for replicated in (1 << 22, 7 * prefs.distinct):
        monkeypatch.setattr(clustered, "REPLICATED", replicated)
        found = shared(log, 4).ranked(find_structure(structure), options)
        assert found is not None
        agrees(found[0], whole, 1e-7)
        assert found[0].interval == "bootstrap"


def test_bootstraps_that_draw_something_else() -> None:
    """One cluster is no draw; limits on one side are Bradley–Terry's; strengths hold kinds apart."""
    member, asked = find_structure("bradley-terry"), {"interval": "bootstrap", "replicates": 50}
    assert shared(CASES["one person"][0], 1).ranked(member, asked) is None
    ends = CASES["items that only win or lose"][0]
    assert shared(ends, 3).ranked(find_structure("plackett-luce"), asked) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustered, "DRAWN", 5)
        assert shared(ends, 3).ranked(member, asked) is None
    with pytest.MonkeyPatch.context() as patch:  # of many clusters each is drawn by itself
        for module in (multinomial, clustered):
            patch.setattr(module, "ALONE", 5)
        found = shared(ends, 3).ranked(member, asked)
        assert found is not None
        agrees(found[0], cc.rank(cc.read(ends, cluster="who"), **asked), 1e-7)
    log = votes(8, 30, 20, ties=0.2, ends=2)
    log["weight"] = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(log["who"])).tolist()
    found = shared(log, 4).ranked(member, asked)
    assert found is not None
    agrees(found[0], cc.rank(cc.read(log, cluster="who"), **asked), 1e-7)


def test_strengths_and_covariates() -> None:
    log = votes(8, 30, 20, ties=0.2, ends=2)
    rng = np.random.default_rng(1)
    log["weight"] = rng.choice([0.5, 1.0, 3.0], len(log["who"])).tolist()
    log["longer"] = rng.choice([-1.0, 0.0, 1.0], len(log["who"])).tolist()
    for covariates in ((), ("longer",)):
        whole = cc.rank(cc.read(log, cluster="who", covariates=covariates))
        found = shared(log, 4, covariates=covariates)
        board = found.ranked(find_structure("bradley-terry"), {"interval": "sandwich"})
        assert board is not None
        agrees(board[0], whole)


def test_what_is_too_much_is_not_brought_together(monkeypatch: pytest.MonkeyPatch) -> None:
    log, asked = votes(9, 40, 30, ends=2), {"interval": "sandwich"}
    member = find_structure("bradley-terry")
    few = shared(log, 3)
    few.most = 20
    few.look()
    assert few.ranked(member, asked) is None and few.kinds is None
    found = shared(log, 3)
    monkeypatch.setattr(clustered, "CROSSING", 5)
    assert found.ranked(member, asked) is None
    monkeypatch.undo()
    monkeypatch.setattr(clustered, "LARGEST", 5)
    assert found.ranked(member, asked) is None and found.ranked(member, {"interval": "hessian"}) is not None


@pytest.mark.parametrize(
    ("options", "interval"),
    [
        ({}, "sandwich"),
        ({"crossed": True}, "sandwich"),
        ({"ties": "davidson"}, "sandwich"),
        ({"interval": "hessian"}, "hessian"),
        ({"structure": "borda", "interval": "none"}, "none"),
        ({"structure": "borda"}, "bootstrap"),
        ({"interval": "bootstrap", "replicates": 50}, "bootstrap"),
        ({"interval": "none"}, "none"),
    ],
)
def test_spark(spark: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], interval: str) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("a task of its own was asked for")

    monkeypatch.setattr(JudgedQueries, "alone", refused)
    log = in_ways(votes(9, 40, 30, ends=2, ties=0.1), 20)
    small = {"left": ["a", "b"], "right": ["b", "a"], "outcome": ["left", "left"], "who": ["p1", "p2"]}
    small["way 20"] = ["w1", "w2"]
    options = dict(options)
    cluster = ["who", "way 20"] if options.pop("crossed", False) else "who"
    both = {name: log[name] + small[name] for name in log}
    both["query"] = ["large"] * len(log["who"]) + ["small"] * 2
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(both)).repartition(3), spark, most=300, cluster=cluster)
    assert judged.large == ("large",)
    frame = ranked(judged, **{"structure": "bradley-terry", **options})
    found = ranking_of(frame, judged, options.get("structure", "bradley-terry"), "auto", 0.95)
    whole = cc.rank(cc.read(both, cluster=cluster), **options)
    agrees(found, whole)
    assert found.interval == interval
    assert "divided among tasks by" in " ".join(found.notes)


def test_what_was_left_to_us_is_left_out_where_it_takes_too_much(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = votes(9, 40, 30)
    frame = spark.createDataFrame(pa.table(log))
    monkeypatch.setattr(frames, "MOST_ALONE", 400)
    monkeypatch.setattr(ranking, "MOST_ALONE", 400)
    for module in (clustered, coefficients):
        monkeypatch.setattr(module, "LARGEST", 5)
    judged = JudgedQueries.of(frame, spark, most=300, cluster="who")
    found = ranking_of(ranked(judged, "bradley-terry"), judged, "bradley-terry", "auto", 0.95)
    assert found.interval == "none" and "no intervals of a query with 1,200 judgments" in " ".join(found.notes)
    np.testing.assert_allclose(found.score, cc.rank(cc.read(log, cluster="who")).score, atol=1e-9)
    for interval, said in (("auto", True), ("none", False)):
        written = ranked(judged, "bradley-terry", interval=interval)
        _, notes = write_ranking(written, judged, str(tmp_path / interval), interval=interval)
        assert ("9 rows have no intervals" in " ".join(notes)) is said
    with pytest.raises(cc.UsageError, match=r"has [\d,]+ distinct judgments"):
        ranked(judged, "bradley-terry", interval="sandwich")
