"""What an audit found, as tables, as nested data and in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.auditing.summary import summary
from concordant.frames import as_pandas

__all__ = ["Audit"]


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What the preferences of each query, with a loss, can lead to.

    ``queries`` has a row for each query: ``query, items, judgments, components, acyclic, low_noise,
    row_sum_condition, optimal_loss, optimal_exact`` and the evidence (docs/audit.md explains every column).
    ``surrogates`` has a row for each query and surrogate: ``query, surrogate, phi, target, status, loss, regret,
    regret_at_most, consistent, flipped, above, below``. ``orders`` has a best order of each query: ``query, item,
    place``. Losses are per judgment (mean adjacency).

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b", "a"], ["b", "c", "c"])
    >>> found = cc.audit(votes, replicates=0)
    >>> found.queries["acyclic"].to_pylist(), found.orders["item"].to_pylist()
    ([True], ['a', 'b', 'c'])
    """

    queries: pa.Table
    surrogates: pa.Table
    orders: pa.Table
    settling: pa.Table | None
    """Is the top of each query settled, and how many more judgments would settle it; None: not asked for."""
    ask: pa.Table | None
    """Pairs to ask next, the most informative first."""
    edges: pa.Table | None
    """Net preferences, with the share of replicates in which each keeps its direction (``sign_holds``)."""
    held_out: pa.Table | None
    """Excess loss of each surrogate on judgments that it did not see."""
    settings: Mapping[str, Any]
    facts: str
    """What the log held."""
    notes: tuple[str, ...] = field(default=())
    """What was left out and why."""

    @cached_property
    def summary(self) -> tuple[str, ...]:
        """The findings in plain words, at most ten lines."""
        return tuple(summary(self))

    @cached_property
    def overall(self) -> pa.Table:
        """Each surrogate over all queries: ``surrogate, target, queries, right, wrong, undecided, mean_regret``.

        ``mean_regret`` is the mean over the queries where a minimum could be judged, each counting once.
        """
        rows = []
        names = self.surrogates["surrogate"].to_pylist()
        verdict = np.array([-1 if x is None else int(x) for x in self.surrogates["consistent"].to_pylist()])
        regret = self.surrogates["regret"].to_numpy(zero_copy_only=False).astype(float)
        target = self.surrogates["target"].to_pylist()
        place = np.array(names, dtype=object)
        for name in dict.fromkeys(names):
            mine = np.flatnonzero(place == name)
            known = mine[~np.isnan(regret[mine])]
            rows.append(
                {
                    "surrogate": name,
                    "target": target[mine[0]],
                    "queries": len(mine),
                    "right": int((verdict[mine] == 1).sum()),
                    "wrong": int((verdict[mine] == 0).sum()),
                    "undecided": int((verdict[mine] == -1).sum()),
                    "mean_regret": float(regret[known].mean()) if len(known) else float("nan"),
                }
            )
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested data, one entry for each query with its surrogates by name."""
        rows = self.queries.to_pylist()
        by_query = [row | {"low_noise": _known(row["low_noise"]), "surrogates": {}} for row in rows]
        each = len(rows)
        for at, row in enumerate(self.surrogates.to_pylist()):
            name = row.pop("surrogate")
            by_query[at % each]["surrogates"][name] = {key: value for key, value in row.items() if key != "query"}
        for kind in ("settling", "ask"):
            table = getattr(self, kind)
            if table is not None:
                _attach(by_query, kind, table)
        held = None if self.held_out is None else self.held_out.to_pylist()
        return {
            "log": self.facts,
            "settings": dict(self.settings),
            "summary": list(self.summary),
            "notes": list(self.notes),
            "surrogates": self.overall.to_pylist(),
            "held_out": held,
            "queries": by_query,
        }

    def to_arrow(self) -> pa.Table:
        """Return a row for each query, with columns ``<surrogate>.consistent`` and ``<surrogate>.regret``."""
        table = self.queries
        each = max(len(table), 1)
        for begin in range(0, len(self.surrogates), each):
            part = self.surrogates.slice(begin, each)
            name = part["surrogate"][0].as_py()
            for column in ("consistent", "regret"):
                table = table.append_column(f"{name}.{column}", part[column])
        return table

    def to_pandas(self) -> Any:
        """Return ``to_arrow`` as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def __repr__(self) -> str:
        return "\n".join(self.summary)


def _known(word: str) -> bool | str:
    return {"true": True, "false": False}.get(word, word)


def _attach(by_query: list[dict[str, Any]], name: str, table: pa.Table) -> None:
    place = {json.dumps(row["query"]): row for row in by_query}
    for row in by_query:
        row[name] = []
    for row in table.to_pylist():
        place[json.dumps(row.pop("query"))][name].append(row)
