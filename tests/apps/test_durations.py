"""What is said to be left of a command: its plan names the work that it does, and some rows tell what a log holds."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant import stages as progress_of_work
from concordant.apps.commands import main, progress
from concordant.apps.commands.durations import counts_of
from concordant.apps.commands.plans import HELD_OUT, of_card, once_counted
from concordant.io.engines import foretold
from concordant.io.engines.counting import with_columns
from concordant.io.ingest import Store
from concordant.io.log.formats import Log, locate
from concordant.progress import listen
from concordant.ranking import partitioning
from concordant.ranking.partitioning import Growth
from concordant.stages import Stage
from concordant.time_left import Whole


def votes(queries: int, items: int, number: int, seed: int = 0, workers: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    winner = draw.integers(0, items, number)
    table = {"query": draw.integers(0, queries, number), "winner": winner}
    table |= {"loser": (winner + 1 + draw.integers(0, items - 1, number)) % items}
    table |= {"worker": draw.integers(0, workers, number)} if workers else {}
    return pa.table(table)


# -- what a log may hold -----------------------------------------------------------------------------------------------
ROLES = {"query": "query", "winner": "winner", "loser": "loser"}


def foretold_of(log: Log, roles: dict[str, str] = ROLES) -> dict[str, float]:
    with listen(lambda _: None) as heard:
        foretold.foretell(log, roles)
    return heard.whole.known


@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "json", "sorted", "folder"])
@pytest.mark.parametrize(("queries", "items"), [(1, 40), (400, 10), (30_000, 20)])
def test_some_rows_tell_what_a_log_holds(form: str, queries: int, items: int, tmp_path: Path) -> None:
    table = votes(queries, items, 300_000)
    if form == "sorted":
        table = table.sort_by([("query", "ascending")])
    if form == "folder":
        for part in range(4):
            pq.write_table(table.slice(part * 75_000, 75_000), tmp_path / f"{part}.parquet")
    name = tmp_path if form == "folder" else tmp_path / f"votes.{'parquet' if form == 'sorted' else form}"
    if form in ("parquet", "sorted"):
        pq.write_table(table, name, row_group_size=100_000)
    elif form == "csv":
        pyarrow.csv.write_csv(table, name)
    elif form == "csv.gz":
        with gzip.open(name, "wb", compresslevel=1) as file:
            pyarrow.csv.write_csv(table, file)
    elif form == "json":
        rows = zip(*(table.column(column).to_pylist() for column in ROLES), strict=True)
        name.write_text("".join(f'{{"query": {q}, "winner": {w}, "loser": {lost}}}\n' for q, w, lost in rows))
    found = foretold_of(with_columns(locate(str(name))))
    of = {"distinct": [*ROLES], "queries": ["query"]}
    truth = {name: table.group_by(columns).aggregate([]).num_rows for name, columns in of.items()}
    ends = [table.select(["query", end]).rename_columns(["query", "item"]) for end in ("winner", "loser")]
    truth |= {"rows": 300_000, "nodes": pa.concat_tables(ends).group_by(["query", "item"]).aggregate([]).num_rows}
    for name, value in truth.items():
        assert 1 / 1.25 <= found[name] / value <= 1.25, (name, found[name], value)


def test_lists_are_as_much_work_as_the_pairs_that_they_make(tmp_path: Path) -> None:
    """Before they are counted as afterwards."""
    draw = np.random.default_rng(3)
    number, length, items = 20_000, 8, 300
    item = np.argsort(draw.random((number, items)), axis=1)[:, :length].ravel()
    lists = {"judgment": np.repeat(np.arange(number), length), "item": item}
    pq.write_table(pa.table(lists | {"rank": np.tile(np.arange(1, length + 1), number)}), tmp_path / "lists.parquet")
    log = with_columns(locate(str(tmp_path / "lists.parquet")))
    found = foretold_of(log, {name: name for name in ("judgment", "item", "rank")})
    known = counts_of(cc.read(tmp_path / "lists.parquet"))
    for name in ("distinct", "entries", "different", "nodes"):
        truth = {"entries": number * length}.get(name, known[name])
        assert 1 / 1.25 <= found[name] / truth <= 1.25, (name, found[name], truth)


def test_some_rows_tell_how_many_times_there_are(tmp_path: Path) -> None:
    day = {"day": np.random.default_rng(2).integers(0, 700, 60_000)}
    table = votes(1, 40, 60_000).drop_columns("query")
    pq.write_table(
        pa.table(dict(zip(table.column_names, table.columns, strict=True)) | day), tmp_path / "games.parquet"
    )
    log = with_columns(locate(str(tmp_path / "games.parquet")))
    found = foretold_of(log, {"winner": "winner", "loser": "loser", "time": "day"})
    assert 630 <= found["times"] <= 770


def test_what_cannot_be_looked_at_tells_nothing(tmp_path: Path) -> None:
    table = votes(1, 40, 1000)
    with gzip.open(tmp_path / "votes.csv.gz", "wb") as file:
        file.write(b"winner,loser\n" + b"a,b,c\n" * 1000)
    assert (
        foretold_of(with_columns(locate(str(tmp_path / "votes.csv.gz"))), {"winner": "winner", "loser": "loser"}) == {}
    )
    (tmp_path / "bad.csv").write_text("winner,loser\n" + "a,b,c\n" * 1000)
    assert foretold_of(with_columns(locate(str(tmp_path / "bad.csv"))), {"winner": "winner", "loser": "loser"}) == {}
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    assert foretold_of(with_columns(locate(str(tmp_path / "empty.parquet")))).get("rows", 0) == 0


# -- what a command does -----------------------------------------------------------------------------------------------
COUNTING = {"counting rows", "counting rows in memory"}


class Kept(Whole):
    """A plan, and which of its pieces came, and which did not."""

    def __init__(self) -> None:
        super().__init__()
        self.came: dict[str, None] = {}
        self.never: dict[str, float] = {}
        self.said: list[Any] = []

    def begin(self, one: Stage) -> None:
        before = {name: seconds for name, seconds in self.usual.items() if name not in self.took}
        super().begin(one)
        self.never |= {name: before[name] or 0.0 for name in before if name in self.took}
        if self.now is one:
            self.came[one.what] = None
        self.said += [self.between] if COUNTING & {*self.took} else []


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("votes")
    pq.write_table(votes(1, 12, 2000, workers=20).drop_columns("query"), folder / "one.parquet")
    pq.write_table(votes(1, 12, 3000, 1, workers=20).drop_columns("query"), folder / "two.parquet")
    pq.write_table(votes(30, 8, 4000, workers=20), folder / "many.parquet")
    cc.rank(cc.read(folder / "one.parquet")).to_arrow().select(["item", "score"]).to_pandas().to_parquet(
        folder / "ranking.parquet"
    )
    item = np.arange(12)
    x = np.random.default_rng(1).standard_normal((12, 3))
    pq.write_table(pa.table({"item": item} | {f"x{at}": x[:, at] for at in range(3)}), folder / "features.parquet")
    return folder


FIT = ("-f", "features.parquet", "-m", "OUT")
COMMANDS = [
    ("rank one.parquet -o OUT.csv", "scores", "intervals", "writing OUT.csv"),
    ("rank one.parquet --interval none -o OUT.csv", "scores", "writing OUT.csv"),
    ("rank one.parquet --interval bootstrap --replicates 50 -o OUT.csv", "scores", "bootstrap"),
    ("rank one.parquet --structure borda -o OUT.csv", "scores", "bootstrap"),
    ("rank one.parquet --time worker --moving --statistics --paths OUT-paths.csv -o OUT.csv", "abilities over time",
     "placing judgments in time", "prior and drift", "ranking at one time", "whether abilities move"),
    ("compare one.parquet -o OUT.csv", "scores", "intervals", "comparing"),
    ("compare one.parquet two.parquet -o OUT.csv", "scores", "intervals", "comparing"),
    ("audit one.parquet --replicates 20 -o OUT.json", "cycles", "best orders", "surrogates", "held-out judgments"),
    ("audit many.parquet --replicates 0 -o OUT.json", "cycles", "best orders"),
    ("report one.parquet -o OUT.html", "cycles", "best orders", "surrogates", "writing the page"),
    ("report one.parquet -f features.parquet -o OUT.html", "scorer and its risk", "rankings", "cycles", "best orders",
     "axioms of the scorer", "risk of leaving pairs open", "writing the page"),
    ("fit one.parquet -f features.parquet -m OUT", "choosing the ridge: folds", "gate: folds"),
    ("fit one.parquet -f features.parquet -m OUT --structure log-odds", "cross-validation: folds"),
    ("fit one.parquet -f features.parquet -m OUT --loss ranknet", "learning"),
    ("explain one.parquet -f features.parquet", "explaining"),
    ("judges one.parquet --judge worker", "measuring the judges"),
    ("camps one.parquet --judge worker", "numbers of camps", "finding the camps"),
    ("look one.parquet", "adding up votes", "scores", "evidence", "pairs to ask"),
    ("axioms one.parquet ranking.parquet -f features.parquet", "what a linear scorer could do"),
    ("pairs many.parquet -o OUT.parquet", "matching texts", "ordering", "making pairs", "writing OUT.parquet"),
    ("evaluate ranking.parquet one.parquet", "reading ranking.parquet", "foretelling judgments"),
    ("evaluate many.parquet --split random", "dealing parts", "parts held out", "foretelling judgments"),
    ("ingest one.parquet --store OUT",),
]  # fmt: skip


@pytest.mark.parametrize("asked", COMMANDS, ids=lambda asked: asked[0])
def test_a_plan_names_what_the_command_does(
    asked: tuple[str, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    kept = Kept()
    monkeypatch.setattr(progress, "DELAY", 3600)
    monkeypatch.setattr(progress, "_whole", lambda: kept)
    monkeypatch.chdir(folder)
    line, *pieces = [one.replace("OUT", str(tmp_path / "out")) for one in asked]
    main([*line.split(), "--log-format", "json"])
    assert {*pieces, "adding up judgments"} <= {*kept.came} and COUNTING & {*kept.came}, capsys.readouterr().err
    whole = sum(seconds or 0.0 for seconds in kept.usual.values())
    assert sum(kept.never.values()) <= 0.2 * whole, kept.never  # nothing large that it does not do
    left = {name: seconds for name, seconds in kept.usual.items() if name not in kept.took}
    assert sum(seconds or 0.0 for seconds in left.values()) <= 0.2 * whole, left
    assert kept.said and None not in kept.said  # once it is known what the log holds


def test_doctor_reads_and_looks_at_columns(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    kept = Kept()
    monkeypatch.setattr(progress, "DELAY", 3600)
    monkeypatch.setattr(progress, "_whole", lambda: kept)
    monkeypatch.chdir(folder)
    main(["doctor", "many.parquet", "--log-format", "json"])
    assert [*kept.came][-2:] == ["looking at columns", "counting by columns"], capsys.readouterr().err
    assert kept.known["rows"] == 4000 and {*kept.plan} == {*kept.took} and None not in kept.said


def test_the_plan_of_a_model_card(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The model's judgments, others that it has not seen, graded labels, the audit: from the first word to the last."""
    monkeypatch.chdir(folder)
    votes_of, rows = cc.read("one.parquet"), cc.read_features("features.parquet")
    cc.save_model(cc.AggregationRanker(structure="log-odds", order="all").fit(rows, votes_of), tmp_path / "model")
    kept = Kept()
    monkeypatch.setattr(progress, "DELAY", 3600)
    monkeypatch.setattr(progress, "_whole", lambda: kept)
    asked = ["--log", "one.parquet", "--held-out", "two.parquet", "-f", "features.parquet"]
    asked += ["--card", str(tmp_path / "card.md"), "--log-format", "json"]
    main(["export", "-m", str(tmp_path / "model"), *asked])
    wanted = {"reading features.parquet", "adding up judgments", "cycles", "surrogates", "sampling noise"}
    wanted |= {"agreement with held-out judgments", "agreement with the judgments"}
    assert wanted <= {*kept.came}, capsys.readouterr().err
    assert sum(kept.never.values()) <= 0.2 * sum(seconds or 0.0 for seconds in kept.usual.values()), kept.never
    assert kept.said and None not in kept.said


