"""What long work tells: stages to Python, bars to a terminal, JSON to whoever asks, nothing to a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import concordant as cc
from concordant import stages as stages_of_work
from concordant.apps.commands import main, progress, saying
from concordant.apps.commands.bars import line_of, rows_of
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.settings import early
from concordant.progress import know, listen, listener, stage, steps
from concordant.stages import Aside, Stage
from concordant.time_left import Cost, Whole

QUICK = "from concordant.apps.commands import main, progress as p; p.DELAY, p.BRIEF = {delay}, 0; main()"


def votes(items: int, number: int, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    winner = draw.integers(0, items, number)
    return pa.table({"winner": winner, "loser": (winner + 1 + draw.integers(0, items - 1, number)) % items})


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "votes.csv"
    pa.csv.write_csv(votes(60, 30_000), path)
    return path


# -- stages ----------------------------------------------------------------------------------------------------------
def test_stages_lie_in_each_other_and_end() -> None:
    seen: list[list[tuple[str, float, float | None]]] = []
    with listen(lambda stages: seen.append([(one.what, one.done, one.total) for one in stages]), every=0) as heard:
        with stage("outer", 2) as outer:
            for _ in steps("inner", [1, 2]):
                pass
            outer()
            with pytest.raises(ValueError), stage("failing"):
                raise ValueError
        assert heard.stages == ()
    assert listener() is None
    assert seen == [
        [("outer", 0, 2)],
        [("outer", 0, 2), ("inner", 0, 2)],
        [("outer", 0, 2), ("inner", 1, 2)],
        [("outer", 0, 2), ("inner", 2, 2)],
        [("outer", 0, 2)],
        [("outer", 1, 2)],
        [("outer", 1, 2), ("failing", 0, None)],
        [("outer", 1, 2)],
        [],
    ]


def test_nobody_listens_in_other_threads_and_advances_add_up() -> None:
    inside: list[Any] = []
    with listen(lambda _: None) as heard, stage("all", 4000) as advance:
        workers = [threading.Thread(target=lambda: [advance() for _ in range(1000)]) for _ in range(4)]
        workers.append(threading.Thread(target=lambda: inside.append(listener())))
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert heard.stages[0].done == 4000
    assert inside == [None]


def test_calls_are_not_more_than_asked_for() -> None:
    calls: list[int] = []
    with listen(lambda stages: calls.append(len(stages)), every=1000), stage("all") as advance:
        for _ in range(1000):
            advance()
    assert calls == [1]


def test_time_that_is_left_goes_by_what_was_done() -> None:
    one = Stage("reading", 100, None)
    assert one.remaining is None
    one.done, one.began = 25, one.began - 10
    assert one.remaining == pytest.approx(30, rel=0.01)
    one.total = None
    assert one.remaining is None and one.share is None


class Clock:
    """Time that goes by when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **plan: Cost | float) -> None:
        self.now, self.whole = 0.0, Whole()
        self.whole.untried = 1.0  # the formulas hold
        self.said: list[tuple[float, float | None]] = []
        monkeypatch.setattr(stages_of_work, "clock", lambda: self.now)
        costs = {name: cost if callable(cost) else (lambda _, each=cost: each) for name, cost in plan.items()}
        self.whole.know({}, costs)

    def work(self, seconds: float) -> None:
        """Let a piece of work go on, and look ten times a second at what is said to be left."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.said.append((self.now, self.whole.remaining))

    def worst(self) -> tuple[float, float]:
        """The worst factor from a tenth on, a second more or less being none, and how often one was said."""
        late = [(at, left) for at, left in self.said if at >= self.now / 10]
        said = [(left, self.now - at) for at, left in late if left is not None]
        factors = [(max(left, true) + 1) / (min(left, true) + 1) for left, true in said]
        return max(factors, default=1.0), len(said) / len(late)


@pytest.mark.parametrize("speed", [0.75, 1.0, 1.3])
def test_the_time_left_is_right_within_half_of_it(speed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, reading=10, queries=30, writing=4)
    with listen(lambda _: None, whole=clock.whole):
        with stage("reading"):
            clock.work(10 * speed)
        costs = [1.0, 4.0, 2.0, 3.0, 5.0, 1.0]
        with stage("ranking"):  # what is no piece
            for cost in steps("queries", costs, costs=costs):  # unequal steps whose costs are known
                with stage("writing"):  # a stage inside a piece is a part of it, whatever its name
                    clock.work(cost * 2 * speed)
        with stage("writing"):
            clock.work(4 * speed)
    factor, share = clock.worst()
    assert factor <= 1.5 and share == 1


@pytest.mark.parametrize("machine", [0.5, 2.5])
def test_how_slow_the_machine_is_counts_for_all_pieces(machine: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was seen to be beside the work; the pieces that are over count for their own part."""
    clock = Clock(monkeypatch, reading=10, ranking=20, writing=10)
    clock.whole.slower = machine
    with listen(lambda _: None, whole=clock.whole):
        for name, seconds, own in (("reading", 10, 1.1), ("ranking", 20, 1.0), ("writing", 10, 1.0)):
            with stage(name):
                clock.work(seconds * machine * own)
    factor, share = clock.worst()
    assert factor <= 1.5 and share == 1
    blind = Clock(monkeypatch, reading=10, ranking=20, writing=10)
    with listen(lambda _: None, whole=blind.whole), stage("reading"):
        blind.work(1)
    left = 40 * machine - 1
    assert blind.said[-1][1] is not None and not 1 / 1.5 <= blind.said[-1][1] / left <= 1.5


