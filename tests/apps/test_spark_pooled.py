"""On Spark, queries that only number the votes: put into one, or asked about, as when the log is read in memory.

And what a task cannot know of the notes on a ranking: how many clusters there are, or whether queries are people.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences import pooling
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from pyspark.errors import PySparkException

    from concordant import spark as cs
    from concordant.apps.spark import pooled
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.interval_methods import clusters_allowed
    from concordant.apps.spark.ranking import few_each, ranked, ranking_of


def battles(queries: int = 60, models: int = 6, seed: int = 3) -> dict[str, list[str]]:
    """A vote for each question, as Arena publishes them; the stronger wins more often."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, models, queries)
    second = (first + rng.integers(1, models, queries)) % models
    low, high = np.minimum(first, second), np.maximum(first, second)
    won = rng.random(queries) < 0.7
    names = np.array([f"model {number}" for number in range(models)])
    winner, loser = names[np.where(won, low, high)], names[np.where(won, high, low)]
    questions = [f"question {number}" for number in range(queries)]
    return {"question_id": questions, "winner": winner.tolist(), "loser": loser.tolist()}


def of_spark(judged: Any, interval: str = "auto", structure: str = "bradley-terry", **asked: Any) -> Any:
    return ranking_of(ranked(judged, structure, interval=interval, **asked), judged, structure, interval, 0.95)


def test_votes_with_a_number_each_are_one_ranking(spark: Any) -> None:
    log = battles()
    theirs = cc.rank(cc.read(log))
    assert len(theirs.queries) == 1
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    ours = cs.rank(frame).toArrow().sort_by("rank")
    assert ours["item"].to_pylist() == theirs.to_arrow()["item"].to_pylist()
    for name in ("score", "lower", "upper"):
        np.testing.assert_allclose(ours[name].to_numpy(), theirs.to_arrow()[name].to_numpy(), rtol=0, atol=1e-10)
    judged = pooled.pooled(JudgedQueries.of(frame, spark))
    said = [note for note in cc.read(log).notes if note.code == "pooled"]  # type: ignore[attr-defined]
    assert [note.replace("DataFrame", "table") for note in of_spark(judged).notes if "together" in note] == said
    each = cs.rank(frame, reading={"pool": False}).toArrow()
    assert len(each) == 2 * len(log["winner"])
    named = {"columns": {"query": "question_id"}}
    with pytest.raises(cc.UsageError) as refused:
        cs.rank(log, reading=named, session=spark)
    with pytest.raises(cc.UsageError) as known:
        cc.read(log, **named)
    assert str(refused.value) == str(known.value)
    asked = cs.rank(log, reading={**named, "pool": True}, session=spark).toArrow().sort_by("rank")
    assert asked.equals(ours)
    with pytest.raises(cc.UsageError, match="pool must be True, False or None, not 'yes'"):
        cs.rank(log, reading={"pool": "yes"}, session=spark)


def test_targets_and_fits_of_votes_with_a_number_each(spark: Any) -> None:
    log = battles(300)
    prefs, frame = cc.read(log), spark.createDataFrame(pa.table(log)).repartition(3)
    made = cs.targets(frame, structure="log-odds").toArrow().sort_by("item")
    np.testing.assert_allclose(made["target"].to_numpy(), mean_targets(prefs, "log-odds").centred(), rtol=0, atol=1e-9)
    rng = np.random.default_rng(5)
    models = [f"model {number}" for number in range(6)]
    features = {"item": models, "x": rng.normal(size=6).tolist(), "y": rng.normal(size=6).tolist()}
    ours = cs.fit(frame, features)
    theirs = cc.AggregationRanker().fit(features, prefs)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-8)
    # features of a query's items are for its own ranking
    rows = {"query": np.repeat(log["question_id"], 2).tolist()}
    rows |= {"item": np.stack([log["winner"], log["loser"]], 1).ravel().tolist(), "x": rng.normal(size=600).tolist()}
    ours = cs.fit(cc.AggregationRanker("log-odds", order=1), frame, rows)
    theirs = cc.AggregationRanker("log-odds", order=1).fit(rows, cc.read(log, pool=False))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-8)


def test_rows_without_a_query_are_counted_as_left_out(spark: Any) -> None:
    log: dict[str, Any] = battles()
    log["question_id"][7] = log["question_id"][11] = None
    log["question_id"][12:15] = ["null", " ", ""]  # labels as any
    with pytest.raises(cc.InputError, match="2 of 60 rows have no query"):
        cs.rank(log, session=spark)
    theirs = cc.rank(cc.read(log, on_error="skip"))
    judged = pooled.pooled(JudgedQueries.of(log, spark, on_error="skip"))
    ours = of_spark(judged)
    assert ours.judgments.tolist() == theirs.judgments.tolist()
    np.testing.assert_allclose(ours.score, theirs.score, rtol=0, atol=1e-10)
    assert "skipped: table: 2 rows of 60 have no query" in ours.notes


