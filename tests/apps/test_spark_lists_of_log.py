"""What rankings leave out, and what positions are, is asked, noted and read on Spark as it is in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.errors import Idle
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences.pooling import LeftOut
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import frames, lists_of_log, splitting
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.lists_of_log import Ends, settled
    from concordant.apps.spark.ranking import ranked, ranking_of


def rankings(*, filled: bool, partial: bool = True, tied: bool = False, queries: int = 6) -> dict[str, list[Any]]:
    """Rankings of the items of some queries, some of which leave items out, or name all with several in last place."""
    rng = np.random.default_rng(1)
    rows: list[tuple[Any, ...]] = []
    for query in range(queries):
        for judgment in range(12):
            order = rng.permutation(6)
            said = 3 if partial and judgment % 3 else 6
            rank = np.minimum(1 + np.arange(6), 4 if filled and judgment % 3 == 0 else 9)
            if tied and judgment == 1:
                rank[1] = 1
            rows += [(f"q{query}", judgment, f"i{order[k]}", int(rank[k]), 1 + judgment % 2) for k in range(said)]
    names = ("query", "judgment", "item", "rank", "count")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def outcome(work: Any) -> Any:
    try:
        return work()
    except cc.ConcordantError as error:
        return type(error), str(error).replace("DataFrame", "table")


CASES = [(filled, partial, tied) for filled in (True, False) for partial in (True, False) for tied in (True, False)]


@pytest.mark.parametrize(("filled", "partial", "tied"), CASES)
def test_as_in_memory(spark: Any, filled: bool, partial: bool, tied: bool) -> None:
    log = rankings(filled=filled, partial=partial, tied=tied)
    frame = spark.createDataFrame(pa.table(log))
    for unranked in (None, "last", "missing"):

        def there(unranked: Any = unranked) -> Any:
            judged = settled(JudgedQueries.of(frame, spark, unranked=unranked))
            made = ranked(judged, "plackett-luce", interval="none")
            return ranking_of(made, judged, "plackett-luce", "none", 0.95)

        def here(unranked: Any = unranked) -> Any:
            return cc.rank(cc.read(log, unranked=unranked), "plackett-luce", interval="none")

        ours, theirs = outcome(there), outcome(here)
        if isinstance(theirs, tuple):
            assert ours == theirs
            continue
        for name in ("query", "item", "rank", "judgments", "flag"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        np.testing.assert_allclose(ours.score, theirs.score, rtol=0, atol=1e-9)
        said = [[note.replace("DataFrame", "table") for note in one.notes if "leave" in note] for one in (ours, theirs)]
        assert said[0] == said[1] and len(said[0]) == (partial and unranked is None)


@pytest.mark.parametrize(("filled", "partial", "tied"), [(True, True, False), (True, True, True), (False, True, False)])
def test_queries_that_no_task_can_hold(
    spark: Any, monkeypatch: pytest.MonkeyPatch, filled: bool, partial: bool, tied: bool
) -> None:
    monkeypatch.setattr(splitting, "SHARE", 40)
    log = rankings(filled=filled, partial=partial, tied=tied, queries=2)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)), spark, most=40)
    assert judged.large == ("q0", "q1")
    theirs = outcome(lambda: cc.read(log).notes)
    ours = outcome(lambda: settled(judged).notes[-1:])
    assert (ours if isinstance(ours[0], type) else tuple(n.replace("DataFrame", "table") for n in ours)) == theirs


@pytest.mark.parametrize("most", [40, 10**6])
def test_rankings_that_rank_nothing(spark: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """They are left out with a word; of a query that has no other the items are known."""
    monkeypatch.setattr(splitting, "SHARE", 40)
    log = rankings(filled=False, queries=2)
    for place, query in enumerate(log["query"]):
        if query == "q1" and log["judgment"][place] % 4 == 0:
            log["rank"][place] = None
    for name, value in zip(log, (["q2"] * 2, [0, 0], ["i1", "new"], [None, None], [5, 5]), strict=True):
        log[name] += value
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    judged = settled(JudgedQueries.of(frame, spark, most=most))
    assert bool(judged.large) == (most == 40)
    theirs = cc.rank(cc.read(log), "plackett-luce", interval="none")
    ours = ranking_of(ranked(judged, "plackett-luce", interval="none"), judged, "plackett-luce", "none", 0.95)
    for name in ("query", "item", "rank", "judgments", "flag"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    said = [[note.replace("DataFrame", "table") for note in one.notes if "nothing" in note] for one in (ours, theirs)]
    assert said[0] == said[1] == ["table: 8 of 41 rankings rank nothing and are left out"]
    counted = [note.replace("DataFrame", "table") for note in cs.read(frame).notes]
    assert counted == [*cc.read(log).notes]


def test_a_query_by_its_lists() -> None:
    for filled, partial, tied in ((True, True, False), (False, True, True), (True, False, False)):
        log = rankings(filled=filled, partial=partial, tied=tied, queries=1)
        rows = [[row for row, number in enumerate(log["judgment"]) if number % 4 == part] for part in range(4)]
        parts = [cc.Preferences.from_orders(*([log[n][k] for k in some] for n in [*log][:4])) for some in rows]
        whole: Any = cc.Preferences.from_orders(*(log[n] for n in [*log][:4]))
        found = Ends.of(parts[0])
        for part in parts[1:]:
            found += Ends.of(part)
        assert found.left_out == LeftOut.by(whole)


def test_targets_and_fits(spark: Any) -> None:
    log = rankings(filled=True)
    frame = spark.createDataFrame(pa.table(log))
    with pytest.raises(cc.UsageError, match=r"72 of 108 rankings leave out .*unranked='last'"):
        cs.targets(frame, session=spark)
    made = cs.targets(frame, structure="log-odds", order="all", unranked="last", session=spark).toArrow()
    made = made.sort_by([("query", "ascending"), ("item", "ascending")])
    known = mean_targets(cc.read(log, unranked="last"), "log-odds", order="all")
    np.testing.assert_allclose(made["target"].to_numpy(), known.centred(), rtol=0, atol=1e-9)
    rng = np.random.default_rng(2)
    features = {"item": [f"i{k}" for k in range(6)], "x": rng.normal(size=6).tolist(), "z": rng.normal(size=6).tolist()}
    with pytest.raises(cc.UsageError, match="say whether an item"):
        cs.fit(cc.AggregationRanker(), frame, features, session=spark)
    ours = cs.fit(cc.AggregationRanker(), frame, features, session=spark, unranked="last")
    theirs = cc.AggregationRanker().fit(features, cc.read(log, unranked="last"))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-8)


def test_a_query_that_takes_too_much_filled_up_is_not_divided(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = JudgedQueries.of(rankings(filled=False), spark, most=40, unranked="last")
    monkeypatch.setattr(frames, "MOST_ALONE", 10)
    monkeypatch.setattr(splitting, "ENTRIES", 3)
    with pytest.raises(cc.UsageError, match=r"'q0' has \d+ rows.*is ranked"):
        cs.rank(judged, "plackett-luce", interval="none")


def test_options_of_reading_that_no_task_heeds_are_refused(spark: Any) -> None:
    log = rankings(filled=False)
    for option, said in (
        ({"time": "judgment"}, "table: time is read on one machine"),
        ({"bogus": 1}, "table: bogus is no option of reading"),
    ):
        with pytest.raises(cc.UsageError, match=said):
            JudgedQueries.of(log, spark, **option)
        with pytest.raises(cc.UsageError, match=said):
            cs.targets(log, session=spark, **option)
    assert JudgedQueries.of(log, spark, pool=None).total == len(log["query"])
    with pytest.raises(cc.UsageError, match=r"queries of orders are put together \(pool=True\) on one machine only"):
        cs.targets(log, session=spark, pool=True)
    with pytest.raises(cc.UsageError, match="unranked must be one of"):
        JudgedQueries.of(log, spark, unranked="first")
    with pytest.raises(Idle, match="table holds comparisons; only orders leave items out"):
        JudgedQueries.of({"winner": ["a"], "loser": ["b"]}, spark, unranked="last")


def shown(lists: int) -> dict[str, list[Any]]:
    """Lists of one to three items, every third of which does not begin at position 1."""
    rows: list[tuple[Any, ...]] = []
    for session in range(lists):
        size, first = 1 + session % 3, 1 + (session % 3 == 0)
        items = [f"i{(session + k) % 5}" for k in range(size)]
        query = f"q{session % 4}"
        rows += [(query, session, first + k, items[k], int(k == 0), 1 + session % 2) for k in range(size)]
    names = ("query", "session", "position", "item", "clicked", "count")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def on_positions(notes: Any) -> list[str]:
    return [str(note).partition(": in ")[2] for note in notes if "positions do not run" in str(note)]


def far_positions(notes: Any) -> list[str]:
    return [str(note).partition(": in ")[2] for note in notes if "what stands further down" in str(note)]


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("column", ["query", "count", None])
def test_positions_with_gaps_are_noted_as_in_memory(spark: Any, column: str | None, texts: bool) -> None:
    log = shown(60)
    kept = {name: values for name, values in log.items() if name not in {"query", "count"} - {column}}
    if texts:
        kept["position"] = [str(one) for one in kept["position"]]
    judged = settled(JudgedQueries.of(spark.createDataFrame(pa.table(kept)), spark))
    expected = on_positions(cc.read(kept).notes)
    assert (
        on_positions(judged.notes) == expected
        and len(expected) == 1
        and expected[0].startswith(("20 of 60", "30 of 90"))
    )
    assert settled(judged) is judged
    far = {
        **kept,
        "position": [type(p)(int(p) + 1000 * (int(s) == 0)) for p, s in zip(kept["position"], kept["session"])],
    }
    judged = settled(JudgedQueries.of(spark.createDataFrame(pa.table(far)), spark))
    assert on_positions(judged.notes) == on_positions(cc.read(far).notes) != expected
    assert len(far_positions(judged.notes)) == 1 and far_positions(judged.notes) == far_positions(cc.read(far).notes)
    whole = {
        **kept,
        "position": [int(p) - (s % 3 == 0) for p, s in zip(kept["position"], kept["session"], strict=True)],
    }
    assert not on_positions(settled(JudgedQueries.of(spark.createDataFrame(pa.table(whole)), spark)).notes)


def test_of_many_lists_some_are_looked_at(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists_of_log, "LOOKED", 3000)
    judged = settled(JudgedQueries.of(spark.createDataFrame(pa.table(shown(6000))), spark))
    (said,) = on_positions(judged.notes)
    some, of = (int(part.replace(",", "")) for part in said.split(" lists")[0].split(" of "))
    assert "(one list in 4 was looked at)" in said and 0.25 < some / of < 0.42 and 1000 < of < 4000


def test_positions_that_are_no_numbers_are_refused_as_ever(spark: Any) -> None:
    log = shown(6)
    log["position"] = [[one] for one in log["position"]]
    with pytest.raises(cc.InputError, match=r"the column 'position' \(position\) holds values of the type array"):
        cs.rank(spark.createDataFrame(pa.table(log)), "cascade")
