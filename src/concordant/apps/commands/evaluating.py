"""What ``concordant evaluate`` does once its arguments are known: read, match, judge, print.

The AUC of one list alone has a standard error and an interval without other queries: DeLong's.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.apps.commands.given import Given
from concordant.apps.commands.matching import Matched, match, query_names, read_valued
from concordant.apps.commands.output import as_csv, one_line
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.saying import say
from concordant.errors import InputError, UsageError
from concordant.losses.metrics.auc import auc_difference, auc_interval
from concordant.losses.metrics.judged_lists import Floats
from concordant.losses.metrics.metrics import METRICS, canonical, compare, metric, summarise
from concordant.progress import stage, steps

__all__ = ["of_one_list", "run_evaluate"]


def of_one_list(
    names: list[str], lists: Matched, second: Matched | None, level: float
) -> tuple[dict[str, dict[str, Any]], str]:
    """Return what is known of the AUCs among ``names`` beyond their value, where there is one query, and a note."""
    areas = [name for name in names if canonical(name) == "auc"]
    if not areas or len(query_names(lists.query)) != 1:
        return {}, ""
    try:
        found = _alone(lists, level) if second is None else _paired(lists, second, level)
    except InputError as error:
        return {}, f"{areas[0]}: no interval: {error}"
    return dict.fromkeys(areas, found), (
        f"{areas[0]}: one list; standard error and interval are DeLong's, for independent rows"
    )


def _alone(lists: Matched, level: float) -> dict[str, Any]:
    found = auc_interval(lists.score, lists.label, level=level)
    return {"standard_error": found.standard_error, "lower": found.lower, "upper": found.upper}


def _paired(lists: Matched, second: Matched, level: float) -> dict[str, Any]:
    place = pc.index_in(lists.item, second.item)
    if len(lists.item) != len(second.item) or place.null_count:
        raise InputError("the two scorers do not have the same rows")
    other = second.score[np.asarray(place)]
    found = auc_difference(lists.score, other, lists.label, level=level)
    own = auc_interval(lists.score, lists.label, level=level)
    bounds = {"lower": found.lower, "upper": found.upper, "p_value": found.p_value}
    return {"standard_error": own.standard_error, **bounds}


def run_evaluate(scores: str, labels: str, given: Given) -> None:
    """Print a table on a terminal, CSV into a pipe; notes go to stderr."""
    given.settle(conventions=not all(_simple(name) for name in given["metrics"]))
    if given["engine"] == "spark":
        given.settle(bounded=given["against"] is not None)
        from concordant.apps.commands.evaluating_spark import evaluated_on_spark

        with Progress(given["quiet"], "evaluating"):
            table, told = evaluated_on_spark(scores, labels, given)
        _show(table)
        for text in told:
            _note(text, given["quiet"])
        return
    if given["master"] is not None:
        raise UsageError(f"--master {given['master']} belongs to --engine spark")
    judges = {name: metric(name, given["convention"]) for name in given["metrics"]}  # wrong names cost no reading
    columns = {role: given[role] for role in ("query", "item", "score", "label")}
    with Progress(given["quiet"], "evaluating"):
        with stage(f"reading {labels}"):
            judged = read_valued(labels, "label", columns)
        with stage(f"reading {scores}"):
            valued = read_valued(scores, "score", columns)
        with stage("matching rows"):
            lists = match(valued, judged, given["unmatched"])
        values = {name: _values(judges[name], lists) for name in steps("metrics", list(judges))}
    _note(lists.left_out, given["quiet"])
    queries = query_names(lists.query)
    other: dict[str, Floats] = {}
    second: Matched | None = None
    if given["against"]:
        with Progress(given["quiet"], f"evaluating {given['against']}"):
            second = match(read_valued(given["against"], "score", columns), judged, given["unmatched"])
            at = _places(queries, second, given)
            other = {name: _values(judges[name], second)[at] for name in steps("metrics", list(judges))}
        _note(second.left_out, given["quiet"])
    if given["per_query"]:
        table = _by_query(values, other, queries)
    else:
        alone, note = of_one_list(list(values), lists, second, given["level"])
        given.settle(bounded=bool(alone or note or (other and len(queries) > 1)))
        _note(note, given["quiet"])
        table = _means(values, other, given["level"], alone)
    _show(table)
    for name, found in values.items():
        if missing := int(np.isnan(found).sum()):
            _note(f"{name}: {missing:,} of {len(found):,} queries have no value and are left out", given["quiet"])


def _simple(name: str) -> bool:
    """Whether a metric has no cut-off and with it no conventions; of an unknown name that is said later."""
    known = canonical(name)
    return known is not None and not METRICS[known].cutoff


def _show(table: pa.Table) -> None:
    if sys.stdout.isatty():
        _print(table)
    else:
        sys.stdout.buffer.write(as_csv(table))
        sys.stdout.buffer.flush()


def _values(judge: Any, lists: Matched) -> Floats:
    return np.asarray(judge(lists.score, lists.label, lists.query, item=lists.item), np.float64)


def _places(queries: list[str], second: Matched, given: Given) -> list[int]:
    """Return where the second scorer has each query."""
    place = {name: at for at, name in enumerate(query_names(second.query))}
    lacking = set(queries) ^ set(place)
    if lacking:
        raise InputError(
            f"{given['against']}: {len(lacking):,} queries have rows of one scorer only (such as "
            f"{min(lacking)!r}); paired differences need the same queries"
        )
    return [place[name] for name in queries]


def _means(
    values: dict[str, Floats], other: dict[str, Floats], level: float, alone: dict[str, dict[str, Any]]
) -> pa.Table:
    rows = []
    bounds = dict.fromkeys(("lower", "upper"), float("nan")) if alone and not other else {}
    for name, found in values.items():
        one = summarise(found)
        row: dict[str, Any] = {"name": name, "mean": one.mean, "standard_error": one.standard_error}
        row |= {"queries": one.queries} | bounds
        if other:
            pair = compare(found, other[name], level=level)
            row |= {"against": summarise(other[name]).mean, "difference": pair.mean}
            row |= {"lower": pair.lower, "upper": pair.upper, "p_value": pair.p_value}
        rows.append(row | alone.get(name, {}))
    return pa.Table.from_pylist(rows)


def _by_query(values: dict[str, Floats], other: dict[str, Floats], queries: list[str]) -> pa.Table:
    size = len(queries)
    columns = {
        "name": pa.array([name for name in values for _ in range(size)], pa.large_string()),
        "query": pa.array(queries * len(values), pa.large_string()),
        "value": pa.array(np.concatenate(list(values.values()))),
    }
    if other:
        columns["against"] = pa.array(np.concatenate(list(other.values())))
    return pa.table(columns)


def _print(table: pa.Table) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = Table(header_style="bold", box=None, pad_edge=False)
    for name in table.column_names:
        view.add_column(name.replace("_", " "), justify="left" if name in ("name", "query") else "right")
    for row in table.to_pylist():
        view.add_row(*[_cell(value, Text) for value in row.values()])
    Console().print(view)


def _cell(value: Any, text: Any) -> Any:
    if isinstance(value, float):
        return "–" if np.isnan(value) else f"{value:.4f}"
    return text(one_line(str(value))) if isinstance(value, str) else f"{value:,}"


def _note(text: str, quiet: bool) -> None:
    if text and not quiet:
        say("note", text)
