"""Structures that stay random: the order of E[G(s)/Z(s)] is right, that of E[s] is not, whatever is fitted to them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.gain_laws import gain_regrets
from concordant.losses.objective import Relevance
from seeds import seed

CAMPS = np.array([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]])


def gap(above, below):
    return above - below


def readers(number):
    rows = np.tile(CAMPS, (number // 2, 1))
    return cc.Preferences.from_ratings(
        ["q"] * rows.size, list("xyz") * number, rows.ravel(), np.repeat(np.arange(number), 3)
    )


def plain_loss(order, law, gain):
    """Expected 1 − NDCG of an order (14), straight from the formula."""
    inverse = 1 / np.log2(2 + np.arange(len(order)))
    losses = [1 - gain(s)[list(order)] @ inverse / (np.sort(gain(s))[::-1] @ inverse) for s in law]
    return np.mean(losses)


def best(law, gain):
    orders = list(itertools.permutations(range(law.shape[1])))
    losses = [plain_loss(order, law, gain) for order in orders]
    return {order for order, loss in zip(orders, losses, strict=True) if loss < min(losses) + 1e-12}


def by(scores):
    return tuple(np.argsort(-np.asarray(scores), kind="stable").tolist())


def test_camps_by_brute_force():
    centred = CAMPS - CAMPS.mean(axis=1, keepdims=True)
    right = best(centred, np.exp2)
    assert right == {(0, 1, 2), (1, 0, 2)}
    assert by(centred.mean(axis=0)) not in right
    how = {"options": {"differences": gap}, "order": 1, "subsets": 300, "seed": seed(1)}
    found = cc.mean_targets(readers(200), "thurstone-mosteller", gain="2^s", **how)
    exact = np.mean([np.exp2(s) / (np.sort(np.exp2(s))[::-1] @ (1 / np.log2([2, 3, 4]))) for s in centred], axis=0)
    assert np.abs(found.value - exact).max() < 5 * found.error.max() + 1e-12
    assert by(found.value) in right
    means = cc.mean_targets(readers(200), "thurstone-mosteller", gain="identity", normalise=False, **how)
    assert by(means.value)[0] == 2
    whole = cc.mean_targets(readers(200), "thurstone-mosteller", gain="2^s", options={"differences": gap})
    assert by(whole.value)[0] == 2  # all judgments at once average the camps away
    assert gain_regrets(Relevance.of(centred), found.value, gain="2^s").regret[0] == 0
    lost = plain_loss(by(means.value), centred, np.exp2) - plain_loss((0, 1, 2), centred, np.exp2)
    assert gain_regrets(Relevance.of(centred), means.value, gain="2^s").regret[0] == pytest.approx(lost)
    assert lost > 0.02


@pytest.mark.parametrize(("gain", "normalise", "right"), [("2^s", True, True), ("identity", False, False)])
def test_camps_with_features(gain, normalise, right):
    """The same through a fitted scorer: features can say which item it is."""
    ranker = cc.AggregationRanker(
        "thurstone-mosteller", structure_options={"differences": gap}, order=1, subsets=200, gain=gain,
        normalise=normalise, ridge=1e-9, informed=False, gate=False, standardise=False, seed=seed(2),
    )  # fmt: skip
    ranker.fit(np.eye(3), cc.Judged.of(readers(200), item=list("xyz")))
    order = by(ranker.predict(np.eye(3)))
    assert (order in best(CAMPS - CAMPS.mean(axis=1, keepdims=True), np.exp2)) is right


@pytest.mark.parametrize("k", [25, 400])
def test_scaled_by_the_root_of_k(k):
    """√k-scaled Thurstone–Mosteller (AoS §7): the limit is normal, with the covariance that the shares give."""
    few = 0.2 / np.sqrt(k)
    count = np.round(1e7 * np.array([0.05, 0.05, 0.45 * few, 0.45 * few, 0.45 * (1 - few), 0.45 * (1 - few)])).astype(
        int
    )
    log = cc.Preferences.from_comparisons(list("xyzzzz"), list("yxxyxy"), tie=[False] * 4 + [True] * 2, count=count)

    def scaled(batch):
        found = cc.structure("thurstone-mosteller")(batch, differences="shares", c0=0.0)
        return replace(found, value=np.sqrt(k) * found.value)

    how = {"order": k, "subsets": 2000, "seed": seed(3)}
    gains = cc.mean_targets(log, scaled, gain="2^s", **how)
    means = cc.mean_targets(log, scaled, gain="identity", normalise=False, **how)
    assert gains.value[2] < gains.value[:2].min() - 2 * gains.error.max()
    assert means.value[2] > means.value[:2].max() + 2 * means.error.max()
    if k == 400:
        # x − y of k: a sum of ±1 over .1 k votes, divided by them; z is known. s_x − s_y = (2 A_xy + A_xz − A_yz)/3
        rng = np.random.default_rng(seed(4))
        between = rng.normal(size=200_000) * np.sqrt(1 / 0.1) * 2 / 3
        other = np.full(len(between), 2 * 0.2 / 3)  # z: (A_zx + A_zy)/3, √k few each
        law = np.stack((between / 2 - other / 2, -between / 2 - other / 2, other), axis=1)
        value = np.exp2(law)
        mean = (value / (np.sort(value, axis=1)[:, ::-1] @ (1 / np.log2([2, 3, 4])))[:, None]).mean(axis=0)
        assert np.abs(gains.value - mean).max() < 5 * gains.error.max() + 0.01
        assert np.abs(means.value[2] - 2 * 0.2 / 3) < 5 * means.error.max()
