"""Keys and numbers of tables on Spark (features, scores, labels) are read as in memory, or refused in its words."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from concordant.apps.commands.matching import read_valued
from concordant.apps.commands.score import ranked
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.io.log.tables import from_object
from concordant.io.read import read
from concordant.learning.features.reading import column_numbers, read_features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.values import labels
from running import exit_status
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark.frames import Table
    from concordant.apps.spark.label_columns import label_column
    from concordant.apps.spark.learning_features import FeatureFrame, examine, matrix
    from concordant.apps.spark.metrics import ValuedFrame
    from concordant.spark import evaluate, fit, score

SIZE = 6
ZONE = "spark.sql.session.timeZone"
NANOS = "spark.sql.legacy.parquet.nanosAsLong"
MOMENTS = [datetime(2026, 3, 28, 23, 30) + timedelta(minutes=30 * at, microseconds=at % 2 * 50) for at in range(SIZE)]
"""Among them hours that clocks in Europe skip on that day."""
KINDS = {
    "date": pa.array([date(999, 12, 31) + timedelta(at) for at in range(SIZE)]),
    "instant": pa.array([moment.replace(tzinfo=UTC) for moment in MOMENTS], pa.timestamp("us", "Europe/Berlin")),
    "clock": pa.array(MOMENTS, pa.timestamp("ms")),
    "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns", "UTC")),
    "small decimal": pa.array([Decimal(at) / 10**7 for at in range(SIZE)], pa.decimal128(38, 7)),
    "decimal": pa.array([Decimal(10**19 * at) - Decimal("1.50") for at in range(SIZE)], pa.decimal128(38, 2)),
    "unsigned": pa.array([(1 << 62) + at for at in range(SIZE)], pa.uint64()),
    "whole": pa.array([Decimal(at) for at in range(SIZE)], pa.decimal128(20, 0)),
    "byte": pa.array(range(SIZE), pa.uint8()),
    "text": pa.array([f"{at}\n" for at in range(SIZE)]),
}
"""Labels of each type of column."""


@pytest.fixture
def elsewhere(spark: Any) -> Iterator[Any]:
    """A session in a time zone whose clocks are changed."""
    given = {ZONE: "Europe/Berlin", NANOS: "true"}
    for name, value in given.items():
        spark.conf.set(name, value)
    yield spark
    for name in given:
        spark.conf.unset(name)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process; return exit status, stdout and stderr."""

    def command(*arguments: object) -> tuple[int, str, str]:
        status = exit_status(*arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def written(path: Path, **columns: Any) -> Path:
    pa.parquet.write_table(pa.table(columns), path)
    return path


def votes() -> dict[str, Any]:
    """Comparisons of queries and items by their numbers."""
    rng = np.random.default_rng(1)
    query, winner = rng.integers(0, SIZE, 240), rng.integers(0, SIZE, 240)
    return {"query": query, "winner": winner, "loser": (winner + rng.integers(1, SIZE, 240)) % SIZE}


def grid() -> tuple[Any, Any, Any]:
    """Every query with every item, and a feature of both."""
    query, item = (each.ravel() for each in np.meshgrid(np.arange(SIZE), np.arange(SIZE)))
    return query, item, np.random.default_rng(2).normal(size=(SIZE * SIZE, 2))


def fitted() -> AggregationRanker:
    query, item, X = grid()
    rows = {"query": query, "item": item, "x": X[:, 0], "y": X[:, 1]}
    return AggregationRanker("log-odds", order="all").fit(rows, read(votes()))


def test_keys_are_labels_as_in_memory(elsewhere: Any, tmp_path: Path) -> None:
    query, item, X = grid()
    ranker, kinds = fitted(), list(KINDS.values())
    for place, (name, keys) in enumerate(KINDS.items()):
        columns = {"query": keys.take(pa.array(query)), "item": kinds[place - 1].take(pa.array(item))}
        path = written(tmp_path / f"{name}.parquet", **columns, x=X[:, 0], y=X[:, 1])
        rows = read_features(path)
        plain = ranked(rows, ranker.predict(rows))
        ours = score(ranker, path, session=elsewhere).table()
        found, truth = ({(row["query"], row["item"]): row for row in each.to_pylist()} for each in (ours, plain))
        assert found == truth, name


def test_labels_of_a_table_in_memory(elsewhere: Any) -> None:
    table = Table.of(pa.table(KINDS), elsewhere)
    of = {name: table.type_of(name) for name in KINDS}
    made = {
        name: label_column(table.column(name), kind, "item", "x", unsigned=name in table.unsigned)
        for name, kind in of.items()
    }
    found = table.frame.select(*[column.alias(f"k{place}") for place, column in enumerate(made.values())]).toArrow()
    for place, (name, column) in enumerate(KINDS.items()):
        assert found[f"k{place}"].to_pylist() == labels(column, "item").values.to_pylist(), name
    log = pa.table({"query": KINDS["clock"], "winner": ["a"] * SIZE, "loser": ["b"] * SIZE})
    here, there = (read(log, engine=engine, pool=False).queries.tolist() for engine in ("memory", elsewhere))
    assert there == here


FAR = pa.array([3_000_000, 0], pa.int32()).cast(pa.date32())
REFUSED = {
    "real": pa.array([1.5, 2.0]),
    "flag": pa.array([True, False]),
    "unsigned": pa.array([1 << 63, 1], pa.uint64()),
    "far": FAR,
    "far instants": FAR.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC")),
}


def refusal(work: Callable[[], Any]) -> str:
    with pytest.raises(ConcordantError) as caught:
        work()
    return str(caught.value)


def test_what_is_no_label_is_refused_as_in_memory(spark: Any, tmp_path: Path) -> None:
    ranker, numbers = fitted(), {"x": [1.0, 2.0], "y": [1.0, 2.0]}
    for name, keys in REFUSED.items():
        path = written(tmp_path / f"{name}.parquet", item=keys, **numbers)
        said = refusal(lambda path=path: read_features(path))
        assert f"the column of item holds {said.split(' holds ')[1]}" in said
        assert refusal(lambda path=path: score(ranker, path, session=spark).table()) == said, name
        given = {"query": ["p", "p"], "label": [1, 0]}
        labels = written(tmp_path / f"labels {name}.parquet", item=keys, **given)
        said = refusal(lambda labels=labels: read_valued(str(labels), "label", {}))
        assert refusal(lambda labels=labels: ValuedFrame.of(str(labels), "label", {}, spark)) == said, name
    path = written(tmp_path / "null bytes.parquet", item=["a\0", "b\0"], **numbers)
    assert "2 rows have no valid item" in refusal(lambda: read_features(path))
    assert "2 of 2 rows have no valid item" in refusal(lambda: score(ranker, path, session=spark).table())


INSTANTS = pa.array([0, 1], pa.timestamp("us", "UTC"))
NUMBERS = {
    "truth values": pa.array([True, None]),
    "instants": INSTANTS,
    "days": INSTANTS.cast(pa.date32()),
    "bytes": pa.array([b"1", b"2"]),
    "infinities": pa.array([" Nan", "-INF\n"]),
    "beyond": pa.array(["1e999", "inf"]),
    "words": pa.array(["1_0", "\uff11"]),
    "missing": pa.array([None, None], pa.float64()),
    "nothing": pa.nulls(2),
}
WHERE = re.compile(r" \((such as|first: ).*\)$")


def test_what_is_no_number_is_refused_as_in_memory(spark: Any, tmp_path: Path) -> None:
    cases = {name: {"query": ["p", "p"], "item": ["a", "b"], "label": label} for name, label in NUMBERS.items()}
    keys = {"null byte in a query": ("query", ["p\0", "p"]), "null byte in an item": ("item", ["a", "b\0"])}
    for name, (role, values) in keys.items():
        cases[name] = {"query": ["p", "p"], "item": ["a", "b"], "label": [1, 0]} | {role: values}
    for name, columns in cases.items():
        path = str(written(tmp_path / f"{name}.parquet", **columns))
        plain = refusal(lambda path=path: read_valued(path, "label", {}))
        ours = refusal(lambda path=path: ValuedFrame.of(path, "label", {}, spark))
        assert WHERE.sub("", ours) == WHERE.sub("", plain), name


def test_texts_are_numbers_as_in_memory() -> None:
    """No number is grouped by an underscore or written in other digits than ours; NaN and infinities are letters."""
    texts = [" 1.5", "+2.", " NaN", "-Infinity ", "1_000", "\uff11\uff12", "1e999", "0x1", "", None]
    X, wrong = matrix(pa.table({"x0": pa.array(texts)}), 1)
    for place, text in enumerate(texts):
        column = pa.array([text])
        try:
            found = column_numbers(column, "x", from_object({"x": column}))
        except InputError:
            assert wrong[place], text
        else:
            assert not wrong[place], text
            np.testing.assert_array_equal(X[place], found)
    assert wrong.ravel().tolist() == [False] * 4 + [True] * 5 + [False]


def test_texts_of_other_digits_are_counted(spark: Any) -> None:
    rows = spark.createDataFrame(pa.table({"item": ["a", "b", "c"], "x": ["1_000", "\uff11", "nan"]}))
    found = examine(FeatureFrame.of(Table.of(rows, spark), columns={}), log=False)
    assert (found.wrong[0], found.missing[0]) == (2, 1)


@pytest.mark.parametrize("params", [{"structure": "log-odds", "order": "all"}, {}], ids=["summed", "default"])
@pytest.mark.parametrize("by_query", [True, False], ids=["of queries", "of items"])
def test_a_log_is_matched_with_texts_as_in_memory(
    elsewhere: Any, tmp_path: Path, params: dict[str, Any], by_query: bool
) -> None:
    """Instants and days of a log with such columns of the features, or with what memory writes for them."""
    log, (query, item, X) = votes(), grid()
    queries, items = (KINDS["instant"], KINDS["date"]) if by_query else (KINDS["unsigned"], KINDS["instant"])
    columns = {name: (queries if name == "query" else items).take(pa.array(codes)) for name, codes in log.items()}
    path = written(tmp_path / "votes.parquet", **columns)
    if not params:
        instants, days = pa.array([f"{moment.isoformat()}Z" for moment in MOMENTS]), items.cast(pa.string())
        queries, items = (instants, days) if by_query else (queries, instants)
    rows: dict[str, Any] = {"item": items.take(pa.array(item)), "x": pa.array(X[:, 0]), "y": pa.array(X[:, 1])}
    if by_query:
        rows["query"] = queries.take(pa.array(query))
    else:
        rows = {name: values.take(pa.array(range(0, SIZE * SIZE, SIZE))) for name, values in rows.items()}
    plain = AggregationRanker(**params).fit(pa.table(rows), read(path))
    ours = fit(AggregationRanker(**params), path, written(tmp_path / "rows.parquet", **rows), session=elsewhere)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-7, atol=1e-9)


