"""``python -m benchmarks.time_left [CASE …]``: is the time that a command says is left the time that it then takes?

Each case runs one command in a process of its own, whose clock is that of its processor (that others use the machine,
too, changes nothing then). Five times a second it is written down for how long the command has gone on and what a
terminal would say is left (nothing before two seconds): a time, or between what and what it lies. From a tenth on
the worst factor between what was said and what it then took counts, and for which share of that time one was said. A
second or less is one statement, as in the commands, and a second more or less, as times are shown, is none. Where
between what and what it lies is said, it counts how often it did.

Each case runs twice, the second time knowing how long the first took (``CONCORDANT_DURATIONS``), from files made anew
at the same place. Beside the worst factor of the second run stands that of who says what the first run took, less what
has gone by: what a machine allows which is not always as fast.

A second table is of the stages that took two seconds or more, as lines of JSON say them (``stages``): from a tenth of
a stage on, what was said to be left of it against what it then took; of stages of one name the worst.

``--others`` takes the cases of ``benchmarks.other_commands``, on which no plan was tuned.

``--unknowable`` runs ``tree`` on two logs of the same rows, items and workers, on the one of which its tests divide the
judgments again and again, on the other not at all, and prints how far apart what is left of both is after a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.long_commands import CASES as TUNED
from benchmarks.other_commands import CASES as OTHERS

WATCHED = """
import json, sys, time
import concordant.progress as heard
import concordant.stages as reckoned
from concordant.apps.commands import main, progress

reckoned.clock = time.process_time
told, stages, heard_of = [], [], None

def seen(one):
    left = one.remaining
    return one.number, one.seconds, None if left is None else max(left, reckoned.LEAST)

def watch(self, listener):
    global heard_of
    heard_of, machine = listener, progress._Machine()
    while not self._ended.wait(0.2):
        listener.whole.slower = machine.slower()
        said = progress.time_left(), progress.between()
        told.append((time.process_time(), *said, [seen(one) for one in listener.stages]))

def begin(self, one, opened=heard.Listener.begin):
    one.number, inside = len(stages), [each.what for each in self.stages]
    stages.append({"what": [*inside, one.what], "took": None})
    opened(self, one)

def end(self, one, closed=heard.Listener.end):
    stages[one.number]["took"] = one.seconds
    closed(self, one)

heard.Listener.begin, heard.Listener.end = begin, end

made = progress.Progress.__init__
progress.Progress.__init__ = lambda self, *args, **more: (made(self, *args, **more), setattr(self, "shown", True))[0]
progress.Progress._watch = watch
try:
    main()
finally:
    with open(sys.argv[0], "w") as file:
        whole = heard_of.whole
        pieces = {name: [whole.usual.get(name), took] for name, took in whole.took.items()}
        found = {"end": time.process_time(), "told": told, "stages": stages, "pieces": pieces, "known": whole.known}
        found |= {"slower": whole.slower, "compiling": reckoned.Aside.seconds()}
        json.dump(found, file)
