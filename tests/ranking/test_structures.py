"""Every structure function against its plain twin, worked numbers, and what they say about what they cannot know."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import plain
from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.layouts import KINDS
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking.adjacency import difference_graph, mean_adjacency
from concordant.ranking.closed_forms import average_log_odds, borda, budgeted_borda, counting, thurstone_mosteller
from concordant.ranking.eigenvector import principal_eigenvector
from concordant.ranking.ranked_lists import cascade
from concordant.ranking.structures import STRUCTURES, structure
from conftest import shared_data
from small_logs import logs


def twin(name, batch, graph):
    n, _ = plain.wins(batch, graph)
    if name == "borda" and batch.prefs.kind == "orders":
        return plain.positional_borda(batch, graph)
    return {
        "counting": lambda: plain.counting(n),
        "borda": lambda: plain.borda(n),
        "copeland": lambda: plain.copeland(n),
        "budgeted-borda": lambda: plain.budgeted_borda(n),
        "log-odds": lambda: plain.average_log_odds(n, 0.5),
        "thurstone-mosteller": lambda: plain.thurstone_mosteller(n, 0.5),
        "eigenvector": lambda: plain.eigenvector(n, 0.5),
        "kemeny": lambda: plain.kemeny(n),
        "cascade": lambda: plain.cascade(batch, graph),
        "dependent-click": lambda: plain.cascade(batch, graph),  # of one click a list; see test_click_models
        "rrf": lambda: plain.rrf(batch, graph),
        "combsum": lambda: plain.combsum(batch, graph),
    }[name]()


OWN_FILES = {"bradley-terry", "plackett-luce", "position-based", "inverse-propensity"}  # test files of their own
FORMULAS = sorted(set(STRUCTURES) - OWN_FILES)


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n in FORMULAS for k in KINDS if k in STRUCTURES[n].kinds])
@given(data=st.data())
@settings(max_examples=20)
def test_agrees_with_plain_twin(name, kind, data):
    prefs = data.draw(logs(kind))
    for batch in (Batch.whole(prefs), Batch.subsets(prefs, 3, 3, seed=1)):
        scores = STRUCTURES[name](batch)
        assert scores.value.shape == batch.item.shape
        for graph in range(len(batch)):
            mine = scores.value[batch.node_start[graph] : batch.node_start[graph + 1]]
            np.testing.assert_allclose(mine, twin(name, batch, graph), rtol=1e-9, atol=1e-9)
        assert (scores.status != Status.STOPPED).all()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=30)
def test_mean_adjacency_and_difference_graph(kind, data):
    batch = Batch.whole(data.draw(logs(kind)))
    mean, net = mean_adjacency(batch), difference_graph(batch)
    for graph in range(len(batch)):
        n, k = plain.wins(batch, graph)
        here = slice(mean.pair_start[graph], mean.pair_start[graph + 1])
        first, second = mean.first[here] - batch.node_start[graph], mean.second[here] - batch.node_start[graph]
        dense, weights = np.zeros((2, *n.shape))
        dense[first, second], dense[second, first] = mean.above[here], mean.below[here]
        weights[first, second], weights[second, first] = net.wins[here], net.losses[here]
        np.testing.assert_allclose(dense, n / k, atol=1e-12)
        np.testing.assert_allclose(weights, np.maximum(n - n.T, 0) / k, atol=1e-12)
    assert not net.ties.any()
    assert len(net.first) == len(mean.first)  # level pairs stay: judged is not the same as unknown


# -- worked numbers ----------------------------------------------------------------------------------------------
R = np.array([1.0, 0.9, 0.0])
DESIGN = {(0, 1): 0.4, (0, 2): 0.02, (1, 2): 0.58}  # how often each pair is compared


def uneven(total):
    """The expected comparisons under BTL with relevances R and an uneven design, as counts."""
    rows = [(i, j, share) for (i, j), share in DESIGN.items()] + [(j, i, share) for (i, j), share in DESIGN.items()]
    count = [round(total * share / (1 + np.exp(R[j] - R[i]))) for i, j, share in rows]
    return Batch.whole(Preferences.from_comparisons([r[0] for r in rows], [r[1] for r in rows], count=count))


def test_smoothing_the_frequencies_instead_of_the_counts_turns_an_uneven_design_round():
    batch = uneven(10**12)
    n, k = plain.wins(batch, 0)
    wrong = plain.average_log_odds(n / k, 0.01)  # a fixed c beside P̂ = n/k
    np.testing.assert_allclose(wrong, [0.283, 0.385, -0.668], atol=5e-4)
    right = average_log_odds(batch).value
    assert right[0] > right[1] > right[2]
    m = 3
    np.testing.assert_allclose(right, m / (m - 1) * (R - R.mean()), atol=1e-8)  # (27)


def test_joint_frequencies_would_reward_being_compared_often():
    batch = uneven(10**12)
    n, k = plain.wins(batch, 0)
    np.testing.assert_allclose((n / k).sum(axis=1) / 2, [0.112, 0.301, 0.087], atol=6e-4)
    np.testing.assert_allclose(budgeted_borda(batch).value, [0.628, 0.593, 0.279], atol=6e-4)
    # s = A1 is the same up to scale: A_jl = 2 P(j≻l | j, l compared) − 1
    np.testing.assert_allclose(borda(batch).value, 2 * (2 * np.array([0.628, 0.593, 0.279]) - 1), atol=2e-3)


@pytest.mark.parametrize("relevance", [[0.3, -1.0, 2.0, 0.1, 0.0], [2.0, 1.0]])
def test_average_log_odds_tend_to_27(relevance):
    r = np.array(relevance)
    m = len(r)
    i, j = np.nonzero(~np.eye(m, dtype=bool))
    count = np.round(1e14 / (1 + np.exp(r[j] - r[i]))).astype(np.int64)
    batch = Batch.whole(Preferences.from_comparisons(i, j, count=count))
    limit = [
        np.mean([np.log1p(np.exp(r[a] - r[b])) - np.log1p(np.exp(r[b] - r[a])) for b in range(m) if b != a])
        for a in range(m)
    ]
    np.testing.assert_allclose(limit, m / (m - 1) * (r - r.mean()), atol=1e-12)  # the remark below (27)
    np.testing.assert_allclose(average_log_odds(batch).value, limit, atol=1e-10)


def chain(potential, total=10**14):
    """Neighbours compared only, at the odds of their potentials."""
    i = np.arange(len(potential) - 1)
    up = np.round(total / (1 + np.exp(potential[1:] - potential[:-1]))).astype(np.int64)
    return Preferences.from_comparisons(
        np.concatenate([i, i + 1]), np.concatenate([i + 1, i]), count=np.concatenate([up, total - up])
    )


def test_incomplete_design_biases_the_average_and_not_least_squares():
    truth = np.array([3.0, 2.5, 0.0, -0.5])
    batch = Batch.whole(chain(truth))
    scores = average_log_odds(batch)
    np.testing.assert_allclose(scores.value, [0.17, 0.67, -0.67, -0.17], atol=5e-3)
    (note,) = scores.notes
    assert (note.code, note.numbers) == ("pairs never judged", {"graphs": 1, "of": 1})
    assert "biased" in note and "thurstone-mosteller" in note
    assert not average_log_odds(uneven(100)).notes
    np.testing.assert_allclose(thurstone_mosteller(batch).value, truth - truth.mean(), atol=1e-9)
    np.testing.assert_allclose(STRUCTURES["bradley-terry"](batch, prior=0).value, truth - truth.mean(), atol=1e-8)


def test_long_chain_is_solved_exactly_and_leaves_the_other_graphs_alone():
    potential = np.cumsum(np.random.default_rng(5).normal(size=4000))
    batch = Batch.whole(chain(potential))
    scores = thurstone_mosteller(batch)
    np.testing.assert_allclose(scores.value, potential - potential.mean(), atol=1e-7)
    assert scores.status.tolist() == [Status.CONVERGED]
    long, short = chain(potential), chain(np.array([1.0, 0.0, 2.0]))
    both = Preferences.from_comparisons(
        np.concatenate([long.winner, short.winner]),
        np.concatenate([long.loser, short.loser]),
        np.repeat([0, 1], [long.distinct, short.distinct]),
        count=np.concatenate([long.count, short.count]),
    )
    together = thurstone_mosteller(Batch.whole(both)).value
    np.testing.assert_array_equal(together[-3:], thurstone_mosteller(Batch.whole(short)).value)


@given(logs("comparisons"))
def test_least_squares_weighted_by_counts(prefs):
    batch = Batch.whole(prefs)
    scores = thurstone_mosteller(batch, weights="counts", c0=1.0)
    for graph in range(len(batch)):
        n, _ = plain.wins(batch, graph)
        mine = scores.value[batch.node_start[graph] : batch.node_start[graph + 1]]
        np.testing.assert_allclose(mine, plain.thurstone_mosteller(n, 1.0, n + n.T), atol=1e-9)


def test_components_are_centred_each_and_untouched_items_have_the_neutral_value():
    prefs = Preferences.from_comparisons(["a", "b", "d"], ["b", "c", "e"], ["q"] * 3)
    one = Batch.subsets(prefs, 1, 3, seed=0)
    assert one.graphs.nodes == 15
    neutral = {"counting": 0.5, "budgeted-borda": 0.5, "kemeny": -1.0}
    for name, member in STRUCTURES.items():
        if "comparisons" not in member.kinds or name == "eigenvector":
            continue
        scores = member(one)
        touched = np.zeros(15, bool)
        touched[one.graphs.first] = touched[one.graphs.second] = True
        np.testing.assert_allclose(scores.value[~touched], neutral.get(name, 0.0), atol=1e-15)
        assert member.neutral == {0.5: "1/2", -1.0: "-1"}.get(neutral.get(name), "0")
    scores = thurstone_mosteller(Batch.whole(prefs))
    assert scores.component.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose([scores.value[:3].sum(), scores.value[3:].sum()], 0.0, atol=1e-14)


def test_eigenvector_of_a_consistent_matrix_is_its_potential_and_cycles_do_not_stop_it():
    truth = np.exp(np.array([0.5, 0.0, -1.0, 1.5]))
    i, j = np.nonzero(~np.eye(4, dtype=bool))
    count = np.round(1e14 * truth[i] / (truth[i] + truth[j])).astype(np.int64)
    value = principal_eigenvector(Batch.whole(Preferences.from_comparisons(i, j, count=count))).value
    np.testing.assert_allclose(value[:, None] / value, truth[:, None] / truth, rtol=1e-9)
    cycle = Preferences.from_comparisons([0, 1, 2], [1, 2, 0], count=[10**6] * 3)
    scores = principal_eigenvector(Batch.whole(cycle))
    np.testing.assert_allclose(scores.value, 1.0, rtol=1e-12)
    assert scores.status.tolist() == [Status.CONVERGED]
    lopsided = Preferences.from_comparisons([0, 1, 2, 0], [1, 2, 0, 3], count=[10**6, 10**5, 10**4, 7])
    scores = principal_eigenvector(Batch.whole(lopsided))
    np.testing.assert_allclose(scores.value, plain.eigenvector(plain.wins(Batch.whole(lopsided), 0)[0], 0.5), rtol=1e-7)
    stopped = principal_eigenvector(Batch.whole(lopsided), iterations=2)
    assert stopped.status.tolist() == [Status.STOPPED]
    assert stopped.gradient[0] > 1e-12
    assert "stopped" in [note.code for note in stopped.notes]


def test_untouched_item_in_the_eigenvector_has_ratio_one_to_all():
    prefs = Preferences.from_comparisons(["a", "c"], ["b", "b"], ["q", "q"])
    batch = Batch.subsets(prefs, 1, 4, seed=3)
    value = principal_eigenvector(batch).value
    for graph in range(len(batch)):
        n, _ = plain.wins(batch, graph)
        np.testing.assert_allclose(value[3 * graph : 3 * graph + 3], plain.eigenvector(n, 0.5), rtol=1e-10)


def test_positional_borda_orders_full_rankings_like_the_classic_count():
    random = np.random.default_rng(2)
    m, votes = 7, 40
    rank = np.concatenate([random.permutation(m) + 1 for _ in range(votes)])
    prefs = Preferences.from_orders(
        ["q"] * (m * votes), np.repeat(np.arange(votes), m), np.tile(np.arange(m), votes), rank
    )
    classic = (m - rank.reshape(votes, m)).mean(axis=0)  # m − 1 points for the first, 0 for the last
    batch = Batch.whole(prefs)
    np.testing.assert_allclose(borda(batch).value, 2 * classic / (m - 1) - 1, atol=1e-12)
    np.testing.assert_allclose(borda(batch).value, plain.borda(plain.wins(batch, 0)[0]) / (m - 1), atol=1e-12)


# -- cascade -----------------------------------------------------------------------------------------------------
def test_cascade_maximises_its_likelihood():
    random = np.random.default_rng(4)
    shown = [random.permutation(5)[:3] for _ in range(60)]
    click = [int(random.integers(0, 4)) for _ in shown]
    prefs = Preferences.from_selections(
        ["q"] * 180,
        np.repeat(np.arange(60), 3),
        np.tile([1, 2, 3], 60),
        np.concatenate(shown),
        np.concatenate([np.arange(3) == c for c in click]),
    )

    def likelihood(p):  # AoS §5.2, the display before the estimator
        total = 0.0
        for items, c in zip(shown, click, strict=True):
            total += sum(np.log1p(-p[i]) for i in items[:c])
            total += np.log(p[items[c]]) if c < 3 else 0.0
        return total

    best = cascade(Batch.whole(prefs)).value
    for _ in range(200):
        other = np.clip(best + random.normal(scale=0.05, size=5), 1e-6, 1 - 1e-6)
        assert likelihood(other) <= likelihood(best)


def test_cascade_gives_unexamined_items_the_pooled_rate():
    prefs = Preferences.from_selections(
        ["q"] * 5, [1, 1, 1, 2, 2], [1, 2, 3, 1, 2], ["x", "y", "z", "y", "x"], [0, 1, 0, 0, 0]
    )
    scores = cascade(Batch.whole(prefs))
    np.testing.assert_allclose(scores.value, [0.0, 0.5, 0.25])  # z stood below the only click
    (note,) = scores.notes
    assert (note.code, note.numbers) == ("never examined", {"unseen": 1})
    assert note == "cascade: 1 item was never examined; it has the pooled click rate of their query."
    assert scores.component.tolist() == [0, 0, 0]


def test_cascade_on_real_result_pages():
    """First clicks of 7,018 sessions, counted page by page into dictionaries."""
    lines = (shared_data("clicks_sogou_clickmodel_wc") / "train_data").read_text().splitlines()
    pages = [(line.split("\t")[0], line.split("\t")[1].split(), line.split("\t")[2].split()) for line in lines]
    clicked, shown = Counter(), Counter()
    rows = []
    for session, (query, urls, clicks) in enumerate(pages):
        first = clicks.index("1") if "1" in clicks else None
        if first is not None:
            clicked[query, urls[first]] += 1
        for place, url in enumerate(urls):
            rows.append((query, session, place + 1, url, place == first))
            shown[query, url] += first is None or place <= first
    prefs = Preferences.from_selections(*zip(*rows, strict=True))
    batch = Batch.whole(prefs)
    value = cascade(batch).value
    queries, items = prefs.queries.tolist(), prefs.items.tolist()
    of, examined = Counter(), Counter()
    for (query, _), number in clicked.items():
        of[query] += number
    for (query, _), number in shown.items():
        examined[query] += number
    assert len(batch) > 3000
    for score, owner, item in zip(value.tolist(), batch.owner.tolist(), batch.item.tolist(), strict=True):
        key = (queries[owner], items[item])
        expected = clicked[key] / shown[key] if shown[key] else of[key[0]] / examined[key[0]]
        assert score == pytest.approx(expected, abs=1e-12)


# -- the registry ------------------------------------------------------------------------------------------------
def test_registry_has_the_names_of_the_contract():
    assert set(STRUCTURES) == {
        *("bradley-terry", "plackett-luce", "log-odds", "thurstone-mosteller", "borda", "budgeted-borda"),
        *(
            "copeland",
            "eigenvector",
            "counting",
            "kemeny",
            "cascade",
            "position-based",
            "dependent-click",
            "inverse-propensity",
            "rrf",
            "combsum",
        ),
    }
    for name, member in STRUCTURES.items():
        assert member.name == name
        assert member.meaning
        assert member.source
        assert (member.curvature is None) or member.likelihood


def test_unknown_names_options_and_kinds_are_named():
    votes = Batch.whole(Preferences.from_comparisons(["x"], ["y"]))
    with pytest.raises(UsageError, match="did you mean 'borda'"):
        structure("bordo")
    with pytest.raises(UsageError, match="borda has no option 'prior'; it has none"):
        STRUCTURES["borda"](votes, prior=0.1)
    with pytest.raises(UsageError, match="log-odds has no option 'prior'; its options are c0"):
        STRUCTURES["log-odds"](votes, prior=0.1)
    with pytest.raises(UsageError, match="cascade reads selections, not comparisons; structures for comparisons: brad"):
        STRUCTURES["cascade"](votes)
    with pytest.raises(UsageError, match="no positions"):
        cascade(votes)


def test_options_out_of_range_are_refused():
    votes = Batch.whole(Preferences.from_comparisons(["x"], ["y"]))
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match="c0"):
            average_log_odds(votes, c0=bad)
    with pytest.raises(UsageError, match="1 pairs were won by one side only"):
        thurstone_mosteller(votes, c0=0.0)
    with pytest.raises(UsageError, match="'pairs' or 'counts'"):
        thurstone_mosteller(votes, weights="both")
    both = Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"]))
    np.testing.assert_allclose(average_log_odds(both, c0=0.0).value, [np.log(2), -np.log(2)])


@pytest.mark.parametrize("name", sorted(STRUCTURES))
def test_nothing_in_nothing_out(name):
    scores = STRUCTURES[name](Batch.whole(Preferences.empty()))
    assert len(scores.value) == len(scores.component) == len(scores.status) == 0


def test_counting_by_hand():
    batch = Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"], tie=[False, True, False]))
    np.testing.assert_allclose(counting(batch).value, [0.75, 0.5, 0.25])


@pytest.mark.parametrize("weights", ["pairs", "counts"])
@pytest.mark.parametrize("differences", ["log-odds", "probit", "shares", "function"])
def test_least_squares_of_any_skew_symmetric_matrix(differences, weights):
    """(22) with another A, against least squares on the pairs written out; p is (n + c0)/(n + n' + 2 c0)."""
    rng = np.random.default_rng(4)
    one = rng.integers(6, size=70)
    other = (one + rng.integers(1, 6, size=70)) % 6
    batch = Batch.whole(Preferences.from_comparisons(one, other))
    n, _ = plain.wins(batch, 0)
    c0 = 0.7
    given = (lambda a, b: np.sqrt(a) - np.sqrt(b)) if differences == "function" else differences
    rows, wanted = [], []
    for i in range(6):
        for j in range(i + 1, 6):
            if n[i, j] + n[j, i] > 0:
                p = (n[i, j] + c0) / (n[i, j] + n[j, i] + 2 * c0)
                A = {
                    "log-odds": np.log(p / (1 - p)),
                    "probit": np.sqrt(2) * scipy.stats.norm.ppf(p),
                    "shares": 2 * p - 1,
                    "function": np.sqrt(n[i, j]) - np.sqrt(n[j, i]),
                }[differences]
                root = np.sqrt(n[i, j] + n[j, i]) if weights == "counts" else 1.0
                row = np.zeros(6)
                row[i], row[j] = root, -root
                rows.append(row)
                wanted.append(root * A)
    found = thurstone_mosteller(batch, c0=c0, weights=weights, differences=given)
    np.testing.assert_allclose(found.value, np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0], atol=1e-9)


