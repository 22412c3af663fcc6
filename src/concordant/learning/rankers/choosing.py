"""Cross-validation over judgments: which targets and which ridge order what was held out, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, counted
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.plans import Plan
from concordant.learning.rankers.target import ROUNDING, ListLoss, Target
from concordant.learning.rankers.validation import Training
from concordant.learning.targets.mean_targets import Targets
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import folds
from concordant.progress import steps

Floats = NDArray[np.float64]
WIDTH = 40
KINDS: Mapping[str, type[Any]] = {
    "structure": object,
    "order": object,
    "gain": object,
    "normalise": bool,
    "score_scale": np.float64,
    "c0": object,
    "ridge": np.float64,
    "loss": np.float64,
    "standard_error": np.float64,
    "chosen": bool,
}
"""Columns of a curve, and what they hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Mapping[str, Any]):
    """A table, column by column: what was tried, its mean loss over the folds with standard error, what was chosen.

    Columns: structure, order, gain, normalise, score_scale, c0 (None where one was tried), ridge (NaN with a regressor
    of one's own), loss (generalised pairwise disagreement with held-out judgments), standard_error, chosen.

    >>> plan = {"structure": "log-odds", "gain": "2^s-1", "normalise": True, "ridge": 0.1}
    >>> tried = [{**plan, "order": "1"}, {**plan, "order": "all"}]
    >>> curve = Curve.of(tried, np.array([[0.25, 0.125], [0.375, 0.25]]))  # two folds
    >>> curve["loss"].tolist(), curve["chosen"].tolist()
    ([0.3125, 0.1875], [False, True])
    >>> print(curve)  # doctest: +NORMALIZE_WHITESPACE
    order loss     s.e.
    1     0.31250  0.06250 ########################################
    all   0.18750  0.06250 #                                        chosen
    log-odds, gain 2^s-1 over Z, ridge 0.1; loss: share of held-out preferences contradicted
    """

    columns: dict[str, NDArray[Any]]
    folds: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Loss of each fold (rows) and combination (columns)."""
    target: str = "pairwise"
    """What the loss is."""

    @classmethod
    def of(cls, tried: list[dict[str, Any]], folds: Floats, target: str = "pairwise") -> Curve:
        """Build from the combinations and their losses, shape (folds, combinations).

        Chosen is the largest order that is within one standard error of the least loss (of the paired difference over
        the folds), with the ridge that is best there: what aggregation needs is that k grows with the judgments, and
        where held-out judgments cannot tell, more judgments at a time have less noise.
        """
        loss = folds.mean(axis=0)
        columns: dict[str, NDArray[Any]] = {
            "structure": np.array([one["structure"] for one in tried], object),
            "order": np.array([one["order"] for one in tried], object),
            "gain": np.array([one["gain"] for one in tried], object),
            "normalise": np.array([one["normalise"] for one in tried], bool),
            "score_scale": np.array([one.get("score_scale", 1.0) for one in tried], np.float64),
            "c0": np.array([one.get("c0") for one in tried], object),
            "ridge": np.array([one["ridge"] for one in tried], np.float64),
            "loss": loss,
            "standard_error": folds.std(axis=0, ddof=1) / np.sqrt(len(folds)),
            "chosen": np.arange(len(tried)) == _largest_order(tried, folds),
        }
        return cls(columns, folds, target)

    def choosing(self, place: int) -> Curve:
        """The same with another combination chosen."""
        chosen = np.arange(len(self["loss"])) == place
        return Curve({**self.columns, "chosen": chosen}, self.folds, self.target)

    @property
    def axis(self) -> str:
        """What the curve runs over: the order, or the ridge where a single order was tried."""
        return "ridge" if len(set(self["order"].tolist())) == 1 and len(set(self["ridge"].tolist())) > 1 else "order"

    @property
    def best(self) -> int:
        """Place of the chosen combination."""
        return int(self.columns["chosen"].argmax())

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def to_state(self) -> dict[str, Any]:
        """Return the table as JSON keeps it, and the target: ridges that are not finite are texts.

        >>> tried = {"structure": "borda", "order": "1", "gain": "identity", "normalise": False, "ridge": np.inf}
        >>> kept = Curve.of([tried], np.array([[0.25], [0.5]])).to_state()
        >>> kept["ridge"], Curve.from_state(kept)["ridge"].tolist()
        (['inf'], [inf])
        """
        columns = {
            name: [str(x) if isinstance(x, float) and not np.isfinite(x) else x for x in column.tolist()]
            for name, column in self.columns.items()
        }
        return {**columns, "target": self.target}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Curve:
        """Return the table of a ``to_state``, without the losses of each fold. Errors (InputError): what is missing."""
        try:
            usual = {"score_scale": [1.0] * len(state["chosen"]), "c0": [None] * len(state["chosen"])}  # before 0.2
            columns = {name: np.array({**usual, **state}[name], kind) for name, kind in KINDS.items()}
            target = str(Target.of(state.get("target", "pairwise"), "comparisons"))
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise InputError(f"the curve of a ranker cannot be read: {type(error).__name__} {error}") from None
        if {column.shape for column in columns.values()} != {(int(columns["chosen"].size),)} or not columns[
            "chosen"
        ].any():
            raise InputError("the curve of a ranker cannot be read: its columns do not belong together")
        return cls(columns, target=target)

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return pa.table({name: pa.array(column.tolist()) for name, column in self.columns.items()})

    def curve(self) -> pa.Table:
        """Return order, loss, standard_error and chosen of the orders tried, other things as chosen.

        Where a single order was tried with several ridges, ridge stands in the place of order.
        """
        same = np.ones(len(self["order"]), bool)
        others = ("structure", "gain", "normalise", "order" if self.axis == "ridge" else "ridge")
        for name in others:
            value = self[name][self.best]
            same &= (self[name] == value) | ((self[name] != self[name]) & (value != value))  # NaN is as NaN
        return self.to_arrow().filter(pa.array(same)).select([self.axis, "loss", "standard_error", "chosen"])

    def __str__(self) -> str:
        points = self.curve().to_pylist()
        low, high = (extreme(point["loss"] for point in points) for extreme in (min, max))
        lines = [f"{self.axis:<8}{'loss':<9}s.e."]
        for point in points:
            bar = "#" * (1 + round((WIDTH - 1) * (point["loss"] - low) / (high - low if high > low else 1.0)))
            mark = "  chosen" if point["chosen"] else ""
            line = f"{point[self.axis]!s:<8}{point['loss']:<9.5f}{point['standard_error']:.5f}  {bar:<{WIDTH}}{mark}"
            lines.append(line.rstrip())
        row = {name: column[self.best] for name, column in self.columns.items()}
        over = " over Z" if row["normalise"] else ""
        other = f", order {row['order']}" if self.axis == "ridge" else f", ridge {row['ridge']:g}"
        other = "" if np.isnan(row["ridge"]) else other
        scaled = "" if row["score_scale"] == 1 else f" of {row['score_scale']:g} s"
        own = "" if row["c0"] is None else f", c0 {row['c0']:g}"
        said = f"{row['structure']}{own}, gain {row['gain']}{scaled}{over}{other}"
        loss = "share of held-out preferences contradicted" if self.target == "pairwise" else f"{self.target}, held out"
        return "\n".join([*lines, f"{said}; loss: {loss}"])

    def __repr__(self) -> str:
        return f"Curve({len(self['loss'])} combinations)"


PAIRWISE = Target("pairwise")


def _largest_order(tried: list[dict[str, Any]], folds: Floats) -> int:
    """The place of the best ridge of the largest order within one standard error of the least loss."""
    loss = folds.mean(axis=0)
    best = int(loss.argmin())
    worse = folds - folds[:, [best]]
    fine = worse.mean(axis=0) <= worse.std(axis=0, ddof=1) / np.sqrt(len(folds)) + ROUNDING
    alike = [{**one, "order": None, "ridge": None} for one in tried]
    order = np.array([np.inf if one["order"] == "all" else float(one["order"]) for one in tried])
    among = np.array([one == alike[best] for one in alike]) & fine
    largest = among & (order == order[among].max())
    return int(np.where(largest, loss, np.inf).argmin())


class TooFew(InputError):
    """Judgments too few to choose anything by cross-validation."""


def check_parts(fold: int, n: int, judge: Disagreement | ListLoss, train: Preferences, prefs: Preferences) -> None:
    """Refuse a fold without judgments to learn from, or without a comparison to judge by. Errors: TooFew."""
    refuse_few(fold, n, judge.edges, len(train), (len(prefs), len(prefs.queries)), str(prefs.kind))


def refuse_few(fold: int, n: int, edges: int, learned: int, of: tuple[int, int], kind: str) -> None:
    """The same from numbers: what judges, what is learned from, and ``of`` how many judgments and queries."""
    what = "click" if kind == "selections" else "comparison"
    for part, number in (("held-out part", edges), ("rest", learned)):
        if not number:
            raise TooFew(
                f"the {part} of fold {fold + 1} of {n} has no {what} at all "
                f"({counted(of[0], 'judgments')} in {counted(of[1], 'queries')})",
                "; use fewer folds, or fix order, structure, gain and ridge so that nothing has to be chosen",
            )


TargetsOf = Callable[[list[Plan], Preferences], list[Targets]]


def target_weights(targets: Targets, weight: Floats) -> Floats:
    """w_q n̂_q / (m_q Σ w n̂): the weight of each query's squared errors."""
    size = targets.sizes
    total = weight * targets.weight
    whole = float((total * size).sum())
    return np.asarray(total / whole if whole > 0 else total, np.float64)


