"""Pipes, devices, sockets and folders where a file is wanted: refused at once, whatever command, whatever file.

Nothing here may wait, read a device without end, or put a file in the place of a pipe or a device.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import concordant as cc
from concordant.io.log.disk import read_regular
from hostile import good_files, good_folder, sealed
from running import exit_status

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes of Unix")
LIMIT = 10
"""Seconds after which a command hangs."""


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _folder(path: Path) -> None:
    path.mkdir()


def _empty_device(path: Path) -> None:
    path.symlink_to("/dev/null")


SPECIAL: dict[str, Callable[[Path], None]] = {
    "pipe": _pipe,
    "zero": _zero,
    "socket": _socket,
    "folder": _folder,
    "null": _empty_device,
}


@contextmanager
def at_once() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"still going on after {LIMIT} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, data in good_files().items():
        Path(name).write_bytes(data)
    for kind in ("model", "s.store"):
        for name, data in good_folder(kind).items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(data)
    return tmp_path


READS = {
    "rank": ["rank", "@.csv"],
    "rank gz": ["rank", "@.csv.gz"],
    "rank jsonl": ["rank", "@.jsonl"],
    "rank parquet": ["rank", "@.parquet"],
    "rank arrow": ["rank", "@.arrow"],
    "rank preflib": ["rank", "@.soc"],
    "rank letor": ["rank", "@.svm"],
    "rank qrels": ["rank", "@.qrels"],
    "rank runs": ["rank", "a.run", "@.run"],
    "rank judged by qrels": ["rank", "a.run", "--qrels", "@.qrels"],
    "rank txt": ["rank", "@.txt"],
    "rank no ending": ["rank", "@"],
    "rank a database": ["rank", "@.duckdb::votes"],
    "rank in memory": ["rank", "@.csv", "--engine", "memory"],
    "audit": ["audit", "@.csv"],
    "report": ["report", "@.csv", "-o", "r.html"],
    "report features": ["report", "votes.csv", "-f", "@.csv", "-o", "r.html"],
    "report model": ["report", "votes.csv", "-m", "@", "-f", "features.csv", "-o", "r.html"],
    "fit": ["fit", "@.csv", "-f", "features.csv", "-m", "made"],
    "fit features": ["fit", "votes.csv", "-f", "@.csv", "-m", "made"],
    "fit streamed": ["fit", "votes.csv", "-f", "@.parquet", "--stream", "-m", "made"],
    "fit letor": ["fit", "@.svm", "-m", "made"],
    "score model": ["score", "-m", "@", "-f", "features.csv"],
    "score features": ["score", "-m", "model", "-f", "@.csv"],
    "score streamed": ["score", "-m", "model", "-f", "@.parquet", "--stream"],
    "score log": ["score", "-m", "model", "-f", "features.csv", "--abstain", "0.3", "--judgments", "@.csv"],
    "evaluate": ["evaluate", "@.csv", "labels.csv"],
    "evaluate labels": ["evaluate", "scores.csv", "@.csv"],
    "evaluate against": ["evaluate", "scores.csv", "labels.csv", "--against", "@.csv"],
    "export": ["export", "-m", "@", "--to", "json", "-o", "m.json"],
    "export log": ["export", "-m", "model", "--card", "c.md", "--log", "@.csv", "-f", "features.csv"],
    "export features": ["export", "-m", "model", "--card", "c.md", "--log", "votes.csv", "-f", "@.csv"],
    "export labels": ["export", "-m", "model", "--card", "c.md", "--labels", "@.svm"],
    "serve": ["serve", "-m", "@", "--port", "0"],
    "serve features": ["serve", "-m", "model", "-f", "@.csv", "--port", "0"],
    "ingest": ["ingest", "@.csv", "--store", "new.store"],
    "ingest into": ["ingest", "votes.csv", "--store", "@"],
    "store info": ["store", "info", "@"],
    "store verify": ["store", "verify", "@"],
    "store compact": ["store", "compact", "@"],
    "store batches": ["store", "batches", "@"],
    "store remove": ["store", "remove", "@", "--number", "1"],
    "store replace": ["store", "replace", "s.store", "@.csv", "--number", "1"],
    "store forget": ["store", "forget", "@", "--cluster", "a"],
    "store day": ["store", "day", "@", "2026-01-31", "--number", "1"],
    "store backup": ["store", "backup", "@", "copy.store"],
    "store restore": ["store", "restore", "t.store", "@"],
    "store export": ["store", "export", "@", "-o", "e.csv"],
    "reproduce": ["reproduce", "table1", "--data", "@"],
}
"""Command lines; ``@`` stands for the file that is none."""


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with at_once():
        status = exit_status(*arguments)
    said = capsys.readouterr().err
    assert status == 2, (status, said)
    assert said.count("\n") == 1 and said.startswith("error: "), said
    return said


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("case", READS)
@pytest.mark.usefixtures("place")
def test_no_command_reads_what_is_no_file(case: str, special: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = next(word for word in READS[case] if "@" in word).partition("::")[0].replace("@", "special")
    SPECIAL[special](Path(name))
    before = os.lstat(name)
    refused([word.replace("@", "special") for word in READS[case]], capsys)
    after = os.lstat(name)
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)


@pytest.mark.parametrize("special", ["pipe", "zero", "socket", "null"])
@pytest.mark.parametrize("command", ["rank", "audit", "ingest"])
@pytest.mark.usefixtures("place")
def test_a_folder_that_holds_one(special: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("logs").mkdir()
    Path("logs/a.csv").write_bytes(good_files()["votes.csv"])
    SPECIAL[special](Path("logs/b.csv"))
    store = ["--store", "new.store"] if command == "ingest" else []
    assert "logs/b.csv" in refused([command, "logs", *store], capsys)
    assert not Path("new.store").exists()


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", sorted({Path(name).name for name in good_folder("model")}))
@pytest.mark.usefixtures("place")
def test_files_of_a_model(name: str, special: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("model", name).unlink()
    SPECIAL[special](Path("model", name))
    for arguments in (["score", "-m", "model", "-f", "features.csv"], ["serve", "-m", "model", "--port", "0"]):
        refused(arguments, capsys)
    with at_once(), pytest.raises(cc.InputError):
        cc.load_model("model")


@pytest.mark.parametrize("name", sorted({Path(name).name for name in good_folder("model")}))
@pytest.mark.usefixtures("place")
def test_a_model_file_without_end(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with a hole of 2⁴⁰ bytes: its size is looked at, not its bytes."""
    with open(Path("model", name), "r+b") as file:
        file.truncate(1 << 40)
    assert "1,099,511,6" in refused(["score", "-m", "model", "-f", "features.csv"], capsys)


