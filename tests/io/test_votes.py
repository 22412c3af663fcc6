"""Votes that have an id are taken once: in a log, and in a store whatever the order in which a dump brings them."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.apps.commands import main
from concordant.errors import Idle, InputError, UsageError
from concordant.io.ingest import Store
from concordant.io.read import read_log
from concordant.io.store import commits
from concordant.io.store.catalogue import kept_ids, read_catalogue
from conftest import shared_data
from seeds import seed

NAMES = ("vote_id", "left", "right", "winner", "worker")


def votes(number):
    draw, rows = np.random.default_rng(seed(0)), []
    for at in range(number):
        sides = draw.choice(list("abcd"), 2, replace=False).tolist()
        rows.append((at, *sides, str(draw.choice(["left", "tie", sides[1]])), f"w{at % 5}"))
    return rows


VOTES = votes(200)


def table(rows):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def written(path: Path, rows) -> Path:
    if path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([NAMES, *rows])
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows))
    else:
        pq.write_table(pa.table(table(rows)), path)
    return path


def shuffled(rows):
    return [rows[at] for at in np.random.default_rng(seed(1)).permutation(len(rows))]


ASK = {"columns": {"id": "vote_id"}}


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_that_repeat_a_vote_are_counted_once(engine, ending, tmp_path):
    log = written(tmp_path / f"votes.{ending}", shuffled(VOTES + VOTES[:30] + VOTES[:10]))
    reading = read_log(log, engine=engine, **ASK)
    assert reading.preferences == cc.read(table(VOTES)) and reading.rows == 240
    assert any("40 rows repeat a vote by its 'vote_id'" in note for note in reading.notes)
    said = [note for note in cc.read(log, engine=engine).notes if "vote_id" in note]
    assert len(said) == 1 and "40 rows are the same as others, 'vote_id' and all" in said[0]
    assert "columns={'id': 'vote_id'} counts each vote once" in said[0]
    assert not any("the same as others" in note for note in cc.read(table(VOTES)).notes)


def test_votes_that_contradict_each_other_are_refused():
    rows = [*VOTES, (3, "a", "zz", "left", "w"), (8, "a", "zz", "left", "w"), *VOTES[:20]]
    with pytest.raises(InputError, match=r"2 ids in 'vote_id' have rows that differ .* \(such as '3', '8'\)"):
        cc.read(table(rows), **ASK)
    assert not any("the same as others" in note for note in cc.read(table(rows)).notes)  # no id, it seems
    with pytest.raises(InputError, match="2 of 202 rows have no id in 'vote_id'"):
        cc.read(table([*VOTES, (None, *VOTES[0][1:]), (None, *VOTES[0][1:])]), **ASK)
    with pytest.raises(UsageError, match="no use for id"):
        cc.read({"a": [1, 2], "b": [2, 1], "n": [1, 2]}, kind="orders", columns={"items": "a,b", "id": "n"})


def test_a_row_in_error_keeps_its_line(tmp_path):
    log = written(tmp_path / "votes.csv", [*VOTES, VOTES[0], (777, "a", "c", "nobody", "w1")])
    with pytest.raises(InputError, match=r"have an unknown outcome \(line 203: 'nobody'\)"):
        cc.read(log, **ASK)
    assert cc.read(log, on_error="skip", **ASK) == cc.read(table(VOTES))


@pytest.mark.parametrize("kinds", [("csv", "csv"), ("csv", "jsonl"), ("parquet", "csv")])
def test_a_dump_in_another_order_brings_what_is_new(kinds, tmp_path):
    store = Store(tmp_path / "votes.store")
    first = written(tmp_path / f"first.{kinds[0]}", VOTES[:120])
    assert store.ingest(first, **ASK).judgments == 120
    dump = written(tmp_path / f"dump.{kinds[1]}", shuffled(VOTES))
    taken = store.ingest(dump, **ASK)
    assert (taken.rows, taken.judgments) == (200, 80)
    assert any("120 votes are in the store already, by 'vote_id'" in note for note in taken.notes)
    again = store.ingest(written(tmp_path / "again.csv", shuffled(VOTES)[::-1]), **ASK)
    assert not again.new and again.known == (f"{tmp_path}/again.csv (all 200 votes, by their ids)",)
    assert cc.read(store) == cc.read(written(tmp_path / "all.csv", VOTES))
    assert store.verify().judgments == 200 and store.compact().segments == (2, 1)
    assert not store.ingest(written(tmp_path / "more.csv", VOTES[50:]), **ASK).new
    assert store.verify().leftovers == ()


def test_a_file_that_grew_brings_its_new_rows(tmp_path):
    store, log = Store(tmp_path / "votes.store"), tmp_path / "votes.csv"
    for end, new in ((100, 100), (100, 0), (150, 50), (200, 50)):
        assert store.ingest(written(log, VOTES[:end]), **ASK).judgments == new
    assert cc.read(store) == cc.read(log)


def test_what_cannot_be_known_is_refused(tmp_path):
    store, log = Store(tmp_path / "votes.store"), written(tmp_path / "a.csv", VOTES[:100])
    store.ingest(log, **ASK)
    other = written(tmp_path / "b.csv", VOTES[100:])
    for source in (other, cc.read(other)):
        with pytest.raises(UsageError, match="knows its votes by their ids"):
            store.ingest(source)
    with pytest.raises(Idle, match="again does nothing here"):
        store.ingest(log, again="twice", **ASK)
    changed = [(n, one, other, "tie" if won == "left" else "left", who) for n, one, other, won, who in VOTES[:100]]
    with pytest.raises(InputError, match=r"100 votes that the store has by id come with another content"):
        store.ingest(written(tmp_path / "changed.csv", changed), **ASK)
    assert len(store.preferences()) == 100
    plain = Store(tmp_path / "plain.store")
    plain.ingest(log)
    with pytest.raises(UsageError, match="took in logs without the ids"):
        plain.ingest(other, **ASK)


def test_a_row_that_was_left_out_may_come_again_mended(tmp_path):
    store, bad = Store(tmp_path / "votes.store"), [*VOTES[:50], (*VOTES[50][:3], "nobody", "w0")]
    assert store.ingest(written(tmp_path / "bad.csv", bad), on_error="skip", **ASK).judgments == 50
    assert store.ingest(written(tmp_path / "good.csv", VOTES[:60]), on_error="skip", **ASK).judgments == 10


def test_ids_are_looked_at_again_where_another_writer_was_quicker(tmp_path, monkeypatch):
    store, log = Store(tmp_path / "votes.store"), written(tmp_path / "a.csv", VOTES[:100])
    rival, done = written(tmp_path / "b.csv", VOTES[50:150]), []
    real = commits.exclusive

    def quicker(target, wait):
        if not done:
            done.append(True)
            Store(store.path).ingest(rival, **ASK)
        return real(target, wait)

    monkeypatch.setattr(commits, "exclusive", quicker)
    assert store.ingest(log, **ASK).judgments == 50
    assert cc.read(store) == cc.read(written(tmp_path / "both.csv", VOTES[:150]))


def test_ids_on_the_disk_are_part_of_the_store(tmp_path):
    store = Store(tmp_path / "votes.store")
    store.ingest(written(tmp_path / "a.csv", VOTES), **ASK)
    (ids,) = kept_ids(read_catalogue(store.path))
    path = tmp_path / "votes.store.parts" / ids.file
    assert ids.rows == 200 and len(pq.read_table(path)) == 200
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    for act in (store.verify, lambda: store.ingest(written(tmp_path / "b.csv", VOTES[:3]), **ASK)):
        with pytest.raises(InputError, match="was changed since it was written"):
            act()
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        store.verify()


def test_the_command(tmp_path, capsys):
    log = str(written(tmp_path / "votes.csv", VOTES + VOTES[:5]))
    main(["rank", log, "--id", "vote_id", "--interval", "none"])
    said = capsys.readouterr()
    assert "200 judgments" in said.err and "5 rows repeat a vote" in said.err
    main(["rank", log, "--interval", "none"])
    assert "--id vote_id counts each vote once" in capsys.readouterr().err
    main(["ingest", log, "--store", str(tmp_path / "s"), "--id", "vote_id"])
    main(
        ["ingest", str(written(tmp_path / "d.csv", shuffled(VOTES))), "--store", str(tmp_path / "s"), "--id", "vote_id"]
    )
    assert "(all 200 votes, by their ids): known already, nothing taken in" in capsys.readouterr().err


def test_arena_twice():
    path = shared_data("arena_judges") / "human.jsonl.gz"
    assert len(cc.read(path, columns={"id": "num"})) == 26919
    with pytest.raises(InputError, match="7 ids in 'question_id' have rows that differ"):
        cc.read(path, columns={"id": "question_id"})


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_votes_without_an_id_are_left_out_where_that_is_asked(tmp_path, engine, ending):
    rows = [("1", "a", "b"), (None, "a", "c"), ("2", "b", "b"), ("3", "b", "c"), (None, "c", "a"), ("1", "a", "b")]
    table = pa.table(dict(zip(("vote", "winner", "loser"), zip(*rows, strict=True), strict=True)))
    path = tmp_path / f"votes.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "csv":
        path.write_text("vote,winner,loser\n" + "".join(f"{vote or ''},{one},{other}\n" for vote, one, other in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    options = {"columns": {"id": "vote"}, "engine": engine}
    places = {"csv": ("line 3", "line 6"), "jsonl": ("line 2", "line 5"), "parquet": ("row 2", "row 5")}[ending]
    said = rf"2 of 6 rows have no id in 'vote' \({'; '.join(places)}\)\. Each vote has one\."
    with pytest.raises(InputError, match=said):
        cc.read(path, **options)
    with cc.recording() as run:
        prefs = cc.read(path, on_error="skip", **options)
    assert len(prefs) == 2 and {*prefs.items} == {"a", "b", "c"}
    assert [(one["number"], one["reason"]) for one in run.record["inputs"][0]["refused"]] == [
        (2, "have no id in 'vote'"),
        (1, "compare an item with itself"),
    ]
