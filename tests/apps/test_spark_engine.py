"""Spark counts as DuckDB does, to the bit, whatever the log is written as and however it is split."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant.apps.commands import main
from concordant.errors import InputError, UsageError
from concordant.io.layouts import Reading
from concordant.io.read import read, read_log
from spark_session import CONNECT, classic, connect, spark_tests
from value_cases import BAD

pytestmark = spark_tests

HOSTILE = [
    "`",
    "``a`b`",
    '"; DROP TABLE log; --',
    "'",
    "a.b",
    "{x}",
    "$x",
    "c0",
    "é\u2028",
    "\\",
    "%s",
    "*",
]
TWISTED = [*HOSTILE, "a,b", "a\nb", "a\r\nb", '"', '""', "\t", " a", "NULL", "null", "-", "#", "nan", "a" * 3000]


def same(source: Any, spark: Any, **options: Any) -> Reading:
    """Read with DuckDB (or memory) and with Spark: equal preferences, equal rejects, equal samples."""
    expected, found = (read_log(source, engine=engine, **options) for engine in (None, spark))
    assert found.preferences == expected.preferences
    assert found.rows == expected.rows
    assert set(map(str, found.rejects)) == set(map(str, expected.rejects))
    return found


def refused(source: Any, spark: Any, **options: Any) -> str:
    """Both engines refuse, in the same words."""
    said = []
    for engine in (None, spark):
        with pytest.raises(InputError) as caught:
            read_log(source, engine=engine, **options)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "\n" not in said[0]
    return said[0]


def votes(rows: int = 400, labels: list[str] | None = None) -> pa.Table:
    generator = np.random.default_rng(5)
    names = np.array(labels or TWISTED, dtype=object)
    winner = generator.integers(0, len(names), rows)
    loser = (winner + generator.integers(1, len(names), rows)) % len(names)
    return pa.table(
        {
            "winner": pa.array(names[winner].tolist()),
            "loser": pa.array(names[loser].tolist()),
            "query": pa.array(names[generator.integers(0, len(names), rows)].tolist()),
            "weight": generator.choice([0.5, 1.0, 0.1 + 0.2], rows),
        }
    )


def write_csv(table: pa.Table, path: Path, **form: Any) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, **form)
        writer.writerow(table.column_names)
        writer.writerows(table.to_pylist()[row].values() for row in range(len(table)))
    return path


def write_lines(table: pa.Table, path: Path) -> Path:
    text = "".join(json.dumps(row) + "\n\n" for row in table.to_pylist())
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path, row_group_size=97)
    return path


WRITERS: dict[str, Callable[[pa.Table, Path], Path]] = {
    "v.csv": lambda table, path: write_csv(table, path, lineterminator="\n"),
    "crlf.csv": write_csv,
    "v.tsv": lambda table, path: write_csv(table, path, delimiter="\t", lineterminator="\n"),
    "v.jsonl": write_lines,
    "v.jsonl.gz": write_lines,
    "v.parquet": write_parquet,
    "odd [x]{y}*? name%20é.parquet": write_parquet,
}


# -- formats -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", WRITERS)
def test_files(spark: Any, tmp_path: Path, name: str) -> None:
    reading = same(WRITERS[name](votes(), tmp_path / name), spark)
    assert set(reading.preferences.items.tolist()) == set(TWISTED)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_folders(spark: Any, tmp_path: Path, ending: str) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "_SUCCESS").touch()
    write = WRITERS[f"v{ending}"]
    for part in range(3):
        write(votes().slice(part * 150, 150), tmp_path / "log" / f"query={part}{ending}")
    assert len(same(tmp_path / "log", spark).preferences) == 400


def test_a_csv_without_quotes_is_split_and_the_same(spark: Any, tmp_path: Path) -> None:
    table = votes(900, ["a", "b", "c", " d", "é"])
    for name, end in (("n.csv", "\n"), ("rn.csv", "\r\n")):
        write_csv(table, tmp_path / name, lineterminator=end)
        spark.conf.set("spark.sql.files.maxPartitionBytes", "4000")
        try:
            same(tmp_path / name, spark)
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_frames_whatever_their_partitions(spark: Any, partitions: int) -> None:
    table = votes(60)
    expected = read(table)
    rows = spark.createDataFrame(table).repartition(partitions, "winner")
    empty = rows.filter("weight < 0")
    assert read(empty.union(rows).union(empty).orderBy("loser")) == expected


def test_no_partition_at_all_is_a_log_without_rows(spark: Any) -> None:
    with pytest.raises(InputError, match="DataFrame: there are no rows"):
        read(spark.createDataFrame([], "winner string, loser string"))


def test_tables_of_the_catalogue(spark: Any) -> None:
    table = votes(60)
    for name, quoted in {"odd `name`; --": "odd `name`; --", "a.b": "a.b", "plain": "PLAIN"}.items():
        spark.createDataFrame(table).createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        assert read(f"spark::{quoted}", engine=spark) == read(table)
    with pytest.raises(InputError, match=r"no table 'nowhere' in Spark's catalogue; tables in the current.*plain"):
        read("spark::nowhere", engine="spark")
    with pytest.raises(UsageError, match="only the engine spark reads this"):
        read("spark::plain", engine="duckdb")


@pytest.mark.usefixtures("spark")
def test_addresses(tmp_path: Path) -> None:
    table = votes(60)
    for name in ("v.csv", "v.tsv", "v.jsonl.gz", "v.parquet"):
        path = WRITERS[name](table, tmp_path / name)
        assert read(f"file://{path}", engine="spark") == read(path)
    with pytest.raises(InputError, match=r"No FileSystem for scheme .?nosuch"):
        read("nosuch://bucket/v.parquet", engine="spark")
    with pytest.raises(InputError, match="does not exist"):
        read(f"file://{tmp_path}/absent.csv", engine="spark")
    with pytest.raises(InputError, match=r"unknown ending '\.xlsx'"):
        read("s3a://bucket/votes.xlsx", engine="spark")


# -- kinds ---------------------------------------------------------------------------------------------------------
def lists(kind: str) -> pa.Table:
    generator = np.random.default_rng(2)
    rows = []
    for j in range(40):
        for place, item in enumerate(generator.permutation(4)[: 2 + j % 3], 1):
            rows.append((f"q{j % 3}", j, place, TWISTED[item], place == 1 + j % 2, float(place // 2 + 1)))
    order = generator.permutation(len(rows))
    query, session, position, item, clicked, value = (list(x) for x in zip(*(rows[r] for r in order), strict=True))
    columns = {
        "selections": {"session": session, "position": position, "item": item, "clicked": clicked},
        "choices": {"session": session, "item": item, "chosen": [int(c) for c in clicked]},
        "orders": {"judgment": session, "item": item, "rank": [v if v < 3 else None for v in value]},
        "ratings": {"judgment": session, "item": item, "rating": value},
    }
    return pa.table({"query": query, **columns[kind]})


@pytest.mark.parametrize("kind", ["selections", "choices", "orders", "ratings"])
@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.jsonl"])
def test_lists(spark: Any, tmp_path: Path, kind: str, name: str) -> None:
    table = lists(kind)
    if name == "v.csv" and kind == "selections":
        table = table.set_column(4, "clicked", table["clicked"].cast(pa.int64()))
    reading = same(WRITERS[name](table, tmp_path / name), spark)
    assert reading.preferences.kind == kind


@pytest.mark.parametrize("kind", ["selections", "orders"])
def test_lists_with_bad_rows(spark: Any, tmp_path: Path, kind: str) -> None:
    table = lists(kind)
    value = table.column_names[-1]
    broken = table.to_pylist()
    for place in (0, 3, 9):
        broken[place][value] = 7 if kind == "selections" else -1
    broken.append(dict(broken[5]))  # an item twice
    names = table.column_names
    table = pa.table({name: [str(row[name]) if row[name] is not None else None for row in broken] for name in names})
    same(write_parquet(table, tmp_path / "bad.parquet"), spark, on_error="skip")
    refused(tmp_path / "bad.parquet", spark)


def test_every_layout_of_comparisons(spark: Any, tmp_path: Path) -> None:
    left, right = ["a", "b", "c", "a"], ["b", "c", "a", "c"]
    for more, options in (
        ({"winner": ["a", "tie", "left", "c"], "age": [1.5, -0.0, 0.0, 2.0]}, {"covariates": ["age"], "home": "left"}),
        (
            {"left_score": [1, 2, 3, 1], "right_score": [2, 2, 1, 0], "judge": ["x", "y", "`", "x"]},
            {"cluster": "judge"},
        ),
        ({"left_wins": [1, 2, 3, 1], "right_wins": [0, 2, 1, 0]}, {}),
    ):
        path = write_parquet(pa.table({"left": left, "right": right, **more}), tmp_path / "l.parquet")
        same(path, spark, **options)


# -- values --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64(), pa.dictionary(pa.int8(), pa.string())],
)
@pytest.mark.parametrize("table", [False, True])
def test_types_of_labels(spark: Any, tmp_path: Path, kind: pa.DataType, table: bool) -> None:
    values = ["a", "b", "c"] if pa.types.is_dictionary(kind) else [1, 2, 100]
    data = pa.table({"winner": pa.array(values, kind), "loser": pa.array(values[::-1][1:] + values[:1], kind)})
    same(data if table else write_parquet(data, tmp_path / "t.parquet"), spark)


@pytest.mark.parametrize("edge", [2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_integers_where_32_and_64_bits_end(spark: Any, tmp_path: Path, edge: int) -> None:
    same(write_parquet(pa.table({"winner": [edge, 1], "loser": [0, edge]}), tmp_path / "n.parquet"), spark)


def test_integers_beyond_64_bits(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"winner": pa.array([2**64 - 1], pa.uint64()), "loser": pa.array([1], pa.uint64())})
    assert "above 9223372036854775807" in refused(write_parquet(table, tmp_path / "n.parquet"), spark)
    (tmp_path / "n.jsonl").write_text('{"winner": 99999999999999999999, "loser": 1}\n')
    assert "beyond 64 bits" in refused(tmp_path / "n.jsonl", spark)


def test_decimals_are_numbers_and_no_labels(spark: Any, tmp_path: Path) -> None:
    money = pa.array([1, 2], pa.decimal128(12, 2))
    data = {"winner": ["a", "b"], "loser": ["b", "c"]}
    same(write_parquet(pa.table({**data, "weight": money}), tmp_path / "d.parquet"), spark)
    refused(write_parquet(pa.table({"winner": money, "loser": money}), tmp_path / "d.parquet"), spark)
    for kind in (pa.float64(), pa.bool_(), pa.binary()):
        odd = pa.array([0, 1], pa.int32()).cast(kind) if kind != pa.binary() else pa.array([b"a", b"b"])
        path = write_parquet(pa.table({"winner": odd, "loser": odd}), tmp_path / "d.parquet")
        for engine in (None, spark):
            with pytest.raises(InputError, match="labels are texts or integers"):
                read(path, engine=engine)


def test_columns_that_differ_in_case(spark: Any, tmp_path: Path) -> None:
    data = {
        "winner": ["a", "b"],
        "loser": ["b", "c"],
        "Winner": ["x", "y"],
        "LOSER": ["y", "z"],
        "C0": [1, 1],
        "c0": [2, 2],
    }
    path = write_parquet(pa.table(data), tmp_path / "case.parquet")
    if CONNECT:  # the session's own settings hold there
        with pytest.raises(InputError, match=r"differ in case only; set spark\.sql\.caseSensitive to true"):
            read(path, engine=spark)
        return
    chosen = {"winner": "Winner", "loser": "LOSER", "query": "c0"}
    for columns in (None, chosen, {"query": "C0"}):
        assert read(path, columns=columns, engine=spark) == read(path, columns=columns, engine="memory")


def test_hostile_column_names(spark: Any, tmp_path: Path) -> None:
    for name in HOSTILE:
        data = {f"{name}w": ["a", "b"], f"{name}l": ["b", "c"], name: [1.0, 2.0], "rows": [1, 2]}
        options = {"columns": {"winner": f"{name}w", "loser": f"{name}l"}, "covariates": [name, "rows"]}
        path = write_parquet(pa.table(data), tmp_path / "names.parquet")
        assert same(path, spark, **options).preferences.covariate_names == tuple(sorted([name, "rows"]))


def test_a_column_that_spark_would_find_empty_is_refused(spark: Any, tmp_path: Path) -> None:
    path = write_parquet(pa.table({"winner": ["a"], "loser": ["b"], "${spark.master}": ["q"]}), tmp_path / "n.parquet")
    same(path, spark)
    with pytest.raises(InputError, match=r"names hold '\$\{'; rename '\$\{spark.master\}'"):
        read(path, engine=spark, columns={"query": "${spark.master}"})


def test_other_columns_do_not_matter(spark: Any, tmp_path: Path) -> None:
    """Nanoseconds, nested values and a column without type are no reason to refuse the columns that are read."""
    data = {
        "winner": ["a", "b"],
        "loser": ["b", "c"],
        "when": pa.array([1, 2], pa.timestamp("ns")),
        "texts": [["x"], []],
        "nothing": pa.nulls(2),
    }
    path = write_parquet(pa.table(data), tmp_path / "more.parquet")
    if CONNECT:  # the session's own settings hold there
        with pytest.raises(InputError, match=r"nanoseconds, for which spark\.sql\.legacy\.parquet\.nanosAsLong has"):
            read(path, engine=spark)
        return
    same(path, spark)


def test_a_collation_makes_no_labels_equal(spark: Any) -> None:
    rows = " UNION ALL ".join(f"SELECT '{label}' COLLATE UTF8_LCASE AS winner, 'b' AS loser" for label in "aA")
    assert set(read(spark.sql(rows)).items.tolist()) == {"a", "A", "b"}


# -- bad input -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_as_by_duckdb(spark: Any, tmp_path: Path, case: str) -> None:
    (tmp_path / "bad.csv").write_bytes(BAD[case])
    refused(tmp_path / "bad.csv", spark)


FINE = {
    "a carriage return in quotes": b'winner,loser\na,"b\rc"\n',
    "a line end in quotes": b'winner,loser\r\na,"b\r\nc"\r\n"c\r\n",a\r\n',
    "carriage returns end lines": b"winner,loser\ra,b\rb,c\r",
    "mixed line ends": b"winner,loser\na,b\r\nb,c\n\r\n\nc,a",
    "a space before a quote": b'winner,loser\na, "b"\n',
    "a quote inside": b'winner,loser\na,b"c\n',
    "a byte order mark": b"\xef\xbb\xbfwinner,loser\na,b\n",
    "a trailing delimiter": b"winner,loser\na,b,\n",
    "backslashes": b'winner,loser\n\\,"\\x"\na,"\\,b"\n',
    "a comment that is none": b"winner,loser\n#a,b\n",
}


@pytest.mark.parametrize("case", FINE)
def test_an_odd_file_is_read_as_by_duckdb(spark: Any, tmp_path: Path, case: str) -> None:
    (tmp_path / "odd.csv").write_bytes(FINE[case])
    same(tmp_path / "odd.csv", spark)


@pytest.mark.usefixtures("spark")
def test_bad_lines_at_an_address_are_refused_without_their_number(tmp_path: Path) -> None:
    for case in ("not UTF-8", "too many fields", "an open quote", "a line of spaces", "no rows"):
        (tmp_path / "bad.csv").write_bytes(BAD[case])
        with pytest.raises(InputError, match=r"^file:.*bad\.csv: ") as caught:
            read(f"file://{tmp_path}/bad.csv", engine="spark")
        assert "\n" not in str(caught.value)
    for line in ("{", '{"winner": 1, "winner": 2}', '{"winner": "\\ud800", "loser": "b"}'):
        (tmp_path / "bad.jsonl").write_text('{"winner": "a", "loser": "b"}\n' + line + "\n")
        with pytest.raises(InputError, match=r"a line (is not valid JSON|holds a text with invalid encoding)"):
            read(f"file://{tmp_path}/bad.jsonl", engine="spark")


def test_rejects_of_a_frame_say_how_many_rows_are_so(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"winner": ["a", "b", "b", "c"], "loser": ["a", "b", "b", "d"]}))
    said = "DataFrame: 3 of 4 rows compare an item with itself (2 rows: 'b'; 1 row: 'a')."
    with pytest.raises(InputError) as caught:
        read(frame)
    assert str(caught.value) == said
    reading = read_log(frame, on_error="skip")
    assert reading.report() == said and len(reading.preferences) == 1


def test_a_truncated_parquet_file(spark: Any, tmp_path: Path) -> None:
    path = write_parquet(votes(2000), tmp_path / "v.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    refused(path, spark)
    with pytest.raises(InputError, match=r"^file:.*Spark cannot read it"):
        read(f"file://{path}", engine="spark")


# -- the session ---------------------------------------------------------------------------------------------------
def test_nothing_is_left_in_the_session(spark: Any, tmp_path: Path) -> None:
    path = write_parquet(votes(), tmp_path / "v.parquet")
    before = spark.conf.getAll, [table.name for table in spark.catalog.listTables()]
    read(path, engine=spark)
    read(spark.createDataFrame(votes()))
    assert (spark.conf.getAll, [table.name for table in spark.catalog.listTables()]) == before
    assert spark.range(3).count() == 3


@pytest.mark.usefixtures("spark")
def test_names_that_spark_would_not_read(tmp_path: Path) -> None:
    path = write_parquet(votes(), tmp_path / "_v.parquet")
    with pytest.raises(InputError, match="Spark reads no file whose name begins with '_'"):
        read(path, engine="spark")


@classic
def test_an_active_session_is_used_as_it_is(spark: Any) -> None:
    from concordant.io.engines.spark_session import session

    assert session().sparkContext is spark.sparkContext
    assert session("local[2]").sparkContext is spark.sparkContext
    with pytest.raises(UsageError, match=r"a Spark session on local\[2\] is active; leave out master='yarn'"):
        session("yarn")
    with pytest.raises(UsageError, match="settings of a new Spark session"):
        session(memory_limit="4GB")
    with pytest.raises(UsageError, match="settings of a new Spark session"):
        read(votes(), engine=spark, threads=2)


@connect
def test_an_active_session_of_connect_is_used_as_it_is(spark: Any) -> None:
    from concordant.io.engines.spark_session import session

    assert session() is spark
    for master in ("local[2]", "sc://elsewhere"):
        with pytest.raises(UsageError, match="on a server of Spark Connect is active; leave out master="):
            session(master)
    with pytest.raises(UsageError, match="settings of a new Spark session"):
        session(memory_limit="4GB")


def test_options_that_belong_to_another_engine() -> None:
    for engine in (None, "duckdb", "memory"):
        with pytest.raises(UsageError, match="belongs to the engine spark"):
            read({"winner": ["a"], "loser": ["b"]}, engine=engine, master="local[2]")
    with pytest.raises(UsageError, match="or a SparkSession, not int"):
        read({"winner": ["a"], "loser": ["b"]}, engine=3)


@pytest.mark.usefixtures("spark")
def test_the_command_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_csv(votes(60, ["a", "b", "c"]), tmp_path / "v.csv")
    said = []
    for engine in ([], ["--engine", "spark"]):
        main(["audit", str(path), *engine])
        said.append(capsys.readouterr())
    assert said[0] == said[1]
