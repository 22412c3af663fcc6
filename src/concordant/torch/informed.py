"""Informed aggregation for networks: what the scorer expects is the prior by which each query's votes are aggregated.

The scores f of the network and the scores s of the items are found in turn. In a round

1. the votes of each query are aggregated by Bradley–Terry with prior N(f, τ²): s;
2. the network is fitted to s by least squares, with a free intercept for each query.

Both steps lower one objective, so the rounds settle:

    J(f) = min_s (1/n) (Σ_votes log(1 + e^−(s_winner − s_loser)) + ‖s − f‖² / (2τ²)) + (λ/2)‖θ‖²

With τ² → 0 it is the usual loss, one vote at a time; with τ² > 0 what the votes say of an item beyond what features can
say stays with the item. Many votes of a query wash the prior out, as in ``learning.targets.informed``, whose second
stage this is for a scorer that can be anything.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from concordant.errors import InputError, UsageError, whole_number
from concordant.learning.targets.informed import COARSE, FEW_QUERIES, FOLDS, VARIANCES, peak
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import deal, label_keys, uniform_bits
from concordant.ranking.bradley_terry import bradley_terry
from concordant.torch.fitting import Fit, fit
from concordant.torch.losses import per_graph, real_scores, spans
from concordant.torch.objective import surrogate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STILL = 1e-6
"""Share of the objective by which a round has to lower it for another one to follow."""


def informed_targets(scores: Tensor, prefs: Preferences, *, tau2: float) -> Tensor:
    """Return what to fit a scorer to: scores of the items of every query by their votes, with prior N(scores, τ²).

    For a training loop of your own: take the targets of the current scores before an epoch, and minimise squares to
    them less their means over a query.

    Parameters
    ----------
    scores : (nodes,) of the items of every query, as ``Batch.whole(prefs)`` has them; their derivatives are not asked.
    prefs : the judgments.
    tau2 : variance τ² of the items' scores about those of the scorer.

    Errors: UsageError for other shapes and a τ² that is not positive.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"])
    >>> scores = torch.zeros(2, dtype=torch.float64)
    >>> informed_targets(scores, votes, tau2=1.0).round(decimals=3).tolist()
    [0.202, -0.202]
    """
    _check_tau2(tau2)
    batch = Batch.whole(prefs)
    real_scores(scores, len(batch.item))
    mean = scores.detach().cpu().double().numpy()
    found = bradley_terry(batch, prior=1.0 / tau2, mean=mean, covariates=False)
    return torch.as_tensor(found.value).to(scores.dtype).to(scores.device)


@dataclass(frozen=True)
class InformedFit:
    """How ``fit_informed`` trained a scorer, which was changed in place.

    >>> found = InformedFit(tau2=0.5, targets=np.array([0.2, -0.2]), values=(0.6, 0.58), fits=())
    >>> round(found.values[0] - found.values[-1], 2)  # what the rounds gained
    0.02
    """

    tau2: float
    targets: Floats
    """(nodes,) what the network was fitted to in the last round."""
    values: tuple[float, ...]
    """J, before the first round and after each."""
    fits: tuple[Fit, ...]
    """Of the usual loss, where it begins, then of each round."""
    tau2_curve: tuple[tuple[float, float], ...] = ()
    """(τ², mean log-likelihood of a held-out vote) of all that were tried, ascending; empty when given."""


def fit_informed(
    scorer: nn.Module,
    X: Any,
    prefs: Preferences,
    *,
    rows: Any = None,
    tau2: float | str = "auto",
    rounds: int = 10,
    ridge: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> InformedFit:
    """Train a scorer on votes, aggregated by query with the scorer as prior and fitted, in turn.

    Formula: ``concordant.torch.informed``. It begins with the usual pairwise logistic loss.

    Parameters
    ----------
    scorer : any module of features (rows, features) → scores (rows,), changed in place.
    X : (items, features), on the device of the scorer.
    prefs : the judgments.
    rows : (nodes,) the row of X of each item of each query, in the order of ``Batch.whole(prefs)``
        (``features.matrix.align`` finds it); None, in order.
    tau2 : how far items lie from the scorer; 'auto', as makes held-out votes likeliest: a copy of the scorer is trained
        on two thirds of the queries and the votes of the others are held out by thirds (of fewer than ten queries, a
        copy on two thirds of the votes).
    rounds : at most; fewer where a round hardly lowers the objective.
    ridge : λ, of all parameters but those named "bias".
    seed : of what is held out, and of ``concordant.torch.fit``.
    **options : of ``concordant.torch.fit``: method, steps, batch, rate, tolerance; ``steps`` is of each round.

    Errors: UsageError for shapes and options, InputError without comparisons.

    >>> from concordant.torch.scorers import LinearScorer
    >>> votes = Preferences.from_comparisons(["a", "b", "a"], ["b", "c", "c"], count=[3, 2, 4])
    >>> scorer = LinearScorer(1)
    >>> found = fit_informed(scorer, [[1.0], [0.0], [-1.0]], votes, tau2=0.5, ridge=0.1)
    >>> len(found.values) > 2, bool(found.values[-1] < found.values[0]), scorer.weight.item() > 0
    (True, True, True)
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"fit_informed takes Preferences, not {type(prefs).__name__}")
    rounds = whole_number(rounds, "rounds")
    if tau2 != "auto":
        _check_tau2(tau2)
    device = next((p.device for p in scorer.parameters()), torch.device("cpu"))
    problem = _Problem(prefs, X, rows, {"ridge": ridge, "seed": seed, **options}, device)
    curve: tuple[tuple[float, float], ...] = ()
    if tau2 == "auto":
        curve = problem.tau2_curve(scorer, seed)
        tau2 = max(curve, key=lambda point: point[1])[0]
    variance = float(tau2)
    fits = [problem.usual(scorer, problem.whole)]
    values = [problem.value(scorer, variance, ridge)]
    for _ in range(rounds):
        fits.append(problem.round(scorer, variance))
        values.append(problem.value(scorer, variance, ridge))
        if values[-2] - values[-1] <= STILL * abs(values[-2]):
            break
    return InformedFit(variance, problem.targets, tuple(values), tuple(fits), curve)


