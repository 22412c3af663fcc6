"""How a computation ended: of structures, solvers and minimisers alike."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How a computation ended. Columns hold the number, tables, models and sentences the ``word``.

    >>> Status.STOPPED.word, Status(2) is Status.STOPPED
    ('stopped before convergence', True)
    """

    word: str

    CLOSED_FORM = 0, "closed form"
    CONVERGED = 1, "converged"
    STOPPED = 2, "stopped before convergence"
    ATTAINED = 3, "attained"
    """By one point, up to a shift of each component."""
    NOT_UNIQUE = 4, "not unique"
    """By more points than one."""
    NOT_ATTAINED = 5, "infimum not attained"
    """Some differences tend to infinity along every minimising sequence; whether the others are determined is not
    said."""
    LEFT_OUT = 6, "left out: too large"
    LOCAL = 7, "local minimum"
    """A stationary point of what is not convex."""
    ROUNDS = 8, "all rounds made"
    NO_RULE = 9, "no rule orders the pairs better than chance"
    IN_ORDER = 10, "all pairs in order, the loss is 0 in rounding"

    def __new__(cls, number: int, word: str = "") -> Status:
        made = int.__new__(cls, number)
        made._value_, made.word = number, word
        return made
