"""Whether a store is what was written: every segment byte for byte, every number of the catalogue counted again.

Fewer segments, the same judgments: all of them merged into one.

Preferences written out as a log that reads back as them: a row for each judgment, or for each entry of a list.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from concordant.errors import InputError, UsageError, counted, few, twice
from concordant.io.engines.duckdb import Settings
from concordant.io.store import files
from concordant.io.store.catalogue import (
    Catalogue,
    Segment,
    Sum,
    contradictions,
    kept_ids,
    parts_folder,
    read_catalogue,
)
from concordant.io.store.commits import HERE, Changed, commit, to_write
from concordant.io.store.files import WAIT
from concordant.io.store.known import HEAD, MARK, KnownFiles, belongs, beside, save
from concordant.io.store.segments import last_columns
from concordant.io.store.stored import checked, read_stored
from concordant.io.store.summed import KEPT
from concordant.preferences.counts import exact_sum
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import Ragged, shown_at
from concordant.progress import steps


@dataclass(frozen=True)
class Verified:
    """What was looked through, all of it as it was written."""

    batches: int
    segments: int
    bytes: int
    judgments: int
    leftovers: tuple[str, ...] = ()
    """Files in the folder that the store does not name: left by killed writers, and harmless."""


def verify(store: Path) -> Verified:
    """Read all of a store. Errors (InputError): whatever is missing, damaged, or does not add up, all in one line."""
    target = Path(os.path.realpath(store))
    while True:
        catalogue = read_catalogue(target)
        wrong = list(dict.fromkeys(_wrong(target, catalogue)))
        if not wrong or read_catalogue(target).facts.revision == catalogue.facts.revision:
            break  # otherwise a writer changed the store meanwhile: look at the new one
    if not wrong:
        catalogue = read_stored(store)[1]  # as any reader reads it: what adds up in parts may not add up as a whole
    else:
        more = f" (and {counted(len(wrong) - 3, 'other things')})" if len(wrong) > 3 else ""
        raise InputError(f"{store}: {'; '.join(wrong[:3])}{more}")
    named = {HEAD, *(part.file for part in catalogue.files)}
    there = [path.name for path in parts_folder(target).iterdir()]
    return Verified(
        len(catalogue.batches),
        len(catalogue.segments) + len(catalogue.sums),
        sum(part.bytes for part in catalogue.files),
        catalogue.judgments,
        tuple(sorted(name for name in {*there} - named if not KEPT.fullmatch(name))),
    )


def _wrong(target: Path, catalogue: Catalogue) -> Iterator[str]:
    for segment in steps("segments", (*catalogue.segments, *catalogue.sums)):
        try:
            yield from _of_segment(checked(target, segment), segment)
        except InputError as error:
            yield str(error).removeprefix(f"{target}: ")
        except (pa.ArrowException, OSError) as error:
            yield f"the segment {segment.file} cannot be read: {str(error).splitlines()[0]}"
    for ids in kept_ids(catalogue):
        try:
            if (rows := len(pa.parquet.read_table(checked(target, ids)))) != ids.rows:
                yield f"{ids.file} holds {rows:,} ids, the catalogue says {ids.rows:,}"
        except InputError as error:
            yield str(error).removeprefix(f"{target}: ")
        except (pa.ArrowException, OSError) as error:
            yield f"{ids.file} cannot be read: {str(error).splitlines()[0]}"
    yield from contradictions(catalogue)
    try:
        belongs(target, catalogue)
    except InputError as error:
        yield str(error).removeprefix(f"{target}: ")


def _of_segment(path: Path, segment: Segment) -> Iterator[str]:
    rows = judgments = 0
    with pa.parquet.ParquetFile(path) as file:
        for block in file.iter_batches(columns=["count"]):
            count = block.column(0)
            rows += pc.sum(pc.greater(count, 0)).as_py() or 0
            judgments += exact_sum(count.to_numpy(zero_copy_only=False))
    if (rows, judgments) != (segment.rows, segment.judgments):
        yield (
            f"the segment {segment.file} holds {judgments:,} judgments in {rows:,} rows, the catalogue says "
            f"{segment.judgments:,} in {segment.rows:,}"
        )


@dataclass(frozen=True)
class Compacted:
    """What was and is read of a store: files, rows (distinct judgments) and bytes."""

    segments: tuple[int, int]
    rows: tuple[int, int]
    bytes: tuple[int, int]


def compact(store: Path, settings: Settings | None = None, *, by: str, wait: float = WAIT) -> Compacted:
    """Add the segments of a store up in one file, which is read in their place. Other writers may go on meanwhile.

    The segments stay, so that a batch can still be taken out.
    """
    while True:
        prefs, seen = read_stored(store, settings)
        if len(seen.readable) <= 1:
            return Compacted(*[(size, size) for size in _sizes(seen)])

        def change(now: Catalogue | None, prefs: Preferences = prefs, seen: Catalogue = seen) -> Changed | None:
            if now is None or not {*seen.readable} <= {*now.segments, *now.sums}:
                return None  # someone else has merged some of them, or taken something out
            held = json.dumps([batch.batch for batch in seen.batches])
            return Changed(replace(now, sums=(Sum(**vars(to_write()), batches=held),)), {HERE: lambda: prefs})

        new = commit(store, change, by=by, wait=wait)
        if new is not None:
            old, now = _sizes(seen), _sizes(new)
            return Compacted(*[(before, after) for before, after in zip(old, now, strict=True)])


def _sizes(catalogue: Catalogue) -> tuple[int, int, int]:
    read = catalogue.readable
    return len(read), sum(each.rows for each in read), sum(each.bytes for each in read)


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


def export(prefs: Preferences, path: Path, known: KnownFiles) -> int:
    """Write preferences to a file by its ending, whole or not at all; return the number of known items left out.

    Beside it goes the list of the files that they came from. Items that are known but in no judgment have no row in a
    log. Errors (UsageError): the ending, a covariate with the name of another column.
    """
    check_ending(path)

    def blocks(begin: int, end: int) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        if isinstance(prefs, Comparisons):
            columns = _comparisons(prefs, begin, end)
        elif isinstance(prefs, Lists):
            columns = _lists(prefs, begin, end)
        if known.facts.query is None:
            del columns["query"]  # so that it is read as the logs were
        return columns | {MARK: pa.array([known.mark] * len(columns["count"]), pa.string())}

    # covariates and the cluster come last, under names of their own
    names = [*blocks(0, 0), *prefs.covariate_names]
    if again := twice(names):
        raise UsageError(f"{path}: the covariate {few(again)} has the name of a column of the log")

    def fill(temporary: Path) -> None:
        first = pa.table(blocks(0, min(BLOCK, prefs.distinct)))
        with _writer(temporary, path.suffix.lower(), first.schema) as writer:
            writer.write_table(first)
            for begin in steps("writing judgments", range(BLOCK, prefs.distinct, BLOCK)):
                writer.write_table(pa.table(blocks(begin, min(begin + BLOCK, prefs.distinct))))

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


def _comparisons(prefs: Comparisons, begin: int, end: int) -> dict[str, Any]:
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
    return columns | last_columns(prefs, rows)


def _lists(prefs: Lists, begin: int, end: int) -> dict[str, Any]:
    start = prefs.list_start[begin : end + 1]
    rows = slice(start[0], start[-1])
    lists = Ragged(start - start[0])
    owner = lists.owner + begin
    one, value = COLUMNS[prefs.kind]
    columns = {"query": prefs.queries.take(prefs.query[owner]), one: pa.array(owner + 1)}
    if prefs.kind == "selections":
        columns["position"] = pa.array(shown_at(lists, prefs.list_value[rows]) + 1)
    columns["item"] = prefs.items.take(prefs.list_item[rows])
    values = prefs.list_value[rows]
    values = (values > 0).astype(np.float64) if prefs.kind == "selections" else values
    columns[value] = pa.array(values if prefs.kind == "ratings" else values.astype(np.int64))
    return columns | last_columns(prefs, owner)
