"""Kemeny distances of PrefLib sets by corankco 7.2.0's exact algorithm (an integer program through PuLP and CBC).

    pip install corankco==7.2.0 && python make_kemeny_golden.py FOLDER_OF_PREFLIB > kemeny_golden.json

Strict orders only, complete or not: a pair that a voter did not rank costs nothing, a tie in the consensus costs every
voter who ranked the pair 1, so that it never helps. The numbers are facts of the sets, which are not shipped.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

FILES = (
    *(f"00001_irish/00001-0000000{i}.soi" for i in (1, 2, 3)),
    *(f"00006_skate/00006-000000{i}.soc" for i in ("03", "06", "08", "11", "12", "18", "21", "28", "46")),
    *(f"00009_agh/00009-0000000{i}.soc" for i in (1, 2)),
    "00012_shirt/00012-00000001.soc",
    "00014_sushi/00014-00000001.soc",
    *(f"00024_dots/00024-0000000{i}.soc" for i in (1, 2, 3, 4)),
    *(f"00025_puzzle/00025-0000000{i}.soc" for i in (1, 2, 3, 4)),
    *(f"00052_f1seasons/00052-000000{i}.soc" for i in ("02", "18", "32", "34", "36", "38", "42")),
)
SCHEME = [[0.0, 1.0, 0.5, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
"""Costs of a pair, by what the voter and the consensus say of it (corankco's order)."""


def distance(path: Path) -> float:
    """The least sum over voters of the pairs that an order contradicts."""
    from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
    from corankco.dataset import Dataset
    from corankco.scoringscheme import ScoringScheme

    rankings: list[list[set[int]]] = []
    for count, order in re.findall(r"^(\d+): *([\d, ]+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        rankings += [[{int(item)} for item in order.split(",")]] * int(count)
    data = Dataset.from_raw_list(rankings)
    scheme = ScoringScheme(SCHEME)
    consensus = ExactAlgorithmPulp().compute_consensus_rankings(data, scheme, return_at_most_one_ranking=True)
    return float(consensus.kemeny_score)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {}
    for name in FILES:
        if (folder / name).exists():
            found[name] = distance(folder / name)
            print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))
