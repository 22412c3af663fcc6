"""Rule: which pairs a ranker declines to order, by distance or estimated risk, and how held-out pairs choose that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.abstention.held_pairs import HeldPairs
from concordant.abstention.points import NORMS
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.errors import InputError, Setting, UsageError
from concordant.io.log.json_values import Fields
from concordant.learning.features.normalising import Normaliser
from concordant.learning.scikit import needed
from concordant.preferences.notes import Note

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
            fitted = needed("isotonic", "to estimate the risk of pairs").IsotonicRegression(
                increasing=False, y_min=0.0, y_max=1.0
            )
            fitted.fit(size, wrong / mass, sample_weight=mass)
            return cls(np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64))
        unit = float(np.sqrt(np.average(size**2, weights=mass))) or 1.0
        both = np.concatenate((size, -size))[:, None] / unit  # either way round, so no side is favoured
        label = np.repeat([1, 0], len(size))
        right = np.concatenate((mass - wrong, mass - wrong))
        lost = np.concatenate((wrong, wrong))
        models = needed("linear_model", "to estimate the risk of pairs")
        solver = models.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8, max_iter=1000)
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


def curve_of(held: HeldPairs, by: str, risk: ConditionalRisk | None = None) -> RiskCoverage:
    """Return the curve of a rule on these pairs, with the estimated risk at each step where there is an estimate."""
    threshold = held.distance if by == "distance" else np.abs(held.difference)
    curve = RiskCoverage.of(threshold, held.mass, held.wrong, by=by)
    return curve if risk is None else curve.with_estimates(risk)


def chosen(
    held: HeldPairs, by: str, norm: str, cost: float, gamma: Any, share: float | None, calibration: str
) -> tuple[Rule, RiskCoverage]:
    """Return the rule of least held-out loss at this cost (or that of γ, where it is given), and its curve.

    By risk nothing is minimised: the risk is estimated, and compared with the cost.
    """
    curve = curve_of(held, by)
    risk = ConditionalRisk.fit(held.difference, held.mass, held.wrong, calibration)
    curve = curve.with_estimates(risk)
    if by == "distance":
        best = _nearest(curve, curve.best(cost, share)) if gamma == "auto" else gamma
        return Rule(by, norm, cost, None if best is None else float(best), risk), curve
    return Rule(by, norm, cost, None, risk, _limit(curve, share)), curve


def recosted(rule: Rule, cost: float, curve: RiskCoverage | None, gamma: Any) -> tuple[Rule, dict[str, Any]]:
    """Return the rule at another cost, and what is known of it."""
    if rule.by == "risk" or gamma != "auto" or curve is None:  # γ was given, or risks are compared with the cost
        return replace(rule, cost=cost), {"gamma": rule.gamma, "cost": cost}
    made = replace(rule, cost=cost, gamma=_nearest(curve, curve.best(cost)))
    return made, facts_of(made, curve)


def facts_of(rule: Rule, curve: RiskCoverage) -> dict[str, Any]:
    """Return what the held-out pairs say about a rule: coverage, risk of what is ordered, of what is declined, loss."""
    if rule.by == "distance":
        above = -math.inf if rule.gamma is None else rule.gamma
        place = int(np.searchsorted(curve.threshold[1:], above, side="right"))
    else:
        assert curve.estimated is not None
        place = int(((curve.estimated[1:] > rule.cost) & (curve.threshold[1:] <= rule.limit)).sum())
    declined, wrong = float(curve.declined[place]), float(curve.wrong[place])
    kept = curve.mass - declined if place < len(curve.declined) - 1 else 0.0
    return {
        "pairs": curve.pairs,
        "weight": curve.mass,
        "gamma": rule.gamma,
        "cost": rule.cost,
        "coverage": kept / curve.mass,
        "risk": wrong / kept if kept > 0 else None,
        "risk of declined": (float(curve.wrong[0]) - wrong) / declined if declined > 0 else None,
        "loss": float(curve.losses(rule.cost)[place]),
        "loss without": float(curve.losses(0.0)[0]),
    }


def remarks(rule: Rule, facts: Mapping[str, Any], scale: Normaliser, share: float | None, gamma: Any) -> list[Note]:
    """Return what a reader should know of a rule and of the scale of its distances."""
    said = []
    spread = scale.scale
    if rule.by == "distance" and not scale.standardise and spread is not None and len(spread) > 1:
        low, high = int(spread.argmin()), int(spread.argmax())
        if spread[high] > 10 * spread[low]:
            text = (
                "distances are taken in features of different scale: {most!r} varies {times:,.0f} times as much as "
                "{least!r} ({ask} standardises)"
            )
            times, ask = float(spread[high] / spread[low]), Setting("scale", "auto")
            most, least = scale.names[high], scale.names[low]
            said.append(Note("different scales", text, most=most, least=least, times=times, ask=ask))
    if facts and facts["coverage"] == 1.0 and gamma == "auto":
        what = "near pairs are" if rule.by == "distance" else "the least sure pairs are"
        text = (
            f"abstention does not pay at cost {{cost:g}}: {what} not wrong more often than that, so none of the "
            "held-out pairs is declined"
        )
        text += "" if share is None else f" (at most a share of {share:g} may be declined)"
        said.append(Note("nothing declined", text, cost=rule.cost))
    if facts and facts["coverage"] == 0.0:
        text = (
            "every held-out pair is declined: at cost {cost:g} no order of this ranker is worth it, as far as "
            f"{'distances' if rule.by == 'distance' else 'score differences'} tell"
        )
        said.append(Note("all declined", text, cost=rule.cost))
    return said


def _nearest(curve: RiskCoverage, step: int) -> float | None:
    """γ of a step: 0 where nothing is declined, or None where even pairs at distance 0 should not be."""
    if step:
        return float(curve.threshold[step])
    return None if curve.threshold[1] == 0 else 0.0


def _limit(curve: RiskCoverage, share: float | None) -> float:
    """The score difference up to which pairs of a risk above the cost may be declined."""
    if share is None:
        return math.inf
    step = curve.within(share)
    return float(curve.threshold[step]) if step else -1.0
