"""Ranking on Spark: the rows that DuckDB's ranking has, whatever the partitions; refusals with the same counts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant.apps.commands.options import command_of
from concordant.learning.targets.mean_targets import mean_targets
from running import exit_status
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import frames, partitioning, redrawn
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.partitioning import TooLarge
    from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking

EXACT = ("query", "component", "item", "rank", "judgments", "flag", "rank_lower", "rank_upper")


def votes(rows: int = 3000, queries: int = 17, items: int = 6, seed: int = 1) -> dict[str, Any]:
    """Votes between texts, a third of them ties, in queries of unequal size, one of two parts."""
    rng = np.random.default_rng(seed)
    query = np.minimum(rng.geometric(0.15, rows), queries)
    first, second = rng.integers(0, items, rows), rng.integers(0, items - 1, rows)
    second = np.where(second >= first, second + 1, second)
    apart = (query == 3) & ((first < 3) != (second < 3))  # query 3 falls into two groups
    first, second, query = first[~apart], second[~apart], query[~apart]
    outcome = np.array(["model_a", "model_b", "tie"])[rng.integers(0, 3, len(query))]
    return {
        "query": [f"q{number}" for number in query],
        "model_a": [f"item {number}" for number in first],
        "model_b": [f"item {number}" for number in second],
        "winner": outcome.tolist(),
    }


def assert_same(ours: Any, theirs: Any) -> None:
    """Every column equal, scores and limits to 1e-10."""
    assert ours.queries == theirs.queries
    assert ours.items == theirs.items
    for name in EXACT:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("score", "lower", "upper"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-10)


def on_spark(judged: Any, structure: str = "bradley-terry", interval: str = "auto", **options: Any) -> Any:
    frame = ranked(judged, structure, interval=interval, **options)
    return ranking_of(frame, judged, structure, interval, 0.95)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spark") / "votes.parquet"
    pyarrow.parquet.write_table(pa.table(votes()), path, row_group_size=500)
    return path


def test_what_tasks_note_is_added_up(spark: Any) -> None:
    """Items with few weighted wins, people without a second list, in queries of several tasks: as memory says it."""
    table = votes(rows=600)
    table["weight"] = np.random.default_rng(3).choice([0.5, 3.0], len(table["query"])).tolist()
    people = [f"p{place // 3}" for place in range(90)]
    rated = {"query": people, "judgment": people, "item": [f"i{place % 3}" for place in range(90)]}
    rated["rating"] = np.random.default_rng(4).integers(1, 9, 90).tolist()
    for log, code in ((table, "worth fewer than ten"), (rated, "30 queries have fewer than two judgments")):
        judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=200)
        assert judged.buckets > 1 and not judged.large
        ours = [note.replace("DataFrame", "table") for note in on_spark(judged).notes]
        theirs = cc.rank(cc.read(log)).notes
        assert sorted(ours) == sorted(note for note in theirs if "lack of fit" not in note)
        assert sum(code in note for note in ours) == 1


@pytest.mark.parametrize("task", [200, 1 << 21])
def test_the_ranking_is_that_of_duckdb(spark: Any, log: Path, task: int) -> None:
    """With ties ``auto`` is the sandwich in every query, though few tasks see a tie in each."""
    judged = JudgedQueries.of(log, spark, task=task)
    assert judged.buckets == (15 if task == 200 else 2)
    assert_same(on_spark(judged), cc.rank(cc.read(log)))


def test_order_number_and_emptiness_of_partitions_do_not_matter(spark: Any, log: Path) -> None:
    expected = cc.rank(cc.read(log), interval="none")
    frame = spark.read.parquet(str(log))
    for cut in (frame.repartition(7), frame.orderBy("winner").coalesce(1), frame.repartitionByRange(20, "query")):
        assert_same(on_spark(JudgedQueries.of(cut, spark, task=300), interval="none"), expected)


def test_one_tie_anywhere_makes_auto_the_sandwich(spark: Any) -> None:
    """The tie is in query b alone; query a must still get the sandwich, as in memory."""
    rows = [("a", "x", "y", "left"), ("a", "y", "x", "left"), ("a", "x", "y", "left"), ("a", "y", "z", "left")]
    rows += [("a", "z", "y", "left"), ("b", "x", "y", "tie"), ("b", "x", "y", "left"), ("b", "y", "x", "left")]
    table = pa.table(dict(zip(("query", "left", "right", "outcome"), zip(*rows, strict=True), strict=True)))
    judged = JudgedQueries.of(table, spark, task=1)
    expected = cc.rank(cc.read(table))
    assert expected.interval == "sandwich"
    assert_same(on_spark(judged), expected)


def test_integer_labels_clusters_and_covariates(spark: Any) -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(0, 5, 800)
    columns = {
        "qid": rng.integers(-3, 4, 800),
        "winner": first + (1 << 40),
        "loser": (first + rng.integers(1, 5, 800)) % 5 + (1 << 40),
        "worker": [f"w{number}" for number in rng.integers(0, 9, 800)],
        "gap": rng.normal(size=800).round(1),
    }
    reading = {"cluster": "worker", "covariates": ["gap"]}
    judged = JudgedQueries.of(pa.table(columns), spark, task=100, **reading)
    assert_same(on_spark(judged), cc.rank(cc.read(columns, **reading)))


@pytest.mark.parametrize("structure", ["plackett-luce", "borda"])
def test_lists_of_a_query_stay_together(spark: Any, structure: str) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for judge in range(150):
        order = rng.permutation(5)
        rows += [(f"q{judge % 7}", judge, f"i{item}", place + 1) for place, item in enumerate(order) if item]
    columns = dict(zip(("query", "judge", "item", "rank"), zip(*rows, strict=True), strict=True))
    interval = "auto" if structure == "plackett-luce" else "bootstrap"
    judged = JudgedQueries.of(pa.table(columns), spark, task=50)
    replicates = {} if structure == "plackett-luce" else {"replicates": 50}
    expected = cc.rank(cc.read(columns), structure, interval=interval, **replicates)
    assert_same(on_spark(judged, structure, interval, **replicates), expected)


def test_options_of_reading_go_where_they_belong(spark: Any) -> None:
    table = {"session": [1, 1, 2, 2], "position": [1, 2, 1, 2], "item": ["a", "b", "a", "b"], "won": [1, 1, 0, 1]}
    reading = {"columns": {"clicked": "won"}, "clicks": "last"}
    frame = spark.createDataFrame(pa.table(table))
    found = cs.rank(frame, "cascade", reading=reading).toArrow().sort_by("item")
    known = cc.rank(cc.read(table, **reading), "cascade").to_arrow().sort_by("item")
    assert found["score"].to_pylist() == known["score"].to_pylist() == [0.0, 1.0]
    with pytest.raises(cc.UsageError, match=r"clicks='last' is an option of reading the log: reading=\{'clicks': …\}"):
        cs.rank(frame, "cascade", clicks="last")
    with pytest.raises(cc.UsageError, match="was read already, when its JudgedQueries were made: leave out reading"):
        cs.rank(JudgedQueries.of(frame, spark, **reading), "cascade", reading=reading)


def test_a_query_that_no_task_can_hold_among_others(spark: Any, log: Path) -> None:
    expected = cc.rank(cc.read(log), "log-odds", interval="none")
    judged = JudgedQueries.of(log, spark, most=60)
    assert 0 < len(judged.large) < len(expected.queries)
    board = on_spark(judged, "log-odds", interval="none")
    assert_same(board, expected)
    assert "more than 60 distinct judgments: divided among tasks, or in a task of its own" in board.notes[0]
    unseen = JudgedQueries.opened(log, spark).sized(most=60, look=False)
    with pytest.raises(TooLarge, match="one query has more than 60 distinct"):
        on_spark(unseen, interval="none")


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize(
    ("structure", "asked"),
    [
        ("bradley-terry", {"prior": "auto"}),
        ("bradley-terry", {"interval": "bootstrap", "replicates": 40}),
        ("plackett-luce", {"prior": "auto", "reference": 3}),
    ],
)
def test_a_query_with_a_task_of_its_own(
    structure: str, asked: dict[str, Any], texts: bool, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of one query that is all of the log, and is no sum over judgments: the ranking of memory."""
    monkeypatch.setattr(redrawn, "NODES", 3)
    rng = np.random.default_rng(3)
    left = rng.integers(0, 9, 400)
    right = (left + rng.integers(1, 9, 400)) % 9
    log = {"left": left.tolist(), "right": right.tolist(), "outcome": rng.choice(["left", "right"], 400).tolist()}
    if texts:
        log |= {side: [f"item {item}" for item in log[side]] for side in ("left", "right")}
        asked = asked | ({"reference": "item 3"} if "reference" in asked else {})
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=50)
    assert judged.large == (None,)
    assert_same(on_spark(judged, structure, **asked), cc.rank(cc.read(log), structure, **asked))
    monkeypatch.setattr(frames, "MOST_ALONE", 60)
    with pytest.raises(
        cc.UsageError, match=r"the log has \d+ distinct judgments; on Spark one query with more than 60"
    ):
        on_spark(judged, structure, **asked)


