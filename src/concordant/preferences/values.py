"""Rows that cannot be understood: the reasons, how many rows each one holds, and how they are said.

What a raw column means: labels, numbers or flags, read once from its distinct values.

Every reader here returns the values and, where something is wrong, a code per row; it drops nothing and never guesses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.preferences.counts import MOST
from concordant.preferences.messages import labelled, message_label
from concordant.preferences.notes import Note
from concordant.record import refused


@dataclass(frozen=True)
class Reason:
    """Why a row is refused: ``says`` follows “3 of 1,204 rows”, ``hint`` says what is allowed."""

    says: str
    role: str
    hint: str = ""


@dataclass(frozen=True)
class Reject:
    """All rows (or lists) refused for one reason: how many of how many, and some of them as (place, value)."""

    reason: Reason
    number: int
    total: int
    samples: tuple[tuple[str, object], ...] = ()
    unit: str = "rows"

    def __str__(self) -> str:
        shown = "; ".join(place if value is None else f"{place}: {_short(value)}" for place, value in self.samples)
        counts = f"{self.number:,} of {self.total:,} {self.unit}"
        return f"{counts} {self.reason.says}{f' ({shown})' if shown else ''}."


@dataclass
class Verdict:
    """Which of n tuples are refused, each for the first reason that was found."""

    size: int
    reasons: list[Reason] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    """Which of all questions each reason answers: their order, whatever part of the tuples is looked at."""
    asked: int = 0
    code: NDArray[np.int8] | None = None
    """0 for a tuple that is fine, else 1 + the place of its reason; None when all are fine."""

    def refuse(self, mask: NDArray[np.bool_], reason: Reason) -> None:
        """Refuse the tuples of a mask, unless they are refused already."""
        self.asked += 1
        if not mask.any():
            return
        if self.code is None:
            self.code = np.zeros(self.size, np.int8)
        new = mask & (self.code == 0)
        if new.any():
            if reason not in self.reasons:
                self.reasons.append(reason)
                self.turns.append(self.asked)
            self.code[new] = 1 + self.reasons.index(reason)

    @property
    def fine(self) -> NDArray[np.bool_] | None:
        """Mask of the tuples that stay; None when all do."""
        return None if self.code is None else self.code == 0

    def rows(self, rows: NDArray[np.integer]) -> list[tuple[Reason, int]]:
        """Return each reason with the number of rows it holds, given the rows of each tuple."""
        return [(reason, int(rows[at].sum(dtype=np.int64))) for reason, at in self.refused]

    @property
    def refused(self) -> list[tuple[Reason, NDArray[np.int64]]]:
        """Each reason, and the tuples that are refused for it."""
        if self.code is None:
            return []
        return [(reason, np.flatnonzero(self.code == 1 + place)) for place, reason in enumerate(self.reasons)]

    def not_yet(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which tuples of a mask are not refused."""
        return mask if self.code is None else mask & (self.code == 0)


def say(name: str, rejects: Sequence[Reject]) -> Note:
    """Return one line about all that was refused, and what is allowed (a hint that several share once).

    >>> unknown = Reason("have an unknown outcome", "outcome", "Allowed: left, right, tie.")
    >>> say("votes.csv", [Reject(unknown, 3, 1204, (("line 17", "lefft"),))])
    "votes.csv: 3 of 1,204 rows have an unknown outcome (line 17: 'lefft'). Allowed: left, right, tie."
    """
    refused(name, rejects)
    parts: list[str] = []
    for place, reject in enumerate(rejects):
        parts.append(str(reject))
        later = [other.reason.hint for other in rejects[place + 1 :]]
        if reject.reason.hint and reject.reason.hint not in later:
            parts.append(reject.reason.hint)
    text = "{name}: " + " ".join(f"{{part{place}}}" for place in range(len(parts)))
    return Note("refused", text, name=name, **{f"part{place}": part for place, part in enumerate(parts)})


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…{text[-1]}"


