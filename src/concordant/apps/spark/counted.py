"""What needs all judgments at once: they are counted where they lie, and what follows works on the counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from concordant.apps.report.report import Report
from concordant.apps.report.report import report as report_here
from concordant.apps.spark.frames import read
from concordant.auditing.audit import audit as audit_here
from concordant.auditing.findings import Audit
from concordant.io.engines.spark_session import without_pandas_warning


def audit(
    log: Any,
    *,
    reading: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **asked: Any,
) -> Audit:
    """Audit a log that lies on Spark: its counts come to the driver, and ``concordant.audit`` works on them.

    Parameters
    ----------
    log : anything that ``read`` takes.
    reading : options of ``read``, such as ``{"columns": {"cluster": "annotator"}}``.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **asked : the options of ``concordant.audit``.

    Errors: those of ``read`` and of ``concordant.audit``; InputError for more distinct judgments than Spark hands over
    (``spark.driver.maxResultSize``).
    """
    return audit_here(read(log, session=session, master=master, **(reading or {})), **asked)


def report(
    log: Any,
    *,
    features: Any = None,
    reading: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **asked: Any,
) -> Report:
    """Make the report of a log that lies on Spark: its counts come to the driver, and ``concordant.report`` reads them.

    Parameters
    ----------
    log : anything that ``read`` takes.
    features : as ``concordant.report`` takes them, or a DataFrame of Spark, whose rows all come to the driver.
    reading : options of ``read``.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **asked : the other options of ``concordant.report``.

    Errors: those of ``read`` and of ``concordant.report``; InputError as for ``audit``.
    """
    with without_pandas_warning():
        rows = features.toArrow() if hasattr(features, "toArrow") else features
    return report_here(read(log, session=session, master=master, **(reading or {})), features=rows, **asked)
