"""Compiled loops against their plain twins, and what they may not depend on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import concordant as cc
from concordant.kernels import compiled as compiling
from concordant.kernels import draws as kernels
from concordant.kernels.pair_maxima import pair_maxima
from concordant.learning.targets import log_odds
from concordant.learning.targets.log_odds import LogOddsTargets
from concordant.learning.targets.mean_targets import Targets, mean_targets, mean_targets_of_orders
from concordant.preferences import sampling
from concordant.preferences.counted import declare
from concordant.preferences.labels import Labels
from concordant.preferences.sampling import draw_subsets, label_keys
from concordant.ranking import largest as largest_file
from concordant.ranking.largest import critical
from concordant.ranking.largest import largest as largest_differences
from concordant.ranking.structures import structure
from concordant.stages import Aside

FIELDS = ("start", "value", "error", "weight", "drawn", "zero", "exact")


def same_bits(left: Targets, right: Targets) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


def plainly(prefs: cc.Preferences, **arguments: Any) -> Targets:
    """The twin: the same structure as a function that no quick way is known for."""
    return mean_targets(prefs, lambda batch, **options: structure("log-odds")(batch, **options), **arguments)


def log_of(seed: int, rows: int, queries: int, items: int, most: int, ties: bool) -> cc.Preferences:
    """Random comparisons with counts, and a query that is declared with one item and no judgment."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, queries, rows)
    winner = rng.integers(0, items, rows)
    loser = (winner + rng.integers(1, items, rows)) % items
    tie = rng.random(rows) < 0.3 if ties else None
    count = rng.integers(1, most + 1, rows)
    prefs = cc.Preferences.from_comparisons(winner, loser, query=query, tie=tie, count=count)
    return declare(prefs, ([queries + 5], [items + 3]))


