"""Step sizes η_t of the stochastic method: c/(t + t0) under strong convexity, c/√t without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean

__all__ = ["RULES", "StepSizes"]

RULES = ("1/t", "1/sqrt t")


class Curved(Protocol):
    """A loss of samples that knows its curvature."""

    @property
    def largest(self) -> float:
        """Largest curvature of a sample."""

    @property
    def smallest(self) -> float:
        """Smallest curvature of the mean."""


@dataclass(frozen=True)
class StepSizes:
    """η_t = c/(t + t0) or c/√(t + t0), t = 1, 2, …

    >>> StepSizes("1/t", 2.0, 1.0).lengths(3).tolist()
    [1.0, 0.6666666666666666, 0.5]
    """

    rule: str
    scale: float
    shift: float

    @classmethod
    def of(cls, loss: Curved, ridge: float, rule: str, scale: float | str, shift: float | str) -> StepSizes:
        """Fill in what is 'auto': no step longer than 1/L; for '1/t' c = 1/σ, σ the ridge and the smallest curvature.

        Errors (UsageError): an unknown rule, numbers out of range, '1/t' where nothing is known to be strongly convex.
        """
        if rule not in RULES:
            raise UsageError(f"unknown step {rule!r}; {did_you_mean(str(rule), RULES)}")
        for name, value, least in (("scale", scale, "above 0"), ("shift", shift, "of at least 0")):
            good = value == "auto" if isinstance(value, str) else np.isfinite(value) and (value > 0 or name == "shift")
            if not good or (not isinstance(value, str) and value < 0):
                raise UsageError(f"{name} must be 'auto' or a number {least}, not {value!r}")
        decreasing = rule == "1/t"
        if isinstance(scale, str):
            bend = ridge + loss.smallest if decreasing else loss.largest
            if decreasing and bend <= 0:
                raise UsageError(
                    "step '1/t' needs strong convexity: give a ridge above 0 or a scale, or take '1/sqrt t'"
                )
            scale = 1.0 / bend if bend > 0 else 1.0
        if isinstance(shift, str):
            shift = scale * loss.largest if decreasing else 0.0
        return cls(rule, float(scale), float(shift))

    def lengths(self, steps: int) -> NDArray[np.float64]:
        """η_1 … η_steps."""
        t = np.arange(1.0, steps + 1.0) + self.shift
        return np.asarray(self.scale / (t if self.rule == "1/t" else np.sqrt(t)), np.float64)
