"""The data of a report, put together from its parts; docs/report.md describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concordant.errors import counted
from concordant.preferences import Preferences
from concordant.reporting.audited import Audited, overall, parts_of
from concordant.reporting.beats import beats_of
from concordant.reporting.difference_graph import graphs_of
from concordant.reporting.in_short import in_short
from concordant.reporting.learned import Learned
from concordant.reporting.values import short, texts
from concordant.reporting.views import Stage, View, recurring, views_of

__all__ = ["Known", "Settings", "data_of"]

SCHEMA = 1
NO_PAIRS: dict[str, Any] = {"pairs": [], "left_out": 0}
NO_GRAPH: dict[str, Any] = {"nodes": [], "edges": [], "cycles": [], "components": 0, "left_out": 0}


@dataclass
class Known:
    """What was found out, part by part."""

    prefs: Preferences
    pairs: str | None
    """Why pairs are not looked at; None where they are."""
    learned: Learned = field(default_factory=Learned)
    stages: list[Stage] = field(default_factory=list)
    audits: list[Audited] = field(default_factory=list)
    annotators: dict[str, Any] | None = None
    absent: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What the report is called and how it was made."""

    title: str | None
    command: str | None
    options: dict[str, Any]


def data_of(known: Known, settings: Settings, version: str) -> dict[str, Any]:
    """Return the data; labels are texts, items codes of ``items``."""
    prefs = known.prefs
    views = views_of(known.stages)
    shown = _views(known, views)
    items, cut = texts(prefs.items, _recoded(shown, len(prefs.items)))
    each = known.stages[-1]
    board = each.board
    return {
        "schema": SCHEMA,
        "title": short(settings.title or "Report on preferences"),
        "facts": prefs.facts,
        "version": version,
        "command": settings.command,
        "settings": settings.options | {"interval": board.interval, "interval_asked": settings.options["interval"]},
        "notes": [short(note) for note in (*board.notes, *known.learned.notes)],
        "left_out": _left_out(known, views, shown, cut),
        "items": items,
        "in_short": in_short(views, shown, settings.options["level"]),
        "views": shown,
        "audit": overall(known.audits[-1]) if known.audits else None,
        "annotators": known.annotators,
        "order": known.learned.order,
        "scorer": known.learned.scorer,
        "coverage": known.learned.coverage,
        "absent": known.absent | known.learned.absent,
    }


def _views(known: Known, views: list[View]) -> list[dict[str, Any]]:
    audits = {id(one): done for one, done in zip(known.stages, known.audits, strict=False)}
    if known.pairs is None:
        pairs, graphs = (
            beats_of(views),
            graphs_of(
                views, {id(one): done.edges_of(one) for one, done in zip(known.stages, known.audits, strict=False)}
            ),
        )
    else:
        pairs, graphs = [dict(NO_PAIRS) for _ in views], [dict(NO_GRAPH) for _ in views]
        known.absent |= {"beats": known.pairs, "graph": known.pairs}
    found = []
    for view, beats, graph in zip(views, pairs, graphs, strict=True):
        done = audits.get(id(view.stage))
        said = (
            {"audit": None, "settling": None, "ask": None} if done is None else parts_of(view, done, known.prefs.items)
        )
        found.append(view.head() | {"beats": beats, "graph": graph} | said)
    return found


def _recoded(views: list[dict[str, Any]], width: int) -> np.ndarray[Any, Any]:
    """Number the items that are shown anew, in every view; return their codes in the log."""
    used = np.zeros(width, bool)
    for view in views:
        used[np.asarray(view["ranking"]["item"])] = True
        for row in view["beats"]["pairs"]:
            used[row[:2]] = True
        used[np.asarray(view["graph"]["nodes"], np.int64)] = True
        for row in view["graph"]["edges"]:
            used[row[:2]] = True
        for cycle in view["graph"]["cycles"]:
            used[cycle] = True
        for row in view["ask"] or []:
            used[[row["first"], row["second"]]] = True
    number = np.cumsum(used) - 1
    for view in views:
        view["ranking"]["item"] = number[view["ranking"]["item"]]
        view["beats"] = view["beats"] | {"pairs": [_numbered(row, number) for row in view["beats"]["pairs"]]}
        graph = view["graph"]
        graph["nodes"] = number[np.asarray(graph["nodes"], np.int64)]
        graph["edges"] = [_numbered(row, number) for row in graph["edges"]]
        graph["cycles"] = [number[cycle] for cycle in graph["cycles"]]
        for row in view["ask"] or []:
            row |= {side: int(number[row[side]]) for side in ("first", "second")}
    return np.flatnonzero(used)


def _numbered(row: list[Any], number: Any) -> list[Any]:
    return [int(number[row[0]]), int(number[row[1]]), *row[2:]]


def _left_out(known: Known, views: list[View], shown: list[dict[str, Any]], cut: int) -> list[str]:
    """What is not on the page, and where it is."""
    said = []
    queries = len(known.prefs.queries)
    if not known.stages[0].pooled and recurring(known.prefs):
        said.append("all queries together make too many pairs to be shown as one; concordant rank --pool ranks them")
    there = sum(not view.pooled for view in views)
    if there < queries:
        audited = bool(known.audits) and len(known.audits[-1].found.queries) == queries
        said.append(
            f"{queries - there:,} of {queries:,} queries, the least judged, are not shown"
            f"{'' if audited else ', and not in the audit'}; concordant rank and concordant audit write all of them"
        )
    rows = sum(view.size - view.rows for view in views)
    if rows:
        said.append(f"{counted(rows, 'rows')} of rankings are not shown; concordant rank writes all of them")
    for name, what in (("beats", "judged pairs"), ("graph", "net preferences")):
        number = sum(view[name]["left_out"] for view in shown)
        if number:
            said.append(
                f"{number:,} {what} are not shown, those of the items that rank lowest"
                + ("; concordant audit --edges writes all of them" if name == "graph" else "")
            )
    if cut:
        said.append(f"of {counted(cut, 'items')} only the beginning of the label is shown, up to …")
    return said
