"""The experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from concordant.apps.reproduction import abstention, consistency, fig2, fig3, fig4, images, table1
from concordant.apps.reproduction.outcome import SOURCES, Outcome, Setting, found
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
    seconds: tuple[float, float] = (0.0, 0.0)
    """What it usually takes with ``quick`` and without."""

    def usual(self, setting: Setting) -> float | None:
        """Seconds that it usually takes; None where only its steps tell: on all of MSLR-WEB10K, and with CIFAR-10."""
        lists = found("mslr", setting.data) if "mslr" in self.needs else None
        whole = lists is not None and not (lists / SOURCES["mslr"][0][0]).is_file()
        images = self.devices and setting.data is not None and found(abstention.SET, setting.data) is not None
        trained = images and (setting.quick or setting.device != "cpu")
        return None if whole or trained else self.seconds[0 if setting.quick else 1]


_ALL = (
    Experiment("table1", ("ml-100k",), table1.run, seconds=(23.0, 1000.0)),
    Experiment("fig2", ("mslr", "mq2008"), fig2.run, seconds=(6.5, 240.0)),
    Experiment("fig3", ("mslr", "mq2008"), fig3.run, seconds=(55.0, 1700.0)),
    Experiment("fig4", ("mslr", "mq2008"), fig4.run, seconds=(2.2, 20.0)),
    Experiment("images", ("mslr", "mq2008"), images.run, seconds=(14.5, 160.0)),
    Experiment("consistency", (), consistency.run, data=False, seconds=(3.0, 40.0)),
    Experiment("abstention", (), abstention.run, devices=True, seconds=(4.0, 53.0)),
)
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.name: each for each in _ALL})


def experiment(name: str) -> Experiment:
    """Look an experiment up by its name; the error for an unknown one lists them."""
    if name not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {name!r}; {did_you_mean(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
