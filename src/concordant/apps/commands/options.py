"""What can be said to each command: one dataclass of options for each, whose docstring is its help.

The function of the same name in the file of the same name does the work, with that dataclass. Nothing heavy is imported
here: ``--help`` is made of this file. When an option does nothing beside others, ``idle`` says.
"""

from __future__ import annotations

import importlib
from typing import Any, Literal

import click

from concordant.apps.commands.axioms_options import AxiomsOptions
from concordant.apps.commands.camps_options import CampsOptions
from concordant.apps.commands.compare_options import BoardOptions
from concordant.apps.commands.doctor_options import DoctorOptions
from concordant.apps.commands.experiment_options import CounterexampleOptions, ReproduceOptions
from concordant.apps.commands.explain_options import ExplainOptions
from concordant.apps.commands.fit_options import FitOptions
from concordant.apps.commands.fusion_options import FusionOptions
from concordant.apps.commands.given import HELP, Options, argument, command, flag, option
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.judges_options import JudgesOptions
from concordant.apps.commands.look_options import LookOptions
from concordant.apps.commands.pairs_options import PairsOptions
from concordant.apps.commands.report_options import ReportOptions
from concordant.apps.commands.scores_options import ScoresOptions
from concordant.apps.commands.shared_options import (
    APART,
    METHODS,
    NONE,
    ONE,
    PICKLE,
    SEED,
    TABLE,
    AbstentionOptions,
    ClickOptions,
    ClusteredLog,
    DaysOptions,
    FeatureOptions,
    LogOptions,
    ModelOptions,
    Said,
    SidedLog,
    SparkOptions,
    TableOptions,
    TextOptions,
    any_of,
    logs,
    size,
)
from concordant.apps.commands.store_options import (
    BackupOptions,
    BatchesOptions,
    CompactOptions,
    DayOptions,
    ForgetOptions,
    InfoOptions,
    IngestOptions,
    RemoveOptions,
    ReplaceOptions,
    RestoreOptions,
    StoreExportOptions,
    StoreOptions,
)
from concordant.apps.commands.tree_options import TreeOptions
from concordant.auditing.settings import AuditSettings
from concordant.losses.names import METRICS
from concordant.ranking.names import STRUCTURES

SECONDS = click.FloatRange(min=0, min_open=True)


