"""``concordant audit``: read, audit, write, show tables no wider than a terminal of 80 columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from concordant.apps.commands.compare import items_named
from concordant.apps.commands.given import worded
from concordant.apps.commands.matching import click_options
from concordant.apps.commands.options import AuditOptions
from concordant.apps.commands.output import check_output, plain, print_csv, show_table, write, write_json, write_text
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.saying import one_line, patient, say
from concordant.auditing.audit import asked_for, audited
from concordant.auditing.findings import Audit
from concordant.auditing.settings import AuditSettings
from concordant.boards.fragility import Fragility, fragility
from concordant.errors import UsageError, counted
from concordant.io.read import read_log
from concordant.preferences.preferences import Preferences
from concordant.preferences.unused_clusters import one_cluster
from concordant.ranking.structures import structure

YES = {True: "yes", False: "no", None: None}
OPEN = {"true": "yes", "false": "no", "undetermined": "open: a pair was never judged"}
BEATS = {"fails": "none", "undetermined": "open: a pair was never judged"}
SHORT = {"infimum not attained": "not attained", "stopped before convergence": "stopped early"}
"""What a minimiser's status is called where there is little room."""
LONGEST = 28
"""Letters of a label, beside others in a table."""


def show_audit(found: Audit, rows: int) -> None:
    """Print the tables, an empty line after each: of one query everything, of many the surrogates and some queries."""
    if len(found.queries) > 1:
        some = _table(_query, found.queries.slice(0, rows))
        losses = found.overall.rename_columns(
            [
                {"surrogate": "loss", "target": "judged by", "mean_regret": "excess"}.get(name, name)
                for name in found.overall.column_names
            ]
        )
        tables = [losses, some if max(some["parts"].to_pylist()) > 1 else some.drop_columns(["parts"])]
    else:
        facts = _facts(found.queries.to_pylist()[0])
        shown = pa.table({"fact": list(facts), "of_this_query": list(facts.values())})
        tables = [shown, _table(_surrogate, found.surrogates), found.orders.select(["place", "item"])]
        if found.ask is not None and len(found.ask):
            tables.append(_table(_question, found.ask))
    for table in tables[:2]:
        show_table(table, len(table))
        click.echo()
    if len(found.queries) > rows and len(tables) == 2:
        click.echo(f"… {len(found.queries) - rows:,} more queries (--output F for all)\n")
    for table in tables[2:]:
        show_table(table, rows)
        click.echo()


