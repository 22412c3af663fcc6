"""What is said to be immutable cannot be written, what was given stays the caller's own, and copies are alike."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import concordant as cc

GIVEN: dict[str, np.ndarray[Any, Any]] = {
    "winner": np.array([0, 1, 2, 0, 1], np.int32),
    "loser": np.array([1, 2, 0, 2, 0], np.int32),
    "query": np.array([0, 0, 0, 0, 0], np.int32),
    "weight": np.array([1.0, 2.0, 1.0, 1.0, 0.5]),
    "count": np.array([3, 1, 2, 5, 1]),
    "tie": np.array([False, False, True, False, False]),
    "cluster": np.array([0, 1, 1, 0, 1]),
}


def made() -> dict[str, Any]:
    """Everything that promises to be immutable, by name."""
    votes = cc.Preferences.from_comparisons(**GIVEN, covariates={"x": np.arange(5.0)})
    orders = cc.Preferences.from_orders([0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 2.0, np.nan])
    plain = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"])
    return {
        "comparisons": votes,
        "orders": orders,
        "select": votes.select([0]),
        "pool": votes.pool(),
        "fold": votes.folds(2)[0],
        "sum": plain + plain,
        "empty": cc.Preferences.empty(),
        "ranking": cc.rank(plain),
        "ranking with coefficients": cc.rank(plain, ties="davidson", interval="none"),
        "features": cc.Features.of(np.ones((2, 2)), ["x", "y"], ["q", "q"]),
        "some features": cc.Features.of(np.ones((2, 2)), ["x", "y"]).take(np.array([True, False])),
    }


def arrays(value: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of a value, views that it hands out included."""
    handed = {name: getattr(value, name) for name in ("judgments", "query", "members", "count") if hasattr(value, name)}
    for name, field in {**vars(value), **handed}.items():
        if isinstance(field, np.ndarray):
            yield name, field
        elif isinstance(field, tuple | dict):
            parts = field.values() if isinstance(field, dict) else field
            yield from ((name, part) for part in parts if isinstance(part, np.ndarray))


@pytest.mark.parametrize("how", ["made", "copied", "deeply copied", "pickled"])
@pytest.mark.parametrize("name", sorted(made()))
def test_no_array_can_be_written(name: str, how: str) -> None:
    value = made()[name]
    again = {"made": lambda x: x, "copied": copy.copy, "deeply copied": copy.deepcopy}.get(
        how, lambda x: pickle.loads(pickle.dumps(x))
    )(value)
    found = list(arrays(again))
    assert found
    for of, array in found:
        assert not array.flags.writeable, of
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array
    with pytest.raises(FrozenInstanceError):
        again.queries = None
    if isinstance(value, cc.Preferences):
        assert again == value


def test_what_was_given_stays_the_callers() -> None:
    own = {name: column.copy() for name, column in GIVEN.items()}
    before = cc.Preferences.from_comparisons(**own)
    for name, column in own.items():
        assert column.flags.writeable, name
        assert np.array_equal(column, GIVEN[name]), name
        assert not any(np.shares_memory(column, array) for _, array in arrays(before)), name
        column[...] = column[::-1].copy()
    assert before == cc.Preferences.from_comparisons(**GIVEN)
    X = np.ones((2, 2))
    cc.Features.of(X, ["x", "y"])
    assert X.flags.writeable
    lists = [np.array([0, 0]), np.array([0, 0]), np.array([1, 2]), np.array([1.0, 2.0])]
    orders = cc.Preferences.from_orders(*lists)
    for column in lists:
        assert column.flags.writeable
        assert not any(np.shares_memory(column, array) for _, array in arrays(orders))
