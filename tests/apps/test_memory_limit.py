"""``--memory-limit`` is of the whole process: refused where it cannot be, said where it will not be held."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.version import Version

import concordant as cc
from concordant.errors import UsageError
from concordant.io.engines.duckdb import Settings, connected, memory_allowed
from concordant.memory import at_once, bounded, bytes_of, left, limit, needs, resident, said
from concordant.ranking import rank as ranking

NUMBER = 200_000


def shapes() -> dict[str, tuple[dict[str, np.ndarray], list[str]]]:
    draw = np.random.default_rng(0)
    winner = draw.integers(0, 60, NUMBER)
    votes = {"winner": winner, "loser": (winner + draw.integers(1, 60, NUMBER)) % 60}
    lists, ten = np.repeat(np.arange(20_000), 10), np.tile(np.arange(1, 11), 20_000)
    orders = {"judgment": lists, "item": draw.permuted(np.tile(np.arange(100), (20_000, 1)), axis=1)[:, :10].ravel()}
    return {
        "board": (votes, []),
        "queries": (votes | {"query": draw.integers(0, 5000, NUMBER)}, ["--interval", "none"]),
        "clusters": (votes | {"worker": draw.integers(0, 20_000, NUMBER)}, ["--cluster", "worker"]),
        "rankings": (orders | {"rank": ten}, ["--interval", "none"]),
        "ratings": (orders | {"rating": draw.integers(1, 6, len(lists))}, ["--interval", "none"]),
        "texts": ({name: column.astype(str) for name, column in votes.items()}, []),
    }


def run(folder: Path, *asked: str) -> tuple[int, list[str], dict]:
    done = subprocess.run(
        [sys.executable, "-m", "concordant", *asked, "--summary", str(folder / "run.json")],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    return done.returncode, done.stderr.splitlines(), json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize("shape", list(shapes()))
def test_what_it_is_said_to_need_is_what_it_takes(tmp_path: Path, shape: str) -> None:
    columns, more = shapes()[shape]
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    status, lines, record = run(tmp_path, "rank", "log.parquet", "-o", "r.csv", "--memory-limit", "2GB", *more)
    assert status == 0, lines
    assert 1 / 1.3 <= record["needed_memory_bytes"] / record["peak_memory_bytes"] <= 1.3
    assert not any("cannot be held" in line for line in lines)


def test_a_limit_that_is_kept_and_one_that_cannot_be(tmp_path: Path) -> None:
    columns, more = shapes()["clusters"]
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    asked = ["rank", "log.parquet", "-o", "r.csv", *more, "--memory-limit"]
    status, lines, _ = run(tmp_path, *asked, "50MB")
    assert status == 2 and len(lines) == 1
    assert lines[0].startswith("error: --memory-limit 50MB cannot be held: the program itself takes about ")
    least = lines[0].split("give it ")[1].removesuffix(" or more").replace(" ", "")
    status, lines, record = run(tmp_path, *asked, least)  # the figure is one that can be given
    assert status == 0, lines
    if record["peak_memory_bytes"] > bytes_of(least):
        assert any("needs about" in line and f"the limit of {least} cannot be held" in line for line in lines)
    status, _, record = run(tmp_path, *asked, "500MB")
    assert status == 0 and record["peak_memory_bytes"] <= 500e6


@pytest.mark.skipif(
    Version(duckdb.__version__) < Version("2"),
    reason="DuckDB 1.4 cannot group two million rows within the least limit",
)
@pytest.mark.parametrize("items", [60, 1000])
def test_what_would_do_without_clusters_does(tmp_path: Path, items: int) -> None:
    """The note names a limit; with that one, and no ``--cluster``, the judgments are read within it."""
    draw, number = np.random.default_rng(0), 2_000_000
    winner = draw.integers(0, items, number)
    columns = {"winner": winner, "loser": (winner + draw.integers(1, items, number)) % items}
    columns |= {"worker": draw.integers(0, 100_000, number)}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    asked = ["rank", "log.parquet", "-o", "r.csv"]
    refused = run(tmp_path, *asked, "--memory-limit", "50MB")[1][0]
    least = refused.split("give it ")[1].removesuffix(" or more").replace(" ", "")
    status, lines, _ = run(tmp_path, *asked, "--cluster", "worker", "--memory-limit", least)
    assert status == 0, lines
    (said_so,) = [line for line in lines if "would do" in line] or lines
    found = re.search(r"needs about (.+?): .+, kept apart by worker \(otherwise about (.+?) would do\)", said_so)
    assert found is not None, lines
    needed, otherwise = found.groups()
    asked += ["--interval", "none", "--memory-limit"]
    status, lines, record = run(tmp_path, *asked, otherwise.replace(" ", ""))
    assert status == 0 and record["peak_memory_bytes"] <= bytes_of(otherwise)
    assert not any("distinct judgments; the limit" in line for line in lines), "reading them says nothing"
    assert bytes_of(otherwise) < bytes_of(needed)
    assert (bytes_of(otherwise) > 1.05 * bytes_of(least)) == (items > 60), "it grows with what is left to be told apart"
    assert bytes_of(otherwise) <= 1.3 * max(record["peak_memory_bytes"], bytes_of(least))


def test_a_deployment_sets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.csv").write_text("winner,loser\na,b\nb,c\n")
    monkeypatch.setenv("CONCORDANT_MEMORY_LIMIT", "30MB")
    assert run(tmp_path, "rank", "v.csv")[1][0].startswith("error: --memory-limit 30MB cannot be held")
    monkeypatch.delenv("CONCORDANT_MEMORY_LIMIT")
    (tmp_path / "concordant.toml").write_text('memory-limit = "30MB"\n')
    assert run(tmp_path, "rank", "v.csv")[1][0].startswith("error: --memory-limit 30MB cannot be held")


def test_what_cannot_be_held_is_said_once_with_a_figure() -> None:
    told: list[str] = []
    with bounded("4GB", told.append):
        needs(1e6, "few")
        needs(20e9, "9,900,000 distinct judgments")
        needs(19e9, "less")
    assert told == [
        f"needs about {said(resident() + 20e9)}: 9,900,000 distinct judgments; the limit of 4GB cannot be held"
    ]


def test_the_engine_gets_a_part_of_what_is_left() -> None:
    assert limit() is None and left() is None
    with connected(Settings("300MB", 1)) as connection:  # a bound of the engine alone
        assert connection.execute("SELECT current_setting('memory_limit')").fetchone()[0] == "286.1 MiB"
    with bounded("3GB"):
        room = left()
        assert room is not None and room < 3e9
        assert 0.6 * room < memory_allowed(Settings("3GB")) < 0.7 * room


def test_pieces_of_work_fit_into_what_is_left() -> None:
    assert at_once(1_000_000, 1000) == 1_000_000
    with bounded(f"{(resident() >> 20) + 400}MiB"):
        assert at_once(1_000_000, 1000) == pytest.approx(200 * 1024**2 / 1000, rel=0.1)
        assert at_once(1_000_000, 1e9) == 125_000  # pieces are no smaller


def test_smaller_blocks_rank_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, _ = shapes()["queries"]
    some = {name: column[:20_000] for name, column in columns.items()}
    prefs = cc.read(some)
    whole = cc.rank(prefs).to_arrow()
    monkeypatch.setattr(ranking, "BLOCK", 3000)
    with bounded("64GB"):
        parts = cc.rank(prefs).to_arrow()
    for name in whole.column_names:
        if name in ("score", "lower", "upper"):
            ours, theirs = (np.array(one[name].to_pylist(), float) for one in (parts, whole))
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        else:
            assert parts[name].equals(whole[name]), name


@pytest.mark.parametrize("size", ["-1GB", "0", "x", "", "nan", "1e400", "4 pints", "GB"])
def test_what_is_no_size(size: str) -> None:
    with pytest.raises(UsageError, match="must be a size above 0"):
        bytes_of(size)
