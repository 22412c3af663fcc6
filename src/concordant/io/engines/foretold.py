"""How much a log holds, guessed from some of its rows before all of them are counted: for the time that is left."""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from concordant.io.log.formats import Log
from concordant.preferences.layouts import CLUSTERS
from concordant.progress import know, listener

PIECES, ROWS = 16, 4096
"""Pieces of a log that are looked at, and rows of each."""
BYTES = 1 << 18
"""Bytes of a piece of a text file, at most; of a packed one of its beginning."""
GZIP = 31
"""What zlib calls a stream with the header of gzip."""
SIDES = ("winner", "loser"), ("left", "right"), ("item",)
"""Roles whose columns name items."""


def foretell(log: Log, roles: Mapping[str, str]) -> None:
    """Say how many rows a log has, and about how many are distinct, to whoever listens; of some formats nothing."""
    if listener() is None:
        return
    try:
        found = _foretold(log, roles)
    except Exception:  # a guess at the time that is left; what is wrong with a log, reading it all will say
        return
    know(**found)


def _foretold(log: Log, roles: Mapping[str, str]) -> dict[str, float]:
    rows, pieces = _looked(log, list(dict.fromkeys(roles.values())))
    if not sum(map(len, pieces)):
        return {}
    query = [roles["query"]] if "query" in roles else []
    who = [column for role, column in roles.items() if role in CLUSTERS]
    items = next((side for side in SIDES if {*side} <= {*roles}), ())
    nodes = [set[tuple[object, ...]]().union(*(_keys(one, [*query, roles[end]]) for end in items)) for one in pieces]
    times = max(rows * len(pieces) / sum(map(len, pieces)), 1.0)
    whose = [roles[role] for role in ("query", "session", "judgment") if role in roles]
    distinct = min(extrapolated([_keys(one, one.column_names) for one in pieces], times), rows)
    lists: dict[str, float] = {}
    if items == SIDES[-1] and len(whose) > len(query):  # a judgment is a list, and as much work as it makes pairs
        lists = {"entries": float(rows), "different": extrapolated([_keys(one, whose) for one in pieces], times)}
        lists |= {"clicks": 1.0} if "clicked" in roles else {}
        distinct = 0.5 * rows * rows / max(lists["different"], 1.0)
    lists |= {"packed": 1.0} if log.gzipped else {}
    times_of = (
        {"times": extrapolated([_keys(one, [roles["time"]]) for one in pieces], times)} if "time" in roles else {}
    )
    return (lists | times_of) | {
        "rows": rows,
        "distinct": distinct,
        "nodes": extrapolated(nodes, times),
        "queries": extrapolated([_keys(one, query) for one in pieces], times) if query else 1.0,
        "clusters": extrapolated([_keys(one, who) for one in pieces], times) if who else 0.0,
    }


def extrapolated(pieces: Sequence[set[tuple[object, ...]]], times: float) -> float:
    """Return how many distinct values there are in ``times`` as many rows as one of the pieces has.

    With d values in a piece and D in all, k pieces have D (1 − (1 − d/D)^k) where the pieces are alike: D is what gives
    as many as they have together. Pieces that share nothing (a sorted log) have ``times`` d.

    >>> pieces = [{(value * step % 101,) for value in range(60)} for step in (3, 5, 7, 11)]  # of 101 values
    >>> 98 < extrapolated(pieces, 1e6) < 104
    True
    >>> extrapolated([{(1,), (2,)}, {(3,), (4,)}], 50)
    100.0
    """
    mean, union = sum(map(len, pieces)) / len(pieces), float(len(set[tuple[object, ...]]().union(*pieces)))
    if union > len(pieces) * mean - 0.5 or len(pieces) == 1:
        return mean * times
    least, greatest = union, 1e15
    for _ in range(100):  # the union grows with D
        total = math.sqrt(least * greatest)
        found = -total * math.expm1(len(pieces) * math.log1p(-min(mean / total, 1 - 1e-12)))
        least, greatest = (total, greatest) if found < union else (least, total)
    return -least * math.expm1(times * math.log1p(-min(mean / least, 1 - 1e-12)))


