"""What Spark reads a log from: files, folders and addresses, tables of its catalogue, DataFrames."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col, collate, expr
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from concordant.errors import InputError, few, twice
from concordant.io.engines import sql
from concordant.io.engines.memory import arrow_table
from concordant.io.engines.spark_session import is_connect, without_pandas_warning
from concordant.io.log.formats import Log
from concordant.io.log.rows import BLANK, json_object, json_row
from concordant.io.log.union import Shape, shapes
from concordant.preferences.messages import labelled_json
from concordant.preferences.values import is_text

SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # 01 in the name of a folder stays 01
    "spark.sql.ansi.enabled": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # else a column of nanoseconds hides all other columns
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # else a row with too many fields is not seen
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
}
TEXT = "a line is not UTF-8: save the file as UTF-8"


class Unread(InputError):
    """A text that Spark would read otherwise than it is meant, or cannot read."""


def own(session: SparkSession) -> SparkSession:
    """Return a session on the same cluster with settings of its own; those of the given one stay as they are.

    Of Spark Connect it is the session itself, as frames of two sessions know nothing of each other there; what its
    settings would do to a file is refused.
    """
    if is_connect(session):
        return session
    with without_pandas_warning():
        ours = session.newSession()
    for name, value in session.conf.getAll.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            ours.conf.set(name, value)
    for name, value in SETTINGS.items():
        ours.conf.set(name, value)
    return ours


# -- columns -------------------------------------------------------------------------------------------------------
def opened(log: Log, session: SparkSession) -> Log:
    """Return a log that only Spark can open (an address, a table of the catalogue, a DataFrame) with its columns."""
    if log.format == "catalogue":
        return _framed(log, _catalogue_table(log, session))
    if log.format == "frame":
        return _framed(log, log.table)
    if log.format == "parquet":
        reader = _plainly(own(session)).option("mergeSchema", "true")
        return _framed(log, reader.parquet(log.table))
    if log.format == "json":
        return replace(log, columns=_keys(log, session))
    return replace(log, columns=_header(log, session))


def _framed(log: Log, frame: DataFrame) -> Log:
    if again := twice(frame.columns):
        raise InputError(f"{log.name}: the column {again[0]!r} is there more than once")
    inner = {name: way for name, way in _ways(frame.schema) if name not in frame.columns}
    return replace(log, format="frame", table=frame, columns=(*frame.columns, *inner), inner=inner)


def _ways(fields: Iterable[StructField], way: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the columns inside structs: their names with dots between, and the way to each."""
    for field in fields:
        here = (*way, field.name)
        if way:
            yield ".".join(here), here
        if isinstance(field.dataType, StructType):
            yield from _ways(field.dataType, here)


def _catalogue_table(log: Log, session: SparkSession) -> DataFrame:
    """Return a table by its whole name or by its names parted by dots, whatever characters they hold."""
    names = [sql.identifier(log.table, sql.SPARK)]
    if "." in log.table:
        names.append(".".join(sql.identifier(part, sql.SPARK) for part in log.table.split(".")))
    if "`" in log.table:
        names.append(log.table)
    for name in names:
        if all(name.split(".")) and session.catalog.tableExists(name):
            return session.table(name)
    known = ", ".join(sorted(table.name for table in session.catalog.listTables())) or "none"
    raise InputError(f"no table {log.table!r} in Spark's catalogue; tables in the current database: {known}")


def _header(log: Log, session: SparkSession) -> tuple[str, ...]:
    first = _lines(log, session).first()
    if first is None:
        raise InputError(f"{log.name}: the file is empty")
    columns = _fields(first["value"], log)
    if again := twice(columns):
        raise InputError(f"{log.name}: the header names {again[0]!r} more than once")
    return columns


def _fields(line: str, log: Log) -> tuple[str, ...]:
    return tuple(next(csv.reader([line.removeprefix("\ufeff").rstrip("\r")], delimiter=log.delimiter), []))


def _keys(log: Log, session: SparkSession) -> tuple[str, ...]:
    def keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[str, None] = {}
        for line in _texts(batches):
            found.update(dict.fromkeys(json_object(line, "a line") or ()))
        yield pa.record_batch({"key": pa.array(list(found), pa.string())})

    named = _in_python(_lines(log, session), keys, ["key"])
    return tuple(sorted(row["key"] for row in named.distinct().collect()))


