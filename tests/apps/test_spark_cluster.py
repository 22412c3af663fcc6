"""Two executors in processes of their own, one of which is killed in the middle of the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from spark_session import alone

pytestmark = alone
PROGRAM = Path(__file__).parents[1] / "spark_cluster.py"
LACKING = """
import sys
from pathlib import Path
from running import exit_status
from spark_cluster import cluster

cluster(Path(sys.argv[1]), {"spark.executor.pyspark.memory": "600m"})
sys.exit(exit_status("rank", sys.argv[2], "--engine", "spark"))
"""


def own_environment() -> dict[str, str]:
    """The variables of a process with a Spark of its own: not what a session of Spark Connect has set in this one."""
    connected = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
    return {name: value for name, value in os.environ.items() if name not in connected} | {
        "SPARK_LOCAL_IP": "127.0.0.1"
    }


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
    environment = own_environment() | {"PYSPARK_PYTHON": sys.executable}
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


def test_what_executors_lack_is_told_before_the_work(log: Path, tmp_path: Path) -> None:
    """Executors whose Python has nothing, and too little memory: one sentence that names all of it, no traceback."""
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    here = os.pathsep.join([str(PROGRAM.parent), os.environ.get("PYTHONPATH", "")])
    environment = own_environment() | {"PYSPARK_PYTHON": str(bare), "PYTHONPATH": here}
    done = subprocess.run(
        [sys.executable, "-c", LACKING, str(tmp_path), str(log)],
        capture_output=True, text=True, timeout=900, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and done.stdout == "" and "Traceback" not in done.stderr, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]  # Java may have its say
    assert said.startswith("error: Spark: on the executors their Python (")
    assert f"their Python ({bare}) has no " in said
    assert "numpy, scipy, pyarrow, pandas, duckdb" in said and "PYSPARK_PYTHON" in said
    assert "a task has 600 MiB for Python, which takes 1,024 or more: raise spark.executor.pyspark.memory" in said


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.7 than that in driver: 3.11, PySpark",
            "the executors run Python 3.7, and this is Python ",
        ),
        (
            'java.io.IOException: Cannot run program "env/bin/python": error=2, No such file or directory',
            "the executors cannot run 'env/bin/python' as their Python: set PYSPARK_PYTHON",
        ),
        (
            "Traceback …\nModuleNotFoundError: No module named 'concordant.ranking'\n\n\tat org.apache.spark",
            "the executors' Python has no package concordant: install",
        ),
        (
            "PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it is not",
            "the executors' Python has no package pyarrow: install",
        ),
    ],
)
def test_what_workers_lack_by_what_spark_says(said: str, sentence: str) -> None:
    """Where nobody was asked (a local master) the task that fails says it."""
    from pyspark.errors import PySparkException

    from concordant.apps.spark.telling import told

    with pytest.raises(cc.Unavailable) as caught, told("log"):
        raise PySparkException(said)
    assert str(caught.value).startswith(f"log: Spark: {sentence}") and "\n" not in str(caught.value)
