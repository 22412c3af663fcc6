"""Scores and labels from two files, matched by query and item; what does not match is counted and said."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb as library
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.apps.commands.shared_options import ClickOptions
from concordant.errors import ConcordantError, InputError, counted, few
from concordant.io.engines import duckdb, memory
from concordant.io.engines.counting import choose, with_columns
from concordant.io.log.formats import Log, locate
from concordant.io.read import layout_of
from concordant.io.store.catalogue import is_store
from concordant.preferences.labels import Labels, look_alike
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.lists import FAR
from concordant.preferences.values import INFINITE, MISSING, NULL_BYTE, labels, numbers
from concordant.record import telling

NAMES = {
    "query": ALIASES["query"],
    "item": ALIASES["item"],
    "score": ("score", "scores", "prediction", "predicted", "pred"),
    "label": ("label", "labels", "relevance", "rel", "grade", "rating"),
}
"""Columns that are recognised without a flag."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Valued:
    """A file of one number for each (query, item), both as texts; ``query`` is None where there is no such column."""

    log: Log
    query: pa.Array | None
    item: pa.Array
    value: NDArray[np.float64]
    beside: Mapping[str, pa.Array] = field(default_factory=dict)
    """Of a ranking, its columns component and flag."""

    def place(self, row: int) -> str:
        """Return where a row stands in the file, such as ``line 17``."""
        if self.log.format == "database":
            return f"row {row + 1:,}"
        rows = memory.placed_rows(self.log, self.log.columns[:1])
        return f"{self.log.place} {next(itertools.islice(rows, row, None))[0]:,}"

    def named(self, row: int) -> str:
        """Return query, item and place of a row."""
        of = "" if self.query is None else f"query {self.query[row].as_py()!r}, "
        return f"{of}item {self.item[row].as_py()!r}, {self.place(row)}"


@dataclass(frozen=True)
class Matched:
    """Rows with a score and a label, in the order of the scores; what was left out, as text."""

    query: pa.Array | None
    item: pa.Array
    score: NDArray[np.float64]
    label: NDArray[np.float64]
    left_out: str


def click_options(options: ClickOptions) -> dict[str, Any]:
    """Return the options of a structure that ``--propensities`` and ``--clip`` say."""
    given = {} if options.propensities is None else {"propensities": read_propensities(options.propensities)}
    return given if options.clip is None else {**given, "clip": options.clip}


@telling("values", lambda found: {"rows": len(found.item)})
def read_valued(source: str, role: str, given: Mapping[str, str | None]) -> Valued:
    """Read query, item and score or label (``role``) from a file; ``given`` names columns for roles.

    Errors (InputError): a column that is not there or cannot be told, labels or numbers that are missing or not such.
    """
    log = locate(source, many=False)
    try:
        if log.format == "preflib":
            raise InputError(f"{log.name}: a PrefLib file holds orders, not {role}s")
        log = with_columns(log)
        columns = {one: column_of_role(log, one, given.get(one)) for one in ("query", "item", role)}
        named = [name for name in columns.values() if name is not None]
        beside = [name for name in ("component", "flag") if role == "score" and name in log.columns]
        table = _table(log, list(dict.fromkeys([*named, *beside])))
    except (library.Error, pa.ArrowException) as error:
        raise InputError(f"{log.name}: cannot be read: {duckdb.message(error)}") from None
    if not len(table):
        raise InputError(f"{log.name}: the file holds no rows")
    found = {one: None if name is None else table[name] for one, name in columns.items()}
    query, item = (None if found[one] is None else _texts(log, found[one], one) for one in ("query", "item"))
    read = numbers(found[role], as_json=log.as_json)
    if read.fault is not None:
        kinds = {MISSING: f"have no {role}", INFINITE: f"have a {role} that is not finite"}
        _refuse(log, read.fault, lambda code: kinds.get(code, f"have a {role} that is not a number"))
    return Valued(log, query, item, np.asarray(read.values, np.float64), {name: table[name] for name in beside})


