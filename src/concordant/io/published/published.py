"""What an adapter makes of a file: a table of votes under the usual names, or of scores of systems on tasks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, counted, few
from concordant.io.log.formats import Log
from concordant.io.noted import PUBLISHED
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
    read: Callable[[Log, Head, Any], None]
    family: str = ""
    grain: int = 0
    named: str = "folder"
    """What names the system, if need be: what stands "inside" a file, its "folder", the "file" itself."""
    alone: bool = False
    """Whether it is so general that a file of it in a folder may be anything."""
    says: str = ""
    """Of votes: how they are read; ``columns`` are those of the file, by what they are."""
    columns: tuple[tuple[str, str], ...] = ()

    def reader(self, name: str) -> Scores | Votes:
        """Return what takes the records of files of this layout."""
        return Votes(name) if self.says else Scores(name)


@dataclass
class Taken:
    """What is said and left out while records are read."""

    name: str
    missing: Counter[str] = field(default_factory=Counter)
    told: dict[str, set[str]] = field(default_factory=dict)
    places: dict[Path, str] = field(default_factory=dict)
    """What tells the files of a folder apart, where they do not name their system."""

    def say(self, sentence: str, name: Any = "") -> None:
        """Keep what a reader should know; ``{names}`` in it becomes the names that it was said of."""
        self.told.setdefault(sentence, set()).add(str(name))

    def notes(self, what: str, taken: int) -> tuple[Note, ...]:
        """Return all that was said, and how many of ``what`` are left out. Errors (InputError): nothing was taken."""
        lost = "; ".join(f"{times:,} {why}" for why, times in self.missing.items())
        if not taken:
            raise InputError(f"{self.name}: {what}" + (f": {lost}" if lost else ""))
        notes = [
            Note(PUBLISHED, "{log}: " + text, log=self.name, names=few(sorted(names)))
            for text, names in self.told.items()
        ]
        if lost:
            text = "{log}: of {of:THINGS}, {lost}; they are left out".replace("THINGS", what.rsplit(" ", 1)[-1] + "s")
            notes.append(Note("left out", text, log=self.name, of=taken + sum(self.missing.values()), lost=lost))
        return tuple(notes)


@dataclass
class Votes(Taken):
    """Votes between two systems as they are read."""

    columns: dict[str, list[str | None]] = field(default_factory=dict)
    size: int = 0

    def add(self, first: Any, second: Any, won: str | None, **beside: Any) -> None:
        """Take a vote: ``won`` is model_a, model_b, tie, or the part of a win that the first one has."""
        if won is None:
            self.missing["have no verdict"] += 1
            return
        row = {"model_a": first, "model_b": second, "winner": won, **beside}
        for name in row.keys() - self.columns.keys():
            self.columns[name] = [None] * self.size
        self.size += 1
        for name, values in self.columns.items():
            value = row.get(name)
            values.append(None if value is None else str(value))

    def published(self, layout: Layout) -> Published:
        """Return the table of all that was taken. Errors (InputError): nothing was."""
        self.say(layout.says)
        notes = self.notes(f"{layout.name} without a vote", self.size)
        columns = {name: pa.array(values, pa.large_string()) for name, values in self.columns.items()}
        table = pa.table({name: one for name, one in columns.items() if one.null_count < len(one)})
        return Published(layout.name, "comparisons", table, notes, layout.columns)


@dataclass
class Scores(Taken):
    """Scores as they are read."""

    system: list[str] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    trial: list[str | None] = field(default_factory=list)
    else_zero: bool = False
    """Whether a task that a system's file does not name counts 0."""

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

    def published(self, layout: Layout | str) -> Published:
        """Return the table of all that was taken. Errors (InputError): nothing was."""
        name = layout if isinstance(layout, str) else layout.name
        if self.else_zero:
            there, systems = set(zip(self.system, self.task, strict=True)), dict.fromkeys(self.system)
            for system, task in itertools.product(systems, dict.fromkeys(self.task)):
                if (system, task) not in there:
                    self.add(system, task, 0)
        notes = self.notes(f"{name} without a score", len(self.score))
        seen: Counter[tuple[str, str]] = Counter()
        trials: list[str | None] = []
        for system, task, trial in zip(self.system, self.task, self.trial, strict=True):
            seen[system, task] += 1
            trials.append(trial if trial is not None else str(seen[system, task]))
        table = pa.table([self.system, self.task, self.score, trials], schema=SCHEMA)
        if max(seen.values()) == 1:
            table = table.drop_columns("trial")
        return Published(name, SCORES, table, notes)
