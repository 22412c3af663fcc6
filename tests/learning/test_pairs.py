"""Pairs to train a reward model on: counted by hand, the registry's difference graph, what stands in the file."""

import csv
import json
from collections import Counter
from importlib.resources import files
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.losses.surrogates import surrogate
from conftest import shared_data
from seeds import seed

LLMFAO = files("concordant.apps") / "data" / "llmfao"


def drawn(number, votes=120):
    """Votes of several people: prompt, two answers, who won, its strength, how often."""
    rng = np.random.default_rng(seed(number))
    rows = []
    for _ in range(votes):
        prompt = f"prompt {rng.integers(6)}"
        one, other = rng.choice([f"{prompt}: {letter}" for letter in "abcd"], 2, replace=False)
        outcome = ["left", "right", "tie"][rng.choice(3, p=[0.45, 0.4, 0.15])]
        rows.append((prompt, one, other, outcome, int(rng.integers(1, 4))))
    return rows


def columns(rows, *more):
    names = ("prompt", "left", "right", "winner", "count", *more)
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def by_hand(rows, text=lambda _, item: item):
    """(prompt, chosen, rejected) → weight, votes."""
    signed, votes = Counter(), Counter()
    for prompt, one, other, outcome, count in rows:
        one, other = text(prompt, one), text(prompt, other)
        if one == other:
            continue
        low, high = sorted((one, other))
        votes[prompt, low, high] += count
        if outcome != "tie":
            signed[prompt, low, high] += count if (outcome == "left") == (one == low) else -count
    found = {}
    for (prompt, low, high), of in votes.items():
        net = signed[prompt, low, high]
        pair = (low, high) if net > 0 else (high, low)
        if net:
            found[prompt, *pair] = abs(net), of
    return found


def as_dict(found):
    rows = found.to_arrow().to_pylist()
    return {(one["prompt"], one["chosen"], one["rejected"]): (one["weight"], one["votes"]) for one in rows}


# -- the numbers -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", range(6))
def test_counted_by_hand(number):
    rows = drawn(number)
    found = cc.pairs(columns(rows))
    expected = by_hand(rows)
    assert as_dict(found) == expected and len(found) == len(expected)
    assert found.weight == sum(weight for weight, _ in expected.values())
    ties = sum(row[4] for row in rows if row[3] == "tie")
    assert (found.votes, found.ties) == (sum(row[4] for row in rows), ties)
    assert found.cancelled == found.votes - ties - found.weight


@pytest.mark.parametrize("number", range(3))
def test_the_best_of_all_orders(number):
    """The ceiling is that of the best order of each prompt's answers, all of them tried."""
    rows = drawn(number)
    best = 0.0
    for prompt in {row[0] for row in rows}:
        of = [row for row in rows if row[0] == prompt]
        items = sorted({item for row in of for item in row[1:3]})
        best += max(
            sum(
                count
                * (0.5 if outcome == "tie" else float((order.index(one) < order.index(other)) == (outcome == "left")))
                for _, one, other, outcome, count in of
            )
            for order in permutations(items)
        )
    assert cc.pairs(columns(rows)).ceiling == pytest.approx(best / sum(row[4] for row in rows), rel=1e-12)


@pytest.mark.parametrize("kind", ["comparisons", "weighted", "orders"])
def test_the_loss_is_that_of_the_difference_graph(kind):
    """Σ weight φ is what the registry has: the mean loss of each prompt times its judgments."""
    rng = np.random.default_rng(seed(5))
    if kind == "orders":
        log = {"query": [], "judge": [], "item": [], "rank": []}
        for judge in range(25):
            items = rng.choice(list("abcdef"), 4, replace=False)
            for rank, item in enumerate(items, 1):
                for name, value in zip(log, (f"q{judge % 3}", judge, item, min(rank, 3)), strict=True):
                    log[name].append(value)
        options = {"kind": "orders"}
    else:
        log, options = columns(drawn(9)), {}
        if kind == "weighted":
            log["weight"] = rng.choice([0.1, 0.2, 0.3], len(log["left"])).tolist()
        log["query"] = log.pop("prompt")
    prefs = cc.read(log, **options)
    batch = cc.Batch.whole(prefs)
    alpha = rng.normal(size=len(batch.item))
    risk = surrogate("difference-graph").objective(batch).value(alpha)
    reward = {
        (prefs.queries[query], prefs.items[item]): value
        for query, item, value in zip(batch.owner, batch.item, alpha, strict=True)
    }
    found = cc.pairs(log, **options)
    name = next(name for name in found.table.column_names if name in ("prompt", "query"))
    total = sum(
        row["weight"] * np.log1p(np.exp(reward[row[name], row["rejected"]] - reward[row[name], row["chosen"]]))
        for row in found.to_arrow().to_pylist()
    )
    assert total == pytest.approx((batch.judgments * risk).sum(), rel=1e-12)


