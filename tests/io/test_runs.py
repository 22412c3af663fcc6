"""TREC runs: the order of trec_eval, ties, several files, and what is refused."""

import gzip
import random

import numpy as np
import pytest

import concordant as cc
from concordant.io.read import read_as_made, read_log

A = "q1 Q0 d1 1 9.0 a\nq1 Q0 d2 2 7.5 a\nq2 Q0 d1 1 -3 a\nq2 Q0 d5 2 -4.5e0 a\n"
B = "q1 Q0 d3 1 0.91 b\nq1 Q0 d1 2 .52 b\nq2 Q0 d7 1 0.7 b\n"


def lists(prefs):
    """Each list's items, best first, by query."""
    found = []
    for j in range(prefs.distinct):
        own = slice(prefs.list_start[j], prefs.list_start[j + 1])
        order = np.argsort(prefs.list_value[own], kind="stable")
        items = [prefs.items[int(code)] for code in prefs.list_item[own][order]]
        found.append((prefs.queries[int(prefs.query[j])], tuple(items)))
    return sorted(found)


def put(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.run").write_text(text)
    return [folder / f"{name}.run" for name in texts]


def test_several_runs_are_one_log_and_what_one_leaves_out_is_last(tmp_path):
    paths = put(tmp_path, a=A, b=B)
    made = read_as_made(paths).preferences
    assert lists(made) == [("q1", ("d1", "d2")), ("q1", ("d3", "d1")), ("q2", ("d1", "d5")), ("q2", ("d7",))]
    assert cc.read(paths) == cc.read(paths, unranked="last") == cc.read(paths[::-1])
    assert cc.read(paths).lists.sizes.tolist() == [3] * 4
    assert cc.read(paths, unranked="missing") == made
    assert cc.read(paths, engine="duckdb") == cc.read(paths)
    assert cc.read(paths[0]).distinct == 2
    assert not read_log(paths).notes


def test_scores_are_ratings(tmp_path):
    paths = put(tmp_path, a=A, b=B)
    expected = cc.Preferences.from_ratings(
        ["q1"] * 4 + ["q2"] * 3,
        ["d1", "d2", "d3", "d1", "d1", "d5", "d7"],
        [9, 7.5, 0.91, 0.52, -3, -4.5, 0.7],
        ["a", "a", "b", "b", "a", "a", "b"],
    )
    assert cc.read(paths, kind="ratings") == expected


def by_trec_eval(rows):
    """Score in single precision descending, then document descending, as bytes."""
    order = sorted(rows, key=lambda row: row[0].encode(), reverse=True)
    return tuple(doc for doc, _ in sorted(order, key=lambda row: -np.float32(row[1])))


@pytest.mark.parametrize("number", range(10))
def test_ties_fall_as_in_trec_eval_whatever_the_ranks_say(tmp_path, number):
    draw = random.Random(number)
    docs = draw.sample(["d1", "d10", "d2", "é", "z", "D", "d\U0001f600", "d\uff5e", "3", "~"], 8)
    scores = [draw.choice(["1", "1.0", "1.00000000001", "0.5", "2", "-1e3"]) for _ in docs]
    lines = [f"q Q0 {doc} {draw.randrange(9)} {score} t\n" for doc, score in zip(docs, scores, strict=True)]
    (path,) = put(tmp_path, r="".join(lines))
    expected = by_trec_eval([(doc, float(score)) for doc, score in zip(docs, scores, strict=True)])
    assert lists(read_as_made(path).preferences) == [("q", expected)]


def test_rows_may_stand_in_any_order_and_form(tmp_path):
    plain = put(tmp_path, a=A)[0]
    lines = A.splitlines()
    forms = {
        "shuffled": "\n".join([lines[3], lines[0], lines[2], lines[1]]),
        "tabs": A.replace(" ", "\t"),
        "spaces": A.replace(" ", "   ").replace("\n", " \r\n\n"),
        "marked": "\ufeff" + A,
        "no ranks": A.replace(" 1 ", " - "),
    }
    for name, text in forms.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text, encoding="utf-8", newline="")
        assert cc.read(path) == cc.read(plain), name
    zipped = tmp_path / "a.run.gz"
    zipped.write_bytes(gzip.compress(A.encode()))
    assert cc.read(zipped) == cc.read(plain)


def test_ranks_that_say_another_order_are_noted(tmp_path):
    (path,) = put(tmp_path, a=A.replace("d1 1 9.0", "d1 7 9.0"))
    assert lists(read_as_made(path).preferences) == lists(read_as_made(put(tmp_path, b=A)[0]).preferences)
    assert [note.code for note in cc.read(path).notes] == ["ranks against scores"]
    assert "in 1 of 2 lists the column of ranks says another order" in cc.read(path).notes[0]


def test_runs_that_lack_queries_are_noted(tmp_path):
    notes = cc.read(put(tmp_path, a=A, b=B.replace("q2", "q1"))).notes
    assert [note.code for note in notes] == ["runs lack queries"]
    assert notes[0].endswith("run 'b' lacks some of the 2 queries that others have")


def test_a_line_is_named_after_rows_were_brought_together(tmp_path):
    (path,) = put(tmp_path, a="q Q0 x 2 1 t\nq Q0 y 1 2 t\n\nq Q0 x 3 0.5 t\n")
    with pytest.raises(cc.InputError, match=r"a.run: 1 of 1 rankings hold an item twice \(line [14]: 'x'\)"):
        cc.read(path)
    paths = put(tmp_path, a=A, b=B + "q2 Q0 d7 2 0.6 b\n")
    with pytest.raises(cc.InputError, match=r"1 of 4 rankings hold an item twice \(b.run line [34]: 'd7'\)"):
        cc.read(paths)


def test_what_cannot_be_told_apart_is_refused(tmp_path):
    a, b = put(tmp_path, a=A, b=A)
    with pytest.raises(cc.InputError, match=r"b.run: tag 'a' stands in a.run, too, for query 'q1'; the sixth column"):
        cc.read([a, b])
    with pytest.raises(cc.UsageError, match="is named twice; each counts once"):
        cc.read([a, str(a)])
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\nx,y\n")
    with pytest.raises(cc.InputError, match=r"have one format, these have 2 \(csv: 'votes.csv'; run: 'a.run'\)"):
        cc.read([a, votes])
    with pytest.raises(cc.UsageError, match="none is named"):
        cc.read([])
    other = put(tmp_path, c=A.replace("q1", "q3").replace("q2", "q4"))[0]
    assert len(cc.read([a, other]).queries) == 4  # one run in two files