# -- rankings ----------------------------------------------------------------------------------------------------------
class RankOptions(FusionOptions, TableOptions, SidedLog, ClickOptions, DaysOptions):
    """Rank the items of LOG, per query, and say what it cannot support.

    LOG is CSV, TSV, JSON Lines (also .gz), Parquet, Arrow, PrefLib, LETOR, TREC runs (several are fused), a folder of
    files of one kind, file.duckdb::table, or a store (concordant ingest). Its columns are recognised by their usual
    names; name others with --winner, --loser, --query and so on.

    \b
    Examples:
      concordant rank votes.csv
      concordant rank votes.csv --query prompt --cluster worker -o ranking.parquet
      concordant rank clicks.parquet --structure cascade --clicks first
      concordant rank results.csv --home --neutral neutral --ties davidson
      concordant rank results.csv --time date --moving --paths paths.csv
      concordant rank votes.store --as-of 2026-01-31 --last 7d
      concordant rank 'lake/day=2026-01-*/' --query lang
      concordant rank votes.store -o today.parquet --start yesterday.parquet
      concordant rank bm25.run dense.run --qrels test.qrels -o fused.run
    """

    log: str = argument()
    structure: str | None = option("S", f"{any_of(STRUCTURES)}.", show_default="bradley-terry, of runs rrf")
    prior: float | Literal["auto"] | None = option(
        "V",
        "Precision of the normal prior on scores (default 0.01, with --moving by the data); 0 is maximum likelihood, "
        "auto the precision under which the judgments are likeliest.",
        type=Said("auto or a number of at least 0", float, "auto"),
    )
    ties: Literal["half", "any-order", "davidson", "cumulative"] | None = option(
        None,
        "Half a win each (the default of bradley-terry), an order that is not known (of plackett-luce), judged equal, "
        "with a parameter (Davidson, Davidson–Luce), or, with grades, ordered outcomes with thresholds (cumulative "
        "logits). Grades are strengths but for the last.",
    )
    interval: str = option("METHOD", METHODS, default="auto")
    replicates: int = option(None, "Bootstrap replicates.", default=1000)
    level: float = option(None, "Confidence level of the intervals.", default=0.95)
    quasi: bool = flag("Add quasi-standard errors (likelihoods, up to 500 items).")
    reference: str | None = option(
        "ITEM", "Item whose score is zero (likelihoods; default: the mean of the items limited on both sides)."
    )
    min_judgments: int = option("N", APART, default=0, type=NONE, show_default=False)
    statistics: bool = flag("Say log-likelihood, deviance, AIC, BIC, coefficients and tests of the model's terms.")
    time: str | None = option("C", "Column of when each comparison was made: dates (ISO 8601) or numbers.")
    half_life: str | None = option(
        "T", "With --time: judgments count half at the age of T (90d, 6w, 2y; or in the unit of the times)."
    )
    moving: bool = flag("With --time: abilities move, a random walk for each item (--ties half or davidson).")
    drift: float | None = option(
        "V",
        "With --moving: standard deviation of a change in one unit of time (of dates: a day); default: by the data.",
    )
    at: str | None = option(
        "WHEN",
        "With --time: the ranking of that time (default: of the last judgment); with --half-life it knows nothing "
        "later, with --moving it is looked back on, or forecast.",
    )
    coefficients: str | None = option(
        "F",
        "Write the coefficients beside the scores to F: covariates, home advantage, ties, thresholds, with their "
        "errors.",
    )
    paths: str | None = option("F", "With --moving: write each item's ability at each of its times to F.")
    positions: str | None = option(
        "F",
        "Write what the model of clicks finds of positions to F: how often each is examined (position-based), or how "
        "often readers go on after a click there (dependent-click).",
    )
    across_components: bool = flag("Rank items that no chain of comparisons connects by the prior alone.")
    start: str | None = option(
        "F",
        "An earlier ranking with the same options, written by -o as Parquet or Arrow: queries with the same judgments "
        "keep its rows, the others are ranked; the same bits in a fraction of the time.",
    )
    seed: int = option(None, SEED, default=0)
    rows: int | None = option(
        None,
        "Rows per query of the table on a terminal.",
        type=ONE,
        show_default="20, of a single query up to 60",
    )


class CompareOptions(RankOptions, BoardOptions):
    """Is A better than B? Compare items of LOG, or the board of LOG with that of NEW: what changed, and why.

    With --pair two items, with the probability that a vote prefers the first; without it all pairs, their p-values also
    adjusted for their number: by the largest |t| (p_max_t) and by Holm. An empty p-value: the votes do not determine
    the difference. --ranks and --top say which ranks the votes leave open, each with a guarantee of its own.

    With NEW, or with parts of LOG (--by), what changed from one board to the other: the difference of each item's
    score, its interval and p-values, and what moved it. NEW may hold all votes of LOG and more: then these are counted
    once. LOG and NEW may also be saved rankings (of concordant rank -o), which are taken as independent. With
    --fail-if-worse the exit status is 1 where an item is worse. See docs/changes.md.

    Logs are read and ranked as by concordant rank, with the same options.

    \b
    Examples:
      concordant compare votes.csv --pair "GPT 4" command
      concordant compare last-week.csv today.csv --cluster worker --fail-if-worse "GPT 4"
      concordant compare votes.csv --by prompt --values 2 10
      concordant compare votes.csv --by date --since 2026-03-01
      concordant compare votes.store --as-of 2026-03-01 --with 2026-03-02 --fail-if-top-changes
      concordant compare votes.csv --cluster worker -o differences.csv
      concordant compare votes.csv --ranks tiers
      concordant compare votes.csv --top 3
    """

    absent = frozenset(
        {
            "quasi",
            "across_components",
            "reference",
            "statistics",
            "moving",
            "drift",
            "paths",
            "positions",
            "coefficients",
            "start",
        }
    ) | {*FusionOptions.__annotations__}
    structure: str = option("S", f"{any_of(STRUCTURES)}.", default="bradley-terry")
    pair: tuple[tuple[str, str], ...] = option(
        "A B", "Compare item A with item B (again for more).", nargs=2, multiple=True, type=str, default=()
    )
    ranks: Literal["together", "alone", "tiers"] | None = option(
        None,
        "Ranks of all items that hold together, or of each by itself, or tiers: of two items in different tiers the "
        "one in the better tier is better.",
    )
    top: int | None = option("K", "Which items may be among the first K: a set that holds all of them.", type=ONE)
    since: str | None = option(
        "V",
        "With --by, in the place of --values: judgments with values of --by below V are the old part (dates, numbers, "
        "texts). Without: what was judged from the day V on.",
    )


