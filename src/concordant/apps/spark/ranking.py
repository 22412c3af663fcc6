"""Ranking on Spark: every task ranks its queries, and only the rows of the ranking leave it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from concordant.apps.spark.clicks_of_log import LargeRead, ReadAs, read_as_all
from concordant.apps.spark.clustered import ByClusters, different
from concordant.apps.spark.coefficients import TREATED, used
from concordant.apps.spark.comparisons import OfComparisons
from concordant.apps.spark.divided import Known, Read
from concordant.apps.spark.frames import MOST_ALONE, READING, JudgedQueries, whole_or_gone
from concordant.apps.spark.interval_methods import clusters_allowed, interval_method, work_at_once
from concordant.apps.spark.lists_of_log import rated_together, settled
from concordant.apps.spark.pooled import pooled
from concordant.apps.spark.redrawn import Again, as_judged
from concordant.apps.spark.shares import TooMuch
from concordant.apps.spark.splitting import (
    DIVISIBLE,
    Divided,
    alike,
    divided,
    divisible,
    options_of_fit,
)
from concordant.apps.spark.structure_sums import estimated, of_read, options_of_rank, refuse_estimated, summable
from concordant.apps.spark.structure_sums import ranked as summed_ranking
from concordant.apps.spark.tied_rankings import OfLists, OfPairs, tied, tied_query
from concordant.errors import Setting, UsageError, counted
from concordant.preferences.labels import Labels, look_alikes
from concordant.preferences.notes import added_up
from concordant.preferences.pooling import FEW, LEAST
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.preferences.unused_clusters import one_cluster
from concordant.ranking.covariance import CROSSED
from concordant.ranking.flags import FLAGS, LABELS, parted
from concordant.ranking.intervals import IntervalOptions, cheap_bootstrap, refuse_idle_wishes
from concordant.ranking.lack_of_fit import misfit_notes, rejected
from concordant.ranking.rank import Ranking
from concordant.ranking.rank import rank as rank_here
from concordant.ranking.structures import structure as find_structure

STATUS = ("status", "iterations", "gradient")
BESIDE = (*STATUS, "note", "told", "interval", "lack_of_fit")
"""Columns beside those of ``Ranking.to_arrow``."""
OF_INTERVALS = ("level", "replicates", "seed", "interval")
"""What intervals are asked for with."""
RANKING = {"covariates"}
"""Options of reading that are options of a ranking, too."""
REPLICATES = r"(intervals from \S+ bootstrap replicates[^\n]*|no intervals: \S+ bootstrap replicates[^\n]*)"
"""What is noted of how many replicates are cheap."""
ALLOWED = "intervals allow for judgments of the same "
"""How what is noted of clusters begins."""
SEVERAL = 2
"""Queries, where more than one is not told apart."""
OF_THE_WHOLE = ("lack of fit", "contradicted pairs", "clusters")
"""Notes that are about all queries, of which a task sees a part."""


def rank(
    log: Any,
    structure: str = "bradley-terry",
    *,
    interval: str = "auto",
    quasi: bool = False,
    reading: Mapping[str, Any] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **asked: Any,
) -> DataFrame:
    """Return the ranking of every query as a DataFrame with the columns of ``Ranking.to_arrow``.

    A task ranks its queries as ``concordant.rank`` does, so the rows are those of ``rank`` (scores to 1e-10) in no
    order. Nothing is computed yet, but queries that are divided among tasks, for ``interval="auto"`` a pass
    over a log with ties or strengths that says which method ``auto`` stands for, and passes over clicks by which all of
    a log tells how positions are examined or readers go on, and a look at queries, rankings and lists as shown.

    Parameters
    ----------
    log : anything that ``read`` takes, or the ``JudgedQueries`` of a log.
    reading : options of ``read``, such as ``{"columns": {"cluster": "annotator"}}``.
    structure, interval, quasi : as in ``concordant.rank``.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **asked : the other arguments of ``concordant.rank``.

    Errors: UsageError, also for what only all of a log tells, of several queries (``prior="auto"``, ``reference``).
    """
    for name in sorted(READING - RANKING & asked.keys()):
        raise UsageError(Setting(name, asked[name]), f" is an option of reading the log: reading={{{name!r}: …}}")
    if isinstance(log, JudgedQueries) and reading:
        raise UsageError("the log was read already, when its JudgedQueries were made: leave out ", Setting("reading"))
    judged = log if isinstance(log, JudgedQueries) else JudgedQueries.of(log, session, master=master, **(reading or {}))
    return ranked(judged, structure, interval=interval, quasi=quasi, **asked).drop(*BESIDE)


def ranked(
    judged: JudgedQueries, structure: str, *, interval: str = "auto", quasi: bool = False, **asked: Any
) -> DataFrame:
    """Return what ``rank`` does, and in further columns how the fit of each query ended and what is noted."""
    judged = pooled(judged)
    if asked.get("prior") == "auto" and not judged.one:
        raise UsageError(
            "on Spark a task sees a part of the log, from which no prior for all of it is chosen: give ",
            Setting("prior"),
            " a number",
        )
    drawn = interval == "bootstrap"
    alone = bool(judged.one and judged.large) and (drawn or summable(judged, structure, asked))
    if asked.get("reference") is not None and not judged.one:
        raise UsageError(
            "on Spark a task sees a part of the log, where the item of ",
            Setting("reference"),
            " may not be: leave it out, or rank with another engine",
        )
    whole = estimated(structure, asked) and not alone
    if whole and judged.large and drawn and judged.cluster_columns > 1:
        refuse_estimated(structure)
    wanted = {name: asked[name] for name in ("level", "seed", "replicates") if name in asked}
    refuse_idle_wishes(find_structure(structure), IntervalOptions(interval, quasi=quasi, **wanted))
    judged = settled(judged)
    method = interval if judged.one and not whole else interval_method(judged, structure, interval, asked)
    told, said = {**asked, "interval": method, "quasi": quasi}, list[str]()
    if method == "cheap":
        cheap, notes = cheap_bootstrap(work_at_once(judged), find_structure(structure), IntervalOptions(**wanted))
        told |= {"interval": cheap.method, "replicates": cheap.replicates}
        method, said = cheap.method, [str(note) for note in notes]
    told = _without(told) if interval == "auto" and method == "none" else told
    if not whole:
        task = partial(_rows, structure=structure, asked=told, said=said, whole=judged.one)
        large = partial(_large, judged, structure=structure, asked=told, free=interval == "auto")
        return judged.table(task, _schema(judged, quasi), large)
    read, known = read_as_all(judged, structure, options_of_rank(asked))
    task = partial(_rows, structure=structure, asked=told, read=read, said=said)
    large = partial(_as_all, judged, known, structure=structure, asked=told, free=not drawn)
    return judged.table(task, _schema(judged, quasi), large)


def _as_all(
    judged: JudgedQueries, known: Mapping[Any, LargeRead], label: Any, *, structure: str, asked: Mapping[str, Any],
    free: bool,
) -> pa.Table | None:  # fmt: skip
    """The rows of a query that no task can hold, its clicks read as all of the log says."""
    found, member = known.get(label), find_structure(structure)
    if found is None:
        return None
    drawn = asked["interval"] == "bootstrap"
    if drawn and not free:
        rows = _summed(judged, label, structure=structure, asked=asked, free=False, read=found.read)
        return refuse_estimated(structure) if rows is None else rows
    asked = _without(asked) if drawn else asked
    board, notes = of_read(found.read, found.query, found.items, member, asked, "selections")
    none = f"no intervals: {structure} has them by the bootstrap, which needs all judgments of a query"
    return _beside(board, [*notes, found.said, *([none] if drawn else [])])


def _large(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool
) -> pa.Table | None:
    """The rows of a query too large for most tasks, where it is divided, or many of its lists are equal; else None.

    ``free``: whether the intervals were left to us, so that there may be none where they would take too much.
    """
    if asked.get("prior") == "auto":
        return None  # chosen on judgments held out
    if asked["interval"] == "auto" and find_structure(structure).reads != "exposures":  # the query is all of the log
        lists = not judged.compared and find_structure(structure).curvature is None
        if lists and (few := _of_different(judged, label, structure, asked)) is not None:
            return few
        method = interval_method(judged, structure, "auto", asked)
        asked = _without(asked) if method == "none" else {**asked, "interval": method}
    drawn = asked["interval"] == "bootstrap" and not judged.cluster_columns  # of few lists as memory draws these
    if drawn and not judged.compared and (few := _of_different(judged, label, structure, asked)) is not None:
        return few
    found = _in_shares(judged, label, structure=structure, asked=asked, free=free)
    if found is not None and judged.kind == "ratings":
        found = _rated_equally(judged, label, found)
    if found is not None or judged.compared or drawn or judged.large_sizes[judged.large.index(label)] <= MOST_ALONE:
        return found
    return _of_different(judged, label, structure, asked)


def _rated_equally(judged: JudgedQueries, label: Any, rows: pa.Table) -> pa.Table:
    """The rows of a query of ratings, where items without a judgment that were rated beside others are flagged so."""
    flag = rows["flag"]
    alone = pc.equal(flag, "never compared")
    if not pc.any(alone).as_py():
        return rows
    with judged.explained():
        beside = rated_together(judged, label).codes_of(rows["item"].combine_chunks()) >= 0
    flag = pc.if_else(pc.and_(alone, pa.array(beside)), "rated equally", flag)
    return rows.set_column(rows.column_names.index("flag"), "flag", flag)


def _of_different(judged: JudgedQueries, label: Any, structure: str, asked: Mapping[str, Any]) -> pa.Table | None:
    """The rows of a query of lists of which not many differ, which are counted by tasks; else None."""
    with judged.explained():
        prefs = different(judged, label)
    return None if prefs is None else _rows(prefs, structure=structure, asked=dict(asked))


def _in_shares(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool
) -> pa.Table | None:
    """The rows of a query that is divided by its clusters, pairs or lists; None where it is not."""
    size = judged.large_sizes[judged.large.index(label)]
    if asked["interval"] == "bootstrap" and clusterable(judged, structure, asked):
        found = _by_clusters(judged, label, structure=structure, asked=asked, free=free)
        if found is not None:
            return found
    if summable(judged, structure, asked) or (free and size > MOST_ALONE and summable(judged, structure, {})):
        return _summed(judged, label, structure=structure, asked=asked, free=free)
    apart, free = divisible(judged, structure, asked), free and not asked["quasi"] and size > MOST_ALONE
    if tied(judged, structure, asked):
        return _of_ties(judged, label, structure=structure, asked=asked, free=free)
    if apart and asked["interval"] == "none":
        return _divided(judged, label, structure=structure, asked=asked, free=free)
    if clusterable(judged, structure, asked) or coefficients(judged, structure, asked, free=free):
        found = _by_clusters(judged, label, structure=structure, asked=asked, free=free)
        if found is not None:
            return found
    if apart and (free or limited(judged, asked)):
        return _divided(judged, label, structure=structure, asked=asked, free=free)
    return None


def _by_clusters(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool
) -> pa.Table | None:
    """The rows of a query whose judgments are divided by who made them, or by their rows; None where they are not."""
    with judged.explained():
        shares = ByClusters.of(judged, label)
        try:
            found = _of_clusters(judged, shares, structure=structure, asked=asked, free=free)
        finally:
            shares.forget()
    return None if found is None else _beside(*found)


def _of_clusters(
    judged: JudgedQueries, shares: ByClusters, *, structure: str, asked: Mapping[str, Any], free: bool
) -> tuple[Ranking, list[str]] | None:
    """The ranking of a query by its kinds of judgments or, with coefficients, by sums; and what is to be noted."""
    member = find_structure(structure)
    if clusterable(judged, structure, asked) and (found := shares.ranked(member, asked)) is not None:
        return found
    if not coefficients(judged, structure, asked, free=free):
        return None
    names = used(judged.checks.layout.covariate_names, asked) if structure == "bradley-terry" else ()
    ties = asked["ties"] if asked.get("ties") in TREATED else "half"  # any order is half, of two
    drawn = asked["interval"] == "bootstrap"
    known = OfComparisons.of(shares, member, {**asked, "ties": ties} if drawn else asked, names)
    if known is None:
        return None
    try:
        return _left(known, asked, free)
    except TooMuch:
        return None
    finally:
        known.forget()


def _of_ties(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool
) -> pa.Table | None:
    """The rows of a query of rankings whose ties have parameters of their own; None: that takes too much here."""
    known = None
    with judged.explained():
        try:
            known = tied_query(judged, label, find_structure(structure), asked)
            return None if known is None else _beside(*_left(known, asked, free))
        except TooMuch:
            return None
        finally:
            if known is not None:
                known.forget()


def _left(known: OfComparisons | OfPairs | OfLists, asked: Mapping[str, Any], free: bool) -> tuple[Ranking, list[str]]:
    """The ranking and what is to be noted, without intervals that were left to us where they take too much."""
    try:
        board = known.ranked(asked)
    except TooMuch:
        if not free:
            raise
        board = known.ranked(_without(asked))
    return board, [*map(str, board.notes), *known.said(board), *_left_out(board, asked, known.shares)]


def _without(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same asked for, without intervals, as there are none that were left to us."""
    return {**{name: value for name, value in asked.items() if name not in OF_INTERVALS}, "interval": "none"}


