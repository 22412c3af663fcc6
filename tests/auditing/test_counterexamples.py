"""Counterexamples: published numbers, Lemma 13, brute force over orders and populations, and the page about them."""

import itertools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.apps.commands import main
from concordant.apps.commands.counterexample import counterexample
from concordant.apps.commands.experiment_options import CounterexampleOptions
from concordant.auditing.counterexamples import (
    KNOWN,
    Counterexample,
    PopulationSearch,
    class_of,
    find_counterexample,
    known_counterexample,
)
from concordant.auditing.small_populations import (
    Programme,
    best_order_of,
    graph_of,
    in_class,
    judge,
    preference_surrogates,
    unit_populations,
    whole_votes,
)
from concordant.errors import UsageError
from concordant.io.read import read
from concordant.losses.minimise import minimise
from concordant.losses.objective import Population
from concordant.losses.surrogates import SURROGATES, surrogate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "inconsistency.md"
EDGES = [("ranksvm", "hinge"), ("ranksvm", "squared-hinge"), ("ranknet", "logistic"), ("rankboost", "exponential"),
         *(("margin-based", phi) for phi in SURROGATES["margin-based"].phis)]  # fmt: skip
seeds = st.integers(0, 2**32 - 1)


# -- straight from the definitions ---------------------------------------------------------------------------------
def plain_loss(votes, scores, close=1e-7):
    """(10) pair by pair; a tie is charged the heavier direction."""
    total = Fraction(0)
    for i, j in itertools.combinations(range(len(votes)), 2):
        gap = scores[i] - scores[j]
        charged = max(votes[i, j], votes[j, i]) if abs(gap) <= close else votes[j, i] if gap > 0 else votes[i, j]
        total += int(charged)
    return total / int(votes.sum())


def plain_best(votes):
    return min(plain_loss(votes, -np.argsort(order)) for order in itertools.permutations(range(len(votes))))


def plain_low_noise(votes):
    net = votes - votes.T
    for i, j, k in itertools.product(range(len(votes)), repeat=3):
        if net[i, j] > 0 and net[j, k] > 0 and net[i, k] < net[i, j] + net[j, k]:
            return False
    return True


def plain_acyclic(votes):
    """Items without a net loss are taken away, again and again, until none is left."""
    left = list(range(len(votes)))
    while left:
        free = [i for i in left if not any(votes[j, i] > votes[i, j] for j in left)]
        if not free:
            return False
        left = [i for i in left if i not in free]
    return True


PLAIN = {"low noise": plain_low_noise, "acyclic": plain_acyclic, "any": lambda votes: True}  # noqa: ARG005


@settings(max_examples=60)
@given(seed=seeds)
def test_classes_and_losses_straight_from_the_definitions(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    votes = np.triu(rng.integers(0, 4, (size, size)), 1) * 3 ** int(rng.integers(0, 2))
    votes = votes + rng.integers(0, 2, (size, size)) * (1 - np.eye(size, dtype=np.int64))
    votes[0, 1] += 1
    for within, plain in PLAIN.items():
        assert in_class(votes, within) == plain(votes)
    order, least = best_order_of(votes)
    assert least == pytest.approx(float(plain_best(votes)))
    assert plain_loss(votes, -np.argsort(order)) == plain_best(votes)
    found = judge(votes, "linear")
    assert found.loss == pytest.approx(float(plain_loss(votes, found.scores)))


# -- the papers ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "phi", "scores", "value"),
    [
        ("ranknet", "logistic", (1.35127846, -1.91113642, 0.55985796), 0.50144587),
        ("rankboost", "exponential", (0.74912717, -1.07295861, 0.32383144), 0.77484259),
        ("ranksvm", "squared-hinge", (0.43663417, -0.50076963, 0.06413545), 0.67444844),
        ("ranksvm", "hinge", (2 / 3, -1 / 3, -1 / 3), 0.49),
    ],
)
def test_theorem_3(name, phi, scores, value):
    known = known_counterexample("theorem-3")
    found = known.judge(name, phi)
    np.testing.assert_allclose(found.scores, scores, atol=1e-7)
    graph = graph_of(known.votes)
    assert minimise(surrogate(name).objective(graph, phi=phi)).value[0] == pytest.approx(value, abs=1e-7)
    assert found.unique and found.regret == pytest.approx(0.01) and known.right_order == "1 > 2 > 3"
    assert known.judge("difference-graph").regret == known.judge("linear").regret == 0


