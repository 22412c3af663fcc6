"""How far scores can move when at most m units are taken from a board: bounds that are proven, not estimated.

θ̂ is the maximum of the full board, θ that of what is left, Δ = θ − θ̂. At θ the score equation of what is left holds,
G(θ) = Σ_u x_u c_u(θ): the full board's gradient is the sum of what the units that were taken contributed (x_u of unit
u, Σ x ≤ m). Multiplied by y = H⁻¹u, H the curvature at θ̂, and with σ expanded there, it reads

    −uᵀΔ = Σ_u x_u y·c_u(θ) + Σ_p N_p y_p R_p,     R_p = σ(d_p) − σ(d̂_p) − σ'(d̂_p)(d_p − d̂_p),

p the pairs, N_p their votes, d_p the differences of scores, y_p those of y: no term is left out. While every d_p stays
in an interval about d̂_p, the first sum is at most that of the m largest y·c_u, the second at most Σ N_p max(y_p R_p).
So each direction u has a bound B_u(m, box). **If for the directions of all pairs the box contains the interval
[d̂ − B, d̂ + B] in its interior, no way of taking m units leads out of it**: take them bit by bit (x from 0 to its
end); the maximum moves continuously, for the posterior stays strictly concave, starts inside, and on the boundary of
the box it would contradict its own bound. And where B_u < s_a − s_b for u = e_a − e_b, b does not reach a.

The bound is sharp to first order in m: it differs from what the best choice of m units does by terms of second order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.boards.refits import Changes, Votes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MORE, TRIES = 1.02, 60
"""A box that is too small grows to that much of its bounds, and at most so often."""
SLACK = 1e-9
"""What rounding may be: a bound has to be smaller than what it is compared with by that much."""
AT_ONCE = 4_000_000
"""Numbers in a block of directions × units; bounds the memory."""
WIDEST = 2_000_000
"""Pairs squared beyond which the box is made of the items' own bounds, which are quicker and wider."""


