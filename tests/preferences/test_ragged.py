"""Laws of ragged arrays, against plain loops over the groups."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.preferences.ragged import Ragged

SIZES = st.lists(st.integers(0, 4), max_size=7)
VALUES = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def filled(draw, width=None):
    """Groups, and a value (or a row of values) for each entry."""
    groups = Ragged.of_sizes(np.array(draw(SIZES), np.int64))
    shape = (int(groups.start[-1]),) if width is None else (int(groups.start[-1]), width)
    numbers = draw(st.lists(VALUES, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return groups, np.array(numbers, np.float64).reshape(shape)


def rows_of(groups):
    return [list(range(int(a), int(b))) for a, b in zip(groups.start[:-1], groups.start[1:], strict=True)]


@given(SIZES)
def test_sizes_owner_place_and_slices(sizes):
    groups = Ragged.of_sizes(np.array(sizes, np.int64))
    rows = rows_of(groups)
    assert len(groups) == len(sizes)
    assert groups.sizes.tolist() == [len(row) for row in rows] == sizes
    assert groups.owner.tolist() == [g for g, row in enumerate(rows) for _ in row]
    assert groups.place.tolist() == [place for row in rows for place, _ in enumerate(row)]
    assert [list(range(part.start, part.stop)) for part in groups.slices] == rows
    assert Ragged.counted(groups.owner, len(groups)).start.tolist() == groups.start.tolist()
    assert all(column.dtype == np.int64 for column in (groups.start, groups.sizes, groups.owner, groups.place))


@given(filled())
def test_sums_add_entry_after_entry(given_groups):
    groups, values = given_groups
    plain = np.zeros(len(groups))
    for g, row in enumerate(rows_of(groups)):
        for entry in row:
            plain[g] += values[entry]
    assert groups.sums(values).tolist() == plain.tolist()
    assert groups.spread(plain).tolist() == [plain[g] for g in groups.owner]


@given(filled())
def test_most_and_least(given_groups):
    groups, values = given_groups
    rows = rows_of(groups)
    assert groups.most(values, -np.inf).tolist() == [max(values[row], default=-np.inf) for row in rows]
    assert groups.least(values, np.inf).tolist() == [min(values[row], default=np.inf) for row in rows]


@given(filled(width=2))
def test_rows_as_columns(given_groups):
    groups, values = given_groups
    for whole in (groups.most, groups.least, groups.centred):
        together = whole(values)
        assert together.shape[1:] == values.shape[1:]
        for column in range(2):
            np.testing.assert_array_equal(together[:, column], whole(values[:, column]))
    assert values.shape == groups.spread(np.zeros((len(groups), 2))).shape


@given(filled())
def test_centred_values_have_mean_zero(given_groups):
    groups, values = given_groups
    plain = values.copy()
    for row in rows_of(groups):
        plain[row] -= values[row].mean() if row else 0.0
    np.testing.assert_allclose(groups.centred(values), plain, atol=1e-10)
    np.testing.assert_allclose(groups.sums(groups.centred(values)), 0.0, atol=1e-10)


@given(SIZES, st.data())
def test_taken_groups_stand_one_behind_the_other(sizes, data):
    groups = Ragged.of_sizes(np.array(sizes, np.int64))
    chosen = data.draw(st.lists(st.integers(0, max(len(sizes) - 1, 0)), max_size=8 if sizes else 0))
    taken, entries = groups.take(np.array(chosen, np.int64))
    rows = rows_of(groups)
    assert taken.sizes.tolist() == [sizes[g] for g in chosen]
    assert entries.tolist() == [entry for g in chosen for entry in rows[g]]


@given(SIZES)
def test_pairs(sizes):
    groups = Ragged.of_sizes(np.array(sizes, np.int64))
    plain = [(a, b) for row in rows_of(groups) for a in row for b in row if a < b]
    assert list(zip(*(side.tolist() for side in groups.pairs()), strict=True)) == plain


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.5])), max_size=12))
def test_runs_are_neighbours_equal_in_every_key(keys):
    runs = Ragged.runs(np.array([a for a, _ in keys], np.int64), np.array([b for _, b in keys]))
    rows = rows_of(runs)
    assert [entry for row in rows for entry in row] == list(range(len(keys)))
    assert all(row and len({keys[entry] for entry in row}) == 1 for row in rows)
    assert all(keys[one[-1]] != keys[other[0]] for one, other in pairwise(rows))


@pytest.mark.parametrize("groups", [Ragged(np.zeros(1, np.int64)), Ragged(np.zeros(4, np.int64))])
def test_no_entries(groups):
    none = np.zeros(0)
    assert groups.owner.tolist() == groups.centred(none).tolist() == groups.pairs()[0].tolist() == []
    assert groups.sums(none).tolist() == groups.most(none).tolist() == [0.0] * len(groups)
