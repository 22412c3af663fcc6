"""Counterexamples of the papers, as votes on three items."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from concordant.counterexamples.finder import Counterexample
from concordant.errors import UsageError, did_you_mean

__all__ = ["KNOWN", "known_counterexample"]

_THEOREM_2 = Counterexample(
    "theorem-2",
    "low noise",
    np.array([[0, 4, 9], [0, 0, 1], [4, 0, 0]]),
    source="Duchi, Mackey and Jordan (2013), proof of Theorem 2: half the people say 1 > 2 with strength 4 and 1 > 3 "
    "with strength 9, the others 2 > 3 with strength 1 and 3 > 1 with strength 4",
)
"""G1 = {1→2, 1→3} and G2 = {2→3, 3→1}, each half; Lemma 13 asks Y_23 < Y_31 Y_12/(Y_13 + Y_12) = 16/13.

The proof takes Y_23 ≤ (Y_13 − Y_12)/2 for low noise. That leaves Y_31 out: Definition 4 asks Y_13 − Y_31 ≥ Y_12 + Y_23,
so Y_13 > Y_12 + Y_31 and Y_23 ≤ Y_13 − Y_12 − Y_31, as here (9 − 4 = 4 + 1). The theorem stands. The surrogates (12)
with the identity for h read the mean strengths alone, so single comparisons in these numbers are the same population.
"""
_THEOREM_3 = Counterexample(
    "theorem-3",
    "low noise",
    np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]),
    source="Duchi, Mackey and Jordan (2013), proof of Theorem 3: one comparison each, 1 > 2, 2 > 3, 1 > 3 and "
    "3 > 1 with probabilities .25, .01, .5 and .24",
)
_ORDERINGS = Counterexample(
    "orderings",
    "acyclic",
    np.array([[0, 6, 6], [4, 0, 10], [4, 0, 0]]),
    source="Duchi, Mackey and Jordan (2010), section 3.1: six of ten people order 1 > 2 > 3, four 2 > 3 > 1; every "
    "pair of an order is one vote",
)
"""All pairs are compared equally often, so the logistic minimiser orders by votes won: 2 (14) before 1 (12)."""

KNOWN: Mapping[str, Counterexample] = MappingProxyType({one.name: one for one in (_THEOREM_2, _THEOREM_3, _ORDERINGS)})


def known_counterexample(name: str) -> Counterexample:
    """Look a counterexample of the papers up: "theorem-2", "theorem-3" or "orderings".

    >>> known_counterexample("theorem-3").right_order, known_counterexample("theorem-3").judge("ranknet").order
    ('1 > 2 > 3', '1 > 3 > 2')
    """
    if name not in KNOWN:
        raise UsageError(f"unknown counterexample {name!r}; {did_you_mean(name, KNOWN)}")
    return KNOWN[name]