class AuditOptions(TableOptions, ClusteredLog, ClickOptions, AuditSettings):
    """Say whether the preferences of LOG, with a loss, can lead to the right order.

    Per query: is the population low-noise, where are the cycles, what is the best achievable pairwise loss, which
    surrogate losses reach it with infinite data like this and what do the others cost, is any of that more than
    sampling noise, and which pairs should be asked next.

    \b
    Examples:
      concordant audit votes.csv
      concordant audit votes.csv --query prompt -o audit.json
      concordant audit votes.csv --surrogate ranknet --surrogate difference-graph
      concordant audit elections.soc --exact
      concordant audit votes.csv --fragility --top 3 --replicates 0
    """

    log: str = logs()
    surrogates: tuple[str, ...] = option(
        "NAME[:PHI]",
        "Audit this surrogate (again for more), such as ranknet or difference-graph:hinge, or default: what fit would "
        "do. Default: all.",
        "--surrogate",
        default=(),
    )
    target: str | None = option(
        "T",
        "Judge all by this: pairwise, ndcg@K, err@K or precision@K (ndcg, err: the whole list). Default: each by the "
        "loss that it is for, what fit would do by pairwise; of clicks all by err.",
    )
    ties: Literal["heavier", "paper"] = option(
        None,
        "How the pairwise loss charges tied scores: the heavier direction, or the formula literally.",
        default="heavier",
    )
    exact: bool = flag(
        "Best orders by dynamic programming up to 20 items that hang together in cycles, then by an integer programme."
    )
    time_limit: float = option("SECONDS", "With --exact: time for each integer programme.", default=10.0, type=SECONDS)
    structure: str | None = option(
        "S", "Structure whose scores NDCG and ERR are judged by (default: log-odds; cascade for selections)."
    )
    order: str = option("K", "Judgments aggregated at a time for NDCG and ERR: all, or a number.", default="all")
    replicates: int = option(
        None,
        "How often the judgments are drawn anew (bootstrap), to see what may be chance; 0: nothing is said of chance.",
        default=200,
        type=NONE,
    )
    level: float = option(
        None,
        "Confidence of the statements about noise.",
        default=0.95,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
    )
    top: int | None = option(
        "K",
        "Settle the top K: how many more judgments that takes, and which pairs to ask (default: the first place; "
        "pairs for the whole order).",
        type=ONE,
    )
    ask: int = option("N", "Pairs to ask next, for each query.", default=10, type=NONE)
    fragility: bool = flag(
        "How few votes, clusters or items change the first place (with --top K: who is among the first K) of one "
        "query, by Bradley–Terry scores."
    )
    pair: tuple[str, str] | None = option(
        "A B", "With --fragility: whether A or B is ahead, in the place of the top.", nargs=2, type=str
    )
    output: str | None = option(
        "F",
        "Write to F: .json has everything; .csv, .tsv, .parquet, .arrow, .jsonl a row a query; .md the findings.",
        "-o",
    )
    edges: str | None = option("F", "Write every net preference and how sure its direction is to F.")
    keep_partial: bool = flag("Interrupted (Ctrl-C, SIGTERM), write what is done, marked as incomplete.")
    seed: int = option(None, SEED, default=0)
    rows: int = option(None, "Queries in the table on a terminal.", default=20, type=ONE)


