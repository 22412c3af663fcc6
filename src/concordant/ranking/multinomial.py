"""Multinomial draws of counts that depend on a key and the replicate's number alone, not on batch or threads.

Replicates are drawn in streams of a fixed size, each from its own generator, so any part can be drawn by itself.

Of very many distinct judgments, or clusters, each is drawn by itself, a Poisson number of times (Hanley & MacGibbon,
Comput. Methods Programs Biomed. 83, 2006): by its own counter, so that a part of them can be drawn wherever it lies.
How many are drawn together then varies by 1/√n of their number n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, pdtr

from concordant.errors import UsageError
from concordant.preferences.counts import MOST, exact_sum
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.sampling import Keys, label_keys, uniform_bits

Counts = NDArray[np.int64]
ALONE = 1 << 19
"""Distinct judgments, or clusters, of a graph beyond which each is drawn by itself."""
TABLED = 1 << 20
"""Means of Poisson numbers up to which their distribution is tabled; beyond, they follow a normal number."""
MANY = 256
"""From so many cells on Poisson draws, mended to the right total, are faster."""
LARGE = 1 << 40
"""From so many draws on the mending would take too many, and a mean of Poisson draws may be too large."""
HELD = 1 << 22
"""Numbers of one stream."""
LONGEST = 50
"""Replicates of one stream, at most."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """What one graph's bootstrap draws: its distinct judgments with their counts, or its clusters once each."""

    count: Counts
    """How many draws each atom is among; they sum to the number of draws."""
    member: Counts
    """The atom of each held judgment of the graph."""
    multiplicity: Counts
    """What one draw of the atom adds to each held judgment."""
    key: int

    @property
    def draws(self) -> int:
        """The number of draws."""
        return exact_sum(self.count)

    @classmethod
    def of(cls, batch: Batch, seed: int, *, clustered: bool = True) -> list[Atoms]:
        """One for each graph; keys depend on the query's label, the seed and the graph's number within the query."""
        keys = label_keys(batch.prefs.queries, seed)
        cluster = batch.prefs.cluster if clustered else None
        atoms: list[Atoms] = []
        seen: dict[int, int] = {}
        for graph, query in enumerate(batch.query.tolist()):
            held = slice(int(batch.start[graph]), int(batch.start[graph + 1]))
            times = batch.multiplicity[held]
            nth = seen.get(query, 0)
            seen[query] = nth + 1
            key = (int(keys[query]) + nth * 0x9E3779B97F4A7C15) % (1 << 64)
            if cluster is None:
                each = times, np.arange(len(times)), np.ones(len(times), np.int64), key
                alone = len(times) > ALONE
                atoms.append(Alone(*each, said_keys(batch.prefs)[batch.judgment[held]]) if alone else cls(*each))
            else:
                labels, member = np.unique(cluster[batch.judgment[held]], return_inverse=True)
                if exact_sum(times) * len(labels) > MOST:
                    raise UsageError(
                        f"the bootstrap draws each of {len(labels):,} clusters many times, and {exact_sum(times):,} "
                        f"judgments many times may be more than {MOST:,} (2^63 − 1)"
                    )
                own = np.ones(len(labels), np.int64), member.astype(np.int64), times, key
                many = batch.prefs.clusters if len(labels) > ALONE else None
                atoms.append(cls(*own) if many is None else Alone(*own, label_keys(many, 0)[labels]))
        return atoms

    def drawn(self, stream: Stream) -> Counts:
        """Counts of shape (replicates, atoms) of the replicates of a stream; each row sums to the number of draws."""
        seed = np.random.SeedSequence([self.key, stream.number])
        return multinomial(np.random.Generator(np.random.SFC64(seed)), self.count, stream.end - stream.begin)


@dataclass(frozen=True, eq=False)
class Alone(Atoms):
    """Very many distinct judgments, or clusters, each of which is drawn by itself."""

    said: Keys
    """A number for what each says, or is called."""

    def drawn(self, stream: Stream) -> Counts:
        """Counts of shape (replicates, atoms) of the replicates of a stream."""
        return poisson(self.said, self.count, self.key, np.arange(stream.begin, stream.end))


@dataclass(frozen=True)
class Stream:
    """Replicates begin … end − 1, drawn from generator ``number``."""

    number: int
    begin: int
    end: int


