"""What a task does with the raw rows of its queries: check them as everywhere, and make Preferences of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.io.engines import memory
from concordant.io.log.rows import SAMPLES
from concordant.preferences.comparisons import Checked, Shares, check_comparisons
from concordant.preferences.layouts import CLUSTERS, Layout
from concordant.preferences.lists import SEVERAL, UNITS, check_lists, said_of_empty
from concordant.preferences.preferences import (
    Lists,
    Preferences,
    counted_comparisons,
    counted_lists,
    with_cluster_columns,
    with_unranked_last,
)
from concordant.preferences.values import Reason, Reject, flat, say

ROWS = "rows"
"""Column that says how many rows of the log each tuple of values stands for."""
KEYS = ("query", *CLUSTERS, "session", "judgment")
ENTRIES = ("position", "item", "clicked", "rank", "rating", "count")


class Refused(InputError):
    """A task met rows that cannot be understood; which and how many is found out in a second pass."""


@dataclass(frozen=True)
class Fault:
    """What is refused for one reason, and how often each value to blame occurs (as JSON; None: no value is)."""

    reason: Reason
    unit: str
    values: dict[str | None, int]
    turn: int
    """Where it stands among the reasons."""

    @property
    def samples(self) -> tuple[tuple[str, object], ...]:
        """The most frequent values to blame, with how often each occurs."""
        known = [(number, value) for value, number in self.values.items() if value is not None]
        often = sorted(known, key=lambda one: (-one[0], one[1]))[:SAMPLES]
        return tuple((of_unit(number, self.unit), json.loads(value)) for number, value in often)


def of_unit(number: int, unit: str) -> str:
    """Return a number with its unit, rows or a kind of lists: 1 row, 2 rows."""
    return f"{number:,} {unit if number != 1 else unit.removesuffix('s')}"


@dataclass(frozen=True)
class Checks:
    """How the rows of a log are read, to be sent to tasks."""

    layout: Layout
    clicks: str = "all"
    on_error: str = "raise"
    as_json: bool = False
    elsewhere: frozenset[str] = field(default_factory=frozenset)
    """Words for a side that are labels of items somewhere in the log."""
    shares: Shares | None = None
    """Whether outcomes are shares of a win, by all of the log."""
    unranked: str | None = None
    """What it means that a ranking leaves out items of its query: ``last``, or else no opinion."""
    unsigned: frozenset[str] = field(default_factory=frozenset)
    """Roles whose columns hold integers of 64 bits without sign, which Spark has as decimals."""

    @property
    def roles(self) -> dict[str, str]:
        """The column of each role that is read, covariates included."""
        return {**self.layout.roles, **{f"covariate {name}": name for name in self.layout.covariates}}

    def with_covariates(self, options: Mapping[str, Any]) -> bool:
        """Whether there are covariates that a structure with these options uses, or is asked for without any."""
        asked = options.get("covariates")
        return bool(asked or (asked is None and self.layout.covariate_names))

    def preferences(self, table: pa.Table) -> Preferences:
        """Return the preferences of all rows of some queries. Errors: Refused where rows are and none may be."""
        checked, faults, _ = self._checked(table, shown=False)
        if self.refusing([fault.reason for fault in faults]):
            raise self._refused(table)
        if checked.empty and not checked.blank:
            return Preferences.empty()
        build = counted_comparisons if self.layout.kind == "comparisons" else counted_lists
        prefs = with_cluster_columns(build(**checked.arguments), self.layout.clusters)
        prefs = replace(prefs, told=said_of_empty(checked.blank, len(prefs)))
        return with_unranked_last(prefs) if self.unranked == "last" and isinstance(prefs, Lists) else prefs

    def faults(self, table: pa.Table) -> tuple[list[Fault], dict[str, int]]:
        """Return what is refused of these rows, and how many of each unit (rows, lists) there are."""
        _, faults, sizes = self._checked(table, shown=True)
        return faults, sizes

    def stopping(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Return those rejects that stop the reading: all, or with ``skip`` none but undecided clicks."""
        reasons = self.refusing([each.reason for each in rejects])
        return [each for each in rejects if each.reason in reasons]

    def refusing(self, reasons: Sequence[Reason]) -> list[Reason]:
        """Return those reasons that stop the reading."""
        stopping = [each for each in reasons if self.on_error == "raise" or each in SEVERAL]
        return [each for each in stopping if self.clicks != "skip" or each not in SEVERAL]

    def _refused(self, table: pa.Table) -> Refused:
        """What is refused of the rows of a task, for whoever asks Spark itself for them."""
        faults, sizes = self.faults(table)
        rejects = [
            Reject(one.reason, sum(one.values.values()), sizes[one.unit], one.samples, one.unit) for one in faults
        ]
        return Refused(say("among the rows of one task", self.stopping(rejects)))

    def _checked(self, table: pa.Table, shown: bool) -> tuple[Checked, list[Fault], dict[str, int]]:
        for role in self.unsigned & set(table.column_names):
            place = table.column_names.index(role)
            table = table.set_column(place, role, table[role].cast(pa.uint64()))
        if self.layout.kind == "comparisons":
            return self._comparisons(table, shown)
        return self._lists(table, shown)

    def _comparisons(self, table: pa.Table, shown: bool) -> tuple[Checked, list[Fault], dict[str, int]]:
        rows = flat(table[ROWS]).to_numpy(zero_copy_only=False)
        columns = {role: flat(table[role]) for role in self.roles}
        kept = dict(columns) if shown else {}
        checked = check_comparisons(
            columns, rows, self.layout, as_json=self.as_json, elsewhere=self.elsewhere, shares=self.shares
        )
        verdict = checked.verdict
        faults = [
            Fault(reason, "rows", self._blamed(kept.get(reason.role), at, rows[at]), turn)
            for (reason, at), turn in zip(verdict.refused, verdict.turns, strict=True)
        ]
        return checked, faults, {"rows": int(rows.sum(dtype=np.int64))}

    def _lists(self, table: pa.Table, shown: bool) -> tuple[Checked, list[Fault], dict[str, int]]:
        given = self.layout.roles
        keys = {role: role for role in KEYS if role in given}
        lists = memory.count_lists(table, keys, {role: role for role in ENTRIES if role in given})
        checked, seen = check_lists(lists, self.layout, clicks=self.clicks, as_json=self.as_json)
        unit, owner, faults = UNITS[self.layout.kind], lists.owner, []
        for verdict, whole in ((seen.rows, False), (seen.lists, True)):
            for (reason, at), turn in zip(verdict.refused, verdict.turns, strict=True):
                of = at if whole else owner[at]
                column, where = lists.entries.get(reason.role), seen.blame[at] if whole else at
                if reason.role in keys:
                    column, where = lists.keys[reason.role], of
                known = shown and not (where < 0).any()
                found = self._blamed(column if known else None, where, lists.times[of])
                faults.append(Fault(reason, unit if whole else "rows", found, turn + seen.rows.asked * whole))
        return checked, faults, {"rows": lists.rows, unit: int(lists.times.sum())}

    def _blamed(self, column: Any, at: NDArray[Any], number: NDArray[Any]) -> dict[str | None, int]:
        """Count each value of a column at some places, given how often each place occurs."""
        if column is None:
            return {None: int(number.sum(dtype=np.int64))}
        taken = column.take(pa.array(at))
        coded = taken if pa.types.is_dictionary(taken.type) else taken.dictionary_encode()
        codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        total = np.zeros(len(coded.dictionary) + 1, np.int64)
        np.add.at(total, codes, number)
        found: dict[str | None, int] = {}
        for value, some in zip([*coded.dictionary.to_pylist(), None], total.tolist(), strict=True):
            written = value if self.as_json and isinstance(value, str) else json.dumps(value, default=str)
            name = None if written == "null" else written
            if some:
                found[name] = found.get(name, 0) + some
        return found
