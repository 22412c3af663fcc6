"""The values of ``value_cases`` read by Spark: the truth, or a refusal, as by every engine."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import concordant as cc
from concordant.apps.commands.options import command_of
from concordant.errors import InputError
from concordant.io.layouts import Reading
from concordant.io.read import read, read_log
from concordant.learning.targets.mean_targets import mean_targets
from spark_session import spark_tests, why_not
from value_cases import BAD, CASES, Case, check

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import counted
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking


def read_or_refusal(case: Case, source: Any, session: Any) -> Reading | str:
    """What was read, or the sentence that refuses it."""
    try:
        return read_log(source, engine=session, **dict(case.options))
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_spark_gives_the_truth(spark: Any, case: Case, tmp_path: Path) -> None:
    files = case.write(tmp_path)
    files.pop("Arrow", None)
    for name, path in files.items():
        check(case, read_or_refusal(case, path, spark), f"{name} by Spark")
    if not isinstance(case.log, bytes):
        check(case, read_or_refusal(case, pa.table(case.log), spark), "table by Spark")


PLACES = re.compile(r" \((?:(?:line|row) \d|\d[\d,]* rows?).*?\)(?=[.;])")
"""Where the rows to blame stand, which have numbers in memory only, and which values they hold."""
BY_TASKS = ("beyond 9", "add up", "real number of", "not an integer", "not a number", "not finite", "have no count")
ONE_EACH = {words: next(case for case in CASES if case.refused and words in " ".join(case.truth)) for words in BY_TASKS}


def ranked_by_tasks(source: Path, spark: Any, options: dict[str, Any]) -> Any:
    judged = JudgedQueries.of(source, spark, **options)
    with judged.explained():
        frame = ranked(judged, "bradley-terry", interval="none")
    return ranking_of(frame, judged, "bradley-terry", "none", 0.95)


FILES = [Case(name, text, ("",)) for name, text in BAD.items()]
FILES.append(Case("a line that is no JSON", b'{"winner": "a", "loser": "b"}\n{"winner": "a"\n', ("",), ending=".jsonl"))


@pytest.mark.parametrize("case", [*ONE_EACH.values(), *FILES], ids=lambda case: case.name)
def test_what_tasks_refuse_is_said_in_the_words_of_memory(spark: Any, case: Case, tmp_path: Path) -> None:
    source = next(iter(case.write(tmp_path).values()))
    with pytest.raises(InputError) as in_memory:
        read(source, **dict(case.options))
    with pytest.raises(InputError) as here:
        ranked_by_tasks(source, spark, dict(case.options))
    assert PLACES.sub("", str(here.value)) == PLACES.sub("", str(in_memory.value))


MOMENTS = [datetime(2026, 3, 29, hour, 30, 0, 5) for hour in (0, 1, 2)]


def dated(folder: Path) -> Path:
    """Votes of which the query may be a date, an instant or what a clock says."""
    times = {
        "date": pa.array([date(2026, 3, 28), date(2026, 3, 29), date(2026, 3, 30)]),
        "instant": pa.array([moment.replace(tzinfo=UTC) for moment in MOMENTS], pa.timestamp("us", "Europe/Berlin")),
        "clock": pa.array(MOMENTS, pa.timestamp("us")),
        "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns")),
    }
    path = folder / "dated.parquet"
    pa.parquet.write_table(pa.table({"winner": ["a"] * 3, "loser": ["b"] * 3, **times}), path)
    return path


def labels(path: Path, session: Any) -> dict[str, list[list[str]]]:
    """The queries by each column: as in memory, counted on Spark, ranked by its tasks."""
    found = {}
    for name in ("date", "instant", "clock", "nanoseconds"):
        reading: dict[str, Any] = {"columns": {"query": name}, "pool": False}
        here, counted = (read(path, engine=engine, **reading).queries.tolist() for engine in ("memory", session))
        judged = JudgedQueries.of(path, session, columns={"query": name})
        tasks = ranked(judged, "bradley-terry", interval="none").select("query").distinct().toArrow()
        found[name] = [here, counted, sorted(tasks["query"].to_pylist())]
    return found


def test_times_are_labels_whatever_the_time_zone(spark: Any, tmp_path: Path) -> None:
    """A session of Spark Connect has to be told how nanoseconds are read."""
    given = {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.legacy.parquet.nanosAsLong": "true"}
    for name, value in given.items():
        spark.conf.set(name, value)
    try:
        for name, (here, counted, ranked) in labels(dated(tmp_path), spark).items():
            assert len(here) == 3 and counted == here and ranked == here, name
    finally:
        for name in given:
            spark.conf.unset(name)


LOG = {"query": ["p", "p", "q", "q "], "winner": ["a", "b", "a", "a"], "loser": ["b", " a", "B", "b"]}
SAID = {"items": "4 items differ from others only in white space, case", "queries": "2 queries differ from others"}


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_labels_that_look_alike_are_told_of_the_whole_log(spark: Any, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"votes{ending}"
    if ending == ".parquet":
        pa.parquet.write_table(pa.table(LOG), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in pa.table(LOG).to_pylist()))
    judged = JudgedQueries.of(path, spark)
    board = ranking_of(ranked(judged, "bradley-terry", interval="none"), judged, "bradley-terry", "none", 0.95)
    _, notes = write_ranking(ranked(judged, "bradley-terry", interval="none"), judged, str(tmp_path / "out"))
    for said in (board.notes, notes):
        found = [note for note in said if "differ from others" in note]
        assert len(found) == 2
        assert found[0].startswith(SAID["items"])
        assert found[1].startswith(SAID["queries"])
    assert board.to_arrow()["rank_lower"].null_count == len(board)


@pytest.mark.usefixtures("spark")
def test_the_command_tells_them_too(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = zip(*LOG.values(), strict=True)
    path.write_text("query,winner,loser\n" + "".join(",".join(row) + "\n" for row in rows))
    said = CliRunner().invoke(command_of("rank"), [str(path), "--engine", "spark", "--interval", "none"])
    assert said.exit_code == 0
    for words in SAID.values():
        assert said.stderr.count(words) == 1


# -- what only all of a log tells ----------------------------------------------------------------------------------
def lines(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def same(
    source: Any, spark: Any, structure: str = "bradley-terry", *, task: int = 1, most: int = 1 << 22, **reading: Any
) -> Any:
    """The ranking by tasks of few rows, which is that of memory; with what is noted of it."""
    judged = JudgedQueries.of(source, spark, task=task, most=most, **reading)
    assert judged.buckets > 1 or not judged.by_query
    ours = ranking_of(ranked(judged, structure, interval="none"), judged, structure, "none", 0.95)
    mine, others = ours.to_arrow(), cc.rank(cc.read(source, **reading), structure, interval="none").to_arrow()
    for name in ("query", "item", "rank", "judgments", "flag"):
        assert mine[name].to_pylist() == others[name].to_pylist(), name
    np.testing.assert_allclose(mine["score"], others["score"], rtol=0, atol=1e-10)
    return ours, judged


def refused_alike(source: Any, spark: Any, task: int = 1, most: int = 1 << 22, **reading: Any) -> str:
    """What memory refuses, which tasks of few rows refuse in its words."""
    with pytest.raises(InputError) as in_memory:
        read(source, **reading)
    with pytest.raises(InputError) as here:
        ranked_by_tasks(source, spark, {"task": task, "most": most, **reading})
    assert PLACES.sub("", str(here.value)) == PLACES.sub("", str(in_memory.value))
    return str(in_memory.value)


def shared(outcomes: list[list[str]], number: int = 160) -> dict[str, list[str]]:
    """Votes in eight queries, each with its own outcomes."""
    rng = np.random.default_rng(5)
    left = rng.integers(0, 5, number)
    right = (left + rng.integers(1, 5, number)) % 5
    query = np.arange(number) % 8
    said = [str(rng.choice(outcomes[one % len(outcomes)])) for one in query]
    names = [[f"m{item}" for item in side] for side in (left, right)]
    return {"query": [f"q{one}" for one in query], "left": names[0], "right": names[1], "outcome": said}


def test_all_outcomes_tell_whether_they_are_shares_of_a_win(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries with and without fractions, in tables and JSON; a query that is divided; targets; an audit by tasks."""
    log = shared([["0", "1"], ["0.25", "0.5", "1"]])
    numbers = [{**row, "outcome": float(row["outcome"])} for row in pa.table(log).to_pylist()]
    for source in (pa.table(log), lines(numbers, tmp_path / "votes.jsonl")):
        ours, _ = same(source, spark)
        (note,) = (note for note in ours.notes if "share of a win" in note)
        assert note in cc.read(source).notes and note.code == "read as shares"
    one = pa.table({name: values for name, values in log.items() if name != "query"})
    ours, judged = same(one, spark, most=20)
    assert judged.large and any("share of a win" in note for note in ours.notes)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    made = cs.targets(frame, structure="log-odds", order="all").toArrow()
    known = mean_targets(cc.read(log), "log-odds", order="all").centred()
    np.testing.assert_allclose(
        made.sort_by([("query", "ascending"), ("item", "ascending")])["target"], known, rtol=0, atol=1e-12
    )
    monkeypatch.setattr(counted, "HERE", 0)
    asked: dict[str, Any] = {"surrogates": ["ranknet"], "replicates": 5}
    ours, plain = cs.audit(frame, **asked), cc.audit(cc.read(log), **asked)
    assert json.dumps(ours.to_dict()["queries"], default=str) == json.dumps(plain.to_dict()["queries"], default=str)


