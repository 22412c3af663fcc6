"""Columns of a DataFrame as the labels that memory makes of them, by expressions of Spark: no row is seen by Python."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql import types as sparks
from pyspark.sql.pandas.types import to_arrow_type

from concordant.errors import InputError
from concordant.preferences.values import labels

EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
WITHOUT_FRACTION = len("1970-01-01T00:00:00")
WITH_FRACTION = len("1970-01-01T00:00:00.000000")
FAR = 10_000_000
"""Days from 1970 to a date of no year that Python knows."""


def label_column(column: Column, kind: sparks.DataType, role: str, name: str, *, unsigned: bool = False) -> Column:
    """Return a column of a type as labels: integers as ``bigint``, texts, dates, instants and decimals as texts.

    An instant is written in UTC, whatever the time zone of the session. ``role`` and ``name`` (of the table) stand in
    messages; ``unsigned``: whether decimals are integers of 64 bits without sign.

    Errors (InputError): another type, in memory's words; where Spark computes the labels, integers beyond 64 bits with
    sign, and dates and instants beyond the years 1 to 9999.
    """
    zoned, clock = isinstance(kind, sparks.TimestampType), isinstance(kind, sparks.TimestampNTZType)
    arrow = pa.timestamp("us", "UTC" if zoned else None) if zoned or clock else to_arrow_type(kind)
    if said := _refusal(pa.array([], arrow), role, name):
        raise InputError(said)
    if isinstance(kind, sparks.IntegralType):
        return column.cast("bigint")
    if isinstance(kind, sparks.DecimalType):
        if not unsigned:
            return fn.translate(fn.format_number(column, kind.scale), ",", "")  # a cast may write 1E-7
        whole = column.try_cast("bigint")
        beyond = _refused(pa.array([1 << 63], pa.uint64()), role, name)
        return fn.when(whole.isNotNull() | column.isNull(), whole).otherwise(beyond)
    if isinstance(kind, sparks.DateType):
        return _of_known_years(column.cast("string"), arrow, role, name)
    if zoned or clock:
        if zoned:
            column = fn.timestamp_add("MICROSECOND", fn.unix_micros(column), fn.expr(EPOCH))
        text = fn.translate(column.cast("string"), " ", "T")
        text = fn.when(fn.length(text) > WITHOUT_FRACTION, fn.rpad(text, WITH_FRACTION, "0")).otherwise(text)
        return _of_known_years(fn.concat(text, fn.lit("Z")) if zoned else text, arrow, role, name)
    return column.cast("string")


def has_null_byte(text: Column) -> Column:
    """Whether a text holds a null byte, which no label may."""
    return text.contains("\0")


def _of_known_years(text: Column, kind: pa.DataType, role: str, name: str) -> Column:
    days = pa.array([FAR], pa.int32()).cast(pa.date32())
    far = days if pa.types.is_date(kind) else days.cast(pa.timestamp("s")).cast(kind)
    return fn.when(text.rlike("^([+-]|0000)"), _refused(far, role, name)).otherwise(text)


def _refusal(values: pa.Array, role: str, name: str) -> str:
    """What memory says where it refuses such labels; empty where it does not."""
    try:
        labels(values, role)
    except InputError as error:
        return f"{name}: {error}"
    return ""


def _refused(values: pa.Array, role: str, name: str) -> Column:
    """Raise what memory says of such labels in a task of Java, as a task of Python would (see ``telling``)."""
    return fn.raise_error(fn.lit(f"{InputError.__module__}.{InputError.__name__}: {_refusal(values, role, name)}"))
