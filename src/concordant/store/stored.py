"""What a store holds, read without a lock: as one catalogue says it, whatever writers do meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from concordant.engines.duckdb import Settings, message
from concordant.errors import Idle, InputError, UsageError, few
from concordant.preferences import Preferences
from concordant.progress import steps
from concordant.store.belonging import belongs
from concordant.store.catalogue import Catalogue, Facts, Segment, changed, contradictions, read_catalogue, sized
from concordant.store.merging import merged
from concordant.store.segments import digest

__all__ = ["checked", "read_as_log", "read_stored"]


def read_stored(
    store: Path, settings: Settings | None = None, *, check: Callable[[Facts], None] = lambda _: None
) -> tuple[Preferences, Catalogue]:
    """Return the preferences of a store and the catalogue that they were read by; ``check`` may refuse it first.

    Every segment is held against its SHA-256 first. Errors (InputError): no store; a segment that is missing or
    damaged.
    """
    target = Path(os.path.realpath(store))
    while True:
        catalogue = read_catalogue(target)
        check(catalogue.facts)
        try:
            belongs(target, catalogue)
            if wrong := next(contradictions(catalogue), None):
                raise InputError(f"{store}: {wrong}")
            paths = [checked(target, segment) for segment in steps("checking segments", catalogue.segments)]
            prefs = merged(paths, catalogue.facts, settings or Settings())
            if len(prefs) != catalogue.judgments:
                raise InputError(
                    f"{store}: {len(prefs):,} judgments were read, the catalogue says {catalogue.judgments:,}"
                )
            return prefs, catalogue
        except (InputError, OSError, duckdb.Error, pa.ArrowException) as error:
            if read_catalogue(target).facts.revision != catalogue.facts.revision:
                continue  # segments were merged into another one while these were read
            if isinstance(error, InputError):
                raise
            said = error.strerror if isinstance(error, OSError) else None
            raise InputError(f"{store}: cannot be read: {said or message(error)}") from None


def read_as_log(store: Path, given: Mapping[str, Any], settings: Settings) -> tuple[Preferences, int]:
    """Return the preferences of a store, read in the place of a log, and the number of rows they were counted from.

    ``given`` are options of ``read``. How rows become judgments was settled when they were taken in: options that say
    so again have to say the same (kind, cluster, covariates, home), others (columns, clicks, on_error) are refused.
    Errors: UsageError.
    """
    prefs, catalogue = read_stored(store, settings, check=lambda facts: _refuse(facts, str(store), given))
    return prefs, sum(batch.rows for batch in catalogue.batches)


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
        raise UsageError(f"{why}, with home={facts.home!r}, not {home!r}")
    if given["columns"]:
        raise Idle(next(iter(given["columns"])), f"{why}, which has no columns to name", "name it to concordant ingest")
    for name in ("clicks", "on_error"):
        if given[name] != "raise":
            raise Idle(name, why, "leave it out, and give it to concordant ingest")
    if given["engine"] == "memory":
        raise UsageError(f"{store}: a store is read by duckdb; leave out engine='memory'")


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