def rows_of(columns: Mapping[str, pa.Array], rows: int) -> float:
    """Return how many distinct rows these columns have, about, by some of them from all over.

    >>> rows_of({"winner": pa.array(["a", "b"] * 50), "loser": pa.array(["c", "d"] * 50)}, 100)
    2.0
    """
    table = pa.table({name: column for name, column in columns.items() if len(column) == rows})
    size = max(min(rows // PIECES, ROWS), 1)
    some = [_keys(table.slice(at * rows // PIECES, size), table.column_names) for at in range(PIECES)]
    return round(extrapolated(some, rows / size), 3)


def _keys(table: pa.Table, columns: Sequence[str]) -> set[tuple[object, ...]]:
    return set(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def _looked(log: Log, columns: Sequence[str]) -> tuple[int, list[pa.Table]]:
    """Return how many rows there are, about, and those of some pieces from all over the log."""
    paths = list(log.paths)
    if log.array or not paths or log.format not in ("parquet", "csv", "tsv", "json"):
        return 0, []
    some = paths[:: -(-len(paths) // PIECES)]
    if log.format == "parquet":
        rows = sum(pq.read_metadata(path).num_rows for path in paths)
        return rows, [one for path in some for one in _of_parquet(path, columns, -(-PIECES // len(some)))]
    pieces, size = [], 0.0
    for path in some:
        texts, share = (_unzipped if log.gzipped else _texts)(path, -(-PIECES // len(some)))
        for text in texts:
            pieces.append(_rows(io.BytesIO(text), log, columns))
            size += share * len(text)
    return round(sum(path.stat().st_size for path in paths) * sum(map(len, pieces)) / max(size, 1)), pieces


def _rows(text: io.BytesIO, log: Log, columns: Sequence[str]) -> pa.Table:
    if log.format == "json":
        return pa.json.read_json(text).select(columns)
    names = pa.csv.ReadOptions(column_names=log.columns)
    how = pa.csv.ParseOptions(delimiter="\t" if log.format == "tsv" else ",")
    return pa.csv.read_csv(text, names, how, pa.csv.ConvertOptions(include_columns=columns))


def _of_parquet(path: Path, columns: Sequence[str], number: int) -> list[pa.Table]:
    file = pq.ParquetFile(path, memory_map=True)
    groups = range(file.num_row_groups)[:: -(-file.num_row_groups // number) or 1]
    each, found = -(-number // max(len(groups), 1)), []
    for group in groups:
        stride = max(-(-file.metadata.row_group(group).num_rows // ROWS // each), 1)
        batches = file.iter_batches(ROWS, row_groups=[group], columns=list(columns))
        for place, batch in enumerate(batches):
            if place % stride == 0:
                found.append(pa.Table.from_batches([batch]))
                if place >= stride * (each - 1):
                    break
    return [one for one in found if len(one) == ROWS] or found


def _unzipped(path: Path, number: int) -> tuple[list[bytes], float]:
    """Return whole lines of the beginning of a packed file, in pieces, and how many bytes of it hold one of theirs."""
    with path.open("rb") as file:
        packed = file.read(BYTES)
    unpacking = zlib.decompressobj(wbits=GZIP)
    text = unpacking.decompress(packed, PIECES * BYTES)  # what repeats itself is a thousand times as long unpacked
    lines = text.splitlines(keepends=True)[1:-1]
    each = max(min(len(lines) // number, ROWS), 1)
    found = [b"".join(lines[place : place + each]) for place in range(0, min(len(lines), number * each), each)]
    return found, (len(packed) - len(unpacking.unconsumed_tail)) / max(len(text), 1)


def _texts(path: Path, number: int) -> tuple[list[bytes], float]:
    """Return whole lines from some places of a file, and how many bytes of it hold one of theirs: one."""
    size, found = path.stat().st_size, []
    with path.open("rb") as file:
        for place in range(number):
            file.seek(place * size // number)
            file.readline()  # the header, or what is left of a line
            lines = file.read(min(BYTES, size // number)).splitlines(keepends=True)[:-1]
            found.append(b"".join(lines[:ROWS]))
    return [one for one in found if one], 1.0
