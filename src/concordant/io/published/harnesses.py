"""Results as evaluation harnesses write them, in JSON: each a set of scores of systems on tasks.

Layouts by their first object: lm-evaluation-harness (results, samples), Inspect, promptfoo, DeepEval, OpenAI evals,
MTEB, HELM (tables, runs, instances), MT-bench (graded answers). What a file leaves to the name of its folder (of
harness samples, MTEB and HELM the system) is taken from there, and said.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concordant.errors import InputError
from concordant.io.log.formats import Log
from concordant.io.published.documents import Head, document, inner, number, records
from concordant.io.published.published import Layout, Scores
from concordant.preferences.layouts import LOSSES, is_aside

FOLDER = "the name of the system is taken from the folder ({names})"
METRIC = "the score is {names}"
LOWER = "lower is better in {names}, whose sign is changed"


def _beside(log: Log, *names: str) -> Any:
    """Return what a small JSON file beside a log holds; None where there is none, or none that can be read."""
    for name in names:
        path = Path(log.paths[0]).parent / name
        try:
            if path.is_file() and path.stat().st_size < 1 << 24:
                return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
    return None


def _of_folder(log: Log, scores: Scores, up: int = 0) -> str:
    """Return the system as the folder of a log is called, which writes / as __."""
    path = Path(log.paths[0])
    folder = (path.absolute().parents[up].name if up else scores.places.get(path, path.absolute().parent.name)).replace(
        "__", "/"
    )
    scores.say(FOLDER, folder)
    return folder


# -- lm-evaluation-harness ---------------------------------------------------------------------------------------------
def _harness(head: Head) -> bool:
    found = head.first.get("results")
    return (
        isinstance(found, dict)
        and bool(found)
        and all(isinstance(one, dict) for one in found.values())
        and any(name in head.first for name in ("versions", "configs", "n-shot"))
    )


def _harness_model(whole: Mapping[str, Any]) -> str:
    config = whole.get("config")
    named = whole.get("model_name") or inner(config, "model_name")
    arguments = inner(config, "model_args")
    if not named and isinstance(arguments, dict):
        named = arguments.get("pretrained") or arguments.get("model")
    elif not named and isinstance(arguments, str):
        found = re.search(r"(?:^|,)(?:pretrained|model|engine|path)=([^,]+)", arguments)
        named = found[1] if found else arguments
    model = str(inner(config, "model") or "")
    return str(named or ("" if BACKEND.fullmatch(model) else model))


BACKEND = re.compile(
    r"hf(-.*)?|huggingface|vllm(-.*)?|neox|gpt2|gpt3|sglang(-.*)?|nemo_lm|megatron(_lm)?|mamba(_ssm)?|gguf|ggml|dummy|"
    r"textsynth|local(-.*)?|openai(-.*)?|anthropic(-.*)?|neuron(x|_model)?|sparseml|deepsparse|optimum(-lm)?|api|watsonx(_.*)?",
    re.IGNORECASE,
)
"""What config.model says of a run where it is no model: who ran it."""


def _read_harness(log: Log, _: Head, scores: Scores) -> None:
    whole = document(log)
    system = _harness_model(whole) or _of_folder(log, scores)
    sums = {name for name, parts in (whole.get("group_subtasks") or {}).items() if parts}
    sums |= {name for name in (whole.get("groups") or {}) if name in sums or not inner(whole, "configs", name)}
    kept = {name: found for name, found in whole["results"].items() if name not in sums} or whole["results"]
    if left := len(whole["results"]) - len(kept):
        scores.say(f"{left} means over groups of tasks are left out, their tasks are there")
    for task, found in kept.items():
        metric = _harness_metric(found, inner(whole, "configs", task, "metric_list"))
        if metric is None:
            scores.add(system, task, None, missing="tasks have no number")
            continue
        value, plain = number(found[metric]), metric.split(",")[0]
        higher = inner(whole, "higher_is_better", task, plain)
        if higher is False or (higher is None and LOSSES.search(plain)):
            scores.say(LOWER, plain)
            value = None if value is None else -value
        scores.say(METRIC, plain)
        scores.add(system, task, value, missing="tasks have no number")


def _harness_metric(found: Mapping[str, Any], listed: Any) -> str | None:
    """Return the key of the first metric of a task: as its configuration lists them, else as they stand."""
    keys = [key for key, value in found.items() if number(value) is not None and "_stderr" not in key]
    keys = [key for key in keys if key not in ("alias", "sample_len", "samples")]
    wanted = [one.get("metric") for one in listed or () if isinstance(one, dict)]
    keys = sorted(keys, key=lambda key: LOSSES.search(key.split(",")[0]) is not None)
    return next((key for one in wanted for key in keys if key.split(",")[0] == one), keys[0] if keys else None)


STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")
NO_METRIC = ("doc_id", "doc_hash", "prompt_hash", "target_hash", "filter", "target", "doc", "arguments", "resps")


def _read_samples(log: Log, head: Head, scores: Scores) -> None:
    stem = Path(log.paths[0]).name.split(".jsonl")[0]
    stamp = STAMP.search(stem)
    about = _beside(log, f"results_{stamp[1]}.json") if stamp else None
    system = (_harness_model(about) if isinstance(about, dict) else "") or _of_folder(log, scores)
    task = STAMP.sub("", stem).removeprefix("samples_")
    metrics = head.first.get("metrics")
    listed = metrics if isinstance(metrics, list) else [name for name in head.first if name not in NO_METRIC]
    metric = next((one for one in listed if isinstance(one, str) and number(head.first.get(one)) is not None), None)
    if metric is None:
        raise InputError(f"{log.name}: samples of lm-evaluation-harness, of which no metric is a number")
    scores.say(METRIC, metric)
    wanted = head.first.get("filter")
    for _, record in records(log, head.form):
        if record.get("filter") == wanted:
            scores.add(system, f"{task}/{record.get('doc_id')}", record.get(metric), missing="samples have no number")
        else:
            scores.say("of several filters of answers the first counts ({names})", wanted)


# -- Inspect -----------------------------------------------------------------------------------------------------------
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "correct": 1.0, "incorrect": 0.0, "partial": 0.5, "noanswer": 0.0}
"""What Inspect takes its grades for, as numbers."""


def _graded(value: Any) -> float | None:
    if isinstance(value, dict):
        return next((found for one in value.values() if (found := _graded(one)) is not None), None)
    if isinstance(value, str):
        word = value.strip()
        if word in GRADES:
            return GRADES[word]
        return {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}.get(word.lower())
    return number(value)


def read_inspect(whole: Mapping[str, Any], scores: Scores) -> None:
    """Take the scores of a log of Inspect: of each sample and epoch, or, without samples, the first metric."""
    about = whole["eval"]
    system, task = about.get("model"), str(about.get("task"))
    samples = [one for one in whole.get("samples") or () if isinstance(one, dict)]
    if not samples:
        for one in inner(whole, "results", "scores") or ():
            for name, found in (one.get("metrics") or {}).items():
                scores.say(METRIC, name)
                scores.say("the log has no samples, its result counts")
                scores.add(system, task, found.get("value") if isinstance(found, dict) else found)
                return
        scores.add(system, task, None, missing="logs have neither samples nor results")
        return
    scorers = list(dict.fromkeys(name for one in samples for name in one.get("scores") or ()))
    if len(scorers) > 1:
        scores.say("of several scorers the first counts ({names})", ", ".join(scorers))
    for one in samples:
        held = one.get("scores") or {}
        found = held.get(scorers[0]) if scorers else None
        value = _graded(found.get("value") if isinstance(found, dict) else found)
        scores.add(system, f"{task}/{one.get('id')}", value, one.get("epoch"), "samples have no score")


# -- promptfoo, DeepEval, OpenAI evals ---------------------------------------------------------------------------------
def _foo_results(value: Any) -> list[Any] | None:
    found = value.get("results") if isinstance(value, dict) else None
    found = found.get("results") if isinstance(found, dict) else found
    return found if isinstance(found, list) else None


def _is_foo(value: Any) -> bool:
    return isinstance(value, dict) and {"provider", "prompt"} <= set(value) and bool({"success", "score"} & set(value))


def _promptfoo(head: Head) -> bool:
    found = _foo_results(head.first)
    return bool(_is_foo(head.first) or (found and _is_foo(found[0])))


def _read_promptfoo(log: Log, head: Head, scores: Scores) -> None:
    found = [one for _, one in records(log, head.form)]
    if not _is_foo(head.first):
        found = [one for whole in found for one in _foo_results(whole) or ()]
    prompts: dict[str, int] = {}
    for one in found:
        prompts.setdefault(json.dumps(one.get("promptIdx", inner(one, "prompt", "raw"))), len(prompts) + 1)
    for one in found:
        provider = one.get("provider")
        system = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        if len(prompts) > 1:
            scores.say("a system is a provider with one of the prompts")
            system = f"{system}, prompt {prompts[json.dumps(one.get('promptIdx', inner(one, 'prompt', 'raw')))]}"
        test = one.get("testIdx")
        task = inner(one, "testCase", "description") or one.get("description")
        named = f"test {test}" if test is not None else json.dumps(one.get("vars"), sort_keys=True, ensure_ascii=False)
        score = one.get("score") if number(one.get("score")) is not None else one.get("success")
        scores.add(system, f"{named}: {task}" if task and test is not None else task or named, score)


def _deep_cases(value: Any) -> tuple[Mapping[str, Any], list[Any]] | None:
    for whole in (value, inner(value, "testRunData")):
        for name in ("testCases", "test_cases", "testResults", "test_results"):
            cases = inner(whole, name)
            first = cases[0] if isinstance(cases, list) and cases else None
            if isinstance(first, dict) and {"metricsData", "metrics_data", "metricsMetadata"} & set(first):
                return whole, [*cases, *(inner(whole, "conversationalTestCases") or ())]
    return None


def _read_deepeval(log: Log, _: Head, scores: Scores) -> None:
    whole, cases = _deep_cases(document(log)) or ({}, [])
    system = next((found for key in ("model", "Model", "llm") if (found := inner(whole, "hyperparameters", key))), None)
    if system is None:
        system = re.sub(r"^\.+", "", Path(log.paths[0]).name).split(".")[0]
        scores.say("the file names no model (hyperparameters), so the system is called as the file ({names})", system)
    for case in cases:
        for one in case.get("metricsData") or case.get("metrics_data") or case.get("metricsMetadata") or ():
            name = one.get("name") or one.get("metric")
            why = "metrics ended with an error" if one.get("error") else "metrics have no score"
            scores.add(system, f"{case.get('name') or case.get('input')}/{name}", one.get("score"), missing=why)


GRADED_EVENTS = ("correct", "accuracy", "score", "f1_score", "f1")


def _read_evals(log: Log, head: Head, scores: Scores) -> None:
    spec = head.first["spec"]
    functions = spec.get("completion_fns") or [spec.get("model_name") or inner(spec, "run_config", "model_name")]
    system, task = ", ".join(map(str, functions)), str(spec.get("eval_name"))
    report: Mapping[str, Any] = {}
    before = len(scores.score)
    for _, record in records(log, head.form):
        report = record.get("final_report") or report
        if record.get("type") in ("match", "metrics") and isinstance(data := record.get("data"), dict):
            key = next((key for key in GRADED_EVENTS if number(data.get(key)) is not None), None)
            key = key or next((key for key in data if number(data[key]) is not None), None)
            if key is not None:
                scores.say(METRIC, key)
                scores.add(system, f"{task}/{record.get('sample_id')}", data[key])
    if len(scores.score) == before:
        key = next((key for key in (*GRADED_EVENTS, *report) if number(report.get(key)) is not None), None)
        if key is not None:
            scores.say("no sample is graded, the final report counts")
            scores.say(METRIC, key)
        scores.add(system, task, report.get(key or ""), missing="runs have neither graded samples nor a report")


# -- MTEB --------------------------------------------------------------------------------------------------------------
def _mteb_task(value: Mapping[str, Any]) -> bool:
    return (
        isinstance(value.get("scores"), dict)
        and "task_name" in value
        and bool({"mteb_version", "dataset_revision", "evaluation_time"} & set(value))
    )


def _main_scores(value: Any) -> Iterable[float]:
    if isinstance(value, dict):
        if (found := number(value.get("main_score"))) is not None:
            yield found
        else:
            for one in value.values():
                yield from _main_scores(one)
    elif isinstance(value, list):
        for one in value:
            yield from _main_scores(one)


def _add_mteb(system: str, value: Mapping[str, Any], scores: Scores) -> None:
    splits = value.get("scores", value)
    split = splits["test"] if splits.get("test") else splits
    found = list(_main_scores(split))
    if len(found) > 1:
        scores.say("the score of a task is the mean of its main scores over subsets")
    name = value.get("task_name") or value.get("mteb_dataset_name")
    scores.add(system, name, sum(found) / len(found) if found else None, missing="tasks have no main score")


def _read_mteb(log: Log, head: Head, scores: Scores) -> None:
    if head.has("model_results") or head.has("task_results"):
        whole = document(log)
        for one in whole.get("model_results") or [whole]:
            for task in one.get("task_results") or ():
                _add_mteb(str(one.get("model_name")), task, scores)
        return
    about = _beside(log, "model_meta.json")
    named = inner(about, "name")
    folders = Path(log.paths[0]).absolute().parents
    revision = about is not None or ("__" in folders[1].name and "__" not in folders[0].name)
    system = str(named) if named else _of_folder(log, scores, 1 if revision else 0)
    for _, record in records(log, head.form):
        _add_mteb(system, record, scores)


# -- HELM --------------------------------------------------------------------------------------------------------------
def _is_table(value: Any) -> bool:
    header, rows = inner(value, "header"), inner(value, "rows")
    return (
        isinstance(header, list)
        and isinstance(rows, list)
        and len(header) > 1
        and all(isinstance(one, dict) and "value" in one for one in header)
    )


def _read_helm_table(log: Log, head: Head, scores: Scores) -> None:
    tables = [one for _, one in records(log, head.form) if _is_table(one)]
    table = tables[0]
    if len(tables) > 1:
        scores.say("of several tables the first counts ({names})", ", ".join(str(one.get("title")) for one in tables))
    for row in table["rows"]:
        for place, column in enumerate(table["header"][1:], 1):
            name = str(column["value"])
            if re.search(r"win rate|^mean|average", name.lower()):
                scores.say("{names} is left out: it sums others up", name)
                continue
            value = number(inner(row[place], "value")) if place < len(row) else None
            if value is not None and column.get("lower_is_better"):
                scores.say(LOWER, name)
                value = -value
            scores.add(inner(row[0], "value"), name, value, missing="cells are empty")


HELM_METRICS = (
    ("narrative_qa|natural_qa|quac", "f1_score"),
    ("wmt_14", "bleu_4"),
    ("gsm", "final_number_exact_match"),
    ("math", "math_equiv_chain_of_thought"),
    ("summarization", "rouge_2"),
    ("msmarco", "RR@10"),
)
"""By the scenario, what HELM's own tables show."""
HELM_USUAL = ("exact_match", "quasi_exact_match", "f1_score", "rouge_l", "ndcg_10")