def read_scores(source: str, score: str | None = None) -> dict[str, Any]:
    """Return the scores of a file as columns item, score and, where it has several, query, in texts.

    Errors: see ``read_valued``.
    """
    valued = read_valued(source, "score", {"score": score})
    several = valued.query is not None and len(pc.unique(valued.query)) > 1
    return {"item": valued.item, "score": valued.value} | ({"query": valued.query} if several else {})


PROPENSITIES = ("propensity", "propensities", "examination", "theta", "θ")
"""Names that the column of propensities has; examination is what ``rank --positions`` writes."""


def read_propensities(source: str) -> list[float | None]:
    """Read how often each position is examined, the first 1: columns position and propensity, in any order of rows.

    None of a position that the file leaves out. Errors (InputError): a column that is not there; positions that are not
    integers from 1 on, each once, or leave gaps and go far; numbers that are no propensities; what ``rank --positions``
    wrote of positions that the log could not compare.
    """
    log = with_columns(locate(source, many=False))
    named = {
        role: [name for name in log.columns if plain(name) in names]
        for role, names in {
            "position": ALIASES["position"],
            "propensity": PROPENSITIES,
            "component": ("component",),
        }.items()
    }
    for role in ("position", "propensity"):
        if len(named[role]) != 1:
            which = f"{few(named[role])} could each be the" if named[role] else "no column of the"
            raise InputError(f"{log.name}: {which} {role}; columns there: {few(log.columns, 40)}")
    table = _table(log, [name for names in named.values() for name in names])
    found = {}
    for role, names in named.items():
        if names:
            read = numbers(table[names[0]], as_json=log.as_json)
            if read.fault is not None:
                _refuse(log, read.fault, dict.fromkeys(range(128), f"have a {role} that is not a number").get)
            found[role] = np.asarray(read.values, np.float64)
    position, propensity = found["position"], found["propensity"]
    if not len(position):
        raise InputError(f"{log.name}: the file holds no rows")
    if (found.get("component", position[:1]) != found.get("component", position)[0]).any():
        raise InputError(
            f"{log.name}: these positions are of several components, each with a scale of its own, so they are no "
            "propensities; show some lists in another order, for instance shuffled"
        )
    sorter = np.argsort(position, kind="stable")
    ordered = position[sorter]
    wrong = np.flatnonzero((np.diff(ordered, prepend=0.0) <= 0) | (ordered != np.floor(ordered)))
    if len(wrong) or ordered[-1] > max(FAR, len(ordered)):
        at = ordered[wrong[0]] if len(wrong) else ordered[-1]
        again = bool(len(wrong) and wrong[0]) and at == ordered[wrong[0] - 1]
        said = "stands twice" if again else "is none" if len(wrong) else f"comes where there are {len(ordered):,}"
        raise InputError(f"{log.name}: positions are 1, 2, 3, …, each in one row; {at:g} {said}")
    outside = np.flatnonzero(~((propensity > 0) & (propensity <= 1)))
    if len(outside):
        raise InputError(
            f"{log.name}: {len(outside):,} of {len(propensity):,} propensities are not in (0, 1] (first: "
            f"{propensity[outside[0]]:g} of position {position[outside[0]]:g}); divide them by the greatest where only "
            "their ratios are known"
        )
    by_position = dict(zip(ordered.astype(int).tolist(), propensity[sorter].tolist(), strict=True))
    return [by_position.get(at + 1) for at in range(int(ordered[-1]))]


def holds_judgments(source: str, asked: Mapping[str, Any], label: str | None) -> bool:
    """Whether a file holds judgments, read as ``asked`` for: no LETOR, no qrels, no column that is called like labels.

    A file that is neither counts as labels, and what they lack is said.
    """
    if label is not None or is_store(Path(source)):
        return label is None
    log = locate(source)
    if log.parts or log.format == "preflib":
        return True
    log = with_columns(log)
    if "grade" in asked["columns"]:
        return True
    if log.format in ("letor", "qrels") or any(plain(name) in NAMES["label"] for name in log.columns):
        return False
    if asked["kind"] or asked["cluster"] or {*asked["columns"]} - {"query", "item"}:
        return True
    try:
        return layout_of(log) is not None
    except ConcordantError:
        return False


