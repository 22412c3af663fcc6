"""The first sentences of a report: each says what the ranking and the audit of the same log say."""

from __future__ import annotations

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.counterexamples import known_counterexample

SURE = [("a", "b")] * 400 + [("b", "a")] * 20 + [("b", "c")] * 400 + [("c", "b")] * 20
UNSURE = [("a", "b"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "a")]


NO_TIERS = "There are no tiers: nowhere can a line be drawn with all above it better than all below at 95% confidence."


def said(pairs, query=None, **options):
    votes = cc.Preferences.from_comparisons(*zip(*pairs, strict=True), query)
    data = cc.report(votes, **{"audit": False, **options}).data
    return [
        "".join(part if isinstance(part, str) else f"<{data['items'][part]}>" for part in parts)
        for parts in data["in_short"]
    ]


def test_who_is_surely_first():
    assert said(SURE) == [
        "<a> is first of 3 items, and surely so: no other rank is possible at 95% confidence.",
        "This rests on 840 judgments: an item is in 420 to 840 of them, <a> in 420.",
        "There are 3 tiers: of two items in different tiers the one in the better tier is better, for all such pairs "
        "at once at 95% confidence. Within a tier the judgments do not settle the order.",
    ]
    assert "at 99.9% confidence" in said(SURE, level=0.999)[0]


def test_who_is_not_surely_first_and_how_many_could_be():
    assert said(UNSURE) == [
        "<a> has the best score of 3 items, but is not surely first: none of the 2 other items can be ruled out as the "
        "best at 95% confidence.",
        "This rests on 7 judgments: an item is in 4 to 5 of them, <a> in 5.",
        NO_TIERS,
    ]
    some = [*UNSURE, *[("b", "d")] * 300, *[("d", "b")] * 3, *[("c", "d")] * 300, *[("a", "d")] * 300]
    assert "2 of the 3 other items cannot be ruled out as the best at 95% confidence." in said(some)[0]
    assert "the other item cannot be ruled out" in said([("a", "b"), ("a", "b"), ("b", "a")])[0]


def test_one_statement_is_made_about_the_first_place():
    """Neither the chance of being first nor the audit's word on it stands beside who may be the best."""
    assert said(UNSURE * 3, audit=True)[0] == said(UNSURE * 3)[0]
    votes = cc.Preferences.from_comparisons(*zip(*(UNSURE * 3), strict=True))
    data = cc.report(votes).data
    assert any("First place" in line for line in cc.audit(votes).summary)
    lines = [*data["audit"]["lines"], *data["views"][0]["audit"]["lines"]]
    assert lines and not any("First place" in line for line in lines)
    among = cc.rank(votes).rank_sets("top", top=1).to_pylist()
    assert data["may_lead"] == [at for at, row in enumerate(among) if row["among_first"]]


def test_when_the_judgments_were_made_is_said():
    votes = cc.Preferences.from_comparisons(list("aab"), list("bcc"), time=["2024-03-02", "2023-12-31", "2024-01-05"])
    sentences = ["".join(map(str, parts)) for parts in cc.report(votes, audit=False).data["in_short"]]
    assert "This rests on 3 judgments made from 2023-12-31 to 2024-03-02: each item is in 2 of them." in sentences


def test_scores_of_no_likelihood_have_ranges_of_ranks():
    found = said(UNSURE, structure="borda")
    assert "its rank may be anything from 1 to 3." in found[0]
    assert found[1] == "None of the 2 other items can be told from it by these judgments."


def test_what_was_not_computed_is_not_said():
    assert said(UNSURE, interval="none")[0] == "<a> has the best score of 3 items; how sure that is was not computed."
    assert not any("tiers" in text for text in said(UNSURE, interval="none"))


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
    assert found[3] == (
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
