"""Ctrl-C and SIGTERM at any moment: one line, the right status, soon, and nothing half written."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import concordant as cc
from concordant.apps.commands import main
from concordant.apps.commands.output import put_file
from concordant.apps.models.directory import Contents, read_directory, write_directory
from concordant.errors import ConcordantError
from concordant.io.ingest import Store
from concordant.io.store import commits
from running import exit_status
from seeds import seed

SOON = 30.0
"""Seconds within which an interrupted process has to end here, where many others may run; alone it takes two."""
ALONE = "from concordant.apps.commands import main; main()"


@pytest.fixture(name="logs", scope="module")
def _logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs that take a while: one query of many judgments, features of its items."""
    folder = tmp_path_factory.mktemp("logs")
    draw = np.random.default_rng(0)
    winner = draw.integers(0, 60, 60_000)
    votes = {"winner": winner, "loser": (winner + 1 + draw.integers(0, 59, len(winner))) % 60}
    pa.csv.write_csv(pa.table(votes), folder / "votes.csv")
    features = draw.normal(size=(60, 5))
    columns = {f"x{place}": features[:, place] for place in range(5)}
    pa.csv.write_csv(pa.table({"item": np.arange(60), **columns}), folder / "items.csv")
    return folder


COMMANDS = {
    "rank": ["rank", "{logs}/votes.csv", "-o", "out.csv", "--interval", "bootstrap", "--replicates", "1000"],
    "rank for long": [
        *("rank", "{logs}/votes.csv", "-o", "out.csv", "--interval", "bootstrap", "--replicates", "100000")
    ],
    "audit": ["audit", "{logs}/votes.csv", "-o", "out.json", "--edges", "edges.parquet", "--replicates", "20"],
    "fit": ["fit", "{logs}/votes.csv", "-f", "{logs}/items.csv", "-m", "model"],
    "ingest": ["ingest", "{logs}/votes.csv", "{logs}/items.csv", "--store", "s"],
}