def column_of_role(log: Log, role: str, given: str | None) -> str | None:
    """Return the column that plays a role, given or by its usual names; None where no column is the query.

    Errors (InputError): one that is given and not there, none, several that could be it.
    """
    if given is not None:
        if given in log.columns:
            return given
        if role == "query" and len(log.columns) == 3 and log.lines is not None:  # LETOR and qrels name their own
            return "query"
        raise InputError(
            f"{log.name}: no column {given!r} (asked for as {role}); columns there: {few(log.columns, 40)}"
        )
    exact = [name for name in NAMES[role] if name in log.columns]
    found = exact or [name for name in log.columns if plain(name) in NAMES[role]]
    if len(found) > 1:
        raise InputError(f"{log.name}: {few(found)} could each be the {role}; say which one with --{role} COLUMN")
    if not found and role != "query":
        raise InputError(
            f"{log.name}: no column of the {role}; columns there: {few(log.columns, 40)}; name it with --{role} COLUMN"
        )
    return found[0] if found else None


def _table(log: Log, columns: Sequence[str]) -> pa.Table:
    """Return the columns in the order of the file; a text file that DuckDB refuses is read plainly, as logs are."""
    settings = duckdb.Settings()
    if log.format == "database":
        return duckdb.table(log, columns, settings).rename_columns(list(columns))
    if log.format in ("csv", "tsv") and choose(log, None, None, None).engine == "duckdb":
        with contextlib.suppress(library.Error):
            return duckdb.table(log, columns, settings).rename_columns(list(columns))
    return memory.arrow_table(log, columns)


def _texts(log: Log, column: Any, role: str) -> pa.Array | None:
    """The labels as texts; None for queries that are missing in every row, as concordant score writes them."""
    try:
        read = labels(column, role, as_json=log.as_json)
    except InputError as error:
        raise InputError(f"{log.name}: {error}") from None
    if read.fault is not None:
        if role == "query" and (read.fault == MISSING).all():
            return None
        kinds = {MISSING: f"have no {role}", NULL_BYTE: f"have a null byte in the {role}"}
        _refuse(log, read.fault, lambda code: kinds.get(code, f"have a {role} that is neither a text nor an integer"))
    return read.values.cast(pa.large_string())


def _refuse(log: Log, fault: NDArray[np.int8], reason: Any) -> None:
    row = int(np.flatnonzero(fault)[0])
    same = int((fault == fault[row]).sum())
    empty = Valued(log, None, pa.array([]), np.zeros(0))
    raise InputError(
        f"{log.name}: {same:,} of {len(fault):,} rows {reason(int(fault[row]))} (first: {empty.place(row)})"
    )


