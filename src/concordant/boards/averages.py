"""Ways to make one number of a system's scores on tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from concordant.boards.over_tasks import Effects
from concordant.boards.score_table import ScoreTable
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import whole_seed
from concordant.ranking.joint import Varying

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
FEWEST = 6
"""Clusters of tasks below which nothing is told apart: one of 2⁵ orders of signs is always the most extreme one."""
WAYS = {
    "mean": "mean score",
    "median": "median score",
    "win-rate": "win rate",
    "borda": "Borda points",
    "bradley-terry": "Bradley–Terry score",
}
"""Ways to make one number of the scores of a system, in words."""


def shares_beaten(score: Floats) -> Floats:
    """Return on each task the share of the other systems there that a system beats, a tie being half a win.

    NaN where there is no score, or no other system.

    >>> shares_beaten(np.array([[3.0, 1.0], [2.0, 1.0], [2.0, np.nan]])).tolist()
    [[1.0, 0.5], [0.25, 0.5], [0.25, nan]]
    """
    there = ~np.isnan(score)
    below = rankdata(score, axis=0, nan_policy="omit") - 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(there & (there.sum(axis=0) > 1), below / (there.sum(axis=0) - 1.0), np.nan))


def beaten(table: ScoreTable) -> Floats:
    """Return ``shares_beaten`` of a table, ½ for a system that no task compares with another one."""
    found = shares_beaten(table.better)
    alone = np.asarray(np.isnan(found).all(axis=1))
    return np.asarray(np.where(alone[:, None] & ~np.isnan(table.better), 0.5, found))


def filled(table: ScoreTable, effects: Effects) -> Floats:
    """Return the scores with α_i + β_t in the missing cells of a component's tasks; NaN elsewhere."""
    own = effects.share[table.component] > 0
    guess = effects.system[:, None] + effects.task
    return np.asarray(np.where(np.isnan(table.better), np.where(own, guess, np.nan), table.better))


def medians(values: Floats, weight: Floats) -> Floats:
    """Return the weighted medians of rows, each with sorted columns of its own, for each row of ``weight``.

    The middle of the smallest value with at least, and that with more than, half of the weight up to it. ``values``:
    (systems, tasks), NaN for none; ``weight``: (draws, tasks); returns (draws, systems).

    >>> medians(np.array([[1.0, 9.0, 2.0], [5.0, 4.0, np.nan]]), np.ones((1, 3))).tolist()
    [[2.0, 4.5]]
    """
    order = np.argsort(values, axis=1)  # NaN last
    held = ~np.isnan(values)
    out = np.empty((len(weight), len(values)))
    each = np.arange(len(weight))
    for i, place in enumerate(order):
        place = place[: held[i].sum()]
        up_to = np.cumsum(weight[:, place], axis=1)
        half = up_to[:, -1:] / 2
        low = (up_to >= half * (1 - 1e-12)).argmax(axis=1)
        high = (up_to > half * (1 + 1e-12)).argmax(axis=1)
        row = values[i, place]
        out[:, i] = (row[low] + row[high]) / 2
    return np.where((out == out) & (weight[each].sum(axis=1) > 0)[:, None], out, np.nan)


def orders(table: ScoreTable) -> Preferences:
    """Return the tasks as judgments: the order of the systems on each, equal scores tied."""
    there = ~np.isnan(table.better)
    system, task = np.nonzero(there)
    rank = rankdata(-table.better, method="min", axis=0, nan_policy="omit")
    several = there.sum(axis=0)[task] > 1
    system, task = system[several], task[several]
    names, tasks = pa.array(table.systems), pa.array(table.tasks)
    cluster = pa.array(table.cluster[task]) if table.clustered else None
    return Preferences.from_orders(
        None, tasks.take(pa.array(task)), names.take(pa.array(system)), rank[system, task].astype(np.int64),
        cluster=cluster,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Medians(Varying):
    """Medians over tasks with bootstrap replicates over clusters of tasks."""

    level: float
    medians: Floats
    replicates: Floats
    """Shape (replicates, systems)."""
    component: Ints
    clusters: int

    @classmethod
    def of(cls, table: ScoreTable, *, level: float, resamples: int, seed: int) -> Medians:
        """Draw clusters of tasks with replacement; missing cells are filled as for the mean."""
        values = filled(table, Effects.of(table.better, table.weight, table.component))
        rng = np.random.default_rng([whole_seed(seed) % (1 << 128), table.clusters])
        times = rng.multinomial(table.clusters, np.full(table.clusters, 1 / table.clusters), resamples)
        drawn = medians(values, times[:, table.cluster] * table.weight)
        whole = medians(values, table.weight[None, :])[0]
        return cls(level, whole, np.where(np.isnan(drawn), whole, drawn), table.component, table.clusters)

    @property
    def value(self) -> Floats:
        """The medians."""
        return self.medians

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
        """No: replicates follow the law that they have."""
        return False

    @property
    def draws(self) -> Floats:
        """The replicates less the medians."""
        return self.replicates - self.medians

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of the medians; inf where a single cluster says nothing of others."""
        return np.asarray(
            np.sqrt((self.draws**2).mean(axis=0)) if self.clusters > 1 else np.full(len(self.value), np.inf)
        )

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of all differences; inf where no replicate moves them, between components, and of fewer
        clusters than ``FEWEST``."""
        matrix = self.draws.T @ self.draws / len(self.draws)
        own = np.diagonal(matrix)
        square = own[:, None] + own - 2 * matrix
        known = (square > 1e-12 * (own[:, None] + own)) & (self.component[:, None] == self.component)
        known &= ~np.eye(len(own), dtype=bool) & (self.clusters >= FEWEST)
        return np.sqrt(np.where(known, np.maximum(square, 0.0), np.inf))

    @property
    def pair_errors(self) -> Floats:
        """Those of the differences."""
        return self.standard_errors

    def alone(self, first: Ints, second: Ints) -> dict[str, Floats]:
        """Standard error, interval (the middle share of the replicates) and p-value of each difference by itself."""
        count = len(self.replicates)
        tail = max(int(np.floor((1.0 - self.level) / 2 * (count + 1))) - 1, 0)
        lower, upper, p_value = (np.empty(len(first)) for _ in range(3))
        for begin in range(0, len(first), step := max(1, (1 << 24) // count)):
            at = slice(begin, begin + step)
            drawn = np.sort(self.replicates[:, first[at]] - self.replicates[:, second[at]], axis=0)
            lower[at], upper[at] = drawn[tail], drawn[count - 1 - tail]
            rarer = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
            p_value[at] = np.minimum(2.0 * (1 + rarer) / (count + 1), 1.0)
        error = self.standard_errors[first, second]
        if self.clusters < FEWEST:
            lower, upper, p_value = (
                np.full(len(first), -np.inf),
                np.full(len(first), np.inf),
                np.full(len(first), np.nan),
            )
        return {"standard_error": error, "lower": lower, "upper": upper, "p_value": p_value}

    def together(self, critical: float, first: Ints, second: Ints) -> Floats:
        """Half the width of intervals that hold for all pairs at once."""
        error = self.standard_errors[first, second]
        return np.where(np.isfinite(error), critical * np.where(np.isfinite(error), error, 0.0), np.inf)
