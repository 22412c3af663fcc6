"""Bradley–Terry against published fits, a plain logistic regression, laws, and data that have no maximum."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, root
from scipy.special import expit, log_expit

from concordant.errors import CannotRank, NoMaximumLikelihood, UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking import bradley_terry as public_room
from concordant.ranking import newton
from concordant.ranking import newton as newton_system
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.curvature import bradley_terry_curvature, laplacian, pair_weights
from concordant.ranking.problem import Problem
from concordant.ranking.scores import Scores
from conftest import ROOT, SMALL, shared_data

Floats = NDArray[np.float64]


# -- the slow plain twins ----------------------------------------------------------------------------------------
def design(prefs: Preferences, query: int = 0) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """One row per distinct judgment: +1 for the winner, −1 for the loser, then covariates; mass and tie."""
    rows = slice(int(prefs.start[query]), int(prefs.start[query + 1]))
    item = prefs.members[1][prefs.members[0][query] : prefs.members[0][query + 1]]
    x = np.zeros((rows.stop - rows.start, len(item)))
    for r, (j, other) in enumerate(zip(prefs.winner[rows], prefs.loser[rows])):
        x[r, np.searchsorted(item, j)] += 1
        x[r, np.searchsorted(item, other)] -= 1
    if prefs.covariates is not None:
        x = np.column_stack([x, prefs.covariates[rows]])
    mass = prefs.count[rows] * (1.0 if prefs.weight is None else prefs.weight[rows])
    tie = np.zeros(len(x), bool) if prefs.tie is None else prefs.tie[rows]
    return x, np.asarray(mass, float), np.full(len(x), len(item)), tie


def plain_bradley_terry(prefs: Preferences, prior: float, query: int = 0) -> Floats:
    """Σ n log σ(s_j − s_l + z·β) − (prior/2)‖s‖² by a general optimiser; a tie is half a win each way."""
    x, mass, items, tie = design(prefs, query)
    x, mass = np.vstack([x, -x[tie]]), np.concatenate([np.where(tie, mass / 2, mass), mass[tie] / 2])
    penalty = np.where(np.arange(x.shape[1]) < items[0], max(prior, 0), 0.0)
    m = int(items[0])
    gauge = np.zeros((x.shape[1], x.shape[1]))
    gauge[:m, :m] = mass.sum() / m**2  # Σ s = 0 costs nothing

    def value(v: Floats) -> float:
        return float(-mass @ log_expit(x @ v) + penalty @ v**2 / 2 + v @ gauge @ v / 2)

    def slope(v: Floats) -> Floats:
        return -x.T @ (mass * expit(-(x @ v))) + penalty * v + gauge @ v

    def bend(v: Floats) -> Floats:
        p = expit(x @ v)
        return x.T @ (x * (mass * p * (1 - p))[:, None]) + np.diag(penalty) + gauge

    near = minimize(value, np.zeros(x.shape[1]), jac=slope, hess=bend, method="trust-exact").x
    for _ in range(3):  # to the last digits
        near = near - np.linalg.solve(bend(near), slope(near))
    return np.asarray(near, float)


def plain_davidson(prefs: Preferences, prior: float) -> tuple[Floats, float]:
    """Davidson's likelihood as printed, by its gradient (complex steps) and a root finder."""
    x, mass, items, tie = design(prefs)
    m = int(items[0])
    assert x.shape[1] == m

    def loss(v: Any) -> Any:
        ability, nu = np.exp(v[:m]), np.exp(v[m])
        j, other = ability[x.argmax(axis=1)], ability[x.argmin(axis=1)]
        total = j + other + nu * np.sqrt(j * other)
        p = np.where(tie, nu * np.sqrt(j * other), j) / total
        return -(mass * np.log(p)).sum() + prior / 2 * (v[:m] ** 2).sum() + mass.sum() * v[:m].mean() ** 2 / 2

    def slope(v: Floats) -> Floats:
        return np.array([loss(v + 1e-30j * unit).imag / 1e-30 for unit in np.eye(m + 1)])

    start = minimize(loss, np.zeros(m + 1), jac=slope, method="BFGS", options={"gtol": 1e-6}).x
    found = root(slope, start, tol=1e-13)
    assert np.abs(slope(found.x)).max() < 1e-8
    return found.x[:m], float(found.x[m])


