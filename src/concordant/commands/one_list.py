"""The AUC of one list alone has a standard error and an interval without other queries: DeLong's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from concordant.commands.matching import Matched, query_names
from concordant.errors import InputError
from concordant.metrics.auc_interval import auc_difference, auc_interval
from concordant.metrics.registry import canonical

__all__ = ["of_one_list"]


def of_one_list(
    names: list[str], lists: Matched, second: Matched | None, level: float
) -> tuple[dict[str, dict[str, Any]], str]:
    """Return what is known of the AUCs among ``names`` beyond their value, where there is one query, and a note."""
    areas = [name for name in names if canonical(name) == "auc"]
    if not areas or len(query_names(lists.query)) != 1:
        return {}, ""
    try:
        found = _alone(lists, level) if second is None else _paired(lists, second, level)
    except InputError as error:
        return {}, f"{areas[0]}: no interval: {error}"
    return dict.fromkeys(areas, found), (
        f"{areas[0]}: one list; standard error and interval are DeLong's, for independent rows"
    )


def _alone(lists: Matched, level: float) -> dict[str, Any]:
    found = auc_interval(lists.score, lists.label, level=level)
    return {"standard_error": found.standard_error, "lower": found.lower, "upper": found.upper}


def _paired(lists: Matched, second: Matched, level: float) -> dict[str, Any]:
    place = pc.index_in(lists.item, second.item)
    if len(lists.item) != len(second.item) or place.null_count:
        raise InputError("the two scorers do not have the same rows")
    other = second.score[np.asarray(place)]
    found = auc_difference(lists.score, other, lists.label, level=level)
    own = auc_interval(lists.score, lists.label, level=level)
    bounds = {"lower": found.lower, "upper": found.upper, "p_value": found.p_value}
    return {"standard_error": own.standard_error, **bounds}
