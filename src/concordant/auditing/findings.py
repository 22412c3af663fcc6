"""What an audit found: tables, nested data, and at most eleven lines for a reader who knows none of the theory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.auditing.noise import explained
from concordant.preferences.frames import as_pandas
from concordant.ranking.shown import LEFT, html_lines, html_table, html_words, in_markdown, markdown_rows

TITLES = {
    "ranknet": "ranknet (pairwise logistic)",
    "ranksvm": "ranksvm (pairwise hinge)",
    "rankboost": "rankboost (pairwise exponential)",
}
"""What surrogates are known as, where the registry's name is not it."""

SURE = 2.5
"""Standard errors beyond which one of half a dozen losses is worse for more than chance."""


def summary(audit: Audit) -> list[str]:
    """Return the findings, the most important first, with numbers of this log."""
    rows = audit.queries.to_pylist()
    lines = [
        audit.facts,
        *(line + _sure_circles(rows) for line in _verdict(audit, rows)),
        _population(rows),
        _best(rows),
    ]
    lines += _losses(audit, len(rows), _beyond_noise(audit, rows))
    if "cycles_are" in audit.queries.column_names:
        lines += _noise(rows)
    if audit.held_out is not None:
        lines += _held_out(audit.held_out)
    if audit.settling is not None:
        lines += _top(audit.settling, audit.settings, len(rows))
    if audit.ask is not None and len(audit.ask):
        lines.append(_ask(audit.ask, len(rows)))
    return lines[:11]


def _verdict(audit: Audit, rows: list[dict[str, Any]]) -> list[str]:
    """What to do, for a reader who wants one sentence: does the usual pairwise loss do, and is it more than noise?"""
    lists = _lists(audit)
    (usual,) = [row for row in audit.overall.to_pylist() if row["surrogate"] == "ranknet"] or [None]
    if usual is None or not usual["right"] + usual["wrong"] or all(row["pairs"] == row["level_pairs"] for row in rows):
        return []
    if not usual["wrong"]:
        by = "S" if lists is None else f"By {lists}, s"
        return [
            f"{by}cores learnt from pairs in the usual way (logistic loss) order these judgments as well as any: "
            "use the default of fit."
        ]
    lost = _number(usual["mean_regret"])
    many = f"{100 * lost:.2g}" if lost >= 0.00095 else "fewer than 0.1"
    said = (
        f"Of a hundred judgments, scores learnt from pairs in the usual way (logistic loss) would contradict {many} "
        "more than need be; "
    )
    if lists is not None:
        less = f"is worth {_amount(lost)} less than the best"
        said = f"By {lists} (at most 1) the order of scores learnt from pairs in the usual way (logistic loss) {less}; "
    held = [] if audit.held_out is None else audit.held_out.to_pylist()
    tried = [row for row in held if row["surrogate"] == "ranknet" and row["standard_error"]]
    if not tried:
        return [
            f"{said}whether that is more than chance was not tried. The default of fit tries it, on held-out "
            "judgments: use it."
        ]
    contradicted = lost * sum(row["judgments"] for row in rows)
    seen = lists is not None or contradicted > SURE**2  # Σd ≤ Σd², so z² ≤ Σd
    if seen and tried[0]["mean"] > SURE * tried[0]["standard_error"]:
        return [f"{said}on judgments held out that is more than chance. {_way_out(audit)}"]
    return [f"{said}on judgments held out that is no more than chance: use the default of fit."]


def _sure_circles(rows: list[dict[str, Any]]) -> str:
    """What the verdict owes to cycles that are more than chance; of many queries also when so many tests are made."""
    if "cycle_p_value" not in rows[0]:
        return ""
    p = np.array([1.0 if row["acyclic"] else row["cycle_p_value"] for row in rows], np.float64)
    sure = int((~explained(p)).sum()) if len(rows) > 1 else int(rows[0]["cycles_are"] == "cyclic")
    if not sure:
        return ""
    where = "T" if len(rows) == 1 else f"{_of(sure, len(rows))[0].upper()}{_of(sure, len(rows))[1:]} t"
    return f" {where}he preferences run in circles by more than chance, so that no order agrees with all of them."


