"""Is the top settled? And if not, how many more judgments would settle it.

How many times the data would settle a top set: from draws of the scores' errors.

Let s be the scores, V their covariance, T the first k places. With c times the data the errors are N(0, V/c).

What is said of the top of each query: how sure it is, and what would settle it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from concordant.auditing.scores_covariance import LARGEST, Block, Chooser, Fitted, blocks, fitted
from concordant.errors import UsageError
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note, of_queries
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import whole_seed

Floats = NDArray[np.float64]
Draws = NDArray[np.float32]
STEPS = 5
"""Most steps towards the multiple, between 1 and the largest."""
CLOSE = 0.3
"""Logarithms of two multiples so near each other are interpolated between."""


def errors(covariance: Floats, normal: Draws) -> Draws:
    """Draws from N(0, covariance), up to a shift of all items, for a stack; shape (G, draws, n).

    ``covariance`` (G, n, n), ``normal`` (draws, n). A shift is added to make the matrix definite: no difference of two
    items sees it.
    """
    n = covariance.shape[1]
    scale = np.einsum("gii->g", covariance) / n
    scale = np.where(scale > 0, scale, 1.0)
    lifted = covariance + scale[:, None, None]
    np.einsum("gii->gi", lifted)[:] += 1e-9 * scale[:, None]
    try:
        root = np.linalg.cholesky(lifted)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(lifted)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(normal @ root.astype(np.float32).swapaxes(1, 2))


def least_multiples(value: Floats, error: Draws, inside: NDArray[np.bool_]) -> Floats:
    """For each draw the least √c from which on s + error/√c has the same top set; shape (G, draws).

    √c = max over i in T, j not in T of (e_j − e_i)/(s_i − s_j), at least 0; found by Dinkelbach's iteration (Management
    Science 13, 1967): the ratio at the pair that is most in the wrong at the present √c, until that is right.
    ``value`` (G, n), ``error`` (G, draws, n), ``inside`` (G, n), everything inside at least as large as outside.
    """
    graphs, draws, n = error.shape
    root = np.zeros(graphs * draws, np.float32)
    flat = error.reshape(-1, n)
    value = value.astype(np.float32)
    within = np.where(inside, np.float32(0), np.float32(np.inf))
    without = np.where(inside, np.float32(-np.inf), np.float32(0))
    active = np.arange(len(root))
    for step in range(60):
        graph, each = active // draws, np.arange(len(active))
        own, s = flat if step == 0 else flat[active], value[graph]
        now = root[active, None] * s + own
        low, high = (now + within[graph]).argmin(axis=1), (now + without[graph]).argmax(axis=1)
        gap, lead = s[each, low] - s[each, high], own[each, high] - own[each, low]
        with np.errstate(divide="ignore", invalid="ignore"):
            new = np.where(gap > 0, lead / gap, np.where(lead > 0, np.inf, 0.0)).astype(np.float32)
        grown = new > root[active] * np.float32(1 + 1e-6)
        root[active] = np.maximum(new, root[active])
        active = active[grown & np.isfinite(new)]
        if not len(active):
            break
    return root.reshape(graphs, draws).astype(np.float64)


def multiple_at(root: Floats, level: float) -> Floats:
    """The c at which a share ``level`` of the draws is right: the squared quantile, rounded up; shape (G,)."""
    draws = root.shape[1]
    place = min(int(np.ceil(level * (draws + 1))), draws) - 1
    return np.asarray(np.sort(root, axis=1)[:, place] ** 2)


def range_of_multiples(multiple: Floats, level: float, share: float) -> tuple[Floats, Floats]:
    """The multiple if the gap were at the ends of its two-sided interval of probability ``share``.

    A gap of t standard errors needs c = (z/t)², z the normal quantile of ``level``; c read backwards gives an effective
    t for the whole boundary, and t ± z_share gives the ends (infinite where t − z_share ≤ 0).
    """
    z, spread = float(ndtri(level)), float(ndtri(0.5 + share / 2))
    with np.errstate(divide="ignore"):
        t = z / np.sqrt(multiple)
        high = np.where(t > spread, (z / np.maximum(t - spread, 1e-150)) ** 2, np.inf)
        return np.where(np.isinf(t), 0.0, (z / (t + spread)) ** 2), high


def multiple_with_truth_unknown(value: Floats, now: Draws, later: Draws, top: int, level: float, most: float) -> Floats:
    """The c with which the set then found is right with probability ``level`` whatever the truth may be; shape (G,).

    Given the data the true scores are about N(s, V). With c times the data the scores will be s' = s + √(1 − 1/c) η and
    the truth s' + ν/√c, with η, ν independent N(0, V) (``now``, ``later``): c is the least for which both have the same
    top set with the probability asked for; inf beyond ``most``. The chance of a wrong set falls like a power of c, so
    the root is sought by interpolation on logarithmic scales, in the bracket that is known.
    """
    scores = value.astype(np.float32)
    floor = 0.25 / now.shape[1]
    target = np.log(1.0 - level)

    def wrong(c: Floats, rows: NDArray[np.int64] | slice) -> Floats:
        agreed = _agreement(scores[rows], now[rows], later[rows], top, c)
        return np.asarray(np.log(np.maximum(1.0 - agreed, floor)))

    low, high = np.zeros(len(value)), np.full(len(value), np.log(most))
    at_low, at_high = wrong(np.exp(low), slice(None)), wrong(np.exp(high), slice(None))
    settled, never = at_low <= target, at_high > target
    for step in range(STEPS):
        rows = np.flatnonzero(~settled & ~never & (high - low > CLOSE))
        if not len(rows):
            break
        share = (at_low[rows] - target) / np.maximum(at_low[rows] - at_high[rows], 1e-12)
        share = np.clip(share, 0.1, 0.9) if step % 2 == 0 else 0.5
        middle = low[rows] + share * (high[rows] - low[rows])
        found = wrong(np.exp(middle), rows)
        enough = found <= target
        high[rows[enough]], at_high[rows[enough]] = middle[enough], found[enough]
        low[rows[~enough]], at_low[rows[~enough]] = middle[~enough], found[~enough]
    share = np.clip((at_low - target) / np.maximum(at_low - at_high, 1e-12), 0.0, 1.0)
    answer = np.exp(low + share * (high - low))
    return np.where(never, np.inf, np.where(settled, 1.0, answer))


def _agreement(value: Draws, now: Draws, later: Draws, top: int, multiple: Floats) -> Floats:
    """Probability that found and true top set are the same with so many times the data; shape (G,)."""
    c = multiple[:, None, None].astype(np.float32)
    found = value[:, None, :] + np.sqrt(np.maximum(1.0 - 1.0 / c, 0.0)) * now
    true = found + later / np.sqrt(c)
    if top == 1:
        return np.asarray((found.argmax(axis=2) == true.argmax(axis=2)).mean(axis=1))
    least = -np.partition(-found, top - 1, axis=2)[:, :, top - 1 : top]
    chosen = found >= least
    inner = np.where(chosen, true, np.inf).min(axis=2)
    return np.asarray((inner > np.where(chosen, -np.inf, true).max(axis=2)).mean(axis=1))


Ints = NDArray[np.int64]
SETTLED, OPEN, LEVEL, FAR, NOTHING, SINGLE = range(6)
STATUS = (
    *("settled", "open", "equal scores at the boundary", "not within 1000 times the data", "no such top"),
    "a single judgment or judge",
)


@dataclass(frozen=True, eq=False)
class TopStopping:
    """For each graph and each k: how sure the present top k is, and what would settle it.

    Arrays of shape (graphs, tops) unless said otherwise. Everything is about the graph's largest component: ``outside``
    counts the items that no chain of comparisons connects with it, which no repetition of the same design will place.
    """

    batch: Batch
    top: tuple[int, ...]
    level: float
    status: NDArray[np.int8]
    """Index into STATUS."""
    probability: Floats
    """That the present top k, as a set, is the true one; NaN where there is no such top or nothing to go by."""
    assured: Floats
    """More judgments, over the pairs as those at hand, with which the top k *then found* is the true one with
    probability ``level``, averaged over what the truth may be given the data; inf: not within 1000 times the data."""
    extra: Floats
    """The same if the present scores were the truth (promises too much: the gap that is seen is often too large)."""
    low: Floats
    """``extra`` if the gap were at the upper end of its 80% interval,"""
    high: Floats
    """and at the lower end; inf where that end is no lead at all."""
    inside: Ints
    """Node of the batch in the top k whose lead is the least certain; −1 where there is none."""
    beyond: Ints
    """The node outside that it may have to give way to."""
    lead: Floats
    """Their difference of scores over its standard error."""
    outside: Ints
    """Shape (graphs,): items that are not connected with the largest component."""
    unlimited: NDArray[np.bool_]
    """One of the two has never lost or never won (against the others of the component): its score rests on the prior,
    and the normal law behind these numbers is rough."""
    approximate: NDArray[np.bool_]
    """Shape (graphs,): more than 2,000 connected items; those nearest the boundary, taken for independent."""
    draws: int
    """From how many draws; a probability p has the standard error √(p(1 − p)/draws)."""
    method: str
    notes: tuple[Note, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return one row for each query and k."""
        prefs, tops = self.batch.prefs, len(self.top)

        def labels(node: Ints) -> pa.Array:
            flat = node.ravel()
            items = prefs.items.take(self.batch.item[np.maximum(flat, 0)])
            return pa.array(
                [label if there else None for label, there in zip(items.to_pylist(), flat >= 0, strict=True)]
            )

        return pa.table(
            {
                "query": prefs.queries.take(np.repeat(self.batch.query, tops)),
                "top": np.tile(np.array(self.top, np.int64), len(self.batch)),
                "status": pa.array([STATUS[code] for code in self.status.ravel().tolist()]),
                "probability": self.probability.ravel(),
                "judgments": np.repeat(self.batch.judgments, tops),
                "more": self.assured.ravel(),
                "more_if_as_seen": self.extra.ravel(),
                "low": self.low.ravel(),
                "high": self.high.ravel(),
                "inside": labels(self.inside),
                "beyond": labels(self.beyond),
                "lead": self.lead.ravel(),
                "not_connected": np.repeat(self.outside, tops),
                "unlimited": self.unlimited.ravel(),
                "approximate": np.repeat(self.approximate, tops),
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())


MULTIPLES = ("assured", "extra", "low", "high")
"""What is said as a multiple of the data first, then as so many more judgments."""
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
) -> TopStopping:
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
    size = batch.sizes
    check_tops(tops, size)
    shape = (len(batch), len(tops))
    found: dict[str, NDArray[Any]] = {name: np.full(shape, np.nan) for name in ("probability", *MULTIPLES, "lead")}
    found |= {name: np.full(shape, -1) for name in ("inside", "beyond")}
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
    for name in ("probability", *MULTIPLES):
        found[name][fit.single] = np.nan
    for name in MULTIPLES:
        found[name] = _more(found[name], batch.judgments[:, None].astype(float))
    status = _status(found, level)
    there = found["inside"] >= 0
    status[fit.single[:, None] & there] = SINGLE
    loose = fit.links.separated
    unlimited = there & (loose[np.maximum(found["inside"], 0)] | loose[np.maximum(found["beyond"], 0)])
    outside = size - connected
    return TopStopping(
        batch=batch, top=tops, level=level, status=status, outside=outside, unlimited=unlimited,
        approximate=approximate, draws=draws, method=fit.method, **found,
        notes=_notes(fit, outside, unlimited, approximate, status),
    )  # fmt: skip


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


