"""Metrics against the implementations they are named after, published values and plain twins from the formulas."""

import itertools
import json
import math
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, ttest_rel

import concordant as cc
from concordant.losses.metrics.conventions import CONVENTIONS
from concordant.losses.metrics.metrics import METRICS, compare, metric, summarise
from concordant.losses.metrics.pairwise import inversions
from conftest import SMALL

GOLDEN = json.loads((SMALL / "metrics_golden.json").read_text())
CASES = [
    pytest.param(case, name, id=f"{case['convention']}-{case['data']}-{case.get('by', 'original').split()[0]}-{name}")
    for case in GOLDEN["values"]
    for name in case["values"]
]
RESULTS = ("ndcg", "err", "precision", "average-precision", "reciprocal-rank", "kendall-tau", "pairwise-loss")


# -- the originals -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("case", "name"), CASES)
def test_equals_its_original(case, name):
    data = GOLDEN["data"][case["data"]]
    columns = data["score"], data["label"], data["query"]
    if name.startswith("linear "):
        at = int(name.partition("@")[2])
        found = cc.ndcg(*columns, at=at, convention=case["convention"], gain="linear")
    elif name.startswith("err"):
        found = cc.err(*columns, at=int(name.partition("@")[2]), convention=case["convention"], highest=4)
    else:
        found = metric(name, case["convention"])(*columns, item=data["item"])
    expected = case["values"][name]
    assert len(found) == len(expected) == 12
    refused = [place for place, value in enumerate(expected) if value is None]
    assert np.isfinite(found).all()  # ours always answers
    assert len(refused) <= 3
    kept = [place for place, value in enumerate(expected) if value is not None]
    np.testing.assert_allclose(
        found[kept], np.array([expected[i] for i in kept]), rtol=0, atol=case.get("within", 1e-12)
    )


def test_single_precision_of_trec_and_of_nothing_else():
    columns = [1 + 1e-10, 1.0], [0, 1]
    assert cc.ndcg(*columns, convention="trec", item=["a", "b"]).tolist() == [1.0]  # tied: b before a
    assert cc.ndcg(*columns, convention="sklearn").tolist() == [pytest.approx(1 / math.log2(3))]
    assert cc.ndcg(*columns).tolist() == [pytest.approx(1 / math.log2(3))]


def test_live_parity_with_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(5)
    score, label = draw.integers(0, 5, (40, 12)).astype(float), draw.integers(0, 4, (40, 12))
    query = np.repeat(np.arange(40), 12)
    for at in (1, 4, None):
        expected = [sklearn.ndcg_score(label[i : i + 1], score[i : i + 1], k=at) for i in range(40)]
        found = cc.ndcg(score.ravel(), label.ravel(), query, at=at, convention="sklearn")
        np.testing.assert_allclose(found, expected, atol=1e-12)


# -- published values ----------------------------------------------------------------------------------------------
def test_published_values():
    five = [0.1, 0.2, 0.3, 4, 70], [10, 0, 0, 1, 5]
    assert cc.ndcg(*five, at=None)[0] == pytest.approx(0.409738, abs=5e-7)
    assert cc.ndcg(*five, at=None, gain="linear")[0] == pytest.approx(0.695694, abs=5e-7)
    tied = [0.1, 0.9, 0.1, 0.9], [0, 0, 1, 1]
    assert cc.ndcg(*tied, at=None)[0] == pytest.approx(0.6509, abs=5e-5)
    assert cc.ndcg(*tied, at=2)[0] == pytest.approx(0.3868, abs=1e-4)


def test_letor4_script():
    columns = list(range(10, 0, -1)), [0, 2, 1, 0, 2, 1, 0, 0, 1, 0]
    for at, script, burges in ((3, 0.5476, 0.4437), (5, 0.6510, 0.5722), (10, 0.7439, 0.6780)):
        assert cc.ndcg(*columns, at=at, convention="letor4")[0] == pytest.approx(script, abs=5e-5)
        assert cc.ndcg(*columns, at=at)[0] == pytest.approx(burges, abs=5e-5)


