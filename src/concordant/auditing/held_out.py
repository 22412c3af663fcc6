"""Is a surrogate's regret more than noise? Orders chosen on one half of the judgments, charged with the other half."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.gain_laws import Yardstick
from concordant.auditing.regret import CLOSE, order_loss
from concordant.errors import UsageError
from concordant.losses.minimise import minimise
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import Chosen, choose
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, label_keys, uniform_bits
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import best_orders
from concordant.stages import Stage

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
HALVES = 2


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a surrogate's order loses against the best order of the same half, on the other half, per judgment."""

    names: tuple[str, ...]
    queries: Nodes
    """Codes of the queries with at least two judgments; the others cannot be split."""
    excess: Floats
    """Shape (names, queries): mean over the splits and both directions; negative where the surrogate does better, NaN
    where it was left out because the query is too large."""
    mean: Floats
    """Shape (names,): mean over the queries."""
    error: Floats
    """Standard error of ``mean``: over the queries; of a single one from how far the two directions differ."""
    splits: int

    @property
    def z(self) -> Floats:
        """mean / error (NaN for 0/0)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean / self.error


def held_out_regrets(
    prefs: Preferences,
    names: Sequence[str],
    *,
    splits: int = 5,
    seed: int = 0,
    queries: Nodes | None = None,
    by: Yardstick | None = None,
) -> HeldOut:
    """Estimate the excess loss E[ℓ(order of the surrogate) − ℓ(best order)] when both are chosen on half the judgments.

    Each split deals a query's judgments into two halves (as ``Preferences.folds`` does). On one half the surrogate's
    minimiser ("name" or "name:phi", options as registered) and the order of least pairwise loss are found; both orders
    are charged with the mean adjacency of the other half, ties in the order being broken at random. Given its training
    half each difference is unbiased for the population's. It is not the regret of the surrogate on infinite data, nor
    on all the data: halves have less, and a best order that follows noise may do worse than a surrogate that smooths
    it, which shows as a negative excess. Halves are dealt judgment by judgment, so that judgments of one cluster that
    hang together stand on both sides, and errors are then too small.

    The standard error of a single query is the root of the mean over splits of (a − b)²/4, a and b the two directions:
    for fixed orders that is the variance of a mean over all its judgments. It is rough. A query's results depend on
    its label, its judgments and the seed alone.
    ``by``: a loss of lists in the place of the pairwise one; then the best order of a half is by the scores that the
    structure gives it, and both orders are charged with its scores of the other half.
    Errors (UsageError): no split, unknown surrogates, surrogates that read scores, no query with two judgments.

    >>> beats = [("x", "y")] * 6 + [("y", "z")] * 5 + [("x", "z")] * 6 + [("z", "x")]
    >>> votes = Preferences.from_comparisons(*zip(*beats))
    >>> found = held_out_regrets(votes, ["difference-graph"], splits=2)
    >>> found.excess.tolist()
    [[0.0]]
    """
    if splits < 1:
        raise UsageError(f"splits must be at least 1, not {splits}")
    members = choose(names)
    for chosen in members:
        if chosen.member.reads == "scores":
            raise UsageError(f"{chosen.name} reads scores; held-out losses are those of preferences")
    codes = np.arange(len(prefs.queries)) if queries is None else np.asarray(queries, np.int64)
    codes = codes[prefs.judgments[codes] >= HALVES]
    if not len(codes):
        raise UsageError("no query has two judgments: there is nothing to hold out")
    excess = np.zeros((splits, HALVES, len(members), len(codes)))
    with stage("held-out judgments", splits * HALVES) as advance:
        _fill(excess, prefs, codes, members, seed, by, advance)
    per_query = excess.mean(axis=(0, 1))
    if len(codes) > 1:
        error = per_query.std(axis=1, ddof=1) / math.sqrt(len(codes))
    else:
        error = np.sqrt(((excess[:, 0] - excess[:, 1]) ** 2 / 4).mean(axis=(0, 2)))
    return HeldOut(tuple(names), codes, per_query, per_query.mean(axis=1), error, splits)


@dataclass(frozen=True, eq=False)
class _Judge:
    """What half of the judgments charges an order with, and its own best order."""

    loss: Callable[[Floats], Floats]
    best: Floats
    """Scores in that order."""

    @classmethod
    def of(cls, half: Batch, by: Yardstick | None) -> _Judge:
        if by is None:
            mean = mean_adjacency(half)
            return cls(partial(order_loss, mean), -best_orders(mean).place.astype(np.float64))
        found = by.law.scores(half)
        known = np.ones(len(half.item), bool) if found.known is None else found.known  # the half judges no others
        start = Ragged.of_sizes(half.node_groups.sums(known).astype(np.int64)).start
        law = Relevance.of(found.value[known], start)
        return cls(lambda order: by.regrets(law, order[known]).loss, found.value)


def _fill(
    excess: Floats,
    prefs: Preferences,
    codes: Nodes,
    members: Sequence[Chosen],
    seed: int,
    by: Yardstick | None,
    advance: Stage,
) -> None:
    """Write the excess losses, shape (splits, halves, surrogates, queries)."""
    for split in range(len(excess)):
        keys = label_keys(prefs.queries, seed + split)
        shares = deal(prefs.start, prefs.count, keys, HALVES)
        halves = [_half(prefs, codes, share) for share in shares]
        judges = [_Judge.of(half, by) for half in halves]
        for train, half in enumerate(halves):
            rest = judges[1 - train]
            lot = _lots(half, keys)
            best = rest.loss(_broken(half, judges[train].best, lot))
            for row, chosen in enumerate(members):
                found = minimise(chosen.member.objective(half, phi=chosen.phi))
                charged = rest.loss(_broken(half, found.alpha, lot)) - best
                excess[split, train, row] = np.where(found.status == Status.LEFT_OUT, np.nan, charged)
            advance()  # surrogates take more and less time, all of them about as long in each half


def _half(prefs: Preferences, codes: Nodes, share: Nodes) -> Batch:
    """The part of the judgments that one hand holds; nodes are all items of each query, as in the whole."""
    whole = Batch.whole(prefs, codes)
    times = share[whole.judgment]
    kept = times > 0
    start = Ragged.counted(whole.graph[kept], len(whole)).start
    return Batch(prefs, whole.query, start, whole.judgment[kept], times[kept])


def _lots(batch: Batch, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A random number for each node, from its query's key and its place among the query's items."""
    within = np.arange(len(batch.item)) - batch.node_start[batch.owner]
    return uniform_bits(keys[batch.query][batch.owner], within.astype(np.uint64) + (np.uint64(1) << np.uint64(61)))


def _broken(batch: Batch, alpha: Floats, lot: NDArray[np.uint64]) -> Floats:
    """Scores 0, −1, −2, … in the order of α, ties (within rounding of a minimiser) in the order of the lots."""
    return -np.argsort(np.lexsort((lot, -np.rint(alpha / CLOSE), batch.owner))).astype(np.float64)
