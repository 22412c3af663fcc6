"""Columns of categories: codes of levels as a model was fitted to them, or a column of 0 and 1 for each level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, few
from concordant.learning.features.matrix import Features

Floats = NDArray[np.float64]


def coded(column: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return the codes of a dictionary-encoded Arrow column, NaN where nothing is there, and its levels as texts.

    >>> codes, levels = coded(pa.array(["red", None, "blue"]).dictionary_encode())
    >>> codes.tolist(), levels
    ([0.0, nan, 1.0], ('red', 'blue'))
    """
    whole = column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # of no rows
        return np.zeros(0), ()
    codes = whole.indices.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.float64), tuple(str(level) for level in whole.dictionary.to_pylist())


def coded_frame(X: Any) -> tuple[Floats, dict[str, tuple[str, ...]]] | None:
    """Return the matrix of a frame of pandas or polars and the levels of its categories; None where it has none."""
    kinds = getattr(X, "dtypes", None)
    if not hasattr(X, "columns") or kinds is None or not any(_is_category(kind) for kind in kinds):
        return None
    table = pa.table(X) if hasattr(X, "__arrow_c_stream__") else pa.Table.from_pandas(X, preserve_index=False)
    table = table.select(range(len(kinds)))  # an index of pandas would stand behind
    made, levels = np.empty((len(table), len(kinds))), {}
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_dictionary(column.type):
            made[:, place], levels[name] = coded(column)
            continue
        kind = column.type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"features: the column {name!r} holds {kind}, features are numbers or categories")
        made[:, place] = column.cast(pa.float64()).to_numpy()
    return made, levels


def _is_category(kind: Any) -> bool:
    return str(kind).startswith(("category", "Categorical", "Enum"))


def as_fitted(features: Features, known: Mapping[str, tuple[str, ...]], *, codes: bool, unknown: float) -> Features:
    """Return the features with categories as a model knows them.

    ``codes``: each column holds the place of its level among the known ones, ``unknown`` where it is none of them.
    Else it becomes a column for each level, named "column=level", 1 where the level is that, all 0 for others and where
    nothing is there. Errors (InputError): a column that is of categories here and was not, or was and is not.

    >>> made = Features.of([[0.0], [1.0]], ["x", "y"], names=["hue"])
    >>> made = replace(made, levels={"hue": ("blue", "red")})
    >>> shown = as_fitted(made, {"hue": ("red", "green")}, codes=False, unknown=-1.0)
    >>> shown.names, shown.X.tolist()
    (('hue=red', 'hue=green'), [[0.0, 0.0], [1.0, 0.0]])
    """
    given = features.levels
    wide = {name for name in known if not codes and all(f"{name}={level}" in features.names for level in known[name])}
    if strange := [name for name in given if name not in known]:
        raise InputError(
            f"the columns {few(strange)} are of categories here, and were numbers when the ranker was fitted"
        )
    if lacking := [name for name in known if name not in given and name not in wide and name in features.names]:
        raise InputError(
            f"the columns {few(lacking)} were of categories when the ranker was fitted, and are numbers here"
        )
    columns: list[Floats] = []
    names: list[str] = []
    for place, name in enumerate(features.names):
        column = np.asarray(features.X[:, place], np.float64)
        if name not in given:
            columns.append(column)
            names.append(name)
            continue
        at = {level: code for code, level in enumerate(known[name])}
        table = np.array([*(at.get(level, unknown) for level in given[name]), np.nan])
        new = table[np.where(np.isnan(column), len(table) - 1, column).astype(np.int64)]
        if codes:
            columns.append(new)
            names.append(name)
        else:
            columns += [(new == code).astype(np.float64) for code in range(len(known[name]))]
            names += [f"{name}={level}" for level in known[name]]
    if len(set(names)) < len(names):
        raise InputError(
            "features: a column is called as the level of a category, 'column=level'; give it another name"
        )
    levels = {name: known[name] for name in given} if codes else {}
    return replace(features, X=np.column_stack(columns), names=tuple(names), levels=levels)