def random_log(
    seed: int, *, queries: int = 1, items: int = 8, rows: int = 120, ties: bool = False, weights: bool = False
) -> Preferences:
    """Comparisons under an uneven design: some pairs often, some never."""
    rng = np.random.default_rng(seed)
    often = rng.dirichlet(np.full(items, 0.7), queries) + 0.02
    winner, loser, query = [], [], []
    truth = rng.normal(size=(queries, items))
    for q in range(queries):
        for _ in range(rows):
            i, j = rng.choice(items, 2, replace=False, p=often[q] / often[q].sum())
            won = rng.random() < expit(truth[q, i] - truth[q, j])
            winner.append(i if won else j)
            loser.append(j if won else i)
            query.append(q)
    total = len(winner)
    return Preferences.from_comparisons(
        winner,
        loser,
        query,
        rng.choice([0.25, 1.0, 2.5], total) if weights else None,
        tie=rng.random(total) < 0.3 if ties else None,
    )


def fit(prefs: Preferences, **options: Any) -> Scores:
    return bradley_terry(Batch.whole(prefs), **options)


def by_label(prefs: Preferences, scores: Scores) -> dict[Any, float]:
    return dict(zip(prefs.items.tolist(), scores.value.tolist()))


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def votes(path: Path) -> Preferences:
    rows = list(rows_of(path))
    left, right = [r["left"] for r in rows], [r["right"] for r in rows]
    outcome = np.array([r["winner"] for r in rows])
    flip = outcome == "right"
    assert set(outcome) <= {"left", "right", "tie"}
    return Preferences.from_comparisons(
        np.where(flip, right, left).tolist(), np.where(flip, left, right).tolist(), tie=outcome == "tie"
    )


# -- published and peers' values ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("log", "golden", "near"),
    [
        (SMALL / "evalica" / "food.csv", "food-golden.csv", 1e-7),
        (ROOT / "src" / "concordant" / "apps" / "data" / "llmfao" / "crowd-comparisons.csv", "llmfao-golden.csv", 1e-6),
    ],
    ids=["food", "llmfao"],
)
def test_evalica_golden(log: Path, golden: str, near: float) -> None:
    prefs = votes(log)
    expected = {
        r["item"]: float(r["score"]) for r in rows_of(SMALL / "evalica" / golden) if r["algorithm"] == "bradley_terry"
    }
    share = {item: np.exp(score) for item, score in by_label(prefs, fit(prefs, prior=0)).items()}
    total = sum(share.values())
    assert share.keys() == expected.keys()
    assert all(abs(share[item] / total - expected[item]) < near for item in expected)


def test_choix_cycle() -> None:
    # choix tests/data/testcase-pairwise-2.json (MIT): maximum likelihood of a cycle on three items
    prefs = Preferences.from_comparisons([0, 0, 1, 2], [1, 1, 2, 0])
    assert np.allclose(fit(prefs, prior=0).value, [0.419617624, -0.419617624, 0], atol=1e-9)


def baseball() -> Preferences:
    winner, loser, count, home = [], [], [], []
    for r in rows_of(shared_data("r_classics/BradleyTerry2.baseball.csv")):
        for mine, other, wins, side in (("home", "away", "home.wins", 1.0), ("away", "home", "away.wins", -1.0)):
            if int(float(r[wins])):
                winner.append(r[mine + ".team"])
                loser.append(r[other + ".team"])
                count.append(int(float(r[wins])))
                home.append(side)
    return Preferences.from_comparisons(winner, loser, count=count, covariates={"home": home})


def test_baseball_as_published() -> None:
    # Agresti, Categorical Data Analysis (2002), table 10.11
    prefs = baseball()
    score = by_label(prefs, fit(prefs, prior=0, covariates=False))
    published = [0.6839, 1.1077, 1.2476, 1.2945, 1.4364, 1.5814]
    ours = sorted(score[team] - score["Baltimore"] for team in score if team != "Baltimore")
    assert np.allclose(ours, published, atol=6e-5)


def test_baseball_home_advantage_as_published() -> None:
    # Agresti (2002), section 10.6.3: home team advantage 0.302
    prefs = baseball()
    scores = fit(prefs, prior=0)
    assert scores.coefficients["home"] == pytest.approx([0.3023], abs=5e-5)
    twin = plain_bradley_terry(prefs, 0)
    assert np.allclose(np.append(scores.value, scores.coefficients["home"]), twin, atol=1e-9)


def test_ice_hockey_with_home_ice_is_a_logistic_regression() -> None:
    winner, loser, tie, home = [], [], [], []
    for r in rows_of(shared_data("r_classics/BradleyTerry2.icehockey.csv")):
        side = -1.0 if r["home.ice"] == "True" else 0.0  # the opponent is at home, or nobody is
        lost = float(r["result"]) == 0
        winner.append(r["opponent"] if lost else r["visitor"])
        loser.append(r["visitor"] if lost else r["opponent"])
        tie.append(float(r["result"]) == 0.5)
        home.append(-side if lost else side)
    prefs = Preferences.from_comparisons(winner, loser, tie=tie, covariates={"home": home})
    scores = fit(prefs)
    twin = plain_bradley_terry(prefs, 0.01)
    assert np.allclose(np.append(scores.value, scores.coefficients["home"]), twin, atol=1e-9)
    assert 0.2 < scores.coefficients["home"][0] < 0.7


