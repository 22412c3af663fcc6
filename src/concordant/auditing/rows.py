"""The findings of some queries as rows of tables, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.auditing.held_out import HeldOut
from concordant.auditing.noise import VERDICTS as NOISE_VERDICTS
from concordant.auditing.noise import Noise
from concordant.auditing.regret import UNKNOWN, YES, SurrogateVerdict
from concordant.auditing.shapes import Shapes
from concordant.auditing.transitivity import VERDICTS
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.best_orders import METHODS, BestOrders

Nodes = NDArray[np.int64]
WORDS = {"holds": "true", "fails": "false", "undetermined": "undetermined"}


def query_rows(batch: Batch, facts: Shapes, best: BestOrders, noise: Noise | None) -> pa.Table:
    """Return a row for each query: the columns of the contract first, then evidence."""
    columns: dict[str, Any] = {
        "query": _queries(batch),
        "items": facts.items,
        "judgments": batch.judgments,
        "components": facts.components,
        "acyclic": facts.acyclic,
        "low_noise": pa.array([WORDS[VERDICTS[code]] for code in facts.low_noise], pa.string()),
        "row_sum_condition": facts.row_sums.holds,
        "optimal_loss": best.loss,
        "optimal_exact": best.exact,
        "optimal_lower": best.lower,
        "optimal_method": pa.array([METHODS[code] for code in best.method], pa.string()),
        "pairs": facts.pairs,
        "level_pairs": facts.level,
        "largest_component": facts.cycles.largest,
        "condorcet_winner": _labels(batch, facts.winners.winner),
        "condorcet": pa.array([VERDICTS[code] for code in facts.winners.verdict], pa.string()),
        "smith_set": facts.winners.smith,
        "cycle": _lists(batch, *_first_cycles(facts)),
        "triples_violated": facts.triples.violated,
        "triples_unknown": facts.triples.unknown,
        "violated_triple": _triples(batch, facts.triples.worst),
        "missing_pair": _triples(batch, facts.triples.missing[:, [0, 2]]),
        "row_sum_pair": _triples(batch, facts.row_sums.worst),
    }
    if noise is not None:
        columns |= {
            "cycles_are": pa.array([NOISE_VERDICTS[code] for code in noise.verdict], pa.string()),
            "cycle_p_value": noise.p,
            "cycle_expected": noise.expected_cyclic,
            "acyclic_share": noise.acyclic_share,
            "winner_share": noise.winner_share,
            "significant_cycle": _lists(batch, *_ragged(len(batch), noise.cycles)),
        }
    return pa.table(columns)


def surrogate_rows(batch: Batch, target: str, judged: SurrogateVerdict, name: str, phi: str | None = None) -> pa.Table:
    """Return a row for each query: what the minimisers of one surrogate, or the default, lose by a target."""
    number = len(batch)
    known = judged.consistent != UNKNOWN
    return pa.table(
        {
            "query": _queries(batch),
            "surrogate": pa.array([name] * number, pa.string()),
            "phi": pa.array([phi] * number, pa.string()),
            "target": pa.array([target] * number, pa.string()),
            "status": pa.array([Status(code).word for code in judged.status], pa.string()),
            "loss": judged.loss,
            "regret": judged.regret,
            "regret_at_most": judged.regret_at_most,
            "consistent": pa.array(judged.consistent == YES, mask=~known),
            "flipped": judged.flipped,
            "above": _labels(batch, judged.above),
            "below": _labels(batch, judged.below),
        }
    )


def order_rows(batch: Batch, best: BestOrders) -> pa.Table:
    """Return a row for each item of each query in a best order, place 1 first."""
    order = np.lexsort((best.place, batch.owner))
    return pa.table(
        {
            "query": batch.prefs.queries.take(batch.query[batch.owner[order]]),
            "item": batch.prefs.items.take(batch.item[order]),
            "place": best.place[order] + 1,
        }
    )


def edge_rows(batch: Batch, noise: Noise) -> pa.Table:
    """Return a row for each net preference: how strong it is, and how sure its direction."""
    net = noise.net
    items = batch.prefs.items
    return pa.table(
        {
            "query": batch.prefs.queries.take(batch.query[net.graph]),
            "above": items.take(batch.item[net.winner]),
            "below": items.take(batch.item[net.loser]),
            "net": net.weight,
            "sign_holds": noise.edge_sign,
            "p_value": noise.edge_p,
        }
    )


def held_out_rows(parts: Sequence[HeldOut]) -> pa.Table | None:
    """Return a row for each surrogate: its excess loss on held-out judgments, the mean over all queries."""
    if not parts:
        return None
    excess = np.sort(np.concatenate([part.excess for part in parts], axis=1), axis=1)  # sums of equal bits
    known = ~np.isnan(excess)
    queries = known.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, excess, 0.0).sum(axis=1) / queries
        squares = np.where(known, (excess - mean[:, None]) ** 2, 0.0).sum(axis=1)
        error = np.sqrt(squares / (queries - 1) / queries)
    return pa.table(
        {
            "surrogate": pa.array(parts[0].names, pa.string()),
            "mean": mean,
            "standard_error": error if excess.shape[1] > 1 else parts[0].error,
            "queries": queries,
            "splits": np.full(len(excess), parts[0].splits),
        }
    )


def _queries(batch: Batch) -> pa.Array:
    return batch.prefs.queries.take(batch.query)


def _labels(batch: Batch, node: Nodes) -> pa.Array:
    """Label of each node, null for −1."""
    items = batch.prefs.items
    if not len(batch.item):
        return pa.nulls(len(node), items.take(np.zeros(0, np.int32)).type)
    labels = items.take(batch.item[np.maximum(node, 0)])
    return pc.if_else(pa.array(node >= 0), labels, pa.scalar(None, labels.type))


def _lists(batch: Batch, start: Nodes, node: Nodes, present: NDArray[np.bool_]) -> pa.Array:
    """Lists of labels; null where there is none."""
    return pa.ListArray.from_arrays(pa.array(start.astype(np.int32)), _labels(batch, node), mask=pa.array(~present))


def _triples(batch: Batch, nodes: Nodes) -> pa.Array:
    """Rows of nodes as lists of labels; null where there is none (−1)."""
    present = nodes[:, 0] >= 0
    start = Ragged.of_sizes(present * nodes.shape[1]).start
    return _lists(batch, start, nodes[present].ravel(), present)


def _first_cycles(facts: Shapes) -> tuple[Nodes, Nodes, NDArray[np.bool_]]:
    """The first cycle shown of each graph."""
    found = facts.cycles
    head = Ragged.runs(found.graph).first
    return _ragged(len(facts), {int(found.graph[c]): found.node[found.start[c] : found.start[c + 1]] for c in head})


def _ragged(number: int, of_graphs: dict[int, Nodes]) -> tuple[Nodes, Nodes, NDArray[np.bool_]]:
    size = np.zeros(number, np.int64)
    for graph, nodes in of_graphs.items():
        size[graph] = len(nodes)
    node = np.concatenate([np.zeros(0, np.int64), *(of_graphs[graph] for graph in sorted(of_graphs))])
    return Ragged.of_sizes(size).start, node, size > 0