def _summed(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool, read: Read | None = None
) -> pa.Table | None:
    """The rows of a query that no task can hold, of what shares count; None where that is too much for the driver.

    ``read``: what is known of it already.
    """
    number = judged.large_sizes[judged.large.index(label)]
    few = asked["interval"] == "bootstrap" and number <= MOST_ALONE
    drawn = find_structure(structure).reads != "exposures" and free and not few
    asked = _without(asked) if drawn else asked
    with judged.explained():
        try:
            found = summed_ranking(judged, label, structure, asked, read)
        except TooMuch:
            return None
    if found is None:
        return None
    board, notes = found
    if drawn:
        what = f"{number:,} {judged.unit}"
        notes.append(f"no intervals: {structure} has them by the bootstrap, which takes long of {what}")
    return _beside(board, notes)


def clusterable(judged: JudgedQueries, structure: str, asked: Mapping[str, Any]) -> bool:
    """Whether the ranking of one query follows from its kinds of judgments and from sums over its clusters.

    Scores of comparisons do, and so do the Hessian and, for Bradley–Terry's, the sandwich.
    """
    columns = judged.cluster_columns if judged.compared else 0
    if asked["interval"] == "sandwich":
        plain = structure == "bradley-terry" and asked.get("ties", "half") in TREATED
        return plain and 0 < columns <= CROSSED
    return columns > 0 and (
        asked["interval"] in ("none", "hessian") or (asked["interval"] == "bootstrap" and columns == 1)
    )


