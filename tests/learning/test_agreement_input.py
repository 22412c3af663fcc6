"""What reward data may hold: identical answers, empty texts, features that tell nothing apart, scores that are none."""

from __future__ import annotations

import numpy as np
import pytest

import concordant as cc
from concordant.errors import InputError, UsageError

torch = pytest.importorskip("torch")
ct = pytest.importorskip("concordant.torch")


def votes_of(*rows):
    winner, loser, who = zip(*rows)
    return cc.Preferences.from_comparisons(winner, loser, cluster=who)


AGREED = votes_of(*((a, b, who) for a, b in ("ab", "bc", "ac") for who in "uvw"))


def test_identical_answers_are_refused_with_what_leaves_them_out():
    log = {"prompt": ["p"] * 3, "chosen": ["x", "x", "x"], "rejected": ["x", "y", "y"]}
    with pytest.raises(InputError, match=r"1 of 3 rows compare an item with itself .*on_error='skip' leaves identical"):
        cc.pairs(log)
    assert cc.pairs(log, on_error="skip").votes == 2


def test_ties_are_no_votes_that_cancel():
    log = {"prompt": ["p"] * 2, "left": ["x", "x"], "right": ["y", "y"], "winner": ["tie", "tie"]}
    with pytest.raises(InputError, match="all 2 votes are ties"):
        cc.pairs(log)


def test_empty_prompts_are_said():
    found = cc.pairs({"prompt": ["", " ", "p"], "chosen": ["x", "x", "x"], "rejected": ["y", "y", "y"]})
    assert "2 prompts are empty, or nothing but white space" in map(str, found.notes)


def test_items_with_equal_features_are_named():
    rows = {"item": ["a", "b", "c"], "x": [1.0, 1.0, 0.0]}
    notes = cc.CopelandRanker().fit(rows, AGREED).status_["notes"]
    assert any("1 of 3 pairs with a majority are of items with equal features" in str(note) for note in notes)
    assert any(str(note).endswith("'a' above 'b'") for note in notes)
    audit = cc.axiom_audit(AGREED, {"a": 1.0, "b": 0.5, "c": 0.0}, rows)
    assert any("of items with equal features" in str(note) and "a before b" in str(note) for note in audit.notes)
    apart = cc.axiom_audit(AGREED, {"a": 1.0, "b": 0.5, "c": 0.0}, rows | {"x": [1.0, 0.5, 0.0]})
    assert not any("equal features" in str(note) for note in apart.notes)


def test_features_of_one_value_tell_camps_and_spreads_nothing():
    rows = {"item": ["a", "b", "c"], "x": [1.0] * 3, "y": [2.0] * 3}
    with pytest.raises(InputError, match="camps of features tell none apart"):
        cc.camps(AGREED, features=rows)
    with pytest.raises(InputError, match="means and spreads of features tell none apart"):
        cc.distributional(AGREED, rows)


@pytest.mark.parametrize(
    ("scorer", "problem", "said"),
    [
        (lambda _, items: ["x"] * len(items), UsageError, "the scorer returned no numbers"),
        (lambda _, items: [np.inf] * len(items), InputError, "3 of 3 scores are infinite"),
        (lambda *_: [1.0], UsageError, "1 scores for 3 rows"),
        ({}, InputError, "there are no scores"),
        ({"item": [], "score": []}, InputError, "there are no scores"),
        ({"a": np.inf, "b": 0.0, "c": 0.0}, InputError, "1 of 3 scores are infinite"),
        ({"z": 1.0}, InputError, "none of the judged items has a score"),
    ],
)
def test_scores_that_are_none_are_refused(scorer, problem, said):
    with pytest.raises(problem, match=said):
        cc.axiom_audit(AGREED, scorer)


def test_prompts_may_be_lists_of_messages():
    prompts = [[{"role": "user", "content": text}] for text in "abab"]
    assert [sorted(batch) for batch in ct.PromptBatches(prompts, 2, shuffle=False)] == [[0, 2], [1, 3]]


def test_rewards_that_are_no_numbers_have_no_accuracy():
    found = ct.vote_metrics(torch.tensor([1.0, torch.nan]), torch.zeros(2), torch.tensor([1.0, 1.0]), torch.ones(2))
    assert found.pop("vote_ceiling") == 1.0 and np.isnan([*found.values()]).all()
