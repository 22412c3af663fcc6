"""Make the files of this folder from the five test files of the source (their folder is the argument)."""

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np


def lines_by_query(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        found.setdefault(line.split()[1], []).append(line)
    return found


def write(name: str, text: str) -> None:
    with open(Path(__file__).parent / name, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(text.encode())


def main(source: Path) -> None:
    draw = np.random.default_rng(0)
    votes = io.StringIO()
    table = csv.writer(votes, lineterminator="\n")
    table.writerow(["query", "winner", "loser"])
    for name, folds in (("train.txt.gz", (1, 2, 3)), ("test.txt.gz", (4, 5))):
        kept = []
        for fold in folds:
            for lines in lines_by_query(source / f"Fold{fold}.test.txt").values():
                chosen = np.sort(draw.choice(len(lines), min(60, len(lines)), replace=False))
                mine = [lines[place] for place in chosen]
                kept += mine
                if name.startswith("train"):
                    grade = [int(line.split()[0]) for line in mine]
                    item = [line.split("#")[1].split()[-1] for line in mine]
                    query = mine[0].split()[1].removeprefix("qid:")
                    for _ in range(200):
                        i, j = draw.choice(len(mine), 2, replace=False)
                        won = draw.random() < 1 / (1 + np.exp(grade[j] - grade[i]))
                        table.writerow([query, item[i], item[j]] if won else [query, item[j], item[i]])
        write(name, "\n".join(kept) + "\n")
    write("votes.csv.gz", votes.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
