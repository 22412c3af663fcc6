"""Damage to drawn files: bytes, lines, fields, cells, packing; what it means, nobody knows beforehand."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from drawn_files import TYPED_FORMATS, Sheet, Source, draw_file, packed, rewritten

__all__ = ["draw_damaged"]

CELLS = [
    *(
        "",
        " ",
        "  ",
        '"',
        '""',
        "'",
        ",",
        ";",
        "\t",
        "\r",
        "\n",
        "\r\n",
        "\\",
        "\\N",
        "\0",
        "\x1b[31m",
        "\ufeff",
        "\u202e",
    ),
    *("NULL", "null", "None", "nan", "NaN", "inf", "-inf", "Infinity", "true", "false", "yes", "-", "#", "tie", "left"),
    *(
        "0",
        "1",
        "-1",
        "2",
        "00",
        "1.5",
        "-0",
        "-0.0",
        "1e5",
        "1e400",
        "-1e400",
        "1e-400",
        "1_000",
        "0x10",
        "１２",
        "٣",
        "1,5",
    ),
    *("9007199254740992", "9007199254740993", "4611686018427387904", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551616", "1" * 31, "1" * 400, "1e100", "1e101", "1e-101", "1e18", "9e18"),
    *("a", "A", "b", " a", "a ", "left ", "LEFT", "right", "Tie", "model_a", "1.0", "1.", ".5", "1e0", "+1", "--1"),
    *("[1]", "{}", '{"a":1}', "é", "e\u0301", "\u2028", "\x85", "\xa0", "\x0b", "\x1c", "=1+1", "a" * 5000),
]
BYTES = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf8",
    b'"',
    b'""',
    b"\r",
    b"\n",
    b"\n\n",
    b"\r\n",
    b",",
    b",,",
    b"\t",
]
BYTES += [
    b"\x1a",
    b"\xef\xbb\xbf",
    b" ",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"null",
    b"'",
    b"#",
]
JSON_VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    2**53 + 1,
    2**63,
    10**40,
    1e300,
    "",
    "a",
    "1",
    "x",
    [],
    [1],
    {},
    {"a": 1},
]
JSON_VALUES += [{"a": {"b": [1, "x"]}}, "\0", 1.0, "1.0", "\ud800", 0.1, 1e-7]
NUMBERS = [None, 0, -1, 1, 2, 1.5, float("nan"), float("inf"), 1e300, -0.0, 1e100, 5e-324, 2**53, 0.1]
INTEGERS = [None, 0, -1, 1, 2, 7, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1]


def draw_damaged(random: Random, form: str | None = None) -> Source:
    """Draw a file and damage it; its truth is not known any more."""
    source = draw_file(random, form)
    if source.sheet is not None and (source.make is not None or random.random() < 0.35):
        return _other_cells(random, source)
    if not source.files:
        return _other_cells(random, source)
    name = random.choice(sorted(source.files))
    data = source.files[name]
    if name.endswith(".gz"):
        if random.random() < 0.5:
            data = packed(random, _bytes(random, gzip.decompress(data), source.form))
        else:
            data = _packing(random, data)
    else:
        data = _bytes(random, data, source.form)
    return replace(source, files={**source.files, name: data}, known=None)


# -- cells ------------------------------------------------------------------------------------------------------------
def _other_cells(random: Random, source: Source) -> Source:
    """Write the same rows again with some other cells."""
    sheet = source.sheet
    assert sheet is not None
    columns = {name: list(values) for name, values in sheet.columns.items()}
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        name = random.choice(list(columns))
        place = random.randrange(sheet.rows)
        columns[name][place] = _cell(random, columns[name], sheet.sorts[name], source.form)
    changed = Sheet(sheet.kind, sheet.roles, columns, sheet.sorts, sheet.given)
    return replace(rewritten(random, replace(source, known=None, sheet=changed)), cells=True)


def _cell(random: Random, column: list[Any], sort: str, form: str) -> Any:
    if random.random() < 0.2:
        return random.choice(column)
    if form in ("csv", "tsv"):
        return random.choice(CELLS)
    if form in ("json", "jsonl"):
        return random.choice(random.choice([CELLS, JSON_VALUES]))
    if sort == "label":
        texts = any(isinstance(value, str) for value in column)
        return random.choice([None, *CELLS] if texts else INTEGERS)
    if sort == "flag":
        return random.choice([0, 1])
    if sort in ("word", "unused"):
        return random.choice([None, *CELLS])
    return random.choice(NUMBERS if sort == "number" else INTEGERS)


# -- bytes ------------------------------------------------------------------------------------------------------------
def _bytes(random: Random, data: bytes, form: str) -> bytes:
    textual = form not in (*TYPED_FORMATS, "duckdb")
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        ways = [*PLAIN_WAYS, *(TEXT_WAYS * 2 if textual else [])] + (JSON_WAYS * 2 if form in ("json", "jsonl") else [])
        data = random.choice(ways)(random, data) or data
    return data


def _flip(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8])):
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _set(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(1, len(data) + 1)]


def _delete(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + data[at + random.choice([1, 1, 2, 10]) :]


def _double(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    end = at + random.choice([1, 2, 10, 100])
    return data[:end] + data[at:end] + data[end:]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(BYTES) + data[at:]


def _twice(_: Random, data: bytes) -> bytes:
    return data + data


def _same(_: Random, data: bytes) -> bytes:
    return data


def _lines(random: Random, data: bytes) -> bytes:
    """Double, delete, swap, empty or join lines, or give one another line's end."""
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    how = random.randrange(6)
    if how == 0:
        lines.insert(other, lines[one])
    elif how == 1:
        del lines[one]
    elif how == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif how == 3:
        lines.insert(one, random.choice([b"", b" ", b"\r", b"\t", b","]))
    elif how == 4 and one + 1 < len(lines):
        lines[one : one + 2] = [lines[one] + lines[one + 1]]
    else:
        lines[one] = lines[one][: len(lines[one]) // 2] + random.choice([b"", lines[other][len(lines[other]) // 2 :]])
    return b"\n".join(lines)


def _fields(random: Random, data: bytes) -> bytes:
    """Double, delete, swap or replace fields of a line."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines)) if random.random() < 0.8 else 0
    mark = b"\t" if b"\t" in lines[at] else b"," if b"," in lines[at] else b" "
    fields = lines[at].split(mark)
    one, other = random.randrange(len(fields)), random.randrange(len(fields))
    how = random.randrange(4)
    if how == 0:
        fields.insert(other, fields[one])
    elif how == 1:
        del fields[one]
    elif how == 2:
        fields[one], fields[other] = fields[other], fields[one]
    else:
        fields[one] = random.choice(CELLS).encode()
    lines[at] = mark.join(fields)
    return b"\n".join(lines)


def _marks(random: Random, data: bytes) -> bytes:
    """Another delimiter, line end, or spaces after delimiters; everywhere or once."""
    pairs = [(b",", b";"), (b",", b"\t"), (b",", b", "), (b"\t", b" "), (b"\n", b"\r"), (b"\n", b"\r\n"), (b'"', b"'")]
    old, new = random.choice([*pairs, (b'"', b'""'), (b",", b",,"), (b":", b"="), (b",", b' "')])
    return data.replace(old, new, random.choice([-1, 1, 2]))


def _encoding(random: Random, data: bytes) -> bytes:
    """Another encoding, of all or of some of the lines."""
    text = data.decode("utf-8", "replace")
    name = random.choice(["utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7"])
    if random.random() < 0.5:
        return text.encode(name, "replace")
    at = random.randrange(len(text) + 1)
    return text[:at].encode() + text[at:].encode(name, "replace")


def _json_value(random: Random, data: bytes) -> bytes:
    """Another value behind a colon."""
    marks = list(re.finditer(rb':\s*("(?:[^"\\]|\\.)*"|[^,}\]\s]+)', data))
    if not marks:
        return data
    match = random.choice(marks)
    value = random.choice([*JSON_VALUES, float("nan"), float("inf")])
    text = random.choice([json.dumps(value), '"\\u0061"', "1.00", "1E0", "-0", "01", '"\\/"', "[" * 3000, "tru"])
    return data[: match.start(1)] + text.encode() + data[match.end(1) :]


def _json_key(random: Random, data: bytes) -> bytes:
    """A key twice, another one, or one that is written with escapes."""
    keys = list(re.finditer(rb'"((?:[^"\\]|\\.)*)"\s*:', data))
    if not keys:
        return data
    match = random.choice(keys)
    how = random.randrange(3)
    if how == 0:
        return data[: match.start()] + match[0] + b" 1, " + data[match.start() :]
    if how == 1:
        return data[: match.start(1)] + random.choice(keys)[1] + data[match.end(1) :]
    escaped = "".join(f"\\u{ord(one):04x}" for one in match[1].decode("utf-8", "replace") if ord(one) < 0x10000)
    return data[: match.start(1)] + escaped.encode() + data[match.end(1) :]


PLAIN_WAYS: list[Callable[[Random, bytes], bytes]] = [_flip, _set, _cut, _delete, _double, _insert]
TEXT_WAYS = [_lines, _lines, _fields, _fields, _marks, _encoding, _insert, _twice, _same]
JSON_WAYS = [_json_value, _json_value, _json_key]


def _packing(random: Random, data: bytes) -> bytes:
    """Damage what is packed: a byte anywhere, a cut, more behind it, a member twice or without its end."""
    how = random.randrange(8)
    if how == 0:
        return data + random.choice([b"x", b"\0", b"\0" * 512, b"\x1f\x8b", data[: len(data) // 2], data[:10]])
    if how == 1:
        return data[: -random.choice([1, 4, 7, 8])]
    if how == 2:
        return data + data
    if how == 3:  # another check sum or length
        at = len(data) - random.randint(1, 8)
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    if how == 4:
        return data[: random.randrange(1, len(data))]
    return random.choice(PLAIN_WAYS)(random, data) or data
