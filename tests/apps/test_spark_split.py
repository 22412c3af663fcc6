"""One query that no task can hold is divided among tasks by its pairs, and its scores are those of memory."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.plackett_luce import plackett_luce
from concordant.ranking.ranked_lists import Rankings, touches
from concordant.ranking.structures import structure as find_structure
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant import spark as cs
    from concordant.apps.spark import clustered, frames, ranking, redrawn, splitting
    from concordant.apps.spark import divided as known_
    from concordant.apps.spark import shares as shares_
    from concordant.apps.spark.divided import Known
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_held import objects
    from concordant.apps.spark.ranking import ranked, ranking_of
    from concordant.apps.spark.shares import Ballots, Listed, ListedPairs, TooMuch
    from concordant.apps.spark.tied_rankings import OfLists, OfPairs


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


def divided(
    log: dict[str, Any], shares: int, of: Any = None, key: tuple[str, ...] = ("left", "right"), last: bool = False,
    whose: tuple[str, ...] = (), linked: bool = True,
) -> Any:  # fmt: skip
    """Shares of a query as tasks have them, without Spark; ``whose``: columns of clusters, each in one share."""

    class Here(splitting.Divided):
        def sums(self, work: Any) -> Any:
            self.passes += 1
            return sum(map(work, self.frame), splitting.Sums())  # type: ignore[call-overload]

        def changed(self, change: Any) -> Any:
            return [pickle.loads(pickle.dumps(change(share))) for share in self.frame]

        def change(self, change: Any) -> None:
            self.frame = self.changed(change)

        def forget(self) -> None: ...

    of = of or splitting.Pairs.of
    reading = {"cluster": whose if len(whose) > 1 else whose[0]} if whose else {}

    def divide(way: int) -> Any:
        rows: dict[int, list[tuple[Any, ...]]] = {}
        where = [[*log].index(name) for name in (whose[way : way + 1] or key)]
        for row in zip(*log.values(), strict=True):
            if row[0] == "large":
                share = sum(ord(letter) for place in where for letter in str(row[place])) % shares
                rows.setdefault(share, []).append(row)
        parts = [cc.read(dict(zip(log, zip(*some, strict=True), strict=True)), **reading) for some in rows.values()]
        return [of(part) for part in parts], shares, 2

    found = Here(*divide(0), columns=whose, divide=divide)
    found.last = last
    assert found.look(linked)
    return found


@pytest.mark.parametrize(("log", "options"), CASES)
@pytest.mark.parametrize("shares", [1, 7, 60])
def test_scores_and_what_connects_are_those_of_memory(log: Any, options: Any, shares: int) -> None:
    prefs = cc.read(log).select(["large"])
    found = divided(log, shares)
    batch = Batch.whole(prefs)
    same_items(found, prefs, connectivity(batch.graphs))
    prior = options.get("prior", 0.01)
    fitted = found.fitted(prior=prior)
    np.testing.assert_allclose(fitted.score, bradley_terry(batch, prior=prior).value, rtol=0, atol=1e-9)
    assert not fitted.stopped
    assert found.touched.sum() == 2 * len(prefs)


def same_items(found: Any, prefs: Any, links: Any) -> None:
    """The items, and what connects them."""
    held = prefs.items.take(Batch.whole(prefs).item).to_pylist()
    assert found.items.tolist() == held
    for name in ("component", "won", "lost", "open_above", "open_below"):
        np.testing.assert_array_equal(getattr(found.links, name), getattr(links, name))
    assert len(np.unique(found.links.block)) == len(np.unique(links.block))
    assert len(np.unique(np.column_stack([found.links.block, links.block]), axis=0)) == len(np.unique(links.block))


def lists(kind: str, items: int, rows: int, *, tiers: int = 99, alone: int = 0, groups: int = 1) -> dict[str, Any]:
    """Lists of one query in some groups, beside a small query; the last items only ever win, in a row.

    Orders have at most so many tiers.
    """
    rng = np.random.default_rng(items)
    score = rng.gumbel(size=items)
    held = [
        group + groups * rng.choice(items // groups, rng.integers(2, 7), replace=False)
        for group in rng.integers(0, groups, rows).tolist()
    ]
    held = [one[np.argsort(-score[one] - rng.gumbel(size=len(one)))] for one in held]
    held += [np.array([items + k, items + k - 1 if k else 0]) for k in range(alone)]
    log: dict[str, list[Any]] = {"query": [], "list": [], "item": [], "place": []}
    for number, one in enumerate([*held, np.array([3, 4]), np.array([4, 3])]):
        query = "large" if number < len(held) else "small"
        if kind == "orders":
            said = np.minimum(1 + np.arange(len(one)), tiers)
        elif kind == "choices":
            said = np.eye(len(one), dtype=int)[0]
        else:
            said = np.eye(len(one), dtype=int)[rng.integers(len(one))]
        for place, (item, value) in enumerate(zip(one.tolist(), said.tolist(), strict=True)):
            entry = (query, number, f"i{item}", value)
            for name, each in zip([*log][:4], entry, strict=True):
                log[name].append(each)
            if kind == "selections":
                log.setdefault("position", []).append(place + 1)
    judgment = {"orders": "judgment", "choices": "session", "selections": "session"}[kind]
    said_by = {"orders": "rank", "choices": "chosen", "selections": "clicked"}[kind]
    return {{"list": judgment, "place": said_by}.get(name, name): values for name, values in log.items()}


LISTS = [
    lists("orders", 40, 300),
    lists("orders", 40, 300, tiers=2),
    lists("orders", 24, 40, tiers=3, groups=2, alone=3),
    lists("orders", 60, 30, alone=2),
    lists("choices", 30, 200, groups=2),
    lists("selections", 30, 200, alone=2),
]


@pytest.mark.parametrize("log", LISTS)
@pytest.mark.parametrize("shares", [1, 7])
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_scores_of_lists_are_those_of_memory(log: Any, shares: int, structure: str) -> None:
    prefs = cc.read(log).select(["large"])
    batch = Batch.whole(prefs)
    key = ("session",) if "session" in log else ("judgment",)
    of, by = splitting.Pairs.of, bradley_terry
    links = connectivity(batch.graphs)
    if structure == "plackett-luce":
        of, by, links = shares_.Listed.of, plackett_luce, Rankings.of(batch).linked("any-order")
    found = divided(log, shares, of, key)
    same_items(found, prefs, links)
    for prior in (0.01, 1.0):
        fitted = found.fitted(prior=prior)
        np.testing.assert_allclose(fitted.score, by(batch, prior=prior).value, rtol=0, atol=1e-9)
        assert not fitted.stopped
    np.testing.assert_array_equal(found.touched, touches(batch))
    assert found.judgments == len(prefs)


def test_the_ranking_of_memory(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log, options = votes(12, 150, alone=1, ties=0.0), {"min_judgments": 3}
    monkeypatch.setattr(splitting, "SHARE", 60)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    judged = JudgedQueries.of(frame, spark, most=50)
    assert judged.large == ("large",)
    monkeypatch.setattr(frames, "MOST_ALONE", 10)  # no task of its own would take it
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


@pytest.mark.parametrize(
    ("log", "structure"),
    [
        (lists("orders", 9, 40, tiers=3, alone=1), "plackett-luce"),
        (lists("choices", 8, 40), "plackett-luce"),
        (lists("selections", 8, 40), "bradley-terry"),
    ],
)
def test_the_ranking_of_lists_is_that_of_memory(
    log: Any, structure: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "SHARE", 60)
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    judged = JudgedQueries.of(frame, spark, most=50)
    assert judged.large == ("large",)
    monkeypatch.setattr(frames, "MOST_ALONE", 10)  # no task of its own would take it
    monkeypatch.setattr(ranking, "MOST_ALONE", 10)
    made = ranked(judged, structure, prior=1.0)
    ours = ranking_of(made, judged, structure, "auto", 0.95)
    alike(ours, cc.rank(cc.read(log), structure, prior=1.0))
    assert ours.converged
    (said,) = [note for note in ours.notes if "divided among tasks by their lists" in note]
    assert "query 'large': " in said and "no intervals" not in said
    if structure == "plackett-luce" and "rank" in log:
        last = JudgedQueries.of(frame, spark, most=50, unranked="last")
        made = ranked(last, structure, interval="none", prior=1.0)
        alike(
            ranking_of(made, last, structure, "none", 0.95),
            cc.rank(cc.read(log, unranked="last"), structure, interval="none", prior=1.0),
        )
    if "rank" not in log:
        return
    given = {"structure": structure, "structure_options": {"prior": 1.0}, "order": "all"}
    made = cs.targets(frame, **given, most=50, session=spark).toArrow()
    made = made.sort_by([("query", "ascending"), ("item", "ascending")])
    known = mean_targets(cc.read(log), structure, options={"prior": 1.0}, order="all")
    np.testing.assert_allclose(made["target"].to_numpy(), known.centred(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        made["weight"].to_numpy(), known.spread(known.weight) / known.spread(known.weight).mean()
    )


@pytest.mark.parametrize(
    "given",
    [
        {"structure": "bradley-terry", "structure_options": {"ties": "davidson", "prior": 1.0}},
        {"structure": "bradley-terry", "structure_options": {"covariates": False, "ties": "davidson"}},
        {"structure": "bradley-terry", "order": 20},
        {"structure": "bradley-terry", "structure_options": {"ties": "cumulative"}},
    ],
)
def test_targets_with_coefficients_are_those_of_memory(
    given: dict[str, Any], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "SHARE", 60)
    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    log = votes(12, 150, alone=1, ties=0.2)
    log["length"] = np.random.default_rng(1).integers(-3, 4, len(log["left"])).tolist()
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    made = cs.targets(frame, **{"order": "all"} | given, most=50, session=spark, covariates=["length"]).toArrow()
    made = made.sort_by([("query", "ascending"), ("item", "ascending")])
    options = {"options": given.get("structure_options"), "order": given.get("order", "all")}
    known = mean_targets(cc.read(log, covariates=["length"]), "bradley-terry", **options)
    np.testing.assert_allclose(made["target"].to_numpy(), known.centred(), rtol=0, atol=1e-9)


def alike(ours: cc.Ranking, theirs: cc.Ranking) -> None:
    for name in ("query", "component", "item", "rank", "rank_lower", "rank_upper", "judgments", "flag", "provisional"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("score", "lower", "upper", *(["quasi_error"] if theirs.quasi_error is not None else [])):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-9, err_msg=name)
    assert ours.interval == theirs.interval


@pytest.mark.parametrize("number", range(len(LISTS)))
@pytest.mark.parametrize("asked", [("hessian", {"quasi": True}), ("sandwich", {}), ("hessian", {"min_judgments": 9})])
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_intervals_of_lists_are_those_of_memory(number: int, asked: tuple[str, dict[str, Any]], structure: str) -> None:
    """Also where items are separated."""
    log, options = LISTS[number], {"interval": asked[0], **asked[1]}
    key = ("session",) if "session" in log else ("judgment",)
    for shares in (1, 6):
        found = divided(log, shares, (Listed if structure == "plackett-luce" else ListedPairs).of, key)
        known = Known(found, find_structure(structure), {})
        prefs = cc.read(log).select(["large"])
        theirs, ours = cc.rank(prefs, structure, **options), known.ranked(options)
        alike(ours, theirs)
        looked = "the scores are right where"  # whether the model fits is not looked at
        left = [str(note) for note in theirs.notes if note not in prefs.notes and not str(note).startswith(looked)]
        assert [*map(str, ours.notes)] == left


@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
@pytest.mark.parametrize("ways", [(12,), (30, 7), (20, 9, 4), (1,)])
@pytest.mark.parametrize("number", range(len(LISTS)))
def test_intervals_of_lists_in_clusters_are_those_of_memory(number: int, ways: tuple[int, ...], structure: str) -> None:
    log, options = dict(LISTS[number]), {"interval": "sandwich"}
    key = "session" if "session" in log else "judgment"
    draw = np.random.default_rng(0)
    for place, many in enumerate(ways):  # whoever made a list made all of it
        of = {label: f"p{draw.integers(many)}" for label in dict.fromkeys(log[key])}
        log[f"who {place}"] = [of[label] for label in log[key]]
    whose = tuple(f"who {place}" for place in range(len(ways)))
    prefs = cc.read(log, cluster=whose if len(whose) > 1 else whose[0]).select(["large"])
    theirs = cc.rank(prefs, structure, **options)
    for shares in (1, 6):
        found = divided(log, shares, (Listed if structure == "plackett-luce" else ListedPairs).of, whose=whose)
        known = Known(found, find_structure(structure), {})
        alike(known.ranked(options), theirs)
        (said,) = [note for note in theirs.notes if "being alike" in note]
        assert splitting.alike([name if len(ways) > 1 else "cluster" for name in whose], found.numbers) in said


def test_lists_in_clusters_on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By two columns; by one, and by more, the same without Spark above."""
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 10)  # no task of its own would take it
    monkeypatch.setattr(splitting, "SHARE", 60)
    log, draw = lists("orders", 9, 60, tiers=3, alone=1), np.random.default_rng(0)
    for place in range(2):
        of = {label: f"p{draw.integers(20 - 9 * place)}" for label in dict.fromkeys(log["judgment"])}
        log[f"who {place}"] = [of[label] for label in log["judgment"]]
    whose = ["who 0", "who 1"]
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=50, cluster=whose)
    ours = ranking_of(ranked(judged, "plackett-luce"), judged, "plackett-luce", "auto", 0.95)
    alike(ours, cc.rank(cc.read(log, cluster=whose), "plackett-luce"))
    assert ours.interval == "sandwich"
    number = len({who for who, query in zip(log["who 0"], log["query"], strict=True) if query == "large"})
    assert f"who 0 ({number})" in " ".join(ours.notes)


