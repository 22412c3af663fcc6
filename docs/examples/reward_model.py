"""A reward model on votes of several annotators: the usual pairwise logistic loss beside the difference graph.

::

    python docs/examples/reward_model.py [FOLDER]      # less than a minute on one core

FOLDER holds ``pandalm_testset/testset-v1.json`` (github.com/WeOpenML/PandaLM, data/) and ``prd_vicuna80_human/`` with
``answer_*.jsonl`` and ``ratings-human/`` (github.com/bcdnlp/PRD, data/vicuna80/); whichever is there is used.

A response is a bag of hashed words and a few counts; the reward is linear in them. Every prompt is held out once in
each of several five-fold splits; the ridge is chosen on a quarter of the training prompts, for each loss by itself.
What is compared: how often the reward prefers the response that most annotators of a held-out pair preferred.
Intervals are over prompts (paired, Student's t); they leave out the luck of what was trained on.

What comes out: no difference to be seen on either set (PandaLM .6875 for the usual loss, .6839 for ours, difference
−.0037 with 95% interval −.0110 to .0037; Vicuna-80 .8240 for both, ±.0051). That is what to expect where people mostly
agree (138 of 2,671 votes cancel in PandaLM) or follow a Bradley–Terry law, under which the usual loss is consistent
too. Ours protects against the laws under which it is not: ``tests/learning/test_torch_votes.py`` trains both on one
(Theorem 3 of Duchi, Mackey and Jordan), where the usual loss ends at the wrong order however many votes there are.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from concordant import compare
from concordant import torch as ct

RIDGES = (3e-1, 1e-1, 3e-2, 1e-2, 3e-3)
WORDS, SPLITS, FOLDS, STEPS = 512, 3, 5, 25

ours = ct.PreferenceLoss()


def usual_loss(reward: Any, chosen: Any, rejected: Any) -> Any:
    """What trainers of reward models use."""
    return -logsigmoid(reward[chosen] - reward[rejected]).mean()


def our_loss(reward: Any, chosen: Any, rejected: Any) -> Any:
    """The line that takes its place: it also needs to know which responses the rewards belong to."""
    return ours.pairs(reward[chosen], reward[rejected], chosen, rejected)


LOSSES: dict[str, Callable[..., Any]] = {"pairwise logistic": usual_loss, "difference graph": our_loss}


# -- the data ----------------------------------------------------------------------------------------------------------
@dataclass
class Votes:
    """Responses with their prompt and features, and votes without ties."""

    prompt: Any
    """(responses,)"""
    x: Any
    """(responses, features)"""
    winner: Any
    """(votes,) places of responses"""
    loser: Any


def gather(rows: Iterator[tuple[str, str, str, str, int]]) -> Votes:
    """Rows of (prompt, its text, response, response, verdict): 1 the first, 2 the second, else a tie."""
    prompts: dict[str, int] = {}
    responses: dict[tuple[int, str], int] = {}
    texts: list[tuple[str, str]] = []
    votes = []
    for name, question, one, two, verdict in rows:
        q = prompts.setdefault(name, len(prompts))
        for text in (one, two):
            if (q, text) not in responses:
                responses[q, text] = len(texts)
                texts.append((question, text))
        i, j = responses[q, one], responses[q, two]
        if verdict in (1, 2) and i != j:
            votes.append((i, j) if verdict == 1 else (j, i))
    prompt = torch.tensor([q for q, _ in responses])
    winner, loser = torch.tensor(votes).T
    x = np.array([features(question, text) for question, text in texts])
    x = (x - x.mean(0)) / np.maximum(x.std(0), 1e-9)
    x[:, :WORDS] /= np.sqrt(WORDS)  # all words together weigh as much as one count
    return Votes(prompt, torch.tensor(x), winner, loser)


def features(question: str, text: str) -> np.ndarray[Any, Any]:
    """Hashed words (roots of their counts), then length, lines, digits, variety, share of words that were asked for."""
    words = re.findall(r"\w+", text.lower())
    bag = np.bincount([zlib.crc32(word.encode()) % WORDS for word in words] or [0], minlength=WORDS)
    asked = set(re.findall(r"\w+", question.lower()))
    different = set(words)
    counts = (
        np.log1p(len(words)),
        np.log1p(text.count("\n")),
        np.log1p(sum(c.isdigit() for c in text)),
        len(different) / max(len(words), 1),
        len(different & asked) / max(len(different), 1),
        float(not words),
    )
    return np.append(np.sqrt(bag), counts)


def pandalm(path: Path) -> Iterator[tuple[str, str, str, str, int]]:
    """999 pairs of answers to 170 instructions, three annotators each."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        question = f"{row['instruction']}\n{row['input']}"
        for annotator in ("annotator1", "annotator2", "annotator3"):
            yield question, question, str(row["response1"]), str(row["response2"]), row[annotator]


