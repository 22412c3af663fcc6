"""Gzip files of which a byte has changed: refused, or read as the same, by every reader of every command."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import concordant as cc
from hostile import good_files, good_folder
from running import exit_status

LOGS = {
    "votes.csv": good_files()["votes.csv"] + b"a,d\nb,d\n" * 8,
    "votes.tsv": good_files()["votes.tsv"],
    "votes.jsonl": good_files()["votes.jsonl"],
    "votes.json": good_files()["votes.json"],
    "clicks.csv": good_files()["clicks.csv"],
    "x.qrels": good_files()["x.qrels"],
    "x.soc": good_files()["x.soc"].replace(b"# ALT", b"# NUMBER UNIQUE ORDERS: 2\n# ALT", 1),
    "train.svm": b"".join(good_files()["train.svm"].splitlines(keepends=True)[:12]),
}


def packed(data: bytes, level: int, members: int = 1) -> bytes:
    cuts = np.linspace(0, len(data), members + 1).astype(int)
    return b"".join(gzip.compress(data[a:b], level, mtime=0) for a, b in itertools.pairwise(cuts))


def flips(data: bytes, seed: int = 0) -> Iterator[bytes]:
    """Every byte changed once: one bit of it, or all."""
    random = Random(seed)
    for at, byte in enumerate(data):
        yield data[:at] + bytes([byte ^ (random.choice([1 << random.randrange(8), 255]))]) + data[at + 1 :]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, cc.Features):
        return bool(np.array_equal(one.X, other.X) and one.items == other.items)
    return bool(one == other)


def refused_or_same(read: Callable[[], Any], path: Path, good: bytes) -> int:
    """Return how many of the flips were refused."""
    path.write_bytes(good)
    expected, refused = read(), 0
    for number, data in enumerate(flips(good)):
        path.write_bytes(data)
        try:
            found = read()
        except cc.InputError:
            refused += 1
        else:
            assert same(found, expected), f"byte {number} of {len(good)}"
    return refused


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("name", LOGS)
def test_every_byte_of_a_log(name: str, level: int, tmp_path: Path) -> None:
    good = packed(LOGS[name], level)
    path = tmp_path / f"{name}.gz"
    refused = refused_or_same(lambda: cc.read(path), path, good)
    assert refused >= len(good) - 10  # the header's time, system and flags mean nothing for what is in it


@pytest.mark.parametrize("level", [0, 9])
def test_every_byte_of_a_folder(level: int, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(packed(LOGS["votes.csv"], level))
    good = packed(LOGS["votes.csv"][:53], level)
    assert refused_or_same(lambda: cc.read(folder), folder / "b.csv.gz", good) >= len(good) - 10


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl"])
def test_every_byte_of_several_members(name: str, level: int, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gz"
    good = packed(LOGS[name], level, members=3)
    assert refused_or_same(lambda: cc.read(path), path, good) >= len(good) - 30


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("name", ["features.csv", "train.svm"])
def test_every_byte_of_features(name: str, level: int, tmp_path: Path) -> None:
    data = good_files()[name][:400] if name == "train.svm" else good_files()[name]
    path = tmp_path / f"{name}.gz"
    good = packed(data[: data.rindex(b"\n") + 1], level)
    assert refused_or_same(lambda: cc.read_features(path), path, good) >= len(good) - 10


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_what_follows_the_last_member(engine: str, tmp_path: Path) -> None:
    """Zeros are padding, as gzip has it; anything else is refused, so is a member that ends too early."""
    path = tmp_path / "votes.csv.gz"
    one, two = packed(LOGS["votes.csv"], 9), packed(b"x,y\n", 9)
    path.write_bytes(one + two)
    both = cc.read(path, engine=engine)
    assert len(both) == 8 + 16 + 1
    for good in (one + two + bytes(100), one + packed(b"", 9) + two):
        path.write_bytes(good)
        assert cc.read(path, engine=engine) == both
    for bad in (one + two + b"x", one + b"garbage", one + two[:-1], one + two[:-8], one[:-4], one + b"\x1f\x8b"):
        path.write_bytes(bad)
        with pytest.raises(cc.InputError, match="gzip"):
            cc.read(path, engine=engine)


def test_a_checksum_alone(tmp_path: Path) -> None:
    """The rows are as they were, only the checksum or the length of one of many members is another."""
    path = tmp_path / "votes.csv.gz"
    first = packed(LOGS["votes.csv"], 6)
    for at in range(1, 9):
        broken = first[:-at] + bytes([first[-at] ^ 1]) + first[len(first) - at + 1 :]
        for data in (broken, broken + packed(b"x,y\n", 6), packed(LOGS["votes.csv"], 6) + broken):
            path.write_bytes(data)
            with pytest.raises(cc.InputError, match="gzip file is broken"):
                cc.read(path)


COMMANDS = {
    "rank": ["rank", "votes.csv.gz", "-o", "made.csv"],
    "rank on threads": ["rank", "votes.csv.gz", "--threads", "2", "-o", "made.csv"],
    "audit": ["audit", "votes.csv.gz", "--replicates", "0", "-o", "made.csv"],
    "report": ["report", "votes.csv.gz", "--no-audit", "-o", "made.html"],
    "fit": ["fit", "votes.csv.gz", "-f", "features.csv", "-m", "made", "--loss", "ranknet"],
    "fit features": ["fit", "votes.csv", "-f", "features.csv.gz", "-m", "made", "--loss", "ranknet"],
    "fit letor": ["fit", "train.svm.gz", "-m", "made", "--loss", "ranknet"],
    "score": ["score", "-m", "model", "-f", "features.csv.gz", "-o", "made.csv"],
    "evaluate": ["evaluate", "scores.csv.gz", "labels.csv"],
    "evaluate labels": ["evaluate", "scores.csv", "labels.csv.gz"],
    "export": ["export", "-m", "model", "--card", "made.md", "--log", "votes.csv.gz", "-f", "features.csv"],
    "ingest": ["ingest", "votes.csv.gz", "--store", "made.store"],
}


@pytest.mark.parametrize("level", [0, 9])
@pytest.mark.parametrize("case", COMMANDS)
def test_a_flip_in_every_command(case: str, level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of the contents and of the checksum (the headers are above): refused, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    for name, data in (good_files() | good_folder("model")).items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    name = next(word for word in COMMANDS[case] if word.endswith(".gz"))
    good = packed(good_files()[name[:-3]], level)
    random = Random(case)
    for at in [*random.sample(range(10, len(good) - 8), 3), *random.sample(range(len(good) - 8, len(good)), 1)]:
        Path(name).write_bytes(good[:at] + bytes([good[at] ^ (1 << random.randrange(8))]) + good[at + 1 :])
        before = sorted(tmp_path.rglob("*"))
        assert exit_status(*COMMANDS[case], "--quiet") == 2, at
        assert sorted(tmp_path.rglob("*")) == before
    Path(name).write_bytes(good)
    assert exit_status(*COMMANDS[case], "--quiet") == 0


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_a_byte_that_is_no_utf8_is_refused_in_any_column_wherever_members_meet(tmp_path, engine):
    """Found by drawing files: DuckDB does not look at a column that nobody asked for at the seam of two members."""
    rows = b"winner,loser,note\n" + b"a,b,x\n" * 3 + b"b,a,\xe9\n" + b"a,b,\n"
    log = tmp_path / "votes.csv.gz"
    for cut in range(1, len(rows), 3):
        log.write_bytes(gzip.compress(rows[:cut]) + gzip.compress(rows[cut:]))
        with pytest.raises(cc.InputError, match="not UTF-8"):
            cc.read(log, engine=engine)