def _way_out(audit: Audit) -> str:
    """What the default of fit would do with infinite data where the usual loss is wrong."""
    rows = [row for row in audit.overall.to_pylist() if row["surrogate"] == "default"]
    if not rows or not rows[0]["right"] + rows[0]["wrong"]:
        return "The default of fit looks for it (its gate); do not name such a loss."
    taken, lost = audit.settings["default"], _number(rows[0]["mean_regret"])
    if _lists(audit) is not None:
        left = "loses nothing" if not rows[0]["wrong"] else f"loses {_amount(lost)}"
        return f"With enough judgments the gate of fit takes {taken} and {left}: use the default with this target."
    left = f"{100 * lost:.2g} more than need be" if lost >= 0.00095 else "hardly more"
    left = left if rows[0]["wrong"] else "as few as can be"
    return f"With enough judgments the gate of fit takes {taken} and contradicts {left}: use the default."


def _lists(audit: Audit) -> str | None:
    """The loss of lists that everything is judged by; None where each surrogate is by its own, or all by pairs."""
    target = audit.settings.get("target")
    return None if target in (None, "pairwise") else str(target).upper()


def _of(number: int, total: int, noun: str = "queries") -> str:
    """In 7 of 50 queries (14%)."""
    if total == 1:
        return f"in {'the only one' if number else 'none'} of the {noun}"
    if number == total:
        return f"in all {total:,} {noun}"
    share = f" ({100 * number / total:.0f}%)" if 0.01 <= number / total <= 0.99 else ""
    return f"in {number:,} of {total:,} {noun}{share}" if number else f"in none of {total:,} {noun}"


def _population(rows: list[dict[str, Any]]) -> str:
    if len(rows) == 1:
        row = rows[0]
        if row["pairs"] == row["level_pairs"]:
            return "No item is preferred to another, on balance: every order is as good as any other."
        cycle = "" if row["cycle"] is None else f" (a shortest cycle: {' > '.join(map(str, _closed(row['cycle'])))})"
        said = "have no cycle" if row["acyclic"] else f"run in cycles{cycle}, so that no order agrees with all"
        low = {
            "true": "leads add up along every chain (low noise)",
            "false": "leads do not add up along every chain (no low noise)",
            "undetermined": "whether leads add up along every chain (low noise) is open: a pair was never judged",
        }
        return f"On balance the preferences {said}; {low[row['low_noise']]}."
    cyclic = sum(not row["acyclic"] for row in rows)
    states = {
        "true": "holds in {:,}",
        "false": "fails in {:,}",
        "undetermined": "cannot be decided in {:,}, where pairs it needs were never judged",
    }
    counts = {word: sum(row["low_noise"] == word for row in rows) for word in states}
    parts = [text.format(counts[word]) for word, text in states.items() if counts[word]]
    return (
        f"On balance the preferences run in cycles {_of(cyclic, len(rows))}; that leads add up along every chain (low "
        f"noise) "
        f"{' and '.join(parts) if len(parts) < 3 else ', '.join(parts[:2]) + ' and ' + parts[2]}."
    )


def _closed(cycle: list[Any]) -> list[Any]:
    return [*cycle, cycle[0]]


def _best(rows: list[dict[str, Any]]) -> str:
    """What the best orders lose, how they were found and how much less it could be."""
    loss = np.array([row["optimal_loss"] for row in rows])
    gap = loss - np.array([row["optimal_lower"] for row in rows])
    exact = sum(row["optimal_exact"] for row in rows)
    found = Counter(row["optimal_method"] for row in rows)
    if len(rows) == 1:
        open_ = "proven best" if exact else f"not proven best: the least may be {_amount(gap[0])} lower"
        return (
            f"The best order found contradicts {_amount(loss[0])} pairs a judgment (those it puts the wrong way round, "
            f"ties half); {open_} ({rows[0]['optimal_method']})."
        )
    open_ = f"proven best {_of(exact, len(rows))}"
    if exact < len(rows):
        open_ += f", elsewhere the least may be {_amount(gap.sum() / (len(rows) - exact))} lower on average"
    methods = ", ".join(f"{method} {number:,}" for method, number in found.most_common())
    return (
        f"The best orders found contradict {_amount(loss.mean())} pairs a judgment on average (those put the wrong "
        f"way round, ties half); {open_} ({methods})."
    )


def _beyond_noise(audit: Audit, rows: list[dict[str, Any]]) -> bool | None:
    """Is a cycle, or the excess of a loss on judgments held out, more than noise? None: not looked at."""
    if "cycles_are" not in audit.queries.column_names:
        return None
    held = [] if audit.held_out is None else audit.held_out.to_pylist()
    worse = any(row["standard_error"] and row["mean"] > SURE * row["standard_error"] for row in held)
    return worse or any(row["cycles_are"] == "cyclic" for row in rows)


