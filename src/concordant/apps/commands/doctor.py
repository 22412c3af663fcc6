"""``concordant doctor``: look at a file and say what it is; sentences, or one JSON object."""

from __future__ import annotations

import json

import click

from concordant.apps.commands import COMMANDS
from concordant.apps.commands.doctor_options import DoctorOptions
from concordant.apps.commands.durations import looking
from concordant.apps.commands.options import command_of
from concordant.apps.commands.output import check_output, plain, write_json
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.saying import one_line
from concordant.apps.doctor.examine import examine
from concordant.errors import InputError


def doctor(options: DoctorOptions) -> None:
    """Print what was found; the exit status says whether something can be done with the file."""
    output = options.output
    if output is not None:
        check_output(output, options.file, "the file", endings=(".json",))
    with Progress(options.quiet, f"looking at {options.file}", looking(options.file)):
        seen = examine(options.file, list(COMMANDS), lambda name: command_of(name).option)  # type: ignore[attr-defined]
    if output is not None and seen.usable:
        write_json(seen.to_dict(), output)
        options.say("wrote", f"wrote {output}", path=output)
    if options.json:
        click.echo(json.dumps(plain(seen.to_dict()), ensure_ascii=False, indent=1))
    else:
        for line in seen.lines():
            click.echo(one_line(line))
    if not seen.usable:
        raise InputError(f"{options.file}: {seen.what}: {' '.join(seen.stops)}")
