"""Read the log of a command with the options that ``log_options`` gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concordant.commands.log_options import ROLES
from concordant.reading import Reading, read_log

__all__ = ["read_given_log"]


def read_given_log(
    log: str,
    given: Mapping[str, Any],
    cluster: str | None = None,
    *,
    covariates: Sequence[str] = (),
    home: str | None = None,
) -> Reading:
    """Read the log; ``given`` holds the options by name."""
    roles = (*ROLES, "neutral")
    return read_log(
        log,
        kind=given["kind"],
        columns={role: given[role] for role in roles if given.get(role) is not None},
        clicks=given["clicks"],
        on_error=given["on_error"],
        engine=given["engine"],
        memory_limit=given["memory_limit"],
        threads=given["threads"],
        cluster=cluster,
        covariates=covariates,
        home=home,
    )