CLEAN, MISSING, WRONG, INFINITE, NULL_BYTE, NO_LABEL, FRACTION, INEXACT, BEYOND = range(9)
TEXT = pa.dictionary(pa.int32(), pa.large_string())
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DIGITS = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)
EXACT = 1 << 53
"""From here on float64 has no room for every integer."""
CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
INSTANT = re.compile(rf"\s*[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{CLOCK})?\s*")
RUN_TOGETHER = re.compile(r"\s*(1[5-9]|2[0-9])[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])\s*")
DAY = 86_400.0
INFINITIES = frozenset({"nan", "inf", "infinity", "+inf", "-inf", "+infinity", "-infinity", "-nan", "+nan"})
Codes = NDArray[np.int8]


@dataclass
class Read:
    """Values of a column and the code of every row (None: every row is clean)."""

    values: Any
    fault: Codes | None = None


def flat(column: Any) -> pa.Array:
    """Return a column as one array; texts as a dictionary without repeats, dictionaries of others decoded."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if is_text(kind):
        if not pa.types.is_dictionary(column.type) and len(chunks) > 1:
            return _fresh(_joined(column.cast(pa.large_string()).dictionary_encode().chunks))
        if len(chunks) > 1 and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks):
            chunks = [_joined(chunks)]
        chunks = [_text_dictionary(chunk) for chunk in chunks]
        if len(chunks) > 1:
            chunks = pa.chunked_array(chunks, TEXT).unify_dictionaries().chunks
    elif pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, TEXT if is_text(kind) else kind)


def _text_dictionary(array: pa.Array) -> pa.DictionaryArray:
    """Return texts as a dictionary of large_string with int32 codes, no text twice and none missing."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if not pa.types.is_dictionary(array.type):
        return _fresh(array.dictionary_encode())
    if array.type == TEXT and not array.dictionary.null_count and not repeats(array.dictionary):
        return array
    texts = array.dictionary.cast(pa.large_string())
    codes = array.indices.cast(pa.int32())
    if texts.null_count or repeats(texts):
        return texts.take(codes).dictionary_encode()
    return pa.DictionaryArray.from_arrays(codes, texts)


