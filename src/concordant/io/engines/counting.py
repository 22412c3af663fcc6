"""One way to count a log, whichever engine does it; foreign errors come out as one clean line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeVar

import duckdb as library
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Idle, InputError, Setting, UsageError, counted, did_you_mean
from concordant.io.engines import duckdb, memory
from concordant.io.engines.foretold import rows_of
from concordant.io.log.formats import Log
from concordant.io.log.headers import sniffed, with_header
from concordant.io.log.rows import is_array, with_keys
from concordant.io.log.union import joined
from concordant.memory import enough, left, needs, said
from concordant.preferences.layouts import CLUSTERS
from concordant.preferences.lists import RawLists
from concordant.progress import know, stage

ENGINES = ("duckdb", "memory", "spark")
LARGE = 8 << 20
SMALL = 1 << 27
"""Bytes of files that are no work to speak of for Spark."""
WIDE = 1000
"""Columns of a CSV file that DuckDB reads: it has to be told of each, at a cost that grows faster than their number."""
TEXT = ("csv", "tsv", "json")
BYTES = 65
"""What a distinct row takes while it is made a judgment."""
T = TypeVar("T")


def foresee(found: Mapping[str, pa.Array], rows: int, clusters: Sequence[str]) -> None:
    """Say what reading so many distinct rows of comparisons will take: time to the progress, memory to its limit.

    ``found``: their columns by role.
    """
    know(distinct=rows)
    apart = f", kept apart by {' and '.join(clusters)}" if clusters else ""
    if clusters and (room := left()) is not None and BYTES * rows > room:
        merged = BYTES * rows_of({role: column for role, column in found.items() if role not in CLUSTERS}, rows)
        apart += f" (otherwise about {said(enough(merged))} would do)"
    needs(BYTES * rows, f"{counted(rows, 'distinct judgments')}{apart}")


@dataclass(frozen=True)
class Counter:
    """A log and the engine that counts it."""

    log: Log
    engine: str
    settings: duckdb.Settings
    session: Any = None
    """The Spark session, where the engine is spark."""
    votes: Any = None
    """What is known of the votes by their ids (``io.votes.Votes``), where a column holds such."""

    def count_rows(self, roles: Mapping[str, str]) -> tuple[dict[str, pa.Array], NDArray[Any]]:
        """Count equal rows: the distinct values of each role and the number of rows of each distinct tuple."""
        if self.session is not None:
            counted: tuple[dict[str, pa.Array], NDArray[Any]] = self._spark(
                lambda: _spark_engine().count_rows(self.log, roles, self.session),
                lambda: memory.count_rows(self._table(list(dict.fromkeys(roles.values()))), roles),
            )
            return counted
        found, rows = self._run(
            lambda: duckdb.count_rows(self.log, roles, self.settings),
            lambda: memory.count_rows(self._table(list(dict.fromkeys(roles.values()))), roles),
        )
        return {role: self._typed(array, roles[role]) for role, array in found.items()}, rows

    def count_lists(self, keys: Mapping[str, str], entries: Mapping[str, str]) -> RawLists:
        """Bring together the rows of each list and count equal lists."""
        owner = next((role for role in ("session", "judgment") if role in keys), None)
        columns = list(dict.fromkeys([*keys.values(), *entries.values()]))
        if self.session is not None:
            gathered: RawLists = self._spark(
                lambda: _spark_engine().count_lists(self.log, keys, entries, owner, self.session),
                lambda: memory.count_lists(self._table(columns), keys, entries),
            )
            return gathered
        lists = self._run(
            lambda: duckdb.count_lists(self.log, keys, entries, owner, self.settings),
            lambda: memory.count_lists(self._table(columns), keys, entries),
        )
        typed = {role: self._typed(array, keys[role]) for role, array in lists.keys.items()}
        return replace(lists, keys=typed)

    def _typed(self, array: Any, column: str) -> Any:
        """Return values with the time zone that their file says they have; DuckDB has none for those of 96 bits."""
        kind = dict(zip(self.log.columns, self.log.types, strict=False)).get(column)
        if kind is None or not pa.types.is_timestamp(kind) or not pa.types.is_timestamp(array.type):
            return array
        return array.cast(pa.timestamp(array.type.unit, kind.tz)) if kind.tz and not array.type.tz else array

    def placed_rows(self, columns: Sequence[str]) -> Iterator[tuple[int | str, tuple[Any, ...]]]:
        """Yield the number (in a folder the place) and the raw values of every row, in the order of the log."""
        if self.log.on_spark:
            groups: Iterator[tuple[str, tuple[Any, ...]]] = _spark_engine().row_groups(self.log, columns, self.session)
            return groups
        if self.log.format in ("relation", "database"):
            table = duckdb.table(self.log, columns, self.settings)
            return memory.table_rows(table, columns)
        return memory.placed_rows(self.log, columns)

    def _table(self, columns: Sequence[str]) -> pa.Table:
        if self.log.format in ("relation", "database"):
            return duckdb.table(self.log, columns, self.settings)
        return memory.arrow_table(self.log, columns)

    def _spark(self, with_spark: Callable[[], T], with_memory: Callable[[], T]) -> T:
        """Count with Spark; a text file on this machine that Spark cannot read is read plainly, as for DuckDB."""
        try:
            return with_spark()
        except _spark_engine().Unread:
            if self.log.path is None:
                raise
            return with_memory()

    def _run(self, with_duckdb: Callable[[], T], with_memory: Callable[[], T]) -> T:
        """Count with the engine; a text file that DuckDB refuses is read plainly, which answers or names the line."""
        try:
            if self.engine == "memory":
                with stage("counting rows in memory"):
                    return with_memory()
            try:
                return with_duckdb()
            except library.OutOfMemoryException:
                raise InputError(
                    f"{self.log.name}: counting needs more memory than the limit of "
                    f"{self.settings.memory_limit or 'DuckDB’s default'}; raise ",
                    Setting("memory_limit"),
                ) from None
            except library.Error:
                if self.log.format not in TEXT:
                    raise
                return with_memory()
        except (library.Error, pa.ArrowException) as error:
            raise InputError(f"{self.log.name}: cannot be read: {duckdb.message(error)}") from None


def with_columns(log: Log) -> Log:
    """Return the log with the names of its columns.

    The keys of a large JSON Lines file are gathered by DuckDB; where it cannot, the plain reader says why.
    """
    if log.parts:
        return joined(log, with_columns)
    if log.format == "database":
        return replace(log, columns=duckdb.database_columns(log))
    if log.format == "json" and log.path is not None and log.path.stat().st_size > LARGE:
        try:
            asked = replace(log, array=is_array(log))
            return with_keys(asked, duckdb.key_names(asked))
        except library.Error:
            pass
    return with_header(log)


def _spark_engine() -> Any:
    import_module("concordant.io.engines.spark_session")  # says what is missing where PySpark is
    from concordant.io.engines import spark

    return spark


def open_log(
    log: Log, engine: Any, memory_limit: str | None, threads: int | None, master: str | None = None
) -> Counter:
    """Return a log with the names of its columns and the engine that counts it.

    ``engine`` is one of ``ENGINES``, a Spark session, or None: DuckDB for files and relations, memory for tables,
    Spark for what only Spark opens. ``master`` is Spark's.
    """
    asked = engine if isinstance(engine, str | None) else "spark"
    if asked is not None and asked not in ENGINES:
        raise UsageError(f"unknown engine {asked!r}; {did_you_mean(asked, ENGINES)}")
    if not isinstance(engine, str | None) and not hasattr(engine, "createDataFrame"):
        raise UsageError(f"engine must be one of {', '.join(ENGINES)} or a SparkSession, not {type(engine).__name__}")
    if asked is None and log.on_spark:
        asked = "spark"
    if asked != "spark":
        if master is not None:
            raise UsageError(Setting("master", master), " belongs to the engine spark")
        if log.on_spark:
            raise UsageError(f"{log.name}: only the engine spark reads this; leave out ", Setting("engine", asked))
        return choose(with_columns(log), asked, memory_limit, threads)
    return _on_spark(log, engine, memory_limit, threads, master)


def _brief(log: Log) -> bool:
    """Whether the files of a log are so small that Spark's Java has little to do."""
    sizes = [path.stat().st_size for path in log.paths if path.is_file()]
    return bool(sizes) and sum(sizes) < SMALL


