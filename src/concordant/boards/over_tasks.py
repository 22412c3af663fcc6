"""Means over tasks and how they vary together, tasks (clusters of them) being the draws.

*Scores.* y_it = α_i + β_t + e_it, α and β by least squares with the tasks' weights w_t. With all cells there, α_i − α_j
is the difference of the (weighted) means; with cells missing it is what the tasks say that connect the two, however
hard these are, and the mean of system i is that of its row where missing cells are filled by α_i + β_t. So nobody gains
by leaving out hard tasks.

*Errors.* α̂_i − α̂_j = Σ_t of what task t contributes, U_it − U_jt = L⁺ w_t r_t (r: residuals, L: the Laplacian of the
normal equations); the standard error is that of a sum of independent contributions, one of each cluster:
n/(n − 1) Σ_c (U_ic − U_jc)², n the number of clusters of the system that has fewer (of weights, (Σw)²/Σw²). With all
cells there and equal weights it is that of the paired t test. Trials within a task are averaged: how they scatter is
part of e.

*All differences at once.* Signs of clusters are drawn. Where the differences of equal systems are jointly as likely to
be −d as d in each cluster, every choice of signs is as likely as the one that was seen, and the largest
|Σ_c d_c|/√Σ_c d_c² of the pairs that are equal exceeds the quantile of its law under drawn signs with probability
1 − level at most, for any number of tasks (Fisher 1935; Romano, Annals of Statistics 17, 1989; all pairs by step-down:
Romano and Wolf, JASA 100, 2005); without that symmetry it holds as the number of clusters grows. The statistic is a
function of Student's t alone: with n clusters t² = (n − 1) u²/(n − u²). With missing cells d_c = U_ic − U_jc +
h_c (α̂_i − α̂_j), h_c the cluster's share of the weights, and the statistic is at most √n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.boards.score_table import ScoreTable
from concordant.preferences.sampling import whole_seed
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.joint import Varying

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NEAR = 1e-8
"""A sum of squares below this times those that it is a difference of is computed once more."""
ROUNDING = 1e-15
"""Part of the largest score of a system below which what moves its mean is rounding."""
CHUNK = 4096
"""Clusters whose signs are held at a time."""


@dataclass(frozen=True, eq=False)
class Effects:
    """What least squares makes of scores of which higher is better."""

    mean: Floats
    """Shape (systems,): of the rows with missing cells filled."""
    task: Floats
    """Shape (tasks,): β, the score there of a system whose effect is the mean one of its component."""
    system: Floats
    """Shape (systems,): α, with sum 0 in each component."""
    contribution: Floats
    """Shape (systems, tasks): U, with sum 0 over tasks."""
    share: Floats
    """Shape (components, tasks): the share of each task in the weights of a component, 0 for tasks of others."""

    @classmethod
    def of(cls, score: Floats, weight: Floats, component: Ints) -> Effects:
        """Fit systems and tasks; ``score``: NaN where there is none; ``component``: of the systems."""
        k, n = score.shape
        there = ~np.isnan(score)
        mean, system, task = np.empty(k), np.empty(k), np.full(n, np.nan)
        share = np.zeros((int(component.max()) + 1, n))
        contribution = np.zeros((k, n))
        for number in range(len(share)):
            rows = np.flatnonzero(component == number)
            columns = np.flatnonzero(there[rows].any(axis=0))
            own, w = there[np.ix_(rows, columns)], weight[columns]
            y = np.where(own, score[np.ix_(rows, columns)], 0.0)
            held = own.sum(axis=0)
            centred = np.where(own, y - y.sum(axis=0) / held, 0.0)
            if own.all():
                effect = centred @ w / w.sum()
            else:
                laplacian = np.diag(own @ w) - (own * (w / held)) @ own.T
                laplacian += w.sum() / len(rows)  # the sum of the effects, which nothing determines, is 0
                inverse = np.linalg.inv(laplacian)
                effect = inverse @ (centred @ w)
                effect -= effect.mean()
            level = (y.sum(axis=0) - effect @ own) / held
            left = np.where(own, y - effect[:, None] - level, 0.0) * w
            part = left / w.sum() if own.all() else inverse @ left
            system[rows], task[columns], share[number, columns] = effect, level, w / w.sum()
            mean[rows] = effect + w @ level / w.sum()
            contribution[np.ix_(rows, columns)] = part - part.mean(axis=0)
        return cls(mean, task, system, contribution, share)


@dataclass(frozen=True, eq=False)
class OverTasks(Varying):
    """Means over tasks and their differences."""

    level: float
    effects: Effects
    component: Ints
    moved: Floats
    """Shape (systems, clusters): contributions U of clusters."""
    share: Floats
    """Shape (systems, clusters): shares of clusters in the weights of the system's component."""
    effective: Floats
    """Shape (systems,): number of clusters in which a system has a score, (Σw)²/Σw²."""
    errors: Floats
    """Shape (systems,): standard errors of the means themselves, the tasks being a sample; inf where they have none."""
    resamples: int
    seed: int

    @classmethod
    def of(cls, table: ScoreTable, score: Floats, *, level: float, resamples: int, seed: int) -> OverTasks:
        """Fit ``score`` (of the table's systems and tasks, higher is better)."""
        effects = Effects.of(score, table.weight, table.component)
        weight = table.summed(~np.isnan(score) * table.weight)
        effective = weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1)
        share = effects.share[table.component]
        centre = effects.share @ effects.task
        own = effects.contribution + share * (effects.task - centre[table.component][:, None])
        factor = _factor(effective)
        own[
            np.abs(own)
            <= ROUNDING * np.nan_to_num(np.abs(score)).max(axis=1, initial=0.0)[:, None] * effects.share.max()
        ] = 0.0
        with np.errstate(invalid="ignore"):
            errors = np.sqrt((table.summed(own) ** 2).sum(axis=1) * factor)
        moved, share = table.summed(effects.contribution), table.summed(share)
        errors = np.where(np.isfinite(factor), errors, np.inf)
        return cls(level, effects, table.component, moved, share, effective, errors, resamples, seed)

    @property
    def value(self) -> Floats:
        """The effects of systems."""
        return self.effects.system

    @property
    def group(self) -> Ints:
        """The component of each system."""
        return self.component

    @property
    def compared(self) -> Flags:
        """Systems of components with another one."""
        return np.asarray(np.bincount(self.component)[self.component] > 1, bool)

    @property
    def normal(self) -> bool:
        """No: the law is that of signs."""
        return False

    @cached_property
    def _null(self) -> Floats:
        """Contributions of clusters where nobody differs, shape (systems, clusters)."""
        return self.moved + self.value[:, None] * self.share

    @cached_property
    def tasks_of_pairs(self) -> Floats:
        """Number of clusters of the system that has fewer, shape (systems, systems)."""
        return np.asarray(np.minimum.outer(self.effective, self.effective))

    @cached_property
    def _same(self) -> Flags:
        same = self.component[:, None] == self.component
        np.fill_diagonal(same, False)
        return np.asarray(same, bool)

    @cached_property
    def pair_errors(self) -> Floats:
        """√Σ d² of each pair, by which its difference is divided; inf where that is unknown, or nothing differs."""
        gap = self.value[:, None] - self.value
        short = 1.0 / self.tasks_of_pairs - (self.share**2).sum(axis=1)[:, None]
        square = _squares(self._null) + gap**2 * np.where(short > 1e-12, short, 0.0)
        return np.sqrt(np.where((square > 0) & self._same, square, np.inf))

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of all differences, shape (systems, systems); inf where not determined."""
        factor = _factor(self.tasks_of_pairs)
        with np.errstate(invalid="ignore"):
            square = _squares(self.moved) * factor
        return np.sqrt(np.where(self._same & np.isfinite(factor), square, np.inf))

    @cached_property
    def draws(self) -> Floats:
        """Sums of the contributions with drawn signs, of few clusters with all of them; shape (draws, systems)."""
        x, clusters = self._null, self.share.shape[1]
        if 1 << min(clusters, 60) <= self.resamples:
            signs = 1.0 - 2.0 * ((np.arange(1 << clusters)[:, None] >> np.arange(clusters)) & 1)
            return np.asarray(signs @ x.T)
        rng = np.random.default_rng([whole_seed(self.seed) % (1 << 128), clusters])
        out = np.zeros((self.resamples, len(x)))
        for begin in range(0, clusters, CHUNK):
            part = x[:, begin : begin + CHUNK]
            signs = rng.integers(0, 2, (self.resamples, part.shape[1]), np.int8) * 2.0 - 1.0
            out += signs @ part.T
        return out

    def alone(self, first: Ints, second: Ints) -> dict[str, Floats]:
        """Standard error, interval and p-value (Student's t) of each difference by itself."""
        gap, error = self.value[first] - self.value[second], self.standard_errors[first, second]
        freedom = self.tasks_of_pairs[first, second] - 1
        known = np.isfinite(error)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where(known, gap / error, np.nan)
            half = np.where(known, t_quantile(0.5 + self.level / 2, np.maximum(freedom, 1e-9)) * error, np.inf)
            p_value = np.where(known, two_sided(t, np.maximum(freedom, 1e-9)), np.nan)
        p_value = np.where(known & (gap == 0), 1.0, p_value)
        return {"standard_error": error, "lower": gap - half, "upper": gap + half, "p_value": p_value}

    def together(self, critical: float, first: Ints, second: Ints) -> Floats:
        """Half the width of intervals that hold for all pairs at once, by the critical value of |difference|/√Σ d²."""
        n, error = self.tasks_of_pairs[first, second], self.standard_errors[first, second]
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.sqrt((n - 1) * critical**2 / (n - critical**2))
            return np.where((critical**2 < n) & np.isfinite(error), t * error, np.inf)


def _factor(n: Floats) -> Floats:
    """n/(n − 1), inf for one cluster."""
    return np.asarray(np.divide(n, n - 1, out=np.full(n.shape, np.inf), where=n > 1 + 1e-9))


def _squares(x: Floats) -> Floats:
    """Σ (x_i − x_j)² of all pairs of rows."""
    product = x @ x.T
    own = np.diagonal(product)
    both = own[:, None] + own
    square = np.maximum(both - 2.0 * product, 0.0)
    for i, j in np.argwhere(np.triu(square <= NEAR * both, 1)):  # what cancels
        square[i, j] = square[j, i] = ((x[i] - x[j]) ** 2).sum()
    np.fill_diagonal(square, 0.0)
    return np.asarray(square)
