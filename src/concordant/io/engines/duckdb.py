"""The embedded engine: DuckDB counts a log out of core, and hands over the counts batch by batch.

How far DuckDB is with a statement, told as a stage while it runs.

Statements over rows that come batch by batch and need not fit into memory.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import duckdb as library
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.io.engines import memory, sql
from concordant.io.engines.columns import narrow, whole
from concordant.io.log.disk import check_regular, state_of
from concordant.io.log.formats import Log, intact
from concordant.io.log.rows import BLANK
from concordant.io.log.union import Shape, is_even, shapes
from concordant.memory import engine_share
from concordant.preferences.lists import RawLists
from concordant.preferences.values import flat, is_text
from concordant.progress import listener, stage

EVERY = 0.2
"""Seconds between two looks."""


@contextmanager
def watched(connection: Any, what: str) -> Iterator[None]:
    """Tell how much of what the connection runs inside the ``with`` is done, in per cent as DuckDB estimates it."""
    if listener() is None:
        yield
        return
    ended = threading.Event()
    with stage(what, even=False) as at:  # scanning goes evenly, what follows it does not show

        def look() -> None:
            while not ended.wait(EVERY):
                if (done := connection.query_progress()) >= 0:
                    at.reach(done, 100)

        looking = threading.Thread(target=look, name="duckdb-progress", daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()


BATCH = 1 << 18
MOST_THREADS = 1024
SEES_TRUNCATED_GZIP = int(duckdb.__version__.split(".")[0]) >= 2
"""Older ones read such a file as far as it goes."""
CLASS = re.compile(r"^\w+ Error: | - file system.*$", re.DOTALL)
LONGEST = 1 << 24
ATTEMPTS = 100
"""How often a database file that was replaced while it was opened is opened again."""
"""Bytes of the longest line or object that DuckDB has to read; it sets aside buffers in proportion."""


class Settings:
    """How much memory and how many threads DuckDB may use."""

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        if threads is not None and not (isinstance(threads, int) and 1 <= threads <= MOST_THREADS):
            raise UsageError(f"threads must be an integer from 1 to {MOST_THREADS:,}, not {threads!r}")
        if memory_limit is not None and str(memory_limit).strip().startswith("-"):
            raise UsageError(f"memory_limit must be a size above 0, such as 4GB, not {memory_limit!r}")
        self.memory_limit = memory_limit
        self.threads = threads


@contextmanager
def connected(settings: Settings, *, files: Iterable[Path] = (), ordered: bool = False) -> Iterator[Any]:
    """Open a private in-memory database that sees the ``files`` it is for and a folder of its own to spill to.

    Nothing else can be opened by it, whatever a statement, a view or a name in a file says: no other file, no address,
    no extension; its configuration is locked. Errors (InputError): a file that is a pipe, a device or a folder.
    """
    files = list(files)
    for path in files:
        if path.exists():  # a log of changes need not be there
            check_regular(path)
    with tempfile.TemporaryDirectory(prefix="concordant-") as folder:
        config: dict[str, str] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": folder,
            "preserve_insertion_order": "true" if ordered else "false",
        }
        most, threads = engine_share(settings.memory_limit, settings.threads)
        if most is not None:
            config["memory_limit"] = most
        if threads is not None:
            config["threads"] = str(threads)
        try:
            connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise UsageError(f"DuckDB refuses memory_limit {settings.memory_limit!r}: {message(error)}") from None
        _confine(connection, [Path(folder)], files)
        try:
            with _interrupted():
                yield connection
        finally:
            connection.close()


def _confine(connection: Any, folders: Iterable[Path], files: Iterable[Path]) -> None:
    """Take from a connection all that it does not need, and the means to take it back."""
    told = "false" if listener() is None else "true"  # DuckDB draws one where Python is interactive; counts only with
    connection.execute(f"SET enable_progress_bar = {told}")
    connection.execute("SET enable_progress_bar_print = false")
    allowed = [name for path in files for name in dict.fromkeys((str(path.absolute()), pattern(path)))]
    connection.execute(f"SET allowed_directories = [{', '.join(sql.literal(str(folder)) for folder in folders)}]")
    connection.execute(f"SET allowed_paths = [{', '.join(map(sql.literal, allowed))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def pattern(path: Path) -> str:
    """Return a path as the pattern that only it matches: DuckDB takes the paths of tables for patterns.

    >>> pattern(Path("/logs/day[1]*.csv"))
    '/logs/day[[]1][*].csv'
    """
    return glob.escape(str(path.absolute()))


def with_log(database: Path) -> list[Path]:
    """Return a database file, where a link to it leads, and the logs of changes that DuckDB may keep beside either."""
    places = [str(path.absolute()) for path in (database, Path(os.path.realpath(database)))]
    logs = [f"{place}{log}" for place in places for log in (".wal", ".wal.checkpoint")]
    for log in (".wal?", ".wal.checkpoint?"):  # where DuckDB 2 looks for it
        logs += [place.replace("?", log, 1) for place in places if "?" in place]
    return [Path(place) for place in (*places, *logs)]


@contextmanager
def _interrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt where DuckDB passes on Ctrl-C as an error of its own."""
    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupt" not in str(error).lower():
            raise
        raise KeyboardInterrupt from None