@dataclass(frozen=True, eq=False)
class Reach:
    """A board at its maximum, what can be taken, and the directions asked for: ``ahead[c]`` less ``behind[c]``."""

    votes: Votes
    scores: Floats
    changes: Changes
    ahead: Ints
    behind: Ints

    @cached_property
    def _by_items(self) -> bool:
        return len(self.votes.first) ** 2 > WIDEST

    @cached_property
    def _inverse(self) -> Floats:
        return np.linalg.inv(self.votes.curvature(self.scores[None], self.votes.total[None])[0])

    @cached_property
    def _box(self) -> Floats:
        """y of what the box is made of, over the pairs: of their own differences, or of the items."""
        inverse, votes = self._inverse, self.votes
        return votes.between(inverse if self._by_items else inverse[votes.first] - inverse[votes.second])

    @cached_property
    def _asked(self) -> Floats:
        return self.votes.between(self._inverse[self.ahead] - self._inverse[self.behind])

    @cached_property
    def _between(self) -> Floats:
        return self.votes.between(self.scores)

    def held(self, m: int) -> bool:
        """Whether it is proven that after taking m units at most, every ``ahead`` is above its ``behind`` still."""
        gap = self.scores[self.ahead] - self.scores[self.behind]
        low = high = np.zeros(len(self.votes.first))
        down = up = np.zeros(len(self._box))
        for _ in range(TRIES):
            box = self._box_of(low, high)
            if (self._bounds(self._asked, m, *box) >= gap - SLACK).any():
                return False
            less, more = self._bounds(self._box, m, *box), self._bounds(-self._box, m, *box)
            if (less <= down - SLACK).all() and (more <= up - SLACK).all():
                return True
            down, up = MORE * less + 2 * SLACK, MORE * more + 2 * SLACK
            low, high = down, up
            if self._by_items:
                first, second = self.votes.first, self.votes.second
                low, high = down[first] + up[second], up[first] + down[second]
        return False

    def needed(self) -> Floats:
        """About how many units each direction asks for, to first order; infinite where all of them do not do."""
        gap = self.scores[self.ahead] - self.scores[self.behind]
        zero = np.zeros(len(self.votes.first))
        out = np.full(len(gap), np.inf)
        for rows in _blocks(len(gap), len(self.changes.most)):
            value = self._values(self._asked[rows], *self._box_of(zero, zero)[:2])
            order = np.argsort(-value, axis=1)
            value, most = np.maximum(np.take_along_axis(value, order, 1), 0.0), self.changes.most[order]
            with np.errstate(divide="ignore", invalid="ignore"):
                open_ = gap[rows, None] - np.cumsum(np.where(value > 0, value * most, 0.0), axis=1)
                before = np.cumsum(most, axis=1) - most
                asked = before + most + open_ / value  # what the last one has too much is given back
            reached = (open_ <= 0) & (value > 0)
            if np.isinf(self.changes.most).any():
                asked, reached = gap[rows, None] / value[:, :1], value[:, :1] > 0
            place = reached.argmax(axis=1)
            out[rows] = np.where(reached.any(axis=1), np.take_along_axis(asked, place[:, None], 1)[:, 0], np.inf)
        return out

    def _box_of(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Least and greatest σ and R of each pair while its difference is in d̂ − low … d̂ + high."""
        at = self._between
        p = expit(at)

        def rest(d: Floats) -> Floats:
            return np.asarray(expit(d) - p - p * (1.0 - p) * (d - at))

        ends = [rest(at - low), rest(at + high), np.zeros(len(at))]  # R has its extremes there, at d̂ and at −d̂
        ends.append(np.where((-at >= at - low) & (-at <= at + high), rest(-at), 0.0))
        return expit(at - low), expit(at + high), np.min(ends, axis=0), np.max(ends, axis=0)

    def _values(self, y: Floats, least: Floats, most: Floats) -> Floats:
        """The most that y·c_u is in the box, for each row of y and each unit."""
        wins, total = self.changes.wins, self.changes.total
        up, down = np.maximum(y, 0.0), np.maximum(-y, 0.0)
        adds = bool(len(total.data)) and float(total.data.min()) < 0
        expected = up * most - down * least if adds else up * least - down * most
        return np.asarray(wins @ y.T - total @ expected.T).T

    def _bounds(self, y: Floats, m: int, least: Floats, most: Floats, rest_low: Floats, rest_high: Floats) -> Floats:
        """B of each row of y."""
        out = np.empty(len(y))
        for rows in _blocks(len(y), len(self.changes.most)):
            own = y[rows]
            rest = (np.maximum(own, 0.0) * rest_high - np.maximum(-own, 0.0) * rest_low) @ self.votes.total
            out[rows] = _largest(self._values(own, least, most), self.changes.most, m) + rest
        return out


def _blocks(rows: int, columns: int) -> list[slice]:
    step = max(1, AT_ONCE // max(columns, 1))
    return [slice(begin, begin + step) for begin in range(0, rows, step)]


def _largest(value: Floats, most: Floats, m: int) -> Floats:
    """The sum of the m largest values of each row, each at most ``most`` times; negative ones are not taken."""
    if np.isinf(most).all():
        return np.asarray(m * np.maximum(value.max(axis=1), 0.0))
    if m < value.shape[1]:
        kept = np.argpartition(-value, m, axis=1)[:, : m + 1]
        value, most = np.take_along_axis(value, kept, 1), most[kept]
    else:
        most = np.broadcast_to(most, value.shape)
    order = np.argsort(-value, axis=1)
    value, most = np.take_along_axis(value, order, 1), np.take_along_axis(most, order, 1)
    taken = np.clip(m - (np.cumsum(most, axis=1) - most), 0.0, most)
    return np.asarray((np.maximum(value, 0.0) * taken).sum(axis=1))
