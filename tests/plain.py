"""The structure functions as dense Python loops, straight from the formulas: slow, plain, the oracle of the fast ones.

Everything starts from the judgments that a graph of a batch holds, not from the package's edges or pair tables.
"""

from itertools import permutations, product
from math import log

import numpy as np
from scipy.optimize import minimize


def held(batch, graph):
    """The judgments of a graph as (times, dict): the items are the numbers of the graph's nodes, 0 … m − 1."""
    prefs = batch.prefs
    nodes = batch.item[batch.node_start[graph] : batch.node_start[graph + 1]].tolist()
    number = {code: place for place, code in enumerate(nodes)}
    out = []
    for place in range(batch.start[graph], batch.start[graph + 1]):
        j = batch.judgment[place]
        if prefs.kind == "comparisons":
            one = {
                "winner": number[prefs.winner[j]],
                "loser": number[prefs.loser[j]],
                "tie": prefs.tie is not None and bool(prefs.tie[j]),
                "weight": 1.0 if prefs.weight is None else float(prefs.weight[j]),
            }
        else:
            entries = slice(prefs.list_start[j], prefs.list_start[j + 1])
            one = {"items": [number[i] for i in prefs.list_item[entries]], "values": prefs.list_value[entries].tolist()}
        out.append((int(batch.multiplicity[place]), one))
    return len(nodes), out


def adjacency(kind, one, m):
    """Y of one judgment: entry (j, l) the strength of j over l, a tie half to each."""
    y = np.zeros((m, m))
    if kind == "comparisons":
        share = 0.5 if one["tie"] else 1.0
        y[one["winner"], one["loser"]] += share * one["weight"]
        y[one["loser"], one["winner"]] += (1 - share) * one["weight"]
        return y
    for a, (j, x) in enumerate(zip(one["items"], one["values"], strict=True)):
        for b, (other, z) in enumerate(zip(one["items"], one["values"], strict=True)):
            if a == b:
                continue
            if kind == "orders":
                y[j, other] += 1.0 if x < z else 0.5 if x == z else 0.0
            elif kind == "ratings":
                y[j, other] += max(x - z, 0.0)
            elif kind == "choices":
                y[j, other] += float(x > 0)
            elif x > 0 and b < a:  # selections: over what was passed
                y[j, other] += 1.0
    return y


def wins(batch, graph):
    """n_jl, shape (m, m), and k."""
    m, judgments = held(batch, graph)
    n, k = np.zeros((m, m)), 0
    for times, one in judgments:
        n += times * adjacency(batch.prefs.kind, one, m)
        k += times
    return n, k


def counting(n):
    m = len(n)
    return np.array([0.5 if n[j].sum() + n[:, j].sum() == 0 else n[j].sum() / (n[j] + n[:, j]).sum() for j in range(m)])


def borda(n):
    m, s = len(n), np.zeros(len(n))
    for j, i in product(range(m), repeat=2):
        if n[j, i] + n[i, j] > 0:
            s[j] += (n[j, i] - n[i, j]) / (n[j, i] + n[i, j])
    return s


def positional_borda(batch, graph):
    m, judgments = held(batch, graph)
    total, lists = np.zeros(m), np.zeros(m)
    for times, one in judgments:
        for j, x in zip(one["items"], one["values"], strict=True):
            if len(one["items"]) > 1:
                below = sum(z > x for z in one["values"])
                above = sum(z < x for z in one["values"])
                total[j] += times * (below - above) / (len(one["items"]) - 1)
                lists[j] += times
    return np.array([t / c if c else 0.0 for t, c in zip(total, lists, strict=True)])


def rrf(batch, graph, k=60.0):
    m, judgments = held(batch, graph)
    total, sign = np.zeros(m), -1 if batch.prefs.kind == "ratings" else 1
    for times, one in judgments:
        values = [sign * x for x in one["values"]]
        for j, x in zip(one["items"], values, strict=True):
            first = 1 + sum(z < x for z in values)
            places = range(first, first + values.count(x))
            total[j] += times * sum(1 / (k + place) for place in places) / len(places)
    return total


def combsum(batch, graph):
    m, judgments = held(batch, graph)
    total = np.zeros(m)
    for times, one in judgments:
        low, high = min(one["values"]), max(one["values"])
        for j, x in zip(one["items"], one["values"], strict=True):
            total[j] += times * ((x - low) / (high - low) if high > low else 1.0)
    return total


def copeland(n):
    return np.array([sum(np.sign(round(n[j, i] - n[i, j], 9)) for i in range(len(n))) for j in range(len(n))], float)


def budgeted_borda(n):
    m, s = len(n), []
    for j in range(m):
        shares = [n[j, i] / (n[j, i] + n[i, j]) for i in range(m) if n[j, i] + n[i, j] > 0]
        s.append(np.mean(shares) if shares else 0.5)
    return np.array(s)


def log_odds_matrix(n, c0):
    m, a = len(n), np.zeros((len(n), len(n)))
    for j, i in product(range(m), repeat=2):
        if n[j, i] + n[i, j] > 0:
            a[j, i] = log((n[j, i] + c0) / (n[i, j] + c0))
    return a