def message(error: BaseException) -> str:
    """Return what DuckDB says in one line, without its class prefix and its advice on its own options."""
    text = str(error).strip().split("\n\n")[0]
    if "disabled by configuration" in text or "disabled through configuration" in text:
        return f"it would open what it was not asked for, which is refused: {CLASS.sub('', text)[:160]}"
    for cut in ("\nPossible fixes", "\nPossible Solution", " Try ", "\nLINE "):
        text = text.split(cut)[0]
    for prefix in ("Invalid Input Error: ", "IO Error: ", "Binder Error: ", "Catalog Error: ", "Parser Error: "):
        text = text.removeprefix(prefix)
    return " ".join(text.split())[:240].rstrip(". ")


@contextmanager
def _source(
    log: Log, settings: Settings, columns: Sequence[str], *, ordered: bool = False
) -> Iterator[tuple[Any, str, dict[str, str]]]:
    """Yield a way to run a statement, the source as SQL, and the name that each column has there."""
    names = {column: column for column in columns}
    if log.format == "relation":
        unused = f"concordant_{uuid.uuid4().hex}"  # a name that no table of the user has
        with stage("counting rows"), _interrupted():
            yield (lambda text: log.table.query(unused, text)), unused, names
        return
    if log.format == "stream":
        kinds = memory.kinds_of(log, columns)
        with (
            connected(settings, ordered=ordered) as connection,
            watched(connection, "counting rows"),
            _streamed(connection, "concordant_log", lambda: memory.batches(log, columns), kinds) as run,
        ):
            yield run, "concordant_log", names
        return
    files = with_log(log.path) if log.format == "database" and log.path is not None else log.paths
    with (
        connected(settings, files=files, ordered=ordered) as connection,
        watched(connection, "counting rows"),
        intact(log, columns),
    ):
        run = connection.sql
        if log.format == "database":
            yield run, _attached(connection, log), names
        elif log.format not in ("csv", "tsv", "json", "parquet"):
            connection.register("concordant_log", _without_views(memory.arrow_table(log, columns)))
            yield run, "concordant_log", names
        elif is_even(log, columns):
            yield run, *_even(log, columns)
        else:
            parts = [_shaped(connection, shape, columns, at) for at, shape in enumerate(shapes(log, columns))]
            yield run, f"({' UNION ALL '.join(parts)})", {column: f"k{at}" for at, column in enumerate(columns)}