def _losses(audit: Audit, queries: int, beyond_noise: bool | None) -> list[str]:
    """Who would rank wrongly with infinite data, the worst first; then who would not."""
    table = sorted(audit.overall.to_pylist(), key=lambda row: (-row["wrong"], -_number(row["mean_regret"])))
    wrong = [row for row in table if row["wrong"]]
    lines = []
    asked = audit.settings.get("target")
    by = "" if asked is None else ", by the pairwise loss" if asked == "pairwise" else f", by {asked.upper()}"
    begin = f"With infinite data exactly like this{by}"
    if wrong:
        where = "" if queries == 1 else ", by queries and mean excess loss"
        each = [f"{_title(row, audit.settings)} {_wrong(row, queries)}" for row in wrong]
        caution = "Not shown to be more than chance, see below: w" if beyond_noise is False else "W"
        lines.append(f"{caution}{begin[1:]}, losses that would rank wrongly{where}: {', '.join(each)}.")
    right = [row for row in table if not row["wrong"] and not row["undecided"]]
    if right:
        begin = "Losses that would rank rightly" if wrong else f"{begin} these would rank rightly"
        everywhere = "" if queries == 1 else " everywhere"
        lines.append(f"{begin}{everywhere}: {', '.join(_title(row, audit.settings) for row in right)}.")
    open_ = [row for row in table if not row["wrong"] and row["undecided"]]
    if open_:
        titles = [(_title(row, audit.settings), f" ({row['undecided']:,})" if queries > 1 else "") for row in open_]
        said = ", ".join(title + many for title, many in titles)
        lines.append(f"No error found, but not decided{'' if queries == 1 else ' everywhere'}: {said}.")
    return lines


def _amount(value: float) -> str:
    """Four decimals; fewer than that are not shown as nothing."""
    return f"{value:.4f}" if abs(value) >= 5e-5 or value == 0 else f"{value:.0e}"


def _wrong(row: dict[str, Any], queries: int) -> str:
    if queries == 1:
        return f"(excess {_amount(row['mean_regret'])})"
    share = row["wrong"] / row["queries"]
    shown = f"{share:.0%}" if 0.01 <= share <= 0.99 or share == 1 else "<1%" if share < 0.5 else ">99%"
    return f"{shown} ({_amount(row['mean_regret'])})"


def _number(value: float | None) -> float:
    return 0.0 if value is None or value != value else value


def _title(row: dict[str, Any], settings: Mapping[str, Any]) -> str:
    title = TITLES.get(row["surrogate"], row["surrogate"])
    if row["surrogate"] == "default":
        title = f"the default of fit (its gate takes {settings['default']})"
    elif row["surrogate"] == "gain-regression":
        title += f" of {settings['structure']}"
    own = settings.get("target") is None and row["target"] != "pairwise"
    return f"{title} (by {row['target'].upper()})" if own else title


def _noise(rows: list[dict[str, Any]]) -> list[str]:
    cyclic = [row for row in rows if not row["acyclic"]]
    if not cyclic:
        return []
    real = [row for row in cyclic if row["cycles_are"] == "cyclic"]
    if len(rows) == 1:
        row = rows[0]
        if real:
            shown = " > ".join(map(str, _closed(row["significant_cycle"])))
            return [f"The cycles are more than chance (p = {row['cycle_p_value']:.2g}): {shown}."]
        return [
            f"Chance alone could have made the cycles (p = {row['cycle_p_value']:.2g}): that no order fits is not "
            "shown."
        ]
    corrected = int((~explained(np.array([row["cycle_p_value"] for row in rows]))).sum())
    many = f", {corrected:,} of them also when so many tests are allowed for" if real else ""
    expected = np.array([row["cycle_expected"] for row in rows], float)
    known = expected[~np.isnan(expected)]
    shown = (
        f"; preferences without cycles, near these, would show some by chance in {known.mean():.0%} of queries"
        if len(known)
        else ""
    )
    return [f"The cycles are more than chance {_of(len(real), len(cyclic), 'queries with cycles')}{many}{shown}."]


