"""Rows that are alike, against NumPy's distinct rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from tests.seeds import seed

import concordant as cc
from concordant.preferences.counts import rows_alike
from concordant.preferences.labels import crossed


def against_numpy(*columns: NDArray[Any]) -> None:
    first, kind = rows_alike(*columns)
    ranks = [np.unique(column, return_inverse=True)[1] for column in columns]  # of one type, in the same order
    _, theirs, code = np.unique(np.column_stack(ranks), axis=0, return_index=True, return_inverse=True)
    assert first.tolist() == theirs.tolist() and kind.tolist() == code.ravel().tolist()
    assert first.dtype == kind.dtype == np.int64


@pytest.mark.parametrize("number", [0, 1, 7, 400])
@pytest.mark.parametrize("width", [1, 3, 1 << 10, 1 << 35])
def test_rows_are_those_of_numpy(number: int, width: int) -> None:
    """By a table, by a key of at most 62 bits, and column after column."""
    rng = np.random.default_rng(seed(21))
    few = rng.integers(-width, width, min(5, max(number, 1)))
    one, other = rng.choice(few, number), rng.choice(few, number).astype(np.int64)
    against_numpy(one)
    against_numpy(one, other)
    against_numpy(one, other, rng.choice([-0.0, 0.0, 0.5, 1e300], number))
    against_numpy(one % 2 == 0, (one % 100).astype(np.int32), rng.normal(size=number))


def test_numbers_of_all_64_bits() -> None:
    """Such as the bits of floats; their range fits into no integer."""
    ends = np.array([-(2**63), 2**63 - 1, 0, -(2**63), 2**63 - 1])
    against_numpy(ends, np.array([1, 0, 0, 1, 1]))
    against_numpy(np.array([0.5, -0.5, 0.5]).view(np.int64), np.array([2, 1, 2]))


def test_cells_of_columns_of_which_one_is_empty() -> None:
    """Nobody is in a cell then; which rows have none is told where they are read."""
    empty = pa.array([None, None], pa.string())
    assert crossed([empty, pa.array(["p", "q"])]).to_pylist() == [None, None]
    assert crossed([pa.array(["a", None, "a"]), pa.array([1, 2, 1])]).to_pylist() == ['["a", 1]', None, '["a", 1]']
    log = {"winner": ["a", "b"], "loser": ["b", "a"], "judge": empty, "prompt": ["p", "q"]}
    with pytest.raises(cc.InputError, match="2 of 2 rows have no cluster"):
        cc.read(log, cluster=("judge", "prompt"))
