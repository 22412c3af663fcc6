"""Batches have a life: days, corrections, removals, people who are forgotten, days that are kept, copies put back."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant import ConcordantError, InputError, Preferences
from concordant.errors import UsageError
from concordant.io.ingest import Store
from concordant.io.intake import Intake
from concordant.io.read import read
from concordant.io.store.batches import sign_of
from concordant.io.store.catalogue import Catalogue, parts_folder, read_catalogue
from concordant.io.store.commits import HERE, Changed, commit, to_write
from concordant.io.store.days import day_of
from concordant.io.votes import Votes
from store_faults import kept_database
from store_life import Life

PEOPLE = {"cluster": "worker"}


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database():
        yield


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "votes.store")


Row = tuple[str, str, str]


def drawn(seed: int, rows: int = 60) -> list[Row]:
    draw = random.Random(seed)
    return [(*draw.sample("abcd", 2), f"w{draw.randrange(6)}") for _ in range(rows)]  # type: ignore[misc]


def written(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("winner,loser,worker\n" + "".join(f"{','.join(row)}\n" for row in rows))
    return path


def day(folder: Path, number: int, rows: list[Row] | None = None) -> Path:
    return written(folder / f"day=2026-01-{number:02d}" / "part-0.csv", drawn(number) if rows is None else rows)


def counts(source: Any) -> Counter[Row]:
    """The judgments of a store, or of rows, one by one."""
    if isinstance(source, list):
        return Counter(source)
    prefs: Any = read(source)
    found: Counter[Row] = Counter()
    if not len(prefs):
        return found
    items, people = prefs.items.tolist(), prefs.clusters.tolist()
    columns = (prefs.winner, prefs.loser, prefs.cluster, prefs.count)
    for winner, loser, person, count in zip(*(column.tolist() for column in columns), strict=True):
        found[items[winner], items[loser], people[person]] += count
    return found


def refused(why: str, work: Any, *arguments: Any, kind: type[Exception] = InputError, **options: Any) -> None:
    with pytest.raises(kind, match=why) as error:
        work(*arguments, **options)
    assert "\n" not in str(error.value)


# -- under kills -------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(sys.platform != "linux", reason="uses fork servers and /proc of Linux")
@pytest.mark.parametrize("ids", [False, True])
def test_the_life_of_a_store_under_kills(tmp_path: Path, ids: bool) -> None:
    """Each command is killed; ``python tests/store_life.py`` does this with 10^7 votes of 30 days."""
    life = Life(tmp_path, rows=40, people=9, draw=random.Random(1), kills=1, ids=ids)
    steps = list(life.lived(5))
    assert len(steps) == 9 + ids
    commands = {"ingest", "compact", "replace", "forget", "remove", "backup", "restore", "date", "retain"}
    commands |= {"forget votes"} if ids else set()
    assert set(life.done) == commands
    assert set(life.died.elements()) == commands and life.died.total() > 12, life.died


# -- days --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("lake/day=2026-01-31/part-0.parquet", "2026-01-31"),
        ("votes_2026_01_31.csv", "2026-01-31"),
        ("a/2026-02-01/votes-20260131.csv.gz", "2026-01-31"),  # the file's name before its folder's
        ("year=2026/month=01/day=31/x.csv", "2026-01-31"),
        ("v2026-02-30.csv", ""),
        ("120260131.csv", ""),
        ("2026-01-31T2200.csv", "2026-01-31"),
        ("2026-01-01--2026-01-31.csv", ""),
        ("votes.csv", ""),
        ("backup-of-2026-01-31/votes.csv", ""),
        ("2026-01-31/part-7.csv", "2026-01-31"),
    ],
)
def test_the_day_that_a_path_names(path: str, found: str) -> None:
    assert day_of(path)[0] == found


def test_a_day_is_said_or_read_off_the_path_and_kept(store: Store, tmp_path: Path) -> None:
    first = store.ingest(day(tmp_path, 1))
    assert (first.day, first.day_from) == ("2026-01-01", "day=2026-01-01")
    said = store.ingest(day(tmp_path, 2), day="2026-01-09")
    assert (said.day, said.day_from) == ("2026-01-09", "")
    whole = tmp_path / "day=2026-01-05"
    written(whole / "a.csv", drawn(10))
    written(whole / "b.csv", drawn(11))
    assert store.ingest(whole).day == "2026-01-05"
    span = store.ingest(written(tmp_path / "2026-01-01_2026-01-31.csv", drawn(12)))
    assert span.day == "" and "its name holds several days ('2026-01-01', '2026-01-31')" in " ".join(span.notes)
    assert [batch.day for batch in store.info().batches] == ["2026-01-01", "2026-01-09", "2026-01-05", ""]
    refused("1 of 4 logs has no day .*concordant store day gives them one", read, store, as_of="2026-01-09")
    store.date("2026-01-31", number=4)
    assert len(read(store, last="1d")) == 60
    refused("a day is written as 2026-01-31", store.ingest, day(tmp_path, 3), day="31.1.2026", kind=UsageError)


@pytest.mark.parametrize(
    ("window", "days"),
    [
        ({"as_of": "2026-01-03"}, [1, 2, 3]),
        ({"last": "2d"}, [4, 6]),
        ({"last": "3d"}, [4, 6]),
        ({"last": "1w", "as_of": "2026-01-04"}, [1, 2, 3, 4]),
        ({"last": "2d", "as_of": "2026-01-04"}, [3, 4]),
        ({"since": "2026-01-03", "as_of": "2026-01-05"}, [3, 4]),
        ({"since": "2026-01-04"}, [4, 6]),
    ],
)
def test_days_of_a_store_and_of_a_log(
    window: dict[str, str], days: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("days")
    store, there = Store(folder / "s"), [1, 2, 3, 4, 6]
    for number in there:
        store.ingest(day(folder, number), **PEOPLE)
    expected = [number for number in there if number in days and not (window == {"last": "2d"} and number == 4)]
    rows = [row for number in expected for row in drawn(number)]
    for compacted in (False, True):
        if compacted:
            store.compact()
        prefs = read(store, **window)
        assert prefs == read(written(folder / "whole.csv", rows), **PEOPLE) == store.preferences(**window)
        assert f"{len(expected)} of 5 logs" in " ".join(prefs.notes)
    lines = [",".join([*row, f"2026-01-{number:02d}"]) for number in there for row in drawn(number)]
    log = folder / "log.csv"
    log.write_text("winner,loser,worker,when\n" + "\n".join(lines) + "\n")
    timed = read(log, time="when", **window)
    assert len(timed) == len(rows)
    assert f"{len(rows)} judgments of" in " ".join(timed.notes)
    refused("days of a log need the column", read, log, **window, kind=UsageError)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_days_of_times_in_zones(tmp_path: Path, zone: str) -> None:
    """A day is one of UTC, whatever zone times are written in; pandas says which rows are of it."""
    draw = random.Random(7)
    times = pd.to_datetime([draw.randrange(4 * 86400) + 1767225600 for _ in range(80)], unit="s", utc=True)
    times = times.append(pd.to_datetime(["2026-01-02T00:00:00Z", "2026-01-01T23:59:59Z", "2026-01-03T00:00:00Z"]))
    rows = drawn(3, len(times))
    table = pd.DataFrame(rows, columns=["winner", "loser", "worker"]).assign(when=times.tz_convert(zone))
    table.to_parquet(tmp_path / "log.parquet")
    written_so = table.assign(when=[time.isoformat() for time in table["when"]])
    written_so.to_csv(tmp_path / "log.csv", index=False)
    day_of_row = times.strftime("%Y-%m-%d")
    newest = max(times)
    for window, mask in (
        ({"as_of": "2026-01-01"}, day_of_row <= "2026-01-01"),
        ({"as_of": "2026-01-02"}, day_of_row <= "2026-01-02"),
        ({"since": "2026-01-03"}, day_of_row >= "2026-01-03"),
        ({"since": "2026-01-02", "as_of": "2026-01-03"}, (day_of_row >= "2026-01-02") & (day_of_row <= "2026-01-03")),
        ({"last": "2d"}, day_of_row >= (newest - pd.Timedelta(days=1)).strftime("%Y-%m-%d")),
        ({"last": "1d", "as_of": "2026-01-02"}, day_of_row == "2026-01-02"),
    ):
        pairs = table[np.asarray(mask)].groupby(["winner", "loser"]).size()
        for name in ("log.parquet", "log.csv"):
            prefs: Any = read(tmp_path / name, time="when", **window)
            items = prefs.items.tolist()
            found = Counter[tuple[str, str]]()
            for winner, loser, count in zip(
                prefs.winner.tolist(), prefs.loser.tolist(), prefs.count.tolist(), strict=True
            ):
                found[items[winner], items[loser]] += count
            assert found == pairs.to_dict(), (window, name)


def test_days_that_are_not_there(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 5))
    store.ingest(day(tmp_path, 8))
    refused(
        "no batch is up to 2026-01-04; what there is is of 2026-01-05 to 2026-01-08", read, store, as_of="2026-01-04"
    )
    note = " ".join(read(store, last="4d").notes)
    assert "days 2026-01-05 to 2026-01-08: 2 of 2 logs; of 2 days there is none ('2026-01-06', '2026-01-07')" in note
    for window, why in (
        ({"last": "1.5d"}, "a store knows whole days"),
        ({"last": "-1d"}, "a length of time is a positive number"),
        ({"as_of": "yesterday"}, "a day is written as 2026-01-31"),
        ({"since": "2026-01-09"}, "is after 2026-01-08, where it ends"),
        ({"since": "2026-01-05", "last": "1d"}, "give one of them"),
    ):
        refused(why, read, store, kind=UsageError, **window)


# -- names -------------------------------------------------------------------------------------------------------------
def test_a_name_belongs_to_one_batch(store: Store, tmp_path: Path) -> None:
    one, other = day(tmp_path, 1), day(tmp_path, 2)
    store.ingest(one, name="panel")
    assert not store.ingest(one, name="panel").new
    refused("batch 1 is called 'panel' already, and holds something else; concordant store replace", store.ingest,
            other, name="panel")  # fmt: skip
    assert store.replace(other, batch="panel").replaced == ("panel",)
    (batch,) = store.info().batches
    assert (batch.name, batch.batch, batch.day) == ("panel", 2, "2026-01-01")
    for which, why in (
        ({"batch": "panels"}, "no batch with batch='panels': did you mean 'panel'?"),
        ({"number": 1}, "no batch with number=1: There are 2"),
        ({"day": "2026-05-05"}, "no batch with day='2026-05-05'"),
        ({"before": "2026-01-01"}, "no batch is of a day before 2026-01-01"),
    ):
        refused(why, store.remove, **which)
    refused("no batch is named", store.remove, kind=UsageError)
    store.ingest({"winner": ["a"], "loser": ["b"]})
    store.ingest({"winner": ["b"], "loser": ["a"]})
    refused("2 batches are called 'table', the numbers 3, 4; name one by its number", store.remove, batch="table")


def kept_as(path: Path, rows: list[Row]) -> str:
    """Write votes to a file, over what it holds, in the form that its name asks for; return the log."""
    held = pa.Table.from_pylist([dict(zip(("winner", "loser", "worker"), row, strict=True)) for row in rows])
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path)) as base:
            base.execute("CREATE OR REPLACE TABLE votes AS SELECT * FROM held")
        return f"{path}::votes"
    if path.suffix == ".parquet":
        pa.parquet.write_table(held, path)
        return str(path)
    return str(written(path, rows))


@pytest.mark.parametrize("name", ["votes.parquet", "votes.duckdb", "votes.csv"])
def test_a_file_that_holds_something_else_is_not_counted_again(store: Store, tmp_path: Path, name: str) -> None:
    log = kept_as(tmp_path / name, drawn(1))
    store.ingest(log)
    kept_as(tmp_path / name, drawn(1)[::-1] + drawn(2))
    refused("votes.*: it held something else when it was taken in .batch 1.", store.ingest, log)
    assert store.info().batches[0].judgments == 60 and len(store.info().batches) == 1
    assert store.replace(log, batch=log).judgments == 120
    kept_as(tmp_path / name, drawn(3))
    assert store.ingest(log, name="later").judgments == 60
    kept_as(tmp_path / name, drawn(4))
    assert store.ingest(log, grown=True).judgments == 60
    assert [batch.judgments for batch in store.info().batches] == [120, 60, 60]


def test_a_file_of_a_folder_that_holds_something_else_is_not_counted_again(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "votes"
    one = written(folder / "one.csv", drawn(1))
    written(folder / "two.csv", drawn(2))
    store.ingest(folder)
    written(folder / "three.csv", drawn(3))
    assert store.ingest(folder).judgments == 60
    written(one, drawn(4))
    refused("one.csv: it held something else", store.ingest, folder)
    refused("replace puts all 2 files of that batch, as they are now, in its place", store.ingest, folder)
    store.remove(number=1)
    assert store.ingest(folder).judgments == 60  # what was taken out is not there to be counted twice


# -- the same judgments ------------------------------------------------------------------------------------------------
def test_other_bytes_with_the_same_judgments_are_known_and_said(store: Store, tmp_path: Path) -> None:
    log = written(tmp_path / "votes.csv", drawn(1))
    store.ingest(log, **PEOPLE)
    table = pa.Table.from_pylist([dict(zip(("winner", "loser", "worker"), row, strict=True)) for row in drawn(1)])
    pa.parquet.write_table(table, tmp_path / "votes.parquet")
    with gzip.open(tmp_path / "packed.csv.gz", "wb") as packed:
        packed.write(written(tmp_path / "turned.csv", drawn(1)[::-1]).read_bytes())
    for again in ("votes.parquet", "packed.csv.gz", "turned.csv"):
        taken = store.ingest(tmp_path / again, **PEOPLE)
        assert not taken.new
        assert taken.known == (f"{tmp_path / again} (the judgments of {log}, packed or ordered otherwise)",)
    assert store.info().judgments == 60
    monday, tuesday = day(tmp_path, 1, drawn(5)), day(tmp_path, 2, drawn(5)[::-1])
    assert store.ingest(monday, **PEOPLE).new and store.ingest(tuesday, **PEOPLE).new  # of days of their own


# -- removed, replaced -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("compacted", [False, True])
def test_what_was_removed_stays_out(store: Store, tmp_path: Path, compacted: bool) -> None:
    days = [day(tmp_path, number) for number in (1, 2, 3)]
    for one in days:
        store.ingest(one, **PEOPLE)
    if compacted:
        store.compact()
    (gone,) = store.remove(day="2026-01-02")
    assert (gone.batch, gone.judgments) == (2, 60) and store.remove(day="2026-01-02") == ()
    left = drawn(1) + drawn(3)
    assert counts(store) == counts(left)
    turned = written(tmp_path / "turned-2026-01-02.csv", drawn(2)[::-1])
    for again in (days[1], turned):
        taken = store.ingest(again, **PEOPLE)
        assert not taken.new and "taken out on " in taken.known[0], taken
    store.compact()
    store.verify()
    assert counts(store) == counts(left)
    named = {path.name for path in parts_folder(store.path).iterdir()}
    assert named == {"catalogue.json", *(part.file for part in store.info().files)}  # nothing of it lies about
    assert store.ingest(days[1], again="on purpose", **PEOPLE).judgments == 60
    assert store.info().batches[-1].name == "on purpose"
    assert counts(store) == counts(left + drawn(2))
    assert [batch.batch for batch in store.info().batches] == [1, 3, 4]


def test_a_store_may_lose_all_and_begin_again(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    store.remove(before="2026-01-02")
    assert len(store.preferences()) == 0 and store.verify().judgments == 0
    refused("keeps the cluster of each judgment", store.ingest, day(tmp_path, 2))
    store.ingest(day(tmp_path, 2), **PEOPLE)
    assert counts(store) == counts(drawn(2))


def test_a_corrected_day(store: Store, tmp_path: Path) -> None:
    first, second = day(tmp_path, 1), day(tmp_path, 2)
    for one in (first, second):
        store.ingest(one, **PEOPLE)
    store.compact()
    corrected = written(tmp_path / "corrected.csv", drawn(20))
    taken = store.replace(corrected, day="2026-01-02")  # read as the old one was
    assert (taken.day, taken.replaced, taken.judgments) == ("2026-01-02", (str(second),), 60)
    assert counts(store) == counts(drawn(1) + drawn(20))
    assert not store.ingest(second, **PEOPLE).new and not store.replace(corrected, day="2026-01-02").new
    refused(r"the store has it as batch 1 \(.*\), which stays", store.replace, first, day="2026-01-02")
    assert store.replace(second, day="2026-01-02").new  # the correction was wrong
    assert counts(store) == counts(drawn(1) + drawn(2))
    assert [batch.why for batch in store.info().removed] == ["replaced by batch 3", "replaced by batch 4"]
    store.verify()
    refused("there is no store", Store(tmp_path / "none").replace, first, day="2026-01-02")


@pytest.mark.parametrize("ids", [False, True])
def test_one_corrected_part_of_a_day(store: Store, tmp_path: Path, ids: bool) -> None:
    """A day of several files is replaced by all of them as they are now: those that did not change stay in it."""
    folder = tmp_path / "lake" / "day=2026-01-02"
    folder.mkdir(parents=True)

    def part(number: int, seed: int) -> list[Row]:
        rows = drawn(seed)
        lines = [f"{100 * number + place},{','.join(row)}" for place, row in enumerate(rows)]
        (folder / f"{number}.csv").write_text("vote,winner,loser,worker\n" + "\n".join(lines) + "\n")
        return rows

    there = [part(number, number) for number in range(3)]
    options: dict[str, Any] = {**PEOPLE, **({"columns": {"id": "vote"}} if ids else {})}
    store.ingest(folder, **options)
    assert not store.replace(folder, day="2026-01-02", **options).new
    there[1] = part(1, 20)
    for _ in range(2):
        taken = store.replace(folder, day="2026-01-02", **options)
        assert counts(store) == counts([row for rows in there for row in rows])
    assert not taken.new
    (folder / "2.csv").unlink()
    assert store.replace(f"{folder}/*.csv", batch=store.info().batches[0].name, **options).new
    assert counts(store) == counts([row for rows in there[:2] for row in rows])
    store.verify()


def test_a_day_of_several_batches_is_replaced_by_one_of_them(store: Store, tmp_path: Path) -> None:
    one, other = (written(tmp_path / f"{name}-2026-01-02.csv", drawn(seed)) for name, seed in (("a", 1), ("b", 2)))
    for path in (one, other):
        store.ingest(path, **PEOPLE)
    assert store.replace(one, day="2026-01-02").new
    assert counts(store) == counts(drawn(1))
    assert [batch.name for batch in store.info().batches] == [str(one)]
    store.verify()


def test_what_is_counted_once_more_is_called_so(store: Store, tmp_path: Path) -> None:
    for number in (1, 2):
        day(tmp_path / "lake", number)
    lake = str(tmp_path / "lake")
    list(store.ingest_days(lake, **PEOPLE))
    list(store.ingest_days(lake, again="redo", **PEOPLE))
    assert not any(taken.new for taken in store.ingest_days(lake, again="redo", **PEOPLE))
    store.ingest(day(tmp_path / "lake", 1), name="mine", again="two", **PEOPLE)
    assert [batch.name for batch in store.info().batches[2:]] == ["redo 2026-01-01", "redo 2026-01-02", "mine"]
    store.remove(batch="redo 2026-01-01")
    assert counts(store) == counts(drawn(1) * 2 + drawn(2) * 2)


def test_votes_with_ids_are_corrected_and_do_not_come_back(store: Store, tmp_path: Path) -> None:
    def dump(name: str, rows: list[Row], begin: int = 0) -> Path:
        path = tmp_path / name
        lines = [f"{begin + number},{','.join(row)}" for number, row in enumerate(rows)]
        path.write_text("vote,winner,loser,worker\n" + "\n".join(lines) + "\n")
        return path

    options: dict[str, Any] = {"columns": {"id": "vote"}, **PEOPLE}
    store.ingest(dump("2026-01-01.csv", drawn(1)), **options)
    store.ingest(dump("2026-01-02.csv", drawn(2), 60), **options)
    other = [(loser, winner, person) for winner, loser, person in drawn(2)]
    corrected = dump("corrected.csv", other, 60)
    refused("come with another content", store.ingest, corrected, **options)
    store.replace(corrected, day="2026-01-02", **options)
    assert counts(store) == counts(drawn(1) + other)
    store.remove(day="2026-01-01")
    whole = tmp_path / "whole.csv"
    whole.write_text(dump("a.csv", drawn(1)).read_text() + dump("b.csv", other, 60).read_text().split("\n", 1)[1])
    assert not store.ingest(whole, **options).new  # neither what is there, nor what was taken out
    store.verify()


# -- forgotten ---------------------------------------------------------------------------------------------------------
def test_who_is_forgotten_stays_so(store: Store, tmp_path: Path) -> None:
    days = [day(tmp_path, number) for number in (1, 2, 3)]
    for one in days[:2]:
        store.ingest(one, **PEOPLE)
    store.compact()

    def left(*numbers: int) -> Counter[Row]:
        return counts([row for number in numbers for row in drawn(number) if row[2] != "w3"])

    gone = sum(row[2] == "w3" for number in (1, 2) for row in drawn(number))
    assert store.forget("w3") == gone > 0 and store.forget("w3") == 0
    assert counts(store) == left(1, 2)
    folder = parts_folder(store.path)
    held = b"".join(path.read_bytes() for path in [store.path, *folder.iterdir()])
    assert b"w2" in held and b"w3" not in held  # neither in the catalogue nor in a segment
    (one,) = store.info().forgotten
    assert one.sign == sign_of("w3", one.salt) and one.judgments == gone
    # its file again, in another order; a late day; an export; a new store made of it; a store made anew
    assert not store.ingest(days[0], **PEOPLE).new
    assert not store.ingest(written(tmp_path / "turned.csv", drawn(1)[::-1]), **PEOPLE).new
    late = store.ingest(days[2], **PEOPLE)
    assert (late.judgments, late.forgotten) == (left(3).total(), 60 - left(3).total())
    assert counts(store) == left(1, 2, 3)
    store.verify()
    out = tmp_path / "all.parquet"
    store.export(out)
    again = Store(tmp_path / "again.store")
    again.ingest(out)
    assert counts(again) == left(1, 2, 3)
    anew = Store(tmp_path / "anew.store")
    store.remove(day="2026-01-02")
    for path in days:
        anew.ingest(path, excluding=store.path, **PEOPLE)
    assert counts(anew) == left(1, 3)
    assert "taken out on" in anew.ingest(days[1], **PEOPLE).known[0]
    anew.verify()


@pytest.mark.parametrize("kind", ["orders", "selections"])
def test_who_is_forgotten_of_lists(store: Store, kind: str) -> None:
    value = {"orders": "rank", "selections": "clicked"}[kind]
    one = {"orders": "judgment", "selections": "session"}[kind]

    def table(people: list[str], begin: int) -> dict[str, list[Any]]:
        rows = [(f"{begin + at}", person, item, place) for at, person in enumerate(people)
                for place, item in enumerate("abc", 1)]  # fmt: skip
        columns = {one: [row[0] for row in rows], "worker": [row[1] for row in rows], "item": [row[2] for row in rows]}
        more = {"position": [row[3] for row in rows]} if kind == "selections" else {}
        return columns | more | {value: [row[3] if kind == "orders" else int(row[3] == 1) for row in rows]}

    first, second = table(["w1", "w2", "w1"], 0), table(["w2", "w3"], 10)
    store.ingest(first, **PEOPLE)
    store.ingest(second, **PEOPLE)
    store.compact()
    assert store.forget("w1") == 2
    assert read(store) == read(table(["w2", "w2", "w3"], 0), **PEOPLE)
    store.verify()


def test_forgetting_nobody(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    before = store.info()
    refused("nobody is named to be forgotten; name the label of a worker", store.forget, kind=UsageError)
    refused("no judgment has the worker 'w9'; nobody was forgotten", store.forget, "w1", "w9")
    assert store.info() == before
    plain = Store(tmp_path / "plain.store")
    plain.ingest(day(tmp_path, 1))
    refused("keeps no clusters", plain.forget, "w1", kind=UsageError)
    refused("there is no store", Store(tmp_path / "none").forget, "w1")
    numbers = Store(tmp_path / "numbers.store")
    numbers.ingest({"winner": [1, 2], "loser": [2, 1], "worker": [7, 8]}, **PEOPLE)
    refused("each worker is an integer there, as 3 or -12, not 'w1'", numbers.forget, "w1", kind=UsageError)
    for label in ("07", "+7", "7.0", "٧", " 7", "-0"):
        refused("each worker is an integer there, as 3 or -12", numbers.forget, label, kind=UsageError)
    assert numbers.forget("7") == 1


def test_all_of_a_batch_may_be_forgotten(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1, [("a", "b", "w1")] * 5), **PEOPLE)
    store.ingest(day(tmp_path, 2, [("b", "a", "w2")] * 3), **PEOPLE)
    store.compact()
    assert store.forget("w1") == 5
    assert [(batch.judgments, batch.forgotten) for batch in store.info().batches] == [(0, 5), (3, 0)]
    late = store.ingest(day(tmp_path, 3, [("a", "b", "w1")] * 4), **PEOPLE)
    assert (late.new, late.judgments, late.forgotten) == (True, 0, 4)
    assert not store.ingest(day(tmp_path, 3, [("a", "b", "w1")] * 4), **PEOPLE).new
    assert counts(store) == Counter({("b", "a", "w2"): 3})
    store.compact()
    store.verify()
    assert store.forget("w2") == 3 and len(store.preferences()) == 0
    store.verify()


# -- votes that are forgotten ------------------------------------------------------------------------------------------
BY_ID: dict[str, Any] = {"columns": {"id": "vote"}, **PEOPLE}


def dumped(path: Path, votes: dict[int, Row]) -> Path:
    """Votes by their ids, in drawn order."""
    rows = list(votes.items())
    random.Random(len(rows)).shuffle(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("vote,winner,loser,worker\n" + "".join(f"{vote},{','.join(row)}\n" for vote, row in rows))
    return path


def votes_of(day: int) -> dict[int, Row]:
    return {100 * day + at: row for at, row in enumerate(drawn(day))}


def without(votes: dict[int, Row], *gone: int) -> list[Row]:
    return [row for vote, row in votes.items() if vote not in gone]


@pytest.mark.parametrize("compacted", [False, True])
def test_single_votes_are_forgotten_by_their_ids(store: Store, tmp_path: Path, compacted: bool) -> None:
    """Whichever vote it is, the counts are those of the others; it stays out of everything that comes later."""
    one, two, three = (votes_of(number) for number in (1, 2, 3))
    paths = [dumped(tmp_path / f"2026-01-0{at}.csv", votes) for at, votes in enumerate((one, two, three), 1)]
    for path in paths[:2]:
        store.ingest(path, **BY_ID)
    before = {part.file for part in store.info().segments}
    if compacted:
        store.compact()
    gone = [100, 117, 159, 203]
    assert store.forget(ids=gone[:1]) == 1 and len({part.file for part in store.info().segments} - before) == 1
    assert store.forget(ids=[str(one) for one in gone]) == 3  # one of them was forgotten already
    assert store.forget(ids=gone) == 0
    assert counts(store) == counts(without(one, *gone) + without(two, *gone))
    assert [(batch.judgments, batch.forgotten) for batch in store.info().batches] == [(57, 3), (59, 1)]
    store.verify()
    # the same file; another order with new votes; a person forgotten, then another vote
    assert not store.ingest(paths[0], **BY_ID).new
    more = dumped(tmp_path / "more.csv", one | three)
    taken = store.ingest(more, day="2026-01-03", **BY_ID)
    assert taken.judgments == 60 and "3 votes are forgotten, by 'vote', and left out" in " ".join(taken.notes)
    assert "57 votes are in the store already" in " ".join(taken.notes)
    left = {**one, **two, **three}
    store.forget("w2")
    left = {vote: row for vote, row in left.items() if row[2] != "w2"}
    more_gone = [next(vote for vote, row in votes.items() if row[2] == "w4") for votes in (one, two, three)]
    assert store.forget(ids=more_gone) == 3
    gone += more_gone
    assert counts(store) == counts(without(left, *gone))
    of_w2 = next(vote for vote, row in one.items() if row[2] == "w2" and vote not in gone)
    assert store.forget(ids=of_w2) == 0 and store.info().forgotten[-1].judgments == 0  # taken out with who made it
    store.verify()
    # a corrected day holds them again
    other = {vote: (loser, winner, person) for vote, (winner, loser, person) in one.items()}
    corrected = store.replace(dumped(tmp_path / "corrected.csv", other), day="2026-01-01", **BY_ID)
    left = {vote: row for vote, row in {**other, **two, **three}.items() if row[2] != "w2"}
    assert corrected.forgotten and counts(store) == counts(without(left, *gone))
    store.remove(day="2026-01-02")
    left = {vote: row for vote, row in left.items() if vote not in two}
    assert store.forget(ids=204) == 0  # known, and of no judgment any more
    assert not store.ingest(dumped(tmp_path / "again.csv", two), day="2026-01-02", **BY_ID).new
    assert counts(store) == counts(without(left, *gone))
    store.verify()
    named = {path.name for path in parts_folder(store.path).iterdir()}
    assert named == {"catalogue.json", *(part.file for part in store.info().files)}


def test_forgotten_votes_stay_out_of_stores_made_anew(store: Store, tmp_path: Path) -> None:
    one, two = votes_of(1), votes_of(2)
    first, second = dumped(tmp_path / "2026-01-01.csv", one), dumped(tmp_path / "2026-01-02.csv", two)
    store.ingest(first, **BY_ID)
    store.compact()
    copy = tmp_path / "copy.store"
    store.backup(copy)
    store.ingest(second, **BY_ID)
    gone = [101, 102, 103, 204]
    store.forget(ids=gone)
    store.forget("w1")
    kept = {vote: row for vote, row in {**one, **two}.items() if row[2] != "w1" and vote not in gone}
    assert counts(store) == counts([*kept.values()])
    # made anew, from its logs or from an export
    anew = Store(tmp_path / "anew.store")
    refused("knows votes that are forgotten by their ids; name the column of the ids", anew.ingest, first,
            excluding=store, **PEOPLE, kind=UsageError)  # fmt: skip
    for path in (first, second):
        anew.ingest(path, excluding=store, **BY_ID)
    assert counts(anew) == counts(store) and len(anew.info().forgotten) == 2
    store.export(tmp_path / "all.parquet")
    of_export = Store(tmp_path / "export.store")
    of_export.ingest(tmp_path / "all.parquet")
    assert counts(of_export) == counts(store)
    late = dumped(tmp_path / "late.csv", {vote: one[vote] for vote in gone[:3]} | {900: ("a", "b", "w5")})
    refused("so that they stay so", of_export.ingest, late, **PEOPLE, kind=UsageError)
    assert of_export.ingest(late, **BY_ID).judgments == 1
    # a copy from before
    back = store.restore(copy)
    kept = {vote: row for vote, row in kept.items() if vote in one}
    assert counts(store) == counts([*kept.values()]) and back.forgotten == 60 - len(kept)
    assert store.ingest(second, **BY_ID).judgments == sum(row[2] != "w1" for row in without(two, *gone))
    assert not store.ingest(dumped(tmp_path / "turned.csv", one), **BY_ID).new
    for one_of_them in (store, anew, of_export, Store(copy)):
        one_of_them.verify()


def test_a_vote_may_be_several_judgments_or_none(store: Store, tmp_path: Path) -> None:
    rows = [
        {"vote": f"v{at}", "model_a": "a", "model_b": "b", "wins_a": at % 4, "wins_b": at % 3 or 1} for at in range(24)
    ]
    options: dict[str, Any] = {"columns": {"id": "vote", "left_wins": "wins_a", "right_wins": "wins_b"}}
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "wins.parquet")
    store.ingest(tmp_path / "wins.parquet", **options)
    gone = {"v11": 5, "v10": 3, "v12": 1, "v7": 4}  # wins of both
    assert store.forget(ids=gone) == sum(gone.values())
    left = [row for row in rows if row["vote"] not in gone]
    pa.parquet.write_table(pa.Table.from_pylist(left), tmp_path / "left.parquet")
    assert read(store) == read(tmp_path / "left.parquet", **options)
    assert not store.ingest(tmp_path / "wins.parquet", **options).new
    lines = "vote,winner,loser,count\n1,a,b,3\n2,a,b,4\n3,b,a,5\n"
    (tmp_path / "many.csv").write_text(lines)
    many = Store(tmp_path / "many.store")
    many.ingest(tmp_path / "many.csv", columns={"id": "vote"})
    assert many.forget(ids=["2"]) == 4 and read(many).count.tolist() == [3, 5]
    sided = Store(tmp_path / "sided.store")  # ties, strengths, who is at home, rows that are left out
    draw = random.Random(4)
    made = [
        {"vote": at, "prompt": draw.randrange(3), "left": "ab"[at % 2], "right": "c", "winner": winner,
         "weight": draw.choice([1.0, 2.5]), "worker": f"w{draw.randrange(3)}"}
        for at in range(40) for winner in [draw.choice(["left", "right", "tie", "???" if at < 4 else "tie"])]
    ]  # fmt: skip
    options = {"columns": {"id": "vote", "query": "prompt"}, "home": "left", "on_error": "skip", **PEOPLE}
    pa.parquet.write_table(pa.Table.from_pylist(made), tmp_path / "sided.parquet")
    sided.ingest(tmp_path / "sided.parquet", **options)
    sided.forget(ids=range(10, 30, 3))
    left = [row for row in made if row["vote"] not in range(10, 30, 3)]
    pa.parquet.write_table(pa.Table.from_pylist(left), tmp_path / "left.parquet")
    assert read(sided) == read(tmp_path / "left.parquet", **options)
    assert sided.forget(ids=list(range(10, 40))) and len(read(sided)) < 10
    sided.verify()


def test_votes_that_cannot_be_forgotten(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("there is no store", store.forget, ids=["1"])
    store.ingest(dumped(tmp_path / "2026-01-01.csv", votes_of(1)), **BY_ID)
    before = store.info()
    refused("no vote has the id '7'; nothing was forgotten", store.forget, ids=[101, 7, 7])
    refused(r"4 ids are of no vote \(such as '1', '2', '3'\); nothing was forgotten", store.forget, ids=[1, 2, 3, 4])
    refused("no vote is named to be forgotten", store.forget, ids=[], kind=UsageError)
    refused("one after the other", store.forget, "w1", ids=[101], kind=UsageError)
    (tmp_path / "none.txt").write_text("\n \n")
    (tmp_path / "other.csv").write_text("winner,loser\na,b\n")
    (tmp_path / "holes.csv").write_text("vote,x\n101,1\n,2\n")
    refused("there are no ids", store.forget, ids=tmp_path / "none.txt")
    refused("no column 'vote'; columns there: 'winner', 'loser'", store.forget, ids=tmp_path / "other.csv")
    refused("rows without an id in 'vote'", store.forget, ids=tmp_path / "holes.csv")
    refused("missing.txt: No such file", store.forget, ids=tmp_path / "missing.txt")
    assert store.info() == before
    (tmp_path / "some.txt").write_text("101\n\n 102 \n101\n")
    assert store.forget(ids=tmp_path / "some.txt") == 2
    pa.parquet.write_table(pa.table({"vote": [102, 103], "why": ["x", "y"]}), tmp_path / "some.parquet")
    assert store.forget(ids=tmp_path / "some.parquet") == 1
    nobody = Store(tmp_path / "nobody.store")
    nobody.ingest(day(tmp_path, 1))
    refused("knows no ids of votes", nobody.forget, ids=["101"], kind=UsageError)
    # ids as they were written before, without what each vote is
    real = Votes.table
    monkeypatch.setattr(Votes, "table", lambda self, left: real(self, left).select(["id", "content"]))
    old = Store(tmp_path / "old.store")
    old.ingest(dumped(tmp_path / "2026-01-02.csv", votes_of(2)), **BY_ID)
    refused("taken in by an earlier version of concordant, which did not write down what each vote was", old.forget,
            ids=[201])  # fmt: skip
    monkeypatch.undo()
    old.ingest(dumped(tmp_path / "2026-01-03.csv", votes_of(3)), **BY_ID)
    old.forget("w1")  # people can be forgotten, and votes of later batches
    some = next(vote for vote, row in votes_of(3).items() if row[2] != "w1")
    assert old.forget(ids=[some]) == 1
    old.verify()


def test_votes_are_forgotten_while_their_log_is_read(store: Store, tmp_path: Path, monkeypatch: Any) -> None:
    """What is forgotten between the reading of a corrected day and its commit stays out of it."""
    store.ingest(dumped(tmp_path / "2026-01-01.csv", votes_of(1)), **BY_ID)
    intake = Intake._read

    def forgotten(self: Intake, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(Intake, "_read", intake)
        found = intake(self, *arguments, **options)
        Store(store.path).forget(ids=[105])
        return found

    monkeypatch.setattr(Intake, "_read", forgotten)
    other = {vote: (loser, winner, person) for vote, (winner, loser, person) in votes_of(1).items()}
    store.replace(dumped(tmp_path / "corrected.csv", other), day="2026-01-01", **BY_ID)
    assert counts(store) == counts(without(other, 105))
    store.verify()


def test_who_is_forgotten_elsewhere_is_taken_out_of_what_is_there(store: Store, tmp_path: Path) -> None:
    """A store that had the judgments before it heard of the one in whose place it is made."""
    store.ingest(dumped(tmp_path / "2026-01-01.csv", votes_of(1)), **BY_ID)
    store.forget("w3")
    store.forget(ids=[101, 102])
    anew = Store(tmp_path / "anew.store")
    anew.ingest(tmp_path / "2026-01-01.csv", **BY_ID)
    anew.ingest(dumped(tmp_path / "2026-01-03.csv", votes_of(3)), **BY_ID)
    anew.compact()
    anew.ingest(dumped(tmp_path / "2026-01-02.csv", votes_of(2)), excluding=store, **BY_ID)
    left = {**votes_of(1), **votes_of(2), **votes_of(3)}
    assert counts(anew) == counts([row for row in without(left, 101, 102) if row[2] != "w3"])
    anew.verify()
    plain = Store(tmp_path / "plain.store")
    refused("people are forgotten in the store in whose place this one is made, by 'worker'", plain.ingest,
            tmp_path / "2026-01-01.csv", excluding=store, columns={"id": "vote"}, kind=UsageError)  # fmt: skip


# -- what a stranger tried ---------------------------------------------------------------------------------------------
def test_a_store_of_which_all_was_taken_out(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    store.remove(number=1)
    for work, arguments in ((read, [store]), (store.export, [tmp_path / "all.csv"])):
        refused("votes.store: holds no judgments; all that it held was taken out", work, *arguments)
    refused("there are no batches", read, store, last="7d")
    assert len(store.preferences()) == 0 and store.compact().segments == (0, 0)


def test_days_said_later_are_those_that_are_kept(store: Store, tmp_path: Path) -> None:
    for number in (4, 5):
        store.ingest(day(tmp_path, number), keep="3d", **PEOPLE)
    for said, why in (("2030-01-01", "is yet to come"), ("2025-12-01", "is outside what is kept")):
        refused(f"its day {said} {why}", store.date, said, number=2)
    assert store.date("2026-01-03", number=1) == str(day(tmp_path, 4))
    assert not store.ingest(day(tmp_path, 5), keep="all", **PEOPLE).new  # known; all days are kept from now on
    assert store.info().facts.keep == 0
    assert store.ingest(day(tmp_path, 1), **PEOPLE).new
    for work, ways in ((store.replace, "batch, number, day"), (store.date, "batch, number")):
        arguments = [day(tmp_path, 2)] if work == store.replace else ["2026-01-01"]
        refused(rf"no batch is named \({ways}\)", work, *arguments, kind=UsageError)
    refused("a batch has a name", store.ingest, day(tmp_path, 2), name="", kind=UsageError)
    refused("a store keeps no times", store.ingest, day(tmp_path, 2), time="when", kind=UsageError)


def test_a_copy_is_not_put_over_what_is_damaged(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    store.backup(tmp_path / "copy.store")
    shutil.rmtree(parts_folder(store.path))
    refused(
        "is not overwritten: move the store and its folder away, then restore", store.restore, tmp_path / "copy.store"
    )
    with pytest.raises(InputError) as error:
        store.verify()
    assert str(error.value).count("is missing") == 1
    store.path.write_bytes(store.path.read_bytes()[:5000])
    refused("is not overwritten", store.restore, tmp_path / "copy.store")
    store.path.unlink()
    store.restore(tmp_path / "copy.store")
    assert counts(store) == counts(drawn(1))


# -- kept days ---------------------------------------------------------------------------------------------------------
def test_days_that_are_kept(store: Store, tmp_path: Path) -> None:
    store.ingest(day(tmp_path, 1), keep="3d", **PEOPLE)
    for number in (3, 2):
        assert store.ingest(day(tmp_path, number), **PEOPLE).expired == ()
    assert store.ingest(day(tmp_path, 4), **PEOPLE).expired == (str(day(tmp_path, 1)),)
    assert counts(store) == counts(drawn(2) + drawn(3) + drawn(4))
    assert not store.ingest(day(tmp_path, 1), **PEOPLE).new
    late = day(tmp_path, 1, drawn(30))
    refused("its day 2026-01-01 is outside what is kept: .*the last 3 days, from 2026-01-02 on", store.ingest, late,
            **PEOPLE)  # fmt: skip
    refused("so every log has a day", store.ingest, written(tmp_path / "x.csv", drawn(31)), **PEOPLE)
    future = written(tmp_path / "x.csv", drawn(31))
    refused("its day 2999-01-01 is yet to come", store.ingest, future, day="2999-01-01", **PEOPLE)
    far = written(tmp_path / "far-2026-01-20.csv", drawn(33))
    refused(r"2026-01-20 is 16 days after the newest one \(2026-01-04\), so that nothing", store.ingest, far, **PEOPLE)
    assert store.retain("2d") == (str(day(tmp_path, 2)),)
    store.retain("all")
    assert store.ingest(late, **PEOPLE).new
    refused("a number of whole days such as 90d", store.retain, "sometimes", kind=UsageError)
    store.ingest(written(tmp_path / "no-day.csv", drawn(32)), **PEOPLE)
    refused("1 of 4 logs have no day|1 of 4 logs has no day", store.retain, "3d")
    store.verify()


# -- copies ------------------------------------------------------------------------------------------------------------
def test_a_copy_is_put_back_and_who_was_forgotten_stays_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    store.ingest(day(tmp_path, 2), **PEOPLE)
    store.compact()
    copy = Store(tmp_path / "copy.store")
    made = store.backup(copy)
    assert (made.judgments, made.batches) == (120, 2) and copy.verify().judgments == 120
    assert counts(copy) == counts(drawn(1) + drawn(2))
    refused("is there already", store.backup, copy)
    store.ingest(day(tmp_path, 3), **PEOPLE)
    store.remove(day="2026-01-01")
    store.forget("w1")
    back = store.restore(copy)
    left = [row for row in drawn(1) + drawn(2) if row[2] != "w1"]
    assert counts(store) == counts(left) and back.forgotten == 120 - len(left)
    store.verify()
    assert store.ingest(day(tmp_path, 3), **PEOPLE).forgotten > 0
    elsewhere = Store(tmp_path / "elsewhere.store")
    elsewhere.restore(copy)
    assert counts(elsewhere) == counts(drawn(1) + drawn(2))
    refused("not put in its own place", copy.restore, copy)
    monkeypatch.setattr("concordant.io.store.commits.now", lambda: "1999")
    begun = Store(tmp_path / "begun.store")
    begun.ingest(day(tmp_path, 1), **PEOPLE)
    refused("no copy of .*begun.store, but of a store that was begun at", begun.restore, copy)
    segment = next(parts_folder(copy.path).glob("segment*"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    before = counts(store)
    refused("was changed since it was written", store.restore, copy)
    assert counts(store) == before


def test_a_copy_of_what_changes_meanwhile(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.ingest(day(tmp_path, 1), **PEOPLE)
    store.ingest(day(tmp_path, 2), **PEOPLE)
    real = shutil.copyfile

    def overtaken(source: Path, place: Path) -> None:
        monkeypatch.undo()
        store.remove(day="2026-01-01")
        real(source, place)

    monkeypatch.setattr("concordant.io.store.commits.shutil.copyfile", overtaken)
    copy = Store(tmp_path / "copy.store")
    assert store.backup(copy).judgments == 60
    assert counts(copy) == counts(drawn(2)) and copy.verify().leftovers == ()


# -- older stores ------------------------------------------------------------------------------------------------------
def as_format_2(store: Path) -> None:
    """Make a catalogue what version 2 of the format had."""
    with duckdb.connect(str(store)) as catalogue:
        for table in ("sums", "removed", "forgotten"):
            catalogue.execute(f"DROP TABLE {table}")
        for column in ("day", "sign", "forgotten"):
            catalogue.execute(f"ALTER TABLE batches DROP COLUMN {column}")
        catalogue.execute("DELETE FROM store WHERE key = 'keep'")
        catalogue.execute("UPDATE store SET value = '2' WHERE key = 'format'")


def test_a_store_of_format_2(store: Store, tmp_path: Path) -> None:
    days = [day(tmp_path, number) for number in (1, 2, 3)]
    for one in days[:2]:
        store.ingest(one, **PEOPLE)
    prefs = read(store)

    def merged(old: Catalogue | None) -> Changed:
        """What ``compact`` of that version did."""
        assert old is not None
        batches = tuple([replace(batch, segment=HERE) for batch in old.batches])
        return Changed(replace(old, batches=batches, segments=(to_write(),)), {HERE: lambda: prefs})

    commit(store.path, merged, by="0.1")
    as_format_2(store.path)
    assert counts(store) == counts(drawn(1) + drawn(2))
    store.ingest(days[2], **PEOPLE)
    refused("was merged with others by an earlier version", store.remove, number=1)
    refused("an earlier version of concordant has merged", store.forget, "w1")
    store.remove(number=3)
    store.verify()
    store.remove(number=[1, 2])  # together they can go
    assert len(store.preferences()) == 0


def test_what_the_catalogue_may_not_say(store: Store, tmp_path: Path) -> None:
    for number in (1, 2):
        store.ingest(day(tmp_path, number), **PEOPLE)
    store.compact()
    good = store.path.read_bytes()
    for change, why in (
        ("UPDATE batches SET day = '2026-1-1'", "is no day"),
        ("UPDATE sums SET batches = '[1, 7]'", "is not that of its batches"),
        ("UPDATE sums SET batches = '{}'", "a sum of"),
        ("UPDATE sums SET judgments = 7", "is not that of its batches|the catalogue says 7"),
        ("UPDATE sums SET file = '../x.parquet'", "is no name of a segment"),
        ("INSERT INTO forgotten VALUES ('x', 'y', 1, 'z')", "is no SHA-256"),
        ("UPDATE store SET value = '-1' WHERE key = 'revision'", ""),
    ):
        with duckdb.connect(str(store.path)) as catalogue:
            catalogue.execute(change)
        if why:
            refused(why, store.verify)
        store.path.write_bytes(good)
    store.verify()
    assert json.loads(read_catalogue(store.path).sums[0].batches) == [1, 2]


def test_preferences_in_memory_have_batches_too(store: Store) -> None:
    votes = Preferences.from_comparisons(["a", "a"], ["b", "b"])
    store.ingest(votes, name="one", day="2026-01-01")
    assert not store.ingest(votes, name="two", day="2026-01-02").new  # a table is its judgments
    assert store.ingest(votes, name="two", day="2026-01-02", again="two").new
    assert len(cc.read(store, as_of="2026-01-01")) == 2
    with pytest.raises(ConcordantError):
        store.forget("a")
