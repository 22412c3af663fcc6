"""How long pieces of work take: what is said to be left of a command.

A piece is a stage of the work (``concordant.progress``) by its name. Its seconds are those of a usual machine (one core
of 2.5 GHz), of what is known of the log: before it is counted some of its rows say what it may hold, afterwards it is
known. ``python -m benchmarks.time_left`` measures them against what the commands then take. Here are those of files,
in ``plans`` those of logs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from concordant.apps.commands.saying import one_line
from concordant.losses.metrics.metrics import canonical
from concordant.preferences.preferences import Lists, Preferences
from concordant.time_left import Cost

READING: dict[str, Cost] = {
    "counting rows": lambda k: (
        (1.0 + 0.6 * k.get("packed", 0.0))
        * (1e-6 * k["rows"] if "entries" in k else 1.35e-7 * k["rows"] + 2.5e-7 * k["distinct"])
    ),
    "checking rows": lambda k: 3e-8 * k["distinct"] * ("entries" not in k),
    "checking lists": lambda k: 4.5e-7 * k["rows"] * ("entries" in k),
    "adding up judgments": lambda k: 2.4e-7 * k["rows"] if "entries" in k else 8e-8 * k["distinct"],
}


def counts_of(prefs: Preferences) -> dict[str, float]:
    """Return what the costs ask for, of judgments that are read."""
    size = prefs.member_groups.sizes.astype(np.float64)
    counts = {"judgments": float(len(prefs)), "distinct": float(prefs.work.sum())}
    counts |= {"different": float(prefs.distinct), "clusters": float(len(prefs.clusters or ()))}
    counts |= {"queries": float(len(prefs.queries)), "nodes": float(size.sum())}
    if isinstance(prefs, Lists):
        counts["entries"] = counts["distinct"]
        if prefs.kind == "selections":
            counts |= {"clicks": 1.0, "several": float((prefs.lists.sums(prefs.list_value > 0) > 1).any())}
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


def size_of(path: str) -> float:
    """Bytes of a file; 0 of anything else."""
    return float(os.path.getsize(path)) if os.path.isfile(path) else 0.0


def features_of(path: str, cell: float = 2.5e-8) -> Cost:
    """Seconds of reading a table of features, or graded lists: Parquet by its cells, text by its bytes."""
    if path.endswith(".parquet"):
        cells = cells_of(path)
        return lambda _: 0.1 + cell * cells
    size = size_of(path)
    each = 1e-8 if path.lower().endswith((".csv", ".tsv", ".jsonl")) else 4e-8
    return lambda _: 0.1 + each * size


def scoring(options: Any) -> dict[str, Cost]:
    """Return the pieces of ``score``: rows are read, scored, put in order, written."""
    rows = rows_of(options.features)
    judged = rows_of(options.judgments) if options.judgments is not None else 0.0
    before: dict[str, Cost] = {}
    if options.abstain is not None:
        before["choosing when to abstain"] = lambda _: 0.3 + 5e-6 * judged + 1e-6 * rows
    return before | {
        f"reading {options.features}": features_of(options.features, 5e-8),
        "scores": lambda _: 0.05 + 5e-7 * rows,
        "tiers": lambda _: 8e-6 * rows * (options.abstain is not None),
        f"writing {options.output}": lambda _: 5e-7 * rows,
    }


def streaming(path: str) -> dict[str, Cost]:
    """Return the pieces of ``score`` of features that stay on disk."""
    cells, rows = cells_of(path), rows_of(path)
    return {
        "looking for rows that repeat": lambda _: 0.05 + 5e-7 * rows,
        "scores": lambda _: 0.05 + 1.6e-8 * cells,
        "ranks": lambda _: 0.05 + 1e-6 * rows,
    }


def rows_of(path: str) -> float:
    """Rows of a table, about: where they are not written down, as if it had a dozen columns."""
    try:
        if path.endswith(".parquet") and os.path.isfile(path):
            return float(pq.read_metadata(path).num_rows)
    except (OSError, ValueError):
        return 0.0
    return cells_of(path) / 12


def evaluating(options: Any, names: Iterable[str], features: str | None = None) -> dict[str, Cost]:
    """Return the pieces of ``evaluate`` by labels: two tables are read and matched, and each metric is looked at."""
    rows, metrics = cells_of(options.labels) / 3, sum(of_metrics(names))
    pieces = {f"reading {options.labels}": _reading(options.labels, 0.75)}
    if features is not None:  # a model scores them
        cells = cells_of(features)
        pieces |= {f"reading {features}": lambda _: 0.1 + 2e-8 * cells}
    else:
        pieces |= {f"reading {options.scores}": _reading(options.scores)}
    pieces |= {"matching rows": lambda _: 0.02 + 3.5e-7 * rows, "metrics": lambda _: 0.01 + 8e-8 * rows * metrics}
    if options.against is not None:
        again = _reading(options.against)
        pieces |= {one_line(f"evaluating {options.against}"): lambda k: again(k) + (3.5e-7 + 8e-8 * metrics) * rows}
    return pieces


DEARER = {"err": 2.0, "auc": 5.0, "kendall-tau": 9.0, "pairwise-loss": 21.0}
"""How many times longer a metric takes than the others, which take as long as each other."""


def of_metrics(names: Iterable[str]) -> list[float]:
    """What each metric takes beside the others.

    >>> of_metrics(["ndcg@10", "tau"])
    [1.0, 9.0]
    """
    return [DEARER.get(canonical(name.partition("@")[0]) or "", 1.0) for name in names]


def judging(options: Any, parts: int = 0) -> dict[str, Cost]:
    """Return the pieces of ``evaluate`` by judgments: of a ranking by all of them, or by each of so many parts."""
    foretelling: Cost = lambda k: 0.02 + 2e-6 * k["distinct"]  # noqa: E731
    if parts:
        pieces: dict[str, Cost] = {
            "dealing parts": lambda k: 0.02 + 1.7e-6 * k["distinct"],
            "parts held out": lambda k: parts * (0.05 + 8.5e-7 * k["distinct"]),
        }
        counting: Cost = lambda k: 3e-7 * k["rows"]  # noqa: E731
        return {"counting rows in memory": counting} | READING | pieces | {"foretelling judgments": foretelling}
    pieces = {f"reading {options.features or options.scores}": _reading(options.features or options.scores)}
    return pieces | READING | {"foretelling judgments": foretelling}


def _reading(path: str, part: float = 1.0) -> Cost:
    """Seconds of a table of scores, or ``part`` of it, of labels: Parquet by its cells, text by its bytes."""
    each = part * (3.8e-8 if path.endswith(".parquet") else 3.7e-7)
    cells = cells_of(path)
    return lambda _: 0.02 + each * cells


def ranking_scores(path: str) -> dict[str, Cost]:
    """Return the pieces of ``scores``: of a table whose rows are scores one cell of each row is one."""
    cells, rows = cells_of(path), rows_of(path)
    scores = rows if cells <= LONG * rows and path.endswith(".parquet") else cells
    return {one_line(f"reading {path}"): lambda _: 0.05 + 1e-7 * cells, "ranking": lambda _: 0.1 + 2.2e-6 * scores}


LONG = 6
"""Columns of a table that is thought to have a row for each score."""


def moving(what: str, path: str, each: float) -> dict[str, Cost]:
    """Return the one piece of what reads or writes all of a store: as long as that is large."""
    size = sum(one.stat().st_size for one in Path(f"{path}.parts").rglob("*") if one.is_file())
    return {one_line(what): lambda _: 0.05 + each * size}


def putting_together(what: str, logs: Sequence[str]) -> dict[str, Cost]:
    """Return the one piece of reading comparisons by their ids, of people and of a judge model, and matching them."""
    rows = sum(map(rows_of, logs))
    return {one_line(what): lambda _: 0.1 + 3.3e-6 * rows}


def searching(items: int, budget: int) -> dict[str, Cost]:
    """Return the pieces of ``counterexample``: populations of so many items are searched, by so many programmes."""
    programmes = min(budget, 6 * 2 ** min(max(items, 2), 6))  # of other numbers none is searched
    return {
        "linear programmes": lambda _: 0.003 * programmes,
        "refining the worst": lambda _: 0.2,
        "whole votes": lambda _: 0.6,
    }


def looking(file: str) -> dict[str, Cost]:
    """Return the pieces of ``doctor``: a log is read, all its columns are looked at, then those of judges and times."""
    first, every, one = (2e-8, 1.1e-7, 1.2e-8) if file.lower().endswith(".parquet") else (1.3e-7, 3.2e-7, 1e-7)
    return READING | {
        "counting rows": lambda k: 0.05 + first * k["rows"] + 5e-7 * k["distinct"],
        "looking at columns": lambda k: 0.05 + every * k["rows"] + 3e-7 * k["distinct"],
        "counting by columns": lambda k: 0.02 + one * k["rows"],
    }


def unknown(_: Mapping[str, float]) -> float:
    """The cost of a piece of which only its own steps tell how long it takes."""
    raise KeyError("how long it takes")


def showing(what: str) -> dict[str, Cost]:
    """Return the one piece of ``demo``, whose votes are always the same."""
    return {what: lambda _: 4.8}


def drawing(experiments: Mapping[str, float | None]) -> dict[str, Cost]:
    """Return the pieces of ``reproduce``, by the usual seconds of experiments: each is run, and its figure drawn."""

    def lasting(seconds: float | None) -> Cost:
        return unknown if seconds is None else lambda _: seconds

    return {
        what: lasting(usual)
        for name, seconds in experiments.items()
        for what, usual in ((name, seconds), (f"drawing {name}", 1.3))
    }


def ingesting(logs: Sequence[str], parts: Sequence[float], what: str) -> dict[str, Cost]:
    """Return the pieces of taking in logs; of ``parts``, of so many bytes each, all together are one: ``what``."""
    if len(logs) == len(parts) == 1:
        return READING | {"writing judgments": lambda k: 0.9e-7 * k["distinct"]}
    return {what: lambda _: 0.1 * len(parts) + 8e-8 * sum(parts)}
