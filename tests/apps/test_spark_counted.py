"""What needs all judgments at once works on the counts that Spark makes, on the driver or in a task, as in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import concordant as cc
from concordant.errors import Idle
from running import exit_status
from spark_session import spark_tests

pytestmark = spark_tests


def test_audit_and_report_work_on_the_counts(spark: Any) -> None:
    from concordant import spark as cs

    rng = np.random.default_rng(3)
    first = rng.integers(0, 6, 90)
    log = {"winner": first.tolist(), "loser": ((first + rng.integers(1, 6, 90)) % 6).tolist()}
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    asked: dict[str, Any] = {"surrogates": ["ranknet"], "replicates": 20}
    ours, plain = cs.audit(frame, **asked), cc.audit(cc.read(log), **asked)
    assert json.dumps(ours.to_dict(), default=str) == json.dumps(plain.to_dict(), default=str)
    items = {"item": list(range(6)), "x": [0.5, 3.0, 1.0, 2.0, -1.0, 0.0]}
    made = cs.report(frame, features=spark.createDataFrame(pa.table(items)), audit=False, title="t")
    assert made.html == cc.report(cc.read(log), features=items, audit=False, title="t").html


def log_of(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Some judgments of a kind, as columns."""
    first = rng.integers(0, 6, 300)
    votes = {"winner": [f"m{x}" for x in first], "loser": [f"m{x}" for x in (first + rng.integers(1, 6, 300)) % 6]}
    if kind == "votes":
        return {"query": [f"q{x}" for x in rng.integers(0, 5, 300)], **votes}
    if kind == "scattered":
        return {"question_id": [f"q{x}" for x in range(300)], **votes}
    if kind == "clustered":
        return {**votes, "cluster": rng.integers(0, 30, 300).tolist()}
    lists = [rng.permutation(5)[: 5 if kind == "clicks" else rng.integers(2, 6)].tolist() for _ in range(60)]
    found: dict[str, Any] = {"query": [f"q{j % 3}" for j, items in enumerate(lists) for _ in items]}
    found |= {"item": [item for items in lists for item in items]}
    place = {"position" if kind == "clicks" else "rank": [p + 1 for items in lists for p in range(len(items))]}
    found |= {
        "session" if kind == "clicks" else "judgment": [j for j, items in enumerate(lists) for _ in items],
        **place,
    }
    return found | ({"clicked": rng.integers(0, 2, len(found["item"])).tolist()} if kind == "clicks" else {})


STRUCTURES = {"orders": "plackett-luce", "clicks": "dependent-click"}


@pytest.mark.parametrize(
    ("kind", "reading"),
    [("votes", {}), ("scattered", {}), ("scattered", {"pool": False}), ("clustered", {}), ("orders", {}),
     ("orders", {"unranked": "last"}), ("clicks", {})],
)  # fmt: skip
def test_counts_of_a_large_log_are_worked_on_by_a_task(
    spark: Any, monkeypatch: pytest.MonkeyPatch, kind: str, reading: dict[str, Any]
) -> None:
    from concordant import spark as cs
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    frame = spark.createDataFrame(pa.table(log_of(kind, np.random.default_rng(4)))).repartition(3)
    prefs = cs.read(frame, **reading)
    monkeypatch.setattr(counted, "read", None)  # no counts come to the driver
    asked: dict[str, Any] = {"surrogates": ["ranknet", "linear"], "replicates": 20}
    ours, plain = cs.audit(frame, reading=reading, **asked), cc.audit(prefs, **asked)
    assert json.dumps(ours.to_dict(), default=str) == json.dumps(plain.to_dict(), default=str)
    asked = {"structure": STRUCTURES.get(kind, "bradley-terry"), "title": "t"}
    assert cs.report(frame, reading=reading, **asked).html == cc.report(prefs, **asked).html