def test_refused_rows_of_a_query_with_a_task_of_its_own(spark: Any) -> None:
    log = {"left": [*"abcab"], "right": [*"bcacc"], "outcome": ["left", "right", "maybe", "left", "right"]}
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)), spark, most=2)
    with pytest.raises(cc.InputError, match="maybe"):
        on_spark(judged, prior="auto")


def test_many_equal_judgments_do_not_make_a_query_large(spark: Any) -> None:
    columns = {"query": ["a"] * 500 + ["b"], "winner": ["x"] * 501, "loser": ["y"] * 501}
    judged = JudgedQueries.of(pa.table(columns), spark, most=100)
    assert judged.large == ()
    assert_same(on_spark(judged), cc.rank(cc.read(columns)))


def test_a_log_without_queries_is_one_query(spark: Any) -> None:
    columns = {name: column for name, column in votes().items() if name != "query"}
    for most in (10, 1000):
        judged = JudgedQueries.of(pa.table(columns), spark, most=most)
        assert len(judged.large) == (most == 10)
        assert_same(on_spark(judged, interval="none"), cc.rank(cc.read(columns), interval="none"))


# -- what is refused ---------------------------------------------------------------------------------------------
def test_refused_rows_are_counted_as_duckdb_counts_them(spark: Any) -> None:
    columns = {name: column[:600] for name, column in votes(900).items()}
    columns["model_b"][5] = columns["model_a"][5]
    columns["query"][7] = None
    for place in (11, 200, 590):
        columns["winner"][place] = "nobody"
    table = pa.table(columns)
    with pytest.raises(cc.InputError) as in_memory:
        cc.read(table)
    judged = JudgedQueries.of(table, spark, task=50)
    with pytest.raises(cc.InputError) as here:
        on_spark(judged)
    for said in ("3 of 600 rows have an unknown outcome", "1 of 600 rows have no query", "1 of 600 rows compare an"):
        assert said in str(in_memory.value)
        assert said in str(here.value)
    assert "\n" not in str(here.value)
    kept = JudgedQueries.of(table, spark, task=50, on_error="skip")
    assert_same(on_spark(kept), cc.rank(cc.read(table, on_error="skip")))
    assert sum(each.number for each in kept.rejects()) == 5


