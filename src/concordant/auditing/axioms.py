"""Does a scorer keep what people agree on? Unanimous pairs, majorities, who beats all others, clones, parts.

Of each judged pair the annotators for and against are counted, one vote each. With shares p_e ~ Beta(a, a), a the one
under which the votes are likeliest, the chance that the majority of all people is the other way is I_½(a + for, a +
against); the number of violations that are real is a sum of independent draws of that. Holm's p-values, of binomial
tests that no more than half of the people contradict the scorer on a pair, say which are sure.

Sources: Ge, Halpern, Micha, Procaccia, Shapira, Vorobeychik and Wu, Axioms for AI alignment from human feedback (2024);
Siththaranjan, Laidlaw and Hadfield-Menell, Distributional preference learning (2024): votes of people who differ make
pairwise learning a Borda count; Xiao, Shi, Liu, Long and Su (2025); clones: Tideman, Soc. Choice Welfare 4, 1987.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaln, ndtri

from concordant.auditing.axiom_scores import ScoredNodes, scored_nodes
from concordant.auditing.refits import copies, parts
from concordant.errors import UsageError, whole_number
from concordant.learning.solvers.linear_orders import excluding, fewest_broken, rows_between, widest
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.progress import know, stage
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.pair_votes import PairVotes
from concordant.ranking.shown import html_lines, html_table, in_markdown, markdown_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
CELLS = 4_000_000
"""Pairs times features up to which it is asked what the class of the scorer could do."""
GROUPS = 300
"""Queries with a winner up to which that is asked of them."""
MEANS = {
    "pareto": "pairs on which all annotators agree",
    "majority": "pairs that a majority decides",
    "condorcet winner": "queries in which one item beats every other",
    "condorcet order": "queries whose majorities have no cycle",
    "clones": "pairs that all annotators treat alike, with nothing between them",
    "copies": "pairs of others, when an item is entered twice and the scorer fitted again",
    "separability": "pairs that two halves of the annotators, fitted apart, order alike",
}
"""What each axiom is asked of."""
SAID = {
    "pareto": "the scorer turns round {n:,} of {of:,} pairs on which all annotators agree",
    "majority": "the scorer turns round {n:,} of {of:,} pairs that a majority decides",
    "condorcet winner": "the scorer puts another item first in {n:,} of {of:,} queries in which one beats every other",
    "condorcet order": "the scorer contradicts some majority in {n:,} of {of:,} queries whose majorities have no cycle",
    "clones": "the scorer puts another item between {n:,} of {of:,} pairs that all annotators treat alike",
    "copies": "an item entered twice and the scorer fitted again, {n:,} of {of:,} pairs of others change their order",
    "separability": "all together order {n:,} the other way of {of:,} pairs that two halves of the annotators, fitted "
    "apart, order alike",
}
COLUMNS = ("axiom", "of", "violated", "level", "by_chance", "lower", "upper", "sure", "best_lower", "best")


@dataclass(frozen=True, eq=False)
class AxiomAudit:
    """What ``axiom_audit`` found; ``print`` says it in sentences.

    >>> import concordant as cc
    >>> who = ["u", "v", "w"] * 2
    >>> votes = cc.Preferences.from_comparisons(["a"] * 6, ["b"] * 3 + ["c"] * 3, cluster=who)
    >>> cc.axiom_audit(votes, {"a": 1.0, "b": 2.0, "c": 0.0}).violated("pareto")
    1
    """

    table: pa.Table
    """A row for each axiom: of (pairs or queries that it speaks of), violated (level: of them with equal scores),
    by_chance (violations that would be none if everybody had been asked, expected), lower, upper (interval of those
    that are real), sure (Holm), best_lower, best (violations of the best linear scorer of the features: proven, found).
    """
    cases: pa.Table
    """The surest violations of each axiom: columns axiom, query, item (which should be ahead), other, votes, against,
    score, other_score, p_value (that no more than half of the people contradict the scorer there)."""
    notes: tuple[str, ...]
    spread: float
    """a of the law of shares."""
    level: float

    def violated(self, axiom: str) -> int:
        """Return how often the scorer violates an axiom. Errors: UsageError for an unknown one."""
        rows = {row["axiom"]: row["violated"] for row in self.table.to_pylist()}
        if axiom not in rows:
            raise UsageError(f"{axiom!r} was not asked; there are {', '.join(rows)}")
        return int(rows[axiom])

    def to_arrow(self) -> pa.Table:
        """Return ``table``."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "axioms": self.table.to_pylist(),
            "cases": self.cases.to_pylist(),
            "summary": [*self.lines()],
            "notes": [*map(str, self.notes)],
            "spread": self.spread,
        }

    def lines(self) -> Iterator[str]:
        """Yield what a reader wants to know, in sentences."""
        cases = self.cases.to_pylist()
        for row in self.table.to_pylist():
            if row["of"] == 0:
                yield f"{row['axiom']}: there are no {MEANS[row['axiom']]}, so nothing can be violated"
                continue
            yield _said(row, next((case for case in cases if case["axiom"] == row["axiom"]), None), self.level)
        yield from _advice(self.table)

    def to_markdown(self) -> str:
        """Return table, sentences and notes in Markdown."""
        names, rows = self._texts()
        table = markdown_rows(names, rows, [name for name in names if name != "axiom"])
        said = [f"- {in_markdown(line)}" for line in (*self.lines(), *self.notes)]
        return "\n".join([*table, "", *said, ""])

    def _repr_html_(self) -> str:
        return f"<div>{html_table(*self._texts())}{html_lines(self.lines())}{html_lines(self.notes)}</div>"

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        names = [name for name in COLUMNS if any(value is not None for value in self.table[name].to_pylist())]
        rows = [
            ["–" if row[name] is None else f"{row[name]:.1f}" if isinstance(row[name], float) else str(row[name])
             for name in names]
            for row in self.table.to_pylist()
        ]  # fmt: skip
        return names, rows

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes])


