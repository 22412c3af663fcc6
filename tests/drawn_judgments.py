"""Judgments drawn at random, and what a log of them has to come to: counts of distinct judgments, in plain Python.

A ``Drawn`` holds the judgments before they are written; its ``truth`` is computed from them without the package. What
the package read is put into the same form by ``counted``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from concordant.preferences.preferences import Preferences

__all__ = ["KINDS", "ONE_QUERY", "Drawn", "Known", "canonical", "counted", "draw_judgments"]

KINDS = ("comparisons", "selections", "choices", "orders", "ratings")
ONE_QUERY = "all"
"""The label of the only query of a log without queries."""
PLAIN = ["a", "b", "c", "d", "e", "x1", "model-7", "GPT 4", "Zoë", "01", "1.0", "1e3", "-3", "007"]
ODD = [
    *("NULL", "null", "None", "nan", "NaN", "NA", "inf", "true", "0", "-", "#", "# x", "\\", "\\N", "\\n", "'", '"'),
    *('say "hi"', '""', ",", ";", "\t", "|", "a,b", "a\tb", "a\nb", "a\r\nb", "\n", "é", "e\u0301", "日本語", "👩‍🚀"),
    *("\u202eabc", "\u200b", "\xa0", "<b>x</b>", "{}", "[1]", '{"a": 1}', "=1+1", "@x", "'; DROP TABLE t; --", "%s"),
    *("$(id)", "../x", "a" * 300, "İ", "ß", "ſ", "\x7f", "\u2028", "1_000", "１２", "+5", "0x10", "A", "B", "\\u0041"),
    *(" a", "a ", "a  b", "\ufeffx", "x:1", "{x}", "tie?", "winner ", "COUNT"),
]
WORDS = frozenset(
    {"left", "right", "tie", "draw", "drawn", "equal", "both bad", "bothbad", "both_bad", "tie (bothbad)"}
    | {"tie(bothbad)", "tie (both bad)", "tie_bothbad", "model_a", "model_b", "player1", "player2", "1", "2", "a", "b"}
    | {"h", "home", "away", "home_team", "away_team", "first", "second", "model_x", "model_y", "chosen", "rejected"}
)
"""Words by which an outcome may name a side or a tie: not all of them are items of drawn logs with outcomes."""
RARE = ["tie", "left", "Right", "draw", "model_a"]

Judgment = tuple[Any, ...]


@dataclass
class Known:
    """Counts of distinct judgments, and the items that are known of a query without a judgment."""

    counts: Counter[Judgment] = field(default_factory=Counter)
    declared: set[tuple[Any, Any]] = field(default_factory=set)

    def difference(self, other: Known) -> str:
        """Say in a line how two differ; empty where they do not."""
        if self.counts != other.counts:
            more = [(one, n, other.counts[one]) for one, n in self.counts.items() if other.counts[one] != n]
            less = [(one, 0, n) for one, n in other.counts.items() if one not in self.counts]
            return f"{len(more)} + {len(less)} counts differ: {(more + less)[:4]!r}"[:1500]
        if self.declared != other.declared:
            return f"declared: {sorted(map(repr, self.declared ^ other.declared))[:4]}"
        return ""


@dataclass
class Drawn:
    """A log before it is written: each judgment as (query, cluster, what, how often).

    What: of comparisons (winner, loser, tie, weight); of lists a tuple of (item, value), selections as shown (1 + g
    where it was clicked and −g where not, after g positions of nothing), a value of None (orders) for no opinion.
    """

    kind: str
    judgments: list[tuple[Any, Any, tuple[Any, ...], int]]
    items: list[Any]
    queries: bool
    """Whether there is a column of queries; else every query is None."""
    clusters: bool
    by_query: bool = False
    """Ratings only: all ratings of a query are one judgment, so a query occurs once."""

    def truth(self, texts: bool) -> Known:
        """Return what reading has to come to; ``texts``: the format holds labels as texts only."""
        known = Known()
        for query, cluster, what, often in self.judgments:
            labels = [str(one) if texts and one is not None else one for one in (query, cluster)]
            where = labels[0] if self.queries else ONE_QUERY
            if self.kind == "comparisons":
                first, second = (str(one) if texts else one for one in what[:2])
                told: tuple[Any, ...] = (first, second, *what[2:])
            else:
                told = tuple([(str(item) if texts else item, value) for item, value in what])
            known.declared |= (
                {(where, item) for item, value in told if value is None} if self.kind == "orders" else set()
            )
            one = canonical(self.kind, where, labels[1], told)
            if one is not None:
                known.counts[one] += often
        known.declared -= {(one[0], item) for one in known.counts for item, _ in one[2]} if known.declared else set()
        return known


def canonical(kind: str, query: Any, cluster: Any, what: Sequence[Any]) -> Judgment | None:
    """Return a judgment in the form in which equal ones are equal; None of an order without an opinion."""
    if kind == "comparisons":
        winner, loser, tie, weight = what
        if tie and winner > loser:
            winner, loser = loser, winner
        return query, cluster, (winner, loser, bool(tie), float(weight))
    if kind == "orders":
        told = [(item, float(rank)) for item, rank in what if rank is not None]
        tiers = {rank: tier for tier, rank in enumerate(sorted({rank for _, rank in told}), 1)}
        entries = tuple(sorted((tiers[rank], item) for item, rank in told))
        return (query, cluster, tuple((item, float(tier)) for tier, item in entries)) if entries else None
    entries = tuple((item, float(value)) for item, value in what)
    return query, cluster, entries if kind == "selections" else tuple(sorted(entries))


def counted(prefs: Preferences) -> Known:
    """Put what the package holds into the same form, entry by entry."""
    known = Known()
    queries, items = prefs.queries.tolist(), prefs.items.tolist()
    clusters = None if prefs.clusters is None else prefs.clusters.tolist()
    for place in range(prefs.distinct):
        query = queries[int(prefs.query[place])]
        cluster = None if clusters is None or prefs.cluster is None else clusters[int(prefs.cluster[place])]
        if prefs.kind == "comparisons":
            weight = 1.0 if prefs.weight is None else float(prefs.weight[place])
            tie = prefs.tie is not None and bool(prefs.tie[place])
            what: tuple[Any, ...] = (items[prefs.winner[place]], items[prefs.loser[place]], tie, weight)
            if tie:  # by code is by label, but the order of labels is ours
                what = (*sorted(what[:2]), *what[2:])
        else:
            at = range(int(prefs.list_start[place]), int(prefs.list_start[place + 1]))
            what = tuple((items[prefs.list_item[entry]], float(prefs.list_value[entry])) for entry in at)
            if prefs.kind in ("choices", "ratings"):
                what = tuple(sorted(what))
            elif prefs.kind == "orders":
                what = tuple(sorted(what, key=lambda entry: (entry[1], entry[0])))
        known.counts[(query, cluster, what)] += int(prefs.count[place])
    known.declared = {(queries[query], items[item]) for query, item in prefs.declared.tolist()}
    return known


# -- drawing ----------------------------------------------------------------------------------------------------------
def draw_labels(random: Random, most: int, *, odd: float = 0.4) -> list[Any]:
    """Draw up to ``most`` distinct labels, all texts or all integers."""
    number = random.randint(2, most)
    if random.random() < 0.35:
        low, high = random.choice([(0, 9), (1, 40), (-5, 5), (2**31 - 3, 2**31 + 3), (2**53, 2**53 + 9)])
        if random.random() < 0.1:
            low, high = random.choice([(2**63 - 9, 2**63 - 1), (-(2**63), -(2**63) + 9)])
        return random.sample(range(low, high + 1), min(number, high - low + 1))
    pool = PLAIN if random.random() > odd else [*ODD, *PLAIN]
    labels: list[Any] = random.sample(pool, min(number, len(pool)))
    if random.random() < 0.03:
        labels[0] = random.choice(RARE)
    return labels


def draw_judgments(random: Random, kind: str | None = None) -> Drawn:
    """Draw a small list of judgments of one kind."""
    kind = kind or random.choices(KINDS, [5, 2, 1, 2, 2])[0]
    items = draw_labels(random, 7)
    queries = draw_labels(random, 4) if random.random() < 0.6 else []
    clusters = draw_labels(random, 4) if random.random() < 0.15 and kind != "ratings" else []
    by_query = kind == "ratings" and random.random() < 0.5
    if by_query:
        queries = draw_labels(random, 6)
    drawn = Drawn(kind, [], items, bool(queries), bool(clusters), by_query)
    weights = [1.0] if random.random() < 0.7 else [1.0, 0.5, 2.25, 0.1, 3.0, 1e-7, 12345.678, 1 / 3]
    size = random.choice([1, 2, 3, 5, 8, 20])
    for place in range(min(size, len(queries)) if by_query else size):
        query = queries[place] if by_query else random.choice(queries) if queries else None
        cluster = random.choice(clusters) if clusters else None
        often = random.choice([1, 1, 1, 2, 3, 5]) if random.random() < 0.98 else random.choice([2**31, 2**40, 10**6])
        if kind == "comparisons":
            one, other = random.sample(items, 2)
            what: tuple[Any, ...] = (one, other, random.random() < 0.2, random.choice(weights))
        else:
            what = _draw_list(random, kind, items)
        drawn.judgments.append((query, cluster, what, often))
    if kind == "orders" and all(value is None for *_, what, _ in drawn.judgments for _, value in what):
        query, cluster, what, often = drawn.judgments[0]
        drawn.judgments[0] = (query, cluster, ((what[0][0], 1.0), *what[1:]), often)
    return drawn


def _draw_list(random: Random, kind: str, items: list[Any]) -> tuple[tuple[Any, Any], ...]:
    chosen = random.sample(items, random.randint(1, len(items)))
    if kind == "orders":
        pool = random.choice([[1, 2, 3], list(range(1, 9)), [1.0, 1.5, 2.5, 7.25]])
        ranks = [random.choice(pool) if random.random() < 0.95 else None for _ in chosen]
        return tuple(zip(chosen, ranks, strict=True))
    if kind == "ratings":
        pool = random.choice([[1, 2, 3, 4, 5], [0, 1], [-1.5, 0.5, 1e-9, 4.0, 1e15], [0.1, 0.2, 0.3]])
        return tuple((item, random.choice(pool)) for item in chosen)
    click = random.randrange(-1, len(chosen))
    gaps = [random.choice([0, 0, 0, 2]) if kind == "selections" else 0 for _ in chosen]
    return tuple(
        (item, 1 + gap if place == click else -gap) for place, (item, gap) in enumerate(zip(chosen, gaps, strict=True))
    )
