"""Batches, days and forgetting as users of the command meet them; two days of a store beside each other."""

from __future__ import annotations

import csv
import json
import random
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.apps.commands import main
from concordant.boards.first_place import first_place
from concordant.io.store.segments import fingerprint

Run = Any


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(line: str, status: int = 0) -> tuple[str, str]:
        found = 0
        try:
            main(line.split())
        except SystemExit as stop:
            found = int(stop.code or 0)
        out = capsys.readouterr()
        assert found == status, out.err
        assert (status == 2) == any(line.startswith("error: ") for line in out.err.splitlines()[-1:])
        return out.out, out.err

    return run


def written(name: str, strength: dict[str, float], seed: int, rows: int = 300) -> str:
    """A day of votes by items of some strengths."""
    draw, path = random.Random(seed), Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["winner,loser,worker"]
    for _ in range(rows):
        a, b = draw.sample(sorted(strength), 2)
        won = draw.random() < strength[a] / (strength[a] + strength[b])
        lines.append(f"{a if won else b},{b if won else a},w{draw.randrange(12)}")
    path.write_text("\n".join(lines) + "\n")
    return name


@pytest.fixture(name="days")
def _days(run: Run) -> list[str]:
    names = []
    for day, strength in enumerate(({"a": 4, "b": 2, "c": 1}, {"a": 4, "b": 2, "c": 1}, {"a": 1, "b": 40, "c": 1}), 1):
        names.append(written(f"lake/day=2026-01-0{day}/part-0.csv", strength, day))
    run(f"ingest {' '.join(names)} --store s --cluster worker")
    return names


def test_what_is_said_of_batches(days: list[str], run: Run) -> None:
    _, said = run(
        f"ingest {written('late-2026-01-04.csv', {'a': 1, 'b': 1}, 9)} --store s --cluster worker --batch late"
    )
    assert said.startswith("late: taken in for 2026-01-04 (by its path), 300 rows in ")
    rows = list(csv.DictReader(StringIO(run("store batches s")[0])))
    assert [(row["batch"], row["name"], row["day"]) for row in rows] == [
        *((str(place), name, f"2026-01-0{place}") for place, name in enumerate(days, 1)),
        ("4", "late", "2026-01-04"),
    ]
    run("store remove s --batch late -q")
    assert run("store remove s --batch late")[1] == "s: taken out already, nothing changed\n"
    (gone,) = [row for row in json.loads(run("store batches s --all --json")[0]) if row["removed"]]
    assert (gone["name"], gone["why"], gone["options"]["cluster"]) == ("late", "removed", "worker")
    run("store batches s --all -o b.json")
    assert [row["batch"] for row in json.loads(Path("b.json").read_text())] == [1, 2, 3, 4]
    facts = dict(csv.reader(StringIO(run("store info s")[0])))
    assert (facts["days"], facts["kept"], facts["taken out"]) == ("2026-01-01 to 2026-01-03", "all", "1")
    assert "names one batch, and 2 logs are given" in run(f"ingest {days[0]} {days[1]} -s s --batch x", 2)[1]


def test_correct_forget_keep_and_put_back(days: list[str], run: Run) -> None:
    assert run("store backup s copy")[1].startswith("wrote copy: 900 judgments of 3 logs, as at revision 3, in 3 files")
    written("corrected.csv", {"a": 1, "b": 1, "c": 1}, 7)
    _, said = run("store replace s corrected.csv --day 2026-01-02")
    assert said.startswith(f"corrected.csv: taken in for 2026-01-02 in the place of '{days[1]}', 300 rows in ")
    gone = int(run("store forget s --cluster w3")[1].split()[1])
    lines = [line for name in (days[0], days[2], "corrected.csv") for line in Path(name).read_text().splitlines()[1:]]
    assert gone == sum(line.endswith(",w3") for line in lines) > 0
    assert run("store forget s --cluster w3")[1] == "s: no judgment of theirs is there any more; they stay out\n"
    _, said = run("store restore s copy")
    assert said.splitlines()[1] == f"note: {900 - len(cc.read('s'))} judgments of who was forgotten since are left out"
    late = written("x-2026-01-04.csv", {"a": 1, "b": 1}, 8)
    _, said = run(f"ingest {late} -s s --cluster worker --keep 2d")
    assert "judgments of who is forgotten left out" in said
    assert said.splitlines()[-1] == f"taken out, older than what is kept: '{days[0]}', '{days[1]}'"
    old = written("old-2026-01-01.csv", {"a": 1, "b": 1}, 10)
    assert "is outside what is kept" in run(f"ingest {old} -s s --cluster worker", 2)[1]
    for line, why in (
        ("store forget s", "nobody is named"),
        ("store forget s --cluster w99", "nobody was forgotten"),
        ("store remove s", "no batch is named (--batch, --number, --day, --before)"),
        ("store remove s --day 2026-1-1", "a day is written as 2026-01-31"),
        ("store replace s old-2026-01-01.csv --number 77", "no batch with --number 77"),
        ("store day s yesterday --number 4", "a day is written as 2026-01-31"),
        ("store restore s none", "there is no store"),
        ("rank s --as-of 2025-01-01", "no batch is up to 2025-01-01"),
        ("rank s --last 2d --since 2026-01-01", "--since and --last both say where to begin"),
    ):
        assert why in run(line, 2)[1]


