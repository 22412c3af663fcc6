"""Scores of systems on tasks: a cell for each system and task, the mean of its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.preferences.frames import as_columns
from concordant.preferences.layouts import LOSSES
from concordant.preferences.notes import Note
from concordant.preferences.values import numbers, texts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
MOST = 3000
"""Systems of one table: all pairs of them are compared."""
LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of systems on tasks, labels sorted; ``ScoreTable.of`` makes it of rows."""

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    score: Floats
    """Shape (systems, tasks): the mean of the cell's trials, NaN where there is none; as given."""
    trials: Ints
    """Number of scores in each cell."""
    within: Floats
    """Variance of the mean of a cell by its trials; NaN where there is only one."""
    weight: Floats
    """Of each task, > 0."""
    cluster: Ints
    """Code of what each task belongs to, from 0 on; the task itself where nothing is said."""
    clustered: bool
    lower: Flags
    """Tasks of which a lower score is better."""
    notes: tuple[str, ...] = ()
    asked: bool = False
    """Whether somebody said of which tasks a lower score is better."""

    @classmethod
    def of(cls, rows: Any, lower_is_better: bool | str | Sequence[str] | None = None) -> ScoreTable:
        """Make a table of rows: columns system, task, score, and trial, weight, cluster where they are there.

        ``rows``: an Arrow, pandas or polars table, or a mapping of columns. Errors: InputError for a column that is
        missing, a label that is, a score that is no number, a trial that is there twice, weights or clusters of a task
        that differ; for fewer than two systems.
        """
        table = rows if isinstance(rows, pa.Table | Mapping) else pa.table(rows)
        names = table.column_names if isinstance(table, pa.Table) else list(table)
        if missing := [name for name in ("system", "task", "score") if name not in names]:
            raise InputError(
                f"scores are rows with the columns system, task, score (and trial, weight, cluster); no {few(missing)} "
                f"among {few(names, 20)}; read_scores reads files and tables of other forms"
            )
        held = ("system", "task", "score", "trial", "weight", "cluster")
        columns = as_columns({name: table[name] for name in held if name in names})
        label = {name: _labels(columns[name], name) for name in ("system", "task", "cluster") if name in columns}
        score = _numbers(columns["score"], "score")
        if (beyond := int((np.abs(score) > LARGEST).sum())) > 0:
            raise InputError(
                f"{beyond:,} of {len(score):,} scores are beyond {LARGEST:g}, whose squares are no numbers"
            )
        there = ~np.isnan(score)
        empty = len(score) - int(there.sum())
        (systems, system), (tasks, task) = label["system"], label["task"]
        if len(systems) < 2:
            raise InputError(f"scores of one system only ({few(systems)}) compare nothing; two are needed, at least")
        if len(systems) > MOST:
            raise InputError(f"all pairs of {len(systems):,} systems are too many; at most {MOST:,} are allowed")
        size, cell = (len(systems), len(tasks)), system * len(tasks) + task
        if "trial" in columns:
            _once(cell[there], _labels(columns["trial"], "trial")[1][there], systems, tasks)
        cells, held_cell, held_score = len(systems) * len(tasks), cell[there], score[there]
        many = np.bincount(held_cell, minlength=cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(held_cell, held_score, cells) / many
            moved = np.bincount(held_cell, (held_score - mean[held_cell]) ** 2, cells) / (many - 1) / many
        notes: list[str] = [one for one in _kept(table, b"notes").split("\n") if one]
        if "trial" not in columns and (several := int((many > 1).sum())):
            text = "{several:cells} {several:holds|hold} several scores: they are taken as trials and averaged"
            notes.append(Note("trials", text, several=several))
        weight = _of_tasks(_weights(columns, len(score)), task, tasks, "weights")
        cluster = label["cluster"][1].astype(np.float64) if "cluster" in label else task.astype(np.float64)
        code = _of_tasks(cluster, task, tasks, "clusters").astype(np.int64)
        made = cls(
            tuple(systems), tuple(tasks), np.where(many, mean, np.nan).reshape(size), many.reshape(size),
            np.where(many > 1, moved, np.nan).reshape(size), weight, np.unique(code, return_inverse=True)[1],
            "cluster" in columns, np.zeros(len(tasks), bool), tuple(notes),
        )  # fmt: skip
        return made._scored()._toward(lower_is_better, _kept(table, b"measure"))._said(empty)

    def _scored(self) -> ScoreTable:
        """Leave out systems and tasks without any score."""
        rows, columns = ((self.trials > 0).any(axis=axis) for axis in (1, 0))
        if rows.all() and columns.all():
            return self
        lost = [*np.array(self.systems)[~rows].tolist(), *np.array(self.tasks)[~columns].tolist()]
        if rows.sum() < 2:
            raise InputError("fewer than two systems have a score")
        note = Note(
            "no score", "without any score, and left out: {items}", items=lost[:8], others=max(len(lost) - 8, 0)
        )
        grid = np.ix_(rows, columns)
        return replace(
            self, systems=tuple(np.array(self.systems)[rows].tolist()),
            tasks=tuple(np.array(self.tasks)[columns].tolist()),
            score=self.score[grid], trials=self.trials[grid], within=self.within[grid], weight=self.weight[columns],
            cluster=np.unique(self.cluster[columns], return_inverse=True)[1], lower=self.lower[columns],
            notes=(*self.notes, note),
        )  # fmt: skip

    def _toward(self, lower: bool | str | Sequence[str] | None, measure: str) -> ScoreTable:
        """Note of which tasks a lower score is better; by the names of the tasks, or of the scores, if nobody says."""
        if lower is None and (LOSSES.search(measure) or all(map(LOSSES.search, self.tasks))):
            text = "{items} {count:looks|look} like something of which less is better: the lowest is the best ({ask} "
            text += "turns it round)"
            named = [measure] if LOSSES.search(measure) else [*self.tasks]
            more, ask = max(len(named) - 4, 0), Setting("lower_is_better", False)
            note = Note("lower is better", text, items=named[:4], others=more, count=len(named), ask=ask)
            return replace(self, lower=np.ones(len(self.tasks), bool), notes=(note, *self.notes))
        if lower is None or isinstance(lower, bool):
            return replace(self, lower=np.full(len(self.tasks), bool(lower)), asked=lower is not None)
        named = [lower] if isinstance(lower, str) else list(lower)
        if unknown := [name for name in named if name not in self.tasks]:
            raise UsageError(f"no task {few(unknown)} (of which lower is better); tasks there: {few(self.tasks, 20)}")
        return replace(self, lower=np.isin(np.array(self.tasks), named), asked=True)

    def _said(self, empty: int) -> ScoreTable:
        """Add what a reader should know of the table."""
        notes: list[str] = [*self.notes, *_alike(self.systems, "systems"), *_alike(self.tasks, "tasks")]
        cells, held = self.score.size, int((self.trials > 0).sum())
        if held < cells:
            if (self.component == 0).sum() < 2:
                raise InputError("no task has the scores of two systems, so nothing is compared")
            text = (
                "{missing:cells} of {cells:,} {missing:is|are} missing: systems are compared on the tasks that they "
                "share (system and task effects by least squares), so nobody gains by leaving out hard tasks"
            )
            notes.append(Note("missing cells", text, missing=cells - held, cells=cells, rows=empty))
        named = self.losses
        if named and not self.asked and not self.lower.any():
            text = "{items} {count:looks|look} like something of which less is better; if so, say {ask}"
            ask = Setting("lower_is_better", True) if 2 * len(named) > len(self.tasks) else Setting("lower", named[0])
            more = max(len(named) - 4, 0)
            notes.append(Note("looks like a loss", text, items=named[:4], others=more, count=len(named), ask=ask))
        return replace(self, notes=tuple(notes))

    @property
    def losses(self) -> list[str]:
        """The tasks that are called as something of which less is better."""
        return [name for name in self.tasks if LOSSES.search(name)]

    @property
    def better(self) -> Floats:
        """The scores, of which higher is better everywhere."""
        return np.where(self.lower, -self.score, self.score)

    @property
    def full(self) -> bool:
        """Whether every cell has a score."""
        return bool((self.trials > 0).all())

    @property
    def clusters(self) -> int:
        """Number of clusters of tasks."""
        return int(self.cluster.max()) + 1

    @cached_property
    def component(self) -> Ints:
        """Systems that a chain of tasks connects share a number; the largest component is 0."""
        row, column = np.nonzero(self.trials)
        k, n = self.score.shape
        graph = coo_array((np.ones(len(row)), (row, k + column)), shape=(k + n, k + n))
        found = connected_components(graph, directed=False)[1][:k]
        order = np.argsort(-np.bincount(found), kind="stable")
        return np.asarray(np.argsort(order)[found], np.int64)

    def summed(self, of_tasks: Floats) -> Floats:
        """Add up columns of tasks by cluster; shape (…, clusters)."""
        if not self.clustered:
            return of_tasks
        member = np.zeros((len(self.tasks), self.clusters))
        member[np.arange(len(self.tasks)), self.cluster] = 1.0
        return np.asarray(of_tasks @ member)

    @cached_property
    def blocks(self) -> Floats:
        """Scores by which tests of ranks go, higher is better: those of tasks, or the means of clusters of them."""
        if not self.clustered:
            return self.better
        held = (self.trials > 0) * self.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.summed(np.where(held > 0, self.better, 0.0) * held) / self.summed(held))


