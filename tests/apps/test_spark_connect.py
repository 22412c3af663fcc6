"""Answers on a server of Spark Connect, which needs a process of its own, as one process has one kind of session.

Here runs a choice of the Spark tests; ``make test-connect`` runs all of them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from concordant.errors import InputError, UsageError
from spark_session import CONNECT, alone

needs_client = pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None, reason="the client of Spark Connect is not installed: pyspark[connect]"
)
pytestmark = [*alone, pytest.mark.skipif(CONNECT, reason="these tests are what runs the others on Spark Connect")]
CHOSEN = (
    r"test_spark_engine.py::test_files[odd [x]{y}*? name%20\xe9.parquet]",
    "test_spark_engine.py::test_files[v.csv]",
    "test_spark_engine.py::test_lists[v.jsonl-selections]",
    "test_spark_engine.py::test_hostile_column_names",
    "test_spark_engine.py::test_columns_that_differ_in_case",
    "test_spark_engine.py::test_addresses",
    "test_spark_engine.py::test_an_active_session_of_connect_is_used_as_it_is",
    "test_spark_values.py::test_times_are_labels_whatever_the_time_zone",
    "test_spark_engine.py::test_nothing_is_left_in_the_session",
    "test_spark_rank.py::test_the_ranking_is_that_of_duckdb[200]",
    "test_spark_rank.py::test_a_query_that_no_task_can_hold_among_others",
    "test_spark_rank.py::test_refused_rows_are_counted_as_duckdb_counts_them",
    "test_spark_rank.py::test_executors_write_a_folder",
    "test_spark_tasks.py::test_failures_are_one_line",
    "test_spark_fit.py::test_scores_have_the_bits_of_memory",
    "test_spark_fit.py::test_targets_are_of_one_aggregation",
    "test_spark_keys.py::test_keys_are_labels_as_in_memory",
    "test_spark_keys.py::test_labels_of_a_table_in_memory",
    "test_spark_keys.py::test_what_is_no_label_is_refused_as_in_memory",
)


@needs_client
def test_answers_are_those_of_memory_on_spark_connect() -> None:
    here = Path(__file__).parent
    tests = [str(here / one) for one in CHOSEN]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        capture_output=True, text=True, timeout=600, check=False, cwd=here.parent.parent,
        env={**os.environ, "CONCORDANT_SPARK": "connect"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(rf"\b{len(CHOSEN)} passed", done.stdout) and "skipped" not in done.stdout, done.stdout


def test_a_server_that_is_not_there() -> None:
    from concordant.io.engines.spark_session import _remote

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(InputError, match=rf"the Spark master sc://127\.0\.0\.1:{port}/;token=x does not answer"):
        _remote(f"sc://127.0.0.1:{port}/;token=x", None, None, 5)
    with pytest.raises(UsageError, match="settings of the server of Spark Connect; leave them out"):
        _remote("sc://host", "4GB", None, 5)
