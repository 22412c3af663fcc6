"""How the next judgment between two items will end: probabilities of win, tie and loss, with intervals.

With the margin m = s_i − s_j + z·β and, for Davidson's ties, τ = log ν (Davidson, JASA 65, 1970)

    P(win) : P(tie) : P(loss) = e^{m/2} : ν : e^{−m/2},      without them P(win) = 1/(1 + e^−m).

The thresholds of ordered outcomes are those of ``cumulative``. Intervals are normal ones of the log-odds of each
probability, by the delta method from the covariance of scores and coefficients (Agresti, Categorical Data Analysis,
2013, §16.1), so they stay within 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, logit

from concordant.errors import UsageError, did_you_mean
from concordant.ranking.covariance import t_quantile
from concordant.ranking.cumulative import Chance, Cuts
from concordant.ranking.joint import Joint, Replicated
from concordant.ranking.problem import davidson_probabilities, win_probability

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def paired(first: Any, second: Any) -> tuple[pa.Array, pa.Array]:
    """Return the items of pairs: an item each, or as many of either, of which one goes with all of the other.

    >>> [side.to_pylist() for side in paired("a", ["b", "c"])]
    [['a', 'a'], ['b', 'c']]
    """
    sides = [pa.array(side) if np.ndim(side) else pa.array([side]) for side in (first, second)]
    rows = max(map(len, sides))
    if any(len(side) not in (1, rows) for side in sides):
        raise UsageError(f"{len(sides[0]):,} first and {len(sides[1]):,} second items do not make pairs")
    one, other = (side if len(side) == rows else pa.repeat(side[0], rows) for side in sides)
    return one, other


def covariate_values(names: Sequence[str], given: Mapping[str, Any], rows: int) -> Floats:
    """Return the covariates of each comparison, first minus second, 0 where not given; shape (rows, names)."""
    out = np.zeros((rows, len(names)))
    for name, values in given.items():
        if name not in names:
            known = did_you_mean(str(name), names) if names else "this ranking has none"
            raise UsageError(f"unknown covariate {name!r}; {known}")
        try:
            column = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"the covariate {name!r} must hold numbers") from None
        if column.shape not in ((), (rows,)) or not np.isfinite(column).all():
            raise UsageError(f"the covariate {name!r} must be one finite number, or one for each of {rows:,} pairs")
        out[:, list(names).index(name)] = column
    return out


def probabilities(margin: Floats, log_nu: float | None) -> tuple[Floats, Floats | None, Floats]:
    """Return the probabilities of win, tie (None without Davidson's ties) and loss of the first.

    >>> win, tie, loss = probabilities(np.array([0.0]), np.log(2.0))
    >>> win.tolist(), tie.tolist(), loss.tolist()
    ([0.25], [0.5], [0.25])
    """
    if log_nu is None or not np.isfinite(log_nu):
        win, loss = win_probability(margin)
        return (win, None, loss) if log_nu is None or log_nu < 0 else (0 * win, np.ones_like(win), 0 * loss)
    win, loss, tie = davidson_probabilities(margin, np.full(len(margin), log_nu))
    return win, tie, loss


def chances(margin: Floats, log_nu: float | None, cuts: Cuts | None) -> dict[str, Chance]:
    """Return the probabilities of the outcomes of a judgment by name: win, tie and loss of the first, or by grades."""
    if cuts is not None:
        return cuts.chances(margin)
    win, tie, loss = probabilities(margin, log_nu)
    none = 0.0 * margin
    if tie is None:
        return {"win": Chance(win, 1.0 - win, {}), "loss": Chance(loss, loss - 1.0, {})}
    return {
        "win": Chance(win, loss + 0.5 * tie, {"ties": none - tie}),
        "tie": Chance(tie, 0.5 * (loss - win), {"ties": 1.0 - tie}),
        "loss": Chance(loss, -(win + 0.5 * tie), {"ties": none - tie}),
    }


def predictions(
    joint: Joint,
    first: Ints,
    second: Ints,
    names: Sequence[str],
    covariates: Floats,
    log_nu: float | None,
    cuts: Cuts | None = None,
) -> pa.Table:
    """Return probabilities with intervals for pairs of nodes; columns as ``Ranking.predict`` has them, from win on.

    Pairs that no chain of comparisons connects have no probability (missing, interval 0 to 1).

    Parameters
    ----------
    joint : how the scores vary together.
    first, second : nodes of each pair.
    names, covariates : covariates and their values, shape (pairs, names).
    log_nu, cuts : of Davidson's ties, or the thresholds of ordered outcomes.
    """
    beta = np.array([joint.scores.coefficients[name][0] for name in names])
    margin = joint.value[first] - joint.value[second] + covariates @ beta
    group = joint.gauge.group
    linked = (group[first] == group[second]) & joint.links.compared[first] & joint.links.compared[second]
    columns: dict[str, Any] = {}
    for name, found in chances(margin, log_nu, cuts).items():
        error = _log_odds_error(joint, first, second, dict(zip(names, covariates.T, strict=True)), found)
        half = t_quantile(0.5 + joint.level / 2, joint.freedom) * error
        known = linked & np.isfinite(error)
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = logit(found.value)
            low, high = expit(middle - half), expit(middle + half)
        columns[name] = pa.array(found.value, mask=~linked)
        columns[f"{name}_lower"] = np.where(known, low, 0.0)
        columns[f"{name}_upper"] = np.where(known, high, 1.0)
    return pa.table(columns)


def _log_odds_error(joint: Joint, first: Ints, second: Ints, z: Mapping[str, Floats], found: Chance) -> Floats:
    """Standard errors of the log-odds of a probability."""
    error = joint.errors(first, second)
    square = found.by_margin**2 * error**2
    own = [(at, name) for at, name in enumerate(joint.coefficients) if name in z or name in found.by_name]
    extra = np.zeros((len(first), len(own)))
    for place, (_, name) in enumerate(own):
        extra[:, place] = found.by_name[name] if name in found.by_name else found.by_margin * z[name]
    moved = any(x.any() for x in (*z.values(), *found.by_name.values()))
    with np.errstate(invalid="ignore", divide="ignore"):
        if isinstance(joint, Replicated) or not moved:
            return np.where(not moved, np.sqrt(square) / (1.0 - found.value), np.inf)
        at = joint.size + np.array([place for place, _ in own])
        beside = joint.matrix[first][:, at] - joint.matrix[second][:, at]
        square = square + 2.0 * found.by_margin * (beside * extra).sum(axis=1)
        square = square + np.einsum("ri,ij,rj->r", extra, joint.matrix[np.ix_(at, at)], extra)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)) / (1.0 - found.value))
