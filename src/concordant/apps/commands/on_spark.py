"""``--engine spark``: rank, audit, report, fit, score and evaluate where the rows lie, from what the tasks send."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import pyarrow as pa

from concordant.apps.commands.abstaining import careful, said_of
from concordant.apps.commands.evaluate import by_order_of_rows, mean_row, said_of_tied
from concordant.apps.commands.fit_options import FitOptions
from concordant.apps.commands.idle import chosen_by
from concordant.apps.commands.matching import column_of_role
from concordant.apps.commands.options import AuditOptions, EvaluateOptions, RankOptions, ScoreOptions, command_of
from concordant.apps.commands.output import check_folder, check_output, is_folder, put_table, show
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.rank import written
from concordant.apps.commands.reading_log import (
    asked_of,
    check_grades,
    chosen_columns,
    columns_of,
    names_of,
    said_of_names,
)
from concordant.apps.commands.report_options import ReportOptions
from concordant.apps.commands.saying import say
from concordant.apps.commands.standard import beside_the_result
from concordant.apps.models.saving import load_model, save_model
from concordant.apps.report.report import Report
from concordant.apps.report.report import report as report_here
from concordant.apps.spark import learning, metrics, ranking, scoring
from concordant.apps.spark.audited import divided
from concordant.apps.spark.counted import by_a_task, of_many_rows
from concordant.apps.spark.frames import MOST_ALONE, JudgedQueries, Table
from concordant.apps.spark.lists_of_log import settled
from concordant.apps.spark.partitioning import TooLarge
from concordant.apps.spark.pooled import lonely, scattered
from concordant.apps.spark.telling import told
from concordant.auditing.audit import audit as audit_here
from concordant.auditing.findings import Audit
from concordant.auditing.settings import AuditSettings
from concordant.errors import ConcordantError, InputError, UsageError, counted
from concordant.io.engines.spark_session import session, without_pandas_warning
from concordant.io.log.formats import Log, locate
from concordant.io.log.lakes import Several
from concordant.io.store.catalogue import is_store
from concordant.learning.annotators.scorers import FoundScorer
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.preferences.preferences import Preferences
from concordant.preferences.values import say as problems
from concordant.ranking.rank import Ranking
from concordant.ranking.structures import structure as find_structure

Found = TypeVar("Found")


@without_pandas_warning()
def rank(options: RankOptions, asked: dict[str, Any]) -> bool:
    """Rank on the executors and write; False, with nothing done, where that is the driver's work: a log that is one
    query which a task holds among others, a store, a PrefLib file, or scores against an item, which not every task may
    hold.
    """
    log, output, quiet = options.log, options.output, options.quiet
    log = Several((log, *options.more)) if options.more else log
    structure = options.structure or "bradley-terry"
    if options.id is not None or is_store(Path(log)) or locate(log, local=False).format == "preflib":
        return False
    reading = asked_of(options) | {"pool": False}  # where they are scattered the driver ranks
    with told(log):
        with Progress(quiet, f"counting {log}"):
            judged = JudgedQueries.opened(log, **reading)
            if judged.by_query and "reference" in asked:
                return False
            if not judged.by_query:
                if _fits(judged):
                    return False
                judged = judged.sized()
                beside = options.gave("coefficients", "positions")  # which are made where the ranking is
                if not judged.large or (beside and judged.large_sizes[0] <= MOST_ALONE):
                    return False
            check_grades(options, judged.checks.layout.roles, judged.name)
            # perhaps there are no rankings at all: what reads on one machine settles it
            asking = options.pool is None and judged.by_query
            if asking and output is not None and is_folder(output) and scattered(judged) is not None:
                return False
            if judged.by_query:
                # a look at each query costs more than what it saves from, but for what one query alone may ask for
                judged = judged.sized(look=asked.get("prior") == "auto")
            skipped = judged.rejects() if "skip" in (options.on_error, options.clicks) else ()
        if refused := judged.checks.stopping(skipped):
            raise InputError(problems(judged.name, refused))
        said = [f"skipped: {problems(judged.name, skipped)}"] if skipped else []
        if not quiet:
            said.append(f"{log}: {judged.kind}, {judged.total:,} rows, {counted(judged.buckets, 'tasks')} on Spark")
        with Progress(quiet, "ranking queries"):
            try:
                board, number, notes = _ranked(judged, structure, asked, output)
            except TooLarge:
                board, number, notes = _ranked(judged.sized(), structure, asked, output)
            except ConcordantError:
                if asking and scattered(judged) is not None:
                    return False
                raise
        if asking and board is not None and ranking.few_each(board) and scattered(judged) is not None:
            return False
        if asking and board is not None:
            board = replace(board, notes=(*board.notes, *lonely(judged, board)))
        if number == 0:
            raise InputError(f"{judged.name}: no judgment is left")
        for line in said:
            say("log", line)
        if board is not None and output is not None:
            number = written(board, output)
        if output is not None:
            options.say("wrote", f"wrote {output}: {number:,} rows", path=output)
        if board is not None:
            show(board, rows=options.rows, quiet=quiet, table=output is None or sys.stdout.isatty())
        else:
            options.say_notes(notes)
    return True


def _fits(judged: JudgedQueries) -> bool:
    """Whether a log of one query has few rows; or cannot be read, which the driver says best."""
    try:
        with told(judged.name):
            return bool(judged.frame.count() <= judged.most)
    except ConcordantError:
        return True


def _ranked(
    judged: JudgedQueries, structure: str, asked: Mapping[str, Any], output: str | None
) -> tuple[Ranking | None, int, list[str]]:
    """Return the ranking (None: the executors have written it), the number of its rows and what to note of it."""
    judged = settled(judged)
    with judged.explained():
        frame = ranking.ranked(judged, structure, **asked)
    if output is not None and is_folder(output):
        rows, notes = ranking.write_ranking(frame, judged, output, structure=structure, interval=asked["interval"])
        if find_structure(structure).expects:
            notes.append("whether the model fits the judgments was not looked at, as the executors write the ranking")
        return None, rows, notes
    board = ranking.ranking_of(frame, judged, structure, asked["interval"], asked["level"])
    return board, len(board), []


@without_pandas_warning()
def audit(options: AuditOptions, settings: AuditSettings) -> tuple[Audit, list[str]] | None:
    """Audit a log of many rows on the executors; also what is to be said of it. None, with nothing done: the driver's.

    What it cannot read the driver says best.
    """
    if (judged := _of_many(options)) is None:
        return None
    reading = asked_of(options)
    with Progress(options.quiet, "auditing"):
        if reading["pool"] is not True and (found := divided(judged, settings)) is not None:
            return found[0], [*found[1], *judged.look_alikes()]
        given = {one.name: getattr(settings, one.name) for one in fields(AuditSettings)}
        return by_a_task(judged, partial(_noted, work=partial(audit_here, **given)), reading)


@without_pandas_warning()
def report(options: ReportOptions, asked: Mapping[str, Any]) -> tuple[Report, list[str]] | None:
    """Make the report of a log of many rows by a task; otherwise as ``audit``."""
    if (judged := _of_many(options)) is None:
        return None
    check_grades(options, judged.checks.layout.roles, judged.name)
    asked = {**asked, "title": judged.name if asked["title"] is None else asked["title"]}
    with Progress(options.quiet, "making the report"):
        made, notes = by_a_task(judged, partial(_noted, work=partial(_as_the_command, **asked)), asked_of(options))
    tell([] if options.quiet else [f"{options.log}: {made.data['facts']}"])
    return made, notes


def _noted(prefs: Preferences, *, work: Callable[[Preferences], Found]) -> tuple[Found, list[str]]:
    """A task: what is found in preferences, and how they were read."""
    return work(prefs), [*prefs.notes]


def _as_the_command(prefs: Preferences, **asked: Any) -> Report:
    """A task: the report as the command makes it, whose notes speak of its options."""
    with click.Context(command_of("report")):
        return report_here(prefs, **asked)


def _of_many(options: AuditOptions | ReportOptions) -> JudgedQueries | None:
    """Return the log where it has many rows, and say what was skipped of it."""
    log = options.log
    with Progress(options.quiet, f"counting {log}"):
        try:
            judged = of_many_rows(log, None, **asked_of(options))
        except ConcordantError:
            return None
        if judged is None:
            return None
        skipped = judged.rejects() if "skip" in (options.on_error, options.clicks) else ()
    if refused := judged.checks.stopping(skipped):
        raise InputError(problems(judged.name, refused))
    tell([f"skipped: {problems(judged.name, skipped)}"] if skipped else [])
    return judged


def fit(ranker: Any, options: FitOptions) -> None:
    """Fit and keep the model. Errors: InputError; UsageError for what is done in memory only, before any work."""
    log, features = options.log, options.features
    if not isinstance(ranker, AggregationRanker):
        raise UsageError(
            "on Spark preferences are fitted by --loss gain-regression; graded labels and other losses are fitted in "
            "memory"
        )
    if features is None:
        raise UsageError("--features is missing: a preference log holds no features of its items")
    if is_store(Path(log)):
        raise UsageError(
            f"{log} is a store, whose counts are learned from on one machine: leave out --engine spark, or give Spark "
            "the file that concordant store export writes"
        )
    if options.stream is not None:
        raise UsageError("--stream and --in-memory are for one machine; on Spark no task holds all features")
    reading = asked_of(options)
    sizes = {name: reading.pop(name) for name in ("memory_limit", "threads")}
    master = reading.pop("master")
    del reading["engine"]
    reading |= {"feature_columns": columns_of(options), "feature_names": chosen_columns(options)}
    with Progress(options.quiet, "learning"), without_pandas_warning(), told(log):
        learning.fit(ranker, log, features, session=session(master, **sizes), **reading)
    options.settle(**chosen_by(ranker), gated="gate" in ranker.status_)
    place = save_model(ranker, options.model, about={"log": log, "features": features})
    found = ranker.status_
    options.say("fitted", f"{log}: {found['rows']:,} items of {found['queries']:,} queries; solver: {found['status']}")
    options.say_notes((*found["notes"], *said_of_names(features, names_of(ranker) or [], options)))
    options.say("wrote", f"wrote {place}/", path=str(place))
    if hasattr(ranker, "cv_"):
        with beside_the_result():
            put_table(ranker.curve())


def score(options: ScoreOptions) -> tuple[pa.Table | None, int]:
    """Return the scored rows, or None where the executors have written them, and how many there are.

    Errors: InputError, UsageError.
    """
    if options.judgments is not None and options.judged_features is None:
        raise UsageError("--judgments on Spark needs the features of the items it judges in a file: --judged-features")
    if options.stream is not None:
        raise UsageError("--stream and --in-memory are for one machine; on Spark no task holds all features")
    output = options.output
    folder = output if output is not None and is_folder(output) else None
    if folder is not None:
        check_folder(folder)
    elif output is not None:
        check_output(output, options.features if os.path.isfile(options.features) else None, "the file of features")
    ranker = load_model(options.model, unsafe_pickle=options.unsafe_load_pickle)
    if isinstance(ranker, FoundScorer):
        raise UsageError(f"{options.model} gives a row more than one score, executors one; leave out --engine spark")
    if (abstaining := careful(ranker, options, names_of(ranker))) is not None:
        options.say_notes(said_of(abstaining))
        ranker = abstaining
    with without_pandas_warning(), told(options.features):
        spark = session(options.master, memory_limit=options.memory_limit)
        scored = scoring.score(ranker, options.features, columns=columns_of(options), session=spark)
        if folder is not None:
            return None, scored.save(folder.rstrip("/"))
        table = scored.table()
    return table, len(table)


def evaluate(options: EvaluateOptions, names: list[str]) -> tuple[pa.Table, list[str]]:
    """Return what is printed, and what was left out on the way, in words."""
    scores, labels = options.scores, options.labels
    named = {"query": options.query, "item": options.item, "score": options.score, "label": options.label}
    with without_pandas_warning(), told(scores):
        spark = session(options.master)

        def judged(scorer: str) -> metrics.Evaluated:
            columns: dict[str, Any] = {}
            for source, role in ((scorer, "score"), (labels, "label")):
                table = Table.of(source, spark)
                columns[role] = column_of_role(Log(table.name, "table", table.columns), role, named[role])
            columns |= {role: named[role] for role in ("query", "item") if named[role] is not None}
            how: dict[str, Any] = {"convention": options.convention, "unmatched": options.unmatched or "raise"}
            return metrics.evaluate(scorer, labels, names, columns=columns, session=spark, **how)

        first = judged(scores)
        second = judged(options.against) if options.against else None
        said = [one.left_out for one in (first, second) if one is not None and one.left_out]
        if placed := by_order_of_rows(first.names, options.convention):
            said += said_of_tied(*first.tied(), placed)
        summaries = first.summaries()
        said += [
            f"{name}: {one.undefined:,} of {one.queries + one.undefined:,} queries have no value and are left out"
            for name, one in summaries.items()
            if one.undefined
        ]
        if options.per_query:
            return _by_query(first, second), said
        pairs = {} if second is None else first.against(second, level=options.level)
        return pa.Table.from_pylist([mean_row(name, one, pairs.get(name)) for name, one in summaries.items()]), said


def _by_query(first: metrics.Evaluated, second: metrics.Evaluated | None) -> pa.Table:
    values = first.by_query(second)
    parts = []
    for place, name in enumerate(first.names):
        columns = {
            "name": pa.array([name] * len(values), pa.large_string()),
            "query": values["query"].cast(pa.large_string()),
            "value": values[f"m{place}"],
        }
        if second is not None:
            columns["against"] = values[f"n{place}"]
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)
