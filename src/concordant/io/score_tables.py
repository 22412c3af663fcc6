"""Read scores of systems on tasks: rows of system, task, score, or a table with a column for each task or system.

*Long*: a row is a score; the columns are known by their usual names, or named. *Systems by tasks*: the first column
(or the one named) holds the systems, each other column of numbers is a task. *Tasks by systems*: the other way round,
where the first column is called task, dataset, benchmark and the like, or by request. Columns that are no scores, by
their words or by their names (an average, a rank, a size), are left out, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb as library
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, few
from concordant.io.engines import duckdb, memory
from concordant.io.engines.counting import choose, with_columns
from concordant.io.forms import Columns
from concordant.io.log.formats import Log, locate
from concordant.io.log.headers import sniffed
from concordant.io.log.marks import separated
from concordant.io.log.stream import Stream
from concordant.io.log.tables import from_object
from concordant.io.published import recognise as published
from concordant.io.published.documents import head_of
from concordant.io.published.published import SCORES, Published
from concordant.preferences.layouts import ALIASES, is_aside, plain
from concordant.preferences.notes import Note
from concordant.preferences.values import texts
from concordant.record import telling

Floats = NDArray[np.float64]
LAYOUTS = ("long", "systems-by-tasks", "tasks-by-systems")
NAMES = {
    "system": (
        *("system", "model", "model_name", "model_id", "method", "algorithm", "ranker", "arm", "participant", "team"),
        *("submission", "agent", "llm", "classifier", "classifier_name", "system_id", "system_name", "learner"),
        *("estimator", "solver", "name"),
    ),
    "task": (
        *("task", "task_name", "task_id", "dataset", "dataset_name", "data_set", "benchmark", "subject", "instance"),
        *("query", "query_id", "qid", "question", "question_id", "problem", "topic", "prompt", "prompt_id", "test"),
        *("instance_id", "sample_id", "example_id", "scenario", "globalsegid", "global_seg_id", "segment"),
        *("segment_id", "seg_id"),
    ),
    "score": (
        *("score", "value", "main_score", "metric_value", "result", "performance", "accuracy", "acc", "points"),
        *("correct", "success", "mqm_avg_score", "raw_score", "f1", "ndcg", "mrr", "map"),
    ),
    "trial": (
        *("trial", "seed", "repeat", "replicate", "repetition", "iteration", "epoch", "fold", "split", "run", "run_id"),
        *("rep", "attempt", "rater", "annotator", "judge", "turn", "user_id"),
    ),
    "weight": ("weight",),
    "metric": ("metric", "metric_name", "measure"),
}
"""What columns of scores are usually called."""
MEASURES = ("accuracy", "acc", "f1", "ndcg", "mrr", "map")
"""Names of scores of which a row may hold several."""
EMPTY = frozenset({"", "-", "–", "—", "n/a", "na", "nan", "null", "none", "#n/a"})
TRUTH = {"true": 1.0, "false": 0.0}
RISING = "rising order"
"""The code of the note that rows stand in rising order of their mean."""
MEAN = re.compile(r"avg|average|mean|overall")
LINK = re.compile(r"^\s*\[([^\]]+)\]\([^)]*\)\s*$|^\s*<a [^>]*>([^<]+)</a>\s*$", re.IGNORECASE)
WIDEST, MOST, SAME = 5_000, 1_000_000, 0.1
"""The most columns and rows of what is taken for scores unasked; the share of its rows named as another."""


def read_scores(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    tasks: Sequence[str] | None = None,
    metric: str | None = None,
) -> pa.Table:
    """Read scores of systems on tasks, as ``rank_scores`` takes them.

    Parameters
    ----------
    source : a path (.csv .tsv .jsonl .json .parquet .feather .arrow, texts also .gz; ``file.duckdb::table``; a file of
        lm-evaluation-harness, HELM, MTEB, Inspect and the like, or a folder of such, if nothing is named) or a table:
        Arrow, pandas, polars, a mapping of columns.
    columns : which column is what: system, task, score, trial, weight, cluster, metric; those not given are found by
        their usual names (a cluster is not).
    layout : 'long', 'systems-by-tasks' (a column for each task) or 'tasks-by-systems'; None, the columns decide.
    tasks : of a table with a column for each task (or system): the columns to read (default: those of numbers that are
        not called average, rank, params and the like).
    metric : of long rows with a column of metrics: the one to keep.

    Returns rows system, task, score, and trial, weight, cluster where they are there; a missing score is null. What a
    reader should know stands in the table's metadata, and in the notes of what ``rank_scores`` makes of it.

    Errors: InputError for files that cannot be read and columns that hold no numbers, UsageError for what is not clear.

    >>> read_scores({"model": ["a", "b"], "GSM8K": [0.5, 0.25], "MMLU": [0.75, None]}).to_pylist()[-1]
    {'system': 'b', 'task': 'MMLU', 'score': None}
    """
    table, notes = scores_of(source, columns=columns, layout=layout, tasks=tasks, metric=metric)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), "notes": "\n".join(map(str, notes))})


@telling("scores", lambda found: {"rows": len(found[0]), "notes": [getattr(note, "code", note) for note in found[1]]})
def scores_of(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    tasks: Sequence[str] | None = None,
    metric: str | None = None,
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return what ``read_scores`` does, and the notes beside it."""
    given = {role: column for role, column in (columns or {}).items() if column is not None}
    if unknown := sorted({*given} - {*NAMES, "cluster"}):
        raise UsageError(f"no column of scores can be the {few(unknown)}; known: {', '.join((*NAMES, 'cluster'))}")
    if layout is not None and layout not in LAYOUTS:
        raise UsageError(f"unknown layout {layout!r}; known: {', '.join(LAYOUTS)}")
    named = given or layout is not None or tasks is not None or metric is not None
    if not named and isinstance(source, str | os.PathLike):
        found = published.found_in(source)
        if found is not None and found.kind != SCORES:
            name = os.path.basename(os.fspath(source)) or os.fspath(source)
            raise InputError(
                f"{name} holds votes ({found.layout}), no scores; run: concordant rank {shlex.quote(name)}"
            )
        if found is not None:
            return found.table, found.told
    log = source if isinstance(source, Log) else None
    if log is None or not log.columns:
        log = with_columns(log or (locate(source) if isinstance(source, str | os.PathLike) else from_object(source)))
    if log.format in ("preflib", "letor", "qrels", "run"):
        raise UsageError(f"{log.name} holds no table of scores (it is of the format {log.format})")
    if missing := [column for column in given.values() if column not in log.columns]:
        raise InputError(f"{log.name}: no column {few(missing)}; columns there: {few(log.columns, 40)}")
    roles = roles_of(log, given)
    measures = [column for column in log.columns if plain(column) in MEASURES]
    if "score" not in given and len(measures) > 1 and roles.get("score") in measures:
        del roles["score"]  # it is one of several
    if layout is None and tasks is None and "score" not in roles and {"system", "task"} <= {*roles}:
        roles |= _named_score(log, roles)
    long = {"system", "task", "score"} <= {*roles}
    if layout is None and not long and (asked := {"task", "score"} & {*given}) and "system" not in given:
        lacks = [role for role in ("system", "task", "score") if role not in roles]
        raise UsageError(
            f"{log.name}: with {few(sorted(asked))} named, a row is a score, and no column of the {few(lacks)} is "
            "found; name it: ",
            Setting("columns", key=lacks[0]),
        )
    if layout == "long" and not long:
        lacks = [role for role in ("system", "task", "score") if role not in roles]
        raise InputError(
            f"{log.name}: no column of the {few(lacks)}; columns there: {few(log.columns, 40)}; name it with ",
            Setting("columns", key=lacks[0]),
        )
    if not named and not long and {"system", "score"} <= {*roles} and _recur(log, roles["system"]):
        raise UsageError(
            f"{log.name}: a row is a score of {roles['system']!r}, and no column is called as a task; name it: ",
            Setting("columns", key="task"),
        )
    if (layout == "long") if layout is not None else long:
        if tasks is not None:
            raise UsageError(f"{log.name}: a row is a score here, no column is a task; leave out ", Setting("tasks"))
        return _long(log, {role: roles[role] for role in roles}, metric)
    if metric is not None:
        raise UsageError(
            f"{log.name}: columns are tasks or systems here, none holds metrics; leave out ", Setting("metric")
        )
    return _wide(log, given, layout, tasks)


