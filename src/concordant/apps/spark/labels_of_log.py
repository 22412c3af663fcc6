"""What only all of a log tells of its labels and outcomes: a task sees but a part of these.

Of what kind the labels of a JSON log are; which words for a side are labels of items, too; whether outcomes are shares
of a win; which labels look alike. Labels that are instants are texts from the beginning, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as sparks
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.checking import Checks
from concordant.apps.spark.label_columns import label_column
from concordant.errors import InputError
from concordant.preferences.comparisons import SHOWN, Shares, has_outcomes, numbers_among, side_words
from concordant.preferences.labels import Labels, look_alikes, plain_form
from concordant.preferences.layouts import CLUSTERS, Layout
from concordant.preferences.values import texts

ITEMS = ("item", "winner", "loser", "left", "right")
LABELS = ("query", *CLUSTERS, *ITEMS)
"""Roles whose values are labels."""
FORMED = pa.schema([("label", pa.string()), ("form", pa.string())])
NUMBERED = pa.schema([("word", pa.string()), ("number", pa.float64())])
WHITESPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""What ``str.strip`` takes away."""
INTEGER = "^-?[0-9]+$"
"""How JSON writes an integer."""
TEXT = '"'
"""How JSON begins a text."""
LONGEST = 80
"""Characters of a label that a refusal shows."""


def quoted(name: str) -> Column:
    """Return a column by its name, whatever stands in it."""
    return fn.col("`" + name.replace("`", "``") + "`")


def with_texts(frame: DataFrame, name: str) -> DataFrame:
    """Return the rows of a log with labels that are instants as the texts that these are in memory.

    So no label is compared by way of a time zone: of the driver, of the session, of a clock that is turned back.
    """
    instants = sparks.TimestampType | sparks.TimestampNTZType
    written = {
        field.name: label_column(fn.col(field.name), field.dataType, field.name, name)
        for field in frame.schema
        if field.name in LABELS and isinstance(field.dataType, instants)
    }
    return frame.withColumns(written) if written else frame


def as_text(column: Column, as_json: bool) -> Column:
    """Return labels as texts: those of JSON without quotes."""
    if as_json:
        column = fn.get_json_object(fn.concat(fn.lit('{"x":'), column, fn.lit("}")), "$.x")
    return column.cast("string")


def kinds_and_words(frame: DataFrame, checks: Checks, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Look up in one pass which roles of a JSON log have integers for labels, and which words for a side are items.

    Errors (InputError): a column of labels holds texts and integers.
    """
    facts: dict[str, Column] = {}
    roles = [role for role in LABELS if role in frame.columns] if checks.as_json else []
    for role in roles:
        facts[f"texts of {role}"] = fn.count_if(fn.col(role).startswith(TEXT))
        facts[f"integers of {role}"] = fn.count_if(fn.col(role).rlike(INTEGER))
    sides = ("left", "right") if has_outcomes(checks.layout) else ()
    for side in sides:
        text = as_text(fn.col(side), checks.as_json)
        word = fn.lower(fn.btrim(text, fn.lit(WHITESPACE))).isin(sorted(side_words(checks.layout)))
        facts[f"words of {side}"] = fn.collect_set(fn.when(word, text))
    if not facts:
        return frozenset(), frozenset()
    found = frame.agg(*[one.alias(what) for what, one in facts.items()]).collect()[0]
    integers = [role for role in roles if found[f"integers of {role}"]]
    for role in integers:
        if found[f"texts of {role}"]:
            raise InputError(f"{name}: the column of {role} mixes {_both(frame, role)}; labels are all of one kind")
    return frozenset(integers), frozenset([word for side in sides for word in found[f"words of {side}"]])


def _both(frame: DataFrame, role: str) -> str:
    """The least text and the least integer of a column of JSON."""
    value = fn.col(role)
    least = [fn.min(fn.when(one, as_text(value, True))) for one in (value.startswith(TEXT), value.rlike(INTEGER))]
    text, number = frame.agg(*least).collect()[0]
    return f"texts ({text[:LONGEST]!r}) and integers ({number[:LONGEST]})"


def shares_of(frame: DataFrame, checks: Checks) -> Shares | None:
    """Look up whether the outcomes of a log are shares of a win; None where it has none."""
    if not has_outcomes(checks.layout):
        return None
    said = frame.select("outcome").distinct()
    task = partial(_numbers, layout=checks.layout, as_json=checks.as_json)
    found = said.mapInArrow(task, from_arrow_schema(NUMBERED)).distinct()
    number = fn.col("number")
    between, beyond = (number > 0) & (number < 1), (number < 0) | (number > 1)
    inside, outside = found.agg(fn.count_if(between), fn.count_if(beyond)).collect()[0]
    shown = found.where(beyond).orderBy("number").limit(SHOWN).collect() if inside and outside else []
    return Shares(inside > 0, outside, tuple([row["number"] for row in shown]))


def _numbers(batches: Iterator[pa.RecordBatch], *, layout: Layout, as_json: bool) -> Iterator[pa.RecordBatch]:
    """A task: which outcomes are numbers."""
    for batch in batches:
        read = texts(batch.column(0), as_json=as_json)
        found = numbers_among([] if pa.types.is_null(read.type) else read.dictionary.to_pylist(), layout)
        columns = zip(([*found], [*found.values()]), NUMBERED.types, strict=True)
        yield pa.record_batch([pa.array(values, kind) for values, kind in columns], schema=NUMBERED)


def alike(frame: DataFrame, columns: Sequence[str], what: str, as_json: bool) -> Sequence[str]:
    """Say which labels in some columns look alike."""
    found = frame.select(fn.explode(fn.array(*columns)).alias("label")).distinct()
    formed = found.mapInArrow(partial(_plain_forms, as_json=as_json), from_arrow_schema(FORMED))
    same = formed.groupBy("form").agg(fn.count(fn.lit(1)).alias("n"), fn.collect_list("label").alias("labels"))
    rows = same.where("n > 1 OR form = ''").select("labels").collect()
    return look_alikes(Labels.encode([label for row in rows for label in row["labels"]])[0], what)


def _plain_forms(batches: Iterator[pa.RecordBatch], *, as_json: bool) -> Iterator[pa.RecordBatch]:
    """A task: labels with their plain forms."""
    for batch in batches:
        labels = batch.column(0).drop_null()
        if as_json:
            labels = pa.array([label for text in labels.to_pylist() if isinstance(label := json.loads(text), str)])
        labels = labels.cast(pa.string())
        yield pa.record_batch([labels, plain_form(labels).cast(pa.string())], schema=FORMED)
