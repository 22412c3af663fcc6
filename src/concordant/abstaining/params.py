"""What the parameters of an abstaining ranker may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from concordant.abstaining.conditional_risk import CALIBRATIONS
from concordant.abstaining.rule import BY
from concordant.abstaining.scorer import check_scorer
from concordant.abstention.norms import norm_name
from concordant.abstention.points import cost_of
from concordant.errors import UsageError
from concordant.rankers.folding import SPLITS

__all__ = ["check_params"]

SCALES = ("auto", "none")


def check_params(given: Any) -> None:
    """Refuse parameters that mean nothing, before any work. Errors: UsageError."""
    check_scorer(given.ranker)
    cost_of(given.cost)
    norm_name(given.norm)
    for name, allowed in (("by", BY), ("scale", SCALES), ("calibration", CALIBRATIONS), ("split", ("auto", *SPLITS))):
        value = getattr(given, name)
        if not isinstance(value, str) or value not in allowed:
            raise UsageError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    gamma, share = given.gamma, given.share
    auto = isinstance(gamma, str) and gamma == "auto"
    if not (gamma is None or auto or (_is_number(gamma) and gamma >= 0)):
        raise UsageError(f"gamma must be 'auto', None or a distance of at least 0, not {gamma!r}")
    if share is not None and not (_is_number(share) and 0 <= share <= 1):
        raise UsageError(f"share must be a number from 0 to 1, not {share!r}")
    if given.by == "risk" and not auto:
        raise UsageError("gamma is for abstention by distance; by='risk' declines what has an estimated risk > cost")
    if share is not None and not auto:
        raise UsageError("share bounds what is chosen by held-out judgments, and gamma was given")
    for name, least in (("folds", 2), ("pairs", 1), ("seed", 0)):
        value = getattr(given, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise UsageError(f"{name} must be an integer of at least {least}, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and not math.isnan(value)
