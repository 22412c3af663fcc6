"""``concordant demo``: rank 59 language models by human votes, and compare people with GPT-4 on the same pairs."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from concordant.apps.commands.durations import showing
from concordant.apps.commands.given import worded
from concordant.apps.commands.options import DemoOptions, command_of
from concordant.apps.commands.output import output_folder, put_file, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.standard import beside_the_result
from concordant.apps.report.report import Report, report
from concordant.io.read import read
from concordant.preferences.connectivity import majority_agreement, within_agreement
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.shown import remarks


def demo(options: DemoOptions) -> None:
    """Rank people's votes and GPT-4's, compare them, write tables and a page."""
    seed, output = options.seed, options.output
    folder = output_folder(output)
    with Progress(options.quiet, what := "ranking models, people and GPT-4 beside each other", showing(what)):
        people, gpt4 = _votes("crowd-comparisons.csv", cluster="worker"), _votes("gpt4-crowd-comparisons.csv")
        overall = rank(people.pool(), seed=seed)
        by_prompt = rank(people, seed=seed)
        machine = rank(gpt4.pool(), seed=seed)
        machine_by_prompt = rank(gpt4, seed=seed)
        names = _prompt_names()
        facts = _comparison(people, gpt4, overall, machine, by_prompt, machine_by_prompt, names)
        page = _report(people, gpt4, names, seed).html.encode()
    folder.mkdir(parents=True, exist_ok=True)
    put_file(str(folder / "report.html"), lambda temporary: Path(temporary).write_bytes(page))
    for name, board in (
        ("ranking.csv", overall),
        ("ranking-by-prompt.csv", by_prompt),
        ("ranking-gpt4.csv", machine),
        ("ranking-gpt4-by-prompt.csv", machine_by_prompt),
    ):
        write(board.to_arrow(), str(folder / name))
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    put_file(folder / "people-and-gpt4.json", lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    with beside_the_result():
        _print(people, overall, machine, facts, folder)


def _votes(name: str, cluster: str | None = None) -> Comparisons:
    with resources.as_file(resources.files("concordant") / "apps" / "data" / "llmfao" / name) as path:
        votes = read(path, columns={"query": "prompt"}, cluster=cluster)
    assert isinstance(votes, Comparisons)
    return votes


def _prompt_names() -> dict[str, str]:
    text = (resources.files("concordant") / "apps" / "data" / "llmfao" / "prompts.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {str(row["id"]): str(row["slug"]) for row in rows}


def _report(people: Comparisons, gpt4: Comparisons, names: dict[str, str], seed: int) -> Report:
    """The page: prompts by their names, people and GPT-4 as those who judged."""
    return report(
        _named(people, names),
        annotators={"people": _named(people, names), "GPT-4": _named(gpt4, names)},
        column="judge",
        title="59 language models by 8,931 votes of 124 people",
        command="concordant demo",
        seed=seed,
    )


def _named(votes: Comparisons, names: dict[str, str]) -> Preferences:
    """The same votes, each prompt under its name."""
    queries = votes.queries.take(votes.query).to_pylist()
    return Preferences.from_comparisons(
        votes.items.take(votes.winner),
        votes.items.take(votes.loser),
        [names.get(str(label), str(label)) for label in queries],
        tie=votes.tie,
        count=votes.count,
        cluster=None if votes.clusters is None or votes.cluster is None else votes.clusters.take(votes.cluster),
    )


def _scores(board: Ranking, query: int = 0) -> dict[Any, float]:
    chosen = (board.query == query) & (board.component == 1)
    return {board.items[i]: float(s) for i, s in zip(board.item[chosen], board.score[chosen], strict=True)}


def _tau(a: dict[Any, float], b: dict[Any, float]) -> float:
    both = sorted(a.keys() & b.keys())
    return float(kendalltau([a[x] for x in both], [b[x] for x in both]).statistic)


def _comparison(
    people: Preferences,
    gpt4: Preferences,
    overall: Ranking,
    machine: Ranking,
    by_prompt: Ranking,
    machine_by_prompt: Ranking,
    names: dict[str, str],
) -> dict[str, Any]:
    """Rank correlation and agreement vote by vote, with the agreement among people beside it."""
    agree = majority_agreement(people, gpt4)
    among = within_agreement(people)
    prompts = {
        names.get(str(label), str(label)): round(_tau(_scores(by_prompt, code), _scores(machine_by_prompt, code)), 3)
        for code, label in enumerate(by_prompt.queries)
    }
    return {
        "kendall_tau": round(_tau(_scores(overall), _scores(machine)), 3),
        "kendall_tau_by_prompt": prompts,
        "pairs_with_a_majority_and_a_gpt4_winner": agree.pairs,
        "gpt4_agrees_with_the_majority": round(agree.share, 3),
        "pairs_of_votes_of_two_people_both_decided": among.pairs,
        "two_people_agree": round(among.share, 3),
    }


def _print(people: Preferences, overall: Ranking, machine: Ranking, facts: dict[str, Any], folder: Path) -> None:
    console = Console(width=None if Console().is_terminal else 100)
    summary = people.summary()
    console.print(
        f"[bold]{summary['judgments']:,} votes[/] ({summary['ties']:,} ties) of {summary['clusters']} people on the "
        f"answers of {summary['items']} language models to {summary['queries']} prompts\n"
    )
    place = dict(zip(machine.item.tolist(), machine.rank.tolist(), strict=True))
    labels = {machine.items[code]: rank_ for code, rank_ in place.items()}
    table = Table(header_style="bold", box=None, pad_edge=False)
    for name in ("rank", "95% ranks", "model", "score", "95% interval", "votes", "GPT-4's rank"):
        table.add_column(name, justify="left" if name == "model" else "right")
    rows = list(range(12)) + list(range(len(overall) - 3, len(overall)))
    for before, i in zip([-1, *rows], rows):
        if i != before + 1:
            table.add_row("…")
        label = overall.items[overall.item[i]]
        table.add_row(
            str(overall.rank[i]),
            f"{overall.rank_lower[i]}–{overall.rank_upper[i]}",
            str(label),
            f"{overall.score[i]:+.2f}",
            f"{overall.lower[i]:+.2f} … {overall.upper[i]:+.2f}",
            f"{overall.judgments[i]:,}",
            str(labels.get(label, "–")),
        )
    console.print(table)
    widest = overall.rank_upper - overall.rank_lower
    by_prompt = facts["kendall_tau_by_prompt"]
    low, high = min(by_prompt, key=by_prompt.get), max(by_prompt, key=by_prompt.get)
    console.print(
        f"\nScores are Bradley–Terry log-abilities (a tie is half a win each); intervals are clustered by person, rank "
        f"ranges hold for all models together. The median range is {int(np.median(widest)) + 1} ranks wide: the "
        f"votes tell strong from weak models, not neighbours."
    )
    console.print(
        f"\n[bold]People and GPT-4[/] on the same pairs: rank correlation (Kendall τ) {facts['kendall_tau']:.2f} over "
        f"all prompts, by prompt from {by_prompt[low]:.2f} ({low}) to {by_prompt[high]:.2f} ({high}).\nGPT-4 picks the "
        f"majority's winner in {facts['gpt4_agrees_with_the_majority']:.0%} of "
        f"{facts['pairs_with_a_majority_and_a_gpt4_winner']:,} pairs; two people who both decide agree in "
        f"{facts['two_people_agree']:.0%} of cases.\n"
    )
    for note in remarks(overall):
        console.print(f"note: {worded(note, command_of('rank'))}", highlight=False, markup=False)
    console.print(f"[bold]A page to look at: {folder / 'report.html'}[/] (open it in a browser)\n", highlight=False)
    console.print(f"Written to {folder}{'/' if not str(folder).endswith('/') else ''}:", highlight=False)
    for path in sorted(folder.iterdir()):
        console.print(f"  {path.name}", highlight=False)
