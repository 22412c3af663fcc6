"""Queries that keep the rows of an earlier ranking: what comes out is, bit by bit, what ranking all of them gives."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.preferences.labels import Labels
from concordant.preferences.status import Status
from concordant.ranking import rank_intervals, unchanged
from concordant.ranking.unchanged import label_signs, query_signs

NUMBERS = ("score", "lower", "upper")


def votes(
    queries: int, seed: int, *, items: int = 8, each: int = 30, labels: str = "q{}", **more: Any
) -> dict[str, Any]:
    """Votes about items of some queries, in some of which items only win or only lose."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, queries, queries * each)
    score = np.random.default_rng(0).normal(scale=2, size=(queries, items))
    one = rng.integers(0, items, len(query))
    other = (one + rng.integers(1, items, len(query))) % items
    wins = rng.random(len(query)) < 1 / (1 + np.exp(score[query, other] - score[query, one]))
    sides = np.where(wins, one, other), np.where(wins, other, one)
    log: dict[str, Any] = {"query": [labels.format(code) for code in query]}
    log |= {name: [f"i{code:02}" for code in side] for name, side in zip(("left", "right"), sides, strict=True)}
    tie = rng.random(len(query)) < more.get("ties", 0.0)
    log["outcome"] = np.where(tie, "tie", "left").tolist()
    if people := more.get("people"):
        log["who"] = [f"p{code}" for code in rng.integers(0, people, len(query))]
    if more.get("crossed"):
        log["what"] = [f"w{code}" for code in rng.integers(0, 9, len(query))]
    if more.get("weight"):
        log["weight"] = rng.choice([0.5, 1.0, 2.5], len(query)).tolist()
    return log


def later(log: dict[str, Any], among: int, seed: int = 9, **more: Any) -> dict[str, Any]:
    """The log and a day more, about some queries and one that is new, with an item whose label comes first."""
    day = votes(among, seed, **more)
    new = {name: [column[0]] * 2 for name, column in day.items()}
    new |= {"query": ["a new one"] * 2, "left": ["a first", "i01"], "right": ["i01", "a first"]}
    return {name: [*column, *day[name], *new[name]] for name, column in log.items()}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "ties": ({"ties": 0.2}, {"quasi": True}),
    "people": ({"people": 12}, {}),
    "few people": ({"people": 3, "ties": 0.1}, {"level": 0.8}),
    "strengths": ({"weight": True}, {"prior": 0.5}),
    "no intervals": ({}, {"interval": "none", "min_judgments": 3}),
    "one component and several": ({"each": 6, "ties": 0.3}, {}),
    "crossed": ({"people": 6, "ties": 0.1, "crossed": True}, {}),
    "across components": ({"each": 6}, {"across_components": True}),
    "borda": ({}, {"structure": "borda", "interval": "none"}),
    "borda of people": ({"people": 5}, {"structure": "borda", "interval": "none"}),
}


def equal(found: pa.Table, whole: pa.Table) -> None:
    assert found.column_names == whole.column_names and found.num_rows == whole.num_rows
    for name in found.column_names:
        one, other = (column.to_numpy(zero_copy_only=False) for column in (found[name], whole[name]))
        if one.dtype.kind == "f":
            one, other = one.view(np.int64), other.view(np.int64)
        assert one.tolist() == other.tolist(), name


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("as_table", [True, False])
def test_the_bits_of_the_whole(case: str, as_table: bool, tmp_path: Path) -> None:
    how, options = CASES[case]
    clustered = {"cluster": ("who", "what") if "crossed" in how else "who"} if "people" in how else {}
    log = votes(40, 1, **how)
    before = cc.rank(cc.read(log, **clustered), **options)
    today = cc.read(later(log, 5, **how), **clustered)
    whole = cc.rank(today, **options)
    start: Any = before
    if as_table:
        pq.write_table(replace(before, rests={"log": "yesterday"}).to_arrow(), tmp_path / "before.parquet")
        start = pq.read_table(tmp_path / "before.parquet")
    found = cc.rank(today, **options, start=start)
    equal(found.to_arrow(), whole.to_arrow())
    assert "35 of 41 queries have the judgments of the earlier ranking and keep their rows" in " ".join(found.notes)
    assert found.interval == whole.interval
    again = cc.rank(today, **options, start=found)
    equal(again.to_arrow(), whole.to_arrow())
    assert "41 of 41 queries" in " ".join(again.notes)