def _settle(
    found: dict[str, NDArray[Any]], block: Block, normal: Draws, tops: tuple[int, ...], level: float, connected: Ints
) -> None:
    """Fill in the multiples of the data of the graphs of a block."""
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
        found["probability"][at] = (root <= 1.0).mean(axis=1)[asked]
        for name, multiple in zip(MULTIPLES, (unknown, extra, low, high), strict=True):
            found[name][at] = multiple[asked]
        with np.errstate(divide="ignore", invalid="ignore"):
            lead = np.where(square > 0, gap / np.sqrt(square), np.where(gap > 0, np.inf, 0.0))
        lead = np.where(inside[:, :, None] & ~inside[:, None, :], lead, np.inf)
        weakest = lead.reshape(len(each), -1).argmin(axis=1)
        first, second = np.divmod(weakest, lead.shape[2])
        found["lead"][at] = lead[each, first, second][asked]
        found["inside"][at], found["beyond"][at] = (block.nodes[each, side][asked] for side in (first, second))


def _more(multiple: Floats, judged: Floats) -> Floats:
    """More judgments than there are; inf beyond 1000 times the data."""
    more = np.ceil(np.maximum(multiple - 1.0, 0.0) * judged)
    return np.where(multiple > MOST, np.inf, more)


def _status(found: Mapping[str, NDArray[Any]], level: float) -> NDArray[np.int8]:
    status = np.where(np.isinf(found["assured"]), FAR, OPEN)
    status[found["lead"] <= SAME] = LEVEL
    status[found["probability"] >= level] = SETTLED
    status[np.isnan(found["probability"])] = NOTHING
    return status.astype(np.int8)