def test_strengths_that_cancel_but_for_rounding_are_level():
    log = {
        "prompt": ["p"] * 4,
        "winner": ["a", "a", "b", "a"],
        "loser": ["b", "b", "a", "c"],
        "weight": [0.1, 0.2, 0.3, 1],
    }
    found = cc.pairs(log)
    assert as_dict(found) == {("p", "a", "c"): (1, 1)} and found.level == 1
    kept = cc.pairs(log, level=True)
    assert as_dict(kept)["p", "a", "b"] == (0.0, pytest.approx(0.6))
    assert kept.weight == found.weight


# -- texts -------------------------------------------------------------------------------------------------------------
def test_answers_with_one_text_are_one_answer():
    rows = [(prompt, one[-1], other[-1], outcome, count) for prompt, one, other, outcome, count in drawn(3)]
    said = lambda prompt, item: "same" if item in "ab" and prompt < "prompt 3" else f"{item} of {prompt}"  # noqa: E731
    prompts = sorted({row[0] for row in rows})
    texts = [{"prompt": p, "model": m, "answer": said(p, m)} for p in prompts for m in "abcd"]
    found = cc.pairs(columns(rows), texts={name: [row[name] for row in texts] for name in texts[0]})
    assert as_dict(found) == by_hand(rows, said)
    equal = sum(row[4] for row in rows if said(row[0], row[1]) == said(row[0], row[2]))
    assert equal and any(f"{equal} votes compare answers with the same text" in note for note in found.notes)


def test_names_and_numbers_are_said_to_be_no_texts():
    found = cc.pairs(str(LLMFAO / "crowd-comparisons.csv"))
    assert found.table.column_names == ["prompt_id", "chosen", "rejected", "weight", "votes"]
    said = "\n".join(found.notes)
    assert "59 items recur on 13 prompts, as names of systems do" in said
    assert "the column 'prompt' numbers the prompts" in said and "435 pairs have as many votes" in said


def test_shipped_votes():
    """LLMFAO, counted from the file by plain Python."""
    with (LLMFAO / "crowd-comparisons.csv").open(encoding="utf-8") as file:
        rows = [(row["prompt"], row["left"], row["right"], row["winner"], 1) for row in csv.DictReader(file)]
    found = cc.pairs(str(LLMFAO / "crowd-comparisons.csv"), prompts=str(LLMFAO / "prompts.jsonl"))
    with (LLMFAO / "prompts.jsonl").open(encoding="utf-8") as file:
        asked = {str(row["id"]): row["text"] for row in map(json.loads, file)}
    expected = {(asked[prompt], *sides): numbers for (prompt, *sides), numbers in by_hand(rows).items()}
    assert as_dict(found) == expected
    assert (len(found), found.weight, found.votes, found.ties, found.cancelled) == (1704, 3736, 8931, 3471, 1724)


def test_texts_of_a_real_set():
    texts = shared_data("llmfao") / "results.jsonl"
    found = cc.pairs(str(LLMFAO / "crowd-comparisons.csv"), texts=str(texts), prompts=str(LLMFAO / "prompts.jsonl"))
    with texts.open(encoding="utf-8") as file:
        said = {(str(row["prompt"]), row["name"]): row["result"] for row in map(json.loads, file)}
    with (LLMFAO / "crowd-comparisons.csv").open(encoding="utf-8") as file:
        rows = [(row["prompt"], row["left"], row["right"], row["winner"], 1) for row in csv.DictReader(file)]
    expected = by_hand(rows, lambda prompt, item: said[prompt, item])
    assert sorted(as_dict(found).values()) == sorted(expected.values())
    assert {key[1:] for key in as_dict(found)} == {key[1:] for key in expected}
    assert (len(found), found.weight, found.cancelled) == (1517, 3712, 1748)


USER, YES, NO = (
    {"role": role, "content": text} for role, text in (("user", "Hi?"), ("assistant", "yes"), ("assistant", "no"))
)
SPOKEN = [{"role": "user", "content": "Hi?"}]


