"""``concordant evaluate``: read, match, judge, print.

The AUC of one list alone has a standard error and an interval without other queries: DeLong's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.apps.commands.durations import evaluating, judging, of_metrics
from concordant.apps.commands.matching import Matched, Valued, holds_judgments, match, query_names, read_valued
from concordant.apps.commands.options import EvaluateOptions
from concordant.apps.commands.output import print_csv
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, check_grades
from concordant.apps.commands.saying import one_line
from concordant.apps.models.directory import is_model
from concordant.errors import InputError, UsageError, few
from concordant.io.read import read_log
from concordant.losses.metrics.auc import auc_difference, auc_interval
from concordant.losses.metrics.conventions import convention_of
from concordant.losses.metrics.judged_lists import Floats, scores_alike
from concordant.losses.metrics.metrics import METRICS, Comparison, Summary, canonical, compare, metric, summarise
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.progress import stage, steps
from concordant.ranking.cross_validation import cross_validate
from concordant.ranking.cumulative import THRESHOLD, Cuts
from concordant.ranking.held_out import held_out, matched
from concordant.ranking.summary import term_of

if TYPE_CHECKING:
    from concordant.apps.commands.fitted_scorer import FittedScorer


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


def evaluate(options: EvaluateOptions) -> None:
    """Print a table on a terminal, CSV into a pipe; notes go to stderr."""
    options.settle(terminal=sys.stdout.isatty())
    if options.split is not None:
        _by_parts(options)
        return
    if options.labels is None:
        raise click.UsageError("Missing argument 'LABELS'; of judgments alone, --split holds some out")
    labels = options.labels
    kept = is_model(Path(options.scores))
    options.settle(model=kept)
    fitted: FittedScorer | None = None
    if kept or options.target is not None:
        from concordant.apps.commands import fitted_scorer

        fitted = fitted_scorer.FittedScorer.of(options, kept=kept)
    votes = options.engine != "spark" and holds_judgments(labels, asked_of(options), options.label)
    options.settle(votes=votes)
    if votes:
        _by_votes(options, fitted)
        return
    if options.more and not options.metrics:
        raise UsageError(f"{options.more[0]!r} is neither SCORES nor LABELS; name metrics with --metric")
    asked = (*options.metrics, *options.more) or ((fitted and fitted.target) or "ndcg@10",)
    names = [name for said in asked for name in said.split(",")]
    options.settle(conventions=not all(_simple(name) for name in names))
    if options.engine == "spark":
        options.settle(bounded=options.against is not None)
        from concordant.apps.commands import on_spark

        with Progress(options.quiet, "evaluating"):
            table, told = on_spark.evaluate(options, names)
        _show(table)
        options.say_notes(told)
        return
    if options.master is not None:
        raise UsageError(f"--master {options.master} belongs to --engine spark")
    judges = {name: metric(name, options.convention) for name in names}  # wrong names cost no reading
    columns = {"query": options.query, "item": options.item, "score": options.score, "label": options.label}
    rows = (options.features or labels) if kept and fitted else None
    with Progress(options.quiet, "evaluating", evaluating(options, judges, rows)):
        with stage(f"reading {labels}"):
            judged = read_valued(labels, "label", columns)
        valued = fitted.valued(options) if kept and fitted else _read(options.scores, columns)
        with stage("matching rows"):
            lists = match(valued, judged, options.unmatched)
        each, costs = list(judges), of_metrics(judges)
        values = {name: _values(judges[name], lists) for name in steps("metrics", each, costs=costs, single=True)}
    options.say_notes([*([lists.left_out] if lists.left_out else []), *(fitted.notes if fitted else [])])
    if placed := by_order_of_rows(names, options.convention):
        code = np.zeros(len(lists.score), np.int64) if lists.query is None else Labels.encode(lists.query)[1]
        alike = scores_alike(lists.score, lists.label, code)
        options.say_notes(said_of_tied(int(alike.sum()), len(alike), placed))
    queries = query_names(lists.query)
    other: dict[str, Floats] = {}
    second: Matched | None = None
    if options.against:
        with Progress(options.quiet, f"evaluating {options.against}"):
            second = match(read_valued(options.against, "score", columns), judged, options.unmatched)
            at = _places(queries, second, options)
            other = {name: _values(judges[name], second)[at] for name in steps("metrics", each, costs=costs)}
        options.say_notes([second.left_out] if second.left_out else [])
    if options.per_query:
        table = _by_query(values, other, queries)
    else:
        alone, note = of_one_list(list(values), lists, second, options.level)
        options.settle(bounded=bool(alone or note or (other and len(queries) > 1)))
        options.say_notes([note] if note else [])
        table = _means(values, other, options.level, alone)
    _show(table)
    for name, found in values.items():
        if missing := int(np.isnan(found).sum()):
            options.say("note", f"{name}: {missing:,} of {len(found):,} queries have no value and are left out")


def by_order_of_rows(names: Sequence[str], convention: str | None) -> list[str]:
    """Return those metrics, all of places, that take equal scores in the order of their rows."""
    if convention_of(convention or "burges").ties != "input":
        return []
    called = {name: canonical(name.partition("@")[0].strip("-")) for name in names}
    return [name for name, known in called.items() if known and METRICS[known].cutoff]


def said_of_tied(tied: int, of: int, names: list[str]) -> list[Note]:
    """Say of how many queries every score is the same, though labels are not: metrics of places are by chance there."""
    text = "in {tied:,} of {of:,} queries all scores are equal: {names} {many:goes|go} by the order of the rows there"
    return [Note("scores alike", text, tied=tied, of=of, names=few(names), many=len(names))] if tied else []


def _read(source: str, columns: dict[str, str | None]) -> Valued:
    with stage(f"reading {source}"):
        return read_valued(source, "score", columns)


def _by_votes(options: EvaluateOptions, fitted: FittedScorer | None) -> None:
    """Judge the scores of a ranking or a model by judgments that it has not seen."""
    if options.more:
        raise UsageError(f"{options.labels} holds judgments, which no metric such as {options.more[0]!r} reads")
    columns = {"query": options.query, "item": options.item, "score": options.score}
    with Progress(options.quiet, "evaluating", judging(options)):
        alone = fitted is not None and fitted.ranker is not None
        valued = fitted.valued(options) if alone and fitted else _read(options.scores, columns)
        several = valued.query is not None and len(pc.unique(valued.query)) > 1
        with stage(f"reading {options.labels}"):
            asked = asked_of(options, engine=None)
            if several and options.pool is None:
                asked["pool"] = False  # scores of each query are judged by its own judgments
            reading = read_log(options.labels, **asked)
        prefs = reading.preferences
        component = np.zeros(len(valued.value), np.int64)
        if "component" in valued.beside:
            codes = pc.fill_null(pc.cast(valued.beside["component"], pa.large_string()), "")
            component = Labels.encode(codes.combine_chunks())[1].astype(np.int64)
        if "flag" in valued.beside:
            flags = pc.fill_null(pc.cast(valued.beside["flag"], pa.large_string()), "")
            component[np.asarray(pc.match_substring_regex(flags, "never compared|rated equally"))] = -1
        known = matched(
            query=valued.query if several else None, item=valued.item, score=valued.value, component=component
        )
        table: pa.Table | None = None
        notes: tuple[Note, ...] = ()
        if not alone:
            beside = _coefficients(options.coefficients)
            with stage("foretelling judgments"):
                found = held_out(prefs, known, *beside)
            table, notes = found.table, (_made_from(options.coefficients, *beside), *found.notes)
        if fitted is not None:
            with stage("foretelling judgments"):
                row, left_out = fitted.judged(prefs, known)
            notes = (*left_out, *notes)
            table = row if table is None else pa.concat_tables([row, table])
    _show(table)
    skipped = [f"skipped: {reading.report()}"] if reading.rejects else []
    options.say_notes(
        [*skipped, f"{options.labels}: {prefs.facts}", *reading.notes, *notes, *(fitted.notes if fitted else [])]
    )


def _made_from(source: str | None, beta: dict[str, float], log_nu: float | None, cuts: Cuts | None) -> Note:
    """Say what predictions are made from: a file of scores does not say which coefficients stood beside them."""
    names = [*(term_of(name) for name in beta), *([] if log_nu is None else [term_of("ties")])]
    names += [] if cuts is None else ["thresholds"]
    text = "scores are taken for log-abilities: the chance of a win is 1/(1 + e^−difference)"
    if source is None:
        text += (
            "; no home side, no covariates, and ties are half wins: of a ranking with --home, --covariate, --ties "
            "davidson or --ties cumulative name its coefficients, too (rank --coefficients F writes them)"
        )
    else:
        text = "scores are taken for log-abilities, with the coefficients of {source} ({names})"
        text += "; ties are half wins" if log_nu is None and cuts is None else ""
    return Note("made from", text, source=source or "", names=", ".join(names))


def _by_parts(options: EvaluateOptions) -> None:
    """Judge rankings of parts of a log by the others."""
    if options.labels is not None:
        raise UsageError(f"--split holds out parts of {options.scores}; leave out {options.labels}")
    if options.engine == "spark":
        raise UsageError("executors of Spark hold nothing out; leave out --engine spark")
    more = {"prior": options.prior, "ties": options.ties, "half_life": options.half_life}
    with Progress(options.quiet, "evaluating", judging(options, options.folds)):
        with stage(f"reading {options.scores}"):
            reading = read_log(options.scores, **asked_of(options))
        check_grades(options, reading.roles, reading.name)
        found = cross_validate(
            reading.preferences,
            options.structure,
            split=options.split or "random",
            folds=options.folds,
            seed=options.seed,
            **{name: value for name, value in more.items() if value is not None},
        )
    _show(found.table)
    skipped = [f"skipped: {reading.report()}"] if reading.rejects else []
    options.say_notes([*skipped, f"{options.scores}: {reading.preferences.facts}", *reading.notes, *found.notes])


def _coefficients(source: str | None) -> tuple[dict[str, float], float | None, Cuts | None]:
    """Read slopes of covariates, log ν of ties and thresholds, of one query, as ``rank --coefficients`` writes them."""
    if source is None:
        return {}, None, None
    found = read_valued(source, "score", {"query": None, "item": "name", "score": "estimate"})
    names = [] if found.item is None else found.item.to_pylist()
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{source}: the coefficient {twice!r} stands there twice; those of one query are needed")
    beta = dict(zip(names, found.value.tolist(), strict=True))
    if several := [name for name in names if name.startswith("ties of ")]:
        raise InputError(f"{source}: {several[0]!r} is of rankings with ties, which do not foretell comparisons")
    cuts = {name: beta.pop(name) for name in names if name.startswith(THRESHOLD)}
    return beta, beta.pop("ties", None), Cuts.of(cuts)


def _simple(name: str) -> bool:
    """Whether a metric has no cut-off and with it no conventions; of an unknown name that is said later."""
    known = canonical(name)
    return known is not None and not METRICS[known].cutoff


def _show(table: pa.Table) -> None:
    if sys.stdout.isatty():
        _print(table)
    else:
        print_csv(table)


def _values(judge: Any, lists: Matched) -> Floats:
    return np.asarray(judge(lists.score, lists.label, lists.query, item=lists.item), np.float64)


def _places(queries: list[str], second: Matched, options: EvaluateOptions) -> list[int]:
    """Return where the second scorer has each query."""
    place = {name: at for at, name in enumerate(query_names(second.query))}
    lacking = set(queries) ^ set(place)
    if lacking:
        raise InputError(
            f"{options.against}: {len(lacking):,} queries have rows of one scorer only (such as "
            f"{min(lacking)!r}); paired differences need the same queries"
        )
    return [place[name] for name in queries]


def _means(
    values: dict[str, Floats], other: dict[str, Floats], level: float, alone: dict[str, dict[str, Any]]
) -> pa.Table:
    rows = []
    bounds = dict.fromkeys(("lower", "upper"), float("nan")) if alone and not other else {}
    for name, found in values.items():
        second = (summarise(other[name]), compare(found, other[name], level=level)) if other else None
        rows.append(mean_row(name, summarise(found), second) | bounds | alone.get(name, {}))
    return pa.Table.from_pylist(rows)


def mean_row(name: str, one: Summary, second: tuple[Summary, Comparison] | None) -> dict[str, Any]:
    """Return the row of a metric, beside that of a second scorer and their difference."""
    row = {"name": name, "mean": one.mean, "standard_error": one.standard_error, "queries": one.queries}
    if second is None:
        return row
    other, pair = second
    row |= {"against": other.mean, "difference": pair.mean}
    return row | {"lower": pair.lower, "upper": pair.upper, "p_value": pair.p_value}


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
