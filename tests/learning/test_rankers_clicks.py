"""Click logs end to end: sessions, cascade structure, ERR or NDCG surrogate, scorer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import concordant as cc
from concordant.learning.features.matrix import Features
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosted import BoostedRanker, regressed
from concordant.learning.rankers.columns import WholeColumns
from concordant.learning.rankers.disagreement import BetweenLists, Disagreement
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.gate import edge_scorer, fitted
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.regressors import fit_regressor
from concordant.learning.rankers.target import Judges, Target, estimate
from concordant.learning.rankers.validation import learning_rows
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.metrics.err import err
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.preferences.splits import folds
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.ranked_lists import examinations, examined_only
from concordant.ranking.structures import STRUCTURES

SCORERS = (
    EdgeRanker("err-pairwise", structure="cascade"),
    EdgeRanker("err-pairwise"),
    AggregationRanker("cascade", gain="identity", order="all"),
    AggregationRanker("cascade", gain="identity", normalise=False),
    AggregationRanker("cascade", gain="auto", order=[20, "all"]),
)


def cascade_log(
    query: np.ndarray, chance: np.ndarray, place: np.ndarray, sessions: int, draw: np.random.Generator
) -> Preferences:
    """Every query is shown ``sessions`` times in the order of ``place``; the first item that satisfies is clicked."""
    columns: dict[str, list] = {name: [] for name in ("query", "session", "position", "item", "clicked")}
    number = 0
    for q in np.unique(query):
        rows = np.flatnonzero(query == q)
        rows = rows[np.argsort(place[rows])]
        for _ in range(sessions):
            satisfied = draw.random(len(rows)) < chance[rows]
            first = satisfied.argmax() if satisfied.any() else -1
            columns["query"] += [q] * len(rows)
            columns["session"] += [number] * len(rows)
            columns["position"] += list(range(1, len(rows) + 1))
            columns["item"] += rows.tolist()
            columns["clicked"] += (np.arange(len(rows)) == first).astype(int).tolist()
            number += 1
    return Preferences.from_selections(**columns)


def known_truth(sessions: int = 60) -> tuple[Features, Preferences, np.ndarray]:
    """Relevance is one feature; the list is shown in the order of another one, which has nothing to do with it."""
    draw = np.random.default_rng(7)
    query = np.repeat(np.arange(40), 8)
    relevance, shown_by = draw.normal(size=(2, len(query)))
    chance = 1 / (1 + np.exp(1.5 - 1.5 * relevance))
    prefs = cascade_log(query, chance, -shown_by, sessions, draw)
    features = Features.of(
        np.column_stack([relevance, shown_by]), np.arange(len(query)), query, ["relevance", "shown by"]
    )
    return features, prefs, chance


FEATURES, PREFS, CHANCE = known_truth()


@pytest.mark.parametrize("ranker", SCORERS, ids=lambda r: f"{type(r).__name__}")
def test_the_scorer_learns_relevance_and_not_the_order_shown(ranker) -> None:
    ranker.fit(FEATURES, PREFS)
    relevance, shown_by = ranker.coef_standardised_
    assert relevance > 8 * abs(shown_by)
    assert ranker.status_["structure"] == "cascade"
    said = [note for note in ranker.status_["notes"] if "no list has more than one click: they are read by" in note]
    assert [note.numbers["name"] for note in said] == ["cascade"] * (ranker.structure is None)
    value = err(ranker.predict(FEATURES), CHANCE, FEATURES.query, at=None, gain=lambda p: p)
    best = err(CHANCE, CHANCE, FEATURES.query, at=None, gain=lambda p: p)
    assert value.mean() > 0.99 * best.mean()


def test_click_rates_do_learn_the_order_shown() -> None:
    """What the cascade corrects: clicks over impressions, regressed on the same features."""
    batch = Batch.whole(PREFS)
    clicks, _ = examinations(batch)
    theta = np.linalg.lstsq(np.column_stack([FEATURES.X, np.ones(len(clicks))]), clicks / 60, rcond=None)[0]
    assert theta[1] > 0.4 * theta[0]


def test_edges_within_lists_speak_against_the_order_shown_and_it_is_said() -> None:
    ranker = EdgeRanker().fit(FEATURES, PREFS)
    assert ranker.coef_standardised_[1] < -abs(ranker.coef_standardised_[0])
    assert "pairs of clicks" in [note.code for note in ranker.status_["notes"]]
    assert "log-odds reads a click" in " ".join(
        AggregationRanker("log-odds", order=5).fit(FEATURES, PREFS).status_["notes"]
    )


def test_edges_between_lists_by_brute_force() -> None:
    draw = np.random.default_rng(3)
    query = np.repeat(np.arange(3), 5)
    prefs = cascade_log(query, draw.random(15) * 0.6, draw.random(15), 6, draw)
    scores = draw.normal(size=15).round(1)
    judge = Disagreement(prefs)
    sessions = defaultdict(list)
    for j in range(prefs.distinct):
        entries = slice(prefs.list_start[j], prefs.list_start[j + 1])
        items = [prefs.items[i] for i in prefs.list_item[entries]]
        clicked = np.flatnonzero(prefs.list_value[entries])
        last = clicked[0] if len(clicked) else len(items)
        click = items[last] if len(clicked) else None
        sessions[int(prefs.query[j])] += [(click, items[:last])] * int(prefs.count[j])
    for q, lists in sessions.items():
        wrong = total = 0.0
        for (click, _), (_, passed) in permutations(lists, 2):
            for other in passed if click is not None else ():
                if other != click:
                    total += 1
                    wrong += 0.5 * (scores[other] == scores[click]) + (scores[other] > scores[click])
        assert judge.rates(scores)[q] == pytest.approx(wrong / total)


def test_edges_between_lists_are_fair_to_the_order_shown() -> None:
    """A law: whatever the order, j stands over l as p_j(1 − p_l) to p_l(1 − p_j); within lists it would be 1 to 0."""
    draw = np.random.default_rng(5)
    chance = np.array([0.5, 0.3])
    for place in ([0, 1], [1, 0]):
        prefs = cascade_log(np.zeros(2, np.int64), chance, np.array(place), 20_000, draw)
        judge = Disagreement(prefs)
        right = 0.5 * 0.7 / (0.5 * 0.7 + 0.3 * 0.5)
        assert judge.rates(np.array([1.0, 0.0]))[0] == pytest.approx(1 - right, abs=0.01)
    once = Preferences.from_selections(["q"] * 2, [1, 1], [1, 2], ["a", "b"], [0, 1])
    assert np.isnan(Disagreement(once).loss(np.array([0.0, 1.0])))


def sogou(folder: Path) -> Preferences:
    log: dict[str, list[int]] = {name: [] for name in ("query", "session", "position", "item", "clicked")}
    for session, line in enumerate((folder / "train_data").read_text(encoding="utf-8").splitlines()):
        query, items, clicks = line.split("\t")[:3]
        for position, (item, click) in enumerate(zip(items.split(), clicks.split(), strict=True), 1):
            for name, value in zip(log, (query, session, position, item, click), strict=True):
                log[name].append(int(value))
    return Preferences.from_selections(**log, clicks="first")


def addresses(folder: Path) -> dict[int, tuple[str, list[float]]]:
    """Site of each result and what its address says: depth, whether it is a home page or has a query, length."""
    found = {}
    for line in (folder / "url_id").read_bytes().decode("latin-1").splitlines():
        address, _, number = line.rpartition("\t")
        host, _, path = address.split("://", 1)[-1].partition("/")
        parts = host.split(".")
        facts = [path.count("/"), float(not path), float("?" in path), np.log(len(address))]
        found[int(number)] = ".".join(parts[-2:]), facts
    return found


def site_features(prefs: Preferences, train: Preferences, where: dict[int, tuple[str, list[float]]]) -> Features:
    """How often a site's results were clicked when examined, in other queries of the training part; no positions."""
    batch = Batch.whole(train)
    all_of: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    own: dict[tuple[int, str], np.ndarray] = defaultdict(lambda: np.zeros(2))
    for q, i, *counts in zip(batch.query[batch.owner], batch.item, *examinations(batch), strict=True):
        site = where[train.items[i]][0]
        all_of[site] += counts
        own[train.queries[q], site] += counts
    rate = sum(c[0] for c in all_of.values()) / sum(c[1] for c in all_of.values())
    start, item = prefs.members
    query = np.repeat(np.arange(len(prefs.queries)), np.diff(start))
    rows = []
    for q, i in zip(query, item, strict=True):
        site, facts = where[prefs.items[i]]
        clicks, seen = all_of[site] - own[prefs.queries[q], site]
        rows.append([np.log((clicks + 5 * rate) / (seen + 5)), np.log1p(seen), *facts])
    names = ["site clicked", "site seen", "depth", "home page", "dynamic", "length"]
    return Features.of(np.array(rows), prefs.items.take(item), prefs.queries.take(query), names)