# -- rows ----------------------------------------------------------------------------------------------------------
def source(log: Log, columns: Sequence[str], session: SparkSession, labels: Collection[str] = ()) -> DataFrame:
    """Return the chosen columns of a log, called c0, c1, … in their order; of text files they are texts.

    No name of the log reaches Spark's SQL. Of JSON, conversations in the columns ``labels`` become their labels.

    Errors: Unread for a text file that Spark would read otherwise than it is meant; InputError for a column that it
    would find empty.
    """
    lost = [column for column in columns if "${" in column]
    if lost and log.format in ("parquet", "frame"):  # taken for a setting of Hadoop
        raise InputError(f"{log.name}: Spark finds columns of Parquet empty whose names hold '${{'; rename {few(lost)}")
    files = log.format in ("csv", "tsv", "parquet") or (log.format == "json" and not _arrays(log))
    if files and log.path is not None:
        parts = [_shaped(shape, columns, session, labels) for shape in shapes(log, columns, exact=True)]
        return reduce(DataFrame.union, parts)
    if log.format in ("csv", "tsv"):
        return _chosen(_delimited(log, session), [log.columns.index(column) for column in columns])
    if files and log.format == "json":
        return _json(log, columns, session, labels)
    if log.format == "frame":
        return _chosen(log.table, columns, log.inner)
    ours = own(session)
    with without_pandas_warning():
        return _chosen(_of_table(labelled_table(log, columns, labels), ours), columns)


def labelled_table(log: Log, columns: Sequence[str], labels: Collection[str]) -> pa.Table:
    """Return the chosen columns of a log in memory; of JSON, conversations in ``labels`` become their labels."""
    table = arrow_table(log, columns)
    for column in {*columns} & {*labels} if log.as_json else ():
        named = pa.array([labelled_json(text) for text in table[column].to_pylist()], pa.large_string())
        table = table.set_column(table.column_names.index(column), column, named)
    return table


def _arrays(log: Log) -> bool:
    return any(part.array for part in log.parts or (log,))


def _shaped(shape: Shape, columns: Sequence[str], session: SparkSession, labels: Collection[str]) -> DataFrame:
    """Return columns of files that lack some of them, have some inside others, or by the names of their folders."""
    log = shape.log
    of_folder, mine = [column for column in columns if shape.of_folder(column)], shape.own(columns)
    if log.format == "json":
        frame = _json(log, mine, session, labels, beside=bool(of_folder))
    elif log.format == "parquet":
        frame = _parquet(shape, mine, session, beside=bool(of_folder))
    else:
        frame = _delimited(log, session, beside=bool(of_folder))
        kept = [col(f"c{log.columns.index(column)}") for column in mine]
        frame = frame.select(*kept, *([FILE] if of_folder else []))
        frame = frame.toDF(*[f"c{place}" for place in range(len(mine))], *([FILE] if of_folder else []))
    if of_folder:
        with without_pandas_warning():
            said = _of_table(shape.values(of_folder), frame.sparkSession)
        frame = frame.join(broadcast(said), expr(f"{HERE.format(FILE)} = path"), "left")
    found = []
    for place, column in enumerate(columns):
        kind = _type_name(shape.target(column))
        if column in of_folder:
            value = f"k{of_folder.index(column)}"
        elif column in mine:
            value = f"c{mine.index(column)}"
        else:
            value = f"CAST(NULL AS {kind})" if kind else "NULL"
        if column in mine and kind and shape.cast(column) is not None:
            value = f"CAST({value} AS {kind})"
        found.append(f"{value} AS d{place}")
    return frame.selectExpr(*found).toDF(*[f"c{place}" for place in range(len(columns))])


FILE = "concordant_file"
"""Column that says which file a row is of."""
HERE = "regexp_replace(url_decode(replace({}, '+', '%2B')), '^file:/+', '/')"
"""The path of a file, of the address that Spark has for it."""


def _parquet(shape: Shape, columns: Sequence[str], session: SparkSession, *, beside: bool) -> DataFrame:
    """Return columns of Parquet files as c0, c1, …, and the address of the file of each row."""
    log = shape.log
    _refuse_mixed_case(log, session)
    frame = _reader(log, session).parquet(*_paths(log, session))
    kinds = dict(zip(log.columns, log.types, strict=False))
    more = [frame.metadataColumn("_metadata")["file_path"].alias(FILE)] if beside else []
    chosen = _chosen(frame, columns, log.inner, more)
    names = []
    for place, column in enumerate(columns):
        kind = kinds[column]
        nanos = pa.types.is_timestamp(kind) and kind.unit == "ns"  # Spark has these as integers
        micros = f"c{place} div 1000"
        clock = f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"  # in no session's time zone
        names.append(f"{(f'timestamp_micros({micros})' if kind.tz else clock) if nanos else f'c{place}'} AS c{place}")
    return chosen.selectExpr(*names, *([FILE] if beside else []))


