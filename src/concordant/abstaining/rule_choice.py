"""Choosing when to abstain by held-out pairs: γ, or the estimated risk, at a cost and within a share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from concordant.abstaining.conditional_risk import ConditionalRisk
from concordant.abstaining.held_pairs import HeldPairs
from concordant.abstaining.risk_coverage import RiskCoverage
from concordant.abstaining.rule import Rule
from concordant.features.normalising import Normaliser

__all__ = ["chosen", "curve_of", "facts_of", "recosted", "remarks"]


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


def remarks(rule: Rule, facts: Mapping[str, Any], scale: Normaliser, share: float | None, gamma: Any) -> list[str]:
    """Return what a reader should know of a rule and of the scale of its distances."""
    said = []
    spread = scale.scale
    if rule.by == "distance" and not scale.standardise and spread is not None and len(spread) > 1:
        low, high = int(spread.argmin()), int(spread.argmax())
        if spread[high] > 10 * spread[low]:
            said.append(
                f"distances are taken in features of different scale: {scale.names[high]!r} varies "
                f"{spread[high] / spread[low]:,.0f} times as much as {scale.names[low]!r} (scale='auto' standardises)"
            )
    if facts and facts["coverage"] == 1.0 and gamma == "auto":
        what = "near pairs are" if rule.by == "distance" else "the least sure pairs are"
        within = "" if share is None else f" (at most a share of {share:g} may be declined)"
        said.append(
            f"abstention does not pay at cost {rule.cost:g}: {what} not wrong more often than that, so none of the "
            f"held-out pairs is declined{within}"
        )
    if facts and facts["coverage"] == 0.0:
        said.append(
            f"every held-out pair is declined: at cost {rule.cost:g} no order of this ranker is worth it, as far as "
            f"{'distances' if rule.by == 'distance' else 'score differences'} tell"
        )
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