# -- the twin ------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(1, 1, 2), (12, 3, 3), (60, 4, 9), (200, 3, 40)]),
    st.sampled_from([1, 3, 40]),
    st.booleans(),
    st.sampled_from(["all", 1, 2, 5, 17, 60]),
    st.sampled_from([(1, True), (7, True), (7, False), (40, True)]),
    st.sampled_from([("2^s-1", True, None), ("2^s", True, 3), ("identity", True, None), ("2^s-1", False, None)]),
    st.sampled_from([0.5, 0.01, 3.0]),
)
def test_the_kernel_is_its_twin(
    seed: int,
    shape: tuple[int, int, int],
    most: int,
    ties: bool,
    order: int | str,
    drawing: tuple[int, bool],
    gains: tuple[str, bool, int | None],
    c0: float,
) -> None:
    prefs = log_of(seed, *shape, most, ties)
    arguments: dict[str, Any] = {"order": order, "options": {"c0": c0}, "seed": seed}
    arguments |= dict(zip(("subsets", "partition"), drawing)) | dict(zip(("gain", "normalise", "at"), gains))
    quick, plain = mean_targets(prefs, **arguments), plainly(prefs, **arguments)
    scale = np.abs(plain.value).max(initial=1.0)
    np.testing.assert_allclose(quick.value, plain.value, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(quick.error, plain.error, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_array_equal(quick.zero, plain.zero)
    np.testing.assert_array_equal(quick.drawn, plain.drawn)


def test_the_quick_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = log_of(0, 50, 3, 5, 2, True)
    filled = []
    fill = LogOddsTargets.fill
    monkeypatch.setattr(
        LogOddsTargets, "fill", lambda self, codes, *rest: filled.append(codes) or fill(self, codes, *rest)
    )
    mean_targets(prefs, order=5)
    assert filled[0].tolist() == list(range(len(prefs.queries)))
    mean_targets(prefs, "borda", order=5)
    mean_targets(prefs, order=5, gain=lambda s: s)
    mean_targets(prefs, order="all", options={"c0": 1e-9})
    assert len(filled) == 1


@pytest.mark.parametrize("k", [3, 40, 4000])
def test_few_out_of_many_and_scores_of_many_levels(k: int) -> None:
    """Draws that are collected, buckets that hold several scores, queries too large for integers beside small ones."""
    rng = np.random.default_rng(k)
    winner = np.concatenate([rng.integers(0, 300, 4000), rng.integers(0, 20_000, 30_000)])
    loser = (winner + 1 + rng.integers(0, 200, 34_000)) % 20_000
    query = np.repeat([0, 1], [4000, 30_000])
    prefs = cc.Preferences.from_comparisons(winner, loser, query=query, count=rng.integers(1, 30, 34_000))
    quick = mean_targets(prefs, order=k, subsets=3)
    plain = plainly(prefs, order=k, subsets=3)
    np.testing.assert_allclose(quick.value, plain.value, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(quick.error, plain.error, rtol=1e-9, atol=1e-13)


def test_large_queries_go_the_plain_way_each_by_itself() -> None:
    prefs = cc.Preferences.from_comparisons(np.arange(40_000) + 1, np.zeros(40_000, int), query=[0] * 39_999 + [1])
    quick = LogOddsTargets.of(prefs, label_keys(prefs.queries, 0), {}, "2^s-1", 1.0, None)
    assert quick is not None and quick.covered(prefs.judgments, None).tolist() == [False, True]
    assert quick.covered(prefs.judgments, 100).all()


# -- draws ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("partition", [False, True])
def test_draws_by_either_way_are_equal(partition: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    total = np.array([3, 4, 5, 6, 7, 8, 11, 23, 31, 32, 33, 90, 700, 10**5 if partition else 10**12])
    keys = label_keys(Labels.encode(list(range(len(total))))[0], 3)
    monkeypatch.setattr(sampling, "_QUICK", {})
    plain = draw_subsets(total, keys, 4, 9, partition=partition)
    monkeypatch.setattr(sampling, "COMPILED", 0)
    quick = draw_subsets(total, keys, 4, 9, partition=partition)
    assert len(sampling._QUICK) == 3
    for a, b in zip(plain, quick):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("name", "total", "k"), [("shuffled", 5, 3), ("blocks", 6, 3), ("collected", 40, 2)])
def test_compiled_draws_need_no_neighbours(name: str, total: int, k: int) -> None:
    """A row in the middle of a sequence, or by itself, is the same draw."""
    rows = 12
    key = np.full(rows, 77, np.uint64)
    whole, alone = np.empty((rows, k), np.int64), np.empty((1, k), np.int64)
    kernel = getattr(kernels, name)
    kernel(np.full(rows, total), key, np.arange(rows), k, whole)
    for nth in (1, 4, 11):
        kernel(np.array([total]), key[:1], np.array([nth]), k, alone)
        assert sorted(alone[0]) == sorted(whole[nth])


# -- what nothing depends on ---------------------------------------------------------------------------------------
def test_threads_row_order_and_neighbours_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    query, winner = rng.integers(0, 30, 3000), rng.integers(0, 9, 3000)
    loser, tie = (winner + rng.integers(1, 9, 3000)) % 9, rng.random(3000) < 0.2
    prefs = cc.Preferences.from_comparisons(winner, loser, query=query, tie=tie)
    wanted = mean_targets(prefs, order=30)
    order = rng.permutation(3000)
    same_bits(
        mean_targets(
            cc.Preferences.from_comparisons(winner[order], loser[order], query=query[order], tie=tie[order]), order=30
        ),
        wanted,
    )
    for threads, chunk in ((1, 1), (5, 1), (3, 5000)):
        monkeypatch.setattr("concordant.kernels.arrays.WORKERS", threads)
        monkeypatch.setattr(log_odds, "CHUNK", chunk)
        same_bits(mean_targets(prefs, order=30), wanted)
    alone = mean_targets(prefs.select([17]), order=30)
    here = slice(wanted.start[17], wanted.start[18])
    np.testing.assert_array_equal(alone.value, wanted.value[here])
    np.testing.assert_array_equal(alone.error, wanted.error[here])


@pytest.mark.parametrize("name", ["log-odds", "borda"])
def test_many_orders_are_each_as_alone(name: str) -> None:
    prefs = log_of(3, 300, 6, 7, 3, True)
    orders: list[int | str] = [1, 4, 20, 50, "all", 10**6]
    together = mean_targets_of_orders(prefs, orders, name, subsets=6, seed=4)
    for order, targets in zip(orders, together):
        same_bits(targets, mean_targets(prefs, name, order=order, subsets=6, seed=4))
    assert [targets.order for targets in together] == [1, 4, 20, 50, None, 10**6]


# -- compiling -----------------------------------------------------------------------------------------------------
@pytest.fixture(name="uncached")
def _uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder for what is compiled can be written."""
    import numba

    if not compiling.compiles():
        pytest.skip("NUMBA_DISABLE_JIT is set: nothing is compiled")
    njit = numba.njit

    def nowhere(*, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", nowhere)


@pytest.mark.usefixtures("uncached")
def test_without_a_folder_for_the_cache_it_compiles_all_the_same() -> None:
    assert compiling.compiled(lambda x: x + 1)(2) == 3


@pytest.mark.usefixtures("uncached")
def test_what_compiling_takes_is_known() -> None:
    before, began = Aside.seconds(), time.monotonic()
    loop = compiling.compiled(lambda x: x + 2)
    assert loop(1) == 3 and not Aside.going_on
    took = Aside.seconds() - before
    assert 0 < took <= time.monotonic() - began
    assert loop(2) == 4 and Aside.seconds() - before == took  # compiled once


def test_the_cache_is_renewed_when_any_kernel_changes() -> None:
    if not compiling.compiles():
        pytest.skip("NUMBA_DISABLE_JIT is set: nothing is compiled")
    kernels.table_size(1)
    cache = kernels.shuffle._cache._cache_file
    assert cache._source_stamp == compiling.sources()


UNCOMPILED = """
import numpy as np, concordant as cc
from concordant.preferences import sampling
from concordant.losses.graded import graded_loss
PHIS = "hinge", "squared-hinge", "exponential", "logistic"
sampling.COMPILED = 0
rng = np.random.default_rng(0)
sides = rng.integers(0, 4, 60), rng.integers(4, 8, 60), rng.integers(0, 2, 60)
votes = cc.Preferences.from_comparisons(*sides, tie=rng.random(60) < 0.2)
found = [cc.mean_targets(votes, order=k, subsets=5).value for k in (1, 2, 11, "all")]
found += [cc.mean_targets(votes, "borda", order=k, subsets=5, partition=False).value for k in (2, 11)]
found += [graded_loss(rng.normal(size=9), np.arange(9) % 3, None, phi)[1] for phi in PHIS]
found += [graded_loss([-500.0, 500.0], [1, 0], None, "exponential")[0]]
print([round(float(value), 9) for values in found for value in values])
"""


def test_kernels_run_without_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for switch in ("0", "1"):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", switch)
        words = [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED]
        said.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1] and "inf" in said[0]


@pytest.mark.parametrize(
    "work",
    ["import concordant", "import concordant; concordant.rank(concordant.read({'winner': ['x'], 'loser': ['y']}))"],
)
def test_ranking_does_not_load_numba(work: str) -> None:
    check = f"import sys; {work}; print([name for name in sys.modules if name.split('.')[0] in ('numba', 'llvmlite')])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_short_ranking_does_not_load_what_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("winner,loser\na,b\nb,c\na,c\n", encoding="utf-8")
    check = (
        "import sys, atexit; from concordant.apps.commands import main; sys.argv[1:] = ['rank', 'votes.csv', '-q']; "
        "names = ['pandas', 'scipy.stats', 'scipy.optimize', 'sklearn', 'numba', 'matplotlib']; "
        "atexit.register(lambda: print([name for name in names if name in sys.modules])); main()"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_help_does_not_load_numba() -> None:
    for words in (["--help"], ["rank", "--help"], ["fit", "--help"]):
        check = (
            "import sys, atexit; from concordant.apps.commands import main; sys.argv[1:] = " + repr(words) + "; "
            "atexit.register(lambda: print('numba' in sys.modules)); main()"
        )
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
        assert done.stdout.strip().splitlines()[-1] == "False", words


# -- the largest of all pairs ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("items", [2, 3, 17, 60])
@pytest.mark.parametrize("symmetric", [True, False])
def test_maxima_by_rows_are_those_of_all_pairs(items: int, symmetric: bool) -> None:
    rng = np.random.default_rng(items)
    draws = rng.normal(size=(40, items))
    weight = np.where(rng.random((items, items)) < 0.3, 0.0, rng.exponential(size=(items, items)))
    weight = (weight + weight.T) / 2 if symmetric else weight
    plain = np.maximum(((draws[:, :, None] - draws[:, None, :]) * weight).max(axis=(1, 2)), 0.0)
    most = np.empty(40)
    pair_maxima(draws, weight, 0.0, most, *nothing_held(40))
    np.testing.assert_array_equal(most, plain)
    for floor in (np.median(plain), np.inf):
        pair_maxima(draws, weight, floor, most, *nothing_held(40))
        assert (most <= plain).all()
        np.testing.assert_array_equal(most[plain > floor], plain[plain > floor])


def nothing_held(draws: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.full((draws, 2), -1), np.full(draws, np.inf)


@pytest.mark.parametrize("items", [3, 17, 60])
def test_maxima_of_ever_fewer_pairs_go_by_those_of_more(items: int) -> None:
    """As a step-down calls them: first a floor of infinity, then the quantile of what that found."""
    rng = np.random.default_rng(items)
    draws, weight = rng.normal(size=(60, items)) * rng.exponential(size=items), rng.exponential(size=(items, items))
    draws += rng.normal(size=(60, 1)) * 5
    most, held = np.empty(60), nothing_held(60)
    for _ in range(6):
        plain = np.maximum(((draws[:, :, None] - draws[:, None, :]) * weight).max(axis=(1, 2)), 0.0)
        pair_maxima(draws, weight, np.inf, most, *held)
        assert (most <= plain).all()
        floor = np.sort(most)[50]
        pair_maxima(draws, weight, floor, most, *held)
        assert (most <= plain).all() and (held[1] >= plain).all()
        np.testing.assert_array_equal(most[plain > floor], plain[plain > floor])
        weight = np.where(rng.random(weight.shape) < 0.2, 0.0, weight)


def test_the_critical_value_needs_not_all_draws_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    draws, weight = rng.normal(size=(300, 25)), rng.exponential(size=(25, 25))
    group = np.zeros(25, np.int64)
    slow = critical(draws, weight, group, 0.95), largest_differences(draws, weight, group)
    monkeypatch.setattr(largest_file, "LOOKED_AT", 0)
    assert critical(draws, weight, group, 0.95) == pytest.approx(slow[0], rel=1e-12)
    np.testing.assert_allclose(largest_differences(draws, weight, group), slow[1], rtol=1e-12)
