"""What to say about items that wins and losses do not limit: an error without a prior, a note with one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.connectivity import Connectivity
from concordant.errors import NoMaximumLikelihood, few
from concordant.graphs import Batch

__all__ = ["refuse_separated", "separation_note"]


def refuse_separated(batch: Batch, links: Connectivity) -> None:
    """Raise NoMaximumLikelihood, naming the items, when some score has no finite maximum likelihood."""
    nodes = np.flatnonzero(links.separated)
    if len(nodes) == 0:
        return
    owners = np.unique(batch.owner[nodes])
    here = nodes[batch.owner[nodes] == owners[0]]
    parts = []
    for side, which in (("above", links.open_above), ("below", links.open_below)):
        beyond = here[which[here]]
        if len(beyond):
            parts.append(f"no chain of wins limits {_items(batch, beyond)} from {side}")
    of = ""
    if len(batch.prefs.queries) > 1:
        of = f" of query {batch.prefs.queries[int(batch.query[owners[0]])]!r}"
    more = f" ({len(owners) - 1:,} more queries or subsets alike)" if len(owners) > 1 else ""
    raise NoMaximumLikelihood(
        f"the maximum likelihood{of} does not exist: {'; '.join(parts)}{more}. "
        "Ask for a weak prior (--prior 0.01, prior=0.01), which gives a finite and flagged answer"
    )


def separation_note(batch: Batch, links: Connectivity, prior: float) -> tuple[str, ...]:
    """Say which items only the prior keeps finite."""
    nodes = np.flatnonzero(links.separated)
    if len(nodes) == 0 or prior == 0:
        return ()
    return (
        f"only the prior (precision {prior:g}) keeps the scores of {_items(batch, nodes)} finite: "
        "the wins and losses set no limit",
    )


def _items(batch: Batch, nodes: NDArray[np.intp]) -> str:
    return few([batch.prefs.items[int(code)] for code in batch.item[nodes[:9]]] + [None] * max(len(nodes) - 9, 0))
