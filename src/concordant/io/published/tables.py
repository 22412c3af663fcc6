"""Tables of scores: long (system, task, score, and who or how often), wide (a row a system, a column a task), WMT's.

A wide table is told by its cells: a first column of names, each once, and numbers in two columns or more. Columns that
say something of a system that is no score on a task (its size, its price, means over tasks) are left out, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, few, shown
from concordant.io.engines.memory import arrow_table
from concordant.io.log.formats import Log, opened
from concordant.io.published.published import SCORES, Published, Scores
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.notes import Note
from concordant.preferences.values import decode

SYSTEM = ("system", "system_id", "system_name", "model", "model_name", "model_id", "method", "algorithm", "ranker",
          "submission", "classifier", "learner", "estimator", "agent", "team", "solver")  # fmt: skip
TASK = ("task", "task_id", "task_name", "dataset", "dataset_name", "benchmark", "problem", "question_id", "question",
        "instance_id", "instance", "sample_id", "example_id", "prompt_id", "query_id", "query", "qid", "topic",
        "global_seg_id", "seg_id", "segment_id", "segment", "test", "scenario")  # fmt: skip
SCORE = ("score", "value", "main_score", "accuracy", "acc", "metric_value", "result", "performance", "correct",
         "success", "mqm_avg_score", "raw_score", "f1", "ndcg", "mrr", "map")  # fmt: skip
TRIAL = ("trial", "seed", "run", "run_id", "epoch", "fold", "repetition", "repeat", "rep", "attempt", "rater",
         "annotator", "judge", "turn", "user_id")  # fmt: skip
DOCUMENT = ("doc", "document", "document_id")
NO_TASK = re.compile(
    r"(^|_)(rank|ranking|mean|avg|average|overall|median|total|params?|parameters|size|length|tokens?|cost|price|date|"
    r"year|dimensions?|memory|latency|time|runtime|released?|ci|std|stderr|sd|q0?\d+|lower|upper|votes|count|num|number|"
    r"samples|n|id|index|wins?|losses|elo|zero_shot|context|cutoff)(_|$)"
)
"""Words in the names of columns that hold no score on a task."""
EMPTY = ("", "-", "–", "—", "n/a", "na", "nan", "none", "null", "?")
LINK = re.compile(r"^\[([^\]]+)\]\([^)]*\)$|^<a [^>]*>([^<]+)</a>$", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LOOK, WIDEST, MOST, SAME = 400, 5_000, 1_000_000, 0.1
"""Rows that are looked at before a table is read; the most columns and rows; share of rows named as another."""
WEIGHTS = (("non-translation", 25.0), ("major", 5.0), ("minor", 1.0))


def _role(columns: Sequence[str], names: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """Return the column with the first of the names that is there."""
    there = {plain(column): column for column in reversed(columns) if column not in taken}
    there |= {key.replace("_", ""): column for key, column in there.items()}
    return next((there[one] for name in names for one in (name, name.replace("_", "")) if one in there), None)


def _column(table: pa.Table, name: str, as_json: bool) -> list[Any]:
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.to_pylist()
    return [decode(one) for one in values] if as_json else values


def _text(value: Any) -> str:
    text = "" if value is None else str(value).strip()
    link = LINK.match(text)
    return (link[1] or link[2]).strip() if link else text


def _cell(value: Any) -> float | None:
    """Return a score as it is written in a table: 0.5, 50%, 50.0 ± 1.2; NaN where there is none, None for a text.

    >>> _cell("50%"), _cell(" 1,234.5"), _cell("a"), _cell("71.2 ± 0.4")
    (50.0, 1234.5, None, 71.2)
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if value is None:
        return np.nan
    text = str(value).strip()
    if text.lower() in EMPTY:
        return np.nan
    text = re.split(r"\s*(?:±|\+/-|\+-)\s*", text)[0].rstrip("%").strip().strip("*").replace(",", "")
    return float(text) if NUMBER.fullmatch(text) else None


# -- long tables -------------------------------------------------------------------------------------------------------
def long_roles(columns: Sequence[str]) -> dict[str, str] | None:
    """Return the columns of system, task, score and trial of a long table; None where one of the first three lacks.

    >>> long_roles(["Model", "dataset", "seed", "Accuracy"])
    {'system': 'Model', 'task': 'dataset', 'score': 'Accuracy', 'trial': 'seed'}
    """
    system, score = _role(columns, SYSTEM), _role(columns, SCORE)
    task = _role(columns, TASK, [one for one in (system, score) if one])
    if system is None or score is None or task is None:
        return None
    trial = _role(columns, TRIAL, [system, score, task])
    return {"system": system, "task": task, "score": score, **({"trial": trial} if trial else {})}


