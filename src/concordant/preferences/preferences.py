"""Preferences: the counted multiset of the judgments of each query.

A judgment is one draw: one comparison, one shown list with its click, one ranking, one person's ratings. Structure
functions are symmetric in the judgments, so the counts of the distinct ones are all that is needed (method: AoS §2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, counted, few, whole_number
from concordant.preferences.counts import (
    ARRAYS,
    Counted,
    count_comparisons,
    count_lists,
    declare,
    encode_query,
    exact_sum,
    identical,
    keep,
    merge,
    pool,
    read_only,
)
from concordant.preferences.judgments import clean_comparisons, clean_orders, clean_ratings, clean_selections
from concordant.preferences.labels import Labels, look_alikes
from concordant.preferences.sampling import deal, label_keys

__all__ = ["KINDS", "Preferences", "counted_comparisons", "counted_lists"]


KINDS = ("comparisons", "selections", "choices", "orders", "ratings")
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Counted):
    """The counted multiset of judgments, per query; immutable, columnar, with ``+``, ``==`` and ``len``.

    Every partition of a log, merged in any order, gives equal bits: labels are sorted, judgments stand in a canonical
    order, counts are integers.

    >>> a = Preferences.from_comparisons(["x", "y"], ["y", "x"])
    >>> b = Preferences.from_comparisons(["x"], ["y"])
    >>> a + b == b + a, len(a + b), (a + b).distinct
    (True, 3, 2)
    """

    # -- what there is -------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        """Number of judgments, each as often as it was made."""
        return int(self.count.sum(dtype=np.int64))

    @cached_property
    def judgments(self) -> NDArray[np.int64]:
        """Number of judgments of each query."""
        total = np.concatenate(([0], np.cumsum(self.count, dtype=np.int64)))
        return read_only(np.asarray(np.diff(total[self.start]), np.int64))

    @property
    def work(self) -> Floats:
        """About how many pairs the judgments of each query make."""
        if self.list_start is None:
            return self.groups.sizes.astype(np.float64)
        pairs = np.concatenate(([0.0], np.cumsum(self.lists.sizes.astype(np.float64) ** 2 / 2)))
        return np.asarray(np.diff(pairs[self.start]), np.float64)

    def summary(self) -> dict[str, Any]:
        """Numbers a person wants to see first.

        >>> Preferences.from_comparisons(["x", "y"], ["y", "z"]).summary()["items"]
        3
        """
        facts: dict[str, Any] = {
            "kind": self.kind,
            "queries": len(self.queries),
            "items": len(self.items),
            "judgments": len(self),
            "distinct": self.distinct,
        }
        if self.kind == "comparisons":
            facts["ties"] = 0 if self.tie is None else int(self.count[self.tie].sum(dtype=np.int64))
        if self.list_start is not None:
            facts["entries"] = exact_sum(self.count, self.lists.sizes)
        if self.clusters is not None:
            facts["clusters"] = len(self.clusters)
        if len(self.declared):
            facts["never judged"] = len(self.declared)
        return facts

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the judgments: what was noted when they were read, and labels that look alike.

        >>> Preferences.from_comparisons(["a", "b"], ["b", " b"]).notes
        ("2 items differ from others only in white space and are kept apart: ' b' and 'b'",)
        """
        named = (("items", self.items), ("queries", self.queries), ("clusters", self.clusters))
        return (*self.told, *(note for what, labels in named if labels for note in look_alikes(labels, what)))

    def __repr__(self) -> str:
        return f"Preferences({self.facts})"

    @property
    def facts(self) -> str:
        """The summary in one line."""
        return ", ".join(
            counted(value, name) if isinstance(value, int) else str(value) for name, value in self.summary().items()
        )

    # -- the algebra ---------------------------------------------------------------------------------------------
    @classmethod
    def empty(cls) -> Preferences:
        """No judgments: neutral for ``+``."""
        return cls()

    def __add__(self, other: object) -> Preferences:
        if not isinstance(other, Preferences):
            return NotImplemented
        if self.kind is None:
            return other
        if other.kind is None:
            return self
        return merge(self, other)

    def __radd__(self, other: object) -> Preferences:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preferences):
            return NotImplemented
        same = self.kind == other.kind and self.queries == other.queries and self.items == other.items
        if not (same and self.covariate_names == other.covariate_names and self.clusters == other.clusters):
            return False
        return all(identical(getattr(self, name), getattr(other, name)) for name in ARRAYS)

    __hash__ = None  # type: ignore[assignment]

    def select(self, queries: Iterable[Any]) -> Preferences:
        """Return the preferences of these queries only (labels); an unknown label is an error."""
        if isinstance(queries, str | bytes) or not isinstance(queries, Iterable) or getattr(queries, "ndim", 1) != 1:
            raise UsageError(f"select takes a list of queries, not {type(queries).__name__}")
        wanted = list(queries)
        codes = self.queries.codes_of(wanted) if wanted else np.zeros(0, np.int32)
        if (codes < 0).any():
            unknown = [label for label, code in zip(wanted, codes, strict=True) if code < 0]
            raise UsageError(f"unknown query {few(unknown)}; there are {len(self.queries):,}: {few(self.queries)}")
        chosen = np.zeros(len(self.queries), bool)
        chosen[codes] = True
        rows = np.flatnonzero(chosen[self.query])
        return keep(self, rows, self.count[rows], self.declared[chosen[self.declared[:, 0]]])

    def pool(self) -> Preferences:
        """Return the same judgments as those of one query.

        >>> votes = Preferences.from_comparisons(["x", "x"], ["y", "y"], query=["p", "q"])
        >>> len(votes.queries), len(votes.pool().queries), votes.pool().distinct
        (2, 1, 1)
        """
        return pool(self) if self.kind else self

    def folds(self, n: int, *, seed: int = 0) -> list[Preferences]:
        """Split the judgments at random into n parts whose sum is the whole, query by query as even as can be.

        Judgments are split, never the edges of one; the deal of a query depends on its label and the seed alone.

        >>> votes = Preferences.from_comparisons(["x"] * 10, ["y"] * 10)
        >>> parts = votes.folds(3)
        >>> sorted(len(part) for part in parts), sum(parts) == votes
        ([3, 3, 4], True)
        """
        n = whole_number(n, "the number of folds", most=1_000_000)
        shares = deal(self.start, self.count, label_keys(self.queries, seed), n)
        return [keep(self, np.flatnonzero(share), share[share > 0], self.declared) for share in shares]

    # -- from columns in memory ----------------------------------------------------------------------------------
    @classmethod
    def from_comparisons(
        cls,
        winner: Any,
        loser: Any,
        query: Any = None,
        weight: Any = None,
        *,
        tie: Any = None,
        count: Any = None,
        cluster: Any = None,
        covariates: Mapping[str, Any] | None = None,
    ) -> Preferences:
        """Count comparisons given as columns, one row each: ``winner`` was preferred to ``loser``.

        ``tie`` (true or false) marks rows in which the two tied; ``weight`` > 0 is the strength of the edge, ``count``
        the integer number of times the row was seen; ``covariates`` are given as winner minus loser. Columns may be
        lists, NumPy, pandas, polars or Arrow. Errors: InputError naming the rows.
        """
        clean = clean_comparisons(
            winner, loser, query=query, weight=weight, tie=tie, count=count, cluster=cluster, covariates=covariates
        )
        return counted_comparisons(**clean) if clean else cls.empty()

    @classmethod
    def from_selections(
        cls,
        query: Any,
        session: Any,
        position: Any,
        item: Any,
        clicked: Any,
        *,
        clicks: str = "raise",
        cluster: Any = None,
    ) -> Preferences:
        """Count shown lists with at most one click; one row per list and position (1 = top).

        ``clicks`` says what to do with lists that have more: raise, take the first or the last, or skip the list.
        """
        clean = clean_selections(query, session, position, item, clicked, clicks=clicks, cluster=cluster)
        return counted_lists(**clean) if clean else cls.empty()

    @classmethod
    def from_choices(cls, query: Any, session: Any, item: Any, chosen: Any, *, clicks: str = "raise") -> Preferences:
        """Count choices from unordered sets; one row per set and item."""
        clean = clean_selections(query, session, None, item, chosen, clicks=clicks)
        return counted_lists(**clean) if clean else cls.empty()

    @classmethod
    def from_orders(cls, query: Any, judgment: Any, item: Any, rank: Any, *, cluster: Any = None) -> Preferences:
        """Count rankings; one row per ranking and item, rank 1 is best, equal ranks are tied, missing is no opinion."""
        clean = clean_orders(query, judgment, item, rank, cluster=cluster)
        return counted_lists(**clean) if clean else cls.empty()

    @classmethod
    def from_ratings(cls, query: Any, item: Any, rating: Any, judgment: Any = None) -> Preferences:
        """Count ratings; one judgment holds all ratings of a query (or of a query and ``judgment``)."""
        clean = clean_ratings(query, item, rating, judgment=judgment)
        return counted_lists(**clean) if clean else cls.empty()


