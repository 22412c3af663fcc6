"""Tables as files and as text for a pipe; a ranking as a table for a person."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet

from concordant.apps.commands.given import say_note
from concordant.apps.commands.saying import at_the_end, one_line
from concordant.errors import Unavailable, UsageError
from concordant.io.log.disk import check_replaced, in_place_of
from concordant.io.log.lakes import is_pattern
from concordant.ranking.rank import Ranking
from concordant.ranking.shown import LEFT, cells, heading, markdown_lines, markdown_rows, portions, remarks
from concordant.record import wrote

FORMULA = "^('*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet takes for a formula, or for one after what it leaves out; and what looks as if it were escaped."""
LONG = 1000
"""Entries of a list beyond which each of them stands in one line of JSON."""
ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".json", ".jsonl", ".md")


def check_output(
    name: str,
    log: str | None = None,
    what: str = "the log",
    *,
    option: str = "--output",
    endings: tuple[str, ...] = ENDINGS,
) -> None:
    """Refuse an output whose ending says nothing, that cannot be written or is the log, before any work is done."""
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise UsageError(f"{option} {name}: unknown ending {path.suffix!r}; allowed: {', '.join(endings)}")
    if path.is_dir():
        raise UsageError(f"{option} {name} is a directory; name a file")
    check_replaced(path, option)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{option} {name}: the folder {path.parent} does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(f"{option} {name}: no permission to write in the folder {path.parent}")
    for one in getattr(log, "names", (log,)) if log else ():
        places = [place for place in (one, f"{one}.parts") if os.path.isdir(place)]  # the latter: a store's segments
        if any(Path(place).resolve() in (folder, *folder.parents) for place in places):
            raise UsageError(f"{option} {name} lies in the folder of {what}; name another folder")
        if is_pattern(one) and fnmatch(os.path.abspath(name), os.path.abspath(one)):
            raise UsageError(f"{option} {name} would be a file of {what} {one}; name another file")
        if path.exists() and os.path.exists(one) and path.samefile(one):
            raise UsageError(f"{option} {name} is {what} itself; name another file")


def output_folder(name: str) -> Path:
    """Return the folder for the files of a command. Errors (UsageError): no name, a file, no permission to make it."""
    folder = Path(name)
    if not name:
        raise UsageError("--output is empty; name a folder")
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise UsageError(f"--output {name}{'' if there == folder else f': {there.name}'} is a file; name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Unavailable(f"--output {name}: no permission to write in the folder {there}")
    return folder


def is_folder(output: str) -> bool:
    """Whether an output is a folder or an address for the executors to write to, and not a file for the driver."""
    return output.endswith("/") or "://" in output or not Path(output).suffix


def check_folder(output: str) -> None:
    """Refuse a folder that holds something already, before any work is done."""
    path = Path(output)
    if "://" in output or not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"--output {output} is a file; name a folder, or a file with an ending")
    if any(path.iterdir()):
        raise UsageError(f"--output {output}: the folder is not empty; name another one")


def write(table: pa.Table, name: str) -> None:
    """Write a table by the ending of the name, whole or not at all; a link stays one."""
    ending = Path(name).suffix.lower()

    def fill(temporary: str) -> None:
        if ending in (".csv", ".tsv"):
            Path(temporary).write_bytes(as_csv(table, "," if ending == ".csv" else "\t"))
        elif ending == ".parquet":
            pa.parquet.write_table(table, temporary, write_page_checksum=True)
        elif ending == ".md":
            Path(temporary).write_bytes(_as_markdown(table, first=True))
        elif ending in (".arrow", ".feather"):
            pa.feather.write_feather(table, temporary, compression="uncompressed")
        else:
            rows = (json.dumps(plain(row), ensure_ascii=False, allow_nan=False) for row in table.to_pylist())
            text = "\n".join(rows) + "\n" if ending == ".jsonl" else "[\n" + ",\n".join(rows) + "\n]\n"
            Path(temporary).write_text(text, encoding="utf-8")

    _put(name, fill)
    wrote(name, rows=len(table))


def write_parts(parts: Iterable[pa.Table], name: str) -> int:
    """Write tables of one schema as one, part by part, by the ending of the name; return the number of rows."""
    ending = Path(name).suffix.lower()
    rows = 0

    def fill(temporary: str) -> None:
        nonlocal rows
        writer: Any = None
        with open(temporary, "wb") as file:
            for part in parts:
                if ending in (".parquet", ".arrow", ".feather"):
                    if writer is None:
                        if ending == ".parquet":
                            writer = pa.parquet.ParquetWriter(file, part.schema, write_page_checksum=True)
                        else:
                            writer = pa.ipc.new_file(file, part.schema)
                    writer.write_table(part)
                else:
                    file.write(_lines(part, ending, first=rows == 0))
                rows += len(part)
            if ending == ".json":
                file.write(b"\n]\n")
            if writer is not None:
                writer.close()

    _put(name, fill)
    wrote(name, rows=rows)
    return rows


def _lines(part: pa.Table, ending: str, *, first: bool) -> bytes:
    if ending in (".csv", ".tsv"):
        text = as_csv(part, "," if ending == ".csv" else "\t")
        return text if first else text[text.index(b"\n") + 1 :]
    if ending == ".md":
        return _as_markdown(part, first=first)
    rows = [json.dumps(plain(row), ensure_ascii=False, allow_nan=False) for row in part.to_pylist()]
    if ending == ".jsonl":
        return "".join(f"{row}\n" for row in rows).encode()
    return (("[\n" if first else ",\n") + ",\n".join(rows)).encode()


