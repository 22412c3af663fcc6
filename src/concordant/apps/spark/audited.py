"""The audit of a log of many queries, each where its judgments lie: tasks audit theirs, the driver puts it together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from concordant.apps.spark.divided import declared
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import PIECES, objects, pieces
from concordant.apps.spark.lists_of_log import settled
from concordant.auditing.audit import Extent, Part, Wanted, parts_of, put_together
from concordant.auditing.findings import Audit
from concordant.auditing.settings import AuditSettings
from concordant.errors import ConcordantError, InputError
from concordant.io.engines.spark_session import without_pandas_warning
from concordant.preferences.labels import Labels
from concordant.preferences.pooling import FEW
from concordant.preferences.preferences import Preferences, facts_said

NUMBERS = pa.schema([("what", pa.string()), ("label", pa.string()), ("number", pa.int64())])
LABELS = ("items", "clusters")
"""What is counted by its labels, as queries may share them."""
ADDED = ("queries", "judgments", "distinct", "ties", "entries", "never judged")
"""What adds up over queries."""
ORDER = ("queries", "items", *ADDED[1:5], "clusters", ADDED[5])
"""The order in which facts are told."""


def divided(judged: JudgedQueries, settings: AuditSettings) -> tuple[Audit, tuple[str, ...]] | None:
    """Return the audit of a log whose queries are audited by the tasks that hold them, and how it was read.

    None, with nothing done but counting, where all of the log says how queries are read: clicks, clusters of several
    columns, queries that hold one pair each and are ranked together. Errors: as ``concordant.audit``.
    """
    if not judged.by_query or judged.kind == "selections" or judged.cluster_columns > 1:
        return None
    judged = settled(judged.sized())
    with judged.explained(), without_pandas_warning():
        found = _numbers_of(judged)
        if not found.get("queries"):
            raise InputError("there is no judgment to audit")
        if 2 * found["alone"] >= found["queries"] and 2 * found["judged alone"] >= found["judgments"]:
            return None
        extent = Extent(found["queries"], found["distinct"], found["largest"])
        made = judged.table(_AuditOf(settings, extent), PIECES).toArrow()
    parts: list[Part] = []
    for _, one in objects(iter(made.to_batches())):
        if isinstance(one, ConcordantError):
            raise one
        parts.append(one)
    some = Labels.encode(pa.array(["-"]))[0]
    wanted = Wanted.of(declared(judged.kind, some, some), settings)
    facts = facts_said({"kind": judged.kind} | {name: found[name] for name in ORDER if name in found})
    return _by_query(put_together(wanted, parts, facts, (), extent.queries)), judged.notes


def _by_query(found: Audit) -> Audit:
    """Return an audit with its rows in the order of the queries."""
    queries = Labels.encode(found.queries["query"].combine_chunks())[0]
    names = {name: place for place, name in enumerate(found.settings["surrogates"])}

    def ordered(table: pa.Table | None) -> pa.Table | None:
        if table is None:
            return None
        code = queries.codes_of(table["query"].combine_chunks())
        keys = [code]
        if "surrogate" in table.column_names:
            keys.append(np.array([names[name] for name in table["surrogate"].to_pylist()]))
        return table.take(pa.array(np.lexsort(keys))).combine_chunks()

    names_of = ("queries", "surrogates", "orders", "settling", "ask", "edges")
    tables: dict[str, Any] = {name: ordered(getattr(found, name)) for name in names_of}
    return replace(found, **tables)


@dataclass(frozen=True)
class _AuditOf:
    """The task: the audit of some queries of a log of this extent."""

    settings: AuditSettings
    extent: Extent

    def __call__(self, prefs: Preferences) -> pa.Table:
        made: list[Any] = []
        try:
            made += parts_of(prefs, Wanted.of(prefs, self.settings), extent=self.extent)
        except ConcordantError as error:  # as an object it keeps which parameters it speaks of
            made = [error]
        return pa.Table.from_batches([row for one in made for row in pieces(0, one)], PIECES)


def _numbers(prefs: Preferences) -> pa.Table:
    """A task: how much some queries hold, and the labels that others may hold, too."""
    members, judged = prefs.member_groups.sizes, prefs.judgments
    alone = (members == 2) & (judged <= FEW)
    facts = prefs.summary()
    numbers = {name: facts[name] for name in ADDED if name in facts}
    numbers |= {"alone": int(alone.sum()), "judged alone": int(judged[alone].sum()), "largest": int(members.max())}
    rows = pa.table([[*numbers], pa.nulls(len(numbers), pa.string()), [*numbers.values()]], schema=NUMBERS)
    labels = {"items": prefs.items, "clusters": prefs.clusters}
    return pa.concat_tables([rows, *(_labels(name, one) for name, one in labels.items() if one is not None)])


def _labels(name: str, labels: Labels) -> pa.Table:
    texts = labels.take(np.arange(len(labels))).cast(pa.string())
    return pa.table([pa.repeat(name, len(texts)), texts, pa.repeat(0, len(texts))], schema=NUMBERS)


def _numbers_of(judged: JudgedQueries) -> dict[str, int]:
    """What all queries hold."""
    each = judged.table(_numbers, NUMBERS).groupBy("what", "label")
    each = each.agg(fn.sum("number").alias("sum"), fn.max("number").alias("largest"))
    whole = each.groupBy("what").agg(fn.count(fn.lit(1)).alias("labels"), fn.sum("sum"), fn.max("largest")).collect()
    found = {
        str(row[0]): int(row[1] if row[0] in LABELS else row[3] if row[0] == "largest" else row[2]) for row in whole
    }
    return found if found.get("never judged", 1) else {name: n for name, n in found.items() if name != "never judged"}
