"""Labels of items, queries and clusters: a sorted set of texts or of integers, and the codes that stand for them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.preferences.counts import rows_alike
from concordant.preferences.ragged import Ragged

Codes = NDArray[np.int32]
_BLOCK = 1 << 22
ONE_QUERY = "all"


def crossed(columns: Sequence[Any]) -> Any:
    """Return the cells of several columns of labels, row by row: of one column its labels, of more JSON lists of them.

    >>> crossed([pa.array(["ann", "bob"]), pa.array([3, 4])]).to_pylist()
    ['["ann", 3]', '["bob", 4]']
    """
    if len(columns) == 1:
        return columns[0]
    parts = [column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column for column in columns]
    known = np.logical_and.reduce([part.is_valid().to_numpy(zero_copy_only=False) for part in parts])
    codes = [pc.fill_null(part.indices, 0).to_numpy(zero_copy_only=False)[known] for part in parts]
    first, kind = rows_alike(*codes)
    named = [part.dictionary.take(pa.array(code[first])).to_pylist() for part, code in zip(parts, codes, strict=True)]
    said = [json.dumps(cell, ensure_ascii=False) for cell in zip(*named, strict=True)]
    place = np.zeros(len(known), np.int32)
    place[known] = kind
    where = pa.array(place, mask=~known)
    return pa.DictionaryArray.from_arrays(where, pa.array(said, pa.large_string()))


INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
"""How an integer of up to 18 digits is written."""


class Labels:
    """An immutable sorted set of labels, all of them texts or all of them 64-bit integers.

    The code of a label is its place in the sorted order (texts by code point), so equal sets have equal codes however
    they came about.

    >>> labels, codes = Labels.encode(["b", "a", "b"])
    >>> labels.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """

    __slots__ = ("values",)

    values: pa.Array
    """The labels in order, an Arrow array of int64 or large_string."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values

    @classmethod
    def empty(cls) -> Labels:
        """No labels at all (neutral for ``union``)."""
        return cls(pa.array([], pa.large_string()))

    @classmethod
    def encode(cls, column: Any) -> tuple[Labels, Codes]:
        """Return the sorted labels of a column and the code of every row.

        ``column`` is an Arrow array (texts, integers or a dictionary of these, no nulls) or a list. Errors: a mixture
        of texts and integers, labels of another type, integers beyond 64 bits, nulls.
        """
        labels, (codes,) = cls.encode_all(column)
        return labels, codes

    @classmethod
    def encode_all(cls, *columns: Any) -> tuple[Labels, list[Codes]]:
        """Return the sorted labels of several columns together and the codes of each column's rows."""
        arrays = [as_label_array(column) for column in columns]
        filled = [array for array in arrays if len(array)]
        integers = {bool(pa.types.is_integer(array.type)) for array in filled}
        if len(integers) > 1:
            raise InputError("labels are integers in one column and texts in another; give all the same type")
        if True in integers:
            return _encode_integers([array.to_numpy(zero_copy_only=False) for array in arrays])
        parts = [_encode_texts(array) for array in arrays]
        labels = cls.empty()
        for part, _ in parts:
            labels = labels.union(part)[0]
        return labels, [labels.codes_of(part.values)[codes] for part, codes in parts]

    def codes_of(self, column: Any) -> Codes:
        """Return the code of every row of a column, -1 for labels that are not among these."""
        array = as_label_array(column)
        if len(self) == 0 or len(array) == 0:
            return np.full(len(array), -1, np.int32)
        if pa.types.is_integer(array.type) != pa.types.is_integer(self.values.type):
            return np.full(len(array), -1, np.int32)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        found = pc.index_in(array.cast(self.values.type), self.values)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int32)

    def union(self, other: Labels) -> tuple[Labels, Codes, Codes]:
        """Return the labels of both and, for either, the new codes of its old ones."""
        if len(self) and len(other) and self.values.type != other.values.type:
            kinds = {True: "integers", False: "texts"}
            mine, theirs = (kinds[pa.types.is_integer(x.values.type)] for x in (self, other))
            raise InputError(
                f"labels are {mine} on one side ({self[0]!r}) and {theirs} on the other ({other[0]!r}); "
                "give both the same type before merging"
            )
        if self.values.equals(other.values):
            same = np.arange(len(self), dtype=np.int32)
            return self, same, same
        if not len(other):
            return self, np.arange(len(self), dtype=np.int32), np.zeros(0, np.int32)
        if not len(self):
            return other, np.zeros(0, np.int32), np.arange(len(other), dtype=np.int32)
        merged, codes = Labels.encode(pa.concat_arrays([self.values, other.values]))
        return merged, codes[: len(self)], codes[len(self) :]

    def as_integers(self) -> tuple[Labels, Codes] | None:
        """Return texts that are integers, as these, and the new code of each old one; None where some are none.

        A text is one where it is how the integer is written: not 007, and not 1e3.

        >>> labels, codes = Labels.encode(["10", "9"])[0].as_integers()
        >>> labels.tolist(), codes.tolist(), Labels.encode(["9", "09"])[0].as_integers()
        ([9, 10], [1, 0], None)
        """
        if pa.types.is_integer(self.values.type) or not pc.all(pc.match_substring_regex(self.values, INTEGER)).as_py():
            return None
        return Labels.encode(self.values.cast(pa.int64()))

    def only(self, keep: NDArray[np.bool_]) -> tuple[Labels, Codes]:
        """Return the labels that a mask keeps, and for each old code the new one where it is kept."""
        return Labels(self.values.filter(pa.array(keep))), np.cumsum(keep, dtype=np.int32) - np.int32(1)

    def take(self, codes: NDArray[Any]) -> pa.Array:
        """Return the labels of these codes as an Arrow array."""
        return self.values.take(pa.array(codes))

    def tolist(self) -> list[Any]:
        """Return the labels as a Python list."""
        return list(self.values.to_pylist())

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, code: int) -> Any:
        return self.values[int(code)].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return (len(self) == 0 and len(other) == 0) or self.values.equals(other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(label) for label in self.values[:4].to_pylist())
        return f"Labels([{shown}{', …' if len(self) > 4 else ''}], {len(self)})"


