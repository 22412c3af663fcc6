"""The record of a run, its exit status, and what a deployment sets: one test each of what the documents promise."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.csv
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.apps.commands.run_record import DETAILED, PLAIN, outcome_of
from concordant.apps.commands.settings import NAMES
from hostile import every_command
from running import exit_status

VOTES = "winner,loser,weight\na,b,1\nb,c,1\na,c,1\nc,a,1\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CONCORDANT_")]:
        monkeypatch.delenv(name)
    Path("votes.csv").write_text(VOTES)
    Path("odd.csv").write_text("winner,loser\na,b\nx,x\n,b\nb,a\n")
    Path("items.csv").write_text("item,x\na,3\nb,2\nc,0\n")
    return tmp_path


def record(*arguments: object, status: int = 0) -> dict[str, Any]:
    """Run a command with ``--summary``; return what it wrote there."""
    Path("run.json").unlink(missing_ok=True)
    assert exit_status(*arguments, "--summary", "run.json") == status
    found: dict[str, Any] = json.loads(Path("run.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (found["exit_status"], found["layout"]) == (status, 1)
    return found


def test_what_was_read_refused_noted_and_written() -> None:
    found = record("rank", "odd.csv", "--on-error", "skip", "-o", "r.csv", "--interval", "none", "-q")
    (log,) = found["inputs"]
    assert (log["path"], log["role"], log["bytes"]) == ("odd.csv", "log", Path("odd.csv").stat().st_size)
    assert (log["rows"], log["judgments"], log["items"], log["columns"]) == (
        4, 2, 2, {"winner": "winner", "loser": "loser"})  # fmt: skip
    assert sorted((one["number"], one["of"], one["samples"][0]["place"]) for one in log["refused"]) == [
        (1, 4, "line 3"),
        (1, 4, "line 4"),
    ]
    (out,) = found["outputs"]
    data = Path("r.csv").read_bytes()
    assert out["path"] == os.path.realpath("r.csv") and out["rows"] == data.count(b"\n") - 1
    assert (out["sha256"], out["bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
    assert (found["command"], found["outcome"], found["error"]) == ("rank", "done", None)
    assert found["options"]["interval"] == "none" and found["set_by"]["interval"] == "command line"
    assert "level" not in found["set_by"] and found["options"]["level"] == 0.95
    assert found["versions"]["concordant"] == cc.__version__ and found["seconds"] > 0
    assert found["peak_memory_bytes"] > 50_000_000
    noted = record("rank", "votes.csv", "-o", "r.csv", "-q")["notes"]
    assert "read as weight" in [one["code"] for one in noted]
    assert any("--count" in one["message"] for one in noted)


@pytest.mark.parametrize(
    ("arguments", "status", "outcome", "detailed"),
    [
        (["rank", "odd.csv"], 2, "bad data", 2),
        (["rank", "nowhere.csv"], 2, "bad data", 2),
        (["rank", "votes.csv", "--no-such"], 2, "bad usage", 4),
        (["rank", "votes.csv", "--structure", "x"], 2, "bad usage", 4),
        (["rank", "votes.csv", "-o", "/dev/full/x.csv"], 2, "bad usage", 4),
        (["ingest", "votes.csv", "--store", "known.store"], 0, "nothing new", 3),
        (["rank", "votes.csv", "-q", "-o", "r.csv"], 0, "done", 0),
    ],
)
def test_exit_statuses(arguments: list[str], status: int, outcome: str, detailed: int, capsys: Any) -> None:
    assert exit_status("ingest", "votes.csv", "--store", "known.store") == 0
    found = record(*arguments, status=status)
    assert found["outcome"] == outcome
    capsys.readouterr()
    assert record(*arguments, "--exit-status", "detailed", status=detailed)["outcome"] == outcome
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    if found["error"] is not None:
        assert found["error"]["kind"] == outcome and error == [f"error: {found['error']['message']}"]


def test_refused_rows_stand_in_the_record_of_a_run_that_failed() -> None:
    (log,) = record("rank", "odd.csv", status=2)["inputs"]
    assert log["path"] == "odd.csv"
    assert "compare an item with itself" in {one["reason"] for one in log["refused"]} and len(log["refused"]) == 2


def test_surroundings_are_told_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("concordant.io.log.disk.os.replace", full)
    arguments = ["rank", "votes.csv", "-o", "r.csv", "-q"]
    assert exit_status(*arguments) == 2
    assert exit_status(*arguments, "--exit-status", "detailed") == 5
    assert exit_status("rank", "votes.csv", "-q", "--summary", "run.json", "--exit-status", "detailed") == 5


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_the_system_refuses_to_read_is_no_bad_data(
    number: int, form: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = f"votes.{form}"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv("votes.csv"), "votes.parquet")

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), log)

    monkeypatch.setattr("concordant.io.log.formats.open_regular", refused)
    monkeypatch.setattr("concordant.io.log.headers.parquet_file", refused)
    assert exit_status("rank", log, "-q", "--exit-status", "detailed") == 5
    assert capsys.readouterr().err == f"error: {log}: {os.strerror(number)}\n"


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        (duckdb.IOException, "IO Error: Cannot open file 'x': Permission denied", "surroundings"),
        (duckdb.IOException, "Could not write file 'x': No space left on device", "surroundings"),
        (duckdb.IOException, "IO Error: no number", "bad data"),
        (duckdb.InvalidInputException, "unterminated quote. Original Line: a,Permission denied", "bad data"),
    ],
)
def test_an_error_of_a_database_is_the_disks_where_it_says_so(kind: type[Exception], text: str, outcome: str) -> None:
    def read() -> None:
        try:
            raise kind(text)
        except duckdb.Error:
            raise cc.InputError("x: cannot be read") from None

    with pytest.raises(cc.InputError) as error:
        read()
    assert outcome_of(error.value) == outcome


def test_a_store_that_the_disk_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_status("ingest", "votes.csv", "--store", "full.store") == 0
    Path("more.csv").write_text("winner,loser,weight\na,b,1\nb,a,1\n")

    def full(*_: object, **__: object) -> None:
        raise duckdb.FatalException('Checkpoint failed for database "catalogue". The database has been invalidated')

    monkeypatch.setattr("concordant.io.store.commits.write", full)
    assert record("ingest", "more.csv", "--store", "full.store", status=2)["outcome"] == "surroundings"


def test_the_record_of_what_stores_do() -> None:
    """What was read, and what became of it, with ``--quiet``, too."""
    lake = Path("lake/day=2026-01-01")
    lake.mkdir(parents=True)
    for part in "ab":
        (lake / f"{part}.csv").write_text(f"winner,loser,worker\na,b,{part}\n" + "b,c,z\n" * ord(part))
    found = record("ingest", "lake", "--store", "s.store", "--cluster", "worker", "-q")
    (log,) = found["inputs"]
    size = sum((lake / f"{part}.csv").stat().st_size for part in "ab")
    assert (log["path"], log["bytes"], log["rows"]) == ("lake/day=2026-01-01/", size, 2 + ord("a") + ord("b"))
    assert found["notes"][0]["code"] == "ingested"
    Path("more").mkdir()
    for part in "ab":
        Path("more", f"2026-01-02-{part}.csv").write_text(f"winner,loser,worker\n{part},d,w\n{part},c,w\n")
    os.chdir("more")
    (log,) = record("ingest", "*.csv", "--store", "../t.store", "-q")["inputs"]
    assert (log["path"], log["bytes"]) == ("./", sum(path.stat().st_size for path in Path().glob("*.csv")))
    os.chdir("..")
    late = lake.with_name("day=2026-01-09")
    lake.rename(late)
    Path(late / "a.csv").write_text("winner,loser,worker\nc,a,y\n")
    found = record("ingest", late / "a.csv", "--store", "s.store", "--cluster", "worker", "--keep", "3d", "-q")
    assert any("taken out, older than what is kept: 'lake" in one["message"] for one in found["notes"])
    found = record("store", "forget", "s.store", "--cluster", "y", "-q")
    assert [(one["code"], one["numbers"]) for one in found["notes"]] == [("forgotten", {"judgments": 1})]


def test_what_no_longer_holds_is_status_1() -> None:
    both = "a,b\nb,c\na,c\nb,a\nc,b\nc,a\n" * 20
    Path("new.csv").write_text("winner,loser\n" + "c,a\n" * 60 + both)
    Path("old.csv").write_text("winner,loser\n" + "a,c\n" * 60 + both)
    for more in ([], ["--exit-status", "detailed"]):
        found = record("compare", "old.csv", "new.csv", "--fail-if-worse", "a", "-q", *more, status=1)
        assert found["outcome"] == "no"


def test_the_numbers_do_not_change() -> None:
    names = ("done", "no", "bad data", "nothing new", "bad usage", "surroundings")
    assert [DETAILED[name] for name in names] == [0, 1, 2, 3, 4, 5]
    assert [PLAIN[name] for name in names] == [0, 1, 2, 0, 2, 2]


def test_the_last_object_of_a_log_of_json_is_the_record(capsys: Any) -> None:
    found = record("rank", "odd.csv", "--on-error", "skip", "-o", "r.csv", "--log-format", "json")
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert said[-1]["event"] == "run"
    assert {name: said[-1][name] for name in found} == found
    read, wrote = (next(one for one in said if one["event"] == event) for event in ("read", "wrote"))
    assert {name: read[name] for name in found["inputs"][0]} == found["inputs"][0]
    assert wrote["sha256"] == found["outputs"][0]["sha256"] and wrote["rows"] == 2


def test_what_each_command_reads_stands_there() -> None:
    fit = record("fit", "votes.csv", "-f", "items.csv", "-m", "model", "--loss", "ranknet", "-q")
    assert {one["role"]: one["rows"] for one in fit["inputs"]} == {"log": 4, "features": 3}
    assert fit["outputs"][0]["sha256"] == cc.load_model("model").origin_["hash"]
    scored = record("score", "-m", "model", "-f", "items.csv", "-o", "s.csv", "-q")
    assert {one["role"] for one in scored["inputs"]} == {"model", "features"}
    Path("labels.csv").write_text("item,label\na,2\nb,1\nc,0\n")
    judged = record("evaluate", "s.csv", "labels.csv", "-q")
    assert {(one["path"], one["rows"]) for one in judged["inputs"]} == {("s.csv", 3), ("labels.csv", 3)}
    taken = record("ingest", "votes.csv", "--store", "a.store", "-q")
    assert taken["outputs"][0]["path"] == os.path.realpath("a.store") and taken["outputs"][0]["judgments"] == 4


@pytest.mark.parametrize("name", ["run.txt", "no/run.json", "votes.csv", "items.json"])
def test_a_record_takes_no_other_files_place(name: str, capsys: Any) -> None:
    Path("items.json").write_text('[{"winner": "a", "loser": "b"}]')
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert exit_status("rank", "items.json" if name == "items.json" else "votes.csv", "--summary", name) == 2
    assert f"--summary {name}" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_the_old_flag_says_where_it_has_gone(capsys: Any) -> None:
    assert exit_status("rank", "odd.csv", "--summary", "votes.csv") == 2
    assert "--statistics" in capsys.readouterr().err
    assert Path("votes.csv").read_text() == VOTES


# -- settings ----------------------------------------------------------------------------------------------------------
def test_command_line_before_environment_before_file_before_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(*more: str) -> tuple[Any, Any]:
        found = record("rank", "votes.csv", "-q", "-o", "r.csv", *more)
        return found["options"].get("threads"), found["set_by"].get("threads")

    assert threads() == (None, None)
    Path("concordant.toml").write_text("threads = 4\n")
    assert threads() == (4, "concordant.toml")
    Path("concordant.toml").write_text("threads = 4\n[fit]\nthreads = 5\n[rank]\nthreads = 3\n")
    assert threads() == (3, "concordant.toml: [rank]")
    monkeypatch.setenv("CONCORDANT_THREADS", "2")
    assert threads() == (2, "CONCORDANT_THREADS")
    assert threads("--threads", "1") == (1, "command line")
    monkeypatch.delenv("CONCORDANT_THREADS")
    monkeypatch.setenv("CONCORDANT_CONFIG", "")
    assert threads() == (None, None)
    Path("other.toml").write_text("threads = 7\n")
    monkeypatch.setenv("CONCORDANT_CONFIG", "other.toml")
    assert threads() == (7, "other.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thread = 4", "concordant.toml: thread cannot be set here; did you mean 'threads'?"),
        ("memory_limit = '1GB'", "write it as the option, memory-limit"),
        ("structure = 'borda'", "structure cannot be set here"),
        ("[rnak]\nthreads = 1", "unknown section [rnak]; did you mean 'rank'?"),
        ("[rank]\nport = 1", "[rank]: concordant rank has no option --port"),
        ("[fit]\nx = 1", "[fit]: x cannot be set here"),
        ("threads = 'x'", "concordant.toml: --threads: 'x' is not a valid integer"),
        ("threads = 2.5", "concordant.toml: --threads: '2.5' is not a valid integer"),
        ("threads = true", "concordant.toml: --threads: 'true' is not a valid integer"),
        ("quiet = 7", "concordant.toml: --quiet: '7' is not a valid boolean"),
        ("memory-limit = [1]", "give it one value"),
        ("threads = ", "is no TOML"),
    ],
)
def test_a_wrong_file_of_settings_is_refused(text: str, said: str, capsys: Any) -> None:
    Path("concordant.toml").write_text(text)
    assert exit_status("rank", "votes.csv", "-o", "r.csv") == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert not Path("r.csv").exists()


def test_a_wrong_variable_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("CONCORDANT_THREADS", "many")
    assert exit_status("rank", "votes.csv") == 2
    assert "CONCORDANT_THREADS: --threads: 'many'" in capsys.readouterr().err
    monkeypatch.delenv("CONCORDANT_THREADS")
    monkeypatch.setenv("CONCORDANT_MEMRY_LIMIT", "1GB")
    assert exit_status("rank", "votes.csv") == 2
    assert "did you mean CONCORDANT_MEMORY_LIMIT?" in capsys.readouterr().err
    monkeypatch.delenv("CONCORDANT_MEMRY_LIMIT")
    monkeypatch.setenv("CONCORDANT_SOMETHING_ELSE", "x")
    monkeypatch.setenv("CONCORDANT_CONFIG", "nowhere.toml")
    assert exit_status("rank", "votes.csv") == 2
    assert "CONCORDANT_CONFIG=nowhere.toml" in capsys.readouterr().err


def test_what_is_set_for_all_is_left_out_where_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PrefLib file is read without an engine: given there, its threads are refused; set for all, they are not."""
    Path("x.soc").write_text(
        "# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 2\n# ALTERNATIVE NAME 1: A\n"
        "# ALTERNATIVE NAME 2: B\n2: 1,2\n1: 2,1\n"
    )
    assert exit_status("rank", "x.soc", "--threads", "1") == 2
    monkeypatch.setenv("CONCORDANT_THREADS", "1")
    found = record("rank", "x.soc", "-q")
    assert found["outcome"] == "done" and "threads" not in found["set_by"]


