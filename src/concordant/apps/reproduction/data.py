"""Graded lists as the papers use them: features, relevance, comparisons drawn by (26), and the NDCG risk on (27)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.apps.reproduction.outcome import find
from concordant.learning.features.matrix import Alignment, Features
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_judged
from concordant.losses.gains import best_value, inverse_discount
from concordant.preferences.preferences import Comparisons, counted_comparisons
from concordant.preferences.ragged import Grouped, Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = {"mslr": 20, "mq2008": 5}
"""Fewest documents of a query that is used."""
TITLES = {"mslr": "MSLR", "mq2008": "MQ2008"}
FULL = 1_000
"""A set of so many queries or more gets the paper's numbers of comparisons."""


@dataclass(frozen=True, eq=False)
class GradedLists(Grouped):
    """Documents of queries with their features and relevance r, the rows of a query together."""

    name: str
    X: Floats
    """Shape (documents, features), standardised over all documents."""
    relevance: Floats
    start: Ints
    """Documents of query q are start[q]:start[q + 1]."""

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def size(self) -> Ints:
        """Documents of each query."""
        return self.groups.sizes

    @property
    def query(self) -> Ints:
        """Query of each document."""
        return self.groups.owner

    @cached_property
    def limits(self) -> Floats:
        """The scores (27) that the average log-odds tend to."""
        return limit_scores(self.start, self.relevance)

    @cached_property
    def alignment(self) -> Alignment:
        """Row of X of each node of what ``draw`` returns: in order."""
        return Alignment(self.start, np.arange(len(self.X)), np.zeros(0, np.int64))

    def draw(self, n: int, rng: np.random.Generator) -> Comparisons:
        """Draw n comparisons by (26): query uniform, pair uniform, i ≻ j with probability σ(r_i − r_j).

        All documents are items of their query, compared or not.
        """
        query = rng.integers(len(self), size=n)
        one = (rng.random(n) * self.size[query]).astype(np.int64)
        two = (rng.random(n) * (self.size[query] - 1)).astype(np.int64)
        two += two >= one
        one, two = one + self.start[query], two + self.start[query]
        won = rng.random(n) < expit(self.relevance[one] - self.relevance[two])
        every = (self.query, np.arange(len(self.X)))
        return counted_comparisons(np.where(won, one, two), np.where(won, two, one), query=query, declared=every)

    def risk(self, score: Floats) -> float:
        """Mean over queries of the NDCG loss (14) on the limit scores, G(s) = 2^s, whole lists."""
        order = np.lexsort((-score, self.query))
        value = self.groups.sums(self._gains[order] * self._discount[self.groups.place])
        return float(np.mean(1.0 - value / self._best))

    @cached_property
    def _gains(self) -> Floats:
        return np.exp2(self.limits)

    @cached_property
    def _discount(self) -> Floats:
        return inverse_discount(int(self.size.max()), None, None)

    @cached_property
    def _best(self) -> Floats:
        return best_value(self.start, self._gains, self._discount)

    def some(self, queries: Ints) -> GradedLists:
        """The lists of some queries."""
        taken, rows = self.groups.take(queries)
        return replace(self, X=self.X[rows], relevance=self.relevance[rows], start=taken.start)

    def centred(self) -> Floats:
        """X less its mean in each query: the free intercept per query taken out."""
        return self.groups.centred(self.X)


def limit_scores(start: Ints, relevance: Floats) -> Floats:
    """(27): s(i) = 1/(m − 1) Σ_{j≠i} log(1 + e^(r_i − r_j)) − log(1 + e^(r_j − r_i)) = m/(m − 1) (r_i − r̄).

    >>> limit_scores(np.array([0, 3]), np.array([2.0, 1.0, 0.0])).tolist()
    [1.5, 0.0, -1.5]
    """
    lists = Ragged(start)
    return np.asarray(lists.centred(relevance) * lists.spread(lists.sizes / np.maximum(lists.sizes - 1, 1)))


def read_graded(name: str, data: Path | None) -> GradedLists:
    """Read mslr or mq2008: the queries with enough documents and at least two grades."""
    folder = find(name, data)
    parts = [read_judged(path) for path in _files(folder)]
    width = max(features.X.shape[1] for features, _ in parts)
    X = np.concatenate([np.pad(features.X, ((0, 0), (0, width - features.X.shape[1]))) for features, _ in parts])
    relevance = np.concatenate([labels for _, labels in parts])
    before = np.cumsum([0, *(len(features.queries) for features, _ in parts)])
    query = np.concatenate([_codes(features) + first for (features, _), first in zip(parts, before, strict=False)])
    sorter = np.argsort(query, kind="stable")
    X, relevance, query = X[sorter], relevance[sorter], query[sorter]
    lists = Ragged.runs(query)
    keep = lists.spread((lists.sizes >= LEAST[name]) & (lists.most(relevance) > lists.least(relevance)))
    kept = Ragged.runs(query[keep]).start
    scaled = np.asarray(Normaliser().fit(X[keep]).apply(X[keep]), np.float64)
    return GradedLists(name, scaled, relevance[keep], kept)


def _codes(features: Features) -> Ints:
    assert features.query is not None  # a LETOR file has a query in every line
    return features.query.astype(np.int64)


def _files(folder: Path) -> list[Path]:
    """The files of a set, each query in one of them only."""
    if (piece := folder / "mslr_merged_by_query.svm.gz").is_file():
        return [piece]
    if (folder / "S1.txt").is_file():
        return [path for number in range(1, 6) if (path := folder / f"S{number}.txt").is_file()]
    names = ("train.txt", "vali.txt", "test.txt")
    return [path for name in names if (path := folder / "Fold1" / name).is_file()]
