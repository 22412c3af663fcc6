"""Graded preferences of two sides: what the scale says, what is refused, and what the command asks."""

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.preferences.layouts import Scale
from running import exit_status

LOG = {
    "response1": ["a", "a", "b", "a", "c", "c"],
    "response2": ["b", "b", "c", "c", "a", "b"],
    "overall_preference": [-3, 1, 0, -2, 2, -1],
}
SIDES = {"left": "response1", "right": "response2"}
WORDS = "A>>B, A>B, A=B, B>A, B>>A"


def rows(prefs):
    weight = np.ones(prefs.distinct) if prefs.weight is None else prefs.weight
    tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    names = prefs.items.tolist()
    return sorted(
        (names[one], names[other], float(s), bool(t), int(n))
        for one, other, s, t, n in zip(prefs.winner, prefs.loser, weight, tie, prefs.count, strict=True)
    )


def spelled(winner, loser, strength, tie):
    return cc.Preferences.from_comparisons(winner, loser, weight=strength, tie=tie)


EXPECTED = spelled(list("abbaac"), list("bacccb"), [3, 1, 1, 2, 2, 1], [False, False, True, False, False, False])


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "table", "text"])
def test_minus_3_is_much_better_for_the_first_as_the_scale_says(tmp_path, engine, form):
    """As in HelpSteer3: −3, response 1 is much better, 3, response 2 is."""
    log = LOG
    if form == "csv":
        log = tmp_path / "g.csv"
        log.write_text("\n".join([",".join(LOG), *(",".join(map(str, r)) for r in zip(*LOG.values(), strict=True))]))
    elif form == "jsonl":
        pa_rows = pa.table(LOG).to_pylist()
        log = tmp_path / "g.jsonl"
        log.write_text("\n".join(str(row).replace("'", '"') for row in pa_rows))
    elif form == "text":
        log = {**LOG, "overall_preference": ["-3", "+1.0", "0", " -2", "2e0", "-1"]}
    columns = {**SIDES, "scale": "-3:3"}
    found = cc.read(log, columns=columns, engine=engine)
    assert rows(found) == rows(cc.read(LOG, columns={**columns, "grade": "overall_preference"})) == rows(EXPECTED)


def test_the_other_way_round_and_a_scale_from_1_to_7():
    turned = cc.read({**LOG, "overall_preference": [3, -1, 0, 2, -2, 1]}, columns={**SIDES, "scale": "3:-3"})
    assert rows(turned) == rows(EXPECTED)
    likert = cc.read({**LOG, "overall_preference": [1, 5, 4, 2, 6, 3]}, columns={**SIDES, "scale": "1:7"})
    assert rows(likert) == rows(EXPECTED)
    assert rows(cc.read({**LOG, "overall_preference": [7, 3, 4, 6, 2, 5]}, columns={**SIDES, "scale": "7:1"})) == rows(
        EXPECTED
    )


def test_an_even_number_of_grades_has_no_tie():
    log = {"left": ["a"] * 4, "right": ["b"] * 4, "g": [1, 2, 3, 4]}
    found = rows(cc.read(log, columns={"grade": "g", "scale": "1:4"}))
    assert found == [(*pair, strength, False, 1) for pair in ("ab", "ba") for strength in (1.0, 2.0)]


def test_grades_in_words():
    log = {"left": ["a", "b", "a"], "right": ["b", "c", "c"], "label": ["A>>B", " a=b ", "B>A"]}
    found = cc.read(log, columns={"grade": "label", "scale": WORDS})
    assert rows(found) == [("a", "b", 2.0, False, 1), ("b", "c", 1.0, True, 1), ("c", "a", 1.0, False, 1)]
    likert = "A is much better,A is better,About the  same,B is better,B is much better"
    log["label"] = ["a is MUCH better", "about the same", "B is better"]
    assert rows(cc.read(log, columns={"grade": "label", "scale": likert})) == rows(found)


def test_a_count_stands_beside_a_grade_and_a_weight_does_not():
    log = {"left": ["a"], "right": ["b"], "g": [2], "count": [7]}
    assert rows(cc.read(log, columns={"grade": "g", "scale": "2:-2"})) == [("a", "b", 2.0, False, 7)]
    with pytest.raises(cc.UsageError, match="a grade or a weight, not both"):
        cc.read({**log, "weight": [1.5]}, columns={"grade": "g", "scale": "2:-2"})


@pytest.mark.parametrize(
    ("grade", "said"),
    [
        (["x", "1"], r"1 of 2 rows have a grade that is not a number .*'x'.* The scale has the grades -3 to 3"),
        (["1e400", "1"], "1 of 2 rows have a grade that is not finite"),
        ([float("nan"), 1.0], "have a grade that is not finite"),
        ([None, 1], "1 of 2 rows have no grade"),
        ([0.5, 1.0], r"1 of 2 rows have a grade that is not on the scale \(row 1: 0.5\)"),
        ([4, -4], "2 of 2 rows have a grade that is not on the scale"),
        (["", "1"], "1 of 2 rows have no grade|1 of 2 rows have a grade that is not a number"),
        ([True, False], "2 of 2 rows have a grade that is not a number"),
    ],
)
def test_what_is_no_grade_is_refused(grade, said):
    log = {"left": ["a", "b"], "right": ["b", "a"], "g": grade}
    with pytest.raises(cc.InputError, match=said):
        cc.read(log, columns={"grade": "g", "scale": "-3:3"})
    if grade[1] is not False and grade != [4, -4]:
        assert len(cc.read(log, columns={"grade": "g", "scale": "-3:3"}, on_error="skip")) == 1


