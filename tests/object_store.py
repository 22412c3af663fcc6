"""An object store on this machine, moto's, that can be told to refuse, to slow down and to cut its answers short."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import pytest

HOST = "127.0.0.1"
ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}, says the test</Message></Error>'
)


@dataclass
class Asked:
    """A request: method, path and range as they came."""

    method: str
    path: str
    range: str


@dataclass
class ObjectStore:
    """The server. ``fault`` looks at each request and returns 'cut', the status and code of an error, or None."""

    endpoint: str = ""
    fault: Callable[[Asked], Any] = lambda _: None
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0
    """Bytes of objects that were sent."""
    app: Any = None

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        asked = Asked(environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"]), environ.get("HTTP_RANGE", ""))
        self.asked.append(asked)
        fault = self.fault(asked)
        if isinstance(fault, tuple):
            body = ERROR.format(code=fault[1]).encode()
            start(f"{fault[0]} {fault[1]}", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [] if asked.method == "HEAD" else [body]
        answer = b"".join(self.app(environ, start))
        if asked.method == "GET":
            self.sent += len(answer)
        return [answer] if fault is None else self._cut(answer)

    @staticmethod
    def _cut(answer: bytes) -> Iterator[bytes]:
        yield answer[: len(answer) // 2]
        raise ConnectionAbortedError

    def put(self, key: str, data: bytes) -> None:
        """Put an object there, at once, past whatever fails."""
        self._change("PUT", key, data)

    def delete(self, key: str) -> None:
        """Take an object away."""
        self._change("DELETE", key)

    def empty(self) -> None:
        """Take all objects away."""
        for key in re.findall("<Key>(.*?)</Key>", self._change("GET", "votes?list-type=2&encoding-type=url")):
            self._change("DELETE", f"votes/{unquote(key)}")

    def _change(self, method: str, key: str, data: bytes = b"") -> str:
        from werkzeug.test import Client

        path, mark, query = key.partition("?list") if "?list" in key else (key, "", "")
        done = Client(self.app).open(
            f"/{quote(path)}{mark}{query}", base_url=self.endpoint, method=method, data=data,
            headers={"Authorization": "AWS4-HMAC-SHA256 Credential=me/20261125/us-east-1/s3/aws4_request"},
        )  # fmt: skip
        assert done.status_code < 300, done.text
        return str(done.text)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server with the bucket ``votes``. Skips where moto is not installed."""
    server = pytest.importorskip("moto.server")
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    there = ObjectStore()
    there.app = server.DomainDispatcherApplication(server.create_backend_app)
    running = make_server(HOST, 0, there, threaded=True)
    running.daemon_threads = True
    there.endpoint = f"http://{HOST}:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        there.put("votes", b"")
        yield there
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def environment(endpoint: str) -> dict[str, str]:
    """Return what the environment of a program has to say, so that it finds the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
