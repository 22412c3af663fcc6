"""Parquet files that tasks read themselves: no row passes through Java, which takes most of the time of a short job."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from concordant.apps.spark.partitioning import BLOCK, BUCKET, beside_query
from concordant.errors import InputError
from concordant.io.engines.spark_session import parallelism
from concordant.io.log.formats import Log, parquet_file
from concordant.io.log.union import is_even
from concordant.preferences.values import is_text

SPLIT = 1 << 22
"""Rows that a task reads, about."""
MIX = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: integers that follow each other are spread evenly."""


@dataclass(frozen=True)
class Files:
    """Parquet files whose columns are read as they are, and which column each role is."""

    paths: tuple[str, ...]
    rows: tuple[int, ...]
    roles: Mapping[str, str]

    @classmethod
    def of(cls, log: Log, roles: Mapping[str, str]) -> Files | None:
        """Return the files of a log; None where not all is plain: other formats and types, columns of folders."""
        columns, parts = list(dict.fromkeys(roles.values())), log.parts or (log,)
        if log.format != "parquet" or log.path is None or not is_even(log, columns):
            return None
        for part in parts:
            kinds = dict(zip(part.columns, part.types, strict=True))
            if not all(_plain(kinds[column], role) for role, column in roles.items()):
                return None
        sizes = [
            _rows(str(path.absolute())) if part.rows is None else part.rows for part in parts if (path := part.path)
        ]
        return cls(tuple([str(path.absolute()) for path in log.paths]), tuple(sizes), roles)

    @property
    def total(self) -> int:
        """Rows of all files."""
        return sum(self.rows)

    def frame(self, session: SparkSession, buckets: int, work: Any, schema: Any) -> DataFrame:
        """Return what ``work`` makes of the rows of all files, in columns called as the roles and ``BUCKET``."""
        splits, roles = self._splits(parallelism(session)), self.roles

        def read(places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            here = [split for batch in places for place in batch.column(0).to_pylist() for split in splits[place]]
            yield from work(_read(here, roles, buckets))

        return session.range(0, len(splits), 1, len(splits)).mapInArrow(read, schema)

    def _splits(self, slots: int) -> list[list[tuple[str, int, int]]]:
        """Return what each task reads: files, each from one of its row groups to another."""
        number = slots * max(1, -(-self.total // (SPLIT * slots)))
        each, done = self.total / number, 0
        splits: list[list[tuple[str, int, int]]] = [[]]
        for path, rows in zip(self.paths, self.rows, strict=True):
            groups = [rows] if 2 * rows <= each else _groups(path)
            for place, some in enumerate(groups):
                if done + some / 2 > each * len(splits) and splits[-1]:
                    splits.append([])
                done += some
                end = place + 1 if len(groups) > 1 else -1  # all of them
                if splits[-1] and splits[-1][-1][0] == path:
                    splits[-1][-1] = (path, splits[-1][-1][1], end)
                else:
                    splits[-1].append((path, place, end))
        return splits


def _plain(kind: pa.DataType, role: str) -> bool:
    """Whether Spark and Arrow hand over values of a type as the same ones; queries are known by labels."""
    label = is_text(kind) or (pa.types.is_integer(kind) and kind != pa.uint64())
    return label or (kind in (pa.float32(), pa.float64(), pa.bool_()) and role != "query")


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open a Parquet file. Errors (InputError): it cannot be read."""
    try:
        with parquet_file(Path(path)) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: {next(iter(str(error).splitlines()), type(error).__name__)}") from None


def _rows(path: str) -> int:
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def _groups(path: str) -> list[int]:
    with _opened(path) as file:
        return [file.metadata.row_group(place).num_rows for place in range(file.metadata.num_row_groups)]


def _read(splits: list[tuple[str, int, int]], roles: Mapping[str, str], buckets: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some files with the bucket of each."""
    columns = list(dict.fromkeys(roles.values()))
    for path, begin, end in splits:
        with _opened(path) as file:
            groups = range(begin, file.num_row_groups if end < 0 else end)
            for batch in file.iter_batches(BLOCK, row_groups=list(groups), columns=columns, use_threads=False):
                batch.validate(full=True)
                found = {role: batch.column(column) for role, column in roles.items()}
                yield pa.record_batch({**found, BUCKET: pa.array(_buckets(found, len(batch), buckets))})


def _buckets(found: Mapping[str, Any], size: int, buckets: int) -> NDArray[np.int32]:
    """Return the bucket of each of some rows: that of its query, or of another label where it has none."""
    if "query" not in found:
        return np.zeros(size, np.int32)
    query, beside = found["query"], beside_query(found)
    where = bucket_of(query, buckets)
    if query.null_count and beside:
        missing = query.is_null().to_numpy(zero_copy_only=False)
        where = np.where(missing, bucket_of(found[beside[0]].cast(pa.string()), buckets), where)
    return where


def bucket_of(labels: Any, buckets: int) -> NDArray[np.int32]:
    """Return the bucket of each label, an integer or a text; the same in every process.

    >>> bucket_of(pa.array([7, 8, None, 7]), 4).tolist()
    [2, 3, 0, 2]
    """
    coded = labels.dictionary_encode()
    if is_text(coded.dictionary.type):
        values = [zlib.crc32(text.encode()) for text in coded.dictionary.to_pylist()]
        hashed = np.array(values, np.uint64)
    else:
        hashed = coded.dictionary.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.uint64)
    place = ((hashed * MIX) >> np.uint64(32)) % np.uint64(buckets)
    codes: NDArray[np.integer] = coded.indices.fill_null(len(hashed)).to_numpy(zero_copy_only=False)
    found: NDArray[np.int32] = np.append(place, np.uint64(0)).astype(np.int32)[codes]
    return found
