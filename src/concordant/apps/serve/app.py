"""The application: paths, how a request passes through them, and what is answered, as models that OpenAPI shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import Depends, FastAPI, Request, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

import concordant
from concordant.abstention.held_pairs import unfrozen
from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.serve.access_log import AccessLog, Lines
from concordant.apps.serve.limits import (
    Access,
    App,
    ConcurrencyLimit,
    Door,
    Limits,
    Receive,
    Refused,
    Scope,
    Send,
    answered,
    body_of,
    error_bytes,
)
from concordant.apps.serve.operation import Measured, Operation, Shadow
from concordant.apps.serve.requests import Label, RowsRequest, examples, parsed, request_models
from concordant.apps.serve.served import Served
from concordant.errors import ConcordantError


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScoreAnswer(_Answer):
    """Higher is better; only differences within a query mean something."""

    scores: Annotated[list[float], Field(description="One for each item, in the order asked.")]


class Ranked(_Answer):
    """An item in its place."""

    item: Annotated[Label, Field(description="As it was asked for; 1, 2, … for rows without labels.")]
    score: float
    rank: Annotated[int, Field(ge=1, description="1 is best; equal scores share a rank.")]
    tier: Annotated[
        int | None,
        Field(
            ge=1,
            description="Where the model abstains: of two items in different tiers it says which is better, of two in "
            "one tier it does not.",
        ),
    ] = None


class RankAnswer(_Answer):
    """The items from best to worst."""

    ranking: list[Ranked]


class RuleSaid(_Answer):
    """When a pair is declined: at a distance of at most gamma, or where the estimated risk exceeds the cost."""

    by: Literal["distance", "risk"]
    cost: float
    norm: str | None = None
    gamma: float | str | None = None


class Comparison(_Answer):
    """What is said about a pair."""

    first: Label
    second: Label
    answer: Annotated[
        Literal["first", "second", "declined"], Field(description="Which is better; declined: the model does not say.")
    ]
    reason: Literal["decided", "near", "risky", "equal scores"]
    difference: Annotated[float, Field(description="Score of the first less that of the second.")]
    distance: Annotated[float | None, Field(description="Of their normalised features, where that decides.")]
    risk: Annotated[float | None, Field(description="Estimated chance that the order by score is wrong.")]


class CompareAnswer(_Answer):
    """Which item of each pair is better."""

    rule: Annotated[RuleSaid | None, Field(description="When pairs are declined; null: never, but for equal scores.")]
    comparisons: list[Comparison]


class Loaded(_Answer):
    """The features that are loaded."""

    rows: int
    items: int
    queries: Annotated[int | None, Field(description="null: rows hold for every query.")]


class Health(_Answer):
    """An answer at all means alive; the port opens when model and features are loaded."""

    status: Literal["ready"]
    version: Annotated[str, Field(description="Of concordant.")]
    model: str
    ranker: str
    features: Annotated[list[str] | None, Field(description="Names in the model's order; null: it has none.")]
    width: Annotated[int, Field(description="Number of features.")]
    missing: Annotated[str, Field(description="What is done with missing features; raise: they are refused.")]
    query: Annotated[bool, Field(description="Whether requests for loaded items name their query.")]
    loaded: Loaded | None
    rule: RuleSaid | None
    limits: dict[str, Any]
    hash: Annotated[str | None, Field(description="SHA-256 of all of the model that decides a score; null: unkept.")]
    fitted: Annotated[str | None, Field(description="When the model was fitted and kept.")]
    lineage: Annotated[list[dict[str, Any]], Field(description="Of what it was made: names, sizes, judgments, hashes.")]
    shadow: Annotated[
        dict[str, Any] | None, Field(description="A second model that answers a share of the requests, unseen.")
    ]


class Ready(_Answer):
    """Whether requests should be sent here."""

    ready: bool


class Refusal(_Answer):
    """Why a request was not answered, in one line."""

    error: str


Asked = Mapping[str, tuple[type[RowsRequest], Callable[[Any], Any]]]


class Endpoints:
    """ASGI middleware that answers POST requests of its paths, and hands all others on.

    ``asked`` has for each path the model of its request and the work; ``is_slow`` says what is worked on in a thread;
    ``after`` is called with what was answered.
    """

    def __init__(
        self, app: App, asked: Asked, is_slow: Callable[[Any], bool], limits: Limits,
        after: Callable[[str, Any], None] | None = None,
    ) -> None:  # fmt: skip
        self.app = app
        self.asked = asked
        self.is_slow = is_slow
        self.limits = limits
        self.after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in self.asked:
            return await self.app(scope, receive, send)
        status, headers = 200, []
        try:
            body = await self._answer(path, *self.asked[path], scope, receive)
        except Refused as refused:
            status, body, headers = refused.status, error_bytes(refused.line), refused.headers
        except ConcordantError as error:
            status, body = 422, error_bytes(str(error))
        return await answered(send, status, body, headers)

    async def _answer(
        self, path: str, model: type[RowsRequest], work: Callable[[Any], Any], scope: Scope, receive: Receive
    ) -> bytes:
        asked = parsed(model, await body_of(scope["headers"], receive, self.limits))
        found = await run_in_threadpool(work, asked) if self.is_slow(asked) else work(asked)
        if self.after is not None:
            self.after(path, asked)
        return pydantic_core.to_json(found)


JSON = "application/json"
WHY = {
    400: "The body is not JSON.",
    401: "The token is missing or another one.",
    404: "The query, or items, are not among the loaded features.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content-type is not application/json.",
    421: "The header host names another host.",
    422: "The request is JSON, but not one that can be answered.",
    503: "Too many requests at once; retry-after says when to try again.",
}
PATHS = "POST /score, /rank and /compare, GET /health, /ready, /metrics and /openapi.json"
DESCRIPTION = (
    "Scores, ranks and compares items by a fitted model. Items are named by the labels of the features that are "
    "loaded, or come with features of their own. A request holds at most {items:,} items or pairs and {body:,} bytes. "
    'Every error is `{{"error": "one line"}}`.'
)


def create_app(
    ranker: Any,
    features: Any = None,
    *,
    name: str = "model",
    limits: Limits | None = None,
    lines: Lines | None = None,
    access: Access | None = None,
    operation: Operation | None = None,
    shadow: Shadow | None = None,
) -> FastAPI:
    """Return the application that answers by a fitted ranker, to be run, mounted or tested.

    ``features`` are those of the items that may be asked for by their labels (any form that ``predict`` takes);
    ``name`` is what /health calls the model; an ``AbstainingRanker`` declines pairs as it does. Each
    request is told to ``lines``; ``access`` says whom it answers (default: whoever asks). ``operation`` has the
    counters of /metrics, ``shadow`` is a second model whose answers are compared. Errors: those of ``Served``.

    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.learning.rankers.edges import EdgeRanker
    >>> votes = Preferences.from_comparisons(["b", "c"], ["a", "b"])
    >>> items = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> app = create_app(EdgeRanker("ranknet").fit(items, votes), items)
    >>> sorted(app.openapi()["paths"])
    ['/compare', '/health', '/metrics', '/rank', '/ready', '/score']
    """
    limits, operation = limits or Limits(), operation or Operation()
    served = Served(ranker, features)
    ScoreRequest, RankRequest, CompareRequest = request_models(limits, served.width)
    asked: Asked = {
        "/score": (ScoreRequest, served.score),
        "/rank": (RankRequest, served.rank),
        "/compare": (CompareRequest, served.compare),
    }
    after = None if shadow is None else partial(_offered, shadow, served)
    outside = [Middleware(Measured, metrics=operation.metrics)]
    outside += [] if lines is None else [Middleware(AccessLog, lines=lines)]
    outside += [] if access is None else [Middleware(Door, access=access)]
    token = access is not None and access.digest is not None
    app = FastAPI(
        title="concordant",
        version=concordant.__version__,
        description=DESCRIPTION.format(items=limits.items, body=limits.body),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if token else [],  # said in OpenAPI; ``Door`` holds it
        middleware=[
            *outside,
            Middleware(ConcurrencyLimit, most=limits.concurrency),
            Middleware(Endpoints, asked=asked, is_slow=served.is_slow, limits=limits, after=after),
        ],
        exception_handlers={HTTPException: _no_such, Exception: _fault},
    )
    said: dict[int | str, dict[str, Any]] = {
        status: {"model": Refusal, "description": why} for status, why in WHY.items()
    }
    health = _health(served, name, limits, shadow)
    shown = examples(served.width, served.names, query=health.query)
    said_of: dict[str, tuple[str, type[BaseModel]]] = {
        "/score": ("Scores of items", ScoreAnswer),
        "/rank": ("Items from best to worst", RankAnswer),
        "/compare": ("Which item of each pair is better", CompareAnswer),
    }
    for path, (summary, answer) in said_of.items():
        app.add_api_route(
            path,
            _described(asked[path][0]),
            methods=["POST"],
            operation_id=path[1:],
            summary=summary,
            response_model=answer,
            responses=said,
            openapi_extra={"requestBody": {"content": {JSON: {"examples": shown[path]}}}},
        )

    @app.get("/health", operation_id="health", summary="Whether it answers, and what is served")
    async def _get_health() -> Health:
        return health

    @app.get("/ready", operation_id="ready", summary="Whether requests should be sent here",
             responses={503: {"model": Ready, "description": "The server is about to end."}})  # fmt: skip
    async def _get_ready(response: Response) -> Ready:
        response.status_code = 503 if operation.stopping else 200
        return Ready(ready=not operation.stopping)

    @app.get("/metrics", operation_id="metrics", summary="Counters, as Prometheus reads them",
             response_class=PlainTextResponse)  # fmt: skip
    async def _get_metrics() -> Response:
        about = {"model": name, "hash": health.hash or "", "fitted": health.fitted or ""}
        text = operation.metrics.text(about, None if shadow is None else shadow.about)
        return Response(text, media_type="text/plain; version=0.0.4")

    return app


def _offered(shadow: Shadow, served: Served, path: str, asked: Any) -> None:
    shadow.offer(path, asked, served)


def _described(model: type[BaseModel]) -> Callable[..., Any]:
    """Return what FastAPI reads a request's model from; ``Endpoints`` answers before it is called."""

    def endpoint(asked: Any) -> Any:
        raise NotImplementedError

    endpoint.__annotations__ = {"asked": model, "return": Any}
    return endpoint


