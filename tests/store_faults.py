"""Faults for stores: processes of their own that die at a chosen moment or before and after each of their steps.

Every file operation of a store that matters after a crash is one of os.fsync, os.replace, os.rename, os.unlink,
os.mkdir. They are interposed here, below everything that the store itself calls, so that a step that it forgets is
missed.
"""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant import Preferences
from concordant.io.engines import duckdb as engine
from concordant.io.engines.duckdb import Settings
from concordant.io.ingest import Store
from concordant.io.store import catalogue, migrations

STEPS = ("fsync", "replace", "rename", "unlink", "remove", "mkdir", "rmdir")
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["pytest", "pyarrow.parquet", "concordant", "concordant.io.ingest"])
children = threading.Lock()
"""Multiprocessing asks after all of its processes when one starts, and hears of each end once."""

Action = str | Path | tuple[str, tuple[Any, ...], dict[str, Any]]
"""A log to take in, the word compact, or a method of a store with its arguments."""
COMPACT = "compact"


def make_logs(folder: Path, number: int, *, rows: int = 200, seed: int = 0) -> list[Path]:
    """Write small Parquet logs of comparisons that overlap in their judgments."""
    folder.mkdir(exist_ok=True)
    draw = np.random.default_rng(seed)
    paths = [folder / f"day-{place}.parquet" for place in range(number)]
    for path in paths:
        winner, step, query = draw.integers(0, 9, rows), draw.integers(1, 9, rows), draw.integers(0, 3, rows)
        table = pa.table({"query": query, "winner": winner, "loser": (winner + step) % 9})
        pa.parquet.write_table(table, path)
    return paths


def sums(logs: Sequence[Path]) -> list[Preferences | None]:
    """Return the preferences of the first k logs, for every k."""
    return [None, *itertools.accumulate(cc.read(path) for path in logs)]


def act(store: Path, actions: Sequence[Action], done: Callable[[], object] = lambda: None) -> None:
    """Take in logs one after the other, compacting where told; ``done`` is called when a log is acknowledged."""
    for action in actions:
        if action == COMPACT:
            Store(store).compact()
        elif isinstance(action, tuple):
            name, arguments, options = action
            getattr(Store(store), name)(*arguments, **options)
            done()
        else:
            Store(store).ingest(action, wait=120)  # a busy machine is slow, and no test is about ten seconds
            done()


@contextmanager
def kept_database(*, foreign: bool = False) -> Iterator[None]:
    """Read and write stores and logs of this process by one DuckDB that stays open: a new one is longer than the rest.

    Processes that are to die are not touched by it. Threads take turns. Macros in a catalogue, of which DuckDB lists
    its own thousands, too, are looked for only where catalogues may be ``foreign``.
    """
    turn = threading.RLock()

    @contextmanager
    def connected(_settings: Settings, **_: bool) -> Iterator[Any]:
        with turn:
            try:
                yield opened[-1]
            finally:
                try:
                    for attached in ("catalogue", "concordant_file"):
                        opened[-1].execute(f"DETACH DATABASE IF EXISTS {attached}")
                except duckdb.FatalException:  # before 2.0 a disk that is full is the end of a database
                    opened.append(fresh())

    def fresh() -> Any:
        database = duckdb.connect()
        database.execute("SET enable_progress_bar = false")
        return database

    opened = [fresh()]
    with pytest.MonkeyPatch.context() as patch:
        for module in (engine, catalogue):
            patch.setattr(module, "connected", connected)
        if not foreign:
            lines = catalogue.FOREIGN.splitlines()
            patch.setattr(catalogue, "FOREIGN", "\n".join(line for line in lines if "duckdb_functions()" not in line))
        yield
    for database in opened:
        database.close()


# -- processes that die --------------------------------------------------------------------------------------------
@dataclass
class Countdown:
    """Dies by SIGKILL at a step: even numbers right before it is taken, odd ones right after."""

    left: int

    def __call__(self, name: str, path: str, after: bool) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


@dataclass
class Refusal:
    """A disk that fails at one step, which is then not taken."""

    left: int

    def __call__(self, name: str, path: str, after: bool) -> None:
        if not after:
            self.left -= 1
            if self.left == -1:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)


@dataclass
class Pause:
    """Stops at the first step and goes on when told."""

    said: Connection
    waiting: bool = True

    def __call__(self, name: str, path: str, after: bool) -> None:
        if self.waiting:
            self.waiting = False
            self.said.send_bytes(b"paused")
            self.said.recv_bytes()


class Worker:
    """A process of its own that works on a store; it says when it begins, and when a log is acknowledged."""

    def __init__(
        self, store: Path, actions: Sequence[Action], *, die_at: int | None = None, pause: bool = False
    ) -> None:
        self._ours, theirs = processes.Pipe()
        self.process = processes.Process(target=_work, args=(theirs, store, list(actions), die_at, pause))
        with children:
            self.process.start()
        theirs.close()
        assert self._ours.recv_bytes() == b"begun"

    def wait_for(self, word: bytes) -> None:
        """Wait until the process says a word."""
        while self._ours.recv_bytes() != word:
            pass

    def go_on(self) -> None:
        """Let a paused process go on."""
        self._ours.send_bytes(b"go")

    def finish(self) -> tuple[int, bool]:
        """Wait for the end; return how many logs were acknowledged, and whether the process was killed."""
        acknowledged = 0
        try:
            while word := self._ours.recv_bytes():
                acknowledged += word == b"acknowledged"
        except (EOFError, ConnectionResetError):
            pass
        with children:
            self.process.join()
            status = self.process.exitcode
        assert status in (0, -signal.SIGKILL), f"exit status {status}"
        return acknowledged, status != 0

    def kill(self, after: float) -> tuple[int, bool]:
        """Kill the process by SIGKILL after some seconds, and return what ``finish`` does."""
        time.sleep(after)
        self.process.kill()
        return self.finish()


def _work(said: Connection, store: Path, actions: Sequence[Action], die_at: int | None, pause: bool) -> None:
    migrations.MIGRATIONS.setdefault(0, from_format_0)
    said.send_bytes(b"begun")
    watch: Watch | None = Pause(said) if pause else None if die_at is None else Countdown(die_at)
    with kept_database(), nullcontext() if watch is None else interposed(store, watch):
        act(store, actions, lambda: said.send_bytes(b"acknowledged"))


def from_format_0(facts: dict[str, str], _tables: Any) -> None:
    """Bring up a catalogue of a format that never was, in which the kind is called sort."""
    facts["kind"] = facts.pop("sort")


# -- steps ---------------------------------------------------------------------------------------------------------
Watch = Callable[[str, str, bool], None]


@contextmanager
def interposed(store: Path, watch: Watch) -> Iterator[None]:
    """Call ``watch(name, path, after)`` before and after every step that this process takes beside a store."""
    folder = str(store.resolve().parent)
    real = {name: getattr(os, name) for name in STEPS}

    def step(name: str, given: Any, *more: Any, **options: Any) -> Any:
        path = os.readlink(f"/proc/self/fd/{given}") if isinstance(given, int) else os.path.abspath(os.fspath(given))
        if "dir_fd" in options or os.path.commonpath([folder, path]) != folder:
            return real[name](given, *more, **options)
        watch(name, path, False)
        answer = real[name](given, *more, **options)
        watch(name, path, True)
        return answer

    for name in STEPS:
        setattr(os, name, partial(step, name))
    try:
        yield
    finally:
        for name in STEPS:
            setattr(os, name, real[name])
