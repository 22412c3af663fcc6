"""Mean gain targets: the U-statistic of order k turned into one regression target for each item (AoS (18), (28))."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import ConcordantError, UsageError, whole_number
from concordant.learning.targets.log_odds import LogOddsTargets
from concordant.losses.gains import Gain, best_value, inverse_discount, the_gain
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Grouped, Ragged
from concordant.preferences.sampling import label_keys, quick_draws
from concordant.preferences.status import Status
from concordant.progress import steps
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TargetFacts:
    """Sums over the targets of all queries: what a fit tells of them, wherever they were made."""

    order: int | None
    """k; None for all judgments."""
    rows: int
    """Judged items of all queries."""
    queries: int
    single: int
    """Queries of one item."""
    exact: int
    """Queries whose only subset is all their judgments."""
    drawn: int
    """Subsets of all queries."""
    zero: int
    """Subsets without a best order (Z = 0), and in how many queries they are."""
    with_zero: int
    stopped: int
    """Graphs whose structure stopped before convergence."""
    spread: float
    """Σ w ȳ² over all items, ȳ less its mean in the query, w the weight of the query."""
    noise: float
    """The same of the Monte Carlo errors."""
    largest: float
    """The largest |ȳ|, less its mean in the query; 0 where there is nothing to learn."""
    unknown: int = 0
    """Items that were examined in none of the subsets."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know."""
        said = [] if self.order is None else one_subset(self.exact, self.queries, self.order)
        if self.zero:
            text = "{zero:,} of {drawn:,} subsets (in {within:queries}) have no best order (Z = 0): their targets are 0"
            said.append(Note("no best order", text, zero=self.zero, drawn=self.drawn, within=self.with_zero))
        if self.unknown:
            text = "{unknown:,} of {of:,} items were examined in none of the lists drawn: nothing is learned there"
            said.append(Note("never examined", text, unknown=self.unknown, of=self.rows))
        if self.stopped:
            said.append(Note("stopped", "{graphs:structures} stopped before convergence", graphs=self.stopped))
        return tuple(said)

    def status(self, subsets: int) -> dict[str, Any]:
        """Return what a fit reports; the error of the targets is None where a single subset does not tell."""
        error = float(np.sqrt(self.noise / self.spread)) if self.spread > 0 else 0.0
        return {
            "queries": self.queries,
            "rows": self.rows,
            "subsets_without_order": self.zero,
            "queries_below_order": 0 if self.order is None else self.exact,
            "monte_carlo_error": None if subsets == 1 and self.exact < self.queries else error,
        }


def one_subset(exact: int, queries: int, order: int) -> list[Note]:
    """Say how many queries have no more judgments than a subset, where there are some."""
    text = f"{{queries:,}} of {{of:,}} queries have at most {order:,} judgments: all of them are their one subset"
    return [Note("one subset", text, queries=exact, of=queries)] if exact else []


