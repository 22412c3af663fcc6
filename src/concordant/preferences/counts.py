"""Equal rows, counted: the one operation that preferences and graphs are made of.

The columns that hold counted judgments, and what is done to them whole: count, merge, keep, forget, declare.

``Preferences`` adds the algebra that users see. Everything here returns a canonical value: labels sorted, judgments in
one order, equal ones once, so that equal content has equal bits however it came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.preferences.labels import Labels
from concordant.preferences.ragged import Grouped, Ragged, canonical_lists

__all__ = [
    "ARRAYS",
    "BITS",
    "Counted",
    "Key",
    "MOST",
    "bit_width",
    "count_comparisons",
    "count_lists",
    "declare",
    "encode_query",
    "exact_bincount",
    "exact_sum",
    "float_codes",
    "identical",
    "keep",
    "merge",
    "pack",
    "pool",
    "read_only",
    "refuse_beyond",
    "tally",
    "unpack",
]


Key = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
T = TypeVar("T", bound=np.generic)

BITS = 62
"""A key of more bits does not fit into one integer."""
BLOCK = 1 << 22
MOST = (1 << 63) - 1
"""The most judgments that there can be: what 64 bits with a sign hold, and what ``len`` can say."""


def read_only(values: NDArray[T]) -> NDArray[T]:
    """Return an array that cannot be written, over the same memory; the one given stays as it is.

    >>> read_only(np.zeros(1)).flags.writeable
    False
    """
    view = values.view()
    view.flags.writeable = False
    return view


def exact_sum(values: Integers, times: Integers | None = None) -> int:
    """Return the sum of integers, each times another one where these are given, however large it is.

    >>> exact_sum(np.array([1 << 62, 1 << 62])) == 1 << 63, exact_sum(np.array([1 << 62, 1]), np.array([4, 3]))
    (True, 18446744073709551619)
    """
    about = values.sum(dtype=np.float64) if times is None else (values.astype(np.float64) * times).sum()
    if about < 1 << 62:
        return int(values.sum(dtype=np.int64) if times is None else (values.astype(np.int64) * times).sum())
    total = 0
    for begin in range(0, len(values), BLOCK):
        part = values[begin : begin + BLOCK].astype(object)
        total += int(sum(part if times is None else part * times[begin : begin + BLOCK].astype(object)))
    return total


def exact_bincount(place: NDArray[np.integer[Any]], count: Integers, size: int) -> NDArray[np.int64]:
    """Return the sum of the counts at each place 0 … size − 1, exactly where float64 would round.

    >>> exact_bincount(np.array([0, 0]), np.array([1 << 60, 1]), 2).tolist() == [(1 << 60) + 1, 0]
    True
    """
    if count.sum(dtype=np.float64) < 1 << 52:
        return np.bincount(place, count, size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, place, count)
    return total


def refuse_beyond(total: int, what: str = "the counts") -> None:
    """Raise InputError where counts add up to more than 64 bits with a sign can hold."""
    if total > MOST:
        raise InputError(f"{what} add up to {total:,}; at most {MOST:,} (2^63 − 1) can be counted")


def bit_width(size: int) -> int:
    """Bits that codes 0 … size − 1 need."""
    return max(int(size) - 1, 0).bit_length()


def pack(columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Key:
    """Return one integer per row that sorts and compares as the row of columns does.

    Column c holds codes 0 … sizes[c] − 1 and takes as many bits as these need; together at most ``BITS``.

    >>> pack([np.array([1, 0]), np.array([2, 3])], [2, 4]).tolist()
    [6, 3]
    """
    key = np.array(columns[0], np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if (width := bit_width(size)) > 0:
            key <<= width
            key |= column
    return key


def unpack(key: Key, sizes: Sequence[int]) -> list[NDArray[np.int32]]:
    """Return the columns that were packed, block by block so that no wide copy is made.

    >>> [column.tolist() for column in unpack(np.array([6, 3]), [2, 4])]
    [[1, 0], [2, 3]]
    """
    widths = [bit_width(size) for size in sizes]
    columns = [np.empty(len(key), np.int32) for _ in sizes]
    for begin in range(0, len(key), BLOCK):
        part = key[begin : begin + BLOCK]
        shift = 0
        for column, width in zip(columns[::-1], widths[::-1], strict=True):
            column[begin : begin + BLOCK] = (part >> shift) & ((1 << width) - 1)
            shift += width
    return columns


def float_codes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct values in order (−0 counts as 0) and the code of each."""
    distinct, codes = np.unique(values + 0.0, return_inverse=True)
    return distinct, codes.astype(np.int64)