@pytest.mark.parametrize("times", [10, 1000, 10**9])
def test_who_surely_stands_first_is_who_does_in_memory(times: int) -> None:
    """Of items that only ever won, many times; beside counts so large that a prior is lost no fit breaks off."""
    log = lists("orders", 12, 60, tiers=9, alone=2)
    log |= {"count": [times] * len(log["rank"])}
    theirs = cc.rank(cc.read(log).select(["large"]), "plackett-luce", interval="hessian")
    known = Known(divided(log, 4, Listed.of, ("judgment",)), find_structure("plackett-luce"), {})
    ours = known.ranked({"interval": "hessian"})
    if times == 1000:
        first = theirs.to_arrow().to_pylist()[0]
        assert (first["item"], first["rank_upper"], first["flag"]) == ("i13", 1, "never lost")
    if times <= 1000:
        alike(ours, theirs)
    else:  # sums lose digits: that is said
        np.testing.assert_allclose(ours.score, theirs.score, atol=1e-3)
        assert not ours.converged


@pytest.mark.parametrize("asked", [{}, {"interval": "sandwich"}, {"interval": "none", "min_judgments": 9}])
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_what_rankings_leave_out_may_stand_last(asked: dict[str, Any], structure: str) -> None:
    """Of all items of the query, most of which a share has not seen."""
    log, kept = lists("orders", 12, 90, tiers=4), Listed if structure == "plackett-luce" else ListedPairs
    found = divided(log, 40, partial(Ballots.of, kept=kept), ("judgment",))
    prefs = cc.read(log, unranked="last").select(["large"])
    theirs = cc.rank(prefs, structure, **asked)
    alike(Known(found, find_structure(structure), {}).ranked({**asked, "interval": theirs.interval}), theirs)
    assert found.judgments == len(prefs)


