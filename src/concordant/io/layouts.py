"""The layouts of a log: which columns each is recognised by, and how its rows become judgments.

A log has the layout whose columns are there, by their usual names or as they were given.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import Idle, InputError, Setting, UsageError, few, shown
from concordant.io.engines.counting import Counter, foresee
from concordant.io.engines.foretold import foretell
from concordant.io.forms import Columns, Form, NothingFits, Reading, lacking, places, similar, some, weightless
from concordant.io.log.marks import separated
from concordant.io.log.rows import MOST_SOUGHT, Sought
from concordant.io.votes import with_ids
from concordant.io.wide import WIDE, items_layout
from concordant.preferences.comparisons import check_comparisons
from concordant.preferences.layouts import ALIASES, CLUSTERS, KINDS, PAIRS, Layout, Outcomes, Scale, plain
from concordant.preferences.lists import SEVERAL, UNITS, ListVerdicts, RawLists, check_lists, said_of_lists
from concordant.preferences.preferences import (
    Comparisons,
    Preferences,
    counted_comparisons,
    counted_lists,
    with_cluster_columns,
)
from concordant.preferences.values import Reason, Reject, Verdict, say
from concordant.progress import stage

__all__ = ["FORMS", "Columns", "Form", "Reading", "find_layout"]


CONTRACT_PAIRS = 4
MANY = 4_000_000
TOLD_BY = (
    frozenset({"winner", "loser"}),
    *(frozenset({*told, "left", "right"}) for told in (("outcome",), ("left_score", "right_score"), ("grade",))),
    frozenset({"left_wins", "right_wins", "left", "right"}),
)
"""Roles by which a comparison is told, each way with nothing of the others."""
QUERY_OF_RATINGS = (*ALIASES["query"], "user", "user_id")
ROLE_NAMES = {
    **{left: "left" for left, _ in PAIRS if left != "chosen"},
    **{right: "right" for _, right in PAIRS if right != "rejected"},
    "rejected": "loser",
    "label": "outcome",
    "user": "query",
    "home_score": "left_score",
    "away_score": "right_score",
    "home_wins": "left_wins",
    "away_wins": "right_wins",
}
MEANINGS = ("outcomes", "tie_values")
"""What is said of values, beside the columns."""


def find_layout(
    columns: Sequence[str],
    *,
    name: str,
    kind: str | None = None,
    given: Mapping[str, str] | None = None,
    cluster: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    home: str | None = None,
    time: str | None = None,
) -> Layout:
    """Return the kind and the roles of a log with these columns.

    ``given`` maps roles to columns and goes before the aliases. Where nothing fits, the columns inside another one
    (vote.winner) are looked at by the ends of their names. Errors: a column that is not there, an unknown role,
    no layout that fits, or several that fit.
    """
    asked: dict[str, Any] = {"name": name, "kind": kind, "given": given, "cluster": cluster}
    asked |= {"covariates": covariates, "home": home, "time": time}
    try:
        return _layout_of(columns, **asked)
    except NothingFits as error:
        found: dict[str, Layout] = {}
        for whole in dict.fromkeys(column.rpartition(".")[0] for column in columns if "." in column):
            ends = {end: column for column in columns if (end := column.removeprefix(f"{whole}.")) != column}
            ends = {end: column for end, column in ends.items() if "." not in end}
            try:
                layout = _layout_of([*ends, *(column for column in columns if column not in ends)], **asked)
            except InputError:
                continue
            if inside := {role: ends[column] for role, column in layout.roles.items() if column in ends}:
                covered = tuple([ends.get(column, column) for column in layout.covariates])
                found[whole] = replace(layout, roles={**layout.roles, **inside}, covariates=covered, inside=whole)
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise InputError(
                f"{name}: the columns inside each of {few(found)} could be meant; name them, as ",
                Setting("columns", *reversed(next(iter(next(iter(found.values())).roles.items())))),
            ) from None
        raise InputError(*error.args) from None


def _layout_of(
    columns: Sequence[str],
    *,
    name: str,
    kind: str | None = None,
    given: Mapping[str, str] | None = None,
    cluster: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    home: str | None = None,
    time: str | None = None,
) -> Layout:
    """Return the kind and the roles of a log whose columns are called so."""
    kind = "ratings" if kind == "labels" else kind
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}; known: {', '.join(KINDS)} (labels are ratings)")
    given = {} if given is None else given
    said = given if isinstance(given, Mapping) else {}
    items, scale, *means = (said.get(name) for name in ("items", "scale", *MEANINGS))
    roles = _given_roles(columns, given, name)
    roles |= _cluster_roles(columns, cluster, name)
    if items is not None:
        if scale is not None:
            raise Idle("scale", "no column holds grades of two sides")
        if (idle := next((name for name in MEANINGS if said.get(name) is not None), None)) is not None:
            raise Idle(idle, "no column holds an outcome")
        if covariates or home is not None or time is not None:
            raise UsageError(f"{name}: where columns are items there are no covariates, no home side and no time")
        form, roles = items_layout(columns, name, kind, items, roles)
        return Layout(str(kind), roles, form=form)
    if isinstance(covariates, str):
        covariates = (covariates,)
    covariates = tuple(_present(columns, column, "covariate", name) for column in dict.fromkeys(covariates))
    there = Columns(columns, [column for role, column in roles.items() if role not in CLUSTERS], name)
    attempts = {name: one.fit(there, dict(roles), home) for name, one in FORMS.items() if kind in (None, one.kind)}
    fitting = {one: found for one, found in attempts.items() if isinstance(found, dict)}
    if not fitting:
        _refuse_weight(there, kind, roles, home)
        raise NothingFits(*_nothing_fits(columns, name, kind, attempts, roles))
    if len(fitting) > 1:
        raise InputError(
            f"{name}: the columns {few(columns, 20)} could be {' or '.join(fitting)}; say which with ",
            Setting("kind"),
        )
    form, found = next(iter(fitting.items()))
    chosen = FORMS[form].kind
    if "outcome" not in found and (idle := next((name for name in MEANINGS if said.get(name) is not None), None)):
        raise Idle(idle, f"{name} has no column that is known to hold outcomes", "name it as the outcome, too")
    outcomes = None if means == [None, None] else Outcomes.of(*means)
    if chosen != "comparisons":
        if covariates or home or "neutral" in roles:
            raise UsageError(f"{name}: covariates, home and neutral belong to comparisons, this log holds {chosen}")
        if time is not None:
            raise UsageError(f"{name}: a time belongs to comparisons, this log holds {chosen}")
    if time is not None:
        found["time"] = _present(columns, time, "time", name)
    if home is not None:
        _check_home(home, found, name)
    elif "neutral" in found:
        raise UsageError(f"{name}: neutral says where nobody is at home; it needs ", Setting("home"), ": left or right")
    return Layout(chosen, found, covariates, home, _side_names(found), form, _scale(found, scale, name), outcomes)


def _refuse_weight(there: Columns, kind: str | None, roles: Mapping[str, str], home: str | None) -> None:
    """Refuse a weight without which the columns would be a log of another kind than comparisons."""
    if "weight" not in roles:
        return
    rest = {role: column for role, column in roles.items() if role != "weight"}
    for one in FORMS.values():
        if one.kind != "comparisons" and kind in (None, one.kind) and isinstance(one.fit(there, {**rest}, home), dict):
            raise UsageError(*weightless(there.name, one.kind, roles["weight"]))


def _scale(roles: Mapping[str, str], scale: str | None, name: str) -> Scale | None:
    """Read the scale of grades, which nothing tells but who reads the log: which side do high ones prefer?"""
    if "grade" not in roles:
        if scale is not None:
            raise Idle("scale", f"{name} has no column that is known to hold grades", "name it as the grade, too")
        return None
    if scale is None:
        raise UsageError(
            f"{name}: the column {shown(roles['grade'])} holds grades, and it is not said which side they prefer; name "
            f"the grades from the strongest preference for {shown(roles['left'])} to the strongest for "
            f"{shown(roles['right'])}: ",
            Setting("columns", "-3:3", key="scale"),
            ", ",
            Setting("columns", "7:1", key="scale"),
            " or, of words, ",
            Setting("columns", "'A is better,no difference,B is better'", key="scale"),
        )
    if "weight" in roles:
        raise UsageError(f"{name}: a comparison has a grade or a weight, not both")
    return Scale.of(scale)


def _given_roles(columns: Sequence[str], given: Mapping[str, str], name: str) -> dict[str, str]:
    roles: dict[str, str] = {}
    if not isinstance(given, Mapping):
        raise UsageError(f"columns= is a mapping of roles to columns, not {type(given).__name__}")
    for role, column in given.items():
        if role in ("items", "scale", *MEANINGS):
            continue
        known = role if role in ALIASES else ROLE_NAMES.get(role)
        if known is None:
            close = difflib.get_close_matches(role, ALIASES, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise UsageError(f"unknown role {role!r}; {hint}Known: {', '.join(sorted(ALIASES))}.")
        if known in roles:
            raise UsageError(f"the role {known!r} is given twice")
        roles[known] = _present(columns, column, known, name)
    if "chosen" in roles and "loser" in roles and "winner" not in roles:
        roles["winner"] = roles.pop("chosen")
    if "left" in roles and "right" in roles and "winner" in roles and "loser" not in roles and "outcome" not in roles:
        roles["outcome"] = roles.pop("winner")
    return roles


def _cluster_roles(columns: Sequence[str], cluster: str | Sequence[str] | None, name: str) -> dict[str, str]:
    if cluster is None:
        return {}
    if not isinstance(cluster, str | list | tuple):
        raise UsageError(f"cluster must be the name of a column, or several, not {type(cluster).__name__}")
    asked = [cluster] if isinstance(cluster, str) else cluster
    if len(set(map(str, asked))) < len(asked) or not 0 < len(asked) <= len(CLUSTERS):
        raise UsageError(f"cluster names 1 to {len(CLUSTERS)} columns, each once, not {asked!r}")
    return {role: _present(columns, one, "cluster", name) for role, one in zip(CLUSTERS, asked, strict=False)}


def _present(columns: Sequence[str], column: str, role: str, name: str) -> str:
    if isinstance(column, str) and column in columns:
        return column
    close = difflib.get_close_matches(str(column), columns, n=1)
    hint = f"did you mean {shown(close[0])}? " if close else ""
    raise InputError(
        f"{name}: no column {shown(column)} (asked for as {role}); {hint}columns there: {few(columns, 40)}"
        f"{separated(columns)}"
    )


def _entries(kind: str, *needed: str) -> Callable[[Columns, dict[str, str], str | None], dict[str, str] | str]:
    """Return what finds the columns of lists with an entry in each row."""

    def fit(there: Columns, roles: dict[str, str], _: str | None) -> dict[str, str] | str:
        if "chosen" in roles and kind in ("selections", "choices"):
            roles["clicked"] = roles.pop("chosen")
        if set(roles) & ({"winner", "loser", "left", "right", "outcome", "weight"}):
            return "roles of comparisons were given"
        missing = []
        for role in needed:
            if role not in roles:
                aliases = ALIASES[role] + (ALIASES["chosen"] if role == "clicked" and kind == "choices" else ())
                column = there.find(aliases, role)
                if column is None:
                    missing.append(role)
                else:
                    roles[role] = column
        if kind == "choices" and "position" not in roles and there.find(ALIASES["position"], "position", several=True):
            return "there is a position, so these are selections"
        if missing:
            return " and ".join(missing)
        _optional(there, roles, "count")
        if "query" not in roles:
            aliases = QUERY_OF_RATINGS if kind == "ratings" else ALIASES["query"]
            column = there.find(aliases, "query")
            if column is not None:
                roles["query"] = column
        if kind == "ratings":
            _optional(there, roles, "judgment")
            if "query" not in roles and "judgment" not in roles:
                return "query (or user, or judgment)"
        unused = set(roles) - {*needed, "query", "count", *CLUSTERS, "judgment" if kind == "ratings" else ""}
        return f"a use for {', '.join(sorted(unused))}" if unused else roles

    return fit


def _optional(there: Columns, roles: dict[str, str], role: str) -> None:
    if role not in roles:
        column = there.find(ALIASES[role], role)
        if column is not None:
            roles[role] = column


def _comparison(there: Columns, roles: dict[str, str], home: str | None) -> dict[str, str] | str:
    if set(roles) & {"session", "position", "item", "clicked", "chosen", "rank", "rating", "judgment"}:
        return "roles of another kind were given"
    sides = _sides(there, roles)
    if isinstance(sides, str):
        return sides
    told = next(names for names in TOLD_BY if names <= set(sides))
    if unused := set(sides) & frozenset().union(*TOLD_BY) - told:
        return f"a use for {', '.join(sorted(unused))}"
    roles = sides
    for role in ("query", "weight", "count"):
        _optional(there, roles, role)
    if home is not None:
        _optional(there, roles, "neutral")
    return roles


def _sides(there: Columns, roles: dict[str, str]) -> dict[str, str] | str:
    """Find winner and loser, or two sides and what says who won."""
    if "winner" in roles and "loser" in roles:
        return roles if not {"left", "right"} & set(roles) else "either winner and loser, or left and right"
    if "loser" in roles:
        column = there.find(ALIASES["winner"], "winner")
        return {**roles, "winner": column} if column else "winner"
    if "left" in roles or "right" in roles:
        for one, other, place in (("left", "right", 1), ("right", "left", 0)):
            if one in roles and other not in roles:
                column = there.find([pair[place] for pair in PAIRS], other)
                if column is None:
                    return other
                roles[other] = column
        return _outcome(there, roles)
    told = {"outcome", "left_score", "right_score", "left_wins", "right_wins", "grade"} & set(roles)
    fits: list[tuple[int, dict[str, str]]] = []
    missing = "winner and loser (or two sides and an outcome)"
    if not told and ("winner" in roles or there.find(ALIASES["winner"], "winner", several=True)):
        loser = there.find(ALIASES["loser"], "loser")
        if loser is not None:
            winner = roles.get("winner") or str(there.find(ALIASES["winner"], "winner"))
            fits.append((-1, {**roles, "winner": winner, "loser": loser}))
    for place, (one, other) in enumerate(PAIRS):
        left, right = there.find([one], "left"), there.find([other], "right")
        if left is None or right is None:
            continue
        outcome = _outcome(there, {**roles, "left": left, "right": right})
        if isinstance(outcome, dict):
            fits.append((place, outcome))
        elif (one, other) == ("chosen", "rejected") and not told and "winner" not in roles:
            fits.append((place, {**roles, "winner": left, "loser": right}))
        else:
            missing = f"{outcome} to go with {left!r} and {right!r}"
    ours = [found for place, found in fits if place < CONTRACT_PAIRS]
    if len(ours) > 1:
        pairs = [
            f"{found.get('left') or found['winner']!r}, {found.get('right') or found['loser']!r}" for _, found in fits
        ]
        raise InputError(
            f"{there.name}: two layouts fit ({'; '.join(pairs)}); say which columns to use with ",
            Setting("columns", key="left"),
            " and ",
            Setting("columns", key="right"),
            ", or with ",
            Setting("columns", key="winner"),
            " and ",
            Setting("columns", key="loser"),
        )
    return fits[0][1] if fits else missing


def _outcome(there: Columns, roles: dict[str, str]) -> dict[str, str] | str:
    """Add to two sides the outcome, the two scores or the two numbers of wins."""
    roles = dict(roles)
    if "winner" in roles:
        roles["outcome"] = roles.pop("winner")
    if "outcome" in roles or "grade" in roles:
        return roles
    for pair in (("left_score", "right_score"), ("left_wins", "right_wins")):
        if set(pair) <= set(roles):
            return roles
        if set(pair) & set(roles):
            return f"both {pair[0]} and {pair[1]}"
    column = there.find(ALIASES["outcome"], "outcome")
    if column is not None:
        return {**roles, "outcome": column}
    for what in ("score", "wins"):
        found = {side: there.find(ALIASES[f"{side}_{what}"], f"{side}_{what}") for side in ("left", "right")}
        if found["left"] and found["right"]:
            return {**roles, f"left_{what}": found["left"], f"right_{what}": found["right"]}
    column = there.find(ALIASES["grade"], "grade")
    return "an outcome (winner, label, outcome, grade, or two scores)" if column is None else {**roles, "grade": column}


def _check_home(home: str, roles: dict[str, str], name: str) -> None:
    if home not in ("left", "right"):
        raise UsageError(f"home must be 'left' or 'right', not {home!r}")
    if "left" not in roles:
        raise UsageError(f"{name}: home needs two sides (left and right), this log has a winner and a loser")


def _side_names(roles: dict[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that name the left and the right side in an outcome, in lower case."""
    if "left" not in roles:
        return frozenset(), frozenset()
    left, right = roles["left"].strip().lower(), roles["right"].strip().lower()
    lefts, rights = {"left", "model_a", "player1", "1", left}, {"right", "model_b", "player2", "2", right}
    if plain(left).startswith("home") and plain(right).startswith("away"):
        lefts |= {"home", "home_team", "h"}
        rights |= {"away", "away_team", "a"}
    else:
        lefts |= {"a", "first"}
        rights |= {"b", "second"}
    return frozenset(lefts - rights), frozenset(rights - lefts)


