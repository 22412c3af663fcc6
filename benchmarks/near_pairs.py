"""Losses with abstention over all pairs, beside loops over all pairs: a case of ``make bench``.

``python -m benchmarks.near_pairs few|many NUMBER`` measures the contenders on so many points in a process of its own
each; ``python -m benchmarks.near_pairs CONTENDER NUMBER`` one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import add, report
from benchmarks.cases import Case

FEW, MANY = 3, 3072
SHARE = {FEW: 0.01, MANY: 0.1}
NORM = {FEW: 2, MANY: "inf"}
Work = Callable[[], list[int]]


def points(n: int, dimensions: int, kind: str) -> Any:
    """Points with real labels, scores that follow them with errors, and γ for the case's share of near pairs.

    Uniform coordinates; as images: 3,072 coordinates of 32 × 32 pixels in three colours in steps of 1/255, smooth.
    """
    rng = np.random.default_rng(0)
    X = rng.random((n, dimensions)) if kind == "uniform" else _images(n, rng)
    y = rng.permutation(n).astype(np.float64)
    scores = np.round(y + rng.normal(size=n) * n / 3)
    i = rng.integers(0, n, 4000)
    apart = np.abs(X[i] - X[(i + rng.integers(1, n, len(i))) % n])
    length = apart.max(axis=1) if dimensions == MANY else np.sqrt((apart**2).sum(axis=1))
    return X, y, scores, float(np.quantile(length, SHARE[dimensions] * 0.95))


def _images(n: int, rng: np.random.Generator) -> Any:
    found = np.empty((n, MANY))
    wave = 2 * np.pi * np.arange(32) / 64
    basis = np.stack([np.cos(a * wave) for a in range(16)])
    for begin in range(0, n, 500):
        size = min(500, n - begin)
        weight = rng.normal(size=(size, 3, 16, 16)) / (1 + np.add.outer(np.arange(16), np.arange(16))) ** 1.3
        weight += rng.normal(size=(size, 1, 16, 16)) / (1 + np.add.outer(np.arange(16), np.arange(16))) ** 1.3
        image = np.einsum("ncab,ax,by->ncxy", weight, basis, basis, optimize=True)
        found[begin : begin + size] = np.clip(0.5 + 0.2 * image, 0, 1).reshape(size, MANY)
    return np.round(found * 255) / 255


def ours(n: int, dimensions: int, kind: str = "uniform") -> Work:
    """Concordant: near_pairs."""
    from concordant.abstention.near_pairs import near_pairs

    X, y, scores, gamma = points(n, dimensions, kind)

    def work(most: int = n) -> list[int]:
        found = near_pairs(
            X[:most], y[:most], scores[:most], gamma=gamma, norm=NORM[dimensions],
            method="cells" if dimensions == FEW else "tiles",
        )  # fmt: skip
        return [found.near // 2, found.misranked_near]

    work(300)
    return work


def loop(n: int) -> Work:
    """All pairs by a compiled double loop on two threads."""
    import numba

    @numba.njit(nogil=True)
    def pairs(X, y, scores, limit, first):  # type: ignore[no-untyped-def]
        near = wrong = 0
        for i in range(first, len(X), 2):
            for j in range(i + 1, len(X)):
                total = 0.0
                for k in range(X.shape[1]):
                    total += (X[i, k] - X[j, k]) ** 2
                if total <= limit and y[i] != y[j]:
                    agreement = (y[j] - y[i]) * (scores[j] - scores[i])
                    near += 1
                    wrong += (agreement < 0) + (agreement <= 0)
        return near, wrong

    X, y, scores, gamma = points(n, FEW, "uniform")
    pairs(X[:9], y[:9], scores[:9], gamma**2, 0)

    def work() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            return _added(pool.map(lambda first: pairs(X, y, scores, gamma**2, first), (0, 1)))

    return work


def blocks(n: int) -> Work:
    """All pairs by NumPy, a block of rows at a time against the later ones."""
    X, y, scores, gamma = points(n, FEW, "uniform")

    def block(begin: int) -> tuple[int, int]:
        rows = slice(begin, begin + 64)
        total = np.zeros((len(X[rows]), n - begin))
        for k in range(FEW):
            total += (X[rows, k, None] - X[None, begin:, k]) ** 2
        ahead = y[None, begin:] - y[rows, None]
        near = (total <= gamma**2) & (ahead != 0) & (np.arange(begin, n) > np.arange(n)[rows, None])
        agreement = (ahead * (scores[None, begin:] - scores[rows, None]))[near]
        return int(near.sum()), int((agreement < 0).sum() + (agreement <= 0).sum())

    return lambda: _added(block(begin) for begin in range(0, n, 64))


def chunks(n: int, kind: str) -> Work:
    """Each pair once by scipy.spatial.distance.cdist, 500 rows at a time against 500."""
    from scipy.spatial.distance import cdist

    X, y, scores, gamma = points(n, MANY, kind)

    def chunk(begin: int, other: int) -> tuple[int, int]:
        rows, columns = slice(begin, begin + 500), slice(other, other + 500)
        near = cdist(X[rows], X[columns], "chebyshev") <= gamma
        if begin == other:
            near = np.triu(near, 1)
        agreement = ((y[columns] - y[rows, None]) * (scores[columns] - scores[rows, None]))[near]
        return int(near.sum()), int((agreement < 0).sum() + (agreement <= 0).sum())

    return lambda: _added(chunk(begin, other) for begin in range(0, n, 500) for other in range(begin, n, 500))


def _added(parts: Any) -> list[int]:
    return [int(total) for total in np.sum(list(parts), axis=0)]


CONTENDERS: dict[str, Callable[[int], Work]] = {
    "ours-few": lambda n: ours(n, FEW),
    "loop": loop,
    "blocks": blocks,
    "ours-uniform": lambda n: ours(n, MANY),
    "chunks-uniform": lambda n: chunks(n, "uniform"),
    "ours-images": lambda n: ours(n, MANY, "images"),
    "chunks-images": lambda n: chunks(n, "images"),
}


def near_pairs(_folder: Path, scale: float) -> Case:
    """Losses with abstention over all pairs: 3 dimensions and 3,072."""
    few, many = int(1e5 * scale), int(1e4 * scale)
    case = Case(f"near and misranked pairs among {few:,} points in 3 dimensions and {many:,} in {MANY:,}")
    _few(case, few)
    _many(case, many)
    return case


def _few(case: Case, n: int) -> None:
    mine = add(case, "near_pairs", f"concordant, {n:,} points in 3 dimensions, ℓ2", "ours-few", n)
    looped = add(case, "near_pairs", "double loop over all pairs, Numba, two threads", "loop", n)
    blocked = add(case, "near_pairs", "blocks of all pairs, NumPy", "blocks", n)
    case.bar("against the double loop", looped.seconds / mine.seconds, "×", least=8)
    case.bar("against NumPy", blocked.seconds / mine.seconds, "×", least=100)
    different = sum(row.result.get("counts") != mine.result["counts"] for row in (looped, blocked))
    case.bar("contenders with other counts", different, "", most=0)


def _many(case: Case, n: int) -> None:
    for kind in ("images", "uniform"):
        mine = add(
            case, "near_pairs", f"concordant, {n:,} points in {MANY:,} dimensions, ℓ∞, {kind}", f"ours-{kind}", n
        )
        theirs = add(case, "near_pairs", f"scipy cdist in chunks, {kind}", f"chunks-{kind}", n)
        case.bar(f"{kind}, against cdist", theirs.seconds / mine.seconds, "×", least=10)
        case.bar(f"{kind}, peak memory", mine.peak / 1024, " GiB", most=1e9 / 2**30)
        different = int(theirs.result.get("counts") != mine.result["counts"])
        case.bar(f"{kind}, contenders with other counts", different, "", most=0)


def main(name: str, number: int) -> None:
    """Measure one contender and print its figures, or all of one kind."""
    if name in ("few", "many"):
        (_few if name == "few" else _many)(Case(name), number)
    else:
        report(CONTENDERS[name](number), 3 if name.startswith("ours") else 1, answer="counts")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
