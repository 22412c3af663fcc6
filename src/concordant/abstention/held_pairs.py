"""Pairs of items that somebody judged, as the ranker inside sees them: score differences, distances and votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.estimator import Ranker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.rankers.validation import Training, matched
from concordant.learning.scikit import NotFittedError, check_is_fitted, clone, is_a
from concordant.preferences.notes import Note
from concordant.preferences.ragged import Ragged
from concordant.preferences.splits import folds
from concordant.progress import steps

BLOCK = 1 << 20
"""Values that are subtracted at a time."""


def pair_distances(
    A: Matrix, B: Matrix, norm: str, first: NDArray[np.int64] | None = None, second: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return ‖A[first] − B[second]‖ of each pair of rows; without row numbers, of the rows as they stand.

    The bits of a distance depend on its two rows only, whatever stands beside them and however they lie in memory.

    >>> pair_distances(np.zeros((1, 2)), np.array([[3.0, 4.0]]), "2").tolist()
    [5.0]
    """
    size = len(A) if first is None else len(first)
    cells = len(A) * len(B)
    if norm == "inf" and first is not None and second is not None and 0 < cells <= min(4 * size, BLOCK):
        return np.asarray(
            scipy.spatial.distance.cdist(A, B, "chebyshev")[first, second], np.float64
        )  # a maximum: the same bits, sooner
    found = np.empty(size)
    step = max(1, BLOCK // max(A.shape[1], 1))
    for begin in range(0, size, step):
        part = slice(begin, min(begin + step, size))
        left = A[part] if first is None else A[first[part]]
        right = B[part] if second is None else B[second[part]]
        gap = np.abs(np.subtract(left, right, dtype=np.float64, order="C"))
        if norm == "inf":
            found[part] = gap.max(axis=1, initial=0.0)
        elif norm == "1":
            found[part] = gap.sum(axis=1)
        else:
            found[part] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return found


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldPairs:
    """Judged pairs of a query with the weight of the judgments either way.

    Comparisons count each with its strength, a tie half each way; of two items with relevance labels the higher label
    stands above, with weight 1.
    """

    difference: Floats
    """Score of the first item less that of the second."""
    distance: Floats
    """NaN without a scale."""
    above: Floats
    """Weight of the judgments that put the first above the second."""
    below: Floats
    notes: tuple[Note, ...] = ()

    @property
    def mass(self) -> Floats:
        """Weight of each pair."""
        return self.above + self.below

    @property
    def wrong(self) -> Floats:
        """Weight that the order by score contradicts, half of it where scores are equal."""
        return np.where(self.difference > 0, self.below, np.where(self.difference < 0, self.above, 0.5 * self.mass))

    @classmethod
    def joined(cls, parts: list[HeldPairs]) -> HeldPairs:
        """Return the pairs of all parts."""
        names = ("difference", "distance", "above", "below")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**columns, notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)))


def judged_pairs(
    held: Training, scores: Floats, Z: Matrix | None, norm: str, *, most: int = 2_000_000, seed: int = 0
) -> HeldPairs:
    """Return the judged pairs of ``held``, given the score and the normalised features of each row.

    Labels make n² pairs: of more than ``most`` in all, that many are drawn at random, and a note says so.
    """
    notes: tuple[Note, ...] = ()
    if not held.labelled:
        table = Disagreement(held.prefs, held.weight)
        weight = table.pairs.spread(held.weight)
        first, second, above, below = table.first, table.second, table.above * weight, table.below * weight
    else:
        first, second, notes = _pairs_of_lists(held.start, most, seed)
        labels = held.labels
        differ = labels[first] != labels[second]
        first, second = first[differ], second[differ]
        owner = np.searchsorted(held.start, first, side="right") - 1
        above, below = (held.weight[owner] * (labels[a] > labels[b]) for a, b in ((first, second), (second, first)))
    first, second = held.row[first], held.row[second]
    used = above + below > 0
    if not used.all():
        first, second, above, below = first[used], second[used], above[used], below[used]
    distance = np.full(len(first), np.nan) if Z is None else pair_distances(Z, Z, norm, first, second)
    return HeldPairs(scores[first] - scores[second], distance, above, below, notes)