def test_the_speed_of_the_machine_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the processor time for the same work is twice as slow; once a second at most, and never without a clock."""
    machine, times, speed = progress._Machine(), iter(range(1000)), 2.0
    took = {"now": 0.0}

    def thread_time() -> float:  # begin, after the loop, after the looking up; at a speed of half
        place = next(times) % 3
        took["now"] += 0.0 if place == 0 else speed * progress.USUAL[place - 1]
        return took["now"]

    monkeypatch.setattr(progress.time, "thread_time", thread_time)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    assert [machine.slower() for _ in range(12)] == pytest.approx([2.0] * 12)
    speed = 40.0
    assert machine.slower() == pytest.approx(2.0)  # of what was measured once in a bad moment nothing comes
    assert [machine.slower() for _ in range(12)][-1] == 3.0
    speed = 2.0
    assert [machine.slower() for _ in range(12)][-1] == pytest.approx(2.0)
    monkeypatch.setattr(progress, "EVERY", 1e9)
    monkeypatch.setattr(progress.time, "thread_time", lambda: pytest.fail("measured again"))
    assert machine.slower() == pytest.approx(2.0)
    coarse = progress._Machine()
    coarse._clock = False
    assert coarse.slower() == 1.0


def test_steps_tell_what_the_plan_did_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, choosing=20, gate=20, fit=8)
    with listen(lambda _: None, whole=clock.whole):
        for _ in steps("choosing", range(10)):  # twice as long as it usually takes
            clock.work(4)
        for _ in steps("gate", range(5)):
            for _ in steps("folds", range(4)):  # what goes on inside says nothing of the whole
                clock.work(2)
        with stage("fit"):
            clock.work(16)
    late = [(96 - at, left) for at, left in clock.said if at >= 10]
    assert max((max(left, true) + 1) / (min(left, true) + 1) for true, left in late if left is not None) <= 1.5


def test_nothing_is_said_while_something_unknown_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, counting=10, writing=lambda k: 0.5 * k["rows"])
    with listen(lambda _: None, whole=clock.whole):
        with stage("counting"):
            clock.work(10)
        assert {left for _, left in clock.said} == {None}
        know(rows=10, what_nobody_asks_for=3)
        with stage("writing"):
            clock.work(5)
    said = [left for _, left in clock.said if left is not None]
    assert len(said) == 50 and said[0] == pytest.approx(4.9) and clock.worst()[0] <= 1.05


def test_pieces_that_never_begin_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, counting=50, checking=50, ranking=10)
    with listen(lambda _: None, whole=clock.whole), stage("ranking"):  # as of a store, which is not counted
        clock.work(10)
    assert clock.worst()[0] <= 1.05


def test_loops_that_are_compiled_are_no_part_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said meanwhile, and afterwards it is as if that had never been; the stage has taken so long."""
    clock = Clock(monkeypatch, orders=20, writing=10)
    with listen(lambda _: None, whole=clock.whole):
        with stage("orders", 10) as advance:
            clock.work(3)
            before = len(clock.said)
            Aside.begin()
            Aside.begin()  # of a loop that another one calls
            clock.work(15)
            Aside.end()
            clock.work(15)
            Aside.end()
            assert {left for _, left in clock.said[before:]} == {None}
            for _ in range(8):
                advance(1)
                clock.work(2)
            assert advance.seconds == pytest.approx(49) and advance.worked == pytest.approx(19)
        clock.work(0.5)
        with stage("writing"):
            clock.work(10)
    said = [(30 + 19 + 10.5 - at, left) for at, left in clock.said if left is not None and at > 3.05]
    factors = [(max(true, left) + 1) / (min(true, left) + 1) for true, left in said]
    assert len(said) == 265 and max(factors) <= 1.5