@pytest.mark.parametrize("asked", [{}, {"top": 3, "ask": 4}, {"exact": True, "time_limit": 5.0}, {"target": "ndcg@3"}])
@pytest.mark.parametrize("kind", ["votes", "clustered", "orders", "choices", "ratings"])
def test_tasks_audit_the_queries_that_they_hold(
    spark: Any, monkeypatch: pytest.MonkeyPatch, kind: str, asked: dict[str, Any]
) -> None:
    from concordant import spark as cs
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    rng = np.random.default_rng(5)
    log = log_of({"choices": "clicks", "ratings": "orders"}.get(kind, kind), rng)
    if kind == "clustered":
        log |= {"query": [f"q{10 - x}" for x in rng.integers(0, 7, 300)]}
    if kind == "choices":  # one of each list is clicked
        log = {name: column for name, column in log.items() if name != "position"}
        log["clicked"] = [
            int(place == 0 or log["session"][place - 1] != one) for place, one in enumerate(log["session"])
        ]
    if kind == "ratings":
        log["rating"] = log.pop("rank")
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    reading = {"kind": kind} if kind in ("choices", "ratings") else {}
    prefs = cs.read(frame, **reading)
    monkeypatch.setattr(counted, "read", None)
    monkeypatch.setattr(counted, "_Task", None)
    asked = {"surrogates": ["ranknet", "default", "gain-regression"], "replicates": 20, **asked}
    ours, plain = cs.audit(frame, reading=reading, **asked), cc.audit(prefs, **asked)
    assert json.dumps(ours.to_dict(), default=str) == json.dumps(plain.to_dict(), default=str)
    for one, other in ((ours.edges, plain.edges), (ours.orders, plain.orders), (ours.ask, plain.ask)):
        assert one == other