def _said(row: dict[str, Any], worst: dict[str, Any] | None, level: float) -> str:
    axiom, of, violated = row["axiom"], row["of"], row["violated"]
    text = f"{axiom}: {SAID[axiom].format(n=violated, of=of)} ({100 * violated / of:.3g}%)"
    if row["level"]:
        text += f", {row['level']:,} of them with equal scores"
    if row["by_chance"] is not None and violated:
        text += (
            f"; were everybody asked, {row['lower']:,.0f} to {row['upper']:,.0f} of these would stay ({100 * level:g}%)"
        )
        text += f", {row['sure']:,} for sure" if row["sure"] else ", none for sure by itself"
    if worst is not None:
        where = "" if worst["query"] is None else f" in query {worst['query']}"
        votes = "" if worst["votes"] is None else f" ({worst['votes']} to {worst['against']})"
        other = "" if worst["other"] is None else f" should be before {worst['other']}"
        text += f". Such as: {worst['item']}{other}{votes}{where}"
    return text


def _advice(table: pa.Table) -> Iterator[str]:
    """What to do."""
    rows = {row["axiom"]: row for row in table.to_pylist()}
    for axiom in ("pareto", "majority", "condorcet winner", "condorcet order"):
        row = rows[axiom]
        if row["best"] is None or not row["violated"]:
            continue
        if row["best"] < row["violated"]:
            least = "" if row["best_lower"] == row["best"] else f" (at least {row['best_lower']:,})"
            yield (
                f"{axiom}: a linear scorer of these features can do with {row['best']:,}{least}; CopelandRanker "
                "(leximax-copeland), or the loss majority, looks for it"
            )
        else:
            yield (
                f"{axiom}: no linear scorer of these features is known that violates fewer (at least "
                f"{row['best_lower']:,}): what would help are other features"
            )
    if all(row["violated"] == 0 for row in rows.values()):
        yield "nothing that people agree on is violated"


