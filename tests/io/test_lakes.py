"""Lakes as they lie: every engine reads what a plain reading finds, and says the same of it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant import Preferences, Store
from concordant.apps.commands import main
from concordant.errors import InputError, UsageError
from concordant.io.log.lakes import Several
from concordant.io.read import read_log
from lake_files import drawn_lake, plainly_read
from seeds import seed
from spark_session import spark_tests

FORMS = ("csv", "json", "parquet")


def oracle(rows: list[dict[str, Any]], query: str | None, cluster: str | None) -> Preferences:
    """The judgments of rows that have all that is asked for; integers beside texts are texts."""
    asked = ["winner", "loser", *filter(None, (query, cluster))]
    mixed = len({type(row[name]) for row in rows for name in ("winner", "loser")}) > 1
    rows = [row for row in rows if all(row.get(name) is not None for name in asked)]
    columns = {name: [row[name] for row in rows] for name in asked}
    if mixed:
        columns |= {name: list(map(str, columns[name])) for name in ("winner", "loser")}
    return Preferences.from_comparisons(
        columns["winner"],
        columns["loser"],
        query=columns[query] if query else None,
        cluster=columns[cluster] if cluster else None,
    )


def checked(number: int, form: str, folder: Path, engines: dict[str, Any]) -> int:
    """Draw a lake and hold each engine against the plain reading; return how many readings were compared."""
    random = np.random.default_rng([seed(21), number, FORMS.index(form)])
    root = folder / f"lake {number}"
    rows = drawn_lake(random, root, form)
    found = plainly_read(root)
    written = [{name: value if form != "csv" or value is None else str(value) for name, value in row.items()}
               for row in rows]  # fmt: skip
    same = [Counter(json.dumps({k: str(v) for k, v in r.items() if v is not None}, sort_keys=True) for r in side)
            for side in (written, found)]  # fmt: skip
    if not any(isinstance(row.get("seconds"), float) for row in found):
        assert same[0] == same[1]  # the plain reading reads what was written
    there = {name for row in found for name in row if row[name] is not None}
    compared = 0
    for query in (None, *sorted({"day", "lang"} & there)):
        for cluster in (None, *(["worker"] if "worker" in there else [])):
            expected = oracle(found, query, cluster)
            if not len(expected):
                continue
            said, rejects, notes = set(), set(), set()
            for engine in engines.values():
                columns = {"query": query} if query else {}
                reading = read_log(root, columns=columns, cluster=cluster, engine=engine, on_error="skip", pool=False)
                assert reading.preferences == expected
                assert reading.rows == len(found)
                said.add(tuple(map(str, reading.rejects)))
                rejects.add(reading.report())
                notes.add(reading.notes)
                compared += 1
            assert len(said) == len(rejects) == len(notes) == 1
    return compared


@pytest.mark.parametrize("form", FORMS)
def test_engines_read_what_a_plain_reading_finds(tmp_path: Path, form: str) -> None:
    engines = {"memory": "memory", "duckdb": "duckdb"}
    assert sum(checked(number, form, tmp_path, engines) for number in range(25)) > 50


def on_spark(test: Any) -> Any:
    """Mark a test that needs Spark."""
    for mark in spark_tests:
        test = mark(test)
    return test


@on_spark
@pytest.mark.parametrize("form", FORMS)
def test_spark_reads_the_same(tmp_path: Path, form: str, spark: Any) -> None:
    engines = {"duckdb": "duckdb", "spark": spark}
    assert sum(checked(number, form, tmp_path, engines) for number in range(100, 102)) > 1


# -- one thing at a time -------------------------------------------------------------------------------------------
def _csv(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _codes(reading: Any) -> list[str]:
    return [note.code for note in reading.notes]


VOTE = "winner,loser\na,b\n"
MOMENT = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)
LABELS = {  # values of a column, and the labels that they are
    "date": (pa.array([date(2026, 11, 25), date(2026, 1, 2)]), ["2026-11-25", "2026-01-02"]),
    "instant": (pa.array([MOMENT, MOMENT.replace(microsecond=5)], pa.timestamp("us", "Europe/Berlin")),
                ["2026-11-25T09:30:00Z", "2026-11-25T09:30:00.000005Z"]),
    "clock": (pa.array([MOMENT.replace(tzinfo=None)] * 2, pa.timestamp("ms")), ["2026-11-25T09:30:00"] * 2),
    "nanoseconds": (pa.array([MOMENT.replace(tzinfo=None)] * 2, pa.timestamp("ns")), ["2026-11-25T09:30:00"] * 2),
    "decimal": (pa.array([Decimal("1.50"), Decimal("0.0000001")], pa.decimal128(20, 7)), ["1.5000000", "0.0000001"]),
    "whole": (pa.array([Decimal(12), Decimal(10**30)], pa.decimal128(38, 0)), ["12", "1" + "0" * 30]),
}  # fmt: skip


def dated(folder: Path) -> Path:
    """Write two files with columns of every type that becomes a text where it is a label."""
    folder.mkdir()
    for place in range(2):
        table = pa.table(
            {"winner": ["a"], "loser": ["b"], **{name: one[0][place:][:1] for name, one in LABELS.items()}}
        )
        pa.parquet.write_table(table, folder / f"{place}.parquet")
    spark_like = pa.table({"winner": ["a"], "loser": ["b"], "old": pa.array([MOMENT.replace(tzinfo=None)])})
    (folder.parent / "old").mkdir()
    pa.parquet.write_table(spark_like, folder.parent / "old" / "0.parquet", use_deprecated_int96_timestamps=True)
    return folder


def labels_are_right(folder: Path, engine: Any) -> None:
    for name, (_, expected) in LABELS.items():
        for options in ({"columns": {"query": name}, "pool": False}, {"cluster": name}):
            prefs = read_log(folder, engine=engine, **options).preferences
            assert (prefs.queries if "columns" in options else prefs.clusters).tolist() == sorted({*expected})
    numbers = read_log(folder, engine=engine, covariates=["decimal", "whole"]).preferences
    assert numbers.covariates.tolist() == [[1.5, 12.0], [1e-7, 1e30]] or sorted(numbers.covariates.tolist()) == [
        [1e-7, 1e30], [1.5, 12.0]
    ]  # fmt: skip
    old = read_log(folder.parent / "old", engine=engine, columns={"query": "old"}, pool=False).preferences
    assert old.queries.tolist() == ["2026-11-25T09:30:00Z"]  # instants of 96 bits, as Spark and Hive write them


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_dates_instants_and_decimals_are_labels(tmp_path: Path, engine: str) -> None:
    labels_are_right(dated(tmp_path / "lake"), engine)


@on_spark
def test_dates_instants_and_decimals_are_labels_on_spark(tmp_path: Path, spark: Any) -> None:
    labels_are_right(dated(tmp_path / "lake"), spark)


def test_patterns_and_lists_name_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for day in ("01", "02", "11"):
        for lang in ("de", "en"):
            _csv(Path(f"lake/day=2026-11-{day}/lang={lang}/part-0.csv"), VOTE)
    whole = read_log("lake", columns={"query": "lang"}, pool=False)
    assert whole.preferences.queries.tolist() == ["de", "en"]
    files = sorted(map(str, Path("lake").rglob("*.csv")))
    for source in ("lake/day=*/lang=*/part-*.csv", "lake/**/*.csv", "lake/*", files, ["lake"], Several(files)):
        found = read_log(source, columns={"query": "lang"}, pool=False)
        assert found.preferences == whole.preferences
        assert found.rows == 6
    november = read_log("lake/day=2026-11-0*/", columns={"query": "day"}, pool=False)
    assert november.preferences.queries.tolist() == ["2026-11-01", "2026-11-02"]
    one = read_log("lake/day=2026-11-11/*/*.csv", columns={"query": "day"}, pool=False)  # one day is a column, too
    assert one.preferences.queries.tolist() == ["2026-11-11"]
    with pytest.raises(InputError, match=r"^no file matches lake/day=2027\*/x$"):
        read_log("lake/day=2027*/x")
    with pytest.raises(InputError, match=r"^no file matches sea/\*\.csv: there is no folder sea$"):
        read_log("sea/*.csv")
    with pytest.raises(UsageError, match=r"part-0.csv' is named twice; each counts once$"):
        read_log([files[0], "lake"])
    _csv(Path("odd[1].csv"), VOTE)  # what is there by its whole name is no pattern
    assert read_log("odd[1].csv").rows == 1


def test_the_names_of_folders_play_roles_where_they_are_named(tmp_path: Path) -> None:
    for weight, query in ((3, "p"), (5, "q")):
        _csv(tmp_path / f"query={query}" / f"weight={weight}" / "count=7" / "x.csv", VOTE)
    found = read_log(tmp_path, pool=False).preferences
    assert found.queries.tolist() == ["p", "q"]
    assert found.weight is None
    assert len(found) == 2
    weighed = read_log(tmp_path, columns={"weight": "weight", "count": "count"}, pool=False).preferences
    assert sorted(weighed.weight.tolist()) == [3.0, 5.0]
    assert len(weighed) == 14
    with pytest.raises(InputError, match=r"no column 'colour' \(asked for as query\); columns there: "):
        read_log(tmp_path, columns={"query": "colour"})


def test_files_that_are_no_part_of_it_are_told(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for name in ("a.csv", "b/c.csv"):
        _csv(lake / name, VOTE)
    _csv(lake / "b/d.csv.tmp", "winner,lo")
    _csv(lake / "b/e.csv._COPYING_", "winner,lo")
    _csv(lake / "b/_temporary/0/f.csv", "half")
    _csv(lake / ".g.csv", "half")
    _csv(lake / "h.csv", "")
    _csv(lake / "i.csv", "winner,loser,who\n")
    reading = read_log(lake)
    assert reading.rows == 2
    said = list(map(str, reading.notes))
    assert said[0] == "lake: 2 rows in 2 files"
    assert "lake: 2 files are not finished, by their names, and not read: 'b/d.csv.tmp', 'b/e.csv._COPYING_'" in said
    assert "lake: 1 of 4 files holds no rows: 'h.csv'" in said
    assert "lake: 1 of 3 files holds no rows: 'i.csv'" in said
    _csv(lake / "a.csv.gz", "x")
    with pytest.raises(InputError, match=r"'a.csv and a.csv.gz' seem to be the same, once packed and once not"):
        read_log(lake)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_votes_inside_a_column(tmp_path: Path, engine: str) -> None:
    rows = [
        {"id": n, "vote": {"winner": "a", "loser": "b", "by": {"name": f"w{n % 2}"}}, "label": "x"} for n in range(4)
    ]
    rows[3]["vote"] = None
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "parquet").mkdir()
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "parquet" / "x.parquet")
    for source in ("json", "json/x.jsonl", "parquet", "parquet/x.parquet"):
        reading = read_log(tmp_path / source, engine=engine, on_error="skip", cluster="vote.by.name")
        assert reading.preferences == Preferences.from_comparisons(["a"] * 3, ["b"] * 3, cluster=["w0", "w1", "w0"])
        assert reading.roles == {"winner": "vote.winner", "loser": "vote.loser", "cluster": "vote.by.name"}
        assert "columns inside" in _codes(reading)
        assert "1 of 4 rows" in reading.report()
    rows = [{"one": {"winner": "a", "loser": "b"}, "other": {"winner": "a", "loser": "b"}}]
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "two.parquet")
    with pytest.raises(InputError, match=r"the columns inside each of 'one', 'other' could be meant; name them, as "):
        read_log(tmp_path / "two.parquet", engine=engine)
    named = read_log(tmp_path / "two.parquet", engine=engine, columns={"winner": "one.winner", "loser": "other.loser"})
    assert named.rows == 1


# -- the commands --------------------------------------------------------------------------------------------------
def test_a_lake_is_taken_in_day_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for day in ("01", "02", "03"):
        for part in "ab":
            votes = "winner,loser\n" + f"{part}{day},b\n" * (int(day) + (part == "b"))
            _csv(Path(f"lake/day=2026-11-{day}/part-{part}.csv"), votes)
    _csv(Path("lake/day=2026-11-04/part-a.csv"), "winner,loser\n")
    main(["ingest", "lake", "--store", "s.store"])
    said = capsys.readouterr().err
    assert "lake/day=2026-11-01/: taken in for 2026-11-01 (by its path), 3 rows" in said
    assert "lake/day=2026-11-04/: no rows, nothing taken in" in said
    store = Store("s.store")
    assert [(batch.name, batch.day, batch.rows) for batch in store.info().batches] == [
        (f"lake/day=2026-11-0{day}/", f"2026-11-0{day}", 2 * day + 1) for day in (1, 2, 3)
    ]
    assert read_log("s.store").preferences == read_log("lake").preferences
    main(["ingest", *[f"lake/day=2026-11-0{day}/" for day in (1, 2, 3)], "--store", "s.store"])
    assert len(store.info().batches) == 3  # the same, day by day on the command line
    with pytest.raises(SystemExit):
        main(["ingest", "lake", "--store", "s.store", "--batch", "all"])
    assert "'all' names one batch, and lake holds 4 days" in capsys.readouterr().err
    _csv(Path("bare/day=2026-11-01/x.csv"), "winner,loser\n")
    _csv(Path("bare/day=2026-11-02/x.csv"), "")
    with pytest.raises(SystemExit):
        main(["ingest", "bare", "--store", "t.store"])


def test_commands_take_patterns_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for day in ("01", "02"):
        _csv(Path(f"lake/day=2026-11-{day}/x.csv"), "winner,loser\na,b\nb,c\nc,a\na,c\n")
    files = [f"lake/day=2026-11-{day}/x.csv" for day in ("01", "02")]
    shown = set()
    for logs in (["lake"], ["lake/*/*.csv"], files):
        main(["rank", *logs, "--output", "ranking.csv"])
        shown.add(Path("ranking.csv").read_text())
        said = capsys.readouterr().err
        assert "8 rows in 2 files of 2 days (2026-11-01 to 2026-11-02)" in said
        main(["audit", *logs, "--replicates", "0", "--output", "audit.json"])
        capsys.readouterr()
    assert len(shown) == 1
    for output in ("lake/day=2026-11-01/ranking.csv", "lake/ranking.csv"):
        with pytest.raises(SystemExit):
            main(["rank", "lake", "--output", output])
        assert "lies in the folder of the log" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["rank", "lake/*/*.csv", "--output", "lake/day=2026-11-01/y.csv"])
    assert "would be a file of the log" in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["lake", "lake/day=*/*"])
def test_a_part_that_comes_late_to_a_day_is_a_batch_of_its_own(tmp_path, monkeypatch, pattern):
    monkeypatch.chdir(tmp_path)
    for number, (day, part) in enumerate([(1, 0), (2, 0), (1, 1)]):
        place = tmp_path / f"lake/day=2026-01-0{day}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"part-{part}.csv").write_text(f"winner,loser\na,b\nb,{'cde'[number]}\n")
        if number:
            taken = [one.judgments for one in Store("votes.store").ingest_days(pattern)]
            assert taken == ([2, 2] if number == 1 else [2, 0])
    days = [(batch.batch, batch.day, batch.judgments) for batch in Store("votes.store").info().batches]
    assert days == [(1, "2026-01-01", 2), (2, "2026-01-02", 2), (3, "2026-01-01", 2)]
