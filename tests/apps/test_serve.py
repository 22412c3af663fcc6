"""The application that serves a model: what the model says, within limits, and one clear line for everything else."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor

from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.models.saving import save_model
from concordant.apps.serve.app import create_app
from concordant.apps.serve.limits import ConcurrencyLimit, Limits
from concordant.errors import InputError, UsageError
from concordant.io.read import read
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.preferences.preferences import Preferences
from http_server import ask, check_schema
from running import exit_status

PATHS = ("/score", "/rank", "/compare")


@pytest.fixture(scope="module")
def documents(small_data: Path) -> Features:
    return read_features(small_data / "clueweb09" / "test.txt.gz")


@pytest.fixture(scope="module")
def ranker(small_data: Path) -> AggregationRanker:
    """A linear scorer of real documents, learned from votes."""
    folder = small_data / "clueweb09"
    train = read_features(folder / "train.txt.gz")
    return AggregationRanker("log-odds", order="all", ridge=1e-3).fit(train, read(folder / "votes.csv.gz"))


@pytest.fixture(scope="module")
def app(ranker: AggregationRanker, documents: Features) -> Any:
    return create_app(ranker, documents, name="documents")


@pytest.fixture(scope="module")
def small() -> tuple[Any, Any]:
    """A scorer of one feature, and three items."""
    votes = Preferences.from_comparisons(["b", "c", "c", "a"] * 5, ["a", "b", "a", "b"] * 5)
    items = {"item": ["a", "b", "c"], "length": [1.0, 1.1, 3.0]}
    return EdgeRanker("ranknet").fit(items, votes), items


@pytest.fixture(scope="module")
def small_app(small: tuple[Any, Any]) -> Any:
    return create_app(*small)


def by_query(features: Features, code: int) -> tuple[Any, list[Any], np.ndarray]:
    """A query, its items, and their rows."""
    rows = np.flatnonzero(features.query == code)
    return features.queries[code], features.items.take(features.item[rows]).to_pylist(), rows


# -- what the model says -----------------------------------------------------------------------------------------------
def test_scores_are_those_of_the_model(app, ranker, documents) -> None:
    expected = ranker.predict(documents)
    for code in (0, 7, 24):
        query, items, rows = by_query(documents, code)
        order = np.random.default_rng(code).permutation(len(items))
        asked = {"query": query, "items": [items[place] for place in order]}
        assert ask(app, "/score", asked).json()["scores"] == expected[rows][order].tolist()


def test_features_sent_with_a_request_get_the_same_scores(app, ranker, documents) -> None:
    expected = ranker.predict(documents)[:50].tolist()
    X = documents.X[:50]
    named = [dict(zip(reversed(documents.names), reversed(row), strict=True)) for row in X.tolist()]
    assert ask(app, "/score", {"features": X.tolist()}).json()["scores"] == expected
    assert ask(app, "/score", {"named_features": named}).json()["scores"] == expected


def test_ranks_are_those_of_concordant_score(app, ranker, small_data, tmp_path, capsys) -> None:
    save_model(ranker, tmp_path / "model")
    assert exit_status("score", "-m", tmp_path / "model", "-f", small_data / "clueweb09" / "test.txt.gz") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for query in (rows[0]["query"], rows[-1]["query"]):
        expected = {row["item"]: (float(row["score"]), int(row["rank"])) for row in rows if row["query"] == query}
        found = ask(app, "/rank", {"query": query, "items": sorted(expected)}).json()["ranking"]
        assert {row["item"]: (row["score"], row["rank"]) for row in found} == expected
        assert [row["rank"] for row in found] == sorted(row["rank"] for row in found)
        assert ask(app, "/rank", {"query": query, "items": sorted(expected), "top": 3}).json()["ranking"] == found[:3]


def test_equal_scores_share_a_rank_and_are_not_decided(small) -> None:
    app = create_app(small[0], {"item": ["a", "b", "c", "d"], "length": [1.0, 2.0, 1.0, 0.0]})
    found = ask(app, "/rank", {"items": ["d", "c", "b", "a"]}).json()["ranking"]
    assert [row["rank"] for row in found] == [1, 2, 2, 4]
    assert "tier" not in found[0]
    pair = ask(app, "/compare", {"pairs": [["a", "c"]]}).json()["comparisons"][0]
    assert (pair["answer"], pair["reason"], pair["difference"]) == ("declined", "equal scores", 0.0)


def test_tiers_go_with_their_items(small) -> None:
    app = create_app(AbstainingRanker(small[0], gamma=0.2).fit(), small[1])
    found = ask(app, "/rank", {"items": ["b", "c", "a"]}).json()["ranking"]
    assert [(row["item"], row["rank"], row["tier"]) for row in found] == [("c", 1, 1), ("b", 2, 2), ("a", 3, 2)]


def test_trees_and_missing_values(documents, small_data) -> None:
    folder = small_data / "clueweb09"
    train, votes = read_features(folder / "train.txt.gz"), read(folder / "votes.csv.gz")
    trees = GradientBoostingRegressor(n_estimators=5, random_state=0)
    ranker = AggregationRanker("log-odds", order="all", regressor=trees, missing="mean").fit(train, votes)
    app = create_app(ranker, documents)
    query, items, rows = by_query(documents, 3)
    expected = ranker.predict(documents)[rows].tolist()
    assert ask(app, "/score", {"query": query, "items": items}).json()["scores"] == expected
    X = documents.X[rows].copy()
    X[:, 3], X[2, 5] = np.nan, np.nan
    sent = [[None if np.isnan(value) else value for value in row] for row in X.tolist()]
    named = [{n: v for n, v in zip(documents.names, row, strict=True) if v is not None} for row in sent]
    expected = ranker.predict(replace(documents.take(rows), X=X)).tolist()
    assert ask(app, "/score", {"features": sent}).json()["scores"] == expected
    assert ask(app, "/score", {"named_features": named}).json()["scores"] == expected


@pytest.mark.parametrize(
    "rule", [{"share": 0.3, "cost": 0.2}, {"cost": 0.45, "by": "risk"}, {"gamma": 6.0, "norm": "2"}]
)
def test_declines_what_the_abstaining_ranker_declines(ranker, documents, rule, small_data) -> None:
    folder = small_data / "clueweb09"
    train, votes = read_features(folder / "train.txt.gz"), read(folder / "votes.csv.gz")
    careful = AbstainingRanker(ranker, **rule).fit(train, votes)
    app = create_app(careful, documents)
    query, items, rows = by_query(documents, 5)
    held = documents.take(rows)
    expected = dict(zip(items, careful.tiers(held).tolist(), strict=True))
    found = ask(app, "/rank", {"query": query, "items": items}).json()["ranking"]
    assert {row["item"]: row["tier"] for row in found} == expected
    a, b = np.triu_indices(len(items), 1)
    a, b = a[::3], b[::3]
    said = careful.explain_pairs(documents.take(rows[a]), documents.take(rows[b]))
    pairs = [[items[i], items[j]] for i, j in zip(a, b, strict=True)]
    for asked in ({"query": query, "pairs": pairs}, {"items": items, "features": held.X.tolist(), "pairs": pairs}):
        found = ask(app, "/compare", asked).json()
        answers = {1: "second", 0: "declined", -1: "first"}
        assert [one["answer"] for one in found["comparisons"]] == [answers[one] for one in said.decision.tolist()]
        assert [one["reason"] for one in found["comparisons"]] == said.reasons
        assert np.allclose([one["difference"] for one in found["comparisons"]], -said.difference, rtol=0, atol=1e-12)
        if careful.rule_.by == "distance":
            assert [one["distance"] for one in found["comparisons"]] == said.distance.tolist()
            assert found["rule"]["gamma"] == careful.rule_.gamma
    assert {"declined"} < {one["answer"] for one in found["comparisons"]}


def test_a_ranker_for_each_query(tmp_path, capsys) -> None:
    votes = Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["low", "high"])
    items = {"item": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}
    rankers = QueryRankers().fit(items, votes)
    app = create_app(rankers, items)
    assert ask(app, "/health", method="GET").json()["query"] is True
    for query, order in (("low", ["a", "b", "c"]), ("high", ["c", "b", "a"])):
        X = [[1.0], [2.0], [3.0]]
        expected = rankers.predict((X, [query] * 3, ["a", "b", "c"])).tolist()
        assert ask(app, "/score", {"query": query, "items": ["a", "b", "c"]}).json()["scores"] == expected
        assert ask(app, "/score", {"query": query, "features": X}).json()["scores"] == expected
        found = ask(app, "/rank", {"query": query, "items": ["a", "b", "c"]}).json()["ranking"]
        assert [row["item"] for row in found] == order
    save_model(rankers, tmp_path / "model")
    (tmp_path / "items.csv").write_text("query,item,size\nlow,a,1\nhigh,a,1\nhigh,b,2\n")
    assert exit_status("score", "-q", "-m", tmp_path / "model", "-f", tmp_path / "items.csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = [ask(app, "/score", {"query": row["query"], "items": [row["item"]]}).json()["scores"][0] for row in rows]
    assert found == [float(row["score"]) for row in rows] and [row["rank"] for row in rows] == ["1", "2", "1"]
    assert ask(app, "/score", {"query": "mid", "items": ["a"]}).status_code == 404
    assert ask(app, "/score", {"items": ["a"]}).status_code == 422


# -- labels ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("labels", [["1", "2", "07"], [1, 2, -7]])
def test_labels_are_matched_as_they_are_written(small, labels) -> None:
    app = create_app(small[0], {"item": labels, "length": [1.0, 2.0, 3.0]})
    expected = ask(app, "/score", {"items": labels}).json()["scores"]
    for one, two in ((1, "2"), ("1", 2)):
        assert ask(app, "/score", {"items": [one, two]}).json()["scores"] == expected[:2]
    for wrong in ("01", " 1", "1.0", "+1", "7", 7, "-07", "1_0", "１", 0, "0", 2**63 - 1, str(2**70), ""):
        answer = ask(app, "/score", {"items": [wrong]})
        assert answer.status_code == 404 and "1 of 1 items" in answer.json()["error"], wrong
    assert ask(app, "/score", {"items": [1, "1"]}).status_code == 422
    assert ask(app, "/rank", {"items": ["1", 2]}).json()["ranking"][1]["item"] == "1"  # as it was asked for


# -- what is refused ---------------------------------------------------------------------------------------------------
REFUSED = [
    (b"", 400, "not JSON"),
    (b"\xff\xfe\x00", 400, "not JSON"),
    (b"[" * 100_000, 400, "recursion limit"),
    (b'{"items":' + b"[" * 100_000, 400, "recursion limit"),
    (b'{"items":["a"]}{}', 400, "trailing characters"),
    ([], 422, "the body must be a JSON object, not an array"),
    (None, 400, "not JSON"),
    ({}, 422, "items is missing"),
    ({"items": "a"}, 422, "items: \"a\": it must be an array"),
    ({"items": ["a", 1.5]}, 422, "items[1]: 1.5: a label is a text or a 64-bit integer"),
    ({"items": [True]}, 422, "items[0]: true"),
    ({"items": [None]}, 422, "items[0]: null"),
    ({"items": [10**30]}, 422, "64-bit integer"),
    ({"items": ["a", "b", "a"]}, 422, "1 are there more than once: 'a'"),
    ({"items": ["x", "a", "y"]}, 404, "2 of 3 items are not among the loaded features: 'x', 'y'"),
    ({"items": [f"x{place}" for place in range(1001)]}, 422, "items has 1,001 entries; at most 1,000 are allowed"),
    ({"items": ["a"], "model": "/etc/passwd"}, 422, "unknown field 'model'; allowed are query, items"),
    ({"items": ["a"], "query": "q"}, 422, "leave it out"),
    ({"items": ["a"], "features": [[1], [2]]}, 422, "items has 1 labels and features 2 rows"),
    ({"items": ["a", "a"], "features": [[1], [2]]}, 422, "more than once"),
    ({"features": [[1]], "named_features": [{"length": 1}]}, 422, "leave one out"),
    ({"features": [[1, 2]]}, 422, "features[0] has 2 numbers; the model has 1 feature"),
    ({"features": [[]]}, 422, "features[0] has 0 numbers"),
    ({"features": [["x"]]}, 422, "features[0][0]: \"x\": a feature is a finite number"),
    ({"features": [[True]]}, 422, "features[0][0]: true"),
    ({"features": [[1.0], [None]]}, 422, "1 of 2 features are missing (first: 'length' of row 2)"),
    ({"features": [[1e308]]}, 422, "not finite"),
    ({"features": [[10**400]]}, 422, "a finite number"),
    (b'{"features":[[NaN]]}', 422, "a finite number"),
    (b'{"features":[[-Infinity]]}', 422, "a finite number"),
    (b'{"features":[[1e999]]}', 422, "a finite number"),
    ({"named_features": [{"size": 1}]}, 422, "unknown feature 'size'; the model was fitted on 1: 'length'"),
    ({"named_features": [{}]}, 422, "1 of 1 features are missing"),
    ({"named_features": [{"length": "x"}]}, 422, "named_features[0]['length']: \"x\""),
    ({"named_features": [{"length": 1, "size": 2}]}, 422, "at most 1"),
    ({"named_features": [[1]]}, 422, "an object of numbers by name"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "line"), REFUSED, ids=range(len(REFUSED)))
def test_refuses_with_one_clear_line(small_app, body, status, line) -> None:
    for path in ("/score", "/rank"):
        answer = ask(small_app, path, body)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert list(answer.json()) == ["error"] and line in answer.json()["error"]
        assert len(answer.json()["error"].splitlines()) == 1 and len(answer.text) < 500
    assert "top is a number" in ask(small_app, "/rank", {"items": ["a"], "top": 0}).json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "line"),
    [
        ({}, 422, "pairs is missing"),
        ({"pairs": ["a", "b"]}, 422, "pairs[0]: \"a\": a pair is an array of two labels"),
        ({"pairs": [["a", "b", "c"]]}, 422, "pairs[0]: a pair is an array of two labels"),
        ({"pairs": [["a"]]}, 422, "pairs[0]: a pair is an array of two labels"),
        ({"pairs": [["a", "a"]]}, 422, "name one item twice"),
        ({"pairs": [["a", "x"]]}, 404, "'x'"),
        ({"pairs": [["a", "b"]], "items": ["a", "b"]}, 422, "name pairs alone"),
        ({"pairs": [["a", "b"]], "features": [[1], [2]]}, 422, "items is missing"),
        ({"pairs": [["a", "c"]], "items": ["a", "b"], "features": [[1], [2]]}, 422, "1 labels are not among items"),
    ],
)  # fmt: skip
def test_refuses_pairs(small_app, body, status, line) -> None:
    answer = ask(small_app, "/compare", body)
    assert answer.status_code == status and line in answer.json()["error"], answer.text


def test_refuses_other_queries_and_items_of_them(app, documents) -> None:
    query, items, _ = by_query(documents, 0)
    other, theirs, _ = by_query(documents, 1)
    assert f"query 'x{query}' is not" in ask(app, "/rank", {"query": f"x{query}", "items": items}).json()["error"]
    assert "query is missing" in ask(app, "/rank", {"items": items}).json()["error"]
    only = sorted(set(theirs) - set(items))[:2]
    answer = ask(app, "/rank", {"query": query, "items": [items[0], *only]})
    assert answer.status_code == 404 and f"2 of 3 items of query {query!r}" in answer.json()["error"]
    assert ask(app, "/rank", {"query": other, "items": only}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/rank", {}, 405),
        ("PUT", "/score", {}, 405),
        ("DELETE", "/health", {}, 405),
        ("POST", "/health", {}, 405),
        ("GET", "/", {}, 404),
        ("GET", "/docs", {}, 404),
        ("POST", "/score/", {"content-type": "application/json"}, 404),
        ("GET", "/../../etc/passwd", {}, 404),
        ("POST", "/score", {}, 415),
        ("POST", "/score", {"content-type": "text/plain"}, 415),
        ("POST", "/score", {"content-type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/score", {"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ("POST", "/score", {"content-type": "application/json", "content-length": "99999999999999999999"}, 413),
        ("POST", "/score", {"content-type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
def test_refuses_other_paths_methods_and_types(small_app, method, path, headers, status) -> None:
    answer = ask(small_app, path, {"items": ["a"]}, method=method, headers=headers)
    assert answer.status_code == status
    assert list(answer.json()) == (["scores"] if status == 200 else ["error"])


def test_without_loaded_features_items_have_no_scores(small) -> None:
    app = create_app(small[0])
    assert "no features are loaded" in ask(app, "/rank", {"items": ["a"]}).json()["error"]
    assert ask(app, "/rank", {"features": [[1.0], [2.0]]}).json()["ranking"][0]["item"] == 2
    assert ask(app, "/health", method="GET").json()["loaded"] is None


def test_mounted_in_another_application_it_answers_there(small, small_app) -> None:
    outer = FastAPI()
    outer.mount("/ranker", create_app(*small))
    for path, status in (("/ranker/score", 200), ("/score", 404), ("/ranker/ranker/score", 404)):
        assert ask(outer, path, {"items": ["a"]}).status_code == status
    assert ask(outer, "/ranker/score", {"items": ["a"]}).json() == ask(small_app, "/score", {"items": ["a"]}).json()


def test_a_difference_beyond_all_numbers_is_refused(small_app) -> None:
    zero, one = ask(small_app, "/score", {"features": [[0], [1]]}).json()["scores"]
    x = 1.2e308 / max(abs(one - zero), 1.0)
    answer = ask(small_app, "/compare", {"items": ["p", "q"], "features": [[x], [-x]], "pairs": [["p", "q"]]})
    assert answer.status_code == 422 and "pairs: 1 are so far apart" in answer.text


def test_what_takes_long_is_worked_on_in_a_thread(small, monkeypatch) -> None:
    careful = AbstainingRanker(small[0], gamma=0.2).fit()
    own = [[float(place)] for place in range(200)]
    threads: list[Any] = []

    async def in_thread(work: Any, asked: Any) -> Any:
        threads.append(asked)
        return work(asked)

    monkeypatch.setattr("concordant.apps.serve.app.run_in_threadpool", in_thread)
    app = create_app(careful, small[1])
    for body, slow in (
        ({"items": ["a", "b"]}, False),
        ({"features": own[:100]}, False),
        ({"features": own}, True),
        ({"named_features": [{"length": x[0]} for x in own]}, True),
    ):
        assert ask(app, "/rank", body).status_code == 200
        assert bool(threads) is slow, body
        threads.clear()
    assert ask(app, "/compare", {"pairs": [["a", "b"]] * 200}).status_code == 200 and threads


def test_features_that_do_not_fit_are_refused_before_anything_is_served(small) -> None:
    with pytest.raises(InputError, match="lack 'length'"):
        create_app(small[0], {"item": ["a"], "width": [1.0]})
    with pytest.raises(InputError, match="not finite"):
        create_app(small[0], {"item": ["a", "b"], "length": [1.0, 1e308]})
    with pytest.raises(UsageError, match="at least 1"):
        Limits(concurrency=0)


# -- limits ------------------------------------------------------------------------------------------------------------
def _sent(app: Any, parts: list[bytes], *, pause: float = 0.0, path: str = "/score") -> tuple[int, dict[str, Any]]:
    """Send a body part by part, without saying how long it is."""
    answers: list[dict[str, Any]] = []
    waiting = list(parts)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    asyncio.run(app(scope | {"client": ("test", 1), "server": ("test", 1), "scheme": "http"}, receive, send))
    return answers[0]["status"], json.loads(answers[1]["body"])


def test_a_body_is_counted_while_it_arrives(small) -> None:
    app = create_app(*small, limits=Limits(body=100))
    assert _sent(app, [b'{"items"', b':["a"]}'])[0] == 200
    assert _sent(app, [b'{"items":["a"]', b" " * 86 + b"}"])[0] == 413  # 101 bytes
    assert _sent(app, [b'{"items":["a"]', b" " * 85 + b"}"])[0] == 200
    status, said = _sent(app, [b" " * 60] * 1000)
    assert status == 413 and "at most 100 are allowed" in said["error"]


def test_a_slow_body_is_not_waited_for(small) -> None:
    app = create_app(*small, limits=Limits(timeout=0.05))
    status, said = _sent(app, [b" "] * 50, pause=0.01)
    assert status == 408 and "within 0.05 s" in said["error"]


def test_a_client_that_goes_away_is_let_go(small) -> None:
    answers: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": "/score", "query_string": b""}
    scope |= {"headers": [(b"content-type", b"application/json")], "client": None, "server": None, "scheme": "http"}
    asyncio.run(create_app(*small)(scope, receive, send))
    assert answers[0]["status"] == 400


def test_the_gate_takes_so_many_at_once_and_refuses_the_others_at_once() -> None:
    inside, most, done = 0, 0, []

    async def slow(_: Any, __: Any, send: Any) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def flood() -> None:
        gate = ConcurrencyLimit(slow, 5)

        async def one(method: str) -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    done.append((method, message["status"], dict(message["headers"])))

            await gate({"type": "http", "method": method}, None, send)  # type: ignore[arg-type]

        await asyncio.gather(*(one("POST") for _ in range(50)), one("GET"))
        await one("POST")  # afterwards all is as before
        assert gate.inside == 0

    asyncio.run(flood())
    statuses = [status for method, status, _ in done if method == "POST"]
    assert (
        statuses.count(200) == 6 and statuses.count(503) == 45 and most == 6
    )  # five, and the one that asks for health
    assert ("GET", 200, {}) in done
    assert all(headers[b"retry-after"] == b"1" for _, status, headers in done if status == 503)
    assert statuses[0] == 503  # those refused do not wait for those taken


# -- OpenAPI -----------------------------------------------------------------------------------------------------------
def test_openapi_says_what_is_asked_and_answered(small) -> None:
    careful = AbstainingRanker(small[0], gamma=0.2).fit()
    for ranker in (small[0], careful):
        app = create_app(ranker, small[1])
        whole = ask(app, "/openapi.json", method="GET").json()
        posts = {path: whole["paths"][path]["post"] for path in PATHS}
        for path, post in posts.items():
            schema = post["requestBody"]["content"]["application/json"]
            assert post["requestBody"]["required"]
            bodies = [one["value"] for one in schema["examples"].values()]
            assert {"400", "404", "408", "413", "415", "422", "503"} <= set(post["responses"])
            for body in [*bodies, {"pairs": [["b", "a"]]} if path == "/compare" else {"items": []}]:
                check_schema(body, schema["schema"], whole)
                answer = ask(app, path, body)
                assert answer.status_code == 200, answer.text
                check_schema(answer.json(), _schema(post, 200), whole)
            for body, status, _ in REFUSED:
                answer = ask(app, path, body)
                if path != "/compare":
                    assert answer.status_code == status
                check_schema(answer.json(), _schema(post, answer.status_code), whole)
        health = ask(app, "/health", method="GET").json()
        check_schema(health, _schema(whole["paths"]["/health"]["get"], 200), whole)
        rule = {"by": "distance", "cost": 0.1, "norm": "inf", "gamma": 0.2}
        assert health["rule"] == (None if ranker is small[0] else rule)


def test_what_the_schema_forbids_is_refused(small_app) -> None:
    whole = small_app.openapi()
    schema = whole["paths"]["/rank"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for body, status, line in REFUSED:
        if isinstance(body, bytes | None) or status != 422 or "missing" in line or "not finite" in line:
            continue
        try:
            check_schema(body, schema, whole)
        except AssertionError:
            continue
        known = ("leave", "more than once", "unknown feature", "labels and features", "a finite number")
        assert any(word in line for word in known), line  # what JSON schema cannot say


def _schema(operation: Any, status: int) -> Any:
    return operation["responses"][str(status)]["content"]["application/json"]["schema"]


# -- anything at all ---------------------------------------------------------------------------------------------------
LABELS = st.sampled_from(["a", "b", "c", "x", "", 1, 0, -1, 2**63, 1.5, None, True, "\x00", "é" * 50])
NUMBERS = st.one_of(st.floats(), st.integers(), st.just(10**400), st.none(), st.booleans(), st.text(max_size=3))
VALUES = st.recursive(
    st.one_of(LABELS, NUMBERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["query", "items", "features", "named_features", "pairs", "top", "length"])
ITEMS = st.lists(LABELS, max_size=5)
ROWS = st.lists(st.lists(NUMBERS, max_size=2), max_size=4) | st.lists(
    st.dictionaries(st.sampled_from(["length", "x"]), NUMBERS, max_size=2), max_size=4
)
BODIES = st.one_of(
    st.dictionaries(FIELDS, VALUES | ITEMS | ROWS | st.lists(st.lists(LABELS, max_size=3), max_size=3), max_size=4),
    VALUES,
)


@pytest.mark.parametrize("path", PATHS)
def test_random_bytes_and_random_json_are_never_our_fault(small_app, path) -> None:
    @settings(max_examples=120)
    @given(st.binary(max_size=200) | BODIES.map(lambda body: json.dumps(body).encode()))
    def check(body: bytes) -> None:
        answer = ask(small_app, path, body)
        assert answer.status_code == 200 or 400 <= answer.status_code < 500
        assert answer.status_code == 200 or list(answer.json()) == ["error"]

    check()
    assert ask(small_app, "/score", {"items": ["a"]}).status_code == 200


@settings(max_examples=60)
@given(st.sampled_from(["GET", "POST", "PATCH", "OPTIONS", "HEAD"]), st.text(max_size=20), st.binary(max_size=30))
def test_random_paths_and_headers_are_never_our_fault(method: str, path: str, value: bytes) -> None:
    headers = {"content-type": value.hex(), "content-length": "0", "x": value.hex()}
    answer = ask(_any_app(), "/" + path.encode("utf-8", "replace").hex(), method=method, headers=headers)
    assert 400 <= answer.status_code < 500


def _any_app(kept: list[Any] = []) -> Any:  # noqa: B006
    if not kept:
        votes = Preferences.from_comparisons(["b"], ["a"])
        items = {"item": ["a", "b"], "length": [1.0, 2.0]}
        kept.append(create_app(EdgeRanker("ranknet").fit(items, votes), items))
    return kept[0]


# -- strictly read -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "status", "line"),
    [
        (b'{"items": ["a"], "items": ["b"]}', 400, "'items' occurs twice in one object"),
        (b'{"items": ["a"], "it\\u0065ms": ["b"]}', 400, "'items' occurs twice in one object"),
        (b'{"named_features": [{"length": 1, "length": 2}]}', 400, "'length' occurs twice in one object"),
        (b'{"named_features": [{"length": 1}, {"length" : 1 , "length" : 2}]}', 400, "occurs twice"),
        (b'{"items": null, "items": ["a"]}', 400, "occurs twice"),
        (b'{"features": [[1e400]]}', 422, "finite number"),
        (b'{"features": [[' + b"9" * 400 + b"]]}", 422, "finite number"),
        (b'{"items": [' + b"9" * 5000 + b"]}", 4, ""),
        (b'{"features": [[NaN]]}', 422, "finite number"),
        (b'{"items": ["\\ud800"]}', 400, "not JSON"),
        (b'{"items": ["\xff"]}', 400, "not JSON"),
        (b'{"items": [' + b"[" * 50_000, 400, "not JSON"),
        (b'\xef\xbb\xbf{"items": ["a"]}', 400, "not JSON"),
    ],
)
def test_json_that_readers_understand_differently_is_refused(small_app, body, status, line) -> None:
    found = ask(small_app, "/score", body)
    assert str(found.status_code).startswith(str(status)), found.text
    assert line in found.json()["error"]


def test_colons_in_labels_are_no_second_names(small) -> None:
    ranker, _ = small
    app = create_app(ranker, {"item": [':":', '"items":', "a"], "length": [1.0, 2.0, 3.0]})
    assert ask(app, "/score", {"items": [':":', '"items":']}).status_code == 200
    assert ask(app, "/score", {"items": ["a", "::::::"], "named_features": [{"length": 1.0}] * 2}).status_code == 200
