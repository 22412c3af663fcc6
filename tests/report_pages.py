"""Data of report pages, made up by the schema that reporting/ builds: small ones, large ones and hostile ones."""

from __future__ import annotations

from typing import Any

import numpy as np

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '<img src=x onerror="window.pwned = 3">',
    "<!--<script>",
    "{a|b}",
    "{b}: {c}",
    "javascript:window.pwned=4",
    "line\u2028and\u2029paragraph",
    "\"quotes\" 'and' `backticks` ${window.pwned = 5}",
    "\u202eright to left\u202c שלום مرحبا",
    "x" * 10_000,
    "&lt;b&gt; &amp; \\u003c",
    "",
    "tab\tand\nnew line\r\x07",
    "__proto__",
    "constructor",
    "@[data]",
    "a\x85b\x9fc",
    "\ud800 alone",
    "=1+1",
)


NODES = 60
"""Items of a graph."""


def report_data(items: list[str], views: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    """Whole data of a report; a part that is not given is absent, with a sentence."""
    sections = ("audit", "annotators", "order", "scorer", "axioms", "coverage")
    found = dict.fromkeys(sections) | parts
    return {
        "schema": 1,
        "title": "votes.csv",
        "facts": f"comparisons, {len(items)} items",
        "version": "0",
        "command": None,
        "settings": {"structure": "bradley-terry", "level": 0.95, "seed": 0},
        "notes": [],
        "left_out": [],
        "items": items,
        "elo": {"centre": 1000, "per": 400 / np.log(10)},
        "views": views,
        "absent": {name: f"There is no {name} here: give --{name}." for name in sections if found[name] is None},
        **found,
    }


def view_data(rng: np.random.Generator, codes: np.ndarray, name: str, pairs: int, near: int = 100) -> dict[str, Any]:
    """A view of items with pairs drawn at random, ``near`` of them between the best."""
    n = len(codes)
    score = np.sort(rng.normal(size=n))[::-1].round(6)
    one, other = rng.integers(0, n, (2, 4 * pairs))
    low, high = np.minimum(one, other), np.maximum(one, other)
    drawn = np.unique(np.stack([low, high], 1)[low < high], axis=0)
    best = rng.permutation(np.stack(np.triu_indices(min(n, NODES), 1), 1))[:near]
    drawn = np.unique(np.concatenate([best, rng.permutation(drawn)[: pairs - near]]), axis=0)
    counts = rng.integers(0, 6, (len(drawn), 3)) + np.array([2, 0, 0])
    beats = [[int(codes[a]), int(codes[b]), *map(int, c)] for (a, b), c in zip(drawn, counts)]
    edges = [_edge(row) for row in beats if row[2] != row[3]]
    return {
        "name": name,
        "query": name,
        "pooled": False,
        "judgments": int(counts.sum()),
        "components": 1,
        "ranking": {
            "item": codes.tolist(),
            "component": [1] * n,
            "rank": list(range(1, n + 1)),
            "score": score.tolist(),
            "lower": (score - 0.3).tolist(),
            "upper": (score + 0.3).tolist(),
            "rank_lower": [max(1, r - 3) for r in range(1, n + 1)],
            "rank_upper": [min(n, r + 3) for r in range(1, n + 1)],
            "judgments": rng.integers(1, 500, n).tolist(),
            "flag": [""] * n,
            "provisional": [False] * n,
            "tier": [1] * 3 + [2] * (n - 3),
            "win_rate": [(n - r) / n for r in range(n)],
        },
        "notes": [],
        "beats": {"pairs": beats, "left_out": 0},
        "graph": {"nodes": codes[:NODES].tolist(), "edges": _among(edges, codes[:NODES]), "cycles": [], "left_out": 0},
        "audit": None,
        "settling": None,
        "ask": [{"first": int(codes[0]), "second": int(codes[-1]), "gain": 0.1, "reason": "decides place 1"}],
    }


def _edge(row: list[int]) -> list[Any]:
    one, other, wins, losses, ties = row
    net = abs(wins - losses) / 1000
    judgments = wins + losses + ties
    return [*((one, other) if wins > losses else (other, one)), net, judgments, 0.75, False, 0]


def _among(edges: list[list[Any]], codes: np.ndarray) -> list[list[Any]]:
    inside = set(codes.tolist())
    return [edge for edge in edges if edge[0] in inside and edge[1] in inside]


def full_data(seed: int = 0, *, n: int = 40, views: int = 3, pairs: int = 300, labels: Any = None) -> dict[str, Any]:
    """Every section with something in it; views of the same items in other orders, one cycle in each graph."""
    rng = np.random.default_rng(seed)
    items = list(labels) if labels is not None else [f"Item {i}" for i in rng.permutation(n)]
    n = len(items)
    made = [view_data(rng, rng.permutation(n), f"query {v}", pairs) for v in range(views)]
    for view in made:
        _close_a_cycle(view)
        view["audit"] = {
            "lines": ["The net preferences run in a cycle."],
            "row": {"acyclic": False},
            "surrogates": _verdicts(),
        }
    return report_data(
        items,
        made,
        audit={
            "lines": ["A cycle runs through the best three."],
            "surrogates": _overall(),
            "held_out": None,
            "notes": [],
        },
        annotators=_annotators(rng, items[:20]),
        paths=_paths(items[:4]),
        models=[_model(items[:6])],
        order={"axis": "order", "points": _points(), "explained": "k judgments at a time."},
        scorer=_scorer(items),
        axioms=_axioms(items),
        coverage=coverage_data(rng),
    )


def _close_a_cycle(view: dict[str, Any]) -> None:
    a, b, c = view["graph"]["nodes"][:3]
    circle = [(a, b), (b, c), (c, a)]
    kept = [edge for edge in view["graph"]["edges"] if not {edge[0], edge[1]} <= {a, b, c}]
    view["graph"]["edges"] = [*([x, y, 0.01, 5, 0.6, True, 1] for x, y in circle), *kept]
    view["graph"]["cycles"] = [[a, b, c]]


def _verdicts() -> list[dict[str, Any]]:
    found = [("ranknet", False, 0.02), ("linear", True, 0.0), ("ranksvm", None, None)]
    return [
        {"surrogate": s, "target": "pairwise", "consistent": c, "regret": r, "regret_at_most": r, "status": "attained"}
        for s, c, r in found
    ]


def _overall() -> list[dict[str, Any]]:
    shown = {"target": "pairwise", "queries": 3, "right": 1, "wrong": 1, "undecided": 1, "mean_regret": 0.01}
    return [{"surrogate": name, **shown} for name in ("ranknet", "linear")]


def _annotators(rng: np.random.Generator, groups: list[str]) -> dict[str, Any]:
    share = rng.uniform(0.4, 0.9, (len(groups), len(groups))).round(4)
    rows = [
        {
            "group": g,
            "judgments": 50,
            "pairs": 20,
            "agreement": float(a),
            "lower": float(a - 0.1),
            "upper": float(a + 0.1),
            "ties": 0.2,
        }
        for g, a in zip(groups, share.diagonal())
    ]
    pairs = np.full(share.shape, 20).tolist()
    between = {"groups": groups, "agreement": share.tolist(), "pairs": pairs, "tau": share.tolist()}
    ranks = {"groups": groups[:2], "items": groups[:3], "ranks": [[[1, 1, 2, 9], [2, 1, 3, 9], None], [None] * 3]}
    return {"column": "worker", "groups": rows, "between": between, "left_out": 0, "explained": "Who agrees with whom.",
            "ranks": ranks}  # fmt: skip


def _paths(items: list[str]) -> dict[str, Any]:
    points = [{"time": f"19{at + 70}-01-01", "score": at / 9, "lower": -1.0, "upper": 2.0, "at": 365.0 * at}
              for at in range(9)]  # fmt: skip
    ranks = [[[row + 1, 1, 4] for row in range(len(items))], [None, *([row, 1, 4] for row in range(1, len(items)))]]
    periods = {"labels": ["1970", "1971"], "at": [364.0, 700.0], "items": items, "ranks": ranks, "left_out": 2}
    series = [{"item": item, "points": points} for item in items]
    return {"dated": True, "explained": "Abilities move.", "series": series, "periods": periods}


def _model(items: list[str]) -> dict[str, Any]:
    numbers = {
        "score": 0.1,
        "lower": -0.2,
        "upper": 0.4,
        "people_score": 0.2,
        "people_lower": -0.3,
        "people_upper": 0.7,
    }
    numbers |= {"judge_score": 0.9, "bias": 0.8, "bias_lower": 0.1, "bias_upper": 1.5, "decided": 30, "off": True}
    rows = [{"item": item} | numbers for item in items]
    return {"judge": "gpt", "said": ["people decided 30 of 90 comparisons"], "scored": False, "rows": rows}


def _points() -> list[dict[str, Any]]:
    losses = {"1": 0.31, "2": 0.3, "4": 0.28, "8": 0.29}
    return [{"order": k, "loss": x, "standard_error": 0.004, "chosen": k == "4"} for k, x in losses.items()]


def _scorer(items: list[str]) -> dict[str, Any]:
    features = [{"feature": name, "value": 1 - 0.13 * at, "standard_error": 0.1} for at, name in enumerate(items[:20])]
    metrics = [{"name": "loss", "value": 0.3, "standard_error": 0.01, "note": "held out"}]
    return {
        "kind": "linear",
        "what": "coefficient",
        "explained": "",
        "features": features,
        "left_out": 0,
        "metrics": metrics,
    }


def _axioms(items: list[str]) -> dict[str, Any]:
    """One axiom that is broken, one that could not be checked, one without an interval."""
    none = dict.fromkeys(("lower", "upper", "sure", "best_lower", "best"))
    rows = [
        {
            "axiom": "pareto",
            "of": 40,
            "violated": 12,
            "lower": 8.6,
            "upper": 11.2,
            "sure": 3,
            "best_lower": 1,
            "best": 2,
        },
        {"axiom": "condorcet winner", "of": 0, "violated": 0, "lower": 0.0, "upper": 0.0, "sure": 0, "best_lower": 0}
        | {"best": 0},
        {"axiom": "clones", "of": 3, "violated": 1} | none,
    ]
    for row, title in zip(rows, ("Everybody agrees", "One item beats every other", "Two items judged alike")):
        row |= {"title": title, "name": row["axiom"], "asks": f"{title}, asked."}
    case = {"query": None, "item": items[0], "other": items[1], "score": 0.25, "other_score": 0.5}
    cases = [
        {"axiom": "pareto", "votes": 5, "against": 0, "p_value": 0.031} | case,
        {"axiom": "clones", "votes": None, "against": None, "p_value": None} | case,
    ]
    return {"whose": "made up", "explained": "Votes.", "level": 0.95, "lines": [], "advice": ["Do this."], "rows": rows,
            "cases": cases, "notes": ["nobody says who judged"]}  # fmt: skip


def coverage_data(rng: np.random.Generator, pairs: int = 150) -> dict[str, Any]:
    """A curve whose pairs are the likelier wrong the smaller their threshold."""
    threshold = np.sort(rng.uniform(0, 1, pairs))
    mass = rng.integers(1, 9, pairs).astype(float)
    wrong = mass * (rng.uniform(size=pairs) > 0.5 + threshold / 2)
    left = wrong.sum() - np.cumsum(wrong)
    return {
        "by": "risk",
        "explained": "",
        "mass": float(mass.sum()),
        "pairs": pairs,
        "threshold": [None, *threshold.tolist()],
        "declined": [0.0, *np.cumsum(mass).tolist()],
        "wrong": [float(wrong.sum()), *np.maximum(left, 0).tolist()],
    }
