"""What ``concordant score --abstain`` asks for: a ranker that abstains, from a model and what else was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.commands.reading_log import is_letor, labelled_like, read_feature_file
from concordant.apps.commands.shared_options import AbstentionOptions
from concordant.errors import UsageError
from concordant.io.read import read_log
from concordant.learning.features.reading import read_judged

ALONE = ("abstain_by", "gamma", "norm", "share", "judgments", "judged_features")
"""Options that say how to abstain."""


def careful(ranker: Any, options: AbstentionOptions, names: Sequence[str] | None) -> AbstainingRanker | None:
    """Return the ranker that abstains as the options say, or None where nothing asks for one.

    A model that was kept as an AbstainingRanker abstains as it was made to; ``--abstain`` alone is another cost for it.
    Any other model needs γ, or judgments to choose it by. Errors: UsageError, InputError.
    """
    kept = ranker if isinstance(ranker, AbstainingRanker) else None
    asked = [f"--{name.replace('_', '-')}" for name in ALONE if getattr(options, name) is not None]
    if options.abstain is None:
        if asked:
            raise UsageError(f"{asked[0]} says how to abstain; --abstain COST is missing")
        return kept
    if kept is not None and not asked:
        return kept.with_cost(options.abstain)
    how: dict[str, Any] = {
        "cost": options.abstain,
        "gamma": "auto" if options.gamma is None else options.gamma,
        "share": options.share,
    }
    for name, value in (("by", options.abstain_by), ("norm", options.norm)):
        if value is not None or kept is not None:
            how[name] = getattr(kept.rule_, name) if value is None and kept is not None else value
    by_risk = how.get("by") == "risk"
    if by_risk and how["gamma"] != "auto":
        raise UsageError(
            "--gamma is for --abstain-by distance; by risk needs --judgments LOG instead, held-out judgments"
        )
    made = AbstainingRanker(ranker if kept is None else kept.ranker_, **how)
    if options.judgments is not None:
        if how["gamma"] != "auto":
            raise UsageError("--judgments are there to choose γ by, and --gamma gives it; leave one of them out")
        return made.fit(*_judged(options, options.judgments, made.missing_, names))
    if options.judged_features is not None:
        raise UsageError("--judged-features are those of the items of --judgments, which is missing")
    if by_risk:
        raise UsageError("--abstain-by risk needs --judgments LOG, held-out judgments to estimate the risk from")
    if how["gamma"] == "auto":
        raise UsageError(
            "--abstain needs to know when: give --judgments LOG, held-out judgments to choose that by, or --gamma G, "
            "the distance up to which items are too near; or a model kept with it (an AbstainingRanker)"
        )
    return made.fit()


def said_of(ranker: AbstainingRanker) -> list[str]:
    """Return in words when the ranker abstains, and what held-out judgments say about that."""
    rule, status = ranker.rule_, ranker.status_
    if rule.by == "risk":
        when = f"where the estimated risk of a wrong order exceeds {rule.cost:g}"
        if math.isfinite(rule.limit):
            when += f", as far as a share of {ranker.share:g} of the held-out pairs allows"
    elif rule.gamma is None:
        when = "never"
    else:
        where = "standardised features" if ranker.normaliser_.standardise else "the features as they are"
        when = f"where items are at most γ = {rule.gamma:.4g} apart (ℓ{rule.norm.replace('inf', '∞')}, {where})"
    said = [f"abstains {when}"]
    if "coverage" in status:
        risk = "" if status["risk"] is None else f", {status['risk']:.1%} of them wrongly"
        said.append(
            f"of {status['pairs']:,} held-out pairs {status['coverage']:.1%} are ordered{risk}; loss "
            f"{status['loss']:.4f} at cost {rule.cost:g}, without abstention {status['loss without']:.4f}"
        )
    known = set(getattr(ranker.ranker_, "status_", {}).get("notes", ()))
    return [*said, *(note for note in status["notes"] if note not in known)]


def _judged(options: AbstentionOptions, log: str, missing: str, names: Sequence[str] | None) -> tuple[Any, Any]:
    """Read held-out judgments and the features of their items: a preference log, or labels in a LETOR file."""
    if is_letor(log):
        if options.judged_features is not None:
            raise UsageError(f"{log} is a LETOR file, which holds features itself; leave out --judged-features")
        keep = "raise" if missing == "raise" else "keep"
        return read_judged(log, missing=keep, width=None if names is None else len(names))
    file = options.judged_features or options.features
    if file is None:
        raise UsageError("--judgments needs the features of the items it judges: --judged-features F")
    prefs = read_log(log, pool=False).preferences
    features = read_feature_file(file, options, missing=missing, names=names)
    features, _ = labelled_like(features, prefs)
    if options.judged_features is None and set(prefs.items).isdisjoint(features.items):
        raise UsageError(
            f"no item of {log} is in {options.features}; name the features of its items: --judged-features F"
        )
    return features, prefs
