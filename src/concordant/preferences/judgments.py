"""Columns in memory become clean judgments: checked row by row, nothing dropped, nothing guessed.

Each function returns the arguments of ``counted_comparisons`` or ``counted_lists``, or None for columns without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, few
from concordant.preferences.comparisons import Checked, Columns, check_comparisons
from concordant.preferences.frames import as_columns
from concordant.preferences.layouts import CLUSTERS, Layout
from concordant.preferences.lists import SEVERAL, UNITS, ListVerdicts, RawLists, check_lists, gather
from concordant.preferences.values import Reject, Verdict, flags, say

SHOWN = 3


def clusters_given(cluster: Any) -> dict[str, Any]:
    """Return the column of each role of clusters: one, or a mapping of names to columns."""
    if not isinstance(cluster, Mapping):
        return {"cluster": cluster}
    if not 0 < len(cluster) <= len(CLUSTERS):
        raise InputError(f"cluster is a column, or a mapping of 1 to {len(CLUSTERS)} names to columns")
    if none := [name for name, column in cluster.items() if column is None]:
        raise InputError(f"the cluster {few(none)} has no column: it is None")
    return dict(zip(CLUSTERS, cluster.values(), strict=False))


def clean_comparisons(
    winner: Any,
    loser: Any,
    *,
    query: Any = None,
    weight: Any = None,
    tie: Any = None,
    count: Any = None,
    cluster: Any = None,
    covariates: Mapping[str, Any] | None = None,
    time: Any = None,
) -> dict[str, Any] | None:
    """Check comparisons given as columns, see ``Preferences.from_comparisons``."""
    if covariates is not None and not isinstance(covariates, Mapping):
        raise InputError(f"covariates are a mapping of names to columns, not {type(covariates).__name__}")
    given = {"winner": winner, "loser": loser, "query": query, "weight": weight, "count": count, "time": time}
    given |= (
        clusters_given(cluster)
        | {"tie": tie}
        | {f"covariate {name}": column for name, column in (covariates or {}).items()}
    )
    columns = as_columns(given, needed=("winner", "loser"))
    rows = len(columns["winner"])
    if not rows:
        return None
    tied = flags(columns.pop("tie")) if "tie" in columns else None
    if tied is not None and tied.fault is not None:
        place = int(np.flatnonzero(tied.fault)[0])
        raise InputError(f"comparisons: tie must be true or false in every row; it is not in row {place + 1}")
    shown = dict(columns)
    layout = Layout("comparisons", {"winner": "winner", "loser": "loser"}, tuple(covariates or ()))
    checked = check_comparisons(columns, np.ones(rows, np.int32), layout)
    _raise_on("comparisons", checked.verdict, shown, rows)
    if tied is not None:
        checked.arguments["tie"] = tied.values
    return checked.arguments


def clean_lists(kind: str, keys: Mapping[str, Any], entries: Mapping[str, Any], clicks: str = "all") -> Checked | None:
    """Check lists given as columns: what names a list, and what its entries are. Without any key all are one list."""
    columns = as_columns({**keys, **entries}, needed=[role for role in entries if role != "position"])
    if not len(columns["item"]):
        return None
    there = [role for role in keys if role in columns]
    lists, rows = gather(columns, there, [role for role in entries if role in columns])
    checked, verdicts = check_lists(lists, Layout(kind, {role: role for role in columns}), clicks=clicks)
    _raise_on_lists(kind, lists, verdicts, rows, columns, clicks)
    return None if checked.empty and verdicts.lists.code is not None else checked


def _raise_on(name: str, verdict: Verdict, columns: Columns, rows: int) -> None:
    """Raise an InputError that shows the first refused rows."""
    if verdict.refused:
        rejects = [Reject(reason, len(at), rows, _samples(at, columns, reason.role)) for reason, at in verdict.refused]
        raise InputError(say(name, rejects))


def _raise_on_lists(
    kind: str, lists: RawLists, verdicts: ListVerdicts, rows: NDArray[np.int64], columns: Columns, clicks: str
) -> None:
    """Raise an InputError that shows the first row of the first refused lists, or the row to blame.

    Lists with many clicks that the caller asked to skip are left out already.
    """
    rejects = []
    for reason, at in verdicts.rows.refused:
        rejects.append(Reject(reason, len(at), len(rows), _samples(np.sort(rows[at]), columns, reason.role)))
    for reason, which in verdicts.lists.refused:
        if clicks == "skip" and reason in SEVERAL:
            continue
        blamed = np.where(verdicts.blame[which] >= 0, verdicts.blame[which], lists.offsets[which])
        samples = _samples(rows[blamed], columns, reason.role)
        rejects.append(Reject(reason, len(which), verdicts.lists.size, samples, UNITS[kind]))
    if rejects:
        raise InputError(say(kind, rejects))


def _samples(at: Sequence[int] | NDArray[np.int64], columns: Columns, role: str) -> tuple[tuple[str, object], ...]:
    column = columns.get(role)
    return tuple((f"row {i + 1:,}", None if column is None else column[int(i)].as_py()) for i in at[:SHOWN])
