"""Mean targets of the default structure, the average log-odds of comparisons, by compiled loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.arrays import in_parts, read_only
from concordant.kernels.compiled import compiles
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import DENSE, LONGEST
from concordant.ranking.closed_forms import C0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
KINDS = ("2^s-1", "2^s", "identity")
"""Gains that the kernels know, by their numbers there."""
SMALLEST_C0 = 1e-6
"""Below this the logarithms of counts are too far apart, or infinite, for integers."""
MOST_CARDS = 1 << 20
"""Judgments of a subset up to which logarithms are tabulated."""
CHUNK = 1 << 22
"""Nodes and judgments of subsets that a thread works on at a time."""


@dataclass(frozen=True, eq=False)
class LogOddsTargets:
    """Columns of comparisons as the kernels read them, with what does not depend on the order of the U-statistic."""

    start: Ints
    count: Ints
    winner: NDArray[np.int32]
    loser: NDArray[np.int32]
    tied: NDArray[np.bool_]
    member_start: Ints
    member: NDArray[np.int32]
    items: int
    key: NDArray[np.uint64]
    c0: float
    kind: int
    scale: float
    inverse: Floats | None

    @classmethod
    def of(
        cls,
        prefs: Preferences,
        key: NDArray[np.uint64],
        options: Mapping[str, Any],
        gain: object,
        scale: float,
        inverse: Floats | None,
    ) -> LogOddsTargets | None:
        """Return None where the plain way is needed: real weights, lists, gains that are functions, c0 near 0.

        And without Numba.
        """
        c0 = options.get("c0", C0)
        if not isinstance(prefs, Comparisons) or prefs.weighted:
            return None
        if not isinstance(gain, str) or gain not in KINDS or not SMALLEST_C0 <= c0 <= 1 / SMALLEST_C0 or not compiles():
            return None
        start, member = prefs.members
        return cls(
            read_only(prefs.start, np.int64),
            read_only(prefs.count, np.int64),
            read_only(prefs.winner, np.int32),
            read_only(prefs.loser, np.int32),
            read_only(np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie, np.bool_),
            read_only(start, np.int64),
            read_only(member, np.int32),
            len(prefs.items),
            read_only(key, np.uint64),
            float(c0),
            KINDS.index(gain),
            scale,
            inverse,
        )

    @property
    def _members(self) -> Ragged:
        return Ragged(self.member_start)

    def covered(self, total: Ints, k: int | None) -> NDArray[np.bool_]:
        """Which queries' scores fit into integers; a function of the query alone."""
        held = total if k is None else np.minimum(total, 2 * k)
        sampled = np.zeros(len(total), bool) if k is None else total > k
        small = (held <= MOST_CARDS) & (total <= LONGEST) if k is not None else np.ones(len(total), bool)
        return np.asarray((self._reach(held) <= 2.0**16) & (small | ~sampled), bool)

    def _reach(self, held: Ints) -> Floats:
        """The largest score that so many judgments could give, times the number of opponents."""
        opponents = np.minimum(np.maximum(self._members.sizes - 1, 1), np.maximum(held, 1))
        return np.asarray(opponents * np.log1p(held / self.c0), np.float64)

    def fill(
        self,
        codes: Ints,
        total: Ints,
        k: int | None,
        subsets: int,
        blocks: NDArray[np.bool_],
        least: float,
        value: Floats,
        error: Floats,
        zero: Ints,
    ) -> None:
        """Fill in targets, errors and the number of subsets with Z ≤ least of the covered queries ``codes``."""
        from concordant.kernels import subset_gains as kernels

        order = k or 1
        whole = np.ones(len(total), bool) if k is None else total <= k
        way = np.select(
            [whole, blocks, total <= DENSE * order],
            [kernels.WHOLE, kernels.BLOCKS, kernels.SHUFFLED],
            kernels.COLLECTED,
        ).astype(np.int8)
        reach = self._reach(total if k is None else np.minimum(total, 2 * k))
        precision = np.searchsorted([2.0**10, 2.0**13], reach).astype(np.int8)
        sampled = codes[~whole[codes]]
        most = int(np.minimum(total[sampled], 2 * order).max(initial=0))
        levels = kernels.level_table(2 * most + 3, self.c0)
        inverse = np.zeros(int(self._members.sizes.max(initial=0))) if self.inverse is None else self.inverse
        ahead = np.concatenate(([0.0], np.cumsum(inverse)))

        def work(part: Ints) -> None:
            place = np.empty(self.items, np.int32)
            kernels.mean_gains(
                part, way, precision, order, subsets, self.key, self.member_start, self.member, place, self.start,
                self.winner, self.loser, self.tied, self.count, self.c0, levels, self.kind,
                self.scale, self.inverse is not None, least, inverse, ahead, value, error, zero,
            )  # fmt: skip

        cost = np.where(whole, 1, subsets) * (self._members.sizes + np.where(whole, Ragged(self.start).sizes, order))
        in_parts(work, codes, cost[codes], CHUNK)
