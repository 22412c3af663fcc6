"""How often pairs of a given score difference are in the wrong order, estimated on held-out judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from concordant.errors import InputError, UsageError

__all__ = ["CALIBRATIONS", "ConditionalRisk"]

Floats = NDArray[np.float64]
CALIBRATIONS = ("isotonic", "logistic")


@dataclass(frozen=True, eq=False)
class ConditionalRisk:
    """Estimated chance that the order by score is wrong, given the score difference; it never rises with it.

    'isotonic' is the non-increasing step fit of least squares to the errors of held-out pairs over |difference|, drawn
    through by straight lines and constant beyond what was seen; 'logistic' is Platt's σ(−a|difference|), a ≥ 0.

    >>> seen = ConditionalRisk.fit(np.array([0.1, 0.1, 2.0]), np.ones(3), np.array([1.0, 0.0, 0.0]), "isotonic")
    >>> seen(np.array([-0.1, 5.0])).tolist()
    [0.5, 0.0]
    """

    difference: Floats
    """Knots, ascending; for the logistic form empty."""
    risk: Floats
    """At the knots; for the logistic form the slope a alone."""

    @classmethod
    def fit(cls, difference: Floats, mass: Floats, wrong: Floats, form: str) -> ConditionalRisk:
        """Estimate from pairs: score difference, weight, weight of what is wrong. Errors: UsageError, no such form."""
        if form not in CALIBRATIONS:
            raise UsageError(f"calibration must be one of {', '.join(CALIBRATIONS)}, not {form!r}")
        used = mass > 0
        size, mass, wrong = np.abs(difference[used]), mass[used], wrong[used]
        if form == "isotonic":
            fitted = IsotonicRegression(increasing=False, y_min=0.0, y_max=1.0)
            fitted.fit(size, wrong / mass, sample_weight=mass)
            return cls(np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64))
        unit = float(np.sqrt(np.average(size**2, weights=mass))) or 1.0
        both = np.concatenate((size, -size))[:, None] / unit  # either way round, so no side is favoured
        label = np.repeat([1, 0], len(size))
        right = np.concatenate((mass - wrong, mass - wrong))
        lost = np.concatenate((wrong, wrong))
        solver = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8, max_iter=1000)
        solver.fit(np.concatenate((both, both)), np.concatenate((label, 1 - label)), np.concatenate((right, lost)))
        return cls(np.zeros(0), np.array([max(float(solver.coef_[0, 0]) / unit, 0.0)]))

    def __call__(self, difference: Floats) -> Floats:
        """Return the estimated risk of pairs of these score differences."""
        size = np.abs(difference)
        if len(self.difference):
            return np.asarray(np.interp(size, self.difference, self.risk), np.float64)
        return np.asarray(expit(-self.risk[0] * size), np.float64)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the arrays that the estimate is made of."""
        return {"risk-difference": self.difference, "risk": self.risk}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ConditionalRisk:
        """Return the estimate of a ``to_arrays``. Errors: InputError."""
        found = [arrays.get(name) for name in ("risk-difference", "risk")]
        if any(array is None or array.dtype.kind != "f" or array.ndim != 1 for array in found):
            raise InputError("the state of the ranker cannot be read: its estimate of the risk is missing")
        knots, risk = (np.array(array, np.float64) for array in found)
        chances = (
            (np.diff(knots) > 0).all() and (np.diff(risk) <= 0).all() and (risk <= 1).all() if len(knots) else True
        )
        if not (np.isfinite(knots).all() and np.isfinite(risk).all() and len(risk) == max(len(knots), 1)):
            raise InputError("the state of the ranker cannot be read: its estimate of the risk has no finite knots")
        if not chances or (risk < 0).any():
            raise InputError("the state of the ranker cannot be read: its risk is no chance that falls with difference")
        return cls(knots, risk)
