"""How the next judgment between two items will end: probabilities of win, tie and loss, with intervals.

With the margin m = s_i − s_j + z·β and, for Davidson's ties, τ = log ν (Davidson, JASA 65, 1970)

    P(win) : P(tie) : P(loss) = e^{m/2} : ν : e^{−m/2},      without them P(win) = 1/(1 + e^−m).

Intervals are normal ones of the log-odds of each probability, by the delta method from the covariance of scores and
coefficients (Agresti, Categorical Data Analysis, 2013, §16.1), so they stay within 0 and 1.
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
from concordant.ranking.joint import Joint, Replicated
from concordant.ranking.problem import davidson_probabilities, win_probability

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def predictions(
    joint: Joint, first: Ints, second: Ints, names: Sequence[str], covariates: Floats, log_nu: float | None
) -> pa.Table:
    """Return probabilities with intervals for pairs of nodes; columns as ``Ranking.predict`` has them, from win on.

    ``covariates``: shape (pairs, names). Pairs that no chain of comparisons connects have no probability (missing,
    interval 0 to 1).
    """
    beta = np.array([joint.scores.coefficients[name][0] for name in names])
    margin = joint.value[first] - joint.value[second] + covariates @ beta
    win, tie, loss = probabilities(margin, log_nu)
    group = joint.gauge.group
    linked = (group[first] == group[second]) & joint.links.compared[first] & joint.links.compared[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = {"win": (1.0 - win, 0 * win), "loss": (loss - 1.0, 0 * loss)}
        if tie is not None:
            slopes = {
                "win": (loss + 0.5 * tie, -tie),
                "tie": (0.5 * (loss - win), 1.0 - tie),
                "loss": (-(win + 0.5 * tie), -tie),
            }
    columns: dict[str, Any] = {}
    found = {"win": win, "tie": tie, "loss": loss}
    for name, chance in found.items():
        if chance is None:
            continue
        error = _log_odds_error(joint, first, second, covariates, slopes[name], chance)
        half = t_quantile(0.5 + joint.level / 2, joint.freedom) * error
        known = linked & np.isfinite(error)
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = logit(chance)
            low, high = expit(middle - half), expit(middle + half)
        columns[name] = pa.array(chance, mask=~linked)
        columns[f"{name}_lower"] = np.where(known, low, 0.0)
        columns[f"{name}_upper"] = np.where(known, high, 1.0)
    return pa.table(columns)


def _log_odds_error(
    joint: Joint, first: Ints, second: Ints, z: Floats, slope: tuple[Floats, Floats], chance: Floats
) -> Floats:
    """Standard errors of the log-odds of a probability whose log has these slopes by margin and log ν."""
    by_margin, by_tie = slope
    error = joint.errors(first, second)
    square = by_margin**2 * error**2
    tied = "ties" in joint.coefficients and by_tie.any()
    names = [name for name in joint.coefficients if name != "ties"]
    if isinstance(joint, Replicated) or (not z.any() and not tied):
        known = not isinstance(joint, Replicated) or not (z.any() or by_tie.any())
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(known, np.sqrt(square) / (1.0 - chance), np.inf)
    at = joint.size + np.arange(len(joint.coefficients))
    extra = np.zeros((len(first), len(at)))
    for place, name in enumerate(joint.coefficients):
        extra[:, place] = by_tie if name == "ties" else by_margin * z[:, names.index(name)]
    beside = joint.matrix[first][:, at] - joint.matrix[second][:, at]
    with np.errstate(invalid="ignore", divide="ignore"):
        square = square + 2.0 * by_margin * (beside * extra).sum(axis=1)
        square = square + np.einsum("ri,ij,rj->r", extra, joint.matrix[np.ix_(at, at)], extra)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)) / (1.0 - chance))
