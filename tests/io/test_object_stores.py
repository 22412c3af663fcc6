"""Logs in object stores: the answers of the same files on this machine, all of them or none."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant import Store
from concordant.apps.commands import main
from concordant.errors import InputError, Unavailable
from concordant.io.read import read, read_log
from lake_files import drawn_lake
from object_store import HOST, Asked, ObjectStore, environment, object_store
from seeds import seed

VOTES = b"winner,loser\na,b\nb,c\nc,a\na,c\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as there:
        yield there


@pytest.fixture
def there(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An empty bucket, ``votes``, on a server without faults, that the environment names."""
    server.fault = lambda _: None
    server.empty()
    for name, value in environment(server.endpoint).items():
        monkeypatch.setenv(name, value)
    server.asked.clear()
    server.sent = 0
    yield server
    server.fault = lambda _: None


def upload(there: ObjectStore, root: Path, key: str) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            there.put(f"{key}/{path.relative_to(root).as_posix()}", path.read_bytes())


def packed(rows: int = 4000, groups: int = 1000) -> bytes:
    """Return a Parquet file of votes, of which one column takes nearly all bytes."""
    random = np.random.default_rng(seed(0))
    items, out = np.array(["a", "b", "c"]), io.BytesIO()
    winner = random.integers(0, 3, rows)
    table = pa.table({"winner": items[winner], "loser": items[(winner + 1 + random.integers(0, 2, rows)) % 3],
                      "prompt": [random.bytes(300).hex() for _ in range(rows)]})  # fmt: skip
    pa.parquet.write_table(table, out, row_group_size=groups)
    return out.getvalue()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_the_same_answers_wherever_a_lake_lies(tmp_path: Path, there: ObjectStore, form: str) -> None:
    for number in range(4):
        root = tmp_path / f"lake {number} é=%41"
        random = np.random.default_rng([seed(22), number])
        rows = drawn_lake(random, root, form)
        if not rows:
            continue
        upload(there, root, f"votes/{root.name}")
        address = f"s3://votes/{root.name}"
        for options in ({}, {"columns": {"query": "day"}}):
            if options and not any(row.get("day") for row in rows):
                continue
            here = read_log(root, engine="memory", on_error="skip", pool=False, **options)
            for engine in ("duckdb", "memory"):
                found = read_log(address, engine=engine, on_error="skip", pool=False, **options)
                assert found.preferences == here.preferences
                assert (found.rows, found.roles) == (here.rows, here.roles)
                said = [str(note).replace(address, root.name) for note in found.notes]
                assert said == list(map(str, here.notes))
                assert found.report().replace(address, root.name) == here.report()


def test_files_patterns_and_lists(there: ObjectStore) -> None:
    for day in ("01", "02", "11"):
        there.put(f"votes/lake/day=2026-11-{day}/part 0=%41é.csv", VOTES)
        there.put(f"votes/lake/day=2026-11-{day}/_temporary/x.csv", b"half")
        there.put(f"votes/lake/day=2026-11-{day}/x.csv.tmp", b"half")
    there.put("votes/odd[1].csv", VOTES)

    def days(source: Any) -> list[str]:
        return read_log(source, columns={"query": "day"}, pool=False).preferences.queries.tolist()

    whole = ["2026-11-01", "2026-11-02", "2026-11-11"]
    for source in ("s3://votes/lake", "s3://votes/lake/", "s3://votes/lake/*/*.csv", "s3://votes/**/part*",
                   "s3://votes/lake/day=*", "S3://votes/lake"):  # fmt: skip
        assert days(source) == whole
    assert days("s3://votes/lake/day=2026-11-0?/*") == whole[:2]
    files = [f"s3://votes/lake/day={day}/part 0=%41é.csv" for day in whole]
    assert days(files) == whole
    assert len(read(files[0])) == len(read("s3://votes/odd[1].csv")) == 4  # what is there by its name is no pattern


