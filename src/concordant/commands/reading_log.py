"""Read the log of a command with the options that ``log_options`` gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concordant.commands.log_options import ROLES
from concordant.reading import Reading, read_log

__all__ = ["asked_of", "read_given_log"]


def read_given_log(
    log: str,
    given: Mapping[str, Any],
    cluster: str | None = None,
    *,
    covariates: Sequence[str] = (),
    home: str | None = None,
) -> Reading:
    """Read the log; ``given`` holds the options by name."""
    return read_log(log, **asked_of(given), cluster=cluster, covariates=covariates, home=home)


def asked_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a log is to be read: the options of every command that reads one."""
    roles = (*ROLES, "neutral")
    plain = ("kind", "clicks", "on_error", "engine", "memory_limit", "threads")
    return {
        "columns": {role: given[role] for role in roles if given.get(role) is not None},
        **{name: given[name] for name in plain},
        "master": given.get("master"),
    }
