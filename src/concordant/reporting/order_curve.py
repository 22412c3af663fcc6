"""Risk against the number of judgments that are aggregated at a time, with the one that was chosen."""

from __future__ import annotations

import math
from typing import Any

from concordant.rankers.curve import Curve

__all__ = ["order_of"]

LOSS = (
    "Risk is the share of held-out preferences that a scorer contradicts (a tie in score counts half): the mean over "
    "the parts held out, with its standard error"
)


def order_of(curve: Curve, whose: str) -> dict[str, Any]:
    """Return the risk at every order that was tried, other things as chosen (ridges, where one order was tried)."""
    axis, points = curve.axis, curve.curve().to_pylist()
    informed = axis == "ridge" and any(math.isinf(point[axis]) for point in points)
    what = (
        "k is the number of judgments that are aggregated into scores at a time, 'all' uses all judgments of a query "
        "at once; small k is more robust and blurs, large k sees more and needs more judgments"
        if axis == "order"
        else "one k was tried; the axis is the ridge, the penalty on "
        + ("what aggregation adds to a pairwise scorer (inf: it adds nothing)" if informed else "large coefficients")
    )
    shown = [
        {
            "order": f"{point[axis]:g}" if axis == "ridge" else str(point[axis]),
            **{name: point[name] for name in ("loss", "standard_error", "chosen")},
        }
        for point in points
    ]
    return {"axis": axis, "points": shown, "explained": f"{whose} {LOSS}; {what}."}
