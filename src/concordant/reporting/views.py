"""The views of a report: all queries together where that means something, then each query, the most judged first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.counted import ONE_QUERY
from concordant.errors import counted
from concordant.graphs import Batch
from concordant.preferences import Preferences
from concordant.ranking import FLAGS, Ranking, rank
from concordant.reporting.values import fair, short
from concordant.structures.registry import structure
from concordant.structures.scores import STATUS

__all__ = ["LIMIT", "Stage", "View", "recurring", "stages_of", "too_large_to_pool", "views_of", "work_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[int, int], None] | None
VIEWS = 100
"""Views of a report at most."""
WORK = 300_000
"""Judgments, or pairs of lists, of the queries that are shown each by itself, at most (but one query is shown)."""
ROWS = 20_000
"""Rows of all rankings at most."""
LIMIT = 3_000_000
"""Judgments, or pairs of lists, beyond which queries are not pooled, and nothing is audited or held out."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Queries that are ranked and audited together: all of them pooled into one, or each by itself."""

    prefs: Preferences
    code: Ints
    """Code in the whole log of each item of ``prefs``."""
    board: Ranking
    pooled: bool
    whole: Preferences
    """All queries of the log, where ``prefs`` holds some of them."""

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
    """One query of a stage."""

    stage: Stage
    query: int
    rows: int
    """Rows of the ranking that are shown."""

    @property
    def pooled(self) -> bool:
        return self.stage.pooled

    @property
    def name(self) -> str:
        if self.stage.pooled:
            return "All queries"
        label = str(self.stage.prefs.queries[self.query])
        return "All judgments" if label == ONE_QUERY and len(self.stage.prefs.queries) == 1 else short(label)

    @property
    def label(self) -> str | None:
        return None if self.stage.pooled else short(str(self.stage.prefs.queries[self.query]))

    @property
    def size(self) -> int:
        """Items of the view."""
        return int(self.stage.start[self.query + 1] - self.stage.start[self.query])

    def ranking(self) -> dict[str, Any]:
        """Return the rows of the ranking, column by column; items are codes of the whole log."""
        board, begin = self.stage.board, int(self.stage.start[self.query])
        rows = slice(begin, begin + self.rows)
        bounded = board.rank_lower[rows] > 0
        return {
            "item": self.stage.code[board.item[rows]],
            **{name: getattr(board, name)[rows] for name in ("component", "rank", "score", "lower", "upper")},
            **{name: np.where(bounded, getattr(board, name)[rows], np.nan) for name in ("rank_lower", "rank_upper")},
            "judgments": board.judgments[rows],
            "flag": [FLAGS[code] for code in board.flag[rows].tolist()],
        }

    def head(self) -> dict[str, Any]:
        """Return what a reader sees first, and what he should know of the ranking."""
        board = self.stage.board
        rows = slice(int(self.stage.start[self.query]), int(self.stage.start[self.query + 1]))
        return {
            "name": self.name,
            "query": self.label,
            "pooled": self.stage.pooled,
            "judgments": int(self.stage.prefs.judgments[self.query]),
            "items": self.size,
            "components": int(board.component[rows].max(initial=0)),
            "ranking": self.ranking(),
            "notes": list(self._notes(rows)),
        }

    def _notes(self, rows: slice) -> Iterator[str]:
        board = self.stage.board
        if self.rows < self.size:
            yield f"the first {self.rows:,} of {self.size:,} rows of the ranking are shown"
        if STATUS[int(board.status["status"][self.query])] == "stopped before convergence":
            yield "the scores stopped before convergence"
        for code, name in enumerate(FLAGS):
            number = int((board.flag[rows] == code).sum())
            if code and number:
                own = "have no score of their own"
                means = own if name == "never compared" else structure(board.structure).beyond
                yield f"{counted(number, 'items')} {name}: they {means}"
        if self.stage.pooled:
            yield from board.notes


def recurring(prefs: Preferences) -> bool:
    """Whether queries may be pooled: at least half of the items are in more than one query."""
    if len(prefs.queries) < 2:
        return False
    queries = np.bincount(prefs.members[1], minlength=len(prefs.items))
    return bool((queries > 1).sum() * 2 >= (queries > 0).sum())


def too_large_to_pool(prefs: Preferences) -> bool:
    """Whether the judgments of all queries together make more pairs than a report works through."""
    return work_of(prefs) > LIMIT


def work_of(prefs: Preferences) -> int:
    """Distinct judgments, or pairs of lists, of all queries."""
    return int(_work(prefs).sum())


def stages_of(prefs: Preferences, structure: str, how: Mapping[str, Any], progress: Progress = None) -> list[Stage]:
    """Rank all queries together, where items recur in them, and each of the most judged; ``how``: options of rank."""
    found = []
    if how.get("interval") == "none":  # the level of a report is that of the audit, too
        how = {name: value for name, value in how.items() if name != "level"}
    if recurring(prefs) and not too_large_to_pool(prefs):
        whole = prefs.pool()
        found.append(_stage(prefs, whole, rank(whole, structure, **how), pooled=True))
    most = np.argsort(-prefs.judgments, kind="stable")[: VIEWS - len(found)]
    affordable = int((np.cumsum(_work(prefs)[most]) <= WORK).sum())
    most = most[: max(affordable, 1)]
    some = prefs if len(most) == len(prefs.queries) else prefs.select(prefs.queries.take(np.sort(most)).to_pylist())
    found.append(_stage(prefs, some, rank(some, structure, progress=progress, **how), pooled=False))
    return found


def _work(prefs: Preferences) -> Floats:
    """Distinct judgments of each query, or the pairs of its lists."""
    if prefs.list_start is None:
        return np.diff(prefs.start).astype(np.float64)
    pairs = np.concatenate(([0.0], np.cumsum(np.diff(prefs.list_start).astype(np.float64) ** 2 / 2)))
    return np.asarray(np.diff(pairs[prefs.start]), np.float64)


def _stage(prefs: Preferences, part: Preferences, board: Ranking, *, pooled: bool) -> Stage:
    code = prefs.items.codes_of(part.items.values).astype(np.int64)
    return Stage(part, code, board, pooled, part if pooled else prefs)


def views_of(stages: list[Stage]) -> list[View]:
    """Return a view for each query of the stages, the most judged first, with the rows that each may show."""
    order = [
        (stage, int(query))
        for stage in stages
        for query in np.argsort(-stage.prefs.judgments, kind="stable")
    ]  # fmt: skip
    sizes = [int(stage.start[query + 1] - stage.start[query]) for stage, query in order]
    return [View(*which, rows) for which, rows in zip(order, fair(sizes, ROWS), strict=True)]
