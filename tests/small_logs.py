"""Hypothesis strategies: small random logs of every kind."""

import numpy as np
from hypothesis import strategies as st

from concordant.preferences.preferences import Preferences


@st.composite
def logs(draw, kind):
    """A small log of one kind over two queries of up to six items."""
    seed = draw(st.integers(0, 2**32 - 1))
    size = draw(st.integers(1, 14))
    random = np.random.default_rng(seed)
    query = random.integers(0, 2, size)
    items = np.array(["a", "b", "c", "d", "e", "f"])
    if kind == "comparisons":
        pair = [random.permutation(6)[:2] for _ in range(size)]
        return Preferences.from_comparisons(
            items[[p[0] for p in pair]],
            items[[p[1] for p in pair]],
            query,
            random.choice([0.5, 1.0, 2.25], size) if random.random() < 0.5 else None,
            tie=random.random(size) < 0.3,
            count=random.integers(1, 4, size),
        )
    length = random.integers(1, 6, size)
    row = np.repeat(np.arange(size), length)
    item = items[np.concatenate([random.permutation(6)[:n] for n in length])]
    if kind == "orders":
        return Preferences.from_orders(query[row], row, item, random.integers(1, 5, len(row)))
    if kind == "ratings":
        return Preferences.from_ratings(query[row], item, random.integers(1, 6, len(row)), row)
    place = np.concatenate([np.arange(n) for n in length])
    click = random.integers(0, length + (kind == "selections"))[row] == place
    if kind == "choices":
        return Preferences.from_choices(query[row], row, item, click)
    return Preferences.from_selections(query[row], row, place + 1, item, click)