def _alike(names: Sequence[str], what: str) -> list[Note]:
    """A note of names that differ by case or space alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(" ".join(name.casefold().split()), []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    text = f"{{items}} differ by case or space alone, and are taken as different {what}"
    return (
        [Note("alike", text, items=several[0][:4], others=sum(map(len, several)) - len(several[0][:4]))]
        if several
        else []
    )


def _kept(table: Any, what: bytes) -> str:
    """What who read the table says of it: notes, the name of what was measured."""
    meta = table.schema.metadata or {} if isinstance(table, pa.Table) else {}
    return str(meta.get(what, b"").decode())


def _labels(column: Any, what: str) -> tuple[list[str], Ints]:
    """Sorted labels, and the code of each row. Errors (InputError): rows without one."""
    read = texts(column)
    lost = read.is_null().to_numpy(zero_copy_only=False)
    words = [] if pa.types.is_null(read.type) else read.dictionary.to_pylist()
    blank = np.array([not word.strip() for word in words] + [True])
    code = (
        np.full(len(read), len(words)) if not words else pc.fill_null(read.indices, len(words)).to_numpy().astype(int)
    )
    lost = lost | blank[code]
    if lost.any():
        row = int(np.flatnonzero(lost)[0]) + 1
        raise InputError(f"{int(lost.sum()):,} of {len(lost):,} rows of scores have no {what} (first: row {row:,})")
    if not len(read):
        raise InputError("there is no row of scores")
    used = np.flatnonzero(np.bincount(code, minlength=len(words)))
    found = sorted(words[one] for one in used)
    place = np.zeros(len(words), np.int64)
    place[used] = np.searchsorted(np.array(found), np.array([words[one] for one in used]))
    return found, place[code]


def _numbers(column: Any, what: str) -> Floats:
    """Numbers, NaN where they are missing. Errors (InputError): others."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    gone = column.is_null(nan_is_null=pa.types.is_floating(column.type))
    read = numbers(column)
    none = np.asarray(gone.to_numpy(zero_copy_only=False) if isinstance(gone, pa.Array) else gone.to_numpy(), bool)
    wrong = np.flatnonzero(~none & (False if read.fault is None else read.fault != 0))
    if len(wrong):
        value = column[int(wrong[0])].as_py()
        raise InputError(
            f"{len(wrong):,} of {len(none):,} rows hold a {what} that is no finite number (first: row "
            f"{int(wrong[0]) + 1:,}: {value!r})"
        )
    return np.where(none, np.nan, read.values)


