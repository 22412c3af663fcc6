"""What a store holds, read without a lock: as one catalogue says it, whatever writers do meanwhile.

Segments read and merged: equal judgments of several segments are added up where they lie, by one GROUP BY.

What all logs of a store have in common: kind, query, cluster, covariates, the columns they are, types of labels.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from concordant.errors import Idle, InputError, Setting, UsageError, few
from concordant.io.engines.duckdb import Settings, fetch, message, pattern
from concordant.io.engines.sql import identifier, literal
from concordant.io.store.catalogue import (
    Catalogue,
    Content,
    Facts,
    Ingestion,
    Segment,
    changed,
    contradictions,
    read_catalogue,
    sized,
)
from concordant.io.store.days import of_window, window_note
from concordant.io.store.known import belongs
from concordant.io.store.migrations import UNKNOWN
from concordant.io.store.segments import COVARIATE, VALUES, digest, label_kind
from concordant.io.store.summed import added_up
from concordant.preferences.counted import with_integers
from concordant.preferences.counts import MOST
from concordant.preferences.labels import INTEGER, Labels
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists
from concordant.preferences.windows import ALWAYS, Window
from concordant.progress import steps


def merged(
    segments: Mapping[str, Path], facts: Facts, settings: Settings, kept: bool | None = False, clustered: bool = True
) -> Preferences:
    """Return the preferences that segments, by their signs, hold together. Errors: those of DuckDB and Arrow.

    ``kept``: whether the sum that is kept beside them is used, and kept; None: DuckDB adds all of them up.
    ``clustered``: whether they have their clusters.
    """
    if not segments:
        return Preferences.empty()
    if kept is not None and (whole := added_up(segments, facts, keep=kept, clustered=clustered)) is not None:
        return whole
    distinct = len(segments) == 1 and (clustered or facts.clusters is None)
    facts = facts if clustered else replace(facts, clusters=None)
    paths = [*segments.values()]
    files = ", ".join(literal(pattern(path)) for path in paths)
    source = f"read_parquet([{files}], hive_partitioning = false)"
    names = _columns(facts)
    chosen = ", ".join(identifier(name) for name in names)
    if distinct:  # its judgments are
        statement = f'SELECT {chosen}, "count" FROM {source} WHERE "count" > 0'
    else:
        total = 'sum("count")::BIGINT AS "count"'
        statement = f'SELECT {chosen}, {total} FROM {source} WHERE "count" > 0 GROUP BY {chosen}'
    item = '"winner"' if facts.kind == "comparisons" else 'unnest("items")'
    in_none = f'SELECT DISTINCT "query", {item} AS "item" FROM {source} WHERE "count" = 0'
    columns, known = fetch(settings, paths, statement, in_none)
    found = dict(zip((*names, "count"), columns, strict=True))
    declared = (known[0], known[1]) if len(known[0]) else None
    return (_comparisons if facts.kind == "comparisons" else _lists)(found, facts, declared)


def queries_of(paths: Sequence[Path]) -> list[str | int]:
    """Return the distinct labels of the queries that segments hold. Errors: those of DuckDB."""
    files = ", ".join(literal(pattern(path)) for path in paths)
    source = f"read_parquet([{files}], hive_partitioning = false)"
    found: list[str | int] = fetch(Settings(), paths, f'SELECT DISTINCT "query" FROM {source}')[0][0].to_pylist()
    return found


def judgments_of(path: Path, settings: Settings, clusters: Sequence[str | int] | None = None) -> dict[str | int, int]:
    """Return how many judgments of a segment each cluster has made, or some of them. Errors: those of DuckDB."""
    where = ""
    if clusters is not None:
        named = ", ".join(str(one) if isinstance(one, int) else literal(one) for one in clusters)
        where = f' AND "cluster" IN ({named})'
    source = f"read_parquet({literal(pattern(path))}, hive_partitioning = false)"
    counts = f'SELECT "cluster", sum("count")::BIGINT FROM {source} WHERE "count" > 0{where} GROUP BY "cluster"'
    label, count = fetch(settings, [path], counts)[0]
    return dict(zip(label.to_pylist(), count.to_pylist(), strict=True))


def _columns(facts: Facts) -> list[str]:
    if facts.kind == "comparisons":
        names = ["query", "winner", "loser", "tie", "weight", *(f"{COVARIATE}{name}" for name in facts.covariates)]
    else:
        names = ["query", "items", VALUES[facts.kind]]
    return names if facts.clusters is None else [*names, "cluster"]


def _comparisons(found: dict[str, pa.Array], facts: Facts, declared: Any) -> Preferences:
    return counted_comparisons(
        found.pop("winner"),
        found.pop("loser"),
        query=found.pop("query"),
        tie=_numbers(found.pop("tie")),
        weight=_numbers(found.pop("weight")),
        count=_numbers(found.pop("count")),
        cluster=found.pop("cluster", None),
        covariates={name: _numbers(found.pop(f"{COVARIATE}{name}")) for name in facts.covariates},
        declared=declared,
    )


def _lists(found: dict[str, pa.Array], facts: Facts, declared: Any) -> Preferences:
    items, values = found["items"], found[VALUES[facts.kind]]
    offsets = items.offsets.to_numpy().astype(np.int64)
    return counted_lists(
        facts.kind,
        offsets - offsets[0],
        items.flatten(),
        _numbers(values.flatten()),
        query=found["query"],
        count=_numbers(found["count"]),
        cluster=found.get("cluster"),
        declared=declared,
    )


def _numbers(column: pa.Array) -> Any:
    return column.to_numpy(zero_copy_only=False)


def read_stored(
    store: Path,
    settings: Settings | None = None,
    *,
    check: Callable[[Facts], None] = lambda _: None,
    which: Callable[[Catalogue], Collection[Ingestion]] = lambda catalogue: catalogue.batches,
    kept: bool | None = False,
    clustered: bool = True,
) -> tuple[Preferences, Catalogue]:
    """Return the preferences of a store and the catalogue that they were read by; ``check`` may refuse it first.

    ``which``: the batches that are read; ``kept`` and ``clustered`` as ``merged`` has them. Every segment is held
    against its SHA-256 first. Errors (InputError): no store; a segment that is missing or damaged.
    """
    target = Path(os.path.realpath(store))
    while True:
        catalogue = read_catalogue(target)
        check(catalogue.facts)
        try:
            belongs(target, catalogue)
            if wrong := next(contradictions(catalogue), None):
                raise InputError(f"{store}: {wrong}")
            wanted = which(catalogue)
            held = steps("checking segments", catalogue.holding(wanted))
            paths = {segment.sign: checked(target, segment) for segment in held}
            prefs = merged(paths, catalogue.facts, settings or Settings(), kept, clustered)
            there = sum(batch.judgments for batch in wanted)
            if len(prefs) != there:
                raise InputError(f"{store}: {len(prefs):,} judgments were read, the catalogue says {there:,}")
            return prefs, catalogue
        except (InputError, OSError, duckdb.Error, pa.ArrowException) as error:
            if read_catalogue(target).facts.revision != catalogue.facts.revision:
                continue  # segments were merged into another one while these were read
            if isinstance(error, InputError):
                raise
            said = error.strerror if isinstance(error, OSError) else None
            raise InputError(f"{store}: cannot be read: {said or message(error)}") from None


def read_as_log(
    store: Path, given: Mapping[str, Any], settings: Settings, window: Window = ALWAYS, clustered: bool = True
) -> tuple[Preferences, int, dict[str, Any]]:
    """Return the preferences of a store, read in the place of a log, of how many rows, and which batches they are.

    ``given`` are options of ``read``. How rows become judgments was settled when they were taken in: options that say
    so again have to say the same (kind, cluster, covariates, home), others (columns, clicks, on_error) are refused.
    ``window``: the days whose batches are read; a note says how many there are. ``clustered``: whether they have their
    clusters. Errors: UsageError; InputError: there
    are no judgments.
    """
    which = of_window(window, str(store))
    check, kept = lambda facts: _refuse(facts, str(store), given), None if given["engine"] == "duckdb" else True
    prefs, catalogue = read_stored(store, settings, check=check, which=which, kept=kept, clustered=clustered)
    chosen = which(catalogue)
    if window:
        prefs = replace(prefs, told=(*prefs.told, window_note(window, catalogue, chosen)))
    if not len(prefs):
        raise InputError(nothing_in(store, catalogue))
    facts, days = catalogue.facts, sorted({batch.day for batch in chosen} - {""})
    batches = [batch.batch for batch in chosen]
    which_ones = {"store": store.name, "revision": facts.revision, "commit": facts.commit, "batches": batches}
    return prefs, sum(batch.rows for batch in chosen), which_ones | {"days": [days[0], days[-1]] if days else []}


def nothing_in(store: Path, catalogue: Catalogue) -> str:
    """Say that a store holds no judgments, and why."""
    gone = catalogue.removed or catalogue.forgotten
    return f"{store}: holds no judgments" + ("; all that it held was taken out" if gone else "")


def _refuse(facts: Facts, store: str, given: Mapping[str, Any]) -> None:
    kind, cluster, covariates, home = (given[name] for name in ("kind", "cluster", "covariates", "home"))
    wanted = {*([covariates] if isinstance(covariates, str) else covariates), *(["home"] if home is not None else [])}
    kind = "ratings" if kind == "labels" else kind
    why = f"{store}: a store holds judgments that were counted when their logs were taken in"
    if kind not in (None, facts.kind):
        raise UsageError(f"{why}; they are {facts.kind}, not {kind}")
    if cluster not in (None, facts.cluster):
        kept = "no clusters" if facts.cluster is None else f"the cluster {facts.cluster!r}"
        raise UsageError(f"{why}, with {kept}, not {cluster!r}")
    if wanted and wanted != set(facts.covariates):
        kept = f"the covariates {few(facts.covariates)}" if facts.covariates else "no covariates"
        raise UsageError(f"{why}, with {kept}, not {few(sorted(wanted))}")
    if home is not None and facts.home in ("left", "right") and home != facts.home:
        raise UsageError(f"{why}, with ", Setting("home", facts.home), f", not {home!r}")
    if given["columns"]:
        raise Idle(next(iter(given["columns"])), f"{why}, which has no columns to name", "name it to concordant ingest")
    for name, usual in (("clicks", "all"), ("on_error", "raise")):
        if given[name] != usual:
            raise Idle(name, why, "leave it out, and give it to concordant ingest")
    if given["engine"] == "memory":
        raise UsageError(f"{store}: a store is read by duckdb; leave out ", Setting("engine", "memory"))


def checked(target: Path, segment: Segment) -> Path:
    """Return the path of a segment whose bytes are those that were written.

    The file is compressed, so its SHA-256 takes some thousandths of the time in which its rows are read.
    """
    path = sized(target, segment)
    try:
        same = digest(path) == segment.sha256
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if not same:
        raise changed(target, path, "its SHA-256 differs")
    return path


Named = Mapping[str, str | None]
"""The columns that ``query``, ``cluster`` and ``neutral`` came from, and the side of ``home``: None where a log has
none, empty where it has no name, ``?`` where nobody knows."""
NAMES = {
    "query": ("the query of each judgment", Setting("columns", key="query")),
    "cluster": ("the cluster of each judgment", Setting("cluster")),
    "home": ("which side is at home", Setting("home")),
    "neutral": ("where nobody is at home", Setting("columns", key="neutral")),
}
NO_QUERY = "all"
"""The query of judgments that have none."""


def facts_of(prefs: Preferences, named: Named) -> Facts:
    """Return the facts that preferences fix for a store that begins with them."""
    return Facts(
        kind=str(prefs.kind),
        items=label_kind(prefs.items),
        queries=label_kind(prefs.queries),
        clusters=None if prefs.clusters is None else label_kind(prefs.clusters),
        cluster=None if prefs.clusters is None else named["cluster"] or "cluster",
        covariates=prefs.covariate_names,
        query=named["query"],
        home=named["home"],
        neutral=named["neutral"],
    )


def named_in(prefs: Preferences, roles: Mapping[str, str] | None, home: str | None) -> Named:
    """Return what a store pins of a log, given the columns of its roles; None of them for Preferences in memory."""
    if roles is None:
        unsaid = UNKNOWN if "home" in prefs.covariate_names else None
        query = None if prefs.queries.tolist() == [NO_QUERY] else ""
        return {"query": query, "cluster": "" if prefs.clusters else None, "home": unsaid, "neutral": unsaid}
    cluster = roles.get("cluster") if prefs.clusters is not None else None
    return {"query": roles.get("query"), "cluster": cluster, "home": home, "neutral": roles.get("neutral")}


def covariates_of(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the covariates that options of reading ask for."""
    named = options.get("covariates") or ()
    home = ["home"] if options.get("home") is not None else []
    return [*([named] if isinstance(named, str) else named), *home]


