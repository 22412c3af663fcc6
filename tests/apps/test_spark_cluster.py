"""Two executors in processes of their own, one of which is killed in the middle of the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from spark_session import alone

pytestmark = alone
PROGRAM = Path(__file__).parents[1] / "spark_cluster.py"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12,000 comparisons in 90 queries, as a folder of four files."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("cluster") / "log"
    folder.mkdir()
    for part in range(4):
        first = rng.integers(0, 12, 3000)
        rows = {"query": rng.integers(0, 90, 3000), "winner": first, "loser": (first + rng.integers(1, 12, 3000)) % 12}
        pyarrow.parquet.write_table(pa.table(rows), folder / f"{part}.parquet")
    return folder


def test_a_killed_executor_changes_nothing(log: Path, tmp_path: Path) -> None:
    """A process of its own, because one process has one Spark: it kills an executor once its tasks rank queries."""
    out = tmp_path / "ranking.parquet"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(log), str(out), str(tmp_path), "3", "0"],
        capture_output=True, text=True, timeout=900, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["executors"] == 2
    assert facts["killed"] in facts["lost"], facts
    assert facts["ranking tasks before"] > 0, "the executor was to die in the middle"
    assert facts["failed tasks"] > 0
    for each in facts["drawn kills"]:  # counting, writing, fitting: the same answer, or an error and no output
        assert each["became"] == "equal" or each["became"].startswith("error: "), each
    # whether a drawn kill comes before its work is done depends on the machine; the one above is certain
    ours = pyarrow.parquet.read_table(out)
    theirs = cc.rank(cc.read(log), interval="hessian").to_arrow()
    assert ours.drop(["score", "lower", "upper"]).to_pylist() == theirs.drop(["score", "lower", "upper"]).to_pylist()
    for name in ("score", "lower", "upper"):
        np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=0, atol=1e-10)
