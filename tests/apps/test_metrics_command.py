"""``concordant evaluate`` as its users meet it; the expected numbers are those of the originals."""

import csv
import json
import subprocess
import sys
from io import StringIO

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import sem, ttest_rel

from concordant.apps.commands import main

SCORES = "query,item,score\nq1,a,0.9\nq1,b,0.8\nq1,c,0.1\nq2,a,1\nq2,d,2\n"
LABELS = "qid,docid,label\nq2,a,1\nq2,d,0\nq1,c,2\nq1,a,0\nq1,b,1\n"


@pytest.fixture
def golden(small_data):
    return json.loads((small_data / "metrics_golden.json").read_text())


@pytest.fixture
def files(tmp_path):
    (tmp_path / "scores.csv").write_text(SCORES)
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path


def call(capsys, *arguments):
    status = 0
    try:
        main(["evaluate", *(str(argument) for argument in arguments)])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def rows(text):
    return list(csv.DictReader(StringIO(text, newline="")))


def written(folder, data, labels):
    """Write the scores as CSV and the labels as qrels, LETOR or Parquet, in another order."""
    lines = zip(data["query"], data["item"], data["score"])
    (folder / "scores.csv").write_text("query,item,score\n" + "".join(f"{q},{i},{s!r}\n" for q, i, s in lines))
    table = list(zip(data["query"], data["item"], data["label"]))[::-1]
    target = folder / f"labels.{labels}"
    if labels == "qrels":
        target.write_text("".join(f"{q} 0 {i} {r}\n" for q, i, r in table))
    elif labels == "letor":
        table.sort(key=lambda row: row[0])
        target.write_text("".join(f"{r} qid:{q} 1:0.5 # docid = {i}\n" for q, i, r in table))
    else:
        query, item, label = zip(*table)  # queries as integers here, as texts in the scores
        pa.parquet.write_table(pa.table({"query": [int(q) for q in query], "item": item, "label": label}), target)
    return folder / "scores.csv", target


@pytest.mark.parametrize("labels", ["qrels", "letor", "parquet"])
def test_means_and_standard_errors_of_trec(golden, tmp_path, capsys, labels):
    case = next(one for one in golden["values"] if one["convention"] == "trec" and one["data"] == "signed")
    paths = written(tmp_path, golden["data"]["signed"], labels)
    names = list(case["values"])
    options = [part for name in names for part in ("--metric", name)]
    status, out, err = call(capsys, *paths, *options, "--convention", "trec")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "name,mean,standard_error,queries"
    assert [row["name"] for row in rows(out)] == names
    for row in rows(out):
        values = case["values"][row["name"]]
        assert float(row["mean"]) == pytest.approx(np.mean(values), abs=1e-12)
        assert float(row["standard_error"]) == pytest.approx(sem(values), abs=1e-12)
        assert int(row["queries"]) == len(values)


def test_per_query_in_order_of_first_appearance(golden, tmp_path, capsys):
    data = golden["data"]["tied"]
    case = next(one for one in golden["values"] if one["convention"] == "lightgbm")
    paths = written(tmp_path, data, "qrels")
    status, out, _ = call(capsys, *paths, "--metric", "ndcg@3", "--convention", "lightgbm", "--per-query")
    assert status == 0
    found = rows(out)
    assert [row["query"] for row in found] == list(dict.fromkeys(data["query"]))
    np.testing.assert_allclose([float(row["value"]) for row in found], case["values"]["ndcg@3"], atol=1e-12)


@pytest.mark.parametrize(
    "options", [["--metric", "tau", "map"], ["--metric", "tau", "--metric", "map"], ["--metric", "tau,map"]]
)
def test_several_metrics(files, capsys, options):
    status, out, _ = call(capsys, files / "scores.csv", files / "labels.csv", *options)
    assert status == 0
    assert [row["name"] for row in rows(out)] == ["tau", "map"]
    assert float(rows(out)[1]["mean"]) == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2)


def test_two_scorers(golden, tmp_path, capsys):
    data = golden["data"]["distinct"]
    case = next(one for one in golden["values"] if one.get("by") == "ranx")
    paths = written(tmp_path, data, "qrels")
    lines = "".join(f"{q},{i},{-s!r}\n" for q, i, s in zip(data["query"], data["item"], data["score"]))
    (tmp_path / "other.csv").write_text("query,item,score\n" + lines)
    _, out, _ = call(capsys, tmp_path / "other.csv", paths[1], "--per-query")
    other = [float(row["value"]) for row in rows(out)]
    status, out, _ = call(capsys, *paths, "--against", tmp_path / "other.csv")
    (row,) = rows(out)
    judged = ttest_rel(case["values"]["ndcg@10"], other)
    bounds = judged.confidence_interval(0.95)
    assert status == 0
    assert float(row["against"]) == pytest.approx(np.mean(other))
    assert float(row["difference"]) == pytest.approx(np.mean(case["values"]["ndcg@10"]) - np.mean(other))
    assert [float(row[key]) for key in ("lower", "upper", "p_value")] == pytest.approx(
        [bounds.low, bounds.high, judged.pvalue]
    )


