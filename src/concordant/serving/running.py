"""Answering until told to stop: a socket, a web server in this process or in several, and an orderly end."""

from __future__ import annotations

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

from concordant.errors import ConcordantError, UsageError
from concordant.serving.journal import Lines, journal_handler
from concordant.serving.limits import Limits
from concordant.serving.protocol import MOST_CONNECTIONS, BoundedProtocol

if sys.platform != "win32":
    import resource

__all__ = ["BACKLOG", "answer", "answer_in_workers", "bound"]

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


def answer(
    app: Any, listener: socket.socket, limits: Limits, lines: Lines, started: Callable[[], Any] | None = None
) -> None:
    """Answer requests until SIGTERM (then return) or Ctrl-C (then KeyboardInterrupt); those begun are ended first.

    ``started`` is called when SIGTERM would be obeyed.
    """
    log = logging.getLogger("uvicorn.error")
    log.handlers, log.propagate = [journal_handler(lines)], False
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
        server.should_exit = True

    before = signal.signal(signal.SIGTERM, stop)
    try:
        if started is not None:
            started()
        gc.collect()
        gc.freeze()  # a million labels need not be looked through again and again
        server.run([listener])
    finally:
        gc.unfreeze()
        signal.signal(signal.SIGTERM, before)


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


def answer_in_workers(
    make: Callable[[], tuple[Any, Limits, Lines]], listener: socket.socket, number: int, started: Callable[[], Any]
) -> None:
    """Answer requests in so many processes, each with an application that ``make`` (which must pickle) returns.

    ``started`` is called when all of them answer. One that dies later is started anew. SIGTERM raises SystemExit(0),
    Ctrl-C KeyboardInterrupt, after the workers have ended. Errors: UsageError for workers that do not come up.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    before_break = signal.signal(signal.SIGINT, signal.default_int_handler)
    workers: list[_Worker] = []
    try:
        workers.extend(_begin(make, listener) for _ in range(number))
        while True:
            wait([worker.process.sentinel for worker in workers] + [w.ready for w in workers if not w.began])
            for worker in workers:
                if not worker.began and worker.ready.poll():
                    with contextlib.suppress(EOFError):
                        worker.began = worker.ready.recv()
                    if all(each.began for each in workers):
                        started()
                        started = _nothing
            dead = [place for place, worker in enumerate(workers) if not worker.process.is_alive()]
            for place in dead:
                if not workers[place].began:
                    raise UsageError(f"a worker ended while it started (exit status {workers[place].process.exitcode})")
                time.sleep(AGAIN)
                workers[place] = _begin(make, listener)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end(workers)
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, before_break)


def _nothing() -> None:
    pass


def _begin(make: Callable[[], tuple[Any, Limits, Lines]], listener: socket.socket) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(make, listener, theirs), daemon=True)
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


def _work(make: Callable[[], tuple[Any, Limits, Lines]], listener: socket.socket, ready: Any) -> None:
    """What a worker does."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        app, limits, lines = make()
    except ConcordantError as error:
        sys.exit(f"error: {error}")
    own = _own(listener)
    ready.send(True)
    with contextlib.suppress(KeyboardInterrupt):
        answer(app, own, limits, lines)


def _follow_parent() -> None:
    """End when the parent has: nobody else would tell."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
