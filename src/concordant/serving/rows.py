"""Features that came with a request, as a matrix in the order of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import few
from concordant.serving.limits import Refused

__all__ = ["matrix_of"]

Floats = NDArray[np.float64]


def matrix_of(
    features: list[list[float | None]] | None,
    named: list[dict[str, float | None]] | None,
    names: Sequence[str] | None,
    width: int,
    *,
    missing: str,
) -> Floats:
    """Return the matrix, NaN where a value is null or absent.

    Errors (Refused, 422): names that the model does not know, values that are missing where ``missing`` is 'raise'.

    >>> matrix_of(None, [{"b": 2.0, "a": 1.0}], ["a", "b"], 2, missing="raise").tolist()
    [[1.0, 2.0]]
    """
    if features is not None:
        found = np.array(features, np.float64).reshape(len(features), width)  # None becomes NaN
    else:
        assert named is not None
        found = _by_name(named, names, width)
    if missing == "raise" and np.isnan(found).any():
        rows, columns = np.nonzero(np.isnan(found))
        called = names[columns[0]] if names is not None else str(columns[0] + 1)
        raise Refused(
            422,
            f"{len(rows):,} of {found.size:,} features are missing (first: {called!r} of row {rows[0] + 1:,}); this "
            "model was fitted without missing values and takes none",
        )
    return found


def _by_name(named: list[dict[str, float | None]], names: Sequence[str] | None, width: int) -> Floats:
    if names is None:
        raise Refused(422, "the features of this model have no names; send rows of numbers in 'features'")
    place = {name: column for column, name in enumerate(names)}
    found = np.full((len(named), width), np.nan)
    for row, values in enumerate(named):
        unknown = [name for name in values if name not in place]
        if unknown:
            raise Refused(
                422,
                f"named_features[{row}]: unknown feature {few([name[:60] for name in unknown], 4)}; the model was "
                f"fitted on {width:,}: {few(names, 12)}",
            )
        found[row, [place[name] for name in values]] = [_number(value) for value in values.values()]
    return found


def _number(value: Any) -> float:
    return np.nan if value is None else value