def test_real_clicks_from_sessions_to_a_scorer_of_unseen_queries(shared_data) -> None:
    folder = shared_data("clicks_sogou_clickmodel_wc")
    prefs, where = sogou(folder), addresses(folder)
    part = np.random.default_rng(0).integers(3, size=len(prefs.queries))
    rankers = (EdgeRanker("err-pairwise", structure="cascade"), AggregationRanker("cascade", order=3, gain="identity"))
    rates: list[list[np.ndarray]] = [[], []]
    for fold in range(3):
        queries = np.array(prefs.queries.tolist())
        train, test = prefs.select(queries[part != fold].tolist()), prefs.select(queries[part == fold].tolist())
        seen, unseen = site_features(train, train, where), site_features(test, train, where)
        for found, ranker in zip(rates, rankers, strict=True):
            scores = ranker.fit(seen, train).predict(unseen)  # rows stand as the nodes do
            found.append(Disagreement(test).rates(scores))
            told = examinations(Batch.whole(test))[1] > 0  # what nobody examined judges nobody
            chance = STRUCTURES["cascade"].function(Batch.whole(test)).value[told]
            query, clicked = test.member_groups.owner[told], chance > 0
            of = [err(scores[told], chance, query, gain=lambda s: s, ties=ties) for ties in ("best", "worst")]
            some = np.bincount(query, clicked) > 0
            assert ranker.score(unseen, test) == pytest.approx(
                np.average(np.mean(of, 0), weights=test.judgments * some)
            )
    for found in rates:
        judged = np.concatenate(found)
        judged = judged[np.isfinite(judged)]
        assert len(judged) > 300
        assert judged.mean() + 2 * judged.std(ddof=1) / np.sqrt(len(judged)) < 0.5


