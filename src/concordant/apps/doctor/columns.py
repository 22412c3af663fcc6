"""What the columns of a table look like: who judged, what was asked, when, what names a row; rows there twice.

Names tell, counts check: a column that is called an id names rows only where nearly all its values differ. One pass of
DuckDB over the file counts; rows are compared by a hash of all their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from concordant.errors import counted, shown
from concordant.io.engines import duckdb, sql
from concordant.io.engines.counting import TEXT, choose
from concordant.io.engines.memory import arrow_table
from concordant.io.log.formats import Log
from concordant.io.noted import JUDGES, PROMPTS
from concordant.preferences.layouts import plain
from concordant.preferences.values import decode, instant

TIMES = ("tstamp", "timestamp", "time", "date", "datetime", "created_at", "created", "submitted_at", "judged_at", "day")
ROWS = (
    "id",
    "uuid",
    "uid",
    "vote_id",
    "battle_id",
    "row_id",
    "event_id",
    "judgment_id",
    "comparison_id",
    "response_id",
)
QUERIES = ("question_id", "conversation_id", "query_id", "prompt_id", "key", "num", "index")
"""Names of columns that name rows where so many of their values differ: half, and nearly all."""
GROUPS = ("language", "lang", "category", "topic", "task_type", "domain", "level", "kind", "country", "group")
MOST = 2_000
"""Columns that are looked at."""
HALF, NEARLY = 0.5, 0.9
EPOCH = (631_152_000, 4_102_444_800)
"""Seconds since 1970 of the years 1990 to 2100: numbers between them are taken for times."""


@dataclass
class Looks:
    """What columns look like; ``distinct`` is exact for those that name rows, else about right."""

    log: Log
    rows: int
    again: int
    """Rows that equal an earlier one in every column."""
    distinct: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    judge: str | None = None
    prompt: str | None = None
    time: str | None = None
    identities: tuple[str, ...] = ()
    """Columns called ids of which nearly all values differ: they name rows."""
    groups: tuple[str, ...] = ()
    half_life: str = ""
    """About a tenth of the time there is, as an option of rank."""

    @property
    def repeated(self) -> str | None:
        """A column of which each value is that of one row, as its name says (no question), and some are there again."""
        names = (name for name in self.identities if plain(name) in ROWS)
        return next((name for name in names if self.distinct[name] < self.filled[name] == self.rows), None)

    def ask(self, column: str, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in which ``{column}`` is the column and ``{source}`` the log."""
        return duckdb.ask(
            self.log,
            [column],
            duckdb.Settings(),
            lambda source, names: statement.format(
                source=f"{source} AS log", column=f"log.{sql.identifier(names[column])}"
            ),
        )


def looks_of(log: Log, used: Sequence[str] = ()) -> Looks | None:
    """Look at the columns of a table; None where it has none. ``used`` are columns that have a role.

    Errors: ``duckdb.Error`` and MemoryError where its rows cannot be counted.
    """
    columns = list(log.columns[:MOST])
    if not columns:
        return None
    counter = choose(log, None, None, None)
    if counter.engine == "memory" and log.format in TEXT:
        log = Log(log.name, "table", log.columns, table=arrow_table(log, columns))
    elif log.format == "run":
        log = replace(log, format="table", path=None, parts=())

    def statement(source: str, names: Mapping[str, str]) -> str:
        every = [f"log.{sql.identifier(names[one])}" for one in columns]
        each = [f"count({one}), approx_count_distinct(hash({one}))" for one in every]
        return f"SELECT count(*), count(DISTINCT hash({', '.join(every)})), {', '.join(each)} FROM {source} AS log"

    ((rows, different, *counts),) = duckdb.ask(log, columns, duckdb.Settings(), statement)
    found = Looks(log, rows, rows - different)
    for place, name in enumerate(columns):
        found.filled[name], found.distinct[name] = counts[2 * place], counts[2 * place + 1]
    free = [name for name in columns if name not in used and found.filled[name]]
    found.identities = tuple(name for name in columns if plain(name) in (*ROWS, *QUERIES) and _names_rows(found, name))
    some = [name for name in free if found.distinct[name] > 1 and name not in found.identities]
    found.judge = next((name for name in some if plain(name) in JUDGES), None)
    found.prompt = next((name for name in some if plain(name) in PROMPTS and name != found.judge), None)
    found.time = next((name for name in some if plain(name) in TIMES), None)
    found.groups = tuple(name for name in some if plain(name) in GROUPS)
    return found


