"""Held-out regrets against a plain recomputation, and their expectation in a known population."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from concordant.auditing.held_out import held_out_regrets
from concordant.errors import UsageError
from concordant.losses.minimise import minimise
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from plain import adjacency, held


def mean_of(batch, graph=0):
    """{(item, item): mean strength} of a query, by hand."""
    prefs = batch.prefs
    m, judgments = held(batch, graph)
    total = sum(times * adjacency(prefs.kind, one, m) for times, one in judgments)
    nodes = batch.item[batch.node_start[graph] : batch.node_start[graph + 1]]
    labels = [prefs.items[int(code)] for code in nodes]
    k = sum(times for times, _ in judgments)
    return {(a, b): total[i, j] / k for i, a in enumerate(labels) for j, b in enumerate(labels)}


def loss(mean, order):
    return sum(mean.get((below, above), 0.0) for i, above in enumerate(order) for below in order[i + 1 :])


def votes(rng, chance, number):
    """``number`` votes on every pair of the items 0 … m − 1."""
    rows = []
    for i in range(len(chance)):
        for j in range(i + 1, len(chance)):
            rows += [(i, j) if rng.random() < chance[i, j] else (j, i) for _ in range(number)]
    winner, loser = zip(*rows, strict=True)
    return Preferences.from_comparisons(winner, loser)


def test_against_folds_all_orders_and_a_hand_made_loss():
    """One query, odd numbers of votes: no pair is level in a half, and orders of least loss are tried out."""
    rng = np.random.default_rng(0)
    chance = np.array([[0.5, 0.75, 0.85, 0.9], [0, 0.5, 0.7, 0.85], [0, 0, 0.5, 0.75], [0, 0, 0, 0.5]])
    compared = 0
    for _ in range(8):
        prefs = votes(rng, chance, 26)
        found = held_out_regrets(prefs, ["ranknet", "difference-graph"], splits=2, seed=3)
        plain, unique = np.zeros((2, 2, 2)), True
        for split in range(2):
            halves = prefs.folds(2, seed=3 + split)
            means = [mean_of(Batch.whole(half)) for half in halves]
            for train in range(2):
                every = list(permutations(range(4)))
                losses = np.array([loss(means[train], order) for order in every])
                unique &= (losses < losses.min() + 1e-12).sum() == 1
                best = every[int(losses.argmin())]
                for row, name in enumerate(("ranknet", "difference-graph")):
                    batch = Batch.whole(halves[train])
                    alpha = minimise(surrogate(name).objective(batch)).alpha
                    labels = [halves[train].items[int(code)] for code in batch.item]
                    order = [labels[i] for i in np.argsort(-alpha)]
                    unique &= np.diff(np.sort(alpha)).min() > 1e-4
                    plain[split, train, row] = loss(means[1 - train], order) - loss(means[1 - train], best)
        if not unique:
            continue
        compared += 1
        assert found.excess[:, 0] == pytest.approx(plain.mean(axis=(0, 1)), abs=1e-12)
        assert found.mean == pytest.approx(plain.mean(axis=(0, 1)), abs=1e-12)
        error = np.sqrt(((plain[:, 0] - plain[:, 1]) ** 2).mean(axis=0)) / 2
        assert found.error == pytest.approx(error, abs=1e-12)
    assert compared >= 4


def test_it_estimates_the_excess_of_orders_chosen_on_half_the_judgments():
    """Many queries of one population: mean of the estimate against the orders' loss in the population itself."""
    rng = np.random.default_rng(1)
    chance = np.array([[0.5, 0.62, 0.62], [0, 0.5, 0.51], [0, 0, 0.5]])
    number, queries = 12, 150
    rows = [
        ((i, j) if rng.random() < chance[i, j] else (j, i)) + (q,)
        for q in range(queries) for i in range(3) for j in range(i + 1, 3) for _ in range(2 * number)
    ]  # fmt: skip
    winner, loser, query = zip(*rows, strict=True)
    prefs = Preferences.from_comparisons(winner, loser, query)
    name = "margin-based"
    found = held_out_regrets(prefs, [name], splits=1, seed=0)
    truth = {(i, j): p / 3 for i in range(3) for j in range(3) if (p := chance[i, j] if i < j else 1 - chance[j, i])}
    true_excess = []
    for half in prefs.folds(2):
        batch = Batch.whole(half)
        alpha = minimise(surrogate(name).objective(batch)).alpha.reshape(queries, 3)
        for q in range(queries):
            mean = mean_of(batch, q)
            best = min(permutations(range(3)), key=lambda order: loss(mean, order))
            ranked = np.lexsort((rng.random(3), -np.rint(alpha[q] * 1e7)))
            true_excess.append(loss(truth, ranked.tolist()) - loss(truth, best))
    assert found.mean[0] == pytest.approx(np.mean(true_excess), abs=4 * found.error[0])
    assert found.error[0] == pytest.approx(found.excess[0].std(ddof=1) / np.sqrt(queries))
    assert 0.0 < found.error[0] < 0.01


