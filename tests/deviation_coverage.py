"""How often the deviation of a diagnosis covers the true one, and how much it is above its 95% quantile: simulated.

``python tests/deviation_coverage.py [REPLICATIONS [DESIGN …]]`` prints a line for each design. Queries and judgments
are drawn, so that R̂ − R_n is that of (19) and (20); its supremum over the disc ‖θ‖ ≤ 1 is taken on a polar grid, R_n is
the mean of R̂ over data sets of their own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import concordant as cc
from concordant.learning.rankers.diagnosis import diagnose
from concordant.learning.solvers.deviation import Drawn, RiskProcess
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.ranking.structures import structure

SUBSETS = 100
"""Subsets of a query that stand for all of them."""


@dataclass(frozen=True)
class Design:
    loss: str
    order: int | None
    phi: str | None = None
    queries: int = 12
    items: int = 4
    judgments: int = 600
    zipf: float = 0.0
    law: str = "bradley-terry"


DESIGNS = {
    "single judgments": Design("ranknet", 1),
    "hinge": Design("ranksvm", 1, judgments=300),
    "net preferences of 5": Design("difference-graph", 5),
    "net preferences of 20, uneven queries": Design("difference-graph", 20, zipf=1.0),
    "net preferences of all": Design("difference-graph", None, judgments=480),
    "NDCG of 10": Design("ndcg-pairwise", 10),
    "ERR of 10": Design("err-pairwise", 10, queries=8),
    "regression of 8, many queries": Design("gain-regression", 8, queries=60, judgments=900),
    "low noise of Theorem 3, 30 at a time": Design("difference-graph", 30, items=3, queries=6, law="theorem 3"),
    "exponential, of 2": Design("difference-graph", 2, phi="exponential", judgments=400),
}


class Population:
    """Queries with features and laws of their judgments, of a design."""

    def __init__(self, design: Design) -> None:
        rng = np.random.default_rng(7)
        self.design = design
        self.X = rng.normal(size=(design.queries * design.items, 2)) / np.sqrt(2)
        self.truth = self.X @ np.array([1.5, -0.7]) + 0.5 * rng.normal(size=len(self.X))
        chance = 1.0 / np.arange(1, design.queries + 1) ** design.zipf
        self.chance = chance / chance.sum()
        angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 24, endpoint=False), [0.25, 0.5, 0.75, 1.0])
        self.grid = np.stack((radius * np.cos(angle), radius * np.sin(angle))).reshape(2, -1)
        self.grid = np.hstack((np.zeros((2, 1)), self.grid))

    def draw(self, seed: int) -> cc.Preferences:
        """n judgments of random queries; every item is named, by a list of labels that is the same in all draws."""
        d, rng = self.design, np.random.default_rng([seed, 3])
        query = rng.choice(d.queries, d.judgments, p=self.chance)
        if d.law == "theorem 3":
            kind = rng.choice(4, d.judgments, p=[0.25, 0.01, 0.5, 0.24])
            winner, loser = np.array([0, 1, 0, 2])[kind], np.array([1, 2, 2, 0])[kind]
        else:
            one = rng.integers(d.items, size=d.judgments)
            other = (one + rng.integers(1, d.items, size=d.judgments)) % d.items
            gap = self.truth[query * d.items + one] - self.truth[query * d.items + other]
            lost = rng.random(d.judgments) > 1 / (1 + np.exp(-gap))
            winner, loser = np.where(lost, other, one), np.where(lost, one, other)
        return cc.Preferences.from_comparisons(winner, loser, query=query)

    def rows(self, prefs: cc.Preferences) -> np.ndarray:
        """The row of X of each item of ``Batch.whole(prefs)``."""
        query = np.array(prefs.queries.tolist())[np.repeat(np.arange(len(prefs.queries)), np.diff(prefs.members[0]))]
        item = np.array(prefs.items.tolist())[prefs.members[1]]
        return self.X[query * self.design.items + item]

    def make(self, batch: Batch):
        """The surrogate of a batch."""
        member = surrogate(self.design.loss)
        if member.reads != "scores":
            return member.objective(batch, phi=self.design.phi)
        name = "budgeted-borda" if member.consistent_for == "err" else "log-odds"
        return member.objective(Relevance.of(structure(name)(batch).value, batch.node_start))

    def risk(self, prefs: cc.Preferences, seed: int) -> np.ndarray:
        """R̂ on the grid."""
        k, start = self.design.order, prefs.member_groups.start
        if k == 1:  # the mean of single judgments is linear in them
            batch = Batch.whole(prefs)
        else:
            batch = Batch.whole(prefs) if k is None else Batch.subsets(prefs, k, SUBSETS, seed=seed)
        drawn = Drawn(batch.query.astype(np.int64), np.ones(len(batch)), [batch])
        process = RiskProcess.of(self.rows(prefs), start, drawn, self.make)
        share = prefs.judgments / len(prefs)
        weight = share[drawn.query] / np.bincount(drawn.query)[drawn.query]
        there = process.weighted(weight[None])
        same = type(there)(process, *(np.repeat(w, self.grid.shape[1], axis=1) for w in
                                      (there.weight, there.pull, there.pulled, there.squared)))  # fmt: skip
        return same.at(self.grid)[0]

    def bound(self, prefs: cc.Preferences, seed: int, replicates: int) -> tuple[float, float]:
        """The deviation of the diagnosis, and that of the theorem."""
        found = diagnose(
            self.rows(prefs), prefs, self.make, np.array([0.6, -0.3]), order=self.design.order,
            share=prefs.judgments / len(prefs), radius=1.0, aggregates=False, replicates=replicates, seed=seed,
        )  # fmt: skip
        return found.deviation, found.theorem


def simulated(design: Design, replications: int, replicates: int = 200) -> dict[str, float]:
    """Return coverage, and how many times the 95% quantile of the true deviation the bounds are, in the median."""
    population = Population(design)
    mean = np.mean([population.risk(population.draw(10_000 + r), r) for r in range(2 * replications)], axis=0)
    true, bounds = np.zeros(replications), np.zeros((replications, 2))
    for r in range(replications):
        prefs = population.draw(r)
        true[r] = np.abs(population.risk(prefs, r) - mean).max()
        bounds[r] = population.bound(prefs, r, replicates)
    ratio = np.median(bounds, axis=0) / np.quantile(true, 0.95)
    return {"covered": float((true <= bounds[:, 0]).mean()), "ratio": float(ratio[0]), "theorem": float(ratio[1])}


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for name in sys.argv[2:] or DESIGNS:
        found = simulated(DESIGNS[name], number)
        said = (f"{what} {found[what]:.3f}" for what in ("covered", "ratio", "theorem"))
        print(f"{name:40}", *said)
