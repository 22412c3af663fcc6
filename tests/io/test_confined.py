"""What the embedded database may open: the files that it was asked for, whatever stands in them or in their names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant import InputError
from concordant.io.engines.duckdb import Settings, connected
from concordant.io.ingest import Store
from concordant.io.read import read
from concordant.progress import listen

SECRET = "winner,loser\nsecret,words\n"
ODD = [
    "it's.csv",
    "a[b]*?.csv",
    "*.csv",
    "a' , '{}', '.csv",
    "') UNION SELECT * FROM read_text('x.csv.csv",
    "~.csv",
    "{a,b}.csv",
]


@pytest.fixture(name="secret")
def _secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    path.write_text(SECRET)
    return path


VIEWS = {
    "a text": "SELECT content AS winner, 'b' AS loser FROM read_text('{}')",
    "a CSV file": "SELECT winner, loser FROM read_csv('{}')",
    "a folder": "SELECT file AS winner, 'b' AS loser FROM glob('{}*')",
    "a name": "SELECT winner, loser FROM '{}'",
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("engine", [None, "memory"])
def test_a_view_of_a_database_reads_nothing_but_its_database(
    tmp_path: Path, secret: Path, view: str, engine: str | None
) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        try:
            database.execute(f"CREATE VIEW votes AS {VIEWS[view].format(secret)}")
        except duckdb.Error:  # what a version does not have can do no harm
            pytest.skip("not a function of this DuckDB")
    for act in (
        lambda: read(f"{database_of(tmp_path)}", engine=engine),
        lambda: Store(tmp_path / "s").ingest(database_of(tmp_path)),
    ):
        with pytest.raises(InputError, match=r"d\.duckdb::votes: .*(refused|cannot be|not exist|no table)") as error:
            act()
        assert "\n" not in str(error.value) and "words" not in str(error.value)


def database_of(folder: Path) -> str:
    return f"{folder / 'd.duckdb'}::votes"


def test_a_view_of_tables_of_its_database_is_read(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE TABLE t AS SELECT 'a' AS winner, 'b' AS loser; CREATE VIEW votes AS FROM t")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "d.duckdb").symlink_to(tmp_path / "d.duckdb")
    for folder in (tmp_path, tmp_path / "link"):
        assert read(database_of(folder)) == read({"winner": ["a"], "loser": ["b"]})


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("name", ODD)
def test_names_of_files_are_names(tmp_path: Path, name: str) -> None:
    """A file is read by its own name, alone and in a folder, and nothing beside it is."""
    expected = read({"winner": ["a"], "loser": ["b"]})
    for path in (tmp_path / "logs" / name, tmp_path / "o'dd [x]*" / name):
        path.parent.mkdir(exist_ok=True)
        path.write_text("winner,loser\na,b\n")
        assert read(path, engine="duckdb") == read(path.parent, engine="duckdb") == expected
        for ending, fill in (
            (".parquet", lambda to: pa.parquet.write_table(pa.table({"winner": ["a"], "loser": ["b"]}), to)),
            (".jsonl", lambda to: to.write_text(json.dumps({"winner": "a", "loser": "b"}) + "\n")),
        ):
            other = path.with_name(path.name.removesuffix(".csv") + ending)
            fill(other)
            assert read(other, engine="duckdb") == expected
            other.unlink()


COLUMNS = [
    'a"b',
    "x'); COPY (SELECT 1) TO 'made.csv'; --",
    "read_text('secret.csv')",
    "'; DROP TABLE t; --",
    "{}",
    "$1",
    "\\",
    "a,b",
]


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("column", COLUMNS)
def test_names_of_columns_are_names(tmp_path: Path, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {column: ["a"], "loser": ["b"]}
    (tmp_path / "log.jsonl").write_text(json.dumps({name: values[0] for name, values in rows.items()}) + "\n")
    pa.parquet.write_table(pa.table(rows), tmp_path / "log.parquet")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.register("rows", pa.table(rows))
        database.execute("CREATE TABLE votes AS FROM rows")
    quoted = column.replace('"', '""')
    (tmp_path / "log.csv").write_text(f'"{quoted}",loser\na,b\n')
    before = sorted(os.listdir(tmp_path))
    for log in ("log.jsonl", "log.parquet", "log.csv", "d.duckdb::votes"):
        assert read(log, columns={"winner": column}, engine="duckdb") == read({"winner": ["a"], "loser": ["b"]})
    assert sorted(os.listdir(tmp_path)) == before


ATTEMPTS: dict[str, str] = {
    "reads a file": "SELECT * FROM read_text('{}')",
    "reads a folder": "SELECT * FROM glob('{}')",
    "reads by name": "FROM '{}'",
    "attaches": "ATTACH '{}' AS other",
    "writes": "COPY (SELECT 1) TO '{}.made'",
    "loads": "LOAD httpfs",
    "installs": "INSTALL httpfs",
    "opens an address": "SELECT * FROM read_text('https://example.invalid/x')",
    "unlocks": "SET enable_external_access = true",
    "widens": "SET allowed_directories = ['/']",
    "unlocks the lock": "SET lock_configuration = false",
    "imports": "IMPORT DATABASE '{}'",
    "reads a variable of Python": "SELECT * FROM variable_of_python",
}


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_statement_leaves_the_room(tmp_path: Path, secret: Path, attempt: str, heard: bool) -> None:
    variable_of_python = pa.table({"x": [1]})
    assert variable_of_python.num_rows

    def attempted() -> None:
        with connected(Settings(), files=[tmp_path / "asked.csv"]) as connection:
            connection.execute(ATTEMPTS[attempt].format(secret)).fetchall()

    with pytest.raises(duckdb.Error), listen(lambda _: None) if heard else nullcontext():
        attempted()
    assert sorted(os.listdir(tmp_path)) == ["secret.csv"]


def test_what_is_asked_for_is_read_and_large_work_spills(secret: Path) -> None:
    statement: Callable[[str], str] = (
        "SELECT count(*) FROM (SELECT hash(range)::VARCHAR FROM range({}) ORDER BY 1)".format
    )
    with connected(Settings("60MB", 1), files=[secret]) as connection:
        assert connection.execute(f"SELECT winner FROM read_csv('{secret}')").fetchall() == [("secret",)]
        assert connection.execute(statement(3_000_000)).fetchall() == [(3_000_000,)]