def test_a_wrong_surrogate_shows_and_a_right_one_does_not():
    """Theorem 3's population: the pairwise logistic loss ranks 3 above 2, which held-out judgments show."""
    weights = {(1, 2): 25, (2, 3): 1, (1, 3): 50, (3, 1): 24}
    (winner, loser), count = zip(*weights, strict=True), [40 * w for w in weights.values()]
    query = np.repeat(np.arange(8), 4)
    prefs = Preferences.from_comparisons(list(winner) * 8, list(loser) * 8, query, count=count * 8)
    found = held_out_regrets(prefs, ["ranknet", "difference-graph"], splits=2)
    assert found.excess[0] == pytest.approx(np.full(8, 0.01))  # both halves of a split add up to the population
    assert np.abs(found.excess[1]).max() < 1e-12


def test_the_error_of_a_single_query_is_that_of_a_mean_over_its_judgments():
    """With orders that every half agrees on, the excess is a mean of 400 judgments' losses: its error is known."""
    weights = {(1, 2): 100, (2, 3): 4, (1, 3): 200, (3, 1): 96}
    (winner, loser), count = zip(*weights, strict=True), list(weights.values())
    prefs = Preferences.from_comparisons(winner, loser, count=[100 * times for times in count])
    found = held_out_regrets(prefs, ["ranknet"], splits=60)
    # the two orders differ in the pair (2, 3), which is judged in 1% of judgments, always the same way
    assert found.excess[0, 0] == pytest.approx(0.01)
    assert found.error[0] == pytest.approx(np.sqrt(0.01 * 0.99 / 40_000), rel=0.4)


def test_queries_are_independent_of_each_other():
    rng = np.random.default_rng(5)
    item = np.array([rng.permutation(4)[:2] for _ in range(200)])
    prefs = Preferences.from_comparisons(item[:, 0], item[:, 1], rng.integers(0, 4, 200))
    together = held_out_regrets(prefs, ["ranknet"], splits=3)
    alone = held_out_regrets(prefs, ["ranknet"], splits=3, queries=np.array([2]))
    assert together.excess[:, 2] == pytest.approx(alone.excess[:, 0], abs=1e-12)


def test_what_cannot_be_held_out():
    prefs = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "z"], ["one", "one", "two"])
    found = held_out_regrets(prefs, ["ranknet"], splits=1)
    assert found.queries.tolist() == [0] and found.excess.tolist() == [[0.0]] and found.error.tolist() == [0.0]
    with pytest.raises(UsageError, match="at least 1"):
        held_out_regrets(prefs, ["ranknet"], splits=0)
    with pytest.raises(UsageError, match="two judgments"):
        held_out_regrets(prefs.select(["two"]), ["ranknet"])
    with pytest.raises(UsageError, match="did you mean"):
        held_out_regrets(prefs, ["ranknett"])
