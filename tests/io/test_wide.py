"""Logs with several entries in a row: ballots, best and worst of a set, tables with a column for each item."""

import csv
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc


def written(folder, name, rows):
    path = folder / name
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


BALLOTS = [["Ann", "Bob", "Cy"], ["Bob", "Ann", ""], ["Cy", "", ""], ["Ann", "Bob", "Cy"]]


def long_orders(ballots, **more):
    rows = [(str(n), item, k + 1) for n, ballot in enumerate(ballots) for k, item in enumerate(ballot) if item]
    judgment, item, rank = map(list, zip(*rows, strict=True))
    return cc.Preferences.from_orders(None, judgment, item, rank, **more)


@pytest.mark.parametrize("prefix", ["rank", "Rank ", "choice_", "Preference", "place-"])
@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_ballots_are_orders(tmp_path, prefix, engine):
    header = ["voter", *(f"{prefix}{n}" for n in (1, 2, 3))]
    log = written(tmp_path, "ballots.csv", [header, *([f"v{n}", *ballot] for n, ballot in enumerate(BALLOTS))])
    found = cc.read(log, engine=engine)
    assert found == long_orders(BALLOTS) and found.distinct == 3
    assert cc.read(log, engine=engine, unranked="last") == long_orders(BALLOTS, unranked="last")
    by_voter = cc.read(log, engine=engine, cluster="voter")
    assert by_voter.clusters.tolist() == ["v0", "v1", "v2", "v3"]


def test_ballots_of_other_formats_and_with_counts():
    columns = {f"choice{n + 1}": [ballot[n] or None for ballot in BALLOTS[:3]] for n in range(3)}
    twice = pa.table({**columns, "count": [2, 1, 1]})
    assert cc.read(twice) == long_orders(BALLOTS)
    assert cc.read(twice.to_pandas()) == long_orders(BALLOTS)
    integers = pa.table({"rank1": [3, 1], "rank2": pa.array([1, None], pa.int64())})
    assert cc.read(integers).items.tolist() == [1, 3]


def test_bad_ballots_are_named_with_their_lines(tmp_path):
    rows = [["rank1", "rank2", "rank3"], ["Ann", "Bob", "Cy"], ["Bob", "Bob", ""], ["", "Ann", "Ann"]]
    log = written(tmp_path, "ballots.csv", rows)
    with pytest.raises(cc.InputError, match=r"2 of 3 rankings hold an item twice \(line 3: 'Bob'; line 4: 'Ann'\)"):
        cc.read(log)
    assert len(cc.read(log, on_error="skip")) == 1
    empty = written(tmp_path, "empty.csv", [["rank1", "rank2"], ["", ""]])
    with pytest.raises(cc.InputError, match="no judgment is left"):
        cc.read(empty)
    gap = written(tmp_path, "gap.csv", [["rank1", "rank3"], ["a", "b"]])
    with pytest.raises(cc.InputError, match="no layout fits"):
        cc.read(gap)


def test_best_and_worst_of_a_set():
    sets = {
        "option1": ["A", "B", "A"],
        "option2": ["B", "C", "C"],
        "option3": ["C", "D", "D"],
        "option4": ["D", None, "E"],
        "best": ["A", "C", "A"],
        "worst": ["D", "B", "E"],
    }
    found = cc.read(sets)
    orders = cc.Preferences.from_orders(
        None,
        [1] * 4 + [2] * 3 + [3] * 4,
        list("ABCD") + list("BCD") + list("ACDE"),
        [1, 2, 2, 3, 3, 1, 2, 1, 2, 2, 3],
    )
    assert found == orders
    for best, worst, why in (
        ("Z", "D", "no best item among"),
        ("A", "Z", "no worst item"),
        ("A", "A", "as best and as"),
    ):
        with pytest.raises(cc.InputError, match=f"1 of 3 rankings .*{why}.*row 1"):
            cc.read(sets | {"best": [best, "C", "A"], "worst": [worst, "B", "E"]})