def average_log_odds(n, c0):
    return log_odds_matrix(n, c0).sum(axis=1) / max(len(n) - 1, 1)


def thurstone_mosteller(n, c0, omega=None):
    omega = ((n + n.T) > 0).astype(float) if omega is None else omega
    return np.linalg.pinv(np.diag(omega.sum(axis=1)) - omega) @ (omega * log_odds_matrix(n, c0)).sum(axis=1)


def eigenvector(n, c0):
    values, vectors = np.linalg.eig(np.exp(log_odds_matrix(n, c0)))
    x = np.abs(vectors[:, np.argmax(values.real)].real)
    return x / np.exp(np.log(x).mean())


def _reaches(edge):
    """Whether a chain of edges leads from each item to each, itself included."""
    reach = edge | np.eye(len(edge), dtype=bool)
    for k in range(len(edge)):
        reach |= reach[:, k : k + 1] & reach[k]
    return reach


def _stretches(group, d):
    """Items of a strongly connected group as level stretches, from the front, by all orders of least loss."""
    loss = {o: sum(d[o[b], o[a]] for b in range(len(o)) for a in range(b)) for o in permutations(group)}
    best = [o for o, lost in loss.items() if lost <= min(loss.values()) + 1e-9]
    ahead = {(i, j): any(o.index(i) < o.index(j) for o in best) for i in group for j in group if i != j}
    level = np.array([[i == j or (ahead[i, j] and ahead[j, i]) for j in group] for i in group])
    sets = {tuple(np.array(group)[row].tolist()) for row in _reaches(level)}
    return sorted(sets, key=lambda one: sum(any(ahead[i, j] for i in one) for j in group if j not in one), reverse=True)


def kemeny(n):
    """Minus the places: by longest chains of majorities, cycles as one, and within these by their level stretches."""
    m, d = len(n), np.where(np.abs(n - n.T) > 1e-9, np.maximum(n - n.T, 0), 0)
    reach, linked = _reaches(d > 0), _reaches(n + n.T > 0)
    key = {}
    for i in range(m):
        cycle = [j for j in range(m) if reach[i, j] and reach[j, i]]

        def chain(here, way):
            beyond = {j for j in range(m) if any(way[k, j] for k in here) and j not in here}
            rings = [[k for k in range(m) if reach[j, k] and reach[k, j]] for j in beyond]
            return max((len(ring) + chain(ring, way) for ring in rings), default=0)

        lead, before = chain(cycle, d > 0) - chain(cycle, d.T > 0), 0
        for stretch in _stretches(cycle, d):
            if i in stretch:
                key[i] = (-lead, 2 * before + len(stretch) - len(cycle))
            before += len(stretch)
    group = [[j for j in range(m) if linked[i, j]] for i in range(m)]
    ahead = [sum(key[j] < key[i] for j in group[i]) for i in range(m)]
    same = [sum(key[j] == key[i] for j in group[i]) for i in range(m)]
    return np.array([-(a + (s + 1) / 2) for a, s in zip(ahead, same, strict=True)])


def cascade(batch, graph):
    m, judgments = held(batch, graph)
    clicked, shown = np.zeros(m), np.zeros(m)
    for times, one in judgments:
        for item, click in zip(one["items"], one["values"], strict=True):
            shown[item] += times
            if click:
                clicked[item] += times
                break
    pooled = clicked.sum() / shown.sum() if shown.sum() else 0.0
    return np.array([clicked[i] / shown[i] if shown[i] else pooled for i in range(m)])


# -- Plackett–Luce -----------------------------------------------------------------------------------------------
def _order(theta, order):
    """Log-probability of one order: choice after choice from what remains."""
    return sum(theta[i] - np.log(np.exp(theta[order[r:]]).sum()) for r, i in enumerate(order))


def plackett_luce_likelihood(batch, graph, theta):
    """Log-likelihood: the chance of all orders that agree with the tiers; a tied comparison is half of either order."""
    kind = batch.prefs.kind
    total = 0.0
    for times, one in held(batch, graph)[1]:
        if kind == "comparisons":
            up, down = one["winner"], one["loser"]
            ways = [[up, down], [down, up]] if one["tie"] else [[up, down]]
            total += times * one["weight"] * np.mean([_order(theta, order) for order in ways])
            continue
        if kind == "orders":
            tiers = [
                [i for i, x in zip(one["items"], one["values"], strict=True) if x == v]
                for v in sorted(set(one["values"]))
            ]
            orders = [[i for part in parts for i in part] for parts in product(*map(permutations, tiers))]
        else:
            clicked = [place for place, x in enumerate(one["values"]) if x > 0]
            if not clicked:
                continue
            shown = one["items"][: clicked[0] + 1] if kind == "selections" else one["items"]
            total += times * (theta[one["items"][clicked[0]]] - np.log(np.exp(theta[shown]).sum()))
            continue
        total += times * np.log(np.sum(np.exp([_order(theta, order) for order in orders])))
    return total


def plackett_luce(batch, graph, prior):
    m = held(batch, graph)[0]
    fit = minimize(
        lambda s: 0.5 * prior * s @ s - plackett_luce_likelihood(batch, graph, s), np.zeros(m), tol=1e-10, method="BFGS"
    )
    return fit.x
