"""Segments of comparisons added up: each read as codes of labels of its own, all of them in one sort.

Segments are sorted, so the sort merges runs; a judgment is one integer then, and takes some 40 bytes of memory. What
comes out is what an engine's GROUP BY gives, to the bit.

The sum of a large store is kept beside its segments, as these codes: the next reader adds what came since. It is a
copy of what the segments hold, named by them; what does not check is not read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import ConcordantError, InputError
from concordant.io.log.disk import check_regular, open_regular
from concordant.io.store import files
from concordant.io.store.catalogue import Facts
from concordant.io.store.segments import digest
from concordant.preferences.counted import declare
from concordant.preferences.counts import BITS, bit_width, exact_sum, narrow, refuse_beyond, tally, unpack
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import Ragged
from concordant.progress import steps

ROLES = {"query": "query", "winner": "items", "loser": "items", "cluster": "clusters"}
"""The columns that have labels, and the set these are of."""
BLOCK = 1 << 20
KEPT = re.compile(r"codes-[0-9a-f]{32}\.arrow")
SIGN = hashlib.sha256().digest_size
LARGE = 1 << 20
"""Distinct judgments from which on a sum is kept."""
GROWN = 1 / 16
"""Share of them that a sum may lack until it is kept anew."""


@dataclass(frozen=True)
class Part:
    """Distinct comparisons as codes of labels of their own, in as few bytes each as these need."""

    labels: Mapping[str, Labels]
    columns: Mapping[str, NDArray[Any]]
    """Codes, ``count``, and ``tie``; a column that is 0 throughout is left out."""

    def __len__(self) -> int:
        return len(self.columns["count"])

    def without(self, role: str) -> Part:
        """Return the part without a column; its rows are not distinct then."""
        labels = {name: known for name, known in self.labels.items() if name != ROLES[role]}
        return Part(labels, {name: codes for name, codes in self.columns.items() if name != role})

    @classmethod
    def of(cls, prefs: Comparisons) -> Part:
        """Return the codes of preferences."""
        labels = {name: getattr(prefs, "queries" if name == "query" else name) for name in set(ROLES.values())}
        columns = {name: getattr(prefs, name) for name in (*ROLES, "tie", "count")}
        return cls(
            {name: known for name, known in labels.items() if known is not None},
            {name: _short(codes) for name, codes in columns.items() if codes is not None and codes.any()},
        )


def added_up(
    paths: Mapping[str, Path], facts: Facts, *, keep: bool = False, clustered: bool = True
) -> Comparisons | None:
    """Return the comparisons that segments hold together; None where they have covariates or strengths.

    ``paths``: the segments by their signs. ``keep``: start from the sum that was kept of some of them, and keep this
    one where it is large; without the clusters (``clustered``) it is not kept. Errors: InputError for columns that no
    segment of the store has; those of Arrow.
    """
    if facts.kind != "comparisons" or facts.covariates or not paths:
        return None
    folder = next(iter(paths.values())).parent
    known, kept = _kept(folder, paths) if keep else (frozenset[str](), None)
    parts: list[Part] = []
    if not clustered and facts.clusters is not None:
        facts, keep = replace(facts, clusters=None), False
        parts, kept = [] if kept is None else [kept.without("cluster")], None
    declared: list[pa.Table] = []
    for path in steps("reading segments", [path for sign, path in paths.items() if sign not in known]):
        with open_regular(path) as opened:
            texts = [name for name in ROLES if _kind(facts, name) == "texts"]
            file = pa.parquet.ParquetFile(opened, read_dictionary=texts)
            for group in range(file.num_row_groups):
                part = _part(path, file, group, facts, declared)
                if part is None:
                    return None
                parts.append(part)
    before, new = 0 if kept is None else len(kept), sum(map(len, parts))
    found = _together(kept, parts, declared)
    if found is not None and keep and not declared and before + new >= LARGE and new > GROWN * before:
        with suppress(OSError, ConcordantError):  # the disk is full or only read: the next reader adds up again
            _write(Part.of(found), folder, paths)
    pa.default_memory_pool().release_unused()
    return found


def _kind(facts: Facts, column: str) -> str | None:
    """Whether the labels of a column are texts or integers; None where the store has none."""
    return {"query": facts.queries, "cluster": facts.clusters}.get(column, facts.items)


def _part(path: Path, file: Any, group: int, facts: Facts, declared: list[pa.Table]) -> Part | None:
    """Read a row group, without what its statistics say is the same throughout; None where a strength is not 1."""
    schema, labelled = file.schema_arrow, [name for name in ROLES if _kind(facts, name)]
    row_group, same = file.metadata.row_group(group), dict[str, Any]()
    for name in (*labelled, "tie", "weight", "count"):
        kind = schema.field(name).type if name in schema.names else pa.null()
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        right = {"tie": [pa.bool_()], "weight": [pa.float64()], "count": [pa.int64()]}.get(
            name, [pa.int64()] if _kind(facts, name) == "integers" else [pa.large_string(), pa.string()]
        )
        if kind not in right:
            raise InputError(f"{path}: is no segment of this store: its column {name!r} is {kind}")
        seen = row_group.column(schema.names.index(name)).statistics
        if seen is not None and seen.has_min_max and seen.min == seen.max and not seen.null_count:
            same[name] = seen.min
    left_out = {"query", "tie", "weight"} & {*same} if row_group.num_rows else set[str]()
    table = file.read_row_group(group, [*({*labelled, "tie", "weight", "count"} - left_out)], use_threads=False)
    if pc.min(table["count"]).as_py() < 1:
        none = table.filter(pc.equal(table["count"], 0))
        if len(none):
            query = none["query"] if "query" in none.column_names else pa.repeat(pa.scalar(same["query"]), len(none))
            declared.append(pa.table({"query": query, "item": none["winner"]}))
        table = table.filter(pc.greater(table["count"], 0))
    weight = same["weight"] if "weight" in left_out else pc.min_max(table["weight"])
    if weight not in (1.0, {"min": 1.0, "max": 1.0}, {"min": None, "max": None}):
        return None
    labels, (winner, loser) = Labels.encode_all(table["winner"], table["loser"])
    found: dict[str, Labels] = {"items": labels}
    columns: dict[str, Any] = {"winner": winner, "loser": loser, "count": table["count"].to_numpy()}
    for name in ("query", "cluster"):
        if name in table.column_names:
            found[ROLES[name]], columns[name] = Labels.encode(table[name])
    if "query" in left_out:
        found["query"] = Labels.encode([same["query"]] if len(table) else [])[0]
    columns["tie"] = table["tie"].to_numpy() if "tie" not in left_out else np.full(len(table), same["tie"])
    return Part(found, {name: _short(codes) for name, codes in columns.items() if name == "count" or codes.any()})


def _short(codes: NDArray[Any]) -> NDArray[Any]:
    return codes.astype(np.min_scalar_type(codes.max())) if len(codes) else codes


def _together(kept: Part | None, parts: list[Part], declared: Sequence[pa.Table]) -> Comparisons | None:
    """Add parts up, which are used up, and a sum, whose rows are sorted; None where no integer holds a judgment."""
    labels: dict[str, Labels] = {}
    every = [*parts, *([] if kept is None else [kept])]
    for part in every:
        for name, known in part.labels.items():
            labels[name] = labels.get(name, Labels.empty()).union(known)[0]
    ties = any("tie" in part.columns for part in every)
    order = ["query", "winner", "loser", *(["tie"] if ties else []), *(["cluster"] if "clusters" in labels else [])]
    sizes = [2 if name == "tie" else max(len(labels[ROLES[name]]), 1) for name in order]
    bits = sum(map(bit_width, sizes))
    if bits > BITS or not any(map(len, every)):
        return None
    refuse_beyond(total := sum(exact_sum(part.columns["count"]) for part in every))
    amounts: Any = np.int32 if total < 1 << 31 else np.int64
    del every
    key, count = _packed(parts, labels, order, sizes, amounts)
    key, amount = tally(key, bits, count, runs=True)
    if kept is not None:
        whole, before = _packed([kept], labels, order, sizes, amounts)  # sorted: labels are, so codes keep their order
        place = np.searchsorted(whole, key)
        there = whole[np.minimum(place, len(whole) - 1)] == key
        before[place[there]] += amount[there]
        key, amount = (np.insert(old, place[~there], new[~there]) for old, new in ((whole, key), (before, amount)))
        del whole, before
    columns = dict(zip(order, unpack(key, sizes), strict=True))
    del key
    prefs = Comparisons(
        queries=labels["query"],
        items=labels["items"],
        start=Ragged.counted(columns.pop("query"), len(labels["query"])).start,
        count=narrow(amount),
        clusters=labels.get("clusters"),
        cluster=columns.get("cluster"),
        winner=columns["winner"],
        loser=columns["loser"],
        tie=columns["tie"].astype(bool) if ties else None,
    )
    known_items = pa.concat_tables(declared, promote_options="permissive") if declared else None
    return prefs if known_items is None else declare(prefs, (known_items["query"], known_items["item"]))


def _packed(
    parts: list[Part], labels: Mapping[str, Labels], order: Sequence[str], sizes: Sequence[int], amounts: Any
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return each judgment of parts as one integer, and its count; the parts are used up."""
    rows, begin = sum(map(len, parts)), 0
    key, count = np.zeros(rows, np.int64), np.empty(rows, amounts)
    while parts:
        part = parts.pop(0)
        place = {name: labels[name].codes_of(own.values).astype(np.int64) for name, own in part.labels.items()}
        for low in range(0, len(part), BLOCK):
            some = slice(low, min(low + BLOCK, len(part)))
            view = key[begin + some.start : begin + some.stop]
            count[begin + some.start : begin + some.stop] = part.columns["count"][some]
            for name, size in zip(order, sizes, strict=True):
                view <<= bit_width(size)
                codes = part.columns[name][some] if name in part.columns else np.zeros(1, np.int64)
                view |= codes if name == "tie" else place[ROLES[name]][codes]
        begin += len(part)
    return key, count