def _helm_run(log: Log, scores: Scores) -> tuple[str, str]:
    """Return the system and the scenario of a run, as its specification beside it says, else its folder's name."""
    spec = _beside(log, "run_spec.json")
    folder = Path(log.paths[0]).absolute().parent.name
    name = str(inner(spec, "name") or folder)
    system = inner(spec, "adapter_spec", "model")
    if not system:
        found = re.search(r"model=([^,]+)", folder)
        system = (found[1] if found else folder).replace("_", "/", 1)
        scores.say(FOLDER, system)
    return str(system), re.sub(r"[,:-]?model(?:_deployment)?=[^,]+", "", name).rstrip(",:")


def _helm_value(found: Any, scenario: str) -> tuple[str, float] | None:
    values: dict[str, float] = {}
    for one in found:
        name = inner(one, "name", "name")
        plain = not inner(one, "name", "perturbation") and inner(one, "name", "split") in (None, "test", "valid")
        if isinstance(name, str) and plain and (value := number(inner(one, "mean"))) is not None:
            values.setdefault(name, value)
    wanted = [metric for pattern, metric in HELM_METRICS if re.match(pattern, scenario)]
    return next(((name, values[name]) for name in (*wanted, *HELM_USUAL) if name in values), None)


def _read_helm(log: Log, head: Head, scores: Scores) -> None:
    system, scenario = _helm_run(log, scores)
    found = [one for _, one in records(log, head.form)]
    whole: list[tuple[str, Any, Any]] = [(scenario, None, found)]
    if head.has("instance_id"):
        whole = [(f"{scenario}/{one.get('instance_id')}", one.get("train_trial_index"), one.get("stats") or ())
                 for one in found]  # fmt: skip
    for task, trial, stats in whole:
        chosen = _helm_value(stats, scenario)
        if chosen is not None:
            scores.say(METRIC, chosen[0])
        scores.add(system, task, chosen and chosen[1], trial, f"have none of {', '.join(HELM_USUAL)}")


