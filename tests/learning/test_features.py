"""Features: reading, checking, matching with preferences and normalising, against plain parsers and peers."""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.learning.features.matrix import Features, align
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_features, read_judged
from concordant.preferences.graphs import Batch

Find = Callable[[str], Path]


def plain_letor(text: str) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The file read token by token."""
    rows, queries, labels, widest = [], [], [], 0
    for line in text.splitlines():
        label, qid, *pairs = line.split("#")[0].split()
        row = {int(pair.split(":")[0]): float(pair.split(":")[1]) for pair in pairs}
        widest = max(widest, *row)
        rows.append(row)
        queries.append(qid[4:])
        labels.append(float(label))
    X = np.array([[row.get(place, 0.0) for place in range(1, widest + 1)] for row in rows])
    return X, queries, np.array(labels)


def equal_to_plain(path: Path, text: str) -> Features:
    features, relevance = read_judged(path)
    X, queries, labels = plain_letor(text)
    np.testing.assert_array_equal(features.X, X)
    np.testing.assert_array_equal(relevance, labels)
    assert features.query is not None
    assert features.queries.take(features.query).to_pylist() == queries
    assert features.names == tuple(str(place + 1) for place in range(X.shape[1]))
    return features


# -- LETOR files ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["mq2008/S1.txt", "clueweb09_webis/Fold3.test.txt"])
def test_a_real_letor_file_as_a_plain_parser_reads_it(shared_data: Find, name: str) -> None:
    path = shared_data(name)
    features = equal_to_plain(path, path.read_text())
    assert (features.items.take(features.item)[0].as_py()).startswith(("GX", "clueweb09-"))


def test_a_sparse_real_file_gets_its_queries_from_the_sidecar(shared_data: Find, tmp_path: Path) -> None:
    folder = shared_data("lightgbm_lambdarank")
    sizes = [int(size) for size in (folder / "rank.train.query").read_text().split()]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    lines = (folder / "rank.train").read_text().splitlines()
    text = "\n".join(" ".join([(p := line.split(None, 1))[0], f"qid:{q}", p[1]]) for line, q in zip(lines, qid))
    path = tmp_path / "rank.svm"
    path.write_text(text)
    features = equal_to_plain(path, text)
    sklearn = pytest.importorskip("sklearn.datasets")
    X, y = sklearn.load_svmlight_file(str(folder / "rank.train"))
    np.testing.assert_array_equal(features.X, X.toarray())
    np.testing.assert_array_equal(read_judged(path)[1], y)
    assert read_features(path, width=400).X.shape == (len(lines), 400)


def test_mslr_is_read_and_its_preferences_match(shared_data: Find) -> None:
    path = shared_data("mslr/mslr_merged_by_query.svm.gz")
    features = read_features(path, dtype=np.float32)
    assert features.X.shape == (19_874, 136) and features.X.dtype == np.float32
    found = align(features, cc.read(path))
    assert sorted(found.row.tolist()) == list(range(19_874)) and len(found.unjudged) == 0


def test_features_and_preferences_of_one_file_share_their_labels(shared_data: Find) -> None:
    path = shared_data("mq2008/S2.txt")
    features, relevance = read_judged(path)
    prefs = cc.read(path)
    found = align(features, prefs)
    # the ratings of a query are its labels: look every one up
    start, item = prefs.members
    for q in (0, 7, len(prefs.queries) - 1):
        rows = found.row[start[q] : start[q + 1]]
        known = dict(zip(item[start[q] : start[q + 1]].tolist(), relevance[rows].tolist()))
        entries = slice(prefs.list_start[prefs.start[q]], prefs.list_start[prefs.start[q] + 1])
        assert known == dict(zip(prefs.list_item[entries].tolist(), prefs.list_value[entries].tolist()))


GOOD = "2 qid:1 1:0.5 3:-1e-3 # docid = a\n0 qid:1 2:7 # docid = b\n1 qid:2 # docid = a\n"


def test_sparse_gzip_and_an_empty_row(tmp_path: Path) -> None:
    path = tmp_path / "small.letor.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    features, relevance = read_judged(path)
    assert features.X.tolist() == [[0.5, 0.0, -0.001], [0.0, 7.0, 0.0], [0.0, 0.0, 0.0]]
    assert relevance.tolist() == [2.0, 0.0, 1.0]
    assert features.items.take(features.item).to_pylist() == ["a", "b", "a"]


def test_null_is_missing_and_what_a_line_leaves_out_is_zero(tmp_path: Path) -> None:
    path = tmp_path / "semi.txt"
    path.write_text("2 qid:1 1:NULL 2:0.5\n0 qid:1 1:1 2:NULL\n1 qid:2 2:3\n")
    features, _ = read_judged(path, missing="keep")
    np.testing.assert_array_equal(features.X, [[np.nan, 0.5], [1.0, np.nan], [0.0, 3.0]])
    with pytest.raises(
        InputError, match=r"2 of 6 values are not finite \(row 1, column '1': nan; row 2.*missing='keep'"
    ):
        read_judged(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD + "1 1:3\n", "line 4 is not of the form"),
        (GOOD + "1 qid:3 NULL:3 # docid = z\n", "line 4: 'NULL:3' is not of the form index:number"),
        (GOOD + "1 qid:3 1:NULL 2:nil # docid = z\n", "line 4: '2:nil' is not of the form index:number"),
        (GOOD + "1 qid:1 1:3 # docid = z\n", "line 4: qid:1 comes back"),
        (GOOD + "1 qid:3 1:3 1:4 # docid = z\n", "line 4: the feature 1 is there twice"),
        (GOOD + "1 qid:3 2:1 1:3 2:4 # docid = z\n", "line 4: the feature 2 is there twice"),
        (GOOD + "1 qid:3 0:3 # docid = z\n", "line 4: there is no feature 0"),
        (GOOD + "1 qid:3 99999999999:3 # docid = z\n", "line 4: there is no feature 99999999999"),
        (GOOD + "1 qid:3 1:x # docid = z\n", "line 4: '1:x' is not of the form index:number"),
        (GOOD + "1 qid:3 1: # docid = z\n", "line 4: '1:' is not"),
        (GOOD + "1 qid:3 1:2:3 4 # docid = z\n", "line 4: '1:2:3' is not"),
        (GOOD + "1 qid:3 5 # docid = z\n", "line 4: '5' is not"),
        (GOOD + "x qid:3 1:5 # docid = z\n", "line 4: the label 'x'"),
        (GOOD + "1 qid:3 1:nan # docid = z\n", "row 4, column '1': nan"),
        (GOOD + "1 qid:3 1:inf # docid = z\n", "row 4, column '1': inf"),
        (GOOD + "1 qid:2 1:4 # docid = a\n", "rows 3 and 4 are both query '2', item 'a'"),
    ],
)
def test_bad_letor_lines_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_features(path)
    assert says in str(caught.value) and "bad.svm" in str(caught.value)


@given(
    st.lists(st.tuples(st.integers(0, 80), st.sampled_from(list('019:. \n\t#qid-e,"x\x00é'))), min_size=1, max_size=4)
)
def test_a_damaged_file_is_read_or_refused(edits: list[tuple[int, str]]) -> None:
    table = 'item,query,a,b\nx,q,1,2\ny,q,3.5,-4\n"z,1",r,1e3,0\n'
    for text, ending in ((GOOD, ".svm"), (table, ".csv")):
        letters = list(text)
        for place, letter in edits:
            letters[place % len(letters)] = letter
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"damaged{ending}"
            path.write_text("".join(letters), encoding="utf-8")
            with contextlib.suppress(ConcordantError):
                assert np.isfinite(read_features(path).X).all()


def test_width_bounds_the_indices(tmp_path: Path) -> None:
    path = tmp_path / "small.svm"
    path.write_text(GOOD)
    with pytest.raises(InputError, match=r"line 1: there is no feature 3; features are numbered from 1 to 2"):
        read_features(path, width=2)
    assert read_features(path, width=5).names == ("1", "2", "3", "4", "5")


# -- tables --------------------------------------------------------------------------------------------------------
TABLE = {"qid": ["q", "q", "r"], "docid": ["x", "y", "x"], "bm25": [1.5, 0.5, -2.0], "length": [10, 20, 30]}


def all_forms(folder: Path) -> list[object]:
    table = pa.table(TABLE)
    frame = pd.DataFrame(TABLE)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_csv(folder / "t.csv.gz", index=False)
    (folder / "t.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    pa.parquet.write_table(table, folder / "t.parquet")
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    files = [folder / name for name in ("t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.parquet", "t.arrow")]
    return [*files, table, frame, pl.DataFrame(TABLE), TABLE]


def test_every_form_of_a_table_reads_alike(tmp_path: Path) -> None:
    for source in all_forms(tmp_path):
        features = read_features(source)
        assert features.names == ("bm25", "length"), source
        assert features.X.tolist() == [[1.5, 10.0], [0.5, 20.0], [-2.0, 30.0]]
        assert features.items.take(features.item).to_pylist() == ["x", "y", "x"]
        assert features.query is not None
        assert features.queries.take(features.query).to_pylist() == ["q", "q", "r"]


def test_labels_columns_and_names_can_be_given() -> None:
    table = {"who": [3, 1], "a": [1.0, 2.0], "b": [3, 4], "title": ["s", "t"], "grade": [0, 2]}
    features, relevance = read_judged(table, columns={"item": "who"}, names=["b", "a"])
    assert features.names == ("b", "a") and features.items.tolist() == [1, 3] and relevance.tolist() == [0.0, 2.0]
    assert features.query is None
    with pytest.raises(InputError, match=r"row 1, column 'title': 's' is not a finite number.*with names"):
        read_judged(table, columns={"item": "who"})
    with pytest.raises(InputError, match="no column of items"):
        read_features(table)
    with pytest.raises(InputError, match="no column 'c'"):
        read_features(table, columns={"item": "who"}, names=["c"])


def test_an_index_without_a_name_is_no_feature(tmp_path: Path) -> None:
    """Chosen rows of a frame keep their numbers as an index, which Arrow and Parquet carry as one more column."""
    table = pd.DataFrame({"item": ["w", "x", "y", "z"], "length": [1.0, 2.0, 3.0, 4.0]}).iloc[[3, 1, 0]]
    table.to_parquet(tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        assert read_features(source).names == ("length",)
    assert read_features(table.set_index("item")).items.tolist() == ["w", "x", "z"]


def test_missing_values_are_an_error_or_kept(tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text("item,a,b\nx,1,\ny,,2\nz,nan,3\n")
    with pytest.raises(InputError, match=r"3 of 6 values are not finite \(row 1, column 'b': nan; row 2, column 'a'"):
        read_features(path)
    X = read_features(path, missing="keep").X
    np.testing.assert_array_equal(X, [[1, np.nan], [np.nan, 2], [np.nan, 3]])
    path.write_text("item,a\nx,1\ny,inf\n")
    with pytest.raises(InputError, match="row 2, column 'a': inf"):
        read_features(path, missing="keep")
    path.write_text("item,a\nx,1\n,2\n")
    with pytest.raises(InputError, match=r"1 rows have no valid item \(the first is row 2\)"):
        read_features(path)
    path.write_text("item,a\nx,1\ny,two\n")
    with pytest.raises(InputError, match="row 2, column 'a': 'two' is not a finite number"):
        read_features(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"item": ["x"]}, "2 rows and the column of item 1"),
        ({"item": ["x", "y"], "query": ["q"]}, "2 rows and the column of query 1"),
        ({"item": ["x", "x"]}, "rows 1 and 2 are both item 'x'"),
        ({"item": ["x", None]}, "1 of 2 labels are missing"),
        ({"item": ["x", "y"], "names": ["a"]}, "1 names for 2 columns"),
        ({"item": ["x", "y"], "names": ["a", "a"]}, "'a' are there more than once"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Features.of([[1.0, 2.0], [3.0, 4.0]], **arguments)


def test_other_matrices_are_refused() -> None:
    for X, says in (([1.0, 2.0], "1 dimension, it must have 2"), ([["a", "b"]], "not a matrix"), ([[1j]], "Complex")):
        with pytest.raises(InputError, match=says):
            Features.of(X, item=["x"])
    with pytest.raises(InputError, match="row 1, column '2': nan"):
        Features.of([[1.0, np.nan]], item=["x"])
    with pytest.raises(UsageError, match="missing must be one of"):
        Features.of([[1.0]], item=["x"], missing="drop")
    big = np.full((3, 1), 1e308)  # finite values whose sum is not
    assert len(Features.of(big, item=["a", "b", "c"])) == 3


def test_features_are_immutable_and_float32_is_kept() -> None:
    X = np.ones((2, 2), np.float32)
    features = Features.of(X, item=["x", "y"])
    assert features.X.dtype == np.float32 and np.shares_memory(features.X, X)
    with pytest.raises(ValueError, match="read-only"):
        features.X[0, 0] = 2.0
    part = features.take(np.array([1]))
    assert part.items.tolist() == ["y"] and part.X.shape == (1, 2)


def test_what_float32_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.svm"
    path.write_text("1 qid:1 1:1e39\n")
    for source in (path, {"item": ["x"], "1": [1e39]}):
        with pytest.raises(InputError, match="row 1, column '1': inf"):
            read_features(source, dtype=np.float32)
        assert read_features(source).X.tolist() == [[1e39]]


# -- matching with preferences -------------------------------------------------------------------------------------
@given(st.data())
def test_alignment_finds_the_row_of_every_node(data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, unique=True))
    X = np.arange(len(cells), dtype=float)[:, None]
    features = Features.of(X, item=[i for _, i in cells], query=[q for q, _ in cells])
    pairs = [(q, i, j) for q, i in cells for p, j in cells if p == q and i != j]
    some = data.draw(st.lists(st.sampled_from(pairs), min_size=1)) if pairs else []
    if not some:
        return
    q, i, j = map(list, zip(*some))
    prefs = cc.Preferences.from_comparisons(i, j, query=q)
    found = align(features, prefs)
    batch = Batch.whole(prefs)
    for node, row in enumerate(found.row.tolist()):
        assert cells[row] == (prefs.queries[batch.query[batch.owner[node]]], prefs.items[batch.item[node]])
    assert sorted([*found.row.tolist(), *found.unjudged.tolist()]) == list(range(len(cells)))


def test_features_without_queries_hold_for_every_query() -> None:
    prefs = cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], query=["p", "q"])
    features = Features.of([[0.0], [1.0], [2.0]], item=["c", "b", "a"])
    assert align(features, prefs).row.tolist() == [2, 1, 1, 0]


def test_items_without_features_are_named() -> None:
    prefs = cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], query=["p", "q"])
    for item, query, says in (
        (["a", "b", "b"], ["p", "p", "q"], r"1 of 4 items with preferences have no features \(query 'q', item 'c'\)"),
        (["a", "b", "c", "c"], ["p", "p", "p", "q"], r"1 of 4 items.*\(query 'q', item 'b'\)"),
        (["a", "b"], ["p", "p"], r"2 of 4 items.*query 'q', item 'b'; query 'q', item 'c'"),
        ([1], ["p"], "labels of item are integers in the features"),
    ):
        with pytest.raises(InputError, match=says):
            align(Features.of(np.zeros((len(item), 1)), item=item, query=query), prefs)


# -- normalising ---------------------------------------------------------------------------------------------------
def test_normalised_columns_have_mean_zero_and_variance_one(shared_data: Find) -> None:
    X = read_features(shared_data("mq2008/S3.txt")).X
    for log in (False, True):
        fitted = Normaliser(log=log).fit(X)
        Z = fitted.apply(X)
        assert fitted.constant is not None and fitted.constant.any()
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
        np.testing.assert_allclose(Z.std(axis=0), np.where(fitted.constant, 0, 1), atol=1e-10)
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler().fit(X)
    np.testing.assert_allclose(Normaliser().fit(X).apply(X), scaler.transform(X), atol=1e-9)


def test_the_logarithm_keeps_the_sign() -> None:
    X = np.array([[-np.e + 1], [0.0], [np.e - 1]])
    assert Normaliser(standardise=False, log=True).fit(X).apply(X).ravel().tolist() == pytest.approx([-1, 0, 1])


def test_missing_values_become_what_was_asked() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [9.0, np.nan], [np.nan, np.nan]])
    for missing, value in (("mean", 4.0), ("median", 2.0), ("zero", 0.0)):
        fitted = Normaliser(standardise=False, missing=missing).fit(X)
        assert fitted.apply(X)[:, 0].tolist() == [1, 2, 9, value]
        assert fitted.absent is not None and fitted.absent.tolist() == [1, 4]
        np.testing.assert_array_equal(fitted.apply(X)[:, 1], 0)
    with pytest.raises(InputError, match="row 1, column '2': nan"):
        Normaliser(missing="raise").fit(X)
    with pytest.raises(InputError, match="row 1, column '1': inf"):
        Normaliser().fit(np.array([[np.inf]]))


def test_what_was_learned_is_applied_to_new_rows_and_survives_json() -> None:
    rng = np.random.default_rng(3)
    X, new = rng.lognormal(size=(50, 7)), rng.lognormal(size=(5, 7))
    X[:, 3] = 0.1  # a constant that sums with rounding
    fitted = Normaliser(log=True, missing="median").fit(X, names=list("abcdefg"))
    logged = np.log1p(X)
    logged_new, scale = np.log1p(new), np.where(np.ptp(X, axis=0) == 0, 1.0, logged.std(axis=0))
    np.testing.assert_allclose(fitted.apply(new), (logged_new - logged.mean(axis=0)) / scale, rtol=1e-12)
    assert fitted.apply(X)[:, 3].tolist() == [0.0] * 50
    again = Normaliser.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.apply(new).tolist() == fitted.apply(new).tolist() and again.to_dict() == fitted.to_dict()
    assert fitted.apply(new.astype(np.float32)).dtype == np.float32
    with pytest.raises(InputError, match="3 columns, the normaliser was fitted on 7"):
        fitted.apply(new[:, :3])
    with pytest.raises(UsageError, match="not fitted"):
        Normaliser().apply(new)
    with pytest.raises(UsageError, match="did you mean 'median'"):
        Normaliser(missing="medain")
    broken = {**fitted.to_dict(), "mean": [1.0]}
    with pytest.raises(InputError, match="different length"):
        Normaliser.from_dict(broken)
    with pytest.raises(InputError, match="cannot be read"):
        Normaliser.from_dict({"log": True})


@pytest.mark.parametrize("crowded", [True, False])
def test_alignment_by_a_table_and_by_a_search(crowded: bool) -> None:
    """Items that all queries share leave few keys unused; items of one query each leave most."""
    rng = np.random.default_rng(0)
    query, place = np.divmod(rng.permutation(400), 20)
    item = place if crowded else place + 20 * query
    features = Features.of(np.arange(400.0)[:, None], item=item, query=query)
    winner, loser = rng.integers(0, 400, 50), rng.integers(0, 400, 50)
    loser = np.where(query[winner] == query[loser], loser, winner)
    winner, loser = winner[winner != loser], loser[winner != loser]
    winner, loser = np.append(winner, [0, 1]), np.append(loser, [np.flatnonzero(query == query[i])[-1] for i in (0, 1)])
    prefs = cc.Preferences.from_comparisons(item[winner], item[loser], query=query[winner])
    found = align(features, prefs)
    owner = np.repeat(np.arange(len(prefs.queries)), np.diff(found.start))
    wanted = [(prefs.queries[q], prefs.items[i]) for q, i in zip(owner, prefs.members[1])]
    assert [(query[row], item[row]) for row in found.row] == wanted
    assert sorted([*found.row, *found.unjudged]) == list(range(400))