def test_chameleons_with_previous_wins_is_a_logistic_regression() -> None:
    folder = shared_data("r_classics")
    won = list(rows_of(folder / "BradleyTerry2.chameleons.winner.csv"))
    lost = list(rows_of(folder / "BradleyTerry2.chameleons.loser.csv"))
    names = ["prev.wins.1", "prev.wins.2"]
    prefs = Preferences.from_comparisons(
        [r["ID"] for r in won],
        [r["ID"] for r in lost],
        covariates={name: [float(a[name]) - float(b[name]) for a, b in zip(won, lost)] for name in names},
    )
    scores = fit(prefs, prior=1.0)
    ours = np.concatenate([scores.value, *(scores.coefficients[name] for name in prefs.covariate_names)])
    assert np.allclose(ours, plain_bradley_terry(prefs, 1.0), atol=1e-9)
    assert scores.coefficients["prev.wins.2"][0] > 0


def football() -> Preferences:
    rows = list(rows_of(next((SMALL / "international_football").glob("*.csv.gz"))))
    goals = np.array([[int(r["home_score"]), int(r["away_score"])] for r in rows])
    away = goals[:, 1] > goals[:, 0]
    side = np.array([0.0 if r["neutral"] == "TRUE" else 1.0 for r in rows])
    home, visitor = np.array([r["home_team"] for r in rows]), np.array([r["away_team"] for r in rows])
    return Preferences.from_comparisons(
        np.where(away, visitor, home).tolist(),
        np.where(away, home, visitor).tolist(),
        tie=goals[:, 0] == goals[:, 1],
        covariates={"home": np.where(away, -side, side)},
    )


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_football_has_a_home_effect_and_sensible_winners(ties: str) -> None:
    prefs = football()
    scores = fit(prefs, ties=ties)
    assert scores.status.tolist() == [Status.CONVERGED]
    assert 0.2 < scores.coefficients["home"][0] < 1.2
    largest = scores.component == 0
    best = np.array(prefs.items.tolist())[np.argsort(-np.where(largest, scores.value, -np.inf))[:12]]
    assert {"Spain", "Argentina", "France"} <= set(best)
    if ties == "davidson":  # the share of draws between equals, ν/(2 + ν), is not far from that of all matches
        nu = np.exp(scores.coefficients["ties"][0])
        assert 0.2 < nu / (2 + nu) < 0.5


# -- the twins on random graphs ----------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", [0.01, 3.0])
def test_agrees_with_the_plain_twin(seed: int, prior: float) -> None:
    prefs = random_log(seed, ties=seed % 2 == 0, weights=seed > 1)
    scores = fit(prefs, prior=prior)
    assert np.allclose(scores.value, plain_bradley_terry(prefs, prior), atol=1e-9, rtol=0)
    assert scores.status.tolist() == [Status.CONVERGED]


