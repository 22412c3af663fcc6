"""HTTP/1.1 on one connection: what uvicorn does, with bounds on heads and idle connections, and errors in JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from concordant.serving.limits import error_bytes

__all__ = ["MOST_CONNECTIONS", "BoundedProtocol"]

HEAD = 64 << 10
"""Bytes of a request's line and headers."""
WAIT = 10.0
"""Seconds that a new connection may take to its first whole head."""
MOST_CONNECTIONS = 8192
"""Connections that are held at once; fewer where the system allows fewer open files."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that sends its head in time and within bounds, or is closed with a reason."""

    most = MOST_CONNECTIONS
    longest = 64 << 20
    """Bytes on the line of one request, its chunks and what is left unread of a refused body included."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.head = self.rest = 0
        self.late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            return self._end(b"503 Service Unavailable", f"busy: {self.most:,} connections are open", b"retry-after: 1")
        self.late = self.loop.call_later(WAIT, self._too_late)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return None
        if self.head >= 0:
            self.head += len(data)
        else:
            self.rest += len(data)
            if self.rest > self.longest:
                return self.transport.close()
        super().data_received(data)
        if self.head > HEAD:
            self._end(b"431 Request Header Fields Too Large", f"the head is larger than {HEAD:,} bytes")
        return None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head = max(self.head, 0)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head >= 0:  # trailers of a body say nothing here
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.head, self.rest = -1, 0
        self._in_time()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.head = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._end(b"400 Bad Request", "this is not a request of HTTP/1.1")

    def _too_late(self) -> None:
        if not self.transport.is_closing():
            self._end(b"408 Request Timeout", f"no whole head within {WAIT:g} s")

    def _in_time(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def _end(self, status: bytes, line: str, *headers: bytes) -> None:
        body = error_bytes(line)
        lines = [b"HTTP/1.1 " + status, b"content-type: application/json", b"content-length: %d" % len(body)]
        self.transport.write(b"\r\n".join([*lines, *headers, b"connection: close", b"", body]))
        self.transport.close()
