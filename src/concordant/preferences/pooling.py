"""What is settled once a log was read: queries that are no rankings, and items that rankings leave out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Idle, Setting, UsageError, counted
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Lists, Preferences, check_unranked, left_out, with_unranked_last
from concordant.preferences.ragged import Ragged

FEW = 3
"""Judgments of a query that are too few to say more than who won them: one vote, or those of three annotators."""
LEAST = 10
"""Queries from which on it is no accident that the same items recur."""


def scattered(prefs: Preferences) -> bool:
    """Return whether queries only number the judgments, so that what they rank is a handful of recurring items.

    At least half of the queries, with at least half of the judgments, hold at most three judgments of the same two
    items, both of which other queries have, too.

    >>> ids, models = [f"battle {n}" for n in range(30)], ["a", "b", "c"] * 10
    >>> scattered(Preferences.from_comparisons(models, models[1:] + ["a"], query=ids))
    True
    >>> scattered(Preferences.from_comparisons([f"{one}+" for one in ids], [f"{one}-" for one in ids], query=ids))
    False
    """
    if prefs.kind is None or len(prefs.queries) < LEAST:
        return False
    judged, members = prefs.judgments, prefs.member_groups
    alone = (members.sizes == 2) & (judged <= FEW) & (judged > 0)
    if 2 * alone.sum() < len(alone):
        return False
    item = prefs.members[1]
    recurring = np.bincount(item, minlength=len(prefs.items)) > 1
    alone &= members.sums(recurring[item].astype(np.float64)) == members.sizes
    return bool(2 * alone.sum() >= len(alone) and 2 * judged[alone].sum() >= judged.sum())


def settle_queries(prefs: Preferences, pool: bool | None, name: str, column: str | None, *, named: bool) -> Preferences:
    """Put all queries into one where that is asked for, or where they are scattered and it is not said what they are.

    ``column`` holds the queries. Errors: UsageError where somebody ``named`` it, and it is not said what is meant.
    """
    if pool is True:
        return prefs.pool()
    if pool is False or not scattered(prefs):
        return prefs
    note = pooled_note(name, column, len(prefs.queries), len(prefs.items), len(prefs), named=named)
    pooled = prefs.pool()
    return replace(pooled, told=(*pooled.told, note))


def pooled_note(name: str, column: str | None, queries: int, items: int, judgments: int, *, named: bool) -> Note:
    """Return the note that scattered queries were put into one. Errors: as of ``settle_queries``."""
    one, each = Setting("pool", True), Setting("pool", False)
    if named:
        raise UsageError(
            f"{name}: most of the {queries:,} queries ({column!r}) hold one pair, judged once or a few times, while "
            f"the same {counted(items, 'items')} recur: say whether all {judgments:,} judgments are ranked together (",
            one,
            ") or each query by itself (",
            each,
            ")",
        )
    text = (
        "{log}: most of the {queries:,} queries{column} hold one pair, judged once or a few times, while the same "
        "{recurring:items} recur; so all {judgments:,} judgments are ranked together ({each} keeps the queries apart)"
    )
    says: dict[str, Any] = {"log": name, "column": "" if column is None else f" ({column!r})", "each": each}
    says |= {"judgments": judgments, "queries": queries, "recurring": items}
    return Note("pooled", text, **says)


def scattered_notes(prefs: Preferences) -> tuple[Note, ...]:
    """Return the note that rankings of such queries say next to nothing, or nothing."""
    if not scattered(prefs):
        return ()
    text = (
        "most of the {of:,} queries hold one pair, judged once or a few times, of items that recur elsewhere: these "
        "are no rankings to speak of; {pool} ranks all together (in Python when the log is read, or Preferences.pool())"
    )
    return (Note("queries of one judgment", text, of=len(prefs.queries), pool=Setting("pool", True)),)


def lonely_notes(prefs: Preferences, name: str, column: str | None) -> tuple[Note, ...]:
    """Return the note that each query is ranked by what one person rated, while the same items recur.

    >>> people, films = [f"user {n}" for n in range(20) for _ in "ab"], [*"ab"] * 20
    >>> [note.code for note in lonely_notes(Preferences.from_ratings(people, films, [1, 2] * 20), "films.csv", "user")]
    ['ratings of one']
    """
    if prefs.kind != "ratings":
        return ()
    return lonely_note(prefs.judgments, len(prefs.members[1]), len(prefs.items), name, column)


def lonely_note(judged: NDArray[np.int64], members: int, items: int, name: str, column: str | None) -> tuple[Note, ...]:
    """Return that note by how often each query was ``judged``, how many items all of them hold, and how many recur."""
    if len(judged) < LEAST or np.median(judged) > 1:
        return ()
    if members < 2 * items:  # as documents, which each query has for itself
        return ()
    text = (
        "{log}: each of the {queries:,} queries{column} is ranked by itself, most by one list of ratings, while the "
        "same {recurring:items} recur: {pool} makes one ranking of all"
    )
    says: dict[str, Any] = {"column": "" if column is None else f" ({column!r})", "recurring": items}
    return (Note("ratings of one", text, log=name, queries=len(judged), pool=Setting("pool", True), **says),)


@dataclass(frozen=True)
class LeftOut:
    """What a log says of the items that its rankings leave out, as numbers of rankings."""

    partial: int
    """Leave out items of their query."""
    of: int
    filled: int
    """Name all of them, several in last place."""
    tied: int
    """Tiers of several items anywhere else."""

    @classmethod
    def by(cls, prefs: Lists) -> LeftOut:
        """Look at whole queries."""
        out = left_out(prefs)
        tiers = Ragged.runs(prefs.list_value, prefs.lists.owner)
        holder, tied = prefs.lists.owner[tiers.first], tiers.sizes > 1
        ending = tiers.start[1:] == prefs.list_start[1:][holder]
        filled = tied & ending & (out[holder] == 0)
        times = prefs.count
        partial, last = (int(times[rows].sum(dtype=np.int64)) for rows in (out > 0, holder[filled]))
        return cls(partial, len(prefs), last, int((tied & ~filled).sum()))

    def settle(self, unranked: str | None, name: str) -> tuple[Note, ...]:
        """Return what is noted of a log that was read as asked. Errors: as of ``settle_unranked``."""
        if self.partial == 0:
            if unranked is not None:
                raise Idle("unranked", f"every ranking of {name} ranks all items of its query")
            return ()
        if unranked is not None:
            return ()
        says: dict[str, Any] = {"log": name, "partial": self.partial, "of": self.of}
        says["last"] = Setting("unranked", "last")
        if self.filled and not self.tied:
            others = "1 other names" if self.filled == 1 else f"{self.filled:,} others name"
            raise UsageError(
                f"{name}: {self.partial:,} of {self.of:,} rankings leave out items of their query, and {others} all of "
                "them, several in last place: say whether an item that is not ranked is below those that are (",
                says["last"],
                ") or nothing is known of it (",
                Setting("unranked", "missing"),
                ")",
            )
        text = (
            "{log}: {partial:,} of {of:rankings} {partial:leaves|leave} out items of their query; that is read as no "
            "opinion ({last} puts them below the ranked)"
        )
        return (Note("not ranked", text, **says),)


def check_orders(unranked: str | None, kind: str | None, name: str) -> None:
    """Refuse ``unranked`` where it has no such value, or does nothing. Errors: UsageError."""
    if unranked is not None:
        check_unranked(unranked)
        if kind != "orders":
            raise Idle("unranked", f"{name} holds {kind}; only orders leave items out")


def settle_unranked(prefs: Preferences, unranked: str | None, name: str, usual: str | None = None) -> Preferences:
    """Read the items that rankings leave out as it was asked, or as is ``usual``; else what was not asked is noted.

    Not asked is an error where the log itself has both readings: some rankings leave items out, others name all of
    them, several in last place, and nothing else is tied, as where not ranked is written out as last. Errors:
    UsageError; Idle where no ranking leaves anything out.
    """
    check_orders(unranked, prefs.kind, name)
    if not isinstance(prefs, Lists) or prefs.kind != "orders":
        return prefs
    found = LeftOut.by(prefs)
    notes = found.settle(unranked or (usual if found.partial else None), name)
    if found.partial and (unranked or usual) == "last":
        return with_unranked_last(prefs)
    return replace(prefs, told=(*prefs.told, *notes)) if notes else prefs
