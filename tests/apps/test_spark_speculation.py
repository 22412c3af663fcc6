"""Speculation: tasks that are tried twice, the first attempt stopped half way, change no answer and double no row."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.ranking.flags import FLAGS
from spark_session import alone

PROGRAM = Path(__file__).parents[1] / "spark_speculation.py"
QUERIES, ITEMS = 40, 12
BOUNDS = ("score", "lower", "upper")


def _hosts() -> bool:
    """Whether this machine answers by more than one address of its own."""
    try:
        socket.create_server(("127.0.0.3", 0)).close()
    except OSError:
        return False
    return Path("/proc").is_dir()


pytestmark = [
    *alone,
    pytest.mark.skipif(not _hosts(), reason="two hosts are 127.0.0.2 and 127.0.0.3, as on Linux"),
]


Twice = tuple[Path, dict[str, Any], tuple[cc.Ranking, AggregationRanker]]


def _left(folder: Path) -> list[str]:
    """Return the processes that were begun for a folder and are still there."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                if f"CONCORDANT_SPECULATION={folder}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found.append((place / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    """Return the folder of what was written on two hosts, one of them slow, what Spark did, and what memory gives.

    Memory goes first: it compiles the loops, which may take the quick host as long as the slow one waits.
    """
    from concordant.io.engines.spark_session import AS_CONNECT

    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("speculation")
    (folder / "log").mkdir()
    x, y = rng.normal(size=(2, QUERIES, ITEMS))
    for part in range(4):
        query, one = rng.integers(0, QUERIES, 500), rng.integers(0, ITEMS, 500)
        other = (one + rng.integers(1, ITEMS, 500)) % ITEMS
        won = rng.random(500) < 1 / (1 + np.exp(x[query, other] - x[query, one]))
        rows = {"query": query, "winner": np.where(won, one, other), "loser": np.where(won, other, one)}
        pyarrow.parquet.write_table(pa.table(rows), folder / "log" / f"{part}.parquet")
    query, item = np.repeat(np.arange(QUERIES), ITEMS), np.tile(np.arange(ITEMS), QUERIES)
    table = pa.table({"query": query, "item": item, "x": x.ravel(), "y": y.ravel()})
    pyarrow.parquet.write_table(table, folder / "features.parquet")
    log = cc.read(folder / "log")
    memory = cc.rank(log, interval="hessian"), AggregationRanker().fit(str(folder / "features.parquet"), log)
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder / "log"), str(folder / "features.parquet"), str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in AS_CONNECT}
        | {"CONCORDANT_SPECULATION": str(folder), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        said, errors = program.communicate(timeout=600)
        assert program.returncode == 0, errors[-3000:]
        deadline = time.monotonic() + 60  # a Python worker outlives what began it until it writes to it again
        while _left(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _left(folder) == []
    finally:
        with suppress(ProcessLookupError):  # master, workers and executors are of its group
            os.killpg(program.pid, signal.SIGKILL)
    return folder, json.loads(said.splitlines()[-1]), memory


def _same(ours: pa.Table, board: cc.Ranking) -> None:
    order = [("query", "ascending"), ("component", "ascending"), ("rank", "ascending"), ("item", "ascending")]
    theirs = board.to_arrow()
    ours = ours.select(theirs.column_names).cast(theirs.schema).sort_by(order)
    theirs = theirs.sort_by(order)
    assert ours.drop(list(BOUNDS)).to_pylist() == theirs.drop(list(BOUNDS)).to_pylist()
    for name in BOUNDS:
        np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=0, atol=1e-8)


def test_tasks_were_tried_twice_and_the_second_attempt_came_first(twice: Twice) -> None:
    """Without this the other tests would say nothing of speculation.

    Of the count, which comes first, tasks may take as long as the slow host waits, where the machine is busy.
    """
    assert [*twice[1]["of"]] == ["count", "rank", "write", "fit"]
    for work, facts in twice[1]["of"].items():
        assert facts["hosts"] == ["127.0.0.2", "127.0.0.3"], work
        if work != "count":
            assert facts["second came first"] > 0 and facts["ends"]["TaskKilled"] > 0, (work, facts)


def test_counts(twice: Twice) -> None:
    assert twice[1]["same counts"]


def test_a_ranking_with_intervals(twice: Twice) -> None:
    _same(pyarrow.parquet.read_table(twice[0] / "ranking.parquet"), twice[2][0])


def test_a_ranking_that_tasks_write(twice: Twice) -> None:
    """No row twice, no file half written; what was counted on the way is counted once."""
    folder, facts, (board, _) = twice
    _same(pyarrow.parquet.read_table(folder / "ranking"), board)
    assert facts["rows"] == len(board)
    written = [path.name for path in (folder / "ranking").iterdir() if path.suffix != ".crc"]
    assert {name.split("-")[0] for name in written} == {"_SUCCESS", "part"}, "what a stopped attempt wrote is gone"
    parts = [name.split("-")[1] for name in written if name != "_SUCCESS"]
    assert len(parts) == len({*parts}), "each task has one file"
    flags = board.to_arrow()["flag"].to_pylist()
    counted = {one.label: sum(one.label in (flag or "") for flag in flags) for one in FLAGS}
    assert sum(counted.values()) > 10
    for label, number in counted.items():
        said = [note for note in facts["notes"] if note.endswith(f" {label}")]
        assert said == ([f"{number} items {label}"] if number else []), label


def test_the_default_fit(twice: Twice) -> None:
    ours, theirs = cc.load_model(twice[0] / "fitted"), twice[2][1]
    assert theirs.coef_.any()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-8 * np.abs(theirs.coef_).max())
    assert ours.cv_.best == theirs.cv_.best
    np.testing.assert_allclose(ours.cv_["loss"], theirs.cv_["loss"], rtol=1e-10)
    for name in ("target", "reference", "pairs"):
        assert ours.status_.get(name) == theirs.status_.get(name)
