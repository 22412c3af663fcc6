"""Every kind, layout, alias and format of the contract becomes the Preferences that its rows say."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from concordant import Preferences, rank
from concordant.errors import InputError, UsageError
from concordant.io.read import read, read_log
from concordant.preferences.preferences import Lists
from concordant.preferences.ragged import shown_at

ENGINES = ("duckdb", "memory")
AB = Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"])
TIED = Preferences.from_comparisons(["a", "a", "b", "a"], ["b", "b", "a", "b"], tie=[False, False, False, True])


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]], delimiter: str = ",") -> Path:
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def tuples(prefs: Preferences) -> Counter[tuple[Any, ...]]:
    """Comparisons as a plain multiset of (query, winner, loser, tie, weight, cluster, covariates)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for j in range(prefs.distinct):
        key = (
            prefs.queries[prefs.query[j]],
            prefs.items[prefs.winner[j]],
            prefs.items[prefs.loser[j]],
            bool(prefs.tie[j]) if prefs.tie is not None else False,
            float(prefs.weight[j]) if prefs.weight is not None else 1.0,
            None if prefs.cluster is None or prefs.clusters is None else prefs.clusters[prefs.cluster[j]],
            () if prefs.covariates is None else tuple(prefs.covariates[j].tolist()),
        )
        found[key] += int(prefs.count[j])
    return found


def lists(prefs: Preferences) -> Counter[tuple[Any, ...]]:
    """Lists as a plain multiset of (query, ((item, value), …))."""
    found: Counter[tuple[Any, ...]] = Counter()
    for j in range(prefs.distinct):
        at = slice(prefs.list_start[j], prefs.list_start[j + 1])
        entries = [(prefs.items[i], float(v)) for i, v in zip(prefs.list_item[at], prefs.list_value[at], strict=True)]
        found[(prefs.queries[prefs.query[j]], *entries)] += int(prefs.count[j])
    return found


# -- layouts of comparisons ----------------------------------------------------------------------------------------
LAYOUTS = [
    (("winner", "loser"), [("a", "b"), ("a", "b"), ("b", "a")]),
    (("Winner", "LOSER"), [("a", "b"), ("a", "b"), ("b", "a")]),
    (("chosen", "rejected"), [("a", "b"), ("a", "b"), ("b", "a")]),
    (("left", "right", "winner"), [("a", "b", "left"), ("b", "a", "right"), ("a", "b", "b")]),
    (("left", "right", "outcome"), [("a", "b", "Left"), ("b", "a", " RIGHT "), ("a", "b", "right")]),
    (("model_a", "model_b", "winner"), [("a", "b", "model_a"), ("b", "a", "model_b"), ("b", "a", "model_a")]),
    (("model_a", "model_b", "label"), [("a", "b", "left"), ("b", "a", "right"), ("b", "a", "model_a")]),
    (("player1", "player2", "winner"), [("a", "b", "player1"), ("a", "b", "a"), ("b", "a", "1")]),
    (("home_team", "away_team", "home_score", "away_score"), [("a", "b", 2, 1), ("b", "a", 0, 3), ("b", "a", 10, 9)]),
    (("home", "away", "winner"), [("a", "b", "home"), ("a", "b", "H"), ("b", "a", "home")]),
    (("home.team", "away.team", "home.wins", "away.wins"), [("a", "b", 2, 1)]),
    (("chosen", "rejected", "label"), [("a", "b", "chosen"), ("b", "a", "rejected"), ("b", "a", "chosen")]),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("header", "rows"), LAYOUTS)
def test_layouts_of_comparisons(tmp_path: Path, header: tuple[str, ...], rows: list[Any], engine: str) -> None:
    path = write(tmp_path / "log.csv", [*header, "noise"], [(*row, i) for i, row in enumerate(rows)])
    assert read(path, engine=engine) == AB


TIES = ["tie", "draw", "tie (bothbad)", "TIE", "both_bad"]