def test_items_that_nobody_examined_are_not_learned_from() -> None:
    """Their features may change places: the same scorer, from all rankers and from rows that were named by hand."""
    draw = np.random.default_rng(2)
    query = np.repeat(np.arange(12), 20)
    chance = draw.uniform(0.2, 0.6, len(query))
    prefs = cascade_log(query, chance, draw.random(len(query)), 25, draw)
    X = np.column_stack([chance + draw.normal(scale=0.1, size=len(query)), draw.normal(size=len(query))])
    shown = Batch.whole(prefs)
    unseen = shown.item[examinations(shown)[1] == 0]
    assert len(unseen) > 50
    other = X.copy()
    other[unseen] = X[unseen[::-1]]
    for ranker in (AggregationRanker("cascade"), EdgeRanker("err-pairwise"), AggregationRanker()):
        one, two = (clone(ranker).fit(Features.of(Z, np.arange(len(X)), query), prefs) for Z in (X, other))
        assert one.coef_ == pytest.approx(two.coef_, rel=1e-9)
        notes = [note for note in one.status_["notes"] if note.code == "rows without judgment"]
        assert notes[0].numbers["rows"] == len(unseen) and "never examined" in notes[0]
    trees = [
        BoostedRanker(rounds=8, leaf_rows=5).fit(Features.of(Z, np.arange(len(X)), query), prefs) for Z in (X, other)
    ]
    assert (
        trees[0].predict(X) == pytest.approx(trees[1].predict(X), rel=1e-9)
        and trees[0].status_["stopped"][0]["of"] == 8
    )
    named = Judged.of(prefs, item=np.arange(len(X)), query=query)
    assert clone(ranker).fit(X, named).coef_ == pytest.approx(one.coef_, rel=1e-12)