class DemoOptions(Options):
    """Rank 59 language models by 8,931 votes of 124 people on their answers to 13 prompts.

    The votes are those of LLMFAO (D. Ustalov, CC BY 4.0) and come with the package. GPT-4 judged the same pairs; the
    demonstration shows where the two agree. Tables go to the folder, and report.html, a page to look at.
    """

    output: str = option("DIR", "Folder for the files.", "-o", default="demo-output")
    seed: int = option(None, SEED, default=0)


# -- scorers -----------------------------------------------------------------------------------------------------------
class ScoreOptions(TableOptions, AbstentionOptions, SparkOptions):
    """Score and rank items by a fitted model: columns query, item, score, rank (1 = best of its query).

    Columns of F are matched with the model's features by name; others are left unread. Equal scores share a rank.

    With --abstain, or a model kept as an AbstainingRanker, there is a column tier (1 = best of its query). Of two items
    in different tiers the model says which is better; of two in the same tier it does not.

    \b
    Examples:
      concordant score --model model --features new-items.csv
      concordant score -m model -f test.txt -o scores.parquet
      concordant score -m model -f new-items.csv --abstain 0.2 --judgments held-out.csv --judged-features items.csv
    """

    features: str = option("F", "Features of the items to score.", "-f", required=True)
    output: str | None = option(
        "F", f"{TABLE}; with --engine spark also a folder, for Parquet that the executors write.", "-o"
    )
    stream: bool | None = option(
        None,
        "Leave F on disk (Parquet, Arrow or a folder of them) and read it block by block. Default: where F would not "
        "fit into memory.",
        "--stream/--in-memory",
    )
    memory_limit: str | None = option("SIZE", "Memory for F, such as 4GB; a larger one stays on disk.")
    abstain: float | None = option(
        "COST",
        "Order no two items where that is too risky: COST of that, from 0 to 1 (a wrong order costs 1). Adds the "
        "column tier: items of one tier are not ordered.",
    )


class EvaluateOptions(TextOptions, FeatureOptions, SparkOptions, SidedLog):
    """Judge SCORES by graded LABELS, or by judgments that they have not seen.

    SCORES is a table with columns query, item, score, as concordant score writes it; LABELS is LETOR, qrels or a table
    with columns query, item, label. Rows are matched by query and item; without a query in both files all rows are one
    query. Equal scores are taken in the order of SCORES unless the convention has another rule. Printed are mean and
    standard error of each metric over queries.

    In the place of LABELS a log of judgments, as concordant rank reads it: then SCORES is a ranking that concordant
    rank wrote from other judgments, and its predictions are judged by accuracy, log-loss, Brier score and calibration.

    In the place of SCORES a model that concordant fit wrote: it scores the items by --features, and without --metric it
    is judged by what it was fitted for.

    With --split a log of judgments alone: parts of it are held out, and foretold by a ranking of the others.

    \b
    Examples:
      concordant evaluate votes.csv --split random
      concordant evaluate model test.txt
      concordant evaluate model votes-of-june.csv --features items.csv
      concordant evaluate ranking.csv games.csv --home --coefficients coefficients.csv
      concordant evaluate scores.csv test.txt --metric ndcg@10 map err@10
      concordant evaluate scores.csv test.qrels --metric ndcg@10 --convention trec --per-query
      concordant evaluate new.parquet test.txt --against old.parquet
      concordant evaluate ranking.csv votes-of-june.csv --cluster worker
    """

    scores: str = argument()
    labels: str = argument(required=False)
    more: tuple[str, ...] = argument(nargs=-1, metavar="")
    metrics: tuple[str, ...] = option(
        "M",
        f"{any_of(METRICS)}; a cut-off is written as in ndcg@10. Several: --metric ndcg@10 map, or --metric again.",
        "--metric",
        default=(),
        show_default="the target",
    )
    target: str | None = option(
        "T",
        "Judge by this: pairwise, ndcg@K, err@K or precision@K; judgments as concordant fit does with this target. "
        "Default: what the model was fitted for; of SCORES ndcg@10, and nothing where LABELS are judgments.",
    )
    unsafe_load_pickle: bool = flag(PICKLE)
    convention: str | None = option("C", "burges (default), sklearn, trec, xgboost, lightgbm or letor4.")
    against: str | None = option("SCORES", "A second scorer on the same rows: paired differences, first minus second.")
    per_query: bool = flag("One row per metric and query.")
    unmatched: Literal["raise", "skip", "trec"] | None = option(
        None,
        "Rows of one file that the other lacks: an error, left out, or as trec_eval does: what has no label is not "
        "relevant, what has no score is not retrieved, in the queries that both have.",
        show_default="raise, of a run and qrels trec",
    )
    query: str | None = option("C", "Column of the query, in both files.")
    item: str | None = option("C", "Column of the item, in both files.")
    score: str | None = option("C", "Column of the score.")
    label: str | None = option("C", "Column of the label.")
    coefficients: str | None = option(
        "F", "Home advantage, covariates and ties of the ranking, as concordant rank --coefficients wrote them."
    )
    level: float = option(None, "Confidence level of --against, and of the AUC of one list (DeLong).", default=0.95)
    split: Literal["random", "cluster", "time"] | None = option(
        None,
        "Hold out votes at random, whole clusters, or what came later; the ranking of the others foretells them.",
    )
    folds: int = option("N", "With --split: number of parts.", default=5, type=click.IntRange(2, 1000))
    structure: str = option("S", "With --split: as for concordant rank.", default="bradley-terry")
    prior: float | Literal["auto"] | None = option(
        "V",
        "With --split: as for concordant rank.",
        type=Said("auto or a number of at least 0", float, "auto"),
    )
    ties: Literal["half", "any-order", "davidson", "cumulative"] | None = option(
        None, "With --split: as for concordant rank."
    )
    time: str | None = option("C", "With --split time: column of when each comparison was made.")
    half_life: str | None = option("T", "With --split time: judgments count half at the age of T (90d, 6w, 2y).")
    seed: int = option(None, SEED, default=0)


