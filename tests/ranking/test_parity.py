"""Agreement with well-kept peers where they are right, and better answers where they fail in silence.

choix and evalica come with the extra 'test'. crowd-kit and arena-rank are skipped where they are missing: arena-rank
pins its own numpy, so it runs in the environment of the benchmarks, or by the Python that CONCORDANT_ARENA_PYTHON
names.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import concordant as cc
from concordant import Preferences
from concordant.errors import NoMaximumLikelihood
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.closed_forms import budgeted_borda, counting
from concordant.ranking.plackett_luce import plackett_luce
from conftest import ROOT

Floats = NDArray[np.float64]
ARENA = Path(os.environ.get("CONCORDANT_ARENA_PYTHON", ROOT / ".venv-arena" / "bin" / "python"))


@pytest.fixture
def choix() -> ModuleType:
    return pytest.importorskip("choix", reason="choix, a peer, is not installed (extra 'test')")


@pytest.fixture
def evalica() -> ModuleType:
    return pytest.importorskip("evalica", reason="evalica, a peer, is not installed (extra 'test')")


@pytest.fixture(scope="module")
def votes() -> Preferences:
    """The llmfao votes on 59 models, prompts pooled, many of them ties."""
    prefs = cc.read(ROOT / "src" / "concordant" / "apps" / "data" / "llmfao" / "crowd-comparisons.csv")
    assert prefs.tie is not None and 0.1 < np.average(prefs.tie, weights=prefs.count) < 0.9
    return Preferences.from_comparisons(prefs.winner, prefs.loser, tie=prefs.tie, count=prefs.count)


def uneven(ties: float = 0.0, seed: int = 3) -> Preferences:
    """Some 600 comparisons of 12 items that meet very unevenly, each won by either side now and then."""
    rng = np.random.default_rng(seed)
    strength, share = np.linspace(1.5, -1.5, 12), np.arange(1, 13) / 78
    one, other = rng.choice(12, 600, p=share), rng.choice(12, 600)
    one, other = one[one != other], other[one != other]
    one, other = np.concatenate([one, np.arange(12)]), np.concatenate([other, (np.arange(12) + 1) % 12])
    won = rng.random(len(one)) < 1 / (1 + np.exp(strength[other] - strength[one]))
    tie = rng.random(len(one)) < ties
    return Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one), tie=tie if ties else None)


def rows(prefs: Preferences) -> tuple[list[int], list[int], list[bool]]:
    """One row for each comparison: winner, loser (codes), tie."""
    tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    winner, loser, tied = (np.repeat(column, prefs.count).tolist() for column in (prefs.winner, prefs.loser, tie))
    return winner, loser, tied


# -- where they are right ----------------------------------------------------------------------------------------
def test_maximum_likelihood_of_choix(choix: ModuleType) -> None:
    prefs = uneven()
    winner, loser, _ = rows(prefs)
    theirs = choix.ilsr_pairwise(len(prefs.items), list(zip(winner, loser, strict=True)), tol=1e-12)
    np.testing.assert_allclose(bradley_terry(Batch.whole(prefs), prior=0).value, theirs - theirs.mean(), atol=1e-9)


def test_penalised_likelihood_of_choix(choix: ModuleType) -> None:
    prefs = Preferences.from_comparisons([0, 0, 1, 2, 2], [1, 2, 3, 3, 3])  # separated: only the penalty decides
    winner, loser, _ = rows(prefs)
    theirs = choix.opt_pairwise(4, list(zip(winner, loser, strict=True)), alpha=0.01, tol=1e-14)
    ours = bradley_terry(Batch.whole(prefs), prior=0.02)  # choix penalises α‖s‖², we (λ/2)‖s‖²
    np.testing.assert_allclose(ours.value, theirs, atol=1e-6)


def test_choices_from_sets_of_choix(choix: ModuleType) -> None:
    rng = np.random.default_rng(0)
    shown = [rng.choice(8, rng.integers(2, 6), replace=False) for _ in range(300)]
    chosen = [int(rng.choice(s, p=np.exp(-s / 4) / np.exp(-s / 4).sum())) for s in shown]
    prefs = Preferences.from_choices(
        None,
        np.repeat(np.arange(300), [len(s) for s in shown]),
        np.concatenate(shown),
        np.concatenate([s == c for s, c in zip(shown, chosen, strict=True)]).astype(int),
    )
    data = [(c, [int(i) for i in s if i != c]) for s, c in zip(shown, chosen, strict=True)]
    theirs = choix.ilsr_top1(8, data, tol=1e-12)
    np.testing.assert_allclose(plackett_luce(Batch.whole(prefs), prior=0).value, theirs - theirs.mean(), atol=1e-8)


def evalica_scores(peer: ModuleType, method: str, prefs: Preferences, **options: Any) -> Floats:
    winner, loser, tied = rows(prefs)
    verdicts = [peer.Winner.Draw if t else peer.Winner.X for t in tied]
    found = getattr(peer, method)(winner, loser, verdicts, **options).scores
    return np.asarray(found.loc[range(len(prefs.items))], np.float64)


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_bradley_terry_of_evalica(evalica: ModuleType, ties: float) -> None:
    prefs = uneven(ties)
    theirs = np.log(evalica_scores(evalica, "bradley_terry", prefs, tolerance=1e-14, limit=10**6))
    np.testing.assert_allclose(bradley_terry(Batch.whole(prefs), prior=0).value, theirs - theirs.mean(), atol=1e-8)


def test_bradley_terry_of_evalica_on_llmfao(evalica: ModuleType, votes: Preferences) -> None:
    theirs = np.log(evalica_scores(evalica, "bradley_terry", votes, tolerance=1e-14, limit=10**6))
    np.testing.assert_allclose(bradley_terry(Batch.whole(votes), prior=0).value, theirs - theirs.mean(), atol=1e-7)


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_win_rates_of_evalica(evalica: ModuleType, ties: float) -> None:
    prefs = uneven(ties)
    batch = Batch.whole(prefs)
    theirs = evalica_scores(evalica, "average_win_rate", prefs)
    np.testing.assert_allclose(budgeted_borda(batch).value, theirs, atol=1e-12)
    won, met = (
        evalica_scores(evalica, "counting", prefs),
        batch.graphs.add_to_nodes(*[batch.graphs.above + batch.graphs.below] * 2),
    )
    np.testing.assert_allclose(counting(batch).value, won / met, atol=1e-12)


def test_bradley_terry_of_crowd_kit() -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit, a peer, is not installed")
    import pandas as pd

    prefs = uneven()
    winner, loser, _ = rows(prefs)
    # its test of convergence compares an array with itself and ends after two steps, unless it can never be met
    frame = pd.DataFrame({"left": winner, "right": loser, "label": winner})
    theirs = np.log(aggregation.BradleyTerry(n_iter=20_000, tol=-1.0).fit_predict(frame).loc[range(12)].to_numpy())
    np.testing.assert_allclose(bradley_terry(Batch.whole(prefs), prior=0).value, theirs - theirs.mean(), atol=1e-6)


# -- arena-rank, in its own environment --------------------------------------------------------------------------
SCRIPT = """
import json, sys
import numpy as np, pandas as pd
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.utils.data_utils import PairDataset
a, b, outcome, options = json.load(sys.stdin)
data = PairDataset.from_pandas(pd.DataFrame({"model_a": a, "model_b": b, "winner": outcome}))
model = BradleyTerry(n_competitors=len(data.competitors), **options)
found = model.compute_ratings_and_cis(data)
score, variance = np.asarray(model.params["ratings"]), np.asarray(found["variances"]) / model.alpha**2
json.dump([list(map(str, data.competitors)), score.tolist(), np.sqrt(variance).tolist()], sys.stdout)
"""


def arena(prefs: Preferences, **options: float) -> tuple[Floats, Floats]:
    """Scores and sandwich standard errors, in the order of our items."""
    if not ARENA.exists():
        pytest.skip(f"arena-rank, a peer, is not installed: no {ARENA} (make bench, or CONCORDANT_ARENA_PYTHON)")
    winner, loser, tied = rows(prefs)
    names = [[f"{code:04d}" for code in side] for side in (winner, loser)]
    done = subprocess.run(
        [ARENA, "-c", SCRIPT],
        input=json.dumps([*names, ["tie" if t else "model_a" for t in tied], options]),
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    )
    order, score, error = json.loads(done.stdout)
    assert order == sorted(order)
    return np.array(score), np.array(error)


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_sandwich_intervals_of_arena_rank(ties: float) -> None:
    prefs = uneven(ties)
    score, error = arena(prefs, hessian_reg=1e-8, ftol=1e-15, gtol=1e-12)  # its ridge: 1e-8 a row
    board = cc.rank(prefs, prior=0, interval="sandwich").to_arrow().sort_by("item").to_pydict()
    np.testing.assert_allclose(board["score"], score - score.mean(), atol=1e-5)
    n = int(prefs.count.sum())
    half = 1.959963984540054 * error * np.sqrt(n / (n - 1))  # we count one degree of freedom less
    np.testing.assert_allclose(np.subtract(board["upper"], board["score"]), half, rtol=1e-4)
    np.testing.assert_allclose(np.subtract(board["score"], board["lower"]), half, rtol=1e-4)


# -- where they fail in silence ----------------------------------------------------------------------------------
SILENT = {
    "an item that never loses": ([0, 0, 1, 2], [1, 2, 2, 1]),
    "a chain": ([0, 1, 2], [1, 2, 3]),
    "two components": ([0, 2], [1, 3]),
}


def ours_is_an_error(prefs: Preferences) -> None:
    with pytest.raises(NoMaximumLikelihood, match=r"no chain of wins limits \d"):
        cc.rank(prefs, prior=0)


@pytest.mark.parametrize("case", SILENT)
def test_evalica_calls_all_equal_what_has_no_maximum(evalica: ModuleType, case: str) -> None:
    prefs = Preferences.from_comparisons(*SILENT[case])
    assert len(set(evalica_scores(evalica, "bradley_terry", prefs))) == 1  # and says nothing
    ours_is_an_error(prefs)
    board = cc.rank(prefs).to_arrow().sort_by("item").to_pydict()
    assert board["score"][0] > board["score"][1]
    assert board["flag"][0] == "never lost"
    assert board["upper"][0] == np.inf


@pytest.mark.parametrize("case", SILENT)
def test_choix_gives_a_number_for_what_has_no_maximum(choix: ModuleType, case: str) -> None:
    prefs = Preferences.from_comparisons(*SILENT[case])
    winner, loser, _ = rows(prefs)
    assert np.isfinite(choix.opt_pairwise(len(prefs.items), list(zip(winner, loser, strict=True)))).all()
    ours_is_an_error(prefs)


@pytest.mark.parametrize("case", SILENT)
def test_arena_rank_is_sure_of_what_has_no_maximum(case: str) -> None:
    prefs = Preferences.from_comparisons(*SILENT[case])
    _, error = arena(prefs)
    assert error[0] < 1e-3  # nearly no variance for the item of which least is known
    board = cc.rank(prefs, interval="sandwich").to_arrow().sort_by("item").to_pydict()
    assert board["upper"][0] == np.inf


def test_two_components_are_ranked_each_by_itself() -> None:
    board = cc.rank(Preferences.from_comparisons(*SILENT["two components"])).to_arrow().to_pydict()
    assert (board["component"], board["rank"]) == ([1, 1, 2, 2], [1, 2, 1, 2])