def _as_markdown(table: pa.Table, *, first: bool) -> bytes:
    """A table for people, with its head if it is the first part: four decimals, – for what is missing."""
    rows = ([_for_people(value) for value in row.values()] for row in table.to_pylist())
    number = (pa.types.is_integer, pa.types.is_floating)
    right = [field.name for field in table.schema if any(kind(field.type) for kind in number)]
    lines = markdown_rows(table.column_names, rows, right) if first else markdown_lines(rows)
    return "".join(f"{line}\n" for line in lines).encode()


def _for_people(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "–" if value is None else "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def write_text(text: str, name: str) -> None:
    """Write a text, whole or not at all."""
    _put(name, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))


def write_json(data: Mapping[str, Any], name: str, step: Callable[[int, int], object] | None = None) -> None:
    """Write nested data as one JSON document, whole or not at all: of a long list each entry in a line of its own.

    ``step`` hears how many entries of it are done, of how many.
    """

    def fill(temporary: str) -> None:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write("{")
            for place, (key, value) in enumerate(data.items()):
                file.write(f"{',' if place else ''}\n {json.dumps(key)}: ")
                file.writelines(_nested(value, step))
            file.write("\n}\n")

    _put(name, fill)


def _nested(value: Any, step: Callable[[int, int], object] | None) -> Iterator[str]:
    if not isinstance(value, list) or len(value) <= LONG:
        yield json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=1).replace("\n", "\n ")
        return
    for place, one in enumerate(value):
        yield f"{',' if place else '['}\n  {json.dumps(plain(one), ensure_ascii=False, allow_nan=False)}"
        if step is not None and place % LONG == LONG - 1:
            step(place + 1, len(value))
    yield "\n ]"


def put_file(name: str | os.PathLike[str], fill: Callable[[str], object], *, option: str = "--output") -> None:
    """Write a file whole or not at all: ``fill`` writes to a temporary file beside it, which then takes its place.

    A link stays one. Errors (UsageError): what the disk refuses; ``option`` is what named the file.
    """
    with in_place_of(name, option, at_the_end) as temporary:
        fill(str(temporary))


def _put(name: str, fill: Callable[[str], object]) -> None:
    check_output(name)
    put_file(name, fill)


def as_csv(table: pa.Table, delimiter: str = ",") -> bytes:
    """CSV with quotes only where needed; infinite bounds are ``inf`` and ``-inf``, absent ones empty.

    With ``--spreadsheet-safe`` a text that begins like a formula, or with ' before such a beginning, gets one more ' in
    front: taking one away gives the text back. Numbers stay as they are.
    """
    header = delimiter.join(table.column_names) + "\n"
    if len(table) == 0:
        return header.encode()
    columns = [_as_text(table[name].combine_chunks(), delimiter) for name in table.column_names]
    lines = pc.binary_join_element_wise(*columns, pa.scalar(delimiter, pa.large_string()))
    return (header + "\n".join(lines.to_pylist()) + "\n").encode()


def _as_text(column: pa.Array, delimiter: str) -> pa.Array:
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    text = pc.fill_null(column.cast(pa.large_string()), "")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return text
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("spreadsheet_safe"):
        text = pc.replace_substring_regex(text, FORMULA, r"'\1")
    quote = pa.scalar('"', pa.large_string())
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, pa.scalar("", quote.type))
    return pc.if_else(pc.match_substring_regex(text, f'[\r\n"{delimiter}]|^ | $'), quoted, text)


def put_table(table: pa.Table) -> None:
    """Show a table on a terminal, print CSV into a pipe."""
    if sys.stdout.isatty():
        show_table(table)
    else:
        print_csv(table)


def print_csv(table: pa.Table) -> None:
    """Write a table to standard output."""
    sys.stdout.buffer.write(as_csv(table))
    sys.stdout.buffer.flush()


def plain(value: Any) -> Any:
    """Return nested data as JSON can hold it: infinities become the texts "inf" and "-inf", NaN becomes null."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def show(board: Ranking, *, rows: int | None, quiet: bool, table: bool) -> None:
    """Print a table on a terminal, CSV into a pipe; notes to stderr."""
    if table:
        if sys.stdout.isatty():
            _print_table(board, rows)
        else:
            print_csv(board.to_arrow())
    for note in remarks(board):
        say_note(note, quiet=quiet)


def show_table(table: pa.Table, rows: int = 40) -> None:
    """Print the first rows of a table on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = Table(header_style="bold", box=None, pad_edge=False)
    shown = [name for name in table.column_names if table[name].null_count < len(table)]
    for name in shown:
        words = pa.types.is_string(table[name].type) or pa.types.is_large_string(table[name].type)
        longest = max(map(len, name.split("_")))  # a header may be broken between its words only
        view.add_column(
            name.replace("_", " "), justify="left" if words else "right", overflow="fold", min_width=longest
        )
    for row in table.slice(0, rows).select(shown).to_pylist():
        view.add_row(*[Text(one_line(_for_people(value))) for value in row.values()])
    console = Console()
    console.print(view)
    if len(table) > rows:
        console.print(f"… {len(table) - rows:,} more rows (--output F for all)", style="dim")


def _print_table(board: Ranking, asked: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    shown, more = portions(board, asked)
    for start, last, end in shown:
        title = None if len(board.queries) == 1 else Text(one_line(f"query {board.queries[board.query[start]]}"))
        view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
        names = heading(board, start, end)
        for name in names:
            view.add_column(name, justify="left" if name in LEFT else "right", overflow="fold")
        for i, row in enumerate(cells(board, names, start, last), start):
            if i > start and board.provisional[i] and not board.provisional[i - 1]:
                view.add_row()
            view.add_row(*[Text(one_line(cell)) for cell in row])
        console.print(view)
        if last < end:
            console.print(f"… {end - last:,} more rows of this query (--rows, or --output F for all)", style="dim")
    if more:
        console.print(f"… {more:,} more queries (--output F for all)", style="dim")
