"""``concordant pairs``: read, cancel opposite votes, write; what was done goes to stderr."""

from __future__ import annotations

from concordant.apps.commands.output import check_output, write
from concordant.apps.commands.pairs_options import PairsOptions
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of
from concordant.learning.pairs import pairs as found_pairs

ENDINGS = (".jsonl", ".json", ".parquet", ".arrow", ".feather")


def pairs(options: PairsOptions) -> None:
    """Write the pairs; what cancelled and what else a reader should know goes to stderr."""
    log, output = options.log, options.output
    for read, what in (
        (log, "the log"),
        (options.texts, "the file of texts"),
        (options.prompts, "the file of prompts"),
    ):
        check_output(output, read, what, endings=ENDINGS)
    asked = asked_of(options)
    del asked["pool"]
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        found = found_pairs(log, texts=options.texts, prompts=options.prompts, level=options.level, **asked)
    with Progress(options.quiet, f"writing {output}"):
        write(found.table, output)
    options.say("wrote", f"wrote {output}: {found}", path=output)
    options.say_notes(found.notes)