@pytest.mark.parametrize("word", TIES)
def test_words_for_a_tie(word: str) -> None:
    log = {"left": ["a", "a", "b", "b"], "right": ["b", "b", "a", "a"], "winner": ["left", "a", "b", word]}
    assert read(log) == TIED


def test_equal_scores_are_a_tie() -> None:
    log = {"left": ["a", "a", "b", "b"], "right": ["b", "b", "a", "a"]}
    scores = {"left_score": [1.5, 2, 3, 4], "right_score": [1, 0, 2, 4]}
    assert read({**log, **scores}) == TIED


@pytest.mark.parametrize("name", ["query", "qid", "query_id", "question_id", "prompt_id"])
def test_aliases_of_the_query(name: str) -> None:
    log = {"winner": ["a", "b"], "loser": ["b", "a"], name: ["q", "p"]}
    assert read(log) == Preferences.from_comparisons(["a", "b"], ["b", "a"], ["q", "p"])


def test_roles_given_by_the_caller_go_first(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", ["w", "l", "winner", "about"], [("a", "b", "z", "q"), ("b", "a", "z", "r")])
    expected = Preferences.from_comparisons(["a", "b"], ["b", "a"], ["q", "r"])
    assert read(path, columns={"winner": "w", "loser": "l", "query": "about"}) == expected
    sides = write(tmp_path / "sides.csv", ["one", "two", "v"], [("a", "b", "one"), ("a", "b", "a"), ("a", "b", "two")])
    assert read(sides, columns={"left": "one", "right": "two", "winner": "v"}) == AB


def test_columns_that_swap_names() -> None:
    swapped = read(
        {"winner": ["b", "b", "a"], "loser": ["a", "a", "b"]}, columns={"winner": "loser", "loser": "winner"}
    )
    assert swapped == AB
    relation = duckdb.sql("SELECT * FROM (VALUES ('b','a'), ('b','a'), ('a','b')) t(winner, loser)")
    assert read(relation, columns={"winner": "loser", "loser": "winner"}) == AB


def test_contract_pairs_go_before_others() -> None:
    """The votes of llmfao hold model_x, model_y (numbers) and left, right (names)."""
    log = {"model_x": [1, 2], "model_y": [2, 1], "left": ["a", "b"], "right": ["b", "a"], "winner": ["left", "tie"]}
    assert tuples(read(log)) == {("all", "a", "b", False, 1.0, None, ()): 1, ("all", "a", "b", True, 1.0, None, ()): 1}


def test_weight_count_and_cluster(tmp_path: Path) -> None:
    rows = [("a", "b", "2.5", 3, "u"), ("a", "b", "1e0", 1, "v"), ("a", "b", "2.50", 4, "u")]
    path = write(tmp_path / "log.csv", ["winner", "loser", "weight", "count", "who"], rows)
    for engine in ENGINES:
        found = tuples(read(path, cluster="who", engine=engine))
        assert found == {("all", "a", "b", False, 2.5, "u", ()): 7, ("all", "a", "b", False, 1.0, "v", ()): 1}
        assert len(read(path, engine=engine)) == 8


def test_count_is_repetition() -> None:
    counted = {"left": ["a", "b"], "right": ["b", "c"], "winner": ["tie", "left"], "count": [3, 2]}
    repeated = {"left": ["a"] * 3 + ["b"] * 2, "right": ["b"] * 3 + ["c"] * 2, "winner": ["tie"] * 3 + ["left"] * 2}
    assert read(counted) == read(repeated)


def test_covariates_are_winner_minus_loser() -> None:
    log = {"left": ["a", "a", "a"], "right": ["b", "b", "b"], "winner": ["left", "right", "tie"], "x": [1.0, 2.0, 3.0]}
    found = tuples(read(log, covariates=["x"]))
    assert found == {
        ("all", "a", "b", False, 1.0, None, (1.0,)): 1,
        ("all", "b", "a", False, 1.0, None, (-2.0,)): 1,
        ("all", "a", "b", True, 1.0, None, (3.0,)): 1,
    }
    straight = read({"winner": ["b"], "loser": ["a"], "x": ["-2"]}, covariates=["x"])
    assert tuples(straight) == {("all", "b", "a", False, 1.0, None, (-2.0,)): 1}


def test_home_is_a_covariate_and_neutral_ground_has_none() -> None:
    log = {
        "home_team": ["a", "a", "b"],
        "away_team": ["b", "b", "a"],
        "home_score": [2, 0, 1],
        "away_score": [1, 1, 1],
        "neutral": ["FALSE", "FALSE", "TRUE"],
    }
    found = tuples(read(log, home="left"))
    assert found == {
        ("all", "a", "b", False, 1.0, None, (1.0,)): 1,
        ("all", "b", "a", False, 1.0, None, (-1.0,)): 1,
        ("all", "a", "b", True, 1.0, None, (0.0,)): 1,
    }
    assert read(log, home="left").covariate_names == ("home",)
    right = tuples(read(log, home="right"))
    assert right[("all", "a", "b", False, 1.0, None, (-1.0,))] == 1


def test_numbers_of_wins_are_counted_judgments() -> None:
    log = {"home.team": ["a", "b"], "away.team": ["b", "a"], "home.wins": [4, 0], "away.wins": [3, 5]}
    found = tuples(read(log, home="left"))
    assert found == {
        ("all", "a", "b", False, 1.0, None, (1.0,)): 4,
        ("all", "b", "a", False, 1.0, None, (-1.0,)): 3,
        ("all", "a", "b", False, 1.0, None, (-1.0,)): 5,
    }


# -- an outcome that could mean two things --------------------------------------------------------------------------
def test_an_item_called_like_a_side_is_refused_unless_both_readings_agree() -> None:
    agree = {"left": ["left", "x"], "right": ["x", "right"], "winner": ["left", "right"]}
    assert read(agree) == Preferences.from_comparisons(["left", "right"], ["x", "x"])
    differ = {"left": ["x", "x"], "right": ["left", "y"], "winner": ["left", "y"]}
    with pytest.raises(InputError, match=r"1 of 2 rows have an outcome that is both.*row 1: 'left'"):
        read(differ)
    elsewhere = {"left": ["x", "left"], "right": ["y", "y"], "winner": ["left", "y"]}
    with pytest.raises(InputError, match="both a word for a side"):
        read(elsewhere)
    tie = {"left": ["tie", "x"], "right": ["x", "y"], "winner": ["tie", "x"]}
    with pytest.raises(InputError, match="both a word"):
        read(tie)


def test_numbered_sides_and_numbered_items() -> None:
    assert read(
        {"player1": [7, 7, 9], "player2": [9, 9, 7], "winner": ["1", "1", "1"]}
    ) == Preferences.from_comparisons([7, 7, 9], [9, 9, 7])
    assert read({"left": [7, 8], "right": [9, 7], "winner": [9, 8]}) == Preferences.from_comparisons([9, 8], [7, 7])
    with pytest.raises(InputError, match=r"1 of 2 rows have an unknown outcome \(row 2: 1\)"):
        read({"left": [1, 7], "right": [2, 9], "winner": [1, 1]})  # 1 is an item here, and not one of row 2


# -- lists ---------------------------------------------------------------------------------------------------------
SHOWN = [
    ("q", "s1", 2, "b", 1),
    ("q", "s1", 1, "a", 0),
    ("q", "s2", 10, "b", 1),
    ("q", "s2", 9, "a", 0),
    ("r", "s1", 1, "b", 0),
    ("r", "s1", 2, "a", 0),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_selections_are_ordered_by_position(tmp_path: Path, engine: str) -> None:
    path = write(tmp_path / "log.csv", ["query", "session", "position", "item", "clicked"], SHOWN)
    prefs = read(path, engine=engine)
    assert prefs.kind == "selections"
    second = ("q", ("a", -8.0), ("b", 1.0))  # whose items stand at 9 and 10
    assert lists(prefs) == {("q", ("a", 0.0), ("b", 1.0)): 1, second: 1, ("r", ("b", 0.0), ("a", 0.0)): 1}
    columns = [list(column) for column in zip(*SHOWN, strict=True)]
    assert prefs == Preferences.from_selections(*columns)


@pytest.mark.parametrize("engine", ENGINES)
def test_clicks(tmp_path: Path, engine: str) -> None:
    rows = [("q", 1, 1, "a", 0), ("q", 1, 2, "b", 1), ("q", 1, 3, "c", 1), ("q", 2, 1, "a", 1), ("q", 2, 2, "b", 0)]
    path = write(tmp_path / "log.csv", ["query", "session", "position", "item", "clicked"], rows)
    with pytest.raises(InputError, match=r"1 of 2 lists have more than one click.*'all'.*'first'.*'last'.*'skip'"):
        read(path, engine=engine, clicks="raise")
    with pytest.raises(InputError, match="more than one click"):
        read(path, engine=engine, on_error="skip", clicks="raise")
    both = {("q", ("a", 1.0), ("b", 0.0)): 1, ("q", ("a", 0.0), ("b", 1.0), ("c", 1.0)): 1}
    assert lists(read(path, engine=engine)) == lists(read(path, engine=engine, clicks="all")) == both
    alone = ("q", ("a", 1.0), ("b", 0.0))
    assert lists(read(path, engine=engine, clicks="first")) == {alone: 1, ("q", ("a", 0.0), ("b", 1.0), ("c", 0.0)): 1}
    assert lists(read(path, engine=engine, clicks="last")) == {alone: 1, ("q", ("a", 0.0), ("b", 0.0), ("c", 1.0)): 1}
    skipped = read_log(path, engine=engine, clicks="skip")
    assert lists(skipped.preferences) == {alone: 1}
    assert [(reject.number, reject.total, reject.unit) for reject in skipped.rejects] == [(1, 2, "lists")]
    assert "line 4: '1'" in skipped.report()


def test_choices_are_sets() -> None:
    log = {"query": ["q"] * 4, "session": [1, 1, 2, 2], "item": ["b", "a", "a", "b"], "bought": [1, 0, 0, 1]}
    prefs = read(log)
    assert prefs.kind == "choices"
    assert lists(prefs) == {("q", ("a", 0.0), ("b", 1.0)): 2}
    assert prefs == Preferences.from_choices(log["query"], log["session"], log["item"], log["bought"])
    with pytest.raises(UsageError, match="needs a position"):
        read({**log, "bought": [1, 1, 0, 1]}, clicks="first")
    with pytest.raises(InputError, match="1 of 2 sets have more than one item chosen"):
        read({**log, "bought": [1, 1, 0, 1]})


@pytest.mark.parametrize("engine", ENGINES)
def test_orders_with_ties_and_without_opinion(tmp_path: Path, engine: str) -> None:
    rows = [("q", 1, "a", "2"), ("q", 1, "b", "1"), ("q", 1, "c", ""), ("q", 2, "a", 1), ("q", 2, "b", "1.0")]
    path = write(tmp_path / "log.csv", ["query", "judgment", "item", "rank"], rows)
    prefs = read(path, engine=engine)
    assert prefs.kind == "orders"
    assert lists(prefs) == {("q", ("b", 1.0), ("a", 2.0)): 1, ("q", ("a", 1.0), ("b", 1.0)): 1}
    assert [(prefs.queries[q], prefs.items[i]) for q, i in prefs.declared] == [("q", "c")]


@pytest.mark.parametrize(
    "header", [("user", "item", "rating"), ("userId", "movieId", "rating"), ("query", "item_id", "rating")]
)
def test_ratings_of_one_user_are_one_judgment(tmp_path: Path, header: tuple[str, ...]) -> None:
    path = write(tmp_path / "log.csv", header, [("u", "a", 3), ("v", "a", 3), ("u", "b", "-1.5")])
    for engine in ENGINES:
        assert lists(read(path, engine=engine)) == {("u", ("a", 3.0), ("b", -1.5)): 1, ("v", ("a", 3.0)): 1}


def test_ratings_of_users_may_be_judgments_of_one_query() -> None:
    log = {"user": [1, 2, 1], "item": ["a", "a", "b"], "rating": [3, 3, 4]}
    assert lists(read(log, columns={"judgment": "user"})) == {
        ("all", ("a", 3.0), ("b", 4.0)): 1,
        ("all", ("a", 3.0)): 1,
    }


def test_a_count_of_lists() -> None:
    log = {"judgment": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1], "count": [5, 5, 2]}
    assert lists(read(log)) == {("all", ("a", 1.0), ("b", 2.0)): 5, ("all", ("a", 1.0)): 2}
    with pytest.raises(InputError, match="1 of 2 rankings have rows with different counts"):
        read({**log, "count": [5, 4, 2]})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]])
