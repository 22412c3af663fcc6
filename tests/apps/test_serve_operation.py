"""A server in operation: what it counts, whether it is ready, models exchanged under way, a second one beside."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

import concordant as cc
from concordant.apps.serve import running
from concordant.apps.serve.access_log import Lines
from concordant.apps.serve.app import create_app
from concordant.apps.serve.limits import Limits
from concordant.apps.serve.operation import SIZE, Current, Metrics, Operation, Reloader, Shadow
from concordant.apps.serve.running import Answering
from concordant.apps.serve.served import Served
from concordant.learning.rankers.edges import EdgeRanker
from http_server import Server, ask, serving
from running import exit_status
from seeds import seed

ITEMS = {"item": ["a", "b", "c"], "length": [1.0, 1.1, 3.0]}


def fitted(wins: str) -> EdgeRanker:
    """A scorer by length, longer (c over a) or shorter first."""
    winner, loser = wins
    return EdgeRanker("ranknet").fit(
        ITEMS, cc.Preferences.from_comparisons([winner, winner, loser] * 5, [loser, "b", winner] * 5)
    )


def read_metrics(text: str) -> dict[str, float]:
    """Return the samples of Prometheus's text format 0.0.4 by name and labels, each name described before."""
    found, described = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            described.add(line.split()[2])
        elif not line.startswith("# HELP "):
            name, labels, value = re.fullmatch(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)*\})? (\S+)', line).groups()
            assert name in described or re.sub("_(bucket|sum|count)$", "", name) in described, line
            key = name.removeprefix("concordant_") + (labels or "")
            assert key not in found, line
            found[key] = float(value)
    return found


def metrics_of(app: Any) -> dict[str, float]:
    answer = ask(app, "/metrics", method="GET")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return read_metrics(answer.text)


def test_every_request_is_counted_once() -> None:
    app = create_app(fitted("ca"), ITEMS, name='a "b"\\c\n')
    for body, times in (({"items": ["a", "b"]}, 3), ({"items": ["z"]}, 2), ({"items": 1}, 1)):
        for _ in range(times):
            ask(app, "/rank", body)
    ask(app, "/nowhere", {})
    ask(app, "/health", method="GET")
    found = metrics_of(app)
    counted = {key: value for key, value in found.items() if key.startswith("requests_total")}
    assert counted == {
        'requests_total{path="/rank",status="200"}': 3,
        'requests_total{path="/rank",status="404"}': 2,
        'requests_total{path="/rank",status="422"}': 1,
        'requests_total{path="/health",status="200"}': 1,
        'requests_total{path="other",status="404"}': 1,
    }
    ends = [value for key, value in found.items() if key.startswith('request_duration_seconds_bucket{path="/rank"')]
    assert ends == sorted(ends) and ends[-1] == found['request_duration_seconds_count{path="/rank"}'] == 6
    assert found["requests_in_progress"] == 1  # the one that asks
    assert any(r'model="a \"b\"\\c\n"' in key for key in found)


def test_the_counters_of_workers_add_up() -> None:
    shared = bytearray(8 * SIZE * 3)
    for worker, times in enumerate((1, 4, 2)):
        metrics = Metrics(shared, worker)
        for _ in range(times):
            metrics.answered("/score", 200, 0.004)
        metrics.inside(1)
    Metrics(shared, 1)  # started anew: what it counted stays, what it worked on is gone
    found = read_metrics(Metrics(shared, 0).text({}))
    assert found['requests_total{path="/score",status="200"}'] == 7 and found["workers"] == 3
    assert found['request_duration_seconds_bucket{path="/score",le="0.005"}'] == 7
    assert found['request_duration_seconds_bucket{path="/score",le="0.0025"}'] == 0
    assert found['request_duration_seconds_sum{path="/score"}'] == pytest.approx(7 * 0.004)
    assert found["requests_in_progress"] == 1


def test_ready_until_it_is_about_to_end() -> None:
    operation = Operation()
    app = create_app(fitted("ca"), ITEMS, operation=operation)
    assert ask(app, "/ready", method="GET").json() == {"ready": True}
    operation.stop()
    answer = ask(app, "/ready", method="GET")
    assert (answer.status_code, answer.json()) == (503, {"ready": False})
    assert ask(app, "/rank", {"items": ["a"]}).status_code == 200


def test_pairs_that_two_models_order_are_counted() -> None:
    """Against every pair looked at one by one."""
    metrics = Metrics()
    shadow = Shadow(Served(fitted("ca")), 1.0, {}, metrics)
    draw = np.random.default_rng(seed(0))
    same = opposite = tied = top = 0
    for _ in range(20):
        ours, theirs = draw.integers(0, 4, (2, 9)).astype(float)
        shadow.scored(ours, theirs)
        for i, j in itertools.combinations(range(9), 2):
            first, second = (int(s[i] > s[j]) - int(s[i] < s[j]) for s in (ours, theirs))
            same, opposite, tied = (
                same + (first == second),
                opposite + (first == -second != 0),
                tied + (first != second and not first * second),
            )
        top += int(ours.tolist().index(max(ours)) == theirs.tolist().index(max(theirs)))
    found = read_metrics(metrics.text({}, {}))
    assert [found[f'shadow_pairs_total{{order="{one}"}}'] for one in ("same", "opposite", "tied")] == [
        same,
        opposite,
        tied,
    ]
    assert same + opposite + tied == 20 * 36 and found['shadow_top_total{item="same"}'] == top


