"""Stores survive what kills their writers: SIGKILL anywhere, power loss, full disks, damaged files, other writers.

After every fault the store opens, holds exactly the logs that were acknowledged and at most the one that was under way,
that one whole; verify finds nothing wrong, and the preferences are the sum of these logs, each read on its own.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import pytest

from concordant import ConcordantError, InputError, Preferences
from concordant.io.ingest import Store
from concordant.io.store import migrations
from concordant.io.store.stored import read_stored
from seeds import seed
from store_disks import Disk, Moment, write_disk
from store_faults import (
    COMPACT,
    Action,
    Refusal,
    Worker,
    act,
    from_format_0,
    interposed,
    kept_database,
    make_logs,
    sums,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses fork servers and /proc of Linux")
KILLS = 200
AT_ONCE = 4
"""Processes at once, each with a store of its own."""
Sums = Sequence[Preferences | None]


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database():
        yield


@pytest.fixture(scope="module", name="logs")
def _logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_logs(tmp_path_factory.mktemp("logs"), 12)


@pytest.fixture(scope="module", name="expected")
def _expected(logs: list[Path]) -> Sums:
    return sums(logs)


def held(store: Path, logs: Sequence[Path], expected: Sums) -> int:
    """Return how many logs a store holds: the first ones, each whole and once, and nothing else."""
    if not store.exists():
        with pytest.raises(InputError, match="there is no store"):
            Store(store).preferences()
        return 0
    prefs, catalogue = read_stored(store)
    names = [batch.name for batch in catalogue.batches]
    assert names == [str(log) for log in logs[: len(names)]]
    assert prefs == expected[len(names)]
    Store(store).verify()
    return len(names)


def check(store: Path, logs: Sequence[Path], expected: Sums, acknowledged: int, *, again: bool = True) -> int:
    """Check what a fault has left, then that the same work, done again, completes it exactly once."""
    found = held(store, logs, expected)
    assert acknowledged <= found <= acknowledged + 1
    if again:
        act(store, logs)
        assert held(store, logs, expected) == len(logs)
        if found < len(logs):  # a writer had something to do, and tidied
            assert not [path.name for path in store.parent.rglob("*") if ".new" in path.name]
    return found


# -- SIGKILL -------------------------------------------------------------------------------------------------------
def test_killed_at_200_random_moments(tmp_path: Path, logs: list[Path], expected: Sums) -> None:
    """Stores grow while their writers are killed; each writer begins with what the one before it was killed in."""
    kills: Counter[int] = Counter()

    def chains(number: int) -> None:
        draw = random.Random(seed(number))
        chain = 0
        while kills[number] < KILLS / AT_ONCE:
            store = tmp_path / f"{number}-{chain}.store"
            for died in _grown_under_kills(store, logs, expected, draw):
                kills[number] += died
                if kills[number] >= KILLS / AT_ONCE:
                    break
            chain += 1

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(chains, range(AT_ONCE)))
    assert kills.total() >= KILLS


def _grown_under_kills(store: Path, logs: list[Path], expected: Sums, draw: random.Random) -> Iterator[bool]:
    """Take logs into a store by processes that are killed; yield for each whether it was, once its work is checked."""
    found, lasts = 0, 0.3
    while found < len(logs):
        actions: list[Action] = [*logs[max(found - 1, 0) : found + 2]]
        actions.insert(draw.randint(1, len(actions)), COMPACT)
        repeated = found > 0
        begun = time.perf_counter()
        acknowledged, died = Worker(store, actions).kill(after=draw.uniform(0, lasts))
        if not died:  # the machine is faster than that
            lasts = 0.8 * (time.perf_counter() - begun)
        least = max(found, found - repeated + acknowledged)
        now = held(store, logs, expected)
        assert least <= now <= least + 1
        lasts *= 1.05 if now == found else 0.98  # about one log for each kill
        found = now
        yield died


def test_killed_at_every_step(tmp_path: Path, logs: list[Path], expected: Sums) -> None:
    assert _killed_at_every_step(tmp_path, [*logs[:2], COMPACT], logs[:2], expected) > 40


def _killed_at_every_step(
    tmp_path: Path, actions: Sequence[Action], logs: list[Path], expected: Sums, begin: Path | None = None
) -> int:
    """Kill a process before and after every step; return the number of these moments."""

    seen: set[tuple[object, ...]] = set()

    def killed_at(step: int) -> bool:
        folder = tmp_path / str(step)
        if begin is None:
            folder.mkdir()
        else:
            shutil.copytree(begin, folder)
        acknowledged, died = Worker(folder / "votes.store", actions, die_at=step).finish()
        left = (acknowledged, *left_in(folder))
        check(folder / "votes.store", logs, expected, acknowledged + (begin is not None), again=left not in seen)
        seen.add(left)
        shutil.rmtree(folder)
        return died

    steps = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while all(died := list(pool.map(killed_at, range(steps, steps + AT_ONCE)))):
            steps += AT_ONCE
    return steps + sum(died)


def test_killed_at_every_step_of_a_migration(
    tmp_path: Path, logs: list[Path], expected: Sums, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(migrations.MIGRATIONS, 0, from_format_0)
    old = tmp_path / "old"
    old.mkdir()
    act(old / "votes.store", logs[:1])
    with duckdb.connect(str(old / "votes.store")) as catalogue:
        catalogue.execute("UPDATE store SET value = '0' WHERE key = 'format'")
        catalogue.execute("UPDATE store SET key = 'sort' WHERE key = 'kind'")
    assert held(old / "votes.store", logs, expected) == 1
    assert _killed_at_every_step(tmp_path, [logs[1]], logs[:2], expected, old) > 10


def left_in(folder: Path) -> list[tuple[str, int]]:
    """Return names and sizes of files: after a step they are those before the next one, but for what is drawn."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted((re.sub("[0-9a-f]{8,}", "*", str(path.relative_to(folder))), path.stat().st_size) for path in files)


