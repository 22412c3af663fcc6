"""What judgments support: whether they connect the items, whether majorities run in circles, how wide ranks will be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import counted, few
from concordant.preferences.connectivity import connectivity, net_weights, strong_components
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.ranking.flags import parted

DENSE = 1_500
"""Items of a graph up to which its information is inverted; beyond, each item's own is taken."""
MOST_WORK = 5e7
"""Pairs that judgments make, up to which they are looked at."""
NORMAL = 1.959964
ELO = 400 / np.log(10)


def recurring(prefs: Preferences) -> bool:
    """Whether the items are those of all queries (systems asked many prompts), not each query's own (documents).

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"], query=[1, 2, 3])
    >>> recurring(votes), recurring(Preferences.from_comparisons(["a", "c"], ["b", "d"], query=[1, 2]))
    (True, False)
    """
    if len(prefs.queries) < 2:
        return False
    return len(prefs.members[1]) >= 2 * len(prefs.items)


@dataclass(frozen=True)
class Width:
    """Half the width of 95% intervals of scores in log-odds, were all items equally good: of the item in the middle."""

    middle: float
    least: float
    most: float

    @property
    def told_apart(self) -> float:
        """Share of votes that the better of two items in the middle has to win for the two to be told apart."""
        return float(1 / (1 + np.exp(-np.sqrt(2) * self.middle)))


def width(graphs: Graphs, graph: int = 0) -> Width | None:
    """Return how wide the intervals of Bradley–Terry scores of a graph will be, by the counts of its pairs.

    At equal abilities a comparison of two items has information ¼, so that of a graph is ¼ of its Laplacian L, with
    L_ij = −n_ij; standard errors are the roots of the diagonal of its pseudoinverse, and scores are less their mean.
    It is the least that intervals will be: abilities that differ, judgments that depend on each other make them wider.
    Beyond ``DENSE`` items the error of item i is that beside known opponents, 2/√n_i. None where the graph is in parts.

    >>> votes = Preferences.from_comparisons(["x"] * 50 + ["y"] * 50, ["y"] * 50 + ["x"] * 50)
    >>> round(width(Batch.whole(votes).graphs).middle, 3)
    0.196
    """
    begin, end = int(graphs.node_start[graph]), int(graphs.node_start[graph + 1])
    pairs = slice(int(graphs.pair_start[graph]), int(graphs.pair_start[graph + 1]))
    first, second = graphs.first[pairs] - begin, graphs.second[pairs] - begin
    mass = (graphs.above + graphs.below)[pairs]
    size = end - begin
    if size < 2 or not len(mass):
        return None
    degree = np.bincount(first, mass, size) + np.bincount(second, mass, size)
    if size <= DENSE:
        table = np.diag(degree)
        np.subtract.at(table, (first, second), mass)
        np.subtract.at(table, (second, first), mass)
        ones = np.full((size, size), 1 / size)
        try:
            variance = np.diag(np.linalg.inv(table / 4 + ones) - ones)
        except np.linalg.LinAlgError:
            return None
    else:
        variance = 4 / np.maximum(degree, 1e-12)
    half = NORMAL * np.sqrt(np.maximum(variance, 0))
    return Width(float(np.median(half)), float(half.min()), float(half.max()))


