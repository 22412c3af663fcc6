"""One query that no task can hold, by the structures without a likelihood of pairs or lists: as in memory."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.ranking.structures import STRUCTURES
from concordant.ranking.structures import structure as find_structure
from seeds import seed
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import (
        clustered,
        frames,
        interval_methods,
        learning_clicks,
        ranking,
        shares,
        splitting,
        structure_sums,
    )
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.lists_of_log import settled
    from concordant.apps.spark.ranking import ranked, ranking_of
    from concordant.apps.spark.shares import Ballots, TooMuch
    from concordant.apps.spark.structure_sums import of_shares, reading

Log = dict[str, list[Any]]
KINDS = ("comparisons", "weighted", "orders", "choices", "selections", "several clicks", "ratings")
ENTRY = {"orders": "rank", "choices": "chosen", "selections": "clicked", "several clicks": "clicked"}


def drawn(kind: str, number: int, items: int = 9, rows: int = 60) -> Log:
    """A log of one query of some kind; few items win always, some lists are short, rows recur."""
    rng = np.random.default_rng(seed(number))
    score = rng.normal(size=items) * rng.choice([0.5, 3.0])
    if kind in ("comparisons", "weighted"):
        return _compared(rng, score, rows, weighted=kind == "weighted")
    log: Log = {"query": [], "judgment" if kind in ("orders", "ratings") else "session": []}
    named = "rating" if kind == "ratings" else ENTRY[kind]
    for judgment in range(rows):
        held = rng.choice(items, rng.integers(1, min(6, items + 1)), replace=False)
        held = held[np.argsort(-score[held] - rng.gumbel(size=len(held)))]
        for place, (item, value) in enumerate(zip(held.tolist(), _said(rng, kind, len(held)), strict=True)):
            columns = {"query": "large", [*log][1]: judgment, "item": f"i{item}", named: value}
            if kind in ("selections", "several clicks"):
                columns["position"] = place + 1 + 2 * (judgment % 3 == 0 and place > 0)  # some lists have gaps
            for name, one in columns.items():
                log.setdefault(name, []).append(one)
    return log


def _said(rng: np.random.Generator, kind: str, size: int) -> list[Any]:
    if kind == "orders":
        return np.sort(rng.integers(1, size + 1, size)).tolist() if rng.random() < 0.4 else list(range(1, size + 1))
    if kind == "ratings":
        return (rng.integers(0, 5, size) / 2).tolist()
    if kind == "several clicks":
        return (rng.random(size) < 0.4).astype(int).tolist()
    clicked = np.zeros(size, int)
    if kind == "choices" or rng.random() < 0.8:
        clicked[min(rng.geometric(0.5) - 1, size - 1)] = 1
    return clicked.tolist()


def _compared(rng: np.random.Generator, score: Any, rows: int, *, weighted: bool) -> Log:
    items = len(score)
    one = rng.integers(0, items, rows)
    other = (one + rng.integers(1, items, rows)) % items
    chance = 1 / (1 + np.exp(score[other] - score[one]))
    outcome = np.where(rng.random(rows) < 0.2, "tie", np.where(rng.random(rows) < chance, "left", "right"))
    named = [[f"i{code}" for code in side] for side in (one, other)]
    log: Log = {"query": ["large"] * rows, "left": named[0], "right": named[1], "outcome": outcome.tolist()}
    return log | ({"weight": rng.choice([0.25, 0.3, 1.0, 7.0], rows).tolist()} if weighted else {})


def read(log: Log) -> Any:
    """A log, or a part of it; of what rankings leave out nothing is asked."""
    return cc.Preferences.from_orders(*log.values()) if "rank" in log else cc.read(log)


def shared_out(log: Log, number: int, of: Callable[[Any], Any]) -> Any:
    """Shares of a query as tasks have them, without Spark."""

    class Here(splitting.Divided):
        def sums(self, work: Any) -> Any:
            self.passes += 1
            work = pickle.loads(pickle.dumps(work))
            return sum(map(work, self.frame), splitting.Sums())  # type: ignore[call-overload]

        def change(self, change: Any) -> None:
            self.frame = [pickle.loads(pickle.dumps(change(share))) for share in self.frame]

    rows: dict[int, list[tuple[Any, ...]]] = {}
    for row in zip(*log.values(), strict=True):
        key = sorted(map(str, row[1:3])) if "left" in log else row[1]
        rows.setdefault(zlib.crc32(str(key).encode()) % number, []).append(row)
    parts = [read(dict(zip(log, map(list, zip(*some, strict=True)), strict=True))) for some in rows.values()]
    return Here([of(part) for part in parts], number, 2)  # type: ignore[arg-type]


def divided(log: Log, number: int, structure: str, asked: dict[str, Any], *, last: bool = False) -> Any:
    """The ranking of a query from its shares, and what is said of it."""
    prefs, member = read(log), find_structure(structure)
    how = reading(structure, str(prefs.kind))
    assert how is not None
    found = shared_out(log, number, partial(Ballots.of, kept=how.kept) if last else how.kept.of)
    found.last, found.by = last, "pairs" if prefs.kind == "comparisons" else "lists"
    assert found.look(how.linked)
    return of_shares(found, how, member, asked, str(prefs.kind))


def alike(ours: cc.Ranking, theirs: cc.Ranking) -> None:
    for name in ("query", "component", "item", "rank", "rank_lower", "rank_upper", "judgments", "flag", "provisional"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("score", "lower", "upper", "gradient"):
        values = [one.status[name] if name == "gradient" else getattr(one, name) for one in (ours, theirs)]
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-9, err_msg=name)
    assert ours.interval == theirs.interval
    assert ours.queries.tolist() == theirs.queries.tolist() and ours.items.tolist() == theirs.items.tolist()
    assert np.array_equal(ours.status["status"], theirs.status["status"])


ASKED: dict[str, tuple[dict[str, Any], ...]] = {
    "log-odds": ({}, {"c0": 2.0}),
    "thurstone-mosteller": ({}, {"differences": "margins"}, {"weights": "counts", "differences": "probit"}),
    "inverse-propensity": ({"propensities": [1.0, 0.7, 0.5, 0.4, 0.05]}, {}),
    "rrf": ({}, {"unlisted": "last", "k": 3.0}),
    "combsum": ({}, {"normalise": "z-score"}),
    "eigenvector": ({}, {"c0": 0.1}),
}
READS = {"weighted": "comparisons", "several clicks": "selections"}
CASES = [
    (structure, kind)
    for structure, member in STRUCTURES.items()
    for kind in KINDS
    if READS.get(kind, kind) in member.kinds and structure not in ("bradley-terry", "plackett-luce", "dependent-click")
]


def same_as_memory(structure: str, log: Log, number: int, asked: dict[str, Any]) -> None:
    """Scores, ranks, flags, intervals that follow from counts, notes; or the same error."""
    own = "auto" if find_structure(structure).reads == "exposures" else "none"
    asked, prefs = {"interval": own, **asked}, read(log)
    found: list[Any] = []
    for make in (lambda: (cc.rank(prefs, structure, **asked), []), lambda: divided(log, number, structure, asked)):
        try:
            found.append(make())
        except (cc.UsageError, cc.CannotRank) as error:
            found.append(str(error))
    if isinstance(found[0], str):
        assert found[1] == found[0]
        return
    (theirs, _), (ours, notes) = found
    alike(ours, theirs)
    looked = ("lack of fit", "contradicted pairs")
    kept = [str(one) for one in theirs.notes if one not in prefs.notes and getattr(one, "code", "") not in looked]
    assert notes[:-1] == kept
    assert "divided among tasks by their " in notes[-1]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("structure", "kind"), CASES)
def test_rankings_are_those_of_memory(structure: str, kind: str, number: int) -> None:
    log = drawn(kind, number, items=(9, 25, 4)[number], rows=(60, 40, 90)[number])
    for asked in ASKED.get(structure, ({},)):
        same_as_memory(structure, log, (7, 1, 40)[number], asked)
    same_as_memory(structure, log, 5, {"min_judgments": 9})


@pytest.mark.parametrize("structure", ["borda", "copeland", "thurstone-mosteller", "rrf"])
def test_what_rankings_leave_out_may_stand_last(structure: str) -> None:
    """Below all that they name, of the items of the whole query."""
    log = drawn("orders", 11)
    prefs = cc.Preferences.from_orders(*log.values(), unranked="last")
    asked = {"interval": "none"} | ({"unlisted": "last"} if structure == "rrf" else {})
    for number in (1, 30):
        alike(divided(log, number, structure, asked, last=True)[0], cc.rank(prefs, structure, **asked))


def test_pair_tables_come_some_pairs_at_a_time_and_not_beyond_what_the_driver_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = drawn("orders", 12, items=12)
    theirs = cc.rank(read(log), "copeland", interval="none")
    monkeypatch.setattr(structure_sums, "TRAVELLING", 20)
    ours, notes = divided(log, 5, "copeland", {"interval": "none"})
    alike(ours, theirs)
    assert "(5 shares, 8 passes)" in notes[-1]
    for module, most in ((shares, 3), (structure_sums, 30)):  # of one part, and of all of them
        with monkeypatch.context() as patch:
            patch.setattr(module, "CELLS", most)
            with pytest.raises(TooMuch):
                divided(log, 5, "copeland", {"interval": "none"})
    with monkeypatch.context() as patch:
        patch.setattr(shares, "CELLS", 3)
        with pytest.raises(TooMuch):
            divided(drawn("selections", 13), 5, "position-based", {})


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    "structure", ["log-odds", "borda", "copeland", "budgeted-borda", "counting", "thurstone-mosteller"]
)
def test_sums_over_the_pairs_of_each_item(structure: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of comparisons, whose pairs each lie in one share, where so many pairs are not brought together."""
    monkeypatch.setattr(structure_sums, "CELLS", 3)
    kind = ("comparisons", "weighted")[number % 2]
    log = drawn(kind, 20 + number, items=(6, 30)[number // 2])
    given = [{"c0": 3.0}, {"c0": 0}] if structure in ("log-odds", "thurstone-mosteller") else []
    for asked in ({}, {"min_judgments": 5}, *given, *ASKED.get(structure, ())):
        same_as_memory(structure, log, (9, 1)[number // 2], asked)


def test_what_pairs_are_needed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure_sums, "CELLS", 3)
    for structure, kind in (("kemeny", "comparisons"), ("eigenvector", "weighted"), ("copeland", "orders")):
        with pytest.raises(TooMuch):
            divided(drawn(kind, 6), 5, structure, {"interval": "none"})


def on_spark(spark: Any, log: Log, structure: str, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> cc.Ranking:
    """The ranking of a log with a query that no task can hold, of which the driver does not take the judgments."""
    monkeypatch.setattr(splitting, "SHARE", 60)
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 10)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=40)
    assert len(judged.large) == 1
    made = ranked(judged, structure, **asked)
    return ranking_of(made, judged, structure, asked.get("interval", "auto"), asked.get("level", 0.95))


def beside(log: Log, kind: str) -> Log:
    """The same log with a small query of the same kind."""
    other = drawn(kind, 5, items=4, rows=4)
    first = [*log][1]
    if first != "left":
        other[first] = [1000 + one for one in other[first]]
    return {
        name: values + (["small"] * len(other[name]) if name == "query" else other[name])
        for name, values in log.items()
    }


@pytest.mark.parametrize(
    ("structure", "kind"),
    [
        ("copeland", "orders"), ("borda", "orders"), ("kemeny", "weighted"), ("thurstone-mosteller", "comparisons"),
        ("cascade", "selections"), ("rrf", "ratings"),
    ],
)  # fmt: skip
def test_the_ranking_of_memory(spark: Any, structure: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = beside(drawn(kind, 2, rows=120), kind)
    own = {} if structure == "cascade" else {"interval": "none"}
    alike(on_spark(spark, log, structure, monkeypatch, **own), cc.rank(read(log), structure, **own))


@pytest.mark.parametrize("structure", ["combsum", "bradley-terry"])
def test_items_that_were_rated_equally(spark: Any, structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever rated it gave all else the same rating; or rated nothing else."""
    log = drawn("ratings", 4, rows=120)
    for judgment, item, rating in ((900, "equal", 1.5), (900, "i1", 1.5), (901, "alone", 0.5), (902, "alone", 2.0)):
        for name, value in zip(log, ("large", judgment, item, rating), strict=True):
            log[name].append(value)
    ours = on_spark(spark, log, structure, monkeypatch, interval="none")
    theirs = cc.rank(read(log), structure, interval="none")
    alike(ours, theirs)
    if structure == "bradley-terry":
        flags = ours.to_arrow().select(["item", "flag"]).to_pylist()
        said = {row["item"]: row["flag"] for row in flags if row["item"] in ("equal", "alone")}
        assert said == {"equal": "rated equally", "alone": "never compared"}


@pytest.mark.parametrize(("structure", "said"), [("rrf", 0), ("copeland", 1)])
def test_what_lists_leave_out_is_noted_where_it_is_heeded(spark: Any, structure: str, said: int) -> None:
    log = drawn("orders", 8)
    judged = settled(JudgedQueries.of(spark.createDataFrame(pa.table(log)), spark))
    ours = ranking_of(ranked(judged, structure, interval="none"), judged, structure, "none", 0.95)
    for board in (ours, cc.rank(cc.read(log), structure, interval="none")):
        assert sum("leave out items of their query" in note for note in board.notes) == said


def test_a_ranking_with_nothing_said_of_intervals(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few lists that differ memory draws a bootstrap, of many none; the level is then idle, not wrong."""
    log = drawn("orders", 3, rows=90)
    monkeypatch.setattr(interval_methods, "CHEAP", 0)
    alike(on_spark(spark, log, "log-odds", monkeypatch, level=0.9), cc.rank(read(log), "log-odds", level=0.9))
    monkeypatch.setattr(clustered, "DIFFERENT", 5)
    for asked in ({}, {"level": 0.9}):
        ours = on_spark(spark, log, "log-odds", monkeypatch, **asked)
        alike(ours, cc.rank(read(log), "log-odds", interval="none"))
        assert "no intervals: log-odds has them by the bootstrap, which takes long" in " ".join(ours.notes)


@pytest.mark.parametrize(
    ("kind", "structure", "asked"),
    [
        ("orders", "kemeny", {"interval": "bootstrap", "replicates": 40}),
        ("several clicks", "dependent-click", {"interval": "bootstrap", "replicates": 40}),
        ("orders", "plackett-luce", {"interval": "bootstrap", "replicates": 40, "prior": 1.0}),
    ],
)
def test_many_lists_of_which_few_differ(
    spark: Any, kind: str, structure: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked for: they come to the driver once each, with their numbers."""
    log = drawn(kind, 15, items=3, rows=60)
    ours = on_spark(spark, log, structure, monkeypatch, **asked)
    alike(ours, cc.rank(read(log), structure, **asked))
    monkeypatch.setattr(clustered, "DIFFERENT", 3)
    ours = on_spark(spark, log, structure, monkeypatch, **asked)  # judgments are drawn where they lie
    assert ours.interval == "bootstrap"


@pytest.mark.parametrize("structure", ["position-based", "inverse-propensity"])
def test_positions_of_a_log_that_is_one_large_query(
    spark: Any, structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often positions are examined follows from all queries: with another one that is not known."""
    log, own = drawn("several clicks", 4, rows=90), {"interval": "none"} if structure == "inverse-propensity" else {}
    ours = on_spark(spark, log, structure, monkeypatch, **own)
    alike(ours, cc.rank(cc.read(log), structure, **own))
    plain = {name: values for name, values in log.items() if name != "query"}
    alike(on_spark(spark, plain, structure, monkeypatch, **own), cc.rank(cc.read(plain), structure, **own))


@pytest.mark.parametrize("structure", ["position-based", "inverse-propensity", "dependent-click"])
@pytest.mark.parametrize("few", [True, False])
def test_a_large_query_beside_others_is_read_as_all_of_the_log_says(
    spark: Any, structure: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the driver takes what the models read, or passes over it do; no judgment of it comes to the driver."""
    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    monkeypatch.setattr(learning_clicks, "FEW", learning_clicks.FEW if few else 0)
    log = beside(drawn("several clicks", 7, rows=90), "several clicks")
    own = {"interval": "none", "clip": 0.3} if structure == "inverse-propensity" else {"level": 0.8}
    ours = on_spark(spark, log, structure, monkeypatch, **own)
    theirs = cc.rank(cc.read(log), structure, **own)
    alike(ours, theirs)
    (said,) = [note for note in ours.notes if "divided among tasks by their lists" in note]
    assert said.startswith("query 'large': 90 judgments of 9 items") and "slices" in said
    monkeypatch.setattr(structure_sums, "DRAWN", 30)
    if few:
        with pytest.raises(cc.UsageError, match="there is no bootstrap of"):
            on_spark(spark, log, structure, monkeypatch, interval="bootstrap", replicates=40)


def test_dependent_clicks_of_a_log_that_is_one_large_query(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    log = drawn("several clicks", 8, rows=90)
    plain = {name: values for name, values in log.items() if name != "query"}
    for one in (log, plain):
        alike(on_spark(spark, one, "dependent-click", monkeypatch), cc.rank(cc.read(one), "dependent-click"))
    single = drawn("selections", 9, rows=90)  # of one click in each list these are the cascade
    alike(on_spark(spark, single, "dependent-click", monkeypatch), cc.rank(cc.read(single), "dependent-click"))


def test_intervals_that_would_be_drawn_are_left_out(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = beside(drawn("several clicks", 7, rows=90), "several clicks")
    ours = on_spark(spark, log, "inverse-propensity", monkeypatch)
    assert "no intervals: inverse-propensity has them by the bootstrap" in " ".join(ours.notes)
    np.testing.assert_allclose(ours.score, cc.rank(cc.read(log), "inverse-propensity").score, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("structure", "kind"),
    [
        ("log-odds", "selections"), ("borda", "orders"), ("copeland", "comparisons"), ("cascade", "selections"),
        ("combsum", "ratings"), ("bradley-terry", "selections"), ("plackett-luce", "selections"),
    ],
)  # fmt: skip
def test_targets_are_those_of_a_query_that_is_not_divided(
    spark: Any, structure: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is learned of an item that only ever stood below the last click."""
    log = drawn(kind, 14, items=8, rows=60)
    if kind == "selections":
        for name, values in {"query": ["large"] * 4, "session": [98, 98, 99, 99], "item": ["i1", "never"] * 2}.items():
            log[name] += values
        log["clicked"], log["position"] = log["clicked"] + [1, 0] * 2, log["position"] + [1, 2] * 2
    monkeypatch.setattr(splitting, "SHARE", 60)
    monkeypatch.setattr(frames, "MOST_ALONE", 10)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    given = {"structure": structure, "order": "all"}
    ours, theirs = (
        cs.targets(frame, **given, most=most, session=spark).toArrow().sort_by("item") for most in (40, 10_000)
    )
    assert ours["item"].to_pylist() == theirs["item"].to_pylist()
    assert "never" not in ours["item"].to_pylist()
    for name in ("target", "weight"):
        np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("structure", "kind", "order"),
    [
        ("log-odds", "comparisons", 7),
        ("plackett-luce", "orders", 20),
        ("cascade", "selections", 9),
        ("borda", "orders", 10**6),
    ],
)
def test_targets_of_subsets_are_those_of_a_query_that_is_not_divided(
    spark: Any, structure: str, kind: str, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = drawn(kind, 14, items=8, rows=60)
    monkeypatch.setattr(splitting, "SHARE", 60)
    monkeypatch.setattr(frames, "MOST_ALONE", 10)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    given = {"structure": structure, "order": order, "subsets": 6, "seed": 3}
    ours, theirs = (
        cs.targets(frame, **given, most=most, session=spark).toArrow().sort_by("item") for most in (40, 10_000)
    )
    assert ours["item"].to_pylist() == theirs["item"].to_pylist()
    for name in ("target", "weight"):
        np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=0, atol=1e-9)