def test_a_word_for_a_side_that_is_an_item_of_another_query_is_refused(spark: Any) -> None:
    """Query p alone would read 'left' as the side; the log as a whole must not."""
    columns = {
        "query": ["p", "p", "q"],
        "model_a": ["x", "y", "left"],
        "model_b": ["y", "x", "x"],
        "winner": ["left", "x", "x"],
    }
    with pytest.raises(cc.InputError, match="1 of 3 rows have an outcome that is both"):
        cc.read(columns)
    judged = JudgedQueries.of(pa.table(columns), spark, task=1)
    with pytest.raises(cc.InputError, match="1 of 3 rows have an outcome that is both"):
        on_spark(judged)


def test_errors_of_a_task_are_those_of_the_method(spark: Any) -> None:
    columns = {"query": ["a"], "winner": ["x"], "loser": ["y"]}
    with pytest.raises(cc.NoMaximumLikelihood):
        on_spark(JudgedQueries.of(pa.table(columns), spark), interval="none", prior=0.0)


# -- where the ranking goes ----------------------------------------------------------------------------------------
def test_executors_write_a_folder(spark: Any, log: Path, tmp_path: Path) -> None:
    judged = JudgedQueries.of(log, spark)
    rows, notes = write_ranking(ranked(judged, "bradley-terry"), judged, str(tmp_path / "out"))
    expected = cc.rank(cc.read(log)).to_arrow()
    order = [(name, "ascending") for name in ("query", "component", "rank", "item")]
    written = pyarrow.parquet.read_table(tmp_path / "out").sort_by(order)
    assert rows == len(expected)
    assert written.column_names == expected.column_names
    assert written["item"].to_pylist() == expected.sort_by(order)["item"].to_pylist()
    assert any("ranks restart in each" in note for note in notes)


