"""A bound on the excess abstention loss of a scorer from its surrogate loss on data, with what it rests on in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.bounds import checked_setting, sharp_bound
from concordant.abstention.pairs import FarSums, JudgedPairs, far_sums, features
from concordant.abstention.points import ScorerClass, checked_gamma, phi_named
from concordant.errors import InputError, UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """What the surrogate loss of a scorer says of its abstention loss. Means are over judgments; near ones count 0."""

    bound: float
    """R_abs(h) − R*_abs + M_abs on these data is at most this; ∞ for γ = 0."""
    excess: float
    """That same quantity counted directly: misranked far judgments less the least number that any order of each pair
    by itself leaves. Never above ``bound``."""
    surrogate_loss: float
    surrogate_least: float
    """Mean of the least conditional surrogate risk of the class (networks: a lower bound)."""
    far_share: float
    """Share of the judgments the learner does not abstain on, which no excess can exceed."""
    judgments: int
    vacuous: bool
    """Whether the bound says nothing: it is not below ``far_share``."""
    population_bound: float | None
    """The same for the population, with probability ``confidence``; None where it was not asked for."""
    confidence: float | None
    assumptions: tuple[str, ...]

    @property
    def gap(self) -> float:
        """R_Φ(h) − R*_Φ + M_Φ: surrogate loss less its pairwise least."""
        return max(0.0, self.surrogate_loss - self.surrogate_least)


def certificate(
    scores: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | JudgedPairs,
    *,
    phi: str,
    W: float,
    gamma: float,
    norm: float | str = "inf",
    setting: str = "general",
    Lambda: float | None = None,
    B: float | None = None,
    k: float = 1.0,
    confidence: float | None = None,
    diameter: float | None = None,
) -> Certificate:
    """Bound the excess abstention loss of scores on features by their surrogate loss.

    The bound is f · Ψ⁻¹(gap/f), f the share of far judgments, Ψ the calibration function (convex, so that it holds for
    means) and gap the surrogate loss less the mean of the least risk of each pair.

    Parameters
    ----------
    scores : (items,), h.
    X : (items, features).
    y : labels (items,), whose pairs of different labels are judged once each, or ``JudgedPairs``.
    phi, W, gamma, Lambda, B, k : the surrogate, the distance γ and the class of h, as in ``consistency_bound``.
    norm : 1, 2 or 'inf', of the distance.
    setting : 'general', or 'bipartite', which takes two labels: losses are means over pairs of one positive and one
        negative. Ψ is the general one there as well: such a pair is judged once, and the bipartite Ψ, which speaks of
        means over all pairs, never gives a lower bound once divided by the share of pairs of different labels (at most
        ½).
    confidence : with it (labels only) the bound is also given for the population the rows are drawn from: Hoeffding's
        inequality for U-statistics over ⌊n/2⌋ independent pairs, for the gap and for the share of different labels,
        each at half the risk.
    diameter : the largest distance that features can have; with ``confidence`` hinge and exponential need it.

    Errors: UsageError for scores that are not of the class (it says the W they need), options and shapes; InputError
    for values that are not finite, a single label, bipartite labels that are not two, distances beyond the diameter.

    >>> found = certificate([0.0, 0.5, 1.0], [[0.0], [0.5], [1.0]], [0, 1, 2], phi="exponential", W=1.2, gamma=0.4)
    >>> round(found.gap, 4), round(found.bound, 4), found.excess, found.vacuous
    (0.0607, 0.3431, 0.0, False)

    Source: RwA, Theorems 2.1 and 3.1; Hoeffding (1963), section 5a.
    """
    scorers, threshold = ScorerClass(W, Lambda, B), checked_gamma(gamma)
    checked_setting(setting)
    x = features(X, y.items if isinstance(y, JudgedPairs) else len(np.asarray(y)))
    if setting == "bipartite":
        _two_labels(y)
    sums = far_sums(scores, x, y, scorers, phi=phi, gamma=gamma, norm=norm, k=k)
    if sums.outside:
        raise UsageError(
            f"the scores are not of {scorers.words}: {sums.outside:,} far pairs differ by up to {sums.stretch:.4g} "
            f"times what the class allows; W must be at least {W * sums.stretch:.6g}"
        )

    def bounded(gap: float, share: float) -> float:
        if threshold == 0:
            return math.inf
        if not gap < math.inf or share == 0:
            return share
        return share * float(sharp_bound(gap / share, phi=phi, W=W, gamma=gamma, Lambda=Lambda, B=B, k=k))

    gap = max(0.0, sums.surrogate - sums.surrogate_least)
    bound = bounded(gap, sums.far)
    population = None
    if confidence is not None:
        population = bounded(_population(gap, x, y, sums, scorers, phi, k, confidence, diameter), 1.0)
    return Certificate(
        bound,
        sums.misranked - sums.misranked_least,
        sums.surrogate,
        sums.surrogate_least,
        sums.far,
        round(sums.judgments),
        not bound < sums.far,
        population,
        confidence,
        _assumptions(scorers, threshold, y, population is not None),
    )


def _two_labels(y: ArrayLike | JudgedPairs) -> None:
    if isinstance(y, JudgedPairs):
        raise UsageError("the bipartite setting takes labels of points, not judged pairs")
    number = len(np.unique(np.asarray(y)))
    if number != 2:
        raise InputError(f"bipartite labels must take two values, not {number}")


def _population(
    gap: float,
    x: Floats,
    y: ArrayLike | JudgedPairs,
    sums: FarSums,
    scorers: ScorerClass,
    phi: str,
    k: float,
    confidence: float,
    diameter: float | None,
) -> float:
    """Upper bound of the population's gap, ∞ where there is none."""
    if isinstance(y, JudgedPairs):
        raise UsageError(
            "confidence needs labels of points; judged pairs are not a sample of pairs that are independent"
        )
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must lie between 0 and 1, not {confidence}")
    if diameter is None and phi != "sigmoid":
        raise UsageError(f"the {phi} loss is bounded only where the features are: give their diameter")
    if diameter is not None and not diameter >= sums.widest:
        raise InputError(f"there are points at distance {sums.widest:.6g}, beyond the diameter {diameter}")
    farthest = scorers.most(math.inf if diameter is None else diameter)
    ends = phi_named(phi, k).value(np.stack((-farthest, farthest)))
    n = len(x)
    slack = math.sqrt(math.log(2 / (1 - confidence)) / (2 * (n // 2)))
    mixed = sums.judgments / (n * (n - 1) / 2)
    least = mixed - slack
    return (gap * mixed + float(ends[0] - ends[1]) * slack) / least if least > 0 else math.inf


def _assumptions(scorers: ScorerClass, gamma: float, y: ArrayLike | JudgedPairs, population: bool) -> tuple[str, ...]:
    said = [
        f"h belongs to the {scorers.words}; only the far pairs were checked, and only for their distance",
        "the learner abstains on pairs at distance at most gamma, and these cost the same for every scorer",
    ]
    if gamma == 0:
        said.append("gamma is 0: points may be as near as you like, and no bound exists (RwA, Theorems 4.1 and 4.3)")
    if isinstance(y, JudgedPairs):
        said.append(
            "the distribution is that of these judgments: shares of judgments are the conditional probabilities"
        )
    else:
        said.append("the distribution is that of these rows: every label is taken as certain")
    if population:
        said.append(
            "for the population: rows are independent, h was chosen without them, the diameter holds for all points"
        )
        said.append(
            "for the population: no pair's labels are assumed certain; noise in them only makes the bound larger"
        )
    else:
        said.append("nothing is said of other data than these")
    return tuple(said)
