"""Which columns seem to hold two items and an outcome, by their values: what to ask where names do not tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import duckdb as library

from concordant.apps.doctor.columns import Looks
from concordant.errors import few, shown
from concordant.io.log.formats import Log
from concordant.preferences.layouts import PAIRS, plain
from concordant.preferences.values import decode

MOST_VALUES, MOST_COLUMNS, CODES = 5_000, 60, 6
SHARED = 0.5
"""Share of values that two columns of items have in common, of all that either has."""
WORDS = frozenset(
    [
        "a",
        "b",
        "left",
        "right",
        "first",
        "second",
        "1",
        "2",
        "0",
        "-1",
        "0.5",
        "tie",
        "draw",
        "both",
        "neither",
        "equal",
        "same",
        "none",
        "win",
        "loss",
        "model_a",
        "model_b",
        "both_bad",
    ]
) | {"tie (bothbad)"}


@dataclass
class Guess:
    """Columns that read as votes, and questions where something is open."""

    columns: dict[str, str] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    outcomes: str = ""
    """What the values of the outcome mean, as an option, where they are words that are not known unasked."""


def guesses(log: Log, looks: Looks | None) -> Guess:
    """Return what the values of columns suggest: two that share most of their values, and a third that names one."""
    if looks is None:
        return Guess()
    values: dict[str, set[str]] = {}
    for name in log.columns[:MOST_COLUMNS]:
        if looks.filled.get(name, 0) < 2 or looks.distinct[name] > MOST_VALUES:
            continue
        try:
            rows = looks.ask(name, f"SELECT DISTINCT {{column}}::VARCHAR FROM {{source}} LIMIT {MOST_VALUES}")
        except library.Error:
            continue
        texts = [row[0] for row in rows if row[0] is not None]
        values[name] = {str(decode(one)) if log.as_json else str(one) for one in texts}
    pairs = []
    for one, other in combinations([name for name in values if len(values[name]) > 1], 2):
        ours, theirs = values[one], values[other]
        shared = len(ours & theirs) / len(ours | theirs)
        if shared >= SHARED and not (ours | theirs) <= WORDS and not _are_numbers(ours | theirs):
            pairs.append((shared, one, other))
    names = {plain(name): name for name in log.columns}
    called = next(((names[a], names[b]) for a, b in PAIRS if a in names and b in names), None)
    if called is not None and called[0] in values and called[1] in values:
        pairs = [(1.0, *called)]
    if not pairs:
        return Guess()
    _, one, other = max(pairs, key=lambda pair: ((plain(pair[1]), plain(pair[2])) in PAIRS, pair[0]))
    items = values[one] | values[other]
    third = [
        name
        for name in values
        if name not in (one, other)
        and len(values[name]) > 1
        and ({text.strip().lower() for text in values[name] - items} <= WORDS)
        and (values[name] & items or len(values[name]) <= 5)
    ]
    won = {name: outcomes for name in values if name not in (one, other) and (outcomes := _meant(values[name]))}
    if len(won) == 1 and not third:
        ((name, outcomes),) = won.items()
        return Guess({"left": one, "right": other, "outcome": name}, outcomes=outcomes)
    sides = f"{shown(one)} and {shown(other)} hold the same items"
    if len(third) == 1:
        return Guess({"left": one, "right": other, "outcome": third[0]})
    if third:
        return Guess({}, [f"{sides}; which of {', '.join(map(shown, third[:6]))} says who won?"])
    coded = [name for name in values if name not in (one, other) and 2 <= len(values[name]) <= CODES]
    if coded:
        said = "; ".join(f"{shown(name)}: {few(sorted(values[name]), CODES)}" for name in coded[:4])
        what = "which column says who won, and by which values" if len(coded) > 1 else "which value says who won"
        return Guess(
            {}, [f"{sides}; {what} ({said})? Then: --outcome COLUMN --outcomes VALUE=left,VALUE=right,VALUE=tie"]
        )
    return Guess(
        {}, [f"{sides}, and no column says who won: is {shown(one)} always the winner? Then name it --winner."]
    )


MEANT = {
    **dict.fromkeys(("better", "win", "wins", "won", "preferred", "superior", ">"), "left"),
    **dict.fromkeys(("worse", "lose", "loses", "lost", "loss", "inferior", "<"), "right"),
    **dict.fromkeys(
        ("same", "equal", "tie", "tied", "draw", "similar", "neither", "both", "no preference", "="), "tie"
    ),
}
"""What words usually mean that say how the first of two is."""


def _meant(words: set[str]) -> str:
    """Return what words mean as an option; nothing where one is unknown, or none names a side."""
    said = {word: MEANT.get(word.strip().lower()) for word in sorted(words)}
    if (
        None in said.values()
        or not {"left", "right"} & {*said.values()}
        or any("," in one or "=" in one for one in said)
    ):
        return ""
    return ",".join(f"{word}={end}" for word, end in said.items())


def _are_numbers(texts: set[str]) -> bool:
    try:
        return all(float(one) is not None for one in texts)
    except ValueError:
        return False