def _nothing_fits(
    columns: Sequence[str], name: str, kind: str | None, attempts: Mapping[str, object], roles: Mapping[str, str]
) -> list[str | Setting]:
    there = f"columns there: {few(columns, 40) or 'none'}{separated(columns)}"
    if kind is not None:
        wanted = f"{name}: missing for {kind}: {'; or '.join(map(str, attempts.values()))}; {there}"
    else:
        wanted = f"{name}: no layout fits these columns; {there}"
        partly = lacking(attempts)
        wanted += f" ({'; '.join(partly)})" if partly else ""
    if roles:
        wanted += f"; given: {', '.join(f'{role}={column}' for role, column in roles.items())}"
    table = () if "items" in roles else (" A column for each item: ", Setting("columns", "all", key="items"), ".")
    return [f"{wanted}. ", *similar(columns), known_aliases(kind), *table]


# -- comparisons ---------------------------------------------------------------------------------------------------
def _read_comparisons(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
    log = counter.log
    roles = {**layout.roles, **{f"covariate {name}": name for name in layout.covariates}}
    foretell(log, roles)
    found, rows = counter.count_rows(roles)
    total = int(rows.sum(dtype=np.int64))
    some(log, total)
    rejects: tuple[Reject, ...] = ()
    if (column := roles.get("id")) is not None:
        found, rows, rejects = with_ids(counter, roles, found, rows, on_error)
        del roles["id"]
        found, rows = counter.votes.once(found, rows, log.name, column, as_json=log.as_json)
        if not len(rows):
            return Reading(Preferences(), total, log.name, layout.roles, rejects)
    raw = dict(found) if len(rows) <= MANY or column is not None else None
    foresee(found, len(rows), layout.clusters)
    with stage("checking rows"):
        numbered = column is not None and counter.votes.new is not None
        checked = check_comparisons(found, rows, layout, as_json=log.as_json, numbered=numbered)
    if checked.verdict.code is not None:
        if raw is None:  # count again: the columns of a clean log are not kept for this
            raw, rows = counter.count_rows(roles)
            checked = check_comparisons(dict(raw), rows, layout, as_json=log.as_json)
        samples = places(counter, roles, _sought_tuples(raw, checked.verdict, log.as_json))
        refused = checked.verdict.rows(rows)
        rejects += tuple(Reject(reason, number, total, samples.get(reason, ())) for reason, number in refused)
        if on_error == "raise" or checked.empty:
            raise InputError(say(log.name, rejects))
        del raw
    arguments = checked.arguments if column is None else counter.votes.settle(checked)
    pa.default_memory_pool().release_unused()  # Arrow keeps what the engine's table held: 1 GB for 6·10^7 counts
    with stage("adding up judgments"):
        prefs = with_cluster_columns(counted_comparisons(**arguments), layout.clusters)
    if checked.shares is not None:
        if isinstance(prefs, Comparisons) and prefs.share is not None and prefs.time is not None:
            said = "outcomes between 0 and 1 are shares of a win, which no model of times reads"
            raise UsageError(f"{log.name}: {said}")
        prefs = replace(prefs, told=(*prefs.told, checked.shares.note(layout, log.name)))
    return Reading(prefs, total, log.name, dict(layout.roles), rejects)


def _sought_tuples(raw: Mapping[str, Any], verdict: Verdict, as_json: bool) -> list[Sought]:
    """Seek the refused tuples themselves."""
    sought = Sought(tuple(raw))
    for reason, at in verdict.refused:
        columns = [column.take(at[:MOST_SOUGHT]).to_pylist() for column in raw.values()]
        for values in zip(*columns, strict=True):
            sought.add(values, reason, as_json=as_json)
    return [sought]


# -- lists ---------------------------------------------------------------------------------------------------------
def _read_lists(counter: Counter, layout: Layout, clicks: str, on_error: str) -> Reading:
    log = counter.log
    whose = ("query", *CLUSTERS, "session", "judgment")
    keys: dict[str, str] = {role: layout.roles[role] for role in whose if role in layout.roles}
    entries = {role: column for role, column in layout.roles.items() if role not in keys}
    order = ("position", "item", "clicked", "rank", "rating", "count")
    entries = dict(sorted(entries.items(), key=lambda pair: order.index(pair[0])))
    foretell(log, layout.roles)
    lists = counter.count_lists(keys, entries)
    total = lists.rows
    some(log, total)
    with stage("checking lists"):
        checked, verdicts = check_lists(lists, layout, clicks=clicks, as_json=log.as_json)
    rejects: tuple[Reject, ...] = ()
    if verdicts.rows.code is not None or verdicts.lists.code is not None:
        samples = places(counter, layout.roles, _sought_lists(lists, verdicts, log.as_json))
        rejects = tuple(_list_rejects(lists, verdicts, layout.kind, samples))
        ours = [r for r in rejects if (clicks != "skip" if r.reason in SEVERAL else on_error == "raise")]
        if ours or checked.empty:
            raise InputError(say(log.name if ours else f"{log.name}: no judgment is left", ours or rejects))
    if checked.empty:
        raise InputError(f"{log.name}: no judgment is left, every entry is missing")
    with stage("adding up judgments"):
        prefs = with_cluster_columns(counted_lists(**checked.arguments), layout.clusters)
    told = said_of_lists(checked, len(prefs), log.name)
    return Reading(replace(prefs, told=told), total, log.name, layout.roles, rejects)


def _list_rejects(
    lists: RawLists, verdicts: ListVerdicts, kind: str, samples: Mapping[Reason, tuple[tuple[str, object], ...]]
) -> list[Reject]:
    rows = lists.times[lists.owner]
    found = [Reject(reason, number, lists.rows, samples.get(reason, ())) for reason, number in verdicts.rows.rows(rows)]
    total = int(lists.times.sum())
    return found + [
        Reject(reason, number, total, samples.get(reason, ()), UNITS[kind])
        for reason, number in verdicts.lists.rows(lists.times)
    ]


def _sought_lists(lists: RawLists, verdicts: ListVerdicts, as_json: bool) -> list[Sought]:
    """Seek rows with the keys of a refused list and, where one is known, the values of the entry to blame."""
    by_keys, by_entry = Sought(tuple(lists.keys)), Sought((*lists.keys, *lists.entries))
    owner = lists.owner
    for verdict, whole in ((verdicts.rows, False), (verdicts.lists, True)):
        for reason, refused in verdict.refused:
            at = refused[:MOST_SOUGHT]
            blamed = verdicts.blame[at] if whole else at
            which = at if whole else owner[at]
            keys = _tuples(lists.keys.values(), which)
            entries = _tuples(lists.entries.values(), np.maximum(blamed, 0))
            for key, entry, known in zip(keys, entries, blamed >= 0, strict=True):
                if known:
                    by_entry.add((*key, *entry), reason, as_json=as_json)
                else:
                    by_keys.add(key, reason, as_json=as_json)
    return [each for each in (by_keys, by_entry) if each.reasons]


def _tuples(columns: Any, at: Any) -> list[tuple[Any, ...]]:
    taken = [column.take(at).to_pylist() for column in columns]
    return list(zip(*taken, strict=True)) if taken else [()] * len(at)


# -- the layouts -----------------------------------------------------------------------------------------------------
QUERY = "/".join(ALIASES["query"])
FORMS = {
    "comparisons": Form(
        "comparisons",
        f"(winner,loser), or one of {', '.join(f'({left},{right})' for left, right in PAIRS)} with "
        f"{'/'.join(ALIASES['outcome'])}, two scores or {'/'.join(ALIASES['grade'])}; optional {QUERY}, weight, count",
        _comparison,
        _read_comparisons,
    ),
    "selections": Form(
        "selections",
        f"{QUERY}, session, position, item, clicked",
        _entries("selections", "session", "position", "item", "clicked"),
        _read_lists,
    ),
    "choices": Form(
        "choices",
        f"{QUERY}, session, item, clicked/chosen",
        _entries("choices", "session", "item", "clicked"),
        _read_lists,
    ),
    "orders": Form(
        "orders",
        f"{QUERY}, {'/'.join(ALIASES['judgment'][:4])}, item, rank",
        _entries("orders", "judgment", "item", "rank"),
        _read_lists,
    ),
    "ratings": Form("ratings", f"{QUERY}/user, item, rating", _entries("ratings", "item", "rating"), _read_lists),
    **WIDE,
}
"""The layouts by name; the first that fits is not taken where another fits, too."""


def known_aliases(kind: str | None = None) -> str:
    """Return the columns that each layout is recognised by, in one line."""
    return f"Known: {'; '.join(f'{name}: {one.known}' for name, one in FORMS.items() if kind in (None, one.kind))}."
