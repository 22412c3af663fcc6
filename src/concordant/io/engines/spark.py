"""The engine for a cluster: Spark counts a log where it lies, by the same SQL text as DuckDB (extra ``[spark]``)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from concordant.errors import InputError, Unavailable
from concordant.io.engines import sql
from concordant.io.engines.columns import narrow, whole
from concordant.io.engines.spark_session import without_pandas_warning
from concordant.io.engines.spark_sources import Unread, opened, source
from concordant.io.log.formats import Log
from concordant.preferences.lists import RawLists
from concordant.preferences.values import flat

FAILURES = (PySparkException, Py4JError, ConnectionError, EOFError, pa.ArrowInvalid)
"""What comes up where Spark, a task or the Java process fails; the last three where the process is gone."""

HOW = (
    "install concordant[spark] for the Python that executors run (PYSPARK_PYTHON), or ship an environment with "
    "spark.archives; see docs/spark.md"
)
OTHER_PYTHON = re.compile(r"Python in worker has different version:? \(?'?([\d.]+)")
NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
NO_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): .*?[Nn]o module named '?([\w.]+)")
NOT_INSTALLED = re.compile(r"\[PACKAGE_NOT_INSTALLED\] (\w+)")
"""What Spark says of workers that lack something."""
TOO_LARGE = re.compile(r"results of \d+ tasks \(([^)]+)\) is bigger than \S*spark\.driver\.maxResultSize")

LOG = "concordant\0log"
"""Stands for a frame in a statement, and in no name."""
BROKEN_TEXT = ("MALFORMED", "FAILED_READ_FILE", "TextParsingException", "errors.InputError")
"""What Spark says of a text file that it cannot read."""


def with_columns(log: Log, session: SparkSession) -> Log:
    """Return a log that only Spark can open with the names of its columns."""
    with told(log):
        return opened(log, session)


def rows_frame(log: Log, roles: Mapping[str, str], session: SparkSession) -> DataFrame:
    """Return the distinct values of each role, in columns called as the roles, and how often each occurs: ``rows``.

    Nothing is computed yet, but text files are looked at once. Of JSON Lines the values are JSON texts.

    Errors (InputError): a log that Spark cannot read; inside ``told`` also what comes up later, in tasks.
    """
    columns = list(dict.fromkeys(roles.values()))
    places = {role: f"c{columns.index(column)}" for role, column in roles.items()}
    with told(log):
        frame = source(log, columns, session)
        return _asked(frame, lambda name: sql.count_rows(name, places, sql.SPARK))


def lists_frame(
    log: Log, keys: Mapping[str, str], entries: Mapping[str, str], owner: str | None, session: SparkSession
) -> DataFrame:
    """Return the distinct lists: the keys, ``entries`` (an array of structs, sorted) and how often each occurs:
    ``lists``; of the key ``owner`` one value is kept to show.
    """
    columns = list(dict.fromkeys([*keys.values(), *entries.values()]))
    named, valued = ({role: f"c{columns.index(column)}" for role, column in part.items()} for part in (keys, entries))
    with told(log):
        frame = source(log, columns, session)
        return _asked(frame, lambda name: sql.count_lists(name, named, valued, owner, sql.SPARK))


def _asked(frame: DataFrame, statement: Any) -> DataFrame:
    """Run a statement on a frame, whatever names it holds."""
    text = statement(LOG).replace("{", "{{").replace("}", "}}").replace(LOG, "{log}")
    return frame.sparkSession.sql(text, log=frame)


def count_rows(
    log: Log, roles: Mapping[str, str], session: SparkSession
) -> tuple[dict[str, pa.Array], NDArray[np.integer]]:
    """Count equal rows of a log: the distinct values of each role and the number of rows of each distinct tuple."""
    frame = rows_frame(log, roles, session)
    with told(log):
        table = _collected(frame)
    unsigned = [role for role, column in roles.items() if is_unsigned(log, column)]
    found = {role: _gathered(table, place, role in unsigned) for place, role in enumerate(roles)}
    return found, _gathered(table, len(roles), False).to_numpy(zero_copy_only=False)


def row_groups(log: Log, columns: Sequence[str], session: SparkSession) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield distinct rows, each with the number of times it occurs in words; Spark knows of no order of rows."""
    found, rows = count_rows(log, {column: column for column in columns}, session)
    values = zip(*(column.to_pylist() for column in found.values()), strict=True)
    groups = sorted(zip(rows.tolist(), values, strict=True), key=lambda group: (-group[0], repr(group[1])))
    for number, row in groups:
        yield f"{number:,} {'row' if number == 1 else 'rows'}", row


def count_lists(
    log: Log, keys: Mapping[str, str], entries: Mapping[str, str], owner: str | None, session: SparkSession
) -> RawLists:
    """Bring together the rows of each list and count equal lists; of the key ``owner`` one value is kept to show."""
    frame = lists_frame(log, keys, entries, owner, session)
    with told(log):
        table = _collected(frame).combine_chunks()
    gathered = table["entries"].combine_chunks()
    if isinstance(gathered, pa.ChunkedArray):
        gathered = pa.concat_arrays(gathered.chunks) if gathered.num_chunks else gathered.cast(gathered.type)
    offsets = gathered.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    rows = gathered.flatten()
    return RawLists(
        {role: _signed(flat(table[role]), is_unsigned(log, column)) for role, column in keys.items()},
        {
            role: _signed(flat(rows.field(place)), is_unsigned(log, column))
            for place, (role, column) in enumerate(entries.items())
        },
        offsets - offsets[0],
        table["lists"].to_numpy(),
    )