def begun(command: str, logs: Path, folder: Path, *more: str, script: str = ALONE) -> subprocess.Popen[str]:
    """Begin a command in a folder of its own, its temporary files in ``folder/tmp``."""
    (folder / "tmp").mkdir(parents=True)
    asked = [part.format(logs=logs) for part in COMMANDS[command]]
    return subprocess.Popen(
        [sys.executable, "-c", script, *asked, *more],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if "model/model.json" in found:  # says when it was fitted, so its hash differs, too
        for name in ("model/model.json", "model/hashes.json"):
            found[name] = re.sub(rb'"(time|model\.json|of this list)": "[^"]*"', b"", found[name])
    return found


def test_a_signal_while_python_frees_something_is_not_lost() -> None:
    """What is raised there Python drops, with a traceback: importing has such callbacks."""
    code = """
import os, signal, sys, time
from concordant.apps.commands.saying import Interrupted, Watch
class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
watch = Watch(lambda: None)
watch.begin()
try:
    Freed()
    for _ in range(200):
        time.sleep(0.1)
except Interrupted:
    print("interrupted", watch.status)
watch.end()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "interrupted 130\n"
    assert found.stderr == ""


def test_a_signal_at_the_end_of_python_is_no_traceback() -> None:
    """Python 3.12 starts no thread by then, not even one that would wait."""
    code = """
import atexit, os, signal, threading, time
from concordant.apps.commands.saying import Watch
def killed():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
watch = Watch(lambda: None)
watch.begin()
watch.over = True
def none(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")
threading.Thread.start = none
atexit.register(killed)
print("done")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (found.stdout, found.stderr) == ("done\n", "")


@pytest.mark.parametrize("command", ["rank", "audit", "fit", "ingest"])
def test_nothing_half_written(command: str, logs: Path, tmp_path: Path) -> None:
    """At drawn moments of a run, two of them while it works; where it was quicker or slower than thought, again."""
    if command in ("audit", "fit"):  # what Numba compiles is kept from then on
        begun(command, logs, tmp_path / "first").communicate()
    began = time.monotonic()
    whole = begun(command, logs, tmp_path / "whole")
    whole.communicate()
    long = time.monotonic() - began
    expected = left(tmp_path / "whole")
    draw = random.Random(f"{command} {seed(7)}")
    stopped = tries = 0
    while stopped < 2 and tries < 20:
        tries += 1
        folder = tmp_path / str(tries)
        process = begun(command, logs, folder)
        try:
            process.wait(draw.uniform(0.25, 0.75) * long)
            long *= 0.7  # the first run may have compiled what this one finds
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)  # a second one changes nothing
            _, said = process.communicate(timeout=SOON)
            if process.returncode == -signal.SIGINT:  # Python itself had just begun
                long *= 1.3
            elif process.returncode != whole.returncode:
                stopped += 1
                assert process.returncode == 130, said
                assert said.splitlines()[-1] == "interrupted"
                assert "Traceback" not in said
        process.communicate()
        found = left(folder)
        if command == "ingest":  # segments have names of their own: the store is valid, and has the log or not
            assert {name for name in found if not name.startswith("s.")} <= {"s"}
            if "s" in found:
                assert Store(folder / "s").verify().judgments == 60_000
        else:
            assert found.items() <= expected.items()
            if command == "fit":
                assert set(found) in (set(), set(expected))
    assert stopped == 2


LOADS = """
import os, signal, sys, time
from importlib.machinery import ExtensionFileLoader
import concordant.apps.commands as commands

class Slow(ExtensionFileLoader):
    def exec_module(self, module):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        print("loaded", flush=True)  # an exception before would have ended the process, as nanobind does

def main(*_, **__):
    Slow("x", "x").exec_module(None)
    time.sleep(20)

commands._call = main
commands.main(["rank", "votes.csv"])
"""


def test_a_compiled_module_is_loaded_before_a_signal_is_heeded() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=False, timeout=SOON)
    assert (done.returncode, done.stdout) == (130, "loaded\n"), done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted" and "Traceback" not in done.stderr


SAYS_SO = """
import concordant.ranking.rank as session
from concordant.apps.commands import main
def ranked(*given, rank=session.rank, **more):
    open("../ranking", "w").close()
    return rank(*given, **more)
session.rank = ranked
main()
"""
"""The command, which makes a file when it begins to rank."""


@pytest.mark.parametrize(
    ("number", "options", "status", "said"),
    [
        (signal.SIGINT, [], 130, "interrupted\n"),
        (signal.SIGTERM, [], 143, "interrupted\n"),
        (signal.SIGTERM, ["--log-format", "json"], 143, {"level": "error", "event": "interrupted"}),
    ],
)
def test_one_line_and_the_status_of_the_signal(
    number: int, options: list[str], status: int, said: Any, logs: Path, tmp_path: Path
) -> None:
    process = begun("rank for long", logs, tmp_path / "run", "-q", *options, script=SAYS_SO)
    while process.poll() is None and not (tmp_path / "ranking").exists():
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out) == (status, "")
    assert err == said if isinstance(said, str) else said.items() <= json.loads(err).items()
    assert left(tmp_path / "run") == {}


STUCK = """
import signal, sys, time, os, threading
from concordant.apps.commands import saying as interrupts, main, output
import concordant.apps.commands.rank as command
def busy(*_, **__):
    def fill(name):
        open(name, "w").write("half")
        while True:
            try:
                print("ready", flush=True)
                time.sleep(30)
            except BaseException:
                pass
    output.put_file("out.csv", fill)
command.rank = busy
interrupts.GRACE = 0.3
main()
"""


