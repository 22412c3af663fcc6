"""What is said, unasked, of how a log was read: columns that were taken for something, and some that were not used."""

from __future__ import annotations

from collections.abc import Mapping

from concordant.errors import Setting, few
from concordant.io.forms import MANY_OF
from concordant.io.log.formats import Log
from concordant.io.log.union import JOINED
from concordant.io.store.days import day_of
from concordant.preferences.layouts import ALIASES, CLUSTERS, Layout, Scale, plain
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import unused_clusters

PUBLISHED = "as published"
"""The code of the note that says which evaluation's layout a log has."""
READ = "files read"
"""The code of the note that says of how many files and days the rows are."""
JUDGES = frozenset(
    f"{who}{end}"
    for who in ("worker", "annotator", "rater", "judge", "voter", "user", "labeler", "labeller", "evaluator", "grader")
    for end in ("", "_id", "_name")
) | {"participant", "participant_id", "respondent", "respondent_id"}
PROMPTS = frozenset(
    {"prompt", "prompt_id", "question", "question_id", "instruction", "conversation_id", "task", "task_id"}
)
"""Names, in plain spelling, of columns that say who judged and what was asked."""
WEIGHTS = frozenset({"weight", "weights", "wt", "wgt"}) | {
    f"{of}_weight" for of in ("survey", "sample", "sampling", "design", "case", "population", "respondent", "voter")
}
COUNTS = frozenset({"count", "counts", "freq", "frequency", "multiplicity"})
"""Names of columns that say how much a row counts, and how often it was seen."""


def notes_of(log: Log, layout: Layout, given: Mapping[str, str]) -> tuple[str, ...]:
    """Say what a log was taken for without being asked."""
    roles, used = layout.roles, {*layout.roles.values(), *layout.covariates}
    joined = [one for one in log.told if isinstance(one, Note) and one.code == JOINED]
    unused = [one for one in joined if one.numbers["column"] not in used]
    said = [one for one in log.told if one not in unused]
    if layout.inside:
        text = "{log}: the roles are played by {columns}, which lie in {whole!r}"
        columns = few([column for column in roles.values() if column in log.inner or "." in column])
        said.append(Note("columns inside", text, log=log.name, columns=columns, whole=layout.inside))
    if log.trimmed:
        text = "{log}: every field after the first begins with a space; fields are read trimmed"
        said.append(Note("read trimmed", text, log=log.name))
    published = any(isinstance(note, Note) and note.code == PUBLISHED for note in log.told)
    if "weight" in roles and "weight" not in given and not published:
        text = (
            "{log}: the column {column!r} is read as the strength of each comparison (weight); name it as the count "
            "({count}) where it says how often a row was seen"
        )
        count = Setting("columns", key="count")
        said.append(Note("read as weight", text, log=log.name, column=roles["weight"], count=count))
    if "grade" in roles:
        text = (
            "{log}: the column {column!r} is read as grades from {left!r} ({first}) to {right!r} ({last}); the "
            "strength of a preference is its steps from a tie, that of a tie 1"
        )
        grades = Scale.of(given["scale"]).grades
        ends = {"first": grades[0], "last": grades[-1], "left": roles["left"], "right": roles["right"]}
        said.append(Note("read as grades", text, log=log.name, column=roles["grade"], **ends))
    elif found := [
        c for c in log.columns if plain(c) in ALIASES["grade"] and "left" in roles and c not in roles.values()
    ]:
        text = "{log}: the column {column!r} looks like grades and is not used: {ask} and a scale read it"
        ask = Setting("columns", found[0], key="grade")
        said.append(Note("unused grades", text, log=log.name, column=found[0], ask=ask))
    return (*said, *_unused_weights(log, layout, given), *_unused_clusters(log, roles))


def _unused_weights(log: Log, layout: Layout, given: Mapping[str, str]) -> list[Note]:
    """Say which columns look like weights or counts and are not used, or are items where all columns are."""
    roles, said = layout.roles, []
    for column in log.columns:
        weighs = plain(column) in WEIGHTS
        if not weighs and plain(column) not in COUNTS:
            continue
        what, count = "weights" if weighs else "counts", Setting("columns", column, key="count")
        if given.get("items") == "all" and column in roles.values():
            if f"item {column}" in roles and layout.kind != "comparisons":
                text = "{log}: the column {column!r} is read as an item; where it holds {what}, name the items ({ask})"
                ask = Setting("columns", "A,B,…", key="items")
                said.append(Note("weights as an item", text, log=log.name, column=column, what=what, ask=ask))
        elif column in roles.values() or column in layout.covariates:
            continue
        elif weighs and layout.kind != "comparisons":
            text = "{log}: the column {column!r} is not used: {many} have counts, not weights"
            if "count" not in roles:
                text += "; whole numbers that say how often a row was seen are given as {count}"
            many = MANY_OF[layout.kind]
            said.append(Note("unused weights", text, log=log.name, column=column, many=many, count=count))
        elif layout.form == "table of wins":
            text = "{log}: the column {column!r} looks like {what} and is not used: a table of wins has counts alone"
            said.append(Note("unused counts", text, log=log.name, column=column, what=what))
        elif not {"weight", "grade"} & {*roles} if weighs else "count" not in roles:
            text = "{log}: the column {column!r} looks like {what} and is not used: {ask} reads it"
            ask = Setting("columns", column, key="weight") if weighs else count
            said.append(Note("unused counts", text, log=log.name, column=column, what=what, ask=ask))
    return said


def _unused_clusters(log: Log, roles: Mapping[str, str]) -> list[Note]:
    """Say which column of comparisons looks like what judgments depend on, and is not used."""
    if not {"winner", "left"} & set(roles):
        return []
    used = {plain(column) for column in roles.values()}
    found = {}
    for names, what in ((JUDGES, "who judged"), (PROMPTS, "what was asked")):
        like = next((column for column in log.columns if plain(column) in names), None)
        if like is not None and not used & names:
            found[like] = what
    if not found:
        return []
    return [unused_clusters(log.name, found, tuple(roles[role] for role in CLUSTERS if role in roles))]


def read_note(log: Log, rows: int) -> list[Note]:
    """Say how many files were read, of which days, and how many rows they hold."""
    if not log.parts or log.format == "run":
        return []
    days = sorted({day for part in log.parts if (day := day_of(part.file)[0])})
    text = "{log}: {rows:rows} in {files:files}" + (" of {days:days} ({first} to {last})" if len(days) > 1 else "")
    return [
        Note(READ, text, log=log.name, rows=rows, files=len(log.parts), days=len(days),
             first=days[0] if days else "", last=days[-1] if days else "")
    ]  # fmt: skip
