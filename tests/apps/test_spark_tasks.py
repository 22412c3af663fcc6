"""The tasks of Spark read what every engine reads: formats, kinds, bad rows with samples; failures end as one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.ranking import intervals
from running import exit_status
from spark_session import classic, spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark import interval_methods
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking
    from concordant.apps.spark.telling import told

Rows = dict[str, list[Any]]


def shown(kind: str) -> Rows:
    """Sixty lists of four items in five queries."""
    rng = np.random.default_rng(6)
    rows = []
    for number in range(60):
        click = int(rng.integers(-1, 4))
        for place, item in enumerate(rng.permutation(4)):
            rows.append((f"q{number % 5}", number, place + 1, f"i{item}", int(place == click), float(place // 2)))
    query, number, place, item, clicked, value = (list(column) for column in zip(*rows, strict=True))
    columns: dict[str, Rows] = {
        "selections": {"session": number, "position": place, "item": item, "clicked": clicked},
        "choices": {"session": number, "item": item, "chosen": clicked},
        "orders": {"judgment": number, "item": item, "rank": place},
        "ratings": {"judgment": number, "item": item, "rating": value},
    }
    return {"query": query, **columns[kind]}


def votes() -> Rows:
    """Comparisons of texts and three outcomes in five queries."""
    rng = np.random.default_rng(7)
    first = rng.integers(0, 4, 200)
    second = (first + rng.integers(1, 4, 200)) % 4
    outcome = np.array(["model_a", "model_b", "tie"])[rng.integers(0, 3, 200)]
    return {
        "query": [f"q{number}" for number in rng.integers(0, 5, 200)],
        "model_a": [f"i{number}" for number in first],
        "model_b": [f"i{number}" for number in second],
        "winner": outcome.tolist(),
    }


def write(rows: Rows, path: Path) -> Path:
    table = pa.table(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path)
    return path


def same(source: Any, spark: Any, structure: str, interval: str = "none", *, reading: Any = None, **asked: Any) -> None:
    """Few rows a task, so that there are several; the ranking is that of ``rank`` in memory."""
    reading = reading or {}
    judged = JudgedQueries.of(source, spark, task=70, **reading)
    assert judged.buckets > 1
    ours = ranking_of(ranked(judged, structure, interval=interval, **asked), judged, structure, interval, 0.95)
    theirs = cc.rank(cc.read(source, **reading), structure, interval=interval, **asked)
    assert ours.interval == theirs.interval
    mine, others = ours.to_arrow(), theirs.to_arrow()
    assert mine.column_names == others.column_names
    for name in others.column_names:
        if pa.types.is_floating(others.schema.field(name).type):
            np.testing.assert_allclose(mine[name].to_numpy(), others[name].to_numpy(), rtol=0, atol=1e-10)
        else:
            assert mine[name].to_pylist() == others[name].to_pylist(), name


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("kind", "structure"),
    [
        ("comparisons", "bradley-terry"),
        ("selections", "bradley-terry"),
        ("choices", "bradley-terry"),
        ("orders", "plackett-luce"),
        ("ratings", "borda"),
    ],
)
def test_kinds_in_text_files(spark: Any, tmp_path: Path, ending: str, kind: str, structure: str) -> None:
    rows = votes() if kind == "comparisons" else shown(kind)
    same(write(rows, tmp_path / f"v.{ending}"), spark, structure)


def test_quasi_standard_errors_and_bootstraps(spark: Any) -> None:
    table = pa.table(votes())
    same(table, spark, "bradley-terry", "sandwich", quasi=True)
    same(table, spark, "borda", "auto", replicates=40)


@pytest.mark.parametrize(("kind", "structure"), [("comparisons", "borda"), ("orders", "log-odds")])
@pytest.mark.parametrize("dear", [False, True])
def test_as_many_replicates_as_are_cheap(
    kind: str, structure: str, dear: bool, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a likelihood ``auto`` is a bootstrap by how much the whole log holds, which no task knows."""
    table = pa.table(votes() if kind == "comparisons" else shown(kind))
    monkeypatch.setattr(interval_methods, "CHEAP", 0)
    monkeypatch.setattr(intervals, "FEWEST", 45)
    monkeypatch.setattr(intervals, "CHEAP", 0 if dear else 20_000)
    monkeypatch.setattr(intervals, "DEAR", 0 if dear else 1e8)
    theirs = cc.rank(cc.read(table), structure)
    assert (theirs.interval == "none") is dear
    judged = JudgedQueries.of(table, spark, task=70)
    ours = ranking_of(ranked(judged, structure), judged, structure, "auto", 0.95)
    said = [[note for note in map(str, board.notes) if "bootstrap" in note] for board in (ours, theirs)]
    assert said[0] == said[1]
    assert len(said[0]) == 1
    _, notes = write_ranking(ranked(judged, structure), judged, str(tmp_path / "folder"), interval="auto")
    assert said[0][0] in notes
    same(table, spark, structure, "auto")


