"""Properties of items: R's BradleyTerry2 on its own data, formulas by brute force, what cannot be determined."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import concordant as cc
from concordant.errors import CannotRank, UsageError
from concordant.ranking.explaining import _Model
from conftest import shared_data


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def chameleons():
    """Fights of chameleons, and what was measured of them (Stuart-Fox et al. 2006, by BradleyTerry2)."""
    name = "r_classics/BradleyTerry2.chameleons.{}.csv"
    winner, loser, items = (rows(shared_data(name.format(part))) for part in ("winner", "loser", "predictors"))
    before = [float(one["prev.wins.2"]) - float(other["prev.wins.2"]) for one, other in zip(winner, loser, strict=True)]
    votes = cc.Preferences.from_comparisons(
        [one["ID"] for one in winner], [one["ID"] for one in loser], covariates={"prev.wins.2": before}
    )
    table = {"item": [one["row.names"] for one in items]}
    return votes, table | {name: [float(one[name]) for one in items] for name in ("ch.res", "prop.main")}


def column(found, name):
    return dict(zip(found.coefficients["name"].to_pylist(), found.coefficients[name].to_pylist(), strict=True))


def test_fixed_effects_are_those_of_bradleyterry2():
    found = cc.explain(*chameleons(), effects="none")
    estimate, error = column(found, "estimate"), column(found, "standard_error")
    published = {  # BradleyTerry2 1.1-2, summary(BTm(~ prev.wins.2 + ch.res[ID] + prop.main[ID]))
        "prev.wins.2": (2.38129555274, 0.48488550600),
        "ch.res": (0.60931150452, 0.27770613962),
        "prop.main": (0.08927968712, 0.04381692500),
    }
    for name, (value, spread) in published.items():
        assert np.isclose(estimate[name], value, rtol=1e-7)
        assert np.isclose(error[name], spread, rtol=2e-4)  # glm stops a step before
    assert np.isclose(found.log_likelihood, -42.69783266)
    assert found.spread == 0
    assert np.allclose(found.items["effect"].to_numpy(), 0)


def test_penalised_quasi_likelihood_is_that_of_bradleyterry2(monkeypatch):
    monkeypatch.setattr(_Model, "_bent", lambda *_: 0.0)
    found = cc.explain(*chameleons(), spread=1.0)
    estimate, error = column(found, "estimate"), column(found, "standard_error")
    published = {  # the same with (1 | ID), sigma = 1, sigma.fixed = TRUE
        "prev.wins.2": (1.8576729023, 0.52445673054),
        "ch.res": (0.6648342549, 0.37173776521),
        "prop.main": (0.1023124988, 0.05974098875),
    }
    for name, (value, spread) in published.items():
        assert np.isclose(estimate[name], value, rtol=1e-5)
        assert np.isclose(error[name], spread, rtol=2e-4)  # glm stops a step before


def problem(seed=0, items=7, number=60, people=9):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, 2))
    ability = x @ [1.0, -0.5] + 0.5 * rng.normal(size=items)
    first = rng.integers(0, items, number)
    second = (first + rng.integers(1, items, number)) % items
    won = rng.random(number) < expit(ability[first] - ability[second])
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    who = rng.integers(0, people, number)
    table = {"item": np.arange(items), "one": x[:, 0], "two": x[:, 1]}
    return winner, loser, who, x, table


def test_coefficients_maximise_the_likelihood_without_the_effects():
    winner, loser, _, x, table = problem()
    found = cc.explain(cc.Preferences.from_comparisons(winner, loser), table, spread=0.8)
    n, z, precision = len(x), x[winner] - x[loser], 0.8**-2
    d = np.zeros((len(winner), n))
    d[np.arange(len(winner)), winner], d[np.arange(len(winner)), loser] = 1, -1

    def lost(beta):
        def peak(u):
            m = d @ u + z @ beta
            return -log_expit(m).sum() + precision * u @ u / 2, -d.T @ expit(-m) + precision * u

        best = minimize(peak, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-9})
        m = d @ best.x + z @ beta
        curve = d.T @ ((expit(m) * expit(-m))[:, None] * d) + precision * np.eye(n)
        return best.fun + 0.5 * np.linalg.slogdet(curve)[1]

    best = minimize(lost, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    assert np.allclose([*column(found, "estimate").values()], best.x, atol=1e-4)


@pytest.mark.parametrize("effects", ["random", "none"])
@pytest.mark.parametrize("clustered", [False, True])
def test_errors_by_the_formula(effects, clustered):
    winner, loser, who, x, table = problem(3)
    votes = cc.Preferences.from_comparisons(winner, loser, cluster=who if clustered else None)
    more = {"spread": 0.7} if effects == "random" else {"effects": "none"}
    found = cc.explain(votes, table, **more)
    n = len(x)
    u = found.items.sort_by("item")["effect"].to_numpy()
    beta = np.array([*column(found, "estimate").values()])
    z = x[winner] - x[loser]
    d = np.zeros((len(winner), n))
    d[np.arange(len(winner)), winner], d[np.arange(len(winner)), loser] = 1, -1
    m = d @ u + z @ beta
    both = np.concatenate([d, z], axis=1) if effects == "random" else z
    added = np.diag([0.7**-2] * n + [0, 0]) if effects == "random" else np.zeros((2, 2))
    bread = np.linalg.inv(both.T @ ((expit(m) * expit(-m))[:, None] * both) + added)
    meat = np.linalg.inv(bread)
    if clustered:
        scores = np.stack([(expit(-m)[:, None] * both)[who == one].sum(axis=0) for one in np.unique(who)])
        groups = len(scores)
        meat = groups / (groups - 1) * scores.T @ scores + added
    covariance = (bread @ meat @ bread)[-2:, -2:]
    assert np.allclose([*column(found, "standard_error").values()], np.sqrt(np.diag(covariance)), rtol=2e-3)


def test_large_and_small_solvers_agree(monkeypatch):
    winner, loser, _, _, table = problem(5, items=30, number=400)
    votes = cc.Preferences.from_comparisons(winner, loser)
    monkeypatch.setattr(_Model, "_bent", lambda *_: 0.0)
    dense = cc.explain(votes, table, spread=0.6)
    monkeypatch.setattr("concordant.ranking.explaining.DENSE", 10)
    sparse = cc.explain(votes, table, spread=0.6)
    for name in ("estimate", "standard_error"):
        assert np.allclose(dense.coefficients[name].to_numpy(), sparse.coefficients[name].to_numpy(), rtol=1e-7)


def test_counts_units_and_order_change_nothing():
    winner, loser, _, _, table = problem(2)
    plain = cc.explain(cc.Preferences.from_comparisons(winner, loser), table)
    turned = cc.explain(
        cc.Preferences.from_comparisons(winner[::-1], loser[::-1]),
        {"item": table["item"][::-1], "two": 1000 * table["two"][::-1], "one": table["one"][::-1] + 5},
    )
    assert np.isclose(column(plain, "estimate")["two"], 1000 * column(turned, "estimate")["two"], rtol=1e-4)
    assert np.isclose(plain.spread, turned.spread, rtol=0.02)
    twice = cc.Preferences.from_comparisons(np.tile(winner, 2), np.tile(loser, 2))
    counted = cc.Preferences.from_comparisons(winner, loser, count=np.full(len(winner), 2))
    assert str(cc.explain(twice, table, spread=1)) == str(cc.explain(counted, table, spread=1))


def test_items_without_a_number_are_said():
    winner, loser, _, _, table = problem(2)
    table = {**table, "one": np.where(table["item"] == 3, np.nan, table["one"])}
    found = cc.explain(cc.Preferences.from_comparisons(winner, loser), table, spread=1)
    assert found.notes[0].items == (3,)
    assert found.notes[0].numbers["judgments"] == int(((winner == 3) | (loser == 3)).sum())
    kept = (winner != 3) & (loser != 3)
    without = cc.explain(cc.Preferences.from_comparisons(winner[kept], loser[kept]), table, spread=1)
    assert np.allclose([*column(found, "estimate").values()], [*column(without, "estimate").values()])


VOTES = cc.Preferences.from_comparisons(list("abcdab"), list("bcdacd"), count=[8, 7, 9, 3, 8, 9])
X = [4.0, 3.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("table", "more", "error", "said"),
    [
        ({"name": list("abcd"), "x": X}, {}, UsageError, "no column 'item'"),
        ({"item": list("abcd")}, {}, UsageError, "beside the items"),
        ({"item": list("abca"), "x": X}, {}, UsageError, "'a' stands in the properties twice"),
        ({"item": list("abcd"), "x": list("uvwx")}, {}, UsageError, "'x' must hold one number"),
        ({"item": list("wxyz"), "x": X}, {}, UsageError, "properties are 'w', 'x', 'y', .*, of the judgments 'a', 'b'"),
        ([1, 2], {}, UsageError, "a table or a mapping of columns, not list"),
        ({"item": list("abcd"), "x": [1.0] * 4}, {}, CannotRank, "no two items that were compared differ in 'x'"),
        ({"item": list("abcd"), "x": X, "y": [2 * one for one in X]}, {}, CannotRank, "go together"),
        ({"item": list("abcd"), "x": X}, {"effects": "fixed"}, UsageError, "random, none"),
        ({"item": list("abcd"), "x": X}, {"spread": -1}, UsageError, "positive"),
        ({"item": list("abcd"), "x": X}, {"spread": 1, "effects": "none"}, UsageError, "random effects"),
        ({"item": list("abcd"), "x": X}, {"level": 95}, UsageError, "between 0 and 1"),
    ],
)
def test_what_cannot_be_explained(table, more, error, said):
    with pytest.raises(error, match=said):
        cc.explain(VOTES, table, **more)


def test_no_maximum():
    always = cc.Preferences.from_comparisons(list("aab"), list("bcc"), count=[9, 9, 9])
    with pytest.raises(CannotRank, match="properties alone tell"):
        cc.explain(always, {"item": list("abc"), "x": [2.0, 1.0, 0.0]})
    chain = cc.Preferences.from_comparisons(list("abcdef"), list("ghijkl"))
    with pytest.raises(CannotRank, match=r"do not say how much|properties alone tell"):
        cc.explain(chain, {"item": list("abcdefghijkl"), "x": [3, 1, 5, 0, 4, 4, 1, 2, 3, 1, 6, 1.5]})
