"""Real logs, read directly or after a conversion that is written out here; counts from their descriptions."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import concordant
from concordant import Preferences
from concordant.errors import InputError
from concordant.io.read import read, read_log
from concordant.ranking.ranked_lists import several_clicks

Data = Callable[[str], Path]
LLMFAO = Path(str(files(concordant) / "apps" / "data" / "llmfao"))
ENGINES = ("duckdb", "memory")


def rows_of(path: Path) -> list[dict[str, str]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("engine", ENGINES)
def test_llmfao(engine: str) -> None:
    path = LLMFAO / "crowd-comparisons.csv"
    facts = read(path, engine=engine, columns={"query": "prompt"}, cluster="worker").summary()
    assert {name: facts[name] for name in ("kind", "queries", "items", "judgments", "ties", "clusters")} == {
        "kind": "comparisons",
        "queries": 13,
        "items": 59,
        "judgments": 8931,
        "ties": 3471,
        "clusters": 124,
    }
    assert read(path, engine=engine).summary()["queries"] == 1, "prompt is no alias: it may hold a text"


def test_llmfao_counts_what_the_rows_say() -> None:
    path = LLMFAO / "crowd-comparisons.csv"
    expected: Counter[tuple[str, str, bool]] = Counter()
    for row in rows_of(path):
        pair = (row["left"], row["right"])
        if row["winner"] == "tie":
            expected[(*sorted(pair), True)] += 1  # type: ignore[index]
        else:
            expected[(*(pair if row["winner"] == "left" else pair[::-1]), False)] += 1
    prefs = read(path)
    assert prefs.winner is not None and prefs.loser is not None and prefs.tie is not None
    found = {
        (prefs.items[prefs.winner[j]], prefs.items[prefs.loser[j]], bool(prefs.tie[j])): int(prefs.count[j])
        for j in range(prefs.distinct)
    }
    assert found == expected


def test_gpt4_votes_on_the_same_pairs() -> None:
    prefs = read(LLMFAO / "gpt4-crowd-comparisons.csv", columns={"query": "prompt"})
    assert len(prefs) == len(rows_of(LLMFAO / "gpt4-crowd-comparisons.csv"))


@pytest.mark.parametrize(("name", "rows", "items"), [("food.csv", 30, 5), ("simple.csv", 16, 5)])
def test_evalica(small_data: Path, name: str, rows: int, items: int) -> None:
    path = small_data / "evalica" / name
    prefs = read(path)
    assert len(prefs) == rows == len(rows_of(path))
    assert len(prefs.items) == items
    assert prefs == read(path, engine="memory")


def test_prd_verdicts(small_data: Path) -> None:
    """1: the first, 2: the second, 3: a tie; the 3 has to be said in words."""
    path = small_data / "prd_vicuna80" / "ratings.csv.gz"
    with pytest.raises(InputError, match=r"rows have an unknown outcome \(line \d+: '3'"):
        read(path, columns={"outcome": "score"})
    rows = rows_of(path)
    words = {"1": "left", "2": "right", "3": "tie"}
    log = {name: [row[name] for row in rows] for name in ("model_a", "model_b", "question_id")}
    prefs = read({**log, "winner": [words[row["score"]] for row in rows]})
    assert (len(prefs), len(prefs.queries)) == (7040, 80)
    assert prefs.summary()["ties"] == sum(row["score"] == "3" for row in rows)


def test_pandalm_verdicts(small_data: Path) -> None:
    rows = rows_of(small_data / "pandalm" / "annotators.csv.gz")
    long = [
        (row["idx"], *row["cmp_key"].split("_", 1), {"0": "draw", "1": "left", "2": "right"}[row[who]], who)
        for row in rows
        for who in ("annotator1", "annotator2", "annotator3")
    ]
    names = ("query", "left", "right", "winner", "who")
    prefs = read(dict(zip(names, map(list, zip(*long, strict=True)), strict=True)), cluster="who")
    assert len(prefs) == 3 * 999
    assert prefs.clusters is not None and len(prefs.clusters) == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_football_of_four_years(small_data: Path, engine: str) -> None:
    path = small_data / "international_football" / "results-2022-07-20-to-2026-07-19.csv.gz"
    rows = rows_of(path)
    prefs = read(path, home="left", engine=engine)
    assert len(prefs) == len(rows)
    assert prefs.summary()["ties"] == sum(row["home_score"] == row["away_score"] for row in rows)
    assert prefs.covariates is not None
    neutral = int(prefs.count[prefs.covariates[:, 0] == 0].sum())
    assert neutral == sum(row["neutral"] == "TRUE" for row in rows)
    home = int(prefs.count[(prefs.covariates[:, 0] == 1) & ~prefs.tie].sum())  # type: ignore[operator]
    assert home == sum(int(r["home_score"]) > int(r["away_score"]) for r in rows if r["neutral"] == "FALSE")


def test_all_football(shared_data: Data) -> None:
    prefs = read(shared_data("international_football/results.csv"))
    assert (len(prefs), len(prefs.items)) == (49_520, 337)
    shootouts = read(shared_data("international_football/shootouts.csv"))
    assert shootouts.summary()["ties"] == 0, "here the outcome is the name of the winning team"


def test_baseball(shared_data: Data) -> None:
    path = shared_data("r_classics/BradleyTerry2.baseball.csv")
    prefs = read(path, home="left")
    rows = rows_of(path)
    assert len(prefs) == sum(int(row["home.wins"]) + int(row["away.wins"]) for row in rows) == 273


def test_ice_hockey(shared_data: Data) -> None:
    """The visitor stands first and home.ice says whether the opponent played at home."""
    path = shared_data("r_classics/BradleyTerry2.icehockey.csv")
    roles = {"left": "opponent", "right": "visitor", "left_score": "o_goals", "right_score": "v_goals"}
    prefs = read(path, columns=roles, covariates=())
    rows = rows_of(path)
    assert len(prefs) == len(rows)
    assert prefs.summary()["ties"] == sum(row["v_goals"] == row["o_goals"] for row in rows)


def test_chameleons(shared_data: Data) -> None:
    winners = rows_of(shared_data("r_classics/BradleyTerry2.chameleons.winner.csv"))
    losers = rows_of(shared_data("r_classics/BradleyTerry2.chameleons.loser.csv"))
    names = ("prev.wins.1", "prev.wins.2", "prev.wins.all")
    difference = {
        name: [float(w[name]) - float(x[name]) for w, x in zip(winners, losers, strict=True)] for name in names
    }
    log = {"winner": [row["ID"] for row in winners], "loser": [row["ID"] for row in losers], **difference}
    prefs = read(log, covariates=names)
    assert len(prefs) == len(winners) == 106
    assert prefs.covariate_names == names
    assert prefs.covariates is not None
    np.testing.assert_allclose(prefs.count @ prefs.covariates, [sum(column) for column in difference.values()])


def test_movielens_small(shared_data: Data) -> None:
    path = shared_data("ml-latest-small/ratings.csv")
    prefs = read(path)
    assert prefs.summary() == {
        "kind": "ratings",
        "queries": 671,
        "items": 9066,
        "judgments": 671,
        "distinct": 671,
        "entries": 100_004,
    }
    one_query = read(path, columns={"judgment": "userId"})
    assert (len(one_query.queries), len(one_query)) == (1, 671)


def test_movielens_100k(shared_data: Data, tmp_path: Path) -> None:
    """u.data has no header: it gets one here."""
    with_header = tmp_path / "u.tsv"
    with_header.write_bytes(b"user\titem\trating\ttime\n" + shared_data("ml-100k/u.data").read_bytes())
    prefs = read(with_header)
    assert (len(prefs.queries), len(prefs.items), prefs.summary()["entries"]) == (943, 1682, 100_000)


def sogou(path: Path) -> dict[str, list[int]]:
    log: dict[str, list[int]] = {name: [] for name in ("query", "session", "position", "item", "clicked")}
    for session, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        query, items, clicks = line.split("\t")[:3]
        for position, (item, click) in enumerate(zip(items.split(), clicks.split(), strict=True), 1):
            for name, value in zip(log, (query, session, position, item, click), strict=True):
                log[name].append(int(value))
    return log


def test_sogou_clicks(shared_data: Data) -> None:
    folder = shared_data("clicks_sogou_clickmodel_wc")
    train, test = sogou(folder / "train_data"), sogou(folder / "test_data")
    shift = train["session"][-1] + 1
    test["session"] = [session + shift for session in test["session"]]
    log = {name: train[name] + test[name] for name in train}
    with pytest.raises(InputError, match=r"1,970 of 8,809 lists have more than one click.*'first' or .*'last'.*'skip'"):
        read(log, clicks="raise")
    assert several_clicks(read(log)) == 1970
    skipped = read_log(log, clicks="skip")
    assert len(skipped.preferences) == 8809 - 1970
    for clicks in ("first", "last"):
        prefs = read(log, clicks=clicks)
        assert len(prefs) == 8809
        assert prefs == read(log, clicks=clicks, engine="duckdb")
        per_session: dict[int, list[int]] = {}
        for session, position, clicked in zip(log["session"], log["position"], log["clicked"], strict=True):
            per_session.setdefault(session, [])
            if clicked:
                per_session[session].append(position)
        chosen = [min(found) if clicks == "first" else max(found) for found in per_session.values() if found]
        place = np.arange(len(prefs.list_value)) - np.repeat(prefs.list_start[:-1], np.diff(prefs.list_start))
        often = np.repeat(prefs.count, np.diff(prefs.list_start))
        clicked_at = np.bincount(place[prefs.list_value == 1], weights=often[prefs.list_value == 1], minlength=10)
        assert clicked_at.tolist() == np.bincount(chosen, minlength=11)[1:].tolist()


def test_open_bandit(shared_data: Data) -> None:
    """Each row is one item shown at one of three places: a list of one, clicked or not."""
    path = shared_data("open_bandit_small/random/all/all.csv")
    prefs = read(path, columns={"session": ""})
    assert prefs.kind == "selections"
    rows = rows_of(path)
    assert len(prefs) == len(rows) == 10_000
    assert int(((prefs.list_value > 0) * prefs.count).sum()) == sum(int(row["click"]) for row in rows)


@pytest.mark.parametrize(
    ("name", "rows", "queries"), [("mq2008/S1.txt", 2933, 157), ("clueweb09_webis/Fold1.test.txt", None, 12)]
)
def test_letor(shared_data: Data, name: str, rows: int | None, queries: int) -> None:
    path = shared_data(name)
    lines = [line for line in io.StringIO(path.read_text(encoding="utf-8")) if line.strip()]
    prefs = read(path)
    assert prefs.kind == "ratings"
    assert prefs.summary()["entries"] == len(lines) == (rows or len(lines))
    assert len(prefs) == len(prefs.queries) == queries
    assert Counter(prefs.list_value.tolist()) == Counter(float(line.split()[0]) for line in lines)


def test_the_same_file_read_twice_is_twice_the_votes(small_data: Path) -> None:
    food = read(small_data / "evalica" / "food.csv")
    assert (food + food).count.tolist() == (2 * food.count).tolist()
    assert food + Preferences.empty() == food
