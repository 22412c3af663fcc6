"""Preferences: the laws of the counted multiset, against Python's own Counter."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.errors import ConcordantError, UsageError
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists

LABEL = st.one_of(st.sampled_from("abcd"), st.text(max_size=3))
ROWS = st.lists(
    st.tuples(LABEL, LABEL, LABEL, st.booleans(), st.sampled_from([0.5, 1.0, 2.0]), st.integers(1, 3)).filter(
        lambda row: row[1] != row[2]
    ),
    max_size=12,
)


def build(rows):
    if not rows:
        return Preferences.empty()
    query, winner, loser, tie, weight, count = (list(column) for column in zip(*rows, strict=True))
    return counted_comparisons(
        winner, loser, query=query, tie=np.array(tie), weight=np.array(weight), count=np.array(count)
    )


def contents(prefs):
    """What a Preferences holds, as a Counter of plain tuples."""
    held = Counter()
    for j in range(prefs.distinct):
        pair = prefs.items[prefs.winner[j]], prefs.items[prefs.loser[j]]
        tied = prefs.tie is not None and bool(prefs.tie[j])
        weight = 1.0 if prefs.weight is None else float(prefs.weight[j])
        key = (prefs.queries[prefs.query[j]], frozenset(pair) if tied else pair, weight)
        held[key] += int(prefs.count[j])
    return held


def plain(rows):
    held = Counter()
    for query, winner, loser, tie, weight, count in rows:
        held[query, frozenset((winner, loser)) if tie else (winner, loser), weight] += count
    return held


@given(ROWS)
def test_counts_are_those_of_a_counter(rows):
    assert contents(build(rows)) == plain(rows)
    assert len(build(rows)) == sum(row[-1] for row in rows)


@given(ROWS, st.randoms(), st.integers(1, 4))
def test_any_partition_in_any_order_merges_to_equal_bits(rows, random, parts):
    whole = build(rows)
    shuffled = random.sample(rows, len(rows))
    pieces = [build(shuffled[i::parts]) for i in range(parts)]
    random.shuffle(pieces)
    merged = sum(pieces, Preferences.empty())
    assert merged == whole
    assert merged.count.dtype == whole.count.dtype
    assert [x.tobytes() for x in (merged.start, merged.count)] == [x.tobytes() for x in (whole.start, whole.count)]


@given(ROWS)
def test_count_is_repetition(rows):
    repeated = [(*row[:-1], 1) for row in rows for _ in range(row[-1])]
    assert build(repeated) == build(rows)


@given(ROWS, st.integers(1, 4), st.integers(0, 3))
def test_folds_partition_the_judgments(rows, n, seed):
    whole = build(rows)
    folds = whole.folds(n, seed=seed)
    assert sum(folds, Preferences.empty()) == whole
    sizes = [len(fold) for fold in folds]
    assert sum(sizes) == len(whole)
    assert max(sizes) - min(sizes) <= len(whole.queries)


@given(ROWS)
def test_selection_of_queries(rows):
    whole = build(rows)
    chosen = {row[0] for row in rows[::2]}
    assert whole.select(sorted(chosen)) == build([row for row in rows if row[0] in chosen])


def test_unequal_contents_differ():
    a = counted_comparisons(["x"], ["y"])
    for other in (
        counted_comparisons(["y"], ["x"]),
        counted_comparisons(["x"], ["y"], count=np.array([2])),
        counted_comparisons(["x"], ["y"], weight=np.array([2.0])),
        counted_comparisons(["x"], ["y"], tie=np.array([True])),
        counted_comparisons(["x"], ["y"], query=["q"]),
        counted_comparisons(["x"], ["y"], cluster=["w"]),
        counted_comparisons(["x"], ["y"], declared=(None, ["z"])),
        Preferences.empty(),
    ):
        assert a != other


def test_empty_is_neutral_and_has_no_length():
    a = counted_comparisons([3, 1], [1, 2])
    assert a + Preferences.empty() == a == Preferences.empty() + a
    assert len(Preferences.empty()) == 0
    assert Preferences.empty() == Preferences()


def test_integer_labels_are_sorted_as_numbers_and_texts_by_code_point():
    assert counted_comparisons([10, 9], [9, -5]).items.tolist() == [-5, 9, 10]
    assert counted_comparisons(["Z", "a"], ["é", "B"]).items.tolist() == ["B", "Z", "a", "é"]


@pytest.mark.parametrize("spread", [1, 10**15])
def test_integer_codes_do_not_depend_on_the_way_they_were_found(spread):
    values = np.array([5, 3, 5, -2]) * spread
    labels, codes = Labels.encode(values)
    assert labels.tolist() == sorted(set(values.tolist()))
    assert [labels[c] for c in codes] == values.tolist()


def test_labels_from_a_dictionary_with_unused_and_repeated_entries():
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 3, 0]), pa.array(["b", "unused", "a", "b"]))
    labels, codes = Labels.encode(column)
    assert labels.tolist() == ["a", "b"]
    assert codes.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("column", [["a", 1], [1.5], [True, False], [None, "a"], [b"x"], [2**64]])
def test_labels_of_other_types_are_refused(column):
    with pytest.raises(ConcordantError):
        Labels.encode(column)


def test_integers_and_texts_do_not_merge():
    with pytest.raises(ConcordantError, match=r"integers .* texts"):
        counted_comparisons([1], [2]) + counted_comparisons(["1"], ["2"])


def test_kinds_do_not_merge():
    ratings = counted_lists("ratings", np.array([0, 2]), ["a", "b"], np.array([1.0, 3.0]))
    with pytest.raises(UsageError, match="comparisons with ratings"):
        counted_comparisons(["a"], ["b"]) + ratings


def test_unknown_query_is_named():
    with pytest.raises(UsageError, match="'nope'"):
        counted_comparisons(["a"], ["b"], query=["q"]).select(["nope"])


LISTS = st.lists(
    st.tuples(st.sampled_from("pq"), st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=3,
                                              unique_by=lambda entry: entry[0]), st.integers(1, 2)),
    max_size=8,
)  # fmt: skip


def build_lists(kind, rows):
    if not rows:
        return Preferences.empty()
    lengths = [len(entries) for _, entries, _ in rows]
    flat = [entry for _, entries, _ in rows for entry in entries]
    return counted_lists(
        kind,
        np.concatenate(([0], np.cumsum(lengths))),
        [item for item, _ in flat],
        np.array([value for _, value in flat], float),
        query=[query for query, _, _ in rows],
        count=np.array([count for _, _, count in rows]),
    )


def plain_lists(kind, rows):
    held = Counter()
    for query, entries, count in rows:
        if kind == "orders":
            ranks = sorted({rank for _, rank in entries})
            content = frozenset((item, ranks.index(rank) + 1.0) for item, rank in entries)
        elif kind == "selections":
            content = tuple(entries)
        else:
            content = frozenset(entries)
        held[query, content] += count
    return held


def contents_of_lists(prefs):
    held = Counter()
    for j in range(prefs.distinct):
        begin, end = prefs.list_start[j : j + 2]
        entries = [(prefs.items[i], v) for i, v in zip(prefs.list_item[begin:end], prefs.list_value[begin:end])]
        content = tuple(entries) if prefs.kind == "selections" else frozenset(entries)
        held[prefs.queries[prefs.query[j]], content] += int(prefs.count[j])
    return held


@pytest.mark.parametrize("kind", ["orders", "selections", "choices", "ratings"])
@given(rows=LISTS, random=st.randoms())
def test_lists_are_counted_as_a_counter_does_and_merge(kind, rows, random):
    whole = build_lists(kind, rows)
    assert contents_of_lists(whole) == plain_lists(kind, rows)
    shuffled = random.sample(rows, len(rows))
    assert build_lists(kind, shuffled[::2]) + build_lists(kind, shuffled[1::2]) == whole
    assert sum(whole.folds(2), Preferences.empty()) == whole


def test_declared_items_stay_through_merge_and_are_forgotten_when_judged():
    a = counted_comparisons(["x"], ["y"], declared=(None, ["z", "x"]))
    assert a.summary()["never judged"] == 1
    judged = counted_comparisons(["z"], ["y"])
    assert (a + judged).summary().get("never judged") is None
    assert (a + judged).items.tolist() == ["x", "y", "z"]
    assert (a + a).declared.tolist() == a.declared.tolist()


def test_wide_keys_are_counted_too():
    """Sizes whose product passes 62 bits take the row-wise way and give the same counts."""
    rng = np.random.default_rng(0)
    winner, loser = rng.integers(0, 2**62, (2, 50))
    query, cluster = rng.integers(0, 2**62, (2, 50))
    weight = rng.random(50)
    prefs = counted_comparisons(winner, loser, query=query, cluster=cluster, weight=weight, count=np.full(50, 2**33))
    double = prefs + prefs
    assert len(double) == 2 * 50 * 2**33
    assert double.distinct == 50
    big = np.tile(np.arange(70_000), 2)
    wide = {"query": big, "cluster": big, "weight": big + 1.0}
    prefs = counted_comparisons(big, big + 1, **wide)
    assert prefs.distinct == 70_000
    assert (prefs.count == 2).all()