def long_table(log: Log) -> Published | None:
    """Read a long table of scores; a document beside a segment becomes part of the task."""
    roles = long_roles(log.columns)
    if roles is None:
        return None
    document = _role(log.columns, DOCUMENT) if plain(roles["task"]) in ("seg_id", "segment_id", "segment") else None
    table = arrow_table(log, list(dict.fromkeys([*roles.values(), *([document] if document else [])])))
    read = {role: _column(table, name, log.as_json) for role, name in roles.items()}
    scores, tasks = Scores(log.name), read["task"]
    if document:
        tasks = [f"{one}/{other}" for one, other in zip(_column(table, document, log.as_json), tasks, strict=True)]
        scores.say("a task is a segment of a document ({names})", f"{document}/{roles['task']}")
    cells = [_cell(one) for one in read["score"]]
    if cells.count(None) > len(cells) / 2:
        return None
    if bad := [value for value, cell in zip(read["score"], cells, strict=True) if cell is None]:
        raise InputError(
            f"{log.name}: {len(bad):,} of {len(cells):,} values of the column {shown(roles['score'])} are no numbers "
            f"({few(bad, 3)})"
        )
    for place, cell in enumerate(cells):
        trial = read["trial"][place] if "trial" in read else None
        scores.add(_text(read["system"][place]), _text(tasks[place]), None if cell != cell else cell, trial)
    found = scores.published("table of scores")
    return Published(found.layout, SCORES, found.table, found.told, tuple(roles.items()))


# -- wide tables -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Wide:
    """The columns of a wide table: of names, of tasks, and those that are neither; rows named as another one."""

    table: pa.Table
    names: str
    again: int
    tasks: tuple[str, ...]
    sums: tuple[str, ...]
    others: tuple[str, ...]
    across: bool
    """Whether a row is a task, and a column a system."""


def _wide(log: Log) -> _Wide | None:
    if not 2 <= len(log.columns) <= WIDEST or len(set(log.columns)) < len(log.columns):
        return None
    if {plain(name) for name in log.columns} & {*ALIASES["item"]}:
        return None  # features of items
    table = arrow_table(log, list(log.columns))
    if not 2 <= len(table) <= MOST:
        return None
    first = {name: [_cell(one) for one in _column(table.slice(0, LOOK), name, log.as_json)] for name in log.columns}
    numeric = [name for name, cells in first.items() if None not in cells and any(one == one for one in cells)]
    named = _names_of_rows(log, table, [name for name in log.columns if name not in numeric])
    if named is None:
        return None
    names, again = named
    numeric = [name for name in numeric if name != names]
    across = plain(names) in TASK and plain(names) not in SYSTEM
    sums = () if across else tuple([name for name in numeric if NO_TASK.search(_words(name))])
    tasks = tuple([name for name in numeric if name not in sums])
    others = tuple([name for name in log.columns if name not in (names, *numeric)])
    return _Wide(table, names, again, tasks, sums, others, across)


def sums_of(log: Log) -> tuple[str, int, tuple[str, ...]] | None:
    """Return, of a table that has a system a row and no scores on tasks, the names, their number, and the numbers."""
    found = _wide(log)
    if found is None or len(found.tasks) > 1 or plain(found.names) not in (*SYSTEM, "name", "key"):
        return None
    numbers = (*found.tasks, *found.sums)
    return (found.names, len(found.table), numbers) if numbers else None


def wide_table(log: Log) -> Published | None:
    """Read a wide table of scores; None where its cells are none."""
    wide = _wide(log)
    if wide is None or len(wide.tasks) < 2:
        return None
    rows = [_text(one) for one in _column(wide.table, wide.names, log.as_json)]
    scores = Scores(log.name)
    for column in wide.tasks:
        for row, value in zip(rows, _column(wide.table, column, log.as_json), strict=True):
            cell = _cell(value)
            if cell is None:
                raise InputError(
                    f"{log.name}: the column {shown(column)} holds {str(value)[:40]!r} for {shown(row)}, and numbers "
                    "elsewhere"
                )
            pair = (column, row) if wide.across else (row, column)
            scores.add(*pair, None if cell != cell else cell, missing="cells are empty")
    found = scores.published("wide table of scores")
    text = "{log}: a row is a task, a column a system" if wide.across else "{log}: a row is a system, a column a task"
    notes = [Note("wide scores", text, log=log.name)]
    if wide.again:
        text = "{log}: {rows:rows} {rows:bears|bear} the name of another; they are read as runs of the same"
        notes.append(Note("names again", text, log=log.name, rows=wide.again))
    if left := (*wide.sums, *wide.others):
        text = "{log}: left out, as no scores on a task: {names}"
        notes.append(Note("columns left out", text, log=log.name, names=few(left, 12)))
    where = ("task", "system") if wide.across else ("system", "task")
    columns = ((where[0], wide.names), (where[1], few(wide.tasks, 6)))
    return Published(found.layout, SCORES, found.table, (*notes, *found.told), columns)


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", plain(name)).strip("_")