def coefficients(judged: JudgedQueries, structure: Any, asked: Mapping[str, Any], *, free: bool = False) -> bool:
    """Whether Bradley–Terry's ranking of one query of comparisons follows from sums over judgments, coefficients too.

    Without coefficients, so many distinct judgments that intervals may be left out (``free``) are too many pairs.
    """
    ties = asked.get("ties", "half")
    luce = structure == "plackett-luce" and ties == "davidson"  # the same, but that it reads no covariates
    drawn = asked["interval"] == "bootstrap"
    if drawn and judged.cluster_columns > 1:
        return False
    if drawn and judged.compared and divisible(judged, structure, asked):
        return True
    if not (luce or structure == "bradley-terry") or not judged.compared:
        return False
    known = DIVISIBLE - {"covariates"} if luce else DIVISIBLE | {"tolerance", "max_iterations"}
    if {name for name, value in asked.items() if value is not None and name not in known}:
        return False
    columns = judged.cluster_columns
    valued, there = not luce and judged.checks.with_covariates(asked), judged.checks.layout.covariate_names
    if columns > CROSSED or ties not in TREATED or (valued and not there):
        return False
    return ties != "half" or valued or (asked["interval"] != "none" and not free)


def limited(judged: JudgedQueries, asked: Mapping[str, Any]) -> bool:
    """Whether intervals of one query of lists follow from sums over these, of which each is one judgment."""
    if judged.compared or asked["interval"] == "none":
        return False
    most = 1 if asked["interval"] == "bootstrap" else CROSSED
    return asked["interval"] == "hessian" or judged.cluster_columns <= most


