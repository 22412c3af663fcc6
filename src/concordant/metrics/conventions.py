"""Named conventions: what the well-known implementations do where the formula leaves a choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.metrics.gains import Gain, gain_of
from concordant.metrics.lists import Floats

__all__ = ["CONVENTIONS", "Convention", "convention_of"]


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

    def gains(self, label: Floats, gain: Gain | None) -> Floats:
        """Return the gain of every label, with the convention's own gain unless another one is given."""
        if gain is None and label.size and label.max() > self.highest:
            above = label > self.highest
            raise InputError(
                f"{int(above.sum()):,} of {len(label):,} labels are above {self.highest:g}, the highest that the "
                f"convention {self.name!r} allows (first: {label[int(above.argmax())]:g}); "
                'give gain="linear", a table or a function'
            )
        found = gain_of(self.gain if gain is None else gain, label)
        return np.maximum(found, 0.0) if self.floor else found


CONVENTIONS = {
    one.name: one
    for one in (
        Convention("burges", "exponential", "log2", "input"),
        Convention("sklearn", "linear", "log2", "averaged"),
        Convention("trec", "linear", "log2", "item", single=True, floor=True),
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

Single documents are lists like others (scikit-learn refuses them). XGBoost's metric ``ndcg`` without a cut-off stops at
rank 32, its ``topn``; ours takes the whole list.
"""


def convention_of(name: str) -> Convention:
    """Return a convention by name; the error of an unknown one lists all."""
    if name not in CONVENTIONS:
        raise UsageError(f"unknown convention {name!r}; {did_you_mean(str(name), CONVENTIONS)}")
    return CONVENTIONS[name]
