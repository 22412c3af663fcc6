"""Segments: counted judgments as immutable Parquet files that any DuckDB, Spark or pandas can read.

A row is a distinct judgment, ``count`` how many times it was made:

===============  ===================================================================================================
kind             columns
===============  ===================================================================================================
comparisons      ``query, winner, loser, tie, weight``, then ``covariate NAME`` for each, ``cluster``, ``count``
orders           ``query, items, ranks``, ``cluster``, ``count``: lists of equal length; ranks 1, 2, …, equal is tied
selections       ``query, items, clicked``, ``cluster``, ``count``: the list as shown; ``clicked`` is 1 or 0, and 1 + g
                 or −g after g positions of which the log says nothing
choices          ``query, items, chosen``, ``cluster``, ``count``
ratings          ``query, items, ratings``, ``cluster``, ``count``
===============  ===================================================================================================

``cluster`` is there only in stores that keep clusters. A row whose count is 0 is no judgment: its items (of a
comparison: the one item, on both sides) are known for the query and in no judgment.

A sign by which judgments are known again wherever they came from: the SHA-256 of their canonical columns.

What the files of a log hold: the sign by which a batch is known again, and files that only grew.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import InputError, Setting
from concordant.io.log.disk import open_regular, state_of
from concordant.io.log.formats import Log
from concordant.io.store.catalogue import Content
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.progress import stage, steps

VALUES = {"orders": "ranks", "selections": "clicked", "choices": "chosen", "ratings": "ratings"}
"""What the values of a list are called."""
COVARIATE = "covariate "
"""What stands before the name of a covariate in the name of its column."""
BLOCK = 1 << 20
"""Judgments of a row group."""


def label_kind(labels: Labels) -> str:
    """Return whether labels are texts or integers."""
    return "integers" if pa.types.is_integer(labels.values.type) else "texts"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_segment(prefs: Preferences, path: Path) -> None:
    """Write preferences as a segment; the file is a function of the preferences."""
    assert isinstance(prefs, Comparisons | Lists)  # there is a judgment
    tables = _comparisons(prefs) if isinstance(prefs, Comparisons) else _lists(prefs)
    first = next(tables)
    with pa.parquet.ParquetWriter(path, first.schema, compression="zstd", write_page_checksum=True) as writer:
        for table in steps("writing judgments", chain([first], tables), -(-max(prefs.distinct, 1) // BLOCK)):
            writer.write_table(table)


def last_columns(prefs: Preferences, rows: slice | NDArray[np.int64]) -> dict[str, Any]:
    """Return what judgments of every kind have after their own columns, of some of them."""
    columns = {}
    if prefs.clusters is not None and prefs.cluster is not None:
        columns["cluster"] = prefs.clusters.take(prefs.cluster[rows])
    return columns | {"count": pa.array(prefs.count[rows].astype(np.int64))}


def _blocks(prefs: Preferences) -> list[slice]:
    return [slice(begin, begin + BLOCK) for begin in range(0, max(prefs.distinct, 1), BLOCK)]


def _comparisons(prefs: Comparisons) -> Iterator[pa.Table]:
    ones, none = np.ones(BLOCK), np.zeros(BLOCK, bool)
    for rows in _blocks(prefs):
        size = len(prefs.count[rows])
        named = {} if prefs.covariates is None else dict(zip(prefs.covariate_names, prefs.covariates[rows].T))
        columns = {
            "query": prefs.queries.take(prefs.query[rows]),
            "winner": prefs.items.take(prefs.winner[rows]),
            "loser": prefs.items.take(prefs.loser[rows]),
            "tie": none[:size] if prefs.tie is None else prefs.tie[rows],
            "weight": ones[:size] if prefs.weight is None else prefs.weight[rows],
            **{f"{COVARIATE}{name}": np.ascontiguousarray(values) for name, values in named.items()},
            **last_columns(prefs, rows),
        }
        yield (table := pa.table(columns))
    if len(prefs.declared):
        item = prefs.items.take(prefs.declared[:, 1])
        known = {"query": prefs.queries.take(prefs.declared[:, 0]), "winner": item, "loser": item}
        yield _known(known, table.schema)


def _lists(prefs: Lists) -> Iterator[pa.Table]:
    for rows in _blocks(prefs):
        lists, entries = prefs.lists.take(np.arange(prefs.distinct)[rows])
        columns = {
            "query": prefs.queries.take(prefs.query[rows]),
            "items": _list_array(lists.start, prefs.items.take(prefs.list_item[entries])),
            VALUES[prefs.kind]: _list_array(lists.start, pa.array(prefs.list_value[entries])),
            **last_columns(prefs, rows),
        }
        yield (table := pa.table(columns))
    if len(prefs.declared):
        query, item = prefs.declared.T
        queries = Ragged.runs(query)
        items = _list_array(queries.start, prefs.items.take(item))
        known = {"query": prefs.queries.take(query[queries.first]), "items": items}
        yield _known(known, table.schema)


def _known(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return the rows of items that are in no judgment: they count 0 and have nothing else."""
    size = len(columns["query"])
    full = {name: columns.get(name, pa.nulls(size, schema.field(name).type)) for name in schema.names}
    return pa.table(full | {"count": pa.array(np.zeros(size, np.int64))}, schema)


