"""Queries that only number the judgments never pass for rankings; those that are rankings stay as they are."""

import csv
import gzip
import json

import numpy as np
import pytest

import concordant as cc
from concordant.apps.commands import main as command_line
from concordant.errors import UsageError
from concordant.io.ingest import Store
from concordant.preferences.pooling import scattered
from conftest import SMALL, shared_data
from seeds import seed

MODELS = ["a", "b", "c", "d"]


def main(words):
    try:
        command_line(words)
    except SystemExit as end:
        return end.code or 0
    return 0


def battles(number: int = 60, each: int = 1) -> dict[str, list[str]]:
    draw = np.random.default_rng(seed(0))
    found: dict[str, list[str]] = {name: [] for name in ("question_id", "model_a", "model_b", "winner", "worker")}
    for at in range(number):
        one, other = draw.choice(MODELS, 2, replace=False)
        for _ in range(each):
            winner = str(draw.choice(["model_a", "model_b", "tie"]))
            for column, value in zip(found, (f"q{at}", one, other, winner, f"w{at % 7}"), strict=True):
                found[column].append(str(value))
    return found


def written(path, table):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([list(table), *zip(*table.values(), strict=True)])
    return str(path)


@pytest.mark.parametrize("each", [1, 3])
def test_battles_are_one_ranking(each):
    table = battles(each=each)
    votes, apart = cc.read(table), cc.read(table, pool=False)
    assert len(votes.queries) == 1 and len(apart.queries) == 60 and votes == apart.pool() == cc.read(table, pool=True)
    note = next(note for note in votes.notes if getattr(note, "code", "") == "pooled")
    assert "60 queries ('question_id')" in note and "pool=False" in note
    assert not any(getattr(note, "code", "") == "pooled" for note in cc.read(table, pool=True).notes)


def test_a_column_that_was_named_is_asked_about():
    table = battles()
    with pytest.raises(UsageError, match=r"60 queries \('question_id'\).*pool=True.*pool=False"):
        cc.read(table, columns={"query": "question_id"})
    assert len(cc.read(table, columns={"query": "question_id"}, pool=True).queries) == 1
    with pytest.raises(UsageError, match="pool must be"):
        cc.read(table, pool="yes")


def test_what_is_kept_apart_is_said_by_who_ranks_it():
    apart = cc.read(battles(), pool=False)
    for found in (cc.rank(apart), cc.audit(apart, replicates=0)):
        assert any("no rankings to speak of" in note for note in found.notes)
    assert not any("no rankings" in note for note in cc.rank(apart.pool()).notes)


def several(queries, items, judgments):
    """Judgments of queries: ``items`` are those of all, or a function that names those of one."""
    rows = []
    for q in range(queries):
        draw, there = np.random.default_rng(q), items(q) if callable(items) else items
        rows += [(q, *draw.choice(there, 2, replace=False)) for _ in range(judgments)]
    query, winner, loser = zip(*rows, strict=True)
    return cc.Preferences.from_comparisons(list(winner), list(loser), query=list(query))


def test_queries_that_are_rankings_stay():
    assert scattered(several(40, MODELS, 1))
    assert not scattered(several(9, MODELS, 1))  # too few for the items to recur by more than accident
    assert not scattered(several(40, MODELS, 8))  # judged again and again
    assert not scattered(several(40, MODELS[:2], 8))  # so are these, of one pair each
    assert not scattered(several(40, lambda q: [f"{q}+", f"{q}-"], 1))  # items of their own, as answers to a prompt
    few = several(40, MODELS, 1)
    more = several(30, MODELS, 30)
    large = cc.Preferences.from_comparisons(
        more.items.take(more.winner), more.items.take(more.loser), query=more.query + 100, count=more.count
    )
    assert not scattered(few + large)  # most judgments are of queries with rankings
    users, films = np.repeat(np.arange(40), 6), np.tile(np.arange(6), 40)
    assert not scattered(cc.Preferences.from_ratings(users, films, (users * films) % 5))
    assert not scattered(cc.Preferences.empty())


