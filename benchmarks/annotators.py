"""Ways to learn from several annotators, on real votes: ``python -m benchmarks.annotators``; about an hour on one core.

Vicuna-80 and LLMFAO (answers to prompts, several people on a pair), PandaLM (one pair a prompt, three people: a
control, where the usual loss is right), Arena (models without features, one person on each battle; the same battles
beside three judge models). A text is a bag of hashed words and a few counts; ``--texts FOLDER`` writes the answers and
``--embeddings FOLDER`` takes a row of numbers for each of them instead (NAME.npy, in that order). Scorers are linear;
``network`` stands before the arms whose scorer has one hidden layer, which are held against the usual loss of that.

Held out are a third of the votes (of the same answers and people), of the prompts, or of the annotators, in ten splits.
What is foretold is which side a held-out vote prefers; ties count half for each side, and not for the accuracy. What an
arm has to choose it chooses by votes held out of the rest in the same manner, and the size of its scores, too, so that
every arm has a log-loss. Results are kept as they come (``--keep``); ``--table`` only prints. Intervals are over pairs
of answers, prompts or annotators, whichever were held out, of the difference to the usual loss on the same votes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from scipy.stats import t as student
from sklearn.feature_extraction.text import HashingVectorizer

import concordant as cc
from concordant import torch as ct

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROOT = Path(__file__).resolve().parent.parent
USUAL = "one vote at a time"
NETWORK = f"network, {USUAL}"
RIDGES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
OF_NETWORKS = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Ridges: RIDGES are per judgment too, but of features that are not brought to one size."""
WORDS, INNER, HELD = 128, 2, 3
"""Hashed words; folds in which an arm chooses; one of so many parts is held out."""
MOST = 2
"""Camps that are tried."""
UNITS, STEPS, ROUNDS = 16, 60, 3
"""Of networks: hidden units, steps of L-BFGS at most, and how often votes are aggregated and the network fitted."""
HARM = -0.01
CAUTIOUS = ("aggregated", "repaired", "network, aggregated")
"""Arms that are to do no harm."""
Key = tuple[str, str, int]


# -- the votes ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Votes:
    """Answers with their features, and votes on pairs of them."""

    prompt: Ints
    """Of each answer."""
    X: Floats | None
    """(answers, features); None: nothing is known of an answer but which it is."""
    winner: Ints
    """Place of an answer, of each vote."""
    loser: Ints
    tie: NDArray[np.bool_]
    judge: Ints | None
    """Of each vote; None: nobody is named."""
    texts: tuple[str, ...] = ()

    def take(self, votes: Ints) -> Votes:
        """Return some votes on the same answers."""
        judge = None if self.judge is None else self.judge[votes]
        return replace(self, winner=self.winner[votes], loser=self.loser[votes], tie=self.tie[votes], judge=judge)

    def prefs(self, *, judges: bool = False) -> cc.Preferences:
        """Return them as preferences of items called by their places."""
        cluster = self.judge if judges else None
        query = self.prompt[self.winner]
        return cc.Preferences.from_comparisons(self.winner, self.loser, query, tie=self.tie, cluster=cluster)

    @property
    def features(self) -> Any:
        """Return what rankers take: one row for each answer."""
        X = np.eye(len(self.prompt)) if self.X is None else self.X
        return X, self.prompt, np.arange(len(self.prompt))

    def units(self, by: str) -> Ints:
        """Return what each vote belongs to: its pair of answers, its prompt or its annotator."""
        if by == "annotators":
            return self.judge if self.judge is not None else np.zeros(len(self.winner), np.int64)
        if by == "prompts":
            return self.prompt[self.winner]
        low, high = np.minimum(self.winner, self.loser), np.maximum(self.winner, self.loser)
        return np.unique(low * len(self.prompt) + high, return_inverse=True)[1].astype(np.int64)

    def folds(self, by: str, number: int, seed: Any) -> Ints:
        """Deal the votes, or what they belong to, into folds."""
        unit = np.arange(len(self.winner)) if by == "votes" else self.units(by)
        known, place = np.unique(unit, return_inverse=True)
        return (np.random.default_rng(seed).permutation(len(known)) % number)[place]


