"""How often a tree over judges divides where nothing differs, and where something does: ``python -m benchmarks.trees``.

Each design draws judges with a number of judgments each, two properties that mean nothing (an age, a country of four)
and ``half``, which means something where there is a difference: the abilities of one half differ from the others'.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import concordant as cc

Design = tuple[str, int, int, str, float, float]
DESIGNS: tuple[Design, ...] = (
    ("200 judges, 15 judgments of 6 items each", 6, 200, "equal", 0.0, 0.0),
    ("200 judges, 3 to 150 judgments of 8 items, own tastes (sd .7)", 8, 200, "uneven", 0.7, 0.0),
    ("60 judges, 40 judgments of 10 items each, own tastes (sd .7)", 10, 60, "forty", 0.7, 0.0),
    ("25 judges, 3 to 150 judgments of 20 items, own tastes (sd .7)", 20, 25, "uneven", 0.7, 0.0),
    ("3,000 judgments of 12 items, each of another judge", 12, 3000, "one", 0.0, 0.0),
    ("a difference: 200 judges, 15 judgments of 6 items each", 6, 200, "equal", 0.0, 0.4),
    ("a difference: 60 judges, 40 judgments of 10 items, own tastes (sd .7)", 10, 60, "forty", 0.7, 0.4),
)


def drawn(design: Design, random: np.random.Generator) -> cc.Preferences:
    """Judgments of one draw, with the columns judge, age, country and half."""
    _, items, judges, how, taste, turn = design
    sizes = {"equal": np.full(judges, 15), "forty": np.full(judges, 40), "one": np.ones(judges, int)}
    size = sizes[how] if how in sizes else np.exp(random.uniform(np.log(3), np.log(150), judges)).astype(int)
    judge = np.repeat(np.arange(judges), size)
    half = np.arange(judges) % 2
    direction = random.permutation(np.linspace(-1, 1, items))
    ability = (
        np.linspace(1, -1, items) + taste * random.standard_normal((judges, items)) + turn * np.outer(half, direction)
    )
    first = random.integers(items, size=len(judge))
    second = (first + random.integers(1, items, size=len(judge))) % items
    won = random.random(len(judge)) < 1 / (1 + np.exp(ability[judge, second] - ability[judge, first]))
    who = {
        "judge": judge,
        "age": random.integers(18, 80, judges)[judge],
        "country": np.array(["a", "b", "c", "d"])[random.choice(4, judges, p=[0.4, 0.3, 0.2, 0.1])][judge],
        "half": half[judge],
    }
    names = np.array([f"item {number}" for number in range(items)])
    return cc.Preferences.from_comparisons(
        names[np.where(won, first, second)], names[np.where(won, second, first)], cluster=who
    )


def main(draws: int) -> None:
    """Print, for each design, how often the root is divided and how often each property has p < .05."""
    print(f"{'divided':>8} {'age':>6} {'country':>8} {'half':>6}   of {draws} draws")
    for number, design in enumerate(DESIGNS):
        began = time.perf_counter()
        random = np.random.default_rng(number)
        found = np.zeros((draws, 4))
        for draw in range(draws):
            tree = cc.ranking_tree(drawn(design, random), ["age", "country", "half"], alpha=1e-12)
            tests = tree.groups[0].tests
            found[draw] = [min(test.p_adjusted for test in tests) < 0.05, *(test.p_value < 0.05 for test in tests)]
        share = [f"{100 * one:.1f}%" for one in found.mean(axis=0)]
        took = time.perf_counter() - began
        print(f"{share[0]:>8} {share[1]:>6} {share[2]:>8} {share[3]:>6}   {design[0]} ({took:.0f} s)", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