def test_trees_of_a_part_have_no_gradient_at_what_it_leaves_unexamined() -> None:
    draw = np.random.default_rng(5)
    groups, unknown = Ragged.of_sizes(np.array([6, 4, 5])), draw.random(15) < 0.3
    Z, target, weight = draw.normal(size=(15, 2)), draw.normal(size=15), np.array([0.2, 0.5, 0.3])
    other = np.where(unknown[:, None], 7.0, Z), np.where(unknown, -3.0, target)
    one, two = (regressed("gain-regression", *given, groups, weight, unknown) for given in ((Z, target), other))
    assert unknown.sum() > 3 and one.theta == pytest.approx(two.theta, rel=1e-12)
    scores = draw.normal(size=15)
    slope, curvature = one.slopes(scores)
    assert (slope[unknown] == 0).all() and (curvature[unknown] == 0).all()
    assert slope == pytest.approx(two.slopes(scores)[0]) and groups.sums(slope) == pytest.approx(0, abs=1e-12)


def scarce_log() -> tuple[Features, Preferences, np.ndarray]:
    """Twelve queries of twenty results, 25 lists each: in a few of the lists most were not examined."""
    draw = np.random.default_rng(2)
    query = np.repeat(np.arange(12), 20)
    chance = draw.uniform(0.2, 0.6, len(query))
    prefs = cascade_log(query, chance, draw.random(len(query)), 25, draw)
    X = np.column_stack([chance + draw.normal(scale=0.1, size=len(query)), draw.normal(size=len(query))])
    return Features.of(X, np.arange(len(X)), query, ["a", "b"]), prefs, examinations(Batch.whole(prefs))[1]


def test_targets_of_subsets_are_means_over_those_in_which_an_item_was_examined() -> None:
    """By hand: each of the 32 subsets of k lists, its clicks over examinations where there are any."""
    prefs = scarce_log()[1]
    for k in (1, 4):
        made = mean_targets(prefs, "cascade", order=k, gain="identity", normalise=False, partition=False)
        drawn = Batch.subsets(prefs, k, 32, partition=False)
        clicks, seen = (x.reshape(12, 32, -1) if x.size == 12 * 32 * 20 else None for x in examinations(drawn))
        times = (seen > 0).sum(axis=1).ravel()
        rate = np.divide(clicks, seen, out=np.zeros(clicks.shape), where=seen > 0).sum(axis=1).ravel()
        assert (made.unknown == (times == 0)).all() and made.unknown.any()
        known = ~made.unknown
        assert made.value[known] == pytest.approx(rate[known] / times[known])
        assert (made.sizes == known.reshape(12, -1).sum(axis=1)).all()
        assert made.centred()[made.unknown] == pytest.approx(0.0, abs=1e-12)
        assert any(note.code == "never examined" for note in made.notes)


