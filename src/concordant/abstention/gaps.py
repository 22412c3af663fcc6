"""Minimisability gaps: how much worse the best scorer of a class is than the best order of each pair by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from concordant.abstention.linear import minimise_linear
from concordant.abstention.pairs import AllPairs, Floats, JudgedPairs, ListedPairs, far_sums, features
from concordant.abstention.points import ScorerClass, checked_gamma
from concordant.errors import UsageError


@dataclass(frozen=True)
class MinimisabilityGaps:
    """Intervals (least, greatest) that hold the two gaps M = R* − E[inf of the conditional risk] on these judgments."""

    surrogate: tuple[float, float]
    """M of the surrogate loss."""
    abstention: tuple[float, float]
    """M of the abstention loss, whatever the cost: abstained pairs cost the same for every scorer."""
    far_share: float
    how: str
    """How the best surrogate risk of the class was found."""


def minimisability_gaps(
    X: ArrayLike,
    y: ArrayLike | JudgedPairs,
    *,
    phi: str,
    W: float,
    gamma: float,
    norm: float | str = "inf",
    Lambda: float | None = None,
    B: float | None = None,
    k: float = 1.0,
    scores: ArrayLike | None = None,
) -> MinimisabilityGaps:
    """Return M_Φ and M_abs of the empirical distribution of the judgments, each as an interval.

    ``y`` are labels of the rows of ``X`` (then each pair of different labels has one sure judgment) or ``JudgedPairs``,
    whose shares of judgments are the conditional probabilities. For linear scorers and a convex Φ the interval of M_Φ
    is as narrow as the solver's certificate. For the sigmoid, for networks (which need the ``scores`` (items,) of one
    of the class) and for the abstention loss, whose minimum is hard to find, it begins at 0 and ends with the gap of
    the scorer at hand.

    Errors: UsageError for a network without scores, scores that the class does not hold and options; InputError for
    values.

    >>> found = minimisability_gaps([[0.0], [1.0], [3.0]], [0, 2, 1], phi="hinge", W=1.0, gamma=0.1)
    >>> [round(end, 4) for end in found.surrogate], [round(end, 4) for end in found.abstention]
    ([0.7778, 0.7778], [0.0, 0.3333])

    Source: RwA, section 2.1, "minimizability gap".
    """
    scorers = ScorerClass(W, Lambda, B)
    x = features(X, y.items if isinstance(y, JudgedPairs) else len(np.asarray(y)))
    lower = 0.0
    if Lambda is None and scores is None:
        fit = minimise_linear(x, _far_pairs(x, y, gamma, norm), phi=phi, W=W, norm=norm, k=k)
        h, lower, how = fit(x), fit.lower, f"solver on linear scorers: {fit.status}"
    elif scores is None:
        raise UsageError("networks need the scores of one of them; there is no solver for the best one")
    else:
        h, how = np.asarray(scores, np.float64), "scores given"
    sums = far_sums(h, x, y, scorers, phi=phi, gamma=gamma, norm=norm, k=k)
    if sums.outside:
        raise UsageError(f"the scores are not of {scorers.words}: {sums.outside:,} far pairs differ by more")
    return MinimisabilityGaps(
        (max(0.0, lower - sums.surrogate_least), max(0.0, sums.surrogate - sums.surrogate_least)),
        (0.0, sums.misranked - sums.misranked_least),
        sums.far,
        how,
    )


def _far_pairs(X: Floats, source: JudgedPairs | ArrayLike, gamma: float, norm: float | str) -> AllPairs | ListedPairs:
    """Return what ``minimise_linear`` takes: the far pairs of judged ones, or of all pairs of different labels."""
    if not isinstance(source, JudgedPairs):
        return AllPairs.of(source, X, gamma=gamma, norm=norm)
    far = source.distances(X, norm) > checked_gamma(gamma)
    first, second = source.first[far], source.second[far]
    return ListedPairs.of(
        source.items,
        np.concatenate((second, first)),
        np.concatenate((first, second)),
        np.concatenate((source.up[far], source.down[far])),
        float(source.up.sum() + source.down.sum()),
    )
