"""Scores whose components are found when somebody asks."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import concordant as cc
from concordant.preferences.graphs import Batch
from concordant.ranking import scores as gauge
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure


def test_components_are_found_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    found = gauge.connectivity
    monkeypatch.setattr(gauge, "connectivity", lambda graphs: asked.append(1) or found(graphs))
    batch = Batch.whole(cc.Preferences.from_comparisons(["a", "c", "c"], ["b", "d", "e"]))
    scores = structure("borda")(batch)
    assert scores.value.any() and not asked
    assert scores.component.tolist() == [1, 1, 0, 0, 0] and scores.component is scores.component
    assert len(asked) == 1


def test_late_components_survive_copies() -> None:
    batch = Batch.whole(cc.Preferences.from_comparisons(["a", "c"], ["b", "d"]))
    for copied in (
        pickle.loads(pickle.dumps(structure("borda")(batch))),
        replace(structure("borda")(batch), notes=("x",)),
    ):
        assert copied.component.tolist() == [0, 0, 1, 1]
    given = Scores(np.zeros(1), np.ones(1, np.int32), np.zeros(1, np.int8), np.zeros(1, int), np.zeros(1))
    assert given.component.tolist() == [1]
