"""What a structure function returns: scores of all nodes of a batch, and how they were obtained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLOSED_FORM", "CONVERGED", "STATUS", "STOPPED", "Scores"]

CLOSED_FORM, CONVERGED, STOPPED = 0, 1, 2
STATUS = ("closed form", "converged", "stopped before convergence")


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the nodes of a batch with the status of each graph.

    Shapes: ``value`` and ``component`` (nodes,), ``status``, ``iterations``, ``gradient`` (graphs,). ``component`` may
    be given as a function of nothing, which is called when somebody asks.
    """

    value: NDArray[np.float64]
    component: NDArray[np.int32]
    """Component of the comparison graph, 0 the largest; scores are comparable within one only."""
    status: NDArray[np.int8]
    """Index into STATUS."""
    iterations: NDArray[np.int64]
    gradient: NDArray[np.float64]
    """Largest absolute entry of the gradient at the end (0 for closed forms)."""
    coefficients: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """Coefficients beside the scores, one per graph: covariates, the logarithm of Davidson's ν ("ties")."""
    notes: tuple[str, ...] = ()
    """What a reader of the scores should know, in words."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options that they were computed with."""

    def __post_init__(self) -> None:
        if callable(self.component):
            self.__dict__["_find"] = self.__dict__.pop("component")

    def __getattr__(self, name: str) -> Any:  # only for what is not there
        find = self.__dict__.get("_find")
        if name == "component" and find is not None:
            self.__dict__[name] = find()
            self.__dict__.pop("_find", None)
        if name != "component" or name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return {"component": self.component} | {k: v for k, v in self.__dict__.items() if k != "_find"}