def test_pieces_that_come_again_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, gate=20, fit=20)
    with listen(lambda _: None, whole=clock.whole):
        with stage("gate"):
            clock.work(10)
        clock.said.clear()  # that it comes again nobody knows
        for name, seconds in {"gate": 10, "fit": 20}.items():
            with stage(name):
                clock.work(seconds)
    assert clock.worst()[0] <= 1.3


def test_pieces_that_are_planned_again_are_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs, one after the other, each read and ranked; the second is twice as large."""
    clock = Clock(monkeypatch, reading=4, ranking=6, other=20, comparing=2)
    with listen(lambda _: None, whole=clock.whole) as heard:
        for size in (1, 2):
            if size == 2:
                heard.whole.know({}, {"reading": lambda _: 8, "ranking": lambda _: 12, "other": lambda _: 0})
            for name, seconds in {"reading": 4 * size, "ranking": 6 * size}.items():
                with stage(name):
                    clock.work(seconds * 1.3)
        with stage("comparing"):
            clock.work(2.6)
    factor, share = clock.worst()
    assert factor <= 1.5 and share == 1


def test_a_stage_says_nothing_where_its_steps_say_little(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(stages_of_work, "clock", lambda: now)
    with listen(lambda _: None), stage("folds", 5) as at:
        now = 1.0
        at()  # of its second 0.8 may be setting out: 1 to 4 are left
        assert at.span == pytest.approx((1.0, 4.0)) and at.remaining is None
        now = 2.0
        at()
        assert at.span == pytest.approx((3.0, 3.0)) and at.remaining == pytest.approx(3.0)
    with listen(lambda _: None), stage("groups") as at:
        for span, said in (((1.0, 10.0), None), ((2.0, 5.0), 18**0.5 - 1)):
            at.foresee(*span)
            assert at.span == span and at.remaining == (said if said is None else pytest.approx(said))
        now += 3.0
        assert at.span == (0.0, 2.0)


@pytest.mark.parametrize("said", [True, False])
def test_what_is_done_before_the_first_step_is_no_step(said: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data are read for ten seconds; then steps take one each."""
    now = 0.0
    monkeypatch.setattr(stages_of_work, "clock", lambda: now)
    with listen(lambda _: None), stage("experiment") as at:
        now = 10.0
        if said:
            at.reach(0, 4)
        now = 11.0
        at.reach(1, 4)
        assert at.span is not None and at.span[1] == pytest.approx(3.0 if said else 33.0)


