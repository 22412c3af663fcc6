"""What operating a server takes: counters as Prometheus reads them, a model that is exchanged under way, a second one
beside it whose answers are compared."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.models.directory import HASHES
from concordant.apps.serve.limits import App, Receive, Refused, Scope, Send
from concordant.apps.serve.served import Served
from concordant.errors import ConcordantError

PATHS = ("/score", "/rank", "/compare", "/health", "/ready", "/metrics", "/openapi.json", "other")
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 421, 422, 500, 503, 0)
"""Of answers; 0 stands for any other."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, float("inf"))
"""Upper ends of the times, in seconds."""
EVENTS = {
    "reloads": ("outcome", ("done", "failed"), "Exchanges of model and features, of all workers."),
    "shadow_requests": ("outcome", ("compared", "refused", "dropped"), "Requests that the second model answered, too."),
    "shadow_pairs": ("order", ("same", "opposite", "tied"), "Pairs of items that both models ordered."),
    "shadow_top": ("item", ("same", "other"), "Requests by whether both models put the same item first."),
}
"""Counters: the label, its values, what is counted."""
_TIMED = PATHS[:3]
_AT = {
    key: place
    for place, key in enumerate([
        *((path, status) for path in PATHS for status in STATUSES),
        *((path, bucket) for path in _TIMED for bucket in (*BUCKETS, "sum")),
        *((name, value) for name, (_, values, _) in EVENTS.items() for value in values),
        "inside",
    ])
}  # fmt: skip
SIZE = len(_AT)
"""Numbers that a worker counts."""
MOST_COMPARED, MOST_WAITING = 1000, 64


class Metrics:
    """Counters of a worker, summed over all of them when they are read: ``counts`` has a row for each.

    >>> metrics = Metrics()
    >>> metrics.answered("/rank", 200, 0.004)
    >>> 'requests_total{path="/rank",status="200"} 1' in metrics.text({})
    True
    """

    def __init__(self, counts: Any = None, worker: int = 0) -> None:
        self.all: NDArray[np.float64] = np.frombuffer(counts or bytearray(8 * SIZE), np.float64).reshape(-1, SIZE)
        self.own = self.all[worker]
        self.own[_AT["inside"]] = 0  # of a worker that died

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        own, path = self.own, path if path in PATHS else "other"
        own[_AT.get((path, status), _AT[path, 0])] += 1
        if path in _TIMED:
            own[_AT[path, BUCKETS[bisect_left(BUCKETS, seconds)]]] += 1
            own[_AT[path, "sum"]] += seconds

    def inside(self, by: int) -> None:
        """Count a request that is worked on, or is no more."""
        self.own[_AT["inside"]] += by

    def count(self, event: str, value: str, by: float = 1) -> None:
        """Count something of ``EVENTS``."""
        self.own[_AT[event, value]] += by

    def text(self, info: Mapping[str, str], shadow: Mapping[str, str] | None = None) -> str:
        """Return all of it in Prometheus's text format 0.0.4; ``info`` is of the model that answers."""
        at: Any = dict(zip(_AT, self.all.sum(axis=0).tolist()))
        lines: list[str] = []

        def say(name: str, kind: str, what: str, values: Sequence[tuple[str, float]]) -> None:
            lines.extend([f"# HELP concordant_{name} {what}", f"# TYPE concordant_{name} {kind}"])
            lines.extend(f"concordant_{name}{labels} {_number(value)}" for labels, value in values)

        asked = [
            (_labels(path=path, status=status or "other"), at[path, status])
            for path in PATHS for status in STATUSES if at[path, status]
        ]  # fmt: skip
        say("requests_total", "counter", "Requests answered.", asked)
        name = "request_duration_seconds"
        lines += [
            f"# HELP concordant_{name} Time from a request's head to its answer.",
            f"# TYPE concordant_{name} histogram",
        ]
        for path in _TIMED:
            up = np.cumsum([at[path, bucket] for bucket in BUCKETS]).tolist()
            lines += [
                f"concordant_{name}_bucket{_labels(path=path, le=_number(b))} {_number(n)}" for b, n in zip(BUCKETS, up)
            ]
            lines += [f"concordant_{name}_sum{_labels(path=path)} {at[path, 'sum']!r}"]
            lines += [f"concordant_{name}_count{_labels(path=path)} {_number(up[-1])}"]
        say("requests_in_progress", "gauge", "Requests that are worked on.", [("", at["inside"])])
        for event, (label, values, what) in EVENTS.items():
            if shadow is not None or not event.startswith("shadow"):
                say(f"{event}_total", "counter", what, [(_labels(**{label: one}), at[event, one]) for one in values])
        say("workers", "gauge", "Processes that answer.", [("", len(self.all))])
        told = [(_labels(role="served", **info), 1.0)]
        told += [] if shadow is None else [(_labels(role="shadow", **shadow), 1.0)]
        say("model_info", "gauge", "The model of the worker that answers this: its name, hash, and time of fit.", told)
        return "\n".join(lines) + "\n"


