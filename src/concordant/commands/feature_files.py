"""Read the features that a command was given, with the columns that a model knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concordant.errors import UsageError
from concordant.features.matrix import Features
from concordant.features.reading import read_features
from concordant.log.formats import locate
from concordant.log.headers import with_header

__all__ = ["is_letor", "read_feature_file"]


def is_letor(source: str) -> bool:
    """Whether a file holds labels and features in LETOR (SVMLight) lines."""
    log = locate(source)
    return (with_header(log) if log.format == "txt" else log).format == "letor"


def read_feature_file(
    source: str, given: Mapping[str, Any], *, missing: str, names: Sequence[str] | None = None
) -> Features:
    """Read the features of a file; ``names`` are those that a model was fitted on, other columns are left unread.

    Errors (InputError): columns of the model that are not there, and all that ``read_features`` finds.
    """
    columns = {role: given[f"feature_{role}"] for role in ("item", "query") if given.get(f"feature_{role}") is not None}
    keep = "raise" if missing == "raise" else "keep"
    if not is_letor(source):
        return read_features(source, columns=columns, names=names, missing=keep)
    if names is None:
        return read_features(source, columns=columns, missing=keep)
    if list(names) != [str(place + 1) for place in range(len(names))]:
        raise UsageError(
            f"{source} is a LETOR file, whose features are '1', '2', …; the model was fitted on named ones "
            f"({', '.join(list(names)[:4])}, …)"
        )
    return read_features(source, columns=columns, missing=keep, width=len(names))
