"""What randomised tests draw: the same in every run, other cases where ``CONCORDANT_SEED`` names a number."""

from __future__ import annotations

import os

__all__ = ["GIVEN", "seed"]

GIVEN = os.environ.get("CONCORDANT_SEED")
"""A number, or None: every run draws the same."""


def seed(number: int) -> int:
    """Return the seed of a test's own drawing: ``number``, or another one where CONCORDANT_SEED is given."""
    return number if GIVEN is None else number + 1_000_003 * (1 + int(GIVEN))
