"""Multinomial draws of counts that depend on a key and the replicate's number alone, not on batch or threads.

Replicates are drawn in streams of a fixed size, each from its own generator, so any part can be drawn by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.preferences.counts import MOST, exact_sum
from concordant.preferences.graphs import Batch
from concordant.preferences.sampling import label_keys

Counts = NDArray[np.int64]
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
                atoms.append(cls(times, np.arange(len(times)), np.ones(len(times), np.int64), key))
            else:
                labels, member = np.unique(cluster[batch.judgment[held]], return_inverse=True)
                if exact_sum(times) * len(labels) > MOST:
                    raise UsageError(
                        f"the bootstrap draws each of {len(labels):,} clusters many times, and {exact_sum(times):,} "
                        f"judgments many times may be more than {MOST:,} (2^63 − 1)"
                    )
                atoms.append(cls(np.ones(len(labels), np.int64), member.astype(np.int64), times, key))
        return atoms

    def drawn(self, stream: Stream) -> Counts:
        """Counts of shape (replicates, atoms) of the replicates of a stream; each row sums to the number of draws."""
        seed = np.random.SeedSequence([self.key, stream.number])
        return multinomial(np.random.Generator(np.random.SFC64(seed)), self.count, stream.end - stream.begin)


@dataclass(frozen=True)
class Stream:
    """Replicates begin … end − 1, drawn from generator ``number``."""

    number: int
    begin: int
    end: int


AtomsOf = Callable[..., list[Atoms]]
"""What finds the atoms of each graph of a batch: ``Atoms.of``, or what does so of judgments that are elsewhere."""


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
