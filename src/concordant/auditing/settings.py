"""What an audit is asked for, without what it needs to answer: the command reads it for its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The parameters of ``audit``, which says what each means."""

    surrogates: Sequence[str] | None = None
    target: str | None = None
    ties: str = "heavier"
    exact: bool = False
    time_limit: float = 10.0
    structure: str | None = None
    structure_options: Mapping[str, Any] | None = None
    order: int | str = "all"
    subsets: int = 32
    replicates: int = 200
    level: float = 0.95
    top: int | None = None
    ask: int = 10
    seed: int = 0
