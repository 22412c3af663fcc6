"""Convex losses of all pairs of graded lists (complete preference data) in the time of a sort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.kernels.graded_pairs import exponential_pairs, hinge_pairs, logistic_pairs
from concordant.losses.pair_losses import PAIR_LOSSES, PairLoss
from concordant.preferences.ragged import Grouped

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WEIGHTS = ("pairs", "difference")
TABLE = 1 << 16
"""Range of whole grades up to which they are ranked by counting."""


def graded_loss(
    scores: ArrayLike, grades: ArrayLike, start: ArrayLike | None, phi: str, *, weight: str = "pairs"
) -> tuple[Floats, Floats]:
    """Return Σ_{i,j: grade_i > grade_j} w_ij φ(α_i − α_j) of each query and its gradient in α.

    Shapes: ``scores``, ``grades`` and the gradient (items,), ``start`` (queries + 1,) where the items of each query
    begin (None: one query), the value (queries,). w is 1 ('pairs') or grade_i − grade_j ('difference'). Hinge and
    squared hinge take one sort by score and ⌈log2 grades⌉ sweeps, exponential one pass; logistic, and any φ that no
    compiled loop knows, passes over all pairs (exact; no way around it is taken). Memory is linear in the items. At the
    kink of the hinge the slope is 0.

    Errors: UsageError for an unknown φ or weight and shapes that do not fit, InputError for scores or grades that are
    not finite.

    >>> value, gradient = graded_loss([0.5, 0.0, 2.0], [1, 0, 0], None, "hinge")  # 0.5 and 2.5
    >>> value.tolist(), gradient.tolist()
    ([3.0], [-2.0, 1.0, 1.0])
    """
    return GradedLists.of(grades, start).loss(np.asarray(scores), phi, weight=weight)


@dataclass(frozen=True, eq=False)
class GradedLists(Grouped):
    """Graded items of queries, ready for losses at many scores."""

    grade: Floats
    rank: Ints
    """Place of each grade among the distinct ones, 0 the lowest."""
    start: Ints
    distinct: int

    @classmethod
    def of(cls, grades: ArrayLike, start: ArrayLike | None = None) -> GradedLists:
        """Check and rank the grades; any real numbers. Errors as in ``graded_loss``."""
        grade = np.asarray(grades, np.float64)
        begin = np.array([0, len(grade)]) if start is None else np.asarray(start, np.int64)
        if grade.ndim != 1 or begin.ndim != 1 or len(begin) == 0:
            raise UsageError("grades and start must be columns, start with one entry more than there are queries")
        if begin[0] != 0 or begin[-1] != len(grade) or (np.diff(begin) < 0).any():
            raise UsageError(f"start must rise from 0 to the number of items, {len(grade):,}")
        wrong = int((~np.isfinite(grade)).sum())
        if wrong:
            raise InputError(f"{wrong:,} of {len(grade):,} grades are not finite")
        rank, distinct = _ranks(grade)
        return cls(grade, rank, begin.astype(np.int64), distinct)

    @cached_property
    def pairs(self) -> Floats:
        """Number of pairs of different grades of each query."""
        size = np.diff(self.start).astype(np.float64)
        cell = self.groups.owner * self.distinct + self.rank
        cells, count = np.unique(cell, return_counts=True)
        level = np.bincount(cells // max(self.distinct, 1), np.square(count.astype(np.float64)), len(size))
        return np.asarray((size * size - level) / 2)

    def loss(self, scores: NDArray[Any], phi: str, *, weight: str = "pairs") -> tuple[Floats, Floats]:
        """Value (queries,) and gradient (items,) at these scores."""
        loss = graded_phi(phi)
        if weight not in WEIGHTS:
            raise UsageError(f"unknown weight {weight!r}; {did_you_mean(str(weight), WEIGHTS)}")
        alpha = np.ascontiguousarray(scores, np.float64)
        if alpha.shape != self.grade.shape:
            raise UsageError(f"shapes do not fit: {len(self.grade):,} grades, scores of shape {alpha.shape}")
        if not np.isfinite(alpha).all():
            raise InputError(f"{int((~np.isfinite(alpha)).sum()):,} of {len(alpha):,} scores are not finite")
        value, sorted_gradient = np.zeros(len(self.start) - 1), np.zeros(len(alpha))
        hinges, differ = loss.kernel in ("hinge", "squared-hinge"), weight == "difference"
        if loss.kernel is None:
            return self._pair_by_pair(alpha, loss, differ)
        order = self._sorted(alpha) if hinges else self._by_rank
        data = alpha[order], self.rank[order], self.grade[order], self.start  # in order: memory is read in streams
        if hinges:
            bits = max(self.distinct - 1, 0).bit_length()
            hinge_pairs(*data, bits, loss.kernel == "squared-hinge", differ, value, sorted_gradient)
        else:
            kernel = exponential_pairs if loss.kernel == "exponential" else logistic_pairs
            kernel(*data, differ, value, sorted_gradient)
        gradient = np.empty(len(alpha))
        gradient[order] = sorted_gradient
        return value, gradient

    def _pair_by_pair(self, alpha: Floats, phi: PairLoss, differ: bool) -> tuple[Floats, Floats]:
        """Do the same with any φ: all pairs of items that stand so many places apart, for every such number."""
        value, gradient = np.zeros(len(self.start) - 1), np.zeros(len(alpha))
        left = np.repeat(self.start[1:], np.diff(self.start)) - np.arange(len(alpha))  # in the query, from here on
        for apart in range(1, int(left.max(initial=1))):
            one = np.flatnonzero(left > apart)
            gap = self.grade[one] - self.grade[one + apart]
            t = np.sign(gap) * (alpha[one] - alpha[one + apart])
            share = np.abs(gap) if differ else (gap != 0).astype(np.float64)
            value += np.bincount(self.groups.owner[one], share * phi.value(t), len(value))
            slope = share * np.sign(gap) * phi.derivative(t)
            gradient[one] += slope
            gradient[one + apart] -= slope
        return value, gradient

    @cached_property
    def _by_rank(self) -> Ints:
        few = self.distinct <= 1 << 16
        return self._sorted(self.rank.astype(np.uint16) if few else self.rank)

    def _sorted(self, key: NDArray[Any]) -> Ints:
        """The items of each query in the order of a key."""
        if len(self.start) == 2:
            return np.argsort(key, kind="stable" if key.dtype == np.uint16 else None)
        return np.lexsort((key, self.groups.owner))


def graded_phi(name: str) -> PairLoss:
    """Look up a φ that is bounded below by its name."""
    known = [each for each, phi in PAIR_LOSSES.items() if phi.bounded]
    if name not in known:
        raise UsageError(f"no graded loss with φ {name!r}; {did_you_mean(str(name), known)}")
    return PAIR_LOSSES[name]


def _ranks(grade: Floats) -> tuple[Ints, int]:
    """Place of each grade among the distinct ones, and their number; small integers without a sort."""
    if len(grade):
        low, high = grade.min(), grade.max()
        if high - low < TABLE and abs(low) < 1e9 and (grade == np.floor(grade)).all():
            place = (grade - low).astype(np.int64)
            ranks = np.cumsum(np.bincount(place) > 0) - 1
            return ranks[place], int(ranks[-1]) + 1
    values, rank = np.unique(grade, return_inverse=True)
    return rank.astype(np.int64), len(values)
