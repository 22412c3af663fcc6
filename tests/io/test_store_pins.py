"""What a store fixes by its first log, files that it knows, and the way out of a store and into a new one."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from concordant import InputError, Preferences, UsageError
from concordant.apps.commands import main
from concordant.io.ingest import Store
from concordant.io.read import read
from concordant.io.store.known import MARK, beside, load
from store_faults import kept_database

OLD = Path(__file__).parents[1] / "data" / "stores_0.1.tar.gz"
"""Stores that version 0.1.0 made (commit 8f5aa0a, DuckDB 1.4.0) with the logs they were made of."""
VOTES = "winner,loser,language,topic,user,annotator,speed,age\na,b,de,x,u,v,1,2\nb,c,fr,y,w,v,0,1\n"
MORE = "winner,loser,language,topic,user,annotator,speed,age\nc,b,de,y,u,v,3,1\n"
SIDES = "left,right,outcome,neutral,ground,language\na,b,left,0,1,de\nb,c,right,1,0,fr\n"


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database(foreign=True):
        yield


@pytest.fixture(name="days")
def _days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"monday.csv": VOTES, "tuesday.csv": MORE, "sides.csv": SIDES}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sides2.csv").write_text(SIDES + "c,a,left,0,1,de\n")
    return tmp_path


def refused(act: Callable[[], Any], why: str, kind: type[Exception] = InputError) -> None:
    with pytest.raises(kind, match=why) as error:
        act()
    assert "\n" not in str(error.value)


def query(column: str) -> dict[str, Any]:
    return {"columns": {"query": column}}


PINNED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, query("language"), r"has the query of each judgment \('language'\), the store keeps none"),
    (
        query("language"),
        {},
        r"keeps the query of each judgment \('language'\).* this log has none; name it \(columns=.'query': ….\)",
    ),
    (query("language"), query("topic"), "the query of each judgment is 'topic' here and 'language' in the store"),
    (
        {"cluster": "user"},
        {"cluster": "annotator"},
        "the cluster of each judgment is 'annotator' here and 'user' in the",
    ),
    ({"cluster": "user"}, {}, r"keeps the cluster of each judgment \(user\)"),
    ({}, {"cluster": "user"}, "without clusters"),
    ({"covariates": ["speed"]}, {"covariates": ["age"]}, "keeps the covariates 'speed'.*given here: 'age'"),
    ({"covariates": ["speed"]}, {"covariates": ["speed", "age"]}, "given here: 'age', 'speed'"),
]


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize(("first", "then", "why"), PINNED)
def test_what_the_first_log_fixes_holds_for_the_others(first: dict[str, Any], then: dict[str, Any], why: str) -> None:
    store = Store("s")
    store.ingest("monday.csv", **first)
    before = read(store), store.info()
    refused(lambda: store.ingest("tuesday.csv", **then), rf"tuesday\.csv: .*{why}")
    refused(lambda: store.ingest("monday.csv", **then), r"monday\.csv: the store has it already, read with")
    assert (read(store), store.info()) == before
    assert not store.ingest("monday.csv", **first).new
    assert store.ingest("tuesday.csv", **first).new
    assert read(store) == read("monday.csv", **first) + read("tuesday.csv", **first)


@pytest.mark.usefixtures("days")
def test_home_and_neutral_are_fixed() -> None:
    store, home = Store("s"), {"home": "left", "columns": {"neutral": "neutral"}}
    store.ingest("sides.csv", **home)
    facts = store.info().facts
    assert (facts.home, facts.neutral, facts.query) == ("left", "neutral", None)
    refused(
        lambda: store.ingest("sides2.csv", grown=True, home="right"), "which side is at home is 'right' here and 'left'"
    )
    ground = {"home": "left", "columns": {"neutral": "ground"}}
    refused(
        lambda: store.ingest("sides2.csv", grown=True, **ground),
        "where nobody is at home is 'ground' here and 'neutral'",
    )
    refused(lambda: store.ingest("sides.csv", **ground), "the store has it already, read with")
    assert store.ingest("sides2.csv", grown=True, home="left").new  # found by its usual name: the same column
    assert not store.ingest("sides.csv", home="left").new
    refused(lambda: read(store, home="right"), "with home='left', not 'right'", UsageError)


@pytest.mark.usefixtures("days")
def test_a_known_file_that_would_be_read_alike_is_known() -> None:
    store = Store("s")
    store.ingest("monday.csv")
    for options in (
        {"columns": {"winner": "winner"}},
        {"kind": "comparisons"},
        {"on_error": "skip"},
        {"columns": {"winner": "winner", "loser": "loser"}, "kind": "comparisons"},
        {"engine": "memory"},
    ):
        assert not store.ingest("monday.csv", **options).new
    refused(
        lambda: store.ingest("monday.csv", columns={"winner": "loser", "loser": "winner"}), "would be other judgments"
    )
    refused(lambda: store.ingest("monday.csv", kind="orders"), "monday.csv")


def test_a_known_file_whose_bad_rows_were_left_out(days: Path) -> None:
    store = Store("s")
    (days / "bad.csv").write_text("winner,loser\na,b\nc,c\n")
    store.ingest("bad.csv", on_error="skip")
    assert store.ingest("bad.csv").known == ("bad.csv (then rows in error were left out)",)
    assert store.ingest("bad.csv", on_error="skip").known == ("bad.csv",)


def test_clicks_are_how_a_file_is_read(days: Path) -> None:
    store = Store("s")
    (days / "clicks.csv").write_text("session,position,item,clicked\n1,1,a,1\n1,2,b,1\n")
    store.ingest("clicks.csv", clicks="first")
    refused(lambda: store.ingest("clicks.csv", clicks="last"), r"read with clicks='first'; with clicks='last', as now")
    refused(lambda: store.ingest("clicks.csv"), r"with no options, as now")
    assert not store.ingest("clicks.csv", clicks="first").new


def test_preferences_in_memory_have_queries_or_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.ingest(Preferences.from_comparisons(["a"], ["b"]))
    refused(lambda: store.ingest(Preferences.from_comparisons(["a"], ["b"], query=["q"])), "the store keeps none")
    other = Store(tmp_path / "o")
    other.ingest(Preferences.from_comparisons(["a"], ["b"], query=["q"]))
    refused(lambda: other.ingest(Preferences.from_comparisons(["a"], ["c"])), "this log has none")
    other.ingest({"winner": ["a"], "loser": ["c"], "language": ["de"]}, **query("language"))
    assert other.info().facts.query == "language"  # memory has no names: the first log that has one settles it
    refused(
        lambda: other.ingest({"winner": ["b"], "loser": ["c"], "t": ["de"]}, **query("t")), "'t' here and 'language'"
    )


# -- counted again, on purpose ---------------------------------------------------------------------------------------
def test_the_same_content_again_on_purpose(days: Path) -> None:
    store = Store("s")
    refused(lambda: store.ingest("monday.csv", again="panel 2"), "does not have it yet, so it cannot be counted again")
    assert not store.path.exists()
    store.ingest("monday.csv")
    (days / "copy.csv").write_text(VOTES)
    (days / "copy.csv.gz").write_bytes(gzip.compress(VOTES.encode()))
    assert store.ingest("copy.csv", again="panel 2").judgments == 2
    assert read(store) == read("monday.csv") + read("monday.csv")
    for same in ("copy.csv", "monday.csv", "copy.csv.gz"):  # under one name once: a job that runs twice changes nothing
        assert store.ingest(same, again="panel 2").known == (f"{same} (again, as 'panel 2')",)
        assert not store.ingest(same).new
    assert store.ingest("monday.csv", again="panel 3").new
    assert len(read(store)) == 6
    assert [content.again for content in store.info().contents] == ["", "panel 2", "panel 3"]
    assert [json.loads(batch.options).get("again") for batch in store.info().batches] == [None, "panel 2", "panel 3"]
    assert store.verify().judgments == 6
    store.compact()
    assert not store.ingest("monday.csv", again="panel 3").new
    table = pa.table({"winner": ["a"], "loser": ["b"]})
    store.ingest(table)
    assert store.ingest(table, again="two").new
    assert not store.ingest(table, again="two").new
    assert len(read(store)) == 8


# -- out of a store and into a new one ---------------------------------------------------------------------------------
def exported(days: Path, ending: str) -> tuple[Store, Path, dict[str, Any]]:
    options = {"cluster": "user", "covariates": ["speed"], **query("language")}
    store = Store("old.store")
    store.ingest("monday.csv", **options)
    store.ingest("tuesday.csv", **options)
    out = days / "out" / f"all.{ending}"
    out.parent.mkdir()
    store.export(out)
    return store, out, options


def without(path: Path, to: Path, user: str) -> Path:
    """Filter by another library, which keeps no metadata."""
    if path.suffix == ".parquet":
        with duckdb.connect() as database:
            database.execute(f"COPY (SELECT * FROM '{path}' WHERE cluster <> '{user}') TO '{to}' (FORMAT parquet)")
    elif path.suffix == ".arrow":
        frame = pa.ipc.open_file(path).read_all().to_pandas()
        table = pa.Table.from_pandas(frame[frame["cluster"] != user], preserve_index=False)
        with pa.ipc.new_file(str(to), table.schema) as writer:
            writer.write_table(table)
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        frame = pd.read_csv(path, sep=separator)
        frame[frame["cluster"] != user].to_csv(to, sep=separator, index=False)
    return to


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "arrow"])
def test_a_store_made_of_an_export_knows_the_files_of_the_old_one(days: Path, ending: str) -> None:
    old, out, options = exported(days, ending)
    assert read(out, cluster="cluster", covariates=["speed"]) == read(old)
    fewer = without(out, out.with_name(f"fewer.{ending}"), "u")
    new = Store("new.store")
    refused(lambda: new.ingest(fewer), r"exported from a store \(exported_from: '[0-9a-f]{16}'\) without the list")
    refused(lambda: new.ingest(fewer, known="."), "a folder, not the list")
    refused(lambda: new.ingest(fewer, known="nothing.parquet"), "no file _nothing.parquet.known.json")
    assert not new.path.exists()
    taken = new.ingest(fewer, known=out)
    assert (taken.judgments, taken.exported, taken.carried) == (1, 3, 2)
    assert set(read(new).clusters.tolist()) == {"w"}
    for log in ("monday.csv", "tuesday.csv"):  # the next night
        assert not new.ingest(log, **options).new
    (days / "copy.csv").write_text(VOTES)
    assert not new.ingest("copy.csv", **options).new
    (days / "monday.csv").write_text(VOTES + "a,c,de,x,u,v,1,2\n")
    refused(lambda: new.ingest("monday.csv", **options), "begins with all of monday.csv, which the store has")
    (days / "wednesday.csv").write_text(MORE.replace("c,b", "b,a"))
    assert new.ingest("wednesday.csv", **options).new
    refused(lambda: new.ingest("sides.csv", **query("language")), "keeps the cluster of each judgment")
    facts, before = new.info().facts, old.info().facts
    for name in ("query", "cluster", "covariates", "items", "queries", "home", "neutral"):
        assert getattr(facts, name) == getattr(before, name)
    assert not new.ingest(fewer, known=out).new
    assert new.verify().judgments == 2


def test_an_export_that_was_filtered_in_place_or_forgotten_on_purpose(days: Path) -> None:
    old, out, options = exported(days, "parquet")
    other = without(out, days / "x.parquet", "u")
    shutil.move(other, out)  # the list lies beside it already
    assert Store("new.store").ingest(out).carried == 2
    shutil.copy(out, days / "alone.parquet")
    forgetful = Store("forgetful.store")
    assert forgetful.ingest("alone.parquet", known="none", cluster="cluster", covariates="speed").carried == 0
    refused(
        lambda: forgetful.ingest("sides.csv", known="none"), "is for the export of a store; this is none", UsageError
    )
    table = pa.parquet.read_table(out).drop_columns([MARK])  # nothing tells it from any log, but the user may
    pa.parquet.write_table(table, days / "plain.parquet")
    told = Store("told.store")
    assert told.ingest("plain.parquet", known=old.path).carried == 2
    assert not told.ingest("monday.csv", **options).new


def test_an_export_is_not_added_to_what_has_its_files(days: Path) -> None:
    old, out, options = exported(days, "parquet")
    fewer = without(out, days / "fewer.parquet", "u")
    refused(lambda: old.ingest(fewer, known=out), "took in 'monday.csv', 'tuesday.csv', as this one did")
    new = Store("new.store")
    new.ingest("tuesday.csv", **options)
    refused(lambda: new.ingest(fewer, known=out), "took in 'tuesday.csv', as this one did")
    third = Store("third.store")
    third.ingest("sides.csv", **query("language"))
    refused(lambda: third.ingest(fewer, known=out), "cluster")


def test_lists_of_known_files_are_checked(days: Path) -> None:
    _, out, _ = exported(days, "csv")
    listed = beside(out)
    said = listed.read_text()
    assert load(out).contents[0].name == "monday.csv"
    for text in (
        "",
        "{}",
        "[]",
        "null",
        said.replace("monday", "sunday"),
        said[:-40],
        said.replace('"judgments": 3', '"judgments": 4'),
    ):
        listed.write_text(text)
        refused(lambda: Store("new.store").ingest(out), "no list of known files of an export, or one that was changed")
        if text:
            refused(lambda: Store("old.store").export(out), "no list of known files")  # nothing foreign is written over
    listed.write_text(said)
    other = Store("other.store")
    other.ingest("sides.csv", **query("language"))
    other.export("other.csv")
    refused(lambda: Store("new.store").ingest(out, known="other.csv"), "without the list")
    refused(lambda: Store("new.store").ingest(read("sides.csv"), known=out), "Preferences|cluster")


def test_exports_through_the_command(days: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (days / "votes.csv").write_text("winner,loser,voter\na,b,ann\na,c,ann\nb,c,bob\n")
    main_lines(capsys, "ingest", "votes.csv", "-s", "old", "--cluster", "voter")
    main_lines(capsys, "store", "export", "old", "-o", "all.csv")
    with open("all.csv", newline="") as file, open("kept.csv", "w", newline="") as kept:
        rows = csv.DictReader(file)
        writer = csv.DictWriter(kept, rows.fieldnames or [])
        writer.writeheader()
        writer.writerows(row for row in rows if row["cluster"] != "ann")
    said = main_lines(capsys, "ingest", "kept.csv", "-s", "new", "--known", "all.csv")
    assert said[1] == "kept.csv: the export of a store: 2 judgments of the 3 exported left out; 1 file stay known"
    assert main_lines(capsys, "ingest", "votes.csv", "-s", "new", "--cluster", "voter") == [
        "votes.csv: known already, nothing taken in"
    ]


def main_lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    main(list(arguments))
    return capsys.readouterr().err.splitlines()


# -- stores of version 0.1 ---------------------------------------------------------------------------------------------
@pytest.fixture(name="old")
def _old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


FOOTBALL: dict[str, Any] = {
    "columns": {"query": "language", "neutral": "neutral"},
    "cluster": "worker",
    "covariates": ["speed"],
    "home": "left",
}


@pytest.mark.usefixtures("old")
def test_stores_of_version_0_1_are_read() -> None:
    expected = {
        "votes.store": read("monday.csv", **FOOTBALL) + read("tuesday.csv", **FOOTBALL),
        "mixed.store": read("plain.csv") + read("more.csv", **query("language")),
        "orders.store": read("ballots.csv"),
    }
    for name, prefs in expected.items():
        store = Store(name)
        before = store.path.read_bytes()
        assert read(store) == prefs
        assert store.verify().judgments == len(prefs)
        assert store.path.read_bytes() == before
        store.export(f"{name}.csv")
    assert Store("votes.store").info().facts.home == "left"


def test_stores_of_version_0_1_are_written(old: Path) -> None:
    store = Store("votes.store")
    assert not store.ingest("monday.csv", **FOOTBALL).new
    before = read(store)
    refused(lambda: store.ingest("monday.csv", **FOOTBALL | query("worker")), "has it already|cluster|neutral")
    extra = (old / "monday.csv").read_text().replace("ann", "eve")
    (old / "wednesday.csv").write_text(extra)
    without_query = {name: value for name, value in FOOTBALL.items() if name != "columns"} | {
        "columns": {"neutral": "neutral"}
    }
    refused(lambda: store.ingest("wednesday.csv", **without_query), "this log has none; name it")
    assert store.ingest("wednesday.csv", **FOOTBALL).new
    assert read(store) == before + read("wednesday.csv", **FOOTBALL)
    assert store.info().facts.query == "language"
    assert (old / "votes.store.parts" / "catalogue.json").exists()
    store.verify()
    orders = Store("orders.store")
    (old / "ballots2.csv").write_text("voter,item,rank\n1,z,1\n1,y,2\n")
    orders.ingest("ballots2.csv")
    assert orders.info().facts.query is None


def test_a_mixed_store_of_version_0_1_is_taken_apart(old: Path) -> None:
    store = Store("mixed.store")
    (old / "new.csv").write_text("language,winner,loser\nfr,a,c\n")
    refused(
        lambda: store.ingest("new.csv", **query("language")),
        r"without a query \('all'\) beside those of the queries 'de'",
    )
    refused(lambda: store.ingest("new.csv"), "until they are apart")
    store.export("all.csv")
    frame = pd.read_csv("all.csv")
    frame[frame["query"] != "all"].to_csv("apart.csv", index=False)
    fresh = Store("fresh.store")
    refused(lambda: fresh.ingest("all.csv"), "until they are apart")
    fresh.ingest("apart.csv", known="all.csv")
    assert not fresh.ingest("plain.csv").new  # dropped, and still known
    fresh.ingest("new.csv", **query("language"))
    assert read(fresh) == read("more.csv", **query("language")) + read("new.csv", **query("language"))
