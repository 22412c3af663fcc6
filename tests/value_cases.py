"""Values in a log that are easily read as something else, and what is true of each: the judgments, or why not.

A case is text in a file or columns of a table. Every engine has to give the same: these judgments, or a refusal, and
the notes that belong to them. ``test_log_values.py`` runs them, ``test_spark_values.py`` on Spark.
"""

from __future__ import annotations

import decimal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from concordant import Preferences
from concordant.reading import Reading

MOST = (1 << 63) - 1
"""What is counted at most."""
Judgments = dict[tuple[Any, ...], int]
"""(winner, loser), or (query, winner, loser), a tie as a frozenset: how often."""


@dataclass(frozen=True)
class Case:
    """A log and the truth about it: its judgments, or words of the sentence that refuses it."""

    name: str
    log: bytes | dict[str, Any]
    truth: Judgments | tuple[str, ...]
    told: tuple[str, ...] = ()
    """Words that the notes hold; nothing is noted where there are none."""
    ending: str = ".csv"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the truth is that it cannot be read."""
        return isinstance(self.truth, tuple)

    def write(self, folder: Path) -> dict[str, Path]:
        """Return files that hold the log, by what they are."""
        if isinstance(self.log, bytes):
            path = folder / f"log{self.ending}"
            path.write_bytes(self.log)
            return {"file": path}
        table = pa.table(self.log)
        pa.parquet.write_table(table, folder / "log.parquet")
        pa.feather.write_feather(table, folder / "log.arrow", compression="uncompressed")
        return {"Parquet": folder / "log.parquet", "Arrow": folder / "log.arrow"}


def judgments_of(prefs: Preferences) -> Judgments:
    """The comparisons as a plain multiset; the query is left out where there is but the one of no column."""
    assert prefs.winner is not None and prefs.loser is not None
    found: Counter[tuple[Any, ...]] = Counter()
    for place in range(prefs.distinct):
        winner, loser = prefs.items[prefs.winner[place]], prefs.items[prefs.loser[place]]
        sides = (frozenset((winner, loser)),) if prefs.tie is not None and prefs.tie[place] else (winner, loser)
        query = prefs.queries[prefs.query[place]]
        found[sides if prefs.queries.tolist() == ["all"] else (query, *sides)] += int(prefs.count[place])
    return dict(found)


def check(case: Case, found: Reading | str, how: str) -> None:
    """Compare what was read, or the sentence that refused it, with the truth."""
    if isinstance(found, str):
        assert isinstance(case.truth, tuple), f"{how}: {found}"
        places = ("line ", "row ") if not isinstance(case.log, bytes) else ()  # a table's rows have no lines
        absent = [word for word in case.truth if word not in found and not word.startswith(places or "\0")]
        assert not absent, f"{how}: {found}"
        assert "\n" not in found, how
        return
    read = judgments_of(found.preferences)
    assert read == case.truth, how
    assert len(found.preferences) == sum(read.values()), how


AB = {("a", "b"): 1}


def counts(*values: Any, kind: Any = None) -> dict[str, Any]:
    """A table of comparisons a > b0, a > b1, … with these counts."""
    size = len(values)
    return {"winner": ["a"] * size, "loser": [f"b{i}" for i in range(size)], "count": pa.array(values, kind)}


def counted(*values: int) -> Judgments:
    return {("a", f"b{i}"): value for i, value in enumerate(values)}


def csv_counts(*values: str) -> bytes:
    return ("winner,loser,count\n" + "".join(f"a,b{i},{value}\n" for i, value in enumerate(values))).encode()


def json_counts(*values: str) -> bytes:
    rows = (f'{{"winner": "a", "loser": "b{i}", "count": {value}}}\n' for i, value in enumerate(values))
    return "".join(rows).encode()


ODD = (1 << 53) + 1
"""The first integer that float64 does not have."""
BEYOND = "beyond 9,223,372,036,854,775,807"
IN_SUM = ("add up to 9,223,372,036,854,775,808", "2^63 − 1")
REAL = "real number of 2^53 or more"
COUNTS = [
    Case("odd in CSV", csv_counts(str(ODD), "7"), counted(ODD, 7)),
    Case("odd in quotes", csv_counts(f'"{ODD}"', " 7 "), counted(ODD, 7)),
    Case("odd in JSON", json_counts(str(ODD), "7"), counted(ODD, 7), ending=".jsonl"),
    Case("odd as text in JSON", json_counts(f'"{ODD}"'), counted(ODD), ending=".jsonl"),
    Case("odd in int64", counts(ODD, 7), counted(ODD, 7)),
    Case("odd in uint64", counts(ODD, 7, kind=pa.uint64()), counted(ODD, 7)),
    Case("odd in decimal", counts(decimal.Decimal(ODD), decimal.Decimal(7)), counted(ODD, 7)),
    Case("most in int64", counts(MOST), counted(MOST)),
    Case("most in uint64", counts(MOST, kind=pa.uint64()), counted(MOST)),
    Case("most in CSV", csv_counts(str(MOST)), counted(MOST)),
    Case("most in sum", counts(MOST - 5, 5), counted(MOST - 5, 5)),
    Case("beyond in CSV", csv_counts(str(MOST + 1)), (BEYOND, "line 2")),
    Case("beyond in JSON", json_counts(str(MOST + 1)), (BEYOND, "line 1"), ending=".jsonl"),
    Case("beyond in uint64", counts(MOST + 1, kind=pa.uint64()), (BEYOND,)),
    Case("beyond in decimal", counts(decimal.Decimal(MOST + 1)), (BEYOND,)),
    Case("beyond in sum", counts(MOST, 1), IN_SUM),
    Case("beyond in sum, CSV", csv_counts(str(1 << 62), str(1 << 62)), IN_SUM),
    Case("beyond by repetition", b"winner,loser,count\n" + f"a,b,{1 << 62}\n".encode() * 2, IN_SUM),
    Case("wins beyond in sum", f"left,right,left_wins,right_wins\na,b,{MOST},1\n".encode(), IN_SUM),
    Case("wins to the brim", f"left,right,left_wins,right_wins\na,b,{MOST - 1},1\n".encode(),
         {("a", "b"): MOST - 1, ("b", "a"): 1}),
    Case("real of 2^53", counts(2.0**53), (REAL,)),
    Case("real below 2^53", counts(2.0**53 - 1), counted((1 << 53) - 1)),
    Case("real of 2^53 in JSON", json_counts(f"{ODD}.0"), (REAL, "line 1"), ending=".jsonl"),
    Case("real of 2^53 in CSV", csv_counts("9.007199254740993e15"), (REAL, "line 2")),
    Case("real integers", csv_counts("1.0", "2e1", "+3", "007"), counted(1, 20, 3, 7)),
    Case("a fraction", csv_counts("1.5"), ("not an integer of at least 1", "line 2: '1.5'")),
    Case("nearly whole", csv_counts("3.00000000000000000001"), ("not an integer of at least 1",)),
    Case("a fraction in decimal", counts(decimal.Decimal("1.5")), ("not an integer of at least 1",)),
    Case("zero", csv_counts("0"), ("not an integer of at least 1",)),
    Case("thousand separators", csv_counts('"1,000"'), ("not a number", "'1,000'")),
    Case("thousand separators unquoted", csv_counts("1,000"), ("line 2 has 4 fields",)),
    Case("thousands with points", csv_counts("1.000.000"), ("not a number",)),
    Case("thousands with spaces", csv_counts("1 000"), ("not a number",)),
    Case("underscores", csv_counts("1_000"), ("not a number",)),
    Case("hexadecimal", csv_counts("0x10"), ("not a number",)),
    Case("other digits", csv_counts("１２"), ("not a number",)),
    Case("infinite", csv_counts("inf"), ("not finite",)),
    Case("true", json_counts("true"), ("not a number",), ending=".jsonl"),
    Case("booleans", counts(True, False), ("not a number",)),
    Case("missing", csv_counts("1", ""), ("have no count", "line 3")),
    Case("null", counts(1, None), ("have no count", "row 2")),
    Case("texts", counts("5", "6"), counted(5, 6)),
]  # fmt: skip
CASES = COUNTS