@contextmanager
def _streamed(
    connection: Any, name: str, batches: Callable[[], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> Iterator[Callable[[str], Any]]:
    """Yield what runs a statement over batches, a table of that name; what they raise comes out as it is."""
    raised: list[BaseException] = []

    def source() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches()
        except BaseException as error:
            raised.append(error)
            raise

    def run(statement: str) -> Any:
        connection.register(name, pa.RecordBatchReader.from_batches(schema, source()))
        return connection.sql(statement)

    try:
        yield run
    except library.InterruptException:
        raise
    except (library.Error, pa.ArrowException, OSError):
        if raised:
            raise raised[0] from None
        raise


def _even(log: Log, columns: Sequence[str], beside: str = "") -> tuple[str, dict[str, str]]:
    """Return what reads files that have the same columns, and the name that each column has there.

    ``beside`` is the name of one more column, which says which file a row is of.
    """
    if log.format in ("csv", "tsv"):
        source = _trimmed(log, _read_csv(log, beside), beside)
        return source, {column: f"c{log.columns.index(column)}" for column in columns}
    names = {column: column for column in columns}
    if log.format == "json":
        return _read_json(log, columns, beside), names
    wider = ", union_by_name = true" if log.parts else ""  # integers of several widths
    return f"read_parquet({_path(log)}, hive_partitioning = false{wider}{_naming(beside)})", names


def _naming(beside: str) -> str:
    return f", filename = {sql.literal(beside)}" if beside else ""


def _shaped(connection: Any, shape: Shape, columns: Sequence[str], at: int) -> str:
    """Return the statement that reads columns k0, k1, … of files that lack some of them, or have some by their folders.

    What the folders say is a table of its own, joined by the name of the file.
    """
    of_folder = [column for column in columns if shape.of_folder(column)]
    own = shape.own(columns)
    ways = {column: shape.log.inner.get(column, (column,)) for column in own}
    beside = f"concordant_file_{uuid.uuid4().hex}" if of_folder else ""
    source, names = _even(shape.log, list(dict.fromkeys(way[0] for way in ways.values())), beside)
    found = []
    for place, column in enumerate(columns):
        if column in of_folder:
            value = f"folders.k{of_folder.index(column)}"
        elif column not in own:
            value = "NULL"
        else:
            way = ways[column]
            value = f"log.{sql.identifier(names[way[0]])}"
            if way[1:] and shape.log.as_json:
                pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in way[1:])
                value = f"json_extract({value}, {sql.literal(pointer)})::VARCHAR"
                value = f"nullif({value}, 'null')"
            elif way[1:]:
                value += "".join(f".{sql.identifier(key)}" for key in way[1:])
        if shape.log.as_json:
            value = f"({value})::VARCHAR"
        elif (kind := _type_name(shape.target(column))) and (column not in own or shape.cast(column) is not None):
            value = f"({value})::{kind}"
        found.append(f"{value} AS k{place}")
    statement = f"SELECT {', '.join(found)} FROM {source} AS log"
    if not of_folder:
        return statement
    connection.register(f"concordant_folders_{at}", shape.values(of_folder))
    return f"{statement} LEFT JOIN concordant_folders_{at} AS folders ON log.{sql.identifier(beside)} = folders.path"


def _type_name(kind: pa.DataType | None) -> str:
    """Return how DuckDB writes a type that values of files become; nothing of others."""
    if kind is None or is_text(kind):
        return "VARCHAR"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    known = {"int64": "BIGINT", "double": "DOUBLE", "date32[day]": "DATE"}
    return known.get(str(kind), "")


def _without_views(found: pa.Table) -> pa.Table:
    """Return the table with texts of the usual kind: DuckDB 1.4 ends the process on views."""
    for place, field in enumerate(found.schema):
        if pa.types.is_string_view(field.type):
            found = found.set_column(place, field.name, found.column(place).cast(pa.large_string()))
    return found


def _path(log: Log) -> str:
    paths = [sql.literal(pattern(path)) for path in log.paths]
    return f"[{', '.join(paths)}]" if log.parts else paths[0]


def _read_csv(log: Log, beside: str = "") -> str:
    """Return the table function that reads a CSV file as texts, guessing nothing; columns are c0, c1, …"""
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(log.columns)))
    packed = "gzip" if log.gzipped else "uncompressed"
    return (
        f"read_csv({_path(log)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {sql.literal(log.delimiter)}, quote = '\"', escape = '\"', comment = '', nullstr = '', "
        f"allow_quoted_nulls = true, strict_mode = true, null_padding = false, ignore_errors = false, "
        f"compression = '{packed}', hive_partitioning = false, max_line_size = {LONGEST}, buffer_size = {2 * LONGEST}"
        f"{_naming(beside)})"
    )


def _trimmed(log: Log, source: str, beside: str = "") -> str:
    """Return the source with fields trimmed, where the log says so; what is empty then is missing."""
    if not log.trimmed:
        return source
    blank = sql.literal(BLANK)
    columns = ", ".join(f"nullif(trim(c{place}, {blank}), '') AS c{place}" for place in range(len(log.columns)))
    more = f", {sql.identifier(beside)}" if beside else ""
    return f"(SELECT {columns}{more} FROM {source})"


def _read_json(log: Log, columns: Sequence[str], beside: str = "") -> str:
    named = ", ".join(f"{sql.literal(column)}: 'JSON'" for column in columns)
    form = "array" if log.array else "newline_delimited"
    packed = "gzip" if log.gzipped else "uncompressed"  # DuckDB 1.4 knows no "none" for JSON
    return (
        f"read_json({_path(log)}, auto_detect = false, columns = {{{named}}}, format = '{form}', records = true, "
        f"compression = '{packed}', ignore_errors = false, hive_partitioning = false, maximum_object_size = {LONGEST}"
        f"{_naming(beside)})"
    )


