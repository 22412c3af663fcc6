"""Metrics by name (``ndcg@10``, ``map``, …), their means over queries, and the paired comparison of two scorers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from concordant.errors import InputError, UsageError, did_you_mean, in_order
from concordant.losses import names
from concordant.losses.metrics.auc import auc
from concordant.losses.metrics.conventions import convention_of
from concordant.losses.metrics.err import err
from concordant.losses.metrics.judged_lists import Floats, as_numbers
from concordant.losses.metrics.ndcg import ndcg
from concordant.losses.metrics.pairwise import kendall_tau, pairwise_loss
from concordant.losses.metrics.relevant import average_precision, precision, reciprocal_rank


@dataclass(frozen=True)
class Metric:
    """A metric: its function, other names, whether it takes a cut-off and a convention, and what is better."""

    function: Callable[..., Floats]
    aliases: tuple[str, ...] = ()
    cutoff: bool = True
    higher_is_better: bool = True


METRICS: Mapping[str, Metric] = in_order(
    names.METRICS,
    {
        "ndcg": Metric(ndcg),
        "err": Metric(err),
        "precision": Metric(precision, ("p", "prec", "pre")),
        "average-precision": Metric(average_precision, ("ap", "map")),
        "reciprocal-rank": Metric(reciprocal_rank, ("rr", "mrr")),
        "auc": Metric(auc, ("roc-auc", "auroc"), cutoff=False),
        "kendall-tau": Metric(kendall_tau, ("tau", "kendall"), cutoff=False),
        "pairwise-loss": Metric(pairwise_loss, ("pairwise",), cutoff=False, higher_is_better=False),
    },
)


def metric(name: str, convention: str | None = None) -> Callable[..., Floats]:
    """Return the function (scores, labels, query, item=…) that a name such as ``ndcg@10`` stands for.

    Without ``@k`` the whole list counts. A minus before or after the cut-off (``ndcg-``, ``ndcg@10-``, ``map-``) makes
    queries without relevance count 0, as XGBoost writes it. Errors: unknown names, conventions and cut-offs.

    >>> metric("ndcg@10", "trec")([0.5, 0.2], [1, 2], item=["a", "b"]).round(4).tolist()
    [0.8597]
    """
    match = re.fullmatch(r"\s*([A-Za-z_\-]*?[A-Za-z])(-?)(?:@(\d+)(-?))?\s*", name)
    known = _known()
    word = match.group(1).lower().replace("_", "-") if match else name.partition("@")[0].lower()
    if match is None or word not in known:
        if match is None and word in known:
            raise UsageError(f"metric {name!r}: a cut-off is an integer of at least 1, as in {word}@10")
        raise UsageError(f"unknown metric {name!r}; {did_you_mean(word, METRICS)} A cut-off is written as in ndcg@10.")
    found, at = METRICS[known[word]], match.group(3)
    options: dict[str, Any] = {}
    if convention is not None:
        convention_of(convention)
    if found.cutoff:
        options["at"] = int(at) if at is not None else None
        options["convention"] = convention or "burges"
        if at is not None and int(at) < 1:
            raise UsageError(f"metric {name!r}: a cut-off is an integer of at least 1, as in {word}@10")
    elif at is not None:
        raise UsageError(f"metric {name!r}: {known[word]} takes no cut-off")
    if match.group(2) or match.group(4):
        if known[word] not in ("ndcg", "average-precision"):
            raise UsageError(f"metric {name!r}: a minus belongs to ndcg and map only")
        options["empty"] = 0.0
    if not found.cutoff:
        return partial(_without_item, found.function)
    return partial(found.function, **options)


def canonical(name: str) -> str | None:
    """Return the name that a metric without a cut-off has in METRICS, or None.

    >>> canonical("ROC_AUC"), canonical("ndcg@10")
    ('auc', None)
    """
    return _known().get(name.strip().lower().replace("_", "-"))


def _known() -> dict[str, str]:
    return {alias: key for key, one in METRICS.items() for alias in (key, *one.aliases)}


def _without_item(function: Callable[..., Floats], *columns: Any, item: Any = None) -> Floats:  # noqa: ARG001
    return function(*columns)


@dataclass(frozen=True)
class Summary:
    """The mean of a metric over queries.

    ``standard_error`` is s / √n with the sample standard deviation s (NaN for one query); ``queries`` the number n of
    queries with a value; ``undefined`` that of queries without one (NaN), which are left out.
    """

    mean: float
    standard_error: float
    queries: int
    undefined: int


@dataclass(frozen=True)
class Comparison:
    """The difference of two scorers on the same queries, first minus second.

    ``lower`` and ``upper`` bound the mean difference at ``level`` by Student's t; ``p_value`` is two-sided; ``wins``,
    ``losses`` and ``ties`` count queries; ``undefined`` those where either has no value (left out).
    """

    mean: float
    standard_error: float
    lower: float
    upper: float
    p_value: float
    level: float
    queries: int
    wins: int
    losses: int
    ties: int
    undefined: int


def summarise(values: Any) -> Summary:
    """Return mean and standard error of one value per query; queries without a value (NaN) are left out and counted.

    >>> summarise([0.25, 0.75, float("nan")])
    Summary(mean=0.5, standard_error=0.25, queries=2, undefined=1)
    """
    found, undefined = _defined(_values(values, "the values"))
    mean, error = _mean_and_error(found)
    return Summary(mean, error, len(found), undefined)


def compare(first: Any, second: Any, *, level: float = 0.95) -> Comparison:
    """Return the paired comparison of two scorers: values of one metric on the same queries in the same order.

    The interval is d̄ ± t · s_d / √n with d the differences query by query; one query alone has no interval (NaN).
    Errors: different numbers of queries, a level outside (0, 1).

    >>> found = compare([0.5, 0.7, 0.9], [0.4, 0.7, 0.7])
    >>> round(found.mean, 6), round(found.p_value, 6), found.wins, found.ties
    (0.1, 0.225403, 2, 1)

    Source: Student (1908); the paired t-test.
    """
    if not isinstance(level, Real) or not 0 < level < 1:
        raise UsageError(f"level must be between 0 and 1, not {level!r}")
    one, two = (_values(*given) for given in ((first, "the first values"), (second, "the second values")))
    if one.shape != two.shape:
        raise InputError(f"the first scorer has {one.size:,} values, the second {two.size:,}; compare the same queries")
    difference, undefined = _defined(one - two)
    mean, error = _mean_and_error(difference)
    size = len(difference)
    lower, upper, p_value = of_mean_difference(mean, error, size, level)
    return Comparison(
        mean=mean,
        standard_error=error,
        lower=lower,
        upper=upper,
        p_value=p_value,
        level=level,
        queries=size,
        wins=int((difference > 0).sum()),
        losses=int((difference < 0).sum()),
        ties=int((difference == 0).sum()),
        undefined=undefined,
    )


def of_mean_difference(mean: float, error: float, size: int, level: float) -> tuple[float, float, float]:
    """Return the lower and upper bound of a mean difference by Student's t, and the two-sided p-value; NaN for one.

    >>> [round(each, 4) for each in of_mean_difference(0.1, 0.1 / 3**0.5, 3, 0.95)]
    [-0.1484, 0.3484, 0.2254]
    """
    if size <= 1:
        return (np.nan,) * 3
    reach = float(stdtrit(size - 1, 0.5 + level / 2)) * error
    p_value = 2 * float(stdtr(size - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return mean - reach, mean + reach, float(p_value)


def _values(given: Any, what: str) -> Floats:
    """Return one number per query, NaN where there is none."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be real numbers, one per query, not {type(given).__name__}") from None


def _defined(values: Floats) -> tuple[Floats, int]:
    if values.ndim != 1:
        raise InputError(f"values must be one number per query, not of shape {values.shape}")
    missing = np.isnan(values)
    return as_numbers(values[~missing], "values"), int(missing.sum())


def _mean_and_error(values: Floats) -> tuple[float, float]:
    if not len(values):
        return float("nan"), float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error
