"""Which targets to try: structures, orders and gains, from what the user asks for and what the data allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from concordant.errors import UsageError
from concordant.learning.targets.mean_targets import Targets, a_scale, mean_targets_of_orders
from concordant.losses.gains import Gain, the_gain
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import STRUCTURES, structure

STRUCTURE_CHOICES: Mapping[str, tuple[str, ...]] = {
    "comparisons": ("log-odds", "bradley-terry"),
    "selections": ("cascade", "plackett-luce"),
    "choices": ("plackett-luce", "bradley-terry"),
    "orders": ("borda", "plackett-luce"),
    "ratings": ("borda", "bradley-terry"),
}
"""What structure='auto' tries for each kind of preferences."""
CHANCES = ("cascade", "dependent-click", "position-based", "inverse-propensity")
"""Structures whose scores are chances of a click, and are fitted as they are."""
GAIN_CHOICES: tuple[tuple[str, bool], ...] = (("2^s-1", True), ("identity", False))
"""What gain='auto' tries: gain, and whether it is divided by Z."""
SCALES = (0.25, 0.5, 1.0, 2.0, 5.0)
"""What score_scale='auto' tries: how steeply gains rise with scores."""
C0S = (0.01, 0.1, 0.5, 2.0, 8.0)
"""What c0='auto' tries: how far log-odds of pairs with few judgments are drawn to even."""
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
"""What ridge='auto' tries (features standardised, weights of all judged rows adding up to 1)."""
RIDGE = 1e-3
"""The ridge where nothing is chosen by cross-validation."""


@dataclass(frozen=True)
class Plan:
    """One way to make targets."""

    structure: str | Callable[..., Any]
    order: int | str
    """k or 'all'."""
    gain: str | Gain
    normalise: bool
    scale: float = 1.0
    """β of G(β s)."""
    c0: float | None = None
    """Added to the wins of either side, where several are tried; None: what the options say."""

    @property
    def row(self) -> dict[str, Any]:
        """The plan as texts, for tables."""
        return {
            "structure": self.structure if isinstance(self.structure, str) else self.structure.__name__,
            "order": str(self.order),
            "gain": self.gain if isinstance(self.gain, str) else getattr(self.gain, "__name__", "function"),
            "normalise": self.normalise,
            "score_scale": self.scale,
            "c0": self.c0,
        }


LARGEST_SUBSET = 300_000
"""Judgments of a subset that 'auto' tries, at most."""


@dataclass(frozen=True)
class Recipe:
    """What a ranker makes targets by, whatever the plan."""

    options: Mapping[str, Any]
    """Of the structures."""
    subsets: int
    at: int | None
    seed: int

    def targets(self, plans: list[Plan], prefs: Preferences, prior: Mapping[str, Any] | None = None) -> list[Targets]:
        """Return the targets of each plan; ``prior`` holds options beside those that are given."""
        options = {**self.options, **(prior or {})}
        found: dict[Plan, Targets] = {}
        alike: dict[Plan, list[Plan]] = {}
        for plan in plans:
            alike.setdefault(replace(plan, order="all"), []).append(plan)
        for plan, group in alike.items():
            own = options if plan.c0 is None else {**options, "c0": plan.c0}
            made = mean_targets_of_orders(
                prefs,
                [plan.order for plan in group],
                plan.structure,
                options=options_of(plan.structure, own),
                subsets=self.subsets,
                gain=plan.gain,
                scale=plan.scale,
                normalise=plan.normalise,
                at=self.at,
                seed=self.seed,
            )
            found.update(zip(group, made, strict=True))
        return [found[plan] for plan in plans]


def orders_to_try(order: Any, largest: int) -> list[int | str]:
    """Return the orders that are asked for: 'auto' is 1, 3, 10, 30, … below the largest query's judgments, and 'all'.

    Subsets of more than 300,000 judgments are not tried: their scores are those of 'all' but for noise, and a query of
    10^9 judgments would be drawn for minutes.

    >>> orders_to_try("auto", 40), orders_to_try(5, 40), orders_to_try([2, "all"], 40)
    ([1, 3, 10, 30, 'all'], [5], [2, 'all'])
    """
    if isinstance(order, str) and order == "auto":
        grid = [digit * 10**power for power in range(len(str(largest))) for digit in (1, 3)]
        return [*(k for k in grid if k < min(largest, LARGEST_SUBSET + 1)), "all"]
    listed = list(order) if isinstance(order, list | tuple | np.ndarray) else [order]
    if not listed:
        raise UsageError("order is an empty list; name at least one")
    wrong = [k for k in listed if k != "all" and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1)]
    if wrong:
        raise UsageError(f"order must be 'auto', 'all', an integer of at least 1 or a list of these, not {wrong[0]!r}")
    return [k if isinstance(k, str) else int(k) for k in listed]


def gains_to_try(gain: Any, normalise: bool) -> list[tuple[str | Gain, bool]]:
    """Return (gain, divided by Z) pairs: those of 'auto', of a list of gains or pairs, or the one given."""
    if isinstance(gain, str) and gain == "auto":
        return list(GAIN_CHOICES)
    listed = gain if isinstance(gain, list) else [gain]
    pairs = [tuple(one) if isinstance(one, tuple | list) else (one, normalise) for one in listed]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise UsageError("gain must be 'auto', a gain, or a list of gains or of pairs (gain, divided by Z)")
    for one, _ in pairs:
        the_gain(one)
    return [(one, bool(divided)) for one, divided in pairs]


def scales_to_try(scale: Any) -> list[float]:
    """Return the factors of scores: those of 'auto', of a list, or the one given.

    >>> scales_to_try("auto"), scales_to_try(2)
    ([0.25, 0.5, 1.0, 2.0, 5.0], [2.0])
    """
    if isinstance(scale, str) and scale == "auto":
        return list(SCALES)
    listed = list(scale) if isinstance(scale, list | tuple | np.ndarray) else [scale]
    if not listed:
        raise UsageError("score_scale is an empty list; name at least one")
    return [a_scale(one) for one in listed]


def c0s_to_try(options: Mapping[str, Any] | None) -> list[float]:
    """Return the c0 among which the options leave a choice, 'auto' or a list; none where they do not.

    >>> c0s_to_try({"c0": "auto"}), c0s_to_try({"c0": [1, 2]}), c0s_to_try({"c0": 1.0})
    ([0.01, 0.1, 0.5, 2.0, 8.0], [1.0, 2.0], [])
    """
    given = (options or {}).get("c0")
    if isinstance(given, str) and given == "auto":
        return list(C0S)
    if not isinstance(given, list | tuple | np.ndarray):
        return []
    wrong = [one for one in given if isinstance(one, bool) or not isinstance(one, int | float | np.number)]
    if wrong or not len(given) or not all(0 < one < np.inf for one in given):
        raise UsageError(f"c0 must be 'auto', a positive number or a list of these, not {given!r}")
    return [float(one) for one in given]


def settled(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of structures without a choice among several c0."""
    given = dict(options or {})
    return {name: value for name, value in given.items() if name != "c0" or not c0s_to_try(given)}