def as_label_array(column: Any) -> pa.Array:
    """Return a column of labels as one Arrow array of integers, texts or a dictionary of texts.

    Lists, NumPy arrays, pandas and polars series and Arrow arrays are accepted, without a copy where Arrow allows.
    """
    array = _to_arrow(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):  # pyarrow keeps an empty or an overlong column chunked
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if array.null_count:
        raise InputError(f"{array.null_count:,} of {len(array):,} labels are missing; a label is a text or an integer")
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_dictionary(array.type) and (pa.types.is_integer(kind) or not _is_text(kind)):
        array = array.dictionary_decode()
    if pa.types.is_null(kind) and len(array) == 0:
        return pa.array([], pa.large_string())
    if pa.types.is_integer(kind):
        if not pa.types.is_uint64(kind):
            return array
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(
                "integer labels must fit in 64 bits with sign (up to 9223372036854775807); turn larger ones into texts"
            ) from None
    if not _is_text(kind):
        raise InputError(f"labels must be texts or integers, not {kind}")
    return array


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _to_arrow(column: Any) -> Any:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if getattr(column, "ndim", 1) != 1 or isinstance(column, str | bytes | set | frozenset | dict):
        raise InputError(f"labels are one column of texts or integers, not {_what(column)}")
    if hasattr(column, "__arrow_c_stream__"):
        return pa.chunked_array(column)
    if hasattr(column, "__arrow_c_array__"):
        return pa.array(column)
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        column = column.astype(object)
    if not isinstance(column, np.ndarray) and hasattr(column, "to_numpy"):
        column = column.to_numpy()
    try:
        return pa.array(column)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        if not isinstance(column, Iterable) or getattr(column, "ndim", 1) != 1:
            raise InputError(f"labels are one column of texts or integers, not {_what(column)}") from None
        kinds = sorted({type(value).__name__ for value in column})
        raise InputError(f"labels must be all texts or all 64-bit integers; found {', '.join(kinds)}") from None


def _what(column: Any) -> str:
    shape = getattr(column, "shape", None)
    return f"{type(column).__name__}" + (f" of shape {shape}" if isinstance(shape, tuple) else "")


