"""The part of a report that holds a scorer against what people agree on, in words for who reads no papers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from concordant.abstention.held_pairs import unfrozen
from concordant.apps.commands.given import worded
from concordant.apps.report.learned import Learned
from concordant.apps.report.views import short
from concordant.auditing.axioms import axiom_audit
from concordant.errors import ConcordantError, Setting
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences

REFITS = 3
"""Items that are entered twice, and divisions of the people, where a scorer is fitted again."""
ASKED = {
    "pareto": ("Everybody agrees", "Pareto", "Two people or more judged the pair and all prefer the same item."),
    "majority": ("Most agree", "majority", "More people prefer one item of the pair than the other."),
    "condorcet winner": (
        "One item beats every other",
        "Condorcet winner",
        "In this query most people prefer one item to each of the others, so it should be first.",
    ),
    "condorcet order": (
        "The majorities make an order",
        "Condorcet order",
        "In this query the majorities run in no circle, so there is an order that agrees with all of them.",
    ),
    "clones": (
        "Two items judged alike",
        "clones",
        "Everybody judged the two alike against all others, so no other item should come between them.",
    ),
    "copies": (
        "An item entered twice",
        "independence of clones",
        "An item was entered a second time and the scorer fitted again: the order of two others should not change.",
    ),
    "separability": (
        "Two halves of the people agree",
        "separability",
        "The people were dealt into halves and a scorer fitted to each: what both say, all together should say.",
    ),
}
"""What each axiom is called, its name in the literature, and what it asks."""
EXPLAINED = (
    "One person has one vote on a pair. A pair is broken where the scorer does not put the item first that these votes "
    "prefer. Few votes agree by chance, too: the interval says how many of the broken ones would stay broken if "
    "everybody had been asked, and sure are those that are beyond chance each by itself. At best: how few a linear "
    "scorer of the same features must break, by an exact search or between a proven bound and what was found."
)


def axioms_of(
    prefs: Preferences, learned: Learned, features: Any, scores: Any, *, level: float, seed: int
) -> dict[str, Any] | None:
    """Return what ``axiom_audit`` finds of the scores given, else of the scorer shown; None without either."""
    scorer = scores if scores is not None else unfrozen(getattr(learned.ranker, "ranker_", learned.ranker))
    if scorer is None:
        text = "there is no scorer to hold against what people agree on: give its {scores}, or {features} of the items"
        missing = Note("no scorer", text, scores=Setting("scores"), features=Setting("features"))
        learned.absent.setdefault("axioms", missing)
        return None
    if scores is None and features is None:
        text = "a model scores items by their {features}, which are not given"
        learned.absent["axioms"] = Note("no features", text, features=Setting("features"))
        return None
    try:
        found = axiom_audit(prefs, scorer, features, refits=REFITS, level=level, seed=seed)
    except ConcordantError as problem:
        learned.absent["axioms"] = f"the scorer could not be held against what people agree on: {worded(problem)}"
        return None
    rows = []
    for row in found.table.to_pylist():
        title, name, asks = ASKED[row["axiom"]]
        rows.append(row | {"title": title, "name": name, "asks": asks})
    cases = found.cases.to_pylist()
    for case in cases:
        case |= {part: None if case[part] is None else short(case[part]) for part in ("query", "item", "other")}
    return {
        "whose": "the one whose scores were given" if scores is not None else learned.whose,
        "explained": EXPLAINED,
        "level": level,
        "lines": [short(line) for line in found.lines()],
        "advice": [*_advice(rows)],
        "rows": rows,
        "cases": cases,
        "notes": [worded(note) for note in found.notes if note not in prefs.notes],
    }


def _advice(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What could be done, by what the best linear scorer of the features is known to break."""
    if not any(row["violated"] for row in rows):
        if any(row["of"] for row in rows):
            yield "Nothing that people agree on is broken."
        return
    known = [row for row in rows if row["best"] is not None and row["violated"]]
    better = [f"“{row['title']}”" for row in known if row["best"] < row["violated"]]
    others = [f"“{row['title']}”" for row in known if row["best"] >= row["violated"]]
    if better:
        yield (
            "There is a linear scorer of the same features that breaks less, by the last column, of "
            f"{', '.join(better)}: look for it by concordant fit --loss leximax-copeland, or --loss majority "
            "where there are many queries."
        )
    if others:
        yield (
            f"No linear scorer of the same features is known that breaks less of {', '.join(others)}: other "
            "features, or another kind of scorer, may help, another loss does not."
        )


def verdict(found: dict[str, Any] | None) -> str | None:
    """Return the sentence of a report that says whether its scorer keeps what people agree on."""
    if found is None:
        return None
    row = next(
        (row for axiom in ("pareto", "majority") for row in found["rows"] if row["axiom"] == axiom and row["of"]), None
    )
    if row is None:
        return None
    who = "everybody who judged agrees" if row["axiom"] == "pareto" else "a majority agrees"
    pairs = f"one pair on which {who}" if row["of"] == 1 else f"{row['of']:,} pairs on which {who}"
    if row["violated"] in (0, row["of"]):
        all_of = "the" if row["of"] == 1 else "all"
        return f"The scorer {'turns round' if row['violated'] else 'keeps the order of'} {all_of} {pairs}."
    return f"The scorer turns round {row['violated']:,} of the {pairs}."