def _recur(log: Log, names: str) -> bool:
    """Whether most names of rows are there more than once: rows are scores, none is all of a system."""
    label = texts(columns_of(log, [names])[names], as_json=log.as_json)
    return 2 * len(label.unique()) <= len(label)


def roles_of(log: Log, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return which column is what, of those that are given and those that are called as usual."""
    given = given or {}
    there = Columns(log.columns, [*given.values()], log.name)
    roles = dict(given)
    for role, aliases in NAMES.items():
        if role in given:
            continue
        if (exact := [name for name in aliases if there.find((name,), role)])[:1]:
            roles[role] = there.find((exact[0],), role) or ""
            there.taken.add(roles[role])
    return roles


def _named_score(log: Log, roles: Mapping[str, str]) -> dict[str, str]:
    """The column of scores, called as it may, where rows name systems and tasks, several times each; else none.

    Errors (UsageError): several columns may be it.
    """
    table = columns_of(log, log.columns)
    if any(len(texts(table[roles[role]]).unique()) == len(table) for role in ("system", "task")):
        return {}
    cells = {column: _Cells(table[column], log.as_json) for column in log.columns if column not in roles.values()}
    found = [column for column, cell in cells.items() if cell.some]
    likely = [column for column in found if not is_aside(column)] or found
    if len(likely) > 1:
        where = f"{log.name}: rows name a system ({roles['system']!r}) and a task ({roles['task']!r}); which column is "
        raise UsageError(f"{where}the score? {few(likely, 20)} (", Setting("columns", key="score"), " names it)")
    return {"score": likely[0]} if likely else {}


def columns_of(log: Log, columns: Sequence[str]) -> pa.Table:
    """Return columns of a file in their order; a text file that DuckDB refuses is read plainly, as logs are."""
    settings = duckdb.Settings()
    if log.format in ("database", "relation"):
        return duckdb.table(log, columns, settings).rename_columns(list(columns))
    if log.format in ("csv", "tsv") and choose(log, None, None, None).engine == "duckdb":
        with contextlib.suppress(library.Error):
            return duckdb.table(log, columns, settings).rename_columns(list(columns))
    return memory.arrow_table(log, columns)


class _Cells:
    """The cells of a column as numbers, NaN where they are empty."""

    def __init__(self, column: Any, as_json: bool) -> None:
        kind = column.type
        self.words: list[str] = []
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        if (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_boolean(kind)
        ):
            values = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
            self.values, self.wrong = np.asarray(values, np.float64), np.isinf(values)
            self.code = np.zeros(len(values), np.int64)
            self.words, self.percent = ["an infinite number"], False
            return
        read = texts(column, as_json=as_json)
        if pa.types.is_null(read.type):
            self.words, codes = [], np.zeros(len(read), np.int64)
        else:
            self.words = read.dictionary.to_pylist()
            codes = pc.fill_null(read.indices, len(self.words)).to_numpy(zero_copy_only=False).astype(np.int64)
        full = [word for word in self.words if word.strip().lower() not in EMPTY]
        self.percent = bool(full) and all(word.strip().endswith("%") for word in full)
        found = [_number(word, self.percent) for word in [*self.words, ""]]
        value = np.array([np.nan if one is None else one for one in found])
        wrong = np.array([one is None for one in found])
        self.values, self.wrong, self.code = value[codes], wrong[codes], codes

    @property
    def some(self) -> bool:
        """Whether most cells that are not empty are numbers."""
        numbers, wrong = int((~np.isnan(self.values)).sum()), int(self.wrong.sum())
        return numbers > 0 and numbers >= wrong


def _number(word: str, percent: bool) -> float | None:
    """The number that a text is, NaN for one that stands for none, None for other texts."""
    word = re.split(r"\s*(?:±|\+/-|\+-)", word.strip().lower().strip("*"))[0]
    if word in EMPTY:
        return float("nan")
    if word in TRUTH:
        return TRUTH[word]
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", word):
        word = word.replace(",", "")
    try:
        number = float(word[:-1] if percent else word) if "_" not in word else None
    except ValueError:
        return None
    return number if number is not None and np.isfinite(number) else None


def _scores(log: Log, cells: _Cells, column: str) -> Floats:
    if cells.wrong.any():
        row = int(np.flatnonzero(cells.wrong)[0])
        raise InputError(
            f"{log.name}: {int(cells.wrong.sum()):,} of {len(cells.wrong):,} cells of {column!r} are no numbers ("
            f"first: row {row + 1:,}: {cells.words[cells.code[row]]!r}); a missing score is empty, - or n/a"
        )
    return cells.values


def _long(log: Log, roles: dict[str, str], metric: str | None) -> tuple[pa.Table, tuple[str, ...]]:
    document = _document(log, roles)
    table = columns_of(log, list(dict.fromkeys([*roles.values(), *([document] if document else [])])))
    notes: list[str] = []
    if "metric" in roles:
        names = texts(table[roles["metric"]], as_json=log.as_json).cast(pa.large_string())
        kinds = sorted(one for one in names.unique().to_pylist() if one is not None)
        if metric is None and len(kinds) > 1:
            raise UsageError(
                f"{log.name}: scores of {len(kinds):,} metrics ({few(kinds)}; column {roles['metric']!r}); say which "
                "one with ",
                Setting("metric", kinds[0]),
            )
        if metric is not None and metric not in kinds:
            raise UsageError(f"{log.name}: no metric {metric!r} in the column {roles['metric']!r}; there: {few(kinds)}")
        if metric is not None:
            table = table.filter(pc.equal(names, metric))
    elif metric is not None:
        raise UsageError(
            f"{log.name}: no column of metrics to choose {metric!r} from; name it with ",
            Setting("columns", key="metric"),
        )
    out: dict[str, Any] = {}
    for role in ("system", "task", "score", "trial", "weight", "cluster"):
        if role not in roles:
            continue
        if role in ("score", "weight"):
            cells = _Cells(table[roles[role]], log.as_json)
            out[role] = pa.array(_scores(log, cells, roles[role]), from_pandas=True)
            if cells.percent:
                notes.append(_percent([roles[role]]))
        else:
            out[role] = texts(table[roles[role]], as_json=log.as_json)
    if document is not None:
        parts = (texts(table[name], as_json=log.as_json).cast(pa.large_string()) for name in (document, roles["task"]))
        out["task"], names = pc.binary_join_element_wise(*parts, "/"), f"{document}/{roles['task']}"
        notes.append(Note("document", "a task is a segment of a document ({names})", names=names))
    taken = ", ".join(f"{role}: {column}" for role, column in roles.items() if role in out and plain(column) != role)
    rest = [column for column in log.columns if column not in roles.values()]
    if taken:
        text = "read as {taken}" + ("; not read: {items}" if rest else "")
        notes.append(Note("columns", text, taken=taken, items=rest[:6], others=max(len(rest) - 6, 0)))
    measure = str(metric or roles.get("score", ""))
    return pa.table(out).replace_schema_metadata({"measure": measure}), tuple(notes)


def _document(log: Log, roles: Mapping[str, str]) -> str | None:
    """Return the column of documents whose segments are the tasks, where these are numbered within each."""
    if plain(roles["task"]) not in ("seg_id", "segment_id", "segment"):
        return None
    names = [name for name in log.columns if name not in roles.values()]
    return next((name for name in names if plain(name) in ("doc", "document", "document_id")), None)


def _percent(columns: list[str]) -> Note:
    return Note("percent", "percent signs are taken off in {items}", items=columns[:4], others=max(len(columns) - 4, 0))


@dataclass(frozen=True)
class _Chosen:
    """The columns of a wide table by what they hold: names of rows, scores, other numbers, texts."""

    table: pa.Table
    cells: dict[str, _Cells]
    names: str
    guessed: bool
    layout: str
    scores: list[str]
    aside: list[str]
    none: list[str]


def _chosen(log: Log, given: Mapping[str, str], layout: str | None, wanted: Sequence[str] | None) -> _Chosen:
    there = Columns(log.columns, [], log.name)
    found = {role: [c for c in log.columns if plain(c) in NAMES[role]] for role in ("system", "task")}
    names, guessed = given.get("system") or given.get("task"), False
    if names is None and len(found["system"]) == 1:
        names = found["system"][0]
    if names is None and len(found["task"]) == 1:
        names = found["task"][0]
    table = columns_of(log, log.columns)
    cells = {column: _Cells(table[column], log.as_json) for column in there.all if column != names}
    if names is None:
        words = [column for column in log.columns if not cells[column].some]
        names = words[0] if words else log.columns[0]
        guessed = True
    if layout is None:
        layout = "tasks-by-systems" if names in found["task"] or "task" in given else "systems-by-tasks"
    beside = [column for column in (given.get(role) for role in ("trial", "weight", "cluster")) if column]
    chosen = [c for c in wanted or log.columns if c != names and c not in beside]
    if wanted is not None:
        return _Chosen(table, cells, names, guessed, layout, chosen, [], [])
    none = [c for c in chosen if not cells[c].some and (cells[c].wrong.any() or c == "")]
    aside = [c for c in chosen if c not in none and cells[c].some and is_aside(c)]
    return _Chosen(
        table, cells, names, guessed, layout, [c for c in chosen if c not in none and c not in aside], aside, none
    )


def _wide(
    log: Log, given: Mapping[str, str], layout: str | None, wanted: Sequence[str] | None
) -> tuple[pa.Table, tuple[str, ...]]:
    if unknown := [name for name in wanted or () if name not in log.columns]:
        raise InputError(f"{log.name}: no column {few(unknown)}; columns there: {few(log.columns, 40)}")
    if "system" in given and "task" in given:
        raise UsageError(f"{log.name}: rows have names of one kind, systems or tasks, and both are named")
    found = _chosen(log, given, layout, wanted)
    table, cells, names, layout, chosen = found.table, found.cells, found.names, found.layout, found.scores
    if layout == "systems-by-tasks" and (odd := {"weight", "cluster"} & {*given}):
        raise UsageError(
            f"{log.name}: rows are systems here, and {few(sorted(odd))} belong to tasks; give rows of system, task, "
            "score"
        )
    notes: list[str] = []
    unfit = "by their names they are no scores on a task"
    for lost, why in ((found.none, "they hold no numbers"), (found.aside, unfit)):
        if lost:
            text = "left out: {items} ({why}); {ask} names the columns to read"
            notes.append(
                Note("left out", text, items=lost[:6], others=max(len(lost) - 6, 0), why=why, ask=Setting("tasks"))
            )
    for name in found.aside:
        held = cells[name].values[~np.isnan(cells[name].values)]
        if MEAN.search(plain(name)) and len(held) > 3 and (np.diff(held) >= 0).all() and held[0] < held[-1]:
            text = "rows stand in rising order of {names}: if the best stands first, lower is better, which is {ask}"
            notes.append(Note(RISING, text, names=repr(name), ask=Setting("lower_is_better", True)))
    if not chosen:
        raise InputError(
            f"{log.name}: no column of scores; columns there: {few(log.columns, 40)}{separated(log.columns)}. Rows are "
            "system, task, score, or a column holds names and the others numbers; votes between systems are for "
            "concordant rank"
        )
    measures = [c for c in chosen if plain(c) in NAMES["score"]]
    if layout == "tasks-by-systems" and given.get("system") is None and wanted is None and measures:
        text = (
            f"{log.name}: each row is a task ({names!r}), and {few(measures)} is a score, of one system as it seems; "
        )
        raise UsageError(
            text + "give rows of system, task, score, or say which columns are systems by ", Setting("tasks")
        )
    if percent := [c for c in chosen if cells[c].percent]:
        notes.append(_percent(percent))
    rows = len(table)
    values = np.concatenate([_scores(log, cells[c], c) for c in chosen])
    label = _names(table[names], log.as_json)
    if label.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(label), "")).as_py():
        raise InputError(f"{log.name}: {label.null_count:,} of {rows:,} rows have no name in the column {names!r}")
    across = pa.array(chosen, pa.large_string()).take(pa.array(np.repeat(np.arange(len(chosen)), rows)))
    down = pa.concat_arrays([label] * len(chosen))
    system, task = (down, across) if layout == "systems-by-tasks" else (across, down)
    out: dict[str, Any] = {"system": system, "task": task, "score": pa.array(values, from_pandas=True)}
    for role in ("trial", "weight", "cluster"):
        if role in given:
            column = table[given[role]]
            if role == "weight":
                out[role] = pa.array(np.tile(_scores(log, _Cells(column, log.as_json), given[role]), len(chosen)))
            else:
                out[role] = pa.concat_arrays([texts(column, as_json=log.as_json).cast(pa.large_string())] * len(chosen))
    if found.guessed:
        text = "rows are read as systems (column {names!r}) and columns as tasks; the other way round: {ask}"
        if layout == "tasks-by-systems":
            text = "rows are read as tasks (column {names!r}) and columns as systems; the other way round: {ask}"
        other = LAYOUTS[1 + (layout == "systems-by-tasks")]
        notes.append(Note("layout", text, names=names, ask=Setting("layout", other)))
    return pa.table(out), tuple(notes)


def _names(column: Any, as_json: bool) -> Any:
    """Return names as texts; of links, as leaderboards have them, what is shown."""
    label = texts(column, as_json=as_json)
    if pa.types.is_null(label.type):
        return label.cast(pa.large_string())
    shown = label.dictionary.to_pylist()
    words = [(link[1] or link[2]).strip() if (link := LINK.match(one)) else one for one in shown]
    return pa.array(words, pa.large_string()).take(label.indices)


# -- scores that nobody asked for --------------------------------------------------------------------------------------
def tabled(log: Log) -> Published | None:
    """Return a table that by its columns holds scores of systems on tasks, read as ``read_scores`` does; else None.

    A long one has columns of the three names. A wide one has a first column (or one called so) of names that hardly
    recur and two columns or more of scores; where its rows are tasks all others are numbers.
    Errors (InputError): scores that are no numbers.
    """
    if log.parts or log.on_spark or (log.path is None and not isinstance(log.table, pa.Table | Stream)):
        return None
    log = sniffed(log)
    if log.format not in ("csv", "tsv", "json", "parquet", "arrow", "table", "stream"):
        return None
    if log.format == "json" and ((head := head_of(log)) is None or head.form == "document"):
        return None
    log = log if log.columns else with_columns(log)
    roles = roles_of(log)
    where: tuple[tuple[str, str], ...]
    if {"system", "task", "score"} <= {*roles}:
        if not _Cells(columns_of(log, [roles["score"]])[roles["score"]], log.as_json).some:
            return None
        what, where = "table of scores", tuple(roles.items())
    else:
        wide = _wide_of(log)
        if wide is None or len(wide.scores) < 2 or (wide.layout == "tasks-by-systems" and wide.none):
            return None
        what, rows = "wide table of scores", ("system", "task")
        rows = rows if wide.layout == "systems-by-tasks" else rows[::-1]
        where = ((rows[0], wide.names), (rows[1], few(wide.scores, 6)))
    table, told = scores_of(log)
    table = table.filter(pc.is_valid(table["score"]))
    if not len(table):
        return None
    return Published(what, SCORES, table, told, where)


def sums_of(log: Log) -> tuple[str, int, tuple[str, ...]] | None:
    """Return, of a table that has a system a row and no scores on tasks, the names, their number, and the numbers."""
    wide = _wide_of(log)
    if wide is None or len(wide.scores) > 1 or plain(wide.names) not in (*NAMES["system"], "key"):
        return None
    numbers = tuple(c for c in log.columns if c in wide.scores or c in wide.aside)
    return (wide.names, len(wide.table), numbers) if numbers else None


def _wide_of(log: Log) -> _Chosen | None:
    """Return the columns of a table that may be a wide one of scores; None where it cannot be."""
    names = {plain(name) for name in log.columns}
    if not 2 <= len(log.columns) <= WIDEST or len(set(log.columns)) < len(log.columns) or names & {*ALIASES["item"]}:
        return None
    wide = _chosen(log, {}, None, None)
    first = wide.names == log.columns[0] or not wide.guessed
    if not first or not 2 <= len(wide.table) <= MOST or (wide.guessed and wide.cells[wide.names].some):
        return None
    label = _names(wide.table[wide.names], log.as_json).to_pylist()
    if None in label or "" in label or len(label) - len(set(label)) > SAME * len(label):
        return None
    return wide
