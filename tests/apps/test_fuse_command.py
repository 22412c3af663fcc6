"""``concordant rank`` of TREC runs: fused, judged by qrels, written as a run."""

import csv
import io

import click
import numpy as np
import pytest
from click.testing import CliRunner

import concordant as cc
from concordant.apps.commands.options import command_of
from running import exit_status

RUNS = {
    "a": {"q1": {"d1": 9.0, "d2": 7.5, "d3": 6.0, "d4": 1.0}, "q2": {"d1": -3.0, "d5": -4.5, "d6": -12.0}},
    "b": {"q1": {"d3": 0.91, "d1": 0.52, "d5": 0.11}, "q2": {"d6": 0.8, "d7": 0.7, "d1": 0.1}},
    "c": {"q1": {"d2": 120.0, "d6": 80.0, "d1": 35.0}, "q2": {"d5": 4.0, "d1": 3.0, "d7": 1.5}},
}
QRELS = "q1 0 d3 2\nq1 0 d9 1\nq1 0 d1 0\nq1 0 d4 1\nq2 0 d5 1\nq2 0 d8 2\nq2 0 d7 1\n"
RANX = {
    "ndcg@10": {"a": (0.4569494273838043, 0.20151514190050246), "b": (0.6387878864795979, 0.20151514190050246),
                "c": (0.0, 0.47909091485969846)},
    "map": {"a": (0.27777777777777773, 0.16666666666666666), "b": (0.3333333333333333, 0.16666666666666666),
            "c": (0.0, 0.5555555555555555)},
    "p@5": {"a": (0.4, 0.2), "b": (0.2, 0.2), "c": (0.0, 0.4)},
    "mrr": {"a": (1 / 3, 0.5), "b": (1.0, 0.5), "c": (0.0, 1.0)},
}  # fmt: skip
"""Of ranx 0.3.21 by query: evaluate(qrels, run, ["ndcg@10", "map", "precision@5", "mrr"], return_mean=False)."""


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, of in RUNS.items():
        rows = [(q, doc, at + 1, score) for q, docs in of.items() for at, (doc, score) in enumerate(docs.items())]
        (tmp_path / f"{name}.run").write_text("".join(f"{q} Q0 {doc} {at} {x} {name}\n" for q, doc, at, x in rows))
    (tmp_path / "t.qrels").write_text(QRELS)
    return tmp_path


def said(*arguments):
    """The rows on stdout and what stands on stderr."""
    found = CliRunner().invoke(command_of("rank"), list(arguments), standalone_mode=False, catch_exceptions=False)
    assert found.exit_code == 0
    return list(csv.DictReader(io.StringIO(found.stdout))), found.stderr


def scores(rows):
    return {(row["query"], row["item"]): float(row["score"]) for row in rows}


def fused(weight, **more):
    """Σ over the lists of the weight of a rank, and of what a list leaves out, by the formula."""
    total = {}
    for q in ("q1", "q2"):
        pool = sorted({doc for of in RUNS.values() for doc in of[q]})
        for of in RUNS.values():
            listed = list(of[q])  # best first
            rest = range(len(listed) + 1, len(pool) + 1)
            for doc in pool:
                places = [listed.index(doc) + 1] if doc in listed else rest if more.get("last") else []
                given = [weight(place) for place in places]
                total[q, doc] = total.get((q, doc), 0) + (sum(given) / len(given) if given else 0)
    return total


@pytest.mark.parametrize("order", ["abc", "cab"])
def test_runs_are_fused_by_rrf_with_what_is_left_out_last(order):
    names = [f"{name}.run" for name in order]
    rows, notes = said(*names)
    assert scores(rows) == pytest.approx(fused(lambda r: 1 / (60 + r), last=True), rel=1e-12)
    assert "--unranked missing gives it nothing, as published" in notes
    assert scores(said(*names, "--unranked", "last")[0]) == pytest.approx(scores(rows), rel=1e-12)
    published, notes = said(*names, "--unranked", "missing", "--k", "1")
    assert scores(published) == pytest.approx(fused(lambda r: 1 / (1 + r)), rel=1e-12)
    assert "as published" not in notes
    assert {row["lower"] for row in rows} == {""}
    bounds = said(*names, "--interval", "bootstrap", "--replicates", "200")[0]
    assert all(float(row["lower"]) <= float(row["score"]) <= float(row["upper"]) for row in bounds)