class CentredSquares(nn.Module):  # type: ignore[misc]
    """½ Σ_i (f_i − t_i − mean of f − t)² over the items of each query: squares with a free intercept for each.

    Shapes: ``node_start`` (queries + 1,), ``target`` (nodes,); it takes scores (nodes,) and returns (queries,), as the
    objectives do that ``fit`` takes.

    >>> CentredSquares(torch.tensor([0, 2]), torch.tensor([1.0, 0.0]))(torch.tensor([5.0, 5.0])).tolist()
    [0.25]
    """

    def __init__(self, node_start: Tensor, target: Tensor) -> None:
        super().__init__()
        size = node_start.diff()
        owner = torch.repeat_interleave(torch.arange(len(size), device=node_start.device), size)
        for name, column in (("node_start", node_start), ("owner", owner), ("target", target)):
            self.register_buffer(name, column)

    @property
    def nodes(self) -> int:
        """Number of scores it takes."""
        return len(self.owner)

    def __len__(self) -> int:
        return len(self.node_start) - 1

    def forward(self, scores: Tensor) -> Tensor:
        """Return the value of each query."""
        real_scores(scores, self.nodes, self.node_start.device)
        off = scores - self.target.to(scores.dtype)
        size = self.node_start.diff().clamp(min=1).to(scores.dtype)
        off = off - (per_graph(off, self.owner, len(self)) / size)[self.owner]
        return per_graph(0.5 * off.square(), self.owner, len(self))

    def take(self, graphs: Tensor) -> CentredSquares:
        """Return those of these queries alone."""
        node, start = spans(self.node_start, graphs)
        return CentredSquares(start, self.target[node])


