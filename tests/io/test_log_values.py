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