def _notes(
    fit: Fitted, outside: Ints, unlimited: NDArray[np.bool_], approximate: NDArray[np.bool_], status: NDArray[np.int8]
) -> tuple[Note, ...]:
    cut = outside > 0
    few = np.zeros(len(outside), bool)
    if fit.meat is not None:
        few = (fit.meat.clusters < fit.batch.sizes - outside) & ~fit.single
    return (
        *of_queries(
            "items apart",
            cut,
            "{queries:has|have} items ({apart:,} in all) that no chain of judgments connects with the largest group: "
            "more judgments on the same pairs will never place them, and what is said is about the others",
            apart=int(outside.sum()),
        ),
        *of_queries(
            "unlimited at the boundary",
            np.asarray(unlimited.any(axis=1)),
            "{queries:has|have} an item next to the cut that never lost or never won: its score rests on the prior, a "
            "pull to the middle, and the numbers are rough",
        ),
        *of_queries(
            "nearest drawn",
            approximate,
            f"{{queries:has|have}} more than {LARGEST:,} connected items: only those nearest the boundary were drawn, "
            "as independent",
        ),
        *of_queries(
            "single judgment",
            fit.single,
            "{queries:rests|rest} on a single judgment or judge: there is no spread to go by",
        ),
        *of_queries(
            "few judgments",
            few,
            "{queries:has|have} fewer judgments or judges than connected items: what is said is too sure",
        ),
        *of_queries(
            "no such top",
            (status == NOTHING).any(axis=1),
            "{queries:has|have} too few connected items for a top of the size asked for",
        ),
    )