# -- plain twins ---------------------------------------------------------------------------------------------------
def plain_order(score, label, ties):
    """Rows by descending score; ties by row, or the lower or higher label first."""
    key = {"input": lambda i: i, "worst": lambda i: label[i], "best": lambda i: -label[i]}[ties]
    return sorted(range(len(score)), key=lambda i: (-score[i], key(i), i))


def plain_ndcg(score, label, at, gain, discount):
    def total(order):
        return sum(gain(label[i]) / discount(rank) for rank, i in enumerate(order[:at], 1))

    best = max(total(order) for order in itertools.permutations(range(len(score))))
    return lambda order: total(order) / best if best > 0 else 0.0


def plain_err(order, label, at, top):
    value, reach = 0.0, 1.0
    for rank, i in enumerate(order[:at], 1):
        stop = (2.0 ** label[i] - 1) / 2.0**top
        value, reach = value + reach * stop / rank, reach * (1 - stop)
    return value


def plain_pairwise(score, matrix, ties):
    size, total = len(score), 0.0
    for i, j in itertools.combinations(range(size), 2):
        if ties == "paper":
            total += matrix[i][j] * (score[i] <= score[j]) + matrix[j][i] * (score[j] < score[i])
        elif score[i] == score[j]:
            total += max(matrix[i][j], matrix[j][i])
        else:
            total += matrix[i][j] if score[i] < score[j] else matrix[j][i]
    return total


small_lists = st.lists(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), min_size=1, max_size=5), min_size=1, max_size=5
)


def flattened(lists, seed):
    """Columns of all lists, rows shuffled across lists; and the lists in order of first appearance, rows as given."""
    rows = [(number, score, label) for number, rows in enumerate(lists) for score, label in rows]
    np.random.default_rng(seed).shuffle(rows)
    query, score, label = (list(column) for column in zip(*rows))
    parts = [[(s, r) for q, s, r in zip(query, score, label) if q == name] for name in dict.fromkeys(query)]
    return score, label, [f"q{q}" for q in query], parts


@given(small_lists, st.sampled_from([1, 2, 3, None]), st.sampled_from(["input", "worst", "best"]), st.integers(0, 99))
def test_lists_against_the_formulas(lists, at, ties, seed):
    score, label, query, parts = flattened(lists, seed)
    ndcg = cc.ndcg(score, label, query, at=at, ties=ties)
    odd = cc.ndcg(score, label, query, at=at, ties=ties, gain=[0, 1, 5, 6], discount=lambda rank: rank**0.5)
    err = cc.err(score, label, query, at=at, ties=ties, highest=3)
    precision = cc.precision(score, label, query, at=at, ties=ties)
    attainable = cc.precision(score, label, query, at=at, ties=ties, divide="attainable")
    mean_precision = cc.average_precision(score, label, query, at=at, ties=ties)
    reciprocal = cc.reciprocal_rank(score, label, query, at=at, ties=ties)
    for place, rows in enumerate(parts):
        s, r = zip(*rows)
        order = plain_order(s, r, ties)
        top = order[:at]
        burges = plain_ndcg(s, r, at, lambda x: 2.0**x - 1, lambda rank: math.log2(1 + rank))
        assert ndcg[place] == pytest.approx(burges(order), abs=1e-12)
        other = plain_ndcg(s, r, at, lambda x: [0, 1, 5, 6][x], math.sqrt)
        assert odd[place] == pytest.approx(other(order), abs=1e-12)
        assert err[place] == pytest.approx(plain_err(order, r, at, 3), abs=1e-12)
        hits = [rank for rank, i in enumerate(order, 1) if r[i] >= 1]
        seen = [rank for rank in hits if at is None or rank <= at]
        assert precision[place] == pytest.approx(len(seen) / (at or len(order)), abs=1e-12)
        best = sum(sorted(r, reverse=True)[:at])
        assert attainable[place] == pytest.approx(sum(r[i] for i in top) / best if best else 0.0, abs=1e-12)
        ap = sum(number / rank for number, rank in enumerate(seen, 1)) / len(hits) if hits else 0.0
        assert mean_precision[place] == pytest.approx(ap, abs=1e-12)
        assert reciprocal[place] == pytest.approx(1 / seen[0] if seen else 0.0, abs=1e-12)


