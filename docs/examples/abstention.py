"""When a ranker should not order two items: risk and coverage of both rules on five real data sets.

Usage: python abstention.py [FOLDER]

Three of the sets lie in tests/data of the repository; FOLDER holds ``mq2008/S1.txt`` … ``S5.txt`` (LETOR 4.0) and
``ml-100k`` (MovieLens), without which these two are left out. Each ranker is fitted to one part of the data, abstention
is chosen by a second, and every number is of a third.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import concordant as cc

SHIPPED = Path(__file__).resolve().parents[2] / "tests" / "data"
COVERAGES = (1.0, 0.9, 0.7, 0.5)
Split = tuple[tuple[object, object], tuple[object, object], tuple[object, object]]


def compare(name: str, ranker: object, parts: Split, cost: float = 0.2) -> None:
    """Print risk at equal coverage of both rules, and what the chosen ones cost on the part that nothing has seen."""
    train, held, test = parts
    fitted = ranker.fit(*train)  # type: ignore[attr-defined]
    near, risky = (cc.AbstainingRanker(fitted, cost=cost, by=by).fit(*held) for by in ("distance", "risk"))
    print(f"\n{name}")
    for rule in (near, risky):
        curve = rule.risk_coverage(*test)
        at = "  ".join(f"{share:.0%} {curve.at(share):.3f}" for share in COVERAGES)
        print(f"  by {curve.by:8}  risk at coverage {at};  AURC {curve.aurc:.3f} (least {curve.least_aurc:.3f})")
    declined = []
    for share in (0.1, 0.3):
        bounded = cc.AbstainingRanker(fitted, cost=0.0, by="risk", share=share).fit(*held)
        curve = bounded.risk_coverage(*test)
        place = int(np.searchsorted(curve.threshold[1:], bounded.rule_.limit, side="right"))
        declined.append(f"{share:.0%}: {1 - curve.coverage[place]:.1%}")
    print(f"  by risk, share bounded on held-out pairs: what is declined of the test pairs {', '.join(declined)}")
    for rule in (near, risky):
        found, chosen = rule.risk_coverage(*test), rule.status_
        gamma = "" if rule.rule_.by == "risk" else f", γ {rule.gamma_:.2f}"
        print(
            f"  cost {cost} by {rule.rule_.by}: held-out coverage {chosen['coverage']:.2f}{gamma}; test loss "
            f"{1 - rule.score(*test):.4f} against {found.losses(0.0)[0]:.4f} without"
        )


def football() -> None:
    """Matches of the last four years: the first half fits Bradley–Terry, whose score is the one feature of a team."""
    path = SHIPPED / "international_football" / "results-2022-07-20-to-2026-07-19.csv.gz"
    table = pd.read_csv(path).dropna(subset=["home_score", "away_score"]).sort_values("date")
    drawn = (table.home_score == table.away_score).to_numpy()
    home = (table.home_score >= table.away_score).to_numpy()
    winner, loser = np.where(home, table.home_team, table.away_team), np.where(home, table.away_team, table.home_team)

    def matches(rows: np.ndarray) -> cc.Preferences:
        return cc.Preferences.from_comparisons(winner[rows], loser[rows], tie=drawn[rows])

    half = np.arange(len(table)) < len(table) // 2
    board = cc.rank(matches(half)).to_arrow()
    strength = dict(zip(board["item"].to_pylist(), board["score"].to_numpy(), strict=True))
    known = np.array([w in strength and x in strength for w, x in zip(winner, loser, strict=True)])
    names = sorted(strength)
    features = cc.Features.of(np.array([[strength[name]] for name in names]), names, names=["strength"])
    later = np.flatnonzero(known & ~half)
    held, test = later[: len(later) // 2], later[len(later) // 2 :]
    ranker = cc.EdgeRanker("ranknet")
    parts = ((features, matches(half)), (features, matches(held)), (features, matches(test)))
    compare("football (one feature: Bradley–Terry strength)", ranker, parts, cost=0.3)  # type: ignore[arg-type]
    rates = drawn[test].mean()
    gap = np.array([abs(strength[winner[m]] - strength[loser[m]]) for m in test])
    made = cc.AbstainingRanker(ranker, share=float(drawn[held].mean()), cost=0.0).fit(features, matches(held))
    upset = ~drawn[test] & (np.array([strength[winner[m]] < strength[loser[m]] for m in test]))
    place = {name: row for row, name in enumerate(names)}
    a, b = (features.X[[place[side[m]] for m in test]] for side in (winner, loser))
    declined = made.predict_pairs(a, b) == 0
    print(
        f"  {len(test):,} test matches, {rates:.1%} drawn; {declined.mean():.1%} declined with the share of earlier "
        f"draws, {drawn[held].mean():.1%}:\n"
        f"  of those declined {drawn[test][declined].mean():.1%} were drawn, of the others "
        f"{drawn[test][~declined].mean():.1%}; AUC of closeness for a draw {roc_auc_score(drawn[test], -gap):.3f};\n"
        f"  by the weaker side: {upset[declined].mean():.1%} of the declined, {upset[~declined].mean():.1%} of others"
    )


def verdicts() -> None:
    """Verdicts of several people on the same two answers: are they split where the ranker declines?"""
    table = pd.read_csv(SHIPPED / "prd_vicuna80" / "ratings.csv.gz")
    table["first"] = np.where(table.score == 2, table.model_b, table.model_a)
    table["second"] = np.where(table.score == 2, table.model_a, table.model_b)
    part = np.random.default_rng(0).permutation(81)[table.question_id] % 3

    def of(number: int) -> cc.Preferences:
        rows = table[part == number]
        return cc.Preferences.from_comparisons(rows["first"], rows["second"], tie=rows.score == 3)

    board = cc.rank(of(0)).to_arrow()
    strength = dict(zip(board["item"].to_pylist(), board["score"].to_numpy(), strict=True))
    names = sorted(strength)
    features = cc.Features.of(np.array([[strength[name]] for name in names]), names, names=["strength"])
    parts = tuple((features, of(number)) for number in range(3))
    compare("Vicuna-80 verdicts (one feature: strength of the model)", cc.EdgeRanker("ranknet"), parts, 0.3)  # type: ignore[arg-type]
    rows = table[part > 0]
    low, high = np.minimum(rows.model_a, rows.model_b), np.maximum(rows.model_a, rows.model_b)
    vote = np.where(rows.score == 3, 0.5, (rows["first"] == low).astype(float))
    cells = pd.DataFrame({"q": rows.question_id, "low": low, "high": high, "vote": vote}).groupby(["q", "low", "high"])
    seen = cells.vote.agg(["mean", "min", "max", "size"]).reset_index()
    seen = seen[seen["size"] > 1]
    split = (seen["min"] != seen["max"]).to_numpy()
    gap = np.abs(seen.low.map(strength) - seen.high.map(strength)).to_numpy()
    level = np.abs(seen["mean"].to_numpy() - 0.5) <= 1 / 6
    print(
        f"  {len(seen):,} pairs of answers with several verdicts, {split.mean():.1%} not unanimous; AUC of the models'"
    )
    print(f"  closeness for disagreement {roc_auc_score(split, -gap):.3f}, for a mean verdict within 1/6 of a tie "
          f"{roc_auc_score(level, -gap):.3f}")  # fmt: skip


def clueweb() -> None:
    """Relevant or not, 42 features of documents."""
    train, labels = cc.read_judged(SHIPPED / "clueweb09" / "train.txt.gz")
    test, held = cc.read_judged(SHIPPED / "clueweb09" / "test.txt.gz")
    half = test.query % 2 == 0
    rows = [np.flatnonzero(half), np.flatnonzero(~half)]
    grade = (held > 0).astype(float)
    parts = ((train, (labels > 0).astype(float)), *((test.take(each), grade[each]) for each in rows))
    compare("clueweb09, relevant or not", cc.EdgeRanker("ranknet"), parts)  # type: ignore[arg-type]


def mq2008(folder: Path) -> None:
    """Relevant or not, 46 features, 784 queries in five folds."""
    parts = []
    for name in ("S1", "S2", "S3"):
        features, labels = cc.read_judged(folder / "mq2008" / f"{name}.txt")
        parts.append((features, (labels > 0).astype(float)))
    compare("mq2008, relevant or not", cc.EdgeRanker("ranknet"), tuple(parts))  # type: ignore[arg-type]


def movielens(folder: Path) -> None:
    """Ratings of 943 people as labels of their films; features: the film's genres, year, and ratings by the others."""
    ratings = pd.read_csv(folder / "ml-100k" / "u.data", sep="\t", names=["user", "film", "rating", "time"])
    films = pd.read_csv(folder / "ml-100k" / "u.item", sep="|", header=None, encoding="latin-1")
    year = pd.to_datetime(films[2], format="%d-%b-%Y").dt.year.fillna(1995)
    about = pd.DataFrame(films.loc[:, 5:].to_numpy(float), index=films[0]).assign(year=year.to_numpy())
    part = np.random.default_rng(0).permutation(944)[ratings.user] % 4
    known = ratings[part == 3].groupby("film").rating.agg(["sum", "size"])
    about["mean"] = ((known["sum"] + 3.5 * 3) / (known["size"] + 3)).reindex(about.index).fillna(3.5)
    about["seen"] = np.log1p(known["size"].reindex(about.index).fillna(0))
    parts = []
    for number in range(3):
        rows = ratings[part == number]
        X = about.loc[rows.film].to_numpy()
        parts.append((cc.Features.of(X, rows.film.to_numpy(), rows.user.to_numpy()), rows.rating.to_numpy(float)))
    compare("ml-100k, films of people not seen before", cc.ListRanker(), tuple(parts), 0.3)  # type: ignore[arg-type]


if __name__ == "__main__":
    football()
    verdicts()
    clueweb()
    if len(sys.argv) > 1:
        mq2008(Path(sys.argv[1]))
        movielens(Path(sys.argv[1]))
