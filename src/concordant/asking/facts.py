"""What is known of a pair so far, and in words why it should be asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.asking.scores_covariance import Fitted
from concordant.connectivity import Connectivity
from concordant.graphs import Batch, Graphs

__all__ = ["reasons", "tallies"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tallies(graphs: Graphs, better: Ints, worse: Ints) -> tuple[Floats, Floats]:
    """Strength of all judgments on each pair of nodes, and the share that ``better`` won of it (NaN without any)."""
    width = graphs.nodes
    known = graphs.first * width + graphs.second
    key = np.minimum(better, worse) * width + np.maximum(better, worse)
    low, high = np.searchsorted(known, key), np.searchsorted(known, key, side="right")
    above, below = (np.concatenate(([0.0], np.cumsum(side))) for side in (graphs.above, graphs.below))
    won, lost = above[high] - above[low], below[high] - below[low]
    won, lost = np.where(better < worse, won, lost), np.where(better < worse, lost, won)
    total = won + lost
    share = np.divide(won, total, out=np.full(len(key), np.nan), where=total > 0)
    return total, np.clip(share, 0.0, 1.0)


def reasons(
    fit: Fitted,
    top: int | None,
    better: Ints,
    worse: Ints,
    judged: Floats,
    share: Floats,
    *,
    connects: NDArray[np.bool_],
) -> list[str]:
    """One line for each pair."""
    batch = fit.batch
    place = _places(fit)
    needed = _between(batch.graphs, better, worse, judged == 0)
    group = fit.gauge.group
    members = np.bincount(group, minlength=fit.gauge.groups)
    label = _Labels(batch)
    out = []
    for i, (a, b) in enumerate(zip(better.tolist(), worse.tolist(), strict=True)):
        if connects[i]:
            one, other = int(members[group[a]]), int(members[group[b]])
            who = f"{label(b)} was never compared" if other == 1 else f"connects {other:,} items"
            out.append(f"{who}: connects it with {one:,} others" if other == 1 else f"{who} with {one:,} others")
            continue
        told = [_boundary(top, int(place[a]), int(place[b]))]
        told += _open(fit.links, a, b, label)
        if judged[i] == 0:
            told.append("never judged, and low noise needs it" if needed[i] else "never judged")
        elif share[i] < 0.5:
            told.append("the votes so far contradict the ranking")
        elif share[i] == 0.5:
            told.append("the votes so far are even")
        out.append("; ".join(told))
    return out


def _boundary(top: int | None, a: int, b: int) -> str:
    if top is None or a <= top < b:
        return f"decides place {a} against {b}"
    side = "in" if b <= top else "below"
    return f"places {a} and {b}, both {side} the top {top}: helps to place others"


def _open(links: Connectivity, a: int, b: int, label: _Labels) -> list[str]:
    if links.separated[a] and links.separated[b]:
        return ["nothing limits their scores on both sides yet"]
    out = []
    for node in (a, b):
        above, below = links.open_above[node], links.open_below[node]
        if above or below:
            ends = "above or below" if above and below else "above" if above else "below"
            out.append(f"nothing limits {label(node)} from {ends} yet")
    return out


class _Labels:
    """Labels of nodes, looked up one by one."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __call__(self, node: int) -> str:
        return repr(self._batch.prefs.items.take(self._batch.item[node : node + 1]).to_pylist()[0])


def _places(fit: Fitted) -> Ints:
    """Place of each node in its component, 1 the best."""
    group = fit.gauge.group
    order = np.lexsort((-fit.scores.value, group))
    place = np.empty(len(order), np.int64)
    sorted_group = group[order]
    place[order] = np.arange(len(order)) - np.searchsorted(sorted_group, sorted_group) + 1
    return place


def _between(graphs: Graphs, better: Ints, worse: Ints, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether some item stands between the two by net preferences (a over it, it over b, or the other way round).

    Only then does Definition 4 (low noise) say anything of the pair, and need to know it.
    """
    found = np.zeros(len(better), bool)
    rows = np.flatnonzero(wanted)
    if len(rows) == 0:
        return found
    gap = graphs.above - graphs.below
    over = np.where(gap > 0, graphs.first, graphs.second)[gap != 0]
    under = np.where(gap > 0, graphs.second, graphs.first)[gap != 0]
    beats = csr_array((np.ones(len(over)), (over, under)), shape=(graphs.nodes, graphs.nodes))
    beaten = csr_array(beats.T)
    a, b = better[rows], worse[rows]
    one = beats[a].multiply(beaten[b]).sum(axis=1)
    other = beats[b].multiply(beaten[a]).sum(axis=1)
    found[rows] = np.asarray(one + other).ravel() > 0
    return found