def _type_name(kind: pa.DataType | None) -> str:
    """Return how Spark writes a type that values of files become; nothing of others."""
    if kind is None or is_text(kind):
        return "STRING"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return {"int64": "BIGINT", "double": "DOUBLE", "date32[day]": "DATE"}.get(str(kind), "")


def _chosen(
    frame: DataFrame,
    columns: Sequence[str] | Sequence[int],
    inner: Mapping[str, tuple[str, ...]] | None = None,
    more: Sequence[Any] = (),
) -> DataFrame:
    """Return columns by their names or places, as c0, c1, …; texts compared by their bytes, whatever their collation.

    ``inner``: the ways to those that lie in others; ``more``: columns of the frame to keep beside them.
    """
    ways = [("",) if isinstance(one, int) else (inner or {}).get(one, (one,)) for one in columns]
    places = [
        one if isinstance(one, int) else frame.columns.index(way[0]) for one, way in zip(columns, ways, strict=True)
    ]
    numbered = frame.select("*", *more).toDF(
        *[f"c{place}" for place in range(len(frame.columns))], *([FILE] if more else [])
    )
    kept = []
    for place, way in zip(places, ways, strict=True):
        kind, value = numbered.schema[place].dataType, col(f"c{place}")
        for key in way[1:]:
            kind, value = kind[key].dataType, value.getField(key)
        collated = isinstance(kind, StringType) and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
        kept.append(collate(value, "UTF8_BINARY") if collated else value)
    chosen = numbered.select(*kept, *([FILE] if more else []))
    return chosen.toDF(*[f"c{place}" for place in range(len(kept))], *([FILE] if more else []))


def _of_table(table: pa.Table, session: SparkSession) -> DataFrame:
    """Return a table as a DataFrame; what a clock says without a time zone is of none, whatever the session has."""
    table = _plain(table)
    return session.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _plain(table: pa.Table) -> pa.Table:
    """Return a table of types that Spark takes: no dictionaries, no unsigned integers."""
    for place, kind in enumerate(table.schema.types):
        while pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_unsigned_integer(kind):
            kind = pa.decimal128(20, 0) if kind == pa.uint64() else pa.int64()
        if kind != table.schema.types[place]:
            table = table.set_column(place, table.column_names[place], table[place].cast(kind))
    return table.combine_chunks()


def _paths(log: Log, session: SparkSession) -> list[str]:
    """Return the addresses of the files of a log; a server of Spark Connect takes them for patterns."""
    if log.path is None:
        return [str(log.table)]
    for path in log.paths:
        if path.name.startswith(("_", ".")) or ":" in str(path.absolute()):
            raise InputError(
                f"{log.name}: Spark reads no file whose name begins with '_' or '.', or whose path holds ':': {path}"
            )
    places = [str(PurePosixPath(path.absolute())) for path in log.paths]
    if is_connect(session):
        places = [re.sub(r"([][{}*?\\])", r"\\\1", place) for place in places]
    return [f"file:{place}" for place in places]


def _plainly(session: SparkSession) -> Any:
    """Return a reader that passes over no file."""
    return session.read.options(ignoreCorruptFiles=False, ignoreMissingFiles=False)


def _refuse_mixed_case(log: Log, session: SparkSession) -> None:
    """Refuse a Parquet file that a session of Spark Connect would refuse with other words."""
    if not is_connect(session) or len({column.lower() for column in log.columns}) == len(log.columns):
        return
    if str(session.conf.get("spark.sql.caseSensitive")).lower() != "true":
        raise InputError(
            f"{log.name}: there are columns whose names differ in case only; set spark.sql.caseSensitive to true in "
            "the session of Spark Connect"
        )


def _reader(log: Log, session: SparkSession) -> Any:
    """Return a reader that takes paths as they are: no patterns, and no columns from the names of folders."""
    reader = _plainly(own(session))
    if log.path is None:
        return reader
    return reader.option("__globPaths__", "false").option("recursiveFileLookup", "true")


def _lines(log: Log, session: SparkSession) -> DataFrame:
    return _reader(log, session).option("lineSep", "\n").text(_paths(log, session))


