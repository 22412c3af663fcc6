"""Numbers and labels as the data of a report holds them: what JSON knows, and nothing it does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.labels import Labels

__all__ = ["fair", "plain", "short", "texts", "thinned"]

LONGEST = 2_000
"""Letters of one line of words, or of one label, that a report shows."""
LETTERS = 1_000_000
"""Letters of all labels beyond which labels are cut more."""
CUT = 200
"""Letters of a label where there are too many in all."""


def plain(value: Any) -> Any:
    """Return nested data as JSON holds it: infinities are the texts "inf" and "-inf", NaN is null, whole numbers whole.

    >>> plain({"x": np.array([1.0, np.inf, np.nan]), "n": np.int64(3), "label": "1"})
    {'x': [1, 'inf', None], 'n': 3, 'label': '1'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value


def texts(labels: Labels, codes: NDArray[np.integer[Any]]) -> tuple[list[str], int]:
    """Return the labels of these codes as texts, and how many of them had to be cut."""
    found = [str(label) for label in labels.take(codes).to_pylist()]
    most = CUT if sum(map(len, found)) > LETTERS else LONGEST
    return [short(text, most) for text in found], sum(len(text) > most for text in found)


def short(text: str, most: int = LONGEST) -> str:
    """Cut a text that is too long to be read.

    >>> short("abcdef", 4), short("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fair(sizes: Iterable[int], budget: int) -> list[int]:
    """Share a budget: who needs little gets it all, the others the same each.

    >>> fair([5, 100, 50], 60)
    [5, 28, 27]
    """
    wanted = list(sizes)
    given = [0] * len(wanted)
    left = len(wanted)
    for place in sorted(range(len(wanted)), key=lambda place: (wanted[place], -place)):
        given[place] = min(wanted[place], budget // left)
        budget -= given[place]
        left -= 1
    return given


def thinned(steps: int, most: int, kept: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return which of so many steps are shown: ``kept`` always, others as evenly as ``most`` allows.

    >>> thinned(10, 4, np.array([0, 2])).tolist()
    [0, 2, 3, 6, 9]
    """
    even = np.linspace(0, steps - 1, min(most, steps)).round().astype(np.int64)
    return np.unique(np.concatenate((even, np.asarray(kept, np.int64))))
