"""The sampler: exact inclusion probabilities, the hypergeometric law, independence of the batch."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from concordant.errors import UsageError
from concordant.preferences import sampling
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, counted_comparisons
from concordant.preferences.sampling import draw_subsets, label_keys


def draws(total, k, subsets, *, partition=False, seed=0):
    keys = label_keys(Labels.encode(["q"])[0], seed)
    _, offsets, positions = draw_subsets(np.array([total]), keys, k, subsets, partition=partition)
    return positions.reshape(len(offsets) - 1, k)


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize(("total", "k"), [(5, 2), (40, 2), (6, 3)])
def test_every_subset_is_equally_likely(total, k, partition):
    """Chi-squared over all C(total, k) subsets; 40 over 2 takes the collecting way, the others the shuffling one."""
    all_subsets = {subset: i for i, subset in enumerate(combinations(range(total), k))}
    found = draws(total, k, 60 * len(all_subsets), partition=partition)
    counts = np.bincount([all_subsets[tuple(row)] for row in found.tolist()], minlength=len(all_subsets))
    # blocks of one permutation are disjoint, so counts vary less than multinomial ones: the test is one-sided
    assert stats.chisquare(counts).pvalue > 1e-4


def test_inclusion_probabilities_when_draws_collide_often():
    found = draws(1000, 100, 2000)
    assert (np.diff(found, axis=1) > 0).all()
    counts = np.bincount(found.ravel(), minlength=1000)
    expected, variance = 2000 * 0.1, 2000 * 0.1 * 0.9
    z = (counts - expected) / np.sqrt(variance)
    # Var of an inclusion indicator is p(1 − p); their sum of squares is about chi-squared with 999 degrees of freedom
    assert stats.chi2(999).sf((z**2).sum() * 999 / 1000) > 1e-4
    assert abs(z).max() < 5


def test_multiplicities_follow_the_multivariate_hypergeometric_law():
    counts = np.array([7, 2, 1])
    votes = counted_comparisons(["a", "b", "c"], ["b", "c", "a"], count=counts)
    batch = Batch.subsets(votes, 4, 20_000, seed=3)
    held = np.zeros((len(batch), 3), np.int64)
    held[batch.graph, batch.judgment] = batch.multiplicity
    assert (held.sum(axis=1) == 4).all()
    law = stats.multivariate_hypergeom(m=counts[np.argsort([0, 1, 2])], n=4)
    seen, frequency = np.unique(held, axis=0, return_counts=True)
    expected = law.pmf(seen) * len(batch)
    assert law.pmf(seen).sum() == pytest.approx(1)
    assert stats.chisquare(frequency, expected * frequency.sum() / expected.sum()).pvalue > 1e-4


def test_blocks_of_one_permutation_are_disjoint_and_cover():
    found = draws(12, 3, 8, partition=True)
    for turn in (found[:4], found[4:]):
        assert sorted(turn.ravel()) == list(range(12))
    assert sorted(found[:4].tolist()) != sorted(found[4:].tolist())


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("k", [2, 5])
def test_draws_do_not_depend_on_the_other_queries(k, partition):
    rng = np.random.default_rng(0)
    query = rng.integers(0, 20, 400)
    winner, loser = rng.integers(0, 5, 400), rng.integers(5, 9, 400)
    votes = counted_comparisons(winner, loser, query=query)
    whole = Batch.subsets(votes, k, 6, seed=7, partition=partition)
    for code in (3, 11):
        alone = Batch.subsets(votes.select([code]), k, 6, seed=7, partition=partition)
        part = Batch.subsets(votes, k, 6, seed=7, partition=partition, queries=np.array([17, code]))
        at = np.flatnonzero(whole.query == code)
        inside = slice(whole.start[at[0]], whole.start[at[-1] + 1])
        assert (whole.judgment[inside] - votes.start[code]).tolist() == alone.judgment.tolist()
        assert whole.multiplicity[inside].tolist() == alone.multiplicity.tolist()
        assert part.multiplicity[part.start[6] :].tolist() == alone.multiplicity.tolist()


def test_another_seed_or_label_draws_differently():
    first = draws(50, 5, 10)
    assert not np.array_equal(first, draws(50, 5, 10, seed=1))
    other = label_keys(Labels.encode(["r"])[0], 0)
    assert not np.array_equal(first, draw_subsets(np.array([50]), other, 5, 10)[2].reshape(10, 5))
    numbers, texts = label_keys(Labels.encode([1])[0], 0), label_keys(Labels.encode(["1"])[0], 0)
    assert numbers[0] != texts[0]


def test_a_query_with_too_few_judgments_gives_one_graph_with_all():
    votes = counted_comparisons(["a", "b"], ["b", "c"], count=np.array([2, 1]))
    batch = Batch.subsets(votes, 3, 10)
    assert len(batch) == 1
    assert batch.multiplicity.tolist() == [2, 1]


def test_folds_depend_on_label_and_seed_only():
    rng = np.random.default_rng(1)
    votes = counted_comparisons(rng.integers(0, 4, 300), rng.integers(4, 8, 300), query=rng.integers(0, 9, 300))
    assert votes.folds(3, seed=5)[1].select([4]) == votes.select([4]).folds(3, seed=5)[1]
    assert votes.folds(3, seed=5)[1] != votes.folds(3, seed=6)[1]


def test_a_judgment_goes_to_every_fold_equally_often():
    votes = counted_comparisons(["a", "b", "c"], ["b", "c", "a"])
    hits = np.zeros((3, 3), int)
    for seed in range(900):
        for i, fold in enumerate(votes.folds(3, seed=seed)):
            hits[i, votes.items.codes_of(fold.items.take(fold.winner))] += 1
    assert stats.chisquare(hits.ravel()).pvalue > 1e-4


def test_folds_of_nothing():
    assert Preferences.empty().folds(2) == [Preferences.empty(), Preferences.empty()]


def test_folds_of_enormous_counts_need_no_card_for_each():
    counts = [10**12, 7, 3 * 10**12 + 1]
    votes = counted_comparisons(["a", "b", "c"], ["b", "c", "a"], count=np.array(counts))
    folds = votes.folds(3, seed=2)
    assert sum(folds[1:], folds[0]) == votes
    sizes = [int(fold.count.sum()) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    assert folds[0].count.max() != folds[1].count.max()  # what is shuffled still varies


def test_queries_dealt_some_at_a_time_are_dealt_alike(monkeypatch):
    rng = np.random.default_rng(4)
    count = rng.integers(1, 40, 300)
    votes = counted_comparisons(
        rng.integers(0, 9, 300), rng.integers(9, 12, 300), query=np.arange(300) % 7, count=count
    )
    whole = votes.folds(4)
    monkeypatch.setattr(sampling, "CARDS", 300)  # 256 cards of a judgment at least: all are shuffled as before
    assert votes.folds(4) == whole


def test_permutations_of_too_many_judgments_are_refused():
    votes = counted_comparisons(["a", "b"], ["b", "a"], count=np.array([10**12, 1]))
    assert Batch.subsets(votes, 5, 2).judgments.tolist() == [5, 5]
    with pytest.raises(UsageError, match="partition=False"):
        Batch.subsets(votes, 5, 2, partition=True)


def test_long_shuffles_are_compiled_however_few_positions_are_drawn(monkeypatch):
    """A block of 3 from a permutation of a million shuffles the million: in plain Python that took 20 seconds."""
    asked, real = [], sampling.quick_draws
    monkeypatch.setattr(sampling, "quick_draws", lambda positions: (asked.append(positions), real(positions))[1])
    draw_subsets(np.array([10**6]), np.array([1], np.uint64), 30_000, 2, partition=True)
    draw_subsets(np.array([10**5]), np.array([1], np.uint64), 30, 2)
    assert asked[0] >= sampling.COMPILED > asked[1]
