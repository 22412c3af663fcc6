"""What an adapter makes of a file: a table of votes under the usual names, or of scores of systems on tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, counted, few
from concordant.io.log.formats import Log
from concordant.io.published.documents import Head, number
from concordant.preferences.notes import Note

SCORES = "scores"
SCHEMA = pa.schema(
    [("system", pa.large_string()), ("task", pa.large_string()), ("score", pa.float64()), ("trial", pa.large_string())]
)


@dataclass(frozen=True)
class Published:
    """A file that was recognised, read.

    ``kind`` is that of a log (comparisons, orders) or ``SCORES``; ``table`` has the usual columns of that kind, or
    system, task, score and, where a system has several scores on a task, trial. ``columns`` are those of the file, by
    what they are.
    """

    layout: str
    kind: str
    table: pa.Table
    told: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def systems(self) -> int:
        """Number of systems, of scores."""
        return len(self.table["system"].unique())

    @property
    def tasks(self) -> int:
        """Number of tasks, of scores."""
        return len(self.table["task"].unique())

    @property
    def size(self) -> str:
        """What scores there are, in words."""
        return f"scores of {counted(self.systems, 'systems')} on {counted(self.tasks, 'tasks')}"


@dataclass(frozen=True)
class Layout:
    """A layout of JSON files: what it is called, how its first object is known, and how its scores are read.

    Of one ``family`` the layout with the greater ``grain`` says more: scores of single samples beside their mean.
    """

    name: str
    known: Callable[[Head], bool]
    read: Callable[[Log, Head, Scores], None]
    family: str = ""
    grain: int = 0


@dataclass
class Scores:
    """Scores as they are read, and what was said and left out on the way."""

    name: str
    system: list[str] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    trial: list[str | None] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    told: dict[str, set[str]] = field(default_factory=dict)

    def add(self, system: Any, task: Any, score: Any, trial: Any = None, missing: str = "have no score") -> None:
        """Take a score; one that is none is counted as ``missing``."""
        value = number(score)
        if value is None or system is None or task is None:
            self.missing[missing if value is None else "name no system or no task"] += 1
            return
        self.system.append(str(system))
        self.task.append(str(task))
        self.score.append(value)
        self.trial.append(None if trial is None else str(trial))

    def say(self, sentence: str, name: Any = "") -> None:
        """Keep what a reader should know; ``{names}`` in it becomes the names that it was said of."""
        self.told.setdefault(sentence, set()).add(str(name))

    def published(self, layout: str) -> Published:
        """Return the table of all that was taken. Errors (InputError): nothing was."""
        lost = [f"{times:,} {why}" for why, times in self.missing.items()]
        if not self.score:
            why = f": {'; '.join(lost)}" if lost else ""
            raise InputError(f"{self.name}: {layout} without a score{why}")
        seen: Counter[tuple[str, str]] = Counter()
        trials: list[str | None] = []
        for system, task, trial in zip(self.system, self.task, self.trial, strict=True):
            seen[system, task] += 1
            trials.append(trial if trial is not None else str(seen[system, task]))
        table = pa.table([self.system, self.task, self.score, trials], schema=SCHEMA)
        if max(seen.values()) == 1:
            table = table.drop_columns("trial")
        notes = [
            Note("as published", "{log}: " + text, log=self.name, names=few(sorted(names)))
            for text, names in self.told.items()
        ]
        if lost:
            text = "{log}: of {of:scores}, {lost}; they are left out"
            total = len(self.score) + sum(self.missing.values())
            notes.append(Note("scores left out", text, log=self.name, of=total, lost="; ".join(lost)))
        return Published(layout, SCORES, table, tuple(notes))
