"""How long pieces of work take: what is said to be left of a command.

A piece is a stage of the work (``concordant.progress``) by its name. Its seconds are those of a usual machine (one core
of 2.5 GHz), of what is known of the log: before it is counted some of its rows say what it may hold, afterwards it is
known. ``python -m benchmarks.time_left`` measures them against what the commands then take. Here are those of files,
in ``plans`` those of logs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from concordant.apps.commands.saying import one_line
from concordant.preferences.preferences import Lists, Preferences
from concordant.progress import Cost

READING: dict[str, Cost] = {
    "counting rows": lambda k: 1.4e-7 * k["rows"] + 2.5e-7 * k["distinct"],
    "checking rows": lambda k: 3e-8 * k["distinct"],
    "adding up judgments": lambda k: 1.2e-7 * k["distinct"],
}


def counts_of(prefs: Preferences) -> dict[str, float]:
    """Return what the costs ask for, of judgments that are read."""
    size = prefs.member_groups.sizes.astype(np.float64)
    counts = {"judgments": float(len(prefs)), "distinct": float(prefs.work.sum())}
    counts |= {"different": float(prefs.distinct), "clusters": float(len(prefs.clusters or ()))}
    counts |= {"queries": float(len(prefs.queries)), "nodes": float(size.sum())}
    counts |= {"entries": counts["distinct"]} if isinstance(prefs, Lists) else {}
    return counts | {f"power {p}": float((size**p).sum()) for p in (2, 3)}


def cells_of(path: str) -> float:
    """Numbers in a table of features, about."""
    try:
        if path.endswith(".parquet") and os.path.isfile(path):
            facts = pq.read_metadata(path)
            return float(facts.num_rows * facts.num_columns)
        return os.path.getsize(path) / 10
    except (OSError, ValueError):
        return 0.0


def scoring(options: Any) -> dict[str, Cost]:
    """Return the pieces of ``score``: rows are read, scored, put in order, written."""
    cells = cells_of(options.features)
    rows = cells / 12
    return {
        f"reading {options.features}": lambda _: 0.1 + 2e-8 * cells,
        "scores": lambda _: 0.05 + 6e-7 * rows,
        f"writing {options.output}": lambda _: 1e-6 * rows,
    }


def ranking_scores(path: str) -> dict[str, Cost]:
    """Return the pieces of ``scores``."""
    cells = cells_of(path)
    return {one_line(f"reading {path}"): lambda _: 0.05 + 1e-7 * cells, "ranking": lambda _: 0.1 + 1.7e-6 * cells}


def moving(what: str, path: str, each: float = 2e-7) -> dict[str, Cost]:
    """Return the one piece of what reads or writes all of a store: as long as that is large."""
    size = sum(one.stat().st_size for one in Path(f"{path}.parts").rglob("*") if one.is_file())
    return {one_line(what): lambda _: 0.05 + each * size}


def ingesting(logs: Sequence[str], named: Callable[[int], str]) -> dict[str, Cost]:
    """Return the pieces of taking in logs, one after the other; of several each takes as long as it is large."""
    if len(logs) == 1:
        return READING | {"writing judgments": lambda k: 1.2e-7 * k["distinct"]}
    sizes = [float(os.path.getsize(log)) if os.path.isfile(log) else 0.0 for log in logs]

    def taking(size: float) -> Cost:
        return lambda _: 0.1 + 8e-8 * size

    return {named(at): taking(size) for at, size in enumerate(sizes)}
