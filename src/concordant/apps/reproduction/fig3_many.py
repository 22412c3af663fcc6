"""AoS Figure 3 at the paper's number of comparisons: every query stands so often that there are 10⁴ of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import GradedLists
from concordant.apps.reproduction.fig3_converged import ALL, C0S, LOGISTIC, SCALES, UNTUNED
from concordant.apps.reproduction.fitting import complete_targets, equations, logistic, risks
from concordant.preferences.preferences import Comparisons, counted_comparisons
from concordant.ranking.closed_forms import C0

Floats = NDArray[np.float64]
QUERIES = 10_000
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, eq=False)
class ManyQueries:
    """Copies of the queries, each with comparisons of its own, that share their documents' features."""

    lists: GradedLists
    copies: int

    @classmethod
    def of(cls, lists: GradedLists, queries: int = QUERIES) -> ManyQueries:
        """Repeat the queries until there are about so many."""
        return cls(lists, max(1, round(queries / len(lists))))

    def draw(self, per_query: int, rng: np.random.Generator) -> Comparisons:
        """Draw by (26) from the copies; their documents stand one copy after the other."""
        size, copies = len(self.lists.X), self.copies
        start = np.append((self.lists.start[:-1] + size * np.arange(copies)[:, None]).ravel(), size * copies)
        none = np.zeros((size * copies, 0))
        every = replace(self.lists, X=none, relevance=np.tile(self.lists.relevance, copies), start=start)
        return every.draw(per_query * len(every), rng)

    def together(self, prefs: Comparisons) -> Comparisons:
        """The comparisons of all copies of a query as those of the query: all that pairwise logistic sees of them."""
        size = len(self.lists.X)
        winner, loser = (np.repeat(side % size, prefs.count) for side in (prefs.winner, prefs.loser))
        every = (self.lists.query, np.arange(size))
        return counted_comparisons(winner, loser, query=self.lists.query[winner], declared=every)

    def targets(self, prefs: Comparisons, c0s: Sequence[float], scales: Sequence[float]) -> Floats:
        """G(βs)/Z of each copy's comparisons, the mean over copies weighted by their comparisons."""
        size = len(self.lists.X)
        start = prefs.member_groups.start
        every = replace(
            self.lists, X=np.zeros((size * self.copies, 0)), relevance=np.zeros(size * self.copies), start=start
        )
        weight = prefs.judgments.reshape(self.copies, -1)
        share = np.repeat(weight / weight.sum(axis=0), self.lists.size, axis=1)
        columns = []
        for c0 in c0s:
            each = complete_targets(every, prefs, [c0], scales)
            columns.append((share[:, :, None] * each.reshape(self.copies, size, -1)).sum(axis=0))
        return np.column_stack(columns)


@dataclass(frozen=True)
class Found:
    """Settings chosen on another draw."""

    logistic: float
    c0: float
    scale: float
    ridge: float
    plain: float
    """Ridge of c₀ = ½, β = 1."""


def choose(many: ManyQueries, per_query: int, seed: int) -> Found:
    """Choose ridges, c₀ and β by the risk on one draw: the copies are draws of the queries that are judged."""
    prefs = many.draw(per_query, np.random.default_rng([seed, 2, per_query]))
    lists, one = many.lists, many.together(prefs)
    first = risks(lists, logistic(lists, one, RIDGES))
    normal = equations(lists, many.targets(prefs, C0S, SCALES), one)
    table = np.array([risks(lists, normal.solve(ridge).theta) for ridge in RIDGES])
    ridge, way = (int(each) for each in np.unravel_index(int(table.argmin()), table.shape))
    c0, scale = divmod(way, len(SCALES))
    plain = int(table[:, C0S.index(C0) * len(SCALES) + SCALES.index(1.0)].argmin())
    return Found(RIDGES[int(first.argmin())], C0S[c0], SCALES[scale], RIDGES[ridge], RIDGES[plain])


def many_risks(many: ManyQueries, per_query: int, found: Found, rng: np.random.Generator) -> dict[str, float]:
    """NDCG risk of pairwise logistic and of complete aggregation with c₀, β chosen and with ½, 1."""
    prefs = many.draw(per_query, rng)
    lists, one = many.lists, many.together(prefs)
    theta = [logistic(lists, one, [found.logistic])]
    for c0, scale, ridge in ((found.c0, found.scale, found.ridge), (C0, 1.0, found.plain)):
        theta.append(equations(lists, many.targets(prefs, [c0], [scale]), one).solve(ridge).theta)
    values = risks(lists, np.column_stack(theta))
    return {name: float(risk) for name, risk in zip((LOGISTIC, ALL, UNTUNED), values, strict=True)}
