"""A program: draw hostile cases of every family for some minutes, and say which of them failed and how to repeat them.

``python tests/fuzz.py --minutes 5 --seed 7`` (``make fuzz MINUTES=5 SEED=7``) draws; ``--repeat files:7:123`` runs case
123 of a family again. A case depends on its family, seed and number only. To add a family, add a line to ``FAMILIES``:
its name, its share of the time, and a function of a ``random.Random`` that returns None or says what is wrong. Cases
run in a process of their own, which may crash or hang: that is a failure, too, and the next case gets a new process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from drawn_calls import check_call
from drawn_checks import (
    Stuck,
    check_command,
    check_damaged,
    check_good,
    check_model,
    check_options,
    check_store,
    limited,
    one_connection,
    seen,
    warm,
)

__all__ = ["FAMILIES", "Family", "failure_of", "main"]


MEMORY = 12 << 30
"""Bytes of addresses that the process of the cases may have."""


@dataclass(frozen=True)
class Family:
    """Cases of one sort; one that takes more than ``limit`` seconds of processor time, or ten times as many, hangs."""

    name: str
    share: float
    check: Callable[[Random], str | None]
    limit: float = 10.0


FAMILIES = [
    Family("good", 4, check_good),
    Family("damaged", 9, check_damaged),
    Family("command", 3, check_command, 60.0),
    Family("options", 3, check_options, 60.0),
    Family("models", 0.5, check_model, 60.0),
    Family("stores", 0.5, check_store, 60.0),
    Family("calls", 0.5, check_call),
]
BY_NAME = {family.name: family for family in FAMILIES}


def failure_of(family: Family, seed: object, number: int) -> str | None:
    """Run one case in this process; return what is wrong, None where nothing is."""
    try:
        with limited(family.limit):
            return family.check(Random(f"{family.name}:{seed}:{number}"))
    except Stuck:
        return f"a hang: more than {family.limit:g} s\n{traceback.format_exc(limit=-4)}"
    except Exception:
        return traceback.format_exc(limit=-6)


def work(pipe: Any) -> None:
    """Run the cases that come through a pipe until none comes; what asks for much memory fails alone."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with one_connection():
        warm()
        while (case := pipe.recv()) is not None:
            name, seed, number = case
            seen.clear()
            pipe.send((failure_of(BY_NAME[name], seed, number), seen.copy()))


class Worker:
    """The process that runs cases; another one after a crash or a hang."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.process: Any = None

    def ready(self) -> None:
        """Start a process where there is none."""
        if self.process is None:
            self.pipe, theirs = self.context.Pipe()
            self.process = self.context.Process(target=work, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
            self.pipe.send(("good", "start", 0))  # so that no case waits for the package to be loaded
            self.pipe.recv()

    def run(self, family: Family, seed: str, number: int) -> tuple[str | None, Counter[tuple[str, str]]]:
        """Run one case; return what is wrong, and what was seen."""
        self.ready()
        self.pipe.send((family.name, seed, number))
        said = f"a hang: more than {10 * family.limit:g} s, without an end"
        try:
            if self.pipe.poll(10 * family.limit):
                found: tuple[str | None, Counter[tuple[str, str]]] = self.pipe.recv()
                return found
            self.process.kill()
            self.process.join()
        except EOFError:
            self.process.join()
            said = f"a crash: the process ended with {self.process.exitcode}"
        self.process = None
        return said, Counter()

    def stop(self) -> None:
        """Let the process end."""
        if self.process is not None:
            self.pipe.send(None)
            self.process.join(10)


def run(minutes: float, seed: str, chosen: list[Family], most: int) -> int:
    """Give every family its share of the time; return the number of failures."""
    spent, done, failures = Counter[str](), Counter[str](), Counter[str]()
    became = Counter[tuple[str, str]]()
    worker, began = Worker(), time.monotonic()
    while time.monotonic() - began < minutes * 60 and sum(failures.values()) < most:
        family = min(chosen, key=lambda one: spent[one.name] / one.share)
        worker.ready()
        number, start = done[family.name], time.monotonic()
        said, new = worker.run(family, seed, number)
        became += new
        spent[family.name] += max(time.monotonic() - start, 1e-4)  # type: ignore[assignment]
        done[family.name] += 1
        if said is not None:
            failures[family.name] += 1
            print(f"FAILED {family.name}:{seed}:{number}\n{said.rstrip()}", flush=True)
            print(f"repeat: python tests/fuzz.py --repeat {family.name}:{seed}:{number}\n", flush=True)
    worker.stop()
    for family in chosen:
        facts = ", ".join(f"{n:,} {what}" for (name, what), n in sorted(became.items()) if name == family.name)
        counts = f"{done[family.name]:7,} cases, {failures[family.name]} failed, {spent[family.name]:.0f} s"
        print(f"{family.name:8} {counts}{f' ({facts})' if facts else ''}")
    return sum(failures.values())


def main() -> int:
    """Read the options, draw, and return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", default=time.strftime("%Y%m%d%H%M%S"))
    parser.add_argument("--only", nargs="*", choices=list(BY_NAME))
    parser.add_argument("--most", type=int, default=50, help="stop after so many failures")
    parser.add_argument("--repeat", metavar="FAMILY:SEED:NUMBER")
    asked = parser.parse_args()
    if asked.repeat:
        name, seed, number = asked.repeat.split(":")
        with one_connection():
            warm()
            said = failure_of(BY_NAME[name], seed, int(number))
        print(said or "nothing is wrong")
        return int(said is not None)
    chosen = [family for family in FAMILIES if not asked.only or family.name in asked.only]
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    return int(run(asked.minutes, asked.seed, chosen, asked.most) > 0)


if __name__ == "__main__":
    sys.exit(main())