AtomsOf = Callable[..., list[Atoms]]
"""What finds the atoms of each graph of a batch: ``Atoms.of``, or what does so of judgments that are elsewhere."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """Replicates of the scores of judgments that are elsewhere."""

    values: NDArray[np.float64]
    """Shape (replicates, nodes)."""
    unlimited: Counts
    """Per graph: replicates in which some score had no limit."""
    draws: Counts
    """Per graph: judgments, or clusters, of a replicate."""


Redraws = Callable[[Batch, Mapping[str, Any], int, int], Replicates]
"""What makes them: of a batch, options of the structure, a number of replicates, a seed."""


def streams(atoms: int, replicates: int) -> Iterator[Stream]:
    """Cut the replicates into streams; their length depends on the number of atoms only."""
    length = int(np.clip(HELD // max(atoms, 1), 1, LONGEST))
    for number, begin in enumerate(range(0, replicates, length)):
        yield Stream(number, begin, min(begin + length, replicates))


def multinomial(rng: np.random.Generator, count: Counts, replicates: int) -> Counts:
    """Draw Σ count times with probabilities count/Σ count, ``replicates`` times; shape (replicates, cells).

    With many cells: independent Poisson numbers with means count are, given their total T, multinomial of T draws.
    Where T falls short, the missing draws are added one by one; where it is too large, T − n of its draws, chosen
    without replacement, are taken back, which leaves a multinomial of n.

    >>> multinomial(np.random.default_rng(0), np.array([3, 0, 7]), 2).sum(axis=1).tolist()
    [10, 10]
    """
    total = int(count.sum())
    if len(count) < MANY or total == 0 or total >= LARGE:
        if total == 0:
            return np.zeros((replicates, len(count)), np.int64)
        return rng.multinomial(total, count / total, size=replicates)
    drawn = rng.poisson(count, size=(replicates, len(count)))
    upper = np.cumsum(count)
    excess = drawn.sum(axis=1) - total
    for row, surplus in enumerate(excess.tolist()):
        if surplus < 0:
            place = np.searchsorted(upper, rng.integers(0, total, -surplus), side="right")
            drawn[row] += np.bincount(place, minlength=len(count))
        elif surplus > 0:
            taken = rng.choice(total + surplus, surplus, replace=False, shuffle=False)
            place = np.searchsorted(np.cumsum(drawn[row]), taken, side="right")
            drawn[row] -= np.bincount(place, minlength=len(count))
    return drawn


def poisson(said: Keys, count: Counts, key: int, replicates: Counts) -> Counts:
    """Poisson numbers with means ``count``, of shape (replicates, cells), each from a counter of its own.

    ``said``: a number for each cell, ``key``: of all of them, ``replicates``: the numbers of the replicates.

    >>> both = poisson(np.array([4, 9], np.uint64), np.array([1, 1000]), 7, np.arange(3))
    >>> one = poisson(np.array([9], np.uint64), np.array([1000]), 7, np.array([2]))
    >>> both.shape, bool((one == both[2:, 1:]).all())
    ((3, 2), True)
    """
    own = uniform_bits(said, np.uint64(key % (1 << 64)))
    drawn = np.zeros((len(replicates), len(count)), np.int64)
    sorter = np.argsort(count, kind="stable")
    means, first = np.unique(count[sorter], return_index=True)
    ends = np.append(first[1:], len(count))
    cells: list[Any] = [sorter[begin:end] for begin, end in zip(first, ends, strict=True)]
    cells = cells if len(means) > 1 else [slice(None)] * len(means)
    parts = list(zip(cells, map(_quantiles, means.tolist()), strict=True))
    for row, replicate in zip(drawn, replicates, strict=True):
        unit = (uniform_bits(own, np.uint64(replicate)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        for some, quantiles in parts:
            row[some] = quantiles(unit[some])
    return drawn


def _quantiles(mean: int) -> Callable[[NDArray[np.float64]], Counts]:
    """What finds the smallest numbers up to which a Poisson distribution has more than some shares."""
    spread = np.sqrt(mean)
    if mean > TABLED:
        return partial(_normal_quantiles, float(mean))
    numbers = np.arange(max(int(mean - 12 * spread) - 20, 0), int(mean + 12 * spread) + 40)
    upto = pdtr(numbers, mean)[:-1]
    return lambda share: np.asarray(numbers[0] + np.searchsorted(upto, share, side="right"), np.int64)


def _normal_quantiles(mean: float, share: NDArray[np.float64]) -> Counts:
    z = ndtri(np.maximum(share, 2.0**-54))
    return np.asarray(np.rint(np.maximum(mean + np.sqrt(mean) * z + (z * z - 1.0) / 6.0, 0.0)), np.int64)


def said_keys(prefs: Preferences) -> Keys:
    """Return a number for what each distinct judgment says, by labels: the same wherever it was counted."""
    item = label_keys(prefs.items, 0)
    if isinstance(prefs, Lists):
        entries = uniform_bits(item[prefs.list_item], _bits(prefs.list_value))
        total = np.append(np.zeros(1, np.uint64), np.cumsum(entries))
        found = total[prefs.list_start[1:]] - total[prefs.list_start[:-1]]
    elif isinstance(prefs, Comparisons):
        one, other = item[prefs.winner], item[prefs.loser]
        if prefs.tie is not None:  # of a tie neither comes first
            low, high = np.minimum(one, other), np.maximum(one, other)
            one, other = np.where(prefs.tie, low, one), np.where(prefs.tie, high, other)
        found = uniform_bits(uniform_bits(one, other), other)
        values = [np.zeros(1) if prefs.tie is None else prefs.tie]
        values += [np.ones(1) if each is None else each for each in (prefs.weight, prefs.share)]
        values += [] if prefs.time is None else [prefs.time]
        values += [] if prefs.covariates is None else list(prefs.covariates.T)
        for value in values:
            found = uniform_bits(found, _bits(value))
    else:
        return np.zeros(0, np.uint64)
    if prefs.clusters is not None and prefs.cluster is not None:
        found = uniform_bits(found, label_keys(prefs.clusters, 0)[prefs.cluster])
    return found


def _bits(values: NDArray[np.generic]) -> Keys:
    return (values.astype(np.float64) + 0.0).view(np.uint64)