def test_what_is_not_there_is_one_sentence(there: ObjectStore) -> None:
    there.put("votes/lake/votes.csv", VOTES)
    there.put("votes/lake/empty.csv", b"")
    there.put("votes/bad.csv", b"winner,loser\na,b\nb,b\n")
    for address, said in {
        "s3://nobody/votes.csv": "^s3://nobody/: there is no such bucket$",
        "s3://nobody/*.csv": "^s3://nobody/: there is no such bucket$",
        "s3://votes/lake/vots.csv": r"^no file s3://votes/lake/vots.csv; did you mean 'votes.csv'\?$",
        "s3://votes/none/": "^no file s3://votes/none$",
        "s3://votes/none/*.csv": "^no file matches s3://votes/none/.*: there is no folder s3://votes/none$",
        "s3://votes/lake/*.parquet": r"^no file matches s3://votes/lake/\*.parquet$",
        "s3://votes/lake/empty.csv": "^s3://votes/lake/empty.csv: the file is empty$",
        "s3:///votes.csv": "an address names a bucket, as s3://BUCKET/votes.parquet$",
        "s3://votes/bad.csv": r"^s3://votes/bad.csv: 1 of 2 rows compare an item with itself \(line 3: 'b'\)",
        "s3://me:secret@nobody/votes.csv": "^s3://nobody/: there is no such bucket$",  # nobody reads the secret
        "abfs://container/votes.csv": "^abfs://container: cannot be read: .*account name",
    }.items():
        with pytest.raises(InputError, match=said):
            read(address)


def test_of_parquet_the_columns_that_are_asked_for_are_fetched(there: ObjectStore) -> None:
    data = packed()
    there.put("votes/wide.parquet", data)
    there.sent = 0
    for engine in ("duckdb", "memory"):
        assert len(read("s3://votes/wide.parquet", engine=engine)) == 4000
    assert there.sent < len(data) / 5


# -- stores that fail ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet"])
def test_requests_that_fail_are_repeated(there: ObjectStore, name: str) -> None:
    there.put(f"votes/{name}", VOTES if name.endswith("csv") else packed(2000, 500))
    whole = read(f"s3://votes/{name}")
    gets = 0

    def fault(asked: Asked) -> Any:
        nonlocal gets
        if asked.method != "GET" or name not in asked.path:
            return None
        gets += 1
        return ("cut", None, (503, "SlowDown"), None)[gets % 4]

    for engine in ("duckdb", "memory"):
        there.put(f"votes/{name}", VOTES if name.endswith("csv") else packed(2000, 500))
        there.fault = fault
        assert read(f"s3://votes/{name}", engine=engine) == whole
        there.fault = lambda _: None


@pytest.mark.parametrize(
    ("fault", "name", "said"),
    [
        ("cut", "a.csv", "the store does not answer as it should: AWS Error NETWORK_CONNECTION"),
        ("cut", "a.parquet", "the store does not answer as it should: AWS Error NETWORK_CONNECTION"),
        ((503, "SlowDown"), "a.csv", "the store does not answer as it should: AWS Error (SLOW_DOWN|SERVICE_UNAV)"),
        ((403, "AccessDenied"), "a.parquet", "the store refuses access .*; credentials are taken from the environment"),
        ((403, "InvalidAccessKeyId"), "a.csv", "the store refuses access .*; credentials are taken from the"),
    ],
)
def test_what_does_not_come_whole_is_no_answer(there: ObjectStore, fault: Any, name: str, said: str) -> None:
    there.put(f"votes/lake/{name}", packed(2000, 500) if name.endswith("parquet") else VOTES + b"a,b\n" * 5_000)
    there.fault = lambda asked: fault if asked.method == "GET" and name in asked.path else None
    with pytest.raises(Unavailable, match=f"^s3://votes/lake/{name}: {said}"):
        read("s3://votes/lake")


