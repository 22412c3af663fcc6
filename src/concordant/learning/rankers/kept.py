"""The rankers that can be kept and restored, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from concordant.learning.annotators.scorers import CampScorer, SpreadScorer
from concordant.learning.rankers.per_query import SINGLE, QueryRankers

RANKERS: Mapping[str, type[Any]] = MappingProxyType(
    {**SINGLE, **{kind.__name__: kind for kind in (QueryRankers, CampScorer, SpreadScorer)}}
)
"""Classes with ``to_state`` and ``from_state``, by their names."""
