"""Model cards: YAML and Markdown that hold, whatever users write; figures that are those of ``score`` and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import concordant as cc
from concordant.apps.export.card import escaped, quoted
from exported import REAL, fitted, learning

HOSTILE = [
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/a.png)",
    "https://evil.example www.evil.example a@evil.example",
    "---\nlicense: mit\n---",
    "| a | b |",
    "`code` **bold** ~~gone~~ $x$",
    "# heading",
    "1. one",
    "- two",
    "&lt;b&gt;",
    'quote " and \\ and \x1b[31m and \u202e',
]


def parts(card: str) -> tuple[dict[str, Any], str]:
    empty, head, body = card.split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(head), body


def html(text: str) -> str:
    return MarkdownIt("gfm-like", {"html": True}).render(text) if _linkify() else MarkdownIt("js-default").render(text)


def _linkify() -> bool:
    try:
        import linkify_it  # noqa: F401
    except ImportError:
        return False
    return True


def votes() -> tuple[cc.Preferences, dict[str, Any]]:
    winner, loser = ["b", "c", "c", "a"] * 5, ["a", "b", "a", "b"] * 5
    return cc.Preferences.from_comparisons(winner, loser), {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}


def test_what_a_card_holds() -> None:
    prefs, table = votes()
    features = cc.read_features(table)
    ranker = cc.EdgeRanker("ranknet").fit(features, prefs)
    labelled = (cc.Features.of([[1.0], [2.0], [3.0]], ["x", "y", "z"], ["q"] * 3, ["length"]), [0, 1, 2])
    card = cc.model_card(
        ranker, judgments=prefs, features=features, held_out=prefs, labels=labelled, name="lengths", license="mit"
    )
    head, body = parts(card)
    assert head["library_name"] == "concordant" and head["license"] == "mit"
    (entry,) = head["model-index"]
    assert entry["name"] == "lengths"
    found = {
        (result["dataset"]["name"], metric["type"]): metric["value"]
        for result in entry["results"]
        for metric in result["metrics"]
    }
    assert found["held-out labels", "ndcg@10"] == 1.0
    assert found["held-out judgments", "concordance"] == pytest.approx(ranker.score(features, prefs), abs=1e-6)
    assert head["metrics"] == ["ndcg@10", "map", "err@10", "concordance"]
    for section in ("Intended use", "Data", "How it was fitted", "Evaluation", "Audit", "Limits", "Citation"):
        assert f"## {section}" in body
    assert "20 judgments" in body and "| length |" in body
    assert all(escaped(line) in body for line in cc.audit(prefs).summary)


def test_without_data_it_says_so() -> None:
    head, body = parts(cc.model_card(fitted("hist")))
    assert "model-index" not in head and head["license"] == "unknown"
    assert "Not evaluated" in body and "no figures on data that it has not seen" in body and "not audited" in body
    assert "HistGradientBoostingRegressor" in body


def test_figures_are_those_of_the_metrics() -> None:
    test = cc.read_judged(REAL / "test.txt.gz")
    ranker = fitted("none")
    head, _ = parts(cc.model_card(ranker, labels=test))
    (result,) = head["model-index"][0]["results"]
    found = {metric["type"]: metric["value"] for metric in result["metrics"]}
    scores, query = ranker.predict(test[0]), test[0].query
    assert found["ndcg@10"] == pytest.approx(np.nanmean(cc.ndcg(scores, test[1], query, at=10)), abs=1e-6)
    assert found["map"] == pytest.approx(
        np.nanmean(cc.average_precision(scores, (test[1] > 0).astype(float), query)), abs=1e-6
    )


def test_every_kind_of_ranker_has_a_card() -> None:
    prefs, table = votes()
    rankers = [
        cc.RankBoostRanker(5).fit(table, prefs),
        cc.QueryRankers().fit(table, prefs),
        cc.AbstainingRanker(cc.EdgeRanker("ranknet").fit(table, prefs), gamma=0.1).fit(),
        cc.AggregationRanker("log-odds", order="all").fit(table, prefs),
    ]
    for ranker in rankers:
        assert type(ranker).__name__ in cc.model_card(ranker, audit=False)
    with pytest.raises(cc.UsageError, match="no ranker of concordant"):
        cc.model_card(object())
    with pytest.raises(cc.UsageError, match="needs the features"):
        cc.model_card(rankers[0], held_out=prefs, audit=False)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown(text: str) -> None:
    features, labels = learning()
    names = (text, *map(str, range(41)))
    named = cc.Features(features.X, features.items, features.item, features.queries, features.query, names)
    ranker = cc.ListRanker().fit(named, labels)
    ranker.status_ = {**ranker.status_, "notes": [text]}
    card = cc.model_card(ranker, name=text, license=text, labels=(named, labels), called={"labels": text})
    assert card.count("\n---\n") == 1 and "\x1b" not in card
    head, body = parts(card)
    assert head["license"] == text and head["model-index"][0]["name"] == text
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == text
    page = html(body)
    plain = html(
        parts(cc.model_card(cc.ListRanker().fit(features, labels), name="plain", labels=(features, labels)))[1]
    )
    for tag in ("<script", "<img", "<a ", "<h1", "<h2", "<ol", "<del", "<strong", "<td", "<table", "<hr"):
        assert page.count(tag) == plain.count(tag), tag


@settings(max_examples=200, deadline=None, database=None)
@given(st.text())
def test_any_text_is_one_scalar_of_yaml_and_one_paragraph(text: str) -> None:
    assert yaml.safe_load(f"a: {quoted(text)}") == {"a": text}
    shown = escaped(text)
    assert "\n" not in shown
    tokens = MarkdownIt("js-default").parse(shown)
    assert [one.type for one in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
    assert all(part.type in ("text", "text_special") for one in tokens for part in one.children or ())