def _gathered(rows: Iterator[tuple[str, str, str, str, str, str | None]]) -> Votes:
    """Rows of (prompt, its text, answer, answer, outcome, annotator); outcome: left, right or tie."""
    prompts: dict[str, int] = {}
    judges: dict[str | None, int] = {}
    answers: dict[tuple[int, str], int] = {}
    votes: list[tuple[int, int, bool, int]] = []
    texts: list[tuple[str, str]] = []
    for name, question, one, other, outcome, judge in rows:
        q = prompts.setdefault(name, len(prompts))
        for text in (one, other):
            if (q, text) not in answers:
                answers[q, text] = len(texts)
                texts.append((question, text))
        i, j = answers[q, one], answers[q, other]
        if i != j:
            j_code = judges.setdefault(judge, len(judges))
            votes.append((*((j, i) if outcome == "right" else (i, j)), outcome == "tie", j_code))
    winner, loser, tie, who = np.array(votes, np.int64).T
    named = None if list(judges) == [None] else who
    prompt = np.array([q for q, _ in answers], np.int64)
    return Votes(prompt, _of_texts(texts), winner, loser, tie.astype(bool), named, tuple(text for _, text in texts))


def _of_texts(texts: list[tuple[str, str]]) -> Floats:
    """Roots of counts of hashed words, then length, lines, digits, variety, share of the words that were asked for."""
    hashing = HashingVectorizer(n_features=WORDS, alternate_sign=False, norm=None)
    bag = np.sqrt(hashing.transform([text for _, text in texts]).toarray())
    rows = []
    for question, text in texts:
        words, asked = text.lower().split(), set(question.lower().split())
        different = set(words)
        share = len(different & asked) / max(len(different), 1)
        digits = sum(letter.isdigit() for letter in text)
        variety = len(different) / max(len(words), 1)
        rows.append(
            (np.log1p(len(words)), np.log1p(text.count("\n")), np.log1p(digits), variety, share, float(not words))
        )
    return np.hstack([bag, np.array(rows)])


def _llmfao(folder: Path) -> Votes:
    prompts = {row["id"]: row["text"] for row in _lines(folder / "llmfao" / "prompts.jsonl")}
    answers = {(row["prompt"], row["model"]): row["result"] for row in _lines(folder / "llmfao" / "results.jsonl")}
    with open(folder / "llmfao" / "crowd-comparisons.csv", newline="", encoding="utf-8") as file:
        rows = [
            (int(row["prompt"]), int(row["model_x"]), int(row["model_y"]), row["winner"], row["worker"])
            for row in csv.DictReader(file)
        ]
    return _gathered((str(q), prompts[q], answers[q, a], answers[q, b], said, who) for q, a, b, said, who in rows)


def _vicuna(folder: Path) -> Votes:
    place = folder / "prd_vicuna80_human"
    answers = {
        (path.stem, row["question_id"]): row["text"]
        for path in sorted(place.glob("answer_*.jsonl"))
        for row in _lines(path)
    }

    def rows() -> Iterator[tuple[str, str, str, str, str, None]]:
        for path in sorted((place / "ratings-human").glob("*-human-reviewer_threeclass.jsonl")):
            one, other = path.name.removesuffix("-human-reviewer_threeclass.jsonl").split("-vs-")
            for row in _lines(path):
                q = row["question_id"]
                if (one, q) in answers and (other, q) in answers:
                    said = {1: "left", 2: "right"}.get(int(row["score"]), "tie")
                    yield str(q), row["text"], answers[one, q], answers[other, q], said, None

    return _gathered(rows())


def _pandalm(folder: Path) -> Votes:
    def rows() -> Iterator[tuple[str, str, str, str, str, str]]:
        for row in json.loads((folder / "pandalm_testset" / "testset-v1.json").read_text(encoding="utf-8")):
            question = f"{row['instruction']}\n{row['input']}"
            for who in ("annotator1", "annotator2", "annotator3"):
                said = {1: "left", 2: "right"}.get(row[who], "tie")
                yield question, question, str(row["response1"]), str(row["response2"]), said, who

    return _gathered(rows())


