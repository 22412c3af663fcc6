"""Click probabilities under the cascade model (AoS §5.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.graphs import Batch
from concordant.listing import entry_owner, take_lists
from concordant.structures.scores import CLOSED_FORM, Scores

__all__ = ["cascade", "examinations"]


def cascade(batch: Batch) -> Scores:
    """Maximum likelihood of the cascade model: a user reads from the top and clicks the first item that satisfies.

    p̂_l = (times l was clicked) / (times l was shown at or above the click); a list without a click was examined to
    its end (AoS §5.2). An item that was never examined gets its query's pooled rate, clicks over examinations of all
    items; where nothing at all was examined that is 0. Probabilities are absolute, so each graph is one component.

    Errors: UsageError for anything but selections (lists in the order in which they were shown).

    >>> from concordant.preferences import Preferences
    >>> shown = Preferences.from_selections(["q"] * 4, [1, 1, 2, 2], [1, 2, 1, 2], ["x", "y", "x", "y"], [0, 1, 1, 0])
    >>> cascade(Batch.whole(shown)).value.tolist()
    [0.5, 1.0]
    """
    nodes, graphs = len(batch.item), len(batch)
    clicks, examined = examinations(batch)
    all_clicks, all_examined = (np.bincount(batch.owner, x, graphs) for x in (clicks, examined))
    pooled = np.divide(all_clicks, all_examined, out=np.zeros(graphs), where=all_examined > 0)
    value = np.divide(clicks, examined, out=pooled[batch.owner], where=examined > 0)
    unseen = int((examined == 0).sum())
    note = f"cascade: {unseen:,} items were never examined; they have the pooled click rate of their query."
    return Scores(
        value=value,
        component=np.zeros(nodes, np.int32),
        status=np.full(graphs, CLOSED_FORM, np.int8),
        iterations=np.zeros(graphs, np.int64),
        gradient=np.zeros(graphs),
        notes=(note,) if unseen else (),
    )


def examinations(batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how often each node was clicked and how often it was examined (shown at or above the click).

    Errors: UsageError for anything but selections.
    """
    prefs = batch.prefs
    nodes = len(batch.item)
    if prefs.kind not in ("selections", None):
        raise UsageError(
            f"cascade reads lists in the order in which they were shown (selections with a position); these are "
            f"{prefs.kind}, which have no positions. Use bradley-terry or plackett-luce."
        )
    clicks, examined = np.zeros(nodes), np.zeros(nodes)
    if prefs.list_start is not None and prefs.list_item is not None and prefs.list_value is not None:
        start, entries = take_lists(prefs.list_start, batch.judgment)
        holder = entry_owner(start)
        clicked = prefs.list_value[entries] > 0
        until = np.full(len(start) - 1, len(entries), np.int64)
        until[holder[clicked]] = np.flatnonzero(clicked)
        seen = np.arange(len(entries)) <= until[holder]
        node = batch.node_of(batch.graph[holder], prefs.list_item[entries])
        times = batch.multiplicity[holder].astype(float)
        clicks += np.bincount(node[clicked], times[clicked], nodes)
        examined += np.bincount(node[seen], times[seen], nodes)
    return clicks, examined
