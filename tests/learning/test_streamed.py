"""Features that stay on disk: the same model, scores and errors as from memory, whatever the order of the rows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version
from sklearn.linear_model import LinearRegression

import concordant as cc
from concordant.apps.models.saving import load_model
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.learning.features import key_index as in_order
from concordant.learning.features import streamed
from concordant.learning.features.key_index import place
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.edges import EdgeRanker
from running import exit_status

PLAIN: dict[str, Any] = {"structure": "log-odds", "order": "all", "ridge": 0.01}


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that every table here has many, and that queries are cut."""
    monkeypatch.setattr(streamed, "BLOCK", 4 * 13)
    monkeypatch.setattr(in_order, "BLOCK", 4 * 13)
    monkeypatch.setattr(streamed, "KEYS", 17)


def log_and_table(seed: int, *, queries: int = 6, texts: bool = True, item_only: bool = False, order: str = "grouped"):
    """Votes about some of the items of a table of 4 features, in one of several orders of rows."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 30, queries)
    query = np.repeat(np.arange(queries), size)
    item = np.concatenate([rng.permutation(200)[:m] for m in size])
    if item_only:
        query, item = np.zeros(60, int), rng.permutation(60)
    rows = len(item)
    X = np.column_stack(
        [rng.normal(1e3, 2.0, rows), rng.normal(size=rows), rng.normal(size=rows) * 1e-3, np.full(rows, 0.1)]
    )
    winner, loser, of = [], [], []
    for q in range(queries):
        mine = np.flatnonzero(query == (0 if item_only else q))
        few = mine[: max(2, len(mine) // 2)]  # the others nobody judged
        for _ in range(12):
            i, j = rng.choice(few, 2, replace=False)
            i, j = (i, j) if rng.random() < 1 / (1 + np.exp(X[j, 1] - X[i, 1])) else (j, i)
            winner.append(item[i]), loser.append(item[j]), of.append(q)
    label = (lambda name, codes: [f"{name}{code}" for code in codes]) if texts else (lambda _, codes: np.array(codes))
    votes = cc.Preferences.from_comparisons(label("d", winner), label("d", loser), query=label("q", of))
    at = {"grouped": np.argsort(rng.permutation(queries)[query % queries], kind="stable")}
    at |= {"shuffled": rng.permutation(rows), "sorted": np.arange(rows)}
    columns = {"query": label("q", query), "item": label("d", item), **{f"f{k}": X[:, k] for k in range(4)}}
    table = pa.table(columns).take(at[order])
    return votes, table.drop_columns(["query"]) if item_only else table


def put(table: pa.Table, folder: Path, form: str) -> Path:
    """Write a table in one of the forms that are streamed."""
    if form == "parquet":
        pq.write_table(table, folder / "f.parquet", row_group_size=19)
    elif form == "arrow":
        pyarrow.feather.write_feather(table, folder / "f.arrow", chunksize=23)
    elif form == "stream":
        with pa.ipc.new_stream(folder / "f.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=23)
    else:
        (folder / "f").mkdir()
        for part, begin in enumerate(range(0, len(table), 31)):
            pq.write_table(table.slice(begin, 31), folder / "f" / f"part-{part:03}.parquet")
        return folder / "f"
    return folder / ("f.parquet" if form == "parquet" else "f.arrow")


def assert_same(found: Any, right: Any) -> None:
    np.testing.assert_allclose(found.coef_standardised_, right.coef_standardised_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.coef_, right.coef_, rtol=1e-10, atol=1e-12)
    for name in ("mean", "scale", "fill", "absent", "constant"):
        mine, theirs = getattr(found.normaliser_, name), getattr(right.normaliser_, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13, err_msg=name)
    assert found.feature_names_in_.tolist() == right.feature_names_in_.tolist()
    numbers = {"gradient", "monte_carlo_error"}
    assert {k: v for k, v in found.status_.items() if k not in numbers} == {
        k: v for k, v in right.status_.items() if k not in numbers
    }


# -- the same as in memory -----------------------------------------------------------------------------------------
@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["grouped", "shuffled", "sorted"]),
    st.sampled_from(["parquet", "arrow", "stream", "folder"]),
    st.booleans(),
    st.sampled_from([1, 2, 7]),
    st.booleans(),
)
def test_a_fit_from_disk_is_that_from_memory(
    seed: int, order: str, form: str, texts: bool, queries: int, item_only: bool
) -> None:
    votes, table = log_and_table(seed, queries=queries, texts=texts, item_only=item_only, order=order)
    with tempfile.TemporaryDirectory() as folder:
        path = put(table, Path(folder), form)
        file, features = FeatureFile(path), cc.read_features(path)
        assert len(file) == len(table) and file.names == features.names
        right = cc.AggregationRanker(**PLAIN).fit(features, votes)
        found = cc.AggregationRanker(**PLAIN).fit(file, votes)
        assert_same(found, right)
        np.testing.assert_allclose(right.predict(file), right.predict(features), rtol=0, atol=0)
        assert right.score(file, votes) == pytest.approx(right.score(features, votes), abs=1e-12)
        assert place(file, votes).grouped == together(votes, table)
        nodes = [node for _, _, node in in_order.rows_by_query(file, place(file, votes))]
        query = np.searchsorted(votes.members[0], np.concatenate(nodes), side="right")
        assert np.count_nonzero(np.diff(query)) == queries - 1  # each query's rows come one after the other


def together(votes: cc.Preferences, table: pa.Table) -> bool:
    """Whether the judged rows of each query stand together, row by row."""
    if "query" not in table.column_names:
        return len(votes.queries) == 1
    judged = {(votes.queries[q], votes.items[i]) for q, i in zip(*members(votes), strict=True)}
    rows = zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True)
    seen = [query for query, item in rows if (query, item) in judged]
    return len([q for q, before in zip(seen, [None, *seen], strict=False) if q != before]) == len(set(seen))


OPTIONS: list[dict[str, Any]] = [
    {"log": True},
    {"standardise": False},
    {"intercept": "one"},
    {"intercept": "none"},
    {"intercept": "none", "standardise": False},
    {"order": 3, "subsets": 5, "gain": "identity", "normalise": False},
    {"order": [1, "all"], "ridge": [0.01, 1.0]},
    {"order": "auto", "folds": 2, "split": "queries"},
    {"structure": ["log-odds", "borda"], "intercept": "one"},
]


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(each))
def test_every_option_does_what_it_does_in_memory(options: dict[str, Any], order: str, tmp_path: Path) -> None:
    votes, table = log_and_table(3, order=order)
    path = put(table, tmp_path, "parquet")
    chosen = {**PLAIN, **options}
    right = cc.AggregationRanker(**chosen).fit(cc.read_features(path), votes)
    found = cc.AggregationRanker(**chosen).fit(FeatureFile(path), votes)
    assert_same(found, right)
    if hasattr(right, "cv_"):
        np.testing.assert_allclose(found.cv_["loss"], right.cv_["loss"], rtol=1e-10)


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
@pytest.mark.parametrize("missing", ["mean", "median", "zero"])
@pytest.mark.parametrize("log", [False, True])
def test_what_is_missing_becomes_what_it_becomes_in_memory(order: str, missing: str, log: bool, tmp_path: Path) -> None:
    votes, table = log_and_table(5, order=order)
    rng = np.random.default_rng(1)
    for name in ("f0", "f2"):
        gaps = rng.random(len(table)) < 0.2
        table = table.set_column(table.column_names.index(name), name, pa.array(table[name].to_numpy(), mask=gaps))
    path = put(table, tmp_path, "parquet")
    chosen = {**PLAIN, "missing": missing, "log": log}
    features = cc.read_features(path, missing="keep")
    right = cc.AggregationRanker(**chosen).fit(features, votes)
    found = cc.AggregationRanker(**chosen).fit(FeatureFile(path), votes)
    assert_same(found, right)
    assert right.normaliser_.absent.sum() > 0
    np.testing.assert_array_equal(right.predict(FeatureFile(path)), right.predict(features))
    with pytest.raises(InputError, match="missing='mean'"):
        cc.AggregationRanker(**PLAIN).fit(FeatureFile(path), votes)


def test_one_narrow_column_and_columns_of_several_types(tmp_path: Path) -> None:
    votes, table = log_and_table(8, order="shuffled")
    whole = pa.array(np.arange(len(table)) % 7, pa.int8())
    wide = pa.array((1 << 40) + np.arange(len(table)))  # more digits than float32 has
    narrow = table["f1"].cast(pa.float32())
    parts = {"query": table["query"], "item": table["item"], "n": narrow, "w": whole, "b": pc_odd(whole), "i": wide}
    path = put(pa.table(parts), tmp_path, "parquet")
    assert FeatureFile(path, names=["n", "w", "b"]).narrow and not FeatureFile(path, names=["i"]).narrow
    for names in (["n"], ["b", "i", "n"], ["n", "w", "b"]):
        right = cc.AggregationRanker(**PLAIN).fit(cc.read_features(path, names=names), votes)
        assert_same(cc.AggregationRanker(**PLAIN).fit(FeatureFile(path, names=names), votes), right)


def pc_odd(column: pa.Array) -> pa.Array:
    return pa.array(column.to_numpy() % 2 == 1)


def test_scores_take_the_columns_in_the_order_of_the_model(tmp_path: Path) -> None:
    votes, table = log_and_table(2)
    path = put(table, tmp_path, "parquet")
    fitted = cc.AggregationRanker(**PLAIN).fit(FeatureFile(path), votes)
    turned = FeatureFile(path, names=["f3", "f1", "f0", "f2"])
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(cc.read_features(path)))
    for names, says in ((["f0"], "lack 'f1'"), (["f0", "f1"], "lack 'f2'")):
        with pytest.raises(InputError, match=says):
            fitted.predict(FeatureFile(path, names=names))


# -- the same errors -----------------------------------------------------------------------------------------------
def changed(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


def broken() -> list[tuple[str, pa.Table, str]]:
    votes, table = log_and_table(4)
    judged = {(votes.queries[q], votes.items[i]) for q, i in zip(*members(votes), strict=True)}
    pairs = list(zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True))
    ours = [row for row, pair in enumerate(pairs) if pair in judged]
    other = [row for row, pair in enumerate(pairs) if pair not in judged]
    at = ours[-1]
    return [
        ("lacking", table.filter(pa.array([row != at for row in range(len(table))])), "1 of .* items with preferences"),
        ("twice", pa.concat_tables([table, table.slice(at, 1)]), f"rows {at + 1} and {len(table) + 1} are both"),
        ("unjudged twice", pa.concat_tables([table, table.slice(other[3], 1)]), f"rows {other[3] + 1} and"),
        ("no item", changed(table, "item", 40, None), "1 rows.* have no valid item .*row 41"),
        ("no query", changed(table, "query", 40, None), "1 rows.* have no valid query .*row 41"),
        ("gap", changed(table, "f2", 40, None), "row 41, column 'f2': nan"),
        ("infinite", changed(table, "f0", other[0], np.inf), f"row {other[0] + 1}, column 'f0': inf"),
        (
            "text",
            table.set_column(2, "f0", pa.array(["1"] * 40 + ["x"] * (len(table) - 40))),
            "row 41, column 'f0': 'x'",
        ),
        ("integers", table.set_column(1, "item", pa.array(range(len(table)))), "integers in the features .* and texts"),
    ]


def members(votes: cc.Preferences) -> tuple[np.ndarray, np.ndarray]:
    start, item = votes.members
    return np.repeat(np.arange(len(votes.queries)), np.diff(start)), item


@pytest.mark.parametrize("case", broken(), ids=lambda case: case[0])
@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_what_is_refused_in_memory_is_refused_from_disk(case: Any, order: str, tmp_path: Path) -> None:
    _, table, says = case
    votes = log_and_table(4)[0]
    path = put(table, tmp_path, "parquet")
    with pytest.raises(InputError, match=says):
        cc.AggregationRanker(**PLAIN).fit(cc.read_features(path), votes)
    if order == "shuffled":  # other rows, but refused with the same words
        path = put(table.take(np.random.default_rng(0).permutation(len(table))), tmp_path, "parquet")
        says = "rows? " if says.startswith("row") else says.split("row")[0]
    with pytest.raises(InputError, match=says):
        cc.AggregationRanker(**PLAIN).fit(FeatureFile(path), votes)


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_values_whose_squares_are_beyond_float64_are_one_clear_error(order: str, tmp_path: Path) -> None:
    votes, table = log_and_table(4, order=order)
    path = put(changed(table, "f1", 40, 1e200), tmp_path, "parquet")
    for features in (cc.read_features(path), FeatureFile(path)):
        with pytest.raises(InputError, match="the squares of 'f1' are beyond float64"):
            cc.AggregationRanker(**PLAIN).fit(features, votes)


def test_what_cannot_be_streamed_says_so_before_any_work(tmp_path: Path) -> None:
    votes, table = log_and_table(1)
    file = FeatureFile(put(table, tmp_path, "parquet"))
    cases: list[tuple[Any, str]] = [
        (cc.AggregationRanker(), "name a structure"),
        (cc.AggregationRanker(informed=True), "name a structure"),
        (cc.AggregationRanker(**{**PLAIN, "regressor": LinearRegression()}), "linear least squares"),
        (EdgeRanker("linear"), "EdgeRanker needs the features in memory"),
        (cc.QueryRankers(cc.AggregationRanker(**PLAIN)), "stay on disk"),
    ]
    for ranker, says in cases:
        with pytest.raises(UsageError, match=says):
            ranker.fit(file, votes)
    with pytest.raises(UsageError, match="matched with Preferences"):
        cc.AggregationRanker(**PLAIN).fit(file, np.ones(len(table)))
    with pytest.raises(UsageError, match="sample_weight"):
        cc.AggregationRanker(**PLAIN).fit(file, votes, np.ones(len(table)))
    with pytest.raises(InputError, match="no judgments"):
        cc.AggregationRanker(**PLAIN).fit(file, cc.Preferences.empty())
    for name, says in (("f.csv", "not from csv"), ("none.parquet", "no file")):
        (tmp_path / "f.csv").write_text("item,x\na,1\n")
        with pytest.raises(ConcordantError, match=says):
            FeatureFile(tmp_path / name)
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="there are no rows"):
        FeatureFile(tmp_path / "empty.parquet")


def test_a_file_that_breaks_off_is_one_clear_error(tmp_path: Path) -> None:
    votes, table = log_and_table(1)
    path = put(table, tmp_path, "parquet")
    raw = bytearray(path.read_bytes())
    raw[20 : len(raw) // 2] = bytes(len(raw) // 2 - 20)  # pages in the middle; the footer is whole
    path.write_bytes(bytes(raw))
    with pytest.raises(InputError, match=r"f\.parquet: cannot be read as parquet"):
        cc.AggregationRanker(**PLAIN).fit(FeatureFile(path), votes)


# -- memory --------------------------------------------------------------------------------------------------------
FIT = """
import resource, sys
import duckdb
import numpy as np
import concordant as cc
from concordant.learning.features.streamed import FeatureFile

