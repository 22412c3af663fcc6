"""A second reader: what a log of bytes says by the documented rules, with Python's own csv, json and gzip.

It shares no code with the package. ``second_reading`` returns the counts, raises ``Refused`` where the rules allow no
answer, and ``Undecided`` where they leave the answer to the reader: then only the engines are compared.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from drawn_files import Source, layout_of, word_sides
from drawn_judgments import ONE_QUERY, Known, canonical

__all__ = ["Refused", "Undecided", "rows_of_sheet", "second_reading"]

csv.field_size_limit(1 << 30)
NUMBER = re.compile(r"[ \t\n\r\f\v]*([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[ \t\n\r\f\v]*", re.ASCII)
TIES = {"tie", "draw", "drawn", "equal", "tie (bothbad)", "tie(bothbad)", "tie (both bad)", "tie_bothbad", "both_bad"}
TIES |= {"both bad", "bothbad"}
WEAK = {"1", "2", "a", "b", "h", "first", "second"}
OWNERS = {"selections": "session", "choices": "session", "orders": "judgment", "ratings": "judgment"}
VALUES = {"selections": "clicked", "choices": "clicked", "orders": "rank", "ratings": "rating"}
NEEDED = {
    "selections": ("session", "position", "item", "clicked"),
    "choices": ("session", "item", "clicked"),
    "orders": ("judgment", "item", "rank"),
    "ratings": ("item", "rating"),
}
Row = dict[str, Any]


class Refused(Exception):
    """The rules allow no answer."""


class Undecided(Exception):
    """The rules do not say."""


def second_reading(source: Source) -> Known:
    """Read the files of a source plainly."""
    if source.form in ("preflib", "letor", "qrels"):
        ((name, data),) = source.files.items()
        text = _text(unpacked(name, data))
        if source.form == "preflib":
            return _preflib(text, name)
        return _ratings(_letor(text) if source.form == "letor" else _qrels(text), skips(source))
    kind, roles = layout_of(source)
    rows: list[Row] = []
    heads = []
    for name, data in sorted(source.files.items()):
        inner = _text(unpacked(name, data))
        head, found = _json(inner) if source.form in ("json", "jsonl") else _delimited(inner, source.form)
        heads.append(head)
        rows += found
    if any(head != heads[0] for head in heads):
        raise Refused("columns differ")
    _check_names(source, heads[0], roles)
    return judged(kind, roles, rows, skips(source))


def skips(source: Source) -> bool:
    """Whether rows that cannot be understood are to be left out."""
    return source.options.get("on_error") == "skip"


def rows_of_sheet(source: Source) -> list[Row]:
    """Return the rows of a sheet in memory; pandas holds integers with gaps as real numbers."""
    assert source.sheet is not None
    columns = dict(source.sheet.columns)
    if source.form == "pandas":
        for name, values in columns.items():
            if None in values and {type(value) for value in values} <= {int, type(None)}:
                columns[name] = [None if value is None else float(value) for value in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _check_names(source: Source, head: list[str], roles: dict[str, str]) -> None:
    """Columns whose names were damaged may by chance have another meaning."""
    assert source.sheet is not None
    strange = [name for name in head if name not in source.sheet.columns]
    lost = [role for role, name in roles.items() if name not in head]
    if strange or lost:
        raise Undecided(f"columns {strange}, {lost}")


# -- bytes ------------------------------------------------------------------------------------------------------------
def unpacked(name: str, data: bytes) -> bytes:
    if not name.endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"gzip: {error}") from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None


def _delimited(text: str, form: str) -> tuple[list[str], list[Row]]:
    mark = "," if form == "csv" else "\t"
    if re.search(f'(?:^|{mark}) +"', text, re.MULTILINE) or re.search(f'" +(?:{mark}|[\r\n]|$)', text):
        raise Undecided("spaces around quotes")
    if re.search("\r(?!\n)", text):
        raise Undecided("a lone carriage return")
    try:
        records = [
            record for record in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True) if record
        ]
    except csv.Error as error:
        raise Refused(str(error)) from None
    if not records:
        raise Refused("an empty file")
    head, *rest = records
    if head and head[-1] == "":
        raise Undecided("a header that ends in a delimiter")
    if len(set(filter(None, head))) < len(list(filter(None, head))):
        raise Refused("a name twice")
    width = len(head)
    rest = [row if any(row[width:]) else row[:width] for row in rest]
    if any(len(row) != width for row in rest):
        raise Refused("another number of fields")
    if width > 1 and all(field.startswith(" ") for row in rest for field in row[1:]):
        raise Undecided("a space after every comma")
    return head, [dict(zip(head, [field or None for field in row], strict=True)) for row in rest]


def _json(text: str) -> tuple[list[str], list[Row]]:
    def unique(pairs: list[tuple[str, Any]]) -> Row:
        if len(dict(pairs)) < len(pairs):
            raise Refused("a key twice")
        return dict(pairs)

    def loads(one: str) -> Any:
        try:
            return json.loads(one, object_pairs_hook=unique)
        except (ValueError, RecursionError) as error:
            raise Refused(f"JSON: {error}") from None

    values = (
        loads(text)
        if text.lstrip().startswith("[")
        else [loads(line) for line in text.split("\n") if line.strip(" \t\r")]
    )
    if not isinstance(values, list):
        raise Refused("no array")
    rows = [{} if value is None else value for value in values]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise Refused("not objects")
    return sorted({name for row in rows for name in row}), rows


# -- values -----------------------------------------------------------------------------------------------------------
def _label(value: Any) -> Any:
    if type(value) not in (str, int):
        raise Refused(f"no label: {value!r}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Refused("an integer beyond 64 bits")
    if isinstance(value, str) and ("\0" in value or re.search("[\ud800-\udfff]", value)):
        raise Refused("a null byte or a surrogate")
    return value


def _exact(value: Any) -> Decimal:
    """Return a number as it was written."""
    if isinstance(value, str):
        match = NUMBER.fullmatch(value)
        if match is None:
            raise Refused(f"no number: {value!r}")
        if re.search(r"[eE][+-]?\d{6}", match[1]):
            raise Undecided("a huge exponent")
        return Decimal(match[1])
    if type(value) not in (int, float, Decimal) or not math.isfinite(value):
        raise Refused(f"no number: {value!r}")
    return Decimal(value)


def _real(value: Any) -> float:
    exact = _exact(value)
    try:
        found = float(exact)
    except OverflowError:
        raise Refused("beyond float64") from None
    if not math.isfinite(found):
        raise Refused("beyond float64")
    return found


def _integer(value: Any, least: int) -> int:
    exact = _exact(value)
    if abs(exact) >= Decimal(2) ** 63:
        raise Refused("beyond 2^63")
    if exact != exact.to_integral_value() or exact < least:
        raise Refused(f"not an integer of at least {least}")
    plain = not isinstance(value, float) and (not isinstance(value, str) or re.fullmatch(r"\s*[+-]?\d+\s*", value))
    if abs(exact) >= 2**53 and not plain:
        raise Refused("a real number that may stand for its neighbours")
    return int(exact)


def _flag(value: Any) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("0", "false", "0.0"):
            return 0
        if word in ("1", "true", "1.0"):
            return 1
    elif isinstance(value, int | float) and value in (0, 1):
        return int(value)
    raise Refused(f"no flag: {value!r}")


def _word(value: Any) -> str:
    """Return an outcome as a text: a number as it would stand in a CSV."""
    if value is None:
        raise Refused("no outcome")
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise Undecided(f"the outcome {value!r}")


# -- judgments --------------------------------------------------------------------------------------------------------
def judged(kind: str, roles: dict[str, str], rows: list[Row], skip: bool) -> Known:
    """Turn rows into counts of distinct judgments; ``skip``: leave out the rows, or the lists, that are refused."""
    if not rows:
        raise Refused("no rows")
    told = [{role: row.get(name) for role, name in roles.items()} for row in rows]
    for column in (("winner", "loser", "left", "right", "item"), ("query",), ("cluster",)):
        kinds = {type(row[role]) for row in told for role in column if type(row.get(role)) in (str, int)}
        if len(kinds) > 1:
            raise Refused("labels of two types")
    known = _compared(told, roles, skip) if kind == "comparisons" else _listed(kind, told, skip)
    if sum(known.counts.values()) >= 2**63:
        raise Refused("counts beyond 2^63")
    if not known.counts:
        raise Refused("no judgment is left")
    return known


def _compared(rows: list[Row], roles: dict[str, str], skip: bool) -> Known:
    known = Known()
    one, other = ("left", "right") if "left" in roles else ("winner", "loser")
    items = {row[role] for row in rows for role in (one, other) if type(row[role]) in (str, int)}
    if "outcome" in roles and any(_share(row["outcome"]) for row in rows):
        raise Undecided("outcomes that are shares of a win")
    for row in rows:
        try:
            for role in (one, other, *(role for role in ("query", "cluster") if role in roles)):
                _label(row[role])
            if row[one] == row[other]:
                raise Refused("an item with itself")
            weight = _real(row["weight"]) if "weight" in roles else 1.0
            if not 1e-100 <= weight <= 1e100:
                raise Refused("a weight out of its range")
            results = _results(row, roles, items, _integer(row["count"], 1) if "count" in roles else 1)
        except Refused:
            if skip:
                continue
            raise
        where = (row["query"] if "query" in roles else ONE_QUERY, row.get("cluster"))
        for sign, often in results:
            winner, loser = (row[one], row[other]) if sign >= 0 else (row[other], row[one])
            known.counts[canonical("comparisons", *where, (winner, loser, sign == 0, weight))] += often  # type: ignore[index]
    return known


def _share(value: Any) -> bool:
    """Whether an outcome is a number between 0 and 1."""
    try:
        return 0 < float(value) < 1
    except (TypeError, ValueError, OverflowError):
        return False


def _results(row: Row, roles: dict[str, str], items: set[Any], count: int) -> list[tuple[int, int]]:
    """Return (1: left, −1: right, 0: a tie; how often) of a row."""
    if "left" not in roles:
        return [(1, count)]
    if "outcome" in roles:
        return [(_outcome(row, items, roles), count)]
    if "left_wins" in roles:
        wins = [_integer(row[f"{side}_wins"], 0) for side in ("left", "right")]
        if not any(wins):
            raise Refused("no win on either side")
        return [(sign, count * number) for sign, number in zip((1, -1), wins, strict=True) if number]
    left, right = (_real(row[f"{side}_score"]) for side in ("left", "right"))
    return [((left > right) - (left < right), count)]


def _outcome(row: Row, items: set[Any], roles: dict[str, str]) -> int:
    """1: left, −1: right, 0: a tie."""
    text = _word(row["outcome"])
    plain = text.strip().lower()
    lefts, rights = word_sides(roles["left"].strip(), roles["right"].strip())
    side = 1 if plain in lefts - rights else -1 if plain in rights - lefts else 0 if plain in TIES else None
    own = {roles["left"].strip().lower(), roles["right"].strip().lower()}
    named = [item for item in items if str(item) == text]
    if named and plain in WEAK - own:
        side = None
    winner = None
    if named:
        winner = 1 if named[0] == row["left"] else -1 if named[0] == row["right"] else None
        if winner is None or (side is not None and side != winner):
            raise Refused("an outcome that is ambiguous, or an item that did not take part")
        return winner
    if side is None:
        raise Refused(f"an unknown outcome {text!r}")
    return side


def _listed(kind: str, rows: list[Row], skip: bool) -> Known:
    lists: dict[tuple[Any, ...], list[Row]] = {}
    there = set(rows[0])
    if not set(NEEDED[kind]) <= there:
        raise Refused("a column is missing")
    keys = [role for role in ("query", "cluster", OWNERS[kind]) if role in there]
    for row in rows:
        if any(row[role] is None for role in keys):
            if skip:
                continue
            raise Refused("no key")
        if any(isinstance(row[role], float | dict | list | bool) for role in keys):
            raise Undecided("a key that is neither a text nor an integer")
        owner = row.get(OWNERS[kind])
        if isinstance(owner, str) and "\0" in owner:
            raise Undecided("a null byte in a session")
        lists.setdefault(tuple((type(row[role]).__name__, row[role]) for role in keys), []).append(row)
    known = Known()
    for mine in lists.values():
        try:
            one, told, count = _list(kind, mine, there, skip)
        except Refused:
            if skip:
                continue
            raise
        known.declared |= {(mine[0].get("query", ONE_QUERY), item) for item, value in told if value is None}
        if one is not None:
            known.counts[one] += count
    known.declared -= {(one[0], item) for one in known.counts for item, _ in one[2]}
    return known


def _list(kind: str, rows: list[Row], there: set[str], skip: bool) -> tuple[Any, list[tuple[Any, Any]], int]:
    """Return the judgment of a list in its one form, its entries, and how often it was made."""
    for role in ("query", "cluster"):
        if role in there:
            _label(rows[0][role])
    counts, entries = set(), []
    for row in rows:
        try:
            entry = (_label(row["item"]), _value(kind, row[VALUES[kind]]))
            counts.add(_integer(row["count"], 1) if "count" in there else 1)
            entries.append(entry)
        except Refused:
            if not skip or kind != "ratings":  # of ratings a bad row is refused alone
                raise
    if len(counts) != 1:
        raise Refused("different counts in one list, or no row")
    told = [(item, value) for item, value in entries if value is not None]
    if len({item for item, _ in told}) < len(told):
        raise Refused("an item twice")
    if kind == "selections":
        places = [_integer(row["position"], 1) for row in rows]
        if len(set(places)) < len(places):
            raise Refused("a position twice")
        told = _at_positions(sorted(zip(places, entries, strict=True), key=lambda pair: pair[0]))
    if kind == "choices" and sum(value for _, value in told) > 1:
        raise Refused("two choices")
    where = (rows[0].get("query", ONE_QUERY), rows[0].get("cluster"))
    return (canonical(kind, *where, told) if told else None), entries, counts.pop()


def _at_positions(shown: list[tuple[int, tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    """Positions are read as they are, those beyond 1,000 of lists with gaps as that: after g of nothing 1 + g or −g."""
    last = shown[-1][0]
    if last != len(shown) and last > 1000:
        room = max(1000, len(shown)) - len(shown)
        shown = [(min(position, room + place), entry) for place, (position, entry) in enumerate(shown, 1)]
    found, before = [], 0
    for position, (item, clicked) in shown:
        gap = position - before - 1
        found.append((item, 1 + gap if clicked else -gap))
        before = position
    return found


def _value(kind: str, value: Any) -> Any:
    if kind in ("selections", "choices"):
        return _flag(value)
    if kind == "ratings":
        return _real(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    rank = _real(value)
    if rank < 1:
        raise Refused("a rank below 1")
    return rank


# -- formats of their own ---------------------------------------------------------------------------------------------
def _lines(text: str) -> Iterator[str]:
    yield from io.StringIO(text, newline="")


def _ratings(rows: list[tuple[str, str, str]], skip: bool) -> Known:
    if not rows:
        raise Refused("no rows")
    roles = {"query": "query", "item": "item", "rating": "rating"}
    return judged("ratings", roles, [dict(zip(roles, row, strict=True)) for row in rows], skip)


def _letor(text: str) -> list[tuple[str, str, str]]:
    rows, named = [], []
    for line in _lines(text):
        body, _, comment = line.partition("#")
        if not body.strip():
            continue
        parts = body.split(None, 2)
        if len(parts) < 2 or not parts[1].startswith("qid:") or len(parts[1]) == 4:
            raise Refused("not LETOR")
        match = re.search(r"docid\s*[=:]\s*(\S+)", comment, re.IGNORECASE)
        named.append(match)
        rows.append((parts[1][4:], match[1] if match else "", parts[0]))
    if not all(named):
        raise Undecided("a line without docid")
    return rows


def _qrels(text: str) -> list[tuple[str, str, str]]:
    rows = []
    for line in _lines(text):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 4:
            raise Refused("not qrels")
        rows.append((parts[0], parts[2], parts[3]))
    return rows


def _preflib(text: str, name: str) -> Known:
    ending = re.sub(r"\.gz$", "", name)[-3:]
    head: dict[str, str] = {}
    names: dict[int, str] = {}
    orders: Counter[Any] = Counter()
    for line in map(str.strip, _lines(text)):
        if line.startswith("#"):
            match = re.fullmatch(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s?(.*)", line)
            if match:
                if int(match[1]) in names or not match[2].strip() or "\0" in line:
                    raise Refused("an alternative twice, or without a name")
                names[int(match[1])] = match[2].strip()
            elif other := re.fullmatch(r"#\s*([A-Z ]+?)\s*:\s?(.*)", line):
                head.setdefault(other[1], other[2].strip())
        elif line:
            count, _, order = line.partition(":")
            if not re.fullmatch(r"[0-9]+", count.strip()) or int(count) == 0:
                raise Refused("no count")
            found = re.fullmatch(r"\s*(?:\{[0-9, ]*\}|[0-9]+)\s*(?:,\s*(?:\{[0-9, ]*\}|[0-9]+)\s*)*,?\s*", order)
            if not found:
                raise Refused("no order")
            tiers = [
                [int(one) for one in re.findall("[0-9]+", part)] for part in re.findall(r"\{[^}]*\}|[0-9]+", order)
            ]
            codes = [code for tier in tiers for code in tier]
            if len(set(codes)) < len(codes) or not set(codes) <= set(names) or not all(tiers):
                raise Refused("an alternative twice or unknown")
            if (ending[0] == "s" and any(len(t) > 1 for t in tiers)) or (ending[2] == "c" and len(codes) < len(names)):
                raise Refused("ties or gaps")
            orders[tuple(tuple(sorted(tier)) for tier in tiers)] += int(count)
    facts = {
        "NUMBER ALTERNATIVES": len(names),
        "NUMBER VOTERS": sum(orders.values()),
        "NUMBER UNIQUE ORDERS": len(orders),
    }
    if any(head.get(key) != str(value) for key, value in facts.items()) or not orders:
        raise Refused("the header disagrees")
    if len(set(names.values())) < len(names) or head.get("DATA TYPE", ending).lower() != ending:
        raise Refused("a name twice")
    known = Known()
    for tiers, often in orders.items():
        entries = sorted((float(rank), names[code]) for rank, tier in enumerate(tiers, 1) for code in tier)
        known.counts[(ONE_QUERY, None, tuple((item, rank) for rank, item in entries))] += often
    judged_items = {item for one in known.counts for item, _ in one[2]}
    known.declared = {(ONE_QUERY, item) for item in names.values() if item not in judged_items}
    return known
