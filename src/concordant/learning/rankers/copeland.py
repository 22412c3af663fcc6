"""CopelandRanker: a linear scorer that keeps what everybody agrees on, and puts first who beats the most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, shown, whole_number
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import LinearRanker
from concordant.learning.rankers.plans import one_ridge
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.linear_orders import LEAST, excluding, leximax, most_kept, pushed, rows_between, widest
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.progress import stage
from concordant.ranking.pair_votes import PairVotes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEW, SURE = 2, 5
"""Annotators whose agreement binds: in one query, and of several, where two sides alike would seldom get five of five
votes, and what binds by chance spoils what all queries share."""
SHOWN = 4
"""Pairs that a note names."""


class CopelandRanker(LinearRanker):
    """Leximax Copeland subject to Pareto, for scores that are linear in the features.

    A pair on which all annotators agree is never turned round (Pareto). Subject to that, the first place of a query
    goes to the item that beats the most others by majority (Copeland's score, a level pair being half a win) among
    those that some linear scorer can put first; then the second place likewise, and so on (leximax). A Condorcet
    winner, who beats all others, is so put first wherever the features allow it beside the unanimous pairs, and where
    one linear scorer orders every pair as its majority does, so does this one. Minimising a loss over votes, as reward
    models do, guarantees none of this.

    Places are decided by linear programs, exactly up to margins of 1e-9. What they leave free (everything, where a log
    has many queries and ``places`` is 0) is used to come as near as possible to the scorer that minimises the
    majority-consistent loss: the logistic loss of every majority, each counting alike.

    Parameters
    ----------
    pareto : so many annotators, at least, have to agree on a pair for it to bind; 'auto' is 2 in a log of one query
        and 5 of several, where a scorer that is bound by chance agreements foretells votes worse; None: nothing binds.
        Where the features cannot express all unanimous pairs, as many as can hold together are kept, and a note names
        the others; in one query a Condorcet winner that some linear scorer puts first then goes before them.
    places : 'all' places of each query are decided, or its first so many; 'auto' is all of a log of one query, 0 of
        several, whose features would be used up by the first few.
    programs : linear programs, at most; where they do not do, the places after those that are proven are approximated,
        and ``status_["gap"]`` says by how much at most.
    ridge : of the majority-consistent loss; 'auto' is 0.001.
    standardise, log, missing : what is done to features (``Normaliser``).

    Clusters of the preferences are the annotators; without, each judgment is one of its own. Items of equal features
    share a place, that of their best. Of equal Copeland scores the larger Σ of shares of votes
    (Borda's score) goes first, then the label. Of labels the larger one is preferred, by one annotator.

    Attributes: ``coef_``, ``coef_standardised_``, ``status_`` (with ``exact``, ``places``, ``programs``, ``gap``:
    over the first j items by score the sum of Copeland scores falls short of that of the best order by this share of
    the most, at most, whatever j; ``pareto``: pairs, kept). Errors: InputError, UsageError.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(list("aabbb"), list("bbaca"), cluster=list("uvwuv"))
    >>> features = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> ranker = CopelandRanker().fit(features, votes)
    >>> ranker.status_["exact"], bool(ranker.coef_[0] < 0)
    (True, True)

    Source: Ge, Halpern, Micha, Procaccia, Shapira, Vorobeychik and Wu, Axioms for AI alignment from human feedback,
    NeurIPS 2024, Section 4.
    """

    def __init__(
        self,
        *,
        pareto: int | str | None = "auto",
        places: int | str = "auto",
        programs: int = 2000,
        ridge: float | str = "auto",
        standardise: bool = True,
        log: bool = False,
        missing: str = "raise",
    ) -> None:
        self.pareto = pareto
        self.places = places
        self.programs = programs
        self.ridge = ridge
        self.standardise = standardise
        self.log = log
        self.missing = missing

    @property
    def _takes_sparse(self) -> bool:
        return False

    def _check(self) -> None:
        one_ridge(self.ridge)
        whole_number(self.programs, "programs", least=0)
        if self.pareto is not None and self.pareto != "auto":
            if isinstance(self.pareto, str):
                raise UsageError(f"pareto is 'auto', a number of annotators or None, not {self.pareto!r}")
            whole_number(self.pareto, "pareto, the annotators who have to agree,")
        if self.places not in ("auto", "all"):
            if isinstance(self.places, str):
                raise UsageError(f"places is 'auto', 'all' or a number of places, not {self.places!r}")
            whole_number(self.places, "places", least=0)
        if self.missing_ == "keep":
            raise UsageError(
                Setting("missing", "keep"), " is for regressors that know missing values; a linear scorer needs a fill"
            )

    def _learn(self, training: Training, columns: Columns) -> None:
        batch = _batch(training)
        votes = PairVotes.of(batch)
        decided = votes.sign != 0
        if not decided.any():
            raise InputError("no pair of items has a majority of the votes: there is nothing to learn")
        Z = np.asarray(columns.matrix, np.float64)
        items = np.ascontiguousarray(Z[training.row])
        with stage("majority-consistent loss"):
            wanted = _majority_scorer(Z, votes, training, one_ridge(self.ridge))
        with stage("pairs that all agree on"):
            asked, point, kept, notes = self._unanimous(training, votes, items, wanted)
        queries = _best_first(training, votes, items)
        several = sum(len(query) > 1 for query in queries) > 1
        places = {"all": None, "auto": 0 if several else None}.get(str(self.places), self.places)
        with stage("places"):
            found = leximax(items, queries, asked, point, places=places, programs=self.programs)  # type: ignore[arg-type]
        theta = pushed(found.rows, found.point, wanted)
        self._take_linear(theta)
        notes += self._alike(training, votes, items)
        if len(asked) and kept.all() and len(votes) == 1:
            notes += self._excluded(training, votes, items, theta)
        gap = _gap(votes, items @ theta)
        proven = min((len(one) for one, query in zip(found.order, queries, strict=True) if len(query) > 1), default=0)
        if not found.exact:
            text = "{programs:linear programs} proved the first {proven:places}; the others are approximated: the "
            text += "Copeland scores of the first items fall short of those of the best order by {gap:.1%} at most"
            facts: dict[str, Any] = {"programs": found.programs, "proven": proven, "gap": gap}
            notes.append(Note("approximated", text + "; {ask} proves more", ask=Setting("programs"), **facts))
        if several and places == 0:
            text = "several queries share one scorer: no place is decided for its own sake, all majorities together are"
            notes.append(Note("no places", text + " ({ask} decides the first of each)", ask=Setting("places", 1)))
        self.status_ = {
            "status": "converged" if found.exact else "stopped",
            "loss": "leximax-copeland",
            "exact": found.exact,
            "places": proven,
            "programs": found.programs,
            "margin": found.margin,
            "gap": gap,
            "pareto": {"pairs": len(kept), "kept": int(kept.sum())},
            "majorities": {"pairs": int(decided.sum()), "kept": _kept(votes, decided, items @ theta)},
            "annotators": votes.annotators,
            "queries": len(training.start) - 1,
            "notes": [*training.notes, *notes],
        }

    def _unanimous(
        self, training: Training, votes: PairVotes, items: Floats, wanted: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_], list[Note]]:
        """Return the half spaces of unanimous pairs, a point inside, which pairs are kept, and what is to be said."""
        notes: list[Note] = []
        least = (FEW if len(votes) == 1 else SURE) if self.pareto == "auto" else self.pareto
        mask = np.zeros(len(votes.first), bool) if least is None else votes.unanimous(int(least))
        if least is not None and not mask.any():
            text = "no pair was judged alike by {least:annotators} or more, so unanimity binds nowhere"
            notes.append(Note("nothing unanimous", text, least=int(least)))
        above, below = votes.directed(mask)
        D = rows_between(items, above, below)
        if (D @ wanted > LEAST * max(float(np.linalg.norm(wanted)), 1e-300)).all():
            kept, point = np.ones(len(D), bool), wanted
        else:
            weight = (votes.ahead + votes.behind)[mask].astype(np.float64)
            kept, point = most_kept(D, weight)
            if not kept.all() and len(votes) == 1:  # the rule is for pairs that can hold: who beats all goes before
                first = _winner(votes, items)
                kept, point = most_kept(D, weight, first)
                D, kept = np.vstack((D, first)), np.append(kept, np.ones(len(first), bool))
        if not kept[: len(above)].all():
            lost, same = ~kept[: len(above)], int((~D.any(axis=1)).sum())
            notes.append(_lost(training, above[lost], below[lost], len(above), same))
        return D[kept], point, kept[: len(above)], notes

    def _alike(self, training: Training, votes: PairVotes, items: Floats) -> list[Note]:
        """Say which pairs with a majority are of items with equal features."""
        above, below = votes.directed(votes.sign != 0)
        same = np.flatnonzero(~(items[above] != items[below]).any(axis=1))
        if not len(same):
            return []
        text = (
            "{same:,} of {of:,} pairs with a majority are of items with equal features, which no scorer of these tells "
        )
        text += "apart: {pairs}"
        return [Note("equal features", text, same=len(same), of=len(above),
                     pairs=_pairs(training, above[same], below[same]))]  # fmt: skip

    def _excluded(self, training: Training, votes: PairVotes, items: Floats, theta: Floats) -> list[Note]:
        """Say it where unanimous pairs, which are kept, and the first place of who beats all exclude each other."""
        first = _winner(votes, items)
        if not len(first) or (first @ theta > 0).all():
            return []
        least = FEW if self.pareto == "auto" else int(self.pareto or 0)
        above, below = votes.directed(votes.unanimous(least))
        pairs = excluding(rows_between(items, above, below), first)
        if not len(pairs):
            return []
        text = "no linear scorer of these features has both {first} first, whom a majority prefers to every other item,"
        text += " and the order on which all agree of {pairs}: the latter is kept; pareto=None puts {first} first"
        winner = _named(training, int(np.argmax(votes.copeland())))
        pairs_named = _pairs(training, above[pairs], below[pairs])
        return [Note("winner excluded", text, first=winner, pairs=pairs_named)]


def _batch(training: Training) -> Batch:
    if training.labelled:
        query, item = training.groups.owner, training.groups.place
        return Batch.whole(Preferences.from_ratings(query, item, training.labels))
    return Batch.whole(training.prefs)


def _majority_scorer(Z: Floats, votes: PairVotes, training: Training, ridge: float) -> Floats:
    """Return the minimiser of the logistic loss of all majorities, those of a query counting alike, 1 together."""
    decided = votes.sign != 0
    winner, loser = votes.directed(decided)
    graph = votes.graph[decided]
    weight = 1.0 / np.bincount(graph, minlength=len(votes))[graph]
    edges = WeightedEdges.of(votes.node_start, winner, loser, weight)
    objective = Objective(edges, pair_loss("logistic"), value_penalty("square"))
    fit = fit_edges(Z, objective, ridge=ridge, rows=training.row, weight=training.share)
    return np.asarray(fit.theta, np.float64)


def _winner(votes: PairVotes, items: Floats) -> Floats:
    """Return the half spaces of the item that beats all others of the one query, none where no scorer has them."""
    nodes = votes.nodes
    winner = int(np.argmax(votes.copeland()))
    others = np.setdiff1d(np.arange(nodes), [winner])
    rows = rows_between(items, np.full(len(others), winner), others)
    can = votes.copeland()[winner] == nodes - 1 and rows.any(axis=1).all() and not len(widest(rows).clash)
    return rows if can else rows[:0]


def _best_first(training: Training, votes: PairVotes, items: Floats) -> list[list[int]]:
    """Return the nodes of each query, the best first, one for each block of equal features; heavy queries first."""
    order = np.lexsort((np.arange(votes.nodes), -votes.shares().round(9), -votes.copeland(), votes.owner))
    made = []
    for query in np.argsort(-training.share, kind="stable"):
        nodes = order[votes.node_start[query] : votes.node_start[query + 1]]
        first = np.unique(items[nodes], axis=0, return_index=True)[1]
        made.append(nodes[np.sort(first)].tolist())
    return made


def _gap(votes: PairVotes, scores: Floats) -> float:
    """By how much Copeland scores of the first items fall short of the best order's, as a share of the most."""
    worth = votes.copeland().astype(np.float64)
    by_score, best = (np.lexsort((-one, votes.owner)) for one in (scores, worth))
    got, most = np.cumsum(worth[by_score]), np.cumsum(worth[best])  # the scores of a query add up to 0
    return float((most - got).max(initial=0.0) / max(float(most.max(initial=0.0)), 1.0))


def _kept(votes: PairVotes, decided: NDArray[np.bool_], scores: Floats) -> int:
    above, below = votes.directed(decided)
    return int((scores[above] > scores[below]).sum())


def _named(training: Training, node: int) -> str:
    """A node by its item, and its query where there are several."""
    features, row = training.features, int(training.row[node])
    query = "" if features.query is None or len(features.queries) < 2 else features.where(row).partition(",")[0] + ", "
    return f"{query}{shown(features.items[int(features.item[row])])}"


def _pairs(training: Training, above: Ints, below: Ints) -> str:
    """Pairs by their items, the first few of them."""
    named = [f"{_named(training, a)} above {_named(training, b)}" for a, b in zip(above[:SHOWN], below, strict=False)]
    return "; ".join(named) + (f" and {len(above) - SHOWN:,} more" if len(above) > SHOWN else "")


def _lost(training: Training, above: Ints, below: Ints, of: int, same: int) -> Note:
    """Name unanimous pairs that the features cannot express beside the others."""
    text = "the features cannot express {lost:,} of {of:,} pairs on which all agree, beside the others: {pairs}"
    text += "; {same:,} of them {same:is|are} of items with equal features" if same else ""
    return Note("not expressed", text, lost=len(above), of=of, pairs=_pairs(training, above, below), same=same)
