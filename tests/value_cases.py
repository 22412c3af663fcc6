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
from concordant.io.layouts import Reading

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
    noted = " ".join(found.notes)
    assert all(word in noted for word in case.told), f"{how}: {noted}"
    assert bool(noted) == bool(case.told), f"{how}: {noted}"
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
SPACED = "every field after the first begins with a space"
LABELS = [
    Case("a space after every comma", b"winner, loser\na, b\nb, c\n", {("a", "b"): 1, ("b", "c"): 1}, (SPACED,)),
    Case("spaces and quotes", b'winner, loser\na, "b, c"\n"x", y\n', {("a", "b, c"): 1, ("x", "y"): 1}, (SPACED,)),
    Case("spaces on both sides", b"winner , loser , count\na , b , 2\n", {("a", "b"): 2}, (SPACED,)),
    Case("spaces and an empty field", b"winner, loser, note\na, b,\nb, a, x\n",
         {("a", "b"): 1, ("b", "a"): 1}, (SPACED,)),
    Case("spaces and CR LF", b"winner, loser\r\na, b\r\nb, a\r\n", {("a", "b"): 1, ("b", "a"): 1}, (SPACED,)),
    Case("a space after every tab", b"winner\t loser\na\t b\nb\t a\n", {("a", "b"): 1, ("b", "a"): 1}, (SPACED,),
         ending=".tsv"),
    Case("spaces and nothing", b"winner, loser\na, \n", ("have no loser", "line 2")),
    Case("one row without the space", b"winner, loser\na, b\nb,a\n", {("a", " b"): 1, ("b", "a"): 1},
         ("2 items", "white space", "' b' and 'b'")),
    Case("spaces in rows alone", b"winner,loser\na, b\nb, a\n", {("a", " b"): 1, ("b", " a"): 1},
         ("4 items", "white space")),
    Case("a space after the label", b"winner,loser\na,b \nb,a\n", {("a", "b "): 1, ("b", "a"): 1}, ("'b' and 'b '",)),
    Case("case", b"winner,loser\nA,b\nb,a\n", {("A", "b"): 1, ("b", "a"): 1}, ("2 items", "in case")),
    Case("Unicode form", "winner,loser\ne\u0301,b\nb,\xe9\n".encode(), {("e\u0301", "b"): 1, ("b", "\xe9"): 1},
         ("Unicode form",)),
    Case("zero-width space", "winner,loser\na\u200b,b\nb,a\n".encode(), {("a\u200b", "b"): 1, ("b", "a"): 1},
         ("invisible", "a\\u200b")),
    Case("byte order mark inside", "winner,loser\n\ufeffa,b\nb,a\n".encode(), {("\ufeffa", "b"): 1, ("b", "a"): 1},
         ("invisible",)),
    Case("soft hyphen", "winner,loser\nco\xadop,b\nb,coop\n".encode(), {("co\xadop", "b"): 1, ("b", "coop"): 1},
         ("invisible",)),
    Case("no-break space", "winner,loser\na\xa0b,b\nb,a b\n".encode(), {("a\xa0b", "b"): 1, ("b", "a b"): 1},
         ("white space",)),
    Case("nothing but a space", b"winner,loser\n\" \",b\n", {(" ", "b"): 1}, ("nothing but white space",)),
    Case("numbers as texts", b"winner,loser\n1,1.0\n01,1e0\n", {("1", "1.0"): 1, ("01", "1e0"): 1},
         ("4 items", "how a number is written")),
    Case("large numbers as texts", b"winner,loser\n9007199254740993,9007199254740992\n",
         {("9007199254740993", "9007199254740992"): 1}),
    Case("integers", {"winner": [1, 2], "loser": [2, 3]}, {(1, 2): 1, (2, 3): 1}),
    Case("integers that float64 lacks", {"winner": [ODD], "loser": [ODD - 1]}, {(ODD, ODD - 1): 1}),
    Case("integers in JSON", b'{"winner": 1, "loser": 2}\n', {(1, 2): 1}, ending=".jsonl"),
    Case("integers and texts in JSON", b'{"winner": 1, "loser": "2"}\n', ("integers", "texts"), ending=".jsonl"),
    Case("both in one column", b'{"winner": 1, "loser": 2}\n{"winner": "1", "loser": 2}\n', ("mixes texts",),
         ending=".jsonl"),
    Case("integers and texts", {"winner": [1, 2], "loser": ["2", "1"]}, ("integers", "texts")),
    Case("real labels", {"winner": [1.0, 2.0], "loser": [2.0, 3.0]}, ("real numbers", "Int64")),
    Case("real labels in JSON", b'{"winner": 1.0, "loser": 2.0}\n', ("neither a text nor an integer", "line 1"),
         ending=".jsonl"),
    Case("boolean labels", {"winner": [True], "loser": [False]}, ("true/false",)),
    Case("boolean labels in JSON", b'{"winner": true, "loser": "b"}\n', ("neither a text nor an integer",),
         ending=".jsonl"),
    Case("empty labels", b"winner,loser\na,\n", ("have no loser", "line 2")),
    Case("empty labels in quotes", b'winner,loser\na,""\n', ("have no loser", "line 2")),
    Case("null labels", {"winner": ["a", None], "loser": ["b", "c"]}, ("have no winner", "row 2")),
    Case("words for nothing", b"winner,loser\nNULL,None\nNaN,NA\n", {("NULL", "None"): 1, ("NaN", "NA"): 1}),
    Case("queries alike", b"query,winner,loser\nq,a,b\nq ,a,b\n", {("q", "a", "b"): 1, ("q ", "a", "b"): 1},
         ("2 queries", "white space")),
    Case("clusters alike", b"cluster,winner,loser\nu,a,b\nU,a,b\n", {("a", "b"): 2}, ("2 clusters", "case"),
         options=(("cluster", "cluster"),)),
]  # fmt: skip
SIDES = b"left,right,winner\n"
L = ("L", "R")
OUTCOMES = [
    Case("outcomes in any case", SIDES + b"L,R,Left\nL,R, LEFT \nL,R,rIgHt\n", {L: 2, L[::-1]: 1}),
    Case("ties in any case", SIDES + b"L,R,Tie\nL,R, draw \nL,R,Tie (BothBad)\n", {(frozenset(L),): 3}),
    Case("the winner's label", SIDES + b"L,R,L\nL,R,R\n", {L: 1, L[::-1]: 1}),
    Case("the winner's label with a space", SIDES + b"L,R,L \n", ("unknown outcome", "line 2: 'L '")),
    Case("an outcome of another case", SIDES + b"Al,Bo,al\n", ("unknown outcome", "line 2")),
    Case("no outcome", SIDES + b"L,R,\n", ("have no outcome", "line 2")),
    Case("an outcome that says nothing", SIDES + b"L,R,yes\n", ("unknown outcome", "Allowed: left, right")),
    Case("outcomes 1 and 2", SIDES + b"L,R,1\nL,R,2\n", {L: 1, L[::-1]: 1}),
    Case("outcomes 1 and 2 as integers", {"left": ["L"] * 2, "right": ["R"] * 2, "winner": [1, 2]}, {L: 1, L[::-1]: 1}),
    Case("an outcome 0", SIDES + b"L,R,0\n", ("unknown outcome",)),
    Case("outcomes as real numbers", {"left": ["L"], "right": ["R"], "winner": [1.0]}, {L: 1}),
    Case("outcomes as booleans", {"left": ["L"], "right": ["R"], "winner": [True]}, ("unknown outcome",)),
    Case("a word that is an item", SIDES + b"left,R,left\nL,left,left\n", ("both a word for a side",)),
]
HEADERS = [
    Case("a byte order mark", b"\xef\xbb\xbfwinner,loser\na,b\n", AB),
    Case("a byte order mark and quotes", b'\xef\xbb\xbf"winner","loser"\na,b\n', AB),
    Case("a byte order mark in JSON", b'\xef\xbb\xbf{"winner": "a", "loser": "b"}\n', AB, ending=".jsonl"),
    Case("two byte order marks", b"\xef\xbb\xbf\xef\xbb\xbfwinner,loser\na,b\n", ("no layout fits", "ufeffwinner")),
    Case("spaces in the header", b" Winner ,LOSER\na,b\n", AB),
    Case("a column twice", b"winner,loser,loser\na,b,c\n", ("'loser' more than once",)),
    Case("a column in two cases", b"Winner,WINNER,loser\na,b,c\n", ("could each be the winner",)),
    Case("a column twice but for spaces", b"winner, winner, loser\na, b, c\n", ("'winner' more than once",)),
    Case("no header", b"a,b\nb,c\n", ("no layout fits", "'a', 'b'")),
    Case("a header alone", b"winner,loser\n", ("no rows",)),
]
FORMS = [
    Case("CR LF", b"winner,loser\r\na,b\r\n", AB),
    Case("CR alone", b"winner,loser\ra,b\r", AB),
    Case("line ends mixed", b"winner,loser\r\na,b\nb,a\r\n", {("a", "b"): 1, ("b", "a"): 1}),
    Case("a CR inside quotes", b'winner,loser\n"a\rx",b\n', {("a\rx", "b"): 1}),
    Case("a line end inside quotes", b'winner,loser\n"a\nx",b\n', {("a\nx", "b"): 1}),
    Case("quotes doubled", b'winner,loser\n"a ""x""",b\n', {('a "x"', "b"): 1}),
    Case("quotes in the middle", b'winner,loser\na "x" y,b\n', {('a "x" y', "b"): 1}),
    Case("a quote never closed", b'winner,loser\n"a,b\n', ("never closed", "line 2")),
    Case("text after a quote", b'winner,loser\n"a"x,b\n', ("after a closing quote", "line 2")),
    Case("UTF-16 with a mark", "winner,loser\na,b\n".encode("utf-16"), ("UTF-16",)),
    Case("UTF-16 without a mark", "winner,loser\na,b\n".encode("utf-16-le"), ("UTF-16",)),
    Case("UTF-16 in JSON", '{"winner": "a", "loser": "b"}\n'.encode("utf-16"), ("UTF-16",), ending=".jsonl"),
    Case("UTF-32", "winner,loser\na,b\n".encode("utf-32"), ("UTF-",)),
    Case("Latin-1", "winner,loser\n\xe9,b\n".encode("latin-1"), ("not UTF-8", "0xe9")),
    Case("Latin-1 in another column", "winner,loser,who\na,b,\xe9\n".encode("latin-1"), ("not UTF-8",)),
    Case("Latin-1 in JSON", '{"winner": "\xe9", "loser": "b"}\n'.encode("latin-1"), ("UTF-8",), ending=".jsonl"),
    Case("semicolons", b"winner;loser\na;b\n", ("separated by ';'",)),
    Case("semicolons and decimal commas", b"winner;loser;weight\na;b;1,5\n", ("separated by ';'",)),
    Case("tabs in a .csv", b"winner\tloser\na\tb\n", ("separated by '\\t'",)),
    Case("commas in a .tsv", b"winner,loser\na,b\n", ("separated by ','",), ending=".tsv"),
    Case("bars", b"winner|loser\na|b\n", ("separated by '|'",)),
    Case("decimal commas in quotes", b'winner,loser,weight\na,b,"1,5"\n', ("not a number", "line 2: '1,5'")),
    Case("a weight of true", b'{"winner": "a", "loser": "b", "weight": true}\n', ("not a number",), ending=".jsonl"),
    Case("a weight of 1", b"winner,loser,weight\na,b,1\n", AB, ("'weight' is read as the strength",)),
    Case("a weight that is meant", b"winner,loser,weight\na,b,1\n", AB, options=(("columns", {"weight": "weight"}),)),
]
CASES = [*COUNTS, *LABELS, *OUTCOMES, *HEADERS, *FORMS]
BAD = {
    "null byte": b"winner,loser\na\0b,c\nc,d\n",
    "not UTF-8": b"winner,loser\na,b\n\xff,c\n",
    "too many fields": b"winner,loser\na,b\na,b,c\n",
    "too few fields": b"winner,loser\na,b\na\n",
    "a line of spaces": b"winner,loser\na,b\n  \nb,c\n",
    "an open quote": b'winner,loser\na,b\na,"c',
    "text after a quote": b'winner,loser\na,"b" x\n',
    "empty fields": b'winner,loser\na,\n"",b\n,\n',
    "itself": b"winner,loser\na,a\na,b\nb,b\n",
    "a bad weight": b"winner,loser,weight\na,b,1\na,b,x\nb,a,nan\nb,a,-1\n",
    "no rows": b"winner,loser\n",
}
"""CSV files that are refused, by what is wrong with them."""
