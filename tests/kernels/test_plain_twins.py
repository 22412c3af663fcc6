"""Without Numba: every plain twin against its loop, and commands against what they say with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from concordant.apps.commands import main
from concordant.kernels import (
    circulation,
    draws,
    graded_pairs,
    newton_blocks,
    orders,
    pair_slopes,
    paths,
    tournaments,
    walks,
)

ROOT = Path(__file__).resolve().parent.parent.parent
VOTES = ROOT / "src" / "concordant" / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"
CLUEWEB = ROOT / "tests" / "data" / "clueweb09"
Drawn = Callable[[np.random.Generator, int], tuple[Any, ...]]


def edges(rng: np.random.Generator, m: int) -> tuple[Any, Any, Any]:
    """Net preferences of most pairs of m items, by winner."""
    first, second = np.triu_indices(m, 1)
    kept = (rng.random(len(first)) < 0.8) | (second == first + 1)
    up = rng.random(len(first)) < 0.5
    winner, loser = np.where(up, first, second)[kept], np.where(up, second, first)[kept]
    sorter = np.lexsort((loser, winner))
    return winner[sorter], loser[sorter], rng.integers(1, 6, kept.sum()).astype(float)


def grouped(m: int) -> tuple[Any, Any]:
    """Offsets of three groups, one empty, and the number of items."""
    return np.array([0, m, m, 2 * m + 1]), 2 * m + 1


def with_totals(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    first, second = np.triu_indices(m, 1)
    owner, over, pair = (np.repeat(one, 3) for one in (first, second, np.arange(len(first))))
    forward = rng.random(len(owner)) < 0.6
    owner, over = np.where(forward, owner, over), np.where(forward, over, owner)
    sorter = np.argsort(owner, kind="stable")
    wins = np.bincount(pair, forward, len(first))
    start = np.searchsorted(owner[sorter], np.arange(m + 1))
    given = over[sorter], pair[sorter], forward[sorter], wins, np.full(len(first), 1.5), np.full(len(first), 0.7)
    return 30, np.uint64(7), start, *given, np.empty(5)


def packing(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    winner, loser, weight = edges(rng, m)
    start = np.concatenate(([0], np.cumsum(np.bincount(winner, minlength=m))))
    place = rng.permutation(m)
    loss = weight[place[winner] > place[loser]].sum()
    return start, winner, loser, weight, place, loss, 1e-9, 40 * m * m, np.zeros(len(weight))


def one_component(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    winner, loser, weight = edges(rng, m)
    return 0, m, np.array([0, len(winner)]), winner, loser, weight


def sets(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    m = min(m, 11)
    return m, *orders._tables(*one_component(rng, m))[:2]


def neighbours(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    start, other, push = orders.incidence(m, *edges(rng, m))
    return int(rng.integers(m)), start, other, push, rng.permutation(m).astype(float)


def slots(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    v, start, other, push, key = neighbours(rng, m)
    key[rng.integers(m, size=m // 2)] = 3.0  # some at the same number
    orders._sorted_neighbours(v, start, other, push, key)
    return v, int(start[v]), int(start[v + 1]), other, push, key


def entering(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    winner, loser, weight = edges(rng, m)
    n = len(winner)
    flow = np.where(rng.random(n) < 0.5, 0.0, weight)
    given = winner, loser, np.ones(n), rng.normal(size=m), flow, rng.random(n) < 0.2, 0.5
    return n, int(rng.integers(n)), max(1, n // 3), *given


def blocks(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    winner, loser, weight = edges(rng, m)
    both = np.concatenate((winner, loser)), np.concatenate((loser, winner))
    return np.array([0, m]), np.array([0, 2 * len(winner)]), *both, np.tile(weight, 2)


def newton(kind: int) -> Drawn:
    def drawn(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        given, out = blocks(rng, m), (np.zeros(m), np.zeros(1, np.int64), np.zeros(1, bool))
        return kind, *given, rng.normal(size=len(given[-1])) * 0.1, 0, 1, 1e-9, 60, *out

    return drawn


def gains(logistic: bool) -> Drawn:
    def drawn(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        start, n = grouped(m)
        return logistic, start, rng.exponential(size=n), rng.normal(size=n), 0, 3, np.zeros(3), np.zeros(n), np.zeros(n)

    return drawn


def falling_gains(rng: np.random.Generator, m: int) -> tuple[Any, Any, Any]:
    start, n = grouped(m)
    gain = np.concatenate([-np.sort(-rng.integers(0, 4, b - a)) for a, b in pairwise(start)]).astype(float)
    return rng.exponential(size=n) + 1e-3, gain, start


def slopes(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    score, gain, start = falling_gains(rng, m)
    return score, gain, start, 0, 3, np.zeros(len(gain)), np.zeros(len(gain))


def losses(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    return *falling_gains(rng, m), 0, 3, np.zeros(3)


def swaps(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    score, _, start = falling_gains(rng, m)
    gain, discount = rng.integers(0, 4, len(score)).astype(float), 1.0 / np.log2(2.0 + np.arange(m + 1))
    out = np.zeros(len(score)), np.zeros(len(score))
    return score, gain, discount, np.array([0.5, 0.0, 2.0]), start, 0, 3, 4, *out


def logistic(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    start, n = grouped(m)
    rank = np.concatenate([np.sort(rng.integers(0, 4, b - a)) for a, b in pairwise(start)])
    return rng.normal(size=n) * 3, rank, rank * 1.5, start, bool(m % 2), np.zeros(3), np.zeros(n)


def ties_of_walks(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
    """A walk of m knots and one of another knot, tied by games."""
    prior, step = np.zeros(m + 1), np.append(rng.exponential(size=m - 1) + 0.1, [0.0, 0.0])
    prior[[0, m]] = 1.0
    one, other, weight = rng.integers(0, m, 3 * m), np.full(3 * m, m), rng.exponential(size=3 * m)
    pivot, games = np.empty(m + 1), np.bincount(one, weight, m + 1) + np.bincount(other, weight, m + 1)
    walks.factor(prior, step, games, pivot)
    return prior, step, one, other, weight, pivot, rng.normal(size=m + 1), 1e-9, np.empty(m + 1)


TWINS: dict[str, tuple[Any, Drawn]] = {
    "below": (draws.below, lambda rng, m: (rng.integers(1 << 63, dtype=np.uint64), np.uint64(m), m)),
    "totals": (tournaments.with_the_same_totals, with_totals),
    "entering": (circulation._entering, entering),
    "logistic blocks": (newton_blocks.newton_blocks, newton(newton_blocks.LOGISTIC)),
    "exponential blocks": (newton_blocks.newton_blocks, newton(newton_blocks.EXPONENTIAL)),
    "squared hinge blocks": (newton_blocks.newton_blocks, newton(newton_blocks.SQUARED_HINGE)),
    "logistic gains": (newton_blocks.pairs_of_gains, gains(True)),
    "exponential gains": (newton_blocks.pairs_of_gains, gains(False)),
    "gain pairs": (pair_slopes.gain_pairs, slopes),
    "gain losses": (pair_slopes.gain_losses, losses),
    "lambda pairs": (pair_slopes.lambda_pairs, swaps),
    "logistic lists": (graded_pairs.logistic_pairs, logistic),
    "packing": (paths.pack, packing),
    "tables": (orders._tables, one_component),
    "least": (orders._least, sets),
    "neighbours": (orders._sorted_neighbours, neighbours),
    "slots": (orders._best_slot, slots),
    "walks": (walks.solve, ties_of_walks),
}
"""Each loop that has a twin beside it, and what draws its arguments."""
INSIDE = {"_solve", "_slope", "circulations"}
"""Twins that are parts of others, or call loops on lists, which nothing compiled takes: held by the commands below."""


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("m", [2, 11, 31])
def test_a_twin_is_its_loop(name: str, m: int) -> None:
    kernel, drawn = TWINS[name]
    m = min(m, 11) if name in ("tables", "least") else m
    for seed in range(3):
        loop, twin = (drawn(np.random.default_rng([seed, m]), m) for _ in range(2))
        found = [*_many(kernel(*loop)), *loop], [*_many(getattr(kernel, "twin", kernel)(*twin)), *twin]
        for a, b in list(zip(*found, strict=True))[-1 if name == "totals" else 0 :]:  # whose tables are used up
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def _many(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else () if found is None else (found,)


def test_no_twin_is_left_out() -> None:
    with_one = {kernel.__name__ for kernel, _ in TWINS.values()}
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "concordant" / "kernels").glob("*.py"))
    assert set(re.findall(r"@(?:compiled|reordered)\(twin=\w+\)\ndef (\w+)", text)) - INSIDE == with_one


# -- commands where neither Numba nor scikit-learn can be imported -----------------------------------------------------
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite", "sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from concordant.apps.commands import main
main()
"""


