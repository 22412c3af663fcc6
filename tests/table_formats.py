"""Delta and Iceberg tables for tests: what the libraries write, and what only other engines write, made by hand."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
Rows = list[dict[str, Any]]


def deletion_vector(rows: list[int]) -> dict[str, Any]:
    """Return a deletion vector as the log of a Delta table holds it (protocol of Delta, "Deletion Vector Format")."""
    bitmap = struct.pack("<ii", 12346, 1) + struct.pack("<HH", 0, len(rows) - 1) + struct.pack("<i", 16)
    bitmap += struct.pack(f"<{len(rows)}H", *sorted(rows))
    body = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    padded = body + b"\0" * (-len(body) % 4)
    text = base64.b85encode(padded).decode().translate(str.maketrans(B85, Z85))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(body), "cardinality": len(rows)}


def marked_delta(folder: Path, rows: Rows, deleted: list[int]) -> None:
    """Write a Delta table as Databricks does: columns by numbers in the files, and rows that are marked as deleted."""
    (folder / "_delta_log").mkdir(parents=True)
    names = list(rows[0])
    table = pa.table({f"col-{at}": [row[name] for row in rows] for at, name in enumerate(names)})
    pa.parquet.write_table(table, folder / "part-0.parquet")
    fields = [
        {"name": name, "type": "string", "nullable": True,
         "metadata": {"delta.columnMapping.id": at + 1, "delta.columnMapping.physicalName": f"col-{at}"}}
        for at, name in enumerate(names)
    ]  # fmt: skip
    features = ["deletionVectors", "columnMapping"]
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
                      "writerFeatures": features}},
        {"metaData": {"id": "00000000-0000-0000-0000-000000000000", "format": {"provider": "parquet", "options": {}},
                      "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                      "configuration": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true",
                                        "delta.columnMapping.maxColumnId": str(len(names))}, "createdTime": 0}},
        {"add": {"path": "part-0.parquet", "partitionValues": {}, "modificationTime": 0, "dataChange": True,
                 "size": (folder / "part-0.parquet").stat().st_size, "stats": json.dumps({"numRecords": len(rows)}),
                 "deletionVector": deletion_vector(deleted)}},
    ]  # fmt: skip
    log = "\n".join(json.dumps(action) for action in actions)
    (folder / "_delta_log" / f"{0:020d}.json").write_text(log)


def mark_iceberg(table: Any, deleted: list[int], *, by_equality: bool = False) -> None:
    """Add a file of deletes to an Iceberg table, as Spark and Flink write them: of rows of its first data file."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    file = next(iter(table.scan().plan_files())).file.file_path
    place = f"{table.location()}/data/deletes-{by_equality}.parquet"
    ids = [pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
           pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"})]  # fmt: skip
    deletes = pa.table([pa.array([file] * len(deleted)), pa.array(deleted, pa.int64())], schema=pa.schema(ids))
    path = Path(place.removeprefix("file://"))
    pa.parquet.write_table(deletes, path)
    content = DataFileContent.EQUALITY_DELETES if by_equality else DataFileContent.POSITION_DELETES
    made = DataFile.from_args(
        content=content, file_path=place, file_format=FileFormat.PARQUET, partition=Record(), spec_id=0,
        record_count=len(deleted), file_size_in_bytes=path.stat().st_size, equality_ids=[1] if by_equality else None,
        column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={},
        key_metadata=None, split_offsets=None, sort_order_id=None,
    )  # fmt: skip
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(made)
