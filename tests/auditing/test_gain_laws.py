"""NDCG and ERR losses of scores on laws of relevance, against the formulas and all permutations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import concordant as cc
from concordant.auditing import gain_laws as cascade_laws
from concordant.auditing.gain_laws import TARGETS, gain_regrets
from concordant.auditing.transitivity import FAILS, HOLDS, UNDETERMINED
from concordant.errors import InputError, UsageError
from concordant.losses.minimise import minimise
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import surrogate

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=50)
cutoffs = st.sampled_from([None, 1, 2, 4])


def random_law(seed: int, graphs: int = 4, most: int = 6, draws: int = 3) -> tuple[Relevance, Any]:
    """A ragged batch with level gains, draws of zeros, and predicted scores with ties."""
    rng = np.random.default_rng(seed)
    start = np.concatenate(([0], np.cumsum(rng.integers(0, most + 1, graphs))))
    draws = int(rng.integers(1, draws + 1))
    scores = rng.integers(0, 4, (draws, start[-1])) * rng.integers(0, 2, (draws, 1))
    share = rng.random(draws) + 0.1
    alpha = rng.integers(0, rng.choice([2, 4, 100]), start[-1]).astype(float)
    return Relevance.of(scores.astype(float), start, share / share.sum()), alpha


def loss_of(order: Any, scores: Any, share: Any, target: str, at: int | None, top: float) -> float:
    """(14), with equal places for precision, or (16) for an order of the items, draw by draw."""
    k = len(order) if at is None else min(at, len(order))
    total = 0.0
    for draw, weight in zip(scores, share, strict=True):
        if target != "err":
            gain, discount = 2.0**draw - 1, np.log2(np.arange(k) + 2) if target == "ndcg" else np.ones(k)
            best = sum(sorted(gain, reverse=True)[r] / discount[r] for r in range(k))
            total += weight * (1 - sum(gain[order[r]] / discount[r] for r in range(k)) / best if best else 0.0)
        else:
            gain, examined, value = (2.0**draw - 1) / 2.0**top, 1.0, 0.0
            for r in range(k):
                value += examined * gain[order[r]] / (r + 1)
                examined *= 1 - gain[order[r]]
            total += weight * (1 - value)
    return total


def allowed(alpha: Any) -> list[tuple[int, ...]]:
    """All orders that sort the scores, ties either way."""
    return [o for o in itertools.permutations(range(len(alpha))) if all(np.diff(alpha[list(o)]) <= 0)]


@some
@given(seeds, cutoffs, st.sampled_from(sorted(TARGETS)))
def test_against_all_permutations(seed: int, at: int | None, target: str) -> None:
    law, alpha = random_law(seed)
    found = gain_regrets(law, alpha, target, at=at)
    top = law.scores.max(initial=0.0)
    for g in range(len(law.node_start) - 1):
        mine = slice(*law.node_start[g : g + 2])
        losses = {o: loss_of(o, law.scores[:, mine], law.share, target, at, top)
                  for o in itertools.permutations(range(mine.stop - mine.start))}  # fmt: skip
        worst = max(losses[o] for o in allowed(alpha[mine]))
        least = min(losses.values())
        assert found.exact[g]
        assert found.loss[g] == pytest.approx(worst, abs=1e-12)
        assert found.optimal_loss[g] == found.lower[g] == pytest.approx(least, abs=1e-12)
        assert found.regret[g] == pytest.approx(worst - least, abs=1e-12)
        assert found.consistent[g] == (HOLDS if worst - least < 1e-10 else FAILS)
        best = tuple(np.argsort(found.place[mine]).tolist())
        assert losses[best] == pytest.approx(least, abs=1e-12)


@some
@given(seeds)
def test_corollary_1(seed: int) -> None:
    """Without a cut-off, consistent is: α_j > α_l wherever ∫ G(s_j)/Z > ∫ G(s_l)/Z."""
    law, alpha = random_law(seed)
    found = gain_regrets(law, alpha)
    gain = 2**law.scores - 1
    for g in range(len(law.node_start) - 1):
        mine = slice(*law.node_start[g : g + 2])
        ranked = -np.sort(-gain[:, mine], axis=1)
        Z = (ranked / np.log2(np.arange(ranked.shape[1]) + 2)).sum(axis=1)
        mean = law.share @ np.divide(gain[:, mine], Z[:, None], out=np.zeros_like(ranked), where=Z[:, None] > 0)
        pairs = itertools.permutations(range(len(mean)), 2)
        right = all(alpha[mine][j] > alpha[mine][k] for j, k in pairs if mean[j] > mean[k] + 1e-12)
        assert found.consistent[g] == (HOLDS if right else FAILS)


def product_law(chances: Any) -> Relevance:
    """Independent scores in {0, 1}, all outcomes with their probability."""
    draws = np.array(list(itertools.product([0.0, 1.0], repeat=len(chances))))
    return Relevance.of(draws, share=np.prod(np.where(draws > 0, chances, 1 - chances), axis=1))


@some
@given(seeds)
def test_lemma_1_on_product_laws(seed: int) -> None:
    """The decreasing order of p is optimal, and the only one as long as no p is 1."""
    p = np.random.default_rng(seed).integers(0, 9, 5) / 8
    law = product_law(p)
    assert gain_regrets(law, p, "err", gain="identity").consistent[0] == HOLDS
    up = gain_regrets(law, -p, "err", gain="identity")
    distinct = sorted(set(p.tolist()))
    assert up.consistent[0] == (HOLDS if len(distinct) == 1 else FAILS)
    values = [1 - up.lower[0]] + [sum(p[o[i]] / (i + 1) * np.prod(1 - p[list(o[:i])]) for i in range(5))
                                  for o in itertools.permutations(range(5))]  # fmt: skip
    assert values[0] == pytest.approx(max(values[1:]), abs=1e-12)


def test_behind_a_sure_item_any_order_is_as_good() -> None:
    """Where some G is 1, Lemma 1's order is not the only one: "necessary" in the source's §3.3 needs G < 1."""
    law = Relevance.of([1.0, 0.2, 0.6])
    assert gain_regrets(law, np.array([3.0, 2.0, 1.0]), "err", gain="identity").consistent[0] == HOLDS
    law = Relevance.of([0.99, 0.2, 0.6])
    assert gain_regrets(law, np.array([3.0, 2.0, 1.0]), "err", gain="identity").consistent[0] == FAILS


def test_two_kinds_of_users_want_variety() -> None:
    """Six of ten want items 0 or 1, four item 2: by expected gain the twins come first, and ERR loses .0667."""
    law = Relevance.of([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], share=np.array([0.6, 0.4]))
    sort = gain_regrets(law, np.array([3.0, 2.0, 1.0]), "err", gain="identity")
    assert sort.loss[0] == pytest.approx(1 - 0.6 - 0.4 / 3)
    assert sort.optimal_loss[0] == pytest.approx(1 - 0.6 - 0.4 / 2)
    assert (sort.consistent[0], sort.place[2]) == (FAILS, 1)
    for phi in ("logistic", "squared-hinge"):
        scores = minimise(surrogate("err-pairwise").objective(law, phi=phi, gain="identity")).alpha
        assert gain_regrets(law, scores, "err", gain="identity", close=1e-6).consistent[0] == FAILS


def test_the_mean_is_not_enough_for_ndcg() -> None:
    law = Relevance.of([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]])
    assert gain_regrets(law, law.scores.mean(axis=0)).consistent[0] == FAILS
    assert gain_regrets(law, np.array([0.403, 0.403, 0.307])).consistent[0] == HOLDS  # method of AoS (28)
    assert gain_regrets(law, np.array([1.0, 0.0, -1.0])).consistent[0] == HOLDS  # level items, either way


def test_point_laws_are_the_metrics() -> None:
    rng = np.random.default_rng(3)
    labels, scores, query = rng.integers(0, 5, 300).astype(float), rng.random(300), np.repeat(np.arange(3), 100)
    law = Relevance.of(labels, np.arange(4) * 100)
    for at in (None, 10):
        ndcg = gain_regrets(law, scores, at=at)
        np.testing.assert_allclose(
            ndcg.loss, 1 - cc.ndcg(scores, labels, query, at=at, convention="burges"), atol=1e-12
        )
        np.testing.assert_allclose(ndcg.optimal_loss, 0, atol=1e-12)
        err = gain_regrets(law, scores, "err", at=at)
        np.testing.assert_allclose(err.loss, 1 - cc.err(scores, labels, query, at=at), atol=1e-12)
        assert err.exact.all() and (err.consistent == FAILS).all()
        assert (gain_regrets(law, labels, "err", at=at).consistent == HOLDS).all()


@settings(max_examples=20)
@given(seeds)
def test_above_the_limit_what_is_found_is_bounded(seed: int) -> None:
    law, alpha = random_law(seed, most=7)
    true = gain_regrets(law, alpha, "err")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cascade_laws, "MOST_ITEMS", 1)
        found = gain_regrets(law, alpha, "err")
    small = np.diff(law.node_start) < 2
    assert (found.exact == (small | (len(law.share) == 1))).all()
    assert (found.lower <= true.lower + 1e-12).all() and (true.lower <= found.optimal_loss + 1e-12).all()
    assert (found.optimal_loss <= found.loss + 1e-12).all() and (found.loss <= true.loss + 1e-12).all()
    assert (
        found.consistent[found.consistent != UNDETERMINED] == true.consistent[found.consistent != UNDETERMINED]
    ).all()


def test_what_comes_before_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven of ten want 1 surely, 0 nearly; three want 2: behind 0, of the tied 1 and 2 it is 1 that adds less."""
    law = Relevance.of([[0.9, 1.0, 0.0], [0.0, 0.0, 1.0]], share=np.array([0.7, 0.3]))
    tied, best = np.array([2.0, 1.0, 1.0]), np.array([1.0, 3.0, 2.0])
    for limit in (12, 1):
        monkeypatch.setattr(cascade_laws, "MOST_ITEMS", limit)
        found = gain_regrets(law, tied, "err", gain="identity")
        assert found.loss[0] == pytest.approx(1 - 0.63 - 0.07 / 2 - 0.3 / 3)
        assert found.optimal_loss[0] == pytest.approx(1 - 0.7 - 0.3 / 2)
        found = gain_regrets(law, best, "err", gain="identity")
        assert found.regret[0] == pytest.approx(0, abs=1e-15)
        assert found.consistent[0] == (HOLDS if limit == 12 else UNDETERMINED)
        assert found.lower[0] == pytest.approx(0.15 if limit == 12 else 0.0)  # each kind of user its own order
    alike = Relevance.of([[0.5, 0.5], [0.2, 0.2]])
    assert (
        gain_regrets(alike, np.zeros(2), "err", gain="identity").consistent[0] == UNDETERMINED
    )  # a tie not gone through


def test_what_is_close_is_tied() -> None:
    law = Relevance.of([1.0, 0.0])
    scores = np.array([1e-9, 0.0])
    assert [gain_regrets(law, scores, close=close).consistent[0] for close in (0.0, 1e-8)] == [HOLDS, FAILS]
    endless = np.array([np.inf, np.inf])
    assert gain_regrets(law, endless).consistent[0] == FAILS
    assert gain_regrets(law, np.array([np.inf, -np.inf])).consistent[0] == HOLDS


def test_what_is_refused() -> None:
    law = Relevance.of([1.0, 2.0])
    for problem, arguments in (
        ("unknown target", {"target": "map"}),
        ("one score for each", {"alpha": np.zeros(3)}),
        ("close", {"close": -1.0}),
        ("unknown gain", {"gain": "log"}),
        ("above 1", {"target": "err", "gain": "identity"}),
        ("cut-off", {"at": 0}),
    ):
        with pytest.raises(UsageError, match=problem):
            gain_regrets(law, **{"alpha": np.zeros(2), **arguments})
    with pytest.raises(InputError, match="1 of 2 scores are NaN"):
        gain_regrets(law, np.array([0.0, np.nan]))
