"""What a deployment sets: environment variables and ``concordant.toml``, below the command line, above the defaults.

``CONCORDANT_MEMORY_LIMIT=4GB`` sets ``--memory-limit`` for every command that has it, and so does ``memory-limit =
"4GB"`` in the file, or in its section ``[rank]`` for that command alone. What changes numbers is not set so: it belongs
to the command line, where whoever reads it sees it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from concordant.errors import InputError, UsageError, did_you_mean

FILE, PREFIX = "concordant.toml", "CONCORDANT_"
WHERE = f"{PREFIX}CONFIG"
"""The variable that names another file; empty: none is read."""
NAMES = (
    *("engine", "master", "memory-limit", "threads", "wait", "quiet", "log-format", "exit-status", "spreadsheet-safe"),
    *("host", "port", "host-name", "token-file", "workers", "max-items", "max-body", "limit-concurrency", "timeout"),
    *("watch", "shadow-share"),
)
"""Options that may be set so."""
LONGEST = 1 << 16


def settings_of(command: str, options: Collection[str], commands: Collection[str]) -> dict[str, tuple[Any, str]]:
    """Return what is set for a command: by the name of the option (as in Python) its value, and where it is set.

    Errors: InputError for a file that cannot be read; UsageError for keys that nobody knows, or that this command does
    not have, and for variables that are nearly one of ours.
    """
    found = dict(_of_file(command, options, commands)) | dict(_of_environment())
    return {name.replace("-", "_"): told for name, told in found.items() if name.replace("-", "_") in options}


def early(arguments: Sequence[str], name: str, commands: Collection[str]) -> str | None:
    """Return an option that is needed before the others are understood: the last on the command line, or what is set.

    >>> early(["rank", "votes.csv", "--log-format", "json"], "log-format", ["rank"])
    'json'
    """
    options = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    pairs = zip(options, [*options[1:], ""])
    flag = f"--{name}"
    given = [after if one == flag else one.partition("=")[2] for one, after in pairs if one.split("=")[0] == flag]
    if given or name not in NAMES:
        return given[-1] if given else None
    with suppress(InputError, UsageError):  # whoever reads the others says so
        key = name.replace("-", "_")
        set_so = settings_of(options[0] if options else "", [key], commands)
        return str(set_so[key][0]) if key in set_so else None
    return None


def _of_environment() -> Iterator[tuple[str, tuple[Any, str]]]:
    known = {PREFIX + name.upper().replace("-", "_"): name for name in NAMES}
    for variable, value in os.environ.items():
        if variable in known:
            yield known[variable], (value, variable)
        elif variable.startswith(PREFIX) and (close := get_close_matches(variable, known, 1, 0.9)):
            raise UsageError(f"{variable}: there is no such setting; did you mean {close[0]}?")


def _of_file(
    command: str, options: Collection[str], commands: Collection[str]
) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Yield what the file sets for every command, then what it sets for this one."""
    name = os.environ.get(WHERE, FILE)
    if not name or (WHERE not in os.environ and not os.path.isfile(name)):
        return
    sections = _parsed(name)
    for key, value in sections.items():
        if not isinstance(value, Mapping):
            yield _checked(key, value, name)
        elif key not in commands:
            raise UsageError(f"{name}: unknown section [{key}]; {did_you_mean(key, commands)}")
    for section, inside in sections.items():
        own = isinstance(inside, Mapping) and section == command.split(" ")[0]
        for key, value in inside.items() if isinstance(inside, Mapping) else ():
            found = _checked(key, value, f"{name}: [{section}]")
            if own and key.replace("-", "_") not in options and section == command and len(options) > 1:
                raise UsageError(f"{name}: [{section}]: concordant {section} has no option --{key}")
            if own:
                yield found


def _parsed(name: str) -> dict[str, Any]:
    try:
        raw = Path(name).read_bytes()
        if len(raw) > LONGEST:
            raise InputError(f"{name} holds {len(raw):,} bytes; a file of settings has at most {LONGEST:,}")
        return tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{WHERE}={name}: {error.strerror or error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name} is no TOML: {error}") from None


def _checked(key: str, value: Any, where: str) -> tuple[str, tuple[Any, str]]:
    if key not in NAMES:
        if key.replace("_", "-") in NAMES:
            raise UsageError(f"{where}: {key}: write it as the option, {key.replace('_', '-')}")
        raise UsageError(f"{where}: {key} cannot be set here; {did_you_mean(key, NAMES)}")
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if not isinstance(value, str | int | float) and not (texts and key == "host-name"):
        raise UsageError(f"{where}: {key} is set to {value!r}; give it one value, as on the command line")
    if not isinstance(value, list):  # as on the command line: 2.5 is no number of threads
        value = str(value).lower() if isinstance(value, bool) else str(value)
    return key, (value, where)
