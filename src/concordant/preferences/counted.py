"""The columns that all judgments share, and what is done to them whole: count, merge, keep, declare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError, did_you_mean, few
from concordant.preferences.counts import Integers, exact_sum, narrow, read_only, refuse_beyond
from concordant.preferences.labels import Labels, encode_query
from concordant.preferences.ragged import Grouped, Ragged

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]
"""(query, item) codes, shape (pairs, 2)."""
C = TypeVar("C", bound="Counted")
APART = "cannot merge preferences of which only one has clusters, or that have other covariates"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Counted(Grouped):
    """Distinct judgments with their counts, in columns; those of one type of judgment stand in its own class."""

    kind: str | None = None
    queries: Labels = field(default_factory=Labels.empty)
    items: Labels = field(default_factory=Labels.empty)
    start: Offsets = field(default_factory=lambda: np.zeros(1, np.int64))
    """Judgments of query q are start[q]:start[q + 1]."""
    count: Integers = field(default_factory=lambda: np.zeros(0, np.int32))
    """How many times each distinct judgment was made, int32 or int64."""
    cluster: Ints | None = None
    clusters: Labels | None = None
    cluster_columns: tuple[str, ...] = ()
    """Names of what judgments depend on, where it is more than one thing: the clusters are then its cells."""
    declared: Pairs = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Items that are known for a query but in none of its judgments, sorted."""
    told: tuple[str, ...] = field(default=(), compare=False)
    """What was noted when the log was read; it is no part of what is compared."""

    item_columns: ClassVar[tuple[str, ...]] = ()
    """The columns that hold item codes."""

    def __post_init__(self) -> None:
        for name, column in list(vars(self).items()):
            if isinstance(column, np.ndarray):
                object.__setattr__(self, name, read_only(column))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({one.name: state[one.name] for one in fields(self)})  # without what was cached
        self.__post_init__()

    # -- what comparisons and lists answer by themselves ---------------------------------------------------------
    @property
    def work(self) -> Floats:
        """About how many pairs the judgments of each query make."""
        return self.groups.sizes.astype(np.float64)

    @property
    def weighted(self) -> bool:
        """Whether edges of judgments differ in strength."""
        return False

    @property
    def tied(self) -> bool:
        """Whether items tie in a judgment."""
        return False

    @property
    def covariate_names(self) -> tuple[str, ...]:
        return ()

    @property
    def _entry_query(self) -> Ints:
        """The query of each entry of the item columns."""
        return self.query

    def _taken(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Columns of some of the judgments."""
        return {}

    def _joined(self, other: Self, ours: Ints, theirs: Ints) -> dict[str, Any]:
        """Columns of both, item codes mapped to new ones."""
        return {}

    def _distinct(self, query: Ints, count: Integers | None) -> tuple[NDArray[Any], Integers, dict[str, Any]]:
        """Query and count of each distinct judgment among raw ones, in order, and the columns."""
        return query, np.zeros(0, np.int64), {}

    @property
    def distinct(self) -> int:
        """Number of distinct judgments."""
        return len(self.count)

    @cached_property
    def query(self) -> Ints:
        """Query code of each distinct judgment."""
        return read_only(self.groups.spread(np.arange(len(self.queries), dtype=np.int32)))

    @cached_property
    def cluster_codes(self) -> tuple[Ints, ...]:
        """Of each of ``clusters``: codes of what it is made of, an array for each of the ``cluster_columns``."""
        if self.clusters is None:
            return ()
        if not self.cluster_columns:
            return (read_only(np.arange(len(self.clusters), dtype=np.int32)),)
        cells = [json.loads(label) for label in self.clusters.tolist()]
        return tuple(read_only(Labels.encode(list(labels))[1]) for labels in zip(*cells, strict=True))

    @cached_property
    def cluster_ways(self) -> tuple[Ints, ...]:
        """Codes of what each distinct judgment depends on, an array for each of the ``cluster_columns``."""
        return () if self.cluster is None else tuple(read_only(codes[self.cluster]) for codes in self.cluster_codes)

    def by_cluster(self, name: str, *more: str) -> Self:
        """Return the same judgments, depending on each other by one of the ``cluster_columns`` only, or by several.

        >>> from concordant.preferences.preferences import Preferences
        >>> who = {"judge": ["a", "b"], "prompt": [1, 1]}
        >>> votes = Preferences.from_comparisons(["x", "x"], ["y", "z"], cluster=who)
        >>> votes.by_cluster("prompt").clusters.tolist()
        [1]
        """
        wrong = [one for one in (name, *more) if one not in self.cluster_columns]
        if wrong or self.clusters is None or self.cluster is None:
            known = self.cluster_columns
            raise UsageError(f"clusters are {few(known) or 'not named'}: {did_you_mean((*wrong, name)[0], known)}")
        ways = [self.cluster_columns.index(one) for one in (name, *more)]
        cells = [json.loads(label) for label in self.clusters.tolist()]
        found = [
            json.dumps([cell[way] for way in ways], ensure_ascii=False) if more else cell[ways[0]] for cell in cells
        ]
        labels, codes = Labels.encode(found)
        columns = (name, *more) if more else ()
        part = replace(self, clusters=labels, cluster=codes[self.cluster], cluster_columns=columns)
        return recounted(part, self.query, self.count)

    @cached_property
    def judgments(self) -> NDArray[np.int64]:
        """Number of judgments of each query."""
        total = np.concatenate(([0], np.cumsum(self.count, dtype=np.int64)))
        return read_only(np.asarray(np.diff(total[self.start]), np.int64))

    @cached_property
    def member_groups(self) -> Ragged:
        """The members of each query."""
        return Ragged(self.members[0])

    @cached_property
    def members(self) -> tuple[Offsets, Ints]:
        """The items of each query: offsets (queries + 1) and item codes in ascending order."""
        start, item = self.members_with(self.declared)
        return read_only(start), read_only(item)

    def members_with(self, declared: Pairs) -> tuple[Offsets, Ints]:
        """Return the members if just these items were declared."""
        queries, width, entry_query = len(self.queries), max(len(self.items), 1), self._entry_query
        columns = [getattr(self, name) for name in self.item_columns]
        span = queries * width
        extra = declared[:, 0] * width + declared[:, 1]
        if span <= max(8 * len(entry_query), 1 << 24):
            present = np.zeros(span, bool)
            block = 1 << 22  # bounded memory: the keys of a large log are never all there at once
            for begin in range(0, len(entry_query), block):
                base = entry_query[begin : begin + block].astype(np.int64) * width
                for column in columns:
                    present[base + column[begin : begin + block]] = True
            present[extra] = True
            keys = np.flatnonzero(present)
        else:
            base = entry_query.astype(np.int64) * width
            keys = np.concatenate([*(base + column for column in columns), extra])
            keys.sort()
            keys = keys[Ragged.runs(keys).first]
        return Ragged.counted(keys // width, queries).start, (keys % width).astype(np.int32)


def crossed_said(numbers: Mapping[str, int]) -> str:
    """Say how many clusters there are of each kind: 124 clusters by worker and 13 by prompt."""
    (name, first), *more = numbers.items()
    return " and ".join([f"{first:,} clusters by {name}", *(f"{number:,} by {other}" for other, number in more)])


def refuse_crossed(prefs: Counted, what: str) -> None:
    """Raise UsageError where judgments depend on each other in several ways and one can be heeded (``by_cluster``)."""
    refuse_several(prefs.cluster_columns, what)


def refuse_several(columns: Sequence[str], what: str) -> None:
    """Raise UsageError for several columns of clusters where one can be heeded."""
    if len(columns) > 1:
        raise UsageError(
            f"{what} heeds one column of clusters, not {few(columns)} at once: take one (",
            Setting("cluster", columns[0]),
            ")",
        )


def undeclared(prefs: Counted, known: Pairs) -> Pairs:
    """Return the known pairs that no judgment touches, sorted."""
    if len(known) == 0:
        return np.zeros((0, 2), np.int64)
    width = max(len(prefs.items), 1)
    start, item = prefs.members_with(known[:0])
    judged = Ragged(start).owner * width + item
    left: Pairs = np.setdiff1d(known[:, 0] * width + known[:, 1], judged)
    return np.column_stack([left // width, left % width])


def recounted(part: C, query: Ints, count: Integers | None) -> C:
    """Put raw rows into canonical order, equal ones once. Errors: InputError where counts leave 64 bits in sum."""
    if count is not None:
        refuse_beyond(exact_sum(count))
    query, amount, columns = part._distinct(query, count)
    return replace(part, start=Ragged.counted(query, len(part.queries)).start, count=narrow(amount), **columns)


def merged(a: C, b: Counted) -> C:
    """Return the judgments of both. Errors: UsageError for other kinds, clusters or covariates."""
    if not isinstance(b, type(a)) or a.kind != b.kind:
        raise UsageError(f"cannot merge {a.kind} with {b.kind}; turn one into the other's kind first")
    if (a.clusters is None) != (b.clusters is None) or a.cluster_columns != b.cluster_columns:
        raise UsageError(APART)
    queries, query_a, query_b = a.queries.union(b.queries)
    items, item_a, item_b = a.items.union(b.items)
    changes: dict[str, Any] = {"queries": queries, "items": items, "told": tuple(dict.fromkeys((*a.told, *b.told)))}
    if a.clusters is not None and b.clusters is not None and a.cluster is not None and b.cluster is not None:
        changes["clusters"], cluster_a, cluster_b = a.clusters.union(b.clusters)
        changes["cluster"] = np.concatenate([cluster_a[a.cluster], cluster_b[b.cluster]])
    query = np.concatenate([query_a[a.query], query_b[b.query]])
    part = replace(a, declared=a.declared[:0], **changes, **a._joined(b, item_a, item_b))
    made = recounted(part, query, np.concatenate([a.count, b.count]))
    known = [
        np.column_stack([queries[one.declared[:, 0]], items[one.declared[:, 1]]])
        for one, queries, items in ((a, query_a, item_a), (b, query_b, item_b))
    ]
    return replace(made, declared=undeclared(made, np.concatenate(known).astype(np.int64)))


def with_integers(prefs: C, *what: str) -> C:
    """Return the same judgments with ``items``, ``queries`` or ``clusters`` as integers, those that are written so."""
    changes: dict[str, Any] = {}
    codes: dict[str, Ints] = {}
    for name in what:
        labels: Labels | None = getattr(prefs, name)
        found = None if labels is None else labels.as_integers()
        if found is not None:
            changes[name], codes[name] = found
    if not codes:
        return prefs
    item, query = (codes.get(name, np.arange(len(getattr(prefs, name)))) for name in ("items", "queries"))
    if prefs.cluster is not None and "clusters" in codes:
        changes["cluster"] = codes["clusters"][prefs.cluster]
    changes |= {name: item[getattr(prefs, name)].astype(np.int32) for name in prefs.item_columns}
    part = replace(prefs, declared=prefs.declared[:0], **changes)
    made = recounted(part, query[prefs.query].astype(np.int32), prefs.count)
    known = np.column_stack([query[prefs.declared[:, 0]], item[prefs.declared[:, 1]]]).astype(np.int64)
    return replace(made, declared=undeclared(made, known))


def kept(prefs: C, rows: NDArray[np.intp], count: Integers, declared: Pairs) -> C:
    """Keep some judgments with new counts; labels that are no longer used are forgotten (items stay if declared)."""
    part = replace(
        prefs,
        start=Ragged.counted(prefs.query[rows], len(prefs.queries)).start,
        count=narrow(np.asarray(count, np.int64)),
        cluster=None if prefs.cluster is None else prefs.cluster[rows],
        **prefs._taken(rows),
    )
    declared = undeclared(part, declared)
    judged = part.groups.sizes > 0
    judged[declared[:, 0]] = True
    used = np.zeros(len(part.items), bool)
    for name in part.item_columns:
        used[getattr(part, name)] = True
    used[declared[:, 1]] = True
    queries, query_map = part.queries.only(judged)
    items, item_map = part.items.only(used)
    changes: dict[str, Any] = {name: item_map[getattr(part, name)] for name in part.item_columns}
    if part.cluster is not None and part.clusters is not None:
        seen = np.zeros(len(part.clusters), bool)
        seen[part.cluster] = True
        changes["clusters"], cluster_map = part.clusters.only(seen)
        changes["cluster"] = cluster_map[part.cluster]
    return replace(
        part,
        queries=queries,
        items=items,
        start=np.concatenate([part.start[:-1][judged], part.start[-1:]]),
        declared=np.column_stack([query_map[declared[:, 0]], item_map[declared[:, 1]]]).astype(np.int64),
        **changes,
    )


def declare(prefs: C, declared: tuple[Any, Any] | None) -> C:
    """Add items that are known for a query though no judgment may touch them; columns of queries and items."""
    if declared is None:
        return prefs
    extra_items, item_codes = Labels.encode(declared[1])
    extra_queries, query_codes = encode_query(declared[0], len(item_codes))
    items, old_items, new_items = prefs.items.union(extra_items)
    queries, old_queries, new_queries = prefs.queries.union(extra_queries)
    start = np.zeros(len(queries) + 1, np.int64)
    start[1:][old_queries] = prefs.groups.sizes
    changes = {name: old_items[getattr(prefs, name)] for name in prefs.item_columns}
    prefs = replace(prefs, items=items, queries=queries, start=np.cumsum(start), **changes)
    known = np.column_stack([new_queries[query_codes], new_items[item_codes]]).astype(np.int64)
    return replace(prefs, declared=undeclared(prefs, known))