def cross_validate(
    training: Training,
    columns: Columns,
    plans: list[Plan],
    ridges: list[float],
    targets_of: TargetsOf,
    *,
    regressor: Any = None,
    intercept: str = "query",
    n: int = 3,
    split: str = "judgments",
    seed: int = 0,
    target: Target = PAIRWISE,
) -> Curve:
    """Return the loss of every plan and ridge over the folds, by the target.

    In each fold the targets of all plans come from the training part and are fitted in one pass over the features; all
    ridges share it. With a regressor of one's own each plan is one fit. Nodes and features are those of the whole
    throughout. Errors (TooFew): a fold that leaves no comparison to learn from, or none to judge by.
    """
    tried = [{**plan.row, "ridge": ridge if regressor is None else np.nan} for plan in plans for ridge in ridges]
    losses = []
    pieces = steps("cross-validation: folds", folds(training.prefs, n, split=split, seed=seed), n)
    for fold, (train, held) in enumerate(pieces):
        judge = target.judge(held, training.weight)
        check_parts(fold, n, judge, train, training.prefs)
        targets = targets_of(plans, train)
        found = (
            _linear(training, columns, targets, ridges, intercept)
            if regressor is None
            else _regressed(training, columns, targets, regressor, judge)
        )
        row = np.empty(len(tried))
        for place, scores in found:
            row[place] = judge.loss(scores)
        losses.append(row)
    return Curve.of(tried, np.array(losses), str(target))