@pytest.mark.parametrize("order", [1, "all"])
def test_a_fit_is_least_squares_on_examined_items_alone(order) -> None:
    features, prefs, _ = scarce_log()
    ranker = AggregationRanker("cascade", order=order, gain="identity", normalise=False, ridge=0.0).fit(features, prefs)
    judged = examined_only(prefs)
    made = mean_targets(judged, "cascade", order=order, gain="identity", normalise=False)
    rows = np.array([int(str(item)) for item in judged.items], np.int64)[judged.members[1]]
    known = np.ones(len(rows), bool) if made.unknown is None else ~made.unknown
    rows, y, query = rows[known], made.value[known], judged.member_groups.owner[known]
    Z = features.X[rows]
    Z, y = (x - (np.array([x[query == q].mean(axis=0) for q in range(12)])[query]) for x in (Z, y))
    weight = np.sqrt(1.0 / np.bincount(query)[query])
    theta = np.linalg.lstsq(Z * weight[:, None], y * weight, rcond=None)[0]
    assert ranker.coef_ == pytest.approx(theta, rel=1e-8)


def test_folds_the_gate_and_regressors_take_no_item_that_their_part_leaves_unexamined() -> None:
    """Features of what a part of the lists leaves unexamined may be anything: what that part teaches is the same."""
    features, prefs, _ = scarce_log()
    training = learning_rows(features, prefs, "raise", structure="cascade")
    normaliser = Normaliser(standardise=False)
    recipe, plan = Recipe({}, 32, None, 0), Plan("cascade", "all", "identity", False)
    train, held = next(iter(folds(training.prefs, 5, seed=1)))
    unseen = examinations(Batch.whole(held))[1] == 0
    assert unseen.sum() > 20 and len(train) > len(held)
    other = features.X.copy()
    other[training.row[unseen]] = other[training.row[unseen]][::-1] + 100.0

    def taught(X: np.ndarray) -> list[np.ndarray]:
        columns = WholeColumns(X, normaliser.fit(X), Normaliser.apply)
        part = replace(training, features=replace(training.features, X=X))
        targets = recipe.targets([plan], held)[0]
        trees = fit_regressor(
            DecisionTreeRegressor(max_depth=3), X[part.row], targets.centred(), targets.spread(part.weight)
        )[0]
        return [
            fitted(part, columns, targets, 0.001, "query"),
            edge_scorer(replace(part, judged=held), columns, "err-pairwise", 0.001, 0),
            trees.predict(features.X),
        ]

    for one, two in zip(taught(features.X), taught(other), strict=True):
        assert one == pytest.approx(two, rel=1e-7)


def test_held_out_lists_judge_examined_items_alone() -> None:
    _, prefs, seen = scarce_log()
    part = next(iter(folds(prefs, 5, seed=1)))[1]
    unseen = examinations(Batch.whole(part))[1] == 0
    draw = np.random.default_rng(0)
    scores = draw.normal(size=len(seen))
    other = np.where(unseen, draw.normal(size=len(seen)), scores)
    for name in ("err", "ndcg@10", "precision@3"):
        judge = Target.of(name, "selections").judge(part)
        assert judge.loss(scores) == judge.loss(other)
        assert judge.loss(scores) != judge.loss(-scores)


