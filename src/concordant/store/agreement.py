"""What all logs of a store have in common: kind, query, cluster, covariates, the columns they are, types of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from concordant.errors import InputError, few
from concordant.labels import Labels
from concordant.preferences import Preferences
from concordant.store.catalogue import Catalogue, Content, Facts
from concordant.store.migrations import UNKNOWN
from concordant.store.segments import label_kind
from concordant.tally import MOST

__all__ = [
    *("Named", "agree", "agree_columns", "covariates_of", "facts_of", "fits", "kept_query", "named_in", "settled"),
    "words",
]

Named = Mapping[str, str | None]
"""The columns that ``query``, ``cluster`` and ``neutral`` came from, and the side of ``home``: None where a log has
none, empty where it has no name, ``?`` where nobody knows."""
NAMES = {
    "query": ("the query of each judgment", "--query"),
    "cluster": ("the cluster of each judgment", "--cluster"),
    "home": ("which side is at home", "--home"),
    "neutral": ("where nobody is at home", "--neutral"),
}
NO_QUERY = "all"
"""The query of judgments that have none."""


def facts_of(prefs: Preferences, named: Named) -> Facts:
    """Return the facts that preferences fix for a store that begins with them."""
    return Facts(
        kind=str(prefs.kind),
        items=label_kind(prefs.items),
        queries=label_kind(prefs.queries),
        clusters=None if prefs.clusters is None else label_kind(prefs.clusters),
        cluster=None if prefs.clusters is None else named["cluster"] or "cluster",
        covariates=prefs.covariate_names,
        query=named["query"],
        home=named["home"],
        neutral=named["neutral"],
    )


def named_in(prefs: Preferences, roles: Mapping[str, str] | None, home: str | None) -> Named:
    """Return what a store pins of a log, given the columns of its roles; None of them for Preferences in memory."""
    if roles is None:
        unsaid = UNKNOWN if "home" in prefs.covariate_names else None
        query = None if prefs.queries.tolist() == [NO_QUERY] else ""
        return {"query": query, "cluster": "" if prefs.clusters else None, "home": unsaid, "neutral": unsaid}
    cluster = roles.get("cluster") if prefs.clusters is not None else None
    return {"query": roles.get("query"), "cluster": cluster, "home": home, "neutral": roles.get("neutral")}


def covariates_of(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the covariates that options of reading ask for."""
    named = options.get("covariates") or ()
    home = ["home"] if options.get("home") is not None else []
    return [*([named] if isinstance(named, str) else named), *home]


def kept_query(queries: Collection[object], name: str) -> str | None:
    """Return whether judgments have queries, as their labels say: None, or a name that is not known.

    Errors (InputError): some have and some have not; version 0.1 took both into one store.
    """
    if NO_QUERY not in queries:
        return ""
    if len(queries) == 1:
        return None
    others = few(sorted(str(query) for query in queries if query != NO_QUERY), 3)
    raise InputError(
        f"{name}: holds judgments without a query ({NO_QUERY!r}) beside those of the queries {others}, which version "
        "0.1 let in; it can be read, and nothing is added to it until they are apart: export it and keep the rows of "
        "one sort, or take its logs into a new store"
    )


def settled(facts: Facts, named: Named) -> Facts:
    """Return the facts with what was unknown as a log that agrees says it."""
    found: dict[str, Any] = {name: named[name] for name in NAMES if getattr(facts, name) in ("", UNKNOWN)}
    return replace(facts, **{name: value for name, value in found.items() if value not in ("", UNKNOWN)})


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


def agree(facts: Facts, prefs: Preferences, named: Named, name: str) -> None:
    """Refuse preferences that cannot be added to those of a store. Errors (InputError) say how they differ."""
    if prefs.kind != facts.kind:
        raise InputError(f"{name}: holds {prefs.kind}, the store {facts.kind}; a store holds judgments of one kind")
    agree_columns(facts, prefs.clusters is not None, prefs.covariate_names, name)
    for what in NAMES:
        _agree_name(what, getattr(facts, what), named[what], name)
    for what, labels in (("items", prefs.items), ("queries", prefs.queries), ("clusters", prefs.clusters)):
        _agree_labels(what, labels, getattr(facts, what), name)


def _agree_name(what: str, kept: str | None, given: str | None, name: str) -> None:
    said, option = NAMES[what]
    if UNKNOWN in (kept, given) or kept == given or (kept is not None and given is not None and "" in (kept, given)):
        return
    if given is None:
        column = f" ({kept!r})" if kept else ""
        raise InputError(
            f"{name}: the store keeps {said}{column}, fixed by its first log, and this log has none; name it "
            f"({option}), or take the log into another store"
        )
    if kept is None:
        column = f" ({given!r})" if given else ""
        raise InputError(
            f"{name}: this log has {said}{column}, the store keeps none, fixed by its first log; take it into "
            "another store, or make this one anew from its logs"
        )
    raise InputError(
        f"{name}: {said} is {given!r} here and {kept!r} in the store, fixed by its first log; where both mean the "
        f"same, call it {kept!r} in the log, too; else take it into another store"
    )


def _agree_labels(what: str, labels: Labels | None, kept: str | None, name: str) -> None:
    if labels is not None and label_kind(labels) != kept:
        raise InputError(
            f"{name}: {what} are {label_kind(labels)} (such as {labels[0]!r}), in the store {kept}; "
            "give all logs of a store labels of one type"
        )


def fits(old: Catalogue, prefs: Preferences, carried: Sequence[Content], name: str) -> None:
    """Refuse what would be counted twice, or beyond what can be counted; ``carried`` are files of an export."""
    there = {(content.sha256, content.again) for content in old.contents}
    if twice := [one.name for one in carried if (one.sha256, one.again) in there]:
        raise InputError(
            f"{name}: the export of a store that took in {few(twice, 3)}, as this one did; their judgments would be "
            "there twice. Take the export into a store of its own"
        )
    if old.judgments + len(prefs) > MOST:
        raise InputError(
            f"{name}: {len(prefs):,} judgments to the {old.judgments:,} of the store are more than the {MOST:,} "
            "(2^63 − 1) that can be counted"
        )


def words(options: Mapping[str, Any]) -> str:
    """Say options of reading.

    >>> words({"clicks": "first"}), words({})
    ("clicks='first'", 'no options')
    """
    return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "no options"