def match(scores: Valued, labels_: Valued, unmatched: str | None) -> Matched:
    """Match scores with labels by query and item; ``unmatched``: raise, skip or trec; None: trec for a run and qrels.

    With "trec" the rows are those of the queries that both have: what has no label has 0, what has no score −∞.

    Errors (InputError): a query in one file only, a (query, item) twice, no match at all, and, with ``unmatched``
    "raise", rows without a partner.
    """
    if (scores.query is None) != (labels_.query is None):
        without = scores if scores.query is None else labels_
        raise InputError(f"{without.log.name}: no column of the query, the other file has one; name it with --query")
    left, right = _keys(scores, labels_)
    _refuse_twice(scores, left)
    _refuse_twice(labels_, right)
    sorter = np.argsort(right)
    at = np.minimum(np.searchsorted(right[sorter], left), len(right) - 1)
    partner = sorter[at]
    found = right[partner] == left
    if not found.any():
        raise InputError(
            f"no row of {scores.log.name} matches {labels_.log.name} by query and item; first rows: "
            f"{scores.named(0)} and {labels_.named(0)}{_alike(scores, 0, labels_)}"
        )
    used = np.zeros(len(right), np.bool_)
    used[partner[found]] = True
    trec = unmatched == "trec" or (unmatched is None and (scores.log.format, labels_.log.format) == ("run", "qrels"))
    others = (", so it is not relevant", ", so it is not retrieved") if trec else ("", "")
    said = [_lacking(scores, found, "label", labels_), _lacking(labels_, used, "score", scores)]
    said = [f"{text}{other}" for text, other in zip(said, others, strict=True) if text]
    if said and not trec and unmatched != "skip":
        raise InputError(f"{'; '.join(said)}; --unmatched skip leaves them out")
    ours, theirs = found, np.zeros(len(right), np.bool_)
    if trec and scores.query is not None and labels_.query is not None:
        ours, theirs = (
            np.asarray(pc.is_in(one, other))
            for one, other in ((scores.query, labels_.query), (labels_.query, scores.query))
        )
        said += [*_queries_left(scores, ours, labels_), *_queries_left(labels_, theirs, scores)]
    elif trec:
        ours, theirs = np.ones(len(left), np.bool_), np.ones(len(right), np.bool_)
    theirs = theirs & ~used

    def both(one: pa.Array, other: pa.Array) -> pa.Array:
        return pa.concat_arrays([one.filter(pa.array(ours)), other.filter(pa.array(theirs))])

    return Matched(
        query=None if scores.query is None or labels_.query is None else both(scores.query, labels_.query),
        item=both(scores.item, labels_.item),
        score=np.concatenate([scores.value[ours], np.full(int(theirs.sum()), -np.inf)]),
        label=np.concatenate([np.where(found, labels_.value[partner], 0.0)[ours], labels_.value[theirs]]),
        left_out="; ".join(said),
    )


def _queries_left(one: Valued, kept: NDArray[np.bool_], other: Valued) -> list[str]:
    """Say how many queries of a file are in it alone."""
    number = 0 if one.query is None else len(pc.unique(one.query.filter(pa.array(~kept))))
    return [f"left out: {counted(number, 'queries')} of {one.log.name} that {other.log.name} lacks"] if number else []


def _keys(scores: Valued, labels_: Valued) -> tuple[Ints, Ints]:
    """Return one integer for each (query, item) of either file."""
    size = len(scores.item)
    item = pa.concat_arrays([scores.item, labels_.item]).dictionary_encode()
    key = item.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if scores.query is not None and labels_.query is not None:
        query = pa.concat_arrays([scores.query, labels_.query]).dictionary_encode().indices
        key += query.to_numpy(zero_copy_only=False).astype(np.int64) * len(item.dictionary)
    return key[:size], key[size:]


def _refuse_twice(valued: Valued, key: Ints) -> None:
    sorter = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[sorter][1:] == key[sorter][:-1])
    if len(again):
        first = again[np.argmin(sorter[again + 1])]
        raise InputError(
            f"{valued.log.name}: {len(again):,} rows repeat a query and item "
            f"(first: {valued.named(int(sorter[first + 1]))}, as {valued.place(int(sorter[first]))}); one row for each"
        )


def _lacking(valued: Valued, found: NDArray[np.bool_], what: str, other: Valued) -> str:
    if found.all():
        return ""
    row = int(np.flatnonzero(~found)[0])
    return (
        f"{int((~found).sum()):,} of {len(found):,} rows of {valued.log.name} have no {what} in {other.log.name} "
        f"(first: {valued.named(row)}{_alike(valued, row, other)})"
    )


def _alike(valued: Valued, row: int, other: Valued) -> str:
    """Say which label of another file the item or the query of a row looks like."""
    said = look_alike(valued.item[row].as_py(), Labels.encode(other.item)[0])
    if not said and valued.query is not None and other.query is not None:
        said = look_alike(valued.query[row].as_py(), Labels.encode(other.query)[0])
    return said


def query_names(query: pa.Array | None) -> list[str]:
    """Return the queries in order of first appearance; one without a name where there is no such column."""
    return [""] if query is None else list(pc.unique(query).to_pylist())
