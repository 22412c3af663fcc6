"""Evaluation files as they are published: known by what stands in them, read as a person would read them.

The files are written here, in the layouts of the tools that write them; what they should give is written beside them.
"""

from __future__ import annotations

import csv
import json
import math
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from concordant.errors import ConcordantError, InputError
from concordant.io.log.formats import locate
from concordant.io.published.published import Published
from concordant.io.published.recognise import found_in as known_in
from concordant.io.published.recognise import recognised
from concordant.io.read import read, read_log
from concordant.io.score_tables import read_scores, tabled
from concordant.preferences.preferences import Preferences
from seeds import seed

Rows = list[tuple[Any, ...]]


def lines(*records: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def written(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def found_in(path: Path) -> Published | None:
    """The scores of a file of a published layout, or of a table that by its columns holds some."""
    return known_in(path) or (None if path.suffix == ".eval" or path.is_dir() else tabled(locate(path)))


def score_table(path: Path) -> pa.Table | None:
    found = found_in(path)
    return None if found is None else found.table


def rows(table: pa.Table | None) -> Rows:
    assert table is not None
    return sorted(tuple(row.values()) for row in table.to_pylist())


def stats(name: str, mean: float, **more: Any) -> dict[str, Any]:
    return {"name": {"name": name, "split": "test", **more}, "count": 1, "sum": mean, "mean": mean}


def inspected(model: str, samples: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    about = {"task": "arc", "model": model, "created": "2025-05-12"}
    return {"version": 2, "status": "success", "eval": about, "samples": samples, **more}


HARNESS = {
    "results": {
        "hellaswag": {"alias": "hellaswag", "acc,none": 0.5, "acc_stderr,none": 0.01, "acc_norm,none": 0.6},
        "wikitext": {"word_perplexity,none": 20.0, "word_perplexity_stderr,none": "N/A", "alias": "wikitext"},
        "mmlu": {"acc,none": 0.4, "alias": "mmlu"},
        "mmlu_law": {"acc,none": 0.3, "alias": " - law"},
        "mmlu_art": {"acc,none": float("nan"), "alias": " - art"},
    },
    "groups": {"mmlu": {"acc,none": 0.4}},
    "group_subtasks": {"mmlu": ["mmlu_law", "mmlu_art"], "hellaswag": []},
    "configs": {"hellaswag": {"metric_list": [{"metric": "acc_norm"}, {"metric": "acc"}]}},
    "versions": {"hellaswag": 1.0},
    "higher_is_better": {"wikitext": {"word_perplexity": False}},
    "config": {"model": "hf", "model_args": "pretrained=org/small,dtype=float"},
}
FOO = [
    {"provider": {"id": "openai:a", "label": "A"}, "prompt": {"raw": "p"}, "promptIdx": 0, "testIdx": test, "vars": {},
     "success": score > 0.5, "score": score, "testCase": {"description": f"case {test}"}}
    for test, score in enumerate((1, 0.25))
]  # fmt: skip
FOO += [one | {"provider": "openai:b", "score": 0.5} for one in FOO]
DEEP = {
    "testCases": [
        {"name": "t0", "input": "i", "metricsData": [{"name": "Faithfulness", "score": 0.75, "success": True}]},
        {"name": "t1", "input": "j", "metricsData": [{"name": "Faithfulness", "success": False, "error": "timeout"}]},
    ],
    "hyperparameters": {"model": "gpt-4o"},
}
HELM_TABLE = {
    "title": "Accuracy",
    "header": [
        {"value": "Model/adapter"},
        {"value": "Mean win rate", "lower_is_better": False},
        {"value": "MMLU - EM", "lower_is_better": False},
        {"value": "MMLU - ECE", "lower_is_better": True},
    ],
    "rows": [
        [{"value": "org/a"}, {"value": 0.7}, {"value": 0.3, "description": "min=.2"}, {"value": 0.1}],
        [{"value": "org/b"}, {"value": 0.2}, {}, {"value": 0.4}],
    ],
}
MTEB = {
    "task_name": "STS12",
    "mteb_version": "1.12",
    "dataset_revision": "x",
    "scores": {
        "test": [{"hf_subset": "en", "main_score": 0.25}, {"hf_subset": "de", "main_score": 0.75}],
        "dev": [{"hf_subset": "en", "main_score": 0.9}],
    },
}
EVALS = lines(
    {"spec": {"completion_fns": ["gpt-3.5-turbo"], "eval_name": "match.v0", "run_config": {}}},
    {"final_report": {"accuracy": 0.5}},
    {"sample_id": "s.1", "type": "sampling", "data": {"sampled": "x"}},
    {"sample_id": "s.1", "type": "match", "data": {"correct": True, "expected": "x"}},
    {"sample_id": "s.2", "type": "match", "data": {"correct": False, "expected": "y"}},
)
GRADES = lines(
    *(
        {"question_id": 81, "model": model, "judge": ["gpt-4", "single-v1"], "score": score, "turn": turn}
        for model, turn, score in (("a", 1, 9), ("a", 2, 7), ("b", 1, 4), ("b", 2, -1))
    )
)
SAMPLES = lines(
    *(
        {"doc_id": doc, "doc": {}, "target": "3", "resps": [["x"]], "filtered_resps": ["x"], "filter": "strict",
         "metrics": ["exact_match"], "exact_match": value, "doc_hash": "h"}
        for doc, value in enumerate((1.0, 0.0))
    ),
    {"doc_id": 0, "doc": {}, "target": "3", "resps": [["x"]], "filtered_resps": ["x"], "filter": "loose",
     "metrics": ["exact_match"], "exact_match": 1.0, "doc_hash": "h"},
)  # fmt: skip
WIDE = "Model,Rank,[params] M,taskA,taskB,Licence,Mean (Task)\n[a](http://x),1,7,50%,1,mit,2\nb,2,3,-,0.5,mit,3\n"
EVERY = {
    "schema_version": "0.2.0",
    "model_info": {"name": "m", "id": "org/m"},
    "evaluation_results": [
        {"evaluation_name": "BBH", "metric_config": {"lower_is_better": False}, "score_details": {"score": 0.5}},
        {"evaluation_name": "ppl", "metric_config": {"lower_is_better": True}, "score_details": {"score": 12.5}},
    ],
}
FILES: dict[str, tuple[str, Any, Rows]] = {
    "lm-evaluation-harness results": (
        "x.json",
        HARNESS,
        [("org/small", "hellaswag", 0.6), ("org/small", "mmlu_law", 0.3), ("org/small", "wikitext", -20.0)],
    ),
    "lm-evaluation-harness samples": (
        "org__small/samples_gsm_2026-01-21T03-44-18.4.jsonl",
        SAMPLES,
        [("org/small", "gsm/0", 1.0), ("org/small", "gsm/1", 0.0)],
    ),
    "Inspect log": (
        "x.json",
        inspected(
            "org/m",
            [
                {"id": 1, "epoch": 1, "scores": {"choice": {"value": "C"}, "other": {"value": 0}}},
                {"id": 1, "epoch": 2, "scores": {"choice": {"value": "I"}}},
                {"id": "b", "epoch": 1, "scores": {"choice": {"value": 0.25}}},
                {"id": "c", "epoch": 1, "scores": {}},
            ],
        ),
        [("org/m", "arc/1", 0.0, "2"), ("org/m", "arc/1", 1.0, "1"), ("org/m", "arc/b", 0.25, "1")],
    ),
    "promptfoo results": (
        "x.json",
        {"evalId": "e", "results": {"version": 3, "results": FOO}, "config": {}},
        [
            ("A", "test 0: case 0", 1.0),
            ("A", "test 1: case 1", 0.25),
            ("openai:b", "test 0: case 0", 0.5),
            ("openai:b", "test 1: case 1", 0.5),
        ],
    ),
    "DeepEval results": ("x.json", DEEP, [("gpt-4o", "t0/Faithfulness", 0.75)]),
    "OpenAI evals log": (
        "x.jsonl",
        EVALS,
        [("gpt-3.5-turbo", "match.v0/s.1", 1.0), ("gpt-3.5-turbo", "match.v0/s.2", 0.0)],
    ),
    "MTEB results": ("org__e5/rev/STS12.json", MTEB, [("org/e5", "STS12", 0.5)]),
    "HELM table": (
        "x.json",
        [HELM_TABLE, HELM_TABLE | {"title": "Calibration"}],
        [("org/a", "MMLU - ECE", -0.1), ("org/a", "MMLU - EM", 0.3), ("org/b", "MMLU - ECE", -0.4)],
    ),
    "HELM run": (
        "mmlu:subject=law,model=org_gpt2/stats.json",
        [stats("num_references", 4.0), stats("exact_match", 0.1, perturbation={}), stats("exact_match", 0.125)],
        [("org/gpt2", "mmlu:subject=law", 0.1)],
    ),
    "HELM instances": (
        "narrative_qa:model=org_gpt2/per_instance_stats.json",
        [
            {"instance_id": one, "train_trial_index": 0, "stats": [stats("exact_match", 0.0), stats("f1_score", value)]}
            for one, value in (("id1", 0.5), ("id2", 0.25))
        ],
        [("org/gpt2", "narrative_qa/id1", 0.5), ("org/gpt2", "narrative_qa/id2", 0.25)],
    ),
    "MT-bench grades": ("x.jsonl", GRADES, [("a", "81", 7.0, "2"), ("a", "81", 9.0, "1"), ("b", "81", 4.0, "1")]),
    "table of scores": (
        "x.csv",
        "Model,dataset,seed,Accuracy\na,x,1,.5\na,x,2,.7\nb,x,1,\n",
        [("a", "x", 0.5, "1"), ("a", "x", 0.7, "2")],
    ),
    "wide table of scores": ("x.csv", WIDE, [("a", "taskA", 50.0), ("a", "taskB", 1.0), ("b", "taskB", 0.5)]),
    "WMT scores of segments": (
        "x.tsv",
        "system mqm_avg_score seg_id\nA.1 -2.5 1\nA.1\tNone 2\nB 0.0 1\n",
        [("A.1", "1", -2.5), ("B", "1", 0.0)],
    ),
    "SWE-bench report": (
        "m.run.json",
        {"submitted_ids": ["a", "b"], "resolved_ids": ["b"], "unresolved_ids": ["a"], "incomplete_ids": ["c"]},
        [("m", "a", 0.0), ("m", "b", 1.0), ("m", "c", 0.0)],
    ),
    "SWE-bench results": (
        "agent/results.json",
        {"no_generation": ["a"], "no_logs": [], "resolved": ["b"]},
        [("agent", "a", 0.0), ("agent", "b", 1.0)],
    ),
    "SWE-bench instances": (
        "run/org__m/a__1/report.json",
        {"a__1": {"patch_exists": True, "resolved": True, "tests_status": {}}},
        [("org/m", "a__1", 1.0)],
    ),
    "Every Eval Ever": ("x.json", EVERY, [("org/m", "BBH", 0.5), ("org/m", "ppl", -12.5)]),
    "scores by name": (
        "x.json",
        {name: {"link": "x", "pass@1": {"he": value, "mbpp": 1 - value}, "size": 7} for name, value in
         (("a", 0.25), ("b", 0.5), ("c", 0.75))},
        [(name, task, value) for name, one in (("a", 0.25), ("b", 0.5), ("c", 0.75))
         for task, value in (("pass@1/he", one), ("pass@1/mbpp", 1 - one))],
    ),
    "export of Appraise": (
        "x.csv",
        "u1,S-1,1,TGT,eng,deu,70,d,False,[],1.5,2.5\nu2,S-1,1,TGT,eng,deu,80,d,False,[],1.5,2.5\n"
        "u1,S-1,1,BAD,eng,deu,5,d,False,[],1.5,2.5\nu1,S-2,1,TGT,eng,deu,90,d,False,[],1.5,2.5\n"
        "u1,tutorial,9,TGT,eng,deu,0,en-tutorial,False,[],1.5,2.5\nu1,S-2,0,TGT,eng,deu,60,d,True,[],1.5,2.5\n",
        [("S-1", "eng-deu/d/1", 70.0, "1"), ("S-1", "eng-deu/d/1", 80.0, "2"),
         ("S-2", "eng-deu/d as a whole", 60.0, "1"), ("S-2", "eng-deu/d/1", 90.0, "1")],
    ),
}  # fmt: skip


def test_instances_that_only_others_name_are_not_resolved(tmp_path: Path) -> None:
    """SWE-bench's experiments list what was resolved, not what was tried: the rate is over all instances."""
    for agent, resolved in (("a1", ["x", "y"]), ("a2", ["z"])):
        written(
            tmp_path, f"all/{agent}/results/results.json", {"no_logs": [], "no_generation": [], "resolved": resolved}
        )
    expected = [
        ("a1", "x", 1.0),
        ("a1", "y", 1.0),
        ("a1", "z", 0.0),
        ("a2", "x", 0.0),
        ("a2", "y", 0.0),
        ("a2", "z", 1.0),
    ]
    assert rows(score_table(tmp_path / "all")) == expected


def test_runs_that_name_no_model_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    """Pythia's own results: config.model says neox, and the folder of the model lies above the last one."""
    found = {"arc": {"acc": 0.5}, "lambada": {"ppl": 9.0, "acc": 0.25}, "wiki": {"bits_per_byte": 20.0}}
    for size in ("70m", "1b"):
        whole = {"results": found, "versions": {"arc": 0}, "config": {"model": "neox", "model_args": {"seed": 1}}}
        written(tmp_path, f"all/pythia-{size}/zero-shot/{size}.json", whole)
    written(tmp_path, "all/pythia-1b/zero-shot/copy.json", whole)
    read_as = found_in(tmp_path / "all")
    assert read_as is not None
    assert rows(read_as.table) == [
        (system, task, value) for system in ("pythia-1b", "pythia-70m")
        for task, value in (("arc", 0.5), ("lambada", 0.25), ("wiki", -20.0))
    ]  # fmt: skip
    assert any("equal another one, byte by byte, are read once: '1, such as" in note for note in read_as.told)


@pytest.mark.parametrize("layout", FILES)
def test_scores_are_read_as_they_are_written(tmp_path: Path, layout: str) -> None:
    name, data, expected = FILES[layout]
    path = written(tmp_path, name, data)
    found = found_in(path)
    assert found is not None
    assert found.layout == layout
    assert rows(found.table) == sorted(expected)
    assert rows(score_table(path)) == sorted(expected)


@pytest.mark.parametrize("layout", [one for one in FILES if "/" not in FILES[one][0]])
def test_a_layout_is_known_whatever_the_file_is_called(tmp_path: Path, layout: str) -> None:
    name, data, _ = FILES[layout]
    other = written(tmp_path, f"votes of my friends{Path(name).suffix}", data)
    found = found_in(other)
    assert found is not None
    assert found.layout == layout


@pytest.mark.parametrize("layout", FILES)
def test_scores_are_no_votes(tmp_path: Path, layout: str) -> None:
    """Whoever asks for a ranking of votes is told the command for scores; nothing is ranked in silence."""
    name, data, _ = FILES[layout]
    with pytest.raises(InputError, match="concordant scores"):
        read(written(tmp_path, name, data))


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    for layout, says in {
        "lm-evaluation-harness results": [
            "lower is better in 'word_perplexity', whose sign is changed",
            "1 means over",
        ],
        "lm-evaluation-harness samples": ["taken from the folder ('org/small')", "several filters of answers"],
        "Inspect log": ["of several scorers the first counts ('choice, other')", "1 samples have no score"],
        "DeepEval results": ["of 2 scores, 1 metrics ended with an error"],
        "HELM table": ["of several tables the first counts", "'Mean win rate' is left out", "'MMLU - ECE', whose sign"],
        "MT-bench grades": ["of 4 scores, 1 judgments failed"],
        "wide table of scores": ["'Licence' (they hold no numbers", "'Rank', '[params] M', 'Mean (Task)'"],
        "WMT scores of segments": ["of 3 scores, 1 have no score"],
    }.items():
        found = found_in(written(tmp_path, *FILES[layout][:2]))
        assert found is not None
        for one in says:
            assert any(one in note for note in found.told), (layout, one, found.told)


def test_a_folder_is_read_as_a_whole(tmp_path: Path) -> None:
    """The system of MTEB's files is what the card beside them says; a file of another kind is named."""
    for model, revision, score in (("a", "r1", 0.5), ("a", "r2", 0.25), ("b", "r1", 0.75)):
        task = MTEB | {"scores": {"test": [{"main_score": score}]}, "task_name": f"T{revision}"}
        written(tmp_path, f"results/{model}/{revision}/T.json", task)
        written(tmp_path, f"results/{model}/{revision}/model_meta.json", {"name": f"org/{model}"})
    written(tmp_path, "results/a/other.json", {"x": 1})
    found = found_in(tmp_path / "results")
    assert found is not None
    assert rows(found.table) == [("org/a", "Tr1", 0.5), ("org/a", "Tr2", 0.25), ("org/b", "Tr1", 0.75)]
    assert any("1, such as other.json" in note for note in found.told)
    with pytest.raises(InputError, match=r"results holds scores of 2 systems on 2 tasks .*concordant scores results"):
        read(tmp_path / "results")


def test_samples_go_before_their_means(tmp_path: Path) -> None:
    """One run of lm-evaluation-harness leaves both; the model's name stands in the results of the same time."""
    written(tmp_path, "m/results_2026-01-21T03-44-18.4.json", HARNESS)
    written(tmp_path, "m/samples_gsm_2026-01-21T03-44-18.4.jsonl", SAMPLES)
    found = found_in(tmp_path / "m")
    assert found is not None
    assert rows(found.table) == [("org/small", "gsm/0", 1.0), ("org/small", "gsm/1", 0.0)]
    assert any("say more than the means beside them" in note for note in found.told)


def test_parts_of_one_result_are_no_systems(tmp_path: Path) -> None:
    parts = {part: {"loss": 1.0, "acc": 0.5} for part in ("train", "dev", "test")}
    assert found_in(written(tmp_path, "x.json", [parts])) is None
    assert recognised(locate(written(tmp_path, "y.json", parts))) is None
    assert recognised(locate(written(tmp_path, "z.json", {f"m{one}": parts["dev"] for one in range(3)}))) is not None


def test_harnesses_are_not_mixed(tmp_path: Path) -> None:
    written(tmp_path, "all/a.json", HARNESS)
    written(tmp_path, "all/b.json", DEEP)
    with pytest.raises(InputError, match="files of several kinds"):
        found_in(tmp_path / "all")


def test_an_archive_of_inspect_is_the_log_that_it_packs(tmp_path: Path) -> None:
    samples = [{"id": one, "epoch": 1, "scores": {"match": {"value": grade}}} for one, grade in ((1, "C"), (2, "P"))]
    whole = inspected("org/m", samples)
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({name: one for name, one in whole.items() if name != "samples"}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    expected = rows(score_table(written(tmp_path, "x.json", whole)))
    assert rows(score_table(tmp_path / "x.eval")) == expected == [("org/m", "arc/1", 1.0), ("org/m", "arc/2", 0.5)]


def test_a_wide_table_and_its_transpose_are_one(tmp_path: Path) -> None:
    random = np.random.default_rng(seed(0))
    cells = random.normal(60, 5, (12, 7)).round(3)
    systems, tasks = [f"m{one}" for one in range(12)], [f"t{one}" for one in range(7)]
    text = (
        "model,"
        + ",".join(tasks)
        + "\n"
        + "\n".join(f"{name},{','.join(map(str, row))}" for name, row in zip(systems, cells, strict=True))
    )
    across = (
        "task,"
        + ",".join(systems)
        + "\n"
        + "\n".join(f"{name},{','.join(map(str, row))}" for name, row in zip(tasks, cells.T, strict=True))
    )
    expected = sorted((system, task, cells[i, j]) for i, system in enumerate(systems) for j, task in enumerate(tasks))
    assert rows(score_table(written(tmp_path, "a.csv", text))) == expected
    assert rows(score_table(written(tmp_path, "b.csv", across))) == expected
    pa.parquet.write_table(
        pa.table({"model": systems} | {task: cells[:, j] for j, task in enumerate(tasks)}), tmp_path / "c.parquet"
    )
    assert rows(score_table(tmp_path / "c.parquet")) == expected


def test_mqm_is_weighed_as_published(tmp_path: Path) -> None:
    """Freitag and others (2021): major 5, minor 1, minor punctuation .1, no translation 25; no error 0."""
    errors = [
        ("A", "d", 1, "r1", "Fluency/Grammar", "Minor"),
        ("A", "d", 1, "r1", "Accuracy/Mistranslation", "Major"),
        ("A", "d", 1, "r1", "Fluency/Punctuation", "Minor"),
        ("A", "d", 2, "r1", "No-error", "no-error"),
        ("B", "d", 1, "r2", "Non-translation!", "Major"),
        ("B", "e", 1, "r2", "Terminology/Other", "Neutral"),
    ]
    text = "system\tdoc\tseg_id\trater\tcategory\tseverity\n" + "".join(
        "\t".join(map(str, row)) + "\n" for row in errors
    )
    found = rows(score_table(written(tmp_path, "x.tsv", text)))
    assert [(*row[:2], pytest.approx(row[2])) for row in found] == [
        ("A", "d/1", -6.1), ("A", "d/2", 0.0), ("B", "d/1", -25.0), ("B", "e/1", 0.0)
    ]  # fmt: skip


# -- votes -------------------------------------------------------------------------------------------------------------
def test_kaggle_columns_are_the_votes_they_stand_for(tmp_path: Path) -> None:
    random, names = Random(seed(0)), ["gpt-4", "koala, 13b", 'say "hi"']
    drawn = [(*random.sample(names, 2), random.randrange(3), f"prompt {random.randrange(4)}\nline") for _ in range(200)]
    for name, delimiter in (("x.csv", ","), ("x.tsv", "\t")):
        with (tmp_path / name).open("w", newline="") as file:
            out = csv.writer(file, delimiter=delimiter)
            out.writerow(
                [
                    "id",
                    "model_a",
                    "model_b",
                    "prompt",
                    "response_a",
                    "response_b",
                    "winner_model_a",
                    "winner_model_b",
                    "winner_tie",
                ]
            )
            for number, (one, other, who, prompt) in enumerate(drawn):
                out.writerow([number, one, other, prompt, "r", "s", *(int(who == place) for place in range(3))])
        expected = Preferences.from_comparisons(
            [other if who == 1 else one for one, other, who, _ in drawn],
            [one if who == 1 else other for one, other, who, _ in drawn],
            tie=[who == 2 for *_, who, _ in drawn],
        )
        assert read(tmp_path / name) == expected
        clustered = read(tmp_path / name, cluster="prompt")
        assert clustered.clusters is not None
        assert len(clustered.clusters) == len({prompt for *_, prompt in drawn})
        assert len(read(tmp_path / name, columns={"query": "prompt"}).queries) == len({prompt for *_, prompt in drawn})
    records = [
        {
            "model_a": one,
            "model_b": other,
            **{f"winner_{word}": float(who == place) for place, word in enumerate(("model_a", "model_b", "tie"))},
        }
        for one, other, who, _ in drawn
    ]
    assert read(written(tmp_path, "x.jsonl", lines(*records))) == expected


def test_a_submission_is_no_vote(tmp_path: Path) -> None:
    text = "model_a,model_b,winner_model_a,winner_model_b,winner_tie\na,b,1,0,0\na,b,.3,.3,.4\na,c,0,0,0\n"
    with pytest.raises(InputError, match=r"in 2 of 3 rows not exactly one of .* is 1; shares, as in a submission"):
        read(written(tmp_path, "x.csv", text))


def test_a_win_of_mt_bench_is_a_win_in_both_orders(tmp_path: Path) -> None:
    """As FastChat counts: tie where a game is tied or the two games differ; a failed game is left out, and said."""
    random, expected, records = Random(seed(0)), [], []
    for number in range(300):
        one, other = random.sample(["a", "b", "c"], 2)
        first, second = (random.choice(["model_1", "model_2", "tie", "error"]) for _ in range(2))
        records.append({"question_id": number % 7, "model_1": one, "model_2": other, "g1_winner": first,
                        "g2_winner": second, "judge": ["gpt-4", "pair-v2"], "turn": 1})  # fmt: skip
        if "error" not in (first, second):
            tie = first == "tie" or first != second
            expected.append((one, other, tie) if tie or first == "model_1" else (other, one, False))
    reading = read_log(written(tmp_path, "x.jsonl", lines(*records)))
    assert reading.preferences == Preferences.from_comparisons(
        [row[0] for row in expected], [row[1] for row in expected], tie=[row[2] for row in expected]
    )
    lost = 300 - len(expected)
    assert any(f"of 300 votes, {lost} have no verdict; they are left out" in note for note in reading.notes)
    by_prompt = read(tmp_path / "x.jsonl", columns={"query": "prompt"})
    assert len(by_prompt.queries) == 7


def test_annotations_of_alpaca_eval(tmp_path: Path) -> None:
    """A preference of 1 is a win of the first generator, of 2 one of the second, 1.5 and 0 are ties, between a part."""
    given = [("a", "b", 1.0), ("a", "b", 2.0), ("a", "c", 1.5), ("a", "c", 0), ("a", "c", 1.25), ("a", "b", None)]
    annotations = [
        {"instruction": f"do {n}", "generator_1": one, "generator_2": other, "preference": value, "annotator": "gpt4"}
        for n, (one, other, value) in enumerate(given)
    ]
    reading = read_log(written(tmp_path, "annotations.json", annotations))
    assert reading.preferences == read(
        {"left": ["a", "a", "a", "a", "a"], "right": ["b", "b", "c", "c", "c"], "outcome": [1, 0, 0.5, 0.5, 0.75]}
    )
    assert any("of 6 votes, 1 have no verdict" in note for note in reading.notes)
    with pytest.raises(InputError, match=r"row 1: a preference lies between 1 and 2, or is 0 for a tie, not 3"):
        read(written(tmp_path, "x.json", [{"generator_1": "a", "generator_2": "b", "preference": 3}]))


def test_judgments_of_arena_hard(tmp_path: Path) -> None:
    """Of the first game the baseline is A, of the second it is B; >> weighs as three (as in its show_result.py)."""
    games = {"a": (("A>>B", "B>A"), ("A=B", None)), "b": (("B>>A", "A>B"), ("A<B", "A=B"))}
    for model, all_games in games.items():
        text = lines(*({"question_id": f"q{n}", "model": model, "judge": "j", "games": [{"score": one} for one in both]}
                       for n, both in enumerate(all_games)))  # fmt: skip
        written(tmp_path, f"all/judge/{model}.jsonl", text)
    expected = [
        ("baseline", "a", "left", 3), ("a", "baseline", "right", 1), ("baseline", "a", "tie", 1),
        ("baseline", "b", "right", 3), ("b", "baseline", "left", 1), ("baseline", "b", "right", 1),
        ("b", "baseline", "tie", 1),
    ]  # fmt: skip
    columns = dict(zip(("left", "right", "outcome", "weight"), map(list, zip(*expected, strict=True)), strict=True))
    reading = read_log(tmp_path / "all")
    assert reading.preferences == read(columns)
    assert any("of 8 votes, 1 have no verdict" in note for note in reading.notes)
    with pytest.raises(InputError, match=r"holds votes \(Arena-Hard judgments\), no scores; run: concordant rank"):
        read_scores(tmp_path / "all")
    with pytest.raises(InputError, match=r"row 1: a game has one of the scores A>>B, .*, not 'A wins'"):
        read(written(tmp_path, "x.jsonl", {"model": "m", "judge": "j", "games": [{"score": "A wins"}]}))


def test_rankings_of_wmt(tmp_path: Path) -> None:
    """Five translations a row; −1: not ranked; a pair of languages has a ranking of its own."""
    head = ["srclang", "trglang", "srcIndex", "documentId", "segmentId", "judgeId"]
    head += [f"system{one}{what}" for one in range(1, 6) for what in ("Number", "Id")]
    head += [f"system{one}rank" for one in range(1, 6)]
    drawn = [
        ("ces", "A B C D E", (1, 2, 2, 3, 5)),
        ("ces", "A B C D E", (2, 1, 2, 3, -1)),
        ("deu", "B A F C D", (1, 1, 2, 3, 4)),
    ]
    text = ",".join(head) + "\n"
    for number, (source, names, ranks) in enumerate(drawn):
        cells = [f"{place},{name}" for place, name in enumerate(names.split(), 1)]
        text += f"{source},eng,{number},d,{number},j{number % 2},{','.join(cells)},{','.join(map(str, ranks))}\n"
    columns: dict[str, list[Any]] = {"query": [], "judgment": [], "item": [], "rank": []}
    for number, (source, names, ranks) in enumerate(drawn):
        for name, rank in zip(names.split(), ranks, strict=True):
            if rank > 0:
                for values, value in zip(columns.values(), (f"{source}-eng", number, name, rank), strict=True):
                    values.append(value)
    assert read(written(tmp_path, "x.csv", text)) == Preferences.from_orders(**columns)


# -- what is none ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "model_a,model_b,winner\na,b,model_a\nb,a,tie\n",  # votes
        "item,x,y\na,1,2\nb,3,4\n",  # features
        "query,item,score,rank\nq,a,1,1\nq,b,.5,2\n",  # scores of a ranker
        "user,item,rating\nu,a,5\nu,b,4\n",  # ratings
        "name,win_rate,avg_length\na,50,10\nb,40,20\n",  # a leaderboard of means
        "x,y,z\n1,2,3\n4,5,6\n",  # numbers without names
        "example_id,question_index,label,text\n1,7,0,a\n2,8,1,b\n",  # questions with their answers
        "model,Model Size (B),FLOPs (1E21),Release date,Avg. WER\na,7,84,2023,1\nb,13,156,2024,2\n",
        "model,text\na,b\nb,c\n",
    ],
)
def test_other_tables_are_no_scores(tmp_path: Path, text: str) -> None:
    log = locate(written(tmp_path, "x.csv", text))
    assert recognised(log) is None
    assert tabled(log) is None
    assert score_table(tmp_path / "x.csv") is None


def test_options_go_before_what_a_table_looks_like(tmp_path: Path) -> None:
    """A table of a judge a row and a candidate a column is asked for by name, whatever else it looks like."""
    path = written(tmp_path, "x.csv", "model,a,b\nm1,1,2\nm2,2,1\n")
    with pytest.raises(InputError, match="concordant scores"):
        read(path)
    assert read(path, kind="orders", columns={"items": "a,b"}).kind == "orders"


def _mutated(random: Random, value: Any, share: float) -> Any:
    """A document with some values in the place of others, and some missing."""
    if random.random() < share:
        return random.choice([None, "", 0, -1.5, "x", [], {}, [None], True, math.nan, 10**30])
    if isinstance(value, dict):
        return {name: _mutated(random, one, share) for name, one in value.items() if random.random() > share / 2}
    if isinstance(value, list):
        return [_mutated(random, one, share) for one in value if random.random() > share / 2]
    return value


def test_damage_is_an_error_or_an_answer(tmp_path: Path) -> None:
    """Whatever stands in the place of what a harness writes: one line that says what is wrong, or a table."""
    random, said = Random(seed(0)), list[str]()
    documents = [data for _, data, _ in FILES.values()]
    for _ in range(250):
        data = random.choice(documents)
        share = random.choice([0.02, 0.1])
        if isinstance(data, str) and data.startswith("{"):
            text = lines(*(_mutated(random, json.loads(line), share) for line in data.splitlines()))
            path = written(tmp_path, "x.jsonl", text[: random.randrange(len(text))] if random.random() < 0.1 else text)
        elif isinstance(data, str):
            place = random.randrange(len(data))
            path = written(
                tmp_path, "x.csv", data[:place] + random.choice([",", "\n", '"', "x", ""]) + data[place + 1 :]
            )
        else:
            path = written(tmp_path, "x.json", _mutated(random, data, share))
        try:
            found = score_table(path)
            assert found is None or found.column_names[:3] == ["system", "task", "score"]
        except ConcordantError as problem:
            said.append(str(problem))
    assert len(said) > 20
    assert not any("\n" in one for one in said)
