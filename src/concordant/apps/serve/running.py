"""Answering until told to stop: a socket, a web server in this process or in several, and an orderly end.

HTTP/1.1 on one connection: what uvicorn does, with bounds on heads and idle connections, and errors in JSON.

A connection that is closed before its client has sent all it wanted would be reset, and the client might lose the
answer with it. So what still comes is read and thrown away for a while (RFC 9112, 9.6: "lingering close").
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from concordant.apps.serve.access_log import Lines, access_log_handler
from concordant.apps.serve.limits import Limits, error_bytes
from concordant.apps.serve.operation import Reloader
from concordant.errors import ConcordantError, UsageError

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
        self.get_extra_info, self.set_protocol = transport.get_extra_info, transport.set_protocol
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

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


if sys.platform != "win32":
    import resource


BACKLOG = 2048
"""Connections that may wait to be accepted."""
SHARES = sys.platform == "linux"
"""Whether the system spreads connections over all sockets that listen at one address."""

SPARE = 64
"""Open files that are not connections."""
GRACE = 5
"""Seconds, after those that a body may take, in which requests that are worked on may end."""
KEEP_ALIVE = 75
AGAIN = 1.0
"""Seconds before a worker that died is started anew."""


def bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a socket that has its address but does not listen yet; port 0 takes a free one.

    ``shared``: workers may listen at the same address with sockets of their own.
    Errors (UsageError): a host that is unknown, a port that is taken or not allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"--host {host}: there is no such address") from None
    family, _, protocol, _, address = found[0]
    try:
        alone = _bound(family, protocol, address)
        if not (shared and SHARES):
            return alone
        with alone:  # nobody else listens there
            address = alone.getsockname()
        return _bound(family, protocol, address, shared=True)
    except OSError as error:
        said = {
            errno.EADDRINUSE: "another program listens there; --port names another one",
            errno.EACCES: "no permission; ports below 1,024 are for the system, --port names another one",
            errno.EADDRNOTAVAIL: "this machine has no such address; --host names another one",
        }
        raise UsageError(f"{host}, port {port}: {said.get(error.errno or 0, error.strerror)}") from None


def _bound(family: int, protocol: int, address: Any, *, shared: bool = False) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, protocol)  # asyncio sets TCP_NODELAY only where protocol is named
    try:
        if sys.platform != "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def _own(listener: socket.socket) -> socket.socket:
    """Return what a worker listens with: one process that accepts all there is leaves nothing for the others."""
    own = _bound(listener.family, listener.proto, listener.getsockname(), shared=True) if SHARES else listener
    own.listen(BACKLOG)
    return own


@dataclass(frozen=True)
class Answering:
    """What answers requests: the application, its limits, its log, what exchanges the model, what ends it."""

    app: Any
    limits: Limits
    lines: Lines
    reloader: Reloader
    stopping: Callable[[], object]


def answer(made: Answering, listener: socket.socket, started: Callable[[], Any] | None = None) -> None:
    """Answer requests until SIGTERM (then return) or Ctrl-C (then KeyboardInterrupt); those begun are ended first.

    ``started`` is called when signals would be obeyed. SIGHUP exchanges the model, unless the terminal has gone.
    """
    app, limits, lines = made.app, made.limits, made.lines
    log = logging.getLogger("uvicorn.error")
    log.handlers, log.propagate = [access_log_handler(lines)], False
    log.setLevel(logging.ERROR)

    class Protocol(BoundedProtocol):
        most = _connections()
        longest = 8 * limits.body + (1 << 20)

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        loop="asyncio",  # uvloop accepts one connection a turn: those not yet accepted could not be refused
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.timeout) + GRACE,
    )
    server = uvicorn.Server(config)

    def stop(*_: Any) -> None:
        """uvicorn takes the signal only once it runs, and raises the one that ended it once more when it has ended."""
        made.stopping()
        server.should_exit = True

    before = signal.signal(signal.SIGTERM, stop)
    hangs_up = _on_hangup(made.reloader.ask, stop)
    try:
        if started is not None:
            started()
        gc.collect()
        made.reloader.begin()
        gc.freeze()  # a million labels need not be looked through again and again
        server.run([listener])
    finally:
        gc.unfreeze()
        signal.signal(signal.SIGTERM, before)
        hangs_up()


def _on_hangup(reload: Callable[[], object], stop: Callable[[], object]) -> Callable[[], object]:
    """Reload on SIGHUP, stop where it says that the terminal was closed; return what undoes this."""
    if sys.platform == "win32":
        return _nothing
    on_terminal = _terminal_is_there()

    def heard(*_: Any) -> None:
        if on_terminal and not _terminal_is_there():
            stop()
        else:
            reload()

    before = signal.signal(signal.SIGHUP, heard)
    return lambda: signal.signal(signal.SIGHUP, before)


def _terminal_is_there() -> bool:
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
        return True
    return False


def _connections() -> int:
    """How many connections may be open: all files that the system allows, less a few."""
    if sys.platform == "win32":
        return 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    files = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    return max(1, files - SPARE)


# -- several processes -------------------------------------------------------------------------------------------------
@dataclass
class _Worker:
    process: Any
    ready: Any
    """A pipe on which the worker says that it answers."""
    began: bool = False
    missed: bool = False
    """Whether it was to exchange the model before it could be told: it may have read the one from before."""


def answer_in_workers(
    make: Callable[[int], Answering], listener: socket.socket, number: int, started: Callable[[], Any]
) -> None:
    """Answer requests in so many processes, each with what ``make`` (which must pickle) returns of its number.

    ``started`` is called when all of them answer. One that dies later is started anew; SIGHUP is handed on to all.
    SIGTERM raises SystemExit(0), Ctrl-C KeyboardInterrupt, after the workers have ended. Errors: UsageError for workers
    that do not come up.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    before_break = signal.signal(signal.SIGINT, signal.default_int_handler)
    workers: list[_Worker] = []
    hangs_up = _on_hangup(lambda: _hand_on(workers), lambda: sys.exit(0))
    try:
        workers.extend(_begin(make, listener, place) for place in range(number))
        while True:
            wait([worker.process.sentinel for worker in workers] + [w.ready for w in workers if not w.began])
            for worker in workers:
                if not worker.began and worker.ready.poll():
                    with contextlib.suppress(EOFError):
                        worker.began = worker.ready.recv()
                    if worker.began and worker.missed:
                        _exchange(worker)
                    if all(each.began for each in workers):
                        started()
                        started = _nothing
            dead = [place for place, worker in enumerate(workers) if not worker.process.is_alive()]
            for place in dead:
                if not workers[place].began:
                    raise UsageError(f"a worker ended while it started (exit status {workers[place].process.exitcode})")
                time.sleep(AGAIN)
                workers[place] = _begin(make, listener, place)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end(workers)
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, before_break)
        hangs_up()


def _hand_on(workers: list[_Worker]) -> None:
    for worker in workers:
        if not worker.began:
            worker.missed = True
        elif worker.process.is_alive():
            _exchange(worker)


def _exchange(worker: _Worker) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.process.pid, signal.SIGHUP)


def _nothing() -> None:
    pass


def _begin(make: Callable[[int], Answering], listener: socket.socket, place: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(make, listener, place, theirs), daemon=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: workers wait for us
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()
    return _Worker(process, ours)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(60)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _work(make: Callable[[int], Answering], listener: socket.socket, place: int, ready: Any) -> None:
    """What a worker does."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        made = make(place)
    except ConcordantError as error:
        sys.exit(f"error: {error}")
    with _own(listener) as own, contextlib.suppress(KeyboardInterrupt):
        answer(made, own, lambda: ready.send(True))


def _follow_parent() -> None:
    """End when the parent has: nobody else would tell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