def test_a_stage_inside_a_piece_takes_no_longer_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan knows of two seconds, the steps of a solver inside say that there are twenty."""
    clock = Clock(monkeypatch, learning=2, writing=1)
    with listen(lambda _: None, whole=clock.whole):
        with stage("learning"):
            for _ in steps("solving", range(40)):
                clock.work(0.5)
        with stage("writing"):
            clock.work(1)
    late = [(max(21 - at, 1.0), max(left, 1.0)) for at, left in clock.said if at >= 5 and left is not None]
    assert len(late) > 100 and max((max(pair) + 1) / (min(pair) + 1) for pair in late) <= 1.5


def test_setting_out_and_uneven_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, bootstrap=60)
    with listen(lambda _: None, whole=clock.whole), stage("bootstrap", 100) as advance:
        clock.work(20)  # before the first step is done
        for _ in range(20):
            clock.work(2)
            advance(5)
    assert clock.worst() <= (1.5, 1.0)
    clock = Clock(monkeypatch, losses=21)
    with listen(lambda _: None, whole=clock.whole):
        for seconds in steps("losses", [1, 20], even=False):
            clock.work(seconds)
    assert clock.worst()[0] <= 1.05


def test_a_first_step_that_sets_out_is_weighed_by_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.4 seconds of the first step are loading where the plan says that steps are quick, work where it does not."""
    for usual, first in ((3.4, 1.0), (4.0, 0.8)):
        clock = Clock(monkeypatch, folds=usual)
        with listen(lambda _: None, whole=clock.whole):
            for place in steps("folds", range(5)):
                clock.work(first if place == 0 else first - 0.4 if usual == 3.4 else first)
        assert clock.worst() <= (1.1, 1.0), usual


def test_the_first_step_may_do_what_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for apart in (True, False):
        clock = Clock(monkeypatch, folds=30)
        with listen(lambda _: None, whole=clock.whole):
            for place in steps("folds", range(5), apart=apart):
                clock.work(2 if place else 20)
        assert (clock.worst()[0] <= 1.5) == apart