def test_tables_of_ranks_and_of_ratings(tmp_path):
    rows = [["judge", "Ann", "Bob", "Cy"], ["j1", "1", "2", "3"], ["j2", "2", "1", "3"], ["j3", "1", "", "2"]]
    log = written(tmp_path, "panel.csv", rows)
    ranked = cc.read(log, kind="orders", columns={"items": "all"}, unranked="missing")
    cells = [(row[0], name, int(cell)) for row in rows[1:] for name, cell in zip(rows[0][1:], row[1:]) if cell]
    judge, item, number = map(list, zip(*cells, strict=True))
    assert ranked == cc.Preferences.from_orders(None, judge, item, number)
    rated = cc.read(log, kind="ratings", columns={"items": ["Ann", "Bob", "Cy"]})
    assert rated == cc.Preferences.from_ratings(None, item, number, judge)
    some = cc.read(log, kind="ratings", columns={"items": "Ann, Cy"}, cluster="judge")
    assert some.items.tolist() == ["Ann", "Cy"] and some.clusters.tolist() == ["j1", "j2", "j3"]
    with pytest.raises(cc.UsageError, match="say which: kind='orders', kind='ratings' or kind='comparisons'"):
        cc.read(log, columns={"items": "all"})
    with pytest.raises(cc.InputError, match=r"1 of 3 rankings .*not a number \(line 3: 'x'\)"):
        cc.read(
            written(tmp_path, "x.csv", [*rows[:2], ["j2", "x", "1", "3"], rows[3]]),
            kind="orders",
            columns={"items": "all"},
        )
    for wrong in ("Ann", "Ann,Ann", ["Ann"], 3):
        with pytest.raises(cc.UsageError, match="at least two columns"):
            cc.read(log, kind="orders", columns={"items": wrong})
    with pytest.raises(cc.InputError, match="no column 'Zoe'"):
        cc.read(log, kind="orders", columns={"items": "Ann,Zoe"})


@pytest.mark.parametrize("draw", range(3))
def test_a_table_of_wins(tmp_path, draw):
    rng = np.random.default_rng(draw)
    names = ["Ann", "Bob", "Cy", "7"]
    wins = rng.integers(0, 4, (4, 4)) * (1 - np.eye(4, dtype=int))
    table = written(tmp_path, "wins.csv", [["", *names], *([name, *map(str, row)] for name, row in zip(names, wins))])
    pairs = [(i, j) for i, j in itertools.permutations(range(4), 2) if wins[i, j]]
    expected = cc.Preferences.from_comparisons(
        [names[i] for i, _ in pairs], [names[j] for _, j in pairs], count=[int(wins[i, j]) for i, j in pairs]
    )
    assert cc.read(table, kind="comparisons", columns={"items": "all"}) == expected


def test_bad_tables_of_wins_are_refused(tmp_path):
    def read(rows, **more):
        return cc.read(written(tmp_path, "w.csv", rows), kind="comparisons", columns={"items": "all"}, **more)

    good = [["team", "A", "B"], ["A", "0", "2"], ["B", "1", ""]]
    assert len(read(good)) == 3
    with pytest.raises(cc.InputError, match=r"1 of 2 rows hold a cell that is no number of wins \(line 2: '1.5'\)"):
        read([good[0], ["A", "0", "1.5"], good[2]])
    with pytest.raises(cc.InputError, match="wins of an item over itself"):
        read([good[0], ["A", "1", "2"], good[2]])
    with pytest.raises(cc.InputError, match=r"rows of 'C' .* have no column"):
        read([good[0], ["C", "0", "2"], good[2]])
    with pytest.raises(cc.InputError, match="nobody won"):
        read([good[0], ["A", "0", "0"], ["B", "0", "0"]])
    table = written(tmp_path, "w.csv", [["team", "A", "count"], ["A", "0", "2"], ["count", "1", ""]])
    assert len(cc.read(table, kind="comparisons", columns={"items": "all"})) == 3  # an item may have that name
    with pytest.raises(cc.UsageError, match="are counts already"):
        cc.read(table, kind="comparisons", columns={"items": "all", "count": "count"})
    with pytest.raises(cc.UsageError, match="read whole"):
        read(good, on_error="skip")