def test_scores_are_read_where_they_are_asked_for():
    names = [f"{name}.run" for name in RUNS]
    prefs = cc.read(names, kind="ratings")
    rows, _ = said(*names, "--structure", "combsum", "--normalise", "z-score")
    board = cc.rank(prefs, "combsum", normalise="z-score", interval="none").to_arrow().to_pydict()
    expected = dict(zip(zip(board["query"], board["item"], strict=True), board["score"], strict=True))
    assert scores(rows) == expected
    borda = scores(said(*names, "--structure", "borda")[0])
    assert borda == scores(said(*names, "--structure", "borda", "--unranked", "last")[0])


def test_runs_are_judged_as_ranx_does():
    rows, notes = said("a.run", "b.run", "c.run", "--qrels", "t.qrels", "--metric", ",".join(RANX), "-o", "out.run")
    assert [row["run"] for row in rows] == ["fused", "a", "b", "c"] * 4
    for row in rows:
        if row["run"] != "fused":
            values = RANX[row["name"]][row["run"]]
            assert float(row["mean"]) == pytest.approx(np.mean(values), rel=1e-12)
            assert float(row["standard_error"]) == pytest.approx(np.std(values, ddof=1) / np.sqrt(2), rel=1e-12)
            whole = next(other for other in rows if other["name"] == row["name"] and other["run"] == "fused")
            gain = float(whole["mean"]) - float(row["mean"])
            assert float(row["difference"]) == pytest.approx(gain, abs=1e-15)
    again, _ = said("out.run", "--qrels", "t.qrels", "--metric", ",".join(RANX))  # as any system's run
    assert [row["mean"] for row in again[1::2]] == [row["mean"] for row in rows[::4]]
    assert "wrote out.run: 10 rows" in notes


def test_a_run_is_evaluated_as_ranx_does(runs):
    for name in RUNS:
        found = evaluated(f"{name}.run", "t.qrels", "--convention", "trec")
        for row in csv.DictReader(io.StringIO(found.stdout)):
            assert float(row["mean"]) == pytest.approx(np.mean(RANX[row["name"]][name]), rel=1e-12)
            assert row["queries"] == "2"
        assert "so it is not relevant" in found.stderr and "so it is not retrieved" in found.stderr
    (runs / "t.qrels").write_text(QRELS + "q5 0 d1 1\n")
    (runs / "a.run").write_text((runs / "a.run").read_text() + "q9 Q0 x 1 1 a\n")
    found = evaluated("a.run", "t.qrels", "--convention", "trec")
    said = ("of a.run that t.qrels lacks", "of t.qrels that a.run lacks")
    assert all(f"left out: 1 query {which}" in found.stderr for which in said)
    assert {row["queries"] for row in csv.DictReader(io.StringIO(found.stdout))} == {"2"}
    with pytest.raises(click.UsageError, match=r"have no label in t\.qrels"):
        evaluated("a.run", "t.qrels", "--unmatched", "raise")


def evaluated(*arguments):
    """What ``evaluate`` says, by the metrics of ranx."""
    asked = [*arguments, "--metric", ",".join(RANX)]
    return CliRunner().invoke(command_of("evaluate"), asked, standalone_mode=False, catch_exceptions=False)


