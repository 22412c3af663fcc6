"""Is the top settled? And if not, how many more judgments would settle it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.asking.scores_covariance import LARGEST, Block, Chooser, Fitted, blocks, fitted
from concordant.asking.settling_draws import (
    errors,
    least_multiples,
    multiple_at,
    multiple_with_truth_unknown,
    range_of_multiples,
)
from concordant.asking.settling_result import FAR, LEVEL, NOTHING, OPEN, SETTLED, SINGLE, STATUS, Settling
from concordant.errors import UsageError, of_queries
from concordant.graphs import Batch
from concordant.preferences import Preferences
from concordant.sampling import whole_seed

__all__ = ["STATUS", "Settling", "check_tops", "nearest", "settling"]

Floats = NDArray[np.float64]
Draws = NDArray[np.float32]
Ints = NDArray[np.int64]
MOST = 1000.0
"""Times the data beyond which no number is given."""
SHARE = 0.8
"""Probability of the interval of the gap behind ``low`` and ``high``."""
DRAWS = 10_000
WORK = 4e9
"""Multiplications for the draws of all graphs; very many graphs get fewer draws each, at least ``FEWEST``."""
FEWEST = 200
SAME = 1e-7
"""A lead of so few standard errors is none."""
HELD = 1 << 18
"""Numbers of draws held at once."""


def settling(
    source: Preferences | Batch | Fitted,
    *,
    top: int | Sequence[int] = 1,
    level: float = 0.95,
    seed: int = 0,
    draws: int | None = None,
    prior: float = 0.01,
    ties: str = "half",
) -> Settling:
    """Say for each query how sure the top k is and how many more judgments would settle it.

    Bradley–Terry scores s with covariance V (Hessian or sandwich, as ``rank`` chooses); the true scores are taken for
    N(s, V). With c times the data, spread as those at hand, V shrinks to V/c. ``probability`` is P(top k of N(s, V) =
    top k of s); ``assured`` makes the top k found after the new judgments the true one with probability ``level``,
    averaged over the truth; ``extra`` takes s for the truth. Judgments are counted, whatever their kind.

    Errors: InputError when nothing is compared; UsageError for a k below 1 or not below the items of any query, for a
    level outside (0.5, 1) and for options of ``bradley_terry``.

    >>> votes = Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[70, 30])
    >>> found = settling(votes)
    >>> found.probability.round(2), found.extra, STATUS[found.status[0, 0]]
    (array([[1.]]), array([[0.]]), 'settled')

    Source: normal approximation of the maximum likelihood estimator; assurance: O'Hagan, Stevens and Campbell,
    Pharmaceutical Statistics 4, 2005.
    """
    tops = tuple(int(k) for k in ([top] if isinstance(top, int | np.integer) else top))
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    if draws is not None and draws < 20:
        raise UsageError(f"at least 20 draws are needed, not {draws}")
    fit = fitted(source, prior=prior, ties=ties)
    batch = fit.batch
    size = np.diff(batch.node_start)
    check_tops(tops, size)
    shape = (len(batch), len(tops))
    found = _Found(*(np.full(shape, np.nan) for _ in range(6)), *(np.full(shape, -1) for _ in range(2)))
    approximate = np.zeros(len(batch), bool)
    connected = np.bincount(batch.owner[fit.links.component == 0], minlength=len(batch))
    if draws is None:
        per_draw = float((np.minimum(connected, LARGEST) ** 2).sum())
        draws = int(np.clip(WORK / max(per_draw * 2, 1.0), FEWEST, DRAWS))
    for block in blocks(fit, nearest(tops), main=True):
        approximate[block.graph] = not block.whole
        rng = np.random.default_rng([whole_seed(seed) % (1 << 128), block.nodes.shape[1]])
        normal = rng.standard_normal((2, draws, block.nodes.shape[1]), np.float32)
        step = max(1, HELD // normal[0].size)
        for begin in range(0, len(block.graph), step):
            _settle(found, block.some(slice(begin, begin + step)), normal, tops, level, connected)
    for column in (found.probability, found.assured, found.extra, found.low, found.high):
        column[fit.single] = np.nan
    judged = batch.judgments[:, None].astype(float)
    assured, extra, low, high = (_more(c, judged) for c in (found.assured, found.extra, found.low, found.high))
    status = _status(found, assured, level)
    status[fit.single[:, None] & (found.inside >= 0)] = SINGLE
    node = np.maximum(found.inside, 0), np.maximum(found.beyond, 0)
    loose = fit.links.separated
    unlimited = (found.inside >= 0) & (loose[node[0]] | loose[node[1]])
    outside = size - connected
    return Settling(
        batch,
        tops,
        level,
        status,
        found.probability,
        assured,
        extra,
        low,
        high,
        found.inside,
        found.beyond,
        found.lead,
        outside,
        unlimited,
        approximate,
        draws,
        fit.method,
        _notes(fit, outside, unlimited, approximate, status),
    )


def check_tops(tops: tuple[int, ...], size: Ints) -> None:
    """Refuse a k that no query has."""
    if not tops or min(tops) < 1:
        raise UsageError(f"top k: k is a number of items from 1 on, not {list(tops)}")
    if max(tops) >= size.max(initial=0):
        raise UsageError(
            f"top {max(tops)} is asked for, but the largest query has {int(size.max(initial=0)):,} items; at most "
            f"{max(int(size.max(initial=0)) - 1, 0):,} is a question"
        )


def nearest(tops: tuple[int, ...]) -> Chooser:
    """Choose the items of a large component that are nearest the boundaries after these places, in standard errors."""

    def choose(value: Floats, error: Floats) -> Ints:
        away = np.full(len(value), np.inf)
        for top in tops:
            edge = min(top, len(value) - 1)
            gap = np.abs(value - (value[edge - 1] + value[edge]) / 2)
            gap[[edge - 1, edge]] = -1.0
            away = np.minimum(away, gap / np.maximum(error, 1e-300))
        return np.sort(np.argsort(away, kind="stable")[:LARGEST])

    return choose


@dataclass(frozen=True, eq=False)
class _Found:
    """Multiples of the data, filled in block by block; shape (graphs, tops)."""

    probability: Floats
    assured: Floats
    extra: Floats
    low: Floats
    high: Floats
    lead: Floats
    inside: Ints
    beyond: Ints


def _settle(found: _Found, block: Block, normal: Draws, tops: tuple[int, ...], level: float, connected: Ints) -> None:
    error, later = (errors(block.covariance, some) for some in normal)
    own = np.einsum("gii->gi", block.covariance)
    square = np.maximum(own[:, :, None] + own[:, None, :] - 2.0 * block.covariance, 0.0)
    gap = block.value[:, :, None] - block.value[:, None, :]
    each = np.arange(len(block.graph))
    for column, top in enumerate(tops):
        asked = connected[block.graph] > top
        if not asked.any():
            continue
        inside = block.place < top
        root = least_multiples(block.value, error, inside)
        extra = multiple_at(root, level)
        low, high = range_of_multiples(extra, level, SHARE)
        least = int(inside[0].sum())  # of the items at hand: a large component comes without those surely inside
        unknown = multiple_with_truth_unknown(block.value, error, later, least, level, MOST)
        at = (block.graph[asked], column)
        found.probability[at] = (root <= 1.0).mean(axis=1)[asked]
        found.assured[at], found.extra[at] = unknown[asked], extra[asked]
        found.low[at], found.high[at] = low[asked], high[asked]
        with np.errstate(divide="ignore", invalid="ignore"):
            lead = np.where(square > 0, gap / np.sqrt(square), np.where(gap > 0, np.inf, 0.0))
        lead = np.where(inside[:, :, None] & ~inside[:, None, :], lead, np.inf)
        weakest = lead.reshape(len(each), -1).argmin(axis=1)
        first, second = np.divmod(weakest, lead.shape[2])
        found.lead[at] = lead[each, first, second][asked]
        found.inside[at], found.beyond[at] = block.nodes[each, first][asked], block.nodes[each, second][asked]


def _more(multiple: Floats, judged: Floats) -> Floats:
    """More judgments than there are; inf beyond 1000 times the data."""
    more = np.ceil(np.maximum(multiple - 1.0, 0.0) * judged)
    return np.where(multiple > MOST, np.inf, more)


def _status(found: _Found, assured: Floats, level: float) -> NDArray[np.int8]:
    status = np.where(np.isinf(assured), FAR, OPEN)
    status[found.lead <= SAME] = LEVEL
    status[found.probability >= level] = SETTLED
    status[np.isnan(found.probability)] = NOTHING
    return status.astype(np.int8)


def _notes(
    fit: Fitted, outside: Ints, unlimited: NDArray[np.bool_], approximate: NDArray[np.bool_], status: NDArray[np.int8]
) -> tuple[str, ...]:
    cut = outside > 0
    few = np.zeros(len(outside), bool)
    if fit.meat is not None:
        few = (fit.meat.clusters < np.diff(fit.batch.node_start) - outside) & ~fit.single
    told = (
        (
            int(cut.sum()),
            f"have items ({int(outside.sum()):,} in all) that nothing connects with the largest component: more "
            "judgments on the same pairs will never place them, and what is said is about the others",
        ),
        (
            int(unlimited.any(axis=1).sum()),
            "have an item at the boundary that never lost or never won: its score rests on the prior and the numbers "
            "are rough",
        ),
        (
            int(approximate.sum()),
            f"have more than {LARGEST:,} connected items: only those nearest the boundary were drawn, as independent",
        ),
        (int(fit.single.sum()), "rest on a single judgment or judge: there is no spread to go by"),
        (int(few.sum()), "have fewer judgments or judges than connected items: what is said is too sure"),
        (int((status == NOTHING).any(axis=1).sum()), "have too few connected items for a top of the size asked for"),
    )
    return tuple(of_queries(number, len(outside), words) for number, words in told if number)