def test_what_is_too_much_is_not_brought_here(monkeypatch: pytest.MonkeyPatch) -> None:
    log, member = LISTS[2], find_structure("plackett-luce")

    def board(interval: str) -> cc.Ranking:
        return Known(divided(log, 5, Listed.of, ("judgment",)), member, {}).ranked({"interval": interval})

    assert board("hessian").interval == "hessian"
    for module, name, interval in (
        (shares_, "CELLS", "hessian"),
        (splitting, "LISTS", "hessian"),
        (known_, "LARGEST", "sandwich"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 3)
            assert board("none").interval == "none"
            with pytest.raises(TooMuch):
                board(interval)
    monkeypatch.setattr(splitting, "ENTRIES", 3)
    with pytest.raises(TooMuch):
        divided(log, 5, partial(Ballots.of, kept=Listed), ("judgment",), last=True)


@pytest.mark.parametrize("query", [True, False])
def test_rows_of_a_pair_come_to_one_share_and_pairs_to_many(spark: Any, query: bool) -> None:
    log = votes(20, 300)
    log = log if query else {name: values for name, values in log.items() if name != "query"}
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=30)
    frame, shares, _ = splitting.together(judged, judged.large[0], splitting.Pairs.of)
    found = [share for _, share in objects(iter(frame.toArrow().to_batches()))]
    frame.unpersist()
    prefs = cc.read(log).select(["large"]) if query else cc.read(log)
    assert 5 < len(found) <= shares
    assert sum(share.judgments for share in found) == len(prefs)
    pairs = [{*zip(*(one.items.take(end) for end in (one.first, one.second)), strict=True)} for one in found]
    assert sum(map(len, pairs)) == len(set().union(*pairs)) == len(Batch.whole(prefs).graphs.first)


