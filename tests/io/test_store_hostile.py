"""Stores that somebody else has put his hands on: links, foreign catalogues, shared folders, other users, other clocks,
counts without end, files that were damaged, lost and mixed up. The truth or one clear line, and nothing lost."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from concordant import ConcordantError, InputError, Preferences
from concordant.apps.commands import main
from concordant.io.ingest import Store
from concordant.io.read import read
from concordant.io.store import catalogue as catalogues
from concordant.io.store import commits
from concordant.io.store import files as lock
from concordant.io.store.catalogue import read_catalogue
from concordant.preferences.counts import MOST
from store_faults import Refusal, act, interposed, kept_database, make_logs, sums

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses links, users and limits of Linux")
PRECIOUS = "what nobody may lose\n"
DAMAGES = 80


@pytest.fixture(scope="module", name="logs")
def _logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_logs(tmp_path_factory.mktemp("logs"), 4, rows=40)


@pytest.fixture(scope="module", name="expected")
def _expected(logs: list[Path]) -> list[Preferences | None]:
    return sums(logs)


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database(foreign=True):
        yield


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory, logs: list[Path]) -> Path:
    folder = tmp_path_factory.mktemp("made")
    act(folder / "votes.store", logs[:2])
    return folder


@pytest.fixture(name="store")
def _store(tmp_path: Path, made: Path) -> Path:
    """A store of two logs in a folder of its own."""
    shutil.copytree(made, tmp_path / "here")
    return tmp_path / "here" / "votes.store"


@pytest.fixture(name="precious")
def _precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text(PRECIOUS)
    return path


def refused(act: Callable[[], Any], why: str, kind: type[Exception] = ConcordantError) -> None:
    with pytest.raises(kind, match=why) as error:
        act()
    assert "\n" not in str(error.value)


# -- links ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("present", [0, 2])
@pytest.mark.parametrize("kind", ["link", "empty link", "dangling link", "file", "pipe", "folder"])
def test_a_lock_that_is_something_else_is_left_alone(
    tmp_path: Path, logs: list[Path], precious: Path, kind: str, present: int
) -> None:
    store = tmp_path / "poetry"
    act(store, logs[:present])
    path, empty = lock.lock_file(store), tmp_path / "empty"
    path.unlink(missing_ok=True)
    empty.touch()
    {
        "link": lambda: path.symlink_to(precious),
        "empty link": lambda: path.symlink_to(empty),
        "dangling link": lambda: path.symlink_to(tmp_path / "made"),
        "file": lambda: path.write_text(PRECIOUS),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    refused(lambda: Store(store).ingest(logs[2], wait=0), r"poetry: (its lock )?poetry\.lock")
    assert precious.read_text() == PRECIOUS and empty.read_text() == "" and not (tmp_path / "made").exists()
    assert path.is_symlink() == ("link" in kind)
    assert kind != "file" or path.read_text() == PRECIOUS
    if present:
        assert len(Store(store).preferences()) == 80  # readers need no lock


def test_a_lock_of_another_name_is_not_written(store: Path, logs: list[Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    path = lock.lock_file(store)
    path.unlink()
    os.link(empty, path)
    Store(store).ingest(logs[2])
    assert empty.read_bytes() == b""


@pytest.mark.parametrize(
    "left", ['{"pid": 1, "host": "x", "command": "y", "since": "z"}\n', '{"pid": 1, "ho', "", " " * 1023 + "\n"]
)
def test_a_lock_that_a_killed_holder_left_is_taken(store: Path, logs: list[Path], left: str) -> None:
    lock.lock_file(store).write_text(left)
    Store(store).ingest(logs[2])
    assert not lock.lock_file(store).read_text().strip()


@pytest.mark.parametrize("name", [".votes.store.new", ".votes.store.new.wal", ".votes.store.0123456789abcdef.new"])
def test_links_under_names_of_temporary_files(store: Path, logs: list[Path], precious: Path, name: str) -> None:
    (store.parent / name).symlink_to(precious)
    Store(store).ingest(logs[2])
    assert precious.read_text() == PRECIOUS
    assert not (store.parent / name).is_symlink()


def test_a_writer_removes_only_what_writers_make(store: Path, logs: list[Path], precious: Path) -> None:
    parts = catalogues.parts_folder(store)
    kept = ["segment-of-customers.csv", "notes.txt", ".segment-plan", "segment-000009.parquet", ".hidden.new"]
    for name in kept:
        (parts / name).write_text(PRECIOUS)
    (parts / "segment-000009-00000000.parquet").symlink_to(precious)  # the name is ours: the link goes, not the file
    act(store, [logs[2], "compact"])
    assert {name for name in kept if (parts / name).read_text() == PRECIOUS} == set(kept)
    assert precious.read_text() == PRECIOUS


def test_a_folder_of_segments_that_is_a_link(
    store: Path, logs: list[Path], expected: list[Any], tmp_path: Path
) -> None:
    parts = catalogues.parts_folder(store)
    shutil.move(parts, tmp_path / "elsewhere")
    parts.symlink_to(tmp_path / "elsewhere")
    assert Store(store).preferences() == expected[2]
    for work in (lambda: Store(store).ingest(logs[2]), Store(store).compact):
        refused(work, "its folder votes.store.parts is a link, so that another store may write there too")
    fresh = tmp_path / "fresh.store"
    catalogues.parts_folder(fresh).symlink_to(tmp_path)
    refused(lambda: Store(fresh).ingest(logs[0]), "is a link")


def test_a_segment_that_is_a_link(store: Path, tmp_path: Path) -> None:
    segment = next(catalogues.parts_folder(store).glob("segment-*"))
    shutil.move(segment, tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    for work in (Store(store).preferences, Store(store).verify, Store(store).compact):
        refused(work, "it is no plain file")
    segment.unlink()
    os.mkfifo(segment)
    refused(Store(store).preferences, "it is no plain file")


def test_a_pipe_is_no_store(tmp_path: Path, logs: list[Path]) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(lambda: Store(tmp_path / "pipe").ingest(logs[0]), "is a pipe")
    refused(Store(tmp_path / "pipe").preferences, "is a pipe")


# -- foreign catalogues --------------------------------------------------------------------------------------------
FOREIGN = {
    "a view": ("ALTER TABLE batches RENAME TO b; CREATE VIEW batches AS FROM b", "the view batches"),
    "a view of a file": (
        "DROP TABLE contents; CREATE VIEW contents AS SELECT content AS sha256, 1 AS bytes FROM read_text('{}')",
        "the view contents",
    ),
    "a view beside": ("CREATE VIEW more AS FROM read_text('{}')", "the view more"),
    "a macro": ("CREATE MACRO now() AS 1", "the macro now"),
    "a macro of a table": ("CREATE MACRO steal() AS TABLE FROM read_text('{}')", "the macro steal"),
    "a sequence": ("CREATE SEQUENCE s", "the sequence s"),
    "a type": ("CREATE TYPE mood AS ENUM ('x')", "the type mood"),
    "a schema": ("CREATE SCHEMA s; CREATE TABLE s.t (x VARCHAR)", "the schema s"),
    "a table": ("CREATE TABLE more (x VARCHAR)", "the table more"),
    "a type of a column": ("ALTER TABLE segments ALTER rows TYPE DOUBLE", "the column rows of the type DOUBLE"),
    "a default": ("ALTER TABLE segments ALTER rows SET DEFAULT 1", "the computed column rows"),
    "an index": ("CREATE INDEX i ON segments (file)", "the index i"),
    "facts that are a view": ("ALTER TABLE store RENAME TO s; CREATE VIEW store AS FROM s", "no store of concordant"),
    "another file": ("UPDATE segments SET file = '../../{}'", "is no name of a segment"),
    "an absolute path": ("UPDATE segments SET file = '/{}'", "is no name of a segment"),
    "a pattern": ("UPDATE segments SET file = '*'", "is no name of a segment"),
    "a missing column": ("ALTER TABLE segments DROP rows", "the catalogue is not whole"),
    "a missing table": ("DROP TABLE segments", "the catalogue is not whole"),
    "nothing": ("UPDATE segments SET sha256 = NULL", "the catalogue is not whole"),
    "less than nothing": ("UPDATE segments SET rows = -1", "the catalogue is not whole"),
    "no sign": ("UPDATE contents SET sha256 = 'x'", "is no SHA-256"),
    "no options": ("UPDATE batches SET options = 'x'", "the catalogue is not whole"),
    "another kind": ("UPDATE store SET value = 'x' WHERE key = 'kind'", "the catalogue is not whole"),
    "covariates": ("UPDATE store SET value = '[1]' WHERE key = 'covariates'", "the catalogue is not whole"),
    "a segment twice": ("INSERT INTO segments FROM segments LIMIT 1", "segment"),
    "a batch less": ("DELETE FROM batches WHERE batch = 2", "judgments"),
    "a segment less": ("DELETE FROM segments WHERE file LIKE '%-000002-%'", "judgments|no segment"),
}


@pytest.mark.parametrize("change", FOREIGN)
def test_a_catalogue_is_data(store: Path, logs: list[Path], precious: Path, change: str) -> None:
    statement, why = FOREIGN[change]
    with duckdb.connect(str(store)) as database:
        database.execute(statement.format(precious))
    here = Store(store)
    before = {path: path.read_bytes() for path in store.parent.rglob("*") if path.is_file()}
    for work in (
        here.preferences,
        here.verify,
        lambda: here.ingest(logs[2]),
        here.compact,
        lambda: here.export(store.parent / "x.csv"),
    ):
        refused(work, why)
    assert {path: path.read_bytes() for path in before} == before


def test_computed_columns_are_refused(store: Path) -> None:
    with duckdb.connect(str(store)) as database:
        rows = database.execute("SELECT * FROM segments").fetchall()
        database.execute("DROP TABLE segments")
        database.execute(
            "CREATE TABLE segments (file VARCHAR, sha256 VARCHAR, bytes BIGINT, judgments BIGINT, "
            "rows BIGINT GENERATED ALWAYS AS (judgments + 1))"
        )
        for file, sha256, size, _, judgments in rows:
            database.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", [file, sha256, size, judgments])
    refused(Store(store).preferences, "the computed column rows")


def test_changes_that_duckdb_keeps_elsewhere(store: Path, logs: list[Path]) -> None:
    store.with_name("votes.store.wal").write_bytes(b"")
    for work in (Store(store).preferences, lambda: Store(store).ingest(logs[2])):
        refused(work, r"votes\.store\.wal lies beside it")


# -- counts without end --------------------------------------------------------------------------------------------
HUGE = 4_500_000_000_000_000_000


def test_no_more_is_taken_in_than_can_be_counted(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for loser in "bc":
        store.ingest({"winner": ["a"], "loser": [loser], "count": [HUGE]})
    before = store.info()
    for more in (HUGE, MOST - 2 * HUGE + 1):
        refused(
            lambda more=more: store.ingest({"winner": ["a"], "loser": ["d"], "count": [more]}),
            "more than the 9,223,372,",
        )
    refused(lambda: store.ingest({"winner": ["a"], "loser": ["b"], "count": [HUGE]}, again="two"), "can be counted")
    assert store.info() == before
    store.ingest({"winner": ["a"], "loser": ["d"], "count": [MOST - 2 * HUGE]})
    assert store.verify().judgments == MOST
    store.compact()
    assert store.verify().judgments == MOST == sum(read(store).count.astype(object))
    refused(lambda: store.ingest({"winner": ["a"], "loser": ["d"]}), "can be counted")


def test_a_store_that_holds_too_much_is_not_said_to_be_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0.1 let such logs in."""
    store = Store(tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr("concordant.io.store.stored.MOST", 1 << 70)
        patch.setattr(commits, "contradictions", lambda _: iter(()))
        store.ingest({"winner": ["a"], "loser": ["b"], "count": [HUGE]})
        store.ingest({"winner": ["a"], "loser": ["c"], "count": [HUGE + 1]})
        store.ingest({"winner": ["a", "x"], "loser": ["b", "y"], "count": [HUGE, 1]})
    for work in (store.verify, store.preferences, store.compact):
        refused(work, r"13,500,000,000,000,000,002 judgments; at most 9,223,372,036,854,775,807")
    refused(lambda: store.ingest({"winner": ["a"], "loser": ["z"]}), "13,500,000,000,000,000,002 .* can be counted")


# -- whose folder it is --------------------------------------------------------------------------------------------
def test_a_store_is_moved_and_copied_with_its_folder(
    store: Path, logs: list[Path], expected: list[Any], tmp_path: Path
) -> None:
    for number, carry in enumerate((shutil.move, copied)):
        there = tmp_path / f"there-{number}" / "other.store"
        there.parent.mkdir()
        carry(store, there)
        carry(catalogues.parts_folder(store), catalogues.parts_folder(there))
        act(there, [logs[2], "compact"])
        assert Store(there).preferences() == expected[3]
        Store(there).verify()
        if carry is copied:
            act(store, [logs[3]])  # both go on, each for itself
            assert Store(store).preferences() == expected[2] + read(logs[3])
            assert Store(there).preferences() == expected[3]
        else:
            shutil.move(there, store)
            shutil.move(catalogues.parts_folder(there), catalogues.parts_folder(store))
            act(store, [])
            shutil.rmtree(store.parent)
            store.parent.mkdir()
            act(store, logs[:2])


def copied(source: Path, to: Path) -> None:
    shutil.copytree(source, to) if source.is_dir() else shutil.copy(source, to)


def test_a_catalogue_without_its_folder(store: Path, logs: list[Path]) -> None:
    for carry in (shutil.copy, shutil.move):
        other = store.with_name("b.store")
        carry(store, other)
        here = Store(other)
        for work in (here.preferences, here.compact, partial(here.ingest, logs[2])):
            refused(work, r"its folder b\.store\.parts is missing; it belongs beside the file")
    refused(lambda: Store(store).ingest(logs[2]), "the catalogue is missing, but votes.store.parts holds 2 files")


def test_two_catalogues_do_not_write_into_one_folder(store: Path, logs: list[Path], expected: list[Any]) -> None:
    """An older copy that is put back, and one that shares the folder where no link can be seen (a bind mount)."""
    parts, older = catalogues.parts_folder(store), store.with_name("older")
    shutil.copy(store, older)
    act(store, [logs[2]])
    newer = store.read_bytes()
    whole = {path.name: path.read_bytes() for path in parts.iterdir()}
    shutil.copy(older, store)
    for work in (
        Store(store).preferences,
        Store(store).verify,
        Store(store).compact,
        lambda: Store(store).ingest(logs[3]),
    ):
        refused(
            work, r"it is at revision 2, and its folder votes.store.parts was last written by revision 3 of votes.store"
        )
    assert {path.name: path.read_bytes() for path in parts.iterdir()} == whole  # nothing was tidied away
    store.write_bytes(newer)
    assert Store(store).preferences() == expected[3]
    shutil.copy(older, store)  # or the old one on purpose, as the message says
    (parts / "catalogue.json").unlink()
    Store(store).verify()
    assert Store(store).preferences() == expected[2]
    act(store, [logs[2]])
    assert Store(store).preferences() == expected[3]


@pytest.mark.parametrize("said", ["", "{}", "[1]", "null", '{"catalogue": 1', "x" * 70_000])
def test_a_damaged_sign_of_the_folder(store: Path, logs: list[Path], said: str) -> None:
    (catalogues.parts_folder(store) / "catalogue.json").write_text(said)
    for work in (Store(store).preferences, Store(store).verify, lambda: Store(store).ingest(logs[2])):
        refused(work, "which says whose folder it is, is damaged; remove it")
    (catalogues.parts_folder(store) / "catalogue.json").unlink()
    Store(store).verify()


# -- clocks --------------------------------------------------------------------------------------------------------
def test_a_clock_that_is_set_back_and_forth(
    tmp_path: Path, logs: list[Path], expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, store = random.Random(3), tmp_path / "s"
    today, sign = datetime(2026, 3, 29, 1, 59, 59, tzinfo=UTC), itertools.cycle([1, -1])

    class Clock(datetime):
        @classmethod
        def now(cls, _tz: Any = None) -> datetime:
            return today + next(sign) * timedelta(days=draw.uniform(0, 20_000))

    for module in (commits, lock):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr("time.time", lambda: draw.uniform(0, 4e9))
    for log in logs:
        os.utime(log, (draw.uniform(0, 4e9),) * 2)
    for number, log in enumerate(logs, 1):
        assert Store(store).ingest(log).new
        if number % 2 == 0:
            Store(store).compact()
        for before in logs[:number]:
            assert not Store(store).ingest(before).new
        assert Store(store).preferences() == expected[number]
        Store(store).verify()
    catalogue = read_catalogue(store)
    taken = [batch.taken for batch in catalogue.batches]
    assert taken != sorted(taken)  # the clock went back, and
    assert [batch.name for batch in catalogue.batches] == [str(log) for log in logs]  # the order of logs did not


# -- other users ---------------------------------------------------------------------------------------------------
NOBODY = """
import io, json, os, sys, tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from concordant.apps.commands import main

def run(*arguments):
    out, err, status = io.TextIOWrapper(io.BytesIO()), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as stop:
            status = stop.code or 0
        out.flush()
    return [status, err.getvalue(), out.buffer.getvalue().decode()]

with tempfile.TemporaryDirectory() as folder:  # what is imported late lies where only root may look
    log, store = Path(folder, "log.parquet"), str(Path(folder, "s"))
    log.write_bytes(Path(sys.argv[1]).read_bytes())
    Path(folder, "log.csv").write_text("winner,loser\\n1,2\\n")
    sparse = Path(folder, "sparse.csv")  # whose fit is tested by compiled draws
    sparse.write_text("winner,loser\\n" + "".join(f"{n * 7 % 61},{(n * 7 + 1 + n % 5) % 61}\\n" for n in range(5000)))
    for command in (["ingest", log, Path(folder, "log.csv"), "-s", store], ["rank", store], ["store", "verify", store],
                    ["rank", sparse],
                    ["store", "compact", store], ["store", "info", store],
                    ["store", "export", store, "-o", folder + "/x.csv"]):
        run(*map(str, command))
    run("ingest", folder + "/none.csv", "-s", store)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
os.chdir("/")
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(run(*json.loads(line))), flush=True)
"""
Answer = tuple[int, str, str]


@pytest.fixture(name="as_nobody")
def _as_nobody(shared: Path) -> Iterator[Callable[..., Answer]]:
    """Run commands as a user who owns nothing, in a process that was root until it had loaded its libraries."""
    with subprocess.Popen(
        [sys.executable, "-c", NOBODY, str(shared / "log.parquet")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "ready\n"

        def run(*arguments: object) -> Answer:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
            child.stdin.flush()
            status, error, out = json.loads(child.stdout.readline())
            return status, error, out

        yield run
        child.stdin.close()


@pytest.fixture(name="shared")
def _shared(logs: list[Path]) -> Iterator[Path]:
    """A folder of root that everybody may look into, with a store and a log."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    folder = Path(tempfile.mkdtemp(prefix="concordant-"))
    folder.chmod(0o755)
    try:
        shutil.copy(logs[2], folder / "log.parquet")
        act(folder / "votes.store", logs[:2])
        yield folder
    finally:
        shutil.rmtree(folder)


def one_line(answer: Answer, why: str) -> None:
    status, error, _ = answer
    assert status == 2, error
    assert error.startswith("error: ") and error.count("\n") == 1, error
    assert why in error


def test_another_user(shared: Path, expected: list[Any], as_nobody: Callable[..., Answer]) -> None:
    store, parts, log = shared / "votes.store", shared / "votes.store.parts", shared / "log.parquet"
    before = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    assert as_nobody("store", "verify", store, "-q") == (0, "", "")
    assert as_nobody("rank", store, "-q")[2].count("\n") > 5
    for command in (["ingest", log, "-s", store], ["ingest", log, "-s", shared / "new.store"]):
        one_line(as_nobody(*command), "no permission to write")
    one_line(as_nobody("store", "compact", store), "no permission to write")
    one_line(as_nobody("store", "export", store, "-o", shared / "x.csv"), "")
    shared.chmod(0o777)  # the folder may be written, what lies in it belongs to root
    one_line(as_nobody("ingest", log, "-s", store), "no permission to write in the folder")
    parts.chmod(0o777)
    one_line(as_nobody("ingest", log, "-s", store), "no permission to write to the store")
    store.chmod(0o666)
    one_line(as_nobody("ingest", log, "-s", store), "its lock votes.store.lock cannot be opened: Permission denied")
    assert {path: path.read_bytes() for path in before} == before
    (shared / "votes.store.lock").chmod(0o666)
    assert as_nobody("ingest", log, "-s", store, "-q") == (0, "", "")
    assert Store(store).preferences() == expected[3]
    assert store.stat().st_mode & 0o777 == 0o666  # whoever could write still can
    for path, mode in ((next(parts.glob("segment-*")), 0o000), (parts, 0o000), (store, 0o000)):
        path.chmod(mode)
        for command in (["rank", store], ["store", "verify", store], ["ingest", log, "-s", store]):
            if command[0] != "ingest" or path.suffix != ".parquet":  # a log that is known is known by the catalogue
                one_line(as_nobody(*command), "ermission")
    store.chmod(0o644)
    shared.chmod(0o000)
    for command in (["rank", store], ["store", "info", store], ["ingest", log, "-s", store]):
        one_line(as_nobody(*command), "")


@pytest.mark.parametrize("step", range(0, 24, 3))
def test_a_quota_that_is_used_up(
    tmp_path: Path, logs: list[Path], expected: list[Any], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "votes.store"
    act(store, logs[:2])
    monkeypatch.setattr("store_faults.errno.EIO", errno.EDQUOT)
    told = pytest.raises(ConcordantError, match=r"\A[^\n]*quota[^\n]*\Z") if step < 9 else suppress(ConcordantError)
    with interposed(store, disk := Refusal(step)), told:
        act(store, [logs[2]])
    monkeypatch.undo()
    assert Store(store).preferences() in expected[2:4]
    act(store, [logs[2]])
    assert Store(store).preferences() == expected[3]
    assert disk.left < 0 or step > 9


# -- damage --------------------------------------------------------------------------------------------------------
def damage(draw: random.Random, folder: Path, other: Path) -> str:
    """Do one random harm to the files of a store; ``other`` is a folder with another one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "votes.store.lock")
    path = draw.choice(files)
    content, kind = path.read_bytes(), draw.randrange(9)
    strangers = sorted(one for one in other.rglob("*") if one.is_file())
    match kind:
        case 0:
            at = draw.randrange(len(content))
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :])
        case 1:
            path.write_bytes(content[: draw.randrange(len(content))])
        case 2:
            path.unlink()
        case 3:
            path.write_bytes(draw.choice(strangers).read_bytes())
        case 4:
            twin = draw.choice(files)
            path.write_bytes(twin.read_bytes())
            twin.write_bytes(content)
        case 5:
            at, size = draw.randrange(len(content)), draw.randrange(1, 4096)
            path.write_bytes(content[:at] + draw.randbytes(len(content[at : at + size])) + content[at + size :])
        case 6:
            stranger = draw.choice(strangers)
            shutil.copy(stranger, folder / "votes.store.parts" / stranger.name)
        case 7:
            shutil.rmtree(folder / "votes.store.parts")
            shutil.copytree(other / "votes.store.parts", folder / "votes.store.parts")
        case _:
            shutil.copy(other / "votes.store", folder / "votes.store")
    return f"{kind} {path.name}"


@pytest.fixture(name="no_macros")
def _no_macros() -> Iterator[None]:
    with kept_database():
        yield


@pytest.mark.usefixtures("no_macros")
def test_damaged_stores_tell_the_truth_or_are_refused(
    tmp_path: Path, logs: list[Path], expected: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    begun, other = tmp_path / "begun", tmp_path / "other"
    for folder in (begun, other):
        folder.mkdir()
    act(begun / "votes.store", logs[:2])
    act(other / "votes.store", [logs[3]])
    shutil.copy(begun / "votes.store", other / "older")
    act(begun / "votes.store", [logs[2], "compact"])
    shutil.copytree(begun, two := tmp_path / "two")
    act(two / "votes.store", [logs[3]])  # two segments
    truths = {begun: expected[3], two: expected[4]}
    fate = {"truth": 0, "refused": 0}
    for number in range(DAMAGES):
        draw = random.Random(number)
        source = draw.choice([begun, two])
        folder = tmp_path / str(number)
        shutil.copytree(source, folder)
        harms = [damage(draw, folder, draw.choice([other, two, begun])) for _ in range(draw.choice([1, 1, 2]))]
        store = folder / "votes.store"
        allowed = [truths[source], *([truths[begun], truths[two], read(logs[3])])]  # a whole store put in its place
        whole = any(harm[0] in "3478" for harm in harms)
        for work in ("rank", "verify", "export", "compact", "ingest"):
            said = attempt(work, store, logs[3], capsys)
            assert said in ("", "refused"), (number, harms, work, said)
            fate["refused" if said else "truth"] += 1
            if not said:
                try:
                    found = Store(store).preferences()
                except ConcordantError:
                    assert work == "ingest", (number, harms)  # it looks at sizes, readers at every byte
                    continue
                truth = truths[source]
                if work == "ingest" and found != truth:
                    truth = truth + read(logs[3])
                assert found == truth or (whole and found in allowed), (number, harms, work)
                if work == "export":
                    assert read(folder / "x.parquet") == found
        shutil.rmtree(folder)
    assert fate["refused"] > DAMAGES and fate["truth"] > DAMAGES, fate


def attempt(work: str, store: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command; return nothing where it worked, a word where it refused with one line, else what was wrong."""
    arguments = {
        "rank": ["rank", store, "-q", "--interval", "none"],
        "verify": ["store", "verify", store, "-q"],
        "export": ["store", "export", store, "-q", "-o", store.parent / "x.parquet"],
        "compact": ["store", "compact", store, "-q"],
        "ingest": ["ingest", log, "-s", store, "-q"],
    }[work]
    try:
        main([str(argument) for argument in arguments])
        status: Any = 0
    except SystemExit as stop:
        status = stop.code
    error = capsys.readouterr().err
    if not status:
        return ""
    right = status == 2 and error.startswith("error: ") and error.count("\n") == 1
    return "refused" if right else f"status {status}: {error}"


def test_files_of_two_stores_mixed(tmp_path: Path, logs: list[Path]) -> None:
    for name, ours in (("a", logs[:2]), ("b", logs[2:])):
        (tmp_path / name).mkdir()
        act(tmp_path / name / "votes.store", ours)
    shutil.copy(tmp_path / "b" / "votes.store", tmp_path / "a" / "votes.store")
    for work in (Store(tmp_path / "a" / "votes.store").preferences, Store(tmp_path / "a" / "votes.store").verify):
        refused(work, "another one shares the folder|missing", InputError)
