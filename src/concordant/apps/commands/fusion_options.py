"""Options of ``concordant rank`` where its logs are TREC runs."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import Options, argument, option


class FusionOptions(Options):
    """More files of the log; runs are fused, and judged."""

    more: tuple[str, ...] = argument(nargs=-1, metavar="[LOG]...")
    k: float | None = option("K", "Of rrf: what is added to the ranks (default 60).")
    normalise: Literal["min-max", "z-score"] | None = option(None, "Of combsum: each list's scores (default min-max).")
    qrels: str | None = option(
        "F", "Judge the fused run and each alone by the labels in F, as trec_eval does; the ranking itself to --output."
    )
    metrics: tuple[str, ...] = option(
        "M", "With --qrels: as of concordant evaluate (default ndcg@10; again for more).", "--metric", default=()
    )
