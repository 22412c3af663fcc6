"""Where requests are answered: a path, a body, an answer, without the steps of a framework that they do not need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pydantic_core
from starlette.concurrency import run_in_threadpool

from concordant.errors import ConcordantError
from concordant.serving.limits import App, Limits, Receive, Refused, Scope, Send, body_of, error_bytes
from concordant.serving.requests import RowsRequest, parsed

__all__ = ["Asked", "Desk"]

Asked = Mapping[str, tuple[type[RowsRequest], Callable[[Any], Any]]]
TYPE = (b"content-type", b"application/json")


class Desk:
    """ASGI middleware that answers POST requests of its paths, and hands all others on.

    ``asked`` has for each path the model of its request and the work; ``is_slow`` says what is worked on in a thread.
    """

    def __init__(self, app: App, asked: Asked, is_slow: Callable[[Any], bool], limits: Limits) -> None:
        self.app = app
        self.asked = asked
        self.is_slow = is_slow
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in self.asked:
            return await self.app(scope, receive, send)
        status, headers = 200, []
        try:
            body = await self._answer(*self.asked[path], scope, receive)
        except Refused as refused:
            status, body, headers = refused.status, error_bytes(refused.line), refused.headers
        except ConcordantError as error:
            status, body = 422, error_bytes(str(error))
        size = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": status, "headers": [TYPE, size, *headers]})
        return await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, model: type[RowsRequest], work: Callable[[Any], Any], scope: Scope, receive: Receive
    ) -> bytes:
        asked = parsed(model, await body_of(scope["headers"], receive, self.limits))
        found = await run_in_threadpool(work, asked) if self.is_slow(asked) else work(asked)
        return pydantic_core.to_json(found)