def _encode_integers(columns: list[NDArray[np.integer[Any]]]) -> tuple[Labels, list[Codes]]:
    filled = [values for values in columns if len(values)]
    low, high = min(int(v.min()) for v in filled), max(int(v.max()) for v in filled)
    rows = sum(len(values) for values in filled)
    if high - low >= max(4 * rows, 1 << 20):
        labels, codes = np.unique(np.concatenate(columns), return_inverse=True)
        bounds = np.cumsum([len(values) for values in columns])[:-1]
        return Labels(pa.array(labels, pa.int64())), np.split(codes.astype(np.int32), bounds)
    # a table of what occurs is cheaper than sorting; block by block, so that no wide copy of a long column is made
    present = np.zeros(high - low + 1, bool)
    for values in columns:
        for begin in range(0, len(values), _BLOCK):
            present[values[begin : begin + _BLOCK].astype(np.int64) - low] = True
    labels = np.flatnonzero(present)
    if low == 0 and present.all():  # the labels are their own codes
        return Labels(pa.array(labels, pa.int64())), [values.astype(np.int32, copy=False) for values in columns]
    lookup = np.zeros(len(present), np.int32)
    lookup[labels] = np.arange(len(labels), dtype=np.int32)
    codes_of = [np.empty(len(values), np.int32) for values in columns]
    for values, out in zip(columns, codes_of, strict=True):
        for begin in range(0, len(values), _BLOCK):
            out[begin : begin + _BLOCK] = lookup[values[begin : begin + _BLOCK].astype(np.int64) - low]
    return Labels(pa.array(labels + low, pa.int64())), codes_of


def _encode_texts(array: pa.Array) -> tuple[Labels, Codes]:
    if len(array) == 0:
        return Labels.empty(), np.zeros(0, np.int32)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    # The dictionary may hold labels that no row uses, or one label twice: count what the rows use.
    used = pc.unique(array.indices)
    values = array.dictionary.take(used).cast(pa.large_string())
    ordered = pc.unique(values).take(pc.sort_indices(pc.unique(values)))
    lookup = np.zeros(len(array.dictionary), np.int32)
    lookup[used.to_numpy()] = pc.index_in(values, ordered).to_numpy(zero_copy_only=False)
    return Labels(ordered), lookup[array.indices.to_numpy(zero_copy_only=False)]


def encode_query(query: Any, rows: int) -> tuple[Labels, Codes]:
    """Return labels and codes of a column of queries; without one all rows are of one query."""
    if query is None:
        labels = Labels(pa.array([ONE_QUERY], pa.large_string())) if rows else Labels.empty()
        return labels, np.zeros(rows, np.int32)
    return Labels.encode(query)


# -- labels that look like others --------------------------------------------------------------------------------------
INVISIBLE = (
    r"[\p{Cf}\x{00}-\x{08}\x{0e}-\x{1f}\x{7f}-\x{84}\x{86}-\x{9f}\x{034f}\x{115f}\x{1160}\x{180b}-\x{180f}"
    r"\x{fe00}-\x{fe0f}]"
)
SPACE = r"[\s\x{0b}\x{85}\p{Z}]+"
WRITTEN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?$"
NUMBER = re.compile(WRITTEN, re.IGNORECASE)
WAYS: dict[str, Callable[[str], str]] = {
    "white space": lambda text: re.sub(r"\s+", " ", text).strip(),
    "case": lambda text: text.lower(),
    "Unicode form": lambda text: unicodedata.normalize("NFKC", text),
    "invisible characters": lambda text: "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc", "Mn")),
    "how a number is written": lambda text: str(plain_form(pa.array([text]))[0]) if NUMBER.match(text) else text,
}
"""In what two labels may differ that look alike, and what makes them equal then."""
SHOWN = 3
LONG = 200
"""Characters of a label that a note shows."""


def plain_form(texts: pa.Array) -> pa.Array:
    """Return what is left of texts without case, outer and repeated white space, Unicode forms, invisible characters
    and ways to write a number: texts that look alike have one plain form.

    >>> [ascii(text) for text in plain_form(pa.array([" b", "B\\u200b", "e\\u0301", "\\xe9", "01.50"])).to_pylist()]
    ["'b'", "'b'", "'e\\\\u0301'", "'e\\\\u0301'", "'1.5'"]
    """
    form = pc.ascii_lower(pc.ascii_trim_whitespace(texts.cast(pa.large_string())))
    wide = pc.invert(pc.string_is_ascii(form))
    if pc.any(wide).as_py():
        some = pc.utf8_normalize(form.filter(wide), form="NFKD")  # Arrow 18 composes nothing
        some = pc.replace_substring_regex(pc.utf8_lower(some), INVISIBLE, "")
        form = pc.replace_with_mask(form, wide, pc.replace_substring_regex(some, SPACE, " "))
    letters = np.frombuffer(form.buffers()[2] or b"", np.uint8)
    odd = pc.match_substring(form, "  ")
    if ((letters < ord(" ")) | (letters == 0x7F)).any():
        odd = pc.or_(odd, pc.match_substring_regex(form, r"[\x00-\x1f\x7f]"))
    if pc.any(odd).as_py():
        some = pc.replace_substring_regex(pc.replace_substring_regex(form.filter(odd), SPACE, " "), INVISIBLE, "")
        form = pc.replace_with_mask(form, odd, some)
    form = pc.utf8_trim(form, " ")
    number = pc.match_substring_regex(form, WRITTEN)
    return pc.replace_with_mask(form, number, _plain_numbers(form.filter(number))) if pc.any(number).as_py() else form