def _read_graded(log: Log, head: Head, scores: Scores) -> None:
    """MT-bench: grades of answers by a judge, −1 where it failed; the turns of a question are its trials."""
    for _, one in records(log, head.form):
        score = number(one.get("score"))
        score = None if score is None or score < 0 else score
        scores.add(one.get("model"), one.get("question_id"), score, one.get("turn"), "judgments failed (score −1)")


# -- SWE-bench, Every Eval Ever, scores by name ------------------------------------------------------------------------
def _of_file(log: Log, scores: Scores) -> str:
    """Return the system as its file is called, MODEL.RUN.json, or, of results.json and the like, the folder."""
    path = Path(log.paths[0])
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl")
    if stem in ("results", "report", "final_report", "final_results") and (path in scores.places or stem == "results"):
        return _of_folder(log, scores, 1 if path.absolute().parent.name == "results" else 0)
    system = stem.rsplit(".", 1)[0]
    scores.say("the file names no system, so it is called as the file ({names})", system)
    return system


def _read_swe_report(log: Log, _: Head, scores: Scores) -> None:
    whole, system = document(log), _of_file(log, scores)
    resolved = {*whole["resolved_ids"]}
    for task in {
        name: None for key in ("submitted_ids", "resolved_ids", "incomplete_ids") for name in whole.get(key) or ()
    }:
        scores.add(system, task, task in resolved)
    if whole.get("incomplete_ids"):
        scores.say("instances without a submission count as not resolved, as SWE-bench counts them")