"""
"""Run in the place of ``concordant``; ``sys.argv[0]`` names the file of what was said."""
NEAR = 1.0
"""Seconds more or less that are none."""
CASES = TUNED | OTHERS
LEAST = 1.0
"""Seconds that are not told apart from less."""
SHOWN = 2.0
"""Seconds before which a command shows nothing."""
LONG = 2.0
"""Seconds of a stage from which on what is said of it is judged."""


def watched(name: str, keep: str | None = None, times: int = 1) -> list[dict[str, Any]]:
    """Run a case some times; return of each its seconds, the worst factor, the share of the time in which one was said.

    The first runs again where loops had to be compiled, which is done once on a machine.
    """
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="concordant-left-") as folder:
        earlier = str(Path(folder) / "durations.json")
        while len(runs) < times:
            found = _run(name, Path(folder) / "case", earlier)
            if found["compiling"] > 0 and not runs and Path(earlier).exists():
                Path(earlier).unlink()
                found = _run(name, Path(folder) / "case", earlier)
            runs.append(found)
            if keep is not None:
                Path(f"{keep}-{len(runs)}.json").write_text(json.dumps(found))
    return [_judged(found) for found in runs]


def _run(name: str, at: Path, earlier: str) -> dict[str, Any]:
    """Run a case once, in a folder that is made for it; return what it said."""
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    asked = CASES[name](at)
    told = at / "told.json"
    code = f"import sys; sys.argv = {[str(told), *asked]!r}\n{WATCHED}"
    own = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CONCORDANT_DURATIONS": earlier}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=at, env=os.environ | own, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not told.exists():
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    error = done.stderr[-300:] if done.returncode else ""
    return json.loads(told.read_text()) | {"error": error}


def _judged(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be said of what a run said."""
    shown = [one for one in found["told"] if one[0] >= SHOWN]
    whole = judged([(at, left) for at, left, _, _ in shown], found["end"])
    late = [(between, found["end"] - at) for at, _, between, _ in shown if at >= found["end"] / 10]
    ranges = [(least, most, true) for between, true in late if between for least, most in [between]]
    held = [least - NEAR <= max(true, LEAST) <= most + NEAR for least, most, true in ranges]
    whole |= {"ranges": round(len(held) / max(len(late), 1), 2), "held": round(sum(held) / max(len(held), 1), 2)}
    whole |= {"wide": round(float(np.median([most / least for least, most, _ in ranges])), 1) if ranges else None}
    stages = of_stages([(at, left, opened) for at, left, _, opened in found["told"]], found["stages"])
    kept = {name: found[name] for name in ("pieces", "known", "slower", "error")}
    return whole | kept | {"stages": stages}


def judged(told: list[tuple[float, float | None]], end: float) -> dict[str, Any]:
    """Return the worst factor between what was said to be left and what was, from a tenth of the whole on."""
    late = [(at, left) for at, left in told if at >= end / 10]
    said = [(at, left, end - at) for at, left in late if left is not None]
    pairs = [(max(left, LEAST), max(true, LEAST)) for _, left, true in said]
    factors = [(max(pair) + NEAR) / (min(pair) + NEAR) for pair in pairs]
    worst = max(range(len(said)), key=lambda place: factors[place], default=None)
    return {
        "seconds": round(end, 1),
        "statements": len(said),
        "share": round(len(said) / max(len(late), 1), 2),
        "worst": None if worst is None else round(factors[worst], 2),
        "at": None if worst is None else [round(float(x), 1) for x in said[worst]],
        "beyond": round(sum(one > 1.5 for one in factors) / max(len(factors), 1), 2),
    }