def _linear(
    training: Training, columns: Columns, targets: list[Targets], ridges: list[float], intercept: str
) -> Iterator[tuple[int, Floats]]:
    """Yield the scores of the nodes for each target and ridge: one pass, one factorisation for each ridge.

    Where targets lack items, each its own, there is a pass for each.
    """
    alone = any(each.unknown is not None for each in targets)
    for places in [[place] for place in range(len(targets))] if alone else [[*range(len(targets))]]:
        Y = np.column_stack([targets[place].value for place in places])
        weight = target_weights(targets[places[0]], training.weight)
        how: dict[str, Any] = {"rows": training.row, "intercept": intercept, "without": targets[places[0]].unknown}
        equations = columns.equations(Y, training.start, weight, **how)
        for r, ridge in enumerate(ridges):
            scores = columns.times(equations.solve(ridge).theta)
            for column, place in enumerate(places):
                yield place * len(ridges) + r, scores[:, column][training.row]


def _regressed(
    training: Training,
    columns: Columns,
    targets: list[Targets],
    regressor: Any,
    judge: Disagreement | ListLoss,
) -> Iterator[tuple[int, Floats]]:
    """Yield the scores of the nodes for each target; of a regressor that stops early where the judge has it stop."""
    from concordant.learning.rankers.regressors import fit_regressor
    from concordant.learning.rankers.stopping import Growth, Part, Regression, grown

    rows = columns.matrix[training.row]
    for place, target in enumerate(targets):
        each = target.spread(target_weights(target, training.weight))
        growth = Growth.of(regressor, int((each > 0).sum()))
        if growth is None:
            fitted, _ = fit_regressor(regressor, rows, target.centred(), each, training.groups.owner)
            yield place, np.asarray(fitted.predict(rows), np.float64)
            continue
        part = Part(
            Regression(training.row, target.centred(), each, owner=training.groups.owner),
            np.arange(len(rows)),
            judge.loss,
            1.0,
        )
        yield place, grown(regressor, growth, [part], training, columns.matrix)[2][0]
