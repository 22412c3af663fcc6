"""Friedman, Nemenyi, Wilcoxon, signs: against SciPy and the tables of Demšar (2006)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import concordant as cc
from concordant.boards.block_tests import Friedman, sign_test, signed_ranks
from seeds import seed


@pytest.mark.parametrize("grades", [0, 3])
def test_friedman_is_that_of_scipy_and_iman_davenport_follows(grades: int) -> None:
    rng = np.random.default_rng(seed(0))
    score = rng.normal(size=(5, 13)) + np.arange(5)[:, None] / 3
    score = np.round(score * grades) if grades else score
    found, plain = Friedman.of(score, 0.95), stats.friedmanchisquare(*score)
    assert found is not None
    assert (found.chi_square, found.p_value) == pytest.approx((plain.statistic, plain.pvalue))
    f = 12 * plain.statistic / (13 * 4 - plain.statistic)
    assert (found.f, found.f_p_value) == pytest.approx((f, stats.f.sf(f, 4, 48)))
    assert found.concordance == pytest.approx(plain.statistic / (13 * 4))
    assert found.mean_ranks == pytest.approx(stats.rankdata(-score, axis=0).mean(axis=1))


def test_only_whole_columns_are_blocks() -> None:
    score = np.array([[1.0, 2, 3, np.nan], [2, 1, 5, 4], [3, 3, 4, 5]])
    found, whole = Friedman.of(score, 0.95), Friedman.of(score[:, :3], 0.95)
    assert found == whole and found is not None and found.tasks == 3
    assert Friedman.of(score[:, 2:], 0.95) is None


def test_all_alike_is_no_difference() -> None:
    found = Friedman.of(np.ones((4, 9)), 0.95)
    assert found is not None and (found.chi_square, found.p_value, found.f_p_value) == (0.0, 1.0, 1.0)


def test_critical_values_of_nemenyi_are_those_of_demsar() -> None:
    """Demšar, JMLR 7, 2006: table 5(a), and CD = 1.25 and 1.33 … of four systems on 14 tasks (§3.2.2)."""
    table = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for k, q in table.items():
        found = Friedman.of(np.random.default_rng(0).normal(size=(k, 14)), 0.95)
        assert found is not None
        assert found.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 14)), abs=6e-4)
        if k == 4:
            assert round(found.critical_difference, 2) == 1.25


@pytest.mark.filterwarnings("ignore:Sample size too small")  # SciPy 1.13 warns of what the second law is asked for
def test_signed_ranks_are_those_of_scipy() -> None:
    rng = np.random.default_rng(seed(1))
    for n in (4, 11, 30, 80):
        exact, tied = rng.normal(size=(20, n)), rng.integers(-3, 4, (20, n)).astype(float)
        tied[:, 0] = 1.0
        plain = [stats.wilcoxon(row).pvalue for row in exact]
        assert signed_ranks(exact) == pytest.approx(plain, rel=1e-9)
        law = [stats.wilcoxon(row, method="approx").pvalue for row in tied]
        assert signed_ranks(tied) == pytest.approx(law, rel=1e-9)
    gaps = np.where(rng.random((20, 30)) < 0.4, np.nan, rng.normal(size=(20, 30)))
    assert signed_ranks(gaps) == pytest.approx([stats.wilcoxon(row[~np.isnan(row)]).pvalue for row in gaps], rel=1e-9)
    assert np.isnan(signed_ranks(np.array([[0.0, 0.0, np.nan]]))).all()


def test_signs_are_those_of_the_binomial_law() -> None:
    for wins, losses in ((0, 6), (3, 3), (12, 5), (300, 250)):
        found = sign_test(np.array([wins]), np.array([losses]))[0]
        assert found == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)


def test_nemenyi_wilcoxon_and_holm_are_those_of_scikit_posthocs() -> None:
    """Frozen values of scikit-posthocs 0.17.1: posthoc_nemenyi_friedman, posthoc_wilcoxon, the latter with Holm."""
    score = np.sin(1.7 * np.outer(np.arange(1, 6), np.arange(1, 13))) + 0.3571 * np.arange(5)[:, None]
    score = np.round(score, 4)
    nemenyi = [
        0.93797584,
        0.69681406,
        0.13728072,
        0.00706289,
        0.98575686,
        0.53029859,
        0.07367063,
        0.84022336,
        0.23513059,
    ]
    wilcoxon = [
        0.51855469,
        0.10986328,
        0.00927734,
        0.00244141,
        0.51855469,
        0.04248047,
        0.00683594,
        0.17626953,
        0.01611328,
    ]
    holm = [1.0, 0.54931641, 0.07421875, 0.02441406, 1.0, 0.25488281, 0.06152344, 0.70507812, 0.11279297, 0.70507812]
    names = [f"s{i}" for i in range(5)]
    rows = {"system": np.repeat(names, 12), "task": np.tile(np.arange(12), 5), "score": score.ravel()}
    found = {(row["first"], row["second"]): row for row in cc.rank_scores(rows).contrasts().to_pylist()}
    first, second = np.triu_indices(5, 1)
    pairs = [(names[i], names[j]) for i, j in zip(first, second, strict=True)]
    for column, frozen in (("p_wilcoxon", [*wilcoxon, 0.23339844]), ("p_wilcoxon_holm", holm)):
        ours = [found.get(pair, found.get(pair[::-1]))[column] for pair in pairs]  # type: ignore[index]
        assert ours == pytest.approx(frozen, abs=6e-9), column
    ranks = Friedman.of(score, 0.95).mean_ranks  # type: ignore[union-attr]
    for i, j, p in zip(
        first, second, [*nemenyi, 0.84022336], strict=True
    ):  # the level at which the pair is on the edge
        test = Friedman.of(score, 1 - p)
        assert test is not None and test.critical_difference == pytest.approx(abs(ranks[i] - ranks[j]), abs=1e-6)