def _delimited(log: Log, session: SparkSession, *, beside: bool = False) -> DataFrame:
    """Return the rows of a CSV or TSV file, after a look at its lines that tells how it can be read.

    ``beside``: and the address of the file of each row.

    Without quotes a line is a row, and Spark splits files; with quotes a file is one task's.
    """
    lines = _lines(log, session)
    spaced = f'(^|{log.delimiter}) "'
    place = "named_struct('block', _metadata.file_block_start, 'row', monotonically_increasing_id()) AS place"
    looked = (
        lines.selectExpr("_metadata.file_path AS file", "value", place)
        .groupBy("file")
        .agg(
            expr("sum(octet_length(value) - octet_length(replace(value, '\"', ''))) AS quotes"),
            expr("count_if(NOT is_valid_utf8(value)) AS broken"),
            expr("count_if(instr(value, '\r') BETWEEN 1 AND length(value) - 1) AS returns"),
            expr("count_if(trim(BOTH '\r' FROM value) != '' AND trim(BOTH ' \r\t' FROM value) = '') AS blank"),
            expr(f"count_if(value RLIKE '{spaced}') AS spaced"),
            expr("min_by(value, place) AS head"),
        )
    )
    quoted = False
    for row in looked.collect():
        if row["broken"]:
            raise Unread(f"{log.name}: {TEXT}")
        if log.path is None and (header := _fields(row["head"], log)) != log.columns:
            raise InputError(
                f"{log.name}: {row['file']} has the columns {few(header)}, and another file there {few(log.columns)}; "
                "at an address CSV files have one header: write them as Parquet, or read them from a disk"
            )
        if row["quotes"] % 2:
            raise Unread(f"{log.name}: a quote is opened and never closed")
        if row["returns"] or row["blank"] or row["spaced"]:
            raise Unread(
                f"{log.name}: a line holds a carriage return inside, nothing but spaces, or a space before a quote; "
                "Spark would read these otherwise than they are meant"
            )
        quoted = quoted or row["quotes"] > 0
    schema = StructType([StructField(f"c{place}", StringType()) for place in range(len(log.columns))])
    reader = _reader(log, session).schema(schema).options(
        header=True, sep=log.delimiter, quote='"', escape='"', lineSep="\n", multiLine=quoted, mode="FAILFAST",
        nullValue="", emptyValue="", columnPruning=False, unescapedQuoteHandling="RAISE_ERROR", maxColumns=1 << 20,
    )  # fmt: skip
    frame = reader.csv(_paths(log, session))
    last = len(log.columns) - 1
    values = [f"c{place}" for place in range(last)] + [f"regexp_replace(c{last}, '\r$', '')"]
    if log.trimmed:
        values = [f"btrim({value}, '{BLANK}')" for value in values]
    named = [f"nullif({value}, '') AS c{place}" for place, value in enumerate(values)]
    return frame.selectExpr(*named, *([f"_metadata.file_path AS {FILE}"] if beside else []))


def _json(
    log: Log, columns: Sequence[str], session: SparkSession, labels: Collection[str], *, beside: bool = False
) -> DataFrame:
    """Return the JSON texts of the chosen values of every line, read as everywhere: by Python, in the tasks.

    ``labels``: columns of which conversations become their labels; ``beside``: and the address of the file of each row.
    """
    named = [place for place, column in enumerate(columns) if column in labels]
    names = [f"c{place}" for place in range(len(columns))] + [FILE] * beside
    inner = {column: way for column, way in log.inner.items() if column in columns}

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [json_row(line, columns, "a line", inner) for line in _texts([batch])]
            fine = [at for at, row in enumerate(found) if row is not None]
            values = [[(found[at] or ())[place] for at in fine] for place in range(len(columns))]
            for place in named:
                values[place] = [labelled_json(text) for text in values[place]]
            if beside:
                files = batch.column(1).to_pylist()
                values.append([files[at] for at in fine])
            yield pa.record_batch([pa.array(column, pa.string()) for column in values], names)

    return _in_python(_lines(log, session), rows, names, beside=beside)


def _texts(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        for value in batch.column(0).to_pylist():
            try:
                yield value.decode("utf-8").removeprefix("\ufeff")
            except UnicodeDecodeError:
                raise InputError(TEXT) from None


def _in_python(lines: DataFrame, work: Callable[..., Any], names: Sequence[str], *, beside: bool = False) -> DataFrame:
    schema = StructType([StructField(name, StringType()) for name in names])
    with without_pandas_warning():
        more = ["_metadata.file_path AS file"] if beside else []
        return lines.selectExpr("CAST(value AS BINARY) AS value", *more).mapInArrow(work, schema)
