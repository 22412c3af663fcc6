"""Logs whose queries are no rankings: nearly each has a judgment of its own, of two items that others have, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from concordant.errors import Setting, UsageError, counted
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences

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
    one, each = Setting("pool", True), Setting("pool", False)
    queries, items, judgments = len(prefs.queries), len(prefs.items), len(prefs)
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
    pooled = prefs.pool()
    return replace(pooled, told=(*pooled.told, Note("pooled", text, **says)))


def scattered_notes(prefs: Preferences) -> tuple[Note, ...]:
    """Return the note that rankings of such queries say next to nothing, or nothing."""
    if not scattered(prefs):
        return ()
    text = (
        "most of the {of:,} queries hold one pair, judged once or a few times, of items that recur elsewhere: these "
        "are no rankings to speak of; {pool} ranks all together (in Python when the log is read, or Preferences.pool())"
    )
    return (Note("queries of one judgment", text, of=len(prefs.queries), pool=Setting("pool", True)),)