class _Problem:
    """The votes, and the steps of a round."""

    def __init__(self, prefs: Preferences, X: Any, rows: Any, options: dict[str, Any], device: Any) -> None:
        self.prefs, self.X, self.rows, self.options, self.device = prefs, X, rows, options, device
        self.whole = Batch.whole(prefs)
        self.targets = np.zeros(len(self.whole.item))
        self.total = _votes(self.whole)
        if not self.total > 0:
            raise InputError("informed aggregation needs comparisons: these preferences prefer no item to another")

    def usual(self, scorer: nn.Module, batch: Batch) -> Fit:
        """Train by the usual loss, the mean over all votes of a batch."""
        judgments = batch.judgments
        share = torch.as_tensor(judgments / max(float(judgments.sum()), 1.0), device=self.device)
        objective = surrogate("ranknet", batch, device=self.device)
        return fit(scorer, self.X, objective, rows=self.rows, weight=share, **self.options)

    def scores(self, scorer: nn.Module) -> Tensor:
        with torch.no_grad():
            like = next(scorer.parameters())
            X = torch.as_tensor(self.X).to(like.device, like.dtype)
            return scorer(X if self.rows is None else X[torch.as_tensor(self.rows).to(like.device).long()])

    def round(self, scorer: nn.Module, tau2: float) -> Fit:
        """Aggregate with the scorer as prior, and fit it to that."""
        targets = informed_targets(self.scores(scorer), self.prefs, tau2=tau2)
        self.targets = targets.cpu().double().numpy()
        start = torch.as_tensor(self.whole.node_start, device=self.device)
        weight = torch.full((len(self.whole),), 1.0 / (self.total * tau2), dtype=torch.float64, device=self.device)
        objective = CentredSquares(start, targets.to(self.device))
        return fit(scorer, self.X, objective, rows=self.rows, weight=weight, **self.options)

    def value(self, scorer: nn.Module, tau2: float, ridge: float) -> float:
        """J."""
        f = self.scores(scorer)
        s = informed_targets(f, self.prefs, tau2=tau2).cpu().double().numpy()
        off = self.whole.node_groups.centred(s - f.cpu().double().numpy())
        theta = sum(
            float(p.detach().double().square().sum())
            for name, p in scorer.named_parameters()
            if name.rsplit(".", 1)[-1] != "bias"
        )
        return (_loss(self.whole, s) + 0.5 * float(off @ off) / tau2) / self.total + 0.5 * ridge * theta

    def tau2_curve(self, scorer: nn.Module, seed: int) -> tuple[tuple[float, float], ...]:
        """τ² and the mean log-likelihood of a held-out vote with it."""
        prefs, keys = self.prefs, label_keys(self.prefs.queries, seed)
        by_query = len(keys) >= FEW_QUERIES
        judged = prefs.count.astype(np.int64)
        if by_query:
            place = np.argsort(np.argsort(uniform_bits(keys, np.zeros(len(keys), np.uint64)), kind="stable"))
            held = (place % FOLDS == 0)[prefs.query]
            score, judged = self._learned(scorer, np.where(held, 0, judged)), np.where(held, judged, 0)
        shares = []
        for share in deal(prefs.start, judged, keys, FOLDS):
            learned = score if by_query else self._learned(scorer, judged - share)
            shares.append((_part(prefs, judged - share), _part(prefs, share), learned))

        def likelihood(tau2: float) -> float:
            value, votes = 0.0, 0.0
            for rest, held, score in shares:
                found = bradley_terry(rest, prior=1.0 / tau2, mean=score, covariates=False, tolerance=1e-4).value
                value, votes = value - _loss(held, found), votes + _votes(held)
            return value / max(votes, 1e-300)

        return tuple(sorted(peak(likelihood, VARIANCES, COARSE[1]).items()))

    def _learned(self, scorer: nn.Module, count: Ints) -> Floats:
        """Scores of all items by a copy of the scorer that saw so many of each vote."""
        trained = copy.deepcopy(scorer)
        self.usual(trained, _part(self.prefs, count))
        return self.whole.node_groups.centred(self.scores(trained).cpu().double().numpy())


def _part(prefs: Preferences, count: Ints) -> Batch:
    """A batch of all queries with so many of each judgment."""
    rows = np.flatnonzero(count)
    start = np.searchsorted(rows, prefs.start).astype(np.int64)
    return Batch(prefs, np.arange(len(prefs.queries), dtype=np.int32), start, rows, count[rows])


def _votes(batch: Batch) -> float:
    return float(batch.graphs.above.sum() + batch.graphs.below.sum())


def _loss(batch: Batch, score: Floats) -> float:
    """Σ log(1 + e^−margin) of the votes."""
    graphs = batch.graphs
    margin = score[graphs.first] - score[graphs.second]
    return float(graphs.above @ np.logaddexp(0.0, -margin) + graphs.below @ np.logaddexp(0.0, margin))


def _check_tau2(tau2: Any) -> None:
    if isinstance(tau2, str | bool) or not 0 < tau2 < np.inf:
        raise UsageError(f"tau2 must be a positive number or 'auto', not {tau2!r}")
