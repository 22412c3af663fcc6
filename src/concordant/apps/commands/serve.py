"""``concordant serve``: options; the work is in ``serving``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import abstention_options
from concordant.apps.commands.progress import progress_options

__all__ = ["serve"]


@command()
@click.option("--model", "-m", required=True, metavar="DIR", help="A model that concordant fit wrote.")
@click.option(
    "--features", "-f", metavar="F", help="Features of the items that may be asked for by their labels; without it, "
    "requests bring features of their own."
)  # fmt: skip
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True,
              help="Where to listen; 0.0.0.0 is every interface of this machine.")  # fmt: skip
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8080, show_default=True,
              help="0 takes a free one.")  # fmt: skip
@click.option("--host-name", metavar="NAME", multiple=True,
              help="A name that clients call this server by, beside localhost and --host; repeatable.")  # fmt: skip
@click.option("--token-file", metavar="FILE", help="Answer only whoever shows the token in FILE (authorization: "
              "Bearer …); CONCORDANT_SERVE_TOKEN may hold it, too.")  # fmt: skip
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Processes, each with model and features of its own.")  # fmt: skip
@click.option("--max-items", metavar="N", type=click.IntRange(min=1), default=1000, show_default=True,
              help="Items, or pairs, in one request.")  # fmt: skip
@click.option("--max-body", metavar="SIZE", default="4MB", show_default=True, help="Size of a request's body.")
@click.option("--limit-concurrency", metavar="N", type=click.IntRange(min=1), default=64, show_default=True,
              help="Requests taken at once in a worker; others are refused (503).")  # fmt: skip
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=10.0,
              show_default=True, help="In which a whole request must have arrived.")  # fmt: skip
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@abstention_options(
    "Compare and order no two items where that is too risky: COST of that, from 0 to 1 (a wrong order costs 1)."
)
@click.option(
    "--unsafe-load-pickle", is_flag=True, help="Load a model that holds a pickle. A pickle runs whatever code is in it."
)
@progress_options
def serve(model: str, **options: Any) -> None:
    """Answer requests over HTTP by a fitted model: POST /score, /rank, /compare; GET /health, /openapi.json.

    There is no TLS, and no login but a token: for others than this machine, put it behind a proxy. Ctrl-C and SIGTERM
    end it when the requests that have begun are answered. --abstain and what belongs to it are as for concordant score.

    \b
    Examples:
      concordant serve --model model --features items.csv
      concordant serve -m model -f items.parquet --host 0.0.0.0 --port 9000 --workers 2 --log-format json
    """
    from concordant.apps.commands.serving import run_serve

    run_serve(model, Given.of(options, RULES))
