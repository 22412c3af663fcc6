"""One query that no task can hold, its judgments drawn again where they lie: replicates are those of memory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, poisson
from test_spark_coefficients import CASES as VALUED
from test_spark_coefficients import notes_of, of
from test_spark_coefficients import reading as reading_of
from test_spark_split import LISTS, divided, lists, votes
from test_spark_structures_split import beside, drawn

import concordant as cc
from concordant.preferences.graphs import Batch
from concordant.ranking import multinomial
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.multinomial import Atoms, said_keys, streams
from concordant.ranking.structures import STRUCTURES
from concordant.ranking.structures import structure as find_structure
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark import clustered, frames, ranking, redrawn, tied_rankings
    from concordant.apps.spark.divided import Known
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, ranking_of
    from concordant.apps.spark.redrawn import Again
    from concordant.apps.spark.shares import Listed, ListedPairs, Whole
    from concordant.apps.spark.structure_sums import of_shares, reading

DRAWS = {"interval": "bootstrap", "replicates": 40, "seed": 4}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judgments are drawn by themselves however few there are, and some replicates at a time."""
    monkeypatch.setattr(multinomial, "ALONE", 0)
    if not why_not():
        for module in (clustered, redrawn):
            monkeypatch.setattr(module, "ALONE", 0)
        monkeypatch.setattr(clustered, "DIFFERENT", 0)
        monkeypatch.setattr(redrawn, "AT_ONCE", 2_000)


class Exchanged:
    """Shares after an exchange, without Spark."""

    def __init__(self, frame: Any, shares: int) -> None:
        sent: dict[int, list[Any]] = {}
        for share in frame:
            for number, part in redrawn.Parting(shares)(share):
                sent.setdefault(number, []).append(pickle.loads(pickle.dumps(part)))
        self.frame = [redrawn.put_back(parts, number) for number, parts in sorted(sent.items())]

    def sums(self, work: Any) -> Any:
        return sum(map(pickle.loads(pickle.dumps(work)), self.frame), redrawn.Sums())  # type: ignore[call-overload]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes to Spark."""
    monkeypatch.setattr(redrawn, "exchanged", Exchanged)


