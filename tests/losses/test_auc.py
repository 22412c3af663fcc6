"""The AUC and how sure it is: against scikit-learn, brute force, DeLong's formula pair by pair, and simulation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from concordant.apps.commands import main
from concordant.errors import InputError, UsageError
from concordant.learning.features.reading import read_judged
from concordant.losses.metrics.auc import auc, auc_difference, auc_interval
from concordant.losses.metrics.metrics import metric

Floats = np.ndarray[Any, np.dtype[np.float64]]


def kernel(above: Floats, below: Floats) -> Floats:
    """ψ of every pair: 1, ½ or 0."""
    gap = above[:, None] - below[None, :]
    return (gap > 0) + 0.5 * (gap == 0)


def delong(columns: list[Floats], positive: Any) -> tuple[Floats, Floats]:
    """AUCs and their covariance matrix straight from the paper: S = S10/m + S01/n."""
    psi = [kernel(column[positive], column[~positive]) for column in columns]
    v10, v01 = np.array([p.mean(axis=1) for p in psi]), np.array([p.mean(axis=0) for p in psi])
    m, n = psi[0].shape
    theta = np.array([p.mean() for p in psi])
    s10 = (v10 - theta[:, None]) @ (v10 - theta[:, None]).T / (m - 1)
    s01 = (v01 - theta[:, None]) @ (v01 - theta[:, None]).T / (n - 1)
    return theta, s10 / m + s01 / n


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40))
def test_auc_of_every_query_by_counting_pairs(rows: list[tuple[int, int, int]]) -> None:
    score, label, query = (np.array(column) for column in zip(*rows, strict=True))
    queries = list(dict.fromkeys(query.tolist()))
    expected = []
    for each in queries:
        mine = query == each
        pairs = kernel(score[mine & (label >= 1)].astype(float), score[mine & (label < 1)].astype(float))
        expected.append(pairs.mean() if pairs.size else np.nan)
    if np.isnan(expected).all():
        with pytest.raises(InputError, match="class"):
            auc(score, label, query)
    else:
        assert np.array_equal(auc(score, label, query), expected, equal_nan=True)


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_auc_is_scikit_learns(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    label = rng.random(3_000) < 0.2
    score = np.round(rng.normal(size=3_000) + label, decimals)
    assert auc(score, label)[0] == pytest.approx(roc_auc_score(label, score), abs=1e-14)
    halves = np.repeat([4, 2], 1_500)
    mixed = rng.permutation(3_000)
    found = auc(score[mixed], label[mixed], halves[mixed])
    first = halves[mixed[0]] == 4
    expected = [roc_auc_score(label[part], score[part]) for part in (slice(1_500), slice(1_500, None))]
    assert found == pytest.approx(expected if first else expected[::-1], abs=1e-14)


def test_auc_takes_infinite_scores_and_grades() -> None:
    assert auc([-np.inf, np.inf, 0.0, np.inf], [0, 2, 0, 1]).tolist() == [1.0]
    assert auc([1, 2, 3], [0, 1, 2], relevant=2).tolist() == [1.0]
    assert auc([3, 2, 1], [-1, 1, 1]).tolist() == [0.0]
    assert metric("auc")([1, 2, 2], [0, 0, 1], ["q", "q", "q"], item=None).tolist() == [0.75]
    assert metric("roc-auc") is not None


@pytest.mark.parametrize(("size", "decimals"), [(12, 0), (60, 1), (400, 3)])
def test_delong_is_the_formula_pair_by_pair(size: int, decimals: int) -> None:
    rng = np.random.default_rng(size)
    positive = np.arange(size) < max(4, size // 4)
    signal = rng.normal(size=size) + positive
    one, two = (np.round(signal + noise * rng.normal(size=size), decimals) for noise in (0.5, 1.0))
    theta, covariance = delong([one, two], positive)
    mixed = rng.permutation(size)
    found = auc_interval(one[mixed], positive[mixed])
    error = np.sqrt(covariance[0, 0])
    assert (found.auc, found.standard_error) == pytest.approx((theta[0], error), rel=1e-12)
    z = norm.ppf(0.975)
    assert (found.lower, found.upper) == pytest.approx((max(0, theta[0] - z * error), min(1, theta[0] + z * error)))
    pair = auc_difference(one[mixed], two[mixed], positive[mixed], level=0.9)
    spread = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert pair.difference == pytest.approx(theta[0] - theta[1], abs=1e-14)
    assert pair.standard_error == pytest.approx(spread, rel=1e-10)
    assert pair.correlation == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    assert pair.p_value == pytest.approx(2 * norm.sf(abs(theta[0] - theta[1]) / spread))
    assert pair.upper - pair.lower == pytest.approx(2 * norm.ppf(0.95) * spread)
    logit = auc_interval(one, positive, scale="logit")
    assert logit.lower == pytest.approx(
        1 / (1 + (1 - theta[0]) / theta[0] * np.exp(z * error / theta[0] / (1 - theta[0])))
    )
    assert 0 < logit.lower < theta[0] < logit.upper < 1 and logit.method == "delong, logit"


def test_hanley_and_mcneils_ratings() -> None:
    """109 tomograms rated 1 to 5 (Hanley and McNeil, 1982, area .893), with DeLong's error and interval."""
    normal, abnormal = (33, 6, 6, 11, 2), (3, 2, 2, 11, 33)
    rating = np.concatenate([np.repeat(np.arange(1, 6), counts) for counts in (normal, abnormal)])
    found = auc_interval(rating, np.repeat([0, 1], [58, 51]))
    assert found.auc == pytest.approx(0.8932, abs=5e-5) and found.standard_error == pytest.approx(0.0307, abs=5e-5)
    assert (found.lower, found.upper) == pytest.approx((0.83295, 0.95339), abs=5e-6)


