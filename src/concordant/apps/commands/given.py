"""The options of a command: which were given and which were read; what was given and would do nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from concordant.apps.commands.saying import say
from concordant.errors import ConcordantError, Idle, Setting
from concordant.preferences.notes import Note

__all__ = ["ANYWHERE", "Given", "Rule", "command", "group", "say_note", "worded"]


HELP = {"help_option_names": ["-h", "--help"]}
ANYWHERE = frozenset({"quiet", "seed"})
"""Options that every way takes: how much is said, and a seed, which promises equal output and keeps that promise where
nothing is drawn, too (so does --log-format, which is no option of the work at all)."""

OPTIONS = {"log": "log_features", "names": "feature_columns"}
"""Options that have another name than the parameters of functions that they set, by the latter."""


@dataclass(frozen=True)
class Rule:
    """Options of some commands, and when they do nothing."""

    commands: str
    """Names with spaces between, such as ``rank audit``."""
    options: tuple[str, ...]
    when: Callable[[Mapping[str, Any]], Any]
    """Of the options and of the facts of the way, by name; None stands for what is not known (yet)."""
    why: str
    """With the names of options and facts in braces."""
    instead: str = "leave it out"


class Given(Mapping[str, Any]):
    """The options of a command by name: ``given`` has those of the command line, ``read`` those that were looked up.

    A command says what it learns of its way (``settle``), before it writes anything. Options that were given and would
    do nothing on that way are refused by the table of rules. What the table misses is an error at the end: nothing is
    ever ignored in silence.

    >>> given = Given("rank", {"rows": 5, "seed": 0}, {"rows"}, [Rule("rank", ("rows",), lambda at: at["pipe"], "no")])
    >>> given.settle(pipe=False)
    >>> given.unread()
    ['rows']
    >>> given.settle(pipe=True)
    Traceback (most recent call last):
    concordant.errors.Idle: rows does nothing here: no; leave it out
    """

    def __init__(
        self, command: str, values: Mapping[str, Any], given: Collection[str], rules: Sequence[Rule] = ()
    ) -> None:
        self.given, self.read = frozenset(given), set[str]()
        self._values, self._at = dict(values), _Known(values)
        self._rules = [rule for rule in rules if command in rule.commands.split()]

    @classmethod
    def of(cls, values: Mapping[str, Any], rules: Sequence[Rule] = ()) -> Given:
        """Return the options of the command that runs now."""
        context = click.get_current_context()
        said = [name for name in values if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        made = cls(" ".join(context.command_path.split()[1:]), values, said, rules)
        context.meta[__name__] = made
        return made

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def settle(self, **facts: Any) -> None:
        """Take note of facts of the way that was chosen. Errors (Idle): an option that was given does nothing on it."""
        self._at |= facts
        for rule in self._rules:
            for name in rule.options:
                if name in self.given and rule.when(self._at):
                    raise Idle(name, rule.why.format_map(self._at), rule.instead)

    def unread(self) -> list[str]:
        """Return the options that were given and that nobody has looked up."""
        return sorted(self.given - self.read - ANYWHERE)


class _Known(dict[str, Any]):
    """Options and facts by name; None for what is not known."""

    def __missing__(self, name: str) -> None:
        return None


class _Command(click.Command):
    """A command that takes each option once, and ignores none in silence."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            self._once(self.make_parser(ctx).parse_args(list(args))[2])
        return super().parse_args(ctx, args)

    def _once(self, order: Sequence[click.Parameter]) -> None:
        seen = set()
        for one in order:
            if one in seen and isinstance(one, click.Option) and not one.multiple and not one.is_eager:
                raise click.UsageError(f"{_flag(one)} is given twice; give it once")
            seen.add(one)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
        except ConcordantError as problem:
            raise click.UsageError(problem.said(self.option)) from None
        given = ctx.meta.get(__name__)
        if given is not None and (left := given.unread()):
            raise click.UsageError(
                f"{self.option(Setting(left[0]))} was given, and nothing read it: the output is one without it"
            )
        return done

    def option(self, setting: Setting) -> str:
        """Return how a parameter of a function is written here; one that is no option of the command stays as it is."""
        called = setting.key or setting.name
        name = OPTIONS.get(called, f"feature_{called}" if setting.of == "features" else called)
        own = {one.name: one for one in self.params if isinstance(one, click.Option)}
        one = own.get(name) or own.get(called)
        if one is None:
            return str(setting)
        return _flag(one) if one.is_flag or setting.value is None else f"{_flag(one)} {setting.value}"


def _flag(option: click.Option) -> str:
    names = [max(names, key=len) for names in (option.opts, option.secondary_opts) if names]
    return "/".join(names)


def say_note(note: str) -> None:
    """Say a note, its parameters as options of the command that runs; what it is made of stands in the JSON object."""
    more: dict[str, Any] = {}
    if isinstance(note, Note):
        made = {"code": note.code, "query": note.query, "items": note.items, "numbers": note.numbers}
        more = {name: value for name, value in made.items() if value}
    say("note", worded(note), **more)


def worded(note: str) -> str:
    """Return a note with its parameters as options of the command that runs."""
    context = click.get_current_context(silent=True)
    if isinstance(note, Note) and context is not None and isinstance(context.command, _Command):
        return note.said(context.command.option)
    return note


class _Group(click.Group):
    command_class = _Command


def command(name: str | None = None, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function: every option once, none ignored in silence."""
    return click.command(name, cls=_Command, context_settings=HELP, **more)


def group(name: str | None = None, **more: Any) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a group of such commands of a function."""
    return click.group(name, cls=_Group, context_settings=HELP, **more)