def of_stages(told: list[Any], stages: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what ``judged`` says of the stages that took long, by their names: of several of one name the worst."""
    said: dict[int, list[tuple[float, float | None]]] = {}
    for _, _, opened in told:
        for number, seconds, left in opened:
            said.setdefault(number, []).append((seconds, left))
    found: dict[str, dict[str, Any]] = {}
    for number, statements in said.items():
        took, name = stages[number]["took"], " > ".join(stages[number]["what"][1:])
        if took is None or took < LONG or not name:  # the outermost is the whole command's
            continue
        one = judged(statements, took)
        many = found[name]["number"] + 1 if name in found else 1
        if many == 1 or (one["worst"] or 0.0) > (found[name]["worst"] or 0.0):
            found[name] = one
        found[name]["number"] = many
    return found


def _pieces(row: dict[str, Any]) -> str:
    """What each piece of the plan took, what it was thought to take, and what was known of the log."""
    lines = [
        f"    {took:7.2f} s, planned {'unknown' if usual is None else f'{usual:7.2f}'}: {name}"
        for name, (usual, took) in row["pieces"].items()
        if took > 0.05 or (usual or 0.0) > 0.05
    ]
    lines.append(f"    the machine by itself: {row['slower']:.2f} times as slow")
    return "\n".join([*lines, "    " + ", ".join(f"{name} {value:.6g}" for name, value in row["known"].items())])


UNKNOWABLE = "tree: workers", "tree: workers, all alike"
"""Two cases that differ in nothing but who won."""


def unknowable() -> None:
    """Print what is left of two logs that look alike when a tenth of the longer work is done."""
    took = {name: watched(name)[0]["seconds"] for name in UNKNOWABLE}
    tenth = max(took.values()) / 10
    left = {name: seconds - tenth for name, seconds in took.items()}
    for name, seconds in took.items():
        print(f"{name}: {seconds} s; after {tenth:.1f} s of it {left[name]:.1f} s are left")
    apart = (max(left.values()) + NEAR) / (min(left.values()) + NEAR)
    print(f"whatever is said then, is wrong by a factor of {apart**0.5:.2f} or more in one of them")


def by_hindsight(before: float, now: float) -> float:
    """Return the worst factor of who takes a run of ``now`` seconds to last for ``before``, from a tenth of it on."""
    at = np.linspace(now / 10, now, 1000)
    said, true = np.maximum(before - at, LEAST), np.maximum(now - at, LEAST)
    return float(((np.maximum(said, true) + NEAR) / (np.minimum(said, true) + NEAR)).max())


HEAD = "seconds | said in | beyond 1.5 | worst factor | (at, said, then took)"


def _row(row: dict[str, Any]) -> list[Any]:
    return [row["seconds"], f"{row['share']:.0%}", f"{row['beyond']:.0%}", row["worst"], row["at"]]


def _line(name: str, runs: list[dict[str, Any]]) -> list[Any]:
    first, second = runs
    ranges = [f"{first['ranges']:.0%}", first["wide"], f"{first['held']:.0%}"]
    hindsight = round(by_hindsight(first["seconds"], second["seconds"]), 2)
    return [name, *_row(first), *ranges, *_row(second), hindsight, first["error"]]


def _tell(counts: list[list[dict[str, Any]]]) -> None:
    """Print how many cases are within 1.5, the first time and the second, and by who knows the first."""
    for place, which in enumerate(("first", "second")):
        worst = [runs[place]["worst"] for runs in counts if runs[place]["worst"] is not None]
        share = np.mean([runs[place]["share"] for runs in counts])
        said = f"{len(worst)} of {len(counts)} said a time, in {share:.0%} of their time"
        within = [sum(one <= factor for one in worst) for factor in (1.5, 2.0)]
        print(f"the {which} run: {said}; {within[0]} within 1.5, {within[1]} within 2")
    known = [by_hindsight(first["seconds"], second["seconds"]) for first, second in counts]
    print(f"of who knows how long the first run took: {sum(one <= 1.5 for one in known)} of {len(known)} within 1.5")
    held = [runs[0]["held"] for runs in counts if runs[0]["ranges"]]
    print(f"between what and what the first run's lay held in {np.mean(held or [0.0]):.0%} of the time")


def main() -> None:
    """Run the chosen cases, and print a table of them and one of their stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="a part of their names; none: all")
    parser.add_argument("--keep", help="folder for what was said")
    parser.add_argument("--pieces", action="store_true", help="what each piece of the plan took, and was thought to")
    parser.add_argument(
        "--unknowable", action="store_true", help="in the place of that: two trees that nobody can tell"
    )
    parser.add_argument("--others", action="store_true", help="cases on which no plan was tuned")
    options = parser.parse_args()
    if options.unknowable:
        unknowable()
        return
    among = OTHERS if options.others else TUNED
    chosen = [name for name in among if not options.cases or any(one in name for one in options.cases)]
    span = "a span in | most by least | held"
    print(f"| command | {HEAD} | {span} | again: {HEAD} | of who knows the first |\n{'|---' * 15}|")
    stages: list[list[Any]] = []
    counts: list[list[dict[str, Any]]] = []
    for number, name in enumerate(chosen):
        try:
            runs = watched(name, options.keep and f"{options.keep}/{number}", 2)
        except RuntimeError as problem:
            print(problem, flush=True)
            continue
        counts.append(runs)
        print("|", " | ".join(map(str, _line(name, runs))), "|", flush=True)
        if options.pieces:
            print(_pieces(runs[0]), flush=True)
        stages += [[name, what, one["number"], *_row(one)] for run in runs for what, one in run["stages"].items()]
    print(f"\n| command | stage | of them | {HEAD} |\n{'|---' * 8}|")
    for line in stages:
        print("|", " | ".join(map(str, line)), "|")
    print()
    _tell(counts)


if __name__ == "__main__":
    main()