def _held_out(table: pa.Table) -> list[str]:
    """Which surrogates do worse than the best order of the same half of the judgments, on the other half."""
    rows = [row for row in table.to_pylist() if row["standard_error"]]
    if not rows:
        return []
    sure = [(row["mean"] / row["standard_error"], row) for row in rows]
    groups = {
        "worse": [row for z, row in sure if z > SURE],
        "better": [row for z, row in sure if z < -SURE],
        "no difference beyond chance": [row for z, row in sure if abs(z) <= SURE],
    }
    said = []
    for word, members in groups.items():
        if members and word != "no difference beyond chance":
            each = (f"{row['surrogate']} ({row['mean']:+.4f} ± {row['standard_error']:.4f})" for row in members)
            said.append(f"{word}: {', '.join(each)}")
        elif members:
            said.append(f"{word}: {', '.join(row['surrogate'] for row in members)}")
    if not said:
        return []
    return [
        f"Fitted to half of the judgments and tried on the rest, beside the best order of that half: {'; '.join(said)}."
    ]


def _top(settling: pa.Table, settings: Mapping[str, Any], queries: int) -> list[str]:
    rows = settling.to_pylist()
    top = settings["top"]
    what = "first place" if top == 1 else f"the top {top}"
    level = f"{settings['level']:.0%}"
    if queries > 1:
        settled = sum(row["status"] == "settled" for row in rows)
        return [f"{what.capitalize()} is settled at {level} {_of(settled, len(rows))}."]
    row = rows[0]
    if row["status"] in SAID:
        return [SAID[row["status"]].format(what=what.capitalize(), level=level)]
    if row["probability"] is None:
        return [f"{what.capitalize()}: {row['status']}."]
    if not np.isfinite(row["more_if_as_seen"]):
        needed = "no realistic number of judgments like these would settle it"
    else:
        leads = "whoever leads" if top == 1 else f"whichever {top} lead"
        needed = (
            f"about {_rounded(row['more_if_as_seen'])} more judgments settle it if the lead is as seen; after "
            f"{_rounded(row['more'])} more, {leads} then is right with {level}"
        )
    return [f"{what.capitalize()} is right with probability {row['probability']:.2f}; {needed}."]


SAID = {
    "settled": "{what} is settled at {level}.",
    "no such top": "{what}: there are too few connected items for it.",
    "equal scores at the boundary": "{what} is shared by equal scores: who has it is open.",
}
"""What is said of a top that needs no number, by its status."""


def _rounded(number: float) -> str:
    """Two digits are enough of an estimate."""
    if not np.isfinite(number):
        return "more than 1,000 times the data"
    digits = max(len(f"{number:.0f}") - 2, 0)
    return f"{round(number, -digits):,.0f}"


