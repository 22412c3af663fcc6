"""Delta tables, by ``deltalake`` (the extra ``delta``): the rows of one version, whatever files hold them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from concordant.errors import InputError, Unavailable
from concordant.io.log.objects import ACCESS, is_object
from concordant.io.log.stream import Stream, library


class DeltaTable(Stream):
    """A version of a Delta table, the newest where none is named. Rows that are marked as deleted are not in it.

    Errors: InputError for a table or a version that cannot be read; Unavailable without ``deltalake``.
    """

    versioned = True

    def __init__(self, address: str, name: str, version: int | None = None) -> None:
        self.name = name
        self._library = library("deltalake", "delta", f"{name}: a Delta table")
        if (odd := re.search("%25[0-9A-Fa-f]{2}", address)) is not None:
            taken = f"%{odd[0][3:]}"
            raise InputError(f"{name}: deltalake takes {taken} in the path of a Delta table for a letter; rename it")
        options = {"AWS_ALLOW_HTTP": "true"} if is_object(address) and _plain_http() else None
        try:
            self._table = self._library.DeltaTable(address, version=version, storage_options=options)
        except Exception as error:
            raise self._refused(error, version) from None
        self.version: int = self._table.version()

    @cached_property
    def _schema(self) -> pa.Schema:
        try:
            return pa.schema(self._table.schema().to_arrow())
        except Exception as error:
            raise self._refused(error) from None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
        try:
            query = self._library.QueryBuilder().register("log", self._table)
            pa.table(query.execute("SET datafusion.execution.target_partitions = 1"))  # one file after the other
            yield from pa.RecordBatchReader.from_stream(query.execute(f"SELECT {names} FROM log"))
        except GeneratorExit:
            raise
        except Exception as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception, version: int | None = None) -> InputError | Unavailable:
        said = " ".join(re.sub("\x1b\\[[0-9;]*m", "", str(error)).split())
        if version is not None and "version" in said.lower() and "Generic" in said:
            return InputError(f"{self.name}: a Delta table without a version {version}")
        if (missing := re.search(r"Object at location (\S.*?) not found", said)) is not None:
            return InputError(f"{self.name}: a Delta table of which a file is missing: {os.path.basename(missing[1])}")
        answers = [at for word in ("Server returned", "HTTP error", "error sending") if (at := said.find(word)) >= 0]
        if answers or ACCESS.search(said):
            said = said[answers[0] if answers else 0 :].split(": <?xml")[0]
            return Unavailable(f"{self.name}: a Delta table whose store does not answer as it should: {said[:200]}")
        return InputError(f"{self.name}: a Delta table that cannot be read: {_core(said)}")


def _plain_http() -> bool:
    found = (os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    return any(one.lower().startswith("http://") for one in found)


def _core(said: str) -> str:
    """Return a message of nested errors without the classes around it."""
    return re.sub(r"^(?:(?:Kernel|Generic|External|C Data|Parquet|Arrow)[\w ]*error: ?)+", "", said)[:200]