def origin_of(ranker: Any) -> dict[str, Any]:
    """Return hash, time of fit and lineage of a ranker that was loaded; files by their names, without their folders."""
    inner = unfrozen(ranker.ranker_) if isinstance(ranker, AbstainingRanker) else ranker
    origin = getattr(ranker, "origin_", None) or getattr(inner, "origin_", None) or {}
    made = origin.get("made") or {}
    lineage = [{**one, "path": Path(str(one.get("path"))).name} for one in made.get("of", ())]
    return {"hash": origin.get("hash"), "fitted": made.get("time"), "lineage": lineage}


def _health(served: Served, name: str, limits: Limits, shadow: Shadow | None) -> Health:
    loaded = None
    if served.loaded is not None:
        loaded = {"rows": served.rows, "items": served.items, "queries": served.loaded_queries}
    return Health.model_validate(
        {
            "status": "ready",
            "version": concordant.__version__,
            "model": name,
            "ranker": type(served.ranker).__name__,
            "features": None if served.names is None else list(served.names),
            "width": served.width,
            "missing": served.missing,
            "query": served.by_query or bool(served.loaded and served.loaded.queries),
            "loaded": loaded,
            "rule": served.rule_said,
            "limits": asdict(limits),
            **origin_of(served.ranker),
            "shadow": None if shadow is None else {**shadow.about, "share": shadow.share},
        }
    )


async def _no_such(request: Request, error: Exception) -> Response:
    """A path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    path = re.sub(r"[^ -~]", "?", request.url.path)[:60]
    line = f"no path {path}" if status == 404 else f"{path} does not take {request.method[:20]}"
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return Response(error_bytes(f"{line}; there are {PATHS}"), status, headers, JSON)


async def _fault(_: Request, __: Exception) -> Response:
    """What is our own mistake: said in the log, not to the client."""
    return Response(error_bytes("the server made a mistake; its log says more"), 500, media_type=JSON)
