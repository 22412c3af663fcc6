"""Items by their labels: which row of the loaded features a client means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import few
from concordant.features.matrix import Features
from concordant.labels import Labels
from concordant.serving.limits import Refused

__all__ = ["LabelCodes", "RowsByLabel", "refuse_twice"]

Ints = NDArray[np.int64]


class LabelCodes:
    """Codes of labels, a few at a time: a dictionary for texts, a search among sorted integers.

    A label is matched as it is written: 1 and "1" are the same one, since loaded labels are all texts or all integers.

    >>> codes = LabelCodes(Labels.encode(["b", "a", "7"])[0])
    >>> codes.of(["a", 7, "x"]).tolist()
    [1, 0, -1]
    """

    def __init__(self, labels: Labels) -> None:
        self.integer = bool(pa.types.is_integer(labels.values.type))
        self.sorted = labels.values.to_numpy(zero_copy_only=False) if self.integer else np.zeros(0, np.int64)
        self.code = {} if self.integer else {label: code for code, label in enumerate(labels)}

    def of(self, sought: list[Any]) -> Ints:
        """Return the code of each label, -1 for one that is not there."""
        if not self.integer:
            get = self.code.get
            found = np.array([get(label, -1) for label in sought], np.int64)
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = get(str(sought[place]), -1)
            return found
        numbers = np.array([_integer(label) for label in sought], np.int64)
        at = np.minimum(np.searchsorted(self.sorted, numbers), len(self.sorted) - 1)
        there = self.sorted[at] == numbers
        for place in np.flatnonzero(there).tolist():
            there[place] = str(sought[place]) == str(numbers[place])
        return np.where(there, at, -1)


def _integer(label: Any) -> int:
    """The integer that a text is written as; 0 for any other text, which its spelling tells apart."""
    if isinstance(label, int):
        return label
    try:
        number = int(label) if len(label) <= 20 else 0
    except ValueError:
        return 0
    return number if -(2**63) <= number < 2**63 else 0


class RowsByLabel:
    """The row of each item of each query of loaded features.

    >>> features = Features.of([[1.0], [2.0]], item=["b", "a"], query=["q", "q"])
    >>> RowsByLabel(features).rows("q", ["a", "b"]).tolist()
    [1, 0]
    """

    def __init__(self, features: Features) -> None:
        self.items = LabelCodes(features.items)
        self.queries = None if features.query is None else LabelCodes(features.queries)
        self.width = len(features.items)
        key = features.item.astype(np.int64)
        if features.query is not None:
            key += features.query.astype(np.int64) * self.width
        self.row = np.argsort(key, kind="stable")
        self.key = key[self.row]

    def rows(self, query: Any, items: list[Any]) -> Ints:
        """Return the row of each item. Errors (Refused): 404 for a query or items that are not there; 422 for twice."""
        codes = self.items.of(items)
        refuse_twice(codes, items)
        if self.queries is None:
            key, whose = codes, ""
        else:
            code = int(self.queries.of([query])[0])
            if code < 0:
                raise Refused(404, f"query {shown(query)} is not among the loaded features")
            key, whose = codes + code * self.width, f" of query {shown(query)}"
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        absent = (self.key[at] != key) | (codes < 0)
        if absent.any():
            names = [items[place] for place in np.flatnonzero(absent).tolist()]
            raise Refused(
                404,
                f"{len(names):,} of {len(items):,} items{whose} are not among the loaded features: "
                f"{few([_cut(name) for name in names], 4)}",
            )
        return self.row[at]


def refuse_twice(codes: Ints, items: list[Any]) -> None:
    """Raise Refused where two items have one code, those that are not there apart."""
    known = codes[codes >= 0]
    if len(set(known.tolist())) == len(known):
        return
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    twice = [items[place] for place in np.flatnonzero(~first & (codes >= 0)).tolist()]
    raise Refused(422, f"items: {len(twice):,} are there more than once: {few([_cut(each) for each in twice], 4)}")


def shown(label: Any) -> str:
    """A label as it is shown in an error: its first characters."""
    return repr(_cut(label))


def _cut(label: Any) -> Any:
    return label[:60] + "…" if isinstance(label, str) and len(label) > 60 else label
