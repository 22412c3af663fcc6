"""The queries of a log as tasks of Spark: every row goes to the bucket of its query, so no query is ever split.

The driver learns how many rows there are and whether one query is too large for a task; a task checks the rows of its
queries as every engine does and makes Preferences of them. Only what is made of these leaves the task.

Memory: Java holds no more than Spark's batches and a shuffle of packed blocks (4 to 30 bytes for a comparison), within
the heap of the executor. A Python worker holds a block of 2^20 rows while it packs; while it works, the packed rows of
its task and, at about 200 bytes each, the queries that it works on together: about ``TASK`` rows, or one query of at
most ``MOST``. Beyond ``BUCKETS`` tasks their rows grow instead of their number. ``spark.executor.pyspark.memory`` sets
a hard limit to the workers.

Tables that are no logs (features, scores, labels) as DataFrames: of files, folders, URIs, catalogues, sessions.

Folders that executors write into: whole, or not there.

What is refused of a log, from all tasks: how many rows for which reason, and the values that are to blame most.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql import types as sparks
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.checking import ROWS, Checks, Fault, Refused, of_unit
from concordant.apps.spark.labels_of_log import ITEMS, LABELS, alike, kinds_and_words, quoted, shares_of, with_texts
from concordant.apps.spark.partitioning import BUCKET, PACKED, bucket_by_query, put_together, some_queries, spread
from concordant.apps.spark.reading import Files
from concordant.apps.spark.telling import told
from concordant.errors import InputError, Setting, UsageError, counted
from concordant.io.engines import spark as engine
from concordant.io.engines.counting import open_log
from concordant.io.engines.spark import FAILURES, chain, is_broken_text
from concordant.io.engines.spark_session import parallelism
from concordant.io.engines.spark_session import session as engine_session
from concordant.io.engines.spark_sources import Unread, labelled_table
from concordant.io.engines.spark_sources import source as rows_of
from concordant.io.engines.spark_workers import check_workers
from concordant.io.forms import some as some_rows
from concordant.io.layouts import find_layout
from concordant.io.log.formats import Log, locate
from concordant.io.log.formats import located as several
from concordant.io.log.rows import SAMPLES
from concordant.io.log.tables import from_object
from concordant.io.log.union import named_columns
from concordant.io.noted import notes_of, read_note
from concordant.io.read import read as read_by
from concordant.preferences.layouts import CLUSTERS, KINDS
from concordant.preferences.pooling import check_orders
from concordant.preferences.preferences import Preferences
from concordant.preferences.values import Reason, Reject, say

REASON = ("says", "role", "hint", "unit")
FAULTS = pa.schema(
    [(name, pa.string()) for name in (*REASON, "value")] + [(name, pa.int64()) for name in ("number", "total", "turn")]
)


def as_rows(faults: Sequence[Fault], sizes: Mapping[str, int]) -> pa.Table:
    """Return what a task found as rows: one for each unit with its total, one for each value to blame."""
    rows: list[dict[str, Any]] = [{"unit": unit, "number": 0, "total": size, "turn": 0} for unit, size in sizes.items()]
    for each in faults:
        reason = dict(zip(REASON, (each.reason.says, each.reason.role, each.reason.hint, each.unit), strict=True))
        values = {"total": 0, "turn": each.turn}
        rows += [{**reason, "value": value, "number": number, **values} for value, number in each.values.items()]
    return pa.Table.from_pylist(rows, FAULTS)


def gathered(made: DataFrame) -> tuple[Reject, ...]:
    """Add up what all tasks found; of each reason the ``SAMPLES`` most frequent values reach the driver."""
    added = [*(fn.sum(name).alias(name) for name in ("number", "total")), fn.min("turn").alias("turn")]
    counts = made.groupBy(*REASON, "value").agg(*added)
    often = Window.partitionBy(*REASON).orderBy(fn.desc("number"), "value")
    sums = {"total": fn.sum("total").over(Window.partitionBy("unit"))}
    sums |= {"all": fn.sum("number").over(Window.partitionBy(*REASON)), "place": fn.row_number().over(often)}
    found = counts.withColumns(sums).where((fn.col("place") <= SAMPLES) & fn.col("says").isNotNull())
    samples: dict[tuple[str, ...], list[tuple[str, object]]] = {}
    numbers: dict[tuple[str, ...], tuple[int, int]] = {}
    turns: dict[tuple[str, ...], int] = {}
    for row in found.orderBy("place").toArrow().to_pylist():
        key = tuple([row[name] for name in REASON])
        numbers[key] = row["all"], row["total"]
        turns[key] = min(row["turn"], turns.get(key, row["turn"]))
        shown = samples.setdefault(key, [])
        if row["value"] is not None:
            shown.append((of_unit(row["number"], row["unit"]), json.loads(row["value"])))
    return tuple(
        Reject(Reason(*key[:3]), number, total, tuple(samples[key]), key[3])
        for key, (number, total) in sorted(numbers.items(), key=lambda pair: (turns[pair[0]], pair[0]))
    )


class OnOneMachine(UsageError):
    """A log is none that tasks read, though ``read`` does: its counts come to the driver."""


TASK = 1 << 21
"""Rows of a log that a task is given, on average."""
MOST = 1 << 22
"""Distinct judgments (rows, for lists) beyond which no task takes one query: it is divided among them by pairs of items
or by lists (``splitting``, ``learning_cutting``), or has a task of its own."""
MOST_ALONE = 1 << 24
"""Distinct judgments (rows, for lists) beyond which no task takes one query even by itself: some 4 GiB."""
BUCKETS = 1 << 14
"""Tasks at most: a sender cuts each of its blocks of 2^20 rows into as many pieces, each with a head of its own."""
READING = {"columns", "kind", "clicks", "unranked", "on_error", "cluster", "covariates", "home", "engine", "master"} | {
    "pool", "memory_limit", "threads",
}  # fmt: skip
"""Options of ``read`` that tasks heed, or that a session is made with."""
Task = Callable[[Preferences], pa.Table]
Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class JudgedQueries:
    """The judgments of a log on Spark, query by query.

    ``table`` runs a task over the preferences of some queries at a time, wherever these are, and returns what the
    tasks made as a DataFrame.
    """

    name: str
    frame: DataFrame
    """A column for each role."""
    checks: Checks
    session: SparkSession
    total: int = 0
    """Rows of the log."""
    buckets: int = 1
    large: tuple[Any, ...] = ()
    """Labels of the queries that no task can hold."""
    large_sizes: tuple[int, ...] = ()
    """Distinct judgments (rows, for lists) of each."""
    one: bool = False
    """Whether all rows are known to be of one query."""
    most: int = MOST
    notes: tuple[str, ...] = ()
    log: Log | None = None
    files: Files | None = None
    """What tasks read themselves, past ``frame``."""
    settled: bool = False
    """Whether it was looked at what rankings leave out (``unranked``)."""
    pool: bool | None = None
    """Whether all queries are one, as ``concordant.read`` takes it; settled by ``pooled``."""
    named: bool = False
    """Whether somebody said which column holds the queries."""
    integers: frozenset[str] = frozenset()
    """Roles of a JSON log whose labels are integers."""

    @property
    def cluster_columns(self) -> int:
        """By how many columns judgments depend on each other."""
        return len({*CLUSTERS} & {*self.frame.columns})

    @classmethod
    def of(
        cls, source: Any, session: Any = None, *, task: int = TASK, most: int = MOST, **reading: Any
    ) -> JudgedQueries:
        """Return the queries of a log: a file, a folder or an address that Spark reads, a table or a DataFrame.

        ``session`` is a Spark session (default: the active one, or one made for ``master``); ``reading`` is what
        ``read_log`` takes to find the columns and to read them; ``task`` is the number of rows of a task, ``most``
        the number of distinct judgments of a query (rows, for lists) that a task holds at most.

        Errors: InputError, UsageError.
        """
        return cls.opened(source, session, **reading).sized(task, most)

    @classmethod
    def opened(cls, source: Any, session: Any = None, **reading: Any) -> JudgedQueries:
        """Return the queries of a log before anything is counted; ``sized`` has to follow.

        Errors: InputError, UsageError.
        """
        log = located(source)
        for name in (name for name, value in reading.items() if name not in READING and value is not None):
            there = name in signature(read_by).parameters
            said = "is read on one machine, not by tasks of Spark; leave it out" if there else "is no option of reading"
            raise UsageError(f"{log.name}: ", Setting(name), f" {said}")
        if log.format == "preflib":
            raise OnOneMachine(f"{log.name}: a PrefLib file is not read by tasks of Spark; read it with another engine")
        asked = {word: reading.get(word) for word in ("memory_limit", "threads", "master")}
        counter = open_log(log, session or "spark", **asked)
        log = counter.log
        words = {word: reading[word] for word in ("kind", "cluster", "covariates", "home") if word in reading}
        given = reading.get("columns") or {}
        cluster = reading.get("cluster") or ()
        named = [*given.values(), *([cluster] if isinstance(cluster, str) else cluster), *reading.get("covariates", ())]
        layout = find_layout(named_columns(log, named), name=log.name, given=given, **words)
        clicks, on_error = reading.get("clicks", "all"), reading.get("on_error", "raise")
        check_orders(reading.get("unranked"), layout.kind, log.name)
        if clicks != "all" and layout.kind not in ("selections", "choices"):
            raise UsageError(
                f"{log.name}: clicks={clicks!r} is for selections and choices; this log holds {layout.kind}"
            )
        if layout.form not in KINDS:
            raise OnOneMachine(f"{log.name}: {layout.form} are read with another engine than spark")
        if "id" in layout.roles:
            raise OnOneMachine(f"{log.name}: votes are told apart by ids on one machine; leave out the engine spark")
        checks = Checks(layout, clicks, on_error, log.as_json)
        unsigned = frozenset(role for role, column in checks.roles.items() if engine.is_unsigned(log, column))
        checks = replace(checks, unsigned=unsigned, unranked=reading.get("unranked"))
        frame = with_texts(raw_frame(log, checks.roles, counter.session or engine_session()), log.name)
        for field in frame.schema:
            if isinstance(field.dataType, sparks.ArrayType | sparks.MapType | sparks.StructType):
                of, column = field.dataType.typeName(), checks.roles[field.name]
                raise InputError(f"{log.name}: the column {column!r} ({field.name}) holds values of the type {of}")
        told = notes_of(log, layout, given)
        files = Files.of(log, checks.roles)
        of_queries: dict[str, Any] = {"pool": reading.get("pool"), "named": "query" in given}
        return cls(log.name, frame, checks, frame.sparkSession, notes=told, log=log, files=files, **of_queries)

    @property
    def by_query(self) -> bool:
        """Whether the log has a column of queries; without one all judgments are of one query."""
        return "query" in self.frame.columns

    @property
    def kind(self) -> str:
        """Comparisons, selections, choices, orders or ratings."""
        return self.checks.layout.kind

    @property
    def compared(self) -> bool:
        """Whether the log holds comparisons, of which equal rows can be counted together."""
        return self.kind == "comparisons"

    @property
    def labels(self) -> tuple[pa.DataType, pa.DataType]:
        """The types of the labels of queries and of items: int64 or string."""
        roles = self.frame.columns
        item = next(role for role in ITEMS if role in roles)
        return self._label("query") if self.by_query else pa.string(), self._label(item)

    def table(
        self, task: Task, schema: pa.Schema, divided: Callable[[Any], pa.Table | None] | None = None
    ) -> DataFrame:
        """Return what ``task`` makes of the preferences of all queries, some at a time, in tables of ``schema``.

        Nothing runs before the frame is asked for its rows, but the work on queries that no task can hold among others:
        by ``divided``, which takes a label; one of which there is none or it returns None has a task of its own.
        """
        made = self._tasks(partial(_made, checks=self.checks, most=self.most, task=task, schema=schema), schema)
        for label in self.large:
            rows = None if divided is None else divided(label)
            if rows is None:
                work = partial(_alone, checks=self.checks, task=task, schema=schema)
                made = made.unionByName(self.alone(label).repartition(1).mapInArrow(work, from_arrow_schema(schema)))
            elif len(rows):  # of none Spark Connect makes no frame
                made = made.unionByName(self.session.createDataFrame(rows.select(schema.names).cast(schema)))
        return made

    def rejects(self) -> tuple[Reject, ...]:
        """Return what is refused in the whole log: how many rows (or lists) for which reason, and the values to blame
        that occur most often.
        """
        whole = replace(self, large=())
        with told(self.name):
            return gathered(whole._tasks(partial(_faults, checks=self.checks, most=self.most), FAULTS))

    def look_alikes(self, *whose: str) -> tuple[str, ...]:
        """Say which labels look alike, by a pass over the labels of the log, or of some: items, queries, clusters."""
        roles = self.frame.columns
        named = {"items": [role for role in ITEMS if role in roles]}
        named |= {what: [role] for what, role in (("queries", "query"), ("clusters", "cluster")) if role in roles}
        said: list[str] = []
        for what, columns in named.items():
            if (not whose or what in whose) and self._label(columns[0]) != pa.int64():
                with told(self.name):
                    said += alike(self.frame, columns, what, self.checks.as_json)
        return tuple(said)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what failed in a task into an error of the driver; refused rows are counted: clean logs never pay."""
        try:
            with told(self.name):
                yield
        except Refused:
            stopping = self.checks.stopping(self.rejects())
            raise InputError(say(self.name, stopping)) from None

    @property
    def sides(self) -> tuple[str, str]:
        """The roles of who was compared."""
        return ("left", "right") if self.checks.layout.sided else ("winner", "loser")

    # -- how the work is cut ---------------------------------------------------------------------------------------
    def sized(self, task: int = TASK, most: int = MOST, *, look: bool = True) -> JudgedQueries:
        """Count the rows of each query: how many tasks there are, and which queries no task can hold.

        Without ``look`` only all rows are counted, and a task that meets a query it cannot hold ends with TooLarge.
        """
        with told(self.name):
            check_workers(self.session)
            try:
                total, largest = self._sizes() if look else (self.files.total if self.files else self.frame.count(), 0)
            except FAILURES as error:
                return self._plainly(error).sized(task, most, look=look)
            if self.log is not None:
                some_rows(self.log, total)
            wanted = max(-(-total // task), parallelism(self.session))
            buckets = min(wanted, BUCKETS) if self.by_query else 1
            notes = (*(() if self.log is None else read_note(self.log, total)), *self.notes)
            sized = replace(self, total=total, log=None, notes=notes, buckets=buckets, most=most)
            sized = replace(sized, one=not self.by_query or 0 < total == largest)
            sized = sized if self.log is None else sized._told_by_all()
            large = sized._too_large() if largest > most else {}
        if not large:
            return sized
        whose = counted(len(large), "query") if self.by_query else "the log, one query,"
        note = f"{whose} with more than {most:,} {self.unit}: divided among tasks, or in a task of its own"
        labels = tuple(sorted(large))
        return replace(
            sized, large=labels, large_sizes=tuple([large[each] for each in labels]), notes=(*sized.notes, note)
        )

    @property
    def unit(self) -> str:
        """What the size of a query is counted in."""
        return "distinct judgments" if self.compared else "rows"

    def _plainly(self, error: Exception) -> JudgedQueries:
        """Return the queries of a text file that Spark cannot read, read on the driver, which may name the line."""
        if self.log is None or self.log.path is None or not is_broken_text(self.log, chain(error)):
            raise error
        return replace(self, frame=on_driver(self.log, self.checks.roles, self.session))

    def _sizes(self) -> tuple[int, int]:
        """Return the number of rows, and of rows of the largest query."""
        if not self.by_query:
            total = self.frame.count()
            return total, total
        counts = self.frame.groupBy("query").agg(fn.count(fn.lit(1)).alias(ROWS))
        facts = counts.agg(fn.sum(ROWS), fn.max(ROWS)).collect()[0]
        return int(facts[0] or 0), int(facts[1] or 0)

    def _too_large(self) -> dict[Any, int]:
        """Return the queries with more distinct judgments (rows, for lists) than a task may hold, and how many."""
        if not self.by_query:
            number = self.frame.distinct().count() if self.compared else self.total
            return {None: number} if number > self.most else {}
        often = self.frame.where("query IS NOT NULL").groupBy("query").count().where(fn.col("count") > self.most)
        if self.compared:
            asked = self.frame.join(fn.broadcast(often.select("query")), "query", "left_semi").distinct()
            often = asked.groupBy("query").count().where(fn.col("count") > self.most)
        return {row["query"]: row["count"] for row in often.collect()}

    def _told_by_all(self) -> JudgedQueries:
        """Look up what only all of the log tells of its labels and outcomes."""
        checks, notes = self.checks, self.notes
        integers, words = kinds_and_words(self.frame, checks, self.name)
        shares = shares_of(self.frame, checks)
        if shares is not None and shares.hold:
            notes = (*notes, shares.note(checks.layout, self.name))
        return replace(self, checks=replace(checks, elsewhere=words, shares=shares), integers=integers, notes=notes)

    def _label(self, role: str) -> pa.DataType:
        known = role in self.checks.unsigned or role in self.integers
        whole = known or isinstance(self.frame.schema[role].dataType, sparks.IntegralType)
        return pa.int64() if whole else pa.string()

    # -- tasks -----------------------------------------------------------------------------------------------------
    def _tasks(self, work: Work, schema: pa.Schema) -> DataFrame:
        roles = self.frame.columns
        frame = self.frame
        if self.large and self.by_query:
            frame = frame.where(fn.coalesce(~fn.col("query").isin(list(self.large)), fn.lit(True)))
        elif self.large:
            frame = frame.limit(0)
        packing, rows_packed = partial(spread, roles=roles, counting=self.compared), from_arrow_schema(PACKED)
        if self.files is not None and not self.large:
            packed = self.files.frame(self.session, self.buckets, packing, rows_packed)
        else:
            bucket = bucket_by_query(fn.col("query"), self.buckets, roles) if self.by_query else fn.lit(0)
            packed = frame.withColumn(BUCKET, bucket).mapInArrow(packing, rows_packed)
        return packed.repartitionById(self.buckets, BUCKET).mapInArrow(work, from_arrow_schema(schema))

    @property
    def all_large(self) -> bool:
        """Whether no query is one that a task can hold, as far as that is known."""
        return bool(self.large) and (self.one or sum(self.large_sizes) == self.total)

    def _read(self, label: Any) -> Any:
        """A label of a query as it is read."""
        return json.loads(label) if self.checks.as_json else int(label) if "query" in self.checks.unsigned else label

    def alone(self, label: Any) -> DataFrame:
        """Return the counted rows of one query, for a task of its own. Errors (UsageError): too many for any."""
        number = self.large_sizes[self.large.index(label)]
        if number > MOST_ALONE:
            whose = "the log" if label is None else f"query {self._read(label)!r}"
            raise UsageError(
                f"{self.name}: {whose} has {number:,} {self.unit}; on "
                f"Spark one query with more than {MOST_ALONE:,} is ranked where what is asked for adds up over "
                "judgments: Bradley–Terry's scores or, of lists, Plackett–Luce's (",
                Setting("structure", "bradley-terry" if self.compared else "plackett-luce"),
                ") where no intervals are asked for (",
                Setting("interval", "none"),
                ") or, but for a bootstrap without clusters, at most 16.8 million pairs of items were judged, of the "
                "sandwich 1,000 items; other scores from as many pairs, clicks or places. A linear scorer is fitted to "
                "structures by name whose scores are found so",
            )
        frame = self.frame if label is None else self.frame.where(fn.col("query") == fn.lit(label))
        each = frame.groupBy(*map(quoted, frame.columns))
        return each.agg(fn.count(fn.lit(1)).alias(ROWS)) if self.compared else frame


def _made(
    batches: Iterator[pa.RecordBatch], *, checks: Checks, most: int, task: Task, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """A task: from what the senders packed to the rows that it makes."""
    table = put_together(batches, most)
    if table is None:
        return
    for some in some_queries(table, TASK):
        prefs = checks.preferences(some)
        if len(prefs.queries):
            yield from task(prefs).select(schema.names).cast(schema).to_batches()


def _alone(
    batches: Iterator[pa.RecordBatch], *, checks: Checks, task: Task, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """A task that has but one query: from its rows to those that it makes."""
    held = [batch for batch in batches if len(batch)]
    if held and len((prefs := checks.preferences(pa.Table.from_batches(held))).queries):
        yield from task(prefs).select(schema.names).cast(schema).to_batches()


def _faults(batches: Iterator[pa.RecordBatch], *, checks: Checks, most: int) -> Iterator[pa.RecordBatch]:
    """A task of the second pass: how many rows are refused for which reason."""
    table = put_together(batches, most, stopping=False)
    if table is None:
        return
    yield from as_rows(*checks.faults(table)).to_batches()


def raw_frame(log: Log, roles: Mapping[str, str], session: SparkSession) -> DataFrame:
    """Return the raw rows of a log with a column for each role; what Spark cannot read is read on the driver."""
    columns = list(dict.fromkeys(roles.values()))
    try:
        with engine.told(log):
            found = rows_of(log, columns, session, _labels(roles))
    except Unread:
        if log.path is None:
            raise
        return on_driver(log, roles, session)
    return found.select(*[fn.col(f"c{columns.index(column)}").alias(role) for role, column in roles.items()])


def _labels(roles: Mapping[str, str]) -> frozenset[str]:
    """Columns of labels alone."""
    return frozenset({roles[role] for role in LABELS if role in roles} - {roles[role] for role in {*roles} - {*LABELS}})


def on_driver(log: Log, roles: Mapping[str, str], session: SparkSession) -> DataFrame:
    """Return what ``raw_frame`` does, read by the plain reader, which answers or names the line that it cannot read."""
    columns = list(dict.fromkeys(roles.values()))
    table = labelled_table(log, columns, _labels(roles))
    return raw_frame(replace(log, format="table", table=table, parts=(), inner={}), roles, session)


def read(log: Any, *, session: SparkSession | None = None, master: str | None = None, **reading: Any) -> Preferences:
    """Return the preferences of a log, counted where it lies: ``concordant.read`` with this session as its engine.

    ``reading`` is what ``concordant.read`` takes. Errors: InputError, UsageError.
    """
    return read_by(log, engine=session or "spark", master=master, **reading)


def located(source: Any) -> Log:
    """Return the log that a path, a table or a DataFrame is."""
    if isinstance(source, Log):
        return source
    if isinstance(source, list | tuple):
        return several(source, local=False)
    return locate(source, local=False) if isinstance(source, str | os.PathLike) else from_object(source)


READ = ("parquet", "csv", "tsv", "catalogue", "frame", "table", "arrow")
PLACE = ("file", "block", "row")
"""Columns by which rows sort as they stand: file, place in the file, row; in a DataFrame its own order."""


@dataclass(frozen=True, eq=False)
class Table:
    """A DataFrame with the columns c0, c1, …, and what these are called where it comes from."""

    frame: DataFrame
    columns: tuple[str, ...]
    name: str
    unsigned: frozenset[str] = frozenset()
    """Columns of integers of 64 bits without sign, which Spark has as decimals."""

    @classmethod
    def of(cls, source: Any, session: SparkSession) -> Table:
        """Return what a source holds; texts of CSV files stay texts, to be read as everywhere.

        ``source`` is a DataFrame, a file, folder or URI (.parquet .csv .tsv), ``spark::TABLE`` of the catalogue, or a
        table in memory. Errors: InputError; UsageError for other formats.
        """
        log = located(source)
        if log.format not in READ:
            raise UsageError(
                f"{log.name}: on Spark features, scores and labels are tables (.parquet, .csv, .tsv, spark::TABLE, "
                f"DataFrames), not {log.format}; write them as Parquet"
            )
        log = open_log(log, session, None, None).log
        with told(log.name):
            check_workers(session)
        roles = {f"c{place}": column for place, column in enumerate(log.columns)}
        return cls(raw_frame(log, roles, session), tuple(log.columns), log.name, engine.unsigned(log))

    def placed(self) -> Table:
        """Return the table with the columns ``PLACE``."""
        try:
            where = self.frame.metadataColumn("_metadata")
            frame = self.frame.withColumns({"file": where["file_path"], "block": where["file_block_start"]})
            frame.columns  # noqa: B018  a session of Spark Connect resolves no name before it is asked
        except PySparkException:  # no table of files
            frame = self.frame.withColumns({"file": fn.lit(""), "block": fn.lit(0).cast("bigint")})
        return replace(self, frame=frame.withColumn("row", fn.monotonically_increasing_id()))

    def column(self, name: str) -> Any:
        """Return a column by the name that it has in the source."""
        return fn.col(f"c{self.columns.index(name)}")

    def type_of(self, name: str) -> sparks.DataType:
        """Return the type of a column."""
        return self.frame.schema[f"c{self.columns.index(name)}"].dataType


@contextmanager
def whole_or_gone(folder: str) -> Iterator[str]:
    """Take a folder of this machine away again that was not there before what failed; Spark empties others itself.

    What is given is the folder as Spark has to be told of it: its JVM may have been started in another one than ours.
    """
    here = "://" not in folder
    new = here and not os.path.lexists(folder)
    try:
        yield os.path.abspath(folder) if here else folder
    except BaseException:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
