"""Which pairs to ask next: a ranked list for annotators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from concordant.asking.connections import connecting_pairs
from concordant.asking.facts import reasons, tallies
from concordant.asking.gains import chosen_pairs, undecided_weights
from concordant.asking.questions import Questions
from concordant.asking.scores_covariance import LARGEST, Block, Chooser, Fitted, blocks, fitted
from concordant.asking.settling import check_tops, nearest
from concordant.asking.votes import votes_for_majority
from concordant.errors import UsageError, of_queries
from concordant.graphs import Batch
from concordant.preferences import Preferences

__all__ = ["pairs_to_ask"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
HELD = 1 << 21
"""Numbers of a matrix of a stack held at once."""


def pairs_to_ask(
    source: Preferences | Batch | Fitted,
    *,
    top: int | None = None,
    most: int = 20,
    each: int = 1,
    level: float = 0.95,
    prior: float = 0.01,
    ties: str = "half",
) -> Questions:
    """List for each query the pairs whose judgments would decide most, the best first.

    First pairs that connect components: without them nothing else compares their items. Then the pairs with the largest
    ``gain``, the expected number of pairs in the wrong order that ``each`` more judgments on the pair put right, to
    first order and for small errors (``gains``): among all pairs of items, or with ``top`` among those of an
    item of the present top k and one below it. Pairs are chosen one after the other, as if the earlier ones had been
    judged already, so that the list is not twenty times the same question. Nothing here is random.

    Errors: InputError when nothing is compared; UsageError for numbers below 1, for a ``top`` that no query has and for
    options of ``bradley_terry``.

    >>> votes = Preferences.from_comparisons(["x", "x", "y", "z"], ["y", "z", "z", "y"], count=[9, 9, 3, 3])
    >>> first = pairs_to_ask(votes, most=1).to_arrow().to_pylist()[0]
    >>> first["better"], first["worse"], first["judgments"], first["share"], first["reason"]
    ('y', 'z', 6.0, 0.5, 'decides place 2 against 3; the votes so far are even')
    """
    for name, number in (("most", most), ("each", each)):
        if number < 1:
            raise UsageError(f"{name} is a number of at least 1, not {number}")
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    fit = fitted(source, prior=prior, ties=ties)
    batch = fit.batch
    if top is not None:
        check_tops((top,), np.diff(batch.node_start))
    graph, better, worse = connecting_pairs(fit, top, most)
    approximate = np.zeros(len(batch), bool)
    rows = [(graph, better, worse, np.full(len(graph), np.inf))]
    for block in blocks(fit, widest() if top is None else nearest((top,)), main=top is not None):
        approximate[block.graph] |= not block.whole
        rows.extend(_chosen(block, top, most, float(each)))
    graph, better, worse, gain = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((np.arange(len(graph)), -gain, graph))
    order = order[gain[order] > 0]
    begin = np.searchsorted(graph[order], graph[order])
    order = order[np.arange(len(order)) - begin < most]
    graph, better, worse, gain = graph[order], better[order], worse[order], gain[order]
    judged, share = tallies(batch.graphs, better, worse)
    needed = votes_for_majority((share * judged + 1.0) / (judged + 2.0), level)
    return Questions(
        batch=batch,
        graph=graph,
        number=np.arange(len(graph)) - np.searchsorted(graph, graph) + 1,
        better=better,
        worse=worse,
        judgments=judged,
        share=share,
        predicted=1.0 / (1.0 + np.exp(-(fit.scores.value[better] - fit.scores.value[worse]))),
        gain=gain,
        to_settle=np.maximum(needed - judged, 0.0),
        reason=reasons(fit, top, better, worse, judged, share, connects=np.isinf(gain)),
        top=top,
        notes=_notes(fit, top, most, approximate),
    )


def widest() -> Chooser:
    """Choose the items of a large component whose scores are the least certain."""

    def choose(_: Floats, error: Floats) -> Ints:
        return np.sort(np.argsort(-error, kind="stable")[:LARGEST])

    return choose


def _chosen(block: Block, top: int | None, most: int, each: float) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """Graph, better and worse node, gain of the pairs chosen in a block."""
    n = block.nodes.shape[1]
    step = max(1, HELD // n**2)
    for begin in range(0, len(block.graph), step):
        part = block.some(slice(begin, begin + step))
        inside = None if top is None else part.place < top
        weight = undecided_weights(part.value, part.covariance, inside)
        first, second, gain = chosen_pairs(part.value, part.covariance, weight, most, each)
        row = np.arange(len(part.graph))[:, None]
        graph = np.broadcast_to(part.graph[:, None], first.shape)
        yield graph.ravel(), part.nodes[row, first].ravel(), part.nodes[row, second].ravel(), gain.ravel()


def _notes(fit: Fitted, top: int | None, most: int, approximate: NDArray[np.bool_]) -> tuple[str, ...]:
    batch = fit.batch
    components = np.zeros(len(batch), np.int64)
    np.maximum.at(components, batch.owner, fit.links.component.astype(np.int64))
    told = []
    more = int((components > most).sum())
    if more:
        largest = int(components.max())
        said = f"need more than the {most:,} pairs listed only to connect their items (the largest {largest:,})"
        told.append(of_queries(more, len(batch), said))
    if approximate.any():
        which = "least certain" if top is None else "nearest the boundary"
        said = (
            f"have more than {LARGEST:,} connected items: only pairs of the {LARGEST:,} {which} were looked at, their "
            "errors taken for independent"
        )
        told.append(of_queries(int(approximate.sum()), len(batch), said))
    if top is not None:
        few = np.diff(batch.node_start) <= top
        if few.any():
            said = f"have at most {top:,} items: no boundary there"
            told.append(of_queries(int(few.sum()), len(batch), said))
    return tuple(told)