class ServeOptions(AbstentionOptions):
    """Answer requests over HTTP by a fitted model: POST /score, /rank, /compare; GET /health, /ready, /metrics.

    There is no TLS, and no login but a token: for others than this machine, put it behind a proxy. Ctrl-C and SIGTERM
    end it when the requests that have begun are answered; SIGHUP loads model and features anew,
    and no request is lost. --abstain and what belongs to it are as for concordant score.

    \b
    Examples:
      concordant serve --model model --features items.csv
      concordant serve -m model -f items.parquet --host 0.0.0.0 --port 9000 --workers 2 --log-format json
    """

    features: str | None = option(
        "F",
        "Features of the items that may be asked for by their labels; without it, requests bring features of their "
        "own.",
        "-f",
    )
    host: str = option("ADDRESS", "Where to listen; 0.0.0.0 is every interface of this machine.", default="127.0.0.1")
    port: int = option("N", "0 takes a free one.", default=8080, type=click.IntRange(0, 65535))
    host_name: tuple[str, ...] = option(
        "NAME", "A name that clients call this server by, beside localhost and --host; repeatable.", default=()
    )
    token_file: str | None = option(
        "FILE",
        "Answer only whoever shows the token in FILE (authorization: Bearer …); CONCORDANT_SERVE_TOKEN may hold it, "
        "too.",
    )
    workers: int = option(
        "N", "Processes, each with model and features of its own.", default=1, type=click.IntRange(1, 256)
    )
    max_items: int = option("N", "Items, or pairs, in one request.", default=1000, type=ONE)
    max_body: int = option(
        "SIZE",
        "Size of a request's body.",
        default="4MB",
        type=Said("a size such as 500KB or 4MB", size),
    )
    limit_concurrency: int = option(
        "N", "Requests taken at once in a worker; others are refused (503).", default=64, type=ONE
    )
    timeout: float = option("SECONDS", "In which a whole request must have arrived.", default=10.0, type=SECONDS)
    watch: float | None = option(
        "SECONDS", "Look every so often whether model or features were replaced, and load them anew.", type=SECONDS
    )
    shadow: str | None = option(
        "DIR",
        "A second model, to be compared: it answers a share of the requests, too, and nobody is sent its answers.",
    )
    shadow_share: float = option(
        "S", "With --shadow: the share of the requests.", default=0.1, type=click.FloatRange(0, 1, min_open=True)
    )


