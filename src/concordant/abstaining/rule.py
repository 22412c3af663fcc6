"""Rule: which pairs a ranker declines to order, by their distance or by their estimated risk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstaining.conditional_risk import ConditionalRisk
from concordant.abstention.norms import NORMS
from concordant.json_values import Fields

__all__ = ["BY", "REASONS", "PairDecisions", "Rule"]

Floats = NDArray[np.float64]
BY = ("distance", "risk")
REASONS = ("decided", "near", "risky", "equal scores")
DECIDED, NEAR, RISKY, EQUAL = range(len(REASONS))


@dataclass(frozen=True, eq=False)
class PairDecisions:
    """What is said about each pair (a, b), and why."""

    decision: NDArray[np.int8]
    """+1: b above a; −1: a above b; 0: declined."""
    reason: NDArray[np.int8]
    """Index into REASONS."""
    difference: Floats
    """Score of b less that of a."""
    distance: Floats
    """In the normalised features; NaN where there is no scale."""
    risk: Floats
    """Estimated chance that the order by score is wrong; NaN where it was not estimated."""

    def __len__(self) -> int:
        return len(self.decision)

    @property
    def reasons(self) -> list[str]:
        """The reasons in words: decided, near, risky, or equal scores (+1 by convention only)."""
        return [REASONS[code] for code in self.reason.tolist()]


@dataclass(frozen=True, eq=False)
class Rule:
    """Decline a pair whose distance is at most γ, or whose estimated risk exceeds the cost.

    By risk, ``limit`` keeps the share of what is declined within its bound: beyond that score difference nothing is
    declined. ``gamma`` is None where nothing is declined, not even items of equal features.

    >>> Rule("distance", "inf", 0.1, gamma=1.0).declines(np.zeros(2), np.array([1.0, 1.5])).tolist()
    [True, False]
    """

    by: str
    norm: str
    cost: float
    gamma: float | None = None
    risk: ConditionalRisk | None = field(default=None)
    limit: float = math.inf

    def declines(self, difference: Floats, distance: Floats) -> NDArray[np.bool_]:
        """Return which pairs of these score differences and distances are declined."""
        if self.by == "distance":
            return np.zeros(len(distance), bool) if self.gamma is None else np.asarray(distance <= self.gamma)
        assert self.risk is not None
        return np.asarray((self.risk(difference) > self.cost) & (np.abs(difference) <= self.limit))

    def decide(self, difference: Floats, distance: Floats) -> PairDecisions:
        """Return what is said about pairs (a, b); ``difference`` is the score of b less that of a."""
        declined = self.declines(difference, distance)
        decision = np.where(declined, 0, np.where(difference >= 0, 1, -1)).astype(np.int8)
        reason = np.where(declined, NEAR if self.by == "distance" else RISKY, np.where(difference == 0, EQUAL, DECIDED))
        risk = np.full(len(difference), np.nan) if self.risk is None else self.risk(difference)
        return PairDecisions(decision, reason.astype(np.int8), difference, distance, risk)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return values that JSON keeps, and arrays."""
        values = {
            "by": self.by,
            "norm": self.norm,
            "cost": self.cost,
            "gamma": _number(self.gamma),
            "limit": _number(self.limit),
        }
        return values, {} if self.risk is None else self.risk.to_arrays()

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Rule:
        """Return the rule of a ``to_state``. Errors: InputError."""
        given = Fields(values, "the state of the ranker")
        by, norm = given.text("by", BY), given.text("norm", NORMS)
        cost, limit = given.number("cost"), _bound(given, "limit")
        gamma = None if given["gamma"] is None else _bound(given, "gamma")
        risk = ConditionalRisk.from_arrays(arrays) if "risk" in arrays else None
        if not 0 <= cost <= 1:
            raise given.wrong(f"cost must be from 0 to 1, not {cost:g}")
        if by == "risk" and risk is None:
            raise given.wrong(f"it does not say how to abstain ({by!r})")
        return cls(by, norm, cost, gamma, risk, limit)


def _bound(given: Fields, name: str) -> float:
    """A number of at least 0, or infinity, which is kept as text."""
    found = math.inf if given[name] == "inf" else given.number(name)
    if found < 0:
        raise given.wrong(f"{name} must be at least 0, not {found:g}")
    return found


def _number(value: float | None) -> float | str | None:
    """A number as JSON keeps it: infinity as text."""
    return str(value) if value is not None and math.isinf(value) else value