@pytest.mark.parametrize("count", [-1, 0, 1.5])
def test_a_bad_count_of_a_rating_is_left_out_alone(engine: str, order: list[int], count: float) -> None:
    rows = [("u", "a", 3, 2), ("u", "b", 4, count), ("u", "c", 5, 2), ("v", "b", 1, 1)]
    user, item, rating, often = zip(*(rows[place] for place in order), strict=True)
    log = {"user": user, "item": item, "rating": rating, "count": [float(one) for one in often]}
    assert lists(read(log, engine=engine, on_error="skip")) == {
        ("u", ("a", 3.0), ("c", 5.0)): 2,
        ("v", ("b", 1.0)): 1,
    }


# -- formats -------------------------------------------------------------------------------------------------------
def jsonl(path: Path, table: pa.Table) -> None:
    text = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def database(path: Path, table: pa.Table) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE votes AS SELECT * FROM given")


def feather_stream(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def csv_of(delimiter: str) -> Callable[[Path, pa.Table], Path]:
    return lambda path, table: write(
        path, table.column_names, [tuple(r.values()) for r in table.to_pylist()], delimiter
    )


WRITERS: dict[str, Callable[[Path, pa.Table], object]] = {
    "log.csv": csv_of(","),
    "log.csv.gz": csv_of(","),
    "log.tsv": csv_of("\t"),
    "log.tsv.gz": csv_of("\t"),
    "log.txt": csv_of("\t"),
    "log.jsonl": jsonl,
    "log.jsonl.gz": jsonl,
    "log.ndjson": jsonl,
    "log.json": lambda path, table: path.write_text(json.dumps(table.to_pylist(), indent=1)),
    "log.parquet": lambda path, table: pa.parquet.write_table(table, path),
    "log.feather": lambda path, table: pa.feather.write_feather(table, path, compression="lz4"),
    "log.arrow": lambda path, table: pa.feather.write_feather(table, path, compression="uncompressed"),
    "log.ipc": feather_stream,
    "log.duckdb": database,
}
NAMES = {"log.duckdb": "log.duckdb::votes"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRITERS)
def test_formats(tmp_path: Path, name: str, engine: str) -> None:
    table = pa.table({"winner": ["a", "a", "b"], "loser": ["b", "b", "a"], "query": ["x", "x", "y"]})
    WRITERS[name](tmp_path / name, table)
    expected = Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"], ["x", "x", "y"])
    assert read(tmp_path / NAMES.get(name, name), engine=engine) == expected
    assert read(str(tmp_path / NAMES.get(name, name)), engine=engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in WRITERS if not name.startswith(("log.csv", "log.ts", "log.tx"))])