@pytest.mark.parametrize("command", ["rank", "audit", "compare", "tree", "explain", "report"])
def test_every_command_says_so(command, tmp_path, capsys):
    log, page = written(tmp_path / "battles.csv", battles()), str(tmp_path / "page.html")
    (tmp_path / "f.csv").write_text("item,size\n" + "".join(f"{one},{at * at}\n" for at, one in enumerate(MODELS)))
    more = {
        "audit": ["--replicates", "0"], "tree": ["--by", "worker"], "explain": ["-f", str(tmp_path / "f.csv")],
        "report": ["--no-audit", "-o", page], "rank": ["--interval", "none"],
    }.get(command, [])  # fmt: skip
    assert main([command, log, *more]) == 0
    said = capsys.readouterr().err
    assert said.count("60 queries ('question_id')") == 1 and "--no-pool" in said
    assert main([command, log, "--query", "question_id", *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "(--pool)" in said and "(--no-pool)" in said and said.count("\n") == 1
    assert main([command, log, "--query", "question_id", "--pool", *more]) == 0


def test_a_fit_keeps_queries_that_its_features_have(tmp_path, capsys):
    table = battles()
    log = written(tmp_path / "battles.csv", table)
    rows = {(q, m) for q, *both in zip(*(table[c] for c in ("question_id", "model_a", "model_b"))) for m in both}
    lines = sorted(f"{q},{m},{len(m) + at % 5}" for at, (q, m) in enumerate(sorted(rows)))
    (tmp_path / "answers.csv").write_text("\n".join(["query,item,size", *lines]))
    (tmp_path / "models.csv").write_text("item,size\n" + "".join(f"{one},{at}\n" for at, one in enumerate(MODELS)))
    for features, queries in (("answers.csv", "60 queries"), ("models.csv", "1 query")):
        model = str(tmp_path / f"model of {features}")
        assert main(["fit", log, "-f", str(tmp_path / features), "-m", model, "--structure", "log-odds"]) == 0
        said = capsys.readouterr().err
        assert f"comparisons, {queries}" in said and ("--no-pool" in said) == (queries == "1 query")


def test_a_store_keeps_the_queries_and_its_reader_pools_them(tmp_path, capsys):
    log, store = written(tmp_path / "battles.csv", battles()), str(tmp_path / "battles.store")
    assert main(["ingest", log, "--store", store]) == 0
    assert len(Store.open(store).preferences().queries) == 60
    assert cc.read(store) == cc.read(log) and cc.read(store, pool=False) == cc.read(log, pool=False)
    capsys.readouterr()
    assert main(["ingest", log, "--store", store, "--pool"]) == 2
    assert "a store keeps the queries" in capsys.readouterr().err


def test_arena_by_default():
    path = shared_data("arena_judges") / "human.jsonl.gz"
    votes = cc.read(path)
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    assert (len(votes.queries), len(votes.items), len(votes)) == (1, 20, len(rows))
    assert cc.rank(votes, interval="none").to_arrow()["item"][0].as_py() == "gpt-4"


def test_real_logs_of_many_queries_stay():
    people = cc.read(f"{cc.__path__[0]}/apps/data/llmfao/crowd-comparisons.csv", columns={"query": "prompt"})
    documents = cc.read(SMALL / "clueweb09" / "votes.csv.gz")
    assert len(people.queries) == 13 and len(documents.queries) > 30


def test_a_pair_that_three_annotators_judged_is_no_ranking_either():
    with gzip.open(SMALL / "pandalm" / "annotators.csv.gz", "rt") as file:
        lines = list(csv.DictReader(file))
    rows = [(one["idx"], *one["cmp_key"].split("_"), one[f"annotator{n}"]) for one in lines for n in "123"]
    query, left, right, said = map(list, zip(*rows, strict=True))
    table = {"query": query, "left": left, "right": right, "outcome": said}
    votes = cc.read(table, columns={"outcomes": "1=left,2=right", "tie_values": "0"})
    assert (len(votes.queries), len(votes.items), len(votes)) == (1, 5, 2997)
    ties = said.count("0")
    assert votes.summary()["ties"] == ties > 100