def test_a_second_model_answers_its_share_unseen() -> None:
    operation = Operation()
    shadow = Shadow(Served(fitted("ac"), ITEMS), 0.4, {"model": "other"}, operation.metrics)
    ranker = fitted("ca")
    app, alone = create_app(ranker, ITEMS, operation=operation, shadow=shadow), create_app(ranker, ITEMS)
    bodies = [("/rank", {"items": ["a", "b", "c"], "top": 1}), ("/score", {"items": ["a", "b", "c"]}),
              ("/compare", {"pairs": [["a", "b"], ["a", "c"], ["b", "c"]]}), ("/rank", {"items": ["z"]})]  # fmt: skip
    for path, body in bodies * 5:
        assert ask(app, path, body).json() == ask(alone, path, body).json()
    shadow.pool.shutdown()
    found = metrics_of(app)
    assert found['shadow_requests_total{outcome="compared"}'] == 6  # of 15 that were answered
    assert found['shadow_pairs_total{order="opposite"}'] == 18 and found['shadow_pairs_total{order="same"}'] == 0
    assert ask(app, "/health", method="GET").json()["shadow"] == {"model": "other", "share": 0.4}


def test_what_waits_too_long_is_dropped() -> None:
    metrics = Metrics()
    shadow = Shadow(Served(fitted("ac"), ITEMS), 1.0, {}, metrics)
    gate = threading.Event()
    shadow.pool.submit(gate.wait)
    for _ in range(70):
        shadow.offer("/score", None, shadow.served)
    assert read_metrics(metrics.text({}, {}))['shadow_requests_total{outcome="dropped"}'] == 6
    gate.set()


# -- where a model comes from ------------------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "items.csv").write_text("item,length\na,1.0\nb,1.1\nc,3.0\n")
    (tmp_path / "votes.csv").write_text("winner,loser\n" + "b,a\nc,b\nc,a\na,b\n" * 5)
    return tmp_path


