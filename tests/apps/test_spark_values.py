"""The values of ``value_cases`` read by Spark: the truth, or a refusal, as by every engine."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from concordant.apps.commands.options import command_of
from concordant.errors import InputError
from concordant.io.layouts import Reading
from concordant.io.read import read, read_log
from spark_session import spark_tests, why_not
from value_cases import BAD, CASES, Case, check

pytestmark = spark_tests
if not why_not():
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