def test_a_saved_ranking_says_what_it_rests_on(days: list[str], run: Run) -> None:
    run("rank s --cluster worker --as-of 2026-01-02 -o r.parquet -q")
    rests = json.loads(pyarrow.parquet.read_schema("r.parquet").metadata[b"concordant"])
    store = cc.Store("s").info()
    assert (rests["store"], rests["revision"], rests["commit"]) == ("s", 3, store.facts.commit)
    assert (rests["batches"], rests["days"], rests["judgments"]) == ([1, 2], ["2026-01-01", "2026-01-02"], 600)
    both = cc.read(days[0], cluster="worker") + cc.read(days[1], cluster="worker")
    assert rests["sha256"] == fingerprint(both)
    run(f"rank {days[0]} -o log.arrow -q")
    assert json.loads(pa.feather.read_table("log.arrow").schema.metadata[b"concordant"])["log"] == "part-0.csv"


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ("--as-of 2026-01-01 --with 2026-01-02", 0, "first place: 'a', as before"),
        ("--as-of 2026-01-02 --last 1d --with 2026-01-03", 1, "'b' instead of 'a', now ranks 2–3: changed beyond its"),
        ("--as-of 2026-01-02 --with 2026-01-03", 0, "'b' instead of 'a', now ranks 1–2: not beyond its intervals"),
    ],
)
@pytest.mark.usefixtures("days")
def test_two_days_of_a_store(run: Run, more: str, status: int, said: str) -> None:
    out, err = run(f"compare s --cluster worker {more} --fail-if-top-changes", status)
    assert said in err
    rows = {row["item"]: row for row in csv.DictReader(StringIO(out))}
    days = {"old": more.split()[1], "new": more.split()[-1]}
    last = {"last": "1d"} if "--last" in more else {}
    for which, day in days.items():
        board = cc.rank(cc.read("s", as_of=day, **last)).to_arrow().to_pylist()
        for row in board:
            assert float(rows[row["item"]][which]) == pytest.approx(row["score"], abs=1e-6)


@pytest.mark.usefixtures("days")
def test_last_days_of_a_store_share_what_they_share(run: Run) -> None:
    for more, said in (
        (
            "--as-of 2026-01-02 --with 2026-01-03 --last 2d",
            "both boards hold 300 judgments: they are counted once",
        ),
        ("--as-of 2026-01-02 --with 2026-01-03 --last 1d", "the two boards are taken to hold different judgments"),
        ("--as-of 2026-01-02 --with 2026-01-03 --last 2d --shared common", "are taken for the same"),
    ):
        err = run(f"compare s {more}")[1]
        assert said in err and "look alike" not in err


def test_windows_of_a_log_with_times_share_what_those_of_a_store_do(run: Run, tmp_path: Path) -> None:
    draw, rows = random.Random(3), list[str]()
    for number in (1, 2, 3):
        own = [f"{draw.choice('ab')},{draw.choice('cd')},2026-01-0{number}" for _ in range(60)]
        own += [",".join([*reversed(one.split(",")[:2]), one.split(",")[2]]) for one in own[:25]]
        (tmp_path / f"2026-01-0{number}.csv").write_text("winner,loser,date\n" + "\n".join(own) + "\n")
        run(f"ingest {tmp_path}/2026-01-0{number}.csv --store s.store -q")
        rows += own
    Path("all.csv").write_text("winner,loser,date\n" + "\n".join(rows) + "\n")
    for last, said in (("2d", "both boards hold 85 judgments: they"), ("1d", "hold different judgments")):
        window = f"--as-of 2026-01-02 --with 2026-01-03 --last {last} -o"
        for log in ("s.store", "all.csv --time date"):
            err = run(f"compare {log} {window} {log[0]}.csv")[1]
            assert said in err and "look alike" not in err, log
        assert Path("s.csv").read_text() == Path("a.csv").read_text()
    assert "look alike" in run("compare all.csv --time date --as-of 2026-01-02 --with 2026-01-03 --last 30h")[1]


