"""What is answered, as models that OpenAPI shows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from concordant.serving.requests import Label

__all__ = ["CompareAnswer", "Health", "RankAnswer", "Refusal", "ScoreAnswer"]


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


class Refusal(_Answer):
    """Why a request was not answered, in one line."""

    error: str