# -- values ----------------------------------------------------------------------------------------------------------
def test_integers_without_sign(spark: Any, tmp_path: Path) -> None:
    big = pa.array([2**64 - 1, 5, 7], pa.uint64())
    small = pa.array([9, 5, 7], pa.uint64())
    for columns, fine in (({"query": small, "winner": small}, True), ({"query": small, "winner": big}, False)):
        path = tmp_path / f"{fine}.parquet"
        pa.parquet.write_table(pa.table({**columns, "loser": [1, 2, 3]}), path)
        judged = JudgedQueries.of(path, spark)
        if fine:
            frame = ranked(judged, "bradley-terry", interval="none")
            ours = ranking_of(frame, judged, "bradley-terry", "none", 0.95).to_arrow()
            theirs = cc.rank(cc.read(path), interval="none").to_arrow()
            assert ours.select(["query", "item", "rank"]).equals(theirs.select(["query", "item", "rank"]))
        else:
            with pytest.raises(cc.InputError) as in_memory:
                cc.read(path)
            with pytest.raises(cc.InputError) as here, judged.explained():
                ranked(judged, "bradley-terry", interval="none").toArrow()
            assert str(here.value) == str(in_memory.value)


def test_the_fit_of_the_model_is_told_of_all_queries_together(spark: Any, tmp_path: Path) -> None:
    """Twelve logs of Theorem 3 in several tasks: one sentence with the numbers of all, p-values as in memory."""
    path = tmp_path / "votes.csv"
    one = [("1", "2", 250), ("2", "3", 10), ("1", "3", 500), ("3", "1", 240)]
    rows = [f"q{q:02},{a},{b},{count}\n" for q in range(12) for a, b, count in one]
    path.write_text("query,winner,loser,count\n" + "".join(rows))
    judged = JudgedQueries.of(path, spark, task=12)
    assert judged.buckets > 1
    ours = ranking_of(ranked(judged, "bradley-terry", interval="none"), judged, "bradley-terry", "none", 0.95)
    theirs = cc.rank(cc.read(path), interval="none")
    assert ours.lack_of_fit is not None and theirs.lack_of_fit is not None
    assert (ours.lack_of_fit < 0.01).all() and (theirs.lack_of_fit < 0.01).all()
    told = [note for note in ours.notes if "lack of fit" in note]
    assert told == [note for note in theirs.notes if "lack of fit" in note] and "in 12 of 12 queries" in told[0]
    assert len([note for note in ours.notes if "was not looked at" in note]) == 1
    assert not [note for note in ours.notes if "majority of" in note]


# -- rows that are refused -------------------------------------------------------------------------------------------
def bad_votes() -> Rows:
    rows = votes()
    for place, word in ((3, "nobody"), (50, "nobody"), (120, "neither")):
        rows["winner"][place] = word
    rows["model_b"][7] = rows["model_a"][7]
    return rows


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_refused_rows_are_shown(spark: Any, tmp_path: Path, ending: str) -> None:
    path = write(bad_votes(), tmp_path / f"v.{ending}")
    judged = JudgedQueries.of(path, spark, task=70)
    with pytest.raises(cc.InputError) as caught:
        write_ranking(ranked(judged, "bradley-terry", interval="none"), judged, str(tmp_path / "out"))
    assert "3 of 200 rows have an unknown outcome (2 rows: 'nobody'; 1 row: 'neither')." in str(caught.value)
    assert f"1 of 200 rows compare an item with itself (1 row: '{bad_votes()['model_a'][7]}')." in str(caught.value)
    assert not (tmp_path / "out").exists()
    same(path, spark, "bradley-terry", reading={"on_error": "skip"})


