"""Files of very many columns: the same answer as a narrow one, and work in proportion to the columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.io.engines.counting import WIDE, open_log
from concordant.io.log.formats import locate

COLUMNS = 20_000


def wide() -> pa.Table:
    others = {f"c{place}": ["1", "2", "3"] for place in range(COLUMNS)}
    return pa.table({**others, "winner": ["a", "b", "a"], "loser": ["b", "c", "b"]})


def _lines(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


WRITE: dict[str, Callable[[pa.Table, Path], object]] = {
    "w.csv": lambda table, path: pa.csv.write_csv(table, path),
    "w.tsv": lambda table, path: pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t")),
    "w.jsonl": _lines,
    "w.json": lambda table, path: path.write_text(json.dumps(table.to_pylist())),
    "w.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "w.arrow": lambda table, path: pa.feather.write_feather(table, path),
}


@pytest.mark.parametrize("name", WRITE)
def test_a_log_of_many_columns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITE[name](wide(), path)
    assert cc.read(path) == cc.read({"winner": ["a", "b", "a"], "loser": ["b", "c", "b"]})


@pytest.mark.parametrize("columns", [WIDE - 2, WIDE - 1])
def test_where_the_plain_reader_takes_over(columns: int, tmp_path: Path) -> None:
    """One column more, and DuckDB is not asked; both count alike."""
    path = tmp_path / "w.csv"
    names = ["winner", "loser", *[f"c{place}" for place in range(columns)]]
    rows = [f"{pair},{',' * (columns - 1)}" for pair in ("a,b", "b,c", "a,b")]
    path.write_text("\n".join([",".join(names), *rows]) + "\n")
    counter = open_log(locate(path), None, None, None)
    assert counter.engine == ("duckdb" if columns + 2 <= WIDE else "memory")
    assert cc.read(path) == cc.read({"winner": ["a", "b", "a"], "loser": ["b", "c", "b"]})


def test_a_header_that_repeats_itself(tmp_path: Path) -> None:
    """All names twice: said at once, with a few of them."""
    names = [f"c{place}" for place in range(COLUMNS)] * 2
    (tmp_path / "w.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    (tmp_path / "w.jsonl").write_text("{" + ",".join(f'"{name}":1' for name in names) + "}\n")
    for name in ("w.csv", "w.jsonl"):
        with pytest.raises(cc.InputError, match=f"and {COLUMNS - 8:,} more"):
            cc.read(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_features_of_many_columns(ending: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(4, 10_000))
    table = pa.table({"item": ["a", "b", "c", "d"]} | {f"x{place}": values[:, place] for place in range(10_000)})
    path = tmp_path / f"f.{ending}"
    WRITE[f"w.{ending}"](table, path)
    found = cc.read_features(path)
    assert found.names == tuple(table.column_names[1:]) and np.array_equal(found.X, values)
    if ending != "csv":
        blocks = np.concatenate([X for _, X in cc.FeatureFile(path).blocks()])
        assert np.array_equal(blocks, values)


def test_letor_files_that_are_small_and_huge(tmp_path: Path) -> None:
    """A few bytes may stand for a matrix larger than memory: refused before it is made."""
    path = tmp_path / "f.svm"
    path.write_text("1 qid:1 1:1 1000000:2\n0 qid:1 2:1\n")
    assert cc.read_features(path).X.shape == (2, 1_000_000)
    path.write_text("1 qid:1 1:1 10000001:2\n0 qid:1 2:1\n")
    with pytest.raises(
        cc.InputError, match="line 1: there is no feature 10000001; features are numbered from 1 to 10,000,000"
    ):
        cc.read_features(path)
    path.write_text("".join(f"{line % 2} qid:1 1:{line} 900000:1\n" for line in range(3000)))
    wide = cc.read_features(path).X  # 21 GB of numbers, of which 6,000 are not 0
    assert wide.shape == (3000, 900_000) and wide.nnz == 5999 + 1