def test_the_disk_fails_at_every_step(tmp_path: Path, logs: list[Path], expected: Sums) -> None:
    step, refused = 0, True
    while refused:
        folder = tmp_path / str(step)
        folder.mkdir()
        store, acknowledged, disk = folder / "votes.store", list[Path](), Refusal(step)
        with interposed(store, disk), suppress(ConcordantError):
            act(store, [*logs[:2], COMPACT], partial(acknowledged.append, store))
        check(store, logs[:2], expected, len(acknowledged), again=step % 4 == 0)
        shutil.rmtree(folder)
        step, refused = step + 1, disk.left < 0
    assert step > 20


# -- power loss ----------------------------------------------------------------------------------------------------
def test_power_fails_at_every_step(tmp_path: Path, logs: list[Path], expected: Sums) -> None:
    disk = Disk(tmp_path / "disk")
    with interposed(disk.root / "votes.store", disk):
        act(disk.root / "votes.store", [logs[0], logs[1], COMPACT], disk.acknowledge)
    assert _power_fails(disk.moments, tmp_path, logs[:2], expected) > 60


@pytest.mark.parametrize("commit", [1, 2, 3])
def test_power_fails_after_a_kill(tmp_path: Path, logs: list[Path], expected: Sums, commit: int) -> None:
    """A writer is killed when its catalogue has its name and the disk does not know it yet; another one goes on."""
    disk = Disk(tmp_path / "disk")
    store = disk.root / "votes.store"
    dead: list[int] = []

    def watch(name: str, path: str, after: bool) -> None:
        if dead:
            raise Killed  # a dead writer takes no more steps
        disk(name, path, after)
        replaced = [
            moment for moment in disk.moments if re.match(r"after replace \.votes\.store\.\w+\.new", moment.step)
        ]
        if len(replaced) == commit:
            dead.append(len(disk.moments))
            raise Killed

    with interposed(store, watch), pytest.raises(Killed):
        act(store, [logs[0], logs[1], COMPACT], disk.acknowledge)
    disk.acknowledged = 0
    with interposed(store, disk):
        act(store, logs[:3], disk.acknowledge)
    assert _power_fails(disk.moments[dead[0] :], tmp_path, logs[:3], expected, least=min(commit - 1, 2)) > 10


class Killed(BaseException):
    """The end of a writer."""


def _power_fails(
    moments: Sequence[Moment], tmp_path: Path, logs: Sequence[Path], expected: Sums, *, least: int = 0
) -> int:
    """Check what every power cut leaves; return how many different disks there were."""
    tried: set[int] = set()
    named: set[tuple[int, tuple[str, ...]]] = set()
    for moment in moments:
        acknowledged = max(moment.acknowledged, least)
        for place, found in enumerate(moment.outcomes()):
            state = hash((acknowledged, *found.items()))
            names = (acknowledged, tuple(found))
            if state in tried:
                continue
            tried.add(state)
            folder = tmp_path / "after"
            folder.mkdir()
            write_disk(folder, found)
            again = names not in named
            named.add(names)
            try:
                check(folder / "votes.store", logs, expected, acknowledged, again=again)
            except Exception as error:
                error.add_note(f"{moment.step}, outcome {place}: {names}")
                raise
            shutil.rmtree(folder)
    return len(tried)


def test_a_vote_is_forgotten_at_every_step_or_not(tmp_path: Path) -> None:
    """Whatever step kills or fails, all of two votes of two batches are gone, or none; then the same is done again."""
    options = {"columns": {"id": "vote"}}
    logs = [tmp_path / f"2026-01-0{day}.csv" for day in (1, 2)]
    for log in logs:
        lines = [f"{log.stem}-{at},{'ab'[at % 2]},{'cd'[at % 3 == 0]}" for at in range(9)]
        log.write_text("vote,winner,loser\n" + "\n".join(lines) + "\n")
    whole = tmp_path / "whole" / "votes.store"
    whole.parent.mkdir()
    for log in logs:
        Store(whole).ingest(log, **options)
    Store(whole).compact()
    ids = [f"{log.stem}-{at}" for at, log in enumerate(logs, 3)]
    before, after = Store(whole).preferences(), Store(tmp_path / "after.store")
    for log in logs:
        left = [line for line in log.read_text().splitlines() if line.split(",")[0] not in ids]
        log.with_suffix(".left.csv").write_text("\n".join(left) + "\n")
        after.ingest(log.with_suffix(".left.csv"), **options)
    moments = 0
    for fault in ("kill", "disk"):
        for step in range(0, 100, 3 if fault == "kill" else 2):  # before and after steps take turns
            folder = tmp_path / f"{fault}-{step}"
            shutil.copytree(whole.parent, folder)
            store = folder / whole.name
            if fault == "kill":
                acknowledged, hit = Worker(store, [("forget", (), {"ids": ids})], die_at=step).finish()
            else:
                acknowledged, hit = 0, False
                with interposed(store, refusal := Refusal(step)), suppress(ConcordantError):
                    acknowledged = Store(store).forget(ids=ids)
                hit = refusal.left < 0
            found = Store(store).preferences()
            assert found == after.preferences() if acknowledged or found != before else found == before
            Store(store).verify()
            assert Store(store).forget(ids=ids) == (2 if found == before else 0)
            assert Store(store).preferences() == after.preferences()
            assert not any(Store(store).ingest(log, **options).new for log in logs)
            shutil.rmtree(folder)
            if not hit:
                break
            moments += 1
    assert moments > 15
