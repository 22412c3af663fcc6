"""Tables as files and as text for a pipe; a ranking as a table for a person."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet

from concordant.apps.commands.given import say_note
from concordant.apps.commands.saying import at_the_end, one_line
from concordant.errors import UsageError
from concordant.io.log.disk import check_replaced, in_place_of
from concordant.preferences.notes import Note
from concordant.preferences.status import Status
from concordant.ranking.flags import FLAGS, flag_said
from concordant.ranking.lack_of_fit import rejected
from concordant.ranking.rank import Ranking
from concordant.ranking.structures import structure
from concordant.ranking.summary import term_of

FORMULA = "^('*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
"""What a spreadsheet takes for a formula, or for one after what it leaves out; and what looks as if it were escaped."""
ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".json", ".jsonl")


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
        raise UsageError(f"{option} {name}: no permission to write in the folder {path.parent}")
    inside = [log, f"{log}.parts"] if log else []  # the latter holds a store's segments
    if any(os.path.isdir(place) and folder.samefile(place) for place in inside):
        raise UsageError(f"{option} {name} lies in the folder of {what}; name another folder")
    if log is not None and path.exists() and os.path.exists(log) and path.samefile(log):
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
        raise UsageError(f"--output {name}: no permission to write in the folder {there}")
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
        elif ending in (".arrow", ".feather"):
            pa.feather.write_feather(table, temporary, compression="uncompressed")
        else:
            rows = (json.dumps(plain(row), ensure_ascii=False, allow_nan=False) for row in table.to_pylist())
            text = "\n".join(rows) + "\n" if ending == ".jsonl" else "[\n" + ",\n".join(rows) + "\n]\n"
            Path(temporary).write_text(text, encoding="utf-8")

    _put(name, fill)


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
    return rows


def _lines(part: pa.Table, ending: str, *, first: bool) -> bytes:
    if ending in (".csv", ".tsv"):
        text = as_csv(part, "," if ending == ".csv" else "\t")
        return text if first else text[text.index(b"\n") + 1 :]
    rows = [json.dumps(plain(row), ensure_ascii=False, allow_nan=False) for row in part.to_pylist()]
    if ending == ".jsonl":
        return "".join(f"{row}\n" for row in rows).encode()
    return (("[\n" if first else ",\n") + ",\n".join(rows)).encode()


def write_json(data: Any, name: str) -> None:
    """Write nested data as one JSON document, whole or not at all."""
    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    _put(name, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))


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
    if not quiet:
        for note in remarks(board):
            say_note(note)


def remarks(board: Ranking) -> list[str]:
    """What a reader should know before trusting the table."""
    notes, of = [*_right(board), *board.notes], len(board.queries)
    if stopped := int((board.status["status"] == Status.STOPPED).sum()):
        text = "{queries:,} of {of:queries} stopped before convergence"
        notes.append(Note("queries stopped", text, queries=stopped, of=of))
    if split := len(np.unique(board.query[(board.component > 1) & (board.rank > 0)])):
        text = (
            "{of:the items fall|in {queries:queries} the items fall} into groups that were never compared with each "
            "other: ranks restart in each (column component)"
        )
        notes.append(Note("components", text, queries=split, of=of))
    notes += _provisional(board)
    for flag in FLAGS:
        codes = board.item[board.flag & flag.code > 0]
        if len(codes) and (flag.needs_prior or structure(board.structure).reads != "exposures"):  # it has said so
            items = [board.items[i] for i in dict.fromkeys(codes[:5].tolist())]
            words = flag_said(flag, len(codes), structure(board.structure).unlimited)
            shown = ", ".join([*map(str, items), *["…"] * (len(codes) > 5)])
            notes.append(Note(flag.label, words + " ({shown})", items=items, rows=len(codes), shown=shown))
    if of == 1:
        for name, value in board.coefficients.items():
            if not name.startswith("s.e."):
                error = board.coefficients.get(f"s.e. of {name}", [math.nan])[0]
                text = "coefficient {term}: {value:.4g}" + (" ± {error:.3g}" if np.isfinite(error) else "")
                notes.append(
                    Note("coefficient", text, term=term_of(name), name=name, value=float(value[0]), error=float(error))
                )
    return notes


def _provisional(board: Ranking) -> list[Note]:
    """Which items stand apart, by why they do."""
    least = 0 if board.judged is None else board.judged.least
    few = board.provisional & ((board.judgments < least) | (board.flag == 0))
    notes = []
    for chosen, name, why in (
        (few, "few judgments", "with fewer than {least:judgments}" if least else "with few judgments"),
        (board.provisional & ~few, "undecided", "to which the judgments leave more than half of the places"),
    ):
        codes = board.item[chosen]
        if len(codes):
            items = [board.items[i] for i in dict.fromkeys(codes[:5].tolist())]
            shown = ", ".join([*map(str, items), *["…"] * (len(codes) > 5)])
            text = "{rows:items} " + why + " {rows:stands|stand} apart after the ranking ({shown})"
            notes.append(Note(name, text, items=items, rows=len(codes), shown=shown, least=least))
    return notes


def _right(board: Ranking) -> list[Note]:
    """What the scores are right for, and whether anything speaks against it; nothing where a test does."""
    where = structure(board.structure).right
    if not where or (board.lack_of_fit is not None and rejected(board.lack_of_fit)):
        return []
    tested = np.zeros(0) if board.lack_of_fit is None else board.lack_of_fit[~np.isnan(board.lack_of_fit)]
    text = "the scores are right where {where}"
    if board.contradicted is not None and len(board.contradicted):
        if len(tested) == 1:
            text += " (lack of fit: p = {p:.2g})"
    elif len(tested) == 1:
        text += "; nothing speaks against it (lack of fit: p = {p:.2g})"
    elif len(tested):
        text += "; nothing speaks against it (lack of fit tested in {tested:queries})"
    elif board.lack_of_fit is not None or structure(board.structure).expects:
        text += "; that was not tested"
    return [Note("right where", text, where=where, p=float(tested[0]) if len(tested) else None, tested=len(tested))]


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
        cells = (f"{x:.4f}" if isinstance(x, float) else "–" if x is None else one_line(str(x)) for x in row.values())
        view.add_row(*[Text(cell) for cell in cells])
    console = Console()
    console.print(view)
    if len(table) > rows:
        console.print(f"… {len(table) - rows:,} more rows (--output F for all)", style="dim")


def _print_table(board: Ranking, asked: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    begin = np.flatnonzero(np.diff(board.query, prepend=-1)) if len(board) else np.zeros(0, int)
    ends = np.append(begin[1:], len(board))
    split = bool(((board.component > 1) & (board.rank > 0)).any())
    rows = asked or (60 if len(board) <= 60 and len(begin) == 1 else 20)
    shown_queries = list(zip(begin, ends))[: max(1, 60 // rows)]
    arrow = board.to_arrow()
    for start, end in shown_queries:
        last = min(end, start + rows)
        title = None if len(board.queries) == 1 else Text(one_line(f"query {board.queries[board.query[start]]}"))
        view = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for name in (
            "component",
            "rank",
            "ranks",
            "item",
            "score",
            f"{100 * board.level:g}% interval",
            "judgments",
            "flag",
        ):
            if (name == "component" and not split) or (name == "ranks" and board.interval == "none"):
                continue
            if name == "flag" and not board.flag[start:end].any():
                continue
            view.add_column(name, justify="left" if name in ("item", "flag") else "right", overflow="fold")
        for i in range(start, last):
            if i > start and board.provisional[i] and not board.provisional[i - 1]:
                view.add_row()
            row = {name: arrow[name][i].as_py() for name in arrow.column_names}
            cells: list[Any] = [str(row["component"])] if split else []
            cells.append("–" if row["rank"] is None else str(row["rank"]))
            if board.interval != "none":
                cells.append("–" if row["rank_lower"] is None else f"{row['rank_lower']}–{row['rank_upper']}")
            cells += [Text(one_line(str(row["item"]))), f"{row['score']:.3f}", _interval(row), f"{row['judgments']:,}"]
            if board.flag[start:end].any():
                cells.append(row["flag"])
            view.add_row(*cells)
        console.print(view)
        if last < end:
            console.print(f"… {end - last:,} more rows of this query (--rows, or --output F for all)", style="dim")
    if len(shown_queries) < len(begin):
        console.print(f"… {len(begin) - len(shown_queries):,} more queries (--output F for all)", style="dim")


def _interval(row: dict[str, Any]) -> str:
    low, high = row["lower"], row["upper"]
    if math.isnan(low):
        return "–"
    return " … ".join("−∞" if x == -math.inf else "∞" if x == math.inf else f"{x:.2f}" for x in (low, high))
