"""What a task does with the raw rows of its queries: check them as everywhere, and make Preferences of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from concordant.engines import memory
from concordant.errors import InputError
from concordant.log.checked import Checked
from concordant.log.compared import check_comparisons
from concordant.log.layouts import Layout
from concordant.log.listed import MANY_CHOSEN, MANY_CLICKS, UNITS, check_lists
from concordant.log.rejects import Reject
from concordant.log.values import flat
from concordant.preferences import Preferences, counted_comparisons, counted_lists

__all__ = ["ROWS", "Checks", "Refused"]

ROWS = "rows"
"""Column that says how many rows of the log each tuple of values stands for."""
KEYS = ("query", "cluster", "session", "judgment")
ENTRIES = ("position", "item", "clicked", "rank", "rating", "count")


class Refused(InputError):
    """A task met rows that cannot be understood; which and how many is found out in a second pass."""


@dataclass(frozen=True)
class Checks:
    """How the rows of a log are read, to be sent to tasks."""

    layout: Layout
    clicks: str = "raise"
    on_error: str = "raise"
    as_json: bool = False
    elsewhere: frozenset[str] = field(default_factory=frozenset)
    """Words for a side that are labels of items somewhere in the log."""

    @property
    def roles(self) -> dict[str, str]:
        """The column of each role that is read, covariates included."""
        return {**self.layout.roles, **{f"covariate {name}": name for name in self.layout.covariates}}

    def preferences(self, table: pa.Table) -> Preferences:
        """Return the preferences of all rows of some queries. Errors: Refused where rows are and none may be."""
        checked, rejects, _ = self._checked(table)
        if self.refusing(rejects):
            raise Refused("rows that cannot be understood")
        if checked.empty:
            return Preferences.empty()
        build = counted_comparisons if self.layout.kind == "comparisons" else counted_lists
        return build(**checked.arguments)

    def faults(self, table: pa.Table) -> tuple[list[Reject], dict[str, int]]:
        """Return what is refused of these rows, without places, and how many of each unit (rows, lists) there are."""
        _, rejects, sizes = self._checked(table)
        return rejects, sizes

    def refusing(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Return those rejects that stop the reading: all, or with ``skip`` none but undecided clicks."""
        many = (MANY_CLICKS, MANY_CHOSEN)
        stopping = [each for each in rejects if self.on_error == "raise" or each.reason in many]
        return [each for each in stopping if self.clicks != "skip" or each.reason not in many]

    def _checked(self, table: pa.Table) -> tuple[Checked, list[Reject], dict[str, int]]:
        if self.layout.kind == "comparisons":
            return self._comparisons(table)
        return self._lists(table)

    def _comparisons(self, table: pa.Table) -> tuple[Checked, list[Reject], dict[str, int]]:
        rows = flat(table[ROWS]).to_numpy(zero_copy_only=False)
        columns = {role: flat(table[role]) for role in self.roles}
        checked = check_comparisons(columns, rows, self.layout, as_json=self.as_json, elsewhere=self.elsewhere)
        total = int(rows.sum(dtype=np.int64))
        rejects = [Reject(reason, number, total) for reason, number in checked.verdict.rows(rows)]
        return checked, rejects, {"rows": total}

    def _lists(self, table: pa.Table) -> tuple[Checked, list[Reject], dict[str, int]]:
        given = self.layout.roles
        keys = {role: role for role in KEYS if role in given}
        lists = memory.count_lists(table, keys, {role: role for role in ENTRIES if role in given})
        checked, seen = check_lists(lists, self.layout, clicks=self.clicks, as_json=self.as_json)
        rows, number, unit = lists.times[lists.owner], int(lists.times.sum()), UNITS[self.layout.kind]
        rejects = [Reject(reason, some, lists.rows) for reason, some in seen.rows.rows(rows)]
        rejects += [Reject(reason, some, number, unit=unit) for reason, some in seen.lists.rows(lists.times)]
        return checked, rejects, {"rows": lists.rows, unit: number}
