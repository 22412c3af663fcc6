"""``concordant fit``: read, match, learn, keep, say what came out."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.apps.commands.fit_options import OF_ONE, FitOptions
from concordant.apps.commands.given import worded
from concordant.apps.commands.idle import chosen_by
from concordant.apps.commands.matching import Matched, Valued, click_options, match, read_valued
from concordant.apps.commands.output import put_table
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import (
    as_written,
    asked_of,
    feature_stream,
    gigabytes,
    is_letor,
    labelled_like,
    read_feature_file,
    said_of_names,
)
from concordant.apps.commands.regressors import (
    OF_TREES,
    check_options,
    monotone_signs,
    named_regressor,
    said_options,
)
from concordant.apps.commands.standard import beside_the_result
from concordant.apps.commands.validating import HeldOut, known_queries, share_apart, validated
from concordant.apps.models.directory import check_target
from concordant.apps.models.saving import load_model, save_model
from concordant.errors import ConcordantError, InputError, Setting, UsageError, counted, did_you_mean
from concordant.io.engines.counting import with_columns
from concordant.io.log.formats import locate
from concordant.io.read import read_log
from concordant.io.store.segments import fingerprint
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import read_judged
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosted import OF_GRADES, OF_JUDGMENTS, BoostedRanker
from concordant.learning.rankers.copeland import CopelandRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.estimator import described, json_values
from concordant.learning.rankers.family import best_of, family
from concordant.learning.rankers.growing import lightgbm
from concordant.learning.rankers.lists import LOSSES, ListRanker
from concordant.learning.rankers.regressors import knows_missing
from concordant.learning.rankers.target import Target
from concordant.losses.pair_losses import pair_loss
from concordant.losses.surrogates import surrogate
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import stage
from concordant.ranking.structures import structure
from concordant.record import add


def fit(options: FitOptions) -> None:
    """Fit and keep the model; what is worth knowing goes to stderr, the curve of order='auto' to stdout."""
    log, quiet = options.log, options.quiet
    check_target(options.model)
    graded = options.kind == "labels" or (options.kind is None and is_letor(log))
    _settle(options, graded)
    ranker = _ranker(options, graded)  # a wrong name should not cost the reading of a large log
    several = graded and not options.gave(*OF_ONE)
    if several and options.missing is None:
        ranker.set_params(missing="mean")  # what is read, and held out, may have gaps: trees know them
    before = _started(ranker, options, graded)
    if options.engine == "spark":
        from concordant.apps.commands import on_spark

        on_spark.fit(ranker, options)
        return
    if options.master is not None:
        raise UsageError(f"--master {options.master} belongs to --engine spark")
    held: HeldOut | None = None
    with Progress(quiet, f"reading {log}", plan_of(options)):
        read = _labels if graded else _preferences
        features, judged, told = read(log, options, ranker.missing_)
        if options.validate is not None:
            features, judged, held, more = _held_out(features, judged, ranker, read, options)
            told += more
    if options.monotone is not None:
        ranker.set_params(monotone=monotone_signs(options.monotone, features.names))
    if not quiet:
        if isinstance(features, FeatureFile):
            told.append(f"{options.features}: streamed from disk, {gigabytes(features)}")
        size = f"{counted(len(features), 'rows')} of {counted(len(features.names), 'features')}"
        source = options.features or log
        told.append(f"{source}: {size}")
        told += [f"note: {note}" for note in said_of_names(source, features.names, options)]
    if sys.stderr.isatty():  # elsewhere an error should be the only line
        tell(told)
    with Progress(quiet, "learning", known=None if graded else judged):
        if several and isinstance(features, Features) and features.query is not None:
            ranker = _best(features, judged, options)
        else:
            ranker.set_params(**({"missing": options.missing or "auto"} if several else {}))
            ranker = ranker if before is None else before
            _fit(ranker, features, judged, held, options, again=before is not None)
        with stage("agreement with the judgments"):
            agreement = _agreement(ranker, features, judged)
            found = None if held is None else validated(ranker, held)
    options.settle(
        **(chosen_by(ranker) | ({} if before is None else {"cv": True, "draws": True})),  # those of the choice
        gated=not {"gate", "annotators"}.isdisjoint(ranker.status_) or isinstance(ranker, BoostedRanker),
    )
    place = save_model(ranker, options.model, about={"log": log, "features": options.features or log})
    if not quiet:
        tell(told)
    _say(ranker, agreement, None if graded else str(judged.kind), options)
    if found is not None:
        options.say("validated", found[2])
    options.say("wrote", f"wrote {place}/", path=str(place))
    if found is not None:
        with beside_the_result():
            put_table(found[1] if sys.stdout.isatty() else found[0])
    elif hasattr(ranker, "cv_"):
        with beside_the_result():
            put_table(ranker.curve())


def _best(features: Features, labels: Any, options: FitOptions) -> Any:
    """Return whichever scorer of labels orders held-out queries best, fitted to all of them."""
    shared: dict[str, Any] = {"standardise": options.standardise, "log": options.log_features}
    sparse = not isinstance(features.X, np.ndarray)
    gaps = bool(np.isnan(features.X.data if sparse else features.X).any())
    tried = family(options.target, options.seed, missing=options.missing, gaps=gaps, sparse=sparse, **shared)
    found = best_of(tried, features, labels, seed=options.seed)
    if gaps and options.missing is None and found.missing_ == "mean":
        text = (
            "{number:,} of {of:,} values of features are missing: the linear scorer has each at the mean of its "
            "feature ({ask} names another way)"
        )
        values = features.X.data if sparse else features.X
        number, of = int(np.isnan(values).sum()), int(np.prod(features.X.shape))
        note = Note("filled at the mean", text, number=number, of=of, ask=Setting("missing"))
        found.status_["notes"] = [*found.status_["notes"], note]
    if not sparse and not any("trees" in name for name in tried):
        told = "boosted trees were not tried: no package for them is installed (pip install 'concordant[boosted]')"
        found.status_["notes"] = [*found.status_["notes"], Note("no trees", told)]
    return found


def _settle(options: FitOptions, graded: bool) -> None:
    """Refuse what nothing reads on the way from labels, or from preferences, by this loss."""
    if graded and options.engine == "spark":
        return  # which refuses labels
    log, loss, order = options.log, _loss(options), options.order
    aggregated = order == "all" or (order == "auto" and loss != "gain-regression")
    options.settle(
        graded=graded,
        loss=loss,
        letor=graded and options.features is None and is_letor(log),
        reads=surrogate(loss).reads,
        listed=loss in LOSSES,
        draws=None if graded or not aggregated else False,
    )


LEXIMAX = "leximax-copeland"
"""Asked for in the place of a loss: who beats the most goes first, where all agree nothing is turned round."""


def _loss(options: FitOptions) -> str:
    """The loss of a ranker of one loss; what boosted trees make of theirs is their own affair."""
    loss = "gain-regression" if options.loss is None or options.regressor == "boosted" else options.loss
    return "majority" if loss == LEXIMAX else loss


def _fit(
    ranker: Any,
    features: Features | FeatureFile,
    judged: Any,
    held: HeldOut | None,
    options: FitOptions,
    *,
    again: bool,
) -> None:
    more = {} if held is None or not isinstance(ranker, BoostedRanker) else {"eval_set": (held.features, held.judged)}
    fitted = ranker.refit if again else ranker.fit
    try:
        fitted(features, judged, **more)
    except ConcordantError as error:
        if not isinstance(error, UsageError) or not isinstance(features, FeatureFile) or options.stream:
            raise
        raise UsageError(f"{error}; the table takes {gigabytes(features)}, --in-memory reads it all the same") from None
    except Exception as error:  # what others' trees say of a setting that they do not take
        if not options.regressor_options:
            raise
        given = " ".join(options.regressor_options)
        raise UsageError(f"--regressor {options.regressor} cannot be fitted with {given}: {error}") from error


def _started(ranker: Any, options: FitOptions, graded: bool) -> AggregationRanker | None:
    """Return the model whose choices are kept, if one is named. Errors (UsageError): its settings are not those asked.

    What the command line asks for is what the model has to be of; the choices that held-out judgments made are not in
    its settings.
    """
    if options.start is None:
        return None
    at = f"--start {options.start}"
    if graded or not isinstance(ranker, AggregationRanker) or ranker.regressor is not None:
        raise UsageError(f"{at}: only linear scorers of preferences (--loss gain-regression) keep what was chosen")
    if options.engine == "spark":
        raise UsageError(f"{at} is for one machine; leave it out with --engine spark")
    if os.path.realpath(options.start) == os.path.realpath(options.model) and not os.path.lexists(options.start):
        options.say("note", f"{at}: there is no model yet, so all is chosen")
        return None
    before = load_model(options.start)
    if not isinstance(before, AggregationRanker) or hasattr(before, "regressor_"):
        raise UsageError(f"{at}: it is no linear scorer of preferences; name one that concordant fit made of them")
    kept, asked = described(before)["params"], {**ranker.get_params(deep=False), "missing": ranker.missing_}
    if other := [name for name, value in asked.items() if json_values(value) != kept.get(name)]:
        raise UsageError(
            f"{at} was fitted with {', '.join(f'{name}={kept.get(name)!r}' for name in other)}, not "
            f"{', '.join(f'{name}={asked[name]!r}' for name in other)}: ask for the same, or leave --start out"
        )
    return before


def _held_out(
    features: Features | FeatureFile, judged: Any, ranker: Any, read: Any, options: FitOptions
) -> tuple[Features, Any, HeldOut, list[str]]:
    """Return what is left to learn from, what is held out, and what to say of it."""
    given = options.validate
    if isinstance(features, FeatureFile):
        raise UsageError("--validate needs the features in memory (--in-memory)")
    if isinstance(given, float):
        features, judged, parts = share_apart(features, judged, given, options.seed)
        return features, judged, HeldOut.of(*parts, ranker), []
    name = str(given)
    if os.path.exists(name) and os.path.exists(options.log) and os.path.samefile(name, options.log):
        raise UsageError(
            f"--validate {name} is LOG itself, which the scorer is fitted to; name another file, or a share"
        )
    if read is _preferences and is_letor(name):  # judged by grades, whose features stand beside them
        keep = "raise" if ranker.missing_ == "raise" else "keep"
        rows, held = read_judged(name, missing=keep, width=len(features.names))
    elif read is _labels and options.features is None and not is_letor(name):
        raise UsageError(f"--validate {name} is no LETOR file, with labels and features as in {options.log}")
    else:
        rows, held, _ = read(name, options, ranker.missing_, features)
    notes = known_queries(judged, features, held, rows)
    told = [] if options.quiet else [f"note: {note}" for note in notes]
    return features, judged, HeldOut.of(os.path.basename(name), rows, held, ranker), told


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
    """Whether a gate holds judgments out, or people are counted, so that clusters matter."""
    named = (options.structure, options.gain, options.c0, options.informed)
    usual = options.order == "auto" and all(one is None for one in named)
    gated = _loss(options) == "gain-regression" and (usual if options.gate is None else options.gate)
    return gated or options.loss == LEXIMAX  # which asks who agrees with whom


def _preferences(
    log: str, options: FitOptions, missing: str, beside: Features | None = None
) -> tuple[Features | FeatureFile, Any, list[str]]:
    """Return the features, those that are known already where there are some, the judgments and what to say of them."""
    if options.features is None:
        raise UsageError("--features is missing: a preference log holds no features of its items")
    rows = beside if beside is not None else feature_stream(options.features, options)
    if rows is None:
        with stage(f"reading {options.features}"):
            rows = read_feature_file(options.features, options, missing=missing)
    by_query = rows.query is not None  # who scores the rows of a query needs the queries
    reading = read_log(log, **asked_of(options) | ({"pool": False} if by_query and options.pool is None else {}))
    refuse_crossed(reading.preferences, "a fit")
    add(log, judgments_sha256=fingerprint(reading.preferences))
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    if not options.quiet:
        told += [
            f"{log}: {reading.preferences.facts}",
            *(f"note: {worded(note)}" for note in one_cluster(reading.notes, used=_may_gate(options))),
        ]
    if isinstance(rows, FeatureFile):
        return rows, reading.preferences, told + ([] if options.quiet else as_written(rows, reading.preferences))
    features, converted = labelled_like(rows, reading.preferences)
    told += [] if options.quiet else converted
    return features, reading.preferences, told


def _labels(
    log: str, options: FitOptions, missing: str, beside: Features | None = None
) -> tuple[Features, Any, list[str]]:
    """Return the rows that have a label, and the labels; a label without features is an error.

    ``beside``: what is known already of a LETOR file with as many features.
    """
    if options.stream:
        raise UsageError("--stream is for preferences; graded labels are fitted in memory")
    if options.features is None:
        if not is_letor(log):
            raise UsageError(f"--features is missing: {log} holds labels only")
        keep = "raise" if missing == "raise" else "keep"
        features, labels = read_judged(log, missing=keep, width=None if beside is None else len(beside.names))
        return features, labels, []
    features = read_feature_file(options.features, options, missing=missing)
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
    given = said_options(options.regressor_options)
    if options.regressor == "boosted":
        return _boosted(options, graded, given)
    loss, phi = _loss(options), options.phi
    member = surrogate(loss)
    if phi is not None:
        pair_loss(phi)
    if options.structure is not None:
        structure(options.structure)
    shared: dict[str, Any] = {
        "standardise": options.standardise,
        "log": options.log_features,
        "missing": "auto" if options.missing is None else options.missing,
        "seed": options.seed,
    }
    regressor = named_regressor(options.regressor, options.seed, given)
    if options.missing == "keep" and not knows_missing(regressor):
        what = "a linear scorer" if regressor is None else f"--regressor {options.regressor}"
        raise UsageError(f"--missing keep: {what} does not know missing values; mean, median or zero fills them")
    if options.ridge is not None:
        if options.regressor != "linear":
            raise UsageError(f"--ridge is for linear scorers; --regressor {options.regressor} has settings of its own")
        shared["ridge"] = options.ridge
    if graded and options.loss == LEXIMAX:
        raise UsageError(f"--loss {LEXIMAX} is for votes of several people, not for graded labels")
    if graded:
        if options.order not in ("auto", "all"):
            raise UsageError("--order means nothing here: graded labels are complete preferences")
        if loss not in LOSSES:
            _linear(options)
            return EdgeRanker(loss, phi=phi, **_edges(shared), **_solver(options))
        del shared["seed"]  # the regressor has it; the rest is exact
        return ListRanker(loss, target=options.target, phi=phi, gain=options.gain, regressor=regressor, **shared)
    order = options.order
    if options.loss == LEXIMAX:
        _linear(options)
        return CopelandRanker(**{name: one for name, one in _edges(shared).items() if name != "seed"})
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
        return AggregationRanker(order=order, regressor=regressor, **shared)
    _linear(options)
    if options.subsets is not None:
        shared["subsets"] = options.subsets
    if member.reads == "scores":
        shared |= {"structure": options.structure, "structure_options": click_options(options) or None}
        if options.gain is not None:
            shared["options"] = {"gain": options.gain}
    return EdgeRanker(loss, phi=phi, order="all" if order == "auto" else order, **_edges(shared), **_solver(options))


def _edges(shared: dict[str, Any]) -> dict[str, Any]:
    """Losses on edges have no regressor, so there is nothing to ask about missing values."""
    return {**shared, "missing": "raise"} if shared["missing"] == "auto" else shared


def _boosted(options: FitOptions, graded: bool, given: dict[str, Any]) -> BoostedRanker:
    """Return boosted trees; settings that are not the ranker's own are LightGBM's."""
    lightgbm()
    losses: Any = "auto" if options.loss is None else [one.strip() for one in options.loss.split(",")]
    known = OF_GRADES if graded else OF_JUDGMENTS
    for name in () if options.loss is None else losses:
        if name not in known:
            what = "grades" if graded else "judgments"
            raise UsageError(f"--loss {name} is no loss of {what} for boosted trees; {did_you_mean(name, known)}")
    own = {key: value for key, value in BoostedRanker().get_params().items() if key not in OPTIONS_OF_BOOSTED}
    check_options("boosted", given, {**own, **dict.fromkeys(OF_TREES, 0)})
    return BoostedRanker(
        losses,
        target=options.target,
        options={key: value for key, value in given.items() if key not in own} or None,
        standardise=options.standardise,
        log=options.log_features,
        missing=options.missing or "keep",
        folds=3 if options.folds is None else options.folds,
        seed=options.seed,
        **{key: value for key, value in given.items() if key in own},
    )


OPTIONS_OF_BOOSTED = {"loss", "target", "options", "monotone", "standardise", "log", "missing", "folds", "seed"}
"""Parameters of ``BoostedRanker`` that have an option of their own."""


def _solver(options: FitOptions) -> dict[str, Any]:
    """Return how a loss on edges is minimised."""
    given = {"solver": options.solver, "steps": options.steps, "radius": options.radius}
    return {name: value for name, value in given.items() if value is not None}


def _linear(options: FitOptions) -> None:
    if options.regressor != "linear":
        raise UsageError(f"--loss {options.loss} fits a linear scorer; --regressor is for gain-regression")
