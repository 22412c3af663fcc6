"""What is said of all judgments of a log: they are counted where they lie, and what follows works on the counts.

The counts of a log of at most ``HERE`` rows come to the driver. Of a larger one tasks audit the queries that they hold.
Where all queries have to be known at once a task of its own has the counts, of at most ``MOST_ALONE`` distinct
judgments, and only what it finds leaves that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.report.report import Report
from concordant.apps.report.report import report as report_here
from concordant.apps.spark.audited import divided
from concordant.apps.spark.checking import ROWS, Checks
from concordant.apps.spark.frames import MOST_ALONE, TASK, JudgedQueries, OnOneMachine, located, read
from concordant.apps.spark.labels_of_log import quoted
from concordant.apps.spark.learning_held import PIECES, objects, pieces
from concordant.auditing.audit import audit as audit_here
from concordant.auditing.findings import Audit
from concordant.auditing.settings import AuditSettings
from concordant.errors import ConcordantError, UsageError
from concordant.io.engines.spark_session import without_pandas_warning
from concordant.io.store.catalogue import is_store
from concordant.preferences.lists import empty_rankings, said_of_empty
from concordant.preferences.pooling import settle_queries, settle_unranked
from concordant.preferences.preferences import Preferences

Found = TypeVar("Found")
HERE = TASK
"""Rows of a log whose counts come to the driver."""
BESIDE = ("features", "model", "scores", "annotators", "model_judges")
"""What a report is made of beside the log, which lies on the driver."""


def audit(
    log: Any,
    *,
    reading: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **asked: Any,
) -> Audit:
    """Audit a log that lies on Spark: it is counted there, and ``concordant.audit`` works on the counts.

    Queries of a log of more than 2.1 million rows are audited where they lie; a log that is one query, clicks and
    queries of one pair each have a task of their own. The findings come to the driver.

    Parameters
    ----------
    log : anything that ``read`` takes.
    reading : options of ``read``, such as ``{"columns": {"cluster": "annotator"}}``.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **asked : the options of ``concordant.audit``, but ``progress`` where tasks work.

    Errors: those of ``read`` and of ``concordant.audit``; UsageError for more than 16.8 million distinct judgments (of
    lists, rows) that have to be known at once.
    """
    settings = AuditSettings(**{name: value for name, value in asked.items() if name != "progress"})

    def each(judged: JudgedQueries) -> Audit | None:
        found = divided(judged, settings) if (reading or {}).get("pool") is not True else None
        return None if found is None else found[0]

    return _found(log, audit_here, asked, reading, session, master, each)


def report(
    log: Any,
    *,
    features: Any = None,
    reading: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **asked: Any,
) -> Report:
    """Make the report of a log that lies on Spark: it is counted there, and ``concordant.report`` reads the counts.

    Those of a log of more than 2.1 million rows have a task of their own, unless there is something beside the log,
    which is the driver's: ``features``, ``model``, ``scores``, ``annotators``, ``model_judges``.

    Parameters
    ----------
    log : anything that ``read`` takes.
    features : as ``concordant.report`` takes them, or a DataFrame of Spark, whose rows all come to the driver.
    reading : options of ``read``.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **asked : the other options of ``concordant.report``.

    Errors: those of ``read`` and of ``concordant.report``; UsageError as for ``audit``.
    """
    with without_pandas_warning():
        rows = features.toArrow() if hasattr(features, "toArrow") else features
    asked |= {"features": rows}
    if any(asked.get(name) is not None for name in BESIDE):
        return report_here(read(log, session=session, master=master, **(reading or {})), **asked)
    return _found(log, report_here, asked, reading, session, master)


def _found(
    log: Any,
    work: Callable[..., Found],
    asked: Mapping[str, Any],
    reading: Mapping[str, Any] | None,
    session: SparkSession | None,
    master: str | None,
    each: Callable[[JudgedQueries], Found | None] = lambda _: None,
) -> Found:
    """Return what is found in the counts of a log: by the driver, in ``each`` query where it lies, or by a task."""
    given = {"master": master, **(reading or {})}
    if not isinstance(log, str | os.PathLike | list | tuple):
        log = located(log)  # a stream is read once
    judged = of_many_rows(log, session, **given)
    if judged is None:
        return work(read(log, session=session, **given), **asked)
    if (parts := each(judged)) is not None:
        return parts
    there = {name: value for name, value in asked.items() if name != "progress"}
    return by_a_task(judged, partial(work, **there), given)


def of_many_rows(log: Any, session: SparkSession | None, **reading: Any) -> JudgedQueries | None:
    """Return the queries of a log of more than ``HERE`` rows; None of one whose counts the driver works on.

    Errors: those of ``read``.
    """
    if isinstance(log, str | os.PathLike) and is_store(Path(log)):
        return None
    options = {name: value for name, value in reading.items() if name != "pool" and value is not None}
    try:
        judged = JudgedQueries.opened(log, session, **options).sized(look=False)
    except OnOneMachine:
        return None
    return judged if judged.total > HERE else None


def by_a_task(judged: JudgedQueries, work: Callable[[Preferences], Found], reading: Mapping[str, Any]) -> Found:
    """Return what is found in all counts of a log by a task of its own. Errors: those of ``read`` and of the work."""
    frame = judged.frame
    if judged.compared:
        frame = frame.groupBy(*map(quoted, frame.columns)).agg(fn.count(fn.lit(1)).alias(ROWS))
    task = _Task.of(judged, reading, work)
    with judged.explained(), without_pandas_warning():
        found = frame.repartition(1).mapInArrow(task, from_arrow_schema(PIECES)).toArrow()
    made: Found | ConcordantError = next(one for _, one in objects(iter(found.to_batches())))
    if isinstance(made, ConcordantError):
        raise made
    return made


@dataclass(frozen=True)
class _Task:
    """The task: from all counted rows of a log to what is found in its preferences, read as ``read`` reads them."""

    name: str
    checks: Checks
    notes: tuple[str, ...]
    unranked: str | None
    pool: bool | None
    column: str | None
    """What holds the queries."""
    named: bool
    """Whether somebody said so."""
    work: Callable[[Preferences], Any]
    most: int

    @classmethod
    def of(cls, judged: JudgedQueries, reading: Mapping[str, Any], work: Callable[[Preferences], Any]) -> _Task:
        """Return the task of a log that is read with these options."""
        checks, named = replace(judged.checks, unranked=None), "query" in (reading.get("columns") or {})
        given, column = (reading.get("unranked"), reading.get("pool")), checks.layout.roles.get("query")
        return cls(judged.name, checks, judged.notes, *given, column, named, work, MOST_ALONE)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held, rows = list[pa.RecordBatch](), 0
        for batch in batches:
            held.append(batch)
            rows += len(batch)
            if rows > self.most:
                raise UsageError(
                    f"{self.name}: it has more than {self.most:,} distinct judgments (of lists, rows), which no task "
                    "holds; ask for some of its queries, or have the driver count all: concordant.spark.read(log)"
                )
        prefs = self.checks.preferences(pa.Table.from_batches(held)) if rows else Preferences.empty()
        try:
            empty = said_of_empty(empty_rankings(prefs.told), len(prefs), self.name)
            found = self.work(self._settled(replace(prefs, told=(*self.notes, *empty))))
        except ConcordantError as error:  # as an object it keeps which parameters it speaks of
            found = error
        yield from pieces(0, found)

    def _settled(self, prefs: Preferences) -> Preferences:
        prefs = settle_unranked(prefs, self.unranked, self.name)
        return settle_queries(prefs, self.pool, self.name, self.column, named=self.named)
