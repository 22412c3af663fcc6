"""Both engines give equal Preferences on every file, and any bytes give a clear error or a right answer."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant import Preferences
from concordant.errors import ConcordantError
from concordant.io.engines import sql
from concordant.io.layouts import Reading
from concordant.io.read import read, read_log

FEW = settings(max_examples=25)
SOME = settings(max_examples=60)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def both(path: Path, **options: Any) -> Reading | ConcordantError:
    """Read with either engine: nothing but a ConcordantError may come out, and both say the same."""
    answers: list[Reading | ConcordantError] = []
    for engine in ("duckdb", "memory"):
        try:
            answers.append(read_log(path, engine=engine, **options))
        except ConcordantError as error:
            answers.append(error)
    one, other = answers
    assert all("\n" not in str(answer) for answer in answers if not isinstance(answer, Reading))
    if isinstance(one, Reading) and isinstance(other, Reading):
        assert one.preferences == other.preferences
        assert one.rows == other.rows
        assert [(r.reason, r.number) for r in one.rejects] == [(r.reason, r.number) for r in other.rejects]
    else:
        assert type(one) is type(other), f"{one} | {other}"
    return one


# -- any bytes -----------------------------------------------------------------------------------------------------
HEADS = [
    b"winner,loser\n",
    b"winner,loser,weight\n",
    b"winner,loser,count\r\n",
    b"left,right,winner\n",
    b"\xef\xbb\xbfwinner,loser\n",
    b'"winner","loser"\n',
    b"query,session,position,item,clicked\n",
    b"session,item,chosen\n",
    b"user,item,rating\n",
    b"query,judgment,item,rank\n",
    b"",
]
CELLS = [b"a", b"b", b"c", b"1", b"2", b"3", b"", b"0", b'"a"', b'"a""b"', b'"a\nb"', b'a"b', b" a", b'"a" ', b'"a" x']
CELLS += [
    b"left",
    b"tie",
    b"1.5",
    b"nan",
    b"-1",
    b"\xc3\xa9",
    b"a\0b",
    b"\xff",
    b"NULL",
    b'""',
    b'"',
    b"'",
    b"\\",
    b"#",
]
ENDS = [b"\n"] * 12 + [b"\r\n", b"\r", b"\n\n", b"", b",\n", b" \n"]
PLAIN = [b"a", b"b", b"c", b"d", b"1", b"2", b"3", b"left", b"tie", b"0", b""]


def logs_of(cells: list[bytes], ends: list[bytes]) -> st.SearchStrategy[bytes]:
    def rows(head: bytes) -> st.SearchStrategy[bytes]:
        width = head.count(b",") + 1
        cell = st.lists(st.sampled_from(cells), min_size=width, max_size=width).map(b",".join)
        row = st.tuples(cell, st.sampled_from(ends)).map(b"".join)
        return st.lists(row, max_size=8).map(lambda found: head + b"".join(found))

    return st.sampled_from(HEADS).flatmap(rows)


SKIP = {"on_error": "skip", "clicks": "skip"}


@SOME
@given(data=logs_of(PLAIN, [b"\n"]))
def test_rows_of_plain_fields(folder: Path, data: bytes) -> None:
    (folder / "plain.csv").write_bytes(data)
    both(folder / "plain.csv")
    both(folder / "plain.csv", **SKIP)


@SOME
@given(data=logs_of(CELLS, ENDS), tabs=st.booleans())
def test_rows_of_odd_fields(folder: Path, data: bytes, tabs: bool) -> None:
    path = folder / ("odd.tsv" if tabs else "odd.csv")
    path.write_bytes(data.replace(b",", b"\t") if tabs else data)
    both(path, **SKIP)


ENDINGS = [
    ".csv",
    ".tsv",
    ".jsonl",
    ".json",
    ".soc",
    ".soi",
    ".toc",
    ".toi",
    ".txt",
    ".svm",
    ".qrels",
    ".run",
    ".parquet",
]
ENDINGS += [".arrow", ".csv.gz", ".jsonl.gz"]


@pytest.mark.parametrize("more", [",", ",,", ',"",""', ",,,,,"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_fields_behind_the_last_column_say_nothing(tmp_path: Path, more: str, end: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(f"winner,loser{end}a,b{more}{end}a,c{end}".encode())
    found = both(path)
    assert isinstance(found, Reading)
    assert found.preferences == Preferences.from_comparisons(["a", "a"], ["b", "c"])
    path.write_bytes(f"winner,loser{end}a,b{more}x{end}a,c{end}".encode())
    assert "line 2 has" in str(both(path))


@SOME
@given(data=st.binary(max_size=80), ending=st.sampled_from(ENDINGS))
def test_any_bytes(folder: Path, data: bytes, ending: str) -> None:
    path = folder / f"any{ending}"
    path.write_bytes(data)
    both(path)


HEADER = b"# DATA TYPE: %s\n# NUMBER ALTERNATIVES: 2\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 1\n"
HEADER += b"# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n"
BITS = [b"3", b":", b" ", b"1", b",", b"2", b"{", b"}", b"\n", b"#", b"1:2", b"0", b"x", b"\xff", b"-"]


@SOME
@given(
    body=st.lists(st.sampled_from(BITS), max_size=10).map(b"".join),
    kind=st.sampled_from([b"soc", b"soi", b"toc", b"toi"]),
)
def test_any_preflib_body(folder: Path, body: bytes, kind: bytes) -> None:
    path = folder / f"any.{kind.decode()}"
    path.write_bytes(HEADER % kind + body)
    answer = both(path)
    assert isinstance(answer, ConcordantError) or len(answer.preferences) == 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["a", "b", "left", "tie", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=1),
    max_leaves=3,
)
RECORD = st.dictionaries(st.sampled_from(["winner", "loser", "weight", "item", "rating", "user"]), VALUES, max_size=4)
CLEAN = st.fixed_dictionaries({"winner": st.sampled_from([1, 2, 3]), "loser": st.sampled_from([4, 5])})
LINES = [b"null", b"{}", b"[]", b"3", b"{", b'{"winner":1,"winner":2}', b'{"winner":"\\ud800","loser":"b"}', b"\xff"]
LINES += [b'{"winner":NaN,"loser":4}', b'{"winner":1e5,"loser":2}', b'{"winner":99999999999999999999,"loser":2}']


@SOME
@given(
    lines=st.lists(
        st.tuples(
            (CLEAN | CLEAN | RECORD).map(lambda record: json.dumps(record).encode()) | st.sampled_from(LINES),
            st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n", b"", b","]),
        ).map(b"".join),
        max_size=5,
    ),
    array=st.booleans(),
)
def test_any_json(folder: Path, lines: list[bytes], array: bool) -> None:
    path = folder / ("any.json" if array else "any.jsonl")
    path.write_bytes(b"[" + b",".join(line.strip(b",\r\n") for line in lines) + b"]" if array else b"".join(lines))
    both(path, **SKIP)


# -- round trips ---------------------------------------------------------------------------------------------------
LABEL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
ODD = st.sampled_from(
    ['"', '""', ",", "\n", "\r\n", "\r", "'; DROP TABLE log; --", "<script>", " ", "\t", "NULL", "\\", "é"]
)
PAIRS = st.lists(st.tuples(LABEL | ODD, LABEL | ODD).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=6)


@SOME
@given(pairs=PAIRS, json_too=st.booleans())
def test_labels_round_trip(folder: Path, pairs: list[tuple[str, str]], json_too: bool) -> None:
    winner, loser = zip(*pairs, strict=True)
    expected = Preferences.from_comparisons(list(winner), list(loser))
    if json_too:
        path = folder / "labels.jsonl"
        text = "".join(json.dumps({"winner": w, "loser": other}) + "\n" for w, other in pairs)
    else:
        path = folder / "labels.csv"
        buffer = io.StringIO(newline="")
        csv.writer(buffer).writerows([("winner", "loser"), *pairs])
        text = buffer.getvalue()
    path.write_bytes(text.encode())
    answer = both(path)
    assert isinstance(answer, Reading), answer
    assert answer.preferences == expected
    assert set(answer.preferences.items.tolist()) == {label for pair in pairs for label in pair}


@FEW
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1), st.integers(0, 5)).filter(
            lambda r: r[1] != r[2]
        ),
        min_size=1,
        max_size=20,
    )
)
def test_parquet_of_integers(folder: Path, rows: list[tuple[int, int, int]]) -> None:
    query, winner, loser = (list(column) for column in zip(*rows, strict=True))
    pa.parquet.write_table(pa.table({"query": query, "winner": winner, "loser": loser}), folder / "n.parquet")
    answer = both(folder / "n.parquet")
    assert isinstance(answer, Reading)
    assert answer.preferences == Preferences.from_comparisons(winner, loser, query)


@pytest.mark.parametrize("edge", [2**31 - 1, 2**31, 2**31 + 5, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_integers_where_32_bits_end(tmp_path: Path, edge: int) -> None:
    pa.parquet.write_table(pa.table({"winner": [edge, 1], "loser": [0, edge]}), tmp_path / "n.parquet")
    answer = both(tmp_path / "n.parquet")
    assert isinstance(answer, Reading)
    assert answer.preferences == Preferences.from_comparisons([edge, 1], [0, edge])


@pytest.mark.parametrize("texts", [False, True])
def test_more_tuples_than_one_batch_holds(tmp_path: Path, texts: bool) -> None:
    """Batches in which integers fit into 32 bits and batches in which they do not are joined; so are dictionaries."""
    winner = np.arange(300_000)
    winner[-1] = 1 << 40
    loser = np.arange(300_000) // 100 + 500_000
    table = pa.table({"winner": winner, "loser": loser})
    if texts:
        table = table.cast(pa.schema([("winner", pa.string()), ("loser", pa.string())]))
    pa.parquet.write_table(table, tmp_path / "n.parquet")
    answer = both(tmp_path / "n.parquet")
    assert isinstance(answer, Reading)
    assert len(answer.preferences) == answer.preferences.distinct == 300_000


@FEW
@given(data=st.data())
def test_lists_do_not_depend_on_the_order_of_rows(folder: Path, data: st.DataObject) -> None:
    lists = data.draw(
        st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True), min_size=1, max_size=6)
    )
    rows = [
        (f"q{j % 2}", j, place, item, int(place == 1 + j % 3))
        for j, items in enumerate(lists)
        for place, item in enumerate(items, 1)
    ]
    shuffled = data.draw(st.permutations(rows))
    names = ["query", "session", "position", "item", "clicked"]
    expected = read(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    with open(folder / "lists.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *shuffled])
    answer = both(folder / "lists.csv")
    assert isinstance(answer, Reading)
    texts = read(
        {name: [str(value) for value in column] for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )
    assert answer.preferences == texts == expected


def test_partitions_merge_to_the_whole(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    winner, step = generator.integers(0, 50, 4000), generator.integers(1, 50, 4000)
    table = pa.table({"winner": winner, "loser": (winner + step) % 50, "query": generator.integers(0, 9, 4000)})
    for part in range(4):
        pa.parquet.write_table(table.slice(part * 1000, 1000), tmp_path / f"{part}.parquet")
    parts = [read(tmp_path / f"{part}.parquet") for part in (2, 0, 3, 1)]
    assert sum(parts, Preferences.empty()) == read(table) == read(table, engine="duckdb")


# -- the SQL text --------------------------------------------------------------------------------------------------
def test_only_asked_columns_are_in_the_statement() -> None:
    text = sql.count_rows("votes", {"winner": "w", "loser": 'l"; --'})
    assert text == (
        'SELECT log."w" AS "winner", log."l""; --" AS "loser", count(*) AS "rows" FROM votes AS log '
        'GROUP BY log."w", log."l""; --"'
    )


@given(name=st.text(max_size=20))
def test_quoting_leaves_no_way_out(name: str) -> None:
    for quoted, mark in ((sql.identifier(name), '"'), (sql.literal(name), "'")):
        inside = quoted[1:-1]
        assert quoted[0] == quoted[-1] == mark
        assert inside.replace(mark * 2, "").count(mark) == 0
        assert inside.replace(mark * 2, mark) == name