def test_a_part_tells_how_long_its_piece_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large blocks, twice as slow as usual: long before the first is over the bootstrap in it says so."""
    for part in ({"blocks > bootstrap": 20.0}, {}):
        clock = Clock(monkeypatch, blocks=30, **part)
        with listen(lambda _: None, whole=clock.whole):
            for _ in steps("blocks", range(2)):
                with stage("intervals"):
                    for _ in steps("bootstrap", range(20)):
                        clock.work(1)
                clock.work(10)
        late = [(60 - at, left) for at, left in clock.said if at >= 6]
        worst = max((max(left, true) + 1) / (min(left, true) + 1) for true, left in late if left is not None)
        assert (worst <= 1.5) == bool(part)
    clock = Clock(monkeypatch, blocks=20, **{"blocks > bootstrap": 20.0})
    with listen(lambda _: None, whole=clock.whole), stage("blocks"):
        for _ in steps("graphs", range(10)):  # one of many in a step tells nothing
            for _ in steps("bootstrap", range(4)):
                clock.work(0.5)
    assert clock.worst()[0] <= 1.05


@pytest.mark.parametrize("work", ["rank", "audit"])
def test_the_method_tells_its_stages(work: str) -> None:
    table = votes(40, 3000)
    prefs = cc.Preferences.from_comparisons(table["winner"].to_pylist(), table["loser"].to_pylist())
    heard: set[str] = set()
    done: list[tuple[float, float | None]] = []

    def told(stages: tuple[Stage, ...]) -> None:
        heard.update(one.what for one in stages)
        done.extend((one.done, one.total) for one in stages if one.total is not None)

    with listen(told, every=0):
        if work == "rank":
            cc.rank(prefs, interval="bootstrap", replicates=100)
            expected = {"scores", "intervals", "bootstrap"}
        else:
            cc.audit(prefs, replicates=20, ask=2)
            expected = {"cycles", "best orders", "surrogates", "held-out judgments", "sampling noise"}
    assert expected <= heard
    assert all(0 <= here <= whole for here, whole in done if whole is not None)
    assert {whole for here, whole in done if here == whole} >= ({100.0} if work == "rank" else {20.0})


# -- lines of a terminal -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [1, 5, 20, 36, 60, 79, 200])
@pytest.mark.parametrize("what", ["reading [red]votes[/] 語語語語語語語語語語", "x"])
@pytest.mark.parametrize("utf", [True, False])
def test_a_line_fits_its_terminal(width: int, what: str, utf: bool) -> None:
    for total in (None, 100):
        one = Stage(what, total, None)
        one.done, one.began = 42, one.began - 100
        line = line_of(what, one, width, utf)
        assert line.cell_len <= width
        if total and width >= 10:
            assert "42%" in line.plain
        if width >= 60:
            assert "– left" in line.plain if utf else "- left" in line.plain
            assert "2:18 left" in line_of(what, one, width, utf, left=138).plain
            assert "left" not in line_of(what, one, width, utf, left=False).plain
        if not utf and what == "x":
            line.plain.encode("ascii")


def test_a_stage_of_unknown_length_stands_before_the_next() -> None:
    stages = tuple(Stage(what, total, None) for what, total in (("ranking", None), ("ranking queries", 9), ("a", 2)))
    assert [what for what, _ in rows_of(stages)] == ["ranking queries", "a"]
    many = tuple(Stage(f"stage {place}", 9, None) for place in range(9))
    assert [what for what, _ in rows_of(many)] == ["stage 0", "stage 7", "stage 8"]


# -- commands ----------------------------------------------------------------------------------------------------------
def on_terminal(*arguments: object, delay: float = 0, **env: str) -> tuple[str, str, int]:
    """Run the command with stderr on a terminal; return stdout, what the terminal got, and the status."""
    ours, theirs = pty.openpty()
    code = QUICK.format(delay=delay)
    asked = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **env}
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=theirs, env=environment, text=True) as process:
        os.close(theirs)
        got = []

        def read() -> None:
            try:
                while data := os.read(ours, 4096):
                    got.append(data)
            except OSError:  # the other end is closed
                pass

        reading = threading.Thread(target=read)
        reading.start()
        out = process.communicate()[0]
        reading.join()
    os.close(ours)
    return out, b"".join(got).decode(), process.returncode


def test_a_terminal_shows_how_far_it_is_and_keeps_nothing_of_it(log: Path) -> None:
    asked = ["rank", log, "--interval", "bootstrap", "--replicates", "2000"]
    out, seen, status = on_terminal(*asked)
    assert status == 0
    assert out.startswith("query,component,item,rank") and out.count("\n") == 61  # nothing of it in the table
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert re.search(r"boots[a-z…]+ +[━─]{20} +\d+%  0:0\d, (–|\d+:\d\d( to \d+:\d\d)?) left", shown)
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")  # the cursor is back
    last = re.split(r"\x1b\[2K", seen)[-1]
    assert "boots" not in last


def test_nothing_is_shown_before_two_seconds_nor_when_quiet_nor_into_a_pipe(log: Path) -> None:
    _, seen, _ = on_terminal("rank", log, "-o", log.with_name("r.csv"), delay=3600)
    assert "\x1b" not in seen and "reading" not in seen and "wrote" in seen
    out, seen, _ = on_terminal("rank", log, "--quiet", "--interval", "bootstrap")
    assert (out.count("\n"), seen) == (61, "")
    code = QUICK.format(delay=0)
    piped = subprocess.run([sys.executable, "-c", code, "rank", log], capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"\S+: comparisons, 1 query, 60 items, 30,000 judgments, [\d,]+ distinct, 0 ties\n"
        r"note: the scores are right where one score for each item explains all pairs; .*\n",
        piped.stderr,
    )


def test_terminals_without_colours_or_without_a_way_back(log: Path) -> None:
    asked = ["rank", log, "--interval", "bootstrap", "--replicates", "2000"]
    _, seen, _ = on_terminal(*asked, NO_COLOR="1")
    assert "boots" in seen and not re.search(r"\x1b\[3\dm", seen)
    _, seen, _ = on_terminal(*asked, TERM="dumb")
    assert "\x1b" not in seen and re.search(r"\d:\d\d, ", seen)
    assert len(seen.splitlines()) <= 4


def test_a_hostile_name_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\n[red]b\x1b[2J.csv"
    pa.csv.write_csv(votes(60, 200_000), path)
    _, seen, status = on_terminal("rank", path, "-o", tmp_path / "r.csv", COLUMNS="300")
    assert status == 0
    assert "\x1b[2J" not in seen
    assert "\\n[red]b\\x1b[2J.csv" in seen


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr(progress, "BRIEF", 0)

    def run(*arguments: object, status: int = 0) -> tuple[str, str]:
        found = 0
        try:
            main([str(one) for one in arguments])
        except SystemExit as stop:
            found = int(stop.code or 0)
        out = capsys.readouterr()
        assert found == status, out.err
        return out.out, out.err

    return run


def test_lines_of_json(log: Path, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.02)
    path = tmp_path / "r.csv"
    asked = ["rank", log, "-o", path, "--interval", "bootstrap", "--replicates", "2000", "--log-format", "json"]
    out, err = run(*asked)
    lines = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert all(list(line)[:4] == ["time", "level", "event", "message"] for line in lines)
    events = [line["event"] for line in lines]
    assert {"read", "log", "wrote", "progress", "note", "run"} == set(events)
    told = [line for line in lines if line["event"] == "progress" and line["what"] == "bootstrap"]
    assert told and all(0 <= line["done"] <= line["total"] == 2000 for line in told)
    assert [line["done"] for line in told] == sorted(line["done"] for line in told)
    assert lines[events.index("wrote")]["path"] == str(path)
    assert run(*asked, "--quiet") == ("", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["rank", "nowhere.csv"],
        ["rank", "--no-such-option"],
        ["store", "verify"],
        ["rnak"],
        ["fit", "nowhere.csv", "-m", "m", "-f", "f.csv", "--quiet"],
    ],
)
def test_an_error_is_one_line_of_json(arguments: list[str], run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 3600)
    plain = run(*arguments, status=2)[1]
    assert plain.startswith("error: ") and plain.count("\n") == 1
    if arguments == ["rnak"]:
        return
    for option in (["--log-format", "json"], ["--log-format=json"]):
        said, *rest = [json.loads(line) for line in run(*arguments, *option, status=2)[1].splitlines()]
        assert [one["event"] for one in rest] == ["run"] * ("--quiet" not in arguments)
        assert (said["level"], said["event"]) == ("error", "error")
        assert f"error: {said['message']}\n" == plain


def test_warnings_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    with saying.said_as(json=True), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("two\nlines", RuntimeWarning, stacklevel=1)
    said = json.loads(capsys.readouterr().err)
    assert (said["level"], said["message"], said["category"]) == ("warning", "two\nlines", "RuntimeWarning")


def test_words_after_two_dashes_are_no_options() -> None:
    assert early(["rank", "--", "--log-format", "json"], "log-format", ["rank"]) is None
    assert early(["rank", "--log-format=json", "--log-format", "text"], "log-format", ["rank"]) == "text"


@pytest.mark.parametrize("name", ["rank", "fit", "score", "evaluate", "audit", "ingest", "reproduce", "counterexample",
                                  "report", "export", "serve", "demo", "store verify", "store compact",
                                  "store export", "store info"])  # fmt: skip
def test_every_command_has_the_options(name: str, run: Any) -> None:
    shown = run(*name.split(), "--help")[0]
    assert all(one in shown for one in ("--quiet", "--log-format", "--summary", "--exit-status"))


def test_a_broken_terminal_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, _: str) -> int:
            raise OSError("gone")

    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr(progress, "BRIEF", 0)
    monkeypatch.setattr(sys, "stderr", Broken())
    with Progress(False, "working") as step:
        assert step is not None
        threading.Event().wait(0.5)
        step(1, 2)
