"""Delta and Iceberg tables as logs: of the version that is asked for every row that it has, and no other."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

from concordant import Preferences
from concordant.apps.commands import main
from concordant.errors import InputError, Unavailable, UsageError
from concordant.io.log.formats import Empty
from concordant.io.read import read, read_log
from table_formats import mark_iceberg, marked_delta

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
ENGINES = ("duckdb", "memory")
VOTES = pa.table({
    "winner": ["a", "b", "c", "a", "d"], "loser": ["b", "c", "a", "c", "a"],
    "day": [date(2026, 11, 1)] * 3 + [date(2026, 11, 2)] * 2, "lang": ["pt/BR", "a b%20+é", "=", "x", "x"],
    "place": pa.array([1, 2, 3, 4, 5], pa.int32()),
})  # fmt: skip


def judged(*tables: pa.Table, query: str | None = None) -> Preferences:
    """The judgments of some tables, row by row."""
    rows = [row for table in tables for row in table.to_pylist()]
    queries = None if query is None else [str(row[query]) for row in rows]
    return Preferences.from_comparisons([row["winner"] for row in rows], [row["loser"] for row in rows], query=queries)


def agrees(source: Any, expected: Preferences, query: str | None = None, said: str = "") -> None:
    """Both engines read these judgments, and say the same of it."""
    notes = set()
    for engine in ENGINES:
        reading = read_log(source, engine=engine, columns={"query": query} if query else {}, pool=False)
        assert reading.preferences == expected
        notes.add(reading.notes)
    assert len(notes) == 1
    assert said in str(notes)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- Delta ---------------------------------------------------------------------------------------------------------
def test_a_delta_table_at_each_of_its_versions(here: Path) -> None:
    deltalake.write_deltalake("votes", VOTES, partition_by=["day", "lang"])
    deltalake.write_deltalake("votes", VOTES, mode="append")
    deltalake.DeltaTable("votes").delete("winner = 'b'")
    wider = VOTES.append_column("seconds", pa.array([1, 2, 3, 4, 5]))
    deltalake.write_deltalake("votes", wider, mode="append", schema_mode="merge")
    left = VOTES.filter(pa.compute.not_equal(VOTES["winner"], "b"))
    newest = judged(left, left, VOTES)
    agrees("votes", newest, said="votes: a Delta table, read as of version 3")
    agrees("votes/", judged(left, left, VOTES, query="day"), "day")
    agrees("votes", judged(left, left, VOTES, query="lang"), "lang")
    agrees("votes@0", judged(VOTES), said="votes: a Delta table, read as of version 0")
    agrees("votes@1", judged(VOTES, VOTES))
    agrees("votes@2", judged(left, left))
    deltalake.DeltaTable("votes").create_checkpoint()
    (here / "votes/_delta_log" / f"{0:020d}.json").unlink()  # as after the days that a log is kept
    agrees("votes", newest)
    deltalake.DeltaTable("votes").optimize.compact()
    agrees("votes", newest)
    with pytest.raises(InputError, match=r"^votes: a Delta table without a version 99$"):
        read("votes@99")
    with pytest.raises(InputError, match=r"no column 'colour'"):
        read("votes", columns={"query": "colour"})


def test_rows_that_are_marked_as_deleted_are_not_read(here: Path) -> None:
    rows = VOTES.select(["winner", "loser"]).to_pylist()
    marked_delta(here / "votes", rows, [1, 3])
    agrees("votes", judged(VOTES.take([0, 2, 4])))
    for engine in ENGINES:  # what is refused is found by its values, row after row
        marked_delta(here / engine, [*rows, {"winner": "e", "loser": "e"}], [1])
        with pytest.raises(InputError, match=r"1 of 5 rows compare an item with itself \(row 5: 'e'\)"):
            read(engine, engine=engine)


def test_a_delta_table_that_cannot_be_read_is_one_sentence(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake.write_deltalake("none", VOTES.slice(0, 0))
    for engine in ENGINES:
        with pytest.raises(Empty, match=r"^none: there are no rows$"):
            read("none", engine=engine)
    deltalake.write_deltalake("lake/votes", VOTES)
    with pytest.raises(InputError, match=r"^lake/votes: a Delta table among other files"):
        read("lake")
    deltalake.write_deltalake("votes", VOTES)
    shutil.copytree("votes", "t %41 é")
    with pytest.raises(InputError, match=r"deltalake takes %41 in the path of a Delta table for a letter"):
        read("t %41 é")
    shutil.copytree("votes", "t é =x")
    agrees("t é =x", judged(VOTES))
    (file,) = deltalake.DeltaTable("votes").file_uris()
    Path(unquote(urlparse(file).path)).unlink()
    for engine in ENGINES:
        with pytest.raises(InputError, match=r"^votes: a Delta table of which a file is missing: part-.*\.parquet$"):
            read("votes", engine=engine)
    deltalake.write_deltalake("TOKEN 403", VOTES)  # in a path these words say nothing of access
    (file,) = deltalake.DeltaTable("TOKEN 403").file_uris()
    Path(unquote(urlparse(file).path)).unlink()
    with pytest.raises(InputError, match=r"^TOKEN 403: a Delta table of which a file is missing: part-.*\.parquet$"):
        read("TOKEN 403")
    (here / "votes/_delta_log" / f"{0:020d}.json").write_text('{"add": ')
    with pytest.raises(InputError, match=r"^votes: a Delta table that cannot be read: "):
        read("votes")
    with pytest.raises(UsageError, match=r"Spark reads this as a table of its catalogue"):
        read("t é =x", engine="spark")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(
        Unavailable, match=r"needs deltalake, which is not installed: pip install 'concordant\[delta\]'"
    ):
        read("t é =x")


@pytest.mark.usefixtures("here")
def test_a_store_takes_in_a_table_by_the_ids_of_its_votes(capsys: Any) -> None:
    deltalake.write_deltalake("votes", VOTES)
    with pytest.raises(SystemExit):
        main(["ingest", "votes", "--store", "s.store"])
    assert (
        "this table changes as a whole, so a store could not tell which of its rows it has" in capsys.readouterr().err
    )
    main(["ingest", "votes", "--store", "s.store", "--id", "place", "--quiet"])
    new = VOTES.set_column(4, "place", pa.array([6, 7, 8, 9, 10], pa.int32()))
    deltalake.write_deltalake("votes", new, mode="append")
    main(["ingest", "votes", "--store", "s.store", "--id", "place", "--quiet", "--batch", "again"])
    assert len(read("s.store")) == 10


# -- Iceberg -------------------------------------------------------------------------------------------------------
@pytest.fixture
def catalog(here: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    pytest.importorskip("sqlalchemy")
    made = load_catalog("here", type="sql", uri=f"sqlite:///{here}/c.db", warehouse=f"file://{here}/warehouse")
    made.create_namespace("ns")
    yield made
    made.engine.dispose()


def test_an_iceberg_table_at_each_of_its_snapshots(catalog: Any, monkeypatch: Any) -> None:
    from pyiceberg.types import LongType

    table = catalog.create_table("ns.votes", schema=VOTES.schema)
    with table.update_spec() as change:
        change.add_identity("day")
    table.append(VOTES)
    first = table.current_snapshot().snapshot_id
    table.append(VOTES)
    table.delete("winner == 'b'")
    with table.update_schema() as schema:  # files keep the old name, the old type, and lack the new column
        schema.rename_column("lang", "language")
        schema.update_column("place", LongType())
        schema.add_column("seconds", LongType())
    left = VOTES.filter(pa.compute.not_equal(VOTES["winner"], "b"))
    wider = left.rename_columns(["winner", "loser", "day", "language", "place"])
    wider = wider.set_column(4, "place", pa.array([2**40, 1, 2, 3], pa.int64()))
    table.append(wider.append_column("seconds", pa.array([1, 2, 3, 4])))
    newest = judged(left, left, left)
    folder = "warehouse/ns/votes"
    snapshot = table.current_snapshot().snapshot_id
    agrees(folder, newest, said=f"votes: an Iceberg table, read as of snapshot {snapshot}")
    agrees(folder, judged(left, left, left, query="day"), "day")
    agrees(folder, judged(left, left, left, query="lang"), "language")
    agrees(table.metadata_location.removeprefix("file://"), newest)
    agrees(f"{folder}@{first}", judged(VOTES))
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: {"here": catalog}[name])
    agrees("iceberg::here.ns.votes", newest)
    agrees(f"iceberg::here.ns.votes@{first}", judged(VOTES))
    with pytest.raises(InputError, match=r"Table does not exist: ns.nope"):
        read("iceberg::here.ns.nope")
    with pytest.raises(InputError, match=r"^votes: an Iceberg table that cannot be read: Snapshot not found: 5$"):
        read(f"{folder}@5")
    (file, *_) = [task.file.file_path for task in table.scan().plan_files()]
    Path(file.removeprefix("file://")).unlink()
    for engine in ENGINES:
        with pytest.raises(InputError, match=r"^votes: an Iceberg table of which a file is missing: "):
            read(folder, engine=engine)


def test_deletes_of_an_iceberg_table_are_kept_or_refused(catalog: Any) -> None:
    table = catalog.create_table("ns.votes", schema=VOTES.schema)
    table.append(VOTES)
    mark_iceberg(table, [1, 3])
    agrees("warehouse/ns/votes", judged(VOTES.take([0, 2, 4])))
    mark_iceberg(table, [1], by_equality=True)
    for engine in ENGINES:
        with pytest.raises(InputError, match=r"with deletes by equality, which pyiceberg does not read"):
            read("warehouse/ns/votes", engine=engine)


def test_an_iceberg_table_that_cannot_be_read_is_one_sentence(here: Path, catalog: Any, monkeypatch: Any) -> None:
    catalog.create_table("ns.none", schema=VOTES.schema)
    for engine in ENGINES:
        with pytest.raises(Empty, match=r"^none: there are no rows$"):
            read("warehouse/ns/none", engine=engine)
    with pytest.raises(InputError, match=r"an Iceberg table among other files"):
        read("warehouse")
    metadata = here / "warehouse/ns/none/metadata"
    (first,) = metadata.glob("*.metadata.json")
    shutil.copy(first, metadata / "00000-other.metadata.json")
    with pytest.raises(InputError, match=r"whose newest metadata are in 2 files \(.*\), of which its catalogue knows"):
        read("warehouse/ns/none")
    (metadata / "00001-x.metadata.json").write_text(json.dumps({"format-version": 2}))
    with pytest.raises(InputError, match=r"^none: an Iceberg table that cannot be read: "):
        read("warehouse/ns/none")
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(Unavailable, match=r"not installed: pip install 'concordant\[iceberg\]'"):
        read("warehouse/ns/none")
    plain = here / "plain"
    plain.mkdir()
    (plain / "x.csv").write_text("winner,loser\na,b\n")
    with pytest.raises(InputError, match=r"^plain@3: plain has no versions; it is no Delta and no Iceberg table$"):
        read("plain@3")
    (here / "plain@3").mkdir()
    shutil.copy(plain / "x.csv", here / "plain@3")
    assert len(read("plain@3")) == 1  # what is there by its whole name is that