def ridges_to_try(ridge: Any, chosen: bool) -> list[float]:
    """Return the ridges: 'auto' is RIDGES where something is chosen by cross-validation, else RIDGE."""
    if isinstance(ridge, str) and ridge == "auto":
        return list(RIDGES) if chosen else [RIDGE]
    listed = list(ridge) if isinstance(ridge, list | tuple | np.ndarray) else [ridge]
    if not listed or not all(isinstance(one, int | float | np.number) and 0 <= one < np.inf for one in listed):
        raise UsageError(f"ridge must be 'auto', a number of at least 0, or a list of these, not {ridge!r}")
    return [float(one) for one in listed]


def plans_asked(
    kind: str,
    structure: Any,
    options: Mapping[str, Any] | None,
    *,
    order: Any,
    gain: Any,
    normalise: bool | None,
    scale: Any = 1.0,
    largest: int = 1,
    informed: bool = False,
    clicks: str = "cascade",
) -> list[Plan]:
    """Return the plans that parameters of a ranker ask for, the usual ones for this kind of log where they are None.

    ``largest`` is the number of judgments of the largest query, ``informed`` whether features inform the aggregation,
    ``clicks`` the usual structure of a log of clicks.

    >>> [plan.row for plan in plans_asked("orders", None, None, order="all", gain=None, normalise=None)]
    [{'structure': 'borda', 'order': 'all', 'gain': '2^s-1', 'normalise': True, 'score_scale': 1.0, 'c0': None}]
    """
    if informed:
        structure = "bradley-terry"
    elif structure is None:
        structure = clicks if kind == "selections" else STRUCTURE_CHOICES[kind][0]
    elif structure == "auto" and clicks != "cascade":
        structure = clicks  # which alone of the usual ones reads several clicks
    orders = orders_to_try("all" if informed and order == "auto" else order, largest)
    if gain is None:
        gain = "identity" if informed or structure in CHANCES else "2^s-1"
    gains = gains_to_try(gain, not informed if normalise is None else normalise)
    scales = scales_to_try(scale)
    if scales != [1.0] and all(one == "identity" for one, _ in gains):
        raise UsageError("score_scale does nothing where the gain is the identity: the order is the same")
    return plans(structure, options or {}, kind, orders, gains, scales)


