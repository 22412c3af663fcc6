"""When judgments were made: what is a time in a file or a table, how it is kept, and judgments that fade."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.preferences.preferences import Comparisons
from concordant.preferences.times import as_times, discounted, duration, moment, until

DATES = ["2026-01-31", "2026-01-01", "2026-01-31", "2026-01-31"]
COLUMNS = {"winner": ["a", "b", "b", "a"], "loser": ["b", "a", "a", "b"], "when": DATES}


def timed(**columns: Any) -> Comparisons:
    made = cc.Preferences.from_comparisons(**{"winner": COLUMNS["winner"], "loser": COLUMNS["loser"], **columns})
    assert isinstance(made, Comparisons)
    return made


def test_every_form_of_a_date_is_the_same_date() -> None:
    whole = timed(time=DATES)
    assert whole.dated and whole.count.tolist() == [2, 1, 1]
    assert whole.time is not None and whole.time.tolist() == [20484.0, 20454.0, 20484.0]  # date -d @$((20484 * 86400))
    days = [datetime.date.fromisoformat(text) for text in DATES]
    for column in (days, np.array(DATES, "datetime64[D]"), pa.array(days), pa.array(days).cast(pa.timestamp("ms"))):
        assert timed(time=column) == whole
    assert timed(time=[f"{text}T01:00+01:00" for text in DATES]) == whole
    assert timed(time=pa.array(days).cast(pa.timestamp("s", "Europe/Rome"))) == whole
    assert not timed(time=[3, 1, 3, 3]).dated


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_is_read_as_its_columns_are(tmp_path: Path, engine: str, ending: str) -> None:
    path, table = tmp_path / f"votes.{ending}", pa.table(COLUMNS)
    rows = list(zip(*COLUMNS.values(), strict=True))
    if ending == "csv":
        path.write_text("\n".join(["winner,loser,when", *map(",".join, rows)]))
    elif ending == "jsonl":
        path.write_text("\n".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows))
    else:
        pq.write_table(table.set_column(2, "when", table["when"].cast(pa.date32())), path)
    assert cc.read(path, time="when", engine=engine) == timed(time=DATES)
    assert cc.read(path, engine=engine) == timed()


def test_times_add_up_like_everything_else() -> None:
    whole = timed(time=DATES)
    assert sum(whole.folds(2)) == whole
    assert whole + timed(time=DATES) == timed(time=DATES, count=[2] * 4)
    for other in (timed(), timed(time=[1, 2, 3, 4])):
        with pytest.raises(cc.UsageError, match="only one"):
            whole + other


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["2026-01-01", "1.2.2026", "2026-02-30", "2026-01-01"], "2 of 4 rows have a time that is no date or instant"),
        ([20260101, 20260102, 20260103, 20260104], "4 of 4 rows have a time that is no date"),
        (["20260101"] * 4, "no date or instant"),
        ([1.0, None, 3.0, 4.0], r"1 of 4 rows have no time \(row 2\)"),
        (["1", "x", "3", "4"], "no number"),
        ([1.0, np.inf, 3.0, 4.0], "not finite"),
    ],
)
def test_what_is_no_time_is_said(column: Any, said: str) -> None:
    with pytest.raises(cc.InputError, match=said):
        timed(time=column)


def test_what_has_no_times_is_refused(tmp_path: Path) -> None:
    ratings = {"user": ["u", "u"], "item": ["a", "b"], "rating": [1, 2], "when": [1, 2]}
    with pytest.raises(cc.UsageError, match="a time belongs to comparisons"):
        cc.read(ratings, time="when")
    with pytest.raises(cc.InputError, match=r"no column .wen. .*did you mean 'when'"):
        cc.read(COLUMNS, time="wen")
    with pytest.raises(cc.UsageError, match="store keeps no times"):
        cc.Store(tmp_path / "s.store").ingest(timed(time=DATES))
    with pytest.raises(cc.UsageError, match="say when they were made"):
        discounted(timed(), 3)


def test_lengths_and_moments() -> None:
    assert [duration(text, True) for text in ("36h", "10", "1 y", 2)] == [1.5, 10.0, 365.25, 2.0]
    for bad, dated in (("d", True), ("3m", True), (0, True), ("-1d", True), ("3d", False), (None, False)):
        with pytest.raises(cc.UsageError, match="length of time"):
            duration(bad, dated)
    assert moment(datetime.date(1970, 1, 3), True) == moment("1970-01-03", True) == 2.0
    for bad, dated in (("yesterday", True), (3, True), ("x", False), (float("nan"), False)):
        with pytest.raises(cc.UsageError, match="a time of these judgments"):
            moment(bad, dated)
    assert str(as_times(np.array([0.5]), True)[0]) == "1970-01-01 12:00:00"


def test_half_lives_are_weights() -> None:
    rng = np.random.default_rng(0)
    one, other, day = rng.integers(5, size=(300,)), rng.integers(1, 5, size=(300,)), rng.integers(100, size=300)
    winner, loser, weight = one, (one + other) % 5, rng.choice([0.5, 2.0], 300)
    votes = cc.Preferences.from_comparisons(winner, loser, weight=weight, time=day)
    for at in (99, 60):
        kept = day <= at
        by_hand = (weight * 2.0 ** ((day - at) / 25.0))[kept]
        expected = cc.rank(cc.Preferences.from_comparisons(winner[kept], loser[kept], weight=by_hand))
        found = cc.rank(discounted(votes, 25, at))
        assert found.interval == "sandwich"
        for name in ("score", "lower", "upper"):
            assert np.allclose(getattr(found, name), getattr(expected, name))


def test_what_faded_is_left_out_and_said() -> None:
    votes = timed(winner=["a", "a", "c"], loser=["b", "b", "a"], time=[1000, 999, 0])
    faded = discounted(votes, 10)
    assert faded.items.tolist() == ["a", "b"] and faded.weight is not None
    assert faded.notes == ("1 judgment older than 40 half-lives is left out, and 1 item with them",)
    with pytest.raises(cc.UsageError, match="no judgment was made up to -1; the first is of 0"):
        until(votes, -1)


def test_judgments_after_the_time_are_counted_in_a_note():
    when = ["2026-01-01", "2026-01-31", "2026-02-01", "2026-02-02"]
    votes = cc.Preferences.from_comparisons(list("abab"), list("baba"), time=when)
    found = discounted(votes, "30d", "2026-01-31")
    assert len(found) == 2 and "2 judgments made after 2026-01-31 are left out" in found.notes
    assert not any("left out" in note for note in discounted(votes, "30d").notes)
