"""``concordant reproduce``: run, write, say what agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from concordant.apps.commands.durations import drawing
from concordant.apps.commands.experiment_options import ReproduceOptions
from concordant.apps.commands.output import output_folder
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.saying import say
from concordant.apps.commands.standard import beside_the_result
from concordant.apps.reproduction.experiments import EXPERIMENTS, Experiment, experiment
from concordant.apps.reproduction.outcome import Setting, find, found, write_figure, write_numbers
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.preferences.sampling import whole_seed
from concordant.time_left import Cost


def reproduce(options: ReproduceOptions) -> None:
    """Run one experiment, or all whose data are there; the tables go to files, the words to stdout."""
    name, data, device, seed = options.name, options.data, options.device, options.seed
    chosen = list(EXPERIMENTS.values()) if name is None else [experiment(name)]
    options.settle(reads_data=any(each.data for each in chosen))
    if device != "cpu" and not (name is not None and chosen[0].devices):
        who = " and ".join(each.name for each in EXPERIMENTS.values() if each.devices)
        raise UsageError(f"--device {device}: only {who} computes elsewhere than on the cpu; name it")
    if whole_seed(seed) < 0:
        raise UsageError(f"--seed must be at least 0, not {seed}")
    folder, root = output_folder(options.output), None if data is None else Path(data)
    if root is not None and not root.is_dir():
        raise InputError(f"--data {data} is not a folder")
    failed: list[str] = []
    setting = Setting(root, options.quick, seed, device=device, output=folder)
    able = [each for each in chosen if not each.needs or any(found(need, root) for need in each.needs)]
    plan = drawing({each.name: each.usual(setting) for each in able})
    for each in chosen:
        if each not in able:
            if name is not None:
                find(each.needs[0], root)
            say("note", f"{each.name} is left out: no data set {' or '.join(each.needs)}")
            continue
        failed += _run(each, setting, folder, options, plan)
        plan = {}  # it is that of all
    if failed:
        raise ConcordantError(failed[0])


def _run(
    each: Experiment, setting: Setting, folder: Path, options: ReproduceOptions, plan: dict[str, Cost]
) -> list[str]:
    """Run an experiment and write it; return what went wrong with the figure."""
    with Progress(options.quiet, each.name, plan) as progress:
        outcome = each.run(setting if progress is None else replace(setting, progress=progress))
    with Progress(options.quiet, f"drawing {each.name}"):
        written, failed = write_numbers(outcome, folder), []
        try:
            written += write_figure(outcome, folder)
        except ConcordantError as error:
            failed.append(str(error))
    with beside_the_result():
        click.echo(outcome.markdown())
    options.say("wrote", f"written to {folder}: {', '.join(path.name for path in written)}", path=str(folder))
    return failed
