"""Counts up to 2^63 − 1 in sum are exact wherever counts are added or multiplied; beyond is refused with the number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import concordant as cc
from concordant import Preferences
from concordant.errors import InputError, UsageError
from concordant.preferences.counts import exact_bincount, exact_sum
from concordant.preferences.graphs import Batch
from concordant.ranking.edge_tests import edge_tests
from concordant.ranking.multinomial import multinomial

MOST = (1 << 63) - 1


def votes(*counts: int, **more: object) -> Preferences:
    return Preferences.from_comparisons(
        ["a"] * len(counts), [f"b{i}" for i in range(len(counts))], count=list(counts), **more
    )


def test_sums_are_those_of_python() -> None:
    rng = np.random.default_rng(0)
    for high in (1 << 20, 1 << 40, 1 << 61, MOST):
        values, times = rng.integers(0, high, 50), rng.integers(0, 1 << 30, 50)
        assert exact_sum(values) == sum(values.tolist())
        assert exact_sum(values, times) == sum(x * y for x, y in zip(values.tolist(), times.tolist(), strict=True))
        place, small = rng.integers(0, 4, 50), values // 64
        of_place = [sum(x for x, at in zip(small.tolist(), place, strict=True) if at == i) for i in range(4)]
        assert exact_bincount(place, small, 4).tolist() == of_place


def test_doubling_ends_with_the_number() -> None:
    prefs, total = votes((1 << 53) + 1), (1 << 53) + 1
    while 2 * total <= MOST:
        prefs, total = prefs + prefs, 2 * total
        assert len(prefs) == total and prefs.judgments.tolist() == [total]
    with pytest.raises(InputError, match=f"add up to {2 * total:,}; at most {MOST:,}"):
        prefs + prefs


def test_what_is_made_of_large_counts() -> None:
    counts = [(1 << 62) - 1, (1 << 61) + 1, (1 << 60) + 3]
    prefs = votes(*counts)
    assert len(prefs) == sum(counts) and prefs.summary()["judgments"] == sum(counts)
    assert [len(prefs.pool()), len(prefs.select(["all"]))] == [sum(counts)] * 2
    for n in (1, 2, 3, 7):
        parts = prefs.folds(n)
        assert sum(parts) == prefs and max(map(len, parts)) - min(map(len, parts)) <= 1
    board = cc.rank(prefs).to_arrow().select(["item", "judgments"]).to_pylist()
    assert {row["item"]: row["judgments"] for row in board} == {"a": sum(counts)} | {
        f"b{i}": count for i, count in enumerate(counts)
    }


def test_ties_and_lists() -> None:
    ties = votes(1 << 61, 1 << 61, tie=[True, True])
    assert len(ties) == ties.summary()["ties"] == 1 << 62
    order = Preferences.from_orders(["q"] * 3, ["j"] * 3, ["x", "y", "z"], [1, 2, 3])
    for _ in range(62):
        order = order + order
    assert len(order) == 1 << 62 and order.summary()["entries"] == 3 << 62
    assert cc.rank(order).to_arrow()["judgments"].to_pylist() == [1 << 62] * 3
    with pytest.raises(InputError, match=f"add up to {1 << 63:,}"):
        order + order


def test_weights_times_counts() -> None:
    heavy = cc.rank(votes(1 << 62, 1 << 61, weight=[2.0, 1.0]), prior=0.01, interval="none")
    light = cc.rank(votes(4, 1, weight=[1.0, 1.0]), prior=0.01 / 2.0**61, interval="none")
    assert np.isfinite(heavy.score).all() and heavy.to_arrow()["item"].to_pylist()[0] == "a"
    assert light.to_arrow()["item"].to_pylist()[0] == "a"


SIZES = ((3, 1), (5_000_000_000, 5_000_300_000), (3_037_000_500, 3_037_000_499), (1 << 62, (1 << 62) - 1))


@pytest.mark.parametrize(("up", "down"), SIZES)
def test_tests_of_directions_at_any_size(up: int, down: int) -> None:
    prefs = Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[up, down])
    found = edge_tests(Batch.whole(prefs))
    exact = binom.sf(up - 1, up + down, 0.5), binom.sf(down - 1, up + down, 0.5)
    if up > 1 << 60 and exact[0] == 1.0:
        exact = 0.5, 0.5  # SciPy 1.13 has 1 for one win more of 2^63
    assert (found.above[0], found.below[0]) == pytest.approx(exact, rel=1e-6)
    assert float(found.votes[0]) == pytest.approx(up + down, rel=1e-15)


def test_bootstrap_of_many_cells() -> None:
    count = np.full(300, 1 << 54)
    drawn = multinomial(np.random.default_rng(0), count, 4)
    assert [sum(row) for row in drawn.tolist()] == [300 << 54] * 4
    assert np.abs(drawn - float(1 << 54)).max() < 8 * 2.0**27  # eight standard deviations
    clustered = Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[1 << 62, 1 << 61], cluster=["u", "v"])
    with pytest.raises(UsageError, match="clusters many times"):
        cc.rank(clustered, interval="bootstrap")


def test_audit_of_large_counts() -> None:
    large = Preferences.from_comparisons(
        ["a", "b", "c"], ["b", "c", "a"], count=[1 << 60, 1 << 60, (1 << 60) - (1 << 40)]
    )
    small = Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "a"], count=[1 << 20, 1 << 20, (1 << 20) - 1])
    one, other = (cc.audit(prefs).to_arrow().to_pylist()[0] for prefs in (large, small))
    assert one["judgments"] == 3 * (1 << 60) - (1 << 40)
    for name in ("items", "components", "acyclic", "low_noise"):
        assert one[name] == other[name]
    assert one["optimal_loss"] == pytest.approx(other["optimal_loss"], rel=1e-12)


PREFLIB = """# DATA TYPE: soc
# NUMBER ALTERNATIVES: 2
# NUMBER VOTERS: {voters}
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
{lines}
"""


def preflib(folder: Path, *counts: int) -> Path:
    lines = "\n".join(f"{count}: {'1,2' if place % 2 else '2,1'}" for place, count in enumerate(counts))
    (folder / "votes.soc").write_text(PREFLIB.format(voters=sum(counts), lines=lines))
    return folder / "votes.soc"


def test_preflib(tmp_path: Path) -> None:
    path = preflib(tmp_path, 999_999_999_999_999, 999_999_999_999_999)
    assert len(cc.read(path)) == 1_999_999_999_999_998
    assert len(cc.read(preflib(tmp_path, MOST - 1, 1))) == MOST
    counts = [999_999_999_999_999] * 9224
    with pytest.raises(InputError, match=rf"votes\.soc: the counts add up to {sum(counts):,}"):
        cc.read(preflib(tmp_path, *counts))
    with pytest.raises(InputError, match=r"votes\.soc: the counts add up to 9,223,372,036,854,775,808"):
        cc.read(preflib(tmp_path, MOST, 1))


def test_stores_add_up_exactly(tmp_path: Path) -> None:
    store = cc.Store(tmp_path / "votes.store")
    counts = [(1 << 62) - 1, (1 << 61) + 1]
    for place, count in enumerate(counts):
        path = tmp_path / f"{place}.csv"
        path.write_text(f"winner,loser,count\na,b,{count}\n")
        store.ingest(path)
    assert len(cc.read(tmp_path / "votes.store")) == sum(counts)