def _arena(folder: Path, *, models: bool) -> Votes:
    names: dict[str, int] = {}
    judges = ["human", *(("gpt-4-0125-preview", "claude-3-opus-20240229", "gpt-3.5-turbo") if models else ())]
    votes = []
    for judge, file in enumerate(judges):
        with gzip.open(folder / "arena_judges" / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                i, j = (names.setdefault(row[side], len(names)) for side in ("model_a", "model_b"))
                tie = row["winner"].startswith("tie")
                votes.append((*((j, i) if row["winner"] == "model_b" else (i, j)), tie, judge))
    winner, loser, tie, who = np.array(votes, np.int64).T
    return Votes(np.zeros(len(names), np.int64), None, winner, loser, tie.astype(bool), who if models else None)


def _lines(path: Path) -> Iterator[Any]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


SETS: dict[str, Callable[[Path], Votes]] = {
    "Vicuna-80": _vicuna,
    "LLMFAO": _llmfao,
    "PandaLM": _pandalm,
    "Arena": lambda folder: _arena(folder, models=False),
    "Arena and judges": lambda folder: _arena(folder, models=True),
}


# -- the arms ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Arm:
    """A way to learn: what it foretells, as log-odds or up to a factor, of held-out votes."""

    margins: Callable[[Votes, Votes, Any], Floats]
    """(votes to learn from, votes to foretell, setting) → one number for each of the latter, positive for its first."""
    settings: tuple[Any, ...] = (None,)
    """What it chooses among."""
    sized: bool = False
    """Whether the margins are log-odds as they are."""
    needs: str = ""
    """texts, or judges."""
    beside: str = USUAL
    """The arm that it is held against."""


def _surrogate(loss: str) -> Callable[[Votes, Votes, Any], Floats]:
    def margins(train: Votes, test: Votes, ridge: float) -> Floats:
        ranker = cc.EdgeRanker(loss, ridge=ridge).fit(train.features, train.prefs())
        return _gaps(ranker.predict(train.features), test)

    return margins


def _informed(train: Votes, test: Votes, _: Any) -> Floats:
    ranker = cc.AggregationRanker(gate=False).fit(train.features, train.prefs())
    return _gaps(ranker.predict(train.features), test)


def _repaired(train: Votes, test: Votes, ridge: float, pareto: int | str = "auto") -> Floats:
    ranker = cc.CopelandRanker(ridge=ridge, pareto=pareto).fit(train.features, train.prefs(judges=True))
    return _gaps(ranker.predict(train.features), test)


def _distributional(train: Votes, test: Votes, _: Any) -> Floats:
    found = cc.distributional(
        train.prefs(), train.features if train.X is not None else None, link="logistic", folds=INNER
    )
    if train.X is None:
        rows = found.to_arrow().to_pylist()
        mean, spread = np.zeros(len(train.prompt)), np.ones(len(train.prompt))
        for row in rows:
            mean[int(row["item"])], spread[int(row["item"])] = row["mean"], row["spread"]
    else:
        mean, spread = found.predict(train.features)
    wide = np.hypot(spread[test.winner], spread[test.loser])
    return (mean[test.winner] - mean[test.loser]) / wide


def _camps(train: Votes, test: Votes, _: Any) -> Floats:
    features = train.features if train.X is not None else None
    found = cc.camps(train.prefs(judges=True), features=features, most=MOST, folds=INNER, starts=4)
    if train.X is None:
        score = np.zeros((found.number, len(train.prompt)))
        for row in found.to_arrow().to_pylist():
            score[row["camp"] - 1, int(row["item"])] = row["score"]
    else:
        score = found.predict(train.features)
    known = {int(name): row for name, row in zip(found.names.tolist(), found.membership, strict=True)}
    assert test.judge is not None
    weight = np.array([known.get(int(who), found.share) for who in test.judge])
    chance = (weight.T * expit(score[:, test.winner] - score[:, test.loser])).sum(0)
    return np.asarray(np.log(chance) - np.log1p(-chance), np.float64)


def _network(loss: str) -> Callable[[Votes, Votes, float], Floats]:
    """One hidden layer on features of mean 0 and standard deviation 1, from one start, by whole batches."""

    def margins(train: Votes, test: Votes, ridge: float) -> Floats:
        assert train.X is not None
        spread = train.X.std(axis=0)
        X = (train.X - train.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        prefs = train.prefs()
        batch = cc.Batch.whole(prefs)
        rows = np.array([int(name) for name in prefs.items.tolist()])[batch.item]
        scorer = ct.ReluScorer(X.shape[1], UNITS)
        if loss == "informed":
            ct.fit_informed(scorer, X, prefs, rows=rows, ridge=ridge, rounds=ROUNDS, steps=STEPS)
        else:
            share = batch.judgments / batch.judgments.sum()  # a mean over all votes, of objectives that are one each
            objective = ct.surrogate(loss, batch)
            ct.fit(scorer, X, objective, rows=rows, weight=share, ridge=ridge, steps=STEPS)
        with torch.no_grad():
            return _gaps(scorer(torch.as_tensor(X)).numpy(), test)

    return margins


def _gaps(score: Floats, test: Votes) -> Floats:
    return np.asarray(score[test.winner] - score[test.loser], np.float64)


ARMS: dict[str, Arm] = {
    USUAL: Arm(_surrogate("ranknet"), RIDGES),
    "aggregated": Arm(_surrogate("difference-graph"), RIDGES),
    "repaired": Arm(_repaired, RIDGES),
    "repaired, two bind": Arm(partial(_repaired, pareto=2), RIDGES),
    "informed": Arm(_informed, sized=True, needs="texts"),
    "distributional": Arm(_distributional, sized=True),
    "camps": Arm(_camps, sized=True, needs="judges"),
    NETWORK: Arm(_network("ranknet"), OF_NETWORKS, needs="texts"),
    "network, aggregated": Arm(_network("difference-graph"), OF_NETWORKS, needs="texts", beside=NETWORK),
    "network, informed": Arm(_network("informed"), OF_NETWORKS, needs="texts", beside=NETWORK),
}
"""Another way is another line."""


def foretold(arm: Arm, train: Votes, test: Votes, by: str, seed: int) -> Floats:
    """Return the log-odds of each held-out vote's first side, once the arm has chosen on the rest."""
    if arm.sized:
        return arm.margins(train, test, arm.settings[0])
    fold = train.folds(by, INNER, [seed, 7])
    inner = range(INNER if len(arm.settings) > 1 else 1)
    parts = [(train.take(np.flatnonzero(fold != k)), train.take(np.flatnonzero(fold == k))) for k in inner]
    tie = np.concatenate([held.tie for _, held in parts])
    best: tuple[float, Any, float] = (np.inf, None, 1.0)
    for setting in arm.settings:
        margin = np.concatenate([arm.margins(rest, held, setting) for rest, held in parts])
        size = minimize_scalar(lambda log: _losses(np.exp(log) * margin, tie).mean(), bounds=(-4, 6), method="bounded")  # noqa: B023
        if size.fun < best[0]:
            best = (float(size.fun), setting, float(np.exp(size.x)))
    return best[2] * arm.margins(train, test, best[1])


def _losses(margin: Floats, tie: NDArray[np.bool_]) -> Floats:
    """−log P of what happened; of a tie the mean of both."""
    return np.asarray(np.where(tie, -0.5 * (log_expit(margin) + log_expit(-margin)), -log_expit(margin)), np.float64)


# -- measuring ---------------------------------------------------------------------------------------------------------
def cells(votes: Votes) -> Iterator[tuple[str, int]]:
    """Yield what can be held out, and how many splits tell something new."""
    yield "votes", 10
    if len(np.unique(votes.prompt)) > HELD:
        yield "prompts", 10
    if votes.judge is not None:
        judges = len(np.unique(votes.judge))
        yield "annotators", 10 if judges > 10 else judges


def measure(votes: Votes, by: str, split: int, lacking: list[str]) -> dict[str, Any]:
    """Return of each arm, for every unit: votes, decided ones, how many of these were foretold rightly, log-loss."""
    judges = 0 if votes.judge is None else len(np.unique(votes.judge))
    few = by == "annotators" and judges <= 10
    fold = votes.folds(by, judges if few else HELD, [0 if few else split, 2312])
    held = fold == (split if few else 0)
    train, test = votes.take(np.flatnonzero(~held)), votes.take(np.flatnonzero(held))
    known, place = np.unique(votes.units(by)[held], return_inverse=True)
    decided = np.bincount(place, ~test.tie)
    row: dict[str, Any] = {"units": known.tolist(), "votes": np.bincount(place).tolist()}
    row["decided"] = decided.astype(int).tolist()
    for name in lacking:
        arm = ARMS[name]
        if (arm.needs == "texts" and votes.X is None) or (arm.needs == "judges" and votes.judge is None):
            continue
        begin = time.perf_counter()
        margin = foretold(arm, train, test, by, split)
        right, loss = np.where(test.tie, 0.0, np.where(margin == 0, 0.5, margin > 0)), _losses(margin, test.tie)
        row[name] = {
            "right": [round(float(one), 1) for one in np.bincount(place, right)],
            "loss": [round(float(one), 3) for one in np.bincount(place, loss)],
            "seconds": round(time.perf_counter() - begin, 1),
        }
    return row


def difference(rows: list[dict[str, Any]], arm: str, what: str) -> tuple[float, float, int]:
    """Return the mean of an arm, less that of the one beside it, per vote, half its 95% interval, how many units."""
    gap: dict[int, float] = defaultdict(float)
    size: dict[int, float] = defaultdict(float)
    for row in rows:
        counted = row["decided" if what == "right" else "votes"]
        usual_one = row[ARMS[arm].beside][what]
        for unit, n, ours, usual in zip(row["units"], counted, row[arm][what], usual_one, strict=True):
            gap[unit] += ours - usual
            size[unit] += n
    d, n = (np.array([one[unit] for unit in gap]) for one in (gap, size))
    mean = float(d.sum() / n.sum())
    if len(d) < 2:
        return mean, np.nan, len(d)
    error = np.sqrt(len(d) / (len(d) - 1) * ((d - mean * n) ** 2).sum()) / n.sum()
    return mean, float(student.ppf(0.975, len(d) - 1) * error), len(d)


def table(found: dict[Key, dict[str, Any]]) -> str:
    """Return accuracy and log-loss of held-out votes, others as differences to the one beside, and the bar."""
    cells = [(name, by) for name in SETS for by in ("votes", "prompts", "annotators")]
    rows_of = {cell: [row for key, row in found.items() if key[:2] == cell and USUAL in row] for cell in cells}
    arms = [arm for arm in ARMS if arm != USUAL and any(arm in row for rows in rows_of.values() for row in rows)]
    lines, missed = [], defaultdict(list)
    for what, of, title in (("right", "decided", "accuracy"), ("loss", "votes", "log-loss")):
        lines += [f"| {title} | units | {USUAL} | " + " | ".join(arms) + " |", "|---" * (len(arms) + 3) + "|"]
        for (name, by), rows in rows_of.items():
            if not rows:
                continue
            mean = sum(sum(row[USUAL][what]) for row in rows) / sum(sum(row[of]) for row in rows)
            units = len({unit for row in rows for unit in row["units"]})
            line = f"| {name}, {by} | {units:,} | {mean:.4f} |"
            for arm in arms:
                known = [row for row in rows if arm in row]
                gap, half, _ = difference(known, arm, what) if known else (np.nan, np.nan, 0)
                line += f" {gap:+.4f} ± {half:.4f} |" if known else " – |"
                if what == "right" and arm in CAUTIOUS and gap - half < HARM:
                    missed[arm].append(f"{name}, {by} ({gap - half:+.4f})")
            lines.append(line)
        lines.append("")
    for arm in CAUTIOUS:
        if arm in arms:
            worst = ", ".join(missed[arm]) or "none"
            lines.append(f"no harm, {arm}: the lower end of the accuracy's difference is below {HARM} in: {worst}")
    seconds = {arm: np.median([row[arm]["seconds"] for row in found.values() if arm in row]) for arm in (USUAL, *arms)}
    lines.append("median seconds: " + ", ".join(f"{arm} {taken:.1f}" for arm, taken in seconds.items()))
    return "\n".join(lines)


def main() -> None:
    """Measure what is not kept yet, then print the table."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    wanted.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    wanted.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    wanted.add_argument("--splits", type=int, default=10)
    wanted.add_argument("--texts", type=Path, help="write the answers, a line each, to NAME.jsonl there, and stop")
    wanted.add_argument("--embeddings", type=Path, help="take the features of the answers from NAME.npy there")
    wanted.add_argument("--keep", type=Path, default=ROOT / "benchmarks" / "annotators.jsonl.gz")
    wanted.add_argument("--table", action="store_true", help="print what is kept and stop")
    options = wanted.parse_args()
    found = dict(_kept(options.keep))
    if not options.table:
        sets = {name: SETS[name](options.data) for name in options.sets}
        for name, votes in sets.items():
            if options.texts and votes.texts:
                lines = "".join(json.dumps(text) + "\n" for text in votes.texts)
                (options.texts / f"{name}.jsonl").write_text(lines, encoding="utf-8")
            if options.embeddings and votes.texts:
                sets[name] = replace(votes, X=np.load(options.embeddings / f"{name}.npy").astype(np.float64))
        if options.texts:
            return
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        torch.set_num_threads(1)
        todo = [(split, name, by) for name, votes in sets.items() for by, most in cells(votes)
                for split in range(min(most, options.splits))]  # fmt: skip
        for split, name, by in sorted(todo):
            row = found.setdefault((name, by, split), {"set": name, "by": by, "split": split})
            lacking = [arm for arm in options.arms if arm not in row]
            made = measure(sets[name], by, split, lacking) if lacking else {}
            if set(made) - {"units", "votes", "decided"}:
                row |= made
                _write(options.keep, found)
                print(name, by, split, {arm: row[arm]["seconds"] for arm in ARMS if arm in row}, flush=True)
    print(table(found))


def _kept(path: Path) -> Iterator[tuple[Key, dict[str, Any]]]:
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                yield (row["set"], row["by"], row["split"]), row


def _write(path: Path, found: dict[Key, dict[str, Any]]) -> None:
    text = "".join(json.dumps(found[key], separators=(",", ":")) + "\n" for key in sorted(found))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
