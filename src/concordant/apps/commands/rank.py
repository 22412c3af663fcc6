"""``concordant rank``: read, rank, write; notes and progress go to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from concordant import __version__
from concordant.apps.commands.given import worded
from concordant.apps.commands.matching import click_options
from concordant.apps.commands.options import RankOptions
from concordant.apps.commands.output import (
    ENDINGS,
    check_folder,
    check_output,
    is_folder,
    put_table,
    show,
    write,
    write_text,
)
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import asked_of, check_grades
from concordant.apps.commands.runs import ENDING as RUN
from concordant.apps.commands.runs import are_runs, judged, judges_of, write_run
from concordant.errors import InputError, UsageError
from concordant.io.engines import memory
from concordant.io.engines.counting import with_columns
from concordant.io.forms import Reading
from concordant.io.log.formats import locate
from concordant.io.log.headers import arrow_metadata
from concordant.io.log.lakes import Several
from concordant.io.read import read_as_made, read_log
from concordant.io.store.segments import fingerprint
from concordant.preferences.notes import Note
from concordant.preferences.pooling import lonely_notes
from concordant.preferences.preferences import Lists, Preferences, left_out
from concordant.preferences.times import discounted
from concordant.preferences.windows import Window, untimed
from concordant.progress import stage
from concordant.ranking import rank as ranking
from concordant.ranking.click_models import click_positions
from concordant.ranking.comparing import p_said
from concordant.ranking.over_time import rank_over_time
from concordant.ranking.rank import Ranking
from concordant.ranking.shown import as_markdown
from concordant.ranking.structures import structure
from concordant.ranking.unchanged import Earlier
from concordant.time_left import Cost

REMEMBERS = (".parquet", ".arrow", ".feather")
"""Endings of tables that have room for what the ranking rests on."""


def rank(options: RankOptions) -> None:
    """Read, rank, write; notes and progress go to stderr."""
    log, output, quiet = options.log, options.output, options.quiet
    names, runs = (log, *options.more), are_runs((log, *options.more))
    if options.qrels is not None and not runs:
        raise UsageError(f"--qrels judges runs that are fused, and {log} is none; concordant evaluate judges rankings")
    on_spark = _on_spark(options)
    folder = bool(on_spark and output is not None and is_folder(output))
    options.settle(terminal=sys.stdout.isatty())
    if output is not None and not folder:
        for name in names:
            check_output(output, name, endings=(*ENDINGS, RUN))
    member = structure(structure_of(options, runs))  # a wrong name should not cost the reading of a large log
    formula = options.interval == "auto" and member.reads == "exposures"
    options.settle(
        alone=formula or options.interval in ("none", "hessian") or (runs and options.interval == "auto"),
        folder=folder,
        structure=member.name,
        forgets="covariates" not in member.options,
        fitted=member.curvature is not None,
    )
    if on_spark and on_spark.rank(options, asked(options)):
        return
    if output is not None and folder:
        check_output(output, log)
    named = {"--output": output, "--paths": options.paths, "--coefficients": options.coefficients}
    named["--positions"] = options.positions
    files = [(option, name) for option, name in named.items() if name is not None]
    for at, (option, name) in enumerate(files):
        if at or output is None:
            check_output(name, log, option=option)
        for other, there in files[:at]:
            if os.path.realpath(there) == os.path.realpath(name):
                raise UsageError(f"{other} and {option} both name {name}; name another file")
    judges = judges_of(options.metrics or ("ndcg@10",)) if options.qrels is not None else {}
    board, told = board_of(options, runs=runs)
    verdict: tuple[Any, list[str]] = (None, [])
    if options.qrels is not None:
        with Progress(quiet, "judging"):
            verdict = judged(board, names, options.qrels, judges, options.level)
    coefficients = None if options.coefficients is None else board.coefficient_table()
    if coefficients is not None and not len(coefficients):
        raise UsageError(
            f"--coefficients {options.coefficients}: this ranking has scores alone; a home side (--home), "
            "covariates (--covariate) and ties with a parameter (--ties davidson or cumulative) have coefficients"
        )
    number = 0
    if output is not None:
        with Progress(quiet, f"writing {output}"):
            number = written(board, output)
    tell(told)
    options.say_notes(verdict[1])
    if output is not None:
        options.say("wrote", f"wrote {output}: {number:,} rows", path=output)
    if options.coefficients is not None and coefficients is not None:
        write(coefficients, options.coefficients)
        options.say("wrote", f"wrote {options.coefficients}: {len(coefficients):,} rows", path=options.coefficients)
    if options.positions is not None and board.judged is not None:
        table = click_positions(board.judged.prefs, member.name)
        write(table, options.positions)
        options.say("wrote", f"wrote {options.positions}: {len(table):,} rows", path=options.positions)
    if verdict[0] is not None:
        put_table(verdict[0])
    show(board, rows=options.rows, quiet=quiet, table=verdict[0] is None and (output is None or sys.stdout.isatty()))
    if options.statistics and not options.moving:
        options.say_notes(board.summary().lines())


def structure_of(options: RankOptions, runs: bool) -> str:
    """Return the structure that was asked for, or the usual one."""
    return options.structure or ("rrf" if runs else "bradley-terry")


def written(board: Ranking, output: str) -> int:
    """Write a ranking by the ending of the name; return the number of rows."""
    if output.lower().endswith(RUN):
        return write_run(board, output)
    if output.lower().endswith(".md"):
        write_text(as_markdown(board, said=worded), output)
    else:
        write(board.to_arrow(), output)
    return len(board)


def board_of(
    options: RankOptions,
    *,
    runs: bool = False,
    log: str | None = None,
    by: str | None = None,
    part: Callable[[Preferences], Preferences] | None = None,
    as_of: str | None = None,
    plan: Mapping[str, Cost] | None = None,
) -> tuple[Ranking, list[str]]:
    """Read the log and rank it; also what is to be said of it, on a terminal said before it is ranked.

    Of runs, reciprocal rank fusion reads what is there: what a list leaves out comes last by itself. ``log``: another
    than that of the options; ``part``: what is ranked of it, once it is read with another column ``by`` of clusters;
    ``as_of``: another day than that of the options; ``plan``: another than that of the options.
    """
    quiet, name, how = options.quiet, structure_of(options, runs), asked(options)
    earlier = _earlier(options.start)
    named = log or (Several((options.log, *options.more)) if options.more else options.log)
    reads = asked_of(options, **({} if by is None else {"cluster": (*options.cluster, by)}))
    if runs:
        how["interval"] = "none" if options.interval == "auto" else options.interval
        if how["interval"] == "none" and options.qrels is not None:
            del how["level"]  # it is that of the differences
        reads["kind"] = reads["kind"] or ("ratings" if name == "combsum" else None)
    wanted = {} if by is not None else options.window() | ({} if as_of is None else {"as_of": as_of})
    days = Window(**wanted)
    if days and runs:
        raise UsageError(f"{named}: runs are of no day; leave out --as-of, --since and --last")
    with Progress(quiet, f"reading {named}", plan_of(options) if plan is None else plan):
        if runs and name == "rrf" and reads["unranked"] is None:
            del reads["unranked"]
            pool = reads.pop("pool")
            reading, how["unlisted"] = read_as_made(named, **reads), "last"
            if pool:
                reading = replace(reading, preferences=reading.preferences.pool())
        else:
            reading = read_log(named, **reads, window=days, clustered=not _scores_alone(options, part, by))
    check_grades(options, reading.roles, reading.name)
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    prefs = reading.preferences
    prefs = prefs if part is None else part(prefs)
    if not options.moving and options.half_life is None:
        prefs = untimed(prefs)
    resting = rests_on(reading, prefs) if Path(options.output or "").suffix.lower() in REMEMBERS else {}
    if options.half_life is not None and options.ties == "cumulative":
        raise UsageError("--half-life makes strengths fade, which --ties cumulative reads as grades; use --ties half")
    if options.half_life is not None:
        prefs = discounted(prefs, options.half_life, options.at)
    if not quiet:
        told.append(f"{named}: {prefs.facts}")
    if sys.stderr.isatty():  # elsewhere an error should be the only line
        tell(told)
    if how.get("unlisted") == "last" and isinstance(prefs, Lists) and left_out(prefs).any() and not quiet:
        told.append(
            "what a run leaves out shares the places after it; --unranked missing gives it nothing, as published"
        )
    if options.moving:
        board = _moving(options, prefs)
    else:
        with Progress(quiet, "ranking", known=prefs):
            board = ranking.rank(prefs, name, start=earlier, **how)
    alone = lonely_notes(prefs, reading.name, reading.roles.get("query")) if options.pool is None and not runs else ()
    return replace(board, rests=resting, notes=(*board.notes, *alone)), told


def _scores_alone(options: RankOptions, part: Any, by: str | None) -> bool:
    """Whether nothing that depends on who judged is asked for: neither intervals nor a word on the fit of the model."""
    said = not options.quiet or options.statistics or options.summary is not None or options.cluster or options.start
    described = said or (options.output or "").lower().endswith((".md", *REMEMBERS))
    return not described and options.interval == "none" and part is None and by is None


def _earlier(name: str | None) -> Earlier | None:
    """Read an earlier ranking with what it carries. Errors: InputError."""
    if name is None:
        return None
    log = with_columns(locate(name))
    table = memory.arrow_table(log, log.columns)
    if log.format == "arrow" and log.path is not None:
        table = table.replace_schema_metadata(arrow_metadata(log.path))
    try:
        return Earlier.of(table)
    except InputError as error:
        raise InputError(f"--start {name}: {error}") from None


def rests_on(reading: Reading, prefs: Preferences) -> dict[str, Any]:
    """Return what a ranking rests on: the log, of a store its batches and days, and the judgments by their SHA-256."""
    told = {"judgments": len(prefs), "sha256": fingerprint(prefs), "concordant": __version__}
    return {"log": reading.name, **reading.rests, **told}


def _moving(options: RankOptions, prefs: Preferences) -> Ranking:
    """Let abilities move, and write their paths where that is asked for."""
    prior = None if options.prior == "auto" else options.prior  # which it is by default
    given: dict[str, Any] = {"prior": prior, "drift": options.drift, "ties": options.ties}
    known = {name: value for name, value in given.items() if value is not None}
    with Progress(options.quiet, "ranking over time", known=prefs):
        found = rank_over_time(prefs, level=options.level, **known)
        with stage("ranking at one time"):
            board = found.at(options.at, min_judgments=options.min_judgments)
        if options.statistics:
            with stage("whether abilities move"):
                chi2, p = found.drift_test()
            text = "do abilities move? χ² = {chi2:.2f} against none that does, {p} (ratio of marginal likelihoods)"
            board = replace(board, notes=(*board.notes, Note("moving tested", text, chi2=chi2, p=p_said(p))))
    if options.paths is not None:
        with Progress(options.quiet, f"writing {options.paths}"):
            table = found.to_arrow()
            write(table, options.paths)
        options.say("wrote", f"wrote {options.paths}: {len(table):,} rows", path=options.paths)
    return board


def asked(options: RankOptions) -> dict[str, Any]:
    """Return how the queries are to be ranked."""
    more = {"prior": options.prior, "ties": options.ties, "reference": options.reference}
    more |= {"k": options.k, "normalise": options.normalise, **click_options(options)}
    return {
        "interval": options.interval,
        "level": options.level,
        "seed": options.seed,
        "replicates": options.replicates,
        "quasi": options.quasi,
        "across_components": options.across_components,
        "min_judgments": options.min_judgments,
        **{name: value for name, value in more.items() if value is not None},
    }


def _on_spark(options: RankOptions) -> ModuleType | None:
    """Return what ranks on the executors of Spark, where that is asked for and each query is ranked by itself."""
    if options.engine != "spark" or options.pool or options.time is not None or Window(**options.window()):
        return None
    from concordant.apps.commands import on_spark

    if options.output is not None and is_folder(options.output):
        check_folder(options.output)
    return on_spark
