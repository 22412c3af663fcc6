"""The application: paths, and how a request passes through them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

import concordant
from concordant.serving.answers import CompareAnswer, Health, RankAnswer, Refusal, ScoreAnswer
from concordant.serving.desk import Asked, Desk
from concordant.serving.journal import Journal, Lines
from concordant.serving.limits import Access, Door, Gate, Limits, error_bytes
from concordant.serving.requests import examples, request_models
from concordant.serving.served import Served

__all__ = ["create_app"]

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
PATHS = "POST /score, /rank and /compare, GET /health and /openapi.json"


def create_app(
    ranker: Any,
    features: Any = None,
    *,
    name: str = "model",
    limits: Limits | None = None,
    lines: Lines | None = None,
    access: Access | None = None,
) -> FastAPI:
    """Return the application that answers by a fitted ranker, to be run, mounted or tested.

    ``features`` are those of the items that may be asked for by their labels (any form that ``predict`` takes);
    ``name`` is what /health calls the model; an ``AbstainingRanker`` declines pairs as it does. Each
    request is told to ``lines``; ``access`` says whom it answers (default: whoever asks). Errors: those of ``Served``.

    >>> from concordant.preferences import Preferences
    >>> from concordant.rankers.edges import EdgeRanker
    >>> votes = Preferences.from_comparisons(["b", "c"], ["a", "b"])
    >>> items = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> app = create_app(EdgeRanker("ranknet").fit(items, votes), items)
    >>> sorted(app.openapi()["paths"])
    ['/compare', '/health', '/rank', '/score']
    """
    limits = limits or Limits()
    served = Served(ranker, features)
    ScoreRequest, RankRequest, CompareRequest = request_models(limits, served.width)
    asked: Asked = {
        "/score": (ScoreRequest, served.score),
        "/rank": (RankRequest, served.rank),
        "/compare": (CompareRequest, served.compare),
    }
    outside = [] if lines is None else [Middleware(Journal, lines=lines)]
    outside += [] if access is None else [Middleware(Door, access=access)]
    token = access is not None and access.digest is not None
    app = FastAPI(
        title="concordant",
        version=concordant.__version__,
        description=_description(limits),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if token else [],  # said in OpenAPI; ``Door`` holds it
        middleware=[
            *outside,
            Middleware(Gate, most=limits.concurrency),
            Middleware(Desk, asked=asked, is_slow=served.is_slow, limits=limits),
        ],
        exception_handlers={HTTPException: _no_such, Exception: _fault},
    )
    said: dict[int | str, dict[str, Any]] = {
        status: {"model": Refusal, "description": why} for status, why in WHY.items()
    }
    health = _health(served, name, limits)
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

    return app


def _described(model: type[BaseModel]) -> Callable[..., Any]:
    """Return what FastAPI reads a request's model from; ``Desk`` answers before it is called."""

    def endpoint(asked: Any) -> Any:
        raise NotImplementedError

    endpoint.__annotations__ = {"asked": model, "return": Any}
    return endpoint


def _health(served: Served, name: str, limits: Limits) -> Health:
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
            "limits": {
                "items": limits.items,
                "body": limits.body,
                "concurrency": limits.concurrency,
                "timeout": limits.timeout,
            },
        }
    )


def _description(limits: Limits) -> str:
    return (
        "Scores, ranks and compares items by a fitted model. Items are named by the labels of the features that are "
        f"loaded, or come with features of their own. A request holds at most {limits.items:,} items or pairs and "
        f'{limits.body:,} bytes. Every error is `{{"error": "one line"}}`.'
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