def alike(ours: cc.Ranking, theirs: cc.Ranking) -> None:
    """Replicates stop within 1e-8 of their solution."""
    for name in ("query", "component", "item", "rank", "rank_lower", "rank_upper", "judgments", "flag", "provisional"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("score", "lower", "upper"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-7, err_msg=name)
    assert ours.interval == theirs.interval


def peopled(log: dict[str, Any], key: str, many: int) -> dict[str, Any]:
    """The same judgments, each made by one of so many."""
    draw = np.random.default_rng(0)
    of = {label: f"p{draw.integers(many)}" for label in dict.fromkeys(log[key])}
    return {**log, "who": [of[label] for label in log[key]]}


def with_judgments(
    log: dict[str, Any], shares: int, kept: Any, key: tuple[str, ...], whose: Any = (), linked: bool = True
) -> Any:
    """The shares of a query as its scores are found of them, and as its judgments were made."""
    found = divided(log, shares, kept.of, key, whose=whose, linked=linked)
    return found, divided(log, shares, Whole.of, key, whose=whose, linked=False)


def entries(log: dict[str, Any]) -> str:
    return "session" if "session" in log else "judgment"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
@pytest.mark.parametrize(("people", "together"), [(0, False), (25, True), (25, False)])
@pytest.mark.parametrize("number", range(len(LISTS)))
def test_replicates_of_lists_are_those_of_memory(
    number: int, people: int, together: bool, structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of items with limits on one side, of several components; of judgments, and of clusters of them."""
    for module in (multinomial, redrawn):
        monkeypatch.setattr(module, "ALONE", 1000 * together)
    log, key, whose = LISTS[number], entries(LISTS[number]), ()
    if people:
        log, whose = peopled(log, key, people), ("who",)
    prefs = cc.read(log, **({"cluster": "who"} if people else {})).select(["large"])
    theirs = cc.rank(prefs, structure, **DRAWS)
    for shares in (1, 6):
        kept = Listed if structure == "plackett-luce" else ListedPairs
        found, whole = with_judgments(log, shares, kept, (key,), whose)
        known = Known(found, find_structure(structure), {}, again=Again.of(whole, found, lists=kept is Listed))
        ours = known.ranked(DRAWS)
        alike(ours, theirs)
        looked = ("scores are right", "bootstrap replicates")  # how often an item only won is not counted
        left = [
            str(note) for note in theirs.notes if note not in prefs.notes and not any(one in note for one in looked)
        ]
        assert [note for note in ours.notes if looked[1] not in note] == left


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
def test_replicates_without_a_prior(structure: str) -> None:
    """Where some say of an item no more than that it won: its score has no limit there."""
    log, asked = lists("orders", 8, 20), {**DRAWS, "prior": 0.0}
    theirs = cc.rank(cc.read(log).select(["large"]), structure, **asked)
    kept = Listed if structure == "plackett-luce" else ListedPairs
    found, whole = with_judgments(log, 3, kept, ("judgment",))
    known = Known(found, find_structure(structure), {}, again=Again.of(whole, found, lists=kept is Listed))
    ours = known.ranked(asked)
    alike(ours, theirs)
    assert any("bootstrap replicates" in str(note) for note in theirs.notes)
    assert {str(note) for note in ours.notes} <= {str(note) for note in theirs.notes}


BESIDE = {
    name: (log, {key: value for key, value in options.items() if key not in ("quasi", "level")})
    for name, (log, options) in (VALUED.items() if not why_not() else ())
    if "way" not in log
    and (({"home", "length"} & {*log} and options.get("covariates") is not False) or "ties" in options)
}  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("shares", [1, 5])
@pytest.mark.parametrize("case", BESIDE)
def test_replicates_with_coefficients_are_those_of_memory(
    case: str, shares: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of covariates, and of ties; of judgments and of clusters; of replicates without a tie, too."""
    log, options = BESIDE[case]
    asked = options | DRAWS
    theirs = cc.rank(cc.read(log, **reading_of(log)), **asked)
    found = of(log, shares, asked, monkeypatch)
    ours = found.ranked(asked)
    alike(ours, theirs)
    often = [{note for note in notes_of(board) if "bootstrap replicates" in note} for board in (ours, theirs)]
    assert {*notes_of(ours)} - often[0] == {*notes_of(theirs)} - often[1]
    most = [max((int(note.split()[3]) for note in notes), default=0) for notes in often]
    exact = shares == 1 or asked.get("prior") == 0
    assert most[0] == most[1] if exact else most[0] >= most[1]  # of several shares it is "up to"


@pytest.mark.usefixtures("here")
def test_a_replicate_without_a_tie_is_fitted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ν is 0, and of a covariate that few judgments have one is refused as in memory."""
    log = {name: column for name, column in VALUED["no ties"][0].items() if name not in ("home", "length")}
    log["outcome"] = ["tie", *log["outcome"][1:]]
    asked = {"ties": "davidson"} | DRAWS
    theirs = cc.rank(cc.read(log, **reading_of(log)), **asked)
    left = []
    single = redrawn.Replicated
    monkeypatch.setattr(redrawn, "Replicated", lambda *given: left.append(given[2]) or single(*given))
    alike(of(log, 3, asked, monkeypatch).ranked(asked), theirs)
    assert 5 < len(left) < 30  # a tie is not drawn in 1/e of all
    log["home"] = [1.0, 0.0] + [0.0] * (len(log["outcome"]) - 2)
    with pytest.raises(cc.CannotRank, match="'home' is 0 in every comparison"):
        cc.rank(cc.read(log, **reading_of(log)), **asked)
    with pytest.raises(cc.CannotRank, match="'home' is 0 in every comparison"):
        of(log, 3, asked, monkeypatch).ranked(asked)


TIED = [
    lists("orders", 9, 160, tiers=3, alone=1),
    lists("orders", 8, 40, tiers=2),  # replicates have fewer kinds of ties
    peopled(lists("orders", 9, 160, tiers=3), "judgment", 40),
]


@pytest.mark.usefixtures("here")
def test_a_replicate_of_rankings_without_a_maximum_says_nothing_of_its_items() -> None:
    """Without a win of one of two that tie, too: scores and log δ grow for ever, which rounding hides."""
    ranks = [1, 2] * 12 + [2, 1] * 2 + [1, 1] * 4
    log = {"query": ["large"] * 36, "judgment": [row // 2 for row in range(36)], "item": ["a", "b"] * 18, "rank": ranks}
    asked = {"ties": "davidson", "prior": 0.0} | DRAWS
    theirs = cc.rank(cc.read(log), "plackett-luce", **asked)
    found, whole = with_judgments(log, 3, tied_rankings.TiedLists, ("judgment",))
    known = tied_rankings.OfLists.of(found, find_structure("plackett-luce"), asked)
    alike(replace(known, again=Again.of(whole, found)).ranked(asked), theirs)
    assert np.isinf(theirs.lower).all()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("structure", ["plackett-luce", "bradley-terry"])
@pytest.mark.parametrize("prior", [0.0, 0.01])
@pytest.mark.parametrize("number", range(len(TIED)))
def test_replicates_of_rankings_whose_ties_have_parameters_are_those_of_memory(
    number: int, prior: float, structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Davidson's of pairs and Davidson–Luce's; of judgments and of clusters; few of them are fitted by themselves."""
    left: list[int] = []
    single = redrawn.Replicated
    monkeypatch.setattr(redrawn, "Replicated", lambda *given: left.append(given[2]) or single(*given))
    log, asked = TIED[number if prior else max(number, 1)], {"ties": "davidson", "prior": prior} | DRAWS
    whose = ("who",) if "who" in log else ()
    prefs = cc.read(log, **({"cluster": "who"} if whose else {})).select(["large"])
    theirs = cc.rank(prefs, structure, **asked)
    kept: Any = tied_rankings.OfLists if structure == "plackett-luce" else tied_rankings.OfPairs
    for shares in (1, 6):
        found, whole = with_judgments(log, shares, kept.kept, ("judgment",), whose)
        known = kept.of(found, find_structure(structure), asked)
        known = replace(known, again=Again.of(whole, found))
        left.clear()
        ours = known.ranked(asked)
        alike(ours, theirs)
        assert len(left) < 6
        often = [[str(note) for note in board.notes if "bootstrap replicates" in str(note)] for board in (ours, theirs)]
        most = [max((int(note.split()[3]) for note in notes), default=0) for notes in often]
        assert most[0] == most[1] if shares == 1 or prior == 0 else most[0] >= most[1]


KINDS = ("comparisons", "weighted", "orders", "choices", "several clicks", "ratings")
SUMMED = [
    (name, kind)
    for name, member in STRUCTURES.items()
    for kind in KINDS
    if not why_not()
    and {"several clicks": "selections", "weighted": "comparisons"}.get(kind, kind) in member.kinds
    and reading(name, {"several clicks": "selections", "weighted": "comparisons"}.get(kind, kind)) is not None
    and (name, kind) != ("cascade", "several clicks")  # which it refuses
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("structure", "kind"), SUMMED)
@pytest.mark.parametrize("people", [0, 20])
def test_replicates_of_what_shares_count_are_those_of_memory(structure: str, kind: str, people: int) -> None:
    log, whose = drawn(kind, 3), ()
    key = next(name for name in ("session", "judgment", "left", "winner") if name in log)
    if people and key in ("session", "judgment"):
        log, whose = peopled(log, key, people), ("who",)
    elif people:
        log = {**log, "who": [f"p{number % people}" for number in range(len(log[key]))]}
        whose = ("who",)
    member = find_structure(structure)
    prefs = cc.read(log, **({"cluster": "who"} if people else {}))
    theirs = cc.rank(prefs, structure, **DRAWS)
    how = reading(structure, prefs.kind or "")
    assert how is not None
    key_of_shares = (key,) if key in ("session", "judgment") else tuple(list(log)[1:3])
    for shares in (1, 5):
        found, whole = with_judgments(log, shares, how.kept, key_of_shares, whose, linked=how.linked)
        ours, _ = of_shares(found, how, member, DRAWS, prefs.kind or "", whole)
        alike(ours, theirs)


def test_a_judgment_is_drawn_the_same_wherever_it_lies() -> None:
    """Whatever else was judged, in whatever order, and however often it was counted before."""
    log = votes(12, 400)
    whole = cc.read(log).select(["large"])
    rows = [row for row in zip(*log.values(), strict=True) if row[0] == "large"]
    np.random.default_rng(0).shuffle(rows)
    part = cc.read(dict(zip(log, zip(*rows[:150], strict=True), strict=True)))

    def told(prefs: Any) -> dict[Any, int]:
        items, tie = prefs.items.tolist(), np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
        pairs = [(items[one], items[other]) for one, other in zip(prefs.winner, prefs.loser, strict=True)]
        said = [frozenset(pair) if even else pair for pair, even in zip(pairs, tie.tolist(), strict=True)]
        return dict(zip(said, said_keys(prefs).tolist(), strict=True))

    all_, some = told(whole), told(part)
    assert len({*all_.values()}) == len(all_)
    assert some == {what: all_[what] for what in some}


@pytest.mark.parametrize("mean", [1, 3, 400, 1 << 21])
def test_numbers_of_draws_are_poisson_numbers(mean: int) -> None:
    """By χ² in twenty cells; those of two judgments, and of two replicates, have nothing to do with each other."""
    said = np.random.default_rng(1).integers(0, 1 << 63, 400).astype(np.uint64)
    drawn_often = multinomial.poisson(said, np.full(400, mean), 11, np.arange(100))
    cuts = np.unique(poisson.ppf(np.linspace(0.05, 0.95, 19), mean))
    share = np.diff(poisson.cdf(cuts, mean), prepend=0.0, append=1.0)
    seen = np.bincount(np.searchsorted(cuts, drawn_often.ravel(), side="left"), minlength=len(share))
    expected = drawn_often.size * share
    assert chi2.sf(((seen - expected) ** 2 / expected).sum(), len(share) - 1) > 1e-4
    for one in (drawn_often, drawn_often.T):
        apart = np.corrcoef(one[0::2].ravel(), one[1::2].ravel())[0, 1]
        assert abs(apart) < 5 / np.sqrt(one.size / 2)


def test_intervals_are_those_of_a_multinomial_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard errors by judgments drawn by themselves are those by judgments drawn together, but for chance."""
    prefs = cc.read(votes(15, 3000)).select(["large"])
    by_themselves = bootstrap(prefs, replicates=1000).replicates.std(axis=0)
    monkeypatch.setattr(multinomial, "ALONE", 1 << 19)
    together = bootstrap(prefs, replicates=1000).replicates.std(axis=0)
    assert np.abs(by_themselves / together - 1).max() < 0.12


def test_what_is_drawn_by_itself_does_not_depend_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = cc.read(votes(9, 300)).select(["large"])
    (atoms,) = Atoms.of(Batch.whole(prefs), 3)
    whole = np.concatenate([atoms.drawn(stream) for stream in streams(len(atoms.count), 30)])
    monkeypatch.setattr(multinomial, "HELD", 4 * prefs.distinct)
    cut = np.concatenate([atoms.drawn(stream) for stream in streams(len(atoms.count), 30)])
    assert np.array_equal(whole, cut)
    assert whole.sum(axis=1).std() > 0  # each by itself


# -- on Spark ----------------------------------------------------------------------------------------------------
def judged(spark: Any, log: dict[str, Any]) -> Any:
    frame = spark.createDataFrame(pa.table(log)).repartition(3)
    return JudgedQueries.of(frame, spark, most=250, **columns_of(log))


def columns_of(log: dict[str, Any]) -> dict[str, Any]:
    return ({"cluster": "who"} if "who" in log else {}) | ({"covariates": ["home"]} if "home" in log else {})


def at_home(log: dict[str, Any]) -> dict[str, Any]:
    """The same without the small query, whose draws would say nothing of it; some of them at home."""
    home = np.random.default_rng(1).integers(-1, 2, len(log["left"])).astype(float)
    return {name: column[:-3] for name, column in (log | {"home": home.tolist()}).items()}


def agrees(spark: Any, log: dict[str, Any], structure: str, **asked: Any) -> None:
    """The rows of the large query; tasks draw the judgments of the small one together, as memory does of few."""
    one = judged(spark, log)
    ours = ranking_of(ranked(one, structure, **{**DRAWS, **asked}), one, structure, "bootstrap", 0.95)
    theirs = cc.rank(cc.read(log, **columns_of(log)), structure, **{**DRAWS, **asked})
    rows = [
        {name: np.asarray(column)[table["query"] == "large"] for name, column in table.items()}
        for table in (
            {name: each.to_arrow()[name].to_numpy(zero_copy_only=False) for name in SAME} for each in (ours, theirs)
        )
    ]
    for name in SAME:
        mine, own = rows[0][name], rows[1][name]
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, own, rtol=0, atol=1e-7, err_msg=name)
        else:
            assert mine.tolist() == own.tolist(), name
    assert len(rows[0]["item"])


SAME = (
    "query",
    "component",
    "item",
    "rank",
    "score",
    "lower",
    "upper",
    "judgments",
    "rank_lower",
    "rank_upper",
    "flag",
)


def several_clicks() -> dict[str, Any]:
    """Lists of one query alone: of another, too, all of the log would say how readers go on."""
    return drawn("several clicks", 3, rows=300)


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("plackett-luce", lists("orders", 9, 160, tiers=3, alone=1), {}),
    ("plackett-luce", peopled(lists("choices", 9, 160), "session", 40), {}),
    ("bradley-terry", lists("orders", 9, 160), {}),
    ("bradley-terry", votes(30, 900), {}),
    ("bradley-terry", votes(30, 900, groups=2, alone=1), {"prior": 1.0}),
    ("plackett-luce", votes(30, 900, alone=1), {}),
    ("bradley-terry", at_home(votes(30, 900)), {}),
    ("bradley-terry", at_home(votes(30, 900)), {"ties": "davidson"}),
    ("plackett-luce", votes(30, 900), {"ties": "davidson"}),
    ("plackett-luce", lists("orders", 9, 160, tiers=3), {"ties": "davidson"}),
    ("bradley-terry", peopled(lists("orders", 9, 160, tiers=3), "judgment", 40), {"ties": "davidson"}),
    ("bradley-terry", votes(30, 900), {"ties": "cumulative"}),
    ("borda", lists("orders", 9, 160), {}),
    ("log-odds", votes(30, 900), {}),
    ("cascade", lists("selections", 9, 160), {}),
    ("dependent-click", several_clicks(), {}),
    ("dependent-click", beside(several_clicks(), "several clicks"), {}),
    ("position-based", beside(several_clicks(), "several clicks"), {}),
    ("inverse-propensity", beside(several_clicks(), "several clicks"), {}),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_bootstrap_on_spark(number: int, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole logs of one large and one small query; nothing that the driver would have to take."""
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 10)
    structure, log, asked = CASES[number]
    agrees(spark, log, structure, **asked)


def test_clusters_of_many_kinds_of_judgments(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where kinds × replicates are too many to be brought together."""
    for module in (frames, ranking):
        monkeypatch.setattr(module, "MOST_ALONE", 10)
    monkeypatch.setattr(clustered, "DRAWN", 10)
    log = votes(30, 900, alone=1)
    rng = np.random.default_rng(0)
    log["who"] = [f"p{rng.integers(60)}" for _ in log["left"]]
    for structure in ("bradley-terry", "copeland"):
        agrees(spark, log, structure)
