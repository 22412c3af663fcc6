"""Value and gradient of pairwise losses of one query with 10^6 items and two grades: a case of ``make bench``.

``python -m benchmarks.graded_lists NAME ITEMS`` measures one contender; the case gives each a process of its own, with
compiled code warm, as a fit would find it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import add, report
from benchmarks.cases import Case

PHIS = ("hinge", "squared-hinge", "exponential")
BLOCK = 2_000
SAMPLE = 50
"""All pairs are timed on this part of the items, and their time scaled by its square."""


def _data(items: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.normal(size=items), (draw.random(items) < 0.3).astype(np.int64)


def ours(phi: str, items: int) -> Callable[[], Any]:
    """``graded_loss``: ranking the grades, sorting, value and gradient."""
    from concordant.losses.graded import graded_loss

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
    sort = add(case, "graded_lists", "NumPy, one argsort of the scores", "argsort", items)
    for phi in PHIS:
        row = add(case, "graded_lists", f"concordant, {phi}", phi, items)
        row.note = f"{row.seconds / sort.seconds:.1f}× one argsort"
        case.bar(f"{phi}, time", row.seconds, " s", most=1)
        extra = (row.peak - row.result["before"]) * 2**20 / items
        case.bar(f"{phi}, memory beyond the inputs, an item", extra, " B", most=200)
    plain = add(case, "graded_lists", f"NumPy, all pairs in blocks, {items // SAMPLE:,} items", "all pairs", items)
    plain.note = f"scaled to {items:,} items: {plain.seconds * SAMPLE**2:,.0f} s, without the gradient"
    return case


def main(name: str, items: int) -> None:
    """Measure one contender and print its figures."""
    report({"argsort": argsort, "all pairs": all_pairs}[name](items) if name not in PHIS else ours(name, items), 3)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
