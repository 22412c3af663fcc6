"""Preferences written out as a log that reads back as them: a row for each judgment, or for each entry of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from concordant.errors import UsageError, few, twice
from concordant.listing import entry_owner
from concordant.preferences import Preferences
from concordant.progress import steps
from concordant.store import files
from concordant.store.known import MARK, Known, beside, save

__all__ = ["check_ending", "export"]

ENDINGS = (".parquet", ".csv", ".tsv", ".arrow")
BLOCK = 1 << 20
COLUMNS = {
    "orders": ("judgment", "rank"),
    "selections": ("session", "clicked"),
    "choices": ("session", "chosen"),
    "ratings": ("judgment", "rating"),
}
"""What a list and a value of it are called in a log."""


def check_ending(path: Path) -> None:
    """Refuse a file whose ending names no format. Errors: UsageError."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: unknown ending {path.suffix!r}; allowed: {', '.join(ENDINGS)}")


def export(prefs: Preferences, path: Path, known: Known) -> int:
    """Write preferences to a file by its ending, whole or not at all; return the number of known items left out.

    Beside it goes the list of the files that they came from. Items that are known but in no judgment have no row in a
    log. Errors (UsageError): the ending, a covariate with the name of another column.
    """
    check_ending(path)
    kinds = _comparisons if prefs.kind == "comparisons" else _lists

    def blocks(prefs: Preferences, begin: int, end: int) -> dict[str, Any]:
        columns = kinds(prefs, begin, end)
        if known.facts.query is None:
            del columns["query"]  # so that it is read as the logs were
        return columns | {MARK: pa.array([known.mark] * len(columns["count"]), pa.string())}

    # covariates and the cluster come last, under names of their own
    names = [*blocks(prefs, 0, 0), *prefs.covariate_names]
    if again := twice(names):
        raise UsageError(f"{path}: the covariate {few(again)} has the name of a column of the log")

    def fill(temporary: Path) -> None:
        first = _table(prefs, blocks, 0)
        with _writer(temporary, path.suffix.lower(), first.schema) as writer:
            writer.write_table(first)
            for begin in steps("writing judgments", range(BLOCK, prefs.distinct, BLOCK)):
                writer.write_table(_table(prefs, blocks, begin))

    save(known, beside(path))  # first: an export without its list would be refused
    files.write_new(path, fill)
    return len(prefs.declared)


@contextmanager
def _writer(path: Path, ending: str, schema: pa.Schema) -> Iterator[Any]:
    if ending == ".parquet":
        made: Any = pa.parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)
    elif ending == ".arrow":
        made = pa.ipc.new_file(str(path), schema)
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if ending == ".tsv" else ",")
        made = pa.csv.CSVWriter(str(path), schema, write_options=options)
    with made as writer:
        yield writer


def _table(prefs: Preferences, blocks: Any, begin: int) -> pa.Table:
    columns: Mapping[str, Any] = blocks(prefs, begin, min(begin + BLOCK, prefs.distinct))
    return pa.table(dict(columns))


def _comparisons(prefs: Preferences, begin: int, end: int) -> dict[str, Any]:
    assert prefs.winner is not None and prefs.loser is not None
    rows = slice(begin, end)
    sides = [prefs.items.take(column[rows]) for column in (prefs.winner, prefs.loser)]
    columns = {"query": prefs.queries.take(prefs.query[rows])}
    if prefs.tie is None:
        columns |= dict(zip(("winner", "loser"), sides, strict=True))
    else:  # scores, not words: an item may be called "left" or "tie"
        won = pa.array(1 - prefs.tie[rows].astype(np.int8))
        columns |= dict(zip(("left", "right"), sides, strict=True))
        columns |= {"left_score": won, "right_score": pa.array(np.zeros(len(won), np.int8))}
    if prefs.weight is not None:
        columns["weight"] = pa.array(prefs.weight[rows])
    if prefs.covariates is not None and end > begin:
        for name, values in zip(prefs.covariate_names, prefs.covariates[rows].T, strict=True):
            columns[name] = pa.array(np.ascontiguousarray(values))
    return columns | _shared(prefs, np.arange(begin, end))


def _lists(prefs: Preferences, begin: int, end: int) -> dict[str, Any]:
    assert prefs.list_start is not None and prefs.list_item is not None and prefs.list_value is not None
    start = prefs.list_start[begin : end + 1]
    rows = slice(start[0], start[-1])
    place = entry_owner(start - start[0])
    owner = place + begin
    one, value = COLUMNS[str(prefs.kind)]
    columns = {"query": prefs.queries.take(prefs.query[owner]), one: pa.array(owner + 1)}
    if prefs.kind == "selections":
        columns["position"] = pa.array(np.arange(start[0], start[-1]) - start[place] + 1)
    columns["item"] = prefs.items.take(prefs.list_item[rows])
    values = prefs.list_value[rows]
    columns[value] = pa.array(values if prefs.kind == "ratings" else values.astype(np.int64))
    return columns | _shared(prefs, owner)


def _shared(prefs: Preferences, owner: Any) -> dict[str, Any]:
    columns = {}
    if prefs.clusters is not None and prefs.cluster is not None:
        columns["cluster"] = prefs.clusters.take(prefs.cluster[owner])
    return columns | {"count": pa.array(prefs.count[owner].astype(np.int64))}