class ExportOptions(ModelOptions, FeatureOptions, LogOptions):
    """Write a model for other software, its normaliser included, or a model card, or both.

    onnx takes every regressor that has a converter, in float64; elasticsearch, opensearch and solr take linear
    scorers and trees (solr networks too), in float32, the former two also both added up; json is documented in
    docs/export.md.

    \b
    Examples:
      concordant export --model model --to onnx -o model.onnx
      concordant export -m model --to elasticsearch -o model.json --feature-names title,body,age
      concordant export -m model --card README.md --log votes.csv --features items.csv --labels test.txt
    """

    to: str | None = option("FORMAT", "onnx, elasticsearch, opensearch, solr or json.")
    output: str | None = option("FILE", "Write the model to FILE.", "-o")
    card: str | None = option("FILE", "Write a model card to FILE, such as README.md.")
    name: str | None = option("N", "Name of the model (default: FILE without its ending; in the card DIR).")
    feature_names: str | None = option("A,B,…", "What the features are called there, in the order of the model's.")
    of_query: str | None = option("Q", "Of a model with a scoring function for each query: which one.")
    log: str | None = option("LOG", "For the card: the judgments that the model learned from.")
    held_out: str | None = option("LOG", "For the card: judgments that it has not seen.")
    labels: str | None = option("F", "For the card: a LETOR file with graded labels that it has not seen.")
    features: str | None = option("F", "For the card: features of the items of --log and --held-out.", "-f")
    held_out_features: str | None = option("F", "Features of the items of --held-out, if not those of --features.")
    license: str = option(
        "ID", "For the card: licence of the model, as the hub calls it (mit, cc-by-4.0, …).", default="unknown"
    )
    audit: bool = option(None, "For the card: audit the judgments of --log.", "--audit/--no-audit", default=True)


# -- commands ----------------------------------------------------------------------------------------------------------
OPTIONS: dict[str, type[Options]] = {
    "doctor": DoctorOptions,
    "rank": RankOptions,
    "compare": CompareOptions,
    "explain": ExplainOptions,
    "tree": TreeOptions,
    "scores": ScoresOptions,
    "look": LookOptions,
    "judges": JudgesOptions,
    "camps": CampsOptions,
    "fit": FitOptions,
    "pairs": PairsOptions,
    "score": ScoreOptions,
    "evaluate": EvaluateOptions,
    "report": ReportOptions,
    "audit": AuditOptions,
    "axioms": AxiomsOptions,
    "export": ExportOptions,
    "serve": ServeOptions,
    "ingest": IngestOptions,
    "store info": InfoOptions,
    "store batches": BatchesOptions,
    "store remove": RemoveOptions,
    "store replace": ReplaceOptions,
    "store forget": ForgetOptions,
    "store day": DayOptions,
    "store backup": BackupOptions,
    "store restore": RestoreOptions,
    "store verify": StoreOptions,
    "store compact": CompactOptions,
    "store export": StoreExportOptions,
    "reproduce": ReproduceOptions,
    "counterexample": CounterexampleOptions,
    "demo": DemoOptions,
}
GROUPS = {
    "store": "Look into a store: its batches, taken out, replaced, forgotten; verify, back up, restore.\n\n"
    "A store is made by concordant ingest LOG --store FILE, and read wherever a log is."
}


def command_of(name: str) -> click.Command:
    """Return a command, or a group of them."""
    if name in GROUPS:
        inner = [command_of(one) for one in OPTIONS if one.startswith(f"{name} ")]
        return click.Group(name, inner, help=GROUPS[name], context_settings=HELP)
    file, *_, function = [*name.split(), *name.split()]

    def run(options: Any) -> None:
        options.within_memory(getattr(importlib.import_module(f"concordant.apps.commands.{file}"), function))

    return command(name, OPTIONS[name], run, RULES)
