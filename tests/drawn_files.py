"""Logs drawn at random and written in every format, in a dress that must not change what they mean.

``draw_file`` lays drawn judgments out in rows, dresses them (names and order of columns, unused columns, order of rows,
counts split over rows, notation of numbers, quotes, line ends) and writes them: what has to come out is known.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from drawn_judgments import Drawn, Known, draw_judgments

__all__ = ["FORMATS", "Sheet", "Source", "draw_file", "draw_sheet", "layout_of", "packed", "rewritten", "word_sides"]

NAMES: dict[str, list[str]] = {
    "query": ["query", "qid", "query_id", "question_id", "prompt_id", "Query", "queryId", "QUERY ID"],
    "winner": ["winner", "Winner"],
    "loser": ["loser", "LOSER"],
    "outcome": ["winner", "label", "outcome"],
    "left_score": ["left_score", "score_left", "home_score", "score_a", "score1"],
    "right_score": ["right_score", "score_right", "away_score", "score_b", "score2"],
    "left_wins": ["left_wins", "home_wins", "wins_a", "wins1"],
    "right_wins": ["right_wins", "away_wins", "wins_b", "wins2"],
    "weight": ["weight", "Weight"],
    "count": ["count", "Count"],
    "session": ["session", "session_id", "impression", "impression_id", "Session Id"],
    "judgment": ["judgment", "judgment_id", "judge", "voter", "voter_id", "ballot", "ballot_id", "annotator"],
    "position": ["position"],
    "item": ["item", "item_id", "doc", "doc_id", "docid", "movieId"],
    "clicked": ["clicked", "click"],
    "rank": ["rank"],
    "rating": ["rating"],
    "cluster": ["worker", "who", "rater id"],
}
SIDES = [("left", "right"), ("model_a", "model_b"), ("player1", "player2"), ("chosen", "rejected")]
SIDES += [("model_x", "model_y"), ("home_team", "away_team"), ("home", "away")]
TIES = ["tie", "draw", "tie (bothbad)", "Tie", "drawn", "equal", "both_bad"]
UNUSED = ["note", "ts", "id", "comment", "language", "x y", "naïve", 'he said "hi"', "a,b", "Unnamed: 0", "e\u0301"]
FILLING = ["", "x", "1", "2026-11-22", 'a "b" c', "a,b", "a\nb", "0.5", "é", "[1, 2]", "tie", "  ", "'", "\\"]
TEXT_FORMATS = ["csv", "tsv", "jsonl", "json"]
TYPED_FORMATS = ["parquet", "arrow", "feather", "stream"]
MEMORY_FORMATS = ["table", "batches", "pandas", "polars", "mapping"]
FORMATS = [*TEXT_FORMATS, *TYPED_FORMATS, *MEMORY_FORMATS, "duckdb", "preflib", "letor", "qrels"]


@dataclass
class Sheet:
    """Judgments laid out in rows: for each column its name, role, sort of value and values."""

    kind: str
    roles: dict[str, str]
    """Role to column."""
    columns: dict[str, list[Any]]
    sorts: dict[str, str]
    """Of each column: label, word, number, integer, flag or unused."""
    given: dict[str, str] = field(default_factory=dict)
    """What the reader has to be told of the roles."""

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass
class Source:
    """What a reader is given: files with their bytes, or an object that ``make`` makes anew for each reading."""

    form: str
    name: str
    files: dict[str, bytes]
    options: dict[str, Any]
    known: Known | None
    """The truth; None where it is not known (after damage)."""
    sheet: Sheet | None = None
    make: Callable[[], Any] | None = None
    table: str = ""
    """The table in a database file."""
    cells: bool = False
    """Whether cells were damaged before writing, so that ``sheet`` says what stands in the file."""

    def place(self, folder: Path) -> Any:
        """Write the files and return what ``read`` is given."""
        if self.make is not None:
            return self.make()
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        path = folder / self.name
        return f"{path}::{self.table}" if self.table else path


# -- rows -------------------------------------------------------------------------------------------------------------
def draw_sheet(random: Random, drawn: Drawn) -> Sheet:
    """Lay judgments out in rows and columns, with the rows in any order."""
    rows, pair = (_compared if drawn.kind == "comparisons" else _listed)(random, drawn)
    random.shuffle(rows)
    roles = list(dict.fromkeys(role for row in rows for role in row))
    names = {role: random.choice(NAMES[role]) for role in roles if role in NAMES}
    names |= dict(zip(("left", "right"), pair, strict=True)) if pair else {}
    if pair and pair[0] == "chosen" and "winner" in roles:
        names |= {"winner": "chosen", "loser": "rejected"}
        names.pop("left"), names.pop("right")
    if drawn.kind == "choices" and random.random() < 0.5:
        names["clicked"] = random.choice(["chosen", "bought"])
    if drawn.kind == "ratings" and "query" in names and random.random() < 0.4:
        names["query"] = random.choice(["user", "userId", "user_id"])
    given = {}
    if random.random() < 0.08:
        paired = ("left", "right", "winner", "loser", "outcome", "left_score", "right_score", "left_wins", "right_wins")
        alone = [role for role in roles if role not in (*paired, "cluster")]
        if alone:
            role = random.choice(alone)
            names[role] = given[role] = random.choice(["column 7", "it", "Q", "ü", 'say "x"'])
    if len({name.lower() for name in names.values()}) < len(names):  # "winner" as outcome and as winner, say
        return draw_sheet(random, drawn)
    sorts = {"query": "label", "cluster": "label", "winner": "label", "loser": "label", "left": "label"}
    sorts |= {"right": "label", "item": "label", "session": "label", "judgment": "label", "outcome": "word"}
    sorts |= {"clicked": "flag", "count": "integer", "position": "integer", "left_wins": "integer"}
    sorts |= {"right_wins": "integer"}
    columns = {names[role]: [row.get(role) for row in rows] for role in roles}
    kinds = {names[role]: sorts.get(role, "number") for role in roles}
    for name in random.sample(UNUSED, random.choice([0, 0, 0, 1, 2])):
        columns[name] = [random.choice(FILLING) for _ in rows]
        kinds[name] = "unused"
    order = random.sample(sorted(columns), len(columns))
    return Sheet(drawn.kind, names, {name: columns[name] for name in order}, kinds, given)


def _keys(drawn: Drawn, query: Any, cluster: Any) -> dict[str, Any]:
    return ({"query": query} if drawn.queries else {}) | ({"cluster": cluster} if drawn.clusters else {})


def _parts(random: Random, often: int, counts: bool) -> list[int]:
    """Split a count into those of rows."""
    if not counts:
        return [1] * often
    if often > 1 and random.random() < 0.5:
        first = random.randint(1, often - 1)
        return [first, often - first]
    return [often]


def word_sides(left: str, right: str) -> tuple[set[str], set[str]]:
    """Return the words that name either side of two columns."""
    lefts, rights = (
        {"left", "model_a", "player1", "1", left.lower()},
        {"right", "model_b", "player2", "2", right.lower()},
    )
    if left.lower().startswith("home"):
        return lefts | {"home", "home_team", "h"}, rights | {"away", "away_team", "a"}
    return lefts | {"a", "first"}, rights | {"b", "second"}


def _compared(random: Random, drawn: Drawn) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
    ties = any(what[2] for _, _, what, _ in drawn.judgments)
    weighted = any(what[3] != 1.0 for _, _, what, _ in drawn.judgments) or random.random() < 0.1
    counts = any(often > 20 for *_, often in drawn.judgments) or random.random() < 0.3
    layouts = ["outcome", "outcome", "scores"] + ([] if ties else ["winner", "winner", "chosen", "wins"])
    layout = random.choice(layouts)
    pair = ("chosen", "rejected") if layout == "chosen" else random.choice(SIDES)
    used = {str(item) for _, _, what, _ in drawn.judgments for item in what[:2]}
    lefts, rights = word_sides(*pair)
    rows = []
    for query, cluster, (winner, loser, tie, weight), often in drawn.judgments:
        for number in _parts(random, often, counts or layout == "wins"):
            row = _keys(drawn, query, cluster) | ({"weight": weight} if weighted else {})
            swapped = random.random() < 0.5
            left, right = (loser, winner) if swapped else (winner, loser)
            if layout in ("winner", "chosen"):
                rows.append(row | {"winner": winner, "loser": loser} | ({"count": number} if counts else {}))
                continue
            row |= {"left": left, "right": right}
            if layout == "wins":
                row |= {"left_wins": 0 if swapped else number, "right_wins": number if swapped else 0}
                rows.append(row | ({"count": 1} if counts else {}))
                continue
            row |= {"count": number} if counts else {}
            if layout == "scores":
                low, more = random.choice([(0, 1), (2, 0.5), (-3, 7), (10**6, 1)])
                scores = (low, low) if tie else (low, low + more) if swapped else (low + more, low)
                rows.append(row | dict(zip(("left_score", "right_score"), scores, strict=True)))
                continue
            words = TIES if tie else sorted(rights if swapped else lefts)
            words = [word for word in words if word not in used]
            text = str(winner)
            plain = text.strip().lower()
            if not tie and plain not in {*lefts, *rights, *(one.lower() for one in TIES), *BAD}:
                words.append(text)
            rows.append(row | {"outcome": random.choice(words)})
    return rows, None if layout == "winner" else pair


BAD = ["tie(bothbad)", "tie (both bad)", "tie_bothbad", "both bad", "bothbad"]


def _listed(random: Random, drawn: Drawn) -> tuple[list[dict[str, Any]], None]:
    kind = drawn.kind
    counts = drawn.by_query or any(often > 20 for *_, often in drawn.judgments) or random.random() < 0.3
    make = random.choice([lambda n: n, lambda n: f"s{n}", lambda n: f"{n:04}", lambda n: 2**40 + n])
    owner = "session" if kind in ("selections", "choices") else "judgment"
    value = {"selections": "clicked", "choices": "clicked", "orders": "rank", "ratings": "rating"}[kind]
    rows: list[dict[str, Any]] = []
    numbers = random.sample(range(10**4), 500)
    reused: dict[Any, int] = {}
    for query, cluster, what, often in drawn.judgments:
        for number in _parts(random, often, counts) if not drawn.by_query else [often]:
            where = (query, cluster)
            if where not in reused:  # lists of two queries may have one number: they are two lists
                reused[where] = random.choice([0, 0, len(rows)]) % 400
            reused[where] += 1
            mine = _keys(drawn, query, cluster) | ({"count": number} if counts else {})
            mine |= {} if drawn.by_query else {owner: make(numbers[reused[where] % 500])}
            place = 0
            for item, told in what:
                if kind != "selections":
                    rows.append(mine | {"item": item, value: told})
                    continue
                place += told if told > 0 else 1 - told
                rows.append(mine | {"position": place, "item": item, value: int(told > 0)})
    return rows, None


# -- cells ------------------------------------------------------------------------------------------------------------
def _number(random: Random, value: Any) -> str:
    """Write a number in one of the notations that mean the same."""
    if isinstance(value, int):
        forms = [str(value)] * 4 + ([f"+{value}", f"0{value}"] if value >= 0 else []) + [f"{value}.0", f"{value}."]
        forms += [f" {value}", f"{value} ", f"{value}e0", f"{value}E+0"]
        return random.choice(forms if random.random() < 0.5 else forms[:1])
    text = repr(value)
    return random.choice([text, text, f"{value:.17g}", f"{value:.20e}"])


def _text_cell(random: Random, value: Any, sort: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str) or type(value) not in (int, float):
        return value if isinstance(value, str) else json.dumps(value)
    if sort in ("number", "integer"):
        return _number(random, value)
    if sort == "flag" and value in (0, 1):
        return random.choice(
            [["0", "false", "False", "FALSE", "0.0"], ["1", "true", "True", "TRUE", "1.0"]][int(value)]
        )
    return str(value)


def _json_cell(random: Random, value: Any, sort: str, as_text: bool) -> Any:
    if value is None or sort in ("label", "word", "unused"):
        return value
    if as_text:
        return _text_cell(random, value, sort)
    if sort == "flag" and value in (0, 1):
        return random.choice([bool(value), int(value), float(value)])
    return float(value) if type(value) is int and value < 2**50 and random.random() < 0.2 else value


def _arrow_column(random: Random, values: list[Any], sort: str, parquet: bool) -> pa.Array:
    there = [value for value in values if value is not None]
    if sort == "flag":
        form = random.choice(["bool", "int", "float", "text"])
        if form == "text":
            return pa.array([_text_cell(random, value, sort) for value in values])
        kind = {"bool": pa.bool_(), "int": pa.int8(), "float": pa.float64()}[form]
        return pa.array([bool(v) if form == "bool" else v for v in values], kind)
    if sort in ("number", "integer") and random.random() < 0.15:
        return pa.array([None if value is None else _number(random, value) for value in values], pa.string())
    if there and all(isinstance(value, int) for value in there):
        low, high = min(there), max(there)
        fits = [pa.int64()]
        fits += [pa.uint64()] if low >= 0 else []
        for kind, bits in ((pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31)):
            fits += [kind] if -(2**bits) <= low and high < 2**bits else []
        if sort != "label" and max(-low, high) < 2**50:
            fits += [pa.float64()] + ([pa.decimal128(20, 2)] if max(-low, high) < 10**15 else [])
        column = pa.array(values, random.choice(fits))
        return column.dictionary_encode() if sort == "label" and random.random() < 0.1 else column
    if there and isinstance(there[0], str):
        kinds = [pa.string(), pa.large_string()] + ([] if parquet else [pa.string_view()])
        column = pa.array(values, random.choice(kinds))
        view = pa.types.is_string_view(column.type)
        return column.dictionary_encode() if not view and random.random() < 0.25 else column
    return pa.array([None if v is None else float(v) for v in values], pa.float64())


def arrow_of(random: Random, sheet: Sheet, *, parquet: bool = False) -> pa.Table:
    """Return a sheet as an Arrow table with types drawn for its columns."""
    return pa.table(
        {name: _arrow_column(random, values, sheet.sorts[name], parquet) for name, values in sheet.columns.items()}
    )


# -- files ------------------------------------------------------------------------------------------------------------
def write_delimited(random: Random, sheet: Sheet, mark: str) -> bytes:
    """Write a CSV or TSV file by hand."""
    quoting = random.choice([0.0, 0.0, 0.3, 1.0])
    end = random.choice(["\n", "\n", "\r\n"])

    def cell(text: str) -> str:
        if any(one in text for one in (mark, '"', "\r", "\n")) or (text and random.random() < quoting):
            return '"' + text.replace('"', '""') + '"'
        return text

    lines = [mark.join(cell(name) for name in sheet.columns)]
    for row in zip(*sheet.columns.values(), strict=True):
        cells = [_text_cell(random, value, sheet.sorts[name]) for name, value in zip(sheet.columns, row, strict=True)]
        lines.append(mark.join(cell(text) for text in cells))
        if random.random() < 0.01:
            lines.append("")
    text = end.join(lines) + (end if random.random() < 0.8 else "")
    return (b"\xef\xbb\xbf" if random.random() < 0.1 else b"") + text.encode()


def write_json(random: Random, sheet: Sheet, *, array: bool) -> bytes:
    """Write JSON Lines, or one array of objects."""
    plain, spaced = random.random() < 0.5, random.random() < 0.5
    as_text = {name for name in sheet.columns if random.random() < 0.15}
    keeps = random.random() < 0.7 or sheet.rows < 3
    rows = []
    for row in zip(*sheet.columns.values(), strict=True):
        pairs = [
            (name, _json_cell(random, value, sheet.sorts[name], name in as_text))
            for name, value in zip(sheet.columns, row, strict=True)
        ]
        if random.random() < 0.3:
            random.shuffle(pairs)
        rows.append({name: value for name, value in pairs if value is not None or keeps})
    names = {name for row in rows for name in row}
    rows[0] |= {name: None for name in sheet.columns if name not in names}

    def text(value: Any) -> str:
        separators = (", ", ": ") if spaced else (",", ":")
        return json.dumps(value, ensure_ascii=plain if random.random() < 0.9 else not plain, separators=separators)

    if array:
        return (json.dumps(rows, indent=random.choice([None, 1, 4]), ensure_ascii=plain) + "\n").encode(
            "utf-8", "surrogatepass"
        )
    end = random.choice(["\n", "\n", "\r\n"])
    lines = [text(row) + (end if random.random() < 0.02 else "") for row in rows]
    return (end.join(lines) + (end if random.random() < 0.8 else "")).encode("utf-8", "surrogatepass")


def packed(random: Random, data: bytes) -> bytes:
    """Pack bytes with gzip, in one member or several."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice([0, 0, 1, 3])))
    parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return b"".join(gzip.compress(part, random.choice([0, 1, 6, 9]), mtime=0) for part in parts)


