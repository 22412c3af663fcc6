"""Rankings of one board by different judges: of each group of those who judged, and of people beside judge models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.apps.commands.given import worded
from concordant.apps.report.views import recurring, short
from concordant.boards.prediction_powered import PredictionPowered
from concordant.errors import ConcordantError
from concordant.preferences.preferences import Preferences
from concordant.ranking.rank import rank

GROUPS, EACH = 12, 20
"""Groups whose rankings stand side by side, and the judgments of an item that each needs on average."""


def models_beside(judges: Mapping[str, PredictionPowered]) -> list[dict[str, Any]]:
    """What people say, what both say, and how far each judge model is off, item by item."""
    found = []
    for name, both in judges.items():
        rows = both.to_arrow().to_pylist()
        for row in rows:
            row["item"] = short(str(row["item"]))
            row["off"] = bool(row["bias_lower"] > 0 or row["bias_upper"] < 0)
        said = [short(worded(line)) for line in (*both.lines(), *both.notes)]
        found.append({"judge": short(name), "said": said, "scored": both.scored, "rows": rows})
    return found


def groups_beside(groups: Mapping[str, Preferences], structure: str, how: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the ranks of each item by each group's own judgments; None where fewer than two groups have enough.

    Columns are groups; cells are rank, best and worst possible rank, judgments.
    """
    columns: dict[str, dict[str, list[int]]] = {}
    for name, part in sorted(groups.items(), key=lambda one: -len(one[1]))[:GROUPS]:
        alone: Any = replace(part, cluster=None, clusters=None)  # all are of this group
        whole = alone.pool() if recurring(part) else alone
        if len(whole.queries) != 1 or len(part) < EACH * len(part.items):
            continue
        try:
            board = rank(whole, structure, **how)
        except ConcordantError:
            continue
        rows = np.flatnonzero((board.component == 1) & (board.rank > 0))
        columns[short(name)] = {
            short(str(board.items[board.item[row]])): [
                int(column[row]) for column in (board.rank, board.rank_lower, board.rank_upper, board.judgments)
            ]
            for row in rows.tolist()
        }
    if len(columns) < 2:
        return None
    items = list(dict.fromkeys(item for column in columns.values() for item in column))
    return {"groups": list(columns), "items": items,
            "ranks": [[column.get(item) for item in items] for column in columns.values()]}  # fmt: skip