def _names_of_rows(log: Log, table: pa.Table, texts: Sequence[str]) -> tuple[str, int] | None:
    """Return the column that names the rows, and how many rows bear the name of another one.

    It is one that is called so, or the first; of these one whose names differ, else that with the most.
    """
    called = [name for name in log.columns if plain(name) in SYSTEM or plain(name) in TASK]
    first = [name for name in texts if name == log.columns[0] or plain(name) in ("name", "key")]
    best: tuple[str, int] | None = None
    for name in dict.fromkeys([*called, *first]):
        values = [_text(one) for one in _column(table, name, log.as_json)]
        again = len(values) - len(set(values))
        if "" not in values and again <= SAME * len(values) and (best is None or again < best[1]):
            best = (name, again)
    return best


# -- WMT ---------------------------------------------------------------------------------------------------------------
def mqm(log: Log) -> Published | None:
    """Read WMT's annotations of errors (MQM): a score for each system, segment and rater.

    It is minus the sum of the weights of the errors: 25 for a text that is no translation, 5 for a major one, 1 for a
    minor one, 0.1 for minor punctuation (Freitag and others, 2021, table 3).
    """
    need = {"system", "rater", "category", "severity"}
    segment = _role(log.columns, ("globalSegId", "global_seg_id", "seg_id", "segment_id"))
    if not need <= {plain(name) for name in log.columns} or segment is None:
        return None
    document = _role(log.columns, ("doc", "document")) if plain(segment) == "seg_id" else None
    used = {one: _role(log.columns, (one,)) for one in sorted(need)} | {"segment": segment}
    used |= {"document": document} if document else {}
    table = arrow_table(log, [name for name in used.values() if name])
    read = {role: _column(table, name, log.as_json) for role, name in used.items() if name}
    total: dict[tuple[str, str, str], float] = {}
    for place, severity in enumerate(read["severity"]):
        task = str(read["segment"][place]) if not document else f"{read['document'][place]}/{read['segment'][place]}"
        key = (str(read["system"][place]), task, str(read["rater"][place]))
        total[key] = total.get(key, 0.0) - _weight(str(severity), str(read["category"][place]))
    scores = Scores(log.name)
    scores.say("a score is minus the weighted errors of a segment: major 5, minor 1, punctuation .1, no translation 25")
    for (system, task, rater), value in total.items():
        scores.add(system, task, value, rater)
    found = scores.published("WMT annotations of errors (MQM)")
    return Published(found.layout, SCORES, found.table, found.told, tuple((k, v) for k, v in used.items() if v))


def _weight(severity: str, category: str) -> float:
    severity, category = severity.lower(), category.lower()
    if "non-translation" in category:
        return 25.0
    if severity == "minor" and category.startswith("fluency/punctuation"):
        return 0.1
    return next((weight for name, weight in WEIGHTS if severity == name), 0.0)


def spaced_scores(log: Log) -> Published | None:
    """Read WMT's scores of segments, whose columns (system, a score, seg_id) stand apart by spaces or tabs."""
    heading = log.columns[0].split() if log.columns else []
    if {"system", "seg_id"} - set(heading) or len(heading) != 3 or "\t".join(log.columns).split() != heading:
        return None
    score = next(name for name in heading if name not in ("system", "seg_id"))
    scores = Scores(log.name)
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            fields = line.split()
            if number == 1 or not fields:
                continue
            if len(fields) != 3:
                raise InputError(f"{log.name}: line {number:,} has {len(fields)} fields, the header has 3")
            row: Mapping[str, str] = dict(zip(heading, fields, strict=True))
            cell = _cell(row[score])
            if cell is None:
                raise InputError(f"{log.name}: line {number:,}: the score {row[score][:40]!r} is no number")
            scores.add(row["system"], row["seg_id"], None if cell != cell else cell)
    found = scores.published("WMT scores of segments")
    where = (("system", "system"), ("task", "seg_id"), ("score", score))
    return Published(found.layout, SCORES, found.table, found.told, where)
