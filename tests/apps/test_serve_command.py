"""``concordant serve`` as a process: it starts, answers, refuses, and ends as it is told to."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.models.saving import save_model
from concordant.apps.serve.running import bound
from concordant.learning.rankers.edges import EdgeRanker
from concordant.preferences.preferences import Preferences
from http_server import Server, folder_of, read_all, serving
from running import exit_status
from seeds import seed
from serve_faults import trial

ITEMS = {"item": ["a", "b", "c"], "length": [1.0, 1.1, 3.0]}
SCORED = {"items": ["a", "b"]}
POST = b"POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


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
            (b"POST /rank HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 4),
            (b"CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n", 4),
            (b"GET /%00%ff%0d%0a HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
            (b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 200),
            (
                b"POST /rank HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
                b"content-length: 2\r\n\r\n{}",
                400,
            ),
            (b"HEAD /rank HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
            (b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
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
            assert len(bodies) == sent.count(b"HTTP/1.1\r\nhost: localhost\r\ncontent-type") or sent.count(POST) == 0, (
                answer
            )
            assert status == 200 or all(list(json.loads(body)) == ["error"] for body in bodies), answer
        assert server.raw(Random(seed(5)).randbytes(1000) + b"\r\n\r\n", wait=2).startswith(
            (b"HTTP/1.1 400", b"HTTP/1.1 431")
        )
        assert server.post("/score", SCORED)[0] == 200
        _end_amid_a_request(server)
        assert server.stop(0) == 0
    said = [one for one in map(json.loads, server.lines) if one["event"] not in ("progress", "read")]
    assert all({"time", "level", "event"} <= set(one) for one in said) and "Traceback" not in "".join(server.lines)
    assert said.pop()["event"] == "run"
    assert said[0]["event"] == "note" and said[0]["message"].startswith("abstains where items are at most γ = 0.2")
    assert [one["event"] for one in said[1:]] == ["serving", *["request"] * (len(said) - 3), "stopped"]
    assert (said[-2]["path"], said[-2]["status"]) == ("/score", 200)
    assert folder_of(folder / "model") == before


def _end_amid_a_request(server: Server) -> None:
    """Send half of a request, SIGTERM, and the other half, which is answered; nobody new is let in meanwhile."""
    body = json.dumps(SCORED).encode()
    head = (
        f"POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    )
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
        line.sendall(
            b"POST /score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n"
        )
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


# -- who is answered ---------------------------------------------------------------------------------------------------
def asked(server: Server, host: bytes, *more: bytes, path: bytes = b"/health") -> int:
    """The status of a GET with this host."""
    return int(server.raw(b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"host: " + host, *more, b"", b""]))[9:12])


def test_a_page_of_another_site_is_not_answered(folder: Path) -> None:
    with serving("-m", folder / "model", "--host-name", "ranker.example.org", "--host-name", "10.1.2.3") as server:
        port = b":%d" % server.port
        for host in (
            b"localhost",
            b"LOCALHOST.",
            b"127.0.0.1",
            b"127.3.2.1",
            b"[::1]",
            b"ranker.example.org",
            b"10.1.2.3",
        ):
            assert asked(server, host) == asked(server, host + port) == 200, host
        for host in (
            *(
                b"evil.example",
                b"localhost.evil.example",
                b"evil.example:80",
                b"10.1.2.4",
                b"example.org",
                b"127.0.0.1.nip.io",
            ),
            *(
                b"",
                b"localhost, evil.example",
                b"localhost@evil.example",
                b"a b",
                b"[::1",
                b"2130706433",
                b"[::2]",
                b"\xff",
            ),
        ):
            assert asked(server, host) == 421, host
            assert asked(server, host, b"content-length: 2") == 421, host
        assert asked(server, b"localhost", b"host: evil.example") == 400
        assert server.raw(b"GET /health HTTP/1.1\r\n\r\n")[9:12] == b"400"
        assert server.raw(b"GET /health HTTP/1.0\r\n\r\n")[9:12] == b"200"
        assert server.stop() == 0


def test_where_all_interfaces_are_listened_on_addresses_are_allowed(folder: Path) -> None:
    with serving("-m", folder / "model", "--host", "0.0.0.0") as server:
        assert [asked(server, host) for host in (b"192.0.2.7:80", b"[2001:db8::1]", b"localhost")] == [200] * 3
        assert [asked(server, host) for host in (b"evil.example", b"2130706433", b"0x7f.1")] == [421] * 3
        assert server.stop() == 0


TOKEN = "7b9c.3f-6a~2d_51e0+44/8c=="


@pytest.mark.parametrize("by_file", [True, False])
def test_only_who_shows_the_token_is_answered(folder: Path, tmp_path: Path, monkeypatch: Any, by_file: bool) -> None:
    options: list[object] = ["-m", folder / "model", "-f", folder / "items.csv", "--log-format", "json"]
    if by_file:
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        (tmp_path / "token").chmod(0o600)
        options += ["--token-file", tmp_path / "token", "--workers", "2"]
    else:
        monkeypatch.setenv("CONCORDANT_SERVE_TOKEN", TOKEN)
    with serving(*options) as server:
        (tmp_path / "token").unlink(missing_ok=True)
        shown = b"authorization: Bearer " + TOKEN.encode()
        for path in (b"/health", b"/openapi.json"):
            assert asked(server, b"localhost", shown, path=path) == 200
            assert asked(server, b"localhost", shown.replace(b"Bearer", b"bearer"), path=path) == 200
            for wrong in (
                *(
                    b"x: y",
                    b"authorization: Bearer",
                    b"authorization: Bearer x",
                    shown + b"x",
                    shown[:-1],
                    shown + b" x",
                ),
                *(shown.replace(b"Bearer", b"Basic"), shown + b"\r\n" + shown, b"authorization: " + TOKEN.encode()),
            ):
                assert asked(server, b"localhost", wrong, path=path) == 401, wrong
            assert asked(server, b"evil.example", shown, path=path) == 421
        assert asked(server, b"localhost", path=b"/health?token=" + TOKEN.encode()) == 401
        assert server.post("/score", SCORED)[0] == 401
        answer = server.raw(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b"\r\nwww-authenticate: Bearer\r\n" in answer
        schema = server.raw(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n" + shown + b"\r\n\r\n")
        assert b'"scheme":"bearer"' in schema
        command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in command
        assert server.stop() == 0
    assert TOKEN not in "".join(server.lines) and "7b9c" not in "".join(server.lines)


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"short", 0o600, "a token is one line of 16 to 4,096"),
        (b"", 0o600, "a token is one line"),
        (TOKEN.encode() + b"\n\n", 0o600, "a token is one line"),
        (b"a secret with blanks in it", 0o600, "a token is one line"),
        (b"x" * 5000, 0o600, "a token is one line"),
        ("é".encode() * 20, 0o600, "a token is one line"),
        (TOKEN.encode(), 0o622, "others may change it; chmod go-w, or better 600"),
        (None, 0, "No such file"),
    ],
)
def test_a_token_that_is_none_is_one_line(
    folder: Path, tmp_path: Path, capsys: Any, content: bytes | None, mode: int, said: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    assert exit_status("serve", "-m", folder / "model", "--port", "0", "--token-file", file) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"error: --token-file {file}: ") and said in line and line.count("\n") == 1
    assert "secret" not in line and TOKEN not in line


def test_a_token_is_read_from_a_file_at_once_and_given_once(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero", tmp_path):
        assert exit_status("serve", "-m", folder / "model", "--port", "0", "--token-file", place) == 2
        assert re.search(r"is no file|Is a directory", capsys.readouterr().err)
    monkeypatch.setenv("CONCORDANT_SERVE_TOKEN", "")  # set, and empty: not the same as no token
    assert exit_status("serve", "-m", folder / "model", "--port", "0") == 2
    assert "CONCORDANT_SERVE_TOKEN: a token is one line" in capsys.readouterr().err
    assert exit_status("serve", "-m", folder / "model", "--port", "0", "--token-file", tmp_path / "x") == 2
    assert "both give a token" in capsys.readouterr().err


# -- large requests ----------------------------------------------------------------------------------------------------
LARGE = b" " * 6_000_000


def by_http_client(port: int) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("POST", "/score", LARGE, {"content-type": "application/json"})
    answer = line.getresponse()
    return answer.status, answer.read()


def by_http_client_in_chunks(port: int) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    parts = (LARGE[:10_000] for _ in range(600))
    line.request("POST", "/score", parts, {"content-type": "application/json"}, encode_chunked=True)
    answer = line.getresponse()
    return answer.status, answer.read()


def by_urllib(port: int) -> tuple[int, bytes]:
    asking = urllib.request.Request(f"http://{LOCAL}:{port}/score", LARGE, {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(asking, timeout=30)
    with caught.value as error:
        return error.code, error.read()


def by_httpx(port: int) -> tuple[int, bytes]:
    answer = httpx.post(
        f"http://{LOCAL}:{port}/score", content=LARGE, headers={"content-type": "application/json"}, timeout=60
    )
    return answer.status_code, answer.content


def by_curl(port: int, *options: str) -> tuple[int, bytes]:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    command = ["curl", "-sS", "-w", "%{http_code}", "-H", "content-type: application/json", "--data-binary", "@-"]
    done = subprocess.run([*command, *options, f"http://{LOCAL}:{port}/score"], input=LARGE, capture_output=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout[-3:]), done.stdout[:-3]


def by_curl_that_does_not_ask_first(port: int) -> tuple[int, bytes]:
    return by_curl(port, "-H", "expect:")


def by_curl_in_chunks(port: int) -> tuple[int, bytes]:
    return by_curl(port, "-H", "transfer-encoding: chunked", "-H", "expect:")


def by_writing_while_reading(port: int) -> tuple[int, bytes]:
    """As Go's net/http: a second thread writes until it cannot."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        head = POST.replace(b"/rank", b"/score") + b"content-length: %d\r\n\r\n" % len(LARGE)

        def write() -> None:
            with suppress(OSError):
                line.sendall(head + LARGE)

        thread = threading.Thread(target=write)
        thread.start()
        head, _, body = read_all(line).partition(b"\r\n\r\n")
        thread.join()
    return int(head[9:12]), body


