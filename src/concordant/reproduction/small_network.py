"""One hidden layer of ReLU trained on the exponential loss over all pairs of different labels, with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

__all__ = ["SmallNetwork", "exponential_loss", "train_small"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SmallNetwork:
    """f(x) = Σ_j u_j (w_j·x + b_j)₊ (RwA's H_NN, without bounds on the norms)."""

    inner: Floats
    """w, shape (hidden, features)."""
    bias: Floats
    outer: Floats

    def score(self, X: Floats) -> Floats:
        """Scores (rows,) of features (rows, features)."""
        return np.asarray(np.maximum(X @ self.inner.T + self.bias, 0.0) @ self.outer)


def exponential_loss(score: Floats, label: Ints) -> tuple[float, Floats]:
    """Return the mean of exp(−(h_j − h_i)) over all pairs with label_j > label_i, and its derivative in the scores.

    The sum over pairs is a sum over labels of products of two sums, so this takes O(n + labels), in logarithms.

    >>> value, slope = exponential_loss(np.array([0.0, 1.0]), np.array([0, 1]))
    >>> bool(np.isclose(value, np.exp(-1))), bool(np.allclose(slope, [np.exp(-1), -np.exp(-1)]))
    (True, True)
    """
    classes, level = np.unique(label, return_inverse=True)
    of = [score[level == place] for place in range(len(classes))]
    size = np.array([len(each) for each in of], np.float64)
    up = np.array([logsumexp(each) for each in of])
    down = np.array([logsumexp(-each) for each in of])
    below = np.append(-np.inf, np.logaddexp.accumulate(up)[:-1])
    above = np.append(np.logaddexp.accumulate(down[::-1])[:-1][::-1], -np.inf)
    log_pairs = np.log((size.sum() ** 2 - (size**2).sum()) / 2)
    value = float(np.exp(logsumexp(down + below) - log_pairs))
    slope = np.exp(score + above[level] - log_pairs) - np.exp(below[level] - score - log_pairs)
    return value, slope


def train_small(X: Floats, label: Ints, *, hidden: int, ridge: float, steps: int, seed: int) -> SmallNetwork:
    """Minimise the exponential loss + (ridge/2)‖(w, u)‖² from a random start, by at most ``steps`` of L-BFGS."""
    rng = np.random.default_rng(seed)
    features = X.shape[1]
    shape = (hidden, features)
    cut = np.cumsum([hidden * features, hidden])
    start = np.concatenate(
        [
            rng.normal(size=hidden * features) * np.sqrt(2.0 / features),
            np.zeros(hidden),
            rng.normal(size=hidden) / np.sqrt(hidden),
        ]
    )

    def value(theta: Floats) -> tuple[float, Floats]:
        inner, bias, outer = np.split(theta, cut)
        inner = inner.reshape(shape)
        active = X @ inner.T + bias
        on = np.maximum(active, 0.0)
        loss, slope = exponential_loss(on @ outer, label)
        back = (slope[:, None] * outer) * (active > 0)
        gradient = np.concatenate(
            [(back.T @ X + ridge * inner).ravel(), back.sum(axis=0), on.T @ slope + ridge * outer]
        )
        return loss + 0.5 * ridge * float((inner**2).sum() + (outer**2).sum()), gradient

    with np.errstate(over="ignore"):  # a step of the line search that is too long is taken back
        found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20})
    inner, bias, outer = np.split(found.x, cut)
    return SmallNetwork(inner.reshape(shape), bias, outer)