def two_edges(y12, y13, y23, y31):
    """Theorem 2's G1 = {1→2, 1→3} and G2 = {2→3, 3→1}, half each, as judgments of two edges."""
    ends = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 0])
    return Population(np.array([0, 3]), *ends, np.array([y12, y13, y23, y31], float), np.full(4, 0.5))


def test_theorem_2():
    known = known_counterexample("theorem-2")
    y12, y13, y23, y31 = (int(known.votes[pair]) for pair in ((0, 1), (0, 2), (1, 2), (2, 0)))
    assert y13 > y12 > 0 and y13 > y31 > 0 and y23 < y31 * y12 / (y13 + y12)  # the proof's and Lemma 13
    assert plain_low_noise(known.votes) and known.right_order == "1 > 2 > 3"
    people = two_edges(y12, y13, y23, y31)
    for name, phi in EDGES[:4]:  # single comparisons are the same population to the surrogates (12)
        pairs = minimise(surrogate(name).objective(people, phi=phi)).alpha
        np.testing.assert_allclose(known.judge(name, phi).scores, pairs, atol=1e-7)
        assert pairs[1] <= pairs[2] + 1e-9 < pairs[0] and known.judge(name, phi).regret > 0
    assert known.judge("difference-graph").regret == 0


def test_the_paper_s_weights_for_theorem_2_need_not_be_low_noise():
    y12, y13, y31 = 5, 10, 9
    y23 = min(2, (y13 - y12) / 2)  # as the proof chooses it, any small ε
    assert y13 > y12 > 0 and y13 > y31 > 0
    votes = np.array([[0, y12, y13], [0, 0, y23], [y31, 0, 0]])
    assert not plain_low_noise(votes) and not in_class(votes.astype(np.int64), "low noise")


def test_orderings_of_icml():
    known = known_counterexample("orderings")
    people = np.zeros((3, 3), np.int64)
    for order, number in (((0, 1, 2), 6), ((1, 2, 0), 4)):
        for i, j in itertools.combinations(order, 2):
            people[i, j] += number
    np.testing.assert_array_equal(known.votes, people)
    net = people - people.T
    rows = net.sum(axis=1)
    assert (net[np.triu_indices(3, 1)] > 0).all() and rows[1] > rows[0]  # condition (16) fails
    assert known.judge("linear").regret == known.judge("ranknet").regret == pytest.approx(2 / 30)
    assert known.judge("difference-graph").regret == 0
    for p, w in itertools.product((0.55, 0.6, 0.66, 0.7, 0.8), (1.0, 1.5, 1.99, 2.0, 2.5, 3.9, 4.1)):
        mean = np.array([[0, p, w * p], [(1 - p) * w, 0, 1], [1 - p, 0, 0]])
        low_noise = plain_low_noise(np.round(1000 * mean).astype(np.int64)) and mean[0, 1] > mean[1, 0]
        assert low_noise == (2 <= w < p / (1 - p))


@pytest.mark.parametrize("name", KNOWN)
def test_known_counterexamples_are_what_they_say(name):
    known = KNOWN[name]
    assert PLAIN[known.within](known.votes) and class_of(known.votes) == known.within
    assert known.optimum == pytest.approx(float(plain_best(known.votes)))
    assert known.regret == 0 and known.judge("ranknet").regret > 0
    np.testing.assert_array_equal(known.preferences.count, known.votes[known.votes > 0])


@settings(max_examples=25)
@given(seed=seeds)
def test_lemma_13_on_random_graphs(seed):
    """Condition 1 or 2 makes every convex edge surrogate fail; not the difference graph, where nothing opposes."""
    rng = np.random.default_rng(seed)
    while True:
        h12, h13, h23, h31 = (int(weight) for weight in rng.integers(1, 200, 4))
        if h13 > h31 and (h23 * (h13 + h12) < h31 * h12 or h12 * (h13 + h23) < h31 * h23):
            break
    votes = np.array([[0, h12, h13], [0, 0, h23], [h31, 0, 0]])
    for name, phi in EDGES:
        assert judge(votes, name, phi=phi).regret > 0, (name, phi)
    for phi in SURROGATES["difference-graph"].phis:
        assert judge(votes, "difference-graph", phi=phi).regret == 0


