"""AoS Figures 2 to 4, one ranker per query and Theorem 4: what is drawn, what is measured, and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from concordant.apps.reproduction import consistency, fig2, fig3, fig3_converged, fig3_many, fig4, images
from concordant.apps.reproduction.data import GradedLists, limit_scores, read_graded
from concordant.apps.reproduction.fig3_stochastic import stochastic_risks
from concordant.apps.reproduction.fitting import (
    HeldOut,
    complete_targets,
    equations,
    limit_targets,
    logistic,
    order_targets,
    risks,
)
from concordant.apps.reproduction.outcome import Setting
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import counted_comparisons
from concordant.ranking.structures import structure


def made(queries: int = 12, documents: int = 15, features: int = 4) -> GradedLists:
    """Lists whose relevance is a noisy linear function of the features."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(queries * documents, features))
    score = X @ np.arange(1, features + 1) / 2 + 0.5 * rng.normal(size=len(X))
    relevance = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).astype(float)
    return GradedLists("mq2008", X, relevance, np.arange(queries + 1) * documents)


def test_limit_scores_by_the_formula() -> None:
    r = np.array([0.0, 2.0, 1.0, 4.0, 0.0])
    by_hand = [
        np.mean([np.log1p(np.exp(r[i] - r[j])) - np.log1p(np.exp(r[j] - r[i])) for j in range(5) if j != i])
        for i in range(5)
    ]
    np.testing.assert_allclose(limit_scores(np.array([0, 5]), r), by_hand)


def test_comparisons_follow_the_model() -> None:
    """Shares of queries, pairs and winners of (26), and documents that nobody compared are there."""
    lists = GradedLists("mslr", np.zeros((5, 1)), np.array([0.0, 1.0, 3.0, 0.0, 2.0]), np.array([0, 3, 5]))
    prefs = lists.draw(60_000, np.random.default_rng(0))
    assert prefs.judgments / len(prefs) == pytest.approx(np.array([0.5, 0.5]), abs=0.01)
    count = {(int(w), int(v)): int(c) for w, v, c in zip(prefs.winner, prefs.loser, prefs.count, strict=True)}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert (count[i, j] + count[j, i]) / 30_000 == pytest.approx(1 / 3, abs=0.02)
    for i, j in ((0, 2), (1, 2), (3, 4)):
        p = 1 / (1 + np.exp(lists.relevance[j] - lists.relevance[i]))
        assert count[i, j] / (count[i, j] + count[j, i]) == pytest.approx(p, abs=0.02)
    few = made().draw(3, np.random.default_rng(1))
    np.testing.assert_array_equal(few.members[0], made().start)


def test_log_odds_tend_to_the_limit_scores() -> None:
    lists = made(2, 5)
    scores = structure("log-odds")(Batch.whole(lists.draw(2_000_000, np.random.default_rng(0)))).value
    np.testing.assert_allclose(scores, lists.limits, atol=0.03)


def test_risk_is_the_ndcg_loss() -> None:
    lists = made()
    score = np.random.default_rng(0).normal(size=len(lists.X))
    loss = 1 - ndcg(score, lists.limits, lists.query, at=None, gain=np.exp2)
    assert lists.risk(score) == pytest.approx(loss.mean(), abs=1e-12)
    assert lists.risk(lists.limits) == pytest.approx(0, abs=1e-12)


def test_more_comparisons_bring_the_risk_to_that_of_complete_data() -> None:
    lists = made()
    full = lists.risk(lists.X @ equations(lists, limit_targets(lists)).solve(1e-6).theta)
    found = []
    for n in (200, 100_000):
        prefs = lists.draw(n, np.random.default_rng(2))
        theta = equations(lists, order_targets(prefs, ["all"], 1, 0), prefs).solve(1e-6).theta
        found += [*risks(lists, theta), *risks(lists, logistic(lists, prefs, [1e-6]))]
    assert max(found[2:]) < min(found[:2])
    assert found[2] == pytest.approx(full, abs=0.01)


# -- Figure 3 -----------------------------------------------------------------------------------------------------
def test_smoothing_and_scale_of_complete_aggregation_both_ways() -> None:
    """G(βs)/Z by the structure is what the U-statistic of all judgments gives, and by the formula."""
    lists = made(3, 6)
    prefs = lists.draw(200, np.random.default_rng(3))
    found = complete_targets(lists, prefs, [0.01, 0.5], [1.0, 4.0])
    for place, (c0, scale) in enumerate(((0.01, 1.0), (0.01, 4.0), (0.5, 1.0), (0.5, 4.0))):
        both = order_targets(prefs, ["all"], 1, 0, c0=c0, scale=scale)[:, 0]
        np.testing.assert_allclose(found[:, place], both, atol=1e-6)
        scores = structure("log-odds")(Batch.whole(prefs), c0=c0).value
        gain = 2 ** (scale * scores) - 1
        for part in (slice(0, 6), slice(6, 12), slice(12, 18)):
            best = np.sort(gain[part])[::-1] @ (1 / np.log2(np.arange(2, 8)))
            np.testing.assert_allclose(found[part, place], gain[part] / best, atol=1e-9)


