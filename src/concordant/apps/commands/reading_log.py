"""Read the log, and the features, that the options of a command name.

Features are read with the columns that a model knows, into memory or from disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.apps.commands.fit_options import FitOptions
from concordant.apps.commands.options import EvaluateOptions, RankOptions, ScoreOptions
from concordant.apps.commands.report_options import ReportOptions
from concordant.apps.commands.shared_options import (
    ROLES,
    ChosenFeatures,
    ClusteredLog,
    FeatureOptions,
    LogOptions,
    SidedLog,
)
from concordant.errors import UsageError, few
from concordant.io.engines.duckdb import Settings, memory_allowed
from concordant.io.log.formats import locate
from concordant.io.log.headers import sniffed
from concordant.io.store.catalogue import is_store
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_features
from concordant.learning.features.streamed import FORMATS, FeatureFile
from concordant.memory import needs
from concordant.preferences.labels import Labels
from concordant.preferences.layouts import plain
from concordant.preferences.preferences import Preferences


def asked_of(options: LogOptions, **more: Any) -> dict[str, Any]:
    """Return how a log is to be read, for ``read_log``: the options of every command that reads one, and ``more``."""
    columns = {role: getattr(options, role) for role in (*ROLES, "neutral") if getattr(options, role, None) is not None}
    asked: dict[str, Any] = {
        "columns": columns,
        "kind": options.kind,
        "clicks": options.clicks,
        "unranked": options.unranked,
        "pool": options.pool,
        "on_error": options.on_error,
        "engine": options.engine,
        "memory_limit": options.memory_limit,
        "threads": options.threads,
        "master": options.master,
    }
    if isinstance(options, ClusteredLog):
        asked["cluster"] = options.cluster[0] if len(options.cluster) == 1 else options.cluster or None
    if isinstance(options, SidedLog):
        asked |= {"covariates": options.covariates, "home": "left" if options.home else None}
    if isinstance(options, RankOptions | ReportOptions | EvaluateOptions):
        asked["time"] = options.time
    return asked | more


def check_grades(options: RankOptions | EvaluateOptions | ReportOptions, roles: Mapping[str, str], name: str) -> None:
    """Ask which of two readings of grades is meant, where it is not said."""
    if "grade" in roles and options.structure in (None, "bradley-terry") and options.ties is None:
        raise UsageError(
            f"{name}: grades are read as strengths (--ties half: a preference of 3 weighs as much as three of 1, a tie "
            "is half a win each way) or as ordered outcomes with thresholds between them (--ties cumulative); say which"
        )


LABELS = frozenset({"label", "labels", "relevance", "rel", "grade", "rating", "score", "target", "clicked"})
"""Names that columns of judgments have, in plain spelling."""


def is_letor(source: str) -> bool:
    """Whether a file holds labels and features in LETOR (SVMLight) lines."""
    if is_store(Path(source)):
        return False
    log = locate(source)
    return not log.parts and sniffed(log).format == "letor"


def columns_of(options: FeatureOptions) -> dict[str, str]:
    """Return the columns of features that were named, by role."""
    named = {"item": options.feature_item, "query": options.feature_query}
    return {role: name for role, name in named.items() if name is not None}


def chosen_columns(options: FeatureOptions) -> list[str] | None:
    """Return the columns that ``--feature-columns A,B,…`` names. Errors (UsageError): none, or one twice."""
    text = options.feature_columns if isinstance(options, ChosenFeatures) else None
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"--feature-columns {text!r}: give the names of columns, each once, with commas between")
    return names


def read_feature_file(
    source: str, options: FeatureOptions, *, missing: str, names: Sequence[str] | None = None
) -> Features:
    """Read the features of a file; ``names`` are those that a model was fitted on, other columns are left unread.

    Errors (InputError): columns of the model that are not there, and all that ``read_features`` finds.
    """
    chosen = chosen_columns(options)
    if names is None:
        names = chosen
    columns, keep = columns_of(options), "raise" if missing == "raise" else "keep"
    if not is_letor(source):
        return read_features(source, columns=columns, names=names, missing=keep)
    if names is None:
        return read_features(source, columns=columns, missing=keep)
    if chosen is not None:
        raise UsageError(f"{source} is a LETOR file: it has no column names to choose with --feature-columns")
    if list(names) != [str(place + 1) for place in range(len(names))]:
        raise UsageError(
            f"{source} is a LETOR file, whose features are '1', '2', …; the model was fitted on named ones "
            f"({', '.join(list(names)[:4])}, …)"
        )
    return read_features(source, columns=columns, missing=keep, width=len(names))


def names_of(model: Any) -> list[str] | None:
    """Return the names of the features that a model was fitted on; None where it knows none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def said_of_names(source: str, names: Sequence[str], options: ChosenFeatures) -> list[str]:
    """Say which columns were taken for features though they are called as labels are."""
    odd = [name for name in names if plain(name) in LABELS]
    if not odd or options.feature_columns is not None:
        return []
    columns = "the columns" if len(odd) > 1 else "the column"
    return [
        f"{source}: {columns} {few(odd)} {'are' if len(odd) > 1 else 'is'} taken for a feature; "
        "--feature-columns chooses others"
    ]


