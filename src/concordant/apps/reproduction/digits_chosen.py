"""RwA's abstention on digits with a smaller set: of the near pairs only those whose predicted error is above the cost.

An abstention of cost c pays on the pairs that are misranked more often than c, and nearness does not say which these
are. Their error is predicted from the difference of their scores, by networks that did not see the images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.rule import ConditionalRisk
from concordant.apps.reproduction.digits import HIDDEN, PIXEL, RIDGE, Floats, Ints, train_small

FOLDS = 5


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of points with different labels, each once. Shapes: (pairs,)."""

    distance: Ints
    """A whole number, squared for ℓ2."""
    difference: Floats
    """Of the scores."""
    wrong: Floats
    """1 where it is misranked, ½ where the scores are level: in one of the two orders."""

    @classmethod
    def of(cls, whole: Ints, label: Ints, score: Floats, norm: str) -> LabelledPairs:
        """Take all pairs of points with whole coordinates.

        >>> found = LabelledPairs.of(np.array([[0], [1], [3]]), np.array([0, 1, 1]), np.array([1.0, 0.0, 2.0]), "inf")
        >>> found.distance.tolist(), found.wrong.tolist()
        ([1, 3], [1.0, 0.0])
        """
        one, two = np.nonzero(np.triu(label[:, None] != label, 1))
        if norm == "inf":
            distance = np.zeros(len(one), whole.dtype)
            for column in whole.T:
                np.maximum(distance, np.abs(column[one] - column[two]), out=distance)
        else:
            square = (whole**2).sum(axis=1)
            distance = square[one] + square[two] - 2 * (whole @ whole.T)[one, two]
        apart = score[two] - score[one]
        sign = np.sign(label[two] - label[one]) * np.sign(apart)
        return cls(distance, apart, 0.5 * (1.0 - sign))

    def near(self, level: int | None) -> NDArray[np.bool_]:
        """Pairs at a distance of at most ``level``; all of them without."""
        return np.ones(len(self.wrong), bool) if level is None else np.asarray(self.distance <= level)

    @classmethod
    def joined(cls, parts: Sequence[LabelledPairs]) -> LabelledPairs:
        """The pairs of several sets, none between them."""
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in cls.__annotations__))


@dataclass(frozen=True)
class ChosenSet:
    """Abstention on the near pairs of predicted error above c."""

    share: float
    """Of all pairs."""
    error: float
    """Share of the set that is misranked; NaN where it is empty."""
    loss: float
    """Misranked pairs outside the set, and c for each within, over all pairs."""


def unseen_scores(
    whole: Ints, label: Ints, *, steps: int, seed: int, told: Callable[[], object] = lambda: None
) -> list[tuple[NDArray[np.intp], Floats]]:
    """Score each fifth of the images by a network that learned from the others: its images and their scores."""
    part = np.random.default_rng([seed, FOLDS]).permutation(len(label)) % FOLDS
    found = []
    for fold in range(FOLDS):
        here = np.flatnonzero(part == fold)
        rest = np.flatnonzero(part != fold)
        net = train_small(whole[rest] / PIXEL, label[rest], hidden=HIDDEN, ridge=RIDGE, steps=steps, seed=seed)
        found.append((here, net.score(whole[here] / PIXEL)))
        told()
    return found


def set_by_predicted_error(learned: LabelledPairs, judged: LabelledPairs, level: int | None, cost: float) -> ChosenSet:
    """Predict the error of near pairs from score differences of near pairs that were learned from, and judge the set.

    >>> made = LabelledPairs(np.array([1, 1, 1, 9]), np.array([0.1, 0.1, 5.0, 0.1]), np.array([1.0, 0.0, 0.0, 1.0]))
    >>> set_by_predicted_error(made, made, 2, 0.2)
    ChosenSet(share=0.5, error=0.5, loss=0.35)
    """
    near = learned.near(level)
    inside = judged.near(level)
    if near.any():
        risk = ConditionalRisk.fit(learned.difference[near], np.ones(near.sum()), learned.wrong[near], "isotonic")
        inside = inside & (risk(judged.difference) > cost)
    share = float(inside.mean())
    error = float(judged.wrong[inside].mean()) if inside.any() else float("nan")
    return ChosenSet(share, error, float(judged.wrong[~inside].sum() / len(inside)) + cost * share)
