"""Rankings whose ties are outcomes, without a prior: whether there is a maximum, and replicates that have none."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import concordant as cc
from seeds import seed


def drawn(number: int, most: int = 12) -> dict[str, list[Any]]:
    """Few rankings of few items, many of them with ties."""
    rng = np.random.default_rng(seed(number))
    items, tiers = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    log: dict[str, list[Any]] = {"judgment": [], "item": [], "rank": []}
    for judgment in range(int(rng.integers(1, most))):
        held = rng.choice(items, int(rng.integers(2, items + 1)), replace=False)
        tied = rng.random() < 0.6
        ranks = np.sort(rng.integers(1, tiers + 1, len(held))) if tied else np.arange(len(held)) + 1
        for item, rank in zip(held.tolist(), ranks.tolist(), strict=True):
            for name, one in (("judgment", judgment), ("item", f"i{item}"), ("rank", rank)):
                log[name].append(one)
    return log


def read(log: dict[str, list[Any]]) -> Any:
    try:
        return cc.read(log)
    except cc.UsageError:  # some leave items out
        return cc.read(log, unranked="missing")


def limited(log: dict[str, list[Any]]) -> bool:
    """Whether no way leads up for ever: along which every chosen set gains at least as much as all others, some more.

    A linear program over scores and log δ, straight from the likelihood's log-linear choices.
    """
    names, lists = sorted({*log["item"]}), []
    for judgment in dict.fromkeys(log["judgment"]):
        rows = [row for row, of in enumerate(log["judgment"]) if of == judgment]
        ranks = sorted({log["rank"][row] for row in rows})
        lists.append([[names.index(log["item"][row]) for row in rows if log["rank"][row] == rank] for rank in ranks])
    sizes = sorted({1} | {len(tier) for tiers in lists for tier in tiers})

    def row(some: Any) -> Any:
        found = np.zeros(len(names) + len(sizes))
        found[list(some)] = 1 / len(some)
        found[len(names) + sizes.index(len(some))] = 1
        return found

    gains = []
    for tiers in lists:
        left = [item for tier in tiers for item in tier]
        for tier in tiers:
            others = [some for size in sizes if size <= len(left) for some in combinations(left, size)]
            gains += [row(tier) - row(some) for some in others]
            left = [item for item in left if item not in tier]
    gain = np.array(gains)
    fixed = np.zeros((1, gain.shape[1]))
    fixed[0, len(names)] = 1  # log δ of one item
    bounds = [(-1, 1)] * gain.shape[1]
    best = linprog(-gain.sum(axis=0), A_ub=-gain, b_ub=np.zeros(len(gain)), A_eq=fixed, b_eq=[0], bounds=bounds)
    return bool(-best.fun < 1e-7)


@pytest.mark.parametrize("number", range(80))
def test_there_is_an_answer_exactly_where_nothing_grows_for_ever(number: int) -> None:
    """Finite parameters where there is a maximum; else it is refused, or an infinite δ is said to be so."""
    log = drawn(number)
    try:
        found = cc.rank(read(log), "plackett-luce", ties="davidson", prior=0.0, interval="none")
    except cc.NoMaximumLikelihood:
        assert not limited(log)
        return
    finite = np.isfinite([value[0] for value in found.coefficients.values()]).all()
    assert finite == limited(log)


def test_a_win_and_a_tie_have_no_maximum() -> None:
    """As by Davidson's model, which is the same of two items; it gave scores of 15.7 as if these were converged."""
    log = {"judgment": [0, 0, 1, 1], "item": ["a", "b"] * 2, "rank": [1, 2, 1, 1]}
    for structure in ("plackett-luce", "bradley-terry"):
        with pytest.raises(cc.NoMaximumLikelihood, match="grow without end"):
            cc.rank(cc.read(log), structure, ties="davidson", prior=0.0)
        assert np.isfinite(cc.rank(cc.read(log), structure, ties="davidson").score).all()


def test_a_replicate_without_a_maximum_says_nothing_of_its_items() -> None:
    """It counts, with no limits, in place of ending the bootstrap."""
    log = {"judgment": np.repeat(np.arange(8), 2), "item": ["a", "b"] * 8, "rank": [1, 2] * 3 + [2, 1] * 3 + [1, 1] * 2}
    for structure in ("plackett-luce", "bradley-terry"):
        found = cc.rank(cc.read(log), structure, ties="davidson", prior=0.0, interval="bootstrap", replicates=200)
        assert np.isinf(found.lower).all() and np.isinf(found.upper).all()
        assert any("replicates" in str(note) for note in found.notes)
        few = cc.rank(
            cc.read({name: np.tile(column, 20) if name != "judgment" else np.repeat(np.arange(160), 2)
                     for name, column in log.items()}),
            structure, ties="davidson", prior=0.0, interval="bootstrap", replicates=200,
        )  # fmt: skip
        assert np.isfinite(few.lower).all() and np.isfinite(few.upper).all()
