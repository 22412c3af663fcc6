"""Iceberg tables, by ``pyiceberg`` (the extra ``iceberg``): the rows of one snapshot, one data file after the other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from concordant.errors import ConcordantError, InputError, Unavailable
from concordant.io.log.objects import ACCESS
from concordant.io.log.stream import Stream, library

ENVIRONMENT = {
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
"""What pyiceberg calls what Arrow itself takes from the environment; a catalogue has its own configuration."""
NUMBER = re.compile(r"v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json")


def _of_environment() -> dict[str, str]:
    there = {name: [os.environ[one] for one in several if os.environ.get(one)] for name, several in ENVIRONMENT.items()}
    return {name: values[0] for name, values in there.items() if values}


def newest(names: Sequence[str], folder: str) -> str | None:
    """Return which of some files says what a table is now: that of the highest number. None: none of them does.

    Errors (InputError): several of one number, of which only a catalogue knows the right one.

    >>> newest(["v2.metadata.json", "v10.metadata.json", "snap-1.avro"], "lake/votes")
    'v10.metadata.json'
    """
    found = {name: int(match[1]) for name in names if (match := NUMBER.fullmatch(name))}
    last = sorted(name for name in found if found[name] == max(found.values()))
    if len(last) > 1:
        raise InputError(
            f"{folder}: an Iceberg table whose newest metadata are in {len(last)} files ({', '.join(last)}), of which "
            "its catalogue knows the right one; name that file, or iceberg::CATALOG.NAMESPACE.TABLE"
        )
    return last[0] if last else None


class IcebergTable(Stream):
    """A snapshot of an Iceberg table, the current one where none is named.

    Rows that files of positions, or deletion vectors, mark as deleted are not in it; columns are those of its schema,
    by their ids, whatever they were called when a file was written. Errors: InputError for a table or a snapshot that
    cannot be read, and for deletes by equality, which ``pyiceberg`` does not know; Unavailable without ``pyiceberg``.
    """

    versioned = True

    def __init__(self, name: str, snapshot: int | None = None, *, metadata: str = "", identifier: str = "") -> None:
        self.name = name
        what = f"{name}: an Iceberg table"
        tables, self._arrow = (
            library("pyiceberg.table", "iceberg", what),
            library("pyiceberg.io.pyarrow", "iceberg", what),
        )
        try:
            if metadata:
                table = tables.StaticTable.from_metadata(metadata, properties=_of_environment())
            else:
                catalog, _, rest = (
                    identifier.partition(".") if identifier.count(".") > 1 else ("default", "", identifier)
                )
                table = library("pyiceberg.catalog", "iceberg", what).load_catalog(catalog).load_table(rest)
            self._scan = table.scan(snapshot_id=snapshot)
            self._metadata, self._io = table.metadata, table.io
            now = self._scan.snapshot()
            self._schema = self._arrow.schema_to_pyarrow(self._scan.projection(), include_field_ids=False)
        except Exception as error:
            raise self._refused(error) from None
        self.version: int | None = None if now is None else now.snapshot_id

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def _tasks(self) -> list[Any]:
        return sorted(self._scan.plan_files(), key=lambda task: str(task.file.file_path))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            scan = self._scan.select(*columns)
            kinds = self._arrow.schema_to_pyarrow(scan.projection(), include_field_ids=False)
            read = self._arrow.ArrowScan(self._metadata, self._io, scan.projection(), scan.row_filter)
            for task in self._tasks:  # all of them at once would be read ahead, and held
                for batch in read.to_record_batches([task]):
                    yield from pa.Table.from_batches([batch]).select(kinds.names).cast(kinds).to_batches()
        except GeneratorExit:
            raise
        except Exception as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> ConcordantError:
        if isinstance(error, ConcordantError):
            return error
        said = " ".join(str(error).split())
        kind = type(error).__name__
        if "equality delete" in said:
            return InputError(
                f"{self.name}: an Iceberg table with deletes by equality, which pyiceberg does not read; let its "
                "writer compact it, or name its table in Spark (spark::TABLE)"
            )
        if isinstance(error, FileNotFoundError) or ("does not exist" in said and kind[:6] != "NoSuch"):
            return InputError(f"{self.name}: an Iceberg table of which a file is missing: {said[:200]}")
        if isinstance(error, ConnectionError) or ACCESS.search(said) or "AWS Error" in said or "Max retries" in said:
            return Unavailable(
                f"{self.name}: an Iceberg table whose store or catalogue does not answer as it should: {said[:200]}"
            )
        return InputError(f"{self.name}: an Iceberg table that cannot be read: {said[:200]}")