# -- the finder ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "phi"), [*EDGES[:4], ("margin-based", "logistic"), ("linear", "linear"), ("difference-graph", "logistic")]
)
@pytest.mark.parametrize("within", PLAIN)
def test_what_is_found_is_what_it_says(name, phi, within):
    found = find_counterexample(name, phi=phi, within=within)
    if name == "difference-graph":
        assert (found is None) == (within != "any")
    if name == "linear":
        assert (found is None) == (within == "low noise")
    if found is None:
        return
    assert isinstance(found, Counterexample) and found.verdict is not None and found.largest is not None
    assert PLAIN[within](found.votes) and PLAIN[found.within](found.votes)
    objective = surrogate(name).objective(graph_of(found.votes), phi=phi)
    again = minimise(objective)
    assert objective.value(found.verdict.scores)[0] <= again.value[0] + 1e-9  # a minimiser
    regret = plain_loss(found.votes, found.verdict.scores) - plain_best(found.votes)
    if surrogate(name).smooth(phi):  # a clear failure, not a tie by a hair
        assert np.diff(np.sort(found.verdict.scores)).min() > 0.01 * np.ptp(found.verdict.scores)
    assert found.regret == pytest.approx(float(regret)) and 0.8 * found.largest < regret <= found.largest + 1e-6


@pytest.mark.parametrize("phi", SURROGATES["difference-graph"].phis)
def test_the_difference_graph_has_no_acyclic_counterexample(phi):
    for items in (2, 3, 4):
        assert find_counterexample("difference-graph", phi=phi, items=items, within="acyclic", budget=60) is None


@pytest.mark.parametrize(
    ("name", "within", "items", "bound"),
    [
        ("ranknet", "low noise", 3, (3 - 6**0.5) / 6),
        ("ranknet", "low noise", 4, (2 - 2**0.5) / 4),
        ("ranknet", "acyclic", 5, 3 / 7),
        ("ranksvm", "low noise", 3, 1 / 6),
        ("ranksvm", "acyclic", 5, 1 / 2),
        ("linear", "acyclic", 4, 1 / 2),
    ],
)
def test_largest_regrets_in_closed_form(name, within, items, bound):
    found = find_counterexample(name, within=within, items=items)
    assert found.largest == pytest.approx(bound, abs=1e-6)
    assert 0.9 * bound < found.regret < bound


@pytest.mark.parametrize("items", range(3, 9))
def test_the_acyclic_population_of_the_page(items):
    """(log 3, 0, …, 0) is stationary for the logistic loss; regret (m − 2)/(m + 2), at a tie."""
    votes = np.zeros((items, items), np.int64)
    votes[0, 1], votes[0, -1], votes[-1, 0] = 2, 1, 1
    votes[np.arange(1, items - 1), np.arange(2, items)] = 1
    assert plain_acyclic(votes)
    objective = surrogate("ranknet").objective(graph_of(votes))
    scores = np.r_[np.log(3), np.zeros(items - 1)]
    np.testing.assert_allclose(objective.gradient(scores), 0, atol=1e-15)
    right = plain_loss(votes, -np.arange(items))
    assert votes.sum() == items + 2 and right == Fraction(1, items + 2)  # at least one of 1 > m and m > 1
    assert plain_loss(votes, scores) - right == Fraction(items - 2, items + 2)


