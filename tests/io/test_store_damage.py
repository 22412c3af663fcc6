"""Full disks, limits on files, and files that were cut short or altered: one clear line, and the store unharmed."""

from __future__ import annotations

import gzip
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from concordant import ConcordantError, InputError, Preferences
from concordant.apps.commands import main
from concordant.io.ingest import Store
from concordant.io.store.catalogue import read_catalogue
from seeds import seed
from store_faults import act, kept_database, make_logs, sums

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses tmpfs and limits of Linux")
SIZE = 8 << 20
PAGE = 4096


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database():
        yield


@pytest.fixture(scope="module", name="logs")
def _logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_logs(tmp_path_factory.mktemp("logs"), 3)


@pytest.fixture(scope="module", name="expected")
def _expected(logs: list[Path]) -> Sequence[Preferences | None]:
    return sums(logs)


@pytest.fixture(scope="module", name="begun")
def _begun(logs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two logs, in a segment each."""
    folder = tmp_path_factory.mktemp("begun")
    act(folder / "votes.store", logs[:2])
    return folder


@pytest.fixture(name="store")
def _store(begun: Path, tmp_path: Path) -> Path:
    shutil.copytree(begun, tmp_path / "here")
    return tmp_path / "here" / "votes.store"


def one_error(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run the command, which fails with exit status 2, and return its one line."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert stop.value.code == 2
    return one_line(capsys.readouterr().err)


def one_line(error: str) -> str:
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


# -- full disks ----------------------------------------------------------------------------------------------------
@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk (tmpfs)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def only(disk: Path, left: int) -> Iterator[None]:
    """Fill a disk but for some bytes."""
    ballast = disk / "ballast"
    with open(ballast, "wb") as file:
        file.write(bytes(shutil.disk_usage(disk).free - left))
    try:
        yield
    finally:
        ballast.unlink()


def test_full_disk(
    small_disk: Path,
    tmp_path: Path,
    logs: list[Path],
    expected: Sequence[Preferences | None],
    begun: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = make_logs(tmp_path, 1, seed=7)[0]
    needed = sum(path.stat().st_size for path in begun.rglob("*") if path.is_file())
    for present in (0, 2):
        store = small_disk / str(present) / "votes.store"
        store.parent.mkdir()
        act(store, logs[:present])
        failed, left = 0, 0
        while True:
            try:
                with only(small_disk, left):
                    Store(store).ingest(logs[present])
                break
            except ConcordantError as error:
                said = str(error)
            failed += 1
            assert said.endswith("nothing was changed")
            assert "No space left" in said or "disk" in said
            assert store.exists() == (present > 0)
            assert len(list(store.parent.glob("votes.store.parts/*segment*"))) == present  # its own is gone again
            if present:
                assert not Store(store).verify().leftovers
                assert Store(store).preferences() == expected[present]
            left += 3 * PAGE
            assert left < 2 * needed + 32 * PAGE
        assert failed > 3
        Store(store).verify()
        assert Store(store).preferences() == expected[present + 1]
        with only(small_disk, 0):
            assert Store(store).preferences() == expected[present + 1]  # a full disk is read
            assert "nothing was changed" in one_error(capsys, "ingest", more, "--store", store)


def test_read_only_disk(
    small_disk: Path, logs: list[Path], expected: Sequence[Preferences | None], capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_disk / "votes.store"
    act(store, logs[:2])
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert Store(store).preferences() == expected[2]
    Store(store).verify()
    for command in (["ingest", logs[2], "--store", store], ["store", "compact", store]):
        assert "the disk is read-only" in one_error(capsys, *command)


@pytest.mark.parametrize("limit", [1000, 5000, 12_288, 20_000, 60_000])
def test_limit_on_the_size_of_files(store: Path, logs: list[Path], limit: int) -> None:
    before = Store(store).preferences()
    done = subprocess.run(
        [sys.executable, "-m", "concordant", "ingest", str(logs[2]), "--store", str(store), "--quiet"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "nothing was changed" in one_line(done.stderr)
    assert Store(store).preferences() == before
    Store(store).verify()
    Store(store).ingest(logs[2])
    assert Store(store).preferences() == sums(logs)[3]


# -- damaged input -------------------------------------------------------------------------------------------------
def test_input_cut_short(store: Path, logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = logs[2].read_bytes()
    packed = gzip.compress(b"winner,loser\n" + b"a,b\n" * 5000)
    before, revision = Store(store).preferences(), read_catalogue(store).facts.revision
    for name, content in (("log.parquet", whole), ("log.csv.gz", packed)):
        for size in (0, 1, 4, 30, len(content) // 2, len(content) - 9, len(content) - 1):
            (tmp_path / name).write_bytes(content[:size])
            assert name in one_error(capsys, "ingest", tmp_path / name, "--store", store)
    assert read_catalogue(store).facts.revision == revision
    assert Store(store).preferences() == before
    (tmp_path / "log.parquet").write_bytes(whole)
    Store(store).ingest(tmp_path / "log.parquet")
    assert Store(store).preferences() == sums(logs)[3]


# -- damaged stores ------------------------------------------------------------------------------------------------
def test_damaged_segments(store: Path, logs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(seed(1))
    segment = sorted((store.parent / f"{store.name}.parts").glob("*.parquet"))[1]
    content = segment.read_bytes()
    damages = [content[:size] for size in (0, 3, len(content) // 2, len(content) - 1)] + [content + b"\0"]
    for place in draw.sample(range(len(content)), 12):
        damages.append(content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :])
    for damaged in damages:
        segment.write_bytes(damaged)
        for work in (Store(store).preferences, Store(store).verify, Store(store).compact):
            with pytest.raises(InputError, match=rf"the segment votes.store.parts/{segment.name} was changed"):
                work()
    assert segment.name in one_error(capsys, "rank", store)
    assert segment.name in one_error(capsys, "store", "verify", store)
    segment.unlink()
    here = Store(store)
    for work in (here.preferences, here.verify, here.compact, lambda: here.ingest(logs[2])):
        with pytest.raises(InputError, match=rf"{segment.name} is missing"):
            work()
    segment.write_bytes(content)
    here.verify()
    parts, away = segment.parent, store.parent / "away"
    parts.rename(away)
    for work in (here.preferences, here.verify, here.compact, lambda: here.ingest(logs[2])):
        with pytest.raises(InputError, match=r"its folder votes.store.parts is missing"):
            work()
    away.rename(parts)
    here.ingest(logs[2])


def test_damaged_catalogues(store: Path, logs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(seed(2))
    before = Store(store).preferences()
    content = store.read_bytes()
    damages = [content[:size] for size in (*range(0, 20, 4), *range(PAGE, len(content), len(content) // 12))]
    for place in (*range(0, 3 * PAGE, 769), *(draw.randrange(len(content)) for _ in range(30))):
        damages.append(content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :])
    refused = 0
    for damaged in damages:
        store.write_bytes(damaged)
        try:
            assert Store(store).preferences() == before  # where nothing is written, a flipped bit does no harm
        except InputError as error:
            refused += 1
            said = str(error)
            assert re.fullmatch(".*votes.store.*", said)
            with pytest.raises(ConcordantError):
                Store(store).ingest(logs[2])
            assert store.read_bytes() == damaged
    assert refused > 20
    store.write_bytes(content[: len(content) // 2])
    one_error(capsys, "rank", store)
    store.write_bytes(content)
    assert Store(store).preferences() == before
    Store(store).ingest(logs[2])
