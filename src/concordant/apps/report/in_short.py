"""The first sentences of a report: who is first and how sure, for who has never heard of a rank interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from concordant.apps.report.views import View, short
from concordant.errors import counted
from concordant.preferences.preferences import Comparisons
from concordant.preferences.times import said_time
from concordant.ranking.flags import FLAGS, SUPPORTS, parted
from concordant.ranking.structures import structure

Sentence = list[str | int]
"""Parts of a sentence: texts, and items as their numbers in the data."""


RIVALS = 300
"""Items of a query up to which it is looked at who may be the best."""


def in_short(views: list[View], shown: list[dict[str, Any]], level: float) -> list[Sentence]:
    """Return plain sentences on the first of ``views`` (``shown``: their data), and on how many queries are settled."""
    if not views:
        return []
    view, first = views[0], shown[0]
    rest: list[Sentence] = [
        [text] for text in (*_tiers(first, level), *_groups(view, first), *_settled(views), *_circles(view, first))
    ]
    return [*_first(views, first, level), *_resting(view, first), *rest]


def may_lead(views: list[View]) -> list[int] | None:
    """Rows of the first view that may be the best of its largest group; None where that is not known."""
    among = _among_first(views[0]) if views else None
    return (
        None if among is None else [at for at, row in enumerate(among) if row["among_first"] and row["component"] == 1]
    )


def _first(views: list[View], shown: dict[str, Any], level: float) -> Iterator[Sentence]:
    """Who has the best score of the largest group, and how many cannot be told from it."""
    view, board, rows = views[0], views[0].group.board, views[0].span()
    largest = (board.component[rows] == 1) & (board.rank[rows] > 0)
    size, best = int(largest.sum()), int((board.rank[rows][largest] == 1).sum())
    if size < 2:
        return
    item = int(shown["ranking"]["item"][0])
    if view.pooled:
        where = "Over all queries, "
    else:
        where = "" if len(views) == 1 else f"In query “{short(view.name, 60)}”, the most judged, "
    items = f"{size:,} items" + (" of the largest group" if shown["components"] > 1 else "")
    if best > 1:
        yield [where, item, f" and {counted(best - 1, 'others')} share the best score of {items}."]
        return
    last = int(board.rank_upper[rows][0])
    if last < 1:
        yield [where, item, f" has the best score of {items}; how sure that is was not computed."]
    elif last == 1:
        yield [
            where,
            item,
            f" is first of {items}, and surely so: no other rank is possible at {100 * level:g}% confidence.",
        ]
    elif (rivals := _rivals(view)) is not None:
        yield [where, item, _of_rivals(rivals, size - 1, items, level)]
    else:
        yield [
            where,
            item,
            f" has the best score of {items}, but is not surely first: at {100 * level:g}% confidence its rank may be "
            f"anything from {int(board.rank_lower[rows][0]):,} to {last:,}.",
        ]
        yield [f"{_untold(last - 1, size - 1)} by these judgments."]
    for flag in FLAGS:
        if flag.leads and flag.code & int(board.flag[rows][0]):
            yield [item, f" {flag.leads}: {SUPPORTS[structure(board.structure).unlimited].keeps}"]


def _rivals(view: View) -> int | None:
    """How many others of the largest group may be the best; None where that is not known or takes long."""
    among = _among_first(view)
    return None if among is None else sum(bool(row["among_first"]) for row in among if row["component"] == 1) - 1


def _among_first(view: View) -> list[dict[str, Any]] | None:
    board = view.group.board
    if board.interval not in ("hessian", "sandwich") or view.size > RIVALS:
        return None
    query = None if len(board.queries) == 1 else board.queries[view.query]
    rows: list[dict[str, Any]] = board.rank_sets("top", top=1, query=query).to_pylist()
    return rows


def _of_rivals(rivals: int, others: int, items: str, level: float) -> str:
    """How sure the first place is: who cannot be ruled out."""
    sure = f"at {100 * level:g}% confidence"
    if rivals == 0:
        return f" is first of {items}, and surely so: {sure} no other is the best."
    if others == 1:
        left = "the other item cannot"
    elif rivals == others:
        left = f"none of the {others:,} other items can"
    else:
        left = f"{rivals:,} of the {others:,} other items cannot"
    return f" has the best score of {items}, but is not surely first: {left} be ruled out as the best {sure}."


def _resting(view: View, shown: dict[str, Any]) -> Iterator[Sentence]:
    """How many judgments it rests on, and when they were made."""
    board, rows = view.group.board, view.span()
    judged = board.judgments[rows][board.judgments[rows] > 0]
    if len(judged) < 2:
        return
    prefs, number = view.group.prefs, int(view.group.prefs.judgments[view.query])
    when = ""
    if isinstance(prefs, Comparisons) and prefs.time is not None:
        made = prefs.time[prefs.query == view.query]
        when = f" made from {said_time(made.min(), prefs.dated)} to {said_time(made.max(), prefs.dated)}"
    least, most = int(judged.min()), int(judged.max())
    said = f"This rests on {counted(number, 'judgments')}{when}: "
    if least == most:
        yield [f"{said}each item is in {least:,} of them."]
    else:
        first, its = int(shown["ranking"]["item"][0]), int(board.judgments[rows][0])
        yield [f"{said}an item is in {least:,} to {most:,} of them, ", first, f" in {its:,}."]


def _tiers(shown: dict[str, Any], level: float) -> Iterator[str]:
    """How many tiers there are, and what they mean."""
    tier = np.asarray(shown["ranking"]["tier"])[np.asarray(shown["ranking"]["component"]) == 1]
    known = tier[~np.isnan(tier)]
    if len(known) < 2:
        return
    if known.max() > 1:
        yield (
            f"There are {int(known.max()):,} tiers: of two items in different tiers the one in the better tier is "
            f"better, for all such pairs at once at {100 * level:g}% confidence. Within a tier the judgments do not "
            "settle the order."
        )
    else:
        yield (
            f"There are no tiers: nowhere can a line be drawn with all above it better than all below at "
            f"{100 * level:g}% confidence."
        )


def _untold(untold: int, others: int) -> str:
    if others == 1:
        return "The other item cannot be told from it"
    if untold == others:
        return f"None of the {others:,} other items can be told from it"
    return f"{untold:,} of the {others:,} other items cannot be told from it"


def _groups(view: View, shown: dict[str, Any]) -> Iterator[str]:
    groups = shown["components"]
    if groups > 1:
        board = view.group.board
        size = np.bincount(board.component[view.span()])[1:]
        why = parted(None if board.judged is None else board.judged.prefs.kind)
        yield (
            f"The items fall into {groups:,} groups {why}: nothing says how an item "
            f"of one stands to an item of another. The largest holds {int(size[0]):,} of {view.size:,} items."
        )


def _settled(views: list[View]) -> Iterator[str]:
    """In how many queries the first is told from all others, where there are several and intervals."""
    each = [view for view in views if not view.pooled]
    if len(each) < 2:
        return
    last = [int(view.group.board.rank_upper[view.span()][0]) for view in each]
    if max(last) < 1:
        return
    surely = sum(one == 1 for one in last)
    yield f"Query by query, in {surely or 'none'} of {len(each):,} the first item can be told from all others."


def _circles(view: View, shown: dict[str, Any]) -> Iterator[str]:
    """Whether an order pleases every majority, and the one shown."""
    row = {} if shown["audit"] is None else shown["audit"]["row"]
    if row.get("acyclic") is None or not view.group.batch.graphs.first.size:
        return
    if not shown["graph"]["edges"] and not shown["graph"]["left_out"]:
        yield "On no pair is one item preferred to the other, on balance."
        return
    whose = "over all queries " if view.pooled else ""
    against = _against(shown)
    if row["acyclic"]:
        agrees = (
            "the ranking agrees with every one of them" if against == 0 else "an order agrees with every one of them"
        )
        but = f", but the ranking shown goes against {against:,} of {len(shown['graph']['edges']):,}" if against else ""
        yield f"No majorities {whose}run in a circle: {agrees}{but}."
        return
    why = {
        "cyclic": ", and that is more than chance",
        "within sampling noise": ", but chance alone could have made that",
    }.get(str(row.get("cycles_are")), "")
    yield f"Majorities {whose}run in circles (A over B, B over C, C over A), so that no order agrees with all{why}."
    if against is not None:
        yield f"The ranking goes against {against:,} of the {len(shown['graph']['edges']):,} majorities."


def _against(shown: dict[str, Any]) -> int | None:
    """Count the net preferences that the ranking puts the wrong way round; None where they are not all shown."""
    graph, place = shown["graph"], {int(code): at for at, code in enumerate(shown["ranking"]["item"])}
    if graph["left_out"] or any(edge[end] not in place for edge in graph["edges"] for end in (0, 1)):
        return None
    return sum(place[edge[0]] > place[edge[1]] for edge in graph["edges"])