def test_longer_names_are_suggested_and_words_may_be_joined_otherwise(tmp_path):
    tennis = written(tmp_path, "t.csv", [["winner_name", "loser_name"], ["a", "b"]])
    with pytest.raises(
        cc.InputError, match=r"Perhaps columns=\{'winner': 'winner_name'\} columns=\{'loser': 'loser_name'\}"
    ):
        cc.read(tennis)
    columns = [f"{side}_{what}" for side in ("winner", "loser") for what in ("id", "seed", "name", "rank")]
    with pytest.raises(cc.InputError, match=r"Perhaps columns=\{'winner': 'winner_name'\}"):  # of several, the names
        cc.read(written(tmp_path, "long.csv", [columns, ["1", "", "a", "3", "2", "", "b", "4"]]))
    assert cc.read({"player_1": ["a", "b"], "Player 2": ["b", "c"], "winner": ["a", "c"]}) == cc.read(
        {"player1": ["a", "b"], "player2": ["b", "c"], "winner": ["a", "c"]}
    )


# -- what is said of rows that hold little, and of weights -----------------------------------------------------------
def codes(found):
    return {note.code: note for note in found.notes}


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_empty_ballots_and_gaps_are_told(tmp_path, engine):
    rows = [
        ["A", "B", "C"],
        ["B", "A", "C"],
        ["", "", ""],
        ["C", "", "A"],
        ["C", "", "A"],
        ["", "B", ""],
        ["A", "", ""],
    ]
    log = written(tmp_path, "b.csv", [["rank1", "rank2", "rank3"], *rows])
    found = codes(cc.read(log, engine=engine))
    assert found["empty rows"] == "b.csv: 1 of 7 rows holds no item and is left out (line 4)"
    assert found["places left empty"] == (
        "b.csv: 3 of 7 rows leave a place empty before one that is filled, and are read as if the next choice stood "
        "there (line 5; line 6; line 7)"
    )
    assert (found["places left empty"].numbers["rows"], found["places left empty"].numbers["of"]) == (3, 7)
    assert cc.read(log, engine=engine) == long_orders([rows[0], rows[1], *[["C", "A"]] * 2, ["B"], ["A"]])
    whole = written(tmp_path, "whole.csv", [["rank1", "rank2"], ["A", "B"], ["B", ""]])
    assert not {"empty rows", "places left empty"} & {*codes(cc.read(whole, engine=engine))}


def test_refused_ballots_are_not_told_again(tmp_path):
    log = written(tmp_path, "b.csv", [["rank1", "rank2", "rank3"], ["A", "B", ""], ["A", "", "A"], ["", "B", ""]])
    found = codes(cc.read(log, on_error="skip"))
    assert (
        found["places left empty"].startswith("b.csv: 1 of 3 rows leaves") and "(line 4)" in found["places left empty"]
    )


def test_empty_rows_of_tables_of_items_are_told_and_ranks_may_have_gaps(tmp_path):
    log = written(tmp_path, "t.csv", [["A", "B", "C"], ["1", "3", ""], ["", "", ""], ["2", "1", "5"]])
    for kind in ("orders", "ratings"):
        found = codes(cc.read(log, kind=kind, columns={"items": "all"}))
        assert found["empty rows"] == "t.csv: 1 of 3 rows holds no item and is left out (line 3)"
        assert "places left empty" not in found