@given(small_lists, st.sampled_from([1, 2, None]), st.integers(0, 99))
def test_averaged_ties_are_the_mean_over_all_orders(lists, at, seed):
    score, label, query, parts = flattened(lists, seed)
    found = cc.ndcg(score, label, query, at=at, ties="averaged")
    precise = cc.precision(score, label, query, at=at, ties="averaged")
    for place, rows in enumerate(parts):
        s, r = zip(*rows)
        burges = plain_ndcg(s, r, at, lambda x: 2.0**x - 1, lambda rank: math.log2(1 + rank))
        orders = [
            o for o in itertools.permutations(range(len(s))) if all(s[a] >= s[b] for a, b in itertools.pairwise(o))
        ]
        assert found[place] == pytest.approx(np.mean([burges(list(order)) for order in orders]), abs=1e-12)
        hits = [sum(r[i] >= 1 for i in order[:at]) / (at or len(s)) for order in orders]
        assert precise[place] == pytest.approx(np.mean(hits), abs=1e-12)


@given(small_lists, st.sampled_from(["heavier", "paper"]), st.integers(0, 99))
def test_pairwise_loss_against_the_formula(lists, ties, seed):
    score, label, query, parts = flattened(lists, seed)
    found = cc.pairwise_loss(score, label, query, ties=ties)
    share = cc.pairwise_loss(score, label, query, ties=ties, normalise=True)
    for place, rows in enumerate(parts):
        s, r = zip(*rows)
        matrix = [[max(0, a - b) for b in r] for a in r]
        expected = plain_pairwise(s, matrix, ties)
        assert found[place] == expected
        whole = sum(map(sum, matrix))
        assert share[place] == pytest.approx(expected / whole if whole else 0.0, abs=1e-12)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6), st.data(), st.sampled_from(["heavier", "paper"]))
def test_pairwise_loss_of_a_graph(score, data, ties):
    size = len(score)
    weights = st.lists(st.sampled_from([0, 0, 1, 2.5]), min_size=size, max_size=size)
    matrix = np.array(data.draw(st.lists(weights, min_size=size, max_size=size)), float)
    np.fill_diagonal(matrix, 0)
    first, second = np.nonzero(matrix)
    weight = matrix[first, second]
    expected = plain_pairwise(score, matrix, ties)
    assert cc.pairwise_loss(score, adjacency=matrix, ties=ties).tolist() == [expected]
    twice = np.append(first, first), np.append(second, second), np.append(weight, weight)
    assert cc.pairwise_loss(score, edges=twice, ties=ties).tolist() == [2 * expected]


def test_a_tie_and_the_numbering():
    assert cc.pairwise_loss([0, 0], [0, 2]).tolist() == [2]
    assert cc.pairwise_loss([0, 0], [2, 0]).tolist() == [2]
    assert cc.pairwise_loss([0, 0], [0, 2], ties="paper").tolist() == [0]
    assert cc.pairwise_loss([0, 0], [2, 0], ties="paper").tolist() == [2]


def test_pairwise_loss_of_fractions_and_many_rows():
    draw = np.random.default_rng(0)
    score, label = draw.integers(0, 90, 3000), draw.normal(size=3000)
    query = draw.integers(0, 40, 3000)
    found = cc.pairwise_loss(score, label, query)
    for place, name in enumerate(dict.fromkeys(query.tolist())):
        s, r = score[query == name], label[query == name]
        expected = (np.maximum(r[:, None] - r, 0) * (s[:, None] <= s)).sum()
        assert found[place] == pytest.approx(expected, rel=1e-13)