def test_a_main_thread_that_does_not_come_back_is_ended(tmp_path: Path) -> None:
    """It swallows what is raised in it, as a library may; the file it was writing goes all the same."""
    asked = [sys.executable, "-c", STUCK, "rank", "x.csv"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(asked, cwd=tmp_path, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert [path.suffix for path in tmp_path.iterdir()] == [".csv"]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_signals_are_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    main(["--version"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1


# -- the moments that matter, one by one -----------------------------------------------------------------------------
def steps_of(act: Any, file: str) -> Iterator[int]:
    """Run ``act`` again and again, each time raising KeyboardInterrupt at the next line of a file that it comes to."""
    for stop in range(1, 500):
        seen = 0

        def trace(frame: Any, event: str, _: Any, stop: int = stop) -> Any:
            nonlocal seen
            if frame.f_code.co_filename.endswith(file) and event == "line":
                seen += 1
                if seen == stop:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            act()
        except KeyboardInterrupt:
            sys.settrace(before)
            yield stop
            continue
        finally:
            sys.settrace(before)
        return
    raise AssertionError("it never came to an end")


def test_a_file_is_old_or_new_at_every_line(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"

    def act() -> None:
        path.write_text("old")
        put_file(path, lambda name: Path(name).write_text("new"))

    moments = 0
    for moments in steps_of(act, "log/disk.py"):  # noqa: B007
        assert path.read_text() in ("old", "new")
        assert [one.name for one in tmp_path.iterdir() if not one.name.startswith(".concordant-")] == ["out.csv"]
        for rest in tmp_path.glob(".concordant-*"):  # one line after its removal begins: what main() does last
            rest.unlink()
    assert moments >= 8
    assert path.read_text() == "new"


def test_a_model_is_old_or_new_at_every_line(tmp_path: Path) -> None:
    place = tmp_path / "model"
    old, new = Contents({"n": 1}, {"a": np.ones(3)}), Contents({"n": 2}, {"a": np.zeros(3)})

    def act() -> None:
        if not place.exists():
            write_directory(place, old)
        write_directory(place, new)

    write_directory(place, old)
    moments = 0
    for moments in steps_of(act, "models/directory.py"):
        found = read_directory(place)
        assert found.values["n"] in (1, 2), moments
    assert moments >= 20
    assert read_directory(place).values == {"n": 2}


@pytest.mark.parametrize("wrong", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", ["_prepare", "_written", "_put"])
def test_a_first_log_that_fails_leaves_nothing(
    wrong: Any, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither lock nor marker; before or after the step."""
    plain = getattr(commits, step)
    for after in (False, True):

        def failing(*given: Any, after: bool = after) -> Any:
            if after and step != "_put":
                plain(*given)
            raise wrong

        monkeypatch.setattr(commits, step, failing)
        with pytest.raises((KeyboardInterrupt, ConcordantError)):
            Store(tmp_path / "s").ingest({"winner": ["a"], "loser": ["b"]})
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(commits, step, plain)
    assert Store(tmp_path / "s").ingest({"winner": ["a"], "loser": ["b"]}).judgments == 1


def test_a_catalogue_that_was_moved_away_costs_no_segment(tmp_path: Path) -> None:
    Store(tmp_path / "s").ingest({"winner": ["a"], "loser": ["b"]})
    (tmp_path / "s").rename(tmp_path / "elsewhere")
    before = sorted((tmp_path / "s.parts").iterdir())
    with pytest.raises(cc.InputError, match="catalogue is missing"):
        Store(tmp_path / "s").ingest({"winner": ["c"], "loser": ["b"]})
    assert sorted((tmp_path / "s.parts").iterdir()) == before


def test_a_command_leaves_no_file_open(tmp_path: Path) -> None:
    """Each run of a command in one process once left a pipe open."""
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser\na,b\nb,a\n")
    line = ["rank", str(log), "--quiet", "-o", str(tmp_path / "out.csv")]
    exit_status(*line)
    before = len(os.listdir("/proc/self/fd"))
    assert [exit_status(*line) for _ in range(20)] == [0] * 20
    until = time.monotonic() + 20
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < until:
        time.sleep(0.05)  # the thread that listens closes its end by itself
    assert len(os.listdir("/proc/self/fd")) <= before