@dataclass(frozen=True, eq=False)
class Targets(Grouped):
    """Targets of the items of each query, with their Monte Carlo error and the weights of the queries.

    Items stand as in ``Batch.whole(prefs)``: by query, then by item code.
    """

    start: Ints
    """Items of query q are start[q]:start[q + 1]."""
    value: Floats
    """ȳ, shape (items of all queries,)."""
    error: Floats
    """Monte Carlo standard error of ȳ; 0 where ȳ is exact (and where one subset was drawn, which does not tell).
    It falls as 1/√B."""
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
    unknown: NDArray[np.bool_] | None = None
    """Items that no reader examined in any of the subsets: they have no target (``value``: the mean of the others), and
    nothing is to be fitted to them. None: no such item."""

    @property
    def sizes(self) -> Ints:
        """How many items of each query have a target."""
        size = self.groups.sizes
        return size if self.unknown is None else size - self.groups.sums(self.unknown).astype(np.int64)

    def spread(self, weight: Floats) -> Floats:
        """Return the weight of each item from those of the queries: 0 for those without a target."""
        each = self.groups.spread(weight)
        return each if self.unknown is None else np.where(self.unknown, 0.0, each)

    def centred(self) -> Floats:
        """Return the targets less their mean in each query: the free intercept per query taken out."""
        return self.groups.centred(self.value)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know."""
        return self.facts(self.weight).notes

    def facts(self, weight: Floats) -> TargetFacts:
        """Add the targets up, each query with its weight."""
        size = np.diff(self.start)
        each, centred = np.repeat(weight, size), self.centred()
        return TargetFacts(
            order=self.order,
            rows=len(self.value),
            queries=len(size),
            single=int((size == 1).sum()),
            exact=int(self.exact.sum()),
            drawn=int(self.drawn.sum()),
            zero=int(self.zero.sum()),
            with_zero=int((self.zero > 0).sum()),
            stopped=self.stopped,
            spread=float((each * centred**2).sum()),
            noise=float((each * self.error**2).sum()),
            largest=float(np.abs(centred).max(initial=0.0)),
            unknown=0 if self.unknown is None else int(self.unknown.sum()),
        )


BLOCK = 100_000
"""Nodes and judgments of subsets that are worked on at a time: bounds the memory and keeps the work in the processor's
cache; does not change the result."""
MOST = 1 << 50
"""Orders above this are this one: no query has so many judgments."""
ZERO = 1e-9
"""A best value Z at or below this is 0: what is left of scores that cancel is rounding, not an order."""


def mean_targets(
    prefs: Preferences,
    structure: str | Callable[..., Scores] = "log-odds",
    *,
    options: Mapping[str, Any] | None = None,
    order: int | str = "all",
    subsets: int = 32,
    gain: str | Gain = "2^s-1",
    scale: float = 1.0,
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

    Parameters
    ----------
    prefs : the judgments.
    structure : a name of the registry or a function of a batch.
    options : options of the structure.
    order : k, or 'all' for complete aggregation (17). A query with at most k judgments has all of them as its one
        subset.
    subsets : random subsets of each other query, from which ȳ is estimated.
    gain, scale : G = '2^s-1', '2^s', 'identity' or a function, of β s with ``scale`` β > 0.
    normalise, discount, at : whether to divide by Z(s), the best value of (14) over orderings, with discount F (None,
        log2(1 + j)) and cut-off. Where Z(s) = 0 (or is negative, as an unusual gain can make it) the targets of the
        subset are 0; this is counted.
    seed : draws depend on it and on the labels of queries only, not on row order or ``block``.
    partition : whether subsets are blocks of random partitions where the query has 2k judgments or more, rather than
        independent draws.
    block : nodes and judgments of subsets that are worked on at a time; it bounds the memory.

    The default structure of unweighted comparisons with a gain by name runs in compiled loops, in as many threads as
    there are processors (which change no bit); everything else in NumPy. Both are the same to 1e-12.

    Errors (UsageError): an order or number of subsets below 1, a scale that is not positive, an unknown structure,
    option or gain.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"])
    >>> mean_targets(votes, "borda", gain="identity").value.round(4).tolist()  # s = (1/3, −1/3)
    [2.7095, -2.7095]
    >>> mean_targets(votes, "borda", gain="identity", order=1, subsets=3).value.round(4).tolist()  # 2.71, 2.71, −2.71
    [0.9032, -0.9032]
    """
    return mean_targets_of_orders(
        prefs,
        [order],
        structure,
        options=options,
        subsets=subsets,
        gain=gain,
        scale=scale,
        normalise=normalise,
        discount=discount,
        at=at,
        seed=seed,
        partition=partition,
        block=block,
    )[0]


def mean_targets_of_orders(
    prefs: Preferences,
    orders: Sequence[int | str],
    structure: str | Callable[..., Scores] = "log-odds",
    *,
    options: Mapping[str, Any] | None = None,
    subsets: int = 32,
    gain: str | Gain = "2^s-1",
    scale: float = 1.0,
    normalise: bool = True,
    discount: Gain | None = None,
    at: int | None = None,
    seed: int = 0,
    partition: bool = True,
    block: int = BLOCK,
) -> list[Targets]:
    """Return the ``mean_targets`` of several orders, each with the bits it has alone; preparations are made once.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"])
    >>> [targets.order for targets in mean_targets_of_orders(votes, [1, 2, "all"])]
    [1, 2, None]
    """
    ks = [_order(order) for order in orders]
    scale = a_scale(scale)
    if not isinstance(prefs, Preferences):
        raise UsageError(f"targets are made of Preferences, not of {type(prefs).__name__}")
    subsets = whole_number(subsets, "the number of subsets")
    if not isinstance(structure, str) and not callable(structure):
        raise UsageError(f"structure is a name or a function, not {type(structure).__name__}")
    function = find_structure(structure) if isinstance(structure, str) else structure
    if isinstance(structure, str):
        find_structure(structure).check(prefs.kind, options or {})
    longest = int(prefs.member_groups.sizes.max(initial=0))
    inverse = inverse_discount(longest, discount, at) if normalise else None
    work = _Work(prefs, function, dict(options or {}), subsets, the_gain(gain), scale, inverse, seed, partition, block)
    quick = None
    if function is find_structure("log-odds"):
        quick = LogOddsTargets.of(prefs, work.key, work.options, gain, scale, inverse)
    return [work.targets(k, quick) for k in steps("targets", ks, even=False)]  # what larger subsets take is not known


