"""What tasks do before they own queries, without Spark: read Parquet files themselves, count, pack and send."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from spark_session import why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "Spark runs here")
if not why_not():
    from concordant.apps.spark import partitioning, reading
    from concordant.apps.spark.partitioning import put_together, spread
    from concordant.apps.spark.reading import Files, bucket_of
    from concordant.io.engines.counting import with_columns
    from concordant.io.log.formats import locate

Rows = Counter[tuple[Any, ...]]
BUCKETS = 5


def queries(kind: str, codes: Any) -> pa.Array:
    """A column of queries: integers of some width, or texts, some of which may be missing."""
    if kind in ("text", "missing"):
        return pa.array([None if kind == "missing" and code == 3 else f"q{code}" for code in codes.tolist()])
    return pa.array(codes + (2**31 if kind == "uint32" else 0)).cast(kind)


def votes(kind: str, items: int, rows: int = 4000, seed: int = 0) -> pa.Table:
    """Half of all votes in one query, most of them for one item, of few or many."""
    rng = np.random.default_rng(seed)
    query, winner = rng.integers(0, 20, rows), rng.integers(0, items, rows)
    query[rng.random(rows) < 0.5] = 0
    winner[rng.random(rows) < 0.6] = 1
    columns = {"query": queries(kind, query), "winner": winner, "loser": winner + rng.integers(1, 3, rows)}
    return pa.table({**columns, "weight": rng.choice([0.5, 2.0], rows)})


def sent(batches: Any, roles: list[str], counting: bool) -> tuple[Rows, int]:
    """All rows that reach the receivers, and how many are sent; each query reaches one of them, those without any."""
    found: Rows = Counter()
    packed = list(spread(batches, roles, counting))
    owner: dict[Any, int] = {}
    number = 0
    for bucket in range(BUCKETS):
        mine = [batch.filter(pa.array(np.asarray(batch.column(0)) == bucket)) for batch in packed]
        table = put_together(iter(mine), 1 << 22)
        for row in () if table is None else table.to_pylist():
            assert row.get("query", 0) is None or owner.setdefault(row.get("query"), bucket) == bucket
            found[tuple([row[role] for role in roles])] += row.get("rows", 1)
            number += 1
    return found, number


@pytest.mark.parametrize("kind", ["int8", "int64", "uint32", "text", "missing"])
@pytest.mark.parametrize("items", [3, 3000])
def test_equal_rows_become_one_before_they_are_sent(kind: str, items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioning, "BLOCK", 1000)
    table, roles = votes(kind, items).drop(["weight"]), ["query", "winner", "loser"]
    where = bucket_of(table["query"].combine_chunks(), BUCKETS)
    whole = table.append_column(partitioning.BUCKET, pa.array(where))
    expected = Counter(zip(*[table[role].to_pylist() for role in roles], strict=True))
    for counting in (True, False):
        found, number = sent(iter(whole.to_batches(max_chunksize=300)), roles, counting)
        assert found == expected
        assert (number < 0.75 * len(table)) == counting


@pytest.mark.parametrize("kind", ["int8", "int64", "text", "missing"])
def test_tasks_read_files_as_they_are(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several row groups, integers of several widths, small files beside a large one: each row once."""
    monkeypatch.setattr(partitioning, "BLOCK", 700)
    monkeypatch.setattr(reading, "BLOCK", 300)
    monkeypatch.setattr(reading, "SPLIT", 1500)
    folder, tables = tmp_path / "log", []
    folder.mkdir()
    for place, size in enumerate([4000, 10, 10, 900, 0]):
        table = votes("int64" if kind == "int8" and place else kind, 50, size, seed=place)
        pa.parquet.write_table(table, folder / f"{place}.parquet", row_group_size=256)
        tables.append(table)
    log, names = with_columns(locate(str(folder))), ["query", "winner", "loser", "weight"]
    files = Files.of(log, {name: name for name in names})
    assert files is not None and files.total == 4920
    splits = files._splits(2)
    assert 3 <= len(splits) <= 5
    rows = [Counter(zip(*[table[name].to_pylist() for name in names], strict=True)) for table in tables]
    batches = (batch for split in splits for batch in reading._read(split, files.roles, BUCKETS))
    assert sent(batches, names, True)[0] == sum(rows, Counter())


def test_rows_without_a_query_are_dealt_and_are_no_query() -> None:
    """Equal ones, and rows of one list, go to one bucket; however many there are, none is too large a query."""
    rows = {"query": pa.array([None, "q"] * 50), "winner": pa.array(range(100)), "loser": pa.array(range(1, 101))}
    where = reading._buckets(rows, 100, BUCKETS)
    assert len(set(where[::2].tolist())) == BUCKETS and len(set(where[1::2].tolist())) == 1
    lists = {"query": pa.nulls(100, pa.string()), "judgment": pa.array([place // 4 for place in range(100)])}
    where = reading._buckets({**lists, "item": pa.array(range(100))}, 100, BUCKETS).reshape(25, 4)
    assert (where == where[:, :1]).all() and len(set(where.ravel().tolist())) == BUCKETS
    votes = pa.table(rows).append_column(partitioning.BUCKET, pa.array(np.zeros(100, np.int32)))
    assert len(put_together(spread(iter(votes.to_batches()), [*rows], True), 60) or ()) == 100
    with pytest.raises(partitioning.TooLarge):
        put_together(spread(iter(votes.to_batches()), [*rows], True), 40)


def test_what_is_not_plain_is_left_to_spark(tmp_path: Path) -> None:
    plain = {"query": [1, 2], "winner": ["a", "b"], "loser": ["b", "c"]}
    odd = [{"query": pa.array([1, 2], pa.uint64())}, {"query": [0.5, 1.5]}, {"winner": pa.array([1, 2], pa.date32())}]
    for number, columns in enumerate([{}, *odd]):
        pa.parquet.write_table(pa.table({**plain, **columns}), tmp_path / f"{number}.parquet")
        log = with_columns(locate(str(tmp_path / f"{number}.parquet")))
        assert (Files.of(log, {name: name for name in plain}) is None) == bool(columns)
    (tmp_path / "v.csv").write_text("query,winner,loser\n1,a,b\n")
    assert Files.of(with_columns(locate(str(tmp_path / "v.csv"))), {name: name for name in plain}) is None


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    pa.parquet.write_table(votes("int64", 3), path)
    files = Files.of(with_columns(locate(str(path))), {"query": "query", "winner": "winner", "loser": "loser"})
    assert files is not None
    (split,) = files._splits(1)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(cc.InputError, match=r"v\.parquet: Parquet magic bytes not found"):
        list(reading._read(split, files.roles, BUCKETS))
