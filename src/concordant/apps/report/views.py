"""The views of a report: all queries together, then each query (the most judged first); and its data as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.commands.given import worded
from concordant.errors import counted
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import ONE_QUERY, Labels
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.status import Status
from concordant.ranking.flags import FLAGS, LABELS, flag_said
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.structures import structure

LONGEST = 2_000
"""Letters of one line of words, or of one label, that a report shows."""
LETTERS = 1_000_000
"""Letters of all labels beyond which labels are cut more."""
CUT = 200
"""Letters of a label where there are too many in all."""


def plain(value: Any) -> Any:
    """Return nested data as JSON holds it: infinities are the texts "inf" and "-inf", NaN is null, whole numbers whole.

    >>> plain({"x": np.array([1.0, np.inf, np.nan]), "n": np.int64(3), "label": "1"})
    {'x': [1, 'inf', None], 'n': 3, 'label': '1'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value


def texts(labels: Labels, codes: NDArray[np.integer[Any]]) -> tuple[list[str], int]:
    """Return the labels of these codes as texts, and how many of them had to be cut."""
    found = [str(label) for label in labels.take(codes).to_pylist()]
    most = CUT if sum(map(len, found)) > LETTERS else LONGEST
    return [short(text, most) for text in found], sum(len(text) > most for text in found)


def short(text: str, most: int = LONGEST) -> str:
    """Cut a text that is too long to be read.

    >>> short("abcdef", 4), short("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fair(sizes: Iterable[int], budget: int) -> list[int]:
    """Share a budget: who needs little gets it all, the others the same each.

    >>> fair([5, 100, 50], 60)
    [5, 28, 27]
    """
    wanted = list(sizes)
    given = [0] * len(wanted)
    left = len(wanted)
    for place in sorted(range(len(wanted)), key=lambda place: (wanted[place], -place)):
        given[place] = min(wanted[place], budget // left)
        budget -= given[place]
        left -= 1
    return given


def thinned(steps: int, most: int, kept: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return which of so many steps are shown: ``kept`` always, others as evenly as ``most`` allows.

    >>> thinned(10, 4, np.array([0, 2])).tolist()
    [0, 2, 3, 6, 9]
    """
    even = np.linspace(0, steps - 1, min(most, steps)).round().astype(np.int64)
    return np.unique(np.concatenate((even, np.asarray(kept, np.int64))))


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

VIEWS = 100
"""Views of a report at most."""
WORK = 300_000
"""Judgments, or pairs of lists, of the queries that are shown each by itself, at most (but one query is shown)."""
ROWS = 20_000
"""Rows of all rankings at most."""
LIMIT = 3_000_000
"""Judgments, or pairs of lists, beyond which queries are not pooled, and nothing is audited or held out."""


@dataclass(frozen=True, eq=False)
class QueryGroup:
    """Queries that are ranked and audited together: all of them pooled into one, or each by itself."""

    prefs: Preferences
    code: Ints
    """Code in the whole log of each item of ``prefs``."""
    board: Ranking
    pooled: bool
    whole: Preferences
    """All queries of the log, where ``prefs`` holds some of them."""
    uncontrolled: Ranking | None = None
    """The same judgments ranked without their covariates, where they have some."""

    @cached_property
    def work(self) -> int:
        """Distinct judgments, or pairs of lists: beyond ``LIMIT`` only what is cheap is done."""
        return work_of(self.prefs)

    @cached_property
    def batch(self) -> Batch:
        return Batch.whole(self.prefs)

    @cached_property
    def start(self) -> Ints:
        """Rows of query q in the ranking are start[q]:start[q + 1]."""
        return np.searchsorted(self.board.query, np.arange(len(self.prefs.queries) + 1))

    @cached_property
    def place(self) -> Ints:
        """Place in its query's ranking of each node of ``batch``, 0 first; the components one after the other."""
        board = self.board
        found = np.empty(len(self.batch.item), np.int64)
        found[self.batch.node_of(board.query, board.item)] = np.arange(len(board)) - self.start[board.query]
        return found

    @cached_property
    def outer(self) -> Ints:
        """Code in the whole log of the item of each node of ``batch``."""
        return self.code[self.batch.item]


@dataclass(frozen=True, eq=False)
class View:
    """One query of a group."""

    group: QueryGroup
    query: int
    rows: int
    """Rows of the ranking that are shown."""

    @property
    def pooled(self) -> bool:
        return self.group.pooled

    @property
    def name(self) -> str:
        if self.group.pooled:
            return "All queries"
        label = str(self.group.prefs.queries[self.query])
        return "All judgments" if label == ONE_QUERY and len(self.group.prefs.queries) == 1 else short(label)

    @property
    def label(self) -> str | None:
        return None if self.group.pooled else short(str(self.group.prefs.queries[self.query]))

    @property
    def size(self) -> int:
        """Items of the view."""
        return int(self.group.start[self.query + 1] - self.group.start[self.query])

    def span(self, most: int | None = None) -> slice:
        """Its rows in the ranking of the group, or the first of them."""
        begin = int(self.group.start[self.query])
        return slice(begin, begin + (self.size if most is None else most))

    def ranking(self) -> dict[str, Any]:
        """Return the rows of the ranking, column by column; items are codes of the whole log."""
        board, rows = self.group.board, self.span(self.rows)
        ranks = {name: getattr(board, name)[rows] for name in ("rank", "rank_lower", "rank_upper")}
        return {
            "item": self.group.code[board.item[rows]],
            **{name: getattr(board, name)[rows] for name in ("component", "score", "lower", "upper")},
            **{name: np.where(column > 0, column, np.nan) for name, column in ranks.items()},
            "judgments": board.judgments[rows],
            "flag": [LABELS[codes] for codes in board.flag[rows].tolist()],
            "provisional": board.provisional[rows].tolist(),
            "tier": tiers_of(board.component[rows], board.rank[rows], board.rank_upper[rows]),
        }

    def win_rates(self) -> Floats:
        """Share of its judgments that each row of the ranking won, a tie half; judgments by their strengths."""
        graphs, nodes = self.group.batch.graphs, len(self.group.batch.item)
        first, second = graphs.first, graphs.second
        won = np.bincount(first, graphs.wins + graphs.ties / 2, nodes)
        won += np.bincount(second, graphs.losses + graphs.ties / 2, nodes)
        strength = graphs.wins + graphs.losses + graphs.ties
        all_of_them = np.bincount(first, strength, nodes) + np.bincount(second, strength, nodes)
        share = np.divide(won, all_of_them, out=np.full(nodes, np.nan), where=all_of_them > 0)
        rows, board = self.span(self.rows), self.group.board
        return np.asarray(share[self.group.batch.node_of(board.query[rows], board.item[rows])])

    def coefficients(self) -> list[dict[str, Any]]:
        """Return what stands beside the scores: a home advantage, covariates, ties with a parameter."""
        board = self.group.board
        mine = board.queries[self.query]
        rows = [row for row in board.coefficient_table().to_pylist() if row["query"] == mine]
        return [{name: value for name, value in row.items() if name != "query"} for row in rows]

    def uncontrolled(self) -> dict[str, Any] | None:
        """Return ranks without the covariates, row by row of the ranking; None where there are none."""
        other = self.group.uncontrolled
        if other is None:
            return None
        rows, begin = self.span(self.rows), int(np.searchsorted(other.query, self.query))
        end = int(np.searchsorted(other.query, self.query + 1))
        at = begin + np.argsort(other.item[begin:end])
        at = at[np.searchsorted(other.item[at], self.group.board.item[rows])]
        ranks = {name: getattr(other, name)[at] for name in ("rank", "rank_lower", "rank_upper")}
        return {name: np.where(column > 0, column, np.nan) for name, column in ranks.items()}

    def head(self) -> dict[str, Any]:
        """Return what a reader sees first, and what he should know of the ranking."""
        board, rows = self.group.board, self.span()
        return {
            "name": self.name,
            "query": self.label,
            "pooled": self.group.pooled,
            "judgments": int(self.group.prefs.judgments[self.query]),
            "items": self.size,
            "components": int(board.component[rows][board.rank[rows] > 0].max(initial=0)),
            "ranking": self.ranking(),
            "coefficients": self.coefficients(),
            "uncontrolled": self.uncontrolled(),
            "notes": list(self._notes(rows)),
        }

    def _notes(self, rows: slice) -> Iterator[str]:
        board = self.group.board
        if self.rows < self.size:
            yield f"the first {self.rows:,} of {self.size:,} rows of the ranking are shown"
        if board.status["status"][self.query] == Status.STOPPED:
            yield "the scores stopped before convergence"
        if number := int(board.provisional[rows].sum()):
            yield f"{counted(number, 'items')} stand apart after the ranking: the judgments do not decide their places"
        for flag in FLAGS:
            if number := int((board.flag[rows] & flag.code > 0).sum()):
                yield flag_said(flag, number, structure(board.structure).unlimited)
        if self.group.pooled:
            yield from map(worded, board.notes)


def recurring(prefs: Preferences) -> bool:
    """Whether queries may be pooled: at least half of the items are in more than one query."""
    if len(prefs.queries) < 2:
        return False
    queries = np.bincount(prefs.members[1], minlength=len(prefs.items))
    return bool((queries > 1).sum() * 2 >= (queries > 0).sum())


def singles(prefs: Preferences) -> bool:
    """Whether the queries are names of single judgments: half of them or more have one, of items that recur."""
    return bool(np.median(prefs.judgments) <= 1) and recurring(prefs) and work_of(prefs) <= LIMIT


def work_of(prefs: Preferences) -> int:
    """Distinct judgments, or pairs of lists, of all queries."""
    return int(prefs.work.sum())


def query_groups(prefs: Preferences, structure: str, how: Mapping[str, Any]) -> list[QueryGroup]:
    """Rank all queries together, where items recur in them, and each of the most judged; ``how``: options of rank.

    Queries of one judgment each are no rankings: they are ranked together only.
    """
    found = []
    if how.get("interval") == "none":  # the level of a report is that of the audit, too
        how = {name: value for name, value in how.items() if name != "level"}
    if recurring(prefs) and work_of(prefs) <= LIMIT:
        whole = prefs.pool()
        found.append(_group(prefs, whole, structure, how, pooled=True))
        if singles(prefs):
            return found
    most = np.argsort(-prefs.judgments, kind="stable")[: VIEWS - len(found)]
    affordable = int((np.cumsum(prefs.work[most]) <= WORK).sum())
    most = most[: max(affordable, 1)]
    some = prefs if len(most) == len(prefs.queries) else prefs.select(prefs.queries.take(np.sort(most)).to_pylist())
    found.append(_group(prefs, some, structure, how, pooled=False))
    return found


def _group(prefs: Preferences, part: Preferences, name: str, how: Mapping[str, Any], *, pooled: bool) -> QueryGroup:
    code = prefs.items.codes_of(part.items.values).astype(np.int64)
    other = None
    if isinstance(part, Comparisons) and part.covariates is not None:
        other = rank(replace(part, covariates=None, covariate_names=()), name, **how)
    return QueryGroup(part, code, rank(part, name, **how), pooled, part if pooled else prefs, other)


def tiers_of(component: NDArray[np.integer[Any]], rank: Ints, upper: Ints) -> Floats:
    """Return the tier of each row of a ranking, NaN without a rank or intervals; as ``Ranking.rank_sets("tiers")``.

    A tier ends after k rows of a component where none of the first k may have a rank beyond k.

    >>> tiers_of(np.array([1, 1, 1, 2, 2]), np.array([1, 2, 3, 1, 2]), np.array([1, 3, 3, 2, 2])).tolist()
    [1.0, 2.0, 2.0, 1.0, 1.0]
    """
    tier = np.full(len(rank), np.nan)
    for number in np.unique(component):
        rows = np.flatnonzero((component == number) & (rank > 0) & (upper > 0))
        ends = np.maximum.accumulate(upper[rows]) <= np.arange(1, len(rows) + 1)
        tier[rows] = 1 + np.cumsum(ends) - ends
    return tier


def views_of(groups: list[QueryGroup]) -> list[View]:
    """Return a view for each query of the groups, the most judged first, with the rows that each may show."""
    order = [
        (group, int(query))
        for group in groups
        for query in np.argsort(-group.prefs.judgments, kind="stable")
    ]  # fmt: skip
    sizes = [int(group.start[query + 1] - group.start[query]) for group, query in order]
    return [View(*which, rows) for which, rows in zip(order, fair(sizes, ROWS), strict=True)]


PAIRS = 40_000
"""Pairs of all views at most."""


def beats_of(views: list[View]) -> list[dict[str, Any]]:
    """Return for each view the pairs that were judged: better and worse item, wins of either, ties.

    Wins are sums of strengths (their number where none has a weight). Where there are too many, the pairs of the items
    that rank highest are shown.
    """
    sizes = [int(view.group.batch.graphs.pairs.sizes[view.query]) for view in views]
    return [_beats(view, most) for view, most in zip(views, fair(sizes, PAIRS), strict=True)]


def _beats(view: View, most: int) -> dict[str, Any]:
    group = view.group
    graphs, place, outer = group.batch.graphs, group.place, group.outer
    pairs = np.arange(graphs.pair_start[view.query], graphs.pair_start[view.query + 1])
    first, second = graphs.first[pairs], graphs.second[pairs]
    chosen = nearest_top(place[first], place[second])[:most]
    pairs, first, second = pairs[chosen], first[chosen], second[chosen]
    swap = place[first] > place[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    wins, losses = graphs.wins[pairs], graphs.losses[pairs]
    columns = (
        outer[better], outer[worse], np.where(swap, losses, wins), np.where(swap, wins, losses), graphs.ties[pairs]
    )  # fmt: skip
    rows = [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return {"pairs": rows, "left_out": int(graphs.pair_start[view.query + 1] - graphs.pair_start[view.query]) - most}


def nearest_top(one: Ints, other: Ints) -> Ints:
    """Order pairs of places so that those of the first m items come before all others, for every m."""
    return np.lexsort((np.minimum(one, other), np.maximum(one, other)))
