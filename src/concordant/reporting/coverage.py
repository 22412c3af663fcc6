"""Risk–coverage: how often the order is wrong on judgments held out, for every share of pairs declined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstaining.held_pairs import HeldPairs, judged_pairs
from concordant.abstaining.risk_coverage import RiskCoverage
from concordant.abstaining.rule_choice import curve_of
from concordant.abstaining.scorer import cross_fitted, scores_of
from concordant.errors import InputError, counted
from concordant.graphs import Batch
from concordant.preferences import Preferences
from concordant.rankers.concordance import Disagreement
from concordant.rankers.folding import folds
from concordant.rankers.intake import Training
from concordant.reporting.values import thinned
from concordant.structures.registry import structure as find_structure

__all__ = ["by_kept_scorer", "by_ranking", "by_scorer", "coverage_of"]

Ints = NDArray[np.int64]
FOLDS = 5
STEPS = 400
"""Steps of the curve that are shown, more only where more are best at some cost."""


def by_ranking(prefs: Preferences, structure: str, *, seed: int) -> RiskCoverage:
    """Judge score differences of a ranking of four fifths of the judgments on the fifth left out, five times.

    Two items that the rest does not connect have no difference: half wrong, and declined first. Errors (InputError):
    too few judgments.
    """
    parts = min(FOLDS, int(prefs.judgments.max(initial=0)))
    if parts < 2:
        raise InputError("no query has two judgments: none can be held out")
    gap, mass, wrong = [], [], []
    for train, held in folds(prefs, parts, seed=seed):
        scores = find_structure(structure)(Batch.whole(train))
        judge = Disagreement(held)
        apart = scores.component[judge.first] != scores.component[judge.second]
        difference = np.where(apart, 0.0, scores.value[judge.first] - scores.value[judge.second])
        pairs = HeldPairs(difference, np.full(len(difference), np.nan), judge.above, judge.below)
        some = pairs.mass > 0
        gap.append(np.abs(difference)[some])
        mass.append(pairs.mass[some])
        wrong.append(pairs.wrong[some])
    return RiskCoverage.of(np.concatenate(gap), np.concatenate(mass), np.concatenate(wrong), by="score difference")


def by_scorer(ranker: Any, training: Training, *, seed: int) -> RiskCoverage:
    """Judge scorers, each fitted without a part of the judgments, on that part."""
    assert training.prefs is not None
    split = "queries" if len(training.prefs.queries) > FOLDS else "judgments"
    parts = [_judged(fitted, part) for fitted, part in cross_fitted(ranker, training, FOLDS, split, seed)]
    return curve_of(HeldPairs.joined(parts), "risk")


def by_kept_scorer(ranker: Any, training: Training) -> RiskCoverage:
    """Judge a scorer that is fitted already on all judgments given."""
    return curve_of(_judged(ranker, training), "risk")


def _judged(ranker: Any, part: Training) -> HeldPairs:
    return judged_pairs(part, scores_of(ranker, part.features, part.named), None, "inf")


def coverage_of(curve: RiskCoverage, how: str) -> dict[str, Any]:
    """Return the steps of the curve, thinned but exact: all that are best at some cost are there."""
    best = np.flatnonzero(np.isin(curve.threshold, curve.hull().threshold, assume_unique=False))
    last = len(curve.threshold) - 1
    shown = thinned(len(curve.threshold), max(STEPS - len(best), 2), np.append(best, [0, last]))
    what = "distance between them" if curve.by == "distance" else "difference in score"
    explained = (
        f"{how} Pairs of items are declined (left without order) from the least {what} on: wrong is the weight of the "
        "judgments that contradict the order among the pairs that are not declined, half of it where scores are equal; "
        "a judged tie is half wrong whatever the order. At cost c the best step is the one of least "
        f"(wrong + c · declined) / mass; {counted(curve.pairs, 'pairs')}. The step is chosen by the judgments that its "
        "loss is computed from, which makes that loss a little too low."
    )
    return {
        "by": curve.by,
        "explained": explained,
        "mass": curve.mass,
        "pairs": curve.pairs,
        "threshold": curve.threshold[shown],
        "declined": curve.declined[shown],
        "wrong": curve.wrong[shown],
    }
