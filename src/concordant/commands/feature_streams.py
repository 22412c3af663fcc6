"""Whether the features of a command are read into memory or stay on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from concordant.commands.feature_files import listed, matched_as_written
from concordant.engines.duckdb import Settings
from concordant.engines.streams import memory_allowed
from concordant.features.streamed import FORMATS, FeatureFile
from concordant.log.formats import locate
from concordant.preferences import Preferences

__all__ = ["as_written", "feature_stream", "gigabytes"]


def feature_stream(source: str, given: Mapping[str, Any], names: Sequence[str] | None = None) -> FeatureFile | None:
    """Return the features as a file that stays on disk; None where they are to be read into memory.

    ``--stream`` and ``--in-memory`` decide; else a table stays on disk that would take more than ``--memory-limit``, or
    than DuckDB takes of the machine's memory. Errors: those of ``FeatureFile``.
    """
    if given["stream"] is False:
        return None
    if given["stream"] is None and locate(source).format not in FORMATS:
        return None
    if names is None and given.get("feature_columns") is not None:
        names = listed(given["feature_columns"])
    limit = given.get("memory_limit")
    columns = {role: given[f"feature_{role}"] for role in ("item", "query") if given.get(f"feature_{role}") is not None}
    file = FeatureFile(source, columns=columns, names=names, memory_limit=limit, as_written=True)
    if given["stream"] or file.size > memory_allowed(Settings(limit)):
        return file
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
