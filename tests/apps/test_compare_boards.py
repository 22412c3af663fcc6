"""``concordant compare OLD NEW``: what it prints, its parts of one log, and its exit status."""

from __future__ import annotations

import numpy as np
import pytest
from test_command import call
from test_command import rows as rows_of

import concordant as cc
from concordant.boards.saved_boards import saved_changes
from seeds import seed

OLD = "winner,loser,judge,day\n" + "".join(
    f"{a},{b},j{i % 7},2026-01-{1 + i % 20:02d}\n"
    for i, (a, b) in enumerate([("a", "b")] * 60 + [("b", "a")] * 40 + [("a", "c")] * 60 + [("c", "a")] * 40)
)
MORE = "".join(
    f"{a},{b},j{i % 9},2026-02-0{1 + i % 3}\n" for i, (a, b) in enumerate([("a", "b")] * 10 + [("b", "a")] * 60)
)


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "old.csv").write_text(OLD)
    (tmp_path / "new.csv").write_text(OLD + MORE)
    return str(tmp_path / "old.csv"), str(tmp_path / "new.csv")


def test_two_logs(logs, capsys):
    status, out, err = call(capsys, "compare", *logs)
    assert status == 0 and "the new board holds the 200 judgments of the old one and 70 more" in err
    twin = cc.board_changes(*(cc.rank(cc.read(log)) for log in logs), shared="common").table.to_pylist()
    for row, other in zip(rows_of(out), twin, strict=True):
        assert row["item"] == other["item"]
        for name in ("old", "new", "difference", "standard_error", "p_value", "p_max_t", "own_votes", "opponents"):
            assert np.isclose(float(row[name]), other[name], rtol=1e-6, atol=1e-9)
    assert "moved beyond chance" in err and "by its own votes" in err


def test_the_exit_status_says_what_is_worse(logs, tmp_path, capsys):
    status, _, err = call(capsys, "compare", *logs, "--fail-if-worse", "a", "--fail-if-worse", "b")
    assert status == 1 and "a: worse (" in err and "b: not worse beyond chance (+" in err
    assert call(capsys, "compare", *logs, "--fail-if-worse", "b")[0] == 0
    assert call(capsys, "compare", *logs, "-q", "--fail-if-worse", "a", "-o", str(tmp_path / "x.csv"))[0] == 1
    status, _, err = call(capsys, "compare", *logs, "--fail-if-worse", "nobody")
    assert status == 2 and "no such item on either board; items there: 'a', 'b', 'c'" in err


def test_parts_of_one_log(logs, capsys):
    status, out, err = call(capsys, "compare", logs[1], "--by", "day", "--since", "2026-02-01", "--cluster", "judge")
    assert status == 0 and "day before 2026-02-01: " in err and "day from 2026-02-01: " in err
    found = {row["item"]: row for row in rows_of(out)}
    assert (found["a"]["judgments_old"], found["a"]["judgments_new"], found["c"]["judgments_new"]) == ("200", "70", "0")
    status, out, _ = call(capsys, "compare", logs[1], "--by", "judge", "--values", "j0", "j8")
    assert status == 0 and {row["item"] for row in rows_of(out)} == {"a", "b", "c"}


def test_votes_with_ids_are_shared_by_these(tmp_path, capsys):
    """Equal votes of other ids are other votes; of the same ids they are the same, however few."""
    names, sides = ("old", "new", "part", "wrong"), [("a", "b")] * 30 + [("b", "a")] * 20 + [("b", "c")] * 30
    sides += [("c", "b")] * 20
    rows = [f"x{i},{a},{b}\n" for i, (a, b) in enumerate(sides)]
    others = [f"y{i},{a},{b}\n" for i, (a, b) in enumerate(sides * 4)]
    wrong = f"x1,{sides[1][1]},{sides[1][0]}\n"
    for name, held in zip(names, (rows, others, [*rows[:40], *others], [wrong, *others]), strict=True):
        (tmp_path / f"{name}.csv").write_text("id,winner,loser\n" + "".join(held))
    old, new, part, bad = (str(tmp_path / f"{name}.csv") for name in names)
    for more in ([], ["--shared", "common"]):
        status, apart, err = call(capsys, "compare", old, new, "--id", "id", *more)
        assert status == 0 and "taken to hold different judgments" in err
        status, some, err = call(capsys, "compare", old, part, "--id", "id", *more)
        assert status == 0 and "both boards hold 40 judgments: they are counted once" in err
    assert call(capsys, "compare", old, new, "--shared", "none")[1] == apart
    first, second = (cc.read(name, columns={"id": "id"}) for name in (old, part))
    both = cc.read({"winner": [a for a, _ in sides[:40]], "loser": [b for _, b in sides[:40]]})
    change = cc.board_changes(cc.rank(first), cc.rank(second), shared=both)
    errors = {row["item"]: row["standard_error"] for row in change.table.to_pylist()}
    assert {row["item"]: float(row["standard_error"]) for row in rows_of(some)} == pytest.approx(errors)
    status, _, err = call(capsys, "compare", old, bad, "--id", "id")
    assert status == 2 and "1 vote of both logs by 'id' with another content in the other one (such as 'x1')" in err
    assert "--shared none takes all for different ones" in err
    assert call(capsys, "compare", old, bad, "--id", "id", "--shared", "none")[0] == 0