def vicuna80(folder: Path) -> Iterator[tuple[str, str, str, str, int]]:
    """Answers of five models to 80 questions; one to six verdicts on each pair of them."""
    answers = {
        (path.stem, row["question_id"]): row["text"]
        for path in sorted(folder.glob("answer_*.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }
    for path in sorted((folder / "ratings-human").glob("*-human-reviewer_threeclass.jsonl")):
        one, two = path.name.removesuffix("-human-reviewer_threeclass.jsonl").split("-vs-")
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            q = row["question_id"]
            if (one, q) in answers and (two, q) in answers:
                yield str(q), row["text"], answers[one, q], answers[two, q], int(row["score"])


# -- training and judging ----------------------------------------------------------------------------------------------
def train(votes: Votes, prompts: Any, loss: Callable[..., Any], ridge: float) -> Any:
    """The linear reward with the least loss on these prompts plus (ridge/2)‖θ‖²; the rewards of all responses."""
    keep = torch.isin(votes.prompt[votes.winner], torch.as_tensor(prompts))
    chosen, rejected = votes.winner[keep], votes.loser[keep]
    scorer = ct.LinearScorer(votes.x.shape[1])
    search = torch.optim.LBFGS(scorer.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Any:
        search.zero_grad()
        value = loss(scorer(votes.x), chosen, rejected) + 0.5 * ridge * scorer.weight.square().sum()
        value.backward()
        return value

    search.step(closure)
    with torch.no_grad():
        return scorer(votes.x)


def agreement(votes: Votes, reward: Any, prompts: Any) -> Any:
    """Share of the pairs of each prompt where the reward sides with most annotators; NaN where there is none."""
    one, other, _ = ct.net_preferences(votes.winner, votes.loser)
    right = (reward[one] > reward[other]).double().numpy()
    of_prompt = votes.prompt[one].numpy()
    number = np.bincount(of_prompt, minlength=int(votes.prompt.max()) + 1)
    with np.errstate(invalid="ignore"):
        return (np.bincount(of_prompt, right, len(number)) / number)[prompts]


def held_out(votes: Votes, loss: Callable[..., Any], seed: int) -> tuple[Any, list[float]]:
    """Agreement on every prompt when it is held out, and the ridges that were chosen."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(int(votes.prompt.max()) + 1)
    found, chosen = np.full(len(order), np.nan), []
    for fold in range(FOLDS):
        test = order[fold::FOLDS]
        rest = np.setdiff1d(order, test)
        inner = rng.permutation(rest)
        check, fit = inner[: len(inner) // 4], inner[len(inner) // 4 :]
        worth = [np.nanmean(agreement(votes, train(votes, fit, loss, ridge), check)) for ridge in RIDGES]
        chosen.append(RIDGES[int(np.argmax(worth))])
        found[test] = agreement(votes, train(votes, rest, loss, chosen[-1]), test)
    return found, chosen


def report(name: str, votes: Votes) -> None:
    """Print both losses on one data set."""
    low, high = torch.minimum(votes.winner, votes.loser), torch.maximum(votes.winner, votes.loser)
    pairs, number = torch.unique(torch.stack((low, high)), dim=1, return_counts=True)
    net = int(ct.net_preferences(votes.winner, votes.loser)[2].sum())
    print(
        f"\n{name}: {int(votes.prompt.max()) + 1} prompts, {len(votes.prompt)} responses, {pairs.shape[1]} pairs, "
        f"{len(votes.winner)} votes ({number.double().mean():.1f} a pair), {len(votes.winner) - net} of them cancel"
    )
    results = {}
    for label, loss in LOSSES.items():
        runs = [held_out(votes, loss, seed) for seed in range(SPLITS)]
        results[label] = np.mean([run for run, _ in runs], axis=0)  # the same splits for both losses
        each = "  ".join(f"{np.nanmean(run):.4f}" for run, _ in runs)
        ridge = float(np.median([ridge for _, chosen in runs for ridge in chosen]))
        print(f"  {label:18} agreement {np.nanmean(results[label]):.4f}   splits {each}   median ridge {ridge:g}")
    longest = votes.x[:, WORDS]
    print(
        f"  {'longest answer':18} agreement {np.nanmean(agreement(votes, longest, np.arange(len(results[label])))):.4f}"
    )
    found = compare(results["difference graph"], results["pairwise logistic"])
    verdict = "no difference to be seen"
    if found.lower > 0 or found.upper < 0:
        verdict = "the difference graph is better" if found.mean > 0 else "the pairwise logistic loss is better"
    print(
        f"  difference {found.mean:+.4f}, 95% interval [{found.lower:+.4f}, {found.upper:+.4f}] "
        f"over {found.queries} prompts, p = {found.p_value:.2f}: {verdict}"
    )


def main() -> None:
    """Use the data that are there."""
    torch.set_num_threads(1)
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CONCORDANT_SHARED", beside))
    sets = {
        "PandaLM test set": (folder / "pandalm_testset" / "testset-v1.json", pandalm),
        "Vicuna-80 (PRD)": (folder / "prd_vicuna80_human", vicuna80),
    }
    there = {name: read(path) for name, (path, read) in sets.items() if path.exists()}
    if not there:
        sys.exit(f"no data in {folder}: see the top of this file for what to put there")
    for name, rows in there.items():
        report(name, gather(rows))


if __name__ == "__main__":
    main()
