"""Options of ``concordant doctor``."""

from __future__ import annotations

from concordant.apps.commands.given import Options, argument, flag, option


class DoctorOptions(Options):
    """What is FILE, what does it support, what stops it, and what to run next?

    FILE is anything: a log of votes, results of an evaluation as its harness writes them (Chatbot Arena, Kaggle's LMSYS
    columns, MT-bench, WMT, HELM, lm-evaluation-harness, Inspect, promptfoo, DeepEval, OpenAI evals, MTEB), a table of
    scores, a folder of such files, features, labels, a run, a store. It is known by what stands in it. The commands
    that are named can be pasted as they are. Exit status 0 where the file can be used, 2 where nothing can be done.

    \b
    Examples:
      concordant doctor votes.csv
      concordant doctor results/ -o results.json
    """

    file: str = argument()
    json: bool = flag("Print everything as one JSON object.")
    output: str | None = option("F", "Write everything to F, a .json file.", "-o")
