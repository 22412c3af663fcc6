"""Gains G(s) of score vectors and the best value Z(s) they allow, for the surrogates of complete preferences."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.errors import UsageError, did_you_mean
from concordant.losses.gains import GAINS as PLAIN
from concordant.losses.gains import Gain, best_value, inverse_discount
from concordant.losses.objective import Relevance

Floats = NDArray[np.float64]

GAINS: Mapping[str, Gain] = MappingProxyType(
    {
        **PLAIN,
        "err": lambda s: np.expm1(s * np.log(2.0)) / np.exp2(np.max(s, initial=0.0)),
        "sigmoid": lambda s: np.asarray(expit(s), np.float64),
    }
)
"""Increasing G; "err" is (2^s − 1)/2^max with the largest score of the batch; "sigmoid" makes real scores chances."""


def best_values(
    gains: Floats, node_start: NDArray[np.int64], at: int | None = None, discount: Gain | None = None
) -> Floats:
    """Z = Σ_j G_(j)/F(j) over the gains of each graph in decreasing order, the first ``at`` (AoS (14)).

    F(j) = log2(1 + j) unless given.

    ``gains`` has shape (draws, nodes), the result (draws, graphs).

    >>> best_values(np.array([[1.0, 3.0]]), np.array([0, 2])).round(4).tolist()
    [[3.6309]]
    """
    inverse = inverse_discount(int(np.diff(node_start).max(initial=0)), discount, at)
    return np.stack([best_value(node_start, row, inverse) for row in gains])


def expected_gains(
    source: Relevance,
    gain: str,
    *,
    normalised: bool,
    at: int | None = None,
    signed: bool = False,
    discount: Gain | None = None,
) -> Floats:
    """∫ G(s_j)/Z(s) dμ (``normalised``) or ∫ G(s_j) dμ of every node; 0 where Z(s) = 0.

    Raises UsageError when gains that serve as edge weights are negative (unless ``signed``), when gains that are not
    normalised leave [0, 1] (they stand for chances, AoS (16)), and when Z is negative.

    >>> law = Relevance.of([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]])
    >>> expected_gains(law, "2^s-1", normalised=True).round(3).tolist()
    [0.403, 0.403, 0.307]
    """
    if gain not in GAINS:
        raise UsageError(f"unknown gain {gain!r}; {did_you_mean(gain, GAINS)}")
    if at is not None and at < 1:
        raise UsageError(f"the cut-off must be at least 1, not {at}")
    values = GAINS[gain](source.scores)
    wrong = int((values < 0).sum())
    if wrong and not signed:
        hint = "'2^s' is positive everywhere" if normalised else "scores must be at least 0 here"
        raise UsageError(
            f"gain {gain!r} is negative for {wrong:,} of {values.size:,} scores (lowest score "
            f"{source.scores.min():g}); as edge weights such gains leave the loss unbounded below; {hint}"
        )
    if not normalised:
        over = int((values > 1).sum())
        if over:
            raise UsageError(
                f"gain {gain!r} is above 1 for {over:,} of {values.size:,} scores; here gains are chances in [0, 1]: "
                "use gain 'err' for graded labels"
            )
        return np.asarray(source.share @ values, np.float64)
    best = best_values(values, source.node_start, at, discount)
    if (best < 0).any():
        raise UsageError(f"the best value Z(s) is negative for {int((best < 0).sum()):,} draws; use gain '2^s'")
    inverse = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
    return np.asarray(source.share @ (values * inverse[:, source.owner]), np.float64)