def _typed(random: Random, sheet: Sheet, form: str) -> bytes:
    table = arrow_of(random, sheet, parquet=form == "parquet")
    buffer = io.BytesIO()
    if form == "parquet":
        pa.parquet.write_table(
            table, buffer, row_group_size=random.choice([1, 3, 10**6]), use_dictionary=random.random() < 0.7,
            compression=random.choice(["none", "snappy", "zstd", "gzip"]), version=random.choice(["1.0", "2.6"]),
            data_page_version=random.choice(["1.0", "2.0"]), write_statistics=random.random() < 0.7,
        )  # fmt: skip
    elif form == "feather":
        pa.feather.write_feather(table, buffer, compression=random.choice(["uncompressed", "lz4", "zstd"]))
    else:
        new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with new(buffer, table.schema, options=pa.ipc.IpcWriteOptions(unify_dictionaries=True)) as writer:
            writer.write_table(table, max_chunksize=random.choice([1, 4, 10**6]))
    return buffer.getvalue()


def _in_memory(random: Random, sheet: Sheet, form: str) -> Callable[[], Any]:
    if form in ("table", "batches"):
        table = arrow_of(random, sheet)
        if form == "table":
            return lambda: table
        size = random.choice([1, 3, 100])
        return lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))
    columns = sheet.columns
    if form == "pandas":
        import pandas as pd

        frame = pd.DataFrame(columns)
        return lambda: frame
    if form == "polars":
        import polars as pl

        made = pl.DataFrame(columns, strict=False)
        return lambda: made
    return lambda: columns