def kept_query(queries: Collection[object], name: str) -> str | None:
    """Return whether judgments have queries, as their labels say: None, or a name that is not known.

    Errors (InputError): some have and some have not; version 0.1 took both into one store.
    """
    if NO_QUERY not in queries:
        return ""
    if len(queries) == 1:
        return None
    others = few(sorted(str(query) for query in queries if query != NO_QUERY), 3)
    raise InputError(
        f"{name}: holds judgments without a query ({NO_QUERY!r}) beside those of the queries {others}, which version "
        "0.1 let in; it can be read, and nothing is added to it until they are apart: export it and keep the rows of "
        "one sort, or take its logs into a new store"
    )


def settled(facts: Facts, named: Named) -> Facts:
    """Return the facts with what was unknown as a log that agrees says it."""
    found: dict[str, Any] = {name: named[name] for name in NAMES if getattr(facts, name) in ("", UNKNOWN)}
    return replace(facts, **{name: value for name, value in found.items() if value not in ("", UNKNOWN)})


def agree_columns(facts: Facts, clusters: bool, covariates: Sequence[str], name: str) -> None:
    """Refuse a log that would be read with other clusters or covariates than the store has."""
    if clusters and facts.clusters is None:
        raise InputError(
            f"{name}: the store keeps judgments without clusters, so no cluster can be named; it was fixed by the "
            "first log"
        )
    if not clusters and facts.clusters is not None:
        kept = f"the cluster of each judgment ({facts.cluster})"
        raise InputError(f"{name}: the store keeps {kept}; name its column (", Setting("cluster"), ")")
    if set(covariates) != set(facts.covariates):
        kept = f"the covariates {few(facts.covariates)}" if facts.covariates else "no covariates"
        given = few(sorted(covariates)) if covariates else "none"
        raise InputError(
            f"{name}: the store keeps {kept}, fixed by its first log; given here: {given} (",
            Setting("covariates"),
            ", ",
            Setting("home"),
            ")",
        )


