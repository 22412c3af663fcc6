"""What the default of fit would rank by with infinite data like this: the aggregation that its gate would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.regret import CLOSE, NO, ROUNDING, UNKNOWN, YES, SurrogateVerdict, contradicted, order_loss
from concordant.learning.rankers.gate import CLICKS, DEFAULT, SURROGATES
from concordant.learning.rankers.plans import STRUCTURE_CHOICES
from concordant.learning.rankers.target import Target
from concordant.losses.surrogates import Chosen, choose
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.status import Status
from concordant.ranking.best_orders import BestOrders
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
NAME = "default"
"""Of the row of an audit."""
LIMIT = "ranknet"
"""The surrogate whose minimisers are what informed Bradley–Terry scores tend to."""


def needed(kind: str, target: Target) -> tuple[Chosen, ...]:
    """The surrogates that say what the default would do, by the kind of the preferences and the target."""
    return choose(CLICKS if kind == "selections" else (LIMIT, *SURROGATES[target.name]))


def candidates(
    batch: Batch, judged: Mapping[str, SurrogateVerdict], charge: Callable[[Floats], SurrogateVerdict]
) -> dict[str, SurrogateVerdict]:
    """Return what each candidate of the gate makes of each graph, the one that stays first.

    ``judged`` holds the verdicts of the ``needed`` surrogates by name. With infinite data informed Bradley–Terry is the
    minimiser of the pairwise logistic loss; the structure's scores of all judgments, which ``charge`` judges, are a
    candidate, too, and of click logs the one that stays.
    """
    kind = str(batch.prefs.kind)
    usual = usual_clicks(batch.prefs) if kind == "selections" else STRUCTURE_CHOICES[kind][0]
    scores = charge(structure(usual)(batch).value)
    if kind == "selections":
        return {usual: scores, **{name: judged[name] for name in CLICKS}}
    others = {name: verdict for name, verdict in judged.items() if name != LIMIT}
    return {DEFAULT: judged[LIMIT], **others, usual: scores}


def judge_scores(
    alpha: Floats,
    mean: Graphs,
    net: Differences,
    best: BestOrders,
    ties: str,
    status: NDArray[np.int8] | None = None,
) -> SurrogateVerdict:
    """Charge scores with the pairwise loss, as ``judge_by_pairs`` does minimisers; ``alpha`` has shape (nodes,).

    ``status``: of the minimiser that they are.
    """
    tolerance = ROUNDING * mean.pairs.sums(mean.above + mean.below)
    loss = order_loss(mean, alpha, ties, close=CLOSE)
    regret, most = loss - best.loss, loss - best.lower
    regret, most = (np.where(np.abs(value) <= tolerance, 0.0, value) for value in (regret, most))
    consistent = np.where(regret > 0, NO, np.where((most <= 0) & best.exact, YES, UNKNOWN)).astype(np.int8)
    flipped = ~(alpha[net.winner] - alpha[net.loser] > CLOSE)
    status = np.full(len(mean), Status.ATTAINED, np.int8) if status is None else status
    return SurrogateVerdict(status, loss, regret, most, consistent, *contradicted(net, flipped, len(mean)), alpha)


def taken(regrets: Sequence[Sequence[Floats]], judgments: Sequence[NDArray[np.int64]]) -> int:
    """Return which candidate loses least over all queries, the first where others do not lose less.

    ``regrets[part][candidate]`` and ``judgments[part]`` have an entry for each query of a part. A query counts by its
    judgments, as held-out judgments do; one that was left out of a candidate counts for none.

    >>> taken([[np.array([0.1, 0.0]), np.array([0.0, 0.0])]], [np.array([10, 1])])
    1
    """
    total = np.zeros(len(regrets[0]))
    for part, weight in zip(regrets, judgments, strict=True):
        lost = np.array(part)
        total += np.where(np.isnan(lost).any(axis=0), 0.0, lost) @ weight
    return int(np.argmin(total))
