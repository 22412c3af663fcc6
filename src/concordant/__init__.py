"""concordant: from a log of who preferred what to a ranking, or a scoring function, that can be trusted.

>>> import concordant as cc
>>> votes = cc.Preferences.from_comparisons(winner=["a", "a", "b"], loser=["b", "c", "c"])
>>> cc.rank(votes).to_arrow()["item"].to_pylist()
['a', 'b', 'c']
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concordant import spark, torch
    from concordant.abstention.bounds import consistency_bound
    from concordant.abstention.certificates import certificate
    from concordant.abstention.losses import (
        bipartite_abstention_loss,
        pairwise_abstention_loss,
        sampled_abstention_loss,
    )
    from concordant.abstention.near_pairs import near_pairs
    from concordant.abstention.ranker import AbstainingRanker
    from concordant.apps.doctor.examination import Examination
    from concordant.apps.doctor.examine import doctor
    from concordant.apps.export.card import model_card
    from concordant.apps.export.export import export_model
    from concordant.apps.models.saving import load_model, save_model
    from concordant.apps.report.critical_difference import critical_difference
    from concordant.apps.report.report import Report, report
    from concordant.apps.report.tree_picture import tree_picture
    from concordant.auditing.audit import audit
    from concordant.auditing.axioms import AxiomAudit, axiom_audit
    from concordant.auditing.counterexamples import find_counterexample
    from concordant.auditing.findings import Audit
    from concordant.auditing.looking import look
    from concordant.auditing.suboptimality import suboptimality
    from concordant.auditing.uniform_suboptimality import uniform_suboptimality
    from concordant.boards.changes import BoardChange, board_changes
    from concordant.boards.fragility import Fragility, fragility
    from concordant.boards.judges import Judges, judges
    from concordant.boards.prediction_powered import PredictionPowered, prediction_powered
    from concordant.boards.ranked_scores import ScoreBoard, rank_scores
    from concordant.errors import (
        CannotRank,
        ConcordantError,
        InputError,
        NoMaximumLikelihood,
        Unavailable,
        UsageError,
    )
    from concordant.io.ingest import Store
    from concordant.io.read import read
    from concordant.io.score_tables import read_scores
    from concordant.learning.annotators.camps import Camps, camps
    from concordant.learning.annotators.distributional import Distributional, distributional
    from concordant.learning.features.matrix import Features
    from concordant.learning.features.normalising import Normaliser
    from concordant.learning.features.reading import read_features, read_judged
    from concordant.learning.features.streamed import FeatureFile
    from concordant.learning.pairs import Pairs, pairs
    from concordant.learning.rankers.aggregation import AggregationRanker
    from concordant.learning.rankers.boosted import BoostedRanker
    from concordant.learning.rankers.boosting import RankBoostRanker
    from concordant.learning.rankers.copeland import CopelandRanker
    from concordant.learning.rankers.diagnosis import Diagnosis
    from concordant.learning.rankers.edges import EdgeRanker
    from concordant.learning.rankers.judged import Judged
    from concordant.learning.rankers.lists import ListRanker
    from concordant.learning.rankers.per_query import QueryRankers
    from concordant.learning.targets.mean_targets import mean_targets
    from concordant.losses.metrics.auc import auc, auc_difference, auc_interval
    from concordant.losses.metrics.err import err
    from concordant.losses.metrics.metrics import compare, summarise
    from concordant.losses.metrics.ndcg import ndcg
    from concordant.losses.metrics.pairwise import kendall_tau, pairwise_loss
    from concordant.losses.metrics.relevant import average_precision, precision, reciprocal_rank
    from concordant.losses.minimise import minimise
    from concordant.losses.surrogates import surrogate
    from concordant.preferences.graphs import Batch, Graphs
    from concordant.preferences.preferences import Preferences
    from concordant.preferences.times import discounted
    from concordant.ranking.click_models import click_positions
    from concordant.ranking.cross_validation import cross_validate
    from concordant.ranking.explaining import explain
    from concordant.ranking.kemeny import optimal_order
    from concordant.ranking.over_time import Paths, rank_over_time
    from concordant.ranking.rank import Ranking, rank
    from concordant.ranking.structures import structure
    from concordant.ranking.trees import RankingTree, ranking_tree
    from concordant.record import recording


__version__ = "0.1.0"

_HOMES = {
    "AbstainingRanker": "abstention.ranker",
    "AggregationRanker": "learning.rankers.aggregation",
    "Audit": "auditing.findings",
    "AxiomAudit": "auditing.axioms",
    "Batch": "preferences.graphs",
    "BoardChange": "boards.changes",
    "BoostedRanker": "learning.rankers.boosted",
    "Camps": "learning.annotators.camps",
    "CannotRank": "errors",
    "ConcordantError": "errors",
    "CopelandRanker": "learning.rankers.copeland",
    "Diagnosis": "learning.rankers.diagnosis",
    "Distributional": "learning.annotators.distributional",
    "EdgeRanker": "learning.rankers.edges",
    "Examination": "apps.doctor.examination",
    "FeatureFile": "learning.features.streamed",
    "Features": "learning.features.matrix",
    "Fragility": "boards.fragility",
    "Graphs": "preferences.graphs",
    "InputError": "errors",
    "Judged": "learning.rankers.judged",
    "Judges": "boards.judges",
    "ListRanker": "learning.rankers.lists",
    "NoMaximumLikelihood": "errors",
    "Normaliser": "learning.features.normalising",
    "Pairs": "learning.pairs",
    "Paths": "ranking.over_time",
    "PredictionPowered": "boards.prediction_powered",
    "Preferences": "preferences.preferences",
    "QueryRankers": "learning.rankers.per_query",
    "RankBoostRanker": "learning.rankers.boosting",
    "Ranking": "ranking.rank",
    "RankingTree": "ranking.trees",
    "Report": "apps.report.report",
    "ScoreBoard": "boards.ranked_scores",
    "Store": "io.ingest",
    "Unavailable": "errors",
    "UsageError": "errors",
    "auc": "losses.metrics.auc",
    "auc_difference": "losses.metrics.auc",
    "auc_interval": "losses.metrics.auc",
    "audit": "auditing.audit",
    "average_precision": "losses.metrics.relevant",
    "bipartite_abstention_loss": "abstention.losses",
    "axiom_audit": "auditing.axioms",
    "board_changes": "boards.changes",
    "camps": "learning.annotators.camps",
    "certificate": "abstention.certificates",
    "click_positions": "ranking.click_models",
    "compare": "losses.metrics.metrics",
    "consistency_bound": "abstention.bounds",
    "critical_difference": "apps.report.critical_difference",
    "cross_validate": "ranking.cross_validation",
    "discounted": "preferences.times",
    "distributional": "learning.annotators.distributional",
    "doctor": "apps.doctor.examine",
    "err": "losses.metrics.err",
    "explain": "ranking.explaining",
    "export_model": "apps.export.export",
    "find_counterexample": "auditing.counterexamples",
    "fragility": "boards.fragility",
    "judges": "boards.judges",
    "kendall_tau": "losses.metrics.pairwise",
    "load_model": "apps.models.saving",
    "look": "auditing.looking",
    "mean_targets": "learning.targets.mean_targets",
    "minimise": "losses.minimise",
    "ndcg": "losses.metrics.ndcg",
    "model_card": "apps.export.card",
    "near_pairs": "abstention.near_pairs",
    "optimal_order": "ranking.kemeny",
    "pairs": "learning.pairs",
    "pairwise_abstention_loss": "abstention.losses",
    "pairwise_loss": "losses.metrics.pairwise",
    "precision": "losses.metrics.relevant",
    "prediction_powered": "boards.prediction_powered",
    "rank": "ranking.rank",
    "rank_over_time": "ranking.over_time",
    "rank_scores": "boards.ranked_scores",
    "ranking_tree": "ranking.trees",
    "read": "io.read",
    "read_features": "learning.features.reading",
    "read_judged": "learning.features.reading",
    "read_scores": "io.score_tables",
    "reciprocal_rank": "losses.metrics.relevant",
    "recording": "record",
    "report": "apps.report.report",
    "sampled_abstention_loss": "abstention.losses",
    "save_model": "apps.models.saving",
    "structure": "ranking.structures",
    "suboptimality": "auditing.suboptimality",
    "summarise": "losses.metrics.metrics",
    "surrogate": "losses.surrogates",
    "tree_picture": "apps.report.tree_picture",
    "uniform_suboptimality": "auditing.uniform_suboptimality",
}

__all__ = [
    "AbstainingRanker",
    "AggregationRanker",
    "Audit",
    "AxiomAudit",
    "Batch",
    "BoardChange",
    "BoostedRanker",
    "Camps",
    "CannotRank",
    "ConcordantError",
    "CopelandRanker",
    "Diagnosis",
    "Distributional",
    "EdgeRanker",
    "Examination",
    "FeatureFile",
    "Features",
    "Fragility",
    "Graphs",
    "InputError",
    "Judged",
    "Judges",
    "ListRanker",
    "NoMaximumLikelihood",
    "Normaliser",
    "Pairs",
    "Paths",
    "PredictionPowered",
    "Preferences",
    "QueryRankers",
    "RankBoostRanker",
    "Ranking",
    "RankingTree",
    "Report",
    "ScoreBoard",
    "Store",
    "Unavailable",
    "UsageError",
    "auc",
    "auc_difference",
    "auc_interval",
    "audit",
    "average_precision",
    "axiom_audit",
    "bipartite_abstention_loss",
    "board_changes",
    "camps",
    "certificate",
    "click_positions",
    "compare",
    "consistency_bound",
    "critical_difference",
    "cross_validate",
    "discounted",
    "distributional",
    "doctor",
    "err",
    "explain",
    "export_model",
    "find_counterexample",
    "fragility",
    "judges",
    "kendall_tau",
    "load_model",
    "look",
    "mean_targets",
    "minimise",
    "model_card",
    "ndcg",
    "near_pairs",
    "optimal_order",
    "pairs",
    "pairwise_abstention_loss",
    "pairwise_loss",
    "precision",
    "prediction_powered",
    "rank",
    "rank_over_time",
    "rank_scores",
    "ranking_tree",
    "read",
    "read_features",
    "read_judged",
    "read_scores",
    "reciprocal_rank",
    "recording",
    "report",
    "sampled_abstention_loss",
    "save_model",
    "spark",
    "structure",
    "suboptimality",
    "summarise",
    "surrogate",
    "tree_picture",
    "uniform_suboptimality",
    "torch",
]


_OF_RANKERS = (
    "abstention.ranker",
    "apps.export",
    "apps.models",
    "apps.report.report",
    "auditing.axioms",
    "learning.rankers",
)


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``concordant --help`` does not pay for NumPy."""
    if name in ("spark", "torch"):
        return importlib.import_module(f"concordant.{name}")  # says how to install what it needs where that is not
    if name not in _HOMES:
        raise AttributeError(f"module 'concordant' has no attribute {name!r}")
    if _HOMES[name].startswith(_OF_RANKERS):
        with suppress(ImportError):
            importlib.import_module("sklearn.base")  # rankers are its estimators where it is loaded
    value = getattr(importlib.import_module(f"concordant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "spark", "torch"})