def test_a_model_says_of_what_it_was_made_and_when(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    fit = ["fit", "votes.csv", "-f", "items.csv", "--loss", "ranknet", "-q"]
    kept = []
    for name, when in (("one", "0"), ("two", "86400"), ("three", "0")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", when)
        assert exit_status(*fit, "-m", name) == 0
        kept.append({path.name: path.read_bytes() for path in Path(name).iterdir()})
    assert kept[0] == kept[2] != kept[1]
    origins = [cc.load_model(name).origin_ for name in ("one", "two")]
    assert origins[0]["hash"] == origins[1]["hash"]
    assert [one["made"]["time"] for one in origins] == ["1970-01-01T00:00:00+00:00", "1970-01-02T00:00:00+00:00"]
    health = ask(create_app(cc.load_model("one"), "items.csv"), "/health", method="GET").json()
    assert (health["hash"], health["fitted"]) == (origins[0]["hash"], "1970-01-01T00:00:00+00:00")
    read = {one["role"]: one for one in health["lineage"]}
    assert read["log"]["path"] == "votes.csv" and (read["log"]["rows"], read["log"]["judgments"]) == (20, 20)
    assert read["features"]["bytes"] == (folder / "items.csv").stat().st_size
    (folder / "votes.csv").write_text("winner,loser\n" + "b,a\nc,b\nc,a\na,b\nc,a\n" * 5)
    assert exit_status(*fit, "-m", "four") == 0
    other = cc.load_model("four").origin_
    assert other["hash"] != origins[0]["hash"]
    assert other["made"]["of"][1]["judgments_sha256"] != read["log"]["judgments_sha256"]


# -- models exchanged --------------------------------------------------------------------------------------------------
def _until(server: Server, key: str, least: float, wait: float = 60.0) -> dict[str, float]:
    until = time.monotonic() + wait
    while True:
        found = read_metrics(httpx.get(f"{'http'}://127.0.0.1:{server.port}/metrics", timeout=60).text)
        if found.get(key, 0) >= least:
            return found
        assert time.monotonic() < until, (key, found)
        time.sleep(0.05)


def _replace(folder: Path, wins: str) -> None:
    cc.save_model(fitted(wins), folder / "model")


def test_models_are_exchanged_and_no_request_is_lost(folder: Path) -> None:
    """Every answer is right by the old model or the new one; a model that cannot be read changes nothing."""
    _replace(folder, "ca")
    asked = ["-m", folder / "model", "-f", folder / "items.csv", "--log-format", "json"]
    right = [["c", "b", "a"], ["a", "b", "c"]]
    with serving(*asked) as server:
        answers: list[Any] = []
        over = threading.Event()

        def keep_asking() -> None:
            with httpx.Client(base_url=f"{'http'}://127.0.0.1:{server.port}", timeout=60) as client:
                while not over.is_set():
                    answer = client.post("/rank", json={"items": ["a", "b", "c"]})
                    answers.append((answer.status_code, [row["item"] for row in answer.json().get("ranking", ())]))

        def keep_reading() -> None:
            assert server.process.stderr is not None
            with server.process.stderr as said:
                server.lines.extend(said)

        reading = threading.Thread(target=keep_reading)
        reading.start()
        threads = [threading.Thread(target=keep_asking) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(10):
            _replace(folder, "ac" if number % 2 == 0 else "ca")
            server.process.send_signal(signal.SIGHUP)
            _until(server, 'reloads_total{outcome="done"}', number + 1)
        shutil.rmtree(folder / "model")
        server.process.send_signal(signal.SIGHUP)
        found = _until(server, 'reloads_total{outcome="failed"}', 1)
        over.set()
        for thread in threads:
            thread.join()
        assert len(answers) > 30 and all(status == 200 and ranked in right for status, ranked in answers)
        assert {tuple(ranked) for _, ranked in answers} == {tuple(one) for one in right}
        assert answers[-1][1] == right[0]
        assert found['requests_total{path="/rank",status="200"}'] <= len(answers)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        reading.join()
    said = [one for one in map(json.loads, server.lines) if one["event"] in ("reloaded", "error")]
    assert [one["event"] for one in said] == ["reloaded"] * 10 + ["error"]
    assert "still answers" in said[-1]["message"] and "there is no model directory" in said[-1]["message"]


def test_watched_files_and_workers(folder: Path) -> None:
    """What is watched is loaded when it changes, SIGHUP reaches every worker, and their counters are one."""
    _replace(folder, "ca")
    asked = ["-m", folder / "model", "-f", folder / "items.csv", "--watch", "0.1", "--workers", "2"]
    with serving(*asked) as server:
        ranked = server.post("/rank", {"items": ["a", "c"]})[1]["ranking"]
        assert [row["item"] for row in ranked] == ["c", "a"]
        server.process.send_signal(signal.SIGHUP)
        _until(server, 'reloads_total{outcome="done"}', 2)
        _replace(folder, "ac")
        _until(server, 'reloads_total{outcome="done"}', 4)
        for _ in range(8):
            ranked = server.post("/rank", {"items": ["a", "c"]})[1]["ranking"]
            assert [row["item"] for row in ranked] == ["a", "c"]
        assert _until(server, 'requests_total{path="/rank",status="200"}', 9)["workers"] == 2
        assert server.stop() == 0


def test_a_worker_says_that_it_answers_once_signals_are_obeyed() -> None:
    """One that comes before would end it: a model could not be exchanged as soon as the server is there."""
    found, before = list[Any](), signal.getsignal(signal.SIGHUP)

    class Ready:
        def send(self, _: bool) -> None:
            found.extend(signal.getsignal(one) for one in (signal.SIGHUP, signal.SIGTERM))
            raise KeyboardInterrupt

    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as listener:
        made = Answering(None, Limits(), Lines("text"), Reloader(object, Metrics(), print, [], None), print)
        running._work(lambda _: made, listener, 0, Ready())
    assert len(found) == 2 and not {*found} & {signal.SIG_DFL, signal.SIG_IGN, None}
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_worker_that_was_not_there_yet_is_told_to_exchange_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[int]()
    monkeypatch.setattr(running.os, "kill", lambda process, _: told.append(process))
    there = [SimpleNamespace(pid=place, is_alive=lambda: True) for place in range(2)]
    workers = [running._Worker(process, None, began=place == 0) for place, process in enumerate(there)]
    running._hand_on(workers)
    assert told == [0] and [one.missed for one in workers] == [False, True]


def test_what_changes_while_it_is_read_for_the_first_time_is_read_again(tmp_path: Path) -> None:
    """Even if that is before anyone looks out for changes."""
    (name := tmp_path / "model").write_text("old")
    exchanged = threading.Event()
    reloader = Reloader(lambda: exchanged.set() or object(), Metrics(), lambda *_, **__: None, [str(name)], 0.01)  # type: ignore[arg-type,return-value,func-returns-value]
    reloader.current = Current(name.read_text())  # type: ignore[arg-type]
    name.write_text("another")
    reloader.begin()
    assert exchanged.wait(60)


def test_a_terminal_that_is_closed_ends_the_server(folder: Path) -> None:
    import pty
    import subprocess
    import sys

    _replace(folder, "ca")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "concordant", "serve", "--port", "0", "-m", str(folder / "model")]
    with open(folder / "said", "w") as said:
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=said, start_new_session=True,
                                   preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))  # fmt: skip
    os.close(theirs)
    try:
        until = time.monotonic() + 60
        while "http" not in (folder / "said").read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        os.close(ours)
        assert process.wait(30) == 0
    finally:
        process.kill()
    assert (folder / "said").read_text().endswith("stopped\n")