def _fresh(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Texts that were encoded just now, so that none stands twice in the dictionary."""
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))


def _joined(chunks: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    """One array of chunks that have one dictionary."""
    codes = pa.concat_arrays([chunk.indices for chunk in chunks])
    return pa.DictionaryArray.from_arrays(codes, chunks[0].dictionary)


def repeats(dictionary: pa.Array) -> bool:
    """Whether a dictionary holds one value twice."""
    return len(pc.unique(dictionary)) < len(dictionary)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def labels(column: Any, role: str, *, as_json: bool = False) -> Read:
    """Read labels: integers as int64 or narrower, texts as a dictionary; missing ones are marked, not kept.

    Dates, instants and decimals become texts (``as_written``).

    Errors (InputError) that no row can be blamed for: another type, a mixture of texts and integers, integers beyond
    64 bits with sign.
    """
    array = flat(labelled(column))
    if as_json:
        return _json_labels(array, role)
    array = as_written(array, role)
    kind = array.type
    if pa.types.is_null(kind):
        return Read(pa.nulls(len(array), TEXT), np.full(len(array), MISSING, np.int8))
    if pa.types.is_integer(kind):
        return Read(_signed(array, role), _missing(array))
    if not pa.types.is_dictionary(kind):
        what = {"double": "real numbers", "float": "real numbers", "bool": "true/false"}.get(str(kind), str(kind))
        hint = "; a column of integers with gaps becomes real in pandas: use dtype 'Int64'" if "real" in what else ""
        raise InputError(f"the column of {role} holds {what}, labels are texts or integers{hint}")
    fault = _missing(array)
    try:
        array.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f"the column of {role} holds texts with invalid encoding (not UTF-8)") from None
    broken = pc.match_substring(array.dictionary, "\0").to_numpy(zero_copy_only=False)
    if broken.any():
        fault = np.zeros(len(array), np.int8) if fault is None else fault
        present = fault == CLEAN
        fault[present] = np.where(broken[array.indices.filter(pa.array(present)).to_numpy()], NULL_BYTE, CLEAN)
    return Read(array, fault)


def as_written(array: pa.Array, role: str) -> pa.Array:
    """Return dates and instants as texts in ISO 8601, decimals with all their digits; other values as they are.

    An instant that has a time zone is written in UTC, with a Z; what is finer than a microsecond is left out.

    >>> as_written(pa.array([86_400_000, None], pa.timestamp("ms", "Europe/Berlin")), "query").to_pylist()
    ['1970-01-02T00:00:00Z', None]
    """
    kind = array.type
    timed = pa.types.is_timestamp(kind)
    if not (timed or pa.types.is_date(kind) or pa.types.is_decimal(kind)):
        return array
    array = array.cast(pa.timestamp("us", kind.tz and "UTC"), safe=False) if timed else array
    coded = array.dictionary_encode()
    try:
        values = coded.dictionary.to_pylist()
    except (ValueError, OverflowError):
        raise InputError(f"the column of {role} holds {kind} beyond the years 1 to 9999") from None
    if timed:
        words = [value.replace(tzinfo=None).isoformat() + "Z" * bool(kind.tz) for value in values]
    else:
        words = [format(value, "f") if pa.types.is_decimal(kind) else value.isoformat() for value in values]
    return flat(pa.array(words, pa.large_string()).take(coded.indices))


def numbers(column: Any, *, as_json: bool = False) -> Read:
    """Read real numbers as float64; texts are parsed in plain decimal notation.

    Codes: MISSING, WRONG (not a number) and INFINITE (NaN, infinities, beyond the range of float64).
    """
    array = _json_texts(flat(column)) if as_json else flat(column)
    kind = array.type
    if pa.types.is_null(kind):
        return Read(np.zeros(len(array)), np.full(len(array), MISSING, np.int8))
    if pa.types.is_dictionary(kind):
        parsed, wrong = _parse(array.dictionary)
        parsed, wrong = np.append(parsed, 0.0), np.append(wrong, np.int8(MISSING))
        place = pc.fill_null(array.indices, len(array.dictionary)).to_numpy(zero_copy_only=False)
        return Read(parsed[place], _some(wrong[place]))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        fault = _missing(array)
        values = pc.fill_null(array.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        if not finite.all():
            fault = np.zeros(len(array), np.int8) if fault is None else fault
            fault[~finite] = INFINITE
            values = np.where(finite, values, 0.0)
        return Read(values, fault)
    return Read(np.zeros(len(array)), np.full(len(array), WRONG, np.int8))


def instants(column: Any, *, as_json: bool = False) -> tuple[Read, bool]:
    """Read times: dates and instants as days since 1970 (UTC where no offset is given), or numbers; and which it is.

    Texts are dates where one of them is, or where all that are written as numbers are dates run together (20260331,
    which is refused: their differences are no days). Codes as of ``numbers``.
    """
    array = texts(column, as_json=True) if as_json else flat(column)
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        zone = array.type.tz if pa.types.is_timestamp(array.type) else None
        micro = pc.fill_null(array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()), 0)
        return Read(micro.to_numpy(zero_copy_only=False) / (1e6 * DAY), _missing(array)), True
    if not pa.types.is_dictionary(array.type):
        read = numbers(array)
        if not pa.types.is_integer(array.type) or len(array) == array.null_count:
            return read, False
        run = pc.match_substring_regex(array.cast(pa.string()), f"^(?:{RUN_TOGETHER.pattern})$")
        return (Read(read.values, np.full(len(array), WRONG, np.int8)), True) if pc.all(run).as_py() else (read, False)
    words = array.dictionary.to_pylist()
    days = [instant(word) for word in words]
    together = bool(words) and all(RUN_TOGETHER.fullmatch(word) for word in words)
    if not together and all(day is None for day in days):
        return numbers(array), False
    values = np.array([0.0 if day is None else day for day in [*days, None]])
    codes = np.array([WRONG if day is None else CLEAN for day in days] + [MISSING], np.int8)
    place = pc.fill_null(array.indices, len(words)).to_numpy(zero_copy_only=False)
    return Read(values[place], _some(codes[place])), True


def instant(text: str) -> float | None:
    """Return the days since 1970 of a date or instant in ISO 8601; None where the text is none.

    >>> instant("1970-01-02"), instant("1970-01-01T12:00Z"), instant("1.1.1970")
    (1.0, 0.5, None)
    """
    if not INSTANT.fullmatch(text):
        return None
    try:
        found = datetime.fromisoformat(text.strip().replace(",", "."))
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    since = found - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days + (since.seconds + since.microseconds / 1e6) / DAY


def integers(column: Any, *, as_json: bool = False) -> Read:
    """Read integers exactly, as int64; 3.0 and 3e0 are 3.

    Codes: MISSING, WRONG and INFINITE as for numbers, FRACTION (not whole), BEYOND (more than 64 bits with a sign) and
    INEXACT (a real number of 2^53 or more, which may stand for its neighbours).
    """
    array = _json_texts(flat(column)) if as_json else flat(column)
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.dictionary_encode()
        coded = [_of_decimal(value) for value in array.dictionary.to_pylist()]
    elif pa.types.is_dictionary(kind):
        read, words = numbers(array.dictionary), array.dictionary
        fault = np.zeros(len(words), np.int8) if read.fault is None else read.fault
        coded = [(int(value), CLEAN) for value in np.where(abs(read.values) < EXACT, read.values, 0)]
        digits = pc.match_substring_regex(words, f"^{DIGITS.pattern}$").to_numpy(zero_copy_only=False)
        for place in np.flatnonzero(~digits | (abs(read.values) >= EXACT)):
            word = words[int(place)].as_py()
            coded[place] = (0, int(fault[place])) if fault[place] else _of_text(word, float(read.values[place]))
    elif pa.types.is_integer(kind):
        exact = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        beyond = exact > np.uint64(MOST) if pa.types.is_uint64(kind) else np.zeros(len(exact), bool)
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(len(exact), bool)
        codes = np.where(missing, MISSING, np.where(beyond, BEYOND, CLEAN)).astype(np.int8)
        return Read(np.where(beyond, 0, exact).astype(np.int64), _some(codes))
    else:
        read = numbers(array)
        codes = np.zeros(len(array), np.int8) if read.fault is None else read.fault.copy()
        codes[(codes == CLEAN) & (read.values != np.floor(read.values))] = FRACTION
        codes[(codes == CLEAN) & (abs(read.values) >= EXACT)] = INEXACT
        return Read(np.where(codes == CLEAN, read.values, 0).astype(np.int64), _some(codes))
    values, codes = (np.array(column) for column in zip(*coded, (0, MISSING), strict=True))
    place = pc.fill_null(array.indices, len(coded)).to_numpy(zero_copy_only=False)
    return Read(values.astype(np.int64)[place], _some(codes.astype(np.int8)[place]))


def _of_decimal(value: Decimal) -> tuple[int, int]:
    """Return the integer that an exact number is, or 0 and what is wrong with it."""
    if not value.is_finite():
        return 0, INFINITE
    if value != value.to_integral_value():
        return 0, FRACTION
    return (int(value), CLEAN) if abs(value) <= MOST else (0, BEYOND)


def _of_text(word: str, about: float) -> tuple[int, int]:
    """Return the integer that a text is, or 0 and what is wrong with it; ``about`` is the number as float64."""
    if DIGITS.fullmatch(word):
        return _of_decimal(Decimal(word.strip()))
    if abs(about) >= EXACT:
        return 0, INEXACT
    return _of_decimal(Decimal(word.strip()))


def flags(column: Any, *, as_json: bool = False) -> Read:
    """Read 0/1 or true/false as a boolean array; codes MISSING and WRONG."""
    array = _json_texts(flat(column)) if as_json else flat(column)
    kind = array.type
    if pa.types.is_boolean(kind):
        return Read(pc.fill_null(array, False).to_numpy(zero_copy_only=False), _missing(array))
    if pa.types.is_dictionary(kind):
        words = [word.strip().lower() for word in array.dictionary.to_pylist()]
        true = np.array([word in ("1", "true", "1.0") for word in words] + [False])
        known = np.array([word in ("0", "1", "true", "false", "0.0", "1.0") for word in words] + [True])
        place = pc.fill_null(array.indices, len(words)).to_numpy(zero_copy_only=False)
        fault = np.where(known[place], CLEAN, WRONG).astype(np.int8)
        fault[place == len(words)] = MISSING
        return Read(true[place], _some(fault))
    read = numbers(array)
    fault = np.zeros(len(array), np.int8) if read.fault is None else read.fault
    fault[(fault == INFINITE) | ((fault == CLEAN) & (read.values != 0) & (read.values != 1))] = WRONG
    return Read(read.values == 1, _some(fault))


def texts(column: Any, *, as_json: bool = False) -> pa.Array:
    """Read whatever a column holds as a dictionary of texts (integers in decimal notation), missing values as nulls."""
    array = _json_texts(flat(column)) if as_json else flat(column)
    if pa.types.is_dictionary(array.type):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), TEXT)
    try:
        return flat(array.cast(pa.large_string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"a column of {array.type} cannot be read as texts") from None


def _signed(array: pa.Array, role: str) -> pa.Array:
    if not pa.types.is_uint64(array.type):
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        raise InputError(
            f"the column of {role} holds integers above 9223372036854775807; turn them into texts"
        ) from None


def _missing(array: pa.Array) -> Codes | None:
    if not array.null_count:
        return None
    return np.where(array.is_null().to_numpy(zero_copy_only=False), MISSING, CLEAN).astype(np.int8)


def _some(fault: Codes) -> Codes | None:
    return fault if fault.any() else None


def _parse(dictionary: pa.Array) -> tuple[NDArray[np.float64], Codes]:
    """Return the number that each text is, and CLEAN, WRONG or INFINITE."""
    shape = pc.match_substring_regex(dictionary, r"^\s*" + NUMBER.pattern.replace("(", "(?:") + r"\s*$")
    fine = shape.to_numpy(zero_copy_only=False)
    values = np.zeros(len(dictionary))
    trimmed = pc.utf8_ltrim(pc.utf8_trim_whitespace(dictionary.filter(shape)), "+")
    values[fine] = trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
    fault = np.where(fine, CLEAN, WRONG).astype(np.int8)
    fault[fine & ~np.isfinite(values)] = INFINITE
    for place in np.flatnonzero(~fine):
        if str(dictionary[place].as_py()).strip().lower() in INFINITIES:
            fault[place] = INFINITE
    values[fault != CLEAN] = 0.0
    return values, fault


# -- JSON: the engine hands over the text of each value, decoded here once per distinct text ------------------------
def decode(text: str | None) -> Any:
    """Return the value of one JSON text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"not valid JSON: {text[:60]!r}") from None