@pytest.mark.parametrize("within", ["low noise", "acyclic"])
def test_no_random_population_is_worse(within):
    """20,000 random populations on three items, sparse ones too: the largest regret that was found is not exceeded."""
    rng = np.random.default_rng(3)
    pairs = np.array(list(itertools.permutations(range(3), 2)))
    shares = rng.dirichlet(np.full(6, 0.4), 20_000)
    shares[:, 1] += np.where(np.arange(20_000) % 2, 0, 0.4)
    shares /= shares.sum(axis=1, keepdims=True)
    net = np.zeros((20_000, 3, 3))
    for column, (i, j) in enumerate(pairs):
        net[:, i, j] += shares[:, column]
        net[:, j, i] -= shares[:, column]
    inside = (net[:, 0, 1] >= 0) & (net[:, 1, 2] >= 0) & (net[:, 0, 2] >= 0)
    if within == "low noise":
        inside &= net[:, 0, 2] >= net[:, 0, 1] + net[:, 1, 2]
    net, shares = net[inside], shares[inside]
    assert len(net) > 500
    base = 3 * np.repeat(np.arange(len(net)), 6)
    ends = base + np.tile(pairs[:, 0], len(net)), base + np.tile(pairs[:, 1], len(net))
    people = Population(3 * np.arange(len(net) + 1), *ends, np.ones(len(base)), shares.ravel())
    scores = minimise(surrogate("ranknet").objective(people)).alpha.reshape(-1, 3)
    wrong = scores[:, :, None] <= scores[:, None, :]
    regret = (np.triu(np.ones((3, 3)), 1) * wrong * net).sum(axis=(1, 2))
    largest = find_counterexample("ranknet", within=within).largest
    assert 0.5 * largest < regret.max() <= largest + 1e-9