@pytest.mark.parametrize(
    ("prompt", "yes", "no", "expected"),
    [
        ([USER], [YES], [NO], (SPOKEN, [YES], [NO])),  # as trainers take it
        ("Hi?", [YES], [NO], (SPOKEN, [YES], [NO])),
        ([USER], "yes", "no", (SPOKEN, [YES], [NO])),
        ("Hi?", "yes", "no", ("Hi?", "yes", "no")),
        ("Hi?", [USER, YES], [USER, NO], (None, [USER, YES], [USER, NO])),
        ([USER], [USER, YES], [USER, NO], (None, [USER, YES], [USER, NO])),
        (None, [USER, YES], [USER, NO], (None, [USER, YES], [USER, NO])),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet", "table"])
def test_messages_stay_messages(tmp_path, prompt, yes, no, expected, form):
    rows = [{"prompt": prompt, "chosen": yes, "rejected": no}] * 2 + [{"prompt": prompt, "chosen": no, "rejected": yes}]
    rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    log = {name: [row[name] for row in rows] for name in rows[0]}
    if form == "jsonl":
        log = tmp_path / "votes.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "parquet":
        log = tmp_path / "votes.parquet"
        pq.write_table(pa.Table.from_pylist(rows), log)
    found = cc.pairs(log)
    (row,) = found.to_arrow().to_pylist()
    assert (row.get("prompt"), row["chosen"], row["rejected"]) == expected
    assert (row["weight"], row["votes"]) == (1, 3)
    said = "\n".join(found.notes)
    assert ("the answers begin with what was asked" in said) == (expected[0] is None and prompt is not None)
    assert ("no column of the log is its prompt" in said) == (prompt is None)


def test_a_store_keeps_no_conversations(tmp_path):
    log = tmp_path / "votes.jsonl"
    log.write_text(json.dumps({"query": "Hi?", "chosen": [YES], "rejected": [NO]}) + "\n")
    cc.Store(tmp_path / "v.store").ingest(str(log))
    with pytest.raises(InputError, match="labels of conversations, not the conversations"):
        cc.pairs(str(tmp_path / "v.store"))


# -- what can go wrong -------------------------------------------------------------------------------------------------
def test_attacks():
    with pytest.raises(InputError, match="nothing is left to train on: all 2 votes cancel"):
        cc.pairs({"prompt": ["p", "p"], "chosen": ["a", "b"], "rejected": ["b", "a"]})
    ties = {"prompt": ["p", "p"], "left": ["a", "b"], "right": ["b", "a"], "winner": ["tie", "tie"]}
    with pytest.raises(InputError, match="nothing is left"):
        cc.pairs(ties)
    assert cc.pairs(ties, level=True).to_arrow().to_pylist() == [
        {"prompt": "p", "chosen": "a", "rejected": "b", "weight": 0, "votes": 2}
    ]
    with pytest.raises(InputError, match="compare an item with itself"):
        cc.pairs({"prompt": ["p", "p"], "chosen": ["a", "b"], "rejected": ["b", "b"]})
    one = cc.pairs({"prompt": ["p", "p"], "chosen": ["a", ""], "rejected": ["", "b"]})  # empty texts are answers
    assert as_dict(one) == {("p", "a", ""): (1, 1), ("p", "", "b"): (1, 1)}
    assert any("nothing cancels, and the loss of these pairs is the usual one" in note for note in one.notes)
    log = {"prompt": ["p", "q"], "chosen": ["a", "a"], "rejected": ["b", "b"]}
    with pytest.raises(InputError, match="nothing is left to train on: 2 votes compare answers with the same text"):
        cc.pairs(log, texts={"item": ["a", "b"], "text": ["same", "same"]}, level=True)
    texts = {"prompt": ["p", "p", "q"], "item": ["a", "b", "a"], "text": ["1", "2", "3"]}
    with pytest.raises(
        InputError, match="1 of 2 votes are on answers or prompts without a text, such as item 'b' of query 'q'"
    ):
        cc.pairs(log, texts=texts)
    left = cc.pairs(log, texts=texts, on_error="skip")
    assert as_dict(left) == {("p", "1", "2"): (1, 1)} and any("1 vote on answers" in note for note in left.notes)
    with pytest.raises(InputError, match="two texts stand for 'a', 'p'"):
        cc.pairs(
            log, texts={name: [*column, column[0]] for name, column in texts.items()} | {"text": ["1", "2", "3", "4"]}
        )
    with pytest.raises(InputError, match="no column holds the items of the log, such as 'a', 'b'"):
        cc.pairs(log, texts={"item": ["x"], "text": ["1"]})
    with pytest.raises(InputError, match="no column holds texts; known names: 'text', 'answer'"):
        cc.pairs(log, texts={"item": ["a"], "said": ["1"]})
    with pytest.raises(InputError, match="no column holds the queries of the log"):
        cc.pairs(log, prompts={"id": ["x"], "text": ["1"]})
    with pytest.raises(UsageError, match="the log has no query"):
        cc.pairs({"chosen": ["a"], "rejected": ["b"]}, prompts={"id": ["x"], "text": ["1"]})
