"""What outcomes mean where the usual words do not say it, names of columns, and items that are conversations."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.errors import Idle, InputError, UsageError
from concordant.preferences.layouts import canonical
from concordant.preferences.messages import message_label
from seeds import seed

LEFT, RIGHT = ["a", "a", "b", "c", "a"], ["b", "c", "c", "a", "b"]


def said(signs):
    """The comparisons by who won: 1 left, -1 right, 0 neither."""
    winner = [one if sign >= 0 else other for one, other, sign in zip(LEFT, RIGHT, signs, strict=True)]
    loser = [other if sign >= 0 else one for one, other, sign in zip(LEFT, RIGHT, signs, strict=True)]
    return cc.Preferences.from_comparisons(winner, loser, tie=[sign == 0 for sign in signs])


def log(outcome, tmp_path, kind):
    table = {"left": LEFT, "right": RIGHT, "outcome": outcome}
    if kind == "table":
        return table
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if kind == "jsonl":
        (tmp_path / "votes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    elif kind == "csv":
        lines = [",".join("" if one is None else str(one) for one in row.values()) for row in rows]
        (tmp_path / "votes.csv").write_text("\n".join([",".join(table), *lines]))
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "votes.parquet")
    return tmp_path / f"votes.{kind}"


CASES = [
    ([1, 2, 0, 0, 1], {"tie_values": "0"}, [1, -1, 0, 0, 1]),
    ([1.0, 2.0, 0.0, 0.0, 1.0], {"outcomes": "1=left,2=right,0=tie"}, [1, -1, 0, 0, 1]),
    ([2, 1, 0, 0, 2], {"outcomes": "2=first, 1=second", "tie_values": "0"}, [1, -1, 0, 0, 1]),
    (["left", "Both", "neither", "right", None], {"tie_values": "both,Neither,"}, [1, 0, 0, -1, 0]),
    (["A won", "B  Won", "a won", "same", "b won"], {"outcomes": "A won=left,b won=right,same=tie"}, [1, -1, 1, 0, -1]),
    (["a", "c", "b", "x=y", "b"], {"outcomes": "x=y=tie"}, [1, -1, 1, 0, -1]),
    (["b", "a", "b", "c", "b"], {"outcomes": "b=right"}, [-1, 1, -1, 1, -1]),  # goes before the item that it names
]  # fmt: skip


@pytest.mark.parametrize("kind", ["table", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("engine", ["duckdb", "memory"])
@pytest.mark.parametrize(("outcome", "given", "signs"), CASES)
def test_values_mean_what_is_said(outcome, given, signs, kind, engine, tmp_path):
    read = cc.read(log(outcome, tmp_path, kind), columns=given, engine=engine)
    assert read == said(signs)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"outcomes": "1=up"}, "not 'up'"),
        ({"outcomes": "left"}, "not 'left'"),
        ({"outcomes": "1=left", "tie_values": "1.0"}, "said to mean two outcomes"),
        ({"tie_values": 0}, "not int"),
    ],
)
def test_what_is_no_meaning_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        cc.read({"left": LEFT, "right": RIGHT, "outcome": [1, 2, 1, 2, 1]}, columns=given)


def test_it_is_never_ignored():
    for table in ({"winner": ["a"], "loser": ["b"]}, {"left": ["a"], "right": ["b"], "score_a": [1], "score_b": [2]}):
        with pytest.raises(Idle, match="tie_values does nothing here"):
            cc.read(table, columns={"tie_values": "0"})
    with pytest.raises(InputError, match=r"unknown outcome \(row 4: 3\).*'0', or the label"):
        cc.read({"left": LEFT, "right": RIGHT, "outcome": [1, 2, 0, 3, 1]}, columns={"tie_values": "0"})


def test_numbers_are_compared_as_numbers():
    assert canonical("1") == canonical(" 1.0") == canonical("+1.") != canonical("10")
    assert canonical("-0") == canonical("0.0") and canonical("1e1") == "1e1" and canonical(" A  b") == "a b"


def test_systems_that_are_preferred():
    read = cc.read({"system_a": LEFT, "system_b": RIGHT, "preferred": ["system_a", "B", "tie", "a", "system_b"]})
    assert read == said([1, -1, 0, -1, -1])  # the fourth names the item a, which is on the right


# -- conversations -------------------------------------------------------------------------------------------------
def talk(*texts):
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_conversations_are_items(engine, tmp_path):
    draw = np.random.default_rng(seed(0))
    texts = ["yes " * 40, "no\n\nthanks", "zwölf 🂡 \0 Boxkämpfer", "", "same end"]
    talks = [talk("hi", one) for one in texts] + [talk("Hello", "same end")]
    rows = [draw.choice(6, 2, replace=False) for _ in range(30)]
    asked = [{"chosen": talks[one], "rejected": talks[other]} for one, other in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, asked)))
    pq.write_table(pa.Table.from_pylist(asked), tmp_path / "pairs.parquet")
    names = [message_label(one) for one in talks]
    twin = cc.Preferences.from_comparisons([names[one] for one, _ in rows], [names[other] for _, other in rows])
    assert len(set(names)) == 6 and max(map(len, names)) <= 62 and names[1].startswith("no thanks #")
    assert (
        cc.read(tmp_path / "pairs.jsonl", engine=engine) == twin == cc.read(tmp_path / "pairs.parquet", engine=engine)
    )
    assert cc.read({"chosen": [one["chosen"] for one in asked], "rejected": [one["rejected"] for one in asked]}) == twin


def test_a_label_knows_the_whole_conversation():
    turned = [dict(reversed(one.items())) for one in talk("hi", "yes")]
    assert message_label(talk("hi", "yes")) == message_label(turned) != message_label(talk("ho", "yes"))
    parts = [{"role": "user", "content": [{"type": "text", "text": "what is"}, {"type": "image"}]}]
    assert str(message_label(parts)).startswith("what is #")
    assert str(message_label([{"from": "human", "value": "hi"}])).startswith("hi #")
    assert message_label([{"role": "user"}]) is None and message_label("hi") is None and message_label([]) is None
    with pytest.raises(InputError, match=r"neither a text nor an integer|list"):
        cc.read({"winner": [[1, 2]], "loser": [[3]]})


def test_all_words_for_a_tie_are_listed_where_an_outcome_is_unknown():
    with pytest.raises(InputError, match="unknown outcome") as caught:
        cc.read({"left": ["a"], "right": ["b"], "outcome": ["neither of them"]})
    listed = str(caught.value).partition("Allowed: ")[2].partition(", or the label")[0].split(", ")
    for word in ("tie", "draw", "drawn", "equal", "both bad", "both_bad", "bothbad", "tie (bothbad)"):
        assert word in listed
        assert cc.read({"left": ["a"], "right": ["b"], "outcome": [word]}).tie.tolist() == [True]
