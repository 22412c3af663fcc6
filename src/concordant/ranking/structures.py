"""The structure functions by name: what each reads, returns and means, as data that laws can be tested against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean, in_order
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.layouts import KINDS
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.click_models import (
    inverse_propensity,
    position_based,
    position_links,
    position_trials,
)
from concordant.ranking.closed_forms import (
    average_log_odds,
    borda,
    budgeted_borda,
    copeland,
    counting,
    thurstone_mosteller,
)
from concordant.ranking.cumulative import Graded
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.dependent_clicks import dependent_click, dependent_links, dependent_trials
from concordant.ranking.eigenvector import principal_eigenvector
from concordant.ranking.flags import Unlimited
from concordant.ranking.fusion import combsum, rrf
from concordant.ranking.kemeny import kemeny, rough_kemeny
from concordant.ranking.multinomial import AtomsOf, Redraws
from concordant.ranking.names import STRUCTURES as MEANINGS
from concordant.ranking.plackett_luce import plackett_luce, plackett_luce_curvature
from concordant.ranking.ranked_lists import Rankings, all_linked, cascade, examinations, touches
from concordant.ranking.scores import Scores
from concordant.ranking.strong_blocks import Blocks, blocks_of_pairs

NUMBERS = frozenset({"prior", "c0", "k", "clip", "tolerance", "iterations", "max_iterations"})


@dataclass(frozen=True)
class Structure:
    """A structure function and what it states about itself.

    >>> structure("borda").neutral, structure("borda").gauge
    ('0', 'sum zero')
    """

    name: str
    function: Callable[..., Scores]
    reads: Literal["pairs", "orders", "exposures", "lists"]
    """Pair tables; the order of lists; who was shown and examined; whole lists, which leave items out."""
    neutral: str
    """Value of an item that no judgment touches."""
    gauge: Literal["sum zero", "geometric mean one", "places", "sum of lists", "none"]
    """What the scores of a component (geometric mean: of a graph) are normalised to (borda: scores from pairs). Places:
    scores are minus 1 to the number of items, those that share places at their middle."""
    source: str
    unlimited: Unlimited
    """What the score of an item rests on that never lost, never won or is separated: an option, or on nothing but its
    shares of wins, which have an end, or its place."""
    options: tuple[str, ...] = ()
    right: str = ""
    """Where the order of the scores is the right one."""
    kinds: tuple[str, ...] = KINDS
    """Kinds of preferences that it accepts."""
    positions: bool = False
    """Reads orders by the places of their items, so that no pair table of them is made."""
    likelihood: bool = False
    atoms: AtomsOf | None = None
    """What a bootstrap draws, where it is not what a batch holds."""
    redraws: Redraws | None = None
    """What makes the replicates of a bootstrap, where a batch does not hold its judgments."""
    expects: bool = False
    """Its scores say how often an item beats another, so pairs can be held against them (``lack_of_fit``)."""
    curvature: Callable[[Batch, Scores], Curvature] | None = None
    """Second derivatives and gradients at a fit, for Hessian and sandwich intervals."""
    blocks: Blocks | None = None
    """Fits strong blocks by themselves, for limits of items that the data limit on one side."""
    reversal: Literal["negated", "complement", "places reversed", "none"] = "none"
    """What the scores become when winners and losers of comparisons are swapped."""

    replicate: Callable[..., Scores] | None = None
    """What computes the replicates of a bootstrap, where the function itself would take long."""
    dearness: float = 1.0
    """How many times as long a replicate takes, for each entry, as one of a closed form."""

    trials: Callable[[Batch], tuple[NDArray[np.float64], NDArray[np.float64]]] = examinations
    """Of exposures: clicks and trials of each node, of whose shares Wilson's intervals are those of the scores."""
    linked: Callable[[Batch], Connectivity] | None = None
    """Which items of a query have scores of one scale, where neither pairs nor exposures say so."""
    touched: Callable[[Batch], NDArray[np.int64]] = touches
    """How many judgments touch each node."""

    @property
    def meaning(self) -> str:
        """What a score is."""
        return MEANINGS[self.name]

    @property
    def below(self) -> bool:
        """Whether it reads what stands below the last click of a list."""
        return self.linked is not None or self.reads == "lists"

    @property
    def whole(self) -> bool:
        """Whether it takes a list as one draw of its likelihood."""
        return self.positions and self.likelihood

    @property
    def absolute(self) -> bool:
        """Whether its scores compare all items of a query that a judgment touches, connected or not."""
        return self.reads in ("exposures", "lists")

    def links(self, batch: Batch, ties: object = None) -> Connectivity:
        """Return what connects the items of a batch; of lists that are read as such no pair tables are made."""
        if self.linked is not None:
            return self.linked(batch)
        if self.absolute:
            return all_linked(examinations(batch)[1] > 0 if self.reads == "exposures" else touches(batch) > 0)
        if ties == "cumulative" and self.likelihood:
            return Graded.of(batch).links
        if batch.prefs.kind != "orders" or not self.positions:
            return connectivity(batch.graphs)
        lists = Rankings.of(batch)
        return lists.linked(ties) if self.likelihood else connectivity(lists.chain())

    def __call__(self, batch: Batch, **options: Any) -> Scores:
        """Compute the scores of every graph of the batch; unknown options and kinds are a UsageError."""
        self.check(batch.prefs.kind, options)
        return self.function(batch, **options)

    def check(self, kind: str | None, options: Mapping[str, Any]) -> None:
        """Raise UsageError when the structure does not read this kind of preferences or know one of the options."""
        unknown = [name for name in options if name not in self.options]
        if unknown:
            known = f"its options are {', '.join(self.options)}" if self.options else "it has none"
            raise UsageError(f"{self.name} has no option {unknown[0]!r}; {known}")
        wrong = [name for name, value in options.items() if name in NUMBERS and not isinstance(value, Real)]
        if wrong:
            raise UsageError(f"{self.name}: {wrong[0]} must be a number, not {options[wrong[0]]!r}")
        if kind is not None and kind not in self.kinds:
            raise UsageError(f"{self.name} reads {', '.join(self.kinds)}, not {kind}; {_instead(self, kind)}")


