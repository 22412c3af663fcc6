"""A sign by which judgments are known again wherever they came from: the SHA-256 of their canonical columns."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.labels import Labels
from concordant.preferences import Preferences

__all__ = ["fingerprint"]


def fingerprint(prefs: Preferences) -> str:
    """Return the SHA-256 of preferences: equal ones have equal signs, whatever rows they were counted from.

    >>> one = Preferences.from_comparisons(["a", "b"], ["b", "c"])
    >>> other = Preferences.from_comparisons(["b", "a"], ["c", "b"])
    >>> fingerprint(one) == fingerprint(other), fingerprint(one) == fingerprint(one + other)
    (True, False)
    """
    sign = hashlib.sha256()

    def add(name: str, values: Any) -> None:
        array = np.ascontiguousarray(values)
        sign.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sign.update(array.data if array.size else b"")

    sign.update(f"{prefs.kind} {prefs.covariate_names!r}\n".encode())
    for name in ("queries", "items", "clusters"):
        labels = getattr(prefs, name)
        if labels is not None:
            for part, values in _label_columns(labels).items():
                add(f"{name} {part}", values)
    for name in ("start", "count", "winner", "loser", "tie", "weight", "covariates"):
        _add_some(add, name, getattr(prefs, name))
    for name in ("list_start", "list_item", "list_value", "cluster", "declared"):
        _add_some(add, name, getattr(prefs, name))
    return sign.hexdigest()


def _add_some(add: Any, name: str, values: Any) -> None:
    if values is not None:
        add(name, values)


def _label_columns(labels: Labels) -> dict[str, Any]:
    """Return labels as plain arrays: integers as they are, texts as their bytes and lengths."""
    if pa.types.is_integer(labels.values.type):
        return {"integers": labels.values.to_numpy()}
    texts = [text.encode() for text in labels.tolist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    return {"lengths": lengths, "bytes": np.frombuffer(b"".join(texts), np.uint8)}