def _divided(
    judged: JudgedQueries, label: Any, *, structure: str, asked: Mapping[str, Any], free: bool
) -> pa.Table | None:
    """The rows of a query that no task can hold, as ``_rows`` makes those of others; None: they take too much here."""
    given = {name: value for name, value in options_of_fit(asked).items() if name != "prior"}
    interval = asked["interval"] if limited(judged, asked) else "none"
    with judged.explained():
        try:
            shares = divided(judged, label, structure, interval)
        except TooMuch:
            return None
        if shares is None:
            return None
        known = Known(shares, find_structure(structure), given)
        try:
            if interval == "bootstrap" and (whole := as_judged(judged, label)) is not None:
                known = replace(known, again=Again.of(whole, shares, lists=structure == "plackett-luce"))
            try:
                board = known.ranked(_without(asked) if interval == "none" else {**asked, "interval": interval})
            except TooMuch:
                if not free:
                    return None
                board = known.ranked(_without(asked))
            clustered = board.interval == "sandwich" and shares.columns
            allowed = [alike(shares.columns, shares.numbers)] if clustered else []
        except TooMuch:
            return None
        finally:
            known.forget()
    notes = [*map(str, board.notes), *allowed, f"{shares.said}; whether the model fits was not looked at"]
    return _beside(board, [*notes, *_left_out(board, asked, shares)])


