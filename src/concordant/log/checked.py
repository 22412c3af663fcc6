"""What every check shares: the clean columns it ends with, and why labels, numbers and integers are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.log.rejects import Reason, Verdict
from concordant.log.values import (
    BEYOND,
    CLEAN,
    FRACTION,
    INEXACT,
    INFINITE,
    MISSING,
    NO_LABEL,
    NULL_BYTE,
    WRONG,
    Read,
    integers,
)
from concordant.tally import MOST, exact_sum, refuse_beyond

__all__ = [
    "Checked",
    "Columns",
    "Ints",
    "kept",
    "read_integers",
    "refuse_labels",
    "refuse_numbers",
    "times",
    "whole_numbers",
]

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
    return whole_numbers(columns.pop(role), verdict, role, hint, as_json, least)


def whole_numbers(column: Any, verdict: Verdict, role: str, hint: str, as_json: bool, least: int) -> NDArray[np.int64]:
    """Read a column of integers exactly, and refuse what is none or below ``least``; that comes out as ``least``."""
    read = integers(column, as_json=as_json)
    refuse_numbers(verdict, read, role, hint)
    low, bad = read.values < least, read.values < least
    if read.fault is not None:
        said = "a real number of 2^53 or more, which may stand for another integer"
        for code, is_ in ((INEXACT, said), (BEYOND, f"beyond {MOST:,} (2^63 − 1)")):
            verdict.refuse(read.fault == code, Reason(f"have a {role} that is {is_}", role, hint))
        low = (low & (read.fault == CLEAN)) | (read.fault == FRACTION)
        bad = bad | (read.fault != CLEAN)
    verdict.refuse(low, Reason(f"have a {role} that is not an integer of at least {least}", role, hint))
    return np.where(bad, least, read.values).astype(np.int64)


def times(rows: Ints, count: Ints | None, fine: NDArray[np.bool_] | None) -> Ints:
    """Return rows × count, 0 for the refused ones. Errors: InputError where that leaves 64 bits in sum."""
    if count is None:
        return rows
    count = count.astype(np.int64) if fine is None else np.where(fine, count, 0)
    refuse_beyond(exact_sum(count, rows))
    return np.asarray(count * rows)


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