@pytest.fixture(params=["dense", "sparse"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both solvers, whatever the size."""
    if request.param == "sparse":
        monkeypatch.setattr(public_room, "LARGE", 0)
    else:
        monkeypatch.setattr(public_room, "FILLED", 10**9)
    return str(request.param)


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("prior", [0.0, 0.01, 1e-9])
def test_both_solvers_reach_the_maximum(prior: float) -> None:
    prefs = random_log(11, items=30, rows=900, ties=True, weights=True)
    assert np.allclose(fit(prefs, prior=prior).value, plain_bradley_terry(prefs, prior), atol=1e-9, rtol=0)


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("order", [1, -1])
def test_enormous_and_tiny_masses(order: int) -> None:
    # two items: log-odds in closed form, whatever the mass
    pair = Preferences.from_comparisons(["a", "b"][::order], ["b", "a"][::order], count=[10**9, 3])
    gap = fit(pair, prior=0).value @ [order, -order]
    assert gap == pytest.approx(np.log(1e9 / 3), rel=1e-9)
    light = Preferences.from_comparisons(["a", "b"], ["b", "a"], weight=[3e-6, 1e-6])
    assert fit(light, prior=0).value @ [1, -1] == pytest.approx(np.log(3), rel=1e-9)


@pytest.mark.usefixtures("solver")
def test_a_lopsided_chain_is_exact() -> None:
    # 40 items, each beats the next 10^9 to 1: neighbours differ by log 10^9, the ends by more than e^700 can hold
    m = 40
    up, down = np.arange(m - 1), np.arange(1, m)
    prefs = Preferences.from_comparisons(
        np.concatenate([up, down]), np.concatenate([down, up]), count=np.repeat([10**9, 1], m - 1)
    )
    scores = fit(prefs, prior=0)
    assert np.allclose(-np.diff(scores.value), np.log(1e9), rtol=1e-8)
    assert scores.status.tolist() == [Status.CONVERGED]


def exact_chain(m: int) -> tuple[Preferences, Floats]:
    """Each item beats the next u times and loses d times: neighbours differ by log u/d."""
    rng = np.random.default_rng(m)
    up, down = rng.integers(1, 6, m - 1), rng.integers(1, 6, m - 1)
    i = np.arange(m - 1)
    prefs = Preferences.from_comparisons(
        np.concatenate([i, i + 1]), np.concatenate([i + 1, i]), count=np.concatenate([up, down])
    )
    scores = np.concatenate([[0], -np.cumsum(np.log(up / down))])
    return prefs, scores - scores.mean()


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("m", [100, 600, 3000])
def test_a_long_chain_is_exact(m: int) -> None:
    # conjugate gradients need as many steps as the chain is long: elimination takes over
    prefs, expected = exact_chain(m)
    scores = fit(prefs, prior=0)
    assert np.allclose(scores.value, expected, atol=1e-8, rtol=0)
    assert scores.status.tolist() == [Status.CONVERGED]


@pytest.mark.parametrize("quick", [0.0, 1e9], ids=["dense", "sparse"])
@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_elimination_in_place_of_conjugate_gradients(
    monkeypatch: pytest.MonkeyPatch, quick: float, prior: float
) -> None:
    monkeypatch.setattr(newton_system, "PATIENCE", 1)
    monkeypatch.setattr(newton_system, "QUICK", quick)
    prefs = random_log(11, items=12, rows=400, ties=True)
    home = np.where(np.arange(prefs.distinct) % 3 == 0, 1.0, -0.5)
    prefs = Preferences.from_comparisons(
        prefs.winner, prefs.loser, tie=prefs.tie, count=prefs.count, covariates={"home": home}
    )
    scores = fit(prefs, prior=prior)
    twin = plain_bradley_terry(prefs, prior)
    assert np.allclose(np.append(scores.value, scores.coefficients["home"]), twin, atol=1e-9, rtol=0)


@pytest.mark.parametrize("quick", [0.0, 1e9], ids=["dense", "sparse"])
def test_elimination_solves_the_bordered_system(monkeypatch: pytest.MonkeyPatch, quick: float) -> None:
    monkeypatch.setattr(newton_system, "PATIENCE", 0)
    monkeypatch.setattr(newton_system, "QUICK", quick)
    rng = np.random.default_rng(1)
    first, second = np.triu_indices(6, 1)
    above, below = rng.uniform(0.1, 2, (2, len(first)))
    z, s, b = rng.normal(size=(len(first), 2)), rng.normal(size=6), rng.normal(size=(1, 2))
    ends = np.array([0, 6]), np.array([0, len(first)])
    system = newton_system.System(Problem(*ends, first, second, above, below, None, z, np.zeros(6, int), 0.3))
    system.evaluate(s, b)
    x = np.zeros((len(first), 6))
    x[np.arange(len(first)), first], x[np.arange(len(first)), second] = 1, -1
    full = np.column_stack([x, z])
    p = expit(full @ np.append(s, b))
    whole = full.T @ (full * ((above + below) * p * (1 - p))[:, None]) + np.diag([0.3] * 6 + [0.0] * 2)
    slope = full.T @ (above * (1 - p) - below * p) - np.append(0.3 * s, [0, 0])
    ds, db = system.solve(system.pull, s, -system.slope_b, np.full(1, 1e-12))
    assert np.allclose(np.append(ds, db), np.linalg.solve(whole, slope), atol=1e-12)


@pytest.mark.parametrize("m", [4, 20, 100])
def test_a_ring_of_wins_carries_one_flow(m: int, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # i ≻ i + 1 n_i times, closed: the flow n_i σ(−d_i) is the same everywhere and the differences d_i sum to zero.
    # Undamped Newton steps never settle here.
    n = np.random.default_rng(0).integers(8, 50, m).astype(float)
    ring, least = np.arange(m), n.min()

    def differences(v: float) -> Floats:  # flow = least · σ(v), so that least − flow keeps its digits
        return np.where(n == least, -v, np.log(np.maximum(n - least * expit(v), 1e-9) / (least * expit(v))))

    if m == 20 and solver == "dense":
        monkeypatch.delattr(public_room, "fit_sparse")  # nothing is handed over
    v = brentq(lambda v: differences(v).sum(), -30, 30, xtol=1e-14)
    scores = fit(Preferences.from_comparisons(ring, (ring + 1) % m, count=n.astype(int)), prior=0)
    assert np.allclose(scores.value - np.roll(scores.value, -1), differences(v), atol=1e-6)
    assert scores.status.tolist() == [Status.CONVERGED]


@pytest.mark.usefixtures("solver")
def test_a_strict_order_with_one_upset() -> None:
    # many dense iterations, elimination on a full matrix; the gradient, straight from the formula, vanishes
    m = 150
    better, worse = np.triu_indices(m, 1)
    prefs = Preferences.from_comparisons(better, worse, count=np.full(len(better), 10**6))
    scores = fit(prefs + Preferences.from_comparisons([m - 1], [0]), prior=0)
    s = scores.value
    n = np.triu(np.full((m, m), 1e6), 1)
    n[m - 1, 0] = 1
    pull = n * expit(s[None, :] - s[:, None])
    assert np.abs(pull.sum(axis=1) - pull.sum(axis=0)).max() < 1e-8 * pull.sum(axis=1).min()
    assert scores.status.tolist() == [Status.CONVERGED]


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("prior", [1e-2, 1e-6, 1e-12])
def test_nearly_separated_with_a_tiny_prior(prior: float) -> None:
    # one item always wins: n σ(−d) = prior·d/2 for the difference d of two items
    prefs = Preferences.from_comparisons(["a"], ["b"], count=[50])
    scores = fit(prefs, prior=prior)
    d = scores.value[0] - scores.value[1]
    assert 50 * expit(-d) == pytest.approx(prior * d / 2, rel=1e-8)
    assert scores.status.tolist() == [Status.CONVERGED]


# -- Davidson ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prior", [0.0, 0.05])
def test_davidson_agrees_with_the_plain_twin(prior: float) -> None:
    prefs = random_log(5, items=5, rows=150, ties=True, weights=True)
    scores = fit(prefs, prior=prior, ties="davidson")
    s, log_nu = plain_davidson(prefs, prior)
    assert np.allclose(scores.value, s, atol=1e-9, rtol=0)
    assert scores.coefficients["ties"] == pytest.approx([log_nu], abs=1e-9)


def test_davidson_of_two_items_in_closed_form() -> None:
    # saturated: π_a/π_b = wins/losses, ν = ties/√(wins·losses)
    prefs = Preferences.from_comparisons(["a", "b", "a"], ["b", "a", "b"], tie=[False, False, True], count=[8, 2, 6])
    scores = fit(prefs, prior=0, ties="davidson")
    assert scores.value[0] - scores.value[1] == pytest.approx(np.log(4), abs=1e-10)
    assert scores.coefficients["ties"] == pytest.approx([np.log(6 / 4)], abs=1e-10)


def test_davidson_without_ties_is_bradley_terry_and_says_so() -> None:
    prefs = random_log(3)
    scores = fit(prefs, ties="davidson")
    assert scores.value.tolist() == fit(prefs).value.tolist()
    assert scores.coefficients["ties"].tolist() == [-np.inf]
    assert "no ties" in [note.code for note in scores.notes]


def test_davidson_with_ties_only_says_so() -> None:
    prefs = Preferences.from_comparisons(["a", "b"], ["b", "c"], tie=[True, True])
    scores = fit(prefs, ties="davidson")
    assert scores.value.tolist() == [0, 0, 0]
    assert scores.coefficients["ties"].tolist() == [np.inf]


def test_davidson_a_win_and_a_tie_have_no_maximum() -> None:
    # never a loss: the ratio of abilities and ν grow together without end
    prefs = Preferences.from_comparisons(["a", "a"], ["b", "b"], tie=[False, True])
    with pytest.raises(NoMaximumLikelihood, match="prior"):
        fit(prefs, prior=0, ties="davidson")
    scores = fit(prefs, ties="davidson")
    assert scores.status.tolist() == [Status.CONVERGED]
    assert np.isfinite(scores.coefficients["ties"]).all()


@pytest.mark.parametrize("ties", [1, 2, 3])
def test_davidson_needs_a_cycle_with_more_wins_than_ties(ties: int) -> None:
    # a ≻ b ≻ … along a ring of five, closed by ties
    ring = np.arange(5)
    prefs = Preferences.from_comparisons(ring, (ring + 1) % 5, tie=ring >= 5 - ties)
    if ties < 3:
        scores = fit(prefs, prior=0, ties="davidson")
        assert np.allclose(scores.value, plain_davidson(prefs, 0)[0], atol=1e-8)
    else:
        with pytest.raises(NoMaximumLikelihood, match="more wins than ties"):
            fit(prefs, prior=0, ties="davidson")


def test_davidson_mixed_batch_fits_each_graph_its_way() -> None:
    prefs = Preferences.from_comparisons(
        ["a", "b", "a", "a", "b"],
        ["b", "a", "b", "b", "a"],
        ["t", "t", "t", "u", "u"],
        tie=[False, False, True, False, False],
        count=[8, 2, 6, 3, 1],
    )
    scores = fit(prefs, prior=0, ties="davidson")
    assert scores.value == pytest.approx([np.log(4) / 2, -np.log(4) / 2, np.log(3) / 2, -np.log(3) / 2], abs=1e-9)
    assert scores.coefficients["ties"] == pytest.approx([np.log(1.5), -np.inf])


# -- what has no answer ------------------------------------------------------------------------------------------
SILENT = {
    "an item that never loses": ([0, 0, 1, 2], [1, 2, 2, 1], "0"),
    "a chain": ([0, 1, 2], [1, 2, 3], "1"),
    "two components": ([0, 2], [1, 3], "3"),
}


@pytest.mark.parametrize("case", SILENT)
def test_silent_failures_of_peers_are_errors_without_a_prior(case: str) -> None:
    winner, loser, named = SILENT[case]
    with pytest.raises(NoMaximumLikelihood, match=named) as caught:
        fit(Preferences.from_comparisons(winner, loser), prior=0)
    assert "prior=0.01" in str(caught.value)


@pytest.mark.parametrize("case", SILENT)
def test_silent_failures_of_peers_are_finite_and_flagged_with_a_prior(case: str) -> None:
    winner, loser, _ = SILENT[case]
    scores = fit(Preferences.from_comparisons(winner, loser))
    assert np.isfinite(scores.value).all()
    assert "kept finite by the prior" in [note.code for note in scores.notes]
    for component in np.unique(scores.component):
        assert abs(scores.value[scores.component == component].sum()) < 1e-9
    assert len(np.unique(scores.component)) == (2 if case == "two components" else 1)


def test_the_error_names_the_query() -> None:
    prefs = Preferences.from_comparisons(["x", "y", "x"], ["y", "x", "y"], ["fine", "fine", "broken"])
    with pytest.raises(NoMaximumLikelihood, match=r"'broken'.*'y'"):
        fit(prefs, prior=0)


def test_items_never_compared_score_zero_in_a_component_of_their_own() -> None:
    from concordant.preferences.preferences import counted_comparisons

    prefs = counted_comparisons(["a", "b"], ["b", "a"], declared=(None, ["z"]), count=np.array([3, 1]))
    for prior in (0.0, 0.01):
        scores = fit(prefs, prior=prior)
        assert scores.value[2] == 0
        assert scores.component.tolist() == [0, 0, 1]


def test_empty_preferences() -> None:
    scores = fit(Preferences.empty(), prior=0)
    assert len(scores.value) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"prior": -1.0},
        {"prior": float("nan")},
        {"prior": float("inf")},
        {"ties": "david"},
        {"covariates": True},
        {"tolerance": 0.0},
        {"max_iterations": 0},
    ],
    ids=str,
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        fit(random_log(1), **options)


def with_covariates(**columns: Any) -> Preferences:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 5, 200)
    b = (a + rng.integers(1, 5, 200)) % 5
    return Preferences.from_comparisons(a, b, covariates={k: f(a, b, rng) for k, f in columns.items()})


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_covariates_without_information_are_errors(ties: str) -> None:
    zero = with_covariates(nothing=lambda a, *_: np.zeros(len(a)))
    with pytest.raises(CannotRank, match="'nothing' is 0"):
        fit(zero, ties=ties)
    twice = with_covariates(one=lambda a, b, _: (a + b) % 3 - 1.0, two=lambda a, b, _: 2.0 * ((a + b) % 3 - 1))
    with pytest.raises(CannotRank, match="'one', 'two' cannot be determined"):
        fit(twice, ties=ties)
    trait = with_covariates(age=lambda a, b, _: 1.0 * a - b)
    with pytest.raises(CannotRank, match="'age' cannot be determined"):
        fit(trait, prior=0, ties=ties)
    assert fit(trait, prior=1.0, ties=ties).status.tolist() == [Status.CONVERGED]  # the prior determines it


def test_a_covariate_that_separates_is_an_error() -> None:
    always = with_covariates(sure=lambda a, _b, rng: rng.uniform(0.001, 1, len(a)))
    with pytest.raises(CannotRank, match="'sure' has no finite"):
        fit(always)


def test_covariates_of_any_unit() -> None:
    centimetres = with_covariates(size=lambda a, _b, rng: rng.normal(size=len(a)) * 1e5)
    metres = with_covariates(size=lambda a, _b, rng: rng.normal(size=len(a)) * 1e3)
    one, other = fit(centimetres).coefficients["size"][0], fit(metres).coefficients["size"][0]
    assert other == pytest.approx(100 * one, rel=1e-9)
    assert abs(one) * 1e5 == pytest.approx(abs(plain_bradley_terry(centimetres, 0.01)[-1]) * 1e5, rel=1e-6)


def test_status_is_honest() -> None:
    prefs = random_log(4, ties=True)
    short = fit(prefs, max_iterations=1)
    assert short.status.tolist() == [Status.STOPPED]
    assert "stopped" in [note.code for note in short.notes]
    x, mass, _, tie = design(prefs)
    x, mass = np.vstack([x, -x[tie]]), np.concatenate([np.where(tie, mass / 2, mass), mass[tie] / 2])
    slope = x.T @ (mass * expit(-(x @ short.value))) - 0.01 * short.value
    assert short.gradient == pytest.approx([np.abs(slope).max()], rel=1e-9)


# -- laws --------------------------------------------------------------------------------------------------------
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.booleans())
def test_permutation_of_items_permutes_the_scores(seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, 40)
    b = (a + rng.integers(1, 6, 40)) % 6
    tie = rng.random(40) < 0.3 if ties else None
    names = rng.permutation(6)
    plain = by_label(p := Preferences.from_comparisons(a, b, tie=tie), fit(p))
    moved = by_label(q := Preferences.from_comparisons(names[a], names[b], tie=tie), fit(q))
    assert all(moved[int(names[i])] == pytest.approx(plain[i], abs=1e-9) for i in plain)


@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_count_is_repetition_and_scores_sum_to_zero(prior: float) -> None:
    base = random_log(8)
    thrice = base + base + base
    tripled = Preferences.from_comparisons(base.winner, base.loser, base.query, count=np.int64(3) * base.count)
    assert thrice == tripled
    assert fit(thrice, prior=prior).value.tolist() == fit(tripled, prior=prior).value.tolist()
    assert fit(thrice, prior=3 * prior).value == pytest.approx(fit(base, prior=prior).value, abs=1e-9)
    assert abs(fit(base, prior=prior).value.sum()) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_an_added_win_raises_the_winner_against_everybody(seed: int) -> None:
    prefs = random_log(seed)
    more = prefs + Preferences.from_comparisons([2], [5], [0])
    before, after = fit(prefs).value, fit(more).value
    change = after - before
    assert change[2] == change.max() > 0 > change.min() == change[5]


@pytest.mark.parametrize("ties", ["half", "davidson"])
@pytest.mark.usefixtures("solver")
def test_a_query_does_not_see_the_others(ties: str) -> None:
    prefs = random_log(21, queries=7, items=9, rows=80, ties=True)
    together = fit(prefs, ties=ties)
    start = Batch.whole(prefs).node_start
    for q, label in enumerate(prefs.queries.tolist()):
        alone = fit(prefs.select([label]), ties=ties)
        assert together.value[start[q] : start[q + 1]].tolist() == alone.value.tolist()


def test_both_solvers_agree_on_queries_of_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [random_log(s, items=int(3 + 5 * s), rows=60 + 40 * s, ties=True) for s in range(6)]
    prefs = sum(
        Preferences.from_comparisons(p.winner, p.loser, np.full(p.distinct, s), tie=p.tie, count=p.count)
        for s, p in enumerate(parts)
    )
    monkeypatch.setattr(public_room, "FILLED", 10**9)
    dense = fit(prefs)
    monkeypatch.setattr(public_room, "LARGE", 0)
    assert fit(prefs).value == pytest.approx(dense.value, abs=1e-10)
    for s in range(6):
        nodes = slice(*Batch.whole(prefs).node_start[s : s + 2])
        assert dense.value[nodes] == pytest.approx(plain_bradley_terry(prefs, 0.01, s), abs=1e-9)


def test_other_kinds_are_read_as_pairs() -> None:
    orders = Preferences.from_orders(["q"] * 5, [1, 1, 1, 2, 2], ["a", "b", "c", "b", "a"], [1, 2, 2, 1, 2])
    pairs = Preferences.from_comparisons(["a", "a", "b", "b"], ["b", "c", "c", "a"], tie=[False, False, True, False])
    assert fit(orders).value == pytest.approx(fit(pairs).value, abs=1e-12)


# -- curvature ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ties", ["half", "davidson"])
@pytest.mark.parametrize("home", [False, True])
def test_curvature_is_the_derivative_of_the_contributions(ties: str, home: bool) -> None:
    rng = np.random.default_rng(6)
    a = rng.integers(0, 5, 120)
    b = (a + rng.integers(1, 5, 120)) % 5
    z = {"home": rng.choice([-1.0, 0.0, 1.0], 120), "rest": rng.normal(size=120).round(1)} if home else None
    prefs = Preferences.from_comparisons(
        a, b, rng.choice(["p", "q"], 120), rng.choice([1.0, 2.0], 120), tie=rng.random(120) < 0.3, covariates=z
    )
    batch = Batch.whole(prefs)
    scores = bradley_terry(batch, ties=ties)
    curvature = bradley_terry_curvature(batch, scores)
    n, extras = len(scores.value), len(curvature.extra_owner)
    assert curvature.extra_owner.tolist() == sorted([0, 1] * (2 * home + (ties == "davidson")))

    def gradient(at: Scores) -> Floats:
        return np.asarray(batch.multiplicity @ bradley_terry_curvature(batch, at).contributions)

    # at the maximum the contributions cancel against the prior
    assert np.allclose(gradient(scores), np.append(0.01 * scores.value, np.zeros(extras)), atol=1e-8)
    step = 1e-6
    for i in range(n + extras):
        moved = []
        for sign in (1, -1):
            value, coefficients = scores.value.copy(), {k: v.copy() for k, v in scores.coefficients.items()}
            if i < n:
                value[i] += sign * step
            else:
                coefficients[curvature.extra_name[i - n]][curvature.extra_owner[i - n]] += sign * step
            other = Scores(
                value, scores.component, scores.status, scores.iterations, scores.gradient, coefficients,
                options=scores.options,
            )  # fmt: skip
            moved.append(gradient(other))
        numeric = (moved[1] - moved[0]) / (2 * step)
        assert np.allclose(curvature.hessian.toarray()[:, i], numeric, atol=1e-5)


def test_pair_weights_give_the_same_hessian_without_contributions() -> None:
    batch = Batch.whole(random_log(9, queries=3, ties=True, weights=True))
    scores = bradley_terry(batch)
    cheap = laplacian(batch.graphs, pair_weights(batch.graphs, scores.value))
    assert np.allclose(cheap.toarray(), bradley_terry_curvature(batch, scores).hessian.toarray(), atol=1e-12)
    assert np.allclose(cheap.sum(axis=1), 0, atol=1e-10)


def test_an_order_is_one_row_of_contributions() -> None:
    orders = Preferences.from_orders(["q"] * 4, [1, 1, 1, 1], ["a", "b", "c", "d"], [1, 2, 3, 4])
    batch = Batch.whole(orders)
    scores = bradley_terry(batch)
    curvature = bradley_terry_curvature(batch, scores)
    s = scores.value
    expected = [
        sum(expit(s[j] - s[i]) for j in range(i + 1, 4)) - sum(expit(s[i] - s[j]) for j in range(i)) for i in range(4)
    ]
    assert curvature.contributions.toarray() == pytest.approx(np.array([expected]))


def sparse_queries(queries: int = 30) -> Preferences:
    """As few comparisons as items: queries with many components and separated items, as small subsets have."""
    rng = np.random.default_rng(6)
    one = rng.integers(0, 40, queries * 40)
    other = (one + rng.integers(1, 40, queries * 40)) % 40
    return Preferences.from_comparisons(one, other, np.repeat(np.arange(queries), 40))


@pytest.mark.parametrize("prior", [1e-2, 1e-6, 1e-8])
def test_sparse_queries_converge_under_a_tiny_prior(prior: float) -> None:
    prefs = sparse_queries()
    scores = fit(prefs, prior=prior)
    assert (scores.status == Status.CONVERGED).all()
    batch = Batch.whole(prefs)
    graphs, s = batch.graphs, scores.value
    gap = s[graphs.first] - s[graphs.second]
    pull = graphs.wins * expit(-gap) - graphs.losses * expit(gap)
    slope = graphs.add_to_nodes(pull, -pull) - prior * s
    assert np.abs(slope).max() < 1e-9 * max(prior, 1e-3)


def test_graphs_fitted_some_at_a_time_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = sparse_queries()
    monkeypatch.setattr(newton, "WORK", 1 << 60)
    together = fit(prefs)
    monkeypatch.setattr(newton, "WORK", 100)
    parts = fit(prefs)
    for name in ("value", "iterations", "gradient", "status"):
        assert getattr(parts, name).tolist() == getattr(together, name).tolist()