def test_auc_of_real_queries_is_scikit_learns(shared_data: Callable[[str], Path]) -> None:
    features, labels = read_judged(shared_data("mq2008") / "S1.txt")
    score, query = features.X[:, 24], np.asarray(features.query)
    found = auc(score, labels, query)
    for value, each in zip(found, dict.fromkeys(query.tolist()), strict=True):
        mine = query == each
        relevant = labels[mine] >= 1
        if relevant.any() and not relevant.all():
            assert value == pytest.approx(roc_auc_score(relevant, score[mine]), abs=1e-14)
        else:
            assert np.isnan(value)
    assert 0.5 < np.nanmean(found) < 1


@pytest.mark.parametrize("scale", ["auc", "logit"])
def test_intervals_cover_the_true_area(scale: str) -> None:
    rng = np.random.default_rng(8)
    positive = np.arange(120) < 40
    truth = norm.cdf(1 / np.sqrt(2))  # normal scores one standard deviation apart
    inside = paired = 0
    for _ in range(600):
        score = rng.normal(size=120) + positive
        found = auc_interval(score, positive, scale=scale)
        inside += found.lower <= truth <= found.upper
        pair = auc_difference(score + rng.normal(size=120), score + rng.normal(size=120), positive)
        paired += pair.lower <= 0 <= pair.upper
    assert 0.92 <= inside / 600 <= 0.98
    assert 0.92 <= paired / 600 <= 0.98


def test_no_variance_is_not_certainty() -> None:
    label = np.repeat([0, 1], 20)
    apart = auc_interval(np.arange(40), label)
    assert (apart.auc, apart.standard_error, apart.upper, apart.method) == (1.0, 0.0, 1.0, "disjoint pairs")
    assert apart.lower**20 == pytest.approx(0.025)  # Clopper and Pearson's bound for 20 of 20
    wrong = auc_interval(-np.arange(40), label)
    assert (wrong.auc, wrong.lower, wrong.upper) == pytest.approx((0.0, 0.0, 1 - apart.lower))
    level = auc_interval(np.zeros(40), label)
    assert level.auc == 0.5 and level.upper - 0.5 == pytest.approx(np.sqrt(np.log(40) / 40))
    same = auc_difference(np.arange(40), np.arange(40) ** 2, label)
    assert (same.difference, same.lower, same.upper, same.p_value) == (0.0, 0.0, 0.0, 1.0)
    other = auc_difference(np.arange(40), -np.arange(40), label)
    assert other.difference == 1.0 and np.isnan([other.lower, other.upper, other.p_value]).all()