def _database(random: Random, sheet: Sheet) -> bytes:
    table = arrow_of(random, sheet)
    views = [place for place, one in enumerate(table.schema) if pa.types.is_string_view(one.type)]
    for place in views:
        table = table.set_column(place, table.column_names[place], table.column(place).cast(pa.large_string()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute('CREATE TABLE "my votes" AS SELECT * FROM given')
        return path.read_bytes()


# -- formats of their own ---------------------------------------------------------------------------------------------
def _token(value: Any) -> str:
    return "_".join(str(value).split()) or "x"


def write_preflib(random: Random, drawn: Drawn) -> tuple[str, bytes, Known]:
    """Write orders as a PrefLib file, whose alternatives are all declared."""
    names = [
        str(item).replace("\n", " ").replace("\r", " ").strip().replace("\u2028", "-") or "x" for item in drawn.items
    ]
    names = list(dict.fromkeys(names))
    orders: list[tuple[int, list[list[int]]]] = []
    for *_, what, often in drawn.judgments:
        tiers: dict[float, set[int]] = {}
        for item, value in what:
            if value is not None and (at := drawn.items.index(item)) < len(names):
                tiers.setdefault(value, set()).add(at + 1)
        if tiers:
            orders.append((often, [sorted(tiers[value]) for value in sorted(tiers)]))
    orders = orders or [(1, [[1]])]
    tied = any(len(tier) > 1 for _, order in orders for tier in order)
    whole = all(sum(map(len, order)) == len(names) for _, order in orders)
    ending = ("t" if tied or random.random() < 0.3 else "s") + "o" + ("c" if whole and random.random() < 0.5 else "i")
    distinct = {tuple(map(tuple, order)) for _, order in orders}
    head = {"FILE NAME": f"x.{ending}", "DATA TYPE": ending, "NUMBER ALTERNATIVES": len(names)}
    head |= {"NUMBER VOTERS": sum(often for often, _ in orders), "NUMBER UNIQUE ORDERS": len(distinct)}
    lines = [f"# {key}: {value}" for key, value in head.items()]
    lines += [f"# ALTERNATIVE NAME {place}: {name}" for place, name in enumerate(names, 1)]
    for often, order in orders:
        said = [str(tier[0]) if len(tier) == 1 else "{" + ",".join(map(str, tier)) + "}" for tier in order]
        lines.append(f"{often}: {random.choice([',', ', ']).join(said)}")
    known = Known()
    for often, order in orders:
        entries = tuple(sorted((float(rank), names[code - 1]) for rank, tier in enumerate(order, 1) for code in tier))
        known.counts[("all", None, tuple((name, rank) for rank, name in entries))] += often
    judged = {name for one in known.counts for name, _ in one[2]}
    known.declared = {("all", name) for name in names if name not in judged}
    return ending, ("\n".join(lines) + "\n").encode(), known


def write_judged(random: Random, drawn: Drawn, form: str) -> tuple[str, bytes, Known]:
    """Write ratings as LETOR lines or qrels; a query holds one judgment."""
    known, lines = Known(), []
    for number, (*_, what, _often) in enumerate(drawn.judgments):
        query = f"q{number}" if random.random() < 0.5 else str(number)
        mine = {_token(item): value for item, value in what}
        grades = {item: int(value) if form == "qrels" else value for item, value in mine.items()}
        known.counts[(query, None, tuple(sorted((item, float(value)) for item, value in grades.items())))] += 1
        for item, value in grades.items():
            if form == "qrels":
                lines.append(
                    random.choice(["{} 0 {} {}", "{}\t0\t{}\t{}", " {}  Q0 {} {} "]).format(query, item, value)
                )
            else:
                note = random.choice(["#docid = {}", "# docid={} inc = 1", "#x docid = {} prob = 0.1"]).format(item)
                features = " ".join(f"{place}:{random.choice([0, 1, 0.5, -2])}" for place in range(1, 4))
                lines.append(f"{value} qid:{query} {features} {note}")
    random.shuffle(lines)
    endings = {"letor": ["svm", "letor", "dat", "txt", "svmlight"], "qrels": ["qrels", "qrel", "txt"]}
    return random.choice(endings[form]), ("\n".join(lines) + "\n").encode(), known


# -- all of it --------------------------------------------------------------------------------------------------------
def draw_file(random: Random, form: str | None = None) -> Source:
    """Draw judgments and write them in one format: what reading has to come to is ``known``."""
    weights = [12, 4, 10, 4, 6, 2, 3, 2, 2, 2, 4, 2, 2, 1, 2, 2, 2]
    form = form or random.choices(FORMATS, weights)[0]
    if form in ("preflib", "letor", "qrels"):
        drawn = draw_judgments(random, "orders" if form == "preflib" else "ratings")
        ending, data, known = write_preflib(random, drawn) if form == "preflib" else write_judged(random, drawn, form)
        return _named(random, form, f"log.{ending}", data, {}, known, None)
    drawn = draw_judgments(random)
    sheet = draw_sheet(random, drawn)
    options: dict[str, Any] = {"columns": sheet.given} if sheet.given else {}
    options |= {"cluster": sheet.roles["cluster"]} if "cluster" in sheet.roles else {}
    options |= {"kind": drawn.kind} if random.random() < 0.2 else {}
    known = drawn.truth(form in ("csv", "tsv"))
    return rewritten(random, Source(form, form, {}, options, known, sheet))


def rewritten(random: Random, source: Source) -> Source:
    """Write the sheet of a source in its format."""
    form, sheet, options, known = source.form, source.sheet, source.options, source.known
    assert sheet is not None
    if form in MEMORY_FORMATS:
        return replace(source, files={}, make=_in_memory(random, sheet, form))
    if form == "duckdb":
        return Source(
            form, "log.duckdb", {"log.duckdb": _database(random, sheet)}, options, known, sheet, table="my votes"
        )
    ending = {"stream": "arrow", "feather": "feather", "tsv": random.choice(["tsv", "tab"])}.get(form, form)
    if random.random() < 0.1 and sheet.rows > 1 and form not in ("json", "jsonl"):
        return _folder(random, form, ending, sheet, options, known)
    return _named(random, form, f"log.{ending}", _writer(random, form)(sheet), options, known, sheet)


def _writer(random: Random, form: str) -> Callable[[Sheet], bytes]:
    if form in ("csv", "tsv"):
        return lambda sheet: write_delimited(random, sheet, "," if form == "csv" else "\t")
    if form in ("json", "jsonl"):
        return lambda sheet: write_json(random, sheet, array=form == "json")
    return lambda sheet: _typed(random, sheet, form)


def _folder(random: Random, form: str, ending: str, sheet: Sheet, options: dict[str, Any], known: Known) -> Source:
    """Cut the rows into files of one folder (but JSON Lines, whose keys are those they happen to have)."""
    cut = random.randint(1, sheet.rows - 1)
    state = random.getrandbits(64)
    files = {}
    for name, part in (("1", slice(0, cut)), ("2", slice(cut, None))):
        rows = {column: values[part] for column, values in sheet.columns.items()}
        piece = Sheet(sheet.kind, sheet.roles, rows, sheet.sorts, sheet.given)
        files[f"logs/{name}.{ending}"] = _writer(Random(state) if form not in ("csv", "tsv") else random, form)(piece)
    if form not in ("csv", "tsv"):  # one type for a column of all files
        schemas = {str(_schema(data, form)) for data in files.values()}
        if len(schemas) > 1:
            return _named(random, form, f"log.{ending}", _writer(random, form)(sheet), options, known, sheet)
    return Source(form, "logs", files, options, known, sheet)


def _schema(data: bytes, form: str) -> Any:
    if form == "parquet":
        return pa.parquet.read_schema(io.BytesIO(data))
    return (pa.ipc.open_stream if form == "stream" else pa.ipc.open_file)(io.BytesIO(data)).schema


def _named(
    random: Random, form: str, name: str, data: bytes, options: dict[str, Any], known: Known, sheet: Sheet | None
) -> Source:
    if form not in TYPED_FORMATS and random.random() < 0.2:
        name, data = f"{name}.gz", packed(random, data)
    return Source(form, name, {name: data}, options, known, sheet)


def layout_of(source: Source) -> tuple[str, dict[str, str]]:
    """Return the kind of a log and its roles, as it was written."""
    if source.sheet is None:
        return ("orders" if source.form == "preflib" else "ratings"), {}
    return source.sheet.kind, source.sheet.roles