def test_tables_in_a_store(there: ObjectStore, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    rows = pa.table({"winner": ["a", "b", "c"], "loser": ["b", "c", "a"], "day": ["1", "1", "é =2"]})
    deltalake.write_deltalake(tmp_path / "delta", rows, partition_by=["day"])
    deltalake.write_deltalake(tmp_path / "delta", rows, partition_by=["day"], mode="append")
    upload(there, tmp_path / "delta", "votes/deltas/é =1")
    for engine in ("duckdb", "memory"):
        for address, times in (("s3://votes/deltas/é =1", 2), ("s3://votes/deltas/é =1@0", 1)):
            found = read_log(address, engine=engine, columns={"query": "day"}, pool=False)
            assert found.preferences.queries.tolist() == ["1", "é =2"]
            assert len(found.preferences) == 3 * times
    with pytest.raises(InputError, match=r"^s3://votes/deltas/é =1: a Delta table among other files"):
        read("s3://votes/deltas")
    there.fault = lambda asked: (403, "AccessDenied") if "parquet" in asked.path else None
    with pytest.raises(Unavailable, match=r"a Delta table whose store does not answer as it should: .*403 Forbidden"):
        read("s3://votes/deltas/é =1")
    catalogs = pytest.importorskip("pyiceberg.catalog")
    pytest.importorskip("sqlalchemy")
    there.fault = lambda _: None
    settings = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "s3://votes/warehouse", "s3.region": "us-east-1"}
    catalog = catalogs.load_catalog("there", type="sql", **settings, **{"s3.endpoint": there.endpoint})
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.votes", schema=rows.schema)
    table.append(rows)
    catalog.engine.dispose()
    for engine in ("duckdb", "memory"):
        for address in ("s3://votes/warehouse/ns/votes", table.metadata_location):
            assert len(read(address, engine=engine)) == 3
    there.fault = lambda asked: (503, "SlowDown") if asked.method == "GET" and "/data/" in asked.path else None
    with pytest.raises(Unavailable, match=r"an Iceberg table whose store or catalogue does not answer as it should"):
        read("s3://votes/warehouse/ns/votes")


def test_a_file_that_goes_or_changes_meanwhile(there: ObjectStore) -> None:
    def listed_then(change: Any) -> Any:
        done = []

        def fault(asked: Asked) -> Any:
            if "lake/b" in asked.path and not done:
                done.append(asked)
                change()
            return None

        return fault

    for name, data in (("b.csv", VOTES), ("b.parquet", packed(100))):
        there.put(f"votes/{name}/lake/{name}", data)
        there.fault = listed_then(lambda name=name: there.delete(f"votes/{name}/lake/{name}"))
        with pytest.raises(InputError, match=r"is not there any more; it was when the store was listed"):
            read(f"s3://votes/{name}/lake")
        there.put(f"votes/{name}/lake/{name}", data)
        there.fault = listed_then(lambda name=name, data=data: there.put(f"votes/{name}/lake/{name}", data * 2))
        with pytest.raises(InputError, match=r"was changed while it was read, from "):
            read(f"s3://votes/{name}/lake")


def test_what_was_read_before_is_not_taken_for_what_is_there(there: ObjectStore) -> None:
    there.put("votes/now.csv", b"winner,loser\na,b\n")
    assert read("s3://votes/now.csv").items.tolist() == ["a", "b"]
    there.put("votes/now.csv", b"winner,loser\nc,d\n")  # of the same size, within the same second
    assert read("s3://votes/now.csv").items.tolist() == ["c", "d"]


# -- commands ------------------------------------------------------------------------------------------------------
def test_commands(there: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for day in (1, 2):
        for part in range(2):
            votes = f"winner,loser\nm{day},b\nb,m{part}\n"
            there.put(f"votes/lake/day=2026-11-0{day}/part-{part}.csv", votes.encode() * 1)
    main(["rank", "s3://votes/lake/", "-o", "ranking.csv", "--quiet"])
    main(["doctor", "s3://votes/lake/"])
    assert "votes between two items" in capsys.readouterr().out
    main(["ingest", "s3://votes/lake/", "--store", "s.store"])
    said = capsys.readouterr().err
    assert "s3://votes/lake/day=2026-11-01/: taken in for 2026-11-01 (by its path), 4 rows" in said
    assert [batch.day for batch in Store("s.store").info().batches] == ["2026-11-01", "2026-11-02"]
    main(["ingest", "s3://votes/lake/", "--store", "s.store"])
    assert capsys.readouterr().err.count("known already, nothing taken in") == 2
    assert read("s.store") == read("s3://votes/lake/")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:9")
    for address, status in (("s3://votes/lake/", 5), ("s3:///x.csv", 2)):
        with pytest.raises(SystemExit) as ended:
            main(["rank", address, "--exit-status", "detailed"])
        assert ended.value.code == status
        assert capsys.readouterr().err.count("\n") == 1
