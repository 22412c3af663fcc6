"""Which fusion of ten rankers is best, and how fast is it?

``python -m benchmarks.fusion ../shared/data`` cuts the lists of ten rankers to 20 documents on MQ2008 and the MSLR
piece (the ten single features that rank training queries best and are not alike, or ridge regressions on five random
features and a tenth of the training queries), fuses them on held-out queries (three folds, each query held out once a
draw, five draws) and prints NDCG@10 of each fusion beside that of reciprocal rank fusion, with 95% intervals of the
difference over queries. ``python -m benchmarks.fusion speed FOLDER 1000000`` writes so many lists of 20, ten a query,
as runs and times reading and fusing them; with ``--peer`` it times ranx on as many, which has to be installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RANKERS, CUT, FOLDS = 10, 20, 3
ALIKE = 0.95


# -- rankers -----------------------------------------------------------------------------------------------------------
def features(train: Any, test: Any, Z: Floats, _: Floats, _rng: np.random.Generator) -> list[Floats]:
    """The best single features, none of which is nearly another one, in the better direction."""
    varies = np.flatnonzero(np.ptp(Z, axis=0) > 0)
    both = [(train.quality(sign * Z[:, place]), place, sign) for place in varies for sign in (1, -1)]
    chosen: list[int] = []
    found = []
    for _, place, sign in sorted(both, reverse=True):
        if all(abs(np.corrcoef(Z[:, place], Z[:, other])[0, 1]) <= ALIKE for other in chosen):
            chosen.append(place)
            found.append(sign * test.X[:, place])
    return found[:RANKERS]


def trained(train: Any, _: Any, Z: Floats, Z_test: Floats, rng: np.random.Generator) -> list[Floats]:
    """Small ridge regressions on labels less their query's mean."""
    y = train.label - (np.add.reduceat(train.label, train.start[:-1]) / train.size)[train.query]
    found = []
    for _ in range(RANKERS):
        rows = np.isin(train.query, rng.choice(len(train.size), len(train.size) // 10, replace=False))
        columns = rng.choice(Z.shape[1], 5, replace=False)
        A = Z[rows][:, columns]
        found.append(Z_test[:, columns] @ np.linalg.solve(A.T @ A + 10 * np.eye(5), A.T @ y[rows]))
    return found


# -- fusions -----------------------------------------------------------------------------------------------------------
def fused(rows: Any, structure: str, documents: int, *, unranked: str = "missing", **options: Any) -> Floats:
    """Scores of our structures, −∞ for what no list holds."""
    import concordant as cc

    query, ranker, item, place, score = rows
    if structure == "combsum":
        prefs = cc.Preferences.from_ratings(query, item, score, ranker)
    else:
        prefs = cc.Preferences.from_orders(query, ranker, item, place, unranked=unranked)
    board = cc.rank(prefs, structure, interval="none", **options)
    found = np.full(documents, -np.inf)
    found[board.items.values.to_numpy()[board.item]] = board.score
    return found


def combmnz(rows: Any, documents: int) -> Floats:
    """CombSUM times the number of lists that hold the document."""
    held, score = np.bincount(rows[2], minlength=documents), fused(rows, "combsum", documents)
    return np.where(held, np.maximum(held, 1) * score, -np.inf)


K = (0, 2, 5, 10, 20, 40, 100, 200)
FUSIONS: dict[str, Callable[[Any, int], Floats]] = {
    "rrf, k = 60": lambda rows, n: fused(rows, "rrf", n),
    "default (rrf, unlisted last)": lambda rows, n: fused(rows, "rrf", n, unlisted="last"),
    **{f"rrf, k = {k}": lambda rows, n, k=k: fused(rows, "rrf", n, k=k) for k in K},  # type: ignore[misc]
    "combsum": lambda rows, n: fused(rows, "combsum", n),
    "combsum, z-score": lambda rows, n: fused(rows, "combsum", n, normalise="z-score"),
    "combmnz": combmnz,
    "borda, unlisted last": lambda rows, n: fused(rows, "borda", n, unranked="last"),
    "plackett-luce, unlisted last": lambda rows, n: fused(rows, "plackett-luce", n, unranked="last"),
}


def listed(test: Any, scores: list[Floats], rng: np.random.Generator) -> Any:
    """Columns query, ranker, item (its row), rank and score of every list, cut; equal scores in random order."""
    parts = []
    for ranker, score in enumerate(scores):
        order = np.lexsort((rng.random(len(score)), -score, test.query))
        place = np.arange(len(order)) - test.start[test.query[order]]
        rows = order[place < CUT]
        parts.append((test.query[rows], np.full(len(rows), ranker), rows, place[place < CUT] + 1, score[rows]))
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def measured(queries: Any, arm: Callable[..., list[Floats]], draws: int) -> tuple[dict[str, Floats], Floats]:
    """NDCG@10 of each query whose labels differ, by fusion, the mean of all draws; and that of each ranker alone."""
    from concordant.learning.features.normalising import Normaliser
    from concordant.losses.metrics.ndcg import ndcg

    found: dict[str, Floats] = {name: np.zeros(len(queries.size)) for name in FUSIONS}
    alone = np.zeros((len(queries.size), RANKERS))
    for draw in range(draws):
        rng = np.random.default_rng([draw, 2026])
        folds = np.array_split(rng.permutation(len(queries.size)), FOLDS)
        for held in map(np.sort, folds):
            train, test = queries.take(np.setdiff1d(np.arange(len(queries.size)), held)), queries.take(held)
            norm = Normaliser().fit(train.X)
            scores = arm(train, test, norm.apply(train.X), norm.apply(test.X), rng)
            rows = listed(test, scores, rng)

            def judge(score: Floats, test: Any = test) -> Floats:
                return np.asarray(ndcg(score, test.label, test.query, at=10, ties="averaged")) / draws

            for name, fusion in FUSIONS.items():
                found[name][held] += judge(fusion(rows, len(test.label)))
            for ranker, score in enumerate(scores):
                alone[held, ranker] += judge(score)
    highest, least = (of.reduceat(queries.label, queries.start[:-1]) for of in (np.maximum, np.minimum))
    tells = highest > least
    return {name: values[tells] for name, values in found.items()}, alone[tells]


def quality(folder: Path, draws: int) -> None:
    """Print a table for each set and arm."""
    from benchmarks.quality_sets import Queries
    from concordant.losses.metrics.metrics import compare

    for name in ("MSLR piece", "MQ2008"):
        queries = Queries.read(folder, name)
        for arm in (features, trained):
            values, alone = measured(queries, arm, draws)
            base = values["rrf, k = 60"]
            mean = alone.mean(axis=0)
            print(
                f"\n{name}, {arm.__name__}, {len(base)} queries; rankers alone {mean.mean():.4f}, best {mean.max():.4f}"
            )
            for fusion, value in values.items():
                pair = compare(value, base)
                print(f"  {fusion:30} {value.mean():.4f}  {pair.mean:+.4f} ({pair.lower:+.4f} to {pair.upper:+.4f})")
            best = max((fusion for fusion in values if fusion.startswith("rrf")), key=lambda one: values[one].mean())
            pair = compare(values["default (rrf, unlisted last)"], values[best])
            print(f"  default against {best}: {pair.mean:+.4f} ({pair.lower:+.4f} to {pair.upper:+.4f})")


# -- speed -------------------------------------------------------------------------------------------------------------
def written(folder: Path, lists: int) -> list[str]:
    """Write so many lists as ten runs: 20 of 60 documents of each query."""
    rng, names = np.random.default_rng(0), [str(folder / f"speed{ranker}.run") for ranker in range(RANKERS)]
    for ranker, name in enumerate(names):
        with open(name, "w", encoding="utf-8") as file:
            for query in range(lists // RANKERS):
                found = zip(rng.permutation(60)[:CUT], np.sort(rng.random(CUT))[::-1], range(1, CUT + 1), strict=True)
                file.writelines(f"q{query} Q0 d{query % 997}-{i} {at} {x:.5f} r{ranker}\n" for i, x, at in found)
    return names


def speed(folder: Path, lists: int, *, peer: bool) -> None:
    """Print the seconds of reading and of fusing, and the whole command's."""
    names = written(folder, lists)
    if peer:
        import ranx

        begin = time.perf_counter()
        runs = [ranx.Run.from_file(name, kind="trec") for name in names]
        read = time.perf_counter() - begin
        ranx.fuse([ranx.Run({"q": {"d": 1.0}}, name=str(at)) for at in range(2)], method="rrf", params={"k": 60})
        begin = time.perf_counter()
        ranx.fuse(runs, method="rrf", params={"k": 60})
        print(f"ranx, {lists:,} lists: read {read:.1f} s, fused {time.perf_counter() - begin:.1f} s")
    else:
        import concordant as cc
        from concordant.io.read import read_as_made

        cc.rank(cc.Preferences.from_orders(None, [1, 1], ["x", "y"], [1, 2]), "rrf", interval="none")
        begin = time.perf_counter()
        prefs = read_as_made(names).preferences
        read = time.perf_counter() - begin
        begin = time.perf_counter()
        cc.rank(prefs, "rrf", interval="none", unlisted="last")
        print(f"concordant, {lists:,} lists: read {read:.1f} s, fused {time.perf_counter() - begin:.1f} s")
        del prefs
        begin = time.perf_counter()
        command = [sys.executable, "-m", "concordant", "rank", *names, "-q", "-o", str(folder / "fused.run")]
        subprocess.run(command, check=True)
        print(f"concordant rank … -o fused.run: {time.perf_counter() - begin:.1f} s")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", help="the folder of the sets, or speed")
    parser.add_argument("folder", nargs="?", type=Path, help="of speed: where the runs are written")
    parser.add_argument("lists", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--peer", action="store_true")
    asked = parser.parse_args()
    if asked.what == "speed":
        speed(asked.folder or Path(), asked.lists, peer=asked.peer)
    else:
        quality(Path(asked.what), asked.draws)


if __name__ == "__main__":
    main()
