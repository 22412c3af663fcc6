"""The beginning of a JSON file, by which it is recognised, and its records one by one.

What evaluation harnesses write is JSON as Python has it: NaN and Infinity stand for a missing number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from concordant.errors import InputError
from concordant.io.log.formats import Log, opened
from concordant.io.log.json_values import json_value

BLOCK = 1 << 16
DECODER = json.JSONDecoder(parse_constant=lambda _: None)


@dataclass(frozen=True)
class Head:
    """The first object of a JSON file, and what the file is: one ``document``, an ``array`` or ``lines``."""

    first: dict[str, Any]
    form: str

    def has(self, *names: str) -> bool:
        """Whether the object has all of these names."""
        return all(name in self.first for name in names)


def head_of(log: Log) -> Head | None:
    """Return the head of a JSON file; None where it does not begin with an object, or is no JSON."""
    with opened(log) as text:
        block, size, place, form = "", BLOCK, 0, "lines"
        while True:
            more = text.read(size)
            block += more
            size *= 2
            if place == 0:
                block = block.lstrip()
                if block.startswith("["):
                    form, block = "array", block[1:]
                block = block.lstrip() if form == "array" else block
                if block and not block.startswith("{"):
                    return None
            try:
                first, end = DECODER.raw_decode(block)
                break
            except RecursionError:
                return None
            except ValueError:
                if not more:
                    return None
        if not isinstance(first, dict):
            return None
        while form == "lines" and not block[end:].strip():
            if not (more := text.read(BLOCK)):
                return Head(first, "document")
            block, end = more, 0
    return Head(first, form)


def document(log: Log) -> Any:
    """Return what a JSON file holds, as one value."""
    with opened(log) as text:
        return json_value(text.read(), f"{log.name}: the file", constants=True)


def records(log: Log, form: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of each record of an array, of lines, or of a document, which is one."""
    if form == "lines":
        with opened(log) as text:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield (
                        f"line {number:,}",
                        _object(
                            json_value(line, f"{log.name}: line {number:,}", constants=True),
                            f"{log.name}: line {number:,}",
                        ),
                    )
        return
    whole = document(log)
    for number, value in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"row {number:,}", _object(value, f"{log.name}: row {number:,}")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object but {type(value).__name__}")
    return value


def number(value: Any) -> float | None:
    """Return a score: a number, or 1 and 0 for true and false; None for what is none of these.

    >>> number(0.5), number(True), number("0.5"), number(None)
    (0.5, 1.0, None, None)
    """
    return float(value) if isinstance(value, bool | int | float) else None


def inner(value: Any, *names: str) -> Any:
    """Return what lies in objects under names, one inside the other; None where one is missing.

    >>> inner({"a": {"b": 1}}, "a", "b"), inner({"a": []}, "a", "b")
    (1, None)
    """
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