def _left_out(board: Ranking, asked: Mapping[str, Any], shares: Divided) -> list[str]:
    """Say that there are no intervals, where some were to be."""
    if board.interval == asked["interval"]:
        return []
    return [
        f"no intervals of a query with {shares.judgments:,} judgments: more than {MOST_ALONE:,} distinct ones are not "
        "brought together for them"
    ]


def ranking_of(frame: DataFrame, judged: JudgedQueries, structure: str, interval: str, level: float) -> Ranking:
    """Bring what ``ranked`` returned to the driver, as the Ranking that ``rank`` would have made.

    Coefficients beside the scores (covariates, ties) stay behind. Errors: InputError where rows are refused.
    """
    with judged.explained():
        table = frame.toArrow()
    queries, query = Labels.encode(table["query"])
    items, item = Labels.encode(table["item"])
    sorter = np.argsort(query, kind="stable")  # the rows of a query come from one task, in their order
    first = np.flatnonzero(np.diff(query[sorter], prepend=-1))

    def column(name: str) -> Any:
        return table[name].to_numpy()[sorter]

    methods = {method for said in pc.unique(table["interval"]).to_pylist() for method in said.split(" or ")}
    flags = pc.index_in(table["flag"], pa.array(LABELS)).to_numpy()[sorter]
    tested = table["lack_of_fit"].to_numpy()[sorter][first]
    allowed = clusters_allowed(judged, len(queries)) if "sandwich" in methods and not judged.one else ()
    said = [note for note in _notes(table, len(queries)) if not (allowed and note.startswith(ALLOWED))]
    return Ranking(
        queries=queries,
        items=items,
        query=query[sorter],
        item=item[sorter],
        flag=flags.astype(np.int8),
        **{name: column(name) for name in ("component", "score", "lower", "upper", "judgments", "provisional")},
        **{name: pc.fill_null(table[name], 0).to_numpy()[sorter] for name in ("rank", "rank_lower", "rank_upper")},
        quasi_error=column("quasi_error") if "quasi_error" in table.column_names else None,
        structure=structure,
        interval=" or ".join(sorted(methods)) or interval,
        level=level,
        status={name: column(name)[first] for name in STATUS},
        lack_of_fit=tested if find_structure(structure).expects else None,
        notes=(
            *_read(judged, structure, interval),
            *look_alikes(items, "items"),
            *look_alikes(queries, "queries"),
            *(judged.look_alikes("clusters") if judged.cluster_columns == 1 else ()),
            *allowed,
            *said,
            *(() if any("(lack of fit: " in note for note in said) else _misfit(structure, tested)),
        ),
    )


