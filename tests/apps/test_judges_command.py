"""``concordant judges``: who judged, how people and a judge model come together, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from test_command import call

from concordant.preferences.notes import Note
from seeds import seed

ITEMS = ["tea", "coffee", "milk", "juice"]
ARENA = Path(__file__).resolve().parents[3] / "shared" / "data" / "arena_judges"


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


@pytest.fixture
def votes(tmp_path):
    """Eight people on 30 prompts; the first votes by a coin, the last prefers what stands first, the seventh length."""
    random, rows = np.random.default_rng(seed(0)), []
    for prompt in range(30):
        for person in range(8):
            for _ in range(4):
                left, right = random.choice(4, 2, replace=False)
                long = random.integers(5, 60, 2)
                margin = 0.0 if person == 0 else 1.2 * (right - left)
                margin += 1.5 * (person == 7) + 3.0 * (person == 6) * (long[0] - long[1]) / long.sum()
                won = "left" if random.random() < expit(margin) else "right"
                rows.append((prompt, f"p{person}", ITEMS[left], ITEMS[right], won, "x" * long[0], "y" * long[1]))
    names = ("prompt", "worker", "left", "right", "winner", "response_a", "response_b")
    return write(tmp_path / "votes.csv", names, rows)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_judges_without_an_option(votes, tmp_path, capsys):
    status, out, err = call(capsys, "judges", votes)
    rows = {row["judge"]: row for row in table(out)}
    assert status == 0 and len(rows) == 8 and "1 judge votes rather by a coin than not: 'p0'" in err
    assert float(rows["p0"]["weight"]) < 0.2 < 0.7 < float(rows["p1"]["weight"])
    assert float(rows["p7"]["first_lower"]) > 0.55 and float(rows["p6"]["length_lower"]) > 0.5
    assert "same pair where 'prompt' is the same, too (--query names another column)" in err
    assert "length: that of 'response_a' less that of 'response_b'" in err and "Krippendorff's α = " in err
    assert "--cluster" not in err
    ranking, per_vote, judges = (str(tmp_path / name) for name in ("r.csv", "v.csv", "j.json"))
    status, out, err = call(
        capsys, "judges", votes, "--judge", "worker", "--ranking", ranking, "--per-vote", per_vote, "-o", judges
    )
    assert status == 0 and not out and len(json.loads(Path(judges).read_text())) == 8
    assert [row["item"] for row in table(Path(ranking).read_text())] == ITEMS
    each = table(Path(per_vote).read_text())
    assert sum(int(row["count"]) for row in each) == 30 * 8 * 4 and {"same", "others", "weight"} <= {*each[0]}


def test_pooled_or_not_votes_agree_on_a_pair_of_one_prompt(tmp_path, capsys):
    """α, its interval and agreement beside what plain Python counts over units of prompt and pair."""
    random, rows = np.random.default_rng(seed(3)), []
    for prompt in range(40):
        left, right = random.choice(4, 2, replace=False)
        rows += [
            (f"p{prompt}", f"j{judge}", ITEMS[left], ITEMS[right], random.choice(["model_a", "model_b", "tie"]))
            for judge in range(3)
        ]
    log = write(tmp_path / "v.csv", ("prompt", "judge", "model_a", "model_b", "winner"), rows)
    units, same = {}, {f"j{judge}": [] for judge in range(3)}
    for prompt, judge, left, right, won in rows:
        name = {"model_a": left, "model_b": right, "tie": "tie"}[won]
        units.setdefault((prompt, *sorted((left, right))), []).append((judge, name))
    disagree, sides, of = 0.0, {"first": 0, "second": 0, "tie": 0}, 0
    for (_, low, _), unit in units.items():
        for judge, name in unit:
            others = [other for who, other in unit if who != judge]
            same[judge].append(sum(other == name for other in others) / len(others))
            disagree += 2 * sum(other != name for other in others) / len(others)
            for side in ("tie",) * 2 if name == "tie" else ("first", "second") if name == low else ("second", "first"):
                sides[side] += 1
            of += 2
    expected = sum(number * (of - number) for number in sides.values()) / (of - 1)
    alpha = 1 - disagree / expected
    found = []
    for asked in ([], ["--pool"], ["--no-pool"]):
        status, out, err = call(capsys, "judges", log, "--judge", "judge", *asked)
        assert status == 0 and "same pair where 'prompt' is the same, too" in err and "40 queries" in err
        found.append(next(line for line in err.splitlines() if "Krippendorff" in line))
        assert f"α = {alpha:.2f} (" in found[-1]
        table_ = {row["judge"]: float(row["agreement"]) for row in table(out)}
        assert table_ == pytest.approx({judge: np.mean(shares) for judge, shares in same.items()})
        one = "the judges are measured by one scale over all" in err
        assert one == (asked != ["--no-pool"]) and ("(--no-pool: one for each)" in err) == (not asked)
    assert len({*found}) == 1
    for asked, number in ((["--pool"], 4), (["--no-pool"], 80), ([], 4)):
        assert call(capsys, "judges", log, *asked, "--ranking", str(tmp_path / "r.csv"))[0] == 0
        assert len(table((tmp_path / "r.csv").read_text())) == number


def test_what_is_refused(votes, tmp_path, capsys):
    plain = write(tmp_path / "plain.csv", ("winner", "loser"), [("a", "b"), ("b", "a")])
    two = write(tmp_path / "two.csv", ("winner", "loser", "worker", "rater"), [("a", "b", 1, 2), ("b", "a", 2, 1)])
    for asked, wanted in (
        ([plain], "which column says who judged? its columns are 'winner', 'loser' (--judge names it)"),
        ([two], "'worker', 'rater' are called so"),
        ([votes, "--judge", "wroker"], "no column 'wroker'"),
        ([votes, "--match", "prompt"], "--match does nothing here: it is about a judge model"),
        ([votes, "--these"], "add --model-judge FILE"),
        ([votes, "--model-judge", votes, "--ranking", "r.csv"], "people are not told apart"),
        ([votes, "--ranking", "x.csv", "-o", "x.csv"], "--output and --ranking both name x.csv"),
        ([votes, "--engine", "spark"], "leave out --engine spark"),
        ([two, "--judge", "worker", "--length", "winner", "loser"], "leave out --length"),
        ([plain, "--model-judge", votes], "name it by --match"),
    ):
        status, out, err = call(capsys, "judges", *asked)
        assert status == 2 and not out and wanted in err, err
        assert err.count("error: ") == 1 and "Traceback" not in err


def test_votes_that_the_side_decides_are_ranked_without_it(tmp_path, capsys):
    log = write(
        tmp_path / "l.csv", ("judge", "left", "right", "winner"), [(f"j{i % 3}", "a", "b", "left") for i in range(30)]
    )
    status, _, err = call(capsys, "judges", log, "--ranking", str(tmp_path / "r.csv"))
    assert status == 0 and "the ranking leaves out what judges prefer beside the items" in err
    assert table((tmp_path / "r.csv").read_text())[0]["item"] == "a"
    for column, role in (("winner", "outcome"), ("left", "left")):
        status, _, err = call(capsys, "judges", log, "--judge", column)
        assert status == 2 and f"the column {column!r} is read as the {role}" in err


def test_people_and_a_model(tmp_path, capsys):
    random, rows = np.random.default_rng(seed(1)), []
    for at in range(1200):
        left, right = random.choice(4, 2, replace=False)
        won = "left" if random.random() < expit(right - left) else "right"
        said = won if random.random() < 0.7 else ("left" if random.random() < 0.8 else "right")
        rows.append((at, at // 600, ITEMS[left], ITEMS[right], won, said))
    names = ("num", "id", "model_a", "model_b", "winner")
    people = write(tmp_path / "people.csv", names, [row[:5] for row in rows[::4]])
    model = tmp_path / "model.jsonl"
    model.write_text("".join(json.dumps(dict(zip(names, (*row[:4], row[5]), strict=True))) + "\n" for row in rows))
    # id, which comes first among usual names, tells no comparisons apart; num does
    status, out, err = call(capsys, "judges", people, "--model-judge", str(model))
    found = table(out)
    assert status == 0 and [row["item"] for row in found] == ITEMS
    assert "people decided 300 of 1,200 comparisons" in err and "prefers what stands first in 6" in err
    for row in found:
        assert float(row["upper"]) - float(row["lower"]) <= float(row["people_upper"]) - float(row["people_lower"])
        assert float(row["weight"]) > 0.3 and float(row["labels"]) > int(row["decided"])
    these = table(call(capsys, "judges", people, "--model-judge", str(model), "--these", "--match", "num")[1])
    assert float(these[0]["standard_error"]) < float(found[0]["standard_error"])
    status, _, err = call(capsys, "judges", people, "--model-judge", str(model), "--match", "id")
    assert status == 2 and "2 of 2 ids of what the judge decided stand for comparisons of several pairs" in err
    status, _, err = call(capsys, "judges", str(model), "--model-judge", people, "--match", "num")
    assert status == 2 and "900 of 1,200 comparisons that people decided are not among the 300 of the judge" in err


def test_scores_of_people_and_a_model(tmp_path, capsys):
    random, rows = np.random.default_rng(seed(2)), []
    for task in range(200):
        for system in ("old", "new"):
            right = 5 + (system == "new") + random.normal()
            rows.append((task, system, round(right, 3), round(right + 1 + 0.3 * random.normal(), 3)))
    people = write(tmp_path / "people.csv", ("query", "item", "rating"), [row[:3] for row in rows[:80]])
    model = write(tmp_path / "model.csv", ("query", "item", "rating"), [(*row[:2], row[3]) for row in rows])
    status, out, err = call(capsys, "judges", people, "--model-judge", model)
    found = table(out)
    assert status == 0 and [row["item"] for row in found] == ["new", "old"] and "people decided 80 of 400 scores" in err
    assert all(0.8 < float(row["bias"]) < 1.2 and float(row["power"]) > 0.8 for row in found)
    status, _, err = call(capsys, "judges", people, "--model-judge", model, "--match", "query")
    assert status == 2 and "leave out --match" in err


@pytest.mark.skipif(not ARENA.exists(), reason="shared/data/arena_judges is not there")
def test_the_arena_as_it_was_published(tmp_path, capsys):
    with gzip.open(ARENA / "human.jsonl.gz", "rt") as file:
        lines = file.readlines()
    people = tmp_path / "people.jsonl"
    people.write_text("".join(lines[at] for at in np.random.default_rng(seed(3)).choice(len(lines), 1000, False)))
    status, out, err = call(capsys, "judges", str(people), "--model-judge", str(ARENA / "gpt-4-0125-preview.jsonl.gz"))
    assert status == 0 and len(table(out)) == 20 and "people decided 1,000 of 26,919 comparisons" in err


def test_lines_are_notes_with_numbers():
    import concordant as cc

    found = cc.judges(cc.Preferences.from_comparisons([*"ab"] * 9, [*"bc"] * 9, cluster=[1, 1, 2, 2, 3, 3] * 3))
    assert all(isinstance(line, Note) for line in found.lines())