def test_parts_are_read_and_judged_as_all_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a log with a few lists of several clicks has none of them: the log's model reads it all the same."""
    draw = np.random.default_rng(5)
    rows = [(session, place, int(item)) for session in range(200) for place, item in enumerate(draw.permutation(6), 1)]
    session, position, item = (list(column) for column in zip(*rows, strict=True))
    last = {one: {int(draw.integers(1, 5))} for one in range(200)}
    last[7] = {1, 3}  # the only list of several clicks
    clicked = [int(place in last[one]) for one, place, _ in rows]
    prefs = Preferences.from_selections(["q"] * len(rows), session, position, item, clicked)
    assert usual_clicks(prefs) == "dependent-click"
    parts = [held for _, held in folds(prefs, 5, seed=1)]
    assert sorted(map(usual_clicks, parts)) == ["cascade"] * 4 + ["dependent-click"]
    scores = draw.normal(size=6)
    target = Target.of(None, "selections")
    for named in ("dependent-click", "position-based"):
        judge = Judges(target.reading(prefs, named), parts, None)
        found = [one.gains for one in (*judge.folds, *(one for each in judge.parts for one in each))]
        for value, part in zip(found, parts, strict=False):
            assert value.tolist() == STRUCTURES[named](Batch.whole(part)).value.tolist()
        assert len(found) == 55 and judge.loss([scores] * 5) > 0
    usual, given = (target.reading(prefs, *how) for how in ((None,), ("position-based", {"propensities": [1.0]})))
    assert usual.clicks == given.clicks == "dependent-click" and str(usual) == str(target) == "err"
    assert Target.of("pairwise", "selections").reading(prefs).clicks == ""
    alone, asked = next(part for part in parts if usual_clicks(part) == "cascade"), []
    monkeypatch.setattr(Target, "structure_for", lambda self, _: asked.append(self.clicks) or "dependent-click")
    estimate(usual, alone, scores)  # as evaluate, of what is left of a log
    assert set(asked) == {"dependent-click"}


def test_streamed_features_fit_as_those_in_memory(tmp_path) -> None:
    features, prefs, _ = scarce_log()
    table = {"query": features.query, "item": features.item, "a": features.X[:, 0], "b": features.X[:, 1]}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "f.parquet")
    ranker = AggregationRanker("cascade", order=1, gain="identity")
    streamed = clone(ranker).fit(FeatureFile(tmp_path / "f.parquet"), prefs)
    assert streamed.coef_ == pytest.approx(clone(ranker).fit(features, prefs).coef_, rel=1e-9)
    chosen = AggregationRanker("cascade", order=[1, "all"], gain="identity")
    one, two = clone(chosen).fit(FeatureFile(tmp_path / "f.parquet"), prefs), clone(chosen).fit(features, prefs)
    assert one.cv_["loss"] == pytest.approx(two.cv_["loss"], rel=1e-9)


def test_an_audit_says_nothing_of_items_that_nobody_examined() -> None:
    _, prefs, seen = scarce_log()
    for more in ({}, {"order": 2, "subsets": 3}):
        found, cut = (cc.audit(log, replicates=20, ask=0, **more) for log in (prefs, examined_only(prefs)))
        assert found.surrogates.equals(cut.surrogates) and found.orders.equals(cut.orders)
        assert found.queries["items"].to_pylist() == (seen.reshape(12, -1) > 0).sum(axis=1).tolist()
        assert [note.numbers["unseen"] for note in found.notes if note.code == "never examined"] == [(seen == 0).sum()]


def two_features(draw: np.random.Generator) -> tuple[Features, np.ndarray, np.ndarray]:
    """Of 8 items of each of 30 queries: the features, chances by the one, and the other, by which a log was shown."""
    relevance, shown_by = draw.normal(size=(2, 30, 8))
    X = np.column_stack([relevance.ravel(), shown_by.ravel()])
    features = Features.of(X, np.tile(np.arange(8), 30), np.repeat(np.arange(30), 8), ["relevance", "shown by"])
    return features, 1 / (1 + np.exp(1.0 - 1.5 * relevance)), shown_by