def _read_swe_results(log: Log, _: Head, scores: Scores) -> None:
    whole, system = document(log), _of_file(log, scores)
    scores.else_zero = True
    scores.say("the files list what was resolved: an instance that only others name counts as not resolved")
    named = dict.fromkeys(name for found in whole.values() if isinstance(found, list) for name in found)
    for task in named:
        scores.add(system, task, task in whole["resolved"])


def _swe_instance(head: Head) -> bool:
    return bool(head.first) and all(
        isinstance(one, dict) and {"resolved", "patch_exists"} <= set(one) for one in head.first.values()
    )


def _read_swe_instance(log: Log, _: Head, scores: Scores) -> None:
    system = Path(log.paths[0]).absolute().parents[1].name.replace("__", "/")
    scores.say(FOLDER, system)
    for task, found in document(log).items():
        scores.add(system, task, found.get("resolved"))


def _read_every(log: Log, head: Head, scores: Scores) -> None:
    for _, one in records(log, head.form):
        system = inner(one, "model_info", "id") or inner(one, "model_info", "name")
        for found in one.get("evaluation_results") or ():
            value, name = number(inner(found, "score_details", "score")), found.get("evaluation_name")
            if value is not None and inner(found, "metric_config", "lower_is_better") is True:
                scores.say(LOWER, name)
                value = -value
            scores.add(system, name, value)