def orders(queries: int, seed: int, who: int = 0, each: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = [
        (int(query), f"{seed}-{session}", f"i{item}", place + 1, f"p{session % max(who, 1)}")
        for session, query in enumerate(rng.integers(0, queries, each * queries))
        for place, item in enumerate(rng.permutation(6)[:4])
    ]
    log = dict(zip(("query", "judgment", "item", "rank", "who"), map(list, zip(*rows, strict=True)), strict=True))
    return log if who else {name: column for name, column in log.items() if name != "who"}


@pytest.mark.parametrize(
    ("structure", "interval", "who"),
    [("plackett-luce", "auto", 0), ("plackett-luce", "auto", 4), ("bradley-terry", "auto", 0), ("borda", "none", 0)],
)
def test_lists(structure: str, interval: str, who: int) -> None:
    clustered = {"cluster": "who"} if who else {}
    log, day = orders(30, 1, who), orders(4, 2, who)
    both = {name: column + day[name] for name, column in log.items()}
    before = cc.rank(cc.read(log, **clustered), structure, interval=interval)
    today = cc.read(both, **clustered)
    found = cc.rank(today, structure, interval=interval, start=before)
    equal(found.to_arrow(), cc.rank(today, structure, interval=interval).to_arrow())
    assert "26 of 30 queries" in " ".join(found.notes)


@pytest.mark.parametrize("kind", ["lists", "votes", "crossed", "few in each query"])
def test_a_query_alone_has_its_own_limits(kind: str) -> None:
    """People who judge in several queries are heeded in each by itself."""
    log = orders(30, 79, 5, each=2) if kind == "lists" else votes(25, 3, each=8, people=4, ties=0.1)
    clusters: tuple[str, ...] = ("who",)
    if kind == "crossed":
        log["what"] = [f"{left}{at % 3}" for at, left in enumerate(log["left"])]
        clusters = ("who", "what")
    if kind == "few in each query":  # of prompts there are fewer in a query, more in all, than of people
        log["what"] = [f"{query} {at % 2}" for at, query in enumerate(log["query"])]
        clusters = ("who", "what")
    prefs = cc.read(log, cluster=clusters)
    structure = "plackett-luce" if kind == "lists" else "bradley-terry"
    whole = cc.rank(prefs, structure).to_arrow().to_pylist()
    assert any(row["flag"] for row in whole)
    for query in prefs.queries.tolist():
        alone = cc.rank(prefs.select([query]), structure).to_arrow().to_pylist()
        for one, other in zip(alone, (row for row in whole if row["query"] == query), strict=True):
            for name, value in one.items():
                assert value == (pytest.approx(other[name], rel=1e-7, abs=1e-9) if name in NUMBERS else other[name])


def test_many_items_and_crossed_clusters() -> None:
    """A query that is not inverted whole, beside small ones."""
    how = {"people": 30, "crossed": True, "ties": 0.1}
    log, large = votes(4, 1, **how), votes(1, 2, items=430, each=1300, labels="large", **how)
    both = {name: [*column, *large[name]] for name, column in log.items()}
    clusters = {"cluster": ("who", "what")}
    whole = cc.rank(today := cc.read(both, **clusters))
    for before in (log, large):
        found = cc.rank(today, start=cc.rank(cc.read({n: [*c, *log[n][:1]] for n, c in before.items()}, **clusters)))
        equal(found.to_arrow(), whole.to_arrow())


# -- signs ---------------------------------------------------------------------------------------------------------
def test_whatever_is_said_changes_the_sign() -> None:
    def signs(**changes: Any) -> list[int]:
        log: dict[str, Any] = {"query": [1, 1, 2], "left": list("aba"), "right": list("bcb"), "who": list("xyx")}
        log |= {"outcome": ["left", "tie", "left"], "weight": [1.0, 2.0, 1.0], "longer": [0.0, 1.0, 0.0]} | changes
        prefs = cc.read(log, cluster="who", covariates=("longer",))
        return query_signs(prefs, np.zeros(2, bool))[0].tolist()  # type: ignore[no-any-return]

    whole = signs()
    changed = [
        signs(left=list("bba"), right=list("acb")),
        signs(outcome=["left", "left", "left"]),
        signs(outcome=["tie", "left", "left"]),
        signs(weight=[1.0, 3.0, 1.0]),
        signs(longer=[0.0, -1.0, 0.0]),
        signs(who=list("xxx")),
        signs(who=list("yxx")),
        signs(query=[1, 1, 1]),
    ]
    assert signs(query=[1, 1, 3]) == whole
    for place in (0, 1):  # each of the two by itself
        assert len({sign[place] for sign in (whole, *changed)}) == 1 + len(changed)
    assert query_signs(cc.Preferences.empty(), np.zeros(0, bool)).shape == (0, 2)


def test_counts_and_orders_are_signed() -> None:
    one = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[2, 1])
    other = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[1, 2])
    lists = [cc.Preferences.from_orders(None, [1, 1], list("ab"), ranks) for ranks in ([1, 2], [2, 1], [1, 1])]
    none = np.zeros(1, bool)
    found = [tuple(query_signs(prefs, none)[0].tolist()) for prefs in (one, other, *lists)]
    assert len({*found, tuple(query_signs(one, ~none)[0].tolist())}) == 6


