"""Whether the first place of a board has changed hands, beyond what its intervals leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, few


@dataclass(frozen=True)
class FirstPlace:
    """Who was first and who is, and whether any of those who were may still be."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    ranks: tuple[tuple[int, int] | None, ...]
    """Of each that was first: the ranks that the new board leaves open; None where it has none for it."""
    gone: tuple[str, ...] = ()
    """Who was first and is not on the new board."""

    @property
    def changed(self) -> bool:
        """Whether none of those who were first can be first on the new board."""
        open_ = (item not in self.gone and (span is None or span[0] == 1) for item, span in zip(self.old, self.ranks))
        return not any(open_)

    def __str__(self) -> str:
        if set(self.old) & set(self.new):
            return f"first place: {few(self.old, 3)}, as before"
        spans = ", ".join(
            "gone" if item in self.gone else "not ranked" if span is None else f"ranks {span[0]}–{span[1]}"
            for item, span in zip(self.old[:3], self.ranks)
        )
        how = "changed beyond its intervals" if self.changed else "not beyond its intervals"
        return f"first place: {few(self.new, 3)} instead of {few(self.old, 3)}, now {spans}: {how}"


def first_place(old: pa.Table, new: pa.Table) -> FirstPlace:
    """Compare the first places of two tables of a ranking, in their largest components.

    It has changed where the rank intervals (``rank_lower``) of those who were first leave the first place open to none
    of them. Errors (InputError): a table without ranks and rank intervals.

    >>> rows = {"item": ["a", "b"], "rank": [1, 2], "rank_lower": [1, 2], "rank_upper": [1, 2]}
    >>> print(first_place(pa.table(rows), pa.table(rows | {"item": ["b", "a"]})))
    first place: 'b' instead of 'a', now ranks 2–2: changed beyond its intervals
    """
    was, now = (_rows(table) for table in (old, new))
    firsts = tuple([item for item, row in was.items() if row["rank"] == 1])
    ranks = [now.get(item, {}) for item in firsts]
    spans = [(row["rank_lower"], row["rank_upper"]) if row.get("rank_lower") else None for row in ranks]
    leads = tuple([item for item, row in now.items() if row["rank"] == 1])
    return FirstPlace(firsts, leads, tuple(spans), tuple([item for item in firsts if item not in now]))


def _rows(table: pa.Table) -> dict[str, dict[str, Any]]:
    names = ("item", "rank", "rank_lower", "rank_upper")
    if lost := [name for name in names if name not in table.column_names]:
        raise InputError(f"the first place is told by ranks and their intervals; there is no column {few(lost)}")
    kept = [*names, *(["component"] if "component" in table.column_names else [])]
    rows = [row for row in table.select(kept).to_pylist() if str(row.get("component", 1)) == "1"]
    whole = {name for name in names if name != "item"}
    return {
        str(row["item"]): {name: None if row[name] in (None, "") else int(row[name]) for name in whole} for row in rows
    }
