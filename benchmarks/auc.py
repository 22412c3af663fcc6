"""The AUC of 10^7 scores beside numpy.argsort of them, and DeLong's interval: a case of ``make bench``.

``python -m benchmarks.auc [NUMBER]`` prints the figures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import timed
from benchmarks.cases import Case, Row

REPEAT = 3


def areas(_folder: Path, scale: float) -> Case:
    """AUC of normal scores, a tenth and a half of them positive, against argsort in the same process."""
    size = int(1e7 * scale)
    case = Case(f"AUC of {size:,} scores")
    for share in (0.1, 0.5):
        for what, sort, area, interval in _figures(size, share):
            for name, figures in (("numpy.argsort", sort), ("concordant.auc", area), ("with interval", interval)):
                case.rows.append(Row(f"{name}, {what}", figures))
                print(f"    {name}, {what}: {figures['best']:.3f} s, peak {figures['peak']:,.0f} MiB", flush=True)
            case.bar(f"AUC of {what} over argsort", area["best"] / sort["best"], "×", most=2)
    return case


def _figures(size: int, share: float) -> list[tuple[str, Any, Any, Any]]:
    """Figures of argsort, AUC and interval for distinct scores and for scores of a thousand values."""
    from concordant.losses.metrics.auc import auc, auc_interval

    rng = np.random.default_rng(0)
    label = (rng.random(size) < share).astype(np.float64)
    score = rng.normal(size=size) + label
    found = []
    for kind, column in (("distinct scores", score), ("a thousand scores", np.round(score * 100) / 100)):
        work: tuple[Callable[[], Any], ...] = (
            lambda column=column: np.argsort(column),
            lambda column=column: auc(column, label),
            lambda column=column: auc_interval(column, label),
        )
        sort, area, interval = (timed(one, REPEAT)[0] for one in work)
        found.append((f"{kind}, {share:.0%} positive", sort, area, interval))
    return found


if __name__ == "__main__":
    begun = time.perf_counter()
    areas(Path(), (float(sys.argv[1]) if len(sys.argv) > 1 else 1e7) / 1e7)
    print(f"    {time.perf_counter() - begun:.0f} s")
