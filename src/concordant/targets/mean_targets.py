"""Mean gain targets: the U-statistic of order k turned into one regression target for each item (AoS (18), (28))."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import ConcordantError, UsageError
from concordant.graphs import Batch, Graphs
from concordant.listing import take_lists
from concordant.preferences import Preferences
from concordant.structures.log_odds import C0, pair_log_odds
from concordant.structures.registry import structure as find_structure
from concordant.structures.scores import STOPPED, Scores
from concordant.targets.gains import Gain, best_value, inverse_discount, the_gain

__all__ = ["Targets", "centre", "mean_targets"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 100_000
"""Nodes and judgments of subsets that are worked on at a time: bounds the memory and keeps the work in the processor's
cache; does not change the result."""
THREADS = 2
ZERO = 1e-9
"""A best value Z at or below this is 0: what is left of scores that cancel is rounding, not an order."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of the items of each query, with their Monte Carlo error and the weights of the queries.

    Items stand as in ``Batch.whole(prefs)``: by query, then by item code.
    """

    start: Ints
    """Items of query q are start[q]:start[q + 1]."""
    value: Floats
    """ȳ, shape (items of all queries,)."""
    error: Floats
    """Monte Carlo standard error of ȳ; 0 where ȳ is exact. It falls as 1/√B."""
    weight: Floats
    """n̂_q / (n m_q) for each query, so that Σ_q weight_q ‖f(q) − ȳ_q‖² is twice the quadratic risk, less a constant."""
    drawn: Ints
    """Subsets that each query's targets are the mean of; 1 where all its judgments are one."""
    zero: Ints
    """How many of them had Z = 0: they count as targets 0."""
    exact: NDArray[np.bool_]
    """Whether the query's only subset is all its judgments (order 'all', or no more than k of them)."""
    order: int | None = None
    """k; None for all judgments."""
    stopped: int = 0
    """Graphs whose structure stopped before convergence."""

    def centred(self) -> Floats:
        """Return the targets less their mean in each query: the free intercept per query taken out."""
        return centre(self.start, self.value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in words."""
        said = []
        if self.order is not None and self.exact.any():
            said.append(
                f"{int(self.exact.sum()):,} of {len(self.exact):,} queries have at most {self.order:,} judgments: all "
                "of them are their one subset"
            )
        if self.zero.any():
            total = int(self.drawn.sum())
            queries = int((self.zero > 0).sum())
            said.append(
                f"{int(self.zero.sum()):,} of {total:,} subsets (in {queries:,} queries) have no best order (Z = 0): "
                "their targets are 0"
            )
        if self.stopped:
            said.append(f"{self.stopped:,} structures stopped before convergence")
        return tuple(said)


def mean_targets(
    prefs: Preferences,
    structure: str | Callable[..., Scores] = "log-odds",
    *,
    options: Mapping[str, Any] | None = None,
    order: int | str = "all",
    subsets: int = 32,
    gain: str | Gain = "2^s-1",
    normalise: bool = True,
    discount: Gain | None = None,
    at: int | None = None,
    seed: int = 0,
    partition: bool = True,
    block: int = BLOCK,
) -> Targets:
    """Return ȳ_q = the mean over k-subsets of the judgments of query q of G(s_j)/Z(s), s the structure of the subset.

    For φ(α, s) = 1/(2m) Σ_j (α_j − G(s_j)/Z(s))² (AoS (28)) the U-statistic risk (18) is Σ_q (weight_q/2) ‖f(q) − ȳ_q‖²
    plus a constant, so any weighted least-squares regressor on these targets minimises it.

    ``structure`` is a name of the registry or a function of a batch, with ``options``; ``order`` is k, or 'all' for
    complete aggregation (17); a query with at most k judgments has all of them as its one subset. Otherwise ȳ is
    estimated from ``subsets`` random subsets per query, blocks of random partitions where the query has 2k judgments
    or more (``partition=False``: independent draws). ``gain`` is '2^s-1', '2^s', 'identity' or a function;
    ``normalise`` divides by Z(s), the best value of (14) over orderings with ``discount`` F (log2(1 + j)) and cut-off
    ``at``. Where Z(s) = 0 (or is negative, as an unusual gain can make it) the targets of the subset are 0; this is
    counted. Draws depend on the labels of queries and ``seed`` only, not on row order or ``block``.

    Errors (UsageError): an order or number of subsets below 1, an unknown structure, option or gain.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"])
    >>> mean_targets(votes, "borda", gain="identity").value.round(4).tolist()  # s = (1/3, −1/3)
    [2.7095, -2.7095]
    >>> mean_targets(votes, "borda", gain="identity", order=1, subsets=3).value.round(4).tolist()  # 2.71, 2.71, −2.71
    [0.9032, -0.9032]
    """
    k = _order(order)
    if subsets < 1:
        raise UsageError(f"the number of subsets must be at least 1, not {subsets}")
    function = find_structure(structure) if isinstance(structure, str) else structure
    G = the_gain(gain)
    start, _ = prefs.members
    start = np.asarray(start, np.int64)
    size = np.diff(start)
    inverse = inverse_discount(int(size.max(initial=0)), discount, at) if normalise else None
    total = prefs.judgments
    exact = total <= k if k is not None else np.ones(len(total), bool)
    value, error = np.zeros(start[-1]), np.zeros(start[-1])
    sides = _sides(prefs, start) if function is find_structure("log-odds") else None
    zero, drawn = np.zeros(len(size), np.int64), np.where(exact, 1, subsets).astype(np.int64)

    def work(codes: Ints, blocks: bool) -> int:
        """Fill in the targets of these queries; return how many structures stopped early."""
        if exact[codes[0]] or k is None:
            batch = Batch.whole(prefs, codes)
        else:
            batch = Batch.subsets(prefs, k, subsets, seed=seed, partition=blocks, queries=codes)
        scores, unfinished = _scores(batch, function, options or {}, sides)
        y, none = _gains(batch, scores, G, inverse)
        zero[codes] = np.bincount(np.searchsorted(codes, batch.query), none, len(codes)).astype(np.int64)
        per_round = total[codes] // k if blocks and k is not None else np.ones(len(codes), np.int64)
        at_nodes = take_lists(start, codes)[1]
        value[at_nodes], error[at_nodes] = _mean_and_error(batch, codes, y, drawn[codes], per_round)
        return unfinished

    parts = list(_blocks_of_queries(prefs, exact, drawn, size, total, k, partition, block))
    if sides is None or len(parts) == 1:  # a structure that is given need not be safe to call from two threads
        stopped = sum(work(*part) for part in parts)
    else:
        with ThreadPoolExecutor(max_workers=THREADS) as pool:
            stopped = sum(pool.map(lambda part: work(*part), parts))
    n = max(int(total.sum()), 1)
    weight = total / (n * np.maximum(size, 1))
    return Targets(start, value, error, weight, drawn, zero, exact, k, stopped)


def centre(start: Ints, value: Floats) -> Floats:
    """Subtract from each value, or each row of a matrix, the mean over its query; shape (nodes,) or (nodes, columns).

    >>> centre(np.array([0, 2, 3]), np.array([1.0, 3.0, 5.0])).tolist()
    [-1.0, 1.0, 0.0]
    """
    size = np.diff(start)
    some = np.flatnonzero(size)
    if len(some) == 0:
        return value.copy()
    means = np.add.reduceat(value, start[some], axis=0) / size[some].reshape(-1, *[1] * (value.ndim - 1))
    return np.asarray(value - np.repeat(means, size[some], axis=0))


def _order(order: int | str) -> int | None:
    if order == "all":
        return None
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise UsageError(f"order must be 'all' or an integer of at least 1, not {order!r}")
    return int(order)


def _blocks_of_queries(
    prefs: Preferences,
    exact: NDArray[np.bool_],
    drawn: Ints,
    size: Ints,
    total: Ints,
    k: int | None,
    partition: bool,
    block: int,
) -> Iterator[tuple[Ints, bool]]:
    """Yield query codes that are worked on together, and whether their subsets are blocks of partitions.

    A partition of a query with far more judgments than are drawn gains nothing and costs a full shuffle.
    """
    reach = 0 if k is None else 8 * k * drawn
    blocks = partition & ~exact & (total >= 2 * (k or 0)) & (total <= reach)
    held = np.diff(prefs.start) if k is None else np.where(exact, np.diff(prefs.start), np.minimum(total, k))
    cost = drawn * (size + held)
    for group in (exact, ~exact & blocks, ~exact & ~blocks):
        codes = np.flatnonzero(group)
        if len(codes) == 0:
            continue
        number = (np.cumsum(cost[codes]) - cost[codes]) // max(block, 1)
        for part in np.split(codes, np.flatnonzero(np.diff(number)) + 1):
            yield part, bool(blocks[part[0]])


def _sides(prefs: Preferences, start: Ints) -> tuple[Ints, Ints] | None:
    """Return the place within their query of the winner and the loser of each distinct comparison."""
    if prefs.kind != "comparisons" or prefs.winner is None or prefs.loser is None:
        return None
    whole, query = Batch.whole(prefs), prefs.query.astype(np.int64)
    return whole.node_of(query, prefs.winner) - start[query], whole.node_of(query, prefs.loser) - start[query]


def _scores(
    batch: Batch, function: Callable[..., Scores], options: Mapping[str, Any], sides: tuple[Ints, Ints] | None
) -> tuple[Floats, int]:
    """Return the scores of all nodes and how many graphs stopped early.

    The average log-odds of comparisons, the default, are computed here: without the connectivity of every subset, of
    no use to a mean, and without looking up the place of an item once for each subset. That is two thirds of the time.
    """
    if sides is None:
        scores = function(batch, **options)
        return scores.value, int((scores.status == STOPPED).sum())
    prefs, held = batch.prefs, batch.judgment
    find_structure("log-odds").check(prefs.kind, options)
    first = batch.node_start[batch.graph]
    mass = batch.multiplicity if prefs.weight is None else batch.multiplicity * prefs.weight[held]
    tie = None if prefs.tie is None else prefs.tie[held]
    graphs = Graphs.from_edges(batch.node_start, first + sides[0][held], first + sides[1][held], mass, tie)
    odds = pair_log_odds(graphs, options.get("c0", C0))
    width = np.diff(batch.node_start)
    return graphs.add_to_nodes(odds, -odds) / np.repeat(np.maximum(width - 1, 1), width), 0


def _gains(batch: Batch, scores: Floats, G: Gain, inverse: Floats | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Return G(s)/Z(s) of each node and which graphs have Z = 0 (gains alone, and none, without ``inverse``)."""
    with np.errstate(over="ignore"):
        gains = np.asarray(G(scores), np.float64)
    if gains.shape != scores.shape or not np.isfinite(gains).all():
        worst = float(np.abs(scores).max(initial=0.0))
        raise ConcordantError(f"the gain of a score is not one finite number (the largest score is {worst:.3g})")
    if inverse is None:
        return gains, np.zeros(len(batch), bool)
    Z = best_value(batch.node_start, gains, inverse)
    none = ~(Z > ZERO)
    factor = np.where(none, 0.0, 1.0 / np.where(none, 1.0, Z))
    return gains * np.repeat(factor, np.diff(batch.node_start)), none


def _mean_and_error(batch: Batch, codes: Ints, y: Floats, drawn: Ints, per_round: Ints) -> tuple[Floats, Floats]:
    """Return the mean of y over the graphs of each query and its standard error, for the items of these queries.

    Blocks of one permutation depend on one another, permutations do not: with b_r blocks in round r and R rounds the
    variance of the mean is estimated by R/(R − 1) Σ_r (b_r/B)² (ȳ_r − ȳ)². Independent draws are rounds of one. With
    a single round the blocks stand for rounds, which overstates the error.
    """
    query = np.searchsorted(codes, batch.query)
    width = np.diff(batch.node_start)
    first = np.cumsum(drawn) - drawn
    nth = np.arange(len(batch)) - first[query]
    size = np.zeros(len(codes), np.int64)
    size[query] = width
    offset = np.cumsum(size) - size
    node = np.arange(len(y)) + np.repeat(offset[query] - batch.node_start[:-1], width)
    mean = np.bincount(node, y, size.sum()) / np.repeat(drawn, size)
    per_unit = np.where(drawn > per_round, per_round, 1)
    rounds = -(-drawn // per_unit)
    if (rounds == 1).all():
        return mean, np.zeros(len(mean))
    unit = nth // per_unit[query]
    # sums of each round: the nodes of a query once for each of its rounds
    units_before = np.cumsum(rounds * size) - rounds * size
    cell = np.arange(len(y)) + np.repeat(units_before[query] + unit * width - batch.node_start[:-1], width)
    deviation = np.bincount(cell, y - mean[node], int((rounds * size).sum()))
    owner = np.repeat(np.arange(len(codes)), rounds * size)
    local = (np.arange(len(owner)) - units_before[owner]) % size[owner]
    squares = np.bincount(offset[owner] + local, deviation**2, size.sum())
    scale = np.where(rounds > 1, rounds / np.maximum(rounds - 1, 1), 0.0) / drawn.astype(np.float64) ** 2
    return mean, np.sqrt(squares * np.repeat(scale, size))