def _ask(ask: pa.Table, queries: int) -> str:
    first = ask.slice(0, 3).to_pylist()
    if queries > 1:
        row = first[0]
        return f"Ask next, such as in query {row['query']}: {row['better']} against {row['worse']} ({row['reason']})."
    return "Ask next: " + "; ".join(f"{row['better']} against {row['worse']}" for row in first) + "."


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What the preferences of each query, with a loss, can lead to.

    ``queries`` has a row for each query: ``query, items, judgments, components, acyclic, low_noise,
    row_sum_condition, optimal_loss, optimal_exact`` and the evidence (docs/audit.md explains every column).
    ``surrogates`` has a row for each query and surrogate: ``query, surrogate, phi, target, status, loss, regret,
    regret_at_most, consistent, flipped, above, below``. ``orders`` has a best order of each query: ``query, item,
    place``. Losses are per judgment (mean adjacency).

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b", "a"], ["b", "c", "c"])
    >>> found = cc.audit(votes, replicates=0)
    >>> found.queries["acyclic"].to_pylist(), found.orders["item"].to_pylist()
    ([True], ['a', 'b', 'c'])
    """

    queries: pa.Table
    surrogates: pa.Table
    orders: pa.Table
    settling: pa.Table | None
    """Is the top of each query settled, and how many more judgments would settle it; None: not asked for."""
    ask: pa.Table | None
    """Pairs to ask next, the most informative first."""
    edges: pa.Table | None
    """Net preferences, with the share of replicates in which each keeps its direction (``sign_holds``)."""
    held_out: pa.Table | None
    """Excess loss of each surrogate on judgments that it did not see."""
    settings: Mapping[str, Any]
    facts: str
    """What the log held."""
    notes: tuple[str, ...] = field(default=())
    """What was left out and why."""

    @cached_property
    def summary(self) -> tuple[str, ...]:
        """The findings in plain words, at most eleven lines."""
        return tuple(summary(self))

    @cached_property
    def overall(self) -> pa.Table:
        """Each surrogate over all queries: ``surrogate, target, queries, right, wrong, undecided, mean_regret``.

        ``mean_regret`` is the mean over the queries where a minimum could be judged, each counting once.
        """
        rows = []
        names = self.surrogates["surrogate"].to_pylist()
        verdict = np.array([-1 if x is None else int(x) for x in self.surrogates["consistent"].to_pylist()])
        regret = self.surrogates["regret"].to_numpy(zero_copy_only=False).astype(float)
        target = self.surrogates["target"].to_pylist()
        place = np.array(names, dtype=object)
        for name in dict.fromkeys(names):
            mine = np.flatnonzero(place == name)
            known = mine[~np.isnan(regret[mine])]
            rows.append(
                {
                    "surrogate": name,
                    "target": target[mine[0]],
                    "queries": len(mine),
                    "right": int((verdict[mine] == 1).sum()),
                    "wrong": int((verdict[mine] == 0).sum()),
                    "undecided": int((verdict[mine] == -1).sum()),
                    "mean_regret": float(regret[known].mean()) if len(known) else float("nan"),
                }
            )
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested data, one entry for each query with its surrogates by name."""
        rows = self.queries.to_pylist()
        by_query = [row | {"low_noise": _known(row["low_noise"]), "surrogates": {}} for row in rows]
        each = len(rows)
        for at, row in enumerate(self.surrogates.to_pylist()):
            name = row.pop("surrogate")
            by_query[at % each]["surrogates"][name] = {key: value for key, value in row.items() if key != "query"}
        for kind in ("settling", "ask"):
            table = getattr(self, kind)
            if table is not None:
                _attach(by_query, kind, table)
        held = None if self.held_out is None else self.held_out.to_pylist()
        return {
            "log": self.facts,
            "settings": dict(self.settings),
            "summary": list(self.summary),
            "notes": list(self.notes),
            "surrogates": self.overall.to_pylist(),
            "held_out": held,
            "queries": by_query,
        }

    def to_arrow(self) -> pa.Table:
        """Return a row for each query, with columns ``<surrogate>.consistent`` and ``<surrogate>.regret``."""
        table = self.queries
        each = max(len(table), 1)
        for begin in range(0, len(self.surrogates), each):
            part = self.surrogates.slice(begin, each)
            name = part["surrogate"][0].as_py()
            for column in ("consistent", "regret"):
                table = table.append_column(f"{name}.{column}", part[column])
        return table

    def to_pandas(self) -> Any:
        """Return ``to_arrow`` as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def to_markdown(self, said: Callable[[str], str] = str) -> str:
        """Return the findings as sentences, the losses over all queries as a table, and the notes, in Markdown.

        ``said``: how a note is written.
        """
        names, rows = self._losses()
        found = [f"- {in_markdown(line)}" for line in self.summary]
        table = markdown_rows(names, rows, [name for name in names if name not in LEFT])
        notes = [f"- {in_markdown(said(note))}" for note in self.notes]
        return "\n".join([*found, "", *table, *([""] if notes else []), *notes, ""])

    def _repr_html_(self) -> str:
        facts, *said = self.summary
        table = html_table(*self._losses())
        return f"<div>{html_words(facts)}{html_lines(said)}{table}{html_lines(self.notes)}</div>"

    def _losses(self) -> tuple[list[str], list[list[str]]]:
        """The losses over all queries as texts under names."""
        names = ["loss", "judged by", "ranks rightly", "wrongly", "undecided", "mean excess"]
        rows = [
            [TITLES.get(row["surrogate"], row["surrogate"])]
            + ["pairwise" if row["target"] == "pairwise" else str(row["target"]).upper()]
            + [f"{row[name]:,}" for name in ("right", "wrong", "undecided")]
            + ["–" if np.isnan(row["mean_regret"]) else _amount(row["mean_regret"])]
            for row in self.overall.to_pylist()
        ]
        return names, rows

    def __repr__(self) -> str:
        return "\n".join(self.summary)


def _known(word: str) -> bool | str:
    return {"true": True, "false": False}.get(word, word)


def _attach(by_query: list[dict[str, Any]], name: str, table: pa.Table) -> None:
    place = {json.dumps(row["query"]): row for row in by_query}
    for row in by_query:
        row[name] = []
    for row in table.to_pylist():
        place[json.dumps(row.pop("query"))][name].append(row)