@given(small_lists, st.integers(0, 99))
def test_kendall_against_scipy(lists, seed):
    score, label, query, parts = flattened(lists, seed)
    found = cc.kendall_tau(score, label, query)
    plain = cc.kendall_tau(score, label, query, variant="a")
    for place, rows in enumerate(parts):
        s, r = zip(*rows)
        expected = kendalltau(s, r).statistic if len(s) > 1 else np.nan
        np.testing.assert_allclose(found[place], expected, atol=1e-12)
        signs = [np.sign(a[0] - b[0]) * np.sign(a[1] - b[1]) for a, b in itertools.combinations(rows, 2)]
        np.testing.assert_allclose(plain[place], np.mean(signs) if signs else np.nan, atol=1e-12)


def test_inversions_count_what_is_out_of_order():
    assert inversions(np.zeros(4, int), np.array([2, 0, 1, 0]), None, 2).tolist() == [4, 0]
    assert inversions(np.zeros(0, int), np.zeros(0, int), None, 3).tolist() == [0, 0, 0]


# -- laws ----------------------------------------------------------------------------------------------------------
def test_large_labels_of_one_query_do_not_reach_another() -> None:
    """Found by an attack: sums over all queries lost what is small beside 2^53, and a loss came out negative."""
    query = [0, 0, 1, 1]
    for large in ([1e17, 0], [1e20, 0], [1e308, 0]):
        assert cc.pairwise_loss([1, 2, 1, 2], [*large, 2, 1], query).tolist() == [large[0], 1]
        assert cc.pairwise_loss([1, 2, 1, 2], [*large, 0.5, 0.25], query).tolist() == [large[0], 0.25]
    rng = np.random.default_rng(3)
    label, score = rng.integers(0, 10, 2000).astype(float), rng.normal(size=2000)
    query = np.repeat(np.arange(200), 10)
    shifted = cc.pairwise_loss(score, label + 1.7e12, query)  # times in milliseconds
    assert shifted.tolist() == cc.pairwise_loss(score, label, query).tolist()


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_cut_off_saves_work_and_changes_nothing(convention):
    draw = np.random.default_rng(3)
    lengths = draw.integers(1, 80, 60)
    query = np.repeat(np.arange(60), lengths)
    score, label = draw.integers(0, 25, len(query)) / 8, draw.integers(0, 5, len(query))
    item = draw.permutation(len(query))
    for name in ("ndcg", "precision", "err", "reciprocal-rank", "average-precision"):
        if convention == "sklearn" and name not in ("ndcg", "precision"):
            continue
        one = partial(METRICS[name].function, convention=convention, **({"highest": 4} if name == "err" else {}))
        whole = one(score, label, query, at=None, item=item)
        if name not in ("precision", "average-precision"):  # these divide by the cut-off
            assert np.array_equal(whole, one(score, label, query, at=80, item=item))
        for at in (1, 5, None):
            found = one(score, label, query, at=at, item=item)
            rows = [query == q for q in range(60)]
            apart = [one(score[part], label[part], at=at, item=item[part])[0] for part in rows]
            np.testing.assert_allclose(found, apart, atol=1e-14)


def test_any_make_of_column_and_any_order_of_rows():
    draw = np.random.default_rng(8)
    query = draw.integers(0, 7, 200)
    score, label = draw.permutation(200) / 8, draw.integers(0, 4, 200)
    expected = dict(zip(dict.fromkeys(query.tolist()), cc.ndcg(score, label, query, at=5)))
    texts = [f"é{q}" for q in query]
    for column in (texts, pa.array(texts), pa.array(texts).dictionary_encode(), np.array(texts), query.astype(np.int8)):
        assert cc.ndcg(pa.array(score), label.tolist(), column, at=5).tolist() == list(expected.values())
    order = draw.permutation(200)
    again = dict(zip(dict.fromkeys(query[order].tolist()), cc.ndcg(score[order], label[order], query[order], at=5)))
    assert again == expected