path, votes, more, order = sys.argv[1], cc.read(sys.argv[2], pool=False), int(sys.argv[3]), sys.argv[4]
small = FeatureFile(sys.argv[5], memory_limit="64MB")
ranker = cc.AggregationRanker("log-odds", order="all", standardise=False, ridge=1e-3)
ranker.fit(small, votes)  # libraries and threads take what they take
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))
file = FeatureFile(path, memory_limit="64MB")
print(file.size / more, *ranker.fit(file, votes).coef_)
try:
    cc.read_features(path)
    sys.exit("the limit does not bind")
except (MemoryError, cc.InputError):
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
@pytest.mark.skipif(Version(duckdb.__version__) < Version("2"), reason="DuckDB 1.4 does not group this within 61 MiB")
@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_a_table_larger_than_the_memory_is_fitted(order: str, tmp_path: Path) -> None:
    queries, items, width = 7_500, 100, 100
    rng = np.random.default_rng(0)
    query, item = (
        np.repeat(np.arange(queries, dtype=np.int32), items),
        np.tile(np.arange(items, dtype=np.int32), queries),
    )
    x = rng.integers(0, 9, len(query)).astype(np.float32)
    at = np.arange(len(query)) if order == "grouped" else rng.permutation(len(query))
    columns = {f"f{k}": (x * (k + 3) % 17)[at] for k in range(width)}
    table = pa.table({"query": query[at], "item": item[at], **columns})
    pq.write_table(table, tmp_path / "large.parquet", row_group_size=50_000)
    few = np.isin(table["query"].to_numpy(), np.arange(300))
    pq.write_table(table.filter(pa.array(few)), tmp_path / "small.parquet")
    winner, loser = np.argmax(x[:30_000].reshape(-1, 100), axis=1), np.argmin(x[:30_000].reshape(-1, 100), axis=1)
    votes = {"query": np.arange(300), "winner": winner, "loser": loser}
    pq.write_table(pa.table(votes), tmp_path / "votes.parquet")
    limit = 320 << 20  # of the address space: the slack that threads reserve included
    quiet = {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "1000000",
        "OMP_NUM_THREADS": "1",
    }
    found = subprocess.run(
        [sys.executable, "-c", FIT, "large.parquet", "votes.parquet", str(limit), order, "small.parquet"],
        cwd=tmp_path,
        env={**os.environ, **quiet, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    times, *coef = map(float, found.stdout.split())
    assert times > 2.5
    right = cc.AggregationRanker("log-odds", order="all", standardise=False, ridge=1e-3)  # of what was judged
    right.fit(cc.read_features(tmp_path / "small.parquet"), cc.read(tmp_path / "votes.parquet", pool=False))
    np.testing.assert_allclose(coef, right.coef_, rtol=1e-8, atol=1e-10)


# -- the commands --------------------------------------------------------------------------------------------------
@pytest.fixture
def concordant(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = exit_status(*arguments)
        sys.stdout.flush()
        out = capfdbinary.readouterr()
        return status, out.out.decode(), out.err.decode()

    return run


def put_votes(votes: cc.Preferences) -> None:
    rows = np.repeat(np.arange(votes.distinct), votes.count)
    labels = {"query": votes.queries.take(votes.query[rows]), "winner": votes.items.take(votes.winner[rows])}
    pq.write_table(pa.table({**labels, "loser": votes.items.take(votes.loser[rows])}), "votes.parquet")


@pytest.mark.parametrize("item_only", [False, True])
def test_the_commands_stream(concordant: Any, item_only: bool) -> None:
    votes, table = log_and_table(6, order="shuffled", item_only=item_only)
    put_votes(votes)
    path = put(table, Path(), "folder")
    fit = ("fit", "votes.parquet", "-f", path, "-s", "log-odds", "--order", "all")
    assert concordant(*fit, "-m", "whole", "--in-memory")[0] == 0
    status, _, told = concordant(*fit, "-m", "streamed", "--stream")
    assert status == 0 and "streamed from disk" in told
    by_size = concordant(*fit, "-m", "sized", "--memory-limit", "1KB")
    assert by_size[0] == 2 or "streamed from disk" in by_size[2]
    np.testing.assert_allclose(load_model("streamed").coef_, load_model("whole").coef_, rtol=1e-10, atol=1e-12)
    for ending in ("csv", "tsv", "parquet", "arrow", "json", "jsonl"):
        assert concordant("score", "-m", "whole", "-f", path, "-o", f"a.{ending}", "--in-memory")[0] == 0
        assert concordant("score", "-m", "whole", "-f", path, "-o", f"b.{ending}", "--stream")[0] == 0
        if ending in ("parquet", "arrow"):
            read = pq.read_table if ending == "parquet" else pyarrow.feather.read_table
            assert read(f"b.{ending}").equals(read(f"a.{ending}"))
        else:
            assert Path(f"b.{ending}").read_bytes() == Path(f"a.{ending}").read_bytes()
    piped = concordant("score", "-m", "whole", "-f", path, "--stream")
    assert piped[1] == Path("a.csv").read_text() and "streamed" in piped[2]


def test_the_commands_say_what_does_not_stream(concordant: Any) -> None:
    votes, table = log_and_table(6)
    put_votes(votes)
    path = put(table, Path(), "parquet")
    Path("items.csv").write_text("item,x\nd1,1\n")
    cases = [
        (("fit", "votes.parquet", "-f", path, "-m", "m", "--stream"), "name a structure"),
        (("fit", "votes.parquet", "-f", "items.csv", "-m", "m", "--stream", "-s", "log-odds"), "not from csv"),
        (
            ("fit", "votes.parquet", "-f", path, "-m", "m", "--stream", "--loss", "ranknet"),
            "needs the features in memory",
        ),
    ]
    for arguments, says in cases:
        status, out, told = concordant(*arguments)
        assert status == 2 and out == "" and says in told and told.count("\n") == 1, told
    texts = changed(table, "item", 0, "1")
    assert concordant("fit", "votes.parquet", "-f", path, "-m", "m", "-s", "log-odds", "--stream", "-q")[0] == 0
    pq.write_table(texts, "other.parquet")
    assert concordant("score", "-m", "m", "-f", "other.parquet", "--stream", "--abstain", "0.2", "--gamma", "1")[0] == 2


def test_streamed_scores_are_refused_and_typed_as_those_in_memory(concordant: Any) -> None:
    votes, table = log_and_table(7, texts=False)
    put_votes(votes)
    for column in ("query", "item"):
        at = table.column_names.index(column)
        table = table.set_column(at, column, table[column].dictionary_encode())
    path = put(table, Path(), "arrow")
    assert concordant("fit", "votes.parquet", "-f", path, "-m", "m", "-s", "log-odds", "--stream", "-q")[0] == 0
    for way in ("--stream", "--in-memory"):
        assert concordant("score", "-m", "m", "-f", path, way, "-o", f"scores{way}.parquet")[0] == 0
    streamed, whole = (pq.read_table(f"scores{way}.parquet") for way in ("--stream", "--in-memory"))
    assert streamed.schema.equals(whole.schema) and streamed["item"].equals(whole["item"])
    twice = put(pa.concat_tables([table, table.slice(3, 1)]), Path(), "arrow")
    told = {concordant("score", "-m", "m", "-f", twice, way) for way in ("--stream", "--in-memory")}
    found = [each for each in told if each[0] == 2 and "rows 4 and" in each[2]]
    assert len(found) == len(told), told


def test_labels_are_matched_as_they_are_written(concordant: Any) -> None:
    votes, table = log_and_table(7, texts=False)
    put_votes(votes)
    for column in ("query", "item"):
        at = table.column_names.index(column)
        table = table.set_column(at, column, table[column].cast(pa.string()))
    path = put(table, Path(), "parquet")
    fit = ("fit", "votes.parquet", "-f", path, "-s", "log-odds", "--order", "all")
    status, _, told = concordant(*fit, "-m", "streamed", "--stream")
    assert status == 0 and "items: integers in the log and texts in the features" in told
    assert concordant(*fit, "-m", "whole", "--in-memory")[0] == 0
    np.testing.assert_allclose(load_model("streamed").coef_, load_model("whole").coef_, rtol=1e-10, atol=1e-12)
