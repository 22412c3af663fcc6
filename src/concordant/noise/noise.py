"""How much of the net preferences, of their cycles and of the winner is more than sampling noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.best_order.orders import best_orders
from concordant.differences import Differences
from concordant.errors import UsageError
from concordant.graphs import Batch
from concordant.noise.cycle_tests import benjamini_hochberg, cycle_at, cycle_test
from concordant.noise.resampling import condorcet, replicated
from concordant.structures.adjacency import mean_adjacency

__all__ = ["ACYCLIC", "CYCLIC", "VERDICTS", "WITHIN_NOISE", "Noise", "explained", "noise"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
ACYCLIC, WITHIN_NOISE, CYCLIC = 0, 1, 2
VERDICTS = ("acyclic", "within sampling noise", "cyclic")


@dataclass(frozen=True, eq=False)
class Noise:
    """What sampling leaves of the difference graphs of a batch. Shapes: (graphs,), or as named."""

    net: Differences
    """The difference graphs; ``edge_…`` have one entry for each of its edges."""
    edge_sign: Floats
    """Share of the replicates in which the net preference has the sign that it has in the data (level: it has not)."""
    edge_p: Floats
    """One-sided p-value of each net preference, by itself."""
    acyclic_share: Floats
    """Share of the replicates whose difference graph has no cycle."""
    winner: Nodes
    """Node of the Condorcet winner (preferred to every other item of the query), −1 where there is none."""
    winner_share: Floats
    """Share of the replicates in which it still is; NaN where there is none."""
    p: Floats
    """p-value of “the truth is acyclic”, at least 1e-12; 1 where the data have no cycle or a hopeless one."""
    verdict: NDArray[np.int8]
    """Index into VERDICTS, each query by itself at ``level``."""
    cycles: dict[int, Nodes]
    """Of each cyclic graph a cycle whose every edge is significant, as nodes of the batch in order."""
    expected_cyclic: Floats
    """Share of samples that show a cycle when the truth is an acyclic population near the data (estimate)."""
    exact: NDArray[np.bool_]
    """Sign tests; bets where strengths differ."""
    independent: bool
    """Whether pairs are taken for independent (comparisons without clusters)."""
    replicates: NDArray[np.int64]
    """Replicates drawn: fewer than asked for in graphs of very many pairs, none (shares are NaN) beyond 1.6 million."""
    level: float
    seed: int

    def __len__(self) -> int:
        return len(self.p)

    @property
    def cyclic_share(self) -> float:
        """Share of the queries whose data show a cycle."""
        return float((self.verdict != ACYCLIC).mean()) if len(self) else 0.0

    @property
    def expected_cyclic_share(self) -> float:
        """The same as expected from acyclic populations near the data."""
        known = self.expected_cyclic[self.replicates > 0]
        return float(known.mean()) if len(known) else 0.0


def noise(
    batch: Batch, *, replicates: int = 200, level: float = 0.05, seed: int = 0, place: Nodes | None = None
) -> Noise:
    """Resample the judgments of each query, and test whether its cycles are more than sampling would make.

    The bootstrap draws judgments (clusters, where they are known) with replacement. “cyclic” is said of at most a
    share ``level`` of queries whose truth is acyclic, level pairs included, judgments being independent draws; over
    many queries use ``explained``. A query's results depend on its label, its judgments and the seed alone. ``place``
    (nodes,) is an order of each graph's items that is known already. Errors (UsageError): fewer than one replicate, a
    level outside (0, 1).

    >>> from concordant.preferences import Preferences
    >>> beats = [("x", "y"), ("y", "z"), ("z", "x")] * 8
    >>> found = noise(Batch.whole(Preferences.from_comparisons(*zip(*beats))), replicates=20)
    >>> VERDICTS[found.verdict[0]], round(float(found.p[0]), 4), found.cycles[0].tolist()  # 1/2⁸, and a little
    ('cyclic', 0.0044, [0, 1, 2])

    Source: the bootstrap of Efron (1979) and of AoS (18)'s multiset; for the test see ``cycle_tests``.
    """
    if replicates < 1:
        raise UsageError(f"replicates must be at least 1, not {replicates}")
    if not 0.0 < level < 1.0:
        raise UsageError(f"the level must be between 0 and 1, not {level}")
    mean = mean_adjacency(batch)
    net = Differences.of(mean)
    test = cycle_test(batch, net)
    seen, p = np.isfinite(test.threshold), test.p
    verdict = np.where(seen, np.where(p <= level, CYCLIC, WITHIN_NOISE), ACYCLIC).astype(np.int8)
    cycles = {
        graph: cycle_at(net, test.edge_p, graph, float(test.threshold[graph]))
        for graph in np.flatnonzero(verdict == CYCLIC).tolist()
    }
    drawn = replicated(batch, net, best_orders(mean).place if place is None else place, replicates, seed)
    exact = np.ones(len(net), bool)
    np.logical_and.at(exact, mean.graph, test.edges.exact)
    return Noise(
        net, drawn.edge_sign, test.edge_p, drawn.acyclic, condorcet(net), drawn.winner, p, verdict,
        cycles, drawn.nearby_cyclic, exact, test.edges.independent,
        drawn.number, level, seed,
    )  # fmt: skip


def explained(p: Floats, level: float = 0.05) -> NDArray[np.bool_]:
    """Which of many queries' cycles sampling alone explains: those that Benjamini–Hochberg's procedure keeps.

    ``p`` (queries,) from ``Noise.p``, 1 where there is no cycle. Of the others, cyclic ones, at most a share ``level``
    is expected to be acyclic in truth.
    """
    return benjamini_hochberg(p) > level