def _collected(frame: DataFrame) -> pa.Table:
    with without_pandas_warning():
        return frame.toArrow()


def _gathered(table: pa.Table, place: int, unsigned: bool) -> Any:
    column = table.column(place)
    return whole([narrow(_signed(chunk, unsigned)) for chunk in column.chunks], column.type)


def unsigned(log: Log) -> frozenset[str]:
    """Return the columns that hold integers of 64 bits without sign, which Spark has as decimals."""
    types = log.table.schema.types if isinstance(log.table, pa.Table) else log.types
    return frozenset(column for column, kind in zip(log.columns, types, strict=False) if pa.types.is_uint64(kind))


def is_unsigned(log: Log, column: str) -> bool:
    """Whether a column is one of those."""
    return column in unsigned(log)


def _signed(array: Any, unsigned: bool) -> Any:
    return array.cast(pa.uint64()) if unsigned and pa.types.is_decimal(array.type) else array


# -- errors --------------------------------------------------------------------------------------------------------
@contextmanager
def told(log: Log) -> Iterator[None]:
    """Turn what Spark says of a log into one clear line.

    Errors: Unread for a text file that Spark cannot read (another reader may say more), else InputError.
    """
    try:
        yield
    except FAILURES as error:
        said = chain(error)
        if lack := lacking(said):
            raise Unavailable(f"{log.name}: Spark: {lack}") from None
        if "PARQUET_TYPE_ILLEGAL" in said and "NANOS" in said:
            raise InputError(
                f"{log.name}: holds times in nanoseconds, for which spark.sql.legacy.parquet.nanosAsLong has to be "
                "true in the session"
            ) from None
        ours = re.findall(r"concordant\.errors\.InputError: (.+)", said)
        if ours:
            raise Unread(f"{log.name}: {ours[-1].strip()}") from None
        if is_broken_text(log, said):
            raise Unread(f"{log.name}: cannot be read: {telling_line(said)}") from None
        if found := TOO_LARGE.search(said):
            raise InputError(
                f"{log.name}: its distinct rows take {found[1]}, more than the driver is given at once "
                "(spark.driver.maxResultSize); rank, fit, targets, score and evaluate send it no rows of the log"
            ) from None
        if "OutOfMemoryError" in said or "MEMORY" in said:
            raise InputError(f"{log.name}: Spark needs more memory: {telling_line(said)}; raise memory_limit") from None
        raise InputError(f"{log.name}: Spark cannot read it: {telling_line(said)}") from None


def is_broken_text(log: Log, said: str) -> bool:
    """Whether Spark says of a text file that it cannot read it."""
    return log.format in ("csv", "tsv", "json") and any(word in said for word in BROKEN_TEXT)


def chain(error: BaseException) -> str:
    """Return all that was said of an error, the cause of it last; the Java process may be gone."""
    said: list[str] = []
    try:
        if isinstance(error, ConnectionError | Py4JNetworkError):
            return f"the Java process of Spark is gone: {error}"
        if not isinstance(error, Py4JJavaError):
            return str(error)
        cause = error.java_exception
        while cause is not None and len(said) < 10:
            said.append(str(cause.toString()))
            cause = cause.getCause()
    except (Py4JError, ConnectionError):
        said.append("the Java process of Spark is gone")
    return "\n".join(said)


BROKEN = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)
"""What gRPC says of a call that failed."""


def telling_line(said: str) -> str:
    """Return the most telling line of what Spark said: the first with an error class, else the last.

    Of a broken connection to a server of Spark Connect these are its details.

    >>> telling_line('<_InactiveRpcError of RPC that ended:\\n\\tstatus = 14\\n\\tdetails = "Socket closed"\\n>')
    'the server of Spark Connect: Socket closed'
    """
    if "SQLSTATE" not in said and (found := BROKEN.search(said)):
        return f"the server of Spark Connect: {found[1][:240]}"
    said = said.split("JVM stacktrace:")[0]  # which a server of Spark Connect adds
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    chosen = next((line for line in reversed(lines) if "[" in line and "SQLSTATE" in line), lines[-1] if lines else "?")
    return re.sub(r"\s*SQLSTATE: \w+|^[\w.$]+(?:Exception|Error): |^\([\w.$]+\) ", "", chosen)[:240].rstrip(". ")


def lacking(said: str) -> str | None:
    """Return what the workers lack by what was said of a task that failed, in one sentence; None where that is not it.

    >>> lacking("ModuleNotFoundError: No module named 'pyarrow'")[:53]
    "the executors' Python has no package pyarrow: install"
    """
    if found := OTHER_PYTHON.search(said):
        ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return (
            f"the executors run Python {found[1]}, and this is Python {ours}: set PYSPARK_PYTHON to a Python {ours} "
            "that has concordant[spark]"
        )
    if found := NO_PROGRAM.search(said):
        return f"the executors cannot run {found[1]!r} as their Python: set PYSPARK_PYTHON to one that they have"
    if found := NO_MODULE.search(said) or NOT_INSTALLED.search(said):
        return f"the executors' Python has no package {found[1].split('.')[0].lower()}: {HOW}"
    return None
