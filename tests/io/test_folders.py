"""A folder of files is one log: the sum of the logs of its files, whichever engine reads it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from concordant import InputError, Preferences
from concordant.apps.commands import main
from concordant.io.log.formats import locate
from concordant.io.read import read, read_log

ENGINES = ("duckdb", "memory")
Rows = list[dict[str, Any]]


def _csv(path: Path, rows: Rows, end: str = "\n") -> None:
    lines = [list(rows[0]), *(row.values() for row in rows)]
    path.write_text("".join(",".join(map(str, line)) + end for line in lines))


def _jsonl(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _array(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps(rows))


def _parquet(path: Path, rows: Rows) -> None:
    pa.parquet.write_table(pa.Table.from_pylist(rows), path)


def _feather(path: Path, rows: Rows) -> None:
    pa.feather.write_feather(pa.Table.from_pylist(rows), path)


def _gzipped(path: Path, rows: Rows) -> None:
    _csv(path, rows)
    path.write_bytes(gzip.compress(path.read_bytes()))


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    ".csv": _csv,
    ".csv.gz": _gzipped,
    ".jsonl": _jsonl,
    ".json": _array,
    ".parquet": _parquet,
    ".arrow": _feather,
}


def _votes(random: np.random.Generator, number: int) -> Rows:
    pairs = [random.permutation(5)[:2] for _ in range(number)]
    return [{"query": f"q{random.integers(3)}", "winner": f"i{a}", "loser": f"i{b}"} for a, b in pairs]


def _clicks(random: np.random.Generator, sessions: range) -> Rows:
    rows = []
    for session in sessions:
        click = random.integers(0, 4)
        query = int(random.integers(2))
        rows += [
            {"query": query, "session": session, "position": k + 1, "item": int(item), "clicked": int(k == click)}
            for k, item in enumerate(random.permutation(6)[:3])
        ]
    return rows


# -- the law -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_is_the_sum_of_its_files(tmp_path: Path, ending: str, engine: str) -> None:
    random = np.random.default_rng(5)
    for name, rows in (
        ("comparisons", [_votes(random, n) for n in (30, 1, 12)]),
        ("selections", [_clicks(random, s) for s in (range(9), range(9, 10), range(10, 30))]),
    ):
        folder = tmp_path / name
        folder.mkdir()
        for place, part in enumerate(rows):
            WRITERS[ending](folder / f"day [{place}]{ending}", part)
        whole = read_log(folder, engine=engine)
        parts = [read(path, engine=engine) for path in folder.iterdir()]
        assert whole.preferences == parts[0] + parts[1] + parts[2]
        assert whole.preferences.kind == name
        assert whole.rows == sum(map(len, rows))
        assert whole.name == name


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_files_is_that_of_their_names(tmp_path: Path, engine: str) -> None:
    for name in ("b.csv", "a.csv", "10.csv"):
        _csv(tmp_path / name, [{"winner": "x", "loser": "y"}])
    log = locate(tmp_path)
    assert [path.name for path in log.paths] == ["10.csv", "a.csv", "b.csv"]
    assert log.path == log.paths[0]
    assert locate(tmp_path / "b.csv").paths == (tmp_path / "b.csv",)
    assert read(tmp_path, engine=engine) == read({"winner": ["x"] * 3, "loser": ["y"] * 3})


def test_hidden_files_are_no_part_of_a_log(tmp_path: Path) -> None:
    rows = [{"winner": "x", "loser": "y"}]
    _parquet(tmp_path / "part-0.parquet", rows)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").write_bytes(b"crc")
    (tmp_path / "_metadata").mkdir()
    assert read(tmp_path) == read(tmp_path / "part-0.parquet")


@pytest.mark.parametrize("engine", ENGINES)
def test_headers_and_line_ends_may_differ(tmp_path: Path, engine: str) -> None:
    rows = [{"winner": "x", "loser": "y"}, {"winner": "y", "loser": "z"}]
    _csv(tmp_path / "a.csv", rows)
    _csv(tmp_path / "b.csv", rows, end="\r\n")
    (tmp_path / "c.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.csv").read_bytes())
    (tmp_path / "d.csv").write_text("winner,loser\n")  # a day without votes
    assert read(tmp_path, engine=engine) == read({"winner": ["x", "y"] * 3, "loser": ["y", "z"] * 3})
    (tmp_path / "e.csv").write_text("\n\nwinner,loser\nx,y\n")  # blank lines above the header
    assert len(read(tmp_path, engine=engine)) == 7


@pytest.mark.parametrize("engine", ENGINES)
def test_widths_and_dictionaries_are_no_drift(tmp_path: Path, engine: str) -> None:
    texts = pa.array(["a", "b", "a"])
    for place, (width, text) in enumerate(
        [(pa.int8(), texts), (pa.int64(), texts.dictionary_encode()), (pa.uint16(), texts.cast(pa.large_string()))]
    ):
        high = [1, 2, 100 if place != 1 else 1 << 40]
        table = pa.table({"query": texts if place == 0 else text, "winner": pa.array(high, width), "loser": [7, 8, 9]})
        pa.parquet.write_table(table if place < 2 else table.select([2, 0, 1]), tmp_path / f"{place}.parquet")
    whole = read(tmp_path, engine=engine)
    parts = [read(path, engine=engine) for path in sorted(tmp_path.iterdir())]
    assert whole == parts[0] + parts[1] + parts[2]


@pytest.mark.parametrize("engine", ENGINES)
def test_judged_documents_of_many_files(tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.txt").write_text("2 qid:1 1:0.5 # docid = d1\n0 qid:1 1:0.25 # docid = d2\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:0.5 # docid = d1\n0 qid:2 1:0.25 # docid = d3\n")
    expected = Preferences.from_ratings([1, 1, 2, 2], ["d1", "d2", "d1", "d3"], [2, 0, 1, 0])
    found = read(tmp_path, engine=engine)
    assert found.summary() == expected.summary()
    assert found == read(tmp_path / "a.txt") + read(tmp_path / "b.txt")


# -- what is refused -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_refused_rows_are_named_with_file_and_line(tmp_path: Path, engine: str, ending: str) -> None:
    good = [{"winner": "x", "loser": "y"}, {"winner": "y", "loser": "x"}]
    folder = tmp_path / "votes"
    folder.mkdir()
    WRITERS[ending](folder / f"a{ending}", good)
    WRITERS[ending](folder / f"b{ending}", [*good, {"winner": "z", "loser": "z"}])
    WRITERS[ending](folder / f"c{ending}", [{"winner": "w", "loser": "w"}])
    first = {".csv": "line 4", ".jsonl": "line 3", ".parquet": "row 3"}[ending]
    second = {".csv": "line 2", ".jsonl": "line 1", ".parquet": "row 1"}[ending]
    said = f"votes: 2 of 6 rows compare an item with itself (b{ending} {first}: 'z'; c{ending} {second}: 'w')."
    with pytest.raises(InputError) as caught:
        read(folder, engine=engine)
    assert str(caught.value) == said
    skipped = read_log(folder, engine=engine, on_error="skip")
    assert skipped.report() == said
    assert len(skipped.preferences) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_broken_file_is_named(tmp_path: Path, engine: str) -> None:
    _csv(tmp_path / "a.csv", [{"winner": "x", "loser": "y"}])
    (tmp_path / "b.csv").write_text("winner,loser\nx,y\nx,y,z,u\n")
    with pytest.raises(InputError, match=rf"^{tmp_path.name}/b.csv: line 3 has 4 fields"):
        read(tmp_path, engine=engine)
    (tmp_path / "b.csv").write_bytes(b"\n")
    assert read(tmp_path, engine=engine) == read(tmp_path / "a.csv")
    for name in "ab":
        (tmp_path / f"{name}.csv").write_bytes(b"")
    with pytest.raises(InputError, match=r": all files in it are empty \(2\)$"):
        read(tmp_path, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", WRITERS)
def test_columns_that_are_missing_are_named(tmp_path: Path, engine: str, ending: str) -> None:
    for name in "ab":
        WRITERS[ending](tmp_path / f"{name}{ending}", [{"winner": "x", "loser": "y"}])
    WRITERS[ending](tmp_path / f"c{ending}", [{"winner": "x", "lost": "y", "who": "z"}])
    with pytest.raises(InputError) as caught:
        read(tmp_path, engine=engine)
    place = {"lin": "line 2", "jso": "line 1"}.get({".csv": "lin", ".csv.gz": "lin", ".jsonl": "jso"}.get(ending, ""))
    said = f"{tmp_path.name}: 1 of 3 rows have no loser (c{ending} {place or 'row 1'})."
    assert str(caught.value).startswith(said)
    reading = read_log(tmp_path, engine=engine, on_error="skip")
    assert reading.preferences == read({"winner": ["x"] * 2, "loser": ["y"] * 2})
    lacking = f"'lost', 'who' are not in 2 of 3 files ('a{ending}', 'b{ending}'), and missing there"
    assert any(note.endswith(lacking) for note in reading.notes)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("changed", [pa.float64(), pa.binary(), pa.bool_(), pa.timestamp("us")])
def test_types_that_do_not_go_together(tmp_path: Path, engine: str, changed: pa.DataType) -> None:
    _parquet(tmp_path / "a.parquet", [{"winner": "1", "loser": "2", "more": "3"}])
    values = pa.array([b"1"], changed) if pa.types.is_binary(changed) else pa.array([1]).cast(changed)
    pa.parquet.write_table(pa.table({"winner": ["1"], "loser": values, "more": ["3"]}), tmp_path / "b.parquet")
    with pytest.raises(InputError) as caught:
        read(tmp_path, engine=engine)
    said = f"the column 'loser' changes its type from file to file: string in 'a.parquet'; {changed} in 'b.parquet'"
    assert str(caught.value) == f"{tmp_path.name}: {said}; write them as one type"
    assert len(read(tmp_path, engine=engine, columns={"loser": "more"})) == 2  # it is not asked for


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "changed", [pa.int8(), pa.int64(), pa.uint64(), pa.dictionary(pa.int32(), pa.int64()), pa.date32()]
)
def test_integers_and_dates_beside_texts_are_texts(tmp_path: Path, engine: str, changed: pa.DataType) -> None:
    _parquet(tmp_path / "a.parquet", [{"winner": "1", "loser": "12"}])
    values = pa.array([12], pa.int32())
    values = values.dictionary_encode() if pa.types.is_dictionary(changed) else values.cast(changed)
    pa.parquet.write_table(pa.table({"winner": ["1"], "loser": values}), tmp_path / "b.parquet")
    written = "1970-01-13" if pa.types.is_date(changed) else "12"
    found = read(tmp_path, engine=engine)
    assert found == read({"winner": ["1", "1"], "loser": ["12", written]})
    assert any("'loser' changes its type from file to file and is read as texts" in note for note in found.notes)


@pytest.mark.parametrize("engine", ENGINES)
def test_order_and_form_may_differ(tmp_path: Path, engine: str) -> None:
    _csv(tmp_path / "a.csv", [{"winner": "x", "loser": "y"}])
    _csv(tmp_path / "b.csv", [{"loser": "x", "winner": "y"}])
    assert read(tmp_path, engine=engine) == read({"winner": ["x", "y"], "loser": ["y", "x"]})
    folder = tmp_path / "json"
    folder.mkdir()
    _array(folder / "a.json", [{"winner": "x", "loser": "y"}])
    _jsonl(folder / "b.json", [{"winner": "x", "loser": "y"}])
    assert read(folder, engine=engine) == read({"winner": ["x", "x"], "loser": ["y", "y"]})


def test_a_folder_that_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder holds no files \(names that begin with '.' or '_'"):
        read(tmp_path)
    _csv(tmp_path / "a.csv", [{"winner": "x", "loser": "y"}])
    _jsonl(tmp_path / "b.jsonl", [{"winner": "x", "loser": "y"}])
    (tmp_path / "README").touch()
    mixed = r"one ending, those of this folder have 3 \(\.csv: 'a.csv'; \.jsonl: 'b.jsonl'; no ending: 'README'\)"
    with pytest.raises(InputError, match=mixed):
        read(tmp_path)
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "a.xyz").write_text("x")
    with pytest.raises(InputError, match=r"a.xyz: unknown ending '.xyz'"):
        read(folder)
    (folder / "a.xyz").rename(folder / "a.soc")
    with pytest.raises(InputError, match=r"PrefLib files"):
        read(folder)


# -- the command ---------------------------------------------------------------------------------------------------
def test_the_command_ranks_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(2)
    folder, whole = tmp_path / "days", tmp_path / "whole.csv"
    folder.mkdir()
    days = [_votes(random, 40) for _ in range(3)]
    for place, rows in enumerate(days):
        _csv(folder / f"{place}.csv", rows)
    _csv(whole, [row for rows in days for row in rows])
    answers = []
    for source in (folder, whole):
        main(["rank", str(source), "--output", str(tmp_path / "ranking.csv")])
        capsys.readouterr()
        answers.append((tmp_path / "ranking.csv").read_text())
    assert answers[0] == answers[1]
    with pytest.raises(SystemExit, match="2"):
        main(["rank", str(folder), "--output", str(folder / "ranking.csv")])
    assert "lies in the folder of the log" in capsys.readouterr().err
    shutil.copy(whole, folder / "3.tsv")
    with pytest.raises(SystemExit, match="2"):
        main(["rank", str(folder)])
    error = capsys.readouterr().err
    assert error.startswith("error: days: the files of a log have one ending")
    assert error.count("\n") == 1