def test_a_query_that_no_task_holds_among_others_is_audited_by_a_task_of_its_own(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concordant import spark as cs
    from concordant.apps.spark import audited, counted

    monkeypatch.setattr(counted, "HERE", 0)
    log = log_of("votes", np.random.default_rng(7))
    log["query"] = ["large" if place < 150 else query for place, query in enumerate(log["query"])]
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    sized = audited.JudgedQueries.sized
    monkeypatch.setattr(audited.JudgedQueries, "sized", lambda self, **more: sized(self, most=25, **more))
    ours, plain = cs.audit(frame, replicates=20), cc.audit(cc.read(log), replicates=20)
    assert json.dumps(ours.to_dict(), default=str) == json.dumps(plain.to_dict(), default=str)


def test_a_task_refuses_as_memory_does(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant import spark as cs
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    frame = spark.createDataFrame(pa.table(log_of("votes", np.random.default_rng(4))))
    with pytest.raises(cc.UsageError, match="replicates must be an integer of at least 0, not -3"):
        cs.audit(frame, replicates=-3)
    with pytest.raises(Idle, match="only the bootstrap draws replicates") as refused:
        cs.report(frame, replicates=50)
    assert refused.value.option == "replicates"
    with pytest.raises(cc.UsageError, match="top must be at least 1 and below the 6 items of the largest query, not 6"):
        cs.audit(frame, top=6)
    monkeypatch.setattr(counted, "MOST_ALONE", 100)
    with pytest.raises(cc.UsageError, match=r"more than 100 distinct judgments .* which no task holds"):
        cs.report(frame)
    monkeypatch.setattr(counted, "MOST_ALONE", 10)
    with pytest.raises(cc.UsageError, match=r"more than 10 distinct judgments .* which no task holds"):
        cs.audit(frame.select("winner", "loser"))
    wrong = spark.createDataFrame(pa.table({"winner": ["a", "b"], "loser": ["a", "a"]}))
    with pytest.raises(cc.InputError, match="1 of 2 rows compare an item with itself"):
        cs.audit(wrong)
    kept = {"winner": ["a", "b", "b"], "loser": ["a", "a", "c"]}
    some = cs.audit(spark.createDataFrame(pa.table(kept)), reading={"on_error": "skip"}, replicates=0)
    assert some.queries["judgments"].to_pylist() == [2]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("more", [[], ["--on-error", "skip"], ["--fragility"]])
def test_the_command_audits_where_the_rows_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    log = log_of("votes", np.random.default_rng(8))
    log["judge"] = [f"j{place % 7}" for place in range(300)]
    if "skip" in more:
        log["loser"][5] = log["winner"][5]
    if "--fragility" in more:
        del log["query"]
    csv.write_csv(pa.table(log), name := str(tmp_path / "votes.csv"))
    said = []
    for engine in (["--engine", "spark"], []):
        asked = ["--replicates", "20", "--surrogate", "ranknet", *more, *engine]
        said.append((exit_status("audit", name, *asked), capsys.readouterr()))
    (ours, one), (plain, other) = said
    assert ours == plain == 0 and one.out == other.out
    assert one.err == other.err.replace("line 7", "1 row")  # of which Spark knows no number
    (tmp_path / "wrong.csv").write_text("winner,loser\na,a\nb,c\n")
    assert exit_status("audit", tmp_path / "wrong.csv", "--engine", "spark") == 2
    assert "1 of 2 rows compare an item with itself" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("command", ["audit", "report"])
@pytest.mark.parametrize("kind", ["orders", "scattered", "votes"])
def test_the_command_says_how_the_log_was_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, command: str
) -> None:
    """Rankings that are empty or leave items out, queries of one pair, labels that look alike."""
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    monkeypatch.setattr(counted, "read", None)
    log = log_of(kind, np.random.default_rng(8))
    if kind == "orders":
        pairs = zip(log["judgment"], log["rank"], strict=True)
        log["rank"] = [None if judgment == 3 else rank for judgment, rank in pairs]
    if kind == "votes":
        log["winner"][:3] = ["M4 " if loser != "m4" else "m5" for loser in log["loser"][:3]]
    csv.write_csv(pa.table(log), name := str(tmp_path / "votes.csv"))
    more = ["--replicates", "20"] if command == "audit" else ["--no-audit", "-o", tmp_path / "page.html"]
    said = []
    for engine in (["--engine", "spark"], []):
        assert exit_status(command, name, *more, *engine) == 0
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    noted = {"orders": "1 of 60 rankings ranks nothing", "scattered": "hold one pair", "votes": "'M4 '"}
    assert noted[kind] in said[0]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("more", [[], ["--cluster", "judge", "--no-audit"], ["--on-error", "skip", "--title", "ours"]])
def test_the_command_has_a_large_log_reported_by_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    from concordant.apps.commands import on_spark
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    monkeypatch.setattr(counted, "read", None)
    tasks = list[Any]()
    by_a_task = on_spark.by_a_task
    monkeypatch.setattr(on_spark, "by_a_task", lambda *given: tasks.append(given) or by_a_task(*given))
    log = log_of("votes", np.random.default_rng(9))
    log["judge"] = [f"j{place % 7}" for place in range(300)]
    if "skip" in more:
        log["loser"][5] = log["winner"][5]
    csv.write_csv(pa.table(log), name := str(tmp_path / "votes.csv"))
    found = []
    for place, engine in enumerate([["--engine", "spark"], []]):
        page = tmp_path / f"{place}.html"
        assert exit_status("report", name, *more, *engine, "-o", page) == 0
        said = capsys.readouterr().err.replace(str(page), "page.html")
        data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(encoding="utf-8"))
        assert data is not None
        found.append((json.loads(data[1].replace(" --engine spark", "")), said.replace("line 7", "1 row")))
    assert len(tasks) == 1
    assert found[0] == found[1]


def test_a_log_that_no_task_reads_comes_to_the_driver(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant import spark as cs
    from concordant.apps.spark import counted

    monkeypatch.setattr(counted, "HERE", 0)
    votes = {"id": ["x", "y", "x"], "winner": ["a", "b", "a"], "loser": ["b", "c", "b"]}
    reading = {"columns": {"id": "id"}}
    ours = cs.audit(spark.createDataFrame(pa.table(votes)), reading=reading, replicates=0)
    plain = cc.audit(cc.read(votes, **reading), replicates=0)
    assert ours.to_dict()["queries"] == plain.to_dict()["queries"]


def test_more_rows_than_the_driver_takes_are_told_with_their_size() -> None:
    from pyspark.errors import PySparkException

    from concordant.io.engines.spark import told
    from concordant.io.log.tables import from_object

    said = "Total size of serialized results of 12 tasks (1088.0 MiB) is bigger than spark.driver.maxResultSize 1 GiB."
    with (
        pytest.raises(cc.InputError, match=r"take 1088.0 MiB, more than the driver is given at once"),
        told(from_object(pa.table({"winner": ["x"], "loser": ["y"]}))),
    ):
        raise PySparkException(f"Job aborted due to stage failure: {said}")
