"""On Spark a fit, scores and metrics are those of memory, whatever the partitions of the log and of the features."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.tree import DecisionTreeRegressor

from concordant.apps.models.saving import save_model
from concordant.errors import InputError, UsageError
from concordant.io.read import read
from concordant.learning.features.reading import read_features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.preferences.preferences import Preferences
from running import exit_status
from spark_session import classic, spark_tests

pytestmark = spark_tests

QUERIES, ITEMS, WIDTH = 9, 7, 4
Table = dict[str, Any]


def labels(codes: Any, prefix: str | None) -> list[Any]:
    """Texts such as q3, or the integers themselves."""
    return [int(code) if prefix is None else f"{prefix}{code}" for code in codes]


def votes(texts: bool = True, rows: int = 400) -> Table:
    """Comparisons of queries of different size; the last query and the last item of every other are not judged."""
    rng = np.random.default_rng(1)
    query = rng.integers(0, QUERIES - 1, rows) ** 2 // (QUERIES - 1)
    winner = rng.integers(0, ITEMS - 1, rows)
    loser = (winner + rng.integers(1, ITEMS - 1, rows)) % (ITEMS - 1)
    q, i = ("q", "i") if texts else (None, None)
    return {"query": labels(query, q), "winner": labels(winner, i), "loser": labels(loser, i)}


def clicks() -> Table:
    """Lists of one to five items with at most one click; some queries have a single item."""
    rng = np.random.default_rng(2)
    rows: Table = {name: [] for name in ("query", "session", "position", "item", "clicked")}
    for session in range(80):
        query = session % (QUERIES - 1)
        size = 1 if query < 2 else int(rng.integers(2, 6))
        shown = [0] if query < 2 else rng.permutation(ITEMS)[:size]
        click = int(rng.integers(-1, size))
        for place, item in enumerate(shown):
            found = (f"q{query}", session, place + 1, f"i{item}", int(place == click))
            for name, value in zip(rows, found, strict=True):
                rows[name].append(value)
    return rows


def features(texts: bool = True, by_query: bool = True, holes: bool = False) -> Table:
    """Columns of very different scale, one of them constant, one constant within each query."""
    rng = np.random.default_rng(3)
    query, item = np.meshgrid(np.arange(QUERIES), np.arange(ITEMS), indexing="ij")
    X = rng.normal(size=(query.size, WIDTH)) * [1, 100, 0.01, 3] + [0, 1e4, 5, 0]
    X[:, 2] = np.round(X[:, 2], 2)
    if holes:
        X[rng.random(X.shape) < 0.1] = np.nan
    q, i = ("q", "i") if texts else (None, None)
    rows = {"query": labels(query.ravel(), q), "item": labels(item.ravel(), i)}
    rows |= {"a.b": X[:, 0], "B": X[:, 1], "b": X[:, 2], "d`": X[:, 3]}
    rows |= {"constant": np.full(query.size, 0.1), "of query": query.ravel() / 7.0}
    if by_query:
        return rows
    return {name: values[:ITEMS] for name, values in rows.items() if name != "query"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process; return exit status, stdout and stderr."""

    def command(*arguments: object) -> tuple[int, str, str]:
        status = exit_status(*arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def framed(spark: Any, rows: Table, partitions: int) -> Any:
    """A DataFrame in so many partitions, and as many empty ones beside them."""
    frame = spark.createDataFrame(pa.table(rows)).repartition(partitions)
    return frame.union(frame.limit(0).repartition(partitions))


CASES: list[tuple[str, Table, Table, dict[str, Any], tuple[int, int]]] = [
    ("texts", votes(), features(), {"structure": "log-odds", "order": "all"}, (1, 3)),
    ("integers", votes(False), features(False), {"structure": "log-odds", "order": 3, "subsets": 8, "seed": 5}, (5, 1)),
    (
        "of items",
        votes(False),
        features(False, by_query=False),
        {"structure": "bradley-terry", "order": "all", "gain": "identity", "normalise": False, "ridge": 0.1},
        (2, 2),
    ),
    (
        "holes",
        votes(),
        features(holes=True),
        {"structure": "borda", "order": 20, "log": True, "missing": "median"},
        (3, 4),
    ),
    ("clicks", clicks(), features(holes=True), {"order": "all", "missing": "zero", "standardise": False}, (4, 2)),
]


@pytest.mark.parametrize(
    ("log", "rows", "params", "partitions"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_coefficients_are_those_in_memory(
    spark: Any,
    log: Table,
    rows: Table,
    params: dict[str, Any],
    partitions: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from concordant.apps.spark import partitioning
    from concordant.spark import fit

    monkeypatch.setattr(partitioning, "BUCKET_BYTES", 100)  # more parts than reach the driver
    plain = AggregationRanker(**params).fit(rows, read(log))
    ours = fit(AggregationRanker(**params), framed(spark, log, partitions[0]), framed(spark, rows, partitions[1]))
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-10, atol=1e-10 * np.abs(plain.coef_).max())
    np.testing.assert_allclose(ours.predict(rows), plain.predict(rows), rtol=1e-10)
    assert ours.coef_[WIDTH] == ours.coef_[WIDTH + 1] == 0
    inexact = ("gradient", "monte_carlo_error", "choices")  # the last is for a refit in memory
    alike = {name: value for name, value in plain.status_.items() if name not in inexact}
    assert {name: value for name, value in ours.status_.items() if name not in inexact} == alike
    assert ours.status_["monte_carlo_error"] == pytest.approx(plain.status_["monte_carlo_error"], abs=1e-9)
    assert ours.to_state()[0].keys() == plain.to_state()[0].keys()


@pytest.mark.usefixtures("spark")
def test_files_and_the_command(tmp_path: Path, run: Callable[..., Any]) -> None:
    """Text files on either side: integers of a Parquet log match the texts of a CSV file, as in memory."""
    log = tmp_path / "log"
    log.mkdir()
    table = pa.table(votes(False))
    pa.parquet.write_table(table.slice(0, 150), log / "a.parquet")
    pa.parquet.write_table(table.slice(150), log / "b.parquet")
    rows = features(False)
    items = tmp_path / "items.csv"
    pa.csv.write_csv(pa.table(rows), items)
    fit = ["fit", str(log), "-f", str(items), "--structure", "log-odds", "--order", "all", "--ridge", "0.01"]
    assert run(*fit, "-m", str(tmp_path / "plain"))[0] == 0
    status, _, said = run(*fit, "-m", str(tmp_path / "ours"), "--engine", "spark")
    assert status == 0
    assert "integers in the log and texts in the features" in said
    assert "solver: closed form" in said
    score = ["score", "-f", str(items), "-o"]
    assert run(*score, str(tmp_path / "plain.csv"), "-m", str(tmp_path / "plain"))[0] == 0
    assert run(*score, str(tmp_path / "ours.csv"), "-m", str(tmp_path / "ours"), "--engine", "spark")[0] == 0
    assert run(*score, str(tmp_path / "folder"), "-m", str(tmp_path / "ours"), "--engine", "spark")[0] == 0
    plain, ours = (pa.csv.read_csv(tmp_path / f"{name}.csv") for name in ("plain", "ours"))
    for name in ("query", "item", "rank"):
        assert plain[name].equals(ours[name])  # the order of the rows, too
    np.testing.assert_allclose(ours["score"], plain["score"], rtol=1e-10)
    there = pa.parquet.read_table(tmp_path / "folder")
    assert len(there) == len(plain)
    assert sorted(there["score"].to_pylist()) == sorted(ours["score"].to_pylist())
    careful = ("--abstain", "0.2", "--gamma", "1.2", "-m", str(tmp_path / "plain"))
    told = [run(*score, str(tmp_path / "plain.csv"), *careful)[2]]
    told += [run(*score, str(tmp_path / "ours.csv"), *careful, "--engine", "spark")[2].replace("ours", "plain")]
    assert told[0] == told[1]
    plain, ours = (pa.csv.read_csv(tmp_path / f"{name}.csv") for name in ("plain", "ours"))
    assert set(ours["tier"].to_pylist()) == set(range(1, ITEMS))
    assert plain.drop_columns("score") == ours.drop_columns("score")


REFUSED = [
    ({"order": "all", "intercept": "one"}, "every query has its own"),
    ({"regressor": DecisionTreeRegressor()}, "give the targets"),
]


@pytest.mark.parametrize(("params", "said"), REFUSED)
def test_what_is_not_done_on_spark(params: dict[str, Any], said: str) -> None:
    from concordant.spark import fit

    with pytest.raises(UsageError, match=said):
        fit(AggregationRanker(**params), votes(), features())


def test_bad_features_are_told_with_their_number_and_place(spark: Any) -> None:
    from concordant.spark import fit

    ranker = AggregationRanker("log-odds", order="all")
    log = votes()

    def said(rows: Table) -> str:
        with pytest.raises(InputError) as caught:
            fit(ranker, log, framed(spark, rows, 2))
        return str(caught.value)

    gone = features()
    lacking = [at for at, item in enumerate(gone["item"]) if item != "i2" or gone["query"][at] == "q0"]
    gone = {name: [values[at] for at in lacking] for name, values in gone.items()}
    with pytest.raises(InputError) as plain:
        ranker.fit(gone, read(log))
    assert said(gone) == str(plain.value)
    holes = features()
    holes["B"][[3, 9]] = np.nan, np.inf
    found = said(holes)
    assert "2 of 378 values are not finite" in found
    assert "query 'q0', item 'i3', column 'B': nan" in found
    assert "query 'q1', item 'i2', column 'B': inf" in found
    assert "missing='mean'" in found
    twice = {name: [*values, values[10], values[10]] for name, values in features().items()}
    found = said(twice)
    assert "2 of the rows repeat an earlier (query, item), such as query 'q1', item 'i3'" in found
    words = features()
    words["b"] = [*map(str, words["b"][:-1]), "many"]
    assert "1 of 378 values (query 'q8', item 'i6', column 'b': 'many') are not numbers" in said(words)
    unlabelled = features()
    unlabelled["item"][5] = None
    assert "1 of 63 rows have no valid item or query" in said(unlabelled)
    assert "no column of items" in said({"thing": ["x"], "a": [1.0]})
    with pytest.raises(InputError, match=r"texts in the features .* and integers in the preferences"):
        fit(ranker, votes(False), framed(spark, features(), 1))


def test_bad_judgments_are_told_or_left_out_as_in_memory(spark: Any) -> None:
    from concordant.spark import fit

    log = votes()
    log["loser"][7] = log["winner"][7]
    frames = framed(spark, log, 2), framed(spark, features(), 1)
    ranker = AggregationRanker("log-odds", order="all")
    with pytest.raises(InputError, match="1 of 400 rows compare an item with itself"):
        fit(ranker, *frames)
    ours = fit(ranker, *frames, on_error="skip").coef_
    assert any("1 of 400 rows compare an item with itself" in note for note in ranker.status_["notes"])
    np.testing.assert_allclose(ours, ranker.fit(features(), read(log, on_error="skip")).coef_, rtol=1e-10)


def test_queries_that_no_task_can_hold(spark: Any) -> None:
    """Targets of queries with more than 20 distinct judgments are made apart; the coefficients are the same."""
    from concordant.spark import fit

    plain = AggregationRanker("bradley-terry", order=4, subsets=6).fit(features(), read(votes()))
    ours = fit(AggregationRanker("bradley-terry", order=4, subsets=6), votes(), features(), session=spark, most=20)
    assert any("in a task of its own" in note for note in ours.status_["notes"])
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-10)


def test_scores_have_the_bits_of_memory(spark: Any, tmp_path: Path) -> None:
    from concordant.apps.commands.score import ranked
    from concordant.spark import score

    rows = features()
    rows["B"] = np.round(rows["B"], -2)  # some scores are equal
    names = ["B"]
    fitted = AggregationRanker("log-odds", order="all").fit(read_features(rows, names=names), read(votes()))
    plain = ranked(read_features(rows, names=names), fitted.predict(read_features(rows, names=names)))
    found = score(fitted, framed(spark, rows, 3)).table().to_pylist()
    assert len({(row["query"], row["rank"]) for row in found}) < len(found)
    assert sorted(found, key=str) == sorted(plain.to_pylist(), key=str)
    alone = score(fitted, framed(spark, features(by_query=False), 2)).table()
    assert sorted(alone["rank"].to_pylist()) == list(range(1, ITEMS + 1))
    assert alone["query"].null_count == ITEMS
    rows["B"][4] = np.nan
    for work in (lambda found: found.table(), lambda found: found.save(str(tmp_path / "scores"))):
        with pytest.raises(InputError, match=r"1 of 63 values are not finite \(query 'q0', item 'i4', column 'B': nan"):
            work(score(fitted, framed(spark, rows, 2)))
    assert not (tmp_path / "scores").exists()


def judged(folder: Path) -> tuple[Path, Path, Path]:
    """Two files of scores, with equal ones and rows in no order, and labels for nine in ten of them."""
    rng = np.random.default_rng(4)
    rows = pa.table({name: features()[name] for name in ("query", "item")})
    mixed = rows.take(pa.array(rng.permutation(len(rows))))
    one, two, labels_of = folder / "one.parquet", folder / "two.csv", folder / "labels.csv"
    pa.parquet.write_table(mixed.append_column("score", pa.array(rng.integers(0, 4, len(rows)) / 2)), one)
    pa.csv.write_csv(rows.append_column("prediction", pa.array(rng.normal(size=len(rows)))), two)
    grades = rows.append_column("label", pa.array(rng.integers(0, 3, len(rows))))
    pa.csv.write_csv(grades.filter(pa.array(rng.random(len(rows)) < 0.9)), labels_of)
    return one, two, labels_of


@pytest.mark.parametrize(
    "options",
    [("--convention", "trec", "--against", "TWO"), ("--per-query",)],
    ids=["paired", "per query"],
)
@pytest.mark.usefixtures("spark")
def test_metrics_are_those_of_the_plain_command(
    tmp_path: Path, options: tuple[str, ...], run: Callable[..., Any]
) -> None:
    one, two, labels_of = judged(tmp_path)
    given = [str(two) if word == "TWO" else word for word in options]
    names = ("ndcg@3", "err", "map", "auc", "kendall-tau", "pairwise-loss")
    command = ["evaluate", str(one), str(labels_of), "--metric", *names, "--unmatched", "skip", "-q", *given]
    plain, ours = (list(csv.DictReader(io.StringIO(run(*command, *more)[1]))) for more in ((), ("--engine", "spark")))
    assert [row.keys() for row in ours] == [row.keys() for row in plain]
    for mine, theirs in zip(ours, plain, strict=True):
        for name, value in theirs.items():
            if name in ("name", "query") or not value:
                assert mine[name] == value
            else:
                assert float(mine[name]) == pytest.approx(float(value), rel=1e-11, abs=1e-13)


def test_bad_scores_are_told(spark: Any) -> None:
    from concordant.spark import evaluate

    grades = {"query": ["p", "p", "q"], "item": ["x", "y", "x"], "label": [1, 0, 2]}

    def said(kind: type[Exception] = InputError, **changed: list[Any]) -> str:
        rows = {"query": ["p", "p", "q"], "item": ["x", "y", "x"], "score": ["0.5", "0.25", "1"]} | changed
        table = pa.table({name: values for name, values in rows.items() if values is not None})
        with pytest.raises(kind) as caught:
            evaluate(spark.createDataFrame(table), grades, session=spark)
        return str(caught.value)

    assert "1 of 3 rows have no score (such as query 'p', item 'y')" in said(score=["0.5", None, "1"])
    assert "1 of 3 rows have a score that is not a number" in said(score=["0.5", "1d", "1"])
    assert "1 of 3 rows have a score that is not finite" in said(score=[0.5, float("nan"), 1.0])
    assert "1 rows repeat a query and item (such as query 'p', item 'x')" in said(item=["x", "x", "x"])
    assert "1 of 3 rows of DataFrame have no label in table" in said(item=["x", "z", "x"])
    assert "no row of DataFrame matches table" in said(query=["r", "r", "s"])
    assert "one list" in said(UsageError, query=None)  # type: ignore[arg-type]
    rows = {"query": ["p", "p", "q"], "item": ["x", "y", "x"], "score": [0.5, 0.25, 1.0]}
    with pytest.raises(InputError, match="the gain of label 3000 is not finite"):
        evaluate(rows, grades | {"label": [1, 0, 3000]}, session=spark).summaries()
    with pytest.raises(UsageError, match="unknown metric"):
        evaluate(grades, grades, ["nonsense"])


def test_targets_are_of_one_aggregation(spark: Any) -> None:
    """Several structures or values of c0 would be several tables; none is taken in silence."""
    from concordant.spark import targets

    for asked in ({"structure_options": {"c0": "auto"}}, {"structure_options": {"c0": [0.1, 1.0]}}, {"gain": "auto"}):
        with pytest.raises(UsageError, match="targets are of one aggregation"):
            targets(framed(spark, votes(), 3), session=spark, **asked)


def test_targets_for_a_distributed_trainer(spark: Any) -> None:
    """The targets are those of memory."""
    from concordant.learning.targets.mean_targets import mean_targets
    from concordant.spark import targets

    prefs = read(votes())
    made = mean_targets(prefs, "bradley-terry", order=5)
    query = np.repeat(np.arange(len(prefs.queries)), np.diff(made.start))
    where = zip(prefs.queries.take(query).to_pylist(), prefs.items.take(prefs.members[1]).to_pylist(), strict=True)
    weight = made.weight[query] / made.weight[query].mean()
    plain = dict(zip(where, zip(made.centred(), weight, strict=True), strict=True))
    there = targets(framed(spark, votes(), 3), structure="bradley-terry", order=5, session=spark).collect()
    assert {(row["query"], row["item"]) for row in there} == plain.keys()
    for row in there:
        assert (row["target"], row["weight"]) == pytest.approx(plain[row["query"], row["item"]], abs=1e-12)


@classic
def test_xgboosts_own_trainer_on_spark_learns_from_targets(spark: Any) -> None:
    pytest.importorskip("xgboost")
    from xgboost.spark import SparkXGBRegressor

    from concordant.spark import targets

    found = targets(framed(spark, votes(), 3), structure="bradley-terry", order=5, session=spark)
    rows, names = features(), ["B", "constant", "of query"]
    table = spark.createDataFrame(pa.table({name: rows[name] for name in ("query", "item", *names)}))
    joined = found.join(table, ["query", "item"])
    where = {"features_col": names, "label_col": "target", "weight_col": "weight"}
    trees = SparkXGBRegressor(**where, num_workers=1, n_estimators=5, max_depth=3).fit(joined)
    guess = np.array([row["prediction"] for row in trees.transform(joined).select("prediction").collect()])
    assert np.ptp(guess) > 0.1


def test_abstaining_by_judgments_asks_for_their_features(tmp_path: Path, run: Callable[..., Any]) -> None:
    fitted = AggregationRanker("log-odds", order="all").fit(
        features(), Preferences.from_comparisons(["i1"], ["i0"], ["q0"])
    )
    save_model(fitted, tmp_path / "model")
    given = ("score", "-m", tmp_path / "model", "-f", "x.csv", "--engine", "spark", "--abstain", "0.2")
    status, out, said = run(*given, "--judgments", "votes.csv")
    assert (status, out) == (2, "")
    assert "needs the features of the items it judges in a file: --judged-features" in said
