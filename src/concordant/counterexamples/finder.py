"""Populations on which a surrogate, with infinite data, ranks wrongly: the one that costs most."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.counterexamples.search import PopulationSearch
from concordant.counterexamples.small_populations import WITHIN, in_class, whole_votes
from concordant.counterexamples.small_verdicts import Verdict, best_order_of, judge, written_order
from concordant.errors import UsageError
from concordant.preferences import Preferences
from concordant.surrogates.registry import surrogate

__all__ = ["MOST_ITEMS", "Counterexample", "find_counterexample"]

Floats = NDArray[np.float64]
MOST_ITEMS = 6
MOST_VOTES = 10**7


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Votes on a few items, each one comparison, and what a surrogate makes of them."""

    name: str
    """The surrogate it was made for, or the result it is taken from."""
    within: str
    """The smallest class it is in: low noise, acyclic or any."""
    votes: NDArray[np.int64]
    """(items, items): votes for the row over the column."""
    verdict: Verdict | None = None
    """Of the surrogate it was made for."""
    largest: float | None = None
    """Largest regret per vote that the search met on any shares, ties included; whole votes need not reach it."""
    source: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def regret(self) -> float:
        """Pairwise loss per vote over that of the best order; 0 where no surrogate is named."""
        return 0.0 if self.verdict is None else self.verdict.regret

    @property
    def optimum(self) -> float:
        """Pairwise loss of the best order per vote."""
        return best_order_of(self.votes)[1]

    @property
    def right_order(self) -> str:
        """An order of least pairwise loss, items from 1."""
        place = np.argsort(best_order_of(self.votes)[0])
        return written_order(-place.astype(np.float64))

    @property
    def preferences(self) -> Preferences:
        """The votes as preferences between items 1, 2, …"""
        winner, loser = np.nonzero(self.votes)
        return Preferences.from_comparisons(
            (winner + 1).tolist(), (loser + 1).tolist(), count=self.votes[winner, loser].tolist()
        )

    def judge(self, name: str, phi: str | None = None) -> Verdict:
        """Return what another surrogate makes of the votes."""
        return judge(self.votes, name, phi=phi)


def class_of(votes: NDArray[np.int64]) -> str:
    """Return the smallest class that votes are in."""
    return next(within for within in WITHIN if in_class(votes, within))


def find_counterexample(
    name: str,
    *,
    phi: str | None = None,
    items: int = 3,
    within: str = "low noise",
    votes: int = 1000,
    budget: int = 2000,
    seed: int = 0,
    **options: Any,
) -> Counterexample | None:
    """Search populations of single comparisons for the one on which the minimiser of a surrogate loses most.

    The regret is the pairwise loss (10) of the minimiser over that of the best order, per vote, a tie charged the
    heavier direction. ``within`` says which populations: "low noise" (Definition 4), "acyclic" difference graphs or
    "any". For fixed scores the worst population is a linear programme; ``budget`` of them are solved, over scores on
    two levels and all sets of items on the upper one, then refined; ``seed`` matters where not all can be tried. The
    largest regret is at a tie as a rule, so the population returned keeps away from it: a little less regret, but a
    clear failure, in about ``votes`` whole votes (ten times as many, and so on, where rounding would lose it). The
    result is checked: it is in the class, and its regret that of the minimiser found anew.

    Judgments of several edges have no more to show for surrogates that aggregate or have a linear h: they read the
    mean alone. (With another h two items are enough to go wrong.)

    None when nothing was found, which is not a proof (but there is one for difference-graph within "acyclic", AoS
    (23), and for linear within "low noise", ICML). Errors: unknown names, 2 to 6 items.

    >>> found = find_counterexample("ranknet")
    >>> found.right_order, found.verdict.order, round(found.largest, 4)  # (3 − √6)/6
    ('1 > 2 > 3', '1 > 3 > 2', 0.0918)
    >>> find_counterexample("difference-graph", within="acyclic") is None
    True

    Source: Duchi, Mackey and Jordan (2013), Theorems 2 and 3, Lemma 13.
    """
    within = within.replace("-", " ")
    if within not in WITHIN:
        raise UsageError(f"within must be {', '.join(map(repr, WITHIN[:-1]))} or 'any', not {within!r}")
    for label, number, least, most in (
        ("items", items, 2, MOST_ITEMS),
        ("votes", votes, 10, MOST_VOTES),
        ("budget", budget, 1, None),
        ("seed", seed, 0, None),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or number < least or (most and number > most):
            limit = f"from {least} to {most:,}" if most else f"of at least {least}"
            raise UsageError(f"{label} must be an integer {limit}, not {number!r}")
    member = surrogate(name)
    if member.reads == "scores":
        judge(np.array([[0, 1], [0, 0]]), name)  # says why not
    search = PopulationSearch(partial(member.objective, phi=phi, **options), items, within)
    found = search.candidates(budget, np.random.default_rng(seed))
    if not found:
        return None
    for clear in (True, False):
        shares = [search.shares(one, clear=clear) for one in found]
        tried = [_checked(*one, items, within, votes, name, phi, options) for one in shares if one is not None]
        kept = [one for one in tried if one is not None]
        if kept:
            best = max(kept, key=lambda one: (round(one.regret, 9), -int(one.votes.sum())))
            return replace(best, largest=max(*(one.regret for one in found), best.regret), options=options)
    return None


def _checked(
    shares: Floats,
    balance: Floats,
    items: int,
    within: str,
    votes: int,
    name: str,
    phi: str | None,
    options: dict[str, Any],
) -> Counterexample | None:
    """Round to whole votes, more of them until the class and the failure survive it."""
    number = votes
    while number <= MOST_VOTES:
        whole = whole_votes(shares, items, within, number, balance)
        if whole is not None and in_class(whole, within):
            verdict = judge(whole, name, phi=phi, **options)
            if verdict.regret > 0:
                return Counterexample(name, class_of(whole), whole, verdict)
        number *= 10
    return None
