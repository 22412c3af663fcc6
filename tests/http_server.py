"""``concordant serve`` for tests: an application in this process, the command in a process of its own, and a schema."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

JSON = {"content-type": "application/json"}


def ask(app: Any, path: str, body: Any = None, *, method: str = "POST", headers: Any = JSON) -> httpx.Response:
    """Send one request to an application; a body that is no bytes is written as JSON. What it raises is raised here."""
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, content=content, headers=headers)

    return asyncio.run(send())


class Server:
    """The command in a process of its own, on a free port."""

    def __init__(self, *arguments: object, wait: float = 60.0) -> None:
        command = [sys.executable, "-m", "concordant", "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.lines: list[str] = []
        until = time.monotonic() + wait
        while True:
            line = self.line(until - time.monotonic())
            found = re.search(r"http://[\d.]+:(\d+)", line)
            if found:
                self.port = int(found[1])
                return

    def line(self, wait: float = 20.0) -> str:
        """Return the next line on stderr."""
        assert self.process.stderr is not None
        with selectors.DefaultSelector() as heard:  # select() knows 1,024 files only
            heard.register(self.process.stderr, selectors.EVENT_READ)
            ready = heard.select(max(wait, 0))
        line = self.process.stderr.readline() if ready else ""
        if not line:
            self.process.kill()
            raise AssertionError(f"the server said nothing more; before: {self.lines}")
        self.lines.append(line)
        return line

    def post(self, path: str, body: Any, wait: float = 60.0) -> tuple[int, Any]:
        """Return status and JSON of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=wait)
        try:
            connection.request("POST", path, json.dumps(body), JSON)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def health(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status
        finally:
            connection.close()

    def raw(self, data: bytes, wait: float = 10.0) -> bytes:
        """Send bytes as they are; return all that comes back until the other side closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as line:
            line.sendall(data)
            line.settimeout(wait)
            parts = []
            while True:
                try:
                    part = line.recv(1 << 16)
                except (TimeoutError, ConnectionResetError):
                    break
                if not part:
                    break
                parts.append(part)
                if b"\r\n\r\n" in b"".join(parts):
                    line.settimeout(0.3)
            return b"".join(parts)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, rest = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.lines += (rest or "").splitlines(keepends=True)
        return self.process.returncode


def read_all(line: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = [line.recv(1 << 16)]
    while parts[-1]:
        parts.append(line.recv(1 << 16))
    return b"".join(parts)


@contextmanager
def serving(*arguments: object) -> Iterator[Server]:
    """A server that is gone after the ``with``."""
    server = Server(*arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def check_schema(value: Any, schema: Any, whole: Any, place: str = "$") -> None:
    """Assert that a value is as a JSON schema of OpenAPI says; keywords that are not known here are an error."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return check_schema(value, whole["components"]["schemas"][name], whole, place)
    known = {
        *("type", "title", "description", "default", "examples", "anyOf", "enum", "const", "properties", "required"),
        *("additionalProperties", "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
        *("maxProperties", "minProperties"),
    }
    assert not set(schema) - known, f"{place}: {set(schema) - known}"
    if "anyOf" in schema:
        failures = []
        for each in schema["anyOf"]:
            try:
                check_schema(value, each, whole, place)
                break
            except AssertionError as failure:
                failures.append(str(failure))
        else:
            raise AssertionError("; ".join(failures))
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    if "type" in schema:
        kind = schema["type"]
        fits = isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))
        assert fits, f"{place}: {value!r} is no {kind}"
    assert value in schema.get("enum", [value]), f"{place}: {value!r} not in {schema.get('enum')}"
    assert value == schema.get("const", value), f"{place}: {value!r}"
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        assert set(schema.get("required", ())) <= set(value), f"{place}: lacks {set(schema['required']) - set(value)}"
        assert schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)), place
        for name, one in value.items():
            inner = properties.get(name, more)
            assert inner is not False, f"{place}: unknown {name!r}"
            if inner is not True:
                check_schema(one, inner, whole, f"{place}.{name}")
    elif isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), f"{place}: {len(value)}"
        first = schema.get("prefixItems", [])
        for at, one in enumerate(value):
            check_schema(one, first[at] if at < len(first) else schema.get("items", {}), whole, f"{place}[{at}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), f"{place}: {value}"
    return None


def folder_of(model: Path) -> set[str]:
    """What lies beside a model and in it."""
    return {str(path.relative_to(model.parent)) for path in model.parent.rglob("*")}