def test_scores_and_labels_are_matched_and_their_ties_told(elsewhere: Any, tmp_path: Path, run: Any) -> None:
    """An instant in one table is its text in the other; what goes by the order of rows is said."""
    query, item, X = grid()
    keys = {"query": KINDS["instant"].take(pa.array(query)), "item": KINDS["unsigned"].take(pa.array(item))}
    scores = written(tmp_path / "scores.parquet", **keys, score=np.where(query < 2, 0.5, X[:, 0]))
    texts = [MOMENTS[at].isoformat() + "Z" for at in query]
    rows = {"query": texts, "item": keys["item"], "label": item * (query != 1)}
    labels = tmp_path / "labels.csv"
    pa.csv.write_csv(pa.table(rows), labels)
    for convention, many in (("burges", 1), ("sklearn", 0)):
        command = ["evaluate", scores, labels, "--metric", "ndcg@3", "err", "--convention", convention]
        (_, plain, first), (_, ours, second) = run(*command), run(*command, "--engine", "spark")
        mine, theirs = (list(csv.DictReader(io.StringIO(text))) for text in (ours, plain))
        assert [float(row["mean"]) for row in mine] == pytest.approx([float(row["mean"]) for row in theirs])
        said = [[line for line in text.splitlines() if "all scores are equal" in line] for text in (first, second)]
        assert said[0] == said[1] and len(said[0]) == many
    assert evaluate(str(scores), str(labels), session=elsewhere).tied() == (1, SIZE)


def test_a_fit_heeds_one_column_of_clusters(spark: Any) -> None:
    log = {name: values.tolist() for name, values in votes().items()}
    log |= {"judge": [f"j{at % 7}" for at in range(240)], "day": [at % 5 for at in range(240)]}
    columns = ["judge", "day"]
    with pytest.raises(UsageError) as plain:
        refuse_crossed(read(log, cluster=columns), "a fit")
    query, item, X = grid()
    rows = {"query": query, "item": item, "x": X[:, 0]}
    assert refusal(lambda: fit(AggregationRanker(), log, rows, cluster=columns, session=spark)) == str(plain.value)