def test_integers_stay_integers(tmp_path: Path, name: str, engine: str) -> None:
    table = pa.table({"winner": [1, 1 << 40, -5], "loser": [2, 1, 1]})
    WRITERS[name](tmp_path / name, table)
    assert read(tmp_path / NAMES.get(name, name), engine=engine) == Preferences.from_comparisons(
        [1, 1 << 40, -5], [2, 1, 1]
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_of_a_csv_stay_texts(tmp_path: Path, engine: str) -> None:
    odd = [
        "1",
        "01",
        "1.0",
        "NA",
        "NULL",
        "null",
        "true",
        "nan",
        "-",
        " x",
        "x ",
        "2020-01-01",
        "#",
        "\\N",
        "é",
        "\u2028",
    ]
    odd += ['say "hi"', "two\nlines", "a,b", "'; DROP TABLE log; --", "<b>x</b>", "{x}", "\ttab", "\r\n"]
    rows = [(label, "other") for label in odd]
    path = write(tmp_path / "log.csv", ["winner", "loser"], rows)
    assert read(path, engine=engine).items.tolist() == sorted([*odd, "other"])


HOSTILE = [
    "o'brien.csv",
    'a"b;drop table x--.csv',
    "st*r[1].csv",
    "q?.csv",
    "a b.csv",
    "é ü.csv",
    "{x}.csv",
    "$1.csv",
    "x::y.csv",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_file_names_are_only_names(tmp_path: Path, name: str) -> None:
    rows = [("a", "b"), ("a", "b"), ("b", "a")]
    write(tmp_path / "str1.csv", ["winner", "loser"], [("z", "y")])
    path = write(tmp_path / name, ["winner", "loser"], rows)
    for engine in ENGINES:
        assert read(path, engine=engine) == AB
    for ending in (".jsonl", ".parquet", ".duckdb"):
        other = tmp_path / (name.removesuffix(".csv") + ending)
        WRITERS[f"log{ending}"](other, pa.table({"winner": ["a", "a", "b"], "loser": ["b", "b", "a"]}))
        assert read(f"{other}::votes" if ending == ".duckdb" else other, engine="duckdb") == AB


@pytest.mark.parametrize(
    "column", ['a"b', "x'; drop table log; --", "select", "rows", "é", " ", "a\nb", "{x}", "log", "c0"]
)
def test_column_names_are_only_names(tmp_path: Path, column: str) -> None:
    table = pa.table({"left": ["a", "a", "b"], column: ["b", "b", "a"], "winner": ["left", "left", "left"]})
    for name in ("log.csv", "log.jsonl", "log.parquet", "log.duckdb"):
        path = tmp_path / name
        WRITERS[name](path, table)
        for engine in ENGINES:
            given = {"left": "left", "right": column}
            assert read(str(path) + ("::votes" if name == "log.duckdb" else ""), columns=given, engine=engine) == AB


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    table = pa.table({"winner": ["a", "a", "b"], "Winner": ["z", "z", "z"], "loser": ["b", "b", "a"]})
    pa.parquet.write_table(table, tmp_path / "log.parquet")
    jsonl(tmp_path / "log.jsonl", table)
    csv_of(",")(tmp_path / "log.csv", table)
    for name in ("log.parquet", "log.jsonl", "log.csv"):
        assert read(tmp_path / name) == AB
        other = read(tmp_path / name, columns={"winner": "Winner"})
        assert other == Preferences.from_comparisons(["z", "z", "z"], ["b", "b", "a"])


def test_a_byte_order_mark_is_no_label(tmp_path: Path) -> None:
    for name, text in (("log.csv", "winner,loser\na,b\na,b\nb,a\n"), ("log.jsonl", '{"winner":"a","loser":"b"}\n')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert read(tmp_path / name).items.tolist() == ["a", "b"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(ends.join(["winner,loser", "a,b", "", "a,b", "b,a"]).encode())
    for engine in ENGINES:
        assert read(path, engine=engine) == AB


def test_line_ends_of_two_kinds(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"winner,loser\r\na,b\na,b\r\nb,a")
    for engine in ENGINES:
        assert read(path, engine=engine) == AB


def test_json_is_read_by_value(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"winner": "a", "loser":"b"}\n{"loser": "b", "winner": "\\u0061", "x": [1]}\n{"winner":"b","loser":"a"}\n'
    )
    for engine in ENGINES:
        assert read(path, engine=engine) == AB


def test_a_key_that_comes_late_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = '{"winner":"a","loser":"b"}\n'
    path.write_text(line * 3000 + '{"winner":"a","loser":"b","count":2}\n')
    with pytest.raises(InputError, match="3,000 of 3,001 rows have no count"):
        read(path)


def test_keys_of_a_large_file(tmp_path: Path) -> None:
    """Above 8 MB DuckDB gathers the keys, with the same result."""
    path = tmp_path / "log.jsonl"
    noise = "x" * 1000
    line = json.dumps({"winner": "a", "loser": "b", "noise": noise}) + "\n"
    path.write_text(line * 9000 + json.dumps({"loser": "a", "winner": "b", "weight": 2}) + "\n")
    with pytest.raises(InputError, match=r"9,000 of 9,001 rows have no weight \(line 1; line 2; line 3\)"):
        read(path)
    path.write_text(line * 9000)
    assert len(read(path)) == 9000
    path.write_text(line * 9000 + "{")
    with pytest.raises(InputError, match=r"line 9,001 is not valid JSON"):
        read(path)


# -- documents judged ----------------------------------------------------------------------------------------------
def test_letor_and_qrels(tmp_path: Path) -> None:
    letor = tmp_path / "a.txt"
    letor.write_text("2 qid:1 1:0.5 2:1 #docid = D1 inc = 1\n0 qid:1 1:0 # docid = D2\n\n1 qid:2 1:3 #docid = D1\n")
    expected = {("1", ("D1", 2.0), ("D2", 0.0)): 1, ("2", ("D1", 1.0)): 1}
    assert lists(read(letor)) == expected
    qrels = tmp_path / "b.qrels"
    qrels.write_text("1 0 D1 2\n1 0 D2 0\n2\t0\tD1\t1\n")
    assert lists(read(qrels)) == expected
    assert lists(read(qrels, engine="duckdb")) == expected
    plain = tmp_path / "c.svm"
    plain.write_text("2 qid:1 1:0.5\n0 qid:1 1:0\n1 qid:2 1:3\n")
    assert lists(read(plain)) == {("1", ("1", 2.0), ("2", 0.0)): 1, ("2", ("1", 1.0)): 1}


# -- skip ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES)
def test_skip_leaves_out_exactly_the_refused_rows(tmp_path: Path, engine: str) -> None:
    good = [("a", "b", "left"), ("b", "c", "tie"), ("c", "a", "a")]
    bad = [("a", "a", "left"), ("", "b", "left"), ("a", "b", "lefft"), ("a", "b", "")]
    path = write(tmp_path / "log.csv", ["left", "right", "winner"], [*good[:2], *bad, *good[2:], bad[2]])
    reading = read_log(path, engine=engine, on_error="skip")
    assert reading.preferences == read(write(tmp_path / "good.csv", ["left", "right", "winner"], good), engine=engine)
    assert reading.rows == 8
    told = {reject.reason.says: (reject.number, reject.samples) for reject in reading.rejects}
    assert told == {
        "compare an item with itself": (1, (("line 4", "a"),)),
        "have no left": (1, (("line 5", None),)),
        "have an unknown outcome": (2, (("line 6", "lefft"), ("line 9", "lefft"))),
        "have no outcome": (1, (("line 7", None),)),
    }


def test_skip_of_lists_leaves_out_the_list_but_of_ratings_only_the_row() -> None:
    rated = {"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": ["3", "x", "4"]}
    assert lists(read(rated, on_error="skip")) == {(1, ("a", 3.0)): 1, (2, ("a", 4.0)): 1}
    ranked = {"judgment": [1, 1, 2], "item": ["a", "b", "a"], "rank": ["1", "x", "1"]}
    assert lists(read(ranked, on_error="skip")) == {("all", ("a", 1.0)): 1}


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(InputError, match="1 of 1 rows compare an item with itself"):
        read({"winner": ["a"], "loser": ["a"]}, on_error="skip")


# -- limits --------------------------------------------------------------------------------------------------------
def test_memory_limit_and_threads(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    winner = generator.integers(0, 3000, 200_000)
    table = pa.table({"winner": winner, "loser": winner + 1 + generator.integers(0, 3000, 200_000)})
    pa.parquet.write_table(table, tmp_path / "log.parquet")
    small = read(tmp_path / "log.parquet", memory_limit="100MB", threads=1)
    assert small == read(tmp_path / "log.parquet", engine="memory") == read(table, threads=2)
    assert len(small) == 200_000


def test_positions_with_gaps_are_read_as_they_are_given_and_said() -> None:
    """An item shown alone at position 3 stands there, for who reads positions; everything else reads an order."""
    log = {
        "session": [1, 1, 2, 3, 3, 3, 4, 4],
        "position": [1, 2, 3, 2, 1, 3, 2, 5],
        "item": ["a", "b", "a", "c", "a", "b", "a", "c"],
        "clicked": [0, 1, 1, 0, 1, 0, 0, 1],
    }
    prefs = read(log)
    (note,) = [note for note in prefs.notes if getattr(note, "code", "") == "positions as given"]
    assert (note.numbers["lists"], note.numbers["of"]) == (2, 4) and "in 2 of 4 lists positions do not run" in note
    assert isinstance(prefs, Lists)
    shown = [(1 + at).tolist() for at in np.split(shown_at(prefs.lists, prefs.list_value), prefs.list_start[1:-1])]
    assert sorted(map(list, shown)) == [[1, 2], [1, 2, 3], [2, 5], [3]]
    whole = {**log, "position": [1, 2, 1, 2, 1, 3, 1, 2]}
    assert not [note for note in read(whole).notes if getattr(note, "code", "").startswith("positions as")]
    assert read(whole) != prefs
    scores = [rank(one, "cascade").to_arrow()["score"].to_pylist() for one in (read(whole), prefs)]
    assert scores[0] == scores[1]  # the order alone
    far = {**log, "position": [1, 2, 1001, 2, 1, 3, 2, 5]}
    (given, beyond) = (note for note in read(far).notes if getattr(note, "code", "").startswith("positions "))
    assert (given.numbers["lists"], beyond.numbers["lists"], beyond.code) == (1, 1, "positions beyond")
    assert "in 1 of 4 lists positions have gaps and go beyond 1,000: what stands further down counts as shown" in beyond
    assert read(far) == read({**log, "position": [1, 2, 1000, 2, 1, 3, 2, 5]})
    further = [read({**log, "position": [1, 2, 5, *three, 2, 5]}) for three in ([2000, 7, 3000], [999, 7, 1000])]
    assert further[0] == further[1]
    columns = [log[name] for name in ("session", "position", "item", "clicked")]
    (same,) = Preferences.from_selections(None, *columns).notes
    assert str(note).endswith(f": {same}") and same.startswith("in 2 of 4 lists")


def test_rankings_that_rank_nothing_are_left_out_with_a_word(tmp_path: Path) -> None:
    """Counted with their multiplicity; their items are known. Those that are refused are not among them."""
    path = tmp_path / "ballots.csv"
    path.write_text("judgment,item,rank,count\n1,a,1,1\n1,b,2,1\n2,a,,3\n2,c,,3\n3,b,1,1\n3,a,,1\n4,a,,1\n4,,,1\n")
    prefs = read(path, on_error="skip")
    assert [note for note in prefs.notes if "nothing" in note] == [
        "ballots.csv: 3 of 5 rankings rank nothing and are left out"
    ]
    assert prefs.items.tolist() == ["a", "b", "c"] and len(prefs) == 2
    rank = [1, 2, None, None]
    made = Preferences.from_orders(None, [1, 1, 2, 2], ["a", "b", "a", "c"], rank)
    assert made.notes == ("1 of 2 rankings ranks nothing and is left out",)
    with pytest.raises(InputError, match="no judgment is left, every entry is missing"):
        read({"judgment": [1, 1], "item": ["a", "b"], "rank": [None, None]})
