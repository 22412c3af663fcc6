"""Read the features that a command was given, with the columns that a model knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.errors import UsageError, few
from concordant.features.matrix import Features
from concordant.features.reading import read_features
from concordant.labels import Labels
from concordant.log.formats import locate
from concordant.log.headers import with_header
from concordant.log.layouts import plain
from concordant.preferences import Preferences
from concordant.store.catalogue import is_store

__all__ = ["is_letor", "labelled_like", "listed", "matched_as_written", "read_feature_file", "said_of_names"]

LABELS = frozenset({"label", "labels", "relevance", "rel", "grade", "rating", "score", "target", "clicked"})
"""Names that columns of judgments have, in plain spelling."""


def is_letor(source: str) -> bool:
    """Whether a file holds labels and features in LETOR (SVMLight) lines."""
    if is_store(Path(source)):
        return False
    log = locate(source)
    return not log.parts and (with_header(log) if log.format == "txt" else log).format == "letor"


def read_feature_file(
    source: str, given: Mapping[str, Any], *, missing: str, names: Sequence[str] | None = None
) -> Features:
    """Read the features of a file; ``names`` are those that a model was fitted on, other columns are left unread.

    Errors (InputError): columns of the model that are not there, and all that ``read_features`` finds.
    """
    if names is None and given.get("feature_columns") is not None:
        names = listed(given["feature_columns"])
    columns = {role: given[f"feature_{role}"] for role in ("item", "query") if given.get(f"feature_{role}") is not None}
    keep = "raise" if missing == "raise" else "keep"
    if not is_letor(source):
        return read_features(source, columns=columns, names=names, missing=keep)
    if names is None:
        return read_features(source, columns=columns, missing=keep)
    if given.get("feature_columns") is not None:
        raise UsageError(f"{source} is a LETOR file: it has no column names to choose with --feature-columns")
    if list(names) != [str(place + 1) for place in range(len(names))]:
        raise UsageError(
            f"{source} is a LETOR file, whose features are '1', '2', …; the model was fitted on named ones "
            f"({', '.join(list(names)[:4])}, …)"
        )
    return read_features(source, columns=columns, missing=keep, width=len(names))


def said_of_names(source: str, names: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """Say which columns were taken for features though they are called as labels are."""
    odd = [name for name in names if plain(name) in LABELS]
    if not odd or given.get("feature_columns") is not None:
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


def listed(text: str) -> list[str]:
    """The names of ``--feature-columns A,B,…``. Errors (UsageError): none, or one twice."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"--feature-columns {text!r}: give the names of columns, each once, with commas between")
    return names