def counted_comparisons(
    winner: Any,
    loser: Any,
    *,
    query: Any = None,
    tie: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
    count: NDArray[np.integer[Any]] | None = None,
    cluster: Any = None,
    covariates: Mapping[str, Floats] | None = None,
    declared: tuple[Any, Any] | None = None,
) -> Preferences:
    """Build Preferences from clean comparisons (checked by ``judgments``), counting equal ones together."""
    items, (winners, losers) = Labels.encode_all(winner, loser)
    rows = len(winners)
    queries, query_codes = encode_query(query, rows)
    clusters, cluster_codes = (None, None) if cluster is None else Labels.encode(cluster)
    names = tuple(sorted(covariates or {}))
    part = Preferences(
        kind="comparisons",
        queries=queries,
        items=items,
        winner=winners,
        loser=losers,
        tie=tie,
        weight=weight,
        covariates=np.column_stack([covariates[name] for name in names]) if names and covariates else None,
        covariate_names=names,
        cluster=cluster_codes,
        clusters=clusters,
    )
    counted = count_comparisons(part, query_codes, count)
    return declare(counted, declared)


def counted_lists(
    kind: str,
    offsets: Offsets,
    item: Any,
    value: Floats,
    *,
    query: Any = None,
    count: NDArray[np.integer[Any]] | None = None,
    cluster: Any = None,
    declared: tuple[Any, Any] | None = None,
) -> Preferences:
    """Build Preferences from clean lists (checked by ``judgments``), counting equal ones together."""
    items, codes = Labels.encode(item)
    queries, query_codes = encode_query(query, len(offsets) - 1)
    clusters, cluster_codes = (None, None) if cluster is None else Labels.encode(cluster)
    part = Preferences(
        kind=kind,
        queries=queries,
        items=items,
        list_start=np.asarray(offsets, np.int64),
        list_item=codes,
        list_value=np.asarray(value, np.float64),
        cluster=cluster_codes,
        clusters=clusters,
    )
    counted = count_lists(part, query_codes, count)
    return declare(counted, declared)
