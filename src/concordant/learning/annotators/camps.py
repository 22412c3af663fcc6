"""Camps: annotators who judge alike, each camp with a ranking, or a linear scorer, of its own.

The model, a mixture of Bradley–Terry models over annotators, and how it is fitted stand in
``concordant.learning.annotators.mixture``. How many camps there are, votes that the fit has not seen decide: each
annotator's are dealt into folds, and a held-out vote of an annotator is foretold by the chances of the camps, each as
probable as the annotator's other votes make it. (Scorers of features are for new answers: from ten queries on whole
queries are held out, not votes.) More camps are taken only where they foretell surely better: by more
than 1.64 standard errors of the mean difference, over votes, for it is these annotators who are foretold. The precision
λ of the prior on scores (of features: on their coefficients, of standardised features) is chosen with it.

Beside that stands the log-loss of *new* annotators: all their votes together, log Σ_c π_c Π_votes P_c, with whole
annotators held out, and its standard error over annotators. It is what camps are worth for somebody of whom nothing is
known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logsumexp

from concordant.boards.judges import on_one_scale, who_judged
from concordant.errors import CannotRank, Setting, UsageError, whole_number
from concordant.learning.annotators.design import Design, comparisons, masses, shares_won
from concordant.learning.annotators.mixture import FOLLOWED, Differences, Mixture, Pairs, fit_mixture
from concordant.learning.annotators.scorers import CampScorer
from concordant.preferences.connectivity import connectivity
from concordant.preferences.frames import as_pandas
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, label_keys
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.rank import Ranking, rank

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SURE = 1.64
"""Standard errors by which more camps have to foretell held-out votes better."""
ITEM_PRIORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
FEATURE_PRIORS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
FEW_STARTS, ROUGH = 4, 1e-6
"""Starts of a fit to a part of the votes, and the change of the likelihood of a vote that ends it."""
FEW_QUERIES = 10
"""Queries from which on whole ones are held out where there are features."""
CERTAIN = 0.9
"""From which probability on it is said that an annotator is in a camp."""
FEW_VOTES = 5.0
COIN = float(np.log(2.0))
EMPTY = 0.1
"""Annotators below which a camp has none."""


@dataclass(frozen=True)
class Foretold:
    """How so many camps foretell votes that they have not seen; losses are natural logarithms, per vote."""

    camps: int
    prior: float
    loss: float
    """Of other votes of known annotators."""
    gain: float
    """By how much that is less than with one camp, and its standard error, over votes."""
    gain_error: float
    new_loss: float
    """Of all votes of annotators of whom nothing was known; its error is over annotators."""
    new_gain: float
    new_gain_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Camps:
    """What ``camps`` found; arrays have a row for each camp, the largest first, or for each annotator.

    >>> import concordant as cc
    >>> who = [name for name in "abcdefgh" for _ in range(6)]
    >>> one, other = ["x", "x", "y"] * 2, ["z", "z", "y"] * 2
    >>> worse = ["y", "z", "z"] * 10 + ["x", "y", "x"] * 6
    >>> votes = cc.Preferences.from_comparisons(one * 5 + other * 3, worse, cluster=who)
    >>> found = cc.camps(votes)
    >>> found.share.round(2).tolist(), found.score.argsort().tolist()
    ([0.62, 0.38], [[2, 1, 0], [0, 1, 2]])
    >>> found.membership.round(1).tolist()[0]
    [1.0, 0.0]
    """

    names: Labels
    """The annotators."""
    column: str
    votes: Floats
    """Of each annotator, by their strength."""
    share: Floats
    membership: Floats
    """(annotators, camps): the probability that each is in each camp."""
    score: Floats
    """(camps, nodes): the score of each item of each query, whose mean over what comparisons connect is 0."""
    coefficients: Floats | None
    """(camps, features), for features as they were given; None without features."""
    held_out: tuple[Foretold, ...]
    """For each number of camps that was tried."""
    loss: Floats
    """(camps,) log-loss of a held-out vote of those who most probably are in each camp; of a coin it is .693."""
    loss_error: Floats
    """Its standard error, over votes; NaN for a camp in which nobody is."""
    prior: float
    log_likelihood: float
    status: str
    prefs: Comparisons
    notes: tuple[str, ...]
    _design: Design
    _theta: Floats
    _rows: Ints
    _component: Ints

    @property
    def number(self) -> int:
        """How many camps there are."""
        return len(self.share)

    @cached_property
    def item_votes(self) -> Floats:
        """(camps, nodes): votes on each item, each as much as its annotator is in the camp."""
        first, second = self._design.batch.sides(self.prefs)
        mass = self.prefs.count * masses(self.prefs)
        nodes = self.score.shape[1]
        each = [np.bincount(first, mass * r, nodes) + np.bincount(second, mass * r, nodes)
                for r in self.membership[self._rows].T]  # fmt: skip
        return np.asarray(each, np.float64)

    @cached_property
    def _ranks(self) -> Ints:
        """(camps, nodes): ranks among the items of a query that comparisons connect."""
        group = self._design.batch.owner * (self._component.max(initial=0) + 1) + self._component
        ranks = np.zeros(self.score.shape, np.int64)
        for camp, score in enumerate(self.score):
            order = np.lexsort((self._design.batch.item, -score, group))
            ranks[camp, order] = Ragged.runs(group[order]).place + 1
        return ranks

    def to_arrow(self) -> pa.Table:
        """Return a row for each camp and item, the best first.

        Columns: camp, share, query (of several), component (of several), item, rank, score, votes (on the item, in the
        camp), and of the others each rank: rank_in_1, … where there are several camps.
        """
        prefs, batch = self._design.batch.prefs, self._design.batch
        tables = []
        for camp in range(self.number):
            order = np.lexsort((self._ranks[camp], self._component, batch.owner))
            columns: dict[str, Any] = {"camp": [camp + 1] * len(order), "share": [self.share[camp]] * len(order)}
            if len(prefs.queries) > 1:
                columns["query"] = prefs.queries.take(batch.owner[order])
            if self._component.any():
                columns["component"] = self._component[order] + 1
            columns |= {"item": prefs.items.take(batch.item[order]), "rank": self._ranks[camp, order]}
            columns |= {"score": self.score[camp, order], "votes": self.item_votes[camp, order]}
            if self.number > 1:
                columns |= {f"rank_in_{other + 1}": self._ranks[other, order] for other in range(self.number)}
            tables.append(pa.table(columns))
        return pa.concat_tables(tables)

    def to_pandas(self) -> Any:
        """Return ``to_arrow`` as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def members(self) -> pa.Table:
        """Return a row for each annotator: name, votes, camp, probability of it, then of each (camp_1, …)."""
        camp = self.membership.argmax(1)
        each = {f"camp_{at + 1}": self.membership[:, at] for at in range(self.number)}
        sure = self.membership.max(1)
        called = self.column if self.column not in {"votes", "camp", "probability", *each} else "annotator"
        return pa.table(
            {called: self.names.take(np.arange(len(self.names))), "votes": self.votes, "camp": camp + 1}
            | {"probability": sure}
            | each
        )

    def held_out_table(self) -> pa.Table:
        """Return the fields of ``Foretold``, a row for each number of camps that was tried."""
        return pa.Table.from_pylist([vars(one) for one in self.held_out])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested dictionaries and lists, which JSON can hold."""
        parts = {"rankings": self.to_arrow(), "members": self.members(), "held_out": self.held_out_table()}
        coefficients = {}
        if self.coefficients is not None and self._design.features is not None:
            names = self._design.features.names
            coefficients = {"coefficients": [dict(zip(names, row, strict=True)) for row in self.coefficients.tolist()]}
        return {
            "said": list(map(str, self.lines())), "camps": self.number, "share": self.share.tolist(),
            "loss": [None if one != one else one for one in self.loss.tolist()],
            "prior": self.prior, "log_likelihood": self.log_likelihood, "status": self.status, **coefficients,
            **{name: table.to_pylist() for name, table in parts.items()}, "notes": list(map(str, self.notes)),
        }  # fmt: skip

    def ranking(self, camp: int, **options: Any) -> Ranking:
        """Rank the items by the votes of those who most probably are in a camp (1: the largest), as ``rank`` does.

        Its intervals take for granted who is in the camp.
        """
        at = whole_number(camp, "camp", most=self.number) - 1
        chosen = self.membership.argmax(1)[self._rows] == at
        if not chosen.any():
            raise CannotRank(f"no annotator is in camp {camp} more probably than in another")
        rows = np.flatnonzero(chosen)
        return rank(keep(self.prefs, rows, self.prefs.count[rows], self.prefs.declared), **options)

    def predict(self, features: Any) -> Floats:
        """Return scores (camps, rows) of items by their features, whether they were judged or not."""
        return self.scorer.camps(features)

    @cached_property
    def scorer(self) -> CampScorer:
        """The scorers of the camps by themselves, which ``save_model`` keeps. Errors: UsageError without features."""
        return CampScorer.of(self._design, self._theta, self.share, self.status)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines()))

    def __repr__(self) -> str:
        return f"Camps({self.number} of {len(self.names)} annotators)"

    def lines(self) -> Iterator[Note]:
        """Yield what a person wants to know, as sentences."""
        if self.number == 1:
            yield Note("one camp", "one camp of {of:annotators}", of=len(self.names))
        else:
            yield Note("camps", "{camps:camps} of {of:annotators}", camps=self.number, of=len(self.names))
        whole = len(self._design.batch) == 1 and not self._component.any()
        labels = self._design.batch.prefs.items.take(self._design.batch.item).to_pylist() if whole else []
        first, second = self._design.batch.sides(self.prefs)
        order = np.sign(self.score[:, first] - self.score[:, second])
        for camp in range(self.number):
            text = "camp {camp}: {share} of annotators, {votes:votes}"
            named: dict[str, Any] = {"camp": camp + 1, "share": f"{self.share[camp]:.0%}"}
            named |= {"votes": round(float(self.membership[:, camp] @ self.votes))}
            if camp:
                text += ", {same} of judged pairs in the order of camp 1"
                named["same"] = f"{(order[camp] == order[0]).mean():.0%}"
            text += ", held-out votes foretold with log-loss {loss:.3f}"
            named["loss"] = self.loss[camp]
            if not self.loss[camp] < COIN - SURE * self.loss_error[camp]:
                text += ", no better than by a coin"
            if whole:
                text += ": {first}"
                named["first"] = " > ".join(str(labels[at]) for at in np.argsort(self._ranks[camp])[:5])
            if whole and (moved := np.abs(self._ranks[camp] - self._ranks[0])).any():
                at = int(np.lexsort((-np.abs(self.score[camp] - self.score[0]), -moved))[0])
                text += "; {item} has rank {here} instead of {there}"
                named |= {"item": labels[at], "here": int(self._ranks[camp, at]), "there": int(self._ranks[0, at])}
            yield Note("camp", text, **named)


def camps(
    prefs: Preferences,
    judge: str | None = None,
    *,
    features: Any = None,
    number: int | str = "auto",
    most: int = 4,
    prior: float | str = "auto",
    folds: int = 5,
    starts: int = 10,
    seed: int = 0,
) -> Camps:
    """Divide annotators into camps that rank differently, as many as held-out votes support.

    Formula and source: ``concordant.learning.annotators.mixture``; how the number is chosen:
    ``concordant.learning.annotators.camps``. One camp is Bradley–Terry with the prior (with features the linear
    scorer of the logistic loss).

    Parameters
    ----------
    prefs : comparisons whose clusters say who judged: ``read(…, cluster="worker")``.
    judge : the column of who judged, where there are several columns of clusters.
    features : of the items, as rankers take them; then a camp has a linear scorer, which scores new items. None: each
        item has a score of its own in each camp, over all queries where items recur.
    number : of camps; 'auto', as many as held-out votes support, up to ``most``.
    most : camps that are tried.
    prior : precision λ of the normal prior on scores (on coefficients of standardised features); 'auto', by the same
        held-out votes.
    folds : into how many parts votes, and annotators, are dealt to be held out.
    starts : of the search, which may end at a local optimum; the best is taken.
    seed : of folds and starts.

    Errors: UsageError for other judgments than comparisons and where nobody says who judged; CannotRank for a single
    annotator.

    >>> import concordant as cc
    >>> who = [name for name in "abcd" for _ in range(3)]
    >>> votes = cc.Preferences.from_comparisons(["x", "x", "y"] * 4, ["y", "z", "z"] * 4, cluster=who)
    >>> print(next(cc.camps(votes).lines()))
    one camp of 4 annotators
    """
    known = comparisons(prefs, "camps")
    names, _, column = who_judged(known, judge)
    if len(names) < 2:
        raise CannotRank(f"{column} names {len(names)} annotator; camps are of several")
    most, folds = whole_number(most, "most"), whole_number(folds, "folds", 2)
    starts = whole_number(starts, "starts", most=10_000)
    if number != "auto":
        number = whole_number(number, "number", most=len(names))
    if prior != "auto" and (isinstance(prior, str | bool) or not 0 < prior < np.inf):
        raise UsageError(f"prior must be a positive number or 'auto', not {prior!r}")
    scale = known if features is not None else on_one_scale(known)
    rows = who_judged(scale, judge)[1]
    design = Design.of(scale, features, what="camps")
    votes = _Votes.of(scale, rows, len(names), design)
    priors = (float(prior),) if prior != "auto" else ITEM_PRIORS if features is None else FEATURE_PRIORS
    search = _Search(votes, names, priors, folds, min(starts, FEW_STARTS), seed)
    held = search.table(range(1, min(most, len(names) - 1) + 1) if number == "auto" else sorted({1, int(number)}))
    best = held[0] if number == "auto" else held[-1]
    for one in held if number == "auto" else ():
        gain, error = search.gain(best, one)
        best = one if gain > SURE * error else best
    with stage("finding the camps"):
        pairs = votes.pairs(votes.count)
        found = fit_mixture(pairs, best.camps, prior=best.prior, starts=starts, seed=seed)
    membership = found.membership(pairs)
    value, component = _centred(design, design.times(found.theta.T).T)
    result = Camps(
        names=names, column=column, votes=votes.of_judges(votes.count), share=found.share,
        membership=membership, score=value, held_out=held, prior=best.prior,
        log_likelihood=found.value, coefficients=None if features is None else found.theta / design.scale,
        status=found.status.word, **search.by_camp(best, membership), prefs=scale, notes=(), _design=design,
        _theta=found.theta, _rows=rows, _component=component,
    )  # fmt: skip
    tried = (number == "auto" and len(held) > 1, best.camps == held[-1].camps, len(priors) > 1)
    return replace(result, notes=(*_notes(result, known, search, found, *tried),))


def _centred(design: Design, value: Floats) -> tuple[Floats, Ints]:
    """The scores (camps, nodes) less their mean over what comparisons connect, and which component that is."""
    component = connectivity(design.batch.graphs).component.astype(np.int64)
    place = np.unique(design.batch.owner * (component.max(initial=0) + 1) + component, return_inverse=True)[1]
    size = np.bincount(place)
    return value - np.array([(np.bincount(place, one) / size)[place] for one in value]), component


def _notes(
    found: Camps, known: Comparisons, search: _Search, fit: Mixture, chosen: bool, last: bool, priors: bool
) -> Iterator[Note]:
    """What a reader should know; ``chosen``: the number was, and is the ``last`` that was tried."""
    if found.prefs is not known:
        text = "the items stand in many of the {of_all:queries}: camps have one scale over all of them"
        yield Note("one scale", text, of_all=len(known.queries))
    here = next(one for one in found.held_out if one.camps == found.number)
    if chosen and found.number == 1:
        best = min(found.held_out[1:], key=lambda one: one.loss)
        gain, error = search.gain(found.held_out[0], best)
        text = "the votes support no more than one camp: {camps:camps} foretell held-out votes {how} ({gain:+.4f} ± "
        text += "{error:.4f} of the log-loss {loss:.4f} of a vote); {ask} shows them all the same"
        how = "no better" if gain <= 0 else "better by no more than chance"
        numbers: dict[str, Any] = {"camps": best.camps, "how": how, "gain": -gain, "error": error, "loss": here.loss}
        yield Note("one camp", text, ask=Setting("number", best.camps), **numbers)
    elif found.number > 1:
        text = "{camps:camps} foretell held-out votes {how} than one (log-loss of a vote {loss:.4f}: {gain:+.4f} ± "
        text += "{error:.4f}), votes of annotators of whom nothing is known {new:+.4f} ± {new_error:.4f}"
        how = "better, beyond chance," if here.gain > SURE * here.gain_error else "no better, beyond chance,"
        numbers = {"loss": here.loss, "gain": -here.gain, "error": here.gain_error}
        numbers |= {"new": -here.new_gain, "new_error": here.new_gain_error}
        yield Note("several camps", text, camps=found.number, how=how, **numbers)
        sure = int((found.membership.max(1) > CERTAIN).sum())
        text = "which camp somebody is in is sure (probability above {certain:.0%}) for {sure} of {of:annotators}"
        yield Note("sure members", text, certain=CERTAIN, sure=sure, of=len(found.names))
        text = (
            "a camp may be a taste or a habit, such as voting for what stands first, or by a coin: {ask} says who does"
        )
        yield Note("taste or habit", text, ask="concordant judges")
        if empty := int((found.share * len(found.names) < EMPTY).sum()):
            text = "{empty} of {camps:camps} {empty:is|are} empty: fewer camps fit these votes as well"
            yield Note("empty camps", text, empty=empty, camps=found.number)
        if chosen and last:
            yield Note("end of what was tried", "{camps} camps are the most that were tried: {ask}", camps=found.number,
                       ask=Setting("most", found.number + 2))  # fmt: skip
        if (thin := int((found.item_votes < FEW_VOTES).any(0).sum())) and found.coefficients is None:
            text = "{thin} of {of:items} have fewer than {least} votes in a camp: their scores there are hardly known"
            yield Note("few votes", text, thin=thin, of=found.score.shape[1], least=int(FEW_VOTES))
        if fit.agreeing < FOLLOWED:
            text = "the two best starts ended at different optima; {ask} looks at more"
            yield Note("local optimum", text, ask=Setting("starts", 50))
    if found.status == Status.STOPPED.word:
        yield Note("stopped", "the camps were still moving when the search stopped")
    if priors and found.prior in (search.priors[0], search.priors[-1]):
        text = "the prior of precision {prior:g} is at the end of what was tried ({ask} sets another)"
        yield Note("prior at the end", text, prior=found.prior, ask=Setting("prior"))
    if found.prefs.weighted:
        yield Note("strengths", "a stronger preference counts as so many votes")
    if found._component.any():
        yield Note("components", "no chain of comparisons connects all items: ranks are within what they connect")


# -- held-out votes ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Votes:
    """Distinct votes: a row each."""

    judge: Ints
    pair: Ints
    won: Floats
    """What the first of the pair won: 1, ½ or 0."""
    mass: Floats
    count: Ints
    judges: int
    D: Differences
    query: Ints | None
    """The query of each vote where whole queries are held out."""

    @classmethod
    def of(cls, prefs: Comparisons, judge: Ints, judges: int, design: Design) -> _Votes:
        winner, loser = design.batch.sides(prefs)
        won = shares_won(prefs)
        first, second = np.minimum(winner, loser), np.maximum(winner, loser)
        width = len(design.batch.item)
        pairs, pair = np.unique(first * width + second, return_inverse=True)
        D = Differences.of(pairs // width, pairs % width, width, design.X)
        won = np.where(winner < loser, won, 1.0 - won)
        count, query = prefs.count.astype(np.int64), prefs.query.astype(np.int64)
        held = query if design.X is not None and len(prefs.queries) >= FEW_QUERIES else None
        return cls(judge, pair.astype(np.int64), won, masses(prefs), count, judges, D, held)

    def pairs(self, count: Ints) -> Pairs:
        """Return the sums of so many of each vote."""
        shape = (self.judges, len(self.D.first))
        one, other = (
            sparse.csr_array((count * self.mass * part, (self.judge, self.pair)), shape)
            for part in (self.won, 1.0 - self.won)
        )
        return Pairs(self.D, one, other)

    def of_judges(self, count: Floats | Ints) -> Floats:
        """Return sums of the votes' masses, of each annotator."""
        return np.asarray(np.bincount(self.judge, count * self.mass, self.judges), np.float64)


