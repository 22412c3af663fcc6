"""Agreement of those who judged: each group with the majority of the others, and group with group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.apps.report.views import recurring, short
from concordant.errors import InputError, UsageError
from concordant.losses.metrics.pairwise import kendall_tau
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.ranking.standard_errors import wilson
from concordant.ranking.structures import structure as find_structure

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
GROUPS = 100
"""Groups that are listed, those with most judgments."""
BETWEEN = 12
"""Groups that are compared with each other, those with most judgments."""

EXPLAINED = (
    "A pair of items of a query has a majority in a group if its judgments prefer one of the two, on balance; ties "
    "count for neither. Agreement is the share of the pairs with a majority in the group, and among all others "
    "together, on which both prefer the same item; pairs that are balanced on one side are left out, and counted "
    "as even. The interval is Wilson's, as if pairs were independent. Between two groups it is the same share of the "
    "pairs that both judged. Kendall's τ compares the scores that each group's own judgments give the items that both "
    "judged (τ_b, "
)


def groups_of(prefs: Preferences) -> Mapping[str, Preferences]:
    """Return the judgments of each cluster by themselves. Errors: UsageError where the log does not say who judged."""
    refuse_crossed(prefs, "the agreement of groups")
    if prefs.clusters is None or prefs.cluster is None:
        raise UsageError("the judgments do not say who made them")
    found = {}
    for code, label in enumerate(prefs.clusters.tolist()):
        rows = np.flatnonzero(prefs.cluster == code)
        found[str(label)] = keep(prefs, rows, prefs.count[rows], prefs.declared[:0])
    return found


@dataclass(frozen=True, eq=False)
class _Votes:
    """Judged pairs of each group: one row a group and pair."""

    group: Ints
    pair: Ints
    """Number of the query and pair of items over all groups."""
    net: Floats
    """Judgments for the item of the lower code less those for the other."""
    ties: Floats
    """Share of judgments that are ties, by group."""
    judgments: Ints
    pairs: int

    def majorities(self, groups: int) -> csr_array:
        """+1 or −1 where a group has a majority; shape (groups, pairs)."""
        sign = np.sign(self.net)
        some = sign != 0
        shape = (groups, max(self.pairs, 1))
        return csr_array((sign[some], (self.group[some], self.pair[some])), shape=shape)


def agreement_of(groups: Mapping[str, Preferences], column: str, structure: str, level: float) -> dict[str, Any]:
    """Compare the groups. Errors: UsageError for fewer than two; InputError for labels of different types."""
    named = {str(name): part for name, part in groups.items() if len(part)}
    if len(named) < 2:
        raise UsageError(f"agreement needs at least two groups with judgments, not {len(named)}")
    parts = list(named.values())
    votes = _votes(parts)
    rows = _with_others(votes, len(parts), level)
    order = np.argsort(-votes.judgments, kind="stable")
    names = [short(name) for name in named]
    shown = order[:GROUPS].tolist()
    both = order[:BETWEEN].tolist()
    over = "over all queries together" if recurring(parts[both[0]]) else "the mean over the queries where it is defined"
    some = f" The {len(both)} groups with most judgments are compared." if len(both) < len(parts) else ""
    return {
        "column": column,
        "groups": [{"group": names[place]} | rows[place] for place in shown],
        "between": {"groups": [names[place] for place in both]}
        | _between(votes.majorities(len(parts))[both], [parts[place] for place in both], structure),
        "left_out": len(parts) - len(shown),
        "level": level,
        "explained": f"{EXPLAINED}{over}).{some}",
    }


def _votes(parts: list[Preferences]) -> _Votes:
    """Number queries and items alike in all groups; add up the edges of each pair."""
    kinds = sorted({str(part.kind) for part in parts})
    if len(kinds) > 1:
        raise InputError(f"the groups hold judgments of different kinds: {', '.join(kinds)}; give all the same")
    queries, items = Labels.empty(), Labels.empty()
    for part in parts:
        queries, items = queries.union(part.queries)[0], items.union(part.items)[0]
    width = len(items)
    group, key, net, ties = [], [], [], np.full(len(parts), np.nan)
    for place, part in enumerate(parts):
        batch = Batch.whole(part)
        graphs = batch.graphs
        item = items.codes_of(part.items.values).astype(np.int64)[batch.item]
        query = queries.codes_of(part.queries.values).astype(np.int64)[batch.query[graphs.graph]]
        # codes ascend with labels in every group, so the first item of a pair is the same in all
        key.append((query * width + item[graphs.first]) * width + item[graphs.second])
        net.append(graphs.wins - graphs.losses)
        group.append(np.full(len(graphs.first), place))
        whole = float((graphs.wins + graphs.losses + graphs.ties).sum())
        ties[place] = float(graphs.ties.sum()) / whole if whole else np.nan
    pairs, pair = np.unique(np.concatenate(key), return_inverse=True)
    judgments = np.array([len(part) for part in parts])
    return _Votes(np.concatenate(group), pair.astype(np.int64), np.concatenate(net), ties, judgments, len(pairs))


def _with_others(votes: _Votes, groups: int, level: float) -> list[dict[str, Any]]:
    """Each group against all others together."""
    others = np.bincount(votes.pair, votes.net, votes.pairs)[votes.pair] - votes.net
    held = np.bincount(votes.pair, minlength=votes.pairs)[votes.pair] > 1  # somebody else judged the pair, too
    decided = held & (votes.net != 0) & (np.abs(others) > 1e-9)
    same = decided & (np.sign(others) == np.sign(votes.net))
    pairs, agree, even = (
        np.bincount(votes.group, which.astype(np.float64), groups).astype(np.float64)
        for which in (decided, same, held & ~decided)
    )
    low, high = wilson(agree, pairs, level)
    return [
        {
            "judgments": int(votes.judgments[g]),
            "pairs": int(pairs[g]),
            "agreement": agree[g] / pairs[g] if pairs[g] else None,
            "lower": low[g] if pairs[g] else None,
            "upper": high[g] if pairs[g] else None,
            "even": int(even[g]),
            "ties": float(votes.ties[g]),
        }
        for g in range(groups)
    ]


def _between(sign: csr_array, parts: list[Preferences], structure: str) -> dict[str, Any]:
    """Agreement, pairs and τ of every two groups."""
    shared = (abs(sign) @ abs(sign).T).toarray()
    surplus = (sign @ sign.T).toarray()
    agreement = np.full(shared.shape, np.nan)
    np.divide(shared + surplus, 2 * shared, out=agreement, where=shared > 0)
    scores = [_scores(part, structure) for part in parts]
    tau = np.full(shared.shape, np.nan)
    for i in range(len(parts)):
        for j in range(i):
            tau[i, j] = tau[j, i] = _tau(scores[i], scores[j])
        tau[i, i] = 1.0
    return {"agreement": agreement, "pairs": shared.astype(np.int64), "tau": tau}


def _scores(part: Preferences, structure: str) -> dict[tuple[Any, Any], float]:
    """The score of each item of each query (of all together where items recur) in its largest component."""
    whole = part.pool() if recurring(part) else part
    batch = Batch.whole(whole)
    found = find_structure(structure)(batch)
    rows = np.flatnonzero(found.component == 0)
    queries = whole.queries.take(batch.query[batch.owner[rows]]).to_pylist()
    items = whole.items.take(batch.item[rows]).to_pylist()
    return dict(zip(zip(queries, items, strict=True), found.value[rows].tolist(), strict=True))


def _tau(one: dict[tuple[Any, Any], float], other: dict[tuple[Any, Any], float]) -> float:
    both = sorted(one.keys() & other.keys())
    if not both:
        return float("nan")
    found = kendall_tau([one[x] for x in both], [other[x] for x in both], [x[0] for x in both])
    known = found[~np.isnan(found)]
    return float(known.mean()) if len(known) else float("nan")