def axiom_audit(
    prefs: Preferences,
    scorer: Any,
    features: Any = None,
    *,
    annotator: str | None = None,
    least: int = 2,
    refits: int = 5,
    worst: int = 10,
    level: float = 0.95,
    seed: int = 0,
) -> AxiomAudit:
    """Say how often a scorer violates what people agree on, where, how far beyond noise, and what its class could do.

    - pareto: all annotators who judged a pair, ``least`` or more, prefer the same item, and the scorer does not;
    - majority: most of them do;
    - condorcet winner: the majority prefers one item to every other of its query, and it is not alone at the top;
    - condorcet order: the majorities of a query have no cycle, so an order has them all, and the scorer's has not;
    - clones: every annotator judged two items alike against every other, and the scorer puts another one between them;
    - copies, separability: of a ranker, which is fitted again: an item entered twice changes the order of two others;
      two halves of the annotators give the same order of a pair, all together the other one.

    Parameters
    ----------
    prefs : votes on pairs, orders or ratings.
    scorer : {item: score} or {(query, item): score}; a table with columns item, score and perhaps query; a ``Ranking``;
        a fitted ranker, or a function of the matrix of features, both with ``features``; without, a function of the
        lists of queries and of items.
    features : of the items, in any form that rankers take; with them it is asked what the best linear scorer could do.
    annotator : of several columns of clusters the one that says who judged (default: the first). Without clusters each
        judgment is an annotator of its own.
    least : annotators of a pair that can be unanimous.
    refits : of a ranker, items that are entered twice and splits into halves; 0: none.
    worst : cases of each axiom that are kept, at most.
    level : of the interval, and 1 − level of Holm's test.
    seed : of the splits.

    Errors: UsageError, InputError: scores that are missing, clicks, a scorer of another form.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(list("aaabbc"), list("bbcccb"), cluster=list("uvuvwu"))
    >>> found = cc.axiom_audit(votes, {"a": 1.0, "b": 2.0, "c": 0.0})
    >>> [(row["axiom"], row["of"], row["violated"]) for row in found.table.to_pylist()][:3]
    [('pareto', 1, 1), ('majority', 3, 1), ('condorcet winner', 1, 1)]

    Sources: see ``concordant.auditing.axioms``.
    """
    whole_number(least, "least"), whole_number(worst, "worst", least=0), whole_number(refits, "refits", least=0)
    if not 0 < level < 1:
        raise UsageError(f"level must be between 0 and 1, not {level!r}")
    batch = Batch.whole(prefs)
    votes = PairVotes.of(batch, annotator)
    known = scored_nodes(scorer, prefs, batch, features)
    votes, notes = _with_scores(votes, known, least)
    audit = _Audit(batch, votes, known, least, level, worst)
    rows, cases = [], []
    for row, some in audit.all():
        rows.append(row)
        cases += some
    notes += (*audit.alike(), *audit.excluded(best=rows[0]["best"]))
    if known.ranker is not None and refits and prefs.cluster_columns:
        notes += (Note("not fitted again", "rankers are not fitted to judgments with several columns of clusters"),)
    elif known.ranker is not None and refits:
        with stage("fitting again", 2 + 3 * refits) as fitted:
            for row, some in (
                copies(known.ranker, known.features, prefs, refits, worst, fitted),
                parts(known.ranker, known.features, prefs, refits, worst, seed, fitted),
            ):
                rows.append(dict.fromkeys(COLUMNS) | row)
                cases += some
    schema = [pa.field("axiom", pa.string()), *(pa.field(name, pa.int64()) for name in COLUMNS[1:])]
    schema = [
        pa.field(one.name, pa.float64()) if one.name in ("by_chance", "lower", "upper") else one for one in schema
    ]
    return AxiomAudit(pa.Table.from_pylist(rows, schema=pa.schema(schema)), _cases(cases), notes, audit.spread, level)


def _cases(cases: list[dict[str, Any]]) -> pa.Table:
    names = ("axiom", "query", "item", "other", "votes", "against", "score", "other_score", "p_value")
    texts = names[:4]
    columns = {
        name: pa.array(
            [None if (value := case.get(name)) is None else str(value) if name in texts else value for case in cases],
            pa.string() if name in texts else pa.int64() if name in ("votes", "against") else pa.float64(),
        )
        for name in names
    }
    return pa.table(columns)


def _with_scores(votes: PairVotes, known: ScoredNodes, least: int) -> tuple[PairVotes, tuple[str, ...]]:
    """Return the pairs of which both items have scores, and what a reader should know."""
    notes: list[str] = [*known.notes]
    there = ~np.isnan(known.score[votes.first]) & ~np.isnan(known.score[votes.second])
    if lost := int((~there).sum()):
        text = "{lost:,} of {of:,} judged pairs are left out: an item of them has no score"
        notes.append(Note("pairs without scores", text, lost=lost, of=len(there)))
    names = ("graph", "first", "second", "ahead", "behind", "level")
    votes = replace(votes, **{name: getattr(votes, name)[there] for name in names})
    number = votes.ahead + votes.behind + votes.level
    if votes.annotators is None:
        text = "nobody says who judged: each judgment is taken for an annotator of its own"
        notes.append(Note("no annotators", text))
    elif votes.annotators == 1:
        notes.append(Note("one annotator", "there is one annotator: nobody agrees or disagrees with another one"))
    if (few := int((number < least).sum())) and votes.annotators != 1:
        text = "{few:,} of {of:,} pairs were judged by fewer than {least:annotators}, and are not unanimous for that"
        notes.append(Note("few annotators", text, few=few, of=len(number), least=least))
    if len(number) and not (np.minimum(votes.ahead, votes.behind) > 0).any():
        notes.append(Note("no disagreement", "no pair has votes for both of its items: nobody disagrees"))
    return votes, tuple(notes)


