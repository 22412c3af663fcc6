"""Columns of counts as engines hand them over, batch by batch: integers in 32 bits where they fit, texts coded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from concordant.preferences.values import is_text


def narrow(array: pa.Array) -> pa.Array:
    """Return a part of a column in less room: texts as a dictionary, 64-bit integers as int32 where they fit."""
    if is_text(array.type):
        return array.cast(pa.large_string()).dictionary_encode()
    if pa.types.is_integer(array.type) and array.type.bit_width == 64 and len(array):
        ends = pc.min_max(array)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is None or (low >= -(1 << 31) and high < 1 << 31):
            return array.cast(pa.int32())
    return array


def whole(parts: list[pa.Array], kind: pa.DataType) -> Any:
    """Join the narrowed parts of a column of a type, taking them out of the list as it goes on."""
    if not parts:
        return pa.array([], pa.large_string() if is_text(kind) else kind)
    types = {part.type for part in parts}
    if len(types) > 1:
        widest = max(types, key=lambda each: each.bit_width)
        parts[:] = [part.cast(widest) for part in parts]
    column = pa.chunked_array(parts)
    parts.clear()
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
