"""Read a log of preferences: a file or a table becomes Preferences, and what was refused on the way is told."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.errors import Idle, InputError, Setting, UsageError, refuse_idle
from concordant.io.engines.counting import open_log, with_columns
from concordant.io.engines.duckdb import Settings
from concordant.io.layouts import FORMS, Reading, find_layout
from concordant.io.log.formats import Log, locate, located
from concordant.io.log.preflib import read_preflib
from concordant.io.log.tables import from_object
from concordant.io.log.union import named_columns
from concordant.io.noted import notes_of, read_note
from concordant.io.published.published import SCORES, Published
from concordant.io.published.recognise import of_folder, recognised, refusal
from concordant.io.score_tables import tabled
from concordant.io.store.catalogue import is_store
from concordant.io.store.stored import read_as_log
from concordant.io.votes import Votes, repeated_note
from concordant.io.wide import TABLES
from concordant.preferences.layouts import Layout
from concordant.preferences.lists import CLICKS
from concordant.preferences.pooling import settle_queries, settle_unranked
from concordant.preferences.preferences import Preferences, counted_lists
from concordant.preferences.windows import ALWAYS, Window
from concordant.record import telling


def read(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    clicks: str = "all",
    unranked: str | None = None,
    pool: bool | None = None,
    on_error: str = "raise",
    cluster: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    home: str | None = None,
    time: str | None = None,
    as_of: str | None = None,
    since: str | None = None,
    last: str | None = None,
    engine: Any = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    master: str | None = None,
) -> Preferences:
    """Read the preferences of a log and count equal judgments together.

    Parameters
    ----------
    source : a path (.csv .tsv .jsonl .json, these also .gz; .parquet .feather .arrow; ``file.duckdb::table``; PrefLib
        .soc .soi .toc .toi; LETOR .svm .letor .dat; .qrels; TREC runs .run; .txt; a store), a folder of such files,
        in folders of it, too (day=2026-11-25/…), a pattern ('lake/day=*/part-*.parquet'), several paths, or a table:
        Arrow, pandas, polars, anything with ``__arrow_c_stream__``, a DuckDB relation, a mapping of column names to
        columns.
    kind : 'comparisons', 'selections', 'choices', 'orders' or 'ratings'; None, the columns decide.
    columns : which column plays which role (query, winner, loser, left, right, outcome, grade, weight, count, session,
        judgment, position, item, clicked, rank, rating …); roles that are not given are found by their usual names.
        With a column of grades, ``scale`` names these from the strongest preference for the left side to the strongest
        for the right: '-3:3', '7:1', or all of them with commas between. Of an outcome, ``outcomes`` says what its
        values mean, '1=left,2=right,0=tie', and ``tie_values`` which are ties, '0,both' (an empty one: missing).
    clicks : what to do with lists with more than one click: keep 'all', 'raise', 'first', 'last' or 'skip' (left out).
    unranked : of orders, what it means that a ranking leaves out items of its query: 'last' (below all that it ranks,
        as on most ballots) or 'missing' (no opinion, as where each judge saw some of the items); None, no opinion, and
        a note says so; where the log itself has both readings that is an error that asks. Of runs None is 'last'.
    pool : whether all queries are one (True) or each is its own (False). None: each its own, but where the column of
        the query is another one in nearly every row while the same items recur, as the ``question_id`` of battles
        between models, all are one, and a note says so; where the column was named that is an error that asks.
    on_error : 'raise', or 'skip', which leaves out exactly the rows that cannot be understood (see ``read_log``).
    cluster : name of a column that becomes part of each judgment (worker, session); several names (worker, prompt) for
        judgments that depend on each other in more than one way.
    covariates : names of numeric columns, winner minus loser or left minus right.
    home : 'left' or 'right' makes the covariate ``home``, 0 in rows that a column ``neutral`` marks.
    time : name of the column of when comparisons were made: dates or instants (ISO 8601 in texts), or numbers.
    as_of, since, last : what was judged up to and with a day ('2026-01-31'), from a day on, or in the last days before
        ('7d', '2w'): the batches of a store by their days, of a log its rows by the column ``time``.
    engine : 'duckdb' (files), 'memory' (tables) or 'spark', which also reads addresses (s3a://, hdfs://), tables of its
        catalogue (``spark::TABLE``) and its DataFrames; or a SparkSession.
    memory_limit, threads : bounds of DuckDB, or of the session that is made, such as '4GB' and 2.
    master : the cluster of a new session; None, this machine.

    What a reader should know of the log is in ``notes`` of what is returned: labels that differ only in white space,
    case, Unicode form or invisible characters, a column that is taken for the strength of comparisons, trimmed fields.

    Errors: InputError with the number of rows, samples with line and value, and what is allowed; UsageError.

    >>> read({"winner": ["a", "a", "b"], "loser": ["b", "b", "c"]})
    Preferences(comparisons, 1 query, 3 items, 3 judgments, 2 distinct, 0 ties)
    """
    return read_log(
        source,
        kind=kind,
        columns=columns,
        clicks=clicks,
        unranked=unranked,
        pool=pool,
        on_error=on_error,
        cluster=cluster,
        covariates=covariates,
        home=home,
        time=time,
        window=Window(as_of, since, last),
        engine=engine,
        memory_limit=memory_limit,
        threads=threads,
        master=master,
    ).preferences


def read_log(
    source: Any,
    *,
    unranked: str | None = None,
    pool: bool | None = None,
    window: Window = ALWAYS,
    clustered: bool = True,
    **options: Any,
) -> Reading:
    """Read a log as ``read`` does, with its options, and return the preferences with the report of what was refused.

    ``clustered``: whether the clusters of a store are read.

    >>> reading = read_log({"winner": ["a", "a", "b"], "loser": ["b", "a", "c"]}, on_error="skip")
    >>> len(reading.preferences), reading.rows
    (2, 3)
    >>> reading.report()
    "table: 1 of 3 rows compare an item with itself (row 2: 'a')."
    """
    if not isinstance(pool, bool | None):
        raise UsageError(f"pool must be True, False or None, not {pool!r}")
    if isinstance(source, str | os.PathLike) and is_store(Path(source)):
        reading = read_as_made(source, window=window, clustered=clustered, **options)
    else:
        if window and options.get("time") is None:
            raise UsageError("days of a log need the column that says when; name it (", Setting("time"), ")")
        reading = read_as_made(source, **options)
        if window:
            reading = replace(reading, preferences=window.of_times(reading.preferences))
    prefs = settle_unranked(reading.preferences, unranked, reading.name, reading.usual)
    named = isinstance(columns := options.get("columns"), Mapping) and "query" in columns
    column = reading.roles.get("query")
    return replace(reading, preferences=settle_queries(prefs, pool, reading.name, column, named=named))


@telling("log", lambda reading: reading.record)
def read_as_made(
    source: Any,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    clicks: str = "all",
    on_error: str = "raise",
    cluster: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    home: str | None = None,
    time: str | None = None,
    engine: Any = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    master: str | None = None,
    votes: Votes | None = None,
    window: Window = ALWAYS,
    clustered: bool = True,
) -> Reading:
    """Read a log as ``read_log`` does, whatever its queries mean and what a ranking leaves out: what a store keeps.

    ``votes``: those that the store has by their ids; ``window``: the days of a store; ``clustered``: whether its
    clusters are read.
    """
    _check_words(clicks=(clicks, CLICKS), on_error=(on_error, ("raise", "skip")))
    if not isinstance(kind, str | None):
        raise UsageError(f"kind must be the name of a kind of log, not {type(kind).__name__}")
    if isinstance(source, str | os.PathLike) and is_store(Path(source)):
        if time is not None:
            raise UsageError(f"{os.fspath(source)} is a store, which keeps no times; read the log itself")
        if engine not in (None, "duckdb", "memory") or master is not None:
            which = "engine" if master is None else "master"
            raise Idle(which, f"{os.fspath(source)} is a store, whose counts are read on one machine")
        settings = Settings(memory_limit, threads)
        given = {"kind": kind, "columns": columns, "clicks": clicks, "on_error": on_error, "engine": engine}
        given |= {"cluster": cluster, "covariates": covariates, "home": home}
        prefs, total, rests = read_as_log(Path(source), given, settings, window, clustered)
        return Reading(prefs, total, Path(source).name, {}, rests=rests)
    local = (engine is None or (isinstance(engine, str) and engine in ("duckdb", "memory"))) and master is None
    found = _of_results(Path(source)) if local and isinstance(source, str | os.PathLike) else None
    if found is not None:
        log, kind = _usual(found, Path(source).name, kind)
    else:
        log = source if isinstance(source, Log) else _located(source)
    named = columns if isinstance(columns, Mapping) else {}
    if local and found is None and not {*named} & PLAYED:
        log, kind = _as_published(log, kind, [*named.values(), *_listed(cluster), *_listed(covariates), time])
    if log.format == "preflib":
        _only_orders(log, kind, columns, cluster, covariates, home, time)
        why = f"{log.name} is a PrefLib file, which holds counts of orders"
        refuse_idle({"clicks": clicks, "on_error": on_error}, {"clicks": "all", "on_error": "raise"}, why)
        work = {"engine": engine, "memory_limit": memory_limit, "threads": threads, "master": master}
        refuse_idle(work, dict.fromkeys(work), why)
        prefs = counted_lists(**read_preflib(log))
        return Reading(prefs, len(prefs), log.name, {})
    counter = open_log(log, engine, memory_limit, threads, master)
    log = counter.log
    runs = log.format == "run"
    if runs and kind == "ratings":
        columns = {"rating": "score", **(columns or {})}
    if time is not None and counter.session is not None:
        raise UsageError(f"{log.name}: times are read on one machine, not by the engine spark; leave out the engine")
    try:
        layout = find_layout(
            named_columns(log, [*named.values(), *_listed(cluster), *_listed(covariates), time]),
            name=log.name,
            kind=kind,
            given=columns,
            cluster=cluster,
            covariates=covariates,
            home=home,
            time=time,
        )
    except InputError as error:
        if local and kind is None and not columns and "no layout fits" in str(error):
            _refuse_scores(log)
        raise
    if clicks != "all" and layout.kind not in ("selections", "choices"):
        raise UsageError(
            f"{log.name}: ", Setting("clicks", clicks), f" is for selections and choices; this log holds {layout.kind}"
        )
    if "id" in layout.roles:
        if layout.form != "comparisons":
            raise UsageError(f"{log.name}: an id tells comparisons apart, one in a row; this log holds {layout.kind}")
        counter = replace(counter, votes=votes or Votes())
    try:
        reader = TABLES.get(layout.form) or FORMS[layout.form].read
        reading = reader(counter, layout, clicks, on_error)
        told = (*read_note(log, reading.rows), *notes_of(log, layout, columns or {}))
        told += counter.votes.notes(log.name) if counter.votes else repeated_note(counter, layout, reading.rows)
        reading = replace(reading, usual="last" if runs else None)
        return replace(reading, preferences=replace(reading.preferences, told=(*told, *reading.preferences.told)))
    except InputError as error:
        if str(error).startswith(log.name):
            raise
        raise type(error)(f"{log.name}: ", *error.args) from None
    finally:
        pa.default_memory_pool().release_unused()


def layout_of(log: Log, **options: Any) -> Layout | None:
    """Return how a log would be read with options of ``read``; None for PrefLib files, which say it themselves.

    Errors: InputError and UsageError, as ``read`` has them.
    """
    kind, given, cluster, home = (options.get(name) for name in ("kind", "columns", "cluster", "home"))
    covariates = options.get("covariates") or ()
    if log.format == "preflib":
        _only_orders(log, kind, given, cluster, covariates, home)
        return None
    opened = with_columns(log)
    named = given.values() if isinstance(given, Mapping) else ()
    there = named_columns(opened, [*named, *_listed(cluster), *_listed(covariates)])
    return find_layout(there, name=log.name, kind=kind, given=given, cluster=cluster, covariates=covariates, home=home)


def usual_log(source: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> Log:
    """Return the log that ``read`` reads of a file or a folder: of a published layout the usual table that it means."""
    if (found := _of_results(Path(source))) is not None:
        return _usual(found, Path(source).name, None)[0]
    log = locate(source)
    return log if {*(columns or {})} & PLAYED else _as_published(log, None, [*(columns or {}).values()])[0]


PLAYED = frozenset({"winner", "loser", "left", "right", "outcome", "item", "items", "rank", "rating", "clicked"})
"""Roles whose columns say who won: where one is given, a file is read as it is told, not as it was published."""


def _listed(names: str | Sequence[str] | None) -> Sequence[str]:
    """Return names of columns; what is none is refused where it is read."""
    given = [names] if isinstance(names, str) else names if isinstance(names, list | tuple) else ()
    return [name for name in given if isinstance(name, str)]


def _as_published(log: Log, kind: str | None, keep: Sequence[Any]) -> tuple[Log, str | None]:
    """Return a log of a published layout as the usual table that it stands for, and its kind; others as they are.

    Errors (InputError): scores, which are no votes.
    """
    found = recognised(log, [name for name in keep if isinstance(name, str)])
    if found is None or (found.kind != SCORES and kind not in (None, found.kind)):
        return log, kind
    table, kind = _usual(found, log.name, kind)
    return replace(table, told=(*log.told, *table.told)), kind


def _usual(found: Published, name: str, kind: str | None) -> tuple[Log, str]:
    """Return what was found in a file or a folder as the table that it stands for, and its kind."""
    if found.kind == SCORES:
        raise refusal(found, name)
    if kind not in (None, found.kind):
        raise UsageError(f"{name}: ", Setting("kind", kind), f" is not what this holds: {found.layout}, {found.kind}")
    return replace(from_object(found.table), name=name, told=found.told), found.kind


def _refuse_scores(log: Log) -> None:
    """Refuse a table of scores, where it can be read as one."""
    found = None
    try:
        found = tabled(log)
    except UsageError:  # several metrics
        raise InputError(f"{log.name} holds scores, no votes; run: concordant scores {shlex.quote(log.name)}") from None
    except InputError:
        return
    if found is not None:
        raise refusal(found, log.name) from None


def _of_results(path: Path) -> Published | None:
    """Return what a folder of results of evaluations holds; None for any other folder or file."""
    if os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK):
        inside = (one.is_dir() or one.suffix.lower() in (".json", ".jsonl", ".eval") for one in path.iterdir())
        return of_folder(path) if any(inside) else None
    return None


def _located(source: Any) -> Log:
    if isinstance(source, list | tuple) and all(isinstance(one, str | os.PathLike) for one in source):
        return located(source)
    return locate(source) if isinstance(source, str | os.PathLike) else from_object(source)


def _check_words(**given: tuple[str, tuple[str, ...]]) -> None:
    for option, (value, allowed) in given.items():
        if not isinstance(value, str) or value not in allowed:
            raise UsageError(f"{option} must be one of {', '.join(allowed)}, not {value!r}")


def _only_orders(log: Log, kind: str | None, *others: Any) -> None:
    if kind not in (None, "orders"):
        raise UsageError(f"{log.name}: a PrefLib file holds orders, not {kind}")
    if any(others):
        raise UsageError(f"{log.name}: a PrefLib file has no columns to name")