def test_intervals_that_nobody_asked_for(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ties the method of ``auto`` is looked for in the whole log: the sandwich."""
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 10)
    log = votes(8, 150)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)), spark, most=20)
    found = ranking_of(ranked(judged, "bradley-terry", prior=1.0), judged, "bradley-terry", "auto", 0.95)
    assert "no intervals of a query with" in " ".join(found.notes)
    other = ranking_of(ranked(judged, "bradley-terry", prior=1.0, level=0.9), judged, "bradley-terry", "auto", 0.9)
    np.testing.assert_array_equal(other.score, found.score)  # at another level as well
    for query, how in (("large", "none"), ("small", "sandwich")):  # the other has intervals
        theirs = cc.rank(cc.read(log).select([query]), prior=1.0, interval=how).to_arrow().to_pylist()
        ours = [row for row in found.to_arrow().to_pylist() if row["query"] == query]
        assert [row["item"] for row in ours] == [row["item"] for row in theirs]
        for name in ("score", "lower", "upper"):
            np.testing.assert_allclose(*([row[name] or np.nan for row in rows] for rows in (ours, theirs)), atol=1e-9)


def test_what_is_not_divided(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = JudgedQueries.of(votes(20, 2000), spark, most=20)
    monkeypatch.setattr(frames, "MOST_ALONE", 10)
    monkeypatch.setattr(redrawn, "SCORES", 10)  # of all replicates
    with pytest.raises(cc.UsageError, match=r"'large' has \d+ distinct judgments.*structure='bradley-terry'"):
        cs.rank(judged, "plackett-luce", ties="davidson", interval="bootstrap")
    with pytest.raises(cc.UsageError, match="no intervals are asked for"):
        cs.rank(judged, ties="davidson", interval="bootstrap")
    judged = JudgedQueries.of(lists("orders", 20, 60), spark, most=20)
    monkeypatch.setattr(clustered, "DIFFERENT", 3)
    for structure in ("plackett-luce", "bradley-terry"):
        with pytest.raises(cc.UsageError, match=r"'large' has \d+ rows.*structure='plackett-luce'"):
            cs.rank(judged, structure, ties="davidson", interval="bootstrap")
    several = lists("selections", 20, 60) | {"clicked": [1] * len(lists("selections", 20, 60)["clicked"])}
    with pytest.raises(cc.UsageError, match=r"plackett-luce reads one choice a list, and \d+ of \d+ have more"):
        cs.rank(JudgedQueries.of(several, spark, most=20), "plackett-luce", interval="none")
    with pytest.raises(cc.NoMaximumLikelihood, match=r"query 'large' does not exist: no chain of wins limits 'i20', "):
        divided(votes(20, 200, alone=4, ties=0.0), 5).fitted(prior=0)


TIED = [
    lists("orders", 7, 60, tiers=2),
    lists("orders", 9, 90, tiers=3, alone=1),
    lists("orders", 14, 120, tiers=2, groups=2, alone=2),
]
"""Rankings with ties of several sizes; with items that only win, and in groups that no ranking connects."""
ASKED: list[dict[str, Any]] = [
    {"interval": "hessian", "quasi": True},
    {"interval": "sandwich", "prior": 1.0},
    {"interval": "hessian", "across_components": True, "min_judgments": 9, "reference": "i3"},
    {"interval": "none", "prior": 0.1},
]


@pytest.mark.parametrize(
    ("asked", "ways"), [*[(one, ()) for one in ASKED], *[(ASKED[1], ways) for ways in ((30,), (20, 9))]]
)
@pytest.mark.parametrize("number", range(len(TIED)))
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_ties_of_rankings_may_have_parameters(
    structure: str, number: int, asked: dict[str, Any], ways: tuple[int, ...]
) -> None:
    log, options, draw = dict(TIED[number]), {"ties": "davidson", **asked}, np.random.default_rng(0)
    for place, many in enumerate(ways):
        of = {label: f"p{draw.integers(many)}" for label in dict.fromkeys(log["judgment"])}
        log[f"who {place}"] = [of[label] for label in log["judgment"]]
    whose = tuple(f"who {place}" for place in range(len(ways)))
    reading = {"cluster": whose if len(whose) > 1 else whose[0]} if whose else {}
    theirs = cc.rank(cc.read(log, **reading).select(["large"]), structure, **options)
    kept: Any = OfLists if structure == "plackett-luce" else OfPairs
    for shares in (1, 6):
        found = divided(log, shares, kept.kept.of, ("judgment",), whose=whose)
        known = kept.of(found, find_structure(structure), options)
        ours = known.ranked(options)
        alike(ours, theirs)
        assert {*ours.coefficients} == {*theirs.coefficients}
        for name, value in theirs.coefficients.items():
            np.testing.assert_allclose(ours.coefficients[name], value, atol=1e-8, err_msg=name)
        said = " ".join(known.said(ours))
        assert "being alike" in said if whose else "being alike" not in said
        name = "log δ of ties of 2" if structure == "plackett-luce" else "log ν of ties"
        assert f"coefficient {name}: " in said


def test_ties_whenever_there_could_be_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their δ is infinite, as in memory; also of ballots, what these leave out being last; and without a matrix."""
    order, judgments = [np.random.default_rng(one).permutation(5) for one in range(40)], range(40)
    log: dict[str, Any] = {"query": ["large"] * 200, "judgment": [one for one in judgments for _ in range(5)]}
    log["item"] = [f"i{code}" for one in order for code in one]
    log["rank"] = [1 + (place > 1 + one % 2) for one in judgments for place in range(5)]  # two above three, or reversed
    prefs = cc.read(log)
    options = {"ties": "davidson", "interval": "none"}
    found = OfLists.of(divided(log, 5, OfLists.kept.of, ("judgment",)), find_structure("plackett-luce"), options)
    ours, theirs = found.ranked(options), cc.rank(prefs, "plackett-luce", **options)
    alike(ours, theirs)
    assert [note for note in ours.notes if "tied whenever they could" in note]
    said = "some items tied whenever they could"
    with pytest.raises(cc.CannotRank, match=said):
        found.ranked({**options, "interval": "hessian"})
    with pytest.raises(cc.CannotRank, match=said):
        cc.rank(prefs, "plackett-luce", ties="davidson", interval="hessian")
    log["rank"] = [1] * 200
    with pytest.raises(TooMuch):  # memory says what there is to say
        OfPairs.of(divided(log, 5, OfPairs.kept.of, ("judgment",)), find_structure("bradley-terry"), options)
    log = lists("orders", 7, 60, tiers=2)
    for structure, kept in (("plackett-luce", OfLists), ("bradley-terry", OfPairs)):
        theirs = cc.rank(cc.read(log, unranked="last").select(["large"]), structure, **options)
        for cells in (shares_.CELLS, 3):
            monkeypatch.setattr(shares_, "CELLS", cells)
            shares = divided(log, 4, partial(Ballots.of, kept=kept.kept), ("judgment",), last=True)
            known = kept.of(shares, find_structure(structure), options)  # type: ignore[attr-defined]
            alike(known.ranked(options), theirs)
        with pytest.raises(TooMuch):
            known.ranked({**options, "interval": "hessian"})
        monkeypatch.undo()


@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_ties_with_parameters_on_spark(structure: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    monkeypatch.setattr(splitting, "SHARE", 60)
    log = lists("orders", 9, 60, tiers=3, alone=1)
    judged = JudgedQueries.of(spark.createDataFrame(pa.table(log)).repartition(3), spark, most=50)
    ours = ranking_of(ranked(judged, structure, ties="davidson"), judged, structure, "auto", 0.95)
    alike(ours, cc.rank(cc.read(log), structure, ties="davidson"))
    assert [note for note in ours.notes if "query 'large': coefficient log" in note]
    assert [note for note in ours.notes if "divided among tasks by their lists" in note]