def tally(key: Key, bits: int, count: Integers | None) -> tuple[Key, Integers]:
    """Return the distinct keys (of at most ``bits`` bits) in ascending order and the sum of the counts of each.

    Without counts every row counts 1. ``key`` is overwritten. Three ways, the same answer: a table when few keys are
    possible, an in-place sort of key and count packed into one integer when both fit, an argsort otherwise.
    """
    if len(key) == 0:
        return key, np.zeros(0, np.int64)
    total = len(key) if count is None else int(count.sum(dtype=np.float64))
    if 1 << bits <= max(len(key) // 2, 1 << 16) and total < 1 << 52:
        seen = np.bincount(key, minlength=1 << bits)
        present = np.flatnonzero(seen)
        table = seen if count is None else np.bincount(key, count, 1 << bits)
        return present, table[present].astype(np.int64)
    amount: Integers
    most = 1 if count is None else int(count.max())
    width = most.bit_length() if count is not None else 0
    if bits + width < 63:
        if count is not None:
            key <<= width
            key |= count
        key.sort()
        amount = _low_bits(key, width, most) if count is not None else np.ones(len(key), np.int32)
        key >>= width
    else:
        order = np.argsort(key, kind="stable")
        key, amount = key[order], np.asarray(count, np.int64)[order]  # only with counts do bits run out
    new = np.empty(len(key), bool)
    new[0] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    if new.all():
        return key, amount
    begin = np.flatnonzero(new)
    return key[begin], np.asarray(np.add.reduceat(amount, begin, dtype=np.int64), np.int64)


def _low_bits(key: Key, width: int, most: int) -> Integers:
    kind: Any = np.int32 if most < 1 << 31 else np.int64
    amount: Integers = np.empty(len(key), kind)
    for begin in range(0, len(key), BLOCK):
        amount[begin : begin + BLOCK] = key[begin : begin + BLOCK] & ((1 << width) - 1)
    return amount


ONE_QUERY = "all"
Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]
C = TypeVar("C", bound="Counted")
ARRAYS = (
    *("start", "count", "winner", "loser", "tie", "weight", "covariates"),
    *("list_start", "list_item", "list_value", "cluster", "declared"),
)
"""Fields that are arrays: none of them can be written."""


@dataclass(frozen=True, eq=False, repr=False)
class Counted(Grouped):
    """Distinct judgments with their counts, in columns."""

    kind: str | None = None
    queries: Labels = field(default_factory=Labels.empty)
    items: Labels = field(default_factory=Labels.empty)
    start: Offsets = field(default_factory=lambda: np.zeros(1, np.int64))
    """Judgments of query q are start[q]:start[q + 1]."""
    count: Integers = field(default_factory=lambda: np.zeros(0, np.int32))
    """How many times each distinct judgment was made, int32 or int64."""
    # comparisons
    winner: Ints | None = None
    loser: Ints | None = None
    tie: NDArray[np.bool_] | None = None
    """True where the two tied (then winner < loser by code); None when nothing tied."""
    weight: Floats | None = None
    """Strength of the edge; None when all are 1."""
    covariates: Floats | None = None
    """Shape (judgments, names), winner minus loser."""
    covariate_names: tuple[str, ...] = ()
    # lists
    list_start: Offsets | None = None
    """Entries of judgment j are list_start[j]:list_start[j + 1]."""
    list_item: Ints | None = None
    list_value: Floats | None = None
    """Tier (orders, 1 = best), clicked or chosen (selections, choices), rating."""
    # either
    cluster: Ints | None = None
    clusters: Labels | None = None
    declared: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """(query, item) codes of items that are known but in no judgment, sorted."""
    told: tuple[str, ...] = ()
    """What was noted when the log was read; it is no part of what is compared."""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(column))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: state[name] for name in self.__dataclass_fields__})  # without what was cached
        self.__post_init__()

    @property
    def distinct(self) -> int:
        """Number of distinct judgments."""
        return len(self.count)

    @cached_property
    def query(self) -> Ints:
        """Query code of each distinct judgment."""
        return read_only(self.groups.spread(np.arange(len(self.queries), dtype=np.int32)))

    @cached_property
    def lists(self) -> Ragged:
        """The entries of each judgment that is a list; none of comparisons."""
        return Ragged(np.zeros(1, np.int64) if self.list_start is None else self.list_start)

    @cached_property
    def member_groups(self) -> Ragged:
        """The members of each query."""
        return Ragged(self.members[0])

    @cached_property
    def members(self) -> tuple[Offsets, Ints]:
        """The items of each query: offsets (queries + 1) and item codes in ascending order."""
        start, item = members(self)
        return read_only(start), read_only(item)