def _list_array(offsets: NDArray[np.int64], values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)


def fingerprint(prefs: Preferences) -> str:
    """Return the SHA-256 of preferences: equal ones have equal signs, whatever rows they were counted from.

    >>> one = Preferences.from_comparisons(["a", "b"], ["b", "c"])
    >>> other = Preferences.from_comparisons(["b", "a"], ["c", "b"])
    >>> fingerprint(one) == fingerprint(other), fingerprint(one) == fingerprint(one + other)
    (True, False)
    """
    sign = hashlib.sha256()

    def add(name: str, values: Any) -> None:
        array = np.ascontiguousarray(values)
        sign.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sign.update(array.data if array.size else b"")

    sign.update(f"{prefs.kind} {prefs.covariate_names!r}\n".encode())
    for name in ("queries", "items", "clusters"):
        if (labels := getattr(prefs, name)) is not None:
            for part, values in _label_columns(labels).items():
                add(f"{name} {part}", values)
    for name in (
        *("start", "count", "winner", "loser", "tie", "weight", "covariates"),
        *("list_start", "list_item", "list_value", "cluster", "declared", "time", "share"),
    ):
        if (values := getattr(prefs, name, None)) is not None:
            add(name, values)
    return sign.hexdigest()


def _label_columns(labels: Labels) -> dict[str, Any]:
    """Return labels as plain arrays: integers as they are, texts as their bytes and lengths."""
    if pa.types.is_integer(labels.values.type):
        return {"integers": labels.values.to_numpy()}
    texts = [text.encode() for text in labels.tolist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    return {"lengths": lengths, "bytes": np.frombuffer(b"".join(texts), np.uint8)}


GROWING = ("csv", "tsv", "json", "txt", "letor", "qrels", "run")
"""Formats of files that are appended to."""


@dataclass(frozen=True)
class Looked:
    """A file of a log: the SHA-256 and the number of its bytes, unpacked, and how it lay there meanwhile."""

    log: Log
    sha256: str
    bytes: int
    state: tuple[int, ...]


def look(log: Log, known: Iterable[Content], *, grown: bool = False) -> Looked:
    """Return the sign of what a file holds.

    A text file whose beginning is the whole of a file that is known has grown since: unless ``grown`` allows it, that
    is an error, for its first rows would be there twice. Errors (InputError): that, a broken gzip file.
    """
    state = state_of(log.paths[0])
    ends: dict[int, list[Content]] = {}
    if log.format in GROWING and not grown:
        for content in known:
            ends.setdefault(content.bytes, []).append(content)
    sign, size = hashlib.sha256(), 0
    whole_size = None if log.gzipped else log.paths[0].stat().st_size
    stops = sorted(end for end in ends if end)
    whole: list[Content] = []
    try:
        with (
            stage(f"looking at {log.name}", whole_size) as at,
            open_regular(log.paths[0]) as raw,
            gzip.open(raw) if log.gzipped else raw as file,
        ):
            for stop in stops:
                size += _take(file, sign, stop - size)
                if size < stop:
                    break
                held = sign.hexdigest()
                whole = [content for content in ends[stop] if content.sha256 == held] or whole
            while taken := _take(file, sign, BLOCK):
                size += taken
                at.reach(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{log.name}: the gzip file is broken or truncated ({error})") from None
    except OSError as error:
        raise InputError(f"{log.name}: {error.strerror or error}") from None
    if whole and size > whole[0].bytes:
        raise InputError(
            f"{log.name}: begins with all of {whole[0].name}, which the store has, so its first "
            f"{whole[0].bytes:,} of {size:,} bytes would be taken in twice; ingest the new rows alone, or, where equal "
            "beginnings are no accident, say ",
            Setting("grown", True),
        )
    return Looked(log, sign.hexdigest(), size, state)


def unchanged(looked: Iterable[Looked]) -> None:
    """Refuse a file that was written to since it was looked at."""
    for file in looked:
        if state_of(file.log.paths[0]) != file.state:
            raise InputError(f"{file.log.name}: the file was changed while it was read; nothing was taken in")


def _take(file: Any, sign: Any, size: int) -> int:
    taken = 0
    while taken < size and (block := file.read(min(BLOCK, size - taken))):
        sign.update(block)
        taken += len(block)
    return taken
