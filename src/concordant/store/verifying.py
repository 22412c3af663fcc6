"""Whether a store is what was written: every segment byte for byte, every number of the catalogue counted again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from concordant.errors import InputError, counted
from concordant.progress import steps
from concordant.store.belonging import HEAD, belongs
from concordant.store.catalogue import Catalogue, Segment, contradictions, parts_folder, read_catalogue
from concordant.store.stored import checked, read_stored
from concordant.tally import exact_sum

__all__ = ["Verified", "verify"]


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
        wrong = list(_wrong(target, catalogue))
        if not wrong or read_catalogue(target).facts.revision == catalogue.facts.revision:
            break  # otherwise a writer changed the store meanwhile: look at the new one
    if not wrong:
        catalogue = read_stored(store)[1]  # as any reader reads it: what adds up in parts may not add up as a whole
    else:
        more = f" (and {counted(len(wrong) - 3, 'other things')})" if len(wrong) > 3 else ""
        raise InputError(f"{store}: {'; '.join(wrong[:3])}{more}")
    named = {HEAD, *(segment.file for segment in catalogue.segments)}
    there = [path.name for path in parts_folder(target).iterdir()]
    return Verified(
        len(catalogue.batches),
        len(catalogue.segments),
        sum(segment.bytes for segment in catalogue.segments),
        catalogue.judgments,
        tuple(sorted(set(there) - named)),
    )


def _wrong(target: Path, catalogue: Catalogue) -> Iterator[str]:
    for segment in steps("segments", catalogue.segments):
        try:
            yield from _of_segment(checked(target, segment), segment)
        except InputError as error:
            yield str(error).removeprefix(f"{target}: ")
        except (pa.ArrowException, OSError) as error:
            yield f"the segment {segment.file} cannot be read: {str(error).splitlines()[0]}"
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