LOCAL = "127.0.0.1"
CLIENTS = (
    *(by_http_client, by_http_client_in_chunks, by_urllib, by_httpx, by_curl, by_curl_that_does_not_ask_first),
    *(by_curl_in_chunks, by_writing_while_reading),
)


def test_every_client_reads_that_its_body_is_too_large(folder: Path) -> None:
    with serving("-m", folder / "model", "-f", folder / "items.csv") as server:
        for client in CLIENTS:
            for _ in range(3):
                status, body = client(server.port)
                assert status == 413, client
                assert json.loads(body)["error"].startswith("the body has "), client
        assert server.post("/score", SCORED)[0] == 200
        assert server.stop() == 0


def test_a_head_is_at_most_as_large_as_the_page_says(folder: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    assert "A head is at most 64 KB (65,536 bytes)" in text

    def head(size: int, parts: int = 1) -> bytes:
        begun = b"GET /health HTTP/1.1\r\nhost: localhost\r\n"
        spare = size - len(begun) - 2 - 5 * parts
        fields = [spare // parts] * (parts - 1)
        fields.append(spare - sum(fields))
        made = begun + b"".join(b"x: " + b"y" * one + b"\r\n" for one in fields) + b"\r\n"
        assert len(made) == size
        return made

    with serving("-m", folder / "model") as server:
        for parts in (1, 7):
            for size, status in ((65_536, b"200"), (65_537, b"431"), (97_000, b"431"), (400_000, b"431")):
                answer = server.raw(head(size, parts))
                assert answer[9:12] == status, (size, parts, answer[:100])
        line = b"GET /health?" + b"x" * 70_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
        assert server.raw(line)[9:12] == b"431"
        both = server.raw(head(1000) + head(97_000))
        assert both[9:12] == b"200" and both.count(b"HTTP/1.1 ") == 1 and b"connection: close" in both
        assert server.stop() == 0


CHUNKED = POST.replace(b"/rank", b"/score") + b"transfer-encoding: chunked\r\n"
SCORED_CHUNK = b'13\r\n{"items":["a","b"]}\r\n'
GOOD = POST.replace(b"/rank", b"/score") + b'content-length: 19\r\n\r\n{"items":["a","b"]}'
TOO_MUCH = b"too much beside the body: chunk sizes, extensions and trailers may have 65,536 bytes"


def exchanged(port: int, *sent: bytes) -> list[tuple[int, bytes]]:
    """Send all of it while the answers are read; return status and body of each, until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:

        def write() -> None:
            with suppress(OSError):
                for part in sent:
                    line.sendall(part)

        thread = threading.Thread(target=write)
        thread.start()
        said = b""
        while part := line.recv(1 << 16):
            said += part
        thread.join()
    found = []
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        size = int((re.search(rb"content-length: (\d+)", head) or [b"", b"0"])[1])
        found.append((int(head[9:12]), said[:size]))
        said = said[size:]
    return found


def _peak(process: int) -> int:
    """Most memory so far in MiB."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) >> 10


def test_what_stands_beside_a_body_in_chunks_is_bounded(folder: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    assert "64 KB in a row" in text and "seven bytes for each byte of the body" in text
    last, begun = b"0\r\n\r\n", CHUNKED + b"\r\n" + SCORED_CHUNK
    mega = [b"u" * (1 << 20)] * 12
    bad = {
        "trailer": (begun + b"0\r\nt: ", *mega, b"\r\n\r\n"),
        "name of a trailer": (begun + b"0\r\n", *mega, b": x\r\n\r\n"),
        "trailers": (begun + b"0\r\n", b"t: uv\r\n" * 1_000_000, b"\r\n"),
        "extension": (CHUNKED + b"\r\n13;x=", *mega, b"\r\n" + SCORED_CHUNK[4:] + last),
        "size of a chunk": (CHUNKED + b"\r\n", b"0" * 8_000_000, SCORED_CHUNK + last),
        "extensions": (begun, (b"1;x=" + b"y" * 50 + b"\r\n \r\n") * 100_000, last),
        "trailer of 128 KB": (begun + b"0\r\nt: " + b"u" * (128 << 10) + b"\r\n\r\n",),
        "followed by requests": (begun + b"0\r\nt: ", *mega, b"\r\n\r\n", GOOD * 3),
    }
    closed = b"connection: close\r\n\r\n"
    good = {
        "chunks of one byte": b"\r\n" + SCORED_CHUNK + b"1\r\n \r\n" * 200_000 + last,
        "signed chunks": b"\r\n"
        + SCORED_CHUNK
        + (b"400;chunk-signature=" + b"f" * 64 + b"\r\n" + b" " * 1024 + b"\r\n") * 999
        + last,
        "a trailer that fits": b"\r\n" + SCORED_CHUNK + b"0\r\nt: " + b"u" * 60_000 + b"\r\n\r\n",
        "an extension that fits": b"\r\n13;x=" + b"u" * 60_000 + SCORED_CHUNK[2:] + last,
    }
    with serving("-m", folder / "model", "-f", folder / "items.csv") as server:
        scored = exchanged(server.port, GOOD[: GOOD.index(b"\r\n\r\n") + 2] + closed + GOOD[-19:])
        assert [status for status, _ in scored] == [200]
        before = _peak(server.process.pid)
        for what, rest in good.items():
            assert exchanged(server.port, CHUNKED + b"connection: close\r\n" + rest) == scored, what
        for what, sent in bad.items():
            ((status, body),) = exchanged(server.port, *sent)
            assert (status, list(json.loads(body))) == (400, ["error"]) and TOO_MUCH in body, what
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
            line.sendall(CHUNKED + b"expect: 100-continue\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 100")
            line.sendall(SCORED_CHUNK + b"0\r\nt: " + b"u" * 300_000)
            assert read_all(line).startswith(b"HTTP/1.1 400")
        # what was asked before is answered, and nothing is answered twice
        answers = exchanged(server.port, GOOD * 2 + begun + b"0\r\nt: ", *mega)
        assert answers[:2] == scored * 2 and [status for status, _ in answers[2:]] in ([], [400])  # by who is quicker
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
            line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\nt: ")
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
            line.sendall(b"u" * 300_000)
            assert b"HTTP/1.1" not in read_all(line)
        assert _peak(server.process.pid) - before < 32
        assert server.stop() == 0


def test_sigterm_ends_it_amid_bodies_that_are_refused(folder: Path) -> None:
    begun = CHUNKED + b"\r\n" + SCORED_CHUNK + b"0\r\nt: "
    with serving("-m", folder / "model", "-f", folder / "items.csv") as server:
        lines = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(4)]
        silent, slow, half, never = lines
        silent.sendall(begun + b"u" * 200_000)
        assert silent.recv(1 << 16).startswith(b"HTTP/1.1 400")  # and the connection is left open
        slow.sendall(begun + b"u" * 200_000)  # refused, and more comes
        half.sendall(begun + b"u" * 20_000)

        def write() -> None:
            with suppress(OSError):
                while True:
                    never.sendall(begun + b"u" * (1 << 20))
                    time.sleep(0.2)

        def drip() -> None:
            with suppress(OSError):
                while True:
                    slow.sendall(b"u")
                    time.sleep(0.05)

        threads = [threading.Thread(target=one) for one in (write, drip)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        server.process.terminate()
        with suppress(OSError):
            while True:
                server.health()
        half.sendall(b"u" * 100_000)  # refused when the server ends already
        told = time.monotonic()
        assert half.recv(1 << 16).startswith(b"HTTP/1.1 400")
        assert server.stop() == 0
        assert time.monotonic() - told < 8  # not the 15 s after which requests are given up
        for line in lines:
            line.close()
        for thread in threads:
            thread.join()
    assert "Traceback" not in "".join(server.lines) and "Cancel" not in "".join(server.lines)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_is_obeyed_as_soon_as_the_server_says_that_it_serves(folder: Path, workers: int) -> None:
    with serving("-m", folder / "model", "--workers", workers) as server:
        server.process.terminate()
        server.process.communicate(timeout=20)
        assert server.process.returncode == 0


def test_a_mixed_load_with_faults_loses_nothing() -> None:
    """Some seconds of it; ``serve_faults.py --seconds 300`` takes longer."""
    found = trial(60.0, 16, 14, rounds=12)
    assert found["wrong"] == [] and found["wrong answers"] == 0
    assert found["requests"] > 150 and found["exit status"] == 0 and found["health"] == 200
    assert found["lines that are no requests"] == ["run", "stopped"]
    assert found["files left open"] <= 0
    assert found["memory after"] - found["memory before"] < 32


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
        (["--host-name", "http://a"], "--host-name http://a: a name or an address, without scheme and port"),
        (["--host-name", "a:80"], "--host-name a:80: a name or an address, without scheme and port"),
        (["--host-name", ""], "a name or an address"),
        (["--host", "no such host"], "there is no such address"),
        (["--host", "203.0.113.7"], "this machine has no such address"),
        (["--max-body", "much"], "--max-body must be a size such as 500KB or 4MB, not 'much'"),
        (["--max-body", "0"], "--max-body must be a size such as 500KB or 4MB, not '0'"),
        (["--max-items", "0"], "0 is not in the range"),
        (["--timeout", "nan"], "the limit of timeout must be at least"),
        (["--workers", "0"], "0 is not in the range"),
        (["--feature-item", "x"], "it names a column of --features, which is missing"),
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
    usual = {"-m": "model", "--port": "0"} | dict(zip(options[::2], options[1::2]))
    assert exit_status("serve", *(word for pair in usual.items() for word in pair)) == 2
    said = capsys.readouterr().err
    assert line in said and said.startswith("error: ") and said.count("\n") == 1
