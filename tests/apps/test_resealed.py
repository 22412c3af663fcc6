"""Models that somebody changed and sealed again: refused, or scored as the numbers in them say, and never a crash."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concordant as cc
from concordant.apps.models.directory import Contents, write_directory
from concordant.apps.models.regressors import Trees, booster_text, booster_trees
from concordant.errors import InputError
from concordant.io.log.json_values import Fields, json_value
from resealed import kept_files, models, plain_scores, stored, write_sealed

CASES = 340


def test_changed_models_are_refused_or_scored_as_they_say() -> None:
    """In a process of its own, which native code could end; ``resealed.py SEED NUMBER`` runs more."""
    command = [sys.executable, str(Path(__file__).parents[1] / "resealed.py"), "14", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-1500:]
    said = json.loads(done.stdout)
    assert said["failures"] == [] and said["cases"] == CASES
    for outcome in ("refused", "same", "other scores"):
        assert sum(number for name, number in said.items() if name.endswith(outcome)) > 10


# -- trees -------------------------------------------------------------------------------------------------------------
def trees(**columns: Any) -> Trees:
    """A tree of one split and two leaves, with some of its columns replaced."""
    arrays: dict[str, Any] = {
        "root": np.array([0]),
        "feature": np.array([0, 0, 0]),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "left": np.array([1, 1, 2]),
        "right": np.array([2, 1, 2]),
        "missing_left": np.array([True, False, False]),
        "value": np.array([0.0, -1.0, 2.0]),
    }
    values = {"base": 0.25, "scale": 2.0, "single": False}
    values |= {name: columns.pop(name) for name in list(columns) if name in values}
    return Trees.from_state(values, arrays | columns)


def test_a_tree_is_read() -> None:
    assert trees().predict(np.array([[0.5], [0.6], [np.nan]])).tolist() == [-1.75, 4.25, -1.75]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"value": np.array([0.0, np.inf, 2.0])}, "not finite"),
        ({"value": np.array([0.0, np.nan, 2.0])}, "not finite"),
        ({"threshold": np.array([np.nan, 0.0, 0.0])}, "not finite"),
        ({"base": float("inf")}, "finite number"),
        ({"base": True}, "must be a number, not True"),
        ({"single": 1}, "true or false, not 1"),
        ({"scale": "2"}, "must be a number, not '2'"),
        ({"left": np.array([1, 1, 1])}, "above its parent"),
        ({"left": np.array([2, 1, 2])}, "two parents"),
        ({"left": np.array([0, 1, 2])}, "one child"),
        ({"root": np.array([0, 0])}, "two parents"),
        ({"root": np.array([1.0])}, "do not go together"),
        ({"root": np.array([[0]])}, "do not go together"),
        ({"root": np.array([3])}, "not there"),
        ({"feature": np.array([-1, 0, 0])}, "not there"),
        ({"value": np.array([0.0, 1.0])}, "do not go together"),
        ({"value": np.array(["a", "b", "c"])}, "do not go together"),
    ],
)
def test_what_is_no_tree_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trees(**columns)


def test_ten_million_trees_and_endless_levels_are_refused_at_once() -> None:
    many = 10**7
    own, zero = np.arange(many), np.zeros(many)
    leaves = {"feature": own * 0, "threshold": zero, "left": own, "right": own, "missing_left": zero > 0, "value": zero}
    with pytest.raises(InputError, match=r"10,000,000 trees; at most 100,000"):
        trees(root=own, **leaves)
    deep = 30_001  # a chain: node 2k splits into leaf 2k + 1 and node 2k + 2
    own = np.arange(2 * deep + 1)
    inner = (own % 2 == 0) & (own < 2 * deep)
    chain = {"left": np.where(inner, own + 1, own), "right": np.where(inner, own + 2, own), "feature": own * 0}
    with pytest.raises(InputError, match=r"more than 10,000 levels"):
        trees(**chain, threshold=own * 0.0, missing_left=own < 0, value=own * 0.0)
    net = np.arange(64)  # each node is the child of two: paths double with every level
    twice = {"left": np.minimum(net + 1, 63), "right": np.minimum(net + 2, 63), "feature": net * 0}
    with pytest.raises(InputError, match="two parents"):  # else a walk over 2^60 paths
        trees(**twice, threshold=net * 0.0, missing_left=net < 0, value=net * 0.0)


# -- boosters ----------------------------------------------------------------------------------------------------------
def test_a_booster_kept_by_its_text_never_reaches_its_package(tmp_path: Path, monkeypatch: Any) -> None:
    """LightGBM ends the process on a text like the third; here each is one line or the scores of the text."""
    lightgbm = pytest.importorskip("lightgbm")
    ranker = models()["lightgbm"]
    text = booster_text(ranker.foreign_)[1]
    monkeypatch.setattr(lightgbm, "Booster", None)
    base = {name: data for name, data in kept_files(ranker, tmp_path).items() if not name.startswith("regressor-")}
    state = json.loads(base["model.json"])
    state["regressor"] = {"kind": "booster", "class": "x", "values": {"package": "lightgbm"}}
    X = np.random.default_rng(0).normal(size=(5, 3))
    for changed, said in (
        (text, None),
        (text.replace("num_leaves=", "num_leaves=9", 1), "leaves with"),
        (text.replace("left_child=", "left_child=7", 1), "a child that is not there|entries for"),
        (text.replace("leaf_value=", "leaf_value=inf ", 1), "leaves with|not finite"),
        (text.replace("tree_sizes=", "tree_sizes=1 "), "speaks of"),
        (text.replace("Tree=1", "Tree=2", 1), "stands in the place"),
        (text.replace("decision_type=2", "decision_type=3", 1), "cat_boundaries"),
        (text.replace("\n", "\nnum_class=1\n", 1), "twice"),
        ("", "KeyError"),
    ):
        array = np.frombuffer(changed.encode(), np.uint8)
        files = base | {"model.json": json.dumps(state).encode(), "regressor-text.npy": stored(array)}
        write_sealed(files, tmp_path / "old")
        if said is None:
            assert np.array_equal(cc.load_model(tmp_path / "old").predict(X), ranker.predict(X))
        else:
            with pytest.raises(cc.ConcordantError, match=said):
                cc.load_model(tmp_path / "old")
    with pytest.raises(InputError, match="known are 'lightgbm', 'xgboost'"):
        booster_trees("antigravity", text)


# -- arrays and documents ----------------------------------------------------------------------------------------------
def npy(header: str, data: bytes) -> bytes:
    """An array's file with any header."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }", "cannot be read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", "in 8 bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", "in 8 bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", "in 8 bytes"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", "cannot be read"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "an array of object"),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (), }", "complex128"),
        ("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", "datetime64"),
        ("__import__('os').system('true')", "cannot be read"),
    ],
)
def test_the_header_of_an_array_is_not_believed(tmp_path: Path, header: str, said: str) -> None:
    files = kept_files(models()["edges"], tmp_path) | {"coef.npy": npy(header, bytes(8))}
    write_sealed(files, tmp_path / "changed")
    with pytest.raises(InputError, match=said):
        cc.load_model(tmp_path / "changed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1, "a": 2}', "'a' occurs twice in one object"),
        (b'[{"b": {"a": 1, "c": 0, "a": 1}}]', "'a' occurs twice in one object"),
        (b"[NaN]", "NaN is no number of JSON"),
        (b"-Infinity", "-Infinity is no number of JSON"),
        (b"[1e400]", "the number 1e400 is beyond float64"),
        (b"9" * 5000, "a number of 5,000 digits"),
        (b'"\\ud800"', "invalid encoding: .* half of a surrogate pair"),
        (b'{"\\udc00x": 1}', "invalid encoding: .* half of a surrogate pair"),
        (b'"\xff"', r"not UTF-8 \(byte 2\)"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b"{} {}", "Extra data"),
        (b"", "Expecting value"),
        (b"{'a': 1}", "not valid JSON"),
        (b'"a\nb"', "Invalid control character"),
    ],
)
def test_json_that_readers_understand_differently_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(InputError, match=f"^x.json (is|holds) .*{said}"):
        json_value(text, "x.json")


