"""``concordant counterexample``: search, print, write."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from concordant.apps.commands.durations import searching
from concordant.apps.commands.experiment_options import CounterexampleOptions
from concordant.apps.commands.output import output_folder, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.standard import beside_the_result
from concordant.auditing.counterexamples import KNOWN, Counterexample, find_counterexample
from concordant.auditing.small_populations import Verdict, preference_surrogates
from concordant.errors import UsageError, counted, did_you_mean
from concordant.losses.surrogates import SURROGATES, surrogate

SEARCHED = ("phi", "items", "within", "votes", "budget", "seed")
CLASSES = {"low noise": "low-noise", "acyclic": "acyclic", "any": "cyclic"}


def counterexample(options: CounterexampleOptions) -> None:
    """Print the votes and what surrogates make of them; with ``output`` write them as a log."""
    name = options.name
    folder = None if options.output is None else output_folder(options.output)
    chosen = {one: value for one in SEARCHED if (value := getattr(options, one)) is not None}
    options.settle(known=name in KNOWN)
    if name in KNOWN:
        found: Counterexample | None = KNOWN[name]
    else:
        if name not in SURROGATES:
            raise UsageError(f"unknown surrogate or counterexample {name!r}; {did_you_mean(name, _names())}")
        with Progress(options.quiet, "searching", searching(options.items or 3, options.budget or 2000)):
            found = find_counterexample(name, **chosen)
    if found is None:
        click.echo(_nothing(name, chosen))
        return
    asked, taken = chosen.get("votes", found.votes.sum()), int(found.votes.sum())
    if taken != asked:
        options.say("note", f"{asked} votes are too few to show it; taken are {taken:,}")
    if folder is not None:
        _write(found, folder)  # before anything is printed: the reader of a pipe may be gone after some lines
    with beside_the_result() if folder is not None else nullcontext():
        for line in _report(found):
            click.echo(line)
        if folder is not None:
            click.echo(f"\nwrote {folder}: votes.csv, items.csv, right.csv; now try")
            for line in _next(found, folder):
                click.echo(f"  {line}")
            sys.stdout.flush()


def _names() -> list[str]:
    return [*preference_surrogates(), *KNOWN]


def _nothing(name: str, chosen: Mapping[str, Any]) -> str:
    """Say that nothing was found, and whether that is known to be so."""
    member = surrogate(name)
    within = chosen.get("within", "low noise").replace("-", " ")
    where = "populations of any kind" if within == "any" else f"{CLASSES[within]} populations"
    text = (
        f"nothing found: on no population searched does {name} rank wrongly ({where}, {chosen.get('items', 3)} items)"
    )
    stated = member.consistent_for == "pairwise" and member.consistent(chosen.get("phi"))
    if stated and (within == "low noise" or within == member.condition):
        return f"{text}; that there is none is proved ({member.source})"
    return f"{text}; that does not prove that there is none"


def _report(found: Counterexample) -> Iterator[str]:
    number = int(found.votes.sum())
    kind = CLASSES[found.within]
    if found.source:
        yield from textwrap.wrap(found.source, 100)
    yield f"{counted(number, 'votes')} on {len(found.votes)} items, {kind}"
    for winner, loser in np.argwhere(found.votes):
        yield f"  {winner + 1} > {loser + 1}  {found.votes[winner, loser]:>{len(f'{number:,}')},}"
    against = counted(round(found.optimum * number), "votes")
    yield f"right order: {found.right_order}, which contradicts {against} ({found.optimum:.1%})"
    if found.verdict is not None and found.largest is not None:
        yield f"regret of {found.name}: {found.regret:.4g} a vote; largest found, ties included: {found.largest:.4g}"
    yield ""
    yield f"{'surrogate':<18}{'φ':<15}{'order':<{4 * len(found.votes)}}{'contradicts':>13}{'regret':>9}"
    for verdict in _verdicts(found):
        line = f"{verdict.surrogate:<18}{verdict.phi:<15}{verdict.order:<{4 * len(found.votes)}}"
        many = "" if verdict.unique else "  worst of several minimisers"
        yield f"{line}{round(verdict.loss * number):>13,}{verdict.regret:>9.4f}{many}"


def _verdicts(found: Counterexample) -> Iterator[Verdict]:
    """Of every surrogate with its usual φ, and of the one asked for as it was asked for."""
    for name in preference_surrogates():
        asked = found.verdict is not None and found.name == name
        yield found.verdict if asked and found.verdict is not None else found.judge(name)


def _write(found: Counterexample, folder: Path) -> None:
    """The votes, one-hot features, and the right order as labels: m − 1 for the best item, 0 for the last."""
    folder.mkdir(parents=True, exist_ok=True)
    items = len(found.votes)
    winner, loser = np.nonzero(found.votes)
    votes = {"winner": winner + 1, "loser": loser + 1, "count": found.votes[winner, loser]}
    names = np.arange(1, items + 1)
    features = {"item": names} | {f"is_{name}": (names == name).astype(np.int64) for name in names}
    order = [int(item) for item in found.right_order.split(" > ")]
    labels = {"item": order, "label": list(range(items))[::-1]}
    for name, table in (("votes.csv", votes), ("items.csv", features), ("right.csv", labels)):
        write(pa.table(table), str(folder / name))


def _next(found: Counterexample, folder: Path) -> Iterator[str]:
    """Commands that get it wrong, and right: the default, with votes enough to see it, and the difference graph."""
    wrong = found.name if found.verdict is not None else "ranknet"
    phi = found.verdict.phi if found.verdict is not None else surrogate(wrong).phi
    asked = f" --phi {phi}" if phi != surrogate(wrong).phi else ""
    yield f"concordant rank {folder}/votes.csv"
    yield f"concordant rank {folder}/votes.csv --structure kemeny"
    for loss in dict.fromkeys((wrong, "", "difference-graph")):
        name = loss or "default"
        model, scores = f"{folder}/{name}", f"{folder}/{name}.csv"
        extra = (f" --loss {loss}" if loss else "") + (asked if loss == wrong else "")
        yield f"concordant fit {folder}/votes.csv --features {folder}/items.csv{extra} --model {model}"
        yield f"concordant score --features {folder}/items.csv --model {model} --output {scores}"
        yield f"concordant evaluate {scores} {folder}/right.csv --metric pairwise-loss"