@dataclass(frozen=True, eq=False)
class _Work:
    """What the targets of every order share."""

    prefs: Preferences
    function: Callable[..., Scores]
    options: dict[str, Any]
    subsets: int
    gain: Gain
    scale: float
    inverse: Floats | None
    seed: int
    partition: bool
    block: int

    @cached_property
    def key(self) -> NDArray[np.uint64]:
        return label_keys(Labels(self.prefs.queries.values), self.seed)

    def targets(self, k: int | None, quick: LogOddsTargets | None) -> Targets:
        """Return the targets of one order; ``quick`` for the queries that it covers."""
        queries, total = self.prefs.member_groups, self.prefs.judgments
        start, size = queries.start, queries.sizes
        exact = total <= k if k is not None else np.ones(len(total), bool)
        value, error = np.zeros(start[-1]), np.zeros(start[-1])
        unknown = np.zeros(start[-1], bool)
        zero, drawn = np.zeros(len(size), np.int64), np.where(exact, 1, self.subsets).astype(np.int64)
        blocks = self.partition & ~exact & in_blocks(total, k or 0, drawn)
        covered = np.zeros(len(total), bool) if quick is None else quick.covered(total, k)
        if quick is not None and covered.any():
            codes = np.flatnonzero(covered)
            quick.fill(codes, total, k, self.subsets, blocks, ZERO, value, error, zero)
        if k is not None:
            quick_draws(int(drawn[~exact & ~covered].sum()) * k)
        stopped = 0
        held = self.prefs.groups.sizes if k is None else np.where(exact, self.prefs.groups.sizes, k)
        groups = (exact, ~exact & blocks, ~exact & ~blocks)
        cost = drawn * (size + held)
        pieces = [
            some for group in groups for some in _some_queries(np.flatnonzero(group & ~covered), cost, self.block)
        ]
        for codes in steps("subsets", pieces):
            y, told, none, unfinished = self._gains(codes, k, bool(exact[codes[0]]), bool(blocks[codes[0]]))
            zero[codes] = none
            per_round = total[codes] // k if blocks[codes[0]] and k is not None else np.ones(len(codes), np.int64)
            at_nodes = queries.take(codes)[1]
            found = _mean_and_error(y, told, size[codes], drawn[codes], per_round)
            value[at_nodes], error[at_nodes], unknown[at_nodes] = found
            stopped += unfinished
        if unknown.any():
            held = np.maximum(size - queries.sums(unknown), 1)
            value[unknown] = queries.spread(queries.sums(np.where(unknown, 0.0, value)) / held)[unknown]
            size = held
        weight = total / (max(int(total.sum()), 1) * np.maximum(size, 1))
        without = unknown if unknown.any() else None
        return Targets(start, value, error, weight, drawn, zero, exact, k, stopped, without)

    def _gains(
        self, codes: Ints, k: int | None, exact: bool, blocks: bool
    ) -> tuple[Floats, NDArray[np.bool_] | None, Ints, int]:
        """G(s)/Z(s) of each node, which of them are known (None: all), and of each query how many graphs have Z = 0;
        also how many structures stopped early.
        """
        if exact or k is None:
            batch = Batch.whole(self.prefs, codes)
        else:
            batch = Batch.subsets(self.prefs, k, self.subsets, seed=self.seed, partition=blocks, queries=codes)
        scores = self.function(batch, **self.options)
        told = None if scores.known is None or scores.known.all() else scores.known
        y, none = _over_best(batch, self.scale * scores.value, self.gain, self.inverse, told)
        of_query = np.bincount(np.searchsorted(codes, batch.query), none, len(codes)).astype(np.int64)
        return y, told, of_query, int((scores.status == Status.STOPPED).sum())


def in_blocks(total: Ints, k: int, drawn: Ints) -> NDArray[np.bool_]:
    """Whether so many subsets of k are blocks of random partitions of all judgments of a query, where these are asked.

    A partition of far more judgments than are drawn gains nothing and costs a full shuffle.
    """
    return np.asarray((total >= 2 * k) & (total <= 8 * k * drawn), bool)


