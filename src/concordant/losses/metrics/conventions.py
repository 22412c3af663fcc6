"""Conventions of well-known implementations, and the gains and discounts of the families (14) and (16)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.losses.metrics.judged_lists import Floats

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


@dataclass(frozen=True)
class Convention:
    """The choices of one implementation.

    ``gain`` and ``discount`` are those of NDCG; ``ties`` the rule for equal scores (see ``ranked.TIES``); ``single``
    whether scores are compared in single precision; ``empty`` the value of a query without relevance; ``highest`` the
    highest label allowed with the convention's own gain; ``floor`` whether negative labels gain 0.
    """

    name: str
    gain: Gain
    discount: str
    ties: str
    single: bool = False
    empty: float = 0.0
    highest: float = np.inf
    floor: bool = False
    absent: bool = False
    """Whether a score of −∞ says that a document was not retrieved."""

    def retrieved(self, score: Floats, value: Floats) -> Floats:
        """Return what each document gains where it stands: nothing where it was not retrieved."""
        return np.where(np.isneginf(score), 0.0, value) if self.absent else value

    def gains(self, label: Floats, gain: Gain | None) -> Floats:
        """Return the gain of every label, with the convention's own gain unless another one is given."""
        if gain is None and label.size and label.max() > self.highest:
            above = label > self.highest
            raise InputError(
                f"{int(above.sum()):,} of {len(label):,} labels are above {self.highest:g}, the highest that the "
                f"convention {self.name!r} allows (first: {label[int(above.argmax())]:g}); "
                "give ",
                Setting("gain", "linear"),
                ", or gains of your own",
            )
        found = gain_of(self.gain if gain is None else gain, label)
        return np.maximum(found, 0.0) if self.floor else found


CONVENTIONS = {
    one.name: one
    for one in (
        Convention("burges", "exponential", "log2", "input"),
        Convention("sklearn", "linear", "log2", "averaged"),
        Convention("trec", "linear", "log2", "item", single=True, floor=True, absent=True),
        Convention("xgboost", "exponential", "log2", "input", single=True, empty=1.0, highest=31),
        Convention("lightgbm", tuple(2.0**i - 1.0 for i in range(31)), "log2", "input", empty=1.0),
        Convention("letor4", "exponential", "letor4", "input"),
    )
}
"""
| convention | gain | discount | score ties | query without relevance | negative labels |
|---|---|---|---|---|---|
| burges | 2^s − 1 | log2(1 + r) | order of rows | 0 | 2^s − 1 < 0 |
| sklearn | s | log2(1 + r) | averaged | 0 | s (the original refuses) |
| trec | s | log2(1 + r) | by item, descending; in single precision | 0 | gain 0, as the original |
| xgboost | 2^s − 1, labels up to 31 | log2(1 + r) | order of rows; in single precision | 1 | 2^s − 1 < 0 (refused) |
| lightgbm | table 2^i − 1 of the labels 0 … 30 | log2(1 + r) | order of rows | 1 | an error, as in the original |
| letor4 | 2^s − 1 | 1, 1, log2(r) | order of rows | 0 | 2^s − 1 < 0 |

With trec a score of −∞ says that a document was not retrieved: it counts in the best order and among the relevant, and
gains nothing.

Single documents are lists like others (scikit-learn refuses them). XGBoost's metric ``ndcg`` without a cut-off stops at
rank 32, its ``topn``; ours takes the whole list.
"""


def convention_of(name: str) -> Convention:
    """Return a convention by name; the error of an unknown one lists all."""
    if name not in CONVENTIONS:
        raise UsageError(f"unknown convention {name!r}; {did_you_mean(str(name), CONVENTIONS)}")
    return CONVENTIONS[name]
