"""When an option of a command does nothing, and why: the table that ``Options.settle`` goes by.

A rule speaks of the options (by their names) and of the facts that a command states on its way:

- ``terminal``: stdout is one; ``shown``: that, or the output is JSON; ``folder``: executors of Spark write the output
  into a folder
- ``graded``: fit learns from labels; ``letor``: from a LETOR file that holds the features, too; ``reads``: what its
  loss reads (scores, judgments, preferences); ``gated``: held-out judgments were asked for another aggregation;
  ``listed``: labels are fitted by a loss on lists; ``cv``: something was chosen by cross-validation; ``draws``: subsets
  of the judgments were drawn
- ``streamable``: the file of features could stay on disk
- ``votes``: evaluate judges by judgments, not by labels; ``model``: a model's scores
- ``conventions``, ``bounded``: a metric of evaluate has conventions, an interval
- ``reads_data``: an experiment does; ``known``: the counterexample is one of the papers
- ``boards``: two boards are compared
- ``alone``: there are no intervals, or such as take every judgment by itself, whoever made it
- ``fitted``: the structure is, by a likelihood that a summary covers
- ``forgets``: the structure knows nothing of covariates

What functions of Python know of their own options they refuse themselves (``errors.Idle``): ``rank``, ``audit``,
``report``, ``read``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concordant.apps.commands.given import Rule
from concordant.apps.commands.shared_options import ROLES

READING = "clicks unranked pool on_error engine memory_limit threads"
OF_LOGS = f"kind {' '.join(ROLES)} {READING} master"
OF_JUDGMENTS = f"{' '.join(role for role in ROLES if role not in ('query', 'item'))} {READING}"
FOR_CARD = f"log held_out labels features held_out_features feature_item feature_query {OF_LOGS} license audit"


def _surrogate(at: Mapping[str, Any]) -> bool:
    """Whether fit minimises a surrogate on the judgments themselves."""
    return at["graded"] is False and at["loss"] != "gain-regression"


def _boosted(at: Mapping[str, Any]) -> bool:
    """Whether fit makes a BoostedRanker."""
    return bool(at["regressor"] == "boosted")


def _on_edges(at: Mapping[str, Any]) -> bool:
    """Whether fit minimises a loss on edges: not by regression, nor by what lists of labels have of their own."""
    return not at["listed"] if at["graded"] else at["loss"] != "gain-regression"


def _days(at: Mapping[str, Any]) -> bool:
    """Whether some days are asked for."""
    return any(at[name] is not None for name in ("as_of", "since", "last"))


RULES = (
    # tables on a terminal
    Rule("rank compare audit scores look", "rows", lambda at: at["terminal"] is False,
         "it is for the table on a terminal, and stdout is none"),
    Rule("rank", "rows", lambda at: at["qrels"] is not None, "with --qrels what is shown is how the runs are judged"),
    Rule("rank", "metrics", lambda at: at["qrels"] is None, "it is for --qrels"),
    Rule("rank", "rows", lambda at: at["folder"], "executors write {output}, and no table is shown"),
    Rule("audit", "ask", lambda at: at["shown"] is False and at["ask"],
         "the pairs to ask stand on a terminal and in a .json file", "leave it out, or add --output F.json"),
    Rule("audit", "pair", lambda at: not at["fragility"], "only --fragility asks for two items",
         "leave it out, or add --fragility"),
    Rule("audit", "top", lambda at: at["pair"] and not at["replicates"], "--pair asks for two items"),
    # people and a judge model
    Rule("judges", "judge length covariates ranking per_vote replicates", lambda at: at["model_judge"] is not None,
         "people and a judge model are put together, and people are not told apart"),
    Rule("axioms", "refits seed unsafe_load_pickle", lambda at: at["model"] is False,
         "{scorer} holds scores, and only a model can be fitted again", "leave it out, or name a model"),
    Rule("axioms", "score", lambda at: at["model"], "{scorer} is a model, not a table of scores"),
    Rule("axioms", "seed", lambda at: at["refits"] == 0, "nothing is fitted again"),
    Rule("axioms", "feature_item feature_query", lambda at: at["features"] is None,
         "it is about --features, which is not given"),
    Rule("axioms", "worst", lambda at: not at["cases"] and not str(at["output"]).lower().endswith(".json"),
         "the cases are not shown", "leave it out, or add --cases or -o F.json"),
    Rule("judges report", "match these", lambda at: not at["model_judge"], "it is about a judge model",
         "add --model-judge FILE"),
    Rule("camps", "most", lambda at: at["number"] not in (None, "auto"), "--number says how many camps there are"),
    Rule("camps", "model feature_item feature_query feature_columns", lambda at: at["features"] is None,
         "it is about features", "add --features F"),
    # columns of a log
    Rule("rank compare ingest store-replace evaluate explain report", "neutral", lambda at: not at["home"],
         "it says where the home side has no advantage", "add --home"),
    Rule("rank compare", "cluster", lambda at: at["alone"],
         "the scores do not depend on it, and these intervals take every judgment by itself",
         "leave it out, or ask for --interval sandwich or bootstrap"),
    Rule("rank compare report", "covariates home", lambda at: at["forgets"],
         "{structure} knows nothing of covariates and of a home side", "leave it out, or rank by bradley-terry"),
    Rule("rank", "statistics", lambda at: at["quiet"], "--quiet leaves unsaid what it says"),
    Rule("rank", "statistics", lambda at: at["fitted"] is False, "{structure} is fitted by no likelihood",
         "leave it out, or rank by bradley-terry"),
    Rule("rank", "statistics", lambda at: at["engine"] == "spark", "executors keep the judgments"),
    Rule("rank compare", "half_life moving at", lambda at: not at["time"], "it is about times, and no column says when",
         "add --time COLUMN"),
    Rule("rank", "time", lambda at: not at["half_life"] and not at["moving"] and not _days(at),
         "no model here reads when a comparison was made", "add --half-life, --moving, --as-of, --since or --last"),
    Rule("compare", "time", lambda at: not at["half_life"] and not _days(at),
         "no model here reads when a comparison was made", "add --half-life, --as-of, --since or --last"),
    Rule("rank", "drift paths", lambda at: not at["moving"], "no ability moves", "add --moving"),
    Rule("rank", "statistics", lambda at: at["moving"] and at["drift"] is not None,
         "whether abilities move is asked of the drift that the data choose", "leave out --drift or --statistics"),
    Rule("rank", "half_life", lambda at: at["moving"], "--moving says by itself how fast old judgments fade"),
    Rule("rank", "structure interval replicates quasi reference across_components cluster",
         lambda at: at["moving"], "abilities that move are those of bradley-terry, with intervals by its curvature"),
    Rule("compare", "pair ranks top interval replicates min_judgments", lambda at: at["boards"],
         "two boards are compared item by item, with the standard errors of the sandwich"),
    Rule("compare", "shared fail_if_worse fail_if_top_changes", lambda at: at["boards"] is False, "there is one board",
         "leave it out, or name a second log, or divide this one (--by), or name a second day (--with)"),
    Rule("compare", "values", lambda at: not at["by"], "no column divides the log", "add --by COLUMN"),
    Rule("compare", "by against", lambda at: at["new"], "there are two logs"),
    Rule("compare", "against as_of last", lambda at: at["by"], "--by divides the log"),
    Rule("compare", "pair", lambda at: at["ranks"] or at["top"], "the ranks of items are asked for"),
    Rule("compare", "ranks", lambda at: at["top"], "--top {top} asks for another set"),
    Rule("scores", "nemenyi", lambda at: at["plot"] is None, "it is for --plot"),
    Rule("scores", "resamples seed", lambda at: at["by"] == "bradley-terry", "Bradley–Terry draws nothing anew"),
    Rule("compare", "rows", lambda at: at["pair"], "each pair is said in a line"),
    Rule("ingest", "unranked", lambda at: at["unranked"] is not None,
         "a store keeps the rankings as they were made", "say it where they are read, by rank, fit, audit or report"),
    Rule("ingest", "pool", lambda at: at["pool"] is not None, "a store keeps the queries as they were",
         "say it where they are read, by rank, fit, audit or report"),
    Rule("explain", "spread", lambda at: at["effects"] == "none", "there are no random effects"),
    Rule("rank compare fit audit", "propensities clip", lambda at: at["structure"] != "inverse-propensity",
         "only inverse-propensity divides clicks by propensities",
         "leave it out, or add --structure inverse-propensity"),
    Rule("rank", "positions", lambda at: at["structure"] not in ("position-based", "dependent-click"),
         "only position-based and dependent-click find something of positions",
         "leave it out, or add --structure position-based"),
    Rule("rank", "positions", lambda at: at["engine"] == "spark", "executors keep the judgments"),
    Rule("rank", "start", lambda at: at["engine"] == "spark", "executors rank all queries"),
    Rule("rank", "start", lambda at: at["moving"], "--moving ranks by a path of all times"),
    # labels and preferences to learn from
    Rule("fit", "structure order subsets gain score_scale c0 informed gate phi ridge solver steps radius",
         _boosted, "--regressor boosted has its own losses of all judgments of a query",
         "leave it out, or name another regressor"),
    Rule("fit", "stream", lambda at: _boosted(at) and at["stream"], "boosted trees need all features in memory"),
    Rule("fit", "folds", lambda at: _boosted(at) and at["validate"] is not None,
         "how many trees is chosen on what --validate holds out"),
    Rule("fit", "monotone", lambda at: not _boosted(at), "only boosted trees are held to it",
         "leave it out, or add --regressor boosted"),
    Rule("fit", "regressor_options", lambda at: at["regressor"] == "linear",
         "a linear scorer has no such settings", "leave it out, or name a --regressor"),
    Rule("fit", "validate", lambda at: at["engine"] == "spark", "executors of Spark hold nothing out"),
    Rule("fit", f"{' '.join(ROLES)} label {READING}", lambda at: at["letor"],
         "{log} is a LETOR file: its labels, queries and features stand where they stand in every such file"),
    Rule("fit", "feature_item feature_query feature_columns", lambda at: at["letor"],
         "{log} is a LETOR file, which names no columns"),
    Rule("fit", OF_JUDGMENTS, lambda at: at["graded"],
         "{log} holds graded labels; of its columns --query, --item and --label can be named, and it is read in "
         "memory"),
    Rule("fit", "label", lambda at: at["graded"] is False, "{log} is a log of preferences",
         "leave it out, or add --kind labels"),
    Rule("fit", "cluster", lambda at: at["graded"], "{log} holds graded labels"),
    Rule("fit", "cluster", lambda at: at["gated"] is False or at["engine"] == "spark",
         "it says which judgments the gate holds out together, and there is no gate here"),
    Rule("fit", "structure informed subsets folds", lambda at: at["graded"] and not _boosted(at),
         "graded labels are complete preferences: nothing is aggregated"),
    Rule("fit", "gate", lambda at: at["graded"], "graded labels are fitted themselves: no aggregation is chosen"),
    Rule("fit", "score_scale c0", lambda at: at["graded"] or _surrogate(at),
         "it belongs to the aggregation of preferences by gain-regression"),
    Rule("fit", "target gate", lambda at: at["graded"] is not None and at["loss"] != "gain-regression",
         "{loss} is what was asked for; only gain-regression has a target"),
    Rule("fit", "gain", lambda at: at["graded"] and at["listed"] is False, "{loss} takes differences of labels"),
    Rule("fit", "informed", _surrogate,
         "only gain-regression aggregates with the help of features, not {loss}"),
    Rule("fit", "folds", _surrogate, "{loss} chooses nothing by cross-validation"),
    Rule("fit", "folds", lambda at: at["cv"] is False, "nothing was left to choose by cross-validation",
         "leave it out, or add --order auto"),
    Rule("fit", "structure gain", lambda at: _surrogate(at) and at["reads"] != "scores",
         "{loss} reads the judgments themselves, not scores"),
    Rule("fit", "subsets", lambda at: at["draws"] is False,
         "all judgments of a query are aggregated at once, so no subsets are drawn",
         "leave it out, or give --order a number"),
    Rule("fit", "solver steps radius", lambda at: at["graded"] is not None and not _on_edges(at),
         "this fit has one way to its minimum; a choice of solvers have losses on edges",
         "leave it out, or add --loss difference-graph"),
    Rule("fit", "steps radius", lambda at: at["solver"] == "exact", "the solver is exact",
         "leave it out, or add --solver stochastic"),
    # features
    Rule("score", "memory_limit", lambda at: at["engine"] == "memory" and at["stream"] is False,
         "with --in-memory all of {features} is read into memory"),
    Rule("score", "memory_limit", lambda at: at["streamable"] is False,
         "{features} is read into memory; only Parquet and Arrow files can stay on disk"),
    Rule("report", "feature_item feature_query feature_columns", lambda at: at["features"] is None,
         "it is about --features, which is not given"),
    Rule("report", "feature_columns", lambda at: at["model"] is not None,
         "the features of {model} are those that it was fitted on"),
    Rule("report", "scores", lambda at: not at["audit"], "without the audit no scorer is held against anything",
         "leave out --no-audit"),
    Rule("report", "unsafe_load_pickle", lambda at: at["model"] is None, "it is about --model, which is not given"),
    Rule("serve", "feature_item feature_query", lambda at: at["features"] is None and at["judged_features"] is None,
         "it names a column of --features, which is missing"),
    # when not to order items
    Rule("score serve", "norm", lambda at: at["abstain_by"] == "risk",
         "it is the norm of a distance, and --abstain-by risk looks at none"),
    # metrics
    Rule("evaluate", f"kind {OF_JUDGMENTS} cluster", lambda at: at["votes"] is False and at["engine"] != "spark",
         "{labels} holds labels, not judgments"),
    Rule("evaluate", "metrics convention against per_query unmatched level", lambda at: at["votes"],
         "{labels} holds judgments: predictions of them are judged by accuracy, log-loss, Brier score and calibration"),
    Rule("evaluate", "coefficients", lambda at: at["votes"] is False or at["model"] is True,
         "they belong to a ranking that is judged by judgments"),
    Rule("evaluate", "folds structure prior ties time half_life seed", lambda at: not at["split"],
         "it says how judgments are held out", "add --split"),
    Rule("evaluate", "metrics target convention against per_query unmatched score label coefficients level features "
         "feature_item feature_query unsafe_load_pickle", lambda at: at["split"],
         "--split judges a ranking of parts of {scores} by the others"),
    Rule("evaluate", "time half_life", lambda at: at["split"] != "time", "nothing is held out by time",
         "add --split time"),
    Rule("evaluate", "seed", lambda at: at["split"] == "time", "nothing is drawn"),
    Rule("evaluate", "covariates home", lambda at: not at["coefficients"] and not at["split"],
         "the scores alone know nothing of covariates and of a home side", "add --coefficients F"),
    Rule("evaluate", "target", lambda at: at["metrics"] and not at["votes"], "--metric says what is printed"),
    Rule("evaluate", "features feature_item feature_query unsafe_load_pickle", lambda at: at["model"] is False,
         "{scores} is no model"),
    Rule("evaluate", "score", lambda at: at["model"], "{scores} is a model, which has no column of scores"),
    Rule("evaluate", "level", lambda at: at["per_query"], "the value of a query has no interval"),
    Rule("evaluate", "level", lambda at: at["bounded"] is False,
         "only differences and the AUC of one list have an interval", "leave it out, or add --against SCORES"),
    Rule("evaluate", "convention", lambda at: at["conventions"] is False, "none of these metrics has conventions"),
    # models that leave the house
    Rule("export", FOR_CARD, lambda at: at["card"] is None, "it is for --card"),
    Rule("export", "feature_names of_query", lambda at: at["output"] is None, "it is for --output"),
    Rule("export", f"{OF_LOGS} features", lambda at: at["log"] is None and at["held_out"] is None,
         "it is about --log and --held-out, which are not given"),
    Rule("export", "audit", lambda at: at["log"] is None,
         "what is audited are the judgments of --log, which is not given"),
    Rule("export", "held_out_features", lambda at: at["held_out"] is None, "there is no --held-out"),
    Rule("export", "feature_item feature_query", lambda at: at["features"] is None and at["held_out_features"] is None,
         "it names a column of --features, which is missing"),
    # experiments
    Rule("reproduce", "data", lambda at: at["reads_data"] is False, "{name} makes its own data"),
    Rule("counterexample", "phi items within votes budget seed", lambda at: at["known"],
         "{name} is a population of the papers"),
)  # fmt: skip
"""The first one that holds is said."""


def chosen_by(ranker: Any) -> dict[str, bool]:
    """Return the facts that a fitted ranker of preferences says: was anything cross-validated, were subsets drawn."""
    if not isinstance(getattr(ranker, "folds", None), int) or not hasattr(ranker, "order_"):
        return {}
    tried = ranker.cv_["order"].tolist() if hasattr(ranker, "cv_") else [ranker.order_]
    return {
        "cv": hasattr(ranker, "cv_") or "unchosen" in ranker.status_,
        "draws": any(str(order) != "all" for order in tried),
    }
