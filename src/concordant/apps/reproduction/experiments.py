"""The experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from concordant.apps.reproduction import abstention, consistency, fig2, fig3, fig4, images, table1
from concordant.apps.reproduction.outcome import Outcome, Setting
from concordant.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Experiment:
    """What is run, on which data, and of which paper."""

    name: str
    needs: tuple[str, ...]
    """Data sets, any one of which is enough."""
    run: Callable[[Setting], Outcome]
    data: bool = True
    """Whether it reads data of a folder, where they are there."""
    devices: bool = False
    """Whether it can compute elsewhere than on the CPU."""
    even: bool = False
    """Whether its steps take about equal times, and little follows them."""


_ALL = (
    Experiment("table1", ("ml-100k",), table1.run, even=True),
    Experiment("fig2", ("mslr", "mq2008"), fig2.run, even=True),
    Experiment("fig3", ("mslr", "mq2008"), fig3.run),
    Experiment("fig4", ("mslr", "mq2008"), fig4.run, even=True),
    Experiment("images", ("mslr", "mq2008"), images.run, even=True),
    Experiment("consistency", (), consistency.run, data=False),
    Experiment("abstention", (), abstention.run, devices=True),
)
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.name: each for each in _ALL})


def experiment(name: str) -> Experiment:
    """Look an experiment up by its name; the error for an unknown one lists them."""
    if name not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {name!r}; {did_you_mean(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
