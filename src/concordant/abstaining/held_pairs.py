"""Pairs of items that somebody judged, as a scorer sees them: what abstention is chosen by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.abstaining.distances import pair_distances
from concordant.features.matrix import Matrix
from concordant.listing import all_pairs
from concordant.rankers.concordance import Disagreement
from concordant.rankers.intake import Training

__all__ = ["HeldPairs", "judged_pairs"]

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
    notes: tuple[str, ...] = ()

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
    notes: tuple[str, ...] = ()
    if held.prefs is not None:
        table = Disagreement(held.prefs, held.weight)
        weight = held.weight[table.owner]
        first, second, above, below = table.first, table.second, table.above * weight, table.below * weight
    else:
        assert held.labels is not None
        first, second, said = _pairs_of_lists(held.start, most, seed)
        notes = (said,) if said else ()
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


def _pairs_of_lists(start: Ints, most: int, seed: int) -> tuple[Ints, Ints, str]:
    """All pairs of entries within each list, or a random part of them."""
    size = np.diff(start)
    count = size * (size - 1) // 2
    total = int(count.sum())
    if total <= most:
        return (*all_pairs(start), "")
    drawn = np.sort(np.random.default_rng(seed).choice(total, most, replace=False, shuffle=False))
    before = np.cumsum(count) - count
    owner = np.searchsorted(before, drawn, side="right") - 1
    place = drawn - before[owner]
    # pair number p of a list: (i, j) with i < j and p = j(j − 1)/2 + i
    high = ((1 + np.sqrt(8.0 * place + 1)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > place  # the root may be rounded up
    low = place - high * (high - 1) // 2
    said = f"{most:,} of {total:,} pairs of labelled rows were drawn at random (seed {seed}) to choose abstention by"
    return start[owner] + low, start[owner] + high, said