def _read(judged: JudgedQueries, structure: str, interval: str) -> list[str]:
    """What is noted of how the log was read, of columns that may be clusters as many as such intervals can use."""
    notes: Iterable[str] = judged.notes
    if interval in ("bootstrap", "hessian", "none") or find_structure(structure).curvature is None:
        notes = one_cluster(notes, used=interval not in ("hessian", "none"))
    below = find_structure(structure).reads == "lists"  # what lists leave out stands below what they hold
    return [note for note in notes if not (below and getattr(note, "code", "") == "not ranked")]


def _notes(table: pa.Table, queries: int) -> list[str]:
    """What the tasks note, of the same said by several the numbers added up."""
    parts = (pickle.loads(told) for told in table["told"].drop_null().to_pylist())
    return sorted(added_up(sorted((note for part in parts for note in part), key=str), queries))


def few_each(board: Ranking) -> bool:
    """Return whether half of the queries of a ranking hold few judgments of one pair, which costs no pass."""
    queries = len(board.queries)
    few = (np.bincount(board.query, minlength=queries) == 2) & (
        np.bincount(board.query, board.judgments, minlength=queries) <= 2 * FEW
    )
    return bool(2 * few.sum() >= queries >= LEAST)


def _misfit(structure: str, tested: NDArray[np.float64]) -> list[str]:
    """Say in how many queries one scale does not explain the pairs; which pairs contradict it no task knows of all."""
    if not find_structure(structure).expects or not rejected(tested):
        return []
    said = "which majorities contradict the scores was not looked at: each executor sees a part of the queries"
    return [*misfit_notes(tested, pa.table({})), said]


