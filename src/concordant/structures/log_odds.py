"""Average log-odds: the structure of the experiments in AoS §6.2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.graphs import Batch, Graphs
from concordant.structures.gauge import closed_form, incomplete
from concordant.structures.scores import Scores

__all__ = ["C0", "average_log_odds", "pair_log_odds"]

C0 = 0.5
"""What is added to the wins of either side of a pair: half a win, which removes the first-order bias of an empirical
logit (Haldane 1956, Anscombe 1956)."""


def pair_log_odds(graphs: Graphs, c0: float) -> NDArray[np.float64]:
    """Return log (n_jl + c0) / (n_lj + c0) of each pair, first against second."""
    if not np.isfinite(c0) or c0 < 0:
        raise UsageError(f"c0 is added to the counts of wins and must be a number ≥ 0, not {c0}")
    if c0 == 0 and not ((graphs.above > 0) & (graphs.below > 0)).all():
        one_sided = int(((graphs.above == 0) | (graphs.below == 0)).sum())
        raise UsageError(f"c0 = 0, but {one_sided:,} pairs were won by one side only: log-odds need c0 > 0 there")
    return np.asarray(np.log((graphs.above + c0) / (graphs.below + c0)))


def average_log_odds(batch: Batch, *, c0: float = C0) -> Scores:
    """Average empirical log-odds against the other items (AoS §6.2).

    s(i) = 1/(m−1) Σ_{j≠i} log (n_ij + c0) / (n_ji + c0), pairs never judged counting 0; m the items of the query.
    c0 is added to the counts, not to the frequencies n/k, so it fades as judgments come in. Under the BTL model (26)
    with every pair compared the scores tend to m/(m−1) · (r_i − r̄) (27). A graph's scores sum to zero.

    Errors: UsageError when c0 < 0, or when c0 = 0 and a pair was won by one side only.

    >>> from concordant.preferences import Preferences
    >>> average_log_odds(Batch.whole(Preferences.from_comparisons(["x"] * 3, ["y"] * 3)), c0=1.0).value.round(4)
    array([ 1.3863, -1.3863])
    """
    graphs = batch.graphs
    odds = pair_log_odds(graphs, c0)
    others = np.maximum(np.diff(graphs.node_start) - 1, 1)[graphs.owner]
    holes = int(incomplete(graphs).sum())
    notes = () if holes == 0 else (_biased(holes, len(graphs)),)
    return closed_form(graphs, graphs.add_to_nodes(odds, -odds) / others, {"c0": c0}, notes)


def _biased(holes: int, graphs: int) -> str:
    where = "" if graphs == 1 else f" in {holes:,} of {graphs:,} graphs"
    return (
        f"log-odds: some pairs were never judged{where}; they count as even odds, which is biased on incomplete "
        "designs. thurstone-mosteller and bradley-terry are not."
    )
