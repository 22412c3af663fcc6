"""Vertices and triangulations of small polytopes: where the populations of a class with an excess to lose lie."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PRECISE = 1e-9
"""What minima and linear programmes are trusted to; lower bounds are this much lower."""


def corners(rows: Floats, right: Floats, equal: Floats, sums: Floats) -> Floats:
    """Return the vertices of {θ : rows θ ≥ right, equal θ = sums}; shape (vertices, n).

    >>> corners(np.eye(2), np.zeros(2), np.ones((1, 2)), np.ones(1)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    number = rows.shape[1]
    found = []
    for active in itertools.combinations(range(len(rows)), number - len(equal)):
        system = np.vstack((equal, rows[list(active)]))
        if np.linalg.matrix_rank(system) < number:
            continue
        point = np.linalg.solve(system, np.concatenate((sums, right[list(active)])))
        if (rows @ point >= right - PRECISE).all():
            found.append(np.round(point, 13) + 0.0)
    return np.unique(np.array(found).reshape(-1, number), axis=0)


def simplices(points: Floats, tight: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Triangulate a polytope: its first vertex with the simplices of all faces that do not hold it.

    ``tight`` (points, rows) says which inequalities are equalities at a vertex.
    """

    def dimension(some: tuple[int, ...]) -> int:
        return int(np.linalg.matrix_rank(points[list(some[1:])] - points[some[0]], tol=1e-9)) if len(some) > 1 else 0

    def parts(some: tuple[int, ...]) -> list[tuple[int, ...]]:
        size = dimension(some)
        if len(some) == size + 1:
            return [some]
        faces = {tuple(one for one in some if tight[one, row]) for row in range(tight.shape[1])}
        faces = {face for face in faces if face and face[0] != some[0] and dimension(face) == size - 1}
        return [(some[0], *inner) for face in sorted(faces) for inner in parts(face)]

    return parts(tuple(range(len(points)))) if len(points) else []