PARTS = {"train", "training", "test", "testing", "dev", "valid", "validation", "eval", "overall", "metrics", "config"}
"""Names of parts of one result, which are no systems."""
GRADES_BY_NAME = ("resolved", "score", "correct", "success", "passed", "pass", "accuracy", "acc", "value")


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the numbers in nested objects by where they lie; true and false only where they are called as a score."""
    if not isinstance(value, dict):
        truth = isinstance(value, bool) and path.rpartition("/")[2] not in GRADES_BY_NAME
        return {} if number(value) is None or truth else {path: value}
    inside = [_leaves(one, f"{path}/{name}" if path else str(name)) for name, one in value.items()]
    return {name: leaf for one in inside for name, leaf in one.items()}


def _by_name(whole: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the scores of each system by task, of an object of systems; nothing where it is none of that.

    Where every task is an object of several numbers, of which one is called as a score, that one counts.
    """
    if len(whole) < 3 or {*whole} & PARTS or not all(isinstance(one, dict) and one for one in whole.values()):
        return {}
    found = {str(name): _leaves(one) for name, one in whole.items()}
    ends = {path.rpartition("/")[2] for one in found.values() for path in one if "/" in path}
    if len(ends) < 10 and all("/" in path for one in found.values() for path in one):
        end = next((one for one in GRADES_BY_NAME if one in ends), None)
        if end is not None:
            found = {
                name: {path.rpartition("/")[0]: one for path, one in held.items() if path.rpartition("/")[2] == end}
                for name, held in found.items()
            }
    found = {
        name: {path: one for path, one in held.items() if not is_aside(path.rpartition("/")[2])}
        for name, held in found.items()
    }
    times = Counter(path for held in found.values() for path in held)
    shared = {path for path, number in times.items() if 2 * number >= len(found)}
    return found if len(shared) > 1 and sum(bool(held) for held in found.values()) * 10 >= 9 * len(found) else {}


