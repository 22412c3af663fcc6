"""Parquet and Arrow files with changed bytes: no reader ends the process, hangs, or fails with a traceback.

A changed byte in a file without checksums can be another value: no reader can tell. Where pages have checksums, as in
what concordant writes, every changed value is refused.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import concordant as cc
from columnar import FILES, fates
from hostile import good_files
from running import exit_status

EACH = 10
"""Drawn files of each format for each reader; ``python tests/columnar.py COUNT SEED`` draws more."""


def test_drawn_damage() -> None:
    drawn = ((*FILES[number % len(FILES)], number) for number in range(EACH * len(FILES)))
    counts = {"refused": 0, "same": 0, "other": 0}
    for (name, reader, seed), fate in fates(drawn):
        assert fate in counts, (name, reader, seed, fate)
        assert fate != "other" or name != "summed.parquet", (name, reader, seed)
        counts[fate] += 1
    assert counts["refused"] > sum(counts.values()) / 2


def _table() -> pa.Table:
    return pa.table({"winner": ["a", "b", "c"] * 40, "loser": ["b", "c", "a"] * 40, "count": list(range(1, 121))})


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_every_byte_of_a_parquet_file_with_checksums(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    pa.parquet.write_table(_table(), path, compression="none", write_page_checksum=True)
    good, expected, refused = path.read_bytes(), cc.read(path), 0
    pages = range(4, len(good) - 8 - int.from_bytes(good[-8:-4], "little"), 9 if engine == "duckdb" else 1)
    for at in pages:
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        try:
            assert cc.read(path, engine=engine) == expected, at
        except cc.InputError:
            refused += 1
    assert refused > 0.9 * len(pages)  # some bytes of the heads of pages are statistics, which nothing reads


def test_what_we_write_has_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed value in a ranking, in scores that were streamed and in what a store exports is refused."""
    monkeypatch.chdir(tmp_path)
    for name in ("votes.csv", "features.csv", "features.parquet"):
        Path(name).write_bytes(good_files()[name])
    assert exit_status("rank", "votes.csv", "-o", "ranking.parquet", "-q") == 0
    assert exit_status("fit", "votes.csv", "-f", "features.csv", "-m", "model", "--loss", "ranknet", "-q") == 0
    assert exit_status("score", "-m", "model", "-f", "features.parquet", "--stream", "-o", "scores.parquet", "-q") == 0
    assert exit_status("ingest", "votes.csv", "--store", "s.store", "-q") == 0
    assert exit_status("store", "export", "s.store", "-o", "export.parquet", "-q") == 0
    for name in ("ranking.parquet", "scores.parquet", "export.parquet"):
        data = Path(name).read_bytes()
        with pa.parquet.ParquetFile(name) as file:
            names = file.schema_arrow.names
            column = file.metadata.row_group(0).column(names.index("item" if "item" in names else "winner"))
        begin = column.dictionary_page_offset or column.data_page_offset
        last = begin + column.total_compressed_size - 1
        Path(name).write_bytes(data[:last] + bytes([data[last] ^ 1]) + data[last + 1 :])
        with pytest.raises((OSError, pa.ArrowException)):
            pa.parquet.read_table(name, page_checksum_verification=True)


def test_a_stream_that_was_cut_between_two_batches(tmp_path: Path) -> None:
    """Rows would be missing without a word; so would those of a second stream in the same file."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=50)
    whole = buffer.getvalue()
    path = tmp_path / "v.arrow"
    path.write_bytes(whole)
    assert len(cc.read(path)) == np.arange(1, 121).sum()
    for data in (whole[:-8], whole + whole):
        path.write_bytes(data)
        for engine in ("duckdb", "memory"):
            with pytest.raises(cc.InputError, match="end mark"):
                cc.read(path, engine=engine)
    path.write_bytes(whole[: whole.rindex(b"\xff\xff\xff\xff", 0, -8)])
    with pytest.raises(cc.InputError, match="end mark"):
        cc.read(path)


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    """Mapped into memory, it would end the process."""
    path = tmp_path / "f.arrow"
    table = pa.table({"item": pa.array(range(1_000_000)), "x": np.arange(1e6)})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    blocks = cc.FeatureFile(path).blocks()
    next(blocks)
    with open(path, "r+b") as file:
        file.truncate(4096)
    with pytest.raises(cc.InputError, match="cannot be read as arrow"):
        list(blocks)