def test_a_card_of_held_out_judgments_alone_is_planned(folder: Path) -> None:
    known = progress.counts_of(cc.read(folder / "one.parquet"))
    options = SimpleNamespace(features="f.csv", log=None, held_out="two.parquet", held_out_features=None, labels=None)
    pieces = of_card(options)
    assert {HELD_OUT, "reading f.csv", "agreement with held-out judgments"} <= {*pieces}
    assert not {"cycles", "agreement with the judgments"} & {*pieces}
    later = once_counted(pieces, known)
    assert later[HELD_OUT]({}) == 0.0 and "reading f.csv" not in later


@pytest.mark.parametrize("asked", ["verify STORE", "export STORE -o out.csv", "forget STORE --cluster 3"])
def test_stores_are_one_piece(
    asked: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    kept = Kept()
    monkeypatch.chdir(tmp_path)
    Store(tmp_path / "a.store").ingest(folder / "one.parquet", cluster="worker")
    monkeypatch.setattr(progress, "DELAY", 3600)
    monkeypatch.setattr(progress, "_whole", lambda: kept)
    main(["store", *asked.replace("STORE", "a.store").split(), "--log-format", "json"])
    assert [*kept.came] == [*kept.plan] == [*kept.took], capsys.readouterr().err


def test_what_a_tree_foresees_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is that of the judgments that are tested and divided."""
    now, spans = [0.0], list[tuple[float, float, float]]()
    monkeypatch.setattr(progress_of_work, "clock", lambda: now[0])
    for owner, name, each in ((Growth, "_tests", 1.0), (partitioning._Cut, "best", 3.0)):
        made = getattr(owner, name)

        def longer(*given: Any, made: Any = made, each: float = each) -> Any:
            rows = next(one for one in given if isinstance(one, np.ndarray))
            now[0] += each * 1e-3 * len(rows)
            return made(*given)

        monkeypatch.setattr(owner, name, longer)
    told = Stage.foresee

    def foresee(self: Stage, least: float, most: float) -> None:
        told(self, least, most)
        spans.append((now[0], least, most))

    monkeypatch.setattr(Stage, "foresee", foresee)
    draw = np.random.default_rng(0)
    age, left = np.repeat(draw.integers(20, 60, 200), 60), draw.integers(0, 5, 12_000)
    right = (left + draw.integers(1, 5, 12_000)) % 5
    wins = draw.random(12_000) < 1 / (1 + np.exp((left - right) * (age - 40) / 20))
    sides = np.where(wins, left, right).tolist(), np.where(wins, right, left).tolist()
    who = {"judge": np.repeat(np.arange(200), 60).tolist(), "age": age.tolist()}
    with listen(lambda _: None):
        grown = cc.ranking_tree(cc.Preferences.from_comparisons(*sides, cluster=who), by="age")
    assert len(grown.leaves) > 3 and spans
    for at, least, most in spans:
        assert least - 1e-6 <= now[0] - at <= most + 1e-6


def test_how_many_steps_judges_take_is_known_before_they_are_done() -> None:
    done: list[tuple[float, float]] = []

    def told(stages: tuple[Stage, ...]) -> None:
        done.extend((one.done, one.total) for one in stages if one.what == "weighing" and one.total is not None)

    draw = np.random.default_rng(1)
    left, who = draw.integers(0, 20, 50_000), draw.integers(0, 300, 50_000)
    right = (left + draw.integers(1, 20, 50_000)) % 20
    wins = draw.random(50_000) < 1 / (1 + np.exp((left - right) * 3 / 20))
    sides = np.where(wins, left, right).tolist(), np.where(wins, right, left).tolist()
    prefs = cc.Preferences.from_comparisons(*sides, cluster=who.tolist())
    with listen(told, every=0):
        cc.judges(prefs)
    steps = done[-1][0]
    late = [total for at, total in done if at >= 0.3 * steps]
    assert steps > 10 and late and all(1 / 1.5 <= total / steps <= 1.5 for total in late)


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_how_many_places_the_search_for_a_drift_tries_is_known_before(drift: float) -> None:
    done: list[tuple[float, float]] = []

    def told(stages: tuple[Stage, ...]) -> None:
        done.extend((one.done, one.total) for one in stages if one.what == "prior and drift" and one.total is not None)

    draw = np.random.default_rng(4)
    walk = draw.normal(size=30) + drift * draw.normal(size=(50, 30)).cumsum(axis=0)
    when, left = np.sort(draw.integers(0, 50, 20_000)), draw.integers(0, 30, 20_000)
    right = (left + draw.integers(1, 30, 20_000)) % 30
    wins = draw.random(20_000) < 1 / (1 + np.exp(walk[when, right] - walk[when, left]))
    with listen(told, every=0):
        cc.rank_over_time(
            cc.Preferences.from_comparisons(np.where(wins, left, right), np.where(wins, right, left), time=when)
        )
    tried = done[-1][0]
    said = [(total - at, tried - at) for at, total in done if at >= 8]
    assert (10 if drift else 25) < tried <= 60 and said
    assert all(1 / 1.51 < (one + 10) / (left + 10) < 1.51 for one, left in said)


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_what_cannot_be_foretold_is_read_all_the_same(tmp_path: Path, rows: int) -> None:
    """A file of few rows, and a lake whose folders hold a column: a guess at its size ends no work."""
    text = "winner,loser\n" + "a,b\n" * rows
    (tmp_path / "one.csv").write_text(text)
    for lang in ("de", "en"):
        place = tmp_path / f"lake/lang={lang}"
        place.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"winner": ["a"] * rows, "loser": ["b"] * rows}), place / "part-0.parquet")
    with listen(lambda _: None):
        assert len(cc.read(tmp_path / "one.csv")) == rows
        assert len(cc.read(tmp_path / "lake", columns={"query": "lang"})) == 2 * rows


def test_the_plan_of_an_evaluation_by_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Kept()
    monkeypatch.setattr(progress, "DELAY", 3600)
    monkeypatch.setattr(progress, "_whole", lambda: kept)
    monkeypatch.chdir(tmp_path)
    draw, query = np.random.default_rng(0), np.repeat(np.arange(50), 8)
    rows = {"query": query, "item": np.tile(np.arange(8), 50)}
    pq.write_table(pa.table(rows | {"label": draw.integers(0, 3, 400)}), "labels.parquet")
    for name in ("one", "two"):
        pq.write_table(pa.table(rows | {"score": draw.normal(size=400)}), f"{name}.parquet")
    main(["evaluate", "one.parquet", "labels.parquet", "--against", "two.parquet", "--log-format", "json"])
    pieces = ["reading labels.parquet", "reading one.parquet", "matching rows", "metrics", "evaluating two.parquet"]
    assert [*kept.came] == pieces, capsys.readouterr().err
    assert None not in kept.usual.values() and kept.never == {}


def test_a_log_of_lists_is_foretold_as_one(tmp_path: Path) -> None:
    lists, ten = np.repeat(np.arange(30_000), 6), np.tile(np.arange(1, 7), 30_000)
    item = np.random.default_rng(0).permuted(np.tile(np.arange(20), (30_000, 1)), axis=1)[:, :6].ravel()
    pq.write_table(pa.table({"judgment": lists, "item": item, "rank": ten}), tmp_path / "lists.parquet")
    roles = {name: name for name in ("judgment", "item", "rank")}
    found = foretold_of(with_columns(locate(str(tmp_path / "lists.parquet"))), roles)
    assert found["entries"] == 180_000 and 0.8 <= found["different"] / 30_000 <= 1.25
    pq.write_table(votes(1, 40, 10_000), tmp_path / "votes.parquet")
    assert "entries" not in foretold_of(with_columns(locate(str(tmp_path / "votes.parquet"))))


def test_of_a_packed_log_that_repeats_itself_little_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a guess at its length unpacks is bounded, however much lies behind."""
    path = tmp_path / "votes.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" * (5 << 20))
    unpacked = list[int]()

    def unpacking(wbits: int) -> Any:
        inner = zlib.decompressobj(wbits)

        def decompress(*given: Any) -> bytes:
            text = inner.decompress(*given)
            unpacked.append(len(text))
            return text

        return type("Unpacking", (), {"unconsumed_tail": property(lambda _: inner.unconsumed_tail),
                                      "decompress": staticmethod(decompress)})()  # fmt: skip

    monkeypatch.setattr(foretold, "zlib", SimpleNamespace(decompressobj=unpacking))
    lines, share = foretold._unzipped(path, foretold.PIECES)
    assert len(lines) == foretold.PIECES
    assert unpacked == [foretold.PIECES * foretold.BYTES]
    assert share == pytest.approx(path.stat().st_size / (20 << 20), rel=0.05)
