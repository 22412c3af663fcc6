"""What all logs of a store have in common: the kind, whether there are clusters, covariates, the types of labels."""

from __future__ import annotations

from collections.abc import Sequence

from concordant.errors import InputError, few
from concordant.preferences import Preferences
from concordant.store.catalogue import Facts
from concordant.store.segments import label_kind

__all__ = ["agree", "agree_columns", "facts_of"]


def facts_of(prefs: Preferences, cluster: str | None) -> Facts:
    """Return the facts that preferences fix for a store that begins with them."""
    return Facts(
        kind=str(prefs.kind),
        items=label_kind(prefs.items),
        queries=label_kind(prefs.queries),
        clusters=None if prefs.clusters is None else label_kind(prefs.clusters),
        cluster=None if prefs.clusters is None else cluster or "cluster",
        covariates=prefs.covariate_names,
    )


def agree_columns(facts: Facts, clusters: bool, covariates: Sequence[str], name: str) -> None:
    """Refuse a log that would be read with other clusters or covariates than the store has."""
    if clusters != (facts.clusters is not None):
        raise InputError(
            f"{name}: the store keeps judgments without clusters, so no cluster can be named; it was fixed by the "
            "first log"
            if clusters
            else f"{name}: the store keeps the cluster of each judgment ({facts.cluster}); name its column (--cluster)"
        )
    if set(covariates) != set(facts.covariates):
        kept = f"the covariates {few(facts.covariates)}" if facts.covariates else "no covariates"
        given = few(sorted(covariates)) if covariates else "none"
        raise InputError(
            f"{name}: the store keeps {kept}, fixed by its first log; given here: {given} (--covariate, --home)"
        )


def agree(facts: Facts, prefs: Preferences, name: str) -> None:
    """Refuse preferences that cannot be added to those of a store. Errors (InputError) say how they differ."""
    if prefs.kind != facts.kind:
        raise InputError(f"{name}: holds {prefs.kind}, the store {facts.kind}; a store holds judgments of one kind")
    agree_columns(facts, prefs.clusters is not None, prefs.covariate_names, name)
    for what, labels in (("items", prefs.items), ("queries", prefs.queries), ("clusters", prefs.clusters)):
        kept = getattr(facts, what)
        if labels is not None and label_kind(labels) != kept:
            raise InputError(
                f"{name}: {what} are {label_kind(labels)} (such as {labels[0]!r}), in the store {kept}; "
                "give all logs of a store labels of one type"
            )
