"""Lakes as they lie, drawn: folders of files whose columns come and go; and a plain reading of them, without us."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet

Rows = list[dict[str, Any]]
LANGS = ("01", "1", "pt/BR", "a b%20+é", "=", None)
"""Values of folders that a reader may take for something else."""
JUNK = ("_SUCCESS", ".part-0.crc", "part-0.parquet.crc", "_temporary/0/part-9.csv", ".hidden/x.csv", "part-7.csv.tmp")


def day_of(number: int) -> str:
    return f"2026-11-{number + 1:02d}"


def drawn_lake(random: np.random.Generator, root: Path, form: str) -> Rows:
    """Write a lake of files of a format under a folder and return its rows, the columns of folders included."""
    tree = random.choice(["flat", "hive", "nested", "firehose"])
    rows: Rows = []
    integers = form != "csv" and random.random() < 0.5  # of winners and losers
    inside = form != "csv" and random.random() < 0.4  # the vote lies in an object
    for number in range(int(random.integers(2, 6))):
        folders: dict[str, Any] = {}
        if tree in ("hive", "nested"):
            folders["day"] = day_of(number // 2)
        if tree == "nested":
            folders["lang"] = LANGS[random.integers(len(LANGS))]
        way = [f"{name}={_escaped(value)}" for name, value in folders.items()]
        way = ["2026", "11", f"{number + 1:02d}", "09"] if tree == "firehose" else way
        place = root.joinpath(*way)
        place.mkdir(parents=True, exist_ok=True)
        extra = random.permutation(["worker", "reason", "seconds"])[: random.integers(0, 4)].tolist()
        size = 0 if random.random() < 0.2 else int(random.integers(1, 30))
        found: Rows = []
        for _ in range(size):
            one, other = (int(item) for item in random.permutation(6)[:2])
            row: dict[str, Any] = {"winner": one, "loser": other}
            if not integers:
                row = {name: f"i {item}, é" for name, item in row.items()}
            more = {"worker": f"w{random.integers(4)}", "reason": None, "seconds": int(random.integers(1, 5))}
            found.append(row | {name: more[name] for name in extra})
        wide = form == "parquet" and integers and random.random() < 0.3  # the same items, written as texts
        _write(place / f"part-{number}", found, ["winner", "loser", *extra], form, random, inside, wide)
        rows += [{**row, **folders} for row in found]
    for junk in JUNK:
        if random.random() < 0.5:
            (root / junk).parent.mkdir(parents=True, exist_ok=True)
            (root / junk).write_text("winner,loser\nx,x\n")
    return rows


def _escaped(value: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe=" é")


def _write(
    stem: Path, rows: Rows, columns: list[str], form: str, random: np.random.Generator, inside: bool, texts: bool
) -> None:
    columns = random.permutation(columns).tolist()
    if form == "parquet":
        names = [*columns]
        kinds = {"seconds": [pa.int8(), pa.int64(), pa.float64()][random.integers(3)], "reason": pa.string()}
        found: dict[str, Any] = {}
        for name in names:
            values = [row[name] for row in rows]
            kind = kinds.get(name) or ([pa.int16(), pa.int64()][random.integers(2)] if _whole(values) else pa.string())
            if texts and name in ("winner", "loser"):
                values, kind = [str(value) for value in values], pa.string()
            found[name] = pa.array(values, pa.null() if not values and random.random() < 0.3 else kind)
        table = pa.table(found)
        if inside:
            vote = pa.StructArray.from_arrays([table[name].combine_chunks() for name in ("winner", "loser")],
                                              ["winner", "loser"])  # fmt: skip
            table = table.drop_columns(["winner", "loser"]).append_column("vote", vote)
        pa.parquet.write_table(table, stem.with_suffix(".parquet"), row_group_size=7)
    elif form == "json":
        lines = []
        for row in rows:
            shown: dict[str, Any] = {name: row[name] for name in columns if row[name] is not None}
            if inside:
                shown["vote"] = {name: shown.pop(name) for name in ("loser", "winner")}
            lines.append(json.dumps(shown, ensure_ascii=bool(random.integers(2))) + "\n")
        _text(stem, ".jsonl", "".join(lines), random)
    else:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n" if random.random() < 0.3 else "\n")
        writer.writerow(columns)
        writer.writerows([row[name] for name in columns] for row in rows)
        _text(stem, ".csv", out.getvalue() if rows or random.random() < 0.5 else "", random)


def _whole(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _text(stem: Path, ending: str, text: str, random: np.random.Generator) -> None:
    if random.random() < 0.4:
        Path(f"{stem}{ending}.gz").write_bytes(gzip.compress(text.encode()))
    else:
        Path(f"{stem}{ending}").write_bytes(text.encode())


def plainly_read(root: Path) -> Rows:
    """Read a lake by the standard library and PyArrow, row by row: what any reader should find."""
    rows: Rows = []
    for path in sorted(root.rglob("*.*")):
        inside = path.relative_to(root)
        if any(part.startswith((".", "_")) for part in inside.parts) or path.suffix in (".crc", ".tmp"):
            continue
        if not path.is_file():
            continue
        folders = {}
        for name, mark, value in (part.partition("=") for part in inside.parts[:-1]):
            if mark:
                folders[name] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
        if path.suffix == ".parquet":
            found = pa.parquet.ParquetFile(path).read().to_pylist()
        else:
            text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
            if ".jsonl" in path.name:
                found = [json.loads(line) for line in text.split("\n") if line]
            else:
                found = [
                    {name: value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))
                ]
        for row in found:
            whole = {**row, **(row.pop("vote", None) or {})}
            whole.pop("vote", None)
            rows.append({**whole, **folders})
    return rows