# -- counting ----------------------------------------------------------------------------------------------------
def count_comparisons(part: C, query: Ints, count: Integers | None) -> C:
    """Put raw rows into canonical order, equal ones once. Errors: InputError where counts leave 64 bits in sum."""
    if count is not None:
        refuse_beyond(exact_sum(count))
    winner, loser, tie, covariates = part.winner, part.loser, part.tie, part.covariates
    assert winner is not None and loser is not None
    if tie is not None and not tie.any():
        tie = None
    if tie is not None:
        swap = tie & (winner > loser)
        winner, loser = np.where(swap, loser, winner), np.where(swap, winner, loser)
        if covariates is not None:
            covariates = np.where(swap[:, None], -covariates, covariates)
    columns: list[NDArray[Any]] = [query, winner, loser]
    sizes = [len(part.queries), len(part.items), len(part.items)]
    floats: list[Floats] = []
    extra = [] if covariates is None else list(covariates.T)
    if part.weight is not None and (part.weight != 1.0).any():
        extra.append(part.weight)
    if tie is not None:
        columns.append(tie)
        sizes.append(2)
    if part.cluster is not None and part.clusters is not None:
        columns.append(part.cluster)
        sizes.append(len(part.clusters))
    for column in extra:
        values, codes = float_codes(column)
        floats.append(values)
        columns.append(codes)
        sizes.append(len(values))
    fixed = len(columns) - len(extra)
    key, kept, amount = _tally_rows(columns, sizes, count)
    digits: list[NDArray[Any]] = (
        list(unpack(key, sizes)) if kept is None else [np.asarray(column)[kept] for column in columns]
    )
    del columns, key
    weighted = len(extra) > len(part.covariate_names)
    real = [values[digits[fixed + i]] for i, values in enumerate(floats)]
    at = 3
    new_tie = None
    if tie is not None:
        new_tie = digits[at].astype(bool)
        at += 1
    return replace(
        part,
        start=Ragged.counted(digits[0], len(part.queries)).start,
        count=_narrow(amount),
        winner=digits[1].astype(np.int32, copy=False),
        loser=digits[2].astype(np.int32, copy=False),
        tie=new_tie,
        cluster=digits[at].astype(np.int32, copy=False) if part.cluster is not None else None,
        weight=real[-1] if weighted else None,
        covariates=np.column_stack(real[: len(part.covariate_names)]) if part.covariate_names else None,
    )


