"""Lack of fit by simulation of the fitted model: Pearson's X² of a table beside that of tables drawn from its fit.

For models whose tables have no totals to hold fixed: covariates beside the scores, or the normal law in the place of
the logistic one. Each drawn table is fitted like the table itself (maximum likelihood with a slight prior, by Fisher's
scoring), so the law is that of X² at a fit: the parametric bootstrap (Beran, JASA 83, 1988). Its parameters are drawn
anew for each table, from the normal law about the likeliest fit (Laplace): where judgments are few a fit has less
spread than the truth, and tables drawn from it alone reject 7 to 8% at 5%.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import expit, ndtr, xlogy

Floats = NDArray[np.float64]
Link = Callable[[Floats], tuple[Floats, Floats]]
"""From margins to the chance of a win of the first, and its derivative."""
PRIOR = 0.01
"""Precision of the normal prior on parameters, of which a fit that runs away needs some."""
PRIORS = (PRIOR, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Of which the one is taken that makes a table likeliest: tables are drawn about that fit."""
LARGEST = 120
"""Parameters of a graph of which tables are fitted."""
STEPS = 40
LONGEST = 2.0
"""Change of a margin in one step, at most."""
CELLS = 4_000_000
"""Numbers of the informations of tables that are fitted at a time."""
FIRST, THEN, ENOUGH = 99, 400, 12
"""Tables that are drawn at first, and then where fewer than so many of these are as far from their fit."""


def logistic(margin: Floats) -> tuple[Floats, Floats]:
    """Bradley and Terry's chance of a win, and its derivative."""
    share = expit(margin)
    return share, share * (1.0 - share)


def case_five(margin: Floats) -> tuple[Floats, Floats]:
    """Thurstone's: Φ(m/√2), and its derivative.

    >>> [float(x.round(6)) for x in case_five(np.zeros(1))[0]]
    [0.5]
    """
    density = np.exp(-0.25 * margin**2) / np.sqrt(4.0 * np.pi)
    return np.asarray(ndtr(margin / np.sqrt(2.0)), np.float64), density


@dataclass(frozen=True, eq=False)
class _Problem:
    design: csr_array
    """(pairs, parameters)."""
    total: Floats
    link: Link
    squares: csr_array
    """(parameters², pairs): x_p x_pᵀ of each pair."""

    @classmethod
    def of(cls, design: csr_array, total: Floats, link: Link) -> _Problem:
        parameters, dense = design.shape[1], design.tocoo()
        by_pair = design.toarray()
        row, column = dense.row, dense.col
        others = [np.flatnonzero(by_pair[pair]) for pair in range(len(by_pair))]
        pair = np.repeat(row, [len(others[p]) for p in row])
        right = np.concatenate([others[p] for p in row]) if len(row) else np.zeros(0, np.int64)
        left = np.repeat(column, [len(others[p]) for p in row])
        value = by_pair[pair, left] * by_pair[pair, right]
        shape = (parameters * parameters, len(by_pair))
        return cls(design, total, link, coo_array((value, (left * parameters + right, pair)), shape=shape).tocsr())

    def fitted(self, wins: Floats, start: Floats, prior: float = PRIOR) -> Floats:
        """Parameters (tables, parameters) of most likelihood and prior; ``wins`` is (tables, pairs)."""
        parameters = self.design.shape[1]
        theta, open_ = np.tile(start, (len(wins), 1)), np.arange(len(wins))
        for _ in range(STEPS):
            margin = np.asarray(theta[open_] @ self.design.T)
            share, slope = self.link(margin)
            bend = slope / np.maximum(share * (1.0 - share), 1e-12)
            score = np.asarray(((wins[open_] - self.total * share) * bend) @ self.design) - prior * theta[open_]
            information = self.information(slope * bend) + prior * np.eye(parameters)
            step = np.linalg.solve(information, score[:, :, None])[:, :, 0]
            longest = np.abs(np.asarray(step @ self.design.T)).max(axis=1, initial=0.0)
            theta[open_] += step * np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300))[:, None]
            open_ = open_[longest > 1e-6]
            if not len(open_):
                break
        return theta

    def information(self, each: Floats) -> Floats:
        """(tables, parameters, parameters); ``each``: that of one judgment about its margin, (tables, pairs)."""
        parameters = self.design.shape[1]
        return np.asarray((self.squares @ (self.total * each).T).T).reshape(len(each), parameters, parameters)

    def likeliest(self, wins: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Parameters at the prior that makes the table likeliest (Laplace), which shrinks noise; their precision."""
        found = []
        for prior in PRIORS:
            theta = self.fitted(wins[None, :], start, prior)
            margin = np.asarray(theta @ self.design.T)
            share, slope = self.link(margin)
            inside = self.information(slope**2 / np.maximum(share * (1.0 - share), 1e-12))[0]
            inside += prior * np.eye(len(start))
            volume = np.linalg.slogdet(inside)[1]
            fit = float((xlogy(wins, share[0]) + xlogy(self.total - wins, 1.0 - share[0])).sum())
            value = fit - 0.5 * prior * float(theta[0] @ theta[0]) + 0.5 * len(start) * np.log(prior) - 0.5 * volume
            found.append((value, theta[0], inside))
        return max(found, key=lambda each: each[0])[1:]

    def statistic(self, wins: Floats, theta: Floats) -> Floats:
        """Pearson's X² of tables at their fits."""
        share, _ = self.link(np.asarray(theta @ self.design.T))
        variance = self.total * share * (1.0 - share)
        return np.asarray(((wins - self.total * share) ** 2 / np.maximum(variance, 1e-9)).sum(axis=1))


def by_simulation(design: csr_array, wins: Floats, total: Floats, link: Link, seed: int) -> float:
    """Return the mid-p-value of X² of one graph; NaN where it has too many parameters.

    ``design`` (pairs, parameters), ``wins`` of the first of each pair among ``total`` judgments that are no ties.
    """
    parameters = design.shape[1]
    if parameters > LARGEST:
        return np.nan
    problem = _Problem.of(design, total, link)
    own = problem.fitted(wins[None, :], np.zeros(parameters))
    observed = float(problem.statistic(wins[None, :], own)[0])
    centre, precision = problem.likeliest(wins, own[0])
    spread = np.linalg.cholesky(np.linalg.inv(precision))
    random = np.random.default_rng(seed)
    step = max(1, CELLS // max(parameters * parameters, len(total)))

    def counts(times: int) -> tuple[int, int]:
        larger = equal = 0
        for begin in range(0, times, step):
            theta = centre + random.normal(size=(min(step, times - begin), parameters)) @ spread.T
            share = link(np.asarray(theta @ design.T))[0]
            drawn = random.binomial(total.astype(np.int64), share).astype(float)
            found = problem.statistic(drawn, problem.fitted(drawn, own[0]))
            level = 1e-9 * max(observed, 1.0)
            larger += int((found > observed + level).sum())
            equal += int((np.abs(found - observed) <= level).sum())
        return larger, equal

    times, (larger, equal) = FIRST, counts(FIRST)
    if larger + 0.5 * equal < ENOUGH:
        more = counts(THEN)
        times, larger, equal = FIRST + THEN, larger + more[0], equal + more[1]
    return (larger + 0.5 * (1 + equal)) / (times + 1)