@pytest.mark.usefixtures("place")
def test_a_model_that_is_linked_is_read() -> None:
    """Links to regular files are files, in a model and elsewhere."""
    Path("elsewhere").mkdir()
    for path in Path("model").iterdir():
        path.rename(Path("elsewhere", path.name))
        path.symlink_to(Path("elsewhere", path.name).absolute())
    Path("link.csv").symlink_to("features.csv")
    assert exit_status("score", "-m", "model", "-f", "link.csv", "-o", "s.csv") == 0


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("which", ["segment", "write-ahead log"])
@pytest.mark.parametrize("command", ["rank", "info", "verify", "compact", "export", "ingest"])
@pytest.mark.usefixtures("place")
def test_files_of_a_store(command: str, which: str, special: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {
        "rank": ["rank", "s.store"],
        "export": ["store", "export", "s.store", "-o", "e.csv"],
        "ingest": ["ingest", "sides.csv", "--store", "s.store"],
    }.get(command, ["store", command, "s.store"])
    if which == "segment":
        path = next(Path("s.store.parts").glob("segment-*"))
        path.unlink()
    else:
        path = Path("s.store.wal")
    SPECIAL[special](path)
    if (command, which) == ("info", "segment"):  # which looks at the catalogue alone
        with at_once():
            assert exit_status(*arguments) == 0
    else:
        refused(arguments, capsys)


@pytest.mark.parametrize("special", ["pipe", "zero", "socket", "null"])
@pytest.mark.parametrize("name", [".s.store.new", ".s.store.new.wal"])
@pytest.mark.usefixtures("place")
def test_what_lies_where_a_store_is_written(special: str, name: str) -> None:
    """A temporary name that somebody has put something at: it is removed, never opened."""
    target = Path("victim")
    target.write_text("keep me")
    SPECIAL[special](Path(name))
    with at_once():
        assert exit_status("ingest", "weights.csv", "--store", "s.store", "--quiet") in (0, 2)
    assert target.read_text() == "keep me" and len(cc.read("s.store")) >= 8


WRITES = {
    "rank": ["rank", "votes.csv", "-o", "@.csv"],
    "rank parquet": ["rank", "votes.csv", "-o", "@.parquet"],
    "audit": ["audit", "votes.csv", "-o", "@.json"],
    "audit edges": ["audit", "votes.csv", "--edges", "@.csv"],
    "report": ["report", "votes.csv", "-o", "@.html"],
    "fit": ["fit", "votes.csv", "-f", "features.csv", "-m", "@"],
    "score": ["score", "-m", "model", "-f", "features.csv", "-o", "@.csv"],
    "score streamed": ["score", "-m", "model", "-f", "features.parquet", "--stream", "-o", "@.parquet"],
    "evaluate": ["evaluate", "scores.csv", "labels.csv", "-o", "@.csv"],
    "export": ["export", "-m", "model", "--to", "json", "-o", "@.json"],
    "card": ["export", "-m", "model", "--card", "@.md"],
    "store info": ["store", "info", "s.store", "-o", "@.csv"],
    "store export": ["store", "export", "s.store", "-o", "@.csv"],
    "ingest": ["ingest", "votes.csv", "--store", "@"],
    "demo": ["demo", "-o", "@"],
    "counterexample": ["counterexample", "ranknet", "-o", "@"],
    "reproduce": ["reproduce", "fig2", "-o", "@"],
}


@pytest.mark.parametrize("special", ["pipe", "zero", "socket", "null"])
@pytest.mark.parametrize("case", WRITES)
def test_no_output_takes_the_place_of_what_is_no_file(
    case: str, special: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(word for word in WRITES[case] if "@" in word).replace("@", "special")
    SPECIAL[special](Path(name))
    before = os.lstat(name)
    refused([word.replace("@", "special") for word in WRITES[case]], capsys)
    assert (os.lstat(name).st_mode, os.lstat(name).st_ino) == (before.st_mode, before.st_ino)
    assert not list(place.glob(".concordant-*"))


@pytest.mark.parametrize("name", ["/dev/full", "/dev/null"])
@pytest.mark.parametrize("case", ["rank", "export", "card", "store export", "report"])
@pytest.mark.usefixtures("place")
def test_devices_are_no_outputs(case: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = os.stat(name)
    refused([name if "@" in word else word for word in WRITES[case]], capsys)
    assert os.path.samestat(os.stat(name), before) and stat.S_IFMT(os.stat(name).st_mode) == stat.S_IFMT(before.st_mode)


@pytest.mark.usefixtures("place")
def test_objects_write_no_special_files_either() -> None:
    votes = cc.read("votes.csv")
    for name in ("r.html", "m.json", "e.csv"):
        os.mkfifo(name)
    with at_once():
        with pytest.raises(cc.UsageError, match="a pipe"):
            cc.report(votes, audit=False).save("r.html")
        with pytest.raises(cc.UsageError, match="a pipe"):
            cc.export_model("model", "m.json", to="json")
        with pytest.raises(cc.UsageError, match="a pipe"):
            cc.Store("s.store").export("e.csv")
    assert all(stat.S_ISFIFO(os.stat(name).st_mode) for name in ("r.html", "m.json", "e.csv"))


@pytest.mark.parametrize(
    "line",
    [
        "rank <(cat votes.csv)",
        "cat votes.csv | concordant rank /dev/stdin",
        "cat votes.csv | concordant rank -",
        "fit votes.csv -f <(cat features.csv) -m made",
        "ingest <(cat votes.csv) --store new.store",
        "rank votes.csv -o >(cat)",
        "export -m model --to json -o >(cat)",
        "export -m model --to json -o /dev/stdout",
        "export -m model --card /dev/fd/1",
        "rank - < votes.csv",
        "score -m <(cat model/model.json) -f features.csv",
    ],
)
@pytest.mark.usefixtures("place")
def test_substituted_processes(line: str) -> None:
    line = line if "concordant" in line else f"concordant {line}"
    line = line.replace("concordant", f"'{sys.executable}' -m concordant")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done
    assert not re.search("Traceback", done.stderr)


@pytest.mark.usefixtures("place")
def test_a_resealed_model_that_is_too_large(capsys: pytest.CaptureFixture[str]) -> None:
    """Hashes that fit do not help: sizes are looked at before anything is hashed."""
    for name, data in sealed(good_folder("model"), "model").items():
        Path(name).write_bytes(data)
    with open("model/model.json", "r+b") as file:
        file.truncate((4 << 30) + 1)
    refused(["export", "-m", "model", "--to", "json", "-o", "m.json"], capsys)


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    """However much may be read: what is asked of a file is set aside before it is read."""
    path = tmp_path / "x"
    for data in (b"", b"x", b"xyz" * 100_000):
        path.write_bytes(data)
        tracemalloc.start()
        assert read_regular(path, 4 << 30) == data
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20
        assert read_regular(path, len(data)) == data
    with pytest.raises(cc.InputError, match="at most 9 are read"):
        read_regular(path, 9)
    assert read_regular("/proc/self/status", 1 << 20)  # a file that says to be empty
    with pytest.raises(cc.InputError, match="at most 9 are read"):
        read_regular("/proc/self/status", 9)