def test_no_rows_no_values():
    for name in RESULTS:
        assert metric(name)([], [], []).tolist() == []
        assert metric(name)([], []).tolist() == []


def test_single_documents_negative_labels_and_queries_without_relevance():
    for convention in CONVENTIONS:
        empty = CONVENTIONS[convention].empty
        assert cc.ndcg([1.0], [1], convention=convention).tolist() == [1.0]
        assert cc.ndcg([1.0, 2.0], [0, 0], convention=convention).tolist() == [empty]
        assert cc.ndcg([1.0, 2.0], [0, 0], convention=convention, empty=0.25).tolist() == [0.25]
        if convention != "lightgbm":
            assert cc.ndcg([1.0, 2.0], [-1, -2], convention=convention).tolist() == [empty]
    worth = 1 / math.log2(3)
    assert cc.ndcg([2, 1], [-1, 1])[0] == pytest.approx((-0.5 + worth) / (1 - 0.5 * worth))
    assert cc.ndcg([2, 1], [-1, 1], convention="sklearn")[0] == pytest.approx((-1 + worth) / (1 - worth))
    assert cc.ndcg([2, 1], [-1, 1], convention="trec")[0] == pytest.approx(worth)


# -- summaries -----------------------------------------------------------------------------------------------------
def test_means_and_paired_comparison():
    draw = np.random.default_rng(1)
    first = draw.random(30)
    second = first + draw.normal(0.05, 0.1, 30)
    found = compare(second, first)
    judged = ttest_rel(second, first)
    bounds = judged.confidence_interval(0.95)
    assert (found.p_value, found.lower, found.upper) == pytest.approx((judged.pvalue, bounds.low, bounds.high))
    assert found.wins + found.losses + found.ties == found.queries == 30
    one = summarise([1.0, 2.0, 6.0, np.nan])
    assert (one.mean, one.queries, one.undefined) == (3.0, 3, 1)
    assert one.standard_error == pytest.approx(math.sqrt(7 / 3))
    assert math.isnan(summarise([1.0]).standard_error)
    assert math.isnan(summarise([]).mean)
    same = compare([1.0, 2.0], [1.0, 2.0])
    assert (same.mean, same.p_value, same.ties) == (0.0, 1.0, 2)
    with pytest.raises(cc.InputError, match="3 values, the second 2"):
        compare([1, 2, 3], [1, 2])


