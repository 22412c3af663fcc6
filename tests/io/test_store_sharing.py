"""Stores that several processes use at once: readers see a committed state, writers wait for each other."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from concordant import ConcordantError, InputError
from concordant.io.engines.duckdb import attach
from concordant.io.ingest import Store
from concordant.io.store.catalogue import read_catalogue
from store_faults import COMPACT, Action, Worker, act, make_logs, processes, sums

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses fork servers of Linux")
HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.fixture(scope="module", name="logs")
def _logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_logs(tmp_path_factory.mktemp("logs"), 9)


# -- readers -------------------------------------------------------------------------------------------------------
def _read_on(store: Path, logs: Sequence[Path], acknowledged: Any, said: Any) -> None:
    """Read until all is there: every answer is the sum of the first k logs, k those acknowledged or one more."""
    expected, seen = sums(logs), [1]
    said.put("begun")
    while seen[-1] < len(logs):
        before = acknowledged.value
        try:
            prefs = Store(store).preferences()
        except Exception as error:
            said.put(repr(error))
            return
        after = acknowledged.value
        k = next((k for k, one in enumerate(expected) if one is not None and len(one) == len(prefs)), 0)
        if prefs != expected[k] or not max(before, seen[-1]) <= k <= after + 1:
            said.put(f"{before} acknowledged, {after} after reading, {k} read after {seen[-1]}: {prefs}")
            return
        seen.append(k)
    said.put(seen)


def test_readers_see_what_was_committed(tmp_path: Path, logs: list[Path]) -> None:
    store = tmp_path / "votes.store"
    acknowledged, said = processes.Value("i", 1), processes.SimpleQueue()
    act(store, logs[:1])
    readers = [processes.Process(target=_read_on, args=(store, logs, acknowledged, said)) for _ in range(2)]
    for reader in readers:
        reader.start()
    assert [said.get() for _ in readers] == ["begun"] * len(readers)
    actions: list[Action] = []
    for log in logs[1:]:
        actions += [log, COMPACT]

    def done() -> None:
        acknowledged.value += 1

    act(store, actions, done)
    seen = [said.get() for _ in readers]
    for reader in readers:
        reader.join()
    assert all(isinstance(one, list) for one in seen), seen
    assert len({k for one in seen for k in one}) > 3, "the readers saw too little of the work"


class Replacing:
    """A connection while whose first attachments another process gives the file another content."""

    def __init__(self, connection: Any, path: Path, others: Sequence[Path], fails: bool) -> None:
        self.connection, self.path, self.others, self.fails = connection, path, list(others), fails

    def execute(self, statement: str) -> Any:
        done = self.connection.execute(statement)
        if statement.startswith("ATTACH") and self.others:
            shutil.copyfile(self.others.pop(0), temporary := self.path.with_name("new"))
            os.replace(temporary, self.path)
            if self.fails:  # as DuckDB 2 may, which reads the header of one file and the tables of the next
                self.connection.execute("DETACH there")
                raise duckdb.IOException("No more data remaining in MetadataReader")
        return done


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_replaced_while_it_is_opened_is_opened_again(tmp_path: Path, fails: bool) -> None:
    paths = [tmp_path / f"{number}.duckdb" for number in range(3)]
    for number, path in enumerate(paths):
        with duckdb.connect(str(path)) as made:
            made.execute(f"CREATE TABLE votes AS SELECT {number} AS number")
    with duckdb.connect() as connection:
        attach(Replacing(connection, paths[0], paths[1:], fails), paths[0], "there")
        assert connection.execute("FROM there.votes").fetchall() == [(2,)]
    with duckdb.connect() as connection, pytest.raises(InputError, match=r"0\.duckdb: was changed 100 times while"):
        attach(Replacing(connection, paths[0], paths[1:] * 50, fails), paths[0], "there")


def test_what_cannot_be_attached_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "votes.duckdb"
    path.write_bytes(b"no database" * 4096)
    with duckdb.connect() as connection, pytest.raises(duckdb.Error, match=r"votes\.duckdb"):
        attach(connection, path, "there")


# -- writers -------------------------------------------------------------------------------------------------------
def test_a_second_writer_is_told_who_holds_the_store(tmp_path: Path, logs: list[Path]) -> None:
    store = tmp_path / "votes.store"
    act(store, logs[:1])
    first = Worker(store, [logs[1]], pause=True)
    first.wait_for(b"paused")
    told = rf"process {first.process.pid} on {socket.gethostname()} \(.*, since 20.*\) is writing to it; waited 0.1 s"
    with pytest.raises(ConcordantError, match=told):
        Store(store).ingest(logs[2], wait=0.1)
    assert len(Store(store).preferences()) == 200  # readers do not wait
    first.go_on()
    Store(store).ingest(logs[2], wait=60)
    assert first.finish() == (1, False)
    assert Store(store).preferences() == sums(logs[:3])[3]


def test_a_killed_writer_holds_nothing(tmp_path: Path, logs: list[Path]) -> None:
    store = tmp_path / "votes.store"
    first = Worker(store, [logs[0]], pause=True)
    first.wait_for(b"paused")
    assert first.kill(after=0) == (0, True)
    Store(store).ingest(logs[0], wait=0)
    assert Store(store).preferences() == sums(logs[:1])[1]


def test_a_disk_that_gives_no_locks(tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(ConcordantError, match=r"votes.store: the disk gives no lock: No locks available"):
        Store(tmp_path / "votes.store").ingest(logs[0], wait=0)


def test_writers_at_once_lose_and_double_nothing(tmp_path: Path, logs: list[Path]) -> None:
    store = tmp_path / "votes.store"
    shares = [logs[:6], logs[3:9], logs[:9], logs[5:9]]
    workers = [Worker(store, share) for share in shares]
    assert [worker.finish() for worker in workers] == [(len(share), False) for share in shares]
    assert sorted(batch.name for batch in read_catalogue(store).batches) == [str(log) for log in logs[:9]]
    assert Store(store).preferences() == sums(logs[:9])[9]
    Store(store).verify()


def test_a_database_held_open_by_another_process(tmp_path: Path, logs: list[Path]) -> None:
    store = tmp_path / "votes.store"
    act(store, logs[:1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for work in (lambda: Store(store).ingest(logs[1]), Store(store).preferences):
            with pytest.raises(InputError, match=rf"held open by another process.*{other.pid}"):
                work()
        other.stdin.close()
    act(store, logs[:2])
    assert Store(store).preferences() == sums(logs[:2])[2]
    assert os.listdir(tmp_path)