def structure(name: str | Structure) -> Structure:
    """Look a structure up by its name (itself is itself); the error for an unknown one suggests the closest.

    >>> structure("borda").name
    'borda'
    """
    if isinstance(name, Structure):
        return name
    if not isinstance(name, str) or name not in STRUCTURES:
        raise UsageError(f"unknown structure {name!r}; {did_you_mean(str(name), STRUCTURES)}")
    return STRUCTURES[name]


def _instead(wrong: Structure, kind: str) -> str:
    others = [other.name for other in STRUCTURES.values() if kind in other.kinds and other.name != wrong.name]
    return f"structures for {kind}: {', '.join(others)}"


_MEMBERS = (
    Structure(
        "bradley-terry",
        bradley_terry,
        "pairs",
        neutral="0",
        gauge="sum zero",
        source="Bradley & Terry 1952; AoS (26)",
        right="one score for each item explains all pairs",
        unlimited="prior",
        options=("prior", "ties", "covariates", "tolerance", "max_iterations", "mean"),
        likelihood=True,
        expects=True,
        curvature=bradley_terry_curvature,
        blocks=blocks_of_pairs,
        reversal="negated",
    ),
    Structure(
        "plackett-luce",
        plackett_luce,
        "orders",
        neutral="0",
        gauge="sum zero",
        source="Luce 1959; Plackett 1975; Hunter 2004",
        right="one score for each item explains all choices",
        unlimited="prior",
        options=("prior", "ties", "iterations"),
        kinds=("comparisons", "selections", "choices", "orders"),
        positions=True,
        likelihood=True,
        curvature=plackett_luce_curvature,
        reversal="negated",
    ),
    Structure(
        "log-odds",
        average_log_odds,
        "pairs",
        neutral="0",
        gauge="sum zero",
        source="AoS §6.2, (27)",
        right="all pairs were judged, or those that were not are even",
        unlimited="c0",
        options=("c0",),
        reversal="negated",
    ),
    Structure(
        "thurstone-mosteller",
        thurstone_mosteller,
        "pairs",
        expects=True,
        neutral="0",
        gauge="sum zero",
        source="AoS (22)",
        right="one score for each item explains all pairs",
        unlimited="c0",
        options=("c0", "weights", "differences"),
        reversal="negated",
    ),
    Structure(
        "borda",
        borda,
        "pairs",
        neutral="0",
        gauge="sum zero",
        source="Borda 1781; AoS §5.1",
        right="opponents were drawn alike for all items",
        unlimited="shares",
        positions=True,
        reversal="negated",
    ),
    Structure(
        "copeland",
        copeland,
        "pairs",
        neutral="0",
        gauge="sum zero",
        source="Copeland 1951; Llull 1299",
        right="who beats whom is what counts, by however little, and all opponents were met",
        unlimited="majorities",
        reversal="negated",
    ),
    Structure(
        "budgeted-borda",
        budgeted_borda,
        "pairs",
        neutral="1/2",
        gauge="none",
        source="Ammar & Shah 2011; AoS §5.1",
        right="opponents were drawn alike for all items",
        unlimited="shares",
        reversal="complement",
    ),
    Structure(
        "eigenvector",
        principal_eigenvector,
        "pairs",
        neutral="ratio 1 against all",
        gauge="geometric mean one",
        source="Saaty 2003; AoS §5.1",
        right="one score for each item explains all pairs",
        unlimited="c0",
        options=("c0", "iterations"),
    ),
    Structure(
        "counting",
        counting,
        "pairs",
        neutral="1/2",
        gauge="none",
        source="method: what users start from",
        right="opponents were drawn alike for all items",
        unlimited="shares",
        reversal="complement",
    ),
    Structure(
        "kemeny",
        kemeny,
        "pairs",
        neutral="-1",
        gauge="places",
        source="Kemeny 1959; AoS (10), (11)",
        right="contradicting as few judgments as possible is what counts; the distance of two places says nothing",
        unlimited="places",
        reversal="places reversed",
        replicate=rough_kemeny,
        dearness=16.0,
    ),
    Structure(
        "cascade",
        cascade,
        "exposures",
        neutral="the query's pooled click rate",
        gauge="none",
        source="AoS §5.2; Craswell et al. 2008",
        right="users look from the top down and stop where they are satisfied",
        unlimited="shares",
        kinds=("selections",),
        likelihood=True,
    ),
    Structure(
        "position-based",
        position_based,
        "exposures",
        neutral="the query's pooled click rate",
        gauge="none",
        source="Craswell et al. 2008; Chuklin et al. 2015, §3.3",
        right="how often a position is looked at depends on neither items nor clicks, and items change places",
        unlimited="shares",
        kinds=("selections",),
        likelihood=True,
        trials=position_trials,
        linked=position_links,
    ),
    Structure(
        "dependent-click",
        dependent_click,
        "exposures",
        neutral="the query's pooled click rate",
        gauge="none",
        source="Guo, Liu & Wang 2009",
        right="users look from the top down, click what attracts them, and go on or leave after each click",
        unlimited="shares",
        kinds=("selections",),
        likelihood=True,
        trials=dependent_trials,
        linked=dependent_links,
    ),
    Structure(
        "inverse-propensity",
        inverse_propensity,
        "lists",
        neutral="the query's pooled click rate",
        gauge="none",
        source="Joachims, Swaminathan & Schnabel 2017, (4)",
        right="the propensities are those of the positions, and none is below the clip",
        unlimited="shares",
        options=("propensities", "clip"),
        kinds=("selections",),
        positions=True,
    ),
    Structure(
        "rrf",
        rrf,
        "lists",
        neutral="0",
        gauge="sum of lists",
        source="Cormack, Clarke & Büttcher 2009",
        right="the lists are about equally good, and what one leaves out is below what it holds",
        unlimited="places",
        options=("k", "unlisted"),
        kinds=("orders", "ratings"),
        positions=True,
    ),
    Structure(
        "combsum",
        combsum,
        "lists",
        neutral="0",
        gauge="sum of lists",
        source="Fox & Shaw 1994",
        right="the lists are about equally good, and equal shares of their ranges of scores mean the same",
        unlimited="places",
        options=("normalise",),
        kinds=("ratings",),
        positions=True,
    ),
)

STRUCTURES: Mapping[str, Structure] = in_order(MEANINGS, {member.name: member for member in _MEMBERS})
