"""On Spark the default fit is that of memory: prior, what held-out judgments choose, gate, notes, whatever the cut."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant.errors import InputError, UsageError
from concordant.io.read import read
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.closed_forms import copeland
from running import exit_status
from spark_session import spark_tests

pytestmark = spark_tests

ITEMS = 5
Table = dict[str, Any]


def votes(queries: int, rows: int, *, integers: bool = False, **more: Any) -> tuple[Table, Table]:
    """Comparisons whose winners follow three features and an effect of each item; the fourth feature is constant."""
    rng = np.random.default_rng(queries)
    X = rng.normal(size=(queries, ITEMS, 3))
    score = X @ [1.5, -1.0, 0.5] + rng.normal(size=(queries, ITEMS))
    query, one = rng.integers(0, queries, rows), rng.integers(0, ITEMS, rows)
    other = (one + rng.integers(1, ITEMS, rows)) % ITEMS
    swap = rng.random(rows) > 1 / (1 + np.exp(score[query, other] - score[query, one]))
    q, i = ("", "") if integers else ("q", "i")
    named: Callable[[str, Any], list[Any]] = lambda start, codes: [f"{start}{c}" if start else int(c) for c in codes]  # noqa: E731
    log = {"query": named(q, query), "winner": named(i, np.where(swap, other, one))}
    log["loser"] = named(i, np.where(swap, one, other))
    if "cluster" in more:
        log["annotator"] = named("a", rng.integers(0, more["cluster"], rows))
    if "tie" in more:
        log["tie"] = (rng.random(rows) < more["tie"]).tolist()
    at, item = (each.ravel() for each in np.meshgrid(np.arange(queries), np.arange(ITEMS), indexing="ij"))
    features: Table = {"query": named(q, at), "item": named(i, item), "constant": np.full(len(at), 0.1)}
    return log, features | {name: X[:, :, k].ravel() for k, name in enumerate("xyz")}


def of_items(given: tuple[Table, Table]) -> tuple[Table, Table]:
    """The same features for every query."""
    return given[0], {name: values[:ITEMS] for name, values in given[1].items() if name != "query"}


def clicks(several: bool = False) -> tuple[Table, Table]:
    """Lists with at most one click, or with several of some of them."""
    rng = np.random.default_rng(2)
    log: Table = {name: [] for name in ("query", "session", "position", "item", "clicked")}
    for session in range(200):
        shown, click = rng.permutation(ITEMS)[: rng.integers(2, ITEMS + 1)], int(rng.integers(-1, 3))
        for place, item in enumerate(shown):
            again = several and rng.random() < (0.1 + 0.15 * item) / (1 + place)
            row = (f"q{session % 6}", session, place + 1, f"i{item}", int(place == click or again))
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
    return log, votes(6, 10)[1]


CASES: dict[str, tuple[tuple[Table, Table], dict[str, Any], dict[str, Any]]] = {
    "default": (votes(16, 1500), {}, {}),
    "clusters": (votes(4, 400, cluster=30), {}, {"columns": {"cluster": "annotator"}}),
    "clusters by lists": (votes(4, 400, cluster=60), {"target": "err"}, {"columns": {"cluster": "annotator"}}),
    "items": (
        of_items(votes(5, 500, integers=True, tie=0.2)),
        {"ridge": [0.01, 1.0], "folds": 2, "target": "ndcg@3"},
        {},
    ),
    "a function": (
        of_items(votes(5, 500, integers=True, tie=0.2)),
        {"structure": copeland, "order": "all", "ridge": [0.01, 1.0], "folds": 2, "target": "ndcg@3"},
        {},
    ),
    "a function of queries with features of their own": (
        votes(5, 500, integers=True, tie=0.2),
        {"structure": copeland, "order": "all"},
        {},
    ),
    "clicks": (clicks(), {}, {}),
    "several clicks": (clicks(several=True), {"folds": 2}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fit_of_memory(spark: Any, name: str) -> None:
    from concordant.spark import fit

    (log, rows), params, reading = CASES[name]
    plain = AggregationRanker(**params).fit(rows, read(log, **reading))
    frames = (spark.createDataFrame(pa.table(table)).repartition(3) for table in (log, rows))
    most = {"most": 8} if name.startswith("a function") else {}  # queries that have a task each
    ours = fit(*([AggregationRanker(**params)] if params else []), *frames, **reading, **most)
    alone = [note for note in ours.status_["notes"] if "in a task of its own" in note]
    assert bool(alone) == bool(most)
    ours.status_["notes"] = [note for note in ours.status_["notes"] if note not in alone]
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-9, atol=1e-10 * np.abs(plain.coef_).max())
    told, mine = dict(plain.status_), dict(ours.status_)
    for status in (told, mine):
        status.pop("gradient")
    told.pop("choices")  # for a refit in memory
    for theirs, own in zip(told.pop("gate", []), mine.pop("gate", []), strict=True):
        tried, here = theirs.pop("candidates"), own.pop("candidates")
        assert own == theirs
        for other, one in zip(tried, here, strict=True):
            assert one == pytest.approx(other, abs=1e-12)
    assert mine == told
    if hasattr(plain, "cv_"):
        assert ours.cv_.best == plain.cv_.best
        np.testing.assert_allclose(ours.cv_["loss"], plain.cv_["loss"], rtol=1e-12)
    assert ours.to_state()[0].keys() == plain.to_state()[0].keys()


@pytest.mark.usefixtures("spark")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says and prints what the plain command does."""
    log, rows = votes(3, 300)
    for table in (log, rows):
        table["query"] = [f'{query} "ü"\\' for query in table["query"]]  # which JSON writes in another way
    lines = (json.dumps(dict(zip(log, row, strict=True))) for row in zip(*log.values(), strict=True))
    (tmp_path / "votes.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pa.parquet.write_table(pa.table(rows), tmp_path / "items.parquet")
    command = ["fit", str(tmp_path / "votes.jsonl"), "-f", str(tmp_path / "items.parquet"), "-m"]
    said = []
    for more in ([str(tmp_path / "plain")], [str(tmp_path / "ours"), "--engine", "spark"]):
        assert exit_status(*command, *more) == 0
        said.append(capsys.readouterr())
    assert said[0].out == said[1].out
    gate = [line for each in said for line in each.err.splitlines() if line.startswith("note: gate")]
    assert gate[0] == gate[1]


def test_what_is_refused(spark: Any) -> None:
    from concordant.spark import fit

    log, rows = votes(4, 60, cluster=9)
    gone = {name: values[:-1] for name, values in rows.items()}
    with pytest.raises(InputError) as plain:
        AggregationRanker().fit(gone, read(log))
    with pytest.raises(InputError) as ours:
        fit(AggregationRanker(), log, gone, session=spark)
    assert str(ours.value) == str(plain.value)
    with pytest.raises(UsageError, match="there are no features"):
        fit(AggregationRanker(), log, session=spark)


@pytest.mark.parametrize(("few", "alone"), [(1 << 17, False), (0, False), (0, True)])
def test_targets_of_several_clicks(spark: Any, few: int, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the model that all of the log tells, where no task sees all of it and queries are divided."""
    from concordant.apps.spark import learning_clicks
    from concordant.spark import targets

    monkeypatch.setattr(learning_clicks, "FEW", few)  # up to which the driver does it, else passes over all of them
    monkeypatch.setattr(learning_clicks, "KEPT", 4)
    log = clicks(several=True)[0]
    if alone:  # rows of one item each, with the position at which it was shown
        kept = [at for at, place in enumerate(log["position"]) if place <= 3]
        log = {name: [values[at] for at in kept] for name, values in log.items()}
        log["clicked"] = [
            click * (place == 1 or session % 3 == 0)
            for click, place, session in zip(log["clicked"], log["position"], log["session"], strict=True)
        ]
        log["session"] = list(range(len(kept)))
    prefs = read(log)
    model = usual_clicks(prefs)
    assert model == "position-based" or not alone
    given: dict[str, Any] = {"gain": "identity", "normalise": True}
    plain = mean_targets(prefs, model, **given)
    frame = spark.createDataFrame(pa.table(log))
    found = targets(frame, most=130, session=spark).toArrow().sort_by([("query", "ascending"), ("item", "ascending")])
    known = np.ones(len(plain.value), bool) if plain.unknown is None else ~plain.unknown
    np.testing.assert_allclose(found["target"], plain.centred()[known], rtol=0, atol=1e-12)
    items = prefs.items.take(prefs.members[1]).to_pylist()
    assert found["item"].to_pylist() == [item for item, there in zip(items, known, strict=True) if there]


# -- without a session: what tasks do ------------------------------------------------------------------------------
def held_of(log: Table, rows: Table) -> Any:
    """What a task keeps of a bucket, and the matrix."""
    from concordant.apps.spark.learning_held import _Making
    from concordant.learning.features.normalising import Normaliser

    table = pa.table({"query": rows["query"], "item": rows["item"], **{f"x{k}": rows[n] for k, n in enumerate("xyz")}})
    X = np.column_stack([rows[name] for name in "xyz"])
    making = _Making(None, 1 << 30, False, 3, Normaliser().fit(X), True)  # type: ignore[arg-type]
    return making.made(0, read(log), table)


def test_newton_on_sums_finds_the_minimiser() -> None:
    """In one bucket the sums are those of ``fit_edges``, which is given the same ridge."""
    from concordant.apps.spark.learning_chosen import Asked, minimised
    from concordant.apps.spark.learning_held import WHOLE
    from concordant.apps.spark.learning_passes import Dealing

    held = held_of(*votes(6, 400))
    held = Dealing(3, 0, frozenset(["judgments"]), True, {}, np.zeros(0, np.uint64))(held)

    class Here:
        sums = staticmethod(lambda work: work(held))

    asked = {}
    for name in ("ranknet", "difference-graph", "linear", "ndcg-pairwise"):
        for split in (WHOLE, ("judgments", 1)):
            asked[name, split] = Asked(len(held.learned(split)), 0.05, np.zeros(3))
    found = minimised(Here(), asked, 0)  # type: ignore[arg-type]
    for (name, split), theta in found.items():
        part = held.learned(split)
        if name == "ndcg-pairwise":
            continue
        objective = surrogate(name).objective(Batch.whole(part))
        weight = part.judgments / len(part)
        plain = fit_edges(held.Z, objective, ridge=0.05, rows=held.row, weight=weight).theta
        np.testing.assert_allclose(theta, plain, rtol=1e-9)


def test_objects_come_back_from_their_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant.apps.spark import learning_held as kept

    monkeypatch.setattr(kept, "PIECE", 100)
    held = held_of(*votes(3, 50))
    batches = [*kept.pieces(4, held), *kept.pieces(5, None), *kept.pieces(6, "x" * 1000)]
    assert len(batches) > 10
    (bucket, first), other = kept.objects(iter(batches))
    assert (bucket, first.prefs, other) == (4, held.prefs, (6, "x" * 1000))
    np.testing.assert_array_equal(first.Z, held.Z)
    assert pickle.loads(pickle.dumps(first)).prefs == read(votes(3, 50)[0])


def test_sums_add_up_by_name() -> None:
    from concordant.apps.spark.learning_held import Sums

    total = sum([Sums(a=1, b=[2]), Sums(b=[3], c=Sums(d=1)), Sums(c=Sums(d=2))], Sums())
    assert total == {"a": 1, "b": [2, 3], "c": {"d": 3}}


def test_the_surest_from_sums_is_that_of_the_queries() -> None:
    """The error of each difference to the best, computed from its definition."""
    from concordant.learning.rankers.residual_fit import surest

    rng = np.random.default_rng(0)
    for _ in range(20):
        weight = rng.integers(1, 9, 30).astype(float)
        lost = weight[:, None] * (rng.random((30, 1)) + 0.1 * rng.random((30, 4)))
        best = int(lost.sum(axis=0).argmin())
        fine = []
        for place in range(4):
            worse = lost[:, place] - lost[:, best]
            spread = worse - weight * worse.sum() / weight.sum()
            fine.append(worse.sum() <= np.sqrt((spread**2).sum() * 30 / 29))
        apart = lost - lost[:, [-1]]
        sums = apart.sum(axis=0), apart.T @ apart, weight @ apart, float(weight @ weight), float(weight.sum())
        assert surest(*sums, 30) == np.flatnonzero(fine)[-1]


def test_folds_do_not_depend_on_the_bucket() -> None:
    """A query's judgments are dealt by its label: alone, or beside others."""
    from concordant.apps.spark.learning_passes import Dealing

    log, rows = votes(6, 300)
    deal = Dealing(3, 7, frozenset(["judgments"]), False, {}, np.zeros(0, np.uint64))
    whole = deal(held_of(log, rows))
    keep: Callable[[Table], Table] = partial(
        lambda table: {n: [v for v, q in zip(x, table["query"], strict=True) if q == "q2"] for n, x in table.items()}
    )
    alone = deal(held_of(keep(log), keep(rows)))
    for fold in range(3):
        part: Preferences = whole.left_out(("judgments", fold)).select(["q2"])
        assert len(part) == len(alone.left_out(("judgments", fold)))
        assert part.count.tolist() == alone.left_out(("judgments", fold)).count.tolist()


@pytest.mark.parametrize("rows", [1, 2, 101, 200])
def test_medians_are_those_of_memory_to_the_bit(rows: int) -> None:
    from concordant.apps.spark.learning_features import medians_by

    rng = np.random.default_rng(rows)
    X = np.column_stack([rng.normal(size=rows), rng.integers(-2, 2, rows), 1e300 * rng.normal(size=rows) ** 9])
    X = np.column_stack([X, np.exp(30 * rng.normal(size=rows)), np.full(rows, -0.0), np.full(rows, np.nan)])
    X[rng.random(X.shape) < 0.2] = np.nan
    parts = np.array_split(X, 3)
    for log in (False, True):
        found = medians_by(lambda digits: sum(map(digits.counted, parts)), (~np.isnan(X)).sum(axis=0), log=log)
        known = [Normaliser(log=log, missing="median").median(column) for column in X.T]
        np.testing.assert_array_equal(found, known)