@settings(max_examples=25)
@given(seed=seeds)
def test_equal_numbers_and_low_noise_make_the_logistic_loss_right(seed):
    """The page's claim: with n comparisons of every pair it orders by votes won, which low noise makes optimal."""
    rng = np.random.default_rng(seed)
    size, each = int(rng.integers(3, 6)), 200
    steps = 2 * rng.integers(1, each // size // 3, size - 1)
    net = np.zeros((size, size), np.int64)
    for width in range(1, size):  # each net preference at least the sum along any path
        for i in range(size - width):
            path = max((net[i, j] + net[j, i + width] for j in range(i + 1, i + width)), default=steps[i])
            net[i, i + width] = path + (2 * rng.integers(0, 5) if width > 1 else 0)
    assert net.max() <= each
    votes = np.zeros((size, size), np.int64)
    above = np.triu_indices(size, 1)
    votes[above] = (each + net[above]) // 2
    votes[above[1], above[0]] = each - votes[above]
    found = judge(votes, "ranknet")
    assert (np.argsort(-found.scores) == np.argsort(-votes.sum(axis=1), kind="stable")).all()
    assert plain_low_noise(votes) and found.regret == 0


def test_options_of_a_surrogate_are_passed_on():
    found = find_counterexample("linear", within="acyclic", nu=4.0)
    assert found.options == {"nu": 4.0} and found.largest == pytest.approx(1 / 3, abs=1e-6)


def test_a_small_budget_searches_less_and_the_seed_says_where():
    searches = [PopulationSearch(surrogate("ranknet").objective, 4, "low noise") for _ in range(3)]
    few, again, other = (one.candidates(10, np.random.default_rng(seed)) for one, seed in zip(searches, (0, 0, 1)))
    assert few[0].regret == again[0].regret != other[0].regret
    assert max(few[0].regret, other[0].regret) <= (2 - 2**0.5) / 4 + 1e-9


def test_worst_of_many_minimisers():
    """A balanced cycle leaves the hinge indifferent among many orders: the worst one counts."""
    votes = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    found = judge(votes, "ranksvm")
    assert not found.unique and found.loss == pytest.approx(1.0) and found.regret == pytest.approx(2 / 3)


@settings(max_examples=10)
@given(seed=seeds, within=st.sampled_from(list(PLAIN)))
def test_rounding_keeps_the_class(seed, within):
    rng = np.random.default_rng(seed)
    units = surrogate("ranknet").objective(unit_populations(3))
    shares = Programme(units, 3, within, np.arange(6)).most(np.array([0.8, -0.4, -0.4]))[1]
    number = int(rng.integers(10, 5000))
    votes = whole_votes(shares, 3, within, number)
    assert votes.sum() == number and (votes >= 0).all() and PLAIN[within](votes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_counterexample("rankne"), "did you mean 'ranknet'"),
        (lambda: find_counterexample("ndcg-pairwise"), "reads scores of the items, not preferences"),
        (lambda: find_counterexample("ranknet", phi="hinge"), "allowed: logistic"),
        (lambda: find_counterexample("ranknet", within="quiet"), "'low noise', 'acyclic' or 'any'"),
        (lambda: find_counterexample("ranknet", items=7), "items must be an integer from 2 to 6"),
        (lambda: find_counterexample("ranknet", items=2.5), "items must be an integer"),
        (lambda: find_counterexample("ranknet", votes=3), "votes must be an integer from 10"),
        (lambda: find_counterexample("ranknet", budget=0), "budget must be an integer of at least 1"),
        (lambda: find_counterexample("ranknet", nu=1.0), "has no option 'nu'"),
        (lambda: known_counterexample("theorem-4"), "did you mean 'theorem-"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        call()


# -- the command and the page --------------------------------------------------------------------------------------
def call(capsys, *arguments):
    status = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def test_the_command_writes_a_log(tmp_path, capsys):
    status, out, _ = call(
        capsys, "counterexample", "ranksvm", "--items", 4, "--within", "acyclic", "-o", tmp_path / "x"
    )
    assert status == 0 and "acyclic" in out
    prefs = read(tmp_path / "x" / "votes.csv")
    found = find_counterexample("ranksvm", items=4, within="acyclic")
    np.testing.assert_array_equal(prefs.count, found.votes[found.votes > 0])
    items = (tmp_path / "x" / "items.csv").read_text().splitlines()
    assert items[0] == "item,is_1,is_2,is_3,is_4" and items[2] == "2,0,1,0,0"
    right = [line.split(",") for line in (tmp_path / "x" / "right.csv").read_text().splitlines()[1:]]
    assert [item for item, _ in sorted(right, key=lambda row: -int(row[1]))] == found.right_order.split(" > ")
    for name in preference_surrogates():
        row = next(line for line in out.splitlines() if line.startswith(name + " "))
        assert row.split()[-1] == f"{found.judge(name).regret:.4f}" or not found.judge(name).unique


def test_the_log_is_written_although_nobody_reads_on(tmp_path, monkeypatch):
    """``concordant counterexample … -o wrong | head -3``."""

    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("concordant.apps.commands.counterexample.click.echo", closed)
    with pytest.raises(BrokenPipeError):
        counterexample(CounterexampleOptions(name="theorem-3", output=str(tmp_path / "wrong")))
    assert sorted(path.name for path in (tmp_path / "wrong").iterdir()) == ["items.csv", "right.csv", "votes.csv"]


def test_more_votes_than_asked_for_are_said(capsys):
    status, out, err = call(capsys, "counterexample", "ranknet", "--votes", 10)
    assert status == 0 and out.startswith("100 votes") and "10 votes are too few" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("linear",), "that there is none is proved (ICML"),
        (("difference-graph", "--within", "acyclic"), "that there is none is proved (AoS"),
        (("ranknet", "--items", 2), "does not prove that there is none"),
        (("theorem-3",), "right order: 1 > 2 > 3"),
    ],
)
def test_what_the_command_says(arguments, words, capsys):
    status, out, err = call(capsys, "counterexample", *arguments)
    assert status == 0 and words in out and not err


@pytest.mark.parametrize(
    "arguments",
    [
        ("rankne",),
        ("ranknet", "--within", "x"),
        ("theorem-3", "--items", 3),
        ("err-pairwise",),
        ("ranknet", "-o", PAGE),
    ],
)
def test_errors_are_one_line(arguments, capsys):
    status, out, err = call(capsys, "counterexample", *arguments)
    assert status == 2 and not out and err.startswith("error: ") and err.count("\n") == 1


def test_the_page_s_table():
    rows = re.findall(r"^\| `([\w-]+)`[^|]*\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 5
    cells = {name: [float(cell) for cell in line.split("|")] for name, line in rows}
    columns = [(within, items) for within in ("low noise", "acyclic") for items in (3, 4, 5)]
    for name, shown in cells.items():
        for (within, items), value in zip(columns, shown, strict=True):
            if items == 5 and name != "ranksvm":
                continue  # the others take longer
            search = PopulationSearch(surrogate(name).objective, items, within)
            found = search.candidates(90, np.random.default_rng(0))
            assert (found[0].regret if found else 0.0) == pytest.approx(value, abs=5.05e-5), (name, within, items)
