"""What cross-validation found: the loss of every combination that was tried, and which one was taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError

__all__ = ["Curve"]

Floats = NDArray[np.float64]
WIDTH = 40
KINDS: Mapping[str, type[Any]] = {
    "structure": object,
    "order": object,
    "gain": object,
    "normalise": bool,
    "ridge": np.float64,
    "loss": np.float64,
    "standard_error": np.float64,
    "chosen": bool,
}
"""Columns of a curve, and what they hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Mapping[str, Any]):
    """A table, column by column: what was tried, its mean loss over the folds with standard error, what was chosen.

    Columns: structure, order, gain, normalise, ridge (NaN with a regressor of one's own), loss (generalised pairwise
    disagreement with held-out judgments), standard_error, chosen.

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

    @classmethod
    def of(cls, tried: list[dict[str, Any]], folds: Floats) -> Curve:
        """Build from the combinations and their losses, shape (folds, combinations); the first lowest is chosen."""
        loss = folds.mean(axis=0)
        columns: dict[str, NDArray[Any]] = {
            "structure": np.array([one["structure"] for one in tried], object),
            "order": np.array([one["order"] for one in tried], object),
            "gain": np.array([one["gain"] for one in tried], object),
            "normalise": np.array([one["normalise"] for one in tried], bool),
            "ridge": np.array([one["ridge"] for one in tried], np.float64),
            "loss": loss,
            "standard_error": folds.std(axis=0, ddof=1) / np.sqrt(len(folds)),
            "chosen": np.arange(len(tried)) == int(loss.argmin()),
        }
        return cls(columns, folds)

    def choosing(self, place: int) -> Curve:
        """The same with another combination chosen."""
        chosen = np.arange(len(self["loss"])) == place
        return Curve({**self.columns, "chosen": chosen}, self.folds)

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

    def to_state(self) -> dict[str, list[Any]]:
        """Return the table as JSON keeps it: ridges that are not finite are texts.

        >>> tried = {"structure": "borda", "order": "1", "gain": "identity", "normalise": False, "ridge": np.inf}
        >>> kept = Curve.of([tried], np.array([[0.25], [0.5]])).to_state()
        >>> kept["ridge"], Curve.from_state(kept)["ridge"].tolist()
        (['inf'], [inf])
        """
        return {
            name: [str(x) if isinstance(x, float) and not np.isfinite(x) else x for x in column.tolist()]
            for name, column in self.columns.items()
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Curve:
        """Return the table of a ``to_state``, without the losses of each fold. Errors (InputError): what is missing."""
        try:
            columns = {name: np.array(state[name], kind) for name, kind in KINDS.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the curve of a ranker cannot be read: {type(error).__name__} {error}") from None
        if {column.shape for column in columns.values()} != {(int(columns["chosen"].size),)} or not columns[
            "chosen"
        ].any():
            raise InputError("the curve of a ranker cannot be read: its columns do not belong together")
        return cls(columns)

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
        said = f"{row['structure']}, gain {row['gain']}{over}{other}"
        return "\n".join([*lines, f"{said}; loss: share of held-out preferences contradicted"])

    def __repr__(self) -> str:
        return f"Curve({len(self['loss'])} combinations)"
