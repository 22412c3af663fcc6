"""One query that no task can hold, its fit with coefficients beside the scores: the ranking is that of memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.learning.targets.mean_targets import mean_targets
from concordant.ranking.structures import structure as find_structure
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from test_spark_clustered import Here, agrees

    import concordant.spark as cs
    from concordant.apps.spark import coefficients as coefficients_
    from concordant.apps.spark import comparisons as comparisons_
    from concordant.apps.spark import frames, ranking, splitting, valued_pairs
    from concordant.apps.spark.comparisons import OfComparisons
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_held import Sums
    from concordant.apps.spark.ranking import ranked, ranking_of
    from concordant.apps.spark.shares import TooMuch

Log = dict[str, list[Any]]


def votes(items: int, rows: int, *, ties: float = 0.0, first: int = 0, people: int = 0, seed: int = 0) -> Log:
    """Votes that go by scores, by which of two stood first and by length; ``first``: so many items never lose."""
    rng = np.random.default_rng([items, rows, seed])
    score = rng.normal(size=items)
    one = rng.integers(0, items, rows)
    other = (one + rng.integers(1, items, rows)) % items
    home, length = rng.choice([-1, 0, 1], rows), rng.normal(size=rows).round(2)
    wins = rng.random(rows) < 1 / (1 + np.exp(score[other] - score[one] - 0.4 * home - 0.7 * length))
    wins = np.where(one < first, True, np.where(other < first, False, wins))
    tie = (rng.random(rows) < ties) & (one >= first) & (other >= first)
    log: Log = {name: [f"i{code}" for code in side] for name, side in (("left", one), ("right", other))}
    log |= {"outcome": np.where(tie, "tie", np.where(wins, "left", "right")).tolist()}
    log |= {"home": home.tolist(), "length": length.tolist()}
    return log | ({"who": [f"p{code}" for code in rng.integers(0, people, rows)]} if people else {})


def reading(log: Log) -> dict[str, Any]:
    whose = [name for name in log if name.startswith(("who", "way"))]
    named = {"covariates": [name for name in ("home", "length", "age") if name in log]}
    return named | ({"cluster": whose if len(whose) > 1 else whose[0]} if whose else {})


def of(log: Log, shares: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> OfComparisons:
    """Shares as tasks have them, without Spark."""

    class Shares(splitting.Divided):
        def sums(self, work: Any) -> Any:
            self.passes += 1
            return sum([pickle.loads(pickle.dumps(work))(one) for one in self.frame], Sums())  # type: ignore[attr-defined]

        def changed(self, change: Any) -> Any:
            return [pickle.loads(pickle.dumps(change(one))) for one in self.frame]  # type: ignore[attr-defined]

        def change(self, change: Any) -> None:
            self.frame = self.changed(change)

        def forget(self) -> None: ...

    def change(frame: Any, change: Any) -> Any:
        return [pickle.loads(pickle.dumps(change(one))) for one in frame]

    monkeypatch.setattr(comparisons_, "Divided", Shares)
    monkeypatch.setattr(comparisons_, "changed", change)
    given = reading(log)
    whose = [given["cluster"]] if isinstance(given.get("cluster"), str) else given.get("cluster", [])

    def divide(way: int) -> Any:
        labels = log[whose[way]] if whose else list(map(str, range(len(log["left"]))))
        share = np.array([sum(map(ord, label)) % shares for label in labels])
        rows = [np.flatnonzero(share == number) for number in np.unique(share)]
        parts = [{name: [column[row] for row in some] for name, column in log.items()} for some in rows]
        return [cc.read(part, **given) for part in parts], shares, 2

    by = Here(*divide(0), 1 << 20, columns=tuple(whose), divide=divide)
    by.clusters = sum(len(part.clusters) for part in by.frame) if whose else 0
    found = OfComparisons.of(
        by, find_structure("bradley-terry"), options, coefficients_.used(tuple(given["covariates"]), options)
    )
    assert found is not None
    return found


def crossed(log: Log, number: int) -> Log:
    return log | {"way": [f"w{code}" for code in np.random.default_rng(1).integers(0, number, len(log["left"]))]}


def two_groups(one: Log, other: Log) -> Log:
    """Two logs side by side, of items that have nothing to do with each other."""
    apart = {side: [f"j{label}" for label in other[side]] for side in ("left", "right")}
    return {name: [*column, *apart.get(name, other[name])] for name, column in one.items()}


def without(log: Log, *names: str) -> Log:
    return {name: column for name, column in log.items() if name not in names}


def graded(log: Log, most: int = 3) -> Log:
    """Wins of different clearness; between some items there are but clear ones."""
    rng = np.random.default_rng(2)
    apart = [abs(int(one[1:]) - int(other[1:])) for one, other in zip(log["left"], log["right"], strict=True)]
    grade = np.minimum(rng.integers(1, most + 1, len(apart)) + (np.array(apart) > 6), most)
    return log | {"weight": grade.tolist()}


ENDLESS: Log = {
    "left": ["i0", "i0", "i1", "i1", "i2", "i0"] * 9, "right": ["i1", "i2", "i2", "i0", "i1", "i1"] * 9,
    "outcome": ["left", "left", "left", "tie", "tie", "left"] * 9, "weight": [2, 2, 2, 1, 1, 2] * 9,
}  # fmt: skip
"""Whoever stands ahead always wins clearly, or ties."""


CASES: dict[str, tuple[Log, dict[str, Any]]] = {
    "one win each": (votes(12, 700), {}),
    "few wins of some items, and items that never lose": (votes(14, 120, first=2), {"quasi": True}),
    "ties are half a win": (votes(10, 500, ties=0.2), {}),
    "ties have a weight": (votes(10, 500, ties=0.2, first=1), {"ties": "davidson"}),
    "a weight of ties alone": (without(votes(9, 400, ties=0.2), "home", "length"), {"ties": "davidson"}),
    "no ties": (votes(9, 300), {"ties": "davidson"}),
    "scores alone": (without(votes(12, 400), "home", "length"), {"quasi": True}),
    "scores alone, few wins": (without(votes(14, 90, first=2), "home", "length"), {}),
    "scores alone, ties, items that never lose": (without(votes(10, 200, ties=0.2, first=3), "home", "length"), {}),
    "clusters": (votes(12, 700, people=60, first=1), {"min_judgments": 9}),
    "clusters of two columns, with ties": (crossed(votes(9, 600, people=40, ties=0.2), 25), {"ties": "davidson"}),
    "a reference, a prior, a level": (votes(8, 300), {"reference": "i2", "prior": 1.0, "level": 0.8}),
    "groups that nobody compared, together": (
        two_groups(votes(8, 300, first=1), votes(5, 90)),
        {"across_components": True, "min_judgments": 9},
    ),
    "covariates left out": (votes(9, 300, ties=0.1, first=1), {"covariates": False, "reference": "i2"}),
    "covariates left out, ties with a weight": (
        votes(9, 300, ties=0.2, people=30),
        {"covariates": False, "ties": "davidson", "across_components": True},
    ),
    "no prior": (votes(6, 300, ties=0.1), {"prior": 0.0}),
    "strengths": (votes(9, 400) | {"weight": np.resize([0.5, 1.0, 2.0], 400).tolist()}, {}),
    "thresholds": (without(graded(votes(10, 600, ties=0.2)), "home", "length"), {"ties": "cumulative"}),
    "thresholds beside coefficients": (graded(votes(10, 600, ties=0.2, first=1)), {"ties": "cumulative"}),
    "thresholds, clusters": (graded(votes(11, 700, people=50, ties=0.1)), {"ties": "cumulative", "quasi": True}),
    "thresholds, clusters of two columns": (
        crossed(without(graded(votes(9, 500, people=30, first=1)), "home"), 20),
        {"ties": "cumulative"},
    ),
    "thresholds, no ties": (without(graded(votes(9, 400), 2), "home", "length"), {"ties": "cumulative"}),
    "ties with a threshold": (without(votes(9, 300, ties=0.3, first=2), "home", "length"), {"ties": "cumulative"}),
    "no threshold": (without(votes(12, 90), "home", "length"), {"ties": "cumulative"}),
    "thresholds that grow without end": (ENDLESS, {"ties": "cumulative"}),
    "nothing but ties": (
        without(votes(5, 40), "home", "length") | {"outcome": ["tie"] * 40},
        {"ties": "cumulative"},
    ),
}


def notes_of(board: cc.Ranking) -> list[str]:
    """The notes on the fit; of clusters, and whether the model fits, others are made."""
    left = ("clusters", "lack of fit", "contradicted pairs")
    kept = [note for note in board.notes if "read as" not in note and getattr(note, "code", "") not in left]
    return sorted(map(str, kept))


@pytest.mark.parametrize(("shares", "direct"), [(1, True), (5, True), (5, False)])
@pytest.mark.parametrize("case", CASES)
def test_the_ranking_is_that_of_memory(case: str, shares: int, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    log, options = CASES[case]
    if not direct:  # as of so many items that no matrix of them is made, or solved as it is
        monkeypatch.setattr(coefficients_, "DIRECT", 0)
    whole = cc.rank(cc.read(log, **reading(log)), **options)
    found = of(log, shares, options, monkeypatch)
    board = found.ranked({**options, "interval": whole.interval})
    agrees(board, whole, 1e-8)
    assert {*board.coefficients} == {*whole.coefficients}
    assert notes_of(board) == notes_of(whole)
    for name in ("home", "length") if options.get("covariates") is not False else ():
        assert name not in log or f"coefficient {name}: {whole.coefficients[name][0]:.4g} ±" in " ".join(
            found.said(board)
        )
    few = {**without(options, "level", "quasi"), "interval": "none"}
    agrees(found.ranked(few), cc.rank(cc.read(log, **reading(log)), **few))


def test_without_a_matrix_shares_are_asked_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons_.ValuedPairs, "cells", lambda *_: valued_pairs.Cells(None))
    for log, options in (CASES["ties have a weight"], CASES["no prior"], CASES["thresholds"]):
        asked = {**options, "interval": "none"}
        board = of(log, 3, asked, monkeypatch).ranked(asked)
        agrees(board, cc.rank(cc.read(log, **reading(log)), **asked))
        with pytest.raises(TooMuch):
            of(log, 3, options, monkeypatch).ranked({**options, "interval": "hessian"})


def test_a_difference_of_properties_of_items_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    log = votes(8, 300)
    age = dict(zip([f"i{code}" for code in range(8)], [3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0], strict=True))
    log["age"] = [age[one] - age[other] for one, other in zip(log["left"], log["right"], strict=True)]
    whole = cc.rank(cc.read(log, **reading(log)))
    for direct in (1000, 0):
        monkeypatch.setattr(coefficients_, "DIRECT", direct)
        board = of(log, 4, {}, monkeypatch).ranked({"interval": whole.interval})
        np.testing.assert_allclose(board.score, whole.score, atol=1e-6)
        assert board.coefficients["s.e. of age"][0] == np.inf
        assert notes_of(board) == notes_of(whole)
        assert "the coefficient of 'age' is not determined" in " ".join(map(str, board.notes))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"home": [0] * 300}, cc.CannotRank, "'home' is 0 in every comparison"),
        ({"age": "length"}, cc.CannotRank, "cannot be determined from the comparisons"),
        ({"age": "outcome"}, cc.CannotRank, "'age' has no finite maximum likelihood"),
    ],
)
def test_coefficients_that_do_not_exist(
    change: dict[str, Any], error: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = votes(8, 300)
    sign = {"left": 1.0, "right": -1.0}
    known = {"length": [2 * x for x in log["length"]], "outcome": [sign[won] for won in log["outcome"]]}
    log |= {name: known.get(value, value) if isinstance(value, str) else value for name, value in change.items()}
    with pytest.raises(error) as here:
        cc.rank(cc.read(log, **reading(log)))
    for direct in (1000, 0):
        monkeypatch.setattr(coefficients_, "DIRECT", direct)
        with pytest.raises(error, match=said) as there:
            of(log, 4, {}, monkeypatch).ranked({"interval": "none"})
        assert str(there.value) == str(here.value)


def test_what_is_too_much_is_not_brought_here(monkeypatch: pytest.MonkeyPatch) -> None:
    log = votes(10, 200, first=1)
    found = of(log, 3, {}, monkeypatch)
    monkeypatch.setattr(valued_pairs, "LISTS", 3)
    with pytest.raises(TooMuch):
        found.ranked({"interval": "hessian"})
    assert found.ranked({"interval": "none"}).interval == "none"
    monkeypatch.setattr(coefficients_, "LARGEST", 9)
    with pytest.raises(TooMuch):
        found.ranked({"interval": "sandwich"})
    with pytest.raises(cc.NoMaximumLikelihood, match="no chain of wins limits"):
        found.ranked({"interval": "none", "prior": 0})


@pytest.mark.parametrize(
    ("people", "options", "interval"),
    [
        (0, {}, "sandwich"),
        (30, {}, "sandwich"),
        (0, {"ties": "davidson"}, "hessian"),
        (0, {"ties": "cumulative"}, "hessian"),
        (30, {"ties": "cumulative"}, "sandwich"),
        (0, {"covariates": False, "across_components": True, "interval": "hessian"}, "hessian"),
        (0, {"structure": "plackett-luce", "ties": "davidson"}, "hessian"),
        (0, {"interval": "none"}, "none"),
    ],
)
def test_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch, people: int, options: dict[str, Any], interval: str
) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("a task of its own was asked for")

    monkeypatch.setattr(JudgedQueries, "alone", refused)
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 200)
    options = dict(options)
    log = votes(9, 700, ties=0.1, first=1, people=people)
    log = graded(log) if options.get("ties") == "cumulative" else log
    log["query"] = ["large"] * 690 + ["small"] * 10
    given = reading(log)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=300, **given)
    assert judged.large == ("large",)
    structure = options.pop("structure", "bradley-terry")
    found = ranking_of(ranked(judged, structure, **options), judged, structure, "auto", 0.95)
    whole = cc.rank(cc.read(log, **given), structure, **options)
    assert found.interval == interval
    agrees(found, whole, 1e-8)
    said = " ".join(found.notes)
    assert ("query 'large': coefficient home: " in said) == ("length" in " ".join(whole.coefficients))
    assert f"divided among tasks by {'who made them' if people else 'their rows'}" in said


def test_the_side_at_home_is_a_covariate_of_a_query_that_is_divided(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rankings and of targets, though the log has no column of it."""
    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    log = without(votes(6, 300), "home", "length")
    log["outcome"] = ["left" if number % 3 else one for number, one in enumerate(log["outcome"])]
    log["neutral"] = [number % 5 == 0 for number in range(300)]
    given: dict[str, Any] = {"home": "left", "columns": {"neutral": "neutral"}}
    whole = cc.read(log, **given)
    frame = spark.createDataFrame(pa.table(log)).repartition(2)
    judged = JudgedQueries.of(frame, spark, most=50, **given)
    found = ranking_of(ranked(judged, "bradley-terry", interval="none"), judged, "bradley-terry", "none", 0.95)
    agrees(found, cc.rank(whole, interval="none"))
    assert "coefficient home: " in " ".join(found.notes)
    made = cs.targets(frame, structure="bradley-terry", order="all", most=50, session=spark, **given).toArrow()
    known = mean_targets(whole, "bradley-terry", order="all")
    np.testing.assert_allclose(made.sort_by("item")["target"].to_numpy(), known.centred(), rtol=0, atol=1e-9)