def test_what_is_held_out_is_not_learned_from() -> None:
    """Fits on some queries are those of lists that hold no others; each query is judged once."""
    lists = made()
    prefs = lists.draw(600, np.random.default_rng(4))
    targets = order_targets(prefs, ["all"], 1, 0)
    held = HeldOut.of(lists, 3, [0])
    assert sorted(np.bincount(held.part)) == [4, 4, 4]

    def regression(train: np.ndarray) -> np.ndarray:
        return equations(lists, targets, prefs, train=train).solve(1e-3).theta

    for fit in (regression, lambda train: logistic(lists, prefs, [1e-3], train=train)):
        total = 0.0
        for part in range(3):
            train = held.part != part
            rows = np.repeat(train, lists.size)
            few = lists.some(np.flatnonzero(train))
            spoiled = replace(lists, X=np.where(rows[:, None], lists.X, 1e3))
            again = equations(few, targets[rows]).solve(1e-3).theta if fit is regression else None
            theta = fit(train)
            other = logistic(spoiled, prefs, [1e-3], train=train) if again is None else theta
            np.testing.assert_allclose(theta, other, atol=1e-9)
            judged = lists.some(np.flatnonzero(~train))
            total += judged.risk(judged.X @ theta[:, 0]) / 3
        assert held.risk(fit)[0] == pytest.approx(total, abs=1e-12)


def test_copies_of_queries() -> None:
    """One copy is the lists themselves; of several the targets are the means, and all comparisons are together."""
    lists = made(4, 5)
    rng = np.random.default_rng
    one = fig3_many.ManyQueries.of(lists, 4)
    prefs = one.draw(30, rng(0))
    np.testing.assert_array_equal(prefs.winner, lists.draw(120, rng(0)).winner)
    np.testing.assert_allclose(one.targets(prefs, [0.1], [2.0]), complete_targets(lists, prefs, [0.1], [2.0]))
    many = fig3_many.ManyQueries.of(lists, 12)
    assert many.copies == 3
    prefs = many.draw(30, rng(1))
    together = many.together(prefs)
    assert (len(prefs), len(together)) == (360, 360)
    assert set(together.query[:1]) <= set(range(4))
    found, total, weight = np.zeros(20), np.zeros(20), np.zeros(20)
    for copy in range(3):
        chosen = prefs.winner // 20 == copy
        pick = [np.repeat(side[chosen] - 20 * copy, prefs.count[chosen]) for side in (prefs.winner, prefs.loser)]
        part = counted_comparisons(*pick, query=lists.query[pick[0]], declared=(lists.query, np.arange(20)))
        share = np.repeat(part.judgments, 5)
        total += share * complete_targets(lists, part, [0.1], [2.0])[:, 0]
        weight += share
    found = many.targets(prefs, [0.1], [2.0])[:, 0]
    np.testing.assert_allclose(found, total / weight)
    np.testing.assert_array_equal(weight, np.repeat(together.judgments, 5))


def test_stochastic_steps_lead_to_the_minimum() -> None:
    lists = made(6, 8, 2)
    prefs = lists.draw(3_000, np.random.default_rng(5))
    few, many = (stochastic_risks(lists, prefs, [1, "all"], steps, 0) for steps in (20, 4_000))
    assert list(many) == ["logistic", "1", "all"]
    best = lists.risk(lists.X @ logistic(lists, prefs, [1e-3])[:, 0])
    assert many["logistic"] == pytest.approx(best, abs=0.003)
    fitted = equations(lists, order_targets(prefs, ["all"], 1, 0), prefs).solve(1e-3).theta
    assert many["all"] == pytest.approx(lists.risk(lists.X @ fitted[:, 0]), abs=0.003)
    assert stochastic_risks(lists, prefs, [1, "all"], 20, 0) == few


