"""Tables in memory of any make give the Preferences of their rows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from concordant import Preferences
from concordant.errors import InputError
from concordant.io.read import read

WINNER, LOSER, QUERY = ["a", "a", "é", "b"], ["b", "b", "a", "é"], [3, 3, 1, 2]
EXPECTED = Preferences.from_comparisons(WINNER, LOSER, QUERY)
COLUMNS: dict[str, Any] = {"winner": WINNER, "loser": LOSER, "query": QUERY, "noise": [1.5, None, 2.0, 3.0]}
ARROW = pa.table(COLUMNS)
PANDAS = pd.DataFrame(COLUMNS)


class Capsule:
    """Something that only speaks the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ARROW.__arrow_c_stream__(requested_schema)


def typed(kind: pa.DataType) -> pa.Table:
    return pa.table({"winner": pa.array(WINNER).cast(kind), "loser": pa.array(LOSER).cast(kind), "query": QUERY})


def whole(kind: pa.DataType) -> pa.Table:
    return pa.table({"winner": WINNER, "loser": LOSER, "query": pa.array(QUERY, kind)})


TABLES: dict[str, Any] = {
    "arrow table": ARROW,
    "arrow chunks": pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1, 0), ARROW.slice(1, 3)]),
    "arrow slice": pa.concat_tables([ARROW, ARROW]).combine_chunks().slice(4, 4),
    "record batch": ARROW.to_batches()[0],
    "capsule": Capsule(),
    "large_string": typed(pa.large_string()),
    "string_view": typed(pa.string_view()),
    "dictionary": typed(pa.dictionary(pa.int8(), pa.string())),
    "dictionary of large": typed(pa.dictionary(pa.int32(), pa.large_string())),
    "chunked dictionaries": pa.concat_tables(
        [
            typed(pa.string())
            .slice(i, 2)
            .cast(
                pa.schema(
                    [
                        ("winner", pa.dictionary(pa.int32(), pa.string())),
                        ("loser", pa.dictionary(pa.int32(), pa.string())),
                        ("query", pa.int64()),
                    ]
                )
            )
            for i in (0, 2)
        ]
    ),
    "repeating dictionary": pa.table(
        {
            "winner": pa.DictionaryArray.from_arrays([0, 1, 2, 3], pa.array(["a", "a", "é", "b"])),
            "loser": LOSER,
            "query": QUERY,
        }
    ),
    **{f"query {kind}": whole(kind) for kind in (pa.int8(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64())},
    "pandas": PANDAS,
    "pandas object": PANDAS.astype({"winner": object, "loser": object}),
    "pandas category": PANDAS.astype({"winner": "category", "loser": "category", "query": "category"}),
    "pandas nullable": PANDAS.convert_dtypes(),
    "pandas arrow": PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_arrow(ARROW),
    "polars categorical": pl.DataFrame(COLUMNS).with_columns(pl.col("winner", "loser").cast(pl.Categorical)),
    "mapping of lists": COLUMNS,
    "mapping of arrays": {name: np.array(COLUMNS[name]) for name in ("winner", "loser", "query")},
    "mapping of objects": {name: np.array(COLUMNS[name], object) for name in ("winner", "loser", "query")},
    "mapping of series": {"winner": pd.Series(WINNER), "loser": pl.Series(LOSER), "query": pa.array(QUERY)},
    "mapping of tuples": {"winner": tuple(WINNER), "loser": tuple(LOSER), "query": tuple(QUERY)},
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    assert read(TABLES[name]) == EXPECTED
    assert read(TABLES[name], engine="duckdb") == EXPECTED


def test_a_reader_is_read_once() -> None:
    assert read(ARROW.to_reader()) == EXPECTED
    assert read(pa.RecordBatchReader.from_stream(Capsule())) == EXPECTED


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_relations(engine: str) -> None:
    connection = duckdb.connect()
    connection.register("given", ARROW)
    relation = connection.table("given")
    assert read(relation, engine=engine) == EXPECTED
    assert read(relation.filter("query = 3"), engine=engine) == EXPECTED.select([3])
    connection.execute("CREATE TABLE concordant_log AS SELECT 1 AS x")  # a name of the user's own
    assert read(relation, engine=engine) == EXPECTED


def test_columns_given_one_by_one() -> None:
    frame = pl.DataFrame(COLUMNS)
    for query in (QUERY, np.array(QUERY, np.int16), pd.Series(QUERY), frame["query"], pa.chunked_array([QUERY])):
        assert Preferences.from_comparisons(PANDAS["winner"], frame["loser"], query) == EXPECTED


def test_times_are_labels() -> None:
    times = pd.to_datetime(["2020-01-01", "2020-01-02"])
    expected = Preferences.from_comparisons(["2020-01-01T00:00:00", "2020-01-02T00:00:00"], ["x", "y"])
    assert read({"winner": times, "loser": ["x", "y"]}) == expected
    assert Preferences.from_comparisons(times, ["x", "y"]) == expected


# -- what is no label ----------------------------------------------------------------------------------------------
NOT_LABELS: dict[str, tuple[Any, str]] = {
    "reals": ([1.0, 2.0], "winner holds real numbers"),
    "reals with a gap": (pd.Series([1, None]), "winner holds real numbers.*Int64"),
    "booleans": ([True, False], "winner holds true/false"),
    "bytes": ([b"a", b"c"], "winner holds binary"),
    "lists": ([["a"], ["c"]], r"winner holds list"),
    "huge": (np.array([1 << 63, 1], np.uint64), "integers above 9223372036854775807; turn them into texts"),
    "mixed": (["a", 1], "winner.*all texts or all 64-bit integers; found int, str"),
    "beyond 64 bits": ([1 << 64, 1], "winner.*64"),
    "surrogate": (["\ud800", "b"], "winner holds texts with invalid encoding"),
}


@pytest.mark.parametrize("name", NOT_LABELS)
def test_what_is_no_label(name: str) -> None:
    column, says = NOT_LABELS[name]
    with pytest.raises(InputError, match=says):
        read({"winner": column, "loser": ["x", "y"]})
    with pytest.raises(InputError, match=says):
        Preferences.from_comparisons(column, ["x", "y"])


def test_pandas_objects_of_two_kinds() -> None:
    with pytest.raises(InputError, match="table: cannot be read through Arrow"):
        read(pd.DataFrame({"winner": ["a", 1], "loser": ["x", "y"]}))


def test_texts_against_integers() -> None:
    with pytest.raises(InputError, match="the column of winner holds texts, the column of loser integers"):
        read({"winner": ["a"], "loser": [1]})


def test_invalid_bytes_in_an_arrow_text() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    with pytest.raises(InputError, match="winner holds texts with invalid encoding"):
        read(pa.table({"winner": broken, "loser": ["b"]}))


def test_nulls_and_null_bytes_are_counted() -> None:
    with pytest.raises(
        InputError, match=r"1 of 3 rows have no winner \(row 2\). 1 of 3 rows have a null byte in the loser"
    ):
        read({"winner": ["a", None, "c"], "loser": ["b", "b", "x\0"]})
    with pytest.raises(InputError, match=r"1 of 2 rows have no loser \(row 2\)"):
        Preferences.from_comparisons(pd.Series(["a", "b"]), pd.Series(["b", None]))
    with pytest.raises(InputError, match="2 of 2 rows have no winner"):
        read({"winner": [None, None], "loser": ["b", "c"]})


def test_an_empty_text_is_a_label_where_texts_are_typed() -> None:
    assert read({"winner": [""], "loser": ["a"]}).items.tolist() == ["", "a"]


def test_missing_and_infinite_weights() -> None:
    frame = pl.DataFrame({"winner": ["a", "a"], "loser": ["b", "b"], "weight": [1.0, float("nan")]})
    with pytest.raises(InputError, match=r"1 of 2 rows have a weight that is not finite \(row 2: nan\)"):
        read(frame)
    with pytest.raises(InputError, match=r"1 of 2 rows have no weight"):
        read(frame.with_columns(weight=pl.Series([1.0, None])))


def test_other_objects_are_refused() -> None:
    with pytest.raises(InputError, match="cannot read preferences from int"):
        read(3)
    with pytest.raises(InputError, match="column names are texts, not 1"):
        read({1: ["a"], "loser": ["b"]})
    with pytest.raises(InputError, match="columns differ in length: winner 2, loser 1"):
        read({"winner": ["a", "b"], "loser": ["b"]})
    with pytest.raises(InputError, match="'winner' is there more than once"):
        read(pa.Table.from_arrays([pa.array(["a"])] * 3, names=["winner", "loser", "winner"]))


def test_no_copy_of_what_is_not_asked_for() -> None:
    """A column that has no role is not touched, whatever it holds."""
    table = ARROW.append_column("odd", pa.array([[b"\xff"], None, [], [b""]]))
    assert read(table) == EXPECTED
    assert read(table, engine="duckdb") == EXPECTED


# -- the classmethods ----------------------------------------------------------------------------------------------
def test_from_columns_say_the_row() -> None:
    with pytest.raises(InputError, match=r"comparisons: 1 of 2 rows compare an item with itself \(row 2: 'c'\)"):
        Preferences.from_comparisons(["a", "c"], ["b", "c"])
    with pytest.raises(InputError, match=r"1 of 2 rows have a negative weight \(row 1: -1.0\)"):
        Preferences.from_comparisons(["a", "c"], ["b", "d"], weight=[-1.0, 1.0])
    with pytest.raises(InputError, match=r"1 of 2 rows have a count that is not an integer of at least 1 \(row 2: 0\)"):
        Preferences.from_comparisons(["a", "c"], ["b", "d"], count=[1, 0])
    with pytest.raises(InputError, match="tie must be true or false in every row; it is not in row 2"):
        Preferences.from_comparisons(["a", "c"], ["b", "d"], tie=[0, 2])
    with pytest.raises(InputError, match=r"selections: 1 of 1 lists hold a position twice \(row 2: 1\)"):
        Preferences.from_selections(["q", "q"], [1, 1], [1, 1], ["a", "b"], [0, 1])
    with pytest.raises(InputError, match=r"orders: 1 of 1 rankings hold an item twice \(row 2: 'a'\)"):
        Preferences.from_orders(["q", "q"], [1, 1], ["a", "a"], [1, 2])
    with pytest.raises(InputError, match=r"ratings: 1 of 2 rows have a rating that is not a number \(row 2: 'x'\)"):
        Preferences.from_ratings(["q", "q"], ["a", "b"], ["1", "x"])


def test_nothing_is_nothing() -> None:
    empty = Preferences.empty()
    assert Preferences.from_comparisons([], []) == empty
    assert Preferences.from_selections([], [], [], [], []) == empty
    assert Preferences.from_orders([], [], [], []) == empty
    assert Preferences.from_ratings([], [], []) == empty
    with pytest.raises(InputError, match="table: there are no rows"):
        read({"winner": [], "loser": []})


def test_numbers_of_wins_between_integers_of_two_widths() -> None:
    narrow, wide = pa.array([1, 2], pa.int8()), pa.array([2**40, 1], pa.int64())
    rows = pa.table({"home": narrow, "away": wide, "home_wins": [2, 0], "away_wins": [1, 3]})
    found = read(rows)
    assert found == Preferences.from_comparisons([1, 1, 2**40, 1, 1, 1], [2**40, 2**40, 1, 2, 2, 2])