def test_lists_of_several_clicks_are_learned_from_by_what_the_log_tells() -> None:
    """Clicks of the position-based model, a tenth of the lists shuffled; the same, never shuffled: dependent clicks."""
    draw = np.random.default_rng(11)
    features, chance, shown_by = two_features(draw)
    for share, name in ((0.1, "position-based"), (0.0, "dependent-click")):
        query = np.repeat(np.arange(30), 200)
        order = np.argsort(-shown_by, axis=1)[query]
        mixed = draw.random(len(order)) < share
        order[mixed] = draw.permuted(order[mixed], axis=1)
        clicked = draw.random(order.shape) < chance[query[:, None], order] / np.arange(1, 9)
        row = np.repeat(np.arange(len(order)), 8)
        log = (query[row], row, np.tile(np.arange(1, 9), len(order)), order.ravel(), clicked.ravel().astype(int))
        ranker = AggregationRanker().fit(features, Preferences.from_selections(*log))
        notes = [str(note) for note in ranker.status_["notes"] if note.code == "several clicks"]
        assert len(notes) == 1 and name in notes[0]
        if share:
            assert ranker.coef_standardised_[0] > 8 * abs(ranker.coef_standardised_[1])
        EdgeRanker("err-pairwise").fit(features, Preferences.from_selections(*log))


def test_rows_of_single_items_are_learned_from_by_their_positions() -> None:
    """The ranker that made the log puts what it likes on top; nothing named: attractions, and not rates of clicks."""
    draw = np.random.default_rng(12)
    features, chance, shown_by = two_features(draw)
    number = 40_000
    query, item = draw.integers(0, 30, number), draw.integers(0, 8, number)
    place = np.argsort(np.argsort(-shown_by, axis=1), axis=1)[query, item]
    place = np.where(draw.random(number) < 0.2, draw.integers(0, 8, number), place)
    clicked = draw.random(number) < chance[query, item] / (1 + place)
    log = Preferences.from_selections(query, np.arange(number), place + 1, item, clicked.astype(int))
    weights = {}
    for name in (None, "cascade", "position-based"):
        ranker = AggregationRanker(name, order="all").fit(features, log)
        weights[name] = ranker.coef_standardised_[1] / ranker.coef_standardised_[0]
        said = [str(note) for note in ranker.status_["notes"] if note.code == "gaps"]
        assert len(said) == (name is None)
        assert all("they are read by position-based" in note for note in said)
    assert abs(weights[None]) < 0.1 < 0.3 < weights["cascade"]
    assert weights[None] == pytest.approx(weights["position-based"], abs=0.05)
    even = Preferences.from_selections(query, np.arange(number), place + 1, item, np.zeros(number, int))
    ranker = AggregationRanker(order="all", ridge=1.0).fit(features, even)
    (note,) = [str(note) for note in ranker.status_["notes"] if note.code == "gaps"]
    assert "read by cascade, for clicked items do not link the positions" in note
    place = draw.integers(0, 8, number)
    alike = (draw.random(number) < chance[query, item]).astype(int)
    ranker = AggregationRanker(order="all", ridge=1.0)
    ranker.fit(features, Preferences.from_selections(query, np.arange(number), place + 1, item, alike))
    (note,) = [str(note) for note in ranker.status_["notes"] if note.code == "gaps"]
    assert "read by cascade, which explains the clicks as well as position-based" in note


@pytest.mark.parametrize("seed", range(8))
def test_clicks_between_lists_follow_from_totals(seed: int) -> None:
    """Without the pairs, and in parts: strength and contradiction are those of the pairs of ``Disagreement``."""
    draw = np.random.default_rng(seed)
    rows = [
        (k, r + 1, int(i), int(draw.random() < 0.4)) for k in range(30) for r, i in enumerate(draw.permutation(5)[:3])
    ]
    prefs = Preferences.from_selections(None, *[[row[at] for row in rows] for at in range(4)])
    scores = draw.integers(0, 4, (len(prefs.items), 3)).astype(float)
    known = np.column_stack([prefs.member_groups.owner, prefs.members[1]]).astype(np.int64)
    halves = [np.arange(at, prefs.distinct, 2) for at in (0, 1)]
    one, other = (BetweenLists.of(keep(prefs, half, prefs.count[half], known), scores) for half in halves)
    total, wrong = (one + other).strength(scores)
    judge = Disagreement(prefs)
    assert total == judge.total[0]
    assert [part / total for part in wrong] == [judge.rates(np.ascontiguousarray(each))[0] for each in scores.T]