def agree(facts: Facts, prefs: Preferences, named: Named, name: str) -> None:
    """Refuse preferences that cannot be added to those of a store. Errors (InputError) say how they differ."""
    if prefs.kind != facts.kind:
        raise InputError(f"{name}: holds {prefs.kind}, the store {facts.kind}; a store holds judgments of one kind")
    agree_columns(facts, prefs.clusters is not None, prefs.covariate_names, name)
    for what in NAMES:
        _agree_name(what, getattr(facts, what), named[what], name)
    for what, labels in (("items", prefs.items), ("queries", prefs.queries), ("clusters", prefs.clusters)):
        _agree_labels(what, labels, getattr(facts, what), name)


def _agree_name(what: str, kept: str | None, given: str | None, name: str) -> None:
    said, option = NAMES[what]
    if UNKNOWN in (kept, given) or kept == given or (kept is not None and given is not None and "" in (kept, given)):
        return
    if given is None:
        column = f" ({kept!r})" if kept else ""
        raise InputError(
            f"{name}: the store keeps {said}{column}, fixed by its first log, and this log has none; name it (",
            option,
            "), or take the log into another store",
        )
    if kept is None:
        column = f" ({given!r})" if given else ""
        raise InputError(
            f"{name}: this log has {said}{column}, the store keeps none, fixed by its first log; take it into "
            "another store, or make this one anew from its logs"
        )
    raise InputError(
        f"{name}: {said} is {given!r} here and {kept!r} in the store, fixed by its first log; where both mean the "
        f"same, call it {kept!r} in the log, too; else take it into another store"
    )


