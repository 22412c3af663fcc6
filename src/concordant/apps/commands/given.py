"""The options of a command as one dataclass: which were given, which were read; what would do nothing is refused.

A field made by ``option`` or ``argument`` is a parameter of the command line: its type says what it takes, its name how
it is called, the dataclass's docstring is the help. The same object goes to the function that works.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import click
from click.core import ParameterSource

from concordant.apps.commands.run_record import check_summary, said_of
from concordant.apps.commands.saying import say
from concordant.apps.commands.settings import settings_of
from concordant.errors import ConcordantError, Idle, Setting
from concordant.memory import bounded
from concordant.preferences.notes import Note
from concordant.record import running

KEPT = {"note", "ingested", "removed", "forgotten", "dated", "restored", "compacted", "verified"}
"""What the record of a run keeps of what is said."""
HELP = {"help_option_names": ["-h", "--help"]}
ANYWHERE = frozenset({"quiet", "seed", "spreadsheet_safe", "summary"})
"""Options that every way takes: how much is said, a seed, which promises equal output and keeps that promise where
nothing is drawn, too, the form of texts in CSV, which is checked before anything else, and the record of the run."""

RENAMED = {"log": "log_features", "names": "feature_columns", "unsafe_pickle": "unsafe_load_pickle"}
"""Options that have another name than the parameters of functions that they set, by the latter."""


def option(metavar: str | None, help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Make a field of ``Options`` that is an option; ``more`` is as ``click.Option`` takes it.

    ``names``: further ones such as ``-o``, or ``--x/--y``; else it is called as the field.
    """
    about = {"metavar": metavar, "help": help, "names": names, **more}
    return field(default=MISSING if more.get("required") else default, metadata={"click": about})


def flag(help: str, *names: str, default: bool = False) -> Any:
    """Make a field of ``Options`` that is said or not."""
    return option(None, help, *names, default=default)


def argument(**more: Any) -> Any:
    """Make a field of ``Options`` that is a positional argument; ``more`` is as ``click.Argument`` takes it."""
    if more.get("required") is False:
        return field(default=None, metadata={"click": more})
    if more.get("nargs") == -1:
        return field(default=(), metadata={"click": more})
    return field(metadata={"click": more})


@dataclass(frozen=True)
class Rule:
    """Options of some commands, and when they do nothing."""

    commands: str
    """Names with spaces between, such as ``rank store-replace``."""
    options: str
    """Names with spaces between."""
    when: Callable[[Mapping[str, Any]], Any]
    """Of the options and of the facts of the way, by name; None stands for what is not known (yet)."""
    why: str
    """With the names of options and facts in braces."""
    instead: str = "leave it out"


SET = "concordant.settings"
"""Of a context: where what was not given on the command line is set, by option."""


class _Known(dict[str, Any]):
    """Options and facts by name; None for what is not known."""

    def __missing__(self, name: str) -> None:
        return None


@dataclass
class _Way:
    """What is known of the way that a command goes."""

    given: frozenset[str] = frozenset()
    rules: Sequence[Rule] = ()
    read: set[str] = field(default_factory=set)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, flag, argument))
