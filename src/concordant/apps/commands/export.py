"""``concordant export``: options; the work is in ``exporting``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options
from concordant.apps.commands.progress import progress_options

__all__ = ["export"]


@command()
@click.option("--model", "-m", required=True, metavar="DIR", help="A model that concordant fit wrote.")
@click.option("--to", metavar="FORMAT", help="onnx, elasticsearch (and OpenSearch), solr or json.")
@click.option("--output", "-o", metavar="FILE", help="Write the model to FILE.")
@click.option("--card", metavar="FILE", help="Write a model card to FILE, such as README.md.")
@click.option("--name", metavar="N", help="Name of the model (default: FILE without its ending; in the card DIR).")
@click.option("--feature-names", metavar="A,B,…",
              help="What the features are called there, in the order of the model's.")  # fmt: skip
@click.option("--of-query", metavar="Q", help="Of a model with a scoring function for each query: which one.")
@click.option("--log", metavar="LOG", help="For the card: the judgments that the model learned from.")
@click.option("--held-out", metavar="LOG", help="For the card: judgments that it has not seen.")
@click.option("--labels", metavar="F", help="For the card: a LETOR file with graded labels that it has not seen.")
@click.option("--features", "-f", metavar="F", help="For the card: features of the items of --log and --held-out.")
@click.option(
    "--held-out-features", metavar="F", help="Features of the items of --held-out, if not those of --features."
)
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@click.option("--license", metavar="ID", default="unknown", show_default=True,
              help="For the card: licence of the model, as the hub calls it (mit, cc-by-4.0, …).")  # fmt: skip
@click.option("--audit/--no-audit", default=True, show_default=True, help="For the card: audit the judgments of --log.")
@click.option("--kind", metavar="K", help="Kind of the logs: comparisons, selections, choices, orders or ratings.")
@role_options
@reading_options
@click.option(
    "--unsafe-load-pickle", is_flag=True, help="Load a model that holds a pickle. A pickle runs whatever code is in it."
)
@progress_options
def export(model: str, **options: Any) -> None:
    """Write a model for other software, its normaliser included, or a model card, or both.

    onnx takes every regressor that has a converter, in float64; elasticsearch and solr take linear scorers and trees
    (solr networks too), in float32; json is documented in docs/export.md.

    \b
    Examples:
      concordant export --model model --to onnx -o model.onnx
      concordant export -m model --to elasticsearch -o model.json --feature-names title,body,age
      concordant export -m model --card README.md --log votes.csv --features items.csv --labels test.txt
    """
    from concordant.apps.commands.exporting import run_export

    run_export(model, Given.of(options, RULES))