def _on_spark(log: Log, engine: Any, memory_limit: str | None, threads: int | None, master: str | None) -> Counter:
    if log.format == "stream":
        raise UsageError(f"{log.name}: Spark reads this as a table of its catalogue; name it spark::TABLE")
    settings = duckdb.Settings()
    if sniffed(log.parts[0] if log.parts else log).format == "run":
        raise UsageError(f"{log.name}: runs are read on one machine; leave out the engine spark")
    spark = _spark_engine()
    if isinstance(engine, str | None) and log.format == "frame":
        engine = log.table.sparkSession
    if isinstance(engine, str | None):
        session = import_module("concordant.io.engines.spark_session").session(
            master, memory_limit=memory_limit, threads=threads, brief=_brief(log)
        )
    elif master is not None or memory_limit is not None or threads is not None:
        raise UsageError("master, memory_limit and threads are settings of a new Spark session, and one is given")
    else:
        session = engine
    if log.on_spark:
        return Counter(spark.with_columns(log, session), "spark", settings, session)
    log = with_columns(log)
    if log.format in ("database", "relation"):
        table = duckdb.table(log, log.columns, settings)
        log = replace(log, format="table", table=table, path=None)
    if log.format in TEXT and _beyond_duckdb(log):
        return Counter(log, "memory", settings)
    return Counter(log, "spark", settings, session)


def choose(log: Log, engine: str | None, memory_limit: str | None, threads: int | None) -> Counter:
    """Return the counter for a log: DuckDB for files and relations, memory for tables, unless told otherwise."""
    if engine is not None and engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; {did_you_mean(engine, ENGINES)}")
    if engine == "memory" and (memory_limit is not None or threads is not None):
        raise UsageError(Setting("memory_limit"), " and ", Setting("threads"), " belong to the engine duckdb")
    settings = duckdb.Settings(memory_limit, threads)
    bounded = memory_limit is not None or threads is not None
    if engine is None:
        engine = "memory" if log.format in ("table", "run") and not bounded else "duckdb"
    if bounded and engine == "duckdb" and _beyond_duckdb(log):
        which = "memory_limit" if memory_limit is not None else "threads"
        raise Idle(which, f"DuckDB would misread the header of {log.name}, which is therefore read in memory")
    if engine == "duckdb" and (_beyond_duckdb(log) or (log.gzipped and not duckdb.SEES_TRUNCATED_GZIP)):
        engine = "memory"
    return Counter(log, engine, settings)


def _beyond_duckdb(log: Log) -> bool:
    """Whether DuckDB would misread the header: names that differ in case only, or (CSV) that hold a line end or stand
    below blank lines; or would take longer with the columns of a CSV file than with its rows."""
    if log.format in ("csv", "tsv"):
        return (
            log.header > 1 or len(log.columns) > WIDE or any("\n" in column or "\r" in column for column in log.columns)
        )
    lower = [column.lower() for column in log.columns]
    return len(set(lower)) < len(lower)