def test_a_query_that_a_run_lacks_counts_nothing_and_others_are_left_out(runs):
    (runs / "a.run").write_text("q1 Q0 d3 1 1 a\nq9 Q0 x 1 1 a\n")
    (runs / "b.run").write_text("q2 Q0 d8 1 1 b\n")
    (runs / "t.qrels").write_text(QRELS + "q5 0 d1 1\n")
    rows, notes = said("a.run", "b.run", "--qrels", "t.qrels", "--metric", "mrr")
    assert [(row["run"], float(row["mean"]), row["queries"]) for row in rows] == [
        ("fused", 1.0, "2"),
        ("a", 0.5, "2"),
        ("b", 0.5, "2"),
    ]
    assert "left out: 1 query of t.qrels without a run" in notes
    assert "left out: 1 query of the runs without labels" in notes
    assert "lack some of the 3 queries that others have" in notes


def test_a_run_that_was_written_is_the_ranking(runs):
    said("a.run", "b.run", "-o", "fused.run")
    lines = [line.split(" ") for line in (runs / "fused.run").read_text().splitlines()]
    assert lines[0][:4] == ["q1", "Q0", "d1", "1"]
    assert {line[5] for line in lines} == {"rrf"}
    assert [int(line[3]) for line in lines] == [*range(1, 6), *range(1, 5)]
    rows, _ = said("a.run", "b.run")
    assert {(line[0], line[2]): float(line[4]) for line in lines} == scores(rows)
    (runs / "votes.csv").write_text("winner,loser\nx,y\ny,z\n")
    said("votes.csv", "-o", "votes.run")
    assert (runs / "votes.run").read_text().startswith("all Q0 x 1 ")


BAD = {
    "no metric of the top": (
        ["a.run", "--qrels", "t.qrels", "--metric", "auc"],
        "--metric auc: runs are judged by what",
    ),
    "no metric": (["a.run", "--qrels", "t.qrels", "--metric", "x"], "unknown metric 'x'"),
    "metric without labels": (["a.run", "--metric", "map"], "--metric does nothing here: it is for --qrels"),
    "labels of no run": (
        ["votes.csv", "--qrels", "t.qrels"],
        "--qrels judges runs that are fused, and votes.csv is none",
    ),
    "labels of other queries": (["a.run", "--qrels", "other.qrels"], "other.qrels has no query of the runs; its first"),
    "several logs": (
        ["votes.csv", "a.run"],
        "the files of a log have one format, these have 2 (csv: 'votes.csv'; run: 'a.run')",
    ),
    "a run and a log": (["a.run", "votes.csv"], "the files of a log have one format, these have 2"),
    "k of another structure": (["a.run", "--structure", "borda", "--k", "2"], "borda has no option 'k'; it has none"),
    "normalised ranks": (["a.run", "--normalise", "z-score"], "rrf has no option 'normalise'; its options are k"),
    "a negative k": (["a.run", "--k", "-1"], "k is added to the ranks and must be a number ≥ 0, not -1.0"),
    "orders that are asked for": (
        ["a.run", "--structure", "combsum", "--kind", "orders"],
        "combsum reads ratings, not orders",
    ),
    "an output that is a run": (["a.run", "b.run", "-o", "b.run"], "--output b.run is the log itself"),
    "components": (["parts.csv", "-o", "x.run"], "a run has one order for a query, and some items here were never"),
    "white space": (["space.csv", "-o", "x.run"], "fields of a run hold no white space, as 'a b' does"),
    "intervals of none": (["a.run", "--level", "0.9"], "--level"),
    "Spark": (["a.run", "--engine", "spark"], "runs are read on one machine"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_refused(runs, what, capfd):
    (runs / "votes.csv").write_text("winner,loser\nx,y\n")
    (runs / "parts.csv").write_text("winner,loser\nx,y\nz,w\n")
    (runs / "space.csv").write_text("winner,loser\na b,y\ny,a b\n")
    (runs / "other.qrels").write_text("z 0 d 1\n")
    before = sorted(path.name for path in runs.iterdir())
    arguments, says = BAD[what]
    assert exit_status("rank", *arguments) == 2
    out, err = capfd.readouterr()
    assert not out
    assert says in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in runs.iterdir()) == before
