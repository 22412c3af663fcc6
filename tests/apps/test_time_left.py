"""The time left: what formulas alone can say, what an earlier run of the same command says, and where that is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant import stages
from concordant.apps.commands import earlier_runs, main, progress
from concordant.apps.commands.durations import ingesting
from concordant.apps.commands.ingest import _Pace, _sizes_of_days
from concordant.progress import listen, stage, steps
from concordant.stages import middle_of
from concordant.time_left import Before, Cost, Whole


class Clock:
    """Time that goes by when it is told to, and what is said meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.said: list[tuple[float, float | None, tuple[float, float] | None]] = []
        self.whole = Whole()
        monkeypatch.setattr(stages, "clock", lambda: self.now)

    def plan(self, before: tuple[Before, ...] = (), **plan: Cost | float) -> Whole:
        self.now, self.said, self.whole = 0.0, [], Whole()
        self.whole.before = before
        costs = {name: cost if callable(cost) else (lambda _, each=cost: each) for name, cost in plan.items()}
        self.whole.know({}, costs)
        return self.whole

    def work(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.said.append((self.now, self.whole.remaining, self.whole.between))

    def worst(self) -> tuple[float, float]:
        """The worst factor from a tenth on, a second more or less being none, and how often a time was said."""
        late = [(left, self.now - at) for at, left, _ in self.said if at >= self.now / 10]
        said = [(max(left, 1.0), max(true, 1.0)) for left, true in late if left is not None]
        return max(((max(x) + 1) / (min(x) + 1) for x in said), default=1.0), len(said) / len(late)

    def held(self) -> float:
        """How often between what and what was said to be left did hold, of all times from a tenth on."""
        late = [(both, self.now - at) for at, _, both in self.said if at >= self.now / 10]
        return sum(both is not None and both[0] - 1e-6 <= true <= both[1] + 1e-6 for both, true in late) / len(late)


def run(clock: Clock, before: tuple[Before, ...], sizes: dict[str, float], real: dict[str, float]) -> Before:
    """A command whose pieces are planned to take ``sizes`` and take ``real``; two seconds pass after each."""
    whole = clock.plan(before, **sizes)
    with listen(lambda _: None, whole=whole):
        for name, seconds in real.items():
            with stage(name):
                clock.work(seconds)
            clock.work(2)
    return whole.over()


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.6])
def test_formulas_alone_say_between_what_and_what(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time that may be wrong by a factor of three is said; what it lies between is, and holds."""
    clock = Clock(monkeypatch)
    whole = clock.plan(reading=10, ranking=20)
    with listen(lambda _: None, whole=whole):
        for name, seconds in (("reading", 10), ("ranking", 20)):
            with stage(name):
                clock.work(seconds * factor)
    worst, share = clock.worst()
    assert share < 0.6 and clock.held() == 1.0
    early = [left for at, left, _ in clock.said if at < 10 * factor]
    assert set(early) == {None}
    if factor == 1.0:
        assert worst <= 2.5


@given(st.lists(st.floats(0.2, 5.0), min_size=3, max_size=3), st.floats(0.9, 1.1))
def test_an_earlier_run_tells(factors: list[float], pace: float) -> None:
    """However wrong the formulas: the second run of the same command says what it takes, from a tenth on."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(monkeypatch)
        sizes = {"reading": 10.0, "ranking": 20.0, "writing": 8.0}
        real = {name: seconds * factor for (name, seconds), factor in zip(sizes.items(), factors, strict=True)}
        first = run(clock, (), sizes, real)
        run(clock, (first,), sizes, {name: seconds * pace for name, seconds in real.items()})
        worst, share = clock.worst()
        assert worst <= 1.5 and share > 0.4


def test_a_larger_log_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece by its own formula, whose constant the earlier run tells; the nearest run counts, then the last."""
    clock = Clock(monkeypatch)
    small = run(clock, (), {"reading": 10.0, "ranking": 5.0}, {"reading": 4.0, "ranking": 15.0})
    usual = run(clock, (), {"reading": 100.0, "ranking": 50.0}, {"reading": 39.0, "ranking": 148.0})
    odd = Before(small.thought, dict.fromkeys(small.took, 90.0), small.after, {}, small.began, {}, same=False)
    run(clock, (odd, small), {"reading": 12.0, "ranking": 7.0}, {"reading": 5.0, "ranking": 21.0})
    assert clock.worst()[0] <= 1.5 and clock.said[9][1] == pytest.approx(28, rel=0.15)
    run(clock, (small, usual), {"reading": 120.0, "ranking": 55.0}, {"reading": 48.0, "ranking": 163.0})
    assert clock.worst()[0] <= 1.5 and clock.said[9][1] == pytest.approx(212, rel=0.1)
    run(clock, (small,), {"reading": 1000.0, "ranking": 500.0}, {"reading": 400.0, "ranking": 1500.0})
    assert clock.said[9][1] is None and clock.held() > 0.9  # a hundred times as much: nothing is sure


@pytest.mark.parametrize("pace", [0.7, 1.0, 1.5])
def test_uneven_steps_go_as_they_went(pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that get longer mislead who takes them for equal; an earlier run knows, at any speed of the machine."""
    clock = Clock(monkeypatch)

    def once(before: tuple[Before, ...], pace: float) -> Before:
        whole = clock.plan(before, folds=30)
        with listen(lambda _: None, whole=whole):
            for place in steps("folds", range(20)):
                clock.work(0.3 * (place + 1) * pace)
        return whole.over()

    first = once((), 1.0)
    assert clock.worst()[0] > 1.6
    assert len(first.course["folds"]) <= stages.COURSE + 1
    once((first,), pace)
    late = [(left, clock.now - at) for at, left, _ in clock.said if at >= clock.now / 4]
    said = [(max(left, 1.0), max(true, 1.0)) for left, true in late if left is not None]
    factors = [(max(both) + 1) / (min(both) + 1) for both in said]
    assert max(factors) <= 1.5 and len(factors) > 0.7 * len(late)


def test_what_becomes_known_on_the_way_is_compared_with_what_was_known_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess before the log is counted is not held against a count."""
    clock = Clock(monkeypatch)

    def once(before: tuple[Before, ...]) -> Before:
        whole = clock.plan(before, reading=4, ranking=lambda k: 1e-3 * k["rows"])
        whole.know({"rows": 60_000})  # a guess
        with listen(lambda _: None, whole=whole):
            with stage("reading"):
                clock.work(2)
                whole.know({"rows": 10_000})
                clock.work(2)
            with stage("ranking"):
                clock.work(20)
        return whole.over()

    first = once(())
    once((first,))
    assert clock.worst() == (pytest.approx(1.0, abs=0.3), pytest.approx(0.8, abs=0.2))


def test_what_a_later_plan_adds_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first piece does not say that what was planned before it is over."""
    clock = Clock(monkeypatch)
    whole = clock.plan(reading=2, ranking=10)
    whole.untried = 1.0
    with listen(lambda _: None, whole=whole):
        with stage("reading"):
            clock.work(2)
        whole.know({}, {"joining": lambda _: 3.0})
        with stage("joining"):
            clock.work(3)
        with stage("ranking"):
            clock.work(10)
    assert clock.worst() == (pytest.approx(1.0, abs=0.35), 1.0)


def test_the_middle_is_within_half_of_both() -> None:
    for least in np.geomspace(0.1, 100, 20):
        for most in least * np.geomspace(1, 4, 20):
            middle = middle_of((least, most))
            ends = [(max(end, 1) + 1) / (max(middle, 1) + 1) for end in (least, most)] if middle else []
            assert all(1 / 1.51 <= one <= 1.51 for one in ends)
    assert middle_of(None) is None and middle_of((1.0, 3.6)) is None


# -- where it is kept --------------------------------------------------------------------------------------------------
BEFORE = Before(
    thought={" #0": {"reading day-1.csv": 3.0, "ranking": 4.0}},
    took={"reading day-1.csv": 2.0, "ranking": 5.0},
    after={"": 0.1},
    course={"ranking": [(0.5, 2.0), (1.0, 5.0)]},
    began={"ranking": 1},
    known={"rows": 2.5e12},
    slower=1.2,
)


@pytest.fixture(name="kept")
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "deep" / "durations.json"
    monkeypatch.setenv(earlier_runs.WHERE, str(place))
    return place


def test_runs_are_kept_by_command_and_options(kept: Path) -> None:
    """Not by the names of files and dates, which each night has its own."""
    options = {"log": "day-1.csv", "query": "prompt", "as_of": "2026-11-01", "output": "out-1.csv", "folds": 5}
    earlier_runs.keep("rank", options, BEFORE)
    assert earlier_runs.before("rank", options) == (BEFORE,)
    tomorrow = options | {"log": "day-2.csv", "as_of": "2026-11-02", "output": "out-2.csv"}
    (found,) = earlier_runs.before("rank", tomorrow)
    assert found.took == {"reading day-2.csv": 2.0, "ranking": 5.0} and not found.same
    assert earlier_runs.before("rank", options | {"output": "other.csv"})[0].same
    others = [{"folds": 6}, {"query": "topic"}, {"output": "out.parquet"}, {"ties": "davidson"}, {"as_of": "30d"}]
    for other in others:
        assert earlier_runs.before("rank", options | other) == ()
    assert earlier_runs.before("audit", options) == ()
    text = kept.read_text()
    assert not any(word in text for word in ("prompt", "out-1", "day-1", "2026"))


@pytest.mark.usefixtures("kept")
def test_what_a_run_leaves_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps by the thousand, the first of which takes nothing; stages inside a piece; pieces that come twice."""
    clock = Clock(monkeypatch)
    whole = clock.plan(reading=2, ranking=10)
    with listen(lambda _: None, whole=whole):
        for turn in range(2):
            with stage("reading"):
                clock.work(2 + turn)
            whole.know({}, {"reading": lambda _: 3.0} if turn == 0 else {})
        with stage("ranking"):
            for number in steps("replicates", range(10_000)):
                clock.work(0.1 * (number % 100 == 99))
    run = whole.over()
    assert run.took["reading (1)"] == pytest.approx(2) and run.took["reading (2)"] == pytest.approx(3)
    assert "ranking > replicates #1" in run.course
    earlier_runs.keep("rank", {}, run)
    (found,) = earlier_runs.before("rank", {})
    assert found.took == pytest.approx(run.took) and found.course.keys() == run.course.keys()


@pytest.mark.usefixtures("kept")
def test_numbers_that_are_written_as_words_tell_runs_apart() -> None:
    """A prior, a list of ridges and an order are no names of files, nor days."""
    for name, one, other in (("prior", "0.1", "10.1"), ("ridges", "0.1,1.5", "2,3.5"), ("order", "3", "5")):
        earlier_runs.keep("fit", {name: one}, BEFORE)
        assert len(earlier_runs.before("fit", {name: one})) == 1 and not earlier_runs.before("fit", {name: other})
    earlier_runs.keep("ingest", {"logs": ("a/1.csv", "a/2.csv")}, BEFORE)
    assert len(earlier_runs.before("ingest", {"logs": ("a/1.csv", "a/2.csv", "a/3.csv")})) == 1


def test_a_few_runs_are_kept(kept: Path) -> None:
    for number in range(12):
        earlier_runs.keep("rank", {"folds": 5}, Before({}, {"a": float(number)}, {}, {}, {}, {}))
    assert [one.took["a"] for one in earlier_runs.before("rank", {"folds": 5})] == [11.0, 10.0, 9.0, 8.0, 7.0]
    for number in range(130):
        earlier_runs.keep("rank", {"folds": number + 6}, BEFORE)
    assert len(json.loads(kept.read_text())["runs"]) == earlier_runs.ALL
    assert earlier_runs.before("rank", {"folds": 5}) == ()


RUN = {
    "key": "",
    "inputs": "",
    "slower": 1.0,
    "size": 0,
    "thought": {},
    "took": {"a": 1.0},
    "after": {},
    "course": {},
    "began": {},
    "known": {},
}
SPOILT = [
    {"took": {"a": float("nan")}},
    {"took": {"a": -1.0}},
    {"took": {"a": 10**400}},
    {"took": {"a": 1e300}},
    {"took": {"a": "long"}},
    {"took": []},
    {"slower": 0},
    {"size": float("nan")},
    {"slower": "slow"},
    {"course": {"a": [[0.5, 1.0], [0.4, 2.0]]}},
    {"course": {"a": [[0.5, 1.0], [0.6, 0.5]]}},
    {"course": {"a": [1.0]}},
    {"thought": {"a": 1.0}},
]


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_run_that_makes_no_sense_is_none(spoilt: dict[str, Any], kept: Path) -> None:
    key = {"key": earlier_runs._key("rank", {}), "inputs": earlier_runs._inputs({})}
    kept.parent.mkdir()
    kept.write_text(json.dumps({"layout": earlier_runs.LAYOUT, "runs": [RUN | key | spoilt, RUN | key]}))
    assert earlier_runs.before("rank", {}) == (Before({}, {"a": 1.0}, {}, {}, {}, {}),)


@pytest.mark.parametrize(
    "content", [b"", b'{"layout": 99, "runs": []}', b'{"layout": 1, "runs": 3}', b'{"layout": 1, "ru']
)
def test_a_file_that_cannot_be_read_is_made_anew(content: bytes, kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_bytes(content)
    assert earlier_runs.before("rank", {}) == ()
    earlier_runs.keep("rank", {}, BEFORE)
    assert len(earlier_runs.before("rank", {})) == 1


@pytest.mark.parametrize("content", [b"[]", b"\xff", b"notes of somebody", b'{"a": 1}'])
def test_a_file_of_something_else_is_left_alone(content: bytes, kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_bytes(content)
    earlier_runs.keep("rank", {}, BEFORE)
    assert earlier_runs.before("rank", {}) == () and kept.read_bytes() == content


def test_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv(earlier_runs.WHERE, str(tmp_path / "pipe"))
    earlier_runs.keep("rank", {}, BEFORE)
    assert earlier_runs.before("rank", {}) == ()


def test_a_place_that_cannot_be_written_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "durations.json"):
        monkeypatch.setenv(earlier_runs.WHERE, str(place))
        earlier_runs.keep("rank", {}, BEFORE)
        assert earlier_runs.before("rank", {}) == ()
    monkeypatch.setenv(earlier_runs.WHERE, "")
    earlier_runs.keep("rank", {}, BEFORE)
    assert earlier_runs.before("rank", {}) == () and sorted(os.listdir(tmp_path)) == ["file"]


def test_a_command_remembers(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """One that is done, and that somebody could watch; then lines of JSON say the time left, and its ends."""
    draw = np.random.default_rng(0)
    rows = [f"{a},{(a + 1 + b) % 9}" for a, b in zip(draw.integers(0, 9, 4000), draw.integers(0, 8, 4000), strict=True)]
    (tmp_path / "votes.csv").write_text("\n".join(["winner,loser", *rows]) + "\n")
    command = ["audit", str(tmp_path / "votes.csv"), "--replicates", "50"]
    main(command)
    assert not kept.exists()  # nobody looked
    main([*command, "--log-format", "json"])
    assert not kept.exists()  # a short one
    for name, value in (("DELAY", 0.0), ("EVERY", 0.0), ("BRIEF", 0.0)):
        monkeypatch.setattr(progress, name, value)
    with pytest.raises(SystemExit):
        main(["audit", str(tmp_path / "votes.csv"), "--query", "none", "--log-format", "json"])
    assert not kept.exists()  # it failed
    capsys.readouterr()
    told = []
    for _ in range(2):
        main([*command, "--log-format", "json"])
        lines = map(json.loads, capsys.readouterr().err.splitlines())
        told.append([one for one in lines if one["event"] == "progress"])
    assert len(json.loads(kept.read_text())["runs"]) == 2
    assert all({"remaining", "remaining_least", "remaining_most"} <= {*one} for one in told[0])
    assert None not in [one["remaining"] for one in told[1]]


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.6])
def test_days_tell_how_long_other_days_take(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a lake that comes day by day a time is said once a day or two are over, whatever the formula said."""
    sizes = [8e6, 9e6, 7e6, 8.5e6, 8e6, 9.5e6, 8e6, 7.5e6, 8e6, 8e6]
    draw = np.random.default_rng(1)
    clock, pace = Clock(monkeypatch), _Pace(sizes)
    whole = clock.plan(**ingesting(["lake"], sizes, "taking in lake"))
    with listen(lambda _: None, whole=whole):
        for size in sizes:
            with stage("taking in lake") as at:
                if (left := pace.left()) is not None:
                    at.foresee(*left)
                seconds = round(factor * size * 4e-7 * draw.uniform(0.9, 1.1), 1)
                clock.work(seconds)
            pace.over(seconds, new=True)
    worst, share = clock.worst()
    assert worst <= 1.5
    assert share >= 0.85
    assert clock.held() >= 0.95


def test_a_day_that_is_known_says_nothing_of_others() -> None:
    pace = _Pace([10.0, 10.0, 20.0, 20.0])
    assert pace.left() is None
    pace.over(0.01, new=False)
    assert pace.left() is None
    pace.over(0.5, new=True)
    assert pace.left() is None  # so short a day may have been spent on setting out
    pace.over(1.0, new=True)
    assert pace.left() == pytest.approx((1.0 / 1.2, 1.0 * 1.2))
    pace.over(1.0, new=True)
    pace.over(1.0, new=True)  # files that came meanwhile
    assert pace.left() == (0.0, 0.0)


def test_the_bytes_of_the_days_of_a_lake(tmp_path: Path) -> None:
    for day, size in (("2026-01-02", 5), ("2026-01-01", 3)):
        for part in "ab":
            file = tmp_path / "lake" / f"day={day}" / f"{part}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x" * size)
    lake = str(tmp_path / "lake")
    assert _sizes_of_days(lake, None) == [6.0, 10.0]
    assert _sizes_of_days(lake, "2026-01-01") == [16.0]
    assert _sizes_of_days(f"{lake}/day=2026-01-01", None) == [6.0]
    assert _sizes_of_days(f"{lake}/day=2026-01-01/a.csv", None) == [3.0]
    assert _sizes_of_days(str(tmp_path / "none"), None) == [0.0]
    assert _sizes_of_days("s3://bucket/lake", None) == [0.0]
