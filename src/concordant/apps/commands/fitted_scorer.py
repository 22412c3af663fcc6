"""What ``concordant evaluate`` knows beyond a table of scores: a model in its place, and a target to judge by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.apps.commands.matching import Valued
from concordant.apps.commands.options import EvaluateOptions
from concordant.apps.commands.reading_log import is_letor, names_of, read_feature_file
from concordant.apps.commands.score import ranked
from concordant.apps.models.saving import load_model
from concordant.errors import UsageError
from concordant.io.log.formats import locate
from concordant.learning.rankers.edge_sources import usual_note
from concordant.learning.rankers.target import Target, estimate
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.progress import stage
from concordant.ranking.held_out import Known


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """A fitted ranker, where one is named, and the target."""

    ranker: Any
    """None: scores of another make."""
    target: str | None
    """The one that was asked for, or that the ranker was made for; None: neither is known."""

    @classmethod
    def of(cls, options: EvaluateOptions, *, kept: bool) -> Self:
        """Load the model that SCORES is (``kept``). Errors (UsageError): a wrong target, a model beside Spark."""
        asked = None if options.target is None else str(Target.of(options.target, ""))
        if not kept:
            return cls(None, asked)
        if options.engine == "spark":
            raise UsageError(f"{options.scores} is a model; write its scores with concordant score --engine spark")
        ranker = load_model(options.scores, unsafe_pickle=options.unsafe_load_pickle)
        inner = getattr(ranker, "ranker_", ranker)
        own = getattr(inner, "status_", {}).get("target")
        return cls(ranker, asked or (None if own is None else str(own)))

    @property
    def notes(self) -> list[str]:
        """What was held out when the model was fitted, and how well it ordered that."""
        kept = getattr(getattr(self.ranker, "ranker_", self.ranker), "status_", {}).get("validation")
        return [] if kept is None else [f"when the model was fitted: {kept['said']}"]

    def valued(self, options: EvaluateOptions) -> Valued:
        """Score the features of the items, those of LABELS themselves where these are a LETOR file."""
        source = options.features or (options.labels if is_letor(options.labels) else None)
        if source is None:
            raise UsageError(
                f"{options.scores} is a model: it scores items by their features; name them with --features"
            )
        with stage(f"reading {source}"):
            features = read_feature_file(source, options, missing=self.ranker.missing_, names=names_of(self.ranker))
        table = ranked(features, self.ranker.predict(features))
        texts = {name: pc.cast(table[name], pa.large_string()).combine_chunks() for name in ("query", "item")}
        query = None if features.query is None else texts["query"]
        return Valued(locate(source, many=False), query, texts["item"], np.asarray(table["score"], np.float64))

    def judged(self, prefs: Preferences, known: Known) -> tuple[pa.Table, tuple[Note, ...]]:
        """Return the row of the target; notes of how clicks are read, and of items without a score."""
        target = Target.of(self.target, str(prefs.kind)).reading(prefs)
        batch = Batch.whole(prefs)
        row = known.rows(prefs, batch.query[batch.owner], batch.item)
        part = np.where(row < 0, -1, known.component[row])
        if isinstance(prefs, Comparisons):
            one, other = part[batch.edges.winner], part[batch.edges.loser]
            kept = np.setdiff1d(np.arange(len(batch.judgment)), batch.edges.holder[(one != other) | (one < 0)])
        else:
            groups = batch.node_groups
            known_whole = (groups.least(part, 0) >= 0) & (groups.least(part, 0) == groups.most(part, 0))
            kept = np.flatnonzero(known_whole[batch.graph])
        notes: tuple[Note, ...] = (*usual_note(prefs, target.clicks),) if target.clicks else ()
        if left := int(batch.multiplicity.sum() - batch.multiplicity[kept].sum()):
            text = (
                "{judgments:judgments} of {of:,} not judged by {target}: items without a score, or of another component"
            )
            numbers: dict[str, Any] = {"judgments": left, "of": int(batch.multiplicity.sum()), "target": str(target)}
            notes = (*notes, Note("not judged", text, **numbers))
        if not len(kept):
            raise UsageError("no judgment is about items that all have scores, of one component")
        held = keep(prefs, batch.judgment[kept], batch.multiplicity[kept], np.zeros((0, 2), np.int64))
        nodes = Batch.whole(held)
        score = known.score[known.rows(held, nodes.query[nodes.owner], nodes.item)]
        found = estimate(target, held, score)
        if np.isnan(found.mean):
            raise UsageError(f"these judgments have nothing that {target} could judge by")
        value = 1.0 - found.mean if target.of_lists else found.mean
        name = str(target) if target.of_lists else "pairwise-loss"
        columns = {"name": [name], "mean": [value], "standard_error": [found.error], "judgments": [len(held)]}
        return pa.table(columns), notes
