"""What every check shares: the clean columns it ends with, and why labels, numbers and integers are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.log.rejects import Reason, Verdict
from concordant.log.values import INFINITE, MISSING, NO_LABEL, NULL_BYTE, WRONG, Read, numbers

__all__ = ["Checked", "Columns", "Ints", "kept", "read_integers", "refuse_labels", "refuse_numbers", "times"]

Columns = dict[str, Any]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Checked:
    """Clean judgments as arguments of a trusted builder, and what was refused."""

    arguments: dict[str, Any]
    verdict: Verdict
    empty: bool
    """Whether no judgment is left."""


def refuse_labels(verdict: Verdict, read: Read, role: str) -> None:
    """Refuse the tuples whose label of this role is missing, holds a null byte or is no label at all."""
    if read.fault is None:
        return
    verdict.refuse(read.fault == MISSING, Reason(f"have no {role}", role))
    verdict.refuse(read.fault == NULL_BYTE, Reason(f"have a null byte in the {role}", role))
    verdict.refuse(
        read.fault == NO_LABEL,
        Reason(f"have a {role} that is neither a text nor an integer", role, "Labels are texts or integers."),
    )


def refuse_numbers(verdict: Verdict, read: Read, role: str, hint: str = "", *, missing: bool = True) -> None:
    """Refuse the tuples whose number of this role is not one, not finite or (unless it may be) missing."""
    if read.fault is None:
        return
    if missing:
        verdict.refuse(read.fault == MISSING, Reason(f"have no {role}", role, hint))
    verdict.refuse(read.fault == WRONG, Reason(f"have a {role} that is not a number", role, hint))
    verdict.refuse(read.fault == INFINITE, Reason(f"have a {role} that is not finite", role, hint))


def read_integers(columns: Columns, verdict: Verdict, role: str, as_json: bool, least: int) -> NDArray[np.int64] | None:
    """Read an optional column of integers that are at least ``least``; refused ones come out as ``least``."""
    if role not in columns:
        return None
    hint = f"A {role} is an integer, {least} or more."
    read = numbers(columns.pop(role), as_json=as_json)
    refuse_numbers(verdict, read, role, hint)
    values = read.values
    bad = (values != np.floor(values)) | (values < least) | (values > 2.0**53)
    verdict.refuse(bad, Reason(f"have a {role} that is not an integer of at least {least}", role, hint))
    return np.where(bad, least, values).astype(np.int64)


def times(rows: Ints, count: Ints | None) -> Ints:
    """Return rows × count, where 2^62 is out of reach."""
    if count is None:
        return rows
    if float((count.astype(np.float64) * rows).sum()) >= 2.0**62:
        raise InputError("the counts add up to more than 2^62")
    return np.asarray(count.astype(np.int64) * rows)


def kept(arguments: dict[str, Any], fine: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Return the columns with only the rows of a mask (all of them without one)."""
    if fine is None:
        return arguments
    return {name: _keep(value, fine) for name, value in arguments.items()}


def _keep(value: Any, fine: NDArray[np.bool_]) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: _keep(column, fine) for name, column in value.items()}
    return value.filter(pa.array(fine)) if isinstance(value, pa.Array) else value[fine]