def without(folder: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command without the extras."""
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    done = subprocess.run([sys.executable, "-c", WITHOUT, *words], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def with_them(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Run the command in this process, with the extras."""
    monkeypatch.chdir(folder)
    main([*words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("light")
    lines = VOTES.read_text(encoding="utf-8").splitlines(keepends=True)
    (place / "votes.csv").write_text("".join(lines[:2500]), encoding="utf-8")
    for name in ("votes.csv.gz", "train.txt.gz"):
        shutil.copy(CLUEWEB / name, place / f"cw-{name}")
    return place


def close(a: Any, b: Any) -> None:
    """The same values, numbers to 1e-7 of each other."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a.keys() - {"versions", "seconds", "platform", "created", "name"}:
            close(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for left, right in zip(a, b):
            close(left, right)
    elif isinstance(a, float) and isinstance(b, int | float):
        assert a == pytest.approx(b, rel=1e-7, abs=1e-9)
    else:
        assert a == b


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("rank votes.csv -o {}.json", "{}.json"),
        ("rank votes.csv --structure kemeny --interval none -o {}.json", "{}.json"),
        ("audit votes.csv --replicates 50 -o {}.json", "{}.json"),
    ],
)
def test_answers_are_those_of_compiled_loops(
    words: str, written: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = without(folder, *words.format("plain").split())
    with_them(folder, monkeypatch, *words.format("quick").split())
    close(*(json.loads((folder / written.format(one)).read_text(encoding="utf-8")) for one in ("plain", "quick")))
    assert done.stderr.count("concordant[fast]") <= 1


def test_a_model_is_that_of_compiled_loops(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = "fit cw-votes.csv.gz --features cw-train.txt.gz -q --model"
    export = "export --to json -q --model"
    done = without(folder, *fit.split(), "plain")
    assert "Traceback" not in done.stderr
    without(folder, *export.split(), "plain", "-o", "plain-model.json")
    with_them(folder, monkeypatch, *fit.split(), "quick")
    with_them(folder, monkeypatch, *export.split(), "quick", "-o", "quick-model.json")
    close(*(json.loads((folder / f"{one}-model.json").read_text(encoding="utf-8")) for one in ("plain", "quick")))


def test_a_report_needs_neither_and_says_what_it_would_bring(folder: Path) -> None:
    done = without(folder, "report", "votes.csv", "-o", "report.html")
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    notes = [line for line in done.stderr.splitlines() if "concordant[fast]" in line]
    assert len(notes) == 1 and notes[0].startswith("note: loops ran uncompiled")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("fit cw-votes.csv.gz --features cw-train.txt.gz -m m --regressor random-forest", "concordant[sklearn]"),
        ("reproduce abstention --quick", "concordant[sklearn]"),
    ],
)
def test_what_needs_scikit_learn_says_so(words: str, extra: str, folder: Path) -> None:
    done = without(folder, *words.split(), status=2)
    assert done.stderr.splitlines()[-1].startswith("error: ") and extra in done.stderr
    assert done.stdout == ""


def test_rankers_keep_the_conventions_without_scikit_learn(folder: Path) -> None:
    """``get_params``, ``set_params``, ``clone``, fitted or not, pickle: as scikit-learn's own estimators."""
    code = (
        WITHOUT.partition("from concordant")[0]
        + """
import pickle
import numpy as np, concordant as cc
from concordant.learning.scikit import NotFittedError, clone
for name in cc.__all__:
    if name.endswith(("Ranker", "Rankers")):
        made = getattr(cc, name)(cc.ListRanker()) if name == "AbstainingRanker" else getattr(cc, name)()
        again = clone(made)
        assert type(again) is type(made) and repr(again) == repr(made), made
        assert made.get_params(deep=False).keys() == again.get_params(deep=False).keys()
        try:
            made.predict(np.eye(2))
        except NotFittedError as error:
            assert "not fitted" in str(error)
        else:
            raise AssertionError(name)
ranker = cc.ListRanker(ridge=2.0).set_params(ridge=0.5)
assert repr(ranker) == "ListRanker(ridge=0.5)", ranker
X = np.arange(12.0).reshape(6, 2)
fitted = ranker.fit((X, list("abcabc"), list("pppqqq")), [0, 1, 2, 1, 2, 0])
assert (pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)).all()
try:
    ranker.set_params(nothing=1)
except ValueError as error:
    assert "nothing" in str(error)
outer = cc.QueryRankers(cc.ListRanker())
assert outer.set_params(ranker__ridge=3.0).ranker.ridge == 3.0 and outer.get_params()["ranker__ridge"] == 3.0
"""
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
