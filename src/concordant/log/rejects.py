"""Rows that cannot be understood: the reasons, how many rows each one holds, and how they are said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Reason", "Reject", "Verdict", "say"]


@dataclass(frozen=True)
class Reason:
    """Why a row is refused: ``says`` follows “3 of 1,204 rows”, ``hint`` says what is allowed."""

    says: str
    role: str
    hint: str = ""


@dataclass(frozen=True)
class Reject:
    """All rows (or lists) refused for one reason: how many of how many, and some of them as (place, value)."""

    reason: Reason
    number: int
    total: int
    samples: tuple[tuple[str, object], ...] = ()
    unit: str = "rows"

    def __str__(self) -> str:
        shown = "; ".join(place if value is None else f"{place}: {_short(value)}" for place, value in self.samples)
        counts = f"{self.number:,} of {self.total:,} {self.unit}"
        return f"{counts} {self.reason.says}{f' ({shown})' if shown else ''}."


@dataclass
class Verdict:
    """Which of n tuples are refused, each for the first reason that was found."""

    size: int
    reasons: list[Reason] = field(default_factory=list)
    code: NDArray[np.int8] | None = None
    """0 for a tuple that is fine, else 1 + the place of its reason; None when all are fine."""

    def refuse(self, mask: NDArray[np.bool_], reason: Reason) -> None:
        """Refuse the tuples of a mask, unless they are refused already."""
        if not mask.any():
            return
        if self.code is None:
            self.code = np.zeros(self.size, np.int8)
        new = mask & (self.code == 0)
        if new.any():
            if reason not in self.reasons:
                self.reasons.append(reason)
            self.code[new] = 1 + self.reasons.index(reason)

    @property
    def fine(self) -> NDArray[np.bool_] | None:
        """Mask of the tuples that stay; None when all do."""
        return None if self.code is None else self.code == 0

    def rows(self, rows: NDArray[np.integer]) -> list[tuple[Reason, int]]:
        """Return each reason with the number of rows it holds, given the rows of each tuple."""
        if self.code is None:
            return []
        return [
            (reason, int(rows[self.code == 1 + place].sum(dtype=np.int64))) for place, reason in enumerate(self.reasons)
        ]


def say(name: str, rejects: Sequence[Reject]) -> str:
    """Return one line about all that was refused, and what is allowed (a hint that several share once).

    >>> unknown = Reason("have an unknown outcome", "outcome", "Allowed: left, right, tie.")
    >>> say("votes.csv", [Reject(unknown, 3, 1204, (("line 17", "lefft"),))])
    "votes.csv: 3 of 1,204 rows have an unknown outcome (line 17: 'lefft'). Allowed: left, right, tie."
    """
    parts: list[str] = []
    for place, reject in enumerate(rejects):
        parts.append(str(reject))
        later = [other.reason.hint for other in rejects[place + 1 :]]
        if reject.reason.hint and reject.reason.hint not in later:
            parts.append(reject.reason.hint)
    return f"{name}: " + " ".join(parts)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…{text[-1]}"