def supports(prefs: Preferences, numbers: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what the judgments support, and what stops them; each query by itself. Keeps the numbers."""
    if float(prefs.work.sum()) > MOST_WORK:
        return ["too many pairs to look at here; concordant rank looks"], []
    batch = Batch.whole(prefs)
    graphs = batch.graphs
    clicks = prefs.kind == "selections" and isinstance(prefs, Lists) and (prefs.list_value > 0).any()
    if clicks and not len(graphs.first):
        numbers["clicks alone"] = True
        return ["how often items are clicked, and at which positions; no judgment compares two items"], []
    if not len(graphs.first):
        equal = prefs.kind == "ratings" and isinstance(prefs, Lists) and (prefs.lists.sizes > 1).any()
        why = ": whoever rated several items rated them equally" if equal else ""
        return [], [f"no judgment prefers an item to another{why}"]
    found = connectivity(graphs)
    several = len(batch.node_start) > 2
    said: list[str] = []
    parts = np.maximum.reduceat(found.component, batch.node_start[:-1]) + 1
    numbers["components"] = parts.tolist() if not several else {"most": int(parts.max())}
    labels = prefs.items.take(batch.item)
    if not several:
        said += _connected(found, labels, int(parts[0]), parted(prefs.kind), numbers)
    else:
        apart = int((parts > 1).sum())
        numbers["queries in parts"] = apart
        whole = "in every query a chain of judgments connects all items"
        said.append(
            whole if not apart else f"in {apart:,} of {len(parts):,} queries items fall into parts {parted(prefs.kind)}"
        )
    said.append(_circles(graphs, several, numbers))
    if isinstance(prefs, Comparisons):
        largest = int(np.argmax(np.diff(batch.node_start)))
        if (sure := width(graphs, largest)) is not None and parts[largest] == 1:
            heavy = (
                1.0
                if prefs.weight is None
                else float(np.sqrt(prefs.count @ prefs.weight**2 / (prefs.count @ prefs.weight)))
            )
            sure = Width(*(heavy * half for half in (sure.middle, sure.least, sure.most)))
            numbers["half width"] = {"middle": sure.middle, "least": sure.least, "most": sure.most}
            whose = " of the query with the most items" if several else ""
            said.append(
                f"95% intervals of the scores{whose}: about ± {sure.middle:.2g} in log-odds ({sure.least:.2g} to "
                f"{sure.most:.2g}), ± {ELO * sure.middle:,.0f} Elo points; wider where judgments depend on each other"
            )
            said.append(
                f"two items in the middle can be told apart where the better wins {100 * sure.told_apart:.0f}% of the "
                "votes between them, or more; half of that margin takes four times the votes"
            )
    return said, []


def _connected(found: Any, labels: Any, parts: int, why: str, numbers: dict[str, Any]) -> list[str]:
    said = []
    if parts == 1:
        said.append("one scale for all items: a chain of judgments connects them")
    else:
        sizes = np.bincount(found.component)
        said.append(f"{parts:,} parts {why} ({few(sizes.tolist(), 5)} items): ranks within each, never across")
    for name, which in (("never lost", found.won & ~found.lost), ("never won", found.lost & ~found.won)):
        where = np.flatnonzero(which)
        numbers[name] = len(where)
        if len(where):
            names = few(labels.take(where[:5]).to_pylist(), 5)
            more = f" and {len(where) - 5:,} more" if len(where) > 5 else ""
            said.append(f"{counted(len(where), 'items')} {name}, so one end of their scores is open ({names}{more})")
    return said


def _circles(graphs: Graphs, several: bool, numbers: dict[str, Any]) -> str:
    """Say whether majorities run in circles: whether the graph of net preferences has strong parts of several items."""
    net = net_weights(graphs)
    up, down = net > 0, net < 0
    source = np.concatenate([graphs.first[up], graphs.second[down]])
    target = np.concatenate([graphs.second[up], graphs.first[down]])
    strong = strong_components(graphs.nodes, source, target)
    inside: NDArray[np.bool_] = np.bincount(strong)[strong] > 1
    numbers["items on circles"] = int(inside.sum())
    if not inside.any():
        return "no circles: the majorities of the pairs agree with one order" + (" in every query" if several else "")
    where = f" in {len(np.unique(graphs.node_groups.owner[inside])):,} queries" if several else ""
    return (
        f"circles of majorities (a over b over c over a) run through {counted(int(inside.sum()), 'items')}{where}; "
        "concordant audit says whether that is more than chance"
    )


NEIGHBOURS = 60
"""Systems, from the best on, whose differences to the next one are looked at."""


def paired(table: pa.Table, systems: int, tasks: int, numbers: dict[str, Any]) -> list[str]:
    """Say how sure differences of scores over tasks will be: 1.96 s/√n of those of neighbours, in the middle."""
    if tasks < 2:
        return ["one task: scores can be put in order, and nothing says how sure the order is"]
    if systems * tasks > 4_000_000:
        return []
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ("system", "task")]
    key = codes[0].astype(np.int64) * tasks + codes[1]
    number = np.bincount(key, minlength=systems * tasks)
    total = np.bincount(key, table["score"].to_numpy(), systems * tasks)
    mean = np.where(number > 0, total / np.maximum(number, 1), np.nan).reshape(systems, tasks)
    order, half = np.argsort(-np.nanmean(mean, axis=1))[:NEIGHBOURS], []
    for one, other in pairwise(order):
        difference = mean[one] - mean[other]
        difference = difference[np.isfinite(difference)]
        if len(difference) > 1:
            half.append(NORMAL * difference.std(ddof=1) / np.sqrt(len(difference)))
    if not half:
        return ["no two neighbours have tasks in common: their scores cannot be compared task by task"]
    middle = numbers["half width"] = float(np.median(half))
    return [
        f"the mean difference of two neighbours is known to about ± {middle:.2g} (95%, each pair by itself, over the "
        "tasks that both have, these taken for a sample)"
    ]
