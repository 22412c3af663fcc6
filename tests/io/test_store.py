"""A store is the sum of its logs, bit for bit, each taken in once; what does not fit is refused."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant import Preferences
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.io.ingest import Store
from concordant.io.read import read, read_log
from concordant.io.store import catalogue as catalogues
from concordant.io.store import migrations, stored
from concordant.io.store.catalogue import read_catalogue, write
from concordant.preferences.counted import declare
from small_logs import logs
from store_faults import kept_database

KINDS = ("comparisons", "orders", "selections", "choices", "ratings")
ODD = ["a", "left", "tie", "", "x\ny", 'say "no"', "o'brien", "'; DROP TABLE store; --", "é 北", "1", "a,b"]
VOTES = "winner,loser\na,b\nb,c\n"


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database(foreign=True):
        yield


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "votes.store")


@pytest.fixture(name="votes")
def _votes(tmp_path: Path) -> Path:
    return written(tmp_path / "votes.csv", VOTES)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def same(store: Store, expected: Any) -> None:
    """Hold a store against Preferences: equal to the bit, and everything in it as the catalogue says."""
    found = read(store)
    assert found == expected
    for one in fields(expected):
        ours, theirs = getattr(found, one.name), getattr(expected, one.name)
        assert (ours is None) == (theirs is None), one.name
        assert not isinstance(ours, np.ndarray) or ours.dtype == theirs.dtype, one.name
    assert store.verify().judgments == len(expected)


# -- the law: a store is the sum of its logs -----------------------------------------------------------------------
@settings(max_examples=6)
@given(data=st.data())
def test_a_store_is_the_sum_of_its_logs(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    parts = data.draw(st.lists(logs(kind), min_size=1, max_size=4))
    parts = [part for place, part in enumerate(parts) if part not in parts[:place]]  # equal tables are one batch
    folder = tmp_path_factory.mktemp("law")
    store = Store(folder / "s")
    merge_after = data.draw(st.integers(0, len(parts)))
    for place, part in enumerate(parts):
        store.ingest(part)
        if place == merge_after:
            store.compact()
    same(store, sum(parts))
    out = folder / "out.parquet"
    assert store.export(out) == len(sum(parts).declared)
    assert read(out) == sum(parts)
    shutil.rmtree(folder)


def comparisons(seed: int, *, integers: bool = False) -> dict[str, Any]:
    """Rows with everything that a comparison can have, under labels of every kind."""
    random = np.random.default_rng(seed)
    size = 200
    items = np.arange(-3, len(ODD) - 3) * 10**12 if integers else np.array(ODD, object)
    pair = np.array([random.permutation(len(ODD))[:2] for _ in range(size)])
    return {
        "query": items[random.integers(0, 3, size)],
        "left": items[pair[:, 0]],
        "right": items[pair[:, 1]],
        "left_score": random.integers(0, 2, size),
        "right_score": random.integers(0, 2, size),
        "weight": random.choice([0.1, 1.0, 1 / 3], size),
        "count": random.integers(1, 5, size),
        "worker": items[random.integers(0, 4, size)],
        "speed": random.choice([-0.0, 0.0, 0.1, -1e300], size),
        "age": random.integers(-2, 3, size),
    }


@pytest.mark.parametrize("integers", [False, True])
def test_labels_weights_ties_clusters_and_covariates(store: Store, integers: bool) -> None:
    parts = [pa.table(comparisons(seed, integers=integers)) for seed in range(4)]
    options: dict[str, Any] = {"cluster": "worker", "covariates": ["speed", "age"]}
    for part in parts:
        store.ingest(part, **options)
    expected = sum(read(part, **options) for part in parts)
    assert expected.tie is not None and expected.weight is not None and expected.clusters is not None
    same(store, expected)
    store.compact()
    same(store, expected)
    out = store.path.with_name("out.parquet")
    store.export(out)
    assert read(out, cluster="cluster", covariates=["speed", "age"]) == expected
    if not integers:  # CSV has texts only, and no empty ones
        store.export(out.with_suffix(".arrow"))
        assert read(out.with_suffix(".arrow"), cluster="cluster", covariates=["age", "speed"]) == expected


def test_weights_and_ties_of_some_logs_only(store: Store) -> None:
    parts = [
        Preferences.from_comparisons(["a", "b"], ["b", "c"]),
        Preferences.from_comparisons(["a"], ["b"], weight=[2.5]),
        Preferences.from_comparisons(["c"], ["b"], tie=[True]),
        Preferences.from_comparisons(["a"], ["b"], count=[1 << 33]),
    ]
    for part in parts:
        store.ingest(part)
    same(store, sum(parts))


@pytest.mark.parametrize("cluster", [None, "worker"])
def test_lists_with_odd_labels_clusters_and_items_never_judged(
    store: Store, cluster: str | None, tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    parts = []
    for _ in range(3):
        rows = [
            {"query": ODD[q], "judgment": j, "item": item, "rank": int(rank), "worker": ODD[j % 3]}
            for q in range(2)
            for j in range(30)
            for item, rank in zip(random.permutation(ODD)[:3].tolist(), random.integers(1, 4, 3), strict=True)
        ]
        parts.append(pa.Table.from_pylist(rows))
    for part in parts:
        store.ingest(part, cluster=cluster)
    expected = sum(read(part, cluster=cluster) for part in parts)
    same(store, expected)
    store.export(tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet", cluster=None if cluster is None else "cluster") == expected


def test_declared_items_become_judged_and_stay_declared(store: Store, tmp_path: Path) -> None:
    ballots = [
        "# NUMBER ALTERNATIVES: 4",
        "# NUMBER VOTERS: 3",
        *(f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate("abcd", 1)),
    ]
    one = written(tmp_path / "one.soi", "\n".join([*ballots, "# NUMBER UNIQUE ORDERS: 2", "2: 1,2", "1: 2"]) + "\n")
    other = written(tmp_path / "other.soi", "\n".join([*ballots, "# NUMBER UNIQUE ORDERS: 1", "3: 3,1"]) + "\n")
    store.ingest(one)
    expected = read(one)
    assert len(expected.declared) == 2
    same(store, expected)
    store.ingest(other)
    same(store, expected + read(other))
    assert len(read(store).declared) == 1
    store.compact()
    same(store, expected + read(other))
    pooled = Preferences.from_comparisons(["a"], ["b"], query=["p"])
    assert store.export(tmp_path / "out.csv") == 1
    with pytest.raises(InputError, match="holds comparisons, the store orders"):
        store.ingest(pooled)


def test_known_items_of_comparisons(store: Store) -> None:
    votes = Preferences.from_comparisons(["a", "a", "c"], ["b", "b", "d"], query=["p", "q", "q"])
    known = pa.array(["p", "q"]), pa.array(["x", "a"])
    parts = [declare(votes, known), declare(votes.select(["p"]), known)]
    assert [len(part.declared) for part in parts] == [1, 2]  # (q, a) is judged
    for part in parts:
        store.ingest(part)
    same(store, sum(parts))


# -- known again by content ------------------------------------------------------------------------------------------
def test_a_file_is_known_by_its_bytes_whatever_it_is_called(store: Store, votes: Path, tmp_path: Path) -> None:
    assert store.ingest(votes).judgments == 2
    before = store.info()
    copy = written(tmp_path / "copy.csv", VOTES)
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(VOTES.encode()))
    for again in (votes, copy, packed):
        taken = store.ingest(again)
        assert (taken.new, taken.rows, taken.judgments, len(taken.known)) == (False, 0, 0, 1)
    assert store.ingest(packed).known == (f"{packed} (as {votes})",)
    assert store.info() == before
    store.compact()
    assert not store.ingest(copy).new


def test_a_table_is_known_by_its_judgments(store: Store, tmp_path: Path) -> None:
    rows = pd.DataFrame({"winner": ["a", "b", "a"], "loser": ["b", "c", "b"]})
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.register("rows", rows.sample(frac=1, random_state=1))
        database.execute("CREATE TABLE votes AS FROM rows")
    assert store.ingest(rows).new
    assert not store.ingest(pa.Table.from_pandas(rows)).new
    assert not store.ingest(f"{tmp_path / 'd.duckdb'}::votes").new
    assert not store.ingest(read(rows)).new
    assert store.ingest(rows.head(2)).new
    same(store, read(rows) + read(rows.head(2)))


def test_a_new_file_of_a_folder_may_have_other_columns(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "monday.csv").write_text("left,right,winner\na,b,left\n")
    assert store.ingest(folder).new
    (folder / "tuesday.csv").write_text("winner,loser\nc,a\n")
    assert store.ingest(folder).new
    assert store.preferences() == read(folder / "monday.csv") + read(folder / "tuesday.csv")


def test_of_a_folder_the_new_files_are_taken_in(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    monday = written(folder / "1.csv", VOTES)
    tuesday = written(folder / "2.csv", "winner,loser\nc,a\n")
    first = store.ingest(folder)
    assert (first.rows, first.known, len(store.info().segments)) == (3, (), 1)
    assert not store.ingest(folder).new
    assert not store.ingest(tuesday).new
    wednesday = written(folder / "3.csv", "winner,loser\nd,a\n")
    written(folder / "4.csv", wednesday.read_text())  # the same again
    second = store.ingest(folder)
    assert second.rows == 1
    assert second.known == ("days/1.csv", "days/2.csv", "days/4.csv (the same as days/3.csv)")
    same(store, read(monday) + read(tuesday) + read(wednesday))
    assert [content.batch for content in store.info().contents] == [1, 1, 2]


def test_a_log_that_grew_is_refused(store: Store, votes: Path) -> None:
    store.ingest(votes)
    written(votes, VOTES + "c,d\n")
    with pytest.raises(
        InputError, match=r"votes.csv: begins with all of .*first 21 of 25 bytes would be taken in twice"
    ):
        store.ingest(votes)
    same(store, read(written(votes, VOTES)))
    more = written(votes.with_name("more.csv"), VOTES + "c,d\n")
    assert store.ingest(more, grown=True).rows == 3
    same(store, read(votes) + read(more))


def test_a_file_that_changes_while_it_is_read(store: Store, votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*arguments: Any, **options: Any) -> Any:
        found = read_log(*arguments, **options)
        os.utime(votes, ns=(1, 1))
        return found

    monkeypatch.setattr("concordant.io.intake.read_as_made", slow)
    with pytest.raises(InputError, match="was changed while it was read; nothing was taken in"):
        store.ingest(votes)
    assert not store.path.exists()


# -- what logs of a store have in common -----------------------------------------------------------------------------
def refused(act: Callable[[], Any], why: str, kind: type[Exception] = InputError) -> None:
    with pytest.raises(kind, match=why) as error:
        act()
    assert "\n" not in str(error.value)


def test_integers_that_are_written_as_texts(store: Store, tmp_path: Path) -> None:
    """A corrected or late CSV file of a lake whose labels are integers; the same votes are known again."""
    names = ["winner", "loser", "query", "worker"]
    draw = np.random.default_rng(0)
    codes = [
        draw.integers(-3, 20, 300),
        draw.integers(20, 40, 300),
        draw.integers(0, 4, 300),
        draw.integers(5, 12, 300),
    ]
    table = pa.table(dict(zip(names, codes, strict=True)))
    pq.write_table(table.slice(0, 200), tmp_path / "first.parquet")
    whole = {"cluster": "worker"}
    store.ingest(tmp_path / "first.parquet", **whole)
    for name, part in (("again", table.slice(0, 200)), ("later", table.slice(150))):
        pyarrow.csv.write_csv(part, tmp_path / f"{name}.csv")
        store.ingest(tmp_path / f"{name}.csv", **whole)
    assert [Path(batch.name).name for batch in store.info().batches] == ["first.parquet", "later.csv"]
    pq.write_table(pa.concat_tables([table.slice(0, 200), table.slice(150)]), tmp_path / "both.parquet")
    assert read(store) == read(tmp_path / "both.parquet", **whole)
    (tmp_path / "odd.csv").write_text("winner,loser,query,worker\n1,2,3,4\n1,02,3,4\n")
    refused(
        lambda: store.ingest(tmp_path / "odd.csv", **whole), r"items are texts \(such as '02'\), in the store integ"
    )
    (tmp_path / "whose.csv").write_text("winner,loser,query,worker\n1,2,3,ann\n")
    refused(lambda: store.ingest(tmp_path / "whose.csv", **whole), r"clusters are texts \(such as 'ann'\)")


def test_logs_that_do_not_agree(store: Store) -> None:
    table = comparisons(0)
    store.ingest(table, cluster="worker", covariates=["age"])
    before = read(store)
    refused(lambda: store.ingest(comparisons(1)), r"keeps the cluster of each judgment \(worker\); name its column")
    refused(lambda: store.ingest(comparisons(1), cluster="worker"), r"keeps the covariates 'age'.*given here: none")
    refused(
        lambda: store.ingest(comparisons(1), cluster="worker", covariates=["age", "speed"]),
        "given here: 'age', 'speed'",
    )
    numbers = comparisons(1, integers=True)
    whole = {"cluster": "worker", "covariates": "age"}
    refused(
        lambda: store.ingest(numbers, **whole), r"items are integers \(such as -3000000000000\), in the store texts"
    )
    refused(lambda: store.ingest(table | {"query": np.arange(200)}, **whole), "queries are integers")
    refused(lambda: store.ingest(table | {"worker": np.arange(200)}, **whole), "clusters are integers")
    rated = {"user": ["u"], "item": ["a"], "rating": [2.0]}
    refused(lambda: Store(store.path).ingest(read(rated)), "holds ratings, the store comparisons")
    refused(lambda: store.ingest(Preferences.empty()), "there are no judgments")
    refused(lambda: store.ingest(read(rated), kind="ratings"), "Preferences are read already", UsageError)
    assert read(store) == before
    plain = Store(store.path.with_name("plain"))
    plain.ingest(table)
    refused(lambda: plain.ingest(comparisons(1), cluster="worker"), "without clusters, so no cluster can be named")


def test_options_that_mean_nothing_to_a_store(store: Store) -> None:
    store.ingest(comparisons(0), cluster="worker", covariates=["age"])
    assert read(store, cluster="worker", covariates=["age"], kind="comparisons", engine="duckdb") == read(store)
    assert read(store, memory_limit="1GB", threads=1) == read(store)
    for options, why in (
        ({"columns": {"winner": "w"}}, "winner does nothing here: .* no columns to name; .* to concordant ingest"),
        ({"cluster": "rater"}, "with the cluster 'worker', not 'rater'"),
        ({"covariates": ["speed"]}, "with the covariates 'age', not 'speed'"),
        ({"home": "left"}, "with the covariates 'age', not 'home'"),
        ({"kind": "orders"}, "they are comparisons, not orders"),
        ({"clicks": "first"}, "clicks does nothing here"),
        ({"on_error": "skip"}, "on_error does nothing here"),
        ({"engine": "memory"}, "leave out engine='memory'"),
    ):
        refused(lambda options=options: read(store, **options), why, UsageError)


def test_what_cannot_be_a_store(store: Store, votes: Path, tmp_path: Path) -> None:
    refused(lambda: Store.open(store.path), "there is no store")
    refused(lambda: Store(votes).ingest(votes), "votes.csv: the file is no store")
    refused(lambda: Store(tmp_path).ingest(votes), "is a folder; a store is a file", UsageError)
    refused(lambda: Store(tmp_path / "no" / "s").ingest(votes), "the folder .*no does not exist", UsageError)
    refused(lambda: store.ingest(votes, wait=-1), "wait must be a number of seconds", UsageError)
    store.ingest(votes)
    refused(lambda: store.ingest(store.path), "votes.store: a store, not a log")
    refused(lambda: store.export(tmp_path / "x.xlsx"), "unknown ending '.xlsx'", UsageError)
    with duckdb.connect(str(tmp_path / "foreign.duckdb")) as database:
        database.execute("CREATE TABLE store (key VARCHAR, value VARCHAR)")
        database.execute("CREATE TABLE votes AS SELECT 'a' AS winner, 'b' AS loser")
    foreign = Store(tmp_path / "foreign.duckdb")
    refused(foreign.info, "a DuckDB database, but no store of concordant")
    refused(lambda: foreign.ingest(votes), "a DuckDB database, but no store of concordant")
    refused(lambda: read(foreign), "name the table in the database")
    assert len(read(f"{foreign.path}::votes")) == 1


def test_a_catalogue_that_is_missing(store: Store, votes: Path) -> None:
    store.ingest(votes)
    away = store.path.rename(store.path.with_name("away"))
    refused(lambda: store.ingest(votes), "the catalogue is missing, but votes.store.parts holds 1 files")
    away.rename(store.path)
    same(store, read(votes))
    catalogues.parts_folder(store.path).rename(store.path.with_name("elsewhere"))
    refused(lambda: read(store), "its folder votes.store.parts is missing; it belongs beside the file")
    refused(store.verify, "its folder votes.store.parts is missing")


def test_a_store_may_have_any_name_and_be_moved(votes: Path, tmp_path: Path) -> None:
    for name in ("prefs.duckdb", "prefs", "prefs.csv", "it's [a] store*"):
        store = Store(tmp_path / name)
        store.ingest(votes)
        store.ingest({"winner": ["x"], "loser": ["y"]})
        assert len(read(store)) == 3
    there = tmp_path / "there"
    there.mkdir()
    shutil.move(store.path, there / "moved")
    shutil.move(f"{store.path}.parts", there / "moved.parts")
    assert len(read(there / "moved")) == 3
    link = tmp_path / "link.store"
    link.symlink_to(there / "moved")
    assert Store(link).ingest({"winner": ["z"], "loser": ["y"]}).new
    assert link.is_symlink()
    assert len(read(there / "moved")) == 4


# -- versions ----------------------------------------------------------------------------------------------------------
def test_a_newer_store_is_refused(store: Store, votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = migrations.FORMAT + 1
    monkeypatch.setattr(catalogues, "FORMAT", newer)
    monkeypatch.setattr(migrations, "FORMAT", newer)
    monkeypatch.setitem(migrations.MIGRATIONS, newer - 1, lambda _facts, _tables: None)
    store.ingest(votes)
    with duckdb.connect(str(store.path)) as catalogue:
        catalogue.execute("CREATE TABLE of_tomorrow AS SELECT 1 AS x")
    monkeypatch.undo()
    why = rf"a store of format {newer}, written by .*; this version reads formats up to {newer - 1}: install a newer"
    for act in (store.info, lambda: read(store), lambda: store.ingest(votes), store.verify, store.compact):
        refused(act, why)


def test_an_older_store_is_read_and_brought_up_by_the_next_commit(
    store: Store, votes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_0(facts: dict[str, str], tables: dict[str, list[dict[str, Any]]]) -> None:
        facts["kind"] = facts.pop("sort")
        for row in tables["batches"]:
            row["options"] = "{}"

    store.ingest(votes)
    with duckdb.connect(str(store.path)) as database:  # a format that never was
        database.execute("UPDATE store SET value = '0' WHERE key = 'format'")
        database.execute("UPDATE store SET key = 'sort' WHERE key = 'kind'")
        database.execute("ALTER TABLE batches DROP options")
    refused(store.info, "a store of unknown format '0'")
    monkeypatch.setitem(migrations.MIGRATIONS, 0, from_0)
    before = store.path.read_bytes()
    same(store, read(votes))
    assert not store.ingest(votes).new
    assert store.path.read_bytes() == before  # readers change nothing
    more = store.ingest({"winner": ["x"], "loser": ["y"]})
    assert more.new
    monkeypatch.undo()
    assert [batch.name for batch in store.info().batches] == [str(votes), "table"]
    assert len(read(store)) == 3


# -- how it lies on the disk -----------------------------------------------------------------------------------------
def test_any_duckdb_or_pandas_reads_the_segments(store: Store) -> None:
    table = comparisons(3)
    store.ingest(table, cluster="worker", covariates=["age"])
    store.ingest(comparisons(4), cluster="worker", covariates=["age"])
    folder = catalogues.parts_folder(store.path)
    with duckdb.connect() as database:
        asked = database.execute(f"SELECT sum(count), sum(count * tie::INT) FROM '{folder}/*.parquet'")
        total = asked.fetchone()
    expected = sum(sum(comparisons(seed)["count"]) for seed in (3, 4))
    ties = sum(sum(c["count"][c["left_score"] == c["right_score"]]) for c in map(comparisons, (3, 4)))
    assert total == (expected, ties)
    frame = pd.concat(pd.read_parquet(path) for path in folder.glob("*.parquet"))
    assert list(frame) == ["query", "winner", "loser", "tie", "weight", "covariate age", "cluster", "count"]
    assert frame["count"].sum() == expected
    with duckdb.connect(str(store.path), read_only=True) as database:
        assert database.execute("SELECT sum(judgments) FROM batches").fetchone() == (expected,)


def test_a_segment_is_merged_into_another_while_it_is_read(
    store: Store, votes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest(votes)
    store.ingest({"winner": ["x"], "loser": ["y"]})
    merge = stored.merged

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.undo()
        store.compact()
        store.remove(number=1)
        return merge(*arguments)

    monkeypatch.setattr(stored, "merged", overtaken)
    assert len(read(store)) == 1
    assert len(store.info().segments) == 1


def test_verify_counts_again(store: Store, votes: Path) -> None:
    store.ingest(votes)
    good = read_catalogue(store.path)
    wrong = {
        "the batches hold 3 judgments, the segments 2": {"batches": (_with(good.batches[0], judgments=3),)},
        "holds 2 judgments in 2 rows, the catalogue says 5 in 2": {"segments": (_with(good.segments[0], judgments=5),)},
        "which is no segment": {"batches": (_with(good.batches[0], segment="gone"),)},
        "was taken in twice": {"contents": good.contents * 2},
        "batches and their contents do not match": {"contents": ()},
    }
    for why, changes in wrong.items():
        store.path.unlink()
        write(_with(good, **changes), store.path)
        refused(store.verify, why)


def _with(row: Any, **changes: Any) -> Any:
    return type(row)(**{**vars(row), **changes})


def test_a_disk_that_is_read_only(store: Store, votes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.ingest(votes)
    files = sorted(path.name for path in store.path.parent.iterdir())
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    same(store, read(votes))
    assert store.info().facts.kind == "comparisons"
    refused(lambda: store.ingest({"winner": ["x"], "loser": ["y"]}), "no permission to write", ConcordantError)
    refused(
        store.compact if len(store.info().segments) > 1 else lambda: store.ingest(votes), "no perm", ConcordantError
    )
    assert sorted(path.name for path in store.path.parent.iterdir()) == files