class Options:
    """The options of a command; a class made of this one is a dataclass.

    A command says what it learns of its way (``settle``), before it writes anything. Options that were given and would
    do nothing on that way are refused by the table of rules. What the table misses is an error at the end: nothing is
    ever ignored in silence.

    >>> class Shown(Options):
    ...     rows: int = option("N", "Rows of the table.", default=20)
    >>> shown = Shown.of("rank", {"rows": 5}, {"rows"}, [Rule("rank", "rows", lambda at: at["pipe"], "no")])
    >>> shown.settle(pipe=False)
    >>> shown.unread(), shown.rows, shown.unread()
    (['rows'], 5, [])
    >>> shown.settle(pipe=True)
    Traceback (most recent call last):
    concordant.errors.Idle: rows does nothing here: no; leave it out
    """

    absent: ClassVar[frozenset[str]] = frozenset()
    """Options of the classes that this one is made of which its command does not have."""
    quiet: bool = flag("No progress and no notes.", "-q")
    summary: str | None = option(
        "F.json", "Write a record of the run to F.json: what was read, refused and written, options, time, memory."
    )
    _way: _Way = field(default_factory=_Way, init=False)

    def __new__(cls, **_: Any) -> Self:
        _as_dataclass(cls)
        return super().__new__(cls)

    if not TYPE_CHECKING:  # where it would make every name an attribute

        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_"):
                self._way.read.add(name)
            return object.__getattribute__(self, name)

    @classmethod
    def of(cls, command: str, values: Mapping[str, Any], given: set[str], rules: Sequence[Rule] = ()) -> Self:
        """Return the options with these values, of which some were ``given``, and the rules of the command."""
        made = cls(**values)
        made._way.given, made._way.facts = frozenset(given), _Known(values)
        made._way.rules = [rule for rule in rules if command.replace(" ", "-") in rule.commands.split()]
        return made

    def settle(self, **facts: Any) -> None:
        """Take note of facts of the way that was chosen. Errors (Idle): an option that was given does nothing on it."""
        self._way.facts |= facts
        for rule in self._way.rules:
            for name in rule.options.split():
                if name in self._way.given and rule.when(self._way.facts):
                    raise Idle(name, rule.why.format_map(self._way.facts), rule.instead)

    def gave(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return not self._way.given.isdisjoint(names)

    def within_memory(self, work: Callable[[Self], object]) -> None:
        """Do the work in the memory that this process may hold, where it was said; on Spark others hold it."""
        known = vars(self)
        size = None if known.get("engine") == "spark" or known.get("master") else known.get("memory_limit")
        with bounded(size, lambda text: self.say("note", text)):
            work(self)

    def say(self, event: str, message: str, **more: Any) -> None:
        """Say a line on stderr, unless --quiet; the record of the run has what was done and noted either way."""
        if (run := running()) is not None and event in KEPT:
            numbers = {name: value for name, value in more.items() if isinstance(value, int | float)}
            run.note(message, code=event if event != "note" else "", numbers=numbers)
        if not self.quiet:
            say(event, message, **more)

    def say_notes(self, notes: Iterable[str]) -> None:
        """Say each note, unless --quiet."""
        for note in notes:
            say_note(note, quiet=self.quiet)

    def check(self) -> None:
        """Refuse what is wrong whatever the command does."""

    def unread(self) -> list[str]:
        """Return the options that were given and that nobody has looked up."""
        return sorted(self._way.given - self._way.read - ANYWHERE)


def _as_dataclass(kind: type) -> None:
    """Make dataclasses of a class and of those that it is made of, once; only who needs it pays for it."""
    for part in reversed(kind.__mro__):
        if issubclass(part, Options) and "__dataclass_fields__" not in vars(part):
            dataclass(frozen=True, kw_only=True, repr=False, eq=False)(part)


class _Command(click.Command):
    """A command that takes each option once, and ignores none in silence."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            self._once(self.make_parser(ctx).parse_args(list(args))[2])
            ctx.default_map = self._settings(ctx)
        return super().parse_args(ctx, args)

    def _once(self, order: Sequence[click.Parameter]) -> None:
        seen = set()
        for one in order:
            if one in seen and isinstance(one, click.Option) and not one.multiple and not one.is_eager:
                raise click.UsageError(f"{_flag(one)} is given twice; give it once")
            seen.add(one)

    def _settings(self, ctx: click.Context) -> dict[str, Any]:
        """Return what environment and file set for this command, each value tried. Errors: UsageError, InputError."""
        from concordant.apps.commands import COMMANDS

        named = {one.name: one for one in self.params if isinstance(one, click.Option) and one.name}
        name = " ".join(ctx.command_path.split()[1:])
        found = {}
        for key, (value, where) in settings_of(name, named, COMMANDS).items():
            one = named[key]
            found[key] = value.split() if one.multiple and isinstance(value, str) else value
            try:
                one.type_cast_value(ctx, found[key])
            except click.UsageError as problem:
                raise click.UsageError(f"{where}: {_flag(one)}: {problem.message}") from None
            ctx.meta.setdefault(SET, {})[key] = where
        return found

    def invoke(self, ctx: click.Context) -> Any:
        try:
            while True:
                try:
                    options = super().invoke(ctx)
                    break
                except Idle as problem:  # what is set for every command does nothing here: this one goes without
                    if ctx.get_parameter_source(problem.option) is not ParameterSource.DEFAULT_MAP:
                        raise
                    one = next(one for one in self.params if one.name == problem.option)
                    ctx.meta[SET].pop(problem.option)
                    ctx.set_parameter_source(problem.option, ParameterSource.DEFAULT)
                    ctx.params[problem.option] = one.type_cast_value(ctx, one.default)
        except ConcordantError as problem:
            raise said_of(problem, problem.said(self.option)) from None
        if left := options.unread():
            raise click.UsageError(
                f"{self.option(Setting(left[0]))} was given, and nothing read it: the output is one without it"
            )

    def option(self, setting: Setting) -> str:
        """Return how a parameter of a function is written here; one that is no option of the command in words."""
        called = setting.key or setting.name
        name = RENAMED.get(called, f"feature_{called}" if setting.of == "features" else called)
        own = {one.name: one for one in self.params if isinstance(one, click.Option)}
        one = own.get(name) or own.get(called)
        if one is None:
            return called.replace("_", " ") + ("" if setting.value is None else f" {setting.value}")
        if one.is_flag and one.secondary_opts and setting.value is not None:
            return max(one.opts if setting.value else one.secondary_opts, key=len)
        if one.is_flag or setting.value is None:
            return _flag(one)
        values = setting.value if isinstance(setting.value, tuple) else (setting.value,)
        return " ".join(f"{_flag(one)} {value}" for value in values)


def _flag(option: click.Option) -> str:
    names = [max(names, key=len) for names in (option.opts, option.secondary_opts) if names]
    return "/".join(names)


def command(name: str, kind: type[Options], run: Callable[[Any], None], rules: Sequence[Rule]) -> click.Command:
    """Make the command of a dataclass: every option once, none ignored in silence."""

    def callback(**values: Any) -> Options:
        context = click.get_current_context()
        own = [one.name for one in context.command.params if isinstance(one, click.Option)]
        given = {one for one in own if one and context.get_parameter_source(one) is ParameterSource.COMMANDLINE}
        options = kind.of(name, values, given & {*values}, rules)
        record = running()
        if record is not None:
            by = context.meta.get(SET, {}) | dict.fromkeys(given & {*values}, "command line")
            said = {one: value for one, value in values.items() if value not in (None, (), False) or one in by}
            record.more |= {"command": name, "options": {"quiet": False, **said}, "set_by": by}
        check_summary(values.get("summary"), {one: value for one, value in values.items() if one != "summary"})
        options.check()
        run(options)
        return options

    form = click.Option(
        ["--log-format"],
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,  # it is read before anything else
        help="What is said on stderr: for a person, or one JSON object a line.",
    )
    statuses = click.Option(
        ["--exit-status"],
        type=click.Choice(["plain", "detailed"]),
        default="plain",
        show_default=True,
        expose_value=False,
        help="plain: 2 for every error; detailed: 2 bad data, 3 nothing new, 4 bad usage, 5 disk, memory, package …",
    )
    return _Command(
        name.split()[-1],
        callback=callback,
        params=[*_parameters(kind), form, statuses],
        help=kind.__doc__,
        context_settings=HELP,
    )


def _parameters(kind: type[Options]) -> Iterator[click.Parameter]:
    """Yield the parameters of a dataclass: its own, then those of the classes that it is made of."""
    _as_dataclass(kind)
    hints, known = get_type_hints(kind), {one.name: one for one in fields(kind)}
    for name in [name for part in kind.__mro__ if issubclass(part, Options) for name in part.__annotations__]:
        if (one := known.pop(name, None)) is None or "click" not in one.metadata or name in kind.absent:
            continue
        about = dict(one.metadata["click"])
        if "names" not in about:
            yield click.Argument([name], **about)
            continue
        long = [f"--{name.replace('_', '-')}"] if not any(one.startswith("--") for one in about["names"]) else []
        names = [*long, *about.pop("names"), name]
        if one.default is not MISSING:
            about["default"] = one.default
            about.setdefault(
                "show_default", not (one.default is None or one.default is False or one.default in ((), ""))
            )
        yield click.Option(names, **({} if "type" in about else _kind(hints[name])) | about)


def _kind(hint: Any) -> dict[str, Any]:
    """Return what the type of a field says of an option."""
    if get_origin(hint) in (types.UnionType, Union):
        (hint,) = (one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))}
    if get_origin(hint) is tuple:
        return {"multiple": True, "type": str}
    return {"is_flag": True} if hint is bool else {"type": hint}


def say_note(note: str, *, quiet: bool = False) -> None:
    """Say a note, its parameters as options of the command that runs; what it is made of stands in the JSON object.

    ``quiet``: it stands in the record of the run only.
    """
    if (run := running()) is not None:
        run.note(note, worded(note))
    if quiet:
        return
    more: dict[str, Any] = {}
    if isinstance(note, Note):
        made = {"code": note.code, "query": note.query, "items": note.items, "numbers": note.numbers}
        more = {name: value for name, value in made.items() if value}
    say("note", worded(note), **more)


def worded(note: str | ConcordantError, command: click.Command | None = None) -> str:
    """Return a note, or an error, with its parameters as options of a command: without one, of the command that runs.

    Where none runs, parameters are those of functions.
    """
    context = click.get_current_context(silent=True)
    command = context.command if command is None and context is not None else command
    if isinstance(note, Note | ConcordantError) and isinstance(command, _Command):
        return note.said(command.option)
    return str(note)