def _plain_numbers(texts: pa.Array) -> pa.Array:
    """Return numbers in decimal notation without signs and zeros that say nothing."""
    power = pc.match_substring(texts, "e")
    if pc.any(power).as_py():
        plain = [format(Decimal(text), "f") for text in texts.filter(power).to_pylist()]
        texts = pc.replace_with_mask(texts, power, pa.array(plain, pa.large_string()))
    ended = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    texts = pc.utf8_ltrim(pc.if_else(pc.match_substring(texts, "."), ended, texts), "+")
    begun = pc.match_substring_regex(texts, r"^-?(0[0-9]|\.)")
    if pc.any(begun).as_py():
        some = pc.replace_substring_regex(texts.filter(begun), r"^(-?)0+([0-9])", r"\1\2")
        texts = pc.replace_with_mask(texts, begun, pc.replace_substring_regex(some, r"^(-?)\.", r"\10."))
    return pc.if_else(pc.is_in(texts, pa.array(["", "-", "-0"], texts.type)), "0", texts)


def look_alikes(labels: Labels, what: str) -> tuple[str, ...]:
    """Say which labels differ from others only in what is easily overlooked; ``what`` they are: items, queries, …

    >>> look_alikes(Labels.encode(["a", " b", "b", "c"])[0], "items")
    ("2 items differ from others only in white space and are kept apart: ' b' and 'b'",)
    """
    if not len(labels) or pa.types.is_integer(labels.values.type):
        return ()
    form = plain_form(labels.values)
    if form.equals(labels.values):  # the labels are distinct, and so are their forms
        return ()
    coded = form.dictionary_encode()
    code = coded.indices.to_numpy()
    often = np.bincount(code)
    said = []
    blank = np.flatnonzero(code == pc.index(coded.dictionary, "").as_py())
    if len(blank):
        shown = ", ".join(ascii(labels[place]) for place in blank[:SHOWN])
        are = f"{len(blank):,} {what} are" if len(blank) > 1 else f"one of the {what} is"
        said.append(f"{are} nothing but white space or invisible characters: {shown}")
    alike = np.flatnonzero(often[code] > 1)
    if len(alike):
        sorter = alike[np.argsort(code[alike], kind="stable")]
        groups = [sorter[part] for part in Ragged.runs(code[sorter]).slices]
        groups.sort(key=lambda group: int(group[0]))
        named = [[labels[place] for place in group[:SHOWN]] for group in groups[:SHOWN]]
        ways = list(dict.fromkeys(way for group in groups[:100] for way in _ways(labels[group[0]], labels[group[1]])))
        shown = "; ".join(" and ".join(_shown(label) for label in group) for group in named)
        more = f" and {len(groups) - SHOWN:,} more such groups" if len(groups) > SHOWN else ""
        said.append(
            f"{len(alike):,} {what} differ from others only in {', '.join(ways)} and are kept apart: {shown}{more}"
        )
    return tuple(said)


def look_alike(label: Any, known: Labels) -> str:
    """Say which of the known labels a label that is not among them looks like; nothing where none does.

    >>> look_alike("b", Labels.encode(["a", " b"])[0])
    "; 'b' is there as ' b', which differs in white space"
    """
    if not len(known) or isinstance(label, int) != bool(pa.types.is_integer(known.values.type)):
        return ""
    if isinstance(label, int):
        return ""
    form = plain_form(pa.array([label], pa.large_string()))[0]
    place = pc.index(plain_form(known.values), form).as_py()
    if place < 0:
        return ""
    if (other := known[place]) == label:
        return ""
    return f"; {_shown(label)} is there as {_shown(other)}, which differs in {', '.join(_ways(label, other))}"


def _shown(label: str) -> str:
    label = label if len(label) <= LONG else f"{label[: LONG - 1]}…"
    return repr(label) if label.isprintable() and unicodedata.is_normalized("NFC", label) else ascii(label)


def _ways(one: str, other: str) -> list[str]:
    """In what two labels differ that look alike: in one way, or all in which they do."""
    alone = [way for way, plain in WAYS.items() if plain(one) == plain(other)]
    return alone[:1] or [way for way, plain in WAYS.items() if plain(one) != one or plain(other) != other]