def test_whether_queries_are_scattered_is_what_memory_finds(spark: Any) -> None:
    """Around every limit: votes of a query, how many queries are such, items of their own, ties, lists."""
    rng = np.random.default_rng(8)
    logs: list[dict[str, Any]] = []
    for votes, others, own in (
        (3, 0, False),
        (4, 0, False),
        (1, 10, False),
        (1, 9, False),
        (1, 0, True),
        (3, 10, True),
    ):
        queries = [f"q{number}" for number in range(10) for _ in range(votes)]
        item = [f"{number // votes}" if own else "" for number in range(10 * votes)]
        log = {"query": queries, "winner": [f"a{one}" for one in item], "loser": [f"b{one}" for one in item]}
        for number in range(others):
            log["query"] += [f"other {number}"] * 2
            log["winner"] += ["a", "c"]
            log["loser"] += ["c", "d"]
        logs.append(log)
    few = battles(9)
    lists = {
        "query": [f"q{number // 2}" for number in range(40)],
        "item": ["a", "b"] * 20,
        "rank": [1, 2] * 20,
        "judge": ["1"] * 40,
    }
    uneven = {name: [*column] for name, column in lists.items()}
    for number in range(25):  # more judgments than those of one pair
        uneven["query"] += ["long"] * 3
        uneven["item"] += [f"z{k}" for k in range(3)]
        uneven["rank"] += (rng.permutation(3) + 1).tolist()
        uneven["judge"] += [f"{number}"] * 3
    tied = battles(30)
    tied = {"query": tied["question_id"], "left": tied["winner"], "right": tied["loser"], "outcome": ["tie"] * 30}
    found = []
    for log in (*logs, few, lists, uneven, tied):
        prefs = cc.read(log, pool=False)
        expected = pooling.scattered(prefs)
        judged = JudgedQueries.of(log, spark, task=7)
        known = pooled.scattered(judged)
        assert (known is not None) == expected, log
        if known is not None:
            assert (known.queries, known.items) == (len(prefs.queries), len(prefs.items))
            assert known.judgments == len(prefs)
            assert few_each(cc.rank(prefs, "borda", interval="none"))
        found.append(expected)
    assert {*found} == {True, False}
    with pytest.raises(cc.UsageError, match=r"each query of orders is ranked by itself \(pool=False\)"):
        cs.rank(lists, "plackett-luce", session=spark)
    each = cs.rank(lists, "plackett-luce", reading={"pool": False}, session=spark)
    assert each.count() == 40


def test_whoever_asks_spark_for_rows_is_told_what_is_refused(spark: Any) -> None:
    """The frame of a ranking is computed when it is asked for its rows, where no error of ours can be raised."""
    frame = cs.rank({"winner": ["a", None, "b"], "loser": ["b", "a", "b"]}, session=spark)
    with pytest.raises(PySparkException) as refused:
        frame.toArrow()
    said = " ".join(str(refused.value).split())
    assert "among the rows of one task: 1 of 3 rows have no winner" in said
    assert "1 of 3 rows compare an item with itself (1 row: 'b')" in said


def notes_of(log: dict[str, Any], spark: Any, interval: str, **reading: Any) -> list[list[str]]:
    prefs = cc.read(log, **reading)
    judged = JudgedQueries.of(log, spark, task=100, **reading)
    ours, theirs = of_spark(judged, interval), cc.rank(prefs, interval=interval)
    return [[note for note in one.notes if "which majorities" not in note] for one in (ours, theirs)]


def test_clusters_of_all_tasks_are_noted_once(spark: Any) -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(0, 5, 900)
    log: dict[str, Any] = {"query": [f"q{number}" for number in rng.integers(0, 9, 900)]}
    log |= {"winner": [f"i{number}" for number in first]}
    log |= {"loser": [f"i{number}" for number in (first + rng.integers(1, 5, 900)) % 5]}
    log |= {"voter": [f"v{number}" for number in rng.integers(0, 40, 900)], "prompt": rng.integers(0, 50, 900).tolist()}
    for interval in ("auto", "none", "sandwich"):
        for cluster in ("voter", ("voter", "prompt"), None):
            ours, theirs = notes_of(log, spark, interval, **({} if cluster is None else {"cluster": cluster}))
            assert sorted(ours) == sorted(theirs), (interval, cluster)
    allowed = notes_of(log, spark, "sandwich", cluster=("voter", "prompt"))[0]
    assert any("the same voter (40) and the same prompt (50) being alike" in note for note in allowed)
    large, whole = (
        JudgedQueries.of(log, spark, task=100, most=most, cluster=("voter", "prompt")) for most in (90, 900)
    )
    assert large.large
    assert not whole.large
    assert clusters_allowed(large, 9) == clusters_allowed(whole, 9) != ()
    log["voter"][3] = " v1"
    ours, theirs = notes_of(log, spark, "hessian", cluster="voter")
    assert sorted(ours) == sorted(theirs)
    assert any("2 clusters differ from others only in white space" in note for note in ours)


def test_queries_that_are_people(spark: Any) -> None:
    people, films = [f"p{number // 4}" for number in range(120)], [f"f{number % 7}" for number in range(120)]
    log = {"query": people, "item": films, "rating": [number % 5 for number in range(120)]}
    prefs, judged = cc.read(log), JudgedQueries.of(log, spark, task=30)
    theirs = pooling.lonely_notes(prefs, "table", "query")
    assert len(theirs) == 1
    assert pooled.lonely(judged, of_spark(judged, "none", "borda")) == theirs
    votes = JudgedQueries.of(battles(), spark, pool=False)
    assert pooled.lonely(votes, of_spark(votes, "none")) == ()
