"""Values of a log that are easily read as something else: every engine gives the truth, or refuses alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from concordant.errors import InputError
from concordant.io.layouts import Reading
from concordant.io.read import read_log
from concordant.preferences.values import TEXT, flat
from value_cases import CASES, Case, check

ENGINES = ("duckdb", "memory")


def sources(case: Case, folder: Path) -> dict[str, Any]:
    """Every form in which a case can be read without Spark, with the engine that is to do it."""
    found: dict[str, Any] = {}
    for name, path in case.write(folder).items():
        for engine in ENGINES:
            found[f"{name} by {engine}"] = (path, engine)
    if not isinstance(case.log, bytes):
        table = pa.table(case.log)
        for engine in ENGINES:
            found[f"table by {engine}"] = (table, engine)
        found["pandas"] = (table.to_pandas(integer_object_nulls=True), None)
        found["pandas of Arrow"] = (table.to_pandas(types_mapper=pd.ArrowDtype), None)
        found["polars"] = (pl.DataFrame(table), None)
        found["mapping"] = (dict(zip(table.column_names, table.columns, strict=True)), None)
    return found


def read_or_refusal(case: Case, source: Any, engine: str | None) -> Reading | str:
    """What was read, or the sentence that refuses it."""
    try:
        return read_log(source, engine=engine, **dict(case.options))
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_engine_gives_the_truth(case: Case, tmp_path: Path) -> None:
    for name, (source, engine) in sources(case, tmp_path).items():
        check(case, read_or_refusal(case, source, engine), name)


# -- columns in chunks -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("how", ["plain", "one dictionary", "a dictionary each", "with repeats and gaps"])
def test_how_a_column_is_cut_does_not_matter(kind: pa.DataType, how: str) -> None:
    words = [["b", None, "a"], [], ["a", "c"], ["b", "b"]]
    if how == "plain":
        column = pa.chunked_array([pa.array(part, kind) for part in words])
    elif how == "with repeats and gaps":
        if pa.types.is_string_view(kind):
            kind = pa.string()
        dictionary = pa.array(["a", "b", None, "b", "c"], kind)
        codes = [[3, 2, 0], [], [0, 4], [1, 3]]
        parts = [pa.DictionaryArray.from_arrays(pa.array(part, pa.int8()), dictionary) for part in codes]
        column = pa.chunked_array(parts)
    else:
        texts = pa.chunked_array([pa.array(part, pa.string()) for part in words])
        parts = texts.dictionary_encode().chunks
        if how == "a dictionary each":
            parts = [pa.array(part, pa.string()).dictionary_encode() for part in words]
        column = pa.chunked_array(parts)
    found = flat(column)
    assert isinstance(found, pa.DictionaryArray) and found.type == TEXT
    assert found.to_pylist() == [word for part in words for word in part]
    assert sorted(found.dictionary.to_pylist()) == ["a", "b", "c"]
