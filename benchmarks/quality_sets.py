"""Sets, splits and draws of the quality experiment: real queries with labels, comparisons drawn from these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_svmlight_file

from concordant.learning.features.matrix import Alignment
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_judged
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences

__all__ = ["ALL_SETS", "SETS", "Comparisons", "Queries", "Split"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SETS = {
    "MSLR piece": (136, ["mslr/mslr_merged_by_query.svm.gz"]),
    "MQ2008": (46, [f"mq2008/S{part}.txt" for part in range(1, 6)]),
    "ClueWeb09": (42, [f"clueweb09_webis/Fold{part}.test.txt" for part in range(1, 6)]),
}
"""Number of features and files, each query in one of them."""
ALL_SETS = {**SETS, "LightGBM's example": (300, ["lightgbm_lambdarank/rank.train", "lightgbm_lambdarank/rank.test"])}
"""With a set whose queries lie in a file beside it."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Some queries: items in rows start[q]:start[q + 1]."""

    X: Floats
    label: Floats
    start: Ints

    @classmethod
    def read(cls, folder: Path, name: str) -> Queries:
        width, files = ALL_SETS[name]
        X, labels, sizes = [], [], []
        for file in files:
            if (folder / f"{file}.query").exists():
                rows, label = load_svmlight_file(str(folder / file), n_features=width, zero_based=False)
                X.append(rows.toarray())
                labels.append(label)
                sizes.append(np.loadtxt(folder / f"{file}.query", dtype=np.int64))
                continue
            features, label = read_judged(str(folder / file), width=width)
            assert features.query is not None
            order = np.argsort(features.query, kind="stable")
            X.append(features.X[order])
            labels.append(label[order])
            sizes.append(np.bincount(features.query))
        made = cls(np.concatenate(X), np.concatenate(labels), np.append(0, np.cumsum(np.concatenate(sizes))))
        return made.take(np.flatnonzero(made.size > 1))

    @property
    def size(self) -> Ints:
        return np.diff(self.start)

    @cached_property
    def query(self) -> Ints:
        """The query of each row."""
        return np.repeat(np.arange(len(self.size)), self.size)

    def take(self, queries: Ints) -> Queries:
        rows = np.concatenate([np.arange(self.start[q], self.start[q + 1]) for q in queries])
        return Queries(self.X[rows], self.label[rows], np.append(0, np.cumsum(self.size[queries])))

    def quality(self, score: Floats) -> float:
        """Mean NDCG@10 with gain 2^label − 1 over the queries whose labels are not all equal; score ties averaged."""
        highest = np.maximum.reduceat(self.label, self.start[:-1])
        tells = highest > np.minimum.reduceat(self.label, self.start[:-1])
        return float(ndcg(score, self.label, self.query, at=10, ties="averaged")[tells].mean())


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What was drawn: the preferences (items named by their row) and where their items stand in the features."""

    prefs: Preferences
    where: Alignment

    @classmethod
    def draw(cls, queries: Queries, per_query: int, seed: int, *, uneven: bool = False) -> Comparisons:
        """AoS (26): query uniform, pair uniform, i above j with probability σ(r_i − r_j).

        ``uneven``: queries as frequent as 1, 1/2, 1/3, … (Zipf), in an order that is drawn, as in logs of searches.
        """
        rng = np.random.default_rng([seed, per_query])
        if uneven:
            often = rng.permutation(1.0 / np.arange(1, len(queries.size) + 1))
            q = rng.choice(len(queries.size), per_query * len(queries.size), p=often / often.sum())
        else:
            q = rng.integers(0, len(queries.size), per_query * len(queries.size))
        m = queries.size[q]
        i = rng.integers(0, m)
        j = (i + 1 + rng.integers(0, m - 1)) % m
        i, j = queries.start[q] + i, queries.start[q] + j
        won = rng.random(len(q)) < expit(queries.label[i] - queries.label[j])
        prefs = Preferences.from_comparisons(np.where(won, i, j), np.where(won, j, i), q)
        batch = Batch.whole(prefs)
        row = np.array([int(str(item)) for item in prefs.items], np.int64)[batch.item]
        return cls(prefs, Alignment(prefs.members[0], row, np.setdiff1d(np.arange(len(queries.label)), row)))


@dataclass(frozen=True, eq=False)
class Split:
    """Two thirds of the queries to learn from, a third to judge by; Z are the features standardised on the former."""

    train: Queries
    test: Queries
    Z_train: Floats
    Z_test: Floats

    @classmethod
    def of(cls, queries: Queries, seed: int) -> Split:
        order = np.random.default_rng([seed, 2013]).permutation(len(queries.size))
        cut = 2 * len(order) // 3
        train, test = queries.take(np.sort(order[:cut])), queries.take(np.sort(order[cut:]))
        norm = Normaliser().fit(train.X)
        return cls(train, test, norm.apply(train.X), norm.apply(test.X))
