"""Gains G(label) and discounts F(rank) of the families (14) and (16): by name, as a table or as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.metrics.lists import Floats

__all__ = ["DISCOUNTS", "GAINS", "Discount", "Gain", "discount_of", "gain_of"]

Gain = str | Callable[[Floats], Any] | Sequence[float] | NDArray[Any]
Discount = str | Callable[[Floats], Any] | Sequence[float] | NDArray[Any]


def _exponential(label: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp2(label) - 1.0, np.float64)


GAINS: dict[str, Callable[[Floats], Floats]] = {
    "exponential": _exponential,
    "linear": lambda label: label,
}
"""Gains by name: 2^s − 1 and s."""

DISCOUNTS: dict[str, Callable[[Floats], Floats]] = {
    "log2": lambda rank: np.log2(1.0 + rank),
    "letor4": lambda rank: np.maximum(1.0, np.log2(rank)),
    "rank": lambda rank: rank,
    "none": np.ones_like,
}
"""Discounts F by name (a place at rank r is worth 1/F(r)): log2(1 + r); 1, 1, log2(r); r; 1."""


def gain_of(gain: Gain, label: Floats) -> Floats:
    """Return the gain of every label.

    ``gain`` is "exponential" (2^s − 1), "linear" (s), a table (the gain of label 0, 1, 2, …), or a function from an
    array of labels to an array of gains. Errors: a label that the table does not hold, a gain that is not finite.

    >>> gain_of([0, 1, 10], np.array([2.0, 0.0])).tolist()
    [10.0, 0.0]
    """
    if isinstance(gain, str):
        if gain not in GAINS:
            raise UsageError(f"unknown gain {gain!r}; {did_you_mean(gain, GAINS)} Or give a table or a function.")
        found = GAINS[gain](label)
    elif callable(gain):
        found = _called(gain, label, "gain")
    else:
        found = _looked_up(_table(gain, "gain"), label)
    if not np.isfinite(found).all():
        worst = label[int((~np.isfinite(found)).argmax())]
        raise InputError(f"the gain of label {worst:g} is not finite; choose another gain or smaller labels")
    return found


def discount_of(discount: Discount, most: int) -> Floats:
    """Return the worth 1/F(r) of the ranks 1 … ``most``.

    ``discount`` is "log2", "letor4", "rank", "none", a table (F of rank 1, 2, …; ranks beyond it are worth nothing) or
    a function F from an array of ranks. F must be positive; infinite means worth nothing.
    """
    rank = np.arange(1, most + 1, dtype=np.float64)
    if isinstance(discount, str):
        if discount not in DISCOUNTS:
            raise UsageError(
                f"unknown discount {discount!r}; {did_you_mean(discount, DISCOUNTS)} Or give a table or a function."
            )
        return np.asarray(1.0 / DISCOUNTS[discount](rank), np.float64)
    if callable(discount):
        divisor = _called(discount, rank, "discount")
    else:
        table = _table(discount, "discount")[:most]
        divisor = np.append(table, np.full(most - len(table), np.inf))
    if not np.all(divisor > 0):
        raise UsageError("a discount F(rank) must be positive at every rank (infinite: the rank is worth nothing)")
    return np.asarray(1.0 / divisor, np.float64)


def _called(function: Callable[[Floats], Any], values: Floats, role: str) -> Floats:
    found = np.asarray(function(values.copy()), np.float64)
    if found.shape != values.shape:
        raise UsageError(f"the {role} function must return one number per value: {values.shape}, not {found.shape}")
    return found


def _table(given: Any, role: str) -> Floats:
    try:
        table = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{role} must be a name, a table of numbers or a function, not {given!r}") from None
    if table.ndim != 1 or not len(table):
        raise UsageError(f"a table as {role} must be one column of numbers, not of shape {table.shape}")
    return table


def _looked_up(table: Floats, label: Floats) -> Floats:
    wrong = (label != np.floor(label)) | (label < 0) | (label >= len(table))
    if wrong.any():
        place = int(wrong.argmax())
        raise InputError(
            f"{int(wrong.sum()):,} of {len(label):,} labels are not in the table of gains (first: {label[place]:g}); "
            f"it holds the labels 0 to {len(table) - 1}"
        )
    return table[label.astype(np.int64)]
