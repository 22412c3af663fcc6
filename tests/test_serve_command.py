"""``concordant serve`` as a process: it starts, answers, refuses, and ends as it is told to."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from concordant.abstaining.ranker import AbstainingRanker
from concordant.models.saving import save_model
from concordant.preferences import Preferences
from concordant.rankers.edges import EdgeRanker
from concordant.serving.running import bound
from http_server import Server, folder_of, read_all, serving
from running import exit_status
from seeds import seed

ITEMS = {"item": ["a", "b", "c"], "length": [1.0, 1.1, 3.0]}
SCORED = {"items": ["a", "b"]}
POST = b"POST /rank HTTP/1.1\r\ncontent-type: application/json\r\n"
pytestmark = pytest.mark.xdist_group("serve")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models and a file of features."""
    made = tmp_path_factory.mktemp("serve")
    votes = Preferences.from_comparisons(["b", "c", "c", "a"] * 5, ["a", "b", "a", "b"] * 5)
    ranker = EdgeRanker("ranknet").fit(ITEMS, votes)
    save_model(ranker, made / "model")
    save_model(AbstainingRanker(ranker, gamma=0.2).fit(), made / "careful")
    (made / "items.csv").write_text("item,length\na,1.0\nb,1.1\nc,3.0\n")
    (made / "votes.csv").write_text("winner,loser\n" + "b,a\nc,b\nc,a\na,b\n" * 5)
    return made