def _attached(connection: Any, log: Log) -> str:
    schema, name = _table_of(connection, log)
    return f"concordant_file.{sql.identifier(schema)}.{sql.identifier(name)}"


def attach(connection: Any, path: Path, name: str) -> None:
    """Attach a database file to be read, as it is at one moment.

    DuckDB opens it twice, and from version 2 on takes the header from the first and the tables from the second: of a
    file that was replaced in between it would read parts of two, so that one is attached again.

    Errors: those of DuckDB; InputError for a file that changes all the time.
    """
    for _ in range(ATTEMPTS):
        before, failed = state_of(path), None
        try:
            connection.execute(f"ATTACH {sql.literal(str(path.absolute()))} AS {sql.identifier(name)} (READ_ONLY)")
        except duckdb.Error as error:
            failed = error
        if state_of(path) == before:
            if failed is not None:
                raise failed
            return
        if failed is None:
            connection.execute(f"DETACH {sql.identifier(name)}")
    raise InputError(f"{path}: was changed {ATTEMPTS} times while it was opened; read a copy of it")


def _table_of(connection: Any, log: Log) -> tuple[str, str]:
    """Attach the database of a log and return the schema and the name of its table."""
    attach(connection, log.paths[0], "concordant_file")
    found = connection.execute(
        "SELECT DISTINCT schema_name, table_name FROM duckdb_columns() WHERE database_name = 'concordant_file'"
    ).fetchall()
    for schema, name in sorted(found):
        if log.table in (name, f"{schema}.{name}"):
            return schema, name
    known = ", ".join(sorted(name for _, name in found)) or "none"
    raise InputError(f"{log.paths[0].name}: no table {log.table!r}; tables there: {known}")


def database_columns(log: Log) -> tuple[str, ...]:
    """Return the columns of a table in a database file."""
    with connected(Settings(), files=with_log(log.paths[0])) as connection:
        try:
            schema, name = _table_of(connection, log)
            rows = connection.execute(
                "SELECT column_name FROM duckdb_columns() WHERE database_name = 'concordant_file' "
                "AND schema_name = ? AND table_name = ? ORDER BY column_index",
                [schema, name],
            ).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{log.name}: cannot be opened as a DuckDB database: {message(error)}") from None
    return tuple(row[0] for row in rows)


def key_names(log: Log) -> dict[str, Any]:
    """Return the keys of all objects of a JSON Lines file, each with what lies under it."""
    packed = "gzip" if log.gzipped else "uncompressed"
    form = "array" if log.array else "newline_delimited"
    statement = (
        "SELECT json_group_structure(json) FROM "
        f"read_json_objects({_path(log)}, format = '{form}', compression = '{packed}', "
        f"hive_partitioning = false, maximum_object_size = {LONGEST})"
    )
    with connected(Settings(), files=log.paths) as connection, watched(connection, "looking for columns"):
        found = json.loads(connection.execute(statement).fetchall()[0][0] or "{}")
    if not isinstance(found, dict):
        raise library.InvalidInputException("not every line is an object")
    return dict(sorted(found.items()))


def count_rows(
    log: Log, roles: Mapping[str, str], settings: Settings
) -> tuple[dict[str, pa.Array], NDArray[np.integer]]:
    """Count equal rows of a log: the distinct values of each role and the number of rows of each distinct tuple."""
    columns = list(dict.fromkeys(roles.values()))
    with _source(log, settings, columns) as (run, source, names):
        statement = sql.count_rows(source, {role: names[column] for role, column in roles.items()})
        gathered = _gather(run(statement), len(roles) + 1)
    found = {role: gathered[place] for place, role in enumerate(roles)}
    return found, gathered[len(roles)].to_numpy(zero_copy_only=False)