def test_refused_lists_are_shown(spark: Any) -> None:
    rows = shown("ratings")
    rows["rating"] = [*map(str, rows["rating"][:-2]), "good", "good"]
    judged = JudgedQueries.of(pa.table(rows), spark, task=70)
    assert [(each.number, each.samples) for each in judged.rejects()] == [(2, (("2 rows", "good"),))]
    rows = shown("selections")
    rows["clicked"][:2] = 1, 1
    table = pa.table(rows)
    (many,) = JudgedQueries.of(table, spark, task=70, clicks="raise").rejects()
    assert (many.number, many.total, many.unit, many.samples) == (1, 60, "lists", (("1 list", 0),))
    for clicks in ("first", "all"):
        same(table, spark, "bradley-terry", reading={"clicks": clicks})


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the command in this process; return exit status and stderr."""

    def command(*arguments: object) -> tuple[int, str]:
        status = exit_status(*arguments)
        return status, capsys.readouterr().err

    return command


@pytest.mark.usefixtures("spark")
def test_the_command_with_bad_rows(tmp_path: Path, run: Callable[..., tuple[int, str]]) -> None:
    path = write(bad_votes(), tmp_path / "v.csv")
    command = ("rank", path, "--engine", "spark", "--interval", "none", "-o")
    status, said = run(*command, tmp_path / "out")
    assert status == 2
    assert said.startswith("error: ") and said.count("\n") == 1 and "2 rows: 'nobody'" in said
    assert not (tmp_path / "out").exists()
    status, said = run(*command, tmp_path / "out", "--on-error", "skip")
    assert status == 0
    assert "skipped: v.csv: 1 of 200 rows compare an item with itself" in said
    assert ". 3 of 200 rows have an unknown outcome" in said  # in the order of memory
    written = pa.parquet.read_table(tmp_path / "out")
    assert len(written) == len(cc.rank(cc.read(path, on_error="skip"), interval="none"))


@pytest.mark.parametrize("way", ["--stream", "--in-memory"])
def test_scoring_on_spark_has_no_way_of_one_machine(run: Callable[..., tuple[int, str]], way: str) -> None:
    status, said = run("score", "-m", "model", "-f", "x.csv", "--engine", "spark", way)
    assert (status, said.count("\n")) == (2, 1)
    assert said.startswith("error: --stream and --in-memory are for one machine")


# -- what fails in a task or in Java ---------------------------------------------------------------------------------
def test_failures_are_one_line(spark: Any) -> None:
    frame = spark.range(3)

    def dividing(batches: Any) -> Any:  # inside, so that it is sent whole
        for batch in batches:
            yield batch.slice(0, 1 // 0)

    def dying(batches: Any) -> Any:
        for _ in batches:
            os._exit(7)
        yield from ()

    for work, line in (
        (lambda: frame.mapInArrow(dividing, frame.schema).collect(), "log: Spark: a task failed: ZeroDivisionError: "),
        (lambda: frame.mapInArrow(dying, frame.schema).toArrow(), "log: Spark: a Python worker ended without a word"),
        (lambda: spark.sql("SELECT CAST('x' AS INT)").toArrow(), "log: Spark: "),
        (lambda: frame.selectExpr("1 / (id - id)").toArrow(), "log: Spark: "),
    ):
        with pytest.raises(cc.InputError) as caught, told("log"):
            work()
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


@classic
def test_the_memory_of_a_worker_is_bounded(spark: Any) -> None:
    """Spark sets what ``spark.executor.pyspark.memory`` gives a core as the limit of each worker (here by hand)."""
    frame = spark.range(1)

    def greedy(batches: Any) -> Any:
        for batch in batches:
            np.empty(1 << 32, np.int8)
            yield batch

    assert frame.mapInArrow(greedy, frame.schema).count() == 1
    spark.sparkContext.setLocalProperty("resource.pyspark.memory", "4000")
    try:
        with (
            pytest.raises(cc.InputError, match=r"needs more memory: raise spark\.executor\.pyspark\.memory"),
            told("x"),
        ):
            frame.mapInArrow(greedy, frame.schema).count()
    finally:
        spark.sparkContext.setLocalProperty("resource.pyspark.memory", None)