@pytest.mark.parametrize("later", [40, 120])
def test_windows_of_a_log_that_grew_share_what_lies_in_both(tmp_path, capsys, later):
    """The last week of either file: other votes, as their ids say, and though all rows of the one are in the other.

    Where there are three times as many a day, as many of each kind are among them.
    """
    head = "id,day,winner,loser\n"
    days = [1 + i // 40 for i in range(40 * 20)] + [21 + i // later for i in range(later * 10)]
    won = np.random.default_rng(seed(13)).random(len(days)) < 0.4
    won[520:800:2] = True  # days 14 to 20
    both = zip(days, won.tolist(), strict=True)
    rows = [f"{i},2026-01-{day:02d},{'ab'[one]},{'ba'[one]}\n" for i, (day, one) in enumerate(both)]
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text(head + "".join(rows[: 40 * 20]))
    new.write_text(head + "".join(rows))
    for more in (["--id", "id"], []):
        asked = ["compare", str(old), str(new), *more, "--time", "day", "--last", "7d"]
        status, out, err = call(capsys, *asked)
        assert status == 0 and "counted once" not in err, err
        assert ("so would others" in err) == (later == 120 and not more)
        assert call(capsys, *asked, "--shared", "none")[1] == out


@pytest.mark.parametrize(
    "more", [["--last", "7d"], ["--since", "2026-01-12"], ["--last", "7d", "--as-of", "2026-01-19"]]
)
def test_ids_tell_what_lies_in_both_windows(tmp_path, capsys, more):
    """The last week of a file, and of the same file two days later: five days are shared."""
    won = np.random.default_rng(seed(17)).random(40 * 22) < 0.4
    rows = [f"{i},2026-01-{1 + i // 40:02d},{'ab'[one]},{'ba'[one]}\n" for i, one in enumerate(won.tolist())]
    for name, held in (("old", rows[: 40 * 20]), ("new", rows)):
        (tmp_path / f"{name}.csv").write_text("id,day,winner,loser\n" + "".join(held))
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    status, out, err = call(capsys, "compare", old, new, "--id", "id", "--time", "day", *more)
    first, last = {"--since": (12, 20)}.get(more[0], (16, 20)) if len(more) == 2 else (13, 19)
    shared = [line.split(",")[2:] for line in rows if first <= int(line.split(",")[1][-2:]) <= last]
    said = f"both boards hold {'the same ' * (len(more) == 4)}{len(shared)} judgments"
    assert status == 0 and (said in err or f"the new board holds the {len(shared)} judgments of the old one" in err)
    both = cc.read({side: [row[place].strip() for row in shared] for place, side in enumerate(("winner", "loser"))})
    window = {name[2:].replace("-", "_"): value for name, value in zip(more[::2], more[1::2], strict=True)}
    boards = [cc.rank(cc.read(name, time="day", **window)) for name in (str(old), str(new))]
    errors = {row["item"]: row["standard_error"] for row in cc.board_changes(*boards, shared=both).table.to_pylist()}
    assert {row["item"]: float(row["standard_error"]) for row in rows_of(out)} == pytest.approx(errors)


def test_rows_tell_whether_a_log_grew_where_its_votes_do_not(tmp_path, capsys):
    """Days, say: all rows of the old file are in the new one. Votes alone, of three models, would be there anyway."""
    rng = np.random.default_rng(seed(12))
    sides = [("a", "b")] * 30 + [("b", "a")] * 20 + [("b", "c")] * 30 + [("c", "b")] * 20
    rows = [f"{rng.integers(1, 29)},{a},{b},{'x' * int(rng.integers(0, 2))}" for a, b in sides]
    later = [f"{rng.integers(1, 29)}.,{a},{b}," for a, b in sides * 3]
    head = "day,winner,loser,remark"
    for name, held in (("old", rows), ("grown", rows + later), ("other", later), ("other columns", rows + later)):
        lines = [head, *held] if name != "other columns" else [line.split(",", 1)[1] for line in [head, *held]]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    old = str(tmp_path / "old.csv")
    for name, told in (("grown", True), ("other", False)):
        status, out, err = call(capsys, "compare", old, str(tmp_path / f"{name}.csv"))
        assert status == 0 and ("the new board holds the 100 judgments of the old one and 300 more" in err) == told
        assert ("look like some of the other, but so would others" in err) != told
        back = call(capsys, "compare", str(tmp_path / f"{name}.csv"), old)
        assert ("the old board holds the 100 judgments of the new one, too" in back[2]) == told
        known = call(capsys, "compare", old, str(tmp_path / f"{name}.csv"), "--shared", "common" if told else "none")
        assert known[1] == out
    assert call(capsys, "compare", old, str(tmp_path / "other columns.csv"))[0] == 0


def test_a_terminal_shows_a_table_and_sentences(logs, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    status, out, _ = call(capsys, "compare", *logs, "-q")
    assert status == 0 and "3 items of 3 on both boards moved" in out and "standa" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--by", "day"], "--by takes --values OLD NEW or --since V, one of them"),
        (["--by", "day", "--since", "2025"], "no judgments with day before 2025"),
        (["--by", "day", "--values", "x", "y"], "no judgments with day x"),
        (["--by", "judge", "--values", "j0", "j1", "--cluster", "judge"], "a column divides judgments"),
        (["--since", "3"], "days of a log need the column that says when"),
        (["--with", "2026-02-01"], "--with 2026-02-01: a day of the log, beside another one (--as-of)"),
        (["--fail-if-top-changes"], "--fail-if-top-changes does nothing here: there is one board"),
        (["--shared", "common"], "--shared does nothing here: there is one board"),
        (["--by", "day", "--since", "2026-02-01", "--top", "1"], "--top does nothing here: two boards"),
    ],
)
def test_what_is_refused(logs, capsys, more, said):
    status, _, err = call(capsys, "compare", logs[1], *more)
    assert status == 2 and said in err and "Traceback" not in err


