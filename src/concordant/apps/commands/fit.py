"""``concordant fit``: read, match, learn, keep, say what came out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.apps.commands.fit_options import FitOptions
from concordant.apps.commands.given import worded
from concordant.apps.commands.idle import chosen_by
from concordant.apps.commands.matching import Matched, Valued, click_options, match, read_valued
from concordant.apps.commands.output import put_table
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import (
    as_written,
    asked_of,
    feature_stream,
    gigabytes,
    is_letor,
    labelled_like,
    one_cluster,
    read_feature_file,
    said_of_names,
)
from concordant.apps.commands.regressors import named_regressor
from concordant.apps.commands.standard import beside_the_result
from concordant.apps.models.directory import check_target
from concordant.apps.models.saving import save_model
from concordant.errors import InputError, UsageError, counted
from concordant.io.engines.counting import with_columns
from concordant.io.log.formats import locate
from concordant.io.read import read_log
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_judged
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.lists import LOSSES, ListRanker
from concordant.learning.rankers.target import Target
from concordant.losses.pair_losses import pair_loss
from concordant.losses.surrogates import surrogate
from concordant.preferences.counted import refuse_crossed
from concordant.progress import stage
from concordant.ranking.structures import structure


def fit(options: FitOptions) -> None:
    """Fit and keep the model; what is worth knowing goes to stderr, the curve of order='auto' to stdout."""
    log, quiet = options.log, options.quiet
    check_target(options.model)
    graded = options.kind == "labels" or (options.kind is None and is_letor(log))
    _settle(options, graded)
    ranker = _ranker(options, graded)  # a wrong name should not cost the reading of a large log
    if options.engine == "spark":
        from concordant.apps.commands import on_spark

        on_spark.fit(ranker, options)
        return
    if options.master is not None:
        raise UsageError(f"--master {options.master} belongs to --engine spark")
    with Progress(quiet, f"reading {log}"):
        features, judged, told = _labels(options) if graded else _preferences(options)
    if not quiet:
        if isinstance(features, FeatureFile):
            told.append(f"{options.features}: streamed from disk, {gigabytes(features)}")
        size = f"{counted(len(features), 'rows')} of {counted(len(features.names), 'features')}"
        source = options.features or log
        told.append(f"{source}: {size}")
        told += [f"note: {note}" for note in said_of_names(source, features.names, options)]
    if sys.stderr.isatty():  # elsewhere an error should be the only line
        tell(told)
    with Progress(quiet, "learning"):
        _fit(ranker, features, judged, options)
        with stage("agreement with the judgments"):
            agreement = _agreement(ranker, features, judged)
    options.settle(**chosen_by(ranker), gated="gate" in ranker.status_)
    place = save_model(ranker, options.model, about={"log": log, "features": options.features or log})
    if not quiet:
        tell(told)
    _say(ranker, agreement, None if graded else str(judged.kind), options)
    options.say("wrote", f"wrote {place}/", path=str(place))
    if hasattr(ranker, "cv_"):
        with beside_the_result():
            put_table(ranker.curve())


def _settle(options: FitOptions, graded: bool) -> None:
    """Refuse what nothing reads on the way from labels, or from preferences, by this loss."""
    if graded and options.engine == "spark":
        return  # which refuses labels
    log, loss, order = options.log, options.loss, options.order
    aggregated = order == "all" or (order == "auto" and loss != "gain-regression")
    options.settle(
        graded=graded,
        letor=graded and options.features is None and is_letor(log),
        reads=surrogate(loss).reads,
        listed=loss in LOSSES,
        draws=None if graded or not aggregated else False,
    )


def _fit(ranker: Any, features: Features | FeatureFile, judged: Any, options: FitOptions) -> None:
    try:
        ranker.fit(features, judged)
    except UsageError as error:
        if not isinstance(features, FeatureFile) or options.stream:
            raise
        raise UsageError(f"{error}; the table takes {gigabytes(features)}, --in-memory reads it all the same") from None


SAID = "concordance (pairs in the order of the judgments)"


def _agreement(ranker: Any, features: Features | FeatureFile, judged: Any) -> float | None:
    """How well the scores agree with what they were fitted to; None where nothing says so, as with one list a query."""
    try:
        return float(ranker.score(features, judged))
    except InputError:
        return None


def _say(ranker: Any, agreement: float | None, kind: str | None, options: FitOptions) -> None:
    asked = getattr(ranker, "target", None)
    target = "ndcg@10" if kind is None and asked is None else str(Target.of(asked, kind or ""))
    what = SAID if target == "pairwise" else target.replace("ndcg", "nDCG").replace("err", "ERR")
    found = "nothing to compare the scores with" if agreement is None else f"{what} {agreement:.4f}"
    options.say("fitted", f"on the training data: {found}; solver: {ranker.status_['status']}")
    options.say_notes(ranker.status_["notes"])


def _may_gate(options: FitOptions) -> bool:
    """Whether a gate holds judgments out, so that clusters matter."""
    named = (options.structure, options.gain, options.c0, options.informed)
    usual = options.order == "auto" and all(one is None for one in named)
    return options.loss == "gain-regression" and (usual if options.gate is None else options.gate)


def _preferences(options: FitOptions) -> tuple[Features | FeatureFile, Any, list[str]]:
    if options.features is None:
        raise UsageError("--features is missing: a preference log holds no features of its items")
    file = feature_stream(options.features, options)
    log = options.log
    reading = read_log(log, **asked_of(options))
    refuse_crossed(reading.preferences, "a fit")
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    if not options.quiet:
        told += [
            f"{log}: {reading.preferences.facts}",
            *(f"note: {worded(note)}" for note in one_cluster(reading.notes, used=_may_gate(options))),
        ]
    if file is not None:
        return file, reading.preferences, told + ([] if options.quiet else as_written(file, reading.preferences))
    with stage(f"reading {options.features}"):
        features = read_feature_file(options.features, options, missing=options.missing)
    features, converted = labelled_like(features, reading.preferences)
    told += [] if options.quiet else converted
    return features, reading.preferences, told


def _labels(options: FitOptions) -> tuple[Features, Any, list[str]]:
    """Return the rows that have a label, and the labels; a label without features is an error."""
    log = options.log
    if options.stream:
        raise UsageError("--stream is for preferences; graded labels are fitted in memory")
    if options.features is None:
        if not is_letor(log):
            raise UsageError(f"--features is missing: {log} holds labels only")
        keep = "raise" if options.missing == "raise" else "keep"
        features, labels = read_judged(log, missing=keep)
        return features, labels, []
    features = read_feature_file(options.features, options, missing=options.missing)
    columns = {"query": options.query, "item": options.item, "label": options.label}
    judged = read_valued(log, "label", columns)
    found = match(_as_valued(features, options.features), judged, "skip")
    rows = found.score.astype(np.int64)
    if len(rows) < len(judged.item):
        _say_missing(features, judged, found)
    bare = len(features) - len(rows)
    told = [f"{bare:,} of {len(features):,} rows have no label: nothing is learned there"] if bare else []
    return features.take(rows), found.label, told


def _as_valued(features: Features, name: str) -> Valued:
    """Return the rows of the features, each with its number, as what labels can be matched with."""
    item = features.items.take(features.item).cast(pa.large_string())
    query = None if features.query is None else features.queries.take(features.query).cast(pa.large_string())
    return Valued(with_columns(locate(name)), query, item, np.arange(float(len(features))))


def _say_missing(features: Features, judged: Valued, found: Matched) -> None:
    names = [column for column in (judged.query, judged.item) if column is not None]
    kept = [column for column in (found.query, found.item) if column is not None]
    there = set(zip(*[column.to_pylist() for column in kept], strict=True))
    every = zip(*[column.to_pylist() for column in names], strict=True)
    first = next(row for row, key in enumerate(every) if key not in there)
    raise InputError(
        f"{judged.log.name}: {len(judged.item) - len(found.label):,} of {len(judged.item):,} labels are of items "
        f"without features (first: {judged.named(first)}); the features hold {counted(len(features), 'rows')}"
    )


def _ranker(options: FitOptions, graded: bool) -> Any:
    """Return the unfitted ranker that the options describe; options that mean nothing for it are refused."""
    loss, phi = options.loss, options.phi
    member = surrogate(loss)
    if phi is not None:
        pair_loss(phi)
    if options.structure is not None:
        structure(options.structure)
    shared: dict[str, Any] = {
        "standardise": options.standardise,
        "log": options.log_features,
        "missing": options.missing,
        "seed": options.seed,
    }
    if options.ridge is not None:
        if options.regressor != "linear":
            raise UsageError(f"--ridge is for linear scorers; --regressor {options.regressor} has settings of its own")
        shared["ridge"] = options.ridge
    if graded:
        if options.order not in ("auto", "all"):
            raise UsageError("--order means nothing here: graded labels are complete preferences")
        if loss not in LOSSES:
            _linear(options)
            return EdgeRanker(loss, phi=phi, **shared, **_solver(options))
        regressor = named_regressor(options.regressor, options.seed)
        del shared["seed"]  # the regressor has it; the rest is exact
        return ListRanker(loss, target=options.target, phi=phi, gain=options.gain, regressor=regressor, **shared)
    order = options.order
    if loss == "gain-regression":
        if phi is not None:
            raise UsageError("gain-regression is least squares; --phi is for losses on pairs")
        for name in ("structure", "gain", "score_scale", "informed", "subsets", "folds", "target", "gate"):
            if (value := getattr(options, name)) is not None:
                shared[name] = value
        if options.c0 is not None:
            shared["structure_options"] = {"c0": options.c0}
        if clicks := click_options(options):
            shared["structure_options"] = clicks
        regressor = named_regressor(options.regressor, options.seed)
        return AggregationRanker(order=order, regressor=regressor, **shared)
    _linear(options)
    if options.subsets is not None:
        shared["subsets"] = options.subsets
    if member.reads == "scores":
        shared |= {"structure": options.structure, "structure_options": click_options(options) or None}
        if options.gain is not None:
            shared["options"] = {"gain": options.gain}
    return EdgeRanker(loss, phi=phi, order="all" if order == "auto" else order, **shared, **_solver(options))


def _solver(options: FitOptions) -> dict[str, Any]:
    """Return how a loss on edges is minimised."""
    given = {"solver": options.solver, "steps": options.steps, "radius": options.radius}
    return {name: value for name, value in given.items() if value is not None}


def _linear(options: FitOptions) -> None:
    if options.regressor != "linear":
        raise UsageError(f"--loss {options.loss} fits a linear scorer; --regressor is for gain-regression")
