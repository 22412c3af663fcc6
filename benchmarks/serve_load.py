"""An open loop of requests: so many a second, whatever the server does (``python -m benchmarks.serve_load ORDER``).

A request is sent when it is due, on a connection that is free, or on a new one while there are fewer than allowed; with
none free it is counted as not sent. So what is offered does not fall when the server is slow, up to the number of
connections. Latency is from sending to the last byte of the answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

TICK = 0.001


class _Line(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.buffer = b""
        self.sent = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.load.idle.append(self)

    def send(self, request: bytes) -> None:
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ")
        length = int(self.buffer[at + 16 : self.buffer.find(b"\r", at)])
        if len(self.buffer) < head + 4 + length:
            return
        status = int(self.buffer[9:12])
        now = time.perf_counter()
        self.load.done(status, now - self.sent, now)
        self.buffer, self.sent = b"", 0.0
        self.load.idle.append(self)

    def connection_lost(self, _: Exception | None) -> None:
        if self.sent:
            self.load.lost += 1
        self.load.open -= 1
        if self in self.load.idle:
            self.load.idle.remove(self)


class Load:
    """What was sent and answered."""

    def __init__(self, port: int, requests: list[bytes], rate: float, seconds: float, connections: int) -> None:
        self.port, self.requests, self.rate, self.seconds, self.most = port, requests, rate, seconds, connections
        self.idle: list[_Line] = []
        self.open = self.sent = self.unsent = self.lost = self.failed = 0
        self.status: Counter[int] = Counter()
        self.latency: dict[int, list[float]] = {}
        self.opening: set[asyncio.Task[None]] = set()

    def done(self, status: int, took: float, _: float) -> None:
        self.status[status] += 1
        self.latency.setdefault(status, []).append(took)

    async def _connect(self) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: _Line(self), "127.0.0.1", self.port)
        except OSError:
            self.open -= 1
            self.failed += 1

    async def run(self) -> None:
        begin = time.perf_counter()
        due = 0
        while (now := time.perf_counter() - begin) < self.seconds:
            wanted = int(now * self.rate)
            for _ in range(wanted - due):
                if self.idle:
                    self.idle.pop().send(self.requests[self.sent % len(self.requests)])
                    self.sent += 1
                else:
                    self.unsent += 1
                    if self.open < self.most and len(self.opening) < 50:
                        self.open += 1
                        task = asyncio.create_task(self._connect())
                        self.opening.add(task)
                        task.add_done_callback(self.opening.discard)
            due = wanted
            await asyncio.sleep(TICK)
        end = time.perf_counter() + 5  # what is under way may still be answered
        while sum(self.status.values()) + self.lost < self.sent and time.perf_counter() < end:
            await asyncio.sleep(0.01)

    def result(self) -> dict[str, Any]:
        answered = sum(self.status.values())
        found: dict[str, Any] = {
            "offered": int(self.rate * self.seconds),
            "sent": self.sent,
            "not sent": self.unsent,
            "lost": self.lost,
            "unanswered": self.sent - answered - self.lost,
            "connections": self.open,
            "not connected": self.failed,
            "processor": time.process_time(),
        }
        for status, took in self.latency.items():
            p50, p99, most = np.percentile(took, [50, 99, 100]).tolist()
            found[str(status)] = {"answers": len(took), "p50": p50, "p99": p99, "max": most}
        return found


def main(order: dict[str, Any]) -> None:
    bodies = Path(order["bodies"]).read_text().splitlines()
    head = f"POST {order['path']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
    requests = [(head + f"{len(body.encode())}\r\n\r\n{body}").encode() for body in bodies]
    load = Load(order["port"], requests, order["rate"], order["seconds"], order["connections"])
    try:
        import uvloop

        uvloop.run(load.run())
    except ImportError:
        asyncio.run(load.run())
    print(json.dumps(load.result()))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
