"""Preferences: the counts of the distinct judgments of each query, which are comparisons or lists.

A judgment is one draw: one comparison, one shown list with its click, one ranking, one person's ratings. Structure
functions are symmetric in the judgments, so the counts of the distinct ones are all that is needed (method: AoS §2).
Every value is canonical: labels sorted, judgments in one order, equal ones once, so that equal content has equal bits
however it came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, counted, few, whole_number
from concordant.preferences.counted import APART, Counted, crossed_said, declare, kept, merged, recounted, undeclared
from concordant.preferences.counts import Integers, exact_sum, float_codes, joined, none_if, same, tally_rows
from concordant.preferences.judgments import clean_comparisons, clean_lists
from concordant.preferences.labels import Labels, encode_query, look_alikes
from concordant.preferences.lists import said_of_lists
from concordant.preferences.ragged import Ragged, canonical_lists, shown_at
from concordant.preferences.sampling import deal, label_keys

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]


def facts_said(facts: Mapping[str, Any]) -> str:
    """Return a summary in one line.

    >>> facts_said({"kind": "comparisons", "queries": 1, "items": 3})
    'comparisons, 1 query, 3 items'
    """
    told = {name: crossed_said(value) for name, value in facts.items() if isinstance(value, dict) and value}
    told |= {name: counted(value, name) for name, value in facts.items() if isinstance(value, int)}
    return ", ".join(told.get(name, str(value)) for name, value in facts.items() if value != {})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Preferences(Counted):
    """The counts of the distinct judgments of each query; immutable, columnar, with ``+``, ``==`` and ``len``.

    Those with judgments are ``Comparisons`` or ``Lists``; ``Preferences`` itself is empty and neutral for ``+``. Every
    partition of a log, merged in any order, gives equal bits.

    >>> a = Preferences.from_comparisons(["x", "y"], ["y", "x"])
    >>> b = Preferences.from_comparisons(["x"], ["y"])
    >>> a + b == b + a, len(a + b), (a + b).distinct
    (True, 3, 2)
    """

    # -- what there is -------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        """Number of judgments, each as often as it was made."""
        return int(self.count.sum(dtype=np.int64))

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
        if isinstance(self, Comparisons):
            facts["ties"] = 0 if self.tie is None else int(self.count[self.tie].sum(dtype=np.int64))
        if isinstance(self, Lists):
            facts["entries"] = exact_sum(self.count, self.lists.sizes)
        if self.clusters is not None:
            if self.cluster_columns:
                numbers = (len(np.unique(codes)) for codes in self.cluster_ways)
                facts["clusters"] = dict(zip(self.cluster_columns, numbers, strict=True))
            else:
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
        return self.facts_but()

    def facts_but(self, *columns: str) -> str:
        """The summary in one line, without columns that divide judgments or say more of them, and are no clusters."""
        facts = self.summary()
        if isinstance(numbers := facts.get("clusters"), dict):
            facts["clusters"] = {name: number for name, number in numbers.items() if name not in columns}
        elif columns:
            facts.pop("clusters", None)
        return facts_said(facts)

    # -- the algebra ---------------------------------------------------------------------------------------------
    @classmethod
    def empty(cls) -> Preferences:
        """No judgments: neutral for ``+``."""
        return Preferences()

    def __add__(self, other: object) -> Preferences:
        if not isinstance(other, Preferences):
            return NotImplemented
        if self.kind is None:
            return other
        if other.kind is None:
            return self
        return merged(self, other)

    def __radd__(self, other: object) -> Preferences:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preferences):
            return NotImplemented
        return type(self) is type(other) and all(
            same(getattr(self, one.name), getattr(other, one.name)) for one in fields(self) if one.compare
        )

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
        if self.kind is None:
            return self
        labels, zeros = encode_query(None, self.distinct)
        pooled = recounted(replace(self, queries=labels), zeros, self.count)
        return replace(pooled, declared=undeclared(pooled, self.declared * np.array([0, 1])))

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
        time: Any = None,
    ) -> Preferences:
        """Count comparisons given as columns, one row each: ``winner`` was preferred to ``loser``.

        Columns may be lists, NumPy, pandas, polars or Arrow. Errors: InputError naming the rows.

        Parameters
        ----------
        winner, loser : labels of the two items.
        query : label of the query; None, there is one query.
        weight : strength of the edge, > 0.
        tie : true in rows in which the two tied.
        count : integer number of times that the row was seen.
        cluster : label of who judged; a mapping of names to such columns where judgments depend on each other in more
            than one way (who judged, what was asked).
        covariates : columns by their names, each winner minus loser.
        time : when it was judged: dates or instants (ISO 8601 where texts), or numbers.
        """
        more = {"tie": tie, "count": count, "cluster": cluster, "covariates": covariates, "time": time}
        clean = clean_comparisons(winner, loser, query=query, weight=weight, **more)
        made = counted_comparisons(**clean) if clean else cls.empty()
        return with_cluster_columns(made, list(cluster) if isinstance(cluster, Mapping) else ())

    @classmethod
    def from_selections(
        cls,
        query: Any,
        session: Any,
        position: Any,
        item: Any,
        clicked: Any,
        *,
        clicks: str = "all",
        cluster: Any = None,
    ) -> Preferences:
        """Count shown lists and their clicks, given as columns, one row per list and position.

        Parameters
        ----------
        query, session : labels; together they tell the lists apart.
        position : 1 = top.
        item : label of the item that was shown.
        clicked : true where it was clicked.
        clicks : of lists with more than one click 'all', the 'first', the 'last', 'skip' (the list) or 'raise'.
        cluster : label of who clicked.
        """
        kind = "choices" if position is None else "selections"
        keys = {"query": query, "session": session, "cluster": cluster}
        return _lists(kind, keys, {"position": position, "item": item, "clicked": clicked}, clicks)

    @classmethod
    def from_choices(cls, query: Any, session: Any, item: Any, chosen: Any, *, clicks: str = "all") -> Preferences:
        """Count choices from unordered sets; one row per set and item."""
        return _lists("choices", {"query": query, "session": session}, {"item": item, "clicked": chosen}, clicks)

    @classmethod
    def from_orders(
        cls, query: Any, judgment: Any, item: Any, rank: Any, *, cluster: Any = None, unranked: str = "missing"
    ) -> Preferences:
        """Count rankings; one row per ranking and item, rank 1 is best, equal ranks are tied.

        Parameters
        ----------
        query, judgment : labels; together they tell the rankings apart. No query: there is one.
        item : label of the item.
        rank : 1 = best.
        cluster : label of who ranked.
        unranked : what it means that a ranking leaves out items of its query: 'missing' (no opinion) or 'last' (below
            all that it ranks, as on a ballot; all rankings of the query have to be there already).
        """
        keys = {"query": query, "judgment": judgment, "cluster": cluster}
        made = _lists("orders", keys, {"item": item, "rank": rank})
        check_unranked(unranked)
        return with_unranked_last(made) if unranked == "last" and isinstance(made, Lists) else made

    @classmethod
    def from_ratings(cls, query: Any, item: Any, rating: Any, judgment: Any = None) -> Preferences:
        """Count ratings; one judgment holds all ratings of a query (or of a query and ``judgment``)."""
        return _lists("ratings", {"query": query, "judgment": judgment}, {"item": item, "rating": rating})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparisons(Preferences):
    """Judgments between two items: ``winner`` was preferred to ``loser``, or the two tied.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "z"])
    >>> isinstance(votes, Comparisons), votes.winner.tolist(), votes.count.tolist()
    (True, [0, 1], [2, 1])
    """

    kind: str = "comparisons"
    winner: Ints
    """Item codes."""
    loser: Ints
    tie: NDArray[np.bool_] | None = None
    """True where the two tied (then winner < loser by code); None when nothing tied."""
    weight: Floats | None = None
    """Strength of the edge; None when all are 1."""
    share: Floats | None = None
    """The part of the win that the winner has, in (½, 1], the loser having the rest; None when all are 1 (or ties)."""
    covariates: Floats | None = None
    """Shape (judgments, names), winner minus loser."""
    covariate_names: tuple[str, ...] = ()
    time: Floats | None = None
    """When it was judged, in days since 1970 where ``dated``."""
    dated: bool = False

    item_columns: ClassVar[tuple[str, ...]] = ("winner", "loser")

    @property
    def weighted(self) -> bool:
        return self.weight is not None or self.share is not None

    @property
    def tied(self) -> bool:
        return self.tie is not None

    def _taken(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        return {
            "winner": self.winner[rows],
            "loser": self.loser[rows],
            "tie": none_if(None if self.tie is None else self.tie[rows], False),
            "weight": none_if(None if self.weight is None else self.weight[rows], 1.0),
            "share": none_if(None if self.share is None else self.share[rows], 1.0),
            "covariates": None if self.covariates is None else self.covariates[rows],
            "time": None if self.time is None else self.time[rows],
        }

    def _joined(self, other: Self, ours: Ints, theirs: Ints) -> dict[str, Any]:
        if self.covariate_names != other.covariate_names:
            raise UsageError(APART)
        if (self.time is None) != (other.time is None) or self.dated != other.dated:
            raise UsageError("cannot merge preferences of which only one has times, or only one dates")
        number = self.distinct, other.distinct
        return {
            "winner": np.concatenate([ours[self.winner], theirs[other.winner]]),
            "loser": np.concatenate([ours[self.loser], theirs[other.loser]]),
            "tie": joined(self.tie, other.tie, *number, False),
            "weight": joined(self.weight, other.weight, *number, 1.0),
            "share": joined(self.share, other.share, *number, 1.0),
            "covariates": joined(self.covariates, other.covariates, *number, 0.0),
            "time": joined(self.time, other.time, *number, 0.0),
        }

    def _distinct(self, query: Ints, count: Integers | None) -> tuple[NDArray[Any], Integers, dict[str, Any]]:
        winner, loser, covariates = self.winner, self.loser, self.covariates
        tie, weight, share = none_if(self.tie, False), none_if(self.weight, 1.0), none_if(self.share, 1.0)
        if tie is not None:
            swap = tie & (winner > loser)
            winner, loser = np.where(swap, loser, winner), np.where(swap, winner, loser)
            if covariates is not None:
                covariates = np.where(swap[:, None], -covariates, covariates)
        real = [] if covariates is None else list(covariates.T)
        real += [column for column in (weight, share, self.time) if column is not None]
        coded = [float_codes(column) for column in real]
        columns: list[tuple[NDArray[Any], int]] = [
            *((query, len(self.queries)), (winner, len(self.items)), (loser, len(self.items))),
            *([] if tie is None else [(tie, 2)]),
            *([] if self.cluster is None or self.clusters is None else [(self.cluster, len(self.clusters))]),
            *((codes, len(values)) for values, codes in coded),
        ]
        found, amount = tally_rows([column for column, _ in columns], [size for _, size in columns], count)
        del columns
        digits = iter(found)
        query = next(digits)
        winner, loser = (next(digits).astype(np.int32, copy=False) for _ in range(2))
        tie = None if tie is None else next(digits).astype(bool)
        cluster = None if self.cluster is None else next(digits).astype(np.int32, copy=False)
        real = [values[next(digits)] for values, _ in coded]
        time = None if self.time is None else real.pop()
        share = None if share is None else real.pop()
        weight = None if weight is None else real.pop()
        covariates = np.column_stack(real) if real else None
        kept = {"winner": winner, "loser": loser, "tie": tie, "cluster": cluster, "weight": weight}
        return query, amount, kept | {"covariates": covariates, "time": time, "share": share}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Lists(Preferences):
    """Judgments of lists: selections, choices, orders or ratings.

    >>> votes = Preferences.from_orders(None, [1, 1, 1], ["x", "y", "z"], [1, 2, 2])
    >>> isinstance(votes, Lists), votes.list_item.tolist(), votes.list_value.tolist()
    (True, [0, 1, 2], [1.0, 2.0, 2.0])
    """

    kind: str = field()
    list_start: Offsets
    """Entries of judgment j are list_start[j]:list_start[j + 1]."""
    list_item: Ints
    """Item codes."""
    list_value: Floats
    """Tier (orders, 1 = best), 1 or 0 for chosen or not (choices), rating; of selections above 0 where it was clicked:
    1 or 0, and after g positions that hold nothing of the log 1 + g or −g (``ragged.shown_at``)."""

    item_columns: ClassVar[tuple[str, ...]] = ("list_item",)

    @cached_property
    def lists(self) -> Ragged:
        """The entries of each judgment."""
        return Ragged(self.list_start)

    @cached_property
    def last_position(self) -> int:
        """The last position at which lists as shown have anything; 1 of other kinds."""
        return 1 + int(shown_at(self.lists, self.list_value).max(initial=0)) if self.kind == "selections" else 1

    @property
    def work(self) -> Floats:
        pairs = np.concatenate(([0.0], np.cumsum(self.lists.sizes.astype(np.float64) ** 2 / 2)))
        return np.asarray(np.diff(pairs[self.start]), np.float64)

    @property
    def weighted(self) -> bool:
        return self.kind == "ratings"

    @property
    def tied(self) -> bool:
        if self.kind != "orders":
            return False
        equal = np.diff(self.list_value) == 0  # entries stand best first
        equal[self.list_start[1:-1] - 1] = False  # where a list ends and the next begins
        return bool(equal.any())

    @property
    def _entry_query(self) -> Ints:
        return self.lists.spread(self.query)

    def _taken(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        lists, entries = self.lists.take(rows)
        return {
            "list_start": lists.start,
            "list_item": self.list_item[entries],
            "list_value": self.list_value[entries],
        }

    def _joined(self, other: Self, ours: Ints, theirs: Ints) -> dict[str, Any]:
        return {
            "list_start": np.concatenate([self.list_start, other.list_start[1:] + self.list_start[-1]]),
            "list_item": np.concatenate([ours[self.list_item], theirs[other.list_item]]),
            "list_value": np.concatenate([self.list_value, other.list_value]),
        }

    def _distinct(self, query: Ints, count: Integers | None) -> tuple[NDArray[Any], Integers, dict[str, Any]]:
        cluster = np.zeros(len(query), np.int32) if self.cluster is None else self.cluster
        each = np.ones(len(query), np.int64) if count is None else np.asarray(count, np.int64)
        kept, amount, lists, item, value = canonical_lists(
            self.kind, query, cluster, self.lists, self.list_item, self.list_value, each
        )
        cluster_kept = None if self.cluster is None else self.cluster[kept]
        columns = {"list_start": lists.start, "list_item": item, "list_value": value, "cluster": cluster_kept}
        return query[kept], amount, columns


def with_cluster_columns(prefs: Preferences, columns: Sequence[str]) -> Preferences:
    """Return the preferences with what their clusters are the cells of; one column has no cells."""
    return replace(prefs, cluster_columns=tuple(columns)) if len(columns) > 1 else prefs


# -- items that a ranking leaves out -------------------------------------------------------------------------------
UNRANKED = ("last", "missing")


def check_unranked(unranked: object) -> None:
    """Refuse what is no reading of items that are not ranked."""
    if unranked not in UNRANKED:
        raise UsageError(f"unranked must be one of {', '.join(UNRANKED)}, not {unranked!r}")


def left_out(orders: Lists) -> NDArray[np.int64]:
    """Return how many items of its query each distinct ranking leaves out; shape (rankings,)."""
    return np.asarray(orders.member_groups.sizes[orders.query] - orders.lists.sizes, np.int64)


def with_unranked_last(orders: Lists) -> Lists:
    """Return the rankings with all items of their query, those left out tied in last place.

    >>> votes = Preferences.from_orders(None, [1, 1, 2, 2], ["x", "y", "y", "z"], [1, 2, 1, 2], unranked="last")
    >>> isinstance(votes, Lists) and (votes.lists.sizes.tolist(), votes.list_value.tolist())
    ([3, 3], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    """
    members, lists, query = orders.member_groups, orders.lists, orders.query
    width = max(len(orders.items), 1)
    known = members.owner * width + orders.members[1]
    whole = Ragged.of_sizes(members.sizes[query])
    absent = np.ones(int(whole.start[-1]), bool)
    place = np.searchsorted(known, lists.spread(query).astype(np.int64) * width + orders.list_item)
    absent[lists.spread(whole.first - members.first[query]) + place] = False
    cells = np.flatnonzero(absent)
    owner = whole.owner[cells]
    added = orders.members[1][members.first[query][owner] + whole.place[cells]]
    last = lists.most(orders.list_value) + 1.0
    judgment = np.concatenate([lists.owner, owner])
    sorter = np.argsort(judgment, kind="stable")
    part = replace(
        orders,
        list_start=whole.start,
        list_item=np.concatenate([orders.list_item, added])[sorter],
        list_value=np.concatenate([orders.list_value, last[owner]])[sorter],
    )
    made = recounted(part, query, orders.count)
    return replace(made, declared=undeclared(made, orders.declared))


# -- building and changing preferences -----------------------------------------------------------------------------
def counted_comparisons(
    winner: Any,
    loser: Any,
    *,
    query: Any = None,
    tie: NDArray[np.bool_] | None = None,
    weight: Floats | None = None,
    share: Floats | None = None,
    count: Integers | None = None,
    cluster: Any = None,
    covariates: Mapping[str, Floats] | None = None,
    time: Floats | None = None,
    dated: bool = False,
    declared: tuple[Any, Any] | None = None,
) -> Comparisons:
    """Build Preferences from clean comparisons (checked by ``judgments``), counting equal ones together."""
    items, (winners, losers) = Labels.encode_all(winner, loser)
    rows = len(winners)
    queries, query_codes = encode_query(query, rows)
    clusters, cluster_codes = (None, None) if cluster is None else Labels.encode(cluster)
    names = tuple(sorted(covariates or {}))
    part = Comparisons(
        queries=queries,
        items=items,
        winner=winners,
        loser=losers,
        tie=tie,
        weight=weight,
        share=share,
        covariates=np.column_stack([covariates[name] for name in names]) if names and covariates else None,
        covariate_names=names,
        time=time,
        dated=dated,
        cluster=cluster_codes,
        clusters=clusters,
    )
    return declare(recounted(part, query_codes, count), declared)


def counted_lists(
    kind: str,
    offsets: Offsets,
    item: Any,
    value: Floats,
    *,
    query: Any = None,
    count: Integers | None = None,
    cluster: Any = None,
    declared: tuple[Any, Any] | None = None,
) -> Lists:
    """Build Preferences from clean lists (checked by ``judgments``), counting equal ones together."""
    items, codes = Labels.encode(item)
    queries, query_codes = encode_query(query, len(offsets) - 1)
    clusters, cluster_codes = (None, None) if cluster is None else Labels.encode(cluster)
    part = Lists(
        kind=kind,
        queries=queries,
        items=items,
        list_start=np.asarray(offsets, np.int64),
        list_item=codes,
        list_value=np.asarray(value, np.float64),
        cluster=cluster_codes,
        clusters=clusters,
    )
    return declare(recounted(part, query_codes, count), declared)


def _lists(kind: str, keys: Mapping[str, Any], entries: Mapping[str, Any], clicks: str = "all") -> Preferences:
    clean = clean_lists(kind, keys, entries, clicks)
    if clean is None:
        return Preferences()
    made = counted_lists(**clean.arguments)
    return replace(made, told=said_of_lists(clean, len(made)))


def keep(prefs: Preferences, rows: NDArray[np.intp], count: Integers, declared: NDArray[np.int64]) -> Preferences:
    """Keep some judgments with new counts; labels that are no longer used are forgotten (items stay if declared)."""
    return kept(prefs, rows, count, declared) if len(rows) or len(declared) else Preferences()
