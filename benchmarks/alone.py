"""A contender in a process of its own: ``add`` starts ``python -m benchmarks.MODULE …``, which ends with ``report``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, Row
from benchmarks.measure import measure

__all__ = ["add", "report", "timed"]


def add(case: Case, module: str, label: str, *arguments: object) -> Row:
    """Run a contender, show what it needed and keep it with the case; a failure is a result too."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *(str(argument) for argument in arguments)],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        row = Row(label, {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:300]})
        print(f"    {label}: {row.result['error']}", flush=True)
    else:
        row = Row(label, json.loads(done.stdout.strip().splitlines()[-1]))
        first = row.result["first"]
        print(f"    {label}: {row.seconds:.3f} s, first call {first:.3f} s, peak {row.peak:,.0f} MiB", flush=True)
    case.rows.append(row)
    return row


def timed(work: Callable[[], Any], repeat: int) -> tuple[dict[str, Any], Any]:
    """Measure the work: its figures, the best and the first run named apart, and what it returned."""
    figures, result = measure(work, repeat)
    best = min(figures["seconds"])
    figures |= {
        "best": best,
        "first": figures["seconds"][0],
        "busy": figures["processor"][figures["seconds"].index(best)],
    }
    return figures, result


def report(work: Callable[[], Any], repeat: int, *, answer: str | None = None) -> None:
    """Measure the work and print its figures as one line of JSON, what it returned under the name ``answer``."""
    figures, result = timed(work, repeat)
    print(json.dumps(figures if answer is None else figures | {answer: result}))
