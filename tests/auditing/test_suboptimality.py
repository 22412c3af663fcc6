"""H(ε, μ): against minimisation over every cone straight from (9), closed forms, random scores, and what is refused."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import concordant as cc
from concordant.auditing import suboptimality as module
from concordant.auditing.counterexamples import known_counterexample
from concordant.auditing.gain_laws import gain_regrets
from concordant.auditing.small_populations import graph_of
from concordant.auditing.suboptimality import hidden_in_log, set_partitions, suboptimality
from concordant.errors import InputError, UsageError
from concordant.losses.objective import Population, Relevance
from concordant.losses.surrogates import surrogate
from seeds import seed

PAIRWISE = ("ranksvm", "ranksvm:squared-hinge", "ranknet", "rankboost", "margin-based:squared-hinge", "margin-based",
            "difference-graph", "difference-graph:hinge", "linear")  # fmt: skip


def drawn(items, rng, lean=0.0):
    votes = rng.integers(1, 40, (items, items)) + (lean * np.triu(np.ones((items, items)), 1)).astype(int)
    np.fill_diagonal(votes, 0)
    return votes


def plain_excess(votes, scores):
    """(10) over that of the best order, pair by pair, ties charged the heavier direction; every strict order tried."""
    share = votes / votes.sum()

    def loss(alpha):
        return sum(
            max(share[i, j], share[j, i])
            if alpha[i] == alpha[j]
            else share[j, i]
            if alpha[i] > alpha[j]
            else share[i, j]
            for i, j in itertools.combinations(range(len(votes)), 2)
        )

    return loss(scores) - min(loss(order) for order in itertools.permutations(range(len(votes))))


def cones(votes):
    """Sets of contradicted net preferences, and the target excess that their cone has at least."""
    share = votes / votes.sum()
    net = [(i, j) for i, j in itertools.permutations(range(len(votes)), 2) if share[i, j] > share[j, i]]
    floor = sum(min(share[i, j], share[j, i]) for i, j in itertools.combinations(range(len(votes)), 2))
    best = min(
        sum(share[order[b], order[a]] for a, b in itertools.combinations(range(len(votes)), 2))
        for order in itertools.permutations(range(len(votes)))
    )
    for wrong in itertools.product((False, True), repeat=len(net)):
        chosen = [pair for pair, yes in zip(net, wrong, strict=True) if yes]
        yield chosen, floor + sum(share[i, j] - share[j, i] for i, j in chosen) - best


def by_hinges(objective, wrong, items):
    """Least sum of hinges over a cone, by a linear programme."""
    edges = objective.edges
    number = len(edges.weight)
    rows, right = [], []
    for e in range(number):  # ξ_e ≥ 1 + h − (α_i − α_j)
        row = np.zeros(items + number)
        row[edges.winner[e]], row[edges.loser[e]], row[items + e] = -1, 1, -1
        rows.append(row)
        right.append(-1 - edges.offset[e])
    for i, j in wrong:
        row = np.zeros(items + number)
        row[i], row[j] = 1, -1
        rows.append(row)
        right.append(0)
    cost = np.concatenate((np.zeros(items), edges.weight))
    bounds = [(None, None)] * items + [(0, None)] * number
    return linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=bounds).fun


def by_descent(objective, wrong, items):
    found = minimize(
        lambda alpha: objective.value(alpha)[0],
        np.zeros(items),
        jac=objective.gradient,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda alpha, i=i, j=j: alpha[j] - alpha[i]} for i, j in wrong],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.fun


@pytest.mark.parametrize("name", [*PAIRWISE[:6], "linear"])
@pytest.mark.parametrize("items", [3, 4])
def test_every_cone(name, items):
    rng = np.random.default_rng(seed(items))
    votes = drawn(items, rng, lean=8)
    plain, _, phi = name.partition(":")
    objective = surrogate(plain).objective(graph_of(votes), phi=phi or None)
    least = by_hinges if objective.phi.piecewise_linear else by_descent
    values = [(excess, least(objective, wrong, items)) for wrong, excess in cones(votes)]
    lowest = min(value for _, value in values)
    found = suboptimality(graph_of(votes), name)
    assert found.exact
    for epsilon in (0.005, 0.03, 0.08, 0.2):
        right = min((value - lowest for excess, value in values if excess >= epsilon), default=np.inf)
        assert found.at(epsilon) == pytest.approx((right, right), abs=2e-7)


@pytest.mark.parametrize("items", [3, 5])
@pytest.mark.parametrize("name", PAIRWISE)
def test_no_scores_do_better_and_its_own_do_as_well(name, items):
    rng = np.random.default_rng(seed(7 * items))
    votes = drawn(items, rng, lean=5)
    plain, _, phi = name.partition(":")
    objective = surrogate(plain).objective(graph_of(votes), phi=phi or None)
    infimum = cc.minimise(objective).value[0]
    found = suboptimality(graph_of(votes), name)
    for _ in range(300):
        scores = rng.integers(-3, 4, items) * rng.choice([0.05, 0.3, 1.0])
        lost, over = plain_excess(votes, scores), objective.value(scores)[0] - infimum
        assert over >= found.at(max(lost, 0.0)).lower - 1e-9
        assert lost <= found.hidden(over + 1e-9).upper + 1e-12
    for over, lost, scores in zip(found.surrogate_excess, found.target_excess, found.scores, strict=True):
        assert plain_excess(votes, scores) == pytest.approx(lost, abs=1e-12)
        assert objective.value(scores)[0] - infimum == pytest.approx(over, abs=1e-9)
        assert found.at(lost).upper == pytest.approx(over, abs=1e-12)
        assert found.hidden(over).lower == lost


def test_theorem_3():
    """Surrogate excess 0 with target excess .01 (AoS Theorem 3), and none where opposite votes cancel first."""
    votes = known_counterexample("theorem-3").preferences
    for name in ("ranksvm", "ranknet", "rankboost", "margin-based", "ranksvm:squared-hinge"):
        found = suboptimality(votes, name)
        assert found.at(0.01) == (0.0, 0.0)
        assert found.hidden(0.0).lower == pytest.approx(0.01)
        assert found.at(0.011).lower > 1e-3
    cut = suboptimality(votes, "difference-graph")
    assert cut.hidden(0.0) == (0.0, 0.0)
    for epsilon, edges in ((0.01, 0.01), (0.02, 0.25), (0.255, 0.26)):  # φ(0) for each tie on the way
        assert cut.at(epsilon).lower >= np.log(2) * epsilon - 1e-12
        assert cut.at(edges).upper >= np.log(2) * edges - 1e-12
    assert cut.at(0.01).upper == pytest.approx(0.01 * np.log(2))
    linear = suboptimality(votes, "linear", nu=2.0)
    rows = np.array([0.51, -0.24, -0.27])
    assert linear.at(0.01).upper == pytest.approx((rows[1] - rows[2]) ** 2 / 2 / (4 * 2.0))  # ν × distance² to the tie
    assert cut.at(0.53) == (np.inf, np.inf)


def test_two_items():
    """p against 1 − p: H at the margin 2p − 1 is φ(0) less the infimum (Bartlett, Jordan and McAuliffe 2006)."""
    votes = np.array([[0, 7], [3, 0]])
    entropy = -0.7 * np.log(0.7) - 0.3 * np.log(0.3)
    known = {"ranknet": np.log(2) - entropy, "rankboost": 1 - 2 * np.sqrt(0.21), "ranksvm": 0.4, "linear": 0.4**2 / 2}
    for name, right in known.items():
        assert suboptimality(graph_of(votes), name).at(0.4).upper == pytest.approx(right, abs=1e-12)


def test_cycle():
    """By symmetry all level is a minimiser of every convex surrogate: no uniform bound without a class (Prop. 3)."""
    circle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    for name in ("ranknet", "difference-graph", "linear", "ranksvm"):
        assert suboptimality(graph_of(circle), name).hidden(0.0).lower == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "target"), [("ndcg-pairwise", "ndcg"), ("gain-regression", "ndcg"), ("err-pairwise", "err")]
)
def test_scores(name, target):
    rng = np.random.default_rng(seed(3))
    law = Relevance.of(rng.uniform(0.05, 0.95, (3, 4)), share=np.array([0.5, 0.3, 0.2]))
    gain = "identity" if target == "err" else "2^s"
    objective = surrogate(name).objective(law, gain=gain)
    infimum = cc.minimise(objective).value[0]
    found = suboptimality(law, name, gain=gain)
    for _ in range(120):
        scores = rng.integers(-2, 3, 4) * rng.choice([0.02, 0.2, 1.0])
        lost = gain_regrets(law, scores, target, gain=gain).regret[0]
        assert objective.value(scores)[0] - infimum >= found.at(lost).lower - 1e-9
    for over, lost, scores in zip(found.surrogate_excess, found.target_excess, found.scores, strict=True):
        assert objective.value(scores)[0] - infimum == pytest.approx(over, abs=1e-9)
        assert gain_regrets(law, scores, target, gain=gain).regret[0] == pytest.approx(lost, abs=1e-12)
    assert (found.hidden(0.0).upper > 0) == (target == "err" and found.target_excess[0] > 0)  # not a product law


def test_gain_regression_in_closed_form():
    """1/(2m) of the squared distance from the gains to the nearest tie of two neighbours."""
    law = Relevance.of([[2.0, 1.0, 0.0]])
    gains = np.array([4.0, 2.0, 1.0]) / (4 + 2 * np.log(2) / np.log(3) + 0.5)
    found = suboptimality(law, "gain-regression")
    assert found.at(1e-6).upper == pytest.approx((gains[1] - gains[2]) ** 2 / 2 / 6)


@pytest.mark.parametrize("name", ["ranknet", "ranksvm", "linear", "difference-graph", "gain-regression"])
def test_bounds_hold(name, monkeypatch):
    rng = np.random.default_rng(seed(11))
    source = graph_of(drawn(6, rng, lean=5)) if name != "gain-regression" else Relevance.of(rng.normal(size=(2, 6)))
    right = suboptimality(source, name)
    monkeypatch.setattr(module, "EXACT_UP_TO", 4)
    found = suboptimality(source, name)
    assert right.exact
    assert not found.exact
    for epsilon in (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3):
        lower, upper = found.at(epsilon)
        assert lower - 1e-12 <= right.at(epsilon).lower <= upper + 1e-12
    for delta in (0.0, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0):
        lower, upper = found.hidden(delta)
        assert lower - 1e-12 <= right.hidden(delta).lower <= upper + 1e-12
    assert found.at(1e-4).upper < np.inf


def test_set_partitions():
    assert [len(set_partitions(items)) for items in range(1, 9)] == [1, 2, 5, 15, 52, 203, 877, 4140]
    assert len({tuple(row) for row in set_partitions(6).tolist()}) == 203


def test_a_log_of_several_queries():
    log = cc.Preferences.from_comparisons(list("abab"), list("bcba"), query=["q", "q", "r", "r"])
    assert suboptimality(log, "ranknet", query="r").hidden(0.0).lower == 0.0
    with pytest.raises(UsageError, match="the log has 2 queries; say which: query='q'"):
        suboptimality(log, "ranknet")
    with pytest.raises(UsageError, match="no query 'z'"):
        suboptimality(log, "ranknet", query="z")
    with pytest.raises(UsageError, match="not of 2 graphs"):
        suboptimality(cc.Batch.whole(log), "ranknet")


@pytest.mark.parametrize(
    ("source", "name", "options", "said"),
    [
        (np.eye(3), "ranknet", {}, "not ndarray"),
        (graph_of(np.array([[0, 1], [2, 0]])), "ranknet", {"query": "q"}, "one graph"),
        (graph_of(np.array([[0, 1], [2, 0]])), "ranknt", {}, "unknown surrogate"),
        (graph_of(np.array([[0, 1], [2, 0]])), "ranknet:hinge", {}, "no φ 'hinge'"),
        (graph_of(np.array([[0, 1], [2, 0]])), "ranknet", {"nu": 1.0}, "no option 'nu'"),
        (graph_of(np.array([[0, 1], [2, 0]])), "linear", {"structure": "borda"}, "no use"),
        (graph_of(np.array([[0, 1], [2, 0]])), "gain-regression", {}, "reads scores"),
        (Relevance.of([1.0, 0.0]), "ranknet", {}, "reads preferences"),
        (Relevance.of(np.arange(61.0)), "gain-regression", {}, "up to 60"),
        (Relevance.of(np.linspace(0, 1, 9)), "err-pairwise", {}, "no bounds beyond 8"),
    ],
)
def test_refused(source, name, options, said):
    with pytest.raises(UsageError, match=said):
        suboptimality(source, name, **options)


def test_refused_numbers():
    found = suboptimality(graph_of(np.array([[0, 1], [2, 0]])), "ranknet")
    for wrong in (-0.1, np.nan, np.inf, True):
        with pytest.raises(UsageError, match="epsilon must be"):
            found.at(wrong)
        with pytest.raises(UsageError, match="delta must be"):
            found.hidden(wrong)
    with pytest.raises(InputError, match="no judgment"):
        suboptimality(cc.Preferences.empty(), "ranknet")
    assert found.at(0.0) == (0.0, 0.0)


def test_one_item():
    found = suboptimality(Population(np.array([0, 1]), *(np.zeros(0, np.int64),) * 2, *(np.zeros(0),) * 2), "ranknet")
    assert found.hidden(1.0) == (0.0, 0.0)
    assert found.at(0.1) == (np.inf, np.inf)


@pytest.mark.parametrize("name", ["ranknet", "difference-graph", "linear"])
def test_a_log_hides_what_its_queries_can(name):
    """All ways of spending the excess on three queries gone through, step by step."""
    rng = np.random.default_rng(seed(5))
    tables = [drawn(3, rng, lean=5) for _ in range(3)]
    pairs = list(itertools.permutations(range(3), 2))
    rows = [(i, j, q, table[i, j]) for q, table in enumerate(tables) for i, j in pairs]
    winner, loser, query, count = (np.array(column) for column in zip(*rows, strict=True))
    log = cc.Preferences.from_comparisons(winner, loser, query=query, count=count)
    share = np.array([table.sum() for table in tables]) / count.sum()
    stairs = [suboptimality(log, name, query=q) for q in range(3)]
    for delta in (0.0, 1e-4, 1e-3, 0.01, 0.05, 0.2, 2.0):
        ways = itertools.product(*(zip(one.surrogate_excess, one.target_excess, strict=True) for one in stairs))
        best = max(
            sum(p * step[1] for p, step in zip(share, way, strict=True))
            for way in ways
            if sum(p * step[0] for p, step in zip(share, way, strict=True)) <= delta + 1e-15
        )
        lower, upper = hidden_in_log(log, name, delta)
        assert lower - 1e-12 <= best <= upper + 1e-12
        steps = max(
            float(p * np.diff(one.target_excess, prepend=0).sum()) for p, one in zip(share, stairs, strict=True)
        )
        assert upper - lower <= steps + 1e-12
    one = cc.Preferences.from_comparisons(winner[query == 0], loser[query == 0], count=count[query == 0])
    corner = stairs[0].surrogate_excess[-1] * (1 + 1e-12)
    assert hidden_in_log(one, name, corner) == pytest.approx((stairs[0].hidden(corner).upper,) * 2)


def test_a_log_of_large_queries_is_bounded(monkeypatch):
    rng = np.random.default_rng(seed(6))
    table = drawn(5, rng, lean=5)
    winner, loser = np.nonzero(table)
    log = cc.Preferences.from_comparisons(winner, loser, count=table[winner, loser])
    right = suboptimality(log, "ranknet")
    monkeypatch.setattr(module, "EXACT_UP_TO", 3)
    for delta in (0.0, 1e-4, 1e-3, 0.01, 0.1, 1.0):
        lower, upper = hidden_in_log(log, "ranknet", delta)
        assert lower - 1e-12 <= right.hidden(delta).upper <= upper + 1e-12
    for wrong, said in ((cc.Batch.whole(log), "is Preferences"), (log, "delta must be")):
        with pytest.raises(UsageError, match=said):
            hidden_in_log(wrong, "ranknet", 0.1 if wrong is not log else -1.0)
    with pytest.raises(InputError, match="no judgment"):
        hidden_in_log(cc.Preferences.empty(), "ranknet", 0.1)
