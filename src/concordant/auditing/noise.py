"""How much of the net preferences, of their cycles and of the winner is more than sampling noise.

Replicates come from the multinomial bootstrap, and from an acyclic population nearby. One of a query with n judgments
is n draws from its judgments (clusters, where they are known), with probabilities count/n: the judgment is the unit,
never its edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.auditing.cycle_tests import benjamini_hochberg, cycle_at, cycle_test, has_cycle
from concordant.errors import UsageError
from concordant.preferences.connectivity import LEVEL, Differences
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import Ragged
from concordant.progress import stage, steps
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import best_orders
from concordant.ranking.edge_tests import sides_taken
from concordant.ranking.multinomial import Atoms, streams

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
Flags = NDArray[np.bool_]
CELLS = 1 << 21
"""Pairs of replicates that are held at a time."""
MOST, FEWEST = 1 << 24, 10
"""Pairs of all replicates of a graph, at most: larger graphs get fewer replicates, none where too few are left."""
FEW = 12
"""Items up to which replicates are tables of who beats whom."""
NEARBY = 1 << 62
"""Number of the stream that draws from the acyclic population; those of the bootstrap count from 0."""


def cyclic_tables(beats: Flags) -> Flags:
    """Whether each table (tables, items, items) of who beats whom has a cycle: who is unbeaten leaves, until none is.

    >>> cyclic_tables(np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 1, 1], [0, 0, 1], [0, 0, 0]]], bool)).tolist()
    [True, False]
    """
    left = np.ones(beats.shape[:2], bool)
    for _ in range(beats.shape[1]):
        left &= (beats & left[:, :, None]).any(axis=1)
    return np.asarray(left.any(axis=1))


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one graph, those with a net preference in the data first, from winner to loser (nodes from 0)."""

    nodes: int
    winner: Nodes
    loser: Nodes
    votes: Floats
    """Strength for and against, shape (2, pairs), ties left out."""
    rounding: Floats
    """What is 0."""
    table: csr_array
    """Net strength that each held judgment gives each pair; shape (pairs, judgments)."""

    def cyclic(self, net: Floats) -> int:
        """How many rows of ``net`` (replicates, pairs) have a cycle."""
        row, pair = np.nonzero(np.abs(net) > self.rounding)
        forward = net[row, pair] > 0
        winner = np.where(forward, self.winner[pair], self.loser[pair])
        loser = np.where(forward, self.loser[pair], self.winner[pair])
        if self.nodes <= FEW:
            beats = np.zeros((len(net), self.nodes, self.nodes), bool)
            beats[row, winner, loser] = True
            return int(cyclic_tables(beats).sum())
        base = row * self.nodes
        winner, loser = base + winner, base + loser
        start = np.arange(0, (len(net) + 1) * self.nodes, self.nodes)
        return int(has_cycle(start, np.repeat(np.arange(len(net)), self.nodes), winner, loser).sum())

    def wins_all(self, node: int, net: Floats) -> int:
        """In how many rows the node is preferred to every other."""
        won = (self.winner == node) & (net > self.rounding) | (self.loser == node) & (net < -self.rounding)
        return int((won.sum(axis=1) == self.nodes - 1).sum())

    def drawn(self, atoms: Atoms, replicates: int) -> Iterator[Floats]:
        """Net strengths in replicates of the bootstrap, some at a time; shape (some, pairs)."""
        some = max(1, CELLS // max(len(self.winner), 1))
        for stream in streams(len(atoms.count), replicates):
            drawn = atoms.drawn(stream)
            for begin in range(0, len(drawn), some):
                times = drawn[begin : begin + some][:, atoms.member] * atoms.multiplicity
                yield (self.table @ np.ascontiguousarray(times.T, np.float64)).T

    def nearby(self, rng: np.random.Generator, backward: Flags, replicates: int) -> Iterator[Floats]:
        """Net votes in samples of the acyclic population, each pair with as many votes as take a side in the data."""
        total = sides_taken(*self.votes)[2]
        chance = (self.votes[0] + 0.5) / (total + 1.0)
        chance[: len(backward)][backward] = 0.5
        chance[len(backward) :] = 0.5
        some = max(1, CELLS // max(len(total), 1))
        for begin in range(0, replicates, some):
            wins = rng.binomial(total, chance, size=(min(some, replicates - begin), len(total)))
            yield np.asarray(2.0 * wins - total, np.float64)


def condorcet(net: Differences) -> Nodes:
    """The node that is preferred to every other item of its query, −1 where there is none; shape (graphs,)."""
    wins = np.bincount(net.winner, minlength=net.nodes)
    best = np.flatnonzero((wins == (net.sizes - 1)[net.owner]) & (wins > 0))
    winner = np.full(len(net), -1)
    winner[net.owner[best]] = best
    return winner


def _replicated(batch: Batch, net: Differences, place: Nodes, replicates: int, seed: int) -> dict[str, NDArray[Any]]:
    """Draw and look at the replicates of each graph, for ``Noise``; ``place`` (nodes,) orders its items, best first.

    The acyclic population has the pairs that ``place`` puts the wrong way round level, and the others as they are:
    each vote of a pair that takes a side is a win with chance (wins + ½)/(votes + 1). Where pairs are not independent
    votes of one strength, the replicates of the bootstrap are shifted instead.
    """
    sign, acyclic = np.zeros(len(net.winner)), np.ones(len(net))
    held, nearby = np.full(len(net), np.nan), np.zeros(len(net))
    number = np.minimum(replicates, MOST // np.maximum(batch.graphs.pairs.sizes, 1))
    number[(number < FEWEST) & (number < replicates)] = 0
    best = condorcet(net)
    prefs = batch.prefs
    parametric = isinstance(prefs, Comparisons) and prefs.cluster is None and not prefs.weighted
    pieces = steps("graphs", zip(Atoms.of(batch, seed), _pairs(batch, net), net.edges.slices, strict=True), len(net))
    for graph, (atoms, pairs, edges) in enumerate(pieces):
        drawn = min(int(number[graph]), 1) if len(atoms.count) == 1 else int(number[graph])  # all would be alike
        if drawn == 0:
            sign[edges] = acyclic[graph] = nearby[graph] = np.nan
        backward = place[net.winner[edges]] > place[net.loser[edges]]
        some = len(backward)
        if some == 0 or drawn == 0:
            continue
        shift = np.zeros(len(pairs.winner))
        shift[:some][backward] = (pairs.votes[0] - pairs.votes[1])[:some][backward]
        top = int(best[graph] - net.node_start[graph])
        same, cyclic, shifted, won = np.zeros(some), 0, 0, 0
        for row in _counted("replicates", pairs.drawn(atoms, drawn), drawn):
            same += (row > pairs.rounding).sum(axis=0)[:some]
            cyclic += pairs.cyclic(row)
            won += pairs.wins_all(top, row) if best[graph] >= 0 else 0
            shifted += 0 if parametric else pairs.cyclic(row - shift)
        if parametric:
            rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([atoms.key, NEARBY])))
            nearby_rows = _counted("replicates without cycles", pairs.nearby(rng, backward, drawn), drawn)
            shifted = sum(pairs.cyclic(row) for row in nearby_rows)
        sign[edges], acyclic[graph], nearby[graph] = same / drawn, 1 - cyclic / drawn, shifted / drawn
        held[graph] = won / drawn if best[graph] >= 0 else np.nan
    shares = {"edge_sign": sign, "acyclic_share": acyclic, "winner_share": held, "expected_cyclic": nearby}
    return shares | {"replicates": number}


def _counted(what: str, blocks: Iterator[Floats], replicates: int) -> Iterator[Floats]:
    """Yield blocks of replicates and tell how many there were."""
    with stage(what, replicates) as advance:
        for block in blocks:
            yield block
            advance(len(block))


def _pairs(batch: Batch, net: Differences) -> Iterator[Pairs]:
    """The pairs of each graph."""
    graphs, edges = batch.graphs, batch.edges
    winner = np.concatenate([net.winner, net.level_first])
    loser = np.concatenate([net.loser, net.level_second])
    sorter = np.argsort(net.owner[winner], kind="stable")  # edges of each graph before its level pairs
    winner, loser = winner[sorter], loser[sorter]
    pair = graphs.pair_of(winner, loser)
    of_edge = np.argsort(pair)[graphs.pair_of(edges.winner, edges.loser)]
    net_strength = np.where(edges.tie, 0.0, np.where(edges.winner == winner[of_edge], edges.strength, -edges.strength))
    up = winner < loser
    wins, losses = graphs.wins[pair], graphs.losses[pair]
    votes = np.stack([np.where(up, wins, losses), np.where(up, losses, wins)])
    rounding = LEVEL * (graphs.above + graphs.below)[pair]
    held = Ragged(np.searchsorted(edges.holder, batch.start)), batch.groups
    columns = net.node_groups, graphs.pairs, *held
    for nodes, here, rows, judged in zip(*(groups.slices for groups in columns), strict=True):
        cells = of_edge[rows] - here.start, edges.holder[rows] - judged.start
        table = csr_array((net_strength[rows], cells), shape=(here.stop - here.start, judged.stop - judged.start))
        one, other = winner[here] - nodes.start, loser[here] - nodes.start
        yield Pairs(nodes.stop - nodes.start, one, other, votes[:, here], rounding[here], table)


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

    >>> from concordant.preferences.preferences import Preferences
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
    exact = np.ones(len(net), bool)
    np.logical_and.at(exact, mean.graph, test.edges.exact)
    return Noise(
        net=net, edge_p=test.edge_p, winner=condorcet(net), p=p, verdict=verdict, cycles=cycles, exact=exact,
        independent=test.edges.independent, level=level, seed=seed,
        **_replicated(batch, net, best_orders(mean).place if place is None else place, replicates, seed),
    )  # fmt: skip


def explained(p: Floats, level: float = 0.05) -> NDArray[np.bool_]:
    """Which of many queries' cycles sampling alone explains: those that Benjamini–Hochberg's procedure keeps.

    ``p`` (queries,) from ``Noise.p``, 1 where there is no cycle. Of the others, cyclic ones, at most a share ``level``
    is expected to be acyclic in truth.
    """
    return benjamini_hochberg(p) > level