def count_lists(
    log: Log, keys: Mapping[str, str], entries: Mapping[str, str], owner: str | None, settings: Settings
) -> RawLists:
    """Bring together the rows of each list and count equal lists; of the key ``owner`` one value is kept to show."""
    columns = list(dict.fromkeys([*keys.values(), *entries.values()]))
    with _source(log, settings, columns) as (run, source, names):
        statement = sql.count_lists(
            source,
            {role: names[column] for role, column in keys.items()},
            {role: names[column] for role, column in entries.items()},
            owner,
        )
        table = _reader(run(statement)).read_all()
    gathered = table["entries"].combine_chunks() if table["entries"].num_chunks else None
    if isinstance(gathered, pa.ChunkedArray):
        gathered = pa.concat_arrays(gathered.chunks) if gathered.num_chunks else None
    if gathered is None:
        empty = {role: pa.array([], pa.large_string()) for role in entries}
        return RawLists({role: flat(table[role]) for role in keys}, empty, np.zeros(1, np.int64), np.zeros(0, np.int64))
    offsets = gathered.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    rows = gathered.flatten()
    return RawLists(
        {role: flat(table[role]) for role in keys},
        {role: flat(rows.field(place)) for place, role in enumerate(entries)},
        offsets - offsets[0],
        table["lists"].to_numpy(),
    )


def table(log: Log, columns: Sequence[str], settings: Settings) -> pa.Table:
    """Return the chosen columns of a database table or a relation as an Arrow table, in their order."""
    with _source(log, settings, columns, ordered=True) as (run, source, names):
        chosen = ", ".join(sql.identifier(names[column]) for column in columns)
        return _reader(run(f"SELECT {chosen} FROM {source}")).read_all()


def ask(
    log: Log, columns: Sequence[str], settings: Settings, statement: Callable[[str, Mapping[str, str]], str]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over some columns of a log, made of the source and their names there."""
    with _source(log, settings, columns) as (run, source, names):
        found: list[tuple[Any, ...]] = run(statement(source, names)).fetchall()
        return found


def fetch(settings: Settings, files: Sequence[Path], *statements: str) -> list[list[pa.Array]]:
    """Run statements over files and return the columns of each result, narrow as counts of a log are."""
    with connected(settings, files=files) as connection, watched(connection, "adding up segments"):
        results = (connection.sql(statement) for statement in statements)
        return [_gather(result, len(result.columns)) for result in results]


def _reader(result: Any) -> Any:
    new = getattr(result, "to_arrow_reader", None)  # DuckDB 1.4 and later; fetch_record_batch before
    return new(BATCH) if new is not None else result.fetch_record_batch(BATCH)


def _gather(result: Any, width: int) -> list[pa.Array]:
    """Fetch a result batch by batch, integers as int32 where they fit, texts as dictionaries; one array a column."""
    parts: list[list[pa.Array]] = [[] for _ in range(width)]
    reader = _reader(result)
    kinds = [field.type for field in reader.schema]
    for batch in reader:
        for place in range(width):
            parts[place].append(narrow(batch.column(place)))
    return [whole(parts[place], kinds[place]) for place in range(width)]


UNITS = {"bytes": 1, "byte": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def memory_allowed(settings: Settings) -> int:
    """Return the bytes that DuckDB may use: the limit that was given, or most of the memory of the machine.

    >>> memory_allowed(Settings("512MiB")) == 512 << 20
    True
    """
    with connected(settings) as connection:
        try:
            said = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
        except library.OutOfMemoryException:
            return 0  # so little that not even the question fits
    number, unit = str(said).split()
    return int(float(number) * UNITS[unit])


def over_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, statement: str, settings: Settings, *, rows: int
) -> Iterator[pa.RecordBatch]:
    """Run a statement over the table ``stream`` and yield its rows, about so many at a time; what is large spills.

    Errors that the batches raise come out as they are; InputError where memory or disk do not suffice.

    >>> batch = pa.RecordBatch.from_pydict({"x": [3, 1, 2]})
    >>> found = over_stream([batch], batch.schema, "SELECT x FROM stream ORDER BY x", Settings(), rows=10)
    >>> [part.column(0).to_pylist() for part in found]
    [[1, 2, 3]]
    """
    with connected(settings) as connection, watched(connection, "sorting rows"):
        try:
            with _streamed(connection, "stream", lambda: batches, schema) as run:
                result = run(statement)
                new = getattr(result, "to_arrow_reader", None)  # DuckDB 1.4 and later; fetch_record_batch before
                yield from new(rows) if new is not None else result.fetch_record_batch(rows)
        except library.InterruptException:
            raise
        except library.OutOfMemoryException as error:
            raise InputError(f"sorting needs more memory or disk than there is: {message(error)}") from None
        except (library.Error, pa.ArrowException, OSError) as error:
            raise InputError(f"sorting a stream of rows failed: {message(error)}") from None