@pytest.mark.parametrize(
    "scale", ["-3:2", "3:-2", "1:1", "", ":", "a", "a,a", "a,,b", "0:101", "x:3", "1.5:3", "-1,1,0"]
)
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(cc.UsageError, match="scale"):
        Scale.of(scale)
    with pytest.raises(cc.UsageError, match="scale"):
        cc.read(LOG, columns={**SIDES, "scale": scale})


def test_grades_beside_an_outcome_are_named():
    log = {"left": ["a", "b"], "right": ["b", "a"], "winner": ["left", "right"], "overall_preference": [-1, 2]}
    assert [note.code for note in cc.read(log).notes] == ["unused grades"]
    assert not [
        note
        for note in cc.read(log, columns={"weight": "overall_preference"}, on_error="skip").notes
        if "grades" in note
    ]


def test_all_zeros_are_all_ties_under_either_reading():
    votes = cc.read({**LOG, "overall_preference": [0] * 6}, columns={**SIDES, "scale": "-3:3"})
    for ties in ("half", "cumulative"):
        assert (cc.rank(votes, ties=ties).score == 0).all()


def test_a_scale_without_a_column_of_grades_and_grades_without_a_scale_are_refused():
    with pytest.raises(cc.UsageError, match=r"it is not said which side they prefer.*'response1'.*'-3:3'"):
        cc.read(LOG, columns=SIDES)
    with pytest.raises(cc.UsageError, match="scale does nothing here"):
        cc.read({"winner": ["a"], "loser": ["b"]}, columns={"scale": "-3:3"})
    with pytest.raises(cc.UsageError, match="scale does nothing here"):
        cc.read({"a": [1], "b": [2]}, kind="orders", columns={"items": "all", "scale": "-3:3"})
    with pytest.raises(cc.UsageError, match="a scale is a text"):
        cc.read(LOG, columns={**SIDES, "scale": 3})
    with pytest.raises(cc.InputError, match="read with a scale"):
        cc.read({"left": ["a"], "right": ["b"], "label": ["A>>B"]})


def test_the_command_asks_which_reading_is_meant(tmp_path, capfd):
    path = tmp_path / "g.csv"
    path.write_text("\n".join([",".join(LOG), *(",".join(map(str, r)) for r in zip(*LOG.values(), strict=True))]))

    def run(*arguments):
        status = exit_status(*arguments)
        return (status, *capfd.readouterr())

    sides = ["--left", "response1", "--right", "response2"]
    status, _, said = run("rank", path, *sides)
    assert status == 2
    assert "--scale -3:3, --scale 7:1 or" in said
    scale = [*sides, "--scale", "-3:3"]
    status, _, said = run("rank", path, *scale)
    assert status == 2
    assert "(--ties half:" in said
    assert "(--ties cumulative)" in said
    strengths, ordered = (run("rank", path, *scale, "--ties", how) for how in ("half", "cumulative"))
    assert strengths[0] == ordered[0] == 0
    assert strengths[1] != ordered[1]
    assert "from 'response1' (-3) to 'response2' (3)" in ordered[2]
    assert run("rank", path, *scale, "--structure", "borda")[0] == 0
    board, more = tmp_path / "board.csv", tmp_path / "more.csv"
    asked = ["--ties", "cumulative", "-o", board, "--coefficients", more, "--statistics"]
    status, _, said = run("rank", path, *scale, *asked)
    assert status == 0
    assert more.read_text().splitlines()[1].startswith("all,threshold 0|1,threshold 0|1,")
    assert "threshold 0|1" in said
    status, out, _ = run("evaluate", board, path, *scale, "--coefficients", more)
    assert status == 0
    known = cc.read(path, columns={**SIDES, "scale": "-3:3"})
    loss = {row["name"]: row["mean"] for row in cc.rank(known, ties="cumulative").evaluate(known).table.to_pylist()}
    assert f"log-loss,{loss['log-loss']}"[:20] in out


def test_grades_do_not_fade(tmp_path, capfd):
    path = tmp_path / "g.csv"
    path.write_text("left,right,overall_preference,date\na,b,-1,2026-01-01\nb,a,1,2026-01-09\na,b,1,2026-01-30\n")
    asked = ["--scale", "-1:1", "--time", "date", "--half-life", "5d"]
    assert exit_status("rank", path, *asked, "--ties", "cumulative") == 2
    assert "--half-life makes strengths fade" in capfd.readouterr().err
    assert exit_status("rank", path, *asked, "--ties", "half") == 0