def test_without_a_query_all_rows_are_one(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("item,score\na,70\nb,4\nc,0.3\nd,0.2\ne,0.1\n")
    (tmp_path / "l.jsonl").write_text(
        "".join(f'{{"item":"{i}","grade":{r}}}\n' for i, r in zip("abcde", [5, 1, 0, 0, 10]))
    )
    status, out, _ = call(capsys, tmp_path / "s.csv", tmp_path / "l.jsonl", "--metric", "ndcg")
    assert status == 0
    (row,) = rows(out)
    assert float(row["mean"]) == pytest.approx(0.409738, abs=5e-7)
    assert (row["standard_error"], row["queries"]) == ("", "1")


def test_a_table_in_a_database_and_labels_that_are_hard_to_quote(tmp_path, capsys):
    items = ['say "hi"', "a,b", "line\nbreak", "'; DROP TABLE x; --", " lead", "é😀"]
    with (tmp_path / "s.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([["item", "score"], *zip(items, range(6))])
    with duckdb.connect(str(tmp_path / "l.duckdb")) as connection:
        connection.execute("CREATE TABLE judged (item TEXT, label INTEGER)")
        connection.executemany("INSERT INTO judged VALUES (?, ?)", [[item, place] for place, item in enumerate(items)])
    status, out, err = call(capsys, tmp_path / "s.csv", f"{tmp_path / 'l.duckdb'}::judged", "--metric", "tau", "ndcg")
    assert (status, err) == (0, "")
    assert [float(row["mean"]) for row in rows(out)] == [1.0, pytest.approx(1.0)]


def test_unmatched_rows_are_counted(files, capsys):
    (files / "labels.csv").write_text(LABELS.replace("q1,b,1\n", "q1,e,1\nq3,a,1\n"))
    status, out, err = call(capsys, files / "scores.csv", files / "labels.csv")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "1 of 5 rows of scores.csv have no label in labels.csv (first: query 'q1', item 'b', line 3)" in err
    assert "2 of 6 rows of labels.csv have no score in scores.csv (first: query 'q1', item 'e', line 6)" in err
    status, out, err = call(capsys, files / "scores.csv", files / "labels.csv", "--unmatched", "skip")
    assert status == 0
    assert "1 of 5 rows" in err
    assert rows(out)[0]["queries"] == "2"


def test_queries_without_a_value_are_said(files, capsys):
    (files / "labels.csv").write_text(LABELS.replace("q2,a,1", "q2,a,0"))
    status, out, err = call(capsys, files / "scores.csv", files / "labels.csv", "--metric", "tau")
    assert status == 0
    assert [(row["mean"], row["queries"]) for row in rows(out)] == [("-1", "1")]
    assert "tau: 1 of 2 queries have no value" in err


@pytest.mark.parametrize(
    ("scores", "labels", "options", "words"),
    [
        (SCORES, LABELS, ["--metric", "ndgc@10"], ["did you mean 'ndcg'"]),
        (SCORES, LABELS, ["--metric", "ndcg@0"], ["at least 1"]),
        (SCORES, LABELS, ["--master", "local"], ["--master local belongs to --engine spark"]),
        (SCORES, LABELS, ["--metric", "ndcg", "third.csv"], ["unknown metric 'third.csv'"]),
        (SCORES, LABELS, ["--convention", "sklern"], ["did you mean 'sklearn'"]),
        (SCORES, LABELS, ["--score", "points"], ["scores.csv", "no column 'points'", "'score'"]),
        (SCORES.replace("0.9", "nan"), LABELS, [], ["scores.csv", "1 of 5", "score that is not finite", "line 2"]),
        (SCORES.replace("0.8", "high"), LABELS, [], ["scores.csv", "not a number", "line 3"]),
        (SCORES.replace("0.8", ""), LABELS, [], ["scores.csv", "have no score", "line 3"]),
        (SCORES.replace("q1,b", ",b"), LABELS, [], ["scores.csv", "have no query", "line 3"]),
        (SCORES + "q1,a,3\n", LABELS, [], ["scores.csv", "repeat", "'q1'", "'a'", "line 7, as line 2"]),
        (SCORES, LABELS + "q1,a,3\n", [], ["labels.csv", "repeat", "line 7, as line 5"]),
        (SCORES, LABELS.replace("qid", "topic"), [], ["labels.csv", "no column of the query"]),
        (SCORES, LABELS.replace("label", "x"), [], ["labels.csv", "no column of the label"]),
        (SCORES, LABELS.replace("q", "p"), [], ["labels.csv", "no column of the query"]),
        (SCORES.replace("q", "p").replace("puery", "query"), LABELS, [], ["no row of scores.csv matches labels.csv"]),
        (SCORES, LABELS.replace("c,2", "c,31"), ["--convention", "lightgbm"], ["1 of 5 labels", "0 to 30"]),
        ("query,item,score\n", LABELS, [], ["scores.csv", "no rows"]),
        ("", LABELS, [], ["scores.csv", "empty"]),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, scores, labels, options, words):
    (tmp_path / "scores.csv").write_text(scores)
    (tmp_path / "labels.csv").write_text(labels)
    status, out, err = call(capsys, tmp_path / "scores.csv", tmp_path / "labels.csv", *options)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not [word for word in words if word not in err], err


def test_as_a_process(files):
    done = subprocess.run(
        [sys.executable, "-m", "concordant", "evaluate", files / "scores.csv", files / "missing.csv"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: no file ")
    assert "Traceback" not in done.stderr
