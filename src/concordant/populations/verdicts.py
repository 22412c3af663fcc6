"""What can be said of a property of a population of which some pairs were never judged."""

from __future__ import annotations

__all__ = ["FAILS", "HOLDS", "UNDETERMINED", "VERDICTS"]

VERDICTS = ("holds", "fails", "undetermined")
"""Names of the verdicts; arrays of verdicts hold places in it."""
HOLDS, FAILS, UNDETERMINED = range(len(VERDICTS))
