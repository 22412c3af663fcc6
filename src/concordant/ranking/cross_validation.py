"""How well a ranking of a log foretells the part of it that it was not made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from concordant.errors import Setting, UsageError, whole_number
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import clusters_of, folds, later
from concordant.preferences.times import discounted
from concordant.progress import stage, steps
from concordant.ranking.answers import expected
from concordant.ranking.held_out import HeldOut, Predicted
from concordant.ranking.rank import rank
from concordant.ranking.structures import structure as find_structure

SPLITS = {"random": "judgments", "cluster": "clusters", "time": ""}
"""Names of splits, and what is dealt."""


def cross_validate(
    prefs: Preferences,
    structure: str = "bradley-terry",
    *,
    split: str = "random",
    folds: int = 5,
    half_life: Any = None,
    seed: int = 0,
    **options: Any,
) -> HeldOut:
    """Rank parts of the judgments, and return how well that foretells the others.

    Every part in turn is held out, the rest is ranked, and what was held out is foretold as ``Ranking.evaluate`` does;
    the table is of all parts together. Standard errors take the rankings as given; with clusters they count these.

    Parameters
    ----------
    prefs : the judgments.
    structure : of the rankings: bradley-terry or plackett-luce.
    split : 'random' deals the judgments of each query, which says how well the next vote of the same people is
        foretold; 'cluster' holds whole clusters out: votes of new people (or about new prompts); 'time' foretells each
        part from all that came before it, the first part but being learned from.
    folds : number of parts.
    half_life : with split='time': judgments count less the older they are (``preferences.times.discounted``).
    seed : of the deals.
    **options : of ``rank``, such as ``prior`` and ``ties``.

    Errors: UsageError for an unknown split, clusters or times that are not there, fewer clusters than parts, scores
    that do not say how often one item beats another; those of ``rank``.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(list("aabbc"), list("bcaca"), count=[30, 35, 14, 28, 9])
    >>> found = cc.cross_validate(votes, folds=4)
    >>> [(row["name"], round(row["mean"], 2), row["judgments"]) for row in found.table.to_pylist()][:2]
    [('accuracy', 0.8, 116), ('log-loss', 0.51, 116)]

    Source: Stone, Journal of the Royal Statistical Society B 36 (1974); split='time': Dawid, JRSS A 147 (1984).
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"cross_validate takes Preferences, not {type(prefs).__name__}; read them first")
    with stage("dealing parts"):
        parts = _parts(prefs, split, folds, seed)
    if half_life is not None and split != "time":
        raise UsageError("a half-life is about what came before: it needs ", Setting("split", "time"))
    found, member = [], replace(find_structure(structure), expects=False)  # whether the model fits the rest nobody asks
    sizes = [float(train.distinct) for train, _ in parts]  # of parts by time each is larger
    costs = [size + sum(sizes) / len(sizes) for size in sizes]
    for train, held in steps("parts held out", parts, costs=costs):
        known = train if half_life is None else discounted(train, half_life)
        found.append(expected(rank(known, member, interval="none", **options), held, prefs))
    with stage("foretelling judgments"):
        judged = Predicted.together(found).judged()
    return replace(judged, notes=(_said(split, len(parts), seed), *judged.notes))


def _parts(prefs: Preferences, split: str, number: int, seed: int) -> list[tuple[Preferences, Preferences]]:
    """Return (training, held out) for each part. Errors: UsageError."""
    if prefs.kind is None:
        raise UsageError("there are no judgments to hold some out")
    if split not in SPLITS:
        raise UsageError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    number = whole_number(number, "folds", least=2, most=1000)
    if split == "time":
        return list(later(prefs, number))
    if split == "cluster":
        if len(prefs.cluster_columns) > 1:
            raise UsageError(f"one kind of clusters can be held out, not {len(prefs.cluster_columns)} together")
        if not len(clusters_of(prefs)):
            raise UsageError("no column says which judgments depend on each other; read them with ", Setting("cluster"))
        if len(clusters_of(prefs)) < number:
            raise UsageError(f"{number} parts of clusters need as many clusters; there are {len(clusters_of(prefs)):,}")
    dealt = [part for part in folds(prefs, number, split=SPLITS[split], seed=seed) if len(part[0]) and len(part[1])]
    if not dealt:
        raise UsageError(f"{len(prefs):,} judgments are too few to hold some out")
    return dealt


def _said(split: str, parts: int, seed: int) -> Note:
    """Say how judgments were held out."""
    text = {
        "random": "each of {parts:,} random parts (seed {seed}) is foretold from the others",
        "cluster": "each of {parts:,} parts of the clusters (seed {seed}) is foretold from the others",
        "time": "each of {parts:,} later parts is foretold from all that came before it",
    }[split]
    return Note("held out", text, parts=parts, seed=seed)
