"""What the audit says: of all queries together, and of each view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.asking.pairs import pairs_to_ask
from concordant.auditing.audit import audit
from concordant.auditing.result import Audit
from concordant.labels import Labels
from concordant.reporting.values import short
from concordant.reporting.views import Stage, View, work_of

__all__ = ["Audited", "audited", "overall", "parts_of"]

LARGE = 60_000
"""Judged pairs of one query beyond which nothing is resampled: 5,000 items took four minutes, and take one so."""
QUERIES, JUDGMENTS = 2_000, 100_000
"""Queries, and judgments or pairs of lists, of a log up to which all of it is audited, not only what is shown."""
REPLICATES = 200


@dataclass(frozen=True, eq=False)
class Audited:
    """The audit of a stage, and which pairs to ask next."""

    found: Audit
    ask: pa.Table | None
    notes: tuple[str, ...]

    def edges_of(self, stage: Stage) -> pa.Table | None:
        """What resampling says of the net preferences of the queries of a stage, by query, winner, loser."""
        edges = self.found.edges
        return None if edges is None else edges.filter(pc.is_in(edges["query"], stage.prefs.queries.values))


def audited(
    stage: Stage, *, level: float, seed: int, ask: int, progress: Callable[[int, int], None] | None = None
) -> Audited:
    """Audit the queries of a stage, or all of a log of few; large ones without resampling, which is said."""
    all_of_them = len(stage.whole.queries) <= QUERIES and work_of(stage.whole) <= JUDGMENTS
    pairs = int(np.diff(stage.batch.graphs.pair_start).max(initial=0))
    large = pairs > LARGE
    noise: dict[str, Any] = {"replicates": 0} if large else {"replicates": REPLICATES, "level": level, "ask": ask}
    found = audit(
        stage.whole if all_of_them else stage.prefs,
        **noise,
        seed=seed,
        progress=progress,
    )
    if not large:
        return Audited(found, found.ask, found.notes)
    said = (
        f"a query has {pairs:,} judged pairs, more than {LARGE:,}: nothing was resampled here, so that nothing is said "
        "of sampling noise, of judgments held out and of what would settle the top; concordant audit does it"
    )
    table, notes = None, (*found.notes, said)
    if ask and len(stage.batch.graphs.first):
        questions = pairs_to_ask(stage.batch, most=ask, level=level)
        table, notes = questions.to_arrow(), (*notes, *questions.notes)
    return Audited(found, table, notes)


def overall(done: Audited) -> dict[str, Any]:
    """Return the audit of all queries: words, the surrogates over all of them, losses on judgments held out."""
    found = done.found
    return {
        "lines": [short(line) for line in found.summary],
        "surrogates": found.overall.to_pylist(),
        "held_out": None if found.held_out is None else found.held_out.to_pylist(),
        "notes": [short(note) for note in done.notes],
        "settings": dict(found.settings),
    }


def parts_of(view: View, done: Audited, items: Labels) -> dict[str, Any]:
    """Return what the audit says of one view: words, facts, surrogates, what would settle it and what to ask."""
    found, label = done.found, view.stage.prefs.queries.take(np.array([view.query]))[0]

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
            # the first line repeats what the log held
            "lines": [short(line) for line in one.summary[1:]],
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
