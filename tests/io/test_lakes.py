"""Lakes as they lie: every engine reads what a plain reading finds, and says the same of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from concordant import Preferences
from concordant.io.read import read_log
from lake_files import drawn_lake, plainly_read
from seeds import seed
from spark_session import spark_tests

FORMS = ("csv", "json", "parquet")


def oracle(rows: list[dict[str, Any]], query: str | None, cluster: str | None) -> Preferences:
    """The judgments of rows that have all that is asked for; integers beside texts are texts."""
    asked = ["winner", "loser", *filter(None, (query, cluster))]
    mixed = len({type(row[name]) for row in rows for name in ("winner", "loser")}) > 1
    rows = [row for row in rows if all(row.get(name) is not None for name in asked)]
    columns = {name: [row[name] for row in rows] for name in asked}
    if mixed:
        columns |= {name: list(map(str, columns[name])) for name in ("winner", "loser")}
    return Preferences.from_comparisons(
        columns["winner"],
        columns["loser"],
        query=columns[query] if query else None,
        cluster=columns[cluster] if cluster else None,
    )


def checked(number: int, form: str, folder: Path, engines: dict[str, Any]) -> int:
    """Draw a lake and hold each engine against the plain reading; return how many readings were compared."""
    random = np.random.default_rng([seed(21), number, FORMS.index(form)])
    root = folder / f"lake {number}"
    rows = drawn_lake(random, root, form)
    found = plainly_read(root)
    written = [{name: value if form != "csv" or value is None else str(value) for name, value in row.items()}
               for row in rows]  # fmt: skip
    same = [Counter(json.dumps({k: str(v) for k, v in r.items() if v is not None}, sort_keys=True) for r in side)
            for side in (written, found)]  # fmt: skip
    if not any(isinstance(row.get("seconds"), float) for row in found):
        assert same[0] == same[1]  # the plain reading reads what was written
    there = {name for row in found for name in row if row[name] is not None}
    compared = 0
    for query in (None, *sorted({"day", "lang"} & there)):
        for cluster in (None, *(["worker"] if "worker" in there else [])):
            expected = oracle(found, query, cluster)
            if not len(expected):
                continue
            said, rejects, notes = set(), set(), set()
            for engine in engines.values():
                columns = {"query": query} if query else {}
                reading = read_log(root, columns=columns, cluster=cluster, engine=engine, on_error="skip", pool=False)
                assert reading.preferences == expected
                assert reading.rows == len(found)
                said.add(tuple(map(str, reading.rejects)))
                rejects.add(reading.report())
                notes.add(reading.notes)
                compared += 1
            assert len(said) == len(rejects) == len(notes) == 1
    return compared


@pytest.mark.parametrize("form", FORMS)
def test_engines_read_what_a_plain_reading_finds(tmp_path: Path, form: str) -> None:
    engines = {"memory": "memory", "duckdb": "duckdb"}
    assert sum(checked(number, form, tmp_path, engines) for number in range(25)) > 50


def on_spark(test: Any) -> Any:
    """Mark a test that needs Spark."""
    for mark in spark_tests:
        test = mark(test)
    return test


@on_spark
@pytest.mark.parametrize("form", FORMS)
def test_spark_reads_the_same(tmp_path: Path, form: str, spark: Any) -> None:
    engines = {"duckdb": "duckdb", "spark": spark}
    assert sum(checked(number, form, tmp_path, engines) for number in range(100, 104)) > 4
