"""The first sentences of a report: each says what the ranking and the audit of the same log say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.counterexamples import known_counterexample

SURE = [("a", "b")] * 400 + [("b", "a")] * 20 + [("b", "c")] * 400 + [("c", "b")] * 20
UNSURE = [("a", "b"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "a")]


def said(pairs, query=None, **options):
    votes = cc.Preferences.from_comparisons(*zip(*pairs, strict=True), query)
    data = cc.report(votes, **{"audit": False, **options}).data
    return [
        "".join(part if isinstance(part, str) else f"<{data['items'][part]}>" for part in parts)
        for parts in data["in_short"]
    ]


def test_who_is_surely_first():
    assert said(SURE) == ["<a> is first of 3 items, and surely so: no other rank is possible at 95% confidence."]
    assert "at 99.9% confidence" in said(SURE, level=0.999)[0]


def test_who_is_not_surely_first_and_how_many_could_be():
    assert said(UNSURE) == [
        "<a> has the best score of 3 items, but is not surely first: none of the 2 other items can be ruled out as the "
        "best at 95% confidence."
    ]
    some = [*UNSURE, *[("b", "d")] * 300, *[("d", "b")] * 3, *[("c", "d")] * 300, *[("a", "d")] * 300]
    assert "2 of the 3 other items cannot be ruled out as the best at 95% confidence." in said(some)[0]
    assert "the other item cannot be ruled out" in said([("a", "b"), ("a", "b"), ("b", "a")])[0]


def test_the_chance_of_being_first_and_who_may_be_first_are_one_sentence():
    [text, *_] = said(UNSURE * 3, audit=True)
    assert re.match(
        r"<a> has the best score of 3 items and is the best with a probability of \d\d% given these judgments, but "
        r"none of the 2 other items can be ruled out at 95% confidence, which has to hold whatever the truth is\.$",
        text,
    )


def test_scores_of_no_likelihood_have_ranges_of_ranks():
    found = said(UNSURE, structure="borda")
    assert "its rank may be anything from 1 to 3." in found[0]
    assert found[1] == "None of the 2 other items can be told from it by these judgments."


def test_what_was_not_computed_is_not_said():
    assert said(UNSURE, interval="none") == ["<a> has the best score of 3 items; how sure that is was not computed."]


def test_equal_scores_share_the_first_place():
    assert said([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"), ("c", "a"), ("c", "b")])[0] == (
        "<a> and 2 others share the best score of 3 items."
    )


def test_a_score_without_limit_is_pointed_out():
    assert (
        said([*[("a", "b"), ("a", "c")] * 9, ("b", "c"), ("c", "b")])[1]
        == "<a> never lost: only the prior keeps its score finite."
    )


def test_groups_that_nothing_compares():
    found = said([*SURE, ("x", "y"), ("y", "x")])
    assert found[0].startswith("<a> is first of 3 items of the largest group")
    assert found[1] == (
        "The items fall into 2 groups that were never compared with each other: nothing says how an item of one stands "
        "to an item of another. The largest holds 3 of 5 items."
    )


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (SURE, ["No majorities run in a circle: the ranking agrees with every one of them."]),
        (
            [("a", "b"), ("b", "c"), ("c", "a")] * 2,
            [
                "Majorities run in circles (A over B, B over C, C over A), so that no order agrees with all, but "
                "chance alone could have made that.",
                "The ranking goes against 1 of the 3 majorities.",
            ],
        ),
        (
            [("a", "b"), ("b", "c"), ("c", "a")] * 40,
            [
                "Majorities run in circles (A over B, B over C, C over A), so that no order agrees with all, and that "
                "is more than chance.",
                "The ranking goes against 1 of the 3 majorities.",
            ],
        ),
    ],
)
def test_circles_of_majorities(pairs, expected):
    assert said(pairs, audit=True)[-len(expected) :] == expected


def test_a_ranking_against_the_majority_says_so():
    """Theorem 3: the logistic loss puts 3 before 2, whom the majority prefers."""
    data = cc.report(known_counterexample("theorem-3").preferences).data
    [text] = data["in_short"][-1]
    assert text == (
        "No majorities run in a circle: an order agrees with every one of them, but the ranking shown goes against 1 "
        "of 3."
    )


def test_queries_are_counted_where_there_are_several():
    apart = [(f"{x}2", f"{y}2") for x, y in UNSURE]
    found = said([*SURE, *apart], ["p"] * len(SURE) + ["q"] * len(apart))
    assert found[0].startswith("In query “p”, the most judged, <a> is first of 3 items")
    assert found[-1] == "Query by query, in 1 of 2 the first item can be told from all others."
    rng = np.random.default_rng(0)
    same = [UNSURE[i] for i in rng.integers(0, len(UNSURE), 30)]
    assert said([*SURE, *same], ["p"] * len(SURE) + ["q"] * 30)[0].startswith("Over all queries, <a>")