# -- the sum that is kept ------------------------------------------------------------------------------------------
def summed_in(path: Path) -> frozenset[str]:
    """Return the signs of the segments that a kept sum adds up; empty where the file is none."""
    try:
        known = json.loads(pa.ipc.open_file(_opened(path)[0]).schema.metadata[b"segments"])
        return frozenset(known)
    except (InputError, OSError, pa.ArrowException, ValueError, TypeError, KeyError):
        return frozenset()


def _opened(path: Path) -> tuple[pa.Buffer, bytes]:
    """Return what a kept sum says, on the disk, and its sign."""
    check_regular(path)
    with pa.memory_map(str(path)) as file:
        whole = file.read_buffer()
    end = max(len(whole) - SIGN, 0)
    return whole.slice(0, end), whole.slice(end).to_pybytes()


def drop_sums(folder: Path, segments: Collection[str]) -> None:
    """Remove the sums of what is not among these segments: somebody may have been forgotten."""
    for path in folder.iterdir():
        if KEPT.fullmatch(path.name) and not (frozenset[str]() < summed_in(path) <= set(segments)):
            files.remove(path)


def _write(part: Part, folder: Path, segments: Mapping[str, Path]) -> None:
    """Keep a sum beside its segments, by their signs, in the place of others: whole or not at all.

    A writer that takes a segment out removes it first, then the sums that are there; so one of the two sees the other.
    """
    if folder.is_symlink():
        return
    arrays: dict[str, pa.Array] = {name: labels.values for name, labels in part.labels.items()}
    arrays |= {f"code {name}": pa.array(codes) for name, codes in part.columns.items()}
    rows = {
        name: pa.LargeListArray.from_arrays(pa.array([0, len(one)], pa.int64()), one) for name, one in arrays.items()
    }
    table = pa.table(rows).replace_schema_metadata({"segments": json.dumps(sorted(segments))})

    def fill(temporary: Path) -> None:
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
        sign = bytes.fromhex(digest(temporary))
        with temporary.open("ab") as end:
            end.write(sign)

    name = hashlib.sha256(table.schema.metadata[b"segments"]).hexdigest()[:32]
    files.write_new(path := folder / f"codes-{name}.arrow", fill)
    for other in folder.iterdir():
        if KEPT.fullmatch(other.name) and other != path:
            files.remove(other)
    if not all(segment.exists() for segment in segments.values()):
        files.remove(path)


def _kept(folder: Path, segments: Collection[str]) -> tuple[frozenset[str], Part | None]:
    """Return the sum that was kept of the most of these segments, and of which; nothing where none checks."""
    known = {path: summed_in(path) for path in folder.iterdir() if KEPT.fullmatch(path.name)}
    for path in sorted(known, key=lambda path: -len(known[path])):
        if known[path] and known[path] <= set(segments):
            try:
                return known[path], _read(path)
            except (InputError, OSError, pa.ArrowException, ValueError, KeyError):
                continue  # damaged: the segments say it
    return frozenset(), None


def _read(path: Path) -> Part:
    said, sign = _opened(path)
    if hashlib.sha256(said).digest() != sign:
        raise ValueError(f"{path}: damaged")
    table = pa.ipc.open_file(said).read_all()
    arrays = {name: table[name].chunk(0).flatten() for name in table.column_names}
    columns = {name.removeprefix("code "): array for name, array in arrays.items() if name.startswith("code ")}
    labels = {name: Labels(array) for name, array in arrays.items() if not name.startswith("code ")}
    return Part(labels, {name: array.to_numpy(zero_copy_only=False) for name, array in columns.items()})