def test_intervals_that_would_take_too_much_are_left_out(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 100)
    monkeypatch.setattr(coefficients_, "LARGEST", 5)
    log = votes(9, 400, ties=0.1)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)), spark, most=90, **reading(log))
    found = ranking_of(ranked(judged, "bradley-terry"), judged, "bradley-terry", "auto", 0.95)
    assert found.interval == "none" and "no intervals of a query with 400 judgments" in " ".join(found.notes)
    np.testing.assert_allclose(found.score, cc.rank(cc.read(log, **reading(log))).score, atol=1e-9)
    with pytest.raises(cc.UsageError, match=r"has \d+ distinct judgments"):
        ranked(judged, "bradley-terry", interval="sandwich")


def test_scores_against_an_item_are_refused_where_tasks_see_parts(spark: Any) -> None:
    log = votes(6, 60) | {"query": ["p", "q"] * 30}
    with pytest.raises(cc.UsageError, match=r"a task sees a part of the log, where the item of reference may not be"):
        cs.rank(spark.createDataFrame(pa.table(log)), reference="i1")
    one = without(log, "query", "home", "length")
    found = cs.rank(spark.createDataFrame(pa.table(one)), reference="i1").toArrow().to_pylist()
    assert [row["score"] for row in found if row["item"] == "i1"] == [0.0]