def plans(
    given: Any,
    options: Mapping[str, Any],
    kind: str | None,
    orders: Iterable[int | str],
    gains: Iterable[Any],
    scales: Sequence[float] = (1.0,),
) -> list[Plan]:
    """Return all combinations. Errors (UsageError): structures that do not read these preferences, unknown options.

    Several scales and c0 are tried where they change anything: of gains other than the identity, and of structures that
    have a c0.
    """
    c0s = c0s_to_try(options)
    tested = {**options, "c0": c0s[0]} if c0s else options
    if isinstance(given, str) and given == "auto":
        given = list(STRUCTURE_CHOICES[str(kind)])
    listed = given if isinstance(given, list | tuple) else [given]
    if not listed:
        raise UsageError("structure is an empty list; name at least one")
    named = [structure(one) for one in listed if not callable(one)]
    for one in named:
        one.check(kind, options_of(one.name, tested) if len(listed) > 1 else tested)
    unread = [name for name in options if len(listed) > 1 and not any(name in one.options for one in named)]
    if unread:
        raise UsageError(f"none of the structures {', '.join(one.name for one in named)} has the option {unread[0]!r}")
    return [
        Plan(one, k, gain, divided, scale, c0)
        for one, k, (gain, divided) in product(listed, orders, gains)
        for scale in (scales if gain != "identity" else scales[:1] if len(scales) == 1 else [1.0])
        for c0 in (c0s if c0s and "c0" in options_of(one, {"c0": 1.0}) else [None])
    ]


def model_of_clicks(structure: Any, options: Mapping[str, Any] | None) -> str:
    """The model of clicks that is named, with its usual options; empty where none is."""
    return structure if isinstance(structure, str) and structure in CHANCES and not options else ""


def options_of(name: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a structure knows; all of them for a function."""
    if not isinstance(name, str):
        return dict(options)
    return {key: value for key, value in options.items() if key in STRUCTURES[name].options}


def check_at(at: Any) -> None:
    """Refuse a cut-off that is none."""
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | np.integer) or at < 1):
        raise UsageError(f"at must be an integer of at least 1 or None, not {at!r}")


def one_ridge(ridge: Any) -> float:
    """Return the one ridge: 'auto' is RIDGE. Errors: UsageError for anything but a number of at least 0.

    >>> one_ridge("auto"), one_ridge(0)
    (0.001, 0.0)
    """
    if isinstance(ridge, list | tuple | np.ndarray):
        raise UsageError("this ranker takes one ridge; GridSearchCV chooses among several")
    return ridges_to_try(ridge, False)[0]
