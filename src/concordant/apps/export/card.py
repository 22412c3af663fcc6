"""A model card: what a model is, what it learned from, how good it is and where it ends, for people and for the hub."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import concordant
from concordant.abstention.held_pairs import unfrozen
from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.export.export import loaded
from concordant.apps.models.directory import read_directory
from concordant.auditing.audit import audit as audit_of
from concordant.auditing.findings import Audit
from concordant.errors import Idle, InputError, UsageError, counted
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.estimator import Ranker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.scikit import check_is_fitted
from concordant.losses.metrics.metrics import metric, summarise
from concordant.preferences.preferences import Preferences
from concordant.progress import stage

METRICS = ("ndcg@10", "map", "err@10")


@dataclass(frozen=True)
class Figure:
    """One number, what it was measured on, and whether the model had not seen that."""

    name: str
    value: float
    error: float | None
    queries: int
    on: str
    unseen: bool


def figures_of_judgments(ranker: Any, features: Any, judgments: Preferences, on: str, *, unseen: bool) -> list[Figure]:
    """Return the concordance: the share of pairs in the order of the judgments. None where nothing is compared."""
    if features is None:
        raise UsageError("how well a model agrees with judgments needs the features of their items")
    try:
        found = float(ranker.score(features, judgments))
    except InputError:
        return []
    return [Figure("concordance", found, None, len(judgments.queries), on, unseen)]


def figures_of_labels(ranker: Any, labelled: tuple[Features, Any], on: str) -> list[Figure]:
    """Return metrics over graded labels: means over queries with standard errors."""
    features, labels = labelled
    labels = np.asarray(labels, np.float64)
    if len(labels) != len(features):
        raise UsageError(f"{len(labels):,} labels for {len(features):,} rows of features")
    query = np.zeros(len(features), np.int64) if features.query is None else features.query
    return list(_metrics(ranker.predict(features), labels, query, on))


def _metrics(scores: Any, labels: Any, query: Any, on: str) -> Iterator[Figure]:
    for name in METRICS:
        given = (labels > 0).astype(float) if name == "map" else labels
        found = summarise(metric(name)(scores, given, query))
        if found.queries:
            error = None if found.queries == 1 else found.standard_error
            yield Figure(name, found.mean, error, found.queries, on, True)


MARKS = re.compile(r"([\\`*_\[\]|~$])")
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
LEADS = re.compile(r"^([-+#=]|\d+(?=[.)](?:\s|$)))")
"""What makes a line a list, a heading, a rule."""
LINKS = (
    (re.compile(r":(?=//)"), "&#58;"),
    (re.compile(r"(?i)(?<=\bwww)\."), "&#46;"),
    (re.compile(r"@(?=\w)"), "&#64;"),
)
"""What makes a bare address a link, a name a mention."""


def escaped(text: object, *, begins: bool = True) -> str:
    """Return a text as one line of Markdown that shows it, whatever it holds; ``begins``: the line may begin with it.

    >>> print(escaped("<b>a|b</b>\\n[x](https://x) bradley-terry"))
    &lt;b&gt;a\\|b&lt;/b&gt; \\[x\\](https&#58;//x) bradley-terry
    """
    line = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    line = MARKS.sub(r"\\\1", line).translate(HTML)
    if begins:
        line = LEADS.sub(_disarmed, line)
    for marks, shown in LINKS:
        line = marks.sub(shown, line)
    return line


def _disarmed(found: re.Match[str]) -> str:
    return f"{found[1]}\\" if found[1].isdigit() else f"\\{found[1]}"


def quoted(text: object) -> str:
    """Return a text as a double-quoted scalar of YAML.

    >>> print(quoted('a "b"\\n: - é'))
    "a \\"b\\"\\n: - é"
    """

    def one(c: str) -> str:
        if c in '"\\':
            return f"\\{c}"
        if c == "\n":
            return "\\n"
        return c if c.isprintable() else f"\\U{ord(c):08x}"

    return f'"{"".join(map(one, str(text)))}"'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown; cells are escaped, numbers are to the right."""
    listed = [list(row) for row in rows]
    right = [all(isinstance(row[at], int | float) for row in listed) for at in range(len(header))]
    lines = [header, ["---:" if one else "---" for one in right]]
    lines += [[f"{cell:,}" if isinstance(cell, int) else escaped(cell, begins=False) for cell in row] for row in listed]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bulleted(lines: Iterable[object]) -> str:
    """Return a list of Markdown, every entry escaped."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


TASK = "tabular-regression"
"""The task of the hub that comes nearest: a row of numbers in, a number out."""
SOURCES = {
    "AggregationRanker": "Duchi, Mackey and Jordan, *The asymptotics of ranking algorithms*, Annals of Statistics "
    "41(5), 2013",
    "CopelandRanker": "Ge, Halpern, Micha, Procaccia, Shapira, Vorobeychik and Wu, *Axioms for AI alignment from human "
    "feedback*, NeurIPS 2024",
    "EdgeRanker": "Duchi, Mackey and Jordan, *On the consistency of ranking algorithms*, ICML 2010",
    "ListRanker": "Cossock and Zhang, *Statistical analysis of Bayes optimal subset ranking*, IEEE Transactions on "
    "Information Theory 54(11), 2008",
    "BoostedRanker": "Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of Statistics "
    "29, 2001",
    "RankBoostRanker": "Freund, Iyer, Schapire and Singer, *An efficient boosting algorithm for combining "
    "preferences*, JMLR 4, 2003",
    "AbstainingRanker": "Mao, Mohri and Zhong, *Ranking with abstention*, 2023",
}
SHOWN = 20
"""Coefficients that are shown, the largest first."""


@dataclass(frozen=True)
class _Seen:
    """All that a card is written from."""

    ranker: Any
    inner: Any
    """The ranker that scores, inside one that abstains."""
    name: str
    license: str
    version: str
    about: Mapping[str, Any]
    learned: Preferences | None
    figures: list[Figure]
    audit: Audit | None


def model_card(
    ranker: Any,
    *,
    judgments: Preferences | None = None,
    held_out: Preferences | None = None,
    features: Features | None = None,
    held_out_features: Features | None = None,
    labels: tuple[Features, Any] | None = None,
    audit: Audit | bool = True,
    name: str | None = None,
    license: str = "unknown",
    called: Mapping[str, str] | None = None,
    unsafe_pickle: bool = False,
) -> str:
    """Return the model card of a fitted ranker, Markdown with a YAML head as the Hugging Face hub reads it.

    The figures of what the ranker has not seen are the ``model-index``.

    Parameters
    ----------
    ranker : a fitted ranker, or the directory of a model, which says how it was made.
    judgments : what it learned from; the card gives their facts and the summary of their audit.
    held_out : judgments that it has not seen; the card gives their concordance, the share of pairs in their order.
    features : of the items of ``judgments``, for how well the scores agree with them.
    held_out_features : of the items of ``held_out``; None, ``features``.
    labels : graded labels that it has not seen, (Features, labels) as ``read_judged`` returns them; the card gives
        nDCG@10, MAP and ERR@10, means over queries with standard errors.
    audit : True makes one, False leaves it out, an ``Audit`` is taken as it is.
    name, license : the model's; the license is an identifier of the hub.
    called : what ``judgments``, ``held_out`` and ``labels`` are called in the card.
    unsafe_pickle : whether a model that holds a pickle is loaded.

    Texts of users are escaped. Errors: NotFittedError; UsageError for judgments without features; InputError.

    >>> from concordant.learning.rankers.edges import EdgeRanker
    >>> votes = Preferences.from_comparisons(["b", "c", "c", "a"], ["a", "b", "a", "b"])
    >>> fitted = EdgeRanker("ranknet").fit({"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}, votes)
    >>> card = model_card(fitted, judgments=votes, audit=False, name="lengths")
    >>> card.splitlines()[:2], "4 judgments" in card
    (['---', 'library_name: "concordant"'], True)

    Source: Mitchell and others, Model Cards for Model Reporting (2019); the hub's documentation of model cards.
    """
    if features is not None and judgments is None and held_out is None:
        raise Idle("features", "there are neither judgments nor held_out judgments of their items")
    if held_out_features is not None and held_out is None:
        raise Idle("held_out_features", "there are no held_out judgments")
    fitted = loaded(ranker, unsafe_pickle=unsafe_pickle)
    inner = unfrozen(fitted.ranker_) if isinstance(fitted, AbstainingRanker) else fitted
    if not isinstance(fitted, AbstainingRanker | QueryRankers | Ranker):
        raise UsageError(f"a {type(fitted).__name__} is no ranker of concordant; there is no card to write")
    check_is_fitted(fitted)
    kept: Mapping[str, Any] = {}
    if isinstance(ranker, str | os.PathLike):
        kept = read_directory(ranker).values
        name = name or Path(ranker).resolve().name
    about = kept.get("about") or {}
    names = {
        "judgments": "the judgments it learned from",
        "held_out": "held-out judgments",
        "labels": "held-out labels",
    }
    names |= dict(called or {})
    figures: list[Figure] = []
    if labels is not None:
        with stage("metrics of the labels"):
            figures += figures_of_labels(fitted, labels, names["labels"])
    if held_out is not None:
        rows = features if held_out_features is None else held_out_features
        with stage("agreement with held-out judgments"):
            figures += figures_of_judgments(inner, rows, held_out, names["held_out"], unseen=True)
    if judgments is not None and features is not None:
        with stage("agreement with the judgments"):
            figures += figures_of_judgments(inner, features, judgments, names["judgments"], unseen=False)
    found = audit if isinstance(audit, Audit) else None
    if audit is True and judgments is not None:
        found = audit_of(judgments)
    seen = _Seen(
        fitted,
        inner,
        name or "ranker",
        license,
        str(kept.get("concordant", concordant.__version__)),
        {key: Path(str(value)).name for key, value in about.items() if key in ("log", "features") and value},
        judgments,
        figures,
        found,
    )
    parts = [_head(seen), f"# {escaped(seen.name)}", *_body(seen)]
    return "\n\n".join(parts) + "\n"


def _head(seen: _Seen) -> str:
    lines = [
        "---",
        f"library_name: {quoted('concordant')}",
        f"license: {quoted(seen.license)}",
        f"pipeline_tag: {TASK}",
        "tags:",
        *(f"- {tag}" for tag in ("concordant", "ranking", "learning-to-rank", "preferences")),
    ]
    unseen = [one for one in seen.figures if one.unseen]
    if unseen:
        lines += ["metrics:", *(f"- {quoted(name)}" for name in dict.fromkeys(one.name for one in unseen))]
        lines += ["model-index:", f"- name: {quoted(seen.name)}", "  results:"]
        for on in dict.fromkeys(one.on for one in unseen):
            lines += [f"  - task:\n      type: {TASK}\n      name: Ranking"]
            lines += [f"    dataset:\n      type: {quoted(_slug(on))}\n      name: {quoted(on)}", "    metrics:"]
            for one in unseen:
                if one.on == on:
                    lines += [f"    - type: {quoted(one.name)}\n      name: {quoted(one.name)}"]
                    lines += [f"      value: {one.value:.6f}"]
    return "\n".join([*lines, "---"])


def _slug(text: str) -> str:
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text).lower().split()) or "data"


def _body(seen: _Seen) -> Iterator[str]:
    kind = type(seen.ranker).__name__
    yield (
        f"A scoring function of item features, learned from what people preferred, by `{kind}` of concordant "
        f"{escaped(seen.version)}. It gives every item of a query a "
        "score; sorted by score, highest first, the items are ranked."
    )
    yield "## Intended use"
    yield (
        "Ranking the items of one query, or of one list, by features that were made as those it learned from. Only "
        "differences of scores within a query mean something: a score is no probability, and scores of different "
        "queries do not compare. People who are ranked, or whose work is, should know it and be able to object."
    )
    yield "## Data"
    yield from _data(seen)
    yield "## How it was fitted"
    yield from _fitted(seen)
    yield "## Evaluation"
    yield from _evaluation(seen)
    if seen.audit is not None:
        yield "## Audit of the judgments"
        yield "Whether preferences like these can lead to the right order, and how sure that is:"
        yield bulleted(seen.audit.summary)
        if seen.audit.notes:
            yield bulleted(seen.audit.notes)
    yield "## Limits"
    yield bulleted(_limits(seen))
    yield "## How to load it"
    yield (
        '```python\nimport concordant as cc\n\nranker = cc.load_model("model")  # the folder that holds model.json\n'
        'scores = ranker.predict(cc.read_features("items.csv"))\n```'
    )
    yield "## Citation"
    sources = [SOURCES[name] for name in dict.fromkeys((kind, type(seen.inner).__name__)) if name in SOURCES]
    yield "\n".join(f"- {one}" for one in ["concordant (`CITATION.cff` of its source)", *sources])


def _data(seen: _Seen) -> Iterator[str]:
    if seen.about:
        said = {"log": "judgments", "features": "features of the items"}
        yield bulleted(f"{said[key]}: {value}" for key, value in seen.about.items())
    if seen.learned is not None:
        yield f"The judgments: {escaped(seen.learned.facts)}."
    rows = _status(seen)
    held = [counted(int(rows[name]), name) for name in ("queries", "rows") if isinstance(rows.get(name), int)]
    if held:
        yield f"It learned from {escaped(' and '.join(held))}."
    width = seen.ranker.n_features_in_
    names = getattr(seen.ranker, "feature_names_in_", None)
    if names is None:
        yield f"Features: {width:,}, without names."
    else:
        shown = ", ".join(escaped(name) for name in list(names)[:60])
        yield f"Features ({width:,}): {shown}{', …' if width > 60 else ''}."


def _status(seen: _Seen) -> Mapping[str, Any]:
    return getattr(seen.inner, "status_", None) or {}


def _fitted(seen: _Seen) -> Iterator[str]:
    rows = [("ranker", type(seen.ranker).__name__)]
    if seen.inner is not seen.ranker:
        rows.append(("ranker inside", type(seen.inner).__name__))
    params = seen.inner.get_params(deep=False) if hasattr(seen.inner, "get_params") else {}
    regressor = getattr(seen.inner, "foreign_", None)
    rows.append(("scorer", "linear in the features" if regressor is None else type(regressor).__name__))
    if hasattr(seen.inner, "rules_"):
        rows[-1] = ("scorer", counted(len(seen.inner.rules_.alpha), "threshold rules"))
    elif isinstance(seen.inner, QueryRankers):
        rows[-1] = ("scorer", f"one for each of {counted(len(seen.inner.rankers_), 'queries')}")
    status = _status(seen)
    chosen = {name: params[name] for name in ("loss", "phi", "missing") if params.get(name) is not None}
    told = ("structure", "order", "gain", "ridge", "target", *(["loss"] if chosen.get("loss") == "auto" else []))
    chosen |= {name: status[name] for name in told if status.get(name) is not None}
    chosen |= {"missing": seen.inner.missing_} if "missing" in chosen else {}
    rows += [(name, f"{value:.6g}" if isinstance(value, float) else str(value)) for name, value in chosen.items()]
    normaliser = getattr(seen.inner, "normaliser_", None)
    if normaliser is not None:
        steps = ["logarithms"] * normaliser.log + ["standardised"] * normaliser.standardise
        rows.append(("features are", " and ".join(steps) or "taken as they are"))
    if status.get("status"):
        rows.append(("the fit ended with", str(status["status"])))
    if status.get("validation"):
        rows.append(("when it was fitted", str(status["validation"]["said"])))
    if status.get("consistent_for"):
        rows.append(("consistent for", f"{status['consistent_for']}, given: {status['condition']}"))
    yield table(("", ""), rows)
    if (coefficients := getattr(seen.inner, "coef_standardised_", None)) is not None:
        yield from _coefficients(seen, np.asarray(coefficients, np.float64))
    if "gain_of_features" in status:
        yield from _gains(seen.inner.explain_.slice(0, SHOWN), seen.ranker.n_features_in_)
    if isinstance(seen.ranker, AbstainingRanker):
        rule = seen.ranker.rule_
        yield f"It leaves two items without order where that is too risky: by {rule.by}, at a cost of {rule.cost:g}."


def _gains(shown: Any, width: int) -> Iterator[str]:
    more = f", the {SHOWN} of most gain of {width:,}" if width > SHOWN else ""
    yield (
        "What features are worth: the coefficient of the standardised feature in the linear part, and its share of "
        f"what the splits of the trees gain{more}:"
    )
    rows = [
        (one["feature"], *(float(f"{one[name]:.4g}") for name in ("coefficient", "gain"))) for one in shown.to_pylist()
    ]
    yield table(("feature", "coefficient", "gain"), rows)


def _coefficients(seen: _Seen, theta: Any) -> Iterator[str]:
    order = np.argsort(-np.abs(theta), kind="stable")[:SHOWN]
    names = getattr(seen.ranker, "feature_names_in_", range(1, len(theta) + 1))
    said = "on standardised features" if seen.inner.standardise else "on the features as they are"
    more = f", the {SHOWN} largest of {len(theta):,}" if len(theta) > SHOWN else ""
    yield f"Coefficients {said}{more}:"
    yield table(("feature", "coefficient"), [(str(names[at]), float(f"{theta[at]:.4g}")) for at in order])


def _evaluation(seen: _Seen) -> Iterator[str]:
    if not seen.figures:
        yield "Not evaluated: no judgments or labels were given when this card was written."
        return
    rows = []
    for one in seen.figures:
        error = "" if one.error is None else f"± {one.error:.4f}"
        rows.append((one.name, f"{one.value:.4f} {error}".strip(), one.queries, one.on, "no" if one.unseen else "yes"))
    yield table(("metric", "value", "queries", "measured on", "seen in training"), rows)
    yield (
        "Concordance is the share of pairs in the order of the judgments, a tie in score counting ½ (0.5 is chance). "
        "± is the standard error over queries. “Seen in training” is what whoever wrote this card said it is."
    )


def _limits(seen: _Seen) -> list[str]:
    said = [
        "It knows an item by its features alone, and prefers what the people who judged preferred, mistakes and "
        "prejudices included.",
        "Judgments made elsewhere, at another time or by other people may differ; figures above say nothing of them.",
    ]
    if not any(one.unseen for one in seen.figures):
        said.append("There are no figures on data that it has not seen.")
    if seen.audit is None:
        said.append("Whether the judgments can lead to the right order at all was not audited.")
    return said + [str(note) for note in _status(seen).get("notes", ())]