def test_numbers_that_are_no_shares_are_refused_by_all_of_the_log(spark: Any) -> None:
    log = shared([["0.5"], ["2"], ["7", "1"], ["-3", "2.0"]])
    said = refused_alike(pa.table(log), spark)
    assert "4 values do not (-3.0, 2.0, 2.0 and 1 more)" in said


@pytest.mark.parametrize("word", ["a", "left", 1])
def test_words_for_a_side_are_items_elsewhere_in_json(spark: Any, tmp_path: Path, word: Any) -> None:
    """Each query by itself would read the word as the side; one of them has an item of that name."""
    x, y = (5, 7) if word == 1 else ("x", "y")
    rows = [{"query": f"q{n}", "left": x, "right": y, "outcome": word} for n in range(8)]
    rows.append({"query": "p", "left": word, "right": y, "outcome": word})
    said = refused_alike(lines(rows, tmp_path / "v.jsonl"), spark)
    assert "8 of 9 rows have an" in said


# -- labels in JSON ------------------------------------------------------------------------------------------------
def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def test_conversations_are_items_in_json(spark: Any, tmp_path: Path) -> None:
    """In lines and in an array; as queries, too; ranked, made targets of and fitted."""
    rng = np.random.default_rng(6)
    talks = [talk("hi", answer) for answer in ("yes", "no", 'a "b"\n', "zwölf", "", "yes " * 30)]
    pairs = [rng.choice(6, 2, replace=False) for _ in range(90)]
    rows = [
        {"prompt_id": f"q{n % 5}", "chosen": talks[one], "rejected": talks[other]}
        for n, (one, other) in enumerate(pairs)
    ]
    source = lines(rows, tmp_path / "pairs.jsonl")
    ours, _ = same(source, spark)
    assert any(item.startswith("no #") for item in ours.items.tolist())
    turned = [{**row, "prompt_id": [dict(reversed(one.items())) for one in talks[n % 2]]} for n, row in enumerate(rows)]
    (tmp_path / "pairs.json").write_text(json.dumps([{**row, "prompt_id": talks[n % 2]} for n, row in enumerate(rows)]))
    whole, _ = same(tmp_path / "pairs.json", spark)
    mixed = [one if n % 3 else {**one, "prompt_id": talks[n % 2]} for n, one in enumerate(turned)]
    same(lines(mixed, tmp_path / "turned.jsonl"), spark, most=20)
    assert len(whole.queries) == 2
    made = cs.targets(source, session=spark, structure="log-odds", order="all").toArrow()
    known = mean_targets(cc.read(source), "log-odds", order="all").centred()
    made = made.sort_by([("query", "ascending"), ("item", "ascending")])
    np.testing.assert_allclose(made["target"], known, rtol=0, atol=1e-12)
    features = {"item": ours.items.tolist(), "x": rng.normal(size=len(ours.items))}
    asked: dict[str, Any] = {"structure": "bradley-terry", "order": "all"}
    plain = cc.AggregationRanker(**asked).fit(features, cc.read(source))
    fitted = cs.fit(cc.AggregationRanker(**asked), source, spark.createDataFrame(pa.table(features)), session=spark)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-7)