def write_ranking(
    frame: DataFrame, judged: JudgedQueries, folder: str, *, structure: str = "bradley-terry", interval: str = "none"
) -> tuple[int, list[str]]:
    """Let the executors write what ``ranked`` returned as Parquet into a folder; return the rows and what to note.

    ``structure``, ``interval``: what was asked for.

    Errors: UsageError where the folder is there and not empty, InputError where rows are refused.
    """
    seen = Observation()
    stopped, split = fn.col("status") == int(Status.STOPPED), (fn.col("component") > 1) & fn.col("rank").isNotNull()
    counts = {f"flag {one.label}": fn.count_if(fn.col("flag").contains(one.label)) for one in FLAGS}
    counts |= {
        "rows": fn.count(fn.lit(1)),
        "provisional": fn.count_if(fn.col("provisional")),
        "stopped": fn.count_if(stopped),
        "split": fn.count_if(split),
        "without": fn.count_if(fn.col("interval") == "none"),
        "sandwich": fn.count_if(fn.col("interval").contains("sandwich")),
        "replicates": fn.max(fn.regexp_extract("note", REPLICATES, 1)),
    }
    observed = frame.observe(seen, *[column.alias(name) for name, column in counts.items()])
    with judged.explained(), whole_or_gone(folder) as place:
        observed.drop(*BESIDE).write.mode("overwrite").parquet(place)
    found = seen.get
    notes = [*_read(judged, structure, interval)]
    if found["stopped"]:
        notes.append(f"{found['stopped']:,} rows are of queries that stopped before convergence")
    if found["split"]:
        notes.append(
            f"{found['split']:,} rows are of items beside the largest group of their query, in groups "
            f"{parted(judged.kind)}: ranks restart in each (column component)"
        )
    if found["without"] and interval != "none":
        notes.append(f"{found['without']:,} rows have no intervals, for which the log, or a query of it, is too large")
    notes += [found["replicates"]] if found["replicates"] else []
    notes += judged.look_alikes()
    notes += clusters_allowed(judged, 1 if judged.one else SEVERAL) if found["sandwich"] else ()
    if found["provisional"]:
        notes.append(f"{counted(found['provisional'], 'items')} stand apart, without a rank (column provisional)")
    notes += [f"{counted(number, 'items')} {one.label}" for one in FLAGS if (number := found[f"flag {one.label}"])]
    return found["rows"], notes


def _schema(judged: JudgedQueries, quasi: bool) -> pa.Schema:
    query, item = judged.labels
    return pa.schema(
        [("query", query), ("component", pa.int32()), ("item", item), ("rank", pa.int64()), ("score", pa.float64())]
        + [("lower", pa.float64()), ("upper", pa.float64()), ("judgments", pa.int64())]
        + [("rank_lower", pa.int64()), ("rank_upper", pa.int64()), ("flag", pa.string()), ("provisional", pa.bool_())]
        + [("quasi_error", pa.float64())] * quasi
        + [
            ("status", pa.int8()),
            ("iterations", pa.int32()),
            ("gradient", pa.float64()),
            ("note", pa.string()),
            ("told", pa.binary()),
            ("interval", pa.string()),
            ("lack_of_fit", pa.float64()),
        ]
    )


def _rows(
    prefs: Preferences,
    *,
    structure: str,
    asked: dict[str, Any],
    read: ReadAs | None = None,
    said: Sequence[str] = (),
    whole: bool = False,
) -> pa.Table:
    """A task: the ranking of some queries, their clicks ``read`` as all of a log; the notes stand in the first row.

    ``said``: what else is noted; ``whole``: whether they are all of the log.
    """
    prefs = prefs if read is None or not len(prefs) else read(prefs)
    board = rank_here(prefs, structure, **asked)
    parted = () if whole else OF_THE_WHOLE
    left = {*prefs.notes, *(note for note in board.notes if getattr(note, "code", "") in parted)}
    return _beside(board, [*said, *(note for note in board.notes if note not in left)])  # labels: of all tasks


def _beside(board: Ranking, notes: Sequence[str]) -> pa.Table:
    """The rows of a ranking and the columns beside them."""
    table = board.to_arrow()
    note, told = np.full((2, len(board)), None, object)
    if notes:
        note[:1], told[:1] = "\n".join(notes), pickle.dumps([*notes])
    tested = np.full(len(board.queries), np.nan) if board.lack_of_fit is None else board.lack_of_fit
    beside: dict[str, Any] = {name: board.status[name][board.query] for name in STATUS}
    beside |= {
        "note": pa.array(note, pa.string()),
        "told": pa.array(told, pa.binary()),
        "interval": pa.repeat(board.interval, len(board)),
    }
    beside["lack_of_fit"] = pa.array(tested[board.query], from_pandas=True)
    return pa.table(dict(zip(table.column_names, table.columns, strict=True)) | beside)
