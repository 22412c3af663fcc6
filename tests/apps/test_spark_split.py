"""One query that no task can hold is divided among tasks by its pairs, and its scores are those of memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import frames, splitting
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_held import objects
    from concordant.apps.spark.ranking import ranked, ranking_of


def votes(items: int, rows: int, *, alone: int = 0, groups: int = 1, ties: float = 0.2) -> dict[str, Any]:
    """Votes of one query in some groups, beside a small query; the last items only ever win, in a row."""
    rng = np.random.default_rng(items)
    score = rng.normal(size=items)
    one = rng.integers(0, items, rows)
    other = (one + groups * rng.integers(1, items // groups, rows)) % items
    wins = rng.random(rows) < 1 / (1 + np.exp(score[other] - score[one]))
    first, second = np.where(wins, one, other), np.where(wins, other, one)
    first = np.concatenate([first, items + np.arange(alone), [3, 4, 5]])
    second = np.concatenate([second, np.append(0, items + np.arange(alone))[:alone], [4, 3, 3]])
    tie = np.append(rng.random(rows) < ties, np.zeros(alone + 3, bool))
    query = ["large"] * (rows + alone) + ["small"] * 3
    named = ([f"i{code}" for code in side] for side in (first, second))
    log = dict(zip(("query", "left", "right"), (query, *named), strict=True))
    return log | {"outcome": np.where(tie, "tie", "left").tolist()}


CASES: list[tuple[Any, dict[str, Any]]] = [
    (votes(40, 900), {}),
    (votes(30, 45, alone=3, ties=0.0), {"min_judgments": 3}),  # chains, and items that only win
    (votes(24, 400, groups=2, alone=1), {"prior": 1.0}),
]


def divided(log: dict[str, Any], shares: int) -> Any:
    """Shares of a query as tasks have them, without Spark."""

    class Here(splitting.Divided):
        def sums(self, work: Any) -> Any:
            self.passes += 1
            return sum(map(work, self.frame), splitting.Sums())  # type: ignore[call-overload]

        def change(self, change: Any) -> None:
            self.frame = [pickle.loads(pickle.dumps(change(share))) for share in self.frame]

    rows: dict[int, list[tuple[Any, ...]]] = {}
    for row in zip(*log.values(), strict=True):
        if row[0] == "large":
            rows.setdefault(sum(map(ord, row[1] + row[2])) % shares, []).append(row)
    parts = [cc.read(dict(zip(log, zip(*some, strict=True), strict=True))) for some in rows.values()]
    found = Here([splitting.share_of(part) for part in parts], shares, 2)  # type: ignore[arg-type]
    assert found.look()
    return found


@pytest.mark.parametrize(("log", "options"), CASES)
@pytest.mark.parametrize("shares", [1, 7, 60])
def test_scores_and_what_connects_are_those_of_memory(log: Any, options: Any, shares: int) -> None:
    prefs = cc.read(log).select(["large"])
    found = divided(log, shares)
    batch = Batch.whole(prefs)
    links = connectivity(batch.graphs)
    held = prefs.items.take(batch.item).to_pylist()
    assert found.items.tolist() == held
    for name in ("component", "won", "lost", "open_above", "open_below"):
        np.testing.assert_array_equal(getattr(found.links, name), getattr(links, name))
    assert len(np.unique(found.links.block)) == len(np.unique(links.block))
    assert len(np.unique(np.column_stack([found.links.block, links.block]), axis=0)) == len(np.unique(links.block))
    prior = options.get("prior", 0.01)
    fitted = found.fitted(prior=prior)
    np.testing.assert_allclose(fitted.score, bradley_terry(batch, prior=prior).value, rtol=0, atol=1e-9)
    assert not fitted.stopped
    assert found.touched.sum() == 2 * len(prefs)


def test_the_ranking_of_memory(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log, options = votes(12, 150, alone=1, ties=0.0), {"min_judgments": 3}
    monkeypatch.setattr(splitting, "SHARE", 60)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    judged = JudgedQueries.of(frame, spark, most=50)
    assert judged.large == ("large",)
    monkeypatch.setattr(frames, "HERE", 10)  # the driver would not take it
    made = ranked(judged, "bradley-terry", interval="none", **options)
    ours = ranking_of(made, judged, "bradley-terry", "none", 0.95)
    theirs = cc.rank(cc.read(log), interval="none", **options)
    for name in ("query", "component", "item", "rank", "judgments", "flag", "provisional"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    np.testing.assert_allclose(ours.score, theirs.score, rtol=0, atol=1e-9)
    assert ours.converged
    (said,) = [note for note in ours.notes if "divided among tasks by their pairs" in note]
    assert "of 13 items, divided among tasks by their pairs (2 shares" in said
    made = cs.targets(frame, structure="bradley-terry", order="all", most=50, session=spark).toArrow()
    made = made.sort_by([("query", "ascending"), ("item", "ascending")])
    known = mean_targets(cc.read(log), "bradley-terry")
    np.testing.assert_allclose(made["target"].to_numpy(), known.centred(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        made["weight"].to_numpy(), known.spread(known.weight) / known.spread(known.weight).mean()
    )


@pytest.mark.parametrize("query", [True, False])
def test_rows_of_a_pair_come_to_one_share_and_pairs_to_many(spark: Any, query: bool) -> None:
    log = votes(20, 300)
    log = log if query else {name: values for name, values in log.items() if name != "query"}
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=30)
    frame, shares, _ = splitting.by_pairs(judged, judged.large[0], splitting.share_of)
    found = [share for _, share in objects(iter(frame.toArrow().to_batches()))]
    frame.unpersist()
    prefs = cc.read(log).select(["large"]) if query else cc.read(log)
    assert 5 < len(found) <= shares
    assert sum(share.judgments for share in found) == len(prefs)
    pairs = [{*zip(*(one.items.take(end) for end in (one.first, one.second)), strict=True)} for one in found]
    assert sum(map(len, pairs)) == len(set().union(*pairs)) == len(Batch.whole(prefs).graphs.first)


def test_what_is_not_divided(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = votes(20, 150)
    judged = JudgedQueries.of(log, spark, most=20)
    monkeypatch.setattr(frames, "HERE", 10)
    for structure, asked in (("log-odds", {}), ("bradley-terry", {"ties": "davidson"})):
        with pytest.raises(cc.UsageError, match=r"'large' has \d+ distinct judgments.*structure='bradley-terry'"):
            cs.rank(judged, structure, interval="none", **asked)
    with pytest.raises(cc.UsageError, match="no intervals are asked for"):
        cs.rank(judged)
    with pytest.raises(cc.NoMaximumLikelihood, match=r"query 'large' does not exist: no chain of wins limits 4 items"):
        divided(votes(20, 200, alone=4, ties=0.0), 5).fitted(prior=0)