def test_labels_of_two_kinds_in_json(spark: Any, tmp_path: Path) -> None:
    """Only texts beside integers are a mixture; what is no label is refused, or left out, row by row."""
    rows: list[dict[str, Any]] = [
        {"query": f"q{n % 5}", "winner": f"m{n % 3}", "loser": f"m{(n + 1) % 3}", "user": f"u{n % 4}"}
        for n in range(30)
    ]
    odd = [
        {**rows[0], "query": True},
        {**rows[1], "query": 1.5},
        {**rows[2], "winner": False},
        {**rows[3], "loser": [1]},
    ]
    source = lines([*rows, *odd], tmp_path / "odd.jsonl")
    assert "2 of 34 rows have a query that is neither a text nor an integer" in refused_alike(source, spark)
    same(source, spark, on_error="skip")
    features = {"item": ["m0", "m1", "m2"], "x": [0.5, 1.0, -1.0]}
    numbered = [row | ({"query": n % 5} if isinstance(row["query"], str) else {}) for n, row in enumerate(rows + odd)]
    source = lines(numbered, tmp_path / "numbered.jsonl")
    same(source, spark, on_error="skip")
    asked: dict[str, Any] = {"structure": "bradley-terry", "order": "all"}
    plain = cc.AggregationRanker(**asked).fit(features, cc.read(source, on_error="skip"))
    frame = spark.createDataFrame(pa.table(features))
    fitted = cs.fit(cc.AggregationRanker(**asked), source, frame, session=spark, on_error="skip")
    np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-7)
    mixtures: dict[str, dict[str, Any]] = {"cluster": {"cluster": "user"}, "query": {}, "loser": {}}
    for role, reading in mixtures.items():
        mixed = {**rows[4], {"cluster": "user"}.get(role, role): 5, "query": 5 if role == "query" else "alone"}
        source = lines([*rows, mixed], tmp_path / "mixed.jsonl")
        assert f"the column of {role} mixes texts" in refused_alike(source, spark, **reading)


