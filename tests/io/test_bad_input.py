"""Everything that can be wrong with a log has its own clear error, of one line, in both engines."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from concordant.errors import ConcordantError, InputError, UsageError
from concordant.io.read import read, read_log

ENGINES = ("duckdb", "memory")
VOTES = b"left,right,winner\na,b,left\n"
SHOWN = b"query,session,position,item,clicked\n"
RANKED = b"query,judgment,item,rank\n"

# file name, content, what the message must say
BAD: dict[str, tuple[str, bytes, str]] = {
    "unknown outcome": (
        "v.csv",
        VOTES + b"a,b,lefft\n" * 2 + b"b,c,tie\nb,c,leeft\n",
        r"v.csv: 3 of 5 rows have an unknown outcome \(line 3: 'lefft'; line 4: 'lefft'; line 6: 'leeft'\)\. "
        r"Allowed: left, right, .*tie, draw, .*or the label of the winning item; .*graded .* with a scale\.",
    ),
    "no outcome": ("v.csv", VOTES + b"a,b,\n", r"1 of 2 rows have no outcome \(line 3\)\. Allowed: left"),
    "an item against itself": (
        "v.csv",
        VOTES + b"c,c,left\n",
        r"1 of 2 rows compare an item with itself \(line 3: 'c'\)",
    ),
    "no left": ("v.csv", VOTES + b",c,left\n", r"1 of 2 rows have no left \(line 3\)"),
    "no query": ("v.csv", b"query,winner,loser\n,a,b\nq,a,b\n", r"1 of 2 rows have no query \(line 2\)"),
    "negative weight": (
        "v.csv",
        b"winner,loser,weight\na,b,-2\n",
        r"1 of 1 rows have a negative weight \(line 2: '-2'\). A weight is a real number above 0",
    ),
    "zero weight": ("v.csv", b"winner,loser,weight\na,b,0.0\n", r"1 of 1 rows have a weight of zero \(line 2: '0.0'\)"),
    "NaN weight": ("v.csv", b"winner,loser,weight\na,b,NaN\n", r"have a weight that is not finite \(line 2: 'NaN'\)"),
    "infinite weight": (
        "v.csv",
        b"winner,loser,weight\na,b,-inf\n",
        r"have a weight that is not finite \(line 2: '-inf'\)",
    ),
    "weight beyond float64": ("v.csv", b"winner,loser,weight\na,b,1e999\n", r"have a weight that is not finite"),
    "weight in words": (
        "v.csv",
        b"winner,loser,weight\na,b,1_0\n",
        r"have a weight that is not a number \(line 2: '1_0'\)",
    ),
    "no weight": ("v.csv", b"winner,loser,weight\na,b,\n", r"have no weight \(line 2\)"),
    "half a count": (
        "v.csv",
        b"winner,loser,count\na,b,1.5\n",
        r"have a count that is not an integer of at least 1 \(line 2: '1.5'\)",
    ),
    "a count of zero": ("v.csv", b"winner,loser,count\na,b,0\n", r"have a count that is not an integer of at least 1"),
    "no score": (
        "v.csv",
        b"left,right,left_score,right_score\na,b,NA,1\n",
        r"have a left_score that is not a number \(line 2: 'NA'\)",
    ),
    "no wins": ("v.csv", b"home,away,home_wins,away_wins\na,b,0,0\n", r"have no win on either side"),
    "null byte in a label": (
        "v.csv",
        b"winner,loser\na,b\na\0,b\n",
        r"1 of 2 rows have a null byte in the winner \(line 3: 'a\\x00'\)",
    ),
    "invalid encoding": (
        "v.csv",
        b"winner,loser\na,b\na\xff,b\n",
        r"v.csv: the encoding is not UTF-8 \(byte 0xff\); save the file as UTF-8",
    ),
    "Latin-1 header": ("v.csv", b"winner,l\xf6ser\na,b\n", r"the encoding is not UTF-8 \(byte 0xf6\)"),
    "UTF-16": ("v.csv", "winner,loser\na,b\n".encode("utf-16"), r"the encoding is UTF-16, not UTF-8"),
    "invalid encoding in JSON": ("v.jsonl", b'{"winner":"a\xff","loser":"b"}\n', r"the encoding is not UTF-8"),
    "a lone surrogate in JSON": (
        "v.jsonl",
        b'{"winner":"\\ud800","loser":"b"}\n',
        r"line 1 holds a text with invalid encoding",
    ),
    "an empty file": ("v.csv", b"", r"v.csv: the file is empty"),
    "only blank lines": ("v.csv", b"\n\n", r"v.csv: the file is empty"),
    "an empty gzip": ("v.csv.gz", gzip.compress(b""), r"v.csv.gz: the file is empty"),
    "empty JSON": ("v.jsonl", b"\n", r"v.jsonl: the file is empty"),
    "an empty array": ("v.json", b"[]", r"v.json: the file holds no rows"),
    "header only": ("v.csv", b"winner,loser\n", r"v.csv: there is a header but no rows"),
    "header only, lists": ("v.csv", SHOWN, r"v.csv: there is a header but no rows"),
    "ragged, short": ("v.csv", b"winner,loser\na,b\nc\n", r"v.csv: line 3 has 1 fields, the header has 2"),
    "ragged, long": ("v.csv", b'winner,loser\n"a\nx",b\nc,d,e\n', r"v.csv: line 4 has 3 fields, the header has 2"),
    "an open quote": ("v.csv", b'winner,loser\na,b\n"c,d\n', r"v.csv: line 3 opens a quote that is never closed"),
    "text after a quote": (
        "v.csv",
        b'winner,loser\na,b\n"c"x,d\n',
        r"v.csv: line 3 has text after a closing quote: 'x,d",
    ),
    "a header twice": (
        "v.csv",
        b"winner,loser,winner\na,b,c\n",
        r"the header \(line 1\) names 'winner' more than once",
    ),
    "two columns for a role": (
        "v.csv",
        b"left,right,winner,label\na,b,left,left\n",
        r"'winner', 'label' could each be the outcome",
    ),
    "two layouts": ("v.csv", b"winner,loser,left,right\na,b,a,b\n", r"two layouts fit .*say which columns"),
    "a missing column": (
        "v.csv",
        b"winer,loser\na,b\n",
        r"v.csv: no layout fits these columns; columns there: 'winer', 'loser'.*Known: comparisons: \(winner,loser\).*"
        r"query/qid/query_id.*selections: .*orders: .*ratings: ",
    ),
    "sides without an outcome": (
        "v.csv",
        b"left,right\na,b\n",
        r"comparisons lacks an outcome .* to go with 'left' and 'right'",
    ),
    "two kinds": (
        "v.csv",
        b"query,session,position,item,clicked,rating\nq,1,1,a,0,3\n",
        r"could be selections or ratings; say which",
    ),
    "not a number in a rating": (
        "v.csv",
        b"user,item,rating\n1,a,3\n1,b,good\n",
        r"1 of 2 rows have a rating that is not a number \(line 3: 'good'\). A rating is a finite number",
    ),
    "no rating": ("v.csv", b"user,item,rating\n1,a,\n", r"1 of 1 rows have no rating \(line 2\)"),
    "infinite rating": ("v.csv", b"user,item,rating\n1,a,inf\n", r"have a rating that is not finite \(line 2: 'inf'\)"),
    "an item rated twice": (
        "v.csv",
        b"user,item,rating\n1,a,3\n2,a,3\n1,a,4\n",
        r"1 of 2 judgments hold an item twice \(line 4: 'a'\)",
    ),
    "a position twice": (
        "v.csv",
        SHOWN + b"q,1,1,a,0\nq,1,01,b,1\n",
        r"1 of 1 lists hold a position twice \(line 3: '01'|1 of 1 lists hold a position twice \(line 2: '1'",
    ),
    "an item twice": ("v.csv", SHOWN + b"q,1,1,a,0\nq,1,2,a,1\n", r"1 of 1 lists hold an item twice \(line 3: 'a'\)"),
    "a position of zero": (
        "v.csv",
        SHOWN + b"q,1,0,a,0\n",
        r"lists have a row with a position that is not an integer of at least 1 \(line 2: '0'\)",
    ),
    "no position": ("v.csv", SHOWN + b"q,1,,a,0\n", r"1 of 1 lists have no position \(line 2\)"),
    "no session": ("v.csv", SHOWN + b"q,,1,a,0\nq,1,1,a,1\n", r"1 of 2 lists have no session \(line 2\)"),
    "no item": ("v.csv", SHOWN + b"q,1,1,,0\n", r"1 of 1 lists have no item \(line 2\)"),
    "clicked in words": (
        "v.csv",
        SHOWN + b"q,1,1,a,maybe\n",
        r"an unknown value of clicked \(line 2: 'maybe'\). Allowed: 0, 1, true, false",
    ),
    "a rank of zero": (
        "v.csv",
        RANKED + b"q,1,a,0\n",
        r"1 of 1 rankings have a row with a rank below 1 \(line 2: '0'\)",
    ),
    "a rank in words": (
        "v.csv",
        RANKED + b"q,1,a,top\n",
        r"have a row with a rank that is not a number \(line 2: 'top'\)",
    ),
    "an item ranked twice": (
        "v.csv",
        RANKED + b"q,1,a,1\nq,1,a,2\n",
        r"1 of 1 rankings hold an item twice \(line 3: 'a'\)",
    ),
    "broken JSON": ("v.jsonl", b'{"winner":"a","loser":"b"}\n{"winner":\n', r"v.jsonl: line 2 is not valid JSON"),
    "JSON that is no object": (
        "v.jsonl",
        b'{"winner":"a","loser":"b"}\n[1]\n',
        r"line 2 is not a JSON object but list",
    ),
    "a key twice": (
        "v.jsonl",
        b'{"winner":"a","winner":"b","loser":"c"}\n',
        r"line 1 is not valid JSON: 'winner' occurs twice",
    ),
    "texts and integers": (
        "v.jsonl",
        b'{"winner":"a","loser":"b"}\n{"winner":1,"loser":"b"}\n',
        r"v.jsonl: the column of winner mixes texts \('a'\) and integers \(1\)",
    ),
    "a real label": (
        "v.jsonl",
        b'{"winner":1.5,"loser":2}\n{"winner":1,"loser":2}\n',
        r"1 of 2 rows have a winner that is neither a text nor an integer \(line 1: 1.5\)",
    ),
    "a boolean label": (
        "v.json",
        b'[{"winner":true,"loser":2}]',
        r"1 of 1 rows have a winner that is neither a text nor an integer \(row 1: True\)",
    ),
    "no label in JSON": (
        "v.jsonl",
        b'{"loser":"b"}\n{"winner":"a","loser":"b"}\n',
        r"1 of 2 rows have no winner \(line 1\)",
    ),
    "integers beyond 64 bits": (
        "v.jsonl",
        b'{"winner":99999999999999999999,"loser":1}\n',
        r"winner holds integers beyond 64 bits with sign; turn them into texts",
    ),
    "a truncated gzip": (
        "v.csv.gz",
        gzip.compress(VOTES * 500)[:-20],
        r"v.csv.gz: the gzip file is (truncated|broken)",
    ),
    "no gzip at all": ("v.csv.gz", VOTES, r"v.csv.gz: the gzip file is broken .Not a gzipped file"),
    "gzip without the ending": ("v.csv", gzip.compress(VOTES), r"packed with gzip; give it the ending .gz"),
    "no Parquet at all": ("v.parquet", VOTES, r"v.parquet: not a complete Parquet file"),
    "no Arrow at all": ("v.arrow", VOTES, r"v.arrow: not a complete Arrow file"),
    "no database": ("v.duckdb::votes", VOTES, r"v.duckdb::votes: cannot be opened as a DuckDB database"),
    "an unknown ending": ("v.xlsx", VOTES, r"v.xlsx: unknown ending '.xlsx'; known: .csv"),
    "no ending": ("votes", VOTES, r"votes: unknown ending ''"),
    "a database without a table": ("v.duckdb", VOTES, r"v.duckdb: name the table in the database, as v.duckdb::TABLE"),
    "a text of no format": ("v.txt", b"hello\n", r"v.txt: neither LETOR, a run, qrels, nor a table"),
    "broken LETOR": ("v.txt", b"1 qid:1 1:2\nx\n", r"v.txt: line 2 is not of the form"),
    "a LETOR label in words": (
        "v.txt",
        b"1 qid:1 1:2\nx qid:1 2:3\n",
        r"1 of 2 rows have a rating that is not a number \(line 2: 'x'\)",
    ),
    "a run without tags": (
        "v.run",
        b"1 Q0 D1 1 .5 a\n1 Q0 D2 2 .4\n",
        r"v.run: line 2 has 5 fields, a run has 6",
    ),
    "a run by its second field": ("v.txt", b"1 Q0 D1 1 .5\n", r"v.txt: line 1 has 5 fields, a run has 6"),
    "a run with a score in words": (
        "v.run",
        b"1 Q0 D1 1 x a\n",
        r"v.run: line 1: the score 'x' is not",
    ),
    "a run with a score that is none": (
        "v.run",
        b"1 Q0 D1 1 .5 a\n1 Q0 D2 2 nan a\n",
        r"v.run: 1 of 2 scores are not finite numbers \(line 2: nan\)",
    ),
    "a document twice in a list": (
        "v.run",
        b"1 Q0 D1 1 .5 a\n1 Q0 D2 2 .4 a\n2 Q0 D2 1 .4 a\n1 Q0 D1 3 .3 a\n",
        r"v.run: 1 of 2 rankings hold an item twice \(line 4: 'D1'\)",
    ),
    "a run that is not UTF-8": ("v.run", b"1 Q0 D\xff 1 .5 a\n", r"v.run: the encoding is not UTF-8"),
    "a run of blank lines": ("v.run", b"\n\n", r"v.run: the file holds no rows"),
    "broken qrels": ("v.qrels", b"1 0 D1 2\n1 0 D2\n", r"v.qrels: line 2 has 3 fields, qrels have 4"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str, engine: str) -> None:
    file, content, says = BAD[name]
    (tmp_path / file.split("::")[0]).write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read(tmp_path / file, engine=engine)
    message = str(caught.value)
    assert message.startswith(file)
    assert "\n" not in message
    assert "/" not in message.split(":")[0]


def test_several_things_at_once_are_all_said(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(VOTES + b"a,b,x\nb,b,left\na,b,y\na,b,z\na,b,w\n")
    with pytest.raises(InputError) as caught:
        read(path)
    assert "1 of 6 rows compare an item with itself (line 4: 'b')." in str(caught.value)
    assert "4 of 6 rows have an unknown outcome (line 3: 'x'; line 5: 'y'; line 6: 'z')." in str(caught.value)
    assert str(caught.value).count("Allowed:") == 1


def test_lines_of_quoted_newlines(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b'winner,loser\r\n"a\nb","c\r\nd"\r\n\r\nx,x\r\n')
    for engine in ENGINES:
        with pytest.raises(InputError, match=r"\(line 6: 'x'\)"):
            read(path, engine=engine)


def test_many_rows_are_written_with_commas(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(VOTES * 1 + b"a,b,left\n" * 1200 + b"a,b,lefft\n" * 3)
    with pytest.raises(InputError, match=r"3 of 1,204 rows .*\(line 1,203: 'lefft'; line 1,204"):
        read(path)


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_bytes(VOTES)
    with pytest.raises(InputError, match=r"no file .*vote.csv; did you mean 'votes.csv'\?"):
        read(tmp_path / "vote.csv")
    with pytest.raises(InputError, match="no file"):
        read(tmp_path / "no" / "such" / "place.csv")
    with pytest.raises(InputError, match="is a folder; name a database in it"):
        read(f"{tmp_path}::votes")
    with pytest.raises(InputError, match="null byte"):
        read("a\0.csv")
    with pytest.raises(InputError):
        read("x" * 5000 + ".csv")
    with pytest.raises(InputError, match="no file"):
        read(str(tmp_path / "none.duckdb") + "::votes")


@pytest.mark.parametrize("engine", ENGINES)
def test_truncated_tables(tmp_path: Path, engine: str) -> None:
    table = pa.table({"winner": ["a", "b"] * 5000, "loser": [str(i) for i in range(10_000)]})
    pa.parquet.write_table(table, tmp_path / "v.parquet")
    pa.feather.write_feather(table, tmp_path / "v.feather")
    for name, what in (("v.parquet", "Parquet"), ("v.feather", "Arrow")):
        whole = (tmp_path / name).read_bytes()
        for keep in (len(whole) // 2, len(whole) - 4, 5):
            (tmp_path / name).write_bytes(whole[:keep])
            with pytest.raises(InputError, match=f"{name}: (not a complete {what} file|cannot be read)") as caught:
                read(tmp_path / name, engine=engine)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_parquet_file_with_broken_pages(tmp_path: Path, engine: str) -> None:
    table = pa.table({"winner": [f"w{i}" for i in range(10_000)], "loser": [f"l{i}" for i in range(10_000)]})
    pa.parquet.write_table(table, tmp_path / "v.parquet", compression="zstd", use_dictionary=False)
    whole = bytearray((tmp_path / "v.parquet").read_bytes())
    whole[200:2000] = bytes(1800)
    (tmp_path / "v.parquet").write_bytes(whole)
    with pytest.raises(InputError, match=r"v.parquet: cannot be read") as caught:
        read(tmp_path / "v.parquet", engine=engine)
    assert "\n" not in str(caught.value)


def test_an_unknown_table(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE votes AS SELECT 'a' AS winner, 'b' AS loser")
    with pytest.raises(InputError, match=r"v.duckdb: no table 'vote'; tables there: votes"):
        read(f"{path}::vote")
    with pytest.raises(InputError, match="no table"):
        read(f"{path}::votes; DROP TABLE votes")
    assert len(read(f"{path}::main.votes")) == 1


# -- what the caller says ------------------------------------------------------------------------------------------
LOG = {"left": ["a"], "right": ["b"], "winner": ["left"]}
WRONG = {
    "an unknown kind": ({"kind": "comparison"}, UsageError, "unknown kind 'comparison'; known: comparisons"),
    "another kind": ({"kind": "ratings"}, InputError, "missing for ratings: item and rating; columns there: 'left'"),
    "an unknown role": ({"columns": {"wining": "winner"}}, UsageError, "unknown role 'wining'; did you mean 'winner'"),
    "an unknown column": ({"columns": {"winner": "winer"}}, InputError, "no column 'winer' .* did you mean 'winner'"),
    "a role twice": ({"columns": {"left": "left", "model_a": "left"}}, UsageError, "the role 'left' is given twice"),
    "an unknown cluster": ({"cluster": "worker"}, InputError, "no column 'worker' .*columns there: 'left', 'right'"),
    "an unknown covariate": ({"covariates": ["x"]}, InputError, "no column 'x' "),
    "a covariate in words": (
        {"covariates": ["winner"]},
        InputError,
        "1 of 1 rows have a covariate winner that is not a number",
    ),
    "an unknown home": ({"home": "up"}, UsageError, "home must be 'left' or 'right'"),
    "an unknown clicks": ({"clicks": "some"}, UsageError, "clicks must be one of all, raise, first, last, skip, not"),
    "an unknown on_error": ({"on_error": "ignore"}, UsageError, "on_error must be one of raise, skip"),
    "an unknown engine": ({"engine": "duck"}, UsageError, "unknown engine 'duck'; did you mean 'duckdb'"),
    "a limit without DuckDB": ({"engine": "memory", "threads": 2}, UsageError, "belong to the engine duckdb"),
    "no threads": ({"engine": "duckdb", "threads": 0}, UsageError, "threads must be an integer from 1 to"),
    "a limit in words": ({"engine": "duckdb", "memory_limit": "lots"}, UsageError, "memory_limit 'lots'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words(name: str) -> None:
    options, error, says = WRONG[name]
    with pytest.raises(error, match=says):
        read_log(LOG, **options)  # type: ignore[arg-type]


def test_options_of_another_kind() -> None:
    ratings = {"user": [1], "item": ["a"], "rating": [3], "x": [1.0], "weight": [2.0]}
    with pytest.raises(UsageError, match="covariates, home and neutral belong to comparisons"):
        read(ratings, covariates=["x"])
    with pytest.raises(ConcordantError, match=r"weight|comparisons"):
        read(ratings, columns={"weight": "weight"})
    with pytest.raises(UsageError, match="neutral says where nobody is at home; it needs home"):
        read({"left": ["a"], "right": ["b"], "winner": ["left"], "n": [True]}, columns={"neutral": "n"})
    with pytest.raises(ConcordantError, match=r"missing for comparisons|no layout fits"):
        read({"winner": ["a"], "loser": ["b"], "x": ["a"]}, columns={"outcome": "x"})
    with pytest.raises(UsageError, match="home needs two sides"):
        read({"winner": ["a"], "loser": ["b"]}, home="left")


def test_a_limit_that_is_too_small_is_said(tmp_path: Path) -> None:
    table = pa.table({"winner": pa.array(range(300_000)), "loser": pa.array(range(1, 300_001))})
    pa.parquet.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(InputError, match="counting needs more memory than the limit of 1MB; raise memory_limit"):
        read(tmp_path / "v.parquet", memory_limit="1MB")


def test_a_very_long_name_of_a_column_does_not_fill_the_screen(tmp_path):
    """Found by drawing files: a quote that is never closed makes a header of thousands of characters."""
    log = tmp_path / "votes.csv"
    log.write_text(",".join(["winner", *(f"{n}{'a' * 5000}" for n in range(39))]) + "\nx,y\n")
    for how in ({}, {"columns": {"loser": "b" * 5000}}):
        with pytest.raises(InputError) as error:
            read(log, **how)
        assert len(str(error.value)) < 3500 and "characters)" in str(error.value)
