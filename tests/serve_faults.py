"""A mixed load on ``concordant serve`` from clients good and bad (``python tests/serve_faults.py --seconds 300``).

Every client draws what it does: whole requests, slow ones, halves, disconnects, bytes that are no HTTP, bodies and
heads that are too large. What is due an answer must get the right one; memory and open files must be as before in the
end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import concordant as cc
from http_server import serving

ITEMS = 60
BODY = 50_000
"""Largest body that the server is told to take."""
HEAD = "{} {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


class Load:
    """Clients of one server, and what they saw."""

    def __init__(self, port: int, ranker: Any, table: dict[str, Any], seed: int) -> None:
        self.port, self.seed = port, seed
        self.items = table["item"]
        self.scores = dict(zip(self.items, ranker.predict(table).tolist()))
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []

    # -- what is asked ---------------------------------------------------------------------------------------------
    def request(self, random: Random, *, close: bool = False) -> tuple[bytes, Any]:
        """A good request and its answer."""
        asked = random.sample(self.items, random.randrange(1, 20))
        if random.random() < 0.5:
            path, wanted = "/score", {"scores": [self.scores[item] for item in asked]}
        else:
            order = sorted(asked, key=lambda item: -self.scores[item])
            path = "/rank"
            wanted = {
                "ranking": [{"item": item, "score": self.scores[item], "rank": at + 1} for at, item in enumerate(order)]
            }
        return self.written(path, json.dumps({"items": asked}).encode(), close=close), wanted

    def written(self, path: str, body: bytes, *, method: str = "POST", close: bool = False) -> bytes:
        head = HEAD.format(method, path) + f"content-length: {len(body)}\r\n" + "connection: close\r\n" * close + "\r\n"
        return head.encode() + body

    # -- connections -----------------------------------------------------------------------------------------------
    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", self.port), 20)

    @staticmethod
    async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
        body = await asyncio.wait_for(reader.readexactly(length), 30)
        return int(head[9:12]), json.loads(body)

    def hold(self, what: str, got: tuple[int, Any], status: int | tuple[int, ...], wanted: Any = None) -> None:
        """Count an answer, and keep what is not as it must be; 503 is always allowed."""
        self.seen[f"{what} {got[0]}"] += 1
        allowed = (status,) if isinstance(status, int) else status
        if got[0] == 503:
            return
        if got[0] not in allowed or (wanted is not None and got[1] != wanted) or (got[0] != 200) != ("error" in got[1]):
            self.wrong.append(f"{what}: {got[0]} {str(got[1])[:200]}")

    @staticmethod
    def reset(writer: asyncio.StreamWriter) -> None:
        """Go away as a process does that is killed."""
        line = writer.get_extra_info("socket")
        if writer.is_closing():
            return
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    # -- what a client does ----------------------------------------------------------------------------------------
    async def good(self, random: Random) -> None:
        reader, writer = await self.open()
        for _ in range(random.randrange(1, 6)):
            sent, wanted = self.request(random)
            writer.write(sent)
            self.hold("good", await self.answer(reader), 200, wanted)
        writer.close()

    async def health(self, _: Random) -> None:
        reader, writer = await self.open()
        writer.write(HEAD.format("GET", "/health").encode() + b"\r\n")
        self.hold("health", await self.answer(reader), 200)
        writer.close()

    async def slow(self, random: Random) -> None:
        reader, writer = await self.open()
        sent, wanted = self.request(random)
        cuts = sorted(random.randrange(1, len(sent)) for _ in range(4))
        for begin, end in zip([0, *cuts], [*cuts, len(sent)]):
            writer.write(sent[begin:end])
            await writer.drain()
            await asyncio.sleep(random.random() * 0.4)
        self.hold("slow", await self.answer(reader), 200, wanted)
        writer.close()

    async def half(self, random: Random) -> None:
        _, writer = await self.open()
        sent, _ = self.request(random)
        writer.write(sent[: random.randrange(1, len(sent))])
        await asyncio.sleep(random.random() * 0.3)
        self.reset(writer) if random.random() < 0.5 else writer.close()
        self.seen["half"] += 1

    async def unread(self, random: Random) -> None:
        _, writer = await self.open()
        writer.write(self.request(random)[0])
        self.reset(writer) if random.random() < 0.5 else writer.close()
        self.seen["unread"] += 1

    async def half_closed(self, random: Random) -> None:
        reader, writer = await self.open()
        sent, wanted = self.request(random)
        writer.write(sent)
        writer.write_eof()
        self.hold("half closed", await self.answer(reader), 200, wanted)
        writer.close()

    async def pipelined(self, random: Random) -> None:
        reader, writer = await self.open()
        asked = [self.request(random) for _ in range(random.randrange(2, 6))]
        bad = random.random() < 0.5
        writer.write(b"".join(sent for sent, _ in asked) + (random.randbytes(50) + b"\r\n\r\n") * bad)
        for _, wanted in asked:
            self.hold("pipelined, then no HTTP" if bad else "pipelined", await self.answer(reader), 200, wanted)
        writer.close()

    async def no_http(self, random: Random) -> None:
        reader, writer = await self.open()
        writer.write(b"\x16\x03\x01" + random.randbytes(random.randrange(1, 3000)) + b"\r\n\r\n")
        self.hold("no HTTP", await self.answer(reader), (400, 431))
        writer.close()

    async def large_head(self, random: Random) -> None:
        reader, writer = await self.open()
        size = random.randrange(66_000, 300_000)
        writer.write(HEAD.format("GET", "/health").encode() + b"x: " + b"y" * size + b"\r\n\r\n")
        self.hold("large head", await self.answer(reader), 431)
        writer.close()

    async def large_body(self, random: Random) -> None:
        reader, writer = await self.open()
        size = random.randrange(BODY + 1, 6 * BODY)
        if random.random() < 0.5:
            writer.write(self.written("/score", b" " * size))
        else:
            writer.write(HEAD.format("POST", "/score").encode() + b"transfer-encoding: chunked\r\n\r\n")
            for _ in range(size // 4096 + 1):
                writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        self.hold("large body", await self.answer(reader), 413)
        writer.close()

    async def beside(self, random: Random) -> None:
        reader, writer = await self.open()
        size = random.randrange(150_000, 300_000)
        begun = HEAD.format("POST", "/score").encode() + b"transfer-encoding: chunked\r\n\r\n"
        kinds = (b"2\r\n{}\r\n0\r\nt: ", b"2\r\n{}\r\n0\r\n", b"2;x=")
        writer.write(begun + random.choice(kinds) + b"u" * size)
        await writer.drain()
        self.hold("beside a body", await self.answer(reader), 400)
        writer.close()

    async def refused(self, random: Random) -> None:
        reader, writer = await self.open()
        sent, status = random.choice(
            [
                (self.written("/score", b"{}", method="PUT"), 405),
                (self.written("/nosuch", b"{}"), 404),
                (self.written("/score", b"{"), 400),
                (self.written("/score", b'{"items": [], "items": []}'), 400),
                (self.written("/score", b'{"items": ["nobody"]}'), 404),
                (self.written("/score", b"[" * 5000), 400),
                (self.written("/score", b"{}").replace(b"localhost", b"evil.example"), 421),
                (self.written("/score", b"{}").replace(b"host: localhost\r\n", b""), 400),
                (self.written("/score", b"{}").replace(b"application/json", b"text/plain"), 415),
            ]
        )
        writer.write(sent)
        self.hold("refused", await self.answer(reader), status)
        writer.close()

    async def loiter(self, random: Random) -> None:
        _, writer = await self.open()
        for part in (b"GET /hea", b"lth HTTP/1.1\r\nho", b"st: local", b"host\r\n")[: random.randrange(1, 5)]:
            writer.write(part)
            await asyncio.sleep(0.5)
        self.reset(writer)
        self.seen["loiter"] += 1

    # -- all of them -----------------------------------------------------------------------------------------------
    async def client(self, number: int, until: float, rounds: int | None) -> None:
        random = Random(f"{self.seed} {number}")
        acts = [self.good] * 6 + [self.health, self.slow, self.half, self.unread, self.half_closed, self.pipelined]
        acts += [self.no_http, self.large_head, self.large_body, self.beside, self.refused, self.refused, self.loiter]
        done = 0
        while time.monotonic() < until and (rounds is None or done < rounds):
            act = random.choice(acts)
            try:
                await act(random)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.wrong.append(f"{act.__name__}: lost: {type(error).__name__} {error}"[:200])
            done += 1

    async def run(self, clients: int, seconds: float, rounds: int | None = None) -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(self.client(number, until, rounds) for number in range(clients)))


def memory(process: int) -> float:
    """Resident memory in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def files(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def trial(seconds: float, clients: int, seed: int, rounds: int | None = None) -> dict[str, Any]:
    """Start a server, let the clients at it, return what they saw and what became of it."""
    draw = np.random.default_rng(0)
    table = {"item": [f"i{at}" for at in range(ITEMS)], "x": draw.normal(size=ITEMS), "y": draw.normal(size=ITEMS)}
    a, b = draw.integers(0, ITEMS, size=(2, 400))
    votes = cc.Preferences.from_comparisons(*([table["item"][k] for k in side[a != b]] for side in (a, b)))
    ranker = cc.EdgeRanker("ranknet").fit(table, votes)
    with tempfile.TemporaryDirectory() as place:
        cc.save_model(ranker, f"{place}/model")
        rows = zip(table["item"], table["x"].tolist(), table["y"].tolist())
        Path(place, "items.csv").write_text("item,x,y\n" + "".join(f"{item},{x!r},{y!r}\n" for item, x, y in rows))
        options = ["--max-body", BODY, "--limit-concurrency", 64, "--timeout", 20, "--log-format", "json"]
        with serving("-m", f"{place}/model", "-f", f"{place}/items.csv", *options) as server:
            load = Load(server.port, ranker, table, seed)
            process, said = server.process.pid, list[str]()
            reading = threading.Thread(target=lambda: said.extend(server.process.stderr or ()))
            reading.start()  # a log that nobody reads fills its pipe, and the server waits
            asyncio.run(load.run(clients, min(5.0, seconds), 3))  # what is loaded once is loaded now
            before, opened = memory(process), files(process)
            load.seed += 1
            course: list[float] = []
            sampling = threading.Event()

            def sample() -> None:
                while not sampling.wait(max(0.5, seconds / 10)):
                    course.append(round(memory(process), 1))

            watching = threading.Thread(target=sample)
            watching.start()
            asyncio.run(load.run(clients, seconds, rounds))
            sampling.set()
            watching.join()
            until = time.monotonic() + 40
            while files(process) > opened and time.monotonic() < until:
                time.sleep(0.2)
            found: dict[str, Any] = {
                "answers": dict(sorted(load.seen.items())),
                "requests": sum(load.seen.values()),
                "wrong": load.wrong[:20],
                "wrong answers": len(load.wrong),
                "memory before": round(before, 1),
                "memory meanwhile": course,
                "memory after": round(memory(process), 1),
                "files left open": files(process) - opened,
                "health": server.health(),
            }
            server.process.terminate()
            found["exit status"] = server.process.wait(60)
            reading.join()
            server.process.communicate()
            events = [json.loads(line) for line in said if line.strip()]
            found["lines that are no requests"] = sorted({one["event"] for one in events} - {"request", "refused"})
    return found


if __name__ == "__main__":
    reads = argparse.ArgumentParser()
    reads.add_argument("--seconds", type=float, default=300.0)
    reads.add_argument("--clients", type=int, default=40)
    reads.add_argument("--seed", type=int, default=1)
    given = reads.parse_args()
    print(json.dumps(trial(given.seconds, given.clients, given.seed), indent=1), file=sys.stdout)
