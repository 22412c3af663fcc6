"""Tests of systems on tasks by ranks and signs, as they are usually reported.

*Friedman* (JASA 32, 1937): are all systems alike? With ranks r_it of the systems on task t (mean ranks of ties) and
R_i their sums, χ² = (k − 1) Σ_i (R_i − n(k + 1)/2)² / (Σ_it r_it² − n k (k + 1)²/4), on k − 1 degrees of freedom.
*Iman and Davenport* (Communications in Statistics A 9, 1980): F = (n − 1) χ² / (n (k − 1) − χ²) on k − 1 and
(k − 1)(n − 1), closer to its law with few tasks. *Kendall's W* = χ²/(n (k − 1)): how much tasks agree, 0 to 1.
*Nemenyi* (1963): two systems whose mean ranks differ by less than CD = q √(k (k + 1)/(6 n)), q the quantile of the
studentised range over √2, are not told apart (Demšar, JMLR 7, 2006); right where all systems are alike, else roughly,
and how far apart two systems are depends on the others (Benavoli, Corani and Mangili, JMLR 17, 2016).
*Wilcoxon's signed ranks* of two systems: exact for up to 50 tasks without ties, else the normal law with zeros
left out and the variance of ties; it asks whether differences lie symmetrically about 0. *Signs*: who is better on more
tasks, by the binomial law, ties left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, gammaincc, ndtr
from scipy.stats import rankdata, studentized_range

from concordant.ranking.edge_tests import binomial_tail

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXACT = 50
"""Differences up to which signed ranks have their exact law."""


@dataclass(frozen=True)
class Friedman:
    """Friedman's test over the tasks that all systems have."""

    systems: int
    tasks: int
    """Blocks: tasks, or clusters of them."""
    chi_square: float
    p_value: float
    f: float
    """Iman and Davenport's."""
    f_p_value: float
    concordance: float
    """Kendall's W."""
    mean_ranks: tuple[float, ...]
    """1 the best."""
    level: float
    critical_difference: float
    """Nemenyi's, of mean ranks."""

    @classmethod
    def of(cls, blocks: Floats, level: float) -> Friedman | None:
        """Test systems (rows) over blocks (columns), higher is better; None for fewer than two whole columns.

        >>> found = Friedman.of(np.array([[3.0, 3, 2, 3], [2, 2, 3, 2], [1, 1, 1, 1]]), 0.95)
        >>> round(found.chi_square, 2), round(found.p_value, 3)
        (6.5, 0.039)
        """
        whole = blocks[:, ~np.isnan(blocks).any(axis=0)]
        k, n = whole.shape
        if n < 2:
            return None
        rank = rankdata(-whole, axis=0)
        spread = (rank**2).sum() - n * k * (k + 1) ** 2 / 4
        if spread <= 1e-9 * n * k:
            chi, f = 0.0, 0.0
        else:
            chi = float((k - 1) * ((rank.sum(axis=1) - n * (k + 1) / 2) ** 2).sum() / spread)
            below = n * (k - 1) - chi
            f = float((n - 1) * chi / below) if below > 1e-9 * n * k else np.inf
        p = float(gammaincc((k - 1) / 2, chi / 2))
        f_p = float(fdtrc(k - 1, (k - 1) * (n - 1), f)) if np.isfinite(f) else 0.0
        q = float(studentized_range.ppf(level, k, np.inf)) / np.sqrt(2)
        cd = q * np.sqrt(k * (k + 1) / (6 * n))
        ranks = tuple(rank.mean(axis=1).tolist())
        return cls(k, n, chi, p, f, f_p, chi / (n * (k - 1)), ranks, level, float(cd))


def signed_ranks(differences: Floats) -> Floats:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of each row; NaN where nothing differs.

    ``differences``: shape (pairs, tasks), NaN for none; zeros are left out.

    >>> signed_ranks(np.array([[1.0, 2, 3, 4, 5], [1, -2, 3, 0, np.nan]])).round(4).tolist()  # 2/2⁵
    [0.0625, 0.593]
    """
    out = np.full(len(differences), np.nan)
    for begin in range(0, len(differences), step := max(1, (1 << 22) // max(differences.shape[1], 1))):
        out[begin : begin + step] = _signed_ranks(differences[begin : begin + step])
    return out


def _signed_ranks(d: Floats) -> Floats:
    held = ~np.isnan(d) & (d != 0)
    n = held.sum(axis=1)
    size = np.where(held, np.abs(d), np.inf)
    order = np.argsort(size, axis=1, kind="stable")
    sorted_ = np.take_along_axis(size, order, axis=1)
    begins = np.ones(sorted_.shape, bool)
    begins[:, 1:] = sorted_[:, 1:] != sorted_[:, :-1]
    place = np.broadcast_to(np.arange(d.shape[1]), d.shape)
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    ends = np.ones(sorted_.shape, bool)
    ends[:, :-1] = begins[:, 1:]
    last = np.minimum.accumulate(np.where(ends, place, d.shape[1])[:, ::-1], axis=1)[:, ::-1]
    rank = np.where(np.isfinite(sorted_), (first + last) / 2 + 1, 0.0)
    up = (rank * (np.take_along_axis(d, order, axis=1) > 0)).sum(axis=1)
    tied = ((last - first + 1.0) ** 2 - 1)[:, :] * np.isfinite(sorted_)
    variance = n * (n + 1) * (2 * n + 1) / 24 - tied.sum(axis=1) / 48
    middle = n * (n + 1) / 4
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * ndtr(-np.abs(up - middle) / np.sqrt(variance))
    exact = (n > 0) & (n <= EXACT) & (tied.sum(axis=1) == 0) & ~((d == 0).any(axis=1))
    for number in np.unique(n[exact]).tolist():
        rows = np.flatnonzero(exact & (n == number))
        law = _law(number)
        below, above = np.cumsum(law), np.cumsum(law[::-1])[::-1]
        w = up[rows].astype(np.int64)
        p[rows] = np.minimum(2 * np.minimum(below[w], above[w]), 1.0)
    return np.where(n > 0, p, np.nan)


@cache
def _law(n: int) -> Floats:
    """Chances of each sum of ranks 1 … n that are taken with chance ½ each."""
    law = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(law) + rank)
        longer[: len(law)] += law / 2
        longer[rank:] += law / 2
        law = longer
    return law


def sign_test(wins: Ints, losses: Ints) -> Floats:
    """Return the two-sided p-value of as many wins and losses, twice the smaller tail; NaN where there are none.

    >>> sign_test(np.array([5, 2, 0]), np.array([0, 2, 0])).tolist()
    [0.0625, 1.0, nan]
    """
    n = wins + losses
    p = np.minimum(2 * binomial_tail(np.maximum(wins, losses), n), 1.0)
    return np.where(n > 0, p, np.nan)