def test_signs_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a", "ab", "ba", "abc", "ümlaut", "x" * 300, "aa", "1"]
    labels = Labels.encode(texts)[0]
    found = label_signs(labels)
    assert len({*found.tolist()}) == len(texts)
    monkeypatch.setattr(unchanged, "SOME", 2)
    assert (label_signs(labels) == found).all()
    whole = label_signs(Labels.encode([-1, 1, 2**60])[0])
    assert len({*whole.tolist(), *found.tolist()}) == len(texts) + 3


# -- what is refused, what is ranked again -------------------------------------------------------------------------
def test_other_settings_are_refused() -> None:
    prefs = cc.read(votes(5, 1))
    before = cc.rank(prefs)
    for options, said in (
        ({"level": 0.9}, r"level 0\.95 and now 0\.9\)"),
        ({"prior": 1.0}, r"prior not given and now 1\.0"),
        ({"interval": "sandwich", "min_judgments": 2}, "interval 'auto' and now 'sandwich', min_judgments 0"),
        ({"structure": "thurstone-mosteller", "interval": "none"}, "structure 'bradley-terry' and now 'thurstone"),
    ):
        with pytest.raises(cc.UsageError, match=said):
            cc.rank(prefs, **options, start=before)
    with pytest.raises(cc.UsageError, match="this log has ties, its log had none"):
        cc.rank(cc.read(later(votes(5, 1), 2, ties=0.9)), start=before)
    told = before.judged
    assert told is not None
    other = replace(told, how=told.how.replace(f'"numpy": "{np.__version__}"', '"numpy": "1.0"'))
    with pytest.raises(cc.UsageError, match=r"numpy '1\.0' and now"):
        cc.rank(prefs, start=replace(before, judged=other))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"structure": "borda"}, "bootstrap"),
        ({"interval": "bootstrap"}, "bootstrap"),
        ({"prior": "auto"}, "prior is chosen from all"),
        ({"ties": "davidson"}, "coefficients beside"),
        ({"reference": "i01"}, "reference"),
    ],
)
def test_where_rows_rest_on_other_queries(options: dict[str, Any], said: str) -> None:
    prefs = cc.read(votes(5, 1, ties=0.2))
    with pytest.raises(cc.UsageError, match=f"an earlier ranking is of no use here: .*{said}"):
        cc.rank(prefs, **options, start=cc.rank(prefs))


