"""What a client may send, as pydantic models with the limits of one application, and what is wrong with a body."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from concordant.apps.serve.limits import Limits, Refused
from concordant.errors import InputError, counted, few
from concordant.io.log.json_values import json_value

Text = Annotated[str, Field(strict=True)]
Integer = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Label = Annotated[Text | Integer, Field(union_mode="left_to_right")]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Pair = tuple[Label, Label]
Asked = TypeVar("Asked", bound="RowsRequest")

QUERY = "Query of the items; where the items of a query have features of their own, or a scorer of their own."
ITEMS = 'Labels of the items, each once: texts or integers. 1 and "1" name the same item.'
FEATURES = "Instead of the features that are loaded: for each item the values in the order of the model (/health)."
NAMED = "Instead of the features that are loaded: for each item an object of values by name."
NUMBER = "a feature is a finite number, or null where it is missing"
TOP = "top is a number of items, at least 1"
LABEL = "a label is a text or a 64-bit integer"
WORDS = {
    "string_type": LABEL,
    "int_type": LABEL,
    "int_parsing_size": LABEL,
    "greater_than_equal": "it is too small",
    "less_than_equal": LABEL,
    "float_type": NUMBER,
    "finite_number": NUMBER,
    "list_type": "it must be an array",
    "tuple_type": "a pair is an array of two labels",
    "dict_type": "it must be an object of numbers by name",
    "model_type": "the body must be a JSON object",
}
"""What pydantic says, in the words of these requests."""
SHORT = 8
"""Features of a row that still makes a good example."""


class RowsRequest(BaseModel):
    """Items, by the features that are loaded or with features of their own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Label | None = None
    items: list[Label] | None = None
    features: list[list[Number | None]] | None = None
    named_features: list[dict[str, Number | None]] | None = None


class ScoreRequest(RowsRequest):
    """Score items."""


class RankRequest(RowsRequest):
    """Put items in order."""

    top: int | None = None


class CompareRequest(RowsRequest):
    """Which of two items is better, for pairs of them."""

    pairs: list[Pair]


def request_models(limits: Limits, width: int) -> tuple[type[ScoreRequest], type[RankRequest], type[CompareRequest]]:
    """Return the models of requests with these limits, for a scorer of ``width`` features."""

    def many(each: Any) -> Any:
        return Annotated[list[each], Field(max_length=limits.items, fail_fast=True)]

    def maybe(each: Any, said: str) -> Any:
        return (each | None, Field(default=None, description=said))

    row: Any = Annotated[list[Number | None], Field(min_length=width, max_length=width, fail_fast=True)]
    named: Any = Annotated[dict[str, Number | None], Field(max_length=width)]
    top: Any = Annotated[int, Field(strict=True, ge=1)]
    rows: dict[str, Any] = {
        "query": maybe(Label, QUERY),
        "items": maybe(many(Label), ITEMS),
        "features": maybe(many(row), FEATURES),
        "named_features": maybe(many(named), NAMED),
    }
    best: Any = maybe(top, "Only so many of the best.")
    pairs: Any = (many(Pair), Field(description="Pairs of labels, each the first and the second item."))
    return (
        create_model("ScoreRequest", __base__=ScoreRequest, __doc__=ScoreRequest.__doc__, **rows),
        create_model("RankRequest", __base__=RankRequest, __doc__=RankRequest.__doc__, **rows, top=best),
        create_model("CompareRequest", __base__=CompareRequest, __doc__=CompareRequest.__doc__, **rows, pairs=pairs),
    )


def examples(width: int, names: Sequence[str] | None, *, query: bool) -> dict[str, dict[str, Any]]:
    """Return a few bodies of each path: by labels, and, where rows are short, with features of their own."""
    whose = {"query": "q1"} if query else {}
    bodies: dict[str, list[dict[str, Any]]] = {
        "/score": [{**whose, "items": ["a", "b"]}],
        "/rank": [{**whose, "items": ["a", "b", "c"], "top": 2}],
        "/compare": [{**whose, "pairs": [["a", "b"], ["b", "c"]]}],
    }
    if width <= SHORT:
        rows = [[1.5] * width, [0.5] * width]
        bodies["/rank"].append({"items": ["a", "b"], "features": rows})
        if names is not None:
            bodies["/score"].append({"named_features": [dict(zip(names, row, strict=True)) for row in rows]})
    return {
        path: {f"example {place + 1}": {"value": body} for place, body in enumerate(found)}
        for path, found in bodies.items()
    }


def parsed(model: type[Asked], body: bytes) -> Asked:
    """Return the request that a body holds.

    Errors (Refused): 400 for what is no JSON, or says a name twice in one object; 422 for JSON that is no such request;
    each with the first thing wrong.
    """
    try:
        found = model.model_validate_json(body)
    except ValidationError as error:
        raise _refusal(model, error) from None
    names = len(found.model_fields_set) + sum(map(len, found.named_features or ()))
    if body.count(b":") > names:  # of a name that is there twice the last value was taken; colons in texts also do this
        try:
            json_value(body, "the body")
        except InputError as error:
            raise Refused(400, str(error)) from None
    return found


def _refusal(model: type[BaseModel], error: ValidationError) -> Refused:
    found = error.errors(include_url=False)
    first = found[0]
    kind, place = first["type"], first["loc"]
    if kind == "json_invalid":
        said = str(first["ctx"]["error"])
        return Refused(400, f"the body is not JSON: {said}")
    field = str(place[0]) if place else ""
    if kind == "extra_forbidden":
        extra = sorted({str(one["loc"][0])[:60] for one in found if one["type"] == kind})
        known = ", ".join(model.model_fields)
        return Refused(422, f"unknown field {few(extra, 3)}; allowed are {known}")
    if kind == "missing" and len(place) == 1:
        return Refused(422, f"{field} is missing")
    where = field + "".join(
        f"[{one}]" if isinstance(one, int) else f"[{str(one)[:60]!r}]" if field == "named_features" else ""
        for one in place[1:]
    )
    if field == "pairs" and kind in ("missing", "too_long") and len(place) > 1:
        return Refused(422, f"pairs[{place[1]}]: a pair is an array of two labels")
    if kind in ("too_long", "too_short"):
        return Refused(422, _length_said(where, first["ctx"], exact=field == "features" and len(place) > 1))
    words = TOP if field == "top" else WORDS.get(kind, first["msg"])
    if not where:
        return Refused(422, f"{words}, not {_shown(first['input'])}")
    return Refused(422, f"{where}: {_shown(first['input'])}: {words}")


def _length_said(where: str, context: Mapping[str, Any], *, exact: bool) -> str:
    """What is said of an array or object with too many or too few entries."""
    there = context.get("actual_length")
    bound = context.get("max_length", context.get("min_length"))
    given = f"{there:,}" if isinstance(there, int) else f"more than {bound:,}"
    if exact:
        return f"{where} has {given} numbers; the model has {counted(int(bound or 0), 'features')}"
    word = "at most" if "max_length" in context else "at least"
    return f"{where} has {given} entries; {word} {bound:,} are allowed"


def _shown(value: Any) -> str:
    """A value as JSON, its first characters."""
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value if not isinstance(value, str) else value[:60], default=str)
    return text if len(text) <= 60 else text[:60] + "…"