def _labels(**labels: object) -> str:
    """Labels as Prometheus takes them: backslashes, quotes and line ends escaped."""
    marks = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    return "{" + ",".join(f'{name}="{str(value).translate(marks)}"' for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else f"{int(value)}" if value == int(value) else repr(value)


class Measured:
    """ASGI middleware that counts each request and its time."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begin, status = time.perf_counter(), 0

        async def seen(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.inside(1)
        try:
            await self.app(scope, receive, seen)
        finally:
            self.metrics.inside(-1)
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            self.metrics.answered(path, status, time.perf_counter() - begin)
        return None


class Operation:
    """What outlasts an exchange of the model: the counters, and whether the server is about to end."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self.metrics = metrics or Metrics()
        self.stopping = False

    def stop(self) -> None:
        """Say that the server is about to end: no new requests should come."""
        self.stopping = True


# -- a second model ----------------------------------------------------------------------------------------------------
class Shadow:
    """A second model that answers a share of the requests, too; its answers are compared, and nobody is sent them.

    The work is done beside the answers; where too much of it waits, it is dropped and counted. Compared are pairs of
    items: of scores the order of both, of /compare the answers.
    """

    def __init__(self, served: Served, share: float, about: Mapping[str, str], metrics: Metrics) -> None:
        self.served, self.share, self.about, self.metrics = served, share, about, metrics
        self.due, self.waiting = 0.0, 0
        self.pool = ThreadPoolExecutor(1, "shadow")

    def offer(self, path: str, asked: Any, primary: Served) -> None:
        """Let the second model answer what the first has just answered, if it is its turn."""
        self.due += self.share
        if self.due < 1:
            return
        self.due -= 1
        if self.waiting >= MOST_WAITING:
            self.metrics.count("shadow_requests", "dropped")
            return
        self.waiting += 1
        self.pool.submit(self._compare, path, asked, primary)

    def _compare(self, path: str, asked: Any, primary: Served) -> None:
        try:
            if path == "/compare":
                ours, theirs = (
                    np.array([_SIGNS[one["answer"]] for one in served.compare(asked)["comparisons"]], np.int8)
                    for served in (primary, self.served)
                )
                self.count(ours, theirs)
            else:
                scores = [np.array(served.score(asked)["scores"]) for served in (primary, self.served)]
                self.scored(*scores)
            self.metrics.count("shadow_requests", "compared")
        except (Refused, ConcordantError):
            self.metrics.count("shadow_requests", "refused")
        finally:
            self.waiting -= 1

    def scored(self, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
        """Count the pairs of items, and whether the best one is the same."""
        if len(ours):
            self.metrics.count("shadow_top", "same" if ours.argmax() == theirs.argmax() else "other")
        first, second = np.triu_indices(min(len(ours), MOST_COMPARED), 1)
        self.count(np.sign(ours[first] - ours[second]), np.sign(theirs[first] - theirs[second]))

    def count(self, ours: NDArray[Any], theirs: NDArray[Any]) -> None:
        """Count pairs by their signs: ordered the same way, the other way, or by one model only."""
        same, opposite = int((ours == theirs).sum()), int((ours * theirs < 0).sum())
        for order, number in (("same", same), ("opposite", opposite), ("tied", len(ours) - same - opposite)):
            self.metrics.count("shadow_pairs", order, number)


_SIGNS = {"first": 1, "second": -1, "declined": 0}


# -- exchanging the model ----------------------------------------------------------------------------------------------
class Current:
    """The application that answers new requests; those that have begun are ended by the one that they began with."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class Reloader:
    """Makes the application anew beside the one that answers, and puts it into its place; if that fails, the old stays.

    ``make`` reads model and features again. ``watched`` are files and folders to look at every ``every`` seconds, for
    anything else than there is when this is made: before they are read for the first time, by which ``current`` is set.
    """

    current: Current

    def __init__(
        self, make: Callable[[], App], metrics: Metrics, say: Callable[..., object], watched: Sequence[str],
        every: float | None,
    ) -> None:  # fmt: skip
        self.make, self.metrics, self.say = make, metrics, say
        self.watched, self.every = watched, every
        self.asked = threading.Event()
        self.first = self.signs()

    def begin(self) -> None:
        """Wait, in a thread, to be asked, or for what is watched to change."""
        threading.Thread(target=self._work, args=[self.first], name="reload", daemon=True).start()

    def ask(self) -> None:
        """Ask for an exchange; one more that comes while it is under way is done after it."""
        self.asked.set()

    def _work(self, seen: Any) -> None:
        while True:
            if not self.asked.wait(self.every) and self.signs() == seen:
                continue
            self.asked.clear()
            seen = self.signs()
            self._exchange()

    def _exchange(self) -> None:
        begin, interval = time.perf_counter(), sys.getswitchinterval()
        sys.setswitchinterval(0.0005)  # who answers need not wait for who loads
        try:
            app = self.make()
            self.current.app = app
            gc.collect()  # of what was made since the last freeze
            gc.freeze()
            self.metrics.count("reloads", "done")
            self.say("reloaded", seconds=round(time.perf_counter() - begin, 3))
        except Exception as problem:  # whatever it is, the old model answers
            self.metrics.count("reloads", "failed")
            known = isinstance(problem, ConcordantError | OSError)
            told = str(problem) if known else f"{type(problem).__name__}: {problem}"
            self.say("error", level="error", message=f"not reloaded, the model from before still answers: {told}")
        finally:
            sys.setswitchinterval(interval)

    def signs(self) -> list[tuple[int, int, int] | None]:
        """What tells another content: time, number and size of each file, of a model those of its list of hashes."""
        return [_sign(Path(name, HASHES) if Path(name, HASHES).exists() else Path(name)) for name in self.watched]


def _sign(path: Path) -> tuple[int, int, int] | None:
    with suppress(OSError):
        there = os.stat(path)
        return there.st_mtime_ns, there.st_ino, there.st_size
    return None