def of_draws(draws: Sequence[Targets], k: int, judgments: int, blocks: bool) -> Targets:
    """Put together the targets that each of some subsets of k of the judgments of one query gives by itself."""
    one = draws[0]
    size, number, total = np.diff(one.start), np.array([len(draws)]), max(judgments, 1)
    told = [np.ones(len(each.value), bool) if each.unknown is None else ~each.unknown for each in draws]
    known = None if all(each.all() for each in told) else np.concatenate(told)
    y = np.concatenate([np.where(mask, each.value, 0.0) for each, mask in zip(draws, told, strict=True)])
    per_round = np.array([judgments // k if blocks else 1])
    value, error, unknown = _mean_and_error(y, known, size, number, per_round)
    if unknown.any():
        value = np.where(unknown, np.where(unknown, 0.0, value).sum() / max(int((~unknown).sum()), 1), value)
    weight = np.array([judgments / (total * max(int((~unknown).sum()), 1))])
    zero, stopped = np.sum([each.zero for each in draws], axis=0), sum(each.stopped for each in draws)
    without = unknown if unknown.any() else None
    return Targets(one.start, value, error, weight, number, zero, np.array([False]), k, stopped, without)


def a_scale(scale: Any) -> float:
    """Return the factor of scores. Errors: UsageError for anything but a positive number."""
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.number) or not 0 < scale < np.inf:
        raise UsageError(f"the scale of scores must be a positive number, not {scale!r}")
    return float(scale)


def _order(order: int | str) -> int | None:
    if order == "all":
        return None
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise UsageError(f"order must be 'all' or an integer of at least 1, not {order!r}")
    return min(int(order), MOST)


def _some_queries(codes: Ints, cost: Ints, block: int) -> Iterator[Ints]:
    """Yield query codes that are worked on together."""
    number = (np.cumsum(cost[codes]) - cost[codes]) // max(block, 1)
    yield from (codes[part] for part in Ragged.runs(number).slices)


def _over_best(
    batch: Batch, scores: Floats, G: Gain, inverse: Floats | None, known: NDArray[np.bool_] | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return G(s)/Z(s) of each node and which graphs have Z = 0 (gains alone, and none, without ``inverse``).

    Z is of the orders of what is ``known``; the others have gain 0.
    """
    with np.errstate(over="ignore"):
        gains = np.asarray(G(scores), np.float64)
    if gains.shape != scores.shape or not np.isfinite(gains).all():
        worst = float(np.abs(scores).max(initial=0.0))
        raise ConcordantError(f"the gain of a score is not one finite number (the largest score is {worst:.3g})")
    if known is not None:
        gains = np.where(known, gains, 0.0)
    if inverse is None:
        return gains, np.zeros(len(batch), bool)
    Z = best_value(batch.node_start, gains, inverse)
    none = ~(Z > ZERO)
    factor = np.where(none, 0.0, 1.0 / np.where(none, 1.0, Z))
    return gains * batch.node_groups.spread(factor), none


def _mean_and_error(
    y: Floats, known: NDArray[np.bool_] | None, size: Ints, drawn: Ints, per_round: Ints
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the mean of y over the graphs of each query and its standard error, for the items of these queries.

    The mean is over the graphs in which an item is ``known`` (None: all); returned is, too, which items are in none.

    y: for each query (of ``size`` items) its ``drawn`` graphs, one after the other. Blocks of one permutation depend on
    one another, permutations do not: with b_r blocks in round r and R rounds the variance of the mean is estimated by
    R/(R − 1) Σ_r (b_r/B)² (ȳ_r − ȳ)². Independent draws are rounds of one. With a single round the blocks stand for
    rounds, which overstates the error.
    """
    queries, graphs = Ragged.of_sizes(size), Ragged.of_sizes(drawn)
    query, nth = graphs.owner, graphs.place
    width, offset = size[query], queries.first
    nodes, node = queries.take(query)
    number = np.repeat(drawn, size).astype(np.float64)
    if known is not None:
        number = np.asarray(np.bincount(node, known, size.sum()), np.float64)
    unknown = number == 0
    mean = np.bincount(node, y, size.sum()) / np.maximum(number, 1.0)
    per_unit = np.where(drawn > per_round, per_round, 1)
    rounds = -(-drawn // per_unit)
    if (rounds == 1).all():
        return mean, np.zeros(len(mean)), unknown
    # sums of each round: the nodes of a query once for each of its rounds
    units = Ragged.of_sizes(rounds * size)
    units_before, owner = units.first, units.owner
    cell = nodes.place + nodes.spread(units_before[query] + nth // per_unit[query] * width)
    apart = y - mean[node] if known is None else np.where(known, y - mean[node], 0.0)
    deviation = np.bincount(cell, apart, int((rounds * size).sum()))
    local = units.place % size[owner]
    squares = np.bincount(offset[owner] + local, deviation**2, size.sum())
    scale = np.where(rounds > 1, rounds / np.maximum(rounds - 1, 1), 0.0)
    return mean, np.sqrt(squares * np.repeat(scale, size)) / np.maximum(number, 1.0), unknown