def test_probit_differences_recover_thurstone_case_five():
    """Shares Φ((s_i − s_j)/√2) of very many judgments give s back."""
    s = np.array([0.8, 0.1, -0.9])
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    count = [round(1e9 * scipy.stats.norm.cdf((s[i] - s[j]) / np.sqrt(2))) for i, j in pairs]
    prefs = Preferences.from_comparisons([i for i, _ in pairs], [j for _, j in pairs], count=count)
    np.testing.assert_allclose(thurstone_mosteller(Batch.whole(prefs), differences="probit").value, s, atol=1e-7)


@pytest.mark.parametrize("c0", [0.0, 0.5])
def test_margins_are_mean_strengths(c0):
    """Goals, draws and counts gone through match by match; least squares by hand."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 30)
    second = (first + rng.integers(1, 4, 30)) % 4
    goals, tie, count = rng.integers(1, 6, 30), rng.random(30) < 0.2, rng.integers(1, 3, 30)
    batch = Batch.whole(Preferences.from_comparisons(first, second, weight=goals, tie=tie, count=count))
    total, judged = np.zeros((4, 4)), np.zeros((4, 4))
    for i, j, by, level, times in zip(first, second, goals, tie, count, strict=True):
        judged[i, j] += times
        judged[j, i] += times
        total[i, j] += 0 if level else by * times
        total[j, i] -= 0 if level else by * times
    rows, wanted = [np.ones(4)], [0.0]
    for i, j in itertools.combinations(range(4), 2):
        if judged[i, j]:
            row = np.zeros(4)
            row[i], row[j] = 1, -1
            rows.append(row)
            wanted.append(total[i, j] / (judged[i, j] + 2 * c0))
    found = thurstone_mosteller(batch, differences="margins", c0=c0)
    np.testing.assert_allclose(found.value, np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0], atol=1e-9)


def test_margins_of_ratings_are_the_ratings():
    ratings = [5.0, 1.0, 2.5]
    log = Preferences.from_ratings(["q"] * 6, list("xyz") * 2, ratings * 2, [1] * 3 + [2] * 3)
    found = thurstone_mosteller(Batch.whole(log), differences="margins", c0=0.0)
    np.testing.assert_allclose(found.value, np.array(ratings) - np.mean(ratings), atol=1e-12)


@pytest.mark.parametrize(
    ("differences", "says"),
    [
        ("scores", "differences is 'log-odds'"),
        (lambda a, b: a + b, "change its sign"),
        (lambda a, _: a[:0], "finite number for each"),
        (lambda a, b: np.log(a * 0) - np.log(b * 0), "finite number"),
    ],
)
def test_differences_that_are_none_are_refused(differences, says):
    batch = Batch.whole(Preferences.from_comparisons(["a", "b", "b"], ["b", "a", "c"]))
    with np.errstate(all="ignore"), pytest.raises(UsageError, match=says):
        thurstone_mosteller(batch, differences=differences)