def test_the_form_of_the_log_and_the_statuses_can_be_set(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    Path("concordant.toml").write_text('log-format = "json"\nexit-status = "detailed"\n')
    assert exit_status("rank", "votes.csv", "--structure", "x") == 4
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["error", "run"]
    monkeypatch.setenv("CONCORDANT_EXIT_STATUS", "plain")
    assert exit_status("rank", "votes.csv", "--structure", "x", "--log-format", "text") == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_every_setting_is_an_option_of_some_command() -> None:
    there = {opt.removeprefix("--") for _, one in every_command() for option in one.params for opt in option.opts}
    assert {*NAMES} <= there


# -- from Python -------------------------------------------------------------------------------------------------------
def test_python_keeps_the_same_record() -> None:
    told: list[str] = []
    with cc.recording(lambda event, facts, _: told.append(f"{event} {facts['path']}")) as run:
        prefs = cc.read("odd.csv", on_error="skip")
        cc.rank(prefs)
    command = record("rank", "odd.csv", "--on-error", "skip", "-q")
    assert run.record["inputs"] == command["inputs"] and told == ["read odd.csv"]
    assert set(run.record) == set(command) - {"command", "arguments", "options", "set_by", "exit_status"}
    with pytest.raises(cc.InputError), cc.recording() as run:
        cc.read("odd.csv")
    assert run.record["outcome"] == "failed" and run.record["error"]["type"] == "InputError"
    assert len(run.record["inputs"][0]["refused"]) == 2
