"""The exact maximum likelihood of Bradley–Terry, solved independently of the package under test."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from scipy.sparse import coo_array
from scipy.sparse.linalg import LinearOperator, cg


def maximum_likelihood(path: str) -> tuple[list[str], np.ndarray]:
    """Return the items in order and their log-abilities (sum zero): Newton's method, steps by conjugate gradients.

    Stops when the largest score equation, Σ_l n_jl − (n_jl + n_lj) σ(s_j − s_l), is below 1e-11 of the item's
    number of comparisons.
    """
    table = feather.read_table(path, columns=["winner", "loser"])
    both = pa.chunked_array(table["winner"].chunks + table["loser"].chunks).combine_chunks()
    names, codes = np.unique(both.to_numpy(zero_copy_only=False), return_inverse=True)
    n, rows = len(names), len(table)
    wins = coo_array((np.ones(rows), (codes[:rows], codes[rows:])), shape=(n, n)).tocsr()
    met = (wins + wins.T).tocoo()
    first, second = met.coords
    won, games = np.asarray(wins.sum(axis=1)).ravel(), np.asarray(met.sum(axis=1)).ravel()
    s = np.zeros(n)
    for _ in range(100):
        p = 1 / (1 + np.exp(s[second] - s[first]))
        gradient = won - np.bincount(first, met.data * p, n)
        if np.abs(gradient / games).max() < 1e-11:
            return [str(name) for name in names], s - s.mean()
        curve = met.data * p * (1 - p)
        diagonal = np.bincount(first, curve, n)

        def laplacian(v: np.ndarray, curve: np.ndarray = curve, diagonal: np.ndarray = diagonal) -> np.ndarray:
            return diagonal * v - np.bincount(first, curve * v[second], n)

        precondition = LinearOperator((n, n), lambda v, d=diagonal: v / d)
        step, failed = cg(LinearOperator((n, n), laplacian), gradient, rtol=1e-10, maxiter=5 * n, M=precondition)
        assert failed == 0, "conjugate gradients did not converge"
        s += step
        s -= s.mean()
    raise AssertionError("Newton's method did not converge")
