"""Tables that are no logs (features, scores, labels) as DataFrames: of files, folders, URIs, catalogues, sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.engines.counting import open_log
from concordant.errors import UsageError
from concordant.spark.frames import located, raw_frame

__all__ = ["PLACE", "Table"]

READ = ("parquet", "csv", "tsv", "catalogue", "frame", "table", "arrow")
PLACE = ("file", "block", "row")
"""Columns by which rows sort as they stand: file, place in the file, row; in a DataFrame its own order."""


@dataclass(frozen=True, eq=False)
class Table:
    """A DataFrame with the columns c0, c1, …, and what these are called where it comes from."""

    frame: DataFrame
    columns: tuple[str, ...]
    name: str

    @classmethod
    def of(cls, source: Any, session: SparkSession) -> Table:
        """Return what a source holds; texts of CSV files stay texts, to be read as everywhere.

        ``source`` is a DataFrame, a file, folder or URI (.parquet .csv .tsv), ``spark::TABLE`` of the catalogue, or a
        table in memory. Errors: InputError; UsageError for other formats.
        """
        log = located(source)
        if log.format not in READ:
            raise UsageError(
                f"{log.name}: on Spark features, scores and labels are tables (.parquet, .csv, .tsv, spark::TABLE, "
                f"DataFrames), not {log.format}; write them as Parquet"
            )
        log = open_log(log, session, None, None).log
        roles = {f"c{place}": column for place, column in enumerate(log.columns)}
        return cls(raw_frame(log, roles, session), tuple(log.columns), log.name)

    def placed(self) -> Table:
        """Return the table with the columns ``PLACE``."""
        file, block = fn.lit(""), fn.lit(0).cast("bigint")
        try:
            where = self.frame.metadataColumn("_metadata")
            frame = self.frame.withColumns({"file": where["file_path"], "block": where["file_block_start"]})
        except PySparkException:  # no table of files
            frame = self.frame.withColumns({"file": file, "block": block})
        return Table(frame.withColumn("row", fn.monotonically_increasing_id()), self.columns, self.name)

    def column(self, name: str) -> Any:
        """Return a column by the name that it has in the source."""
        return fn.col(f"c{self.columns.index(name)}")

    def type_of(self, name: str) -> str:
        """Return the type of a column as Spark writes it."""
        kinds: dict[str, str] = dict(self.frame.dtypes)
        return kinds[f"c{self.columns.index(name)}"]
