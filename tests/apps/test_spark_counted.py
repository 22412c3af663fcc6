"""What needs all judgments at once works on the counts that Spark makes, with the answers of memory."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from spark_session import spark_tests

pytestmark = spark_tests


def test_audit_and_report_work_on_the_counts(spark: Any) -> None:
    from concordant import spark as cs

    rng = np.random.default_rng(3)
    first = rng.integers(0, 6, 90)
    log = {"winner": first.tolist(), "loser": ((first + rng.integers(1, 6, 90)) % 6).tolist()}
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    asked: dict[str, Any] = {"surrogates": ["ranknet"], "replicates": 20}
    ours, plain = cs.audit(frame, **asked), cc.audit(cc.read(log), **asked)
    assert json.dumps(ours.to_dict(), default=str) == json.dumps(plain.to_dict(), default=str)
    items = {"item": list(range(6)), "x": [0.5, 3.0, 1.0, 2.0, -1.0, 0.0]}
    made = cs.report(frame, features=spark.createDataFrame(pa.table(items)), audit=False, title="t")
    assert made.html == cc.report(cc.read(log), features=items, audit=False, title="t").html


def test_more_rows_than_the_driver_takes_are_told_with_their_size() -> None:
    from pyspark.errors import PySparkException

    from concordant.io.engines.spark import told
    from concordant.io.log.tables import from_object

    said = "Total size of serialized results of 12 tasks (1088.0 MiB) is bigger than spark.driver.maxResultSize 1 GiB."
    with (
        pytest.raises(cc.InputError, match=r"take 1088.0 MiB, more than the driver is given at once"),
        told(from_object(pa.table({"winner": ["x"], "loser": ["y"]}))),
    ):
        raise PySparkException(f"Job aborted due to stage failure: {said}")