def test_what_cannot_be_judged_is_said() -> None:
    with pytest.raises(InputError, match=re.escape("all 3 are below 1")):
        auc([1, 2, 3], [0, 0, 0])
    with pytest.raises(InputError, match="all 2 are at least 1"):
        auc_interval([1, 2], [1, 2])
    with pytest.raises(InputError, match="1 of at least 1 and 3 below"):
        auc_interval([1, 2, 3, 4], [0, 0, 0, 1])
    with pytest.raises(InputError, match="none of 2 queries"):
        auc([1, 2], [0, 1], [1, 2])
    with pytest.raises(InputError, match="labels has 1 rows"):
        auc([1, 2], [0])
    with pytest.raises(InputError, match="not numbers"):
        auc([1, np.nan], [0, 1])
    with pytest.raises(InputError):
        auc([], [])
    with pytest.raises(UsageError, match="level"):
        auc_interval([1, 2, 3, 4], [0, 0, 1, 1], level=95)
    with pytest.raises(UsageError, match="scale"):
        auc_interval([1, 2, 3, 4], [0, 0, 1, 1], scale="probit")
    with pytest.raises(UsageError, match="takes no cut-off"):
        metric("auc@10")


def test_evaluate_gives_one_list_delongs_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    label = (rng.random(80) < 0.4).astype(int)
    one, two = label + rng.normal(size=80), label + rng.normal(size=80)
    for name, column, role in (("one", one, "score"), ("two", two, "score"), ("labels", label, "label")):
        order = rng.permutation(80)
        rows = "".join(f"i{place},{column.tolist()[place]!r}\n" for place in order.tolist())
        (tmp_path / f"{name}.csv").write_text(f"item,{role}\n{rows}")
    paths = [str(tmp_path / f"{name}.csv") for name in ("one", "labels")]
    found, pair = auc_interval(one, label, level=0.9), auc_difference(one, two, label, level=0.9)
    main(["evaluate", *paths, "--metric", "ndcg@5", "auc", "--level", "0.9"])
    said = capsys.readouterr()
    header, ndcg, area = (line.split(",") for line in said.out.splitlines())
    assert header == ["name", "mean", "standard_error", "queries", "lower", "upper"]
    assert ndcg[2] == ndcg[4] == "" or ndcg[4].lower() == "nan"
    values = [float(area[place]) for place in (1, 2, 4, 5)]
    assert values == pytest.approx([found.auc, found.standard_error, found.lower, found.upper])
    assert "DeLong" in said.err
    main(["evaluate", *paths, "--metric", "auc", "--level", "0.9", "--against", str(tmp_path / "two.csv"), "-q"])
    said = capsys.readouterr()
    row = dict(zip(*(line.split(",") for line in said.out.splitlines()), strict=True))
    expected = {"difference": pair.difference, "lower": pair.lower, "upper": pair.upper, "p_value": pair.p_value}
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
    assert said.err == ""


def test_evaluate_takes_the_mean_over_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.csv").write_text("query,item,score\na,1,1\na,2,2\nb,1,1\nb,2,2\nc,1,1\n")
    (tmp_path / "l.csv").write_text("query,item,label\na,1,0\na,2,1\nb,1,2\nb,2,0\nc,1,1\n")
    main(["evaluate", str(tmp_path / "s.csv"), str(tmp_path / "l.csv"), "--metric", "auc"])
    said = capsys.readouterr()
    assert said.out.splitlines() == ["name,mean,standard_error,queries", "auc,0.5,0.5,2"]
    assert "1 of 3 queries have no value" in said.err