def _pairs_of_lists(start: Ints, most: int, seed: int) -> tuple[Ints, Ints, tuple[Note, ...]]:
    """All pairs of entries within each list, or a random part of them."""
    lists = Ragged(start)
    size = lists.sizes
    count = size * (size - 1) // 2
    total = int(count.sum())
    if total <= most:
        return (*lists.pairs(), ())
    drawn = np.sort(np.random.default_rng(seed).choice(total, most, replace=False, shuffle=False))
    before = Ragged.of_sizes(count).first
    owner = np.searchsorted(before, drawn, side="right") - 1
    place = drawn - before[owner]
    # pair number p of a list: (i, j) with i < j and p = j(j − 1)/2 + i
    high = ((1 + np.sqrt(8.0 * place + 1)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > place  # the root may be rounded up
    low = place - high * (high - 1) // 2
    text = "{pairs:,} of {of:,} pairs of labelled rows were drawn at random (seed {seed}) to choose abstention by"
    note = Note("pairs drawn", text, pairs=most, of=total, seed=str(seed))
    return start[owner] + low, start[owner] + high, (note,)


def unfrozen(ranker: Any) -> Any:
    """Return the ranker itself where it is wrapped in scikit-learn's FrozenEstimator."""
    return ranker.estimator if is_a(ranker, "FrozenEstimator") else ranker


def check_scorer(ranker: Any) -> None:
    """Refuse what cannot score rows. Errors: UsageError."""
    if isinstance(ranker, type):
        raise UsageError(f"ranker must be an object such as {ranker.__name__}(), not the class")
    if not hasattr(ranker, "predict"):
        raise UsageError(f"a {type(ranker).__name__} has no predict; give a ranker, a regressor or a pipeline of one")


def is_fitted(ranker: Any) -> bool:
    """Whether the ranker can score already; what cannot be fitted can."""
    if not hasattr(ranker, "fit"):
        return True
    try:
        check_is_fitted(unfrozen(ranker))
    except NotFittedError:
        return False
    return True


def scale_of(ranker: Any, training: Training | None, names: tuple[str, ...] | None, *, standardise: bool) -> Normaliser:
    """Return how features are brought to one scale: as the fitted ranker does, or as these rows suggest.

    Errors: UsageError without rows where the ranker does not say.
    """
    inner = unfrozen(ranker)
    own = getattr(inner, "normaliser_", None)
    own = own if isinstance(own, Normaliser) else None
    if own is not None and (own.standardise or not standardise):
        return replace(own, standardise=standardise)
    if training is None:
        raise UsageError(
            f"this {type(inner).__name__} does not bring its features to one scale, which distances need: give fit "
            "features and judgments to learn a scale from"
        )
    width = training.features.X.shape[1]
    X = matched(training.features, training.named, names, getattr(inner, "n_features_in_", None) or width)
    fill = "raise" if getattr(inner, "missing_", "raise") == "raise" else "mean"
    return Normaliser(standardise, own is not None and own.log, fill).fit(X, names or training.features.names)


def scores_of(ranker: Any, features: Features, named: bool) -> Floats:
    """Return the score of each row. Errors (InputError): scores that are not one finite number a row."""
    inner = unfrozen(ranker)
    if isinstance(inner, QueryRankers):
        found = inner.predict(features if named else replace(features, names=inner.names_))
    else:
        found = inner.predict(features if named and isinstance(inner, Ranker) else features.X)
    scores = np.asarray(found, np.float64)
    if scores.shape != (len(features),):
        raise InputError(f"predict of {type(inner).__name__} gave shape {scores.shape} for {len(features):,} rows")
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise InputError(f"{bad:,} of {len(scores):,} scores of {type(inner).__name__} are not finite")
    return scores


def fit_scorer(ranker: Any, training: Training) -> Any:
    """Return a clone of the ranker fitted to the judgments or labels of these rows.

    Errors: UsageError for a regressor and preferences; those of the ranker.
    """
    made, features = clone(ranker), training.features
    last = made[-1] if is_a(made, "Pipeline") else made
    ours = isinstance(last, Ranker | QueryRankers)
    if training.labelled:
        labels = np.full(len(features), np.nan)
        labels[training.row] = training.labels
        judged = Judged(features.items, features.item, features.queries, _queries(features), None, labels)
    elif ours:
        judged = Judged(features.items, features.item, features.queries, features.query, training.prefs, None)
    else:
        raise UsageError(
            f"a {type(last).__name__} cannot learn from preferences; fit it first, or give AggregationRanker it as "
            "regressor"
        )
    if not ours:
        return made.fit(features.X[training.row], training.labels)
    return made.fit(features if training.named and last is made else features.X, judged)


def _queries(features: Features) -> NDArray[np.int32]:
    return np.zeros(len(features), np.int32) if features.query is None else features.query


def cross_fitted(ranker: Any, training: Training, n: int, split: str, seed: int) -> Iterator[tuple[Any, Training]]:
    """Yield a ranker fitted without a part of the judgments, and that part, n times."""
    if not training.labelled:
        for kept, held in steps("folds", folds(training.prefs, n, split=split, seed=seed), n):
            yield fit_scorer(ranker, replace(training, judged=kept)), replace(training, judged=held)
        return
    training.refuse_cut()
    units, unit = (len(training.start) - 1, "queries") if split == "queries" else (len(training.row), "labelled rows")
    if split == "clusters" or units < n:
        why = "labels have no clusters" if split == "clusters" else f"{n} folds need as many, there are {units:,}"
        raise UsageError(
            f"labels are held out by query or by row ({unit}): {why}; give a ranker that is fitted already and rows "
            "it has not seen"
        )
    part = np.random.default_rng(seed).permutation(units) % n
    part = training.groups.spread(part) if split == "queries" else part
    for number in steps("folds", range(n)):
        yield fit_scorer(ranker, _of_nodes(training, part != number)), _of_nodes(training, part == number)


def _of_nodes(training: Training, chosen: NDArray[np.bool_]) -> Training:
    """The chosen labelled rows alone."""
    rows = training.row[chosen]
    size = np.bincount(training.groups.owner[chosen], minlength=len(training.weight))
    return replace(
        training,
        features=training.features.take(rows),
        start=Ragged.of_sizes(size[size > 0]).start,
        row=np.arange(len(rows)),
        judged=training.labels[chosen],
        weight=training.weight[size > 0],
    )
