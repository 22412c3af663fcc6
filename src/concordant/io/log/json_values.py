"""JSON of files that anybody may have changed: read strictly, and its fields taken only as what they must be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from concordant.errors import InputError, few, twice


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"{few(twice(name for name, _ in pairs))} occurs twice in one object")
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is beyond float64")
    return value


def _whole(text: str) -> int:
    if len(text) > 400:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite, parse_int=_whole
).decode
AS_PYTHON_WRITES = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=lambda _: None, parse_float=_finite, parse_int=_whole
).decode
"""The same, but NaN and Infinity, which programs in Python write into their results, are missing."""


def json_value(text: str | bytes, where: str, *, constants: bool = False) -> Any:
    """Return what a JSON document holds; ``where`` begins the message of an error.

    Errors (InputError): what is no JSON (RFC 8259) in UTF-8, NaN and Infinity included (with ``constants`` these are
    None); what readers understand in different ways: a name twice in one object, numbers beyond float64, half a
    surrogate pair; nesting too deep.

    >>> json_value('{"a": [1, 2.5]}', "x.json")
    {'a': [1, 2.5]}
    >>> json_value('{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    concordant.errors.InputError: x.json is not valid JSON: 'a' occurs twice in one object
    """
    try:
        found = (AS_PYTHON_WRITES if constants else STRICT)(text if isinstance(text, str) else text.decode("utf-8"))
        if (isinstance(text, str) or b"\\u" in text) and (half := _half_of_a_pair(found)) is not None:
            raise InputError(f"{where} holds a text with invalid encoding: {half} is half of a surrogate pair")
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 (byte {error.start + 1:,})") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where} is not valid JSON: {error}") from None
    return found


def unicode_text(text: str) -> bool:
    """Whether UTF-8 can write a text: it has no half of a surrogate pair.

    >>> unicode_text("é"), unicode_text("\\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _half_of_a_pair(value: Any) -> str | None:
    """Show the first text that UTF-8 cannot write; None where there is none."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not unicode_text(one):
                return ascii(one)[:60]
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one
    return None


class Fields:
    """The fields of a JSON object, each taken as the type it must have; nothing is converted.

    Errors (InputError): a field that is missing, or of another type, said after ``what``.

    >>> Fields({"log": "no"}, "the state").flag("log")
    Traceback (most recent call last):
    concordant.errors.InputError: the state cannot be read: log must be true or false, not 'no'
    """

    def __init__(self, values: Any, what: str) -> None:
        self.what = what
        if not isinstance(values, Mapping):
            raise self.wrong(f"it is no object but {type(values).__name__}")
        self.values = values

    def wrong(self, said: str) -> InputError:
        """Return the error that says so of this object."""
        return InputError(f"{self.what} cannot be read: {said}")

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            raise self.wrong(f"{name} is missing")
        return self.values[name]

    def _must(self, name: str, value: Any, allowed: str) -> InputError:
        shown = repr(value)
        return self.wrong(f"{name} must be {allowed}, not {shown if len(shown) <= 60 else shown[:60] + '…'}")

    def fields(self, name: str) -> Fields:
        """An object."""
        return Fields(self[name], f"{self.what}: {name}")

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self[name]
        if not isinstance(value, bool):
            raise self._must(name, value, "true or false")
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        return self._number(name, self[name])

    def _number(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._must(name, value, "a number")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self._must(name, value, "a finite number")
        return found

    def whole(self, name: str, least: int = 0) -> int:
        """An integer of at least so much, below 2⁶³."""
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
            raise self._must(name, value, f"an integer of at least {least:,}")
        return value

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        """A text, one of ``among`` where that is given."""
        value = self[name]
        if not isinstance(value, str) or (among and value not in among):
            raise self._must(name, value, f"one of {', '.join(among)}" if among else "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._list(name, str, "texts"))

    def numbers(self, name: str) -> list[float]:
        """A list of finite numbers."""
        return [self._number(name, value) for value in self._list(name, int | float, "numbers")]

    def wholes(self, name: str) -> list[int]:
        """A list of integers, at least 0 and below 2⁶³."""
        found = self._list(name, int, "integers")
        if wrong := [value for value in found if isinstance(value, bool) or not 0 <= value < 2**63]:
            raise self._must(name, wrong[0], "integers of at least 0")
        return found

    def flags(self, name: str) -> list[bool]:
        """A list of true and false."""
        return self._list(name, bool, "true and false")

    def _list(self, name: str, kind: Any, called: str) -> list[Any]:
        value = self[name]
        if not isinstance(value, list | tuple) or not all(isinstance(one, kind) for one in value):
            raise self._must(name, value, f"a list of {called}")
        return list(value)
