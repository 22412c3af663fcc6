"""PrefLib files (.soc .soi .toc .toi): a header of ``# KEY: value`` lines, then ``count: order``.

Mattei, Walsh, PrefLib: a library for preferences, ADT 2013; format of 2022 (preflib.org).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, few, shown, twice
from concordant.io.log.formats import Log, opened
from concordant.preferences.counts import refuse_beyond
from concordant.preferences.ragged import Ragged

TYPES = {
    "soc": "strict orders, complete",
    "soi": "strict orders, incomplete",
    "toc": "orders with ties, complete",
    "toi": "orders with ties, incomplete",
}
HEADER = re.compile(r"#\s*([A-Z ]+?)(?:\s+(\d+))?\s*:\s?(.*)")
GROUP = re.compile(r"\s*(?:\{([^{}]*)\}|(\d+))\s*(?:,|$)")


@dataclass
class _File:
    """What a PrefLib file says in its header and in its body."""

    facts: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    """The number of each alternative, by its digits."""
    counts: list[int] = field(default_factory=list)
    orders: list[list[list[int]]] = field(default_factory=list)


def read_preflib(log: Log) -> dict[str, Any]:
    """Read the orders of a PrefLib file, all of one query, as the arguments of ``counted_lists``.

    All alternatives are declared, also those that nobody ranked. Errors: a header that disagrees with the body, with
    the line or the two numbers.
    """
    file = _parse(log)
    _check_header(log, file)
    refuse_beyond(sum(file.counts), f"{log.name}: the counts")
    items = [item for order in file.orders for tier in order for item in tier]
    ranks = [float(rank) for order in file.orders for rank, tier in enumerate(order, 1) for _ in tier]
    sizes = [sum(map(len, order)) for order in file.orders]
    codes = sorted(file.names)
    names = pa.array([file.names[code] for code in codes], pa.large_string())
    places = np.searchsorted(np.array(codes), np.array(items, np.int64)).astype(np.int32)
    return {
        "kind": "orders",
        "offsets": Ragged.of_sizes(sizes).start,
        "item": pa.DictionaryArray.from_arrays(pa.array(places), names),
        "value": np.array(ranks, np.float64),
        "count": np.array(file.counts, np.int64),
        "declared": (None, names),
    }


def _parse(log: Log) -> _File:
    file = _File()
    kind = _kind(log)
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            line = line.strip()
            where = f"{log.name}: line {number:,}"
            if line.startswith("#"):
                _header_line(file, line, where)
            elif line:
                count, _, order = line.partition(":")
                if not re.fullmatch(r"\d{1,40}", count.strip(), re.ASCII) or not order.strip():
                    raise InputError(f"{where} is not of the form 'count: order', {line[:40]!r}")
                if int(count) == 0:
                    raise InputError(f"{where} counts 0 voters")
                file.counts.append(int(count))
                file.orders.append(_order(order, file, kind, where))
    if not file.facts and not file.names:
        raise InputError(f"{log.name}: no PrefLib header ('# NUMBER ALTERNATIVES: …')")
    return file


def _kind(log: Log) -> str:
    suffixes = [suffix.lower() for suffix in log.paths[0].suffixes]
    return (suffixes[-2] if log.gzipped else suffixes[-1]).lstrip(".")


def _header_line(file: _File, line: str, where: str) -> None:
    match = HEADER.fullmatch(line)
    if match is None:
        return
    key, number, value = match.group(1), match.group(2), match.group(3).strip()
    if key != "ALTERNATIVE NAME":
        file.facts.setdefault(key, value)
        return
    if number is None:
        raise InputError(f"{where}: an alternative has a name but no number")
    code = int(number)
    if code in file.names:
        raise InputError(f"{where}: alternative {code} is named twice")
    if not value:
        raise InputError(f"{where}: alternative {code} has no name")
    if "\0" in value:
        raise InputError(f"{where}: the name of alternative {code} holds a null byte")
    file.names[code] = value
    file.codes[str(code)] = code


def _order(order: str, file: _File, kind: str, where: str) -> list[list[int]]:
    """Return the tiers of an order, best first."""
    if "{" in order or "}" in order:
        tiers = [[_code(member, where) for member in members] for members in _groups(order, where)]
    else:
        tiers = [[code] for code in _codes(order, file, where)]
    if kind.startswith("s") and any(len(tier) > 1 for tier in tiers):
        raise InputError(f"{where} holds a tie, but a .{kind} file holds {TYPES[kind]}")
    codes = [code for tier in tiers for code in tier]
    seen = set(codes)
    if len(seen) < len(codes):
        raise InputError(f"{where} ranks alternative {twice(codes)[0]} twice")
    if not seen <= file.names.keys():
        unknown = min(seen - file.names.keys())
        raise InputError(f"{where}: alternative {unknown} is not in the header, which names {len(file.names)}")
    if kind.endswith("c") and len(seen) < len(file.names):
        raise InputError(
            f"{where} ranks {len(seen)} of {len(file.names)} alternatives, but a .{kind} file holds {TYPES[kind]}"
        )
    return tiers


def _codes(order: str, file: _File, where: str) -> list[int]:
    """Return numbers between commas; written as in the header they are only looked up."""
    members = order.replace(" ", "").split(",")
    try:
        return [file.codes[member] for member in members]
    except KeyError:
        return [_code(member, where) for member in order.split(",")]


def _code(member: str, where: str) -> int:
    member = member.strip()
    if not (member.isascii() and member.isdigit() and len(member) < 10):
        raise InputError(f"{where}: {shown(member)} is not the number of an alternative")
    return int(member)


def _groups(order: str, where: str) -> Iterator[list[str]]:
    """Yield what stands between commas: the members within braces, or one number."""
    at = 0
    while at < len(order):
        match = GROUP.match(order, at)
        if match is None or match.end() == at:
            raise InputError(f"{where}: cannot read {order[at : at + 40].strip()!r} as alternatives")
        yield [match.group(2)] if match.group(1) is None else match.group(1).split(",")
        at = match.end()


def _check_header(log: Log, file: _File) -> None:
    kind = _kind(log)
    told = file.facts.get("DATA TYPE", kind)
    if told.lower() != kind:
        raise InputError(f"{log.name}: the header says DATA TYPE {told}, the ending says {kind}")
    if not file.orders:
        raise InputError(f"{log.name}: there is a header but no orders")
    distinct = {tuple(tuple(sorted(tier)) for tier in order) for order in file.orders}
    for key, found in (
        ("NUMBER ALTERNATIVES", len(file.names)),
        ("NUMBER VOTERS", sum(file.counts)),
        ("NUMBER UNIQUE ORDERS", len(distinct)),
    ):
        said = file.facts.get(key)
        if said is None:
            raise InputError(f"{log.name}: the header has no {key}")
        if said != str(found):
            raise InputError(f"{log.name}: the header says {key} {said}, the file holds {found}")
    names = list(file.names.values())
    if again := twice(names):
        raise InputError(f"{log.name}: alternatives share a name: {few(again)}")
