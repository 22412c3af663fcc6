"""Where refused rows stand: a second pass over a log that looks for given raw values and stops when it has samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concordant.log.rejects import Reason

__all__ = ["SAMPLES", "Sought", "find"]

SAMPLES = 3


@dataclass
class Sought:
    """Raw values that a refused row has: for some roles, the tuples of values and the reason each stands for."""

    roles: tuple[str, ...]
    reasons: dict[tuple[str, ...], Reason] = field(default_factory=dict)

    def add(self, values: Iterable[Any], reason: Reason, *, as_json: bool) -> None:
        """Seek a tuple of values, one for each of the roles."""
        self.reasons.setdefault(tuple([_written(value, as_json) for value in values]), reason)


def _written(value: Any, as_json: bool) -> str:
    """Return one text for values that are the same, however an engine writes them."""
    return repr(json.loads(value) if as_json and isinstance(value, str) else value)


def find(
    rows: Iterable[tuple[int | str, Sequence[Any]]],
    roles: Mapping[str, str],
    columns: Sequence[str],
    sought: Sequence[Sought],
    *,
    place: str,
    as_json: bool,
) -> dict[Reason, tuple[tuple[str, object], ...]]:
    """Return the first few places, with the value to blame, of each reason.

    ``rows`` yields the number of each row, or its place in words, and its values of ``columns``; ``roles`` maps roles
    to columns.
    """
    at = {role: columns.index(column) for role, column in roles.items()}
    found: dict[Reason, list[tuple[str, object]]] = {}
    open_reasons = {reason for each in sought for reason in each.reasons.values()}
    for number, values in rows:
        for each in sought:
            reason = each.reasons.get(tuple([_written(values[at[role]], as_json) for role in each.roles]))
            if reason is None or reason not in open_reasons:
                continue
            value = values[at[reason.role]] if reason.role in at else None
            shown = json.loads(value) if as_json and isinstance(value, str) else value
            samples = found.setdefault(reason, [])
            samples.append((number if isinstance(number, str) else f"{place} {number:,}", shown))
            if len(samples) == SAMPLES:
                open_reasons.discard(reason)
        if not open_reasons:
            break
    return {reason: tuple(samples) for reason, samples in found.items()}
