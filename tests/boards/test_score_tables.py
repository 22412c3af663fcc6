"""Tables of scores as they are found: long and wide, either way round, with what is no score beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.io.score_tables import scores_of

CELLS = {("a", "x"): 1.5, ("a", "y"): None, ("b", "x"): 2.0, ("b", "y"): -3.0}


def cells(table: pa.Table) -> dict[Any, Any]:
    return {(row["system"], row["task"]): row["score"] for row in table.to_pylist()}


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


LONG = "model,dataset,accuracy\na,x,1.5\na,y,\nb,x,2.0\nb,y,-3\n"
WIDE = "method,x,y\na,1.5,n/a\nb,2,-3\n"
TURNED = "Dataset,a,b\nx,1.5,2\ny,–,-3\n"


@pytest.mark.parametrize(("name", "text"), [("l.csv", LONG), ("l.csv.gz", LONG), ("w.csv", WIDE), ("t.csv", TURNED)])
def test_text_files_of_every_layout_are_one_table(tmp_path: Path, name: str, text: str) -> None:
    assert cells(cc.read_scores(written(tmp_path, name, text))) == CELLS
    assert cells(cc.read_scores(written(tmp_path, name.replace("csv", "tsv"), text.replace(",", "\t")))) == CELLS


def test_other_formats_are_the_same_table(tmp_path: Path) -> None:
    rows = [{"system": s, "task": t, "score": v} for (s, t), v in CELLS.items()]
    assert cells(cc.read_scores(written(tmp_path, "l.jsonl", "\n".join(map(json.dumps, rows))))) == CELLS
    assert cells(cc.read_scores(written(tmp_path, "l.json", json.dumps(rows)))) == CELLS
    wide = pa.table({"name": ["a", "b"], "x": [1.5, 2.0], "y": [None, -3.0]})
    pa.parquet.write_table(wide, tmp_path / "w.parquet")
    assert cells(cc.read_scores(tmp_path / "w.parquet")) == CELLS
    assert cells(cc.read_scores(wide)) == cells(cc.read_scores(wide.to_pandas())) == CELLS


def test_a_table_that_does_not_say_which_way_round_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, "w.csv", WIDE.replace("method", "what"))
    table, notes = scores_of(file)
    assert cells(table) == CELLS and "rows are read as systems" in str(notes[-1]) and "tasks-by-systems" in notes[-1]
    turned, notes = scores_of(file, layout="tasks-by-systems")
    assert cells(turned) == {(t, s): v for (s, t), v in CELLS.items()} and "rows are read as tasks" in str(notes[-1])


def test_a_score_may_have_any_name_where_rows_name_system_and_task(tmp_path: Path) -> None:
    rows = "arm,query,fold,ndcg\na,1,0,.5\na,2,0,.6\nb,1,1,.7\nb,2,1,.8\n"
    table, notes = scores_of(written(tmp_path, "l.csv", rows))
    assert cells(table) == {("a", "1"): 0.5, ("a", "2"): 0.6, ("b", "1"): 0.7, ("b", "2"): 0.8}
    assert table["trial"].to_pylist() == ["0", "0", "1", "1"] and "score: ndcg" in notes[0]
    several = rows.replace(",ndcg", ",ndcg,mrr,seconds_std").replace("\n", ",1,2\n").replace("std,1,2", "std")
    with pytest.raises(UsageError, match="which column is the score\\? 'ndcg', 'mrr'"):
        scores_of(written(tmp_path, "s.csv", several))
    named, _ = scores_of(tmp_path / "s.csv", columns={"score": "ndcg"})
    assert cells(named) == cells(table)
    wide = "name,test,x\na,1.5,2\nb,2,-3\n"  # a column that is called as tasks are, in a row for each system
    assert cells(scores_of(written(tmp_path, "w.csv", wide))[0])["a", "test"] == 1.5


def test_one_system_compares_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, "one.csv", "dataset,accuracy,time\nx,.5,3\ny,.6,4\n")
    with pytest.raises(
        UsageError, match="each row is a task \\('dataset'\\), and 'accuracy' is a score, of one system"
    ):
        scores_of(file)
    assert {row["system"] for row in scores_of(file, tasks=["accuracy", "time"])[0].to_pylist()} == {"accuracy", "time"}


def test_columns_that_are_no_scores_are_left_out_and_said(tmp_path: Path) -> None:
    text = "Model,Average ⬆️,#Params (B),Hub License,x,FLOPs (1E21),y\na,9,7,mit,50%,3,\nb,8,13,,70%,4,-3%\n"
    file = written(tmp_path, "b.csv", text)
    table, notes = scores_of(file)
    assert cells(table) == {("a", "x"): 50, ("b", "x"): 70, ("a", "y"): None, ("b", "y"): -3}
    said = "\n".join(map(str, notes))
    assert "'Hub License' (they hold no numbers)" in said and "percent signs are taken off in 'x', 'y'" in said
    assert "'Average ⬆️', '#Params (B)', 'FLOPs (1E21)' (by their names" in said
    board = cc.rank_scores(cc.read_scores(file))  # the notes come along
    assert any("Hub License" in note for note in board.notes)
    assert cells(cc.read_scores(file, tasks=["Average ⬆️"])) == {("a", "Average ⬆️"): 9, ("b", "Average ⬆️"): 8}


def test_truth_is_a_score(tmp_path: Path) -> None:
    text = "model,task,result\na,x,True\nb,x,false\n"
    assert cells(cc.read_scores(written(tmp_path, "l.csv", text))) == {("a", "x"): 1.0, ("b", "x"): 0.0}
    assert cells(cc.read_scores({"model": ["a", "b"], "x": [True, False]})) == {("a", "x"): 1.0, ("b", "x"): 0.0}


def test_one_metric_is_chosen(tmp_path: Path) -> None:
    text = "model,dataset,metric,value\na,x,acc,1\nb,x,acc,2\na,x,f1,3\nb,x,f1,4\n"
    file = written(tmp_path, "m.csv", text)
    assert cells(cc.read_scores(file, metric="f1")) == {("a", "x"): 3, ("b", "x"): 4}
    with pytest.raises(UsageError, match="2 metrics"):
        cc.read_scores(file)
    with pytest.raises(UsageError, match="no metric 'f2'"):
        cc.read_scores(file, metric="f2")


def test_trials_weights_and_clusters_come_along(tmp_path: Path) -> None:
    text = "system,task,score,seed,weight,family\na,x,1,0,2,u\na,x,3,1,2,u\nb,x,2,0,2,u\n"
    table = cc.read_scores(written(tmp_path, "l.csv", text), columns={"cluster": "family"})
    assert table.column_names == ["system", "task", "score", "trial", "weight", "cluster"]
    wide = "dataset,a,b,kind\nx,1,2,u\ny,3,4,v\n"
    table = cc.read_scores(written(tmp_path, "t.csv", wide), columns={"cluster": "kind"})
    assert {(row["task"], row["cluster"]) for row in table.to_pylist()} == {("x", "u"), ("y", "v")}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("model,x\na,1\nb,1.2.3\n", {}, "1 of 2 cells of 'x' are no numbers (first: row 2: '1.2.3')"),
        (LONG.replace("1.5", "fine"), {}, "'accuracy' are no numbers (first: row 1: 'fine')"),
        ("a,b\nc,d\n", {}, "no column of scores"),
        (WIDE, {"layout": "long"}, "no column of the 'task', 'score'"),
        (WIDE, {"layout": "round"}, "unknown layout 'round'"),
        (WIDE, {"metric": "acc"}, "none holds metrics"),
        (WIDE, {"tasks": ["z"]}, "no column 'z'"),
        (WIDE, {"columns": {"score": "x"}}, "no column of the 'task' is found"),
        (WIDE, {"columns": {"system": "nobody"}}, "no column 'nobody'"),
        (WIDE, {"columns": {"sytem": "x"}}, "no column of scores can be the 'sytem'"),
        (WIDE, {"columns": {"weight": "x"}}, "belong to tasks"),
        (LONG, {"tasks": ["x"]}, "a row is a score here"),
        ("model,x\na,1\n,2\n", {}, "rows have no name in the column 'model'"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, text: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError)) as refused:
        cc.read_scores(written(tmp_path, "f.csv", text), **options)
    assert said in str(refused.value)
