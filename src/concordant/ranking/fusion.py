"""Fusion of ranked lists: reciprocal ranks (Cormack, Clarke & Büttcher 2009) and sums of scores (Fox & Shaw 1994).

Scores are sums over the lists, so all items of a query can be compared, and one that a list leaves out is below those
that it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Lists
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
K = 60.0
"""Of Cormack, Clarke & Büttcher."""
UNLISTED = ("nothing", "last")
NORMALISATIONS = ("min-max", "z-score")


def rrf(batch: Batch, *, k: float = K, unlisted: str = "nothing") -> Scores:
    """Reciprocal rank fusion: s_i = Σ over the lists that hold i of 1 / (k + its rank).

    Items that are tied in a list share the mean of the places that they take. ``unlisted``: an item that a list leaves
    out gets 'nothing' from it, as published, or, 'last', the mean of 1 / (k + r) over the places r of the query's items
    that the list leaves open: what it would get, on average, were the others put behind in any order. Ratings are lists
    by descending rating.

    Errors: UsageError for k < 0 and for an unknown ``unlisted``.

    >>> from concordant.preferences.preferences import Preferences
    >>> lists = Preferences.from_orders(None, [1, 1, 2, 2], ["x", "y", "x", "z"], [1, 2, 1, 2])
    >>> (rrf(Batch.whole(lists)).value * 61 * 62).round(9).tolist(), rrf(Batch.whole(lists), k=0).value.tolist()
    ([124.0, 61.0, 61.0], [2.0, 0.5, 0.5])

    Source: Cormack, Clarke & Büttcher, SIGIR 2009.
    """
    if not (np.isfinite(k) and k >= 0):
        raise UsageError(f"k is added to the ranks and must be a number ≥ 0, not {k}")
    if unlisted not in UNLISTED:
        raise UsageError(f"unlisted is 'nothing' or 'last', not {unlisted!r}")
    given: dict[str, Any] = {"k": k, "unlisted": unlisted}
    if not isinstance(batch.prefs, Lists):
        return _fused(batch, None, given)
    lists, node, value = batch.entries(batch.prefs)
    if batch.prefs.kind == "ratings":
        sorter = np.lexsort((-value, lists.owner))
        node, value = node[sorter], value[sorter]
    gain: Floats = np.asarray(1.0 / (k + 1.0 + lists.place), np.float64)
    tiers = Ragged.runs(value, lists.owner)
    if len(tiers) < len(gain):
        gain = tiers.spread(tiers.sums(gain) / tiers.sizes)
    if unlisted == "nothing":
        return _fused(batch, (lists, node, gain, None), given)
    held, whole = lists.sizes, batch.sizes[batch.graph]
    rest = digamma(k + 1.0 + whole) - digamma(k + 1.0 + held)
    least = np.divide(rest, whole - held, out=np.zeros(len(lists)), where=whole > held)
    return _fused(batch, (lists, node, gain, least), given)


def combsum(batch: Batch, *, normalise: str = "min-max") -> Scores:
    """CombSUM: s_i = Σ over the lists of the normalised score of i.

    ``normalise``: 'min-max', (x − least) / (greatest − least) in each list, 1 where all scores of a list are equal; or
    'z-score', (x − mean) / standard deviation, 0 where all are equal. What a list leaves out has the least score of the
    list: 0 with 'min-max'.

    Errors: UsageError for an unknown normalisation.

    >>> from concordant.preferences.preferences import Preferences
    >>> runs = Preferences.from_ratings(None, ["x", "y", "z", "y", "z"], [9, 6, 5, 0.7, 0.2], [1, 1, 1, 2, 2])
    >>> combsum(Batch.whole(runs)).value.tolist()
    [1.0, 1.25, 0.0]

    Source: Fox & Shaw, TREC-2, 1994; min-max: Lee, SIGIR 1997.
    """
    if normalise not in NORMALISATIONS:
        raise UsageError(f"normalise is 'min-max' or 'z-score', not {normalise!r}")
    if not isinstance(batch.prefs, Lists):
        return _fused(batch, None, {"normalise": normalise})
    lists, node, value = batch.entries(batch.prefs)
    value = 0.5 * value  # a range has no more digits than float64
    if normalise == "min-max":
        least = lists.least(value)
        span = lists.most(value) - least
        apart = lists.spread(span) > 0
        gain = np.divide(value - lists.spread(least), lists.spread(span), out=np.ones(len(value)), where=apart)
        return _fused(batch, (lists, node, gain, None), {"normalise": normalise})
    scale = lists.spread(np.maximum(lists.most(np.abs(value)), np.finfo(float).tiny))
    gain = lists.centred(value / scale)
    spread = np.sqrt(lists.sums(gain**2) / np.maximum(lists.sizes, 1))
    equal = lists.spread(lists.most(value) == lists.least(value))
    gain = np.divide(gain, lists.spread(spread), out=np.zeros(len(value)), where=~equal)
    return _fused(batch, (lists, node, gain, lists.least(gain)), {"normalise": normalise})


def _fused(
    batch: Batch, found: tuple[Ragged, NDArray[np.int64], Floats, Floats | None] | None, options: dict[str, Any]
) -> Scores:
    """Add up what lists give their items, and, where that is given, what each gives to all items that it leaves out."""
    nodes, graphs = len(batch.item), len(batch)
    value: Floats = np.zeros(nodes)
    if found is not None:
        lists, node, gain, least = found
        if least is not None:
            gain = gain - lists.spread(least)
            value = batch.groups.sums(batch.multiplicity * least)[batch.owner]
        value = np.asarray(value + np.bincount(node, lists.spread(batch.multiplicity) * gain, nodes), np.float64)
    return Scores(
        value=value,
        components=np.zeros(nodes, np.int32),
        status=np.full(graphs, Status.CLOSED_FORM, np.int8),
        iterations=np.zeros(graphs, np.int64),
        gradient=np.zeros(graphs),
        options=options,
    )