def _tally_rows(
    columns: list[NDArray[Any]], sizes: list[int], count: Integers | None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, Integers]:
    """Distinct rows in order: as packed keys, or (when they do not fit in 62 bits) as the rows that stand for them."""
    if (bits := sum(bit_width(size) for size in sizes)) <= BITS:
        distinct, amount = tally(pack(columns, sizes), bits, count)
        return distinct, None, amount
    order = np.lexsort(columns[::-1])
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for column in columns:
        ordered = np.asarray(column)[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    begin = np.flatnonzero(changed)
    each = np.ones(len(order), np.int64) if count is None else np.asarray(count, np.int64)[order]
    return np.zeros(0, np.int64), order[begin], np.add.reduceat(each, begin)


def count_lists(part: C, query: Ints, count: Integers | None) -> C:
    assert part.list_item is not None and part.list_value is not None
    if count is not None:
        refuse_beyond(exact_sum(count))
    cluster = part.cluster if part.cluster is not None else np.zeros(len(query), np.int32)
    each = np.ones(len(query), np.int64) if count is None else np.asarray(count, np.int64)
    kept, amount, lists, item, value = canonical_lists(
        str(part.kind), query, cluster, part.lists, part.list_item, part.list_value, each
    )
    return replace(
        part,
        start=Ragged.counted(query[kept], len(part.queries)).start,
        count=_narrow(amount),
        list_start=lists.start,
        list_item=item,
        list_value=value,
        cluster=part.cluster[kept] if part.cluster is not None else None,
    )


def merge(a: C, b: C) -> C:
    if a.kind != b.kind:
        raise UsageError(f"cannot merge {a.kind} with {b.kind}; turn one into the other's kind first")
    if (a.clusters is None) != (b.clusters is None) or a.covariate_names != b.covariate_names:
        raise UsageError("cannot merge preferences of which only one has clusters, or that have other covariates")
    queries, query_a, query_b = a.queries.union(b.queries)
    items, item_a, item_b = a.items.union(b.items)
    part = type(a)(kind=a.kind, queries=queries, items=items, covariate_names=a.covariate_names)
    part = replace(part, told=tuple(dict.fromkeys((*a.told, *b.told))))
    query = np.concatenate([query_a[a.query], query_b[b.query]])
    count = np.concatenate([a.count, b.count])
    if a.clusters is not None and b.clusters is not None and a.cluster is not None and b.cluster is not None:
        clusters, cluster_a, cluster_b = a.clusters.union(b.clusters)
        part = replace(part, clusters=clusters, cluster=np.concatenate([cluster_a[a.cluster], cluster_b[b.cluster]]))
    if a.kind == "comparisons":
        part = replace(
            part,
            winner=np.concatenate([item_a[a.winner], item_b[b.winner]]),
            loser=np.concatenate([item_a[a.loser], item_b[b.loser]]),
            tie=_concat(a.tie, b.tie, a.distinct, b.distinct, False),
            weight=_concat(a.weight, b.weight, a.distinct, b.distinct, 1.0),
            covariates=_concat(a.covariates, b.covariates, a.distinct, b.distinct, 0.0),
        )
        counted = count_comparisons(part, query, count)
    else:
        assert a.list_start is not None and b.list_start is not None
        part = replace(
            part,
            list_start=np.concatenate([a.list_start, b.list_start[1:] + a.list_start[-1]]),
            list_item=np.concatenate([item_a[a.list_item], item_b[b.list_item]]),
            list_value=np.concatenate([a.list_value, b.list_value]),
        )
        counted = count_lists(part, query, count)
    known = np.concatenate(
        [
            np.column_stack([query_a[a.declared[:, 0]], item_a[a.declared[:, 1]]]),
            np.column_stack([query_b[b.declared[:, 0]], item_b[b.declared[:, 1]]]),
        ]
    ).astype(np.int64)
    return replace(counted, declared=_undeclared(counted, known))


def pool(prefs: C) -> C:
    """Forget the queries: the same judgments, all of one query."""
    labels, zeros = encode_query(None, prefs.distinct)
    count = count_comparisons if prefs.kind == "comparisons" else count_lists
    pooled = count(replace(prefs, queries=labels), zeros, prefs.count)
    known = prefs.declared * np.array([0, 1])
    return replace(pooled, declared=_undeclared(pooled, known))


def keep(prefs: C, rows: NDArray[np.intp], count: Integers, declared: NDArray[np.int64]) -> C:
    """Keep some judgments with new counts; labels that are no longer used are forgotten (items stay if declared)."""
    query = prefs.query[rows]
    cluster = None if prefs.cluster is None else prefs.cluster[rows]
    part = replace(prefs, cluster=cluster, count=_narrow(np.asarray(count, np.int64)))
    if prefs.kind == "comparisons":
        assert prefs.winner is not None and prefs.loser is not None
        part = replace(
            part,
            winner=prefs.winner[rows],
            loser=prefs.loser[rows],
            tie=_none_if(None if prefs.tie is None else prefs.tie[rows], False),
            weight=_none_if(None if prefs.weight is None else prefs.weight[rows], 1.0),
            covariates=None if prefs.covariates is None else prefs.covariates[rows],
        )
    elif prefs.list_start is not None:
        assert prefs.list_item is not None and prefs.list_value is not None
        lists, entries = prefs.lists.take(rows)
        part = replace(
            part, list_start=lists.start, list_item=prefs.list_item[entries], list_value=prefs.list_value[entries]
        )
    if len(rows) == 0 and len(declared) == 0:
        return type(prefs)()
    part = replace(part, start=Ragged.counted(query, len(prefs.queries)).start, declared=declared)
    return _forget(replace(part, declared=_undeclared(part, declared)))


def _forget(prefs: C) -> C:
    """Drop labels that nothing uses, so that equal content is equal."""
    judged = prefs.groups.sizes > 0
    judged[prefs.declared[:, 0]] = True
    queries, query_map = _sub_labels(prefs.queries, judged)
    used = np.zeros(len(prefs.items), bool)
    for column in (prefs.winner, prefs.loser, prefs.list_item, prefs.declared[:, 1]):
        if column is not None:
            used[column] = True
    items, item_map = _sub_labels(prefs.items, used)
    changes: dict[str, Any] = {
        "queries": queries,
        "items": items,
        "start": np.concatenate([prefs.start[:-1][judged], prefs.start[-1:]]),
        "declared": np.column_stack([query_map[prefs.declared[:, 0]], item_map[prefs.declared[:, 1]]]).astype(np.int64),
    }
    for name in ("winner", "loser", "list_item"):
        column = getattr(prefs, name)
        if column is not None:
            changes[name] = item_map[column]
    if prefs.cluster is not None and prefs.clusters is not None:
        seen = np.zeros(len(prefs.clusters), bool)
        seen[prefs.cluster] = True
        changes["clusters"], cluster_map = _sub_labels(prefs.clusters, seen)
        changes["cluster"] = cluster_map[prefs.cluster]
    return replace(prefs, **changes)


def declare(prefs: C, declared: tuple[Any, Any] | None) -> C:
    """Add items that are known for a query though no judgment may touch them."""
    if declared is None:
        return prefs
    query, item = declared
    extra_items, item_codes = Labels.encode(item)
    extra_queries, query_codes = encode_query(query, len(item_codes))
    items, old_items, new_items = prefs.items.union(extra_items)
    queries, old_queries, new_queries = prefs.queries.union(extra_queries)
    start = np.zeros(len(queries) + 1, np.int64)
    start[1:][old_queries] = prefs.groups.sizes
    changes: dict[str, Any] = {"items": items, "queries": queries, "start": np.cumsum(start)}
    for name in ("winner", "loser", "list_item"):
        column = getattr(prefs, name)
        if column is not None:
            changes[name] = old_items[column]
    prefs = replace(prefs, **changes)
    known = np.column_stack([new_queries[query_codes], new_items[item_codes]]).astype(np.int64)
    return replace(prefs, declared=_undeclared(prefs, known))


def _undeclared(prefs: Counted, known: NDArray[np.int64]) -> NDArray[np.int64]:
    """The known (query, item) pairs that no judgment touches, sorted."""
    if len(known) == 0:
        return np.zeros((0, 2), np.int64)
    width = max(len(prefs.items), 1)
    start, item = members(replace(prefs, declared=np.zeros((0, 2), np.int64)))
    judged = Ragged(start).owner * width + item
    left: NDArray[np.int64] = np.setdiff1d(known[:, 0] * width + known[:, 1], judged)
    return np.column_stack([left // width, left % width])


def members(prefs: Counted) -> tuple[Offsets, Ints]:
    queries, width = len(prefs.queries), max(len(prefs.items), 1)
    entry_query = prefs.query
    if prefs.list_start is not None:
        entry_query = prefs.lists.spread(prefs.query)
        columns = [prefs.list_item]
    else:
        columns = [prefs.winner, prefs.loser]
    span = queries * width
    extra = prefs.declared[:, 0] * width + prefs.declared[:, 1]
    if span <= max(8 * len(entry_query), 1 << 24):
        present = np.zeros(span, bool)
        block = 1 << 22  # bounded memory: the keys of a large log are never all there at once
        for begin in range(0, len(entry_query), block):
            base = entry_query[begin : begin + block].astype(np.int64) * width
            for column in columns:
                if column is not None:
                    present[base + column[begin : begin + block]] = True
        present[extra] = True
        keys = np.flatnonzero(present)
    else:
        base = entry_query.astype(np.int64) * width
        keys = np.unique(np.concatenate([*(base + column for column in columns if column is not None), extra]))
    return Ragged.counted(keys // width, queries).start, (keys % width).astype(np.int32)


# -- small pieces ------------------------------------------------------------------------------------------------
def encode_query(query: Any, rows: int) -> tuple[Labels, Ints]:
    if query is None:
        labels = Labels(pa.array([ONE_QUERY], pa.large_string())) if rows else Labels.empty()
        return labels, np.zeros(rows, np.int32)
    return Labels.encode(query)


def _narrow(count: Integers) -> Integers:
    """Counts as int32 when they all fit; a function of the values alone, so equal content has equal bits."""
    small = len(count) == 0 or int(count.max()) < 1 << 31
    return count.astype(np.int32 if small else np.int64, copy=False)


def _sub_labels(labels: Labels, keep: NDArray[np.bool_]) -> tuple[Labels, Ints]:
    mapping = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    return Labels(labels.values.filter(pa.array(keep))), mapping


def _concat(a: Any, b: Any, rows_a: int, rows_b: int, fill: Any) -> Any:
    if a is None and b is None:
        return None
    dtype = (a if a is not None else b).dtype
    left = np.full(rows_a, fill, dtype) if a is None else a
    right = np.full(rows_b, fill, dtype) if b is None else b
    return np.concatenate([left, right])


def _none_if(column: Any, neutral: Any) -> Any:
    return None if column is None or bool((column == neutral).all()) else column


def identical(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(a.shape == b.shape and np.array_equal(a, b))
