"""What the audit says of all queries together and of each view, with its difference graph and the cycles in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.apps.commands.given import worded
from concordant.apps.report.views import QueryGroup, View, fair, nearest_top, short, work_of
from concordant.auditing.active_pairs import pairs_to_ask
from concordant.auditing.audit import audit
from concordant.auditing.findings import Audit
from concordant.auditing.shapes import Cycles, cycles
from concordant.auditing.transitivity import Neighbours
from concordant.preferences.connectivity import Differences, by_size, strong_components
from concordant.preferences.labels import Labels
from concordant.ranking.adjacency import mean_adjacency

LARGE = 60_000
"""Judged pairs of one query beyond which nothing is resampled: 5,000 items took four minutes, and take one so."""
QUERIES, JUDGMENTS = 2_000, 100_000
"""Queries, and judgments or pairs of lists, of a log up to which all of it is audited, not only what is shown."""
REPLICATES = 200


@dataclass(frozen=True, eq=False)
class Audited:
    """The audit of a group, and which pairs to ask next."""

    found: Audit
    ask: pa.Table | None
    notes: tuple[str, ...]

    def edges_of(self, group: QueryGroup) -> pa.Table | None:
        """What resampling says of the net preferences of the queries of a group, by query, winner, loser."""
        edges = self.found.edges
        return None if edges is None else edges.filter(pc.is_in(edges["query"], group.prefs.queries.values))


def audited(group: QueryGroup, *, level: float, seed: int, ask: int) -> Audited:
    """Audit the queries of a group, or all of a log of few; large ones without resampling, which is said."""
    all_of_them = len(group.whole.queries) <= QUERIES and work_of(group.whole) <= JUDGMENTS
    pairs = int(group.batch.graphs.pairs.sizes.max(initial=0))
    large = pairs > LARGE
    noise: dict[str, Any] = {"replicates": 0} if large else {"replicates": REPLICATES, "level": level, "ask": ask}
    found = audit(group.whole if all_of_them else group.prefs, **noise, seed=seed)
    if not large:
        return Audited(found, found.ask, found.notes)
    said = (
        f"a query has {pairs:,} judged pairs, more than {LARGE:,}: nothing was resampled here, so that nothing is said "
        "of sampling noise, of judgments held out and of what would settle the top; concordant audit does it"
    )
    table, notes = None, (*found.notes, said)
    if ask and len(group.batch.graphs.first):
        questions = pairs_to_ask(group.batch, most=ask, level=level)
        table, notes = questions.to_arrow(), (*notes, *questions.notes)
    return Audited(found, table, notes)


def overall(done: Audited) -> dict[str, Any]:
    """Return the audit of all queries: words, the surrogates over all of them, losses on judgments held out."""
    found = done.found
    return {
        "lines": [short(line) for line in replace(found, settling=None).summary],
        "surrogates": found.overall.to_pylist(),
        "held_out": None if found.held_out is None else found.held_out.to_pylist(),
        "notes": [short(worded(note)) for note in done.notes],
        "settings": dict(found.settings),
    }


def parts_of(view: View, done: Audited, items: Labels) -> dict[str, Any]:
    """Return what the audit says of one view: words, facts, surrogates, what would settle it and what to ask."""
    found, label = done.found, view.group.prefs.queries.take(np.array([view.query]))[0]

    def mine(table: pa.Table | None) -> pa.Table | None:
        return None if table is None else table.filter(pc.equal(table["query"], label))

    one = replace(
        found,
        queries=mine(found.queries),
        surrogates=mine(found.surrogates),
        settling=mine(found.settling),
        ask=mine(done.ask),
        held_out=found.held_out if len(found.queries) == 1 else None,
    )
    settling = None if one.settling is None else one.settling.to_pylist()
    return {
        "audit": {
            # the first line repeats what the log held; who is first is said once, by the ranking
            "lines": [short(line) for line in replace(one, settling=None).summary[1:]],
            "row": _worded(one.queries.to_pylist()[0]),
            "surrogates": [_worded(row) for row in one.surrogates.to_pylist()],
        },
        "settling": _worded(settling[0]) if settling else None,
        "ask": None if one.ask is None else _questions(one.ask, items),
    }


def _worded(row: dict[str, Any]) -> dict[str, Any]:
    """A row of an audit without its query, labels as texts."""
    named = ("condorcet_winner", "above", "below", "inside", "beyond")
    lists = ("cycle", "violated_triple", "missing_pair", "row_sum_pair", "significant_cycle")
    said = {name: value for name, value in row.items() if name != "query"}
    said |= {name: short(str(said[name])) for name in named if said.get(name) is not None}
    return said | {name: [short(str(x)) for x in said[name]] for name in lists if said.get(name) is not None}


def _questions(ask: pa.Table, items: Labels) -> list[dict[str, Any]]:
    rows = ask.drop_columns(["query", "better", "worse"]).to_pylist()
    sides = [items.codes_of(ask[name].combine_chunks()).tolist() for name in ("better", "worse")]
    return [
        {"first": first, "second": second} | row | {"reason": short(row["reason"])}
        for first, second, row in zip(*sides, rows, strict=True)
    ]


Ints = NDArray[np.int64]
EDGES = 30_000
"""Net preferences of all views at most."""


@dataclass(frozen=True, eq=False)
class _Graphs:
    """The difference graphs of a group."""

    net: Differences
    component: Ints
    """Number of the strong component of each node in its graph, 1 the largest; 0: the node is on no cycle."""
    cycles: Cycles
    judgments: NDArray[np.float64]
    """Strength of the judgments on the pair of each edge."""
    sign_holds: NDArray[np.float64]
    """Share of the resamples in which the edge keeps its direction; NaN where nothing was resampled."""


def graphs_of(views: list[View], edges: dict[int, pa.Table | None]) -> list[dict[str, Any]]:
    """Return the difference graph of each view; ``edges``: what the audit of each group (by id) says of noise.

    An edge is [winner, loser, net preference per judgment, judgments of the pair, share of resamples that keep its
    direction or null, whether it is on a cycle, number of its strong component or 0]. Where there are too many, those
    of the cycles shown come first, then those of the items that rank highest.
    """
    groups = {id(view.group): view.group for view in views}
    found = {key: _found(group, edges.get(key)) for key, group in groups.items()}
    sizes = [int(found[id(view.group)].net.edges.sizes[view.query]) for view in views]
    return [_graph(view, found[id(view.group)], most) for view, most in zip(views, fair(sizes, EDGES), strict=True)]


def _found(group: QueryGroup, known: pa.Table | None) -> _Graphs:
    mean = mean_adjacency(group.batch)
    net = Differences.of(mean)
    graphs = group.batch.graphs
    judgments = (graphs.wins + graphs.losses + graphs.ties)[graphs.pair_of(net.winner, net.loser)]
    # rows of an audit stand as the edges do: by query, winner, loser
    holds = np.full(len(net.winner), np.nan)
    if known is not None:
        holds = known["sign_holds"].to_numpy().astype(np.float64)
    strong = strong_components(net.nodes, net.winner, net.loser)
    number = np.where(np.bincount(strong)[strong] > 1, by_size(strong, net.owner) + 1, 0).astype(np.int64)
    return _Graphs(net, number, cycles(Neighbours.of(mean)), judgments, holds)


def _graph(view: View, found: _Graphs, most: int) -> dict[str, Any]:
    net, outer, place = found.net, view.group.outer, view.group.place
    begin, end = int(net.edge_start[view.query]), int(net.edge_start[view.query + 1])
    shown = [
        found.cycles.node[found.cycles.start[c] : found.cycles.start[c + 1]]
        for c in np.flatnonzero(found.cycles.graph == view.query).tolist()
    ]
    edges = np.arange(begin, end)
    winner, loser = net.winner[edges], net.loser[edges]
    order = nearest_top(place[winner], place[loser])
    width = net.nodes
    on_shown = {
        a * width + b for nodes in shown for a, b in zip(nodes.tolist(), np.roll(nodes, -1).tolist(), strict=True)
    }
    first = np.isin(winner * width + loser, sorted(on_shown))[order]
    chosen = edges[np.concatenate((order[first], order[~first]))[:most]]
    winner, loser = net.winner[chosen], net.loser[chosen]
    part = np.where(found.component[winner] == found.component[loser], found.component[winner], 0)
    facts = (net.weight[chosen], found.judgments[chosen], found.sign_holds[chosen], part > 0, part)
    columns = (outer[winner], outer[loser], *facts)
    nodes = np.arange(net.node_start[view.query], net.node_start[view.query + 1])
    return {
        "nodes": outer[nodes[np.argsort(place[nodes])][: view.rows]],
        "edges": [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)],
        "cycles": [outer[cycle] for cycle in shown],
        "components": int(found.component[nodes].max(initial=0)),
        "left_out": end - begin - len(chosen),
    }
