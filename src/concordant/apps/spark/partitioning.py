"""Rows of a log on their way to the task that owns their query: packed by the sender, put together by the receiver.

A Spark row takes 40 bytes and more for a comparison; sent one by one they are most of the work. So the sender counts
equal rows of a block, sorts them by bucket, and sends for each bucket one row that holds an Arrow stream of columns as
narrow as their values allow (4 bytes for a comparison of small integers).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from concordant.apps.spark.checking import KEYS, ROWS
from concordant.errors import InputError
from concordant.io.engines import memory
from concordant.preferences.values import is_text

BUCKET = "concordant_bucket"
PACKED = pa.schema([(BUCKET, pa.int32()), ("block", pa.binary())])
BLOCK = 1 << 20
"""Rows that a sender packs at a time; with the limit of a receiver this bounds the memory of a Python worker."""
INTEGERS = (pa.int8(), pa.int16(), pa.int32())
SIDES = ("winner", "loser", "left", "right")
SAMPLE = 1 << 16
"""Rows by which a block is known whose rows repeat."""
BUCKET_BYTES = 32 << 20
"""Values of a bucket of queries, about."""


def buckets_for(frame: DataFrame, rows: int, width: int) -> int:
    """Return into how many buckets the queries are spread: so many that the features of one fit a task's memory."""
    said = frame.sparkSession.conf.get("spark.sql.shuffle.partitions", None)
    return max(-(-rows * width * 8 // BUCKET_BYTES), int(said) if said and said.isdigit() else 1, 1)


def beside_query(roles: Collection[str]) -> list[str]:
    """Return the roles by which rows without a query are dealt: of lists what names a list, else the items.

    They are refused or left out, and may be more than a task holds.
    """
    sides = [role for role in SIDES if role in roles]
    return sides or [role for role in reversed(KEYS) if role in roles and role != "query"]


def bucket_by_query(query: Column, buckets: int, roles: Collection[str]) -> Column:
    """Return the bucket of each row, which is that of its query; rows without one are dealt among all."""
    beside = [fn.when(query.isNull(), fn.col(role)) for role in beside_query(roles)]  # a null changes no hash
    return fn.pmod(fn.xxhash64(query, *beside), fn.lit(buckets)).cast("int")


class TooLarge(InputError):
    """A task met a query that it should not hold; which ones there are is found out in a second pass."""


def spread(
    batches: Iterator[pa.RecordBatch], roles: Sequence[str], counting: bool, *, by_query: bool = True
) -> Iterator[pa.RecordBatch]:
    """Pack rows with the columns ``roles`` and ``BUCKET``; with ``counting``, equal rows become one with a count.

    Blocks of which that leaves less than half are counted together before they are sent. ``by_query``: whether all
    rows of a query are of one bucket; else equal rows are.
    """
    held: list[pa.Table] = []
    size = 0
    for block in _blocks(batches):
        table = _counted(block, roles, by_query) if counting else block
        if counting and 2 * len(table) < len(block):
            held.append(table)
            size += len(table)
            if size < BLOCK:
                continue
            table = _counted_again(_joined(held))
            held, size = [table], len(table)
            if 2 * size < BLOCK:
                continue
            held, size = [], 0
        yield _packed(table)
    if held:
        yield _packed(_counted_again(_joined(held)) if len(held) > 1 else held[0])


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield rows ``BLOCK`` and a little at a time."""
    held: list[pa.Table] = []
    size = 0
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        size += len(batch)
        if size >= BLOCK:
            yield _joined(held)
            held, size = [], 0
    if size:
        yield _joined(held)


def _counted(table: pa.Table, roles: Sequence[str], by_query: bool) -> pa.Table:
    """Count equal rows: what memory counts, and what hardly any two rows of seem equal by the columns, but are."""
    asked = [*roles]
    if not by_query or ("query" in asked and pa.types.is_nested(table["query"].type)):
        asked.append(BUCKET)
    found, rows = memory.count_rows(table, {name: name for name in asked})
    counted = pa.table({**{name: _narrow(found[name]) for name in asked}, ROWS: rows})
    if len(counted) == len(table) and _repeats(counted.select(asked)):
        counted = _counted_again(counted)
    if BUCKET not in asked:
        counted = counted.append_column(BUCKET, _of_queries(table, counted))
    return counted


def _repeats(table: pa.Table) -> bool:
    """Whether a quarter of some rows are there more than once."""
    some = table.slice(0, SAMPLE)
    return 4 * len(some.group_by(some.column_names, use_threads=False).aggregate([])) < 3 * len(some)


def _of_queries(table: pa.Table, counted: pa.Table) -> pa.Array:
    """Return the bucket of each counted row, which is that of its query; those without one go to one of theirs."""
    if "query" not in counted.column_names:
        return pa.array(np.zeros(len(counted), np.int32))
    coded = _narrow(table["query"]).combine_chunks().dictionary_encode(null_encoding="encode")
    buckets = np.zeros(len(coded.dictionary), np.int32)
    buckets[coded.indices.to_numpy(zero_copy_only=False)] = table[BUCKET].to_numpy()
    known = coded.dictionary.cast(counted["query"].type)
    return pa.array(buckets[pc.index_in(counted["query"], known).to_numpy(zero_copy_only=False)])


def _packed(table: pa.Table) -> pa.RecordBatch:
    bucket = table[BUCKET].to_numpy()
    sorter = np.argsort(bucket.astype(np.uint16) if bucket.max() < 1 << 16 else bucket, kind="stable")
    columns = {name: _narrow(table[name]) for name in table.column_names if name != BUCKET}
    table = pa.table(columns).take(pa.array(sorter))
    ordered = bucket[sorter]
    begin = np.flatnonzero(np.diff(ordered, prepend=-1))
    blocks = [_stream(table.slice(at, end - at)) for at, end in zip(begin, [*begin[1:], len(sorter)], strict=True)]
    return pa.record_batch([pa.array(ordered[begin], pa.int32()), pa.array(blocks, pa.binary())], schema=PACKED)


def _narrow(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a column as it is sent: integers in as few bytes as they need, texts plain."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if is_text(kind):
        return column.cast(pa.large_string())
    if not pa.types.is_signed_integer(kind):
        return column
    ends = pc.min_max(column)
    low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
    for narrow in INTEGERS:
        bound = 1 << narrow.bit_width - 1
        if -bound <= low and high < bound:
            return column.cast(narrow) if narrow.bit_width < kind.bit_width else column
    return column


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def put_together(batches: Iterator[pa.RecordBatch], most: int, *, stopping: bool = True) -> pa.Table | None:
    """Return all rows that were sent to this task (None: nothing was), counting equal ones where there are many.

    With ``most`` rows and twice as many as after the last count, rows are counted again, so that what is held is in
    proportion to the distinct ones. Errors: TooLarge where ``stopping`` and one query has more than ``most`` of them;
    rows without one are no query.
    """
    parts: list[pa.Table] = []
    size, counted = 0, 0
    for batch in batches:
        for block in batch.column("block"):
            part = pa.ipc.open_stream(block.as_buffer()).read_all()
            parts.append(part)
            size += len(part)
            if size > max(most, 2 * counted):
                parts = [_fewer(parts, most, stopping)]
                size = counted = len(parts[0])
    if size > max(most, counted):
        return _fewer(parts, most, stopping)
    return _joined(parts) if parts else None


def _fewer(parts: Sequence[pa.Table], most: int, stopping: bool) -> pa.Table:
    table = _joined(parts)
    if ROWS in table.column_names:
        table = _counted_again(table)
    if stopping and len(table) > most:
        by_query = "query" in table.column_names
        each = pc.value_counts(table["query"].drop_null()).field("counts") if by_query else pa.array([len(table)])
        if (pc.max(each).as_py() or 0) > most:
            raise TooLarge(f"one query has more than {most:,} distinct judgments (rows, for lists)")
    return table


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts, promote_options="permissive")


def _counted_again(table: pa.Table) -> pa.Table:
    names = [name for name in table.column_names if name != ROWS]
    counted = table.group_by(names, use_threads=False).aggregate([(ROWS, "sum")])
    return counted.rename_columns([*names, ROWS]).select(table.column_names)


def some_queries(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Yield the queries of a task some at a time, in pieces of about so many rows.

    >>> votes = pa.table({"query": ["q", "p", "q", "r"], "winner": [1, 2, 3, 4]})
    >>> [piece["winner"].to_pylist() for piece in some_queries(votes, 2)]
    [[1, 3], [2, 4]]
    """
    if "query" not in table.column_names or len(table) <= rows + rows // 2:
        yield table
        return
    codes = table["query"].combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    counts = np.bincount(codes)
    piece = ((np.cumsum(counts) - 1) // rows)[codes]
    sorter = np.argsort(piece, kind="stable")
    sizes = np.bincount(piece)
    table = table.take(pa.array(sorter))
    begin = 0
    for size in sizes[sizes > 0].tolist():
        yield table.slice(begin, size)
        begin += size