def _known_by_name(head: Head) -> bool:
    return head.form == "document" and bool(_by_name(head.first))


def _read_by_name(log: Log, _: Head, scores: Scores) -> None:
    found, left = _by_name(whole := document(log)), set()
    for system, held in found.items():
        lost = {path for path in _leaves(whole[system]) if path not in held and path.rpartition("/")[0] not in held}
        left |= {path.rpartition("/")[2] for path in lost}
        for task, value in held.items():
            scores.add(system, task, value)
    scores.say("the file is an object of systems; the scores of each are the numbers in it")
    for name in sorted(left)[:12]:
        scores.say("left out, as no scores on a task: {names}", name)


LAYOUTS = (
    Layout("lm-evaluation-harness samples", lambda head: head.has("doc_id", "target") and bool(
        {"filtered_resps", "resps"} & set(head.first)), _read_samples, "lm-evaluation-harness", 1),
    Layout("lm-evaluation-harness results", _harness, _read_harness, "lm-evaluation-harness"),
    Layout("Inspect log", lambda head: isinstance(inner(head.first, "eval", "task"), str) and "model" in head.first[
        "eval"], lambda log, _, scores: read_inspect(document(log), scores), named="inside"),
    Layout("promptfoo results", _promptfoo, _read_promptfoo, named="inside"),
    Layout("DeepEval results", lambda head: _deep_cases(head.first) is not None, _read_deepeval, named="file"),
    Layout("OpenAI evals log", lambda head: isinstance(head.first.get("spec"), dict) and bool(
        {"completion_fns", "eval_name"} & set(head.first["spec"])), _read_evals, named="inside"),
    Layout("MTEB results", lambda head: _mteb_task(head.first) or head.has("mteb_dataset_name") or any(
        isinstance(head.first.get(name), list) for name in ("model_results", "task_results")), _read_mteb),
    Layout("HELM table", lambda head: _is_table(head.first), _read_helm_table),
    Layout("HELM instances", lambda head: head.has("instance_id", "stats"), _read_helm, "HELM run", 1),
    Layout("HELM run", lambda head: isinstance(inner(head.first, "name", "name"), str) and head.has(
        "count", "sum"), _read_helm, "HELM run"),
    Layout("SWE-bench report", lambda head: head.has("resolved_ids", "submitted_ids"), _read_swe_report, named="file"),
    Layout("SWE-bench results", lambda head: isinstance(head.first.get("resolved"), list) and bool(
        {"no_generation", "no_logs", "applied", "generated"} & set(head.first)), _read_swe_results),
    Layout("SWE-bench instances", _swe_instance, _read_swe_instance),
    Layout("Every Eval Ever", lambda head: head.has("evaluation_results", "model_info"), _read_every, named="inside"),
    Layout("MT-bench grades", lambda head: head.has("question_id", "model", "judge", "score"), _read_graded,
           named="inside"),
    Layout("scores by name", _known_by_name, _read_by_name, alone=True),
)  # fmt: skip
"""The first that is known counts."""
