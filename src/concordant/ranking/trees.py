"""Trees over judges: for whom does the ranking differ?

One model is fitted to all judgments, and it is tested whether its scores change with a property of those who judged or
of what was asked (``ranking.instability``). Where one does, by the smallest p-value after Bonferroni's correction, the
judgments are cut in two where the sum of the two maximised log-likelihoods is largest (``ranking.partitioning``), and
each part is looked at in the same way. The rankings of the groups are those of ``rank``.

Sources: Zeileis, Hothorn & Hornik, Journal of Computational and Graphical Statistics 17 (2008); Strobl, Wickelmaier &
Zeileis, Journal of Educational and Behavioral Statistics 36 (2011), Bradley–Terry trees; Turner, van Etten, Firth &
Kosmidis, Computational Statistics 35 (2020), Plackett–Luce trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import Setting, UsageError, whole_number
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.progress import know, stage, steps
from concordant.ranking.curvature import Curvature
from concordant.ranking.partitioning import Group, Growth, properties_of
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure
from concordant.ranking.structures import structure as find_structure


@dataclass(frozen=True, eq=False, repr=False)
class RankingTree:
    """For whom the ranking differs; ``ranking_tree`` makes it.

    >>> import concordant as cc
    >>> who = {"age": [20, 30, 40, 50] * 15, "shift": ["day", "night", "night"] * 20}
    >>> votes = cc.Preferences.from_comparisons(list("aabb" * 14 + "baba"), list("bbaa" * 14 + "abab"), cluster=who)
    >>> tree = cc.ranking_tree(votes, by=["age", "shift"])
    >>> print(tree)
    the ranking differs by age: 2 groups
    group 2, age ≤ 30 (30 judgments): a > b; b has rank 2 instead of 1
    group 3, age > 30 (30 judgments): b > a; a has rank 2 instead of 1
    group 1, adjusted p-values: age 9.7e-13, shift 1
    >>> tree.group_of(age=35)
    3
    """

    groups: tuple[Group, ...]
    by: tuple[str, ...]
    alpha: float
    min_judgments: int
    structure: str
    options: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def leaves(self) -> tuple[Group, ...]:
        """The groups that are not divided, whose rankings are the answer."""
        return tuple(group for group in self.groups if group.divided_by is None)

    def ranking(self, number: int = 1) -> Ranking:
        """Return the ranking of a group (1: of all), by its own judgments alone, as ``rank`` makes it."""
        known = {group.number: group for group in self.groups}
        if number not in known:
            raise UsageError(f"the groups of this tree are numbered 1 to {len(self.groups)}, not {number!r}")
        if number not in self._rankings:
            self._rankings[number] = rank(known[number].prefs, self.structure, **self.options)
        return self._rankings[number]

    @cached_property
    def _rankings(self) -> dict[int, Ranking]:
        return {}

    def group_of(self, **values: Any) -> int:
        """Return the number of the group to which judgments with these values of the properties belong.

        Errors: UsageError where a property that decides is not given or its value was never seen.
        """
        here = self.groups[0]
        while (name := here.divided_by) is not None:
            if name not in values:
                raise UsageError(f"the groups differ by {name!r}, which is not given")
            parts = [
                group for group in self.groups if group.parent == here.number and values[name] in group.values[name]
            ]
            if not parts:
                raise UsageError(f"no group of this tree has {name}={values[name]!r}")
            here = parts[0]
        return here.number

    def to_arrow(self) -> pa.Table:
        """Return the rankings of the groups that are not divided, one below the other: group, its words, then as those
        of ``Ranking.to_arrow`` without query.
        """
        tables = []
        for leaf in self.leaves:
            rows = self.ranking(leaf.number).to_arrow().drop_columns(["query"])
            rows = rows.add_column(0, "group", pa.array([leaf.number] * len(rows), pa.int64()))
            tables.append(rows.add_column(1, "judged_by", pa.array([leaf.named] * len(rows), pa.string())))
        return pa.concat_tables(tables)

    def to_pandas(self) -> Any:
        """Return the rankings of the groups as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def tests(self) -> pa.Table:
        """Return all tests: group, judged_by, then the fields of ``Instability``, missing where there was no test."""
        rows = [
            {"group": group.number, "judged_by": group.named, **asdict(test)}
            for group in self.groups
            for test in group.tests
        ]
        names = list(rows[0])
        return pa.table({name: pa.array([row[name] for row in rows], from_pandas=True) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested dictionaries and lists, which JSON can hold."""
        groups = [
            {
                "group": group.number,
                "parent": group.parent,
                "judged_by": group.named,
                "judgments": group.judgments,
                **({"clusters": group.clusters} if group.clusters else {}),
                "divided_by": group.divided_by,
                **({"why": group.why} if group.divided_by is None else {}),
                "tests": [
                    {name: None if one != one else one for name, one in asdict(test).items()}  # NaN
                    for test in group.tests
                ],
                "ranking": self.ranking(group.number).to_arrow().drop_columns(["query"]).to_pylist(),
            }
            for group in self.groups
        ]  # fmt: skip
        return {
            "structure": self.structure,
            "alpha": self.alpha,
            "said": list(map(str, self.lines())),
            "groups": groups,
            "notes": list(map(str, self.notes)),
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines()))

    def __repr__(self) -> str:
        return f"RankingTree({len(self.leaves)} groups by {', '.join(self.by)})"

    def lines(self) -> list[Note]:
        """Return the tree as sentences: for whom the ranking differs, who is first in each group, and the tests."""
        root, known = self.groups[0], [test for test in self.groups[0].tests if not test.why]
        said = []
        if root.divided_by is not None:
            names = " and ".join(dict.fromkeys(group.divided_by for group in self.groups if group.divided_by))
            said.append(
                Note("differs", "the ranking differs by {by}: {groups:groups}", by=names, groups=len(self.leaves))
            )
        elif known:
            least = min(known, key=lambda test: test.p_value)
            text = "no difference of the ranking is found by {by}: "
            text += "the smallest of {tests} adjusted p-values is {p:.2g}" if len(known) > 1 else "p = {p:.2g}"
            by = " or ".join(test.property for test in known)
            said.append(Note("no difference", text, by=by, p=least.p_adjusted, tests=len(known)))
        else:
            said.append(Note("not tested", "nothing could be tested"))
        several = len(self.groups) > 1
        if several:
            ranked = [root, *self.leaves]
            for group in steps("rankings of the groups", ranked, even=False):  # tests of the fit end sooner or later
                self.ranking(group.number)
        for leaf in self.leaves if several else ():
            text = "group {group}, {who} ({judgments:judgments}{clusters}): {first}"
            many = "".join(f", {number:,} × {name}" for name, number in leaf.clusters.items())
            named: dict[str, Any] = {"group": leaf.number, "who": leaf.named, "judgments": leaf.judgments}
            if (apart := self.apart(leaf.number)) is not None:
                text += "; {item} has rank {here} instead of {of_all}"
                named |= dict(zip(("item", "here", "of_all"), apart, strict=True))
            first = " > ".join(map(str, self.first(leaf.number)))
            said.append(Note("group", text, clusters=many, first=first, **named))
        for group in self.groups:
            tests = sorted((test for test in group.tests if not test.why), key=lambda test: test.p_value)
            if tests and (several or len(tests) > 1):
                listed = ", ".join(f"{test.property} {test.p_adjusted:.2g}" for test in tests)
                text = "{where}adjusted p-values: {listed}"
                said.append(Note("tests", text, where=f"group {group.number}, " * several, listed=listed))
        for test in root.tests:
            if test.why:
                text = "{property} is not tested: {why}"
                said.append(Note("no test", text, property=test.property, why=test.why))
        if any("no cut" in test.why for test in root.tests):
            text = "a group has at least {least:judgments}; {ask} sets another number"
            said.append(Note("few judgments", text, least=self.min_judgments, ask=Setting("min_judgments")))
        return said

    def first(self, number: int, items: int = 5) -> list[Any]:
        """Return the items that rank first in a group."""
        board = self.ranking(number)
        return list(board.items.take(board.item[(board.component == 1) & (board.rank > 0)][:items]).to_pylist())

    def apart(self, number: int) -> tuple[Any, int, int] | None:
        """Return, of the items whose rank in a group is not that of all, the one whose score is farthest from there in
        standard errors, and both its ranks; None where there is none, or without intervals.
        """
        here, whole = self.ranking(number), self.ranking(1)
        at = {item: row for row, item in enumerate(whole.items.take(whole.item).to_pylist())}
        labels = here.items.take(here.item).to_pylist()
        there = np.array([at[item] for item in labels], np.int64)
        wide = here.upper - here.lower
        known = (here.rank > 0) & (whole.rank[there] > 0) & (here.rank != whole.rank[there])
        known &= (here.component == 1) & np.isfinite(wide) & (wide > 0)
        moved = np.where(known, np.abs(here.score - whole.score[there]) / np.where(known, wide, 1.0), 0.0)
        if not moved.any():
            return None
        row = int(moved.argmax())
        return labels[row], int(here.rank[row]), int(whole.rank[there[row]])


def ranking_tree(
    prefs: Preferences,
    by: str | Sequence[str] | None = None,
    *,
    names: Sequence[str] = (),
    alpha: float = 0.05,
    min_judgments: int | None = None,
    max_depth: int = 5,
    structure: str = "bradley-terry",
    seed: int = 0,
    **options: Any,
) -> RankingTree:
    """Divide the judgments by properties of the judges or prompts, wherever the ranking differs between the parts.

    Parameters
    ----------
    prefs : judgments that know their properties, as columns of their clusters: ``read(…, cluster=["judge", "age",
        "language"])``. The columns that ``by`` does not name say which judgments depend on each other.
    by : the properties (default: the only column that there is). Values that are all numbers are taken in their order.
    names : those of them whose numbers are names, such as codes of countries.
    alpha : a group is divided where the smallest adjusted p-value is below.
    min_judgments : what a group has at least (default: ten for each item).
    max_depth : how often a judgment is divided off, at most.
    structure : bradley-terry or plackett-luce.
    seed : of the permutations that take the place of a law where there are few judges.
    **options : of the rankings of the groups: those of ``rank``; ``ties`` is that of the tests, too.

    Errors: UsageError for unknown columns, several queries, and structures without contributions to their score.

    >>> import concordant as cc
    >>> who = {"judge": [1, 2, 3, 4] * 10, "language": ["de", "de", "en", "en"] * 10}
    >>> votes = cc.Preferences.from_comparisons(["a", "b"] * 20, ["b", "a"] * 20, cluster=who)
    >>> print(cc.ranking_tree(votes, by="language"))
    no difference of the ranking is found by language: p = 1

    Source: Strobl, Wickelmaier & Zeileis (2011), see the module.
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"ranking_tree takes Preferences, not {type(prefs).__name__}; read them first: read(…)")
    member, curvature = _member(structure, prefs, options)
    if not isinstance(alpha, float | int) or not 0 < alpha < 1:
        raise UsageError(f"alpha must lie between 0 and 1, not {alpha!r}")
    depth = whole_number(max_depth, "max_depth", least=1)
    if len(prefs.queries) != 1:
        text = f"a tree divides one ranking, and there are {len(prefs.queries):,} queries: take them together ("
        raise UsageError(text, Setting("pool"), ")")
    properties = properties_of(prefs, by, names)
    ways = {
        name: way.astype(np.int64)
        for name, way in zip(prefs.cluster_columns, prefs.cluster_ways, strict=False)
        if name not in {one.name for one in properties}
    }
    least = 10 * len(prefs.items) if min_judgments is None else whole_number(min_judgments, "min_judgments", least=1)
    with stage("groups") as told:
        grown = Growth(prefs, member, curvature, options, properties, ways, float(alpha), least, seed, told)
        grown.grow(np.arange(prefs.distinct), depth)
    know(groups=len(grown.groups))
    names_of = tuple(one.name for one in properties)
    notes = (*prefs.notes, *dict.fromkeys(grown.notes))
    return RankingTree(tuple(grown.groups), names_of, float(alpha), least, member.name, options, notes)


def _member(
    name: str, prefs: Preferences, options: dict[str, Any]
) -> tuple[Structure, Callable[[Batch, Scores], Curvature]]:
    """Return the structure and what computes its contributions. Errors: UsageError."""
    member = find_structure(name)
    if member.curvature is None:
        raise UsageError(
            f"{member.name} is fitted by no likelihood, whose contributions are tested; take ",
            Setting("structure", "bradley-terry"),
        )
    ranked = {"interval", "level", "quasi", "reference", "min_judgments", "replicates", "across_components", "seed"}
    member.check(prefs.kind, {k: 1.0 if v == "auto" else v for k, v in options.items() if k not in ranked})
    return member, member.curvature
