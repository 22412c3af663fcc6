"""HTTP/1.1 on one connection: what uvicorn does, with bounds on heads and idle connections, and errors in JSON.

A connection that is closed before its client has sent all it wanted would be reset, and the client might lose the
answer with it. So what still comes is read and thrown away for a while (RFC 9112, 9.6: "lingering close").
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from concordant.serving.limits import error_bytes

__all__ = ["MOST_CONNECTIONS", "BoundedProtocol"]

HEAD = 64 << 10
"""Bytes of a request's line and headers; of a chunk's size with its extensions, and of trailers, too."""
TIMES = 8
"""Bytes on the line for each byte of a chunked body, beyond ``HEAD``; chunks of one byte take six."""
PIECE = 16 << 10
"""Bytes that are parsed before they are counted: the bounds are as exact as that."""
WAIT = 10.0
"""Seconds that a head, and what is left of a refused request, may take to arrive."""
LAST = 1.0
"""Seconds that what is left of a refused request may take once the server has been told to stop."""
MOST_CONNECTIONS = 8192
"""Connections that are held at once; fewer where the system allows fewer open files."""


class _Lingering:
    """A transport whose end is that of the protocol: what the other side still sends is waited for."""

    def __init__(self, transport: Any, protocol: BoundedProtocol) -> None:
        self.transport, self.protocol = transport, protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        if not self.protocol.left:
            self.transport.write(data)

    def is_closing(self) -> bool:
        return self.protocol.left or bool(self.transport.is_closing())

    def close(self) -> None:
        self.protocol.leave()


class BoundedProtocol(HttpToolsProtocol):
    """A connection that sends its heads in time and within bounds, or is closed with a reason."""

    most = MOST_CONNECTIONS
    longest = 64 << 20
    """Bytes on the line of one request, its chunks and what is left unread of a refused body included."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.head = self.rest = self.size = self.body = self.beside = 0
        self.whole = True
        """Whether no request is half received."""
        self.deaf = False
        """Whether what comes is not looked at any more: the last answer is under way."""
        self.left = False
        """Whether the last answer was given."""
        self.stopping = False
        """Whether the server has been told to stop."""
        self.running: Any = None
        """The request that is worked on; ``cycle`` is the last that began, which may wait for this one."""
        self.line: Any = None
        self.late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.line = transport
        super().connection_made(_Lingering(transport, self))  # type: ignore[arg-type]
        self.whole = False  # nothing came yet: whoever is sent away now may be about to ask
        if len(self.connections) > self.most:
            self.whole = True  # nothing is waited for: there is no room
            return self._end(b"503 Service Unavailable", f"busy: {self.most:,} connections are open", b"retry-after: 1")
        self.late = self.loop.call_later(WAIT, self._too_late)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            self._received(data[begin : begin + PIECE] if len(data) > PIECE else data)

    def _received(self, data: bytes) -> None:
        if self.line.is_closing():
            return
        inside, body = self.head < 0, self.body
        if self.left or self.deaf or inside:
            self.rest += len(data)
            if self.rest > self.longest:
                self.line.abort()
                return
        else:
            self.head += len(data)
        if self.left or self.deaf:
            return
        super().data_received(data)
        if self.left or self.deaf:
            return
        if self.head > HEAD:
            self._too_large()
        elif inside and self.head < 0:
            self.beside = 0 if self.body > body else self.beside + len(data)
            if self.beside > HEAD or self.rest > HEAD + TIMES * self.body:
                self._too_much_beside()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The other side sends no more; what it asked for is still answered."""
        if self.left or not self._answered_first():
            return None
        return True

    def shutdown(self) -> None:
        lingers, self.stopping = self.left and not self.whole, True
        super().shutdown()
        if lingers:
            self._in_time()
            self.late = self.loop.call_later(LAST, self.line.abort)
        elif self.left:
            self.line.close()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    # -- what the parser says --------------------------------------------------------------------------------------
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head, self.size = max(self.head, 0), 0
        self.whole = False
        if self.late is None:
            self.late = self.loop.call_later(WAIT, self._too_late)

    def on_url(self, url: bytes) -> None:
        self.size += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head >= 0:  # trailers of a body say nothing here
            self.size += len(name) + len(value) + len(b": \r\n")
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.left or self.deaf:
            return
        self._in_time()
        if self.size + len(self.parser.get_method()) + len(b"  HTTP/1.1\r\n\r\n") > HEAD:
            self._too_large()
            return
        super().on_headers_complete()  # which raises for some targets: then nothing is worked on
        self.head, self.rest, self.body, self.beside = -1, 0, 0, 0

    def on_body(self, body: bytes) -> None:
        if not (self.left or self.deaf):
            self.body += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.left or self.deaf:
            return
        self.head, self.whole = 0, True
        self._in_time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        early = self.head < 0 and self.cycle.response_complete  # answered before all of it came: so long it may take
        if early and not self.whole and not self.left:
            self.late = self.late or self.loop.call_later(WAIT, self.leave)

    def send_400_response(self, msg: str) -> None:
        self._end(b"400 Bad Request", "this is not a request of HTTP/1.1")

    # -- the end ---------------------------------------------------------------------------------------------------
    def leave(self) -> None:
        """Close the connection: at once where all was received, else when the other side has, or has sent enough."""
        if self.left:
            return
        self.left = True
        self._in_time()
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.whole or self.line.is_closing() or not self.line.can_write_eof():
            self.line.close()
            return
        self.line.write_eof()
        self.flow.resume_reading()
        self.rest = 0
        self.late = self.loop.call_later(LAST if self.stopping else WAIT, self.line.abort)

    def _too_late(self) -> None:
        self.late = None
        self._end(b"408 Request Timeout", f"no whole head within {WAIT:g} s")

    def _too_large(self) -> None:
        self._end(b"431 Request Header Fields Too Large", f"the head is larger than {HEAD:,} bytes")

    def _too_much_beside(self) -> None:
        may = f"may have {HEAD:,} bytes, and {TIMES - 1} for each of the body"
        self._end(b"400 Bad Request", f"too much beside the body: chunk sizes, extensions and trailers {may}")

    def _in_time(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def _answered_first(self) -> bool:
        """Whether there are whole requests to be answered yet; the last answer to them will be the last of all."""
        asked = [self.running, *(cycle for cycle, _ in reversed(self.pipeline))]
        due = [
            one
            for one in asked
            if one is not None and not one.response_complete and (one.response_started or not one.more_body)
        ]
        if not due:
            return False
        if self.pipeline and self.pipeline[0][0].more_body:  # half received: it gets none
            self.pipeline.popleft()
        self.cycle = due[-1]
        self.cycle.keep_alive, self.deaf, self.rest = False, True, 0
        return True

    def _end(self, status: bytes, line: str, *headers: bytes) -> None:
        if self.left or self.deaf:
            return
        if self._answered_first():
            return
        if self.head < 0 and self.cycle.response_complete:  # what is amiss comes after its own answer
            self.leave()
            return
        body = error_bytes(line)
        lines = [b"HTTP/1.1 " + status, b"content-type: application/json", b"content-length: %d" % len(body)]
        self.line.write(b"\r\n".join([*lines, *headers, b"connection: close", b"", body]))
        self.leave()