def as_in_store(facts: Facts, prefs: Preferences) -> Preferences:
    """The judgments of a file with integers where the store has these and the file texts, as CSV has: 17 is 17."""
    kinds = {"items": prefs.items, "queries": prefs.queries, "clusters": prefs.clusters}
    written = [
        what
        for what, labels in kinds.items()
        if labels is not None and len(labels) and (getattr(facts, what), label_kind(labels)) == ("integers", "texts")
    ]
    read = with_integers(prefs, *written)
    done = [what for what in written if label_kind(getattr(read, what)) == "integers"]
    said = f"{' and '.join(done)} are read as integers, which the store has"
    return replace(read, told=(*read.told, said)) if done else prefs


def _agree_labels(what: str, labels: Labels | None, kept: str | None, name: str) -> None:
    if labels is not None and label_kind(labels) != kept:
        one = next((label for label in labels if kept == "integers" and not re.match(INTEGER, label)), labels[0])
        raise InputError(
            f"{name}: {what} are {label_kind(labels)} (such as {one!r}), in the store {kept}; "
            "give all logs of a store labels of one type"
        )


def fits(old: Catalogue, prefs: Preferences, carried: Sequence[Content], name: str) -> None:
    """Refuse what would be counted twice, or beyond what can be counted; ``carried`` are files of an export."""
    there = {(content.sha256, content.again) for content in old.contents}
    if twice := [one.name for one in carried if (one.sha256, one.again) in there]:
        raise InputError(
            f"{name}: the export of a store that took in {few(twice, 3)}, as this one did; their judgments would be "
            "there twice. Take the export into a store of its own"
        )
    if old.judgments + len(prefs) > MOST:
        raise InputError(
            f"{name}: {len(prefs):,} judgments to the {old.judgments:,} of the store are more than the {MOST:,} "
            "(2^63 − 1) that can be counted"
        )


def words(options: Mapping[str, Any]) -> str:
    """Say options of reading.

    >>> words({"clicks": "first"}), words({})
    ("clicks='first'", 'no options')
    """
    return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "no options"