def test_serves_until_sigterm_and_ends_what_has_begun(folder: Path) -> None:
    before = folder_of(folder / "model")
    asked = ["--abstain", "0.1", "--gamma", "0.2", "--max-body", "2KB", "--log-format", "json"]
    with serving("-m", folder / "model", "-f", folder / "items.csv", *asked) as server:
        assert server.health() == 200
        status, found = server.post("/rank", {"items": ["a", "b", "c"]})
        assert status == 200 and [row["item"] for row in found["ranking"]] == ["c", "b", "a"]
        rule = server.post("/compare", {"pairs": [["a", "b"]]})[1]["rule"]
        assert rule == {"by": "distance", "cost": 0.1, "norm": "inf", "gamma": 0.2}
        assert server.post("/rank", {"items": ["a"], "model": "../careful"})[0] == 422
        # what is no request of HTTP, and what is one that nobody answers
        for sent, status in (
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", 400),
            (b"GET\r\n\r\n", 400),
            (b"GET /health HTTP/9.9\r\n\r\n", 400),
            (b"POST /rank HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
            (b"POST /rank HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
            (b"POST /rank HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 4),
            (b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", 4),
            (b"GET /%00%ff%0d%0a HTTP/1.1\r\nhost: a\r\n\r\n", 404),
            (b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 200),
            (b"POST /rank HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\n{}", 400),
            (b"HEAD /rank HTTP/1.1\r\nhost: a\r\n\r\n", 405),
            (b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", 404),
            (POST + b'transfer-encoding: chunked\r\n\r\n5;x=y\r\n{"ite\r\n9\r\nms":[1]}}\r\n0\r\nt: u\r\n\r\n', 400),
            (POST + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}", 100),
            (POST + b"content-length: 2\r\n\r\n{}" + POST + b"content-length: 2\r\n\r\n[]", 422),
            (POST + b"content-length: 3000\r\n\r\n", 413),
            (b"GET /" + b"x" * 70_000, 431),
            (b"GET / HTTP/1.1\r\nx: " + b"x" * 70_000, 431),
        ):
            answer = server.raw(sent)
            assert answer.startswith(b"HTTP/1.1 %d" % status), (sent[:60], answer[:200])
            bodies = re.findall(rb"\r\n\r\n({.*?})(?=HTTP/|$)", answer)
            assert len(bodies) == sent.count(b"HTTP/1.1\r\ncontent-type") or sent.count(POST) == 0, answer
            assert status == 200 or all(list(json.loads(body)) == ["error"] for body in bodies), answer
        assert server.raw(Random(seed(5)).randbytes(1000) + b"\r\n\r\n", wait=2).startswith(
            (b"HTTP/1.1 400", b"HTTP/1.1 431")
        )
        assert server.post("/score", SCORED)[0] == 200
        _end_amid_a_request(server)
        assert server.stop(0) == 0
    said = [one for one in map(json.loads, server.lines) if one["event"] != "progress"]
    assert all({"time", "level", "event"} <= set(one) for one in said) and "Traceback" not in "".join(server.lines)
    assert said[0]["event"] == "note" and said[0]["message"].startswith("abstains where items are at most γ = 0.2")
    assert [one["event"] for one in said[1:]] == ["serving", *["request"] * (len(said) - 3), "stopped"]
    assert (said[-2]["path"], said[-2]["status"]) == ("/score", 200)
    assert folder_of(folder / "model") == before


def _end_amid_a_request(server: Server) -> None:
    """Send half of a request, SIGTERM, and the other half, which is answered; nobody new is let in meanwhile."""
    body = json.dumps(SCORED).encode()
    head = f"POST /score HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    head += "expect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
        line.sendall(head.encode() + body[:5])
        assert line.recv(100).startswith(b"HTTP/1.1 100")  # it has begun
        server.process.send_signal(signal.SIGTERM)
        with suppress(OSError):  # until nobody new is let in
            while True:
                server.health()
        line.sendall(body[5:])
        assert b'{"scores":[' in read_all(line)


def test_too_many_at_once_are_refused_then_ctrl_c_ends_it(folder: Path) -> None:
    before = folder_of(folder / "careful")
    asked = ["-m", folder / "careful", "-f", folder / "items.csv", "--limit-concurrency", "2", "--timeout", "30"]
    with serving(*asked) as server:
        status, found = server.post("/compare", {"pairs": [["a", "b"], ["a", "c"]]})
        assert status == 200 and [one["answer"] for one in found["comparisons"]] == ["declined", "second"]
        _flood(server)
        assert server.stop(signal.SIGINT) == 130
    assert sum("refused" in line for line in server.lines) <= 5  # a flood of requests is no flood of lines
    assert "POST /compare 200" in "".join(server.lines) and "Traceback" not in "".join(server.lines)
    assert server.lines[-1] == "interrupted\n"
    assert folder_of(folder / "careful") == before


def _flood(server: Server) -> None:
    """With two requests that take their time, all others are refused, and taken again when those two are done."""
    refused: list[tuple[int, str | None]] = []
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
    for line in held:
        line.sendall(b"POST /score HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n")
        line.sendall(b"expect: 100-continue\r\n\r\n{")
        assert line.recv(100).startswith(b"HTTP/1.1 100")  # it has begun

    def one() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        for _ in range(10):
            connection.request("POST", "/score", json.dumps(SCORED), {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            refused.append((answer.status, answer.headers["retry-after"]))
        connection.close()

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [(503, "1")] * 80
    assert server.health() == 200
    for line in held:
        line.sendall(b" " * 7 + b"}")
        assert line.recv(1000).startswith(b"HTTP/1.1 422")
        line.close()
    assert server.post("/score", SCORED)[0] == 200


def test_workers_answer_and_end_together(folder: Path) -> None:
    with serving("-m", folder / "model", "-f", folder / "items.csv", "--workers", "2") as server:
        assert "2 workers" in server.lines[-1]
        expected = server.post("/score", SCORED)
        assert expected[0] == 200 and all(server.post("/score", SCORED) == expected for _ in range(20))
        workers = _children(server.process.pid)
        assert server.stop() == 0
    deadline = time.monotonic() + 10
    while any(_is_alive(one) for one in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) >= 2 and not any(_is_alive(one) for one in workers)


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(entry.parent.name))
    return found


def _is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_an_answer_does_not_wait_for_the_client_to_say_that_it_has_the_head() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def come(_: Any, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bound("127.0.0.1", 0) as listener:
            server = await asyncio.start_server(come, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            no_delay = await asyncio.wait_for(found, 20)
            writer.close()
            server.close()
        return no_delay

    assert asyncio.run(accepted()) != 0


# -- what is wrong before it starts ------------------------------------------------------------------------------------
def test_a_port_that_is_taken_is_one_line(folder: Path, capsys: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert exit_status("serve", "-m", folder / "model", "--port", port) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: 127.0.0.1, port {port}: another program listens there") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--port", "70000"], "70000 is not in the range"),
        (["--host", "no such host"], "there is no such address"),
        (["--host", "203.0.113.7"], "this machine has no such address"),
        (["--max-body", "much"], "--max-body must be a size such as 500KB or 4MB, not 'much'"),
        (["--max-body", "0"], "the limit of body must be at least 1"),
        (["--max-items", "0"], "0 is not in the range"),
        (["--timeout", "nan"], "the limit of timeout must be at least"),
        (["--workers", "0"], "0 is not in the range"),
        (["--feature-item", "x"], "--feature-item names a column of --features, which is missing"),
        (["--gamma", "1"], "--abstain COST is missing"),
        (["--abstain", "0.1"], "--abstain needs to know when"),
        (["--abstain", "0.1", "--judgments", "votes.csv"], "--judged-features"),
        (["-f", "nothing.csv"], "nothing.csv"),
        (["-f", "votes.csv"], "item"),
        (["-m", "nowhere"], "there is no model directory"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, capsys: Any, monkeypatch: Any, options: list[str], line: str) -> None:
    monkeypatch.chdir(folder)
    assert exit_status("serve", "-m", "model", "--port", "0", *options) == 2
    said = capsys.readouterr().err
    assert line in said and said.startswith("error: ") and said.count("\n") == 1
