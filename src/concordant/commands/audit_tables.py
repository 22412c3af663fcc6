"""An audit as tables for a person: no wider than a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
import pyarrow as pa

from concordant.auditing.result import Audit
from concordant.commands.output import show_table

__all__ = ["show_audit"]

SHORT = {"infimum not attained": "not attained", "stopped before convergence": "stopped early"}
"""What a minimiser's status is called where there is little room."""
LONGEST = 28
"""Letters of a label, beside others in a table."""


def show_audit(found: Audit, rows: int) -> None:
    """Print the tables, an empty line after each: of one query everything, of many the surrogates and some queries."""
    if len(found.queries) > 1:
        some = _table(_query, found.queries.slice(0, rows))
        tables = [found.overall, some if max(some["parts"].to_pylist()) > 1 else some.drop_columns(["parts"])]
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
        "low_noise": row["low_noise"],
        "row_sums": row["row_sum_condition"],
        "optimal_loss": row["optimal_loss"],
        "exact": row["optimal_exact"],
    }


def _facts(row: Mapping[str, Any]) -> dict[str, str]:
    """What is known of the only query, with the evidence; what does not apply is left out."""
    facts = {
        "components": row["components"],
        "acyclic": row["acyclic"],
        "shortest cycle": _chain(row["cycle"], closed=True),
        "items in the largest cycles": row["largest_component"] if not row["acyclic"] else None,
        "low noise": row["low_noise"],
        "worst violated triple": _chain(row["violated_triple"]),
        "needed, never judged": _chain(row["missing_pair"], " and "),
        "row-sum condition": row["row_sum_condition"],
        "Condorcet winner": row["condorcet_winner"] if row["condorcet"] == "holds" else row["condorcet"],
        "items in the Smith set": row["smith_set"],
        "optimal loss": f"{row['optimal_loss']:.4f}",
        "no order is below": f"{row['optimal_lower']:.4f}",
        "best order found by": row["optimal_method"] + (", exact" if row["optimal_exact"] else ", not proven best"),
        "cycles are": row.get("cycles_are"),
        "p of the cycles": _share(row.get("cycle_p_value")) if not row["acyclic"] else None,
        "resamples without cycles": _share(row.get("acyclic_share")),
        "resamples, same winner": _share(row.get("winner_share")),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _surrogate(row: Mapping[str, Any]) -> dict[str, Any]:
    pairwise = row["target"] == "pairwise"
    heaviest = None if row["above"] is None else f"{_short(row['above'])} > {_short(row['below'])}"
    return {
        "surrogate": row["surrogate"],
        "minimiser": SHORT.get(row["status"], row["status"]),
        "regret": row["regret"],
        "consistent": row["consistent"],
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