@pytest.mark.usefixtures("spark")
def test_the_command(log: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / "spark.parquet", tmp_path / "duckdb.parquet"]
    for engine, output in zip(("spark", "duckdb"), outputs, strict=True):
        done = CliRunner().invoke(
            command_of("rank"), [str(log), "--engine", engine, "-o", str(output)], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
    ours, theirs = (pyarrow.parquet.read_table(output) for output in outputs)
    assert ours.schema.names == theirs.schema.names
    assert ours.drop(["score", "lower", "upper"]).to_pylist() == theirs.drop(["score", "lower", "upper"]).to_pylist()
    folder = tmp_path / "folder"
    for exit_code in (0, 2):
        done = CliRunner().invoke(command_of("rank"), [str(log), "--engine", "spark", "-o", str(folder)])
        assert done.exit_code == exit_code
    assert "the folder is not empty" in done.output


@given(st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=40), st.integers(1, 12))
def test_a_task_works_through_whole_queries_piece_by_piece(queries: list[int | None], rows: int) -> None:
    table = pa.table({"query": pa.array(queries, pa.int64()), "row": range(len(queries))})
    pieces = list(partitioning.some_queries(table, rows))
    assert sorted(row for piece in pieces for row in piece["row"].to_pylist()) == list(range(len(queries)))
    homes = [set(piece["query"].to_pylist()) for piece in pieces]
    assert sum(map(len, homes)) == len(set(queries))  # no query is split
    most = max(queries.count(query) for query in set(queries))
    assert all(len(piece) < 2 * rows + most for piece in pieces)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("structure", ["position-based", "inverse-propensity", "dependent-click"])
def test_what_clicks_say_of_positions_is_told_by_all_of_the_log(structure: str, tmp_path: Path) -> None:
    """Each task sees some queries; how positions are examined, or readers go on, is that of all of them."""
    rng = np.random.default_rng(4)
    rows = []
    for query, session in itertools.product(range(30), range(8)):
        for place, item in enumerate(rng.permutation(6)[:5], 1):
            position = place + 2 * (session % 4 == 0 and place == 5)  # nothing was ever logged at 6
            clicked = int(rng.random() < 0.8**position * (0.2 + 0.12 * item))
            rows.append(f"q{query},{session},{position},i{item},{clicked}\n")
    log = tmp_path / "clicks.csv"
    log.write_text("query,session,position,item,clicked\n" + "".join(rows))
    for interval in ("auto", "none"):
        found = on_spark(JudgedQueries.of(str(log), task=200), structure, interval)
        assert_same(found, cc.rank(cc.read(log), structure, interval=interval))
    made = cs.targets(str(log), structure=structure).toArrow().sort_by([("query", "ascending"), ("item", "ascending")])
    known = mean_targets(cc.read(log), structure, gain="identity").centred()
    np.testing.assert_allclose(made["target"], known, rtol=0, atol=1e-12)
    if structure != "inverse-propensity":
        return
    judged, given = JudgedQueries.of(str(log)), {"propensities": [1.0, 0.9, 0.8, 0.7, 0.6, None, 0.4]}
    found = on_spark(judged, structure, "none", **given)
    assert_same(found, cc.rank(cc.read(log), structure, interval="none", **given))


@pytest.mark.usefixtures("spark")
def test_queries_of_one_vote_each_are_ranked_together_as_in_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "votes.csv"
    rows = [f"battle {n},{'aab'[n % 3]},{'bcc'[n % 3]}\n" for n in range(60)] + ["battle 60,b,a\nbattle 61,c,b\n"]
    log.write_text("query,winner,loser\n" + "".join(rows))
    for more in ((), ("--query", "query")):
        said = []
        for engine in ((), ("--engine", "spark")):
            said.append((exit_status("rank", log, *more, *engine), capsys.readouterr()))
        assert said[0] == said[1]
        assert "most of the 62 queries" in said[0][1].err