@dataclass(eq=False)
class _Audit:
    """The axioms that a scorer is held to as it is, one after the other."""

    batch: Batch
    votes: PairVotes
    known: ScoredNodes
    least: int
    level: float
    worst: int

    def __post_init__(self) -> None:
        votes = self.votes
        self.decided = votes.sign != 0
        self.above, self.below = votes.directed(self.decided)
        self.most = np.maximum(votes.ahead, votes.behind)[self.decided]
        self.fewer = np.minimum(votes.ahead, votes.behind)[self.decided]
        self.query = votes.graph[self.decided]
        self.spread = _spread(votes.ahead.astype(float), votes.behind.astype(float))
        a = self.spread
        self.chance = np.asarray(betainc(a + self.most, a + self.fewer, 0.5), np.float64)
        self.p_value = np.asarray(betainc(self.most, self.fewer + 1.0, 0.5), np.float64)
        score = self.known.score
        self.gap = score[self.above] - score[self.below]
        self.wrong = self.gap <= 0

    def all(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Yield the row and the worst cases of each axiom."""
        unanimous = self.votes.unanimous(self.least)[self.decided]
        asked = [float(size) ** 2 for size in (unanimous.sum(), len(unanimous)) if self._asked(int(size))]
        know(programs=sum(asked))
        yield self._of_pairs("pareto", unanimous)
        yield self._of_pairs("majority", np.ones(len(self.above), bool))
        yield self._winners()
        yield self._orders()
        yield self._clones()

    def _of_pairs(self, axiom: str, which: Mask) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        wrong = which & self.wrong
        at = np.flatnonzero(wrong)
        adjusted = family_wise(self.p_value[at], max(int(which.sum()), 1))
        best = self._fewest(which)
        row = self._row(axiom, int(which.sum()), at, self.chance[at], adjusted, best)
        return row, self._pairs(axiom, at)

    def _row(
        self, axiom: str, of: int, pairs: Ints, chance: Floats, p_value: Floats, best: tuple[int, int] | None
    ) -> dict[str, Any]:
        """``pairs``: one for each violation."""
        real = 1.0 - chance
        half = float(ndtri(0.5 + self.level / 2)) * float(np.sqrt((chance * real).sum()))
        middle, violated = float(real.sum()), len(chance)
        return {
            "axiom": axiom,
            "of": of,
            "violated": violated,
            "level": int((self.gap[pairs] == 0).sum()),
            "by_chance": float(chance.sum()),
            "lower": max(middle - half, 0.0),
            "upper": min(middle + half, float(violated)),
            "sure": int((p_value <= 1 - self.level).sum()),
            "best_lower": None if best is None else best[0],
            "best": None if best is None else best[1],
        }

    def _pairs(self, axiom: str, at: Ints) -> list[dict[str, Any]]:
        """The surest cases of some pairs."""
        order = at[np.lexsort((self.gap[at], -self.most[at], self.p_value[at]))][: self.worst]
        return [self._case(axiom, int(pair)) for pair in order]

    def _case(self, axiom: str, pair: int) -> dict[str, Any]:
        above, below = int(self.above[pair]), int(self.below[pair])
        return self._named(axiom, above, below) | {
            "votes": int(self.most[pair]), "against": int(self.fewer[pair]), "p_value": float(self.p_value[pair]),
        }  # fmt: skip

    def _named(self, axiom: str, node: int, other: int) -> dict[str, Any]:
        batch, score = self.batch, self.known.score
        items, queries = batch.prefs.items, batch.prefs.queries
        query = queries[int(batch.query[batch.owner[node]])] if len(queries) > 1 else None
        return {
            "axiom": axiom, "query": query, "item": items[int(batch.item[node])],
            "other": items[int(batch.item[other])], "score": float(score[node]), "other_score": float(score[other]),
        }  # fmt: skip

    def _winners(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Items whom most prefer to every other of their query, and who among those others is scored highest."""
        beats = np.bincount(self.above, minlength=self.votes.nodes)
        sizes = self.batch.node_groups.spread(self.batch.node_groups.sizes)
        winners = np.flatnonzero((beats == sizes - 1) & (sizes > 1))
        self.winners: list[int] = winners.tolist()
        of_winner = np.isin(self.above, winners)
        at = np.flatnonzero(of_winner)
        order = at[np.lexsort((self.gap[at], self.above[at]))]  # of each winner the pair that the scorer likes least
        first = order[np.diff(self.above[order], prepend=-1) != 0]
        wrong = first[self.gap[first] <= 0]
        adjusted = family_wise(self.p_value[wrong], max(len(winners), 1))
        best = self._groups([np.flatnonzero(self.above == one) for one in winners.tolist()])
        row = self._row("condorcet winner", len(winners), wrong, self.chance[wrong], adjusted, best)
        return row, self._pairs("condorcet winner", wrong)

    def _orders(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Queries whose majorities have no cycle (with two pairs at least), and the worst of them that is broken."""
        nodes = self.votes.nodes
        pairs = np.bincount(self.query, minlength=len(self.batch))
        acyclic = _without_cycles(nodes, self.above, self.below, self.batch.owner, len(self.batch)) & (pairs > 1)
        chance, p_value, worst = [], [], []
        for query in np.flatnonzero(acyclic).tolist():
            broken = np.flatnonzero((self.query == query) & self.wrong)
            if len(broken):
                chance.append(float(np.prod(self.chance[broken])))
                p_value.append(min(1.0, float(pairs[query] * self.p_value[broken].min())))
                worst.append(int(broken[np.argmin(self.p_value[broken])]))
        adjusted = family_wise(np.array(p_value), max(int(acyclic.sum()), 1)) if p_value else np.zeros(0)
        best = self._groups([np.flatnonzero(self.query == one) for one in np.flatnonzero(acyclic).tolist()])
        at = np.array(worst, np.int64)
        row = self._row("condorcet order", int(acyclic.sum()), at, np.array(chance), adjusted, best)
        return row, self._pairs("condorcet order", at)

    def _clones(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Pairs that the votes treat alike, and those of them that the scorer has another item between."""
        found = _alike(self.votes)
        score, owner = self.known.score, self.batch.owner
        cases = []
        for one, other in found:
            low, high = sorted((score[one], score[other]))
            between = np.flatnonzero((owner == owner[one]) & (score > low) & (score < high))
            if len(between):
                cases.append(self._named("clones", one, other))
        row = dict.fromkeys(COLUMNS) | {"axiom": "clones", "of": len(found), "violated": len(cases)}
        return row, cases[: self.worst]

    def alike(self) -> Iterator[Note]:
        """Say which pairs that people decide are of items with equal features."""
        Z = self.known.features_of_nodes
        same = np.zeros(0, int) if Z is None else np.flatnonzero(~(Z[self.above] != Z[self.below]).any(axis=1))
        if len(same):
            text = (
                "{same:,} of {of:,} pairs that a majority decides are of items with equal features, which no scorer of "
            )
            text += "these tells apart, such as {pairs}"
            named = self._pairs("", same)[:2]
            pairs = "; ".join(
                f"{one['item']} before {one['other']}" + ("" if one["query"] is None else f" in query {one['query']}")
                for one in named
            )
            yield Note("equal features", text, same=len(same), of=len(self.above), pairs=pairs)

    def excluded(self, best: int | None) -> Iterator[Note]:
        """Say of which winners no linear scorer has both: them first, and all unanimous pairs, which it can have."""
        Z, unanimous = self.known.features_of_nodes, np.flatnonzero(self.votes.unanimous(self.least)[self.decided])
        if Z is None or best != 0 or not len(unanimous):
            return
        D = rows_between(Z, self.above[unanimous], self.below[unanimous])
        for winner in self.winners[:GROUPS]:
            first = rows_between(Z, *(side[self.above == winner] for side in (self.above, self.below)))
            if not first.any(axis=1).all() or len(widest(first).clash) or not len(pairs := excluding(D, first)):
                continue
            named = [self._case("", int(pair)) for pair in unanimous[pairs][:2]]
            said = "; ".join(f"{one['item']} before {one['other']}" for one in named)
            said += f" and {len(pairs) - 2:,} more" if len(pairs) > 2 else ""
            case = self._named("", winner, winner)
            where = "" if case["query"] is None else f" in query {case['query']}"
            text = "no linear scorer of these features has both {item} first{where}, whom a majority prefers to every "
            text += (
                "other item, and what all agree on ({pairs}): CopelandRanker keeps the latter, and puts {item} first "
            )
            text += "with pareto=None"
            yield Note("winner excluded", text, item=case["item"], where=where, pairs=said)

    def _asked(self, pairs: int) -> bool:
        """Whether so many pairs are few enough for linear programs."""
        Z = self.known.features_of_nodes
        return Z is not None and pairs * Z.shape[1] <= CELLS

    def _fewest(self, which: Mask) -> tuple[int, int] | None:
        """How few of some pairs a linear scorer has to break: proven, and found."""
        Z = self.known.features_of_nodes
        if Z is None or not self._asked(int(which.sum())):
            return None
        with stage("what a linear scorer could do"):
            D = rows_between(Z, self.above[which], self.below[which])
            found = fewest_broken(D, np.ones(len(D)))
        own = int((which & self.wrong).sum()) if self.known.linear else len(D) + 1
        return int(found.lower), min(int(found.upper), own)

    def _groups(self, groups: list[Ints]) -> tuple[int, int] | None:
        """How many groups of pairs a linear scorer has to break: each alone, and one after the other."""
        Z = self.known.features_of_nodes
        if Z is None or len(groups) > GROUPS or sum(map(len, groups)) * Z.shape[1] > CELLS:
            return None
        rows = [rows_between(Z, self.above[group], self.below[group]) for group in groups]
        alone = [one for one in rows if one.any(axis=1).all() and not len(widest(one).clash)]
        together = np.zeros((0, Z.shape[1]))
        kept = 0
        for one in alone:
            tried = np.vstack((together, one))
            if not len(widest(tried).clash):
                together, kept = tried, kept + 1
        return len(groups) - len(alone), len(groups) - kept


def _spread(ahead: Floats, behind: Floats) -> float:
    """Return a of shares ~ Beta(a, a) under which the votes are likeliest; 1 (any share alike) of few pairs."""
    several = ahead + behind > 1
    if several.sum() < 10:
        return 1.0
    x, y = ahead[several], behind[several]

    def loss(log_a: float) -> float:
        a = float(np.exp(log_a))
        return float(-(betaln(a + x, a + y) - betaln(a, a)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(np.log(0.05), np.log(100.0)), method="bounded").x))


def _without_cycles(nodes: int, above: Ints, below: Ints, owner: Ints, queries: int) -> Mask:
    """Return which queries have majorities without a cycle: nobody is left when the unbeaten leave, again and again."""
    beaten = np.bincount(below, minlength=nodes)
    order = np.argsort(above, kind="stable")
    start = np.searchsorted(above[order], np.arange(nodes + 1))
    free = np.flatnonzero(beaten == 0).tolist()
    while free:
        node = free.pop()
        for loser in below[order[start[node] : start[node + 1]]].tolist():
            beaten[loser] -= 1
            if beaten[loser] == 0:
                free.append(loser)
    return np.asarray(np.bincount(owner, beaten, queries) == 0, bool)


def _alike(votes: PairVotes, most: int = 200) -> list[tuple[int, int]]:
    """Return pairs of nodes with the same votes for, against and level beside every other item of their query.

    Queries of up to ``most`` items, where two items were judged against all others.
    """
    found = []
    for graph, nodes in enumerate(votes.node_groups.slices):
        size = nodes.stop - nodes.start
        if not 3 <= size <= most:
            continue
        table = np.full((size, size, 3), -1)
        mine = np.flatnonzero(votes.graph == graph)
        one, other = votes.first[mine] - nodes.start, votes.second[mine] - nodes.start
        table[one, other] = np.stack((votes.ahead, votes.behind, votes.level), axis=1)[mine]
        table[other, one] = np.stack((votes.behind, votes.ahead, votes.level), axis=1)[mine]
        for i in range(size):
            for j in range(i + 1, size):
                rest = np.delete(np.arange(size), [i, j])
                if (table[i, rest] >= 0).all() and (table[i, rest] == table[j, rest]).all():
                    found.append((nodes.start + i, nodes.start + j))
    return found
