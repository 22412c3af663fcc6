"""Parquet and Arrow files with changed bytes, read in a process of its own: native readers may end the process.

``python tests/columnar.py COUNT SEED`` draws so many and counts what became of them.
"""

from __future__ import annotations

import collections
import io
import json
import selectors
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

import concordant as cc

__all__ = ["FILES", "fates", "mutant"]

HANGS = 30
"""Seconds after which a file hangs its reader."""
ROWS = 40


def _votes() -> pa.Table:
    random = Random(0)
    rows = [random.sample(["a", "b", "cc", "ddd", "é"], 2) for _ in range(ROWS)]
    winner, loser = zip(*rows)
    query = pa.array([f"q{row % 3}" for row in range(ROWS)]).dictionary_encode()
    return pa.table({"query": query, "winner": winner, "loser": loser, "count": list(range(1, ROWS + 1))})


def _features() -> pa.Table:
    items = [f"item {row}" for row in range(ROWS)]
    return pa.table({"item": items, "x": np.linspace(-1, 1, ROWS), "y": pa.array(range(ROWS), pa.int32())})


def _parquet(**options: Any) -> Callable[[pa.Table], bytes]:
    def write(table: pa.Table) -> bytes:
        buffer = io.BytesIO()
        pa.parquet.write_table(table, buffer, row_group_size=25, **options)
        return buffer.getvalue()

    return write


def _feather(compression: str) -> Callable[[pa.Table], bytes]:
    def write(table: pa.Table) -> bytes:
        buffer = io.BytesIO()
        pa.feather.write_feather(table, buffer, compression=compression, chunksize=25)
        return buffer.getvalue()

    return write


def _stream(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=25)
    return buffer.getvalue()


WRITERS = {
    "plain.parquet": _parquet(compression="none", use_dictionary=False),
    "snappy.parquet": _parquet(),
    "zstd.parquet": _parquet(compression="zstd", data_page_version="2.0"),
    "summed.parquet": _parquet(compression="zstd", write_page_checksum=True),
    "file.arrow": _feather("uncompressed"),
    "lz4.feather": _feather("lz4"),
    "zstd.feather": _feather("zstd"),
    "stream.arrow": _stream,
}
READERS: dict[str, Callable[[Path], Any]] = {
    "log": lambda path: cc.read(path),
    "log in memory": lambda path: cc.read(path, engine="memory"),
    "features": lambda path: cc.read_features(path),
    "feature file": lambda path: cc.FeatureFile(path),
}
FILES = [(name, reader) for reader in READERS for name in WRITERS]


def good(name: str, reader: str) -> bytes:
    return WRITERS[name](_votes() if reader.startswith("log") else _features())


def mutant(random: Random, data: bytes) -> bytes:
    """A few bytes flipped, set, cut out, doubled or swapped; half of them in the metadata at the end."""
    found = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        size = len(found)
        if size < 16:
            break
        at = random.randrange(size) if random.random() < 0.6 else random.randrange(max(0, size - 400), size)
        how = random.choice(["bit", "bit", "byte", "extreme", "cut", "drop", "double", "swap", "zeros"])
        if how == "bit":
            found[at] ^= 1 << random.randrange(8)
        elif how == "byte":
            found[at] = random.randrange(256)
        elif how == "extreme":
            width = random.choice([1, 2, 4, 8])
            value = random.choice([0, 1, -1, 127, -128, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))])
            value = max(min(value, 2 ** (8 * width - 1) - 1), -(2 ** (8 * width - 1)))
            found[at : at + width] = value.to_bytes(width, "little", signed=True)
        elif how == "cut":
            del found[at:]
        elif how == "drop":
            del found[at : at + random.choice([1, 2, 8, 64])]
        elif how == "double":
            found[at:at] = found[at : at + random.choice([1, 4, 32])]
        elif how == "swap":
            other = random.randrange(size)
            found[at], found[other] = found[other], found[at]
        else:
            length = random.choice([4, 16, 100])
            found[at : at + length] = bytes(len(found[at : at + length]))
    return bytes(found)


def _seen(what: Any) -> Any:
    """What was read, so that equal things are equal."""
    if isinstance(what, cc.Preferences):
        return what
    if isinstance(what, cc.FeatureFile):
        blocks = [X for _, X in what.blocks(missing="keep")]
        labels = [batch.to_pydict() for _, batch in what.labels()]
        return [np.concatenate(blocks).tolist(), labels]
    order = np.argsort(what.item)
    return [what.names, what.X[order].tolist(), what.items.tolist()]


def _work() -> None:
    """Answer lines ``name, reader, seed`` on stdin with what became of that mutant."""
    warnings.simplefilter("ignore")
    whole: dict[tuple[str, str], tuple[bytes, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            name, reader, seed = json.loads(line)
            path = Path(folder, name)
            if (name, reader) not in whole:
                path.write_bytes(good(name, reader))
                whole[name, reader] = good(name, reader), _seen(READERS[reader](path))
            data, expected = whole[name, reader]
            path.unlink(missing_ok=True)  # what is mapped into memory stays as it was
            path.write_bytes(mutant(Random(seed), data))
            try:
                fate = "same" if _seen(READERS[reader](path)) == expected else "other"
            except cc.ConcordantError:
                fate = "refused"
            except MemoryError:
                fate = "no memory"
            except Exception as error:
                fate = f"{type(error).__name__}: {error}"
            print(json.dumps(fate), flush=True)


def fates(cases: Iterator[tuple[str, str, int]]) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Yield what became of each (name, reader, seed): refused, same, other, crash, hang, or an error by its name."""
    worker: Any = None
    try:
        for case in cases:
            if worker is None:
                worker = subprocess.Popen(
                    [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True,
                )  # fmt: skip
            worker.stdin.write(json.dumps(case) + "\n")
            worker.stdin.flush()
            with selectors.DefaultSelector() as heard:
                heard.register(worker.stdout, selectors.EVENT_READ)
                ready = heard.select(HANGS if case else 0)
            line = worker.stdout.readline() if ready else ""
            yield case, json.loads(line) if line else "crash" if ready else "hang"
            if not line:
                worker.kill()
                worker.communicate()
                worker = None
    finally:
        if worker is not None:
            worker.communicate()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _work()
    else:
        count, first = int(sys.argv[1]), int(sys.argv[2])
        drawn = ((*FILES[number % len(FILES)], first + number) for number in range(count))
        table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for case, fate in fates(drawn):
            table[case[:2]][fate[:60]] += 1
            if fate not in ("refused", "same", "other"):
                print(case, fate[:200], flush=True)
        for key, counts in sorted(table.items()):
            print(*key, dict(counts))