def test_json_comes_back() -> None:
    value = {"a": [1, -2.5e-7, True, None, "\U0001f600 é \u2028", {}], "": {"b": 2**62}}
    for ascii_only in (True, False):
        assert json_value(json.dumps(value, ensure_ascii=ascii_only).encode(), "x") == value


@pytest.mark.parametrize(
    ("ask", "value"),
    [
        *((lambda x: x.number("a"), value) for value in (True, "1", None, 10**400, float("nan"), [])),
        *((lambda x: x.whole("a"), value) for value in (True, 1.0, -1, 2**63, "1")),
        *((lambda x: x.flag("a"), value) for value in (0, 1, "true", None)),
        *((lambda x: x.text("a", ("b",)), value) for value in ("c", 1, None, ["b"])),
        *((lambda x: x.numbers("a"), value) for value in ([1, True], ["1"], "12", None, [float("inf")])),
        *((lambda x: x.wholes("a"), value) for value in ([True], [-1], [1.0])),
        *((lambda x: x.texts("a"), value) for value in ("ab", [1])),
        *((lambda x: x.fields("a"), value) for value in ([], "x", None)),
    ],
)
def test_a_field_is_taken_only_as_what_it_must_be(ask: Any, value: Any) -> None:
    with pytest.raises(InputError, match="the state"):
        ask(Fields({"a": value}, "the state"))
    with pytest.raises(InputError, match="a is missing"):
        ask(Fields({}, "the state"))


def test_the_plain_reader_of_these_tests_sees_what_was_fitted(tmp_path: Path) -> None:
    """The oracle of this page is tried on scores of scikit-learn's own objects, not of ours."""
    ranker = models()["forest"]
    X = np.random.default_rng(1).normal(size=(6, 3))
    normalised = (X - ranker.normaliser_.mean) / ranker.normaliser_.scale
    wanted = ranker.foreign_.predict(normalised) * ranker.regressor_unit_
    assert np.allclose(plain_scores(kept_files(ranker, tmp_path), X), wanted, rtol=1e-9)


def test_a_model_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    files = kept_files(models()["edges"], tmp_path)
    document = files["model.json"].decode()
    assert '"log": true' in document
    files["model.json"] = document.replace('"log": true', '"log": true, "log": false').encode()
    write_sealed(files, tmp_path / "changed")
    with pytest.raises(InputError, match="'log' occurs twice in one object"):
        cc.load_model(tmp_path / "changed")


def test_scores_beyond_all_numbers_are_refused() -> None:
    for kind in ("linear", "ridge"):
        ranker = copy.deepcopy(models()[kind])
        ranker.normaliser_.scale[:] = 1e-300
        with pytest.raises(
            InputError, match=r"1 of 2 rows have features so large that their scores are not finite \(first: row 2"
        ):
            ranker.predict(np.array([ranker.normaliser_.mean, [1e200] * 3]))


def test_contents_of_a_directory_without_a_model_are_said(tmp_path: Path) -> None:
    write_directory(tmp_path / "model", Contents({"format": True, "concordant": "x"}))
    with pytest.raises(InputError, match="a model of format True"):
        cc.load_model(tmp_path / "model")