def _weights(columns: Mapping[str, Any], size: int) -> Floats:
    if "weight" not in columns:
        return np.ones(size)
    weight = _numbers(columns["weight"], "weight")
    if (bad := ~(weight > 0)).any():
        row = int(np.flatnonzero(bad)[0]) + 1
        raise InputError(f"{int(bad.sum()):,} rows have no weight above 0 (first: row {row:,}); weights are of tasks")
    return np.ldexp(weight, -int(np.frexp(weight.max(initial=1.0))[1]))  # they count by their ratios


def _of_tasks(value: Floats, task: Ints, tasks: Sequence[str], what: str) -> Floats:
    """What each task has in all of its rows. Errors (InputError): tasks with several values."""
    low, high = np.full(len(tasks), np.inf), np.full(len(tasks), -np.inf)
    np.minimum.at(low, task, value)
    np.maximum.at(high, task, value)
    if (several := np.flatnonzero(low < high)).size:
        named = few([tasks[one] for one in several.tolist()])
        raise InputError(f"{len(several):,} of {len(tasks):,} tasks have several {what}: {named}; a task has one")
    return low


def _once(cell: Ints, trial: Ints, systems: Sequence[str], tasks: Sequence[str]) -> None:
    width = int(trial.max(initial=0)) + 1
    found, times = np.unique(cell * width + trial, return_counts=True)
    if len(again := found[times > 1]):
        system, task = divmod(int(again[0]) // width, len(tasks))
        what = f"{counted(len(again), 'trials')} {'is' if len(again) == 1 else 'are'} there more than once"
        raise InputError(
            f"{what} (first: system {systems[system]!r}, task {tasks[task]!r}); a system has one score for each task "
            "and trial"
        )