# -- rows without a query, and queries that are instants -----------------------------------------------------------
def test_many_rows_without_a_query_are_no_query(spark: Any, tmp_path: Path) -> None:
    """More of them than a task holds of one query; in a file that tasks read themselves, too; of lists."""
    rng = np.random.default_rng(7)
    winner = rng.integers(0, 60, 400)
    query = [None if place % 4 else f"q{place % 3}" for place in range(400)]
    votes = pa.table({"query": query, "winner": winner, "loser": (winner + 1 + rng.integers(0, 50, 400)) % 61})
    pa.parquet.write_table(votes, tmp_path / "v.parquet")
    orders = [(query[n], n, f"i{item}", place) for n in range(200) for place, item in enumerate(rng.permutation(3), 1)]
    lists = pa.table(dict(zip(("query", "judge", "item", "rank"), zip(*orders, strict=True), strict=True)))
    for source, words in ((votes, "300 of 400 rows"), (tmp_path / "v.parquet", ""), (lists, "150 of 200 rankings")):
        assert f"{words} have no query" in refused_alike(source, spark, task=60, most=100)
        same(source, spark, task=60, most=100, on_error="skip")


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The driver's clock shows another time than that of the session, and one hour of it twice."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_queries_of_one_instant_that_no_task_can_hold(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    hours = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1, 2)]  # the first two at 2:30 in Berlin
    when = [hours[0 if n < 100 else 1 if n < 200 else 2] for n in range(205)]
    winner = rng.integers(0, 12, 205)
    columns = {"winner": winner, "loser": (winner + rng.integers(1, 12, 205)) % 12}
    columns["instant"] = pa.array(when, pa.timestamp("us", "UTC"))
    columns["clock"] = pa.array([one.replace(tzinfo=None) for one in when], pa.timestamp("us"))
    pa.parquet.write_table(pa.table(columns), tmp_path / "v.parquet")
    for name in ("instant", "clock"):
        for structure in ("bradley-terry", "log-odds"):
            _, judged = same(tmp_path / "v.parquet", spark, structure, task=30, most=30, columns={"query": name})
            assert len(judged.large) == 2
    label = [one.replace(tzinfo=None).isoformat() for one in hours]
    features = {"query": np.repeat(label, 12), "item": np.tile(np.arange(12), 3), "x": rng.normal(size=36)}
    asked: dict[str, Any] = {"structure": "bradley-terry", "order": "all"}
    reading = {"columns": {"query": "clock"}}
    plain = cc.AggregationRanker(**asked).fit(features, cc.read(tmp_path / "v.parquet", **reading))
    frame = spark.createDataFrame(pa.table(features))
    fitted = cs.fit(cc.AggregationRanker(**asked), tmp_path / "v.parquet", frame, session=spark, **reading)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-7)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        far = pa.array([400_000_000_000_000_000, 0], pa.int64()).cast(kind)
        pa.parquet.write_table(pa.table({"query": far, "winner": [1, 2], "loser": [2, 1]}), tmp_path / "far.parquet")
        with pytest.raises(InputError, match=r"the column of query holds timestamp.* beyond the years 1 to 9999$"):
            JudgedQueries.of(tmp_path / "far.parquet", spark)
