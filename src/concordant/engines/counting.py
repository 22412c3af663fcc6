"""One way to count a log, whichever engine does it; foreign errors come out as one clean line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import duckdb as library
import pyarrow as pa
from numpy.typing import NDArray

from concordant.engines import duckdb, memory
from concordant.errors import InputError, UsageError, did_you_mean
from concordant.log.formats import Log
from concordant.log.headers import with_header
from concordant.log.listed import Lists
from concordant.log.rows import is_array

__all__ = ["ENGINES", "Counter", "choose", "with_columns"]

ENGINES = ("duckdb", "memory")
LARGE = 8 << 20
TEXT = ("csv", "tsv", "json")
T = TypeVar("T")


@dataclass(frozen=True)
class Counter:
    """A log and the engine that counts it."""

    log: Log
    engine: str
    settings: duckdb.Settings

    def count_rows(self, roles: Mapping[str, str]) -> tuple[dict[str, pa.Array], NDArray[Any]]:
        """Count equal rows: the distinct values of each role and the number of rows of each distinct tuple."""
        return self._run(
            lambda: duckdb.count_rows(self.log, roles, self.settings),
            lambda: memory.count_rows(self._table(list(dict.fromkeys(roles.values()))), roles),
        )

    def count_lists(self, keys: Mapping[str, str], entries: Mapping[str, str]) -> Lists:
        """Bring together the rows of each list and count equal lists."""
        owner = next((role for role in ("session", "judgment") if role in keys), None)
        columns = list(dict.fromkeys([*keys.values(), *entries.values()]))
        return self._run(
            lambda: duckdb.count_lists(self.log, keys, entries, owner, self.settings),
            lambda: memory.count_lists(self._table(columns), keys, entries),
        )

    def placed_rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number and the raw values of every row, in the order of the log."""
        if self.log.format in ("relation", "database"):
            table = duckdb.table(self.log, columns, self.settings)
            return memory.table_rows(table, columns)
        return memory.placed_rows(self.log, columns)

    def _table(self, columns: Sequence[str]) -> pa.Table:
        if self.log.format in ("relation", "database"):
            return duckdb.table(self.log, columns, self.settings)
        return memory.arrow_table(self.log, columns)

    def _run(self, with_duckdb: Callable[[], T], with_memory: Callable[[], T]) -> T:
        """Count with the engine; a text file that DuckDB refuses is read plainly, which answers or names the line."""
        try:
            if self.engine == "memory":
                return with_memory()
            try:
                return with_duckdb()
            except (library.InterruptException, RuntimeError) as error:  # how DuckDB passes on Ctrl-C
                if "interrupt" not in str(error).lower():
                    raise
                raise KeyboardInterrupt from None
            except library.OutOfMemoryException:
                raise InputError(
                    f"{self.log.name}: counting needs more memory than memory_limit="
                    f"{self.settings.memory_limit or 'DuckDB’s default'}; raise it"
                ) from None
            except library.Error:
                if self.log.format not in TEXT:
                    raise
                return with_memory()
        except (library.Error, pa.ArrowException) as error:
            raise InputError(f"{self.log.name}: cannot be read: {duckdb.message(error)}") from None


def with_columns(log: Log) -> Log:
    """Return the log with the names of its columns.

    The keys of a large JSON Lines file are gathered by DuckDB; where it cannot, the plain reader says why.
    """
    if log.format == "database":
        return replace(log, columns=duckdb.database_columns(log))
    if log.format == "json" and log.path is not None and log.path.stat().st_size > LARGE:
        try:
            asked = replace(log, array=is_array(log))
            return replace(asked, columns=duckdb.key_names(asked))
        except library.Error:
            pass
    return with_header(log)


def choose(log: Log, engine: str | None, memory_limit: str | None, threads: int | None) -> Counter:
    """Return the counter for a log: DuckDB for files and relations, memory for tables, unless told otherwise."""
    if engine is not None and engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; {did_you_mean(engine, ENGINES)}")
    if engine == "memory" and (memory_limit is not None or threads is not None):
        raise UsageError("memory_limit and threads belong to the engine duckdb")
    settings = duckdb.Settings(memory_limit, threads)
    bounded = memory_limit is not None or threads is not None
    if engine is None:
        engine = "memory" if log.format == "table" and not bounded else "duckdb"
    if engine == "duckdb" and _beyond_duckdb(log):
        engine = "memory"
    return Counter(log, engine, settings)


def _beyond_duckdb(log: Log) -> bool:
    """Whether DuckDB would misread the header: names that differ in case only, or (CSV) that hold a line end or stand
    below blank lines."""
    if log.format in ("csv", "tsv"):
        return log.header > 1 or any("\n" in column or "\r" in column for column in log.columns)
    lower = [column.lower() for column in log.columns]
    return len(set(lower)) < len(lower)