def _trials(numbers: Sequence[int], priors: bool) -> list[float]:
    """Return about what each of the numbers of camps costs: so many trials, by several priors where those are tried."""
    return [(2 if not priors else 4 if place < 2 else 3) * _cost(camps) for place, camps in enumerate(numbers)]


def _cost(camps: int) -> float:
    """What a trial costs beside others: one camp needs no search."""
    return 0.2 if camps == 1 else float(camps) ** 0.7


class _Search:
    """Losses of held-out votes by the number of camps."""

    def __init__(
        self, votes: _Votes, names: Labels, priors: tuple[float, ...], folds: int, starts: int, seed: int
    ) -> None:
        self.votes, self.priors = votes, priors
        keys = label_keys(names, seed)
        if votes.query is None:
            order = np.argsort(votes.judge, kind="stable")
            start = Ragged.counted(votes.judge[order], votes.judges).start
            self.shares = np.zeros((folds, len(order)), np.int64)
            self.shares[:, order] = deal(start, votes.count[order], keys, folds)
        else:
            fold = np.random.default_rng(seed).permutation(int(votes.query.max()) + 1) % folds
            self.shares = np.where(fold[votes.query] == np.arange(folds)[:, None], votes.count, 0)
        self.fold = np.empty(votes.judges, np.int64)
        self.fold[np.argsort(keys, kind="stable")] = np.arange(votes.judges) % folds
        self.mass = votes.of_judges(votes.count)
        self.fit = partial(fit_mixture, starts=starts, seed=seed, still=ROUGH)
        self.known: dict[tuple[int, float], Floats] = {}
        self.tried: Callable[[int, bool], None] = lambda *_: None
        """Hears of each trial of so many camps, and whether it is the last one of these."""

    def table(self, numbers: Iterable[int]) -> tuple[Foretold, ...]:
        """Return how each number of camps does, with the prior that is best for it."""
        found: list[Foretold] = []
        at, new = len(self.priors) // 2, np.zeros(0)
        for camps in self._told(list(numbers)):
            at = self._best_prior(camps, at)
            prior = self.priors[at]
            loss, of_new = self.of_known(camps, prior), self.of_new(camps, prior)
            new = new if found else of_new
            total = float(self.mass.sum())
            here = Foretold(camps, prior, self._total(loss) / total, 0.0, 0.0, float(of_new.sum()) / total, 0.0, 0.0)
            if found:
                gain, error = self.gain(found[0], here)
                here = replace(here, gain=gain, gain_error=error)
                mean = (new - of_new).sum() / total
                square = ((new - of_new - mean * self.mass) ** 2).sum() * len(new) / (len(new) - 1)
                here = replace(here, new_gain=float(mean), new_gain_error=float(np.sqrt(square) / total))
            found.append(here)
        return tuple(found)

    def _told(self, numbers: list[int]) -> Iterator[int]:
        """Yield each number of camps, and say how many trials are done, each as long as there are camps in it."""
        costs, done = _trials(numbers, len(self.priors) > 1), 0.0
        with stage("numbers of camps", sum(costs)) as at:
            for place, camps in enumerate(numbers):
                later, here = sum(costs[place + 1 :]), done + costs[place]

                def tried(camps: int, last: bool, later: float = later, here: float = here) -> None:
                    nonlocal done
                    done += _cost(camps)
                    at.reach(done, later + (done if last else max(here, done + _cost(camps))))

                self.tried = tried
                yield camps
                at.reach(done, done + later)
        self.tried = lambda *_: None

    def gain(self, one: Foretold, other: Foretold) -> tuple[float, float]:
        """Return how much less a held-out vote loses with the other, and the standard error, over votes."""
        less = self.of_known(one.camps, one.prior) - self.of_known(other.camps, other.prior)
        total = float(self.mass.sum())
        mean = self._total(less) / total
        return mean, float(np.sqrt(self._total((less - mean * self.votes.mass) ** 2))) / total

    def _total(self, each: Floats) -> float:
        return float((self.shares * each).sum())

    def _best_prior(self, camps: int, at: int) -> int:
        """Climb from the best prior of fewer camps."""

        def look(place: int) -> float:
            return -self._total(self.of_known(camps, self.priors[place]))

        for way in (-1, 1):
            moved = False
            while 0 <= at + way < len(self.priors) and look(at + way) > look(at):
                at, moved = at + way, True
            if moved:
                break
        return at

    def by_camp(self, held: Foretold, membership: Floats) -> dict[str, Floats]:
        """Return the loss of a held-out vote, and its standard error, of those who most probably are in each camp."""
        each, camp = self.of_known(held.camps, held.prior), membership.argmax(1)[self.votes.judge]
        chosen = camp == np.arange(held.camps)[:, None]
        mass = chosen @ (self.votes.count * self.votes.mass)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = chosen @ (self.shares * each).sum(0) / mass
            off = self.shares * (each - np.nan_to_num(mean)[camp] * self.votes.mass) ** 2
            return {"loss": mean, "loss_error": np.sqrt(chosen @ off.sum(0)) / mass}

    def of_known(self, camps: int, prior: float) -> Floats:
        """Return the loss of one of each distinct vote when a fold is held out; shape (folds, votes).

        The other votes of an annotator say in which camp it is.
        """
        if (camps, prior) not in self.known:
            votes, each = self.votes, []
            for share in self.shares:
                pairs = votes.pairs(votes.count - share)
                found = self.fit(pairs, camps, prior=prior)
                chances = expit(votes.D.times(found.theta.T))[votes.pair]
                chance = np.clip((found.membership(pairs)[votes.judge] * chances).sum(1), 1e-300, 1.0 - 1e-16)
                each.append(-votes.mass * (votes.won * np.log(chance) + (1.0 - votes.won) * np.log1p(-chance)))
            self.known[camps, prior] = np.array(each)
            self.tried(camps, False)
        return self.known[camps, prior]

    def of_new(self, camps: int, prior: float) -> Floats:
        """Return the loss of all votes of each annotator, by camps that were found without it."""
        pairs = self.votes.pairs(self.votes.count)
        loss = np.zeros(self.votes.judges)
        for fold in range(int(self.fold.max()) + 1):
            held = np.flatnonzero(self.fold == fold)
            found = self.fit(pairs.of(self.fold != fold), camps, prior=prior)
            loss[held] = -logsumexp(
                np.log(np.maximum(found.share, 1e-300)) + pairs.of(held).likelihoods(found.theta), axis=1
            )
        self.tried(camps, True)
        return loss