# -- what is refused -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cc.ndcg([1, 2], [1]), "labels has 1 rows, scores have 2"),
        (lambda: cc.ndcg([1, 2], [1, 2], ["a"]), "query has 1 rows, scores have 2"),
        (lambda: cc.ndcg([1, np.nan], [1, 2]), "scores: 1 of 2 are not numbers .*row 2"),
        (lambda: cc.ndcg([1, 2], [1, np.inf]), "labels: 1 of 2 are not finite .*row 2"),
        (lambda: cc.ndcg(["x", "y"], [1, 2]), "scores must be real numbers"),
        (lambda: cc.ndcg([1, None], [1, 2]), "scores"),
        (lambda: cc.ndcg([[1, 2]], [1, 2]), "one column"),
        (lambda: cc.ndcg([1, 2], [1, 2], ["a", None]), "missing"),
        (lambda: cc.ndcg([1, 2], [1, 2], [1.5, 2.5]), "query: labels must be texts or integers"),
        (lambda: cc.ndcg([1, 2], [1, 31], convention="lightgbm"), "labels 0 to 30"),
        (lambda: cc.ndcg([1, 2], [1, -1], convention="lightgbm"), "1 of 2 labels are not in the table .*-1"),
        (lambda: cc.ndcg([1, 2], [1, 32], convention="xgboost"), "above 31"),
        (lambda: cc.ndcg([1, 2], [1, 2000]), "gain of label 2000 is not finite"),
        (lambda: cc.ndcg([1, 1], [1, 2], convention="trec"), "give items"),
        (lambda: cc.ndcg([1, 1], [1, 2], convention="trec", item=["a"]), "item has 1 rows"),
        (lambda: cc.ndcg([1], [1], convention="sklern"), "did you mean 'sklearn'"),
        (lambda: cc.ndcg([1], [1], gain="exponental"), "did you mean 'exponential'"),
        (lambda: cc.ndcg([1], [1], discount="log"), "log2"),
        (lambda: cc.ndcg([1], [1], discount=[0.0]), "must be positive"),
        (lambda: cc.ndcg([1], [1], ties="any"), "unknown rule for ties"),
        (lambda: cc.ndcg([1], [1], at=0), "at must be an integer of at least 1"),
        (lambda: cc.ndcg([1], [1], at=2.5), "at must be an integer"),
        (lambda: cc.ndcg([1, 2], [1, 2], gain=lambda x: x[0]), "one number per value"),
        (lambda: cc.err([1], [1], convention="sklearn"), "averaged"),
        (lambda: cc.err([1], [3], highest=2), "above the highest, 2"),
        (lambda: cc.err([1], [3], gain="linear"), r"not within \[0, 1\]"),
        (lambda: cc.reciprocal_rank([1], [1], convention="sklearn"), "averaged"),
        (lambda: cc.average_precision([1], [1], at=3, convention="sklearn"), "averaged"),
        (lambda: cc.precision([1], [1], divide="n"), "attainable"),
        (lambda: cc.kendall_tau([1], [1], variant="c"), "'a' or 'b'"),
        (lambda: cc.pairwise_loss([1]), "one of labels, edges and adjacency"),
        (lambda: cc.pairwise_loss([1, 2], edges=([0], [2])), "no row 2"),
        (lambda: cc.pairwise_loss([1, 2], edges=([0], [0])), "to itself"),
        (lambda: cc.pairwise_loss([1, 2], edges=([0], [1], [-1.0])), "at least 0"),
        (lambda: cc.pairwise_loss([1, 2], query=["a", "b"], edges=([0], [1])), "different queries"),
        (lambda: cc.pairwise_loss([1, 2], adjacency=np.zeros((3, 3))), r"shape \(2, 2\)"),
        (lambda: metric("ndgc@10"), "did you mean 'ndcg'"),
        (lambda: metric("ndcg@"), "cut-off"),
        (lambda: metric("ndcg@0"), "at least 1"),
        (lambda: metric("tau@3"), "takes no cut-off"),
        (lambda: metric("err-@3"), "minus"),
        (lambda: metric("ndcg", "letor"), "did you mean 'letor4'"),
    ],
)
def test_bad_input_says_what_and_where(call, words):
    with pytest.raises(cc.ConcordantError, match=words):
        call()


def test_metrics_start_without_files_and_engines():
    code = "import sys, concordant; concordant.ndcg([1.0], [1]); assert 'duckdb' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("convention", ["burges", "sklearn", "xgboost", "lightgbm", "letor4"])
def test_parts_that_threads_work_on_change_nothing(convention, monkeypatch):
    draw = np.random.default_rng(3)
    query = np.sort(draw.integers(0, 60, 900))
    shuffled = draw.permutation(900)
    scores, labels = draw.integers(0, 30, 900) / 4, draw.integers(0, 5, 900)
    whole = [cc.ndcg(scores, labels, query, at=7, convention=convention)]
    whole.append(cc.ndcg(scores, labels, query[shuffled], at=7, convention=convention))
    monkeypatch.setattr("concordant.losses.metrics.ndcg.PART", 64)
    assert np.array_equal(cc.ndcg(scores, labels, query, at=7, convention=convention), whole[0])
    assert np.array_equal(cc.ndcg(scores, labels, query[shuffled], at=7, convention=convention), whole[1])
    with pytest.raises(cc.InputError, match="1 of 900 labels"):
        cc.ndcg(scores, np.append(labels[1:], 40), query, convention="lightgbm")
