"""Surrogates asked for by "name" or "name:phi"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concordant.errors import UsageError, did_you_mean
from concordant.surrogates.margins import margin_function
from concordant.surrogates.registry import SURROGATES, Surrogate

__all__ = ["Chosen", "choose"]


@dataclass(frozen=True)
class Chosen:
    """A surrogate with its φ, and the target loss that it is judged by."""

    member: Surrogate
    phi: str

    @property
    def name(self) -> str:
        """The registry's name, with φ where it is not the default."""
        return self.member.name if self.phi == self.member.phi else f"{self.member.name}:{self.phi}"

    @property
    def target(self) -> str:
        """The pairwise loss; for surrogates of scores the loss they are consistent for, NDCG if for none."""
        if self.member.reads != "scores":
            return "pairwise"
        return "err" if self.member.consistent_for == "err" else "ndcg"


def choose(names: Sequence[str] | None) -> tuple[Chosen, ...]:
    """Read "name" or "name:phi"; all members of the registry with their default φ when none is given."""
    chosen = []
    for name in SURROGATES if names is None else names:
        plain, _, phi = str(name).partition(":")
        if plain not in SURROGATES:
            raise UsageError(f"unknown surrogate {plain!r}; {did_you_mean(plain, SURROGATES)}")
        member = SURROGATES[plain]
        if phi and phi not in member.phis:
            margin_function(phi)
            raise UsageError(f"{plain} has no φ {phi!r}; allowed: {', '.join(member.phis)}")
        chosen.append(Chosen(member, phi or member.phi))
    if len({one.name for one in chosen}) < len(chosen):
        raise UsageError("a surrogate is named twice")
    return tuple(chosen)