def _table(of: Callable[[Mapping[str, Any]], dict[str, Any]], found: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([of(row) for row in found.to_pylist()])


def _query(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the contract under short names."""
    return {
        "query": _short(row["query"])[:12],
        "items": row["items"],
        "judgments": row["judgments"],
        "parts": row["components"],
        "acyclic": row["acyclic"],
        "low_noise": OPEN[row["low_noise"]].partition(":")[0],
        "row_sums": row["row_sum_condition"],
        "optimal_loss": row["optimal_loss"],
        "exact": row["optimal_exact"],
    }


def _facts(row: Mapping[str, Any]) -> dict[str, str]:
    """What is known of the only query, with the evidence; what does not apply is left out."""
    facts = {
        "groups never compared with each other": row["components"] if row["components"] > 1 else None,
        "without cycles": YES[row["acyclic"]],
        "shortest cycle": _chain(row["cycle"], closed=True),
        "items in the largest cycles": row["largest_component"] if not row["acyclic"] else None,
        "leads add up (low noise)": OPEN[row["low_noise"]],
        "where they do so least": _chain(row["violated_triple"]),
        "needed, never judged": _chain(row["missing_pair"], " and "),
        "net wins rank rightly (row sums)": YES[row["row_sum_condition"]],
        "beats every other (Condorcet)": row["condorcet_winner"]
        if row["condorcet"] == "holds"
        else BEATS[row["condorcet"]],
        "first that beat all others (Smith)": row["smith_set"],
        "best order: pairs wrong a judgment": f"{row['optimal_loss']:.4f}",
        "any order: at least": f"{row['optimal_lower']:.4f}",
        "best order found by": row["optimal_method"] + (", exact" if row["optimal_exact"] else ", not proven best"),
        "cycles are": row.get("cycles_are"),
        "chance makes such cycles, p": _share(row.get("cycle_p_value")) if not row["acyclic"] else None,
        "resamples without cycles": _share(row.get("acyclic_share")),
        "resamples, same winner": _share(row.get("winner_share")),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _surrogate(row: Mapping[str, Any]) -> dict[str, Any]:
    pairwise = row["target"] == "pairwise"
    heaviest = None if row["above"] is None else f"{_short(row['above'])} > {_short(row['below'])}"
    return {
        "loss": row["surrogate"],
        "minimum": SHORT.get(row["status"], row["status"]),
        "excess": row["regret"],
        "right": row["consistent"],
        "flipped": row["flipped"] if pairwise else None,
        "heaviest_flipped": heaviest if pairwise else f"(judged by {row['target'].upper()})",
    }


def _question(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "#": row["number"],
        "ask": f"{_short(row['better'])} / {_short(row['worse'])}",
        "judged": f"{row['judgments']:g}",
        "gain": row["gain"],
        "reason": row["reason"],
    }


def _short(label: Any) -> str:
    text = str(label)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _chain(labels: list[Any] | None, between: str = " > ", *, closed: bool = False) -> str | None:
    if not labels:
        return None
    return between.join(_short(label) for label in [*labels, *(labels[:1] if closed else [])])


def _share(value: float | None) -> str | None:
    return None if value is None or value != value else f"{value:.3g}"


def audit(options: AuditOptions) -> None:
    """Read, audit, write; a table and the summary on a terminal, CSV into a pipe with the summary on stderr."""
    log, quiet, output, edges = options.log, options.quiet, options.output, options.edges
    terminal = sys.stdout.isatty()
    options.settle(terminal=terminal, shown=terminal or (output is not None and output.lower().endswith(".json")))
    if output is not None:
        check_output(output, log)
    if edges is not None:
        check_output(edges, log, option="--edges")
        if not options.replicates:
            raise UsageError("--edges says how sure each preference is; it needs --replicates above 0")
        if output is not None and Path(output).resolve() == Path(edges).resolve():
            raise UsageError(f"--output and --edges both name {output}; name two files")
    asked_for(options.surrogates)  # a wrong name should not cost the reading of a large log
    if options.structure is not None:
        structure(options.structure)
    asked = {one.name: getattr(options, one.name) for one in fields(AuditSettings)}
    asked |= {"structure_options": click_options(options) or None}
    if options.fragility and not options.replicates:
        asked["top"] = None  # it says how many are asked about below
    found, fragile = _found(options, AuditSettings(**asked))
    cut = "incomplete" in found.settings
    if output is not None:
        with Progress(quiet, f"writing {output}") as step:
            if output.lower().endswith(".json"):
                more = {} if fragile is None else {"fragility": fragile.to_dict()}
                write_json({"file": log} | found.to_dict() | more, output, step)
            elif output.lower().endswith(".md"):
                write_text("\n".join(one.to_markdown(worded) for one in (found, fragile) if one is not None), output)
            else:
                write(_flat(found.to_arrow()), output)
        options.say("wrote", f"wrote {output}: {counted(len(found.queries), 'queries')}", path=output)
    if found.edges is not None and edges is not None:
        write(found.edges, edges)
        options.say("wrote", f"wrote {edges}: {len(found.edges):,} preferences", path=edges)
    if sys.stdout.isatty():
        show_audit(found, options.rows)
    elif output is None:
        print_csv(_flat(found.to_arrow()))
    if not quiet or sys.stdout.isatty():
        for line in (*found.summary, *(fragile.lines() if fragile else ())):
            if sys.stdout.isatty():
                click.echo(one_line(line))
            else:
                say("summary", line)
    options.say_notes([*found.notes, *(fragile.notes if fragile else ())])
    if cut:
        raise KeyboardInterrupt


def _found(options: AuditOptions, settings: AuditSettings) -> tuple[Audit, Fragility | None]:
    """Read and audit; with Spark a log of many rows is audited where it lies, but for what all of it is needed for."""
    log, quiet = options.log, options.quiet
    if options.engine == "spark" and not options.fragility and not options.keep_partial:
        from concordant.apps.commands import on_spark

        if (there := on_spark.audit(options, settings)) is not None:
            options.say_notes(one_cluster(there[1]))
            return there[0], None
    with Progress(quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked_of(options))
    if reading.rejects:
        tell([f"skipped: {reading.report()}"])
    options.say_notes(one_cluster(reading.notes))
    prefs = reading.preferences
    with Progress(quiet, "auditing", known=prefs):
        fragile = _fragility(prefs, options) if options.fragility else None
        with patient() if options.keep_partial else nullcontext():
            return audited(prefs, settings, keep=options.keep_partial), fragile


def _fragility(prefs: Preferences, options: AuditOptions) -> Fragility:
    pair = items_named(prefs.items, options.pair or ())
    return fragility(prefs, top=options.top or 1, pair=(pair[0], pair[1]) if pair else None)


def _flat(table: pa.Table) -> pa.Table:
    """Lists of labels as JSON texts: rows of CSV have no lists."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_list(table[name].type):
            texts = [None if x is None else json.dumps(plain(x), ensure_ascii=False) for x in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
    return table