def _json_values(array: pa.Array) -> list[Any]:
    if pa.types.is_null(array.type):
        return []
    return [decode(text) for text in array.dictionary.to_pylist()]


def _json_labels(array: pa.Array, role: str) -> Read:
    values = [one if (label := message_label(one)) is None else label for one in _json_values(array)]
    if not values:
        return Read(pa.nulls(len(array), TEXT), np.full(len(array), MISSING, np.int8))
    kinds = {type(value) for value in values}
    if {str, int} <= kinds:
        text, number = (min(str(v) for v in values if type(v) is kind)[:80] for kind in (str, int))
        raise InputError(
            f"the column of {role} mixes texts ({text!r}) and integers ({number}); labels are all of one kind"
        )
    fault = [MISSING if value is None else CLEAN if type(value) in (str, int) else NO_LABEL for value in values]
    clean = [value if fault[place] == CLEAN else None for place, value in enumerate(values)]
    place = pc.fill_null(array.indices, len(values)).to_numpy(zero_copy_only=False)
    codes = np.array([*fault, MISSING], np.int8)
    if int in kinds:
        try:
            decoded = pa.array([*clean, None], pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            raise InputError(
                f"the column of {role} holds integers beyond 64 bits with sign; turn them into texts"
            ) from None
        return Read(decoded.take(pa.array(place)), _some(codes[place]))
    try:
        decoded = pa.array([*clean, None], pa.large_string())
    except UnicodeEncodeError:
        raise InputError(f"the column of {role} holds texts with invalid encoding (a lone surrogate)") from None
    read = labels(decoded.take(pa.array(place)), role)
    own = _some(codes[place])
    if own is None or read.fault is None:
        return Read(read.values, read.fault if own is None else own)
    return Read(read.values, np.where(own != CLEAN, own, read.fault))


def _json_texts(array: pa.Array) -> pa.Array:
    """Decode JSON scalars to texts as a CSV would hold them; objects and lists keep their JSON text."""
    if pa.types.is_null(array.type):
        return array
    plain: list[str | None] = []
    for value in _json_values(array):  # a real number as float64 has it, whatever digits stand in the file
        plain.append(value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False))
    try:
        return flat(pa.array(plain, pa.large_string()).take(array.indices))
    except UnicodeEncodeError:
        raise InputError("a text with invalid encoding (a lone surrogate)") from None
