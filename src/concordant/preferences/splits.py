"""Parts of judgments to learn from and to judge by: at random, whole queries or clusters, or what came later."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, whole_number
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.sampling import deal, label_keys
from concordant.preferences.times import said_time, timed

SPLITS = ("judgments", "queries")


def folds(
    prefs: Preferences, n: int, *, split: str = "judgments", seed: int = 0
) -> Iterator[tuple[Preferences, Preferences]]:
    """Yield (training, held out) n times; the parts held out add up to the whole.

    Judgments are dealt within each query as ``Preferences.folds`` deals them, or whole queries are (``split`` =
    'queries'). All queries and items of the whole are declared in every part, so that the nodes of ``Batch.whole`` and
    any alignment stay as they are; a query without judgments in a part has weight 0 there. Deals depend on labels and
    the seed alone.

    >>> votes = Preferences.from_comparisons(["x"] * 9 + ["z"], ["y"] * 10)
    >>> [(len(train), len(held), len(train.items)) for train, held in folds(votes, 2)]
    [(5, 5, 3), (5, 5, 3)]
    """
    check_folds(n, split, len(prefs.queries))
    keys = label_keys(prefs.queries, seed)
    item = prefs.members[1]
    query = prefs.member_groups.owner
    known = np.column_stack([query, item]).astype(np.int64)
    if split == "clusters":
        shares = np.where(dealt(label_keys(clusters_of(prefs), seed), n)[prefs.cluster] == np.arange(n)[:, None], 1, 0)
        shares = shares * prefs.count
    elif split == "judgments":
        shares = deal(prefs.start, prefs.count, keys, int(n))
    else:
        shares = np.where(dealt(keys, n)[prefs.query] == np.arange(n)[:, None], prefs.count, 0)
    for held in shares:
        train = prefs.count - held
        yield tuple(keep(prefs, np.flatnonzero(part), part[part > 0], known) for part in (train, held))  # type: ignore[misc]


def check_folds(n: int, split: str, queries: int) -> None:
    """Raise UsageError for a number of folds, or a way to split, that so many queries do not allow."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise UsageError(f"folds must be an integer of at least 2, not {n!r}")
    if split not in (*SPLITS, "clusters"):
        raise UsageError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    if n >= 1 << 31:
        raise UsageError(f"folds must be fewer than 2^31, not {n:,}")
    if split == "queries" and n > queries:
        raise UsageError(f"{n} folds of queries need at least as many queries; there are {queries:,}")


def dealt(keys: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    """Return the part of each key, dealt round in the order of the keys."""
    place = np.empty(len(keys), np.int64)
    place[np.argsort(keys, kind="stable")] = np.arange(len(keys)) % n
    return place


def clusters_of(prefs: Preferences) -> Labels:
    """Return the labels of the clusters; none where judgments are not in clusters."""
    return prefs.clusters if prefs.cluster is not None and prefs.clusters is not None else Labels.empty()


def later(prefs: Preferences, n: int) -> Iterator[tuple[Preferences, Preferences]]:
    """Yield (all that came before, the next part) for n parts of about as many judgments in order of time, but for the
    first part, which nothing came before; judgments of the same time stay together.

    >>> votes = Preferences.from_comparisons(list("abab"), list("baba"), time=[1, 2, 2, 3])
    >>> [(len(train), len(held)) for train, held in later(votes, 4)]
    [(1, 2), (3, 1)]

    Errors: UsageError where there are no times, or only one.
    """
    known, n = timed(prefs), whole_number(n, "folds", least=2)
    times, place = np.unique(known.time if known.time is not None else (), return_inverse=True)
    if len(times) < 2:
        raise UsageError(f"all judgments are of one time, {said_time(float(times[0]), known.dated)}: none came before")
    before = np.cumsum(np.bincount(place, known.count)) - np.bincount(place, known.count)
    part = np.unique(before * n // len(known), return_inverse=True)[1][place]
    for at in range(1, int(part.max()) + 1):
        rows = [np.flatnonzero(part < at), np.flatnonzero(part == at)]
        yield tuple(keep(known, own, known.count[own], known.declared[:0]) for own in rows)  # type: ignore[misc]