def test_settings_are_those_of_the_least_held_out_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force over ridges, c₀ and β for two methods, and every method is fitted with what was chosen."""
    monkeypatch.setattr(fig3_converged, "RIDGES", (1e-4, 1.0, 30.0))
    monkeypatch.setattr(fig3_converged, "C0S", (0.1, 0.5))
    monkeypatch.setattr(fig3_converged, "SCALES", (1.0, 8.0))
    lists = made(9, 8)
    draws = [lists.draw(150, np.random.default_rng([6, number])) for number in range(2)]
    chosen = fig3_converged.choose(lists, draws, [3, "all"], 0)
    divisions = [HeldOut.of(lists, fig3_converged.PARTS, [0, number]) for number in range(2)]
    risk: dict[tuple[str, float, float, float], float] = {}
    for ridge in (1e-4, 1.0, 30.0):
        risk["logistic", ridge, 0, 0] = sum(
            float(held.risk(lambda train, prefs=prefs, ridge=ridge: logistic(lists, prefs, [ridge], train=train))[0])
            for held, prefs in zip(divisions, draws, strict=True)
        )
        for c0 in (0.1, 0.5):
            for scale in (1.0, 8.0):
                targets = [complete_targets(lists, prefs, [c0], [scale]) for prefs in draws]
                risk["all", ridge, c0, scale] = sum(
                    float(
                        held.risk(
                            lambda train, prefs=prefs, y=y, ridge=ridge: (
                                equations(lists, y, prefs, train=train).solve(ridge).theta
                            )
                        )[0]
                    )
                    for held, prefs, y in zip(divisions, draws, targets, strict=True)
                )
    best = {name: min((key for key in risk if key[0] == name), key=risk.__getitem__) for name in ("logistic", "all")}
    assert best["logistic"][1] == chosen.ridge["logistic"]
    assert best["all"][1:] == (chosen.ridge["all"], chosen.c0["all"], chosen.scale["all"])
    prefs = lists.draw(150, np.random.default_rng(7))
    found = fig3_converged.fitted_risks(lists, prefs, chosen, 0)
    targets = complete_targets(lists, prefs, [chosen.c0["all"]], [chosen.scale["all"]])
    theta = equations(lists, targets, prefs).solve(chosen.ridge["all"]).theta
    assert found["all"] == pytest.approx(risks(lists, theta)[0], abs=1e-12)
    assert list(found) == list(chosen.ridge) and chosen.orders == [3, "all"]


# -- Figure 2 -----------------------------------------------------------------------------------------------------
def test_gap_falls_and_is_the_objective_above_its_minimum() -> None:
    lists = fig2.whitened(made())
    gram = NormalEquations.of(lists.X, lists.relevance, lists.start, 1 / len(lists) / lists.size).gram
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-9)
    points = np.array([0, 200, 2_000])
    curves = np.mean([fig2.gaps(lists, 5_000, 20, points, 0.05, (0, run)) for run in range(4)], axis=0)
    assert curves[0] > 3 * curves[1] > 3 * curves[2] > 0
    n = 600  # all 50 or so judgments of a query are its one subset: targets, and so the objective, are exact
    prefs = lists.draw(n, np.random.default_rng([0, 0, n, 1_000]))
    targets = mean_targets(prefs, order="all")
    normal = NormalEquations.of(lists.X, targets.value, lists.start, targets.weight)
    above = 0.5 * normal.squares[0] - normal.solve(fig2.RIDGE).value
    assert fig2.gaps(lists, n, 1_000, np.array([0, 1]), 0.05, (0, 0))[0] == pytest.approx(float(above))


def test_steps_to_a_tenth_lie_between_the_points() -> None:
    points = np.arange(0, 1001, 100)
    assert fig2._reached(np.exp(-points / 100.0), points) == pytest.approx(100 * np.log(10))
    assert np.isnan(fig2._reached(np.ones(11), points))


# -- Theorem 4 ----------------------------------------------------------------------------------------------------
def test_excess_risks_by_enumeration() -> None:
    """The right orders have none: 1 > 2 > 3 for Theorem 3's graphs, 2 > 1 > 3 for the uneven comparisons."""
    orders = np.array([[3.0, 2, 1], [3, 1, 2], [2, 3, 1], [1, 3, 2], [2, 1, 3], [1, 2, 3]])
    theorem, uneven = (world.excess(orders) for world in consistency.POPULATIONS)
    assert theorem.argmin() == 0 and theorem[0] == pytest.approx(0)
    assert theorem[1] == pytest.approx(0.01)  # 3 above 2: the one edge of weight .01
    assert uneven.argmin() == 2 and uneven[2] == pytest.approx(0)
    assert consistency.POPULATIONS[0].excess(np.array([[1.0, 0, 0]]))[0] == pytest.approx(0.01)
    for world in consistency.POPULATIONS:
        assert sum(world.chance) == pytest.approx(1)