SHAPES = {
    "ballots": ([["rank1", "rank2", "rank3"], ["a", "b", None], ["c", "a", "b"], ["b", None, None]], {}),
    "best and worst": (
        [["best", "worst", "option1", "option2", "option3"], ["a", "b", "a", "b", "c"], ["c", "a", "c", "a", "b"]],
        {},
    ),
    "ranks": ([["A", "B", "C", "count"], [1, 2, None, 2], [2, 1, 3, 1]], {"kind": "orders"}),
    "ratings": ([["A", "B", "C"], [1.5, 2, None], [2, 1, 3]], {"kind": "ratings"}),
    "wins": ([["team", "A", "B", "q"], ["A", None, 2, "x"], ["B", 1, 0, "x"]], {"kind": "comparisons"}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_json_lines_are_read_as_the_same_table_is(tmp_path, shape):
    (header, *rows), asked = SHAPES[shape]
    if asked:
        asked = {**asked, "columns": {"items": "A,B" if shape == "wins" else "A,B,C"}}
        asked["columns"] |= {"query": "q"} if shape == "wins" else {}
    table = written(tmp_path, "t.csv", [header, *[["" if cell is None else cell for cell in row] for row in rows]])
    lines = "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in rows)
    (tmp_path / "t.jsonl").write_text(lines)
    assert cc.read(tmp_path / "t.jsonl", **asked) == cc.read(table, **asked)


WEIGHED = {
    "rankings": ["rank1,rank2,weight", "a,b,2", "b,a,1"],
    "ratings": ["user,item,rating,weight", "u,a,2,2", "u,b,1,2"],
    "choices": ["query,session,item,clicked,weight", "q,1,a,1,2", "q,1,b,0,2"],
    "shown lists": ["query,session,position,item,clicked,weight", "q,1,1,a,1,2", "q,1,2,b,0,2"],
}


@pytest.mark.parametrize("many", WEIGHED)
def test_weights_are_for_comparisons_and_that_is_said(tmp_path, many):
    log = tmp_path / "w.csv"
    log.write_text("\n".join(WEIGHED[many]))
    assert codes(cc.read(log))["unused weights"] == (
        f"w.csv: the column 'weight' is not used: {many} have counts, not weights; whole numbers that say how often a "
        "row was seen are given as columns={'count': 'weight'}"
    )
    with pytest.raises(
        cc.UsageError, match=rf"weights are for comparisons only; {many} have counts.*'count': 'weight'"
    ):
        cc.read(log, columns={"weight": "weight"})
    counted = cc.read(log, columns={"count": "weight"})
    assert "unused weights" not in codes(counted) and len(counted) > len(cc.read(log))


def test_weights_of_long_orders_and_of_tables_of_items(tmp_path):
    orders = {"judgment": ["u", "u"], "item": ["a", "b"], "rank": [1, 2], "survey_weight": [3, 3]}
    assert "'survey_weight' is not used: rankings have counts" in codes(cc.read(orders))["unused weights"]
    assert "whole numbers" not in codes(cc.read({**orders, "count": [1, 1]}))["unused weights"]
    items = written(tmp_path, "t.csv", [["A", "B", "weight"], ["1", "2", "3"], ["2", "1", "1"]])
    every = cc.read(items, kind="orders", columns={"items": "all"})
    assert len(every.items) == 3 and "read as an item" in codes(every)["weights as an item"]
    assert "unused weights" in codes(cc.read(items, kind="orders", columns={"items": "A,B"}))
    with pytest.raises(cc.UsageError, match="weights are for comparisons only; ratings have counts"):
        cc.read(items, kind="ratings", columns={"items": "A,B", "weight": "weight"})


def test_what_looks_like_weights_or_counts_of_comparisons():
    votes = {"winner": ["a", "b"], "loser": ["b", "a"], "weights": [2.0, 1.0], "freq": [3, 1]}
    notes = [note for note in cc.read(votes).notes if getattr(note, "code", "") == "unused counts"]
    assert [(note.numbers["column"], note.numbers["what"]) for note in notes] == [
        ("weights", "weights"),
        ("freq", "counts"),
    ]
    used = cc.read(votes, columns={"weight": "weights", "count": "freq"})
    assert len(used) == 4 and "unused counts" not in codes(used)


def test_graded_labels_are_told_how_they_are_read():
    labels = {"query": ["q", "q"], "item": ["a", "b"], "label": [1, 0]}
    with pytest.raises(cc.InputError, match=r"fitted to features with kind='labels'; columns=.*'rating': 'label'"):
        cc.read(labels)
    assert cc.read(labels, columns={"rating": "label"}).kind == "ratings"