def test_days_that_share_nothing_any_more(run: Run, tmp_path: Path) -> None:
    """The day that both windows have was forgotten; ballots are refused for what they are."""
    for day, who in (("01", "ac"), ("02", "zz"), ("03", "bd")):
        path = tmp_path / f"votes-2026-01-{day}.csv"
        path.write_text("winner,loser,worker\n" + f"a,b,{who[0]}\nb,c,{who[1]}\nc,a,{who[0]}\na,c,{who[1]}\n" * 9)
        run(f"ingest {path} --store gone.store --cluster worker -q")
        ballots = "".join(f"{day}{at},x,1\n{day}{at},y,2\n{day}{at},z,3\n" for at in range(9))
        path.write_text(f"judgment,item,rank\n{ballots}")
        run(f"ingest {path} --store ballots.store -q")
    run("store forget gone.store --cluster z -q")
    window = "--as-of 2026-01-02 --with 2026-01-03 --last 2d"
    assert "the two boards are taken to hold different judgments" in run(f"compare gone.store {window}")[1]
    assert "comparisons" in (said := run(f"compare ballots.store {window}", 2)[1]) and "shared" not in said


def test_the_first_place() -> None:
    def table(*rows: tuple[str, int | None, int | None, int | None]) -> pa.Table:
        return pa.table(dict(zip(("item", "rank", "rank_lower", "rank_upper"), zip(*rows, strict=True), strict=True)))

    old = table(("a", 1, 1, 1), ("b", 2, 2, 2))
    assert not first_place(old, table(("b", 1, 1, 2), ("a", 2, 1, 2))).changed  # open
    assert first_place(old, table(("b", 1, 1, 1), ("a", 2, 2, 2))).changed
    assert not first_place(old, old).changed
    gone = first_place(old, table(("b", 1, 1, 1)))
    assert gone.changed and "now gone: changed" in str(gone)
    apart = first_place(old, table(("b", 1, 1, 1), ("a", None, None, None)))
    assert not apart.changed and "not ranked" in str(apart)
    level = table(("a", 1, 1, 2), ("b", 1, 1, 2))
    assert not first_place(level, table(("b", 1, 1, 1), ("a", 2, 2, 2))).changed  # one of two is still first
    with pytest.raises(cc.InputError, match="no column 'rank_lower'"):
        first_place(old, old.drop_columns(["rank_lower"]))


def test_votes_are_forgotten_by_their_ids(run: Run) -> None:
    lines = [f"v{at},{'ab'[at % 2]},{'cd'[at % 3 == 0]}" for at in range(12)]
    Path("votes.csv").write_text("vote,winner,loser\n" + "\n".join(lines) + "\n")
    Path("some.csv").write_text("vote\nv3\nv4\n")
    Path("more.txt").write_text("v5\nv5\n\n")
    run("ingest votes.csv --store s --id vote")
    for line, what in (("--id v1 --id v2 --id v1", 2), ("--ids some.csv", 2), ("--ids more.txt --id v6", 2)):
        assert run(f"store forget s {line}")[1] == f"s: {what} judgments forgotten\n"
    assert run("store forget s --id v6")[1] == "s: no judgment of theirs is there any more; they stay out\n"
    for line, why in (
        ("", "nobody is named to be forgotten; name ids of votes"),
        ("--id v7 --id x", "no vote has the id 'x'; nothing was forgotten"),
        ("--cluster w1", "the store keeps no clusters"),
        ("--id v7 --cluster w1", "one after the other"),
        ("--ids missing.txt", "missing.txt: No such file"),
        ("--ids s", "s: unknown ending"),
    ):
        assert why in run(f"store forget s {line}", 2)[1], line
    facts = dict(csv.reader(StringIO(run("store info s")[0])))
    assert (facts["judgments"], facts["forgotten"], facts["forgotten votes"]) == ("6", "0", "6")
    left = [line.split(",") for at, line in enumerate(lines) if not 1 <= at <= 6]
    assert cc.read("s") == cc.read({"winner": [one[1] for one in left], "loser": [one[2] for one in left]})
    assert run("store day s 2026-01-31 --number 1")[1] == "s: votes.csv is of 2026-01-31\n"
    run("store remove s --number 1")
    assert "s: holds no judgments; all that it held was taken out" in run("rank s", 2)[1]
    assert "holds no judgments" in run("store export s -o all.csv", 2)[1]
    assert "holds no judgments" in run("pairs s -o p.jsonl", 2)[1]
