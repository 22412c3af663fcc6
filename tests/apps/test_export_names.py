"""Names of features, models and logs that try to be code where a model is exported to: data there, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml
from markdown_it import MarkdownIt

import concordant as cc
from concordant.apps.export.card import escaped
from concordant.io.log.json_values import json_value
from exported import LINEAR, NETWORKS, TREES, elasticsearch_score, fitted, held_out, json_score, solr_score

PIECES = [
    *("=", "\n", "\r", "\t", "\x00", "\x1b[31m", "\x7f", "\u2028", "\u2029", "\u202e", "\u200b", "\ufeff"),
    *("\xa0", "a", "b", " ", "x" * 500),
]
CASES = 60


def name_of(random: Random) -> str:
    """A hostile name; of most of them every character can be printed."""
    pieces = (
        PIECES if random.random() < 0.25 else [piece for piece in PIECES if piece.isprintable() and piece.strip(" ,=")]
    )
    return "".join(random.choice(pieces) for _ in range(random.randrange(1, 6)))


def names_of(random: Random, number: int) -> list[str]:
    """Names that differ, one to three of them hostile."""
    found = [f"feature {place}" for place in range(number)]
    for _ in range(random.randrange(1, 4)):
        found[random.randrange(number)] = name_of(random)
    return found


@pytest.fixture(scope="module")
def scorers() -> dict[str, Any]:
    """A linear scorer, trees and a network."""
    return {next(iter(group)): fitted(next(iter(group))) for group in (LINEAR, TREES, NETWORKS)}


def said_once(error: Exception) -> None:
    assert "\n" not in str(error) and str(error).isprintable() and len(str(error)) < 6000, str(error)


@pytest.mark.parametrize("to", ["json", "elasticsearch", "solr", "onnx"])
def test_hostile_names_are_data_where_they_go_or_refused(to: str, scorers: dict[str, Any], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime") if to == "onnx" else None
    random, X = Random(26), held_out()[:4]
    X = np.where(np.isnan(X), 0.0, X)
    outcomes = {"written": 0, "refused": 0}
    for case in range(CASES):
        kind = sorted(scorers)[case % len(scorers)]
        names, called = names_of(random, X.shape[1]), name_of(random)
        place = tmp_path / f"{case}"
        try:
            cc.export_model(scorers[kind], place, to=to, name=called, feature_names=names)
        except cc.ConcordantError as error:
            said_once(error)
            assert not place.exists()
            outcomes["refused"] += 1
            continue
        outcomes["written"] += 1
        wanted = scorers[kind].predict(X)
        rows = [dict(zip(names, row)) for row in X.tolist()]
        if onnxruntime is not None:
            session = onnxruntime.InferenceSession(place.read_bytes())
            meta = session.get_modelmeta()
            assert json_value(meta.custom_metadata_map["features"], "names") == names
            assert meta.description.startswith(f"{called}: ")
            assert np.allclose(session.run(None, {"features": X})[0], wanted, rtol=1e-9, atol=1e-9)
            continue
        body = json_value(place.read_bytes(), "the file")  # strict: one reading, no name twice
        if to == "json":
            assert body["features"] == names and body["name"] == called
            assert np.allclose([json_score(body, row) for row in X], wanted, rtol=1e-9, atol=1e-9)
        elif to == "elasticsearch":
            assert body["model"]["name"] == called and set(body) == {"model"}
            inner = json_value(body["model"]["model"]["definition"], "the definition")
            assert kind not in LINEAR or list(inner) == names
            found = [elasticsearch_score(body, row, np.float64) for row in rows]
            assert _differences(found, wanted)
        else:
            assert body["name"] == called and [one["name"] for one in body["features"]] == names
            assert body["class"].startswith("org.apache.solr.ltr.model.")
            assert _differences([solr_score(body, row, np.float64) for row in rows], wanted)
    assert outcomes["refused"] > 5 and outcomes["written"] > 5, outcomes


def _differences(found: list[float], wanted: np.ndarray) -> bool:
    """Search engines may leave out a constant."""
    return bool(np.allclose(np.diff(found), np.diff(wanted), rtol=1e-3, atol=1e-4))


def test_hostile_texts_on_a_card_are_texts() -> None:
    """Whatever a model, a log, a licence or a feature is called: one head, the same markup as with plain names."""
    random = Random(5)
    votes = cc.Preferences.from_comparisons(["b", "c", "c", "a"], ["a", "b", "a", "b"])

    def tags(text: str, names: list[str]) -> tuple[list[str], dict[str, Any], str]:
        table = {"item": ["a", "b", "c"], **dict(zip(names, ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0])))}
        ranker = cc.EdgeRanker("ranknet").fit(table, votes)
        ranker.status_["notes"] = [text]
        card = cc.model_card(
            ranker, judgments=votes, held_out=votes, features=cc.read_features(table), name=text, license=text,
            audit=False, called={"judgments": text, "held_out": text},
        )  # fmt: skip
        _, head, body = card.split("---\n", 2) if card.count("\n---\n") == 1 else pytest.fail(card)
        types = [token.type for token in MarkdownIt("js-default").parse(body)]
        return types, yaml.safe_load(head), body

    plain, _, _ = tags("plain", ["x1", "x2"])
    refused = 0
    for _ in range(120):
        text, names = name_of(random), names_of(random, 2)
        try:
            types, head, body = tags(text, names)
        except cc.ConcordantError as error:
            said_once(error)
            refused += 1
            continue
        if not escaped(text):  # nothing that could be seen, such as a mark of byte order
            continue
        assert types == plain, text
        assert head["license"] == text and head["model-index"][0]["name"] == text
        assert "\x1b" not in body and "<script" not in body and "<img" not in body
    assert refused < 60


def test_names_that_cannot_be_written_are_refused_when_they_come() -> None:
    with pytest.raises(cc.InputError, match=r"names of features are texts of Unicode, not '\\ud800'"):
        cc.Features.of([[1.0]], ["a"], names=["\ud800"])


def test_a_kept_model_gives_hostile_names_back(tmp_path: Path) -> None:
    random = Random(7)
    kept = 0
    for case in range(40):
        names = names_of(random, 3)
        try:
            features = cc.Features.of(np.array([[0.0, 1, 2], [1, 1, 4], [3, 0, 1]]), ["a", "b", "c"], names=names)
        except cc.InputError as error:  # half of a surrogate pair, a name twice
            said_once(error)
            continue
        ranker = cc.EdgeRanker("ranknet").fit(features, cc.Preferences.from_comparisons(["b", "c"], ["a", "b"]))
        log = name_of(random).replace("\ud800", "")
        again = cc.load_model(cc.save_model(ranker, tmp_path / f"{case}", about={"log": log}))
        assert again.feature_names_in_.tolist() == names
        assert again.predict(features).tolist() == ranker.predict(features).tolist()
        assert json.loads((tmp_path / f"{case}" / "model.json").read_bytes())["about"] == {"log": log}
        kept += 1
    assert kept > 25