def test_aggregation_overcomes_what_pairwise_logistic_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, float]] = []
    outcome = consistency.run(Setting(quick=True, progress=lambda done, total: told.append((done, total))))
    assert told[0][0] == 0.0 and told == sorted(told) and told[-1][0] == pytest.approx(told[-1][1])
    value = {(row["population"], row["n"], row["method"]): row["excess risk"] for row in outcome.summary}
    assert value["theorem 3", 1000, "pairwise logistic"] == pytest.approx(0.01)
    assert value["theorem 3", 1000, "U-statistic, a = 0.75"] < 0.001
    assert value["uneven", 1000, "U-statistic, a = 0.75"] < 0.5 * value["uneven", 1000, "pairwise logistic"]
    changed = {
        scheme: np.mean([row["changed"] for row in outcome.summary if row["method"].startswith(scheme)])
        for scheme in ("U-statistic, a = 0", "one partition")
    }
    assert changed["U-statistic, a = 0"] < changed["one partition"]
    monkeypatch.setattr(consistency, "NUMBERS", consistency.NUMBERS[:1])
    again = consistency.run(Setting(quick=True)).summary
    assert again == [row for row in outcome.summary if row["n"] == 100]


# -- on real lists ------------------------------------------------------------------------------------------------
@pytest.fixture(name="mq2008", scope="module")
def _mq2008() -> GradedLists:
    from conftest import shared_data

    return read_graded("mq2008", shared_data("mq2008"))


def test_queries_that_are_used(mq2008: GradedLists, shared_data: Callable[[str], Path]) -> None:
    grades = np.array([len(np.unique(part)) for part in np.split(mq2008.relevance, mq2008.start[1:-1])])
    assert (len(mq2008), mq2008.size.min(), grades.min(), mq2008.X.shape[1]) == (564, 5, 2, 46)
    np.testing.assert_allclose(mq2008.X.std(axis=0)[mq2008.X.any(axis=0)], 1)
    mslr = shared_data("mslr")
    lists = read_graded("mslr", mslr.parent)
    assert (len(lists), len(lists.X)) == (177, 19_735)


def _small(monkeypatch: pytest.MonkeyPatch, module: object, lists: GradedLists) -> None:
    monkeypatch.setattr(module, "read_graded", lambda name, _: replace(lists.some(np.arange(0, 564, 9)), name=name))
    monkeypatch.setattr(module, "found", lambda name, _: Path(name) if name == "mq2008" else None)


def test_figure_3_has_its_shape(mq2008: GradedLists, monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch, fig3, mq2008)
    monkeypatch.setattr(fig3, "PER_QUERY", (160,))
    monkeypatch.setattr(fig3, "QUERIES", 1_200)
    monkeypatch.setattr(fig3, "STEPS", 10_000)
    monkeypatch.setattr(fig3, "ORDERS", (1, 30))
    monkeypatch.setattr(fig3_converged, "RIDGES", (1e-3, 1e-1, 1.0))
    outcome = fig3.run(Setting(quick=True))
    risk = {(row["panel"], row["method"]): row["risk"] for row in outcome.tables["curve"]}
    assert [name for panel, name in risk if panel == fig3.CONVERGED and name not in fig3.BESIDE] == [
        *("1", "30", "all")
    ]
    assert risk["converged", "1"] > risk["converged", "30"] > outcome.summary[0]["limit scores"] - 0.005
    assert risk["converged", "1"] > risk["converged", "logistic"]
    assert risk["stochastic", "logistic"] > risk["stochastic", "all"]
    text = outcome.markdown()
    assert all(f"\n{says}\n\n| data |" in text for says in outcome.shown)
    assert fig3.run(Setting(quick=True)).summary == outcome.summary


def test_figure_4_is_flat(mq2008: GradedLists, monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch, fig4, mq2008)
    rows = fig4.run(Setting(quick=True)).summary
    assert len(rows) == len(fig4.RIDGES)
    assert max(row["risk"] for row in rows) < 1.15 * min(row["risk"] for row in rows)


def test_one_ranker_for_each_query_learns(mq2008: GradedLists, monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch, images, mq2008)
    rows = images.run(Setting(quick=True)).summary
    value = {(row["method"], row["comparisons"]): row["NDCG@10"] for row in rows}
    for method in images.METHODS:
        assert value[method, 800] > value[method, 50] - 0.02
    svm = [row for row in rows if row["method"] == "pairs: SVM"]
    assert all(row["above SVM"] == row["lower"] == 0 for row in svm)


def test_the_full_set_is_read_from_its_fold(tmp_path: Path) -> None:
    fold = tmp_path / "MSLR-WEB10K" / "Fold1"
    fold.mkdir(parents=True)
    for number, name in enumerate(("train", "vali", "test")):
        lines = [
            f"{row % 3} qid:{10 * number + query} 1:{row} 3:{query}\n" for query in (7, 3) for row in range(20 + number)
        ]
        (fold / f"{name}.txt").write_text("".join(lines) + "1 qid:99 1:5\n")  # a query with one document is left out
    lists = read_graded("mslr", tmp_path / "MSLR-WEB10K")
    assert lists.size.tolist() == [20, 20, 21, 21, 22, 22]
    assert lists.X.shape == (126, 3)
    np.testing.assert_array_equal(lists.relevance[:20], np.arange(20) % 3)