def test_tables_that_say_nothing() -> None:
    prefs = cc.read(votes(5, 1))
    plain = cc.rank(prefs).to_arrow()
    for table in (plain, plain.select(["item", "score"]), pa.table({})):
        with pytest.raises(cc.InputError, match="does not say what its queries hold"):
            cc.rank(prefs, start=table)
    table = replace(cc.rank(prefs), rests={"log": "yesterday"}).to_arrow()
    assert "5 of 5 queries have" in " ".join(cc.rank(prefs, start=table).notes)
    order = pa.array(np.arange(len(table))[::-1])
    signs = table.schema.metadata[unchanged.SIGNS.encode()]
    forged = [
        {unchanged.SIGNS.encode(): some} for some in (signs[:-16], signs[16:] + signs[:16], bytes(len(signs)), b"")
    ]
    views = table.set_column(0, "query", table["query"].cast(pa.string_view()))
    assert "5 of 5 queries have" in " ".join(cc.rank(prefs, start=views).notes)
    for nonsense in (b"[" * 10_000, b"[]", b"{}", b'{"ranked": "[]"}', b"\xff"):
        with pytest.raises(cc.InputError, match="does not say what its queries hold"):
            cc.rank(prefs, start=table.replace_schema_metadata(table.schema.metadata | {b"concordant": nonsense}))
    score = table.column_names.index("score")
    for changed in (
        table.slice(1),
        table.slice(0, len(table) - 1),
        table.take(order),
        table.drop_columns(["lower"]),
        table.set_column(score, "score", pa.array(table["score"].to_numpy() + 1e-9)),
        table.set_column(score, "score", pa.array(["x"] * len(table))),
        table.set_column(table.column_names.index("item"), "item", pa.array(["i01"] * len(table))),
        *(table.replace_schema_metadata(table.schema.metadata | each) for each in forged),
    ):
        with pytest.raises(cc.InputError, match="was changed since it was made"):
            cc.rank(prefs, start=changed)
    with pytest.raises(cc.UsageError, match=r"is a Ranking, or the table .* not str"):
        cc.rank(prefs, start="earlier.parquet")  # type: ignore[arg-type]
    one = cc.rank(prefs.select(["q1"]))
    with pytest.raises(cc.InputError, match="does not say"):
        cc.rank(prefs, start=one)


def test_what_stopped_and_what_is_drawn_otherwise_is_ranked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = cc.read(votes(6, 1))
    short = cc.rank(prefs, max_iterations=1)
    assert not short.converged
    found = cc.rank(prefs, max_iterations=1, start=short)
    equal(found.to_arrow(), short.to_arrow())
    assert f"{int((short.status['status'] != Status.STOPPED).sum())} of 6 queries" in " ".join(found.notes)
    before = cc.rank(prefs)
    monkeypatch.setattr(rank_intervals, "WORK", 1.0)
    again = cc.rank(prefs, start=before)
    assert "0 of 6 queries have" in " ".join(again.notes)
    equal(again.to_arrow(), cc.rank(prefs).to_arrow())


# -- the command ---------------------------------------------------------------------------------------------------
def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "concordant", *map(str, arguments)], capture_output=True, text=True)


def test_every_night(tmp_path: Path) -> None:
    log, people = votes(30, 1, people=9), {"people": 9}
    for name, rows in (("first", log), ("both", later(log, 3, **people))):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    first, both, board, whole = (tmp_path / f"{name}.parquet" for name in ("first", "both", "board", "whole"))
    assert command("rank", first, "--cluster", "who", "-o", board, "-q").returncode == 0
    assert command("rank", both, "--cluster", "who", "-o", whole, "-q").returncode == 0
    night = command("rank", both, "--cluster", "who", "-o", board, "--start", board)  # over the one that it starts from
    assert night.returncode == 0, night.stderr
    assert "27 of 31 queries have the judgments of the earlier ranking and keep their rows" in night.stderr
    equal(pq.read_table(board), pq.read_table(whole))
    assert pq.read_schema(board).metadata == pq.read_schema(whole).metadata
    arrow = tmp_path / "board.arrow"
    assert command("rank", both, "--cluster", "who", "-o", arrow, "-q").returncode == 0
    found = command("rank", both, "--cluster", "who", "-o", arrow, "--start", arrow)
    assert found.returncode == 0 and "31 of 31 queries" in found.stderr, found.stderr
    again = command("rank", both, "--cluster", "who", "-o", tmp_path / "again.csv", "--start", board)
    assert again.returncode == 0 and "31 of 31 queries" in again.stderr
    for arguments, said in (
        ([both, "--start", board], "this log has no clusters, its log had some"),
        ([both, "--cluster", "who", "--level", "0.9", "--start", board], "level 0.95 and now 0.9"),
        ([both, "--cluster", "who", "--start", tmp_path / "again.csv"], "again.csv: the earlier ranking does not say"),
        ([both, "--cluster", "who", "--start", both], "both.parquet: the earlier ranking does not say"),
        ([both, "--cluster", "who", "--start", tmp_path / "none.parquet"], "none.parquet"),
        ([both, "--structure", "borda", "--start", board], "bootstrap"),
    ):
        found = command("rank", *arguments, "-o", tmp_path / "refused.csv")
        assert found.returncode == 2 and said in found.stderr, found.stderr
        assert "Traceback" not in found.stderr and not (tmp_path / "refused.csv").exists()