def test_two_logs_are_not_divided(logs, capsys):
    status, _, err = call(capsys, "compare", *logs, "--by", "day", "--since", "2026-02-01")
    assert status == 2 and "--by does nothing here: there are two logs" in err


@pytest.mark.parametrize("endings", [("csv", "json"), ("parquet", "jsonl"), ("tsv", "feather")])
def test_saved_rankings(logs, tmp_path, capsys, endings):
    saved = [str(tmp_path / f"board-{at}.{ending}") for at, ending in enumerate(endings)]
    for log, name in zip(logs, saved, strict=True):
        assert call(capsys, "rank", log, "-q", "-o", name)[0] == 0
    status, out, err = call(capsys, "compare", *saved, "--fail-if-worse", "a")
    assert status == 1 and "taken as independent" in err and "a: worse (" in err
    twin = {
        row["item"]: row for row in saved_changes(*(cc.rank(cc.read(log)).to_arrow() for log in logs)).table.to_pylist()
    }
    for row in rows_of(out):
        assert float(row["p_holm"]) == pytest.approx(twin[row["item"]]["p_holm"], rel=1e-9)
    assert rows_of(call(capsys, "compare", logs[0], saved[1])[1]) == rows_of(out)  # a log in the place of its ranking
    status, _, err = call(capsys, "compare", *saved, "--shared", "common")
    assert status == 2 and "a saved ranking holds none" in err
    status, _, err = call(capsys, "compare", *saved, "--fail-if-worse", "A")
    assert status == 2 and "did you mean 'a'?" in err


def test_several_queries_are_refused(logs, tmp_path, capsys):
    status, _, err = call(capsys, "compare", *logs, "--query", "judge")
    assert status == 2 and "the old board ranks 7 queries; boards are compared as wholes: pool them (--pool)" in err
    assert call(capsys, "compare", *logs, "--query", "judge", "--pool")[0] == 0
    assert call(capsys, "rank", logs[0], "--query", "judge", "-q", "-o", str(tmp_path / "x.csv"))[0] == 0
    status, _, err = call(capsys, "compare", str(tmp_path / "x.csv"), logs[1])
    assert status == 2 and "holds the rankings of 7 queries" in err and "rank with --pool" in err