def labelled_like(features: Features, prefs: Preferences) -> tuple[Features, list[str]]:
    """Return the features with items and queries of the type that the log has, and what was done, in words.

    CSV and LETOR files hold texts where Parquet and JSON hold integers. Texts become integers only if all of them are
    written as integers are; else they stay, and matching says what differs.
    """
    told, items, item, queries, query = [], features.items, features.item, features.queries, features.query
    if (values := _of_type(items, prefs.items)) is not None:
        items, code = Labels.encode(values)
        item = code[item]
        told.append(f"items: {matched_as_written(prefs.items)}")
    if query is not None and (values := _of_type(queries, prefs.queries)) is not None:
        queries, code = Labels.encode(values)
        query = code[query]
        told.append(f"queries: {matched_as_written(prefs.queries)}")
    return replace(features, items=items, item=item, queries=queries, query=query), told


def _of_type(theirs: Labels, ours: Labels) -> pa.Array | None:
    """The labels in the type of the log; None where they have it already, or cannot have it."""
    if not len(theirs) or not len(ours) or theirs.values.type == ours.values.type:
        return None
    try:
        values = theirs.values.cast(ours.values.type)
    except pa.ArrowInvalid:
        return None
    return values if values.cast(theirs.values.type).equals(theirs.values) else None


def matched_as_written(ours: Labels) -> str:
    """Say that labels have another type in the features than ``ours``, and what is done about it."""
    inside, outside = ("integers", "texts") if isinstance(ours[0], int) else ("texts", "integers")
    return f"{inside} in the log and {outside} in the features, matched as they are written"


WHILE_READ = 1.5
"""How often features are in memory while they are read."""


def feature_stream(
    source: str, options: FitOptions | ScoreOptions, names: Sequence[str] | None = None
) -> FeatureFile | None:
    """Return the features as a file that stays on disk; None where they are to be read into memory.

    ``--stream`` and ``--in-memory`` decide; else a table stays on disk that would take more than ``--memory-limit``, or
    than DuckDB takes of the machine's memory. Errors: those of ``FeatureFile``.
    """
    if options.stream is False or (options.stream is None and locate(source).format not in FORMATS):
        return None
    limit = options.memory_limit
    names = names or chosen_columns(options)
    file = FeatureFile(source, columns=columns_of(options), names=names, memory_limit=limit, as_written=True)
    if options.stream or file.size > memory_allowed(Settings(limit)):
        return file
    needs(WHILE_READ * file.size, f"the features, {gigabytes(file)} (--stream leaves them on disk)")
    return None


def gigabytes(file: FeatureFile) -> str:
    """What the table would take in memory, in words."""
    return f"about {max(file.size / 1e9, 0.01):,.2f} GB in memory"


def as_written(file: FeatureFile, prefs: Preferences) -> list[str]:
    """Say which labels have another type in the log than in the features."""
    told = []
    for role, called, column, ours in (
        ("item", "items", file.item, prefs.items),
        ("query", "queries", file.query, prefs.queries),
    ):
        if column is None or not len(ours):
            continue
        if pa.types.is_integer(file.label_type(role)) != pa.types.is_integer(ours.values.type):
            told.append(f"{called}: {matched_as_written(ours)}")
    return told
