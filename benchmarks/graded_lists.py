"""Value and gradient of pairwise losses of one query with 10^6 items and two grades: a case of ``make bench``.

``python -m benchmarks.graded_lists NAME ITEMS`` measures one contender; the case gives each a process of its own, with
compiled code warm, as a fit would find it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case, Row
from benchmarks.measure import measure

PHIS = ("hinge", "squared-hinge", "exponential")
BLOCK = 2_000
SAMPLE = 50
"""All pairs are timed on this part of the items, and their time scaled by its square."""


def _data(items: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.normal(size=items), (draw.random(items) < 0.3).astype(np.int64)


def ours(phi: str, items: int) -> Callable[[], Any]:
    """``graded_loss``: ranking the grades, sorting, value and gradient."""
    from concordant.surrogates.graded import graded_loss

    score, grade = _data(items)
    graded_loss(score[:100], grade[:100], None, phi)  # compiles
    return lambda: graded_loss(score, grade, None, phi)


def argsort(items: int) -> Callable[[], Any]:
    """One sort of the scores: what no method by sorting can beat."""
    score, _ = _data(items)
    return lambda: np.argsort(score)


def all_pairs(items: int) -> Callable[[], Any]:
    """The hinge in blocks of all pairs with NumPy, on a part of the items."""
    score, grade = _data(items // SAMPLE)
    high, low = score[grade == 1], score[grade == 0]

    def work() -> float:
        value = 0.0
        for begin in range(0, len(high), BLOCK):
            short = 1.0 - (high[begin : begin + BLOCK, None] - low)
            value += float(short[short > 0].sum())
        return value

    return work


def graded_lists(_folder: Path, scale: float) -> Case:
    """Losses of all pairs of one query with 10^6 items."""
    items = int(1e6 * scale)
    case = Case(f"value and gradient of all pairs of one query, {items:,} items, two grades")
    sort = _add(case, "NumPy, one argsort of the scores", "argsort", items)
    for phi in PHIS:
        row = _add(case, f"concordant, {phi}", phi, items)
        row.note = f"{row.seconds / sort.seconds:.1f}× one argsort"
        case.bar(f"{phi}, time", row.seconds, " s", most=1)
        extra = (row.peak - row.result["before"]) * 2**20 / items
        case.bar(f"{phi}, memory beyond the inputs, an item", extra, " B", most=200)
    plain = _add(case, f"NumPy, all pairs in blocks, {items // SAMPLE:,} items", "all pairs", items)
    plain.note = f"scaled to {items:,} items: {plain.seconds * SAMPLE**2:,.0f} s, without the gradient"
    return case


def _add(case: Case, label: str, name: str, items: int) -> Row:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.graded_lists", name, str(items)],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        row = Row(label, {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:300]})
        print(f"    {label}: {row.result['error']}", flush=True)
    else:
        row = Row(label, json.loads(done.stdout))
        print(f"    {label}: {row.seconds:.3f} s, peak {row.peak:,.0f} MiB", flush=True)
    case.rows.append(row)
    return row


def main(name: str, items: int) -> None:
    """Measure one contender and print its figures."""
    work = {"argsort": argsort, "all pairs": all_pairs}[name](items) if name not in PHIS else ours(name, items)
    figures, _ = measure(work, 3)
    best = min(figures["seconds"])
    figures |= {
        "best": best,
        "first": figures["seconds"][0],
        "busy": figures["processor"][figures["seconds"].index(best)],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