def _names_rows(found: Looks, name: str) -> bool:
    share = HALF if plain(name) in ROWS else NEARLY
    if found.filled[name] < 2 or found.distinct[name] < 0.8 * share * found.filled[name]:
        return False
    ((exact,),) = found.ask(name, "SELECT count(DISTINCT {column}) FROM {source}")
    found.distinct[name] = exact
    return bool(exact >= share * found.filled[name])


def said_of(found: Looks, numbers: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what the columns look like, and keep the numbers."""
    said = []
    for what, name in (("judges", found.judge), ("prompts", found.prompt)):
        if name is None:
            continue
        ((different, least, middle, most),) = found.ask(
            name,
            "SELECT count(*), min(n), median(n), max(n) FROM (SELECT count(*) AS n FROM {source} "
            "WHERE {column} IS NOT NULL GROUP BY {column})",
        )
        numbers[what] = {"column": name, "different": different, "least": least, "median": middle, "most": most}
        each = f"{least:,}" if least == most else f"{least:,} to {most:,}, median {middle:g}"
        said.append((what, f"{different:,}, by the column {shown(name)}: {each} judgments each"))
    if found.time is not None and (span := _span(found, found.time)) is not None:
        numbers["time"] = {"column": found.time, "from": span[0], "to": span[1]}
        found.half_life = span[2]
        said.append(("time", f"{span[0]} to {span[1]}, by the column {shown(found.time)}"))
    for name in found.groups:
        numbers.setdefault("groups", {})[name] = found.distinct[name]
    if found.groups:
        kinds = ", ".join(f"{shown(name)} ({found.distinct[name]:,})" for name in found.groups[:6])
        said.append(("groups", f"columns that may divide the judgments: {kinds}"))
    numbers["rows"], numbers["equal rows"] = found.rows, found.again
    twice = counted(found.again, "rows")
    exact = (
        "no row equals another"
        if not found.again
        else f"{twice} {'equals' if found.again == 1 else 'equal'} an earlier row"
    )
    for name in found.identities[:3]:
        again = found.filled[name] - found.distinct[name]
        numbers.setdefault("identities", {})[name] = again
        known = "all different" if not again else f"{counted(again, 'rows')} with a value that was there before"
        known += f", {counted(found.rows - found.filled[name], 'rows')} without one" * (found.filled[name] < found.rows)
        exact += f"; {shown(name)} names the rows: {known}"
    said.append(("twice", exact + " (all columns compared)" if found.again else exact))
    return said


def _span(found: Looks, time: str) -> tuple[str, str, str] | None:
    """Return the first and the last time, and a tenth of what lies between."""
    ((least, most, low, high),) = found.ask(
        time,
        "SELECT min({column})::VARCHAR, max({column})::VARCHAR, min(try_cast({column}::VARCHAR AS DOUBLE)), "
        "max(try_cast({column}::VARCHAR AS DOUBLE)) FROM {source}",
    )
    if low is not None and EPOCH[0] <= low <= high <= EPOCH[1]:
        first, last = (datetime.fromtimestamp(one, UTC).date().isoformat() for one in (low, high))
        return first, last, _tenth(high - low)
    if low is not None:
        return f"{low:g}", f"{high:g}", _tenth(high - low)
    ends = [decode(one) if isinstance(one, str) and one.startswith('"') else one for one in (least, most)]
    if None in ends:
        return None
    first, last = (str(end)[:30] for end in ends)
    begin, end = instant(first), instant(last)
    between = 0 if begin is None or end is None else end - begin
    return first, last, f"{max(round(between / 10), 1)}d" if between else ""


def _tenth(span: float) -> str:
    """Return a tenth of a span, without an exponent."""
    tenth = span / 10
    return "" if span <= 0 else f"{tenth:.3g}" if tenth < 100 else f"{float(f'{tenth:.2g}'):.0f}"
